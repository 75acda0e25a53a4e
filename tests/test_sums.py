"""Sums over a row: right, and with the same bits on every processor."""

import hashlib
from pathlib import Path

import naive
import numpy as np
import pytest
from helpers import run_python
from numba.core.errors import TypingError

from sentemb.kernels import sums
from sentemb.kernels.compiling.jit import kernel

# All ways through the code: no number, only single ones, halves of a vector, vectors, and a rest.
SIZES = (*range(20), 31, 32, 33, 63, 64, 65, 79, 95, 96, 127, 128, 135, 300)


@kernel
def all_sums(out, x, y):
    """out = x · y, the sum of x, and the sum of its squares in float64."""
    out[0], out[1], out[2] = sums.dot(x, y), sums.total(x), sums.squares(x)


def summed(x, y):
    all_sums(out := np.empty(3), x, y)
    return out


def digest():
    """A hash of the sums of many rows."""
    rng, found = np.random.default_rng(0), []
    for size in SIZES:
        for dtype in (np.float32, np.float64):
            x, y = rng.uniform(-1, 1, (2, size)).astype(dtype)
            found.append(summed(x, y))
    return hashlib.sha256(np.concatenate(found).tobytes()).hexdigest()[:16]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_those_of_the_slow_twin(dtype):
    rng = np.random.default_rng(1)
    for size in SIZES:
        x, y = rng.uniform(-1, 1, (2, size)).astype(dtype)
        accuracy = float(np.finfo(dtype).eps)
        expected = naive.sums(x, y)
        assert summed(x, y)[:2] == pytest.approx(expected[:2], abs=accuracy * (1 + size / 4))
        assert summed(x, y)[2] == pytest.approx(expected[2], rel=1e-15 * (1 + size))


@pytest.mark.parametrize("size", [5, 40, 100])
@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_what_is_not_finite_stays_visible(size, number):
    for place in range(size):
        x = np.ones(size, np.float32)
        x[place] = number
        assert not np.isfinite(summed(x, np.ones_like(x))).any()


def test_a_large_number_is_squared_in_float64():
    assert summed(np.array([1e30, 1e30], np.float32), np.zeros(2, np.float32))[2] > 1e60


def test_every_processor_gives_the_same_bits():
    tests = str(Path(__file__).parent)
    code = "import sys; sys.path.append(sys.argv[1]); from test_sums import digest; print(digest())"
    # It has short vector registers and cannot multiply and add in one instruction.
    done = run_python(code, tests, NUMBA_CPU_NAME="generic")
    assert done.stdout.strip() == digest() == "9cea0d815702fac8", done.stderr


def test_rows_in_pieces_and_mixed_rows_are_refused():
    x = np.ones(8, np.float32)
    for given in ((x[::2], x[::2]), (x, np.ones(8)), (x.astype(int), x)):
        with pytest.raises(TypingError):
            summed(*given)
