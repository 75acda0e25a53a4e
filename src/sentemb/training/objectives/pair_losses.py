"""The losses of pair models: a hinge over triples, or a logistic loss, and their gradients.

A mini-batch is a list of examples. Each example is a list of pairs, of which the first is right and
the others are negatives, or a single pair with a label. The loss of an example is the mean over its
triples or pairs, times its weight.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.training.objectives.objective_options import HINGE


@dataclass(frozen=True)
class PairTargets:
    """Targets for the scores of a mini-batch.

    offsets : (n_examples + 1,), the pairs of each example
    labels : (n_pairs,), 1 for a right pair, 0 for a negative
    weights : (n_examples,); they sum to 1
    """

    offsets: NDArray[np.int64]
    labels: NDArray[np.int8]
    weights: NDArray[np.float64]

    @classmethod
    def of_lists(cls, offsets: NDArray[np.int64], weights: NDArray[np.float64]) -> PairTargets:
        """The targets of lists whose first pair is right."""
        labels = np.zeros(offsets[-1], np.int8)
        labels[offsets[:-1]] = 1
        return cls(offsets, labels, weights)


def hinge_of_lists(
    scores: np.ndarray, targets: PairTargets, margin: float
) -> tuple[float, NDArray[np.float64], NDArray[np.bool_]]:
    """Mean over triples of max(0, margin + s(x, y-) - s(x, y+)): the paper's ranking loss.

    Hu et al. (NIPS 2014), section 4, where the margin is 1. A hinge at 0 has no gradient; one of
    NaN counts, so that NaN is not hidden.

    ``scores`` (n_pairs,) are those of lists whose first pair is right; a list without negatives has
    no loss. Returns the loss, dL/ds of every pair (n_pairs,), and which negatives count (n_pairs,),
    never set for a right pair.
    """
    counts = np.diff(targets.offsets)
    firsts = targets.offsets[:-1]
    s = scores.astype(np.float64)
    hinges = margin + s - np.repeat(s[firsts], counts)
    active = ~(hinges <= 0)
    active[firsts] = False
    # Every example is the mean of its triples.
    shares = np.repeat(targets.weights / np.maximum(counts - 1, 1), counts)
    V = np.where(active, shares, 0.0)
    loss = float(np.sum(np.where(active, shares * hinges, 0.0)))
    V[firsts] = -np.add.reduceat(V, firsts)
    return loss, V, active


def logistic_of_pairs(
    scores: np.ndarray, targets: PairTargets
) -> tuple[float, NDArray[np.float64]]:
    """Mean over pairs of log(1 + exp(-s)) for label 1 and log(1 + exp(s)) for label 0.

    Computed so that it cannot overflow. ``scores`` are (n_pairs,) float. Returns the loss and dL/ds
    of every pair, (n_pairs,) float64.
    """
    counts = np.diff(targets.offsets)
    shares = np.repeat(targets.weights / counts, counts)
    signs = np.where(targets.labels == 1, -1.0, 1.0)
    x = signs * scores.astype(np.float64)
    losses = np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))
    # The slope of log(1 + exp(x)), 1 / (1 + exp(-x)), without overflow.
    small = np.exp(-np.abs(x))
    slopes = np.where(x >= 0, 1.0, small) / (1 + small)
    return float(np.sum(shares * losses)), shares * signs * slopes


@dataclass(frozen=True)
class PairObjective:
    """The choice between the two losses: "hinge", which has the margin, or "logistic"."""

    name: str
    margin: float = 1.0

    def at(self, scores: np.ndarray, targets: PairTargets) -> tuple[float, np.ndarray, bytes]:
        """The loss, its gradient and its branches.

        The gradient is dL/ds of every pair, (n_pairs,) of the dtype of ``scores``. The branches say
        which hinges count; at another value the loss has a kink.
        """
        if self.name == HINGE:
            loss, V, active = hinge_of_lists(scores, targets, self.margin)
            return loss, V.astype(scores.dtype), active.tobytes()
        loss, V = logistic_of_pairs(scores, targets)
        return loss, V.astype(scores.dtype), b""
