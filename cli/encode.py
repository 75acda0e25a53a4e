"""``sentemb encode``: texts in, an array of embeddings out."""

import contextlib
import time
import warnings
from collections.abc import Iterable, Iterator
from io import BufferedIOBase
from typing import TYPE_CHECKING

import click

from sentemb.cli.common import check_ending, read_texts
from sentemb.cli.options import command as new_command
from sentemb.cli.options import dask_option, option, side_option
from sentemb.cli.program import note
from sentemb.errors import SentembError
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    import numpy as np

_ENDING = ".npy"


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
@option(
    "--ids",
    "with_ids",
    is_flag=True,
    help="Read lines id<TAB>text, and write the ids to OUT.ids, one per line.",
)
@side_option()
@option(
    "--normalise",
    is_flag=True,
    help="Divide each embedding by its length.",
    former=["--normalize"],
)
@dask_option("encodes the texts")
def command(
    model: str,
    texts: str,
    output: str,
    with_ids: bool,
    side: str,
    normalise: bool,
    dask: str | None,
) -> None:
    """Turn texts into embeddings.

    TEXTS is a file with one text per line, unpacked if it ends in .gz; without it, or if it is -,
    standard input is read. The embeddings are written as a float32 array of shape (lines, dim)
    in NumPy's .npy format. The embedding of a text without words is zero.

    \b
    sentemb encode model/ titles.txt --side document -o titles.npy
    sentemb encode model/ titles.tsv --ids --side document -o titles.npy
    """
    from sentemb.data.lines import write_lines
    from sentemb.distributed.cluster import opened_if
    from sentemb.distributed.encoding import encoded, portions_of
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.system.files import writing

    check_ending(output, (_ENDING,), "the embeddings are an array in NumPy's format")
    if with_ids and not output.endswith(_ENDING):
        raise click.UsageError("--ids writes a second file; give -o a name that ends in .npy")
    encoder = SentenceEncoder.from_pretrained(model)
    ids, lines = read_texts(texts) if with_ids else ([], _lines(texts))
    # Opened first, so that a file that cannot be written is reported before the work is done.
    with writing(output) as file, opened_if(dask) as cluster:
        start = time.perf_counter()
        portions = encoded(
            encoder,
            portions_of(lines),
            side,
            unit_length=normalise,
            cluster=cluster,
            path=model,
        )
        _write(file, portions, (len(lines), encoder.dim), encoder.dtype)
        seconds = time.perf_counter() - start
        if with_ids:
            write_lines(output.removesuffix(_ENDING) + ".ids", ids)
    note(f"{len(lines)} texts, {encoder.dim} dimensions, {seconds:.1f} seconds")


def _lines(path: str) -> list[str]:
    """The lines of a file, with a note if they seem to begin with ids."""
    from sentemb.data.lines import clean_lines
    from sentemb.system.files import place_name

    lines = [line for _, line in clean_lines(path)]
    if not lines:
        raise SentembError(f"{place_name(path)}: the input is empty; give one text per line")
    if "\t" in lines[0]:
        note("note: line 1 has a tab; if the lines are id<TAB>text, use --ids")
    return lines


def _write(
    file: BufferedIOBase,
    portions: "Iterable[np.ndarray]",
    shape: tuple[int, int],
    dtype: "np.dtype",
) -> None:
    """Write embeddings as `numpy.save` does, which cannot write to a pipe, by portions."""
    import numpy as np
    from numpy.lib import format as npy

    whole = np.broadcast_to(np.zeros((), dtype), shape)
    header = npy.header_data_from_array_1_0(whole) | {"fortran_order": False}
    npy.write_array_header_1_0(file, header)
    line, done = ProgressLine(), 0
    with _sums_of_warnings(shape[0]):
        for vectors in portions:
            file.write(vectors.data)
            done += len(vectors)
            if line.is_due:
                line.draw(f"{done:,} of {shape[0]:,} texts")
    line.close()


@contextlib.contextmanager
def _sums_of_warnings(n_texts: int) -> Iterator[None]:
    """Print what portions of ``n_texts`` texts warn of as if they were one call."""
    from sentemb.face import TextWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TextWarning)
        yield
    found = [one.message for one in caught if isinstance(one.message, TextWarning)]
    for what in dict.fromkeys(one.what for one in found):
        count = sum(one.count for one in found if one.what == what)
        note(f"warning: {TextWarning(count, n_texts, what)}")
