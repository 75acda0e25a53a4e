"""The makers of the papers' sets as commands."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from sentemb.cli import data
from sentemb.cli.options import Command, Written, option, written_option
from sentemb.cli.program import note

if TYPE_CHECKING:
    from sentemb.models.contracts import Embedder


@click.command(cls=Command)
@click.argument("texts", metavar="TEXT...", nargs=-1, required=True, type=click.Path())
@data.folder_option
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
def clauses(
    texts: tuple[str, ...],
    output: str,
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

    TEXT is plain text in UTF-8: a file, unpacked if it ends in .gz, or - for standard input.
    The folder gets pairs.tsv, dev/, test/ and README.md. In dev/ and test/, each query has the
    right clause and four random ones to choose from.

    \b
    python -m lab data clauses novel1.txt novel2.txt.gz -o completion/
    python -m lab data clauses novels.txt -o completion/ --hard --vectors glove.6B.50d.txt
    """
    from lab.sets.clauses import import_clauses

    if hard and vectors is None:
        raise click.UsageError("--hard needs word vectors; name some with --vectors")
    if vectors is not None and not hard:
        raise click.UsageError("--vectors needs --hard")
    counts = import_clauses(
        texts,
        output,
        dev=dev,
        test=test,
        least=least,
        most=most,
        similar=None if vectors is None else _sif_of(vectors),
        seed=seed,
        force=force,
    )
    data.summarise_counts(output, counts)


@click.command(cls=Command)
@click.argument("source", metavar="FILE", type=click.Path())
@written_option(
    Written(can_stream=True),
    "The file to write; - is standard output.",
    takes_force=True,
    metavar="FILE",
)
@option(
    "--positive-from",
    metavar="SCORE",
    type=float,
    help="FILE has scores instead of labels: those of at least SCORE become 1, others 0.",
)
@option(
    "--plain-words",
    is_flag=True,
    help="Write lower-cased words without punctuation, as files of word vectors have them.",
)
def labelled(
    source: str, output: str, positive_from: float | None, plain_words: bool, force: bool
) -> None:
    """Make labelled pairs, lines of label<TAB>text<TAB>text.

    FILE is a file of the Microsoft Research Paraphrase Corpus as it was published, lines of
    label<TAB>text<TAB>text, or, with --positive-from, lines of score<TAB>text<TAB>text; - is
    standard input or standard output. Labels are 1 and 0. Texts keep their capitals and
    punctuation; white space between words becomes one blank.

    \b
    python -m lab data labelled msr_paraphrase_train.txt -o train.tsv --plain-words
    python -m lab data labelled sick/train.tsv -o train.tsv --positive-from 4
    """
    from lab.sets.labelled_files import import_labelled

    pairs = import_labelled(
        source, output, positive_from=positive_from, words=plain_words, force=force
    )
    labels = {"label 1": pairs.n_positive, "label 0": len(pairs) - pairs.n_positive}
    data.summarise_counts(output, {"pairs": len(pairs), **labels})


LAB_COMMANDS = (clauses, labelled)


def register() -> None:
    """Add the commands to those of ``data``."""
    for command in LAB_COMMANDS:
        data.command.add_command(command)


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
