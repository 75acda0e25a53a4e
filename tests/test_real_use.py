"""The public face as programs use it: interrupts, forks, threads, pickles."""

import copy
import multiprocessing
import os
import pickle
import signal
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from helpers import forked, made_up_log, made_up_model, run_python
from reliability import faces
from reliability.count import held
from reliability.faces import TEXTS, answers, in_a_fork, model_of, scorer_of
from reliability.samples import ALL_PARTS

from sentemb import Index, SentembError, SentenceEncoder, train
from sentemb.analysis.explanation import explain
from sentemb.data.click_log import ClickLog
from sentemb.models.face import TextWarning
from sentemb.models.words import word_memory
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking import parts
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.system.parallel import Workers

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and signals")


# -- interrupts ------------------------------------------------------------------------------------


class TimeOut(Exception):
    pass


@pytest.mark.parametrize("threads", [1, 3])
def test_an_encoder_is_right_after_an_interrupt_at_any_moment(threads):
    """After an alarm in the middle of `encode` the answers are those of a fresh encoder."""
    expected = model_of(threads).encode(TEXTS)
    armed = False  # a thread may take the signal and hand it on after its timer was stopped

    def raise_time_out(number, frame):
        if armed:
            raise TimeOut

    before = signal.signal(signal.SIGALRM, raise_time_out)
    interrupted = 0
    try:
        for delay in np.linspace(2e-5, 4e-3, 60):
            model = model_of(threads)
            armed = True
            try:
                signal.setitimer(signal.ITIMER_REAL, delay)
                model.encode(TEXTS)
                armed = False
            except TimeOut:
                interrupted += 1
            armed = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert np.array_equal(model.encode(TEXTS), expected), delay
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert interrupted > 5


def test_an_encoder_is_right_after_an_exception_at_any_step():
    held(faces.exceptions(every=101, first=60, asked=("encode",)))


def test_a_pair_model_is_right_after_an_exception_at_any_step():
    held(faces.exceptions(every=997, first=5, asked=("score_pairs",)))


def test_workers_raise_only_once_no_thread_works_any_more():
    working = []

    def slow():
        working.append(1)
        time.sleep(0.05)
        working.pop()

    def fail():
        raise TimeOut

    with Workers(3) as workers:
        for _ in range(5):
            with pytest.raises(TimeOut):
                workers.run([(fail,), (slow,), (slow,)])
            assert not working
        done = []
        workers.run([(done.append, k) for k in range(20)])
        assert sorted(done) == list(range(20))


# -- forks and other processes ---------------------------------------------------------------------


@pytest.mark.parametrize("make", [model_of, scorer_of])
def test_a_forked_child_answers_as_its_parent(make):
    model = make(2)
    expected = answers(model)  # the parent's threads run by now
    assert in_a_fork(lambda: answers(model)) == expected
    assert answers(model) == expected


def test_answers_of_threads_and_processes(monkeypatch):
    models = model_of(2), scorer_of(2)
    # One process for both models: to start it takes most of the time.
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(answers, models) == [*map(answers, models)]
    fork = multiprocessing.get_context("fork")
    monkeypatch.setattr(multiprocessing, "get_context", lambda method: fork)
    held(faces.processes_and_threads(rounds=1))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
@pytest.mark.parametrize("shared", [False, True], ids=["two-towers", "shared"])
def test_copies_are_equal_and_apart(copied, shared):
    model = made_up_model(("lstm", {"bag_dim": 3}), TEXTS, dtype=np.float32, shared=shared)
    model.training, model.history = {"pairs": 3}, [{"epoch": 1}]
    expected = answers(model)
    other = copied(model)
    assert answers(other) == expected and repr(other) == repr(model)
    assert other.shared_towers == shared
    assert (other.training, other.history) == (model.training, model.history)
    other.parameters()["query"]["b1"][...] = 1
    assert answers(model) == expected
    assert answers(other) != expected


def test_a_model_is_a_step_of_scikit_learn():
    base = pytest.importorskip("sklearn.base")
    transformer = pytest.importorskip("sklearn.preprocessing").FunctionTransformer
    model = model_of(2)
    expected = model.encode_query(TEXTS[:20])
    copied = base.clone(transformer(model.encode_query))
    assert copied.func.__self__ is not model
    assert np.array_equal(copied.fit_transform(TEXTS[:20]), expected)


@pytest.mark.slow
@pytest.mark.parametrize("make", [model_of, scorer_of])
def test_scikit_learn_searches_settings_in_other_processes(make):
    """As a user has it: the model in a pipeline, fitted by two processes."""
    selection = pytest.importorskip("sklearn.model_selection")
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    model = make(2)
    ask, more = (model.encode_query, {}) if make is model_of else (model.score, {"title": ["b"]})
    pipeline = make_pipeline(FunctionTransformer(ask, kw_args=more), LogisticRegression())
    search = selection.GridSearchCV(
        pipeline, {"logisticregression__C": [0.1, 1.0]}, cv=2, n_jobs=2, error_score="raise"
    )
    found = search.fit(TEXTS[:20], [k % 2 for k in range(20)])
    assert np.array_equal(found.best_estimator_[0].transform(TEXTS[:20]), ask(TEXTS[:20], **more))


@pytest.mark.parametrize("make", [model_of, scorer_of])
def test_joblib_with_arrays_that_it_maps_into_memory(tmp_path, make):
    joblib = pytest.importorskip("joblib")
    model = make(2)
    joblib.dump(model, tmp_path / "model.joblib")
    read_only = joblib.load(tmp_path / "model.joblib", mmap_mode="r")
    assert np.array_equal(
        read_only.score(TEXTS[0], TEXTS[1:20]), model.score(TEXTS[0], TEXTS[1:20])
    )


# -- threads ---------------------------------------------------------------------------------------


def test_two_threads_that_share_workers_do_not_mix_their_tasks():
    workers = Workers(3)

    def fill(number):
        for _ in range(50):
            own = np.zeros(64, np.int64)

            def task(low, high, own=own):
                own[low:high] += number

            workers.over(own.size, task)
            assert np.all(own == number)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(fill, range(1, 5)))


def test_scoring_pairs_leaves_warning_filters_alone(monkeypatch):
    """They belong to the whole process, so changing them for a moment is seen by other threads."""
    model = model_of(1)
    pairs = ["", "ab"], ["cd", ""], np.array([0, 1]), np.array([0, 1])
    model.score_pairs(*pairs)  # Numba changes them when it compiles
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "catch_warnings", None)
        scores = model.score_pairs(*pairs)
    assert not caught and np.all(scores == 0)


def test_searches_leave_warning_filters_alone(monkeypatch):
    """Two threads that change them for a moment may leave all warnings off for good."""
    model = model_of(1)
    log = ClickLog.from_pairs([("ab cd", "ab"), ("zz", "cd ab"), ("qq", "zz")])
    ranker = HybridRanker(model, ALL_PARTS, ClickedQueries.of(log))
    index = Index.build(ranker, ["ab", "cd ab", "zz", ""], threads=1)

    def use(index):
        index.search(["zz", "", "ab"])
        index.explain("zz", ["0"])
        index.add(["zz zz"], ["new"])
        index.adopt(index.ranked_by(ranker.alone("memory")), index.snapshot)
        ranker.score_pairs(["zz", "ab"], ["ab", "zz"], np.array([0, 1]), np.array([0, 1]))
        ranker.explain("zz", "ab")
        explain(model, "zz ab", "ab", log)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use(copy.copy(index))  # Numba changes the filters when it compiles
        before = [*warnings.filters]
        monkeypatch.setattr(warnings, "catch_warnings", None)
        use(index)
        assert warnings.filters == before
    assert not [one for one in caught if isinstance(one.message, TextWarning)]
    monkeypatch.undo()
    with pytest.warns(TextWarning, match="1 of 1 texts"):
        model.encode_query(["zz"])


def test_of_several_threads_one_prepares_a_ranker(monkeypatch):
    prepared, clicks = (
        [],
        ClickedQueries.of(ClickLog.from_pairs([("ab cd", "ab"), ("cd", "cd ab")])),
    )

    def slowly(name, real):
        def called(*arguments):
            prepared.append(name)
            time.sleep(0.05)
            return real(*arguments)

        return called

    monkeypatch.setattr(parts.MemoryRows, "of", slowly("memory", parts.MemoryRows.of))
    read = slowly("log", lambda: clicks)
    ranker = HybridRanker(model_of(1), Recipe({"cosine": 1.0, "memory": 0.5}), read)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: ranker.find(["ab", "cd"], 2)[1].tolist(), range(16)))
    assert sorted(prepared) == ["log", "memory"]
    assert all(one == found[0] for one in found)


# -- the memory of words ---------------------------------------------------------------------------


def projected_words(monkeypatch, model, texts):
    """How many words `encode` projects that it did not remember."""
    counts = []
    project = word_memory.sum_features

    def counting(*arguments):
        first, end = arguments[-2:]
        counts.append(end - first)
        project(*arguments)

    monkeypatch.setattr(word_memory, "sum_features", counting)
    model.encode(texts)
    monkeypatch.setattr(word_memory, "sum_features", project)
    return sum(counts)


def test_saving_a_model_does_not_make_it_forget(tmp_path, monkeypatch):
    model = model_of(1)
    model.encode(TEXTS)
    model.save_pretrained(tmp_path / "m")
    assert projected_words(monkeypatch, model, TEXTS) == 0
    trained = train(made_up_log(), cells=4, epochs=1, batch_size=16, output=tmp_path / "trained")
    trained.encode(TEXTS)
    assert projected_words(monkeypatch, trained, TEXTS) == 0


def test_long_words_are_encoded_and_not_remembered(monkeypatch):
    long = ["ab" * 60, "cd" * 5000]
    texts = [f"ab {long[0]} cd", long[1], "dc ab"]
    expected = [model_of(1).encode(text) for text in texts]
    model = model_of(1)
    for _ in range(3):
        assert np.array_equal(model.encode(texts), expected)
    # Both long words again, and none of the others.
    assert projected_words(monkeypatch, model, texts) == 2
    assert np.array_equal(model.encode(texts + TEXTS)[:3], expected)
    assert np.array_equal(model.encode(TEXTS), model_of(1).encode(TEXTS))


@pytest.mark.filterwarnings("ignore:.* no word that the model knows")
def test_the_memory_counts_letters_and_entries(monkeypatch):
    model = model_of(1)
    expected = model.encode(TEXTS)
    words = [f"{k:090}" for k in range(2000)]
    # Room for the projections of 2,000 words and not for the words themselves.
    monkeypatch.setattr(word_memory, "_LIMIT", 4 * 2048 * model.encoder.width + 50_000)
    model.encode(words)
    model.encode(words[:1])
    assert projected_words(monkeypatch, model, words) == 1999
    assert np.array_equal(model.encode(TEXTS), expected)


def test_a_soak_of_random_texts():
    held(faces.soak(3000))


# -- arguments that cannot be right ----------------------------------------------------------------

MISTAKES = {
    "encode None": lambda model: model.encode(None),
    "encode bytes": lambda model: model.encode(b"ab"),
    "encode a number": lambda model: model.encode([1]),
    "encode a dict": lambda model: model.encode({"ab": 1}),
    "encode a table": lambda model: model.encode(np.array([["ab", "cd"], ["a", "b"]])),
    "side": lambda model: model.encode("ab", side=["query"]),
    "score numbers": lambda model: model.score([1], ["ab"]),
    "rank one title": lambda model: model.rank("ab", "cd"),
    "rank for a number": lambda model: model.rank(3, ["cd"]),
    "top_k": lambda model: model.rank("ab", ["cd"], top_k="3"),
    "similarity of texts": lambda model: model.similarity("ab", "cd"),
    "similarity of ragged rows": lambda model: model.similarity([[1, 2], [3]], [[1, 2]]),
    "similarity of widths": lambda model: model.similarity([1.0, 2.0], [1.0, 2.0, 3.0]),
    "similarity of a cube": lambda model: model.similarity(np.zeros((2, 2, 2)), [1.0]),
    "NaN": lambda model: model.similarity([1.0, np.nan], [1.0, 2.0]),
    "pairs of widths": lambda model: model.similarity_pairwise([1.0], [1.0, 2.0]),
    "trace a number": lambda model: model.trace(3),
    "dtype": lambda model: model.astype("int32"),
    "dtype that is none": lambda model: model.astype("banana"),
    "a folder that is not there": lambda model: SentenceEncoder("nowhere"),
    "a folder with other weights": lambda model: SentenceEncoder("m", weights=model.weights),
    "an encoder alone": lambda model: SentenceEncoder(model.encoder),
    "neither path nor encoder": lambda model: SentenceEncoder(3),
    "threads": lambda model: SentenceEncoder.from_pretrained("nowhere", threads="2"),
    "threads of a model": lambda model: SentenceEncoder(
        model.encoder, model.vocabulary, model.weights, threads=1.5
    ),
    "path": lambda model: train(None),
    "path of a model": lambda model: SentenceEncoder.from_pretrained(None),
    "path of a model in bytes": lambda model: SentenceEncoder.from_pretrained(b"m"),
    "path to save to": lambda model: model.save_pretrained(3),
    "output": lambda model: train(made_up_log(), output=3),
    "checkpoints": lambda model: train(made_up_log(), checkpoint_seconds="1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_line(mistake):
    with pytest.raises(SentembError) as caught:
        MISTAKES[mistake](model_of(1))
    assert "\n" not in str(caught.value)


class Table:
    """A table of pandas, polars or pyarrow, as far as lists of texts are concerned."""

    columns = ("title", "price")

    def __iter__(self):
        return iter(self.columns)


class NAType:
    def __repr__(self):
        return "<NA>"


NOT_TEXTS = {
    "a table": (Table(), r"not Table; give one column of it, such as table\['title'\]"),
    "a dict": ({"text": "ab"}, r"not dict; give its values: list\(texts.values\(\)\)"),
    "a set": ({"ab"}, r"not set, which has no order; give sorted\(texts\)"),
    "one text": ("ab", r"not str; put it in a list"),
    "None": (["ab", "b", "c", None], r"^text 3, counted from 0, is None, not str; fill or drop it"),
    "NaN": (["ab", float("nan")], r"^text 1, counted from 0, is NaN, .*series\.fillna\(''\)"),
    "NaN of NumPy": (np.array(["ab", np.float32("nan")], object), r"^text 1, .* is NaN, not str"),
    "NA": (iter([NAType()]), r"^text 0, counted from 0, is <NA>, not str; fill or drop it"),
    "a number": (["ab", 3], r"^text 1, counted from 0, is int, not str; convert it with str\(\)"),
    "texts in texts": (["ab", ["cd"]], r"^text 1, counted from 0, is list, not str"),
}


@pytest.mark.parametrize("wrong", NOT_TEXTS)
def test_what_is_not_a_list_of_texts_is_named_with_its_remedy(wrong):
    texts, message = NOT_TEXTS[wrong]
    texts = list(texts) if wrong == "NA" else texts
    asked = [
        lambda model: model.score("ab", texts),
        lambda model: model.score(texts, ["ab"]),
        lambda model: model.rank("ab", texts),
        lambda model: model.rank(texts, ["ab"]),
        lambda model: model.score_pairs(["ab"], texts, [0], [0]),
    ]
    if wrong == "one text":
        asked = [lambda model: model.rank("ab", texts), asked[-1]]
    for model in (model_of(1), scorer_of(1)):
        for ask in asked:
            with pytest.raises(SentembError, match=message):
                ask(model)


def test_numbers_of_numpy_are_numbers():
    train(made_up_log(), cells=2, epochs=1, checkpoint_seconds=np.float32(3))


def test_cosines_of_very_large_very_small_and_whole_numbers():
    model = model_of(1)
    b = np.array([[3.0, 4.0]], np.float32)
    for scale in (1e30, 1e-30, 1e-42):
        a = np.array([[3.0 * scale, 4.0 * scale]], np.float32)
        assert model.similarity(a, b)[0, 0] == pytest.approx(1, rel=1e-2 if scale < 1e-40 else 1e-6)
    assert model.similarity([[3, 4]], [[4, 3], [-3, -4], [0, 0]]).tolist() == [[0.96, -1, 0]]
    assert model.similarity_pairwise([3, 4], [4, 3]).tolist() == [0.96]


# -- Ctrl-C in commands ----------------------------------------------------------------------------

INTERRUPTED_ENCODE = """
import os, signal, sys, threading
from sentemb.cli import main
number = getattr(signal, sys.argv[2])
threading.Timer(float(sys.argv[3]), os.kill, (os.getpid(), number)).start()
main(["encode", sys.argv[1], "-", "-o", sys.argv[4]])
"""


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_command_that_is_stopped_leaves_nothing_behind(tmp_path, number, code):
    model_of(1).save_pretrained(tmp_path / "m")
    (tmp_path / "out").mkdir()
    # Standard input never ends.
    reader, writer = os.pipe()
    named = tmp_path / "m", number, "0.5", tmp_path / "out/v.npy"
    run = forked(INTERRUPTED_ENCODE, *named, stdin=reader)
    _, said = run.communicate(timeout=60)
    os.close(writer)
    assert run.returncode == code, said
    assert "Traceback" not in said and "Aborted" not in said
    assert not list((tmp_path / "out").iterdir())


def test_ctrl_c_while_the_command_loads():
    code = (
        "import builtins, signal, sys\n"
        "find = builtins.__import__\n"
        "def hook(name, *rest):\n"
        "    if name == 'click':\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    return find(name, *rest)\n"
        "builtins.__import__ = hook\n"
        "from sentemb.cli import main\n"
        "main(['--help'])\n"
    )
    result = run_python(code)
    assert result.returncode == 130 and "Traceback" not in result.stderr
