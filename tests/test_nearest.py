"""The exact search for the highest dot products, against its naive twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from naive import highest_dots

from sentemb import SentembError
from sentemb.kernels.scan import integer_dots
from sentemb.models.contracts import Retriever
from sentemb.retrieval import nearest as module
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.nearest import TitleVectors, nearest
from sentemb.system.parallel import Workers

TYPES = ["float32", "float16", "float64", "int8"]


def stored(vectors, dtype):
    return Int8Rows.of(vectors) if dtype == "int8" else vectors.astype(dtype)


def as_doubles(titles):
    if isinstance(titles, Int8Rows):
        return titles.codes * titles.scales[:, None].astype(np.float64)
    return titles.astype(np.float64)


def made_up(n, m, dim, seed=0):
    """Vectors of which every third is repeated, so that scores are equal."""
    rng = np.random.default_rng(seed)
    titles = rng.standard_normal((n, dim)).astype(np.float32)
    titles[1::3] = titles[: len(titles[1::3])]
    return rng.standard_normal((m, dim)).astype(np.float32), titles


def same(found, other):
    return all((one == two).all() for one, two in zip(found, other, strict=True))


@pytest.mark.parametrize("dtype", TYPES)
@given(
    st.integers(1, 60), st.integers(1, 7), st.integers(1, 40), st.integers(0, 70), st.integers(0, 9)
)
def test_the_best_are_those_of_the_naive_twin(dtype, n, m, dim, k, seed):
    queries, titles = made_up(n, m, dim, seed)
    mask = np.random.default_rng(seed).random(n) < seed / 9 if seed else None
    titles = stored(titles, dtype)
    places, scores = nearest(queries, titles, k, mask)
    expected = highest_dots(queries, as_doubles(titles), k, mask)
    assert places.shape == (m, min(k, n)) and (places == expected[0]).all()
    found = places >= 0
    assert np.abs(scores[found] - expected[1][found]).max(initial=0) < 1e-5 * dim
    assert (scores[~found] == -np.inf).all()
    for q in range(m):  # a title is found by its score and its place, so the order is checked too
        assert (np.lexsort((places[q], -scores[q]))[found[q]] == np.arange(found[q].sum())).all()


@pytest.fixture(scope="module")
def large():
    """More titles and queries than any block: sums, ties and masks cross the edges."""
    return made_up(20_000, 300, 48)


@pytest.mark.parametrize("dtype", TYPES)
def test_a_query_has_the_same_bits_alone_and_with_any_threads(large, dtype):
    queries, titles = large[0], stored(large[1], dtype)
    mask = np.random.default_rng(1).random(len(titles)) < 0.5
    for allowed in (None, mask):
        expected = nearest(queries, titles, 12, allowed)
        for threads in (2, 7):
            with Workers(threads) as workers:
                assert same(expected, nearest(queries, titles, 12, allowed, workers))
                some = nearest(queries[5:25], titles, 12, allowed, workers)
                assert same([one[5:25] for one in expected], some)
        for q in (0, 130, 299):
            alone = nearest(queries[q : q + 1], titles, 12, allowed)
            assert same([one[q : q + 1] for one in expected], alone)
        assert same([one[:3] for one in expected], nearest(queries[:3], titles, 12, allowed))


def test_large_searches_find_what_numpy_finds(large):
    queries, titles = large
    products = queries.astype(np.float64) @ titles.T.astype(np.float64)
    order = np.argsort(-np.round(products, 9), axis=1, kind="stable")[:, :100]
    places, scores = nearest(queries, titles, 100)
    assert (places == order).all()
    assert np.abs(scores - np.take_along_axis(products, order, axis=1)).max() < 1e-9


def test_scores_closer_than_float32_are_in_the_right_order():
    """Differences that float32 products do not show: only the second score orders these."""
    rng = np.random.default_rng(0)
    titles = np.tile(rng.standard_normal(96), (5000, 1))
    titles += 1e-10 * rng.standard_normal(titles.shape)
    query = rng.standard_normal((1, 96))
    for queries in (query, np.repeat(query, 6, axis=0)):
        places, _ = nearest(queries, titles, 20)
        assert (places == np.argsort(-(titles @ query[0]), kind="stable")[:20]).all()


@pytest.mark.parametrize("dtype", TYPES[:3])
@pytest.mark.parametrize("scale", [1e-30, 1e-6, 1e15])
def test_small_and_large_numbers_are_found(dtype, scale):
    if dtype == "float16" and scale != 1e-6:
        pytest.skip("beyond float16")
    queries, titles = made_up(500, 5, 20)
    titles = (titles * scale).astype(dtype)
    if scale == 1e15:
        queries = (queries * 1e15).astype(np.float32)
    for some in (queries, queries[:1]):
        expected = highest_dots(some, titles, 5)
        places, scores = nearest(some, titles, 5)
        assert (places == expected[0]).all()
        assert np.abs(scores / expected[1] - 1).max() < 1e-9


def test_numbers_beyond_float32_are_scored_in_float64():
    queries, titles = made_up(300, 6, 20)
    huge = titles.astype(np.float64) * 1e60
    for some in (queries, queries[:1]):
        assert same(nearest(some, huge, 5)[:1], highest_dots(some, huge, 5)[:1])


OVERFLOWING = {  # queries and titles whose float32 products are -inf
    "titles": (np.ones((1, 2)), np.float32([[-3e38, -3e38], [1, 1], [-2e38, -2e38]])),
    "queries": (np.full((1, 2), 1e60), np.array([[-3.0, -3], [1, 1], [-2, -2]])),
    "int8": (
        np.full((1, 2), 1e45),
        Int8Rows(np.int8([[-9, -9], [3, 3], [-5, -5]]), np.float32([1e-30] * 3)),
    ),
}


@pytest.mark.parametrize(("queries", "titles"), OVERFLOWING.values(), ids=OVERFLOWING)
def test_products_of_minus_infinity_are_scored_in_float64(queries, titles):
    for some in (queries, np.repeat(queries, 5, axis=0)):
        places, scores = nearest(some, titles, 3)
        assert (places == [1, 2, 0]).all() and np.isfinite(scores).all()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
@pytest.mark.parametrize("small", [1e-45, 1e-42, 1e-38])
def test_tiny_queries_of_large_titles_are_ranked_right(dtype, small):
    """Such queries have few digits in float32."""
    queries, titles = made_up(400, 6, 3)
    titles = stored((titles * 1e15).astype(np.float32), dtype)
    for some in (queries * np.float64(small), queries[:1] * np.float64(small)):
        assert (nearest(some, titles, 3)[0] == highest_dots(some, as_doubles(titles), 3)[0]).all()


@pytest.mark.parametrize("dtype", TYPES[:3])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(dtype, value):
    queries, titles = made_up(3000, 6, 20)
    titles = titles.astype(dtype)
    titles[2500, 7] = value
    for some in (queries, queries[:1]):
        with pytest.raises(SentembError, match="row 2,500 of the titles"):
            nearest(some, titles, 5)
    queries[2, 3] = value
    with pytest.raises(SentembError, match="row 2 of the queries"):
        nearest(queries, titles[:10], 5)
    scales = np.ones(10, np.float32)
    scales[4] = value
    with pytest.raises(SentembError, match="row 4 of the titles"):
        nearest(queries[:1], Int8Rows(np.ones((10, 20), np.int8), scales), 5)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"queries": np.ones((2, 4))}, "have no dot products"),
        ({"queries": np.ones(5)}, "have no dot products"),
        ({"k": -1}, "k is -1"),
        ({"k": 1.5}, "k is 1.5"),
        ({"mask": np.ones(9, bool)}, "the mask must be 10 times True or False"),
        ({"mask": np.ones(10)}, "the mask must be 10 times True or False"),
        ({"titles": np.ones((10, 5), int)}, "titles are int64"),
    ],
)
def test_wrong_arguments_are_refused(changed, message):
    arguments = {"queries": np.ones((2, 5)), "titles": np.ones((10, 5)), "k": 3} | changed
    with pytest.raises(SentembError, match=message):
        nearest(**arguments)


def test_nothing_is_found_among_nothing():
    for n, m, k in ((0, 3, 5), (5, 0, 3), (5, 2, 0)):
        places, scores = nearest(np.ones((m, 4)), np.ones((n, 4)), k)
        assert places.shape == scores.shape == (m, min(k, n))


def test_few_allowed_titles_are_the_same_as_a_mask(large, monkeypatch):
    queries, titles = large
    mask = np.zeros(len(titles), bool)
    mask[np.random.default_rng(2).choice(len(titles), 15, replace=False)] = True
    found = nearest(queries, titles, 20, mask)
    monkeypatch.setattr(module, "_FEW_LEFT", len(titles) + 1)
    assert same(found, nearest(queries, titles, 20, mask))
    assert (found[0][:, 15:] == -1).all() and (found[0][:, :15] >= 0).all()


@given(st.integers(1, 9) | st.integers(300, 400), st.integers(1, 100), st.integers(0, 5))
def test_integer_products_are_exact(n, dim, seed):
    rng = np.random.default_rng(seed)
    codes = rng.integers(-127, 128, (n, dim)).astype(np.int8)
    query = rng.integers(-32767, 32768, dim).astype(np.int16)
    codes[0], query[:] = (127, 32767) if seed == 0 else (codes[0], query)
    products = np.empty(n, np.float32)
    integer_dots(products, codes, np.ones(n, np.float32), query, np.float32(1))
    expected = (codes.astype(np.int64) @ query.astype(np.int64)).astype(np.float32)
    assert (products == expected).all()


def test_int8_rows_keep_all_but_a_half_step():
    _, titles = made_up(50, 1, 30)
    titles[7] = 0
    rows = Int8Rows.of(titles)
    step = np.abs(titles).max(axis=1, keepdims=True) / 127
    assert (np.abs(rows.vectors() - titles) <= step / 2 * 1.0001).all()
    assert not rows.vectors()[7].any() and np.abs(rows.codes).max() == 127


def test_title_vectors_are_a_retriever(make_model):
    model = make_model("bag")
    titles = ["shanghai hotels", "bath tub", "hotels in shanghai"]
    vectors = TitleVectors(model, titles)
    assert isinstance(vectors, Retriever)
    places, scores = vectors.find(["hotels in shanghai"], 2)
    cosines = model.score("hotels in shanghai", titles)
    assert (places[0] == np.argsort(-cosines)[:2]).all()
    assert np.abs(scores[0] - np.sort(cosines)[::-1][:2]).max() < 1e-6


@pytest.mark.parametrize("m", [3, 12])
def test_titles_that_float32_cannot_tell_apart_are_ranked_by_float64(m):
    """Their scores differ by less than the rounding of sums in float32."""
    rng = np.random.default_rng(6)
    dim = 600
    for spread in (1e-8, 1e-7, 1e-6, 1e-5):
        queries = np.abs(rng.standard_normal((m, dim)))
        queries /= np.linalg.norm(queries, axis=1, keepdims=True)
        titles = np.abs(rng.standard_normal(dim)) + spread * rng.standard_normal((500, dim))
        titles /= np.linalg.norm(titles, axis=1, keepdims=True)
        places, _ = nearest(queries, titles, 5)
        expected = np.argsort(-(titles @ queries.T), axis=0, kind="stable")[:5].T
        assert (places == expected).all(), spread


def test_a_title_along_what_a_query_loses_as_integers_is_found():
    rng = np.random.default_rng(3)
    dim, found = 16, 0
    for _ in range(50):
        query = rng.standard_normal((1, dim))
        query /= np.linalg.norm(query)
        ((integers,), (step,), (lost,)) = module._as_integers(query)
        title = Int8Rows.of((query - integers * step) / lost)
        score = float(as_doubles(title)[0] @ query[0])
        # The first title is a little worse, and better than what the integers say of the second.
        other = Int8Rows.of(query)
        wanted = score - lost / 3
        scale = np.float32(wanted / (other.codes[0].astype(float) @ query[0]))
        titles = Int8Rows(
            np.concatenate([other.codes, title.codes]), np.array([scale, title.scales[0]])
        )
        best = int(np.argmax(as_doubles(titles) @ query[0]))
        found += best
        assert nearest(query, titles, 1)[0].tolist() == [[best]]
    assert found > 40
