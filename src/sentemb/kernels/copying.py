"""Copies of rows."""

from sentemb.kernels.compiling.jit import inlined_kernel


@inlined_kernel
def copy_row(out, row):
    """out = row, element by element.

    ``out[:] = row`` would do the same, but Numba compiles two seconds for it: the arrays might not
    fit, and the error names their shapes, so the code that turns numbers into text comes with it.

    out, row : (n,) or larger, of one dtype
    """
    for j in range(out.size):
        out[j] = row[j]
