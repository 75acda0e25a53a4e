"""Arrays that begin at a cache line, and where training uses them."""

import numpy as np
import pytest

from sentemb.models.towers import make_encoder
from sentemb.models.words.workspace import Workspace
from sentemb.system.aligned import LINE_BYTES, aligned_empty, aligned_zeros
from sentemb.training.optimisers.adam import Adam
from sentemb.training.optimisers.nesterov import MomentumSchedule, Nesterov
from sentemb.training.optimisers.pair_optimisers import PairAdam


def is_aligned(array):
    return array.ctypes.data % LINE_BYTES == 0 and array.flags.c_contiguous


@pytest.mark.parametrize("shape", [(), (0, 5), (3,), (7, 288), (2, 3, 5), (1_000_000,)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8])
def test_arrays_are_what_was_asked_for_at_a_cache_line(shape, dtype):
    kept = []  # so that every array gets memory of its own
    for make in (aligned_empty, aligned_zeros) * 3:
        array = make(shape, dtype)
        assert array.shape == shape and array.dtype == dtype
        assert is_aligned(array) or not array.size
        assert make is aligned_empty or not array.any()
        array[...] = 1
        kept.append(array)


def test_whatever_training_reads_by_rows_begins_at_a_cache_line():
    encoder = make_encoder("lstm", cells=3)
    for number in range(3):
        weights = encoder.initialise(11 + number, np.random.default_rng(0))
        schedule = MomentumSchedule.paper(10)
        states = [
            Adam(weights, 1.0).state(),
            Nesterov(weights, schedule, 1.0).state(),
            PairAdam(weights, tuned=True).state(),
        ]
        arrays = [item for state in states for item in state.items()]
        kept = [a for name, a in arrays if name.endswith(".table") and a.ndim == 2]
        assert len(kept) == 8 and all(map(is_aligned, kept))
    workspace = Workspace()
    assert all(is_aligned(workspace.empty(str(n), (n, 7), np.float32)) for n in range(1, 9))
