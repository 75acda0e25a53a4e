"""The unfolding auto-encoder over a chain: what its decoder adds to the kernels of the RNN.

Socher et al., "Dynamic pooling and unfolding recursive autoencoders for paraphrase detection",
NIPS 2011. The encoder h_t = tanh(W_e [h_{t-1}; x_t] + b_e) is an RNN and uses
`sentemb.kernels.rnn`. The decoder starts from h_n and takes the text apart from its end:
[a_{t-1}; x^_t] = W_d h^_t + b_d, h^_{t-1} = tanh(a_{t-1}). Its rows are packed from right to left,
so step s of a block holds h^_{n-s}, which reconstructs the word x_{n-s}.
"""

from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.matmul import add_matmul


@kernel
def unfold_rows(H, h, steps, W, bias, first, end):
    """h^ of the rows of some blocks: h^_n = h, h^_{t-1} = tanh(W h^_t + b).

    H : (n_rows, n) float, written; h : (n_texts, n) float, the vectors of the texts, h_n
    steps : Steps, the texts packed from right to left
    W, bias : (n, n), (n,) float, the columns of W_d^T that give a_{t-1}, and their part of b_d
    """
    order, _, block_steps, step_rows, block_texts = steps
    n = H.shape[1]
    for b in range(first, end):
        first_step = block_steps[b]
        for s in range(first_step, block_steps[b + 1]):
            low, high = step_rows[s], step_rows[s + 1]
            if s == first_step:
                for k in range(high - low):
                    H[low + k] = h[order[b * block_texts + k]]
                continue
            before = step_rows[s - 1]
            for r in range(low, high):
                copy_row(H[r], bias)
            add_matmul(H[low:high], H[before : before + high - low], W)
            tanh_rows(H, low, high, 0, n)


@kernel
def reconstruction_errors(losses, R, X, steps, share, first, end):
    """The loss of every text, and its gradient at the reconstructions, for some blocks.

    The loss of a text is the mean over its words of |x^ - x|^2 / 2.

    losses : (n_texts,) float, added to
    R : (n_rows, m) float, x^ of every row; becomes ``share`` times the gradient there,
        ``(x^ - x) share / n``
    X : (n_rows, m) float, the words of the rows
    steps : Steps, the texts packed from right to left
    share : the weight of each text's loss in the whole loss
    """
    order, lengths, block_steps, step_rows, block_texts = steps
    half = R.dtype.type(0.5)
    for b in range(first, end):
        first_text = b * block_texts
        for s in range(block_steps[b], block_steps[b + 1]):
            low = step_rows[s]
            for k in range(step_rows[s + 1] - low):
                r, x = R[low + k], X[low + k]
                part = R.dtype.type(1) / R.dtype.type(lengths[first_text + k])
                scale = R.dtype.type(share) * part
                total = R.dtype.type(0)
                for j in range(r.size):
                    error = r[j] - x[j]
                    total += error * error
                    r[j] = error * scale
                losses[order[first_text + k]] += half * part * total


@kernel
def unfold_errors(D, dh, E, H, steps, W, first, end):
    """The backward pass of `unfold_rows`: delta_{t-1} = (1 - h^_{t-1}^2) e_{t-1} of every row.

    D : (n_rows, n) float, written: the gradient at a of every row; 0 in the first step of a block,
        whose rows have no a
    dh : (n_texts, n) float, written: the gradient at the vectors of the texts
    E : (n_rows, n) float, the gradient at h^ through the word that it reconstructs; becomes the
        whole gradient there
    H : as `unfold_rows` left it
    W : (n, n) float, the transpose of that of `unfold_rows`
    """
    order, _, block_steps, step_rows, block_texts = steps
    unity = H.dtype.type(1)
    for b in range(first, end):
        first_step = block_steps[b]
        for s in range(block_steps[b + 1] - 1, first_step - 1, -1):
            low, high = step_rows[s], step_rows[s + 1]
            if s + 1 < block_steps[b + 1]:
                after = step_rows[s + 2]
                add_matmul(E[low : low + after - high], D[high:after], W)
            for r in range(low, high):
                d, y, e = D[r], H[r], E[r]
                if s == first_step:
                    d[:] = 0
                    dh[order[b * block_texts + r - low]] = e
                    continue
                for j in range(d.size):
                    d[j] = (unity - y[j] * y[j]) * e[j]
