"""Two towers on made-up pairs, as training has them: the problem of most gradient checks.

Words, texts and a model are made up in float64. No parameter is zero, biases and peepholes
included.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.gradients.check_options import FORM, GAMMA, SCALE, Problem, check_defaults
from sentemb.gradients.faults import broken_gradient, check_fault
from sentemb.gradients.pair_problem import PairProblem
from sentemb.gradients.problem import CheckedProblem
from sentemb.gradients.traces import check_form, has_traces
from sentemb.gradients.whole_batch import BatchForms, made_up_batch, tower_batch
from sentemb.models.towers import make_encoder
from sentemb.models.towers.encoder import Encoder
from sentemb.models.towers.registry import ENCODERS
from sentemb.models.towers.towers import Towers, distinct_sides
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.word_features import WordFeatures
from sentemb.training.batches.teacher_vectors import TeacherVectors
from sentemb.training.objectives.objective import Objective
from sentemb.training.objectives.objective_options import MARGIN, OBJECTIVE

# Dimensions of a made-up teacher.
_TEACHER_DIM = 7
# Numbers that the projected words of a problem may have.
_MOST_PROJECTED = 20_000_000


class TwoTowerLoss(CheckedProblem):
    """The training loss of two towers, or of one shared tower, on some pairs.

    The pairs are made of ``words`` from the settings ``made_from``; ``rng`` is as making them left
    it.
    """

    def __init__(
        self, pairs: PairProblem, words: list[str], made_from: Problem, rng: np.random.Generator
    ) -> None:
        towers = pairs.towers
        self.name = towers.encoder.name
        self.settings = {**towers.encoder.settings(), **made_from.used()}
        self.rng = rng
        self._pairs, self._words = pairs, words
        self._encoder = towers.encoder
        # One tower for both sides has the blocks of the query side.
        self._shown = {side: "shared" if towers.shared else side for side in towers.each}
        self.parameters = self._of_towers(towers.parameters())

    def _of_towers(self, by_side: dict[str, Arrays]) -> dict[str, Arrays]:
        return {shown: by_side[side] for side, shown in self._shown.items()}

    def loss(self) -> float:
        return self._pairs.loss()

    def branches(self) -> bytes:
        return self._pairs.branches()

    def gradient(self, form: str = "scan") -> dict[str, Arrays]:
        return self._of_towers(self._pairs.gradient(form))

    def broken_gradient(self, fault: str) -> dict[str, Arrays]:
        return self._of_towers(broken_gradient(self._pairs, fault))

    def second_form(self) -> dict[str, Arrays]:
        return self.gradient("trace") if has_traces(self._encoder) else {}

    def whole_batch(self, n_texts: int) -> Iterator[BatchForms]:
        rng, towers = np.random.default_rng(self.settings["seed"]), self._pairs.towers
        texts = made_up_batch(self._words, n_texts, rng)
        texts[-1] = ""
        return tower_batch(
            self._encoder, towers.vocabulary, towers.weights["query"], texts, rng, Workers(1)
        )

    def is_reached(self, block: str) -> bool:
        return self._encoder.is_reached(block.rsplit(".", 1)[1], max(self.settings["lengths"]))

    def at_fault(self, block: str) -> str:
        """The paper's equations that make a printed block differ from the gradient."""
        settings = self.settings
        gate, peepholes = block[-1], settings.get("peepholes", "none") != "none"
        reasons = []
        if max(settings["lengths"]) > 1:
            reasons.append(
                "(43): error follows Wrec1 only"
                if gate == "1"
                else "(44): factor b_g missing, own Wrec only, no cell path"
            )
        if gate != "1" and peepholes and settings.get("output_gate", True):
            reasons.append("(78), (85), (95), (105): o(t) sees c(t) through Wp1")
        if peepholes and max(settings["lengths"]) > 1:
            reasons.append("(43), (44): no peephole paths")
        return "; ".join(reasons)


@contextmanager
def made_up_towers(
    model: str, problem: Problem, form: str, fault: str | None, encoder_settings: dict[str, Any]
) -> Iterator[TwoTowerLoss]:
    """The pairs and the model of a check, for as long as the context lasts.

    Parameters and errors as for `sentemb.gradcheck`.
    """
    problem = problem.of_towers()
    encoder = make_encoder(model, **check_defaults(model, encoder_settings))
    check_form(encoder, FORM.checked(form))
    if fault is not None:
        check_fault(fault, encoder, form)
    _check_size(encoder, sum(problem.lengths) * (2 + problem.n_negatives))
    rng = np.random.default_rng(problem.seed)
    with Workers(1) as workers:
        yield TwoTowerLoss(*_made_up_problem(encoder, problem, rng, workers), problem, rng)


def _check_size(encoder: Any, n_words: int) -> None:
    """Refuse a problem that would fill the memory, before any of it is made."""
    of_one, of_two = (
        sum(math.prod(shape) for shape in encoder.shapes(n_features).values())
        for n_features in (1, 2)
    )
    if n_words * (of_two - of_one) > _MOST_PROJECTED:
        sizes = [
            entry.name for entry in ENCODERS.parameters if entry.kind is int and not entry.choices
        ]
        raise SentembError(
            f"{n_words:,} words of {of_two - of_one:,} numbers each are too many for a check; "
            f"there are lengths, n_negatives, {', '.join(sizes)}: lower one of them"
        )


def _made_up_vectors(words: list[str], problem: Problem, rng: np.random.Generator) -> WordFeatures:
    """Random vectors for two of three words, with a zero among the numbers."""
    known = [word for number, word in enumerate(words) if number % 3 or number == 0]
    numbers = rng.standard_normal((len(known), problem.vector_dim)).astype(np.float16)
    numbers[0, 0] = 0
    return WordFeatures(known, numbers)


def _made_up_problem(
    encoder: Encoder, problem: Problem, rng: np.random.Generator, workers: Workers
) -> tuple[PairProblem, list[str]]:
    """Pairs of unequal lengths, with repeated words, and a model with nothing at zero.

    Returns them with their words.
    """
    lengths = problem.lengths
    letters = list("abcde")
    words = ["".join(rng.choice(letters, rng.integers(1, 6))) for _ in range(3 * len(lengths) + 6)]
    # Words that hold a trigram more than once, so that counts matter.
    words += ["aaaaa", "babababa"] * len(lengths)

    def text(length: int) -> str:
        chosen = list(rng.choice(words, length))
        if length > 2:
            chosen[-1] = chosen[0]
        return " ".join(chosen)

    queries = [text(length) for length in lengths]
    titles = [text(length) for length in (*lengths[1:], lengths[0])]
    negatives = [
        [text(int(rng.choice(lengths))) for _ in range(problem.n_negatives)]
        for _ in range(len(lengths))
    ]
    tokens = tokenize([*queries, *titles, *(title for of_pair in negatives for title in of_pair)])
    vocabulary = Vocabulary.collect(tokens)
    if problem.vector_dim:
        vocabulary = vocabulary.with_vectors(_made_up_vectors(list(tokens.words), problem, rng))
    weights = {}
    for side in distinct_sides(problem.shared_towers):
        weights[side] = encoder.initialise(len(vocabulary), rng, np.float64)
        for name, array in weights[side].items():
            array[...] = SCALE * rng.standard_normal(array.shape)
            if name in ("recurrent", *encoder.spreads()) or array.ndim == 4:
                array /= np.sqrt(array.shape[-2])
    towers = Towers.of(encoder, vocabulary, weights)
    objective = OBJECTIVE.checked(problem.objective)
    loss = Objective(objective, GAMMA.default, MARGIN.default)

    def made_up_teacher(n_queries: int, n_titles: int) -> TeacherVectors:
        vectors = unit_rows(rng.standard_normal((n_queries + n_titles, _TEACHER_DIM)))
        return TeacherVectors(vectors[:n_queries], vectors[n_queries:], problem.teacher_share)

    teacher = made_up_teacher if problem.teacher_share else None
    pairs = PairProblem(towers, queries, titles, negatives, loss, workers, teacher)
    return pairs, list(tokens.words)
