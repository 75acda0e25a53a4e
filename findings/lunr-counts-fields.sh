#!/bin/sh
# lunr 0.8.0 (lunr.py), Python 3.11
#
# How rare a word is, lunr counts over its fields: a document that has the word in its title and in
# its body counts twice. So the count can exceed the number of documents; the weight takes the
# absolute value of what is then below 0, and rises again. A brand that every document has in both
# fields weighs more than a colour that half of them have in one. With one field the brand weighs
# next to nothing.
#
# Seen, the best scores:
#     acme, all of 8 documents: 0.783
#     blue, 4 of 8 documents: 0.641
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lunr==0.8.0
"$folder/venv/bin/python" - <<'PYTHON'
from lunr import lunr

documents = []
for row, word in enumerate(("shoe", "hat", "cap", "sock", "shirt", "coat", "belt", "scarf")):
    text = f"acme {word}"
    documents.append({"id": row, "title": text + " blue" * (row < 4), "body": text})
index = lunr(ref="id", fields=["title", "body"], documents=documents)
found = {word: index.search(word) for word in ("acme", "blue")}
best = {word: results[0]["score"] for word, results in found.items()}
print(f"acme, all of {len(found['acme'])} documents: {best['acme']:.3f}")
print(f"blue, {len(found['blue'])} of 8 documents: {best['blue']:.3f}")
raise SystemExit(best["acme"] <= best["blue"])
PYTHON
