"""Measure again what is stale: whose code, data or defaults have changed since.

evidence.toml names every measurement, what it uses and the command that writes its tables;
docs/results/evidence.csv records when, where and from which code each was made. Stop it at any
time: it continues with the measurement that was interrupted. What a measurement keeps in folders to
continue with is removed first if other code or data made any of it.

The same seed gives the same bits. So a change of the code that should change no result is checked
by a sample: some rows are measured again in a copy of the pages, and if every figure but times is
the same, the record is moved to the new code. On another processor the last digit shown may differ
by one, because NumPy's linear algebra rounds in another way there. Times cannot be confirmed.

    python benchmarks/evidence.py [NAME ...]     measure NAME, or everything that is stale
    python benchmarks/evidence.py --confirm ...  check by samples, where evidence.toml has them
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
from decimal import Decimal
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
SAMPLES = ROOT / "build" / "samples"
# Columns that differ from one measurement to the next; a p is corrected for the rows of its table.
_VARIES = re.compile(
    r"second|time|memory|minute|wall|CPU|/s\b|\((s|ms|µs|MB)\)|\b(date|commit)\b|^p\b", re.I
)
_DECIMAL = re.compile(r"-?\d+\.\d+")
COLUMNS = (
    "name", "commit", "date", "minutes", "processor", "versions", "code", "data", "confirmed",
)  # fmt: skip


# -- fingerprints ---------------------------------------------------------------------------------


def fingerprint(name, root=ROOT):
    """A hash of the code that a measurement uses; comments, docstrings and layout do not count."""
    files = sorted(files_of(name, root))
    return _digest(f"{path.relative_to(root)} {code_of(path)[0]}" for path in files)


def files_of(name, root=ROOT):
    """The script of a measurement, what else it uses, and every file that these import."""
    # The package imports every public name, each on first use; the other two measure nothing.
    apart = ("src/sentemb/__init__.py", "src/sentemb/version.py", "benchmarks/pages.py")
    left_out = {root / path for path in apart}
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
    """Measure a sample again and record the measurements that it is of as those of this code.

    Nothing is recorded if a row differs. Returns the exit code.
    """
    command, copy = MEASURED[names[0]]["sample"], SAMPLES / names[0]
    codes = {name: fingerprint(name) for name in names}
    print(f"{', '.join(names)}: {command}", flush=True)
    shutil.rmtree(copy, ignore_errors=True)
    for folder in ("benchmarks", "docs"):
        shutil.copytree(ROOT / folder, copy / folder)
    (copy / "build").mkdir()
    (copy / "build" / "glove").symlink_to(ROOT / "build" / "glove")
    if not (SAMPLES / "shared").exists():
        (SAMPLES / "shared").symlink_to(DATA.parent)
    results = copy / RESULTS.relative_to(ROOT)
    before = {path: path.stat().st_mtime_ns for path in results.rglob("*")}
    if exit_code := _run(command, copy):
        return exit_code
    rows, varies = recorded(), MEASURED[names[0]].get("varies", ())
    is_same_machine = all(rows[name]["processor"].startswith(processor()) for name in names)
    made = [
        path
        for path in sorted(results.rglob("*"))
        if path.suffix in (".csv", ".json") and path.stat().st_mtime_ns != before.get(path)
    ]
    changed = [
        f"{path.relative_to(results)}: {row}"
        for path in made
        for row in changed_rows(
            path, RESULTS / path.relative_to(results), 0 if is_same_machine else 1, varies
        )
    ]
    for line in changed:
        print(line)
    print(f"{len(made)} tables measured, {len(changed)} rows differ", flush=True)
    if changed or not made:
        return 1
    for name, code in codes.items():
        rows[name] |= {"code": code, "data": _data(name)}
        rows[name] |= {"confirmed": _git("rev-parse", "--short", "HEAD")}
    write(rows)
    return 0


def changed_rows(new, old, units=0, varies=()):
    """The rows of a CSV file that an older one lacks, without what varies; of JSON the whole text.

    A decimal may differ by ``units`` of its last digit; ``varies`` names columns that may differ.
    """

    def rows(path):
        if not path.exists():
            return []
        if path.suffix == ".json":
            return [{"": path.read_text("utf-8")}]
        with path.open(encoding="utf-8", newline="") as file:
            return [
                {
                    head: cell
                    for head, cell in row.items()
                    if head not in varies and not _VARIES.search(head)
                }
                for row in csv.DictReader(file)
            ]

    def is_near(a, b):
        return a == b or (
            bool(_DECIMAL.fullmatch(a) and _DECIMAL.fullmatch(b))
            and abs(Decimal(a) - Decimal(b))
            <= units * Decimal(10) ** Decimal(b).as_tuple().exponent
        )

    before = rows(old)
    return [
        row
        for row in rows(new)
        if not any(
            row.keys() == known.keys() and all(is_near(row[head], known[head]) for head in row)
            for known in before
        )
    ]


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
    """Cells for some columns of a record; after the commit, that which a sample has confirmed."""
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
    parser.add_argument(
        "--confirm", action="store_true", help="check by samples, NAME or all stale"
    )
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
        by_sample = defaultdict(list)
        for name in options.names or stale:
            by_sample[MEASURED[name].get("sample")].append(name)
        codes = [confirm(names) for sample, names in by_sample.items() if sample]
        return int(any(codes) or not codes)
    for name in options.names or stale:
        if measure(name):
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
