"""Which loss is minimised: chosen here for training and for the gradient check alike."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers
from sentemb.training.objectives.candidates import BatchCandidates, Candidates
from sentemb.training.objectives.hinge import hinge_loss
from sentemb.training.objectives.objective_options import HINGE, MARGIN, OBJECTIVE, SOFTMAX
from sentemb.training.objectives.softmax import embedding_loss


class LossAtEmbeddings(NamedTuple):
    """A loss and its gradient at the embeddings.

    losses : (n_pairs,), multiplied by the weights of the pairs
    Vq, Vd : (n_queries, dim), (n_titles, dim) float, dL/dY, valid until the workspace is used again
    choices : (n_pairs, k), the picks of the loss; it has a kink wherever these numbers change. k is
        0 for a loss without kinks.
    """

    losses: NDArray[np.float64]
    Vq: np.ndarray
    Vd: np.ndarray
    choices: NDArray[np.int32]


@dataclass(frozen=True)
class Objective:
    """A loss, "softmax" with its scale ``gamma`` or "hinge" with its ``margin``."""

    name: str = OBJECTIVE.default
    gamma: float = 10.0
    margin: float = MARGIN.default

    @property
    def needs_batch(self) -> bool:
        """Whether all titles of a mini-batch must compete, as in `BatchCandidates`."""
        return self.name == HINGE

    def at(
        self,
        Yq: np.ndarray,
        Yd: np.ndarray,
        candidates: Candidates,
        weights: NDArray[np.floating],
        workers: Workers,
        workspace: Workspace,
    ) -> LossAtEmbeddings:
        """The loss at some embeddings; see `embedding_loss` and `hinge_loss`."""
        if self.name == HINGE:
            assert isinstance(candidates, BatchCandidates)
            arguments = candidates, self.margin, weights, workers, workspace
            return LossAtEmbeddings(*hinge_loss(Yq, Yd, *arguments))
        assert self.name == SOFTMAX
        losses, Vq, Vd = embedding_loss(Yq, Yd, candidates, self.gamma, weights, workers, workspace)
        return LossAtEmbeddings(losses, Vq, Vd, np.empty((losses.size, 0), np.int32))
