"""Vectorizers for scikit-learn: its own checks, pipelines, searches in processes, pickles."""

import copy
import importlib
import io
import pickle
import sys
import threading
import warnings

import joblib
import numpy as np
import pytest
from helpers import made_up_model, made_up_pair_model
from lab.classifier.training import train_classifier
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import validate_data
from threadpoolctl import threadpool_limits

from sentemb import SIF, ClickLog, Index, SentembError
from sentemb.bridges.scikit_learn import SentenceVectorizer, SIFVectorizer
from sentemb.data.labelled import ValuedTexts
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.writing import write_word_vectors
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

# Words for numbers, so that scikit-learn's checks, which make up numbers, reach a vectorizer.
NUMBERS = [f"c{column}n{value}" for column in range(20) for value in range(19)]
TEXTS = [f"{colour}{what}" for what in (" shoes", " tap", "") for colour in ("red", "blue")] * 4
MODULE = "sentemb.bridges.scikit_learn"
LABELS = [text.split()[0] for text in TEXTS]


def vectors(words, dim=6):
    return WordVectors(list(words), np.random.default_rng(0).normal(size=(len(words), dim)))


@pytest.fixture(scope="module")
def model():
    return made_up_model(("lstm", {}), TEXTS, dtype=np.float32)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    model.save_pretrained(path)
    return path


@pytest.fixture(autouse=True)
def one_thread_of_blas():
    with threadpool_limits(1):
        yield


# -- scikit-learn's own checks -----------------------------------------------------------------


class FromNumbers:
    """A table of numbers, checked as scikit-learn asks for, becomes texts of one word per column.

    For a vectorizer of texts `check_estimator` only looks whether it can be cloned; all its other
    checks make up numbers. With this in front of a vectorizer they run. Those that look at the
    numbers (NaN, complex, sparse, empty, number of columns) see this class, and all others the
    vectorizer.
    """

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.string = True, False
        return tags

    def fit(self, X, y=None):
        return super().fit(self.texts(X, reset=True))

    def transform(self, X):
        if hasattr(self, "model_"):
            X = self.texts(X, reset=False)
        return super().transform(X)

    def texts(self, X, reset):
        table = validate_data(self, X, reset=reset, dtype=float)
        values = (np.round(10 * table) % 19).astype(int).tolist()
        return [" ".join(f"c{c}n{value}" for c, value in enumerate(row)) for row in values]


class SentencesOfNumbers(FromNumbers, SentenceVectorizer):
    pass


class SIFOfNumbers(FromNumbers, SIFVectorizer):
    pass


ONE_TEXT = {"check_fit2d_1sample": "the common components of one text are not defined"}
SKIPPED = {"check_array_api_input": "needs SCIPY_ARRAY_API to be set before scipy is imported"}


@pytest.mark.parametrize(
    ("vectorizer", "failing"),
    [
        (
            SentencesOfNumbers(made_up_model(("lstm", {}), NUMBERS, dtype=np.float32)),
            {},
        ),
        (SIFOfNumbers(vectors(NUMBERS)), ONE_TEXT),
    ],
    ids=["sentences", "sif"],
)
def test_the_checks_of_scikit_learn(vectorizer, failing):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            vectorizer, on_skip=None, on_fail=None, expected_failed_checks=failing
        )
    found = {}
    for result in results:
        found.setdefault(result["status"], {})[result["check_name"]] = result["exception"]
    assert not found.get("failed"), found["failed"]
    assert found.get("xfail", {}).keys() == failing.keys()
    assert found.get("skipped", {}).keys() <= SKIPPED.keys()
    assert len(found["passed"]) >= 40


@pytest.mark.parametrize("vectorizer", [SentenceVectorizer("folder"), SIFVectorizer("file")])
def test_it_reads_texts(vectorizer):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        (result,) = check_estimator(vectorizer)
    assert result["check_name"] == "check_estimator_cloneable" and result["status"] == "passed"
    assert "requires input" in str(said[-1].message)  # of another type than a table of numbers
    tags = get_tags(vectorizer)
    assert tags.input_tags.string and not tags.input_tags.two_d_array
    assert tags.transformer_tags.preserves_dtype == []


# -- vectors -----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["query", "document"])
@pytest.mark.parametrize("normalize_embeddings", [True, False])
def test_it_gives_the_vectors_of_the_model(model, folder, side, normalize_embeddings):
    wanted = model.encode(TEXTS, side=side, normalize_embeddings=normalize_embeddings)
    for given in (model, folder, str(folder)):
        vectorizer = SentenceVectorizer(given, side=side, normalize_embeddings=normalize_embeddings)
        found = vectorizer.fit(TEXTS[:1]).transform(TEXTS)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, wanted)


def test_sif_learns_from_the_texts_of_fit_alone():
    own = vectors(["red", "blue", "shoes", "tap"])
    vectorizer = SIFVectorizer(own, a=0.1, p="texts", normalize_embeddings=False).fit(TEXTS[:5])
    wanted = SIF(own, a=0.1, p="texts").fit(TEXTS[:5])
    np.testing.assert_array_equal(vectorizer.transform(TEXTS), wanted.encode(TEXTS))
    other = SIFVectorizer(own, a=0.1, p="texts", normalize_embeddings=False).fit(TEXTS[1:])
    assert np.abs(other.transform(TEXTS) - wanted.encode(TEXTS)).max() > 1e-3


def test_sif_reads_a_folder_of_vectors_and_numbers_of_numpy(tmp_path):
    own = vectors(["red", "blue", "shoes", "tap"])
    write_word_vectors(own, tmp_path / "vectors")
    settings = {"a": np.float64(0.01), "components": np.int64(2), "normalize_embeddings": np.True_}
    found = SIFVectorizer(tmp_path / "vectors", **settings).fit_transform(TEXTS)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize(
    "given",
    [
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, object)[:, None],
        (text for text in TEXTS),
    ],
    ids=["tuple", "array", "one column", "iterator"],
)
def test_texts_come_in_many_forms(model, given):
    found = SentenceVectorizer(model).fit_transform(given)
    np.testing.assert_array_equal(found, model.encode(TEXTS, normalize_embeddings=True))


def test_no_texts_give_no_vectors(model):
    assert SentenceVectorizer(model).fit([]).transform([]).shape == (0, model.dim)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("red shoes", r"not str; put it in a list"),
        (b"red", r"not bytes"),
        ([b"red"], r"text 0, counted from 0, is bytes"),
        (["red", float("nan")], r"text 1, counted from 0, is NaN, not str; fill or drop it"),
        (["red", None], r"text 1, counted from 0, is None"),
        ([["red"], ["blue"]], r"text 0, counted from 0, is list"),
        (np.array([["a", "b"]]), r"the shape \(1, 2\); give one column of texts"),
        (np.ones((2, 1)), r"text 0, counted from 0, is float64"),
        (np.array("red"), r"not ndarray"),
        (None, r"not NoneType"),
    ],
    ids=lambda value: None if isinstance(value, str) else type(value).__name__,
)
def test_anything_else_is_refused(model, given, message):
    for method in (SentenceVectorizer(model).fit, SentenceVectorizer(model).fit(TEXTS).transform):
        with pytest.raises(SentembError, match=message):
            method(given)


@pytest.mark.parametrize(
    ("vectorizer", "message"),
    [
        (SentenceVectorizer("/nowhere"), "/nowhere: there is no model here"),
        (SentenceVectorizer(3), "model is int; give a model folder or a SentenceEncoder"),
        (SentenceVectorizer("/nowhere", side="titles"), "side is 'titles'; give query or document"),
        (
            SentenceVectorizer("/nowhere", normalize_embeddings="l2"),
            "normalize_embeddings is 'l2'; give True or False",
        ),
        (SIFVectorizer("/nowhere"), "/nowhere: cannot be read"),
        (SIFVectorizer(None), "vectors is NoneType; give a file or folder"),
        (SIFVectorizer(vectors(["a"]), a=-1), "a is -1"),
        (SIFVectorizer(vectors(["a"]), normalize_embeddings=2), "normalize_embeddings is 2"),
    ],
    ids=lambda value: None if isinstance(value, str) else "",
)
def test_wrong_parameters_are_refused_by_fit(vectorizer, message):
    with pytest.raises(SentembError, match=message):
        vectorizer.fit(TEXTS)


def test_a_pair_model_has_no_vectors(tmp_path):
    scorer = made_up_pair_model(TEXTS)
    with pytest.raises(SentembError, match="model is PairScorer"):
        SentenceVectorizer(scorer).fit(TEXTS)
    scorer.save_pretrained(tmp_path / "pair")
    with pytest.raises(SentembError, match="pair"):
        SentenceVectorizer(tmp_path / "pair").fit(TEXTS)


def test_fit_comes_first(folder):
    vectorizer = SentenceVectorizer(folder)
    with pytest.raises(NotFittedError):
        vectorizer.transform(TEXTS)
    with pytest.raises(NotFittedError):
        vectorizer.get_feature_names_out()


# -- in pipelines ------------------------------------------------------------------------------


# The processes of loky import everything again; those of multiprocessing are forked.
@pytest.mark.parametrize(
    "backend", ["multiprocessing", pytest.param("loky", marks=pytest.mark.slow)]
)
def test_a_search_in_two_processes(folder, tmp_path, backend):
    own = vectors(["red", "blue", "shoes", "tap"])
    write_word_vectors(own, tmp_path / "vectors")
    pipeline = Pipeline([("vectors", SentenceVectorizer(folder)), ("label", LogisticRegression())])
    grid = [
        {"vectors__side": ["query", "document"], "vectors__normalize_embeddings": [True, False]},
        {"vectors": [SIFVectorizer(tmp_path / "vectors", p="texts")], "vectors__a": [1e-3, 1.0]},
    ]
    with joblib.parallel_backend(backend):
        one, two = (
            GridSearchCV(pipeline, grid, cv=2, n_jobs=jobs, error_score="raise").fit(TEXTS, LABELS)
            for jobs in (1, 2)
        )
    np.testing.assert_array_equal(
        one.cv_results_["mean_test_score"], two.cv_results_["mean_test_score"]
    )
    assert len(one.cv_results_["mean_test_score"]) == 6 and one.best_score_ > 0.9
    assert (two.predict(TEXTS) == one.predict(TEXTS)).all()


def test_a_model_is_a_parameter_like_any_other(model):
    models = [model, made_up_model(("bag", {}), TEXTS, dtype=np.float32)]
    pipeline = make_pipeline(SentenceVectorizer(model), LogisticRegression())
    grid = GridSearchCV(pipeline, {"sentencevectorizer__model": models}, cv=2, error_score="raise")
    best = grid.fit(TEXTS, LABELS).best_params_["sentencevectorizer__model"]
    assert best in models  # shared, not copied
    assert clone(pipeline)[0].model is model
    assert clone(made_up_pair_model(TEXTS)) is not None
    own = vectors(["a"])
    assert clone(SIFVectorizer(own)).vectors is own


def test_a_method_of_a_model_is_a_step(model):
    step = FunctionTransformer(model.encode_query)
    found = clone(step).fit_transform(TEXTS)
    np.testing.assert_array_equal(found, model.encode_query(TEXTS))
    scores = cross_val_score(make_pipeline(step, LogisticRegression()), TEXTS, LABELS, cv=2)
    assert scores.min() > 0.5


def test_texts_next_to_other_columns(model):
    table = np.array(
        [[text, " ".join(text.split()[::-1]), str(len(text))] for text in TEXTS], object
    )
    columns = ColumnTransformer(
        [
            ("text", SentenceVectorizer(model), 0),
            ("listed", SentenceVectorizer(model, side="document"), [1]),
            ("length", StandardScaler(), [2]),
        ]
    )
    found = columns.fit_transform(table)
    assert found.shape == (len(TEXTS), 2 * model.dim + 1)
    np.testing.assert_array_equal(
        found[:, : model.dim], model.encode(TEXTS, normalize_embeddings=True)
    )
    names = columns.get_feature_names_out()
    assert names[0] == "text__sentencevectorizer0"
    assert names[model.dim] == "listed__sentencevectorizer0"


def test_tables_of_pandas(model):
    pandas = pytest.importorskip("pandas", reason="what set_output(transform='pandas') makes")
    table = pandas.DataFrame({"text": TEXTS}, index=range(7, 7 + len(TEXTS)))
    vectorizer = SentenceVectorizer(model).set_output(transform="pandas")
    for given in (table, table["text"]):
        for found in (vectorizer.fit_transform(given), vectorizer.fit(given).transform(given)):
            assert list(found.index) == list(table.index)
            assert list(found.columns) == [f"sentencevectorizer{k}" for k in range(model.dim)]
            np.testing.assert_array_equal(found, model.encode(TEXTS, normalize_embeddings=True))
    with pytest.raises(SentembError, match="one column of texts"):
        vectorizer.transform(table.assign(other=TEXTS))


def test_neighbours_rank_as_the_model_does(model):
    vectorizer = SentenceVectorizer(model)
    titles, queries = TEXTS[:4], ["red", "blue tap"]
    found = NearestNeighbors(n_neighbors=4).fit(
        SentenceVectorizer(model, side="document").fit_transform(titles)
    )
    distances, places = found.kneighbors(vectorizer.fit_transform(queries))
    for query, row, of_row in zip(queries, places, distances, strict=True):
        ranked = model.rank(query, titles)
        assert [place for place, _ in ranked] == row.tolist()
        # |a - b|² = 2 - 2 cos
        np.testing.assert_allclose([2 - 2 * score for _, score in ranked], of_row**2, atol=1e-6)


# -- pickles -----------------------------------------------------------------------------------


def joblib_copy(thing):
    file = io.BytesIO()
    joblib.dump(thing, file)
    file.seek(0)
    return joblib.load(file)


def pickle_copy(thing):
    return pickle.loads(pickle.dumps(thing))


@pytest.mark.parametrize("copied", [pickle_copy, joblib_copy])
def test_a_fitted_vectorizer_can_be_pickled(model, folder, copied):
    own = vectors(["red", "blue", "shoes", "tap"])
    for vectorizer in (SentenceVectorizer(model), SentenceVectorizer(folder), SIFVectorizer(own)):
        found = copied(vectorizer.fit(TEXTS)).transform(TEXTS)
        np.testing.assert_array_equal(found, vectorizer.transform(TEXTS))
        with pytest.raises(NotFittedError):
            copied(clone(vectorizer)).transform(TEXTS)


def test_a_pickle_of_a_path_is_small_and_checks_the_folder(model, tmp_path, monkeypatch):
    model.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    vectorizer = SentenceVectorizer("model").fit(TEXTS)
    pickled = pickle.dumps(vectorizer)
    assert len(pickled) < 1000 < len(pickle.dumps(SentenceVectorizer(model).fit(TEXTS)))
    monkeypatch.chdir("/")  # the folder is found from elsewhere too
    np.testing.assert_array_equal(
        pickle.loads(pickled).transform(TEXTS), vectorizer.transform(TEXTS)
    )
    made_up_model(("lstm", {}), TEXTS, dtype=np.float32, seed=1).save_pretrained(
        tmp_path / "model", force=True
    )
    with pytest.raises(SentembError, match="the model has changed since the vectorizer was fitted"):
        pickle.loads(pickled)
    # The one in memory is what it was until it is fitted again.
    before = vectorizer.transform(TEXTS)
    np.testing.assert_array_equal(before, model.encode(TEXTS, normalize_embeddings=True))
    monkeypatch.chdir(tmp_path)
    assert np.abs(vectorizer.fit(TEXTS).transform(TEXTS) - before).max() > 1e-3


def test_a_folder_is_read_once_per_process(folder, monkeypatch):
    first = SentenceVectorizer(folder).fit(TEXTS)
    assert clone(first).fit(TEXTS).model_ is first.model_
    assert pickle.loads(pickle.dumps(first)).model_ is first.model_


def test_everything_can_be_copied_while_other_threads_use_it(tmp_path):
    model = made_up_model(("lstm", {}), TEXTS, dtype=np.float32)
    clicks = ClickedQueries.of(ClickLog.from_pairs(zip(TEXTS[1:], TEXTS[:-1], strict=True)))
    ranker = HybridRanker(model, Recipe({"cosine": 1, "memory": 1, "bm25": 0.5}), clicks)
    Index.build(ranker, TEXTS).save(tmp_path / "index")
    examples = ValuedTexts(LABELS, TEXTS)
    settings = {"epochs": 1, "hidden": 2, "map_dim": 2, "threads": 1}
    things = [
        (model, lambda one: one.encode(TEXTS).tolist()),
        (made_up_pair_model(TEXTS), lambda one: one.score(TEXTS, TEXTS).tolist()),
        (Index.build(ranker, TEXTS), lambda one: one.search(TEXTS)),
        (Index.open(tmp_path / "index"), lambda one: one.search(TEXTS)),
        (
            train_classifier(examples, features=model.encode, **settings),
            lambda one: one.predict(TEXTS),
        ),
        (SentenceVectorizer(model).fit(TEXTS), lambda one: one.transform(TEXTS).tolist()),
    ]
    for thing, use in things:
        expected, wrong, stop = use(thing), [], threading.Event()

        def work(thing=thing, use=use, expected=expected, wrong=wrong, stop=stop):
            while not stop.is_set():
                if use(thing) != expected:
                    wrong.append(thing)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            for _ in range(3):
                for copied in (copy.deepcopy(thing), joblib_copy(thing), pickle_copy(thing)):
                    assert use(copied) == expected
        finally:
            stop.set()
            thread.join()
        assert not wrong


# -- without scikit-learn ----------------------------------------------------------------------


def test_the_message_without_scikit_learn(monkeypatch):
    monkeypatch.delitem(sys.modules, MODULE)
    monkeypatch.setitem(sys.modules, "sklearn.base", None)
    with pytest.raises(SentembError, match=r"needs sklearn, .* pip install 'sentemb\[scikit-learn"):
        importlib.import_module(MODULE)
