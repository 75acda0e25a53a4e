#!/bin/sh
# numba 0.68.1, llvmlite 0.50.0, NumPy 2.4.6, Python 3.11
#
# numba.config.DISABLE_JIT counts when a function is decorated, and again when it is first called
# and compiled. A function that was decorated while it was 0 and is first called while it is 1 still
# compiles if it is simple. If it calls np.sort or another part of Numba that is written with njit
# itself, it neither compiles nor runs as Python: that part is a plain function then, which the
# compiler cannot call. So it is not enough to turn the setting off around njit, whether
# NUMBA_DISABLE_JIT=1 turned it on or the program. The message names neither setting nor function.
#
# Seen:
#     3
#     AttributeError: 'function' object has no attribute 'get_call_template'
#     [1. 2. 3.]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numba==0.68.1 llvmlite==0.50.0 numpy==2.4.6
NUMBA_DISABLE_JIT=1 "$folder/venv/bin/python" - <<'PYTHON'
import numba
import numpy as np

numba.config.DISABLE_JIT = 0


@numba.njit
def add_one(x):
    return x + 1


@numba.njit
def in_order(x):
    return np.sort(x)


numba.config.DISABLE_JIT = 1
numbers = np.array([3.0, 1.0, 2.0])
print(add_one(2))
try:
    in_order(numbers)
except AttributeError as error:
    print(f"AttributeError: {error}")
    changed = "get_call_template" not in str(error)
else:
    changed = True
numba.config.DISABLE_JIT = 0
print(numba.njit(in_order.py_func)(numbers))
raise SystemExit(changed)
PYTHON
