"""Operations on arrays that fit in a cache, where NumPy would make temporary arrays."""

from sentemb.kernels.jit import kernel

# Columns that are added up together: the sums stay in the fastest cache.
_COLUMNS = 2048


@kernel
def sum_parts(out, parts):
    """out = the sum of the rows of ``parts``, in their order: (n,) and (n_parts, n) float."""
    for low in range(0, out.size, _COLUMNS):
        o, first = out[low : low + _COLUMNS], parts[0, low : low + _COLUMNS]
        for j in range(o.size):
            o[j] = first[j]
        for part in range(1, len(parts)):
            row = parts[part, low : low + _COLUMNS]
            for j in range(o.size):
                o[j] += row[j]


@kernel
def take_rows(out, rows, index):
    """out[k] = rows[index[k]] for every k: (n, width), (m, width) float and (n,) int."""
    for k in range(index.size):
        o, row = out[k], rows[index[k]]
        for j in range(o.size):
            o[j] = row[j]


@kernel
def equal_shares(edges, offsets, of_a_row):
    """Cut rows into parts of about equal cost, that of a row being ``of_a_row`` plus its entries.

    Part c is the rows from ``edges[c]`` to ``edges[c + 1]``.

    Parameters
    ----------
    edges : (n_parts + 1,) int64, written
    offsets : (n_rows + 1,) int64
        The entries of each row.
    of_a_row : int
        At least 1.
    """
    n_rows, n_parts = offsets.size - 1, edges.size - 1
    whole = offsets[n_rows] + of_a_row * n_rows
    for part in range(edges.size):
        share = whole * part // n_parts
        low, high = 0, n_rows
        while low < high:
            middle = (low + high) // 2
            if offsets[middle] + of_a_row * middle < share:
                low = middle + 1
            else:
                high = middle
        edges[part] = low


@kernel
def all_below(array, limit):
    """Whether the absolute values of (n,) float are all below ``limit``; not if one is NaN."""
    above = 0
    for j in range(array.size):
        above += not abs(array[j]) < limit
    return above == 0


@kernel
def scatter_rows(out, column, index, source, rows):
    """out[index[k], column:] = source[rows[k]] for every k.

    out : (n, at least column + width) float; source : (m, width) float
    index, rows : (k,) int64
    """
    for k in range(index.size):
        o, s = out[index[k], column : column + source.shape[1]], source[rows[k]]
        for j in range(o.size):
            o[j] = s[j]
