"""What all baselines share."""

import inspect
import re

import numpy as np

from sentemb.errors import SentembError

_WORD = re.compile(r"\w+")


class Baseline:
    """Base of all baselines: settings are the arguments of ``__init__``, kept under their names."""

    name = None
    # Whether a seed matters.
    is_random = False
    # What to try on dev: dicts of settings.
    grid = ({},)
    # Numbers that fitting sets.
    n_parameters = 0

    def settings(self):
        """What makes this baseline anew."""
        return {key: getattr(self, key) for key in inspect.signature(type(self)).parameters}

    def fit(self, log, docs=(), seed=0):
        """Learn what there is to learn.

        Parameters
        ----------
        log : ClickLog or None
        docs : sequence of str
            The titles that will be ranked: part of the collection whose statistics count.
        seed : int

        Returns
        -------
        Baseline
            Itself.
        """
        return self

    def score_pairs(self, queries, docs, query_index, doc_index):
        """See `SentenceEncoder.score_pairs`."""
        raise NotImplementedError


def plain_words(text):
    """Lower-cased runs of letters, digits and underscores.

    Letter trigrams see that "shoes:" is nearly "shoes"; rankers of whole words have to be told.
    """
    return _WORD.findall(text.lower())


def cosines(a, b):
    """Cosine of each row of ``a`` with the same row of ``b``, 0 where one is zero: (k,) float64."""
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    dots = np.einsum("kd,kd->k", a, b)
    return np.divide(dots, norms, out=np.zeros(len(a)), where=norms != 0)


def package(name, extra="baselines"):
    """An optional package, or a message that says how to install it."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SentembError(
            f"the package {name} is not installed; pip install 'sentemb[{extra}]'"
        ) from error
