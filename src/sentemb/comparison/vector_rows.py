"""Rows of word vectors: averages, SIF and its variants, and BM25 together with SIF."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.baselines import make_baseline
from sentemb.comparison.baselines.baseline import Baseline
from sentemb.comparison.data_folder import Data
from sentemb.comparison.row import Point, Row
from sentemb.errors import SentembError
from sentemb.models.contracts import Ranker
from sentemb.models.vectors.sif import SIF, named_counts
from sentemb.models.vectors.vector_options import HYPERPARAMETERS, KEEP
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.paths import AnyPath

# Bytes that are hashed at once.
_PORTION = 1 << 24
_SIF = {parameter.name: parameter.default for parameter in HYPERPARAMETERS if parameter is not KEEP}
_BM25 = {"k1": 0.9, "b": 0.4, "stem": True}
# Values of a, the default first, and factors of the cosine that is added to a BM25 score.
_A = tuple({"a": a} for a in (1e-3, 1e-4, 1e-2))
_COSINE = tuple({"cosine_weight": weight} for weight in (10, 2, 5, 20))


@dataclass(frozen=True, eq=False)
class WordSource:
    """Word vectors and word probabilities for the rows that need them.

    p : as `SIF` takes it
    identity : names and hashes: rows with other vectors or probabilities have other settings
    """

    vectors: WordVectors
    p: str | Mapping[str, int]
    identity: Point

    @classmethod
    def of(
        cls, vectors: WordVectors, p: str | Mapping[str, int] | AnyPath = "rank"
    ) -> "WordSource":
        """The source of ``vectors``, with p as `SIF` takes it; a file of counts is read here."""
        name, counts = named_counts(p, vectors)
        identity = {
            "vectors": vectors.name,
            "vectors_sha256": vectors.sha256 or _hash_of_vectors(vectors),
            "p": name,
        }
        if counts is None:
            return cls(vectors, name, identity)
        return cls(vectors, counts, {**identity, "p_sha256": _hash_of_counts(counts)})


@dataclass(frozen=True)
class VectorRow(Row):
    """A row that needs word vectors and no training.

    Its components and idf come from the texts of the log or, without a log, from the texts of the
    judged sets. It does not see grades. ``grid`` has settings to choose from, in addition to the
    fixed ones; ``source`` is None if no vectors were given: then the row cannot run.
    """

    grid: tuple[Point, ...] = _A
    source: WordSource | None = None
    kind: ClassVar[str] = "vectors"

    @property
    def is_random(self) -> bool:
        return False

    def points(self) -> list[Point]:
        given = self._given()
        return [{**_SIF, **self.fixed, **point, **given.identity} for point in self.grid]

    def fit(self, settings: Point, data: Data, seed: int) -> tuple[Ranker, int]:
        """A SIF model, and the number of fitted numbers: those of the components."""
        given = self._given()
        # Only words of the data are ever looked up.
        sif = SIF(given.vectors, p=given.p, keep="texts", **{name: settings[name] for name in _SIF})
        model = sif.fit(*data.texts, also=data.judged_texts)
        return model, sum(
            components.directions.size for components in sif.distinct_components().values()
        )

    def _given(self) -> WordSource:
        if self.source is None:
            raise SentembError("no word vectors; give some with --vectors")
        return self.source


@dataclass(frozen=True)
class HybridRow(VectorRow):
    """BM25 on stems plus a multiple of the cosine of SIF."""

    def points(self) -> list[Point]:
        points = [{**_BM25, **point} for point in super().points()]
        _bm25(points[0])  # a missing package is a reason to leave the row out
        return points

    def fit(self, settings: Point, data: Data, seed: int) -> tuple[Ranker, int]:
        model, n_parameters = super().fit(settings, data, seed)
        bm25 = _bm25(settings).fit(data.log, data.titles, seed)
        return _Sum(bm25, model, settings["cosine_weight"]), n_parameters


class _Sum:
    """A `Ranker` whose scores are those of ``first`` plus ``weight`` times those of ``second``."""

    def __init__(self, first: Ranker, second: Ranker, weight: float) -> None:
        self._first, self._second, self._weight = first, second, weight

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        pairs = queries, titles, query_index, title_index
        return self._first.score_pairs(*pairs) + self._weight * self._second.score_pairs(*pairs)


def with_vectors(rows: Sequence[Row], source: WordSource) -> list[Row]:
    """``rows``, of which those of word vectors get this source."""
    return [replace(row, source=source) if isinstance(row, VectorRow) else row for row in rows]


def _bm25(settings: Point) -> Baseline:
    return make_baseline("bm25", **{name: settings[name] for name in _BM25})


def _hash_of_vectors(vectors: WordVectors) -> str:
    """The SHA-256 of words and vectors that are in no folder of ours."""
    digest = hashlib.sha256("\n".join([*vectors.words, ""]).encode())
    digest.update(repr((vectors.vectors.shape, vectors.vectors.dtype.str)).encode())
    rows = max(1, _PORTION // max(1, vectors.vectors[:1].nbytes))
    for low in range(0, len(vectors), rows):
        digest.update(np.ascontiguousarray(vectors.vectors[low : low + rows]).tobytes())
    return digest.hexdigest()


def _hash_of_counts(counts: Mapping[str, int]) -> str:
    # Not in the order of the file, which changes no probability.
    lines = (f"{word}\t{count}\n" for word, count in sorted(counts.items()))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _each(*grids: Sequence[Point]) -> tuple[Point, ...]:
    """Every combination of points of the grids."""
    return tuple(
        {k: v for point in combination for k, v in point.items()} for combination in product(*grids)
    )


VECTOR_ROWS: tuple[Row, ...] = (
    VectorRow("average", {"weights": "none", "components": 0}, grid=({},)),
    VectorRow("average-tfidf", {"weights": "idf", "components": 0}, grid=({},)),
    VectorRow("sif-w", {"components": 0}),
    VectorRow("sif-r", {"weights": "none"}, grid=({},)),
    VectorRow("sif"),
    VectorRow("sif-each", {"sides": "each"}),
    VectorRow("sif-components", grid=_each([{"components": k} for k in (3, 2, 5)], _A)),
    VectorRow("usif", {"weights": "usif", "components": 5, "removal": "weighted"}, grid=({},)),
    HybridRow("bm25+sif", {"sides": "each"}, grid=_each(_COSINE, _A)),
)
