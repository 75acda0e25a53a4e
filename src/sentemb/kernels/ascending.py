"""Search in numbers that ascend."""

from sentemb.kernels.compiling.jit import inner_kernel


@inner_kernel
def first_from(numbers, low, end, least):
    """The index of the first of ``numbers[low:end]``, ascending, that is ``least`` or more.

    Where it is near ``low``, few of them are looked at. ``end`` if there is none.
    """
    step = 1
    while low + step <= end and numbers[low + step - 1] < least:
        low += step
        step *= 2
    high = min(low + step - 1, end)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
