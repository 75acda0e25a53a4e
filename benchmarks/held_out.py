"""Held-out clicks of real logs: the defaults, BM25 and the ranker over the whole catalogue.

Writes docs/results/held-out.md, log by log. Each log is split twice by `sentemb.data.splitting`: by
query, and by title, where the held-out titles are new. A training that is in ``build/held-out`` is
not repeated. The tables of a log that is not asked for stay as they are.

    python benchmarks/held_out.py [--data DIR] [--sets NAME ...]
"""

from pathlib import Path
from typing import NamedTuple

import systems
from pages import ROOT, SETS, options_for, write_tables
from systems import with_interval

from sentemb.comparison.baselines.clicked_queries import with_clicked_queries
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import read_texts
from sentemb.data.splitting import split_file
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.nearest import TitleVectors
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.ranking.base_fit import GRID
from sentemb.search.ranking.fitting import STEM
from sentemb.system.tables import markdown_table

BUILD = ROOT / "build" / "held-out"
METRICS = ("hit@1", "mrr@10", "recall@10", "recall@100")
SHARE = 0.05
WAYS = {
    "query": "queries held out",
    "title": "titles held out: no test title is clicked in training",
}


class Parts(NamedTuple):
    """A log that is split.

    Attributes
    ----------
    folder : Path
        pairs.tsv, dev.tsv, test.tsv, titles.tsv, and the trained models.
    train, dev, test : ClickLog
    titles : list of str
        The catalogue.
    """

    folder: Path
    train: ClickLog
    dev: ClickLog
    test: ClickLog
    titles: list[str]


def parts_of(data, name, by):
    """The parts of the log ``name``; it is split if it is not yet."""
    folder = BUILD / name / by
    if not (folder / "titles.tsv").exists():
        split_file(data / name / "pairs.tsv", folder, SHARE, SHARE, by)
    logs = (read_click_log(folder / f"{part}.tsv") for part in ("pairs", "dev", "test"))
    return Parts(folder, *logs, read_texts(folder / "titles.tsv")[1])


def folder_of(parts, seed):
    """Where the training with a seed is kept."""
    return parts.folder / (f"model-seed{seed}" if seed else "model")


def trained(parts, seed):
    """The defaults with another seed; the training is kept."""
    pairs, dev = (parts.folder / f"{name}.tsv" for name in ("pairs", "dev"))
    return systems.trained(folder_of(parts, seed), pairs, dev, seed, threads=None)


def model(parts):
    """The defaults."""
    return TitleVectors(trained(parts, 0), parts.titles)


def ranker(parts):
    """The ranker of the defaults, with weights from dev."""
    trained(parts, 0)
    return ranker_in(folder_of(parts, 0), parts)


def ranker_in(folder, parts):
    """The ranker of the model in ``folder``; it is kept."""
    found = systems.ranker_of(folder, parts.train, parts.dev, None, catalogue=parts.titles)
    systems.say(found)
    return found.over(parts.titles)


def bm25(parts):
    """BM25 over the titles, tuned on dev."""
    return tuned_bm25(parts, parts.titles)


def bm25_clicks(parts):
    """BM25 over the titles and the queries clicked on them, tuned on dev."""
    return tuned_bm25(parts, with_clicked_queries(parts.titles, parts.train))


def tuned_bm25(parts, texts):
    """BM25 over ``texts``: plain words or stems, k1 and then b, as the ranker's are chosen."""
    held_out = HeldOutClicks(parts.dev, parts.titles, ("mrr@10",))
    tried = []

    def measured(stem, parameters):
        tried.append(TitleWords(texts, **parameters, words=words_of(stem)))
        return held_out.evaluate(tried[-1]).mean[0], len(tried) - 1

    best = (-1.0, -1)
    for stem in (None, STEM):
        chosen = {}
        for name, values in GRID.items():
            of_values = [(measured(stem, {**chosen, name: value}), value) for value in values]
            of_best, chosen[name] = max(of_values, key=lambda found: found[0][0])
            best = max(best, of_best, key=lambda found: found[0])
    return tried[best[1]]


# Name of a row -> a function of `Parts` that gives a Retriever. The others are compared with the
# first.
ROWS = {
    "defaults": model,
    "bm25": bm25,
    "bm25-clicks": bm25_clicks,
    "ranker": ranker,
}


def section(data, name, by):
    """The table of one log and one way to split it."""
    parts = parts_of(data, name, by)
    held_out = HeldOutClicks(parts.test, parts.titles, METRICS)
    found = {row: held_out.evaluate(make(parts)) for row, make in ROWS.items()}
    first, *others = found.values()
    column = METRICS.index("mrr@10")
    each = compare_all([-one.values[:, column] for one in others], -first.values[:, column])
    head = [
        "system",
        *(metric.replace("mrr", "MRR") for metric in METRICS),
        "MRR@10 of defaults minus",
    ]
    rows = [head]
    for place, (row, one) in enumerate(found.items()):
        minus = "-"
        if place:
            minus = with_interval(each[place - 1])
        rows.append([row, *(f"{value:.3f}" for value in one.mean), minus])
    return list(markdown_table(rows))


def main():
    options = options_for(__doc__, SETS)
    for by, way in WAYS.items():
        for name in options.sets:
            table = section(options.data, name, by)
            write_tables("held-out", {f"{name}, {way}": table})


if __name__ == "__main__":
    main()
