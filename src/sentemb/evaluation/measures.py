"""The metrics that are measured if none is named."""

# Those of held-out clicks rank a whole catalogue.
METRICS = ("hit@1", "mrr@10", "recall@10", "recall@100", "ndcg@10")
# A judged set has grades, so it has no others.
JUDGED_METRICS = ("ndcg@1", "ndcg@3", "ndcg@10")
