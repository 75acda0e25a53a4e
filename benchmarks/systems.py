"""A model, the parts of its ranker and their sum on one log, trained once and kept in build/.

`bm25-clicks` is BM25 over titles and the queries clicked on them, with the parameters that dev has
chosen for the ranker. The ranker is that of `sentemb train`: its weights come from dev too.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from pages import ROOT

from sentemb import SentenceEncoder, fit_ranker, load, load_ranker, train
from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.ranker_files import has_ranker
from sentemb.search.ranking.recipe import BM25 as WORDS
from sentemb.search.ranking.recipe import COSINE, MEMORY

BUILD = ROOT / "build" / "systems"
MODEL, BM25, RANKER = SYSTEMS = ("model", "bm25-clicks", "ranker")
CUTOFFS = (1, 3, 10)
# Over all titles of a judged set.
ALL_TITLES = ("mrr@10", "hit@1", "recall@10")


def say(text):
    """Print a line about the progress."""
    print(text, file=sys.stderr, flush=True)


def kept(path, make):
    """What an earlier run wrote to the JSON file ``path``, otherwise what ``make()`` returns."""
    path = Path(path)
    if not path.exists():
        found = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".tmp")
        beside.write_text(json.dumps(found))
        os.replace(beside, path)
    return json.loads(path.read_text())


def trained(folder, pairs, dev, seed=0, threads=1, **settings):
    """The defaults on ``pairs``; a finished training in ``folder`` is read, another one resumed."""
    if not is_finished(folder):
        say(f"training {folder}")
        train(
            pairs, dev=dev, output=folder, seed=seed, threads=threads, resume=True, on_note=say,
            **settings,
        )  # fmt: skip
    return load(folder, threads)


def is_finished(folder):
    """Whether ``folder`` holds a model whose training has ended."""
    try:
        config = json.loads((Path(folder) / "config.json").read_text())
    except FileNotFoundError:
        return False
    return bool(config["training"].get("finished"))


def average(folder, members, threads=1):
    """The average of trained models, kept in ``folder``."""
    if not (Path(folder) / "README.md").exists():  # what is written last
        SentenceEncoder.average(members).save_pretrained(folder, force=True)
    return load(folder, threads)


def ranker_of(folder, log, dev, threads=1, **more):
    """The ranker of the model in ``folder``, fitted unless the folder has it."""
    if not has_ranker(folder):
        say(f"fitting the ranker of {folder}")
        fitted = fit_ranker(load(folder, threads), log, dev, threads=threads, on_note=say, **more)
        fitted.save(folder)
    return load_ranker(folder, threads=threads)


def systems_of(ranker, log):
    """The systems by name; ``log`` is the path of the log, or the log, that ``ranker`` is of."""
    parts = parts_of(ranker, log)
    return {MODEL: parts[COSINE], BM25: parts[WORDS], RANKER: ranker}


def parts_of(ranker, log, names=(COSINE, MEMORY, WORDS)):
    """Parts as rankers of their own, also those that have no weight in ``ranker``."""
    source = ranker
    if not ranker.recipe.needs_clicks:  # the ranker is the cosine and has no clicks
        read = log if isinstance(log, ClickLog) else read_click_log(log)
        source = HybridRanker(ranker.model, ranker.recipe, ClickedQueries.of(read), threads=1)
    return {name: source.alone(name) for name in names}


def measured(system, judged):
    """Figures of a system for each query of a judged set that has an answer.

    Returns
    -------
    dict of str to list
        ``ndcg@1``, ``ndcg@3``, ``ndcg@10`` over the judged titles; those of `ALL_TITLES` over all
        titles of the set, of which the best graded count as clicked.
    """
    ndcg = evaluate_model(system, judged, CUTOFFS).values
    clicks = best_graded(judged)
    found = HeldOutClicks(clicks, judged.titles, ALL_TITLES).evaluate(system.over(judged.titles))
    ndcg = ndcg[~np.isnan(ndcg).any(axis=1)]
    if len(ndcg) != len(found.values):
        raise ValueError("the judged set has a query twice; its figures cannot be lined up")
    values = np.hstack([ndcg, found.values]).round(6)
    names = [*(f"ndcg@{k}" for k in CUTOFFS), *ALL_TITLES]
    return dict(zip(names, values.T.tolist(), strict=True))


def best_titles(judged):
    """Queries of a judged set with an answer, and the best titles of each, as texts."""
    clicks = best_graded(judged)
    offsets, titles = clicks.titles_of_queries()
    each = [
        [clicks.titles[t] for t in titles[offsets[q] : offsets[q + 1]]]
        for q in range(len(clicks.queries))
    ]
    return clicks.queries, each


def with_interval(difference):
    """A `Difference` as a table has it."""
    return f"{difference.mean:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"
