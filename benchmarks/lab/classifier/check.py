"""The check ``sif-classifier``: the supervised classifier of the SIF paper (A.2, A.3)."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from lab.classifier.objective import (
    Head,
    blocks,
    branches,
    class_targets,
    forward_tasks,
    loss_tasks,
    score_targets,
)
from sentemb.gradients.check_options import SCALE
from sentemb.gradients.problem import CheckedProblem
from sentemb.gradients.whole_batch import BatchForms, in_parts
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers

_EXAMPLES, _DIM, _MAP_DIM = 7, 6, 8
_LOWEST, _HIGHEST = 1, 5
_LABELS = {"entailment": 3, "sentiment": 2}


class SIFClassifier(CheckedProblem):
    """The loss of made-up examples, once on fixed vectors and once on embeddings of a tower.

    The fixed vectors (side ``fixed``) pass through the map W_p. The embeddings of a tower (side
    ``tower``) are parameters themselves, the block ``h``: the backward pass of a tower
    starts from the gradient there.

    The task "similarity" has scores of pairs from 1 to 5, "entailment" three labels of pairs,
    "sentiment" two labels of single texts. ``hidden`` is the number of units of the hidden layer.
    """

    name = "sif-classifier"

    def __init__(self, task: str, hidden: int, seed: int) -> None:
        self.settings = {"task": task, "hidden": hidden, "seed": seed}
        self.rng = rng = np.random.default_rng(seed)
        paired = task != "sentiment"
        classes = _LABELS.get(task, _HIGHEST - _LOWEST + 1)
        self._targets = _made_up_targets(task, classes, _EXAMPLES, rng)
        self._inputs = {
            side: _made_up_inputs(_EXAMPLES, paired, rng) for side in ("fixed", "tower")
        }
        self._heads = {
            side: Head(_DIM, paired, hidden, classes, map_dim)
            for side, map_dim in (("fixed", _MAP_DIM), ("tower", 0))
        }
        self._weights = {
            side: {
                name: SCALE * rng.standard_normal(shape) for name, shape in head.shapes().items()
            }
            for side, head in self._heads.items()
        }
        self.parameters = {side: blocks(weights) for side, weights in self._weights.items()}
        # One row per text, as a tower returns its embeddings.
        self.parameters["tower"]["h"] = self._inputs["tower"].T
        self._workers = Workers(1)

    def loss(self) -> float:
        passes = (self._pass(side, self._inputs[side], self._targets) for side in self._heads)
        return float(sum(losses.sum() for losses, _, _ in passes))

    def gradient(self, form: str = "scan") -> dict[str, Arrays]:
        return self._gradient(self._inputs, self._targets)

    def whole_batch(self, n_texts: int) -> Iterator[BatchForms]:
        """As many examples; each has a share in the mean loss of all."""
        rng, paired = np.random.default_rng(self.settings["seed"]), self._heads["fixed"].paired
        targets = _made_up_targets(self.settings["task"], self._targets.shape[1], n_texts, rng)
        inputs = {side: _made_up_inputs(n_texts, paired, rng) for side in self._heads}
        columns = np.arange(inputs["tower"].shape[1]).reshape(-1, n_texts)

        def of(examples: slice) -> Arrays:
            chosen = columns[:, examples].ravel()
            gradients = self._gradient(
                {side: np.take(array, chosen, axis=1) for side, array in inputs.items()},
                targets[examples],
            )
            h = np.zeros(inputs["tower"].T.shape)
            h[chosen] = gradients["tower"]["h"]
            gradients["tower"]["h"] = h
            share = len(targets[examples]) / n_texts
            return {
                f"{side}.{name}": share * array
                for side, of_side in gradients.items()
                for name, array in of_side.items()
            }

        yield in_parts(of, n_texts)

    def branches(self) -> bytes:
        """The signs of h_L - h_R of each pair: |h_L - h_R| has a kink at 0."""
        if not self._heads["fixed"].paired:
            return b""
        passes = (
            self._workers.together(
                forward_tasks(head, self._weights[side], self._inputs[side], Workspace())
            )[0]
            for side, head in self._heads.items()
        )
        return b"".join(map(branches, passes))

    def _gradient(
        self, inputs: dict[str, np.ndarray], targets: NDArray[np.float64]
    ) -> dict[str, Arrays]:
        gradients = {}
        for side in self._heads:
            _, gradient, dH = self._pass(side, inputs[side], targets)
            gradients[side] = blocks(gradient)
            if side == "tower":
                gradients[side]["h"] = dH.T
        return gradients

    def _pass(
        self, side: str, inputs: np.ndarray, targets: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], Arrays, np.ndarray]:
        job = loss_tasks(self._heads[side], self._weights[side], inputs, targets, Workspace())
        ((losses, gradient, dH),) = self._workers.together(job)
        return losses, gradient, dH


def _made_up_inputs(examples: int, paired: bool, rng: np.random.Generator) -> np.ndarray:
    return SCALE * rng.standard_normal((_DIM, examples * (2 if paired else 1)))


def _made_up_targets(
    task: str, classes: int, examples: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Scores with their ends and one integer between, or every label at least once."""
    if task == "similarity":
        scores = [_LOWEST, _HIGHEST, 3, *rng.uniform(_LOWEST, _HIGHEST, max(0, examples - 3))]
        return score_targets(scores[:examples], _LOWEST, _HIGHEST)
    return class_targets(np.arange(examples) % classes, classes)
