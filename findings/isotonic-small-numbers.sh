#!/bin/sh
# scikit-learn 1.9.1, NumPy 2.4.6, Python 3.11
#
# IsotonicRegression takes two float32 inputs for equal if they are less than 0.000001 apart,
# whatever their size, and fits one mean to them. So scores such as probabilities of one title of a
# million are all one point, and the calibrated value of each is the mean of the labels; nothing
# warns. Only the order of the inputs should count: the same scores as float64, or times a million,
# fit exactly.
#
# Seen:
#     float64:                  [0. 0. 1. 1.]
#     float32:                  [0.5 0.5 0.5 0.5]
#     float32, times a million: [0. 0. 1. 1.]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-learn==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from sklearn.isotonic import IsotonicRegression

scores, labels = np.array([1e-7, 2e-7, 3e-7, 4e-7]), np.array([0, 0, 1, 1])
small = scores.astype(np.float32)
fits = [IsotonicRegression().fit_transform(x, labels) for x in (scores, small, small * 1_000_000)]
named = ("float64:", "float32:", "float32, times a million:")
for name, fit in zip(named, fits, strict=True):
    print(f"{name:25} {fit}")
raise SystemExit([fit.tolist() for fit in fits] != [[0, 0, 1, 1], [0.5] * 4, [0, 0, 1, 1]])
PYTHON
