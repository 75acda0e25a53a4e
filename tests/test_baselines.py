"""Every baseline against something written by somebody else, or by hand."""

import math

import naive
import numpy as np
import pytest

from sentemb import SentembError
from sentemb.baselines import BASELINES, make_baseline
from sentemb.baselines.baseline import plain_words
from sentemb.baselines.plsa import PLSA
from sentemb.data.click_log import ClickLogBuilder
from sentemb.kernels.plsa import expect_words, fold_in

TITLES = ["red shoes shop", "blue shoes", "garden shop and tools", "red red wine", "tools"]
QUERIES = ["red shoes", "tools shop", "wine", "unknown words", "", "shoes shoes"]


@pytest.fixture(scope="module")
def log():
    builder = ClickLogBuilder()
    for query, title in zip(["red shoes", "blue shoe", "garden tools", "wine", "tools"], TITLES):
        builder.add(query, title, clicks=1)
    return builder.build()


def all_pairs(ranker, queries=QUERIES, docs=TITLES):
    """Scores of every query with every title, (n_queries, n_docs)."""
    q, d = np.divmod(np.arange(len(queries) * len(docs)), len(docs))
    return ranker.score_pairs(queries, docs, q, d).reshape(len(queries), len(docs))


def fitted(name, log, seed=0, **settings):
    return make_baseline(name, **settings).fit(log, TITLES, seed)


SMALL = {"plsa": {"topics": 3}}


@pytest.mark.parametrize("name", sorted(set(BASELINES) - {"skip-thought"}))
def test_scores_are_numbers_and_repeat(name, log):
    first, again = (all_pairs(fitted(name, log, **SMALL.get(name, {}))) for _ in range(2))
    assert first.dtype == np.float64 and np.isfinite(first).all()
    assert np.array_equal(first, again)
    other = all_pairs(fitted(name, log, seed=1, **SMALL.get(name, {})))
    assert np.array_equal(first, other) != make_baseline(name, **SMALL.get(name, {})).is_random
    assert fitted(name, log, **SMALL.get(name, {})).score_pairs([], [], [], []).shape == (0,)


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
    for query, row in zip(QUERIES, scores):
        for title, score in zip(TITLES, row):
            mine = title.split()
            expected = sum(
                math.log((mine.count(w) + 2.0 * words.count(w) / len(words)) / (len(mine) + 2.0))
                for w in query.split()
                if w in words
            )
            assert score == pytest.approx(expected, abs=1e-12)


# -- BM25 ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings, k1, b", [({}, 0.9, 0.4), ({"k1": 1.5, "b": 0.75}, 1.5, 0.75)], ids=["default", "set"]
)
def test_bm25_is_the_formula(log, settings, k1, b):
    scores = all_pairs(fitted("bm25", log, **settings))
    lengths = [len(title.split()) for title in TITLES]
    for query, row in zip(QUERIES, scores):
        for title, score in zip(TITLES, row):
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
    assert all(b >= a - 1e-9 for a, b in zip(plsa.log_likelihoods, plsa.log_likelihoods[1:]))
    scores = all_pairs(plsa, ["sea", "ski"], ["wave sand", "lift", "nothing known"])
    assert scores[0, 0] > 0.9 > 0.1 > scores[0, 1] and scores[1, 1] > 0.9 > 0.1 > scores[1, 0]
    assert not scores[:, 2].any()


# -- Doc2Vec ---------------------------------------------------------------------------------------


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
        with pytest.raises(SentembError, match="no file of Skip-Thought"):
            make_baseline("skip-thought", folder=folder)


# -- wrong use -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, settings, message",
    [
        ("bm52", {}, "baseline must be one of"),
        ("unigram", {"mu": 0}, "mu must be"),
        ("bm25", {"b": 2}, "k1 must be"),
        ("plsa", {"topics": 0}, "topics must be"),
        ("plsa", {"prior": -1}, "prior must be"),
        ("bm25", {"stems": True}, "does not take these settings"),
    ],
)
def test_wrong_settings(name, settings, message):
    with pytest.raises(SentembError, match=message):
        make_baseline(name, **settings)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "bm25s", None)
    with pytest.raises(SentembError, match=r"bm25s is not installed; pip install 'sentemb\[base"):
        make_baseline("bm25")
