"""BM25 over the words of titles and of the queries that they were clicked for.

Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond" (2009), in the form
that Lucene uses. A word that occurs f times in a title of l words adds

    idf · f / (f + k1 · (1 - b + b · l / mean l)),   idf = ln(1 + (N - n + 0.5) / (n + 0.5))

N, n (the titles that hold the word) and the mean length are those of the titles that the statistics
were taken from, whatever titles are scored. So the score of a title does not depend on others.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import taken, together
from sentemb.kernels.bm25 import add_lists, best_titles, entries_of_pairs, sums_of_pairs
from sentemb.retrieval.clicked_queries import ClickedQueries, ClicksOfTitles
from sentemb.retrieval.rows_of_texts import PackedTexts, TextRows
from sentemb.retrieval.words_and_stems import Words, tokens_of
from sentemb.system.contracts import Runner
from sentemb.system.parallel import Workers
from sentemb.text.batch import Tokens, tokenize
from sentemb.text.words import searched_words

# Saturation of a word's count, and how much a title's length reduces it.
K1, B, MAX_K1 = 0.9, 0.4, 1e6
MAX_FIELD_WEIGHT = 100.0
# Titles whose words are counted at a time.
_TITLES = 65_536
# Words whose lists are weighed at a time.
_WORDS = 65_536


class FieldTexts(NamedTuple):
    """A further field of titles whose words count too, such as their brand.

    texts : one per title
    weight : what a word of it counts, above 0, where one of the title counts 1
    """

    texts: Sequence[str]
    weight: float


class Counts(NamedTuple):
    """How often titles hold words.

    offsets : (n_words + 1,); word w is in the entries ``offsets[w]`` to ``offsets[w + 1]`` of the
        next two
    titles : (n_entries,), ascending within a word
    counts : (n_entries,), above 0. A word of a clicked query counts as much as the title's share of
        its clicks.
    lengths : (n_titles,), the count of all words of each title, also of words that are not in
        ``words``
    """

    words: Sequence[str]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    counts: NDArray[np.float64]
    lengths: NDArray[np.float64]


class CountedFields(NamedTuple):
    """The two fields: titles with their clicked queries, and clicked queries alone."""

    whole: Counts
    clicked: Counts


def count_words(
    titles: Sequence[str],
    clicks: ClicksOfTitles,
    queries: Tokens,
    words: Words,
    counted: Collection[str] | None = None,
    fields: Sequence[FieldTexts] = (),
) -> CountedFields:
    """Count the words of titles, of their ``fields`` and of their clicked queries.

    ``clicks`` are the clicked queries of the titles, as numbers of ``queries``: all queries of the
    log, split by ``words``, which splits a text. ``counted`` are the words to count; by default
    all. The words of ``fields`` are not part of the length of a title: it has the score that it has
    without them if no word of the query is in them.
    """
    of_texts = [tokens_of(titles, words), *(tokens_of(field.texts, words) for field in fields)]
    is_clicked = _is_clicked_word(clicks, queries)
    clicked = taken(queries.words, is_clicked)
    if counted is None:
        known = _distinct([*(of.words for of in of_texts), clicked])
    else:
        known = list(dict.fromkeys(counted))
    rows = TextRows(known)
    numbers = [rows.of(of.words).astype(np.int32) for of in of_texts]
    number_of_queried = np.full(len(queries.words), -1, np.int32)
    number_of_queried[is_clicked] = rows.of(clicked)
    weights = [1.0, *(field.weight for field in fields)]
    whole, clicked_alone = _Portions(known, len(titles)), _Portions(known, len(titles))
    for low in range(0, len(titles), _TITLES):
        high = min(low + _TITLES, len(titles))
        entries = slice(int(clicks.offsets[low]), int(clicks.offsets[high]))
        shares = clicks.shares[entries]
        starts = queries.offsets[clicks.queries[entries]]
        lengths = queries.offsets[clicks.queries[entries] + 1] - starts
        title_of = np.repeat(np.arange(high - low), np.diff(clicks.offsets[low : high + 1]))
        before = starts - np.cumsum(lengths) + lengths
        tokens = np.repeat(before, lengths) + np.arange(lengths.sum())
        clicked_lengths = np.bincount(title_of, shares * lengths, high - low).astype(np.float64)
        of_clicks = _Entries(
            number_of_queried[queries.word_index[tokens]],
            np.repeat(title_of, lengths),
            np.repeat(shares, lengths),
        )
        # One entry for each word of a title, then of each field, then of each of its clicked
        # queries.
        of_titles = []
        for of, number_of, weight in zip(of_texts, numbers, weights, strict=True):
            offsets = of.offsets[low : high + 1]
            counted_words = number_of[of.word_index[offsets[0] : offsets[-1]]]
            title = np.repeat(np.arange(high - low), np.diff(offsets))
            of_titles.append(_Entries(counted_words, title, np.full(title.size, weight)))
        all_lengths = np.diff(of_texts[0].offsets[low : high + 1]) + clicked_lengths
        both = _Entries(*map(np.concatenate, zip(*of_titles, of_clicks, strict=True)))
        whole.add(both, low, all_lengths)
        clicked_alone.add(of_clicks, low, clicked_lengths)
    return CountedFields(whole.counts(), clicked_alone.counts())


def _is_clicked_word(clicks: ClicksOfTitles, queries: Tokens) -> NDArray[np.bool_]:
    """Which words are in the clicked queries of some titles, (n_words,)."""
    is_clicked = np.zeros(queries.offsets.size - 1, np.bool_)
    is_clicked[clicks.queries] = True
    is_there = np.zeros(len(queries.words), np.bool_)
    is_there[queries.word_index[np.repeat(is_clicked, np.diff(queries.offsets))]] = True
    return is_there


def _distinct(lists: Sequence[Sequence[str]]) -> Sequence[str]:
    """The texts of some lists, in each of which they are distinct, each once."""
    texts = lists[0]
    for behind in lists[1:]:
        texts = together(texts, taken(behind, TextRows(texts).of(behind) < 0))
    return texts


class _Entries(NamedTuple):
    """Occurrences of words in titles, (n,) each: the numbers of both, and what one counts."""

    words: NDArray[np.int32]
    titles: NDArray[np.int64]
    counts: NDArray[np.float64]


class _Counted(NamedTuple):
    """The words that some titles hold, ascending: for each, in how many of them it is; and these
    titles one after the other, with the counts.
    """

    words: NDArray[np.int32]
    sizes: NDArray[np.int32]
    titles: NDArray[np.int32]
    counts: NDArray[np.float64]


class _Portions:
    """Counts of the words ``known``, of some of ``n_titles`` titles at a time."""

    def __init__(self, known: Sequence[str], n_titles: int) -> None:
        self._known, self._lengths = known, np.zeros(n_titles)
        self._portions: list[_Counted] = []

    def add(self, entries: _Entries, low: int, lengths: NDArray[np.float64]) -> None:
        """Count the words of the titles from ``low`` on, whose ``lengths`` are counts of all words.

        Entries of word -1 do not count; those of one word and title are added in their order.
        """
        n_titles = lengths.size
        self._lengths[low : low + n_titles] = lengths
        there = np.flatnonzero(entries.words >= 0)
        # Few runs of ascending titles, which this merges; then no two keys are equal, and NumPy
        # sorts numbers by vector instructions.
        there = there[np.argsort(entries.titles[there], kind="stable")]
        keys = entries.words[there].astype(np.int64) << 32 | np.arange(there.size)
        keys.sort()
        there = there[keys & 0xFFFFFFFF]
        cells = entries.words[there].astype(np.int64) * n_titles + entries.titles[there]
        first = np.flatnonzero(np.diff(cells, prepend=-1))
        sums = np.add.reduceat(entries.counts[there], first) if first.size else np.empty(0)
        held = cells[first] // n_titles
        starts = np.flatnonzero(np.diff(held, prepend=-1))
        sizes = np.diff(starts, append=held.size)
        titles = (cells[first] % n_titles + low).astype(np.int32)
        of_words = held[starts].astype(np.int32), sizes.astype(np.int32)
        self._portions.append(_Counted(*of_words, titles, sums))

    def counts(self) -> Counts:
        """All of them."""
        sizes = np.zeros(len(self._known), np.int64)
        for portion in self._portions:
            sizes[portion.words] += portion.sizes
        ends = np.cumsum(sizes)
        at, n = ends - sizes, int(sizes.sum())
        titles, counts = np.empty(n, np.int32), np.empty(n)
        for portion in self._portions:
            before = at[portion.words] - np.cumsum(portion.sizes) + portion.sizes
            rows = np.repeat(before, portion.sizes) + np.arange(portion.titles.size)
            titles[rows], counts[rows] = portion.titles, portion.counts
            at[portion.words] += portion.sizes
        held = sizes > 0
        offsets = np.append(0, ends[held])
        return Counts(taken(self._known, held), offsets, titles, counts, self._lengths)


@dataclass(frozen=True, eq=False)
class Statistics:
    """The statistics of a collection that BM25 weighs words by.

    words : words that some title holds
    holding : (n_words,), how many titles hold each
    mean_length : words per title
    """

    words: Sequence[str]
    holding: NDArray[np.int64]
    n_titles: int
    mean_length: float

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """The statistics of counted titles."""
        total, n_titles = float(counts.lengths.sum()), counts.lengths.size
        mean = total / n_titles if total else 1.0
        return cls(counts.words, np.diff(counts.offsets), n_titles, mean)

    @cached_property
    def _rows(self) -> TextRows:
        return TextRows(self.words)

    def held_by(self, words: Sequence[str] | PackedTexts) -> NDArray[np.int64]:
        """How many titles hold each of some words, (n,)."""
        if words is self.words:
            return self.holding
        rows = self._rows.of(words)
        holding = np.zeros(rows.size, np.int64)
        holding[rows >= 0] = self.holding[rows[rows >= 0]]
        return holding

    def idf(self, holding: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weights of words that some titles hold, (n,); the largest is that of no title."""
        return np.log(1 + (self.n_titles - holding + 0.5) / (holding + 0.5))


class AskedWords(NamedTuple):
    """The words of queries, as numbers of a `Lists`: offsets (n_queries + 1,) and words (n,).

    Repeats are included; words that no title holds are left out.
    """

    offsets: NDArray[np.int64]
    words: NDArray[np.int32]

    def part(self, rows: NDArray[np.int64]) -> AskedWords:
        """The words of some queries."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        which = np.repeat(self.offsets[:-1][rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        return AskedWords(offsets, self.words[which])


@dataclass(frozen=True, eq=False)
class Lists:
    """For each word the titles that hold it, and the weight that it adds to their scores.

    offsets : (n_words + 1,); word w is in the entries ``offsets[w]`` to ``offsets[w + 1]`` of the
        next two
    titles, weights : (n_entries,), titles ascending within a word
    """

    words: Sequence[str]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    weights: NDArray[np.float32]
    n_titles: int

    @classmethod
    def of(cls, counts: Counts, statistics: Statistics, k1: float, b: float) -> Self:
        """Weigh counted words."""
        lengths = counts.lengths / statistics.mean_length
        saturation = k1 * (1 - b + b * lengths)
        idf = statistics.idf(statistics.held_by(counts.words))
        sizes = np.diff(counts.offsets)
        weights = np.empty(counts.counts.size, np.float32)
        for low in range(0, idf.size, _WORDS):
            words = slice(low, low + _WORDS)
            entries = slice(counts.offsets[low], counts.offsets[min(low + _WORDS, idf.size)])
            of_words, titles = counts.counts[entries], counts.titles[entries]
            share = of_words / (of_words + saturation[titles])
            weights[entries] = np.repeat(idf[words], sizes[words]) * share
        lists = counts.offsets, counts.titles, weights
        return cls(counts.words, *lists, counts.lengths.size)

    @cached_property
    def rows(self) -> TextRows:
        """The number of every word."""
        return TextRows(self.words)

    @cached_property
    def largest(self) -> NDArray[np.float64]:
        """The largest weight of each word, (n_words,)."""
        if not self.weights.size:
            return np.zeros(len(self.words))
        return np.maximum.reduceat(self.weights, self.offsets[:-1]).astype(np.float64)

    def numbers_of(self, words: Sequence[str] | PackedTexts) -> NDArray[np.int32]:
        """The numbers of words, (n,); -1 for a word that no title holds."""
        return self.rows.of(words).astype(np.int32)

    def look_up(self, tokens: Tokens, numbers_of: NDArray[np.int32] | None = None) -> AskedWords:
        """Queries as words of these lists; ``numbers_of`` are those of the words of ``tokens``."""
        numbers = self.numbers_of(tokens.words) if numbers_of is None else numbers_of
        numbers = numbers[tokens.word_index]
        is_known = numbers >= 0
        if is_known.all():
            return AskedWords(tokens.offsets, numbers)
        known = np.concatenate([[0], np.cumsum(is_known)])
        return AskedWords(known[tokens.offsets], numbers[is_known])

    def add(
        self, total: NDArray[np.float32], weight: float, asked: AskedWords, workers: Runner
    ) -> None:
        """Add ``weight`` times the score of every title to ``total``, (n_queries, n_titles)."""
        arguments = total, np.float32(weight), *asked, self.offsets, self.titles, self.weights
        workers.over(len(total), add_lists, *arguments)

    def scores(
        self,
        asked: AskedWords,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        """The scores of pairs, (k,): sums in float64 in the order of the query's words."""
        scores = np.empty(query_index.size)
        arguments = scores, *asked, query_index, title_index
        lists = self.offsets, self.titles, self.weights
        workers.over(scores.size, sums_of_pairs, *arguments, *lists)
        return scores

    def best(
        self,
        asked: AskedWords,
        k: int,
        workers: Runner,
        left_out: tuple[NDArray[np.int64], NDArray[np.int32]] | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The titles with the highest scores, by the lists of the words alone.

        ``left_out`` has offsets (n_queries + 1,) and the titles (n,) of each query to leave out.
        Returns titles and scores, (n_queries, k), best first, equal scores in the order of the
        titles; -1 and 0 where fewer titles have a word of the query. The scores are sums in
        float32. The result does not depend on the number of threads.
        """
        n = len(asked.offsets) - 1
        titles, sums = np.empty((n, k), np.int32), np.empty((n, k), np.float32)
        nothing = np.zeros(n + 1, np.int64), np.empty(0, np.int32)
        lists = self.offsets, self.titles, self.weights, self.n_titles
        workers.over(n, best_titles, titles, sums, *asked, *lists, *(left_out or nothing))
        return titles, sums

    def entries(
        self,
        asked: AskedWords,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where pairs have common words, for many sets of weights.

        Returns the number of the pair and the entry of each common word, (n,) each.
        """
        lengths = np.diff(asked.offsets)[query_index]
        starts = np.cumsum(lengths) - lengths
        entries = np.empty(int(lengths.sum()), np.int64)
        arguments = entries, starts, *asked, query_index, title_index, self.offsets, self.titles
        workers.over(query_index.size, entries_of_pairs, *arguments)
        pairs = np.repeat(np.arange(query_index.size), lengths)
        return pairs[entries >= 0], entries[entries >= 0]

    def of_words(self, tokens: Tokens, title: int) -> tuple[tuple[str, float], ...]:
        """The words of one query that a title holds, each with what it adds to the score."""
        added: dict[str, float] = {}
        for number in tokens.word_index.tolist():
            word = tokens.words[number]
            index = self.rows.get(word, -1)
            low, high = self.offsets[index : index + 2] if index >= 0 else (0, 0)
            entry = low + int(np.searchsorted(self.titles[low:high], title))
            if entry < high and self.titles[entry] == title:
                added[word] = added.get(word, 0.0) + float(self.weights[entry])
        return tuple(added.items())

    def without(self, is_kept: NDArray[np.bool_]) -> Self:
        """The lists of the titles where ``is_kept``, (n_titles,), is true."""
        entries = is_kept[self.titles]
        number = np.cumsum(is_kept) - 1
        offsets = np.concatenate([[0], np.cumsum(entries)])[self.offsets].astype(np.int64)
        n = int(is_kept.sum())
        titles = number[self.titles[entries]].astype(np.int32)
        return type(self)(self.words, offsets, titles, self.weights[entries], n)._compact()

    def joined(self, behind: Lists) -> Self:
        """These lists with the titles of other ones behind them."""
        number_of = {word: number for number, word in enumerate(self.words)}
        numbers = np.array(
            [number_of.setdefault(word, len(number_of)) for word in behind.words], np.int64
        )
        word_of = np.concatenate(
            [
                np.repeat(np.arange(len(self.words)), np.diff(self.offsets)),
                np.repeat(numbers, np.diff(behind.offsets)),
            ]
        )
        order = np.argsort(word_of, kind="stable")
        titles = np.concatenate([self.titles, behind.titles + np.int32(self.n_titles)])[order]
        counts = np.bincount(word_of, minlength=len(number_of))
        return type(self)(
            list(number_of),
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            titles.astype(np.int32),
            np.concatenate([self.weights, behind.weights])[order],
            self.n_titles + behind.n_titles,
        )

    def _compact(self) -> Self:
        """The same lists without words that no title holds."""
        held = np.flatnonzero(np.diff(self.offsets))
        if held.size == len(self.words):
            return self
        words = [self.words[w] for w in held.tolist()]
        offsets = np.concatenate([[0], self.offsets[1:][held]]).astype(np.int64)
        return type(self)(words, offsets, self.titles, self.weights, self.n_titles)


class TitleWords:
    """Finds titles by BM25 over their words: a `sentemb.models.contracts.Retriever`.

    Parameters
    ----------
    titles : sequence of str
        The catalogue; the statistics are taken from it.
    k1, b : float
        Saturation of a word's count, and how much a title's length reduces it.
    words : function of a str
        Splits titles and queries into words.
    threads : int, optional
        By default all processors. No score depends on it.

    Attributes
    ----------
    lists : Lists
    words : function of a str

    Examples
    --------
    >>> found = TitleWords(["red shoes", "blue shoes", "garden tools"]).find(["red shoes"], 2)
    >>> found[0].tolist(), found[1].round(3).tolist()
    ([[0, 1]], [[0.764, 0.247]])
    """

    def __init__(
        self,
        titles: Sequence[str],
        k1: float = K1,
        b: float = B,
        words: Words = searched_words,
        threads: int | None = None,
    ) -> None:
        no_clicks = ClickedQueries.nothing().of_titles(titles)
        counts = count_words(titles, no_clicks, tokenize(()), words).whole
        self.lists = Lists.of(counts, Statistics.of(counts), k1, b)
        self.words = words
        self._workers = Workers(threads)

    def look_up(self, queries: Sequence[str]) -> AskedWords:
        """The words of queries that some title holds."""
        return self.lists.look_up(tokens_of(queries, self.words))

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """See `sentemb.models.contracts.Retriever`; only titles with a word of the query."""
        k = min(k, self.lists.n_titles)
        if not k:
            return np.empty((len(queries), 0), np.int64), np.empty((len(queries), 0))
        titles, sums = self.lists.best(self.look_up(queries), k, self._workers)
        return titles.astype(np.int64), np.where(titles < 0, -np.inf, sums.astype(np.float64))

    def score_pairs(
        self,
        queries: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """The scores of pairs, (k,): ``queries[query_index[j]]`` with title ``title_index[j]``."""
        pairs = np.asarray(query_index, np.int64), np.asarray(title_index, np.int64)
        return self.lists.scores(self.look_up(queries), *pairs, self._workers)
