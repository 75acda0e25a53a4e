"""Kinds of queries, by length, known words and score, and how well each kind does."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.text.vocabulary import Vocabulary

_LENGTHS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, 12), (13, None))
_COSINES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_QUINTILES = (0.2, 0.4, 0.6, 0.8)

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]
_Booleans: TypeAlias = NDArray[np.bool_]
# The name of each kind, and which queries are of it.
Kinds: TypeAlias = Iterator[tuple[str, _Booleans]]


@dataclass(frozen=True, eq=False)
class Slice:
    """The queries of one kind.

    mean : their mean figure
    lost : their share of all that is lost: of the sum of 1 minus the figure over all queries
    queries : (count,), indices into `Triage.queries`
    """

    label: str
    count: int
    mean: float
    lost: float
    queries: NDArray[np.int64]


def count_words(
    vocabulary: Vocabulary, queries: Sequence[str]
) -> tuple[_Integers, _Integers, _Integers | None]:
    """Words, unknown words and words without a feature of their own, of each query."""
    split = [vocabulary.split(query) for query in queries]
    words = list(dict.fromkeys(word for query_words in split for word in query_words))
    known = vocabulary.knows(words)
    unknown = {word for word, is_known in zip(words, known.tolist(), strict=True) if not is_known}
    n_words = np.array([len(query_words) for query_words in split], np.int64)
    n_unknown = np.array(
        [sum(word in unknown for word in query_words) for query_words in split], np.int64
    )
    if not (vocabulary.trigrams and vocabulary.words):
        return n_words, n_unknown, None
    featured = set(vocabulary.words)
    n_rare = np.array(
        [sum(word not in featured for word in query_words) for query_words in split], np.int64
    )
    return n_words, n_unknown, n_rare


def slices(values: _Floats, evaluated: _Integers, kinds: Kinds) -> Iterator[Slice]:
    """The kinds that have queries with a figure; those queries are ``evaluated``."""
    lost = 1 - values[evaluated]
    total = float(lost.sum()) or 1.0
    for label, is_kind in kinds:
        in_slice = is_kind[evaluated]
        if in_slice.any():
            mean = float(values[evaluated][in_slice].mean())
            share = float(lost[in_slice].sum()) / total
            yield Slice(label, int(in_slice.sum()), mean, share, evaluated[in_slice])


def by_length(n_words: _Integers) -> Kinds:
    """By the number of words."""
    yield "0", n_words == 0
    for low, high in _LENGTHS:
        if high is None:
            yield f"{low} or more", n_words >= low
        else:
            yield (
                str(low) if low == high else f"{low} to {high}",
                (low <= n_words) & (n_words <= high),
            )


def by_share(count: _Integers | None, n_words: _Integers) -> Kinds:
    """By whether no, some or all words are counted in ``count``."""
    if count is None:
        return
    yield "none", (count == 0) & (n_words > 0)
    yield "some", (count > 0) & (count < n_words)
    yield "all", (count > 0) & (count == n_words)


def by_score(scores: _Floats, evaluated: _Integers, is_cosine: bool) -> Kinds:
    """Bands of the first score: fixed ones of cosines, otherwise fifths of the queries."""
    yield "nothing found", ~np.isfinite(scores)
    finite = scores[evaluated][np.isfinite(scores[evaluated])]
    if not finite.size:
        return
    edges = list(_COSINES) if is_cosine else sorted(set(np.quantile(finite, _QUINTILES).round(2)))
    lows, highs = [-np.inf, *edges], [*edges, np.inf]
    for low, high in zip(lows, highs, strict=True):
        label = f"{low:.2f} to {high:.2f}"
        if low == -np.inf:
            label = f"below {high:.2f}"
        elif high == np.inf:
            label = f"{low:.2f} or more"
        yield label, np.isfinite(scores) & (low <= scores) & (scores < high)


def by_flag(flags: _Booleans | None, yes: str, no: str) -> Kinds:
    """By a property that each query has or lacks; no kinds where it is not known."""
    if flags is not None:
        yield yes, flags
        yield no, ~flags
