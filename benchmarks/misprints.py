"""How far the paper's printed gradients are from the gradient, and what each misprint costs.

Measures, in float64 and on one thread, everything that the tables of docs/gradients.md say, and
writes them there between their markers; also prints the tables for every number of words. What is
made up comes from seeds, so running it again gives the same tables. One to two minutes:

    python benchmarks/misprints.py

The exact and the printed gradients are the package's. The others come from the plain NumPy below,
which must equal the package both with everything kept and with everything dropped.
"""

import argparse
import time
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
from pages import ROOT, fill

from sentemb.gradients.pair_problem import PairProblem
from sentemb.gradients.recursion import delayed
from sentemb.kernels.nesterov import coefficients
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import SIDES
from sentemb.models.towers.truncation import Truncation
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.objectives.objective import Objective
from sentemb.training.optimisers.nesterov import MomentumSchedule

DOCUMENT = ROOT / "docs" / "gradients.md"

CELLS, WORDS = 8, 16
PAIRS, NEGATIVES, GAMMA = 2, 3, 10.0
LENGTHS = (1, 2, 5, 10)
SCALES = (0.1, 0.5, 1.0)
SEEDS = range(5)
LSTMS = {
    "reduced": {"forget_gate": False, "peepholes": "none"},
    "forget gate": {"forget_gate": True, "peepholes": "none"},
    "forget gate, diagonal peepholes": {"forget_gate": True, "peepholes": "diagonal"},
    "forget gate, full peepholes": {"forget_gate": True, "peepholes": "full"},
}
# Two gradients nearer than this, relative to their norm, are the same up to rounding.
SAME = 1e-10


@dataclass(frozen=True)
class Kept:
    """What a variant keeps of the exact error recursion; the traces are always exact."""

    factor: bool = True  # b_g(t) on the way from c(t) through gate g to y(t-1)
    cell_path: bool = True  # f(t+1) eps(t+1) in what reaches y(t-1)
    other_gates: bool = True  # all recurrent matrices, not only the gate's own
    peephole_paths: bool = True  # Wp_1, Wp_2, Wp_3


EXACT = Kept()
PRINTED = Kept(factor=False, cell_path=False, other_gates=False, peephole_paths=False)

PRINTED_ROW = "(43), (44) as printed"
TAU_0_ROW = "τ = 0 only, exact traces"
NO_PEEPHOLES_ROW = "exact but for the peephole paths"
VARIANTS = {
    "(44) with b_g(t) put in": Kept(cell_path=False, other_gates=False, peephole_paths=False),
    "exact but for b_g(t)": Kept(factor=False),
    "exact but for the cell path": Kept(cell_path=False),
    "exact but for the other gates' matrices": Kept(other_gates=False),
    NO_PEEPHOLES_ROW: Kept(peephole_paths=False),
}


# -- made-up problems ---------------------------------------------------------------------------


def make_problem(encoder, length, scale, seed, workers):
    """Pairs of texts of ``length`` words each and a model, every parameter from N(0, scale²).

    For one seed the texts and the unscaled parameters are the same at every scale.
    """
    rng = np.random.default_rng([seed, length])
    words = ["".join(rng.choice(list("abcde"), rng.integers(1, 6))) for _ in range(WORDS)]

    def texts(count):
        return [" ".join(rng.choice(words, length)) for _ in range(count)]

    queries, titles = texts(PAIRS), texts(PAIRS)
    others = [texts(NEGATIVES) for _ in range(PAIRS)]
    vocabulary = Vocabulary.collect(tokenize(words))
    model = random_model(encoder, vocabulary, scale, rng)
    return Problem(model, queries, titles, others, workers)


def random_model(encoder, vocabulary, scale, rng):
    """Two towers with every parameter from N(0, scale²)."""
    weights = {
        side: {
            name: scale * rng.standard_normal(shape)
            for name, shape in encoder.shapes(len(vocabulary)).items()
        }
        for side in SIDES
    }
    return SentenceEncoder(encoder, vocabulary, weights, threads=1)


class Problem:
    """Pairs with negatives; the package's gradients, and what the NumPy versions need."""

    def __init__(self, model, queries, titles, others, workers):
        self.model = model
        self.parameters = model.parameters()
        self._package = PairProblem(
            model.towers, queries, titles, others, Objective(gamma=GAMMA), workers
        )
        self.queries = [self._counts(text) for text in queries]
        self.titles = [
            [self._counts(text) for text in [clicked, *some]]
            for clicked, some in zip(titles, others, strict=True)
        ]

    def _counts(self, text):
        """l(t) of every word: (T, d)."""
        words = text.split()
        counts = np.zeros((len(words), len(self.model.vocabulary)))
        for t, word in enumerate(words):
            for trigram, count in self.model.vocabulary.features(word).items():
                counts[t, trigram] = count
        return counts

    def gradient(self, form, truncation=None):
        return self._package.gradient(form, truncation)

    def passes(self, forward):
        """Every text with its start vector, summed over its pairs: (side, l, values, v)."""
        found = []
        for query, titles in zip(self.queries, self.titles, strict=True):
            q = forward(self.parameters["query"], query)
            ds = [forward(self.parameters["document"], title) for title in titles]
            slopes = loss_slopes(q["y"][-1], [d["y"][-1] for d in ds])
            starts = [start_vectors(q["y"][-1], d["y"][-1]) for d in ds]
            v = sum(slope * start[0] for slope, start in zip(slopes, starts, strict=True))
            found.append(("query", query, q, v))
            for title, d, slope, start in zip(titles, ds, slopes, starts, strict=True):
                found.append(("document", title, d, slope * start[1]))
        return found

    def zeros(self):
        return {
            side: {name: np.zeros(array.shape) for name, array in blocks.items()}
            for side, blocks in self.parameters.items()
        }


def cosine(a, b):
    return a @ b / np.linalg.norm(a) / np.linalg.norm(b)


def loss_slopes(query, titles):
    """dl/dR of every candidate, the clicked one first: equation (8), with the right sign in (7)."""
    scores = GAMMA * np.array([cosine(query, title) for title in titles])
    p = np.exp(scores - scores.max())
    p /= p.sum()
    alpha = -GAMMA * p[1:]
    return np.concatenate([[alpha.sum()], -alpha])


def start_vectors(query, title):
    """dR/dy_Q and dR/dy_D, equation (15) with a, b, c of equation (12)."""
    a, b, c = query @ title, 1 / np.linalg.norm(query), 1 / np.linalg.norm(title)
    return b * c * title - a * b**3 * c * query, b * c * query - a * b * c**3 * title


# -- the LSTM in plain NumPy --------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def peephole_matrix(blocks, k, n):
    given = blocks.get(f"Wp{k}")
    if given is None:
        return np.zeros((n, n))
    return np.diag(given) if given.ndim == 1 else given


def lstm_forward(blocks, counts):
    """Equations (2) for one text: {"y", "c", "h", "o", "f", "i", "y_g"}, each (T, n)."""
    n = blocks["b1"].size
    names = ("y", "c", "h", "o", "f", "i", "y_g")
    values = {name: np.zeros((len(counts), n)) for name in names}
    Wp = {k: peephole_matrix(blocks, k, n) for k in (1, 2, 3)}
    y, c = np.zeros(n), np.zeros(n)
    for t, l in enumerate(counts):
        x = {
            g: blocks[f"W{g}"] @ l + blocks[f"Wrec{g}"] @ y + blocks[f"b{g}"]
            for g in "1234"
            if f"b{g}" in blocks
        }
        f = sigmoid(x["2"] + Wp[2] @ c) if "2" in x else np.ones(n)
        i = sigmoid(x["3"] + Wp[3] @ c)
        y_g = np.tanh(x["4"])
        c = f * c + i * y_g
        o = sigmoid(x["1"] + Wp[1] @ c)
        h = np.tanh(c)
        y = o * h
        for name, value in zip(names, (y, c, h, o, f, i, y_g), strict=True):
            values[name][t] = value
    return values


def gate_factors(values):
    """b_g(t) = dc(t) / d(pre-activation of gate g), for g = 2, 3, 4."""
    f, i, y_g = values["f"], values["i"], values["y_g"]
    return {
        2: delayed(values["c"]) * f * (1 - f),
        3: y_g * i * (1 - i),
        4: i * (1 - y_g**2),
    }


def lstm_signals(blocks, values, v, gate, kept):
    """The signals of gate ``gate`` (1 to 4) by time, (T, n): delta_1, or L for gates 2 to 4."""
    T, n = values["y"].shape
    o, h, f = values["o"], values["h"], values["f"]
    b = gate_factors(values)
    Wp = {k: kept.peephole_paths * peephole_matrix(blocks, k, n) for k in (1, 2, 3)}
    senders = [g for g in (1, 2, 3, 4) if f"b{g}" in blocks and (kept.other_gates or g == gate)]
    signals = np.zeros((T, n))
    e, eps, through_gates = v, np.zeros(n), np.zeros(n)
    for t in range(T - 1, -1, -1):
        delta_1 = h[t] * o[t] * (1 - o[t]) * e
        L = o[t] * (1 - h[t] ** 2) * e + Wp[1].T @ delta_1 + through_gates
        signals[t] = delta_1 if gate == 1 else L
        eps = L + f[t + 1] * eps if kept.cell_path and t + 1 < T else L
        through_gates = Wp[2].T @ (b[2][t] * eps) + Wp[3].T @ (b[3][t] * eps)
        sent = {g: (b[g][t] * eps if kept.factor else eps) for g in (2, 3, 4)} | {1: delta_1}
        e = sum(blocks[f"Wrec{g}"].T @ sent[g] for g in senders)
    return signals


def lstm_gradient(problem, passes, kept):
    """The gradient by traces, with the signals that ``kept`` leaves."""
    gradient = problem.zeros()
    for side, counts, values, v in passes:
        blocks, total = problem.parameters[side], gradient[side]
        b = gate_factors(values)
        ones = np.ones((len(counts), 1))
        U = np.hstack([counts, delayed(values["y"]), ones, delayed(values["c"])])
        ends = np.cumsum([counts.shape[1], values["y"].shape[1], 1])
        for gate in (1, 2, 3, 4):
            if f"b{gate}" not in blocks:
                continue
            signals = lstm_signals(blocks, values, v, gate, kept)
            if gate == 1:
                U_output = np.hstack([U[:, : ends[2]], values["c"]])
                dX = signals.T @ U_output
            else:
                dX, trace = 0, 0
                for t in range(len(counts)):
                    trace = values["f"][t][:, None] * trace + np.outer(b[gate][t], U[t])
                    dX = dX + signals[t][:, None] * trace
            dW, dWrec, db, dWp = np.split(dX, ends, axis=1)
            total[f"W{gate}"] += dW
            total[f"Wrec{gate}"] += dWrec
            total[f"b{gate}"] += db[:, 0]
            if f"Wp{gate}" in blocks:
                diagonal = blocks[f"Wp{gate}"].ndim == 1
                total[f"Wp{gate}"] += np.diagonal(dWp) if diagonal else dWp
    return gradient


def misprinted_b2(problem, passes):
    """dL/db_2 with (36) as printed: dc(t-1)/db_3 where dc(t-1)/db_2 belongs; both sides, joined."""
    total = {side: np.zeros(CELLS) for side in SIDES}
    for side, _, values, v in passes:
        b = gate_factors(values)
        L = lstm_signals(problem.parameters[side], values, v, 2, EXACT)
        trace_3 = np.zeros(CELLS)
        for t in range(len(L)):
            total[side] += L[t] * (values["f"][t] * trace_3 + b[2][t])
            trace_3 = values["f"][t] * trace_3 + b[3][t]
    return np.concatenate([total[side] for side in SIDES])


# -- the RNN in plain NumPy ---------------------------------------------------------------------


def rnn_forward(blocks, counts):
    """Equation (1): {"y": (T, n)}."""
    y, rows = np.zeros(blocks["b"].size), []
    for l in counts:
        y = np.tanh(blocks["W"] @ l + blocks["Wrec"] @ y + blocks["b"])
        rows.append(y)
    return {"y": np.array(rows)}


def rnn_gradient(problem, passes):
    """Equations (9) to (13)."""
    gradient = problem.zeros()
    for side, counts, values, v in passes:
        y, e, delta = values["y"], v, np.zeros_like(values["y"])
        for t in range(len(counts) - 1, -1, -1):
            delta[t] = (1 - y[t] ** 2) * e
            e = problem.parameters[side]["Wrec"].T @ delta[t]
        gradient[side]["W"] += delta.T @ counts
        gradient[side]["Wrec"] += delta.T @ delayed(y)
        gradient[side]["b"] += delta.sum(axis=0)
    return gradient


def rnn_63(problem):
    """dL/dW with (63): (15) with y_Q(t-tau), y_D(t-tau), but a, b, c of the whole texts; joined."""
    total = {side: np.zeros_like(problem.parameters[side]["W"]) for side in SIDES}
    for query, titles in zip(problem.queries, problem.titles, strict=True):
        q = rnn_forward(problem.parameters["query"], query)["y"]
        ds = [rnn_forward(problem.parameters["document"], title)["y"] for title in titles]
        slopes = loss_slopes(q[-1], [d[-1] for d in ds])
        for title, d, slope in zip(titles, ds, slopes, strict=True):
            a, b, c = q[-1] @ d[-1], 1 / np.linalg.norm(q[-1]), 1 / np.linalg.norm(d[-1])
            delta_q = slope * (1 - q**2) * (b * c * d - a * b**3 * c * q)
            delta_d = slope * (1 - d**2) * (b * c * q - a * b * c**3 * d)
            total["query"] += delta_q.T @ query
            total["document"] += delta_d.T @ title
    return np.concatenate([total[side].ravel() for side in SIDES])


# -- comparing ----------------------------------------------------------------------------------


def flat(gradient, only=None):
    """All blocks of both sides, or the one named ``only``, as one vector."""
    return np.concatenate(
        [
            gradient[side][name].ravel()
            for side in SIDES
            for name in sorted(gradient[side])
            if only in (None, name)
        ]
    )


def compare(vector, exact):
    """(cosine, relative L2 error, norm ratio)."""
    norm = np.linalg.norm(exact)
    return (
        cosine(vector, exact),
        np.linalg.norm(vector - exact) / norm,
        np.linalg.norm(vector) / norm,
    )


def check_same(vector, package, what):
    error = np.linalg.norm(vector - package) / np.linalg.norm(package)
    assert error < SAME, f"{what}: the script and the package differ by {error:.1e}"


def average(comparisons):
    """Over the seeds: the mean cosine, geometric means of the error and of the norm ratio."""
    cosines, errors, ratios = np.array(comparisons).T
    errors = np.maximum(errors, np.finfo(float).tiny)
    return cosines.mean(), np.exp(np.log(errors).mean()), np.exp(np.log(ratios).mean())


def measure_lstms(workers):
    """{(variant, row, length, scale): average}, and the same for (36) with b_2 alone."""
    whole, b2 = {}, {}
    for name, settings in LSTMS.items():
        encoder = make_encoder("lstm", cells=CELLS, **settings)
        rows = {
            row: kept
            for row, kept in VARIANTS.items()
            if row != NO_PEEPHOLES_ROW or settings["peepholes"] != "none"
        }
        for length in LENGTHS:
            for scale in SCALES:
                found = {row: [] for row in [PRINTED_ROW, *rows, TAU_0_ROW]}
                found_b2 = []
                for seed in SEEDS:
                    problem = make_problem(encoder, length, scale, seed, workers)
                    passes = problem.passes(lstm_forward)
                    exact_blocks = problem.gradient("scan")
                    exact, printed = flat(exact_blocks), flat(problem.gradient("printed"))
                    check_same(flat(lstm_gradient(problem, passes, EXACT)), exact, "exact")
                    check_same(flat(lstm_gradient(problem, passes, PRINTED)), printed, "printed")
                    found[PRINTED_ROW].append(compare(printed, exact))
                    for row, kept in rows.items():
                        vector = flat(lstm_gradient(problem, passes, kept))
                        found[row].append(compare(vector, exact))
                    last = problem.gradient("trace", Truncation(1, keep_cell_path=True))
                    found[TAU_0_ROW].append(compare(flat(last), exact))
                    if settings["forget_gate"] and length > 1:
                        exact_b2 = flat(exact_blocks, "b2")
                        found_b2.append(compare(misprinted_b2(problem, passes), exact_b2))
                for row, comparisons in found.items():
                    whole[name, row, length, scale] = average(comparisons)
                if found_b2:
                    b2[name, length, scale] = average(found_b2)
    return whole, b2


RNN_ROWS = ("(10) as printed", "(7) with (8), sign as printed", "(63) as printed, W alone")


def measure_rnn(workers):
    """{(row, length, scale): average}."""
    encoder = make_encoder("rnn", cells=CELLS)
    measured = {}
    for length in LENGTHS:
        for scale in SCALES:
            found = {row: [] for row in RNN_ROWS}
            for seed in SEEDS:
                problem = make_problem(encoder, length, scale, seed, workers)
                blocks = problem.gradient("scan")
                exact = flat(blocks)
                check_same(flat(problem.gradient("printed")), exact, "RNN, printed")
                passes = problem.passes(rnn_forward)
                own = flat(rnn_gradient(problem, passes))
                check_same(own, exact, "RNN")
                found[RNN_ROWS[0]].append(compare(own, exact))
                # Everything is linear in the start vectors, and the sign is theirs.
                turned = [(*some, -v) for *some, v in passes]
                found[RNN_ROWS[1]].append(compare(flat(rnn_gradient(problem, turned)), exact))
                found[RNN_ROWS[2]].append(compare(rnn_63(problem), flat(blocks, "W")))
            for row, comparisons in found.items():
                measured[row, length, scale] = average(comparisons)
    return measured


# -- does the printed gradient train? -----------------------------------------------------------

TOPICS, TOPIC_WORDS, FILLERS = 8, 3, 20
TRAIN_CELLS, UPDATES, RATES, TRAIN_SEEDS = 16, 400, (0.003, 0.01, 0.03), range(3)
TEST_BATCHES = 10
# Updates of a printed run between two comparisons of its gradient with the exact one.
COMPARED = 10


class TopicTask:
    """A query and a title of every topic: some words of the topic among others that mean nothing.

    Every batch is fresh, and in a batch each title is unclicked for all queries but its own.
    """

    def __init__(self, seed):
        self._rng = np.random.default_rng([seed, 1])
        count = TOPICS * TOPIC_WORDS + FILLERS
        letters = list("abcdefghijklmnop")
        words = ["".join(self._rng.choice(letters, self._rng.integers(3, 7))) for _ in range(count)]
        self._topics = np.array(words[: TOPICS * TOPIC_WORDS]).reshape(TOPICS, TOPIC_WORDS)
        self._fillers = words[TOPICS * TOPIC_WORDS :]
        self.vocabulary = Vocabulary.collect(tokenize(words))

    def batch(self):
        """(queries, titles, negatives) as `PairProblem` takes them."""
        queries = [self._text(topic, 1, 2, 5) for topic in range(TOPICS)]
        titles = [self._text(topic, 2, 4, 8) for topic in range(TOPICS)]
        return queries, titles, [titles[:k] + titles[k + 1 :] for k in range(TOPICS)]

    def _text(self, topic, topic_words, fewest, most):
        length = self._rng.integers(fewest, most + 1)
        words = [*self._rng.choice(self._topics[topic], topic_words)]
        words += [*self._rng.choice(self._fillers, length - topic_words)]
        return " ".join(self._rng.permutation(words))


def train(encoder, form, rate, seed, workers):
    """(loss per query on unseen batches, cosines of the printed to the exact gradient).

    With equation (6), the paper's schedule of mu and re-normalisation to th_G = 1. The cosines are
    those along a printed run, one for each quarter of it; of an exact run there are none.
    """
    task = TopicTask(seed)
    rng = np.random.default_rng([seed, 2])
    model = random_model(encoder, task.vocabulary, 0.1, rng)
    parameters = model.parameters()
    velocity = {
        side: {name: np.zeros(array.shape) for name, array in parameters[side].items()}
        for side in SIDES
    }
    schedule = MomentumSchedule.paper(UPDATES)
    cosines = []
    for update in range(UPDATES):
        for side in SIDES:
            for name, v in velocity[side].items():
                v *= schedule.at(update)
                parameters[side][name] += v  # the look-ahead point
        problem = PairProblem(model.towers, *task.batch(), Objective(gamma=GAMMA), workers)
        gradient = problem.gradient(form)
        if form == "printed" and update % COMPARED == 0:
            cosines.append(cosine(flat(gradient), flat(problem.gradient("scan"))))
        for side in SIDES:
            norm = np.sqrt(sum(np.sum(array**2) for array in gradient[side].values())) / TOPICS
            step = rate / TOPICS / max(1.0, norm)
            for name, array in gradient[side].items():
                velocity[side][name] -= step * array
                parameters[side][name] -= step * array
    losses = [
        PairProblem(model.towers, *task.batch(), Objective(gamma=GAMMA), workers).loss() / TOPICS
        for _ in range(TEST_BATCHES)
    ]
    quarters = np.reshape(cosines, (4, -1)).mean(axis=1) if cosines else []
    return float(np.mean(losses)), quarters


TRAINED = ("reduced", "forget gate, full peepholes")


def measure_training(workers):
    """{(variant, rate, form): [(loss, cosines by quarter) of every seed]}."""
    return {
        (name, rate, form): [
            train(make_encoder("lstm", cells=TRAIN_CELLS, **LSTMS[name]), form, rate, seed, workers)
            for seed in TRAIN_SEEDS
        ]
        for name in TRAINED
        for rate in RATES
        for form in ("scan", "printed")
    }


# -- momentum of rows left behind ---------------------------------------------------------------

MU = 0.995
IDLE_FROM, IDLE_FOR = (1000, 3000, 5000, 7000, 9000), 100


def measure_prefix_products():
    """{k1: relative errors of B(k1, k1 + 100) by prefix products and by the closed form}."""
    end = max(IDLE_FROM) + IDLE_FOR
    products = np.cumprod(np.concatenate([[1.0], np.full(end, MU)]))
    sums = np.concatenate([[0.0], np.cumsum(products[1:])])
    mu = Fraction(MU)
    exact = float(sum(mu**s for s in range(1, IDLE_FOR + 1)))
    bounds, momenta = np.array([0, end]), np.array([MU])
    errors = {}
    for k in IDLE_FROM:
        prefix = (sums[k + IDLE_FOR] - sums[k]) / products[k]
        _, closed = coefficients(k, k + IDLE_FOR, bounds, momenta)
        errors[k] = abs(prefix / exact - 1), abs(closed / exact - 1)
    return errors


# -- tables -------------------------------------------------------------------------------------


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def cell(comparison):
    along, error, ratio = comparison
    if error < SAME:
        return "exact"
    return f"{along:.3f} · {short(error)} · {short(ratio)}"


def short(number):
    """Two significant digits, without an exponent."""
    return f"{number:.0f}" if number >= 10 else f"{number:.2g}"


def scales_head(*first):
    return [*first, *(f"scale {scale}" for scale in SCALES)]


def row_names(whole, name):
    return list(dict.fromkeys(row for variant, row, *_ in whole if variant == name))


def misprint_tables(whole, b2, rnn, training):
    parts = [
        f"Settings: {CELLS} cells, separate towers, {PAIRS} queries with {NEGATIVES} unclicked "
        f"titles each, γ = {GAMMA:g}, all texts of T words out of {WORDS} made-up ones; every "
        "parameter, biases and peepholes included, drawn from N(0, scale²); float64, one thread; "
        f"{len(SEEDS)} seeds. Each cell: **cosine · relative L2 error · norm ratio** against the "
        "exact gradient, all parameters of both towers as one vector; the mean of the cosines and "
        'the geometric means of the other two. "exact" is an error below 1e-10.',
        "**The printed recursions (43), (44)**, sign and trace misprints corrected:",
        table(
            scales_head("LSTM", "T"),
            [
                [name, str(length)]
                + [cell(whole[name, PRINTED_ROW, length, scale]) for scale in SCALES]
                for name in LSTMS
                for length in LENGTHS
            ],
        ),
        f"**One thing at a time**, T = {LENGTHS[-1]}:",
        table(
            scales_head("LSTM", "error signal"),
            [
                [name, row] + [cell(whole[name, row, LENGTHS[-1], scale]) for scale in SCALES]
                for name in LSTMS
                for row in row_names(whole, name)
            ],
        ),
        "**Equation (36) as printed**, everything else exact; b_2 alone (nothing else changes):",
        table(
            scales_head("LSTM", "T"),
            [
                [name, str(length)] + [cell(b2[name, length, scale]) for scale in SCALES]
                for name in LSTMS
                for length in LENGTHS
                if (name, length, SCALES[0]) in b2
            ],
        ),
        "**RNN**:",
        table(
            scales_head("RNN", "T"),
            [line for row in RNN_ROWS for line in lengths_alike(row, rnn)],
        ),
        "**Does the printed gradient train?** "
        f"{TOPICS} topics of {TOPIC_WORDS} words, queries of 2–5 and titles of 4–8 words, one pair "
        "of each topic a batch, all other titles of the batch unclicked; "
        f"{TRAIN_CELLS} cells, all parameters from N(0, 0.1²), {UPDATES} updates by (6) with the "
        "schedule of section 10, th_G = 1 for each tower. Loss per query on unseen batches, mean "
        f"of {len(TRAIN_SEEDS)} seeds [lowest, highest]; a model that knows nothing has "
        f"ln {TOPICS} = {np.log(TOPICS):.2f}. Last column: cosine of the printed to the exact "
        "gradient at the same weights, in the four quarters of the printed run, mean of the seeds.",
        table(
            ["LSTM", "step", "exact", "printed", "cosine by quarter"],
            [
                [
                    name,
                    f"{rate:g}",
                    spread([loss for loss, _ in training[name, rate, "scan"]]),
                    spread([loss for loss, _ in training[name, rate, "printed"]]),
                    ", ".join(
                        f"{along:.2f}"
                        for along in np.mean(
                            [quarters for _, quarters in training[name, rate, "printed"]], axis=0
                        )
                    ),
                ]
                for name in TRAINED
                for rate in RATES
            ],
        ),
    ]
    return "\n\n".join(parts)


def lengths_alike(row, measured):
    """The lines of one row of the RNN's table, lengths with the same cells in one line."""
    lines = {}
    for length in LENGTHS:
        cells = tuple(cell(measured[row, length, scale]) for scale in SCALES)
        lines.setdefault(cells, []).append(str(length))
    return [[row, ", ".join(lengths), *cells] for cells, lengths in lines.items()]


def spread(numbers):
    return f"{np.mean(numbers):.2f} [{min(numbers):.2f}, {max(numbers):.2f}]"


def all_lengths(whole):
    """Every LSTM, variant and length: for the terminal."""
    return table(
        scales_head("LSTM", "error signal", "T"),
        [
            [name, row, str(length)] + [cell(whole[name, row, length, scale]) for scale in SCALES]
            for name in LSTMS
            for row in row_names(whole, name)
            for length in LENGTHS
        ],
    )


def prefix_table(errors):
    return table(
        ["first idle update $k_1$", *(str(k) for k in errors)],
        [
            ["prefix products", *(f"{prefix:.0e}" for prefix, _ in errors.values())],
            ["closed form", *(f"{closed:.0e}" if closed else "0" for _, closed in errors.values())],
        ],
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--document", type=Path, default=DOCUMENT, help="where the tables go")
    document = parser.parse_args().document
    start = time.perf_counter()
    with Workers(1) as workers:
        whole, b2 = measure_lstms(workers)
        rnn = measure_rnn(workers)
        print(all_lengths(whole))
        training = measure_training(workers)
    tables = misprint_tables(whole, b2, rnn, training)
    prefixes = prefix_table(measure_prefix_products())
    print(f"\n{tables}\n\n{prefixes}\n\n{time.perf_counter() - start:.0f} s")
    fill(document, {"misprints": [tables], "prefixes": [prefixes]})


if __name__ == "__main__":
    main()
