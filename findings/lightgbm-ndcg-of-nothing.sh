#!/bin/sh
# lightgbm 4.7.0 (needs the libgomp of the system), scikit-learn 1.9.1, NumPy 2.4.6, Python 3.11
#
# LightGBM's ndcg and map of a query without a relevant title are 1, a perfect ranking;
# scikit-learn and trec_eval have 0. The mean runs over all queries, so where half of the queries
# have no click it cannot fall below 0.5, and a training set and a test set with different shares
# of such queries cannot be compared. The list of metrics in the documentation does not mention it;
# XGBoost has the same rule, documents it, and has "ndcg-" for 0.
#
# Seen:
#     LightGBM:     ndcg@5 1.0, map@5 1.0
#     scikit-learn: ndcg@5 0.0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lightgbm==4.7.0 scikit-learn==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import lightgbm
import numpy as np
from sklearn.metrics import ndcg_score

features = np.arange(40.0)[:, None]
clicked, nothing = np.arange(40) % 20 < 5, np.zeros(40)
train = lightgbm.Dataset(features, clicked, group=[20, 20])
judged = lightgbm.Dataset(features, nothing, group=[20, 20], reference=train)
params = {"objective": "lambdarank", "metric": ["ndcg", "map"], "eval_at": [5], "verbose": -1}
seen = {}
record = lightgbm.record_evaluation(seen)
model = lightgbm.train(params, train, 1, valid_sets=[judged], valid_names=["judged"], callbacks=[record])
ndcg, precision = seen["judged"]["ndcg@5"][0], seen["judged"]["map@5"][0]
other = ndcg_score(nothing.reshape(2, 20), model.predict(features).reshape(2, 20), k=5)
print(f"LightGBM:     ndcg@5 {ndcg}, map@5 {precision}")
print(f"scikit-learn: ndcg@5 {other}")
raise SystemExit((ndcg, precision, other) != (1, 1, 0))
PYTHON
