"""The problem of a gradient check: a loss, its parameters and its gradient."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.gradients.whole_batch import BatchForms
from sentemb.system.contracts import Arrays


class CheckedProblem(ABC):
    """A loss with its gradient, made up for a check.

    Two towers on pairs of texts are one such problem (`sentemb.gradients.two_towers`); the others
    are listed in `sentemb.gradients.checks`. A subclass has at least the attributes below, `loss`
    and `gradient`. The blocks of ``parameters`` are changed in place by the check, and `loss` and
    `gradient` must follow them.

    name : the name in reports and for ``--model``
    settings : those from which the problem was made, in the order in which they are printed
    parameters : float64 arrays by side and block: ``parameters["query"]["W1"]`` is reported as
        ``query.W1``
    rng : as making the problem left it; the check draws entries and directions from it
    piecewise_linear : whether the loss is piecewise linear in each single parameter
    least : entries that are smaller than that are compared with it instead of with themselves, for
        a loss whose terms may cancel so that only rounding is left
    """

    name: str
    settings: dict[str, Any]
    parameters: dict[str, Arrays]
    rng: np.random.Generator
    piecewise_linear: bool = False
    least: float = 0.0

    @abstractmethod
    def loss(self) -> float:
        """The loss at the present parameters."""

    @abstractmethod
    def gradient(self, form: str = "scan") -> dict[str, Arrays]:
        """The gradient by every block of ``parameters``.

        The form "scan" is the exact gradient; "trace" and "printed" are as for `gradcheck`, where
        the problem has them.
        """

    def broken_gradient(self, fault: str) -> dict[str, Arrays]:
        """The gradient with one term left out; `SentembError` if no term can be left out."""
        raise SentembError(f"{self.name} has no terms to leave out; leave out the fault {fault}")

    def second_form(self) -> dict[str, Arrays]:
        """The exact gradient computed in another way; sides and blocks without one are left out."""
        return {}

    def whole_batch(self, n_texts: int) -> Iterator[BatchForms]:
        """A mini-batch as large as in training, by the same kernels at the present parameters.

        Each of its exact gradients is compared with that of all ``n_texts`` at once. None for a
        loss that is not made of texts.
        """
        return iter(())

    def branches(self) -> bytes:
        """The branches of the maxima in the last pass; the loss has a kink where one changes."""
        return b""

    def is_reached(self, block: str) -> bool:
        """Whether the loss depends on ``block``, such as ``query.W1``: then it has a gradient."""
        return True

    def at_fault(self, block: str) -> str:
        """For a failing block of the form ``printed``: the equation of the paper at fault."""
        return ""
