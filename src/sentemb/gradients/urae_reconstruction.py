"""The check ``urae-reconstruction``: the loss that the auto-encoder of ``urae`` learns from."""

import numpy as np

from sentemb.gradients.check_options import SCALE
from sentemb.gradients.problem import CheckedProblem
from sentemb.models.pairs import make_pair_model
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
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        self._texts = Texts(rng.integers(0, _WORDS, offsets[-1]).astype(np.int32), offsets)
        self._weights = {
            name: SCALE * rng.standard_normal(shape) / (cells**0.5 if len(shape) > 1 else 1)
            for name, shape in self._model.own_shapes().items()
        }
        self._weights["table"] = rng.standard_normal((_WORDS, _EMBEDDING))
        self._workers = Workers(1)
        self.parameters = {"text": self._named(self._weights)}

    def loss(self) -> float:
        return float(self._pass()[0].mean())

    def gradient(self, form: str = "scan") -> dict[str, Arrays]:
        _, gradient, dX = self._pass()
        table = np.zeros_like(self._weights["table"])
        np.add.at(table, self._texts.word_index, dX)
        return {"text": self._named({**gradient, "table": table})}

    def _named(self, arrays: Arrays) -> Arrays:
        """Views under the names of `URAE.blocks`, with the words as ``W``."""
        return {"W": arrays["table"].T, **self._model.own_blocks(arrays)}

    def _pass(self) -> tuple[np.ndarray, Arrays, np.ndarray]:
        job = self._model.reconstruction_tasks(
            self._weights, self._weights["table"], self._texts, Workspace(), words=True
        )
        losses, gradient, dX = self._workers.together(job)[0]
        return losses, gradient, dX
