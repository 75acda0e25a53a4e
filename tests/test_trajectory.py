"""Short trainings replayed against the losses that they once had, step by step.

A change of a kernel, of a draw or of the optimiser shows here at the step where it first matters.
If the change is meant, write the file anew and look at the difference::

    python tests/test_trajectory.py
"""

import json
from pathlib import Path

import numpy as np
import pytest

from sentemb import train
from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.pairs import PAIR_MODELS

STORED = Path(__file__).with_name("trajectory.json")
EASY = {"hard_negatives": 0}
OF_THE_PAPER = {"optimiser": "nesterov", "word_features": 0, **EASY}
# Not what a small log has by default.
SEPARATE = {"shared_towers": False, "bag_dim": 0}
# 120 pairs in mini-batches of 20, with 4 negatives each.
PAIRS = {"embedding": 16, "mlp": 24, "batch_size": 80, "n_negatives": 4, "learning_rate": 0.01}
RUNS = {
    "lstm, all titles of the batch": {"model": "lstm", **OF_THE_PAPER},
    "lstm, 4 drawn titles": {"model": "lstm", "n_negatives": 4, **OF_THE_PAPER},
    "bilstm, all titles of the batch": {"model": "bilstm", **OF_THE_PAPER},
    "bilstm, 4 drawn titles": {"model": "bilstm", "n_negatives": 4, **OF_THE_PAPER},
    "lstm, Adam and word features": {"model": "lstm", **EASY},
    "lstm beside a bag, Adam and word features": {"model": "lstm", "bag_dim": 8, **EASY},
    "lstm with hard negatives": {
        "model": "lstm",
        "hard_negatives": 1,
        "group_size": 1,
        "learning_rate": 0.005,
    },
    "lstm, mini-batches of neighbours": {"model": "lstm", "hard_negatives": 1},
    "bag, Adam and word features": {"model": "bag", **EASY},
    "dssm, Adam and word features": {"model": "dssm", "hidden": 24, **EASY},
    "clsm, Adam and word features": {"model": "clsm", "hidden": 24, **EASY},
    "dan, two layers": {"model": "dan", "hidden": 24, "layers": 2, **EASY},
    "irnn, Nesterov": {"model": "irnn", **OF_THE_PAPER},
    "lstm without output gate": {"output_gate": False, "forget_gate": True, **EASY},
    "lstm, shared and beside a bag": {"shared_towers": True, "bag_dim": 96},
    "arc2, dropout": {"model": "arc2", "maps": (12, 8), "dropout": 0.1, **PAIRS},
    "arc1, BM25 as teacher": {
        "model": "arc1",
        "maps": (12, 8),
        "teacher": "bm25",
        "hard_negatives": 1,
        **PAIRS,
        "batch_size": 100,
    },
    "wordembed, plain descent": {
        "model": "wordembed",
        "optimiser": "sgd",
        **PAIRS,
        "learning_rate": 0.3,
    },
}


def made_up_log():
    """120 pairs on 12 topics: queries of one to three words, titles of two to six."""
    rng = np.random.default_rng(7)
    letters = list("abcdefghijklmnopqrstuvwxyz")
    topics = [["".join(rng.choice(letters, 6)) for _ in range(5)] for _ in range(12)]
    builder = ClickLogBuilder()
    for number in range(120):
        words = topics[number % 12]
        query = " ".join(rng.choice(words, rng.integers(1, 4)))
        title = " ".join(rng.choice(words, rng.integers(2, 7)))
        builder.add(query, title, clicks=int(rng.integers(1, 20)))
    return builder.build()


def losses_of(settings):
    """The loss of each of 30 updates."""
    means = []
    if settings.get("model") not in PAIR_MODELS:
        settings = {"cells": 16, "batch_size": 20, **SEPARATE, **settings}
    train(
        made_up_log(),
        epochs=5,
        threads=1,
        on_progress=lambda at: means.append((at.epoch, at.step, at.loss)),
        **settings,
    )
    sums = {(epoch, step): step * loss for epoch, step, loss in means}
    return [total - sums.get((epoch, step - 1), 0.0) for (epoch, step), total in sums.items()]


@pytest.mark.parametrize("run", RUNS)
def test_losses_are_as_they_were(run):
    stored = json.loads(STORED.read_text("utf-8"))[run]
    losses = losses_of(RUNS[run])
    assert len(losses) == len(stored) == 30
    np.testing.assert_allclose(losses, stored, rtol=1e-4)
    assert np.mean(losses[-6:]) < 0.8 * np.mean(losses[:6]), "the training is to learn something"


if __name__ == "__main__":
    found = {run: [round(loss, 7) for loss in losses_of(RUNS[run])] for run in RUNS}
    STORED.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
