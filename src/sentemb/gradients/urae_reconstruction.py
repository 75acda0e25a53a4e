"""The check ``urae-reconstruction``: the loss that the auto-encoder of ``urae`` learns from."""

from collections.abc import Iterator, Sequence

import numpy as np

from sentemb.gradients.check_options import SCALE
from sentemb.gradients.problem import CheckedProblem
from sentemb.gradients.whole_batch import BatchForms, in_parts, made_up_lengths
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.pair_model import Texts
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers

_WORDS, _EMBEDDING = 12, 4


class URAEReconstruction(CheckedProblem):
    """The mean loss of made-up texts over 12 words, by the auto-encoder and by the words.

    ``cells`` is the length of the vector of a text; ``lengths`` are the words of the texts.
    """

    name = "urae-reconstruction"

    def __init__(self, cells: int, lengths: tuple[int, ...], seed: int) -> None:
        self.settings = {"cells": cells, "lengths": lengths, "seed": seed}
        self.rng = rng = np.random.default_rng(seed)
        self._model = make_pair_model(
            "urae", embedding=_EMBEDDING, cells=cells, max_words=max(lengths)
        )
        self._texts = self._made_up_texts(lengths, rng)
        self._weights = {
            name: SCALE * rng.standard_normal(shape) / (cells**0.5 if len(shape) > 1 else 1)
            for name, shape in self._model.own_shapes().items()
        }
        self._weights["table"] = rng.standard_normal((_WORDS, _EMBEDDING))
        self._workers = Workers(1)
        self.parameters = {"text": self._named(self._weights)}

    def loss(self) -> float:
        return float(self._pass(self._texts)[0].mean())

    def gradient(self, form: str = "scan") -> dict[str, Arrays]:
        return {"text": self._gradient(self._texts)}

    def whole_batch(self, n_texts: int) -> Iterator[BatchForms]:
        rng = np.random.default_rng(self.settings["seed"])
        texts = self._made_up_texts(made_up_lengths(n_texts, rng), rng)

        def of(part: slice) -> Arrays:
            numbers = np.arange(n_texts)[part]
            gradient, share = self._gradient(texts.take(numbers)), numbers.size / n_texts
            return {name: share * array for name, array in gradient.items()}

        yield in_parts(of, n_texts)

    def _named(self, arrays: Arrays) -> Arrays:
        """Views under the names of `URAE.blocks`, with the words as ``W``."""
        return {"W": arrays["table"].T, **self._model.own_blocks(arrays)}

    @staticmethod
    def _made_up_texts(lengths: Sequence[int], rng: np.random.Generator) -> Texts:
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Texts(rng.integers(0, _WORDS, offsets[-1]).astype(np.int32), offsets)

    def _gradient(self, texts: Texts) -> Arrays:
        _, gradient, dX = self._pass(texts)
        table = np.zeros_like(self._weights["table"])
        np.add.at(table, texts.word_index, dX)
        return self._named({**gradient, "table": table})

    def _pass(self, texts: Texts) -> tuple[np.ndarray, Arrays, np.ndarray]:
        given = Pass(self._weights, self._weights["table"], Workspace())
        job = self._model.reconstruction_tasks(given, texts, words=True)
        losses, gradient, dX = self._workers.together(job)[0]
        return losses, gradient, dX
