"""The memory of a click log: the nearest clicked query of every title."""

import naive
import numpy as np
import pytest

from sentemb.data.click_log import ClickLogBuilder
from sentemb.errors import SentembError
from sentemb.ranking.memory import QueryMemory
from sentemb.system.parallel import Workers

TITLES = [" Paint a Wall", "Repair a Faucet", "never clicked", "Paint a Wall", "Fix a Bike"]
CLICKS = [
    ("fix tap", "Repair a Faucet"),
    ("paint", "Paint a Wall"),
    ("gone", "not in the catalogue"),
    ("fix", "Repair a Faucet"),
    ("fix tap", "Repair a Faucet"),
    ("unknown", "Fix a Bike"),
    ("fix", "Fix a Bike"),
]


class Made:
    """Vectors from a table; a query that is not in it is the zero vector."""

    dim = 37  # does not fill vector registers

    def __init__(self):
        rng = np.random.default_rng(7)
        self.table = {query: rng.normal(size=self.dim) for query, _ in CLICKS if query != "unknown"}
        self.asked = []

    def encode_query(self, texts):
        self.asked += texts
        return np.array([self.table.get(text, np.zeros(self.dim)) for text in texts])


def clicks(pairs=CLICKS):
    builder = ClickLogBuilder()
    for query, title in pairs:
        builder.add(query, title)
    return builder.build()


def queries(count=5):
    rows = np.random.default_rng(1).normal(size=(count, Made.dim))
    rows[-1] = 0
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


def same(one, other):
    return (
        list(one.queries) == list(other.queries)
        and one.n_titles == other.n_titles
        and all(
            getattr(one, name).dtype == getattr(other, name).dtype
            and np.array_equal(getattr(one, name), getattr(other, name))
            for name in ("vectors", "offsets", "places")
        )
    )


def test_build_embeds_each_clicked_query_of_the_catalogue_once():
    encoder = Made()
    memory = QueryMemory.build(encoder, TITLES, clicks())
    assert encoder.asked == ["fix tap", "paint", "fix", "unknown"]
    assert memory.queries == ["fix tap", "paint", "fix"], "a zero vector is left out"
    assert memory.offsets.tolist() == [0, 1, 3, 5] and memory.places.tolist() == [1, 0, 3, 1, 4]
    assert memory.vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(memory.vectors, axis=1), 1, rtol=1e-6)
    assert memory.has_clicks.tolist() == [True, True, False, True, True]


def test_scores_are_the_nearest_clicked_query():
    memory = QueryMemory.build(Made(), TITLES, clicks())
    found = memory.scores(queries())
    assert found.dtype == np.float32 and found.shape == (5, 5)
    for row, query in zip(found, queries(), strict=True):
        expected = naive.best_clicked(query, memory.vectors, [{1}, {0, 3}, {1, 4}], 5)
        np.testing.assert_allclose(row, expected, atol=1e-6)
    assert (found[:, 2] == -1).all(), "never clicked"
    assert (found[-1, [0, 1, 3, 4]] == 0).all(), "a query of zeros"
    with pytest.raises(SentembError, match="give rows of 37 numbers"):
        memory.scores(np.zeros((2, 36)))
    listed = QueryMemory.listed(TITLES, clicks())
    assert listed.queries == ["fix tap", "paint", "fix", "unknown"] and listed.vectors is None
    with pytest.raises(SentembError, match="have no vectors; call embedded"):
        listed.scores(queries())
    gone = np.array([1])
    assert same(listed.without(gone).embedded(Made()), memory.without(gone))


def test_bits_do_not_depend_on_the_batch_or_on_threads():
    memory = QueryMemory.build(Made(), TITLES, clicks())
    asked = np.random.default_rng(2).normal(size=(40, Made.dim))
    together = memory.scores(asked)
    for q in range(len(asked)):
        assert np.array_equal(memory.scores(asked[q : q + 1])[0], together[q])
    with Workers(3) as workers:
        assert np.array_equal(memory.scores(asked, workers), together)


def test_scores_of_pairs_have_the_bits_of_all():
    # One title has more clicked queries than a tile, one has one, one has none.
    pairs = [(f"query {k}", "Paint a Wall") for k in range(300)]
    pairs += [("query 7", "Repair a Faucet"), ("query 301", "Fix a Bike")]
    encoder, rng = Made(), np.random.default_rng(3)
    encoder.table = {query: rng.normal(size=Made.dim) for query, _ in pairs}
    memory = QueryMemory.build(encoder, TITLES, clicks(pairs))
    asked, rows = queries(6), rng.integers(6, size=500)
    places = rng.integers(len(TITLES), size=500)
    for threads in (1, 2):
        with Workers(threads) as workers:
            found = memory.scores_of_pairs(asked, rows, places, workers)
        assert found.dtype == np.float32
        assert np.array_equal(found, memory.scores(asked)[rows, places])
    ends = zip(memory.offsets[:-1], memory.offsets[1:], strict=True)
    titles = [memory.places[first:end].tolist() for first, end in ends]
    for score, row, place in zip(found, rows, places, strict=True):
        expected = naive.best_clicked(asked[row], memory.vectors, titles, len(TITLES))
        assert score == pytest.approx(expected[place], abs=1e-6)
    with pytest.raises(SentembError, match="give rows of 37 numbers"):
        memory.scores_of_pairs(np.zeros((2, 36)), rows, places, workers)


def test_the_nearest_clicked_query_explains_a_score():
    memory = QueryMemory.build(Made(), TITLES, clicks())
    scores = memory.scores(queries())
    for q, query in enumerate(queries()):
        for place in (0, 1, 3, 4):
            found = memory.nearest(query, place)
            assert found.cosine == scores[q, place]
            own = {0: ["paint"], 1: ["fix tap", "fix"], 3: ["paint"], 4: ["fix"]}[place]
            assert found.query in own
        assert memory.nearest(query, 2) is None
    assert memory.nearest(queries()[-1], 1).query == "fix tap", "the first of equally near ones"


def test_changes_equal_a_new_memory():
    memory = QueryMemory.build(Made(), TITLES, clicks())
    gone = np.array([0, 1])
    left = [title for place, title in enumerate(TITLES) if place not in gone]
    assert same(memory.without(gone), QueryMemory.build(Made(), left, clicks()))
    assert same(memory.extended(2), QueryMemory.build(Made(), [*TITLES, "x", "y"], clicks()))
    nothing = memory.without(np.arange(len(TITLES)))
    assert nothing.n_titles == 0 and not nothing.queries
    assert nothing.extended(3).scores(queries()).tolist() == [[-1] * 3] * 5


def test_a_log_of_other_titles():
    memory = QueryMemory.build(Made(), ["other"], clicks())
    assert not memory.queries and (memory.scores(queries()) == -1).all()
    assert memory.vectors.shape == (0, Made.dim)


def test_clicked_queries_beyond_the_first_block_count():
    """More of them than a kernel multiplies at a time, for several titles and many queries."""
    rng = np.random.default_rng(3)
    n_clicked, n_titles = 700, 5
    rows = rng.normal(size=(n_clicked, 9)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    places = np.arange(n_clicked) // 400  # the first title has 400, the second 300
    memory = QueryMemory(
        [str(k) for k in range(n_clicked)],
        rows,
        np.arange(n_clicked + 1),
        places.astype(np.int32),
        n_titles,
    )
    asked = rng.normal(size=(140, 9))
    asked /= np.linalg.norm(asked, axis=1, keepdims=True)
    products = asked @ rows.T
    expected = np.full((140, n_titles), -1.0)
    for title in range(2):
        expected[:, title] = products[:, places == title].max(axis=1)
    for count in (40, 140):
        np.testing.assert_allclose(memory.scores(asked[:count]), expected[:count], atol=1e-5)
        pairs = np.repeat(np.arange(count), n_titles), np.tile(np.arange(n_titles), count)
        with Workers(1) as workers:
            found = memory.scores_of_pairs(asked[:count], *pairs, workers)
        np.testing.assert_allclose(found.reshape(count, -1), expected[:count], atol=1e-5)
