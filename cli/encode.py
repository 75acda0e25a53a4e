"""``sentemb encode``: texts in, an array of vectors out."""

import time

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.program import note
from sentemb.errors import SentembError


@click.command("encode")
@click.argument("model", type=click.Path())
@click.argument("texts", type=click.Path(), default="-")
@click.option(
    "-o",
    "--output",
    metavar="OUT.npy",
    type=click.Path(),
    required=True,
    help="Where the vectors go; - is standard output.",
)
@click.option(
    "--side",
    type=click.Choice(["query", "document"]),
    default="query",
    show_default=True,
    help="The tower that reads the texts: of queries or of titles.",
)
@click.option("--normalize", is_flag=True, help="Divide each vector by its length.")
def command(model, texts, output, side, normalize):
    """Turn texts into vectors.

    TEXTS is a file with one text a line, packed if it ends in .gz; - or nothing is standard input.
    The vectors are a float32 array of NumPy's .npy format, (lines, dim). A text without words
    becomes a zero vector.
    """
    from sentemb.data.lines import clean_lines
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.system.files import place_name, writing

    encoder = SentenceEncoder.from_pretrained(model)
    lines = [line for _, line in clean_lines(texts)]
    if not lines:
        raise SentembError(f"{place_name(texts)}: the input is empty; give one text per line")
    # Opened first: that a place cannot be written should be known before the work is done.
    with writing(output) as file:
        start = time.perf_counter()
        with warnings_to_stderr():
            vectors = encoder.encode(lines, side=side, normalize_embeddings=normalize)
        seconds = time.perf_counter() - start
        _write_npy(file, vectors)
    note(f"{len(lines)} texts, {encoder.dim} dimensions, {seconds:.1f} seconds")


def _write_npy(file, vectors):
    """As `numpy.save`, which cannot write an array to a pipe."""
    from numpy.lib import format as npy

    npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(vectors))
    file.write(vectors.data)
