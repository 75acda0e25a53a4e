"""Equations (3) to (5): -log softmax over cosines, and its gradient at the embeddings."""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.cosine_softmax import (
    add_matmul_columns,
    add_matmul_rows,
    add_rows,
    dense_softmax,
    listed_softmax,
    normalise_rows,
    soft_targets,
    taught_softmax,
)
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import KernelTask
from sentemb.system.parallel import PAYS, PRODUCTS, Workers, one_after_the_other, spans, spread
from sentemb.training.objectives.candidates import BatchCandidates, Candidates, ListedCandidates
from sentemb.training.objectives.unit_embeddings import UnitEmbeddings

# What a cosine costs in the softmax, and a number of an embedding that is gathered or transposed.
_SOFTMAX, _LAID_OUT = 8, 8
# The scale of a teacher's cosines: the one with which most are trained.
_TEACHER_SCALE = 20.0
# With fewer pairs in a part, the titles are read too often.
_LEAST_PAIRS = 32


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
    queries = UnitEmbeddings.of("q", Yq, workspace)
    titles = UnitEmbeddings.of("d", Yd, workspace)
    losses = np.empty(candidates.queries.size)
    weights = weights.astype(Yq.dtype)
    if isinstance(candidates, ListedCandidates):
        workers.run(queries.tasks() + titles.tasks())
        _listed_loss(losses, queries, titles, candidates, gamma, weights)
        workers.run(queries.backward_tasks() + titles.backward_tasks())
    else:
        _batch_loss(losses, queries, titles, candidates, gamma, weights, workers, workspace)
    return losses, queries.V, titles.V


def _listed_loss(
    losses: np.ndarray,
    queries: UnitEmbeddings,
    titles: UnitEmbeddings,
    candidates: ListedCandidates,
    gamma: float,
    weights: np.ndarray,
) -> None:
    """Write ``losses`` and add dL/dU to V of both sides."""
    longest = int(np.diff(candidates.offsets).max(initial=0))
    listed_softmax(
        queries.V,
        titles.V,
        losses,
        queries.U,
        titles.U,
        candidates.queries,
        candidates.offsets,
        candidates.titles,
        gamma,
        weights,
        np.empty(longest, queries.U.dtype),
    )


def _batch_loss(
    losses: np.ndarray,
    queries: UnitEmbeddings,
    titles: UnitEmbeddings,
    candidates: BatchCandidates,
    gamma: float,
    weights: np.ndarray,
    workers: Workers,
    workspace: Workspace,
) -> None:
    """Write ``losses`` and dL/dY of both sides: all cosines of pairs and titles are a matrix."""
    (n_titles, dim), dtype = titles.U.shape, titles.U.dtype
    of_query = candidates.queries
    n_pairs = of_query.size
    S = workspace.empty("S", (n_pairs, n_titles), dtype)
    U_pairs = workspace.empty("U_pairs", (n_pairs, dim), dtype)
    V_pairs = workspace.empty("V_pairs", (n_pairs, dim), dtype)
    UdT = workspace.empty("UdT", (dim, n_titles), dtype)

    def lay_out_titles(first: int, end: int) -> None:
        titles.begin(slice(first, end))
        UdT[:, first:end] = titles.U[first:end].T

    def lay_out_pairs(first: int, end: int) -> None:
        rows = slice(first, end)
        np.take(queries.Y, of_query[rows], axis=0, out=U_pairs[rows], mode="clip")  # copies once
        normalise_rows(U_pairs[rows], np.empty(end - first, dtype), U_pairs[rows])
        V_pairs[rows] = 0

    laying_out = spread(n_pairs, lay_out_pairs, cost=_LAID_OUT * dim)
    laying_out += spread(n_titles, lay_out_titles, cost=_LAID_OUT * dim)
    workers.run([*queries.tasks(), *laying_out])
    left_out = candidates.offsets, candidates.excluded
    cost = n_titles * (2 * dim / PRODUCTS + _SOFTMAX)
    steps: list[KernelTask] = []
    if candidates.targets is None:
        target, softmax = candidates.clicked, dense_softmax
    else:
        target, softmax = workspace.empty("T", (n_pairs, n_titles), dtype), taught_softmax
        Tq, TdT, shares = candidates.targets.arrays(dtype)
        of_click = candidates.clicked, *left_out
        steps.append((soft_targets, target, Tq, TdT, shares, *of_click, _TEACHER_SCALE))
        cost += n_titles * (len(TdT) / PRODUCTS + _SOFTMAX)
    steps.append((softmax, S, losses, U_pairs, UdT, target, *left_out, gamma, weights))
    steps.append((add_matmul_rows, V_pairs, S, titles.U))  # while rows of S are in the cache
    workers.run(
        [
            (one_after_the_other, *((*step, first, end) for step in steps))
            for _, first, end in spans(n_pairs, min(cost, PAYS / _LEAST_PAIRS))
        ]
    )

    def end_titles(first: int, end: int) -> None:
        add_matmul_columns(titles.V, S, U_pairs, first, end)
        titles.turn_back(slice(first, end))

    def end_queries() -> None:
        add_rows(queries.V, of_query, V_pairs)
        queries.turn_back(slice(None))

    # Columns of S are not as near each other as its rows.
    at_titles = spread(n_titles, end_titles, cost=2 * n_pairs * dim / PRODUCTS)
    workers.run([(end_queries,), *at_titles])
