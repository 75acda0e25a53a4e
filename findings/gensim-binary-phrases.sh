#!/bin/sh
# gensim 4.4.0, NumPy 2.4.6, Python 3.11
#
# In a binary word2vec file a word ends at the first space, and the numbers follow as bytes.
# save_word2vec_format(binary=True) writes a key with a space, such as a phrase or a query, as it
# is. Reading yields half of the phrase, with numbers made of the other half's letters, and the
# next key starts with the rest of the bytes; nothing is raised. Of a text file with the same keys,
# reading raises a ValueError. One would expect saving to refuse such a key or to replace the
# space.
#
# Seen:
#     saved:  ['new york', 'paris']
#     loaded: 'new', and a word that ends in 'paris'
#     the first number of 'new': 2.9e+26 instead of 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gensim==4.4.0 numpy==2.4.6
"$folder/venv/bin/python" - "$folder/words.bin" <<'PYTHON'
import sys

import numpy as np
from gensim.models import KeyedVectors

saved = KeyedVectors(3)
saved.add_vectors(["new york", "paris"], np.array([[1, 2, 3], [4, 5, 6]], np.float32))
saved.save_word2vec_format(sys.argv[1], binary=True)
loaded = KeyedVectors.load_word2vec_format(sys.argv[1], binary=True)
first, second = loaded.index_to_key
print(f"saved:  {saved.index_to_key}")
print(f"loaded: {first!r}, and a word that ends in {second[-5:]!r}")
print(f"the first number of {first!r}: {loaded[first][0]:.1e} instead of {saved[0][0]:.0f}")
raise SystemExit(first != "new" or second == "paris" or not loaded[first][0] > 1e20)
PYTHON
