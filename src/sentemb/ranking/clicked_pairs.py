"""What a ranker keeps of a click log: the distinct pairs of a query and a clicked title."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.data.overlap import in_log


def clicked_pairs(log: ClickLog, without: Iterable[str] = ()) -> ClickLog:
    """The distinct pairs of a log: no counts, no skipped titles, no text that is in no pair.

    Parameters
    ----------
    log : ClickLog
        It is not changed.
    without : iterable of str
        Queries whose pairs are left out, in all spellings with the same words.

    Returns
    -------
    ClickLog
        Queries and titles in the order of the log; possibly without any pair.
    """
    kept = ~in_log(log.queries, without)[log.query_index]
    queries, query_index = np.unique(log.query_index[kept], return_inverse=True)
    titles, title_index = np.unique(log.title_index[kept], return_inverse=True)
    return log_of_pairs(
        [log.queries[q] for q in queries.tolist()],
        [log.titles[t] for t in titles.tolist()],
        query_index.astype(np.int32),
        title_index.astype(np.int32),
    )


def log_of_pairs(
    queries: list[str],
    titles: list[str],
    query_index: NDArray[np.int32],
    title_index: NDArray[np.int32],
) -> ClickLog:
    """A log with one click on each pair; the arguments are its attributes."""
    n = query_index.size
    nothing = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
    return ClickLog(queries, titles, query_index, title_index, np.ones(n, np.int64), *nothing, 0)
