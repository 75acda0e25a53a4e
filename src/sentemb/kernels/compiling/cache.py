"""Compiled kernels on disk: sealed with a digest, loaded only if no other user may write them."""

import contextlib
import hashlib
import os
import pickle
import shutil
import stat
import sys
from pathlib import Path

import llvmlite
import numba

from sentemb.kernels.compiling.ahead import kernel_is_missing, kernel_is_saved
from sentemb.kernels.compiling.numba_internals import CompileResult, NullCache, dumps

_KERNELS = Path(__file__).parents[1]
# Settings of Numba that change the machine code.
_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK")
# Neither follow a symlink nor wait for the other end of a FIFO. Windows knows neither flag.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_SEAL_BYTES = hashlib.sha256().digest_size


def _cache_folder():
    """A folder that only this user may write to; None if there is not one."""
    stamp = _stamp()
    parents = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")]
    with contextlib.suppress(RuntimeError):  # no home folder at all
        parents.append(Path.home() / ".cache")
    for parent in filter(None, parents):
        with contextlib.suppress(OSError):
            if stamp and (folder := _private_folder(Path(parent), "sentemb-kernels", stamp)):
                return folder
    return None


def _stamp():
    """A hash of the sources of all kernels, Python and Numba; None if no source can be read.

    Numba compares only a kernel's own file with its cached code, so the old machine code would
    survive an edit of a helper in another file. With this hash in the folder's name it does not.
    """
    versions = f"{numba.__version__} {llvmlite.__version__} {sys.version}"
    stamp = hashlib.sha256(versions.encode())
    sources = sorted(_KERNELS.rglob("*.py"))
    try:
        for source in sources:
            stamp.update(source.read_bytes())
    except OSError:
        return None
    return stamp.hexdigest()[:16] if sources else None


def _private_folder(folder, *names):
    """The folder ``names`` below ``folder``, made where it is missing; None if others can write."""
    if not folder.is_absolute():  # it would depend on the working directory
        return None
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        folder = folder / name
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
        if not stat.S_ISDIR(status.st_mode) or not _is_private(status):
            return None
    return folder


def _is_private(status):
    """Whether an `os.stat_result` describes something that only this user may write to."""
    if not hasattr(os, "geteuid"):  # Windows, where a profile belongs to its user
        return True
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


CACHE_FOLDER = _cache_folder()


class KernelCache(NullCache):
    """The machine code of the kernel ``function``, one file per signature and processor target.

    Numba's own cache trusts what it reads, and two processes that fill it at once can mix up their
    entries. Here a file starts with the SHA-256 of its name and content. Whatever fails to load is
    deleted and compiled again; whatever fails to be saved is compiled again by the next process.
    The name of ``folder`` tells apart the versions of all kernels.
    """

    def __init__(self, folder, function):
        self._folder = folder
        self._function = function

    @property
    def cache_path(self):
        return str(self._folder)

    def load_overload(self, sig, target_context):
        """The saved `CompileResult`, or None."""
        with contextlib.suppress(Exception):
            target_context.refresh()
            path = self._path(sig, target_context.codegen())
            try:
                return _loaded(path, target_context)
            except FileNotFoundError:
                if kernel_is_missing(path.name):
                    return _loaded(path, target_context)
            except Exception:
                _remove(path)
        return None

    def save_overload(self, sig, result):
        """Save ``result``, a `CompileResult`, if that is possible."""
        with contextlib.suppress(Exception):
            # Addresses of this process are of no use to another one.
            if not result.lifted and not result.library.has_dynamic_globals:
                path = self._path(sig, result.codegen)
                _save_sealed(path, dumps(result._reduce()))
                kernel_is_saved(path.name)

    def _path(self, sig, codegen):
        function = self._function
        settings = [str(getattr(numba.config, name, None)) for name in _SETTINGS]
        code = function.__module__, function.__qualname__, function.__code__.co_code
        code += (_source_elsewhere(function),)
        key = repr((self._folder.name, code, sig, codegen.magic_tuple(), settings))
        digest = hashlib.sha256(key.encode()).hexdigest()[:32]
        return self._folder / f"{function.__name__}-{digest}.kernel"


def _source_elsewhere(function):
    """The source of a kernel that is not in this folder; the stamp has those that are."""
    source = Path(function.__code__.co_filename)
    is_elsewhere = not source.is_relative_to(_KERNELS) and source.is_file()
    return source.read_bytes() if is_elsewhere else b""


def _loaded(path, target_context):
    result = CompileResult._rebuild(target_context, *pickle.loads(_unsealed(path)))
    # Numba calls these functions, which provide the symbols of the kernel, but does not keep them:
    # a kernel compiled now, with this one inside it, would be saved without.
    getattr(result.library, "_reload_init", set()).update(result.reload_init)
    return result


def _seal(path, content):
    """The digest covers the name: a file under the name of another one is damaged."""
    return hashlib.sha256(path.name.encode() + content).digest()


def _unsealed(path):
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | _CAREFULLY)) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or not _is_private(status):
            raise PermissionError(path)
        seal, content = file.read(_SEAL_BYTES), file.read()
    if seal != _seal(path, content):
        raise ValueError(path)
    return content


def _save_sealed(path, content):
    """Write the file in place: one that is cut short fails its check like any damaged one."""
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        try:
            file.write(_seal(path, content) + content)
            file.flush()
        except OSError:  # most likely the disk is full
            _remove(path)
            raise


def _remove(path):
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(path.lstat().st_mode):
            shutil.rmtree(path)
        else:
            path.unlink()
