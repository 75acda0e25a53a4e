"""The paper's own form of the LSTM gradient: dc/dW accumulated forward, times error signals.

One text at a time, plainly, as an independent check of the reverse scan in lstm.py. The traces are
the same for the exact gradient and for the one that the paper prints; only the signals differ.
Gates are numbered [output 1, input 3, candidate 4, forget 2] along the first axis, as stacked.
"""

import numpy as np

from sentemb.kernels.compiling.jit import kernel


@kernel
def accumulate_trace(dX, U, b, f, signal, start, first):
    """dX += sum over t >= first of diag(signal(t)) Tr(t), Tr(t) = diag(f(t)) Tr(t-1) + b(t) u(t)^T.

    Equations (22), (26), (28), (30), (34), (38), (42), one for every choice of the factor b_g and
    of u: l(t), y(t-1), 1 and c(t-1) side by side. Misprints corrected: l(t) for x(t) in (24), (32),
    (40), and dc(t-1)/db_2 for dc(t-1)/db_3 in (36). The trace begins at step ``start``, with zero
    before it; step ``first`` is the first that is summed.

    dX : (n, k) float; U : (T, k) float; b, f, signal : (T, n) float
    """
    trace = np.zeros_like(dX)
    for t in range(start, U.shape[0]):
        for j in range(trace.shape[0]):
            for k in range(trace.shape[1]):
                trace[j, k] = f[t, j] * trace[j, k] + b[t, j] * U[t, k]
        if t >= first:
            for j in range(trace.shape[0]):
                for k in range(trace.shape[1]):
                    dX[j, k] += signal[t, j] * trace[j, k]


@kernel
def accumulate_products(dX, U, signal, first):
    """dX += sum over t >= first of signal(t) u(t)^T: the output gate (16)-(20), the RNN (9), (13).

    dX : (n, k) float; U : (T, k) float; signal : (T, n) float.
    """
    for t in range(first, U.shape[0]):
        for j in range(dX.shape[0]):
            for k in range(dX.shape[1]):
                dX[j, k] += signal[t, j] * U[t, k]


@kernel
def lstm_exact_signals(signals, v, o, i, y_g, f, h, c_last, R, Wp, first):
    """The signals that make the traces exact, for one text.

    With the factors of `lstm_backward`, and e(t), eps(t) the whole errors at y(t) and c(t)::

        signal_1(t)    = delta_1(t) = q e(t)
        signal_2..4(t) = L(t) = a e(t) + Wp_1^T delta_1(t)
                                + Wp_2^T delta_2(t+1) + Wp_3^T delta_3(t+1)

    L(t) is all that reaches c(t) except through f(t+1) c(t): the trace already has that path.

    signals : (4, T, n) float, written
    v : (n,) float, dL/dy(T)
    o, i, y_g, f, h, c_last : (T, n) float; c_last[t] is c(t-1)
    R : (4, n, n) float, Wrec of each gate
    Wp : (3, n, n) float, Wp_1, Wp_2, Wp_3; diagonal matrices for diagonal peepholes, zero for none.
        A missing gate has the value 1, and zero matrices here and in ``R``.
    first : steps before it get no error (truncation)
    """
    T, n = o.shape
    e = v.copy()
    eps_next = np.zeros_like(v)
    delta_2 = np.zeros_like(v)
    delta_3 = np.zeros_like(v)
    for t in range(T - 1, first - 1, -1):
        delta_1 = h[t] * o[t] * (1 - o[t]) * e
        L = o[t] * (1 - h[t] * h[t]) * e
        for j in range(n):
            for k in range(n):
                L[j] += Wp[0, k, j] * delta_1[k]
                L[j] += Wp[1, k, j] * delta_2[k] + Wp[2, k, j] * delta_3[k]
        eps = L.copy()
        if t < T - 1:
            eps += f[t + 1] * eps_next
        delta_2 = c_last[t] * f[t] * (1 - f[t]) * eps
        delta_3 = y_g[t] * i[t] * (1 - i[t]) * eps
        delta_4 = i[t] * (1 - y_g[t] * y_g[t]) * eps
        signals[0, t] = delta_1
        signals[1, t] = L
        signals[2, t] = L
        signals[3, t] = L
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += R[0, k, j] * delta_1[k] + R[1, k, j] * delta_3[k]
                total += R[2, k, j] * delta_4[k] + R[3, k, j] * delta_2[k]
            e[j] = total
        eps_next = eps


@kernel
def lstm_printed_signals(signals, v, o, h, R, first):
    """The signals (43) and (44) as the paper prints them, for one text; they are not the gradient.

    ::

        delta_1(T) = o (1 - o) h v,       delta_1(t-1) = o (1 - o) h * Wrec_1^T delta_1(t)
        delta_g(T) = (1 - h)(1 + h) o v,  delta_g(t-1) = (1 - h)(1 + h) o * Wrec_g^T delta_g(t)

    with o, h of the step on the left, g = 2, 3, 4. Shapes as in `lstm_exact_signals`.
    """
    T, n = o.shape
    for gate in range(4):
        error = v.copy()
        for t in range(T - 1, first - 1, -1):
            for j in range(n):
                if gate == 0:
                    factor = o[t, j] * (1 - o[t, j]) * h[t, j]
                else:
                    factor = (1 - h[t, j]) * (1 + h[t, j]) * o[t, j]
                signals[gate, t, j] = factor * error[j]
            for j in range(n):
                total = 0.0
                for k in range(n):
                    total += R[gate, k, j] * signals[gate, t, k]
                error[j] = total


@kernel
def rnn_signals(signals, v, slopes, R, first):
    """The RNN's delta(t) for one text, equations (10) and (11).

    signals : (T, n) float, written; v : (n,); slopes : (T, n), 1 - y^2, or 1 if the activation is
    the identity; R : (n, n) Wrec.
    """
    T, n = slopes.shape
    error = v.copy()
    for t in range(T - 1, first - 1, -1):
        for j in range(n):
            signals[t, j] = slopes[t, j] * error[j]
        for j in range(n):
            total = 0.0
            for k in range(n):
                total += R[k, j] * signals[t, k]
            error[j] = total
