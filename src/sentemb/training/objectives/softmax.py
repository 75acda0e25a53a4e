"""Equations (3) to (5): -log softmax over cosines, and its gradient at the embeddings."""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.cosine_softmax import (
    add_matmul_columns,
    add_matmul_rows,
    add_rows,
    dense_softmax,
    listed_softmax,
    normalise_rows_backward,
)
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers, one_after_the_other, spans
from sentemb.training.objectives.candidates import BatchCandidates, Candidates, ListedCandidates
from sentemb.training.objectives.unit_embeddings import unit_embeddings


def embedding_loss(
    Yq: np.ndarray,
    Yd: np.ndarray,
    candidates: Candidates,
    gamma: float,
    weights: NDArray[np.floating],
    workers: Workers,
    workspace: Workspace,
) -> tuple[NDArray[np.float64], np.ndarray, np.ndarray]:
    """Loss per pair, a term of equation (4), and its gradient with respect to the embeddings.

    ``Yq`` (n_queries, dim) and ``Yd`` (n_titles, dim) float are embeddings, ``gamma`` is the
    softmax scale, and ``candidates`` are the titles that compete for each query. Returns the losses
    (n_pairs,) float64, multiplied by ``weights``, and dL/dY of both sides, which are valid until
    the workspace is used again.
    """
    Uq, Vq, q_norms = unit_embeddings("q", Yq, workspace)
    Ud, Vd, d_norms = unit_embeddings("d", Yd, workspace)
    losses = np.empty(candidates.queries.size)
    weights = weights.astype(Yq.dtype)
    if isinstance(candidates, ListedCandidates):
        _listed_loss(losses, Vq, Vd, Uq, Ud, candidates, gamma, weights)
    else:
        _batch_loss(losses, Vq, Vd, Uq, Ud, candidates, gamma, weights, workers, workspace)
    normalise_rows_backward(Vq, Uq, q_norms)
    normalise_rows_backward(Vd, Ud, d_norms)
    return losses, Vq, Vd


def _listed_loss(
    losses: np.ndarray,
    Vq: np.ndarray,
    Vd: np.ndarray,
    Uq: np.ndarray,
    Ud: np.ndarray,
    candidates: ListedCandidates,
    gamma: float,
    weights: np.ndarray,
) -> None:
    """Write ``losses`` and add dL/dU to ``Vq`` and ``Vd``."""
    longest = int(np.diff(candidates.offsets).max(initial=0))
    listed_softmax(
        Vq,
        Vd,
        losses,
        Uq,
        Ud,
        candidates.queries,
        candidates.offsets,
        candidates.titles,
        gamma,
        weights,
        np.empty(longest, Uq.dtype),
    )


def _batch_loss(
    losses: np.ndarray,
    Vq: np.ndarray,
    Vd: np.ndarray,
    Uq: np.ndarray,
    Ud: np.ndarray,
    candidates: BatchCandidates,
    gamma: float,
    weights: np.ndarray,
    workers: Workers,
    workspace: Workspace,
) -> None:
    """As `_listed_loss`, over the matrix of the cosines of all pairs with all titles."""
    n_pairs, n_titles = candidates.queries.size, len(Ud)
    S = workspace.empty("S", (n_pairs, n_titles), Uq.dtype)
    U_pairs = workspace.empty("U_pairs", (n_pairs, Uq.shape[1]), Uq.dtype)
    np.take(Uq, candidates.queries, axis=0, out=U_pairs, mode="clip")  # "raise" would copy twice
    UdT = workspace.empty("UdT", Ud.T.shape, Ud.dtype)
    UdT[...] = Ud.T
    V_pairs = workspace.zeros("V_pairs", U_pairs.shape, Uq.dtype)
    of_pairs = candidates.clicked, candidates.offsets, candidates.excluded, gamma, weights
    loss = dense_softmax, S, losses, U_pairs, UdT, *of_pairs
    product = add_matmul_rows, V_pairs, S, Ud  # while the rows of S are in the processor's cache
    workers.run(
        [
            (one_after_the_other, (*loss, first, end), (*product, first, end))
            for _, first, end in spans(n_pairs)
        ]
    )
    workers.over(n_titles, add_matmul_columns, Vd, S, U_pairs)
    add_rows(Vq, candidates.queries, V_pairs)
