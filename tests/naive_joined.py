"""Slow twins of the pair models whose texts meet in the MLP: float64, one text, one cell at a time.

Hu et al. (NIPS 2014). Parameters come as a dict under the paper's names; texts as (n_words, De)
arrays. Every layer has its full size, a mask says which cells are on, and each window is
concatenated before it is multiplied.
"""

import numpy as np
from naive_pairs import relu


def padded(X, size):
    """The words of a text, then zeros, and which of these are words."""
    rows = np.zeros((size, X.shape[1]))
    rows[: len(X)] = X
    return rows, np.arange(size) < len(X)


def convolve(W, b, cells, on, window):
    """Equation (1): z_i = g relu(W [z_i; ...; z_(i+k-1)] + b); g = 0 iff no cell below is on."""
    size = len(cells) - window + 1
    Z, convolved_on = np.zeros((size, len(W))), np.zeros(size, bool)
    for i in range(size):
        convolved_on[i] = on[i : i + window].any()
        if convolved_on[i]:
            Z[i] = relu(W @ np.concatenate(list(cells[i : i + window])) + b)
    return Z, convolved_on


def pool(Z, on):
    """z_i = max(z_(2i-1), z_(2i)); the last of an odd number is its only cell."""
    size = -(-len(Z) // 2)
    M, pooled_on = np.zeros((size, Z.shape[1])), np.zeros(size, bool)
    for i in range(size):
        M[i] = Z[2 * i : 2 * i + 2].max(axis=0)
        pooled_on[i] = on[2 * i : 2 * i + 2].any()
    return M, pooled_on


def arc1_vector(model, p, X, suffix):
    cells, on = padded(X, model.max_words)
    for layer in range(len(model.maps)):
        name = f"{2 * layer + 1}{suffix}"
        cells, on = pool(*convolve(p[f"W{name}"], p[f"b{name}"], cells, on, model.window))
    return cells.reshape(-1)


def senna_vector(model, p, X, suffix):
    words = padded(X, model.max_words)
    Z, _ = convolve(p[f"W1{suffix}"], p[f"b1{suffix}"], *words, model.window)
    return Z.max(axis=0)


def senmlp_vector(model, p, X, suffix):
    return padded(X, model.max_words)[0].reshape(-1)


def wordembed_vector(model, p, X, suffix):
    return X.sum(axis=0)


VECTORS = {
    "arc1": arc1_vector,
    "senna": senna_vector,
    "senmlp": senmlp_vector,
    "wordembed": wordembed_vector,
}


def scores(model, p, queries, titles):
    """The score of every query with every title: (n_queries, n_titles)."""
    sides = []
    for texts, suffix in ((queries, "x"), (titles, "y")):
        of_side = "" if getattr(model, "shared_towers", False) else suffix
        cut = [X[: model.max_words] for X in texts]
        sides.append([VECTORS[model.name](model, p, X, of_side) for X in cut])
    found = np.empty((len(queries), len(titles)))
    for i, x in enumerate(sides[0]):
        for j, y in enumerate(sides[1]):
            h = np.concatenate([x, y])
            for layer in range(1, model.mlp_layers + 1):
                h = relu(p[f"M{layer}"] @ h + p[f"c{layer}"])
            found[i, j] = p["w"] @ h + p["c"][0]
    return found
