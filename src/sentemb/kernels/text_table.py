"""The places of texts in a list of texts: a hash table with open addressing, of numbers alone.

Texts are bytes that follow one another: text k is ``raw[offsets[k] : offsets[k + 1] - gap]``. They
are compared byte by byte; the hash, FNV-1a from a seed of the table, only says where to look.
"""

import numpy as np

from sentemb.kernels.compiling.jit import inner_kernel, kernel
from sentemb.kernels.dropout import mixed

_FACTOR = np.uint64(0x100000001B3)


@inner_kernel
def same_bytes(text, i, known, j, size):
    """Whether ``size`` bytes from ``text[i]`` on equal those from ``known[j]`` on."""
    k = 0
    while k < size and text[i + k] == known[j + k]:
        k += 1
    return k == size


@inner_kernel
def _slot_of(slots, seed, raw, offsets, gap, low, high, text):
    """The slot of the text ``text[low:high]``, or the empty one where it would be."""
    hashed = seed
    for at in range(low, high):
        hashed = (hashed ^ np.uint64(text[at])) * _FACTOR
    mask = slots.size - 1
    slot = np.int64(mixed(hashed) >> np.uint64(1)) & mask
    while slots[slot] >= 0:
        number = slots[slot]
        first = offsets[number]
        size = offsets[number + 1] - gap - first
        if size == high - low and same_bytes(raw, first, text, low, size):
            break
        slot = (slot + 1) & mask
    return slot


@kernel
def fill_table(slots, seed, raw, offsets, gap):
    """Write the number of every text into its slot; of equal texts the last one's.

    slots : (m,) int32, all -1; m is a power of 2, and more than the texts
    seed : uint64
    raw, offsets : (n_bytes,) uint8, (n + 1,) int64
    Returns the first text that came before: the number of that, and its own; -1 and -1 for none.
    """
    before = again = -1
    for number in range(offsets.size - 1):
        low, high = offsets[number], offsets[number + 1] - gap
        slot = _slot_of(slots, seed, raw, offsets, gap, low, high, raw)
        if slots[slot] >= 0 and again < 0:
            before, again = np.int64(slots[slot]), number
        slots[slot] = number
    return before, again


@kernel
def find_texts(rows, slots, seed, raw, offsets, gap, sought, sought_offsets, sought_gap):
    """rows[k] = the number of text k of ``sought``; -1 if the table does not have it.

    rows : (k,) int64, written
    sought, sought_offsets : (n_bytes,) uint8, (k + 1,) int64
    """
    for k in range(rows.size):
        low, high = sought_offsets[k], sought_offsets[k + 1] - sought_gap
        rows[k] = slots[_slot_of(slots, seed, raw, offsets, gap, low, high, sought)]
