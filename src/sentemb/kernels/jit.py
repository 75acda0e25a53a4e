"""The one decorator of all kernels: compiled on first use, cached when a folder can be written."""

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

import numba

# `contract` lets a multiplication and an addition become one fused instruction. Nothing else of
# fastmath: NaN must stay visible, and sums keep their order.
_OPTIONS = {"nogil": True, "fastmath": {"contract"}, "error_model": "numpy"}
# `reassoc` lets a row be summed in several vector lanes; the order is fixed when compiled.
_SUMMING_OPTIONS = _OPTIONS | {"fastmath": {"contract", "reassoc"}}


def _cache_folder():
    """A writable folder named after the kernels' sources, or None.

    Numba compares only a kernel's own file with its cached code, so after an edit of a helper in
    another file the old machine code would run on. With the hash of all sources in the folder's
    name that cannot happen.
    """
    sources = sorted(Path(__file__).parent.glob("*.py"))
    stamp = hashlib.sha256(numba.__version__.encode())
    for source in sources:
        stamp.update(source.read_bytes())
    places = [os.environ.get("NUMBA_CACHE_DIR")]
    with contextlib.suppress(RuntimeError):  # no home folder at all
        places.append(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    for place in filter(None, places):
        folder = Path(place) / "sentemb" / f"kernels-{stamp.hexdigest()[:16]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    return None


CACHE_FOLDER = _cache_folder()


def kernel(function):
    """Compile ``function`` with Numba when it is first called with arrays of some dtype.

    No signatures are given, so nothing compiles at import. Kernels release the global interpreter
    lock; they check nothing, callers do.
    """
    return _compiled(function, _OPTIONS)


def summing_kernel(function):
    """As `kernel`, for functions that spend their time in sums over a row, in whatever order."""
    return _compiled(function, _SUMMING_OPTIONS)


def _compiled(function, options):
    dispatcher = numba.njit(**options)(function)
    if CACHE_FOLDER is not None:
        before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(CACHE_FOLDER)
        try:
            dispatcher.enable_caching()
        finally:
            numba.config.CACHE_DIR = before
    return dispatcher
