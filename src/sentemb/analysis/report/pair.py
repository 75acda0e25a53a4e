"""A pair of texts that a page shows."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pair:
    """A query to show, optionally with a title and its place in a judged set.

    Attributes
    ----------
    query : str
    title : str or None
    grade : int or None
        The grade of the title in the judged set.
    rank : int or None
        The title's rank by the model's score among the ``titles`` judged for the query.
    titles : int or None
    """

    query: str
    title: str | None = None
    grade: int | None = None
    rank: int | None = None
    titles: int | None = None
