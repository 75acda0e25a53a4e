"""The weights of an index fitted to held-out clicks, and the confidence of its scores."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import read_examinations
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.data.seen_queries import never_typed_and_typed
from sentemb.errors import SentembError
from sentemb.models.text_encoder import TextEncoder
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.index import Index
from sentemb.search.ranking.direct_fit import with_examinations
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.fitting import fit_weights_of
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import CLICKS
from sentemb.search.recorded_outcomes import LookedAt, has_clicks_of
from sentemb.system.html_tables import ShownRows
from sentemb.system.paths import AnyPath

# What queries of a kind are called, by whether the log has clicks for them.
KINDS = {False: "that nobody typed before", True: "that the log has clicks for"}


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
    record: Sequence[AnyPath] = (),
    *,
    embedding: AnyPath | TextEncoder | None = None,
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
    record : sequence of path
        Records of searches, as for `sentemb.fit_ranker`. By default the examinations that the
        ranker of the index has.
    embedding : str, path or object, optional
        As for `sentemb.fit_ranker`. By default that of the ranker of the index, if it has one.
    seed : int
        As for `sentemb.fit_ranker`.
    on_progress : function, optional
        Called with the numbers of steps that are done and of all.
    on_note : function of a str, optional
        Called with each message about the fit.

    Raises
    ------
    SentembError
        If another thread changes the index meanwhile, or an embedding cannot be opened.
    """
    snapshot = index.snapshot
    given = snapshot.ranker.embedding if embedding is None else Embedding.of(embedding)
    snapshot.remember_embedding(given)
    served = snapshot.ranker.clicks
    examinations = read_examinations(record) if record else served.examinations
    known = replace(served if log is None else ClickedQueries.of(log), examinations=examinations)
    right, typed = never_typed_and_typed(clicks, known.queries)
    ranker = fit_weights_of(
        index.model,
        right,
        snapshot.titles,
        snapshot.ids,
        known,
        known,
        typed,
        embedding=given,
        seed=seed,
        on_progress=on_progress,
        on_note=on_note,
    )
    tuned = index.ranked_by(ranker)
    index.adopt(tuned, snapshot)
    return tuned.ranker


def serve_clicks(index: Index, clicks: ClickedQueries) -> None:
    """Let an index read other clicks, with the weights, statistics and confidence that it has.

    If these bring the first examinations, clicks get another weight, and the confidence, which was
    fitted to other scores, is gone. Raises `SentembError` if another thread changes the index
    meanwhile.
    """
    snapshot = index.snapshot
    recipe = snapshot.ranker.recipe
    if not recipe.needs_clicks:
        return
    ranker = snapshot.ranker.serving(clicks)
    if clicks.examinations.times.size and recipe.weight(CLICKS):
        ranker = ranker.weighted(with_examinations(recipe).weights)
        ranker.floor = snapshot.ranker.floor  # it does not read the sum
    served = index.ranked_by(ranker)
    confidence = snapshot.confidence if ranker.recipe == recipe else None
    index.adopt(served.changed(confidence=confidence), snapshot)


def calibrate(
    index: Index,
    held_out: ClickLog | Sequence[RecordedSearch],
    on_note: Callable[[str], None] | None = None,
) -> Confidence:
    """Fit the confidence of first titles to what was held out; the index then has it.

    The index has its final weights. Of held-out clicks the confidence is the share of queries whose
    first title was clicked; of recorded searches that of searches, those without a click included,
    as far as they showed the title. Queries that the log has clicks for have a fit of their own; if
    all their clicks are in the log, they are not held out, and left out. So is a query for which
    nothing is found. ``on_note`` is called with each message about the fit. Raises `SentembError`
    if there are too few queries of every kind, if their first titles are all right or all wrong, if
    the log has all clicks of recorded searches, if the index has no titles, or if another thread
    changes it meanwhile.
    """
    note = on_note or _ignore
    unchanging = copy(index)  # other threads may change the index meanwhile
    snapshot = unchanging.snapshot
    fits: dict[bool, Confidence] = {}
    problem = SentembError("the log has all clicks of these queries, so they are not held out")
    for is_typed, outcomes in _kinds(unchanging, held_out, note).items():
        try:
            fits[is_typed] = Confidence.fit(*outcomes)
        except SentembError as error:
            problem = error
        else:
            if not fits[is_typed].is_better:
                note(f"for queries {KINDS[is_typed]} no confidence is shown: a constant is as good")
    if not fits:
        raise problem
    confidence = replace(fits.get(False, Confidence.unknown()), typed=fits.get(True))
    index.adopt(snapshot.changed(confidence=confidence), snapshot)
    return confidence


class _Outcomes(NamedTuple):
    """First titles: their scores, the shares of searches with a click on them, and how many."""

    scores: NDArray[np.float64]
    shares: NDArray[np.float64]
    searches: NDArray[np.float64]


def _kinds(
    index: Index, held_out: ClickLog | Sequence[RecordedSearch], note: Callable[[str], None]
) -> dict[bool, _Outcomes]:
    """Outcomes of queries that the log has clicks for (True), and of others (False)."""
    if not isinstance(held_out, ClickLog):
        return _recorded_kinds(index, held_out, note)
    kinds = {}
    for is_typed, of_kind in _clicked_kinds(index, held_out, note).items():
        scores, is_right = first_titles(index, of_kind)
        kinds[is_typed] = _Outcomes(scores, is_right.astype(np.float64), np.ones(scores.size))
    return kinds


def _recorded_kinds(
    index: Index, searches: Sequence[RecordedSearch], note: Callable[[str], None]
) -> dict[bool, _Outcomes]:
    if has_clicks_of(index, searches):
        raise SentembError(
            "the index has all clicks of these searches, so they are not held out; give a record, "
            "or --since, of searches after it was made"
        )
    firsts = LookedAt.of(index, searches)
    if count := int((firsts.searches - firsts.shown).sum()):
        note(
            f"{count:,} of {len(searches):,} searches are left out: they did not show the title "
            "that the index puts first now"
        )
    kinds = {}
    for is_typed in (False, True):
        of_kind = firsts.part((firsts.is_typed == is_typed) & (firsts.shown > 0))
        if of_kind.queries:
            kinds[is_typed] = _Outcomes(of_kind.scores, of_kind.shares, of_kind.looked)
    return kinds


def _clicked_kinds(
    index: Index, clicks: ClickLog, note: Callable[[str], None]
) -> dict[bool, ClickLog]:
    is_clicked = index.snapshot.are_clicked(index.ranker.asked(clicks.queries))
    kinds = {False: clicks.part(~is_clicked)} if not is_clicked.all() else {}
    if is_clicked.any():
        typed = index.ranker.clicks.single_clicks(clicks.part(is_clicked))
        if typed is None:
            note(
                f"{int(is_clicked.sum()):,} queries are left out: the log has all their clicks, so "
                "they are not held out"
            )
        else:
            kinds[True] = typed
    return kinds


def score_bands(
    index: Index, held_out: ClickLog | Sequence[RecordedSearch], count: int = 6
) -> dict[bool, list[Band]]:
    """Confidence against outcome, for ``count`` groups of queries of equal size by score.

    They are given for queries that the log has clicks for (True) and for others (False), as far as
    the index is calibrated for them. Groups without queries are left out. ``held_out`` is as for
    `calibrate`. Raises `SentembError` if the index is not calibrated or has no titles.
    """
    confidence = index.confidence
    if confidence is None:
        raise SentembError("the index is not calibrated; run `sentemb calibrate INDEX DEV`")
    of_kinds = {False: confidence, True: confidence.typed}
    return {
        is_typed: _bands(fitted, outcomes, count)
        for is_typed, outcomes in _kinds(index, held_out, _ignore).items()
        if (fitted := of_kinds[is_typed]) is not None and fitted.n_queries
    }


def _bands(fitted: Confidence, outcomes: _Outcomes, count: int) -> list[Band]:
    scores, shares, searches = outcomes
    confidences = fitted(scores)
    return ShownRows(
        Band(
            float(scores[band].min()),
            float(scores[band].max()),
            len(band),
            float(np.average(confidences[band], weights=searches[band])),
            float(np.average(shares[band], weights=searches[band])),
        )
        for band in np.array_split(np.argsort(scores, kind="stable"), count)
        if len(band)
    )


def _ignore(message: str) -> None:
    pass


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
