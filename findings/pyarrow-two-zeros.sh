#!/bin/sh
# pyarrow 26.0.1, Python 3.11
#
# pc.equal(0.0, -0.0) is true, and pc.is_in, pc.unique, group_by and join call them different: the
# compute functions with a hash table compare bits. So a join loses rows whose keys are equal, and a
# group occurs twice; -0.0 comes from rounding a small negative number. NumPy and pandas have one
# group. NaN is the other way round: pc.equal(nan, nan) is false, and pc.is_in finds it.
#
# Seen:
#     equal: True
#     is_in: False
#     groups: [{'x': 0.0, 'y_sum': 1}, {'x': -0.0, 'y_sum': 2}]
#     join: []
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1
"$folder/venv/bin/python" - <<'PYTHON'
import pyarrow as pa
import pyarrow.compute as pc

zero, negative = pa.array([0.0]), pa.array([round(-0.4, 0)])
equal, is_in = pc.equal(zero, negative)[0].as_py(), pc.is_in(zero, value_set=negative)[0].as_py()
both = pa.table({"x": pa.concat_arrays([zero, negative]), "y": [1, 2]})
groups = both.group_by("x").aggregate([("y", "sum")]).to_pylist()
left, right = pa.table({"x": zero}), pa.table({"x": negative, "b": [2]})
joined = left.join(right, "x", join_type="inner").to_pylist()
print("equal:", equal)
print("is_in:", is_in)
print("groups:", groups)
print("join:", joined)
raise SystemExit(not (equal and not is_in and len(groups) == 2 and not joined))
PYTHON
