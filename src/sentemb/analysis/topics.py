"""Which words the cells of a model collect, and whether they divide topics among themselves.

After section V-A and Table III of Palangi et al. (arXiv 1502.06922): of each query take the 5 cells
that are most active when it has been read and note the words that each of them extracts, a word at
which its output changes by more than the threshold of `sentemb.analysis.keywords`. Over a whole
file of queries every cell so collects a list of words.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from sentemb.analysis.keywords import most_active, step_changes

# The paper's.
MOST_ACTIVE = 5


@dataclass(frozen=True)
class QueryCells:
    """What the most active cells extract from one query.

    Attributes
    ----------
    words : list of str
    extracted : dict of int to list of int
        Cell, most active first, to the places of its words. Cells are counted from 0 as columns of
        `GateTrace`; of a two-way model the second half reads from right to left.
    """

    words: list
    extracted: dict


@dataclass(frozen=True)
class CollectedWord:
    """A word that a cell collected.

    ``times`` counts the queries in which the cell extracted it, ``share`` is that of all the times
    that any cell did, from 0 to 1: 1 is a word of this cell alone.
    """

    word: str
    times: int
    share: float


def query_cells(model, query, threshold=None):
    """The words that the 5 most active cells extract from ``query``.

    Parameters
    ----------
    model : SentenceEncoder
    query : str
    threshold : float, optional
        The least change that counts, instead of the query's mean change.

    Returns
    -------
    QueryCells

    Raises
    ------
    SentembError
        For a query without words, a threshold that is negative or no number.
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


def collect_words(queries):
    """The words of each cell over many queries.

    Parameters
    ----------
    queries : iterable of QueryCells

    Returns
    -------
    dict of int to list of CollectedWord
        For every cell that extracted a word, by number. Words are ranked by times x share, so that
        neither a word that every cell extracts leads nor one that was met once.
    """
    times = {}
    for query in queries:
        for cell, places in query.extracted.items():
            # Once a query: a word that stands there twice is not twice as much the cell's.
            times.setdefault(cell, Counter()).update({query.words[place] for place in places})
    of_all_cells = Counter()
    for counts in times.values():
        of_all_cells.update(counts)
    collected = {}
    for cell in sorted(times):
        words = [
            CollectedWord(word, count, count / of_all_cells[word])
            for word, count in times[cell].items()
        ]
        if words:
            words.sort(key=lambda found: (-found.times * found.share, found.word))
            collected[cell] = words
    return collected


def cells_by_topics(queries, topics, dim):
    """How many words each cell extracted from queries of each topic.

    Parameters
    ----------
    queries : list of QueryCells
    topics : list of str
        The topic of each query.
    dim : int
        How many cells there are.

    Returns
    -------
    names : list of str
        The topics in alphabetical order.
    counts : (dim, n_topics) int
    """
    names = sorted(set(topics))
    column_of = {name: column for column, name in enumerate(names)}
    counts = np.zeros((dim, len(names)), np.int64)
    for query, topic in zip(queries, topics, strict=True):
        for cell, places in query.extracted.items():
            counts[cell, column_of[topic]] += len(places)
    return names, counts
