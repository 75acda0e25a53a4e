"""``sentemb encode``: texts in, an array of embeddings out."""

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import (
    TimeLeft,
    check_ending,
    encoding_ahead,
    read_lines,
    read_titles,
    sums_of_warnings,
)
from sentemb.cli.options import (
    Written,
    dask_option,
    option,
    side_option,
    threads_option,
    written_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise

if TYPE_CHECKING:
    import numpy as np

_ENDING = ".npy"


def _outputs(path: str, given: dict[str, Any]) -> list[str]:
    return [path, _ids_beside(path)] if given["with_ids"] else [path]


def _ids_beside(path: str) -> str:
    return path.removesuffix(_ENDING) + ".ids"


@new_command("encode")
@click.argument("model", type=click.Path())
@click.argument("texts", type=click.Path(), default="-")
@written_option(
    Written(can_stream=True, outputs=_outputs),
    "File of the embeddings; - is standard output.",
    metavar="OUT.npy",
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
)
@threads_option()
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
    in NumPy's .npy format. The embedding of a text without words is zero. Memory does not grow with
    TEXTS: they are kept on the disk of OUT.npy while they are encoded.

    \b
    sentemb encode model/ titles.txt --side document -o titles.npy
    sentemb encode model/ titles.tsv --ids --side document -o titles.npy
    """
    from sentemb.data.lines import write_lines
    from sentemb.models.cluster_encoding import encoded, portions_of
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.system.cluster import opened_if
    from sentemb.system.files import writing
    from sentemb.system.growing import scratch_folder

    check_ending(output, (_ENDING,), "the embeddings are an array in NumPy's format")
    if with_ids and not output.endswith(_ENDING):
        raise click.UsageError("--ids writes a second file; give -o a name that ends in .npy")
    encoder = SentenceEncoder.from_pretrained(model)
    scratch = scratch_folder(output)
    ids: Sequence[str] = []
    lines: Sequence[str]
    if with_ids:
        ids, lines, _ = read_titles(texts, scratch)
    else:
        lines = read_lines(texts, scratch)
        if "\t" in lines[0]:
            note("note: line 1 has a tab; if the lines are id<TAB>text, use --ids")
    # Opened first, so that a file that cannot be written is reported before the work is done.
    with encoding_ahead(encoder), writing(output) as file, opened_if(dask) as cluster:
        if cluster is None:  # the second process cannot begin where there are threads
            encoder.unit_vectors(lines[:1], side)
        start = time.perf_counter()
        portions = encoded(
            encoder, portions_of(lines), side, unit_length=normalise, cluster=cluster
        )
        _write(file, portions, (len(lines), encoder.dim), encoder.dtype)
        seconds = time.perf_counter() - start
        if with_ids:
            write_lines(_ids_beside(output), ids)
    summarise(
        output,
        {"texts": len(lines), "dimensions": encoder.dim, "seconds": seconds},
        f"{len(lines)} texts, {encoder.dim} dimensions, {seconds:.1f} seconds",
    )


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
    n_texts, done = shape[0], 0
    with sums_of_warnings(n_texts), closing(TimeLeft("texts")) as line:
        for vectors in portions:
            file.write(vectors.data)
            done += len(vectors)
            line.show(done, n_texts)
