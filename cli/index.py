"""``sentemb index``: titles with their vectors, to be searched."""

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import TimeLeft, duration, note_queries, read_titles
from sentemb.cli.options import (
    Written,
    cosine_option,
    dask_option,
    looks_option,
    option,
    refuse,
    search_fields_option,
    threads_option,
    written_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import hints, note, summarise
from sentemb.cli.ranker import note_calibration_gone, say_score
from sentemb.errors import SentembError
from sentemb.system.amounts import amount
from sentemb.system.bounds import brief

if TYPE_CHECKING:
    from sentemb.data.examinations import Examinations
    from sentemb.search.index import Index
    from sentemb.search.ranking.recipe import Recipe

_DTYPES = ["float32", "float16", "int8"]


@new_command("index")
@click.argument("source", type=click.Path(), metavar="MODEL|INDEX")
@click.argument("titles", type=click.Path(), required=False)
@written_option(
    Written(is_folder=True),
    "Folder of the index. A changed index is written to its own folder by default.",
    metavar="INDEX",
    required=False,
)
@option(
    "--dtype",
    type=click.Choice(_DTYPES),
    help="Type of the vectors: float16 takes half the space of float32, int8 a quarter, and its "
    f"queries half the time. [default: {_DTYPES[0]}]",
)
@cosine_option()
@option(
    "--exact",
    is_flag=True,
    help="Let every search look at all titles. By default, from 30,000 titles on, it looks at some "
    "of them and misses a few of the best.",
)
@search_fields_option()
@option("--add", metavar="TITLES", type=click.Path(), help="Add the titles of a file to an index.")
@option(
    "--remove",
    metavar="IDS",
    type=click.Path(),
    help="Remove the titles with these ids from an index: a file with one id per line, or with "
    "lines id<TAB>text.",
)
@option(
    "--sync",
    metavar="TITLES",
    type=click.Path(),
    help="Make the titles of an index those of a file: add, change and remove what differs. A "
    "title whose text changed keeps its clicks.",
)
@looks_option("[default: what the ranker has]")
@threads_option()
@dask_option("embeds the titles of a new index")
def command(
    source: str,
    titles: str | None,
    output: str | None,
    dtype: str | None,
    cosine: bool,
    exact: bool,
    search_fields: dict[str, float] | None,
    add: str | None,
    remove: str | None,
    sync: str | None,
    record: tuple[str, ...],
    force: bool,
    dask: str | None,
) -> None:
    """Make an index of titles, or change one.

    TITLES is a file with lines id<TAB>text, unpacked if it ends in .gz; - is standard input. If its
    first line is id<TAB>title<TAB>price<TAB>..., the columns after the title are fields, by which
    `sentemb search` filters and sorts; `sentemb import --fields` writes such a file. The index is a
    folder with titles, fields, vectors and a copy of the model, so `sentemb search` needs nothing
    else. Until it is written, vectors are on its disk, not in memory. Given an index, --remove and
    --add change it, in this order, and --sync makes its titles those of a file.

    If the folder of the model has a ranker, the index ranks with it: its weights, its BM25, and the
    clicks that it reads. `sentemb tune MODEL` or `sentemb train --dev` fits one. Clicks belong to
    the id of a title: they stay when its text changes. With --record they count by how often the
    titles were looked at, in a new index or in one that is there.

    \b
    sentemb index model/ titles.tsv -o index/
    sentemb index model/ titles.tsv -o index/ --record searches.sqlite
    sentemb index index/ --sync titles.tsv
    sentemb index index/ --add new.tsv --remove gone.txt
    """
    from sentemb.analysis.next_step import next_step
    from sentemb.data.examinations import read_examinations
    from sentemb.search.index import check_output
    from sentemb.search.index_files import is_index
    from sentemb.search.ranking.shortlist import LEAST_RECALL, RECALL_AT
    from sentemb.search.shortlisting import LEAST_TITLES

    began = time.perf_counter()
    new: dict[str, Any] = {"dtype": dtype, "cosine": cosine, "exact": exact, "dask": dask}
    new["search_fields"] = search_fields
    changes = {"add": add, "remove": remove, "sync": sync}
    is_change = any(changes.values()) or (titles is None and is_index(source))
    _check_usage(is_change, titles, output, changes, new, record)
    looks = read_examinations(record)
    if is_change:
        # An index may replace itself without --force: that is what was asked for.
        force, output = force or output is None, output or source
        if is_index(source):
            check_output(output, force)
        index = _changed(source, changes, output, looks)
    else:
        if is_index(source):
            raise SentembError(f"{source}: is an index; give a model, or add titles with --add")
        assert titles is not None and output is not None
        check_output(output, force)
        index = _built(source, titles, output, new, looks)
    index.save(output, force)
    size = _megabytes(output)
    empty = f"; {index.n_empty:,} with no known words" if index.n_empty else ""
    fields = ", ".join(f"{name} ({kind.lower()})" for name, kind in index.fields.types.items())
    if fields:
        note(f"fields: {fields}")
    if index.search_fields:
        weights = (f"{name}:{weight:g}" for name, weight in index.search_fields.items())
        note(f"words are searched in titles and {', '.join(weights)}")
    if index.recipe.needs_clicks and index.ranker.clicks.queries:
        note_queries(output, len(index.ranker.clicks.queries))
    if index.clusters is not None:
        note(f"clusters: {index.clusters}")
    elif not exact and not is_change and len(index) - index.n_empty >= LEAST_TITLES:
        note(
            f"clusters: none, for a quarter of them has a recall@{RECALL_AT} below "
            f"{LEAST_RECALL:g}; a search looks at all titles"
        )
    summarise(
        output,
        {
            "titles": len(index),
            "titles_without_known_words": index.n_empty,
            "fields": index.fields.types,
            "dtype": index.dtype,
            "recall": None if index.clusters is None else index.clusters.recall,
            "megabytes": size,
        },
        f"{output}: {amount(len(index), 'title')}{empty}; {index.dtype}, {size:,.0f} MB, "
        f"{duration(time.perf_counter() - began)}",
        *hints(f"next: {next_step(output)}"),
    )


def _check_usage(
    is_change: bool,
    titles: str | None,
    output: str | None,
    changes: dict[str, str | None],
    new: dict[str, Any],
    record: tuple[str, ...],
) -> None:
    """Refuse options that do not go together; ``new`` are those of a new index."""
    if record:
        refuse({"--cosine": new["cosine"] or None}, "--record")
    if (titles, *changes.values()).count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    if changes["sync"] and (changes["add"] or changes["remove"]):
        raise click.UsageError("--sync adds and removes; leave --add and --remove out")
    if is_change:
        if titles is not None:
            raise click.UsageError(
                "to change an index, give its new titles with --sync or --add, not as TITLES"
            )
        given = next((name for name, value in new.items() if value), None)
        if given:
            raise click.UsageError(
                f"--{given.replace('_', '-')} is for a new index; make the index again"
            )
        if not (record or any(changes.values())):
            raise click.UsageError(
                "say what to change: --sync TITLES, --add TITLES, --remove IDS, --record RECORD"
            )
    elif titles is None:
        raise click.UsageError(
            "give MODEL TITLES -o INDEX, or INDEX with --sync, --add, --remove or --record"
        )
    elif output is None:
        raise click.UsageError("name the folder of the index: -o INDEX")


def _built(
    model: str, titles: str, output: str, new: dict[str, Any], looks: "Examinations"
) -> "Index":
    """A new index; ``new`` are the options that were given."""
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.search.index import Index
    from sentemb.search.ranking.opening import load_best
    from sentemb.system.growing import scratch_folder

    ranker = load_best(model, cosine=new["cosine"])
    if isinstance(ranker, PairScorer):
        ranker.saved().towers()  # raises the error for a pair model
    else:
        _check_counts(model, ranker.recipe, looks)
    scratch = scratch_folder(output)
    searched = new["search_fields"] or {}
    ids, texts, fields = read_titles(titles, scratch)
    settings = {"dask": new["dask"], "exact": new["exact"]}
    settings |= {"dtype": new["dtype"] or _DTYPES[0], "scratch": scratch}
    settings["search_fields"] = searched
    with closing(TimeLeft("titles")) as line:
        index = Index.build(ranker, texts, ids, fields, **settings, on_progress=line.show)
    _count(index, looks)
    say_score(index.recipe, note)
    return index


def _check_counts(source: str, recipe: "Recipe", looks: "Examinations") -> None:
    """Refuse a record for a ranking in which clicks of a query do not count."""
    from sentemb.search.ranking.recipe import CLICKS

    if looks.times.size and not recipe.weight(CLICKS):
        raise SentembError(
            f"{source}: clicks of a query do not count in its ranking, so --record says nothing; "
            f"fit a ranker with `sentemb tune {source} DEV --log LOG --record RECORD`"
        )


def _count(index: "Index", looks: "Examinations") -> None:
    """Let the clicks of an index count by how often titles were looked at, if that is known."""
    from dataclasses import replace

    from sentemb.search.index_tuning import serve_clicks

    if looks.times.size:
        was_calibrated = index.confidence is not None
        serve_clicks(index, replace(index.ranker.clicks, examinations=looks))
        if was_calibrated and index.confidence is None:
            note_calibration_gone()


def _changed(
    path: str, changes: dict[str, str | None], output: str, looks: "Examinations"
) -> "Index":
    from sentemb.cli.common import read_ids
    from sentemb.search.index import Index
    from sentemb.system.files import place_name
    from sentemb.system.growing import scratch_folder

    scratch = scratch_folder(output)
    index = Index.open(path, scratch=scratch)
    _check_counts(path, index.recipe, looks)
    add, remove, sync = (changes[name] for name in ("add", "remove", "sync"))
    with closing(TimeLeft("titles")) as line:
        if sync is not None:
            searched = {name.lower() for name in index.search_fields}
            ids, texts, fields = read_titles(sync, scratch, searched)
            if index.fields.types and not fields.types:
                note(f"note: {sync} has no fields: the index has titles only from now on")
            counts = index.sync(texts, ids, line.show, fields)
            line.close()
            note(
                f"{amount(counts.added, 'title')} added, {counts.changed:,} changed, "
                f"{counts.removed:,} removed"
            )
        if remove is not None:
            ids = read_ids(remove)
            rows = index.rows_of(ids)
            known = [id for id, row in zip(ids, rows, strict=True) if row >= 0]
            if gone := [id for id, row in zip(ids, rows, strict=True) if row < 0]:
                count, first = amount(len(gone), "id"), brief(gone[0])
                note(
                    f"{place_name(remove)} has {count} not in the index, passed over; the first: "
                    f"{first}"
                )
            index.remove(known)
            note(f"{amount(len(set(known)), 'title')} removed")
        if add is not None:
            ids, texts, fields = read_titles(add, scratch, index.fields.text_columns)
            index.add(texts, ids, line.show, fields)
            line.close()
            note(f"{amount(len(ids), 'title')} added")
    _count(index, looks)
    return index


def _megabytes(folder: str) -> float:
    from pathlib import Path

    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
