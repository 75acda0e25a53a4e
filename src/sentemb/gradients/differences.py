"""Central differences of a loss at several steps, and the choice of one of them."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from sentemb.gradients.recursion import Array

# Steps of the differences, from coarse to fine: the error of the fourth-order formula falls with
# h^4 and that of float64 rises with 1 / h, so the best step lies between.
STEPS = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4)
# For a function that is linear between its kinks. Its differences have no error but rounding, so
# the largest steps that cross no kink are best, and there is no need to try smaller ones.
LARGE_STEPS = (1.0, 3e-1, 1e-1, 3e-2, *STEPS)


class Loss(Protocol):
    """A function to differentiate, such as a `CheckedProblem`."""

    # Whether it is piecewise linear in each single parameter.
    piecewise_linear: bool

    def loss(self) -> float:
        """The loss at the present parameters."""
        ...

    def branches(self) -> bytes:
        """The branch of every maximum in the last `loss`, which has a kink where one changes."""
        ...


class Differences(NamedTuple):
    """The slope of a loss at 0 of a move, by step.

    steps : h, from coarse to fine
    second : (k,) float64, (L(h) - L(-h)) / 2h at every step. NaN where a maximum is at another cell
        within the step: the loss has a kink there.
    fourth : (k,) float64, (8 [L(h) - L(-h)] - [L(2h) - L(-2h)]) / 12h; NaN as above, and also if a
        kink lies between h and 2h
    taken : the step whose fourth-order difference counts: the one that differs least from the next
        coarser one. None if no two steps in a row are free of kinks.
    """

    steps: tuple[float, ...]
    second: Array
    fourth: Array
    taken: int | None

    @property
    def slope(self) -> float | None:
        """The difference that counts, None over kinks."""
        return None if self.taken is None else float(self.fourth[self.taken])


def differences(problem: Loss, move: Callable[[float], None], linear: bool = False) -> Differences:
    """Differences of ``problem.loss()``, and which of them is taken.

    The choice looks at the differences alone, never at the gradient that they are to judge.

    ``move`` puts the parameters at a distance; it is called with both signs, and never puts them
    back. ``linear`` says whether the loss is linear in the distance as long as it crosses no kink.
    """
    move(0)
    problem.loss()
    smooth = problem.branches()

    def loss_at(offset: float) -> float:
        move(offset)
        loss = problem.loss()
        return loss if problem.branches() == smooth else np.nan

    steps: tuple[float, ...] = LARGE_STEPS if linear else STEPS
    second, fourth = np.full(len(steps), np.nan), np.full(len(steps), np.nan)
    for k, h in enumerate(steps):
        near, far = loss_at(h) - loss_at(-h), loss_at(2 * h) - loss_at(-2 * h)
        second[k] = near / (2 * h)
        fourth[k] = (8 * near - far) / (12 * h)
        if linear and k and not np.isnan(fourth[k - 1 : k + 1]).any():
            steps, second, fourth = steps[: k + 1], second[: k + 1], fourth[: k + 1]
            break
    changes = np.abs(np.diff(fourth))
    taken = None if np.isnan(changes).all() else 1 + int(np.nanargmin(changes))
    return Differences(steps, second, fourth, taken)


def entry_differences(problem: Loss, parameter: np.ndarray, index: tuple[int, ...]) -> Differences:
    """`differences` by one entry of ``parameter``, which is put back."""
    value = parameter[index]

    def move(offset: float) -> None:
        parameter[index] = value + offset

    try:
        return differences(problem, move, problem.piecewise_linear)
    finally:
        parameter[index] = value
