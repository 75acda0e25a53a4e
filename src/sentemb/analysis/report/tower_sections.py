"""Sections of the page of a model with two towers: the model, pairs, and its cells."""

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from sentemb.analysis.attribution import left_out_effects, word_effects
from sentemb.analysis.gates import GATES, SIGMOIDS
from sentemb.analysis.keywords import KEYWORD_SHARE, NOT_COMPARED, extract_keywords
from sentemb.analysis.labels import TEXT_NAMES
from sentemb.analysis.report.facts import setting_facts
from sentemb.analysis.report.page_pairs import ShownPair
from sentemb.analysis.topics import collect_words, query_cells
from sentemb.errors import SentembError
from sentemb.models.parameters import parameter_fact
from sentemb.models.sentence_encoder import GateTrace, SentenceEncoder
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.towers import SIDES

_LARGEST_INT16 = 32767
_TOPIC_QUERIES = 5000
_TOPIC_WORDS = 12
# Values of gates on a page, each of which takes 2.7 letters: pairs beyond are shown without.
MOST_VALUES = 900_000
_KINDS = {"lstm": "LSTM", "rnn": "RNN", "irnn": "iRNN", "bilstm": "Bidirectional LSTM"}


def model_facts(model: SentenceEncoder) -> tuple[str, list[list[str]]]:
    """The model in a line, and its settings and sizes."""
    encoder = model.encoder
    settings = encoder.settings()
    facts = []
    if isinstance(encoder, RecurrentEncoder):
        cells = str(settings.pop("cells"))
        both = "" if encoder.directions == 1 else " in each direction"
        facts.append(["Cells", cells + both])
    facts += [
        *setting_facts(settings),
        ["Embedding", f"{model.dim} numbers"],
        ["Vocabulary", str(model.vocabulary)],
        ["Parameters", parameter_fact(model)],
    ]
    towers = "one tower for both sides" if model.shared_towers else "a query and a title tower"
    return f"{_KINDS.get(str(encoder.name), encoder.name)}, {towers}", facts


def collect_towers(
    model: SentenceEncoder, pairs: Sequence[ShownPair], queries: Sequence[str]
) -> dict[str, Any]:
    """The pairs of a page; of a recurrent model also gates, keywords and its cells.

    The texts of ``pairs`` have words. The cells collect words from the first 5,000 ``queries``.
    """
    encoder = model.encoder
    if not isinstance(encoder, RecurrentEncoder):
        return {"pairs": [_plain_pair(model, pair) for pair in pairs], "gates": [], "cells": []}
    topic_queries = [query for query in queries[:_TOPIC_QUERIES] if model.vocabulary.split(query)]
    traces = list(_traces(model, pairs))
    gates = []
    if traces:
        gates = [gate for gate in GATES if getattr(traces[0]["query"], gate) is not None]
    every_trace = [trace for by_side in traces for trace in by_side.values()]
    scales = [_gate(gate, every_trace) for gate in gates]
    shown: list[dict[str, Any]] = []
    left = MOST_VALUES
    for number, (pair, by_side) in enumerate(zip(pairs, traces, strict=True)):
        # A query's two pairs are next to each other: its gates are stored once.
        again = (
            number > 0 and pairs[number - 1].query == pair.query and "gates" in shown[-1]["query"]
        )
        sides = [side for side in by_side if not (again and side == SIDES[0])]
        left -= sum(by_side[side].y.size * len(gates) for side in sides)
        stored = sides if left >= 0 else []
        shown.append(_pair(model, pair, by_side, gates, stored))
        if again and stored:
            shown[-1]["query"]["gates"] = number - 1
    return {
        "topic_queries": len(topic_queries),
        "keyword_share": KEYWORD_SHARE,
        "halves": encoder.directions,
        "gates": scales,
        "pairs": shown,
        "cells": _topics(model, topic_queries),
    }


def _traces(model: SentenceEncoder, pairs: Sequence[ShownPair]) -> Iterable[dict[str, GateTrace]]:
    for pair in pairs:
        texts = zip(SIDES, (pair.query, pair.title), strict=True)
        yield {side: model.trace(text, side) for side, text in texts if text is not None}


def _gate(gate: str, traces: Sequence[GateTrace]) -> dict[str, Any]:
    """How the values of a gate become colours: the middle of the scale and how far it reaches.

    One scale for all pairs. The middle is one half for gates, 0 for cell states and outputs. As in
    the figures, a scale reaches at most 1; only cell states exceed it.
    """
    middle = 0.5 if gate in SIGMOIDS else 0.0
    furthest = max(float(np.abs(getattr(trace, gate) - middle).max()) for trace in traces)
    if not math.isfinite(furthest):
        raise SentembError(f"the model's {GATES[gate]} is not finite; train it again")
    reach = min(furthest, 1.0) or 1.0
    return {
        "key": gate,
        "name": f"{GATES[gate]} {gate}",
        "middle": middle,
        "reach": round(reach, 4),
        "beyond": furthest > reach,
    }


def _plain_pair(model: SentenceEncoder, pair: ShownPair) -> dict[str, Any]:
    """A pair of a model without gates: the effect of leaving each word out."""
    query: dict[str, Any] = {"text": pair.query, "words": model.vocabulary.split(pair.query)}
    if pair.title is None:
        return {"query": query, "title": None}
    title: dict[str, Any] = {"text": pair.title, "words": model.vocabulary.split(pair.title)}
    score, *effects = left_out_effects(model, query["words"], title["words"], model.vocabulary)
    for side, left_out in zip((query, title), effects, strict=True):
        side["left_out"] = rounded(left_out)
    return {"query": query, "title": title, **rank_facts(pair), "score": round(score, 6)}


def _pair(
    model: SentenceEncoder,
    pair: ShownPair,
    traces: Mapping[str, GateTrace],
    gates: Sequence[str],
    stored: Sequence[str],
) -> dict[str, Any]:
    shown: dict[str, Any] = {"title": None}
    for side, trace in traces.items():
        name = TEXT_NAMES[side]
        text = getattr(pair, name)
        shown[name] = {"text": text, "words": trace.words, **_keywords(model, text, side)}
        if side in stored:
            shown[name]["gates"] = {gate: _packed(getattr(trace, gate)) for gate in gates}
    if pair.title is None:
        return shown
    effects = word_effects(model, pair.query, pair.title)
    for side, name in TEXT_NAMES.items():
        shown[name]["left_out"] = rounded(effects[side].left_out)
        shown[name]["gradient"] = rounded(effects[side].gradient)
    query, title = (
        model.encode([text], side=side, normalize_embeddings=True)[0]
        for side, text in zip(SIDES, (pair.query, pair.title), strict=True)
    )
    share = rounded(query * title)
    return shown | rank_facts(pair) | {"score": round(float(query @ title), 6), "share": share}


def rank_facts(pair: ShownPair) -> dict[str, Any]:
    """Where a title is in a ranking."""
    return {"grade": pair.grade, "rank": pair.rank, "titles": pair.titles}


def _keywords(model: SentenceEncoder, text: str, side: str) -> dict[str, Any]:
    """How many of the most active cells declare each word, and which words are keywords."""
    keywords = extract_keywords(model, text, side)
    return {
        "asked": keywords.cells,
        # The first word of a direction is not compared: null.
        "declared": [
            [None if count == NOT_COMPARED else count for count in counts]
            for counts in keywords.counts.T.tolist()
        ],
        "keyword": keywords.verdicts,
    }


def _topics(model: SentenceEncoder, queries: Iterable[str]) -> list[list[list[Any]]]:
    """The first words that each cell collects: for every cell a list of [word, times, share]."""
    collected = collect_words(query_cells(model, query) for query in queries)
    return [
        [[entry.word, entry.times, round(entry.share, 3)] for entry in words[:_TOPIC_WORDS]]
        for words in (
            collected.get(cell, [])
            for cell in range(cast(RecurrentEncoder, model.encoder).n_outputs)
        )
    ]


def _packed(values: np.ndarray) -> dict[str, Any]:
    """(T, n) values as 16-bit multiples of a unit, a third of their length as text."""
    # Computed in the type of the values, in which they are divided: it can underflow to 0.
    unit = float(np.abs(values).max() / values.dtype.type(_LARGEST_INT16)) or 1.0
    whole = np.rint(values / unit).astype("<i2")
    return {"unit": unit, "values": base64.b64encode(whole.tobytes()).decode()}


def rounded(values: np.ndarray) -> list[float]:
    """As JSON has them."""
    return [round(value, 5) for value in values.tolist()]
