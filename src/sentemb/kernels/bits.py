"""Distinct numbers in ascending order: one bit for each, set as it occurs, then read in order.

No branch depends on the numbers, so the processor predicts all of them.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from sentemb.kernels.compiling.jit import inner_kernel, kernel


def bits_for(limit: int) -> NDArray[np.uint64]:
    """The bits for numbers below ``limit``, none set: (n,) uint64."""
    return np.zeros(-(-limit // 64), np.uint64)


@intrinsic
def _lowest(typingctx, word):
    """The number of the lowest bit that is set in a uint64 other than 0."""
    signature = types.int64(types.uint64)

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return signature, codegen


@inner_kernel
def set_bit(bits, number):
    """Set the bit of ``number``."""
    bits[number >> 6] |= np.uint64(1) << np.uint64(number & 63)


@inner_kernel
def take_numbers(bits, rank_of, numbers):
    """Read the numbers whose bits are set, clear the bits, and return how many there are.

    bits : (n,) uint64, left without any set
    rank_of : (limit,) int32, written: the index of each number among the numbers
    numbers : (at least as many as there are bits set,) int32, written, ascending
    """
    count = 0
    for b in range(bits.size):
        left = bits[b]
        bits[b] = 0
        while left != 0:
            number = 64 * b + _lowest(left)
            left &= left - np.uint64(1)
            numbers[count] = number
            rank_of[number] = count
            count += 1
    return count


@kernel
def renumber(numbers, bits, rank_of):
    """The distinct ``numbers`` in ascending order, and the index of each number among them.

    Both are int32, (k,) and (n,).

    numbers : (n,) int32, each below ``rank_of.size``
    bits, rank_of : (m,) uint64, (limit,) int32, scratch: the bits are clear and left so, the ranks
        arbitrary
    """
    for number in numbers:
        set_bit(bits, number)
    distinct = np.empty(numbers.size, np.int32)
    count = take_numbers(bits, rank_of, distinct)
    ranks = np.empty(numbers.size, np.int32)
    for k in range(numbers.size):
        ranks[k] = rank_of[numbers[k]]
    return distinct[:count].copy(), ranks
