"""Rankers without our gradients: what a trained model has to beat.

Every ranker, a model or a baseline, answers `SentenceEncoder.score_pairs`. docs/baselines.md says
what each is and where it comes from.
"""

from importlib import import_module

from sentemb.bounds import brief
from sentemb.errors import SentembError

# Name -> where its class is; imported when asked for, since some need optional packages.
BASELINES = {
    "random": ("sentemb.baselines.chance", "Chance"),
    "unigram": ("sentemb.baselines.unigram", "Unigram"),
    "bm25": ("sentemb.baselines.bm25", "BM25"),
    "plsa": ("sentemb.baselines.plsa", "PLSA"),
    "doc2vec": ("sentemb.baselines.doc2vec", "Doc2Vec"),
    "skip-thought": ("sentemb.baselines.skip_thought", "SkipThought"),
}


def make_baseline(name, **settings):
    """The baseline called ``name``, not yet fitted."""
    if name not in tuple(BASELINES):
        raise SentembError(f"baseline must be one of {', '.join(BASELINES)}, not {brief(name)}")
    module, kind = BASELINES[name]
    try:
        return getattr(import_module(module), kind)(**settings)
    except TypeError as error:
        raise SentembError(f"baseline {name} does not take these settings: {error}") from error
