"""Changes of an index, trainings and pages, again and again: a sample of the long checks."""

import gc
import sys

import pytest
from browsers import NODE
from reliability import exported, faces, sequences
from reliability.count import held


def test_a_sequence_of_changes():
    held(sequences.sequences(1))
    held(sequences.changes(150))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_trainings_in_one_process_leave_nothing_behind():
    gc.freeze()  # the collector need not look through what other tests have loaded
    try:
        held(faces.trained_soak(6))
    finally:
        gc.unfreeze()


@pytest.mark.skipif(NODE is None, reason="no node to run the engine of a page")
def test_a_few_pages_in_int8_are_near_their_index():
    held(exported.exported(4))
