"""The list of faults fits the code; `make mutants` tries whether the tests notice them."""

import ast
import json
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from mutants import ROOT, Fault, read_faults

FAULTS = read_faults()


@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_a_fault_changes_one_place_and_names_tests_that_exist(fault):
    changed = fault.applied_to((ROOT / fault.file).read_text("utf-8"))
    if fault.file.endswith(".py"):
        ast.parse(changed)
    assert fault.tests
    for tests in fault.tests:
        assert (ROOT / shlex.split(tests)[0].split("::")[0]).is_file(), tests


def test_faults_have_different_names():
    assert max(Counter(map(str, FAULTS)).values()) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("b", "d", "occurs 0 times"), ("a", "d", "occurs 2"), ("c", "c", "itself")],
)
def test_a_fault_that_does_not_fit_the_code_is_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        Fault("file.py", "what", old, new, ("tests",)).applied_to("a c a")


@pytest.mark.slow
def test_the_runner_tells_killed_and_equivalent_ones_and_leaves_the_code_alone(tmp_path):
    before = (ROOT / "src/sentemb/kernels/negatives.py").read_bytes()
    run = subprocess.run(
        [sys.executable, "-m", "mutants", "--only", "titles keep their|for its first title"]
        + ["--jobs", "1", "--json", str(tmp_path / "result.json")],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "2 faults, 1 killed, 1 equivalent, 0 survived"
    outcomes = [found["outcome"] for found in json.loads((tmp_path / "result.json").read_text())]
    assert sorted(outcomes) == ["equivalent", "killed"]
    assert (ROOT / "src/sentemb/kernels/negatives.py").read_bytes() == before
