"""What the ranker makes of titles without clicks, stray clicks, new names and unanswerable queries.

The trials are on a log with judged sets, with the defaults and the seed 0. `benchmarks/ranking.py`
runs them and writes their tables. Trainings are kept as those of `benchmarks/systems.py` are.
"""

import string

import numpy as np
from sklearn.isotonic import IsotonicRegression
from systems import (
    BM25,
    MODEL,
    RANKER,
    best_titles,
    ranker_of,
    systems_of,
    trained,
    with_interval,
)

from sentemb import ClickLog, Index
from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.confidence import Confidence
from sentemb.search.index_tuning import first_titles
from sentemb.search.searcher import BELOW_FLOOR, NOTHING_KNOWN

TITLES = "bm25, titles alone"
DROPPED = 0.2
STRAY = (0.0, 0.04, 0.1)
RENAMED, SUFFIX = 60, " – neu"
ASKED = 200
# Queries whose stray clicks are looked for among the first titles, and how many titles these are.
ASKED_OFTEN, SHOWN = 400, 5
# Below this place a title counts as not there.
FIRST = 100
# Dev queries that a confidence is fitted to, in addition to all, and how often they are drawn.
FEW, DRAWS = 200, 20
FIGURES = ("hit@1", "mrr@10", "recall@10")
HEADS = ("hit@1", "MRR@10", "recall@10")


class Trial:
    """One log with its judged sets.

    Parameters
    ----------
    data : path
        The folder with all sets.
    name : str
        Which one.
    threads : int
    build : path
        Where trainings are kept.
    """

    def __init__(self, data, name, threads, build):
        self.data, self.name, self.threads = data, name, threads
        self.folder, self.dev = build / name, data / name / "dev"
        self.log = read_click_log(data / name / "pairs.tsv")
        self.test = read_judged_set(data / name / "test")
        self.right = best_graded(self.test)

    def ranker(self, what, log):
        """The ranker of a training on ``log``, kept in the folder ``what``."""
        folder = self.folder / what
        trained(folder, log, self.dev, 0, self.threads)
        return ranker_of(folder, log, self.dev, self.threads)

    def measured(self, retriever, right=None, titles=None):
        """The figures of each query over all titles, by figure."""
        right, titles = right or self.right, titles or self.test.titles
        values = HeldOutClicks(right, titles, FIGURES).evaluate(retriever).values.round(6)
        return dict(zip(FIGURES, values.T.tolist(), strict=True))


# -- the trials -------------------------------------------------------------------------------


def new_titles(trial):
    """A training without the clicks of a random 20 % of the titles.

    Returns
    -------
    dict
        ``is_new``, whether no right title of a query is clicked; ``systems``, their figures.
    """
    log = trial.log
    is_dropped = np.random.default_rng(0).random(len(log.titles)) < DROPPED
    kept = ClickLog.from_pairs(pair for pair, t in _pairs(log) if not is_dropped[t])
    ranker = trial.ranker("without-titles", kept)
    clicked = set(kept.titles)
    return {
        "is_new": [clicked.isdisjoint(titles) for titles in best_titles(trial.test)[1]],
        "recipe": str(ranker.recipe),
        "systems": {
            TITLES: trial.measured(TitleWords(trial.test.titles, words=words_of("english"))),
            **{
                system: trial.measured(one.over(trial.test.titles))
                for system, one in systems_of(ranker, kept).items()
            },
        },
    }


def stray_clicks(trial):
    """Trainings on the log with clicks that mean nothing: share -> system -> figures.

    As many clicks as a share of those of the log are added, each for a query drawn by its clicks
    and a title drawn at random. Of the first `ASKED_OFTEN` queries that got one, ``stray`` counts
    the titles among the first five that are there for a stray click alone.
    """
    log, found = trial.log, {}
    for share in STRAY:
        rng = np.random.default_rng(1)
        n = round(share * int(log.clicks.sum()))
        pairs = rng.choice(log.query_index.size, n, p=log.clicks / log.clicks.sum())
        titles = rng.integers(0, len(log.titles), n)
        more = [
            (log.queries[q], log.titles[t], 1)
            for q, t in zip(log.query_index[pairs].tolist(), titles.tolist(), strict=True)
        ]
        worse = ClickLog.from_pairs([*(pair for pair, _ in _pairs(log)), *more])
        ranker = trial.ranker(f"stray-{share:g}" if n else "seed-0", worse)
        wrong = {}
        for query, title, _ in more:
            wrong.setdefault(query, set()).add(title)
        for (query, title, _), _ in _pairs(log):
            wrong.get(query, set()).discard(title)
        wrong = dict(list(wrong.items())[:ASKED_OFTEN])
        found[f"{share:g}"] = {
            system: {
                **trial.measured(one.over(trial.test.titles)),
                "stray": _among_first(one.over(log.titles), log.titles, wrong),
            }
            for system, one in systems_of(ranker, worse).items()
        }
    return found


def _among_first(retriever, titles, wrong):
    """How many of the wrong titles of queries are among the first `SHOWN`."""
    if not wrong:
        return 0
    places = retriever.find(list(wrong), SHOWN)[0].tolist()
    return sum(
        titles[place] in of_query
        for row, of_query in zip(places, wrong.values(), strict=True)
        for place in row
    )


def renamed_titles(trial):
    """The most clicked right titles lose half of their words: figures before and after.

    ``places`` are those of the same titles with a suffix, for the query that each is clicked for
    most often: before, after `Index.sync`, and in an index made again.
    """
    ranker = trial.ranker("seed-0", trial.log)
    titles, ids = list(trial.test.titles), list(trial.test.title_ids)
    clicks = np.bincount(trial.log.title_index, trial.log.clicks, len(trial.log.titles))
    of_title = dict(zip(trial.log.titles, clicks.tolist(), strict=True))
    asked = dict.fromkeys(title.strip() for title in trial.right.titles)
    popular = sorted(asked, key=lambda title: -of_title.get(title, 0))[:RENAMED]
    suffixed = [f"{title}{SUFFIX}" if title.strip() in popular else title for title in titles]
    # The number keeps names apart.
    names = {title: f"{_last_half(title)} {number}" for number, title in enumerate(popular)}
    concerned = [
        (query, title)
        for query, right in zip(*best_titles(trial.test), strict=True)
        for title in right
        if title.strip() in names
    ]
    before = ClickLog.from_pairs(concerned)
    after = ClickLog.from_pairs((query, names[title.strip()]) for query, title in concerned)
    changed = [names.get(title.strip(), title) for title in titles]
    index = Index.build(ranker, titles, ids, threads=trial.threads)
    made_again = Index.build(ranker, changed, ids, threads=trial.threads)
    found = {"before": trial.measured(index, before, titles)}
    index.sync(changed, ids)
    found["after, `Index.sync`"] = trial.measured(index, after, list(index.titles))
    found["after, an index made again"] = trial.measured(made_again, after, changed)
    index = Index.build(ranker, titles, ids, threads=trial.threads)
    found["places"] = [_places(index, trial.log, popular, {})]
    index.sync(suffixed, ids)
    made_again = Index.build(ranker, suffixed, ids, threads=trial.threads)
    names = {title: f"{title}{SUFFIX}" for title in popular}
    found["places"] += [_places(one, trial.log, popular, names) for one in (index, made_again)]
    return found


def _places(index, log, titles, names):
    """The place of each title, under its name, for the query it is clicked for most often."""
    number = {title: t for t, title in enumerate(log.titles)}
    pairs = [np.flatnonzero(log.title_index == number[title]) for title in titles]
    most = [of_title[log.clicks[of_title].argmax()] for of_title in pairs]
    hits = index.search([log.queries[q] for q in log.query_index[most]], FIRST, everything=True)
    places = []
    for title, of_query in zip(titles, hits, strict=True):
        shown = [hit.title.strip() for hit in of_query]
        name = names.get(title, title)
        places.append(shown.index(name) if name in shown else FIRST)
    return places


def floor(trial, others):
    """For each kind of query how many there are, below the floor, and with no known word."""
    rng = np.random.default_rng(17)
    letters = list(string.ascii_lowercase)
    kinds = {
        "test queries": list(trial.test.queries),
        "random letters": [
            " ".join("".join(rng.choice(letters, rng.integers(3, 11))) for _ in range(n))
            for n in rng.integers(1, 4, ASKED).tolist()
        ],
    }
    for name in others:
        queries = read_judged_set(trial.data / name / "test").queries
        some = rng.permutation(len(queries))[:ASKED].tolist()
        kinds[f"queries of {name}"] = [queries[q] for q in some]
    index = Index.build(trial.ranker("seed-0", trial.log), trial.test.titles)
    found = {}
    for kind, queries in kinds.items():
        reasons = [hits.reason for hits in index.search(queries, 1)]
        found[kind] = [len(queries), reasons.count(BELOW_FLOOR), reasons.count(NOTHING_KNOWN)]
    return found


def confidence(trial):
    """Brier scores on test of the confidence of first titles: dev queries -> fit -> score."""
    ranker = trial.ranker("seed-0", trial.log)
    known, unknown = (
        first_titles(Index.build(ranker, judged.titles), best_graded(judged))
        for judged in (read_judged_set(trial.dev), trial.test)
    )
    rng, found = np.random.default_rng(0), {}
    for size, draws in ((FEW, DRAWS), (len(known[0]), 1)):
        each = []
        for _ in range(draws):
            some = rng.permutation(len(known[0]))[:size]
            scores, is_right = (values[some] for values in known)
            isotonic = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1)
            fits = (
                Confidence.fit(scores, is_right)(unknown[0]),
                isotonic.fit(scores, is_right).predict(unknown[0]),
                np.full(len(unknown[0]), is_right.mean()),
            )
            each.append([np.mean((fit - unknown[1]) ** 2) for fit in fits])
        found[f"{min(size, len(known[0])):,}"] = np.mean(each, axis=0).tolist()
    return found


def _last_half(title):
    words = title.split()
    return " ".join(words[len(words) // 2 :])


def _pairs(log):
    """Each pair of a log as texts with its clicks, and the number of its title."""
    numbers = (log.query_index, log.title_index, log.clicks)
    for q, t, n in zip(*(array.tolist() for array in numbers), strict=True):
        yield (log.queries[q], log.titles[t], n), t


# -- tables -----------------------------------------------------------------------------------


def rows_of_new_titles(found):
    """The table of `new_titles`: queries for titles without clicks, and for the others."""
    yield ["right titles", "system", "queries", *HEADS, f"hit@1 minus {TITLES}"]
    is_new = np.array(found["is_new"])
    for label, some in (("without clicks", is_new), ("with clicks", ~is_new)):
        if not some.any():
            continue
        base = np.array(found["systems"][TITLES]["hit@1"])[some]
        for system in (TITLES, MODEL, BM25, RANKER):
            values = [np.array(found["systems"][system][name])[some] for name in FIGURES]
            minus = "-"
            if system != TITLES:
                minus = with_interval(compare_all([values[0]], base)[0])
            means = [f"{value.mean():.3f}" for value in values]
            yield [label, system, f"{some.sum():,}", *means, minus]


def rows_of_stray_clicks(found):
    """The table of `stray_clicks`."""
    yield ["stray clicks", "system", *HEADS, "stray titles first", "hit@1 minus that without"]
    clean = next(iter(found))
    for share, systems in found.items():
        for system, figures in systems.items():
            values = [np.array(figures[name]) for name in FIGURES]
            minus = "-"
            if share != clean:
                base = np.array(found[clean][system]["hit@1"])
                minus = with_interval(compare_all([values[0]], base)[0])
            means = [f"{value.mean():.3f}" for value in values]
            first = f"{figures['stray']:,}" if share != clean else "-"
            yield [f"{float(share):.0%}", system, *means, first, minus]


def rows_of_renamed_titles(found):
    """The table of `renamed_titles`."""
    yield ["names", "queries", *HEADS, f"places kept with{SUFFIX}"]
    *of_names, (_, places) = found.items()
    for (label, figures), now in zip(of_names, places, strict=True):
        values = [figures[name] for name in FIGURES]
        means = [f"{np.mean(value):.3f}" for value in values]
        n_same = sum(place <= before for place, before in zip(now, places[0], strict=True))
        yield [label, f"{len(values[0]):,}", *means, f"{n_same} of {len(now)}"]


def rows_of_floor(found):
    """The table of `floor`."""
    yield ["queries", "number", "below the floor", "no known word", "answered"]
    for kind, (n, below, unknown) in found.items():
        answered = (n - below - unknown) / n
        yield [kind, f"{n:,}", f"{below / n:.1%}", f"{unknown / n:.1%}", f"{answered:.1%}"]


def rows_of_confidence(found):
    """The table of `confidence`."""
    yield ["dev queries", "logistic", "isotonic", "constant"]
    for size, scores in found.items():
        yield [size, *(f"{score:.4f}" for score in scores)]
