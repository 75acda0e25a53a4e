"""Equations (3) to (5): -log softmax over cosines, and its gradient at the embeddings."""

from dataclasses import dataclass

import numpy as np

from sentemb.kernels.cosine_softmax import (
    add_matmul_columns,
    add_matmul_rows,
    add_rows,
    dense_softmax,
    listed_softmax,
    normalise_rows,
    normalise_rows_backward,
)


@dataclass(frozen=True)
class Candidates:
    """Which titles compete for which query; all numbers are places in the mini-batch.

    Attributes
    ----------
    queries, clicked : (n_pairs,) int32
        The pairs.
    offsets, titles : (n_pairs + 1,) int64, (n,) int32
        If ``listed``: the candidates of each pair, its clicked title first. Otherwise every title
        of the batch is a candidate, and these are the exceptions: other titles clicked for the
        same query.
    listed : bool
    """

    queries: np.ndarray
    clicked: np.ndarray
    offsets: np.ndarray
    titles: np.ndarray
    listed: bool


def embedding_loss(Yq, Yd, candidates, gamma, weights, workers, workspace):
    """Loss per pair and its gradient at the embeddings.

    Parameters
    ----------
    Yq, Yd : (n_queries, dim), (n_titles, dim) float
        Embeddings.
    candidates : Candidates
    gamma : float
        The smoothing factor of the softmax.
    weights : (n_pairs,) float
        What each pair counts.
    workers : Workers
    workspace : Workspace

    Returns
    -------
    losses : (n_pairs,) float64
        Times the weight.
    Vq, Vd : as Yq, Yd
        dL/dY, valid until the workspace is used again.
    """
    Uq, Vq, q_norms = _normalised("q", Yq, workspace)
    Ud, Vd, d_norms = _normalised("d", Yd, workspace)
    losses = np.empty(candidates.queries.size)
    weights = weights.astype(Yq.dtype)
    if candidates.listed:
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
            np.empty(longest, Yq.dtype),
        )
    else:
        n_pairs, n_titles = candidates.queries.size, len(Ud)
        S = workspace.empty("S", (n_pairs, n_titles), Yq.dtype)
        U_pairs = Uq[candidates.queries]
        V_pairs = workspace.zeros("V_pairs", U_pairs.shape, Yq.dtype)
        workers.over(
            n_pairs,
            dense_softmax,
            S,
            losses,
            U_pairs,
            np.ascontiguousarray(Ud.T),
            candidates.clicked,
            candidates.offsets,
            candidates.titles,
            gamma,
            weights,
        )
        workers.over(n_pairs, add_matmul_rows, V_pairs, S, Ud)
        workers.over(n_titles, add_matmul_columns, Vd, S, U_pairs)
        add_rows(Vq, candidates.queries, V_pairs)
    normalise_rows_backward(Vq, Uq, q_norms)
    normalise_rows_backward(Vd, Ud, d_norms)
    return losses, Vq, Vd


def _normalised(side, Y, workspace):
    """(U, zeros like U, norms) of embeddings Y."""
    U = workspace.empty(f"U_{side}", Y.shape, Y.dtype)
    norms = workspace.empty(f"norms_{side}", (len(Y),), Y.dtype)
    normalise_rows(U, norms, Y)
    return U, workspace.zeros(f"V_{side}", Y.shape, Y.dtype), norms
