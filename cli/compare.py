"""``sentemb compare``: Table IV of the paper on one's own data."""

import json
import sys

import click

from sentemb.errors import SentembError

REFERENCE = "lstm-96"


def _names(ctx, parameter, value):
    return None if value is None else [name.strip() for name in value.split(",")]


def _list_rows(ctx, parameter, value):
    if value:
        from sentemb.cli.tables import aligned
        from sentemb.comparison.rows import ROWS

        settings = {
            row.name: ", ".join(f"{key} {value}" for key, value in row.settings.items())
            for row in ROWS.values()
        }
        rows = [[row.name, row.kind, settings[row.name]] for row in ROWS.values()]
        click.echo("\n".join(aligned([["row", "kind", "settings"], *rows], left=3)))
        ctx.exit()


@click.command("compare")
@click.argument("data", type=click.Path())
@click.option("-o", "--output", required=True, type=click.Path(), help="Folder for all results.")
@click.option(
    "--models", callback=_names, metavar="NAMES", help="Rows, with commas between. [default: all]"
)
@click.option(
    "--list",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_rows,
    help="List the rows and end.",
)
@click.option(
    "--with-model",
    multiple=True,
    type=click.Path(),
    metavar="MODEL",
    help="A trained model as a row of its own; may be given more than once.",
)
@click.option(
    "--seeds",
    type=click.IntRange(1, 100),
    default=3,
    show_default=True,
    help="Runs of every row that a seed changes.",
)
@click.option(
    "--reference",
    metavar="NAME",
    help=f"The row that all are tested against. [default: {REFERENCE}]",
)
@click.option(
    "--budget", type=click.FloatRange(0), metavar="MINUTES", help="Begin no row later than this."
)
@click.option("--threads", type=int, help="For training. [default: all]")
@click.option("--force", is_flag=True, help="Throw away results on other data.")
@click.option("--markdown", is_flag=True, help="Print a Markdown table.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def command(
    data,
    output,
    models,
    with_model,
    seeds,
    reference,
    budget,
    threads,
    force,
    markdown,
    as_json,
):
    """Compare models and baselines on a click log.

    DATA is a folder with pairs.tsv and the judged sets dev/ and test/. Each row is trained with the
    settings of a small grid; the best on dev is measured on test, with several seeds. Results are
    kept in the output folder: the same command goes on where it was stopped. Without pairs.tsv only
    rows that need no training run.

    \b
    sentemb compare data/ -o comparison/ --models bm25-stem,dssm,lstm-96,bilstm-96
    """
    from sentemb.cli.tables import aligned, markdown_table, markdown_text
    from sentemb.comparison.rows import rows_of
    from sentemb.comparison.runner import Comparison, read_data
    from sentemb.comparison.table import cells_of, legend, table_of
    from sentemb.training.trainer import Interrupted

    rows = rows_of(models)
    if as_json and markdown:
        raise click.UsageError("--json and --markdown are two tables; choose one")
    names = [row.name for row in rows]
    own = [_name_of(path) for path in with_model]
    if reference is not None and reference not in names + own:
        raise SentembError(
            f"the reference {reference} is not among the rows; choose from {', '.join(names + own)}"
        )
    comparison = Comparison(
        read_data(data), output, seeds, threads, force, note=lambda text: click.echo(text, err=True)
    )
    try:
        comparison.run(rows, with_model, None if budget is None else 60 * budget)
    except (Interrupted, KeyboardInterrupt):
        click.echo("stopped; the same command goes on with what is not measured yet", err=True)
        sys.exit(130)
    measured = [name for name in names + own if comparison.of(name)]
    if reference is None and REFERENCE in measured:
        reference = REFERENCE
    lines = table_of(comparison, measured, reference)
    if as_json:
        made = {
            "reference": reference,
            "rows": [line.as_dict() for line in lines],
            "left_out": comparison.reasons,
        }
        click.echo(json.dumps(made, indent=1))
        return
    cells = cells_of(lines, reference)
    if markdown:
        cells[1:] = [[markdown_text(row[0]), *row[1:]] for row in cells[1:]]
    click.echo("\n".join((markdown_table if markdown else aligned)(cells)))
    click.echo()
    click.echo(legend(lines, reference, comparison.n_queries))
    for name, reason in comparison.reasons.items():
        click.echo(f"left out: {name}: {reason}")


def _name_of(path):
    from pathlib import Path

    return Path(path).resolve().name
