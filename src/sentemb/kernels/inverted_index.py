"""The titles with the highest sums of weights of the words that they share with a query."""

import numpy as np

from sentemb.kernels.jit import kernel


@kernel
def highest_sums(
    highest,
    query_offsets,
    query_words,
    word_offsets,
    titles,
    weights,
    n_titles,
    clicked_offsets,
    clicked,
    first,
    end,
):
    """highest[q] = the unclicked titles with the largest sums of weights, largest first.

    The sum of title t for query q is over the words of q, repeats included, in their order: the
    weight of t in the list of the word, nothing if t is not in it. Titles without a common word are
    not listed. Equal sums are in the order of the titles.

    Parameters
    ----------
    highest : (n_queries, k) int32, written
        -1 where there are not enough titles; k is at least 1.
    query_offsets, query_words : (n_queries + 1,) int64, (n,) int32
        The words of every query, as places in ``word_offsets``.
    word_offsets : (n_words + 1,) int64
        The list of word w is from ``word_offsets[w]`` to ``word_offsets[w + 1]`` in the next two.
    titles, weights : (n_entries,) int32, (n_entries,) float32
        The titles that hold the word, each once, and a weight above 0.
    n_titles : int
    clicked_offsets, clicked : (n_queries + 1,) int64, (n,) int32
        The titles of every query that are left out.
    first, end : int
        The queries to do.
    """
    k = highest.shape[1]
    sums = np.zeros(n_titles, np.float32)
    met = np.empty(n_titles, np.int32)  # the titles whose sum is not 0
    kept = np.empty(k, np.float32)  # the sums of highest[q]
    for q in range(first, end):
        n_met = 0
        for token in range(query_offsets[q], query_offsets[q + 1]):
            word = query_words[token]
            for entry in range(word_offsets[word], word_offsets[word + 1]):
                title = titles[entry]
                if sums[title] == 0:
                    met[n_met] = title
                    n_met += 1
                sums[title] += weights[entry]
        for entry in range(clicked_offsets[q], clicked_offsets[q + 1]):
            sums[clicked[entry]] = 0
        best = highest[q]
        best[:] = -1
        kept[:] = 0
        for j in range(n_met):
            title = met[j]
            total = sums[title]
            sums[title] = 0
            place = k
            while place > 0 and _is_before(total, title, kept[place - 1], best[place - 1]):
                if place < k:
                    best[place], kept[place] = best[place - 1], kept[place - 1]
                place -= 1
            if place < k:
                best[place], kept[place] = title, total


@kernel
def _is_before(total, title, other_total, other_title):
    """Whether a title ranks before another. An empty place has the sum 0 and is the last."""
    return total > other_total or (total == other_total and title < other_title)
