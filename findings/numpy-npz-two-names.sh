#!/bin/sh
# NumPy 2.4.6, Python 3.11
#
# np.savez stores an array under its name with ".npy" behind it, and np.load takes either form. Of
# two arrays named "title" and "title.npy", as file names yield them, both are stored and both
# names are listed, but both names get the first array. Iterating over the archive shows it twice.
# The second is to be had as "title.npy.npy" only. One would expect each name in `files` to be the
# name of its array.
#
# Seen:
#     ['title', 'title.npy']
#     title     [1.]
#     title.npy [1.]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6
"$folder/venv/bin/python" - "$folder/vectors.npz" <<'PYTHON'
import sys

import numpy as np

np.savez(sys.argv[1], **{"title": np.array([1.0]), "title.npy": np.array([2.0])})
with np.load(sys.argv[1]) as archive:
    loaded = {name: archive[name] for name in archive.files}
print(list(loaded))
for name, array in loaded.items():
    print(f"{name:9} {array}")
raise SystemExit([array[0] for array in loaded.values()] != [1, 1])
PYTHON
