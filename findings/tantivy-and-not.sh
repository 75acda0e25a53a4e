#!/bin/sh
# tantivy 0.27.0 (Python), Python 3.11
#
# parse_query reads NOT as the sign "-": "red NOT hat" and "red AND -hat" both find the titles with
# red and without hat. "red AND NOT hat", the form that people type, finds nothing, without an
# error: NOT hat becomes a clause of its own there, and a clause that only excludes matches no
# title. A query of NOT hat alone is refused with a ValueError for that reason.
#
# Seen:
#     red AND -hat: ['red shoe']
#     red NOT hat: ['red shoe']
#     red AND NOT hat: []
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tantivy==0.27.0
"$folder/venv/bin/python" - <<'PYTHON'
import tantivy

schema = tantivy.SchemaBuilder()
schema.add_text_field("title", stored=True)
index = tantivy.Index(schema.build())
writer = index.writer(num_threads=1)
for title in ("red shoe", "red hat", "blue hat"):
    document = tantivy.Document()
    document.add_text("title", title)
    writer.add_document(document)
writer.commit()
writer.wait_merging_threads()
index.reload()
searcher = index.searcher()
answers = []
for query in ("red AND -hat", "red NOT hat", "red AND NOT hat"):
    hits = searcher.search(index.parse_query(query, ["title"]), 10).hits
    answers.append([searcher.doc(address)["title"][0] for _, address in hits])
    print(f"{query}: {answers[-1]}")
raise SystemExit(answers != [["red shoe"], ["red shoe"], []])
PYTHON
