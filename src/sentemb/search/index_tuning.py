"""The weights of an index fitted to held-out clicks, and the confidence of its scores."""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.data.seen_queries import in_log
from sentemb.errors import SentembError
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.index import Index
from sentemb.search.ranking.fitting import fit_weights_of
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.system.html_tables import Rows


class Band(NamedTuple):
    """Queries whose first titles have similar scores, from ``low`` to ``high``.

    ``confidence`` is their mean confidence, and ``hit`` the share of first titles that were
    clicked.
    """

    low: float
    high: float
    n_queries: int
    confidence: float
    hit: float


def tune(
    index: Index,
    clicks: ClickLog,
    log: ClickLog | None = None,
    *,
    seed: int = 0,
    on_progress: Callable[[int, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> HybridRanker:
    """Fit the ranker of an index to held-out clicks; the index then ranks with it.

    Parameters
    ----------
    index : Index
        Its titles are the catalogue.
    clicks : ClickLog
        Held-out clicks: the model has not learned from them.
    log : ClickLog, optional
        The clicks that the ranker reads, without the queries of ``clicks``. By default those that
        the ranker of the index has.
    seed : int
        As for `sentemb.fit_ranker`.
    on_progress : function, optional
        Called with the numbers of steps that are done and of all.
    on_note : function of a str, optional
        Called with each message about the fit.

    Raises
    ------
    SentembError
        If another thread changes the index meanwhile.
    """
    snapshot = index.snapshot
    known = snapshot.ranker.clicks if log is None else ClickedQueries.of(log)
    ranker = fit_weights_of(
        index.model,
        clicks,
        snapshot.titles,
        snapshot.ids,
        known.without_queries(in_log(known.queries, clicks.queries)),
        known,
        seed=seed,
        on_progress=on_progress,
        on_note=on_note,
    )
    tuned = index.ranked_by(ranker)
    index.adopt(tuned, snapshot)
    return tuned.ranker


def calibrate(index: Index, clicks: ClickLog) -> Confidence:
    """Fit the confidence of first titles to held-out clicks; the index then has it.

    The index has its final weights. A query for which nothing is found is left out. Raises
    `SentembError` if there are too few queries, if their first titles are all right or all wrong,
    if the index has no titles, or if another thread changes it meanwhile.
    """
    unchanging = copy(index)  # other threads may change the index meanwhile
    confidence = Confidence.fit(*first_titles(unchanging, clicks))
    snapshot = unchanging.snapshot
    index.adopt(snapshot.changed(confidence=confidence), snapshot)
    return confidence


def score_bands(index: Index, clicks: ClickLog, count: int = 6) -> list[Band]:
    """Confidence against outcome, for ``count`` groups of queries of equal size by score.

    Groups without queries are left out. ``clicks`` are held out. Raises `SentembError` if the index
    is not calibrated or has no titles.
    """
    if index.confidence is None:
        raise SentembError("the index is not calibrated; run `sentemb calibrate INDEX DEV`")
    scores, is_right = first_titles(index, clicks)
    confidences = index.confidence(scores)
    return Rows(
        Band(
            float(scores[band].min()),
            float(scores[band].max()),
            len(band),
            float(confidences[band].mean()),
            float(is_right[band].mean()),
        )
        for band in np.array_split(np.argsort(scores, kind="stable"), count)
        if len(band)
    )


def first_titles(index: Index, clicks: ClickLog) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The score of each query's first title, (n,) float64, and whether it was clicked, (n,) bool.

    Queries for which nothing is found are left out. Raises `SentembError` if the index has no
    titles.
    """
    if not len(index):
        raise SentembError("the index has no titles; add some")
    index = copy(index)  # of which no other thread removes titles
    ranked = index.ranked(clicks.queries, 1)
    offsets, clicked = clicks.titles_of_queries()
    is_right = [
        row >= 0
        and index.titles[row].strip() in {clicks.titles[t] for t in clicked[first:end].tolist()}
        for row, first, end in zip(
            ranked.titles[:, 0].tolist(), offsets[:-1], offsets[1:], strict=True
        )
    ]
    is_found = ranked.titles[:, 0] >= 0
    return ranked.scores[is_found, 0], np.array(is_right)[is_found]
