"""The decorator of all kernels: compiled on first use, cached if a folder can be used."""

import contextlib
import gc
from collections.abc import Callable
from typing import Any

import numba

try:
    from sentemb.kernels.cache import CACHE_FOLDER, KernelCache
except ImportError:  # this Numba has moved what the cache builds on
    CACHE_FOLDER = None

# `contract` lets a multiplication and an addition become one fused instruction. Nothing else of
# fastmath: NaN must stay visible, and sums keep their order.
# A wrapper for calls from C would be compiled and never called.
_OPTIONS = {
    "nogil": True,
    "fastmath": {"contract"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
# `reassoc` lets a row be summed in several vector lanes; the order is fixed when compiled.
_SUMMING_OPTIONS = _OPTIONS | {"fastmath": {"contract", "reassoc"}}
# Nothing is fused or reordered, wherever LLVM puts the code.
_STRICT_OPTIONS = _OPTIONS | {"fastmath": False}


def kernel(function):
    """Compile ``function`` with Numba when it is first called with arrays of some dtype.

    No signatures are given, so nothing compiles at import. Kernels release the global interpreter
    lock. They do not check their arguments; callers do.
    """
    return _compiled(function, _OPTIONS)


def summing_kernel(function):
    """As `kernel`, for functions that spend their time in sums over a row, summed in any order."""
    return _compiled(function, _SUMMING_OPTIONS)


def strict_kernel(function):
    """As `kernel`, for sums whose bits must be the same in every kernel that calls it."""
    return _compiled(function, _STRICT_OPTIONS)


def inner_kernel(function):
    """As `kernel`, for functions that kernels alone call: without the wrapper for Python.

    A wrapper costs 0.02 s to compile. A call from Python without one would end the process.
    """
    return _compiled(function, _OPTIONS | {"no_cpython_wrapper": True})


def inlined_kernel(function):
    """As `kernel`, for functions of a few lines, copied into the kernels that call them.

    Each compiled function costs a tenth of a second or more, and again for arrays in another
    layout; a copy costs a part of that.
    """
    return _compiled(function, _OPTIONS | {"inline": "always"})


def code_for(dispatcher: Callable[..., Any], arguments: tuple[Any, ...]) -> Callable[..., Any]:
    """A kernel compiled for arguments of these types, which later calls must have too.

    A call of the kernel itself looks at the types of all its arguments: 0.4 us for eighteen.
    """
    types = tuple(map(numba.typeof, arguments))
    return dispatcher.compile(types)  # type: ignore[attr-defined, no-any-return]


def _compiled(function, options):
    dispatcher = numba.njit(**options)(function)
    compile_signature = dispatcher.compile

    def compile_uncollected(signature):
        with _no_collection():
            return compile_signature(signature)

    dispatcher.compile = compile_uncollected
    call_template = dispatcher.get_call_template
    # A counter that starts at 0 is a constant when Numba first looks at a call, and a number when
    # it looks again: without this, the function would be compiled for both.
    dispatcher.get_call_template = lambda args, kws: call_template(
        tuple(numba.types.unliteral(arg) for arg in args), kws
    )
    if CACHE_FOLDER is not None:
        dispatcher._cache = KernelCache(CACHE_FOLDER, function)
    return dispatcher


@contextlib.contextmanager
def _no_collection():
    """Compiling makes a million objects that stay: to look through them is a tenth of the time.

    A second thread that comes meanwhile leaves the collector as it finds it, and the first one
    turns it on again.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
