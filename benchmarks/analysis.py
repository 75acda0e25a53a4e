"""How far the paper's three claims about what a model learns hold: keywords, attenuation, topics.

Simulates a click log, whose keywords and topics are known, trains an RNN, the LSTM without and with
forget gate and peepholes, and a bidirectional LSTM on it, and measures on the queries of its test
set, which are not in the log. If the data set is present, trains them on real job names as well,
whose topics are O*NET's major groups. Writes the tables of docs/analysis.md from fixed seeds.

    python benchmarks/analysis.py [--data ../shared/data] [--threads 2] [--seed 0]
"""

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pages import DATA, ROOT, fill
from scores import (
    area_under_curve,
    attenuation,
    average_precision,
    highest,
    inverse_document_frequency,
    normalised_mutual_information,
    precision_recall,
    purity,
    shuffled_within,
)

from sentemb import train
from sentemb.analysis.figures.drawing import save_figure
from sentemb.analysis.figures.loss_figure import loss_figure
from sentemb.analysis.histories import read_history
from sentemb.analysis.keywords import extract_keywords, step_changes
from sentemb.analysis.topics import QueryCells, cells_by_topics, query_cells
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.data.simulation.simulator import simulate
from sentemb.data.simulation.truth import read_truth
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.text.words import split_words

PAGE = ROOT / "docs" / "analysis.md"
LOSS_FIGURE = ROOT / "docs" / "loss.png"
PAIRS = 40_000
CELLS = 96
# The model is the paper's: trigrams alone, Nesterov momentum.
PAPER = {"optimiser": "nesterov", "word_features": 0}
# The RNN learns badly at the learning rate of the LSTMs. Its epochs are quicker, so it gets more.
MODELS = {
    "RNN": {"model": "rnn", "cells": CELLS, "learning_rate": 0.02, "epochs": 16, **PAPER},
    "LSTM reduced": {"cells": CELLS, "epochs": 8, **PAPER},
    "LSTM full": {"cells": CELLS, "forget_gate": True, "peepholes": "full", "epochs": 8, **PAPER},
    "BiLSTM": {"model": "bilstm", "cells": CELLS // 2, "epochs": 8, **PAPER},
}
# Figure 7: the paper's settings, except for the learning rate of the RNN.
LEARNING = {"LSTM": {"model": "lstm"}, "RNN": {"model": "rnn", "learning_rate": 0.02}}
LEARNING_EPOCHS = (1, 6, 12, 24)
OCCUPATIONS_EPOCHS = {"RNN": 8}
OCCUPATIONS_EPOCHS_ELSE = 4
SHUFFLES = 20
TOPIC_HEAD = ["model", "cells", "words", "model's", "shuffled", "idf", "idf shuffled"]


@dataclass(frozen=True)
class Words:
    """The words of all queries, one after the other.

    Attributes
    ----------
    words : list of str
        Length k.
    texts : (k,) int
        Which query each is in.
    relevant : (k,) bool
        The true keywords.
    judged : (k,) bool
        False for the first word of a query, which a unidirectional model does not judge; it is left
        out for all models, so that all are measured on the same words.
    """

    words: list
    texts: np.ndarray
    relevant: np.ndarray
    judged: np.ndarray


def words_of(queries, truth):
    split = [split_words(query) for query in queries]
    return Words(
        words=[word for words in split for word in words],
        texts=np.repeat(np.arange(len(split)), [len(words) for words in split]),
        relevant=np.concatenate(
            [truth[q].marks(words) for q, words in zip(queries, split, strict=True)]
        ),
        judged=np.concatenate([np.arange(len(words)) > 0 for words in split]),
    )


# -- claims -------------------------------------------------------------------------------------


def measure_keywords(model, queries, words, idf, rng):
    """The row of one model: share declared; precision, recall, AP of model, shuffled and idf."""
    counts, verdicts = [], []
    for query in queries:
        found = extract_keywords(model, query)
        # In every direction that compares the word: the lowest of its counts.
        compared = np.where(found.counts < 0, found.cells, found.counts)
        counts.append(compared.min(axis=0))
        verdicts += found.verdicts
    judged = words.judged
    counts = np.concatenate(counts)[judged]
    declared = np.array(verdicts, object)[judged].astype(bool)
    relevant, texts, idf = words.relevant[judged], words.texts[judged], idf[judged]
    shuffled = []
    for _ in range(SHUFFLES):
        order = shuffled_within(texts, rng)
        shuffled.append(
            [
                *precision_recall(declared[order], relevant),
                average_precision(counts[order], relevant),
            ]
        )
    chosen = highest(idf, np.count_nonzero(declared))
    return {
        "declared": declared.mean(),
        "model": [*precision_recall(declared, relevant), average_precision(counts, relevant)],
        "shuffled": np.mean(shuffled, axis=0),
        "idf": [*precision_recall(chosen, relevant), average_precision(idf, relevant)],
    }


def measure_attenuation(model, queries, words, rng):
    """Input gate, where there is one, and change of the outputs, at keywords and other words."""
    values = {"input gate": [], "change of y": []}
    for query in queries:
        gate = model.trace(query).i
        if gate is not None:
            values["input gate"].append(gate.mean(axis=1))
        values["change of y"].append(step_changes(model, query).changes.mean(axis=(0, 2)))
    judged = words.judged
    relevant, texts = words.relevant[judged], words.texts[judged]
    rows = {}
    for name, parts in values.items():
        if parts:
            at_words = np.concatenate(parts)[judged]
            shuffled = [
                area_under_curve(at_words[shuffled_within(texts, rng)], relevant)
                for _ in range(SHUFFLES)
            ]
            rows[name] = (
                attenuation(at_words, relevant, texts),
                area_under_curve(at_words, relevant),
                np.mean(shuffled),
            )
    return rows


def measure_topics(name, model, queries, topics, idf_of, rng):
    """Rows of purity and NMI of cells against topics: as the paper counts cells, and by sign.

    Each next to shuffled topics and idf buckets.
    """
    found = [query_cells(model, query) for query in queries]
    positive = model.encode_query(queries) > 0
    by_sign = [
        QueryCells(
            query.words,
            {cell + model.dim * int(up[cell]): places for cell, places in query.extracted.items()},
        )
        for query, up in zip(found, positive, strict=True)
    ]
    rows = []
    for label, some, dim in (("", found, model.dim), (", by sign", by_sign, 2 * model.dim)):
        _, counts = cells_by_topics(some, topics, dim)
        buckets = [idf_buckets(found, dim, idf_of, rng) for _ in range(SHUFFLES)]
        row = [
            f"{name}{label}",
            f"{np.count_nonzero(counts.any(axis=1))}",
            f"{counts.sum():,}",
            slashes(agreement(counts)),
            slashes(chance([some] * SHUFFLES, topics, dim, rng)),
            slashes(np.mean([agreement(cells_by_topics(b, topics, dim)[1]) for b in buckets], 0)),
            slashes(chance(buckets, topics, dim, rng)),
        ]
        rows.append(row)
    return rows


def chance(samples, topics, dim, rng):
    """Mean purity and NMI of ``samples`` (lists of `QueryCells`), each with topics shuffled again.

    It is high for few words in many cells, so every way of counting needs its own.
    """
    return np.mean(
        [
            agreement(cells_by_topics(some, rng.permutation(topics).tolist(), dim)[1])
            for some in samples
        ],
        axis=0,
    )


def agreement(counts):
    return [purity(counts), normalised_mutual_information(counts)]


def idf_buckets(found, dim, idf_of, rng):
    """What a model that knows only idf would extract: a list of `QueryCells`.

    Every word has one of ``dim`` cells, drawn at random. A query's words of highest idf, as many
    as the model extracted from it, go to their cells. The first word is left out here too.
    """
    cell_of = {}
    bags = []
    for query in found:
        count = len({place for places in query.extracted.values() for place in places})
        places = sorted(range(1, len(query.words)), key=lambda t: -idf_of(query.words[t]))
        extracted = {}
        for place in places[:count]:
            word = query.words[place]
            if word not in cell_of:
                cell_of[word] = int(rng.integers(dim))
            extracted.setdefault(cell_of[word], []).append(place)
        bags.append(QueryCells(query.words, extracted))
    return bags


# -- data ---------------------------------------------------------------------------------------


def train_all(folder, seed, threads, epochs=None):
    """The four models by name, and a table of how well they rank."""
    judged = read_judged_set(folder / "test")
    models, rows = {}, []
    for name, settings in MODELS.items():
        settings = dict(settings)
        if epochs is not None:
            settings["epochs"] = epochs.get(name, OCCUPATIONS_EPOCHS_ELSE)
        began = time.monotonic()
        model = models[name] = train(
            folder / "pairs.tsv", dev=folder / "dev", seed=seed, threads=threads, **settings
        )
        seconds = time.monotonic() - began
        ndcg = evaluate_model(model, judged, (1, 10)).mean
        print(f"{name}: {seconds:.0f} s, NDCG@1 {ndcg[0]:.3f}", file=sys.stderr)
        rows.append([name, f"{model.dim}", f"{settings['epochs']}", *map(three, ndcg)])
    return models, table(["model", "cells", "epochs", "NDCG@1", "NDCG@10"], rows)


def measure_simulated(folder, seed, threads):
    simulate(folder, pairs=PAIRS, seed=seed)
    models, ranking = train_all(folder, seed, threads)
    truth = read_truth(folder / "truth.jsonl")["query"]
    queries = read_judged_set(folder / "test").queries
    words = words_of(queries, truth)
    topics = [truth[query].topic for query in queries]
    idf_of = inverse_document_frequency(read_click_log(folder / "pairs.tsv").queries)
    idf = np.array([idf_of(word) for word in words.words])
    rng = np.random.default_rng(0)
    keyword_rows, gate_rows, topic_rows = [], [], []
    for name, model in models.items():
        keyword_rows.append(keyword_row(name, measure_keywords(model, queries, words, idf, rng)))
        gate_rows += gate_lines(name, measure_attenuation(model, queries, words, rng))
        topic_rows += measure_topics(name, model, queries, topics, idf_of, rng)
    judged = words.judged
    idf_area = area_under_curve(idf[judged], words.relevant[judged])
    relevant = words.relevant[judged]
    return "\n\n".join(
        [
            f"### Simulated log\n\n{PAIRS:,} pairs; {len(queries):,} test queries, "
            f"{relevant.size:,} words after the first ones, {relevant.mean():.1%} of them "
            f"keywords; {len(set(topics))} topics.",
            ranking,
            f"**Keywords**: precision / recall / average precision; chance is {relevant.mean():.3f}"
            " for precision and average precision.",
            table(["model", "declared", "model's", "shuffled", "idf"], keyword_rows),
            "**Attenuation**: keywords − other words within a query, with its 95 % interval; area: "
            "how likely a keyword has more than another word.",
            table(
                ["model", "value", "keywords", "others", "difference", "area", "shuffled", "idf"],
                [[*row, three(idf_area)] for row in gate_rows],
            ),
            "**Topics**: purity / normalised mutual information of cells and topics.",
            table(TOPIC_HEAD, topic_rows),
        ]
    )


def measure_occupations(folder, seed, threads):
    models, ranking = train_all(folder, seed, threads, OCCUPATIONS_EPOCHS)
    queries, groups = major_groups(read_judged_set(folder / "test"))
    idf_of = inverse_document_frequency(read_click_log(folder / "pairs.tsv").queries)
    rng = np.random.default_rng(0)
    rows = [
        line
        for name, model in models.items()
        for line in measure_topics(name, model, queries, groups, idf_of, rng)
    ]
    return "\n\n".join(
        [
            f"### Occupations\n\n{len(queries):,} test queries that are filed under one of "
            f"{len(set(groups))} major groups of O*NET.",
            ranking,
            "**Topics**: purity / normalised mutual information of cells and major groups.",
            table(TOPIC_HEAD, rows),
        ]
    )


def measure_learning(data, seed, threads):
    """LSTM and RNN trained as the paper trained them: the figure, and a table of costs."""
    log, dev = read_click_log(data / "pairs.tsv"), read_judged_set(data / "dev")
    histories, rows = [], []
    with tempfile.TemporaryDirectory() as folder:
        for name, settings in LEARNING.items():
            print(f"learning curve: {name}", file=sys.stderr)
            place = Path(folder) / name
            shared = {"dev": dev, "seed": seed, "threads": threads, "preset": "paper"}
            train(log, output=place, **shared, **settings)
            history = read_history(place)
            histories.append(history)
            costs = dict(zip(history.epochs, history.losses, strict=True))
            figures = dict(zip(*history.measured("ndcg@1"), strict=True))
            rows.append(
                [name, *(f"{costs[epoch]:.3f} / {figures[epoch]:.3f}" for epoch in LEARNING_EPOCHS)]
            )
    save_figure(loss_figure(histories, list(LEARNING)), LOSS_FIGURE)
    head = ["cost / dev NDCG@1", *(f"epoch {epoch}" for epoch in LEARNING_EPOCHS)]
    return "\n\n".join(
        [
            "### Learning curves (Figure 7)",
            f"![Training cost of LSTM and RNN by epoch, and NDCG@1 on dev]({LOSS_FIGURE.name})",
            "Job names (occupations), `--preset paper`, 96 cells; the RNN with learning rate 0.02, "
            "since with the LSTM's 0.2 it hardly learns.",
            table(head, rows),
        ]
    )


def major_groups(judged):
    """The queries all of whose best titles are of one major group of O*NET, and their groups."""
    queries, groups = [], []
    for query, start, stop in zip(
        judged.queries, judged.offsets[:-1], judged.offsets[1:], strict=True
    ):
        best = judged.title_index[start:stop][judged.grade[start:stop] == 3]
        ids = [judged.title_ids[title] for title in best]
        # onet:29-1141.00 is of group 29.
        found = {id.removeprefix("onet:")[:2] for id in ids if id.startswith("onet:")}
        if len(found) == 1 and len(split_words(query)) > 1:
            queries.append(query)
            groups += found
    return queries, groups


# -- tables -------------------------------------------------------------------------------------


def three(value):
    return f"{value:.3f}"


def slashes(values):
    return " / ".join(map(three, values))


def keyword_row(name, row):
    return [
        name,
        f"{row['declared']:.0%}",
        *(slashes(row[k]) for k in ("model", "shuffled", "idf")),
    ]


def gate_lines(name, rows):
    for value, (found, area, shuffled) in rows.items():
        difference = f"{found.difference:+.4f} [{found.low:+.4f}, {found.high:+.4f}]"
        yield [
            name, value, f"{found.keywords:.4f}", f"{found.others:.4f}",
            difference.replace("-", "−"), three(area), three(shuffled),
        ]  # fmt: skip


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parts = [measure_simulated(Path(folder), options.seed, options.threads)]
    occupations = options.data / "occupations"
    if occupations.is_dir():
        parts.append(measure_occupations(occupations, options.seed, options.threads))
        parts.append(measure_learning(occupations, options.seed, options.threads))
    else:
        print(f"{occupations} is not here; skipped", file=sys.stderr)
    made = "\n\n".join(parts)
    print(made)
    fill(PAGE, {"analysis": [made]})


if __name__ == "__main__":
    main()
