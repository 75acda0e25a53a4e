"""The gradient of any problem against finite differences of its loss, block by block."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.gradients.check_options import Tolerances
from sentemb.gradients.check_report import BatchCheck, BlockCheck, GradientReport
from sentemb.gradients.differences import differences, entry_differences
from sentemb.gradients.problem import CheckedProblem
from sentemb.gradients.whole_batch import BatchForms
from sentemb.system.contracts import Arrays

# An entry this much smaller than the largest of its block is compared with that floor instead of
# with itself: its differences are rounding noise.
FLOOR = 1e-3
_DIRECTIONS = 3
# Largest relative difference between two exact forms that passes.
_FORM_TOLERANCE = 1e-10


@dataclass(frozen=True)
class _Gradients:
    """Gradients of one block, or of all, computed in three ways: {side: {block: array}}.

    ``second_form`` is another exact form; a block without it has None.
    """

    checked: Any
    true: Any
    second_form: Any

    def of(self, side: str, name: str) -> "_Gradients":
        second_form = self.second_form.get(side, {}).get(name)
        return _Gradients(self.checked[side][name], self.true[side][name], second_form)


def checked_gradient(problem: CheckedProblem, form: str, fault: str | None) -> dict[str, Arrays]:
    """The gradient that a check looks at."""
    return problem.gradient(form) if fault is None else problem.broken_gradient(fault)


def compare(
    problem: CheckedProblem, form: str, fault: str | None, tolerances: Tolerances
) -> GradientReport:
    """Compare the gradient of ``problem`` with differences of its loss.

    ``form`` says which of its gradients to check: "scan", "trace" or "printed"; ``fault`` is the
    term to leave out, if any.
    """
    parameters, rng = problem.parameters, problem.rng
    gradient = checked_gradient(problem, form, fault)
    again = checked_gradient(problem, form, fault)
    true = gradient if form == "scan" and fault is None else problem.gradient("scan")
    second_form = problem.second_form() if form == "scan" else true
    gradients = _Gradients(gradient, true, second_form)
    blocks, repeatable = [], True
    for side, side_parameters in parameters.items():
        for name, parameter in side_parameters.items():
            repeatable &= np.array_equal(gradient[side][name], again[side][name])
            of_block = gradients.of(side, name)
            compared = _compared(problem, f"{side}.{name}", parameter, of_block, tolerances)
            blocks.append(_verdict(problem, compared, of_block, form, tolerances))
    n_texts = tolerances.n_texts if form == "scan" and fault is None else 0
    batch = [_of_batch(forms) for forms in problem.whole_batch(n_texts)] if n_texts else []
    directional = max(_directional_error(problem, gradient, rng) for _ in range(_DIRECTIONS))
    return GradientReport(
        model=problem.name,
        form=form,
        settings=problem.settings,
        tolerance=tolerances.tolerance,
        blocks=blocks,
        directional=directional,
        repeatable=bool(repeatable),
        batch=batch,
        n_texts=n_texts if batch else 0,
        passed=bool(
            all(block.passed for block in blocks)
            and all(check.passed for check in batch)
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
    least: float

    @property
    def absolute(self) -> np.ndarray:
        return np.abs(self.ours - self.numeric)

    @property
    def relative(self) -> np.ndarray:
        largest = max(np.abs(self.numeric).max(), np.abs(self.ours).max())
        floor = max(FLOOR * largest, self.least, np.finfo(float).tiny)
        return self.absolute / np.maximum(np.abs(self.ours) + np.abs(self.numeric), floor)


def _compared(
    problem: CheckedProblem,
    block: str,
    parameter: np.ndarray,
    gradients: _Gradients,
    tolerances: Tolerances,
) -> _Compared:
    slopes = {
        index: entry_differences(problem, parameter, index).slope
        for index in _choose(gradients.true, tolerances.entries, problem.rng)
    }
    chosen = [index for index, slope in slopes.items() if slope is not None]
    if not chosen:
        raise SentembError(
            f"{block}: every entry is too near to a kink of the loss; try another seed or more "
            "entries"
        )
    return _Compared(
        block=block,
        chosen=chosen,
        kinks=len(slopes) - len(chosen),
        ours=np.array([gradients.checked[index] for index in chosen]),
        numeric=np.array([slopes[index] for index in chosen]),
        least=problem.least,
    )


def _verdict(
    problem: CheckedProblem,
    compared: _Compared,
    gradients: _Gradients,
    form: str,
    tolerances: Tolerances,
) -> BlockCheck:
    block, tolerance = compared.block, tolerances.tolerance
    relative, analytic, true = compared.relative, gradients.checked, gradients.true
    worst = int(np.argmax(relative))
    # A gradient of zeros is a missing one, unless the block cannot be reached.
    reached = problem.is_reached(block)
    is_nonzero = np.any(np.abs(analytic) > tolerance * problem.least)
    passed = relative[worst] <= tolerance and is_nonzero == reached
    form_difference = cosine = norm_ratio = None
    if form == "printed":
        norms = np.linalg.norm(analytic), np.linalg.norm(true)
        if all(norms):
            cosine = float(np.sum(analytic * true) / norms[0] / norms[1])
            norm_ratio = float(norms[0] / norms[1])
            # The entries compared may happen to be right where others are not.
            passed = passed and np.linalg.norm(analytic - true) <= tolerance * norms[1]
    elif gradients.second_form is not None:
        form_difference = _difference(analytic, gradients.second_form)
        passed = passed and form_difference <= _FORM_TOLERANCE
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
        equations="" if passed or form != "printed" else problem.at_fault(block),
        passed=bool(passed),
    )


def _of_batch(forms: BatchForms) -> BatchCheck:
    names = list(forms.otherwise)
    differences = np.array(
        [_difference(forms.at_once[name], forms.otherwise[name]) for name in names]
    )
    worst = int(np.argmax(differences))  # which NaN is
    passed = bool(differences[worst] <= _FORM_TOLERANCE)
    return BatchCheck(forms.way, float(differences[worst]), names[worst], passed)


def _difference(ours: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference of two exact forms of a block, relative to its largest entry."""
    largest = max(np.abs(ours).max(), np.abs(theirs).max()) or 1.0
    return float(np.abs(ours - theirs).max() / largest)


def _choose(gradient: np.ndarray, entries: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    """Indices to compare: the largest entries, and as many random ones."""
    size = gradient.size
    by_size = np.argsort(-np.abs(gradient), axis=None, kind="stable")[: (entries + 1) // 2]
    random = rng.choice(size, min(entries // 2, size), replace=False)
    chosen = np.unique(np.concatenate([by_size, random]))
    return [np.unravel_index(k, gradient.shape) for k in chosen]


def _directional_error(
    problem: CheckedProblem, gradient: dict[str, Arrays], rng: np.random.Generator
) -> float:
    """Relative error of the slope in a random direction of all parameters at once.

    0 if every step crosses a kink: then the direction shows nothing.
    """
    parameters = problem.parameters
    before, direction, slope, square = {}, {}, 0.0, 0.0
    for side, own_parameters in parameters.items():
        for name, parameter in own_parameters.items():
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
