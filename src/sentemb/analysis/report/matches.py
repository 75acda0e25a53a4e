"""Contents of the page of a pair model: the model, and shares of the score of some pairs."""

from collections.abc import Sequence
from typing import Any

from sentemb.analysis.attribution import left_out_effects
from sentemb.analysis.pair_effects import match
from sentemb.analysis.report.facts import setting_facts
from sentemb.analysis.report.page_pairs import ShownPair
from sentemb.analysis.report.tower_sections import rank_facts, rounded
from sentemb.errors import SentembError
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.parameters import parameter_fact


def scorer_facts(scorer: PairScorer) -> tuple[str, list[list[str]]]:
    """The model in a line, and its settings and sizes."""
    facts = [
        *setting_facts(scorer.model.settings()),
        ["Vocabulary", str(scorer.vocabulary)],
        ["Parameters", parameter_fact(scorer)],
    ]
    return f"Pair model {scorer.model.name}", facts


def collect_matches(scorer: PairScorer, pairs: Sequence[ShownPair]) -> dict[str, Any]:
    """The pairs of a page, with the effects and shares of their words.

    Raises `SentembError` for a pair without a title, or with a text without words.
    """
    # Only two towers have gates and cells.
    return {"pairs": [_pair(scorer, pair) for pair in pairs], "gates": [], "cells": []}


def _pair(scorer: PairScorer, pair: ShownPair) -> dict[str, Any]:
    if pair.title is None:
        raise SentembError(f"the query {pair.query[:40]!r} has no title; give pairs of both")
    shares = match(scorer, pair.query, pair.title)
    query, title = (text.words for text in shares.texts.values())
    _, *effects = left_out_effects(scorer, query, title, scorer.vocabulary)
    shown: dict[str, Any] = {
        name: {
            "text": text.text,
            "words": text.words,
            "cut": text.n_cut,
            "left_out": rounded(left_out),
            "gradient": rounded(text.shares),
        }
        for (name, text), left_out in zip(shares.texts.items(), effects, strict=True)
    }
    shown |= rank_facts(pair)
    shown |= {"score": round(shares.score, 6), "biases": round(sum(shares.biases.values()), 5)}
    # Three digits leave rounding errors out.
    shown["rest"] = round(shares.rest, 3) + 0.0
    cells = shares.cells
    if cells is not None:
        shown["windows"] = {
            "words": cells.window,
            "begin": list(cells.n_windows),
            "shares": [rounded(row) for row in cells.shares],
            "biases": round(sum(cells.biases.values()), 5),
        }
    return shown
