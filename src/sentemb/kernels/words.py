"""The input layer: letter trigrams to words and back.

Every distinct word of a batch is projected once, W l of equation (2) being the sum of the rows of
its trigrams. The gradient flows back by gathering, word from its tokens and trigram from its words,
so that every row has one owner and threads never meet.
"""

import numpy as np

from sentemb.kernels.jit import kernel, summing_kernel


@kernel
def project_words(P, table, v, lead, rows, bias, offsets, ids, counts, first, end):
    """P[w] = b + sum_k count_k X[id_k] for the words ``first`` to ``end``.

    X, the input weights of the batch's trigrams, are ``table[rows] + lead v[rows]``: in training
    the look-ahead point, made on the fly because most rows are used by one or two words only.

    Parameters
    ----------
    P : (n_words, width) float
    table : (n_trigrams, width) float
        Row k holds column k of every stacked input matrix W_g.
    v : (n_trigrams, width) float
        Velocities.
    lead : (n_rows,) float
        Zero for all where there is no velocity.
    rows : (n_rows,) int32
        The distinct trigrams of the batch.
    bias : (width,) float
    offsets, ids, counts : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) int32
    """
    for w in range(first, end):
        p = P[w]
        p[:] = bias
        for entry in range(offsets[w], offsets[w + 1]):
            k = ids[entry]
            count = P.dtype.type(counts[entry])
            row = table[rows[k]]
            if lead[k] == 0:
                for j in range(p.size):
                    p[j] += count * row[j]
            else:
                velocity = v[rows[k]]
                share = count * lead[k]
                for j in range(p.size):
                    p[j] += count * row[j] + share * velocity[j]


@kernel
def gather_rows(out, column, source, offsets, items, first, end):
    """out[k, column:] = sum of source[items[e]] over the entries e of list k, for some lists.

    The gradient at a word: the sum over its tokens.

    Parameters
    ----------
    out : (n_lists, at least column + width) float
    column : int
        Where the columns of this direction begin.
    source : (n_rows, width) float
    offsets, items : (n_lists + 1,) int64, (n_entries,) int32
    """
    for k in range(first, end):
        o = out[k, column : column + source.shape[1]]
        o[:] = 0
        for entry in range(offsets[k], offsets[k + 1]):
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
def gather_weighted_row(o, source, offsets, items, weights, k):
    """o = sum of weights[e] source[items[e]] over the entries e of list k.

    The gradient at a trigram's row: the sum over the words that hold it, times its count there.

    Parameters
    ----------
    o : (width,) float
    source : (n_items, width) float
    offsets, items, weights : (n_lists + 1,) int64, (n_entries,) int32, (n_entries,) int32
    k : int
    """
    o[:] = 0
    for entry in range(offsets[k], offsets[k + 1]):
        s = source[items[entry]]
        weight = o.dtype.type(weights[entry])
        for j in range(o.size):
            o[j] += weight * s[j]


@kernel
def gather_weighted_rows(out, source, offsets, items, weights, first, end):
    """`gather_weighted_row` into out[k] for the lists ``first`` to ``end``."""
    for k in range(first, end):
        gather_weighted_row(out[k], source, offsets, items, weights, k)


@summing_kernel
def gather_squares(squares, source, offsets, items, weights, first, end):
    """squares[k] = sum of squares of what `gather_weighted_row` gives: for the gradient's norm.

    The rows themselves are not kept: there are as many bytes in them as in the weights, and
    gathering them again when they are needed costs less than writing and reading them.
    """
    o = np.empty(source.shape[1], source.dtype)
    for k in range(first, end):
        gather_weighted_row(o, source, offsets, items, weights, k)
        total = source.dtype.type(0)
        for j in range(o.size):
            total += o[j] * o[j]
        squares[k] = total


@kernel
def invert_lists(offsets, items, n_items):
    """Turn lists of items into, for every item, the lists it is in (a counting sort).

    Parameters
    ----------
    offsets, items : (n_lists + 1,) int64, (n_entries,) int32
    n_items : int

    Returns
    -------
    inverse_offsets : (n_items + 1,) int64
    lists : (n_entries,) int32
        In rising order for each item.
    entries : (n_entries,) int32
        The place in ``items`` that each came from.
    """
    inverse_offsets = np.zeros(n_items + 1, np.int64)
    for item in items:
        inverse_offsets[item + 1] += 1
    for item in range(n_items):
        inverse_offsets[item + 1] += inverse_offsets[item]
    place = inverse_offsets[:-1].copy()
    lists = np.empty(items.size, np.int32)
    entries = np.empty(items.size, np.int32)
    for k in range(offsets.size - 1):
        for entry in range(offsets[k], offsets[k + 1]):
            item = items[entry]
            lists[place[item]] = k
            entries[place[item]] = entry
            place[item] += 1
    return inverse_offsets, lists, entries


@kernel
def take_texts(texts, word_index, offsets, local_word):
    """Copy some texts out of many, with their words numbered anew in order of first appearance.

    Parameters
    ----------
    texts : (k,) int32
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    local_word : (n_words,) int32
        Scratch, -1 throughout, and left so.

    Returns
    -------
    new_index : (tokens of the k texts,) int32
    new_offsets : (k + 1,) int64
    words : (distinct words,) int32
        The old number of every new one.
    """
    new_offsets = np.zeros(texts.size + 1, np.int64)
    for k in range(texts.size):
        new_offsets[k + 1] = new_offsets[k] + offsets[texts[k] + 1] - offsets[texts[k]]
    new_index = np.empty(new_offsets[-1], np.int32)
    words = np.empty(new_offsets[-1], np.int32)
    n_words = 0
    token = 0
    for text in texts:
        for t in range(offsets[text], offsets[text + 1]):
            word = word_index[t]
            if local_word[word] < 0:
                local_word[word] = n_words
                words[n_words] = word
                n_words += 1
            new_index[token] = local_word[word]
            token += 1
    for k in range(n_words):
        local_word[words[k]] = -1
    return new_index, new_offsets, words[:n_words].copy()


@kernel
def take_words(words, offsets, ids, counts, local_row):
    """Copy the trigram lists of some words, with the trigrams numbered anew in rising order.

    Parameters
    ----------
    words : (k,) int32
    offsets, ids, counts : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) int32
    local_row : (n_trigrams,) int32
        Scratch, -1 throughout, and left so.

    Returns
    -------
    new_offsets, new_ids, new_counts : (k + 1,) int64, (entries,) int32, (entries,) int32
    rows : (distinct trigrams,) int32
        The old number of every new one, rising, so that the rows of the input weights are visited
        in the order in which they lie in memory.
    """
    new_offsets = np.zeros(words.size + 1, np.int64)
    for k in range(words.size):
        new_offsets[k + 1] = new_offsets[k] + offsets[words[k] + 1] - offsets[words[k]]
    new_ids = np.empty(new_offsets[-1], np.int32)
    new_counts = np.empty(new_offsets[-1], np.int32)
    place = 0
    n_rows = 0
    for word in words:
        for entry in range(offsets[word], offsets[word + 1]):
            new_ids[place] = ids[entry]
            new_counts[place] = counts[entry]
            place += 1
            if local_row[ids[entry]] < 0:
                local_row[ids[entry]] = 0
                n_rows += 1
    rows = np.empty(n_rows, np.int32)
    found = 0
    for row in range(local_row.size):
        if local_row[row] == 0:
            rows[found] = row
            local_row[row] = found
            found += 1
    for place in range(new_ids.size):
        new_ids[place] = local_row[new_ids[place]]
    for row in rows:
        local_row[row] = -1
    return new_offsets, new_ids, new_counts, rows
