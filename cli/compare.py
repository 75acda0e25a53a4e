"""``sentemb compare``: Table IV of the paper on your own data."""

import json
import math
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from sentemb.cli.options import (
    Names,
    Written,
    cosine_option,
    json_option,
    markdown_option,
    option,
    p_option,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.options import compare_with as compare_with_option
from sentemb.cli.program import note
from sentemb.system.hyperparameters import WORDS

REFERENCE = "lstm-96"
_LIST = "list"


def _minutes(ctx: Any, parameter: Any, value: float | None) -> float | None:
    # click lets NaN through, as it is not below 0.
    if value is not None and math.isnan(value):
        raise click.BadParameter("give a number of minutes")
    return value


@new_command("compare")
@click.argument("data_dir", type=click.Path())
@option(
    "-o", "--output", type=Written(is_folder=True), help="Folder in which all results are kept."
)
@option(
    "--models",
    type=Names(),
    metavar="ROWS",
    help=f"Rows of the table, separated by commas; {_LIST} prints all. [default: all that can run, "
    "but not those of pair models]",
)
@option(
    "--vectors",
    type=click.Path(),
    help="Word vectors for the rows from average to bm25+sif: a folder written by `sentemb vectors "
    "convert`, or a file in a GloVe or word2vec format.",
    group=WORDS,
)
@p_option()
@compare_with_option(
    "Add a trained model as a row with the name of its folder; may be repeated. A folder with a "
    "ranker adds the ranker and a row for each of its parts.",
    multiple=True,
)
@option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Runs with different random seeds of each row that depends on one.",
)
@option(
    "--reference",
    metavar="ROW",
    help=f"Row that the others are tested against. [default: {REFERENCE}, if it is in the table]",
)
@option(
    "--budget",
    type=click.FloatRange(0),
    callback=_minutes,
    metavar="MINUTES",
    help="Start no new run after this many minutes; repeat the command to continue.",
)
@threads_option()
@cosine_option()
@option("--keep-models", is_flag=True, help="Also keep the trained models.")
@option("--force", is_flag=True, help="Discard results on other data or with other settings.")
@markdown_option("the table")
@json_option(instead_of="a table")
def command(
    data_dir: str,
    models: list[str] | None,
    vectors: str | None,
    p: str | None,
    compare_with: tuple[str, ...],
    reference: str | None,
    budget: float | None,
    cosine: bool,
    markdown: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Compare models and baselines on a click log.

    DATA_DIR holds pairs.tsv (or pairs.tsv.gz) and the judged sets dev/ and test/. Each row is
    trained with every setting of a small grid; the setting that is best on dev is measured on test,
    with several seeds. All results are kept: the same command continues where it was stopped.
    The rows of pair models (wordembed to arc2-hard) run only if --models names them: each is
    trained four times, with fewer feature maps than `sentemb train` gives it.
    Without a log only rows that need no training can run, such as the models of --compare-with and
    the rows of word vectors, whose components then come from the texts of dev/ and test/.

    \b
    sentemb compare data/ -o comparison/ --models bm25-stem,dssm,lstm-96,bilstm-96
    sentemb compare data/ -o zero-shot/ --models bm25-stem,sif,bm25+sif --vectors glove.6B.100d.txt
    sentemb compare data/ --models list
    """
    from sentemb.comparison.data_folder import read_data
    from sentemb.comparison.rows import ROWS, ModelRow, RankerRow, rows_of
    from sentemb.comparison.runner import Comparison

    if p is not None and vectors is None:
        raise click.UsageError("--p needs --vectors")
    if cosine and not compare_with:
        raise click.UsageError("--cosine needs --compare-with")
    if models == [_LIST]:
        _show_rows(_with_vectors(list(ROWS.values()), vectors, p))
        return
    if settings["output"] is None:
        raise click.UsageError("give the folder of the results: -o OUT")
    if as_json and markdown:
        raise click.UsageError("give --json or --markdown, not both")
    rows = rows_of(models)
    data = read_data(data_dir)
    rows = _with_vectors(rows, vectors, p)
    for model in compare_with:
        rows += [ModelRow.of(model)] if cosine else RankerRow.all_of(model)
    names = [row.name for row in rows]
    reference = _checked_reference(reference, names)
    if data.log is None:
        note(f"{data_dir}: no pairs.tsv; only rows without training can run")
    comparison = Comparison(data, settings.pop("output"), rows, note=note, **settings)
    _run(comparison, budget)
    _show(comparison, names, reference, markdown, as_json)


def _with_vectors(rows: list[Any], vectors: str | None, p: str | None) -> list[Any]:
    if vectors is None:
        return rows
    from sentemb.comparison.vector_rows import WordSource, with_vectors
    from sentemb.models.vectors.reading import read_word_vectors
    from sentemb.models.vectors.vector_options import P_SOURCES

    read = read_word_vectors(vectors, note=note)
    return with_vectors(rows, WordSource.of(read, P_SOURCES[0] if p is None else p))


def _checked_reference(reference: str | None, names: Sequence[str]) -> str | None:
    from sentemb.comparison.rows import some_of
    from sentemb.errors import SentembError
    from sentemb.system.bounds import plain

    if reference is None and REFERENCE in names:
        return REFERENCE
    if reference is not None and reference not in names:
        raise SentembError(
            f"the reference {plain(reference)} is not among the rows; choose from {some_of(names)}"
        )
    return reference


def _run(comparison: Any, minutes: float | None) -> None:
    from sentemb.training.stopping import Interrupted

    try:
        comparison.run(None if minutes is None else 60 * minutes)
    except (Interrupted, KeyboardInterrupt) as stopped:
        note("stopped; the same command continues with the run that was interrupted")
        sys.exit(128 + getattr(stopped, "signal", signal.SIGINT))


def _show(
    comparison: Any, names: Sequence[str], reference: str | None, markdown: bool, as_json: bool
) -> None:
    from sentemb.comparison.table import table_of
    from sentemb.errors import SentembError

    lines = table_of(comparison, names, reference)
    if as_json:
        table = {
            "reference": reference,
            "queries": comparison.n_queries,
            "rows": [asdict(line) for line in lines],
            "missing": comparison.reasons,
        }
        click.echo(json.dumps(table, indent=1))
    else:
        _show_table(lines, reference, comparison, markdown)
    if comparison.failed and not lines:
        raise SentembError(f"no row could be measured; {comparison.failed[0]} failed, see above")


def _show_rows(rows: Sequence[Any]) -> None:
    from sentemb.comparison.row import apart
    from sentemb.errors import SentembError
    from sentemb.system.tables import aligned

    cells = [["row", "kind", "settings", "tried on dev"]]
    for row in rows:
        fixed = (f"{key} {_shown(value)}" for key, value in row.fixed.items() if key != "name")
        try:
            points = row.points()
            tried = "; ".join(filter(None, (apart(point, points) for point in points)))
        except SentembError as error:
            tried = f"cannot run: {error}"
        cells.append([row.name, row.kind, ", ".join(fixed), tried])
    click.echo("\n".join(aligned(cells, left=4)))


def _shown(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _show_table(
    lines: Sequence[Any], reference: str | None, comparison: Any, markdown: bool
) -> None:
    from sentemb.comparison.table import cells_of, legend
    from sentemb.system.tables import aligned, markdown_table, markdown_text

    # A terminal may be limited to ASCII.
    plus_minus = "±" if markdown else "+-"
    cells = cells_of(lines, reference, plus_minus)
    legend_lines = legend(lines, reference, comparison.n_queries, plus_minus)
    missing = [f"{name}: {reason}" for name, reason in comparison.reasons.items()]
    if markdown:
        table = markdown_table([[markdown_text(cell) for cell in row] for row in cells])
        text = [*table, "", markdown_text(" ".join(legend_lines))]
        if missing:
            text += ["", "Missing:", "", *(f"- {markdown_text(line)}" for line in missing)]
    else:
        text = [*aligned(cells), "", *legend_lines, *(f"missing: {line}" for line in missing)]
    click.echo("\n".join(text))
