"""Clicked queries of products: their shares, and what is left when some are taken out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentemb.data.click_log import ClickLog
from sentemb.data.seen_queries import LEAST_NEVER, in_log, never_typed_and_typed
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.text.words import exact_key, query_key

WORDS = ["tap", "Tap", "bath", "red", "tub"]
QUERIES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
TITLES = st.sampled_from(["Fix a Tap", "A Bath", "Red Tub", "Nothing", "tap"])
PAIRS = st.lists(st.tuples(QUERIES, TITLES, st.integers(1, 9)), min_size=1, max_size=25)
# The last titles are in no log, and one of the others has white space around it.
CATALOGUE = ["tap", "Red Tub", " A Bath", "Fix a Tap", "nowhere", "", "Red Tub"]


def expected_clicks(log, without=()):
    """Clicks of each query on each product, by the definition."""
    left_out = {query_key(query) for query in without}
    found = {}
    for pair, count in enumerate(log.clicks.tolist()):
        query = log.queries[log.query_index[pair]]
        if query_key(query) not in left_out:
            cell = query, log.titles[log.title_index[pair]]
            found[cell] = found.get(cell, 0) + count
    return found


def clicks_of(clicks):
    return {
        (clicks.queries[q], key): int(n)
        for key, low, high in zip(clicks.keys, clicks.offsets[:-1], clicks.offsets[1:], strict=True)
        for q, n in zip(clicks.clicked[low:high], clicks.clicks[low:high], strict=True)
    }


def shares_of(expected):
    totals = {}
    for (query, _), count in expected.items():
        totals[query] = totals.get(query, 0) + count
    return {cell: count / totals[cell[0]] for cell, count in expected.items()}


def entries(found, clicks):
    """For each title of a catalogue {query: share}."""
    return [
        {
            clicks.queries[q]: share
            for q, share in zip(found.queries[low:high], found.shares[low:high], strict=True)
        }
        for low, high in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]


def without_queries(log, queries):
    clicks = ClickedQueries.of(log)
    return clicks.without_queries(in_log(clicks.queries, queries))


@given(PAIRS, st.lists(QUERIES, max_size=3))
def test_clicks_are_those_of_the_log(pairs, without):
    log = ClickLog.from_pairs(pairs)
    clicks = without_queries(log, without)
    expected = expected_clicks(log, without)
    assert clicks_of(clicks) == expected
    assert list(clicks.queries) == [q for q in log.queries if q in {q for q, _ in expected}]
    shares = shares_of(expected)
    # A title, and an id before the title, has the clicks of its product.
    found = clicks.of_titles(CATALOGUE)
    product_of = dict(zip(clicks.titles, clicks.product_of.tolist(), strict=True))
    keys = [product_of.get(title.strip()) for title in CATALOGUE]
    of_key = {
        key: {query: share for (query, own), share in shares.items() if own == key}
        for key in clicks.keys
    }
    own = [{} if key is None else of_key[clicks.keys[key]] for key in keys]
    assert entries(found, clicks) == own
    ids = ["even", *(f"x{k}" for k in range(1, len(CATALOGUE)))]
    own[0] = of_key.get("even", own[0])
    assert entries(clicks.of_titles(CATALOGUE, ids), clicks) == own


@given(PAIRS, st.data())
def test_products_without_clicks_leave_the_shares_of_others(pairs, data):
    clicks = ClickedQueries.of(ClickLog.from_pairs(pairs))
    n = len(clicks.keys)
    is_left_out = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)), bool)
    left = clicks.without_products(is_left_out)
    before, after = (entries(one.of_titles(clicks.keys), one) for one in (clicks, left))
    assert after == [{} if out else own for out, own in zip(is_left_out, before, strict=True)]


def test_products_known_by_titles_take_the_ids_of_a_catalogue():
    pairs = [("hat", "red hat"), ("bag", "green bag"), ("coat", "blue coat"), ("cap", "cap")]
    catalogue = ["green bag", " red hat", "red hat", "new", "blue coat"]
    ids = ["cap", "p1", "p2", "p3", "p4"]
    clicks = ClickedQueries.of(ClickLog.from_pairs(pairs)).with_ids(catalogue, ids)
    # The first of equal titles has the product, and no id is given twice.
    assert clicks.keys == ["p1", "green bag", "p4", "cap"]
    renamed = clicks.of_titles(["scarlet hat", "red hat", "sea coat"], ["p1", "p2", "p4"])
    queries = [clicks.queries[q] for q in renamed.queries]
    assert queries == ["hat", "hat", "coat"]
    # Products that have ids keep them.
    assert clicks.with_ids(catalogue, ids).keys == clicks.keys


def test_each_product_is_known_by_its_key():
    pairs = [("tap", "Fix a Tap"), ("bath", "A Bath")]
    clicks = ClickedQueries.of(ClickLog.from_pairs(pairs)).with_ids(["A Bath", "Fix a Tap"], "ab")
    keys = [clicks.key_of(title) for title in ("Fix a Tap", " A Bath ", " nowhere ")]
    assert keys == ["b", "a", None]


@pytest.mark.parametrize("first", [0, 1])
def test_a_product_that_gets_the_title_of_another_changes_no_clicks_of_that(first):
    pairs = [("tap", "Tap"), ("bath", "Bath"), ("lamp", "Lamp")]
    clicks = ClickedQueries.of(ClickLog.from_pairs(pairs))
    clicks = clicks.with_ids(["Tap", "Bath", "Lamp", "Tap"], ["p1", "p2", "p3", "p4"])
    # p1 goes; p4 has its title still, and p2 has it now.
    rows = [("Tap", "p4"), ("Tap", "p2"), ("Lamp", "p3")]
    titles, ids = zip(*rows[first:], *rows[:first], strict=True)
    changed = clicks.with_ids(titles, ids)
    of_titles = changed.of_titles(["Tap", "Tap"], ["p4", "p2"])
    assert [changed.queries[q] for q in of_titles.queries] == ["tap", "bath"]
    assert changed.key_of("Tap") == "p1"


def test_a_title_that_the_log_lacks_is_the_product_whose_id_it_has():
    pairs = [("tap", "Fix a Tap"), ("bath", "A Bath"), ("lamp", "Lamp")]
    titles, ids = ["Fix a Tap", "A Bath", "Lamp"], ["p1", "p2", "p3"]
    clicks = ClickedQueries.of(ClickLog.from_pairs(pairs)).with_ids(titles, ids)
    renamed = clicks.with_ids(["Mend a Tap", "A Bath", "Lamp", "New"], ["p1", "p2", "p3", "p4"])
    assert renamed.key_of(" Mend a Tap") == "p1"
    assert renamed.key_of("Fix a Tap") == "p1"
    assert renamed.key_of("New") is None
    assert renamed.titles == clicks.titles
    of_titles = renamed.of_titles(["Mend a Tap", "New"])
    assert [renamed.queries[q] for q in of_titles.queries] == ["tap"]
    # Ids of another numbering: the known titles have the ids of others.
    shifted = clicks.with_ids(["Fix a Tap", "A Bath", "Mop"], ["p2", "p3", "p1"])
    assert [shifted.key_of(title) for title in ("Fix a Tap", "A Bath", "Mop")] == ["p1", "p2", None]


@given(PAIRS, st.lists(QUERIES, max_size=3))
def test_clicks_of_queries_are_summed_over_their_spellings(pairs, asked):
    clicks = ClickedQueries.of(ClickLog.from_pairs(pairs))
    asked = [*asked, "TAP", "Red tap!", "nowhere"]
    keys = list(map(exact_key, asked))
    expected = [sum(n for query, _, n in pairs if exact_key(query) == key) for key in keys]
    assert clicks.clicks_of(asked).tolist() == expected
    totals = dict(zip(clicks.queries, clicks.totals.tolist(), strict=True))
    for query in clicks.queries:
        assert totals[query] == sum(n for text, _, n in pairs if text == query)
    # The totals are those of the log, whatever products lose their clicks.
    none = clicks.without_products(np.ones(len(clicks.keys), bool))
    assert none.clicks_of(asked).tolist() == expected


def pairs_of(log):
    counts = zip(log.query_index, log.title_index, log.clicks.tolist(), strict=True)
    return sorted((log.queries[q], log.titles[t], n) for q, t, n in counts)


@given(PAIRS, PAIRS)
def test_single_clicks_are_of_queries_of_the_log_and_not_all_in_it(pairs, later):
    log, held_out = ClickLog.from_pairs(pairs), ClickLog.from_pairs(later)
    clicks = ClickedQueries.of(log)
    keys = {exact_key(query) for query, _, _ in pairs}
    there = {}
    for query, title, n in pairs:
        there[exact_key(query), title] = there.get((exact_key(query), title), 0) + n
    typed = [pair for pair in pairs_of(held_out) if exact_key(pair[0]) in keys]
    are_in_log = all(n <= there.get((exact_key(query), title), 0) for query, title, n in typed)
    found = clicks.single_clicks(held_out)
    assert (found is None) == (not typed or are_in_log)
    assert found is None or pairs_of(found) == typed
    assert clicks.single_clicks(log) is None, "all clicks are in the log"


def test_a_click_of_an_id_is_in_the_log_under_its_new_title():
    log = ClickLog.from_pairs([("tap", "Fix a Tap", 2), ("bath", "A Bath", 2)])
    clicks = ClickedQueries.of(log).with_ids(["Fix a Tap", "A Bath"], ["p1", "p2"])
    renamed = clicks.with_ids(["Mend a Tap", "A Bath"], ["p1", "p2"])
    held_out = ClickLog.from_pairs([("TAP", "Mend a Tap", 2)])
    assert clicks.single_clicks(held_out) is not None
    assert renamed.single_clicks(held_out) is None
    more = ClickLog.from_pairs([("TAP", "Mend a Tap", 3), ("tub", "A Bath", 1)])
    assert pairs_of(renamed.single_clicks(more)) == [("TAP", "Mend a Tap", 3)]


def test_held_out_queries_that_nobody_typed_are_told_from_those_of_the_log():
    new = [(f"new {k}", "A Bath", 1) for k in range(LEAST_NEVER)]
    # The words of a query in any order.
    known = [("tap  RED", "Red Tub", 2), ("bath", "A Bath", 1)]
    both = ClickLog.from_pairs([*new, *known])
    never, typed = never_typed_and_typed(both, ["Red tap", "bath"])
    assert pairs_of(never) == sorted(new) and pairs_of(typed) == sorted(known)
    # So few that are new say nothing alone.
    few = ClickLog.from_pairs([*new[1:], *known])
    never, typed = never_typed_and_typed(few, ["Red tap", "bath"])
    assert never is few and pairs_of(typed) == sorted(known)
    assert never_typed_and_typed(both, ["tub"]) == (both, None)
