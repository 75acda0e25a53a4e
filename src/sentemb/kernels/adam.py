"""Adam (Kingma and Ba, arXiv 1412.6980, algorithm 1) on the rows that a mini-batch touches.

Rows that it does not touch keep their weights and moments, as in PyTorch's SparseAdam. A rare
feature therefore takes a full step every time it occurs, so Adam learns rare words well.
"""

import math

import numpy as np

from sentemb.kernels.compiling.jit import kernel, strict_kernel
from sentemb.kernels.input_layer import gather_weighted_row
from sentemb.kernels.prefetch import AHEAD, prefetch_row


@kernel
def adam_rows(
    table,
    first_moment,
    second_moment,
    gradient,
    rows,
    rate,
    beta1,
    beta2,
    scale,
    root_scale,
    first,
    end,
):
    """One update of the rows ``first`` to ``end`` of a mini-batch.

    With g a row's gradient times ``scale``, ``m = beta1 m + (1 - beta1) g``,
    ``v = beta2 v + (1 - beta2) g^2`` and ``theta = theta - rate m / (root_scale sqrt(v) + 1e-8)``.

    table, first_moment, second_moment : (n_rows, width) float, theta, m and v, changed
    gradient : RowGradient, from which g is summed up
    rows : (k,) int32, the rows of the mini-batch
    rate, root_scale : the learning rate over 1 - beta1^t, and 1 / sqrt(1 - beta2^t)
    scale : the factor of the gradient's re-normalisation
    """
    dtype = table.dtype.type
    rate, scale, root_scale, tiny = dtype(rate), dtype(scale), dtype(root_scale), dtype(1e-8)
    keep1, keep2 = dtype(beta1), dtype(beta2)
    new1, new2 = dtype(1 - beta1), dtype(1 - beta2)
    source, offsets, holders, values = gradient
    g = np.empty(source.shape[1], source.dtype)
    for k in range(first, end):
        if k + AHEAD < end:
            row = rows[k + AHEAD]
            prefetch_row(table, row)
            prefetch_row(first_moment, row)
            prefetch_row(second_moment, row)
        gather_weighted_row(g, source, offsets, holders, values, k)
        theta, m, v = table[rows[k]], first_moment[rows[k]], second_moment[rows[k]]
        for j in range(g.size):
            x = scale * g[j]
            m[j] = keep1 * m[j] + new1 * x
            v[j] = keep2 * v[j] + new2 * x * x
            theta[j] -= rate * m[j] / (root_scale * math.sqrt(v[j]) + tiny)


@strict_kernel
def adam_dense(theta, m, v, gradient, rate, beta1, beta2, scale, root_scale):
    """One update of an array that every mini-batch touches: ``m += (1 - beta1)(g - m)``.

    theta, m, v : (n,) float, changed; gradient : (n,) float; the rest as for `adam_rows`
    """
    dtype = theta.dtype.type
    rate, scale, root_scale, tiny = dtype(rate), dtype(scale), dtype(root_scale), dtype(1e-8)
    new1, new2 = dtype(1 - beta1), dtype(1 - beta2)
    for j in range(theta.size):
        g = scale * gradient[j]
        m[j] += new1 * (g - m[j])
        v[j] += new2 * (g * g - v[j])
        theta[j] -= rate * m[j] / (root_scale * math.sqrt(v[j]) + tiny)
