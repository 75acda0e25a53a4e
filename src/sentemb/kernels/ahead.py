"""On the first start, a second process compiles kernels while this one compiles others.

Both fill the cache on the disk, so what one has compiled the other loads. The second process is a
fork that begins where the first kernel is missing: with a warm cache there is none.
"""

import _thread
import contextlib
import gc
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator

from sentemb.system.parallel import available_threads

# What the body of `compiling_ahead` has not started yet, and the process that it has started.
_work: Callable[[], object] | None = None
_child: int | None = None


@contextlib.contextmanager
def compiling_ahead(work: Callable[[], object]) -> Iterator[None]:
    """If a kernel is missing in the body, call ``work`` in a process of its own, which forks there.

    Parameters
    ----------
    work : function
        It calls kernels that the body needs later, on data of any size. Whether it fails does not
        matter, nor what it prints. It ends with the body.
    """
    global _work
    _work = work
    try:
        yield
    finally:
        _work = None
        _end_child()


def kernel_is_missing() -> None:
    """Start the work that waits, if this process may fork."""
    global _work, _child
    work, _work = _work, None
    # Elsewhere the libraries of the system may not survive a fork. A thread that holds a lock does
    # not run in the child, and would never release it.
    if (
        work is None
        or sys.platform != "linux"
        or _thread._count()
        or available_threads() == 1
        or _child is not None
    ):
        return
    with warnings.catch_warnings(), contextlib.suppress(OSError):  # no more processes
        # Python 3.12 and later warn of threads that are not theirs: those of the BLAS, which
        # prepares for a fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        _child = os.fork()
    if _child == 0:
        _work_and_exit(work)


def _work_and_exit(work: Callable[[], object]) -> None:
    """Never return: what the caller would do is for its own process alone."""
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        gc.disable()  # objects of the caller may have to be tidied up, once
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        work()
    finally:
        os._exit(0)


def _end_child() -> None:
    global _child
    child, _child = _child, None
    if child is not None:
        with contextlib.suppress(OSError):
            os.kill(child, signal.SIGKILL)
        with contextlib.suppress(OSError):
            os.waitpid(child, 0)
