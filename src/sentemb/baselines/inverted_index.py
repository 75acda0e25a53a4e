"""BM25 over all titles of a collection: for each word the titles that hold it.

Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond" (2009), in the form
that Lucene uses.
"""

import bisect
import contextlib
import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, Self, cast

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.word_lists import WordLists, kept_before, of_entries, portions
from sentemb.baselines.words_and_stems import Words, stem_of, words_of
from sentemb.bounds import brief, number, share, whole
from sentemb.errors import SentembError
from sentemb.kernels.inverted_index import (
    highest_and_pairs,
    highest_sums,
    sums_of_pairs,
    sums_of_words,
)
from sentemb.protocols import Runner
from sentemb.system.descriptions import read_description
from sentemb.system.files import make_folder, write_text
from sentemb.system.mapped_arrays import mapped_array, write_array
from sentemb.system.paths import AnyPath
from sentemb.text.batch import tokenize
from sentemb.text.words import plain_words

# Saturation of a word's count, and how much a title's length reduces it.
K1, B = 0.9, 0.4
MAX_K1 = 1e6
# More than idf can be.
_MAX_WEIGHT = 100
# A small weight of clicked queries must not become 0 in float32.
_LEAST = float(np.finfo(np.float32).tiny)

_DESCRIPTION = "bm25.json"
_FORMAT = 1
# File name -> dtype.
_FILES = {
    "words": "uint8",
    "word_offsets": "int64",
    "list_offsets": "int64",
    "list_titles": "int32",
    "list_counts": "int32",
    "list_weights": "float32",
}
_CLICK_COUNTS = "list_click_counts"  # int32, only with clicked queries

# (n + 1,) offsets, and what they divide.
Lists = tuple[NDArray[np.int64], NDArray[np.int32]]


class Contents(NamedTuple):
    """What an `InvertedIndex` holds.

    Attributes
    ----------
    words : list of str
        In the order of their characters.
    offsets : (n_words + 1,) int64
        Word w is in the entries ``offsets[w]`` to ``offsets[w + 1]`` of the next two.
    titles : (n_entries,) int32
        The titles that hold the word, in ascending order.
    counts : (n_entries,) int32 or float64
        How often they hold it, above 0; a word of a clicked query counts `click_weight` times.
    """

    words: list[str]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    counts: NDArray[np.int32] | NDArray[np.float64]


class InvertedIndex:
    """The BM25 weight of every word in every title: a `sentemb.protocols.Retriever`.

    It never changes: `extended`, `without` and `with_parameters` make another one.

    The weight of a word that occurs f times in a title of l words is ``idf · f / (f + k1 · (1 - b +
    b · l / mean l))`` with ``idf = ln(1 + (N - n + 0.5) / (n + 0.5))`` for N titles, n of which
    hold the word. The score of a title is the sum over the words of the query, repeats included.

    With clicked queries a count is that in the title plus ``click_weight`` times that in its
    clicked queries, and so is a length. A title holds a word if its count is above 0.

    Parameters
    ----------
    titles : sequence of str
        The collection.
    k1, b : float
        Saturation of a word's count, from 0, and how much a title's length reduces it, 0 to 1.
    words : function of a str
        Splits titles and queries: `plain_words`, or the `Stems` of a language.
    clicked : sequence of str, optional
        For each title the queries that it was clicked for, as one text; see
        `sentemb.baselines.clicked_queries.clicked_texts`.
    click_weight : float
        From 0, which leaves the titles alone, to 1, with which a clicked query counts as if it were
        part of the title.
    scratch : path, optional
        A folder on the disk that entries are kept on until all words are known; by default they are
        in memory. The finished lists are in memory.

    Attributes
    ----------
    n_titles : int
    k1, b, click_weight : float
    words : function of a str
    has_clicks : bool
        Whether ``click_weight`` can be changed: the counts of clicked queries are known.

    Raises
    ------
    SentembError
        If k1, b or the weight of clicks is out of range, or there is not one text of clicked
        queries per title.

    Examples
    --------
    >>> index = InvertedIndex(["red shoes", "blue shoes", "garden tools"])
    >>> places, scores = index.find(["red shoes"], 2)
    >>> places.tolist(), scores.round(3).tolist()
    ([[0, 1]], [[0.764, 0.247]])
    """

    def __init__(
        self,
        titles: Sequence[str],
        k1: float = K1,
        b: float = B,
        words: Words = plain_words,
        clicked: Sequence[str] | None = None,
        click_weight: float = 1.0,
        scratch: AnyPath | None = None,
    ) -> None:
        self.k1, self.b = number("k1", k1, 0, MAX_K1), share("b", b)
        self.click_weight = _checked_click_weight(click_weight)
        self.words = words
        self.n_titles = n = len(titles)
        if clicked is not None and len(clicked) != n:
            raise SentembError(
                f"{n:,} titles and {len(clicked):,} texts of clicked queries; give one per title"
            )
        self._set(WordLists.of(titles, clicked, words, scratch))

    def _set(self, lists: WordLists) -> Self:
        """Set all lists of an object that nothing else has yet."""
        words, self._offsets, self._titles, self._counts, self._click_counts = lists
        # The order of characters is that of their bytes in UTF-8.
        encoded = [word.encode("utf-8", "surrogatepass") for word in words]
        self._word_offsets = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
        self._word_bytes = np.frombuffer(b"".join(encoded), np.uint8)
        self._weigh()
        return self

    def _weigh(self) -> None:
        """Set the weights from the lists and the parameters."""
        # A word of clicked queries alone is in no title if they have the weight 0.
        n_holding = np.diff(kept_before(self._offsets, lambda some: self._effective(some) > 0))
        idf = np.log(1 + (self.n_titles - n_holding + 0.5) / (n_holding + 0.5))
        lengths = self._sums_of_titles(self._counts)
        if self._click_counts is not None:
            clicked = self._sums_of_titles(self._click_counts)
            lengths = lengths + self.click_weight * clicked
        # Without any word there are no entries, and the mean is not used.
        mean_length = (lengths.sum() or 1) / max(self.n_titles, 1)
        saturation = self.k1 * (1 - self.b + self.b * lengths / mean_length)
        self._weights = np.empty(len(self._titles), np.float32)
        for some in portions(len(self._titles)):
            counts = self._effective(some)
            weights = of_entries(idf, self._offsets, some) * counts
            with np.errstate(invalid="ignore"):  # 0 / 0
                np.divide(weights, counts + saturation[self._titles[some]], out=weights)
            # The kernels need weights above 0 where a title holds the word.
            self._weights[some] = np.where(counts > 0, np.maximum(weights, _LEAST), 0)
        self._choose()

    def _sums_of_titles(self, counts: NDArray[np.int32]) -> NDArray[np.float64]:
        """The sum of the counts of each title's entries, (n_titles,)."""
        # Sums of integers have no rounding errors, so titles of equal words weigh the same.
        sums = np.zeros(self.n_titles)
        for some in portions(len(counts)):
            sums += np.bincount(self._titles[some], counts[some], self.n_titles)
        return sums

    def _effective(self, some: slice) -> NDArray[np.float64]:
        """The counts of some entries, those in clicked queries included."""
        counts = self._counts[some].astype(np.float64)
        if self._click_counts is None:
            return counts
        return counts + self.click_weight * self._click_counts[some]

    def _choose(self) -> None:
        """Set the lists that are searched: the entries with a weight above 0."""
        offsets, titles, weights = self._offsets, self._titles, self._weights
        if self._click_counts is not None and self.click_weight == 0:
            kept = self._counts > 0
            offsets = kept_before(offsets, kept.__getitem__)
            titles, weights = titles[kept], weights[kept]
        self._lists = offsets, titles, weights, self.n_titles

    # -- search -------------------------------------------------------------------------------

    def look_up(self, queries: Sequence[str]) -> Lists:
        """The words of ``queries`` that occur in some title.

        Returns
        -------
        offsets, words : (n_queries + 1,) int64, (n,) int32
        """
        tokens = tokenize(queries, self.words)
        place_of = np.fromiter(map(self._place, tokens.words), np.int32, len(tokens.words))
        places = place_of[tokens.word_index]
        known = np.concatenate([[0], np.cumsum(places >= 0)])
        return known[tokens.offsets], places[places >= 0]

    def find(
        self, queries: Sequence[str], k: int, workers: Runner | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The titles with the highest scores; see `sentemb.protocols.Retriever`.

        A title without a word of the query is not found.

        Parameters
        ----------
        queries : sequence of str
            The queries.
        k : int
            Titles per query, from 1; at most `n_titles` are found.
        workers : Runner, optional
            Threads to share the queries; the result does not depend on them.
        """
        return self.find_words(self.look_up(queries), k, workers)

    def find_words(
        self, words: Lists, k: int, workers: Runner | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """As `find`, for queries whose words are from `look_up`.

        They are the same with all parameters of `with_parameters`.
        """
        k = min(whole("k", k, 1, 2**31 - 1), self.n_titles)
        n_queries = len(words[0]) - 1
        highest = np.empty((n_queries, k), np.int32)
        kept = np.empty((n_queries, k), np.float32)
        if k:
            nothing = np.zeros(n_queries + 1, np.int64), np.empty(0, np.int32)
            arguments = highest, kept, *words, *self._lists, *nothing
            _over(workers, n_queries, highest_sums, *arguments)
        return _as_scores(highest, kept)

    def find_and_score(
        self, words: Lists, pairs: Lists, k: int, workers: Runner | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
        """As `find_words`, and the scores of some titles, as `scores` gives them.

        Parameters
        ----------
        words : (n_queries + 1,) int64, (n,) int32
            From `look_up`.
        pairs : (n_queries + 1,) int64, (n_pairs,) int32
            Offsets and titles: those of each query whose scores are wanted.
        k : int
            Titles per query, from 1 to `n_titles`.
        workers : Runner, optional
            Threads to share the queries; the result does not depend on them.
        """
        n_queries = len(words[0]) - 1
        highest = np.empty((n_queries, k), np.int32)
        kept = np.empty((n_queries, k), np.float32)
        found = np.empty(len(pairs[1]), np.float32)
        arguments = highest, kept, found, *words, *self._lists, *pairs
        _over(workers, n_queries, highest_and_pairs, *arguments)
        return *_as_scores(highest, kept), found.astype(np.float64)

    def matches(self, words: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """All titles that hold a word of a query, and their scores, all above 0.

        Parameters
        ----------
        words : (n_words,) int32
            The words of one query, from `look_up`.

        Returns
        -------
        places, scores : (n,) int32, (n,) float32
            In an order that depends only on the index and the query.
        """
        found: tuple[NDArray[np.int32], NDArray[np.float32]] = sums_of_words(words, *self._lists)
        return found

    def scores(
        self,
        queries: Sequence[str],
        query_index: NDArray[np.integer],
        places: NDArray[np.integer],
        workers: Runner | None = None,
    ) -> NDArray[np.float64]:
        """The scores of pairs.

        Parameters
        ----------
        queries : sequence of str
            The queries.
        query_index, places : (k,) int
            Pair j is ``queries[query_index[j]]`` with the title number ``places[j]``.
        workers : Runner, optional
            Threads to share the queries; the result does not depend on them.

        Returns
        -------
        (k,) float64
            0 without a common word.
        """
        by_query = np.argsort(query_index, kind="stable")
        n_pairs = np.bincount(np.asarray(query_index, np.int64), minlength=len(queries))
        pairs = np.concatenate([[0], np.cumsum(n_pairs)]), np.asarray(places, np.int64)[by_query]
        found = np.empty(len(by_query), np.float32)
        arguments = found, *self.look_up(queries), *self._lists, *pairs
        _over(workers, len(queries), sums_of_pairs, *arguments)
        scores = np.empty(len(by_query))
        scores[by_query] = found
        return scores

    def highest(
        self, highest: NDArray[np.int32], queries: Lists, left_out: Lists, first: int, end: int
    ) -> None:
        """The titles with the highest scores, equal scores in the order of the titles.

        Parameters
        ----------
        highest : (n_queries, k) int32, written
            Highest first; -1 where fewer titles have a word of the query.
        queries : (n_queries + 1,) int64, (n,) int32
            What `look_up` returned.
        left_out : (n_queries + 1,) int64, (n,) int32
            Offsets and titles: those of each query that are not wanted.
        first, end : int
            The queries to do.
        """
        kept = np.empty(highest.shape, np.float32)
        highest_sums(highest, kept, *queries, *self._lists, *left_out, first, end)

    @property
    def has_clicks(self) -> bool:
        """Whether the counts of clicked queries are known."""
        return self._click_counts is not None

    @property
    def _n_words(self) -> int:
        return len(self._offsets) - 1

    def _word(self, place: int) -> bytes:
        first, end = self._word_offsets[place : place + 2]
        return self._word_bytes[first:end].tobytes()

    def _place(self, word: str) -> int:
        """The place of ``word`` among all words, -1 if no title has it."""
        encoded = word.encode("utf-8", "surrogatepass")
        place = bisect.bisect_left(range(self._n_words), encoded, key=self._word)
        return place if place < self._n_words and self._word(place) == encoded else -1

    def contents(self) -> Contents:
        """All words that titles hold, with these titles; do not change the arrays."""
        words, (offsets, titles, _, _) = self._all_words(), self._lists
        if self._click_counts is None:
            return Contents(words, offsets, titles, self._counts)
        counts = self._effective(slice(None))
        is_held = np.diff(offsets) > 0
        held = [word for word, kept in zip(words, is_held.tolist(), strict=True) if kept]
        return Contents(held, np.unique(offsets), titles, counts[counts > 0])

    # -- changes ------------------------------------------------------------------------------

    def with_parameters(self, k1: float, b: float, click_weight: float | None = None) -> Self:
        """The same lists with weights for other parameters.

        Parameters
        ----------
        k1, b : float
            See above.
        click_weight : float, optional
            By default that of this index.

        Raises
        ------
        SentembError
            If one is out of range, or ``click_weight`` is another one and the index has no counts
            of clicked queries.
        """
        other = self._with(k1=number("k1", k1, 0, MAX_K1), b=share("b", b))
        if click_weight is not None:
            other.click_weight = _checked_click_weight(click_weight)
        if other.click_weight != self.click_weight and not self.has_clicks:
            raise SentembError(
                "BM25 does not know which words are of clicked queries; make the index again with "
                "the click log"
            )
        other._weigh()
        return other

    def extended(self, titles: Sequence[str]) -> Self:
        """These titles and then others, which have no clicked queries.

        The result equals an index built from all titles, in every bit.
        """
        clicked = [""] * len(titles) if self.has_clicks else None
        more = WordLists.of(titles, clicked, self.words)
        lists = self._word_lists().joined(more, self.n_titles)
        return self._with(n_titles=self.n_titles + len(titles))._set(lists)

    def without(self, places: NDArray[np.integer]) -> Self:
        """The index without the titles at some places; those behind them move up.

        The result equals an index built from the titles that are left, in every bit.
        """
        is_kept = np.ones(self.n_titles, bool)
        is_kept[places] = False
        lists = self._word_lists().kept(is_kept)
        return self._with(n_titles=int(is_kept.sum()))._set(lists)

    def _with(self, **changes: Any) -> Self:
        """A copy with some attributes changed; it shares the lists."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__ | changes)
        return other

    def _word_lists(self) -> WordLists:
        words, counts = self._all_words(), (self._counts, self._click_counts)
        return WordLists(words, self._offsets, self._titles, *counts)

    def _all_words(self) -> list[str]:
        words: list[str] = []
        with contextlib.suppress(UnicodeDecodeError):
            places = range(self._n_words)
            words = [self._word(place).decode("utf-8", "surrogatepass") for place in places]
        if len(words) != self._n_words or any(one >= other for one, other in pairwise(words)):
            raise SentembError(
                "the words of BM25 are damaged; restore the index from a copy or make it again"
            )
        return words

    # -- files --------------------------------------------------------------------------------

    def save(self, folder: Path) -> None:
        """Write the index into ``folder``, which is created.

        Each file is written whole; `sentemb.system.whole_folder.filling` makes one step of all.

        Raises
        ------
        SentembError
            If ``words`` is a function of the caller, or the folder cannot be written.
        """
        description = {
            "format": _FORMAT,
            "titles": self.n_titles,
            "words": self._n_words,
            "entries": len(self._titles),
            "k1": self.k1,
            "b": self.b,
            "stem": stem_of(self.words),
            "click_weight": self.click_weight if self.has_clicks else None,
        }
        make_folder(folder)
        for name, array in self._arrays().items():
            write_array(folder / f"{name}.npy", array)
        write_text(folder / _DESCRIPTION, json.dumps(description, indent=1) + "\n")

    @classmethod
    def open(cls, folder: Path, in_memory: bool = False) -> Self:
        """Map an index that `save` wrote into memory, or read it.

        Raises
        ------
        SentembError
            If a file is missing or damaged, or the package for its stems is missing.
        """
        found = _description(folder / _DESCRIPTION)
        n_words, n_entries = found["words"], found["entries"]
        has_clicks = found["click_weight"] is not None
        sizes = [None, n_words + 1, n_words + 1, n_entries, n_entries, n_entries]
        arrays = {
            name: mapped_array(folder / f"{name}.npy", dtype, (size,), in_memory=in_memory)
            for (name, dtype), size in zip(_FILES.items(), sizes, strict=True)
        }
        index = object.__new__(cls)
        index.k1, index.b, index.n_titles = found["k1"], found["b"], found["titles"]
        index.click_weight = found["click_weight"] if has_clicks else 1.0
        index.words = words_of(found["stem"])
        index._word_bytes = cast(NDArray[np.uint8], arrays["words"])
        index._word_offsets = cast(NDArray[np.int64], arrays["word_offsets"])
        index._offsets = cast(NDArray[np.int64], arrays["list_offsets"])
        index._titles = cast(NDArray[np.int32], arrays["list_titles"])
        index._counts = cast(NDArray[np.int32], arrays["list_counts"])
        index._weights = cast(NDArray[np.float32], arrays["list_weights"])
        index._click_counts = None
        if has_clicks:
            path = folder / f"{_CLICK_COUNTS}.npy"
            counts = mapped_array(path, "int32", (n_entries,), in_memory=in_memory)
            index._click_counts = cast(NDArray[np.int32], counts)
        index._check(folder)
        index._choose()
        return index

    def file_names(self) -> list[str]:
        """The names of the files that `save` writes."""
        return [_DESCRIPTION, *(f"{name}.npy" for name in self._arrays())]

    def _arrays(self) -> dict[str, NDArray[Any]]:
        arrays: dict[str, NDArray[Any]] = {
            "words": self._word_bytes,
            "word_offsets": self._word_offsets,
            "list_offsets": self._offsets,
            "list_titles": self._titles,
            "list_counts": self._counts,
            "list_weights": self._weights,
        }
        if self._click_counts is not None:
            arrays[_CLICK_COUNTS] = self._click_counts
        return arrays

    def _check(self, folder: Path) -> None:
        """Raise unless the kernels can use the arrays: they do not look before they read."""
        wrong = set()
        if not _divides(self._word_offsets, len(self._word_bytes)):
            wrong.add("word_offsets")
        if not _divides(self._offsets, len(self._titles)):
            wrong.add("list_offsets")
        for some in () if wrong else portions(len(self._titles)):
            wrong |= self._wrong_arrays(some)
        # The first in the order of the files.
        for name in (*_FILES, _CLICK_COUNTS):
            if name in wrong:
                raise _damaged(folder / f"{name}.npy", "numbers are out of range")

    def _wrong_arrays(self, some: slice) -> set[str]:
        """The names of arrays with a number that is out of range in some entries."""
        titles, counts, weights = self._titles[some], self._counts[some], self._weights[some]
        clicks = None if self._click_counts is None else self._click_counts[some]
        is_wrong = {
            "list_titles": not 0 <= titles.min() <= titles.max() < self.n_titles,
            "list_counts": counts.min() < (1 if clicks is None else 0),
            # A sum that is 0 marks a title that was not met, and sums must stay finite.
            "list_weights": not (
                ((weights > 0) == (self._effective(some) > 0))
                & (weights >= 0)
                & (weights < _MAX_WEIGHT)
            ).all(),
            _CLICK_COUNTS: clicks is not None
            and bool((clicks < 0).any() or (counts + clicks < 1).any()),
        }
        return {name for name, wrong in is_wrong.items() if wrong}


def _as_scores(
    highest: NDArray[np.int32], kept: NDArray[np.float32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Titles and scores as `find` returns them, with -1 and minus infinity in empty places."""
    scores = kept.astype(np.float64)
    scores[highest < 0] = -np.inf
    return highest.astype(np.int64), scores


def _checked_click_weight(value: object) -> float:
    return float(share("the weight of clicked queries", value))


def _over(workers: Runner | None, size: int, function: Any, *arguments: Any) -> None:
    if workers is None:
        function(*arguments, 0, size)
    else:
        workers.over(size, function, *arguments)


def _divides(offsets: NDArray[np.int64], size: int) -> bool:
    """Whether ``offsets`` cut ``size`` things into consecutive parts."""
    return bool(offsets[0] == 0 and offsets[-1] == size and (np.diff(offsets) >= 0).all())


def _description(path: Path) -> dict[str, Any]:
    """What ``bm25.json`` says, checked."""
    found = read_description(path, _FORMAT, _damaged)
    try:
        for name in ("titles", "words", "entries"):
            whole(name, found.get(name), 0, 2**40)
        number("k1", found.get("k1"), 0, MAX_K1)
        share("b", found.get("b"))
        if found.get("click_weight", "missing") is not None:
            share("click_weight", found.get("click_weight"))
    except SentembError as error:
        raise _damaged(path, str(error).partition(";")[0]) from None
    if "stem" not in found or not isinstance(found["stem"], str | None):
        raise _damaged(path, f"stem is {brief(found.get('stem', 'missing'))}")
    return found


def _damaged(path: Path, why: str) -> SentembError:
    return SentembError(f"{path}: damaged: {why}; restore the file from a copy or index again")
