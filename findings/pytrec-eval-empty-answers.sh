#!/bin/sh
# pytrec-eval-terrier 0.5.11, ir_measures 0.4.3, Python 3.11
#
# A query that the engine answers with nothing has no line in a run. pytrec_eval leaves it out of
# its results, so a mean over them rises with every query that finds nothing. ir_measures, which
# calls the same program, counts it as 0. One would expect the same mean of the same two files.
#
# Seen:
#     pytrec_eval  1.0
#     ir_measures  0.5
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet pytrec-eval-terrier==0.5.11 ir-measures==0.4.3
"$folder/venv/bin/python" - <<'PYTHON'
import ir_measures
import pytrec_eval
from ir_measures import RR

judged = {"found": {"a": 1}, "nothing": {"b": 1}}
run = {"found": {"a": 2.0, "c": 1.0}}
results = pytrec_eval.RelevanceEvaluator(judged, {"recip_rank"}).evaluate(run)
alone = pytrec_eval.compute_aggregated_measure(
    "recip_rank", [of_query["recip_rank"] for of_query in results.values()]
)
wrapped = ir_measures.calc_aggregate([RR], judged, run)[RR]
print(f"pytrec_eval  {alone}\nir_measures  {wrapped}")
raise SystemExit((alone, wrapped) != (1.0, 0.5))
PYTHON
