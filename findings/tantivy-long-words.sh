#!/bin/sh
# tantivy 0.27.0 (Python), Python 3.11
#
# The tokenizers "default" and "en_stem" throw away every word of 40 bytes or more, of titles and
# of queries alike. Words end at spaces and punctuation, so a Chinese title without punctuation is
# one word, and at three bytes a sign it has 40 bytes from its 14th sign on: it is stored, and no
# query finds it, not even its own text. So does a German compound of 40 letters. One would expect
# a title to be found by itself, or an error.
#
# Seen:
#     13 signs, 39 bytes: found 1
#     14 signs, 42 bytes: found 0
#     40 letters: found 0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet tantivy==0.27.0
"$folder/venv/bin/python" - <<'PYTHON'
import tantivy

short, long, compound = "茶" * 13, "茶" * 14, "t" * 40
schema = tantivy.SchemaBuilder()
schema.add_text_field("title", stored=True)
index = tantivy.Index(schema.build())
writer = index.writer(num_threads=1)
for title in (short, long, compound):
    document = tantivy.Document()
    document.add_text("title", title)
    writer.add_document(document)
writer.commit()
writer.wait_merging_threads()
index.reload()
searcher = index.searcher()
found = [
    len(searcher.search(index.parse_query(title, ["title"]), 10).hits)
    for title in (short, long, compound)
]
for what, hits in zip(("13 signs, 39 bytes", "14 signs, 42 bytes", "40 letters"), found, strict=True):
    print(f"{what}: found {hits}")
raise SystemExit(found != [1, 0, 0])
PYTHON
