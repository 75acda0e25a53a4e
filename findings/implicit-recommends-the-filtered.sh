#!/bin/sh
# implicit 0.7.3, SciPy 1.17.1, NumPy 2.4.6, Python 3.11
#
# recommend(filter_already_liked_items=True) promises not to return items that the user has. If
# fewer than N others are left, they come back at the end with the lowest float32 as score; past
# the number of all items, item 0 fills the list, with a score of 0.0, which is above that. Whoever
# sorts by score, or takes the ids alone, recommends what the user has. faiss fills up with -1.
#
# Seen:
#     ten of six items asked for, of which 0 and 1 are filtered
#     items from the fifth on: [1, 0, 0, 0, 0, 0]
#     their scores: -3.4e+38 -3.4e+38 0.0 0.0 0.0 0.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet implicit==0.7.3 scipy==1.17.1 numpy==2.4.6
"$folder/venv/bin/python" - 2> /dev/null <<'PYTHON'
import numpy as np
from implicit.als import AlternatingLeastSquares
from scipy.sparse import csr_matrix

liked = csr_matrix(np.eye(4, 6, dtype=np.float32) + np.eye(4, 6, 1, dtype=np.float32))
model = AlternatingLeastSquares(factors=2, iterations=1, random_state=0)
model.fit(liked, show_progress=False)
items, scores = model.recommend(0, liked[0], N=10, filter_already_liked_items=True)
print("ten of six items asked for, of which 0 and 1 are filtered")
print(f"items from the fifth on: {items[4:].tolist()}")
print("their scores:", *(f"{score:.2g}" if score else score for score in scores[4:]))
filtered = sorted(items[4:6].tolist()) == [0, 1] and bool((scores[4:6] < -1e38).all())
raise SystemExit(not filtered or bool(items[6:].any() or scores[6:].any()))
PYTHON
