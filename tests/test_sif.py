"""SIF: weights, components, and the linear bag that they make."""

import itertools
import json
import re
import warnings

import naive
import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

from sentemb import SIF, SentembError, load
from sentemb.cli import main
from sentemb.kernels.sif import orthogonalise_rows
from sentemb.models.vectors.averages import Moments, averages, moments, only_known
from sentemb.models.vectors.components import common_components
from sentemb.models.vectors.probabilities import relative_frequencies, zipf
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.word_weights import (
    idf_code_weights,
    idf_weights,
    sif_weights,
    usif_weights,
)
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.words import plain_words

N_WORDS, DIM = 60, 7
NAMES = [f"w{number}" for number in range(N_WORDS)]


def made_up_vectors(dim=DIM, names=NAMES, counts=None):
    rng = np.random.default_rng(3)
    vectors = rng.standard_normal((len(names), dim)) + rng.standard_normal(dim)
    return WordVectors(list(names), vectors.astype(np.float32), counts, name="made-up")


def made_up_texts(n, seed=0, unknown=True):
    rng = np.random.default_rng(seed)
    names = NAMES + ["nowhere"] * unknown
    return [" ".join(rng.choice(names, rng.integers(1, 9))) for _ in range(n)]


def naive_sif(vectors, weights, texts, k):
    known = dict(zip(vectors.words, vectors.vectors.astype(np.float64), strict=True))
    own = dict(zip(vectors.words, weights, strict=True))
    return naive.sif(known, own, [plain_words(text) for text in texts], k)


def unit(rows):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)


# -- the paper's algorithm -------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, 1, 3])
def test_scores_are_those_of_algorithm_1(k):
    vectors, texts = made_up_vectors(), made_up_texts(50)
    model = SIF(vectors, components=k).fit(titles=texts)
    expected = unit(naive_sif(vectors, sif_weights(zipf(N_WORDS), 1e-3), texts, k))
    cosines = np.array([model.score(text, texts) for text in texts])
    assert np.allclose(cosines, expected @ expected.T, atol=1e-6)


def test_each_side_can_lose_its_own_component():
    vectors, queries, titles = made_up_vectors(), made_up_texts(30, 1), made_up_texts(40, 2)
    model = SIF(vectors, sides="each").fit(queries, titles)
    weights = sif_weights(zipf(N_WORDS), 1e-3)
    for side, texts in (("query", queries), ("document", titles)):
        expected = unit(naive_sif(vectors, weights, texts, 1))
        assert np.allclose(unit(model.encode(texts, side=side)), expected, atol=1e-6)
    assert not model.shared_towers


def test_the_mean_of_the_vocabulary_can_be_subtracted_first():
    vectors, texts = made_up_vectors(), made_up_texts(20)
    model = SIF(vectors, components=0, centre="vocabulary").fit()
    centred = vectors.vectors - vectors.vectors.mean(axis=0)
    moved = WordVectors(vectors.words, centred)
    expected = unit(naive_sif(moved, sif_weights(zipf(N_WORDS), 1e-3), texts, 0))
    assert np.allclose(unit(model.encode(texts)), expected, atol=1e-5)
    p = zipf(N_WORDS)
    moved = WordVectors(vectors.words, vectors.vectors - p @ vectors.vectors)
    model = SIF(vectors, components=0, centre="probability").fit()
    expected = unit(naive_sif(moved, sif_weights(p, 1e-3), texts, 0))
    assert np.allclose(unit(model.encode(texts)), expected, atol=1e-5)


def test_weighted_removal_takes_the_share_of_each_component():
    vectors, texts = made_up_vectors(), made_up_texts(50, unknown=False)
    sif = SIF(vectors, weights="usif", components=3, removal="weighted")
    model = sif.fit(titles=texts)
    X = naive_sif(vectors, usif_weights(zipf(N_WORDS)), texts, 0)
    _, lengths, right = np.linalg.svd(X, full_matrices=False)
    shares = lengths[:3] ** 2 / np.sum(lengths[:3] ** 2)
    for share, u in zip(shares, right[:3], strict=True):
        X = X - share * np.outer(X @ u, u)
    assert np.allclose(sif.components_["query"].strengths, shares, rtol=1e-6)
    assert np.allclose(unit(model.encode(texts)), unit(X), atol=1e-5)


def test_components_are_known_after_the_fit():
    sif = SIF(made_up_vectors())
    with pytest.raises(SentembError, match="call fit"):
        sif.distinct_components()
    sif.fit(titles=made_up_texts(9))
    assert list(sif.distinct_components()) == [""]


def test_a_text_without_known_words_is_zero():
    model = SIF(made_up_vectors()).fit(titles=made_up_texts(9))
    assert not model.encode("nowhere to be found").any()
    assert model.score("nowhere", ["w1"])[0] == 0


# -- weights and probabilities ---------------------------------------------------------------------


def test_weights_by_hand():
    p = np.array([0.5, 1e-3, 0])
    assert np.allclose(sif_weights(p, 1e-3), [1e-3 / 0.501, 0.5, 1])
    tokens = tokenize(["a a b", "a", "c"], plain_words)
    words = ["a", "b", "none"]
    assert np.allclose(idf_weights(words, tokens), np.log([4 / 3, 4 / 2, 4]))
    assert np.allclose(idf_code_weights(words, tokens), np.log2([5 / 4, 5 / 2, 5]))
    often = tokenize(["a a a a a a"], plain_words)
    assert idf_code_weights(["a"], often)[0] == 0


def test_usif_weights_follow_from_the_probabilities():
    p = zipf(1000)
    alpha = np.mean(p > 1 - (1 - 1 / 1000) ** 11)
    a = (1 - alpha) / (alpha * 500)
    assert 0 < alpha < 1
    assert np.allclose(usif_weights(p), a / (a / 2 + p))


def test_probabilities_of_words_without_a_count():
    counts = {"w0": 6, "w2": 3, "elsewhere": 1}
    words = ["w0", "w1", "w2"]
    assert np.allclose(relative_frequencies(words, counts, "zero"), [0.6, 0, 0.3])
    assert np.allclose(relative_frequencies(words, counts, "one"), [0.6, 1, 0.3])
    assert np.allclose(relative_frequencies(words, counts), [0.6, zipf(3)[1], 0.3])
    assert zipf(3).sum() == pytest.approx(1) and zipf(3)[0] / zipf(3)[2] == pytest.approx(2)
    with pytest.raises(SentembError, match="counts"):
        relative_frequencies(words, {})


def test_probabilities_from_every_source(tmp_path):
    texts = ["w0 w0 w1", "w0"]
    stored = np.arange(N_WORDS) + 1
    (tmp_path / "counts.txt").write_text("w0 3\nw1 1\n")
    asked = {
        "texts": {"w0": 3, "w1": 1},
        "vectors": dict(zip(NAMES, stored.tolist(), strict=True)),
        tmp_path / "counts.txt": {"w0": 3, "w1": 1},
    }
    vectors = made_up_vectors(counts=stored)
    for p, counts in asked.items():
        one = SIF(vectors, p=p, components=0).fit(titles=texts)
        other = SIF(vectors, p=counts, components=0).fit(titles=texts)
        assert np.array_equal(one.weights["query"]["table"], other.weights["query"]["table"])
        assert one.training["p"] == ("counts.txt" if p == tmp_path / "counts.txt" else p)


# -- the kernels -----------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 40), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_moments_are_those_of_the_averages(n_texts, dim, seed):
    rng = np.random.default_rng(seed)
    table = rng.standard_normal((20, dim)).astype(np.float32)
    lengths = rng.integers(0, 5, n_texts)
    tokens = tokenize([" ".join(f"w{k}" for k in rng.integers(0, 20, n)) for n in lengths])
    table = table[: len(tokens.words)]
    with Workers(1) as workers:
        X = averages(table, tokens, workers)
        found = moments(table, tokens, workers)
    for text, n in enumerate(lengths):
        own = tokens.word_index[tokens.offsets[text] : tokens.offsets[text + 1]]
        assert np.allclose(X[text], table[own].mean(axis=0) if n else 0, atol=1e-6)
    double = X.astype(np.float64)
    assert np.allclose(found.second, double.T @ double, atol=1e-12)
    assert np.allclose(found.first, double.sum(axis=0), atol=1e-12)
    assert found.n_texts == np.count_nonzero(lengths)


@pytest.mark.parametrize("d", [1, 2, 5, 40])
def test_components_are_the_eigenvectors(d):
    rng = np.random.default_rng(d)
    X = rng.standard_normal((3 * d, d)) * np.geomspace(1, 1e-2, d) + rng.standard_normal(d)
    values, vectors = np.linalg.eigh(X.T @ X)
    rows = X.T @ X
    assert orthogonalise_rows(rows, 100)
    lengths = np.linalg.norm(rows, axis=1)
    assert np.allclose(np.sort(lengths), values, rtol=1e-9, atol=1e-12 * values.max())
    if d > 2:
        found = common_components(Moments(X.T @ X, X.sum(axis=0), len(X)), 2)
        for k in range(2):
            assert abs(found.directions[k] @ vectors[:, -1 - k]) == pytest.approx(1, abs=1e-12)
            assert found.directions[k] @ X.sum(axis=0) > 0
        assert found.shares == pytest.approx(values[-1:-3:-1] / values.sum())


def test_too_few_sweeps_are_noticed():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 20))
    assert not orthogonalise_rows(X.T @ X, 1)


def test_only_known_keeps_texts_and_their_order():
    tokens = tokenize(["a x b", "x", "", "b a a"])
    kept = only_known(tokens, np.array([True, False, True]))
    texts = [
        [kept.words[w] for w in kept.word_index[low:high]]
        for low, high in zip(kept.offsets, kept.offsets[1:], strict=False)
    ]
    assert texts == [["a", "b"], [], [], ["b", "a", "a"]]
    assert only_known(tokens, np.ones(3, bool)) is tokens


# -- the same bits ---------------------------------------------------------------------------------


def test_threads_of_the_package_and_of_the_blas_do_not_matter():
    tables = []
    for of_blas, threads in itertools.product((1, 2), (1, 2, 3)):
        with threadpool_limits(of_blas, "blas"):
            model = SIF(made_up_vectors(dim=100), components=2)
            tables.append(model.fit(titles=made_up_texts(300), threads=threads))
    one, *others = (model.weights["query"]["table"] for model in tables)
    assert all(np.array_equal(one, other) for other in others)


# -- the model -------------------------------------------------------------------------------------


def test_the_model_is_a_model_folder_like_any_other(tmp_path):
    model = SIF(made_up_vectors(), p={"w1": 3}).fit(made_up_texts(5), made_up_texts(9))
    model.save_pretrained(tmp_path / "m")
    read = load(tmp_path / "m")
    texts = ["w1, W2!", "w3"]
    assert np.array_equal(read.encode(texts), model.encode(texts))
    assert np.array_equal(read.encode("w1, W2!"), read.encode("w1 w2"))
    assert read.training["method"] == "sif" and read.training["p"] == "counts"
    assert read.training["vectors"]["name"] == "made-up"
    assert (read.training["queries"], read.training["titles"]) == (5, 9)


def test_words_that_no_text_can_have_are_left_out():
    names = ["good", ",", "Paris", "new york", "c3po", "don't", "größe", "_"]
    model = SIF(made_up_vectors(names=names), components=0).fit()
    assert model.vocabulary.words == ["good", "paris", "c3po", "größe", "_"]
    model = SIF(made_up_vectors(), keep="texts").fit(titles=["w5 w1 x", "w1 w9", "w5"])
    assert model.vocabulary.words == ["w1", "w5", "w9"]


@given(
    words=st.lists(
        st.text(st.sampled_from("aAzÉéßẞσΣİıǄ9²_-.' 日の\u0301\u00ad") | st.characters())
    )
)
def test_a_model_keeps_the_words_that_texts_can_have(words):
    words = ["word", *dict.fromkeys(word for word in words if word != "word")]
    vectors = WordVectors(words, np.ones((len(words), 2), np.float32))
    model = SIF(vectors, components=0).fit(threads=1)
    spelled = dict.fromkeys(words)
    for word in words:
        spelled.setdefault(word.lower())
    expected = [word for word in spelled if plain_words(word) == [word]]
    assert sorted(model.vocabulary.words) == sorted(expected)


def test_a_word_in_capitals_only_has_the_vector_of_its_first_spelling():
    vectors = made_up_vectors(names=["Lamp", "Paris", "lamp", "PARIS", "New_York"])
    model = SIF(vectors, components=0, weights="none").fit()
    assert model.vocabulary.words == ["paris", "lamp", "new_york"]
    rows = vectors.vectors[[1, 2, 4]]
    np.testing.assert_allclose(model.encode(["Paris", "lamp", "New_York"]), rows, 1e-5)
    assert made_up_vectors(names=["a", "B"]).with_small_letters().words == ["a", "b"]
    small = made_up_vectors(names=["a", "A"])
    assert small.with_small_letters() is small


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"a": 0.01, "weights": "idf"}, "the weights idf have no a; leave a out"),
        ({"components": DIM}, "components is 7; give fewer"),
        ({"p": "vectors"}, "no counts are stored"),
        ({"p": 3}, "p is 3"),
        ({"p": {}}, "no counts of words"),
        ({"p": {"w1": -5, "w2": 9}}, "the count of 'w1' is -5"),
        ({"p": {"w1": 1.5}}, "the count of 'w1' is 1.5"),
        ({"p": {"w1": float("nan")}}, "the count of 'w1' is nan"),
        ({"p": {"w1": 10**400}}, "the count of 'w1' is 1000"),
        ({"p": {"w1": "3"}}, "the count of 'w1' is '3'"),
        ({"components": 0, "a": 1e-60}, "times their weights are 0"),
    ],
)
def test_wrong_settings(arguments, words):
    with pytest.raises(SentembError, match=re.escape(words)):
        SIF(made_up_vectors(), **arguments).fit(titles=made_up_texts(9))


@pytest.mark.parametrize(
    ("arguments", "texts", "words"),
    [
        ({}, ([], []), "components 1 needs texts, and there are none"),
        ({}, (["w1"], []), "too few"),
        ({}, (["nowhere"] * 3, []), "too few"),
        ({"components": 2}, (["w1", "w1"], []), "fewer than 2 components"),
        ({}, (["w1 w2 w3"] * 3, []), "component 1 is all there is"),
        ({"components": 2}, (["w1", "w2 w3"], []), "components 1 to 2 are all there is"),
        (
            {},
            (["w1", "w2 w3"] * 9, []),
            "left of the texts is a line, .* give at least 3 different",
        ),
        ({"components": 2}, (["w1", "w2", "w3 w1"], []), "without components 1 to 2 .* at least 4"),
        ({"weights": "idf", "components": 0, "keep": "texts"}, (["w1"], []), "weights are 0"),
        ({"sides": "each"}, (["w1", "w2"], []), "there are no titles"),
        ({"weights": "idf", "components": 0}, ([], []), "weights idf"),
        ({"p": "texts", "components": 0}, ([], []), "p texts"),
        ({"keep": "texts", "components": 0}, ([], []), "keep texts"),
        ({"keep": "texts", "components": 0}, (["nowhere"], []), "no word"),
        ({}, ("one text", []), "list"),
    ],
)
def test_too_few_texts(arguments, texts, words):
    with pytest.raises(SentembError, match=words):
        SIF(made_up_vectors(), **arguments).fit(*texts)


def test_a_vector_that_is_not_finite_is_named():
    vectors = made_up_vectors()
    vectors.vectors[4, 2] = np.inf
    with pytest.raises(SentembError, match="'w4' has a number that is NaN, infinite"):
        SIF(vectors, components=0).fit()
    vectors.vectors[4, 2] = 1e30  # finite, and its products are not
    with pytest.raises(SentembError, match="'w4' has a number"):
        SIF(vectors, components=0).fit()


# -- the command -----------------------------------------------------------------------------------


def write_glove(path, vectors):
    lines = (
        f"{word} {' '.join(f'{value:.6g}' for value in row)}\n"
        for word, row in zip(vectors.words, vectors.vectors.tolist(), strict=True)
    )
    path.write_text("".join(lines))
    return str(path)


def run(*arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_command_makes_a_model_that_other_commands_use(tmp_path):
    glove = write_glove(tmp_path / "glove.txt", made_up_vectors())
    (tmp_path / "titles.txt").write_text("\n".join(made_up_texts(40)) + "\n\n")
    out = tmp_path / "m"
    done = run("sif", glove, tmp_path / "titles.txt", "-o", out, "--components", 2)
    assert done.exit_code == 0, done.output
    assert "40 texts" in done.output and "component 2" in done.output
    assert load(out).score("w1 w2", ["w2 w1"])[0] == pytest.approx(1)
    again = run("sif", glove, tmp_path / "titles.txt", "-o", out)
    assert again.exit_code == 1 and "--force" in again.output
    assert run("sif", glove, "-o", out, "--components", 0, "--force").exit_code == 0
    config = json.loads((out / "config.json").read_text())
    assert config["splitting"] == "words" and config["training"]["components"] == 0


def test_the_command_takes_a_click_log_for_both_sides(tmp_path):
    glove = write_glove(tmp_path / "glove.txt", made_up_vectors())
    (tmp_path / "pairs.tsv").write_text("w1 w2\tw3 w4\nw5\tw6 w7\nw8\tw9\n")
    done = run(
        "sif", glove, "--log", tmp_path / "pairs.tsv", "--sides", "each", "-o", tmp_path / "m"
    )
    assert done.exit_code == 0, done.output
    assert "from queries" in done.output and "from titles" in done.output


def test_the_command_notes_a_click_log_among_the_texts(tmp_path):
    glove = write_glove(tmp_path / "glove.txt", made_up_vectors())
    (tmp_path / "titles.txt").write_text("w1 w2\nw3 w4\nw5 w6\n")
    (tmp_path / "pairs.tsv").write_text("w1 w2\tw3 w4\nw5\tw6 w7\nw8\n")
    for name, is_noted in (("titles.txt", False), ("pairs.tsv", True)):
        done = run("sif", glove, tmp_path / name, "-o", tmp_path / "m", "--force")
        assert done.exit_code == 0, done.output
        assert (f"{name}: there are tabs" in done.output) == is_noted


def test_wrong_input_of_the_command(tmp_path):
    glove = write_glove(tmp_path / "glove.txt", made_up_vectors())
    (tmp_path / "empty.txt").write_text("\n")
    for arguments, words in [
        ([glove], "components 1 needs texts"),
        ([glove, tmp_path / "empty.txt"], "one per line"),
        ([glove, tmp_path / "missing.txt"], "missing.txt"),
        ([tmp_path / "missing", "--components", 0], "missing"),
        ([tmp_path / "empty.txt", "--components", 0], "empty.txt"),
        ([glove, "--components", 0, "--p", tmp_path / "nothing"], "nothing"),
    ]:
        done = run("sif", *arguments, "-o", tmp_path / "m")
        assert done.exit_code == 1, arguments
        assert words in done.output and "Traceback" not in done.output
        assert not (tmp_path / "m").exists()
    assert run("sif", glove, "--components", "many", "-o", tmp_path / "m").exit_code == 2
