#!/bin/sh
# scikit-learn 1.9.1, SciPy 1.17.1, NumPy 2.4.6, Python 3.11
#
# In a sparse matrix of SciPy an entry may occur more than once; its value is the sum, and SciPy's
# example of a term-document matrix, which appends the words as they come, is built on that.
# normalize() squares each part on its own, and so divides by a wrong length: the cosine of a row
# with itself is 1.82. SciPy's own norm sums first. sum_duplicates() before normalize() helps.
#
# Seen:
#     sparse: [[1.279 0.426]], cosine with itself 1.82
#     dense:  [[0.949 0.316]], cosine with itself 1.00
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet scikit-learn==1.9.1 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

words, weights = np.array([0, 0, 1]), np.array([3.0, 3.0, 2.0])
sparse = csr_array((weights, words, np.array([0, 3])), shape=(1, 2))
rows = normalize(sparse).toarray(), normalize(sparse.toarray())
cosines = [float((row @ row.T)[0, 0]) for row in rows]
for name, row, cosine in zip(("sparse:", "dense: "), rows, cosines, strict=True):
    print(f"{name} {row.round(3)}, cosine with itself {cosine:.2f}")
raise SystemExit(not (cosines[0] > 1.5 and abs(cosines[1] - 1) < 1e-9))
PYTHON
