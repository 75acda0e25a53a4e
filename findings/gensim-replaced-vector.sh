#!/bin/sh
# gensim 4.4.0, NumPy 2.4.6, Python 3.11
#
# KeyedVectors keeps the lengths of its vectors from the first most_similar() on. add_vectors()
# with replace=True, and kv[key] = vector, change a vector and leave its old length. So
# most_similar() divides by the wrong length and reports a cosine of 7, above the words that are
# truly alike, while similarity() of the same two words is right. The documentation of fill_norms()
# asks all code that changes vectors to see to their lengths; one would expect gensim's own methods
# to do so.
#
# Seen:
#     before: [('shoes', 1.0), ('hat', 0.0)]
#     most_similar: [('hat', 7.0), ('shoes', 1.0)]
#     similarity of 'hat': 0.7
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gensim==4.4.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from gensim.models import KeyedVectors

words = KeyedVectors(2)
words.add_vectors(["shoe", "shoes", "hat"], np.array([[1, 0], [3, 0], [0, 1]], np.float32))
print("before:", [(word, round(cosine, 1)) for word, cosine in words.most_similar("shoe")])
words.add_vectors(["hat"], np.array([[7, 7]], np.float32), replace=True)
after, right = words.most_similar("shoe"), words.similarity("shoe", "hat")
print("most_similar:", [(word, round(cosine, 1)) for word, cosine in after])
print(f"similarity of 'hat': {right:.1f}")
raise SystemExit(bool(after[0][1] < 2 or right > 1))
PYTHON
