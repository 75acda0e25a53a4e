"""Base class and functions of all baselines."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError


class Baseline(ABC):
    """A `Ranker` whose settings are the arguments of ``__init__``, kept under their names.

    Attributes
    ----------
    name : str
        The name in `make_baseline` and on the command line.
    is_random : bool
        Whether the result depends on the seed.
    grid : tuple of dict
        Settings to try on a dev set.
    n_parameters : int
        The number of parameters that fitting sets.
    """

    name: ClassVar[str]
    is_random: ClassVar[bool] = False
    grid: ClassVar[tuple[dict[str, Any], ...]] = ({},)
    n_parameters: int = 0

    def settings(self) -> dict[str, Any]:
        """The arguments that make this baseline again."""
        return {key: getattr(self, key) for key in inspect.signature(type(self)).parameters}

    def fit(self, log: ClickLog | None, titles: Sequence[str] = (), seed: int = 0) -> Self:
        """Fit the baseline.

        Parameters
        ----------
        log : ClickLog or None
            The clicks to learn from, if the baseline learns from clicks.
        titles : sequence of str
            The titles that will be ranked: part of the collection whose statistics count.
        seed : int
            Seed of everything random.

        Returns
        -------
        Baseline
            The same object.
        """
        return self

    @abstractmethod
    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Scores of pairs, (k,) float64; see `sentemb.models.contracts.Ranker`."""


class VectorBaseline(Baseline):
    """A baseline that scores a pair by the cosine of two vectors."""

    @abstractmethod
    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, (k, dim) float32 or float64; zero for a text without a known word."""

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Cosines, (k,) float64, 0 where a vector is zero; see `Ranker`."""
        return cosines(self.vectors(queries)[query_index], self.vectors(titles)[title_index])


def learned_from(log: ClickLog | None, name: str) -> ClickLog:
    """``log``; a `SentembError` without one, for baselines that need clicks."""
    if log is None:
        raise SentembError(f"the baseline {name} needs a click log; give one")
    return log


def cosines(a: np.ndarray, b: np.ndarray) -> NDArray[np.float64]:
    """Cosine of each row of ``a`` with the same row of ``b``, 0 where one is zero: (k,) float64."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    dots = np.einsum("kd,kd->k", a, b)
    values: NDArray[np.float64] = np.divide(dots, norms, out=np.zeros(len(a)), where=norms != 0)
    return values
