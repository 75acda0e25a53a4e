#!/bin/sh
# numba 0.68.1, llvmlite 0.50.0, NumPy 2.4.6, Python 3.11
#
# np.sum and np.mean of a float32 array run through it with one float32 sum in compiled code; NumPy
# adds in pairs. The sum of ones stops at 2**24 = 16,777,216, where adding 1 no longer changes it,
# and the mean of 20 million ones is 0.84. So a function that is right in NumPy is wrong once it
# has @njit above it, without a warning, for arrays as long as the weights of one embedding table.
#
# Seen:
#     NumPy: sum 20000000, mean 1.00
#     Numba: sum 16777216, mean 0.84
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numba==0.68.1 llvmlite==0.50.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numba
import numpy as np


def sum_and_mean(x):
    return np.sum(x), np.mean(x)


ones = np.ones(20_000_000, np.float32)
plain, compiled = sum_and_mean(ones), numba.njit(sum_and_mean)(ones)
for name, (total, mean) in (("NumPy", plain), ("Numba", compiled)):
    print(f"{name}: sum {total:.0f}, mean {mean:.2f}")
raise SystemExit(plain[0] != 20_000_000 or compiled[0] != 2**24)
PYTHON
