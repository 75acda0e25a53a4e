"""The parts of the benchmarks that reach into the package still find what they measure."""

from pathlib import Path

import pytest
from helpers import run_python

FOLDER = Path(__file__).parents[1] / "benchmarks"

# In a process of its own: names such as `pages` and `floor` stay out of other tests.
_WHOLE_JOB = """
import json, sys
sys.path.insert(0, sys.argv[1])
from synthetic import write_log
from whole_job import measure_reading, measure_whole_job

write_log(sys.argv[2], 200, trigrams=500)
seconds = measure_whole_job(sys.argv[2], 1, 1)
print(json.dumps([sorted(seconds), measure_reading(sys.argv[2])["lines"]]))
"""

_SIDE = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from floor import operations_and_bytes
from synthetic import write_log
from our_side import Ours

folder = Path(sys.argv[2])
write_log(folder / "log.tsv", 600, trigrams=500)
(folder / "case.json").write_text(
    json.dumps({"log": str(folder / "log.tsv"), "settings": {"cells": 4, "batch_size": 64}})
)
ours = Ours(folder, 1)
losses = [ours.train_step() for _ in range(3)]
assert all(0 < loss < 10 for loss in losses)
assert ours.encode(ours.titles()[:3]).shape == (3, 4)
assert ours.prepare(folder)["pairs"] == 600
assert min(operations_and_bytes(ours.counts(2)).values()) > 0
print(sorted(ours.profile(1)))
"""


def test_a_whole_training_is_measured_by_part(tmp_path):
    done = run_python(_WHOLE_JOB, FOLDER, tmp_path / "log.tsv", check=True)
    for part in ("reading", "vocabulary", "planning", "training", "saving", "whole"):
        assert f'"{part}"' in done.stdout
    assert done.stdout.rstrip().endswith("200]")


def test_our_side_of_the_speed_benchmark_runs(tmp_path):
    done = run_python(_SIDE, FOLDER, tmp_path, check=True)
    assert "everything else" in done.stdout and "lstm_backward" in done.stdout


# The package that is a contender, and the benchmarks that import it.
CONTENDERS = {"torch": ("torch_models", "pair_speed", "transformer"), "faiss": ("index_speed",)}


@pytest.mark.parametrize("contender", [None, *CONTENDERS])
def test_all_benchmarks_import(contender):
    if contender:
        pytest.importorskip(contender)
    needing = {name: package for package, names in CONTENDERS.items() for name in names}
    names = [path.stem for path in sorted(FOLDER.glob("*.py"))]
    some = [name for name in names if needing.get(name) == contender]
    # One process for all: most of the time goes into importing the same packages.
    code = f"""
import importlib, sys, traceback
sys.path.insert(0, {str(FOLDER)!r})
failed = []
for name in {some}:
    try:
        importlib.import_module(name)
    except Exception:
        failed.append(name)
        traceback.print_exc()
sys.exit(f"these do not import: {{failed}}" if failed else 0)
"""
    assert run_python(code).returncode == 0
