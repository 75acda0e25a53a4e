"""A click log as integers, and its mini-batches."""

import hashlib
from dataclasses import dataclass, fields

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.negatives import draw_negatives, titles_to_leave_out
from sentemb.kernels.words import take_texts, take_words
from sentemb.objectives.softmax import Candidates
from sentemb.text.batch import TextBatch, batch_of, tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.settings import ALL

# Texts of a portion; their projected words are in memory at once.
_PORTION = 16_384


@dataclass(frozen=True)
class MiniBatch:
    """What one update needs.

    Attributes
    ----------
    queries, titles : TextBatch
        With shared towers one and the same, queries first.
    candidates : Candidates
    weights : (n_pairs,) float64
        What each pair counts; they sum to 1.
    """

    queries: TextBatch
    titles: TextBatch
    candidates: Candidates
    weights: np.ndarray


class Corpus:
    """The pairs of a click log, ready for training.

    Parameters
    ----------
    log : ClickLog
    settings : Settings
        Of them ``word_features``, and ``shared_towers``: whether a mini-batch holds queries and
        titles as one lot of texts, queries first.

    Attributes
    ----------
    vocabulary : Vocabulary
        All trigrams of the log, and its frequent words.
    weights : (n_pairs,) float64
        1 + ln(clicks): a title clicked a thousand times for a query counts as eight others, not as
        a thousand.
    query_offsets, query_titles : (n_queries + 1,) int64, (n_pairs,) int32
        The clicked titles of every query.
    """

    def __init__(self, log, settings):
        if settings.shared_towers:
            tokens = {"query": tokenize([*log.queries, *log.titles])}
        else:
            tokens = {"query": tokenize(log.queries), "title": tokenize(log.titles)}
        self.vocabulary = Vocabulary.collect(*tokens.values(), word_features=settings.word_features)
        self.query_index, self.title_index = log.query_index, log.title_index
        self.n_pairs = log.query_index.size
        self.n_queries, self.n_titles = len(log.queries), len(log.titles)
        self.weights = 1 + np.log(log.clicks)
        self.skipped_offsets, self.skipped = log.skipped_offsets, log.skipped_index
        self._texts = {side: batch_of(some, self.vocabulary) for side, some in tokens.items()}
        self._shared = settings.shared_towers
        self._scratch = {
            side: np.full(texts.n_words, -1, np.int32) for side, texts in self._texts.items()
        }
        self._row_scratch = np.full(len(self.vocabulary), -1, np.int32)
        self._title_scratch = np.full(self.n_titles, -1, np.int32)

        pair_keys = self.query_index.astype(np.int64) * self.n_titles + self.title_index
        self._clicked_keys = np.sort(pair_keys)
        by_query = np.argsort(self.query_index, kind="stable")
        self.query_offsets = np.zeros(len(log.queries) + 1, np.int64)
        np.cumsum(np.bincount(self.query_index), out=self.query_offsets[1:])
        self.query_titles = self.title_index[by_query]
        self._check_negatives()

    def fingerprint(self):
        """A hash of all that training takes from the log."""
        known = [*self.vocabulary.trigrams, *self.vocabulary.words]
        digest = hashlib.sha256("\n".join(known).encode("utf-8"))
        arrays = [self.query_index, self.title_index, self.weights]
        arrays += [self.skipped_offsets, self.skipped]
        for texts in self._texts.values():
            arrays += [getattr(texts, field.name) for field in fields(texts)]
        for array in arrays:
            digest.update(array.tobytes())
        return digest.hexdigest()

    def seen(self, side):
        """The features that the tower of ``side`` ("query" or "document") meets."""
        return self._texts["query" if self._shared or side == "query" else "title"].input_rows

    def n_batches(self, batch_size):
        """Mini-batches of one epoch."""
        return -(-self.n_pairs // batch_size)

    def order(self, seed, epoch):
        """The pairs in the order of ``epoch``."""
        return np.random.default_rng([seed, epoch]).permutation(self.n_pairs)

    def portions(self, side):
        """All texts of ``side`` ("query" or "document") in order, as `TextBatch`es of some."""
        queries = side == "query"
        first = self.n_queries if self._shared and not queries else 0
        end = first + (self.n_queries if queries else self.n_titles)
        for low in range(first, end, _PORTION):
            some = np.arange(low, min(low + _PORTION, end), dtype=np.int32)
            yield self._side("query" if self._shared or queries else "title", some)

    def mini_batch(self, pairs, settings, epoch, step, hard_titles=None):
        """The mini-batch of some ``pairs``; seed, epoch and step decide its negatives.

        Parameters
        ----------
        pairs : (k,) int
        settings : Settings
        epoch, step : int
        hard_titles : (n_queries, m) int32, optional
            Of each pair's query so many as the settings say join the titles; -1 stands for none.

        Returns
        -------
        MiniBatch
        """
        queries, query_of_pair = np.unique(self.query_index[pairs], return_inverse=True)
        clicked = self.title_index[pairs]
        weights = self.weights[pairs]
        listed = settings.n_negatives != ALL
        if listed:
            offsets, titles = self._draw(pairs, clicked, settings, epoch, step)
            titles, places = np.unique(titles, return_inverse=True)
            local_clicked = np.searchsorted(titles, clicked)
            candidates = places
        else:
            titles = clicked
            if hard_titles is not None:
                drawn = self._draw_hard(pairs, hard_titles, settings, epoch, step)
                titles = np.concatenate([clicked, drawn])
            titles = np.unique(titles)
            local_clicked = np.searchsorted(titles, clicked)
            self._title_scratch[titles] = np.arange(titles.size)
            offsets, candidates = titles_to_leave_out(
                self.query_index[pairs],
                clicked,
                self.query_offsets,
                self.query_titles,
                self._title_scratch,
            )
            self._title_scratch[titles] = -1
        return MiniBatch(
            *self._sides(queries.astype(np.int32), titles.astype(np.int32)),
            Candidates(
                queries=query_of_pair.astype(np.int32),
                clicked=local_clicked.astype(np.int32),
                offsets=offsets,
                titles=candidates.astype(np.int32),
                listed=listed,
            ),
            weights / weights.sum(),
        )

    def _draw_hard(self, pairs, hard_titles, settings, epoch, step):
        rng = np.random.default_rng([settings.seed, epoch, step])
        size = pairs.size, settings.hard_negatives
        places = rng.integers(hard_titles.shape[1], size=size)
        drawn = np.take_along_axis(hard_titles[self.query_index[pairs]], places, axis=1)
        return drawn[drawn >= 0]

    def _draw(self, pairs, clicked, settings, epoch, step):
        pool = clicked
        if settings.negatives == "corpus":
            pool = np.arange(self.n_titles, dtype=np.int32)
        if settings.negatives == "log":
            spans = [np.arange(*self.skipped_offsets[[p, p + 1]]) for p in pairs]
            skipped_offsets = np.cumsum([0] + [span.size for span in spans], dtype=np.int64)
            skipped = self.skipped[np.concatenate(spans)]
        else:
            skipped_offsets = np.zeros(pairs.size + 1, np.int64)
            skipped = np.zeros(0, np.int32)
        seed = np.random.SeedSequence([settings.seed, epoch, step]).generate_state(1, np.uint64)[0]
        return draw_negatives(
            self.query_index[pairs],
            clicked,
            pool,
            skipped_offsets,
            skipped,
            settings.n_negatives,
            self.n_titles,
            self._clicked_keys,
            seed,
        )

    def _sides(self, queries, titles):
        if self._shared:
            both = np.concatenate([queries, titles + np.int32(self.n_queries)])
            side = self._side("query", both)
            return side, side
        return self._side("query", queries), self._side("title", titles)

    def _side(self, side, texts):
        corpus = self._texts[side]
        word_index, offsets, words = take_texts(
            texts, corpus.word_index, corpus.offsets, self._scratch[side]
        )
        *lists, rows = take_words(
            words,
            corpus.feature_offsets,
            corpus.feature_ids,
            corpus.feature_counts,
            self._row_scratch[: corpus.input_rows.size],
        )
        return TextBatch(word_index, offsets, *lists, corpus.input_rows[rows])

    def _check_negatives(self):
        """There must be some pair with a title that can stand against its own."""
        clicked_titles = np.diff(self.query_offsets)
        if np.all(clicked_titles[self.query_index] >= self.n_titles):
            raise SentembError(
                "the click log has no negatives: every title in it is clicked for every query; "
                "add queries with other titles"
            )
