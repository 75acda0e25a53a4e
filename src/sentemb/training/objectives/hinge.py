"""The hinge loss of Wieting et al. (ICLR 2016), and its gradient at the embeddings."""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.hinge import (
    all_cosines,
    hinge_pairs,
    nearest_queries,
    nearest_titles,
    set_clicks_apart,
)
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import PRODUCTS, Workers, spread
from sentemb.training.objectives.candidates import BatchCandidates
from sentemb.training.objectives.unit_embeddings import UnitEmbeddings


def hinge_loss(
    Yq: np.ndarray,
    Yd: np.ndarray,
    candidates: BatchCandidates,
    margin: float,
    weights: NDArray[np.floating],
    workers: Workers,
    workspace: Workspace,
) -> tuple[NDArray[np.float64], np.ndarray, np.ndarray, NDArray[np.int32]]:
    """Loss per pair and its gradient with respect to the embeddings.

    For a pair (q, d), t1 the nearest title of the mini-batch that is not clicked for q, and t2 the
    nearest query for which d is not clicked, the first of equally near ones, the loss is
    ``max(0, margin - cos(q, d) + cos(q, t1)) + max(0, margin - cos(q, d) + cos(d, t2))``.
    Without t1 or t2 its term is 0. The gradient takes t1 and t2 as fixed. The margin is delta, in
    cosines.

    ``Yq`` (n_queries, dim) and ``Yd`` (n_titles, dim) float are embeddings. Returns the losses
    (n_pairs,), multiplied by ``weights``; dL/dY of both sides, valid until the workspace is used
    again; and (n_pairs, 2) choices, t1 and t2 of each pair, -1 where the term is 0. The loss has a
    kink where they change.
    """
    of_queries = UnitEmbeddings.of("q", Yq, workspace)
    of_titles = UnitEmbeddings.of("d", Yd, workspace)
    workers.run(of_queries.tasks() + of_titles.tasks())
    Uq, Vq, Ud, Vd = of_queries.U, of_queries.V, of_titles.U, of_titles.V
    n_pairs, n_queries, n_titles = candidates.queries.size, len(Uq), len(Ud)
    S = workspace.empty("S", (n_queries, n_titles), Uq.dtype)
    cost = n_titles * Uq.shape[1] / PRODUCTS
    workers.run(spread(n_queries, all_cosines, S, Uq, np.ascontiguousarray(Ud.T), cost=cost))
    of_clicks = np.empty(n_pairs, Uq.dtype)
    pairs = candidates.queries, candidates.clicked
    set_clicks_apart(of_clicks, S, *pairs, candidates.offsets, candidates.excluded)
    titles, queries = np.empty(n_queries, np.int32), np.empty(n_titles, np.int32)
    of_titles_tasks = spread(n_titles, nearest_queries, queries, S, cost=n_queries)
    workers.run(spread(n_queries, nearest_titles, titles, S, cost=n_titles) + of_titles_tasks)
    losses, choices = np.empty(n_pairs), np.empty((n_pairs, 2), np.int32)
    hinge_pairs(
        Vq,
        Vd,
        losses,
        choices,
        Uq,
        Ud,
        S,
        of_clicks,
        titles,
        queries,
        *pairs,
        margin,
        weights.astype(Uq.dtype),
    )
    workers.run(of_queries.backward_tasks() + of_titles.backward_tasks())
    return losses, Vq, Vd, choices
