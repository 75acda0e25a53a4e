"""Slow twins of the pair models, written from the equations: float64, one pair, one cell at a time.

Hu et al. (NIPS 2014). Parameters come as a dict under the paper's names; texts as (n_words, De)
arrays. Planes have their full size, a mask says which cells are on, and each window is
concatenated before it is multiplied.
"""

import itertools

import numpy as np


def relu(a):
    return np.maximum(a, 0)


def words_of(text, index):
    """The word vector at ``index``, zero beyond the end of the text."""
    return text[index] if index < len(text) else np.zeros(text.shape[1])


def window_of(text, first, window):
    """x_{i:i+k-1}: the words of a window side by side."""
    return np.concatenate([words_of(text, first + o) for o in range(window)])


# -- ARC-II: equations (3) to (6) ----------------------------------------------------------------


def arc2_first_plane(p, X, Y, max_words, window, gate):
    """Equation (3): z_{i,j} = g relu(W [x_{i:i+k-1}; y_{j:j+k-1}] + b), and where it is on."""
    size = max_words - window + 1
    W = np.concatenate([p["W1x"], p["W1y"]], axis=1)
    Z, on = np.zeros((size, size, len(W))), np.zeros((size, size), bool)
    for i, j in itertools.product(range(size), repeat=2):
        begins = i < len(X), j < len(Y)
        on[i, j] = all(begins) if gate == "and" else any(begins)
        if on[i, j]:
            both = np.concatenate([window_of(X, i, window), window_of(Y, j, window)])
            Z[i, j] = relu(W @ both + p["b1"])
    return Z, on


def pool(Z, on):
    """Equation (4): the maximum of 2 x 2 cells; at an odd end, of those that there are."""
    size = -(-len(Z) // 2)
    M, pooled_on = np.zeros((size, size, Z.shape[2])), np.zeros((size, size), bool)
    for i, j in itertools.product(range(size), repeat=2):
        block = np.s_[2 * i : 2 * i + 2, 2 * j : 2 * j + 2]
        pooled_on[i, j] = on[block].any()
        if pooled_on[i, j]:
            M[i, j] = Z[block][on[block]].max(axis=0)
    return M, pooled_on


def convolve(W, b, M, on, window):
    """Equation (6): W (F, k k F_before), a window that covers no cell that is on is off."""
    size = len(M) - window + 1
    Z, convolved_on = np.zeros((size, size, len(W))), np.zeros((size, size), bool)
    for i, j in itertools.product(range(size), repeat=2):
        cells = np.s_[i : i + window, j : j + window]
        convolved_on[i, j] = on[cells].any()
        if convolved_on[i, j]:
            Z[i, j] = relu(W @ M[cells].reshape(-1) + b)
    return Z, convolved_on


def arc2_planes(p, X, Y, max_words, window, n_maps, gate):
    """The pooled planes of layers 2, 4, ..., each with its mask."""
    planes = [pool(*arc2_first_plane(p, X, Y, max_words, window, gate))]
    for layer in range(1, n_maps):
        name = 2 * layer + 1
        Z, on = convolve(p[f"W{name}"], p[f"b{name}"], *planes[-1], window)
        planes.append(pool(Z, on))
    return planes


def mlp_score(p, h, layers):
    """s = w . relu(... W1 h + c1 ...) + c, the blocks as the head names them."""
    for layer in range(1, layers + 1):
        h = relu(p[f"Wm{layer}"] @ h + p[f"bm{layer}"])
    return float((p["Ws"] @ h + p["bs"])[0])


def arc2_score(p, X, Y, max_words, window, n_maps, gate, mlp_layers=1):
    last, _ = arc2_planes(p, X, Y, max_words, window, n_maps, gate)[-1]
    return mlp_score(p, last.reshape(-1), mlp_layers)
