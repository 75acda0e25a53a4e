"""What a step does with arrays that fit in a cache, where NumPy would make temporary ones."""

from sentemb.kernels.jit import kernel


@kernel
def sum_parts(out, parts):
    """out = the sum of the rows of ``parts``, in their order: (n,) and (n_parts, n) float."""
    first = parts[0]
    for j in range(out.size):
        out[j] = first[j]
    for part in range(1, len(parts)):
        row = parts[part]
        for j in range(out.size):
            out[j] += row[j]


@kernel
def all_below(array, limit):
    """Whether the absolute values of (n,) float are all below ``limit``; not if one is NaN."""
    above = 0
    for j in range(array.size):
        above += not abs(array[j]) < limit
    return above == 0


@kernel
def place_rows(out, column, places, source, rows):
    """out[places[k], column:] = source[rows[k]] for every k.

    out : (n, at least column + width) float; source : (m, width) float
    places, rows : (k,) int64
    """
    for k in range(places.size):
        o, s = out[places[k], column : column + source.shape[1]], source[rows[k]]
        for j in range(o.size):
            o[j] = s[j]
