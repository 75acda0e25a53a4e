"""Sentence embeddings from search click logs, with every gradient in the open.

The names below are imported on first use, so that ``import sentemb`` stays quick and loads neither
Numba nor matplotlib.
"""

from sentemb.errors import SentembError
from sentemb.version import __version__

_HOME = {
    "SentenceEncoder": "sentemb.sentence_encoder",
    "load": "sentemb.loading",
    "train": "sentemb.training.trainer",
    "loss_and_gradient": "sentemb.gradients.pairs",
    "gradcheck": "sentemb.gradients.gradcheck",
}

__all__ = ["SentembError", "__version__", *_HOME]


def __getattr__(name):
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'sentemb' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
