"""Every baseline against something written by somebody else, or by hand."""

import inspect
import math
import os
import tracemalloc
import zipfile
from itertools import pairwise

import naive
import numpy as np
import pytest
from helpers import run_python

from sentemb import SentembError
from sentemb.comparison.baselines import BASELINES, make_baseline
from sentemb.comparison.baselines.plsa import PLSA
from sentemb.comparison.baselines.skip_thought import SOURCE
from sentemb.data.click_log import ClickLogBuilder
from sentemb.kernels.plsa import expect_words, fold_in
from sentemb.text.words import plain_words

TITLES = ["red shoes shop", "blue shoes", "garden shop and tools", "red red wine", "tools"]
QUERIES = ["red shoes", "tools shop", "wine", "unknown words", "", "shoes shoes"]


@pytest.fixture(scope="module")
def log():
    builder = ClickLogBuilder()
    for query, title in zip(
        ["red shoes", "blue shoe", "garden tools", "wine", "tools"], TITLES, strict=True
    ):
        builder.add(query, title, clicks=1)
    return builder.build()


def all_pairs(ranker, queries=QUERIES, titles=TITLES):
    """Scores of every query with every title, (n_queries, n_titles)."""
    q, t = np.divmod(np.arange(len(queries) * len(titles)), len(titles))
    return ranker.score_pairs(queries, titles, q, t).reshape(len(queries), len(titles))


def fitted(name, log, seed=0, **settings):
    return make_baseline(name, **settings).fit(log, TITLES, seed)


SMALL = {"plsa": {"topics": 3}}


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"skip-thought"}))
def test_scores_are_numbers_and_repeat(name, log):
    models = [fitted(name, log, **SMALL.get(name, {})) for _ in range(2)]
    first, again = map(all_pairs, models)
    assert first.dtype == np.float64 and np.isfinite(first).all()
    assert np.array_equal(first, again)
    other = all_pairs(fitted(name, log, seed=1, **SMALL.get(name, {})))
    assert np.array_equal(first, other) != make_baseline(name, **SMALL.get(name, {})).is_random
    assert models[0].score_pairs([], [], [], []).shape == (0,)


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"skip-thought"}))
def test_a_grid_is_of_settings_that_can_be_made(name):
    for point in make_baseline(name).grid:
        assert make_baseline(name, **point).settings().items() >= point.items()


def test_words_without_their_punctuation():
    assert plain_words("Git: re-name  the C++ file_1 (größer), я") == [
        "git", "re", "name", "the", "c", "file_1", "größer", "я",
    ]  # fmt: skip


# -- unigram language model ------------------------------------------------------------------------


def test_unigram_is_the_formula(log):
    scores = all_pairs(fitted("unigram", log, mu=2.0))
    words = [word for title in TITLES for word in title.split()]
    for query, row in zip(QUERIES, scores, strict=True):
        for title, score in zip(TITLES, row, strict=True):
            mine = title.split()
            expected = sum(
                math.log((mine.count(w) + 2.0 * words.count(w) / len(words)) / (len(mine) + 2.0))
                for w in query.split()
                if w in words
            )
            assert score == pytest.approx(expected, abs=1e-12)


# -- BM25 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "k1", "b"),
    [({}, 0.9, 0.4), ({"k1": 1.5, "b": 0.75}, 1.5, 0.75)],
    ids=["default", "set"],
)
def test_bm25_is_the_formula(log, settings, k1, b):
    scores = all_pairs(fitted("bm25", log, **settings))
    lengths = [len(title.split()) for title in TITLES]
    for query, row in zip(QUERIES, scores, strict=True):
        for title, score in zip(TITLES, row, strict=True):
            expected = 0.0
            for word in query.split():
                holders = sum(word in other.split() for other in TITLES)
                count = title.split().count(word)
                idf = math.log(1 + (len(TITLES) - holders + 0.5) / (holders + 0.5))
                norm = k1 * (1 - b + b * len(title.split()) / np.mean(lengths))
                expected += idf * count / (count + norm) if count else 0
            assert score == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_stems_join_what_words_keep_apart(log):
    plain, stemmed = (all_pairs(fitted("bm25", log, stem=stem), ["tool"]) for stem in (False, True))
    assert not plain.any() and stemmed[0, 4] > stemmed[0, 2] > 0


# -- PLSA ------------------------------------------------------------------------------------------


def made_up_counts(seed=0, texts=12, words=15):
    rng = np.random.default_rng(seed)
    return rng.poisson(0.7, (texts, words)).astype(float) + np.eye(texts, words)


def lists_of(counts):
    offsets = np.concatenate([[0], np.cumsum((counts > 0).sum(axis=1))])
    texts, words = np.nonzero(counts)
    return offsets, words.astype(np.int32), counts[texts, words]


def start(counts, topics, seed=1):
    rng = np.random.default_rng(seed)
    mixtures, p = rng.random((len(counts), topics)), rng.random((counts.shape[1], topics))
    return mixtures / mixtures.sum(axis=1, keepdims=True), p / p.sum(axis=0)


def test_em_steps_are_those_of_the_naive_twin():
    counts = made_up_counts()
    mixtures, topics = start(counts, 4)
    expected_sums, expected_mixtures, expected = naive.plsa_step(counts, mixtures, topics)
    sums, likelihoods = np.zeros_like(topics), np.zeros(len(counts))
    expect_words(sums, mixtures, topics, *lists_of(counts), likelihoods, 0, len(counts))
    np.testing.assert_allclose(sums, expected_sums, rtol=1e-12)
    np.testing.assert_allclose(mixtures, expected_mixtures, rtol=1e-12)
    np.testing.assert_allclose(likelihoods, expected, rtol=1e-12)


def test_folding_in_is_em_with_the_topics_fixed():
    counts = made_up_counts(2)
    mixtures, topics = start(counts, 3)
    expected = mixtures.copy()
    for _ in range(5):
        _, expected, _ = naive.plsa_step(counts, expected, topics)
    fold_in(mixtures, topics, *lists_of(counts), 5, 0, len(counts))
    np.testing.assert_allclose(mixtures, expected, rtol=1e-12)


def test_em_reaches_the_likelihood_of_kullback_leibler_nmf():
    """PLSA's EM is the multiplicative update of NMF with this loss, but for the scale."""
    decomposition = pytest.importorskip("sklearn.decomposition", reason="the oracle")
    counts = made_up_counts(3, 30, 40)
    mixtures, topics = start(counts, 4)
    W, H = counts.sum(axis=1, keepdims=True) * mixtures, topics.T.copy()
    W, H, _ = decomposition.non_negative_factorization(
        counts, W=W, H=H, n_components=4, init="custom", solver="mu", max_iter=800, tol=0,
        beta_loss="kullback-leibler",
    )  # fmt: skip
    fit = W @ H
    shares, seen = fit / fit.sum(axis=1, keepdims=True), counts > 0
    theirs = np.sum(counts[seen] * np.log(shares[seen]))
    likelihoods = np.zeros(len(counts))
    for _ in range(800):
        sums = np.zeros_like(topics)
        expect_words(sums, mixtures, topics, *lists_of(counts), likelihoods, 0, len(counts))
        topics = sums / sums.sum(axis=0)
    assert likelihoods.sum() == pytest.approx(theirs, rel=2e-3)


def test_the_likelihood_rises_and_texts_of_a_topic_meet():
    builder = ClickLogBuilder()
    rng = np.random.default_rng(0)
    topics = [["sea", "beach", "sand", "wave"], ["snow", "ski", "slope", "lift"]]
    for _ in range(80):
        words = topics[rng.integers(2)]
        builder.add(" ".join(rng.choice(words, 2)), " ".join(rng.choice(words, 3)), clicks=1)
    plsa = PLSA(topics=2, prior=0.0).fit(builder.build(), seed=0)
    assert all(b >= a - 1e-9 for a, b in pairwise(plsa.log_likelihoods))
    scores = all_pairs(plsa, ["sea", "ski"], ["wave sand", "lift", "nothing known"])
    assert scores[0, 0] > 0.9 > 0.1 > scores[0, 1] and scores[1, 1] > 0.9 > 0.1 > scores[1, 0]
    assert not scores[:, 2].any()


# -- Doc2Vec ---------------------------------------------------------------------------------------


def doc2vec_vectors():
    builder = ClickLogBuilder()
    for query, title in [("red shoes", "buy shoes"), ("blue hat", "hats and caps")]:
        builder.add(query, title)
    doc2vec = make_baseline("doc2vec").fit(builder.build())
    return doc2vec.vectors(["red hat", "buy caps"]).tobytes().hex()


DOC2VEC = f"""
from sentemb.comparison.baselines import make_baseline
from sentemb.data.click_log import ClickLogBuilder
{inspect.getsource(doc2vec_vectors)}
print(doc2vec_vectors())
"""


def test_doc2vec_gives_the_same_vectors_in_every_process():
    """Python's hash of a text differs between processes; gensim starts the inference from it."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    there = run_python(DOC2VEC, check=True, PYTHONHASHSEED=seed).stdout
    assert there.split() == [doc2vec_vectors()]


def test_doc2vec_does_not_depend_on_the_company(log):
    doc2vec = fitted("doc2vec", log)
    together = all_pairs(doc2vec)
    alone = all_pairs(doc2vec, QUERIES[1:2], TITLES[2:3])
    assert alone[0, 0] == together[1, 2]
    assert not together[4].any()


# -- Skip-Thought ----------------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gru(arrays, prefix, vectors):
    """h after the last vector, unit by unit as the paper's equations have it."""
    W, U, b, Wx, Ux, bx = (arrays[f"{prefix}_{k}"] for k in ("W", "U", "b", "Wx", "Ux", "bx"))
    n = len(Ux)
    h = np.zeros(n)
    for x in vectors:
        r = sigmoid(x @ W[:, :n] + h @ U[:, :n] + b[:n])
        u = sigmoid(x @ W[:, n:] + h @ U[:, n:] + b[n:])
        h = u * h + (1 - u) * np.tanh(x @ Wx + r * (h @ Ux) + bx)
    return h


@pytest.fixture
def skip_thoughts(tmp_path):
    """The published file set, small."""
    rng = np.random.default_rng(0)
    words, size, dim = ["<eos>", "UNK", "red", "shoes", "shop", "tools"], 4, {"uni": 3, "bi": 2}
    (tmp_path / "dictionary.txt").write_text("".join(f"{word}\n" for word in words), "utf-8")
    made = {}
    for kind, table in (("uni", "utable.npy"), ("bi", "btable.npy")):
        made[kind, "table"] = rng.standard_normal((len(words), size)).astype(np.float32)
        np.save(tmp_path / table, made[kind, "table"])
        arrays = {"Wemb": np.zeros((2, size), np.float32)}
        for prefix in ("encoder",) if kind == "uni" else ("encoder", "encoder_r"):
            n = dim[kind]
            shapes = {"W": (size, 2 * n), "U": (n, 2 * n), "b": 2 * n}
            for name, shape in (shapes | {"Wx": (size, n), "Ux": (n, n), "bx": n}).items():
                arrays[f"{prefix}_{name}"] = rng.standard_normal(shape).astype(np.float32)
        np.savez(tmp_path / f"{kind}_skip.npz", **arrays)
        made[kind] = arrays
    return tmp_path, words, made


def test_skip_thought_is_the_published_encoder(skip_thoughts):
    folder, words, made = skip_thoughts
    ranker = make_baseline("skip-thought", folder=folder).fit(None)

    def vector(text):
        places = [words.index(w) if w in words else 1 for w in text.lower().split()]
        uni = gru(made["uni"], "encoder", made["uni", "table"][places])
        x = made["bi", "table"][places]
        bi = np.hstack([gru(made["bi"], "encoder", x), gru(made["bi"], "encoder_r", x[::-1])])
        return np.hstack([uni / np.linalg.norm(uni), bi / np.linalg.norm(bi)])

    scores = all_pairs(ranker)
    for q in (0, 1, 3, 5):
        for d, title in enumerate(TITLES):
            a, b = vector(QUERIES[q]), vector(title)
            expected = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
            assert scores[q, d] == pytest.approx(expected, abs=1e-5)
    assert not scores[4].any()


@pytest.mark.parametrize("name", ["dictionary.txt", "btable.npy", "uni_skip.npz"])
def test_skip_thought_files_that_are_missing_or_wrong(skip_thoughts, name):
    folder, _, _ = skip_thoughts
    (folder / name).unlink()
    with pytest.raises(SentembError, match=f"{name}: weights not here; get the published files"):
        make_baseline("skip-thought", folder=folder)
    if name == "btable.npy":
        np.save(folder / name, np.array([{}], object), allow_pickle=True)
        with pytest.raises(SentembError, match="without unpickling"):
            make_baseline("skip-thought", folder=folder)
    if name == "uni_skip.npz":
        np.savez(folder / name, encoder_W=np.zeros((4, 6)))
        with pytest.raises(SentembError, match="encoder_U is missing; get the published"):
            make_baseline("skip-thought", folder=folder)


def npy_head(text, version=b"\x01\x00", length=None):
    """The beginning of an ``.npy`` file that says ``text`` of what follows."""
    text = text.encode("latin1")
    size = len(text) if length is None else length
    return b"\x93NUMPY" + version + size.to_bytes(2 if version[0] == 1 else 4, "little") + text


def head_of(shape, descr="<f4"):
    return npy_head(f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape}, }}\n")


def with_array(name, array):
    """A change of an archive: ``array`` under ``name``, or without that name if it is None."""

    def change(path):
        with np.load(path) as archive:
            arrays = dict(archive)
        arrays.pop(name)
        np.savez(path, **arrays, **({} if array is None else {name: array}))

    return change


def with_member(contents):
    """A change of an archive: the bytes ``contents`` for the array encoder_W, packed."""

    def change(path):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, whole in (members | {"encoder_W.npy": contents}).items():
                archive.writestr(name, whole)

    return change


TABLES = {
    "empty": b"",
    "text": b"not an array at all",
    "head only": head_of((6, 4)),
    "half": lambda path: path.write_bytes(path.read_bytes()[:-3]),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"x"),
    "huge": head_of((10**12, 620)) + bytes(96),
    "400 digits": head_of(f"({'9' * 400}, 4)") + bytes(96),
    "5000 digits": head_of(f"({'9' * 5000}, 4)") + bytes(96),
    "negative": head_of((-6, -4)) + bytes(96),
    "no columns": lambda path: np.save(path, np.zeros((6, 0), np.float32)),
    "no rows": lambda path: np.save(path, np.zeros((0, 4), np.float32)),
    "no dimensions": lambda path: np.save(path, np.float32(1)),
    "three dimensions": lambda path: np.save(path, np.zeros((6, 2, 2), np.float32)),
    "other columns": lambda path: np.save(path, np.zeros((6, 5), np.float32)),
    "texts": lambda path: np.save(path, np.full((6, 4), "word")),
    "integers": lambda path: np.save(path, np.zeros((6, 4), np.int32)),
    "complex": lambda path: np.save(path, np.zeros((6, 4), np.complex64)),
    "pickled": lambda path: np.save(path, np.array([{}] * 24, object).reshape(6, 4)),
    "records": head_of((6, 4), [("a", "<f4")]) + bytes(96),
    "no shape": npy_head("{'descr': '<f4', 'fortran_order': False}\n"),
    "no dict": npy_head("5\n"),
    "no Python": npy_head("{'descr': \n"),
    "brackets": npy_head("(" * 9000),
    "minus": npy_head("-" * 9000 + "1"),
    "wrong type": head_of((6, 4), "<x9") + bytes(96),
    "true": head_of("(True, 4)") + bytes(96),
    "long head": npy_head("{}", b"\x02\x00", 2**32 - 1),
    "NaN": lambda path: np.save(path, np.full((6, 4), np.nan, np.float32)),
    "infinity": lambda path: np.save(path, np.full((6, 4), np.inf, np.float32)),
    "too large": lambda path: np.save(path, np.full((6, 4), 1e300)),
}
ARCHIVES = {
    "empty": b"",
    "text": b"not an archive at all",
    "half": lambda path: path.write_bytes(path.read_bytes()[:-30]),
    "flipped": lambda path: path.write_bytes(path.read_bytes().replace(b"NUMPY", b"NUMPX")),
    "a table": lambda path: np.save(path.open("wb"), np.zeros((6, 4), np.float32)),
    **{f"no {name}": with_array(f"encoder_{name}", None) for name in ("W", "U", "b", "Ux", "bx")},
    "a number": with_array("encoder_bx", np.float32(1)),
    "no cells": with_array("encoder_bx", np.zeros(0, np.float32)),
    "other cells": with_array("encoder_bx", np.zeros(7, np.float32)),
    "turned round": with_array("encoder_W", np.zeros((6, 4), np.float32)),
    "texts": with_array("encoder_W", np.full((4, 6), "word")),
    "pickled": with_array("encoder_W", np.full((4, 6), None)),
    "NaN": with_array("encoder_U", np.full((3, 6), np.nan, np.float32)),
    "too large": with_array("encoder_U", np.full((3, 6), 1e300)),
    "huge": with_member(head_of((10**6, 10**6)) + bytes(96)),
    "long head": with_member(npy_head("{}", b"\x02\x00", 2**32 - 1)),
    "no bytes": with_member(b""),
}


def spoil(path, change):
    path.write_bytes(change) if isinstance(change, bytes) else change(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        *(pytest.param("utable.npy", change, id=f"table {key}") for key, change in TABLES.items()),
        *(pytest.param("uni_skip.npz", c, id=f"archive {key}") for key, c in ARCHIVES.items()),
        ("dictionary.txt", b""),
        ("dictionary.txt", b"\xff\xfe\n"),
        ("dictionary.txt", b"a\nb\n"),
        ("dictionary.txt", b"UNK\n" * 7 + b"more\n"),
    ],
)
def test_skip_thought_files_that_are_damaged(skip_thoughts, name, change):
    folder, _, _ = skip_thoughts
    spoil(folder / name, change)
    with pytest.raises(SentembError) as caught:
        make_baseline("skip-thought", folder=folder).fit(None)
    message = str(caught.value)
    named = (name, "utable.npy") if name == "dictionary.txt" else (name, "uni_skip.npz")
    assert message.startswith(tuple(str(folder / one) for one in named))
    assert message.endswith("; get the published files from " + SOURCE)
    assert "\n" not in message and len(message) < 300 + len(str(folder))


def test_nothing_is_allocated_for_a_huge_shape(skip_thoughts):
    """An archive may say that a member has a gigabyte, and be small itself."""
    folder, _, _ = skip_thoughts
    zeros = bytes(2**24)
    with_member(head_of((4, 2**22)) + 4 * zeros)(folder / "uni_skip.npz")
    tracemalloc.start()
    with pytest.raises(SentembError, match="encoder_W has the wrong shape"):
        make_baseline("skip-thought", folder=folder)
    assert tracemalloc.get_traced_memory()[1] < 2**23
    tracemalloc.stop()


@pytest.mark.parametrize("name", ["dictionary.txt", "btable.npy", "bi_skip.npz"])
def test_skip_thought_files_that_are_not_regular(skip_thoughts, name):
    folder, _, _ = skip_thoughts
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(SentembError, match=f"{name}: is not a regular file"):
        make_baseline("skip-thought", folder=folder)


# -- wrong use -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("bm52", {}, "baseline must be one of"),
        ("unigram", {"mu": 0}, "mu is 0; give a number above 0"),
        ("bm25", {"b": 2}, "b is 2; give a share"),
        ("plsa", {"topics": 0}, "topics is 0; give an integer"),
        ("plsa", {"prior": -1}, "prior is -1; give a number"),
        ("bm25", {"stems": True}, "does not take these settings"),
    ],
)
def test_wrong_settings(name, settings, message):
    with pytest.raises(SentembError, match=message):
        make_baseline(name, **settings)


@pytest.mark.parametrize(
    ("name", "key"),
    [("unigram", "mu"), ("bm25", "k1"), ("bm25", "b"), ("plsa", "topics"), ("plsa", "prior")],
)
def test_types_of_settings(name, key):
    for value in (None, "1", [], True, math.nan, math.inf, -1, 10**400, 1j):
        with pytest.raises(SentembError, match=f"^{key} is .*; give a"):
            make_baseline(name, **{key: value})


@pytest.mark.parametrize("name", [None, [], {}, 5, "x" * 5000], ids=lambda name: str(name)[:9])
def test_names_that_are_no_baseline(name):
    with pytest.raises(SentembError, match="baseline must be one of") as caught:
        make_baseline(name)
    assert len(str(caught.value)) <= 300


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "gensim.models.doc2vec", None)
    with pytest.raises(SentembError, match=r"gensim is not installed; pip install 'sentemb\[base"):
        make_baseline("doc2vec")
