#!/bin/sh
# voyager 2.2.3, NumPy 2.4.6, Python 3.11
#
# index.get_distance(a, b) depends on the other vectors of the index if its space is InnerProduct.
# To search, voyager gives each vector one number more, which fills its length up to that of the
# longest vector so far, and get_distance gives it to both a and b. So the distance of two unit
# vectors at a right angle is 1, and -80 once a vector of length 10 is in the index. query() gives
# the number to stored vectors alone and is right: 1 less the inner product. The documentation
# promises the distance between the two vectors.
#
# Seen:
#     longest vector  1: get_distance 1.0, query 1.0
#     longest vector 10: get_distance -80.0, query 1.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet voyager==2.2.3 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
import voyager

a, b = np.eye(2, dtype=np.float32)
seen = []
for length in (1, 10):
    index = voyager.Index(voyager.Space.InnerProduct, 2)
    index.add_items(np.array([b, -length * a]), ids=[0, 1])
    (nearest, _), (distance, _) = index.query(a, k=2)
    seen.append((int(nearest), index.get_distance(a, b), float(distance)))
    print("longest vector {:2}: get_distance {}, query {}".format(length, *seen[-1][1:]))
raise SystemExit(seen != [(0, 1, 1), (0, -80, 1)])
PYTHON
