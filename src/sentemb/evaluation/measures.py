"""The metrics that are measured if none is named."""

# Of held-out clicks, over a whole catalogue.
METRICS = ("hit@1", "mrr@10", "recall@10", "recall@100", "ndcg@10")
# Of a judged set.
JUDGED_METRICS = ("ndcg@1", "ndcg@3", "ndcg@10")
