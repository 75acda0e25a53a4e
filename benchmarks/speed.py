"""How fast training and encoding are, compared with PyTorch and with the machine's own limits.

Contenders are separate processes that take turns; every ratio compares neighbouring turns. Writes
docs/results/speed.md, and into docs/developer.md the targets with what was measured.

    python benchmarks/speed.py [--quick] [--only train,encode] [--clock cpu]
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import ExitStack, contextmanager
from pathlib import Path

import numpy as np
from contenders import Contender
from floor import floor_seconds, operations_and_bytes
from growth import growth_tables, measure_growth
from pages import DEVELOPER, machine, write_results, write_section
from rounds import Bench, DisagreementError, Result, Spread, note

from sentemb.tables import markdown_table

PAIRS = 100_000
EPOCHS = 10
MAIN = "reduced LSTM, 96 cells"
CASES = {
    MAIN: {},
    "full LSTM (forget gate, diagonal peepholes)": {
        "forget_gate": True,
        "peepholes": "diagonal",
    },
    "32 cells": {"cells": 32},
    "288 cells": {"cells": 288},
    "bidirectional LSTM": {"model": "bilstm"},
    "negatives from all titles": {"negatives": "corpus"},
}


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f} ms"


def times(spread):
    """A ratio with its spread."""
    return f"{spread.median:.1f} × ({spread.least:.1f}–{spread.most:.1f})"


class Targets:
    """Targets with what was measured, as rows of a table."""

    def __init__(self):
        self.rows = [["what", "target", "measured", ""]]

    def at_least(self, what, target, value, unit="×"):
        self._add(what, f"at least {target:,} {unit}", value, unit, value >= target)

    def at_most(self, what, target, value, unit="×"):
        self._add(what, f"at most {target:,} {unit}", value, unit, value <= target)

    def _add(self, what, target, value, unit, met):
        measured = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        self.rows.append([what, target, f"{measured} {unit}", "met" if met else "missed"])


# -- sections: lines of Markdown; what has a target goes into ``targets`` -------------------------


def train_section(bench, quick, targets):
    """Training steps on one thread, all contenders."""
    lines = [
        "## Training step, one thread",
        "",
        "| | sentemb | pairs/s | PyTorch, usual | the same, fused SGD | PyTorch, best |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    log = bench.log(PAIRS)
    for name, settings in list(CASES.items())[: 1 if quick else None]:
        note(f"training: {name}")
        kinds = ("ours", "dense", "fused", "best")
        result, prepared = bench.train(bench.case(log, **settings), kinds)
        if name == MAIN:
            main, trigrams = result, prepared["trigrams"]
        ours = result.time("ours").median
        others = " | ".join(
            f"{milliseconds(result.time(kind).median)}, {times(result.ratio(kind))}"
            for kind in kinds[1:]
        )
        lines.append(f"| {name} | {milliseconds(ours)} | {512 / ours:,.0f} | {others} |")
    targets.at_least("training step, usual PyTorch / sentemb", 14, main.ratio("dense").median)
    targets.at_least("training step, best PyTorch / sentemb", 4, main.ratio("best").median)
    lines += [
        "",
        f"{trigrams:,} trigrams, 4 negatives from the batch, 512 pairs per batch, float32. Losses "
        f"of the first {bench.compared} steps agree to 1e-4 (checked). Ratios: median of "
        f"{bench.rounds} rounds (least–most).",
        "",
        *compile_note(bench, log),
    ]
    return lines


def compile_note(bench, log):
    """One try of torch.compile."""
    note("training: torch.compile")
    case = bench.case(log)
    with ExitStack() as stack:
        ours = stack.enter_context(Contender("ours"))
        ours.ask("load", case=str(case))
        ours.ask("prepare", folder=str(case))
        compiled = Contender("compiled")
        try:
            compiled.ask("load", case=str(case))
            began = time.monotonic()
            compiled.ask("train", timeout=60, steps=bench.compared)
            warm_up = time.monotonic() - began
            racers = {"ours": ours, "compiled": compiled}
            ours.ask("train", steps=bench.compared)
            result = Result(bench.take_turns(racers, "train", steps=bench.steps))
        except (TimeoutError, RuntimeError) as error:
            return [f"torch.compile: not measured ({error})."]
        finally:
            compiled.kill()
    return [
        f"With torch.compile for the gates, *PyTorch, best* takes "
        f"{times(result.ratio('compiled'))} as long as sentemb, after {warm_up:.0f} s for the "
        f"first {bench.compared} steps."
    ]


def floor_section(bench, quick, targets):
    """A step against the least time its operations and bytes need, and where it spends its time."""
    note("floor")
    case = bench.case(bench.log(PAIRS))
    machines, steps = [], []
    with Contender("ours") as ours, Contender("machine") as machine:
        ours.ask("load", case=str(case))
        counts = ours.ask("counts", steps=bench.compared)
        ours.ask("train", steps=bench.compared)
        for _ in range(bench.rounds):
            machines.append(machine.ask("machine"))
            steps.append(np.median(ours.ask("train", steps=bench.steps)[bench.clock]))
        profile = ours.ask("profile", steps=5 if quick else 20)
    able = {
        "gflops": max(some["gflops"] for some in machines),
        "gigabytes": max(some["gigabytes"] for some in machines),
        "gate_ns": min(some["gate_ns"] for some in machines),
    }
    needs = operations_and_bytes(counts)
    parts = floor_seconds(needs, able)
    floor, step = sum(parts.values()), Spread.of(steps)
    targets.at_most("training step / its floor", 1.4, step.median / floor)
    lines = [
        "## Floor",
        "",
        "| part of a step | amount | this machine, one thread | time |",
        "| --- | --- | --- | --- |",
        f"| products | {needs['flop'] / 1e6:,.0f} MFLOP | {able['gflops']:.0f} GFLOP/s | "
        f"{milliseconds(parts['products'])} |",
        f"| memory | {needs['bytes'] / 1e6:,.0f} MB | {able['gigabytes']:.1f} GB/s | "
        f"{milliseconds(parts['memory'])} |",
        f"| gate functions | {needs['gate_values'] / 1e6:.2f} million | {able['gate_ns']:.2f} ns | "
        f"{milliseconds(parts['gates'])} |",
        f"| sum | | | {milliseconds(floor)} |",
        "",
        f"The step takes {milliseconds(step.median)}: {step.median / floor:.2f} × its floor. A "
        f"mini-batch holds {counts['texts']:,.0f} texts, {counts['tokens']:,.0f} words, "
        f"{counts['words']:,.0f} of them distinct, and {counts['rows']:,.0f} distinct trigrams. "
        "`benchmarks/floor.py` says what the floor counts.",
        "",
        "## Where a step spends its time",
        "",
        "| kernel | time |",
        "| --- | --- |",
    ]
    whole = sum(profile.values())
    for name, seconds in sorted(profile.items(), key=lambda item: -item[1]):
        label = name if " " in name else f"`{name}`"
        lines.append(f"| {label} | {milliseconds(seconds)} ({100 * seconds / whole:.0f} %) |")
    return lines


def encode_section(bench, quick, targets):
    """Sentences to vectors, from strings, on one thread."""
    note("encoding")
    case = bench.case(bench.log(PAIRS))
    kinds = ("ours", "dense", "best")
    sizes = {1: (200, 12), 256: (8, 4), 4096: (1, 6)}  # calls per turn; target
    lines = [
        "## Encoding, one thread",
        "",
        "| sentences per call | sentemb | sentences/s | PyTorch, usual | PyTorch, best |",
        "| --- | --- | --- | --- | --- |",
    ]
    with ExitStack() as stack:
        racers = {kind: stack.enter_context(Contender(kind)) for kind in kinds}
        for kind, racer in racers.items():
            racer.ask("load", case=str(case))
            if kind == "ours":
                racer.ask("prepare", folder=str(case))
            # Each caches words in its own way; let them cache many.
            racer.ask("encode", size=4096, calls=1 if quick else 8, first=50_000)
        for size, (calls, target) in sizes.items():
            seconds = {kind: [] for kind in kinds}
            for turn in range(bench.rounds + 1):
                vectors = {}
                for kind, racer in racers.items():
                    first = turn * size * calls
                    # As on a server that has run for a while: every word is cached.
                    racer.ask("encode", size=size, calls=calls, first=first)
                    answer = racer.ask("encode", size=size, calls=calls, first=first)
                    vectors[kind] = np.array(answer["vector"])
                    if turn:  # the first one warms up
                        seconds[kind].append(float(np.median(answer[bench.clock])))
                for kind, vector in vectors.items():
                    apart = np.abs(vector - vectors["ours"]).max()
                    if not apart <= 1e-5:
                        raise DisagreementError(
                            f"vectors of {kind} differ from ours by {apart:.1e}: "
                            f"{size} sentences from {first}"
                        )
            result = Result(seconds)
            ours = result.time("ours").median
            usual = result.ratio("dense")
            lines.append(
                f"| {size:,} | {ours * 1e3:.{1 if size > 1 else 3}f} ms "
                f"| {size / ours:,.0f} | {times(usual)} | {times(result.ratio('best'))} |"
            )
            what = f"encoding {size:,} per call, usual PyTorch / sentemb"
            targets.at_least(what, target, usual.median)
    return [
        *lines,
        "",
        "From Python strings to float32 vectors. All contenders cache the words they have seen, "
        "as a long-running server does: sentemb caches their projections, PyTorch their trigrams.",
    ]


def thread_section(bench, quick, targets):
    """Two threads against one."""
    note("threads")
    if (os.cpu_count() or 1) < 2:
        return ["## Threads", "", "Not measured: there is one processor."]
    case = bench.case(bench.log(PAIRS))
    wall = Bench(bench.folder, bench.rounds, bench.steps, "wall", bench.compared)
    kinds = ("ours", "best")
    training, _ = wall.train(case, kinds, threads=(1, 2))
    seconds = defaultdict(list)
    with Contender("ours") as one, Contender("ours") as two:
        for racer, threads in ((one, 1), (two, 2)):
            racer.ask("load", case=str(case), threads=threads)
            racer.ask("encode", size=4096, calls=2)
        for _ in range(bench.rounds):
            for name, racer in (("ours", one), ("ours/2", two)):
                answer = racer.ask("encode", size=16_384, calls=1)
                seconds[name].append(answer["wall"][0])
    gains = {kind: training.ratio(kind, base=f"{kind}/2") for kind in kinds}
    bulk = Result(seconds).ratio("ours", base="ours/2")
    targets.at_least("training, two threads against one", 1.6, gains["ours"].median)
    targets.at_least("encoding 16,384 sentences, two threads against one", 1.8, bulk.median)
    return [
        "## Threads",
        "",
        "| two threads against one | gain |",
        "| --- | --- |",
        f"| training | {times(gains['ours'])} |",
        f"| encoding 16,384 sentences | {times(bulk)} |",
        f"| training, PyTorch, best | {times(gains['best'])} |",
        "",
        *neighbour_lines(bench, case, kinds),
    ]


@contextmanager
def busy_neighbour():
    """A process that keeps one processor busy."""
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        loop.kill()
        loop.wait()


def neighbour_lines(bench, case, kinds):
    """Training with as many threads as processors while another process takes one of them."""
    note("busy neighbour")
    count = os.cpu_count()
    seconds = defaultdict(list)
    with ExitStack() as stack:
        racers = {kind: stack.enter_context(Contender(kind)) for kind in kinds}
        for kind, racer in racers.items():
            racer.ask("load", case=str(case), threads=count)
            if kind == "ours":
                racer.ask("prepare", folder=str(case))
            racer.ask("train", steps=bench.compared)
        for _ in range(bench.rounds):
            for kind, racer in racers.items():
                quiet = racer.ask("train", steps=bench.steps)["wall"]
                with busy_neighbour():
                    busy = racer.ask("train", steps=bench.steps)["wall"]
                seconds[kind].append(np.mean(quiet))
                seconds[f"{kind}, disturbed"].append(np.mean(busy))
    result = Result(seconds)
    slower = {kind: times(result.ratio(f"{kind}, disturbed", base=kind)) for kind in kinds}
    return [
        f"While another process runs a busy loop, a step on {count} threads takes "
        f"{slower['ours']} as long as without it; a fair share of {count} processors would give "
        f"{(count + 1) / count:.2f} ×. PyTorch, best: {slower['best']}."
    ]


def job_section(bench, quick, targets):
    """A whole training, reading, start-up."""
    note("whole job")
    log = str(bench.log(PAIRS))
    epochs = 1 if quick else EPOCHS
    with Contender("ours") as ours:
        ours.ask("whole_job", log=str(bench.log(10_000)), epochs=1, threads=1)  # compiles
        reads = [ours.ask("read", log=log) for _ in range(bench.rounds)]
        job = ours.ask("whole_job", log=log, epochs=epochs, threads=None)
    speed = Spread.of([read["lines"] / read["wall"] for read in reads])
    around = [part for part in ("reading", "vocabulary", "planning", "saving") if part in job]
    share = sum(job[part] for part in around) / job["whole"]
    parts = sorted(job.items(), key=lambda item: -item[1])
    rows = [
        f"| {name} | {seconds:.2f} s | {100 * seconds / job['whole']:.1f} % |"
        for name, seconds in parts
    ]
    what = "reading, vocabulary, planning and saving, share of a training"
    targets.at_most(what, 10, 100 * share, "%")
    targets.at_least("reading a log", 200_000, speed.median, "lines/s")
    return [
        "## The whole job",
        "",
        f"`sentemb.train` on {PAIRS:,} pairs, {epochs} epochs, all processors:",
        "",
        "| part | time | share |",
        "| --- | --- | --- |",
        *rows,
        "",
        f"Reading, vocabulary, planning (collation of mini-batches and their negatives) and saving "
        f"together: {100 * share:.1f} %. Planning runs on a second thread while the first trains.",
        f"Reading alone: {speed.median:,.0f} lines/s ({speed.least:,.0f}–{speed.most:,.0f}).",
        "",
        *start_lines(bench, targets),
    ]


def start_lines(bench, targets):
    """Compiling, without and with the cache; importing."""
    note("start-up")
    case = str(bench.case(bench.log(10_000)))
    first, warm = [], 0.0
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            with Contender("ours", {"NUMBA_CACHE_DIR": cache}) as ours:
                began = time.monotonic()
                ours.ask("load", case=case)
                loaded = time.monotonic() - began
                step = ours.ask("train", steps=1)["wall"][0]
                warm = float(np.median(ours.ask("train", steps=5)["wall"]))
                first.append((loaded, step))
    (cold_load, cold_step), (load, cached_step) = first
    cold, cached = cold_load - load + cold_step - warm, cached_step - warm

    def seconds_of(*command):
        spent = []
        for _ in range(5):
            began = time.monotonic()
            subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
            spent.append(time.monotonic() - began)
        return float(np.median(spent))

    bare = seconds_of("-c", "pass")
    targets.at_most("compiling the training kernels", 12, cold, "s")
    targets.at_most("loading them from the cache", 1, cached, "s")
    return [
        "## Start-up",
        "",
        "| step | time |",
        "| --- | --- |",
        f"| compiling the training kernels, once | {cold:.1f} s |",
        f"| loading them from the cache | {cached:.2f} s |",
        f"| `import sentemb` | {seconds_of('-c', 'import sentemb'):.2f} s |",
        f"| `sentemb --help` | {seconds_of('-m', 'sentemb.cli', '--help'):.2f} s |",
        f"| Python alone | {bare:.2f} s |",
    ]


def growth_section(bench, quick, targets):
    """How time grows with the task."""
    few = Bench(bench.folder, min(3, bench.rounds), 3, bench.clock, compared=4)
    return growth_tables(measure_growth(few, quick))


SECTIONS = {
    "train": train_section,
    "floor": floor_section,
    "encode": encode_section,
    "threads": thread_section,
    "job": job_section,
    "growth": growth_section,
}


def machine_lines(clock):
    import numba
    import torch

    return [
        f"Machine: {machine()}, NumPy {np.__version__}, Numba {numba.__version__}, "
        f"PyTorch {torch.__version__}. {'Processor' if clock == 'cpu' else 'Wall-clock'} time. "
        "Contenders are separate processes that take turns; each does its own collation.",
        "",
        "- *PyTorch, usual*: `EmbeddingBag` over trigram ids, a loop over the cell, texts padded "
        "to the longest, autograd, `SGD(nesterov=True)`; also with `fused=True`.",
        "- *PyTorch, best*: every distinct word projected once from compact rows, texts packed "
        "without padding, gradients by hand, lazy Nesterov momentum on touched rows only.",
        "",
        "All clip the gradient of each tower at norm 1 and start from the same weights and "
        "mini-batches; the momentum is 0.9 throughout. The log is synthetic "
        "(`benchmarks/synthetic.py`).",
        "",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a short run that writes nothing")
    parser.add_argument("--only", help=f"some of {','.join(SECTIONS)}; writes nothing")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu for a machine in use"
    )
    parser.add_argument(
        "--folder", type=Path, help="for logs and cases; by default a temporary one"
    )
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(SECTIONS)
    if set(chosen) - set(SECTIONS):
        parser.error(f"sections are {', '.join(SECTIONS)}")
    if importlib.util.find_spec("torch") is None:
        sys.exit("PyTorch is missing; run `make bench`, or pip install 'sentemb[bench]'")
    rounds, steps = (2, 2) if options.quick else (7, 5)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(folder, rounds, steps, options.clock, compared=20)
        lines, targets = machine_lines(options.clock), Targets()
        for name in chosen:
            section = [*SECTIONS[name](bench, options.quick, targets), ""]
            print("\n".join(section), flush=True)
            lines += section
    note(f"{time.monotonic() - began:.0f} s")
    if options.quick or options.only:
        return
    write_results("speed", "Speed", "benchmarks/speed.py", lines)
    write_section(DEVELOPER, "targets", "\n".join(markdown_table(targets.rows)))


if __name__ == "__main__":
    main()
