"""Nesterov momentum (6) on the input weights, touching only the rows of a mini-batch, exactly.

A row without gradient for some updates would have moved by its momentum alone; `coefficients` says
how far, in closed form, so that nothing is lost by doing it when the row is next needed.
"""

import math

import numpy as np

from sentemb.kernels.jit import kernel
from sentemb.kernels.words import gather_weighted_row

# Rests up to this many updates are looked up instead of computed.
_KNOWN_RESTS = 256


@kernel
def coefficients(start, end, bounds, momenta):
    """(A, B) with v_end = A v_start and theta_end = theta_start + B v_start, no gradient between.

    ``A = prod mu_i`` and ``B = sum_s prod_{i <= s} mu_i`` over the updates start <= i < end, from
    the closed form of each stretch of constant mu. Prefix products over all updates would cancel
    to nothing after a few thousand of them.

    Parameters
    ----------
    start, end : int
    bounds : (s + 1,) int64
        Stretch s of the schedule holds the updates ``bounds[s]`` to ``bounds[s + 1]``.
    momenta : (s,) float64
    """
    A, B = 1.0, 0.0
    for s in range(momenta.size):
        steps = min(end, bounds[s + 1]) - max(start, bounds[s])
        if steps <= 0:
            continue
        mu = momenta[s]
        if mu > 0:
            log_power = steps * math.log(mu)
            a = math.exp(log_power)
            b = -mu * math.expm1(log_power) / (1 - mu)
        else:
            a = 0.0
            b = 0.0
        B += A * b
        A *= a
    return A, B


@kernel
def row_coefficients(lead_now, decay, synced, lead, rows, update, bounds, momenta):
    """How far each row of a mini-batch must move before and after ``update``.

    A row stands at theta + lead v, theta and v as before update ``synced[row]``. With (A, B) of
    `coefficients` from there to update + 1, the look-ahead point is the row + (B - lead) v, and v
    decays to A v.

    Parameters
    ----------
    lead_now, decay : (k,) float, written
        B - lead and A.
    synced, lead : (n_trigrams,) int64, (n_trigrams,) float64
    rows : (k,) int32
    update : int
    bounds, momenta : see `coefficients`
    """
    # Most rows rested for a few updates only, so the logarithms are taken once for each rest.
    known = min(update + 1, _KNOWN_RESTS)
    A_of_rest, B_of_rest = np.empty(known), np.empty(known)
    for rest in range(known):
        A_of_rest[rest], B_of_rest[rest] = coefficients(update - rest, update + 1, bounds, momenta)
    for k in range(rows.size):
        row = rows[k]
        rest = update - synced[row]
        if rest < known:
            A, B = A_of_rest[rest], B_of_rest[rest]
        else:
            A, B = coefficients(synced[row], update + 1, bounds, momenta)
        lead_now[k] = B - lead[row]
        decay[k] = A


@kernel
def update_rows(
    table,
    v,
    synced,
    lead,
    dP,
    offsets,
    words,
    counts,
    lead_now,
    decay,
    rows,
    update,
    mu,
    rate,
    first,
    end,
):
    """One update (6) of the rows of a mini-batch, and on to their next look-ahead point.

    ``v = A v - rate g`` and ``theta = look-ahead point - rate g``; then the row is left at
    ``theta + mu v``, where the following update will want it if it touches it again.

    Parameters
    ----------
    table, v : (n_trigrams, width) float
    synced, lead : (n_trigrams,) int64, (n_trigrams,) float64
    dP : (n_words, width) float
        The gradient at the words' projections.
    offsets, words, counts : (k + 1,) int64, (n_entries,) int32, (n_entries,) int32
        The words that hold each trigram, and how often: g is gathered from dP by them.
    lead_now, decay : (k,) float
        As `row_coefficients` gave them.
    rows : (k,) int32
    update : int
    mu : float
        The momentum of the following update.
    rate : float
        The learning rate times the factor of the gradient's re-normalisation.
    """
    rate, following = table.dtype.type(rate), table.dtype.type(mu)
    g = np.empty(dP.shape[1], dP.dtype)
    for k in range(first, end):
        gather_weighted_row(g, dP, offsets, words, counts, k)
        row = rows[k]
        b, a = lead_now[k], decay[k]
        weights, velocity = table[row], v[row]
        for j in range(g.size):
            step = rate * g[j]
            moved = a * velocity[j] - step
            weights[j] = weights[j] + b * velocity[j] - step + following * moved
            velocity[j] = moved
        synced[row] = update + 1
        lead[row] = mu


@kernel
def flush_rows(table, v, synced, lead, update, bounds, momenta, first, end):
    """Bring the rows ``first`` to ``end`` to theta and v as they stand before ``update``."""
    for row in range(first, end):
        if synced[row] == update and lead[row] == 0:
            continue
        A, B = coefficients(synced[row], update, bounds, momenta)
        a, b = table.dtype.type(A), table.dtype.type(B - lead[row])
        weights, velocity = table[row], v[row]
        for j in range(weights.size):
            weights[j] += b * velocity[j]
            velocity[j] *= a
        synced[row] = update
        lead[row] = 0
