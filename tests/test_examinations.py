"""Clicks by how often titles were looked at: what a record says, and how it ranks."""

import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model
from hypothesis import given
from hypothesis import strategies as st

import sentemb
from sentemb import Index, SentembError, load_ranker
from sentemb.cli import main
from sentemb.data.click_log import ClickLog, read_click_log, write_click_log
from sentemb.data.examinations import EXPONENT, Examinations, Shown, read_examinations
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.data.simulation import example_shop
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.index_tuning import serve_clicks, tune
from sentemb.search.ranking import fitting
from sentemb.search.ranking.direct_fit import OF_EXAMINATIONS, with_examinations
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import CLICKS, EXAMINED, Recipe

TITLES = ["red hat", "red shoe", "blue hat", "green tea", "tea pot", "red tea", "hat box"]
IDS = [f"p{number}" for number in range(len(TITLES))]
QUERIES = ["red", "Hat", "tea pot"]
WEIGHTS = {"cosine": 3.0, "memory": 1.0, "bm25": 0.5, "clicked_bm25": -0.3, "unclicked": 0.2}
RECIPE = Recipe(WEIGHTS | {"name": 1.0, "clicks": 2.0, "examined": 2.0})


@pytest.fixture(scope="module")
def bag():
    return made_up_model(("bag", {}), TITLES, cells=6, dtype=np.float32)


def written(path, searches):
    """A record of searches: (query, numbers of the shown titles, positions clicked)."""
    record = SearchRecord(path)
    shown = [
        Searched(query, [(IDS[t], TITLES[t]) for t in titles], None, 1.0)
        for query, titles, _ in searches
    ]
    for name, (_, titles, clicked) in zip(record.add_searches(shown), searches, strict=True):
        for position in clicked:
            record.add_click(name, IDS[titles[position - 1]])
    record.close()
    return path


def times_of(examinations):
    pairs = zip(examinations.query_index, examinations.product_index, strict=True)
    return {
        (examinations.queries[q], examinations.ids[p]): time
        for (q, p), time in zip(pairs, examinations.times, strict=True)
    }


def test_a_place_is_looked_at_less_the_lower_it_is(tmp_path):
    searches = [("red", [0, 1, 5], [1]), ("RED!", [1, 0], []), ("tea", [3], [1])]
    first = written(tmp_path / "a.sqlite", searches)
    found = times_of(read_examinations([first]))
    expected = defaultdict(float)
    for query, titles, _ in searches:
        for position, t in enumerate(titles, 1):
            expected[query.lower().strip("!"), IDS[t]] += position**-EXPONENT
    assert found == pytest.approx(expected)
    # A search that is in two records is one search.
    more = written(tmp_path / "b.sqlite", [("tea", [4], [])])
    both = read_examinations([first, more, first])
    assert times_of(both) == pytest.approx({**expected, ("tea", "p4"): 1.0})
    left = times_of(both.without_queries(["Tea"]))
    assert left.keys() == {pair for pair in expected if pair[0] == "red"}
    assert not read_examinations([]).times.size
    (tmp_path / "text").write_text("no record")
    with pytest.raises(SentembError, match="text"):
        read_examinations([tmp_path / "text"])


def test_searches_can_be_left_out_of_the_looks(tmp_path):
    searches = [("red", [0, 1, 5], [1]), ("RED!", [1, 0], []), ("tea", [3], [1])]
    every = read_examinations([written(tmp_path / "a.sqlite", searches)])
    for left_out in range(4):
        of_rest = written(tmp_path / f"{left_out}.sqlite", searches[left_out:])
        judged = [
            RecordedSearch(query, {IDS[t]: place for place, t in enumerate(titles, 1)}, frozenset())
            for query, titles, _ in searches[:left_out]
        ]
        expected = times_of(read_examinations([of_rest]))
        assert times_of(every.without_searches(judged)) == pytest.approx(expected)


def ranker_of(bag, clicks, looked, recipe=RECIPE):
    """A ranker for {(query, title): clicks} and {(query, title): examinations}."""
    log = ClickLog.from_pairs((q, TITLES[t], n) for (q, t), n in clicks.items())
    shown = [Shown(q, IDS[t], TITLES[t], 1, n) for (q, t), n in looked.items()]
    known = replace(ClickedQueries.of(log), examinations=Examinations.of(shown))
    return HybridRanker(bag, recipe, known, threads=1)


PAIRS = st.dictionaries(
    st.tuples(st.sampled_from(QUERIES), st.integers(0, len(TITLES) - 1)),
    st.integers(1, 12),
    min_size=1,
    max_size=12,
)


@given(PAIRS, PAIRS, st.sampled_from(QUERIES), st.integers(0, len(TITLES) - 1), st.integers(1, 9))
def test_more_clicks_never_lower_a_title(bag, clicks, looked, query, title, more):
    def place(clicks):
        index = Index.build(ranker_of(bag, clicks, looked), TITLES, IDS, threads=1)
        ids = [hit.id for hit in index.search(query, len(TITLES), everything=True)]
        return ids.index(IDS[title]) if IDS[title] in ids else len(TITLES)

    after = {**clicks, (query, title): clicks.get((query, title), 0) + more}
    assert place(after) <= place(clicks)


def test_a_title_that_is_shown_and_not_clicked_sinks_below_the_next(bag):
    clicks = {("red", 0): 3, ("tea", 3): 1}
    for n, first in ((0, "p0"), (500, "p1")):
        looked = {("red", 0): n, ("red", 2): n} if n else {("tea", 3): 1}
        index = Index.build(ranker_of(bag, clicks, looked), TITLES, IDS, threads=1)
        best = [hit.id for hit in index.search("RED", 3)]
        assert (best[0] == "p0") == (first == "p0"), best
    share = next(share for share in index.explain("red", "p0") if share.part == EXAMINED)
    assert share.examined == 500 and share.value == pytest.approx(-np.log1p(500 / 6))
    # Of another query nothing is known.
    of_other = next(share for share in index.explain("hat", "p0") if share.part == EXAMINED)
    assert of_other.examined == 0 == of_other.value


def test_it_is_kept_by_files_and_changes(bag, tmp_path):
    clicks, looked = {("red", 0): 3, ("tea", 3): 1}, {("red", 1): 4, ("red", 0): 2, ("hat", 2): 7}
    ranker = ranker_of(bag, clicks, looked)
    index = Index.build(ranker, TITLES, IDS, threads=1)
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", 1)
    assert opened.search(QUERIES, 7) == index.search(QUERIES, 7)
    for one in (index, opened):
        one.remove(["p0", "p4"])
        one.add(["red hat band"], ["p0"])  # renamed: known by its id
    names = dict(zip(index.ids, index.titles, strict=True))
    again = Index.build(ranker.with_ids(TITLES, IDS), list(names.values()), list(names), threads=1)
    assert index.search(QUERIES, 7) == opened.search(QUERIES, 7) == again.search(QUERIES, 7)
    assert next(s for s in index.explain("red", "p0") if s.part == EXAMINED).examined == 2
    bag.save_pretrained(tmp_path / "model")
    ranker.save(tmp_path / "model")
    read = load_ranker(tmp_path / "model", threads=1).clicks.examinations
    assert times_of(read) == times_of(ranker.clicks.examinations)


def test_clicks_of_another_month_bring_their_examinations(bag):
    without = Recipe({**WEIGHTS, "name": 1.0, "clicks": 9.0})
    index = Index.build(ranker_of(bag, {("red", 0): 3}, {}, without), TITLES, IDS, threads=1)
    newer = ranker_of(bag, {("red", 0): 3, ("red", 1): 1}, {("red", 0): 50}).clicks
    index.confidence = confidence = Confidence(-1.0, 0.7, 100, 0.1, 0.2)
    serve_clicks(index, newer)
    assert index.confidence is None, "its scores are others"
    index.confidence = confidence
    assert index.recipe == with_examinations(without)
    assert index.recipe.weight(CLICKS) == index.recipe.weight(EXAMINED) == OF_EXAMINATIONS
    serve_clicks(index, newer)
    assert index.recipe == with_examinations(without) and index.confidence == confidence


def test_tune_reads_a_record(bag, tmp_path):
    pairs = [(title.split()[0], title, 3) for title in TITLES]
    write_click_log(ClickLog.from_pairs(pairs), tmp_path / "pairs.tsv")
    write_click_log(ClickLog.from_pairs([("hat red", "red hat")]), tmp_path / "dev.tsv")
    written(tmp_path / "r.sqlite", [("red", [0, 1, 5], [1]), ("hat red", [1, 0], [2])])
    Index.build(bag, TITLES, IDS, threads=1).save(tmp_path / "index")
    names = ("index", "dev.tsv", "pairs.tsv", "r.sqlite")
    index, dev, log, record = (str(tmp_path / name) for name in names)
    arguments = ["tune", index, dev, "--log", log, "--record", record, "--json", "--threads", "1"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    weights = json.loads(result.stdout)["recipe"]["weights"]
    assert weights["examined"] == weights["clicks"] >= OF_EXAMINATIONS
    opened = Index.open(index)
    assert next(s for s in opened.explain("Red", "p1") if s.part == EXAMINED).examined > 0
    # Examinations of dev queries count once the ranker is fitted.
    assert next(s for s in opened.explain("hat red", "p1") if s.part == EXAMINED).examined == 1
    wrong = CliRunner().invoke(main, [*arguments[:5], "--record", dev])
    assert wrong.exit_code == 1 and "dev.tsv" in wrong.output


def test_where_names_do_not_count_looks_still_do(bag, tmp_path, monkeypatch):
    ahead = fitting._is_ahead
    monkeypatch.setattr(fitting, "_is_ahead", lambda *of: True if of[2:] == (2,) else ahead(*of))
    record = written(tmp_path / "r.sqlite", [("red", [0, 1, 5], [1])])
    pairs = [(title.split()[0], title, 3) for title in TITLES]
    index = Index.build(bag, TITLES, IDS, threads=1)
    tune(index, ClickLog.from_pairs([("hat red", "red hat")]), ClickLog.from_pairs(pairs), [record])
    assert not index.recipe.weight("name")
    assert index.recipe.weight(EXAMINED) == index.recipe.weight(CLICKS) >= OF_EXAMINATIONS


def test_an_index_reads_a_record(bag, tmp_path):
    """When it is made, or later; with neither clicks nor a record it is as before."""
    pairs = ClickLog.from_pairs([(title.split()[0], title, 3) for title in TITLES])
    record = written(tmp_path / "r.sqlite", [("red", [0, 1, 5], [1])])
    (tmp_path / "titles.tsv").write_text("".join(map("{}\t{}\n".format, IDS, TITLES)))
    model = tmp_path / "model"
    bag.save_pretrained(model)
    out = str(tmp_path / "index")
    make = ["index", str(model), str(tmp_path / "titles.tsv"), "-o", out, "--threads", "1"]

    def run(*arguments, code=0):
        result = CliRunner().invoke(main, [*map(str, arguments)])
        assert result.exit_code == code, result.output
        return result.output

    with_record = "--record", record
    assert "clicks of a query do not count" in run(*make, *with_record, code=1)
    assert "--cosine does not go with --record" in run(*make, "--cosine", *with_record, code=2)
    HybridRanker(bag, Recipe({**WEIGHTS, "clicks": 9.0}), ClickedQueries.of(pairs)).save(model)
    assert "titles.tsv" in run(*make, "--record", tmp_path / "titles.tsv", code=1)
    run(*make, *with_record)
    made = Index.open(out)
    assert made.recipe.weight(EXAMINED) == made.recipe.weight(CLICKS) == OF_EXAMINATIONS
    run(*make, "--force")
    later = Index.open(out)
    assert not later.recipe.weight(EXAMINED)
    later.confidence = Confidence(-1.0, 0.7, 100, 0.1, 0.2)
    later.save(out, force=True)
    assert "run `sentemb calibrate` again" in run("index", out, *with_record)
    assert Index.open(out).search(QUERIES, 7) == made.search(QUERIES, 7)
    assert "calibrate" not in run("index", out, *with_record)


def test_a_shop_starts_with_a_record_and_counts_it_once(tmp_path, monkeypatch):
    monkeypatch.setattr(example_shop, "_PAIRS", 300)
    shop, record = tmp_path / "shop", str(tmp_path / "r.sqlite")

    def run(*arguments):
        result = CliRunner().invoke(main, [*map(str, arguments), "--threads", "1"])
        assert result.exit_code == 0, result.output
        return Index.open(shop)

    index = run("start", "--example", "-o", shop)
    query = index.ranker.clicks.queries[0]
    hits = index.search(query, 2)
    searches = SearchRecord(record)
    (name,) = searches.add_searches([Searched(query, [(h.id, h.title) for h in hits], None, 1.0)])
    searches.add_click(name, hits[0].id)
    searches.close()
    index = run("start", "--example", "-o", shop, "--force", "--record", record)
    looked, clicks = times_of(index.ranker.clicks.examinations), index.ranker.clicks.clicks.sum()
    assert index.recipe.weight(EXAMINED) and len(looked) == 2
    assert clicks == read_click_log(shop / "pairs.tsv").clicks.sum()
    products = tmp_path / "products.csv"
    products.write_text("sku,name\na,Red Hat\nb,Blue Hat\n")
    with pytest.raises(SentembError, match="a shop without clicks reads no record"):
        sentemb.start(products, output=tmp_path / "other", record=[record])
    # Its clicks are in the log already.
    again = run("refresh", shop, "--record", record).ranker.clicks
    assert times_of(again.examinations) == looked and again.clicks.sum() == clicks
