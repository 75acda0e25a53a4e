"""Put faults into a copy of the project, one at a time, and run the tests that must notice.

They are those of `faults.toml` and those drawn from the modules of `modules.toml`.

A fault is killed if a test fails, crashes or takes too long. The exit code is 1 if one survives or
if one that is listed as equivalent is killed.
"""

import argparse
import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from queue import SimpleQueue

from mutants import ROOT, read_faults
from mutants.trees import read_tree_faults

COPIED = ("src", "cli", "tests", "benchmarks", "docs", "setup.cfg")
SECONDS = 300  # for one run of pytest; kernels may have to be compiled
OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "--hypothesis-seed=0", "--tb=no")
PROBE = "import sentemb.cli, sentemb.training.trainer as t; print(t.__file__, sentemb.cli.__file__)"


NOT_RUN = (4, 5)  # pytest: wrong usage, no tests


class Broken(Exception):
    """The list of faults or the tests are not fit for a run."""


class Tree:
    """A copy of the project whose code is what its tests import.

    Parameters
    ----------
    folder : Path
        Empty, or not there yet.
    """

    def __init__(self, folder):
        self.root = folder / "project"
        self._cache = folder / "cache"
        self._faults = 0
        for name in COPIED:
            if (ROOT / name).is_dir():
                skipped = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, self.root / name, ignore=skipped)
            else:
                shutil.copy2(ROOT / name, self.root / name)
        # An editable installation would find sentemb.cli in the original.
        (self.root / "src" / "sentemb" / "cli").symlink_to(self.root / "cli")
        self._probe()

    def _probe(self):
        imported = self._run([sys.executable, "-c", PROBE], self._cache).stdout.split()
        expected = ["src/sentemb/training/trainer.py", "src/sentemb/cli/__init__.py"]
        if imported != [str(self.root / name) for name in expected]:
            raise Broken(f"the tests would import {imported}, not the copy in {self.root}")

    def _run(self, command, cache, seconds=SECONDS):
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root / "src"),
            "NUMBA_CACHE_DIR": str(cache),
        }
        with subprocess.Popen(
            command, cwd=self.root, env=environment, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        ) as process:  # fmt: skip
            try:
                output, _ = process.communicate(timeout=seconds)
            except BaseException as error:
                os.killpg(process.pid, signal.SIGKILL)  # what the tests have started, too
                process.communicate()
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                output = None
        return subprocess.CompletedProcess(command, process.returncode, output)

    def failure(self, tests, cache=None, seconds=SECONDS):
        """The first test that fails in one run of pytest, or how else it fails, or None.

        Parameters
        ----------
        tests : str
            Arguments of pytest.
        cache : Path, optional
            Where kernels are kept, by default with those of the code without fault.
        seconds : float
            What takes longer fails.
        """
        command = [sys.executable, "-m", "pytest", *OPTIONS, *shlex.split(tests)]
        done = self._run(command, cache or self._cache, seconds)
        if done.stdout is None:
            return f"more than {seconds} seconds"
        if done.returncode == 0:
            return None
        if done.returncode in NOT_RUN:
            raise Broken(f"pytest {tests} runs no test")
        if done.returncode < 0:
            return f"signal {-done.returncode}"
        named = re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", done.stdout, re.MULTILINE)
        return named[0] if named else f"exit code {done.returncode}"

    @contextlib.contextmanager
    def holding(self, fault):
        """The copy with ``fault`` in it; yields the cache of its kernels."""
        path = self.root / fault.file
        source, before = path.read_text("utf-8"), path.stat()
        path.write_text(fault.applied_to(source), "utf-8")
        # Python knows what it has compiled by size and whole second, so no two may share one.
        self._faults += 1
        written = before.st_mtime - self._faults
        os.utime(path, (written, written))
        try:
            if fault.file.startswith("src/sentemb/kernels/"):
                with tempfile.TemporaryDirectory(dir=self.root.parent) as cache:
                    yield Path(cache)
            else:
                yield self._cache
        finally:
            path.write_text(source, "utf-8")
            os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    def try_fault(self, fault):
        """The first test that fails with ``fault``, None, or a `Broken`; and the seconds taken."""
        began = time.monotonic()
        with self.holding(fault) as cache:
            failures = (self.failure(tests, cache) for tests in fault.tests)
            try:
                killer = next(filter(None, failures), None)
            except Broken as broken:
                killer = broken
        return killer, time.monotonic() - began


def main():
    options = _options()
    listed = [*read_faults(), *read_tree_faults(options.seed)]
    faults = [fault for fault in listed if re.search(options.only, str(fault), re.IGNORECASE)]
    if not faults:
        raise Broken(f"no fault has {options.only!r} in its file and name")
    for fault in faults:
        fault.applied_to((ROOT / fault.file).read_text("utf-8"))
    with (
        tempfile.TemporaryDirectory(prefix="mutants-") as folder,
        ThreadPoolExecutor(options.jobs) as pool,
    ):
        trees = SimpleQueue()
        for number in range(options.jobs):
            trees.put(Tree(Path(folder) / str(number)))

        def with_a_tree(job, *arguments, **more):
            tree = trees.get()
            try:
                return job(tree, *arguments, **more)
            finally:
                trees.put(tree)

        try:
            runs = _joined(tests for fault in faults for tests in fault.tests)
            print(f"{len(runs)} files of tests without any fault", flush=True)
            checks = [
                pool.submit(with_a_tree, Tree.failure, tests, seconds=4 * SECONDS) for tests in runs
            ]
            for check in checks:
                if failure := check.result():
                    raise Broken(f"without any fault: {failure}")
            tries = {pool.submit(with_a_tree, Tree.try_fault, fault): fault for fault in faults}
            results = []
            for done in as_completed(tries):
                results.append(_result(tries[done], *done.result()))
                print(_line(results[-1]), flush=True)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return _report(results, options.json)


def _options():
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--jobs", type=int, default=2, help="faults tried at a time")
    parser.add_argument("--only", default="", metavar="PATTERN", help="in a fault's file and name")
    parser.add_argument("--seed", default="0", help="draw other faults from the modules")
    parser.add_argument("--json", metavar="FILE", help="write the result there")
    options = parser.parse_args()
    if options.jobs < 1:
        parser.error("--jobs must be at least 1")
    return options


def _joined(runs):
    """Arguments of pytest for all tests of some runs, one run for each file."""
    chosen = {}
    for tests in runs:
        file, *options = shlex.split(tests)
        if options and options[0] != "-k":
            raise Broken(f"{tests!r} is not a file of tests, or one with -k and an expression")
        chosen.setdefault(file, set()).add(options[1] if options else "test")
    return [
        f"{file} -k '{' or '.join(f'({one})' for one in sorted(expressions))}'"
        for file, expressions in sorted(chosen.items())
    ]


def _result(fault, killer, seconds):
    if isinstance(killer, Broken):
        outcome = "BROKEN"
    elif fault.equivalent:
        outcome = "NOT EQUAL" if killer else "equivalent"
    else:
        outcome = "killed" if killer else "SURVIVED"
    return {
        "fault": str(fault),
        "outcome": outcome,
        "why": str(killer or fault.equivalent or "no test fails"),
        "seconds": round(seconds, 1),
    }


def _line(result):
    return "{outcome:10} {seconds:5.1f} s  {fault}  [{why}]".format(**result)


def _report(results, path):
    def count(outcome):
        return sum(result["outcome"] == outcome for result in results)

    line = "{} faults, {} killed, {} equivalent, {} survived".format(
        len(results), *map(count, ("killed", "equivalent", "SURVIVED"))
    )
    for outcome, meaning in (
        ("NOT EQUAL", "killed though listed as equivalent"),
        ("BROKEN", "without any test"),
    ):
        if count(outcome):
            line += f", {count(outcome)} {meaning}"
    print(line)
    if path:
        Path(path).write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    return int(any(result["outcome"] not in ("killed", "equivalent") for result in results))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Broken, ValueError) as error:
        sys.exit(f"mutants: {error}")
