"""Slow twins of DeepMatch and uRAE: float64, one text and one word at a time.

Parameters come as a dict under the names of `PairModel.blocks`. A text of uRAE is an array
(n_words, De); a text of DeepMatch is a list of words, each a dict from topic to the weights of its
units.
"""

import numpy as np


def mlp(p, features):
    """The MLP of every pair model: ReLU layers M1, M2, ... and the output w."""
    y, k = features, 1
    while f"M{k}" in p:
        y = np.maximum(0, p[f"M{k}"] @ y + p[f"c{k}"])
        k += 1
    return p["w"] @ y + p["c"][0]


# -- uRAE ----------------------------------------------------------------------------------------


def urae_vector(p, text):
    """h_n of h_t = tanh(W_e [h_{t-1}; x_t] + b_e), h_0 = 0."""
    h = np.zeros(len(p["be"]))
    for x in text:
        h = np.tanh(p["We"] @ np.concatenate([h, x]) + p["be"])
    return h


def urae_reconstruction(p, text):
    """The words x^_1, ..., x^_n that the decoder unfolds from h_n."""
    h, found = urae_vector(p, text), []
    for _ in text:
        both = p["Wd"] @ h + p["bd"]
        found.append(both[len(h) :])
        h = np.tanh(both[: len(h)])
    return found[::-1]


def urae_loss(p, text):
    """The mean over the words of |x^ - x|^2 / 2."""
    if not len(text):
        return 0.0
    pairs = zip(urae_reconstruction(p, text), text, strict=True)
    return sum(0.5 * np.sum((again - x) ** 2) for again, x in pairs) / len(text)


def urae(p, query, title):
    return mlp(p, np.concatenate([urae_vector(p, query), urae_vector(p, title)]))


# -- DeepMatch -----------------------------------------------------------------------------------


def deepmatch(p, query, title, units):
    """Unit k of topic z decides on the words of z in both texts, if both have some."""
    decisions = np.zeros(len(p["b"]))
    for k in range(decisions.size):
        topic, number = k // units + 1, k % units
        sums = []
        for text in (query, title):
            seen = [word[topic][number] for word in text if topic in word]
            if not seen:
                break
            sums.append(sum(seen))
        else:
            decisions[k] = max(0, sums[0] * sums[1] + p["b"][k])
    return mlp(p, decisions)
