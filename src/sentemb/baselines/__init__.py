"""Rankers that this package does not train by its gradients: what a trained model has to beat.

Each is a `sentemb.protocols.Ranker`. docs/baselines.md describes them and gives their sources.
"""

from importlib import import_module
from typing import Any

from sentemb.baselines.baseline import Baseline
from sentemb.bounds import brief
from sentemb.errors import SentembError

# Name -> module and class; imported on first use, since some need optional packages.
BASELINES = {
    "random": ("sentemb.baselines.chance", "Chance"),
    "unigram": ("sentemb.baselines.unigram", "Unigram"),
    "bm25": ("sentemb.baselines.bm25", "BM25"),
    "plsa": ("sentemb.baselines.plsa", "PLSA"),
    "doc2vec": ("sentemb.baselines.doc2vec", "Doc2Vec"),
    "skip-thought": ("sentemb.baselines.skip_thought", "SkipThought"),
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
