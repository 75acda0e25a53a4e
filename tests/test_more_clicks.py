"""More clicks on a title for a query never lower it, whatever the log and the weights."""

import json
from dataclasses import replace

import numpy as np
import pytest
from browsers import NODE, NodePage
from helpers import made_up_model
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ranking import made_ranker

from sentemb import Index, fit_ranker, train
from sentemb.bridges.export.targets import export
from sentemb.cli import main
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.examinations import Examinations, Shown
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.data.seen_queries import in_log
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index_tuning import serve_clicks, tune
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
    least = max(weights["unclicked"], 0) / np.log1p(1 / 2) + 0.01
    return Recipe({**weights, "cosine": 1.0, "clicks": least + draw(st.floats(0, 9, width=16))})


def places(pairs, recipe, query):
    """The rank of every title, by the title."""
    ranker = made_ranker(MODEL, ClickLog.from_pairs(pairs), TITLES, recipe)
    ranked = Index.build(ranker, TITLES, threads=1).ranked([query], len(TITLES)).titles[0]
    return {TITLES[t]: rank for rank, t in enumerate(ranked.tolist())}


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


# A shop: products, clicks on them for their own words, and the products of the next month: one is
# gone, some are renamed, some are new.
IDS = [f"p{number}" for number in range(len(TITLES))]
OF_SHOP = [
    (query, title, 1 + (len(title) + k) % 7)
    for k, title in enumerate(TITLES)
    for query in (title, title.split()[k % 2], " ".join(reversed(title.split())))
]
NEXT_MONTH = {
    id: f"{title} sale" if k % 4 == 1 else title
    for k, (id, title) in enumerate(zip(IDS, TITLES, strict=True))
    if k
} | {"n1": "oak red", "n2": "blue oak lamp"}
counted = st.lists(st.tuples(queries, titles, st.integers(1, 50)), max_size=8)


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """Indexes whose rankers were fitted by `train` and by `tune`, with a record and without."""
    path = tmp_path_factory.mktemp("shop") / "searches.sqlite"
    record = SearchRecord(path)
    shown = [
        Searched(query, [(IDS[k], TITLES[k]), (IDS[-1], TITLES[-1])], None, 1.0)
        for k, title in enumerate(TITLES)
        for query in (title, "red", *title.split())
    ]
    record.add_searches(shown)
    record.close()
    log = ClickLog.from_pairs(OF_SHOP)
    dev = ClickLog.from_pairs([(f"{title} {word}", title) for title in TITLES for word in WORDS])
    catalogue = dict(zip(IDS, TITLES, strict=True))
    model = train(log, dev=dev, catalogue=catalogue, model="bag", epochs=2, threads=1)
    made = []
    for records in ([], [path]):
        given = {"catalogue": catalogue, "record": records, "threads": 1}
        made.append(Index.build(fit_ranker(model, log, dev, **given), catalogue, threads=1))
        made.append(Index.build(model, catalogue, threads=1))
        tune(made[-1], dev, log, records)
    return made


def serving(index, more, looked):
    """The index with further clicks and looks, and as it is one month later."""
    clicks = ClickedQueries.of(ClickLog.from_pairs([*OF_SHOP, *more]))
    shown = [Shown(query, IDS[TITLES.index(title)], title, 1, n) for query, title, n in looked]
    examinations = Examinations.of(shown) if shown else index.ranker.clicks.examinations
    ranker = index.ranker.serving(clicks.with_ids(TITLES, IDS))
    now = Index.build(ranker, dict(zip(IDS, TITLES, strict=True)), threads=1)
    serve_clicks(now, replace(now.ranker.clicks, examinations=examinations))
    later = Index.build(now.ranker, dict(zip(IDS, TITLES, strict=True)), threads=1)
    later.sync(list(NEXT_MONTH.values()), list(NEXT_MONTH))
    return now, later


def rank_of(ids, id):
    return ids.index(id) if id in ids else len(TITLES) + len(NEXT_MONTH)


@settings(max_examples=settings().max_examples // 2)
@given(st.integers(0, 3), counted, counted, st.tuples(queries, titles), st.integers(1, 200))
def test_so_it_is_after_a_fit_a_record_and_a_sync(shops, which, pairs, looked, clicked, more):
    query, title = clicked
    before = serving(shops[which], pairs, looked)
    after = serving(shops[which], [*pairs, (query, title, more)], looked)
    for one, other in zip(before, after, strict=True):
        found = [
            [hit.id for hit in index.search(query, len(index), everything=True)]
            for index in (one, other)
        ]
        was, is_now = (rank_of(ids, IDS[TITLES.index(title)]) for ids in found)
        assert is_now <= was


@pytest.mark.skipif(NODE is None, reason="no node runs the engine of a page")
@pytest.mark.parametrize("which", range(4))
def test_so_it_is_in_a_page(shops, which, tmp_path):
    rng = np.random.default_rng(which)
    query, title = " ".join(rng.choice(WORDS, 2)), str(rng.choice(TITLES))
    found = []
    for more in ([], [(query, title, int(rng.integers(1, 30)))]):
        _, later = serving(shops[which], more, [(query, title, 3)])
        export(later, tmp_path / "page.html", "page", force=True, min_queries=1)
        script = "async (told) => JSON.stringify(await engine.search(JSON.parse(told), 1000))"
        answer = json.loads(NodePage(tmp_path / "page.html").evaluate(script, f'"{query}"'))
        found.append([hit["id"] for hit in answer["hits"]])
    was, is_now = (rank_of(ids, IDS[TITLES.index(title)]) for ids in found)
    assert is_now <= was


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
