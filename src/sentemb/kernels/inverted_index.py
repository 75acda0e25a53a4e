"""Sums of weights of the words that titles share with a query, from the list of each word.

All kernels get words and lists in the same form:

    query_offsets, query_words : (n_queries + 1,) int64, (n,) int32
        The words of every query, as places in ``word_offsets``.
    word_offsets : (n_words + 1,) int64
        The list of word w is from ``word_offsets[w]`` to ``word_offsets[w + 1]`` in the next two.
    titles, weights : (n_entries,) int32, (n_entries,) float32
        The titles that hold the word, each once, and a weight above 0.
    n_titles : int

The sum of title t for query q is over the words of q, repeats included, in their order: the weight
of t in the list of the word, nothing if t is not in it.
"""

import numpy as np

from sentemb.kernels.jit import inner_kernel, kernel


@kernel
def highest_sums(
    highest,
    kept,
    query_offsets,
    query_words,
    word_offsets,
    titles,
    weights,
    n_titles,
    left_out_offsets,
    left_out,
    first,
    end,
):
    """highest[q] = the titles with the largest sums of weights, largest first.

    Titles without a common word are not listed. Equal sums are in the order of the titles.

    Parameters
    ----------
    highest, kept : (n_queries, k) int32, (n_queries, k) float32, written
        The titles and their sums, -1 and 0 where there are not enough; k is at least 1.
    query_offsets, query_words, word_offsets, titles, weights, n_titles
        See above.
    left_out_offsets, left_out : (n_queries + 1,) int64, (n,) int32
        The titles of every query that are not wanted.
    first, end : int
        The queries to do.
    """
    sums = np.zeros(n_titles, np.float32)
    met = np.empty(n_titles, np.int32)
    for q in range(first, end):
        some = query_words[query_offsets[q] : query_offsets[q + 1]]
        n_met = _add_up(sums, met, some, word_offsets, titles, weights)
        for entry in range(left_out_offsets[q], left_out_offsets[q + 1]):
            sums[left_out[entry]] = 0
        _take_highest(highest[q], kept[q], sums, met[:n_met])


@kernel
def highest_and_pairs(
    highest,
    kept,
    found,
    query_offsets,
    query_words,
    word_offsets,
    titles,
    weights,
    n_titles,
    pair_offsets,
    pair_titles,
    first,
    end,
):
    """As `highest_sums`, with nothing left out, and `sums_of_pairs`: sums are added up once.

    Parameters
    ----------
    highest, kept, found, others
        As for these two.
    first, end : int
        The queries to do.
    """
    sums = np.zeros(n_titles, np.float32)
    met = np.empty(n_titles, np.int32)
    for q in range(first, end):
        some = query_words[query_offsets[q] : query_offsets[q + 1]]
        n_met = _add_up(sums, met, some, word_offsets, titles, weights)
        for p in range(pair_offsets[q], pair_offsets[q + 1]):
            found[p] = sums[pair_titles[p]]
        _take_highest(highest[q], kept[q], sums, met[:n_met])


@kernel
def sums_of_pairs(
    found,
    query_offsets,
    query_words,
    word_offsets,
    titles,
    weights,
    n_titles,
    pair_offsets,
    pair_titles,
    first,
    end,
):
    """found[p] = the sum of title ``pair_titles[p]`` for its query.

    Parameters
    ----------
    found : (n_pairs,) float, written
    query_offsets, query_words, word_offsets, titles, weights, n_titles
        See above.
    pair_offsets, pair_titles : (n_queries + 1,) int64, (n_pairs,) int
        Query q has the pairs ``pair_offsets[q]`` to ``pair_offsets[q + 1]``.
    first, end : int
        The queries to do.
    """
    sums = np.zeros(n_titles, np.float32)
    met = np.empty(n_titles, np.int32)
    for q in range(first, end):
        some = query_words[query_offsets[q] : query_offsets[q + 1]]
        n_met = _add_up(sums, met, some, word_offsets, titles, weights)
        for p in range(pair_offsets[q], pair_offsets[q + 1]):
            found[p] = sums[pair_titles[p]]
        for j in range(n_met):
            sums[met[j]] = 0


@kernel
def sums_of_words(words, word_offsets, titles, weights, n_titles):
    """All titles that hold one of some words, and their sums.

    Parameters
    ----------
    words : (n,) int32
        The words of one query.
    word_offsets, titles, weights, n_titles
        See above.

    Returns
    -------
    met, sums : (n_met,) int32, (n_met,) float32
        Titles in the order in which the lists name them first; each sum is above 0.
    """
    sums = np.zeros(n_titles, np.float32)
    met = np.empty(n_titles, np.int32)
    n_met = _add_up(sums, met, words, word_offsets, titles, weights)
    found = np.empty(n_met, np.float32)
    for j in range(n_met):
        found[j] = sums[met[j]]
    return met[:n_met].copy(), found


@inner_kernel
def _add_up(sums, met, words, word_offsets, titles, weights):
    """Add the lists of ``words`` to ``sums``, zero before; return how many titles were met.

    sums, met : (n_titles,) float32, (n_titles,) int32, written
        ``met`` starts with the titles whose sum is not 0.
    """
    n_met = 0
    for word in words:
        for entry in range(word_offsets[word], word_offsets[word + 1]):
            title = titles[entry]
            if sums[title] == 0:
                met[n_met] = title
                n_met += 1
            sums[title] += weights[entry]
    return n_met


@inner_kernel
def _take_highest(best, largest, sums, met):
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
        place = k
        while place > 0 and _is_before(total, title, largest[place - 1], best[place - 1]):
            if place < k:
                best[place], largest[place] = best[place - 1], largest[place - 1]
            place -= 1
        if place < k:
            best[place], largest[place] = title, total


@kernel
def _is_before(total, title, other_total, other_title):
    """Whether a title ranks before another. An empty place has the sum 0 and is the last."""
    return total > other_total or (total == other_total and title < other_title)
