"""Pairs of texts with label 1 or 0: whether the two say the same, answer each other, match."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.data.labelled import read_valued
from sentemb.data.lines import write_lines
from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.files import place_name
from sentemb.system.html_tables import excerpt, facts_table
from sentemb.system.paths import AnyPath


@dataclass(frozen=True, eq=False, repr=False)
class LabelledPairs:
    """Pairs of texts that match (label 1) or do not (label 0), in the order of the file.

    Attributes
    ----------
    labels : (n,) int8
        0 or 1 for each pair; n is at least 1.
    first, second : list of str
        The texts of each pair.
    name : str
        Where they are from, for messages.

    Raises
    ------
    SentembError
        If the lengths differ, there are no pairs, or a label is not 0 or 1.
    """

    labels: NDArray[np.int8]
    first: list[str]
    second: list[str]
    name: str = "labelled pairs"

    def __post_init__(self) -> None:
        if not self.labels.shape == (len(self.first),) == (len(self.second),) or not self.first:
            raise SentembError(
                f"{self.labels.size:,} labels, {len(self.first):,} first and "
                f"{len(self.second):,} second texts; give one of each for every pair, at least one"
            )
        wrong = (self.labels != 0) & (self.labels != 1)
        if wrong.any():
            raise SentembError(f"label must be 0 or 1, not {self.labels[wrong.argmax()]}")

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"LabelledPairs({len(self):,} pairs, {self.n_positive:,} with label 1)"

    def _repr_html_(self) -> str:
        facts = {"pairs": len(self), "with label 1": self.n_positive}
        rows = zip(self.labels.tolist(), self.first, self.second, strict=True)
        heads = ["label", "first text", "second text"]
        return facts_table(facts) + excerpt(rows, len(self), heads, texts=(1, 2))

    @property
    def n_positive(self) -> int:
        """How many pairs have label 1."""
        return int(np.count_nonzero(self.labels))

    def check_both_labels(self) -> None:
        """Raise a `SentembError` unless both labels occur, as training needs."""
        if self.n_positive in (0, len(self)):
            only = int(self.labels[0])
            raise SentembError(
                f"{self.name}: only label {only}, so there is nothing to tell apart; add pairs "
                f"with label {1 - only}"
            )

    def fingerprint(self) -> str:
        """The SHA-256 of all labels and texts, in hexadecimal."""
        digest = hashlib.sha256(self.labels.astype(np.int8).tobytes())
        for texts in (self.first, self.second):
            digest.update("\n".join([*texts, ""]).encode())
        return digest.hexdigest()


def read_labelled_pairs(path: AnyPath) -> LabelledPairs:
    """Read pairs of texts with label 0 or 1.

    Parameters
    ----------
    path : str or path-like
        A file of ``label<TAB>text<TAB>text`` lines in UTF-8; compressed if its name ends in
        ``.gz``; ``-`` is standard input.

    Returns
    -------
    LabelledPairs

    Raises
    ------
    SentembError
        With file, line and remedy: for a label other than 0 and 1, a wrong number of columns, a
        text without words or with more than 10,000, a NUL character, invalid UTF-8; also for a file
        without lines.
    """
    read = read_valued(path, zero_or_one, "label", n_texts=(2,))
    first, second = read.sides
    return LabelledPairs(np.array(read.values, np.int8), first, second, place_name(path))


def write_labelled_pairs(pairs: LabelledPairs, path: AnyPath) -> None:
    """Write `LabelledPairs` as ``label<TAB>text<TAB>text`` lines, the whole file or nothing."""
    write_lines(path, _lines(pairs))


def zero_or_one(field: str) -> int:
    """The label that a column holds: 0 or 1; a `SentembError` without a place for others."""
    label = field.strip()
    if label not in ("0", "1"):
        raise SentembError(f"label must be 0 or 1, not {brief(label)}")
    return int(label)


def _lines(pairs: LabelledPairs) -> Iterator[str]:
    for label, first, second in zip(pairs.labels.tolist(), pairs.first, pairs.second, strict=True):
        yield f"{label}\t{first}\t{second}"
