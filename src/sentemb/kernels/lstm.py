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

from typing import NamedTuple

import numpy as np

from sentemb.kernels.activations import sigmoid_rows, tanh_rows
from sentemb.kernels.jit import kernel
from sentemb.kernels.matmul import add_matmul
from sentemb.kernels.recurrent import cut_texts, start_errors


class Peepholes(NamedTuple):
    """The peephole weights of one direction; without peepholes both are empty.

    Attributes
    ----------
    vectors : (3, n) float
        The diagonals Wp_1, Wp_2, Wp_3; (3, 0) unless the peepholes are diagonal.
    matrices : (3, n, n) float
        Wp_1, Wp_2, Wp_3 or their transposes; (3, 0, 0) unless the peepholes are full.
    """

    vectors: np.ndarray
    matrices: np.ndarray


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
    peephole_vectors,
    peephole_matrices,
    output_gate,
    chunk,
    n_chunks,
):
    """Equations (2) for the blocks ``chunk``, ``chunk + n_chunks``, ...

    The arguments are not bundled: unpacking tuples would slow down the embedding of one text.

    Parameters
    ----------
    Z : (n_rows, G n) float, written
        The gates' values [o, i, y_g, f].
    C, H, Y : (n_rows, n) float, written
        c(t), h = tanh(c(t)), y(t). Without an output gate H and Y are one array.
    P : (n_words, width) float
        W l + b of every distinct word; this direction's part begins at ``column``.
    words, block_steps, step_rows : see `pack_blocks`
    recurrent : (n, G n) float
        [Wrec_1^T, Wrec_3^T, Wrec_4^T, Wrec_2^T].
    peephole_vectors : (3, n) float
        The diagonals Wp_1, Wp_2, Wp_3; (3, 0) unless the peepholes are diagonal.
    peephole_matrices : (3, n, n) float
        Wp_1^T, Wp_2^T, Wp_3^T; (3, 0, 0) unless the peepholes are full matrices.
    output_gate : bool
    """
    n = C.shape[1]
    width = Z.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    for b in range(chunk, block_steps.size - 1, n_chunks):
        for s in range(block_steps[b], block_steps[b + 1]):
            low, high = step_rows[s], step_rows[s + 1]
            for r in range(low, high):
                z = Z[r]
                p = P[words[r], column : column + width]
                for j in range(width):
                    z[j] = p[j]
            before = -1  # where y(t-1) and c(t-1) of the texts that still run begin
            if s > block_steps[b]:
                before = step_rows[s - 1]
                z_now, c_before = Z[low:high], C[before : before + high - low]
                add_matmul(z_now, Y[before : before + high - low], recurrent)
                _add_peepholes(z_now, c_before, peephole_vectors, peephole_matrices, output_gate)
            sigmoid_rows(Z, low, high, input_, candidate)
            tanh_rows(Z, low, high, candidate, forget)
            if width > forget:
                sigmoid_rows(Z, low, high, forget, width)
            _set_cells(C, Z, low, high, before, output_gate)
            if output_gate:
                # the output gate looks at the new c(t)
                if peephole_matrices.size:
                    add_matmul(Z[low:high, :n], C[low:high], peephole_matrices[0])
                elif peephole_vectors.size:
                    for r in range(low, high):
                        _add_product(Z[r, :n], peephole_vectors[0], C[r])
                sigmoid_rows(Z, low, high, 0, n)
            for r in range(low, high):
                c, h = C[r], H[r]
                for j in range(n):
                    h[j] = c[j]
            tanh_rows(H, low, high, 0, n)
            if output_gate:
                for r in range(low, high):
                    o, h, y = Z[r, :n], H[r], Y[r]
                    for j in range(n):
                        y[j] = o[j] * h[j]


@kernel
def _columns(n, output_gate):
    """Where the input gate, the candidate and the forget gate begin in the stack: int each."""
    if output_gate:
        return n, 2 * n, 3 * n
    return 0, n, 2 * n


@kernel
def _add_peepholes(Z, c_before, peephole_vectors, peephole_matrices, output_gate):
    """Add to one step's input and forget gates what their peepholes see of c(t-1).

    Z : (rows, G n) float; c_before : (rows, n) float; the others as in `lstm_forward`.
    """
    input_, candidate, forget = _columns(c_before.shape[1], output_gate)
    forget_gate = Z.shape[1] > forget
    if peephole_matrices.size:
        add_matmul(Z[:, input_:candidate], c_before, peephole_matrices[2])
        if forget_gate:
            add_matmul(Z[:, forget:], c_before, peephole_matrices[1])
    elif peephole_vectors.size:
        for k in range(len(Z)):
            _add_product(Z[k, input_:candidate], peephole_vectors[2], c_before[k])
            if forget_gate:
                _add_product(Z[k, forget:], peephole_vectors[1], c_before[k])


@kernel
def _set_cells(C, Z, low, high, before, output_gate):
    """c = f * c(t-1) + i * y_g for the rows ``low`` to ``high`` of one step.

    C : (n_rows, n) float, written; Z : (n_rows, G n) float, the values of the gates; before : int,
    the first row of c(t-1), or -1 at the first step; output_gate : bool.
    """
    n = C.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    for r in range(low, high):
        c = C[r]
        i = Z[r, input_:candidate]
        y_g = Z[r, candidate:forget]
        if before < 0:
            for j in range(n):
                c[j] = i[j] * y_g[j]
            continue
        c_last = C[before + r - low]
        if Z.shape[1] > forget:
            f = Z[r, forget:]
            for j in range(n):
                c[j] = f[j] * c_last[j] + i[j] * y_g[j]
        else:
            for j in range(n):
                c[j] = c_last[j] + i[j] * y_g[j]


@kernel
def _add_product(out, a, b):
    """out += a * b, element by element."""
    for j in range(out.size):
        out[j] += a[j] * b[j]


@kernel
def lstm_backward(
    D,
    Z,
    C,
    H,
    V,
    column,
    steps,
    recurrent,
    peepholes,
    output_gate,
    window,
    keep_cell_path,
    chunk,
    n_chunks,
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

    Parameters
    ----------
    D : (n_rows, G n) float, written
        [delta_1, delta_3, delta_4, delta_2] of every row.
    Z, C, H : as `lstm_forward` left them
    V, column : see `start_errors`
    steps : Steps
    recurrent : (G n, n) float
        [Wrec_1; Wrec_3; Wrec_4; Wrec_2], the transpose of the forward pass's.
    peepholes : Peepholes
        The matrices not transposed.
    output_gate : bool
    window : int
        Steps from each text's own end through which errors travel (truncation, the paper's T).
    keep_cell_path : bool
        Beyond the window, whether rho continues along the cell alone (`cec`) or stops (`window`).
    """
    order, lengths, block_steps, step_rows, block_texts = steps
    n = C.shape[1]
    E = np.empty((block_texts, n), D.dtype)  # e(t) of the block's texts
    rho = np.empty((block_texts, n), D.dtype)
    for b in range(chunk, block_steps.size - 1, n_chunks):
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
            # rho becomes eps(t), then f eps(t)
            if output_gate:
                _set_output_errors(
                    D[low:high], rho[:running], E, Z[low:high], H[low:high], peepholes
                )
            else:
                _add_cell_errors(rho[:running], E, H[low:high])
            c_before = C[:0]  # no rows at the first step
            if t > 0:
                c_before = C[step_rows[s - 1] : step_rows[s - 1] + running]
            _set_gate_errors(D[low:high], rho, Z[low:high], c_before, output_gate)
            if t == 0:
                continue  # there is no step before the first word
            # The window also cuts what the peepholes carry to a step outside it.
            cut = cut_texts(lengths, first_text, running, t - 1, window)
            _add_peephole_errors(rho[cut:running], D[low + cut : high], peepholes, output_gate)
            for k in range(running):
                E[k] = 0
            add_matmul(E[:running], D[low:high], recurrent)


@kernel
def _set_output_errors(D, rho, E, Z, H, peepholes):
    """delta_1 of the rows of one step; rho(t) becomes eps(t).

    D, Z : (rows, G n) float; rho, H : (rows, n) float; E : (at least rows, n) float.
    """
    n = H.shape[1]
    one = Z.dtype.type(1)  # an int would turn float32 into float64
    for k in range(len(D)):
        o, h, d1 = Z[k, :n], H[k], D[k, :n]
        e, eps = E[k], rho[k]
        for j in range(n):
            d1[j] = h[j] * o[j] * (one - o[j]) * e[j]
        for j in range(n):
            eps[j] += o[j] * (one - h[j] * h[j]) * e[j]
        if peepholes.vectors.size:
            _add_product(eps, peepholes.vectors[0], d1)
    if peepholes.matrices.size:
        add_matmul(rho, D[:, :n], peepholes.matrices[0])


@kernel
def _add_cell_errors(rho, E, H):
    """rho(t) becomes eps(t) where there is no output gate: rho + (1 - h^2) e.

    rho, H : (rows, n) float; E : (at least rows, n) float.
    """
    one = H.dtype.type(1)  # an int would turn float32 into float64
    for k in range(len(H)):
        h, e, eps = H[k], E[k], rho[k]
        for j in range(h.size):
            eps[j] += (one - h[j] * h[j]) * e[j]


@kernel
def _set_gate_errors(D, rho, Z, c_before, output_gate):
    """delta_2, delta_3 and delta_4 of the rows of one step; eps(t) in ``rho`` becomes f eps(t).

    D, Z : (rows, G n) float; rho : (at least rows, n) float; c_before : (rows, n) float, with no
    rows at the first step; output_gate : bool.
    """
    n = rho.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    one = Z.dtype.type(1)  # an int would turn float32 into float64
    for k in range(len(D)):
        i, y_g = Z[k, input_:candidate], Z[k, candidate:forget]
        d3, d4 = D[k, input_:candidate], D[k, candidate:forget]
        eps = rho[k]
        for j in range(n):
            d3[j] = y_g[j] * i[j] * (one - i[j]) * eps[j]
        for j in range(n):
            d4[j] = i[j] * (one - y_g[j] * y_g[j]) * eps[j]
        if Z.shape[1] > forget:
            f, d2 = Z[k, forget:], D[k, forget:]
            if len(c_before):
                c_last = c_before[k]
                for j in range(n):
                    d2[j] = c_last[j] * f[j] * (one - f[j]) * eps[j]
            else:
                d2[:] = 0
            for j in range(n):
                eps[j] *= f[j]


@kernel
def _add_peephole_errors(rho, D, peepholes, output_gate):
    """rho(t-1) += Wp_2^T delta_2(t) + Wp_3^T delta_3(t): (rows, n), (rows, G n) float."""
    input_, candidate, forget = _columns(rho.shape[1], output_gate)
    forget_gate = D.shape[1] > forget
    if peepholes.matrices.size:
        add_matmul(rho, D[:, input_:candidate], peepholes.matrices[2])
        if forget_gate:
            add_matmul(rho, D[:, forget:], peepholes.matrices[1])
    elif peepholes.vectors.size:
        for k in range(len(rho)):
            _add_product(rho[k], peepholes.vectors[2], D[k, input_:candidate])
            if forget_gate:
                _add_product(rho[k], peepholes.vectors[1], D[k, forget:])


@kernel
def set_peephole_vector_gradient(dp, C, D, output_gate, block_steps, step_rows, chunk, n_chunks):
    """dWp = sum over t of delta * c: diagonal peepholes.

    Wp_1 sees c(t), Wp_2 and Wp_3 see c(t-1). The traces (26), (34) and the product (19), diagonals
    only, summed with the exact errors.

    dp : (3, n) float; C : (n_rows, n); D : (n_rows, G n); output_gate : bool.
    """
    dp[:] = 0
    n = C.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    forget_gate = D.shape[1] > forget
    for b in range(chunk, block_steps.size - 1, n_chunks):
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
def set_peephole_matrix_gradient(dP, C, D, output_gate, block_steps, step_rows, chunk, n_chunks):
    """dWp^T = sum over t of c delta^T: full peepholes, as the outer products (19), (26), (34).

    dP : (3, n, n) float; C : (n_rows, n); D : (n_rows, G n); output_gate : bool.
    """
    dP[:] = 0
    n = C.shape[1]
    input_, candidate, forget = _columns(n, output_gate)
    forget_gate = D.shape[1] > forget
    for b in range(chunk, block_steps.size - 1, n_chunks):
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
