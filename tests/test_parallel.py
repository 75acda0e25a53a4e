"""How work is cut into parts, the threads that do them, and work done in the background."""

import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentemb import train
from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.words.workspace import spans_of
from sentemb.system.parallel import (
    PARTS,
    PAYS,
    Workers,
    one_after_the_other,
    pieces,
    spans,
    spread,
)

THREADS = (1, 2, 3, 7, 16, 33)


@given(st.integers(0, 10**6), st.floats(0, 2 * PAYS), st.integers(0, 10**6))
def test_parts_are_the_whole_and_each_pays(size, cost, sums):
    found = spans(size, cost, sums)
    assert [part for part, *_ in found] == list(range(len(found))) and len(found) <= PARTS
    edges = [0, *(end for *_, end in found)]
    assert edges[-1] == size
    assert [first for _, first, _ in found] == edges[:-1]
    assert len(found) <= 1 or len(found) * PAYS <= size * cost


@given(st.lists(st.integers(0, 10**7), max_size=200))
def test_parts_of_unequal_items_cost_about_as_much(costs):
    found = spans_of(np.concatenate([[0], np.cumsum(costs, dtype=np.int64)]), 1)
    assert [k for _, first, end in found for k in range(first, end)] == list(range(len(costs)))
    for _, first, end in found if len(found) > 1 else []:
        # PAYS and less of a part's share may be left over when the number of parts is chosen.
        share = sum(costs) / min(PARTS, len(costs), sum(costs) // PAYS)
        assert sum(costs[first:end]) <= share + max(costs) + 1


def test_few_parts_have_sums_of_their_own():
    assert len(spans(1000, PAYS, sums=0)) == PARTS
    assert len(spans(1000, PAYS, sums=1000 * PAYS)) == 8


def test_one_thread_joins_what_adjoins():
    called = []

    def note(name, first, end):
        called.append((name, first, end))

    parts = [(0, 0, 2), (1, 2, 5), (2, 5, 6)]
    tasks = pieces(parts, note, "a") + pieces(parts, note, "b")
    last = (one_after_the_other, (note, "c", 0, 1), (note, "c", 1, 2))
    with Workers(1) as workers:
        workers.run([*tasks, last])
    assert called == [("a", 0, 6), ("b", 0, 6), ("c", 0, 1), ("c", 1, 2)]
    called.clear()
    with Workers(2) as workers:
        workers.run(tasks)
    assert sorted(called) == [(name, *part[1:]) for name in "ab" for part in parts]
    called.clear()
    with Workers(1) as workers:  # Ctrl-C is heard between the parts of much work
        workers.run(spread(PARTS, note, "a", cost=PAYS))
    assert len(called) == PARTS


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_work_beside_the_next_runs(threads):
    done = []
    with Workers(threads) as workers:
        for number in range(20):
            workers.meanwhile(done.append, number)
            workers.run([(len, "a")] * 3)
            workers.catch_up()
            assert done == list(range(number + 1))
        workers.catch_up()


def test_runs_do_not_wait_for_work_beside_them():
    released = threading.Event()
    with Workers(2) as workers:
        workers.meanwhile(released.wait, 30)
        seen = []
        workers.run([(seen.append, k) for k in range(9)])
        assert sorted(seen) == list(range(9)) and not released.is_set()
        released.set()
        workers.catch_up()


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_beside_the_next_runs_is_raised_once(threads):
    def fail():
        raise ZeroDivisionError

    with Workers(threads) as workers:
        workers.meanwhile(fail)
        workers.run([(len, "a")] * 3)
        with pytest.raises(ZeroDivisionError):
            workers.catch_up()
        workers.catch_up()


SETTINGS = {
    "separate towers": {"hard_negatives": 1, "shared_towers": False, "group_size": 1, "epochs": 3},
    "bilstm beside a bag": {"model": "bilstm", "bag_dim": 8, "shared_towers": True},
    "the paper": {"preset": "paper"},
    "hinge": {"objective": "hinge", "model": "irnn"},
    "parts": {"parts": 2, "batch_size": 16, "shared_towers": False},
}


@pytest.mark.usefixtures("fine_parts")
@pytest.mark.parametrize("name", SETTINGS)
def test_threads_change_no_bit_of_a_training(name):
    rng = np.random.default_rng(11)
    builder = ClickLogBuilder()
    words = ["".join(rng.choice(list("abcdefgh"), 5)) for _ in range(80)]
    for _ in range(150):
        query, title = (" ".join(rng.choice(words, rng.integers(1, most))) for most in (4, 9))
        builder.add(query, title, clicks=1)
    settings = {"cells": 12, "epochs": 2, "batch_size": 64} | SETTINGS[name]
    models = [train(builder.build(), threads=threads, **settings) for threads in THREADS]
    assert len({model.saved().model.fingerprint() for model in models}) == 1
