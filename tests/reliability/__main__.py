"""Run the long checks of reliability and write their counts into docs/reliability.md.

make reliability                       the short ones, 12 minutes on 2 cores
make reliability CHECKS="kills orders" some, long ones too; the page keeps the counts of the others
"""

import signal
import subprocess
import sys
import time
from datetime import date
from pathlib import Path

from pages import read_csv, write_tables

from reliability import (
    determinism,
    exported,
    faces,
    fuzz,
    indexes,
    orders,
    overlays,
    released,
    sequences,
    served,
    tables,
    writers,
)
from reliability.battery import battery
from reliability.count import Count
from reliability.crafted import crafted

ROOT = Path(__file__).parents[2]
# A change in these is a change of what was checked.
CODE = ("src", "cli", "tests")


def _tests(name: str) -> Count:
    """The tests of one file, each as one that was tried."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rf", f"tests/{name}", "-m", "slow or not slow"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    *lines, last = run.stdout.strip().splitlines()
    words = last.replace(",", "").split()
    counts = {
        what: int(words[k - 1]) for k, what in enumerate(words) if k and words[k - 1].isdigit()
    }
    failed = [line for line in lines if line.startswith("FAILED")]
    if run.returncode and not failed:
        failed = [f"{name}: {last}"]
    return Count(name, tried=counts.get("passed", 0) + len(failed), failures=failed)


# What is sampled here has a form in `LONG` that tries more.
CHECKS = {
    "kills": ("SIGKILL at every 10th file-system call of a writer", lambda: writers.killed(10)),
    "errors": ("one of four errors at every 10th such call", lambda: writers.failing(10)),
    "exceptions": ("an exception at the first steps of `encode` and `score_pairs`, and every 20th",
                   lambda: faces.exceptions(every=20)),
    "mutations": ("damaged files, a fifth of them with repaired checksums",
                  lambda: fuzz.fuzz(20_000, seed=1, repaired=4_000)),
    "descriptions": ("other values in the descriptions of an index", indexes.mutated),
    "swaps": ("files of one index or model in another", indexes.swapped),
    "bytes": ("files of tuned indexes and exports that must have the same bytes",
              indexes.same_bytes),
    "crafted": ("crafted prepared logs and pair models, right checksums, used to the end",
                lambda: crafted(1_000, seed=1)),
    "tables": ("crafted Parquet files, imported", lambda: tables.tables(300, seed=1)),
    "released": ("damaged files that released versions wrote",
                 lambda: released.released(1_000, seed=1)),
    "battery": ("every 10th command line", lambda: battery(every=10)),
    "processes": ("answers from threads, forks, processes and pickled copies",
                  lambda: faces.processes_and_threads(rounds=20)),
    "writers": ("two trainings at once; readers while a model is saved",
                lambda: faces.one_writer(5)),
    "outputs": ("every 5th output laid over inputs and over what is not its own",
                lambda: overlays.laid_over(5)),
    "soak": ("random Unicode texts encoded", lambda: faces.soak(300_000)),
    "determinism": ("trainings that must give the same bits, every 11th combination",
                    lambda: determinism.matrix(every=11)),
    "logs": ("forms of a click log that must give the same bits", determinism.sources),
    "requests": ("requests to one server", lambda: served.requests(20_000)),
    "slow": ("requests of others while 300 clients send a byte per second",
             lambda: served.slow_clients(300, 2000)),
    "refreshes": ("SIGKILL at random moments of a refresh, while its shop is searched",
                  lambda: served.killed_refreshing(10)),
    "versions": ("uses of clusters with a worker of another version", served.versions),
    "cache": ("damaged, unwritable, full and other users' kernel caches",
              lambda: _tests("test_kernel_cache.py")),
    "security": ("statements of security.md", lambda: _tests("test_security_page.py")),
}  # fmt: skip
# By name alone.
LONG = {
    "all-kills": ("SIGKILL at every file-system call of a writer", writers.killed),
    "moments": ("SIGKILL at random moments of a writer", lambda: writers.killed_sometime(2_300)),
    "all-errors": ("each of four errors at every such call", writers.failing),
    "all-exceptions": ("an exception at every step of `encode` and `score_pairs`",
                       faces.exceptions),
    "more-mutations": ("damaged files, 20,000 of them with repaired checksums",
                       lambda: fuzz.fuzz(100_000, seed=1, repaired=20_000)),
    "interrupts": ("an exception at every line of a change of an index", indexes.interrupted),
    "more-crafted": ("crafted prepared logs and pair models, right checksums, used to the end",
                     lambda: crafted(4_000, seed=1)),
    "more-tables": ("crafted Parquet files, imported", lambda: tables.tables(4_000, seed=1)),
    "more-released": ("damaged files that released versions wrote",
                      lambda: released.released(20_000, seed=1)),
    "sequences": ("steps of random sequences of changes, with `tune` and `calibrate`",
                  lambda: sequences.sequences(200)),
    "additions": (f"random changes of titles, compared with a new index after {sequences.CHANGES}",
                  lambda: sequences.changes(100_000)),
    "pages": ("queries of pages in int8, against their indexes", lambda: exported.exported(200)),
    "all-battery": ("command lines", battery),
    "more-writers": ("two trainings at once; readers while a model is saved",
                     lambda: faces.one_writer(20)),
    "all-outputs": ("outputs laid over inputs and over what is not theirs", overlays.laid_over),
    "more-soak": ("random Unicode texts encoded", lambda: faces.soak(1_000_000)),
    "training": ("rounds of training and prediction in one process",
                 lambda: faces.trained_soak(400)),
    "all-determinism": ("trainings that must give the same bits", determinism.matrix),
    "more-requests": ("requests to one server", lambda: served.requests(50_000)),
    "changes": ("requests during syncs and reloads, beside 300 slow clients",
                lambda: served.changed_meanwhile(50_000, 300)),
    "starts": ("servers that start during a sync", lambda: served.started_during_syncs(60)),
    "recording": ("searches and clicks answered by servers that are killed",
                  lambda: served.killed_recording(60)),
    "more-refreshes": ("SIGKILL at random moments of a refresh, while its shop is searched",
                       lambda: served.killed_refreshing(60)),
    "records": ("records of searches that are moved, damaged or of another version",
                lambda: _tests("test_search_record.py")),
    "orders": ("orders of commands, each in its own process, on one kernel cache", orders.orders),
}  # fmt: skip
_ALL = CHECKS | LONG


def run(name: str, rows: dict[str, dict[str, str]]) -> bool:
    """Run one check, print it, put its counts into ``rows`` and the page; whether none failed."""
    what, check = _ALL[name]
    print(f"{name}: {what} ...", flush=True)
    began = time.monotonic()
    count = check()
    seconds = time.monotonic() - began
    print(f"  {count.tried:,} tried, {len(count.failures):,} failed, {seconds:,.0f} s")
    for line in [*count.notes[:20], *(f"FAILED {failure}" for failure in count.failures[:20])]:
        print(f"  {line}")
    changed = "+" if _git("diff", "HEAD", "--", *CODE) else ""
    rows[name] = {
        "tried": str(count.tried),
        "failed": str(len(count.failures)),
        "seconds": f"{seconds:.0f}",
        "date": date.today().isoformat(),
        "commit": _git("rev-parse", "--short", "HEAD") + changed,
    }
    write_tables("reliability", {"Counts": table(rows)})
    return not count.failures


def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def table(rows: dict[str, dict[str, str]]) -> list[str]:
    """The counts that are known, as lines of a Markdown table."""
    lines = ["| check | what | tried | failed | seconds | date | commit |"]
    lines += ["| --- | --- | --: | --: | --: | --- | --- |"]
    for name, (what, _) in _ALL.items():
        if name in rows:
            row = rows[name]
            numbers = (f"{int(row[key]):,}" for key in ("tried", "failed", "seconds"))
            cells = [name, what, *numbers, row["date"], f"`{row['commit']}`"]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def main(names: list[str]) -> int:
    """Run the checks ``names``, the short ones if there are none; the exit code."""
    unknown = [name for name in names if name not in _ALL]
    if unknown:
        print(f"unknown check {unknown[0]}; choose from {', '.join(_ALL)}")
        return 2
    rows = {row["check"]: row for row in read_csv("reliability-counts.csv")}
    fine = [run(name, rows) for name in names or CHECKS]
    print(f"{sum(fine)} of {len(fine)} checks passed; the counts are in docs/reliability.md")
    return int(not all(fine))


if __name__ == "__main__":
    # A shell lets jobs in the background ignore Ctrl-C, and their children too; some cases send it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(sys.argv[1:]))
