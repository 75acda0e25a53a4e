"""A `Triage` on its page: slices, a row per query, and the worst queries with titles."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sentemb.analysis.dev_rankings import CUTOFF, DEPTH
from sentemb.analysis.triage import RankedTitle, Triage
from sentemb.models.files.history import shown_figure

# Queries that a page lists.
MOST_ROWS = 2000


def collect_rankings(triage: Triage, of_query: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The rankings of a page, as a JSON-serialisable dict.

    The worst queries of the triage are shown in detail; ``of_query`` says for each of them which of
    the page's pairs belong to it. Titles are in ``titles``, each once; everywhere else they are
    indices into it.
    """
    index_of: dict[str, int] = {}

    def title(ranked_title: RankedTitle) -> int:
        return index_of.setdefault(ranked_title.title, len(index_of))

    def ranked(ranked_title: RankedTitle) -> list[Any]:
        row = [
            title(ranked_title),
            ranked_title.grade,
            ranked_title.rank,
            _rounded(ranked_title.score),
        ]
        return row if ranked_title.cosine is None else [*row, _rounded(ranked_title.cosine)]

    kinds = np.zeros((len(triage.queries), len(triage.slices)), np.int64)
    for column, parts in enumerate(triage.slices.values()):
        for number, part in enumerate(parts):
            kinds[part.queries, column] = number
    rows = []
    for q in triage.order[:MOST_ROWS].tolist():
        first, best = triage.first[q], triage.best[q]
        assert best is not None  # queries in this order have one
        rows.append(
            [
                triage.queries[q],
                round(float(triage.values[q]), 4),
                int(triage.n_words[q]),
                int(triage.n_unknown[q]),
                None if triage.clicks is None else int(triage.clicks[q]),
                None if first is None else ranked(first),
                ranked(best),
                kinds[q].tolist(),
            ]
        )
    worst = [
        {
            "titles": [ranked(ranked_title) for ranked_title in query.titles],
            "best": ranked(query.best),
            "ranked": query.n_titles,
            "pairs": list(pairs),
        }
        for query, pairs in zip(triage.worst, of_query, strict=True)
    ]
    return {
        "metric": shown_figure(triage.metric),
        "kind": triage.kind,
        "mean": round(triage.mean, 4),
        "queries": len(triage.queries),
        "evaluated": len(triage.order),
        "catalogue": triage.n_titles,
        "depth": DEPTH,
        "first": _share(triage, 1),
        "found": _share(triage, CUTOFF),
        "slices": [
            [
                name,
                [
                    [part.label, part.count, round(part.mean, 4), round(part.lost, 4)]
                    for part in rows
                ],
            ]
            for name, rows in triage.slices.items()
        ],
        "rows": rows,
        "worst": worst,
        "evidence": {
            str(index_of[text]): list(evidence)
            for text, evidence in triage.evidence.items()
            if text in index_of
        },
        "titles": list(index_of),
    }


def _share(triage: Triage, rank: int) -> float:
    """The share of queries that have a best title among the first ``rank``."""
    best = [triage.best[q] for q in triage.order.tolist()]
    ranks = [title.rank for title in best if title is not None and title.rank is not None]
    return sum(r <= rank for r in ranks) / len(best)


def _rounded(score: float | None) -> float | None:
    return None if score is None else round(score, 4)
