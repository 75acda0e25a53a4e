"""Training in parts: what more parts and fewer meetings cost, and what a meeting takes.

``--part quality`` trains each set with several numbers of parts and of meetings and measures
without a ranker, on test. ``--part times`` takes a log that is made: one part on two threads, two
parts one after the other in a process, and two parts on two local workers. Writes tables of
docs/results/scale.md.

What is finished is kept in build/parts; a run that was stopped continues there.

    python benchmarks/parts.py --part quality [--data DIR] [--sets tldr ...] [--seeds 1]
    python benchmarks/parts.py --part times [--lines 570000]
"""

import json
import subprocess
import sys
from functools import partial

import numpy as np
from large_log import write_large_log
from pages import ROOT, machine, options_for, write_tables
from systems import kept, measured, say, trained

from sentemb.data.judged_set import read_judged_set
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE
from sentemb.system.tables import markdown_table

BUILD = ROOT / "build" / "parts"
SETS = ("tldr", "msdocs_index")
CASES = [(1, None), (2, 5), (4, 5), (8, 5)]
FIGURES = ("ndcg@1", "mrr@10")
# Ways to train on the log that is made, and how often each takes its turn.
WAYS = {
    "one part, two threads": {"parts": 1},
    "two parts, one after the other": {"parts": 2, "meetings": 5},
    "two parts, two local workers": {"parts": 2, "meetings": 5, "dask": "local:2"},
}
TURNS = 2
# An estimate: bytes a second between machines, and their numbers.
NETWORK, MACHINES = 1.25e9, (2, 4, 16)

# Runs in a process of its own: log and settings of one training of one epoch.
_TRAIN = """
import json, os, sys, time
import sentemb
from sentemb.training.towers.two_towers import TwoTowers

met = {"meetings": 0, "seconds": 0.0, "bytes": 0}
meet = TwoTowers.meet

def timed(towers, features, parts):
    states = list(parts)
    began = time.monotonic()
    meet(towers, features, states)
    met["meetings"] += 1
    met["seconds"] += time.monotonic() - began
    met["bytes"] += sum(array.nbytes for state in states for array in state.values())

TwoTowers.meet = timed
log, settings = sys.argv[1], json.loads(sys.argv[2])
began = time.monotonic()
steps = []
sentemb.train(log, epochs=1, on_progress=lambda at: steps.append(at.step), **settings)
spent = os.times()
cpu = spent.user + spent.system + spent.children_user + spent.children_system
print(json.dumps({"wall": time.monotonic() - began, "cpu": cpu, "steps": max(steps), **met}))
"""


def quality(data, name, parts, meetings, seed, threads):
    """Means of `FIGURES` of one training, without a ranker."""
    folder = BUILD / name / f"{parts}-{meetings}-{seed}"
    settings = {} if parts == 1 else {"parts": parts, "meetings": meetings}
    model = trained(
        folder, data / name / "pairs.tsv", data / name / "dev", seed, threads, **settings
    )
    figures = measured(
        HybridRanker(model, MODEL_ALONE, threads=threads), read_judged_set(data / name / "test")
    )
    return {figure: float(np.mean(figures[figure])) for figure in FIGURES}


def rows_of_quality(found):
    """The rows of one table: a number of parts and meetings each."""
    one = np.mean([[figures[f] for f in FIGURES] for figures in found[CASES[0]]], axis=0)
    yield [
        "parts",
        "meetings",
        "judged titles, NDCG@1",
        "all titles, MRR@10",
        "minus one part: NDCG@1",
        "MRR@10",
    ]
    for (parts, meetings), seeds in found.items():
        mean = np.mean([[figures[f] for f in FIGURES] for figures in seeds], axis=0)
        change = ["-", "-"] if parts == 1 else [f"{x:+.3f}" for x in mean - one]
        yield [str(parts), str(meetings or "-"), *(f"{x:.3f}" for x in mean), *change]


def times(lines):
    """The figures of each way, turn by turn."""
    log = BUILD / f"{lines}.tsv"
    if not log.exists():
        log.parent.mkdir(parents=True, exist_ok=True)
        write_large_log(log, lines)
    found = {way: [] for way in WAYS}
    for turn in range(TURNS):
        for way, settings in WAYS.items():
            say(f"turn {turn + 1}: {way}")
            command = [sys.executable, "-c", _TRAIN, str(log), json.dumps(settings)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found[way].append(json.loads(done.stdout.splitlines()[-1]))
    return found


def rows_of_times(found):
    """The rows of one table: a way to train each; means."""
    yield [
        "training, one epoch",
        "wall",
        "ratio",
        "CPU",
        "MB a meeting",
        "seconds to take the mean",
    ]
    walls = {way: np.mean([one["wall"] for one in turns]) for way, turns in found.items()}
    first = next(iter(walls.values()))
    for way, turns in found.items():
        last = turns[-1]
        n = last["meetings"]
        met = (
            ["-", "-"]
            if n == 0
            else [f"{last['bytes'] / n / 1e6:,.0f}", f"{last['seconds'] / n:.2f}"]
        )
        cpu = np.mean([one["cpu"] for one in turns])
        yield [way, f"{walls[way]:.0f} s", f"{walls[way] / first:.2f}", f"{cpu:.0f} s", *met]


def rows_of_estimates(found):
    """The rows of one table: a number of machines, each with two threads and a part.

    The bytes of a meeting grow with the updates before it, so a round is as long as that measured.
    """
    yield ["machines", "updates a round", "bytes of a part at a meeting", "times as fast"]
    one, two = (found[way] for way in list(WAYS)[:2])
    update = np.mean([turn["wall"] for turn in one]) / one[0]["steps"]
    updates = one[0]["steps"] / 2 / two[0]["meetings"]
    of_part = two[0]["bytes"] / two[0]["meetings"] / 2
    mean = two[0]["seconds"] / two[0]["meetings"] / 2
    for machines in MACHINES:
        # One process gets the rows of every part, takes the mean and sends the rows back.
        meeting = machines * (2 * of_part / NETWORK + mean)
        faster = machines * updates * update / (updates * update + meeting)
        yield [str(machines), f"{updates:,.0f}", f"{of_part / 1e6:,.0f} MB", f"{faster:.1f}"]


def main():
    options = options_for(
        __doc__,
        SETS,
        part={"choices": ("quality", "times"), "required": True, "help": "what to measure"},
        seeds={"type": int, "default": 1, "help": "how many seeds of each case"},
        lines={"type": int, "default": 570_000, "help": "lines of the log that is made"},
    )
    if options.part == "times":
        path = BUILD / f"times-{options.lines}.json"
        spent = kept(path, lambda: times(options.lines))
        tables = {
            "Time in parts": markdown_table(rows_of_times(spent)),
            "Estimate for several machines": markdown_table(rows_of_estimates(spent)),
        }
        write_tables("parts", tables, machine())
        return
    tables = {}
    for name in options.sets:
        found = {}
        for case in CASES:
            for seed in range(options.seeds):
                path = BUILD / name / f"{case[0]}-{case[1]}-{seed}.json"
                make = partial(quality, options.data, name, *case, seed, options.threads)
                found.setdefault(case, []).append(kept(path, make))
        tables[f"Quality in parts, {name}"] = markdown_table(rows_of_quality(found))
    write_tables("parts", tables)


if __name__ == "__main__":
    main()
