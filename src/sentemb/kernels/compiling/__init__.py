"""Decorators of kernels, the cache of machine code, and the private names of Numba.

===========================  ====================================================================
decorator of `jit`           when
===========================  ====================================================================
``kernel``                   Python calls it
``strict_kernel``            its bits must be the same in every kernel that contains it
``summing_kernel``           it sums numbers whose last bits reach no result
``inner_kernel``             kernels alone call it: no machine code of its own
``inner_strict_kernel``      both of an inner and of a strict kernel
``inlined_kernel``           a few lines, copied into the kernels that call it
``symbol_kernel``            machine code calls it by its address; see `symbols`
===========================  ====================================================================
"""
