"""Sums of cosine and BM25: exactly the best of all titles."""

import naive
import numpy as np
import pytest

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.models.int8_rows import Int8Rows
from sentemb.ranking.memory import QueryMemory
from sentemb.search.hybrid import Weights, best_sums
from sentemb.system.parallel import Workers

QUERIES = ["w1 w3", "w2", "w2 w2", "w0 w1 w2 w3 w4 w5 w6 w7", "nowhere", "", "w4 nowhere"]
K = 7


def made_up(n_titles=150, seed=0):
    """Titles with few words, unit vectors with equal rows, vectors of the queries, their index."""
    rng = np.random.default_rng(seed)
    words = np.array([f"w{k}" for k in range(9)])
    titles = [" ".join(rng.choice(words, rng.integers(0, 4))) for _ in range(n_titles)]
    rows = rng.normal(size=(12, 5))
    rows[3] = 0
    vectors = rows[rng.integers(0, 12, n_titles)]
    asked = rng.normal(size=(len(QUERIES), 5))
    asked[6] = 0
    for some in (vectors, asked):
        norms = np.linalg.norm(some, axis=1, keepdims=True)
        np.divide(some, norms, out=some, where=norms > 0)
    return titles, vectors, asked, InvertedIndex(titles)


def expected(titles, vectors, asked, weight, mask, k=K):
    return [
        naive.hybrid(vector, vectors, naive.bm25_scores(query, titles, 0.9, 0.4), weight, k, mask)
        for query, vector in zip(QUERIES, asked, strict=True)
    ]


@pytest.mark.parametrize("weight", [0.0, 0.05, 0.4, 30.0])
@pytest.mark.parametrize("masked", [False, True])
def test_the_best_sums_are_those_of_all_titles(weight, masked):
    titles, vectors, asked, index = made_up()
    mask = np.random.default_rng(4).random(len(titles)) < (0.3 if masked else 1)
    found = best_sums(
        QUERIES,
        asked,
        vectors,
        index,
        Weights(weight),
        K,
        mask if masked else None,
        vectors.any(axis=1),
    )
    for q, best in enumerate(expected(titles, vectors, asked, weight, mask)):
        n = np.count_nonzero(found.places[q] >= 0)
        assert n == len(best), QUERIES[q]
        # The naive sums differ in rounding, which may exchange equal scores: compare scores, and
        # the order by what was found.
        np.testing.assert_allclose(found.scores[q, :n], [score for _, score in best], atol=1e-6)
        keys = list(zip(-found.scores[q, :n], found.places[q, :n], strict=True))
        assert keys == sorted(keys) and mask[found.places[q, :n]].all()
        assert (found.scores[q, n:] == -np.inf).all() and (found.places[q, n:] == -1).all()
        # What a score consists of.
        places = found.places[q, :n]
        np.testing.assert_allclose(found.cosines[q, :n], vectors[places] @ asked[q], atol=1e-12)
        own = np.array(naive.bm25_scores(QUERIES[q], titles, 0.9, 0.4))
        np.testing.assert_allclose(found.bm25[q, :n], own[places], rtol=1e-5)
        total = found.cosines[q, :n] + weight * found.bm25[q, :n] / (own.max() or 1)
        np.testing.assert_allclose(found.scores[q, :n], total, atol=1e-6)


def test_a_filter_does_not_change_scores():
    titles, vectors, asked, index = made_up()
    everything = best_sums(QUERIES, asked, vectors, index, Weights(0.4), len(titles))
    mask = np.arange(len(titles)) % 3 == 0
    some = best_sums(QUERIES, asked, vectors, index, Weights(0.4), len(titles), mask)
    for q in range(len(QUERIES)):
        allowed = [
            (place, score)
            for place, score in zip(everything.places[q], everything.scores[q], strict=True)
            if place >= 0 and mask[place]
        ]
        n = len(allowed)
        assert list(zip(some.places[q, :n], some.scores[q, :n], strict=True)) == allowed


def test_matches_that_cannot_be_among_the_best_are_left_out(monkeypatch):
    """Of many matches few are looked at, and the result is that of looking at all."""
    from sentemb.search import hybrid

    rng = np.random.default_rng(2)
    n = 4_000
    titles = ["common rare" if k % 100 == 5 else "common " * (1 + k % 9) for k in range(n)]
    vectors = rng.normal(size=(n, 24)) * np.array([1.0] + [0.05] * 23)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    asked = np.eye(1, 24)
    index = InvertedIndex(titles)
    looked_at = []
    cosines = hybrid._cosines

    def counted(vector, rows, places):
        looked_at.append(len(places))
        return cosines(vector, rows, places)

    monkeypatch.setattr(hybrid, "_cosines", counted)
    for query, weight in [("common rare", 4.0), ("common rare", 0.5), ("common", 0.5)]:
        looked_at.clear()
        found = best_sums([query], asked, vectors, index, Weights(weight), 10)
        few = sum(looked_at)
        matches, sums = index.matches(index.look_up([query])[1])
        bonus = np.zeros(n)
        bonus[matches] = sums / sums.max()
        total = cosines(asked[0], vectors, np.arange(n)) + weight * bonus.astype(np.float64)
        best = np.lexsort((np.arange(n), -total))[:10]
        np.testing.assert_allclose(found.scores[0], total[best], rtol=1e-6)
        assert set(found.places[0]) == set(best)
        assert few < (n / 4 if weight == 4 else 2 * n), (query, weight, few)


def remembering(vectors, seed=0, n_clicked=25):
    """A memory of clicked queries with equal vectors among them and among those of titles."""
    rng = np.random.default_rng(seed)
    rows = np.concatenate([rng.normal(size=(8, vectors.shape[1])), vectors[:4]])
    clicked = rows[rng.integers(0, len(rows), n_clicked)].astype(np.float32)
    clicked /= np.maximum(np.linalg.norm(clicked, axis=1, keepdims=True), 1e-9)
    places = [np.unique(rng.integers(0, len(vectors), rng.integers(1, 4))) for _ in clicked]
    offsets = np.cumsum([0, *map(len, places)])
    return QueryMemory(
        [f"q{c}" for c in range(n_clicked)],
        clicked,
        offsets,
        np.concatenate(places).astype(np.int32),
        len(vectors),
    )


@pytest.mark.parametrize(
    "weights",
    [
        Weights(0.0, 1.0, 2.0),
        Weights(0.3, 1.0, 0.5),
        Weights(1.0, 0.0, 0.0),
        Weights(2.0, 0.0, 1.5),
    ],
)
@pytest.mark.parametrize("kind", ["all", "masked", "int8", "few"])
def test_the_best_sums_with_a_memory_are_those_of_all_titles(weights, kind):
    titles, vectors, asked, index = made_up(seed=3)
    memory = remembering(vectors)
    n = len(titles)
    share = {"masked": 0.3, "few": 0.05}.get(kind, 1)
    mask = np.random.default_rng(4).random(n) < share
    rows = Int8Rows.of(vectors) if kind == "int8" else vectors
    lists = index if weights.bm25 else None
    given = None if share == 1 else mask
    embedded = vectors.any(axis=1)
    found = best_sums(QUERIES, asked, rows, lists, weights, K, given, embedded, None, memory)
    if kind == "int8":
        vectors = rows.vectors()
    remembered = memory.scores(asked)
    for q, vector in enumerate(asked):
        own = np.array(naive.bm25_scores(QUERIES[q], titles, 0.9, 0.4)) * (lists is not None)
        parts = weights.cosine, weights.bm25, weights.memory
        best = naive.sum_of_parts(vector, vectors, own, remembered[q], parts, K, mask)
        places = found.places[q, : len(best)]
        np.testing.assert_allclose(
            found.scores[q, : len(best)], [score for _, score in best], atol=1e-5
        )
        keys = list(zip(-found.scores[q, : len(best)], places, strict=True))
        assert keys == sorted(keys) and (found.places[q, len(best) :] == -1).all()
        # Titles whose scores differ by more than rounding are the same.
        clear = {t for t, score in best if score > best[-1][1] + 1e-5}
        assert clear <= set(places.tolist()) and mask[places].all()
        cosines = vectors[places] @ vector
        of_memory = np.maximum(cosines, remembered[q, places]) if vector.any() else cosines
        if weights.memory:
            np.testing.assert_allclose(found.memory[q, : len(best)], of_memory, atol=1e-6)


def test_equal_sums_with_a_memory_are_in_the_order_of_titles():
    # Titles 1 and 3 get their score from the cosine, 0 and 2 the same score from the memory.
    vectors = np.array([[0, 1], [1, 0], [0, 1], [1, 0]], float)
    clicked = np.array([[1, 0]], np.float32)
    memory = QueryMemory(["q"], clicked, np.array([0, 2]), np.array([0, 2], np.int32), 4)
    asked = np.array([[1.0, 0.0]])
    for k in range(1, 5):
        found = best_sums(["x"], asked, vectors, None, Weights(0, 0, 1), k, memory=memory)
        assert found.places[0].tolist() == [0, 1, 2, 3][:k] and set(found.scores[0]) == {1.0}


def test_a_clicked_title_without_a_vector_can_be_better_than_the_nearest():
    # The cosine of title 0 is -0.6; title 1 has no vector and was clicked for the opposite query.
    vectors = np.array([[-0.6, 0.8], [0, 0]])
    clicked = np.array([[-1, 0]], np.float32)
    memory = QueryMemory(["q"], clicked, np.array([0, 1]), np.array([1], np.int32), 2)
    asked, embedded = np.array([[1.0, 0.0]]), np.array([True, False])
    given = ["x"], asked, vectors, None, Weights(0, 1, 1), 1, None, embedded
    found = best_sums(*given, memory=memory)
    assert (found.places[0, 0], found.scores[0, 0], found.memory[0, 0]) == (1, 0, 0)


def test_candidates_of_the_memory_are_left_out_without_a_loss(monkeypatch):
    """Of thousands of clicked titles few are looked at, and none of the best is lost."""
    from sentemb.search import hybrid

    rng = np.random.default_rng(6)
    n = 6_000
    vectors = rng.normal(size=(n, 16))
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    titles = ["common rare" if k % 100 == 5 else "common " * (k % 3) for k in range(n)]
    index = InvertedIndex(titles)
    clicked = vectors[::2] + 0.4 * rng.normal(size=(n // 2, 16))
    clicked = (clicked / np.linalg.norm(clicked, axis=1, keepdims=True)).astype(np.float32)
    memory = QueryMemory(
        ["q"] * (n // 2),
        clicked,
        np.arange(n // 2 + 1),
        np.arange(0, n, 2, dtype=np.int32),
        n,
    )
    looked_at = []
    cosines = hybrid._cosines

    def counted(vector, rows, places):
        looked_at.append(len(places))
        return cosines(vector, rows, places)

    monkeypatch.setattr(hybrid, "_cosines", counted)
    asked = clicked[7:8].astype(float)
    for query, weights in [
        ("rare", Weights(0.3, 1.0, 2.0)),
        ("common rare", Weights(0.1, 1.0, 2.0)),
        ("", Weights(0.3, 0.0, 1.0)),
    ]:
        looked_at.clear()
        found = best_sums([query], asked, vectors, index, weights, 10, memory=memory)
        few = sum(looked_at)
        matches, sums = index.matches(index.look_up([query])[1])
        bonus = np.zeros(n)
        bonus[matches] = sums / sums.max(initial=1e-9)
        own = cosines(asked[0], vectors, np.arange(n))
        remembered = np.maximum(own, memory.scores(asked)[0])
        total = weights.cosine * own + weights.memory * remembered + weights.bm25 * bonus
        best = np.lexsort((np.arange(n), -total))[:10]
        np.testing.assert_allclose(found.scores[0], total[best], rtol=1e-6)
        assert found.places[0].tolist() == best.tolist() and few < n / 4, (query, few)


def test_threads_do_not_change_the_result():
    _, vectors, asked, index = made_up(400, seed=5)
    given = QUERIES, asked, vectors, index, Weights(0.3, 1.0, 0.7), K
    memory = remembering(vectors)
    alone = best_sums(*given, memory=memory)
    with Workers(3) as workers:
        shared = best_sums(*given, workers=workers, memory=memory)
    for one, other in zip(alone, shared, strict=True):
        assert np.array_equal(one, other)


def test_nothing_to_find():
    titles, vectors, asked, index = made_up()
    assert best_sums(QUERIES, asked, vectors, index, Weights(0.3), 0).places.shape == (
        len(QUERIES),
        0,
    )
    nothing = best_sums(
        QUERIES, asked, vectors, index, Weights(0.3), K, np.zeros(len(titles), bool)
    )
    assert (nothing.places == -1).all() and (nothing.scores == -np.inf).all()
    assert best_sums([], asked[:0], vectors, index, Weights(0.3), K).places.shape == (0, K)


@pytest.mark.parametrize("weight", [0.3, 0.5, 1.0])
def test_titles_without_a_vector_are_better_than_negative_cosines(weight):
    """Many matches, of which those with a vector are all on the other side."""
    rng = np.random.default_rng(5)
    n = 4_000
    titles = ["common " * (1 + k % 13) for k in range(n)]
    vectors = rng.normal(size=(n, 8))
    vectors[:, 0] = 0
    vectors *= np.sqrt(0.75) / np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[:, 0] = -0.5
    vectors[(np.arange(n) % 13 < 9) & (rng.random(n) < 0.3)] = 0
    asked, index = np.eye(1, 8), InvertedIndex(titles)
    found = best_sums(
        ["common"], asked, vectors, index, Weights(weight), 10, None, vectors.any(axis=1)
    )
    matches, sums = index.matches(index.look_up(["common"])[1])
    total = vectors @ asked[0]
    total[matches] += weight * (sums / sums.max()).astype(np.float64)
    best = np.lexsort((np.arange(n), -total))[:10]
    assert found.places[0].tolist() == best.tolist()
