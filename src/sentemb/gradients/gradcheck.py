"""Every gradient against finite differences, block by block.

The check makes up words, texts and a model in float64 in which no parameter is zero (biases and
peepholes included), and compares the gradient of the training loss with central differences of that
loss.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.former_names import former_names
from sentemb.gradients.differences import differences, entry_differences
from sentemb.gradients.faults import broken_gradient, check_fault
from sentemb.gradients.options import (
    ENTRIES,
    FORM,
    FORM_TOLERANCE,
    GAMMA,
    LENGTHS,
    NEGATIVES,
    SCALE,
    SEED,
    TOLERANCE,
    Problem,
    Tolerances,
    check_defaults,
    checked_lengths,
)
from sentemb.gradients.pairs import PairProblem
from sentemb.gradients.traces import check_form, has_traces
from sentemb.hyperparameters import formerly
from sentemb.models import make_encoder
from sentemb.models.registry import SHARED_TOWERS, encoder_parameters
from sentemb.models.towers import Towers, distinct_sides
from sentemb.system.html_tables import FAILED, html_table
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

GATE_LEGEND = "gates: 1 output, 2 forget, 3 input, 4 candidate"
# An entry this much smaller than the largest of its block is compared with that floor instead of
# with itself: its differences are rounding noise.
FLOOR = 1e-3
_DIRECTIONS = 3
# Numbers that the projected words of a problem may have.
_MOST_PROJECTED = 20_000_000


@dataclass(frozen=True)
class BlockCheck:
    """What `gradcheck` found in one block of parameters.

    Attributes
    ----------
    block : str
        Side and the paper's name, such as ``query.Wrec3``.
    shape : tuple of int
    checked : int
        Entries compared with differences.
    kinks : int
        Entries left out because max pooling picks another word on some step of the differences,
        where the loss has no slope.
    relative, absolute : float
        Largest errors; relative is |a - n| / max(|a| + |n|, floor), the floor a thousandth of the
        block's largest entry.
    index : tuple of int
        Where the relative error is largest, with ``analytic`` and ``numeric`` there.
    form_difference : float or None
        Largest difference from the other exact form, relative to the block's largest entry; None
        for models with only one exact form.
    cosine, norm_ratio : float or None
        For the form ``printed``: the cosine of the checked gradient with the true one (form
        ``scan``), and the ratio of their norms. None where either gradient is zero.
    equations : str
        For a failing block of the form ``printed``: what in the paper is at fault.
    passed : bool
    """

    block: str
    shape: tuple[int, ...]
    checked: int
    kinks: int
    relative: float
    absolute: float
    index: tuple[int, ...]
    analytic: float
    numeric: float
    form_difference: float | None
    cosine: float | None
    norm_ratio: float | None
    equations: str
    passed: bool


@dataclass(frozen=True, repr=False)
class GradientReport:
    """What `gradcheck` found.

    Attributes
    ----------
    model, form : str
    settings : dict
        Settings of the encoder and of the problem.
    blocks : list of BlockCheck
    directional : float
        Largest relative error of the slope of the loss in random directions of all parameters.
    repeatable : bool
        Whether the backward pass gives the same bits twice.
    passed : bool
    fault : str or None
        The term that was left out on purpose.
    """

    model: str
    form: str
    settings: dict[str, Any]
    tolerance: float
    blocks: list[BlockCheck] = field(default_factory=list)
    directional: float = 0.0
    repeatable: bool = True
    passed: bool = False
    fault: str | None = None

    @property
    def legend(self) -> str:
        """What the numbers in the blocks' names mean; empty where they have none."""
        return GATE_LEGEND if self.model in ("lstm", "bilstm") else ""

    @property
    def failed(self) -> list[str]:
        """The names of the blocks that fail."""
        return [block.block for block in self.blocks if not block.passed]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __repr__(self) -> str:
        verdict = "passed" if self.passed else f"failed in {len(self.failed)}"
        return (
            f"GradientReport({self.model}, form {self.form}, {len(self.blocks)} blocks, {verdict})"
        )

    def _repr_html_(self) -> str:
        """A table of the blocks, for notebooks."""
        shape = ", ".join(f"{key} {value}" for key, value in self.settings.items())
        left_out = f"left out on purpose: {self.fault}" if self.fault else ""
        first = [f"{self.model}, form {self.form}: {shape}", self.legend, left_out]
        rows = [
            (
                block.block,
                " × ".join(map(str, block.shape)),
                block.checked,
                f"{block.relative:.1e}",
                list(block.index),
                f"{block.analytic:+.6e}",
                f"{block.numeric:+.6e}",
                "pass" if block.passed else "FAIL",
            )
            for block in self.blocks
        ]
        table = html_table(rows, _HEADS, ["" if block.passed else FAILED for block in self.blocks])
        return (
            f"<p>{'<br/>'.join(escape(line) for line in first if line)}</p>{table}"
            f"<p>All parameters in random directions: relative error {self.directional:.1e}. "
            f"{'PASS' if self.passed else 'FAIL'} (tolerance {self.tolerance:g})</p>"
        )


_HEADS = ("block", "shape", "checked", "relative error", "at", "analytic", "numeric", "verdict")


@former_names(**formerly(encoder_parameters()))
def gradcheck(
    model: str = "lstm",
    *,
    form: str = FORM.default,
    shared_towers: bool = SHARED_TOWERS.default,
    lengths: Iterable[int] = LENGTHS,
    negatives: int = NEGATIVES.default,
    gamma: float = GAMMA.default,
    scale: float = SCALE.default,
    seed: int = SEED.default,
    entries: int = ENTRIES.default,
    tolerance: float = TOLERANCE.default,
    form_tolerance: float = FORM_TOLERANCE.default,
    fault: str | None = None,
    **encoder_settings: Any,
) -> GradientReport:
    """Compare a model's gradient with finite differences of its loss.

    Parameters
    ----------
    model : str
        One of `sentemb.models.ENCODERS`: "lstm", "bilstm", "rnn", "bag", "dssm", "clsm".
    form : {"scan", "trace", "printed"}
        Which gradient to check.
    shared_towers : bool
        One tower for queries and titles.
    lengths : sequence of int
        Words of the queries, at most 50 numbers from 1 to 200; the titles have the same lengths in
        another order.
    negatives : int
        Negatives per query, at most 100.
    gamma : float
        Softmax scale.
    scale : float
        Standard deviation of the random parameters, at most 100; that of recurrent ones is divided
        by sqrt(cells).
    seed : int
        Random seed.
    entries : int
        Entries of each block that are compared, the largest ones and random ones; at most a
        million.
    tolerance : float
        Largest relative error that passes.
    form_tolerance : float
        Largest relative difference between ``scan`` and ``trace`` that passes.
    fault : {"cell-path", "other-gates", "b_g", "peepholes"}, optional
        Check the gradient of an LSTM with this term left out, to watch the check fail; see
        `sentemb.gradients.faults`.
    **encoder_settings
        As for training: ``cells`` (6 unless given), ``forget_gate``, ``peepholes``, ``bag_dim``,
        ``hidden`` (5 unless given), ``window``.

    Returns
    -------
    GradientReport

    Raises
    ------
    SentembError
        For settings that are wrong or do not go together, and for a problem that is too large.
    """
    problem = Problem(shared_towers, checked_lengths(lengths), negatives, gamma, scale, seed)
    tolerances = Tolerances(entries, tolerance, form_tolerance)
    with made_up_pairs(model, problem, form, fault, encoder_settings) as (pairs, rng):
        settings = {**pairs.towers.encoder.settings(), **asdict(problem)}
        return _check(pairs, form, fault, settings, tolerances, rng)


@contextmanager
def made_up_pairs(
    model: str, problem: Problem, form: str, fault: str | None, encoder_settings: dict[str, Any]
) -> Iterator[tuple[PairProblem, np.random.Generator]]:
    """The pairs and the model of a check, for as long as the context lasts.

    Parameters and errors as for `gradcheck`. The generator is as the making left it.
    """
    encoder = make_encoder(model, **check_defaults(model, encoder_settings))
    check_form(encoder, FORM.checked(form))
    if fault is not None:
        check_fault(fault, encoder, form)
    _check_size(encoder, sum(problem.lengths) * (2 + problem.negatives))
    rng = np.random.default_rng(problem.seed)
    with Workers(1) as workers:
        yield _made_up_problem(encoder, problem, rng, workers), rng


def _check_size(encoder: Any, n_words: int) -> None:
    """Refuse a problem that would fill the memory, before any of it is made."""
    one, two = (
        sum(math.prod(shape) for shape in encoder.shapes(n_features).values())
        for n_features in (1, 2)
    )
    if n_words * (two - one) > _MOST_PROJECTED:
        sizes = [one.name for one in encoder_parameters() if one.kind is int and not one.choices]
        raise SentembError(
            f"{n_words:,} words of {two - one:,} numbers each are too many for a check; there are "
            f"lengths, negatives, {', '.join(sizes)}: lower one of them"
        )


def _made_up_problem(
    encoder: Any, problem: Problem, rng: np.random.Generator, workers: Workers
) -> PairProblem:
    """Pairs of unequal lengths, with repeated words, and a model with nothing at zero."""
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
    others = [
        [text(int(rng.choice(lengths))) for _ in range(problem.negatives)]
        for _ in range(len(lengths))
    ]
    tokens = tokenize([*queries, *titles, *(title for some in others for title in some)])
    vocabulary = Vocabulary.collect(tokens)
    weights = {}
    for side in distinct_sides(problem.shared_towers):
        weights[side] = encoder.initialise(len(vocabulary), rng, np.float64)
        for name, array in weights[side].items():
            array[...] = problem.scale * rng.standard_normal(array.shape)
            if name in ("recurrent", "output") or array.ndim == 4:
                array /= np.sqrt(array.shape[-2])
    towers = Towers.of(encoder, vocabulary, weights)
    return PairProblem(towers, queries, titles, others, problem.gamma, workers)


@dataclass(frozen=True)
class _Gradients:
    """Gradients of one block, or of all, computed in three ways: {side: {block: array}}.

    ``other`` is the other exact form; None where there is none.
    """

    checked: Any
    true: Any
    other: Any

    def of(self, side: str, name: str) -> "_Gradients":
        other = None if self.other is None else self.other[side][name]
        return _Gradients(self.checked[side][name], self.true[side][name], other)


def checked_gradient(problem: PairProblem, form: str, fault: str | None) -> dict[str, Any]:
    """The gradient that a check looks at."""
    return problem.gradient(form) if fault is None else broken_gradient(problem, fault)


def _check(
    problem: PairProblem,
    form: str,
    fault: str | None,
    settings: dict[str, Any],
    tolerances: Tolerances,
    rng: np.random.Generator,
) -> GradientReport:
    towers = problem.towers
    gradient = checked_gradient(problem, form, fault)
    again = checked_gradient(problem, form, fault)
    true = gradient if form == "scan" and fault is None else problem.gradient("scan")
    other: Any = true
    if form == "scan":
        other = problem.gradient("trace") if has_traces(towers.encoder) else None
    gradients = _Gradients(gradient, true, other)
    sides = tuple(towers.each)
    parameters = towers.parameters()
    blocks, repeatable = [], True
    for side in sides:
        for name, parameter in parameters[side].items():
            repeatable &= np.array_equal(gradient[side][name], again[side][name])
            block = f"{'shared' if towers.shared else side}.{name}"
            own = gradients.of(side, name)
            compared = _compared(problem, block, parameter, own, tolerances, rng)
            blocks.append(_verdict(compared, own, form, settings, towers.encoder, tolerances))
    directional = max(
        _directional_error(problem, parameters, gradient, sides, rng) for _ in range(_DIRECTIONS)
    )
    return GradientReport(
        model=towers.encoder.name,
        form=form,
        settings=settings,
        tolerance=tolerances.tolerance,
        blocks=blocks,
        directional=directional,
        repeatable=bool(repeatable),
        passed=bool(
            all(block.passed for block in blocks)
            and directional <= tolerances.tolerance
            and repeatable
        ),
        fault=fault,
    )


@dataclass(frozen=True)
class _Compared:
    """The chosen entries of one block: where they are, and both values there."""

    block: str
    chosen: list[tuple[int, ...]]
    kinks: int
    ours: np.ndarray
    numeric: np.ndarray

    @property
    def absolute(self) -> np.ndarray:
        return np.abs(self.ours - self.numeric)

    @property
    def relative(self) -> np.ndarray:
        largest = max(np.abs(self.numeric).max(), np.abs(self.ours).max())
        floor = max(FLOOR * largest, np.finfo(float).tiny)
        return self.absolute / np.maximum(np.abs(self.ours) + np.abs(self.numeric), floor)


def _compared(
    problem: PairProblem,
    block: str,
    parameter: np.ndarray,
    gradients: _Gradients,
    tolerances: Tolerances,
    rng: np.random.Generator,
) -> _Compared:
    slopes = {
        index: entry_differences(problem, parameter, index).slope
        for index in _choose(gradients.true, tolerances.entries, rng)
    }
    chosen = [index for index, slope in slopes.items() if slope is not None]
    if not chosen:
        raise SentembError(
            f"{block}: every entry is too near to a kink of max pooling; try another seed or more "
            "entries"
        )
    return _Compared(
        block=block,
        chosen=chosen,
        kinks=len(slopes) - len(chosen),
        ours=np.array([gradients.checked[index] for index in chosen]),
        numeric=np.array([slopes[index] for index in chosen]),
    )


def _verdict(
    compared: _Compared,
    gradients: _Gradients,
    form: str,
    settings: dict[str, Any],
    encoder: Any,
    tolerances: Tolerances,
) -> BlockCheck:
    block, tolerance = compared.block, tolerances.tolerance
    relative, analytic, true = compared.relative, gradients.checked, gradients.true
    worst = int(np.argmax(relative))
    # A gradient of zeros is a missing one, unless the block cannot be reached.
    reached = encoder.is_reached(block.rsplit(".", 1)[1], max(settings["lengths"]))
    passed = relative[worst] <= tolerance and np.any(compared.ours != 0) == reached
    form_difference = cosine = norm_ratio = None
    if form == "printed":
        norms = np.linalg.norm(analytic), np.linalg.norm(true)
        if all(norms):
            cosine = float(np.sum(analytic * true) / norms[0] / norms[1])
            norm_ratio = float(norms[0] / norms[1])
            # The entries compared may happen to be right where others are not.
            passed = passed and np.linalg.norm(analytic - true) <= tolerance * norms[1]
    elif gradients.other is not None:
        largest = np.abs(true).max() or 1.0
        form_difference = float(np.abs(analytic - gradients.other).max() / largest)
        passed = passed and form_difference <= tolerances.form_tolerance
    return BlockCheck(
        block=block,
        shape=analytic.shape,
        checked=len(compared.chosen),
        kinks=compared.kinks,
        relative=float(relative[worst]),
        absolute=float(compared.absolute.max()),
        index=tuple(int(k) for k in compared.chosen[worst]),
        analytic=float(compared.ours[worst]),
        numeric=float(compared.numeric[worst]),
        form_difference=form_difference,
        cosine=cosine,
        norm_ratio=norm_ratio,
        equations="" if passed or form != "printed" else _at_fault(block, settings),
        passed=bool(passed),
    )


def _choose(gradient: np.ndarray, entries: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Indices to compare: the largest entries, and as many random ones."""
    size = gradient.size
    by_size = np.argsort(-np.abs(gradient), axis=None, kind="stable")[: (entries + 1) // 2]
    random = rng.choice(size, min(entries // 2, size), replace=False)
    chosen = np.unique(np.concatenate([by_size, random]))
    return [np.unravel_index(k, gradient.shape) for k in chosen]


def _directional_error(
    problem: PairProblem,
    parameters: dict[str, Any],
    gradient: dict[str, Any],
    sides: Sequence[str],
    rng: np.random.Generator,
) -> float:
    """Relative error of the slope in a random direction of all parameters at once.

    0 if every step crosses a kink: then the direction shows nothing.
    """
    before, direction, slope, square = {}, {}, 0.0, 0.0
    for side in sides:
        for name, parameter in parameters[side].items():
            key = side, name
            before[key] = parameter.copy()
            direction[key] = rng.standard_normal(parameter.shape)
            slope += float(np.sum(direction[key] * gradient[side][name]))
            square += float(np.sum(direction[key] ** 2))
    length = np.sqrt(square)

    def move(offset: float) -> None:
        for (side, name), start in before.items():
            parameters[side][name][...] = start + offset / length * direction[side, name]

    try:
        numeric = differences(problem, move).slope
    finally:
        for (side, name), start in before.items():
            parameters[side][name][...] = start
    if numeric is None:
        return 0.0
    slope /= length
    return abs(slope - numeric) / max(abs(slope) + abs(numeric), np.finfo(float).tiny)


def _at_fault(block: str, settings: dict[str, Any]) -> str:
    """The paper's equations that make a printed block differ from the gradient."""
    gate, peepholes = block[-1], settings.get("peepholes", "none") != "none"
    reasons = []
    if max(settings["lengths"]) > 1:
        reasons.append(
            "(43): error follows Wrec1 only"
            if gate == "1"
            else "(44): factor b_g missing, own Wrec only, no cell path"
        )
    if gate != "1" and peepholes:
        reasons.append("(78), (85), (95), (105): o(t) sees c(t) through Wp1")
    if peepholes and max(settings["lengths"]) > 1:
        reasons.append("(43), (44): no peephole paths")
    return "; ".join(reasons)
