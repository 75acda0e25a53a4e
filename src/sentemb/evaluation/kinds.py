"""Held-out clicks by kind of query: typed often before, seldom, or never.

A ranking that is good for new queries may be poor for popular ones, which most clicks belong to. So
the kinds are measured apart, and their mean counts each by its share of the next clicks. Figures of
a kind count every held-out click the same: a title that got nine of ten clicks weighs nine times as
much as the other one.

The share of clicks on queries that nobody typed before is estimated from the log by Good and
Turing: the number of queries with one click, divided by the number of clicks (I. J. Good, "The
population frequencies of species and the estimation of population parameters", 1953).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog

# A query with this many clicks is typed often.
OFTEN = 10
NAMES = (f"clicked {OFTEN} times or more", f"clicked 1 to {OFTEN - 1} times", "never typed before")
# Ranks up to which the second figure counts.
_DEPTH = 10


class Figures(NamedTuple):
    """Of one ranking: the share of clicks on its first title, and the mean of 1 / rank."""

    hit: float
    mrr: float


class Kind(NamedTuple):
    """Queries of one kind.

    Attributes
    ----------
    name : str
        One of `NAMES`.
    n_queries : int
        Held-out queries.
    share : float or None
        The share of the clicks to come; None for a log without counts.
    is_circular : bool
        Whether the log has all their clicks, which are then not held out.
    figures : dict of str to Figures
        By the name of a ranking, "" for the one that is measured.
    """

    name: str
    n_queries: int
    share: float | None
    is_circular: bool
    figures: dict[str, Figures]

    def as_dict(self, measured: str) -> dict[str, Any]:
        """A JSON-serialisable dict, in which ``measured`` is the name of what is measured."""
        figures = {name or measured: each._asdict() for name, each in self.figures.items()}
        return {**self._asdict(), "figures": figures}


class WrittenQueries(NamedTuple):
    """How names and random letters fare.

    Attributes
    ----------
    n_names : tuple of int
        Names of one word and of two.
    first : tuple of float
        The share of them whose title is first.
    nothing : float
        The share of all names for which nothing is found.
    letters : float or None
        The share of random letters for which nothing is found; None without a floor.
    """

    n_names: tuple[int, int]
    first: tuple[float, float]
    nothing: float
    letters: float | None

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return self._asdict()


def by_kind(
    clicks: ClickLog,
    ranks: Mapping[str, NDArray[np.int64]],
    known: NDArray[np.int64],
    shares: tuple[float, ...] | None,
    is_circular: bool,
) -> list[Kind]:
    """The kinds that held-out clicks have.

    ``ranks`` are those of `Evaluation`, by the name of the ranking; ``known`` (n_queries,) are the
    clicks that the log has for each query, ``shares`` those of `NAMES` among the clicks to come,
    and ``is_circular`` says whether the log has all held-out clicks of the queries that it knows.
    """
    order = np.argsort(clicks.query_index, kind="stable")
    query_of, counts = clicks.query_index[order], clicks.clicks[order]
    is_of = (known >= OFTEN, (known > 0) & (known < OFTEN), known == 0)
    kinds = []
    for number, (name, is_kind) in enumerate(zip(NAMES, is_of, strict=True)):
        pairs = is_kind[query_of]
        if pairs.any():
            figures = {
                each: _figures(of_ranking[pairs], counts[pairs])
                for each, of_ranking in ranks.items()
            }
            share = None if shares is None else shares[number]
            circular = is_circular and number < 2
            kinds.append(Kind(name, int(is_kind.sum()), share, circular, figures))
    return kinds


def mean_of(kinds: list[Kind]) -> dict[str, Figures] | None:
    """The figures of each ranking by share of clicks; None unless all kinds are measured."""
    if len(kinds) < len(NAMES) or any(kind.share is None for kind in kinds):
        return None
    shares = [kind.share or 0.0 for kind in kinds]
    return {
        name: Figures(
            *(
                float(np.average([kind.figures[name][column] for kind in kinds], weights=shares))
                for column in range(2)
            )
        )
        for name in kinds[0].figures
    }


def next_clicks(counts: NDArray[np.int64]) -> tuple[float, ...] | None:
    """The shares of `NAMES` among the clicks to come, from the clicks of each query of a log.

    None for a log without counts: its lines are judgements, and say nothing of how often a query is
    typed.
    """
    total = int(counts.sum())
    if not counts.size or counts.max() < OFTEN:
        return None
    never = float((counts == 1).sum()) / total
    often = (1 - never) * float(counts[counts >= OFTEN].sum()) / total
    return often, 1 - never - often, never


def _figures(ranks: NDArray[np.int64], counts: NDArray[np.int64]) -> Figures:
    weights = counts / counts.sum()
    is_near = (ranks > 0) & (ranks <= _DEPTH)
    reciprocal = np.where(is_near, 1 / np.maximum(ranks, 1), 0.0)
    return Figures(float(weights[ranks == 1].sum()), float(weights @ reciprocal))
