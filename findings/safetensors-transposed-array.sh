#!/bin/sh
# safetensors 0.8.0, NumPy 2.4.6, Python 3.11
#
# safetensors.numpy.save writes the memory of an array as it lies, under the shape of the array. Of
# a transposed array, such as W.T or what np.linalg and Fortran code return, the file has the right
# shape and numbers in wrong places, without an error; safetensors.torch refuses such a tensor.
# np.ascontiguousarray before saving helps.
#
# Seen:
#     saved:  [[0. 3.] [1. 4.] [2. 5.]]
#     loaded: [[0. 1.] [2. 3.] [4. 5.]]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet safetensors==0.8.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from safetensors.numpy import load, save

transposed = np.arange(6, dtype=np.float32).reshape(2, 3).T
loaded = load(save({"W": transposed}))["W"]
print("saved: ", str(transposed).replace("\n", ""))
print("loaded:", str(loaded).replace("\n", ""))
raise SystemExit(loaded.shape != transposed.shape or np.array_equal(loaded, transposed))
PYTHON
