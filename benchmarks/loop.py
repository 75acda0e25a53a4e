"""A shop's year: what a shop finds that learns from its own searches every month.

Users with hidden wishes search in 2,000 titles of tldr, look at place r with probability
r ** -exponent, and click right titles with probability .7 and others with .03; after a right click
four of five stop. A third of the searches of a month are for queries that are new, 3 % of the
titles are, and 15 % are renamed within the year. Whatever ranks sees what was shown and clicked and
nothing else. The first month is served by BM25. Every month does what `sentemb refresh` does: one
search in five is judged, a bag is trained on the clicks of the others and its ranker fitted, it
takes the place of the one before unless it is behind on the judged searches, is calibrated by
these, and serves all clicks. The policies are:

    BM25           no learning
    clicks         clicks count by their number
    examinations   clicks count by how often the title was looked at, as in `sentemb refresh`

The same users also search in the titles of `sentemb simulate`, for its queries as often as it says.

Writes docs/results/loop.md. Years are kept in build/loop: a second run continues.

    python benchmarks/loop.py [--data ../shared/data] [--threads 1] [--seeds 3]
"""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from matplotlib.figure import Figure
from pages import DOCS, ROOT, machine, options_for, write_tables

from sentemb import Index, SentembError, train
from sentemb.analysis.insights import insights
from sentemb.bridges.refresh.clicks_of_shop import ONE_IN
from sentemb.bridges.refresh.comparing import compare
from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import EXPONENT, Examinations, Shown
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.data.seen_queries import never_typed_and_typed
from sentemb.data.simulation.click_rates import RATES, read_click_rates
from sentemb.data.simulation.search_world import EXCELLENT
from sentemb.data.simulation.simulator import simulate
from sentemb.data.splitting import split_log, suited_split
from sentemb.retrieval.believed_clicks import BelievedClicks
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index_tuning import calibrate, serve_clicks
from sentemb.search.ranking.fitting import fit_weights_of

KEPT = ROOT / "build" / "loop"
FIGURE = DOCS / "figures" / "loop.png"
MONTHS, SEARCHES, FEW = 12, 12_000, 4_000
TITLES, INITIAL, A_MONTH = 2000, 1500, 45
RIGHT, STRAY, CONTENT = 0.7, 0.03, 0.8
SHOWN = 10
POLICIES = ("BM25", "clicks", "examinations")
LEARNING = POLICIES[-1]
# Users who look at lower places more, or less, than the product takes them to.
OTHER_USERS = (0.4, 1.0)
LAST = (10, 11, 12)
HEAD, UNSEEN = 200, 600
# The queries of the report of lost searches that a person would read.
LINES = 10
# Searches that are written to a record together.
AT_ONCE = 200
FIGURES = ("hit@1", "head MRR", "never seen MRR", "refused", "never seen refused", "insights")
TLDR, SIMULATED = "tldr", "simulate"
PAIRS_SIMULATED = 6_000


class Year(NamedTuple):
    """What is simulated, with several seeds."""

    world: str
    policy: str
    exponent: float = EXPONENT
    searches: int = SEARCHES


YEARS = (
    *(Year(TLDR, policy) for policy in (POLICIES[0], LEARNING)),
    *(Year(TLDR, LEARNING, exponent) for exponent in OTHER_USERS),
    Year(TLDR, LEARNING, searches=FEW),
    *(Year(SIMULATED, policy) for policy in (POLICIES[0], LEARNING)),
    Year(TLDR, POLICIES[1]),
)


def zipf(n, power):
    weights = 1 / np.arange(1, n + 1) ** power
    return weights / weights.sum()


class World:
    """Titles, queries with the titles that are right for them, and the traffic of each month.

    right : by query, the ids of the right titles
    frequent, unseen : queries, the most frequent first, and some that nobody asks
    """

    def __init__(self, pairs, seed, searches):
        self.seed, self.searches = seed, searches
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
        self.unseen = [q for k, q in enumerate(reserved[:INITIAL]) if k not in self.renamed][
            :UNSEEN
        ]
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
        drawn = rng.choice(len(queries), self.searches, p=weights / weights.sum())
        return [queries[k] for k in drawn.tolist()]


class SimulatedWorld:
    """The titles of `sentemb simulate`, and its queries as often as it says; all months are alike.

    Right are the titles with the best grade; the attributes are those of `World`.
    """

    def __init__(self, seed, searches):
        self.seed, self.searches = seed, searches
        with TemporaryDirectory() as name:
            simulate(
                f"{name}/log", pairs=PAIRS_SIMULATED, dev_queries=10, test_queries=10, seed=seed
            )
            rates = read_click_rates(Path(name) / "log" / RATES)
        self._titles = {f"P{k:04d}": title for k, title in enumerate(rates.titles)}
        ids, self.right = list(self._titles), {}
        for query, first, end in zip(rates.queries, rates.offsets, rates.offsets[1:], strict=False):
            best = rates.title_index[first:end][rates.grades[first:end] == EXCELLENT]
            self.right[query] = {ids[t] for t in best.tolist()}
        order = np.argsort(-rates.shares, kind="stable")
        drawn = np.random.default_rng([11, seed]).choice(order[HEAD:], UNSEEN, replace=False)
        self.unseen = [q for q in (rates.queries[k] for k in drawn.tolist()) if self.right[q]]
        self._asked = order[~np.isin(order, drawn)]
        self.frequent = [rates.queries[k] for k in self._asked.tolist()]
        self._shares = rates.shares[self._asked] / rates.shares[self._asked].sum()

    def catalogue(self, month):
        return self._titles

    def traffic(self, month):
        rng = np.random.default_rng([5, self.seed, month])
        drawn = rng.choice(len(self.frequent), self.searches, p=self._shares)
        return [self.frequent[k] for k in drawn.tolist()]


class Words:
    """BM25 of the titles, which serves until there are clicks."""

    index = None

    def __init__(self, catalogue):
        self.ids, self._words = list(catalogue), TitleWords(list(catalogue.values()), threads=1)

    def answers(self, queries):
        found = self._words.find(queries, SHOWN)[0]
        return found, np.zeros(len(queries), bool), np.full(len(queries), np.nan)


class Ranking:
    """An index, what it refuses, and how sure it is of each first title; NaN where it says none."""

    def __init__(self, index):
        self.index, self.ids = index, list(index.ids)

    def answers(self, queries):
        ranked, confidences = self.index.ranked(queries, SHOWN), np.full(len(queries), np.nan)
        if self.index.confidence is not None:
            is_typed = self.index.snapshot.are_clicked(self.index.ranker.asked(queries))
            values, is_sure = self.index.confidence.of(ranked.scores[:, 0], is_typed)
            confidences[is_sure] = values[is_sure]
        return ranked.titles, self.index.are_below_floor(queries, ranked), confidences


class Shop:
    """The records of a shop, and how it learns from them.

    shown, clicked : searches by query, id and place; clicks by query and id
    judged, of_judged : the searches of the last month that the next ranking does not learn from,
        and their clicks
    """

    def __init__(self, world, policy, exponent, seed, threads):
        self.world, self.policy, self.exponent, self.threads = world, policy, exponent, threads
        self.rng = np.random.default_rng([99, seed])
        self.shown, self.clicked, self.of_judged = Counter(), Counter(), Counter()
        self.judged, self.title_of = [], {}

    def serve(self, ranking, month):
        """Answer the searches of a month; what users found, by figure."""
        world, catalogue = self.world, self.world.catalogue(month)
        queries, head = world.traffic(month), set(world.frequent[:HEAD])
        distinct = list(dict.fromkeys(queries))
        answers = dict(zip(distinct, _answers(ranking, distinct), strict=True))
        result, searches = defaultdict(list), []
        self.judged, self.of_judged = [], Counter()
        for query in queries:
            right, (shown, confidence) = world.right.get(query, set()), answers[query]
            right = right & catalogue.keys()
            searches.append((query, shown or [], self._look(query, shown or [], right, catalogue)))
            if shown and not np.isnan(confidence):
                result["confidence"].append(confidence - (RIGHT if shown[0] in right else STRAY))
            if not right:
                continue
            place = _place(shown, right)
            result["hit@1"].append(place == 1)
            result["refused"].append(shown is None)
            if query in head:
                result["head MRR"].append(1 / place if place else 0)
            if not place:
                result["lost"].append(query.lower())
        for query, (shown, _) in zip(world.unseen, _answers(ranking, world.unseen), strict=True):
            place = _place(shown, world.right[query])
            result["never seen MRR"].append(1 / place if place else 0)
            result["never seen refused"].append(shown is None)
        lost = result.pop("lost", [])
        if month in LAST and ranking.index is not None:
            told = most_lost(searches, catalogue)
            result["insights"] = [query in told for query in lost]
        return {name: float(np.mean(values)) for name, values in result.items()}

    def _look(self, query, shown, right, catalogue):
        """The clicks of one user, who looks at what was shown."""
        chance, clicked = self.rng.random((3, len(shown))), []
        is_content = False
        for r, id in enumerate(shown, 1):
            self.shown[query, id, r] += 1
            self.title_of[id] = catalogue[id]
            if is_content or chance[0, r - 1] >= r**-self.exponent:
                continue
            if chance[1, r - 1] < (RIGHT if id in right else STRAY):
                clicked.append(id)
                is_content = id in right and chance[2, r - 1] < CONTENT
        self.clicked.update((query, id) for id in clicked)
        if self.rng.random() * ONE_IN < 1:
            positions = {id: r for r, id in enumerate(shown, 1)}
            self.judged.append(RecordedSearch(query, positions, frozenset(clicked)))
            self.of_judged.update((query, id) for id in clicked)
        return clicked

    def learned(self, month, before):
        """The ranking for the month that follows, after the ranking ``before``."""
        catalogue = self.world.catalogue(month + 1)
        if self.policy == "BM25":
            return Words(catalogue)
        titles, ids = list(catalogue.values()), list(catalogue)
        log, everything = (
            ClickLog.from_pairs((q, catalogue[id], n) for (q, id), n in clicks.items())
            for clicks in (self.clicked - self.of_judged, self.clicked)
        )
        by, share = suited_split(log)
        train_log, dev, _ = split_log(log, share, 0, by=by)
        examinations = Examinations.nothing()
        if self.policy == LEARNING:
            examinations = Examinations.of(
                Shown(query, id, self.title_of[id], place, n)
                for (query, id, place), n in self.shown.items()
            )
        looks = examinations.without_searches(self.judged)
        known, served, all_served = (
            replace(ClickedQueries.of(part), examinations=of_part)
            for part, of_part in ((train_log, looks), (log, looks), (everything, examinations))
        )
        believed = BelievedClicks.of(served.with_ids(titles, ids))
        learned, dev = believed.part(train_log), believed.judging(dev)
        model = train(learned, dev=dev, catalogue=catalogue, model="bag", threads=self.threads)
        index = Index.build(model, catalogue, threads=self.threads)
        right, typed = never_typed_and_typed(dev, known.queries)
        ranker = fit_weights_of(
            model, right, titles, ids, known, served, typed, threads=self.threads
        )
        index.adopt(index.ranked_by(ranker), index.snapshot)
        if before.index is not None:
            before.index.sync(titles, ids)
            serve_clicks(before.index, served)
            if not compare(before.index, index, self.judged).is_new_taken:
                index = before.index
        try:
            calibrate(index, self.judged)
        except SentembError as error:
            print(f"not calibrated: {error}")
        serve_clicks(index, all_served)
        return Ranking(index)


def _answers(ranking, queries):
    """The ids that are shown for each query, None where it is refused, and the confidence."""
    titles, is_below, confidences = ranking.answers(queries)
    return [
        (None if below else [ranking.ids[t] for t in row if t >= 0], confidence)
        for row, below, confidence in zip(
            titles.tolist(), is_below.tolist(), confidences.tolist(), strict=True
        )
    ]


def _place(shown, right):
    """The place of the first right title, 0 if none is shown."""
    return next((r for r, id in enumerate(shown or [], 1) if id in right), 0)


def most_lost(searches, catalogue):
    """The queries that the report of a record of searches and their clicks names first."""
    with TemporaryDirectory() as folder:
        record, names = SearchRecord(Path(folder) / "searches.sqlite"), []
        for first in range(0, len(searches), AT_ONCE):
            names += record.add_searches(
                Searched(query, [(id, catalogue[id]) for id in shown], None, 1.0)
                for query, shown, _ in searches[first : first + AT_ONCE]
            )
        for name, (_, _, clicked) in zip(names, searches, strict=True):
            for id in clicked:
                record.add_click(name, id)
        record.close()
        return {lost.query for lost in insights(Path(folder) / "searches.sqlite", LINES).lost}


def year(pairs, of, seed, threads):
    """What users found, month by month; kept from the first run."""
    path = KEPT / f"{of.world}-{of.policy}-{of.exponent:g}-{of.searches}-{seed}.json"
    if path.exists():
        return json.loads(path.read_text())
    if of.world == TLDR:
        world = World(pairs, seed, of.searches)
    else:
        world = SimulatedWorld(seed, of.searches)
    shop = Shop(world, of.policy, of.exponent, seed, threads)
    ranking, months = Words(world.catalogue(1)), []
    for month in range(1, MONTHS + 1):
        months.append(shop.serve(ranking, month))
        print(*of, seed, month, months[-1], flush=True)
        if month < MONTHS:
            ranking = shop.learned(month, ranking)
    KEPT.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(months))
    return months


def named(of):
    """The first cells of a row."""
    return f"| {of.world} | {of.searches:,} | {of.policy} | r^-{of.exponent:g} "


def last_months(years):
    """Each figure in the last months, the mean over years with its standard deviation."""
    cells = []
    for figure in FIGURES:
        months = [[year[m - 1][figure] for m in LAST if figure in year[m - 1]] for year in years]
        means = [np.mean(each) for each in months if each]
        spread = f" ± {np.std(means, ddof=1):.3f}" if len(means) > 1 else ""
        cells.append(f"{np.mean(means):.3f}{spread}" if means else "-")
    return cells


def by_month(years, figure):
    """The mean of a figure over years, by month; NaN where there is none."""
    return np.array(
        [
            np.mean([year[m][figure] for year in years if figure in year[m]] or [np.nan])
            for m in range(MONTHS)
        ]
    )


def monthly(rows, head="| titles | searches a month | policy | users look at place r "):
    """A table with a column for each month, of rows (first cells, values)."""
    yield head + "| " + " | ".join(map(str, range(1, MONTHS + 1))) + " |"
    yield "| --- " * head.count("|") + "|" + " --: |" * MONTHS
    for first, values in rows:
        cells = ("-" if np.isnan(value) else f"{value:.3f}" for value in values)
        yield f"{first}| {' | '.join(cells)} |"


def draw(found):
    """Hit@1 by month, a line for each policy, over the years of all seeds."""
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes, months = figure.subplots(), range(1, MONTHS + 1)
    for policy, colour, style in zip(POLICIES, ("k", "C1", "C0"), (":", "--", "-"), strict=True):
        years = found[Year(TLDR, policy)]
        lines = np.array([[month["hit@1"] for month in year] for year in years])
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
    found = {
        of: [year(pairs, of, seed, options.threads) for seed in range(options.seeds)]
        for of in YEARS
    }
    table = [
        "| titles | searches a month | policy | users look at place r | "
        + " | ".join(FIGURES)
        + " |",
        "| --- | --: | --- | --- |" + " --: |" * len(FIGURES),
    ]
    table += [f"{named(of)}| {' | '.join(last_months(years))} |" for of, years in found.items()]
    learning = {of: years for of, years in found.items() if of.policy != "BM25"}
    tables = {
        "Months 10 to 12": table,
        "Hit@1 by month": monthly(
            (named(of), by_month(years, "hit@1")) for of, years in found.items()
        ),
        "Confidence minus truth by month": monthly(
            (named(of), by_month(years, "confidence")) for of, years in learning.items()
        ),
    }
    write_tables("loop", tables, machine())
    draw(found)


if __name__ == "__main__":
    main()
