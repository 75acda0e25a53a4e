"""How long a training still takes, and how far its long parts are."""

import time

import pytest
from helpers import made_up_log
from test_loop import loop_of

from sentemb.system.parallel import Workers
from sentemb.training import progress
from sentemb.training.batches.corpus import Corpus
from sentemb.training.negatives import hard_negatives
from sentemb.training.progress import Amounts, Clock, Reached
from sentemb.training.stopping import StopRequest
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.two_tower_task import TwoTowerTask


@pytest.fixture
def now(monkeypatch):
    """The time, in a list of one number."""
    seconds = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: seconds[0])
    return seconds


def test_each_part_is_expected_to_take_as_long_as_it_took(now):
    clock = Clock()
    assert clock.seconds_for(Amounts(5, 40, 1)) == 0
    for seconds in (2, 4):
        now[0] += seconds
        clock.did("updates")
    # Three seconds an update; a preparation is as estimated, and nothing is known of a measure.
    assert clock.seconds_for(Amounts(5, 40, 1)) == 5 * 3 + 40 * 3
    now[0] += 20
    clock.did("preparation", 40)
    now[0] += 7
    clock.did("measures")
    assert clock.seconds_for(Amounts(5, 40, 1)) == 5 * 3 + 20 + 7
    assert clock.seconds_for(Amounts()) == 0


def test_the_time_left_has_the_preparations_and_measures_to_come(now):
    """Three epochs of three updates; the third has a preparation of five."""
    task, loop = loop_of()
    before, measure, reports = task.before_epoch, task.measure, []

    def before_epoch(epoch, stopped):
        before(epoch, stopped)
        now[0] += 30 if epoch == 2 else 0

    def measured():
        now[0] += 4
        return measure()

    def update(batch, number):
        task.workers.run([])
        now[0] += 1
        return 1.0

    task.before_epoch, task.measure, task.update = before_epoch, measured, update
    loop.run(reports.append, StopRequest())
    left = [one.seconds_left for one in reports]
    in_all = [one.seconds_in_all for one in reports]
    assert left[0] == 8 + 5 and in_all[0] == 9 + 5
    # The measure of the first epoch, and the preparation in updates.
    assert left[3] == 6 + 5 + 2 * 4 and in_all[3] == 9 + 5 + 3 * 4
    # Once it has been done nothing of it is left.
    assert left[8] == 2 + 4 and in_all[8] == 9 + 30 + 3 * 4
    assert left[-1] == 0 and in_all[-1] == 9 + 30 + 3 * 4


def test_look_ups_are_expected_before_the_epochs_that_have_one():
    log = made_up_log()
    for hard, due in ((2, [2, 5]), (0, [])):
        settings = Settings(cells=2, epochs=8, batch_size=16, hard_negatives=hard)
        with Workers(1) as workers:
            task = TwoTowerTask(Corpus(log, settings), settings, workers, print)
        found = [epoch for epoch in range(8) if task.preparation(epoch)]
        assert found == due
        if due:
            sizes = len(log.queries), len(log.titles)
            pairs = hard_negatives.in_pairs(*sizes)
            assert task.preparation(2) == pairs * task.steps / task.corpus.n_pairs


def test_the_estimate_of_a_look_up_grows_as_the_look_up_does():
    few = hard_negatives.in_pairs(1_000, 1_000)
    assert few < hard_negatives.in_pairs(1_000, 2_000) < hard_negatives.in_pairs(5_000, 9_000)
    million, ten = (hard_negatives.in_pairs(n, n) for n in (10**6, 10**7))
    # In proportion to the queries, and no further than that.
    assert 8 * million < ten < 12 * million


def test_long_work_is_noted_once_a_minute(now):
    notes = []
    reached = Reached("queries", 1_000_000, notes.append)
    for done in range(0, 1_000_001, 100_000):
        reached(done)
        now[0] += 25
    seconds = progress._SECONDS_BETWEEN_NOTES
    assert seconds == 60
    assert notes == [f"queries: {done:,} of 1,000,000" for done in (300_000, 600_000, 900_000)]
