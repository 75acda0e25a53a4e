#!/bin/sh
# pytrec-eval-terrier 0.5.11, Python 3.11
#
# pytrec_eval takes Python's floats, and trec_eval behind it keeps a score as float32: 24 bits.
# Scores that differ after them are equal to it, and equal scores it orders by the document's name,
# the last in the alphabet first. So a run whose scores are seconds or large counts, or
# probabilities next to 1, is measured in another order than it is written, without a warning. One
# would expect the order of the scores that were handed in.
#
# Seen, the reciprocal rank of the document with the highest score:
#     2.0 above 1.0: 1.0
#     1760000002.0 above 1760000001.0: 0.5
#     0.99999999 above 0.99999998: 0.5
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pytrec-eval-terrier==0.5.11
"$folder/venv/bin/python" - <<'PYTHON'
import pytrec_eval

judge = pytrec_eval.RelevanceEvaluator({"q": {"a": 1}}, {"recip_rank"})
ranks = []
for high, low in ((2.0, 1.0), (1760000002.0, 1760000001.0), (0.99999999, 0.99999998)):
    ranks.append(judge.evaluate({"q": {"a": high, "b": low}})["q"]["recip_rank"])
    print(f"{high} above {low}: {ranks[-1]}")
raise SystemExit(ranks != [1.0, 0.5, 0.5])
PYTHON
