"""Measure again what is stale: whose code, data or defaults have changed since.

evidence.toml names every measurement, what it uses and the command that writes its tables;
docs/results/evidence.csv records when, where and from which code each was made. Stop it at any
time: it continues with the measurement that was interrupted. What a measurement keeps in folders to
continue with is removed first if other code or data made any of it.

The same seed gives the same bits. So a change of the code that should change no figure is checked
by probe.py: it runs on the code of the record and on the present code, on one processor, and if
both compute the same bits, the record is moved to the new code. A record whose own script has
changed is not confirmed, and times are not.

    python benchmarks/evidence.py [NAME ...]     measure NAME, or everything that is stale
    python benchmarks/evidence.py --confirm ...  check by bits, where evidence.toml says so
    python benchmarks/evidence.py --check        name what is stale; exit code 1 if anything is
    python benchmarks/evidence.py --lint         the same; what is stale fails a release only
"""

import argparse
import ast
import csv
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections import defaultdict
from datetime import date
from functools import cache
from importlib.metadata import version
from pathlib import Path

from pages import (
    DATA,
    DOCS,
    MEASURED,
    README,
    RESULTS,
    ROOT,
    fill,
    page_of,
    processor,
    read_csv,
)

from sentemb.system.tables import markdown_table
from sentemb.version import __version__

FILE = "evidence.csv"
KEPT = ROOT / "build" / "evidence.json"
PROBED = ROOT / "build" / "probed"
COLUMNS = (
    "name", "commit", "date", "minutes", "processor", "versions", "code", "data", "confirmed",
)  # fmt: skip


# -- fingerprints ---------------------------------------------------------------------------------


def fingerprint(name, root=ROOT):
    """A hash of the code that a measurement uses; comments, docstrings and layout do not count."""
    files = sorted(files_of(name, root))
    return _digest(f"{path.relative_to(root)} {code_of(path)[0]}" for path in files)


def script(name, root=ROOT):
    """The same for what of this code is in benchmarks/."""
    files = sorted(
        path for path in files_of(name, root) if path.is_relative_to(root / "benchmarks")
    )
    return _digest(f"{path.relative_to(root)} {code_of(path)[0]}" for path in files)


def files_of(name, root=ROOT):
    """The script of a measurement, what else it uses, and every file that these import."""
    # The package imports every public name, each on first use; the others measure nothing.
    apart = ("src/sentemb/__init__.py", "src/sentemb/version.py", "benchmarks/pages.py")
    left_out = {root / path for path in apart} | set((root / "benchmarks").glob("*charts.py"))
    home, todo, files = _modules(root), [], set()
    for used in [f"benchmarks/{MEASURED[name].get('script')}", *MEASURED[name].get("uses", ())]:
        todo += sorted((root / used).rglob("*.py")) or [root / used]
    while todo:
        path = todo.pop()
        if path not in files | left_out and path.is_file():
            files.add(path)
            for module in filter(None, map(home.get, code_of(path)[1])):
                todo += [module, module.with_name("__init__.py")]
    return files


@cache
def _modules(root):
    """The file of every module, and of every public name of sentemb, by its dotted name."""
    home = {}
    for folder, prefix in (
        ("src/sentemb", "sentemb."),
        ("cli", "sentemb.cli."),
        ("benchmarks", ""),
    ):
        for path in (root / folder).rglob("*.py"):
            parts = path.relative_to(root / folder).with_suffix("").parts
            home[(prefix + ".".join(parts)).removesuffix(".__init__")] = path
    for node in ast.walk(ast.parse(home["sentemb"].read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module in home:
            home |= {f"sentemb.{alias.name}": home[node.module] for alias in node.names}
    return home


@cache
def code_of(path):
    """A hash of the syntax tree of a file without docstrings, and the names that it may import."""
    tree, names = ast.parse(path.read_text("utf-8")), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            del node.body[0]
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Attribute):
            names.add(f"{getattr(node.value, 'id', '')}.{node.attr}")
        elif isinstance(node, ast.Constant) and str(node.value).startswith("sentemb."):
            names.add(node.value.partition(":")[0])  # "sentemb.module:Kind", imported on first use
    return _digest([ast.dump(tree)]), sorted(names)


@cache
def data_digest(data_set):
    """A hash of a data set's files; nothing where it is not on this machine."""
    files = sorted(path for path in (DATA / data_set).rglob("*") if path.is_file())
    return _digest(
        f"{path.relative_to(DATA)} {hashlib.sha256(path.read_bytes()).hexdigest()}"
        for path in files
    ) if files else ""  # fmt: skip


def _digest(lines):
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:12]


# -- records --------------------------------------------------------------------------------------


def recorded():
    """{name: row of evidence.csv}."""
    return {row["name"]: row for row in read_csv(FILE)}


def why_stale(name, record):
    """Why a measurement is stale; nothing if it is not."""
    if record is None:
        return "it has no record"
    if record["code"] != fingerprint(name):
        return f"the code that it uses has changed since {record['commit']}"
    if not set(_data(name).split()) <= {*record["data"].split()}:
        return f"its data have changed since {record['commit']}"
    lost = [figure for figure in MEASURED[name].get("figures", ()) if not (DOCS / figure).exists()]
    return f"{lost[0]} is missing" if lost else ""


def _data(name):
    """``set=hash`` for the data sets of a measurement that this machine has."""
    digests = {name: data_digest(name) for name in MEASURED[name].get("data", ())}
    return " ".join(f"{name}={digest}" for name, digest in digests.items() if digest)


def measure(name):
    """Run a measurement and record it; its exit code."""
    print(f"{name}: {MEASURED[name]['command']}", flush=True)
    remove_outdated(name)
    before, began = fingerprint(name), time.monotonic()
    code = _run(MEASURED[name]["command"], ROOT)
    if code == 0:
        _record(name, before, (time.monotonic() - began) / 60)
    return code


def _run(command, folder):
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "ROOT": str(ROOT)}
    return subprocess.call(command, shell=True, cwd=folder, env=environment)


def confirm(names):
    """Record measurements as those of the present code where theirs computes the same bits.

    Returns the exit code: 0 if all of them are confirmed.
    """
    rows, by_commit, confirmed, trees = recorded(), defaultdict(list), [], {}
    for name in names:
        by_commit[rows[name]["confirmed"] or rows[name]["commit"]].append(name)
    for commit, named in by_commit.items():
        if commit.endswith("+"):
            print(f"{', '.join(named)}: measured with changes that no commit has")
            continue
        tree = _tree_of(commit)
        same = [name for name in named if script(name, tree) == script(name)]
        for name in sorted({*named} - {*same}):
            print(f"{name}: its script has changed since {commit}")
        if not same:
            continue
        # Commits with the same code of the package share what was probed.
        old, new = _bits(trees.setdefault(_git("rev-parse", f"{commit}:src"), tree)), _bits(ROOT)
        changed = [family for family in old if new.get(family) != old[family]]
        said = f"other bits than {commit}: {', '.join(changed)}" if changed else "confirmed"
        print(f"{', '.join(same)}: {said}", flush=True)
        confirmed += [] if changed else same
    for name in confirmed:
        rows[name] |= {"code": fingerprint(name), "data": _data(name)}
        rows[name] |= {"confirmed": _git("rev-parse", "--short", "HEAD")}
    write(rows)
    return int(len(confirmed) < len(names))


def _tree_of(commit):
    """The code of a commit, in a folder."""
    folder = PROBED / commit
    if not folder.exists():
        packed = subprocess.run(
            ["git", "archive", commit, "src", "cli", "benchmarks"],
            cwd=ROOT, capture_output=True, check=True,
        ).stdout  # fmt: skip
        folder.mkdir(parents=True)
        subprocess.run(["tar", "-x", "-C", folder], input=packed, check=True)
    return folder


@cache
def _bits(tree):
    """What the present probe.py prints of the code in a folder: {family: hash}."""
    print(f"probing {tree}", flush=True)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", ROOT / "benchmarks" / "probe.py"],
        env={**os.environ, "PYTHONPATH": str(tree / "src")},
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    if done.returncode:
        return {"the probe fails on": str(tree)}
    return dict(line.rsplit(",", 1) for line in done.stdout.splitlines())


def remove_outdated(name, root=ROOT, kept=KEPT):
    """Remove what a measurement would continue with if other code or data made any of it.

    ``kept`` has {pattern of paths: {measurement: its code and data}} of all that wrote there.
    """
    known = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
    for place in MEASURED[name].get("keeps", ()):
        makers = known.setdefault(place, {})
        if not makers or any(made != _state(maker) for maker, made in makers.items()):
            makers.clear()
            for path in root.glob(place):
                if path.is_dir():
                    shutil.rmtree(path)
                else:
                    path.unlink()
        makers[name] = _state(name)
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps(known, indent=1), "utf-8")


def _state(name):
    """The hashes of the code and data of a measurement; empty if evidence.toml no longer has it."""
    return f"{fingerprint(name)} {_data(name)}" if name in MEASURED else ""


def _record(name, code, minutes):
    row = {
        "name": name,
        "commit": _git("rev-parse", "--short", "HEAD")
        + ("+" if _git("status", "--porcelain", "src", "cli", "benchmarks") else ""),
        "date": date.today().isoformat(),
        "minutes": f"{minutes:.0f}",
        "processor": f"{processor()}, {os.cpu_count()} processors",
        "versions": f"Python {sys.version.split()[0]}, "
        + ", ".join(f"{package} {version(package)}" for package in ("numpy", "numba")),
        "code": code,
        "data": _data(name),
        "confirmed": "",
    }
    write(recorded() | {name: row})


def write(rows):
    """Write the records, {name: row}, into evidence.csv, docs/benchmarks.md and each page."""
    with open(RESULTS / FILE, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[name] for name in MEASURED if name in rows)
    fill(DOCS / "benchmarks.md", {"measured": table()})
    for page in {page_of(name) for name in MEASURED}:
        fill(page, {"record": record_of(page)})


def record_of(page):
    """The records of the measurements that write a page, as lines of Markdown."""
    columns, records = ("commit", "date", "processor", "minutes"), recorded()
    rows = [
        [name, *_cells(records.get(name, {}), *columns)]
        for name in MEASURED
        if page_of(name) == page
    ]
    return list(markdown_table([["measurement", *columns], *rows], left=4))


def _cells(record, *columns):
    """Cells for some columns of a record; after the commit, that which has the same bits."""
    cells = {column: record.get(column) or "-" for column in columns}
    if record.get("confirmed"):
        cells["commit"] += f", confirmed {record['confirmed']}"
    return cells.values()


def _git(*arguments):
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip()


def table():
    """All measurements with their pages and records, as lines of Markdown."""
    rows, records = [["measurement", "what", "command", "commit", "date", "minutes"]], recorded()
    for name, declared in MEASURED.items():
        record = records.get(name, {})
        rows.append([
            f"[{name}]({page_of(name).relative_to(DOCS)})",
            declared["what"],
            f"`{declared['command']}`",
            *_cells(record, "commit", "date", "minutes"),
        ])  # fmt: skip
    return markdown_table(rows, left=5)


# -- numbers in prose -----------------------------------------------------------------------------

_FILLED = re.compile(r"<!-- (\S+):begin -->(.*?)<!-- \1:end -->", re.S)
# Code, formulas, addresses and versions.
_NOT_PROSE = re.compile(
    r"```.*?```|`[^`\n]*`|\$[^$\n]*\$|\]\([^)]*\)|(arXiv|Python|version) [\d.]+", re.S
)
_FRACTION = re.compile(r"(?<![\w.])\d*\.\d\d+(?![\w.]\d)")


def unmeasured(text):
    """Numbers with two or more decimals in the prose of a page that no script has written."""
    values = _values()
    return [
        number
        for number in _FRACTION.findall(_NOT_PROSE.sub("", _FILLED.sub("", text)))
        if f"{float(number):.{len(number.partition('.')[2])}f}" not in values
    ]


@cache
def _values():
    """All numbers of CSV files and filled sections with 2 to 4 decimals, and in percent."""
    texts = [path.read_text("utf-8") for path in RESULTS.rglob("*.csv")]
    texts += [body for page in prose() for _, body in _FILLED.findall(page.read_text("utf-8"))]
    numbers = {number for text in texts for number in re.findall(r"\d[\d,]*\.?\d*|\.\d+", text)}
    values = (float(number.replace(",", "")) for number in numbers)
    return {f"{v:.{n}f}" for value in values for v in (value, 100 * value) for n in range(2, 5)}


def prose():
    """README and the pages of docs/ that state results."""
    return [README, *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("*/*.md"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASURED))
    parser.add_argument("--check", action="store_true", help="measure nothing; name what is stale")
    parser.add_argument("--lint", action="store_true", help="--check, lenient between releases")
    parser.add_argument("--confirm", action="store_true", help="check by bits, NAME or all stale")
    options = parser.parse_args()
    if unknown := set(options.names) - set(MEASURED):
        parser.error(f"no measurement {min(unknown)}; choose from {', '.join(MEASURED)}")
    records = recorded()
    reasons = {name: why_stale(name, records.get(name)) for name in options.names or MEASURED}
    stale = [name for name, reason in reasons.items() if reason]
    minutes = {name: (records.get(name) or {}).get("minutes") for name in stale}
    for name in stale:
        took = f"; {minutes[name]} minutes" if minutes[name] else ""
        print(f"{page_of(name).relative_to(ROOT)}, {name}: {reasons[name]}{took}")
    known = [int(took) for took in minutes.values() if took]
    print(f"{sum(known)} minutes for {len(known)} of {len(stale)}, as recorded", flush=True)
    if options.check or options.lint:
        numbers = [
            (page, number) for page in prose() for number in unmeasured(page.read_text("utf-8"))
        ]
        for page, number in numbers:
            print(f"{page.relative_to(ROOT)}: no CSV has the {number} of its text")
        fresh = len(reasons) - len(stale)
        print(f"{fresh} of {len(reasons)} measurements are those of the present code")
        is_strict = options.check or __version__.replace(".", "").isdigit()
        if stale and options.lint and is_strict:
            print(f"{__version__} is a release; further work needs a version such as 1.0.1.dev0")
        return int(bool(numbers or (stale and is_strict)))
    if options.confirm:
        by_bits = [name for name in stale if name in records and MEASURED[name].get("same_bits")]
        return confirm(by_bits)
    for name in options.names or stale:
        if measure(name):
            return 1
    return _run("python benchmarks/charts.py", ROOT)  # draws and tabulates what is in the CSV


if __name__ == "__main__":
    sys.exit(main())
