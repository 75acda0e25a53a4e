"""Training steps against PyTorch and against their floor: sections of `speed.py`."""

import importlib.util

import numpy as np
from contenders import Contender
from floor import floor_seconds, needs_of
from rounds import Spread, note, real_log
from targets import milliseconds, times

from sentemb.system.tables import markdown_table

PAIRS = 100_000
REALISTIC, UNIFORM, REAL = "realistic log", "uniform log", "occupations"
SHAPE = "reduced LSTM, 96 cells"
KINDS = ("ours", "dense", "fused", "best")
OF_VARIANTS = ("ours", "dense", "best")
ADAM_KINDS = ("ours", "dense_adam", "sparse_adam", "best_adam")
# Stock recurrences, and the models that they can compute.
PEERS = {"best": "PyTorch, best", "lstm": "`torch.nn.LSTM`, oneDNN", "jax": "JAX, compiled"}
PEER_SHAPES = {SHAPE: {}, "with a forget gate": {"forget_gate": True}}
# First steps, whose gradients are longer than those of all others.
SETTLED = 20
# Other settings, on the realistic log. `growth` varies the number of cells.
VARIANTS = {
    "full LSTM (forget gate, diagonal peepholes)": {
        "forget_gate": True,
        "peepholes": "diagonal",
    },
    "bidirectional LSTM": {"model": "bilstm"},
    "negatives from all titles": {"negatives": "corpus"},
}


def logs_of(bench, quick):
    """{name: path} of the logs to train on; None for the real one where it is absent."""
    pairs = 20_000 if quick else PAIRS
    if real_log(REAL) is None:
        note(f"{REAL} is absent: not measured")
    return {
        REALISTIC: bench.realistic(pairs),
        UNIFORM: bench.uniform(pairs),
        REAL: real_log(REAL),
    }


def compared_columns(result, kinds):
    """Cells of a table: our time, our pairs per second, and the others with their ratios."""
    ours = result.time("ours").median
    others = [
        f"{milliseconds(result.time(kind).median)}, {times(result.ratio(kind))}"
        if kind in result.seconds
        else "-"
        for kind in kinds[1:]
    ]
    return [milliseconds(ours), f"{512 / ours:,.0f}", *others]


def log_section(bench, quick, targets):
    """What the logs are like."""
    rows = [["log", "pairs", "trigrams", "texts", "words", "distinct words", "trigrams touched"]]
    with Contender("ours") as ours:
        for name, log in logs_of(bench, quick).items():
            if log is None:
                rows.append([name, *["-"] * 6])
                continue
            ours.ask("load", case=str(bench.case(log)))
            size = ours.ask("sizes")
            of = ours.ask("counts", steps=bench.compared)
            figures = (of[part] for part in ("texts", "tokens", "words", "rows"))
            cells = [f"{size['pairs']:,}", f"{size['features']:,}", *(f"{x:,.0f}" for x in figures)]
            rows.append([name, *cells])
    return {"Logs": markdown_table(rows, left=7)}


def train_section(bench, quick, targets):
    """Training steps on one thread, all contenders."""
    rows = [["", "sentemb", "pairs/s", "PyTorch, usual", "the same, fused SGD", "PyTorch, best"]]
    logs = logs_of(bench, quick)
    few = bench.shorter()
    cases = {f"{name}: {SHAPE}": (bench, log, {}) for name, log in logs.items()}
    for name, settings in list(VARIANTS.items())[: 0 if quick else None]:
        cases[name] = few, logs[REALISTIC], settings
    results = {}
    for name, (effort, log, settings) in cases.items():
        if log is None:
            rows.append([name, *["-"] * 5])
            continue
        note(f"training: {name}")
        kinds = KINDS if effort is bench else OF_VARIANTS
        results[name], _ = effort.train(effort.case(log, **settings), kinds)
        rows.append([name, *compared_columns(results[name], KINDS)])
    realistic, uniform = results[f"{REALISTIC}: {SHAPE}"], results[f"{UNIFORM}: {SHAPE}"]
    labels = {"dense": "usual PyTorch", "fused": "the same, fused SGD", "best": "best PyTorch"}
    for log, result, asked in (
        (REALISTIC, realistic, {"dense": 12, "fused": 8, "best": 2.5}),
        (UNIFORM, uniform, {"dense": 10, "best": 2.7}),
    ):
        for kind, target in asked.items():
            what = f"training step, {log}, {labels[kind]} / sentemb"
            targets.at_least(what, target, result.ratio(kind).median)
    return {"Training step, one thread": markdown_table(rows, left=6)}


def peer_section(bench, quick, targets):
    """Training steps with the recurrences of other libraries; JAX only where it is installed."""
    kinds = ["ours", *PEERS]
    if importlib.util.find_spec("jax") is None:
        note("JAX is absent: not measured; pip install jax")
        kinds.remove("jax")
    rows = [["realistic log", "sentemb", "pairs/s", *PEERS.values()]]
    few = bench.shorter()
    log = logs_of(bench, quick)[REALISTIC]
    for name, settings in PEER_SHAPES.items():
        note(f"stock recurrences: {name}")
        result, _ = few.train(few.case(log, **settings), kinds)
        rows.append([name, *compared_columns(result, ("ours", *PEERS))])
    return {"Stock recurrences": markdown_table(rows, left=len(rows[0]))}


def defaults_section(bench, quick, targets):
    """Steps with the defaults: Adam, all titles of the mini-batch as candidates, hard negatives."""
    rows = [["", "sentemb", "pairs/s", "`torch.optim.Adam`, fused", "`SparseAdam`, compact rows",
             "lazy Adam by hand"]]  # fmt: skip
    logs = logs_of(bench, quick)
    cases = {
        REALISTIC: (logs[REALISTIC], {}),
        REAL: (logs[REAL], {}),
        f"{REAL}, 3 hard negatives per pair": (logs[REAL], {"hard_negatives": 3, "group_size": 1}),
    }
    for name, (log, settings) in cases.items():
        what = f"step of the defaults, {name}, PyTorch by hand / sentemb"
        if log is None:
            rows.append([name, *["-"] * 5])
            targets.not_measured(what, "at least 2.5")
            continue
        note(f"defaults: {name}")
        result, _ = bench.train(bench.case(log, preset=None, **settings), ADAM_KINDS)
        rows.append([name, *compared_columns(result, ADAM_KINDS)])
        targets.at_least(what, 2.5, result.ratio("best_adam").median)
    return {"The defaults": markdown_table(rows, left=6)}


def measure_floor(bench, log):
    """(parts of the floor in seconds, needs, machine, `Spread` of a step's seconds)."""
    case = bench.case(log)
    machines, rows, steps = [], [], []
    with Contender("ours") as ours, Contender("machine") as machine:
        ours.ask("load", case=str(case))
        counts = ours.ask("counts", steps=SETTLED, folder=str(case))
        ours.ask("train", steps=SETTLED)
        counts["exact"] = ours.ask("exact_norms", steps=SETTLED)
        needs = needs_of(counts)
        for turn in range(bench.rounds):
            machines.append(machine.ask("machine"))
            if turn < 3:  # it tries several ways of prefetching itself
                details = {"folder": str(case), "streamed": needs["streamed"]}
                rows.append(machine.ask("scattered_rows", **details))
            steps.append(np.median(ours.ask("train", steps=bench.steps)[bench.clock]))
    able = {name: max(some[name] for some in machines) for name in ("gflops", "gigabytes")}
    able["gate_ns"] = min(some["gate_ns"] for some in machines)
    for name in ("read", "update", "gathered"):
        able |= {key: value for key, value in max(rows, key=lambda some: some[name]).items()
                 if key.startswith(name)}  # fmt: skip
    return floor_seconds(needs, able), needs, able, Spread.of(steps)


def floor_section(bench, quick, targets):
    """A step against the least time its operations and bytes need, and where it spends its time."""
    tables = {}
    logs = logs_of(bench, quick)
    for name in (REALISTIC, UNIFORM):
        note(f"floor: {name}")
        parts, needs, able, step = measure_floor(bench, logs[name])
        whole = sum(parts.values())
        if name == REALISTIC:
            targets.at_most(f"training step, {name} / its floor", 1.5, step.median / whole)
        megabytes = {
            part: f"{needs[part] / 1e6:,.0f} MB"
            for part in ("read", "updated", "streamed", "gathered")
        }
        rows = [
            ("part of a step", "amount", "this machine, one thread"),
            ("products", f"{needs['flop'] / 1e6:,.0f} MFLOP", f"{able['gflops']:.0f} GFLOP/s"),
            ("rows read", megabytes["read"], f"{able['read']:.1f} GB/s"),
            ("rows updated", megabytes["updated"], f"{able['update']:.1f} GB/s"),
            ("other memory", megabytes["streamed"], f"{able['gigabytes']:.1f} GB/s"),
            ("lists of rows", megabytes["gathered"], f"{able['gathered']:.1f} GB/s"),
            ("gate functions", f"{needs['gate_values'] / 1e6:.2f} million",
             f"{able['gate_ns']:.2f} ns"),
            ("planning", "", ""),
        ]  # fmt: skip
        seconds = ["time", *(milliseconds(parts[part]) for part, *_ in rows[1:])]
        cells = [[*row, time] for row, time in zip(rows, seconds, strict=True)]
        cells.append(["sum", "", "", milliseconds(whole)])
        tables[f"Floor, {name}"] = markdown_table(cells, left=4)
        note(
            f"The step takes {milliseconds(step.median)}: {step.median / whole:.2f} × its floor. "
            f"Fastest prefetch: {able['read_by']} for reading ({able['read_plain']:.1f} GB/s "
            f"without any), {able['update_by']} for updating ({able['update_plain']:.1f} GB/s)."
        )
    return tables | {"Where a step spends its time": profile_table(bench, logs[REALISTIC], quick)}


def profile_table(bench, log, quick):
    note("where a step spends its time")
    with Contender("ours") as ours:
        ours.ask("load", case=str(bench.case(log)))
        profile = ours.ask("profile", steps=5 if quick else 20)
    whole = sum(profile.values())
    rows = [["kernel", "time"]]
    for name, seconds in sorted(profile.items(), key=lambda item: -item[1]):
        label = name if name in ("planning", "everything else") else f"`{name}`"
        rows.append([label, f"{milliseconds(seconds)} ({100 * seconds / whole:.0f} %)"])
    return markdown_table(rows, left=2)
