#!/bin/sh
# numba 0.68.1, llvmlite 0.50.0, NumPy 2.4.6, Python 3.11
#
# np.histogram in compiled code finds the bin of a number by a division, and does not compare with
# the edges that it returns. 0.3 goes into the bin that begins at 0.30000000000000004; NumPy puts
# it one bin lower, as the edges say. So the counts and the edges of one call contradict each
# other, just for rounded scores, of which reliability tables are made: three of the nine tenths
# are in a wrong bin.
#
# Seen, the counts of 0.1, 0.2, ..., 0.9, 1.0 in ten bins from 0 to 1:
#     by the edges: [0, 1, 2, 0, 1, 2, 1, 0, 1, 2]
#     NumPy:        [0, 1, 2, 0, 1, 2, 1, 0, 1, 2]
#     Numba:        [0, 1, 1, 1, 1, 1, 1, 1, 1, 2]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numba==0.68.1 llvmlite==0.50.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numba
import numpy as np


def count(scores):
    return np.histogram(scores, 10, (0.0, 1.0))


scores = np.array([float(f"0.{tenth}") for tenth in range(1, 10)] + [1.0])
plain, (counts, edges) = count(scores)[0].tolist(), numba.njit(count)(scores)
above = [int((scores >= edge).sum()) for edge in edges[:-1]] + [0]
by_edges = [above[left] - above[left + 1] for left in range(10)]
print(f"by the edges: {by_edges}\nNumPy:        {plain}\nNumba:        {counts.tolist()}")
raise SystemExit(plain != by_edges or counts.tolist() == by_edges)
PYTHON
