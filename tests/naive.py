"""Slow twins of the kernels, written from the equations: float64, one text and one step at a time.

Parameters come as a dict under the paper's names (``W1`` (n, d), ``Wrec1`` (n, n), ``b1`` (n,),
``Wp1`` (n, n) or (n,), ...; 1 output, 2 forget, 3 input, 4 candidate), so nothing here knows how
the package stacks them. A model without ``W2`` has no forget gate (f = 1), one without ``W1`` no
output gate (o = 1). Steps are counted from 0, and y(-1) = c(-1) = 0.
"""

import itertools
import math
import re

import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def sums(x, y):
    """x · y, the sum of x and that of its squares, rounded once."""
    x, y = x.tolist(), y.tolist()
    products = [math.fsum(a * b for a, b in zip(x, other, strict=True)) for other in (y, x)]
    return products[0], math.fsum(x), products[1]


def matmul(A, B):
    """A B, every element one sum in the order of the inner dimension."""
    C = np.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for k in range(A.shape[1]):
            C[i] += A[i, k] * B[k]
    return C


# -- words ---------------------------------------------------------------------------------------


def trigram_vectors(text, trigrams):
    """l(t) of every word: (T, d) counts of the known ``trigrams`` in ``#word#``."""
    place = {trigram: k for k, trigram in enumerate(trigrams)}
    L = np.zeros((len(text.split()), len(trigrams)))
    for t, word in enumerate(text.lower().split()):
        marked = "#" + word + "#"
        for first in range(len(marked) - 2):
            if marked[first : first + 3] in place:
                L[t, place[marked[first : first + 3]]] += 1
    return L


def find_words(texts, split, rows, known):
    """(word_index, offsets, n_new, n_poor) of `find_words` and `add_words`.

    ``rows`` is the row of each word, ``known`` the words that the model knows. A word without a row
    is -1.
    """
    words = [split(text) for text in texts]
    index = [rows.get(word, -1) for some in words for word in some]
    offsets = np.cumsum([0, *map(len, words)])
    return index, offsets, index.count(-1), sum(not known & set(some) for some in words)


def unit_rows(rows):
    """Each row divided by its length; a zero row stays zero."""
    return [[x / (math.hypot(*row) or 1) for x in row] for row in rows]


def visits(lengths, block_texts):
    """How `pack_blocks` goes through texts of falling ``lengths``: [[[(text, t), ...], ...], ...].

    Blocks of texts, steps of a block, texts that still run at that step.
    """
    blocks = []
    for first in range(0, len(lengths), block_texts):
        texts = range(first, min(first + block_texts, len(lengths)))
        blocks.append([[(k, t) for k in texts if lengths[k] > t] for t in range(lengths[first])])
    return blocks


# -- RNN: equations (1), (9) to (13) -------------------------------------------------------------


def rnn_forward(p, L):
    """y(t) for every step, (T, n)."""
    Y = []
    y = np.zeros(len(p["b"]))
    for l in L:
        y = np.tanh(p["W"] @ l + p["Wrec"] @ y + p["b"])
        Y.append(y)
    return np.array(Y)


def rnn_backward(p, L, v, steps=None):
    """dL/dW, dL/dWrec, dL/db from v = dL/dy of the last step."""
    Y = rnn_forward(p, L)
    gradient = {name: np.zeros_like(block) for name, block in p.items()}
    e = v
    for t in reversed(range(_first_step(L, steps), len(L))):
        delta = (1 - Y[t] ** 2) * e
        gradient["W"] += np.outer(delta, L[t])
        gradient["b"] += delta
        gradient["Wrec"] += np.outer(delta, _before(Y, t))
        e = p["Wrec"].T @ delta
    return gradient


def irnn(p, L):
    """The average of the outputs of a linear recurrence: its last one, divided by the words."""
    y = np.zeros(len(p["b"]))
    for l in L:
        y = p["W"] @ l + p["Wrec"] @ y + p["b"]
    return y / len(L)


def irnn_backward(p, L, v, steps=None):
    """dL/dW, dL/dWrec, dL/db from v = dL/dy of `irnn`.

    e(t) is a power of Wrec^T times v / n; y(t) a sum over the words before it.
    """
    gradient = {name: np.zeros_like(block) for name, block in p.items()}
    inputs = [p["W"] @ l + p["b"] for l in L]
    for t in range(_first_step(L, steps), len(L)):
        e = np.linalg.matrix_power(p["Wrec"].T, len(L) - 1 - t) @ v / len(L)
        y = sum(np.linalg.matrix_power(p["Wrec"], t - 1 - k) @ inputs[k] for k in range(t))
        gradient["W"] += np.outer(e, L[t])
        gradient["b"] += e
        if t > 0:
            gradient["Wrec"] += np.outer(e, y)
    return gradient


# -- encoders without recurrence -----------------------------------------------------------------


def bag(p, L):
    """y of a text, (n,)."""
    return p["W"] @ L.sum(axis=0)


def bag_gradient(L, v):
    """dL/dW of `bag` from v = dL/dy, (n, d)."""
    return np.outer(v, L.sum(axis=0))


def dssm(p, L):
    h = np.tanh(p["W1"] @ L.sum(axis=0) + p["b1"])
    return np.tanh(p["W2"] @ h + p["b2"])


def clsm(p, L):
    window = sum(name.startswith("Wc") for name in p)
    h = np.full(len(p["bc"]), -np.inf)
    for t in range(len(L)):
        z = p["bc"].copy()
        for k in range(window):
            other = t + k - window // 2
            if 0 <= other < len(L):
                z += p[f"Wc{k + 1}"] @ L[other]
        h = np.maximum(h, np.tanh(z))
    return np.tanh(p["Ws"] @ h + p["bs"])


def dan(p, L, activation="tanh"):
    """Layers over the average of the words that have a known trigram."""
    known = L[L.any(axis=1)]
    g = p["W0"] @ known.mean(axis=0) if len(known) else np.zeros(len(p["W0"]))
    for k in range(1, 1 + sum(name.startswith("b") for name in p)):
        g = p[f"W{k}"] @ g + p[f"b{k}"]
        g = np.tanh(g) if activation == "tanh" else g
    return g


def average_words(P, word_index, offsets):
    """The average of the rows of P that are not zero, and their number, for every text."""
    texts = [P[word_index[low:high]] for low, high in itertools.pairwise(offsets)]
    read = [rows[rows.any(axis=1)] for rows in texts]
    averages = [rows.mean(axis=0) if len(rows) else np.zeros(P.shape[1]) for rows in read]
    return np.array(averages), np.array([len(rows) for rows in read])


# -- LSTM: equations (2) and their exact gradient ------------------------------------------------


def lstm_forward(p, L):
    """All gates of all steps: a dict of (T, n) arrays o, f, i, y_g, c, y."""
    n = len(p["b3"])
    run = {name: np.zeros((len(L), n)) for name in ("o", "f", "i", "y_g", "c", "y")}
    for t, l in enumerate(L):
        y, c = _before(run["y"], t), _before(run["c"], t)

        def gate(g, seen=None, l=l, y=y):
            peephole = 0 if seen is None else _through(p, g, seen)
            return p[f"W{g}"] @ l + p[f"Wrec{g}"] @ y + p[f"b{g}"] + peephole

        run["y_g"][t] = np.tanh(gate(4))
        run["i"][t] = sigmoid(gate(3, c))
        run["f"][t] = sigmoid(gate(2, c)) if "W2" in p else 1
        run["c"][t] = run["f"][t] * c + run["i"][t] * run["y_g"][t]
        run["o"][t] = sigmoid(gate(1, run["c"][t])) if "W1" in p else 1
        run["y"][t] = run["o"][t] * np.tanh(run["c"][t])
    return run


def lstm_backward(p, L, v, steps=None, keep_cell_path=False):
    """The reverse scan from v = dL/dy of the last step: a gradient for every block.

    ``steps`` is the paper's T. Before the window nothing flows any more, or, with
    ``keep_cell_path``, only what runs along the cell.
    """
    run = lstm_forward(p, L)
    gradient = {name: np.zeros_like(block) for name, block in p.items()}
    first = _first_step(L, steps)
    e, rho = v, np.zeros_like(v)
    for t in reversed(range(len(L))):
        o, i, f, y_g, c = (run[name][t] for name in ("o", "i", "f", "y_g", "c"))
        c_before, y_before = _before(run["c"], t), _before(run["y"], t)
        h = np.tanh(c)
        if t < first:
            e = np.zeros_like(v)
            if not keep_cell_path:
                break
        delta = {"1": h * o * (1 - o) * e} if "W1" in p else {}
        eps = o * (1 - h**2) * e + rho
        if "W1" in p:
            eps = eps + _back_through(p, 1, delta["1"])
        delta["3"] = y_g * i * (1 - i) * eps
        delta["4"] = i * (1 - y_g**2) * eps
        if "W2" in p:
            delta["2"] = c_before * f * (1 - f) * eps
        rho = f * eps
        if t > first:  # peepholes lead out of the window at its first step
            rho = rho + _back_through(p, 3, delta["3"])
            if "W2" in p:
                rho = rho + _back_through(p, 2, delta["2"])
        e = sum(p[f"Wrec{g}"].T @ delta[g] for g in delta)
        for g in delta:
            gradient[f"W{g}"] += np.outer(delta[g], L[t])
            gradient[f"Wrec{g}"] += np.outer(delta[g], y_before)
            gradient[f"b{g}"] += delta[g]
            _add_peephole(gradient, g, delta[g], c if g == "1" else c_before)
    return gradient


def lstm_trace_gradient(p, L, signals, first=0, start=0):
    """dL/dX = sum over t >= first of diag(signal(t)) Tr(t), for all blocks.

    Tr(t) = diag(f) Tr(t-1) + b_g u(t)^T begins at ``start``. The output gate has no trace.
    """
    run = lstm_forward(p, L)
    n = len(p["b3"])
    gradient = {name: np.zeros_like(block) for name, block in p.items()}
    for g in _gates(p):
        traces = {}
        for t in range(start, len(L)):
            c_before, y_before = _before(run["c"], t), _before(run["y"], t)
            i, f, y_g = run["i"][t], run["f"][t], run["y_g"][t]
            seen = run["c"][t] if g == "1" else c_before
            inputs = {f"W{g}": L[t], f"Wrec{g}": y_before, f"b{g}": np.ones(1), f"Wp{g}": seen}
            for name in inputs.keys() & p.keys():
                u = inputs[name]
                if g == "1":
                    trace = np.outer(np.ones(n), u)
                else:
                    factor = {
                        "2": c_before * f * (1 - f),
                        "3": y_g * i * (1 - i),
                        "4": i * (1 - y_g**2),
                    }[g]
                    before = traces.get(name, np.zeros((n, u.size)))
                    trace = traces[name] = np.diag(f) @ before + np.outer(factor, u)
                if t >= first:
                    part = np.diag(signals[g][t]) @ trace
                    if name.startswith("Wp") and p[name].ndim == 1:
                        part = np.diagonal(part)
                    gradient[name] += part.reshape(p[name].shape)
    return gradient


def lstm_exact_signals(p, L, v, first=0):
    """L(t) for the traces of gates 2 to 4 and delta_1(t) for gate 1, as (T, n) arrays by gate."""
    run = lstm_forward(p, L)
    n = len(v)
    eps = np.zeros((len(L) + 1, n))
    f_after = np.vstack([run["f"], np.zeros((1, n))])
    signals = {g: np.zeros((len(L), n)) for g in "1234"}
    e, delta_2, delta_3 = v, np.zeros(n), np.zeros(n)
    for t in reversed(range(first, len(L))):
        o, i, f, y_g = (run[name][t] for name in ("o", "i", "f", "y_g"))
        h = np.tanh(run["c"][t])
        delta_1 = h * o * (1 - o) * e
        reaching = o * (1 - h**2) * e + _back_through(p, 1, delta_1) + _back_through(p, 3, delta_3)
        if "W2" in p:
            reaching = reaching + _back_through(p, 2, delta_2)
        eps[t] = reaching + f_after[t + 1] * eps[t + 1]
        delta_3 = y_g * i * (1 - i) * eps[t]
        delta_4 = i * (1 - y_g**2) * eps[t]
        e = p["Wrec3"].T @ delta_3 + p["Wrec4"].T @ delta_4
        if "W1" in p:
            e = e + p["Wrec1"].T @ delta_1
        if "W2" in p:
            delta_2 = _before(run["c"], t) * f * (1 - f) * eps[t]
            e = e + p["Wrec2"].T @ delta_2
        signals["1"][t] = delta_1
        for g in "234":
            signals[g][t] = reaching
    return signals


def lstm_printed_signals(p, L, v, first=0):
    """Equations (43) and (44) to the letter: every gate follows its own recurrent matrix."""
    run = lstm_forward(p, L)
    signals = {}
    for g in _gates(p):
        signals[g] = np.zeros((len(L), len(v)))
        arriving = v
        for t in reversed(range(first, len(L))):
            o, h = run["o"][t], np.tanh(run["c"][t])
            factor = o * (1 - o) * h if g == "1" else (1 - h) * (1 + h) * o
            signals[g][t] = factor * arriving
            arriving = p[f"Wrec{g}"].T @ signals[g][t]
    return signals


def _gates(p):
    return [g for g in "1234" if f"W{g}" in p]


def _first_step(L, steps):
    return 0 if steps is None else max(0, len(L) - steps)


def _before(rows, t):
    return rows[t - 1] if t > 0 else np.zeros_like(rows[0] if len(rows) else rows)


def _through(p, g, c):
    """Wp_g c: a product with a matrix, or with a diagonal; 0 without peepholes."""
    wp = p.get(f"Wp{g}")
    if wp is None:
        return 0
    return wp @ c if wp.ndim == 2 else wp * c


def _back_through(p, g, delta):
    """Wp_g^T delta."""
    wp = p.get(f"Wp{g}")
    if wp is None:
        return 0
    return wp.T @ delta if wp.ndim == 2 else wp * delta


def _add_peephole(gradient, g, delta, c):
    wp = gradient.get(f"Wp{g}")
    if wp is not None:
        wp += np.outer(delta, c) if wp.ndim == 2 else delta * c


# -- objective: equations (3), (5), (8), (15) ----------------------------------------------------


def loss(Yq, Yd, pairs, gamma, weights, targets=None):
    """Losses of ``pairs`` and their gradient at the embeddings.

    Parameters
    ----------
    pairs : list of (query, clicked, others)
        Numbers of rows; ``others`` the unclicked candidates.
    targets : list of lists, optional
        For each pair what the softmax should be at its clicked title and at the others; by default
        1 and 0.
    """
    losses = []
    Vq, Vd = np.zeros_like(Yq), np.zeros_like(Yd)
    for number, ((query, clicked, others), weight) in enumerate(zip(pairs, weights, strict=True)):
        candidates = [clicked, *others]
        target = [1.0] + [0.0] * len(others) if targets is None else targets[number]
        cosines = [_cosine(Yq[query], Yd[d]) for d in candidates]
        p = _softmax(cosines, gamma)
        losses.append(
            -weight * sum(t * math.log(p_k) for t, p_k in zip(target, p, strict=True) if t)
        )
        for k, d in enumerate(candidates):
            by_cosine = weight * gamma * (p[k] - target[k])
            Vq[query] += by_cosine * _cosine_slope(Yq[query], Yd[d])
            Vd[d] += by_cosine * _cosine_slope(Yd[d], Yq[query])
    return np.array(losses), Vq, Vd


def soft_targets(Tq, Td, pairs, shares, scale):
    """What a teacher with vectors ``Tq`` and ``Td`` makes of the target of each pair.

    ``shares`` has the most that it may have, for each query.
    """
    targets = []
    for query, clicked, others in pairs:
        p = _softmax([_cosine(Tq[query], Td[d]) for d in (clicked, *others)], scale)
        share = shares[query] * p[0]
        targets.append([share * p_k + (1 - share) * (not k) for k, p_k in enumerate(p)])
    return targets


def _softmax(cosines, scale):
    powers = [math.exp(scale * (cosine - max(cosines))) for cosine in cosines]
    return [power / sum(powers) for power in powers]


def hinge(Yq, Yd, pairs, clicks, margin, weights):
    """Hinge losses of ``pairs``, their gradient at the embeddings, and t1 and t2 of each pair.

    Wieting et al. (ICLR 2016), equation (1). t1 is the unclicked title nearest to the query, t2
    the query nearest to the title that is not known for it; a hinge that is not above 0 has none.

    Parameters
    ----------
    pairs : list of (query, title)
        Numbers of rows.
    clicks : set of (query, title)
        All that are known, those of ``pairs`` included.
    """
    losses, choices = [], []
    Vq, Vd = np.zeros_like(Yq), np.zeros_like(Yd)
    for (query, title), weight in zip(pairs, weights, strict=True):
        q, d = Yq[query], Yd[title]
        titles = [t for t in range(len(Yd)) if (query, t) not in clicks]
        queries = [t for t in range(len(Yq)) if (t, title) not in clicks]
        t1 = max(titles, key=lambda t: (_cosine(q, Yd[t]), -t), default=-1)
        t2 = max(queries, key=lambda t: (_cosine(d, Yq[t]), -t), default=-1)
        first = 0 if t1 < 0 else max(0, margin - _cosine(q, d) + _cosine(q, Yd[t1]))
        second = 0 if t2 < 0 else max(0, margin - _cosine(q, d) + _cosine(d, Yq[t2]))
        losses.append(weight * (first + second))
        choices.append((t1 if first > 0 else -1, t2 if second > 0 else -1))
        if first > 0:
            Vq[query] += weight * (_cosine_slope(q, Yd[t1]) - _cosine_slope(q, d))
            Vd[title] -= weight * _cosine_slope(d, q)
            Vd[t1] += weight * _cosine_slope(Yd[t1], q)
        if second > 0:
            Vd[title] += weight * (_cosine_slope(d, Yq[t2]) - _cosine_slope(d, q))
            Vq[query] -= weight * _cosine_slope(q, d)
            Vq[t2] += weight * _cosine_slope(Yq[t2], d)
    return np.array(losses), Vq, Vd, np.array(choices)


def _cosine(a, b):
    lengths = math.sqrt(a @ a) * math.sqrt(b @ b)
    return a @ b / lengths if lengths else 0.0


def _cosine_slope(a, b):
    """d cos(a, b) / da; a text without words, a = 0, has none."""
    if not a.any() or not b.any():
        return np.zeros_like(a)
    u, w = a / math.sqrt(a @ a), b / math.sqrt(b @ b)
    return (w - (u @ w) * u) / math.sqrt(a @ a)


# -- optimiser: equation (6) ---------------------------------------------------------------------


def nesterov_coefficients(momenta):
    """(A, B) of a run of updates without gradient, product by product."""
    theta, v = 0.0, 1.0
    for mu in momenta:
        v = mu * v
        theta = theta + v
    return v, theta


def nesterov_step(theta, v, gradient_at, mu, rate, max_norm):
    """One dense update of a dict of arrays: (theta, v), and the norm before re-normalisation."""
    ahead = {name: theta[name] + mu * v[name] for name in theta}
    gradient = gradient_at(ahead)
    norm = math.sqrt(sum(float(np.sum(g**2)) for g in gradient.values()))
    scale = min(1.0, max_norm / norm) if norm else 1.0
    v = {name: mu * v[name] - rate * scale * gradient[name] for name in theta}
    return {name: theta[name] + v[name] for name in theta}, v, norm


def adam_step(theta, m, v, g, update, rate, beta1=0.9, beta2=0.999):
    """Algorithm 1 of Kingma and Ba, ``update`` counted from 0: the next theta, m, v."""
    t = update + 1
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    step = rate * (m / (1 - beta1**t)) / (np.sqrt(v / (1 - beta2**t)) + 1e-8)
    return theta - step, m, v


# -- topics --------------------------------------------------------------------------------------


def plsa_step(counts, mixtures, topics):
    """One EM step of PLSA over a dense (texts, words) matrix: the expected counts of words by
    topic, the next mixtures, and the log-likelihood of each text before it."""
    sums, following = np.zeros_like(topics), np.zeros_like(mixtures)
    likelihoods = np.zeros(len(counts))
    for d, row in enumerate(counts):
        for w in np.flatnonzero(row):
            joint = mixtures[d] * topics[w]
            likelihoods[d] += row[w] * math.log(joint.sum())
            sums[w] += row[w] * joint / joint.sum()
            following[d] += row[w] * joint / joint.sum()
    return sums, following / counts.sum(axis=1, keepdims=True), likelihoods


# -- negatives -----------------------------------------------------------------------------------


def number_keys(keys):
    """The number of each key, and the distinct keys in order of first appearance."""
    known = {}
    numbers = [known.setdefault(tuple(key.tolist()), len(known)) for key in keys]
    return numbers, [list(key) for key in known]


def shuffled_windows(n_pairs, seed, epoch, block, window):
    """The pairs of every window: blocks at random, then the pairs of some blocks at random."""
    blocks = [list(range(n_pairs))[k : k + block] for k in range(0, n_pairs, block)]
    places = np.random.default_rng([seed, epoch]).permutation(len(blocks))
    found = []
    for number, first in enumerate(range(0, len(blocks), window)):
        pairs = [pair for place in places[first : first + window] for pair in blocks[place]]
        rng = np.random.default_rng([seed, epoch, number, 0x77696E64])
        found.append(rng.permutation(pairs).tolist())
    return found


def allowed_negatives(query, clicks, pool, skipped):
    """The titles that may stand against a pair: none that is clicked for its query anywhere."""
    clicked = {title for q, title in clicks if q == query}
    return {int(title) for title in [*pool, *skipped]} - clicked


def highest_titles(Uq, Ud, clicked, k):
    """For each query the titles with the k largest cosines that are not among its ``clicked``."""
    found = []
    for q, u in enumerate(Uq):
        scores = {j: float(u @ d) for j, d in enumerate(Ud) if j not in clicked[q]}
        found.append(sorted(scores, key=scores.get, reverse=True)[:k])
    return found


def highest_cosines(cosines, left_out, k):
    """The k largest cosines of each query, largest first; -inf where fewer titles are left."""
    return np.sort(np.where(left_out, -np.inf, cosines), axis=1)[:, ::-1][:, :k]


def group_pairs(order, queries, titles, hard_titles, size, key):
    """Groups of pairs: each leader with pairs of titles that are drawn from its query's list."""
    state, alone, found = key, [int(pair) for pair in order], []

    def below(limit):
        nonlocal state
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
        return ((z ^ (z >> 31)) >> 1) % limit

    while alone:
        group = [alone.pop(0)]
        for _ in range(3 * size):
            if len(group) == size:
                break
            own = hard_titles[queries[group[0]]]
            title = own[below(len(own))]
            pair = next((p for p in alone if titles[p] == title), None)
            if pair is not None and title not in [titles[member] for member in group]:
                alone.remove(pair)
                group.append(pair)
        found.append(group)
    return found


def bm25_scores(query, titles, k1, b):
    """The BM25 score of every title for a query."""
    fields = [word_counts(title, [])[0] for title in titles]
    return bm25_of_fields(query, fields, field_statistics(fields), k1, b)


# -- ranking -------------------------------------------------------------------------------------


def ranker_scores(
    weights, cosines, rows, near, whole, clicked, has_clicks, counts, total, names, looked
):
    """The score of every title for a query, part by part.

    ``rows[t]`` are the cosines of the memory's rows of title t, each times the root of its share;
    ``near`` are the cosines of an embedding, ``whole`` and ``clicked`` the scores of both fields of
    BM25; ``counts`` the clicks of each title for exactly this query, ``total`` those that the log
    has for it; ``names`` whether each title has all its words, and ``looked`` how often each was
    looked at for exactly this query.
    """
    weight = {name: weights.get(name, 0) for name in naive_part_names}
    scores = []
    for t, cosine in enumerate(cosines):
        score = weight["cosine"] * cosine + weight["memory"] * max(rows[t], default=0)
        score += weight["embedding"] * near[t] + weight["bm25"] * whole[t]
        counts_against = weight["clicks"] and counts[t] and weight["clicked_bm25"] < 0
        score += 0 if counts_against else weight["clicked_bm25"] * clicked[t]
        score += weight["unclicked"] * (not has_clicks[t])
        score += weight["clicks"] * math.log(1 + counts[t] / 2)
        if names[t]:
            majority = max(2 * counts[t] / total - 1, 0) if total and weight["clicks"] else 1
            score += weight["name"] * majority
        score -= weight["examined"] * math.log(1 + looked[t] / 6)
        scores.append(score)
    return scores


naive_part_names = ("cosine", "memory", "bm25", "clicked_bm25", "unclicked", "clicks", "name")
naive_part_names += ("examined", "embedding")


def bm25_of_fields(query, fields, statistics, k1, b):
    """The BM25 score of every field for a query: a field is a dict of a word's count, and the
    statistics are (how many hold each word, number of titles, mean length)."""
    holding, n, mean = statistics
    scores = []
    for field in fields:
        length, score = sum(field.values()), 0.0
        for word in re.findall(r"\w+", query.lower()):
            f = field.get(word, 0)
            idf = math.log(1 + (n - holding.get(word, 0) + 0.5) / (holding.get(word, 0) + 0.5))
            score += idf * f / (f + k1 * (1 - b + b * length / mean)) if f else 0
        scores.append(score)
    return scores


def field_statistics(fields):
    """What `bm25_of_fields` needs to know of a collection."""
    holding = {}
    for field in fields:
        for word in field:
            holding[word] = holding.get(word, 0) + 1
    return holding, len(fields), sum(sum(field.values()) for field in fields) / len(fields) or 1


def word_counts(title, clicked):
    """The words of a title with those of its clicked queries, and the latter alone; ``clicked`` is
    a list of (query, share), and a word of it counts as much as the share."""
    whole, own = {}, {}
    for word in re.findall(r"\w+", title.lower()):
        whole[word] = whole.get(word, 0) + 1
    for query, share in clicked:
        for word in re.findall(r"\w+", query.lower()):
            whole[word] = whole.get(word, 0) + share
            own[word] = own.get(word, 0) + share
    return whole, own


def softmax_loss(weights, features, query, is_right):
    """The mean over queries of the mean over right candidates of -log softmax."""
    total = 0.0
    for q in set(query):
        own = [k for k, other in enumerate(query) if other == q]
        scores = [sum(w * x for w, x in zip(weights, features[k], strict=True)) for k in own]
        log_sum = math.log(sum(map(math.exp, scores)))
        right = [log_sum - score for k, score in zip(own, scores, strict=True) if is_right[k]]
        total += sum(right) / len(right)
    return total / len(set(query))


def highest(scores, k):
    """The places of the k highest scores: ties in the order of places, NaN behind all numbers."""
    key = [(math.isnan(x), 0.0 if math.isnan(x) else -x, place) for place, x in enumerate(scores)]
    return [place for _, _, place in sorted(key)][:k]


# -- SIF -----------------------------------------------------------------------------------------


def sif(vectors, weights, texts, k):
    """Algorithm 1 of Arora, Liang and Ma (2017) with k components: (n_texts, d).

    ``vectors`` maps words to (d,), ``weights`` words to numbers; ``texts`` are lists of words.
    Unknown words are passed over; a text without known words stays zero.
    """
    d = len(next(iter(vectors.values())))
    X = np.zeros((len(texts), d))
    for row, words in enumerate(texts):
        known = [word for word in words if word in vectors]
        for word in known:
            X[row] += weights[word] * np.asarray(vectors[word], np.float64)
        if known:
            X[row] /= len(known)
    _, _, right = np.linalg.svd(X, full_matrices=False)
    for u in right[:k]:
        X = X - np.outer(X @ u, u)
    return X


def sif_likelihood(c, words, vectors, p, alpha):
    """Equation (2) of the SIF paper, word by word: the value, its gradient, that without Z's."""
    emitted = [np.exp(np.dot(v, c)) for v in vectors]
    Z = sum(emitted)
    mean = sum(e * v for e, v in zip(emitted, vectors, strict=True)) / Z
    value, exact, without = 0.0, np.zeros(len(c)), np.zeros(len(c))
    for w in words:
        discourse = (1 - alpha) * emitted[w] / Z
        probability = alpha * p[w] + discourse
        value += np.log(probability)
        exact += discourse / probability * (vectors[w] - mean)
        without += discourse / probability * vectors[w]
    return value, exact, without


# -- the classifier of the SIF paper (A.2) and Tai et al. (2015), one example at a time -----------


def classifier_logits(p, left, right=None):
    """Before the softmax; ``p`` has W_h, b_h, W_o, b_o and, for fixed vectors, W_p."""
    h = [p["W_p"] @ v if "W_p" in p else v for v in (left, right) if v is not None]
    x = h[0] if right is None else np.concatenate([h[0] * h[1], np.abs(h[0] - h[1])])
    return p["W_o"] @ sigmoid(p["W_h"] @ x + p["b_h"]) + p["b_o"]


def classifier_loss(p, target, left, right=None):
    """KL(target || prediction) of one example."""
    o = classifier_logits(p, left, right)
    prediction = np.exp(o) / np.exp(o).sum()
    return sum(t * math.log(t / q) for t, q in zip(target, prediction, strict=True) if t > 0)


def classifier_gradient(p, target, left, right=None):
    """The gradient of `classifier_loss` by every block, and by ``left`` and ``right``."""
    texts = [v for v in (left, right) if v is not None]
    h = [p["W_p"] @ v if "W_p" in p else v for v in texts]
    x = h[0] if right is None else np.concatenate([h[0] * h[1], np.abs(h[0] - h[1])])
    z = sigmoid(p["W_h"] @ x + p["b_h"])
    o = p["W_o"] @ z + p["b_o"]
    d_o = np.exp(o) / np.exp(o).sum() - target
    d_z = p["W_o"].T @ d_o * z * (1 - z)
    d_x = p["W_h"].T @ d_z
    if right is None:
        d_h = [d_x]
    else:
        product, distance = np.split(d_x, 2)
        sign = np.sign(h[0] - h[1])
        d_h = [product * h[1] + distance * sign, product * h[0] - distance * sign]
    gradient = {"W_o": np.outer(d_o, z), "b_o": d_o, "W_h": np.outer(d_z, x), "b_h": d_z}
    if "W_p" in p:
        gradient["W_p"] = sum(np.outer(d, v) for d, v in zip(d_h, texts, strict=True))
    return gradient, d_h


def highest_dots(queries, titles, k, mask=None):
    """Twin of `sentemb.retrieval.nearest.nearest`: every score, then a stable sort."""
    queries, titles = np.asarray(queries, np.float64), np.asarray(titles, np.float64)
    places, scores = [], []
    for query in queries:
        own = [
            (-sum(a * b for a, b in zip(query, title, strict=True)), place)
            for place, title in enumerate(titles)
            if mask is None or mask[place]
        ]
        best = sorted(own)[: min(k, len(titles))]
        short = min(k, len(titles)) - len(best)
        places.append([place for _, place in best] + [-1] * short)
        scores.append([-score for score, _ in best] + [-np.inf] * short)
    return np.array(places), np.array(scores)


def meeting(before, parts):
    """What parts of a training agree on.

    ``before`` is {name: array}. Each part is a pair: {name: its rows} for the arrays with rows, and
    {name: array}. A row is the mean over the parts that have it.
    """
    after = {}
    for name, array in before.items():
        if not any(name in rows for rows, _ in parts):
            after[name] = sum(arrays[name] for _, arrays in parts) / len(parts)
            continue
        after[name] = array.copy()
        for row in range(len(array)):
            met = [
                arrays[name][list(rows[name]).index(row)]
                for rows, arrays in parts
                if row in rows[name]
            ]
            if met:
                after[name][row] = sum(met) / len(met)
    return after
