#!/bin/sh
# numba 0.68.1, llvmlite 0.50.0, NumPy 2.4.6, Python 3.11
#
# Python promises that sorted() and list.sort() leave items with equal keys in their order. Numba
# compiles both, with key=, to a quicksort, which does not; the documentation names them as
# supported. From 16 items on, titles with equal scores come in another order than in Python, so a
# ranking with ties changes with @njit.
#
# Seen:
#     Python: [0, 3, 6, 9, ...]
#     Numba:  in order: False
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numba==0.68.1 llvmlite==0.50.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numba


@numba.njit
def third(title):
    return title % 3


@numba.njit
def rank(n):
    return sorted([title for title in range(n)], key=third)


plain, compiled = rank.py_func(40), rank(40)
first, last = plain[:4], [title for title in compiled if title % 3 == 0]
print(f"Python: {first}"[:-1] + ", ...]")
print(f"Numba:  in order: {last == sorted(last)}")
raise SystemExit(plain[:14] != list(range(0, 40, 3)) or last == sorted(last))
PYTHON
