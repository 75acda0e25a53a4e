"""A pair model as it is kept: its shape, its vocabulary and its weights."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from sentemb.models.pairs.pair_model import PairModel
from sentemb.models.towers.towers import converted
from sentemb.system.contracts import Arrays
from sentemb.text.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class Matcher:
    """A pair model with its vocabulary and weights.

    Attributes
    ----------
    model : PairModel
        The shape.
    vocabulary : Vocabulary
        The features that words are read as.
    weights : dict of arrays
        Stacked arrays as the model describes them.
    """

    model: PairModel
    vocabulary: Vocabulary
    weights: Arrays

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
        """A copy in float32 or float64.

        Raises
        ------
        SentembError
            For another dtype.
        """
        return type(self)(self.model, self.vocabulary, converted(self.weights, dtype))
