"""A random ranking: what nothing at all is worth on a judged set."""

import hashlib

import numpy as np

from sentemb.baselines.baseline import Baseline


class Chance(Baseline):
    """A score from a hash of seed, query and title, so it depends on nothing else."""

    name = "random"
    is_random = True

    def fit(self, log, docs=(), seed=0):
        self._seed = seed
        return self

    def score_pairs(self, queries, docs, query_index, doc_index):
        return np.array(
            [self._score(queries[q], docs[d]) for q, d in zip(query_index, doc_index)], np.float64
        )

    def _score(self, query, doc):
        text = f"{self._seed}\0{query}\0{doc}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48
