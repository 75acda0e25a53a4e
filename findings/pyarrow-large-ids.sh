#!/bin/sh
# pyarrow 26.0.1, pandas 3.1.1, Python 3.11
#
# The CSV and JSON readers of pyarrow know int64 and, where a whole number does not fit, float64.
# Of ids of 64 bits, such as hashes, every second one does not fit, and one in the first block of
# the file is enough: all ids of the column are rounded to 53 bits, without a warning, and ids that
# differ become equal. pandas reads the same file exactly, as uint64, and so does pyarrow if told
# pa.uint64(), its own type for it. One would expect that type, or an error, rather than other ids.
#
# Seen:
#     pandas: 2 ids, uint64
#     pyarrow, CSV: 1 id, double
#     pyarrow, JSON: 1 id, double
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6
printf 'id\n12345678901234567890\n12345678901234567891\n' > "$folder/log.csv"
printf '{"id": 12345678901234567890}\n{"id": 12345678901234567891}\n' > "$folder/log.jsonl"
"$folder/venv/bin/python" - "$folder" <<'PYTHON'
import sys

import pandas as pd
import pyarrow.csv
import pyarrow.json

csv, json = f"{sys.argv[1]}/log.csv", f"{sys.argv[1]}/log.jsonl"
right = pd.read_csv(csv)["id"]
by_csv, by_json = pyarrow.csv.read_csv(csv)["id"], pyarrow.json.read_json(json)["id"]
print(f"pandas: {right.nunique()} ids, {right.dtype}")
for name, ids in (("CSV", by_csv), ("JSON", by_json)):
    print(f"pyarrow, {name}: {len(ids.unique())} id, {ids.type}")
raise SystemExit((right.nunique(), len(by_csv.unique()), len(by_json.unique())) != (2, 1, 1))
PYTHON
