"""The LSTM: equations (2) forward, and the exact error recursion backward (reverse scan).

Gates are stacked side by side as [output 1, input 3, candidate 4, forget 2], each n wide. The
reduced model has no forget gate (f = 1). A model without output gate (o = 1, y = h) has the stack
without its first part; the paper has no such model. Rows are laid out by `pack_blocks`, and row k
of a step follows row k of the step before it.

This departs from the paper's Appendix A: its error signals (43) and (44) are not gradients. They
follow each gate through its own recurrent matrix only, leave out the cell's path, and miss the
factor b_i(t) between the cell and the gate. `lstm_backward` computes the whole error e(t) at
y(t) instead; see docs/gradients.md.
"""

import numpy as np

from sentemb.kernels.activations import sigmoid, tanh
from sentemb.kernels.compiling.jit import inlined_kernel, kernel
from sentemb.kernels.matmul import add_matmul
from sentemb.kernels.prefetch import AHEAD, prefetch_row
from sentemb.kernels.recurrent import cut_texts, start_errors


@kernel
def lstm_forward(
    Z,
    C,
    H,
    Y,
    P,
    column,
    words,
    block_steps,
    step_rows,
    recurrent,
    vectors,
    matrices,
    output_gate,
    first,
    end,
):
    """Equations (2) for the blocks ``first`` to ``end``.

    The arguments are not bundled: unpacking tuples would slow down the embedding of one text.
    Peepholes that are None are left out when the kernel is compiled.

    Z : (n_rows, G n) float, written: the gates' values [o, i, y_g, f]
    C, H, Y : (n_rows, n) float, written: c(t), h = tanh(c(t)), y(t); without an output gate H and Y
        are one array
    P : (n_words, width) float, W l + b of every distinct word; this direction's part begins at
        ``column``
    words, block_steps, step_rows : see `pack_blocks`
    recurrent : (n, G n) float, [Wrec_1^T, Wrec_3^T, Wrec_4^T, Wrec_2^T]
    vectors : (3, n) float, the diagonals Wp_1, Wp_2, Wp_3; None unless the peepholes are diagonal
    matrices : (3, n, n) float, Wp_1^T, Wp_2^T, Wp_3^T; None unless the peepholes are full matrices
    output_gate : bool
    """
    n = C.shape[1]
    width = Z.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    for b in range(first, end):
        next_block = step_rows[block_steps[b + 1]]
        for s in range(block_steps[b], block_steps[b + 1]):
            low, high = step_rows[s], step_rows[s + 1]
            for r in range(low, high):
                if r + AHEAD < next_block:
                    prefetch_row(P, words[r + AHEAD])
                z, p = Z[r], P[words[r], column : column + width]
                for j in range(width):
                    z[j] = p[j]
            starts = s == block_steps[b]
            before = 0  # where y(t-1) and c(t-1) of the texts that still run begin
            if not starts:
                before = step_rows[s - 1]
                add_matmul(Z[low:high], Y[before : before + high - low], recurrent)
                if matrices is not None:
                    c_before = C[before : before + high - low]
                    add_matmul(Z[low:high, input_:candidate], c_before, matrices[2])
                    if width > forget:
                        add_matmul(Z[low:high, forget:], c_before, matrices[1])
            # Row by row, while a row is in the first cache.
            for r in range(low, high):
                z, c, h, y = Z[r], C[r], H[r], Y[r]
                c_last = C[before + r - low]
                if starts:
                    c_last = h
                    for j in range(n):
                        c_last[j] = 0
                i, y_g = z[input_:candidate], z[candidate:forget]
                if vectors is not None:
                    _add_product(i, vectors[2], c_last)
                if width > forget:
                    f = z[forget:]
                    if vectors is not None:
                        _add_product(f, vectors[1], c_last)
                    for j in range(n):
                        i[j], f[j], y_g[j] = sigmoid(i[j]), sigmoid(f[j]), tanh(y_g[j])
                        c[j] = f[j] * c_last[j] + i[j] * y_g[j]
                else:
                    for j in range(n):
                        i[j], y_g[j] = sigmoid(i[j]), tanh(y_g[j])
                        c[j] = c_last[j] + i[j] * y_g[j]
                if not output_gate:
                    for j in range(n):
                        h[j] = tanh(c[j])
                elif matrices is None:
                    if vectors is not None:  # the output gate looks at the new c(t)
                        _add_product(z[:n], vectors[0], c)
                    _set_outputs(y, h, z, c)
            if output_gate and matrices is not None:
                add_matmul(Z[low:high, :n], C[low:high], matrices[0])
                for r in range(low, high):
                    _set_outputs(Y[r], H[r], Z[r], C[r])


@inlined_kernel
def _columns(n, output_gate):
    """First columns of the input gate, the candidate and the forget gate: int each."""
    first = n if output_gate else 0
    return first, first + n, first + 2 * n


@inlined_kernel
def _set_outputs(y, h, z, c):
    """h = tanh(c), the output gate, y = o h of one row: (n,) float; z (G n,) float."""
    for j in range(c.size):
        z[j], h[j] = sigmoid(z[j]), tanh(c[j])
        y[j] = z[j] * h[j]


@inlined_kernel
def _add_product(out, a, b):
    """out += a * b, element by element."""
    for j in range(out.size):
        out[j] += a[j] * b[j]


@kernel
def lstm_backward(
    D,
    C,
    H,
    V,
    column,
    steps,
    recurrent,
    vectors,
    matrices,
    output_gate,
    window,
    keep_cell_path,
    first,
    end,
):
    """Errors at the gates' pre-activations, from the last step of every text to its first.

    With a = o (1 - h^2), q = h o (1 - o), b_2 = c(t-1) f (1 - f), b_3 = y_g i (1 - i) and
    b_4 = i (1 - y_g^2), starting from e(m) = v and rho(m) = 0::

        delta_1(t) = q e(t)
        eps(t)     = a e(t) + rho(t) + Wp_1^T delta_1(t)             dL/dc(t)
        delta_g(t) = b_g eps(t),  g = 2, 3, 4
        rho(t-1)   = f eps(t) + Wp_2^T delta_2(t) + Wp_3^T delta_3(t)
        e(t-1)     = sum_g Wrec_g^T delta_g(t)

    This replaces (43) and (44). Without an output gate a = 1 - h^2 and there is no delta_1.

    D : (n_rows, G n) float, Z as `lstm_forward` left it; [delta_1, delta_3, delta_4, delta_2] of
        every row are written in its place
    C, H : as `lstm_forward` left them
    V, column : see `start_errors`
    steps : Steps
    recurrent : (G n, n) float, [Wrec_1; Wrec_3; Wrec_4; Wrec_2], the transpose of the forward
        pass's
    vectors : (3, n) float or None, as in `lstm_forward`
    matrices : (3, n, n) float or None: Wp_1, Wp_2, Wp_3, not transposed
    output_gate : bool
    window : steps from each text's own end through which errors travel (truncation, the paper's T)
    keep_cell_path : beyond the window, whether rho continues along the cell alone (`cec`) or stops
        (`window`)
    """
    order, lengths, block_steps, step_rows, block_texts = steps
    n = C.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    E = np.empty((block_texts, n), D.dtype)  # e(t) of the block's texts
    rho = np.empty((block_texts, n), D.dtype)
    for b in range(first, end):
        first_text = b * block_texts
        running = 0
        for s in range(block_steps[b + 1] - 1, block_steps[b] - 1, -1):
            low, high = step_rows[s], step_rows[s + 1]
            t = s - block_steps[b]
            start_errors(E, V, column, order, first_text, running, high - low)
            for k in range(running, high - low):
                rho[k] = 0
            running = high - low
            cut = cut_texts(lengths, first_text, running, t, window)
            for k in range(cut):
                E[k] = 0
                if not keep_cell_path:
                    rho[k] = 0
            # The window also cuts what the peepholes carry to a step outside it.
            cut = cut_texts(lengths, first_text, running, t - 1, window)
            before = step_rows[s - 1] if t > 0 else -1  # where c(t-1) begins; -1: it is 0
            if matrices is None:
                for k in range(running):  # row by row, while a row is in the first cache
                    d, eps = D[low + k], rho[k]
                    if output_gate:
                        _set_output_error(d, eps, E[k], H[low + k], vectors)
                    else:
                        _add_cell_error(eps, E[k], H[low + k])
                    _set_gate_errors(d, eps, C, before, k, output_gate)
                    if vectors is not None and k >= cut:
                        _add_product(eps, vectors[2], d[input_:candidate])
                        if d.size > forget:
                            _add_product(eps, vectors[1], d[forget:])
            else:
                for k in range(running):
                    if output_gate:
                        _set_output_error(D[low + k], rho[k], E[k], H[low + k], vectors)
                    else:
                        _add_cell_error(rho[k], E[k], H[low + k])
                if output_gate:
                    add_matmul(rho[:running], D[low:high, :n], matrices[0])
                for k in range(running):
                    _set_gate_errors(D[low + k], rho[k], C, before, k, output_gate)
                if t > 0:
                    errors = D[low + cut : high]
                    add_matmul(rho[cut:running], errors[:, input_:candidate], matrices[2])
                    if D.shape[1] > forget:
                        add_matmul(rho[cut:running], errors[:, forget:], matrices[1])
            if t > 0:  # there is a step before
                for k in range(running):
                    E[k] = 0
                add_matmul(E[:running], D[low:high], recurrent)


@inlined_kernel
def _set_output_error(d, eps, e, h, vectors):
    """delta_1 of one row in place of o; rho(t) in ``eps`` becomes eps(t).

    d : (G n,) float; eps, e, h : (n,) float.
    """
    unity = h.dtype.type(1)  # an int would turn float32 into float64
    for j in range(h.size):
        o = d[j]
        d[j] = h[j] * o * (unity - o) * e[j]
        eps[j] += o * (unity - h[j] * h[j]) * e[j]
    if vectors is not None:
        _add_product(eps, vectors[0], d[: h.size])


@inlined_kernel
def _add_cell_error(eps, e, h):
    """rho(t) in ``eps`` becomes eps(t) in a model without an output gate: rho + (1 - h^2) e.

    eps, e, h : (n,) float.
    """
    unity = h.dtype.type(1)  # an int would turn float32 into float64
    for j in range(h.size):
        eps[j] += (unity - h[j] * h[j]) * e[j]


@inlined_kernel
def _set_gate_errors(d, eps, C, before, k, output_gate):
    """delta_2, delta_3 and delta_4 of one row in place of f, i and y_g; ``eps`` becomes f eps(t).

    d : (G n,) float; eps : (n,) float; C : (n_rows, n) float, in which row ``before + k`` is
    c(t-1), or ``before`` is -1 at the first step; output_gate : bool.
    """
    n = eps.size
    input_, candidate, forget = _columns(n, output_gate)
    unity = eps.dtype.type(1)  # an int would turn float32 into float64
    d3, d4 = d[input_:candidate], d[candidate:forget]
    for j in range(n):
        i, y_g = d3[j], d4[j]
        d3[j] = y_g * i * (unity - i) * eps[j]
        d4[j] = i * (unity - y_g * y_g) * eps[j]
    if d.size > forget:
        d2 = d[forget:]
        if before < 0:
            for j in range(n):
                eps[j] *= d2[j]
                d2[j] = 0
        else:
            c_last = C[before + k]
            for j in range(n):
                f = d2[j]
                d2[j] = c_last[j] * f * (unity - f) * eps[j]
                eps[j] *= f


@kernel
def set_peephole_vector_gradient(sums, C, D, output_gate, block_steps, step_rows, part, first, end):
    """sums[part] = sum over t of delta * c in some blocks, dWp: diagonal peepholes.

    Wp_1 sees c(t), Wp_2 and Wp_3 see c(t-1). The traces (26), (34) and the product (19), diagonals
    only, summed with the exact errors.

    sums : (n_parts, 3, n) float; C : (n_rows, n); D : (n_rows, G n); output_gate : bool.
    """
    dp = sums[part]
    dp[:] = 0
    n = C.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    forget_gate = D.shape[1] > forget
    for b in range(first, end):
        for s in range(block_steps[b], block_steps[b + 1]):
            low, high = step_rows[s], step_rows[s + 1]
            for r in range(low, high):
                if output_gate:
                    _add_product(dp[0], D[r, :n], C[r])
                if s > block_steps[b]:
                    c_last = C[step_rows[s - 1] + r - low]
                    if forget_gate:
                        _add_product(dp[1], D[r, forget:], c_last)
                    _add_product(dp[2], D[r, input_:candidate], c_last)


@kernel
def set_peephole_matrix_gradient(sums, C, D, output_gate, block_steps, step_rows, part, first, end):
    """sums[part] = sum over t of c delta^T, dWp^T: full peepholes, as (19), (26), (34).

    sums : (n_parts, 3, n, n) float; C : (n_rows, n); D : (n_rows, G n); output_gate : bool.
    """
    dP = sums[part]
    dP[:] = 0
    n = C.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    forget_gate = D.shape[1] > forget
    for b in range(first, end):
        for s in range(block_steps[b], block_steps[b + 1]):
            low, high = step_rows[s], step_rows[s + 1]
            if output_gate:
                add_matmul(dP[0], C[low:high].T, D[low:high, :n])
            if s > block_steps[b]:
                before = step_rows[s - 1]
                c_last = C[before : before + high - low].T
                if forget_gate:
                    add_matmul(dP[1], c_last, D[low:high, forget:])
                add_matmul(dP[2], c_last, D[low:high, input_:candidate])
