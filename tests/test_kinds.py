"""Held-out clicks by kind of query, and queries that are written from a catalogue."""

import json

import numpy as np
import pytest
from helpers import made_up_model

import sentemb
from sentemb.comparison.written_queries import MOST, drawn_names, measure_written
from sentemb.data.click_log import ClickLog
from sentemb.evaluation.kinds import NAMES, Figures, by_kind, mean_of, next_clicks
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.text.words import exact_key, folded_words

OFTEN, SELDOM, NEVER = NAMES
# (query, title, held-out clicks), the clicks that the log has, ranks of two rankings.
CASES = [
    (("hat", "t1", 3), 10, 1, 2),
    (("hat", "t2", 1), 10, 4, 0),
    (("bag", "t1", 2), 9, 2, 1),
    (("tap", "t3", 5), 1, 11, 1),
    (("new", "t4", 1), 0, 0, 10),
]


def kinds_of(cases, shares, is_circular=False):
    log = ClickLog.from_pairs([case[0] for case in cases])
    clicks_of = {case[0][0]: case[1] for case in cases}
    known = np.array([clicks_of[query] for query in log.queries])
    ranks = {"": np.array([case[2] for case in cases]), "b": np.array([case[3] for case in cases])}
    return by_kind(log, ranks, known, shares, is_circular)


def figures(*hit_mrr):
    return pytest.approx(hit_mrr, abs=1e-12)


def test_every_click_counts_the_same():
    kinds = kinds_of(CASES, (0.5, 0.3, 0.2))
    assert [(kind.name, kind.n_queries, kind.share) for kind in kinds] == [
        (OFTEN, 1, 0.5),
        (SELDOM, 2, 0.3),
        (NEVER, 1, 0.2),
    ]
    often, seldom, never = (kind.figures for kind in kinds)
    assert often[""] == figures(3 / 4, 3 / 4 + 1 / 16) and often["b"] == figures(0, 3 / 8)
    # A rank behind the tenth counts as none.
    assert seldom[""] == figures(0, 1 / 7) and seldom["b"] == figures(1, 1)
    assert never[""] == figures(0, 0) and never["b"] == figures(0, 1 / 10)
    mean = mean_of(kinds)
    assert mean[""] == figures(0.5 * 3 / 4, 0.5 * 13 / 16 + 0.3 / 7)
    assert mean["b"] == figures(0.3, 0.5 * 3 / 8 + 0.3 + 0.2 / 10)
    told = kinds[0].as_dict("model")
    assert json.loads(json.dumps(told))["figures"]["model"] == often[""]._asdict()
    assert list(told["figures"]) == ["model", "b"]


def test_there_is_no_mean_without_every_kind_or_shares():
    assert mean_of(kinds_of(CASES[:-1], (0.5, 0.3, 0.2))) is None
    assert mean_of(kinds_of(CASES, None)) is None
    assert [kind.share for kind in kinds_of(CASES, None)] == [None] * 3


def test_only_kinds_of_the_log_are_circular():
    for is_circular in (True, False):
        kinds = kinds_of(CASES, None, is_circular)
        assert [kind.is_circular for kind in kinds] == [is_circular, is_circular, False]


def test_shares_of_the_next_clicks_are_those_of_good_and_turing():
    """Of 40 clicks 4 are of queries with one; of the others 3/4 are of queries with ten or more."""
    counts = np.array([10, 20, 2, 4, 1, 1, 1, 1])
    assert next_clicks(counts) == pytest.approx((0.9 * 30 / 40, 0.9 * 10 / 40, 4 / 40))
    assert next_clicks(np.array([9, 1, 1])) is None, "judgements, not counts"
    assert next_clicks(np.array([10])) == (1, 0, 0)
    assert next_clicks(np.empty(0, np.int64)) is None


# -- written queries -------------------------------------------------------------------------------

TITLES = [f"{word} {thing}" for word in ("acme", "bolt", "Cargo", "delta") for thing in
          ("lamp", "red hat", "red lamp")]  # fmt: skip
ALONE = [*TITLES, "eagle", "falcon lamp", "falcon lamp", "hat red acme falcon", "Gamma Lamp"]


def test_names_are_those_of_one_title_that_nobody_typed():
    typed = {exact_key("Eagle"), exact_key("delta hat")}
    names = drawn_names(ALONE, typed)
    assert names[0] == [("gamma", "Gamma Lamp")] and names[1]
    for length, of_length in enumerate(names, 1):
        for query, title in of_length:
            words = query.split()
            assert len(set(words)) == length and exact_key(query) not in typed
            holding = {text for text in ALONE if set(words) <= set(folded_words(text))}
            assert holding == {title}
            places = [folded_words(title).index(word) for word in words]
            assert places == sorted(places), "in the order of the title"
        assert len({exact_key(query) for query, _ in of_length}) == len(of_length)
    one, two = ({query for query, _ in of_length} for of_length in names)
    assert not one & {"eagle"} and not two & {"delta hat"}
    assert drawn_names(ALONE, typed) == names
    assert dict(names[1]).get("falcon lamp") in (None, "falcon lamp")


def test_no_more_names_are_drawn_than_are_needed():
    titles = [f"word{k} other{k}" for k in range(MOST + 50)]
    assert [len(of_length) for of_length in drawn_names(titles, set())] == [MOST, MOST]


def test_the_first_title_of_names_and_letters_is_measured():
    titles = ["acme lamp", "bolt lamp", "cargo hat", "cargo hat"]
    asked = []

    def answer(queries):
        asked.append(list(queries))
        return [len(asked) % 4 if "cargo" in query else -1 for query in queries]

    names = drawn_names(titles, {"hat"})
    found = measure_written(answer, titles, ["Hat"], has_floor=True)
    assert asked[:2] == [[query for query, _ in each] for each in names]
    assert found.n_names == tuple(map(len, names))
    # The first answers are title 1, the second title 2; of equal titles any is right.
    is_cargo = ["cargo" in query for of_length in names for query, _ in of_length]
    assert found.first[0] == 0
    assert found.first[1] == np.mean(["cargo" in query for query, _ in names[1]]) > 0
    assert found.nothing == pytest.approx(1 - np.mean(is_cargo)) and not all(is_cargo)
    assert len(asked[2]) == MOST and found.letters == 1
    assert measure_written(answer, titles, [], has_floor=False).letters is None
    assert measure_written(answer, ["a b", "b a"], [], has_floor=False) is None


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_evaluate_has_kinds_and_written_queries_where_the_ranker_counts_clicks():
    model = made_up_model(("bag", {}), TITLES, cells=6, dtype=np.float32)
    log = ClickLog.from_pairs(
        [("Acme LAMP", TITLES[0], 12), ("acme lamp", TITLES[2], 1), ("bolt", TITLES[3], 2)]
    )
    recipe = Recipe({"cosine": 0.1, "clicks": 2.0, "name": 3.0})
    ranker = HybridRanker(model, recipe, ClickedQueries.of(log), titles=TITLES)
    later = [("acme lamp", TITLES[0], 3), ("bolt", TITLES[4], 1), ("delta hat", TITLES[10], 1)]
    found = sentemb.evaluate(ranker, ClickLog.from_pairs(later), TITLES)
    assert [kind.name for kind in found.kinds] == list(NAMES)
    assert [kind.n_queries for kind in found.kinds] == [1, 1, 1]
    assert found.kinds[0].figures[""] == Figures(1.0, 1.0)
    assert not any(kind.is_circular for kind in found.kinds)
    # The queries of the log have 12, 1 and 2 clicks.
    assert found.kinds[2].share == pytest.approx(1 / 15)
    assert found.written.nothing == 0 and found.written.letters is None, "there is no floor"
    # All clicks that are asked for are in the log.
    circular = sentemb.evaluate(ranker, ClickLog.from_pairs(later[:1]), TITLES)
    assert [kind.is_circular for kind in circular.kinds] == [True]
    # The model alone knows no clicks, unless the log is given.
    assert not sentemb.evaluate(ranker, ClickLog.from_pairs(later), TITLES, cosine=True).kinds
    given = sentemb.evaluate(model, ClickLog.from_pairs(later), TITLES, log=log)
    assert [kind.name for kind in given.kinds] == list(NAMES) and given.written is None
