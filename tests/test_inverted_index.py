"""BM25 over all titles: against the formula, the package bm25s, and itself built again."""

import json
import pickle

import numpy as np
import pytest
from naive import bm25_scores

from sentemb.baselines.clicked_queries import clicked_texts, with_clicked_queries
from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.baselines.words_and_stems import Stems
from sentemb.data.click_log import ClickLogBuilder
from sentemb.errors import SentembError
from sentemb.protocols import Retriever
from sentemb.system.parallel import Workers
from sentemb.text.words import plain_words

QUERIES = ["w1 w3", "w2", "w2 w2", "w0 w1 w2 w3 w4 w5 w6 w7 w8", "nowhere", "", "W4, nowhere!"]


def made_up_titles(count=60, seed=3):
    """Titles of up to six of 30 words, so that many have equal scores; some have no words."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{k}" for k in range(30)])
    return [" ".join(rng.choice(words, rng.integers(0, 7))) for _ in range(count)]


def same(one, other):
    """Whether two indexes agree in every bit."""
    mine, theirs = one._arrays(), other._arrays()
    return (one.n_titles, one.k1, one.b) == (other.n_titles, other.k1, other.b) and all(
        mine[name].dtype == theirs[name].dtype and np.array_equal(mine[name], theirs[name])
        for name in mine
    )


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.5, 1), (0, 0)])
def test_find_is_the_formula_and_ties_are_in_the_order_of_titles(k1, b):
    titles = made_up_titles()
    index = InvertedIndex(titles, k1, b)
    assert isinstance(index, Retriever)
    places, scores = index.find(QUERIES, 25)
    assert places.dtype == np.int64 and scores.dtype == np.float64 and places.shape == (7, 25)
    for query, some, found in zip(QUERIES, places, scores, strict=True):
        expected = np.array(bm25_scores(query, titles, k1, b))
        n = min(np.count_nonzero(expected), 25)
        assert (some[n:] == -1).all() and (found[n:] == -np.inf).all()
        np.testing.assert_allclose(found[:n], expected[some[:n]], rtol=1e-5)
        np.testing.assert_allclose(found[:n], np.sort(expected)[::-1][:n], rtol=1e-5)
        assert sorted(zip(-found[:n], some[:n], strict=True)) == list(
            zip(-found[:n], some[:n], strict=True)
        ), "equal scores in the order of titles"
    assert (places[4:6] == -1).all(), "unknown words and no words find nothing"
    assert index.find(QUERIES, 1_000)[0].shape == (7, 60)


def test_matches_are_all_titles_with_a_word_of_the_query():
    titles = made_up_titles()
    index = InvertedIndex(titles)
    for query in QUERIES:
        places, scores = index.matches(index.look_up([query])[1])
        dense = np.zeros(len(titles))
        dense[places] = scores
        np.testing.assert_allclose(dense, bm25_scores(query, titles, 0.9, 0.4), rtol=1e-5)
        assert len(set(places.tolist())) == len(places) and (scores > 0).all()


def test_scores_of_pairs():
    titles = made_up_titles()
    index = InvertedIndex(titles)
    rng = np.random.default_rng(1)
    query_index, places = rng.integers(0, len(QUERIES), 500), rng.integers(0, len(titles), 500)
    scores = index.scores(QUERIES, query_index, places)
    expected = np.array([bm25_scores(query, titles, 0.9, 0.4) for query in QUERIES])
    np.testing.assert_allclose(scores, expected[query_index, places], rtol=1e-5)
    assert index.scores([], [], []).shape == (0,)


def test_the_best_titles_and_scores_of_pairs_at_once_are_those_of_either_alone():
    titles = made_up_titles()
    index = InvertedIndex(titles, 1.2, 0.75)
    other = index.with_parameters(0.3, 0.0)
    rng = np.random.default_rng(2)
    query_index = np.sort(rng.integers(0, len(QUERIES), 300))
    places = rng.integers(0, len(titles), 300).astype(np.int32)
    pairs = np.searchsorted(query_index, np.arange(len(QUERIES) + 1)), places
    words = index.look_up(QUERIES)
    for lists in (index, other):
        with Workers(2) as workers:
            *best, scores = lists.find_and_score(words, pairs, 10, workers)
        for found, wanted in zip(best, lists.find(QUERIES, 10), strict=True):
            assert np.array_equal(found, wanted)
        for found, wanted in zip(lists.find_words(words, 10), best, strict=True):
            assert np.array_equal(found, wanted)
        assert np.array_equal(scores, lists.scores(QUERIES, query_index, places))
    assert scores.any()


def test_the_package_bm25s_computes_the_same():
    bm25s = pytest.importorskip("bm25s")
    titles = made_up_titles(200)
    index = InvertedIndex(titles, 1.2, 0.75)
    theirs = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    theirs.index([plain_words(title) for title in titles], show_progress=False)
    q, t = np.divmod(np.arange(4 * 200), 200)
    scores = index.scores(QUERIES[:4], q, t).reshape(4, 200)
    for query, row in zip(QUERIES[:4], scores, strict=True):
        np.testing.assert_allclose(row, theirs.get_scores(plain_words(query)), rtol=1e-5)


def test_threads_do_not_change_the_result():
    index = InvertedIndex(made_up_titles(500))
    queries = made_up_titles(99, seed=8)
    places, scores = index.find(queries, 7)
    with Workers(3) as workers:
        for one, other in zip(index.find(queries, 7, workers), (places, scores), strict=True):
            assert np.array_equal(one, other)
        rows = np.repeat(np.arange(99), 7)[places.ravel() >= 0], places[places >= 0]
        assert np.array_equal(index.scores(queries, *rows, workers), scores[places >= 0])


def test_add_and_remove_equal_a_rebuild():
    titles = [*made_up_titles(), "é only here", "日本 only"]
    index = InvertedIndex(titles[:20], 1.2, 0.3)
    index = index.extended(titles[20:])
    assert same(index, InvertedIndex(titles, 1.2, 0.3))
    gone = np.array([0, 7, 8, 60, 61])
    index = index.without(gone)
    left = [title for place, title in enumerate(titles) if place not in gone]
    assert same(index, InvertedIndex(left, 1.2, 0.3))
    index = index.without(np.arange(len(left)))
    assert same(index, InvertedIndex([], 1.2, 0.3))
    assert index.find(["w1"], 5)[0].shape == (1, 0)
    index = index.extended(titles)
    assert same(index, InvertedIndex(titles, 1.2, 0.3))
    index = index.extended([])
    assert same(index, InvertedIndex(titles, 1.2, 0.3))


def test_other_parameters_share_the_lists():
    titles = made_up_titles()
    index = InvertedIndex(titles)
    assert same(index.with_parameters(2, 1), InvertedIndex(titles, 2, 1))
    assert same(index, InvertedIndex(titles))
    with pytest.raises(SentembError, match="b is 2; give a share"):
        index.with_parameters(1, 2)


def joined(titles, clicked):
    return [f"{title} {text}" for title, text in zip(titles, clicked, strict=True)]


@pytest.mark.parametrize("click_weight", [0, 0.3, 1])
def test_click_weight_is_the_formula(click_weight):
    titles, clicked = made_up_titles(), made_up_titles(seed=11)
    index = InvertedIndex(titles, 1.1, 0.6, clicked=clicked, click_weight=click_weight)
    q, t = np.divmod(np.arange(len(QUERIES) * len(titles)), len(titles))
    found = index.scores(QUERIES, q, t).reshape(len(QUERIES), -1)
    for query, row in zip(QUERIES, found, strict=True):
        expected = bm25_scores(query, titles, 1.1, 0.6, clicked, click_weight)
        np.testing.assert_allclose(row, expected, rtol=1e-5)
        matched = set(index.matches(index.look_up([query])[1])[0].tolist())
        assert matched == set(np.flatnonzero(expected).tolist())


def test_click_weight_0_is_titles_alone_and_1_is_the_joined_texts(tmp_path):
    titles, clicked = made_up_titles(), [*made_up_titles(59, seed=11), "only asked"]
    index = InvertedIndex(titles, 1.1, 0.6, clicked=clicked, click_weight=0.7)
    queries = [*QUERIES, "only asked w5", *made_up_titles(30, seed=5)]
    for click_weight, texts in [(0, titles), (1, joined(titles, clicked))]:
        plain = InvertedIndex(texts, 1.1, 0.6)
        other = index.with_parameters(1.1, 0.6, click_weight)
        other.save(tmp_path / str(click_weight))
        for one in (other, InvertedIndex.open(tmp_path / str(click_weight))):
            for mine, theirs in zip(one.find(queries, 60), plain.find(queries, 60), strict=True):
                assert np.array_equal(mine, theirs)
            for query in queries:
                mine, theirs = (some.matches(some.look_up([query])[1]) for some in (one, plain))
                assert np.array_equal(mine[0], theirs[0]) and np.array_equal(mine[1], theirs[1])
            own, alone = one.contents(), plain.contents()
            assert own.words == alone.words
            for mine, theirs in zip(own[1:], alone[1:], strict=True):
                assert np.array_equal(mine, theirs)
            back = one.with_parameters(1.1, 0.6, 0.7)
            assert same(back, index) and back.click_weight == 0.7
        plain.save(tmp_path / "plain")
        told = json.loads((tmp_path / "plain" / "bm25.json").read_text())
        assert told["format"] == 1 and told["click_weight"] is None


def test_click_weight_after_titles_are_added_and_removed():
    titles, clicked = made_up_titles(), made_up_titles(seed=11)
    index = InvertedIndex(titles[:40], 1.1, 0.6, clicked=clicked[:40], click_weight=0.3)
    index = index.extended(titles[40:])
    own = [*clicked[:40], *[""] * 20]
    assert same(index, InvertedIndex(titles, 1.1, 0.6, clicked=own, click_weight=0.3))
    index = index.without(np.arange(0, 60, 2))
    left = InvertedIndex(titles[1::2], 1.1, 0.6, clicked=own[1::2], click_weight=0.3)
    assert same(index, left) and index.click_weight == 0.3


def test_a_tiny_click_weight_finds_titles_by_their_clicks():
    index = InvertedIndex(["a", "b", ""], clicked=["x", "x y", "y"], click_weight=1e-300)
    assert index.find(["x"], 3)[0].tolist() == [[0, 1, -1]]
    assert np.isfinite(index.find(["x y a"], 3)[1][0]).all()


def test_click_weight_that_is_refused():
    with pytest.raises(SentembError, match="the weight of clicked queries is 2; give a share"):
        InvertedIndex(["a"], clicked=["b"], click_weight=2)
    with pytest.raises(SentembError, match="1 titles and 2 texts of clicked queries; give one per"):
        InvertedIndex(["a"], clicked=["b", "c"])
    with pytest.raises(SentembError, match="does not know which words are of clicked queries"):
        InvertedIndex(["a"]).with_parameters(1, 1, 0.5)
    assert InvertedIndex(["a"]).with_parameters(1, 1, 1).k1 == 1


def test_a_saved_index_is_mapped(tmp_path):
    titles = [*made_up_titles(), "größer日本"]
    index = InvertedIndex(titles, 1.1, 0.2, Stems("english"))
    index.save(tmp_path / "bm25")
    read = InvertedIndex.open(tmp_path / "bm25")
    assert same(read, index) and read.words.language == "english"
    assert isinstance(read._titles.base, np.memmap)
    queries = [*QUERIES, "Größer日本"]
    for one, other in zip(read.find(queries, 9), index.find(queries, 9), strict=True):
        assert np.array_equal(one, other)
    read = read.extended(["w1 new"])
    read = read.without([0])
    assert same(read, InvertedIndex([*titles[1:], "w1 new"], 1.1, 0.2, Stems("english")))
    empty = InvertedIndex([])
    empty.save(tmp_path / "empty")
    assert same(InvertedIndex.open(tmp_path / "empty"), empty)


def test_a_damaged_index_is_refused(tmp_path):
    index = InvertedIndex(made_up_titles())
    index.save(tmp_path)
    wrong = {
        "list_offsets": lambda a: a[::-1],
        "word_offsets": lambda a: a + 1,
        "list_titles": lambda a: a + 1,
        "list_weights": lambda a: np.where(a == a[3], np.float32(0), a),
        "list_counts": lambda a: a[:-1],
        "words": lambda a: a.astype(np.int16),
    }
    for name, change in wrong.items():
        file = tmp_path / f"{name}.npy"
        whole = file.read_bytes()
        np.save(file, change(np.load(file)))
        with pytest.raises(SentembError, match=name):
            InvertedIndex.open(tmp_path)
        for damaged in (whole[:-4], whole[:20], b""):
            file.write_bytes(damaged)
            with pytest.raises(SentembError, match=name):
                InvertedIndex.open(tmp_path)
        file.unlink()
        with pytest.raises(SentembError, match=f"{name}.npy: is missing"):
            InvertedIndex.open(tmp_path)
        file.write_bytes(whole)
    file = tmp_path / "bm25.json"
    for key, value in {
        "format": 3,
        "k1": -1,
        "b": None,
        "titles": 1.5,
        "stem": 3,
        "words": 7,
        "click_weight": "heavy",
    }.items():
        whole = file.read_text()
        file.write_text(json.dumps(json.loads(whole) | {key: value}))
        with pytest.raises(SentembError):
            InvertedIndex.open(tmp_path)
        file.write_text(whole)
    told = json.loads(file.read_text())
    del told["stem"]
    for text in ("[]", "{", "\udcff", json.dumps(told)):
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        with pytest.raises(SentembError, match=r"bm25.json: damaged"):
            InvertedIndex.open(tmp_path)


def test_damaged_clicks_are_refused(tmp_path):
    index = InvertedIndex(made_up_titles(), clicked=made_up_titles(seed=11), click_weight=0)
    index.save(tmp_path)
    for name, change in {
        "list_click_counts": lambda a: a - 1,
        "list_counts": lambda a: a - 1,
        "list_weights": lambda a: np.where(a == 0, np.float32(1), a),
    }.items():
        file = tmp_path / f"{name}.npy"
        whole = file.read_bytes()
        np.save(file, change(np.load(file)))
        with pytest.raises(SentembError, match=name):
            InvertedIndex.open(tmp_path)
        file.write_bytes(whole)
    file = tmp_path / "bm25.json"
    told = json.loads(file.read_text())
    for click_weight in ("missing", -1, "1"):
        file.write_text(json.dumps(told | {"click_weight": click_weight}))
        with pytest.raises(SentembError, match="damaged: click_weight is"):
            InvertedIndex.open(tmp_path)
    file.write_text(json.dumps(told))
    (tmp_path / "list_click_counts.npy").unlink()
    with pytest.raises(SentembError, match=r"list_click_counts\.npy: is missing"):
        InvertedIndex.open(tmp_path)


def test_stems_join_forms_of_a_word():
    titles = ["garden tools", "gardening", "shop"]
    plain, stemmed = (
        InvertedIndex(titles, words=words) for words in (plain_words, Stems("porter"))
    )
    assert plain.find(["tool gardens"], 3)[0].tolist() == [[-1, -1, -1]]
    assert stemmed.find(["tool gardens"], 3)[0].tolist() == [[0, 1, -1]]
    assert pickle.loads(pickle.dumps(Stems("german")))("Häuser") == Stems("german")("Häuser")


def test_stems_that_cannot_be_had(monkeypatch, tmp_path):
    with pytest.raises(SentembError, match="'klingon' is not a stemmer of Snowball; give one"):
        Stems("klingon")
    with pytest.raises(SentembError, match="only plain words and stems can be saved"):
        InvertedIndex(["a"], words=str.split).save(tmp_path)
    InvertedIndex(["a"], words=Stems("english")).save(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "Stemmer", None)
    with pytest.raises(
        SentembError, match=r"Stemmer is not installed; pip install 'sentemb\[stems"
    ):
        InvertedIndex.open(tmp_path)


def test_titles_with_clicked_queries():
    builder = ClickLogBuilder()
    for query, title in [("q1", "A"), ("q2", "A"), ("q1", "A"), ("q1", "gone"), ("q3", "B")]:
        builder.add(query, title)
    texts = with_clicked_queries([" A", "never", "B", "A"], builder.build())
    assert texts == [" A q1 q2", "never", "B q3", "A q1 q2"]
    assert clicked_texts([" A", "never"], builder.build()) == ["q1 q2", ""]
    index = InvertedIndex(texts)
    assert index.find(["q2"], 4)[0].tolist() == [[0, 3, -1, -1]]
