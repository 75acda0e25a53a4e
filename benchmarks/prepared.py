"""Preparing a log and training from it, against training from the log: CPU time and memory.

python benchmarks/prepared.py [LINES]   a log of `large_log.py`, 1,000,000 lines by default

At most 20,000 words have a feature of their own, or the towers would take most of the memory.
Memory is anonymous memory: pages that are mapped from files are not counted, as the system takes
them back when it needs room.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

MEASURED = """
import json, os, sys, threading, time

highest, done = 0, threading.Event()

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1e3

def watch():
    global highest
    while not done.wait(0.02):
        highest = max(highest, anonymous())

import numpy, numba, sentemb
from sentemb.training import trainer
from sentemb.training.batches import preparing
before, thread = anonymous(), threading.Thread(target=watch, daemon=True)
thread.start()
cpu, found = time.process_time(), {}

class Enough(Exception):
    pass

def look(progress):
    if progress.step == 1:
        found["until the first step, CPU s"] = time.process_time() - cpu
    if progress.step == int(sys.argv[4]):
        found["while training, MB"] = anonymous() - before
        raise Enough

def train(source):
    try:
        sentemb.train(
            source, threads=1, epochs=1, hard_negatives=0, max_word_features=20_000,
            on_progress=look,
        )
    except Enough:
        pass

job, log, out = sys.argv[1:4]
if job == "prepare":
    sentemb.prepare_log(log, out)
else:
    train(log if job == "log" else out)
done.set()
thread.join()
found |= {"in all, CPU s": time.process_time() - cpu, "at most, MB": highest - before}
print(json.dumps(found))
"""


def measure(job: str, log: Path, out: Path, steps: int) -> dict[str, float]:
    """The figures of one job in a process of its own."""
    run = subprocess.run(
        [sys.executable, "-c", MEASURED, job, log, out, str(steps)],
        capture_output=True,
        text=True,
    )
    if run.returncode:
        raise RuntimeError(run.stderr)
    found: dict[str, float] = json.loads(run.stdout.splitlines()[-1])
    return found


def main(lines: int = 1_000_000, steps: int = 200) -> None:
    from large_log import write_large_log

    with tempfile.TemporaryDirectory() as folder:
        log, out = Path(folder) / "log.tsv", Path(folder) / "out"
        write_large_log(log, lines)
        print(f"{lines:,} lines, {log.stat().st_size / 1e6:.0f} MB; {steps} steps of training")
        for job in ("prepare", "log", "out"):
            found = measure(job, log, out, steps)
            print(job, *(f"{name} {value:,.1f}" for name, value in found.items()), sep=" | ")
        size = sum(path.stat().st_size for path in out.iterdir())
        print(f"prepared: {size / 1e6:.0f} MB")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
