"""``sentemb data``: click logs, judged sets and labelled pairs from texts and public data."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from sentemb.cli import Group
from sentemb.cli.options import Command, Written, option
from sentemb.cli.program import note

if TYPE_CHECKING:
    from sentemb.models.contracts import Embedder


@click.group(cls=Group)
def command() -> None:
    """Turn texts and public data into click logs, judged and labelled sets."""


@command.command(cls=Command)
@click.argument("source", metavar="SRC", type=click.Path())
@click.argument("out", metavar="OUT", type=Written(is_folder=True))
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

    _print_counts(import_onet(source, out, dev=dev, test=test, seed=seed, force=force))


@command.command(cls=Command)
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True, type=click.Path())
@click.argument("out", metavar="OUT", type=Written(is_folder=True))
@option("--dev", default=2000, show_default=True, help="Number of dev queries.")
@option("--test", default=4000, show_default=True, help="Number of test queries.")
@option("--least", default=8, show_default=True, help="Fewest words of a clause.")
@option("--most", default=28, show_default=True, help="Most words of a clause.")
@option(
    "--hard",
    is_flag=True,
    help="Also write dev_hard/ and test_hard/, in which the wrong clauses are similar to the right "
    "one. Needs --vectors.",
)
@option(
    "--vectors",
    metavar="VECTORS",
    type=click.Path(),
    help="Word vectors for --hard: a file or folder that sentemb vectors can read.",
)
@option("--seed", default=0, show_default=True, help="Random seed of the split and the candidates.")
@option("--force", is_flag=True, help="Write into a folder that already has files.")
def clauses(
    texts: tuple[str, ...],
    out: str,
    dev: int,
    test: int,
    least: int,
    most: int,
    hard: bool,
    vectors: str | None,
    seed: int,
    force: bool,
) -> None:
    """Make a completion set: the first clause of a sentence, then its second.

    A ranker has to find the clause that completes a sentence. The set is made from sentences with
    exactly one comma and no semicolon, colon, dash, bracket or parenthesis. A sentence ends at .,
    !, ? or … before white space, unless a lower-case letter follows, or at an empty line. No clause
    occurs twice.

    TEXT is plain text in UTF-8: a file, unpacked if it ends in .gz, or - for standard input. OUT is
    the folder to write pairs.tsv, dev/, test/ and README.md to. In dev/ and test/, each query has
    the right clause and four random ones to choose from.

    \b
    sentemb data clauses novel1.txt novel2.txt.gz completion/
    sentemb data clauses novels.txt completion/ --hard --vectors glove.6B.50d.txt
    """
    from sentemb.data.importers.clauses import import_clauses

    if hard and vectors is None:
        raise click.UsageError("--hard needs word vectors; name some with --vectors")
    if vectors is not None and not hard:
        raise click.UsageError("--vectors needs --hard")
    counts = import_clauses(
        texts,
        out,
        dev=dev,
        test=test,
        least=least,
        most=most,
        similar=None if vectors is None else _sif_of(vectors),
        seed=seed,
        force=force,
    )
    _print_counts(counts)


@command.command(cls=Command)
@click.argument("source", metavar="FILE", type=click.Path())
@click.argument("out", metavar="OUT", type=Written(can_stream=True))
@option(
    "--positive-from",
    metavar="SCORE",
    type=float,
    help="FILE has scores instead of labels: those of at least SCORE become 1, others 0.",
)
@option(
    "--words",
    is_flag=True,
    help="Write lower-cased words without punctuation, as files of word vectors have them.",
)
@option("--force", is_flag=True, help="Replace OUT if it exists.")
def labelled(source: str, out: str, positive_from: float | None, words: bool, force: bool) -> None:
    """Make labelled pairs, lines of label<TAB>text<TAB>text.

    FILE is a file of the Microsoft Research Paraphrase Corpus as it was published, lines of
    label<TAB>text<TAB>text, or, with --positive-from, lines of score<TAB>text<TAB>text; - is
    standard input or standard output. Labels are 1 and 0. Texts keep their capitals and
    punctuation; white space between words becomes one blank.

    \b
    sentemb data labelled msr_paraphrase_train.txt train.tsv --words
    sentemb data labelled sick/train.tsv train.tsv --positive-from 4
    """
    from sentemb.data.importers.labelled_files import import_labelled

    pairs = import_labelled(source, out, positive_from=positive_from, words=words, force=force)
    if out == "-":
        note(f"{len(pairs)} pairs, {pairs.n_positive} with label 1")
        return
    labels = {"label 1": pairs.n_positive, "label 0": len(pairs) - pairs.n_positive}
    _print_counts({"pairs": len(pairs), **labels})


@command.command(cls=Command)
@click.argument("source", metavar="SRC", type=click.Path())
@click.argument("out", metavar="OUT", type=Written(is_folder=True))
@option("--words", default=64, show_default=True, help="Words of a document without a title.")
@option("--force", is_flag=True, help="Write into a folder that already has files.")
def beir(source: str, out: str, words: int, force: bool) -> None:
    """Import a set in the format of BEIR.

    A title is that of a document or, without one, the first words of its text.

    SRC is a folder with corpus.jsonl, queries.jsonl and qrels/. OUT is the folder to write
    titles.tsv, README.md, pairs.tsv (from qrels/train.tsv), and dev and test to: judged sets where
    judgments differ within a query, otherwise the held-out clicks dev.tsv and test.tsv.
    """
    from sentemb.data.importers.beir import import_beir

    _print_counts(import_beir(source, out, words=words, force=force))


def _print_counts(counts: dict[str, int]) -> None:
    for what, count in counts.items():
        click.echo(f"{what.replace('_', ' ')}\t{count}")


def _sif_of(path: str) -> Callable[[Sequence[str]], "Embedder"]:
    """A function that fits SIF to texts, with the word vectors of ``path``."""

    def fit(texts: Sequence[str]) -> "Embedder":
        from sentemb.models.vectors.reading import read_word_vectors
        from sentemb.models.vectors.sif import SIF
        from sentemb.text.batch import tokenize
        from sentemb.text.words import plain_words

        words = tokenize(texts, plain_words).words
        vectors = read_word_vectors(path, words=words, note=note)
        return SIF(vectors, p="texts").fit(texts)

    return fit
