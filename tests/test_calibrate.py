"""Tuning the ranker of an index, and the confidence of first titles."""

import copy
import json
import math
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ranking import made_ranker

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.best_graded import best_graded, read_clicks
from sentemb.data.click_log import ClickLog, ClickLogBuilder, write_click_log
from sentemb.data.judged_set import JudgedSet, write_judged_set
from sentemb.search.confidence import Confidence
from sentemb.search.index_tuning import calibrate, first_titles, score_bands, tune
from sentemb.search.ranking.recipe import Recipe

WORDS = [a + b + c + "a" for a, b, c in product("krst", "aiou", "bdf")]


def run(*arguments):
    """Exit code, standard output and standard error of a command."""
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    return result.exit_code, result.stdout, result.stderr


def made_up_titles():
    rng = np.random.default_rng(0)
    return list(dict.fromkeys(" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(120)))


TITLES = made_up_titles()


def held_out(n=60, seed=1):
    """Queries of two words of the clicked title: BM25 finds it, an untrained model hardly ever."""
    rng = np.random.default_rng(seed)
    builder = ClickLogBuilder()
    asked = set()
    for place in rng.permutation(len(TITLES)):
        first, second, _ = TITLES[place].split()
        if len(asked) < n and (second, first) not in asked:
            asked.add((second, first))
            builder.add(f"{second} {first}", TITLES[place])
    return builder.build()


def clicked_before():
    """A log: every query of `held_out` with a third word was clicked for the same title."""
    held = held_out()
    return ClickLog.from_pairs(
        (f"{query} extra", title) for query, title in zip(held.queries, held.titles, strict=True)
    )


@pytest.fixture
def index():
    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    recipe = Recipe({"cosine": 1.0, "bm25": 1.0})
    return Index.build(made_ranker(model, clicked_before(), TITLES, recipe), TITLES, threads=1)


@pytest.fixture
def folder(index, tmp_path):
    index.save(tmp_path / "index")
    write_click_log(held_out(), tmp_path / "dev.tsv")
    return tmp_path


# -- tune ------------------------------------------------------------------------------------------


def share_right(index, clicks):
    hits = index.search(clicks.queries, 1, everything=True)
    clicked = [clicks.titles[t] for t in clicks.title_index]
    return np.mean([some[0].title == title for some, title in zip(hits, clicked, strict=True)])


def test_tune_finds_what_words_and_clicks_say(index):
    clicks = held_out()
    ranker = tune(index, clicks)
    assert share_right(index, clicks) == pytest.approx(ranker.dev["figures"]["sum"]["hit@1"])
    cosine = Index.build(index.model, TITLES, threads=1)
    assert share_right(index, clicks) > share_right(cosine, clicks) + 0.5
    assert ranker.dev["figures"]["cosine"]["hit@1"] == pytest.approx(share_right(cosine, clicks))


def test_words_that_mislead_get_no_weight(index):
    """The model is right whatever it says; BM25 finds other titles."""
    model = Index.build(index.model, TITLES, threads=1)
    clicks = ClickLog.from_pairs((q, model.search(q, 1)[0].title) for q in held_out().queries)
    ranker = tune(model, clicks)
    assert ranker.dev["figures"]["sum"]["hit@1"] == share_right(model, clicks) == 1
    assert ranker.recipe.weight("cosine") > 10 * abs(ranker.recipe.weight("bm25"))


def test_clicks_overrule_words(index):
    """The titles that were clicked are others than those that hold the words."""
    held = held_out()
    pairs = list(zip(held.queries, np.roll(held.titles, 1).tolist(), strict=True))
    log = ClickLog.from_pairs((f"{query} extra", title) for query, title in pairs)
    clicks = ClickLog.from_pairs(pairs)
    before = share_right(index, clicks)
    own, without = copy.copy(index), copy.copy(index)
    tune(own, clicks, log)
    tune(without, clicks, ClickLog.from_pairs([("something else", "elsewhere")]))
    assert share_right(own, clicks) > max(before, share_right(without, clicks)) + 0.3


def test_the_command_tunes_the_index(folder):
    index, dev = folder / "index", folder / "dev.tsv"
    before = (index / "index.json").read_text()
    told = json.loads(run("tune", index, dev, "--dry-run", "--json")[1])
    assert (index / "index.json").read_text() == before
    code, _, err = run("tune", index, dev)
    assert code == 0, err
    opened = Index.open(index, 1)
    assert opened.recipe.as_dict() == told["recipe"] and opened.ranker.dev == told["dev"]
    assert share_right(opened, held_out()) == pytest.approx(told["dev"]["figures"]["sum"]["hit@1"])


# -- calibrate -------------------------------------------------------------------------------------


def likelihood(a, b, s, y):
    p = 1 / (1 + np.exp(-(a + b * s)))
    return np.sum(y * np.log(p) + (1 - y) * np.log(1 - p))


def test_the_fit_has_the_greatest_likelihood():
    rng = np.random.default_rng(3)
    s = rng.normal(0.6, 0.2, 3_000)
    y = rng.random(3_000) < 1 / (1 + np.exp(3 - 5 * s))
    found = Confidence.fit(s, y)
    assert found.intercept == pytest.approx(-3, abs=0.4) and found.slope == pytest.approx(
        5, abs=0.6
    )
    best = likelihood(found.intercept, found.slope, s, y)
    for a, b in [(0.1, 0), (-0.1, 0), (0, 0.2), (0, -0.2), (0.1, -0.15)]:
        assert likelihood(found.intercept + a, found.slope + b, s, y) < best
    assert found(s).mean() == pytest.approx(y.mean(), abs=1e-6)
    # Queries that the fit has not seen: close to the noise of the outcomes themselves.
    noise = np.mean(found(s) * (1 - found(s)))
    assert found.brier == pytest.approx(noise, abs=5e-3)
    assert found.base_brier == pytest.approx(np.var(y)) and found.brier < found.base_brier


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-2, 4, width=32), st.booleans()), min_size=20, max_size=60).filter(
        lambda pairs: len({right for _, right in pairs}) == 2
    )
)
def test_any_scores_give_a_rising_share(pairs):
    scores, is_right = map(np.array, zip(*pairs, strict=True))
    found = Confidence.fit(scores, is_right)
    assert math.isfinite(found.intercept) and 0 <= found.slope < math.inf
    values = found(np.linspace(-10, 10, 50))
    assert (np.diff(values) >= 0).all() and values.min() >= 0 and values.max() <= 1
    assert Confidence.of_json(json.loads(json.dumps(found.as_dict()))) == found


def test_scores_without_meaning_give_the_share_of_right_ones():
    found = Confidence.fit(np.arange(40.0), np.arange(40) < 20)
    assert found.slope == 0 and found(3.0) == pytest.approx(0.5)
    assert Confidence.fit(np.ones(40), np.arange(40) < 10)(7.0) == pytest.approx(10.5 / 41)


@pytest.mark.parametrize(
    ("scores", "right", "message"),
    [
        (np.ones(19), np.ones(19), "found for 19 held-out queries; give at least 20"),
        (np.ones(30), np.ones(30), "a clicked one for every held-out query"),
        (np.ones(30), np.zeros(30), "a clicked one for no held-out query"),
    ],
)
def test_what_cannot_be_calibrated(scores, right, message):
    with pytest.raises(SentembError, match=message):
        Confidence.fit(scores, right)


def test_first_titles_and_bands(index):
    clicks = held_out()
    scores, is_right = first_titles(index, clicks)
    hits = index.search(clicks.queries, 1)
    assert scores.tolist() == [some[0].score for some in hits]
    clicked = [clicks.titles[t] for t in clicks.title_index]
    assert is_right.tolist() == [h[0].title == t for h, t in zip(hits, clicked, strict=True)]
    with pytest.raises(SentembError, match="is not calibrated"):
        score_bands(index, clicks)
    calibrate(index, clicks)
    (bands,) = score_bands(index, clicks).values()
    assert sum(band.n_queries for band in bands) == 60 and len(bands) == 6
    assert all(one.high <= other.low for one, other in pairwise(bands))
    assert np.mean([band.hit for band in bands]) == pytest.approx(is_right.mean())
    empty = Index.build(index.model, [], threads=1)
    with pytest.raises(SentembError, match="the index has no titles"):
        calibrate(empty, clicks)


def test_each_kind_of_query_has_a_confidence_of_its_own():
    """Queries with clicks are nearly always right, others by their scores."""
    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    typed = [(f"thing {place}", title, 9) for place, title in enumerate(TITLES)] * 2
    log = ClickLog.from_pairs(typed)
    recipe = Recipe({"cosine": 1.0, "bm25": 1.0, "clicks": 2.0})
    index = Index.build(made_ranker(model, log, TITLES, recipe), TITLES, threads=1)
    never = held_out()
    later = [(f"THING {place}", TITLES[place if place % 9 else -1]) for place in range(60)]
    pairs = [
        (never.queries[q], never.titles[t])
        for q, t in zip(never.query_index, never.title_index, strict=True)
    ]
    notes = []
    fitted = calibrate(index, ClickLog.from_pairs([*pairs, *later]), notes.append)
    alone = Index.build(made_ranker(model, log, TITLES, recipe), TITLES, threads=1)
    assert replace(fitted, typed=None) == calibrate(alone, never)
    assert fitted.typed.n_queries == 60 and fitted.n_queries == len(never.queries)
    assert not fitted.typed.is_better and "a constant is as good" in notes[-1]
    assert Confidence.of_json(json.loads(json.dumps(fitted.as_dict()))) == fitted
    first = index.search("thing 3", 1)[0]
    assert first.title == TITLES[3] and first.confidence is None
    assert index.search("thing 3", 1, min_confidence=0.5) == [first]
    assert not index.search("thing 3", 1, min_confidence=0.99)
    bands = score_bands(index, ClickLog.from_pairs([*pairs, *later]))
    assert [sum(band.n_queries for band in of_kind) for of_kind in bands.values()] == [60, 60]
    # Clicks that are all in the log are not held out.
    notes.clear()
    again = calibrate(index, ClickLog.from_pairs([*pairs, *typed]), notes.append)
    assert again.typed is None and "the log has all their clicks" in notes[0]
    with pytest.raises(SentembError, match="the log has all clicks of these queries"):
        calibrate(index, log)
    assert index.search("thing 3", 1, min_confidence=0.99)[0].title == TITLES[3], "not calibrated"


def test_the_command_calibrates_the_index(folder):
    index, dev = folder / "index", folder / "dev.tsv"
    told = json.loads(run("calibrate", index, dev, "--json", "--dry-run")[1])
    assert Index.open(folder / "index", 1).confidence is None
    _, out, err = run("calibrate", index, dev)
    assert "Brier score" in out and "calibrated with 60 held-out queries" in err
    opened = Index.open(folder / "index", 1)
    assert opened.confidence.slope == told["slope"]
    assert len(told["bands"]) == 6
    sure = opened.search(held_out().queries[0], 1)[0].confidence
    # Shown where it says more than a constant.
    assert (sure is not None and 0 < sure < 1) == (told["brier"] < told["base_brier"])
    _, _, err = run("tune", index, dev)
    assert "the calibration was for other scores and is gone" in err
    assert Index.open(folder / "index", 1).confidence is None


# -- held-out clicks -------------------------------------------------------------------------------


def test_best_titles_of_a_judged_set_are_clicks(tmp_path):
    judged = JudgedSet(
        ["q1", "q2", "q3"],
        ["one", "two", "three"],
        ["a", "b", "c"],
        ["A", "B", "C"],
        np.array([0, 3, 5, 6]),
        np.array([0, 1, 2, 0, 1, 2], np.int32),
        np.array([1, 2, 2, 0, -1, 1], np.int32),
    )
    write_judged_set(judged, tmp_path / "dev")
    clicks = read_clicks(tmp_path / "dev")
    pairs = zip(clicks.query_index, clicks.title_index, strict=True)
    assert [(clicks.queries[q], clicks.titles[t]) for q, t in pairs] == [
        ("one", "B"), ("one", "C"), ("three", "C"),
    ]  # fmt: skip
    write_click_log(clicks, tmp_path / "dev.tsv")
    assert read_clicks(tmp_path / "dev.tsv").queries == ["one", "three"]
    none = JudgedSet(
        *(["q1"], ["one"], ["a"], ["A"], np.array([0, 1])),
        *(np.zeros(1, np.int32), np.zeros(1, np.int32)),
    )
    with pytest.raises(SentembError, match="no grade above 0"):
        best_graded(none)


@pytest.mark.parametrize("command", ["tune", "calibrate"])
def test_wrong_input_of_the_commands(folder, command):
    index, dev = folder / "index", folder / "dev.tsv"
    for arguments, message in [
        ([index, folder / "nowhere"], "no such file or folder"),
        ([folder, dev], "nor a model" if command == "tune" else "no index here"),
        ([index, index], "queries.tsv"),
        ([index], "Missing argument 'DEV'" if command == "tune" else "give either DEV or --record"),
    ]:
        code, _, err = run(command, *arguments)
        assert code in (1, 2) and message in err and "Traceback" not in err


@pytest.mark.parametrize("seed", range(5))
def test_another_order_of_summation_gives_the_same_bits(seed):
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=600)
    is_right = rng.random(600) < 1 / (1 + np.exp(-2 * scores))
    fitted = Confidence.fit(scores, is_right)
    # Rolled by a multiple of the parts of the cross-validation, so that each keeps its queries.
    assert Confidence.fit(np.roll(scores, 60), np.roll(is_right, 60)) == fitted
