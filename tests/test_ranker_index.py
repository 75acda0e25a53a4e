"""An index with the ranker of a model: it scores as the ranker does, stored and changed."""

import copy
import json
import pickle

import numpy as np
import pytest
from helpers import list_again, made_up_model

from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLogBuilder
from sentemb.ranking.ranker import HybridRanker
from sentemb.ranking.recipe import Recipe
from sentemb.search.confidence import Confidence

WORDS = ["red", "green", "blue", "small", "large", "cotton", "woollen", "hat", "bag", "coat"]
# Words that the model does not know.
UNKNOWN = ["x7", "q9"]
QUERIES = ["red hat", "large woollen coat", "blue", "x7", "red x7", "cotton cotton"]
RECIPE = Recipe(1.0, 0.3, 0.8, k1=1.2, b=0.6, click_weight=0.5)
RECIPES = {
    "all": RECIPE,
    "no cosine": Recipe(0.0, 0.5, 1.0),
    "memory": Recipe(0.0, 0.0, 1.0),
    "titles only": Recipe(1.0, 0.4, 1.5, click_weight=0.0),
}

pytestmark = pytest.mark.filterwarnings("ignore:.*no word that the model knows:UserWarning")


def made_up_texts(n, words, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(n)]


TITLES = made_up_texts(150, [*WORDS, *UNKNOWN], seed=1)
IDS = [f"p{place}" for place in range(len(TITLES))]


@pytest.fixture(scope="module")
def bag():
    return made_up_model(("bag", {}), made_up_texts(60, WORDS), cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def clicks():
    builder, rng = ClickLogBuilder(), np.random.default_rng(5)
    for query in [*made_up_texts(70, WORDS, seed=2), "x7", "q9 q9"]:
        for place in rng.integers(0, len(TITLES), rng.integers(1, 4)):
            builder.add(query, TITLES[place])
    builder.add("red", "not in the index")
    return builder.build()


@pytest.fixture
def index(bag, clicks):
    return Index.build(bag, TITLES, IDS, ranker=HybridRanker(bag, RECIPE, clicks), threads=1)


@pytest.mark.parametrize("name", RECIPES)
def test_an_index_scores_as_the_ranker_of_its_model(bag, clicks, name, tmp_path):
    ranker = HybridRanker(bag, RECIPES[name], clicks, TITLES)
    index = Index.build(bag, TITLES, IDS, ranker=ranker, threads=1)
    assert index.recipe == ranker.recipe
    places, scores = index.find(QUERIES, 12)
    _, expected = ranker.find(QUERIES, 12)
    found = places >= 0
    # The ranker scores titles that nothing finds, too: with 0.
    np.testing.assert_allclose(scores[found], expected[found], atol=2e-6)
    assert (np.abs(expected[~found]) < 1e-6).all() and found[:3].all()
    pairs = np.nonzero(found)[0], places[found]
    np.testing.assert_allclose(
        scores[found], ranker.score_pairs(QUERIES, TITLES, *pairs), atol=2e-6
    )
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", 1)
    assert opened.recipe == index.recipe
    for one in (opened, copy.deepcopy(index), pickle.loads(pickle.dumps(opened))):
        assert one.search(QUERIES, 12) == index.search(QUERIES, 12)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_other_dtypes_and_filters_find_about_the_same(index, bag, clicks, dtype):
    ranker = HybridRanker(bag, RECIPE, clicks)
    small = Index.build(bag, TITLES, IDS, ranker=ranker, dtype=dtype, threads=1)
    for query in QUERIES:
        scores = [[hit.score for hit in one.search(query, 9)] for one in (small, index)]
        np.testing.assert_allclose(*scores, atol=4e-2)
        everything = {hit.id: hit for hit in index.search(query, 200)}
        only = index.search(query, 9, only=IDS[::3])
        assert all(everything[hit.id].score == hit.score for hit in only)
        own = sorted((hit.score for id, hit in everything.items() if int(id[1:]) % 3 == 0))
        assert [hit.score for hit in only] == own[::-1][:9]


def test_hits_say_what_they_consist_of(index):
    for query, hits in zip(QUERIES, index.search(QUERIES, 6), strict=True):
        best = max(hit.bm25 for hit in index.search(query, 200)) or 1
        nearest = index.nearest_clicked(query, [hit.id for hit in hits])
        for hit, clicked in zip(hits, nearest, strict=True):
            total = hit.cosine + 0.3 * hit.bm25 / best + 0.8 * hit.memory
            assert hit.score == pytest.approx(total, abs=1e-6)
            assert hit.memory == max(hit.cosine, -1 if clicked is None else clicked.cosine)
            assert hit.as_dict()["memory"] == hit.memory
    assert index.nearest_clicked("x7", IDS[:3]) == [None] * 3, "no known word"
    with pytest.raises(SentembError, match="the id nowhere is not in the index"):
        index.nearest_clicked("red", ["p1", "nowhere"])
    assert index.search("nowhere") == [] and index.search("") == []


def test_a_recipe_of_the_cosine_alone_is_a_plain_index(bag, clicks, tmp_path):
    plain = Index.build(bag, TITLES, IDS, threads=1)
    index = Index.build(bag, TITLES, IDS, ranker=HybridRanker(bag, Recipe()), threads=1)
    assert index.search(QUERIES) == plain.search(QUERIES)
    assert "memory" not in plain.search("red", 1)[0].as_dict()
    for one, name in ((plain, "plain"), (index, "ranker")):
        one.save(tmp_path / name)
    told = (tmp_path / "plain" / "index.json").read_bytes()
    assert told == (tmp_path / "ranker" / "index.json").read_bytes()
    found = json.loads(told)
    assert (found["format"], found["memory"], found["cosine"]) == (1, None, 1)


def test_a_ranker_of_bm25_alone_finds_what_bm25_finds(bag, clicks):
    ranker = HybridRanker(bag, Recipe(0.0, 1.0, click_weight=0.5), clicks, TITLES)
    index = Index.build(bag, TITLES, IDS, ranker=ranker, threads=1)
    _, scores = index.find(QUERIES, 150)
    _, expected = ranker.find(QUERIES, 150)
    np.testing.assert_allclose(scores[scores > 0], expected[expected > 0], atol=1e-6)
    assert (scores[scores <= 0] == -np.inf).all(), "only titles with a word of the query"
    plain = Index.build(bag, TITLES, IDS, threads=1)
    assert index.search(QUERIES, bm25_weight=0) == plain.search(QUERIES)


def test_add_and_remove_equal_a_new_index(bag, clicks, tmp_path):
    ranker = HybridRanker(bag, RECIPE, clicks)
    new = made_up_texts(20, WORDS, seed=9)
    index = Index.build(bag, TITLES, IDS, ranker=ranker, threads=1)
    index.save(tmp_path / "index")
    changed = Index.open(tmp_path / "index", 1)
    changed.add([f"new {title}" for title in new], [f"n{place}" for place in range(20)])
    changed.remove(IDS[20:80])
    left = [place for place in range(150) if not 20 <= place < 80]
    titles = [*(TITLES[place] for place in left), *(f"new {title}" for title in new)]
    ids = [*(IDS[place] for place in left), *(f"n{place}" for place in range(20))]
    again = Index.build(bag, titles, ids, ranker=ranker, threads=1)
    assert changed.search(QUERIES, 20) == again.search(QUERIES, 20)
    changed.save(tmp_path / "index", force=True)
    again.save(tmp_path / "again")
    for name in ("queries.txt", "vectors.npy", "list-titles.npy"):
        own, other = (tmp_path / folder / "memory" / name for folder in ("index", "again"))
        assert own.read_bytes() == other.read_bytes()
    assert Index.open(tmp_path / "index", 1).search(QUERIES, 20) == again.search(QUERIES, 20)
    changed.remove(ids)
    assert changed.search(QUERIES, 20) == [[]] * len(QUERIES)


def test_an_index_with_a_log_can_get_a_memory_later(bag, clicks, tmp_path):
    index = Index.build(bag, TITLES, IDS, bm25=True, log=clicks, threads=1)
    before = index.search(QUERIES)
    assert all(hit.memory is None for hits in before for hit in hits)
    index.save(tmp_path / "index")
    assert not (tmp_path / "index" / "memory" / "vectors.npy").exists()
    opened = Index.open(tmp_path / "index", 1)
    assert opened.search(QUERIES) == before
    opened.set_bm25(1.2, 0.6, 0.3, 0.5)
    opened.set_weights(1.0, 0.8)
    ranker = HybridRanker(bag, RECIPE, clicks)
    other = Index.build(bag, TITLES, IDS, ranker=ranker, threads=1)
    assert opened.recipe == RECIPE and opened.search(QUERIES) == other.search(QUERIES)
    opened.save(tmp_path / "index", force=True)
    assert Index.open(tmp_path / "index", 1).search(QUERIES) == other.search(QUERIES)
    opened.set_bm25(0.9, 0.4, 0.1, 1.0)
    opened.set_weights(1.0, 0.0)
    assert opened.search(QUERIES) == before


def test_confidence_belongs_to_all_weights(index, tmp_path):
    for change in (
        lambda: index.set_weights(1.0, 0.5),
        lambda: index.set_weights(0.5, 0.8),
        lambda: index.set_bm25(1.2, 0.6, 0.3, 1.0),
    ):
        index.confidence = Confidence(-1.0, 2.0, 50, 0.2, 0.25)
        change()
        assert index.confidence is None
    index.confidence = Confidence(-1.0, 2.0, 50, 0.2, 0.25)
    index.save(tmp_path / "index")
    assert Index.open(tmp_path / "index", 1).confidence == index.confidence


def test_what_is_refused(bag, clicks, index):
    ranker = HybridRanker(bag, RECIPE, clicks)
    with pytest.raises(SentembError, match="the ranker has a BM25 of its own"):
        Index.build(bag, TITLES, IDS, ranker=ranker, bm25=True)
    for given in ({"log": clicks}, {"stem": "english"}):
        with pytest.raises(SentembError, match="the ranker has a BM25 of its own"):
            Index.build(bag, TITLES, IDS, ranker=ranker, **given)
    with pytest.raises(SentembError, match="ranker must be a HybridRanker, not SentenceEncoder"):
        Index.build(bag, TITLES, IDS, ranker=bag)
    other = made_up_model(("bag", {}), made_up_texts(30, WORDS), cells=12, dtype=np.float32, seed=4)
    with pytest.raises(SentembError, match="the ranker is of another model"):
        Index.build(other, TITLES, IDS, ranker=ranker)
    plain = Index.build(bag, TITLES, IDS, threads=1)
    with pytest.raises(SentembError, match="the index has no clicked queries"):
        plain.set_weights(1.0, 0.5)
    for weights in ((-1, 0), (1, -1), (1, 2000), (1, None)):
        with pytest.raises(SentembError, match="the weight of the"):
            index.set_weights(*weights)


def test_damaged_files_are_refused(index, tmp_path):
    folder = tmp_path / "index"
    index.save(folder)
    Index.verify(folder)
    memory = folder / "memory"
    for name, change in {
        "list-offsets.npy": lambda a: a[::-1],
        "list-titles.npy": lambda a: a + 1000,
        "query-offsets.npy": lambda a: a + 1,
        "vectors.npy": lambda a: a.astype(np.float64),
    }.items():
        file = memory / name
        whole = file.read_bytes()
        np.save(file, change(np.load(file)))
        with pytest.raises(SentembError, match="the index is damaged"):
            Index.open(folder)
        listed = (folder / "index.json").read_bytes()
        list_again(folder)
        with pytest.raises(SentembError, match="the index is damaged"):
            Index.open(folder)
        (folder / "index.json").write_bytes(listed)
        file.unlink()
        with pytest.raises(SentembError, match="it is missing"):
            Index.open(folder)
        file.write_bytes(whole)
    file = memory / "vectors.npy"
    rows = np.load(file)
    np.save(file, rows * 9)
    listed = (folder / "index.json").read_bytes()
    list_again(folder)
    with pytest.raises(SentembError, match=r"memory.vectors\.npy.*a vector is not of unit length"):
        Index.open(folder, 1).search(QUERIES)
    (folder / "index.json").write_bytes(listed)
    np.save(file, rows)
    description = folder / "index.json"
    told = json.loads(description.read_text())
    own = told["memory"]
    for wrong in (
        {"memory": {**own, "weight": -1}},
        {"memory": {**own, "queries": "3"}},
        {"memory": 3},
        {"cosine": None},
        {"cosine": 1e9},
    ):
        description.write_text(json.dumps(told | wrong))
        with pytest.raises(SentembError, match="is missing or wrong"):
            Index.open(folder)
    description.write_text(json.dumps(told | {"memory": {**own, "queries": own["queries"] - 1}}))
    with pytest.raises(SentembError, match="the index is damaged"):
        Index.open(folder)
