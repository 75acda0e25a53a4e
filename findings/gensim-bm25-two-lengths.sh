#!/bin/sh
# gensim 4.4.0, NumPy 2.4.6, Python 3.11
#
# BM25 divides the length of a title by the mean length. Of a model that is built from a corpus,
# the mean counts each word of a title once, however often it occurs in it; of a model built from
# the dictionary of the same corpus, each occurrence counts, as it does in every title that is
# scored. So a model from a corpus takes a title of mean length for a longer one, and the two ways
# to build a model, which the documentation offers as equal, give the same titles different
# weights.
#
# Seen:
#     from the corpus: avgdl 1.5
#     from the dictionary: avgdl 3.0
#     weights equal: False
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet gensim==4.4.0 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
from gensim.corpora import Dictionary
from gensim.models import LuceneBM25Model

titles = [["red", "red", "red", "shoe"], ["hat", "hat"]]
dictionary = Dictionary(titles)
corpus = [dictionary.doc2bow(title) for title in titles]
counted, known = LuceneBM25Model(corpus), LuceneBM25Model(dictionary=dictionary)
equal = [counted[title] for title in corpus] == [known[title] for title in corpus]
print(f"from the corpus: avgdl {counted.avgdl}\nfrom the dictionary: avgdl {known.avgdl}")
print(f"weights equal: {equal}")
raise SystemExit((counted.avgdl, known.avgdl, equal) != (1.5, 3, False))
PYTHON
