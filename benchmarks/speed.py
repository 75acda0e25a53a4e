"""How fast training and encoding are, compared with PyTorch and with the machine's own limits.

Contenders are separate processes that take turns; every ratio compares neighbouring turns. Writes
docs/results/speed.md, and into docs/developer.md the targets with what was measured. The sections
are in `speed_training`, `speed_encoding`, `speed_jobs`, `wide` and `growth`.

    python benchmarks/speed.py [--quick] [--only train,encode] [--clock cpu]
"""

import argparse
import importlib.util
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from growth import growth_section
from pages import DEVELOPER, RESULTS, machine, read_csv, write_results, write_section
from rounds import Bench, note
from speed_encoding import encode_section, thread_section
from speed_jobs import job_section, start_section
from speed_record import record_section
from speed_training import defaults_section, floor_section, log_section, train_section
from targets import Targets
from wide import product_section

from sentemb.tables import markdown_table

# Functions of a `Bench`, whether the run is quick, and the `Targets`: lines of Markdown.
SECTIONS = {
    "logs": log_section,
    "train": train_section,
    "defaults": defaults_section,
    "floor": floor_section,
    "encode": encode_section,
    "threads": thread_section,
    "job": job_section,
    "start": start_section,
    "products": product_section,
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
        "All clip the gradient of each tower at norm 1, start from the same weights and train on "
        "the same mini-batches, whose repeated texts are given to all contenders once only. The "
        "momentum is 0.9 throughout. The model is the reduced LSTM of the preset `paper` with 96 "
        "cells unless a row says otherwise.",
        "",
        "Ratios depend on the processor, most of all on its bandwidth for scattered rows and on "
        "how wide its vectors are; the [record](#record) names the processor of every row.",
        "",
    ]


def add_look_up(targets):
    """Add the target of `look_up.py`, with what that script measured last."""
    seconds = [
        float(value.removesuffix(" s"))
        for file in sorted(RESULTS.glob("look-up-*.csv"))
        for row in read_csv(file.name)
        for name, value in row.items()
        if row["titles"] == "1000000" and name.startswith("by clusters")
    ]
    what = "looking up hard negatives, 1,000,000 queries and titles"
    if seconds:
        targets.at_most(what, 60, max(seconds), "s")
    else:
        targets.not_measured(what, "at most 60", "s")


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
    rounds, steps, compared = (2, 2, 6) if options.quick else (7, 5, 20)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(folder, rounds, steps, options.clock, compared)
        lines, targets = machine_lines(options.clock), Targets()
        for name in chosen:
            section = [*SECTIONS[name](bench, options.quick, targets), ""]
            print("\n".join(section), flush=True)
            lines += section
    note(f"{time.monotonic() - began:.0f} s")
    add_look_up(targets)
    table = list(markdown_table(targets.rows))
    if options.quick or options.only:
        print("\n".join(table))
        return
    lines += record_section()
    write_results("speed", "Speed", "benchmarks/speed.py", lines)
    write_section(DEVELOPER, "targets", "\n".join([f"Machine: {machine()}.", "", *table]))


if __name__ == "__main__":
    main()
