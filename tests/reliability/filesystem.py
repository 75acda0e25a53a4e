"""Faults of the file system: the n-th call kills the process or fails.

Calls are counted where Python makes them: whatever opens for writing, makes, renames, removes,
locks, flushes or changes the mode of something, and the writing of a safetensors file.
"""

import builtins
import contextlib
import errno
import io
import os
import pickle
import select
import signal
from collections.abc import Callable
from unittest import mock

from sentemb.models.files import tensor_files

try:
    import fcntl
except ImportError:
    fcntl = None

# What may fail, and how.
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES, errno.ENAMETOOLONG)
_OF_OS = ("open", "replace", "unlink", "rmdir", "mkdir", "fsync", "chmod", "chown", "listdir")
_SECONDS = 60


class Faults:
    """Count the calls of the file system, and let ``fault(name)`` happen at one of them.

    Parameters
    ----------
    at : int or None
        Number of the call, from 0; None only counts.
    fault : function of the call's name
        Called before the call; what it raises the call raises.

    Attributes
    ----------
    names : list of str
        The calls so far.
    """

    def __init__(self, at: int | None = None, fault: Callable[[str], None] | None = None):
        self._at, self._fault = at, fault
        self.names = []

    def __enter__(self):
        self._stack = contextlib.ExitStack()
        for name in _OF_OS:
            self._patch(os, name)
        if fcntl is not None:
            self._patch(fcntl, "flock")
        for module in (io, builtins):
            self._patch(module, "open", counts=_opens_for_writing)
        self._patch(tensor_files, "_save_file", half=True)
        return self

    def __exit__(self, *exception):
        self._stack.close()

    def _patch(self, module, name, counts=lambda *a, **k: True, half=False):
        real = getattr(module, name)

        def call(*arguments, **settings):
            if counts(*arguments, **settings):
                self._count(name)
            if half:
                # Once more in the middle: with half of the file on the disk.
                real(*arguments, **settings)
                path = arguments[1]
                size = os.path.getsize(path)
                os.truncate(path, size // 2)
                self._count(f"half of {name}")
            return real(*arguments, **settings)

        self._stack.enter_context(mock.patch.object(module, name, call))

    def _count(self, name):
        self.names.append(name)
        if len(self.names) - 1 == self._at:
            self._fault(name)


def _opens_for_writing(file, mode="r", *rest, **settings):
    return isinstance(file, str | bytes | os.PathLike) and set(mode) & set("wax+") != set()


def kill(name):
    """The fault that ends the process at once."""
    os.kill(os.getpid(), signal.SIGKILL)


def failure(number: int) -> Callable[[str], None]:
    """The fault that makes a call fail with ``number``, an errno."""

    def fail(name):
        raise OSError(number, os.strerror(number))

    return fail


def in_a_child(function: Callable[[], object], at: int | None = None):
    """Call ``function`` in a forked child that is killed at call ``at`` of the file system.

    Returns
    -------
    calls : int or None
        How many calls it made; None if it was killed.
    result
        What ``function`` returned.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(_SECONDS)
            os.close(reader)
            with Faults(at, kill) as faults:
                result = function()
            with open(writer, "wb") as file:
                pickle.dump((len(faults.names), result), file)
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    _, status = os.waitpid(child, 0)
    if said:
        return pickle.loads(said)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and at is not None:
        return None, None
    raise RuntimeError(f"the child ended with status {status}, at call {at}")


def in_a_child_for(function: Callable[[], object], seconds: float) -> bool:
    """Call ``function`` in a forked child that is killed after some seconds; whether it was."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            function()
            code = 0
        finally:
            os._exit(code)
    os.close(writer)
    select.select([reader], [], [], seconds)  # at its end the child closes the pipe
    os.close(reader)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return True
    if status:
        raise RuntimeError(f"the child ended with status {status}")
    return False
