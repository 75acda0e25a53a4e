"""The input layer: from features (letter trigrams and words) to words, and back.

Every distinct word of a batch is projected once: W l of equation (2) is the sum of the input rows
of its features. The gradient flows back by gathering: a word gathers from its tokens and an input
row from the words that hold its feature. Every row is written by one thread only.
"""

from typing import NamedTuple

import numpy as np

from sentemb.kernels.bits import set_bit, take_numbers
from sentemb.kernels.compiling.jit import inlined_kernel, inner_kernel, kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.prefetch import AHEAD, prefetch_row, prefetch_run

# Short lists between the one that is copied and the one that is asked for.
_LISTS_AHEAD = 16


class RowGradient(NamedTuple):
    """The gradient at the input rows of a mini-batch, in the form from which it is summed up.

    Row k of the mini-batch gets the sum of ``values[e] words[holders[e]]`` over the entries e from
    ``offsets[k]`` to ``offsets[k + 1]``.

    words : (n_words, width) float, the gradient at the projected words
    offsets : (n_rows + 1,) int64
    holders, values : (n_entries,) int32, (n_entries,) float32, the words that hold the feature of
        each row, and its value in each
    """

    words: np.ndarray
    offsets: np.ndarray
    holders: np.ndarray
    values: np.ndarray


@kernel
def cut_lists(edges, offsets, of_entry, of_item):
    """edges[p] = the first list before which lie p of n parts of what all lists cost.

    List k costs ``of_item`` and ``of_entry`` for each of its entries.

    edges : (n + 1,) int64, written
    offsets : (n_lists + 1,) int64
    """
    n, size = edges.size - 1, offsets.size - 1
    whole = of_entry * offsets[size] + of_item * size
    edges[0], edges[n] = 0, size
    first = 0
    for part in range(1, n):
        share, end = whole * part / n, size
        while first < end:
            middle = (first + end) // 2
            if of_entry * offsets[middle] + of_item * middle < share:
                first = middle + 1
            else:
                end = middle
        edges[part] = first


@kernel
def project_words(P, table, v, lead, rows, bias, offsets, ids, values, first, end):
    """P[w] = b + sum_k value_k X[id_k] for the words ``first`` to ``end``.

    X, the input rows of the batch, is ``table[rows] + lead v[rows]``. In training that is the
    look-ahead point; it is computed here because most rows are used by one or two words only.

    P : (n_words, width) float; bias : (width,) float
    table : (n_features, width) float; row k holds column k of every stacked input matrix W_g
    v : (n_features, width) float, velocities
    lead : (n_rows,) float, zero for all where there is no velocity
    rows : (n_rows,) int32, the distinct features of the batch, as rows of ``table``
    offsets, ids, values : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) float32
    """
    for w in range(first, end):
        p = P[w]
        copy_row(p, bias)
        for entry in range(offsets[w], offsets[w + 1]):
            if entry + AHEAD < offsets[end]:
                k = ids[entry + AHEAD]
                prefetch_row(table, rows[k])
                if lead[k] != 0:
                    prefetch_row(v, rows[k])
            k = ids[entry]
            value = P.dtype.type(values[entry])
            row = table[rows[k]]
            if lead[k] == 0:
                for j in range(p.size):
                    p[j] += value * row[j]
            else:
                velocity = v[rows[k]]
                share = value * lead[k]
                for j in range(p.size):
                    p[j] += value * row[j] + share * velocity[j]


@kernel
def gather_rows(out, column, source, offsets, items, first, end):
    """out[k, column:] = sum of source[items[e]] over the entries e of list k.

    The gradient at a word: the sum over its tokens. Done for the lists ``first`` to ``end``.

    out : (n_lists, at least column + width) float; the columns of this direction begin at
        ``column``
    source : (n_rows, width) float
    offsets, items : (n_lists + 1,) int64, (n_entries,) int32
    """
    for k in range(first, end):
        o = out[k, column : column + source.shape[1]]
        o[:] = 0
        for entry in range(offsets[k], offsets[k + 1]):
            if entry + AHEAD < offsets[end]:
                prefetch_row(source, items[entry + AHEAD])
            s = source[items[entry]]
            for j in range(o.size):
                o[j] += s[j]


@kernel
def sum_rows(out, source, first, end):
    """out += source[k] for the rows ``first`` to ``end``: (width,), (n_rows, width) float."""
    for k in range(first, end):
        s = source[k]
        for j in range(out.size):
            out[j] += s[j]


@kernel
def add_parts(total, parts, first, end):
    """total[j] = the sum of parts[p, j] over p, in this order, for columns ``first`` to ``end``.

    total : (n,) float, written; parts : (n_parts, n) float
    """
    out = total[first:end]
    out[:] = 0
    for p in range(len(parts)):
        part = parts[p, first:end]
        for j in range(out.size):
            out[j] += part[j]


@inner_kernel
def gather_weighted_row(o, source, offsets, items, weights, k):
    """o = sum of weights[e] source[items[e]] over the entries e of list k.

    The gradient at an input row: the sum over the words that hold its feature, times its values.

    o : (width,) float; source : (n_items, width) float
    offsets, items, weights : (n_lists + 1,) int64, (n_entries,) int32, (n_entries,) float32
    """
    o[:] = 0
    for entry in range(offsets[k], offsets[k + 1]):
        if entry + AHEAD < items.size:
            prefetch_row(source, items[entry + AHEAD])
        s = source[items[entry]]
        weight = o.dtype.type(weights[entry])
        for j in range(o.size):
            o[j] += weight * s[j]


@kernel
def gather_weighted_rows(out, gradient, first, end):
    """out[k] = the gradient at row k of a mini-batch, for the rows ``first`` to ``end``.

    out : (n_rows, width) float, written; gradient : RowGradient
    """
    source, offsets, holders, values = gradient
    for k in range(first, end):
        gather_weighted_row(out[k], source, offsets, holders, values, k)


@inlined_kernel
def _empty_lists(items, n_items):
    """Offsets of a list for every item, long enough for all its occurrences, and where each begins.

    items : (n_entries,) int32; the result is (n_items + 1,) and (n_items,) int64.
    """
    offsets = np.zeros(n_items + 1, np.int64)
    for item in items:
        offsets[item + 1] += 1
    for item in range(n_items):
        offsets[item + 1] += offsets[item]
    return offsets, offsets[:-1].copy()


@kernel
def invert_lists(offsets, items, n_items):
    """Turn lists of items into, for every item, the lists it is in (a counting sort).

    offsets, items : (n_lists + 1,) int64, (n_entries,) int32
    Returns (n_items + 1,) int64 offsets, and (n_entries,) int32 lists, ascending for each item
    """
    inverse_offsets, ends = _empty_lists(items, n_items)
    lists = np.empty(items.size, np.int32)
    for k in range(offsets.size - 1):
        for entry in range(offsets[k], offsets[k + 1]):
            item = items[entry]
            lists[ends[item]] = k
            ends[item] += 1
    return inverse_offsets, lists


@kernel
def invert_weighted_lists(offsets, items, weights, n_items):
    """As `invert_lists`, with the weight of every entry in place of where it came from.

    weights : (n_entries,) float32
    """
    inverse_offsets, ends = _empty_lists(items, n_items)
    lists = np.empty(items.size, np.int32)
    inverse_weights = np.empty(weights.size, weights.dtype)
    for k in range(offsets.size - 1):
        for entry in range(offsets[k], offsets[k + 1]):
            item = items[entry]
            lists[ends[item]] = k
            inverse_weights[ends[item]] = weights[entry]
            ends[item] += 1
    return inverse_offsets, lists, inverse_weights


@kernel
def take_texts(texts, word_index, offsets, local_word):
    """Copy some texts out of many, renumbering their words in order of first appearance.

    texts : (k,) int32
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    local_word : (n_words,) int32, scratch, -1 throughout, and left so
    Returns the new ``word_index`` and ``offsets`` (k + 1,), of the same dtypes, and the old number
        of every new word, (distinct words,) int32
    """
    new_offsets = np.zeros(texts.size + 1, np.int64)
    for k in range(texts.size):
        new_offsets[k + 1] = new_offsets[k] + offsets[texts[k] + 1] - offsets[texts[k]]
    new_index = np.empty(new_offsets[-1], np.int32)
    words = np.empty(new_offsets[-1] + 1, np.int32)
    n_words = np.int32(0)
    token = 0
    for k in range(texts.size):
        if k + _LISTS_AHEAD < texts.size:
            later = texts[k + _LISTS_AHEAD]
            prefetch_run(word_index, offsets[later], offsets[later + 1])
        for t in range(offsets[texts[k]], offsets[texts[k] + 1]):
            # Nobody can predict which words are new, so both cases take the same path.
            word = word_index[t]
            known = local_word[word]
            is_new = known < 0
            number = n_words if is_new else known
            words[n_words] = word
            local_word[word] = number
            new_index[token] = number
            n_words += np.int32(is_new)
            token += 1
    for k in range(n_words):
        local_word[words[k]] = -1
    return new_index, new_offsets, words[:n_words].copy()


@kernel
def take_words(words, offsets, ids, values, rows, bits, local_row):
    """Copy the feature lists of some words, renumbering the features in ascending order.

    words : (k,) int32
    offsets, ids, values : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) float32
    rows : (n_features,) int32, the row of the input weights of every feature, ascending
    bits, local_row : (m,) uint64, (n_features,) int32, scratch, as for `renumber`
    Returns the new ``offsets`` (k + 1,), ``ids`` and ``values``, of the same dtypes, and the row of
        every new feature, (distinct features,) int32, ascending, so that the rows of the input
        weights are visited in the order in which they lie in memory
    """
    new_offsets = np.zeros(words.size + 1, np.int64)
    for k in range(words.size):
        new_offsets[k + 1] = new_offsets[k] + offsets[words[k] + 1] - offsets[words[k]]
    new_ids = np.empty(new_offsets[-1], np.int32)
    new_values = np.empty(new_offsets[-1], np.float32)
    position = 0
    for k in range(words.size):
        if k + _LISTS_AHEAD < words.size:
            later = words[k + _LISTS_AHEAD]
            prefetch_run(ids, offsets[later], offsets[later + 1])
            prefetch_run(values, offsets[later], offsets[later + 1])
        for entry in range(offsets[words[k]], offsets[words[k] + 1]):
            new_ids[position] = ids[entry]
            new_values[position] = values[entry]
            set_bit(bits, ids[entry])
            position += 1
    features = np.empty(min(new_ids.size, local_row.size), np.int32)
    n_rows = take_numbers(bits, local_row, features)
    for position in range(new_ids.size):
        new_ids[position] = local_row[new_ids[position]]
    new_rows = np.empty(n_rows, np.int32)
    for k in range(n_rows):
        new_rows[k] = rows[features[k]]
    return new_offsets, new_ids, new_values, new_rows
