"""``sentemb compare``: Table IV of the paper on one's own data."""

import json
import math
import signal
import sys
from dataclasses import asdict

import click

from sentemb.cli.program import note

REFERENCE = "lstm-96"
_LIST = "list"


def _minutes(ctx, parameter, value):
    # click lets NaN through, as it is not below 0.
    if value is not None and math.isnan(value):
        raise click.BadParameter("give a number of minutes")
    return value


def _names(ctx, parameter, value):
    return None if value is None else [name.strip() for name in value.split(",")]


@click.command("compare")
@click.argument("data_dir", type=click.Path())
@click.option("-o", "--output", type=click.Path(), help="Folder where all results are kept.")
@click.option(
    "--models",
    callback=_names,
    metavar="ROWS",
    help=f"Rows, with commas between; {_LIST} shows them all. [default: all that can run]",
)
@click.option(
    "--with-model",
    multiple=True,
    type=click.Path(),
    metavar="MODEL_DIR",
    help="A trained model as a row of its own, named as its folder; may be given more than once.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Trainings of each row that depends on chance.",
)
@click.option(
    "--reference",
    metavar="ROW",
    help=f"What all others are compared with. [default: {REFERENCE}, if it is among the rows]",
)
@click.option(
    "--budget",
    type=click.FloatRange(0),
    callback=_minutes,
    metavar="MINUTES",
    help="Begin no training after that; the same command goes on later.",
)
@click.option("--threads", type=int, help="NDCG is the same for any number. [default: all]")
@click.option("--keep-models", is_flag=True, help="Keep the trained models in the folder as well.")
@click.option(
    "--force", is_flag=True, help="Throw away results on other data or with other settings."
)
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of a table.")
def command(
    data_dir,
    output,
    models,
    with_model,
    seeds,
    reference,
    budget,
    threads,
    keep_models,
    force,
    markdown,
    as_json,
):
    """Compare models and baselines on a click log.

    DATA_DIR has pairs.tsv (or pairs.tsv.gz) and the judged sets dev/ and test/. Each row is trained
    with the settings of a small grid; those best on dev are measured on test, with several seeds.
    Results are kept: the same command goes on where it was stopped. Without a log only rows that
    need no training run, such as the models given by --with-model.

    \b
    sentemb compare data/ -o comparison/ --models bm25-stem,dssm,lstm-96,bilstm-96
    sentemb compare data/ --models list
    """
    from sentemb.bounds import plain
    from sentemb.comparison.data import read_data
    from sentemb.comparison.rows import ModelRow, rows_of, some_of
    from sentemb.comparison.runner import Comparison
    from sentemb.comparison.table import table_of
    from sentemb.errors import SentembError
    from sentemb.training.stopping import Interrupted

    if models == [_LIST]:
        _show_rows(rows_of())
        return
    if output is None:
        raise click.UsageError("give the folder for the results: -o OUT")
    if as_json and markdown:
        raise click.UsageError("--json and --markdown are two tables; choose one")
    rows = rows_of(models)
    data = read_data(data_dir)
    rows += map(ModelRow.of, with_model)
    names = [row.name for row in rows]
    if reference is None and REFERENCE in names:
        reference = REFERENCE
    if reference not in (None, *names):
        raise SentembError(
            f"the reference {plain(reference)} is not among the rows; choose from {some_of(names)}"
        )
    if data.log is None:
        note(f"{data_dir}: no pairs.tsv; only rows without training can run")
    comparison = Comparison(
        data,
        output,
        rows,
        seeds=seeds,
        threads=threads,
        keep_models=keep_models,
        force=force,
        note=note,
    )
    try:
        comparison.run(None if budget is None else 60 * budget)
    except (Interrupted, KeyboardInterrupt) as stopped:
        note("stopped; the same command continues with the run that was under way")
        sys.exit(128 + getattr(stopped, "signal", signal.SIGINT))
    lines = table_of(comparison, names, reference)
    if as_json:
        made = {
            "reference": reference,
            "queries": comparison.n_queries,
            "rows": [asdict(line) for line in lines],
            "missing": comparison.reasons,
        }
        click.echo(json.dumps(made, indent=1))
    else:
        _show_table(lines, reference, comparison, markdown)
    if comparison.failed and not lines:
        raise SentembError(f"no row could be measured; {comparison.failed[0]} failed, see above")


def _show_rows(rows):
    from sentemb.cli.tables import aligned
    from sentemb.comparison.rows import apart
    from sentemb.errors import SentembError

    cells = [["row", "kind", "settings", "tried on dev"]]
    for row in rows:
        fixed = (f"{key} {value}" for key, value in row.fixed.items() if key != "name")
        try:
            points = row.points()
            tried = "; ".join(filter(None, (apart(point, points) for point in points)))
        except SentembError as error:
            tried = f"cannot run: {error}"
        cells.append([row.name, row.kind, ", ".join(fixed), tried])
    click.echo("\n".join(aligned(cells, left=4)))


def _show_table(lines, reference, comparison, markdown):
    from sentemb.cli.tables import aligned, markdown_table, markdown_text
    from sentemb.comparison.table import cells_of, legend

    # A terminal may know no more than ASCII.
    plus_minus = "±" if markdown else "+-"
    cells = cells_of(lines, reference, plus_minus)
    said = legend(lines, reference, comparison.n_queries, plus_minus)
    missing = [f"{name}: {reason}" for name, reason in comparison.reasons.items()]
    if markdown:
        table = markdown_table([[markdown_text(cell) for cell in row] for row in cells])
        text = [*table, "", markdown_text(" ".join(said))]
        if missing:
            text += ["", "Missing:", "", *(f"- {markdown_text(line)}" for line in missing)]
    else:
        text = [*aligned(cells), "", *said, *(f"missing: {line}" for line in missing)]
    click.echo("\n".join(text))
