#!/bin/sh
# NumPy 2.4.6, Python 3.11
#
# np.add.reduceat sums all items of a segment but the first, and adds that to the first. np.add.reduce
# of the same items, and a loop, begin with the first. So of three float32 numbers the two have
# different sums: a bag of word vectors that is summed by segments has other bits than the same bag
# alone. One would expect a reduceat of one segment to be the reduce of it.
#
# Seen:
#     reduceat: 1.0
#     reduce: 0.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np

x = np.array([1, 1e8, -1e8], np.float32)
(segment,), whole = np.add.reduceat(x, [0]), np.add.reduce(x)
print(f"reduceat: {segment}\nreduce: {whole}")
raise SystemExit(bool(segment == whole))
PYTHON
