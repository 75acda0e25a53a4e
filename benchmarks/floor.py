"""The floor of a training step: the least time its arithmetic and its memory traffic need.

The machine's own figures, one thread: a large matrix product, a triad over arrays that no cache
holds, and the gate functions in cache. The step's: counted from the mini-batches.
"""

import time

import numpy as np

MATRIX = 1536
TRIAD = 16_000_000  # elements; three arrays of 64 MB


def measure_machine():
    """{"gflops", "gigabytes", "gate_ns"}: products, triad bandwidth, ns per gate value."""
    return {"gflops": _peak(), "gigabytes": _bandwidth(), "gate_ns": _gates()}


def _best(function, repeats):
    """Shortest of some runs, in seconds: other load on the machine only adds time."""
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        function()
        times.append(time.perf_counter() - began)
    return min(times)


def _peak():
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, MATRIX, MATRIX), np.float32)
    C = np.empty_like(A)
    A @ B
    return 2 * MATRIX**3 / _best(lambda: np.matmul(A, B, out=C), 8) / 1e9


def _bandwidth():
    import numba

    @numba.njit(fastmath=True)
    def triad(a, b, c, scale):
        for k in range(a.size):
            a[k] = b[k] + scale * c[k]

    a, b, c = np.ones((3, TRIAD), np.float32)
    triad(a, b, c, np.float32(0.5))
    return 3 * 4 * TRIAD / _best(lambda: triad(a, b, c, np.float32(0.5)), 8) / 1e9


def _gates():
    from sentemb.kernels.activations import sigmoid_rows, tanh_rows

    Z = np.random.default_rng(0).standard_normal((32, 288), np.float32)

    def run():
        for _ in range(200):
            sigmoid_rows(Z, 0, 32, 0, 192)
            tanh_rows(Z, 0, 32, 192, 288)

    run()
    return _best(run, 8) / (200 * Z.size) * 1e9


def operations_and_bytes(counts):
    """Floating-point operations, bytes through memory and gate values of one step.

    Parameters
    ----------
    counts : dict
        Means per step over both sides: ``texts``, ``tokens``, ``words`` (distinct), ``rows``
        (distinct trigrams), and ``cells``, ``gates``, ``width`` of the encoder.

    Returns
    -------
    dict
        ``flop``: the recurrent product of every token but a text's first, forward, backward and
        for the gradient of the weights.
        ``bytes``: every touched row is read for the projection, and again with its velocity for
        the update, which writes both: 5 times the rows (their gradient can be recomputed from
        that of the words, which a cache holds). Gates, cells, their tanh, outputs and errors of
        every token, and every word's projection and its gradient, are written once and read once.
        ``gate_values``: sigmoid and tanh results of the forward pass.
    """
    directions = counts["width"] // (counts["gates"] * counts["cells"])
    later = counts["tokens"] - counts["texts"]
    per_token = 2 * counts["width"] + 3 * directions * counts["cells"]
    return {
        "flop": 3 * 2 * later * counts["cells"] * counts["width"],
        "bytes": 4
        * (
            5 * counts["rows"] * counts["width"]
            + 2 * counts["tokens"] * per_token
            + 4 * counts["words"] * counts["width"]
        ),
        "gate_values": counts["tokens"] * (counts["gates"] + 1) * directions * counts["cells"],
    }


def floor_seconds(needs, machine):
    """Seconds by part: ``products``, ``memory``, ``gates``; their sum is the floor."""
    return {
        "products": needs["flop"] / machine["gflops"] / 1e9,
        "memory": needs["bytes"] / machine["gigabytes"] / 1e9,
        "gates": needs["gate_values"] * machine["gate_ns"] / 1e9,
    }
