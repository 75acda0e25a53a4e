"""Changes by a training that continues from a model: dev figures and first titles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.evaluation.rank_overlap import overlap
from sentemb.models.towers.towers import Towers
from sentemb.retrieval.nearest import nearest
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch
from sentemb.training.batches.corpus import Corpus

# Queries that are compared, and titles of each.
_MOST_QUERIES = 1_000
_FIRST = 10


class FirstTitles:
    """The titles that come first, of all titles of a log.

    The ``queries`` are those of the dev set; without them the queries of the ``corpus`` are taken.
    If there are many, ``seed`` draws a sample of them.
    """

    def __init__(
        self, corpus: Corpus, queries: Sequence[str] | None, seed: int, workers: Workers
    ) -> None:
        self._corpus, self._workers = corpus, workers
        count = corpus.n_queries if queries is None else len(queries)
        rng = np.random.default_rng(seed)
        self._sample = np.sort(rng.permutation(count)[:_MOST_QUERIES]).astype(np.int32)
        self._queries = None if queries is None else [queries[i] for i in self._sample]

    def of(self, towers: Towers) -> NDArray[np.int64]:
        """The first titles by these towers, (n_queries, 10): numbers in the corpus."""
        if self._queries is None:
            queries = self._corpus.texts("query", self._sample)
        else:
            queries = self._corpus.vocabulary.batch(self._queries)
        vectors = self._embed(towers, "query", queries)
        # Filled portion by portion: joining them would need the memory of a large log twice.
        titles, done = np.empty((self._corpus.n_titles, vectors.shape[1]), vectors.dtype), 0
        for portion in self._corpus.portions("document"):
            rows = self._embed(towers, "document", portion)
            titles[done : done + len(rows)] = rows
            done += len(rows)
        return nearest(vectors, titles, _FIRST)[0]

    def _embed(self, towers: Towers, side: str, texts: TextBatch) -> np.ndarray:
        encoder, weights = towers.encoder, towers.weights[side]
        P = encoder.project(weights, texts, self._workers)
        return unit_rows(encoder.embed(weights, P, texts.word_index, texts.offsets, self._workers))

    def change(self, before: NDArray[np.int64], after: NDArray[np.int64]) -> str:
        """How far two results of `of` agree, in words."""
        common = overlap(before, after)
        of = "queries of the log" if self._queries is None else "dev queries"
        return (
            f"the first title stayed the same for {common.same_first:.1%} of {len(before):,} {of}; "
            f"of the first {before.shape[1]}, {common.shared:.1%} stayed"
        )
