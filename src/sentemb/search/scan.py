"""The best titles of a catalogue that is embedded while it is searched, portion by portion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.nearest import nearest
from sentemb.system.parallel import Workers

# Titles whose vectors are in memory at a time, unless more are asked for.
_PORTION = 1 << 15


def best_titles(
    encoder: SentenceEncoder,
    queries: np.ndarray,
    ids: Sequence[str],
    titles: Sequence[str],
    k: int,
    workers: Workers,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[list[tuple[float, str, int]]]:
    """The titles with the highest cosines, without keeping the vectors of all.

    ``queries`` come from `SentenceEncoder.unit_vectors`, (m, dim) float: nothing is found for a
    query with no known words. `sentemb.search.title_files.read_titles` reads ``ids`` and ``titles``
    of any number. ``on_progress`` is called with the numbers of titles that are done and of all.

    The result has for each query a list of (score, id, row) of the ``k`` best titles with known
    words, best first, equal scores by falling id, as trec_eval has them. Scores are those of
    `sentemb.retrieval.nearest.nearest` over all titles, to the bit.
    """
    best: list[list[tuple[float, str, int]]] = [[] for _ in queries]
    size = max(_PORTION, 2 * k)
    for first in range(0, len(titles), size):
        portion_ids = ids[first : first + size]
        falling = sorted(range(len(portion_ids)), key=portion_ids.__getitem__, reverse=True)
        vectors = encoder.unit_vectors(titles[first : first + size], "document")[falling]
        numbers, scores = nearest(queries, vectors, k, np.asarray(vectors.any(axis=1)), workers)
        numbers[~queries.any(axis=1)] = -1
        for of_query, found_numbers, found_scores in zip(
            best, numbers.tolist(), scores.tolist(), strict=True
        ):
            if len(of_query) == k and (not k or found_scores[0] < of_query[-1][0]):
                continue
            of_query += [
                (score, portion_ids[falling[number]], first + falling[number])
                for number, score in zip(found_numbers, found_scores, strict=True)
                if number >= 0
            ]
            of_query.sort(reverse=True)
            del of_query[k:]
        if on_progress is not None:
            on_progress(first + len(portion_ids), len(titles))
    return best
