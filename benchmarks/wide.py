"""Our product of small matrices against OpenBLAS, at the shapes of narrow and wide models."""

import time

import numpy as np
from contenders import Contender
from rounds import Result, note

from sentemb.system.tables import markdown_table

CELLS = (8, 32, 96, 192, 288, 512, 1000)
TEXTS = 64  # texts that a block reads together


def shapes_of(cells):
    """{name: (m, k, n, whether the left side is a transposed view)} of products of an LSTM."""
    gates = 3 * cells
    return {
        "forward": (TEXTS, cells, gates, False),
        "backward": (TEXTS, gates, cells, False),
        "gradient": (cells, TEXTS, gates, True),
    }


def measure_products(cells, seconds):
    """{product: {contender: rounds of ns for one product}}, contenders alternating.

    Ours and SciPy's OpenBLAS are called from a compiled loop, as the kernels would call them,
    NumPy's OpenBLAS from Python. A turn takes about ``seconds`` seconds of the processor.
    """
    import numba

    from sentemb.kernels.matmul import add_matmul

    @numba.njit
    def ours(C, A, B, repeats):
        for _ in range(repeats):
            add_matmul(C, A, B)

    @numba.njit
    def compiled_blas(C, A, B, repeats):
        for _ in range(repeats):
            np.dot(A, B, C)

    def numpy_blas(C, A, B, repeats):
        for _ in range(repeats):
            np.matmul(A, B, out=C)

    contenders = {"ours": ours, "compiled": compiled_blas, "numpy": numpy_blas}
    found = {}
    for name, (m, k, n, turned) in shapes_of(cells).items():
        rng = np.random.default_rng(0)
        A = 0.01 * rng.standard_normal((k, m) if turned else (m, k), np.float32)
        B = 0.01 * rng.standard_normal((k, n), np.float32)
        arrays = np.zeros((m, n), np.float32), A.T if turned else A, B
        repeats = {
            who: max(1, int(seconds / _seconds(product, arrays, 3)))
            for who, product in contenders.items()
        }
        found[name] = {who: [] for who in contenders}
        for _ in range(7):
            for who, product in contenders.items():
                found[name][who].append(1e9 * _seconds(product, arrays, repeats[who]))
    return found


def _seconds(product, arrays, repeats):
    product(*arrays, 1)
    began = time.process_time()
    product(*arrays, repeats)
    return max(time.process_time() - began, 1e-7) / repeats


def product_section(bench, quick, targets):
    """Our products and OpenBLAS's, one thread each."""
    kinds = {"compiled": "OpenBLAS from a kernel", "numpy": "`numpy.matmul`"}
    rows = [["cells", "product", "shape", "sentemb", *kinds.values()]]
    slowest = {}
    with Contender("machine") as machine:
        for cells in CELLS[: 2 if quick else None]:
            note(f"products: {cells} cells")
            found = machine.ask("products", cells=cells, seconds=0.002 if quick else 0.02)
            for name, seconds in found.items():
                m, k, n, _ = shapes_of(cells)[name]
                result = Result(seconds)
                ratios = {kind: result.ratio("ours", base=kind) for kind in kinds}
                rate = 2 * m * k * n / result.time("ours").median
                others = [
                    f"{ratio.median:.2f} × ({ratio.least:.2f}–{ratio.most:.2f})"
                    for ratio in ratios.values()
                ]
                shape = f"{m} × {k} × {n}"
                rows.append([f"{cells:,}", name, shape, f"{rate:.0f} GFLOP/s", *others])
                slowest[cells, name] = ratios["numpy"].median
    (cells, name), most = max(slowest.items(), key=lambda item: item[1])
    what = f"slowest product, time / `numpy.matmul` ({cells:,} cells, {name})"
    targets.at_most(what, 1.3, most)
    return {"Products of the recurrence": markdown_table(rows, left=3)}
