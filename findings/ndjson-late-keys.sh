#!/bin/sh
# polars 2.1.0, duckdb 2.0.1, Python 3.11
#
# A key that JSON lines have from some line on is lost without a word: Polars takes the columns
# from the first 100 lines, DuckDB from the first 20,480, and later lines are cut to them. A log
# whose program began to write "country" one day has no country. The documentation says that so
# many lines are scanned for the schema; a later value of another type raises an error, a later key
# does not. infer_schema_length=None and sample_size=-1 read all keys.
#
# Seen:
#     Polars: ['query']
#     DuckDB: ['query']
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0 duckdb==2.0.1
"$folder/venv/bin/python" - "$folder/log.jsonl" <<'PYTHON'
import pathlib
import sys

import duckdb
import polars as pl

file = sys.argv[1]
lines = ['{"query": "red shoe"}\n'] * 25_000 + ['{"query": "hat", "country": "de"}\n'] * 25_000
pathlib.Path(file).write_text("".join(lines))
by_polars = pl.read_ndjson(file).columns
by_duckdb = duckdb.sql(f"from read_json('{file}')").columns
print(f"Polars: {by_polars}\nDuckDB: {by_duckdb}")
raise SystemExit(by_polars != ["query"] or by_duckdb != ["query"])
PYTHON
