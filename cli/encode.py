"""``sentemb encode``: texts in, an array of embeddings out."""

import time
from io import BufferedIOBase
from typing import Any

import click

from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.options import command as new_command
from sentemb.cli.options import option, side_option
from sentemb.cli.program import note
from sentemb.errors import SentembError


@new_command("encode")
@click.argument("model", type=click.Path())
@click.argument("texts", type=click.Path(), default="-")
@option(
    "-o",
    "--output",
    metavar="OUT.npy",
    type=click.Path(),
    required=True,
    help="File of the embeddings; - is standard output.",
)
@side_option()
@option(
    "--normalise",
    is_flag=True,
    help="Divide each embedding by its length.",
    former=["--normalize"],
)
def command(model: str, texts: str, output: str, side: str, normalise: bool) -> None:
    """Turn texts into embeddings.

    TEXTS is a file with one text per line, unpacked if it ends in .gz; without it, or if it is -,
    standard input is read. The embeddings are written as a float32 array of shape (lines, dim)
    in NumPy's .npy format. The embedding of a text without words is zero.
    """
    from sentemb.data.lines import clean_lines
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.system.files import place_name, writing

    encoder = SentenceEncoder.from_pretrained(model)
    lines = [line for _, line in clean_lines(texts)]
    if not lines:
        raise SentembError(f"{place_name(texts)}: the input is empty; give one text per line")
    # Opened first, so that a file that cannot be written is reported before the work is done.
    with writing(output) as file:
        start = time.perf_counter()
        with warnings_to_stderr():
            vectors = encoder.encode(lines, side=side, normalize_embeddings=normalise)
        seconds = time.perf_counter() - start
        _write_npy(file, vectors)
    note(f"{len(lines)} texts, {encoder.dim} dimensions, {seconds:.1f} seconds")


def _write_npy(file: BufferedIOBase, vectors: Any) -> None:
    """Write an array as `numpy.save` does, which cannot write to a pipe."""
    from numpy.lib import format as npy

    npy.write_array_header_1_0(file, npy.header_data_from_array_1_0(vectors))
    file.write(vectors.data)
