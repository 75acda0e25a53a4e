"""Counts of words, as files list them: one word and its count per line."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.data.lines import content_lines
from sentemb.errors import SentembError
from sentemb.models.vectors.vector_limits import MAX_COUNT
from sentemb.system.bounds import brief, is_integer
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath

_REMEDY = "write lines of a word, a blank or tab, and its count"


def read_counts(path: AnyPath) -> dict[str, int]:
    """Read how often words occur in a corpus, in the order of the file.

    Each line is a word, a blank or tab, and its count: an integer from 0. A word may contain
    blanks. The counts of a word that occurs on several lines are added up. UTF-8; unpacked if the
    name ends in ``.gz``; ``-`` is standard input.

    Raises `SentembError` with the line: no count, a count that is not an integer of at most 63
    bits, bytes that are not UTF-8. Also if there are no lines, or all counts are 0.
    """
    name = place_name(path)
    counts: dict[str, int] = {}
    for number, line in content_lines(path):
        # Not str.split: words of web text may be Unicode spaces.
        text = line.strip(" \t")
        cut = max(text.rfind(" "), text.rfind("\t"))
        if cut < 0:
            raise SentembError(f"{name}:{number}: not a word and its count; {_REMEDY}")
        word, digits = text[:cut].rstrip(" \t"), text[cut + 1 :]
        is_count = digits.isascii() and digits.isdigit() and len(digits) <= len(str(MAX_COUNT))
        count = counts.get(word, 0) + int(digits) if is_count else MAX_COUNT + 1
        if count > MAX_COUNT:
            raise SentembError(
                f"{name}:{number}: the count {brief(digits)} is not an integer from 0, or those "
                f"of the word add up to more than {MAX_COUNT}; {_REMEDY}"
            )
        counts[word] = count
    if not any(counts.values()):
        raise SentembError(f"{name}: no counts above 0; {_REMEDY}")
    return counts


def checked_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """``counts``; a `SentembError` unless all are such as a file of them may have."""
    for word, count in counts.items():
        if not (is_integer(count) and 0 <= count <= MAX_COUNT):
            raise SentembError(
                f"the count of {brief(word)} is {brief(count)}; give an integer from 0 of at most "
                "63 bits"
            )
    # The sum of NumPy's integers could overflow.
    return {word: int(count) for word, count in counts.items()}


def counts_of(words: Sequence[str], counts: Mapping[str, int], name: str) -> NDArray[np.int64]:
    """The count of each word, 0 for one without: (n,) int64.

    ``name`` is that of the counts, for the `SentembError` if none of the words has one.
    """
    of_words = np.array([counts.get(word, 0) for word in words], np.int64)
    if not of_words.any():
        raise SentembError(f"{name}: none of the words has a count; give counts of these words")
    return of_words
