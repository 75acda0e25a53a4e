"""Texts as one buffer in which kernels find the words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.text.words import (
    AFTER,
    BEFORE,
    SPACED_LINES,
    bare_words,
    lettered_words,
    split_words,
)

# Words of `SPACED_LINES` in ASCII are runs of letters, digits and "_". Here is the byte that each
# byte becomes: such a letter in lower case, or a blank. Line feeds stay, and so do letters that are
# not ASCII.
_RUNS = bytes(
    ord(chr(code).lower()) if chr(code).isalnum() or chr(code) in "_\n" else ord(" ")
    for code in range(128)
) + bytes(range(128, 256))
_EDGES = bytes((chr(code) in BEFORE) + 2 * (chr(code) in AFTER) for code in range(128))
# Splittings that leave such edges out, and are those at white space for the rest of ASCII.
WITHOUT_EDGES = frozenset({bare_words, lettered_words})


def word_bytes(texts: Sequence[str], split: Callable[[str], list[str]] = split_words) -> bytes:
    """The words of ``texts`` in UTF-8, with white space between them.

    ``split`` is one of `sentemb.text.words.SPLITTINGS`, or any function whose words have no white
    space. A line feed is behind each text and nowhere else. Words that `str.split` finds in a line
    are those of the text, if what `edges_of` says is left out. A surrogate is three bytes.
    """
    if split in WITHOUT_EDGES:
        lines = _lines(texts)
        if not lines.isascii():
            lines = _lines([text if text.isascii() else " ".join(split(text)) for text in texts])
        # The letters of ASCII; ``split`` has lowered the others.
        return lines.encode("utf-8", "surrogatepass").lower()
    if split is split_words:
        # Lower-casing looks at neighbouring letters, for the final sigma, and a line feed is none:
        # all texts are lower-cased at once.
        return _encoded(_lines(texts).lower())
    if split in SPACED_LINES:
        lines, spaced_lines = _lines(texts), SPACED_LINES[split]
        if not lines.isascii():
            beyond_ascii = [text for text in texts if not text.isascii()]
            if 2 * len(beyond_ascii) > len(texts):
                lines = spaced_lines(lines)
            else:
                spaced = iter(spaced_lines(_lines(beyond_ascii)).split("\n"))
                lines = _lines([text if text.isascii() else next(spaced) for text in texts])
        return _encoded(lines).translate(_RUNS)
    return _encoded(_lines([" ".join(split(text)) for text in texts]))


def edges_of(split: Callable[[str], list[str]]) -> bytes:
    """Bits of the ASCII letters that `sentemb.kernels.tokens` leaves out around words."""
    return _EDGES if split in WITHOUT_EDGES else b""


def _lines(texts: Sequence[str]) -> str:
    """The texts with a line feed behind each; one within a text becomes a blank."""
    joined = texts[0] + "\n" if len(texts) == 1 else "\n".join([*texts, ""])
    if joined.count("\n") != len(texts):
        joined = "\n".join([*(text.replace("\n", " ") for text in texts), ""])
    return joined


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def words_of(letters: NDArray[np.uint8]) -> list[str]:
    """The words that a buffer holds, a line feed behind each."""
    return letters.tobytes().decode("utf-8", "surrogatepass").split("\n")[:-1]
