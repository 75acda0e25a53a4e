#!/bin/sh
# usearch 2.26.6, NumPy 2.4.6, Python 3.11
#
# search() of several queries returns arrays of k columns. Where an index has fewer than k vectors,
# the rest of `keys` is 0, a valid key and the first of everybody who counts from 0; the distance
# beside it is NaN. So the hits by `keys` include title 0, although it is not in the index. A
# search of one query cuts its arrays to what was found. How many of a row are hits is in `counts`.
# faiss fills with -1.
#
# Seen, of an index with the keys 5 and 6:
#     one query:   [5 6]
#     two queries: [[5, 6, 0, 0], [6, 5, 0, 0]]
#     is key 0 in the index: False
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet usearch==2.26.6 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from usearch.index import Index

vectors = np.eye(2, dtype=np.float32)
index = Index(ndim=2, metric="ip", dtype="f32")
index.add(np.array([5, 6]), vectors)
one, two = index.search(vectors[0], 4).keys, index.search(vectors, 4).keys
print(f"one query:   {one}\ntwo queries: {two.tolist()}")
print(f"is key 0 in the index: {index.contains(0)}")
raise SystemExit(one.tolist() != [5, 6] or bool(two[:, 2:].any()) or bool(index.contains(0)))
PYTHON
