"""A classifier of texts or of pairs of texts on their embeddings, and its gradient by hand.

Tai et al., *Improved Semantic Representations From Tree-Structured Long Short-Term Memory Networks*
(ACL 2015), section 4; Arora et al., *A Simple but Tough-to-Beat Baseline for Sentence Embeddings*
(ICLR 2017), appendix A.2, put a linear map under it where the embeddings are fixed vectors.
docs/gradients.md, section 13, has the equations.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from lab.classifier.kernels import (
    divergence_columns,
    hidden_errors,
    hidden_rows,
    pair_features,
    pair_features_backward,
    softmax_columns,
)
from sentemb.kernels.layers import product_rows
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import one_after_the_other, spans

# The blocks under the names of the papers, by the names of the arrays.
BLOCKS = {
    "map": "W_p",
    "hidden": "W_h",
    "hidden_bias": "b_h",
    "output": "W_o",
    "output_bias": "b_o",
}


class Head(NamedTuple):
    """The shape of a classifier; its weights are a dict of arrays.

    ========================  ====================  ==============================================
    name                      shape                 holds
    ========================  ====================  ==============================================
    ``map``                   (map_dim, dim)        W_p of A.2, only if ``map_dim`` is not 0
    ``hidden``                (hidden, features)    [W_x, W_+] of Tai et al.; one W for single texts
    ``hidden_bias``           (hidden,)             b_h
    ``output``                (classes, hidden)     W_o, their W_p
    ``output_bias``           (classes,)            b_o, their b_p
    ========================  ====================  ==============================================

    Attributes
    ----------
    dim : int
        Length of an embedding.
    paired : bool
        Whether an example is a pair of texts.
    hidden, classes : int
    map_dim : int
        Length of an embedding after the linear map; 0 leaves the map out. A.2 prints W_p as
        300 x d_p; for h = W_p v it has to be d_p x 300.
    """

    dim: int
    paired: bool
    hidden: int
    classes: int
    map_dim: int = 0

    @property
    def features(self) -> int:
        """Input size of the hidden layer."""
        return (self.map_dim or self.dim) * (2 if self.paired else 1)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays by name."""
        of_map = {"map": (self.map_dim, self.dim)} if self.map_dim else {}
        return of_map | {
            "hidden": (self.hidden, self.features),
            "hidden_bias": (self.hidden,),
            "output": (self.classes, self.hidden),
            "output_bias": (self.classes,),
        }

    def initialise(self, rng: np.random.Generator, dtype: DTypeLike = np.float32) -> Arrays:
        """Matrices uniform in ±sqrt(6 / (rows + columns)) (Glorot and Bengio), biases 0."""
        weights = {}
        for name, shape in self.shapes().items():
            limit = math.sqrt(6 / sum(shape)) if len(shape) == 2 else 0.0
            weights[name] = rng.uniform(-limit, limit, shape).astype(dtype)
        return weights


def blocks(arrays: Arrays) -> Arrays:
    """Weights or a gradient under the names of the papers."""
    return {BLOCKS[name]: array for name, array in arrays.items()}


# -- targets ----------------------------------------------------------------------------------


def score_targets(
    scores: Sequence[float] | NDArray[np.floating], lowest: int, highest: int
) -> NDArray[np.float64]:
    """The sparse distributions over the scores ``lowest`` to ``highest`` with these expectations.

    Equation (16) of Tai et al.: a score of 3.6 is .4 at 3 and .6 at 4. Returns (k, highest - lowest
    + 1).
    """
    values = np.asarray(scores, np.float64)
    targets = np.zeros((values.size, highest - lowest + 1))
    below = np.clip(np.floor(values), lowest, highest - 1).astype(np.int64)
    rows = np.arange(values.size)
    targets[rows, below - lowest] = below + 1 - values
    targets[rows, below - lowest + 1] = values - below
    return targets


def class_targets(classes: NDArray[np.integer], count: int) -> NDArray[np.float64]:
    """All of the probability at one class each: (k, count) float64."""
    return np.eye(count)[classes]


# -- forward and backward ---------------------------------------------------------------------


@dataclass
class HeadPass:
    """Float arrays of a forward pass that the backward pass needs.

    inputs : (dim, n_texts), input of the map; without a map, the embeddings themselves
    H : (m, n_texts), the embeddings, of the first and then of the second texts
    X : (features, k), input of the hidden layer
    Z : (hidden, k), the hidden layer
    O : (classes, k), before the softmax
    """

    inputs: np.ndarray
    H: np.ndarray
    X: np.ndarray
    Z: np.ndarray
    O: np.ndarray


def forward_tasks(
    head: Head, weights: Arrays, inputs: np.ndarray, space: Workspace
) -> Job[HeadPass]:
    """The layers up to the softmax, as a job for `Workers.together`.

    ``inputs`` (dim, n_texts) float has one column per text; in pairs all first texts, then all
    second ones. ``space`` holds the returned pass until it is used again.
    """
    dtype, n_texts = inputs.dtype, inputs.shape[1]
    count = n_texts // 2 if head.paired else n_texts
    H = X = inputs
    if head.map_dim:
        H = X = space.empty("H", (head.map_dim, n_texts), dtype)
    if head.paired:
        X = space.empty("X", (head.features, count), dtype)
    tasks: list[KernelTask] = []
    for _, low, high in spans(len(H)):
        steps: list[KernelTask] = []
        if head.map_dim:
            steps.append((product_rows, H, weights["map"], inputs, low, high))
        if head.paired:
            steps.append((pair_features, X, H, low, high))
        tasks.append((one_after_the_other, *steps))
    yield tasks
    Z = space.empty("Z", (head.hidden, count), dtype)
    layer = (Z, weights["hidden"], weights["hidden_bias"], X)
    yield [(hidden_rows, *layer, low, high) for _, low, high in spans(head.hidden)]
    O = space.empty("O", (head.classes, count), dtype)
    product_rows(O, weights["output"], Z, 0, head.classes)
    O += weights["output_bias"][:, None]
    return HeadPass(inputs, H, X, Z, O)


def probability_tasks(
    head: Head, weights: Arrays, inputs: np.ndarray, space: Workspace
) -> Job[np.ndarray]:
    """The probability of every class, (k, classes) float, as a job; parameters as above."""
    done = yield from forward_tasks(head, weights, inputs, space)
    softmax_columns(done.O)
    return done.O.T.copy()


def loss_tasks(
    head: Head,
    weights: Arrays,
    inputs: np.ndarray,
    targets: NDArray[np.floating],
    space: Workspace,
) -> Job[tuple[NDArray[np.float64], Arrays, np.ndarray]]:
    """The loss of every example and its gradient, as a job for `Workers.together`.

    The loss is KL(target || prediction), equation (17) of Tai et al., divided by the number of
    examples; for one certain class it is the cross-entropy.

    ``targets`` (k, classes) are those of the softmax; rows sum to 1. The other parameters are as
    for `forward_tasks`. Returns the losses (k,), which sum to the mean loss; the gradient in the
    shapes of ``weights``, valid until the workspace is used again; and dH (m, n_texts) float, the
    gradient at the embeddings, after the map if there is one.
    """
    done = yield from forward_tasks(head, weights, inputs, space)
    dtype, count = inputs.dtype, len(targets)
    losses = np.empty(count)
    dO = done.O
    divergence_columns(dO, losses, np.ascontiguousarray(targets.T, np.float64), 1 / count)
    gradient = {name: space.empty(f"d{name}", a.shape, dtype) for name, a in weights.items()}
    dZ = space.empty("dZ", done.Z.shape, dtype)
    hidden_errors(dZ, weights["output"], dO, done.Z, 0, head.hidden)
    product_rows(gradient["output"], dO, np.ascontiguousarray(done.Z.T), 0, head.classes)
    gradient["output_bias"][...] = dO.sum(axis=1)
    gradient["hidden_bias"][...] = dZ.sum(axis=1)

    rows_of_X, rows_of_inputs = np.ascontiguousarray(done.X.T), np.ascontiguousarray(inputs.T)
    into_hidden = [
        (product_rows, gradient["hidden"], dZ, rows_of_X, low, high)
        for _, low, high in spans(head.hidden)
    ]
    dX = space.empty("dX", done.X.shape, dtype)
    dH = space.empty("dH", done.H.shape, dtype) if head.paired else dX
    into_texts = []
    back = (dX, weights["hidden"].T, dZ)
    m = len(done.H)
    for _, low, high in spans(m):
        steps: list[KernelTask] = [(product_rows, *back, low, high)]
        if head.paired:
            steps.append((product_rows, *back, m + low, m + high))
            steps.append((pair_features_backward, dH, dX, done.H, low, high))
        if head.map_dim:
            steps.append((product_rows, gradient["map"], dH, rows_of_inputs, low, high))
        into_texts.append((one_after_the_other, *steps))
    yield [*into_hidden, *into_texts]
    return losses, gradient, dH


def branches(done: HeadPass) -> bytes:
    """Which side of |h_L - h_R| every pair is on; the loss has a kink wherever this changes."""
    left, right = np.split(done.H, 2, axis=1)
    return np.sign(left - right).astype(np.int8).tobytes()
