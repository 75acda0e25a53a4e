"""Scores, rankings and similarities worked out by hand; words that are remembered between calls."""

import math
import tracemalloc

import numpy as np
import pytest
from helpers import VARIANTS, made_up_model

from sentemb import SentembError, SentenceEncoder
from sentemb.models import make_encoder, word_memory
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

# -- by hand ---------------------------------------------------------------------------------------

# A bag adds up the rows of its words; a word of one letter has one trigram, so one row.
QUERY_ROWS = {"a": (1, 0), "b": (0, 1), "c": (-1, 0)}
TITLE_ROWS = {"a": (2, 0), "b": (0, 2), "c": (0, -2)}


@pytest.fixture(scope="module")
def bag():
    vocabulary = Vocabulary.collect(tokenize(["a b c"]))
    assert vocabulary.trigrams == ["#a#", "#b#", "#c#"]
    weights = {
        side: {"table": np.array([*rows.values()], float)}
        for side, rows in (("query", QUERY_ROWS), ("document", TITLE_ROWS))
    }
    return SentenceEncoder(make_encoder("bag", cells=2), vocabulary, weights, threads=1)


def test_vectors_are_sums_of_rows(bag):
    assert bag.encode_query(["a", "a b b", "C a"]).tolist() == [[1, 0], [1, 2], [0, 0]]
    assert bag.encode_document("a b c").tolist() == [2, 0]
    unit = bag.encode_query(["a a a b b b b", "a c"], normalize_embeddings=True)
    np.testing.assert_allclose(unit, [[0.6, 0.8], [0, 0]], rtol=1e-15)


def test_a_score_is_the_cosine_of_query_and_title(bag):
    half = math.sqrt(0.5)
    for query, title, cosine in [
        ("a", "a a", 1),
        ("a", "b", 0),
        ("b", "c", -1),
        ("a b", "b", half),
        ("c a b", "a a a b b b b", 0.8),
        ("a c", "a", 0),  # a zero vector
    ]:
        score = bag.score(query, title)
        assert isinstance(score, float) and score == pytest.approx(cosine, abs=1e-15)
    scores = bag.score("a b", ["b", "c", "a b"])
    np.testing.assert_allclose(scores, [half, -half, 1], atol=1e-15)


def test_the_best_title_comes_first_and_ties_stay_in_the_order_given(bag):
    #         0     1    2      3    4      5
    titles = ["b", "c", "a b", "a", "b a", "a a"]
    half = pytest.approx(math.sqrt(0.5))
    whole = [(3, 1.0), (5, 1.0), (2, half), (4, half), (0, 0.0), (1, 0.0)]
    assert bag.rank("a", titles) == whole
    assert bag.rank("a", iter(titles), top_k=3) == whole[:3]
    assert bag.rank("a", titles, top_k=99) == whole
    assert [type(part) for part in bag.rank("a", titles)[0]] == [int, float]
    many = ["b", "a"] * 40  # enough for a sort that is not stable to show
    assert [k for k, _ in bag.rank("a", many)] == [*range(1, 80, 2), *range(0, 80, 2)]
    assert bag.rank("a", []) == []
    with pytest.raises(SentembError, match="top_k"):
        bag.rank("a", titles, top_k=0)


def test_similarity_is_the_cosine_of_every_row_with_every_row(bag):
    a = np.array([[3.0, 4.0], [1.0, 0.0], [0.0, 0.0]])
    b = np.array([[0.0, 5.0], [-2.0, 0.0]])
    expected = [[0.8, -0.6], [0, -1], [0, 0]]
    np.testing.assert_allclose(bag.similarity(a, b), expected, rtol=1e-15)
    np.testing.assert_allclose(bag.similarity(a[0], b), expected[:1], rtol=1e-15)
    np.testing.assert_allclose(bag.similarity(a, b[1]), [[-0.6], [-1], [0]], rtol=1e-15)


def test_pairwise_similarity_is_the_cosine_of_each_row_with_its_own(bag):
    a = np.array([[3.0, 4.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    b = np.array([[0.0, 5.0], [-2.0, 0.0], [2.0, 0.0], [1.0, 1.0]])
    expected = [0.8, -1, math.sqrt(0.5), 0]
    np.testing.assert_allclose(bag.similarity_pairwise(a, b), expected, rtol=1e-15)
    np.testing.assert_allclose(bag.similarity_pairwise(a[0], b[0]), [0.8], rtol=1e-15)
    with pytest.raises(SentembError, match="equal shapes"):
        bag.similarity_pairwise(a, b[:2])


# -- words that are remembered ---------------------------------------------------------------------

LETTERS = list("abcd")


def texts_of_new_words(rng, n_texts=100, n_words=10):
    """Texts of words that hardly ever repeat."""
    return [
        " ".join("".join(rng.choice(LETTERS, 12)) for _ in range(n_words)) for _ in range(n_texts)
    ]


def encoder_of_words():
    letters = "".join(np.random.default_rng(0).choice(LETTERS, 2000))  # all their trigrams
    return made_up_model(VARIANTS[1], [letters], cells=32, dtype=np.float32)


@pytest.mark.parametrize("limit", [None, 300_000, 0], ids=["all", "some", "none"])
def test_remembered_words_have_the_bits_of_new_ones(limit, monkeypatch):
    if limit is not None:
        monkeypatch.setattr(word_memory, "_LIMIT", limit)
    rng, model = np.random.default_rng(1), encoder_of_words()
    seen = []
    for _ in range(6):
        new = texts_of_new_words(rng)
        mixed = [f"{a} {b}" for a, b in zip(new, [*seen[-150:], *new])]
        for texts in (new, mixed, seen[:50], mixed[::-1]):
            for side in ("query", "document"):
                found = model.encode(texts, side=side)
                assert np.array_equal(found, encoder_of_words().encode(texts, side=side))
        seen += new


def test_the_memory_of_words_is_used_and_stays_below_its_limit(monkeypatch):
    """Without limit 12,000 words with 96 float32 each would take 4.6 MB."""
    rng, model = np.random.default_rng(2), encoder_of_words()
    looked_up, features = [], model.vocabulary.features
    monkeypatch.setattr(word_memory, "_LIMIT", 400_000)
    monkeypatch.setattr(
        model.vocabulary, "features", lambda word: looked_up.append(word) or features(word)
    )
    first = texts_of_new_words(rng, 10)
    model.encode(first)
    assert len(looked_up) == 100
    model.encode(first[::-1])
    assert len(looked_up) == 100, "known words are to be remembered"
    held = []
    tracemalloc.start()
    try:
        for _ in range(12):
            model.encode(texts_of_new_words(rng))
            looked_up.clear()
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert max(held) < 2_500_000, held
    model.encode(first)
    assert len(looked_up) == 100, "what was beyond the limit is to be forgotten"
    model.encode(first)  # which may be what reaches the limit again
    looked_up.clear()
    model.encode(first)
    assert not looked_up, "after the limit words are to be remembered again"
