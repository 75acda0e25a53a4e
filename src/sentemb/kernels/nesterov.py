"""Nesterov momentum (6) on the input weights: exact, yet it touches a mini-batch's rows only.

A row that gets no gradient for some updates moves by its momentum alone. `coefficients` gives that
move in closed form, so it can be made, exactly, when the row is next needed.
"""

import math
from typing import NamedTuple

import numpy as np

from sentemb.kernels.compiling.jit import kernel, strict_kernel
from sentemb.kernels.input_layer import gather_weighted_row
from sentemb.kernels.prefetch import AHEAD, prefetch_row

# Coefficients of fewer idle updates than this are looked up instead of computed.
_KNOWN_RESTS = 256


class MomentumRows(NamedTuple):
    """The input weights under momentum, with how far each row has been followed.

    A row is at theta + lead v, with theta and v as they were before update ``synced[row]``.

    table, velocity : (n_features, width) float
    synced, lead : (n_features,) int64, (n_features,) float64
    """

    table: np.ndarray
    velocity: np.ndarray
    synced: np.ndarray
    lead: np.ndarray


@kernel
def coefficients(start, end, bounds, momenta):
    """(A, B) with v_end = A v_start and theta_end = theta_start + B v_start, no gradient between.

    ``A = prod mu_i`` and ``B = sum_s prod_{i <= s} mu_i`` over the updates start <= i < end, from
    the closed form of each stretch of constant mu. Prefix products over all updates would
    underflow after a few thousand of them.

    bounds : (s + 1,) int64; stretch s of the schedule holds the updates ``bounds[s]`` to
        ``bounds[s + 1]``
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
def row_coefficients(lead_now, decay, state, rows, update, bounds, momenta):
    """Coefficients of the move of each row of a mini-batch before and after ``update``.

    With (A, B) of `coefficients` from update ``synced[row]`` to update + 1, the look-ahead point is
    the row + (B - lead) v, and v decays to A v.

    lead_now, decay : (k,) float, written: B - lead and A
    state : MomentumRows; rows : (k,) int32
    bounds, momenta : see `coefficients`
    """
    synced, lead = state.synced, state.lead
    # Most rows were idle for a few updates only, so logarithms are taken once per idle length.
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
    state,
    gradient,
    rows,
    lead_now,
    decay,
    update,
    mu,
    rate,
    first,
    end,
):
    """One update (6) of the rows of a mini-batch, which leaves them at their next look-ahead point.

    ``v = A v - rate g`` and ``theta = look-ahead point - rate g``. The row is then left at
    ``theta + mu v``, the point that the following update needs if it touches the row again.

    state : MomentumRows, changed
    gradient : RowGradient, from which g is summed up
    rows : (k,) int32, the rows of the mini-batch
    lead_now, decay : (k,) float, from `row_coefficients`
    mu : the momentum of the following update
    rate : the learning rate times the factor of the gradient's re-normalisation
    """
    table, v, synced, lead = state
    source, offsets, holders, values = gradient
    rate, following = table.dtype.type(rate), table.dtype.type(mu)
    g = np.empty(source.shape[1], source.dtype)
    for k in range(first, end):
        if k + AHEAD < end:
            prefetch_row(table, rows[k + AHEAD])
            prefetch_row(v, rows[k + AHEAD])
        gather_weighted_row(g, source, offsets, holders, values, k)
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


@strict_kernel
def nesterov_dense(theta, v, ahead, gradient, mu, rate):
    """One update (6) of an array that every mini-batch touches.

    ``v = mu v - rate g`` and ``theta = look-ahead point - rate g``, which is theta + v.

    theta, v : (n,) float, weights and velocity, changed
    ahead, gradient : (n,) float, the look-ahead point, and the gradient there
    """
    mu, rate = theta.dtype.type(mu), theta.dtype.type(rate)
    for j in range(theta.size):
        step = rate * gradient[j]
        v[j] = mu * v[j] - step
        theta[j] = ahead[j] - step


@kernel
def flush_rows(state, update, bounds, momenta, first, end):
    """Bring the rows ``first`` to ``end`` of a `MomentumRows` to theta and v before ``update``."""
    table, v, synced, lead = state
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
