"""Two names on a disk, exchanged in one step: a call of Linux that Python does not offer."""

import ctypes
import os

from sentemb.system.paths import AnyPath

# Paths are relative to the current folder; the two names are exchanged.
_HERE, _EXCHANGE = -100, 2


def exchange(first: AnyPath, second: AnyPath) -> bool:
    """Exchange the names of two files or folders in one step; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux
        return False
    names = os.fsencode(first), os.fsencode(second)
    done: int = rename(_HERE, names[0], _HERE, names[1], _EXCHANGE)
    return done == 0
