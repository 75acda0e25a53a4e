"""One entry of the gradient check, step by step."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.gradients.agreement import FLOOR, checked_gradient
from sentemb.gradients.check_options import FORM, LENGTHS, TOLERANCE, Problem, checked_lengths
from sentemb.gradients.differences import entry_differences
from sentemb.gradients.gradcheck import made_up
from sentemb.system.bounds import brief
from sentemb.system.contracts import Arrays

_ENTRY = re.compile(r"([^\[\]]+)\[\s*(\d{1,9}(?:\s*,\s*\d{1,9})*)\s*\]", re.ASCII)


@dataclass(frozen=True)
class Step:
    """The differences at one step.

    Attributes
    ----------
    step : float
        h.
    second, fourth : float or None
        The central differences of second and fourth order; None if max pooling or the hinge picks
        something else between their points, where the loss has a kink.
    second_error, fourth_error : float or None
        Their relative errors, as `gradcheck` defines them.
    change : float or None
        How far the fourth-order difference is from that of the next coarser step. The step with
        the smallest change is taken.
    taken : bool
    """

    step: float
    second: float | None
    fourth: float | None
    second_error: float | None
    fourth_error: float | None
    change: float | None
    taken: bool


@dataclass(frozen=True)
class EntryExplanation:
    """Why one entry of a gradient passes or fails.

    Attributes
    ----------
    model, form : str
    fault : str or None
    entry : str
        Such as ``query.Wrec3[1,2]``.
    analytic : float
        The gradient that is checked.
    largest : float
        The largest absolute value of that gradient in the entry's block; a thousandth of it is the
        floor below which errors are no longer relative to the entry.
    steps : list of Step
        From coarse to fine.
    numeric, relative : float or None
        The difference that was taken and its relative error; None if every step has a kink.
    tolerance : float
    passed : bool
    """

    model: str
    form: str
    fault: str | None
    entry: str
    analytic: float
    largest: float
    steps: list[Step]
    numeric: float | None
    relative: float | None
    tolerance: float
    passed: bool

    @property
    def reason(self) -> str:
        """The step that was taken, and the reason."""
        if self.numeric is None:
            return (
                "No step was taken: max pooling or the hinge picks something else between the "
                "points of the differences, so the loss has a kink here and gradcheck leaves the "
                "entry out."
            )
        (taken,) = (step for step in self.steps if step.taken)
        return (
            f"The step {taken.step:g} was taken: its fourth-order difference changes least from "
            f"the step before ({taken.change:.1e}). The analytic value has no part in the choice."
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"reason": self.reason}


def explain_gradient(
    entry: str,
    model: str = "lstm",
    *,
    form: str = FORM.default,
    fault: str | None = None,
    tolerance: float = TOLERANCE.default,
    lengths: Iterable[int] = LENGTHS,
    **settings: Any,
) -> EntryExplanation:
    """Show the finite differences at one entry of the problem that `gradcheck` makes up.

    Parameters
    ----------
    entry : str
        Block and index from 0, such as ``query.Wrec3[1,2]`` or ``document.b1[0]``.
    model, form, fault, tolerance, lengths, **settings
        As for `gradcheck`; the same settings and seed make the same problem.

    Returns
    -------
    Explanation

    Raises
    ------
    SentembError
        If there is no such block or entry, or the settings make no problem.
    """
    tolerance = TOLERANCE.checked(tolerance)
    names = {field.name for field in fields(Problem)} & settings.keys()
    given = {name: settings.pop(name) for name in names}
    sizes = Problem(lengths=checked_lengths(lengths), **given)
    with made_up(model, sizes, form, fault, settings) as problem:
        side, name, index = _find(entry, problem.parameters)
        gradient = checked_gradient(problem, form, fault)[side][name]
        differences = entry_differences(problem, problem.parameters[side][name], index)
    analytic, largest = float(gradient[index]), float(np.abs(gradient).max())

    def relative(value: float | None) -> float | None:
        if value is None:
            return None
        floor = max(FLOOR * max(largest, abs(value)), problem.least, np.finfo(float).tiny)
        return abs(analytic - value) / max(abs(analytic) + abs(value), floor)

    changes = [None, *map(_or_none, np.abs(np.diff(differences.fourth)))]
    steps = []
    for k, h in enumerate(differences.steps):
        second, fourth = _or_none(differences.second[k]), _or_none(differences.fourth[k])
        errors = relative(second), relative(fourth)
        steps.append(Step(h, second, fourth, *errors, changes[k], k == differences.taken))
    error = relative(differences.slope)
    return EntryExplanation(
        model=model,
        form=form,
        fault=fault,
        entry=f"{entry.split('[')[0].strip()}[{','.join(map(str, index))}]",
        analytic=analytic,
        largest=largest,
        steps=steps,
        numeric=differences.slope,
        relative=error,
        tolerance=tolerance,
        passed=error is None or error <= tolerance,
    )


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _find(entry: str, parameters: dict[str, Arrays]) -> tuple[str, str, tuple[int, ...]]:
    """The side, block and index that ``entry`` names."""
    shapes = {
        f"{side}.{name}": block.shape
        for side, blocks in parameters.items()
        for name, block in blocks.items()
    }
    match = _ENTRY.fullmatch(entry.strip()) if isinstance(entry, str) else None
    if match is None:
        raise SentembError(
            f"{brief(entry)} does not name an entry such as {next(iter(shapes))}[0,1], counted "
            f"from 0. {_listed(shapes)}"
        )
    block = match[1].strip()
    if block not in shapes:
        raise SentembError(f"there is no block {brief(block)}. {_listed(shapes)}")
    index = tuple(int(part) for part in match[2].split(","))
    shape = shapes[block]
    if len(index) != len(shape) or any(k >= size for k, size in zip(index, shape, strict=True)):
        raise SentembError(
            f"{block} has the shape {'x'.join(map(str, shape))}, so it has no entry "
            f"[{match[2]}]; indices count from 0"
        )
    side, name = block.split(".", 1)
    return side, name, index


def _listed(blocks: Iterable[str]) -> str:
    """The names of all blocks, without repeating the names of sides and directions."""
    names: dict[str, list[str]] = {}
    for block in blocks:
        side, _, name = block.rpartition(".")
        names.setdefault(side, []).append(name)
    sides: dict[str, list[str]] = {}
    for side, names_of_blocks in names.items():
        sides.setdefault(", ".join(names_of_blocks), []).append(side)
    listed = (
        f"of {', '.join(alike)}: {names_of_blocks}" for names_of_blocks, alike in sides.items()
    )
    return f"Blocks {'; '.join(listed)}"
