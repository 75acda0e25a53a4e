"""The decorator of all kernels: compiled on first use, cached if a folder can be used."""

import contextlib
import functools
import gc
import warnings
from collections.abc import Callable
from typing import Any

import numba

from sentemb.errors import SentembError

if numba.config.DISABLE_JIT:  # the functions of Numba that kernels call would not compile either
    raise SentembError(
        "NUMBA_DISABLE_JIT is set, and the kernels need the compiler of Numba; unset it"
    )

try:
    from sentemb.kernels.compiling.cache import CACHE_FOLDER, KernelCache
except ImportError:  # this Numba has moved what the cache builds on
    CACHE_FOLDER = None
try:
    from sentemb.kernels.compiling.inner import InnerCompiler
except ImportError:  # likewise: an inner kernel is compiled as any other
    InnerCompiler = None

# `contract` lets a multiplication and an addition become one fused instruction. Nothing else of
# fastmath: NaN must stay visible, and sums keep their order.
# A wrapper for calls from C would be compiled and never called.
_OPTIONS = {
    "nogil": True,
    "fastmath": {"contract"},
    "error_model": "numpy",
    "no_cfunc_wrapper": True,
}
# `reassoc` lets a row be summed in as many vector lanes as the processor has.
_SUMMING_OPTIONS = _OPTIONS | {"fastmath": {"contract", "reassoc"}}
# Nothing is fused or reordered, wherever LLVM puts the code.
_STRICT_OPTIONS = _OPTIONS | {"fastmath": False}
# The wrapper for calls from Python costs 0.02 s to compile.
_NO_WRAPPER = {"no_cpython_wrapper": True}


def kernel(function):
    """Compile ``function`` with Numba when it is first called with arrays of some dtype.

    No signatures are given, so nothing compiles at import. Kernels release the global interpreter
    lock. They do not check their arguments; callers do.
    """
    return _compiled(function, _OPTIONS)


def summing_kernel(function):
    """As `kernel`, for sums whose last bits reach no result; for all others see `sums`."""
    return _compiled(function, _SUMMING_OPTIONS)


def strict_kernel(function):
    """As `kernel`, for sums whose bits must be the same in every kernel that calls it."""
    return _compiled(function, _STRICT_OPTIONS)


def inner_kernel(function):
    """As `kernel`, for functions that kernels alone call; see `sentemb.kernels.compiling.inner`.

    A call from Python would end the process.
    """
    return _inner(function, _OPTIONS)


def inner_strict_kernel(function):
    """As `inner_kernel`, with sums as in a `strict_kernel`."""
    return _inner(function, _STRICT_OPTIONS)


def symbol_kernel(function):
    """As `kernel`, for functions that machine code calls by their address."""
    return _compiled(function, _OPTIONS | _NO_WRAPPER)


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


def _inner(function, options):
    return _compiled(function, options | _NO_WRAPPER, InnerCompiler)


def _compiled(function, options, compiler=None):
    dispatcher = numba.njit(pipeline_class=compiler, **options)(function)
    compile_signature = dispatcher.compile

    def compile_uncollected(signature):
        if CACHE_FOLDER is None:
            _warn_of_no_cache()
        with _no_collection():
            return compile_signature(signature)

    dispatcher.compile = compile_uncollected
    call_template = dispatcher.get_call_template
    # A counter that starts at 0 is a constant when Numba first looks at a call, and a number when
    # it looks again: without this, the function would be compiled for both.
    dispatcher.get_call_template = lambda args, kws: call_template(
        tuple(numba.types.unliteral(arg) for arg in args), kws
    )
    if CACHE_FOLDER is not None and compiler is None:
        dispatcher._cache = KernelCache(CACHE_FOLDER, function)
    return dispatcher


@functools.cache
def _warn_of_no_cache():
    """Say once why every process begins with seconds of compiling."""
    warnings.warn(
        "compiled kernels cannot be kept, so every start compiles them again, which takes seconds; "
        "set NUMBA_CACHE_DIR to a folder that you alone can write to",
        stacklevel=3,
    )


@contextlib.contextmanager
def _no_collection():
    """Compiling makes a million objects that stay: to look through them is a tenth of the time.

    Nor does the next collection look through them: they join the oldest generation. This takes a
    freeze and its end, which would end a freeze of the program too, so there it is left out.

    A second thread that comes meanwhile leaves the collector as it finds it, and the first one
    turns it on again.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            if not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()
