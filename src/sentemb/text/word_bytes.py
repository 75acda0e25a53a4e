"""Texts as one buffer in which kernels find the words."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.text.words import SPLITTINGS, WHITE_SPACE


def word_bytes(texts: Sequence[str], splitting: str = WHITE_SPACE) -> bytes:
    """The words of ``texts`` in UTF-8, with white space between them.

    ``splitting`` is one of `sentemb.text.words.SPLITTINGS`. A line feed is behind each text and
    nowhere else. Words that `str.split` finds in a line are those of the text. A surrogate is three
    bytes.
    """
    if splitting == WHITE_SPACE:
        # Lower-casing looks at neighbouring letters, for the final sigma, and a line feed is none:
        # all texts are lower-cased at once.
        joined = texts[0] + "\n" if len(texts) == 1 else "\n".join([*texts, ""])
        if joined.count("\n") != len(texts):
            joined = "\n".join([*(text.replace("\n", " ") for text in texts), ""])
        joined = joined.lower()
    else:
        split = SPLITTINGS[splitting]
        joined = "\n".join([*(" ".join(split(text)) for text in texts), ""])
    return joined.encode("utf-8", "surrogatepass")


def words_of(letters: NDArray[np.uint8]) -> list[str]:
    """The words that a buffer holds, a line feed behind each."""
    return letters.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
