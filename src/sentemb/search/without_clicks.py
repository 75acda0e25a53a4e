"""An index for a shop without clicks: nothing is learned, and how titles are written counts.

Words count as in BM25. Letter trigrams catch other forms of a word: each has a random vector, so
the cosine of two sums is near the share of trigrams that two texts have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np

from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import SIDES
from sentemb.retrieval.bm25 import count_words
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index import Fields, Index
from sentemb.search.ranking.part import Fields as Statistics
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import BM25, CLICKS, COSINE, NAME, Recipe
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import NEW, SPLITTINGS

# Numbers of a vector; the error of a cosine is about 1 / root of them.
_CELLS = 256
# Set by hand. The first click adds 4.4, less than a rare word does, and ten add 11.
_RECIPE = Recipe({COSINE: 10.0, BM25: 1.0, CLICKS: 3.0, NAME: 5.0})


def index_without_clicks(
    titles: Sequence[str],
    ids: Sequence[str],
    fields: Fields = None,
    search_fields: Mapping[str, float] = MappingProxyType({}),
    *,
    threads: int | None = None,
) -> Index:
    """Make an index that finds titles by their words and letters.

    The parameters are as for `Index.build`. Clicks count once there are some.
    """
    split = SPLITTINGS[NEW]
    vocabulary = Vocabulary.collect(tokenize(titles, split), splitting=NEW)
    drawn = np.random.default_rng(0).standard_normal((len(vocabulary), _CELLS), np.float32)
    weights = {"table": drawn / np.float32(_CELLS**0.5)}
    encoder = make_encoder("bag", cells=_CELLS)
    model = SentenceEncoder(encoder, vocabulary, dict.fromkeys(SIDES, weights), threads=threads)
    nothing, words = ClickedQueries.nothing(), _RECIPE.words
    bare = HybridRanker(model, _RECIPE, nothing, threads=threads)
    texts = list(titles)
    of_log = nothing.of_titles(texts), bare.read_queries.tokens(words)
    statistics = Statistics.of(count_words(texts, *of_log, words))
    ranker = HybridRanker(model, _RECIPE, nothing, statistics, threads=threads)
    return Index.build(ranker, titles, ids, fields, search_fields=search_fields, threads=threads)
