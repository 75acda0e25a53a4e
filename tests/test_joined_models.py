"""Pair models whose texts meet in the MLP: ARC-I, SENNA, SenMLP and WordEmbed."""

import itertools

import naive_joined
import numpy as np
import pytest

from sentemb import SentembError
from sentemb.kernels.convolution import pool_rows
from sentemb.kernels.windows import add_gradient_at, overlapping
from sentemb.models.pairs import PAIR_MODELS, make_pair_model
from sentemb.models.pairs.head import Dropout, Pass
from sentemb.models.pairs.pair_model import Pairs, Texts
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers

N_WORDS = 12
NAMES = ("wordembed", "senmlp", "senna", "arc1")
VARIANTS = [(name, own) for name in NAMES for own in PAIR_MODELS[name].variants]


def name_of(variant):
    name, own = variant
    return "-".join([name, *(f"{key}={value}" for key, value in own.items())])


each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=name_of)


class DirtyWorkspace(Workspace):
    """Arrays that hold NaN until something is written to them."""

    def empty(self, name, shape, dtype):
        array = super().empty(name, shape, dtype)
        if array.dtype.kind == "f":
            array[...] = np.nan
        return array


class Case:
    """A model with random weights, biases too, and texts of 0 to L + 3 words on both sides."""

    def __init__(self, variant, dtype=np.float64, **settings):
        name, own = variant
        rng = np.random.default_rng(7)
        settings = {"embedding": 4, "mlp": 5, "max_words": 9, **own, **settings}
        self.model = make_pair_model(name, **settings)
        self.weights = self.model.initialise(3, rng, dtype)
        for array in self.weights.values():
            if array.ndim == 1:
                array[...] = 0.3 * rng.standard_normal(array.shape)
        self.P = rng.standard_normal((N_WORDS, 4)).astype(dtype)
        lengths = np.arange(self.model.max_words + 4)
        self.texts = [self.some_texts(rng, rng.permutation(lengths)) for _ in range(2)]
        n_texts = lengths.size
        self.pairs = [index.ravel().astype(np.int32) for index in np.indices((n_texts, n_texts))]
        self.V = rng.standard_normal(n_texts**2).astype(dtype)

    @staticmethod
    def some_texts(rng, lengths):
        words = rng.integers(0, N_WORDS, lengths.sum()).astype(np.int32)
        return Texts(words, np.concatenate([[0], np.cumsum(lengths)]))

    def vectors(self, side):
        words, offsets = self.texts[side]
        return [
            self.P[words[low:high]].astype(np.float64) for low, high in itertools.pairwise(offsets)
        ]

    def score(self, texts=None, pairs=None, dropout=None, threads=1, space=None):
        space = space or Workspace()
        queries, titles = (one.cut(self.model.max_words) for one in texts or self.texts)

        def job():
            given = Pass(self.weights, self.P, space, dropout)
            q = yield from self.model.read_tasks(given, "query", queries)
            t = yield from self.model.read_tasks(given, "document", titles)
            return (yield from self.model.score_tasks(given, Pairs(q, t, *(pairs or self.pairs))))

        return Workers(threads).together(job())[0]

    def backward(self, dropout=None, words=True, threads=1, space=None):
        """The gradient of V . scores, with that at the words as ``P``."""
        space = space or Workspace()
        done = self.score(dropout=dropout, threads=threads, space=space)
        given = Pass(self.weights, self.P, space, dropout)
        job = self.model.backward_tasks(given, done, self.V, words)
        gradient, errors = Workers(threads).together(job)[0]
        if words:
            gradient["P"] = np.zeros_like(self.P)
            for reading, side in ((done.queries, "query"), (done.titles, "document")):
                np.add.at(gradient["P"], reading.texts.word_index, errors[side])
        else:
            assert errors == {}
        return done.scores, gradient


# A vector of 64 bytes holds 16 numbers in float32: 40 maps are two vectors and a part of one.
@pytest.mark.parametrize(
    "variant",
    [
        *VARIANTS,
        ("arc1", {"maps": (40, 33), "max_words": 8}),
        ("arc1", {"maps": (3, 4, 2, 3, 2, 3), "window": 2, "max_words": 64}),
        ("arc1", {"maps": (3, 4), "window": 1, "max_words": 1}),
        ("senna", {"maps": (3,), "window": 9}),
    ],
    ids=name_of,
)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
def test_scores_are_those_of_the_naive_twin(variant, dtype, tolerance):
    case = Case(variant, dtype)
    blocks = {
        name: array.astype(np.float64) for name, array in case.model.blocks(case.weights).items()
    }
    expected = naive_joined.scores(case.model, blocks, case.vectors(0), case.vectors(1))
    scale = np.abs(expected).max()
    assert np.abs(case.score().scores - expected.ravel()).max() < tolerance * scale


@each_variant
@pytest.mark.parametrize("dropout", [None, Dropout(0.4, np.uint64(5))], ids=["", "dropout"])
def test_gradients_are_finite_differences(variant, dropout):
    case = Case(variant)
    _, gradient = case.backward(dropout)
    moved = {**case.weights, "P": case.P}
    del moved["table"]
    assert set(gradient) == set(moved)
    rng, step = np.random.default_rng(0), 1e-6
    for name, array in moved.items():
        before = array.copy()
        for _ in range(2):  # a wrong entry shows in any direction but those at right angles to it
            direction = rng.standard_normal(array.shape)
            array[...] = before + step * direction
            above = case.V @ case.score(dropout=dropout).scores
            array[...] = before - step * direction
            below = case.V @ case.score(dropout=dropout).scores
            array[...] = before
            expected = (above - below) / (2 * step)
            assert (gradient[name] * direction).sum() == pytest.approx(expected, rel=1e-6), name
        assert np.abs(gradient[name]).max() > 0, name


@each_variant
def test_fixed_words_change_nothing_else(variant):
    case = Case(variant)
    _, gradient = case.backward()
    del gradient["P"]
    _, without = case.backward(words=False)
    assert set(without) == set(gradient)
    for name, array in gradient.items():
        assert without[name].tobytes() == array.tobytes()


@each_variant
def test_a_pair_has_the_same_bits_alone(variant):
    case = Case(variant, np.float32)
    scores = case.score().scores
    n_texts = case.texts[0].n_texts
    for query, title in ((0, 1), (3, 3), (n_texts - 1, 2), (5, n_texts - 2)):
        alone = []
        for texts, k in zip(case.texts, (query, title), strict=True):
            low, high = texts.offsets[k : k + 2]
            alone.append(Texts(texts.word_index[low:high], np.array([0, high - low])))
        one = np.zeros(1, np.int32)
        assert case.score(alone, (one, one)).scores[0] == scores[query * n_texts + title]


@each_variant
def test_neither_threads_nor_old_memory_change_a_bit(variant):
    case = Case(variant, np.float32)
    dropout = Dropout(0.3, np.uint64(2))
    scores, gradient = case.backward(dropout)
    for threads, space in ((2, None), (8, None), (1, DirtyWorkspace())):
        again, other = case.backward(dropout, threads=threads, space=space)
        assert again.tobytes() == scores.tobytes()
        for name, array in gradient.items():
            assert other[name].tobytes() == array.tobytes(), name


@pytest.mark.parametrize("name", ["arc1", "senna"])
def test_shared_towers_are_two_with_the_same_weights(name):
    maps = {"maps": (5, 4) if name == "arc1" else (5,)}
    one, two = Case((name, maps), shared_towers=True), Case((name, maps))
    two.P, two.texts, two.V = one.P, one.texts, one.V
    for own in set(one.weights) - set(two.weights):
        for side in ("query", "document"):
            two.weights[f"{own}_{side}"] = one.weights[own]
    two.weights |= {key: one.weights[key] for key in set(one.weights) & set(two.weights)}
    scores, gradient = one.backward()
    other, parts = two.backward()
    assert scores.tobytes() == other.tobytes()
    for own, array in gradient.items():
        if own in parts:
            expected = parts[own]
        else:
            expected = parts[f"{own}_query"] + parts[f"{own}_document"]
        assert np.allclose(array, expected, rtol=1e-12, atol=0), own
    suffixes = {key[-1] for key in two.model.blocks(two.weights) if key[0] in "Wb" and key != "W"}
    assert suffixes == {"x", "y"}
    assert one.model.blocks(one.weights)["W1"].shape == (5, 12)


@pytest.mark.parametrize(
    ("window", "max_words", "layers"),
    # Two windows, which one pooling covers; or windows of one word and further convolutions that
    # pass every cell on, so that each pooling halves the number of cells. With wider windows no
    # further convolution can pass on all of its cells: it has fewer than it reads.
    [(3, 4, 1), (1, 2, 1), (1, 8, 3), (1, 11, 4)],
)
def test_arc1_with_pooling_over_everything_is_senna(window, max_words, layers):
    own = {"window": window, "max_words": max_words}
    arc1 = Case(("arc1", {**own, "maps": (5,) * layers}))
    senna = Case(("senna", {**own, "maps": (5,)}))
    for side in ("query", "document"):
        for number in range(3, 2 * layers + 1, 2):
            arc1.weights[f"maps{number}_{side}"][:] = np.eye(5)
            arc1.weights[f"maps_bias{number}_{side}"][:] = 0
    for name in senna.weights:
        senna.weights[name][...] = arc1.weights[name]
    senna.P = arc1.P
    expected = arc1.score(senna.texts).scores
    assert senna.score(senna.texts).scores.tobytes() == expected.tobytes()


def test_the_first_of_equal_maxima_wins_and_nan_stays_visible():
    U = np.array([[1, 2, np.nan], [9, 9, 9], [1, 3, 0], [1, 3, np.nan], [7, 7, 7]], np.float64)
    M, places = np.full((2, 3), 5.0), np.zeros((2, 3), np.int32)
    pool_rows(M, places, U, np.array([1, 1, 5]), np.array([0, 3]), 0, 2)
    assert M[0].tolist() == [0, 0, 0] and M[1, :2].tolist() == [9, 9] and np.isnan(M[1, 2])
    assert places.tolist() == [[1, 1, 1], [1, 1, 3]]
    pool_rows(M, places, U, np.array([0, 2, 5]), np.array([1, 2]), 0, 2)
    assert places.tolist() == [[0, 0, 0], [2, 2, 3]]
    long = np.arange(90.0)[:, None] % 70
    pool_rows(M[:1, :1], places[:1, :1], long, np.array([0]), np.array([90]), 0, 1)
    assert (M[0, 0], places[0, 0]) == (69, 69)


def test_gradients_of_many_listed_rows_are_summed_up():
    rng = np.random.default_rng(0)
    S, D = rng.standard_normal((700, 3)), rng.standard_normal((700, 5))
    rows = np.sort(rng.choice(698, 600, replace=False))  # more than are copied at once
    dW, dbias = rng.standard_normal((9, 5)), rng.standard_normal(5)
    expected = dW.copy(), dbias + D[rows].sum(axis=0)
    for r in rows:
        expected[0][...] += np.outer(S[r : r + 3].ravel(), D[r])
    add_gradient_at(dW, dbias, overlapping(S, 3), D, rows)
    np.testing.assert_allclose(dW, expected[0], atol=1e-12)
    np.testing.assert_allclose(dbias, expected[1], atol=1e-12)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "arc1",
            {"max_words": 6},
            r"2 convolutions with window 3 need at least 7 words \(--max-words 6\); "
            "fewer --maps or more words",
        ),
        ("arc1", {"maps": (8, 8, 8), "max_words": 14}, "3 convolutions .* at least 15 words"),
        ("senna", {"window": 9, "max_words": 8}, "at least 9 words .*; a smaller --window or"),
        ("senna", {"maps": (8, 9)}, r"senna has one convolution \(--maps 8,9\); give one number"),
        ("arc1", {"gate": "printed"}, "the model arc1 has no gate"),
        ("senmlp", {"shared_towers": True}, "the model senmlp has no shared_towers"),
    ],
)
def test_settings_that_do_not_go_together(name, settings, message):
    with pytest.raises(SentembError, match=message):
        make_pair_model(name, **settings)


@pytest.mark.parametrize(
    ("name", "settings", "least", "length"),
    [
        ("arc1", {}, 7, 200),
        ("arc1", {"maps": (8, 8, 6)}, 15, 6),
        ("arc1", {"maps": (8,)}, 3, 8),
        ("senna", {}, 3, 200),
        ("senmlp", {}, 1, 50),
    ],
)
def test_the_least_words_make_the_last_layer_one_cell(name, settings, least, length):
    model = make_pair_model(name, **settings)
    assert model.least_words == least
    smallest = make_pair_model(name, **settings, max_words=least)
    assert smallest.vector_length == length
    assert smallest.inputs == 2 * length
