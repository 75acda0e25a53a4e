"""The main ratios of speed, one row per commit, so that a regression is seen.

A short run of what `speed.py` measures at length. Adds a row to the record in
docs/results/speed.md and speed-record.csv, and prints how it differs from the last row of the same
processor; its speed of products and memory says whether it was as fast then. Refuses to measure
code that is not committed, and threads while other programs keep a processor busy.

    python benchmarks/speed_record.py [--quick]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from pages import ROOT, processor, read_csv, write_tables
from rounds import Bench, note
from speed_encoding import race_encoding, thread_gains
from speed_jobs import first_encoding, first_step
from speed_training import PAIRS, measure_floor

from sentemb.system.tables import markdown_table

FILE = "speed-record.csv"
# Columns that say what was measured, and those of figures: whether more is better.
KEYS = ("commit", "date", "processor")
MACHINE = {"GFLOP/s": "gflops", "GB/s": "gigabytes"}
FIGURES = {
    "realistic, usual": True,
    "realistic, best": True,
    "uniform, usual": True,
    "uniform, best": True,
    "step over floor": False,
    "defaults, by hand": True,
    "encode 1": True,
    "encode 256": True,
    "encode 4096": True,
    "train on two threads": True,
    "encode on two threads": True,
    "compile training (s)": False,
    "compile encoding (s)": False,
}
# A change that the spread of a short run does not explain.
NOTABLE = 0.1
# Processors that other programs may use while threads are measured.
BUSY = 0.3


def record_table(rows):
    """The record as lines of Markdown."""
    names = [*KEYS, *MACHINE, *FIGURES]
    cells = [[row.get(name) or "-" for name in names] for row in rows]
    return markdown_table([names, *cells], left=len(KEYS))


def committed():
    """The short hash of the present commit; ends the program if anything is not committed."""

    def git(*arguments):
        done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout.strip()

    changed = git("status", "--porcelain")
    if changed:
        sys.exit(f"commit these first; the record names the commit it measured:\n{changed}")
    return git("rev-parse", "--short", "HEAD")


def measure(quick, busy):
    """The figures by their columns; those of threads only on a machine that is not ``busy``."""
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, *((2, 2) if quick else (3, 3)), "cpu", compared=6)
        pairs = 20_000 if quick else PAIRS
        logs = {"realistic": bench.realistic(pairs), "uniform": bench.uniform(pairs)}
        case = bench.case(logs["realistic"])
        found = {}
        for name, log in logs.items():
            note(f"training: {name} log")
            result, _ = bench.train(bench.case(log), ("ours", "dense", "best"))
            found[f"{name}, usual"] = result.ratio("dense").median
            found[f"{name}, best"] = result.ratio("best").median
        note("floor")
        parts, _, able, step = measure_floor(bench, logs["realistic"])
        found |= {column: able[name] for column, name in MACHINE.items()}
        found["step over floor"] = step.median / sum(parts.values())
        note("defaults")
        result, _ = bench.train(bench.case(logs["realistic"], preset=None), ("ours", "best_adam"))
        found["defaults, by hand"] = result.ratio("best_adam").median
        note("encoding")
        for size, result in race_encoding(bench, case, ("ours", "dense"), warm_up=4).items():
            found[f"encode {size}"] = result.ratio("dense").median
        if busy:
            note("threads are not measured: other programs use the processors")
        else:
            note("threads")
            gains, bulk = thread_gains(bench, case, ("ours",))
            found["train on two threads"] = gains["ours"].median
            found["encode on two threads"] = bulk.median
        note("compiling")
        for what, spent in (("training", first_step), ("encoding", first_encoding)):
            cold, cached = spent(bench)
            found[f"compile {what} (s)"] = cold - cached
    return found


def changes(row, before):
    """Lines that compare a row of the record with an earlier one."""
    lines = []
    for name, more_is_better in FIGURES.items():
        if not (row.get(name) and before.get(name)) or "-" in (row[name], before[name]):
            continue
        change = float(row[name]) / float(before[name]) - 1
        worse = -change if more_is_better else change
        mark = "  worse" if worse > NOTABLE else "  better" if worse < -NOTABLE else ""
        lines.append(f"{name:24} {before[name]:>6} -> {row[name]:>6}  {100 * change:+.0f} %{mark}")
    return lines


def add(row):
    """Put a row at the end of the record, in place of one of the same commit and processor."""
    rows = [one for one in read_csv(FILE) if any(one[name] != row[name] for name in KEYS[::2])]
    write_tables("speed", {"Record": record_table([*rows, row])})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a try that writes nothing")
    quick = parser.parse_args().quick
    commit = "" if quick else committed()
    began = time.monotonic()
    row = dict(zip(KEYS, (commit, time.strftime("%Y-%m-%d"), processor()), strict=True))
    busy = os.getloadavg()[0] > BUSY
    row |= {name: f"{figure:.2f}" for name, figure in measure(quick, busy).items()}
    note(f"{time.monotonic() - began:.0f} s")
    same = [one for one in read_csv(FILE) if one["processor"] == row["processor"]]
    others = [one for one in same if one["commit"] != commit]
    if others:
        print(f"against {others[-1]['commit']} of {others[-1]['date']}:")
        print("\n".join(changes(row, others[-1])))
    else:
        print("\n".join(f"{name:24} {row[name]:>6}" for name in FIGURES if name in row))
    if not quick:
        add(row)


if __name__ == "__main__":
    main()
