#!/bin/sh
# NumPy 2.4.6, Python 3.11
#
# == compares an int64 with a uint64 exactly, and so do np.isin and np.setdiff1d. np.intersect1d,
# union1d and setxor1d of the same arrays join them first, and the common type of the two is
# float64, which has 53 bits: ids of 64 bits, such as hashes, that differ in the last digits become
# equal. So the difference of two sets has an id that their intersection has too. pandas yields
# uint64 for hashes and int64 for ids that it reads from a file.
#
# Seen:
#     ==:          [False]
#     isin:        [False]
#     intersect1d: [1.1529215e+18]
#     setdiff1d:   [1152921504606846977]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np

hashes, ids = np.array([2**60 + 1], np.uint64), np.array([2**60], np.int64)
equal, is_in = hashes == ids, np.isin(hashes, ids)
both, only = np.intersect1d(hashes, ids), np.setdiff1d(hashes, ids)
print(f"==:          {equal}\nisin:        {is_in}\nintersect1d: {both}\nsetdiff1d:   {only}")
raise SystemExit(bool(equal[0] or is_in[0] or len(both) != 1 or len(only) != 1))
PYTHON
