"""CLSM's convolution over windows of words, and max pooling over the tokens of a text.

Shen et al., "A latent semantic model with convolutional-pooling structure for information
retrieval", CIKM 2014. The convolution's matrix has a slice for every word of its window, so each
distinct word is projected once by all slices side by side, and a window is a sum of slices. tanh is
increasing, so pooling before it and after it picks the same token; here it comes before.
"""

import math

import numpy as np

from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.copying import copy_row


@kernel
def pool_windows(M, argmax, P, bias, word_index, offsets, first, end):
    """M[text] = max over its tokens t of b + sum_o P[word(t + o), slice o].

    Words beyond the ends of a text count as zero. The first of equal tokens wins.

    M : (n_texts, k) float, written for the texts ``first`` to ``end``: before the tanh; 0 for a
        text without words
    argmax : (n_texts, k) int32, written: the token of each maximum
    P : (n_words, window * k) float; slice s is for the word ``s - window // 2`` words to the right
        of the window's middle
    bias : (k,) float
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    """
    k = M.shape[1]
    reach = P.shape[1] // k // 2
    z = np.empty(k, P.dtype)
    for text in range(first, end):
        best, best_token = M[text], argmax[text]
        low, high = offsets[text], offsets[text + 1]
        best[:] = -math.inf if high > low else 0
        for token in range(low, high):
            left, right = max(low, token - reach), min(high - 1, token + reach)
            copy_row(z, bias)
            for neighbour in range(left, right + 1):
                column = (neighbour - token + reach) * k
                p = P[word_index[neighbour], column : column + k]
                for j in range(k):
                    z[j] += p[j]
            for j in range(k):
                if z[j] > best[j]:
                    best[j] = z[j]
                    best_token[j] = token


@kernel
def pool_rows(M, argmax, U, starts, units, first, end):
    """M[text] = the maximum over the first rows of each text: pooling over the whole text.

    The first of equal rows wins.

    M : (n_texts, n) float, written for the texts ``first`` to ``end``; 0 for a text without units
    argmax : (n_texts, n) int32, written: the row of each maximum; the first row of a text without
        units
    U : (n_rows, n) float
    starts, units : (n_texts + 1,) int64, (n_texts,) int64, the first row of each text, and how many
        of its rows count
    """
    zero = M.dtype.type(0)
    for text in range(first, end):
        m, best_row, start = M[text], argmax[text], starts[text]
        for f in range(m.size):
            m[f] = U[start, f] if units[text] > 0 else zero
            best_row[f] = start
        for row in range(start + 1, start + units[text]):
            u = U[row]
            for f in range(m.size):
                greater = (u[f] > m[f]) | (u[f] != u[f])  # NaN stays visible
                m[f] = u[f] if greater else m[f]
                best_row[f] = row if greater else best_row[f]


@kernel
def spread_to_maxima(D, dM, argmax, offsets, first, end):
    """D = dM at the token of each maximum, 0 at all others: the gradient of max pooling.

    D : (n_tokens, k) float, written; dM : (n_texts, k) float; argmax : (n_texts, k) int32
    """
    for text in range(first, end):
        for token in range(offsets[text], offsets[text + 1]):
            D[token] = 0
        if offsets[text + 1] > offsets[text]:
            for j in range(dM.shape[1]):
                D[argmax[text, j], j] = dM[text, j]
