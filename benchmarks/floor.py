"""The floor of a training step: the least time its arithmetic and its memory traffic need.

The machine's own figures, one thread: the fastest matrix product, a triad over arrays that no cache
holds, the gate functions in cache, rows of the step's own tables, read and updated with the
prefetch that is fastest on this machine, and the step's own lists of rows, read again in cache. The
step's: counted from the mini-batches.
"""

import time
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np

MATRIX = 1536
# A product of the recurrence of 96 cells, in cache: texts, cells, gates.
STEP_PRODUCT, REPEATS = (64, 96, 288), 1000
TRIAD = 16_000_000  # elements; three arrays of 64 MB
# Prefetch: this many rows ahead, into the first cache (3) or the second (2) in LLVM's terms.
AHEAD, HINTS = (4, 8, 16), (3, 2)
PREFETCHES = [(HINTS[0], 0), *product(HINTS, AHEAD)]  # the first one is none
LINE = 64  # bytes
# Planning a mini-batch: an estimate, with the lists of words and features made in one pass.
PLANNING = 1e-3


def measure_machine():
    """{"gflops", "gigabytes", "gate_ns"}: products, triad bandwidth, ns per gate value."""
    return {"gflops": _peak(), "gigabytes": _bandwidth(), "gate_ns": _gates()}


def _best(function, repeats):
    """Shortest of some runs, in seconds of the processor: other load only adds time."""
    times = []
    for _ in range(repeats):
        began = time.process_time()
        function()
        times.append(time.process_time() - began)
    return min(times)


def _peak():
    """GFLOP/s of the fastest product: a large one by OpenBLAS, or one of the step's by ours."""
    import numba

    from sentemb.kernels.matmul import add_matmul

    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((2, MATRIX, MATRIX), np.float32)
    C = np.empty_like(A)
    A @ B
    large = 2 * MATRIX**3 / _best(lambda: np.matmul(A, B, out=C), 8)

    @numba.njit
    def repeated(C, A, B):
        for _ in range(REPEATS):
            add_matmul(C, A, B)

    texts, cells, gates = STEP_PRODUCT
    A, B = (
        0.01 * rng.standard_normal(size, np.float32) for size in ((texts, cells), (cells, gates))
    )
    C = np.zeros((texts, gates), np.float32)
    repeated(C, A, B)
    small = 2 * REPEATS * texts * cells * gates / _best(lambda: repeated(C, A, B), 8)
    return max(large, small) / 1e9


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


# -- scattered rows -------------------------------------------------------------------------------


def measure_scattered_rows(folder, streamed):
    """Bandwidth of rows that a training touches, as it touches them: read, later updated.

    Parameters
    ----------
    folder : path
        With ``rows.npz`` of `our_side.Ours.counts`.
    streamed : float
        Bytes of other memory traffic per step. Half of them are read before every reading and
        before every update, untimed: they drive rows out of the caches.

    Returns
    -------
    dict
        ``read``, ``update``: GB/s of the fastest prefetch over all steps in turn;
        ``read_by``, ``update_by``: which one that is; ``read_plain``, ``update_plain``: without.
    """
    arrays, shape = _arrays(folder, "rows.npz")
    tables = {side: (_aligned(shape), _aligned(shape)) for side in ("query", "document")}
    steps = [
        [(*tables[side], arrays[f"{side}.{step}"]) for side in tables]
        for step in range(len(arrays) // 2)
    ]
    row_bytes = 4 * int(shape[1]) * sum(rows.size for rows in arrays.values())
    between = np.ones(int(streamed / 2 / 4), np.float32)
    found = {}
    for hint, ahead in PREFETCHES:
        seconds = np.min([_touch(steps, between, hint, ahead) for _ in range(4)], axis=0)
        found[hint, ahead] = np.array([2, 4]) * row_bytes / seconds / 1e9
    answer = {}
    for part, name in enumerate(("read", "update")):
        best = max(found, key=lambda key: found[key][part])
        answer[name] = float(found[best][part])
        answer[f"{name}_by"] = _in_words(*best)
        answer[f"{name}_plain"] = float(found[PREFETCHES[0]][part])
    return answer


def measure_lists(folder):
    """GB/s at which the rows that lists name are read again, with the fastest prefetch.

    The lists are those of a training: the features of every word, and the words of every feature,
    in ``lists.npz`` of `our_side.Ours.counts` in ``folder``. Their rows fit into the caches as far
    as those of one side of a mini-batch do.
    """
    arrays, shape = _arrays(folder, "lists.npz")
    source = _aligned(shape)
    size = 4 * int(shape[1]) * sum(rows.size for rows in arrays.values())

    def seconds(hint, ahead):
        read = _reader(hint)

        def walk():
            for rows in arrays.values():
                read(source, source.ctypes.data, rows, ahead)

        walk()
        return _best(walk, 4)

    return size / min(seconds(*way) for way in PREFETCHES) / 1e9


def _arrays(folder, name):
    """(rows to touch by step, shape of the table that they are in)."""
    with np.load(Path(folder) / name) as file:
        arrays = dict(file)
    return arrays, arrays.pop("shape")


def _touch(steps, between, hint, ahead):
    """Seconds of the processor spent on reading and on updating the rows of all steps."""
    read, update = _reader(hint), _updater(hint)
    gradient = np.full(steps[0][0][0].shape[1], 1e-9, np.float32)
    reading = updating = 0.0
    for sides in steps:
        between.sum()
        began = time.process_time()
        for table, velocity, rows in sides:
            read(table, table.ctypes.data, rows, ahead)
            read(velocity, velocity.ctypes.data, rows, ahead)
        reading += time.process_time() - began
        between.sum()
        began = time.process_time()
        for table, velocity, rows in sides:
            places = table.ctypes.data, velocity.ctypes.data
            update(table, velocity, *places, gradient, rows, ahead)
        updating += time.process_time() - began
    return reading, updating


def _in_words(hint, ahead):
    cache = {3: "the first cache", 2: "the second cache"}[hint]
    return f"{ahead} rows ahead into {cache}" if ahead else "no prefetch"


def _aligned(shape):
    """Ones in float32 that begin at a cache line."""
    size = int(np.prod(shape))
    memory = np.ones(size + LINE // 4, np.float32)
    first = -memory.ctypes.data % LINE // 4
    return memory[first : first + size].reshape(shape)


@cache
def _reader(hint):
    """A kernel that sums up rows, with a prefetch of those ``ahead``."""
    import numba

    prefetch = _prefetch(hint)

    @numba.njit(fastmath=True, error_model="numpy")
    def read(table, place, rows, ahead):
        row_bytes = 4 * table.shape[1]
        total = np.zeros(table.shape[1], np.float32)
        for k in range(rows.size):
            if ahead and k + ahead < rows.size:
                there = place + rows[k + ahead] * row_bytes
                for byte in range(0, row_bytes, LINE):
                    prefetch(there + byte)
            row = table[rows[k]]
            for j in range(total.size):
                total[j] += row[j]
        return total

    return read


@cache
def _updater(hint):
    """A kernel that makes a step of momentum on rows, with a prefetch of those ``ahead``."""
    import numba

    prefetch = _prefetch(hint)

    @numba.njit(fastmath=True, error_model="numpy")
    def update(table, velocity, table_place, velocity_place, gradient, rows, ahead):
        row_bytes = 4 * table.shape[1]
        for k in range(rows.size):
            if ahead and k + ahead < rows.size:
                there = rows[k + ahead] * row_bytes
                for byte in range(there, there + row_bytes, LINE):
                    prefetch(table_place + byte)
                    prefetch(velocity_place + byte)
            weights, v = table[rows[k]], velocity[rows[k]]
            for j in range(gradient.size):
                moved = np.float32(0.9) * v[j] - gradient[j]
                weights[j] += moved
                v[j] = moved

    return update


def _prefetch(hint):
    """An intrinsic that asks for the cache line at an address."""
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def prefetch(typingctx, address):
        def codegen(context, builder, signature, arguments):
            pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
            function = builder.module.declare_intrinsic(
                "llvm.prefetch", [pointer], ir.FunctionType(ir.VoidType(), [pointer, *[number] * 3])
            )
            place = builder.inttoptr(arguments[0], pointer)
            # To be read; data, not code.
            builder.call(function, [place, number(0), number(hint), number(1)])
            return context.get_dummy_value()

        return types.void(types.int64), codegen

    return prefetch


# -- the step -------------------------------------------------------------------------------------


def needs_of(counts):
    """Floating-point operations, bytes through memory and gate values of one step.

    Parameters
    ----------
    counts : dict
        Means per step over both sides: ``texts``, ``tokens``, ``words`` (distinct), ``rows``
        (distinct trigrams), ``rested`` (those of them that the step before did not touch),
        ``entries`` (trigrams of all distinct words), ``shared`` (those that more than one word
        has), and ``cells``, ``gates``, ``width`` of the encoder. ``exact`` is the share of updates
        that need the exact norm of the gradient, where a bound is too large.

    Returns
    -------
    dict
        ``flop``: the recurrent product of every token but a text's first, forward, backward and
        for the gradient of the weights.
        ``read``: bytes of rows for the projection: every touched row, and the velocity of those
        that rested, since their look-ahead point depends on it.
        ``updated``: bytes of rows for the update, which reads and writes every touched row with its
        velocity. (The gradient can be summed up from that of the words, which a cache holds.)
        ``streamed``: gates, cells, their tanh, outputs and errors of every token, and every word's
        projection and its gradient: written once and read once.
        ``gathered``: bytes of rows that lists name and that are read again after that: input rows
        of further words and projections of further tokens in the forward pass; for the norm the
        gradient of every word, and for the exact one that of the words of every row that several
        words share; for the update the gradient of a word for its further rows.
        ``gate_values``: sigmoid and tanh results of the forward pass.
    """
    directions = counts["width"] // (counts["gates"] * counts["cells"])
    later = counts["tokens"] - counts["texts"]
    per_token = 2 * counts["width"] + 3 * directions * counts["cells"]
    row = 4 * counts["width"]
    again = counts["entries"] - counts["rows"] + counts["tokens"] - counts["words"]
    again += counts["words"] + counts["exact"] * counts["shared"]
    again += counts["entries"] - counts["words"]
    return {
        "flop": 3 * 2 * later * counts["cells"] * counts["width"],
        "read": (counts["rows"] + counts["rested"]) * row,
        "updated": 4 * counts["rows"] * row,
        "streamed": 4 * 2 * counts["tokens"] * per_token + 4 * counts["words"] * row,
        "gathered": again * row,
        "gate_values": counts["tokens"] * (counts["gates"] + 1) * directions * counts["cells"],
    }


def floor_seconds(needs, machine):
    """Seconds by part; their sum is the floor."""
    return {
        "products": needs["flop"] / machine["gflops"] / 1e9,
        "rows read": needs["read"] / machine["read"] / 1e9,
        "rows updated": needs["updated"] / machine["update"] / 1e9,
        "other memory": needs["streamed"] / machine["gigabytes"] / 1e9,
        "lists of rows": needs["gathered"] / machine["gathered"] / 1e9,
        "gate functions": needs["gate_values"] * machine["gate_ns"] / 1e9,
        "planning": PLANNING,
    }
