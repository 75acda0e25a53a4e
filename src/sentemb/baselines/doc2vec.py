"""Doc2Vec (Le and Mikolov, ICML 2014) by gensim, with the paper's settings (its section VI-B).

Distributed memory with averaged context, window 5, 100 numbers, down-sampling of frequent words at
1e-4, 5 noise words, no least count, 30 epochs over the queries and titles of the log. New texts get
their vectors by inference with the words' vectors fixed.
"""

import numpy as np

from sentemb.baselines.baseline import Baseline, cosines, package, plain_words

_SIZE = 100
_EPOCHS = 30


class Doc2Vec(Baseline):
    """See the module."""

    name = "doc2vec"
    is_random = True

    def __init__(self):
        self._doc2vec = package("gensim.models.doc2vec")

    def fit(self, log, docs=(), seed=0):
        texts = dict.fromkeys([*log.queries, *log.titles])
        tagged = [
            self._doc2vec.TaggedDocument(plain_words(text), [number])
            for number, text in enumerate(texts)
        ]
        # One worker and a hash without salt: the same vectors every time.
        self._model = self._doc2vec.Doc2Vec(
            tagged,
            vector_size=_SIZE,
            window=5,
            sample=1e-4,
            negative=5,
            min_count=1,
            epochs=_EPOCHS,
            workers=1,
            seed=seed + 1,
            hashfxn=_place_of_word,
        )
        self.n_parameters = self._model.wv.vectors.size + self._model.dv.vectors.size
        return self

    def _vectors(self, texts):
        vectors = np.zeros((len(texts), _SIZE))
        for k, text in enumerate(texts):
            words = [word for word in plain_words(text) if word in self._model.wv]
            if words:
                # Inference draws from the model's generator; its state must not depend on others.
                self._model.random.seed(_place_of_word(text) % 2**32)
                vectors[k] = self._model.infer_vector(words)
        return vectors

    def score_pairs(self, queries, docs, query_index, doc_index):
        return cosines(self._vectors(queries)[query_index], self._vectors(docs)[doc_index])


def _place_of_word(text):
    """A hash of a text that is the same in every process."""
    number = 0
    for byte in text.encode("utf-8", "surrogatepass"):
        number = (number * 1000003 ^ byte) % 2**61
    return number
