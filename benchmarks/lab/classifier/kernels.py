"""The classifier of Tai et al. (ACL 2015, section 4.2) on embeddings of texts or pairs of texts.

All activations have one column per example, so that every kernel works on rows of its own and the
threads share nothing: H (m, 2 k) holds the embeddings of the k first and then the k second texts.
The matrix products are those of `sentemb.kernels.matmul`, in which every element is one sum in a
fixed order, so the bits do not depend on the number of threads.
"""

import math

import numpy as np

from sentemb.kernels.activations import sigmoid_rows
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.matmul import add_matmul


@kernel
def pair_features(X, H, first, end):
    """X = [h_L * h_R; |h_L - h_R|], h_x and h_+ of Tai et al. (15), for some rows of H.

    X : (2 m, k) float, the rows ``first`` to ``end`` of both halves written; H : (m, 2 k) float
    """
    k = X.shape[1]
    for j in range(first, end):
        h, product, distance = H[j], X[j], X[H.shape[0] + j]
        for r in range(k):
            product[r] = h[r] * h[k + r]
            distance[r] = abs(h[r] - h[k + r])


@kernel
def pair_features_backward(dH, dX, H, first, end):
    """dH, the gradient at the embeddings, from dX, that at the features of `pair_features`.

    Where both embeddings are equal, |h_L - h_R| has a kink; there its slope counts as 0.

    dH, H : (m, 2 k) float; dX : (2 m, k) float
    """
    k = dX.shape[1]
    for j in range(first, end):
        h, dh, product, distance = H[j], dH[j], dX[j], dX[H.shape[0] + j]
        for r in range(k):
            left, right, apart = h[r], h[k + r], distance[r]
            if left < right:
                apart = -apart
            elif left == right:
                apart = dH.dtype.type(0)
            dh[r] = product[r] * right + apart
            dh[k + r] = product[r] * left - apart


@kernel
def hidden_rows(Z, W, bias, X, first, end):
    """Z = sigmoid(W X + b) for some hidden units: h_s of Tai et al. (15).

    Z : (n, k) float; W : (n, f) float; bias : (n,) float; X : (f, k) float
    """
    for j in range(first, end):
        Z[j] = bias[j]
    add_matmul(Z[first:end], W[first:end], X)
    sigmoid_rows(Z, first, end, 0, Z.shape[1])


@kernel
def hidden_errors(D, output, dO, Z, first, end):
    """D = (output^T dO) Z (1 - Z): the gradient at the hidden units' pre-activations.

    D, Z : (n, k) float; output : (c, n) float; dO : (c, k) float
    """
    for j in range(first, end):
        D[j] = 0
    add_matmul(D[first:end], output.T[first:end], dO)
    unity = Z.dtype.type(1)
    for j in range(first, end):
        d, z = D[j], Z[j]
        for r in range(z.size):
            d[r] *= z[r] * (unity - z[r])


@kernel
def softmax_columns(O):
    """Every column of O becomes its softmax, p-hat of Tai et al. (15).

    O : (c, k) float
    """
    for r in range(O.shape[1]):
        highest = O[0, r]
        for c in range(1, O.shape[0]):
            highest = max(highest, O[c, r])
        total = O.dtype.type(0)
        for c in range(O.shape[0]):
            O[c, r] = math.exp(O[c, r] - highest)
            total += O[c, r]
        for c in range(O.shape[0]):
            O[c, r] /= total


@kernel
def divergence_columns(O, losses, targets, weight):
    """KL(t || softmax(o)) of every column, and its gradient, which replaces the column.

    With one certain class, t = 1 there, it is the cross-entropy. The gradient is p-hat - t, times
    ``weight``. Computed in float64, as t (log t - o + log sum exp o), which cannot overflow.

    O : (c, k) float; losses : (k,) float64, written; targets : (c, k) float64, columns sum to 1
    """
    for r in range(O.shape[1]):
        highest = -math.inf
        for c in range(O.shape[0]):
            highest = max(highest, np.float64(O[c, r]))
        total = 0.0
        for c in range(O.shape[0]):
            total += math.exp(np.float64(O[c, r]) - highest)
        log_total = highest + math.log(total)
        loss = 0.0
        for c in range(O.shape[0]):
            t, log_p = targets[c, r], np.float64(O[c, r]) - log_total
            if t > 0:
                loss += t * (math.log(t) - log_p)
            O[c, r] = weight * (math.exp(log_p) - t)
        losses[r] = weight * loss
