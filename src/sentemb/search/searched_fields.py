"""Fields in which a search looks for words: brand, category, tags.

A word of a field belongs to its title. It counts in BM25 as often as the field has it, times the
weight of the field, next to the words of the title and of its clicked queries; the length of a
title has no part of it. A title with all words of a query, in itself and in these fields, has the
name that the query asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sentemb.errors import SentembError, naming
from sentemb.retrieval.bm25 import MAX_FIELD_WEIGHT, FieldTexts
from sentemb.search.filters import TEXT, known_column
from sentemb.search.index_fields import IndexFields
from sentemb.search.product_fields import ProductFields
from sentemb.search.ranking.recipe import NAME, Recipe
from sentemb.system.bounds import brief, is_finite, plain
from sentemb.text.arguments import as_texts


def checked_weights(
    given: Mapping[str, float] | Iterable[str], fields: ProductFields, recipe: Recipe
) -> dict[str, float]:
    """The weight of each field that is searched, by its name; 1 where only names are ``given``.

    Raises `SentembError` for a field that is not there or has no texts, a weight that is out of
    range, and a ``recipe`` without names.
    """
    weights: dict[str, float] = {}
    with naming("search_fields"):
        for name in as_texts([*given] if isinstance(given, Mapping) else given):
            weight = given[name] if isinstance(given, Mapping) else 1.0
            if not is_finite(weight) or not 0 < weight <= MAX_FIELD_WEIGHT:
                raise SentembError(
                    f"the weight of {plain(name)} is {brief(weight)}; give a number above 0, at "
                    f"most {MAX_FIELD_WEIGHT:g}"
                )
            weights[_column(name, fields)] = float(weight)
        if weights and not recipe.weight(NAME):  # the floor would refuse what only fields answer
            raise SentembError(
                "the ranking counts no names, as the model alone and rankers of version 1.0; fit a "
                "ranker with `sentemb tune` or `sentemb train --dev`"
            )
    return weights


def texts_of(weights: Mapping[str, float], fields: ProductFields | IndexFields) -> list[FieldTexts]:
    """The texts of the searched fields of titles.

    Raises `SentembError` for a field that is not there any more, or has no texts any more.
    """
    rows = list(fields.rows()) if weights else []
    if not rows:
        return [FieldTexts([], weight) for weight in weights.values()]
    with naming("search_fields"):
        columns = [list(fields.types).index(_column(name, fields)) for name in weights]
    return [
        FieldTexts([str(row[k] or "") for row in rows], weight)
        for k, weight in zip(columns, weights.values(), strict=True)
    ]


def _column(name: str, fields: ProductFields | IndexFields) -> str:
    """The column of a searched field."""
    column = known_column(name, fields.types)
    if fields.types[column] != TEXT:
        raise SentembError(
            f"{plain(column)} has numbers or true and false; only words of texts are searched, and "
            "`--where` compares the rest"
        )
    return column
