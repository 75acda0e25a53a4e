"""Doc2Vec (Le and Mikolov, ICML 2014) by gensim, with the settings of Palangi et al. (section V-B).

Distributed memory with averaged context, window 5, 100 dimensions, down-sampling of frequent words
at 1e-4, 5 noise words, no minimum count, 30 epochs over the queries and titles of the log. The
vectors of new texts are inferred with fixed word vectors; the paper trains on the test texts too.
"""

import functools
from collections.abc import Sequence
from typing import Self
from unittest import mock

import numpy as np

from sentemb.comparison.baselines.baseline import VectorBaseline, learned_from
from sentemb.data.click_log import ClickLog
from sentemb.system.extras import package
from sentemb.text.words import plain_words


class Doc2Vec(VectorBaseline):
    """Cosines of Doc2Vec vectors with ``size`` dimensions."""

    name = "doc2vec"
    is_random = True

    def __init__(self, size: int = 100, window: int = 5, epochs: int = 30) -> None:
        self._doc2vec = package("gensim.models.doc2vec", "baselines")
        self.size, self.window, self.epochs = size, window, epochs

    def fit(self, log: ClickLog | None, titles: Sequence[str] = (), seed: int = 0) -> Self:
        """Train the word vectors; see `Baseline.fit`."""
        log = learned_from(log, self.name)
        texts = dict.fromkeys([*log.queries, *log.titles])
        tagged = [
            self._doc2vec.TaggedDocument(plain_words(text), [number])
            for number, text in enumerate(texts)
        ]
        # One worker and a hash without salt give the same vectors every time.
        self._model = self._doc2vec.Doc2Vec(
            tagged,
            vector_size=self.size,
            window=self.window,
            epochs=self.epochs,
            sample=1e-4,
            negative=5,
            min_count=1,
            workers=1,
            seed=seed + 1,
            hashfxn=_text_hash,
        )
        self.n_parameters = self._model.wv.vectors.size + self._model.dv.vectors.size
        return self

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """Inferred vectors, (k, size) float64; zero for a text without a known word."""
        vectors = np.zeros((len(texts), self.size))
        # gensim starts a vector from Python's own hash of the text, which differs in each process,
        # and has no argument for another one.
        start = functools.partial(self._doc2vec.pseudorandom_weak_vector, hashfxn=_text_hash)
        with mock.patch.object(self._doc2vec, "pseudorandom_weak_vector", start):
            for k, text in enumerate(texts):
                words = [word for word in plain_words(text) if word in self._model.wv]
                if words:
                    # Inference draws from the model's generator: seed it, so that a text's vector
                    # does not depend on the texts before it.
                    self._model.random.seed(_text_hash(text) % 2**32)
                    vectors[k] = self._model.infer_vector(words)
        return vectors


def _text_hash(text: str) -> int:
    """A hash of a text that is the same in every process."""
    number = 0
    for byte in text.encode("utf-8", "surrogatepass"):
        number = (number * 1000003 ^ byte) % 2**61
    return number
