#!/bin/sh
# ir_measures 0.4.3, pytrec-eval-terrier 0.5.11, Python 3.11
#
# RR and RR@10 come from different programs behind one call: RR from trec_eval, which orders equal
# scores by the document's name, the last in the alphabet first; RR@10 from a module of its own,
# which takes the first in the alphabet first. So one run with ties, such as a query without a
# known word, has a reciprocal rank within ten of 1 and a reciprocal rank without a limit of 1/3.
# One would expect RR >= RR@10 for every run.
#
# Seen:
#     RR     0.333
#     RR@10  1.000
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet ir-measures==0.4.3 pytrec-eval-terrier==0.5.11
"$folder/venv/bin/python" - <<'PYTHON'
import ir_measures
from ir_measures import RR

judged = [ir_measures.Qrel("q", "a", 1)]
run = [ir_measures.ScoredDoc("q", name, 1.0) for name in "abc"]
values = ir_measures.calc_aggregate([RR, RR @ 10], judged, run)
print(f"RR     {values[RR]:.3f}\nRR@10  {values[RR @ 10]:.3f}")
raise SystemExit(values[RR] >= values[RR @ 10])
PYTHON
