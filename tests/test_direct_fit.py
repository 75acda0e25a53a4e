"""The weights of clicks and names: fitted to single clicks, or such that they outweigh the rest."""

from dataclasses import replace

import numpy as np
import pytest
from helpers import made_up_model

from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.direct_fit import (
    FEW_TYPED,
    fitted_to_clicks,
    largest_as_good,
    outweighing,
)
from sentemb.search.ranking.direct_parts import KAPPA
from sentemb.search.ranking.fitting import fit_ranker, fit_weights_of
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MAX_WEIGHT, Recipe
from sentemb.search.ranking.weights import Candidates, fit_weights, losses_of

N = 80
TITLES = [f"title{k} of{k % 9}" for k in range(N)]
QUERIES = [f"query{k} say{k % 7}" for k in range(N)]
FIRST_CLICK = np.log1p(1 / KAPPA)


@pytest.fixture(scope="module")
def model():
    """Its cosines say nothing of which title is right."""
    return made_up_model(("bag", {}), [*QUERIES, *TITLES], cells=6, dtype=np.float32)


def clicked(share_of_first, n_clicks=10):
    """A log in which every query has clicks on two titles, and single clicks of a later time."""
    rng = np.random.default_rng(3)
    log, later = [], []
    for k, query in enumerate(QUERIES):
        pair = TITLES[k], TITLES[(k + 1) % N]
        n_first = 1 + int(share_of_first * (n_clicks - 2))
        log += [(query, pair[0], n_first), (query, pair[1], n_clicks - n_first)]
        later.append((query, pair[int(rng.random() >= share_of_first)]))
    return ClickLog.from_pairs(log), ClickLog.from_pairs(later)


def ranker_of(model, log, weights):
    return HybridRanker(model, Recipe(weights), ClickedQueries.of(log), titles=TITLES, threads=1)


def pairs_of(log):
    pairs = zip(log.query_index, log.title_index, strict=True)
    return [(log.queries[q], log.titles[t]) for q, t in pairs]


def hits_of(ranker, later):
    found, _ = ranker.find(later.queries, 1)
    right = set(pairs_of(later))
    titles = [ranker.titles[t] for t in found[:, 0].tolist()]
    return np.mean([pair in right for pair in zip(later.queries, titles, strict=True)])


def test_counts_decide_where_the_others_are_noise(model):
    log, later = clicked(0.8)
    weights = {"cosine": 3.0, "clicks": 20.0, "name": 5.0}
    ranker = ranker_of(model, log, weights)
    recipe = fitted_to_clicks(ranker, later)
    alone = hits_of(ranker.alone("clicks"), later)
    assert hits_of(ranker.alone("cosine"), later) < 0.2 < 0.7 < alone
    # Only the weight of clicks is fitted; it is no higher than one that outweighs all else.
    assert {**recipe.weights, "clicks": 20.0} == weights and 1 < recipe.weight("clicks") <= 20
    assert hits_of(ranker.weighted(recipe.weights), later) >= alone - 0.05
    assert recipe.weight("clicks") == float(f"{recipe.weight('clicks'):.3g}")


def test_clicks_count_little_where_they_say_nothing_of_the_next_ones(model):
    """The next click is on the title that the cosine likes among those without clicks."""
    log, _ = clicked(0.5, n_clicks=6)
    ranker = ranker_of(model, log, {"cosine": 3.0, "clicks": 20.0})
    recipe = fitted_to_clicks(ranker, liked_by(ranker_of(model, log, {"cosine": 1.0})))
    # Who clicks a title again and again must see it, although others have clicks as well: ten
    # clicks bring the fifth title to the front.
    fifth = ranker.weighted(recipe.weights).find(QUERIES, 5)[0][:, 4].tolist()
    more = zip(QUERIES, (TITLES[t] for t in fifth), [10] * N, strict=True)
    clicks = zip(pairs_of(log), log.clicks.tolist(), strict=True)
    served = ClickLog.from_pairs([*more, *((*pair, int(n)) for pair, n in clicks)])
    found, _ = ranker_of(model, served, recipe.weights).find(QUERIES, 1)
    assert 0.88 <= np.mean(found[:, 0] == fifth) < 1


@pytest.mark.parametrize("n_queries", [40, 2000])
def test_clicks_count_as_much_as_the_held_out_ones_allow(n_queries):
    """The largest weight whose loss is within a standard error of the least loss."""
    rng, n = np.random.default_rng(5), 8
    query, titles = np.repeat(np.arange(n_queries), n), np.tile(np.arange(n), n_queries)
    is_right = (titles == 0).astype(float)
    rest, clicks = rng.normal(size=(2, query.size)) + is_right
    candidates = Candidates(query, titles, is_right)
    both = np.stack([rest, clicks], axis=1)
    best = fit_weights(both, candidates).weights
    least = losses_of(both @ best, candidates)

    def errors_behind(weight):
        total = rest + weight * clicks
        scale = fit_weights(total[:, None], candidates).weights[0]
        more = losses_of(total * scale, candidates) - least
        return more.mean() / (more.std() / np.sqrt(n_queries))

    weight = largest_as_good(rest, clicks, candidates, 20.0)
    assert best[1] / best[0] <= weight < (20 if n_queries == 40 else 1.5)
    assert errors_behind(weight) <= 1 < errors_behind(1.25 * weight)
    assert largest_as_good(rest, clicks, candidates, 1.1) <= 1.1


def liked_by(ranker):
    """A click of each query on the best title that the log has no clicks for."""
    found, _ = ranker.find(QUERIES, 3)
    best = [
        next(t for t in titles if t not in (k, (k + 1) % N))
        for k, titles in enumerate(found.tolist())
    ]
    return ClickLog.from_pairs([(query, TITLES[t]) for query, t in zip(QUERIES, best, strict=True)])


@pytest.mark.parametrize("unclicked", [-2.0, 0.5, 4.0])
def test_a_first_click_gains_what_a_title_without_clicks_has(model, unclicked):
    log, _ = clicked(0.5)
    later = liked_by(ranker_of(model, log, {"cosine": 1.0}))
    weights = {"cosine": 3.0, "unclicked": unclicked, "clicks": 20.0}
    weight = fitted_to_clicks(ranker_of(model, log, weights), later).weight("clicks")
    without = fitted_to_clicks(ranker_of(model, log, {**weights, "unclicked": 0.0}), later)
    least = max(unclicked / FIRST_CLICK, without.weight("clicks"))
    assert weight == pytest.approx(least, rel=0.3)


def test_clicks_on_titles_that_are_not_there_leave_the_recipe(model):
    log, _ = clicked(0.8)
    ranker = ranker_of(model, log, {"cosine": 1.0, "clicks": 2.0})
    later = ClickLog.from_pairs([(query, "another title") for query in QUERIES])
    assert fitted_to_clicks(ranker, later) == ranker.recipe


def test_the_first_title_of_a_catalogue_teaches_as_the_others_do(model):
    """It is right for every query of one log, and wrong for every query of another."""
    titles = TITLES[:2]
    log = ClickLog.from_pairs([(query, t, 5) for query in QUERIES for t in titles])
    recipe = Recipe({"cosine": 1.0, "clicks": 20.0})
    ranker = HybridRanker(model, recipe, ClickedQueries.of(log), titles=titles, threads=1)
    first = ranker.alone("cosine").find(QUERIES, 1)[0][:, 0].tolist()
    for right in (0, 1):
        liked = [query for query, t in zip(QUERIES, first, strict=True) if t == right]
        later = ClickLog.from_pairs([(query, titles[right]) for query in liked])
        # Counts are equal, and the cosine is right.
        assert fitted_to_clicks(ranker, later).weight("clicks") < 0.5


def test_titles_without_clicks_are_candidates_too(model):
    """The right title is the best of those with a click; some without clicks are better."""
    pairs = [(query, TITLES[(k + j) % N]) for k, query in enumerate(QUERIES) for j in range(25)]
    ranker = ranker_of(model, ClickLog.from_pairs(pairs), {"cosine": 1.0, "clicks": 20.0})
    best = ranker.find(QUERIES, 1)[0][:, 0].tolist()
    later = [(query, TITLES[t]) for query, t in zip(QUERIES, best, strict=True)]
    recipe = fitted_to_clicks(ranker, ClickLog.from_pairs(later))
    assert recipe.weight("clicks") > 0.2


def test_direct_parts_outweigh_the_largest_difference():
    recipe = Recipe({"cosine": 2.0, "clicked_bm25": -0.5, "unclicked": 0.25}, 0.3, 0.2, "english")
    found = outweighing(recipe, {"cosine": 1.5, "clicked_bm25": 8.0})
    most = 2.0 * 1.5 + 0.5 * 8.0 + 0.25  # a part without a known spread has 1
    assert found.weight("name") == pytest.approx(most, rel=5e-3)
    assert found.weight("clicks") * FIRST_CLICK == pytest.approx(most, rel=5e-3)
    assert replace(found, weights=recipe.weights) == recipe
    assert {**found.weights, **recipe.weights} == found.weights
    assert outweighing(recipe, {"cosine": 1e6}).weight("name") == MAX_WEIGHT


# -- the fit of a whole ranker ---------------------------------------------------------------------


def never_typed():
    return ClickLog.from_pairs([(f"{TITLES[k]} new", TITLES[k]) for k in range(0, N, 2)])


def test_clicks_of_a_log_without_counts_outweigh_all_else(model):
    """Each pair is a judgement: a clicked title is first, whatever the others say."""
    log = ClickLog.from_pairs([(query, TITLES[(7 * k) % N]) for k, query in enumerate(QUERIES)])
    ranker = fit_ranker(model, log, never_typed(), threads=1).over(TITLES)
    found, _ = ranker.find(QUERIES, 1)
    assert found[:, 0].tolist() == [(7 * k) % N for k in range(N)]
    assert "typed_queries" not in ranker.dev


def test_enough_single_clicks_tell_the_weight_of_clicks(model):
    # The next click is on the title with the word of the query, not on one that was clicked.
    queries = [f"title{k} say" for k in range(N)]
    log = ClickLog.from_pairs(
        [(query, TITLES[(k + m) % N], 9 // m) for k, query in enumerate(queries) for m in (3, 9)]
    )
    later = ClickLog.from_pairs(zip(queries, TITLES, strict=True))
    known = ClickedQueries.of(log)
    few = later.part(np.arange(N) > N - FEW_TYPED)
    fits = {
        name: fit_weights_of(model, never_typed(), TITLES, None, known, known, typed, threads=1)
        for name, typed in (("none", None), ("few", few), ("later", later), ("log", log))
    }
    assert fits["later"].dev["typed_queries"] == N
    most = fits["none"].recipe.weight("clicks")
    # Too few clicks, or those that are in the log, tell nothing.
    for name in ("few", "log"):
        assert "typed_queries" not in fits[name].dev and fits[name].recipe == fits["none"].recipe
    assert 0 < fits["later"].recipe.weight("clicks") < most
    # Nothing else depends on them, and no query that nobody typed does.
    others = [{**fit.recipe.weights, "clicks": 1.0} for fit in fits.values()]
    assert all(weights == others[0] for weights in others)
    figures = [fit.dev["figures"]["sum"] for fit in fits.values()]
    assert all(each == figures[0] for each in figures)
