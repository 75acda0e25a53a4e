#!/bin/sh
# rank-bm25 0.2.2, Python 3.11
#
# BM25Okapi takes log((N - n + 0.5) / (n + 0.5)) as the weight of a word. Of a word that half of
# the titles have, it is 0, and the floor epsilon acts only on weights below 0. So with two titles
# that share no word every weight is 0, and the right title scores as the wrong one. In a larger
# set a word in exactly half of the titles counts less than one in all of them, whose weight the
# floor lifts.
#
# Seen:
#     two titles: [0. 0.]
#     in half of four titles: 0.0
#     in all of four titles: 0.050
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet rank-bm25==0.2.2 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from rank_bm25 import BM25Okapi

two = BM25Okapi([["red", "shoe"], ["blue", "hat"]]).get_scores(["red"])
weights = BM25Okapi(
    [["all", "half", "red"], ["all", "half", "blue"], ["all", "green"], ["all", "grey"]]
).idf
print(f"two titles: {two}")
print(f"in half of four titles: {weights['half']}")
print(f"in all of four titles: {weights['all']:.3f}")
raise SystemExit(bool(two.any()) or weights["half"] >= weights["all"])
PYTHON
