"""Which words the cells of a model collect, and whether each topic has cells of its own.

After section V-A and Table III of Palangi et al. (arXiv 1502.06922). For each query, take the 5
cells that are most active when it has been read. Each of them extracts the words at which its
output changes by more than the threshold of `sentemb.analysis.keywords`. Over a file of queries,
every cell collects a list of words.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sentemb.analysis.gates import most_active
from sentemb.analysis.keywords import step_changes
from sentemb.models.sentence_encoder import SentenceEncoder

# The paper's.
MOST_ACTIVE = 5


@dataclass(frozen=True)
class QueryCells:
    """Words that the most active cells extract from one query.

    ``extracted`` maps each cell, most active first, to the positions of its words. Cells are
    counted from 0, as the columns of `GateTrace`; in a bidirectional model the second half reads
    from right to left.
    """

    words: list[str]
    extracted: dict[int, list[int]]


@dataclass(frozen=True)
class CollectedWord:
    """A word that a cell collected.

    ``times`` is the number of queries in which the cell extracted it. ``share`` is ``times``
    divided by the sum over all cells: 1 is a word that only this cell extracts.
    """

    word: str
    times: int
    share: float


def query_cells(model: SentenceEncoder, query: str, threshold: float | None = None) -> QueryCells:
    """The words that the 5 most active cells of a recurrent model extract from ``query``.

    A change must exceed ``threshold`` instead of the query's mean change. Raises `SentembError` for
    a query without words, or a threshold that is negative or NaN.
    """
    steps = step_changes(model, query)
    thresholds = steps.thresholds(threshold)
    declared = (steps.changes > thresholds[:, None, None]) & steps.compared[:, :, None]
    declared = np.hstack(list(declared))  # (T, dim)
    return QueryCells(
        words=steps.words,
        extracted={
            int(cell): np.flatnonzero(declared[:, cell]).tolist()
            for cell in most_active(steps.final.ravel(), MOST_ACTIVE)
        },
    )


def collect_words(queries: Iterable[QueryCells]) -> dict[int, list[CollectedWord]]:
    """The words of each cell over many queries, for every cell that extracted a word, by number.

    Words are ranked by times x share, which puts neither words that every cell extracts nor words
    that occur once first.
    """
    times: dict[int, Counter[str]] = {}
    for query in queries:
        for cell, positions in query.extracted.items():
            # Once per query: a word that occurs twice in it counts once.
            times.setdefault(cell, Counter()).update(
                {query.words[position] for position in positions}
            )
    of_all_cells: Counter[str] = Counter()
    for counts in times.values():
        of_all_cells.update(counts)
    collected = {}
    for cell in sorted(times):
        words = [
            CollectedWord(word, count, count / of_all_cells[word])
            for word, count in times[cell].items()
        ]
        if words:
            words.sort(key=lambda entry: (-entry.times * entry.share, entry.word))
            collected[cell] = words
    return collected


def topics(
    model: SentenceEncoder, queries: Iterable[str], threshold: float | None = None
) -> dict[int, list[CollectedWord]]:
    """The words that each cell of a model extracts from queries.

    Parameters
    ----------
    model : SentenceEncoder
        A recurrent model.
    queries : iterable of str
        Each with at least one word.
    threshold : float, optional
        Smallest change of a cell that counts. By default the mean change of all cells in the query.

    Returns
    -------
    dict of int to list of CollectedWord
        See `collect_words`.
    """
    return collect_words(query_cells(model, query, threshold) for query in queries)


def cells_by_topics(
    queries: Sequence[QueryCells], topics: Sequence[str], dim: int
) -> tuple[list[str], np.ndarray]:
    """How many words each cell extracted from queries of each topic.

    ``topics`` has the topic of each query, and ``dim`` is the number of cells. Returns the topics
    in alphabetical order and the counts (dim, n_topics) int.
    """
    names = sorted(set(topics))
    column_of = {name: column for column, name in enumerate(names)}
    counts = np.zeros((dim, len(names)), np.int64)
    for query, topic in zip(queries, topics, strict=True):
        for cell, positions in query.extracted.items():
            counts[cell, column_of[topic]] += len(positions)
    return names, counts
