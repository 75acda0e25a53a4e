"""Dense updates, against NumPy: the same numbers to the bit."""

import numpy as np
import pytest

from sentemb.kernels.adam import adam_dense
from sentemb.kernels.nesterov import nesterov_dense

SIZE = 5000


def made_up(count, dtype=np.float32):
    return np.random.default_rng(0).standard_normal((count, SIZE)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_updates_have_the_bits_of_numpy(dtype):
    """The small trajectories that are stored depend on them."""
    theta, m, v, g = made_up(4, dtype)
    v *= v
    rate, scale, root_scale = map(dtype, (0.01, 0.7, 3))
    new_m = m + dtype(1 - 0.9) * (scale * g - m)
    new_v = v + dtype(1 - 0.999) * (scale * g * (scale * g) - v)
    expected = theta - rate * new_m / (root_scale * np.sqrt(new_v) + dtype(1e-8))
    adam_dense(theta, m, v, g, 0.01, 0.9, 0.999, 0.7, 3.0)
    for found, wanted in ((m, new_m), (v, new_v), (theta, expected)):
        assert np.array_equal(found, wanted)

    theta, velocity, ahead, g = made_up(4, dtype)
    new_velocity = dtype(0.9) * velocity - dtype(0.1) * g
    expected = ahead - dtype(0.1) * g
    nesterov_dense(theta, velocity, ahead, g, 0.9, 0.1)
    assert np.array_equal(velocity, new_velocity) and np.array_equal(theta, expected)
