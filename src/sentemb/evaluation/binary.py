"""How well a ranker tells pairs with label 1 from pairs with label 0: accuracy and F1.

A pair is predicted to have label 1 if its score is above a threshold.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.errors import SentembError
from sentemb.models.contracts import Ranker
from sentemb.system.bounds import brief, is_number
from sentemb.system.html_tables import facts_table, html_table

# Half of a 95 % interval of the normal distribution, in standard deviations.
_Z = 1.959963984540054


@dataclass(frozen=True)
class BinaryCounts:
    """Predictions at a threshold, counted by whether they are right.

    threshold : pairs with a higher score are predicted to have label 1
    true_positives, false_positives : pairs predicted to have label 1 that have it, and that have
        label 0
    true_negatives, false_negatives : pairs predicted to have label 0 that have it, and that have
        label 1
    """

    threshold: float
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.n_right + self.false_positives + self.false_negatives

    @property
    def n_right(self) -> int:
        """Number of right predictions."""
        return self.true_positives + self.true_negatives

    @property
    def n_positive(self) -> int:
        """Number of pairs with label 1."""
        return self.true_positives + self.false_negatives

    @property
    def accuracy(self) -> float:
        """The share of right predictions."""
        return self.n_right / self.n_pairs

    @property
    def accuracy_interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy, by Wilson's score (JASA 22, 1927)."""
        n, share, z2 = self.n_pairs, self.accuracy, _Z * _Z
        centre = (share + z2 / (2 * n)) / (1 + z2 / n)
        half = _Z * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
        return max(0.0, centre - half), min(1.0, centre + half)

    @property
    def majority(self) -> float:
        """The accuracy of predicting the more frequent label for every pair."""
        return max(self.n_positive, self.n_pairs - self.n_positive) / self.n_pairs

    @property
    def precision(self) -> float:
        """The share of label 1 among the pairs predicted to have it; NaN if there are none."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """The share of the pairs with label 1 that are predicted to have it; NaN if none has it."""
        return _share(self.true_positives, self.n_positive)

    @property
    def f1(self) -> float:
        """F1 of label 1: 2 TP / (2 TP + FP + FN); NaN if no pair has label 1 or gets it."""
        twice = 2 * self.true_positives
        return _share(twice, twice + self.false_positives + self.false_negatives)

    def _repr_html_(self) -> str:
        low, high = self.accuracy_interval
        counted = [
            ("label 1", self.true_positives, self.false_negatives),
            ("label 0", self.false_positives, self.true_negatives),
        ]
        figures = {
            "accuracy": f"{self.accuracy:.3f} ({low:.3f} to {high:.3f})",
            "always the more frequent label": self.majority,
            "precision": self.precision,
            "recall": self.recall,
            "F1": self.f1,
            "threshold": f"{self.threshold:.4g}",
        }
        return html_table(counted, ["", "predicted 1", "predicted 0"]) + facts_table(figures)


def labelled_scores(ranker: Ranker, pairs: LabelledPairs) -> NDArray[np.float64]:
    """The ranker's score of each pair, its first text read as query: (n,)."""
    every = np.arange(len(pairs))
    return ranker.score_pairs(pairs.first, pairs.second, every, every)


def count_predictions(scores: ArrayLike, labels: ArrayLike, threshold: float) -> BinaryCounts:
    """Count right and wrong predictions; a score above the threshold predicts label 1.

    ``scores`` (n,) are finite, ``labels`` (n,) 0 or 1. Raises `SentembError` if there are no pairs,
    the lengths differ, a label is not 0 or 1, or a score or the threshold is not finite.
    """
    s, is_positive = _checked(scores, labels)
    predicted = s > _finite(threshold)
    return BinaryCounts(
        threshold=float(threshold),
        true_positives=int(np.count_nonzero(predicted & is_positive)),
        false_positives=int(np.count_nonzero(predicted & ~is_positive)),
        true_negatives=int(np.count_nonzero(~predicted & ~is_positive)),
        false_negatives=int(np.count_nonzero(~predicted & is_positive)),
    )


def best_threshold(scores: ArrayLike, labels: ArrayLike) -> float:
    """The threshold with the highest accuracy.

    Candidates are the middles between neighbouring scores, one that is below all scores, and the
    highest score, which nothing is above. Of equally accurate ones the lowest is taken.

    Parameters
    ----------
    scores, labels : (n,) float, (n,) int
        As in `count_predictions`.

    Returns
    -------
    float

    Examples
    --------
    >>> best_threshold([0.1, 0.4, 0.6, 0.9], [0, 0, 1, 1])
    0.5
    """
    s, is_positive = _checked(scores, labels)
    levels, level = np.unique(s, return_inverse=True)
    # Right answers gained, minus those lost, when the pairs of a score fall to label 0.
    gains = np.bincount(level, np.where(is_positive, -1, 1), levels.size)
    best = int(np.argmax(np.concatenate([[0], np.cumsum(gains)])))
    if best == 0:
        return float(np.nextafter(levels[0], -np.inf))
    low = levels[best - 1]
    if best == levels.size:
        return float(low)
    high = levels[best]
    # Halved first, so that the sum of two huge scores does not overflow.
    middle = low / 2 + high / 2
    return float(middle if low <= middle < high else low)


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Scores, and whether each label is 1."""
    s, given = np.asarray(scores, np.float64), np.asarray(labels)
    if s.ndim != 1 or s.shape != given.shape or not s.size:
        raise SentembError(
            f"scores of shape {s.shape} and labels of shape {given.shape}; give one of each for "
            "every pair, at least one"
        )
    if not np.isfinite(s).all():
        raise SentembError("a score is not finite; use another model")
    is_positive = given == 1
    if not (is_positive | (given == 0)).all():
        raise SentembError("a label is not 0 or 1; correct it")
    return s, is_positive


def _finite(threshold: float) -> float:
    if not (is_number(threshold) and math.isfinite(threshold)):
        raise SentembError(f"the threshold is {brief(threshold)}; give a finite number")
    return threshold


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
