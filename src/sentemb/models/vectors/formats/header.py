"""The first line of word2vec's formats: the number of words and the length of a vector."""

from typing import NamedTuple

from sentemb.errors import SentembError
from sentemb.models.vectors.vector_limits import MAX_DIM

# More digits than any number of words has.
_MOST_DIGITS = 18


class Header(NamedTuple):
    """The number of words and the length of a vector."""

    n_words: int
    dim: int


def header_of(line: bytes) -> Header | None:
    """The header in a line of two integers; None if the line is anything else."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() for field in fields):
        return None
    if max(map(len, fields)) > _MOST_DIGITS:
        return None
    return Header(*map(int, fields))


def checked_header(header: Header, name: str) -> Header:
    """``header``; a `SentembError`, with the file's ``name``, if there can be no such vectors."""
    if header.n_words == 0:
        raise SentembError(f"{name}:1: no vectors: the header says 0 words; give another file")
    if not 1 <= header.dim <= MAX_DIM:
        raise SentembError(
            f"{name}:1: the header says {header.dim:,} dimensions; give vectors of 1 to {MAX_DIM:,}"
        )
    return header
