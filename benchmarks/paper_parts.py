"""What docs/paper.md measures for each figure, table and appendix of the paper.

A part's function returns what JSON can hold: ``verdict`` and ``why``, numbers, and where there is
one a table as ``head`` and ``rows``. It writes the part's picture to `PICTURES`.
"""

import csv
from collections import Counter
from pathlib import Path

import numpy as np
from claims import FAILS, HOLDS, IN_PART, NOTHING
from pages import ROOT
from paper_models import Laboratory
from paper_printed import COUNTS, SCORES, SIMILAR

from sentemb.analysis.attribution import word_effects
from sentemb.analysis.figures.cell_figure import cells_figure
from sentemb.analysis.figures.drawing import figure_png
from sentemb.analysis.figures.gate_figure import gates_figure
from sentemb.analysis.figures.loss_figure import loss_figure
from sentemb.analysis.gates import Reading, TextReading, read_gates
from sentemb.analysis.keywords import DIRECTIONS, NOT_COMPARED, Keywords, extract_keywords
from sentemb.analysis.topics import query_cells
from sentemb.data.judged_set import JudgedSet
from sentemb.text.words import plain_words

PICTURES = ROOT / "docs" / "paper"
RESULTS = ROOT / "docs" / "results" / "paper"

# The paper shows gates of a model with 32 cells (section V-A.1).
LSTM, RNN = "lstm-32", "rnn-32"

# The paper's examples. Of the second title its captions print no more than this.
QUERY = "hotels in shanghai"
TITLE = "shanghai hotels accommodation hotel in shanghai discount and reservation"
BATH_QUERY = "how to fix bath tub wont turn off"
BATH_TITLE = "how do you paint a bathtub and what paint should"
# Everything else in these four texts counts as a content word.
FUNCTION_WORDS = frozenset(["a", "and", "do", "how", "in", "should", "to", "what", "you"])
# The words of the two titles, counted from 0, that the paper finds attenuated.
ATTENUATED = {TITLE: (2, 6, 8), BATH_TITLE: (2, 3, 6, 8)}
_SHUFFLES = 2000


# -- gates --------------------------------------------------------------------------------------


def figure_4(lab: Laboratory) -> dict:
    """Cell state and output grow richer with every word of the query."""
    return _evolving(lab, QUERY, "figure-04")


def figure_9(lab: Laboratory) -> dict:
    """The same for the second query."""
    return _evolving(lab, BATH_QUERY, "figure-09")


def _evolving(lab: Laboratory, query: str, name: str) -> dict:
    """Whether the mean sizes of c and y rise with every word."""
    reading = read_gates(lab.model(LSTM), query)
    _save(gates_figure([reading], scale="own"), name)
    text = reading.texts[0]
    sizes = np.abs(text.gates["c"]).mean(axis=0), np.abs(text.gates["y"]).mean(axis=0)
    grows = [bool((np.diff(size) > 0).all()) for size in sizes]
    rises = [int((np.diff(size) > 0).sum()) for size in sizes]
    mostly = min(rises) > (len(text.words) - 1) / 2
    return _gate_rows(text) | {
        "verdict": HOLDS if all(grows) else IN_PART if mostly else FAILS,
        "why": f"The mean size of c rises at {rises[0]} of the {len(text.words) - 1} words after "
        f"the first, from {sizes[0][0]:.3f} to {sizes[0][-1]:.3f}, that of y at {rises[1]}, from "
        f"{sizes[1][0]:.3f} to {sizes[1][-1]:.3f}.",
    }


def figure_5(lab: Laboratory) -> dict:
    """The input gate attenuates words 3, 7 and 9 of the title."""
    return _attenuated(lab, QUERY, TITLE, "figure-05")


def figure_8(lab: Laboratory) -> dict:
    """The input gate of the same title alone, on a scale of its own."""
    return _attenuated(lab, QUERY, TITLE, "figure-08", gates=["i"])


def figure_10(lab: Laboratory) -> dict:
    """The input gate attenuates words 3, 4, 7 and 9 of the second title."""
    return _attenuated(lab, BATH_QUERY, BATH_TITLE, "figure-10")


def _attenuated(lab: Laboratory, query: str, title: str, name: str, **options) -> dict:
    """Whether the input gate is almost shut at the words that the paper names.

    It holds if each of them has a mean gate below that of the other words, and all of them
    together less than half of it; in part if at least half of them are below.
    """
    reading = read_gates(lab.model(LSTM), query, title)
    text = reading.texts[1]
    alone = Reading(reading.model, [text], reading.cells, reading.halves, None)
    _save(gates_figure([alone], scale="own", **options), name)
    gate = text.gates["i"].mean(axis=0)
    effects = word_effects(lab.model(LSTM), query, title)["document"].left_out
    low = np.isin(np.arange(len(gate)), ATTENUATED[title])
    below = int((gate[low] < gate[~low].mean()).sum())
    ratio = gate[low].mean() / gate[~low].mean()
    shut = below == low.sum() and ratio < 0.5
    return {
        "head": ["", *text.words],
        "rows": [["mean of i", *_three(gate)], ["left out", *_signed(effects)]],
        "verdict": HOLDS if shut else IN_PART if 2 * below >= low.sum() else FAILS,
        "why": f"{below} of the {low.sum()} words have a mean gate below {gate[~low].mean():.3f}, "
        f"the mean of the other words; on average theirs is {abs(1 - ratio):.0%} "
        f"{'lower' if ratio < 1 else 'higher'}. Leaving out each of them changes the score by "
        f"{_listed(_signed(effects[low]))}; leaving out each of the others by "
        f"{_signed([effects[~low].min()])[0]} to {_signed([effects[~low].max()])[0]}.",
    }


def _gate_rows(text: TextReading) -> dict:
    rows = [["mean of i", *_three(text.gates["i"].mean(axis=0))]]
    rows += [[f"mean size of {g}", *_three(np.abs(text.gates[g]).mean(axis=0))] for g in "cy"]
    return {"head": ["", *text.words], "rows": rows}


# -- cells --------------------------------------------------------------------------------------


def figure_6(lab: Laboratory) -> dict:
    """The ten most active cells on the first pair: different words activate different cells.

    It holds if in both texts the cells take their largest steps at two words or more.
    """
    reading = read_gates(lab.model(LSTM), QUERY, TITLE)
    _save(cells_figure([reading], scale="shared"), "figure-06")
    found = _steps(reading.texts)
    several = ["," in row[1] for row in found["rows"]]
    verdict = HOLDS if all(several) else IN_PART if any(several) else FAILS
    return found | {"verdict": verdict}


def figure_11(lab: Laboratory) -> dict:
    """The ten most active cells on the second query."""
    reading = read_gates(lab.model(LSTM), BATH_QUERY)
    _save(cells_figure([reading]), "figure-11")
    return _steps(reading.texts)


def figure_12(lab: Laboratory) -> dict:
    """The ten most active cells on the second title."""
    reading = read_gates(lab.model(LSTM), BATH_QUERY, BATH_TITLE)
    alone = Reading(reading.model, reading.texts[1:], reading.cells, reading.halves, None)
    _save(cells_figure([alone]), "figure-12")
    return _steps(reading.texts[1:])


def _steps(texts: list[TextReading]) -> dict:
    """At which words the most active cells take their largest step, the first word left out."""
    rows, why = [], []
    for text in texts:
        changes = np.abs(np.diff(text.gates["y"][text.active_cells()], axis=1))
        largest = Counter((changes.argmax(axis=1) + 1).tolist())
        counts = ", ".join(f"{text.words[t]} {largest[t]}" for t in sorted(largest))
        rows.append([text.name, counts])
        why.append(f"{text.name}: {counts}")
    return {
        "head": ["text", "cells with their largest step at"],
        "rows": rows,
        "verdict": NOTHING,
        "why": f"Cells with their largest step after the first word at: {'; '.join(why)}.",
    }


# -- training cost ------------------------------------------------------------------------------


def figure_7(lab: Laboratory) -> dict:
    """Cost by epoch of the LSTM and the RNN."""
    histories = {name: lab.history(name) for name in (LSTM, RNN)}
    _save(loss_figure(list(histories.values()), ["LSTM", "RNN"]), "figure-07")
    costs = {
        name: dict(zip(one.epochs, one.losses, strict=True)) for name, one in histories.items()
    }
    lower = sum(costs[LSTM][epoch] < costs[RNN][epoch] for epoch in costs[LSTM])
    epochs = [1, 6, 12, 24]
    whole = len(costs[LSTM])
    return {
        "head": ["cost", *(f"epoch {epoch}" for epoch in epochs)],
        "rows": [
            [name.split("-")[0].upper(), *(f"{of[epoch]:.3f}" for epoch in epochs)]
            for name, of in costs.items()
        ],
        "verdict": HOLDS if lower == whole else IN_PART if lower else FAILS,
        "why": f"The cost of the LSTM is lower after {lower} of {whole} epochs. Both models have "
        f"32 cells; the step size of the LSTM is {lab.rate(LSTM)} and that of the RNN "
        f"{lab.rate(RNN)}, each chosen on dev.",
    }


# -- keywords -----------------------------------------------------------------------------------


def table_1(lab: Laboratory) -> dict:
    """Keywords of the first query, bidirectional."""
    return _bidirectional(lab, QUERY, "query", "table-01")


def table_2(lab: Laboratory) -> dict:
    """Keywords of the first title, bidirectional."""
    return _bidirectional(lab, TITLE, "document", "table-02")


def table_9(lab: Laboratory) -> dict:
    """Keywords of the second query, bidirectional."""
    return _bidirectional(lab, BATH_QUERY, "query", "table-09")


def table_10(lab: Laboratory) -> dict:
    """Keywords of the second title, bidirectional."""
    return _bidirectional(lab, BATH_TITLE, "document", "table-10")


def _bidirectional(lab: Laboratory, text: str, side: str, part: str) -> dict:
    """Keywords by two LSTMs trained apart, as in the paper, and by its own counts."""
    found = extract_keywords(lab.joined(LSTM), text, side)
    printed = Keywords(found.words, np.array(COUNTS[part]), 10, found.thresholds)
    rows = []
    for owner, keywords in (("", found), (", paper", printed)):
        rows += [
            [f"{direction}{owner}", *_counts(counts)]
            for direction, counts in zip(DIRECTIONS, keywords.counts.tolist(), strict=True)
        ]
        rows.append(
            [f"keyword{owner}", *("yes" if verdict else "" for verdict in keywords.verdicts)]
        )
    return {"head": ["word", *found.words], "rows": rows, **_judged_keywords(found)} | {
        "printed": "{verdict}: {why}".format(**_judged_keywords(printed))
    }


def _judged_keywords(found: Keywords) -> dict:
    """It holds if all content words are keywords and no function word is."""
    declared = [word for word, verdict in zip(found.words, found.verdicts, strict=True) if verdict]
    wrong = [word for word in declared if word in FUNCTION_WORDS]
    content = [word for word in found.words if word not in FUNCTION_WORDS]
    functions = len(found.words) - len(content)
    right = len(declared) - len(wrong)
    verdict = IN_PART if right / len(content) > len(wrong) / functions else FAILS
    if not wrong and right == len(content):
        verdict = HOLDS
    return {
        "verdict": verdict,
        "why": f"Keywords are {', '.join(declared) or 'none'}: {right} of {len(content)} content "
        f"words and {len(wrong)} of {functions} function words.",
    }


def table_5(lab: Laboratory) -> dict:
    """LSTM and RNN on the first query."""
    return _lstm_and_rnn(lab, QUERY, "query", "table-05")


def table_6(lab: Laboratory) -> dict:
    """LSTM and RNN on the first title."""
    return _lstm_and_rnn(lab, TITLE, "document", "table-06")


def table_7(lab: Laboratory) -> dict:
    """LSTM and RNN on the second query."""
    return _lstm_and_rnn(lab, BATH_QUERY, "query", "table-07")


def table_8(lab: Laboratory) -> dict:
    """LSTM and RNN on the second title."""
    return _lstm_and_rnn(lab, BATH_TITLE, "document", "table-08")


def _lstm_and_rnn(lab: Laboratory, text: str, side: str, part: str) -> dict:
    """How many of the ten most active cells declare each word, of the LSTM and of the RNN."""
    found = [extract_keywords(lab.model(name), text, side) for name in (LSTM, RNN)]
    words = found[0].words
    ours, printed = [keywords.counts[0].tolist() for keywords in found], COUNTS[part]
    return {
        "head": ["cells out of 10", *words],
        "rows": [
            [f"{name}{owner}", *_counts(counts)]
            for owner, both in (("", ours), (", paper", printed))
            for name, counts in zip(("LSTM", "RNN"), both, strict=True)
        ],
        **_judged_counts(words, ours),
        "printed": "{verdict}: {why}".format(**_judged_counts(words, printed)),
    }


def _judged_counts(words: list[str], both: list[list[int]]) -> dict:
    """It holds if function words get more of the RNN's neurons than of the LSTM's cells on average.

    In part if one function word does.
    """
    function = [
        (word, *counts)
        for word, *counts in zip(words, *both, strict=True)
        if word in FUNCTION_WORDS and NOT_COMPARED not in counts
    ]
    lstm, rnn = (np.mean(counts) for counts in list(zip(*function, strict=True))[1:])
    more = [word for word, of_lstm, of_rnn in function if of_rnn > of_lstm]
    listed = ", ".join(f"*{word}* {of_lstm} and {of_rnn}" for word, of_lstm, of_rnn in function)
    return {
        "verdict": HOLDS if rnn > lstm else IN_PART if more else FAILS,
        "why": f"LSTM and RNN at function words: {listed}; mean {lstm:.1f} and {rnn:.1f}.",
    }


def _counts(counts: list[int]) -> list[str]:
    return ["-" if count == NOT_COMPARED else f"{count}" for count in counts]


# -- topics -------------------------------------------------------------------------------------


def table_3(lab: Laboratory) -> dict:
    """Twenty queries of two topics: do words of one topic fall to the same cells?"""
    topics = {"food": ("recipes", "baking"), "health": ("health",)}
    queries, labels = [], []
    for label, names in topics.items():
        ours = [
            query
            for query in lab.test.queries
            if lab.truth["query"][query].topic in names and len(query.split()) > 2
        ]
        queries += ours[:10]
        labels += [label] * 10
    found = [query_cells(lab.model(LSTM), query) for query in queries]
    numbers = np.array([label == "health" for label in labels])
    purity = _purity(found, numbers)
    rng = np.random.default_rng(0)
    shuffled = np.array([_purity(found, rng.permutation(numbers)) for _ in range(_SHUFFLES)])
    p = (1 + np.count_nonzero(shuffled >= purity)) / (1 + _SHUFFLES)
    busy = Counter(cell for query in found for cell, places in query.extracted.items() if places)
    cells = sorted(busy)
    matrix = [
        [
            label,
            query,
            *(" ".join(one.words[t] for t in one.extracted.get(cell, ())) for cell in cells),
        ]
        for label, query, one in zip(labels, queries, found, strict=True)
    ]
    RESULTS.mkdir(parents=True, exist_ok=True)
    with open(RESULTS / "table-03.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["topic", "query", *(f"cell {cell}" for cell in cells)])
        writer.writerows(matrix)
    shown = sorted(cell for cell, count in busy.most_common(8))
    columns = [0, 1, *(2 + cells.index(cell) for cell in shown)]
    return {
        "head": ["topic", "query", *(f"{cell}" for cell in shown)],
        "rows": [[row[column] for column in columns] for row in matrix],
        "verdict": HOLDS if purity > 0.95 else IN_PART if p < 0.05 else FAILS,
        "why": f"In cells that extract words from more than one query, {purity:.0%} of the words "
        "belong to the topic that leads in their cell; with the topics shuffled among the queries "
        f"{shuffled.mean():.0%} do (p = {p:.3f}, {_SHUFFLES:,} shuffles). The table shows the 8 "
        f"cells that extract from the most queries; "
        "[table-03.csv](results/paper/table-03.csv) has all. [analysis.md](analysis.md) measures "
        "45 topics on 2,000 queries: the claim holds weakly there.",
    }


def _purity(found: list, health: np.ndarray) -> float:
    """The share of words in their cell's leading topic, over cells that serve several queries."""
    words: dict[int, list[int]] = {}
    served: Counter[int] = Counter()
    for query, topic in zip(found, health, strict=True):
        for cell, places in query.extracted.items():
            words.setdefault(cell, [0, 0])[int(topic)] += len(places)
            served[cell] += bool(places)
    kept = [counts for cell, counts in words.items() if served[cell] > 1]
    return float(np.max(kept, axis=1).sum() / np.sum(kept))


# -- scores and words ---------------------------------------------------------------------------


def appendix_c(lab: Laboratory) -> dict:
    """Scores of the good and the bad pair.

    It holds if the LSTM scores the good pair above the RNN and the bad one below it; in part if
    one of the two is so.
    """
    pairs = (QUERY, TITLE), (BATH_QUERY, BATH_TITLE)
    models = {"RNN": RNN, "LSTM": LSTM}
    scores = {
        name: [lab.model(model).score(*pair) for pair in pairs] for name, model in models.items()
    }
    (good, bad), (rnn_good, rnn_bad) = scores["LSTM"], scores["RNN"]
    right = [good > rnn_good, bad < rnn_bad]
    return {
        "head": ["model", "good pair", "bad pair", "good pair, paper", "bad pair, paper"],
        "rows": [[name, *(f"{x:.4f}" for x in (*scores[name], *SCORES[name]))] for name in models],
        "verdict": HOLDS if all(right) else IN_PART if any(right) else FAILS,
        "why": f"LSTM {good:.4f} and {bad:.4f}, RNN {rnn_good:.4f} and {rnn_bad:.4f}: gaps of "
        f"{good - bad:+.3f} and {rnn_good - rnn_bad:+.3f}.",
    }


def score_range(lab: Laboratory) -> dict:
    """Whether the scores of all judged pairs of the test set are between 0 and 1."""
    test: JudgedSet = lab.test
    queries = np.repeat(np.arange(len(test.queries)), np.diff(test.offsets))
    rows, below = [], []
    for name, model in (("LSTM", LSTM), ("RNN", RNN)):
        scores = lab.model(model).score_pairs(test.queries, test.titles, queries, test.title_index)
        rows.append(
            [name, f"{scores.min():.3f}", f"{scores.max():.3f}", f"{np.mean(scores < 0):.1%}"]
        )
        below.append(float(np.mean(scores < 0)))
    return {
        "head": ["model", "lowest score", "highest score", "scores below 0"],
        "rows": rows,
        "verdict": FAILS if max(below) > 0 else HOLDS,
        "why": f"A cosine can be negative: {below[0]:.1%} of the LSTM's scores of {len(queries):,} "
        f"judged pairs are, and {below[1]:.1%} of the RNN's.",
    }


def appendix_f(lab: Laboratory) -> dict:
    """The words that Doc2Vec finds nearest.

    A word belongs to the topic that most titles with it have. It holds if at least half of the ten
    words nearest to each word of the paper have its topic; in part if those of one of them do.
    """
    topics: dict[str, Counter[str]] = {}
    for title in lab.log.titles:
        for word in set(plain_words(title)):
            topics.setdefault(word, Counter())[lab.truth["title"][title].topic] += 1
    leading = {word: counts.most_common(1)[0][0] for word, counts in topics.items()}
    rows, shares, why = [], [], []
    for asked, printed in SIMILAR.items():
        nearest = lab.doc2vec._model.wv.most_similar(asked)
        same = sum(leading.get(word) == leading.get(asked) for word, _ in nearest)
        shares.append(2 * same >= len(nearest))
        listed = ", ".join(f"{word} {cosine:.2f}" for word, cosine in nearest)
        rows.append([asked, listed, ", ".join(f"{word} {x:.2f}" for word, x in printed.items())])
        why.append(f"{same} of the {len(nearest)} words nearest to {asked}")
    return {
        "head": ["word", "nearest words", "nearest words, paper"],
        "rows": rows,
        "verdict": HOLDS if all(shares) else IN_PART if any(shares) else FAILS,
        "why": f"{' and '.join(why)} belong to its topic.",
    }


# -- text ---------------------------------------------------------------------------------------


def _save(figure, name: str) -> Path:
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.png"
    path.write_bytes(figure_png(figure))
    return path


def _three(values) -> list[str]:
    return [f"{value:.3f}" for value in values]


def _signed(values) -> list[str]:
    return [f"{value:+.3f}".replace("-", "−") for value in values]


def _path(values) -> str:
    return " → ".join(_three(values))


def _listed(texts: list[str]) -> str:
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
