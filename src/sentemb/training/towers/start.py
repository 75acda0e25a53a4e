"""Starting a training from the vocabulary and the weights of another model.

There are two cases. A model of the same shape gives all its weights, and if it has letter trigrams,
its vocabulary grows by the features of the log that it lacks: it was trained on clicks, and now
there are others. A linear bag can start any other encoder: its rows are word vectors, such as those
of SIF, and the input weights start as a projection of them, ``rows Q``. From then on training sees
only the product.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from sentemb.errors import SentembError
from sentemb.kernels.cosine_softmax import add_matmul_rows
from sentemb.models.files.model_files import load_model
from sentemb.models.files.saved_model import PAIR
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.encoder import Encoder
from sentemb.models.towers.registry import ENCODERS, ENSEMBLE, SHARED_TOWERS
from sentemb.models.towers.towers import SIDES, Towers
from sentemb.system.aligned import aligned_empty, aligned_zeros
from sentemb.system.contracts import Arrays
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.towers.settings import ADAM, CONTINUED, HYPERPARAMETERS, PRESETS

# The encoder whose rows other encoders take as word vectors.
_WORD_VECTORS = "bag"
_WORD_FEATURES, _SPLITTING = "word_features", "splitting"
_OF_FEATURES = _WORD_FEATURES, "max_word_features"
_WORD_USES = next(
    parameter.default for parameter in HYPERPARAMETERS if parameter.name == _WORD_FEATURES
)


@dataclass(frozen=True, eq=False)
class Start:
    """The model that a training starts from.

    ``name`` is that of its folder, and empty for a model in memory. If ``is_ours``, nothing else
    uses the arrays of the towers, so that they need not be copied.
    """

    towers: Towers
    name: str
    is_ours: bool

    @classmethod
    def of(cls, model: object) -> Self:
        """The start from a model folder or from a model in memory.

        Raises `SentembError` if ``model`` is neither, if the folder cannot be read, or for a pair
        model or an average of models.
        """
        if isinstance(model, SentenceEncoder):
            _check_is_trainable(model.towers, "start_from")
            return cls(model.towers, "", is_ours=False)
        if isinstance(model, str | os.PathLike):
            saved = load_model(model)
            if saved.model.kind == PAIR:
                raise SentembError(
                    f"{model}: a pair model cannot start two towers; give a model of two towers, "
                    "or train a pair model"
                )
            _check_is_trainable(saved.towers(), str(model))
            return cls(saved.towers(), Path(model).resolve().name, is_ours=True)
        raise SentembError(
            f"start_from must be a model folder or a SentenceEncoder, not {type(model).__name__}"
        )

    def __str__(self) -> str:
        return self.name or "the model in start_from"

    def record(self) -> dict[str, str]:
        """How the trained model records it."""
        return {"name": self.name, "sha256": self.sha256}

    @cached_property
    def sha256(self) -> str:
        """`Towers.fingerprint`, kept: training changes the weights."""
        return self.towers.fingerprint()

    def grows(self, model: str) -> bool:
        """Whether the training of encoder ``model`` adds the features that this model lacks.

        Word vectors do not grow: their vocabulary has whole words only, or they start another
        encoder.
        """
        return model == self.towers.encoder.name and bool(self.towers.vocabulary.trigrams)

    # -- settings -----------------------------------------------------------------------------

    def settings(self, preset: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings ``given``, completed by those of this model's shape.

        Those of ``preset`` count as given; `Settings.of` refuses an unknown preset. Raises
        `SentembError` for a setting that contradicts this model.
        """
        of_preset = PRESETS.get(preset, {}) if isinstance(preset, str) else {}
        requested = {
            name: value for name, value in {**of_preset, **given}.items() if value is not None
        }
        encoder = self.towers.encoder
        model = requested.get(ENCODERS.model.name, encoder.name)
        shape: dict[str, Any] = {ENCODERS.model.name: model, SHARED_TOWERS.name: self.towers.shared}
        if self.grows(model):
            uses = _WORD_USES if self.towers.vocabulary.words else 0
            # Measured with Adam, the default; another optimiser has rates of another size.
            continued = CONTINUED if requested.get("optimiser", ADAM) == ADAM else {}
            shape |= {**continued, _WORD_FEATURES: uses}
        elif wrong := [name for name in _OF_FEATURES if name in given]:
            raise SentembError(
                f"{wrong[0]} does not apply: the features are those of {self}; leave {wrong[0]} out"
            )
        else:
            requested[_WORD_FEATURES] = 0
        if model == encoder.name:
            self._check(encoder.settings(), requested, given)
            shape |= encoder.settings()
        elif encoder.name == _WORD_VECTORS:
            shape |= {
                name: value
                for name, value in encoder.settings().items()
                if name in ENCODERS.entry(model).names
            }
        else:
            raise SentembError(
                f"{self} is of model {encoder.name} and cannot start model {model}; choose model "
                f"{encoder.name}, or start from a {_WORD_VECTORS} of word vectors"
            )
        self._check({_SPLITTING: self.towers.vocabulary.splitting}, requested, given)
        if requested.get(SHARED_TOWERS.name) and not self.towers.shared:
            raise SentembError(
                f"{self} has separate towers, which cannot become one; leave {SHARED_TOWERS.name} "
                "out or start from a model with shared towers"
            )
        return {**shape, **requested}

    def _check(
        self, shape: Mapping[str, Any], requested: Mapping[str, Any], given: Mapping[str, Any]
    ) -> None:
        """Raise a `SentembError` if a setting that is ``requested`` is not that of this model."""
        for name, value in shape.items():
            if name in requested and requested[name] != value:
                left_out = name if name in given else "the preset"
                raise SentembError(
                    f"{self} has {name} {value}, not {requested[name]}; leave {left_out} out or "
                    "start from another model"
                )

    def check_vectors(self, given: bool) -> None:
        """Raise a `SentembError` if word vectors are ``given``: the model has its own, or none."""
        if given and self.towers.vocabulary.vectors is not None:
            raise SentembError(
                f"{self} has word vectors, and the training continues with these; leave vectors out"
            )
        if given:
            raise SentembError(
                f"{self} has no word vectors, and they cannot be added to it; leave vectors or "
                "start_from out"
            )

    # -- weights ------------------------------------------------------------------------------

    def weights(
        self,
        side: str,
        encoder: Encoder,
        rng: np.random.Generator,
        dtype: DTypeLike = np.float32,
        vocabulary: Vocabulary | None = None,
    ) -> Arrays:
        """The weights that the tower of ``side`` starts with, for the caller to change.

        Call it once for each tower: a model that was read for this training hands over its arrays
        without a copy.

        ``encoder`` is the shape of the tower that is trained, ``rng`` the source of the weights
        that this model does not have, and ``dtype`` float32 or float64. ``vocabulary``, for a tower
        of the same shape, has grown from this model's. The rows of new features are zero, like
        those of features that a tower did not meet in training: no embedding changes before the
        first update.
        """
        arrays = self.towers.weights[side]
        # The arrays of a shared tower can be handed over only once.
        may_give = self.is_ours and not (self.towers.shared and side != SIDES[0])
        if encoder.name == self.towers.encoder.name:
            weights = {name: _in_memory(array, dtype, may_give) for name, array in arrays.items()}
            if vocabulary is not None and len(vocabulary) > len(self.towers.vocabulary):
                weights["table"] = self._grown(weights["table"], vocabulary)
            return weights
        rows = arrays["table"]
        dim, width = rows.shape[1], encoder.width
        Q = (rng.standard_normal((dim, width)) / math.sqrt(dim)).astype(dtype)
        columns = encoder.word_vector_columns()
        as_they_are = columns.stop - columns.start == dim
        if as_they_are:
            Q[:, columns] = np.eye(dim)
        dense = encoder.initialise(0, rng, dtype)
        if as_they_are and dim == width:
            return dense | {"table": _in_memory(rows, dtype, may_give)}
        table = aligned_zeros((len(rows), width), dtype)
        add_matmul_rows(table, np.ascontiguousarray(rows, dtype), Q, 0, len(rows))
        return dense | {"table": table}

    def _grown(self, rows: np.ndarray, vocabulary: Vocabulary) -> np.ndarray:
        """The rows of this model's features among those of ``vocabulary``; new ones are zero."""
        table = aligned_zeros((len(vocabulary), rows.shape[1]), rows.dtype)
        table[vocabulary.rows_of(self.towers.vocabulary)] = rows
        return table


def _check_is_trainable(towers: Towers, name: str) -> None:
    if towers.encoder.name == ENSEMBLE:
        raise SentembError(
            f"{name}: an average of models cannot be trained; train its members and average them "
            "again"
        )


def _in_memory(array: np.ndarray, dtype: DTypeLike, may_give: bool) -> np.ndarray:
    """``array`` itself if that may be given away, else a copy; in rows and of ``dtype``."""
    if may_give:
        return np.array(array, dtype, order="C", copy=None)
    copy = aligned_empty(array.shape, dtype)
    copy[...] = array
    return copy
