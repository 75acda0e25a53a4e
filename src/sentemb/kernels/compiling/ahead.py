"""On the first start, a second process compiles kernels while this one compiles others.

Both fill the cache on the disk, so what one has compiled the other loads. The second process is a
fork that begins where the first kernel is missing: with a warm cache there is none.
"""

import _thread
import contextlib
import ctypes
import gc
import mmap
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator

from sentemb.system.parallel import available_threads

NOTE = "compiling kernels, once; this takes some seconds"

# Of Linux: the signal that a process receives when the one that has forked it ends.
_PR_SET_PDEATHSIG = 1
_MOST_BYTES = 1 << 18  # of names of kernels
_SECONDS_UNTIL_AGAIN = 0.005


class _Ahead:
    """The second process of a body.

    Parameters
    ----------
    work, note, meanwhile
        As for `compiling_ahead`.
    """

    def __init__(
        self,
        work: Callable[[], object],
        note: Callable[[str], None] | None,
        meanwhile: Callable[[], object] | None,
    ) -> None:
        self._work: Callable[[], object] | None = work
        self._note, self._meanwhile = note, meanwhile
        self._child: int | None = None
        # Lines that the child writes: + and a kernel that it compiles, - and one that it has saved.
        self._names = mmap.mmap(-1, _MOST_BYTES)

    def missing(self, name: str) -> None:
        """Start the process if a kernel is missing for the first time; wait for what it compiles.

        Parameters
        ----------
        name : str
            The file of the kernel in the cache.
        """
        if self._child == 0:
            self._names.write(f"+{name}\n".encode())
            return
        work, self._work = self._work, None
        if work is not None:
            if self._note is not None:
                self._note(NOTE)
            if _may_fork():
                self._fork(work)
                if self._child and self._meanwhile is not None:
                    self._meanwhile()
        if self._names.find(f"+{name}\n".encode()) >= 0:
            while self._names.find(f"-{name}\n".encode()) < 0 and self._runs():
                time.sleep(_SECONDS_UNTIL_AGAIN)

    def saved(self, name: str) -> None:
        """Let the other process load the kernel ``name``."""
        if self._child == 0:
            self._names.write(f"-{name}\n".encode())

    def _fork(self, work: Callable[[], object]) -> None:
        with warnings.catch_warnings(), contextlib.suppress(OSError):  # no more processes
            # Python 3.12 and later warn of threads that are not Python's: those of the BLAS, which
            # prepares for a fork.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._child = os.fork()
        if self._child == 0:
            try:
                _detach()
                work()
            finally:
                os._exit(0)  # what the caller would do is for its own process alone

    def _runs(self) -> bool:
        """Whether the process has not ended."""
        if self._child is not None:
            with contextlib.suppress(OSError):
                if os.waitpid(self._child, os.WNOHANG) == (0, 0):
                    return True
            self._child = None
        return False

    def end(self) -> None:
        """End the process."""
        self._work = None
        if self._child is not None:
            with contextlib.suppress(OSError):
                os.kill(self._child, signal.SIGKILL)
                os.waitpid(self._child, 0)
            self._child = None


_ahead: _Ahead | None = None


@contextlib.contextmanager
def compiling_ahead(
    work: Callable[[], object],
    note: Callable[[str], None] | None = None,
    meanwhile: Callable[[], object] | None = None,
) -> Iterator[None]:
    """If a kernel is missing in the body, call ``work`` in a process of its own, which forks there.

    Parameters
    ----------
    work : function
        It calls kernels that the body needs later, on data of any size. Whether it fails does not
        matter, nor what it prints. It ends with the body.
    note : function of a str, optional
        Called if a kernel is missing.
    meanwhile : function, optional
        Called in this process once the other one has begun. It calls kernels that the body needs
        after those of ``work``, so that the body does not wait first and compile then.
    """
    global _ahead
    _ahead = _Ahead(work, note, meanwhile)
    try:
        yield
    finally:
        _ahead.end()
        _ahead = None


def kernel_is_missing(name: str) -> bool:
    """Whether to look for the kernel ``name`` again: another process may have saved it now."""
    if _ahead is None:
        return False
    _ahead.missing(name)
    return True


def kernel_is_saved(name: str) -> None:
    """The kernel ``name`` is in the cache."""
    if _ahead is not None:
        _ahead.saved(name)


def _may_fork() -> bool:
    """Whether a second process may run and would have a processor of its own.

    Elsewhere than on Linux, libraries of the system may not survive a fork. A thread does not run
    in the child: a lock that it held would never be released.
    """
    return sys.platform == "linux" and not _thread._count() and available_threads() > 1


def _detach() -> None:
    """Leave the terminal, the streams and the clean-up to the process that has forked."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    # Locks on files are shared: they must not outlive a killed process.
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    gc.disable()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
