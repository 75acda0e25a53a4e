"""``sentemb data``: click logs and judged sets from public data."""

import click

from sentemb.cli.options import Command, option


@click.group()
def command() -> None:
    """Turn public data into click logs and judged sets."""


@command.command(cls=Command)
@click.argument("source", metavar="SRC")
@click.argument("out", metavar="OUT")
@option(
    "--dev",
    default=1500.0,
    help="Number of dev queries, or their share if below 1. [default: 1500]",
)
@option(
    "--test",
    default=3000.0,
    help="Number of test queries, or their share if below 1. [default: 3000]",
)
@option(
    "--seed",
    default=0,
    show_default=True,
    help="Random seed of the split and of the random candidates.",
)
@option("--force", is_flag=True, help="Write into a folder that already has files.")
def onet(source: str, out: str, dev: float, test: float, seed: int, force: bool) -> None:
    """Import the O*NET database of occupations.

    The queries are what people call their jobs, the clicked titles the official job titles.

    SRC is the unpacked folder of text files from https://www.onetcenter.org/database.html. OUT is
    the folder to write pairs.tsv, dev/, test/ and README.md to.
    """
    from sentemb.data.importers.onet import import_onet

    counts = import_onet(source, out, dev=dev, test=test, seed=seed, force=force)
    for what, count in counts.items():
        click.echo(f"{what.replace('_', ' ')}\t{count}")
