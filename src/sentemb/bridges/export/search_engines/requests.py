"""Mapping and query for Elasticsearch and OpenSearch.

Both give a vector the score (1 + cosine) / 2: Elasticsearch for ``dot_product``, OpenSearch for
``cosinesimil`` with Lucene, in all versions that have it. Both have Lucene's BM25, whose form is
also that of `sentemb.retrieval.bm25`, and a second pass over the best titles whose factors may be
negative (``rescore``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sentemb.bridges.export.search_engines.scoring import (
    CLICKED,
    COUNTS,
    FIELDS,
    NEAREST,
    SECOND_PASS,
    TITLE,
    VECTOR,
    WORDS,
    EngineScoring,
)
from sentemb.search.filters import BOOLEAN, INTEGER, REAL, TEXT

# What query.json has in the place of a query.
QUERY_TEXT, QUERY_VECTOR, QUERY_NAME = "QUERY TEXT", "QUERY VECTOR", "QUERY NAME"

_SIMILARITY, _ANALYZER, _STEMS = "sentemb_bm25", "sentemb_words", "sentemb_stems"
# Neighbours per title and candidates for a new one, the defaults of both engines.
_M, _EF_CONSTRUCTION = 16, 100
# Lucene refuses terms of more than 32,766 bytes, so longer texts cannot be asked for.
_FIELD_TYPES: dict[str, dict[str, Any]] = {
    INTEGER: {"type": "long"},
    REAL: {"type": "double"},
    TEXT: {"type": "keyword", "ignore_above": 8191},
    BOOLEAN: {"type": "boolean"},
}
# Candidates that are looked at for the nearest titles.
_CANDIDATES = 1000
# Stemmers of Snowball that Lucene has too.
_LANGUAGES = {
    *("armenian", "basque", "catalan", "danish", "dutch", "english", "finnish", "french"),
    *("german", "hungarian", "irish", "italian", "lithuanian", "norwegian", "porter"),
    *("portuguese", "romanian", "russian", "spanish", "swedish", "turkish"),
}


@dataclass(frozen=True)
class Engine:
    """One of the two search engines.

    title : its name
    since : the first version that knows all of the mapping
    max_dim : numbers that a vector may have
    settings : settings of an index with vectors
    vector_field : the mapping of vectors, given their length
    search : the parts of a search that find titles, given whether vectors do and the clauses of
        words
    """

    title: str
    since: str
    max_dim: int
    settings: dict[str, Any]
    vector_field: Callable[[int], dict[str, Any]]
    search: Callable[[bool, list[dict[str, Any]]], dict[str, Any]]


def mapping(
    engine: Engine, dim: int, scoring: EngineScoring, types: Mapping[str, str]
) -> dict[str, Any]:
    """The body of the request that creates the engine's index; ``dim`` is the length of a vector.

    Of ``scoring`` its k1, b and stems are used, and it says whether titles have clicked queries.
    ``types`` are those of the fields of the products.
    """
    recipe = scoring.recipe
    text: dict[str, Any] = {"type": "text"}
    settings = dict(engine.settings)
    if recipe.reads_words:
        text["similarity"] = _SIMILARITY
        settings["similarity"] = {_SIMILARITY: {"type": "BM25", "k1": recipe.k1, "b": recipe.b}}
        if recipe.stem is not None and has_stemmer(recipe.stem):
            text["analyzer"] = _ANALYZER
            settings["analysis"] = _analysis(recipe.stem)
    copied = {**text, "copy_to": WORDS}
    properties: dict[str, Any] = {TITLE: text}
    if scoring.has_clicks:
        properties = {TITLE: copied, CLICKED: copied, WORDS: text}
    if scoring.clicks:
        properties[COUNTS] = {"type": "rank_features"}
    properties[VECTOR] = engine.vector_field(dim)
    if types:
        properties[FIELDS] = {
            "properties": {name: _FIELD_TYPES[kind] for name, kind in types.items()}
        }
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


def query(engine: Engine, scoring: EngineScoring, has_fields: bool) -> dict[str, Any]:
    """The body of a search, with `QUERY_TEXT` and the like in the place of a query.

    Hits have their titles, and their fields if ``has_fields``.
    """
    clauses = [_match(field, boost=factor) for field, factor in scoring.finding.items()]
    if scoring.clicks:
        of_query: dict[str, Any] = {"field": f"{COUNTS}.{QUERY_NAME}", "boost": scoring.clicks}
        clauses.append({"rank_feature": {**of_query, "log": {"scaling_factor": 1}}})
    again = [(_match(field), factor) for field, factor in scoring.second_pass.items()]
    if scoring.unclicked:
        without = {"bool": {"must_not": {"exists": {"field": CLICKED}}}}
        again.append(({"constant_score": {"filter": without}}, scoring.unclicked))
    shown = [TITLE, FIELDS] if has_fields else [TITLE]
    body = {"size": 10, "_source": shown, **engine.search(scoring.uses_vectors, clauses)}
    if again:
        body["rescore"] = [
            {
                "window_size": SECOND_PASS,
                "query": {"rescore_query": clause, "rescore_query_weight": factor},
            }
            for clause, factor in again
        ]
    return body


def _match(field: str, **options: float) -> dict[str, Any]:
    return {"match": {field: {"query": QUERY_TEXT, **options}}}


def _elasticsearch_field(dim: int) -> dict[str, Any]:
    options = {"type": "int8_hnsw", "m": _M, "ef_construction": _EF_CONSTRUCTION}
    return {
        "type": "dense_vector",
        "dims": dim,
        "index": True,
        "similarity": "dot_product",
        "index_options": options,
    }


def _elasticsearch_search(by_vector: bool, clauses: list[dict[str, Any]]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    if by_vector:
        body["knn"] = {
            "field": VECTOR,
            "query_vector": QUERY_VECTOR,
            "k": NEAREST,
            "num_candidates": _CANDIDATES,
        }
    if clauses:
        body["query"] = {"bool": {"should": clauses}}
    return body


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


def _opensearch_search(by_vector: bool, clauses: list[dict[str, Any]]) -> dict[str, Any]:
    knn = [{"knn": {VECTOR: {"vector": QUERY_VECTOR, "k": NEAREST}}}] if by_vector else []
    return {"query": {"bool": {"should": [*knn, *clauses]}}}


ENGINES = {
    "elasticsearch": Engine(
        "Elasticsearch", "8.12", 4096, {}, _elasticsearch_field, _elasticsearch_search
    ),
    "opensearch": Engine(
        "OpenSearch", "2.12", 16_000, {"knn": True}, _opensearch_field, _opensearch_search
    ),
}
