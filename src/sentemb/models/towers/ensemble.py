"""Several models as one: their embeddings, each of unit length, joined to one vector.

The cosine of two such vectors is the mean of the cosines of the members, unless a member has no
vector of a text. Two models that were trained from different seeds make different mistakes, so
their mean ranks better than either, and changes less from one training to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.errors import SentembError
from sentemb.kernels.cosine_softmax import normalise_rows, normalise_rows_backward
from sentemb.models.contracts import GradientPoint
from sentemb.models.towers.encoder import Embed, Encoder, ForwardPass
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.registry import ENSEMBLE
from sentemb.models.towers.towers import Towers, distinct_sides
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary

_TABLE = "table"


@dataclass
class EnsemblePass(ForwardPass):
    """State for the backward pass: for each member its pass, U and ||y||."""

    members: list[tuple[ForwardPass, np.ndarray, np.ndarray]] = field(default_factory=list)


class Ensemble(Encoder):
    """Encoders next to each other, which share the vocabulary and nothing else.

    The stacked arrays are ``table`` (n_features, width), the input weights of all members side by
    side, and every other array of member k as ``k.name``. The blocks of member k are
    ``member<k>.name``. There are at least two members, none of them an ensemble.
    """

    name = ENSEMBLE

    def __init__(self, members: Sequence[Encoder]) -> None:
        if len(members) < 2 or any(isinstance(member, Ensemble) for member in members):
            raise SentembError("an ensemble has at least two members, none of them an ensemble")
        self.members = tuple(members)

    def settings(self) -> dict[str, Any]:
        """The members by name, with their settings, as a model's configuration file has them."""
        members = [{"model": member.name, **member.settings()} for member in self.members]
        return {"cells": self.dim, "members": members}

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        return sum(member.dim for member in self.members)

    @property
    def width(self) -> int:
        """Length of a projected word."""
        return sum(member.width for member in self.members)

    def _columns(self) -> Iterator[tuple[int, Encoder, slice, slice]]:
        """Number and shape of each member, and its columns in ``table`` and in an embedding."""
        widths = [0, *accumulate(each.width for each in self.members)]
        dims = [0, *accumulate(each.dim for each in self.members)]
        for k, member in enumerate(self.members):
            yield k, member, slice(widths[k], widths[k + 1]), slice(dims[k], dims[k + 1])

    def each_member(self, weights: Arrays) -> Iterator[tuple[Encoder, Arrays, slice]]:
        """Each member, its weights under its own names as views, and its columns in ``table``."""
        for k, member, columns, _ in self._columns():
            yield member, _member_weights(weights, k, columns), columns

    # -- weights ------------------------------------------------------------------------------

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        shapes: dict[str, tuple[int, ...]] = {_TABLE: (n_features, self.width)}
        for k, member in enumerate(self.members):
            member_shapes = member.shapes(n_features)
            shapes |= {
                f"{k}.{name}": member_shapes[name] for name in member_shapes if name != _TABLE
            }
        return shapes

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays under the paper's names, after ``member<k>.``."""
        return {
            f"member{k}.{name}": block
            for k, member, columns, _ in self._columns()
            for name, block in member.blocks(_member_weights(weights, k, columns)).items()
        }

    def word_bias(self, weights: Arrays, dtype: DTypeLike) -> np.ndarray:
        """The vector that is added to every projected word: (width,) of ``dtype``."""
        return np.concatenate(
            [
                member.word_bias(_member_weights(weights, k, columns), dtype)
                for k, member, columns, _ in self._columns()
            ]
        )

    # -- passes -------------------------------------------------------------------------------

    def embed(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """Embed texts without state for a backward pass, as `Encoder.embed`."""
        return self.embedder(weights)(P, word_index, offsets, workers)

    def embedder(self, weights: Arrays) -> Embed:
        """`embed` for many calls with these weights, which must not change meanwhile."""
        members = [
            (member.embedder(_member_weights(weights, k, columns)), columns, part)
            for k, member, columns, part in self._columns()
        ]
        return partial(self._embed, members)

    def _embed(
        self,
        members: list[tuple[Embed, slice, slice]],
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        # P may hold far more words than these texts, and the kernels want whole rows.
        used, inverse = np.unique(word_index, return_inverse=True)
        index = inverse.astype(np.int32)
        Y = np.empty((offsets.size - 1, self.dim), P.dtype)
        for embed, columns, part in members:
            words = np.ascontiguousarray(P[used, columns])
            Y[:, part], _ = _units(embed(words, index, offsets, workers))
        return Y

    def forward_tasks(
        self, point: GradientPoint, layout: Layout, workspace: Workspace
    ) -> Job[ForwardPass]:
        """`forward` as a job for `Workers.together`, for weights as they are stored."""
        shape = layout.batch.n_texts, self.dim
        joined = EnsemblePass(layout, np.empty(shape, point.input_rows.dtype))
        for k, member, columns, part in self._columns():
            member_weights = _member_weights(point.weights, k, columns)
            member_weights[_TABLE] = np.ascontiguousarray(member_weights[_TABLE])
            member_point = point_of(member_weights, layout.batch.input_rows)
            # Each member needs its own workspace: the backward pass reads what it holds.
            done = yield from member.forward_tasks(member_point, layout, Workspace())
            U, norms = _units(done.embeddings)
            joined.embeddings[:, part] = U
            joined.members.append((done, U, norms))
        return joined

    def backward_tasks(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        truncation: Truncation | None,
        workspace: Workspace,
    ) -> Job[Arrays]:
        """`backward` as a job for `Workers.together`, as `Encoder.backward_tasks`.

        At a member the gradient is (V - (V . u) u) / ||y||, that of its vector's direction.
        """
        assert isinstance(done, EnsemblePass)
        gradient: Arrays = {}
        words = []
        for k, member, columns, part in self._columns():
            member_pass, U, norms = done.members[k]
            dY = np.ascontiguousarray(V[:, part])
            normalise_rows_backward(dY, U, norms)
            member_weights = _member_weights(weights, k, columns)
            of_member = yield from member.backward_tasks(
                member_weights, member_pass, dY, truncation, Workspace()
            )
            words.append(of_member.pop("words"))
            gradient |= {f"{k}.{name}": array for name, array in of_member.items()}
        return gradient | {"words": np.hstack(words)}


def joined(models: Sequence[Towers]) -> Towers:
    """The ensemble of some models; they are copied.

    Its vocabulary has the features of all; a feature that a member does not know has a zero row
    there. The towers are shared if those of all members are. Raises `SentembError` if there are
    fewer than two models, if one is an ensemble, or if they split texts differently.
    """
    if len(models) < 2:
        raise SentembError("an average needs at least two models; give more")
    if any(isinstance(model.encoder, Ensemble) for model in models):
        raise SentembError("one of the models is an average itself; average its members instead")
    if len({model.vocabulary.splitting for model in models}) > 1:
        raise SentembError(
            "the models split texts into words in different ways and cannot be averaged; train "
            "them from the same kind of model"
        )
    encoder = Ensemble([model.encoder for model in models])
    vocabularies = [model.vocabulary for model in models]
    vectors = [
        None if each.vectors is None else each.vectors.fingerprint() for each in vocabularies
    ]
    if len(set(vectors)) > 1:
        raise SentembError(
            "the models have different word vectors, or not all have some, and cannot be averaged; "
            "train them with the same vectors on the same log"
        )
    vocabulary = Vocabulary(
        dict.fromkeys(trigram for each in vocabularies for trigram in each.trigrams),
        dict.fromkeys(word for each in vocabularies for word in each.words),
        vocabularies[0].splitting,
        vocabularies[0].vectors,
    )
    dtype = np.result_type(*(model.dtype for model in models))
    sides = distinct_sides(all(model.shared for model in models))
    weights = {
        side: {
            name: np.zeros(shape, dtype) for name, shape in encoder.shapes(len(vocabulary)).items()
        }
        for side in sides
    }
    for (k, _, columns, _), model in zip(encoder._columns(), models, strict=True):
        rows = vocabulary.rows_of(model.vocabulary)
        for side in sides:
            for name, array in model.weights[side].items():
                if name == _TABLE:
                    weights[side][_TABLE][rows, columns] = array
                else:
                    weights[side][f"{k}.{name}"][...] = array
    return Towers.of(encoder, vocabulary, weights)


def _member_weights(weights: Arrays, k: int, columns: slice) -> Arrays:
    """The arrays of member k under its own names, as views."""
    prefix = f"{k}."
    named = {
        name.removeprefix(prefix): weights[name] for name in weights if name.startswith(prefix)
    }
    return {_TABLE: weights[_TABLE][:, columns], **named}


def _units(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows of Y (n_texts, dim) at unit length, and their lengths; a zero row stays zero."""
    U, norms = np.empty_like(Y), np.empty(len(Y), Y.dtype)
    normalise_rows(U, norms, Y)
    return U, norms
