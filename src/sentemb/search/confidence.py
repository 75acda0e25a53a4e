"""Confidence: how often the first title of a query is a clicked one, given its score.

A logistic function of the score, fitted to held-out clicks by maximum likelihood:

    p(s) = 1 / (1 + exp(-(a + b s)))

Queries that the log has clicks for and those that nobody typed before are right so unequally often
that each kind has a function of its own. A search shows it only if it is better than a constant for
queries that its fit had not seen. benchmarks/ranking.py compares it with isotonic regression.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentemb.errors import SentembError
from sentemb.system.bounds import is_finite, is_integer
from sentemb.system.html_tables import facts_table, html_table

# Weight of a normal prior on the slope of standardised scores: it keeps the slope finite where a
# threshold separates right from wrong.
_PRIOR = 0.01
_STEPS = 200
_LEAST_QUERIES = 20
# Parts that are left out in turn to measure a fit.
_PARTS = 10
# Confidences whose scores a notebook shows.
_SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)
# exp of more than this has no meaning for a share.
_FAR = 700.0


@dataclass(frozen=True)
class Confidence:
    """A fitted function from the score of a first title to its confidence.

    intercept, slope : a and b; the slope is not negative
    n_queries : held-out queries that it was fitted to
    brier : mean squared difference between confidence and outcome (1 for a clicked title, else 0),
        for queries that the fit had not seen
    base_brier : the same of a confidence which is equal for every query
    typed : the function for queries that the log has clicks for; None if they are not told apart,
        or if it is not known
    """

    intercept: float
    slope: float
    n_queries: int
    brier: float
    base_brier: float
    typed: Self | None = None

    @property
    def is_better(self) -> bool:
        """Whether it says more than a constant."""
        return self.brier < self.base_brier

    def of(
        self, scores: NDArray[np.float64], is_typed: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """The confidence of first titles, NaN where it is not known, and whether it is shown, (n,).

        ``is_typed`` (n,) are the queries that the log has clicks for.
        """
        values, is_shown = np.full(scores.size, np.nan), np.zeros(scores.size, np.bool_)
        for kind, fitted in ((False, self), (True, self.typed)):
            of_kind = is_typed == kind
            if fitted is not None and fitted.n_queries:
                values[of_kind], is_shown[of_kind] = fitted(scores[of_kind]), fitted.is_better
        return values, is_shown

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        fields = {name: value for name, value in vars(self).items() if name != "typed"}
        return fields if self.typed is None else {**fields, "typed": self.typed.as_dict()}

    def _repr_html_(self) -> str:
        facts = {
            "fitted to queries": self.n_queries,
            "Brier score": self.brier,
            "Brier score of a constant confidence": self.base_brier,
        }
        if not self.slope:
            return facts_table({"confidence": float(self(0.0)), **facts})
        p = np.array(_SHARES)
        scores = (np.log(p / (1 - p)) - self.intercept) / self.slope
        rows = [("score", *scores.tolist())]
        return html_table(rows, ["confidence", *(f"{share:.0%}" for share in p)]) + facts_table(
            facts
        )

    @classmethod
    def fit(cls, scores: ArrayLike, is_right: ArrayLike, searches: ArrayLike | None = None) -> Self:
        """Fit the function.

        ``scores`` are those of each query's first title, (n_queries,) float, and ``is_right`` says
        whether that title was clicked, (n_queries,) bool. Where a query was searched several times,
        it is the share of the ``searches``, (n_queries,), with a click on the title. Raises
        `SentembError` for fewer than 20 queries, or if all titles or none are right.
        """
        s, y = np.asarray(scores, np.float64), np.asarray(is_right, np.float64)
        n = np.ones(s.size) if searches is None else np.asarray(searches, np.float64)
        if s.size < _LEAST_QUERIES:
            raise SentembError(
                f"a title was found for {s.size} held-out queries; give at least {_LEAST_QUERIES}"
            )
        if y.min() == y.max():
            which = "every" if y[0] else "no"
            raise SentembError(
                f"the first title is a clicked one for {which} held-out query; give more queries"
            )
        left_out = np.empty(s.size)
        for part in range(_PARTS):
            in_part = np.arange(s.size) % _PARTS == part
            of_others = _fit(s[~in_part], y[~in_part], n[~in_part])
            left_out[in_part] = _logistic(*of_others, s[in_part])
        # The outcomes of several searches for one query differ among themselves too.
        brier, base_brier = (
            float(_mean((p - y) ** 2 + y * (1 - y), n)) for p in (left_out, _mean(y, n))
        )
        # Linear algebra rounds differently on other processors: the digits that it leaves alone.
        intercept, slope, brier, base_brier = (
            float(f"{value:.7g}") for value in (*_fit(s, y, n), brier, base_brier)
        )
        return cls(intercept, slope, s.size, brier, base_brier)

    def __call__(self, scores: ArrayLike) -> NDArray[np.float64]:
        """The confidence of scores, from 0 to 1."""
        return _logistic(self.intercept, self.slope, np.asarray(scores, np.float64))

    @classmethod
    def of_json(cls, value: object) -> Self | None:
        """The confidence that `as_dict` wrote; None for anything else."""
        if not isinstance(value, dict):
            return None
        fields = {name: each for name, each in value.items() if name != "typed"}
        if fields.keys() != cls.__dataclass_fields__.keys() - {"typed"}:
            return None
        numbers = (fields[name] for name in ("intercept", "slope", "brier", "base_brier"))
        if (
            not all(map(is_finite, numbers))
            or not is_integer(fields["n_queries"])
            or fields["slope"] < 0
        ):
            return None
        typed = cls.of_json(value["typed"]) if "typed" in value else None
        is_right = "typed" not in value or (typed is not None and typed.typed is None)
        return cls(**fields, typed=typed) if is_right else None

    @classmethod
    def unknown(cls) -> Self:
        """The function of a kind of queries of which none were held out."""
        return cls(0.0, 0.0, 0, 0.0, 0.0)


def _mean(values: NDArray[np.float64], n: NDArray[np.float64]) -> np.float64:
    """The mean of values that count ``n`` times."""
    return np.float64((n * values).mean() / n.mean())


def _fit(
    s: NDArray[np.float64], y: NDArray[np.float64], n: NDArray[np.float64]
) -> tuple[float, float]:
    """Intercept and slope by Newton's method."""
    # As if there were one more query of which one half is right: the mean is never 0 or 1.
    share = ((n * y).sum() + 0.5) / (n.sum() + 1)
    constant = float(np.log(share / (1 - share)))
    mean, deviation = float(s.mean()), float(s.std())
    if deviation == 0:
        return constant, 0.0
    x = np.stack([np.ones_like(s), (s - mean) / deviation], axis=1)
    prior = np.diag([0.0, _PRIOR])
    w = np.array([constant, 0.0])
    for _ in range(_STEPS):
        p = _logistic(w[0], w[1], x[:, 1])
        gradient = x.T @ (n * (p - y)) + prior @ w
        curvature = (x.T * (n * p * (1 - p))) @ x + prior
        step = np.linalg.lstsq(curvature, gradient)[0]
        # Where the likelihood is nearly flat a whole step overshoots.
        w -= step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-10:
            break
    if w[1] <= 0:
        # Higher scores are not right more often: only the share of right ones is known.
        return constant, 0.0
    slope = float(w[1]) / deviation
    return float(w[0]) - slope * mean, slope


def _logistic(a: float, b: float, s: NDArray[np.float64]) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(a + b * s, -_FAR, _FAR)))
    return shares
