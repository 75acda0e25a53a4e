"""The HTML report: what a model is, how it learned, and what it does with some pairs.

`collect` gathers the numbers as one dict that JSON can hold. `page` fills the template in this
folder, ``report.html``, with them; its style sheet and script draw everything in the browser and
load nothing.
"""

import base64
import html
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from sentemb.analysis.attribution import word_effects
from sentemb.analysis.gates import GATES, SIGMOIDS
from sentemb.analysis.keywords import KEYWORD_SHARE, NOT_COMPARED, extract_keywords
from sentemb.analysis.labels import MAX_WORDS, TEXT_NAMES
from sentemb.analysis.report.facts import dev_facts, setting_facts, shown_history, training_facts
from sentemb.analysis.report.matches import collect_matches
from sentemb.analysis.report.pair import Pair
from sentemb.analysis.report.sheet import style
from sentemb.analysis.topics import collect_words, query_cells
from sentemb.data.judged_set import read_judged_set
from sentemb.data.lines import clean_lines
from sentemb.errors import SentembError
from sentemb.models.recurrent import RecurrentEncoder
from sentemb.models.towers import SIDES
from sentemb.pair_scorer import PairScorer
from sentemb.sentence_encoder import GateTrace, SentenceEncoder
from sentemb.system.files import is_folder, place_name
from sentemb.system.html_pages import Page, filled, resource
from sentemb.system.paths import AnyPath
from sentemb.version import __version__

Model: TypeAlias = SentenceEncoder | PairScorer

_HERE = "sentemb.analysis.report"
_LARGEST_INT16 = 32767

_TOPIC_QUERIES = 5000
_TOPIC_WORDS = 12


def read_pairs(model: Model, path: AnyPath, limit: int) -> tuple[list[Pair], list[str]]:
    """Read the pairs to show, and all queries, from a file or a judged set.

    Parameters
    ----------
    model : SentenceEncoder or PairScorer
        Ranks the titles of a judged set.
    path : str or path-like
        A folder is a judged set: for each query, in the order of the file, the title that the model
        ranks first, then the best of the titles with a higher grade, if any. A file has lines
        ``query`` or ``query<TAB>title``; further columns, such as the clicks of a click log, are
        ignored.
    limit : int
        The largest number of pairs to return.

    Returns
    -------
    pairs : list of Pair
    queries : list of str
        Distinct, in the order of the file.

    Raises
    ------
    SentembError
        For an empty file, a line without a query, or a text to show with more than `MAX_WORDS`
        words.
    """
    pairs, queries = (_of_judged_set if is_folder(path) else _of_file)(model, path, limit)
    for pair in pairs:
        for text in filter(None, (pair.query, pair.title)):
            if len(model.vocabulary.split(text)) > MAX_WORDS:
                raise SentembError(
                    f"{place_name(path)}: the text {text[:40]!r} ... has more than {MAX_WORDS} "
                    "words, the limit of a page; leave it out"
                )
    return pairs, list(dict.fromkeys(queries))


def _of_file(model: Model, path: AnyPath, limit: int) -> tuple[list[Pair], list[str]]:
    pairs: list[Pair] = []
    queries: list[str] = []
    for number, line in clean_lines(path):
        query, tab, rest = line.partition("\t")
        title = rest.partition("\t")[0]
        if isinstance(model, PairScorer) and not tab:
            raise SentembError(
                f"{place_name(path)}:{number}: no title; a pair model needs lines query<TAB>title"
            )
        if not query.strip() or (tab and not title.strip()):
            raise SentembError(
                f"{place_name(path)}:{number}: a query or title without words; write query, or "
                "query<TAB>title"
            )
        queries.append(query)
        if len(pairs) < limit:
            pairs.append(Pair(query, title or None))
    if not pairs:
        raise SentembError(
            f"{place_name(path)}: the input is empty; write one query, or query<TAB>title, per line"
        )
    return pairs, queries


def _of_judged_set(model: Model, path: AnyPath, limit: int) -> tuple[list[Pair], list[str]]:
    judged = read_judged_set(path)
    pairs: list[Pair] = []
    for query, start, stop in zip(judged.queries, judged.offsets, judged.offsets[1:], strict=False):
        if start == stop:
            continue
        titles = [judged.titles[d] for d in judged.title_index[start:stop]]
        grades = judged.grade[start:stop].tolist()
        order = [k for k, _ in model.rank(query, titles)]
        best = max(order, key=grades.__getitem__)
        for k in [order[0]] + [best] * (grades[best] > grades[order[0]]):
            rank = order.index(k) + 1
            pairs.append(Pair(query, titles[k], grades[k], rank, len(titles)))
        if len(pairs) >= limit:
            break
    return pairs[:limit], judged.queries


def collect(
    model: Model, name: str, pairs: Sequence[Pair], queries: Sequence[str]
) -> dict[str, Any]:
    """Everything that the page shows, as a dict that JSON can hold.

    Parameters
    ----------
    model : SentenceEncoder or PairScorer
        The model that the page is about.
    name : str
        What the page calls the model.
    pairs : list of Pair
        Queries and titles to show in detail.
    queries : list of str
        The queries from which the cells of two towers collect words; the first 5,000 are used.

    Returns
    -------
    dict
    """
    if isinstance(model, PairScorer):
        return collect_matches(model, name, pairs)
    traces = [
        {
            side: model.trace(text, side)
            for side, text in zip(SIDES, (pair.query, pair.title), strict=True)
            if text is not None
        }
        for pair in pairs
    ]
    topic_queries = [query for query in queries[:_TOPIC_QUERIES] if model.vocabulary.split(query)]
    gates = [gate for gate in GATES if getattr(traces[0]["query"], gate) is not None]
    history = shown_history(model.history)
    every_trace = [trace for some in traces for trace in some.values()]
    return {
        "made": f"Made by sentemb {__version__}.",
        "topic_queries": len(topic_queries),
        "keyword_share": KEYWORD_SHARE,
        "model": _model(model, name, history),
        "history": history,
        "halves": cast(RecurrentEncoder, model.encoder).directions,
        "gates": [_gate(gate, every_trace) for gate in gates],
        "pairs": [
            _pair(model, pair, some, gates) for pair, some in zip(pairs, traces, strict=True)
        ],
        "cells": _topics(model, topic_queries),
    }


def page(report: Mapping[str, Any]) -> Page:
    """The HTML of a report that `collect` made.

    The texts cannot become markup: numbers and texts are one JSON object in which ``<``, ``>`` and
    ``&`` are escaped. A content security policy allows only this style sheet and this script, and
    lets nothing load.
    """
    data = json.dumps(report, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&":
        data = data.replace(letter, f"\\u{ord(letter):04x}")
    values = {
        "title": html.escape(f"{report['model']['name']} – sentemb report"),
        "style": style(),
        "script": resource(_HERE, "report.js"),
        "data": data,
    }
    return filled(resource(_HERE, "report.html"), values)


def _model(model: SentenceEncoder, name: str, history: Sequence[dict[str, Any]]) -> dict[str, Any]:
    encoder = cast(RecurrentEncoder, model.encoder)
    settings = encoder.settings()
    kinds = {"lstm": "LSTM", "rnn": "RNN", "irnn": "iRNN", "bilstm": "Bidirectional LSTM"}
    towers = "one tower for both sides" if model.shared_towers else "a query and a title tower"
    blocks = [encoder.blocks(weights).values() for weights in model.towers.each.values()]
    cells = str(settings.pop("cells"))
    facts = [
        ["Cells", cells if encoder.directions == 1 else f"{cells} in each direction"],
        *setting_facts(settings),
        ["Embedding", f"{model.dim} numbers"],
        ["Vocabulary", str(model.vocabulary)],
        ["Parameters", f"{sum(block.size for tower in blocks for block in tower):,}"],
        *dev_facts(history),
    ]
    return {
        "name": name,
        "summary": f"{kinds.get(str(encoder.name), encoder.name)}, {towers}",
        "facts": facts,
        "training": training_facts(model.training),
    }


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


def _pair(
    model: SentenceEncoder, pair: Pair, traces: Mapping[str, GateTrace], gates: Sequence[str]
) -> dict[str, Any]:
    shown: dict[str, Any] = {"title": None}
    for side, trace in traces.items():
        name = TEXT_NAMES[side]
        text = getattr(pair, name)
        shown[name] = {
            "text": text,
            "words": trace.words,
            **_keywords(model, text, side),
            "gates": {gate: _packed(getattr(trace, gate)) for gate in gates},
        }
    if pair.title is None:
        return shown
    effects = word_effects(model, pair.query, pair.title)
    for side, name in TEXT_NAMES.items():
        shown[name]["left_out"] = _rounded(effects[side].left_out)
        shown[name]["gradient"] = _rounded(effects[side].gradient)
    query, title = (
        model.encode([text], side=side, normalize_embeddings=True)[0]
        for side, text in zip(SIDES, (pair.query, pair.title), strict=True)
    )
    place = {"grade": pair.grade, "rank": pair.rank, "titles": pair.titles}
    return (
        shown | place | {"score": round(float(query @ title), 6), "share": _rounded(query * title)}
    )


def _keywords(model: SentenceEncoder, text: str, side: str) -> dict[str, Any]:
    """How many of the most active cells declare each word, and which words are keywords."""
    found = extract_keywords(model, text, side)
    return {
        "asked": found.cells,
        # The first word of a direction is not compared: null.
        "declared": [
            [None if count == NOT_COMPARED else count for count in counts]
            for counts in found.counts.T.tolist()
        ],
        "keyword": found.verdicts,
    }


def _topics(model: SentenceEncoder, queries: Iterable[str]) -> list[list[list[Any]]]:
    """The first words that each cell collects: for every cell a list of [word, times, share]."""
    collected = collect_words(query_cells(model, query) for query in queries)
    return [
        [[found.word, found.times, round(found.share, 3)] for found in words[:_TOPIC_WORDS]]
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


def _rounded(values: np.ndarray) -> list[float]:
    return [round(value, 5) for value in values.tolist()]
