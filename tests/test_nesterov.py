"""Nesterov momentum: lazy rows against a dense loop that touches everything in every update."""

import math

import naive
import numpy as np
import pytest

from sentemb.kernels.nesterov import MomentumRows, coefficients, row_coefficients
from sentemb.models.contracts import InputRows
from sentemb.system.parallel import Workers
from sentemb.training.contracts import Optimiser
from sentemb.training.optimisers.nesterov import MomentumSchedule, Nesterov

UPDATES = 500
ROWS, WIDTH = 120, 6


def momenta_of(schedule, updates):
    return [schedule.at(update) for update in range(updates)]


def test_schedule_of_the_paper():
    momenta = momenta_of(MomentumSchedule.paper(1000), 1000)
    assert momenta == [0.9] * 20 + [0.995] * 960 + [0.9] * 20


@pytest.mark.parametrize("updates", [1, 2, 3, 30, 99, 101])
def test_schedule_of_short_trainings_has_two_equal_edges(updates):
    momenta = momenta_of(MomentumSchedule.paper(updates, middle=0.95), updates)
    edge = math.ceil(0.02 * updates)
    assert momenta == [0.9 if min(k, updates - 1 - k) < edge else 0.95 for k in range(updates)]


def test_a_schedule_with_momentum_0_is_plain_descent():
    assert momenta_of(MomentumSchedule.paper(200, middle=0.0), 200) == [0.0] * 200


@pytest.mark.parametrize("middle", [0.995, 0.5, 0.0])
def test_coefficients_are_the_products_of_the_momenta(middle):
    schedule = MomentumSchedule.paper(4000, middle=middle)
    momenta = momenta_of(schedule, 4000)
    for start, end in [(0, 0), (0, 1), (7, 7), (79, 82), (0, 4000), (3919, 3921), (60, 3950)]:
        A, B = coefficients(start, end, schedule.bounds, schedule.momenta)
        expected_A, expected_B = naive.nesterov_coefficients(momenta[start:end])
        np.testing.assert_allclose((A, B), (expected_A, expected_B), rtol=1e-12, atol=1e-300)


def test_rows_that_rested_for_any_time_get_the_coefficients_of_their_rest():
    schedule, update = MomentumSchedule.paper(UPDATES), 450
    rng = np.random.default_rng(5)
    synced, lead = np.arange(update + 1), rng.random(update + 1)
    rows = rng.permutation(update + 1).astype(np.int32)
    lead_now, decay = np.full((2, rows.size), np.nan)
    state = MomentumRows(*np.zeros((2, update + 1, 1)), synced, lead)
    row_coefficients(lead_now, decay, state, rows, update, schedule.bounds, schedule.momenta)
    for k, row in enumerate(rows):
        A, B = coefficients(synced[row], update + 1, schedule.bounds, schedule.momenta)
        assert (decay[k], lead_now[k]) == (A, B - lead[row])


class Twin:
    """A tower of a sparse table and a dense block whose gradients depend on each other."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.start = {
            "table": rng.standard_normal((ROWS, WIDTH)),
            "recurrent": rng.standard_normal((WIDTH, WIDTH)),
        }
        self.target = rng.standard_normal(WIDTH)
        # Zipf-like: some rows in nearly every update, many a few times in all.
        shares = 1 / np.arange(1, ROWS + 1)
        self.touched = [
            np.unique(rng.choice(ROWS, 5, p=shares / shares.sum())).astype(np.int32)
            for _ in range(UPDATES)
        ]

    def gradient(self, rows, table_rows, recurrent):
        """Of |sum of rows . recurrent - target|^2 / 2, by the rows and by the dense block."""
        pooled = table_rows.sum(axis=0)
        error = pooled @ recurrent - self.target
        by_row = np.tile(error @ recurrent.T, (len(rows), 1))
        return by_row, np.outer(pooled, error)


MAX_NORM = 4.0


def run_dense(twin, momenta, rate):
    theta = {name: array.copy() for name, array in twin.start.items()}
    v = {name: np.zeros_like(array) for name, array in theta.items()}
    norms = []
    for rows, mu in zip(twin.touched, momenta, strict=False):

        def gradient_at(ahead, rows=rows):
            by_row, by_recurrent = twin.gradient(rows, ahead["table"][rows], ahead["recurrent"])
            table = np.zeros_like(ahead["table"])
            table[rows] = by_row
            return {"table": table, "recurrent": by_recurrent}

        theta, v, norm = naive.nesterov_step(theta, v, gradient_at, mu, rate, MAX_NORM)
        norms.append(norm)
    return theta, v, norms


def each_row_one_word(rows):
    """Lists by which every row of the table is the only feature of a word of its own."""
    each = np.arange(rows.size, dtype=np.int32)
    return np.arange(rows.size + 1), each, np.ones(rows.size, np.int32)


def rows_at(point, rows, workers):
    """The rows of a mini-batch at the point of the gradient, found by projecting each alone."""
    P = np.empty((rows.size, WIDTH), point.input_rows.dtype)
    workers.run(point.input_rows.project_tasks(P, np.zeros_like(P[0]), *each_row_one_word(rows)))
    return P


def test_nesterov_is_an_optimiser_whose_weights_are_weights_alone():
    weights = {"table": np.zeros((ROWS, WIDTH)), "recurrent": np.zeros((WIDTH, WIDTH))}
    tower = Nesterov(weights, MomentumSchedule.paper(UPDATES), MAX_NORM)
    assert isinstance(tower, Optimiser) and tower.weights.keys() == weights.keys()
    point = tower.point(np.arange(3, dtype=np.int32), 0)
    assert isinstance(point.input_rows, InputRows) and point.weights.keys() == {"recurrent"}


def run_lazy(twin, schedule, rate, workers, dtype=np.float64, flush_at=(), flush_at_end=True):
    weights = {name: array.astype(dtype) for name, array in twin.start.items()}
    tower, factors = Nesterov(weights, schedule, MAX_NORM), []
    for update, rows in enumerate(twin.touched):
        if update in flush_at:
            tower.flush(update, workers)
        point = tower.point(rows, update)
        by_row, by_recurrent = twin.gradient(
            rows, rows_at(point, rows, workers), point.weights["recurrent"]
        )
        gradient = {"words": by_row, "recurrent": by_recurrent}
        factors += workers.together(
            tower.step_tasks(point, gradient, each_row_one_word(rows), update, rate)
        )
    if flush_at_end:
        tower.flush(UPDATES, workers)
    return tower, factors


@pytest.mark.parametrize("seed", [0, 1])
def test_lazy_rows_equal_the_dense_loop(seed):
    twin, rate = Twin(seed), 0.002
    schedule = MomentumSchedule.paper(UPDATES)
    theta, v, expected_norms = run_dense(twin, momenta_of(schedule, UPDATES), rate)
    clipped = np.array(expected_norms) > MAX_NORM
    assert clipped.any() and not clipped.all()
    with Workers(2) as workers:
        tower, factors = run_lazy(twin, schedule, rate, workers)
    for name in theta:
        np.testing.assert_allclose(
            tower.weights[name], theta[name], rtol=0, atol=1e-12 * abs(theta[name]).max()
        )
        np.testing.assert_allclose(
            tower.velocity[name], v[name], rtol=0, atol=1e-12 * abs(v[name]).max()
        )
    expected = MAX_NORM / np.maximum(expected_norms, MAX_NORM)
    np.testing.assert_allclose(factors, expected, rtol=1e-10)
    assert np.all(tower.synced == UPDATES)


def test_many_rows_are_moved_as_few_are():
    """A thread has thousands of rows in training; here each of the table is there 200 times."""
    rng, n_copies, updates = np.random.default_rng(4), 200, 3
    start = rng.standard_normal((ROWS, WIDTH))
    gradients = rng.standard_normal((updates, ROWS, WIDTH))

    def after_updates(copies):
        tower = Nesterov(
            {"table": np.tile(start, (copies, 1))}, MomentumSchedule.paper(UPDATES), 1e9
        )
        rows = np.arange(copies * ROWS, dtype=np.int32)
        with Workers(2) as workers:
            for update, gradient in enumerate(gradients):
                point = tower.point(rows, update)
                words = {"words": np.tile(gradient, (copies, 1))}
                lists = each_row_one_word(rows)
                workers.together(tower.step_tasks(point, words, lists, update, 0.01))
            look_ahead = rows_at(tower.point(rows, updates), rows, workers)
            tower.flush(updates + 2, workers)
        return look_ahead, tower.weights["table"], tower.velocity["table"]

    for few, many in zip(after_updates(1), after_updates(n_copies), strict=True):
        assert np.array_equal(many, np.tile(few, (n_copies, 1))) and (few != 0).all()


def test_flushing_on_the_way_changes_nothing_but_rounding():
    twin, schedule = Twin(2), MomentumSchedule.paper(UPDATES)
    with Workers(1) as workers:
        plain, _ = run_lazy(twin, schedule, 0.002, workers)
        flushed, _ = run_lazy(twin, schedule, 0.002, workers, flush_at=(5, 6, 250, 491))
    for name in plain.weights:
        np.testing.assert_allclose(flushed.weights[name], plain.weights[name], atol=1e-11)
        np.testing.assert_allclose(flushed.velocity[name], plain.velocity[name], atol=1e-11)


def test_float32_stays_near_the_dense_float64_loop():
    twin, schedule = Twin(3), MomentumSchedule.paper(UPDATES)
    theta, _, _ = run_dense(twin, momenta_of(schedule, UPDATES), 0.002)
    with Workers(1) as workers:
        tower, _ = run_lazy(twin, schedule, 0.002, workers, np.float32)
    for name in theta:
        assert tower.weights[name].dtype == np.float32
        error = abs(tower.weights[name] - theta[name]).max() / abs(theta[name]).max()
        assert error < 2e-4


def test_on_the_way_look_ahead_and_flush_give_what_the_dense_loop_has():
    """A flushed model is measured and saved in the middle of a training."""
    twin, schedule = Twin(4), MomentumSchedule.paper(UPDATES)
    momenta, rate, updates = momenta_of(schedule, UPDATES), 0.002, 40
    twin.touched = twin.touched[:updates]
    theta, v, _ = run_dense(twin, momenta, rate)
    every_row = np.arange(ROWS, dtype=np.int32)
    with Workers(1) as workers:
        tower, _ = run_lazy(twin, schedule, rate, workers, flush_at_end=False)
        assert np.any(tower.synced < updates) and np.any(tower.synced == updates)
        point = tower.point(every_row, updates)
        for name in theta:
            expected = theta[name] + momenta[updates] * v[name]
            if name == "table":
                got = rows_at(point, every_row, workers)
            else:
                got = point.weights[name]
            np.testing.assert_allclose(got, expected, atol=1e-12)
        for looked_ahead in (True, False):
            if not looked_ahead:
                tower, _ = run_lazy(twin, schedule, rate, workers, flush_at_end=False)
            tower.flush(updates, workers)
            for name in theta:
                np.testing.assert_allclose(tower.weights[name], theta[name], atol=1e-12)
                np.testing.assert_allclose(tower.velocity[name], v[name], atol=1e-12)
