"""Numba kernels over arrays, one file per recursion: no classes, no input or output, no checks."""
