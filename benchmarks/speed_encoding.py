"""Encoding against PyTorch, a million titles, two threads: sections of `speed.py`."""

import os
from collections import defaultdict
from contextlib import ExitStack

import numpy as np
from contenders import Contender
from rounds import Bench, DisagreementError, Result, Spread, note
from speed_training import REALISTIC, logs_of
from targets import times

from sentemb.system.tables import markdown_table

SIZES = {1: (200, 20), 256: (8, 8), 4096: (1, 7)}  # sentences per call: calls per turn, target
MILLION = 1_000_000


def race_encoding(bench, case, kinds, warm_up):
    """{sentences per call: `Result`}."""
    results = {}
    with ExitStack() as stack:
        racers = {kind: stack.enter_context(Contender(kind)) for kind in kinds}
        for kind, racer in racers.items():
            racer.ask("load", case=str(case))
            if kind == "ours":
                racer.ask("prepare", folder=str(case))
            # Each caches words in its own way; let them cache many.
            racer.ask("encode", size=4096, calls=warm_up, first=0)
        for size, (calls, _) in SIZES.items():
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
            results[size] = Result(seconds)
    return results


def encode_section(bench, quick, targets):
    """Sentences to vectors, from strings, on one thread."""
    note("encoding")
    case = bench.case(logs_of(bench, quick)[REALISTIC])
    rows = [["sentences per call", "sentemb", "sentences/s", "PyTorch, usual", "PyTorch, best"]]
    results = race_encoding(bench, case, ("ours", "dense", "best"), 1 if quick else 8)
    for size, result in results.items():
        ours = result.time("ours").median
        usual = result.ratio("dense")
        milliseconds = f"{ours * 1e3:.{1 if size > 1 else 4}f} ms"
        ratios = times(usual), times(result.ratio("best"))
        rows.append([f"{size:,}", milliseconds, f"{size / ours:,.0f}", *ratios])
        what = f"encoding {size:,} per call, usual PyTorch / sentemb"
        targets.at_least(what, SIZES[size][1], usual.median)
    count = 50_000 if quick else MILLION
    return {
        "Encoding, one thread": markdown_table(rows, left=5),
        f"{count:,} titles": many_table(bench, case, count, targets),
    }


def many_table(bench, case, count, targets):
    """A million titles on one and on two threads."""
    note(f"encoding {count:,} titles")
    with ExitStack() as stack:
        answers = defaultdict(list)
        racers = {}
        for threads in (1, 2):
            racers[threads] = stack.enter_context(Contender("ours"))
            racers[threads].ask("load", case=str(case), threads=threads)
        for _ in range(min(3, bench.rounds)):
            for threads, racer in racers.items():
                answers[threads].append(racer.ask("many_titles", count=count))
    seconds = {threads: [one["wall"] for one in some] for threads, some in answers.items()}
    shown = {threads: Spread.of(some) for threads, some in seconds.items()}
    memory = max(one["megabytes"] for one in answers[2])
    gain = Spread.of(np.array(seconds[1]) / np.array(seconds[2]))
    what = f"encoding {count:,} titles of known words, two threads"
    targets.at_most(what, 4, shown[2].median, "s")
    note(
        f"Two threads are {times(gain)} as fast as one. Memory beyond the texts and the model: "
        f"{memory:,.0f} MB; the vectors alone are {4 * 96 * count / 1e6:,.0f} MB."
    )
    rows = [
        [f"{threads}", f"{spread.median:.2f} s", f"{count / spread.median:,.0f}"]
        for threads, spread in shown.items()
    ]
    return markdown_table([["threads", "time", "titles/s"], *rows], left=3)


def thread_gains(bench, case, kinds):
    """(two threads against one: {kind: `Spread`} in training, `Spread` in encoding)."""
    wall = Bench(bench.folder, bench.rounds, bench.steps, "wall", bench.compared)
    training, _ = wall.train(case, kinds, threads=(1, 2))
    seconds = defaultdict(list)
    with Contender("ours") as one, Contender("ours") as two:
        for racer, threads in ((one, 1), (two, 2)):
            racer.ask("load", case=str(case), threads=threads)
            racer.ask("encode", size=16_384, calls=2)
        for _ in range(bench.rounds):
            for name, racer in (("ours", one), ("ours/2", two)):
                answer = racer.ask("encode", size=16_384, calls=1)
                seconds[name].append(answer["wall"][0])
    gains = {kind: training.ratio(kind, base=f"{kind}/2") for kind in kinds}
    return gains, Result(seconds).ratio("ours", base="ours/2")


def thread_section(bench, quick, targets):
    """Two threads against one."""
    note("threads")
    if (os.cpu_count() or 1) < 2:
        return {}
    case = bench.case(logs_of(bench, quick)[REALISTIC])
    gains, bulk = thread_gains(bench, case, ("ours", "best"))
    targets.at_least("training, two threads against one", 1.75, gains["ours"].median)
    targets.at_least("encoding 16,384 sentences, two threads against one", 1.8, bulk.median)
    rows = [
        ["two threads against one", "gain"],
        ["training", times(gains["ours"])],
        ["encoding 16,384 sentences", times(bulk)],
        ["training, PyTorch, best", times(gains["best"])],
    ]
    return {"Threads": markdown_table(rows, left=2)}
