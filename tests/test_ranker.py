"""The ranker of a model: its recipe, how it is fitted, and its files."""

import copy
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from helpers import run_python, write_any_tensors
from reliability.indexes import VALUES, leaves, with_value
from test_ranking import ALL, made_log, made_ranker, made_texts

import sentemb
from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.data.seen_queries import in_log
from sentemb.data.splitting import split_log
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import in_tie_order
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.evaluation.metrics import JudgedScores
from sentemb.models.files.tensor_files import open_tensors
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking import base_fit, engine, fitting, parts
from sentemb.search.ranking.direct_fit import FEW_TYPED
from sentemb.search.ranking.fitting import fit_ranker
from sentemb.search.ranking.floor import Floor, Letters
from sentemb.search.ranking.opening import load_best, load_ranker
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.ranker_files import has_ranker
from sentemb.search.ranking.recipe import DIRECT, MODEL_ALONE, PARTS, Recipe
from sentemb.system.parallel import Workers
from sentemb.text.words import query_key
from sentemb.training.dev import DevPlan

# Values that are tried in each place of a description.
SAMPLE = 4


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


# -- scores -----------------------------------------------------------------------------------


def test_the_cosine_alone_ranks_as_the_model(bag, judged):
    pairs = judged.queries, judged.titles, np.repeat(np.arange(12), 6), judged.title_index
    found = HybridRanker(bag, MODEL_ALONE).score_pairs(*pairs)
    np.testing.assert_allclose(found, bag.score_pairs(*pairs), atol=1e-6)


def test_a_part_without_weight_is_not_computed(bag, log, monkeypatch):
    def fail(*arguments):
        raise AssertionError("computed")

    monkeypatch.setattr(parts.MemoryRows, "of", fail)
    made_ranker(bag, log, log.titles, Recipe({"cosine": 1, "bm25": 0.3})).find(["red tub"], 3)
    with pytest.raises(AssertionError, match="computed"):
        made_ranker(bag, log, log.titles, Recipe({"memory": 1})).find(["red tub"], 3)
    monkeypatch.setattr(parts.Lists, "of", fail)
    made_ranker(bag, log, log.titles, Recipe({"cosine": 1, "unclicked": 1})).find(["red"], 3)


def test_rank_gives_titles_by_number(bag, log):
    ranker = made_ranker(bag, log, log.titles)
    (place, score), *rest = ranker.rank("red tub", top_k=3)
    assert len(rest) == 2
    places, scores = ranker.find(["red tub"], 3)
    assert (place, score) == (places[0, 0], scores[0, 0])
    assert ranker.rank(["red tub"], ["bath"], 9)[0][0][0] == 0
    assert ranker.rank("red tub", []) == [] and ranker.rank([], ["bath"]) == []


def test_a_ranker_without_statistics_takes_those_of_its_clicked_titles(bag, log):
    recipe, clicks = Recipe({"bm25": 1.0}), ClickedQueries.of(log)
    found = HybridRanker(bag, recipe, clicks).find(["red tub"], 9)
    expected = made_ranker(bag, log, list(clicks.titles), recipe).find(["red tub"], 9)
    assert all(map(np.array_equal, found, expected))


def test_a_copied_ranker_shares_what_is_prepared(bag, log):
    ranker = made_ranker(bag, log, log.titles)
    ranker.find(["red tub"], 1)
    assert ranker.alone("bm25")._prepared is ranker._prepared
    assert ranker.over(log.titles[:3])._prepared is None
    names = ["cosine alone", "memory alone", "BM25 alone", "BM25 of clicked queries alone"]
    names += ["clicks of this query alone"]
    assert list(ranker.parts_alone()) == names
    assert HybridRanker(bag, MODEL_ALONE).parts_alone() == {}
    assert "0.7 BM25" in repr(ranker) and "2 memory" in ranker._repr_html_()


# -- recipes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"weights": {}}, "all weights"),
        ({"weights": {"cosine": 0.0}}, "all weights"),
        ({"weights": {"bm25": -1000.1}}, "the weight of BM25"),
        (
            {"weights": {"clicks": -0.1}},
            "the weight of clicks of this query is -0.1; give a number from 0",
        ),
        ({"weights": {"name": -0.1}}, "the weight of name"),
        ({"weights": {"memory": float("nan")}}, "the weight of memory"),
        ({"weights": {"cosine": "1"}}, "the weight of cosine"),
        ({"weights": {"colour": 1.0}}, "'colour' is not a part; choose from cosine, memory"),
        ({"weights": None}, "has no weights"),
        ({"k1": -0.1}, "k1"),
        ({"b": 2}, "b is 2"),
        ({"stem": 3}, "stem"),
        ({"colour": 3}, "recipe"),
    ],
)
def test_a_wrong_recipe_is_refused(wrong, message):
    with pytest.raises(SentembError, match=message):
        Recipe.of({**MODEL_ALONE.as_dict(), **wrong})


def test_a_recipe_says_what_it_needs():
    assert not MODEL_ALONE.needs_clicks and not MODEL_ALONE.reads_words
    for part in ("memory", "unclicked"):
        assert Recipe({part: 0.1}).needs_clicks and not Recipe({part: 0.1}).reads_words
    for part in ("bm25", "clicked_bm25"):
        assert Recipe({part: -0.1}).needs_clicks and Recipe({part: -0.1}).reads_words
    recipe = Recipe({"memory": 2, "cosine": -1, "bm25": 0.3, "clicked_bm25": -0.5}, stem="english")
    assert recipe.parts == ("cosine", "memory", "bm25", "clicked_bm25")
    assert str(recipe) == (
        "-cosine + 2 memory + 0.3 BM25 - 0.5 BM25 of clicked queries "
        "(BM25: k1 0.9, b 0.4, english stems)"
    )
    assert Recipe.of(recipe.as_dict()) == recipe
    assert str(recipe.alone("unclicked")) == "no clicks"


def test_a_recipe_without_letters_is_of_version_1_0():
    for weights in ({"bm25": 1.0}, {"cosine": 1.0, "clicked_bm25": -0.5}):
        for recipe in (Recipe(weights), Recipe(weights, letters=False)):
            assert Recipe.of(recipe.as_dict()) == recipe == recipe.weighted(weights)
        written = {name: x for name, x in Recipe(weights).as_dict().items() if name != "letters"}
        assert Recipe.of(written) == Recipe(weights, letters=False)
        assert Recipe.of(written).words("東京") == ["東京"]
        assert Recipe(weights).words("東京") == ["東", "東京", "京"]
    written = {"weights": {"cosine": 1.0}, "k1": 0.9, "b": 0.4, "stem": None}
    assert Recipe.of(written) == MODEL_ALONE
    with pytest.raises(SentembError, match="letters is 1; give True or False"):
        Recipe.of({**written, "letters": 1})


# -- fitting ----------------------------------------------------------------------------------


def dev_figures(ranker, right, titles):
    mean = evaluate_clicks(ranker.over(titles), right, titles, fitting.FIGURES).mean.tolist()
    return dict(zip(fitting.FIGURES, mean, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_on_dev_a_ranker_is_not_clearly_below_its_best_part(bag, seed):
    """Measured again here: figures are of all titles, and those that `fit_ranker` says."""
    train, held_out, _ = split_log(made_log(seed, n_queries=40), dev=0.3, test=0)
    titles = in_tie_order([*train.titles, *held_out.titles])
    ranker = fit_ranker(bag, train, held_out, threads=1)
    said = ranker.dev["figures"]
    assert said["sum"] == pytest.approx(dev_figures(ranker, held_out, titles), abs=1e-6)
    for part in said.keys() - {"sum"}:
        alone = ranker.alone(part).over(titles)
        assert said[part] == pytest.approx(dev_figures(alone, held_out, titles), abs=1e-6)
        each = [
            evaluate_clicks(one, held_out, titles).values[:, 1]
            for one in (alone, ranker.over(titles))
        ]
        ahead = each[0] - each[1]
        # The sum had its part for names later, which is worth a little.
        assert ahead.mean() <= ahead.std() / np.sqrt(ahead.size) + 0.02, part


def test_an_index_finds_the_clicks_of_a_renamed_title_by_the_id_of_the_catalogue(bag, tmp_path):
    """The catalogue of the training has the titles of its log, the index newer ones."""
    log = made_log(1, n_queries=40)
    train, held_out, _ = split_log(log, dev=0.3, test=0)
    ids = [f"p{number}" for number in range(len(log.titles))]
    catalogue = tmp_path / "titles.tsv"
    lines = zip(ids, log.titles, strict=True)
    catalogue.write_text("".join(f"{id}\t{title}\n" for id, title in lines))
    ranker = fit_ranker(bag, train, held_out, catalogue=catalogue, threads=1)
    renamed = [f"{title} new" for title in log.titles]
    index = sentemb.Index.build(ranker, renamed, ids, threads=1)
    by_id = np.diff(index.ranker.clicks.of_titles(renamed, ids).offsets)
    by_title = np.diff(ClickedQueries.of(train).of_titles(log.titles).offsets)
    assert by_id.sum() and np.array_equal(by_id, by_title)
    without = fit_ranker(bag, train, held_out, catalogue=log.titles, threads=1)
    lost = sentemb.Index.build(without, renamed, ids, threads=1).ranker.clicks
    assert not np.diff(lost.of_titles(renamed, ids).offsets).any()


@pytest.mark.parametrize("seed", range(3))
def test_on_a_judged_set_all_parts_are_measured(bag, seed):
    log = made_log(seed)
    figures = fit_ranker(bag, log, made_judged(log, seed + 9), threads=1).dev["figures"]
    assert {"sum", "cosine"} <= figures.keys() <= {"sum", *PARTS} - {"unclicked", *DIRECT}


def test_a_sum_below_its_best_part_is_not_the_ranker(bag, log, judged, monkeypatch):
    """Weights that rank the wrong way round."""
    real = base_fit.fit_weights

    def wrong(*arguments, **options):
        fit = real(*arguments, **options)
        return fit._replace(weights=-np.abs(fit.weights))

    monkeypatch.setattr(base_fit, "fit_weights", wrong)
    notes = []
    ranker = fit_ranker(bag, log, judged, threads=1, on_note=notes.append)
    part, *direct = ranker.recipe.parts
    assert ranker.recipe.weight(part) == 1 and direct == ["clicks", "name"]
    assert notes[0] == f"on dev {part} alone ranks higher than the sum, so that is the ranker"


def test_few_dev_queries_that_prefer_a_part_by_chance_do_not_choose_it(bag, log):
    """A part is the ranker beyond the standard error of the difference, not by anything."""
    first, second = np.array([[1.0, 0.25, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5]])[:, :, None]
    assert not fitting._is_ahead(first, second) and not fitting._is_ahead(second, first)
    assert fitting._is_ahead(second + 0.1, second)


def test_what_speaks_for_a_title_is_not_fitted_against_it(bag, monkeypatch):
    """Few dev queries would have memory and cosine negative."""
    for seed in range(6):
        train, held_out, _ = split_log(made_log(seed, n_queries=40), dev=0.1, test=0)
        recipe = fit_ranker(bag, train, held_out, threads=1).recipe
        assert all(recipe.weight(part) >= 0 for part in ("cosine", "memory", "bm25"))


def test_words_get_the_weight_where_words_decide(bag):
    """Clicked titles hold the words of the query and others do not; the model is untrained."""
    rng = np.random.default_rng(3)
    titles = made_texts(rng, 60)
    asked = [" ".join(rng.permutation(title.split())) for title in titles]
    log = ClickLog.from_pairs(
        (f"{query} xyz", title) for query, title in zip(asked, titles, strict=True)
    )
    dev = ClickLog.from_pairs(zip(asked, titles, strict=True))
    figures = fit_ranker(bag, log, dev, threads=1).dev["figures"]
    assert figures["sum"]["mrr@10"] > figures["cosine"]["mrr@10"] + 0.1


def test_the_candidates_do_not_decide_what_is_said_of_the_sum(bag, log, judged, monkeypatch):
    monkeypatch.setattr(base_fit, "CANDIDATES", 2)
    ranker = fit_ranker(bag, log, judged, threads=1)
    # The clicks of a judged set are kept, so what was seen is made again.
    clicks = ClickedQueries.of(log)
    clicks = clicks.without_queries(in_log(clicks.queries, judged.queries))
    again = HybridRanker(bag, ranker.recipe, clicks, ranker.fields, threads=1)
    expected = dev_figures(again, best_graded(judged), list(judged.titles))
    assert ranker.dev["figures"]["sum"] == pytest.approx(expected, abs=1e-6)


def test_the_result_does_not_depend_on_threads_or_portions(bag, log, monkeypatch):
    one = fit_ranker(bag, log, 0.3, threads=1)
    monkeypatch.setattr(engine, "_CELLS", 2 * len(log.titles))
    three = fit_ranker(bag, log, 0.3, threads=3)
    assert (one.recipe, one.dev) == (three.recipe, three.dev)


def test_a_stem_that_is_not_chosen_changes_nothing(bag, monkeypatch):
    rng = np.random.default_rng(2)
    # Each form of a verb is a thing by itself here, so plain words find it and stems do not.
    forms = [verb + end for verb in ("walk", "paint", "lift", "turn") for end in ("", "s", "ed")]
    titles = sorted({" ".join(rng.choice(forms, 3, replace=False)) for _ in range(80)})
    pairs = [(" ".join(rng.permutation(title.split())[:2]), title) for title in titles * 2]
    log, dev = ClickLog.from_pairs(pairs[: len(titles)]), ClickLog.from_pairs(pairs[len(titles) :])
    with_stems = fit_ranker(bag, log, dev, threads=1)
    assert with_stems.recipe.stem is None
    monkeypatch.setattr(fitting, "_stems", lambda note: [None])
    plain = fit_ranker(bag, log, dev, threads=1)
    assert (plain.recipe, plain.dev) == (with_stems.recipe, with_stems.dev)


@pytest.mark.parametrize(
    ("plain", "stems", "chosen"),
    [
        ([2.0] * 4, [1.0] * 4, "english"),
        ([2.0] * 4, [3.0] * 4, None),
        ([2.0] * 4, [2.0] * 4, None),
        ([2.0] * 4, [1.0, 3.5, 3.0, 1.5], "english"),  # behind by less than two standard errors
    ],
)
def test_stems_are_read_unless_plain_words_are_clearly_better(
    bag, log, judged, monkeypatch, plain, stems, chosen
):
    losses = iter([plain, stems])
    monkeypatch.setattr(base_fit, "losses_of", lambda *_: np.array(next(losses)))
    assert fit_ranker(bag, log, judged, threads=1).recipe.stem == chosen


FITTED = """
from helpers import made_up_model
from test_ranking import WORDS, made_log
import sentemb
model = made_up_model(("bag", {}), [" ".join(WORDS)], cells=6, dtype="float32")
model.save_pretrained(place)
sentemb.fit_ranker(model, made_log(), 0.3, catalogue=["red fix", "blue"] * 5).save(place)
"""


def test_every_process_makes_the_same_file(tmp_path):
    """Also one with another seed of hashes, which is drawn at its start."""
    exec(FITTED, {"place": tmp_path / "here"})
    there = f"import sys\nplace = sys.argv[1]\n{FITTED}"
    run_python(there, tmp_path / "there", check=True, PYTHONHASHSEED="77", PYTHONPATH="tests")
    files = [tmp_path / place / "ranker/ranker.safetensors" for place in ("here", "there")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_clicks_are_held_back_where_titles_have_none(bag, log, monkeypatch):
    """New titles have no clicks either; what the parts are worth without them is learned too."""
    # The weights as they are fitted, also where a part alone ranks higher.
    monkeypatch.setattr(
        fitting,
        "_chosen",
        lambda ranker, held_out, *_: (ranker.recipe, held_out.evaluate(ranker).values, {}),
    )
    n = len(log.titles)
    new = [f"{text} new" for text in made_texts(np.random.default_rng(8), 2 * n)]
    fits = [fit_ranker(bag, log, 0.3, catalogue=some, threads=1) for some in (None, new, new)]
    assert "unclicked" not in fits[0].recipe.weights and fits[0].dev["held_back"] == 0
    assert "unclicked" in fits[1].recipe.weights and fits[1].dev["held_back"] == 0.5
    assert (fits[1].recipe, fits[1].dev) == (fits[2].recipe, fits[2].dev)
    other = fit_ranker(bag, log, 0.3, catalogue=new, seed=1, threads=1)
    assert other.recipe != fits[1].recipe, "other titles are drawn"
    # Nothing is held back for good.
    assert all(fit.clicks.clicks.sum() == fits[0].clicks.clicks.sum() for fit in fits)
    # The share that is held back is that of the catalogue, if it is at least a tenth.
    known, _ = DevPlan.of(0.3).apply(log, print)
    clicked = len(set(known.title_index.tolist()))
    for count in (2, n // 2):
        fit = fit_ranker(bag, log, 0.3, catalogue=new[:count], threads=1)
        share = 1 - clicked / (n + count)
        assert fit.dev["held_back"] == (round(share, 4) if share >= 0.1 else 0), count


def test_titles_without_clicks_are_candidates_right_ones_and_wrong_ones(bag, log, monkeypatch):
    fits, fit_weights = [], base_fit.fit_weights

    def recorded(features, candidates, *arguments, **options):
        fits.append((features[:, -1].copy(), candidates.right > 0))
        return fit_weights(features, candidates, *arguments, **options)

    monkeypatch.setattr(base_fit, "fit_weights", recorded)
    new = [f"{text} new" for text in made_texts(np.random.default_rng(8), 2 * len(log.titles))]
    fit_ranker(bag, log, 0.3, catalogue=new, threads=1)
    assert fits
    for is_unclicked, is_right in fits:
        assert set(is_unclicked[is_right]) == set(is_unclicked[~is_right]) == {0, 1}


def test_titles_without_clicks_teach_where_few_others_do(bag, log):
    """A judged set of new titles: the log has no clicks on what is right."""
    judged = made_judged(log)
    new = replace(judged, titles=[f"{title} new" for title in judged.titles])
    known = len(judged.titles) // 2
    new.titles[:known] = judged.titles[:known]
    notes = []
    fit_ranker(bag, log, new, threads=1, on_note=notes.append)
    (note,) = [note for note in notes if "without clicks" in note]
    n_right = int((new.title_index[new.grade == 2] < known).sum())
    assert 0 < n_right < 12
    assert note.startswith(f"only {n_right} of 12 dev queries have a right title with clicks")
    notes.clear()
    fit_ranker(bag, log, judged, threads=1, on_note=notes.append)
    assert not any("without clicks" in note for note in notes)
    right = set(best_graded(judged).titles)
    new.titles[:] = [f"{title} new" if title in right else title for title in judged.titles]
    ranker = fit_ranker(bag, log, new, threads=1, on_note=notes.append)
    assert ranker.recipe.parts == ("cosine", "clicks", "name")
    assert any("no dev query has a right title with clicks" in note for note in notes)


def test_many_held_out_queries_are_sampled(bag, log, monkeypatch):
    monkeypatch.setattr(fitting, "MAX_QUERIES", 5)
    notes = []
    fits = [
        fit_ranker(bag, log, 0.3, seed=seed, threads=1, on_note=notes.append) for seed in (0, 0, 1)
    ]
    assert [one.dev["queries"] for one in fits] == [5, 5, 5]
    assert sum("dev queries, drawn by the seed" in note for note in notes) == 3
    figures = [one.dev["figures"]["cosine"] for one in fits]
    assert figures[0] == figures[1] != figures[2]


def test_the_ranker_learns_nothing_from_held_out_queries(bag, log):
    log = replace(log, clicks=np.ones_like(log.clicks))  # no single clicks are held out
    train, held_out, _ = split_log(log, dev=0.3, test=0)
    fits = [
        fit_ranker(bag, own, dev, threads=1)
        for dev, own in ((0.3, log), (held_out, log), (held_out, train))
    ]
    figures = [fit.dev["figures"]["cosine"] for fit in fits]
    assert figures[0] == figures[1] == figures[2]
    for fit, own in zip(fits, (log, log, train), strict=True):
        assert fit.recipe == fits[0].recipe
        assert {*map(query_key, fit.clicks.queries)} == {*map(query_key, own.queries)}
        assert fit.clicks.clicked.size == own.query_index.size


def test_the_ranker_learns_nothing_from_single_clicks_that_are_held_out(bag, log):
    thinned, dev = DevPlan.of(0.3).apply(log, print)
    assert thinned.clicks.sum() < split_log(log, dev=0.3, test=0)[0].clicks.sum()
    whole, known = (
        fit_ranker(bag, log, 0.3, threads=1),
        fit_ranker(bag, thinned, dev.clicks, catalogue=dev.titles, threads=1),
    )
    assert 0 < len(dev.typed.queries) < FEW_TYPED, "the weight of clicks is not fitted"
    assert whole.recipe == known.recipe and whole.dev == known.dev
    assert whole.clicks.clicks.sum() == log.clicks.sum()
    assert known.clicks.clicks.sum() == thinned.clicks.sum()


def test_clicks_of_dev_queries_do_not_flatter_the_ranker(bag, log):
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
    assert notes[0].startswith("the pairs of 20 dev queries that are also in the log are left out")
    # Afterwards they are clicks like all others.
    memory = HybridRanker(bag, Recipe({"memory": 1.0}), ranker.clicks)
    of_log = evaluate_model(memory, judged).mean[0]
    assert ranker.dev["figures"]["memory"]["hit@1"] < of_log - 0.2
    assert set(judged.queries) <= set(ranker.clicks.queries)


def test_a_fit_compares_each_query_of_the_log_with_dev_once(bag, log, monkeypatch):
    compared = []
    monkeypatch.setattr(
        "sentemb.data.seen_queries.query_key",
        lambda text: compared.append(text) or query_key(text),
    )
    fit_ranker(bag, log, 0.3, threads=1)
    assert sorted(compared) == sorted(log.queries)


def test_a_memory_that_is_kept_for_dev_ranks_as_the_one_that_is_read_for_the_cosine(bag, log):
    ranker, n = made_ranker(bag, log, log.titles), len(log.titles)
    catalogue, asked = ranker.catalogue(log.titles), ranker.asked(log.queries[:30])
    memory = catalogue.parts["memory"]
    kept = catalogue.parts | {"memory": base_fit._DevMemory(memory.memory, asked, n)}
    assert parts.bound_of_cosine(catalogue.parts, ALL) is memory
    assert parts.bound_of_cosine(kept, ALL) is None
    best, of_kept = (
        engine.best(each, ALL, asked, 5, catalogue.is_empty, Workers(1))
        for each in (catalogue.parts, kept)
    )
    assert best.titles.tolist() == of_kept.titles.tolist()
    assert best.scores.tolist() == of_kept.scores.tolist()


def test_a_log_of_held_out_queries_alone_leaves_the_titles(bag, log):
    ranker = fit_ranker(bag, log, log, threads=1)
    assert ranker.clicks.clicks.sum() == log.clicks.sum() and not ranker.recipe.weight("memory")
    assert set(ranker.dev["figures"]) <= {"sum", "cosine", "bm25"}


@pytest.mark.parametrize("tested", [(0.2, 3.0), (3.0, 0.2)])
def test_parameters_of_bm25_are_the_best_of_those_tried(bag, log, judged, monkeypatch, tested):
    tried = []
    real = base_fit.fit_weights

    def noted(*arguments, **options):
        tried.append(real(*arguments, **options))
        return tried[-1]

    monkeypatch.setattr(base_fit, "fit_weights", noted)
    monkeypatch.setattr(base_fit, "GRID", {"k1": tested})
    monkeypatch.setattr(fitting, "_stems", lambda note: [None])
    recipe = fit_ranker(bag, log, judged, threads=1).recipe
    assert recipe.k1 == tested[tried[1].loss < tried[0].loss]


def test_without_a_stemmer_words_are_plain(bag, log, judged, monkeypatch):
    real = fitting.words_of

    def missing(stem):
        if stem is not None:
            raise SentembError("the package Stemmer is not installed")
        return real(stem)

    monkeypatch.setattr(fitting, "words_of", missing)
    notes = []
    ranker = fit_ranker(bag, log, judged, threads=1, on_note=notes.append)
    assert ranker.recipe.stem is None
    assert notes[0] == (
        "the BM25 of the ranker reads plain words: the package Stemmer is not installed"
    )


def test_progress_ends_at_its_total(bag, log, judged):
    steps = []
    fit_ranker(bag, log, judged, threads=1, on_progress=lambda *step: steps.append(step))
    total = steps[0][1]
    assert steps == [(done, total) for done in range(1, total + 1)]


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


def test_wrong_input_is_refused(bag, log, judged):
    with pytest.raises(SentembError, match="give dev"):
        fit_ranker(bag, log, None)
    with pytest.raises(SentembError, match="a path or a SentenceEncoder"):
        fit_ranker(3, log, judged)
    with pytest.raises(SentembError, match="has no titles of its own"):
        HybridRanker(bag, MODEL_ALONE).find(["a"], 1)
    with pytest.raises(SentembError, match="k is 0"):
        made_ranker(bag, log, log.titles).find(["a"], 0)
    with pytest.raises(SentembError, match="leave catalogue out"):
        fit_ranker(bag, log, judged, catalogue=["a tub"])
    with pytest.raises(SentembError, match="seed is -1"):
        fit_ranker(bag, log, judged, seed=-1)


def test_a_dev_set_that_no_part_can_rank_is_noted(bag, log):
    notes = []
    filler = [("red bath", f"red bath {k}") for k in range(20)]
    dev = ClickLog.from_pairs([("zzz qqq", "aaa www")])
    ranker = fit_ranker(bag, ClickLog.from_pairs(filler), dev, on_note=notes.append)
    assert ranker.recipe.parts == ("cosine", "clicks", "name")
    assert "says nothing about the weights" in notes[-1]
    notes.clear()
    fit_ranker(bag, log, made_judged(log), on_note=notes.append)
    assert not any("says nothing" in one for one in notes)


# -- files ------------------------------------------------------------------------------------


@pytest.fixture
def folder(bag, log, tmp_path):
    bag.save_pretrained(tmp_path / "model")
    made_ranker(bag, log, log.titles).save(tmp_path / "model")
    return tmp_path / "model"


def test_a_saved_ranker_scores_with_the_same_bits(folder, bag, log):
    ranker, opened = made_ranker(bag, log, log.titles), sentemb.load_ranker(folder)
    assert opened.recipe == ALL
    assert opened.titles == list(ClickedQueries.of(log).titles)
    found, expected = (one.over(log.titles).find(["a red bath"], 9) for one in (opened, ranker))
    assert all(map(np.array_equal, found, expected))
    assert load_best(folder).recipe == ALL
    assert load_best(folder, cosine=True).recipe == MODEL_ALONE
    described = json.loads((folder / "ranker" / "ranker.json").read_text())
    assert described["recipe"] == ALL.as_dict()
    assert described["clicks"]["pairs"] == log.query_index.size


def test_clicks_by_id_come_back(bag, log, tmp_path):
    clicks = ClickedQueries.of(log).with_ids(log.titles[:5], [f"p{k}" for k in range(5)])
    bag.save_pretrained(tmp_path / "model")
    HybridRanker(bag, Recipe({"memory": 1.0}), clicks).save(tmp_path / "model")
    opened = load_ranker(tmp_path / "model").clicks
    for name in ("keys", "queries", "titles"):
        assert list(getattr(opened, name)) == list(getattr(clicks, name))
    for name in ("offsets", "clicked", "clicks", "product_of"):
        assert np.array_equal(getattr(opened, name), getattr(clicks, name))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_ranker_can_be_copied_and_pickled(folder, log, copied):
    ranker = load_ranker(folder, log.titles[3:], threads=1)
    fresh, expected = copied(ranker), ranker.find(["a red bath"], 9)
    for other in (fresh, copied(ranker)):  # before and after the parts are prepared
        assert all(map(np.array_equal, other.find(["a red bath"], 9), expected))
        assert (other.recipe, other.dev) == (ranker.recipe, ranker.dev)


def test_equal_rankers_have_equal_files(folder, bag, log):
    path = folder / "ranker" / "ranker.safetensors"
    before = path.read_bytes()
    made_ranker(bag, log, log.titles).save(folder)
    assert path.read_bytes() == before
    load_ranker(folder).save(folder)
    assert path.read_bytes() == before


def test_a_ranker_that_reads_no_clicks_stores_none(folder, bag, log):
    HybridRanker(bag, Recipe({"cosine": 2.0}), ClickedQueries.of(log)).save(folder)
    raw = (folder / "ranker" / "ranker.safetensors").read_bytes()
    assert log.queries[0].encode() not in raw and log.titles[0].encode() not in raw
    assert load_ranker(folder, titles=log.titles).find(["red tub"], 2)[0].shape == (1, 2)


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
    with pytest.raises(SentembError, match=r"fitted for another model.*sentemb tune.*--cosine"):
        load_ranker(folder)
    with pytest.raises(SentembError, match="another model"):
        load_best(folder)
    assert load_best(folder, cosine=True).model.dim == 4
    with pytest.raises(SentembError, match="holds another model than that of the ranker"):
        made_ranker(bag, log, log.titles).save(folder)


def test_a_model_without_a_ranker_says_how_to_get_one(folder, bag, tmp_path):
    bag.save_pretrained(folder, force=True)
    with pytest.raises(SentembError, match="no ranker; fit one with `sentemb tune"):
        load_ranker(folder)
    assert load_best(folder).recipe == MODEL_ALONE
    with pytest.raises(SentembError, match="there is no model"):
        load_ranker(tmp_path / "nothing")


def rewritten(path, change):
    """Let ``change`` another description be in a ranker's file, with checksums that fit."""
    with open_tensors(path) as file:
        arrays, told = {name: file[name] for name in file}, file.metadata
    write_any_tensors(path, arrays, change(told))


@pytest.mark.parametrize("number", [0, 2, "1", True, None])
def test_another_format_is_refused(folder, number):
    rewritten(folder / "ranker/ranker.safetensors", lambda told: told | {"format": number})
    with pytest.raises(SentembError, match="and this version of sentemb reads format 1"):
        load_ranker(folder)


@pytest.fixture(scope="module")
def tuned(bag, log):
    """With all that a file may have: dev figures and a floor."""
    dev = {"queries": 3, "held_back": 0.1, "figures": {"sum": {"mrr@10": 0.5}}}
    ranker = made_ranker(bag, log, log.titles)
    floor = Floor((0.5, 1.0, 2.0, 0.1, 0.1, 0.3), -1.0, Letters.of(ranker.fields.whole))
    return HybridRanker(bag, ALL, ranker.clicks, ranker.fields, dev=dev, floor=floor, threads=1)


def use_all(ranker):
    ranker.rank("a red tub")
    ranker.explain("a red tub", "red bath")
    ranker.is_below_floor(["a red tub"], ranker.ranked(["a red tub"], 1))
    return repr(ranker), ranker._repr_html_(), ranker.dev


def test_another_value_in_the_description_is_refused_or_harmless(tuned, bag, tmp_path):
    """Some of the values in every place."""
    bag.save_pretrained(tmp_path)
    tuned.save(tmp_path)
    path = tmp_path / "ranker/ranker.safetensors"
    whole, draw = path.read_bytes(), np.random.default_rng(0)
    with open_tensors(path) as file:
        places = [*leaves(file.metadata)]
    for place in places:
        for number in draw.permutation(len(VALUES))[:SAMPLE]:
            value = VALUES[number]
            rewritten(path, lambda told: with_value(told, place, value))  # noqa: B023
            try:
                use_all(load_ranker(tmp_path, threads=1))
            except SentembError as error:
                assert "\n" not in str(error)  # noqa: PT017
            except Exception as error:
                raise AssertionError(f"{place} {value!r}") from error
            path.write_bytes(whole)
