"""``sentemb vectors``: convert, show, train and teach word vectors."""

from typing import Any

import click

from sentemb.cli import Group
from sentemb.cli.options import (
    Command,
    Text,
    Written,
    given,
    json_option,
    option,
    option_of,
    written_option,
)
from sentemb.cli.program import note, summarise
from sentemb.models.vectors.skip_gram import SETTINGS
from sentemb.models.vectors.vector_options import TAUGHT_DIM
from sentemb.system.amounts import amount
from sentemb.system.terminal import ProgressLine

# Words that are printed of a file as a whole.
_FIRST_WORDS = 10


@click.group(cls=Group)
def command() -> None:
    """Convert, show, train and teach word vectors."""


@command.command(cls=Command)
@click.argument("file", type=click.Path())
@written_option(Written(is_folder=True), "Folder of the word vectors.", metavar="VECTORS")
@option(
    "--words",
    type=click.IntRange(min=1),
    help="Read only this many words, from the start. [default: all]",
)
@option(
    "--dtype",
    type=click.Choice(["float32", "float16"]),
    default="float32",
    show_default=True,
    help="Type of the stored numbers; float16 halves the size and keeps about three digits.",
)
@option(
    "--counts",
    type=click.Path(),
    metavar="COUNTS",
    help="File with one word and its count per line. Words not in it get 0.",
)
@option("--source", type=Text(), help="Origin of the vectors; stored with them.")
@option("--licence", type=Text(), help="Licence of the vectors; stored with them.")
def convert(
    file: str,
    output: str,
    words: int | None,
    dtype: str,
    counts: str | None,
    source: str | None,
    licence: str | None,
    force: bool,
) -> None:
    """Convert word vectors to a folder that opens at once.

    FILE is GloVe text (one word and its numbers per line), word2vec text (the same after a first
    line "words dimensions"), word2vec binary, or a folder of word vectors, whose checksum is
    verified. The contents tell these apart, and whether a file is packed with gzip; - is standard
    input. Words that are empty or not UTF-8 are left out and counted.

    \b
    sentemb vectors convert glove.6B.50d.txt -o glove-50/ --licence PDDL-1.0
    """
    from dataclasses import replace

    from sentemb.models.vectors.counts import counts_of, read_counts
    from sentemb.models.vectors.reading import read_word_vectors
    from sentemb.models.vectors.writing import check_output, write_word_vectors

    check_output(output, force)
    known = None if counts is None else read_counts(counts)
    vectors = read_word_vectors(file, limit=words, verify=True, note=_note)
    if known is not None:
        vectors = replace(vectors, counts=counts_of(vectors.words, known, str(counts)))
        n_counted = int((vectors.counts > 0).sum()) if vectors.counts is not None else 0
        _note(f"{counts}: {n_counted:,} of {len(vectors):,} words have a count")
    source_fields = {"source": source, "licence": licence}
    vectors = replace(vectors, **given(source_fields))
    write_word_vectors(vectors, output, force=force, dtype=dtype)
    _summarise(output, vectors, dtype, "titles.txt")


@command.command(cls=Command)
@click.argument("vectors", type=click.Path())
@click.argument("words", type=Text(), metavar="[WORD]...", nargs=-1)
@option(
    "-k",
    "--top-k",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Nearest words of each word.",
)
@json_option("lines")
def show(vectors: str, words: tuple[str, ...], top_k: int, as_json: bool) -> None:
    """Show word vectors, or the nearest words of a word.

    VECTORS is anything that "sentemb vectors convert" reads. Without a WORD, prints the number of
    words and dimensions, the origin, the first words and the lengths of the vectors, and verifies
    the checksum of a folder. With WORDs, prints one nearest word per line: the WORD, the nearest
    word, and their cosine.

    \b
    sentemb vectors show glove-50/ king queen -k 5
    """
    import json

    from sentemb.models.vectors.reading import read_word_vectors

    vectors_read = read_word_vectors(vectors, verify=not words, note=_note)
    if words:
        nearest = {word: vectors_read.nearest(word, top_k) for word in words}
        if as_json:
            click.echo(json.dumps(nearest, indent=1))
        else:
            for word, neighbours in nearest.items():
                for neighbour, cosine in neighbours:
                    _say_fields(word, neighbour, f"{cosine:.4f}")
        return
    facts = _facts(vectors_read)
    if as_json:
        click.echo(json.dumps(facts, indent=1))
    else:
        for name, value in facts.items():
            shown = " ".join(value) if isinstance(value, list) else value
            if shown not in ("", None):
                _say_fields(name.replace("_", " "), _shown(shown))


@command.command(cls=Command)
@click.argument("log", type=click.Path())
@written_option(Written(is_folder=True), "Folder of the word vectors.", metavar="VECTORS")
@option_of(SETTINGS["dim"])
@option_of(SETTINGS["window"])
@option_of(SETTINGS["min_count"])
@option_of(SETTINGS["epochs"])
@option_of(SETTINGS["seed"])
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log instead of stopping at the first.",
)
def train(log: str, output: str, force: bool, skip_bad_lines: bool, **settings: Any) -> None:
    """Train word vectors on a click log.

    LOG is a click log as for "sentemb train". Each pair is one sentence: the words of the query,
    then those of the clicked title, lower-cased and without punctuation. A pair with c clicks is
    read round(1 + ln c) times per epoch. The method is skip-gram by gensim, which must be
    installed: pip install 'sentemb[baselines]'.

    \b
    sentemb vectors train pairs.tsv -o vectors/
    """
    import time

    from sentemb.data.click_log import read_click_log
    from sentemb.models.vectors.skip_gram import train_word_vectors
    from sentemb.models.vectors.writing import check_output, write_word_vectors

    check_output(output, force)
    began = time.monotonic()
    clicks = read_click_log(log, skip_bad_lines=skip_bad_lines)
    if clicks.bad_lines:
        _note(f"{log}: skipped {amount(clicks.bad_lines, 'bad line')}")
    line = ProgressLine()
    try:
        vectors = train_word_vectors(
            clicks,
            on_epoch=lambda done, epochs: line.note(
                f"epoch {done}/{epochs}  {time.monotonic() - began:.0f} s"
            ),
            **given(settings),
        )
    finally:
        line.close()
    write_word_vectors(vectors, output, force=force)
    _summarise(output, vectors, "float32", f"--log {log}")


@command.command(cls=Command)
@click.argument("embedding", metavar="NAME|MODEL")
@click.argument("log", type=click.Path())
@written_option(Written(is_folder=True), "Folder of the word vectors.", metavar="VECTORS")
@option_of(TAUGHT_DIM)
@option(
    "--words",
    type=click.Path(),
    metavar="FILE",
    help="More words: the first field of each line, the most frequent word first, such as a file "
    "of counts or of word vectors. At most 100,000 words are encoded, those of the log included.",
)
@option(
    "--skip-bad-lines",
    is_flag=True,
    help="Skip and count malformed lines of the log instead of stopping at the first.",
)
def teach(
    embedding: str,
    log: str,
    output: str,
    dim: int | None,
    words: str | None,
    force: bool,
    skip_bad_lines: bool,
) -> None:
    """Make word vectors by an embedding of texts.

    The embedding, the first argument, is a folder or a name for sentence-transformers, an ONNX file
    with its tokenizer.json, or a model folder. It encodes each word of LOG, a click log, alone. The
    vectors are the first principal components, without the mean. `sentemb train --vectors VECTORS`
    takes them as features; with --teacher and the same embedding the model learns more of it.

    \b
    sentemb vectors teach transformer/ pairs.tsv -o vectors/
    """
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import clean_lines
    from sentemb.models.vectors.teaching import teach_word_vectors
    from sentemb.models.vectors.writing import check_output, write_word_vectors

    check_output(output, force)
    clicks = read_click_log(log, skip_bad_lines=skip_bad_lines)
    if clicks.bad_lines:
        _note(f"{log}: skipped {amount(clicks.bad_lines, 'bad line')}")
    listed = () if words is None else clean_lines(words)
    fields = [word for _, text in listed for word in text.split()[:1]]
    line = ProgressLine()

    def show(done: int, total: int) -> None:
        if line.is_due:
            line.draw(f"words: {done:,} of {total:,}")

    try:
        vectors = teach_word_vectors(embedding, clicks, words=fields, dim=dim, on_progress=show)
    finally:
        line.close()
    write_word_vectors(vectors, output, force=force)
    _summarise(output, vectors, "float32", f"--log {log}")


def _summarise(output: str, vectors: Any, dtype: str, texts: str) -> None:
    """Print what was written; ``texts`` are what `sentemb sif` may read next."""
    summarise(
        output,
        {"words": len(vectors), "dimensions": vectors.dim, "dtype": dtype},
        f"{output}: {amount(len(vectors), 'word')}, {vectors.dim} dimensions, {dtype}",
        f"next: sentemb sif {output} {texts} -o model",
    )


def _say_fields(*fields: str) -> None:
    """Print fields with tabs between them; one that could not be printed is escaped."""
    from sentemb.errors import printable

    click.echo("\t".join(map(printable, fields)))


def _facts(vectors: Any) -> dict[str, Any]:
    lengths = vectors.lengths()
    return {
        "name": vectors.name,
        "words": len(vectors),
        "dimensions": vectors.dim,
        "dtype": vectors.vectors.dtype.name,
        "counted_words": None if vectors.counts is None else int((vectors.counts > 0).sum()),
        "source": vectors.source,
        "licence": vectors.licence,
        "sha256": vectors.sha256,
        "first_words": vectors.words[:_FIRST_WORDS],
        "shortest_vector": float(lengths.min()),
        "mean_length": float(lengths.mean()),
        "longest_vector": float(lengths.max()),
    }


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _note(message: str) -> None:
    note(f"note: {message}")
