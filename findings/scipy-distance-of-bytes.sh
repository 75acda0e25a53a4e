#!/bin/sh
# SciPy 1.17.1, NumPy 2.4.6, Python 3.11
#
# scipy.spatial.distance.euclidean subtracts in the type of its arguments. Of vectors that are
# quantised to uint8 the differences wrap at 256, without a warning: 10 - 250 is 16. cdist and
# sqeuclidean turn the same vectors into float64 first. So the square of euclidean is not
# sqeuclidean, and vectors that are far apart are near. minkowski and chebyshev do the same.
#
# Seen:
#     euclidean: 240.5
#     cdist: 339.4
#     the root of sqeuclidean: 339.4
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from scipy.spatial import distance

u, v = np.array([[250, 10], [10, 250]], np.uint8)
alone, among = distance.euclidean(u, v), distance.cdist([u], [v])[0, 0]
root = distance.sqeuclidean(u, v) ** 0.5
print(f"euclidean: {alone:.1f}\ncdist: {among:.1f}\nthe root of sqeuclidean: {root:.1f}")
raise SystemExit(bool(alone > 300 or among != root or root < 300))
PYTHON
