"""The faults fit the code; `make mutants` tries whether the tests notice them."""

import ast
import json
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from mutants import ROOT, Fault, read_faults
from mutants.trees import faults_of, read_tree_faults


@pytest.fixture(scope="module")
def faults():
    return [*read_faults(), *read_tree_faults()]


def test_a_fault_changes_one_place_and_names_tests_that_exist(faults):
    # All in one test: 700 tests would take longer to collect and to report than to run.
    wrong = [f"{fault}: {what}" for fault in faults if (what := wrong_with(fault))]
    assert not wrong, "\n" + "\n".join(wrong)


def wrong_with(fault):
    try:
        changed = fault.applied_to((ROOT / fault.file).read_text("utf-8"))
        if fault.file.endswith(".py"):
            ast.parse(changed)
    except (ValueError, SyntaxError) as error:
        return str(error)
    files = [ROOT / shlex.split(tests)[0].split("::")[0] for tests in fault.tests]
    lost = [str(file) for file in files if not file.is_file()]
    return ", ".join(lost) if files else "no tests"


def test_faults_have_different_names(faults):
    assert max(Counter(map(str, faults)).values()) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [("b", "d", "occurs 0 times"), ("a", "d", "occurs 2"), ("c", "c", "itself")],
)
def test_a_fault_that_does_not_fit_the_code_is_refused(old, new, message):
    with pytest.raises(ValueError, match=message):
        Fault("file.py", "what", old, new, ("tests",)).applied_to("a c a")


FUNCTION = '''
class A:
    def f(self, x: int = 3) -> int:
        """Text of 3."""
        if x < 2 and not self.a:
            raise ValueError(f"{x - 1}")
        self.b.append("é" * x)
        return [x, 4][x]
'''


def test_faults_of_a_syntax_tree():
    faults = faults_of("src/sentemb/a.py", FUNCTION)
    found = {str(fault).removeprefix("a.py: A.f: "): fault.applied_to(FUNCTION) for fault in faults}
    assert list(found) == [
        "x < 2 and not self.a -> (x < 2 or not self.a)",
        "x < 2 -> (x <= 2)",
        "x < 2 -> (x < 3)",
        "not self.a -> (self.a)",
        'self.b.append("é" * x) -> pass',
        "\"é\" * x -> ('é' + x)",
        "[x, 4] -> ([x, 5])",
    ]
    assert all(ast.parse(source) and source != FUNCTION for source in found.values())
    assert FUNCTION.replace("[x, 4]", "([x, 5])") == found["[x, 4] -> ([x, 5])"]


def test_the_same_seed_draws_the_same_faults():
    drawn = [list(map(str, read_tree_faults(seed))) for seed in ("0", "0", "1")]
    assert drawn[0] == drawn[1] != drawn[2] and len(drawn[0]) == len(drawn[2])


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
