"""Rankers that this package does not train by its gradients: what a trained model has to beat.

Each is a `sentemb.models.contracts.Ranker`. docs/baselines.md describes them and gives their
sources.
"""

from importlib import import_module
from typing import Any

from sentemb.comparison.baselines.baseline import Baseline
from sentemb.errors import SentembError
from sentemb.system.bounds import brief

# Name -> module and class; imported on first use, since some need optional packages.
BASELINES = {
    "random": ("sentemb.comparison.baselines.chance", "Chance"),
    "unigram": ("sentemb.comparison.baselines.unigram", "Unigram"),
    "bm25": ("sentemb.comparison.baselines.bm25", "BM25"),
    "plsa": ("sentemb.comparison.baselines.plsa", "PLSA"),
    "doc2vec": ("sentemb.comparison.baselines.doc2vec", "Doc2Vec"),
    "skip-thought": ("sentemb.comparison.baselines.skip_thought", "SkipThought"),
}


def make_baseline(name: str, **settings: Any) -> Baseline:
    """The baseline called ``name``, not yet fitted."""
    if name not in tuple(BASELINES):
        raise SentembError(f"baseline must be one of {', '.join(BASELINES)}, not {brief(name)}")
    module, kind = BASELINES[name]
    try:
        baseline: Baseline = getattr(import_module(module), kind)(**settings)
        return baseline
    except TypeError as error:
        raise SentembError(f"baseline {name} does not take these settings: {error}") from error
