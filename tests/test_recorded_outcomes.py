"""An index measured and calibrated by recorded searches."""

import json
import shutil

import numpy as np
import pytest
from helpers import made_up_model
from test_calibrate import TITLES, held_out, run
from test_ranking import made_ranker

from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import EXPONENT
from sentemb.data.recorded_searches import RecordedSearch, read_searches
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.search.confidence import Confidence
from sentemb.search.index_tuning import calibrate, score_bands
from sentemb.search.ranking.recipe import Recipe
from sentemb.search.recorded_outcomes import evaluate_record

TYPED = [(f"thing {place}", title, 9) for place, title in enumerate(TITLES[:60])]


@pytest.fixture(scope="module")
def index():
    model = made_up_model(("bag", {}), TITLES, cells=8, dtype=np.float32)
    recipe = Recipe({"cosine": 1.0, "bm25": 1.0, "clicks": 2.0})
    ranker = made_ranker(model, ClickLog.from_pairs(TYPED), TITLES, recipe)
    return Index.build(ranker, TITLES, threads=1)


def searched(index, n=2000, seed=0, exponent=EXPONENT):
    """Searches that the index answered: right titles are clicked by half of those who look."""
    rng = np.random.default_rng(seed)
    held = held_out()
    right = dict(zip(held.queries, (held.titles[t] for t in held.title_index), strict=True))
    right |= {query: title for query, title, _ in TYPED}
    queries = list(right)
    shown = index.search(queries, 5)
    searches = []
    for q in rng.choice(len(queries), n, p=rng.dirichlet(np.ones(len(queries)))).tolist():
        hits = shown[q]
        looks = rng.random(len(hits)) < np.arange(1, len(hits) + 1) ** -exponent
        clicked = [
            hit.id
            for hit, does_look in zip(hits, looks, strict=True)
            if does_look and rng.random() < (0.5 if hit.title == right[queries[q]] else 0.02)
        ]
        positions = {hit.id: position for position, hit in enumerate(hits, 1)}
        searches.append(RecordedSearch(queries[q], positions, frozenset(clicked)))
    return searches


def first_clicked(searches):
    return np.mean([any(search.positions[id] == 1 for id in search.clicked) for search in searches])


def write(path, searches, titles):
    """A record of searches."""
    record = SearchRecord(path)
    shown = [[(id, titles[id]) for id in search.positions] for search in searches]
    names = record.add_searches(
        Searched(search.query, results, None if results else "nothing", 1.0)
        for search, results in zip(searches, shown, strict=True)
    )
    for name, search in zip(names, searches, strict=True):
        for id in search.clicked:
            assert record.add_click(name, id)
    record.close()


def titles_of(index):
    return dict(zip(index.ids, index.titles, strict=True))


def test_searches_are_read_once_with_all_their_clicks(index, tmp_path):
    searches = [*searched(index, 30), RecordedSearch("nothing there", {}, frozenset())]
    path, copy = tmp_path / "searches.sqlite", tmp_path / "copy.sqlite"
    write(path, searches, titles_of(index))
    assert read_searches([path]) == searches
    shutil.copy(path, copy)
    assert read_searches([path, copy]) == searches
    record = SearchRecord(path)
    (name,) = record.add_searches([Searched("more", [("3", "x")], None, 1.0, first=11)])
    record.add_click(name, "3")
    assert read_searches([path, copy]) == searches, "a later page is no search of its own"
    assert read_searches([path], since=1e12) == []
    with pytest.raises(SentembError, match="not a record of searches"):
        (tmp_path / "other").write_text("x")
        read_searches([tmp_path / "other"])


def test_the_confidence_is_the_share_of_searches_whose_first_title_is_clicked(index):
    searches = searched(index)
    fitted = calibrate(index, searches)
    later = searched(index, seed=1)
    typed = {query for query, _, _ in TYPED}
    for kind, function in ((False, fitted), (True, fitted.typed)):
        of_kind = [search for search in later if (search.query in typed) == kind]
        ranked = index.ranked([search.query for search in of_kind], 1)
        stated = function(ranked.scores[:, 0])
        assert stated.mean() == pytest.approx(first_clicked(of_kind), abs=0.05)
    clicks = ClickLog.from_pairs(
        (search.query, titles_of(index)[id]) for search in searches for id in search.clicked
    )
    scores = index.ranked(held_out().queries, 1).scores[:, 0]
    assert calibrate(index, clicks)(scores).mean() > fitted(scores).mean() + 0.2, "far too high"
    calibrate(index, searches)
    bands = score_bands(index, searches)
    assert bands.keys() == {False, True} and len(bands[False]) == 6


def test_a_title_counts_where_it_was_shown(index):
    """Users look less often at lower positions, and a title that was not shown says nothing."""
    first = {query: index.search(query, 1)[0].id for query, _, _ in TYPED}
    rng = np.random.default_rng(0)
    searches, positions = [], (1, 3, 8)
    for _ in range(6000):
        query = TYPED[int(rng.integers(len(TYPED)))][0]
        position = int(rng.choice(positions))
        is_clicked = rng.random() < 0.6 * position**-EXPONENT
        clicked = frozenset([first[query]] if is_clicked else [])
        searches.append(RecordedSearch(query, {first[query]: position}, clicked))
    others = [RecordedSearch(query, {"none": 1}, frozenset(["none"])) for query, _, _ in TYPED]
    (outcome,) = evaluate_record(index, [*searches, *others]).outcomes
    assert outcome.share == pytest.approx(0.6, abs=0.03)
    assert (outcome.searches, outcome.shown) == (6060, 6000)
    notes = []
    fitted = calibrate(index, [*searches, *others], notes.append).typed
    assert fitted(0.0) == pytest.approx(0.6, abs=0.04) and "60 of 6,060 searches" in notes[0]


def test_shares_of_searches_are_fitted_like_the_searches_one_by_one():
    rng = np.random.default_rng(0)
    scores, n = rng.normal(size=400), rng.integers(1, 9, 400)
    clicks = rng.binomial(n, 1 / (1 + np.exp(-2 * scores)))
    together = Confidence.fit(scores, clicks / n, n)
    outcomes = [np.arange(k) < c for k, c in zip(n, clicks, strict=True)]
    one_by_one = Confidence.fit(np.repeat(scores, n), np.concatenate(outcomes))
    assert together.intercept == pytest.approx(one_by_one.intercept, rel=1e-3, abs=1e-3)
    assert together.slope == pytest.approx(one_by_one.slope, rel=1e-3)
    assert together.brier == pytest.approx(one_by_one.brier, abs=2e-3)
    assert together.base_brier == pytest.approx(one_by_one.base_brier, abs=1e-6)


def test_what_an_index_has_the_clicks_of_is_not_held_out(index):
    searches = searched(index)
    names = titles_of(index)
    log = ClickLog.from_pairs(
        (search.query, names[id]) for search in searches for id in search.clicked
    )
    has_all = Index.build(made_ranker(index.model, log, TITLES, index.recipe), TITLES, threads=1)
    assert not evaluate_record(index, searches).is_circular
    found = evaluate_record(has_all, searches)
    assert found.is_circular and "its figures are circular" in str(found)
    with pytest.raises(SentembError, match="they are not held out; give a record, or --since"):
        calibrate(has_all, searches)
    calibrate(has_all, [*searches, *searched(index, seed=2)])
    with pytest.raises(SentembError, match="no searches"):
        evaluate_record(index, [])
    with pytest.raises(SentembError, match="the index has no titles"):
        evaluate_record(Index.build(index.model, []), searches)


def test_the_commands(index, tmp_path):
    folder, path = tmp_path / "index", tmp_path / "searches.sqlite"
    index.save(folder)
    searches = [*searched(index, 800), RecordedSearch("nothing there", {}, frozenset())]
    write(path, searches, titles_of(index))
    code, out, err = run("evaluate", folder, "--record", path)
    assert code == 0, err
    assert out == f"{evaluate_record(index, searches)}\n"
    told = json.loads(run("evaluate", folder, "--record", path, "--json")[1])
    assert not told["is_circular"] and [kind["kind"] for kind in told["kinds"]] == [
        "all", "never typed before", "in the log"
    ]  # fmt: skip
    every = told["kinds"][0]
    assert every["searches"] == 801
    assert every["first_clicked"] == pytest.approx(first_clicked(searches))
    code, out, err = run("calibrate", folder, "--record", path, "--record", path)
    assert code == 0 and "held-out queries" in err and "Brier score" in out
    assert Index.open(folder).confidence == calibrate(index, searches)
    for arguments, message in [
        (["evaluate", folder], "give either JUDGED|CLICKS|LABELLED or --record"),
        (["evaluate", folder, path, "--record", path], "give either"),
        (["evaluate", folder, "--record", path, "--labels"], "--labels"),
        (["calibrate", folder], "give either DEV or --record"),
        (["calibrate", folder, path, "--record", path], "give either DEV or --record"),
        (["calibrate", folder, "--record", path, "--since", "2999-01-01"], "no searches"),
        (["calibrate", folder, "--record", folder / "index.json"], "not a record"),
    ]:
        code, _, err = run(*arguments)
        assert code in (1, 2) and message in err and "Traceback" not in err, err
