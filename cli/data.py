"""``sentemb data``: click logs and judged sets from public data."""

import click


@click.group()
def command():
    """Turn public data into click logs and judged sets."""


@command.command()
@click.argument("source", metavar="SRC")
@click.argument("out", metavar="OUT")
@click.option("--dev", default=1500.0, help="Dev queries: a number, or a share below 1.  [1500]")
@click.option("--test", default=3000.0, help="Test queries: a number, or a share below 1.  [3000]")
@click.option("--seed", default=0, show_default=True, help="Of split and random candidates.")
@click.option("--force", is_flag=True, help="Write into a folder that has files already.")
def onet(source, out, dev, test, seed, force):
    """Import the O*NET database: what people call a job -> the official title.

    SRC is the unpacked folder of text files from https://www.onetcenter.org/database.html, OUT the
    folder that gets pairs.tsv, dev/, test/ and README.md.
    """
    from sentemb.data.importers.onet import import_onet

    counts = import_onet(source, out, dev=dev, test=test, seed=seed, force=force)
    for what, count in counts.items():
        click.echo(f"{what.replace('_', ' ')}\t{count}")
