"""The two towers of a model: one shape, one vocabulary, and weights for each side."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.towers.encoder import Encoder
from sentemb.system.contracts import Arrays
from sentemb.text.vocabulary import Vocabulary

# The towers by what they read: queries, or titles (the documents of the field).
SIDES = ("query", "document")
_SHARED = "shared"  # in place of the sides, where one tower reads both


@dataclass(frozen=True, eq=False)
class Towers:
    """A model of two towers: encoder, vocabulary and weights.

    The encoder is the shape of both towers, and both read the features of the vocabulary.
    ``weights["query"]`` and ``weights["document"]`` are stacked arrays as the encoder describes
    them; shared towers are one and the same dict under both names.
    """

    encoder: Encoder
    vocabulary: Vocabulary
    weights: dict[str, Arrays]

    # How model folders, cards and `sentemb.load` know the family.
    kind: ClassVar[str] = "towers"
    face: ClassVar[str] = "SentenceEncoder"

    @classmethod
    def parts(cls, config: Mapping[str, Any]) -> tuple[str, ...]:
        """The parts with weights of their own, as the names of tensors in a folder begin."""
        return (_SHARED,) if config["shared_towers"] else SIDES

    @classmethod
    def of_parts(cls, shape: Encoder, vocabulary: Vocabulary, parts: dict[str, Arrays]) -> Self:
        """The model from the weights of its `parts`."""
        return cls.of(shape, vocabulary, dict(zip(SIDES, parts.values(), strict=False)))

    @classmethod
    def of(cls, encoder: Encoder, vocabulary: Vocabulary, weights: dict[str, Arrays]) -> Self:
        """Towers from `each`: without weights for ``"document"`` they are shared."""
        return cls(encoder, vocabulary, {"document": weights["query"], **weights})

    @property
    def shape(self) -> Encoder:
        """The shape of the model, without weights."""
        return self.encoder

    def blocks_by_part(self) -> dict[str, Arrays]:
        """All weights under the paper's names, by the part of the model that they belong to."""
        return {
            _SHARED if self.shared else side: self.encoder.blocks(weights)
            for side, weights in self.each.items()
        }

    def settings(self) -> dict[str, Any]:
        """The settings of the model, as its configuration has them."""
        return {**self.encoder.settings(), "shared_towers": self.shared, "dim": self.encoder.dim}

    def __str__(self) -> str:
        towers = "one shared tower" if self.shared else "a query and a title tower"
        listed = ", ".join(f"{key} {value}" for key, value in self.encoder.settings().items())
        return (
            f"A sentence-embedding model: {self.encoder.name} ({listed}), {towers}, "
            f"{self.vocabulary}, {self.encoder.dim} dimensions."
        )

    @property
    def shared(self) -> bool:
        """Whether one tower reads queries and titles."""
        return self.weights["query"] is self.weights["document"]

    @property
    def each(self) -> dict[str, Arrays]:
        """The weights of every distinct tower by its side: only ``"query"`` if they are shared."""
        return {side: self.weights[side] for side in distinct_sides(self.shared)}

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self.weights["query"]["table"].dtype

    def parameters(self) -> dict[str, Arrays]:
        """Views of all weights under the paper's names; see `SentenceEncoder.parameters`."""
        blocks = {side: self.encoder.blocks(weights) for side, weights in self.each.items()}
        return {"document": blocks["query"], **blocks}

    @property
    def nbytes(self) -> int:
        """Bytes of all weights."""
        return sum(array.nbytes for tower in self.each.values() for array in tower.values())

    def fingerprint(self) -> str:
        """A hash of the shape, the vocabulary and the weights."""
        shape = [self.encoder.name, self.encoder.settings(), self.vocabulary.splitting]
        digest = hashlib.sha256(json.dumps(shape).encode())
        for features in (self.vocabulary.trigrams, self.vocabulary.words):
            digest.update("\n".join([*features, ""]).encode())
        if self.vocabulary.vectors is not None:
            digest.update(self.vocabulary.vectors.fingerprint().encode())
        for side, weights in self.each.items():
            for name in sorted(weights):
                array = np.ascontiguousarray(weights[name])
                digest.update(f"{side}.{name} {array.dtype} {array.shape}".encode())
                digest.update(array.data.cast("B") if array.size else b"")
        return digest.hexdigest()

    def copy(self) -> Self:
        """The same towers with weights of their own."""
        return self.astype(self.dtype)

    def astype(self, dtype: str | type | np.dtype) -> Self:
        """A copy in float32 or float64."""
        copies = {side: converted(weights, dtype) for side, weights in self.each.items()}
        return self.of(self.encoder, self.vocabulary, copies)


def converted(weights: Arrays, dtype: str | type | np.dtype) -> Arrays:
    """A copy of ``weights`` in float32 or float64; `SentembError` for another dtype."""
    try:
        number = np.dtype(dtype)
    except TypeError:
        raise SentembError(f"dtype must be float32 or float64, not {dtype!r}") from None
    if number not in (np.float32, np.float64):
        raise SentembError(f"dtype must be float32 or float64, not {number}")
    return {name: array.astype(number) for name, array in weights.items()}


class HasTowers(Protocol):
    """A model with two towers, such as `SentenceEncoder`."""

    @property
    def towers(self) -> Towers: ...


def distinct_sides(shared: bool) -> tuple[str, ...]:
    """The sides that have a tower of their own."""
    return SIDES[:1] if shared else SIDES


# Shared towers read the queries and the titles of a mini-batch as one list of texts, queries first.


def split_embeddings(
    embeddings: dict[str, np.ndarray], n_queries: int
) -> tuple[np.ndarray, np.ndarray]:
    """(Yq, Yd), the embeddings of queries and titles, from those of each tower's texts."""
    if "document" in embeddings:
        return embeddings["query"], embeddings["document"]
    Yq, Yd = np.split(embeddings["query"], [n_queries])
    return Yq, Yd


def join_gradients(Vq: np.ndarray, Vd: np.ndarray, shared: bool) -> dict[str, np.ndarray]:
    """The gradients at the embeddings of queries and titles as each tower takes them."""
    return {"query": np.vstack([Vq, Vd])} if shared else {"query": Vq, "document": Vd}
