"""The loss of equation (5) and its gradient: at the embeddings, and at every parameter."""

from dataclasses import dataclass

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.cosine_softmax import (
    add_matmul_columns,
    add_matmul_rows,
    add_rows,
    dense_softmax,
    listed_softmax,
    normalise_rows,
    normalise_rows_backward,
)
from sentemb.models.encoder import Workspace
from sentemb.models.recurrent import Truncation
from sentemb.system.parallel import Workers


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


def loss_and_gradient(
    model,
    queries,
    titles,
    negatives,
    gamma=10.0,
    form="scan",
    truncate=None,
    truncation="window",
    threads=1,
):
    """The loss of some pairs and its gradient by every parameter, for anyone's own checks.

    Parameters
    ----------
    model : SentenceEncoder
        ``model.astype("float64")`` for comparisons with finite differences.
    queries, titles : list of str
        Pair r is ``queries[r]`` with the clicked title ``titles[r]``.
    negatives : list of list of str
        The unclicked titles of each pair, at least one.
    gamma : float
        The smoothing factor of the softmax.
    form : {"scan", "trace", "printed"}
        See `RecurrentEncoder.backward`.
    truncate : int, optional
        Steps through which errors travel back (the paper's T); by default all.
    truncation : {"window", "cec"}
        What happens beyond them, see `Truncation`.
    threads : int

    Returns
    -------
    loss : float
        L of equation (4), the sum over the pairs, -log softmax(gamma cos) of each.
    gradient : dict of dict of ndarray
        ``gradient["query"]["Wrec1"]`` and so on, named and shaped as `SentenceEncoder.parameters`.
        With shared towers both sides name the same arrays, the whole derivative.

    Raises
    ------
    SentembError
        For lists of different lengths, a text without words, a pair without negatives.
    """
    with Workers(threads) as workers:
        problem = PairProblem(model, queries, titles, negatives, gamma, workers)
        cut = truncation_of(truncate, truncation)
        return problem.loss(), problem.gradient(form, cut)


class PairProblem:
    """Some pairs with their negatives, and the loss of a model on them.

    Parameters as for `loss_and_gradient`. The model's parameters may change between calls.
    """

    def __init__(self, model, queries, titles, negatives, gamma, workers):
        _check_pairs(queries, titles, negatives)
        self.model = model
        self.gamma = gamma
        self._workers = workers
        self._workspace = Workspace()
        self._candidates, texts = _number_texts(queries, titles, negatives)
        self._n_queries = len(texts["query"])
        if model.shared_towers:
            texts = {"query": texts["query"] + texts["document"]}
        self._batches = {side: model.vocabulary.batch(some) for side, some in texts.items()}

    def loss(self):
        """The sum over the pairs, a float."""
        losses, _, _ = self._embedding_loss(self._forward())
        return float(losses.sum())

    def maxima(self):
        """Where max pooling found its maxima in the last pass: bytes, none without pooling.

        The loss has a kink wherever they change.
        """
        places = [
            state["places"]
            for done in self._done.values()
            for state in done.states
            if "places" in state
        ]
        return b"".join(array.tobytes() for array in places)

    def gradient(self, form="scan", truncation=None):
        """By every parameter: ``{"query": {"W1": ...}, "document": ...}``."""
        model = self.model
        done = self._forward()
        _, Vq, Vd = self._embedding_loss(done)
        V = {"query": np.vstack([Vq, Vd])} if model.shared_towers else {"query": Vq, "document": Vd}
        named = {}
        for side, batch in self._batches.items():
            weights = model.weights[side]
            gradient = model.encoder.backward(
                weights, done[side], V[side], self._workers, form=form, truncation=truncation
            )
            # Trigrams that are not in these texts have no part in the loss.
            whole = np.zeros_like(weights["table"])
            whole[batch.rows] = gradient["table"]
            named[side] = model.encoder.blocks({**gradient, "table": whole})
        named.setdefault("document", named["query"])
        return named

    def _forward(self):
        model = self.model
        self._done = {
            side: model.encoder.forward(model.weights[side], batch, self._workers)
            for side, batch in self._batches.items()
        }
        return self._done

    def _embedding_loss(self, done):
        if self.model.shared_towers:
            Yq, Yd = np.split(done["query"].embeddings, [self._n_queries])
        else:
            Yq, Yd = done["query"].embeddings, done["document"].embeddings
        weights = np.ones(self._candidates.queries.size)
        return embedding_loss(
            Yq, Yd, self._candidates, self.gamma, weights, self._workers, self._workspace
        )


def truncation_of(steps, mode):
    """A `Truncation` from what users say."""
    if steps is not None and not (isinstance(steps, int) and steps >= 1):
        raise SentembError(f"truncate must be a whole number of at least 1 step, not {steps!r}")
    if mode not in ("window", "cec"):
        raise SentembError(f"truncation must be window or cec, not {mode!r}")
    return Truncation(steps, keep_cell_path=mode == "cec")


def _check_pairs(queries, titles, negatives):
    if not len(queries) == len(titles) == len(negatives):
        raise SentembError(
            f"queries, titles and negatives must be equally many, not {len(queries)}, "
            f"{len(titles)} and {len(negatives)}"
        )
    if not queries:
        raise SentembError("there is no pair; give at least one query with its title")
    for r, others in enumerate(negatives):
        if isinstance(others, str) or not others:
            raise SentembError(f"pair {r}: negatives must be a list of at least one title")
    for text in [*queries, *titles, *(title for others in negatives for title in others)]:
        if not text.split():
            raise SentembError("a text without words has no embedding; leave it out")


def _number_texts(queries, titles, negatives):
    """Give every distinct text a number: (Candidates, {"query": texts, "document": texts})."""
    query_numbers, title_numbers = {}, {}
    lists = [
        [title_numbers.setdefault(title, len(title_numbers)) for title in [clicked, *others]]
        for clicked, others in zip(titles, negatives)
    ]
    candidates = Candidates(
        queries=np.array(
            [query_numbers.setdefault(query, len(query_numbers)) for query in queries], np.int32
        ),
        clicked=np.array([numbers[0] for numbers in lists], np.int32),
        offsets=np.cumsum([0] + [len(numbers) for numbers in lists], dtype=np.int64),
        titles=np.array([number for numbers in lists for number in numbers], np.int32),
        listed=True,
    )
    return candidates, {"query": list(query_numbers), "document": list(title_numbers)}
