"""How fast training and encoding are, compared with PyTorch and with the machine's own limits.

Contenders are separate processes that take turns; every ratio compares neighbouring turns. Writes
docs/results/speed.md, and into docs/developer.md the targets with what was measured. The sections
are in `speed_training`, `speed_encoding`, `speed_cores`, `speed_jobs`, `wide` and `growth`.

Each section that is measured is kept in build/speed. A later run of the same package measures what
is missing, so one failing section does not cost the others.

    python benchmarks/speed.py [--quick] [--only train,encode] [--clock cpu]
"""

import argparse
import hashlib
import importlib.util
import json
import sys
import tempfile
import time
from pathlib import Path

from growth import growth_section
from pages import DEVELOPER, RESULTS, ROOT, fill, machine, print_tables, read_csv, write_tables
from rounds import Bench, note
from speed_cores import cores_section
from speed_encoding import encode_section, thread_section
from speed_jobs import job_section, start_section
from speed_training import (
    defaults_section,
    floor_section,
    log_section,
    peer_section,
    train_section,
)
from targets import Targets
from wide import product_section

from sentemb.system.tables import markdown_table

# Functions of a `Bench`, whether the run is quick, and the `Targets`: {heading: table}.
SECTIONS = {
    "logs": log_section,
    "train": train_section,
    "peers": peer_section,
    "defaults": defaults_section,
    "floor": floor_section,
    "encode": encode_section,
    "threads": thread_section,
    "cores": cores_section,
    "job": job_section,
    "start": start_section,
    "products": product_section,
    "growth": growth_section,
}

KEPT = ROOT / "build" / "speed"


def package_hash():
    """A hash of the package: what was measured of another one does not count."""
    digest = hashlib.sha256()
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def kept_section(name, clock):
    """(tables, rows of targets) of a section that was measured before; None without one."""
    path = KEPT / f"{name}.json"
    if not path.exists():
        return None
    kept = json.loads(path.read_text(encoding="utf-8"))
    mine = kept["package"] == package_hash() and kept["clock"] == clock
    return (kept["tables"], kept["targets"]) if mine else None


def keep_section(name, clock, tables, targets):
    """Write what was measured, for `kept_section`."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = {"package": package_hash(), "clock": clock, "tables": tables, "targets": targets}
    (KEPT / f"{name}.json").write_text(json.dumps(kept, indent=1), encoding="utf-8")


def add_look_up(targets):
    """Add the target of `look_up.py`, with what that script measured last."""
    seconds = [
        float(value.removesuffix(" s"))
        for file in sorted(RESULTS.glob("look-up-*.csv"))
        for row in read_csv(file.name)
        for name, value in row.items()
        if row["titles"] == "1000000" and name.startswith("by clusters")
    ]
    what = "looking up hard negatives, 1,000,000 queries and titles"
    if seconds:
        targets.at_most(what, 60, max(seconds), "s")
    else:
        targets.not_measured(what, "at most 60", "s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a short run that writes nothing")
    parser.add_argument("--only", help=f"measure some of {','.join(SECTIONS)} again")
    parser.add_argument(
        "--clock", choices=("wall", "cpu"), default="wall", help="cpu for a machine in use"
    )
    parser.add_argument(
        "--folder", type=Path, help="for logs and cases; by default a temporary one"
    )
    options = parser.parse_args()
    asked = options.only.split(",") if options.only else []
    if set(asked) - set(SECTIONS):
        parser.error(f"sections are {', '.join(SECTIONS)}")
    if importlib.util.find_spec("torch") is None:
        sys.exit("PyTorch is missing; run `make bench`, or pip install 'sentemb[bench]'")
    rounds, steps, compared = (2, 2, 6) if options.quick else (5, 4, 20)
    began = time.monotonic()
    found = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        bench = Bench(folder, rounds, steps, options.clock, compared)
        for name in asked or SECTIONS:
            kept = None if asked or options.quick else kept_section(name, options.clock)
            if kept is None:
                targets, section_began = Targets(), time.monotonic()
                measured = SECTIONS[name](bench, options.quick, targets)
                tables = {heading: list(lines) for heading, lines in measured.items()}
                kept = tables, targets.rows[1:]
                note(f"{name}: {time.monotonic() - section_began:.0f} s")
                if not options.quick:
                    keep_section(name, options.clock, *kept)
            found[name] = kept
            print_tables(kept[0])
    note(f"{time.monotonic() - began:.0f} s")
    if options.quick or options.only:
        rows = [row for _, targets in found.values() for row in targets]
        print("\n".join(markdown_table([Targets().rows[0], *rows])))
    else:
        write_page(found)


def write_page(found):
    """Write docs/results/speed.md and the targets in docs/developer.md.

    Parameters
    ----------
    found : dict
        (tables, rows of targets) of every section.
    """
    tables, targets = {}, Targets()
    for section, rows in found.values():
        tables |= section
        targets.rows += rows
    add_look_up(targets)
    write_tables("speed", tables, machine("numpy", "numba", "torch"))
    fill(DEVELOPER, {"targets": [f"Machine: {machine()}.", "", *markdown_table(targets.rows)]})


if __name__ == "__main__":
    main()
