"""Features of a text for a classifier: a fixed vector, or the embedding of a trained tower."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.towers.encoder import ForwardPass
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.towers import Towers
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.training.batches.text_list import TextList
from sentemb.training.optimisers.adam import Adam

# The gradient of a tower is re-normalised to at most this, the default of `sentemb.train`.
_MAX_NORM = 1.0


class TextFeatures(Protocol):
    """The embeddings, of length ``dim``, that a classifier reads.

    trained : whether the embeddings are trained with the classifier
    weights : the trained arrays; empty for fixed vectors
    """

    dim: int
    trained: bool
    weights: Arrays

    def prepare(self, texts: Sequence[str]) -> Any:
        """``texts`` in the form that the other methods take."""
        ...

    def plan(self, prepared: Any, numbers: NDArray[np.int32]) -> Any:
        """Some of the prepared texts, without use of the weights."""
        ...

    def forward_tasks(self, planned: Any, space: Workspace) -> Job[tuple[np.ndarray, Any]]:
        """A job that returns the embeddings, (dim, n_texts), and what `Learner` needs."""
        ...

    def of(self, weights: Arrays) -> TextFeatures:
        """The same with other weights."""
        ...

    def fingerprint(self, prepared: Any) -> str:
        """A hash of everything that training takes from these embeddings."""
        ...


class FixedVectors:
    """Embeddings that do not change; a `TextFeatures`.

    ``embed`` returns one row per text: (k, dim) float.
    """

    trained = False

    def __init__(self, embed: Callable[[list[str]], np.ndarray], dim: int) -> None:
        self.embed = embed
        self.dim = dim
        self.weights: Arrays = {}

    @classmethod
    def of_function(cls, embed: Callable[[list[str]], np.ndarray], text: str) -> FixedVectors:
        """The vectors that ``embed`` returns, as long as that of ``text``."""
        return cls(embed, _checked(embed([text]), 1).shape[1])

    def prepare(self, texts: Sequence[str]) -> np.ndarray:
        vectors = _checked(self.embed(list(texts)), len(texts))
        if vectors.shape[1] != self.dim:
            raise SentembError(
                f"features returned rows of {vectors.shape[1]:,} numbers after {self.dim:,}; give "
                "every text as many"
            )
        return vectors

    def plan(self, prepared: np.ndarray, numbers: NDArray[np.int32]) -> np.ndarray:
        return np.ascontiguousarray(prepared[numbers].T)

    def forward_tasks(self, planned: np.ndarray, space: Workspace) -> Job[tuple[np.ndarray, None]]:
        yield []
        return planned, None

    def of(self, weights: Arrays) -> FixedVectors:
        return self

    def fingerprint(self, prepared: np.ndarray) -> str:
        return hashlib.sha256(prepared.tobytes()).hexdigest()


def _checked(vectors: Any, count: int) -> np.ndarray:
    """The rows that a function returned for ``count`` texts, as (count, dim) float32."""
    try:
        rows = np.asarray(vectors, np.float32)
    except (TypeError, ValueError):
        raise SentembError(
            "features returned no array of numbers; return one row per text"
        ) from None
    if rows.ndim != 2 or len(rows) != count or not rows.shape[1]:
        raise SentembError(
            f"features returned an array of shape {rows.shape} for {count:,} texts; return one row "
            "per text"
        )
    if not np.isfinite(rows).all():
        bad = int(np.argmin(np.isfinite(rows).all(axis=1)))
        raise SentembError(f"features returned a number that is not finite for text {bad}")
    return rows


class TrainedTower:
    """Embeddings of a tower that is trained with the classifier; a `TextFeatures`.

    ``towers`` have one tower for both texts of a pair.
    """

    trained = True

    def __init__(self, towers: Towers) -> None:
        if not towers.shared:
            raise SentembError(
                "the two towers have weights of their own; give Towers.of(encoder, vocabulary, "
                '{"query": weights}), one tower for both texts of a pair'
            )
        self.towers = towers
        self.encoder = towers.encoder
        self.dim = towers.encoder.dim
        self.weights = towers.weights["query"]

    def prepare(self, texts: Sequence[str]) -> TextList:
        return TextList(self.towers.vocabulary.batch(texts))

    def plan(self, prepared: TextList, numbers: NDArray[np.int32]) -> Layout:
        return self.encoder.lay_out(prepared.take(numbers))

    def forward_tasks(
        self, planned: Layout, space: Workspace
    ) -> Job[tuple[np.ndarray, ForwardPass]]:
        point = point_of(self.weights, planned.batch.input_rows)
        done = yield from self.encoder.forward_tasks(point, planned, space)
        return np.ascontiguousarray(done.embeddings.T), done

    def of(self, weights: Arrays) -> TrainedTower:
        known = self.towers
        return TrainedTower(Towers.of(known.encoder, known.vocabulary, {"query": weights}))

    def fingerprint(self, prepared: TextList) -> str:
        known = self.towers.vocabulary
        names = [self.encoder.name, self.encoder.settings(), known.splitting]
        digest = hashlib.sha256(json.dumps([*names, known.trigrams, known.words]).encode())
        if known.vectors is not None:
            digest.update(known.vectors.fingerprint().encode())
        for name in sorted(self.weights):
            digest.update(self.weights[name].tobytes())
        return digest.hexdigest()


class Learner:
    """The optimiser of a `TrainedTower`, whose weights are changed in place."""

    def __init__(self, features: TrainedTower) -> None:
        self.features = features
        self.adam = Adam(features.weights, _MAX_NORM)

    def step_tasks(
        self, done: ForwardPass, dH: np.ndarray, update: int, rate: float, space: Workspace
    ) -> Job[None]:
        """The backward pass from dH (dim, n_texts) and the update, as a job."""
        encoder, weights, layout = self.features.encoder, self.features.weights, done.layout
        V = np.ascontiguousarray(dH.T)
        gradient = yield from encoder.backward_tasks(weights, done, V, None, space)
        point = self.adam.point(layout.batch.input_rows, update)
        yield from self.adam.step_tasks(point, gradient, layout.words_of_features, update, rate)
