"""BM25 over the words of titles: against the formula, the package bm25s and other threads."""

import pickle

import naive
import numpy as np
import pytest

from sentemb.comparison.baselines.clicked_queries import with_clicked_queries
from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.models.contracts import Retriever
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.words_and_stems import Stems, words_of
from sentemb.system.parallel import Workers
from sentemb.text.words import plain_words

QUERIES = ["w1 w3", "w2", "w2 w2", "w0 w1 w2 w3 w4 w5 w6 w7 w8", "nowhere", "", "W4, nowhere!"]


def made_up_titles(count=60, seed=3):
    """Titles of up to six of 30 words, so that many have equal scores; some have no words."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{k}" for k in range(30)])
    return [" ".join(rng.choice(words, rng.integers(0, 7))) for _ in range(count)]


def in_order(places, scores):
    pairs = list(zip((-scores).tolist(), places.tolist(), strict=True))
    return pairs == sorted(pairs)


@pytest.mark.parametrize("count", [60, 3_000])
@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.5, 1), (0, 0)])
def test_find_is_the_formula_and_ties_are_in_the_order_of_titles(k1, b, count):
    titles = made_up_titles(count)
    by_words = TitleWords(titles, k1, b)
    assert isinstance(by_words, Retriever)
    places, scores = by_words.find(QUERIES, 25)
    assert places.dtype == np.int64 and scores.dtype == np.float64 and places.shape == (7, 25)
    for query, some, found in zip(QUERIES, places, scores, strict=True):
        expected = np.array(naive.bm25_scores(query, titles, k1, b))
        n = min(np.count_nonzero(expected), 25)
        assert (some[n:] == -1).all() and (found[n:] == -np.inf).all()
        np.testing.assert_allclose(found[:n], expected[some[:n]], rtol=1e-5)
        np.testing.assert_allclose(found[:n], np.sort(expected)[::-1][:n], rtol=1e-5)
        assert in_order(some[:n], found[:n])
    assert (places[4:6] == -1).all(), "unknown words and no words find nothing"
    assert by_words.find(QUERIES, 10_000)[0].shape == (7, count)
    assert TitleWords([]).find(QUERIES, 3)[0].shape == (7, 0)


@pytest.mark.parametrize("k", [1, 4, 80])
@pytest.mark.parametrize("threads", [1, 3])
def test_titles_that_are_left_out_make_room_for_others(k, threads):
    titles = made_up_titles()
    by_words, rng = TitleWords(titles), np.random.default_rng(4)
    # Titles without a word of the query, and a title twice, may be among those left out.
    left_out = [rng.integers(0, 60, size) for size in (9, 0, 40, 1, 5, 5, 60)]
    offsets = np.cumsum([0, *map(len, left_out)])
    given = offsets, np.concatenate(left_out).astype(np.int32)
    with Workers(threads) as workers:
        found, sums = by_words.lists.best(by_words.look_up(QUERIES), k, workers, given)
    for query, gone, row, own in zip(QUERIES, left_out, found, sums, strict=True):
        scores = np.array(naive.bm25_scores(query, titles, 0.9, 0.4)).round(5)
        scores[gone] = 0
        best = [place for place in naive.highest(scores.tolist(), k) if scores[place]]
        assert row.tolist() == best + [-1] * (k - len(best))
        np.testing.assert_allclose(own[: len(best)], scores[best], atol=1e-4)
        assert not own[len(best) :].any()


def test_scores_of_pairs():
    titles = made_up_titles(3_000)
    by_words, rng = TitleWords(titles), np.random.default_rng(1)
    query_index, places = rng.integers(0, len(QUERIES), 500), rng.integers(0, len(titles), 500)
    scores = by_words.score_pairs(QUERIES, query_index, places)
    expected = np.array([naive.bm25_scores(query, titles, 0.9, 0.4) for query in QUERIES])
    np.testing.assert_allclose(scores, expected[query_index, places], rtol=1e-5)
    # To the bit in any order: each title is looked for behind the one before, if it is there.
    for order in (np.lexsort((places, query_index)), np.argsort(query_index, kind="stable")):
        again = by_words.score_pairs(QUERIES, query_index[order], places[order])
        assert np.array_equal(again, scores[order])
    assert by_words.score_pairs([], [], []).shape == (0,)


def test_the_package_bm25s_computes_the_same():
    bm25s = pytest.importorskip("bm25s")
    titles = made_up_titles(200)
    theirs = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
    theirs.index([plain_words(title) for title in titles], show_progress=False)
    q, t = np.divmod(np.arange(4 * 200), 200)
    scores = TitleWords(titles, 1.2, 0.75).score_pairs(QUERIES[:4], q, t).reshape(4, 200)
    for query, row in zip(QUERIES[:4], scores, strict=True):
        np.testing.assert_allclose(row, theirs.get_scores(plain_words(query)), rtol=1e-5)


def test_threads_do_not_change_the_result():
    titles, queries = made_up_titles(500), made_up_titles(99, seed=8)
    one, many = (TitleWords(titles, threads=threads) for threads in (1, 3))
    found = one.find(queries, 7)
    for mine, theirs in zip(many.find(queries, 7), found, strict=True):
        assert np.array_equal(mine, theirs)
    pairs = np.repeat(np.arange(99), 7), np.maximum(found[0].ravel(), 0)
    assert np.array_equal(one.score_pairs(queries, *pairs), many.score_pairs(queries, *pairs))


def test_stems_join_forms_of_a_word():
    titles = ["garden tools", "gardening", "shop"]
    plain, stemmed = (TitleWords(titles, words=words_of(stem)) for stem in (None, "porter"))
    assert plain.find(["tool gardens"], 3)[0].tolist() == [[-1, -1, -1]]
    assert stemmed.find(["tool gardens"], 3)[0].tolist() == [[0, 1, -1]]
    assert pickle.loads(pickle.dumps(Stems("german")))("Häuser") == Stems("german")("Häuser")


def test_stems_that_cannot_be_had(monkeypatch):
    words_of.cache_clear()
    with pytest.raises(SentembError, match="'klingon' is not a stemmer of Snowball; give one"):
        words_of("klingon")
    monkeypatch.setitem(__import__("sys").modules, "Stemmer", None)
    with pytest.raises(
        SentembError, match=r"Stemmer is not installed; pip install 'sentemb\[stems"
    ):
        words_of("english")


def test_titles_with_clicked_queries():
    pairs = [("q1", "A"), ("q2", "A"), ("q1", "A"), ("q1", "gone"), ("q3", "B")]
    texts = with_clicked_queries([" A", "never", "B", "A"], ClickLog.from_pairs(pairs))
    assert texts == [" A q1 q2", "never", "B q3", "A q1 q2"]
    assert TitleWords(texts).find(["q2"], 4)[0].tolist() == [[0, 3, -1, -1]]
