"""The first layer of DeepMatch: each unit sees the words of one topic in both texts.

A projected word says which topics it is in. It has ``slots`` topics as a word of a query and as
many as a word of a title, numbered from 1; 0 is none. Each slot has one weight for each of the
``units`` units of its topic, so that topic z owns the units (z - 1) ``units`` and following.
"""

from typing import NamedTuple

import numpy as np

from sentemb.kernels.compiling.jit import kernel


class WordColumns(NamedTuple):
    """The columns of a projected word that one side reads.

    topic, weight : the first column of the topics, and of the weights of the first slot
    slots, units, topics : how many there are
    """

    topic: int
    weight: int
    slots: int
    units: int
    topics: int


@kernel
def topic_of(p, slot, columns):
    """The topic in a slot of the projected word ``p``, 0 for none.

    It is taken modulo topics + 1, so that any number names one: a word that has several features is
    in the topic of their sum.
    """
    return int(np.rint(p[columns.topic + slot])) % (columns.topics + 1)


@kernel
def sum_topics(S, on, P, columns, word_index, offsets, first, end):
    """S[text, unit] = sum of the weights of the text's words in the topic of the unit.

    S : (n_texts, nodes) float, written for the texts ``first`` to ``end``
    on : (n_texts, topics) uint8, written: whether the text has a word in the topic
    P : (n_words, width) float
    columns : Columns, those of this side
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    """
    nodes = S.shape[1]
    for text in range(first, end):
        s, gate = S[text], on[text]
        s[:] = 0
        gate[:] = 0
        for token in range(offsets[text], offsets[text + 1]):
            p = P[word_index[token]]
            for slot in range(columns.slots):
                topic = topic_of(p, slot, columns)
                if topic == 0:
                    continue
                gate[topic - 1] = 1
                unit = (topic - 1) * columns.units
                column = columns.weight + slot * columns.units
                for u in range(min(columns.units, nodes - unit)):
                    s[unit + u] += p[column + u]


@kernel
def decide(Z, bias, Sx, on_x, queries, Sy, on_y, titles, units, first, end):
    """Z[k, unit] = g max(0, s_x s_y + b) for the pairs ``first`` to ``end``.

    The local decision of a unit is a bilinear form of rank one in the words of its topic,
    s_x s_y = (u . x)(v . y). The gate g is 1 if both texts have a word in the topic.

    Z : (n_pairs, nodes) float, written; bias : (nodes,) float
    Sx, on_x, Sy, on_y : as `sum_topics` left them; queries, titles : (n_pairs,) int32
    """
    zero = Z.dtype.type(0)
    for k in range(first, end):
        z, sx, sy = Z[k], Sx[queries[k]], Sy[titles[k]]
        gx, gy = on_x[queries[k]], on_y[titles[k]]
        z[:] = 0
        for topic in range(gx.size):
            if gx[topic] and gy[topic]:
                for unit in range(topic * units, min(z.size, (topic + 1) * units)):
                    a = sx[unit] * sy[unit] + bias[unit]
                    z[unit] = zero if a < zero else a


@kernel
def errors_at_sums(dS, D, S, offsets, pairs, other_text, first, end):
    """dS[text] = sum over the pairs of a text of D[k] S[other_text[k]], for some texts.

    dS : (n_texts, nodes) float, written; D : (n_pairs, nodes) float, the gradient at s_x s_y + b
    S : (n_others, nodes) float, the sums of the texts of the other side
    offsets, pairs : (n_texts + 1,) int64, (n_pairs,) int32; other_text : (n_pairs,) int32
    """
    for text in range(first, end):
        ds = dS[text]
        ds[:] = 0
        for entry in range(offsets[text], offsets[text + 1]):
            d, s = D[pairs[entry]], S[other_text[pairs[entry]]]
            for j in range(ds.size):
                ds[j] += d[j] * s[j]


@kernel
def errors_at_words(dX, dS, P, columns, word_index, offsets, first, end):
    """The backward pass of `sum_topics`: the gradient at every token of some texts.

    dX : (n_tokens, width) float, written, 0 at topics and at what the other side reads
    dS : (n_texts, nodes) float; the others : as for `sum_topics`
    """
    nodes = dS.shape[1]
    for text in range(first, end):
        ds = dS[text]
        for token in range(offsets[text], offsets[text + 1]):
            d, p = dX[token], P[word_index[token]]
            d[:] = 0
            for slot in range(columns.slots):
                topic = topic_of(p, slot, columns)
                if topic == 0:
                    continue
                unit = (topic - 1) * columns.units
                column = columns.weight + slot * columns.units
                for u in range(min(columns.units, nodes - unit)):
                    d[column + u] = ds[unit + u]
