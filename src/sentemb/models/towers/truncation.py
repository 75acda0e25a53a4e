"""Truncated back-propagation through time: how far back errors travel."""

from dataclasses import dataclass
from typing import Self

from sentemb.models.towers.registry import TRUNCATE, TRUNCATION

_ALL = 2**63 - 1  # steps of any text, as an int64


@dataclass(frozen=True)
class Truncation:
    """Through how many steps, counted from each text's own end, errors travel back.

    steps : the paper's T; None means the whole text
    keep_cell_path : what happens beyond the window: the error continues along the cell (``cec``, as
        in the paper's Appendix A) or stops (``window``)
    """

    steps: int | None = None
    keep_cell_path: bool = False

    @classmethod
    def of(cls, steps: int | None, mode: str) -> Self:
        """A truncation from the settings ``truncate`` and ``truncation``.

        Raises `SentembError` if ``steps`` is not a positive integer, or ``mode`` is unknown.
        """
        keep_cell_path = TRUNCATION.checked(mode) == "cec"
        return cls(TRUNCATE.checked(steps), keep_cell_path)

    @property
    def window(self) -> int:
        """Steps, as the kernels take them."""
        return _ALL if self.steps is None else self.steps
