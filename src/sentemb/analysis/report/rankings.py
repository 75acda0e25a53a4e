"""What a page shows of a `Triage`: slices, a row per query, and the worst queries with titles."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sentemb.analysis.dev_rankings import CUTOFF, DEPTH
from sentemb.analysis.triage import RankedTitle, Triage
from sentemb.models.files.history import shown_figure

# Queries that a page lists.
MOST_ROWS = 2000


def collect_rankings(found: Triage, of_query: Sequence[Sequence[int]]) -> dict[str, Any]:
    """Everything that a page shows of rankings, as a dict that JSON can hold.

    Parameters
    ----------
    found : Triage
        Its worst queries are shown in detail.
    of_query : list of list of int
        For each of the worst queries, which of the page's pairs belong to it.

    Returns
    -------
    dict
        Titles are in ``titles``, each once; everywhere else they are places in this list.
    """
    places: dict[str, int] = {}

    def title(one: RankedTitle) -> int:
        return places.setdefault(one.title, len(places))

    def ranked(one: RankedTitle) -> list[Any]:
        row = [title(one), one.grade, one.rank, _rounded(one.score)]
        return row if one.cosine is None else [*row, _rounded(one.cosine)]

    kinds = np.zeros((len(found.queries), len(found.slices)), np.int64)
    for column, parts in enumerate(found.slices.values()):
        for number, part in enumerate(parts):
            kinds[part.queries, column] = number
    rows = []
    for q in found.order[:MOST_ROWS].tolist():
        first, best = found.first[q], found.best[q]
        assert best is not None  # queries in this order have one
        rows.append(
            [
                found.queries[q],
                round(float(found.values[q]), 4),
                int(found.n_words[q]),
                int(found.n_unknown[q]),
                None if found.clicks is None else int(found.clicks[q]),
                None if first is None else ranked(first),
                ranked(best),
                kinds[q].tolist(),
            ]
        )
    worst = [
        {
            "titles": [ranked(one) for one in query.titles],
            "best": ranked(query.best),
            "ranked": query.n_titles,
            "pairs": list(pairs),
        }
        for query, pairs in zip(found.worst, of_query, strict=True)
    ]
    return {
        "metric": shown_figure(found.metric),
        "kind": found.kind,
        "mean": round(found.mean, 4),
        "queries": len(found.queries),
        "evaluated": len(found.order),
        "catalogue": found.n_titles,
        "outside": found.n_outside,
        "depth": DEPTH,
        "first": _share(found, 1),
        "found": _share(found, CUTOFF),
        "slices": [
            [name, [[one.label, one.count, round(one.mean, 4), round(one.lost, 4)] for one in rows]]
            for name, rows in found.slices.items()
        ],
        "rows": rows,
        "worst": worst,
        "evidence": {
            str(places[text]): list(said) for text, said in found.evidence.items() if text in places
        },
        "has_log": found.seen is not None,
        "titles": list(places),
    }


def _share(found: Triage, rank: int) -> float:
    """The share of queries that have a best title among the first ``rank``."""
    best = [found.best[q] for q in found.order.tolist()]
    ranks = [one.rank for one in best if one is not None and one.rank is not None]
    return sum(own <= rank for own in ranks) / len(best)


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
