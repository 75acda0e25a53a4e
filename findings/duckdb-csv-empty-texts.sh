#!/bin/sh
# duckdb 2.0.1, Python 3.11
#
# DuckDB writes a missing text as nothing and an empty one as "", so that the file tells them
# apart, and reads both as missing. So a table that is copied to a file and back has other counts
# and loses rows at the first comparison, without a warning. Polars, which writes the same file,
# reads back what it wrote. The reader's allow_quoted_nulls=false helps, which the writer does not
# need.
#
# Seen:
#     written: [('a',), ('',), (None,)]
#     read:    [('a',), (None,), (None,)]
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet duckdb==2.0.1
"$folder/venv/bin/python" - "$folder/queries.csv" <<'PYTHON'
import sys

import duckdb

texts = "from (values ('a'), (''), (null)) as texts(query)"
duckdb.sql(f"copy ({texts}) to '{sys.argv[1]}'")
written, read = duckdb.sql(texts).fetchall(), duckdb.sql(f"from '{sys.argv[1]}'").fetchall()
print(f"written: {written}\nread:    {read}")
raise SystemExit(read != [("a",), (None,), (None,)])
PYTHON
