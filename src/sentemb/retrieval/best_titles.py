"""Ranking titles by scores."""

from sentemb.errors import SentembError
from sentemb.system.bounds import is_integer


def how_many(top_k: int | None, n_titles: int) -> int:
    """The number of titles that ``top_k`` asks for out of ``n_titles``; None asks for all.

    Raises `SentembError` if ``top_k`` is not an integer from 1.
    """
    if top_k is None:
        return n_titles
    if not is_integer(top_k) or top_k < 1:
        raise SentembError(f"top_k must be an integer of at least 1, not {top_k!r}")
    return min(top_k, n_titles)
