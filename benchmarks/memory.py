"""Memory of training and encoding on a simulated log of 188,000 pairs, above that of the imports.

python benchmarks/memory.py                 prints a table
python benchmarks/memory.py OTHER_CHECKOUT  with a column for the package in another folder
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

PAIRS = 188_000

# Run in a process of its own, with any version of the package: log, folder for the model.
MEASURE = """
import gc, json, os, resource, sys
import numpy, numba
import sentemb
from sentemb.training import trainer

def now():
    gc.collect()
    return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3

log, folder = sys.argv[1:]
before, found = now(), {}

class Enough(Exception):
    pass

def look(progress):
    if progress.step == 20:
        found["while training"] = now() - before
        raise Enough

try:
    sentemb.train(log, threads=1, hard_negatives=0, epochs=1, on_progress=look)
except Enough:
    pass
found["at most until then"] = peak() - before
print(json.dumps(found))
"""

SAVE = """
import sys
import sentemb
sentemb.train(sys.argv[1], output=sys.argv[2], epochs=1, hard_negatives=0)
print("{}")
"""

ENCODE = """
import json, os, resource, sys
import sentemb
model = sentemb.SentenceEncoder.from_pretrained(sys.argv[2], threads=1)
model.encode("compile")
titles = [line.split("\\t")[1].strip() for line in open(sys.argv[1], encoding="utf-8")]
titles = titles * (600_000 // len(titles) + 1)
page = os.sysconf("SC_PAGE_SIZE")
before = int(open("/proc/self/statm").read().split()[1]) * page / 1e6
vectors = model.encode(titles, side="document")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
size = vectors.nbytes / 1e6
print(json.dumps({f"encoding at most, its result of {size:.0f} MB included": peak - before}))
"""

CHECKPOINT = """
import json, resource, signal, os, sys
import sentemb
from sentemb.training.stopping import Interrupted
log, folder = sys.argv[1:]
settings = dict(output=folder, threads=1, hard_negatives=0, epochs=1)
if not os.path.exists(folder):
    def stop(progress):
        if progress.step == 5:
            os.kill(os.getpid(), signal.SIGINT)
    try:
        sentemb.train(log, on_progress=stop, **settings)
    except Interrupted:
        print("{}")
else:
    class Enough(Exception):
        pass
    def look(progress):
        raise Enough
    try:
        sentemb.train(log, resume=True, on_progress=look, **settings)
    except Enough:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        print(json.dumps({"resuming, imports included": peak}))
"""


def measure(checkout: Path, home: Path) -> dict:
    """Megabytes by what they were needed for, with the package in ``checkout``."""
    python = checkout / ".venv" / "bin" / "python"
    own = home / f"{len(list(home.iterdir()))}"
    found = {}
    for code, name in (
        (MEASURE, "none"),
        (SAVE, "model"),
        (ENCODE, "model"),
        (CHECKPOINT, "stopped"),
        (CHECKPOINT, "stopped"),
    ):
        done = subprocess.run(
            [python, "-c", code, home / "log" / "pairs.tsv", own / name],
            capture_output=True,
            text=True,
            cwd=home,
        )
        if done.returncode:
            raise RuntimeError(done.stderr)
        found |= json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main(others: list[str]) -> None:
    from sentemb.data.simulation.simulator import simulate

    here = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        simulate(home / "log", pairs=PAIRS, dev_queries=10, test_queries=10)
        columns = [measure(checkout, home) for checkout in (here, *map(Path, others))]
    print(f"MB, {PAIRS:,} pairs:", "this version", *others, sep=" | ")
    for what in columns[0]:
        print(what, *(f"{column.get(what, float('nan')):.0f}" for column in columns), sep=" | ")


if __name__ == "__main__":
    main(sys.argv[1:])
