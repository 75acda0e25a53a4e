"""Words of texts as numbers, without Python: a tokeniser over UTF-8 and a hash table of words.

The texts are one buffer, lower-cased, each with a line feed behind it. A word is what `str.split`
calls one: a run of characters that are not white space; punctuation around it can be left out, as
`sentemb.text.words.without_edges` does. Words are compared byte by byte; the hash only says where
to look. Its seed differs between tables, and a search ends after a few slots, so no choice of words
makes the table slow.

A table of words is two arrays:

=============  ================  ==================================================================
``entries``    (2^k, 4) int64    hash, row, and where the word begins and ends in ``letters``;
                                 an end of 0 marks an empty slot
``letters``    (any,) uint8      the words in the order of their rows, a line feed behind each
=============  ================  ==================================================================
"""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.compiling.jit import inlined_kernel, inner_kernel, kernel
from sentemb.kernels.prefetch import prefetch_row
from sentemb.kernels.text_table import same_bytes

_LINE_FEED, _BLANK = 10, 32
# Bits of ``edges``: the letter may be left out before a word, and behind it.
_BEFORE, _AFTER = 1, 2
# FNV-1a: the factor. The shift and the factor that follow spread the hash over its low bits.
_FACTOR = np.uint64(0x100000001B3)
_MIX = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
# Slots that are looked at before a word counts as absent. Half of all slots are empty, so runs of
# taken ones are short: one in 10^10 words finds none.
_TRIES = 128
# Words whose slots are fetched at the same time.
_WORDS = 16


@inner_kernel
def _white_space(text, at):
    """Bytes of the white space at a place where a character begins, or 0: `str.isspace` in UTF-8.

    text : bytes; at : int
    """
    first = text[at]
    if first <= 32:
        return 1 if first == 32 or 9 <= first <= 13 or first >= 28 else 0
    if first == 0xC2:  # U+0085, U+00A0
        return 2 if text[at + 1] == 0x85 or text[at + 1] == 0xA0 else 0
    if first == 0xE1:  # U+1680
        return 3 if text[at + 1] == 0x9A and text[at + 2] == 0x80 else 0
    if first == 0xE2:
        second, third = text[at + 1], text[at + 2]
        if second == 0x80:  # U+2000 to U+200A, U+2028, U+2029, U+202F
            return 3 if third <= 0x8A or third == 0xA8 or third == 0xA9 or third == 0xAF else 0
        return 3 if second == 0x81 and third == 0x9F else 0  # U+205F
    if first == 0xE3:  # U+3000
        return 3 if text[at + 1] == 0x80 and text[at + 2] == 0x80 else 0
    return 0


@inlined_kernel
def _can_begin_white_space(first):
    """Whether some white space other than a blank begins with a byte.

    A call with an array counts references to it, so `_white_space` is called only after this.
    """
    return first < _BLANK or first == 0xC2 or (first >= 0xE1 and first <= 0xE3)


@inner_kernel
def _end_and_hash(text, start, seed):
    """The end of the word that begins at ``start``, and its hash: int, int64."""
    hashed = np.uint64(seed)
    at = start
    while True:
        hashed = (hashed ^ np.uint64(text[at])) * _FACTOR
        at += 1
        first = text[at]
        if first == _BLANK or (_can_begin_white_space(first) and _white_space(text, at) > 0):
            break
    return at, _mixed(hashed)


@inlined_kernel
def _mixed(hashed):
    hashed ^= hashed >> _HALF
    hashed *= _MIX
    hashed ^= hashed >> _HALF
    return np.int64(hashed)


@inner_kernel
def _without_edges(text, edges, start, end, hashed, seed):
    """Start, end and hash of the word ``text[start:end]`` without its edges.

    A word that has nothing else, and one that is not ASCII, stays as it is.
    """
    low, high = start, end
    for at in range(start, end):
        if text[at] >= 128:
            return start, end, hashed
    while low < high and edges[text[low]] & _BEFORE:
        low += 1
    while low < high and edges[text[high - 1]] & _AFTER:
        high -= 1
    if low == high:
        return start, end, hashed
    shorter = np.uint64(seed)
    for at in range(low, high):
        shorter = (shorter ^ np.uint64(text[at])) * _FACTOR
    return low, high, _mixed(shorter)


@inner_kernel
def _slot_of(text, start, end, hashed, entries, letters):
    """The slot that holds the word ``text[start:end]``, or is empty; -1 if there is neither."""
    mask = len(entries) - 1
    for k in range(_TRIES):
        slot = (hashed + k) & mask
        low, high = entries[slot, 2], entries[slot, 3]
        if high == 0:
            return slot
        is_alike = entries[slot, 0] == hashed and high - low == end - start
        if is_alike and same_bytes(text, start, letters, low, end - start):
            return slot
    return -1


@inner_kernel
def _next_words(text, edges, at, seed, entries, words, offsets, n_texts, n_tokens):
    """Find the next words of some texts, and fetch their slots.

    text, edges, entries, seed : see `find_words`
    at : where the search begins, in no word
    words : (most, 3) int64, written: start, end and hash of each
    offsets : (all texts + 1,) int64, written for the texts that end before the returned ``at``
    n_texts, n_tokens : texts that end before ``at``, and words before it
    Returns ``at`` and ``n_texts`` behind these words and the white space after them, and the number
        of these words
    """
    mask = len(entries) - 1
    n = 0
    while at < len(text):
        first = text[at]
        if first == _BLANK:
            at += 1
            continue
        space = _white_space(text, at) if _can_begin_white_space(first) else 0
        if space > 0:
            if first == _LINE_FEED:
                n_texts += 1
                offsets[n_texts] = n_tokens + n
            at += space
            continue
        if n == len(words):
            break
        start = at
        at, hashed = _end_and_hash(text, start, seed)
        end = at
        if len(edges):
            last = text[end - 1]
            if first < 128 and last < 128 and (edges[first] & _BEFORE or edges[last] & _AFTER):
                start, end, hashed = _without_edges(text, edges, start, end, hashed, seed)
        words[n, 0], words[n, 1], words[n, 2] = start, end, hashed
        # Its slot lies anywhere in memory; other words are found while it is fetched.
        prefetch_row(entries, hashed & mask)
        n += 1
    return at, n_texts, n


@kernel
def find_words(text, edges, entries, letters, seed, is_known, word_index, offsets):
    """Look up the words of some texts.

    text, edges : bytes, from `sentemb.text.word_bytes`: lower-cased texts, a line feed behind each,
        and bits of each ASCII letter, or nothing if no edges are left out
    entries, letters : see the module
    is_known : (at least rows,) bool, whether the word of each row counts as known to the model
    word_index : (at least tokens,) int32, written: the row of every word; -1 if the table does not
        have it
    offsets : (n_texts + 1,) int64, written: text k has the words ``offsets[k]`` to
        ``offsets[k + 1]``
    Returns the numbers of words, of words that the table does not have, and of texts without a word
        that counts as known
    """
    words = np.empty((_WORDS, 3), np.int64)
    at = n_texts = n_tokens = n_new = n_poor = 0
    offsets[0] = 0
    while at < len(text):
        at, n_texts, n = _next_words(
            text, edges, at, seed, entries, words, offsets, n_texts, n_tokens
        )
        for k in range(n):
            slot = _slot_of(text, words[k, 0], words[k, 1], words[k, 2], entries, letters)
            if slot >= 0 and entries[slot, 3] > 0:
                word_index[n_tokens + k] = entries[slot, 1]
            else:
                word_index[n_tokens + k] = -1
                n_new += 1
        n_tokens += n
    for k in range(n_texts):
        known = False
        for token in range(offsets[k], offsets[k + 1]):
            row = word_index[token]
            known |= row >= 0 and is_known[row]
        n_poor += not known
    return n_tokens, n_new, n_poor


@kernel
def add_words(
    text, edges, entries, letters, used, n_words, seed, longest, passing, passing_used, word_index,
    offsets,
):  # fmt: skip
    """As `find_words`, and put words that the table does not have into it.

    A word of more than ``longest`` letters is not put there, nor is one whose slots are taken.
    It is appended to ``passing``.

    text, edges, entries, letters, seed, offsets : as for `find_words`; `with_room` makes the room
        that the table needs
    used, n_words : bytes of ``letters`` that hold words, and words
    passing, passing_used : (any,) uint8, int, the words that are not put into the table, a line
        feed behind each, and their bytes; there is room for all of ``text``
    word_index : (at least tokens,) int32, written: the row of every word; of word j of ``passing``
        -1 - j
    Returns ``used``, ``n_words`` and ``passing_used`` as they are then, and the number of tokens
    """
    n_passing = 0
    for at in range(passing_used):
        n_passing += passing[at] == _LINE_FEED
    words = np.empty((_WORDS, 3), np.int64)
    at = n_texts = n_tokens = 0
    offsets[0] = 0
    while at < len(text):
        at, n_texts, n = _next_words(
            text, edges, at, seed, entries, words, offsets, n_texts, n_tokens
        )
        for k in range(n):
            start, end, hashed = words[k, 0], words[k, 1], words[k, 2]
            slot = _slot_of(text, start, end, hashed, entries, letters)
            if slot >= 0 and entries[slot, 3] == 0 and _n_letters(text, start, end) <= longest:
                entries[slot, 0], entries[slot, 1] = hashed, n_words
                entries[slot, 2], entries[slot, 3] = used, used + end - start
                used = _append(letters, used, text, start, end)
                word_index[n_tokens + k] = n_words
                n_words += 1
            elif slot >= 0 and entries[slot, 3] > 0:
                word_index[n_tokens + k] = entries[slot, 1]
            else:
                passing_used = _append(passing, passing_used, text, start, end)
                word_index[n_tokens + k] = -1 - n_passing
                n_passing += 1
        n_tokens += n
    return used, n_words, passing_used, n_tokens


@inlined_kernel
def _n_letters(text, start, end):
    """Characters of ``text[start:end]``: the bytes that begin one."""
    n = 0
    for at in range(start, end):
        n += (text[at] & 0xC0) != 0x80
    return n


@inlined_kernel
def _append(letters, used, text, start, end):
    """Write ``text[start:end]`` and a line feed behind the first ``used`` bytes; the new number."""
    for at in range(start, end):
        letters[used + at - start] = text[at]
    letters[used + end - start] = _LINE_FEED
    return used + end - start + 1


def with_room(
    entries: NDArray[np.int64], letters: NDArray[np.uint8], n_words: int, n_bytes: int
) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """A table with room for ``n_words`` words in all, of ``n_bytes`` bytes: the same, or copies."""
    while 2 * n_words > len(entries):
        entries = _doubled(entries)
    if n_bytes > letters.size:
        longer = np.empty(max(n_bytes, 2 * letters.size), np.uint8)
        longer[: letters.size] = letters
        letters = longer
    return entries, letters


@kernel
def _doubled(entries):
    """A table of twice as many slots with the same words."""
    larger = np.zeros((2 * len(entries), 4), np.int64)
    mask = len(larger) - 1
    for old in range(len(entries)):
        if entries[old, 3] == 0:
            continue
        for k in range(_TRIES):  # a word that finds no slot here is forgotten
            slot = (entries[old, 0] + k) & mask
            if larger[slot, 3] == 0:
                for j in range(4):
                    larger[slot, j] = entries[old, j]
                break
    return larger
