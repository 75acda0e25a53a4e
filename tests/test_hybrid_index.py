"""An index with BM25: what it finds, stores and keeps in step."""

import copy
import json
import pickle
import warnings

import numpy as np
import pytest
from helpers import list_again, made_up_model
from naive import bm25_scores

from sentemb import Index, SentembError
from sentemb.baselines.clicked_queries import with_clicked_queries
from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.data.click_log import ClickLogBuilder
from sentemb.search.confidence import Confidence
from sentemb.search.lexical import WEIGHT

WORDS = ["red", "green", "blue", "small", "large", "cotton", "woollen", "hat", "bag", "coat"]
# Words that the model does not know: their trigrams are in no title that it was made from.
UNKNOWN = ["x7", "q9"]
QUERIES = ["red hat", "large woollen coat", "blue", "x7", "red x7"]


def made_up_titles(n, words, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(words, rng.integers(1, 5))) for _ in range(n)]


KNOWN = made_up_titles(60, WORDS)
TITLES = made_up_titles(200, [*WORDS, *UNKNOWN], seed=1)
IDS = [f"p{place}" for place in range(200)]


pytestmark = pytest.mark.filterwarnings("ignore:.*no word that the model knows:UserWarning")


@pytest.fixture(scope="module")
def bag():
    return made_up_model(("bag", {}), KNOWN, cells=12, dtype=np.float32)


@pytest.fixture
def index(bag):
    return Index.build(bag, TITLES, IDS, bm25=True, threads=1)


def log_of(pairs):
    builder = ClickLogBuilder()
    for query, title in pairs:
        builder.add(query, title)
    return builder.build()


def sums(bag, query, weight, texts=TITLES, titles=TITLES):
    """Score of every title: cosine plus the share of BM25."""
    vectors = np.concatenate([bag.encode_query([query]), bag.encode_document(titles)])
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
    lexical = np.array(bm25_scores(query, texts, 0.9, 0.4))
    return unit[1:] @ unit[0] + weight * lexical / (lexical.max() or 1), unit[1:] @ unit[0], lexical


@pytest.mark.parametrize("weight", [None, 0.5])
def test_hits_have_the_highest_sums_and_say_what_they_consist_of(index, bag, weight):
    for query, hits in zip(QUERIES, index.search(QUERIES, 6, bm25_weight=weight), strict=True):
        total, cosines, lexical = sums(bag, query, WEIGHT if weight is None else weight)
        places = [IDS.index(hit.id) for hit in hits]
        assert [hit.title for hit in hits] == [TITLES[place] for place in places]
        np.testing.assert_allclose([hit.score for hit in hits], np.sort(total)[::-1][:6], atol=1e-6)
        np.testing.assert_allclose([hit.score for hit in hits], total[places], atol=1e-6)
        np.testing.assert_allclose([hit.cosine for hit in hits], cosines[places], atol=1e-6)
        np.testing.assert_allclose([hit.bm25 for hit in hits], lexical[places], rtol=1e-5)
        assert [hit.confidence for hit in hits] == [None] * 6
        only = index.search(query, 6, only=IDS[::2], bm25_weight=weight)
        own = np.sort(total[::2])[::-1][:6]
        np.testing.assert_allclose([hit.score for hit in only], own, atol=1e-6)


def test_words_find_what_the_model_does_not_know(index, bag):
    assert not bag.encode_query(["x7"]).any()
    assert index.search("x7", bm25_weight=0) == []
    hits = index.search("x7", 300)
    assert len(hits) == sum("x7" in title.split() for title in TITLES) > 0
    assert all("x7" in hit.title and hit.cosine == 0 for hit in hits)
    assert hits[0].score == WEIGHT
    assert index.search("nowhere") == [] and index.search("") == []


def test_weight_0_is_the_cosine_alone(index, bag):
    plain = Index.build(bag, TITLES, IDS, threads=1)
    assert index.search(QUERIES, 5, bm25_weight=0) == plain.search(QUERIES, 5)
    hit = plain.search("red hat", 1)[0]
    assert hit.bm25 is None and hit.cosine == hit.score
    with pytest.raises(SentembError, match="the index has no BM25; make it again with --bm25"):
        plain.search("red", bm25_weight=0.1)
    with pytest.raises(SentembError, match="the weight of BM25 is -1; give a number from 0"):
        index.search("red", bm25_weight=-1)


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_other_dtypes_find_about_the_same(index, bag, dtype):
    small = Index.build(bag, TITLES, IDS, bm25=True, dtype=dtype, threads=1)
    for query in QUERIES:
        scores = [[hit.score for hit in one.search(query, 9)] for one in (small, index)]
        np.testing.assert_allclose(*scores, atol=2e-2)


def test_clicks_and_stems(bag):
    pytest.importorskip("Stemmer")
    clicks = log_of([("sunday hats", TITLES[3]), ("sunday", TITLES[3]), ("sunday", "not there")])
    index = Index.build(bag, TITLES, IDS, bm25=True, log=clicks, stem="english", threads=1)
    places = {IDS.index(hit.id) for hit in index.search("sundays", 300)}
    holding = {place for place, title in enumerate(TITLES) if title == TITLES[3]}
    assert places & holding == holding
    expected = InvertedIndex(with_clicked_queries(TITLES, clicks)).find(["sunday"], 9)[1]
    own = Index.build(bag, TITLES, IDS, bm25=True, log=clicks, threads=1).search("sunday", 9)
    np.testing.assert_allclose([hit.bm25 for hit in own if hit.bm25], expected[expected > 0])
    for settings in ({"log": clicks}, {"stem": "english"}):
        with pytest.raises(SentembError, match="log and stem are for BM25; add bm25=True"):
            Index.build(bag, TITLES, IDS, **settings)


def test_a_folder_holds_both_halves(index, tmp_path):
    index.set_bm25(1.2, 0.3, 0.7)
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", 1)
    assert opened.search(QUERIES) == index.search(QUERIES)
    assert opened.half().settings() == {
        "weight": 0.7, "k1": 1.2, "b": 0.3, "stem": None, "click_weight": None,
    }  # fmt: skip
    Index.verify(tmp_path / "index")
    for one in (copy.deepcopy(index), pickle.loads(pickle.dumps(opened))):
        assert one.search(QUERIES) == index.search(QUERIES)
    opened.save(tmp_path / "index", force=True)
    assert Index.open(tmp_path / "index", 1).search(QUERIES) == index.search(QUERIES)
    file = tmp_path / "index" / "bm25" / "list_counts.npy"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + b"\1")
    with pytest.raises(SentembError, match=r"list_counts.npy: .* not those that index.json lists"):
        Index.open(tmp_path / "index")
    description = tmp_path / "index" / "index.json"
    told = json.loads(description.read_text())
    for wrong in ({"weight": -1}, {"weight": 1, "clicks": True}, {}, 3):
        description.write_text(json.dumps(told | {"bm25": wrong}))
        with pytest.raises(SentembError, match='"bm25" is missing or wrong'):
            Index.open(tmp_path / "index")
    InvertedIndex(TITLES[1:]).save(tmp_path / "index" / "bm25")
    description.write_text(json.dumps(told))
    with pytest.raises(SentembError, match=r"bm25.json: .* index.json lists"):
        Index.open(tmp_path / "index")
    list_again(tmp_path / "index")
    with pytest.raises(SentembError, match="it is not of the titles of the index"):
        Index.open(tmp_path / "index")


def test_add_and_remove_keep_the_halves_in_step(bag, tmp_path):
    index = Index.build(bag, TITLES[:150], IDS[:150], bm25=True, threads=1)
    index.save(tmp_path / "index")
    changed = Index.open(tmp_path / "index", 1)
    changed.add(TITLES[150:], IDS[150:])
    changed.remove(IDS[20:40])
    left = [place for place in range(200) if not 20 <= place < 40]
    again = Index.build(
        bag, [TITLES[p] for p in left], [IDS[p] for p in left], bm25=True, threads=1
    )
    assert changed.search(QUERIES, 20) == again.search(QUERIES, 20)
    changed.save(tmp_path / "index", force=True)
    assert Index.open(tmp_path / "index", 1).search(QUERIES, 20) == again.search(QUERIES, 20)
    with pytest.raises(SentembError):
        changed.add(["one", "two"], ["new", "p0"])
    assert changed.search(QUERIES, 20) == again.search(QUERIES, 20)


def test_confidence_belongs_to_the_scores(index, tmp_path):
    assert index.search("red hat", 2)[0].confidence is None
    index.confidence = Confidence(-1.0, 2.0, 50, 0.2, 0.25)
    first, second = index.search("red hat", 2)
    assert first.confidence == pytest.approx(1 / (1 + np.exp(1 - 2 * first.score)))
    assert second.confidence is None
    assert index.search("red hat", 2, bm25_weight=0.9)[0].confidence is None
    index.save(tmp_path / "index")
    opened = Index.open(tmp_path / "index", 1)
    assert opened.search(QUERIES) == index.search(QUERIES)
    assert pickle.loads(pickle.dumps(index)).confidence == index.confidence
    sure = [hits[0].confidence for hits in index.search(QUERIES)]
    least = float(np.median(sure))
    kept = index.search(QUERIES, min_confidence=least)
    assert [bool(hits) for hits in kept] == [one >= least for one in sure]
    for wrong in (-0.1, 2, "x"):
        with pytest.raises(SentembError, match=r"min_confidence is .*; give a share from 0 to 1"):
            index.search("red", min_confidence=wrong)
    with pytest.raises(SentembError, match="not calibrated for these weights"):
        index.search("red", bm25_weight=0.9, min_confidence=0.5)
    file = tmp_path / "index" / "index.json"
    told = json.loads(file.read_text())
    for wrong in ([], told["confidence"] | {"slope": -1}, told["confidence"] | {"more": 1}):
        file.write_text(json.dumps(told | {"confidence": wrong}))
        with pytest.raises(SentembError, match=r'index\.json: .*"confidence" is missing or wrong'):
            Index.open(tmp_path / "index", 1)
    # Nothing is found for a query: no score, no confidence.
    index.confidence = Confidence(-1.0, 0.0, 50, 0.2, 0.25)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert index.search(["nowhere", "red"], 1, min_confidence=0.1)[0] == []
    empty = pickle.loads(pickle.dumps(index))
    empty.remove(IDS)
    assert empty.confidence is not None and empty.search(QUERIES) == [[]] * len(QUERIES)
    index.set_bm25(0.9, 0.4, WEIGHT)
    assert index.confidence is not None
    index.set_bm25(0.9, 0.4, 0.5)
    assert index.confidence is None


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_an_index_in_memory_does_not_look_at_its_files_again(bag, tmp_path, dtype):
    clicks = log_of([("sunday", TITLES[3]), ("hat", TITLES[5])])
    made = Index.build(bag, TITLES, IDS, bm25=True, log=clicks, dtype=dtype, threads=1)
    made.save(tmp_path / "index")
    kept = Index.open(tmp_path / "index", threads=1, in_memory=True)
    for path in (tmp_path / "index").rglob("*"):
        if path.is_file():
            with path.open("r+b") as file:
                file.write(bytes(path.stat().st_size))
    for query in [*QUERIES, "sunday"]:
        assert kept.search(query, 9) == made.search(query, 9)
    assert kept.nearest_clicked("hat", IDS) == made.nearest_clicked("hat", IDS)
