"""Sentence embeddings from search click logs, with every gradient written by hand.

Most names below are imported on first use, so that ``import sentemb`` is quick and loads neither
Numba nor matplotlib.
"""

from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.version import __version__

if TYPE_CHECKING:
    from sentemb.analysis.figures.plots import (
        Drawing,
        plot_cells,
        plot_gates,
        plot_gradient_flow,
        plot_keywords,
        plot_loss,
        plot_match,
    )
    from sentemb.data.click_log import ClickLog
    from sentemb.data.prepared_log import PreparedLog
    from sentemb.data.splitting import split_log
    from sentemb.exporting.targets import export
    from sentemb.gradients.gradcheck import gradcheck
    from sentemb.gradients.pairs import loss_and_gradient
    from sentemb.loading import load
    from sentemb.pair_scorer import PairScorer
    from sentemb.ranking.fitting import fit_ranker
    from sentemb.ranking.opening import load_ranker
    from sentemb.ranking.ranker import HybridRanker
    from sentemb.search.index import Index
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.training.preparing import prepare_log
    from sentemb.training.trainer import train
    from sentemb.vectors.sif import SIF
    from sentemb.vectors.sts import sts

__all__ = [
    "SIF",
    "ClickLog",
    "Drawing",
    "HybridRanker",
    "Index",
    "PairScorer",
    "PreparedLog",
    "SentembError",
    "SentenceEncoder",
    "__version__",
    "export",
    "fit_ranker",
    "gradcheck",
    "load",
    "load_ranker",
    "loss_and_gradient",
    "plot_cells",
    "plot_gates",
    "plot_gradient_flow",
    "plot_keywords",
    "plot_loss",
    "plot_match",
    "prepare_log",
    "split_log",
    "sts",
    "train",
]

_HOME = {
    "ClickLog": "sentemb.data.click_log",
    "SentenceEncoder": "sentemb.sentence_encoder",
    "PairScorer": "sentemb.pair_scorer",
    "load": "sentemb.loading",
    "HybridRanker": "sentemb.ranking.ranker",
    "load_ranker": "sentemb.ranking.opening",
    "fit_ranker": "sentemb.ranking.fitting",
    "train": "sentemb.training.trainer",
    "split_log": "sentemb.data.splitting",
    "prepare_log": "sentemb.training.preparing",
    "PreparedLog": "sentemb.data.prepared_log",
    "SIF": "sentemb.vectors.sif",
    "Index": "sentemb.search.index",
    "export": "sentemb.exporting.targets",
    "sts": "sentemb.vectors.sts",
    "loss_and_gradient": "sentemb.gradients.pairs",
    "gradcheck": "sentemb.gradients.gradcheck",
    **dict.fromkeys(
        (
            "Drawing",
            "plot_cells",
            "plot_gates",
            "plot_gradient_flow",
            "plot_keywords",
            "plot_loss",
            "plot_match",
        ),
        "sentemb.analysis.figures.plots",
    ),
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(_HOME[name]), name)
    raise AttributeError(f"module 'sentemb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
