#!/bin/sh
# gensim 4.4.0, Python 3.11
#
# A word2vec file that has a word twice is read with a warning in the log only. The second line is
# left out, but its row stays: at the end of the vectors stands a word None with a vector of
# zeros. So len() counts a word too many, index_to_key holds a None among strings, and the mean of
# all vectors, which SIF and centring take, is too small.
#
# Seen:
#     3 ['red', 'hat', None] [0. 0.]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gensim==4.4.0 numpy==2.4.6
printf '3 2\nred 1 2\nred 3 4\nhat 5 6\n' > "$folder/words.vec"
"$folder/venv/bin/python" - "$folder/words.vec" <<'PYTHON'
import sys

from gensim.models import KeyedVectors

vectors = KeyedVectors.load_word2vec_format(sys.argv[1])
print(len(vectors), vectors.index_to_key, vectors.vectors[-1])
raise SystemExit(vectors.index_to_key != ["red", "hat", None] or bool(vectors.vectors[-1].any()))
PYTHON
