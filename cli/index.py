"""``sentemb index``: titles with their vectors, to be searched."""

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import TimeLeft, duration, note_queries, read_titles
from sentemb.cli.options import Written, dask_option, no_ranker_option, option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.errors import SentembError

if TYPE_CHECKING:
    from sentemb.search.index import Index

_DTYPES = ["float32", "float16", "int8"]


@new_command("index")
@click.argument("source", type=click.Path(), metavar="MODEL|INDEX")
@click.argument("titles", type=click.Path(), required=False)
@option(
    "-o",
    "--output",
    metavar="INDEX",
    type=Written(is_folder=True),
    help="Folder of the index. A changed index is written to its own folder by default.",
)
@option(
    "--dtype",
    type=click.Choice(_DTYPES),
    help="Type of the vectors: float16 takes half the space of float32, int8 a quarter, and its "
    f"queries half the time. [default: {_DTYPES[0]}]",
)
@option("--bm25", is_flag=True, help="Index the words too: BM25 becomes part of the score.")
@no_ranker_option()
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="Click log for --bm25: index each title together with the queries it was clicked for.",
)
@option(
    "--stem",
    metavar="LANGUAGE",
    help="For --bm25: compare stems of words, such as english; needs the package PyStemmer.",
)
@option("--add", metavar="TITLES", type=click.Path(), help="Add the titles of a file to an index.")
@option(
    "--remove",
    metavar="IDS",
    type=click.Path(),
    help="Remove the titles with these ids from an index: a file with one id per line, or with "
    "lines id<TAB>text.",
)
@option("--force", is_flag=True, help="Replace an index that is in the output folder.")
@threads_option()
@dask_option("embeds the titles of a new index")
def command(
    source: str,
    titles: str | None,
    output: str | None,
    dtype: str | None,
    bm25: bool,
    no_ranker: bool,
    log: str | None,
    stem: str | None,
    add: str | None,
    remove: str | None,
    force: bool,
    threads: int | None,
    dask: str | None,
) -> None:
    """Make an index of titles, or change one.

    TITLES is a file with lines id<TAB>text, unpacked if it ends in .gz; - is standard input. The
    index is a folder with titles, vectors and a copy of the model, so `sentemb search` needs
    nothing else. Until it is written, titles and vectors are on its disk, not in memory. Given an
    index, --remove and --add change it, in this order: a title whose text changed is removed and
    added again.

    If `sentemb train` has fitted a ranker in the folder of the model, the index takes it over: its
    weights, its BM25, and the clicks that it reads. --bm25 makes a BM25 with a small weight
    instead; `sentemb tune` then chooses the weights for the index.

    \b
    sentemb index model/ titles.tsv -o index/
    sentemb index index/ --add new.tsv --remove gone.txt
    sentemb search index/ "hotels in shanghai"
    """
    from sentemb.search.index import check_output
    from sentemb.search.index_files import is_index

    began = time.perf_counter()
    new = {"dtype": dtype, "bm25": bm25, "no-ranker": no_ranker, "log": log, "stem": stem}
    new["dask"] = dask
    is_change = add is not None or remove is not None or (titles is None and is_index(source))
    _check_usage(is_change, titles, output, add, remove, new)
    if is_change:
        if not (add or remove):
            raise click.UsageError("say what to change: --add TITLES, --remove IDS")
        # An index may replace itself without --force: that is what was asked for.
        force, output = force or output is None, output or source
        if is_index(source):
            check_output(output, force)
        index = _changed(source, add, remove, output, threads)
    else:
        if is_index(source):
            raise SentembError(f"{source}: is an index; give a model, or add titles with --add")
        assert titles is not None and output is not None
        check_output(output, force)
        index = _built(source, titles, output, new, threads)
    index.save(output, force)
    size = _megabytes(output)
    empty = f"; {index.n_empty:,} without a word that the model knows" if index.n_empty else ""
    note(
        f"{output}: {len(index):,} titles{empty}; {index.dtype}, {size:,.0f} MB, "
        f"{duration(time.perf_counter() - began)}"
    )
    if index.memory is not None:
        note_queries(output, len(index.memory.lists.queries))


def _check_usage(
    is_change: bool,
    titles: str | None,
    output: str | None,
    add: str | None,
    remove: str | None,
    new: dict[str, Any],
) -> None:
    """Refuse options that do not go together; ``new`` are those of a new index."""
    if (titles, new["log"], add, remove).count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    if is_change:
        if titles is not None:
            raise click.UsageError("to change an index, give INDEX --add TITLES --remove IDS")
        given = next((name for name, value in new.items() if value), None)
        if given:
            raise click.UsageError(f"--{given} is for a new index; make the index again")
    elif titles is None:
        raise click.UsageError("give MODEL TITLES -o INDEX, or INDEX with --add or --remove")
    elif output is None:
        raise click.UsageError("name the folder of the index: -o INDEX")
    elif not new["bm25"] and (new["log"] or new["stem"]):
        raise click.UsageError(f"--{'log' if new['log'] else 'stem'} needs --bm25")


def _built(
    model: str, titles: str, output: str, new: dict[str, Any], threads: int | None
) -> "Index":
    """A new index; ``new`` are the arguments of `Index.build` that were given."""
    from sentemb.data.click_log import read_click_log
    from sentemb.ranking.opening import load_best
    from sentemb.ranking.ranker import HybridRanker
    from sentemb.search.index import Index
    from sentemb.system.growing import scratch_folder

    best: Any = load_best(model, threads, not (new["bm25"] or new["no-ranker"]))
    ranker = best if isinstance(best, HybridRanker) else None
    embedder = best if ranker is None else ranker.model
    embedder.saved().towers()  # refuses a pair model before the titles are read
    scratch = scratch_folder(output)
    ids, texts = read_titles(titles, scratch)
    settings = {name: new[name] for name in ("bm25", "log", "stem", "dask")}
    settings |= {"dtype": new["dtype"] or _DTYPES[0], "ranker": ranker}
    if new["log"] is not None:
        settings["log"] = read_click_log(new["log"])
    settings |= {"threads": threads, "scratch": scratch}
    with closing(TimeLeft("titles")) as line:
        index = Index.build(embedder, texts, ids, **settings, on_progress=line.show)
    if ranker is not None:
        note(f"ranker: {ranker.recipe}")
    return index


def _changed(
    path: str, add: str | None, remove: str | None, output: str, threads: int | None
) -> "Index":
    """The index in folder ``path`` with some titles more or fewer."""
    from sentemb.cli.common import read_ids
    from sentemb.search.index import Index
    from sentemb.system.growing import scratch_folder

    scratch = scratch_folder(output)
    index = Index.open(path, threads, scratch)
    if remove is not None:
        index.remove(read_ids(remove))
    if add is not None:
        ids, texts = read_titles(add, scratch)
        with closing(TimeLeft("titles")) as line:
            index.add(texts, ids, line.show)
    return index


def _megabytes(folder: str) -> float:
    from pathlib import Path

    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file()) / 1e6
