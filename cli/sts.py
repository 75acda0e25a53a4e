"""``sentemb sts``: correlation of a model's cosines with similarity scores given by people."""

import json
import math
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import click

from sentemb.cli.options import command as new_command
from sentemb.cli.options import given, json_option, markdown_option, option_of, threads_option
from sentemb.cli.program import note
from sentemb.models.vectors.vector_options import COMPONENTS, FIT_U, REMOVAL, SIDES_OPTION

_HEAD = ("set", "pairs", "Pearson", "Spearman")


@new_command("sts")
@click.argument("model", type=click.Path())
@click.argument("files", metavar="FILE_OR_FOLDER...", nargs=-1, required=True, type=click.Path())
@option_of(FIT_U)
@option_of(COMPONENTS)
@option_of(REMOVAL)
@option_of(SIDES_OPTION)
@markdown_option("the table")
@json_option(instead_of="a table")
@threads_option()
def command(
    model: str, files: tuple[str, ...], markdown: bool, as_json: bool, **options: Any
) -> None:
    """Correlate a model's cosines with similarity scores.

    A file holds lines of score<TAB>text<TAB>text. In a folder, all *.tsv and *.tsv.gz files are
    read, sub-folders included. Prints Pearson's and Spearman's correlation × 100 for each file, the
    mean of each folder, and the mean of the folders.

    \b
    sentemb sts model/ sts/2012 sts/2013 sick/test.tsv
    sentemb sts weighted/ sts/ --fit-u each-file --components 5
    """
    from sentemb.data.lines import write_lines
    from sentemb.data.similarity_set import find_similarity_sets
    from sentemb.evaluation.sts import sts
    from sentemb.models.sentence_encoder import SentenceEncoder

    settings = given(options)
    fit_u = settings.get("fit_u", FIT_U.default)
    unused = [name for name in settings if name != "fit_u"]
    if fit_u == "model" and unused:
        raise click.UsageError(f"--{unused[0]} needs --fit-u each-file or all")
    if as_json and markdown:
        raise click.UsageError("give --json or --markdown, not both")
    sets, skipped = find_similarity_sets(files)
    for message in skipped:
        note(message)
    result = sts(SentenceEncoder.from_pretrained(model), sets, **settings)
    _note_unknown(result.sets)
    if as_json:
        write_lines("-", [json.dumps({"fit_u": fit_u, **_as_dict(result)}, indent=1)])
    else:
        write_lines("-", _table(result, markdown))


def _note_unknown(sets: Sequence[Any]) -> None:
    total = sum(dataset.unknown for dataset in sets)
    if total:
        worst = max(sets, key=lambda dataset: dataset.unknown)
        texts = 2 * sum(dataset.pairs for dataset in sets)
        where = f", {worst.unknown:,} of them in {worst.name}" if len(sets) > 1 else ""
        note(f"{total:,} of {texts:,} texts have no word that the model knows{where}")
    for dataset in sets:
        if math.isnan(dataset.pearson):
            note(f"{dataset.name}: all cosines are equal; the correlation is undefined")


def _as_dict(result: Any) -> dict[str, Any]:
    return {
        "sets": [_record(row) for row in result.sets],
        "folders": [_record(row) for row in result.folders],
        "mean": _record(result.mean),
    }


def _record(row: Any) -> dict[str, Any]:
    # JSON has no NaN.
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in asdict(row).items()
    }


def _table(result: Any, markdown: bool) -> Iterator[str]:
    from sentemb.system.tables import aligned, markdown_table, markdown_text

    prefix = _common([score.name for score in result.sets])
    rows = [list(_HEAD), *(_row(score.name.removeprefix(prefix), score) for score in result.sets)]
    if len(result.folders) > 1:
        names = (score.name.removeprefix(prefix) or "." for score in result.folders)
        rows += (
            _row(f"mean of {name}", score)
            for name, score in zip(names, result.folders, strict=True)
        )
    if len(result.sets) > 1:
        rows.append(_row("mean", result.mean))
    if markdown:
        yield from markdown_table([list(map(markdown_text, row)) for row in rows])
    else:
        yield from aligned(rows)


def _row(name: str, result: Any) -> list[str]:
    figures = (
        "-" if math.isnan(r) else f"{100 * r:.1f}" for r in (result.pearson, result.spearman)
    )
    return [name, f"{result.pairs:,}", *figures]


def _common(names: Sequence[str]) -> str:
    """The path to the folders of all sets, with the ``/`` at its end; empty if there is none."""
    parents = {posixpath.dirname(posixpath.dirname(name)) for name in names}
    try:
        common = posixpath.commonpath(parents)
    except ValueError:  # some paths are absolute and others are not
        common = ""
    return common if common.endswith("/") or not common else f"{common}/"
