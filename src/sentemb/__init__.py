"""Sentence embeddings from search click logs, with every gradient written by hand.

Most names below are imported on first use, so that ``import sentemb`` is quick and loads neither
Numba nor matplotlib.
"""

from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.version import __version__

if TYPE_CHECKING:
    from sentemb.analysis.attribution import word_effects
    from sentemb.analysis.explanation import Explanation, explain
    from sentemb.analysis.figures.plots import (
        Drawing,
        plot_cells,
        plot_gates,
        plot_gradient_flow,
        plot_keywords,
        plot_loss,
        plot_match,
    )
    from sentemb.analysis.gates import read_gates
    from sentemb.analysis.nearest_words import neighbours
    from sentemb.analysis.overview import Overview, overview
    from sentemb.analysis.synonyms import synonyms
    from sentemb.analysis.topics import topics
    from sentemb.bridges.export.targets import export
    from sentemb.bridges.refresh.pins import Pinned, pin
    from sentemb.bridges.refresh.refreshing import Refreshed, refresh
    from sentemb.bridges.refresh.starting import start
    from sentemb.comparison.baselines.chance import Chance
    from sentemb.comparison.difference import RankingDifference, diff
    from sentemb.comparison.measuring import evaluate
    from sentemb.data.click_log import ClickLog, ClickLogBuilder, read_click_log, write_click_log
    from sentemb.data.importers.click_rows import Columns
    from sentemb.data.importers.click_table import import_clicks
    from sentemb.data.importers.columns import Reading
    from sentemb.data.judged_set import JudgedSet, read_judged_set, write_judged_set
    from sentemb.data.labelled_pairs import LabelledPairs, read_labelled_pairs
    from sentemb.data.prepared_log import PreparedLog
    from sentemb.data.similarity_set import read_similarity_set
    from sentemb.data.simulation.simulator import simulate
    from sentemb.data.splitting import split_log
    from sentemb.evaluation.held_out import Evaluation
    from sentemb.evaluation.metrics import NDCG
    from sentemb.evaluation.reranking import rank_pairs
    from sentemb.evaluation.sts import sts
    from sentemb.gradients.check_report import GradientReport
    from sentemb.gradients.entry_trace import explain_gradient
    from sentemb.gradients.flow import gradient_flow
    from sentemb.gradients.gradcheck import gradcheck
    from sentemb.gradients.pair_problem import loss_and_gradient
    from sentemb.models.loading import load
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.models.pairs import make_pair_model
    from sentemb.models.sentence_encoder import GateTrace, SentenceEncoder
    from sentemb.models.vectors.reading import read_word_vectors
    from sentemb.models.vectors.sif import SIF
    from sentemb.models.vectors.skip_gram import train_word_vectors
    from sentemb.models.vectors.teaching import teach_word_vectors
    from sentemb.models.vectors.word_vectors import WordVectors
    from sentemb.models.vectors.writing import write_word_vectors
    from sentemb.search.index import Index
    from sentemb.search.ranking.fitting import fit_ranker
    from sentemb.search.ranking.opening import load_ranker
    from sentemb.search.ranking.ranker import HybridRanker
    from sentemb.search.ranking.recipe import Recipe
    from sentemb.search.searcher import Hit
    from sentemb.text.vocabulary import Vocabulary
    from sentemb.text.words import letter_trigrams
    from sentemb.training.batches.preparing import prepare_log
    from sentemb.training.progress import Progress
    from sentemb.training.trainer import train

# Where each name is, by the sections of docs/python.md.
_SECTIONS = {
    "Models and training": {
        "SentenceEncoder": "models.sentence_encoder",
        "PairScorer": "models.pair_scorer",
        "load": "models.loading",
        "train": "training.trainer",
        "Progress": "training.progress",
        "SIF": "models.vectors.sif",
        "GateTrace": "models.sentence_encoder",
        "make_pair_model": "models.pairs",
    },
    "Search": {
        "Index": "search.index",
        "Hit": "search.searcher",
        "HybridRanker": "search.ranking.ranker",
        "Recipe": "search.ranking.recipe",
        "fit_ranker": "search.ranking.fitting",
        "load_ranker": "search.ranking.opening",
        "export": "bridges.export.targets",
        "start": "bridges.refresh.starting",
        "refresh": "bridges.refresh.refreshing",
        "Refreshed": "bridges.refresh.refreshing",
        "pin": "bridges.refresh.pins",
        "Pinned": "bridges.refresh.pins",
        "overview": "analysis.overview",
        "Overview": "analysis.overview",
    },
    "Measuring": {
        "evaluate": "comparison.measuring",
        "NDCG": "evaluation.metrics",
        "Evaluation": "evaluation.held_out",
        "diff": "comparison.difference",
        "RankingDifference": "comparison.difference",
        "rank_pairs": "evaluation.reranking",
        "sts": "evaluation.sts",
        "Chance": "comparison.baselines.chance",
    },
    "Looking inside": {
        "explain": "analysis.explanation",
        "Explanation": "analysis.explanation",
        "word_effects": "analysis.attribution",
        "neighbours": "analysis.nearest_words",
        "synonyms": "analysis.synonyms",
        "topics": "analysis.topics",
        "read_gates": "analysis.gates",
        "Drawing": "analysis.figures.plots",
        "plot_cells": "analysis.figures.plots",
        "plot_gates": "analysis.figures.plots",
        "plot_gradient_flow": "analysis.figures.plots",
        "plot_keywords": "analysis.figures.plots",
        "plot_loss": "analysis.figures.plots",
        "plot_match": "analysis.figures.plots",
    },
    "Gradients": {
        "gradcheck": "gradients.gradcheck",
        "GradientReport": "gradients.check_report",
        "explain_gradient": "gradients.entry_trace",
        "gradient_flow": "gradients.flow",
        "loss_and_gradient": "gradients.pair_problem",
    },
    "Click logs, judged, similarity and labelled sets": {
        "ClickLog": "data.click_log",
        "ClickLogBuilder": "data.click_log",
        "read_click_log": "data.click_log",
        "write_click_log": "data.click_log",
        "import_clicks": "data.importers.click_table",
        "Columns": "data.importers.click_rows",
        "Reading": "data.importers.columns",
        "split_log": "data.splitting",
        "prepare_log": "training.batches.preparing",
        "PreparedLog": "data.prepared_log",
        "JudgedSet": "data.judged_set",
        "read_judged_set": "data.judged_set",
        "write_judged_set": "data.judged_set",
        "LabelledPairs": "data.labelled_pairs",
        "read_labelled_pairs": "data.labelled_pairs",
        "read_similarity_set": "data.similarity_set",
        "simulate": "data.simulation.simulator",
    },
    "Words and their vectors": {
        "Vocabulary": "text.vocabulary",
        "letter_trigrams": "text.words",
        "WordVectors": "models.vectors.word_vectors",
        "read_word_vectors": "models.vectors.reading",
        "write_word_vectors": "models.vectors.writing",
        "train_word_vectors": "models.vectors.skip_gram",
        "teach_word_vectors": "models.vectors.teaching",
    },
}

__all__ = [
    "NDCG",
    "SIF",
    "Chance",
    "ClickLog",
    "ClickLogBuilder",
    "Columns",
    "Drawing",
    "Evaluation",
    "Explanation",
    "GateTrace",
    "GradientReport",
    "Hit",
    "HybridRanker",
    "Index",
    "JudgedSet",
    "LabelledPairs",
    "Overview",
    "PairScorer",
    "Pinned",
    "PreparedLog",
    "Progress",
    "RankingDifference",
    "Reading",
    "Recipe",
    "Refreshed",
    "SentembError",
    "SentenceEncoder",
    "Vocabulary",
    "WordVectors",
    "__version__",
    "diff",
    "evaluate",
    "explain",
    "explain_gradient",
    "export",
    "fit_ranker",
    "gradcheck",
    "gradient_flow",
    "import_clicks",
    "letter_trigrams",
    "load",
    "load_ranker",
    "loss_and_gradient",
    "make_pair_model",
    "neighbours",
    "overview",
    "pin",
    "plot_cells",
    "plot_gates",
    "plot_gradient_flow",
    "plot_keywords",
    "plot_loss",
    "plot_match",
    "prepare_log",
    "rank_pairs",
    "read_click_log",
    "read_gates",
    "read_judged_set",
    "read_labelled_pairs",
    "read_similarity_set",
    "read_word_vectors",
    "refresh",
    "simulate",
    "split_log",
    "start",
    "sts",
    "synonyms",
    "teach_word_vectors",
    "topics",
    "train",
    "train_word_vectors",
    "word_effects",
    "write_click_log",
    "write_judged_set",
    "write_word_vectors",
]

_HOME = {name: module for section in _SECTIONS.values() for name, module in section.items()}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        import importlib

        return getattr(importlib.import_module(f"sentemb.{_HOME[name]}"), name)
    raise AttributeError(f"module 'sentemb' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
