"""Whole trainings and start-up: sections of `speed.py`."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from contenders import Contender
from quality import sentemb
from rounds import Spread, note, real_log
from sif_speed import COMMAND, in_process
from speed_training import PAIRS, REAL

from sentemb.system.tables import markdown_table
from sentemb.training.towers.settings import HARD_FROM_EPOCH

EPOCHS = 10
# Parts of a training around its steps.
AROUND = ("reading", "vocabulary", "planning", "saving")
COLD_PAIRS = 1_000


def job_section(bench, quick, targets):
    """A whole training on the synthetic log, reading, and the defaults on a real log."""
    note("whole job")
    log = str(bench.realistic(20_000 if quick else PAIRS))
    with Contender("ours") as ours:
        ours.ask("whole_job", log=str(bench.realistic(10_000)), epochs=1, threads=1)  # compiles
        reads = [ours.ask("read", log=log) for _ in range(bench.rounds)]
        epochs = 1 if quick else EPOCHS
        job = ours.ask("whole_job", log=log, epochs=epochs, threads=None)
    speed = Spread.of([read["lines"] / read["wall"] for read in reads])
    share = sum(job.get(part, 0) for part in AROUND) / job["whole"]
    what = "reading, vocabulary, planning and saving, share of a training"
    targets.at_most(what, 10, 100 * share, "%")
    targets.at_least("reading a log", 200_000, speed.median, "lines/s")
    note(
        f"Reading, vocabulary, planning and saving together: {100 * share:.1f} %. Reading alone: "
        f"{speed.median:,.0f} lines/s ({speed.least:,.0f}–{speed.most:,.0f})."
    )
    return {"The whole job": part_table(job)} | real_job_tables(quick, targets)


def part_table(job):
    parts = sorted(((n, s) for n, s in job.items() if s >= 0.005), key=lambda item: -item[1])
    shares = [[name, f"{s:.2f} s", f"{100 * s / job['whole']:.1f} %"] for name, s in parts]
    return markdown_table([["part", "time", "share"], *shares])


def real_job_tables(quick, targets):
    """`sentemb train` with the defaults on a real log, as a user runs it."""
    note(f"whole job: {REAL}")
    log = real_log(REAL)
    what, target = f"`sentemb train` on {REAL}, defaults and a dev set", 18
    if log is None:
        targets.not_measured(what, f"at most {target}", "s")
        return {}
    dev = log.parent / "dev"
    short = ["--epochs", "1"] if quick else []
    commands = {
        "judged dev set, ranker": ["--dev", dev],
        "judged dev set, `--no-ranker`": ["--dev", dev, "--no-ranker"],
        "no dev set": [],
    }
    rows = [["`sentemb train`", "time", "peak memory"]]
    with tempfile.TemporaryDirectory() as folder:
        # Compiles everything, the first look-up of hard negatives included.
        few = "1" if quick else str(HARD_FROM_EPOCH)
        sentemb("train", log, "--dev", dev, "--epochs", few, "-o", f"{folder}/model")
    for name, options in commands.items():
        with tempfile.TemporaryDirectory() as folder:
            model = f"{folder}/model"
            # Not `sentemb`, whose peak would be at least that of this process.
            seconds, peak, _ = in_process(COMMAND, "train", log, *options, *short, "-o", model)
        rows.append([name, f"{seconds:.1f} s", f"{peak:,.0f} MB"])
        if dev in options:
            label = ", without a ranker" if "--no-ranker" in options else ""
            targets.at_most(what + label, target, seconds, "s")
    with Contender("ours") as ours:
        details = {"epochs": 1 if quick else None, "threads": None, "preset": None}
        job = ours.ask("whole_job", log=str(log), dev=str(dev), **details)
    return {
        f"The defaults on {REAL}": markdown_table(rows),
        f"Parts of the defaults on {REAL}": part_table(job),
    }


def start_section(bench, quick, targets):
    """Compiling, without and with the cache; importing."""
    note("start-up")
    rows = [["step", "cold", "cached"]]

    def add(what, seconds, target=None):
        cold, cached = seconds
        rows.append([what, f"{cold:.1f} s", f"{cached:.2f} s"])
        if target is not None:
            targets.at_most(f"compiling: {what}", target, cold - cached, "s")
            targets.at_most(f"from the cache: {what}", 1, cached, "s")

    add("first training step, defaults", first_step(bench), 10)
    add("first texts encoded, defaults", first_encoding(bench), 5)
    log = bench.realistic(COLD_PAIRS)
    add(f"`sentemb train`, {COLD_PAIRS:,} pairs, the defaults", first_training(log))
    for name, seconds in first_uses(log).items():
        add(f"`sentemb {name}`", seconds)
    bare = seconds_of("-c", "pass")
    add("`import sentemb`", (seconds_of("-c", "import sentemb"),) * 2)
    add("`sentemb --help`", (seconds_of("-m", "sentemb", "--help"),) * 2)
    add("Python alone", (bare,) * 2)
    return {"Start-up": markdown_table(rows)}


def first_step(bench):
    """Seconds that kernels add to the first step of a training: (cold, cached)."""
    case = str(bench.case(bench.realistic(COLD_PAIRS), preset=None))
    spent = []
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            with Contender("ours", {"NUMBA_CACHE_DIR": cache}) as ours:
                ours.ask("read", log=str(bench.realistic(COLD_PAIRS)))  # imports what all import
                marks = [ours.seconds(bench.clock)]
                for _ in range(2):
                    ours.ask("load", case=case)
                    ours.ask("train", steps=1)
                    marks.append(ours.seconds(bench.clock))
                first, second = np.diff(marks)
                spent.append(float(first - second))
    cold, cached = spent
    return cold, max(0.0, cached)


def first_encoding(bench):
    """Seconds until the first texts are encoded, the model loaded: (cold, cached)."""
    spent = []
    with tempfile.TemporaryDirectory() as folder:
        model, cache = Path(folder) / "model", Path(folder) / "cache"
        sentemb("train", bench.realistic(COLD_PAIRS), "-o", model, "--epochs", 1)
        for _ in range(2):
            with Contender("ours", {"NUMBA_CACHE_DIR": str(cache)}) as ours:
                spent.append(ours.ask("first_texts", model=str(model))[bench.clock])
    return tuple(spent)


def first_training(log):
    """Seconds of a short `sentemb train`: (cold, cached)."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["train", str(log), "--epochs", "3", "--dev", "5%", "-o", f"{folder}/model"]
        return cold_and_cached(*command, "--force")


def first_uses(log):
    """Seconds of the commands that use a model with a ranker: (cold, cached) by name."""
    with tempfile.TemporaryDirectory() as folder:
        model, index, titles = (f"{folder}/{name}" for name in ("model", "index", "titles.tsv"))
        lines = Path(log).read_text().splitlines()
        listed = dict.fromkeys(line.split("\t")[1] for line in lines)
        query = lines[0].split("\t")[0]
        Path(titles).write_text("".join(f"d{k}\t{title}\n" for k, title in enumerate(listed)))
        sentemb("train", log, "--epochs", 1, "--dev", "5%", "-o", model)
        sentemb("index", model, titles, "-o", index)
        commands = {
            "search": [index, query],
            "score": [model, query, *list(listed)[:2]],
            "encode": [model, titles, "--ids", "-o", f"{folder}/titles.npy", "--force"],
        }
        return {name: cold_and_cached(name, *given) for name, given in commands.items()}


def cold_and_cached(*command):
    """Seconds of a command of `sentemb`, without and with compiled kernels."""
    spent = []
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(2):
            began = time.monotonic()
            subprocess.run(
                [sys.executable, "-m", "sentemb", *command],
                check=True,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "NUMBA_CACHE_DIR": cache},
            )
            spent.append(time.monotonic() - began)
    return tuple(spent)


def seconds_of(*command):
    """Median time of running Python."""
    spent = []
    for _ in range(5):
        began = time.monotonic()
        subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL)
        spent.append(time.monotonic() - began)
    return float(np.median(spent))
