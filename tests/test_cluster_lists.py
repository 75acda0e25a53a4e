"""Nearest titles that are looked up in clusters: the naive search, files, changes, commands."""

import json

import naive
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import list_again, made_up_model
from test_ranker_index import RECIPES, WORDS, made_up_texts

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.click_log import ClickLog
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.cluster_lists import ClusterLists
from sentemb.retrieval.nearest import nearest
from sentemb.retrieval.similarity import unit_rows
from sentemb.search.ranking import engine
from sentemb.search.ranking.parts import stored_rows
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.sharded_index import ShardedIndex
from sentemb.system.parallel import Workers

TITLES = [*made_up_texts(397, WORDS, seed=3), "...", "x7", "q9"]
IDS = [f"p{k}" for k in range(len(TITLES))]
QUERIES = [*made_up_texts(20, WORDS, seed=8), "nowhere"]
DTYPES = ["float32", "float16", "int8"]


def made_up_rows(n, dim=16, seed=0):
    """Unit vectors around twenty directions, a few of them zero, and which."""
    rng = np.random.default_rng(seed)
    middle = rng.standard_normal((20, dim))[rng.integers(0, 20, n)]
    rows = unit_rows((middle + 0.5 * rng.standard_normal((n, dim))).astype(np.float32))
    rows[3::97] = 0
    return rows, ~rows.any(axis=1)


@pytest.fixture(scope="module")
def bag():
    return made_up_model(("bag", {}), made_up_texts(60, WORDS), cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def index(bag):
    return Index.build(bag, TITLES, IDS, clusters=True, threads=1)


def stored(lists):
    return [getattr(lists, name).tolist() for name in ("centres", "offsets", "titles")]


# -- lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_titles_are_in_the_list_of_their_nearest_centre(dtype):
    vectors, is_empty = made_up_rows(1000)
    rows, queries = stored_rows(vectors, dtype), vectors[~is_empty][:50]
    with Workers(1) as workers:
        lists = ClusterLists.of(rows, is_empty, queries, workers)
        products = vectors @ lists.centres.T
        assert sorted(lists.titles.tolist()) == np.flatnonzero(~is_empty).tolist()
        for c in range(len(lists.centres)):
            titles = lists.titles[lists.offsets[c] : lists.offsets[c + 1]]
            assert (np.diff(titles) > 0).all()
            assert (products[titles, c] >= products[titles].max(axis=1) - 0.02).all()
        # The recall is that of the search.
        found, _ = lists.nearest(queries, rows, 10, None, workers)
        exact, _ = nearest(queries, rows, 10, ~is_empty, workers)
        shares = [
            len({*a} & {*b}) / 10 for a, b in zip(found.tolist(), exact.tolist(), strict=True)
        ]
        assert lists.recall == pytest.approx(np.mean(shares))
        most = len(lists.centres) // 8
        assert lists.recall >= 0.95 or lists.probed == most
    steps = []
    with Workers(3) as workers:
        again = ClusterLists.of(rows, is_empty, queries, workers, lambda *step: steps.append(step))
    assert steps == sorted(steps) and len({total for _, total in steps}) == 1
    assert steps[-1][0] == steps[-1][1]
    assert stored(again) == stored(lists)
    assert (again.probed, again.recall) == (lists.probed, lists.recall)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_search_is_the_naive_one(dtype, threads):
    vectors, is_empty = made_up_rows(300, dim=8)
    rows = stored_rows(vectors, dtype)
    exact_rows = (rows.codes * rows.scales[:, None] if dtype == "int8" else rows).astype(float)
    queries = made_up_rows(9, dim=8, seed=5)[0].astype(np.float64)
    mask = np.arange(300) % 3 > 0
    with Workers(threads) as workers:
        lists = ClusterLists.of(rows, is_empty, vectors[:2], workers)
        members = np.split(lists.titles.tolist(), lists.offsets[1:-1])
        for k in (1, 5, 60, 300):
            for allowed in (None, mask):
                found, scores = lists.nearest(queries, rows, k, allowed, workers)
                together, _ = lists.nearest(queries[:1], rows, k, allowed, workers)
                assert np.array_equal(together[0], found[0])
                for q, query in enumerate(queries):
                    expected = naive.nearest_of_clusters(
                        query, exact_rows, lists.centres.astype(float), members, lists.probed, k,
                        np.ones(300, bool) if allowed is None else allowed,
                    )  # fmt: skip
                    is_there = found[q] >= 0
                    assert found[q][is_there].tolist() == [title for title, _ in expected]
                    np.testing.assert_allclose(
                        scores[q][is_there], [score for _, score in expected], atol=1e-6
                    )


# -- an index ---------------------------------------------------------------------------------


def test_what_an_index_finds_has_exact_scores(index, bag):
    exact = Index.build(bag, TITLES, IDS, threads=1)
    assert exact.clusters is None and index.clusters is not None
    assert 0.5 < index.clusters.recall <= 1
    met = 0
    every = zip(index.search(QUERIES), exact.search(QUERIES), QUERIES, strict=True)
    for found, best, query in every:
        score_of = {hit.id: hit.score for hit in exact.search(query, len(TITLES))}
        assert all(hit.score == score_of[hit.id] for hit in found)
        assert len(found) == len(best) and found.reason == best.reason
        met += len({hit.id for hit in found} & {hit.id for hit in best})
    assert met > 0.8 * 10 * (len(QUERIES) - 1)
    for query in QUERIES[:3]:
        assert index.search([query])[0] == index.search(query)


def test_recall_is_measured_with_queries_of_the_log_if_there_are_some(bag, index, tmp_path):
    queries = [" ".join(title.split()[:2]) for title in TITLES[:200]]
    made = Index.build(bag, TITLES, IDS, clusters=queries, threads=1)
    assert made.clusters.measured_with == "queries"
    assert "for queries of the log when" in str(made.clusters)
    exact = Index.build(bag, TITLES, IDS, threads=1)
    both = zip(exact.search(queries), made.search(queries), strict=True)
    met = [
        len({hit.id for hit in best} & {hit.id for hit in near}) / len(best)
        for best, near in both
        if best
    ]
    assert made.clusters.recall == pytest.approx(np.mean(met), abs=0.02)
    made.save(tmp_path / "i")
    assert Index.open(tmp_path / "i").clusters.measured_with == "queries"
    for few in (True, [], queries[:49]):
        again = Index.build(bag, TITLES, IDS, clusters=few, threads=1)
        assert (again.clusters.measured_with, again.clusters.recall) == (
            "titles", index.clusters.recall
        )  # fmt: skip
    assert "for titles as queries when" in str(index.clusters)
    description = tmp_path / "i" / "index.json"
    values = json.loads(description.read_text())
    del values["clusters"]["measured_with"]  # as version 1.0 wrote it
    description.write_text(json.dumps(values))
    assert Index.open(tmp_path / "i").clusters.measured_with == "titles"


def test_searches_that_need_more_than_the_clusters_are_exact(index, bag):
    exact = Index.build(bag, TITLES, IDS, threads=1)
    assert index.search(QUERIES, 201) == exact.search(QUERIES, 201)
    few = IDS[::3]
    assert index.search(QUERIES, only=few) == exact.search(QUERIES, only=few)
    most = IDS[1:]
    allowed = index.search(QUERIES, only=most)
    assert all(hit.id != "p0" for hits in allowed for hit in hits)
    assert index.search("p7")[0].id == "p7"
    assert all(hit.id != "p7" for hit in index.similar("p7"))


def test_a_measurement_up_to_rank_100_looks_titles_up_in_the_clusters(index, monkeypatch):
    fetched, looked_up = [], ClusterLists.nearest

    def spy(lists, queries, rows, k, *others):
        fetched.append(k)
        return looked_up(lists, queries, rows, k, *others)

    monkeypatch.setattr(ClusterLists, "nearest", spy)
    clicks = ClickLog.from_pairs([(query, TITLES[0]) for query in QUERIES])
    evaluate_clicks(index, clicks, TITLES, ("recall@100",))
    assert fetched == [101]


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_index_on_disk_searches_as_in_memory(bag, dtype, tmp_path):
    made = Index.build(bag, TITLES, IDS, dtype=dtype, clusters=True, threads=1)
    made.save(tmp_path / "index")
    Index.verify(tmp_path / "index")
    described = json.loads((tmp_path / "index" / "index.json").read_text())["clusters"]
    assert described == {
        "count": len(made.clusters.centres),
        "probed": made.clusters.probed,
        "recall": made.clusters.recall,
        "measured_with": "titles",
    }
    for opened in (
        Index.open(tmp_path / "index", 3),
        Index.open(tmp_path / "index", 1, in_memory=True),
    ):
        assert stored(opened.clusters) == stored(made.clusters)
        assert opened.search(QUERIES) == made.search(QUERIES)
    Index.build(bag, TITLES, IDS, dtype=dtype, clusters=True, threads=3).save(tmp_path / "again")
    for name in ("centres", "offsets", "titles"):
        both = [(tmp_path / one / "clusters" / f"{name}.npy") for one in ("index", "again")]
        assert both[0].read_bytes() == both[1].read_bytes()


def test_titles_come_and_go(index, bag, tmp_path):
    changed = Index.build(bag, TITLES[:300], IDS[:300], clusters=True, threads=1)
    lists = changed.clusters
    changed.add(TITLES[300:], IDS[300:])
    changed.remove(IDS[50:60])
    left = [*range(50), *range(60, len(TITLES))]
    exact = Index.build(bag, [TITLES[k] for k in left], [IDS[k] for k in left], threads=1)
    listed = sorted(changed.clusters.titles.tolist())
    assert listed == np.flatnonzero(exact.vectors.any(axis=1)).tolist()
    with Workers(1) as workers:
        expected = lists.joined(exact.vectors[290:], 300, workers).without(
            ~np.isin(np.arange(len(TITLES)), range(50, 60))
        )
    assert stored(changed.clusters) == stored(expected)
    assert (changed.clusters.probed, changed.clusters.recall) == (lists.probed, lists.recall)
    changed.save(tmp_path / "index")
    assert Index.open(tmp_path / "index").search(QUERIES) == changed.search(QUERIES)
    changed.sync(["red hat", "blue coat"], ["a", "p3"])
    assert {hit.id for hit in changed.search("red hat")} == {"a", "p3"}
    changed.sync([], [])
    assert changed.search("red hat") == []
    changed.add(["red hat"], ["b"])
    assert [hit.id for hit in changed.search("red hat")] == ["b"]


def test_indexes_with_clusters_are_searched_together(index, bag):
    halves = {
        str(k): Index.build(bag, TITLES[k::2], IDS[k::2], clusters=True, threads=1) for k in (0, 1)
    }
    found = ShardedIndex(halves, 1).search(QUERIES[:5], 7)
    for hits, *of_halves in zip(
        found, *(half.search(QUERIES[:5], 7) for half in halves.values()), strict=True
    ):
        both = sorted((hit for half in of_halves for hit in half), key=lambda hit: -hit.score)
        assert [hit.score for hit in hits] == [hit.score for hit in both[:7]]


def test_sums_have_no_clusters(bag, index):
    clicks = ClickedQueries.of(ClickLog.from_pairs([("red hat", TITLES[0])]))
    ranker = HybridRanker(bag, RECIPES["all"], clicks)
    with pytest.raises(SentembError, match=r"clusters are for a ranking by the cosine alone; .*"):
        Index.build(ranker, TITLES, clusters=True)
    with pytest.raises(SentembError, match="no title has a word that the model knows"):
        Index.build(bag, ["...", "x7"], clusters=True)
    assert index.ranked_by(ranker).clusters is None
    assert engine.MOST_OF_CLUSTERS == 200


REFUSED = {
    "centres": [
        lambda a: a[1:], lambda a: a.astype(np.float64), lambda a: a + np.nan, lambda a: a * 9,
    ],
    "offsets": [lambda a: a[1:], lambda a: a + 1, lambda a: a[::-1], lambda a: a.astype(np.int32)],
    "titles": [
        lambda a: a[1:], lambda a: a - 1, lambda a: a + 1000, lambda a: a * 0,
        lambda a: np.where(a == 5, 397, a).astype(np.int32),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_damaged_clusters_are_refused(index, name, tmp_path):
    """Also where sizes and checksums fit."""
    folder = tmp_path / "index"
    index.save(folder)
    file, described = folder / "clusters" / f"{name}.npy", (folder / "index.json").read_bytes()
    whole = np.load(file)
    for change in REFUSED[name]:
        np.save(file, change(whole))
        with pytest.raises(SentembError, match="the index is damaged"):
            Index.open(folder)
        list_again(folder)
        with pytest.raises(SentembError, match=rf"clusters/{name}.npy: the index is damaged") as e:
            Index.open(folder)
        assert "\n" not in str(e.value)
        (folder / "index.json").write_bytes(described)
    np.save(file, whole)
    values = json.loads(described)
    for wrong in (
        {}, 3, {"count": 1}, {**values["clusters"], "probed": 0}, {**values["clusters"], "more": 1},
        {**values["clusters"], "probed": 10**6}, {**values["clusters"], "recall": 2},
        {**values["clusters"], "recall": None}, {**values["clusters"], "count": "20"},
        {**values["clusters"], "measured_with": "x"},
    ):  # fmt: skip
        (folder / "index.json").write_text(json.dumps(values | {"clusters": wrong}))
        with pytest.raises(SentembError, match='"clusters" is missing or wrong'):
            Index.open(folder)
    (folder / "index.json").write_text(json.dumps(values | {"clusters": None}))
    with pytest.raises(SentembError, match="it lists other files"):
        Index.open(folder)
    del values["clusters"]
    for made in (folder / "clusters").iterdir():
        del values["files"][f"clusters/{made.name}"]
    (folder / "index.json").write_text(json.dumps(values))
    with pytest.raises(SentembError, match='"clusters" is missing or wrong'):
        Index.open(folder)


def test_the_commands_say_the_recall(bag, tmp_path):
    bag.save_pretrained(tmp_path / "model")
    lines = "".join(f"{id}\t{title}\n" for id, title in zip(IDS, TITLES, strict=True))
    (tmp_path / "titles.tsv").write_text(lines)

    def run(*arguments):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result

    index = tmp_path / "index"
    made = run("index", tmp_path / "model", tmp_path / "titles.tsv", "-o", index, "--clusters")
    lists = Index.open(index).clusters
    recall = f"recall@10 {lists.recall:.3f} for titles as queries when they were made"
    said = f"a query meets {lists.probed} of 80; {recall}"
    assert f"clusters: {said}" in made.stderr
    assert said in run("info", index).stdout
    assert json.loads(run("info", index, "--json").stdout)["clusters"] == said
    wrong = CliRunner().invoke(main, ["index", str(index), "--add", "x", "--clusters"])
    assert "--clusters is for a new index" in wrong.stderr
