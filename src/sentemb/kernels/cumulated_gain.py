"""Discounted cumulated gain of rankings."""

import numpy as np

from sentemb.kernels.jit import kernel
from sentemb.kernels.top_k import top_k_of_row


@kernel
def add_gains(dcg, scores, gains, offsets, cutoffs, discounts):
    """dcg[q, c] = Σ over ranks r = 0 .. cutoffs[c] - 1 of gains[entry of rank r] / discounts[r].

    The entries of a query are ranked by score; equal scores are in the order of the entries.

    Parameters
    ----------
    dcg : (n_queries, n_cutoffs) float64, written
    scores, gains : (n,) float64
        No score is NaN.
    offsets : (n_queries + 1,) int64
        Query q has the entries ``offsets[q]`` to ``offsets[q + 1]``.
    cutoffs : (n_cutoffs,) int64
    discounts : (m,) float64
        Only ranks below m count.
    """
    best = np.empty(discounts.size, np.int64)
    for q in range(dcg.shape[0]):
        low, high = offsets[q], offsets[q + 1]
        heap = best[: min(discounts.size, high - low)]
        top_k_of_row(heap, scores[low:high])
        for c in range(cutoffs.size):
            total = 0.0
            for rank in range(min(cutoffs[c], heap.size)):
                total += gains[low + heap[rank]] / discounts[rank]
            dcg[q, c] = total
