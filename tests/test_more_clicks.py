"""More clicks on a title for a query never lower it, whatever the log and the weights."""

import numpy as np
import pytest
from helpers import made_up_model
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ranking import made_ranker

from sentemb import Index
from sentemb.cli import main
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.seen_queries import in_log
from sentemb.search.index_tuning import tune
from sentemb.search.ranking.recipe import PARTS, Recipe

WORDS = ["red", "blue", "lamp", "desk", "chair", "oak"]
TITLES = [f"{first} {second}" for first in WORDS for second in WORDS if first < second]
MODEL = made_up_model(("bag", {}), [*TITLES, *WORDS], cells=6, dtype=np.float32)
# What can count against a title, and what can only speak for it.
SIGNED = ("clicked_bm25", "unclicked")
queries = st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join)
titles = st.sampled_from(TITLES)


@st.composite
def recipes(draw):
    weights = {
        part: draw(st.floats(-9 if part in SIGNED else 0, 9, width=16))
        for part in PARTS
        if part not in ("cosine", "clicks", "examined")
    }
    # As it is fitted, the first click outweighs the constant of titles without clicks.
    least = max(weights["unclicked"], 0) / np.log1p(1 / 0.3) + 0.01
    return Recipe({**weights, "cosine": 1.0, "clicks": least + draw(st.floats(0, 9, width=16))})


def places(pairs, recipe, query):
    """The rank of every title, by the title."""
    ranker = made_ranker(MODEL, ClickLog.from_pairs(pairs), TITLES, recipe)
    ranked = Index.build(ranker, TITLES, threads=1).ranked([query], len(TITLES)).titles[0]
    return {TITLES[t]: rank for rank, t in enumerate(ranked.tolist())}


@settings(max_examples=60)
@given(
    st.lists(st.tuples(queries, titles, st.integers(1, 50)), min_size=1, max_size=12),
    recipes(),
    st.tuples(queries, titles),
    st.integers(1, 200),
)
def test_more_clicks_never_lower_a_title(pairs, recipe, clicked, more):
    query, title = clicked
    before = places(pairs, recipe, query)
    after = places([*pairs, (query, title, more)], recipe, query)
    assert after[title] <= before[title]


@pytest.mark.slow
def test_ten_clicks_lift_a_title_of_the_example_shop(tmp_path):
    """For queries that nobody typed before, after the ranker is fitted again."""
    main.main(["start", "--example", "-o", str(tmp_path / "shop")], standalone_mode=False)
    folder = tmp_path / "shop"
    log, test = (read_click_log(folder / "log" / name) for name in ("pairs.tsv", "test.tsv"))
    pairs = [
        (log.queries[q], log.titles[t], int(n))
        for q, t, n in zip(log.query_index, log.title_index, log.clicks, strict=True)
    ]
    index = Index.open(folder / "index")
    tune(index, test, log)
    asked = np.array(test.queries)[~in_log(test.queries, log.queries)].tolist()
    before = index.ranked(asked, 5).titles
    for place, kept_first in ((1, 0.99), (5, 0.9)):
        chosen = before[:, place - 1].tolist()
        added = [(query, index.titles[t], 10) for query, t in zip(asked, chosen, strict=True)]
        other = Index.open(folder / "index")
        tune(other, test, ClickLog.from_pairs([*pairs, *added]))
        after = other.ranked(asked, len(other)).titles
        ranks = (after == np.array(chosen)[:, None]).argmax(axis=1) + 1
        assert (ranks <= place).all() and (ranks == 1).mean() >= kept_first
