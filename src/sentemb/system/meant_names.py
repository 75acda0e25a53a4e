"""The names that other programs have for options and parameters, answered with ours."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Collection
from typing import ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")

# Our name, and names of others: search engines, vector stores, scikit-learn.
_NAMES = {
    "k": "limit n top size num count rows topk top_n topn per_page page_size max_results results "
    "num_results n_results hits_per_page n_neighbors first",
    "offset": "skip from start page cursor from_",
    "where": "filter filters fq filter_by filter_query condition facet_filters",
    "sort": "order sort_by order_by sortby orderby",
    "facets": "facet facet_by aggs aggregations",
    "q": "query text search term terms keyword keywords",
    "queries": "query q text texts",
    "min_score": "threshold score_threshold cutoff min_similarity",
    "all": "everything",
    "everything": "all",
    "only": "ids",
    "like": "similar more_like_this mlt",
    "output": "out output_dir dest destination save_dir",
    "learning_rate": "lr",
    "batch_size": "batch bs",
    "threads": "jobs n_jobs workers num_workers num_threads",
    "compare_with": "baseline baselines against",
}
# Ours is called by one of these names, whichever is there.
_ALSO = {"k": ("k", "top_k"), "offset": ("offset", "k", "top_k")}
_UNEXPECTED = re.compile(r"got an unexpected keyword argument '(\w+)'")


def meant(name: str, known: Collection[str]) -> str | None:
    """The name in ``known`` that ours is for another program's ``name``; None if there is none.

    Dashes and capitals do not count in ``name``. What ``known`` has is written with ``_``.

    Examples
    --------
    >>> meant("--limit", ["q", "k"]), meant("filterBy", ["q", "where"]), meant("size", ["q"])
    ('k', 'where', None)
    """
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.lstrip("-")).lower().replace("-", "_")
    for ours, foreign in _NAMES.items():
        if plain in (ours, *_ALSO.get(ours, ()), *foreign.split()):
            for candidate in _ALSO.get(ours, (ours,)):
                if candidate in known and candidate != name:
                    return candidate
    return None


def answering_names(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Name our argument in the `TypeError` for one that another program has."""

    @functools.wraps(function)
    def answering(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            is_of_call = error.__traceback__ is not None and error.__traceback__.tb_next is None
            match = _UNEXPECTED.search(str(error)) if is_of_call else None
            ours = match and meant(match[1], inspect.signature(function).parameters)
            if ours:
                raise TypeError(f"{error}; write {ours}") from None
            raise

    return answering
