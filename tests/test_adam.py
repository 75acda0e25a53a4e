"""Adam: touched rows and dense arrays against a naive loop; untouched rows rest."""

import naive
import numpy as np
import pytest

from sentemb.system.parallel import Workers
from sentemb.training.contracts import Optimiser
from sentemb.training.optimisers.adam import Adam

ROWS, WIDTH, UPDATES, RATE = 30, 6, 200, 0.01


def each_row_one_word(rows):
    """Lists by which word k holds the feature of ``rows[k]`` once and nothing else."""
    count = len(rows)
    return np.arange(count + 1), np.arange(count, dtype=np.int32), np.ones(count, np.int32)


def made_up_gradients(seed=0):
    """For every update the rows that are touched, their gradient, and that of a dense block."""
    rng = np.random.default_rng(seed)
    for _ in range(UPDATES):
        rows = np.unique(rng.integers(0, ROWS - 5, 6)).astype(np.int32)  # the last five never
        yield rows, rng.standard_normal((rows.size, WIDTH)), rng.standard_normal((3, WIDTH))


def test_adam_is_an_optimiser():
    assert isinstance(Adam({"table": np.zeros((2, 3))}, 1.0), Optimiser)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("max_norm", [1e9, 2.0])
def test_updates_are_those_of_the_naive_twin(dtype, tolerance, max_norm):
    rng = np.random.default_rng(1)
    start = {"table": rng.standard_normal((ROWS, WIDTH)), "bias": rng.standard_normal((3, WIDTH))}
    tower = Adam({name: array.astype(dtype) for name, array in start.items()}, max_norm)
    theta = {name: array.copy() for name, array in start.items()}
    m, v = ({name: np.zeros_like(array) for name, array in theta.items()} for _ in range(2))
    with Workers(2) as workers:
        for update, (rows, by_row, dense) in enumerate(made_up_gradients()):
            gradient = {"words": by_row.astype(dtype), "bias": dense.astype(dtype)}
            point = tower.point(rows, update)
            assert point.weights is tower.weights
            lists = each_row_one_word(rows)
            (factor,) = workers.together(tower.step_tasks(point, gradient, lists, update, RATE))
            expected = np.sqrt(np.sum(by_row**2) + np.sum(dense**2))
            scale = min(1, max_norm / expected)
            assert factor == pytest.approx(scale, rel=1e-5)
            for name, place, g in (("table", rows, by_row), ("bias", slice(None), dense)):
                state = (array[name][place] for array in (theta, m, v))
                new = naive.adam_step(*state, scale * g, update, RATE)
                theta[name][place], m[name][place], v[name][place] = new
    for name, array in theta.items():
        np.testing.assert_allclose(tower.weights[name], array, rtol=tolerance, atol=tolerance)
    assert np.array_equal(tower.weights["table"][-5:], start["table"][-5:].astype(dtype))


def test_many_rows_are_updated_as_few_are():
    """A thread has thousands of rows in training; here each of 30 is there 200 times."""
    rng, n_copies = np.random.default_rng(2), 200
    start, gradients = rng.standard_normal((ROWS, WIDTH)), rng.standard_normal((3, ROWS, WIDTH))

    def after_updates(copies):
        tower = Adam({"table": np.tile(start, (copies, 1))}, 1e9)
        rows = np.arange(copies * ROWS, dtype=np.int32)
        with Workers(2) as workers:
            for update, gradient in enumerate(gradients):
                point = tower.point(rows, update)
                words = {"words": np.tile(gradient, (copies, 1))}
                lists = each_row_one_word(rows)
                workers.together(tower.step_tasks(point, words, lists, update, RATE))
        return tower.weights["table"]

    few, many = after_updates(1), after_updates(n_copies)
    assert np.array_equal(many, np.tile(few, (n_copies, 1))) and (few != start).all()


def test_rows_are_what_sparse_adam_of_pytorch_makes_of_them():
    torch = pytest.importorskip("torch", reason="PyTorch is the reference")
    table = np.random.default_rng(2).standard_normal((ROWS, WIDTH))
    theirs = torch.nn.Parameter(torch.tensor(table))
    optimiser = torch.optim.SparseAdam([theirs], lr=RATE)
    tower = Adam({"table": table.copy()}, 1e9)
    with Workers(1) as workers:
        for update, (rows, by_row, _) in enumerate(made_up_gradients(3)):
            point, lists = tower.point(rows, update), each_row_one_word(rows)
            workers.together(tower.step_tasks(point, {"words": by_row}, lists, update, RATE))
            theirs.grad = torch.sparse_coo_tensor(
                torch.tensor(rows[None].astype(np.int64)),
                torch.tensor(by_row),
                table.shape,
                check_invariants=True,
            )
            optimiser.step()
    # PyTorch adds the small constant before the correction of the second moment.
    np.testing.assert_allclose(tower.weights["table"], theirs.detach().numpy(), atol=1e-6)
