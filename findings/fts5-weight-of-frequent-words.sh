#!/bin/sh
# SQLite 3.54.1 with FTS5 (apsw 3.54.1.0), Python 3.11
#
# bm25() gives a word that at least half of the rows have the weight 0.000001, whatever its true
# weight. So one rare word outweighs any number of frequent ones a million times, and a title with
# three words of the query stands behind a title with one. In a table of one brand's products every
# word of the brand is such a word.
#
# Seen:
#     half of the rows: -0.00000105
#     one row of four: -0.888
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet apsw==3.54.1.0
"$folder/venv/bin/python" - <<'PYTHON'
import apsw

titles = ("red shoe", "red shoe old", "green hat", "blue cap")
table = apsw.Connection(":memory:")
table.execute("create virtual table titles using fts5(title)")
table.executemany("insert into titles values (?)", [(title,) for title in titles])
match = "select bm25(titles) from titles where titles match ? order by rank"
(half,), (rare,) = (next(iter(table.execute(match, (word,)))) for word in ("red", "cap"))
print(f"half of the rows: {half:.8f}\none row of four: {rare:.3f}")
raise SystemExit(half < -0.00001 or rare > -0.5)
PYTHON
