#!/bin/sh
# pyarrow 26.0.1, duckdb 2.0.1, Python 3.11
#
# A row group of a Parquet file has bounds, its least and greatest number, and NaN has no part in
# them. The format asks readers not to use the bounds when they look for NaN. pyarrow and DuckDB
# skip the row group all the same: its bounds are 5 and 5, so x != 5 cannot be true in it. The same
# filter on the table that was read finds the row, and DuckDB answers that a column with a NaN has
# none. So a check for NaN in a file of scores passes, and the mean of the scores is NaN.
#
# Seen:
#     pyarrow, rows with x != 5: 0 on reading, 1 after reading
#     DuckDB, rows with isnan(x): 0 in the file, 1 in the table
#     DuckDB, mean of the file: nan
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pyarrow==26.0.1 duckdb==2.0.1
"$folder/venv/bin/python" - "$folder/scores.parquet" <<'PYTHON'
import sys

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

file = sys.argv[1]
scores = pa.table({"x": [5.0, float("nan"), 5.0]})
pq.write_table(scores, file)
other = pc.field("x") != 5
reading, after = pq.read_table(file, filters=other).num_rows, pq.read_table(file).filter(other).num_rows
count = "select count(*) from {} where isnan(x)"
((in_file,),), ((in_table,),) = (duckdb.sql(count.format(x)).fetchall() for x in (f"'{file}'", "scores"))
((mean,),) = duckdb.sql(f"select avg(x) from '{file}'").fetchall()
print(f"pyarrow, rows with x != 5: {reading} on reading, {after} after reading")
print(f"DuckDB, rows with isnan(x): {in_file} in the file, {in_table} in the table")
print(f"DuckDB, mean of the file: {mean}")
raise SystemExit((reading, after, in_file, in_table) != (0, 1, 0, 1))
PYTHON
