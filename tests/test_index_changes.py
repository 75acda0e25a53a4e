"""An index changes in one step: with an exception at any line, during searches, and in copies."""

import contextlib
import copy
import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from helpers import made_up_model

from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search import index as module
from sentemb.search.index_tuning import calibrate, tune
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE, Recipe
from sentemb.system.parallel import Workers

WORDS = ["red", "green", "blue", "small", "large", "cotton", "hat", "bag", "coat", "shoe"]
QUERIES = ["red hat", "large cotton coat", "blue", "hat shoe"]
NEW, GONE = ["red cap", "green cap", "hat hat"], ["p1", "p7", "p8", "p30"]


def made_up_titles(n, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 4))) for _ in range(n)]


TITLES = made_up_titles(40)
IDS = [f"p{place}" for place in range(40)]
CLICKS = ClickLog.from_pairs(
    [(f"{WORDS[k % 10]} {WORDS[(3 * k + k // 10) % 10]}", TITLES[k % 40]) for k in range(70)]
)
DEV = ClickLog.from_pairs([(f"{TITLES[k]} shoe", TITLES[k]) for k in range(0, 40, 2)])
# Clicks of a later time: some are on titles that the log does not have for the query. Of queries
# that it lacks, those with words of their titles score higher.
LATER = ClickLog.from_pairs(
    [(CLICKS.queries[k], TITLES[(7 * k) % 40]) for k in range(len(CLICKS.queries))]
    + [(f"{TITLES[k]} x9", TITLES[k]) for k in range(40)]
    + [(f"{WORDS[k % 5]} x{k}", TITLES[k]) for k in range(40)]
)
ALL = Recipe(
    {"cosine": 1.0, "memory": 0.5, "bm25": 0.5, "clicked_bm25": -0.2, "unclicked": 0.1}
    | {"clicks": 0.4, "name": 0.3},
    1.2,
    0.6,
)


@pytest.fixture(scope="module")
def model():
    return made_up_model(("bag", {}), TITLES, cells=6, dtype=np.float32)


def ranker_of(model, recipe=ALL):
    return HybridRanker(model, recipe, ClickedQueries.of(CLICKS), threads=1)


def made(model):
    """An index with all parts."""
    return Index.build(ranker_of(model), TITLES, IDS, threads=1)


def add(index):
    index.add(NEW, ["n1", "n2", "n3"])


def remove(index):
    index.remove(GONE)


def rank_by(index, recipe):
    before = index.snapshot
    index.adopt(index.ranked_by(ranker_of(index.model, recipe)), before)


def sync(index):
    """Some titles change, some go, and some are new."""
    titles = [title if k % 5 else f"{title} cap" for k, title in enumerate(TITLES[:35])]
    index.sync([*titles, *NEW], [*IDS[:35], "n1", "n2", "n3"])


CHANGES = {
    "add": add,
    "remove": remove,
    "sync": sync,
    "tune": partial(tune, clicks=DEV),
    "calibrate": partial(calibrate, held_out=LATER),
    "other weights": partial(rank_by, recipe=ALL.weighted({"memory": 2.0, "cosine": -0.5})),
    "the model alone": partial(rank_by, recipe=MODEL_ALONE),
}


class Stopped(BaseException):
    """As Ctrl-C: no handler of Exception sees it."""


def stopped_at(number, change):
    """Whether ``change()`` ended, stopped at its line event ``number`` in the package if not."""
    left = number

    def trace(frame, event, _):
        nonlocal left
        # Between the last line of a `with` and its end Python takes no signal, but this would stop
        # there and leave the lock of the threads taken.
        if "/sentemb/" not in frame.f_code.co_filename or frame.f_code is Workers.run.__code__:
            return None
        if event == "line":
            left -= 1
            if left == 0:
                raise Stopped
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        change()
    except Stopped:
        return False
    finally:
        sys.settrace(before)
    return True


def events(change):
    """How many line events ``change()`` has."""
    count = 0

    def trace(frame, event, _):
        nonlocal count
        if "/sentemb/" not in frame.f_code.co_filename or frame.f_code is Workers.run.__code__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        change()
    finally:
        sys.settrace(before)
    return count


def answers(index):
    return index.search(QUERIES, 60)


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_is_stopped_at_any_line_changes_nothing(model, tmp_path, name):
    change, index = CHANGES[name], made(model)
    old = answers(index)
    changed = copy.copy(index)
    change(changed)
    new = answers(changed)
    assert new != old
    n = events(lambda: change(copy.copy(index)))
    # Lines from all parts of it and its last ones; the check `interrupts` takes every line.
    for number in {
        *range(1, n, 1 + n // (3 if name == "tune" else 9)),
        *range(max(1, n - 6), n + 1),
    }:
        own = copy.copy(index)
        stopped_at(number, partial(change, own))
        assert answers(own) in (old, new), number
        if number % 5 == 0:
            own.save(tmp_path / "index", force=True)
            assert answers(Index.open(tmp_path / "index", 1)) == answers(own)
    assert answers(index) == old


def test_a_save_that_is_stopped_after_the_exchange_can_be_done_again(model, tmp_path, monkeypatch):
    """The folder is the new one then, and nobody else has changed it."""
    real = module.replacing_folder

    @contextlib.contextmanager
    def stopped(*arguments):
        with real(*arguments) as new:
            yield new
        raise Stopped

    made(model).save(tmp_path / "index")
    index = Index.open(tmp_path / "index", 1)
    index.remove(GONE)
    monkeypatch.setattr(module, "replacing_folder", stopped)
    with pytest.raises(Stopped):
        index.save(tmp_path / "index", force=True)
    monkeypatch.undo()
    assert len(Index.open(tmp_path / "index", 1)) == 36
    index.save(tmp_path / "index", force=True)
    assert len(Index.open(tmp_path / "index", 1)) == 36


def test_searches_beside_changes_find_what_the_old_or_the_new_index_would(model):
    index = made(model)
    old = answers(index)
    changed = copy.copy(index)
    add(changed)
    remove(changed)
    between = copy.copy(index)
    add(between)
    possible = [old, answers(between), answers(changed)]
    again = copy.copy(index)
    again.remove(GONE)
    possible.append(answers(again))
    stop = threading.Event()

    def change():
        while not stop.is_set():
            add(index)
            remove(index)
            index.adopt(start, index.snapshot)

    start = index.snapshot
    beside = threading.Thread(target=change)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # a search takes less than the usual 5 ms: few would be interrupted
    beside.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: answers(index), range(200)))
    finally:
        sys.setswitchinterval(interval)
        stop.set()
        beside.join()
    assert sum(one not in possible for one in found) == 0


def test_changes_in_two_threads_are_both_made(model):
    index = made(model)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: index.add([f"red {k}"], [f"n{k}"]), range(12)))
    assert sorted(index.ids) == sorted([*IDS, *(f"n{k}" for k in range(12))])


@pytest.mark.parametrize("copied", [copy.copy, lambda index: pickle.loads(pickle.dumps(index))])
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_copy_leaves_the_original_as_it_was(model, tmp_path, copied, name):
    made(model).save(tmp_path / "index")
    for index in (made(model), Index.open(tmp_path / "index", 1)):
        old, recipe = answers(index), index.recipe
        other = copied(index)
        assert answers(other) == old
        CHANGES[name](other)
        assert answers(index) == old and index.recipe == recipe and len(index) == 40
        CHANGES[name](copied(index))


def test_an_index_that_another_thread_changed_is_not_tuned(model):
    index = made(model)
    with pytest.raises(SentembError, match="another thread has changed the index; do it again"):
        tune(index, DEV, on_progress=lambda *_: len(index) > 40 or add(index))
    assert len(index) == 43 and index.recipe == made(model).recipe


def test_a_mask_of_another_index_is_refused(model):
    index = made(model)
    mask = index.mask_of(["p1"])
    index.remove(GONE)
    with pytest.raises(SentembError, match=r"a mask of shape \(40,\) is not of the 36 titles"):
        index.find(QUERIES, 3, mask)


def test_the_model_alone_can_be_changed_and_keeps_nothing_of_the_ranker(model, tmp_path):
    alone = made(model).model_alone()
    alone.save(tmp_path / "index")
    assert not {"memory", "bm25", "model/ranker"} & {
        str(path.relative_to(tmp_path / "index")) for path in (tmp_path / "index").rglob("*")
    }
    expected = Index.build(model, TITLES, IDS, threads=1)
    for index in (alone, Index.open(tmp_path / "index", 1)):
        add(index)
        sync(index)
        assert index.snapshot.as_one.catalogue.parts.keys() == {"cosine"}
        remove(index)
    add(expected), sync(expected), remove(expected)
    queries = CLICKS.queries[:9]
    assert alone.search(queries) == expected.search(queries) == index.search(queries)
