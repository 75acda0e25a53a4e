"""SIF: averages of word vectors, their second moment, its eigenvectors, removal of components.

Arora, Liang and Ma, "A simple but tough-to-beat baseline for sentence embeddings" (ICLR 2017),
Algorithm 1.
"""

import numpy as np

from sentemb.kernels import sums
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.matmul import add_matmul

# Texts whose averages are in memory at once while the second moment is summed up.
_BLOCK = 256


@kernel
def average_words(X, table, word_index, offsets, first, end):
    """X[text] = the mean of its words' rows, zero for a text without words: line 2 of Algorithm 1.

    The rows hold the weights: row w is a / (a + p(w)) v_w.

    X : (n_texts, d) float, written for the texts ``first`` to ``end``; table : (n_words, d) float
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    """
    for text in range(first, end):
        _average(X[text], table, word_index, offsets[text], offsets[text + 1])


@kernel
def _average(x, table, word_index, start, stop):
    x[:] = 0
    for token in range(start, stop):
        v = table[word_index[token]]
        for j in range(x.size):
            x[j] += v[j]
    if stop > start:
        share = x.dtype.type(1) / x.dtype.type(stop - start)
        for j in range(x.size):
            x[j] *= share


@kernel
def add_moments(M, m, table, word_index, offsets, first, end):
    """Add sum x x^T and sum x over the averages x of the texts ``first`` to ``end``.

    The averages are never all in memory. The eigenvectors of M are the right singular vectors of
    the matrix X with a row for each text, line 4 of Algorithm 1. X is not centred
    (the paper's footnote 3).

    M, m : (d, d) float64, (d,) float64, added to
    table, word_index, offsets : as for `average_words`
    """
    d = m.size
    x = np.empty(d, table.dtype)
    X = np.empty((_BLOCK, d))
    for low in range(first, end, _BLOCK):
        high = min(low + _BLOCK, end)
        for text in range(low, high):
            _average(x, table, word_index, offsets[text], offsets[text + 1])
            for j in range(d):
                X[text - low, j] = x[j]
                m[j] += X[text - low, j]
        add_matmul(M, X[: high - low].T, X[: high - low])


@kernel
def orthogonalise_rows(B, sweeps):
    """One-sided Jacobi rotations (Hestenes 1958): rotate pairs of rows until all are orthogonal.

    If B is symmetric and positive semi-definite, its rows become its eigenvectors times their
    eigenvalues, in no order. Unlike LAPACK's solvers this has the same bits whatever the number of
    threads of the BLAS.

    B, (d, d) float64, is replaced; ``sweeps`` is the most sweeps over all pairs. Returns whether
    the rows are orthogonal, to a cosine of 1e-15 times the square root of d.
    """
    d = B.shape[0]
    smallest_cosine = 1e-15 * np.sqrt(d)
    for _ in range(sweeps):
        largest = 0.0
        for p in range(d):
            largest = max(largest, sums.dot(B[p], B[p]))
        # A row this short is an eigenvalue of zero and rounding noise.
        shortest = largest * 1e-28
        is_done = True
        for p in range(d - 1):
            for q in range(p + 1, d):
                alpha, beta = sums.dot(B[p], B[p]), sums.dot(B[q], B[q])
                gamma = sums.dot(B[p], B[q])
                small = abs(gamma) <= smallest_cosine * np.sqrt(alpha * beta)
                if small or min(alpha, beta) <= shortest:
                    continue
                is_done = False
                zeta = (beta - alpha) / (2 * gamma)
                t = 1 / (abs(zeta) + np.sqrt(1 + zeta * zeta))
                if zeta < 0:
                    t = -t
                c = 1 / np.sqrt(1 + t * t)
                s = c * t
                for j in range(d):
                    x, y = B[p, j], B[q, j]
                    B[p, j] = c * x - s * y
                    B[q, j] = s * x + c * y
        if is_done:
            return True
    return False


@kernel
def remove_components(X, U, strengths, first, end):
    """X[row] -= sum over k of strengths[k] (u_k . X[row]) u_k: line 6 of Algorithm 1.

    X : (n, d) float, changed from row ``first`` to row ``end``
    U : (k, d) float64, orthonormal rows
    strengths : (k,) float64, 1 in the paper; lambda_k of uSIF otherwise
    """
    k, d = U.shape
    shares = np.empty(k)
    for row in range(first, end):
        x = X[row]
        for i in range(k):
            total = 0.0
            for j in range(d):
                total += U[i, j] * x[j]
            shares[i] = strengths[i] * total
        for j in range(d):
            left = np.float64(x[j])
            for i in range(k):
                left -= shares[i] * U[i, j]
            x[j] = left
