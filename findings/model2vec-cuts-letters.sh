#!/bin/sh
# model2vec 0.10.0, tokenizers 0.23.3, NumPy 2.4.6, Python 3.11
#
# encode() drops the tokens of a text beyond max_length, 512 unless told otherwise, as documented.
# Before that, without a word in the documentation, it cuts the text after 512 times the length of
# the vocabulary's median token, in letters. So a text whose words are longer than that, such as a
# German one or a list of product codes, loses its end below 512 tokens: here the last of 201
# words, for a vocabulary with mostly short ones. One would expect max_length alone to decide.
#
# Seen:
#     201 words, max_length 512: the last word does not count
#     201 words, max_length None: the last word counts
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet model2vec==0.10.0 tokenizers==0.23.3 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from model2vec import StaticModel
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

words = ["[UNK]", "Handschuhfach", "rot", *(f"w{number}" for number in range(9))]
tokenizer = Tokenizer(WordLevel({word: row for row, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = Whitespace()
model = StaticModel(np.eye(len(words), dtype=np.float32), tokenizer, normalize=False)
text = "Handschuhfach " * 200 + "rot"
counts = []
for length in (512, None):
    vector = model.encode([text], max_length=length)[0]
    counts.append(bool(vector[words.index("rot")] > 0))
    print(f"201 words, max_length {length}: the last word {'counts' if counts[-1] else 'does not count'}")
raise SystemExit(counts != [False, True])
PYTHON
