"""Which queries a log holds in any spelling, and which held-out clicks are of such queries."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.text.words import query_key

# With fewer queries than this that the log lacks, held-out queries are not told apart.
LEAST_NEVER = 50


def in_log(queries: Sequence[str], log_queries: Iterable[str]) -> NDArray[np.bool_]:
    """Whether each query has the `query_key` of some query of a log.

    Examples
    --------
    >>> in_log(["Hotel rome?", "hotel paris"], ["rome hotel"])
    array([ True, False])
    """
    keys = [query_key(query) for query in queries]
    distinct = set(keys)
    known = {key for key in map(query_key, log_queries) if key in distinct}
    return np.array([key in known for key in keys], bool)


def never_typed_and_typed(
    held_out: ClickLog, log_queries: Iterable[str]
) -> tuple[ClickLog, ClickLog | None]:
    """Held-out clicks of queries that a log lacks, and of those that it has.

    The first are all held-out clicks if fewer than `LEAST_NEVER` of their queries are not in the
    log. The second are None if there are none.
    """
    is_known = in_log(held_out.queries, log_queries)
    typed = held_out.part(is_known) if is_known.any() else None
    if typed is None or np.count_nonzero(~is_known) < LEAST_NEVER:
        return held_out, typed
    return held_out.part(~is_known), typed
