"""What the page of a pair model shows: the model, and what carries the score of some pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from sentemb.analysis.attribution import left_out_effects
from sentemb.analysis.matching import match
from sentemb.analysis.report.facts import dev_facts, setting_facts, shown_history, training_facts
from sentemb.analysis.report.pair import Pair
from sentemb.errors import SentembError
from sentemb.pair_scorer import PairScorer
from sentemb.version import __version__


def collect_matches(scorer: PairScorer, name: str, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Everything that the page of a pair model shows, as a dict that JSON can hold.

    Parameters
    ----------
    scorer : PairScorer
        The model that the page is about.
    name : str
        What the page calls the model.
    pairs : list of Pair
        With a title each.

    Returns
    -------
    dict

    Raises
    ------
    SentembError
        For a pair without a title, or with a text without words.
    """
    history = shown_history(scorer.history)
    n_parameters = sum(block.size for block in scorer.model.blocks(scorer.weights).values())
    facts = [
        *setting_facts(scorer.model.settings()),
        ["Vocabulary", str(scorer.vocabulary)],
        ["Parameters", f"{n_parameters:,}"],
        *dev_facts(history),
    ]
    return {
        "kind": "pair",
        "made": f"Made by sentemb {__version__}.",
        "model": {
            "name": name,
            "summary": f"Pair model {scorer.model.name}",
            "facts": facts,
            "training": training_facts(scorer.training),
        },
        "history": history,
        "pairs": [_pair(scorer, pair) for pair in pairs],
        # What only two towers have.
        "gates": [],
        "cells": [],
    }


def _pair(scorer: PairScorer, pair: Pair) -> dict[str, Any]:
    if pair.title is None:
        raise SentembError(f"the query {pair.query[:40]!r} has no title; give pairs of both")
    found = match(scorer, pair.query, pair.title)
    _, *effects = left_out_effects(scorer, *(text.words for text in found.texts.values()))
    shown: dict[str, Any] = {
        name: {
            "text": text.text,
            "words": text.words,
            "cut": text.n_cut,
            "left_out": _rounded(left_out),
            "gradient": _rounded(text.shares),
        }
        for (name, text), left_out in zip(found.texts.items(), effects, strict=True)
    }
    shown |= {"grade": pair.grade, "rank": pair.rank, "titles": pair.titles}
    shown |= {"score": round(found.score, 6), "biases": round(sum(found.biases.values()), 5)}
    # Three digits leave rounding errors out.
    shown["rest"] = round(found.rest, 3) + 0.0
    cells = found.cells
    if cells is not None:
        shown["windows"] = {
            "words": cells.window,
            "begin": list(cells.n_windows),
            "shares": [_rounded(row) for row in cells.shares],
            "biases": round(sum(cells.biases.values()), 5),
        }
    return shown


def _rounded(values: np.ndarray) -> list[float]:
    return [round(value, 5) for value in values.tolist()]
