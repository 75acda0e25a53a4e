"""Numbers for keys in order of first appearance: a hash table with open addressing."""

import numpy as np

from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.dropout import mixed


@kernel
def number_keys(keys, count, slots, seed, sought, numbers):
    """Give every key its number; a new key gets the next one. Returns how many keys there are now.

    keys : (at least count + k, width) uint64, written: the ``count`` known keys by their numbers;
        new ones are appended
    slots : (m,) int32, written: the number of a key, or -1; m is a power of 2 and more than
        ``count`` + k; a key is in the first slot from its own on that was free
    seed : uint64, decides the slot of a key, so that no log can be written whose keys share one
    sought, numbers : (k, width) uint64, (k,) int32, written
    """
    mask = slots.size - 1
    for k in range(len(sought)):
        slot = np.int64(mixed(sought[k, 0] ^ seed) >> np.uint64(1)) & mask
        while slots[slot] >= 0:
            number = slots[slot]
            is_same = True
            for j in range(keys.shape[1]):
                is_same &= keys[number, j] == sought[k, j]
            if is_same:
                break
            slot = (slot + 1) & mask
        if slots[slot] < 0:
            slots[slot] = count
            for j in range(keys.shape[1]):
                keys[count, j] = sought[k, j]
            count += 1
        numbers[k] = slots[slot]
    return count


@kernel
def fill_slots(keys, count, slots, seed):
    """Write the numbers of ``count`` distinct keys into empty slots; see `number_keys`."""
    mask = slots.size - 1
    for number in range(count):
        slot = np.int64(mixed(keys[number, 0] ^ seed) >> np.uint64(1)) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = number
