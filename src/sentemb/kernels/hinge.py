"""The hinge loss over cosines: the nearest others of each text, and the gradient of each pair."""

import math

from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.matmul import add_matmul


@kernel
def all_cosines(S, Uq, UdT, first, end):
    """S[first:end] = Uq[first:end] UdT, the cosines of queries with all titles.

    S : (n_queries, n_titles) float, written; Uq : (n_queries, dim) float, rows of length 1;
    UdT : (dim, n_titles) float, columns of length 1.
    """
    for q in range(first, end):
        S[q][:] = 0
    add_matmul(S[first:end], Uq[first:end], UdT)


@kernel
def set_clicks_apart(of_clicks, S, queries, clicked, offsets, excluded):
    """Keep the cosine of every pair, and hide all known clicks from the search for others.

    of_clicks : (n_pairs,) float, written: the cosine of each pair
    S : (n_queries, n_titles) float, from `all_cosines`; becomes -inf where a title is clicked for a
        query
    queries, clicked : (n_pairs,) int32
    offsets, excluded : (n_pairs + 1,) int64, (n,) int32, the other titles that are clicked for the
        query of each pair
    """
    for r in range(queries.size):
        of_clicks[r] = S[queries[r], clicked[r]]
    for r in range(queries.size):
        s = S[queries[r]]
        s[clicked[r]] = -math.inf
        for entry in range(offsets[r], offsets[r + 1]):
            s[excluded[entry]] = -math.inf


@kernel
def nearest_titles(nearest, S, first, end):
    """For every query the unclicked title with the highest cosine, t1; of equal ones the first.

    nearest : (n_queries,) int32, written, -1 without such a title; S from `set_clicks_apart`.
    """
    for q in range(first, end):
        s, best = S[q], -1
        for d in range(s.size):
            if s[d] != -math.inf and (best < 0 or s[d] > s[best]):
                best = d
        nearest[q] = best


@kernel
def nearest_queries(nearest, S, first, end):
    """For every title the query with the highest cosine for which it is not clicked, t2.

    nearest : (n_titles,) int32, written; otherwise as `nearest_titles`.
    """
    for d in range(first, end):
        nearest[d] = -1
    for q in range(len(S)):
        s = S[q]
        for d in range(first, end):
            if s[d] != -math.inf and (nearest[d] < 0 or s[d] > S[nearest[d], d]):
                nearest[d] = q


@kernel
def hinge_pairs(
    dUq,
    dUd,
    losses,
    choices,
    Uq,
    Ud,
    S,
    of_clicks,
    titles,
    nearest,
    queries,
    clicked,
    margin,
    weights,
):
    """The loss of every pair and its gradient, equation (1) of Wieting et al. (ICLR 2016).

    ``max(0, margin - cos(q, d) + cos(q, t1)) + max(0, margin - cos(q, d) + cos(d, t2))`` times the
    weight of the pair. The print averages over pairs and adds penalties on the weights; here the
    pairs' weights say how they are averaged, and there are no penalties. In print t1 and t2 are
    phrases of the mini-batch from either side; here t1 is a title and t2 a query.

    A hinge at 0 has no gradient. NaN is not hidden: a hinge of NaN counts.

    dUq, dUd : (n_queries, dim), (n_titles, dim) float, added to
    losses : (n_pairs,) float64, written
    choices : (n_pairs, 2) int32, written: t1 and t2 of each pair, -1 where that hinge is at 0 or
        there is no other text
    Uq, Ud : normalised embeddings, in the shapes of dUq and dUd
    S, of_clicks : (n_queries, n_titles), (n_pairs,) float, from `set_clicks_apart`
    titles, nearest : (n_queries,), (n_titles,) int32, from `nearest_titles` and `nearest_queries`
    queries, clicked, weights : (n_pairs,) int32, int32 and float
    """
    margin = S.dtype.type(margin)
    for r in range(queries.size):
        q, d, w = queries[r], clicked[r], weights[r]
        u, v, du, dv = Uq[q], Ud[d], dUq[q], dUd[d]
        losses[r] = 0
        choices[r] = -1
        t = titles[q]
        if t >= 0:
            hinge = margin - of_clicks[r] + S[q, t]
            if not hinge <= 0:
                losses[r] += w * hinge
                choices[r, 0] = t
                negative, d_negative = Ud[t], dUd[t]
                for j in range(u.size):
                    du[j] += w * (negative[j] - v[j])
                    dv[j] -= w * u[j]
                    d_negative[j] += w * u[j]
        t = nearest[d]
        if t >= 0:
            hinge = margin - of_clicks[r] + S[t, d]
            if not hinge <= 0:
                losses[r] += w * hinge
                choices[r, 1] = t
                negative, d_negative = Uq[t], dUq[t]
                for j in range(u.size):
                    dv[j] += w * (negative[j] - u[j])
                    du[j] -= w * v[j]
                    d_negative[j] += w * v[j]
