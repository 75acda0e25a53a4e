#!/bin/sh
# hnswlib 0.8.0, NumPy 2.4.6, Python 3.11
#
# A filter that allows fewer titles than k makes knn_query raise a RuntimeError, whose message
# blames the graph ("ef or M is too small"), though no value of ef or M helps. How many titles a
# filter leaves is not known before the search, so k cannot be chosen right. faiss fills the rest
# with -1.
#
# Seen:
#     k = 3 of 3 allowed: [0, 1, 2]
#     k = 4 of 3 allowed: RuntimeError: Cannot return the results in a contiguous 2D array. Probably ef or M is too small
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet hnswlib==0.8.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import hnswlib
import numpy as np

x = np.eye(8, dtype=np.float32)
graph = hnswlib.Index("ip", 8)
graph.init_index(8)
graph.add_items(x, np.arange(8))
graph.set_ef(8)


def ask(k):
    return sorted(graph.knn_query(x[:1], k=k, filter=lambda row: row < 3)[0][0].tolist())


print(f"k = 3 of 3 allowed: {ask(3)}")
try:
    answer = ask(4)
except RuntimeError as error:
    print(f"k = 4 of 3 allowed: RuntimeError: {error}")
    raise SystemExit("ef or M" not in str(error)) from None
print(f"k = 4 of 3 allowed: {answer}")
raise SystemExit(1)
PYTHON
