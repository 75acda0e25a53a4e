"""Shortlists: the exact ranking if they are broad, its scores if they are not; files, commands."""

import copy
import json
import pickle
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import WordSums, list_again, made_up_model
from hypothesis import given, settings
from hypothesis import strategies as st
from test_ranker_index import RECIPES, WORDS, made_up_texts, opened_index

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder
from sentemb.data.examinations import Examinations, Shown
from sentemb.kernels.shortlist import (
    add_entries,
    add_values,
    clear,
    meet_clusters,
    sums_of,
    walk,
)
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.cluster_rows import ClusterRows
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.memory import MemoryRows
from sentemb.retrieval.row_products import QueryRows
from sentemb.retrieval.similarity import unit_rows
from sentemb.search import searcher, segment, shortlisting
from sentemb.search.ranking import engine, shortlist
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.part import Asked
from sentemb.search.ranking.parts import Cosine, Memory
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import DIRECT, MODEL_ALONE, PARTS, Recipe
from sentemb.search.ranking.shortlist import Breadth, Shortlist
from sentemb.search.sharded_index import ShardedIndex
from sentemb.system.parallel import Workers

TITLES = [*made_up_texts(397, [*WORDS, "x7"], seed=3), "...", "x7", "q9"]
IDS = [f"p{k}" for k in range(len(TITLES))]
QUERIES = [*made_up_texts(20, WORDS, seed=8), "x7", "red x7", "q9", "nowhere", ""]
EVERYTHING = Breadth(10**6, 10**6)
EMBEDDING = Embedding.of(WordSums())


@pytest.fixture(scope="module")
def bag():
    return made_up_model(("bag", {}), made_up_texts(60, WORDS), cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def clicks():
    builder, rng = ClickLogBuilder(), np.random.default_rng(5)
    for query in [*made_up_texts(150, WORDS, seed=2), *QUERIES[:5], "x7", "q9 q9"]:
        for place in rng.integers(0, len(TITLES) - 1, rng.integers(1, 4)):
            builder.add(query, TITLES[place], int(rng.integers(1, 9)))
    log = builder.build()
    shown = (
        Shown(query, IDS[k], TITLES[k], int(rng.integers(1, 9)), int(rng.integers(1, 9)))
        for query in [*log.queries, *QUERIES]
        for k in rng.integers(0, len(TITLES), 5).tolist()
    )
    return replace(ClickedQueries.of(log), examinations=Examinations.of(shown))


@pytest.fixture(autouse=True, scope="module")
def few_titles():
    """So that an index of these titles has a shortlist."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(shortlisting, "LEAST_TITLES", 100)
        patched.setattr(shortlisting, "_LEAST", Breadth(2, 16))
        for name in ("MOST_PROBED", "_MOST_OF_SOME"):  # or `EVERYTHING` would meet nothing
            patched.setattr(shortlist, name, np.inf)
        patched.setattr(shortlisting, "MOST_PROBED", 1.0)
        yield


@pytest.fixture(scope="module")
def index(bag, clicks):
    """An index that no test changes."""
    return Index.build(
        HybridRanker(bag, RECIPES["embedding"], clicks, embedding=EMBEDDING), TITLES, IDS, threads=1
    )


def broad(parts, recipe):
    """A shortlist that meets all rows and keeps all titles."""
    with Workers(1) as workers:
        made = Shortlist.of(parts, recipe, workers)
    return replace(made, breadth=EVERYTHING)


def assert_same(found, expected):
    for one, other in zip(found[:2], expected[:2], strict=True):
        assert np.array_equal(one, other)
    for name, values in expected.values.items():
        assert np.array_equal(found.values[name], values)


# -- clusters ---------------------------------------------------------------------------------


def test_rows_are_in_the_cluster_of_their_nearest_centre():
    rng = np.random.default_rng(0)
    middle = rng.standard_normal((20, 16))[rng.integers(0, 20, 1000)]
    vectors = unit_rows((middle + 0.5 * rng.standard_normal((1000, 16))).astype(np.float32))
    rows, titles = Int8Rows.of(vectors), np.repeat(np.arange(500, dtype=np.int32), 2)
    steps = []
    with Workers(1) as workers:
        made = ClusterRows.of(rows, titles, workers)
    with Workers(3) as workers:
        again = ClusterRows.of(rows, titles, workers, lambda *step: steps.append(step))
    assert np.array_equal(made.rows.codes, again.rows.codes)
    assert steps == sorted(steps) and steps[-1] == (1000, 1000)
    assert sorted(made.titles.tolist()) == titles.tolist()
    for c, centre in enumerate(made.centres):
        of_cluster = slice(made.offsets[c], made.offsets[c + 1])
        vectors = made.rows.rows(of_cluster).vectors()
        products = vectors @ made.centres.T
        assert (np.diff(made.titles[of_cluster]) >= 0).all()
        assert (vectors @ centre >= products.max(axis=1, initial=-1) - 0.02).all()
    nearest = made.nearest(vectors[0], 3)
    cosines = made.centres @ vectors[0]
    assert nearest.tolist() == np.sort(np.argsort(-cosines, kind="stable")[:3]).tolist()


# -- what is found ----------------------------------------------------------------------------

WEIGHTS = st.fixed_dictionaries(
    {name: st.sampled_from([0.0, 0.5, 2.0, *([] if name in DIRECT else [-0.7])]) for name in PARTS}
).filter(lambda weights: any(weights.values()))


@given(WEIGHTS, st.sampled_from([1, 3, 20, 150]), st.sampled_from([0, 2, 3, 80]), st.booleans())
def test_a_ranking_is_that_of_all_pairs_also_with_a_broad_shortlist(
    parts_of_all, weights, k, share, is_int8
):
    """Whatever the weights are, some of them against a title."""
    ranker, catalogues = parts_of_all
    recipe, catalogue = Recipe(weights, k1=1.2, b=0.6), catalogues[is_int8]
    mask = np.arange(len(TITLES)) % share == 0 if share else None
    asked = ranker.asked(QUERIES)
    with Workers(1) as workers:
        arguments = catalogue.parts, recipe, asked, k, catalogue.is_empty, workers, mask
        expected = engine.best(*arguments)
        assert_same(engine.best(*arguments, broad(catalogue.parts, recipe)), expected)
        # And the exact one is that of all titles as pairs.
        every = *arguments[:3], len(TITLES), *arguments[4:]
        ranked = engine.best(*every)
        pairs = (ranked.titles[:, :k], expected.titles), (ranked.scores[:, :k], expected.scores)
        assert all(np.array_equal(*both) for both in pairs)


@pytest.mark.parametrize(
    ("probed", "share", "looks_at_a_part"),
    [(9, 1.0, True), (26, 1.0, False), (9, 0.24, True), (9, 0.1, False), (24, 0.4, True)],
)
def test_a_filter_that_leaves_many_titles_looks_at_a_part_of_them(
    parts_of_all, monkeypatch, probed, share, looks_at_a_part
):
    """Of 100 clusters a query meets more, by the titles that are left, but not nearly all."""
    monkeypatch.setattr(shortlist, "MOST_PROBED", 0.25)
    monkeypatch.setattr(shortlist, "_MOST_OF_SOME", 0.75)
    recipe = RECIPES["embedding"]
    made = broad(parts_of_all[1][0].parts, recipe)
    clusters = replace(made.clusters, centres=np.zeros((100, 1), np.float32))
    made = replace(made, clusters=clusters, breadth=Breadth(probed, 16))
    assert made.can_rank(recipe, 10, share) == looks_at_a_part
    assert not made.can_rank(recipe, shortlist.MOST_TITLES + 1, share)


def test_queries_are_read_before_threads_begin(parts_of_all, monkeypatch):
    """From Python 3.12 on, each thread that asks for a `cached_property` would make its own."""
    ranker, (catalogue, _) = parts_of_all
    recipe, whole, are_read = Recipe(dict.fromkeys(PARTS, 1.0)), Shortlist.candidates, []

    def candidates(self, asked, *arguments):
        are_read.append({"rows", "embedded", "tokens"} <= vars(asked).keys())
        return whole(self, asked, *arguments)

    monkeypatch.setattr(Shortlist, "candidates", candidates)
    arguments = catalogue.parts, recipe, ranker.asked(QUERIES), 3, catalogue.is_empty
    with Workers(2) as workers:
        engine.best(*arguments, workers, None, broad(catalogue.parts, recipe))
    assert are_read == [True] * len(QUERIES)


@settings(max_examples=30, deadline=None)
@given(WEIGHTS, st.sampled_from([0, 1, 20]), st.sampled_from([5, 60, 1000]))
def test_titles_that_are_counted_have_a_share_of_the_highest_score(
    parts_of_all, weights, k, matches
):
    """The best k in any case, and all of the matches with half the highest score."""
    ranker, (catalogue, _) = parts_of_all
    recipe, asked = Recipe(weights, k1=1.2, b=0.6), ranker.asked(QUERIES)
    most = max(k, matches)
    with Workers(1) as workers:
        arguments = catalogue.parts, recipe, asked
        of_titles = catalogue.is_empty, workers, None
        expected = engine.best(*arguments, most, *of_titles)
        made = broad(catalogue.parts, recipe)
        found = engine.best(*arguments, k, *of_titles, made, matches)
    assert found.titles.shape == expected.titles.shape
    for q in range(len(QUERIES)):
        least = shortlist.least_of_matches(expected.scores[q, 0])
        n = max(k, int(np.count_nonzero(expected.scores[q, :matches] >= least)))
        assert np.array_equal(found.titles[q, :n], expected.titles[q, :n])
        assert np.array_equal(found.scores[q, :n], expected.scores[q, :n])


def test_facets_and_sorts_look_at_a_part_of_the_titles(index, monkeypatch):
    index.sync(TITLES, IDS, fields={"price": [float(k % 50) for k in range(len(TITLES))]})
    monkeypatch.setattr(searcher, "MOST_MATCHES", 60)
    of_counts = {"facets": ["price"], "sort": "price"}
    exact = index.search(QUERIES, 5, exact=True, **of_counts)
    monkeypatch.setattr(engine._Request, "rank_exactly", None)
    monkeypatch.setattr(engine._Request, "rank_all", None)
    queries = [query for query, hits in zip(QUERIES, exact, strict=True) if hits]
    found = index.search(queries, 5, **of_counts)
    shares = [
        sum((Counter(hits.facets["price"]) & Counter(best.facets["price"])).values())
        / sum(best.facets["price"].values())
        for hits, best in zip(found, filter(None, exact), strict=True)
    ]
    assert np.mean(shares) > 0.9
    prices = [hit.fields["price"] for hit in found[0]]
    assert len(found[0]) == 5 and prices == sorted(prices)
    (every,) = index.search(queries[:1], 300, **of_counts)
    assert list(every[:5]) == list(found[0]) and len(every) > 5


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n_queries", [1, 5, 9])
def test_the_memory_bounds_the_cosine(sign, n_queries):
    """Titles of nearly one vector have one row; of some titles the vector has zeros."""
    rng, n = np.random.default_rng(0), 300
    middle = unit_rows(rng.standard_normal((1, 8)))[0]
    vectors = unit_rows((middle + 0.02 * rng.standard_normal((n, 8))).astype(np.float32))
    is_empty = np.arange(n) % 50 == 7
    rows, scales = Int8Rows.of(vectors), np.where(is_empty, 0.5, 1)
    rows = Int8Rows(rows.codes, (rows.scales * scales).astype(np.float32))
    vectors[is_empty] = 0
    memory = MemoryRows(np.arange(n + 1), rows, np.full(n, -2, np.int32))
    parts = {"cosine": Cosine(vectors), "memory": Memory(memory)}
    recipe = Recipe({"cosine": 5.0, "memory": 0.05})
    queries = np.repeat([sign * middle], n_queries, axis=0)
    asked = Asked(["q"] * n_queries, lambda _: queries, recipe)
    exact = 5 * vectors @ middle * sign + 0.05 * rows.vectors() @ middle * sign
    with Workers(1) as workers:
        found = engine.best(parts, recipe, asked, 3, is_empty, workers)
    expected = np.argsort(-exact, kind="stable")[:3]
    assert (sign < 0) == is_empty[expected].any()
    assert all(set(titles) == set(expected.tolist()) for titles in found.titles.tolist())


@pytest.fixture(scope="module")
def parts_of_all(bag, clicks):
    ranker = HybridRanker(bag, RECIPES["embedding"], clicks, embedding=EMBEDDING)
    return ranker, [
        Index.build(ranker, TITLES, IDS, dtype=dtype, exact=True).snapshot.as_one.catalogue
        for dtype in ("float32", "int8")
    ]


@pytest.mark.parametrize("name", [*RECIPES, "model alone"])
def test_what_is_found_has_exact_scores(bag, clicks, name):
    ranker = HybridRanker(bag, RECIPES.get(name, MODEL_ALONE), clicks, embedding=EMBEDDING)
    index = Index.build(ranker, TITLES, IDS, threads=1)
    exact = Index.build(ranker, TITLES, IDS, threads=1, exact=True)
    assert exact.clusters is None
    assert index.clusters.recall >= 0.99
    found, best, met = index.search(QUERIES), exact.search(QUERIES), 0
    assert index.search(QUERIES, exact=True) == best
    every = exact.ranked(QUERIES, len(TITLES))
    for number, (hits, of_exact, query) in enumerate(zip(found, best, QUERIES, strict=True)):
        score_of = dict(zip(every.titles[number].tolist(), every.scores[number], strict=True))
        assert all(hit.score == score_of[IDS.index(hit.id)] for hit in hits)
        assert len(hits) == len(of_exact) and hits.reason == of_exact.reason
        met += len({hit.id for hit in hits} & {hit.id for hit in of_exact})
        assert index.search([query])[0] == index.search(query) == hits
    assert met > 0.9 * sum(map(len, best))


def test_the_breadth_reaches_the_recall_that_is_said(index, clicks, monkeypatch):
    made = index.clusters
    queries = clicks.queries
    assert made.measured_with == "queries" and "for queries of the log when" in str(made)
    exact, found = index.ranked(queries, 10, exact=True), index.ranked(queries, 10)
    shares = [
        np.isin(of_exact, of_found).mean()
        for of_exact, of_found in zip(exact.titles, found.titles, strict=True)
    ]
    assert made.recall >= 0.99 and made.recall == pytest.approx(np.mean(shares), abs=0.01)
    with monkeypatch.context() as patch:
        patch.setattr(shortlisting, "LEAST_RECALL", 1.1)
        assert index.ranked_by(index.ranker).clusters is None
        patch.setattr(shortlisting, "_FEWEST", 10**6)
        patch.setattr(shortlisting, "LEAST_RECALL", 0.5)
        assert index.ranked_by(index.ranker).clusters.measured_with == "titles"


@pytest.mark.parametrize(
    ("needed", "expected"), [((1, 120), (3, 121)), ((7, 1), (9, 16)), ((6, 30), (6, 36))]
)
def test_what_is_missing_grows(index, monkeypatch, needed, expected):
    """Not the clusters where more titles are to be looked at again, and the reverse."""
    monkeypatch.setattr(shortlisting, "_LEAST", Breadth(4, 16) if needed[0] > 1 else Breadth(3, 16))
    monkeypatch.setattr(shortlisting, "_best", lambda *given: given[1])
    monkeypatch.setattr(
        shortlisting,
        "_recall",
        lambda near, exact: (
            sum(min(1, own / of) for own, of in zip(near.breadth, needed, strict=True)) / 2
        ),
    )
    assert index.ranked_by(index.ranker).clusters.breadth == expected


def test_titles_that_may_not_be_found_are_not(index):
    for ids in (IDS[1:], IDS[::2], IDS[::3], IDS[5:9]):
        for hits in index.search(QUERIES, only=ids, everything=True):
            assert {hit.id for hit in hits} <= {*ids}
        exact = index.search(QUERIES, only=ids, everything=True, exact=True)
        found = index.search(QUERIES, only=ids, everything=True)
        assert [len(hits) for hits in found] == [len(hits) for hits in exact]
    assert index.search("p7")[0].id == "p7"
    assert all(hit.id != "p7" for hit in index.similar("p7"))
    assert index.search(QUERIES, 201) == index.search(QUERIES, 201, exact=True)


def test_searches_in_several_threads_share_nothing(index):
    expected = index.search(QUERIES)
    found = [None] * 32
    with Workers(4) as workers:

        def search(first, end):
            for k in range(first, end):
                found[k] = index.search(QUERIES)

        workers.over(32, search)
    assert all(hits == expected for hits in found)
    with Workers(1) as one, Workers(3) as three:
        catalogue, asked = index.snapshot.as_one.catalogue, index.ranker.asked(QUERIES)
        rankings = [
            engine.best(
                catalogue.parts, index.recipe, asked, 10, catalogue.is_empty, workers, None,
                catalogue.shortlist,
            )
            for workers in (one, three)
        ]  # fmt: skip
    assert_same(*rankings)


# -- an index ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_an_index_on_disk_searches_as_in_memory(bag, clicks, dtype, tmp_path):
    ranker = HybridRanker(bag, RECIPES["embedding"], clicks, embedding=EMBEDDING)
    made = Index.build(ranker, TITLES, IDS, dtype=dtype, threads=1)
    made.save(tmp_path / "index")
    Index.verify(tmp_path / "index")
    described = json.loads((tmp_path / "index" / "index.json").read_text())["clusters"]
    assert described == {
        "count": len(made.clusters.clusters.centres),
        "rows": len(made.clusters.clusters.titles),
        "probed": made.clusters.breadth.probed,
        "retained": made.clusters.breadth.retained,
        "recall": made.clusters.recall,
        "measured_with": "queries",
        "embedding": {
            "count": len(made.clusters.embedded.centres),
            "rows": len(made.clusters.embedded.titles),
        },
    }
    opened = opened_index(tmp_path / "index", 3)
    read = Index.open(tmp_path / "index", 1, in_memory=True)
    read.ranker.embedding.use(WordSums())
    expected = made.search(QUERIES)
    for one in (
        opened, read, copy.deepcopy(made),
        pickle.loads(pickle.dumps(opened)),
    ):  # fmt: skip
        assert str(one.clusters) == str(made.clusters)
        assert one.search(QUERIES) == expected
    Index.build(ranker, TITLES, IDS, dtype=dtype, threads=3).save(tmp_path / "again")
    for file in (tmp_path / "index" / "clusters").iterdir():
        assert file.read_bytes() == (tmp_path / "again" / "clusters" / file.name).read_bytes()


def test_titles_come_and_go(bag, clicks):
    ranker = HybridRanker(bag, RECIPES["embedding"], clicks, embedding=EMBEDDING)
    changed = Index.build(ranker, TITLES[:300], IDS[:300], threads=1)
    changed.add(TITLES[300:], IDS[300:])
    changed.remove(IDS[50:60])
    assert changed.clusters is not None
    for hits in changed.search(QUERIES):
        assert not {hit.id for hit in hits} & {*IDS[50:60]}
    exact = changed.search(QUERIES, exact=True)
    assert [len(hits) for hits in changed.search(QUERIES)] == list(map(len, exact))
    # As if the clusters, with the same centres, had been made of the titles that are left.
    left = changed.snapshot.as_one.catalogue
    of_model = shortlist._rows(left.parts, ranker.recipe), changed.clusters.clusters
    of_embedding = shortlist._rows_of(left.parts["embedding"]), changed.clusters.embedded
    for of_rows, made in (of_model, of_embedding):
        with Workers(1) as workers:
            none = {"titles": made.titles[:0], "rows": made.rows.rows(slice(0))}
            nothing = replace(made, offsets=made.offsets * 0, **none)
            expected = nothing.joined(*of_rows, workers)
        for name in ("offsets", "titles"):
            assert np.array_equal(getattr(made, name), getattr(expected, name))
        assert np.array_equal(made.rows.codes, expected.rows.codes)
    assert np.array_equal(changed.clusters.net, shortlist._net(left.parts, ranker.recipe))
    changed.sync(["red hat", "blue coat"], ["a", "p3"])
    assert {hit.id for hit in changed.search("red hat")} == {"a", "p3"}
    changed.sync([], [])
    assert changed.search("red hat") == []
    changed.add(["red hat"], ["b"])
    assert [hit.id for hit in changed.search("red hat")] == ["b"]


def test_a_large_segment_of_new_titles_has_clusters(bag, clicks, monkeypatch):
    monkeypatch.setattr(segment, "_FEW", 0)
    monkeypatch.setattr(segment, "_TIMES", 1)
    ranker = HybridRanker(bag, RECIPES["all"], clicks)
    changed = Index.build(ranker, TITLES[:210], IDS[:210], threads=1)
    for first, end, has_clusters in ((210, 300, False), (300, 400, True)):
        changed.add(TITLES[first:end], IDS[first:end])
        large, small = changed.snapshot.segments
        assert large.catalogue.shortlist is not None and len(small) == end - 210
        assert (small.catalogue.shortlist is not None) == has_clusters
    exact = changed.search(QUERIES, exact=True)
    assert [len(hits) for hits in changed.search(QUERIES)] == list(map(len, exact))
    alone = Index.build(ranker, TITLES[:210], IDS[:210], exact=True, threads=1)
    alone.add(TITLES[210:], IDS[210:])
    assert all(each.catalogue.shortlist is None for each in alone.snapshot.segments)


def test_the_model_alone_can_be_changed(index):
    alone = index.model_alone()
    alone.add(["red hat"], ["new"])
    alone.remove(IDS[:5])
    assert alone.clusters is None and "new" in {hit.id for hit in alone.search("red hat", 400)}
    by_cosine = Index.build(alone.ranker, TITLES, IDS, threads=1)
    assert by_cosine.model_alone().clusters is by_cosine.clusters is not None


def test_other_weights_have_another_shortlist(index, bag, clicks):
    ranker = HybridRanker(bag, RECIPES["no cosine"], clicks)
    other = index.ranked_by(ranker)
    assert other.clusters.recipe == ranker.recipe != index.clusters.recipe
    assert index.search(QUERIES, cosine=True) == index.search(QUERIES, cosine=True, exact=True)
    few = Index.build(ranker, TITLES[:90], threads=1)
    assert few.clusters is None


def test_indexes_with_clusters_are_searched_together(bag, clicks):
    ranker = HybridRanker(bag, RECIPES["embedding"], clicks, embedding=EMBEDDING)
    halves = {str(k): Index.build(ranker, TITLES[k::2], IDS[k::2], threads=1) for k in (0, 1)}
    found = ShardedIndex(halves, 1).search(QUERIES[:5], 7)
    for hits, *of_halves in zip(
        found, *(half.search(QUERIES[:5], 7) for half in halves.values()), strict=True
    ):
        both = sorted((hit for half in of_halves for hit in half), key=lambda hit: -hit.score)
        assert [hit.score for hit in hits] == [hit.score for hit in both[:7]]


# -- files ------------------------------------------------------------------------------------

REFUSED = {
    "centres": [
        lambda a: a[1:], lambda a: a.astype(np.float64), lambda a: a + np.nan, lambda a: a * 9,
    ],
    "offsets": [lambda a: a[1:], lambda a: a + 1, lambda a: a[::-1], lambda a: a.astype(np.int32)],
    "titles": [lambda a: a[1:], lambda a: a - 1, lambda a: a + 1000],
    "codes": [lambda a: a[1:], lambda a: a.astype(np.int16)],
    "scales": [lambda a: a * 90, lambda a: a + np.nan, lambda a: -a],
    "net": [lambda a: a[1:], lambda a: a + np.inf],
}  # fmt: skip
REFUSED |= {f"embedded_{name}": changes for name, changes in REFUSED.items() if name != "net"}


@pytest.mark.parametrize("name", REFUSED)
def test_damaged_clusters_are_refused(index, name, tmp_path):
    """Also where sizes and checksums fit."""
    folder = tmp_path / "index"
    index.save(folder)
    file = folder / "clusters" / f"{name}.npy"
    whole = np.load(file)
    for change in REFUSED[name]:
        np.save(file, change(whole))
        with pytest.raises(SentembError, match="the index is damaged"):
            Index.open(folder)
        list_again(folder)
        with pytest.raises(SentembError, match=rf"clusters/{name}.npy: the index is damaged") as e:
            Index.open(folder)
        assert "\n" not in str(e.value)


def test_a_description_that_is_wrong_is_refused(index, tmp_path):
    index.save(tmp_path / "index")
    description = tmp_path / "index" / "index.json"
    values = json.loads(description.read_text())
    clusters = values["clusters"]
    for wrong in (
        {}, 3, {"count": 1}, {**clusters, "retained": 0}, {**clusters, "rows": 0},
        {**clusters, "probed": 0}, {**clusters, "more": 1},
        {**clusters, "probed": 10**6}, {**clusters, "recall": 2},
        {**clusters, "recall": None}, {**clusters, "count": "20"},
        {**clusters, "measured_with": "x"}, {**clusters, "embedding": 3},
        {**clusters, "embedding": {"count": 0, "rows": 1}},
        {**clusters, "embedding": {"count": 1}},
    ):  # fmt: skip
        description.write_text(json.dumps(values | {"clusters": wrong}))
        with pytest.raises(SentembError, match='"clusters" is missing or wrong'):
            Index.open(tmp_path / "index")
    description.write_text(json.dumps(values | {"clusters": None}))
    with pytest.raises(SentembError, match="it lists other files"):
        Index.open(tmp_path / "index")


def test_clusters_of_version_1_0_are_not_read(index, tmp_path):
    index.save(tmp_path / "index")
    description = tmp_path / "index" / "index.json"
    values = json.loads(description.read_text())
    of_embedding = [name for name in REFUSED if name.startswith("embedded_")]
    for name in ("codes", "scales", "net", *of_embedding):
        (tmp_path / "index" / "clusters" / f"{name}.npy").unlink()
        del values["files"][f"clusters/{name}.npy"]
    values["clusters"] = {name: values["clusters"][name] for name in ("count", "probed", "recall")}
    description.write_text(json.dumps(values))
    opened = opened_index(tmp_path / "index")
    assert opened.clusters is None
    assert opened.search(QUERIES) == index.search(QUERIES, exact=True)


def test_the_commands_say_the_recall(bag, tmp_path, monkeypatch):
    bag.save_pretrained(tmp_path / "model")
    lines = "".join(f"{id}\t{title}\n" for id, title in zip(IDS, TITLES, strict=True))
    (tmp_path / "titles.tsv").write_text(lines)

    def run(*arguments):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result

    index, arguments = tmp_path / "index", (tmp_path / "model", tmp_path / "titles.tsv", "-o")
    made = run("index", *arguments, index)
    opened = Index.open(index).clusters
    recall = f"recall@10 {opened.recall:.3f} for titles as queries when they were made"
    said = f"a query meets {opened.breadth.probed} of {len(opened.clusters.centres)}; {recall}"
    assert f"clusters: {said}" in made.stderr
    assert said in run("info", index).stdout
    assert json.loads(run("info", index, "--json").stdout)["clusters"] == said
    with monkeypatch.context() as patch:
        patch.setattr(shortlisting, "LEAST_RECALL", 1.1)
        made = run("index", *arguments, tmp_path / "none")
    assert "clusters: none, for a quarter of them has a recall@10 below" in made.stderr
    made = run("index", *arguments, tmp_path / "exact", "--exact")
    assert "clusters" not in made.stderr and Index.open(tmp_path / "exact").clusters is None
    every = [
        run("search", tmp_path / "exact", "red hat"),
        run("search", index, "red hat", "--exact"),
    ]
    assert every[0].stdout == every[1].stdout
    wrong = CliRunner().invoke(main, ["index", str(index), "--add", "x", "--exact"])
    assert "--exact is for a new index" in wrong.stderr


@given(
    st.lists(st.sampled_from([np.nan, -np.inf, -1.0, 0.0, 2.5, 7.0]), max_size=12),
    st.integers(1, 14),
)
def test_titles_that_are_kept_are_the_highest_and_what_equals_the_last_of_them(values, k):
    values = np.array(values, np.float32)
    kept = shortlist._highest(values, k).tolist()
    is_wrong = np.isnan(values)
    are_all = k >= values.size or k > (~is_wrong).sum()
    last = -np.inf if are_all else np.sort(values[~is_wrong])[-k]
    assert kept == np.flatnonzero(is_wrong | (values >= last)).tolist()


@pytest.mark.parametrize("has_mask", [False, True])
def test_rows_of_clusters_have_product_lists_and_constant(has_mask):
    """The kernel against the definition, row by row."""
    rng = np.random.default_rng(1)
    vectors = unit_rows(rng.standard_normal((300, 24)).astype(np.float32))
    titles = np.repeat(np.arange(100, dtype=np.int32), 3)
    with Workers(1) as workers:
        made = ClusterRows.of(Int8Rows.of(vectors), titles, workers)
    sums, constants = rng.standard_normal((2, 100)).astype(np.float32)
    mask = rng.random(100) < 0.5 if has_mask else np.empty(0, np.bool_)
    asked, chosen = QueryRows(vectors[:1]), np.array([0, len(made.centres) - 1])
    of_clusters = [range(made.offsets[c], made.offsets[c + 1]) for c in chosen.tolist()]
    rows = np.concatenate([np.array(of_cluster, int) for of_cluster in of_clusters])
    values, met = np.empty(rows.size, np.float32), np.empty(rows.size, np.int32)
    codes = made.offsets, made.titles, made.rows.codes, made.rows.scales
    query = asked.integers[0], np.float32(asked.steps[0]), np.float32(1.7)
    meet_clusters(values, met, chosen, *codes, *query, sums, constants, mask)
    assert np.array_equal(met, made.titles[rows])
    expected = 1.7 * (made.rows.vectors()[rows] @ vectors[0]) + sums[met] + constants[met]
    if has_mask:
        expected[~mask[met]] = -np.inf
    np.testing.assert_allclose(values, expected, atol=0.05)


@pytest.mark.parametrize("has_mask", [False, True])
def test_lists_are_added_to_the_sums_of_titles_and_taken_away(has_mask):
    """The kernels against the definition: words, titles that a part names, constants."""
    rng, n = np.random.default_rng(4), 50
    lists = [np.sort(rng.choice(n, k, replace=False)).astype(np.int32) for k in (9, 0, 30, 4)]
    offsets, titles = np.cumsum([0, *map(len, lists)]), np.concatenate(lists)
    weights = rng.standard_normal(titles.size).astype(np.float32)
    mask = rng.random(n) < 0.5 if has_mask else np.empty(0, np.bool_)
    named, added = np.array([3, 7, 49], np.int32), np.array([2, -1, 0.5], np.float32)
    constants = rng.standard_normal(n).astype(np.float32)
    expected = np.zeros(n)
    for word in (0, 2):
        expected[lists[word]] += weights[offsets[word] : offsets[word + 1]]
    expected[named] += added
    is_met = np.isin(np.arange(n), np.concatenate([lists[0], lists[2], named]))
    if has_mask:
        is_met &= mask
    sums, met = np.zeros(n, np.float32), np.empty(n + 1, np.int32)
    words = np.array([0, 2], np.int32)
    n_met = walk(sums, met, 0, words, offsets, titles, weights, mask)
    n_met = add_values(sums, met, n_met, named, added, mask)
    assert sorted(met[:n_met].tolist()) == np.flatnonzero(is_met).tolist()
    np.testing.assert_allclose(sums, np.where(is_met, expected, 0), atol=1e-6)
    values = np.empty(n_met, np.float32)
    sums_of(values, met[:n_met], sums, constants)
    np.testing.assert_allclose(values, (expected + constants)[met[:n_met]], atol=1e-6)
    clear(sums, met[:n_met])
    assert not sums.any()


def test_entries_of_few_lists_are_added_to_those_of_the_same_words():
    offsets, titles = np.array([0, 3, 5]), np.array([1, 4, 6, 0, 2], np.int32)
    few_offsets, few_titles = np.array([0, 1, 3]), np.array([2, 1, 6], np.int32)
    net, weights = np.ones(5, np.float32), np.array([10, 20, 30], np.float32)
    numbers = np.array([1, 0])
    add_entries(net, np.float32(0.5), offsets, titles, numbers, few_offsets, few_titles, weights)
    assert net.tolist() == [11, 1, 16, 1, 6]
