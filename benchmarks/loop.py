"""A shop's year: what a shop finds that learns from its own searches every month.

Users with hidden wishes search in the titles of tldr, look at place r with probability
r ** -exponent, and click right titles with probability .7 and others with .03. A third of the
queries are new each month, 3 % of the titles too, and 15 % are renamed within the year. Whatever
ranks sees what was shown and clicked and nothing else.

    python benchmarks/loop.py [--months 12] [--searches 12000] [--seeds 3] [--policies refresh,...]
"""

import argparse
import time
from collections import Counter, defaultdict
from dataclasses import replace

import numpy as np

from sentemb import Index, train
from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import Examinations, Shown
from sentemb.data.seen_queries import never_typed_and_typed
from sentemb.data.splitting import split_log, suited_split
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index_tuning import calibrate
from sentemb.search.ranking.fitting import fit_weights_of

TITLES, INITIAL = 2000, 1500
RIGHT, STRAY, CONTENT = 0.7, 0.03, 0.8
SHOWN = 10


def zipf(n, power):
    weights = 1 / np.arange(1, n + 1) ** power
    return weights / weights.sum()


class World:
    """Titles, queries with the titles that are right for them, and the traffic of each month.

    right : by query, the ids of the right titles
    """

    def __init__(self, pairs, months, searches, seed):
        self.months, self.searches, self.seed = months, searches, seed
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
        self.arrival[INITIAL:] = 2 + np.arange(TITLES - INITIAL) // 45
        self.renamed, self.right = {}, defaultdict(set)
        reserved = []
        for k, title in enumerate(chosen):
            queries = list(queries_of[title])
            rng.shuffle(queries)
            reserved.append(queries.pop(0))
            if k < INITIAL and rng.random() < 0.15:
                month = int(rng.integers(3, months + 1)) if months >= 3 else 3
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
            if ready <= self.months:
                latest = min(self.months, ready + (self.months if ready == 1 else 2))
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


class Words:
    """BM25 of the titles, which serves until there are clicks."""

    def __init__(self, catalogue):
        self.ids, self._words = list(catalogue), TitleWords(list(catalogue.values()), threads=1)

    def answers(self, queries):
        return self._words.find(queries, SHOWN)[0], np.zeros(len(queries), bool), None


class Ranking:
    """An index with all that it says: its floor and its confidence."""

    def __init__(self, index):
        self.index, self.ids = index, list(index.ids)

    def answers(self, queries):
        ranked = self.index.ranked(queries, SHOWN)
        is_below = self.index.are_below_floor(queries, ranked)
        confidence = self.index.confidence
        stated = None
        if confidence is not None:
            asked = self.index.ranker.asked(queries)
            from sentemb.search.shards import Shards

            clicked = Shards((self.index.snapshot,)).are_clicked(asked)
            stated, is_sure = confidence.of(ranked.scores[:, 0], clicked)
            stated = np.where(is_sure, stated, np.nan)
        return ranked.titles, is_below, stated


class Shop:
    """The records of a shop, and how it learns from them."""

    def __init__(self, world, policy, exponent, seed):
        self.world, self.policy, self.exponent = world, policy, exponent
        self.rng = np.random.default_rng([99, seed])
        self.shown, self.clicked = Counter(), Counter()
        self.title_of = {}

    def serve(self, ranking, month):
        """Answer the searches of a month; what users found, by query kind."""
        world, catalogue = self.world, self.world.catalogue(month)
        queries = world.traffic(month)
        distinct = list(dict.fromkeys(queries))
        titles, is_below, stated = ranking.answers(distinct)
        ids, number = ranking.ids, {query: k for k, query in enumerate(distinct)}
        head = set(world.frequent[:200])
        result = defaultdict(list)
        for query in queries:
            k = number[query]
            right = world.right.get(query, set()) & catalogue.keys()
            shown = [] if is_below[k] else [ids[t] for t in titles[k].tolist() if t >= 0]
            self._look(query, shown, right, catalogue)
            if not right:
                result["unanswerable refused"].append(bool(is_below[k]))
                continue
            place = next((r for r, id in enumerate(shown, 1) if id in right), 0)
            result["hit@1"].append(place == 1)
            result["refused"].append(bool(is_below[k]))
            if query in head:
                result["head MRR"].append(1 / place if place else 0)
            if stated is not None and not np.isnan(stated[k]) and not is_below[k]:
                result["confidence"].append(float(stated[k]))
                result["confidence: true"].append(place == 1)
        titles, is_below, _ = ranking.answers(world.unseen)
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
            return Words(catalogue), {}
        clicks = Counter()
        for (query, id, _), n in self.clicked.items():
            clicks[query, id] += n
        log = ClickLog.from_pairs((q, catalogue[id], n) for (q, id), n in clicks.items())
        by, share = suited_split(log)
        train_log, dev, _ = split_log(log, share, 0, by=by)
        model = train(train_log, dev=dev, catalogue=catalogue, model="bag", threads=1)
        examinations = Examinations.nothing()
        if self.policy != "clicks":
            examinations = Examinations.of(
                Shown(q, id, self.title_of[id], r, n, self.clicked[q, id, r])
                for (q, id, r), n in self.shown.items()
            )
        index = Index.build(model, list(catalogue.values()), list(catalogue), threads=1)
        known = replace(ClickedQueries.of(train_log), examinations=examinations)
        served = replace(ClickedQueries.of(log), examinations=examinations)
        right, typed = never_typed_and_typed(dev, known.queries)
        snapshot = index.snapshot
        ranker = fit_weights_of(
            model, right, snapshot.titles, snapshot.ids, known, served, typed, threads=1
        )
        import os

        W = os.environ.get("W")
        if W:
            w = float(W)
            weights = {**ranker.recipe.weights, "clicks": w}
            if self.policy == "refresh":
                weights["examined"] = w * float(os.environ.get("WE", 1))
            ranker = ranker.weighted(weights)
        index.adopt(index.ranked_by(ranker), snapshot)
        try:
            calibrate(index, dev)
        except Exception as error:
            print(error)
        facts = {"exponent": examinations.exponent}
        facts |= {k: round(v, 3) for k, v in index.recipe.weights.items()}
        return Ranking(index), facts


def year(world, policy, exponent, seed):
    shop, ranking = Shop(world, policy, exponent, seed), Words(world.catalogue(1))
    rows = []
    for month in range(1, world.months + 1):
        start = time.process_time()
        rows.append({"month": month, **shop.serve(ranking, month)})
        facts = {}
        if month < world.months:
            ranking, facts = shop.learned(month)
        print(
            policy,
            seed,
            {k: round(v, 3) for k, v in rows[-1].items()},
            facts,
            f"{time.process_time() - start:.1f} s",
            flush=True,
        )
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--months", type=int, default=12)
    parser.add_argument("--searches", type=int, default=12000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--exponent", type=float, default=0.7)
    parser.add_argument("--policies", default="BM25,clicks,refresh")
    parser.add_argument("--data", default="../shared/data/tldr/pairs.tsv")
    options = parser.parse_args()
    with open(options.data, encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t")[:2] for line in file]
    for seed in range(options.seeds):
        world = World(pairs, options.months, options.searches, seed)
        for policy in options.policies.split(","):
            year(world, policy, options.exponent, seed)


if __name__ == "__main__":
    main()
