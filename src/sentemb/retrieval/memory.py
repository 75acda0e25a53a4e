"""The memory of a click log: a title is as good as its best row.

The rows of a title are its vector by the document tower, its text read by the query tower, and the
queries that it was clicked for, each times the root of the title's share of the query's clicks:

    memory(q, t) = max(cos(q, t), cos_q(q, t), max over clicked c of sqrt(share(t, c)) cos_q(q, c))

The root makes a stray click worth what it is: one click among a hundred counts a tenth of the
cosine. Rows are stored as 8-bit integers; the memory is defined by these, so it has no error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.memory import add_best, add_best_of_one, best_of_pairs, best_of_titles
from sentemb.retrieval.clicked_queries import ClicksOfTitles
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.read_queries import ReadQueries
from sentemb.retrieval.row_products import FEW_OF_CODES, LONGEST, QueryRows, products
from sentemb.system.contracts import Runner
from sentemb.system.growing import scratch_array
from sentemb.system.parallel import ALONE
from sentemb.system.paths import AnyPath

# Rows that are multiplied with many queries at a time.
_ROWS = 1024
# Rows that are not worth another thread.
_FEW_ROWS = 65_536
# Titles, or clicked queries, that are embedded at a time.
_TITLES = 16_384
# Rows without a text of the log: the title by the document tower, and by the query tower.
DOCUMENT, TITLE = -2, -1


@dataclass(frozen=True, eq=False)
class MemoryRows:
    """The rows of all titles, one title after the other.

    offsets : (n_titles + 1,); title t has the rows ``offsets[t]`` to ``offsets[t + 1]``; none if
        the model knows nothing of it
    texts : (n_rows,), the clicked query of each row, `DOCUMENT` or `TITLE`
    """

    offsets: NDArray[np.int64]
    rows: Int8Rows
    texts: NDArray[np.int32]

    @property
    def n_titles(self) -> int:
        return self.offsets.size - 1

    @classmethod
    def of(
        cls,
        vectors: np.ndarray | Int8Rows,
        titles: Sequence[str],
        clicks: ClicksOfTitles,
        queries: ReadQueries,
        scratch: AnyPath | None = None,
    ) -> Self:
        """Embed titles and their clicked queries.

        ``vectors`` (n_titles, dim) are the titles by the document tower, of unit length or zero.
        ``clicks`` are clicked queries as numbers of ``queries``; only those are embedded, some at a
        time. ``scratch`` is as for `sentemb.system.growing.scratch_array`.
        """
        n, lengths = len(titles), np.diff(clicks.offsets)
        # At first each title has two rows, and one for each of its clicked queries.
        offsets = clicks.offsets + 2 * np.arange(n + 1)
        dim = (vectors.codes if isinstance(vectors, Int8Rows) else vectors).shape[1]
        codes = scratch_array((int(offsets[-1]), dim), np.int8, scratch)
        scales = np.zeros(len(codes), np.float32)
        texts = np.empty(len(codes), np.int32)

        def put(where: NDArray[np.int64], rows: Int8Rows, of: int | NDArray[np.integer]) -> None:
            codes[where], scales[where], texts[where] = rows.codes, rows.scales, of

        for low in range(0, n, _TITLES):
            portion = slice(low, low + _TITLES)
            first = offsets[:-1][portion]
            if isinstance(vectors, Int8Rows):
                floats = vectors.rows(portion).vectors()
            else:
                floats = np.asarray(vectors[portion], np.float32)
            put(first, Int8Rows.of(floats), DOCUMENT)
            floats = np.asarray(queries.embed(list(titles[portion])), np.float32)
            put(first + 1, Int8Rows.of(floats), TITLE)
        row_of = np.arange(clicks.queries.size) + 2 * np.repeat(np.arange(1, n + 1), lengths)
        in_log = clicks.queries if queries.numbers is None else queries.numbers[clicks.queries]
        # In the order of the queries, of which each is embedded once.
        order = np.argsort(clicks.queries, kind="stable")
        ordered = clicks.queries[order]
        bounds = np.flatnonzero(np.diff(ordered, prepend=-1, append=-1))
        for low in range(0, bounds.size - 1, _TITLES):
            bounded = bounds[low : low + _TITLES + 1]
            entries = slice(int(bounded[0]), int(bounded[-1]))
            rows = queries.rows(ordered[bounded[:-1]])
            of_entries = rows.rows(np.repeat(np.arange(bounded.size - 1), np.diff(bounded)))
            of_entries.scales[:] *= np.sqrt(clicks.shares[order[entries]]).astype(np.float32)
            put(row_of[order[entries]], of_entries, in_log[order[entries]])
        return cls._of_known(offsets, Int8Rows(codes, scales), texts)

    @classmethod
    def _of_known(
        cls, offsets: NDArray[np.int64], rows: Int8Rows, texts: NDArray[np.int32]
    ) -> Self:
        """The rows that are not zero, in place: one of zeros would count as a cosine."""
        is_known, at = rows.scales > 0, 0
        if is_known.all():
            return cls(offsets, rows, texts)
        for low in range(0, len(rows), _TITLES):
            portion = slice(low, low + _TITLES)
            stays = is_known[portion]
            moved = slice(at, at := at + int(np.count_nonzero(stays)))
            for array in (rows.codes, rows.scales, texts):
                array[moved] = array[portion][stays]
        offsets = np.append(0, np.cumsum(is_known))[offsets]
        return cls(offsets, rows.rows(slice(at)), texts[:at])

    def add(
        self, total: NDArray[np.float32], weight: float, queries: QueryRows, workers: Runner
    ) -> None:
        """Add ``weight`` times the memory of every title to ``total``, (n_queries, n_titles)."""
        if len(queries) < FEW_OF_CODES:
            rows = self.offsets, self.rows.codes, self.rows.scales
            runner = workers if self.offsets[-1] > _FEW_ROWS else ALONE
            for q, (query, step) in enumerate(zip(queries.integers, queries.steps, strict=True)):
                of_query = total[q], np.float32(weight), *rows, query, np.float32(step)
                runner.over(self.n_titles, add_best_of_one, *of_query)
            return
        n_tasks = max(1, -(-int(self.offsets[-1]) // _ROWS))
        bounds = np.searchsorted(self.offsets, np.arange(n_tasks) * _ROWS)
        bounds = np.append(bounds, self.n_titles)
        workers.over(n_tasks, self._add, total, np.float32(weight), queries, bounds)

    def _add(
        self,
        total: NDArray[np.float32],
        weight: np.float32,
        queries: QueryRows,
        bounds: NDArray[np.int64],
        first: int,
        end: int,
    ) -> None:
        for task in range(first, end):
            low, high = int(bounds[task]), int(bounds[task + 1])
            block = slice(int(self.offsets[low]), int(self.offsets[high]))
            of_rows = products(queries, self.rows.rows(block))
            add_best(total, weight, of_rows, self.offsets, block.start, low, high)

    def nearly(
        self, queries: QueryRows, q: int, titles: NDArray[np.int64]
    ) -> tuple[NDArray[np.float32], float]:
        """The memory of some titles for query ``q``, and at least its errors."""
        best = np.empty(titles.size, np.float32)
        rows = self.offsets, self.rows.codes, self.rows.scales
        best_of_titles(best, titles, *rows, queries.integers[q], np.float32(queries.steps[q]))
        return best, queries.error + LONGEST * float(queries.lost[q])

    def best(
        self,
        queries: QueryRows,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """The memory of pairs, (k,), and the row that it comes from; 0 and -1 without rows."""
        scores, rows = np.empty(query_index.size), np.empty(query_index.size, np.int64)
        pairs = queries.exact, query_index, title_index
        arguments = scores, rows, *pairs, self.offsets, self.rows.codes, self.rows.scales
        workers.over(scores.size, best_of_pairs, *arguments)
        return scores, rows

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        """The rows of the titles where ``is_kept``, (n_titles,), is true; see `Int8Rows.take`."""
        lengths = np.diff(self.offsets)
        stays = np.repeat(is_kept, lengths)
        offsets = np.concatenate([[0], np.cumsum(lengths[is_kept])]).astype(np.int64)
        return type(self)(offsets, self.rows.take(stays, scratch), self.texts[stays])

    def joined(self, behind: MemoryRows, scratch: AnyPath | None = None) -> Self:
        """These rows with those of more titles behind them; see `Int8Rows.joined`."""
        rows = self.rows.joined(behind.rows, scratch)
        offsets = np.concatenate([self.offsets, self.offsets[-1] + behind.offsets[1:]])
        return type(self)(offsets, rows, np.concatenate([self.texts, behind.texts]))
