"""The ranker of a model: its scores, how it is tuned, and its files."""

import copy
import json
import pickle

import naive
import numpy as np
import pytest

import sentemb
from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.data.splitting import split_log
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import in_tie_order
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.evaluation.metrics import JudgedScores
from sentemb.models.nearest import TitleVectors
from sentemb.ranking import fitting, parts, targets, tuning
from sentemb.ranking.clicked_pairs import clicked_pairs, log_of_pairs
from sentemb.ranking.fitting import fit_ranker
from sentemb.ranking.memory import QueryMemory
from sentemb.ranking.opening import load_best, load_ranker
from sentemb.ranking.ranker import CatalogueRanker, HybridRanker
from sentemb.ranking.ranker_files import has_ranker
from sentemb.ranking.recipe import PARTS, Recipe
from sentemb.ranking.tuning import tune_weights
from sentemb.system.parallel import Workers
from sentemb.text.words import query_key

WORDS = ("hotels", "in", "shanghai", "resorts", "fix", "a", "bath", "tub", "repair", "and", "red")


def made_texts(rng, count):
    """Distinct texts of two to five words."""
    found = {}
    while len(found) < count:
        found[" ".join(rng.choice(WORDS, rng.integers(2, 6)))] = None
    return list(found)


def made_log(seed=0, n_queries=60, n_titles=25):
    """Clicks on titles that share a word with the query, mostly."""
    rng = np.random.default_rng(seed)
    titles = made_texts(rng, n_titles)
    pairs = []
    for query in made_texts(rng, n_queries):
        near = [title for title in titles if set(title.split()) & set(query.split())]
        pairs += [(query, str(title), 2) for title in rng.choice(near or titles, 2)]
    return ClickLog.from_pairs(pairs)


def made_judged(log, seed=1, n_queries=12):
    """Queries that are not in the log, each with six judged titles."""
    rng = np.random.default_rng(seed)
    known = set(log.queries)
    queries = [text for text in made_texts(rng, 3 * n_queries) if text not in known][:n_queries]
    chosen = [rng.choice(len(log.titles), 6, replace=False) for _ in queries]
    return JudgedSet(
        [f"q{q}" for q in range(len(queries))],
        queries,
        [f"t{t}" for t in range(len(log.titles))],
        list(log.titles),
        np.arange(len(queries) + 1, dtype=np.int64) * 6,
        np.concatenate(chosen).astype(np.int32),
        np.tile([2, 1, 0, 0, 0, 0], len(queries)).astype(np.int32),
    )


@pytest.fixture(scope="module")
def bag(make_model):
    return make_model("bag")


@pytest.fixture(scope="module")
def log():
    return made_log()


@pytest.fixture(scope="module")
def judged(log):
    return made_judged(log)


ALL = Recipe(0.5, 0.7, 2.0, k1=1.2, b=0.6, click_weight=0.3)


def naive_scores(model, recipe, query, titles, log):
    """The scores of all titles by the definition."""

    def vector(text, side):
        found = model.encode(text, side=side)
        return found / (np.linalg.norm(found) or 1)

    own = vector(query, "query")
    cosines = [float(own @ vector(title, "document")) for title in titles]
    queries_of = {}
    for q, t in zip(log.query_index, log.title_index, strict=True):
        queries_of.setdefault(log.titles[t], []).append(log.queries[q])
    clicked = [queries_of.get(title, []) for title in titles]
    texts = [" ".join(some) for some in clicked]
    lexical = naive.bm25_scores(query, titles, recipe.k1, recipe.b, texts, recipe.click_weight)
    # A query without a known word is not remembered.
    vectors = [[vector(other, "query") for other in some] for some in clicked]
    of_clicked = [[float(own @ other) for other in some if other.any()] for some in vectors]
    weights = recipe.cosine, recipe.bm25, recipe.memory
    return naive.ranker_scores(weights, cosines, lexical, of_clicked)


# -- scores -----------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:1 of 1 texts")
@pytest.mark.parametrize("recipe", [ALL, Recipe(), Recipe(0, 1, 0), Recipe(0, 0, 1), Recipe(1, 3)])
def test_scores_are_those_of_the_definition(bag, log, recipe):
    queries = ["hotels in shanghai", "red tub", "nothing known"]
    titles = [*log.titles, "never clicked tub"]
    ranker = HybridRanker(bag, recipe, log, titles, threads=1)
    expected = np.array([naive_scores(bag, recipe, query, titles, log) for query in queries])
    q, t = np.divmod(np.arange(expected.size), len(titles))
    np.testing.assert_allclose(
        ranker.score_pairs(queries, titles, q, t).reshape(expected.shape), expected, atol=1e-5
    )
    places, scores = ranker.find(queries, len(titles))
    np.testing.assert_allclose(np.take_along_axis(expected, places, axis=1), scores, atol=1e-5)
    assert (np.diff(scores, axis=1) <= 0).all()
    assert sorted(places[0]) == list(range(len(titles)))


def test_the_cosine_alone_has_the_bits_of_the_model(bag, log, judged):
    pairs = np.repeat(np.arange(12), 6), judged.title_index
    ranker = HybridRanker(bag, Recipe())
    of_model = bag.score_pairs(judged.queries, judged.titles, *pairs)
    assert np.array_equal(ranker.score_pairs(judged.queries, judged.titles, *pairs), of_model)


def test_no_score_depends_on_threads_portions_or_other_queries(bag, log, monkeypatch):
    queries = made_texts(np.random.default_rng(5), 30)
    one = HybridRanker(bag, ALL, log, threads=1)
    places, scores = one.find(queries, 7)
    pairs = np.arange(30), np.arange(30) % len(log.titles)
    of_pairs = one.score_pairs(queries, log.titles, *pairs)
    monkeypatch.setattr(parts, "_CELLS", 3 * len(log.titles))
    three = HybridRanker(bag, ALL, log, threads=3)
    assert np.array_equal(places, three.find(queries, 7)[0])
    assert np.array_equal(scores, three.find(queries, 7)[1])
    assert np.array_equal(of_pairs, three.score_pairs(queries, log.titles, *pairs))
    alone = [three.find([query], 7) for query in queries]
    assert np.array_equal(places, np.concatenate([found for found, _ in alone]))
    assert np.array_equal(scores, np.concatenate([found for _, found in alone]))


def test_a_catalogue_ranker_scores_some_titles_as_among_all(bag, log):
    ranker = HybridRanker(bag, ALL, log)
    some = log.titles[3:8]
    pairs = np.zeros(5, int), np.arange(5)
    of_all = ranker.score_pairs(["red tub"], log.titles, pairs[0], pairs[1] + 3)
    assert np.array_equal(CatalogueRanker(ranker).score_pairs(["red tub"], some, *pairs), of_all)
    assert not np.array_equal(ranker.score_pairs(["red tub"], some, *pairs), of_all)


def test_a_part_without_weight_is_not_computed(bag, log, monkeypatch):
    def fail(*arguments):
        raise AssertionError("computed")

    monkeypatch.setattr(QueryMemory, "build", fail)
    HybridRanker(bag, Recipe(1, 0.3), log).find(["red tub"], 3)
    monkeypatch.setattr(parts, "bm25_lists", fail)
    monkeypatch.setattr(type(bag), "encode_query", fail)
    with pytest.raises(AssertionError, match="computed"):
        HybridRanker(bag, Recipe(0, 1), log).find(["red tub"], 3)
    monkeypatch.undo()
    monkeypatch.setattr(type(bag), "encode_query", fail)
    HybridRanker(bag, Recipe(0, 1), log).find(["red tub"], 3)


def test_rank_gives_titles_by_number(bag, log):
    ranker = HybridRanker(bag, ALL, log)
    (place, score), *rest = ranker.rank("red tub", top_k=3)
    assert len(rest) == 2
    places, scores = ranker.find(["red tub"], 3)
    assert (place, score) == (places[0, 0], scores[0, 0])
    assert ranker.rank(["red tub"], ["bath"], 9)[0][0][0] == 0
    assert ranker.rank("red tub", []) == []


@pytest.mark.parametrize("title", [0, "never clicked tub"])
def test_shares_add_up_to_the_score(bag, log, title):
    title = log.titles[title] if isinstance(title, int) else title
    titles = log.titles if title in log.titles else [*log.titles, title]
    shares = HybridRanker(bag, ALL, log).explain("a red bath", title)
    expected = naive_scores(bag, ALL, "a red bath", titles, log)[titles.index(title)]
    assert sum(share.added for share in shares) == pytest.approx(expected, abs=1e-5)
    assert [share.part for share in shares] == list(PARTS)
    nearest = shares[2].nearest
    if title == "never clicked tub":
        assert nearest is None
        return
    own = log.query_index[log.title_index == log.titles.index(title)]
    cosines = bag.similarity(
        bag.encode_query(["a red bath"]), bag.encode_query([log.queries[q] for q in own])
    )[0]
    assert nearest.query == log.queries[own[np.argmax(cosines)]]
    assert nearest.cosine == pytest.approx(cosines.max(), abs=1e-6)
    assert shares[2].value >= nearest.cosine - 1e-6


# -- recipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"cosine": 0}, "all weights"),
        ({"bm25": -1}, "weight of BM25"),
        ({"memory": float("nan")}, "weight of memory"),
        ({"k1": -0.1}, "k1"),
        ({"b": 2}, "b is 2"),
        ({"click_weight": 1.1}, "click_weight"),
        ({"stem": 3}, "stem"),
        ({"colour": 3}, "recipe"),
    ],
)
def test_a_wrong_recipe_is_refused(wrong, message):
    with pytest.raises(SentembError, match=message):
        Recipe.of({**Recipe().as_dict(), **wrong})


def test_a_recipe_says_what_it_needs():
    assert not Recipe(1, 0.3, click_weight=0).needs_clicks
    assert not Recipe(1, 0).needs_clicks
    assert Recipe(1, 0.3).needs_clicks
    assert Recipe(1, 0, 0.1).needs_clicks
    assert str(Recipe(1, 0.3, 2, 0.9, 0.4, 0.5, "english")) == (
        "cosine + 0.3 BM25 (k1 0.9, b 0.4, clicked queries × 0.5, english stems) + 2 memory"
    )
    with pytest.raises(SentembError, match="needs a click log"):
        HybridRanker(None, Recipe(1, 0.3))


# -- tuning -----------------------------------------------------------------------------------


class Made:
    """A target with given scores of the parts, for which BM25 has no lists."""

    def __init__(self, figures, of_sum):
        self.titles, self.n_queries = ["a", "b", "c"], 1
        self.figures, self._of_sum = figures, of_sum

    def prepare(self, parts, names):
        return {name: self.figures[name] for name in names}

    def of_sum(self, recipe):
        return self._of_sum(recipe)

    exactly = of_sum


def judged_figures(first, third=0.5):
    return {"ndcg@1": first, "ndcg@3": third, "ndcg@10": 0.0, "mrr@10": 0.5}


def test_a_sum_with_a_higher_mean_but_a_lower_ndcg_at_1_is_not_chosen():
    figures = dict(zip(PARTS, map(judged_figures, (0.5, 0.6, 0.4)), strict=True))

    def of_sum(recipe):
        if recipe.parts == ("bm25",):
            return figures["bm25"]
        return judged_figures(0.59, 0.99)

    tuned = tune_weights(Made(figures, of_sum), None, Recipe(), PARTS)
    assert tuned.recipe.parts == ("bm25",)
    assert tuned.figures["sum"] == figures["bm25"]

    def of_another(recipe):
        return judged_figures(0.61, 0.6) if recipe.memory == 0.3 else of_sum(recipe)

    tuned = tune_weights(Made(figures, of_another), None, Recipe(), PARTS)
    assert tuned.recipe == Recipe(1, 0, 0.3)


def test_harmful_parts_get_the_weight_0():
    figures = dict(zip(PARTS, map(judged_figures, (0.6, 0.5, 0.5)), strict=True))

    def of_sum(recipe):
        return judged_figures(0.6 - 0.01 * (recipe.bm25 + recipe.memory))

    tuned = tune_weights(Made(figures, of_sum), None, Recipe(), PARTS)
    assert tuned.recipe == Recipe()


def test_of_equal_figures_the_small_weights_are_chosen():
    figures = dict.fromkeys(PARTS, judged_figures(0.5))

    def of_sum(recipe):
        return judged_figures(0.6 if recipe.cosine and recipe.memory >= 0.3 else 0.5)

    tuned = tune_weights(Made(figures, of_sum), None, Recipe(), PARTS)
    assert tuned.recipe == Recipe(1, 0, 0.3)


def test_a_sum_that_only_candidates_made_good_is_not_chosen():
    figures = {part: {"mrr@10": 0.5, "hit@1": 0.4} for part in PARTS}
    target = Made(figures, lambda recipe: {"mrr@10": 0.5 + 0.1 * recipe.bm25, "hit@1": 0.4})
    target.exactly = lambda recipe: {"mrr@10": 0.3, "hit@1": 0.2}
    tuned = tune_weights(target, None, Recipe(), PARTS)
    assert len(tuned.recipe.parts) == 1
    assert tuned.figures["sum"] == figures["cosine"]


@pytest.mark.parametrize("seed", range(4))
def test_on_dev_a_ranker_is_never_below_its_best_part(bag, seed):
    log = made_log(seed)
    for dev in (made_judged(log, seed + 9), 0.2):
        figures = fit_ranker(bag, log, dev, threads=1).dev["figures"]
        assert set(figures) == {"sum", *PARTS}
        best = max(PARTS, key=lambda part: tuning.merit(figures[part]))
        floors = {
            name: max(figures[part][name] for part in PARTS)
            for name in tuning.DECISIVE
            if name in figures[best]
        }
        is_best_part = figures["sum"] == figures[best]
        assert is_best_part or tuning.is_above(figures["sum"], floors)


def test_dev_figures_are_those_of_an_evaluation(bag, log, judged):
    ranker = fit_ranker(bag, log, judged, threads=1)
    for name, one in {"sum": ranker, **{part: ranker.alone(part) for part in ("cosine",)}}.items():
        mean = list(evaluate_model(one, judged).mean)
        titles = in_tie_order(judged.titles)
        of_all = evaluate_clicks(one.over(titles), best_graded(judged), titles, ["mrr@10", "hit@1"])
        expected = [*mean, *of_all.mean]
        assert list(ranker.dev["figures"][name].values()) == pytest.approx(expected, abs=1e-6)
    train, held_out, _ = split_log(log, dev=0.2, test=0)
    ranker = fit_ranker(bag, train, held_out, threads=1)
    titles = list(dict.fromkeys([*train.titles, *held_out.titles]))
    found = evaluate_clicks(ranker.over(titles), held_out, titles, ["mrr@10", "hit@1"])
    assert list(ranker.dev["figures"]["sum"].values()) == pytest.approx(found.mean, abs=1e-6)
    found = evaluate_clicks(TitleVectors(bag, titles), held_out, titles, ["mrr@10"])
    assert ranker.dev["figures"]["cosine"]["mrr@10"] == pytest.approx(found.mean[0], abs=1e-6)


@pytest.mark.parametrize("candidates", [1, 2, 5])
def test_the_sum_is_measured_over_all_titles_whatever_is_a_candidate(
    bag, log, judged, candidates, monkeypatch
):
    def figures():
        target = targets.ClicksTarget(best_graded(judged), log.titles, Workers(1))
        own = parts.TitleParts(bag, log.titles, Recipe(), log, Workers(1))
        target.prepare(own, PARTS)
        return [
            target.exactly(Recipe().weighted(*weights))
            for weights in ((1, 0.5, 0), (1, 0.2, 2), (0, 1, 1), (0, 1, 0))
        ]

    monkeypatch.setattr(targets, "_CANDIDATES", len(log.titles))
    expected = figures()
    monkeypatch.setattr(targets, "_CANDIDATES", candidates)
    assert figures() == expected


def test_equal_scores_rank_by_place():
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 4, (30, 9)).astype(np.float32)
    is_relevant = rng.random((30, 9)) < 0.3
    is_relevant[:, 4] = True
    orders = (naive.highest(row, 9) for row in scores.tolist())
    ranks = [
        1 + min(order.index(place) for place in np.flatnonzero(own))
        for order, own in zip(orders, is_relevant, strict=True)
    ]
    assert targets._ranks(scores, is_relevant).tolist() == ranks


def test_the_result_does_not_depend_on_threads_or_portions(bag, log, monkeypatch):
    one = fit_ranker(bag, log, 0.3, threads=1)
    monkeypatch.setattr(parts, "_CELLS", 2 * len(log.titles))
    three = fit_ranker(bag, log, 0.3, threads=3)
    assert (one.recipe, one.dev) == (three.recipe, three.dev)


def test_many_held_out_queries_are_sampled(bag, log, monkeypatch):
    monkeypatch.setattr(targets, "MAX_QUERIES", 5)
    notes = []
    fits = [
        fit_ranker(bag, log, 0.3, seed=seed, threads=1, on_note=notes.append) for seed in (0, 0, 1)
    ]
    assert [one.dev["queries"] for one in fits] == [5, 5, 5]
    assert any("tuned on 5 of the" in note for note in notes)
    figures = [one.dev["figures"]["cosine"] for one in fits]
    assert figures[0] == figures[1] != figures[2]


def test_the_ranker_learns_nothing_from_held_out_queries(bag, log):
    train, held_out, _ = split_log(log, dev=0.3, test=0)
    # The model is made to need clicks, whatever dev says.
    for dev, own in ((0.3, log), (held_out, log), (held_out, train)):
        ranker = fit_ranker(bag, own, dev, threads=1)
        kept = clicked_pairs(own, without=held_out.queries)
        if ranker.clicks is not None:
            assert ranker.clicks.queries == kept.queries
        assert not {*map(query_key, kept.queries)} & {*map(query_key, held_out.queries)}


def test_the_memory_of_dev_queries_does_not_flatter_the_ranker(bag, log):
    """All dev queries are in the log, with their best titles."""
    offsets, clicked = log.titles_of_queries()
    every = np.arange(len(log.titles))
    grades = [np.isin(every, clicked[offsets[q] : offsets[q + 1]]) for q in range(20)]
    judged = JudgedSet(
        [f"q{q}" for q in range(20)],
        log.queries[:20],
        [f"t{t}" for t in every],
        log.titles,
        np.arange(21, dtype=np.int64) * every.size,
        np.tile(every, 20).astype(np.int32),
        np.concatenate(grades).astype(np.int32),
    )
    notes = []
    ranker = fit_ranker(bag, log, judged, threads=1, on_note=notes.append)
    (note,) = notes
    assert note.startswith("the pairs of 20 dev queries that are also in the log are left out")
    # Afterwards they are clicks like all others.
    of_log = evaluate_model(HybridRanker(bag, Recipe(0, 0, 1), log), judged).mean[0]
    assert ranker.dev["figures"]["memory"]["ndcg@1"] < of_log - 0.2
    if ranker.clicks is not None:
        assert set(judged.queries) <= set(ranker.clicks.queries)


def test_parameters_of_bm25_are_the_best_of_those_tried(bag, log, judged):
    figures = {}
    target = targets.JudgedTarget(judged, sentemb.ranking.fitting.Workers(1))
    lists = parts.bm25_lists(judged.titles, log, Recipe())
    chosen, best = tuning.tune_bm25(target, lambda recipe: lists, [None], True, lambda: None)
    for k1 in tuning.GRID["k1"]:
        figures[k1] = tuning.merit(
            target.of_lists(
                lists.with_parameters(k1, chosen.b, chosen.click_weight), target.words(lists)
            )
        )
    assert figures[chosen.k1] == max(figures.values())
    assert (best.k1, best.b, best.click_weight) == (chosen.k1, chosen.b, chosen.click_weight)


def test_a_log_of_held_out_queries_alone_leaves_the_titles(bag, log):
    ranker = fit_ranker(bag, log, log, threads=1)
    assert ranker.clicks is None
    assert not ranker.recipe.memory
    assert set(ranker.dev["figures"]) == {"sum", "cosine", "bm25"}


def test_without_a_stemmer_words_are_plain(bag, log, judged, monkeypatch):
    def missing(stem):
        raise SentembError("the package Stemmer is not installed")

    monkeypatch.setattr(fitting, "words_of", missing)
    notes = []
    ranker = fit_ranker(bag, log, judged, threads=1, on_note=notes.append)
    assert ranker.recipe.stem is None
    assert notes == [
        "the BM25 of the ranker reads plain words: the package Stemmer is not installed"
    ]


def test_judged_scores_are_those_of_ndcg(bag, judged):
    pairs = np.repeat(np.arange(12), 6), judged.title_index
    # Many equal scores: ties must be broken alike.
    rounded = np.round(bag.score_pairs(judged.queries, judged.titles, *pairs), 1)

    class Rounded:
        def score_pairs(self, *arguments):
            return rounded

    for gain in ("exponential", "linear"):
        for cutoffs in ((1, 2, 5), (10, 3), (2, 10**9)):
            expected = evaluate_model(Rounded(), judged, cutoffs, gain).mean
            assert np.array_equal(JudgedScores(judged, cutoffs, gain).mean(rounded), expected)


def test_clicked_pairs_leave_out_what_no_ranker_reads():
    log = ClickLog.from_pairs([("Red  tub", "A", 3), ("tap", "B"), ("red tub ", "B")])
    kept = clicked_pairs(log, without=["RED TUB"])
    assert (kept.queries, kept.titles) == (["tap"], ["B"])
    assert kept.clicks.tolist() == [1]
    assert clicked_pairs(kept, without=["tap"]).queries == []


def test_wrong_input_is_refused(bag, log, judged, make_model):
    with pytest.raises(SentembError, match="give dev"):
        fit_ranker(bag, log, None)
    with pytest.raises(SentembError, match="a path or a SentenceEncoder"):
        fit_ranker(3, log, judged)
    with pytest.raises(SentembError, match="has no titles of its own"):
        HybridRanker(bag, Recipe()).find(["a"], 1)
    with pytest.raises(SentembError, match="k is 0"):
        HybridRanker(bag, ALL, log).find(["a"], 0)
    with pytest.raises(SentembError, match="leave catalogue out"):
        fit_ranker(bag, log, judged, catalogue=["a tub"])
    with pytest.raises(SentembError, match="seed is -1"):
        fit_ranker(bag, log, judged, seed=-1)


def test_a_dev_set_that_no_part_can_rank_is_noted(bag, log):
    notes = []
    filler = [("red bath", f"red bath {k}") for k in range(20)]
    dev = ClickLog.from_pairs([("zzz qqq", "aaa www")])
    ranker = fit_ranker(bag, ClickLog.from_pairs(filler), dev, on_note=notes.append)
    assert ranker.recipe.parts == ("cosine",)
    assert "says nothing about the weights" in notes[-1]
    notes.clear()
    fit_ranker(bag, log, made_judged(log), on_note=notes.append)
    assert not any("says nothing" in one for one in notes)


# -- files ------------------------------------------------------------------------------------


@pytest.fixture
def folder(bag, log, tmp_path):
    bag.save_pretrained(tmp_path / "model")
    HybridRanker(bag, ALL, clicked_pairs(log), dev={"figures": {}}).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_ranker_scores_with_the_same_bits(folder, bag, log):
    ranker = HybridRanker(bag, ALL, log)
    opened = sentemb.load_ranker(folder)
    assert opened.recipe == ALL
    assert opened.titles == log.titles
    places, scores = ranker.find(["a red bath"], 9)
    found, of_found = opened.find(["a red bath"], 9)
    assert np.array_equal(places, found)
    assert np.array_equal(scores, of_found)
    assert isinstance(load_best(folder), HybridRanker)
    assert not isinstance(load_best(folder, use_ranker=False), HybridRanker)
    described = json.loads((folder / "ranker" / "ranker.json").read_text())
    assert described["recipe"] == ALL.as_dict()
    assert described["clicks"]["pairs"] == log.query_index.size


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_ranker_can_be_copied_and_pickled(folder, log, copied):
    ranker = load_ranker(folder, log.titles[3:], threads=1)
    fresh, (places, scores) = copied(ranker), ranker.find(["a red bath"], 9)
    for other in (fresh, copied(ranker)):  # before and after the parts are prepared
        found, of_found = other.find(["a red bath"], 9)
        assert np.array_equal(places, found)
        assert np.array_equal(scores, of_found)
        assert (other.recipe, other.dev) == (ranker.recipe, ranker.dev)


def test_equal_rankers_have_equal_files(folder, bag, log):
    before = (folder / "ranker" / "ranker.safetensors").read_bytes()
    HybridRanker(bag, ALL, clicked_pairs(log), dev={"figures": {}}).save(folder)
    assert (folder / "ranker" / "ranker.safetensors").read_bytes() == before


def test_a_ranker_that_reads_no_clicks_stores_none(folder, bag, log):
    HybridRanker(bag, Recipe(1, 0.3, click_weight=0), clicked_pairs(log)).save(folder)
    raw = (folder / "ranker" / "ranker.safetensors").read_bytes()
    assert log.queries[0].encode() not in raw
    assert load_ranker(folder, titles=log.titles).find(["red tub"], 2)[0].shape == (1, 2)


def test_a_ranker_with_equal_titles_is_refused(folder, bag):
    """Each click would count for all of them: the memory would grow by the square."""
    for more in ("Repair a Tap", " Repair a Tap"):
        clicks = log_of_pairs(
            ["tap", "drip"], ["Repair a Tap", more], *np.array([[0, 1], [0, 1]], np.int32)
        )
        HybridRanker(bag, Recipe(1.0, 0.3, 0.3), clicks).save(folder)
        with pytest.raises(SentembError, match="the ranker is damaged: it has a title twice"):
            load_ranker(folder).rank("tap")


def test_clicks_are_read_when_they_are_needed(folder, log):
    path = folder / "ranker" / "ranker.safetensors"
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    ranker = load_ranker(folder)
    assert ranker.recipe == ALL
    with pytest.raises(SentembError, match=r"the ranker is damaged.*sentemb tune"):
        ranker.find(["red tub"], 1)


def test_any_damage_gives_one_clear_line(folder):
    path = folder / "ranker" / "ranker.safetensors"
    raw = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = [raw[:0], raw[:9], raw[: len(raw) // 2], b"text" * 50]
    places = rng.integers(0, len(raw), 40).tolist()
    damaged += [raw[:k] + bytes([raw[k] ^ 0x10]) + raw[k + 1 :] for k in places]
    for one in damaged:
        path.write_bytes(one)
        with pytest.raises(SentembError) as caught:
            load_ranker(folder).find(["red tub"], 1)
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value) or str(folder) in str(caught.value)


def test_the_ranker_of_another_model_is_refused(folder, make_model, bag, log):
    other = make_model("bag", cells=4)
    ranker = folder / "ranker" / "ranker.safetensors"
    raw = ranker.read_bytes()
    other.save_pretrained(folder, force=True)
    assert not has_ranker(folder), "a new model has no ranker"
    ranker.parent.mkdir()
    ranker.write_bytes(raw)
    with pytest.raises(SentembError, match=r"fitted for another model.*sentemb tune.*--no-ranker"):
        load_ranker(folder)
    with pytest.raises(SentembError, match="another model"):
        load_best(folder)
    assert load_best(folder, use_ranker=False).dim == 4
    with pytest.raises(SentembError, match="holds another model than that of the ranker"):
        HybridRanker(bag, ALL, log).save(folder)


def test_a_model_without_a_ranker_says_how_to_get_one(folder, bag, tmp_path):
    bag.save_pretrained(folder, force=True)
    with pytest.raises(SentembError, match="no ranker; fit one with `sentemb tune"):
        load_ranker(folder)
    assert not isinstance(load_best(folder), HybridRanker)
    with pytest.raises(SentembError, match="there is no model"):
        load_ranker(tmp_path / "nothing")


def test_another_format_is_refused(folder, monkeypatch):
    from sentemb.ranking import ranker_files

    monkeypatch.setattr(ranker_files, "_FORMAT", 0)
    with pytest.raises(SentembError, match="format 1, and this version of sentemb reads format 0"):
        load_ranker(folder)


def test_a_copied_ranker_shares_what_is_prepared(bag, log):
    ranker = HybridRanker(bag, ALL, log)
    ranker.find(["red tub"], 1)
    assert ranker.alone("bm25")._prepared is ranker._prepared
    assert ranker.over(log.titles[:3])._prepared is None
    assert list(ranker.parts_alone()) == ["cosine alone", "BM25 alone", "memory alone"]
    assert HybridRanker(bag, Recipe()).parts_alone() == {}
    assert "0.7 BM25" in repr(ranker)
    assert "2 memory" in ranker._repr_html_()


def test_a_query_with_few_matches_does_not_have_the_title_of_the_query_before():
    """An empty place is the number -1, which counts as the last title of the query before."""
    titles = ["red hat", "blue coat", *(f"title{k}" for k in range(20)), "green bag"]
    clicks = ClickLog.from_pairs([("green bag", "green bag"), ("red", "blue coat")])
    with Workers(1) as workers:
        target = targets.ClicksTarget(clicks, titles, workers)
        lists = InvertedIndex(titles)
        found = target.of_lists(lists, target.words(lists))
    assert found["hit@1"] == 0.5 and found["mrr@10"] == 0.5
