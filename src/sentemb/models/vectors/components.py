"""The common components of text vectors: how they are found and removed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.sif import orthogonalise_rows, remove_components
from sentemb.models.vectors.averages import Moments
from sentemb.system.html_tables import html_table
from sentemb.system.parallel import Workers

_SWEEPS = 100
# A share of the squared lengths that float32 cannot tell from zero.
_NOISE = 1e-12


@dataclass(frozen=True, eq=False)
class Components:
    """Directions that all texts share.

    directions : (k, d) float64, orthonormal, the strongest first; each has a dot product of at
        least 0 with the mean
    strengths : (k,) float64, the part of each that is removed: 1 for all of it
    shares : (k,) float64, the share of each in the sum of the squared lengths of all text vectors
    """

    directions: NDArray[np.float64]
    strengths: NDArray[np.float64]
    shares: NDArray[np.float64]

    def removed(self, X: np.ndarray, workers: Workers) -> np.ndarray:
        """A copy of the rows of X, (n, d) float, without the components."""
        X = np.array(X, order="C")
        if len(self.strengths):
            workers.over(len(X), remove_components, X, self.directions, self.strengths)
        return X

    def _repr_html_(self) -> str:
        rows = [
            (f"component {number}", f"{share:.1%}", f"{strength:.0%}")
            for number, (share, strength) in enumerate(
                zip(self.shares.tolist(), self.strengths.tolist(), strict=True), 1
            )
        ]
        heads = ["", "share of the squared lengths", "removed"]
        return html_table(rows, heads, texts=(0,)) if rows else "<p>no components</p>"


def common_components(moments: Moments, k: int, weighted: bool = False) -> Components:
    """The first k right singular vectors of the matrix with a row for each text, not centred.

    Lines 4 to 6 of Algorithm 1, which has k = 1. The authors' code finds them by a randomised
    method; these are exact. ``weighted`` removes the share lambda_i = s_i^2 / (s_1^2 + ... + s_k^2)
    of component i, as uSIF does, instead of all of it.

    Raises `SentembError` if there are fewer than two texts, or k is not less than the length of a
    vector, or the texts span fewer than k directions, or no more than the k that are removed and
    one more.
    """
    d = len(moments.first)
    if k == 0:
        return Components(np.empty((0, d)), np.empty(0), np.empty(0))
    if moments.n_texts < 2:
        raise SentembError(
            f"{moments.n_texts} texts with known words are too few to find common components; "
            "give at least 2, or set components to 0"
        )
    if k >= d:
        raise SentembError(
            f"removing {k} components leaves nothing of vectors of length {d}; remove fewer"
        )
    # Scaled, so that no product overflows.
    scale = np.trace(moments.second)
    if not 0 < scale < np.inf:
        raise SentembError(
            "all texts have the zero vector, so there are no components; give other texts, or set "
            "components to 0"
        )
    rows = moments.second / scale
    orthogonalise_rows(rows, _SWEEPS)
    shares = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    ranking = np.argsort(-shares, kind="stable")
    order, rest = ranking[:k], ranking[k:]
    if shares[order[-1]] < _NOISE:
        raise SentembError(
            f"the texts have fewer than {k} components; give more texts or remove fewer components"
        )
    is_whole = k == 1 or not weighted
    if is_whole and shares[rest].sum() < _NOISE:
        # Else the texts would become rounding errors, whose cosines look like those of texts.
        verb = "is" if k == 1 else "are"
        raise SentembError(
            f"{_components(k)} {verb} all there is in the texts, and nothing would be left of "
            "them; give more different texts or fewer components"
        )
    if is_whole and d > k + 1 and np.count_nonzero(shares[rest] >= _NOISE) < 2:
        raise SentembError(
            f"without {_components(k)} all that is left of the texts is a line, and every cosine "
            f"would be 1 or -1; give at least {k + 2} different texts, or fewer components"
        )
    directions = rows[order] / shares[order, None]
    # The sign of an eigenvector is arbitrary. Choose the one whose nearest words the texts share.
    along = np.einsum("kd,d->k", directions, moments.first)
    directions[along < 0] *= -1
    explained = shares[order]
    strengths = explained / explained.sum() if weighted else np.ones(k)
    return Components(directions, strengths, explained)


def _components(k: int) -> str:
    return "component 1" if k == 1 else f"components 1 to {k}"
