"""Which queries a log holds in any spelling."""

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.text.words import query_key


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
