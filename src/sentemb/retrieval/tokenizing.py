"""Many texts as `Tokens`, by kernels."""

import os
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import Texts
from sentemb.kernels.tokens import add_words, with_room
from sentemb.text.batch import Tokens, tokenize
from sentemb.text.portions import portions
from sentemb.text.word_bytes import WITHOUT_EDGES, edges_of, word_bytes, words_of
from sentemb.text.words import SPACED_LINES, split_words

# Texts up to which loading the kernels takes more time than they save.
_FEW = 4096
# Texts and characters that are read at once, for which the table of words has room beforehand.
_TEXTS, _CHARACTERS = 1024, 1 << 18
_FIRST = 256  # slots of an empty table
# Splittings that need Python for few texts only.
_QUICK = frozenset({split_words, *WITHOUT_EDGES, *SPACED_LINES})


def tokenize_all(texts: Sequence[str], split: Callable[[str], list[str]]) -> Tokens:
    """As `sentemb.text.batch.tokenize`, with the same result, in less time for many texts."""
    if len(texts) <= _FEW or split not in _QUICK:
        return tokenize(texts, split)
    entries, letters = np.zeros((_FIRST, 4), np.int64), np.empty(0, np.uint8)
    seed = int.from_bytes(os.urandom(7), "little")
    edges, used, n_words, n_tokens, first = edges_of(split), 0, 0, 0, 0
    indexes, offsets = [], np.zeros(len(texts) + 1, np.int64)
    for portion in portions(texts, _TEXTS, _CHARACTERS):
        text = word_bytes(portion, split)
        # Behind each word there is white space.
        index, passing = np.empty(len(text) // 2, np.int32), np.empty(len(text), np.uint8)
        entries, letters = with_room(entries, letters, n_words + index.size, used + len(text))
        part = offsets[first : first + len(portion) + 1]
        used, n_words, n_passing, n = add_words(
            text, edges, entries, letters, used, n_words, seed, len(text), passing, 0, index, part
        )
        if n_passing:  # a word has found no slot, as one in 10^10 does
            return tokenize(texts, split)
        part += n_tokens
        n_tokens += n
        first += len(portion)
        indexes.append(index[:n])
    return Tokens(np.concatenate(indexes), offsets, _words_of(letters[:used].copy()))


def _words_of(letters: NDArray[np.uint8]) -> Sequence[str]:
    try:
        return Texts.of_lines(letters)
    except ValueError:  # a surrogate without its other half
        return words_of(letters)
