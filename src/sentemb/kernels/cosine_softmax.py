"""The objective: cosine (3), softmax over one clicked and other titles (5), and their gradients."""

import math

from sentemb.kernels import sums
from sentemb.kernels.activations import exp_row
from sentemb.kernels.compiling.jit import inner_kernel, kernel
from sentemb.kernels.matmul import add_matmul


@kernel
def normalise_rows(U, norms, Y):
    """U = Y / ||Y|| row by row, of which products are the cosines (3); a zero row stays zero.

    U, Y : (n_texts, dim) float; norms : (n_texts,) float, written.
    """
    for r in range(norms.size):
        u, y = U[r], Y[r]
        norm = math.sqrt(sums.dot(y, y))
        norms[r] = norm
        scale = Y.dtype.type(0)
        if norm != 0:
            scale = Y.dtype.type(1) / norms[r]
        for j in range(y.size):
            u[j] = y[j] * scale


@kernel
def normalise_rows_backward(dU, U, norms):
    """dU becomes dL/dY = (dU - (dU . u) u) / ||y||, equation (15) summed over all pairs of a text.

    dU, U : (n_texts, dim) float; norms : (n_texts,) float.
    """
    for r in range(norms.size):
        du, u = dU[r], U[r]
        along = sums.dot(du, u)
        scale = dU.dtype.type(0)
        if norms[r] != 0:
            scale = dU.dtype.type(1) / norms[r]
        for j in range(u.size):
            du[j] = (du[j] - along * u[j]) * scale


@inner_kernel
def fill(row, columns, first, end, value):
    """row[columns[first:end]] = value."""
    for entry in range(first, end):
        row[columns[entry]] = value


@inner_kernel
def softmax_powers(s, gamma):
    """``s`` becomes exp(gamma (s - highest)), which cannot overflow; (highest, their sum).

    s : (k,) float, -inf for what is left out
    """
    gamma = s.dtype.type(gamma)
    highest = s[0]
    for j in range(1, s.size):
        if s[j] > highest:
            highest = s[j]
    for j in range(s.size):
        s[j] = gamma * (s[j] - highest)
    exp_row(s)
    total = sums.total(s)
    return highest, total


@inner_kernel
def softmax_loss_row(s, clicked, gamma, weight):
    """Loss of one query from its cosines, which the gradient with respect to them replaces.

    ``-log softmax(gamma s)[clicked]``, equation (5) in a form that cannot overflow, and
    ``gamma (p - 1)`` at the clicked title, ``gamma p`` elsewhere, both times ``weight``: equation
    (8) with the sign that (7) lacks. A title with the cosine -inf is left out.

    s : (k,) float
    """
    gamma, weight = s.dtype.type(gamma), s.dtype.type(weight)
    cosine = s[clicked]
    highest, total = softmax_powers(s, gamma)
    at_clicked = gamma * (cosine - highest)
    for j in range(s.size):
        s[j] = gamma * weight * s[j] / total
    s[clicked] -= gamma * weight
    return weight * (math.log(total) - at_clicked)


@kernel
def dense_softmax(
    S, losses, Uq, UdT, clicked, left_out_offsets, left_out, gamma, weights, first, end
):
    """Every title of the batch is a candidate for every query, except those known to be clicked.

    S : (n_pairs, n_titles) float, written for the pairs ``first`` to ``end``: dL/dR of every query
        and title
    losses : (n_pairs,) float64, written
    Uq : (n_pairs, dim) float, normalised query embeddings, one row per pair
    UdT : (dim, n_titles) float, normalised title embeddings, transposed
    clicked, weights : (n_pairs,) int32, (n_pairs,) float
    left_out_offsets, left_out : (n_pairs + 1,) int64, (n,) int32, other titles clicked for the same
        query, which do not compete
    """
    for r in range(first, end):
        s = S[r]
        s[:] = 0
    add_matmul(S[first:end], Uq[first:end], UdT)
    for r in range(first, end):
        s = S[r]
        start, stop = left_out_offsets[r], left_out_offsets[r + 1]
        fill(s, left_out, start, stop, -math.inf)
        losses[r] = softmax_loss_row(s, clicked[r], gamma, weights[r])
        fill(s, left_out, start, stop, 0)


@kernel
def soft_targets(
    T, Tq, TdT, shares, clicked, left_out_offsets, left_out, scale, first, end
):  # fmt: skip
    """Write the target of each pair's softmax: in part a teacher's softmax, in part the click.

    ``share q`` with ``q = softmax(scale t)``, where t are the teacher's cosines, and at the clicked
    title ``1 - share`` more. A teacher counts as far as it agrees with the click: the share is that
    of ``shares`` times q of the clicked title.

    T : (n_pairs, n_titles) float, written for the pairs ``first`` to ``end``
    Tq : (n_pairs, teacher's dim) float, its unit vector of the query of each pair
    TdT : (teacher's dim, n_titles) float, its unit vectors of the titles, transposed
    shares : (n_pairs,) float
    clicked, left_out_offsets, left_out : see `dense_softmax`
    """
    for r in range(first, end):
        t = T[r]
        t[:] = 0
    add_matmul(T[first:end], Tq[first:end], TdT)
    for r in range(first, end):
        t = T[r]
        fill(t, left_out, left_out_offsets[r], left_out_offsets[r + 1], -math.inf)
        _, total = softmax_powers(t, scale)
        share = shares[r] * (t[clicked[r]] / total)
        factor = share / total
        for j in range(t.size):
            t[j] *= factor
        t[clicked[r]] += 1 - share


@kernel
def taught_softmax(
    S, losses, Uq, UdT, T, left_out_offsets, left_out, gamma, weights, first, end
):  # fmt: skip
    """As `dense_softmax`, with the targets T of `soft_targets` in place of the clicked title.

    The loss of a pair is the cross-entropy -sum_j T_j log p_j, and its gradient with respect to the
    cosines gamma (p - T), both times the pair's weight.
    """
    for r in range(first, end):
        s = S[r]
        s[:] = 0
    add_matmul(S[first:end], Uq[first:end], UdT)
    for r in range(first, end):
        s, target = S[r], T[r]
        along = sums.dot(target, s)
        start, stop = left_out_offsets[r], left_out_offsets[r + 1]
        fill(s, left_out, start, stop, -math.inf)
        highest, total = softmax_powers(s, gamma)
        losses[r] = weights[r] * (math.log(total) - gamma * (along - highest))
        factor = s.dtype.type(gamma) * weights[r]
        for j in range(s.size):
            s[j] = factor * (s[j] / total - target[j])
        fill(s, left_out, start, stop, 0)


@kernel
def listed_softmax(dUq, dUd, losses, Uq, Ud, queries, offsets, candidates, gamma, weights, s):
    """Each pair has its own list of candidates, the clicked title first.

    dUq, dUd : (n_queries, dim), (n_titles, dim) float, added to
    losses : (n_pairs,) float64, written
    Uq, Ud : normalised embeddings, in the shapes of dUq and dUd
    queries, weights : (n_pairs,) int32, (n_pairs,) float
    offsets, candidates : (n_pairs + 1,) int64, (n,) int32, the title numbers of each pair's
        candidates
    s : (longest list,) float, scratch
    """
    dim = Uq.shape[1]
    for r in range(queries.size):
        start = offsets[r]
        cosines = s[: offsets[r + 1] - start]
        u, du = Uq[queries[r]], dUq[queries[r]]
        for k in range(cosines.size):
            cosines[k] = sums.dot(u, Ud[candidates[start + k]])
        losses[r] = softmax_loss_row(cosines, 0, gamma, weights[r])
        for k in range(cosines.size):
            d, dd = Ud[candidates[start + k]], dUd[candidates[start + k]]
            for j in range(dim):
                du[j] += cosines[k] * d[j]
            for j in range(dim):
                dd[j] += cosines[k] * u[j]


@kernel
def add_matmul_rows(C, A, B, first, end):
    """C[first:end] += A[first:end] B."""
    add_matmul(C[first:end], A[first:end], B)


@kernel
def add_matmul_columns(C, A, B, first, end):
    """C[first:end] += (A[:, first:end])^T B."""
    add_matmul(C[first:end], A[:, first:end].T, B)


@kernel
def add_rows(out, index, rows):
    """out[index[r]] += rows[r], one after the other."""
    for r in range(index.size):
        o, row = out[index[r]], rows[r]
        for j in range(row.size):
            o[j] += row[j]
