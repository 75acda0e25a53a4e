"""The shortlist of a catalogue: made, and as broad as a measured recall asks for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from sentemb.search.ranking import engine
from sentemb.search.ranking.part import Asked
from sentemb.search.ranking.ranker import Catalogue, HybridRanker
from sentemb.search.ranking.shortlist import (
    LEAST_RECALL,
    MOST_PROBED,
    OF_QUERIES,
    OF_TITLES,
    RECALL_AT,
    Breadth,
    Shortlist,
)
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath

# With fewer titles a look at all of them takes no more time than anybody notices.
LEAST_TITLES = 30_000
# Queries that recall is measured with, and the fewest of a log that are taken for it: the titles
# themselves are, otherwise.
_QUERIES, _FEWEST = 256, 50
# The least breadth; clusters, or titles that are looked at again, grow by half until the recall is
# reached.
_LEAST = Breadth(8, 256)


def with_shortlist(
    catalogue: Catalogue,
    ranker: HybridRanker,
    workers: Workers,
    on_progress: Callable[[int, int], None] | None = None,
    scratch: AnyPath | None = None,
) -> Catalogue:
    """A catalogue with a shortlist by the recipe of its ranker.

    It has none with few titles, or where the recall is not reached before a search meets most rows.
    ``on_progress`` is called with the numbers of rows that are done and of all; ``scratch`` is as
    for `sentemb.retrieval.cluster_rows.ClusterRows.of`.
    """
    n_known = int(np.count_nonzero(~catalogue.is_empty))
    if n_known < LEAST_TITLES:
        return catalogue
    queries, measured_with = _drawn(ranker.clicks.queries), OF_QUERIES
    if len(queries) < _FEWEST:
        queries, measured_with = _drawn(catalogue.titles), OF_TITLES
    asked = ranker.asked(queries)
    made = Shortlist.of(catalogue.parts, ranker.recipe, workers, on_progress, scratch)
    exact = _best(catalogue, None, ranker, asked, workers)

    def measured(breadth: Breadth) -> Shortlist:
        shortlist = replace(made, breadth=breadth, measured_with=measured_with)
        near = _best(catalogue, shortlist, ranker, asked, workers)
        return replace(shortlist, recall=_recall(near, exact))

    shortlist = measured(_LEAST)
    while shortlist.breadth.probed <= MOST_PROBED * len(made.clusters.centres):
        if shortlist.recall >= LEAST_RECALL:
            return replace(catalogue, shortlist=shortlist)
        probed, retained = shortlist.breadth
        wider = measured(Breadth(probed + probed // 2, retained))
        deeper = measured(Breadth(probed, retained + retained // 2))
        shortlist = deeper if deeper.recall > wider.recall else wider
    return catalogue


def _drawn(texts: Sequence[str]) -> list[str]:
    # The sample must be the same whenever the texts are.
    rows = np.random.default_rng(0).permutation(len(texts))[:_QUERIES]
    return [texts[row] for row in rows.tolist()]


def _best(
    catalogue: Catalogue,
    shortlist: Shortlist | None,
    ranker: HybridRanker,
    asked: Asked,
    workers: Workers,
) -> engine.Ranked:
    titles = asked, RECALL_AT, catalogue.is_empty, workers, None, shortlist
    return engine.best(catalogue.parts, ranker.recipe, *titles)


def _recall(near: engine.Ranked, exact: engine.Ranked) -> float:
    """The share of the best titles that are found; others with the same score count as well."""
    is_there = exact.titles >= 0
    lowest = np.where(is_there, exact.scores, np.inf).min(axis=1, initial=np.inf)
    n_found = np.count_nonzero((near.titles >= 0) & (near.scores >= lowest[:, None]), axis=1)
    return float(np.minimum(n_found, is_there.sum(axis=1)).sum() / max(1, is_there.sum()))
