"""The same bits whatever the threads, the hash seed, BLAS and the form of the click log."""

import os
from itertools import combinations

import numpy as np
import pytest
from helpers import run_python
from reliability.determinism import CHILD, PLACES, different, matrix, sources, trained
from reliability.orders import drawn_orders, pairs_of_trainings


def test_threads_and_hash_seed_change_no_bit(tmp_path):
    """Nor does what a process has done before: the tests that ran in this one."""
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    path = tmp_path / "arrays.npz"
    run_python(CHILD, path, 2, PYTHONHASHSEED=seed, PYTHONPATH=PLACES, check=True)
    with np.load(path) as arrays:
        there = {name: array for name, array in arrays.items() if name != "blas"}
    assert different(trained(1), there) == []


def test_the_form_of_the_click_log_changes_no_bit():
    count = sources()
    assert (count.tried, count.failures) == (6, [])


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"a": np.zeros(3, np.float32)},
        {"a": np.zeros((1, 2), np.float32)},
        {"a": np.zeros(2, np.int32)},
        {"a": np.array([0, -0.0], np.float32)},
        {"a": np.array([0, 1e-45], np.float32)},
    ],
)
def test_any_difference_is_found(other):
    arrays = {"a": np.zeros(2, np.float32), "b": np.ones(1)}
    assert different(arrays, {key: array.copy() for key, array in arrays.items()}) == []
    assert different(arrays, other | {"b": np.ones(1)}) == ["a"]


def test_a_process_that_dies_is_a_failure(monkeypatch):
    monkeypatch.setattr("reliability.determinism.TARGETS", {"dead": {"PYTHONPATH": "/dev/null"}})
    count = matrix(threads=[1], hash_seeds=[0], blas=["default"], targets=["dead"])
    assert (count.tried, count.fine) == (1, 0)
    assert "dead" in count.failures[0] and "ModuleNotFoundError" in count.failures[0]


@pytest.mark.slow
def test_the_whole_matrix():
    count = matrix()
    assert count.failures == []
    assert count.tried >= 12


def test_every_training_comes_after_every_other():
    drawn = drawn_orders(n_orders=40, length=8, seed=0)
    pairs = {pair for order in drawn for pair in combinations(order, 2)}
    assert len(drawn) == 40 and pairs >= pairs_of_trainings()
