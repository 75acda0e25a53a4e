"""Prefetching: nothing outside an array is asked for, and it goes to the second cache."""

import numba
import numpy as np
import pytest

from sentemb.kernels import adam, input_layer, nesterov, prefetch
from sentemb.kernels.input_layer import RowGradient
from sentemb.kernels.nesterov import MomentumRows

ROWS, WIDTH = 30, 5


@pytest.mark.parametrize(("width", "dtype"), [(288, np.float32), (100, np.float32), (3, float)])
def test_a_row_is_asked_for_line_by_line(monkeypatch, width, dtype):
    asked = []
    monkeypatch.setattr(prefetch, "_prefetch_line", lambda rows, k, byte: asked.append((k, byte)))
    prefetch.prefetch_row.py_func(np.zeros((3, width), dtype), 2)
    row_bytes = width * np.dtype(dtype).itemsize
    assert asked == [(2, 64 * line) for line in range(-(-row_bytes // 64))]


def test_every_line_of_a_run_is_asked_for(monkeypatch):
    asked = []
    monkeypatch.setattr(prefetch, "_prefetch_line", lambda items, k, byte: asked.append((k, byte)))
    prefetch.prefetch_run.py_func(np.zeros(99, np.int32), 3, 36)
    assert asked == [(3, 0), (19, 0), (35, 0), (35, 0)]
    asked.clear()
    prefetch.prefetch_run.py_func(np.zeros(99, np.int32), 12, 20)
    assert asked == [(12, 0), (19, 0)], "8 items that lie in two lines"
    asked.clear()
    prefetch.prefetch_run.py_func(np.zeros(99, np.int64), 5, 5)
    assert not asked


def test_rows_are_read_into_the_second_cache():
    compiled = numba.njit(prefetch.prefetch_row.py_func)
    compiled(np.zeros((3, 40), np.float32), 2)
    (code,) = compiled.inspect_llvm().values()
    calls = [line for line in code.splitlines() if "call void @llvm.prefetch" in line]
    assert calls and all(line.endswith("i32 0, i32 2, i32 1)") for line in calls)


@pytest.mark.parametrize("count", [1, prefetch.AHEAD, ROWS])
def test_loops_ask_for_their_own_rows_before_they_need_them(monkeypatch, count):
    """Every array is filled up to ``count``, so a row behind its end would be an IndexError."""
    asked = []
    for module in (adam, nesterov, input_layer):
        monkeypatch.setattr(
            module, "prefetch_row", lambda rows, k: asked.append((id(rows), int(k)))
        )
    for module in (adam, nesterov):
        plain = input_layer.gather_weighted_row.py_func
        monkeypatch.setattr(module, "gather_weighted_row", plain)
    rng = np.random.default_rng(0)
    table, first, second = rng.random((3, ROWS, WIDTH))
    rows = rng.permutation(ROWS)[:count].astype(np.int32)
    later = range(prefetch.AHEAD, count)
    one_each, values = np.arange(count + 1), np.ones(count, np.float32)
    own = RowGradient(rng.random((count, WIDTH)), one_each, one_each[:-1], values)

    def needed(*arrays):
        """Row k of what belongs to words, ``rows[k]`` of what belongs to features."""
        assert asked == [
            (id(array), k if array is own.words else rows[k]) for k in later for array in arrays
        ]
        asked.clear()

    lead = np.ones(count)
    input_layer.project_words.py_func(
        own.words, table, first, lead, rows, np.zeros(WIDTH), one_each, one_each, values, 0, count
    )
    needed(table, first)
    input_layer.project_words.py_func(
        own.words, table, first, 0 * lead, rows, np.zeros(WIDTH), one_each, one_each, values, 0,
        count,
    )  # fmt: skip
    needed(table)
    sums = np.zeros((count, WIDTH))
    input_layer.gather_rows.py_func(sums, 0, table, one_each, rows, 0, count)
    needed(table)
    state = MomentumRows(table, first, np.zeros(ROWS, np.int64), np.zeros(ROWS))
    nesterov.update_rows.py_func(state, own, rows, lead, lead, 0, 0.9, 0.1, 0, count)
    needed(table, first, own.words)
    adam.adam_rows.py_func(table, first, second, own, rows, 0.1, 0.9, 0.999, 1.0, 1.0, 0, count)
    needed(table, first, second, own.words)
