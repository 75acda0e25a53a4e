"""Titles that can be among the best of a query, without a look at all: lists of words and clusters.

Sums of all titles, (n_titles,) float32, are 0 between queries; those that a query has met are in a
list, and become 0 again by it. A title that is met and whose sum is 0 has a number near 0 instead.
"""

import numpy as np

from sentemb.kernels.compiling.jit import inlined_kernel, kernel
from sentemb.kernels.scan import integer_dots

_NEARLY_0 = np.float32(1e-30)


@inlined_kernel
def _met(sums, met, n_met, title, value):
    # Without a branch, which a processor guesses wrong for many titles: that takes 4 times as long.
    before = sums[title]
    met[n_met] = title
    after = before + value
    sums[title] = after if after != 0 else _NEARLY_0
    return n_met + np.int64(before == 0)


@kernel
def walk(sums, met, n_met, words, offsets, titles, weights, mask):
    """Add the weights of some words to the sums of their titles; the number of titles met so far.

    sums : (n_titles,) float32, updated
    met : (n_titles + 1,) int32, updated; the first ``n_met`` are set, and the last is for no title
    words, offsets, titles, weights : as in `sentemb.kernels.bm25`
    mask : (n_titles,) bool, the titles that may be found, or (0,) for all
    """
    for word in words:
        for entry in range(offsets[word], offsets[word + 1]):
            title = titles[entry]
            if not mask.size or mask[title]:
                n_met = _met(sums, met, n_met, title, weights[entry])
    return n_met


@kernel
def add_values(sums, met, n_met, titles, values, mask):
    """As `walk`, with a value for each of some titles: (n,) int and float32."""
    for k in range(titles.size):
        if not mask.size or mask[titles[k]]:
            n_met = _met(sums, met, n_met, titles[k], values[k])
    return n_met


@kernel
def clear(sums, met):
    """Make the sums of the titles ``met`` 0."""
    for title in met:
        sums[title] = 0


@kernel
def sums_of(values, titles, sums, constants):
    """values[k] = the sum of title k and its constant; (n_titles,) float32, or (0,) for none."""
    for k in range(titles.size):
        values[k] = sums[titles[k]]
    if constants.size:
        for k in range(titles.size):
            values[k] += constants[titles[k]]


@kernel
def meet_clusters(
    values, met, clusters, offsets, titles, codes, scales, query, step, factor, sums, constants,
    mask,
):  # fmt: skip
    """values[k] = ``factor`` times the product of row k and the query, and the sum of its title.

    values, met : (n,) float32 and int32, written: for the rows of ``clusters``, one cluster after
        the other, -inf for a title that may not be found; and their titles
    offsets, titles : (n_clusters + 1,) int64, (n_rows,) int32: cluster c has the rows
        ``offsets[c]`` to ``offsets[c + 1]``, of these titles
    codes, scales, query, step : as for `sentemb.kernels.scan.integer_dots`
    """
    first = 0
    for cluster in clusters:
        low, high = offsets[cluster], offsets[cluster + 1]
        end = first + high - low
        line, of_line = values[first:end], titles[low:high]
        integer_dots(line, codes[low:high], scales[low:high], query, step)
        met[first:end] = of_line
        for k in range(line.size):
            line[k] = factor * line[k] + sums[of_line[k]]
        if constants.size:
            for k in range(line.size):
                line[k] += constants[of_line[k]]
        if mask.size:
            for k in range(line.size):
                if not mask[of_line[k]]:
                    line[k] = -np.inf
        first = end


@kernel
def add_entries(net, factor, offsets, titles, numbers, few_offsets, few_titles, few_weights):
    """Add ``factor`` times the weights of some lists to the entries of the same words and titles.

    net : (n_entries,) float32, updated, of the lists ``offsets`` and ``titles``
    numbers : (n_few_words,) int64, the list of each word; each of its titles is in that list
    few_offsets, few_titles, few_weights : the lists of the words
    """
    for few in range(numbers.size):
        if numbers[few] < 0:
            continue
        entry, end = offsets[numbers[few]], offsets[numbers[few] + 1]
        for few_entry in range(few_offsets[few], few_offsets[few + 1]):
            while entry < end and titles[entry] < few_titles[few_entry]:
                entry += 1
            if entry < end and titles[entry] == few_titles[few_entry]:
                net[entry] += factor * few_weights[few_entry]
