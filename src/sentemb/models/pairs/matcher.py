"""A pair model as it is kept: its shape, its vocabulary and its weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from sentemb.models.pairs.pair_model import PairModel
from sentemb.models.towers.towers import converted
from sentemb.system.contracts import Arrays
from sentemb.text.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Matcher:
    """A pair model (a shape only), its vocabulary, and its weights as the model stacks them."""

    model: PairModel
    vocabulary: Vocabulary
    weights: Arrays

    # How model folders, cards and `sentemb.load` know the family.
    kind: ClassVar[str] = "pair"
    face: ClassVar[str] = "PairScorer"

    @classmethod
    def parts(cls, config: Mapping[str, Any]) -> tuple[str, ...]:
        """The parts with weights of their own, as the names of tensors in a folder begin."""
        return (cls.kind,)

    @classmethod
    def of_parts(cls, shape: PairModel, vocabulary: Vocabulary, parts: dict[str, Arrays]) -> Self:
        """The model from the weights of its `parts`."""
        return cls(shape, vocabulary, parts[cls.kind])

    @property
    def shape(self) -> PairModel:
        """The shape of the model, without weights."""
        return self.model

    def blocks_by_part(self) -> dict[str, Arrays]:
        """All weights under the paper's names, by the part of the model that they belong to."""
        return {self.kind: self.parameters()}

    def settings(self) -> dict[str, Any]:
        """The settings of the model, as its configuration has them."""
        return self.model.settings()

    def __str__(self) -> str:
        listed = ", ".join(f"{key} {value}" for key, value in self.settings().items())
        return f"A pair model: {self.model.name} ({listed}), {self.vocabulary}."

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self.weights["table"].dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all weights."""
        return sum(array.nbytes for array in self.weights.values())

    def parameters(self) -> Arrays:
        """Views of all weights under the paper's names."""
        return self.model.blocks(self.weights)

    def copy(self) -> Self:
        """The same model with weights of its own."""
        return self.astype(self.dtype)

    def astype(self, dtype: str | type | np.dtype) -> Self:
        """A copy in float32 or float64; `SentembError` for another dtype."""
        return type(self)(self.model, self.vocabulary, converted(self.weights, dtype))
