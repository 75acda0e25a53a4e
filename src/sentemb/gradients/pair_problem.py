"""The loss of given pairs and its gradient with respect to every parameter, for checks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from sentemb.errors import SentembError
from sentemb.gradients.check_options import GAMMA
from sentemb.gradients.traces import gradient_of_form
from sentemb.models.towers.encoder import ForwardPass
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.towers import HasTowers, Towers, join_gradients, split_embeddings
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.training.batches.teacher_vectors import TeacherVectors
from sentemb.training.objectives.candidates import BatchCandidates, Candidates, ListedCandidates
from sentemb.training.objectives.objective import LossAtEmbeddings, Objective
from sentemb.training.objectives.objective_options import MARGIN, OBJECTIVE, check_scale


def loss_and_gradient(
    model: HasTowers,
    queries: Sequence[str],
    titles: Sequence[str],
    negatives: Sequence[Sequence[str]],
    gamma: float = GAMMA.default,
    form: str = "scan",
    truncate: int | None = None,
    truncation: str = "window",
    threads: int | None = 1,
    objective: str = OBJECTIVE.default,
    margin: float = MARGIN.default,
) -> tuple[float, dict[str, Arrays]]:
    """The loss of some pairs and its gradient in every parameter, for checks of your own.

    Parameters
    ----------
    model : SentenceEncoder
        ``model.astype("float64")`` for comparisons with finite differences.
    queries, titles : list of str
        Pair r is ``queries[r]`` with the clicked title ``titles[r]``.
    negatives : list of list of str
        The unclicked titles of each pair, at least one. With the objective "hinge" they join the
        titles of all pairs, and there may be none.
    gamma : float
        Softmax scale.
    form : {"scan", "trace", "printed"}
        See `sentemb.gradients.traces.FORMS`.
    truncate : int, optional
        Steps through which errors travel back (the paper's T). None means all.
    truncation : {"window", "cec"}
        How errors continue beyond those steps, see `Truncation`.
    threads : int
        The result does not depend on it. None is all processors.
    objective : {"softmax", "hinge"}
        The loss, see `Settings`.
    margin : float
        Margin of the hinge.

    Returns
    -------
    loss : float
        L of equation (4): the sum of -log softmax(gamma cos) over the pairs, or that of their
        hinge losses, each with weight 1.
    gradient : dict of dict of ndarray
        ``gradient["query"]["Wrec1"]`` and so on, with the names and shapes of
        `SentenceEncoder.parameters`. With shared towers both sides have the same arrays, which hold
        the whole derivative.

    Raises
    ------
    SentembError
        For lists of different lengths, a text without words, a pair without negatives, or a wrong
        objective.
    """
    loss = checked_objective(objective, gamma, margin)
    with Workers(threads) as workers:
        problem = PairProblem(model.towers, queries, titles, negatives, loss, workers)
        cut = Truncation.of(truncate, truncation)
        return problem.loss(), problem.gradient(form, cut)


def checked_objective(objective: str, gamma: float, margin: float) -> Objective:
    """The loss of a check; a `SentembError` for settings that are wrong or do not apply."""
    objective, margin = OBJECTIVE.checked(objective), MARGIN.checked(margin)
    given = {"gamma": gamma != GAMMA.default, "margin": margin != MARGIN.default}
    check_scale(objective, given)
    return Objective(objective, gamma, margin)


class PairProblem:
    """Some pairs with their negatives, and the loss of two towers on them.

    The parameters are those of `loss_and_gradient`, with an `Objective` in place of its settings.
    The weights may change between calls. A ``teacher`` is called with the numbers of queries and
    titles; all titles then compete.
    """

    def __init__(
        self,
        towers: Towers,
        queries: Sequence[str],
        titles: Sequence[str],
        negatives: Sequence[Sequence[str]],
        objective: Objective,
        workers: Workers,
        teacher: Callable[[int, int], TeacherVectors] | None = None,
    ) -> None:
        _check_pairs(queries, titles, negatives, 0 if objective.needs_batch else 1)
        self.towers = towers
        self._objective = objective
        self._workers = workers
        self._workspace = Workspace()
        listed, texts = _number_texts(queries, titles, negatives)
        self._candidates: Candidates = _all_together(listed) if objective.needs_batch else listed
        if teacher is not None:
            every_title = np.arange(len(texts["document"]))
            taught = teacher(len(texts["query"]), every_title.size)
            targets = taught.targets(listed.queries, every_title)
            self._candidates = replace(_all_together(listed), targets=targets)
        self._n_queries = len(texts["query"])
        if towers.shared:
            texts = {"query": texts["query"] + texts["document"]}
        self._batches = {
            side: towers.vocabulary.batch(side_texts) for side, side_texts in texts.items()
        }
        # A check asks for the loss thousands of times, of the same texts.
        self._layouts = {side: Layout(batch) for side, batch in self._batches.items()}
        self._spaces = {side: Workspace() for side in self._batches}

    def loss(self) -> float:
        """The sum of the losses of the pairs."""
        result = self._embedding_loss(self._forward())
        self._choices = result.choices
        return float(result.losses.sum())

    def branches(self) -> bytes:
        """The maxima of max pooling and the choices of the objective in the last `loss`.

        Empty without either. The loss has a kink wherever one of these changes.
        """
        argmax = [
            state["argmax"]
            for done in self._done.values()
            for state in done.states
            if "argmax" in state
        ]
        return b"".join(array.tobytes() for array in [*argmax, self._choices])

    def gradient(
        self, form: str = "scan", truncation: Truncation | None = None
    ) -> dict[str, Arrays]:
        """The gradient in every parameter: ``{"query": {"W1": ...}, "document": ...}``."""
        towers = self.towers
        done = self._forward()
        _, Vq, Vd, _ = self._embedding_loss(done)
        V = join_gradients(Vq, Vd, towers.shared)
        named: dict[str, Arrays] = {}
        for side, batch in self._batches.items():
            weights = towers.weights[side]
            gradient = gradient_of_form(
                towers.encoder, weights, done[side], V[side], self._workers, form, truncation
            )
            # Features that are not in these texts have no part in the loss.
            whole = np.zeros_like(weights["table"])
            whole[batch.input_rows] = gradient["table"]
            named[side] = towers.encoder.blocks({**gradient, "table": whole})
        return {"document": named["query"], **named}  # shared towers have only "query"

    def _forward(self) -> dict[str, ForwardPass]:
        towers = self.towers
        self._done: dict[str, ForwardPass] = {}
        for side, layout in self._layouts.items():
            point = point_of(towers.weights[side], layout.batch.input_rows)
            tasks = towers.encoder.forward_tasks(point, layout, self._spaces[side])
            self._done[side] = self._workers.together(tasks)[0]
        return self._done

    def _embedding_loss(self, done: Mapping[str, ForwardPass]) -> LossAtEmbeddings:
        embeddings = {side: forward.embeddings for side, forward in done.items()}
        Yq, Yd = split_embeddings(embeddings, self._n_queries)
        weights = np.ones(self._candidates.queries.size)
        return self._objective.at(Yq, Yd, self._candidates, weights, self._workers, self._workspace)


def _check_pairs(
    queries: Sequence[str], titles: Sequence[str], negatives: Sequence[Sequence[str]], least: int
) -> None:
    if not len(queries) == len(titles) == len(negatives):
        raise SentembError(
            f"queries, titles and negatives must have the same length, not {len(queries)}, "
            f"{len(titles)} and {len(negatives)}"
        )
    if not queries:
        raise SentembError("there is no pair; give at least one query with its title")
    for r, of_pair in enumerate(negatives):
        if isinstance(of_pair, str) or len(of_pair) < least:
            how_many = "at least one title" if least else "titles"
            raise SentembError(f"pair {r}: negatives must be a list of {how_many}")
    for text in [*queries, *titles, *(title for of_pair in negatives for title in of_pair)]:
        if not text.split():
            raise SentembError("a text without words has no embedding; leave it out")


def _number_texts(
    queries: Sequence[str], titles: Sequence[str], negatives: Sequence[Sequence[str]]
) -> tuple[ListedCandidates, dict[str, list[str]]]:
    """Number the distinct texts: (ListedCandidates, {"query": texts, "document": texts})."""
    query_numbers: dict[str, int] = {}
    title_numbers: dict[str, int] = {}
    lists = [
        [title_numbers.setdefault(title, len(title_numbers)) for title in [clicked, *of_pair]]
        for clicked, of_pair in zip(titles, negatives, strict=True)
    ]
    candidates = ListedCandidates(
        queries=np.array(
            [query_numbers.setdefault(query, len(query_numbers)) for query in queries], np.int32
        ),
        offsets=np.cumsum([0] + [len(numbers) for numbers in lists], dtype=np.int64),
        titles=np.array([number for numbers in lists for number in numbers], np.int32),
    )
    return candidates, {"query": list(query_numbers), "document": list(title_numbers)}


def _all_together(listed: ListedCandidates) -> BatchCandidates:
    """The same pairs as one mini-batch, in which the titles of all lists compete."""
    clicked = listed.titles[listed.offsets[:-1]]
    excluded = [
        np.unique(clicked[(listed.queries == query) & (clicked != title)])
        for query, title in zip(listed.queries, clicked, strict=True)
    ]
    return BatchCandidates(
        queries=listed.queries,
        clicked=clicked,
        offsets=np.cumsum([0] + [titles.size for titles in excluded], dtype=np.int64),
        excluded=np.concatenate(excluded).astype(np.int32),
    )
