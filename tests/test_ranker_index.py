"""An index with the ranker of a model: it scores as the ranker does, stored and changed."""

import copy
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
from helpers import WordSums, made_up_model

from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLog, ClickLogBuilder
from sentemb.data.examinations import Examinations, Shown
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.index_tuning import tune
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE, Recipe

WORDS = ["red", "green", "blue", "small", "large", "cotton", "woollen", "hat", "bag", "coat"]
# Words that the model does not know: their trigrams are in no title that it was made from.
UNKNOWN = ["x7", "q9"]
QUERIES = ["red hat", "large woollen coat", "blue", "x7", "red x7", "cotton cotton", "nowhere", ""]
WEIGHTS = {"cosine": 1.0, "memory": 0.8, "bm25": 0.3, "clicked_bm25": -0.1, "unclicked": 0.2}
WEIGHTS |= {"clicks": 0.4, "name": 0.3, "examined": 0.2}
RECIPE = Recipe(WEIGHTS, k1=1.2, b=0.6)
RECIPES = {
    "all": RECIPE,
    "embedding": RECIPE.weighted({**WEIGHTS, "embedding": 0.5}),
    "no cosine": Recipe({"memory": 1.0, "bm25": 0.5}),
    "memory": Recipe({"memory": 1.0}),
    "words": Recipe({"bm25": 1.0}),
    "against words": Recipe({"cosine": 1.0, "bm25": -0.2}),
    "twice the cosine": Recipe({"cosine": 2.0}),
}


def made_up_texts(n, words, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(n)]


TITLES = [*made_up_texts(147, [*WORDS, *UNKNOWN], seed=1), "x7 q9", "q9", "..."]
IDS = [f"p{place}" for place in range(len(TITLES))]


@pytest.fixture(scope="module")
def bag():
    return made_up_model(("bag", {}), made_up_texts(60, WORDS), cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def clicks():
    builder, rng = ClickLogBuilder(), np.random.default_rng(5)
    for query in [*made_up_texts(70, WORDS, seed=2), "x7", "q9 q9"]:
        for place in rng.integers(0, len(TITLES) - 1, rng.integers(1, 4)):
            builder.add(query, TITLES[place], int(rng.integers(1, 9)))
    builder.add("red", "not in the index")
    return builder.build()


@pytest.fixture(scope="module")
def rankers(bag, clicks):
    """A function that makes the ranker of a recipe."""
    rng = np.random.default_rng(8)
    examinations = Examinations.of(
        Shown(query, IDS[k], TITLES[k], int(rng.integers(1, 9)), int(rng.integers(1, 5)))
        for query in clicks.queries
        for k in rng.integers(0, len(TITLES), 4).tolist()
        if TITLES.count(TITLES[k]) == 1  # without ids, equal titles are one product
    )
    known = replace(ClickedQueries.of(clicks), examinations=examinations)
    embedding = Embedding.of(WordSums())
    return lambda recipe: HybridRanker(bag, recipe, known, threads=1, embedding=embedding)


def opened_index(path, threads=None):
    """An index whose embedding, if it has one, is given again."""
    index = Index.open(path, threads)
    if index.ranker.embedding is not None:
        index.ranker.embedding.use(WordSums())
    return index


@pytest.fixture
def index(rankers):
    return Index.build(rankers(RECIPE), TITLES, IDS, threads=1)


# -- scores -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", RECIPES)
def test_an_index_scores_as_its_ranker_to_the_bit(rankers, name, tmp_path):
    ranker = rankers(RECIPES[name])
    index = Index.build(ranker, TITLES, IDS, threads=1)
    assert index.recipe == ranker.recipe
    expected = ranker.over(TITLES).find(QUERIES, 12)
    index.save(tmp_path / "index")
    opened = opened_index(tmp_path / "index", 1)
    Index.verify(tmp_path / "index")
    for one in (index, opened, copy.deepcopy(index), pickle.loads(pickle.dumps(opened))):
        assert one.recipe == ranker.recipe and one.search(QUERIES, 12) == index.search(QUERIES, 12)
        assert all(map(np.array_equal, one.find(QUERIES, 12), expected))
    opened.save(tmp_path / "index", force=True)
    assert opened_index(tmp_path / "index", 3).search(QUERIES, 12) == index.search(QUERIES, 12)


def test_hits_say_what_they_consist_of(index, clicks):
    for query, hits in zip(QUERIES, index.search(QUERIES, 6), strict=True):
        explained = index.explain(query, [hit.id for hit in hits])
        for hit, shares in zip(hits, explained, strict=True):
            assert list(hit.parts) == [share.part for share in shares] == list(RECIPE.parts)
            assert [part["value"] for part in hit.parts.values()] == [
                share.value for share in shares
            ]
            assert [part["added"] for part in hit.parts.values()] == [
                share.added for share in shares
            ]
            assert sum(share.added for share in shares) == pytest.approx(hit.score, abs=1e-12)
            nearest = shares[1].nearest
            if nearest is not None:
                known = clicks.queries if nearest.is_clicked else [hit.title]
                assert nearest.text in known and nearest.value == hit.parts["memory"]["value"]
    of_cosine = index.explain("red", ["p1"], cosine=True)
    assert [(share.part, share.weight) for share in of_cosine[0]] == [("cosine", 1.0)]
    with pytest.raises(SentembError, match="the id nowhere is not in the index"):
        index.explain("red", ["p1", "nowhere"])


def test_words_find_what_the_model_does_not_know(index, bag):
    assert not bag.unit_vectors(["x7"], "query").any()
    hits = {hit.id: hit for hit in index.search("x7", 300)}
    assert {id for id, title in zip(IDS, TITLES, strict=True) if "x7" in title.split()} <= {*hits}
    assert all(
        hit.parts["cosine"]["value"] == 0 < hit.parts["bm25"]["value"] for hit in hits.values()
    )
    assert index.search("x7", cosine=True) == []
    assert index.n_empty > 1 and not {"p149"} & {hit.id for hit in index.search("red", 300)}
    assert index.search("nowhere") == [] and index.search("") == []


def test_the_cosine_alone_is_an_index_of_the_model(index, rankers, bag, tmp_path):
    plain = Index.build(bag, TITLES, IDS, threads=1)
    assert index.search(QUERIES, cosine=True) == plain.search(QUERIES)
    other = Index.build(rankers(MODEL_ALONE), TITLES, IDS, threads=1)
    assert other.search(QUERIES) == plain.search(QUERIES)
    for one, name in ((plain, "plain"), (other, "ranker")):
        one.save(tmp_path / name)
    names = [sorted(p.relative_to(tmp_path / name) for p in (tmp_path / name).rglob("*"))
             for name in ("plain", "ranker")]  # fmt: skip
    assert names[0] == names[1]
    told = [(tmp_path / name / "index.json").read_bytes() for name in ("plain", "ranker")]
    assert told[0] == told[1]


def test_filters_do_not_change_scores(index):
    for query in QUERIES:
        everything = index.search(query, 200)
        allowed = {*IDS[::3]}
        left = [hit for hit in everything if hit.id in allowed]
        assert index.search(query, 9, only=allowed) == left[:9]
        least = everything[len(everything) // 2].score if everything else 0
        found = index.search(query, 200, min_score=least)
        assert found == [hit for hit in everything if hit.score >= least]


def test_equal_scores_are_in_the_order_of_titles(rankers):
    """Equal titles have equal clicks: those of their text."""
    index = Index.build(rankers(RECIPE), [title for title in TITLES for _ in range(3)], threads=1)
    for k in (1, 2, 7, 450):
        for hits in index.search(QUERIES, k):
            keys = [(-hit.score, int(hit.id)) for hit in hits]
            assert keys == sorted(keys)
            assert {place // 3 for _, place in keys} == {place // 3 for _, place in keys[::3]}


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_other_dtypes_find_about_the_same(index, rankers, dtype, tmp_path):
    small = Index.build(rankers(RECIPE), TITLES, IDS, dtype=dtype, threads=1)
    small.save(tmp_path / "index")
    assert small.dtype == Index.open(tmp_path / "index").dtype == dtype
    assert Index.open(tmp_path / "index", 1).search(QUERIES) == small.search(QUERIES)
    for query in QUERIES:
        scores = [[hit.score for hit in one.search(query, 9)] for one in (small, index)]
        np.testing.assert_allclose(*scores, atol=4e-2)


def test_clicks_belong_to_ids_and_then_to_titles(bag):
    clicks = ClickedQueries(
        ["7", "8"],
        ["small coat", "blue"],
        np.array([0, 1, 2]),
        np.array([0, 1], np.int32),
        np.array([3, 4]),
        ["red hat", "green bag"],
        np.array([0, 1], np.int32),
    )
    ranker = HybridRanker(bag, Recipe({"clicked_bm25": 1.0, "cosine": 1e-3}), clicks)
    titles = ["red hat", "red hat", "other"]
    index = Index.build(ranker, titles, ["8", "x", "7"])
    clicked = [{hit.id for hit in index.search(query) if hit.parts["clicked_bm25"]["value"]}
               for query in ("small coat", "blue")]  # fmt: skip
    assert clicked == [{"x", "7"}, {"8"}]
    index.add(["blue bag", "green bag"], ["9", "10"])
    assert {hit.id for hit in index.search("blue") if hit.parts["clicked_bm25"]["value"]} == {
        "8",
        "10",
    }


# -- changes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["all", "embedding"])
def test_added_and_removed_is_as_built_from_the_rest(rankers, name, tmp_path):
    ranker = rankers(RECIPES[name])
    first = Index.build(ranker, TITLES[:100], IDS[:100], threads=1)
    first.save(tmp_path / "index")
    changed = opened_index(tmp_path / "index", 1)
    changed.add(TITLES[100:], IDS[100:])
    changed.remove(IDS[20:80])
    left = [*range(20), *range(80, 150)]
    titles, ids = [TITLES[place] for place in left], [IDS[place] for place in left]
    again = Index.build(ranker, titles, ids, threads=1)
    assert changed.search(QUERIES, 90) == again.search(QUERIES, 90)
    assert changed.explain("red x7", ids) == again.explain("red x7", ids)
    changed.save(tmp_path / "index", force=True)
    again.save(tmp_path / "again")
    parts = {"cosine", "memory", "unclicked", "embedding"} & {*again.recipe.parts}
    for part in parts:
        for file in (tmp_path / "again" / part).iterdir():
            assert file.read_bytes() == (tmp_path / "index" / part / file.name).read_bytes()
    assert opened_index(tmp_path / "index", 1).search(QUERIES, 90) == again.search(QUERIES, 90)
    with pytest.raises(SentembError, match="the id p0 is in the index already"):
        changed.add(["one", "two"], ["new", "p0"])
    assert changed.search(QUERIES, 90) == again.search(QUERIES, 90)
    changed.remove(ids)
    assert changed.search(QUERIES, 20) == [[]] * len(QUERIES)
    changed.add(TITLES, IDS)
    assert changed.search(QUERIES) == Index.build(ranker, TITLES, IDS, threads=1).search(QUERIES)


def test_a_synced_index_has_the_titles_and_clicks_that_it_was_given(rankers):
    """A title whose text changes keeps the clicks of its id and moves to the end."""
    ranker = rankers(RECIPE).with_ids(TITLES, IDS)
    index = Index.build(ranker, TITLES[:100], IDS[:100], threads=1)
    changed = {IDS[place]: f"{TITLES[place]} velvet" for place in (7, 3, 50)}
    wanted = {
        id: changed.get(id, title) for id, title in zip(IDS[90:4:-1], TITLES[90:4:-1], strict=True)
    }
    wanted |= {"p3": changed["p3"], "new": "red velvet hat", "p120": TITLES[120]}
    assert index.sync([*wanted.values()], [*wanted]) == (2, 3, 13)
    assert dict(zip(index.ids, index.titles, strict=True)) == wanted
    again = Index.build(ranker, index.titles, index.ids, threads=1)
    assert index.search(QUERIES, 90) == again.search(QUERIES, 90)
    assert [*index.ids][-5:] == [id for id in wanted if id in changed or id in ("new", "p120")]
    unchanged = index.snapshot
    assert index.sync([*wanted.values()], [*wanted]) == (0, 0, 0) and index.snapshot is unchanged
    with pytest.raises(SentembError, match="titles 0 and 1 have the same id, a"):
        index.sync(["red", "blue"], ["a", "a"])
    assert index.snapshot is unchanged
    assert index.sync([], []) == (0, 0, 89) and len(index) == 0


def test_another_ranker_makes_another_index(index, rankers, bag):
    for recipe in (*RECIPES.values(), MODEL_ALONE):
        own = copy.copy(index)
        own.adopt(own.ranked_by(rankers(recipe)), own.snapshot)
        expected = Index.build(rankers(recipe), TITLES, IDS, threads=1)
        assert own.recipe == recipe and own.search(QUERIES) == expected.search(QUERIES)
    other = made_up_model(("bag", {}), made_up_texts(30, WORDS), cells=12, dtype=np.float32, seed=4)
    with pytest.raises(SentembError, match="the ranker is of another model"):
        index.ranked_by(HybridRanker(other, MODEL_ALONE))


def test_tune_fits_the_ranker_that_the_index_then_has(index, clicks, tmp_path):
    dev = ClickLogBuilder()
    for place in range(0, 90, 2):
        dev.add(f"{TITLES[place]} woollen", TITLES[place])
    dev.add(clicks.queries[0], clicks.titles[0])
    dev = dev.build()
    for log in (None, clicks):
        own, notes, steps = copy.copy(index), [], []
        ranker = tune(own, dev, log, on_note=notes.append, on_progress=lambda *s: steps.append(s))  # noqa: B023
        assert own.ranker is ranker and own.recipe == ranker.recipe != RECIPE
        # All clicks are kept for good, and those of dev queries were not seen.
        assert list(ranker.clicks.queries) == clicks.queries
        assert ranker.dev["queries"] == len(dev.queries) and steps[-1][0] == steps[-1][1]
        hits = own.search(dev.queries, 1)
        expected = Index.build(ranker, TITLES, IDS, threads=1)
        assert hits == expected.search(dev.queries, 1)
    own.save(tmp_path / "index")
    assert Index.open(tmp_path / "index").ranker.dev == ranker.dev
    assert tune(copy.copy(index), dev).recipe == tune(copy.copy(index), dev, seed=0).recipe


def test_clicks_of_dev_queries_are_not_seen_while_an_index_is_tuned(index, clicks):
    held_out = [(f"woollen {TITLES[place]} rare", clicks.titles[place]) for place in range(40)]
    dev = ClickLog.from_pairs(held_out)
    pairs = [
        (clicks.queries[q], clicks.titles[t], int(n))
        for q, t, n in zip(clicks.query_index, clicks.title_index, clicks.clicks, strict=True)
    ]
    # In another spelling, too.
    seen = [(f"RARE, {query.removesuffix(' rare')}!", title) for query, title in held_out]
    recipes = [
        tune(copy.copy(index), dev, ClickLog.from_pairs([*pairs, *more])).recipe
        for more in ([], held_out, seen)
    ]
    assert recipes[0] == recipes[1] == recipes[2]


# -- confidence -------------------------------------------------------------------------------


def test_confidence_belongs_to_the_scores(index, rankers, tmp_path):
    assert index.search("red hat", 2)[0].confidence is None
    of_each = Confidence(-1.0, 2.0, 50, 0.2, 0.25)
    index.confidence = replace(of_each, typed=of_each)
    first, second = index.search("red hat", 2)
    assert first.confidence == pytest.approx(1 / (1 + np.exp(1 - 2 * first.score)))
    assert second.confidence is None
    assert index.search("red hat", cosine=True)[0].confidence is None
    index.save(tmp_path / "index")
    for one in (Index.open(tmp_path / "index", 1), pickle.loads(pickle.dumps(index))):
        assert one.confidence == index.confidence and one.search(QUERIES) == index.search(QUERIES)
    sure = [hits[0].confidence if hits else -1 for hits in index.search(QUERIES)]
    least = float(np.median(sure))
    kept = index.search(QUERIES, min_confidence=least)
    assert [bool(hits) for hits in kept] == [one >= least for one in sure]
    for wrong in (-0.1, 2, "x"):
        with pytest.raises(SentembError, match=r"min_confidence is .*; give a share from 0 to 1"):
            index.search("red", min_confidence=wrong)
    with pytest.raises(SentembError, match="not calibrated for these weights"):
        index.search("red", cosine=True, min_confidence=0.5)
    # Nothing is found for a query: no score, no confidence.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.search(["nowhere", "red"], 1, min_confidence=0.0)[0] == []
    # New titles have scores of the same kind; other weights make others.
    index.remove(["p1"])
    index.add(["red red"], ["new"])
    assert index.confidence is not None
    index.adopt(index.ranked_by(rankers(RECIPES["memory"])), index.snapshot)
    assert index.confidence is None
    index.confidence = Confidence(-1.0, 2.0, 50, 0.2, 0.25)
    index.remove([*index.ids])
    assert index.confidence is not None and index.search(QUERIES) == [[]] * len(QUERIES)


# -- files ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_an_index_in_memory_does_not_look_at_its_files_again(rankers, tmp_path, dtype):
    made = Index.build(rankers(RECIPE), TITLES, IDS, dtype=dtype, threads=1)
    made.save(tmp_path / "index")
    kept = Index.open(tmp_path / "index", threads=1, in_memory=True)
    for path in (tmp_path / "index").rglob("*"):
        if path.is_file():
            with path.open("r+b") as file:
                file.write(bytes(path.stat().st_size))
    for query in QUERIES:
        assert kept.search(query, 9) == made.search(query, 9)
    assert kept.explain("hat", IDS) == made.explain("hat", IDS)
    kept.add(["a new x7"], ["new"])
    made.add(["a new x7"], ["new"])
    assert kept.search("x7", 50) == made.search("x7", 50)


def test_an_index_keeps_its_clicks_when_its_folder_is_replaced(rankers, clicks, bag, tmp_path):
    """All is mapped, also what is read when it is first needed."""
    folder = tmp_path / "index"
    Index.build(rankers(RECIPE), TITLES, IDS, threads=1).save(folder)
    opened, before = Index.open(folder, 1), Index.open(folder, 1)
    expected, explained = before.search(QUERIES), before.explain("red", ["p1"])
    pairs = [(f"{query} other", title) for query, title in zip(clicks.queries, TITLES)]  # noqa: B905
    other = HybridRanker(bag, RECIPE, ClickedQueries.of(ClickLog.from_pairs(pairs)))
    Index.build(other, TITLES, IDS, threads=1).save(folder, force=True)
    assert opened.search(QUERIES) == expected and opened.explain("red", ["p1"]) == explained
    for index in (opened, before):
        index.add(["red"], ["new"])
    assert opened.search(QUERIES) == before.search(QUERIES)
    assert opened.search("red", only=["new"])[0].id == "new"


def test_verify_reads_the_clicks(index, tmp_path):
    index.save(tmp_path / "index")
    path = tmp_path / "index/model/ranker/ranker.safetensors"
    raw = path.read_bytes()
    path.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))
    assert Index.open(tmp_path / "index", 1).search(QUERIES) == index.search(QUERIES)
    with pytest.raises(
        SentembError, match=r"the ranker is damaged: .* does not match its checksum"
    ):
        Index.verify(tmp_path / "index")
