"""What docs/paper.md measures of the training: its cost, its method, its time and its loss."""

import time
from functools import cache
from statistics import median

import numpy as np
from claims import FAILS, HOLDS, IN_PART
from paper_models import Laboratory
from paper_parts import LSTM, RNN

from sentemb.data.judged_set import JudgedSet
from sentemb.text.words import split_words

# Equal numbers of parameters, as the paper has in its comparisons (V-B.1).
EQUAL = {"LSTM": "lstm-96", "RNN": "rnn-288"}
# Epochs of the comparison of Nesterov's method with plain descent, and where the search of the step
# size begins; factors of 3 follow until the best is between two others.
DESCENT_EPOCHS, FACTOR = 12, 3
MOMENTA = {"Nesterov": (0.995, 0.06), "plain": (0.0, 2.0)}
_ROUNDS, _EPOCHS = 3, 2
GAMMA = 10.0
# Where log(1 + exp(-x)) is 1: pairs in the wrong order beyond it have a loss of at least 1.
BOUND = -float(np.log(np.e - 1))
_QUERIES = 1000


def figure_7(lab: Laboratory) -> dict:
    """It holds if the cost of the LSTM is lower after every epoch; in part if after some."""
    histories = {name: lab.history(model) for name, model in EQUAL.items()}
    costs = {
        name: dict(zip(one.epochs, one.losses, strict=True)) for name, one in histories.items()
    }
    lower = sum(costs["LSTM"][epoch] < costs["RNN"][epoch] for epoch in costs["LSTM"])
    epochs = [1, 6, 12, 24]
    whole = len(costs["LSTM"])
    return {
        "head": ["cost", *(f"epoch {epoch}" for epoch in epochs)],
        "rows": [[name, *(f"{of[epoch]:.3f}" for epoch in epochs)] for name, of in costs.items()],
        "verdict": HOLDS if lower == whole else IN_PART if lower else FAILS,
        "why": f"The cost of the LSTM is lower after {lower} of {whole} epochs. The LSTM has 96 "
        f"cells and the RNN 288, which are equal numbers of parameters; their step sizes are "
        f"{lab.rate(EQUAL['LSTM'])} and {lab.rate(EQUAL['RNN'])}, each chosen on dev.",
    }


def nesterov(lab: Laboratory) -> dict:
    """It holds if LSTM and RNN reach the last cost of plain descent in fewer epochs by Nesterov's.

    Each at the step size with its lowest last cost; in part if one of both does.
    """
    rows, sooner, why = [], [], []
    for name, model in (("LSTM", LSTM), ("RNN", RNN)):
        best = {}
        for method, (momentum, start) in MOMENTA.items():
            rate, costs = _searched(lab, model, momentum, start)
            best[method] = costs
            rows.append(
                [f"{name}, {method}", f"{rate:.2g}", *(f"{costs[k - 1]:.3f}" for k in _SHOWN)]
            )
        target = best["plain"][-1]
        epoch = next((k for k, cost in enumerate(best["Nesterov"], 1) if cost <= target), None)
        sooner.append(epoch is not None and epoch < DESCENT_EPOCHS)
        reached = f"reaches after {epoch}" if epoch else "does not reach"
        why.append(f"{name} {target:.3f} by plain descent, which Nesterov's method {reached}")
    return {
        "head": ["cost", "step size", *(f"epoch {k}" for k in _SHOWN)],
        "rows": rows,
        "verdict": HOLDS if all(sooner) else IN_PART if any(sooner) else FAILS,
        "why": f"Cost after {DESCENT_EPOCHS} epochs, 32 cells: {'; '.join(why)}.",
    }


_SHOWN = (1, 3, 6, DESCENT_EPOCHS)


def _searched(lab: Laboratory, model: str, momentum: float, start: float):
    """The step size with the lowest last cost, and the cost of each epoch with it."""
    found: dict[int, list[float]] = {}

    def last(power: int) -> float:
        if power not in found:
            rate = start * FACTOR**power
            found[power] = lab.costs(model, rate, DESCENT_EPOCHS, momentum=momentum)
        return found[power][-1]

    power = 0
    while last(power + 1) < last(power):
        power += 1
    while last(power - 1) < last(power):
        power -= 1
    return start * FACTOR**power, found[power]


VARIANTS = {
    "without": "lstm-96",
    "peepholes": "lstm-96-peepholes",
    "forget gate": "lstm-96-forget",
    "both": "lstm-96-both",
}


@cache
def _seconds(lab: Laboratory) -> dict[str, float]:
    """{variant: processor seconds of an epoch}, the median of rounds in which all take turns."""
    taken: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for _ in range(_ROUNDS):
        for name, model in VARIANTS.items():
            spent = []
            for epochs in (1, 1 + _EPOCHS):
                began = time.process_time()
                lab.costs(model, 0.2, epochs, kept=False)
                spent.append(time.process_time() - began)
            taken[name].append((spent[1] - spent[0]) / _EPOCHS)
    return {name: median(seconds) for name, seconds in taken.items()}


def training_time(lab: Laboratory, *, longer: float = 0.05) -> dict:
    """It holds if peepholes, forget gate and both make an epoch ``longer`` by such a share.

    In part if one of the three does.
    """
    seconds = _seconds(lab)
    base = seconds["without"]
    more = {name: taken / base - 1 for name, taken in seconds.items() if name != "without"}
    slower = [share > longer for share in more.values()]
    listed = ", ".join(f"{name} {share:+.0%}" for name, share in more.items())
    return {
        "seconds": {name: round(taken, 2) for name, taken in seconds.items()},
        "verdict": HOLDS if all(slower) else IN_PART if any(slower) else FAILS,
        "why": f"Processor time of an epoch of LSTM (96), against {base:.1f} s without: {listed}.",
    }


@cache
def _orders(lab: Laboratory) -> np.ndarray:
    """gamma Delta of every clicked and every other judged title of a query of the test set."""
    test: JudgedSet = lab.test
    queries = np.repeat(np.arange(len(test.queries)), np.diff(test.offsets))
    scores = lab.model(LSTM).score_pairs(test.queries, test.titles, queries, test.title_index)
    differences = []
    for begin, end in zip(test.offsets, test.offsets[1:], strict=False):
        good = test.grade[begin:end] > 0
        of_query = scores[begin:end]
        differences.append((of_query[good][:, None] - of_query[~good]).ravel())
    return GAMMA * np.concatenate(differences)


def bound(lab: Laboratory) -> dict:
    """It holds if no pair in the wrong order has a loss below 1, the 0-1 loss of an error.

    In part if the loss with the logarithm to base 2 has not.
    """
    x = _orders(lab)
    wrong = x[x < 0]
    losses = np.logaddexp(0, -wrong)
    below, in_bits = (float(np.mean(some < 1)) for some in (losses, losses / np.log(2)))
    return {
        "verdict": HOLDS if not below else FAILS if in_bits else IN_PART,
        "why": f"An error with γΔ = −0.1 has the loss {np.logaddexp(0, 0.1):.3f}. The bound holds "
        f"from γΔ ≤ −ln(e − 1) = {BOUND:.3f} on, and everywhere with the logarithm to base 2. Of "
        f"{len(wrong):,} pairs of judged titles that the LSTM puts in the wrong order (of "
        f"{len(x):,}), {below:.1%} have a loss below 1.".replace("= -", "= −"),
    }


@cache
def _moves(lab: Laboratory) -> list[tuple[float, float]]:
    """Of each query, how far leaving out a keyword, and another word, moves its embedding."""
    texts, owners, kinds, kept = [], [], [], []
    for query in lab.test.queries:
        words = split_words(query)
        marks = lab.truth["query"][query].marks(words)
        if len(kept) == _QUERIES or all(marks) or not any(marks):
            continue
        kept.append(query)
        texts += [" ".join(words[:k] + words[k + 1 :]) for k in range(len(words))]
        owners += [len(kept) - 1] * len(words)
        kinds += marks
    model = lab.model(LSTM)
    whole, less = (
        model.encode(some, side="query", normalize_embeddings=True) for some in (kept, texts)
    )
    moved = 1 - (whole[owners] * less).sum(axis=1)
    of, kind = np.array(owners), np.array(kinds)
    return [
        (float(moved[(of == q) & kind].mean()), float(moved[(of == q) & ~kind].mean()))
        for q in range(len(kept))
    ]


def noise(lab: Laboratory, *, wrong: float = 0.1) -> dict:
    """It holds if leaving out a keyword moves the vector of a query more than another word does.

    Of all queries but a share ``wrong``, by the mean cosine over its keywords and over its other
    words; in part of more than half.
    """
    moves = np.array(_moves(lab))
    share = float(np.mean(moves[:, 0] > moves[:, 1]))
    keyword, other = np.median(moves, axis=0)
    return {
        "verdict": HOLDS if share >= 1 - wrong else IN_PART if share > 0.5 else FAILS,
        "why": f"So it is of {share:.1%} of {len(moves):,} test queries that have both; in the "
        f"median a keyword turns the vector by {keyword:.3f} (1 − cosine), another word by "
        f"{other:.3f}.",
    }
