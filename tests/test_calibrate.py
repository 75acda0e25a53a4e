"""Tuning the weight of BM25, and the confidence of first titles."""

import json
import math
from itertools import pairwise, product

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model
from hypothesis import given, settings
from hypothesis import strategies as st

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.best_graded import best_graded, read_clicks
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.data.judged_set import JudgedSet, write_judged_set
from sentemb.search.confidence import Confidence
from sentemb.search.tuning import (
    CLICK_WEIGHTS,
    MEMORY_WEIGHTS,
    WEIGHTS,
    calibrate,
    first_titles,
    score_bands,
    tune,
)

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


@pytest.fixture
def index():
    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    return Index.build(model, TITLES, bm25=True, threads=1)


@pytest.fixture
def folder(index, tmp_path):
    index.save(tmp_path / "index")
    write_click_log(held_out(), tmp_path / "dev.tsv")
    return tmp_path


# -- tune ------------------------------------------------------------------------------------------


def test_tune_chooses_the_best_of_its_table(index):
    clicks = held_out()
    found = tune(index, clicks, "hit@1")
    assert found.weights == WEIGHTS and found.means.shape == (len(WEIGHTS), 3)
    column = found.metrics.index("hit@1")
    chosen = WEIGHTS.index(found.weight)
    assert found.means[chosen, column] == found.means[:, column].max()
    assert (found.means[:chosen, column] < found.means[chosen, column]).all()
    assert found.weight > 0 and found.gain.low > 0
    assert found.gain.mean == pytest.approx(found.means[chosen, column] - found.means[0, column])
    assert (index.half().weight, index.half().lists.k1, index.half().lists.b) == (
        found.weight, found.k1, found.b,
    )  # fmt: skip
    # The table is what search finds.
    for weight, mean in zip(WEIGHTS, found.means[:, column], strict=True):
        hits = index.search(clicks.queries, 1, bm25_weight=weight)
        clicked = [clicks.titles[t] for t in clicks.title_index]
        right = [some[0].title == title for some, title in zip(hits, clicked, strict=True)]
        assert np.mean(right) == pytest.approx(mean)


def test_weight_0_where_words_mislead(index):
    """The model is right whatever it says; BM25 finds other titles."""
    builder = ClickLogBuilder()
    for query in held_out().queries:
        builder.add(query, index.search(query, 1, bm25_weight=0)[0].title)
    found = tune(index, builder.build())
    assert found.weight == 0 and found.gain.mean == 0 and found.means[0, 0] == 1


def clicked_before():
    """A log: every query of `held_out` with a third word was clicked for the same title."""
    builder = ClickLogBuilder()
    for query, title in zip(held_out().queries, held_out().titles, strict=True):
        builder.add(f"{query} extra", title)
    return builder.build()


def test_tune_chooses_the_weights_of_clicks_and_memory():
    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    log = clicked_before()
    index = Index.build(model, TITLES, bm25=True, log=log, threads=1)
    clicks = held_out()
    # Words mislead: the titles that were clicked are others than those that hold the words.
    rolled = np.roll(clicks.titles, 1).tolist()
    memorised = Index.build(
        model, TITLES, bm25=True, log=_log(clicks.queries, rolled, " extra"), threads=1
    )
    found = tune(index, clicks, "hit@1")
    assert found.click_weight in CLICK_WEIGHTS and found.memory_weights == MEMORY_WEIGHTS
    assert found.memory_means.shape == (len(MEMORY_WEIGHTS), 3)
    column = found.metrics.index("hit@1")
    recipe = index.recipe
    assert (recipe.bm25, recipe.memory, recipe.click_weight) == (
        found.weight, found.memory_weight, found.click_weight,
    )  # fmt: skip
    right = np.mean([
        hits[0].title == title
        for hits, title in zip(index.search(clicks.queries, 1), clicks.titles, strict=True)
    ])  # fmt: skip
    assert right == pytest.approx(max(found.means[:, column].max(), found.lexical[column]))
    assert right >= max(found.memory_means[:, column].max(), found.lexical[column])
    assert found.gain.mean > 0 and found._repr_html_().count("memory")
    told = tune(memorised, _log(clicks.queries, rolled), "hit@1")
    best = max(told.means[:, column].max(), told.lexical[column])
    assert told.memory_weight > 0 and told.gain.mean > 0
    assert best > told.memory_means[0, column] - 1e-9 and memorised.confidence is None


def _log(queries, titles, suffix=""):
    builder = ClickLogBuilder()
    for query, title in zip(queries, titles, strict=True):
        builder.add(query + suffix, title)
    return builder.build()


def test_bm25_alone_is_among_the_candidates_with_clicks(monkeypatch):
    from sentemb.search import tuning

    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    index = Index.build(model, TITLES, bm25=True, log=clicked_before(), threads=1)
    # No weight is large enough for BM25 to overrule an untrained model.
    monkeypatch.setattr(tuning, "WEIGHTS", (0.0, 0.01))
    monkeypatch.setattr(tuning, "MEMORY_WEIGHTS", (0.0, 0.01))
    found = tune(index, held_out(), "hit@1")
    column = found.metrics.index("hit@1")
    assert found.cosine_weight == 0 and found.lexical[column] > found.means[:, column].max()
    assert index.recipe.parts == ("bm25",) and index.cosine_weight == 0
    places, _ = index.find(held_out().queries, 1)
    lists, _ = index.half().lists.find(held_out().queries, 1)
    assert np.array_equal(places, lists)


def test_the_command_says_what_it_chose_for_clicks(tmp_path):
    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    index = Index.build(model, TITLES, bm25=True, log=clicked_before(), threads=1)
    index.save(tmp_path / "index")
    write_click_log(held_out(), tmp_path / "dev.tsv")
    told = json.loads(
        run("tune", tmp_path / "index", tmp_path / "dev.tsv", "--dry-run", "--json")[1]
    )
    assert [row["weight"] for row in told["memory_weights"]] == list(MEMORY_WEIGHTS)
    _, out, err = run("tune", tmp_path / "index", tmp_path / "dev.tsv")
    assert "clicked queries ×" in out and "\nmemory" in out and "instead of the cosine alone" in out
    opened = Index.open(tmp_path / "index", 1)
    assert f"the score is {opened.recipe}" in err
    assert opened.recipe.memory == told["memory_weight"] and opened.recipe.bm25 == told["weight"]


def test_tune_needs_bm25_and_a_metric(index):
    with pytest.raises(SentembError, match="give hit@k, mrr@k, recall@k or ndcg@k"):
        tune(index, held_out(), "precision")
    plain = Index.build(index.model, TITLES, threads=1)
    with pytest.raises(SentembError, match="the index has no BM25; make it again with --bm25"):
        tune(plain, held_out())


def test_the_command_tunes_the_index(folder):
    index, dev = folder / "index", folder / "dev.tsv"
    before = (folder / "index" / "index.json").read_text()
    told = json.loads(run("tune", index, dev, "--dry-run", "--json")[1])
    assert (folder / "index" / "index.json").read_text() == before
    assert [row["weight"] for row in told["weights"]] == list(WEIGHTS)
    _, out, err = run("tune", index, dev)
    assert f"{told['weight']:g} *" in out and "BM25 alone" in out and "60 held-out queries" in out
    assert f"searches with weight {told['weight']:g}" in err
    opened = Index.open(folder / "index", 1)
    assert opened.half().weight == told["weight"] and opened.half().lists.k1 == told["k1"]
    assert opened.search(held_out().queries) == _tuned().search(held_out().queries)


def _tuned():
    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    index = Index.build(model, TITLES, bm25=True, threads=1)
    tune(index, held_out())
    return index


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
    assert Confidence.of_json(json.loads(json.dumps(vars(found)))) == found


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
    index.set_bm25(0.9, 0.4, 1.0)
    scores, is_right = first_titles(index, clicks)
    hits = index.search(clicks.queries, 1)
    assert scores.tolist() == [some[0].score for some in hits]
    clicked = [clicks.titles[t] for t in clicks.title_index]
    assert is_right.tolist() == [h[0].title == t for h, t in zip(hits, clicked, strict=True)]
    with pytest.raises(SentembError, match="is not calibrated"):
        score_bands(index, clicks)
    calibrate(index, clicks)
    bands = score_bands(index, clicks)
    assert sum(band.n_queries for band in bands) == 60 and len(bands) == 6
    assert all(one.high <= other.low for one, other in pairwise(bands))
    assert np.mean([band.hit for band in bands]) == pytest.approx(is_right.mean())
    empty = Index.build(index.model, [], threads=1)
    with pytest.raises(SentembError, match="the index has no titles"):
        calibrate(empty, clicks)


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
    assert 0 < sure < 1
    _, _, err = run("tune", index, dev, "--metric", "hit@1")
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
        ([index], "Missing argument 'DEV'"),
        ([index, dev, "--threads", "0"], "threads is 0"),
    ]:
        code, _, err = run(command, *arguments)
        assert code in (1, 2) and message in err and "Traceback" not in err
