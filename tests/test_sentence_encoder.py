"""The public class against values worked out by hand; words remembered between calls."""

import copy
import math
import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from helpers import VARIANTS, made_up_model

from sentemb import SentembError, SentenceEncoder
from sentemb.models.contracts import Embedder, Ranker
from sentemb.models.face import TextWarning
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import SIDES
from sentemb.models.words import word_memory
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

# -- by hand ---------------------------------------------------------------------------------------

# A bag adds up the rows of its words; a word of one letter has one trigram, so one row.
QUERY_ROWS = {"a": (1, 0), "b": (0, 1), "c": (-1, 0)}
TITLE_ROWS = {"a": (2, 0), "b": (0, 2), "c": (0, -2)}


@pytest.fixture(scope="module")
def bag():
    return bag_model()


def bag_model():
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


def test_lists_of_queries_have_a_row_each(bag):
    queries, titles = ["a", "a b", "c a"], ["b", "a"]
    half = math.sqrt(0.5)
    scores = bag.score(queries, titles)
    assert scores.shape == (3, 2)
    np.testing.assert_allclose(scores, [[0, 1], [half, half], [0, 0]], atol=1e-15)
    np.testing.assert_allclose(bag.score(queries, "a"), scores[:, 1], atol=1e-15)
    assert bag.score([], titles).shape == (0, 2) and bag.score("a", []).shape == (0,)
    rankings = bag.rank(queries, titles, top_k=1)
    assert rankings == [bag.rank(query, titles, top_k=1) for query in queries]
    assert [[place for place, _ in row] for row in bag.rank(queries[:2], titles)] == [
        [1, 0],
        [0, 1],
    ]
    assert bag.rank([], titles) == [] and bag.rank(queries, []) == [[], [], []]


def test_texts_without_known_words_are_counted(bag):
    with pytest.warns(UserWarning, match="no word") as caught:
        vectors = bag.encode_query(["zz", "", "a zz", "q7x9 zz"])
    assert [str(warning.message) for warning in caught] == [
        "1 of 4 texts have no words; their vectors are zero",
        "2 of 4 texts have no word that the model knows; their vectors say nothing about them",
    ]
    assert vectors.tolist() == [[0, 0], [0, 0], [1, 0], [0, 0]]
    with pytest.warns(UserWarning, match="1 of 1 texts have no word that the model knows"):
        bag.score("zz", "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bag.encode_query(["a", "b zz"])


def test_a_text_without_known_words_scores_0_in_every_way():
    # The biases of an LSTM give such a text a vector too.
    model = made_up_model(("lstm", {}), ["red shoes", "blue hat"])
    queries, titles = ["red", "zz"], ["hat", "q7x9", "", "shoes"]
    with pytest.warns(TextWarning, match="their scores are 0") as caught:
        scores = model.score(queries, titles)
    assert {warning.filename for warning in caught} == {__file__}
    pairs = np.indices(scores.shape).reshape(2, -1)
    of_pairs = model.score_pairs(queries, titles, *pairs)
    np.testing.assert_allclose(scores.ravel(), of_pairs, atol=1e-15)
    assert (scores == 0).tolist() == [[False, True, True, False], [True] * 4]
    with pytest.warns(TextWarning, match="2 of 4|1 of 2"):
        rankings = model.rank(queries, titles)
    for row, ranking in zip(scores.tolist(), rankings, strict=True):
        assert dict(ranking) == pytest.approx(dict(enumerate(row)), abs=1e-15)


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


def test_vectors_of_either_side_come_from_its_own_tower(bag):
    assert bag.encode("a", side="query").tolist() == [1, 0]
    assert bag.encode("a", side="document").tolist() == [2, 0]
    assert bag.encode([]).shape == (0, 2)
    unit = bag.encode_document("a b", normalize_embeddings=True)
    np.testing.assert_allclose(unit, [math.sqrt(0.5)] * 2, rtol=1e-15)
    for call in (bag.encode, bag.trace):
        with pytest.raises(SentembError, match="side must be query or document, not 'title'"):
            call("a", side="title")


def test_texts_without_words_are_zero_and_counted(bag):
    with pytest.warns(UserWarning, match="2 of 3 texts have no words"):
        assert bag.encode_query(["", "a", " "]).tolist() == [[0, 0], [1, 0], [0, 0]]


def test_scores_of_pairs_are_the_cosines_of_the_places_given(bag):
    queries, titles = ["a", "a b", "c a"], ["b", "a", "a b"]
    pairs = np.array([[0, 1], [0, 0], [1, 2], [1, 0], [2, 1], [1, 1]])
    half = math.sqrt(0.5)
    scores = bag.score_pairs(queries, titles, pairs[:, 0], pairs[:, 1])
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, [1, 0, 1, half, 0, half], atol=1e-15)
    assert bag.score_pairs([], [], np.zeros(0, int), np.zeros(0, int)).shape == (0,)
    assert isinstance(bag, Ranker) and isinstance(bag, Embedder)


def test_scores_of_many_pairs_are_those_of_few(bag):
    texts, titles = ["ab cd", "cd", "ef ab"], ["cd ab ef", "ab", "xy", "ef"]
    pairs = np.random.default_rng(3).integers(0, (3, 4), (50, 2)).T
    whole = bag.score_pairs(texts, titles, *pairs)
    each = [bag.score_pairs(texts, titles, [q], [t])[0] for q, t in pairs.T]
    assert np.array_equal(each, whole)


def test_what_a_model_says_of_itself(bag):
    assert (bag.dim, bag.dtype, bag.shared_towers) == (2, np.float64, False)
    assert bag.vocabulary.trigrams == ["#a#", "#b#", "#c#"] and bag.encoder.name == "bag"
    assert repr(bag) == "SentenceEncoder(bag, cells=2, 3 letter trigrams)"
    assert (bag.training, bag.history) == ({}, [])
    shared = SentenceEncoder(
        bag.encoder, bag.vocabulary, dict.fromkeys(SIDES, bag.weights["query"])
    )
    assert shared.shared_towers and list(shared.towers.each) == ["query"]
    assert shared.encode_document("a").tolist() == [1, 0]


def test_parameters_are_the_live_weights_under_the_papers_names():
    model = bag_model()
    blocks = model.parameters()
    assert {side: {*named} for side, named in blocks.items()} == {side: {"W"} for side in SIDES}
    assert blocks["query"]["W"].tolist() == [[1, 0, -1], [0, 1, 0]]  # (n, d)
    assert blocks["document"]["W"].tolist() == [[2, 0, 0], [0, 2, -2]]
    assert model.encode_query("a b").tolist() == [1, 1]
    blocks["query"]["W"][:, 0] = 5, 7
    assert model.encode_query("a b").tolist() == [5, 8], "words may not be remembered"
    assert model.encode_query("a").tolist() == [5, 7]


def test_astype_copies_in_the_type_asked_for():
    model = bag_model()
    model.training, model.history = {"pairs": 3}, [{"epoch": 1}]
    single = model.astype("float32")
    assert single.dtype == np.float32 and single.encode_query("a b").dtype == np.float32
    assert (single.training, single.history) == ({"pairs": 3}, [{"epoch": 1}])
    same = model.astype(np.float64)
    same.parameters()["query"]["W"][...] = 0
    assert model.encode_query("a").tolist() == [1, 0], "a copy has weights of its own"
    for dtype in ("float16", "int32", "a number", object()):
        with pytest.raises(SentembError, match="dtype must be float32 or float64"):
            model.astype(dtype)
    shared = SentenceEncoder(
        model.encoder, model.vocabulary, dict.fromkeys(SIDES, model.weights["query"])
    )
    assert shared.astype("float32").shared_towers


def test_a_saved_model_reads_back_as_it_was(tmp_path):
    model = bag_model()
    model.training, model.history = {"pairs": 3}, [{"epoch": 1, "loss": 0.5, "dev": None}]
    model.save_pretrained(tmp_path / "m")
    for read in (
        SentenceEncoder.from_pretrained(tmp_path / "m", threads=1),
        SentenceEncoder.of(model.saved(), threads=1),
        SentenceEncoder(tmp_path / "m", threads=1),
        SentenceEncoder(str(tmp_path / "m")),
        pickle.loads(pickle.dumps(model)),
        copy.deepcopy(model),
    ):
        assert read.encode_document("a b c").tolist() == [2, 0]
        assert (read.training, read.history) == (model.training, model.history)
    with pytest.raises(SentembError, match="a model is there already"):
        model.save_pretrained(tmp_path / "m")
    model.parameters()["query"]["W"][...] = 4
    model.save_pretrained(tmp_path / "m", force=True)
    assert SentenceEncoder.from_pretrained(tmp_path / "m").encode_query("a").tolist() == [4, 4]


def test_a_trace_of_an_rnn_is_equation_1():
    """y(t) = tanh(W l(t) + Wrec y(t-1) + b), one cell."""
    encoder = make_encoder("rnn", cells=1)
    model = one_cell(encoder, {"W": {"a": 0.5, "b": -0.25}, "Wrec": 0.75, "b": 0.125})
    trace = model.trace("a b A")
    assert trace.words == ["a", "b", "a"]
    y, expected = 0.0, []
    for w in (0.5, -0.25, 0.5):
        y = math.tanh(w + 0.75 * y + 0.125)
        expected.append([y])
    np.testing.assert_allclose(trace.y, expected, rtol=1e-14)
    assert trace.c is trace.i is trace.o is trace.y_g is trace.f is None
    np.testing.assert_allclose(model.encode_query("a b A"), expected[-1], rtol=1e-14)


def test_a_trace_of_an_lstm_is_equations_2():
    """All gates of one cell with diagonal peepholes; 1 output, 2 forget, 3 input, 4 candidate."""
    encoder = make_encoder("lstm", cells=1, forget_gate=True, peepholes="diagonal")
    W = {"1": (0.3, -0.2), "2": (0.4, 0.1), "3": (-0.5, 0.6), "4": (0.7, -0.8)}
    R, b = {"1": 0.2, "2": -0.3, "3": 0.4, "4": 0.5}, {"1": 0.1, "2": 0.9, "3": -0.1, "4": 0.05}
    P = {"1": 0.15, "2": -0.25, "3": 0.35}
    blocks = {f"W{g}": dict(zip("ab", W[g], strict=True)) for g in W}
    blocks |= {f"Wrec{g}": R[g] for g in R} | {f"b{g}": b[g] for g in b}
    blocks |= {f"Wp{g}": P[g] for g in P}
    model = one_cell(encoder, blocks)
    trace = model.trace("b a", side="document")
    y = c = 0.0
    for t, word in enumerate((1, 0)):
        z = {g: W[g][word] + R[g] * y + b[g] for g in W}
        y_g = math.tanh(z["4"])
        i, f = logistic(z["3"] + P["3"] * c), logistic(z["2"] + P["2"] * c)
        c = f * c + i * y_g
        o = logistic(z["1"] + P["1"] * c)
        y = o * math.tanh(c)
        for name, value in {"y": y, "c": c, "i": i, "o": o, "y_g": y_g, "f": f}.items():
            np.testing.assert_allclose(getattr(trace, name)[t], [value], rtol=1e-14, err_msg=name)


def test_a_trace_needs_words_and_steps(bag):
    model = one_cell(make_encoder("rnn", cells=1), {"W": {"a": 0.5}})
    with pytest.raises(SentembError, match="a text without words has nothing to trace"):
        model.trace(" ")
    with pytest.raises(SentembError, match="model bag does not read word by word"):
        bag.trace("a")


def with_one_tower(model):
    weights = dict.fromkeys(SIDES, model.weights["query"])
    return SentenceEncoder(model.encoder, model.vocabulary, weights, threads=1)


def logistic(x):
    return 1 / (1 + math.exp(-x))


def one_cell(encoder, blocks):
    """A model in float64 over the words a and b whose towers both have these blocks."""
    vocabulary = Vocabulary.collect(tokenize(["a b"]))
    weights = {name: np.zeros(shape) for name, shape in encoder.shapes(2).items()}
    for name, value in blocks.items():
        array = encoder.blocks(weights)[name]
        array[...] = [[value.get(word, 0) for word in "ab"]] if isinstance(value, dict) else value
    return SentenceEncoder(encoder, vocabulary, dict.fromkeys(SIDES, weights), threads=1)


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
    for _ in range(3):
        new = texts_of_new_words(rng)
        mixed = [f"{a} {b}" for a, b in zip(new, [*seen[-150:], *new], strict=False)]
        for texts in (new, mixed, seen[:50], mixed[::-1]):
            for side in ("query", "document"):
                found = model.encode(texts, side=side)
                assert np.array_equal(found, encoder_of_words().encode(texts, side=side))
        seen += new


def test_the_memory_of_words_is_used_and_stays_below_its_limit(monkeypatch):
    """Without limit 12,000 words with 96 float32 each would take 4.6 MB."""
    rng, model = np.random.default_rng(2), encoder_of_words()
    looked_up, features = [], model.vocabulary.features_of_all
    monkeypatch.setattr(word_memory, "_LIMIT", 400_000)
    monkeypatch.setattr(
        model.vocabulary,
        "features_of_all",
        lambda words: looked_up.extend(words) or features(words),
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


# -- kernels ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-14), (np.float32, 4e-7)])
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_encode_computes_what_the_forward_pass_computes(variant, dtype, tolerance):
    """Alone and side by side; the widths need whole and narrow panels of the recurrent weights."""
    texts = ["one two three four five", "two", "one six two", "six one", "three one two six"]
    for cells in (5, 60):
        model = made_up_model(variant, texts, cells=cells, dtype=dtype)
        batch = model.vocabulary.batch(texts)
        expected = model.encoder.forward(model.weights["query"], batch, model._workers).embeddings
        found = model.encode_query(texts)
        assert found.dtype == dtype
        assert abs(found - expected).max() <= tolerance * max(1, abs(expected).max())
        assert [model.encode_query(text).tolist() for text in texts] == found.tolist()
