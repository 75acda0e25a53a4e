"""ARC-II against its slow twin and finite differences, and the same bits in any batch."""

import itertools

import naive_pairs
import numpy as np
import pytest

from sentemb.errors import SentembError
from sentemb.kernels.convolution2d import Planes, pool_planes, unpool_planes
from sentemb.kernels.matmul import add_matmul_at
from sentemb.kernels.windows import pool_pairs
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.arc2 import ARC2
from sentemb.models.pairs.head import Dropout, Pass
from sentemb.models.pairs.layer_sizes import layer_sizes, least_words
from sentemb.models.pairs.pair_model import Pairs, Texts
from sentemb.models.pairs.planes import convolved, corners, pooled, rectangles
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers

# Odd and even planes, one to three convolutions, the smallest length, a window of one word.
CASES = [
    {"maps": (5, 4), "max_words": 10},
    {"maps": (5, 4), "max_words": 10, "gate": "printed"},
    {"maps": (5, 4), "max_words": 7},
    {"maps": (3, 4, 5), "max_words": 17, "mlp_layers": 2},
    {"maps": (3, 4, 5), "max_words": 16, "gate": "printed"},
    {"maps": (4, 3, 2), "max_words": 9, "window": 2},
    {"maps": (4, 3), "max_words": 6, "window": 1},
    {"maps": (6,), "max_words": 5},
    {"maps": (6,), "max_words": 4, "gate": "printed", "window": 2},
    {"maps": (35, 34), "max_words": 9},
]
N_WORDS = 20


def case_name(case):
    return "-".join(str(value).replace(" ", "") for value in case.values())


class Example:
    """A model with random weights, and every query with every title."""

    def __init__(self, case, dtype=np.float64, lengths=None, seed=0):
        rng = np.random.default_rng(seed)
        self.model = make_pair_model("arc2", embedding=3, mlp=4, **case)
        most = self.model.max_words
        self.weights = self.model.initialise(N_WORDS, rng, dtype)
        for name, array in self.weights.items():
            if "bias" in name:
                array[...] = 0.3 * rng.standard_normal(array.shape)
        self.P = rng.standard_normal((N_WORDS, 3)).astype(dtype)
        self.P[0] = 0  # a word without known features
        everything = list(range(most + 4)) if lengths is None else lengths
        self.texts = {}
        for side in ("query", "document"):
            offsets = np.concatenate([[0], np.cumsum(rng.permutation(everything))])
            words = rng.integers(0, N_WORDS, offsets[-1]).astype(np.int32)
            self.texts[side] = Texts(words, offsets.astype(np.int64)).cut(most)
        n = len(everything)
        self.queries = np.repeat(np.arange(n), n).astype(np.int32)
        self.titles = np.tile(np.arange(n), n).astype(np.int32)

    def score(self, workers, pairs=slice(None), dropout=None):
        given = self.given(dropout)
        readings = [
            workers.together(self.model.read_tasks(given, side, texts))[0]
            for side, texts in self.texts.items()
        ]
        pairs = Pairs(*readings, self.queries[pairs], self.titles[pairs])
        return workers.together(self.model.score_tasks(given, pairs))[0]

    def given(self, dropout=None):
        return Pass(self.weights, self.P, Workspace(), dropout)

    def backward(self, workers, V, dropout=None):
        done = self.score(workers, dropout=dropout)
        job = self.model.backward_tasks(self.given(dropout), done, V)
        return workers.together(job)[0]

    def words_of(self, side, text):
        words, offsets = self.texts[side]
        return self.P[words[offsets[text] : offsets[text + 1]]]

    def twin(self):
        """The blocks as the twin names them."""
        p = self.model.blocks(self.weights)
        for layer in range(1, self.model.mlp_layers + 1):
            p[f"Wm{layer}"], p[f"bm{layer}"] = p[f"M{layer}"], p[f"c{layer}"]
        return p | {"Ws": p["w"][None], "bs": p["c"]}


@pytest.fixture(scope="module")
def workers():
    with Workers(1) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=case_name)
def test_scores_are_those_of_equations_3_to_6(case, workers):
    example = Example(case)
    model, p = example.model, example.twin()
    done = example.score(workers)
    rng = np.random.default_rng(1)
    for pair in rng.choice(done.scores.size, 25, replace=False):
        X = example.words_of("query", example.queries[pair])
        Y = example.words_of("document", example.titles[pair])
        shape = model.max_words, model.window, len(model.maps), model.gate
        assert done.scores[pair] == pytest.approx(
            naive_pairs.arc2_score(p, X, Y, *shape, model.mlp_layers), abs=1e-12
        )
        planes = naive_pairs.arc2_planes(p, X, Y, *shape)
        last, _ = planes[-1]
        np.testing.assert_allclose(done.arrays["H"][pair], last.reshape(-1), atol=1e-12)
        layers = model._layers(Planes(done.arrays["shapes"], done.arrays["cells"]))
        for number, (values, on) in zip(model._numbers, planes[1:], strict=True):
            after = layers[(number - 3) // 2].after
            cells = done.arrays[f"M{number}"][after.starts[pair] : after.starts[pair + 1]]
            np.testing.assert_allclose(cells, values[on], atol=1e-12)


def test_both_texts_without_words_score_what_the_mlp_makes_of_zeros(workers):
    example = Example(CASES[0], lengths=[0, 0, 3])
    empty = [
        example.words_of("query", q).size + example.words_of("document", t).size == 0
        for q, t in zip(example.queries, example.titles, strict=True)
    ]
    done, p = example.score(workers), example.twin()
    zero = naive_pairs.mlp_score(p, np.zeros(example.model.inputs), 1)
    assert sum(empty) == 4
    np.testing.assert_allclose(done.scores[empty], zero, atol=1e-15)


@pytest.mark.parametrize(
    ("case", "dropout"),
    [(case, None) for case in CASES] + [(CASES[0], Dropout.of(0.5, 1, 2))],
    ids=lambda value: case_name(value) if isinstance(value, dict) else None,
)
def test_the_gradient_is_that_of_finite_differences(case, dropout, workers):
    most = case["max_words"]
    example = Example(case, lengths=[0, 1, 3, most - 1, most])
    rng, h = np.random.default_rng(2), 1e-6
    V = rng.standard_normal(example.queries.size)
    gradient, errors = example.backward(workers, V, dropout)

    def slope(array, at):
        values = []
        kept = array[at]
        for value in (kept + h, kept - h):
            array[at] = value
            values.append(example.score(workers, dropout=dropout).scores @ V)
        array[at] = kept
        return (values[0] - values[1]) / (2 * h)

    assert set(gradient) == set(example.weights) - {"table"}
    for name, array in gradient.items():
        assert array.shape == example.weights[name].shape
        largest = np.unravel_index(np.abs(array).argmax(), array.shape)
        for at in (largest, *(tuple(rng.integers(array.shape)) for _ in range(2))):
            assert array[at] == pytest.approx(slope(example.weights[name], at), rel=1e-5, abs=1e-6)
    dP = np.zeros_like(example.P)
    for side, rows in errors.items():
        np.add.at(dP, example.texts[side].word_index, rows)
    for at in itertools.product((0, 5, 11), range(3)):
        assert dP[at] == pytest.approx(slope(example.P, at), rel=1e-5, abs=1e-6)


def test_fixed_word_vectors_need_no_gradient_at_the_words(workers):
    example = Example(CASES[0], lengths=[0, 2, 5])
    V = np.ones(example.queries.size)
    done = example.score(workers)
    job = example.model.backward_tasks(example.given(), done, V, words=False)
    gradient, errors = workers.together(job)[0]
    assert errors == {}
    expected, _ = example.backward(workers, V)
    assert all(np.array_equal(gradient[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    ("gate", "dtype"), [("and", np.float32), ("and", np.float64), ("printed", np.float64)]
)
def test_a_pair_alone_is_the_pair_in_any_batch(gate, dtype, workers):
    example = Example({"maps": (7, 35), "max_words": 9, "gate": gate}, dtype)
    together = example.score(workers).scores
    for pair in (0, 17, 70, together.size - 1):
        alone = example.score(workers, np.s_[pair : pair + 1]).scores
        few = example.score(workers, np.s_[pair - pair % 5 : pair + 1]).scores
        assert alone[0].tobytes() == few[-1].tobytes() == together[pair].tobytes()


def test_results_depend_neither_on_threads_nor_on_the_size_of_blocks(monkeypatch):
    example = Example({"maps": (5, 4, 3), "max_words": 16})
    V = np.random.default_rng(3).standard_normal(example.queries.size)
    results = []
    for threads, cells in ((1, 768), (2, 768), (8, 768), (1, 40), (2, 10**6)):
        monkeypatch.setattr("sentemb.models.pairs.arc2._BLOCK_CELLS", cells)
        with Workers(threads) as some:
            scores = example.score(some).scores
            gradient, errors = example.backward(some, V)
        found = {"scores": scores, **gradient, **errors}
        results.append({name: array.tobytes() for name, array in found.items()})
    assert all(other == results[0] for other in results[1:])


@pytest.mark.parametrize(("n", "inner"), [(5, 3), (33, 40), (70, 700), (256, 7)])
def test_products_of_rows_that_lie_apart(n, inner):
    rng = np.random.default_rng(4)
    for m in (0, 1, 7, 8, 9, 40):
        C, A = rng.standard_normal((60, n)), rng.standard_normal((50, inner))
        B = rng.standard_normal((inner, n))
        c_rows, a_rows = rng.permutation(60)[:m], rng.integers(0, 50, m)
        expected = C.copy()
        expected[c_rows] += A[a_rows] @ B
        add_matmul_at(C, c_rows, A, a_rows, B)
        np.testing.assert_allclose(C, expected, rtol=0, atol=1e-12 * inner)


def test_the_first_of_equal_cells_wins_and_takes_all_of_the_error():
    before = rectangles(np.array([3]), np.array([3]))
    after = pooled(before)
    Z = np.ones((9, 1))
    M, places, D = np.empty((4, 1)), np.empty((4, 1), np.uint8), np.empty((9, 1))
    pool_planes(M, places, Z, before, after, 0, 1)
    assert not places.any()
    unpool_planes(D, np.array([[1.0], [2], [3], [4]]), M, places, before, after, 0, 1)
    assert D.ravel().tolist() == [1, 0, 2, 0, 0, 0, 3, 0, 4]
    pooled_rows, later = np.empty((1, 1)), np.empty((1, 1), bool)
    one_text = np.array([0, 2]), np.array([0, 1]), np.array([2])
    pool_pairs(pooled_rows, later, np.ones((2, 1)), *one_text, 0, 1)
    assert not later.any()


@pytest.mark.parametrize("bad", range(4))
def test_pooling_keeps_not_a_number(bad):
    before = rectangles(np.array([2]), np.array([2]))
    Z = np.arange(4.0)[:, None]
    Z[bad] = np.nan
    M, places = np.empty((1, 1)), np.empty((1, 1), np.uint8)
    pool_planes(M, places, Z, before, pooled(before), 0, 1)
    assert np.isnan(M[0, 0])


def test_which_cells_are_on():
    rows, columns = np.array([3, 0, 5, 0]), np.array([2, 4, 5, 0])
    i, j = np.indices((5, 5))
    for planes, gate in (
        (rectangles(rows, columns), np.logical_and),
        (corners(rows, columns, 5), np.logical_or),
    ):
        for plane in range(4):
            on = gate(i < rows[plane], j < columns[plane])
            upper, width, high, rest = planes.shapes[plane]
            found = ((i < upper) & (j < width)) | ((i >= upper) & (i < high) & (j < rest))
            assert np.array_equal(found, on)
            assert planes.starts[plane + 1] - planes.starts[plane] == on.sum()
    assert convolved(rectangles(rows, columns), 3).shapes[2].tolist() == [3, 3, 3, 0]


@pytest.mark.parametrize(
    ("window", "convolutions", "least"), [(3, 1, 3), (3, 2, 7), (3, 3, 15), (1, 6, 1), (9, 2, 25)]
)
def test_the_smallest_length_leaves_one_cell(window, convolutions, least):
    assert least_words(window, convolutions) == least
    assert layer_sizes(least, window, convolutions)[-1] == (1, 1)
    if least > 1:
        with pytest.raises(SentembError, match=f"at least {least} words"):
            layer_sizes(least - 1, window, convolutions)


def test_too_few_words_for_the_layers_are_refused():
    with pytest.raises(SentembError) as caught:
        ARC2(maps=(5, 4), max_words=6)
    assert str(caught.value) == (
        "2 convolutions with window 3 need at least 7 words (--max-words 6); "
        "fewer --maps or more words"
    )
    assert ARC2(maps=(5, 4)).least_words == 7


def test_blocks_are_views_in_the_paper_s_shapes():
    model = ARC2(maps=(5, 4), embedding=3, max_words=9)
    weights = model.initialise(7, np.random.default_rng(0))
    blocks = model.blocks(weights)
    shapes = {name: block.shape for name, block in blocks.items()}
    assert shapes["W1x"] == shapes["W1y"] == (5, 9)
    assert shapes["W3"] == (4, 9 * 5)
    assert all(
        any(np.shares_memory(block, array) for array in weights.values())
        for block in blocks.values()
    )
    # A cell of layer 1 reads a window of either text: 2 x 3 x 3 numbers.
    assert model.spreads()["windows_query"] == pytest.approx((2 / 18) ** 0.5)
    assert model.spreads()["maps3"] == pytest.approx((2 / 45) ** 0.5)
