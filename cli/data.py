"""``sentemb data``: click logs and judged sets from public data."""

import click

from sentemb.cli import Group
from sentemb.cli.options import Command, Written, option, written_option
from sentemb.cli.program import summarise

folder_option = written_option(Written(is_folder=True), "The folder to write.", metavar="FOLDER")


@click.group(cls=Group)
def command() -> None:
    """Turn public data into click logs and judged sets."""


@command.command(cls=Command)
@click.argument("source", metavar="SRC", type=click.Path())
@folder_option
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
def onet(source: str, output: str, dev: float, test: float, seed: int, force: bool) -> None:
    """Import the O*NET database of occupations.

    The queries are what people call their jobs, the clicked titles the official job titles.

    SRC is the unpacked folder of text files from https://www.onetcenter.org/database.html. The
    folder gets pairs.tsv, dev/, test/ and README.md.
    """
    from sentemb.data.importers.onet import import_onet

    summarise_counts(
        output, import_onet(source, output, dev=dev, test=test, seed=seed, force=force)
    )


@command.command(cls=Command)
@click.argument("source", metavar="SRC", type=click.Path())
@folder_option
@option(
    "--title-words",
    default=64,
    show_default=True,
    help="Words that are the title of a document without one.",
)
def beir(source: str, output: str, title_words: int, force: bool) -> None:
    """Import a set in the format of BEIR.

    A title is that of a document or, without one, the first words of its text.

    SRC is a folder with corpus.jsonl, queries.jsonl and qrels/. The folder gets
    titles.tsv, README.md, pairs.tsv (from qrels/train.tsv), and dev and test: the queries whose
    documents have different scores are judged sets, those with right documents only the held-out
    clicks dev.tsv and test.tsv.
    """
    from sentemb.data.importers.beir import import_beir

    summarise_counts(output, import_beir(source, output, words=title_words, force=force))


def summarise_counts(output: str, counts: dict[str, int]) -> None:
    """Print where the output is and its counts."""
    lines = (f"{name.replace('_', ' ')}: {count:,}" for name, count in counts.items())
    summarise(output, counts, *lines)
