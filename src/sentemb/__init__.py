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
    from sentemb.bridges.export.targets import export
    from sentemb.data.click_log import ClickLog
    from sentemb.data.prepared_log import PreparedLog
    from sentemb.data.splitting import split_log
    from sentemb.evaluation.sts import sts
    from sentemb.gradients.flow import gradient_flow
    from sentemb.gradients.gradcheck import gradcheck
    from sentemb.gradients.pair_problem import loss_and_gradient
    from sentemb.models.loading import load
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.models.vectors.sif import SIF
    from sentemb.search.index import Index
    from sentemb.search.ranking.fitting import fit_ranker
    from sentemb.search.ranking.opening import load_ranker
    from sentemb.search.ranking.ranker import HybridRanker
    from sentemb.training.batches.preparing import prepare_log
    from sentemb.training.trainer import train

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
    "gradient_flow",
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
    "SentenceEncoder": "sentemb.models.sentence_encoder",
    "PairScorer": "sentemb.models.pair_scorer",
    "load": "sentemb.models.loading",
    "HybridRanker": "sentemb.search.ranking.ranker",
    "load_ranker": "sentemb.search.ranking.opening",
    "fit_ranker": "sentemb.search.ranking.fitting",
    "train": "sentemb.training.trainer",
    "split_log": "sentemb.data.splitting",
    "prepare_log": "sentemb.training.batches.preparing",
    "PreparedLog": "sentemb.data.prepared_log",
    "SIF": "sentemb.models.vectors.sif",
    "Index": "sentemb.search.index",
    "export": "sentemb.bridges.export.targets",
    "sts": "sentemb.evaluation.sts",
    "loss_and_gradient": "sentemb.gradients.pair_problem",
    "gradcheck": "sentemb.gradients.gradcheck",
    "gradient_flow": "sentemb.gradients.flow",
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
