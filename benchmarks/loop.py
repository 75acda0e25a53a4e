"""A shop's year: what a shop finds that learns from its own searches every month.

Users with hidden wishes search in 2,000 titles of tldr, look at place r with probability
r ** -exponent, and click right titles with probability .7 and others with .03; after a right click
four of five stop. A third of the searches of a month are for queries that are new, 3 % of the
titles are, and 15 % are renamed within the year. Whatever ranks sees what was shown and clicked and
nothing else. The first month is served by BM25. Every month a bag is trained on all clicks, its
ranker fitted, and all clicks are served, by these policies:

    BM25           no learning
    clicks         clicks count by their number
    examinations   clicks count by how often the title was looked at, as in `sentemb refresh`

Writes docs/results/loop.md. Years are kept in build/loop: a second run continues.

    python benchmarks/loop.py [--data ../shared/data] [--threads 1] [--seeds 3]
"""

import json
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure
from pages import DOCS, ROOT, machine, options_for, write_tables

from sentemb import Index, train
from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import EXPONENT, Examinations, Shown
from sentemb.data.seen_queries import never_typed_and_typed
from sentemb.data.splitting import split_log, suited_split
from sentemb.retrieval.believed_clicks import BelievedClicks
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.fitting import fit_weights_of

KEPT = ROOT / "build" / "loop"
FIGURE = DOCS / "figures" / "loop.png"
MONTHS, SEARCHES = 12, 12_000
TITLES, INITIAL, A_MONTH = 2000, 1500, 45
RIGHT, STRAY, CONTENT = 0.7, 0.03, 0.8
SHOWN = 10
POLICIES = ("BM25", "clicks", "examinations")
# Users who look at lower places more, or less, than the product takes them to.
OTHER_USERS = (0.4, 1.0)
LAST = (10, 11, 12)
FIGURES = ("hit@1", "head MRR", "never seen MRR", "refused")


def zipf(n, power):
    weights = 1 / np.arange(1, n + 1) ** power
    return weights / weights.sum()


class World:
    """Titles, queries with the titles that are right for them, and the traffic of each month.

    right : by query, the ids of the right titles
    """

    def __init__(self, pairs, seed):
        self.seed = seed
        rng = np.random.default_rng([11, seed])
        titles_of, queries_of = defaultdict(set), defaultdict(list)
        for query, title in pairs:
            if title not in titles_of[query]:
                titles_of[query].add(title)
                queries_of[title].append(query)
        known = sorted(title for title, queries in queries_of.items() if len(queries) >= 4)
        rng.shuffle(known)
        chosen, others = known[:TITLES], known[TITLES : TITLES + 400]
        self.id_of = {title: f"P{k:04d}" for k, title in enumerate(chosen)}
        self.titles = chosen
        self.arrival = np.ones(TITLES, int)
        self.arrival[INITIAL:] = 2 + np.arange(TITLES - INITIAL) // A_MONTH
        self.renamed, self.right = {}, defaultdict(set)
        reserved = []
        for k, title in enumerate(chosen):
            queries = list(queries_of[title])
            rng.shuffle(queries)
            reserved.append(queries.pop(0))
            if k < INITIAL and rng.random() < 0.15:
                month = int(rng.integers(3, MONTHS + 1))
                self.renamed[k] = month, title.split(":")[0] + ": " + queries.pop(0)
            for query in queries:
                self.right[query] |= self._sold(titles_of[query])
        for query in reserved:
            self.right.pop(query, None)
        self.unseen = [q for k, q in enumerate(reserved[:INITIAL]) if k not in self.renamed][:600]
        self._draw_queries(rng)
        for query in reserved:
            self.right[query] = self._sold(titles_of[query])
        self.unanswered = [
            query for title in others for query in queries_of[title][:3] if query not in self.right
        ]

    def _sold(self, titles):
        return {self.id_of[title] for title in titles if title in self.id_of}

    def _draw_queries(self, rng):
        first = {
            query: min(self.arrival[int(id[1:])] for id in ids) for query, ids in self.right.items()
        }
        queries = list(self.right)
        rng.shuffle(queries)
        self.frequent = [query for query in queries if first[query] == 1][:2200]
        rest = [query for query in queries if query not in set(self.frequent)]
        for query in [*rest, *self.frequent]:  # the same wish with a word less
            words = query.split()
            for _ in range(2 if len(words) >= 4 else 0):
                k = int(rng.integers(len(words)))
                shorter = " ".join(words[:k] + words[k + 1 :])
                if shorter not in self.right:
                    self.right[shorter] = self.right[query]
                    first[shorter] = first[query]
                    rest.append(shorter)
        rng.shuffle(rest)
        self.new = defaultdict(list)
        for query in rest:
            ready = first[query]
            if ready <= MONTHS:
                latest = min(MONTHS, ready + (MONTHS if ready == 1 else 2))
                self.new[int(rng.integers(ready, latest + 1))].append(query)
        self.new = {month: queries[:900] for month, queries in self.new.items()}

    def catalogue(self, month):
        """{id: title} of what is sold in a month."""
        sold = {}
        for k, title in enumerate(self.titles):
            if self.arrival[k] <= month:
                renamed = self.renamed.get(k)
                sold[f"P{k:04d}"] = renamed[1] if renamed and renamed[0] <= month else title
        return sold

    def traffic(self, month):
        """The queries of a month, in the order in which they are asked."""
        old = [query for m in range(1, month) for query in self.new.get(m, [])]
        new = self.new.get(month, [])
        queries = [*self.frequent, *old, *new, *self.unanswered]
        weights = np.concatenate(
            [
                zipf(len(self.frequent), 0.9) * (0.49 if old else 0.64),
                zipf(len(old), 0.3) * 0.15 if old else np.empty(0),
                zipf(len(new), 0.6) * 0.33 if new else np.empty(0),
                np.full(len(self.unanswered), 0.03 / len(self.unanswered)),
            ]
        )
        rng = np.random.default_rng([5, self.seed, month])
        drawn = rng.choice(len(queries), SEARCHES, p=weights / weights.sum())
        return [queries[k] for k in drawn.tolist()]


class Words:
    """BM25 of the titles, which serves until there are clicks."""

    def __init__(self, catalogue):
        self.ids, self._words = list(catalogue), TitleWords(list(catalogue.values()), threads=1)

    def answers(self, queries):
        return self._words.find(queries, SHOWN)[0], np.zeros(len(queries), bool)


class Ranking:
    """An index, and what it refuses."""

    def __init__(self, index):
        self.index, self.ids = index, list(index.ids)

    def answers(self, queries):
        ranked = self.index.ranked(queries, SHOWN)
        return ranked.titles, self.index.are_below_floor(queries, ranked)


class Shop:
    """The records of a shop, and how it learns from them."""

    def __init__(self, world, policy, exponent, seed, threads):
        self.world, self.policy, self.exponent, self.threads = world, policy, exponent, threads
        self.rng = np.random.default_rng([99, seed])
        self.shown, self.clicked = Counter(), Counter()
        self.title_of = {}

    def serve(self, ranking, month):
        """Answer the searches of a month; what users found, by query kind."""
        world, catalogue = self.world, self.world.catalogue(month)
        queries = world.traffic(month)
        distinct = list(dict.fromkeys(queries))
        titles, is_below = ranking.answers(distinct)
        ids, number = ranking.ids, {query: k for k, query in enumerate(distinct)}
        head = set(world.frequent[:200])
        result = defaultdict(list)
        for query in queries:
            k = number[query]
            right = world.right.get(query, set()) & catalogue.keys()
            shown = [] if is_below[k] else [ids[t] for t in titles[k].tolist() if t >= 0]
            self._look(query, shown, right, catalogue)
            if not right:
                continue
            place = next((r for r, id in enumerate(shown, 1) if id in right), 0)
            result["hit@1"].append(place == 1)
            result["refused"].append(bool(is_below[k]))
            if query in head:
                result["head MRR"].append(1 / place if place else 0)
        titles, is_below = ranking.answers(world.unseen)
        for k, query in enumerate(world.unseen):
            shown = [] if is_below[k] else [ids[t] for t in titles[k].tolist() if t >= 0]
            place = next((r for r, id in enumerate(shown, 1) if id in world.right[query]), 0)
            result["never seen MRR"].append(1 / place if place else 0)
        return {name: float(np.mean(values)) for name, values in result.items()}

    def _look(self, query, shown, right, catalogue):
        """One user looks at what was shown."""
        chance = self.rng.random((3, len(shown)))
        is_content = False
        for r, id in enumerate(shown, 1):
            self.shown[query, id, r] += 1
            self.title_of[id] = catalogue[id]
            if is_content or chance[0, r - 1] >= r**-self.exponent:
                continue
            if chance[1, r - 1] < (RIGHT if id in right else STRAY):
                self.clicked[query, id, r] += 1
                is_content = id in right and chance[2, r - 1] < CONTENT

    def learned(self, month):
        """The ranking for the month that follows."""
        catalogue = self.world.catalogue(month + 1)
        if self.policy == "BM25":
            return Words(catalogue)
        clicks = Counter()
        for (query, id, _), n in self.clicked.items():
            clicks[query, id] += n
        log = ClickLog.from_pairs((q, catalogue[id], n) for (q, id), n in clicks.items())
        by, share = suited_split(log)
        train_log, dev, _ = split_log(log, share, 0, by=by)
        examinations = Examinations.nothing()
        if self.policy == "examinations":
            examinations = Examinations.of(
                Shown(query, id, self.title_of[id], place, n)
                for (query, id, place), n in self.shown.items()
            )
        known = replace(ClickedQueries.of(train_log), examinations=examinations)
        served = replace(ClickedQueries.of(log), examinations=examinations)
        believed = BelievedClicks.of(served.with_ids(list(catalogue.values()), list(catalogue)))
        learned, dev = believed.part(train_log), believed.judging(dev)
        model = train(learned, dev=dev, catalogue=catalogue, model="bag", threads=self.threads)
        index = Index.build(model, catalogue, threads=self.threads)
        right, typed = never_typed_and_typed(dev, known.queries)
        titles, ids = index.snapshot.titles, index.snapshot.ids
        ranker = fit_weights_of(
            model, right, titles, ids, known, served, typed, threads=self.threads
        )
        index.adopt(index.ranked_by(ranker), index.snapshot)
        return Ranking(index)


def year(pairs, policy, exponent, seed, threads):
    """What users found, month by month; kept from the first run."""
    path = KEPT / f"{policy}-{exponent:g}-{seed}.json"
    if path.exists():
        return json.loads(path.read_text())
    world = World(pairs, seed)
    shop, ranking = Shop(world, policy, exponent, seed, threads), Words(world.catalogue(1))
    months = []
    for month in range(1, MONTHS + 1):
        months.append(shop.serve(ranking, month))
        print(policy, exponent, seed, month, months[-1], flush=True)
        if month < MONTHS:
            ranking = shop.learned(month)
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(months))
    return months


def last_months(years):
    """Each figure in the last months, the mean over years with its standard deviation."""
    cells = []
    for figure in FIGURES:
        means = [np.mean([months[m - 1][figure] for m in LAST]) for months in years]
        spread = f" ± {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
        cells.append(f"{np.mean(means):.3f}{spread}")
    return cells


def hits(years):
    """Hit@1 by year and month."""
    return np.array([[month["hit@1"] for month in months] for months in years])


def draw(found):
    """Hit@1 by month, a line for each policy, over the years of all seeds."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes, months = figure.subplots(), range(1, MONTHS + 1)
    for policy, colour, style in zip(POLICIES, ("k", "C1", "C0"), (":", "--", "-"), strict=True):
        lines = hits(found[policy, EXPONENT])
        axes.plot(months, lines.mean(axis=0), style, color=colour, label=policy)
        span = lines.min(axis=0), lines.max(axis=0)
        axes.fill_between(months, *span, color=colour, alpha=0.15, linewidth=0)
    axes.set(xlabel="month", ylabel="searches with a right title first", ylim=(0, None))
    axes.set_xticks(months)
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(FIGURE, dpi=150)


def main():
    options = options_for(__doc__, ("tldr",), seeds={"type": int, "default": 3})
    with open(options.data / "tldr" / "pairs.tsv", encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t")[:2] for line in file]
    runs = [(policy, EXPONENT) for policy in POLICIES]
    runs += [("examinations", exponent) for exponent in OTHER_USERS]
    found = {
        run: [year(pairs, *run, seed, options.threads) for seed in range(options.seeds)]
        for run in runs
    }
    table = [
        "| policy | users look at place r | " + " | ".join(FIGURES) + " |",
        "| --- | --- |" + " --: |" * len(FIGURES),
    ]
    for (policy, exponent), years in found.items():
        table.append(f"| {policy} | r^-{exponent:g} | " + " | ".join(last_months(years)) + " |")
    by_month = [
        "| policy | " + " | ".join(map(str, range(1, MONTHS + 1))) + " |",
        "| --- |" + " --: |" * MONTHS,
    ]
    for policy in POLICIES:
        means = np.mean(
            [[m["hit@1"] for m in months] for months in found[policy, EXPONENT]], axis=0
        )
        by_month.append(f"| {policy} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    write_tables("loop", {"Months 10 to 12": table, "Hit@1 by month": by_month}, machine())
    draw(found)


if __name__ == "__main__":
    main()
