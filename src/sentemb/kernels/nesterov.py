"""Nesterov momentum (6) on the input weights, touching only the rows of a mini-batch, exactly.

A row without gradient for some updates would have moved by its momentum alone; `coefficients` says
how far, in closed form, so that nothing is lost by doing it when the row is next needed.
"""

import math

from sentemb.kernels.jit import kernel, summing_kernel


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
def look_ahead_rows(table, v, synced, lead, rows, update, bounds, momenta, first, end):
    """Move the rows of a mini-batch to theta + mu v, as if they had never been left behind.

    Parameters
    ----------
    table, v : (n_trigrams, width) float
        Of row r, theta + lead[r] v and v, both as they stood before update ``synced[r]``. Between
        updates a row stands at its next look-ahead point already, so a row that was touched by the
        update before needs nothing here.
    synced : (n_trigrams,) int64
    lead : (n_trigrams,) float64
    rows : (k,) int32
    update : int
        The number of the coming update.
    bounds, momenta : see `coefficients`
    """
    for k in range(first, end):
        row = rows[k]
        _, B = coefficients(synced[row], update + 1, bounds, momenta)
        if lead[row] == B:
            continue
        b = table.dtype.type(B - lead[row])
        lead[row] = B
        weights, velocity = table[row], v[row]
        for j in range(weights.size):
            weights[j] += b * velocity[j]


@kernel
def update_rows(table, v, synced, lead, dX, rows, update, bounds, momenta, rate, first, end):
    """One update (6) of the rows of a mini-batch, and on to their next look-ahead point.

    ``v = A v - rate dX`` and ``theta = look-ahead point - rate dX``; then the row is left at
    ``theta + mu v`` with mu of the following update.

    Arrays as `look_ahead_rows` left them; dX (k, width) the gradient there, ``rate`` the learning
    rate times the factor of the gradient's re-normalisation.
    """
    _, following = coefficients(update + 1, update + 2, bounds, momenta)
    mu = table.dtype.type(following)
    rate = table.dtype.type(rate)
    for k in range(first, end):
        row = rows[k]
        A, _ = coefficients(synced[row], update + 1, bounds, momenta)
        a = table.dtype.type(A)
        weights, velocity, dx = table[row], v[row], dX[k]
        for j in range(dx.size):
            step = rate * dx[j]
            moved = a * velocity[j] - step
            velocity[j] = moved
            weights[j] = weights[j] - step + mu * moved
        synced[row] = update + 1
        lead[row] = following


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


@summing_kernel
def sum_of_squares(X, partial, chunk, first, end):
    """partial[chunk] = the sum of squares of the rows ``first`` to ``end``, in float64."""
    total = 0.0
    for r in range(first, end):
        x = X[r]
        row_total = x.dtype.type(0)
        for j in range(x.size):
            row_total += x[j] * x[j]
        total += row_total
    partial[chunk] = total
