"""Embeddings divided by their lengths, so that a product of two is their cosine (3)."""

import numpy as np

from sentemb.kernels.cosine_softmax import normalise_rows
from sentemb.models.words.workspace import Workspace


def unit_embeddings(
    side: str, Y: np.ndarray, workspace: Workspace
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(U, zeros shaped like U, norms) of embeddings Y."""
    U = workspace.empty(f"U_{side}", Y.shape, Y.dtype)
    norms = workspace.empty(f"norms_{side}", (len(Y),), Y.dtype)
    normalise_rows(U, norms, Y)
    return U, workspace.zeros(f"V_{side}", Y.shape, Y.dtype), norms
