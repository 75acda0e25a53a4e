"""What Elasticsearch and OpenSearch are told: mapping and query.

Both give a vector the score (1 + cosine) / 2: Elasticsearch for ``dot_product``, OpenSearch for
``cosinesimil`` with Lucene, in all versions that have it. Both have Lucene's BM25, whose form is
also that of `sentemb.baselines.inverted_index`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sentemb.baselines.words_and_stems import stem_of
from sentemb.search.lexical import Lexical

TITLE, CLICKED, WORDS, VECTOR = "title", "clicked_queries", "words", "vector"
# What query.json has in the place of a query.
QUERY_TEXT, QUERY_VECTOR = "QUERY TEXT", "QUERY VECTOR"

_SIMILARITY, _ANALYZER, _STEMS = "sentemb_bm25", "sentemb_words", "sentemb_stems"
# Neighbours per title and candidates for a new one, the defaults of both engines.
_M, _EF_CONSTRUCTION = 16, 100
# Titles that the vectors find, and candidates that are looked at for them.
_K, _CANDIDATES = 100, 1000
# Stemmers of Snowball that Lucene has too.
_LANGUAGES = {
    *("armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french"),
    *("german", "hungarian", "irish", "italian", "lithuanian", "norwegian", "porter"),
    *("portuguese", "romanian", "russian", "spanish", "swedish", "turkish"),
}


@dataclass(frozen=True)
class Engine:
    """One of the two search engines.

    Attributes
    ----------
    title : str
        Its name.
    since : str
        The first version that knows all of the mapping.
    max_dim : int
        Numbers that a vector may have.
    settings : dict
        Settings of an index with vectors.
    vector_field : function
        The mapping of vectors, given their length.
    search : function
        The body of a search, given the ``match`` query or None.
    """

    title: str
    since: str
    max_dim: int
    settings: dict[str, Any]
    vector_field: Callable[[int], dict[str, Any]]
    search: Callable[[dict[str, Any] | None], dict[str, Any]]


def mapping(engine: Engine, dim: int, half: Lexical | None, with_clicks: bool) -> dict[str, Any]:
    """The body of the request that creates the engine's index.

    Parameters
    ----------
    engine : Engine
        Who is told.
    dim : int
        Length of a vector.
    half : Lexical, optional
        BM25 of our index: its k1, b and stems are used.
    with_clicks : bool
        Whether titles have clicked queries. If a word of them counts as much as one of the title,
        one field holds the words of both, as in our BM25.
    """
    text: dict[str, Any] = {"type": "text"}
    settings = dict(engine.settings)
    if half is not None:
        text["similarity"] = _SIMILARITY
        settings["similarity"] = {
            _SIMILARITY: {"type": "BM25", "k1": half.lists.k1, "b": half.lists.b}
        }
        language = stem_of(half.lists.words)
        if language is not None and has_stemmer(language):
            text["analyzer"] = _ANALYZER
            settings["analysis"] = _analysis(language)
    is_one_field = with_clicks and half is not None and half.lists.click_weight == 1
    copied = {**text, "copy_to": WORDS} if is_one_field else text
    properties = {TITLE: copied}
    if with_clicks:
        properties[CLICKED] = copied
    if is_one_field:
        properties[WORDS] = text
    properties[VECTOR] = engine.vector_field(dim)
    index = {"settings": {"index": settings}} if settings else {}
    return {**index, "mappings": {"properties": properties}}


def has_stemmer(language: str) -> bool:
    """Whether Lucene has this stemmer of Snowball."""
    return language in _LANGUAGES


def _analysis(language: str) -> dict[str, Any]:
    """Words, lower-cased and reduced to stems."""
    return {
        "filter": {_STEMS: {"type": "snowball", "language": language.capitalize()}},
        "analyzer": {
            _ANALYZER: {
                "type": "custom",
                "tokenizer": "standard",
                "filter": ["lowercase", _STEMS],
            }
        },
    }


def query(
    engine: Engine, boost: float | None, with_clicks: bool, click_weight: float = 1.0
) -> dict[str, Any]:
    """The body of a search, with `QUERY_TEXT` and `QUERY_VECTOR` in the place of a query.

    Parameters
    ----------
    engine : Engine
        Who is told.
    boost : float, optional
        Factor of BM25 in the score, next to (1 + cosine) / 2; None leaves words out.
    with_clicks : bool
        As in `mapping`.
    click_weight : float
        How much a word of a clicked query counts. Unless it is 1, the scores of two fields are
        added: an engine cannot weigh the words of one field.
    """
    match: dict[str, Any] | None = None
    if boost is not None and with_clicks and click_weight != 1:
        fields = [f"{TITLE}^{boost:g}", f"{CLICKED}^{boost * click_weight:g}"]
        match = {"multi_match": {"query": QUERY_TEXT, "type": "most_fields", "fields": fields}}
    elif boost is not None:
        match = {"match": {WORDS if with_clicks else TITLE: {"query": QUERY_TEXT, "boost": boost}}}
    return {"size": 10, "_source": [TITLE], **engine.search(match)}


def _elasticsearch_field(dim: int) -> dict[str, Any]:
    options = {"type": "int8_hnsw", "m": _M, "ef_construction": _EF_CONSTRUCTION}
    return {
        "type": "dense_vector",
        "dims": dim,
        "index": True,
        "similarity": "dot_product",
        "index_options": options,
    }


def _elasticsearch_search(match: dict[str, Any] | None) -> dict[str, Any]:
    knn = {
        "field": VECTOR,
        "query_vector": QUERY_VECTOR,
        "k": _K,
        "num_candidates": _CANDIDATES,
    }
    return {"knn": knn} if match is None else {"knn": knn, "query": match}


def _opensearch_field(dim: int) -> dict[str, Any]:
    return {
        "type": "knn_vector",
        "dimension": dim,
        "method": {
            "name": "hnsw",
            "engine": "lucene",
            "space_type": "cosinesimil",
            "parameters": {"m": _M, "ef_construction": _EF_CONSTRUCTION},
        },
    }


def _opensearch_search(match: dict[str, Any] | None) -> dict[str, Any]:
    knn = {"knn": {VECTOR: {"vector": QUERY_VECTOR, "k": _K}}}
    return {"query": {"bool": {"should": [knn] if match is None else [knn, match]}}}


ENGINES = {
    "elasticsearch": Engine(
        "Elasticsearch", "8.12", 4096, {}, _elasticsearch_field, _elasticsearch_search
    ),
    "opensearch": Engine(
        "OpenSearch", "2.12", 16_000, {"knn": True}, _opensearch_field, _opensearch_search
    ),
}
