"""Sums of the weights of the words that titles share with a query.

All kernels get words and lists in the same form:

    query_offsets, query_words : (n_queries + 1,) int64, (n,) int32
        The words of every query, as numbers of lists.
    offsets, titles, weights : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) float32
        Word w is held by ``titles[offsets[w]:offsets[w + 1]]``, ascending, with these weights.
"""

import numpy as np

from sentemb.kernels.ascending import first_from
from sentemb.kernels.compiling.jit import inner_kernel, kernel, strict_kernel


@kernel
def add_lists(total, factor, query_offsets, query_words, offsets, titles, weights, first, end):
    """total[q, t] += factor · the sum of the weights of title t over the words of query q.

    total : (n_queries, n_titles) float32, updated for the queries ``first`` to ``end``
    factor : float32
    """
    for q in range(first, end):
        for word in query_words[query_offsets[q] : query_offsets[q + 1]]:
            for entry in range(offsets[word], offsets[word + 1]):
                total[q, titles[entry]] += factor * weights[entry]


@kernel
def entries_of_pairs(
    entries,
    starts,
    query_offsets,
    query_words,
    query_index,
    title_index,
    offsets,
    titles,
    first,
    end,
):
    """The entry of every word of a pair's query in the list of that word.

    entries : (n,) int64, written for the pairs ``first`` to ``end``: from ``starts[p]`` on those of
        pair p, one per word of its query; -1 where the title does not hold the word
    starts, query_index, title_index : (n_pairs,) int64
    """
    for p in range(first, end):
        query, slot = query_index[p], starts[p]
        for word in query_words[query_offsets[query] : query_offsets[query + 1]]:
            entries[slot] = _entry(titles, offsets[word], offsets[word + 1], title_index[p])
            slot += 1


@inner_kernel
def _entry(titles, low, end, title):
    """The index of ``title`` in ``titles[low:end]``, ascending; -1 if it is not there."""
    low = first_from(titles, low, end, title)
    return low if low < end and titles[low] == title else -1


@strict_kernel
def sums_of_pairs(
    scores,
    query_offsets,
    query_words,
    query_index,
    title_index,
    offsets,
    titles,
    weights,
    first,
    end,
):
    """scores[p] = the sum for one query and one title, in float64, in the order of the words.

    Where the titles of a query rise from pair to pair, a title is looked for behind the one before.

    scores : (n_pairs,) float64, written for the pairs ``first`` to ``end``
    query_index, title_index : (n_pairs,) int64
    """
    scores[first:end] = 0
    start = first
    while start < end:
        query, stop = query_index[start], start + 1
        while stop < end and query_index[stop] == query:
            stop += 1
        for word in query_words[query_offsets[query] : query_offsets[query + 1]]:
            low, high = offsets[word], offsets[word + 1]
            at = low
            for p in range(start, stop):
                if p > start and title_index[p] < title_index[p - 1]:
                    at = low
                at = first_from(titles, at, high, title_index[p])
                if at < high and titles[at] == title_index[p]:
                    scores[p] += weights[at]
        start = stop


@kernel
def best_titles(
    best,
    largest,
    query_offsets,
    query_words,
    offsets,
    titles,
    weights,
    n_titles,
    left_out_offsets,
    left_out,
    first,
    end,
):
    """best[q] = the titles with the largest sums of weights above 0, largest first.

    Only the lists of the words of a query are read. Equal sums are in the order of the titles. All
    weights are above 0.

    best, largest : (n_queries, k) int32, (n_queries, k) float32, written for the queries ``first``
        to ``end``: the titles and their sums, -1 and 0 where there are not enough; k is at least 1
    left_out_offsets, left_out : (n_queries + 1,) int64, (n,) int32, the titles of every query that
        are not wanted
    """
    sums = np.zeros(n_titles, np.float32)
    met = np.empty(n_titles, np.int32)
    for q in range(first, end):
        n_met = 0
        for word in query_words[query_offsets[q] : query_offsets[q + 1]]:
            for entry in range(offsets[word], offsets[word + 1]):
                title = titles[entry]
                if sums[title] == 0:
                    met[n_met] = title
                    n_met += 1
                sums[title] += weights[entry]
        for entry in range(left_out_offsets[q], left_out_offsets[q + 1]):
            sums[left_out[entry]] = 0
        _take_largest(best[q], largest[q], sums, met[:n_met])


@inner_kernel
def _take_largest(best, largest, sums, met):
    """Move the titles with the largest sums above 0 to ``best``; all sums become 0.

    best, largest : (k,) int32, (k,) float32, written
    sums, met : (n_titles,) float32, (n_met,) int32
        The titles whose sums may be above 0.
    """
    k = best.size
    best[:] = -1
    largest[:] = 0
    for title in met:
        total = sums[title]
        sums[title] = 0
        rank = k
        while rank > 0 and _is_before(total, title, largest[rank - 1], best[rank - 1]):
            if rank < k:
                best[rank], largest[rank] = best[rank - 1], largest[rank - 1]
            rank -= 1
        if rank < k:
            best[rank], largest[rank] = title, total


@inner_kernel
def _is_before(total, title, other_total, other_title):
    """Whether a title ranks before another. An empty entry has the sum 0 and is the last."""
    return total > other_total or (total == other_total and title < other_title)
