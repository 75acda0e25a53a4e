#!/bin/sh
# floret 0.10.5 (fastText with one table of hashes), NumPy 2.4.6, Python 3.11
#
# get_sentence_vector is not the mean of get_word_vector: each word's vector is first divided by
# its length. So the length, which carries how frequent and how sure a word is, is lost, and a
# weighted mean of words (SIF) cannot be had from it. One would expect the plain mean.
#
# Seen:
#     the mean of the words: differs
#     the mean of the words, each divided by its length: equal
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet floret==0.10.5 numpy==2.4.6
for _ in $(seq 200); do printf 'red shoe\nblue hat\nred hat big\n'; done > "$folder/texts"
"$folder/venv/bin/python" - "$folder/texts" 2> /dev/null <<'PYTHON'
import sys

import floret
import numpy as np

model = floret.train_unsupervised(sys.argv[1], dim=4, minCount=1, epoch=1, thread=1)
sentence = model.get_sentence_vector("red shoe")
words = np.array([model.get_word_vector(word) for word in ("red", "shoe")])
units = words / np.linalg.norm(words, axis=1, keepdims=True)
equal = [np.allclose(sentence, mean.mean(axis=0), atol=1e-5) for mean in (words, units)]
named = ["equal" if same else "differs" for same in equal]
print(f"the mean of the words: {named[0]}")
print(f"the mean of the words, each divided by its length: {named[1]}")
raise SystemExit(equal != [False, True])
PYTHON
