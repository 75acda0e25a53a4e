"""Next month's clicks: a model that continues against one that is trained again on everything.

Splits the log of a shared data set into an old part and a new part, which also has all clicks of
one title in ten, so that it brings titles, words and trigrams that the old part lacks. Trains a
model on the old part, continues it with the new one, with more or less of the old clicks replayed,
and compares it with a training on both. Also tries two ways to train on titles without
clicks, which ``sentemb train`` does not offer because of what is measured here. Writes
docs/results/fresh.md. Models and measurements are kept in build/fresh: a
second run continues where the first stopped.

    python benchmarks/fresh.py [--data ../shared/data] [--threads 1]
"""

import json
import time
from dataclasses import replace

import numpy as np
from pages import ROOT, machine, options_for, write_tables

import sentemb
from sentemb.data.click_log import ClickLogBuilder, read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.rank_overlap import overlap
from sentemb.retrieval.nearest import TitleVectors

KEPT = ROOT / "build" / "fresh"
# The set, and what is changed in the defaults of every training, for its time.
SETS = {"tldr": {}, "occupations": {"hard_negatives": 0}}
SCRATCH = {"tldr": {}, "occupations": {"epochs": 4}}
LOOKED_UP = "tldr"  # the set with hard negatives
NEW_TITLES, NEW_PAIRS = 0.1, 0.2
QUERIES = 1_000
OLD, ALL = "old clicks only", "all clicks, from scratch"
# What a training can do with titles without clicks.
NEGATIVES, QUERIES_TOO = "also hard negatives", "each also a query for itself"
CHOSEN = {"epochs": 3, "learning_rate": 0.002}
CONTINUED = {
    "new clicks only": {},
    **{f"`--replay old.tsv:{share}`": {"share": share} for share in (0.25, 0.5)},
    "`--replay old.tsv`": {"share": 1.0},
}
RATES = {
    f"{epochs} epochs, {rate}": {"epochs": epochs, "learning_rate": rate}
    for epochs, rate in ((3, 0.001), (3, 0.005), (6, 0.002))
}


class Halves:
    """A log in two parts, and the dev set.

    Attributes
    ----------
    old, new, all : ClickLog
    is_new : (n_queries,) bool
        Whether a best title of the dev query is in the new part only.
    held_out : ClickLog
        The new pairs of titles that the old part lacks.
    """

    def __init__(self, folder):
        log = self.all = read_click_log(folder / "pairs.tsv")
        dev = self.dev = read_judged_set(folder / "dev")
        rng = np.random.default_rng(7)
        titles = rng.random(len(log.titles)) < NEW_TITLES
        is_new = titles[log.title_index]
        others = np.flatnonzero(~is_new)
        more = max(0, int(NEW_PAIRS * is_new.size) - int(is_new.sum()))
        self.held_out = part(log, np.flatnonzero(is_new))
        is_new[rng.choice(others, more, replace=False)] = True
        self.old, self.new = part(log, np.flatnonzero(~is_new)), part(log, np.flatnonzero(is_new))
        names = {log.titles[title] for title in np.flatnonzero(titles)}
        self.is_new = np.array(
            [self._best_is_among(names, query) for query in range(len(dev.queries))]
        )

    def with_titles(self):
        """The old part with the titles of both; those without clicks become hard negatives."""
        return replace(self.old, titles=[*self.old.titles, *self._without_clicks()])

    def with_queries(self):
        """The old part, in which each title without clicks is clicked for itself as a query."""
        builder = ClickLogBuilder()
        old = self.old
        for query, title, clicks in zip(
            old.query_index, old.title_index, old.clicks.tolist(), strict=True
        ):
            builder.add(old.queries[query], old.titles[title], clicks)
        for title in self._without_clicks():
            builder.add(title, title)
        return builder.build()

    def _without_clicks(self):
        known = set(self.old.titles)
        return [title for title in self.all.titles if title not in known]

    def _best_is_among(self, names, query):
        span = slice(*self.dev.offsets[[query, query + 1]])
        grades = self.dev.grade[span]
        best = self.dev.title_index[span][grades == grades.max()]
        return any(self.dev.titles[title] in names for title in best)


def part(log, pairs):
    """The click log of some of the pairs of ``log``."""
    builder = ClickLogBuilder()
    for pair in pairs.tolist():
        builder.add(
            log.queries[log.query_index[pair]],
            log.titles[log.title_index[pair]],
            int(log.clicks[pair]),
        )
    return builder.build()


def measure(model, halves):
    """NDCG@1 on dev, on its queries with old and with new titles; clicks on new titles."""
    values = evaluate_model(model, halves.dev, (1,)).values[:, 0]
    catalogue = TitleVectors(model, halves.all.titles)
    firsts = catalogue.find(halves.dev.queries[:QUERIES], 10)[0]
    held_out = halves.held_out
    found = catalogue.find(held_out.queries[:QUERIES], 10)[0]
    places = {title: place for place, title in enumerate(halves.all.titles)}
    offsets, clicked = held_out.titles_of_queries()
    ranks = []
    for query, row in enumerate(found.tolist()):
        right = {places[held_out.titles[t]] for t in clicked[offsets[query] : offsets[query + 1]]}
        ranks.append(next((n for n, place in enumerate(row, 1) if place in right), np.inf))
    return {
        "all": float(values.mean()),
        "old": float(values[~halves.is_new].mean()),
        "new": float(values[halves.is_new].mean()),
        "hit": float(np.mean(np.array(ranks) == 1)),
        "mrr": float(np.mean(1 / np.array(ranks))),
        "firsts": firsts.tolist(),
    }


def kept(folder, label, halves, pairs, **options):
    """The measurements of one training, made now or by an earlier run of this script."""
    folder = folder / "".join(c if c.isalnum() or c == "." else "-" for c in label)
    path = folder / "measured.json"
    if not path.exists():
        began = time.process_time()
        model = sentemb.train(pairs, output=folder / "model", resume=True, **options)
        seconds = time.process_time() - began
        found = measure(model, halves) | {"seconds": seconds}
        path.write_text(json.dumps(found))
        shown = {key: round(value, 4) for key, value in found.items() if key != "firsts"}
        print(folder, shown, flush=True)
    return json.loads(path.read_text())


def measured(name, data, threads):
    """All measurements of one set by label."""
    folder = KEPT / name
    folder.mkdir(parents=True, exist_ok=True)
    halves = Halves(data / name)
    common = {"threads": threads, **SETS[name]}
    scratch = common | SCRATCH[name]
    found = {
        OLD: kept(folder, OLD, halves, halves.old, **scratch),
        ALL: kept(folder, ALL, halves, halves.all, **scratch),
    }
    start = common | {"start_from": folder / "old-clicks-only" / "model"}
    for label, options in CONTINUED.items():
        given = CHOSEN | start
        if options:
            given["replay"] = halves.old, options["share"]
        found[label] = kept(folder, label, halves, halves.new, **given)
    if name == LOOKED_UP:
        for label, options in RATES.items():
            given = start | options | {"replay": (halves.old, 0.5)}
            found[label] = kept(folder, label, halves, halves.new, **given)
        found[NEGATIVES] = kept(folder, NEGATIVES, halves, halves.with_titles(), **scratch)
    found[QUERIES_TOO] = kept(folder, QUERIES_TOO, halves, halves.with_queries(), **scratch)
    return found


def row(label, one, before):
    """The line of one training."""
    firsts = (
        "-"
        if one is before
        else f"{100 * overlap(before['firsts'], one['firsts']).same_first:.0f} %"
    )
    values = " | ".join(f"{one[key]:.3f}" for key in ("all", "old", "new"))
    return f"| {label} | {values} | {firsts} | {one['seconds']:.0f} s |"


HEAD = [
    "| training | NDCG@1 on dev | queries with known titles | queries with new titles "
    "| first titles kept | CPU time |",
    "| --- | --- | --- | --- | --- | --- |",
]


def section(name, found):
    """{heading: table} of one set."""
    first = (row(label, found[label], found[OLD]) for label in (OLD, *CONTINUED, ALL))
    tables = {f"New clicks, {name}": [*HEAD, *first]}
    without = {"not trained on": found[OLD]} | {
        label: found[label] for label in (NEGATIVES, QUERIES_TOO) if label in found
    }
    tables[f"Titles without clicks, {name}"] = [
        "| titles without clicks | NDCG@1 on dev | queries with known titles "
        "| queries with new titles | hit@1 | MRR@10 | CPU time |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *(
            f"| {label} | "
            + " | ".join(f"{one[key]:.3f}" for key in ("all", "old", "new", "hit", "mrr"))
            + f" | {one['seconds']:.0f} s |"
            for label, one in without.items()
        ),
    ]
    if name != LOOKED_UP:
        return tables
    chosen = f"{CHOSEN['epochs']} epochs, {CHOSEN['learning_rate']} (default)"
    rates = {chosen: found["`--replay old.tsv:0.5`"], **{label: found[label] for label in RATES}}
    third = (row(label, one, found[OLD]) for label, one in rates.items())
    return tables | {f"Epochs and learning rate, {name}": [*HEAD, *third]}


def main():
    options = options_for(__doc__, SETS)
    for name in options.sets:
        found = measured(name, options.data, options.threads)
        write_tables("fresh", section(name, found), machine())


if __name__ == "__main__":
    main()
