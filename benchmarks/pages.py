"""Where data come from and results go: pages with CSV in docs/results; the machine's name."""

import argparse
import csv
import io
import os
import platform
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
SETS = ("occupations", "tldr", "msdocs_index")
DOCS, README = ROOT / "docs", ROOT / "README.md"
RESULTS = DOCS / "results"
DEVELOPER = DOCS / "developer.md"

_HEADING = re.compile(r"#+ ([^:(`]+)")
_NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?"
# What a cell of a table may hold besides one number: column suffixes and a pattern.
_SHAPES = [
    (("", " sd"), re.compile(rf"({_NUMBER}) ± ({_NUMBER})")),
    (("", " ratio", " low", " high"),
     re.compile(rf"({_NUMBER}), ({_NUMBER}) × \(({_NUMBER})–({_NUMBER})\)")),
    (("", " low", " high"), re.compile(rf"({_NUMBER}) × \(({_NUMBER})–({_NUMBER})\)")),
    (("", " low", " high"), re.compile(rf"({_NUMBER})\*? \(({_NUMBER}) to ({_NUMBER})\)")),
    (("", " percent"), re.compile(rf"({_NUMBER}) \(({_NUMBER}) %\)")),
    ((" @1", " @3", " @10"), re.compile(rf"({_NUMBER}) / ({_NUMBER}) / ({_NUMBER})")),
]  # fmt: skip
_UNIT = re.compile(r"(?<=\d) (s|ms|µs|ns|MB|%)(?=$|,| \()")


def write_section(page, name, text):
    """Replace the text between the markers of section ``name`` in a Markdown file."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{rest.split(end)[1]}", encoding="utf-8")


def write_results(name, title, script, lines):
    """Write docs/results/``name``.md, and one CSV file for each table in it.

    Parameters
    ----------
    name, title : str
        The file's name and the page's title.
    script : str
        What writes the page.
    lines : list of str
        Markdown. A table's file is named after the page and the heading above the table.
    """
    RESULTS.mkdir(parents=True, exist_ok=True)
    for old in RESULTS.glob(f"{name}*.csv"):
        old.unlink()
    files = tables_of(name, lines)
    links = ", ".join(f"[{file}]({file})" for file in files)
    head = [f"# {title}", "", f"Written by `{script}`. The tables as CSV: {links}.", ""]
    text = "\n".join([*head, *lines]).rstrip() + "\n"
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
    for file, table in files.items():
        (RESULTS / file).write_text(csv_of(table), encoding="utf-8")


def sections_of(name):
    """The sections of the page docs/results/``name``.md as lists of lines, by their headings."""
    sections, heading = {}, None
    for line in (RESULTS / f"{name}.md").read_text(encoding="utf-8").splitlines():
        heading = line if line.startswith("## ") else heading
        if heading is not None:
            sections.setdefault(heading, []).append(line)
    return {
        heading: [*"\n".join(lines).rstrip().split("\n"), ""] for heading, lines in sections.items()
    }


def tables_of(name, lines):
    """Every Markdown table in ``lines`` as rows of cells, by the name of its CSV file."""
    files, heading, table = {}, "", []
    for line in [*lines, ""]:
        if line.startswith("|"):
            table.append([cell.strip() for cell in line.strip("|").split("|")])
            continue
        if table:
            file = re.sub(r"\W+", "-", f"{name} {heading}".lower()).strip("-") + ".csv"
            if file in files:
                raise ValueError(f"two tables under the heading {heading!r}; give each its own")
            files[file] = [table[0], *table[2:]]
            table = []
        if found := _HEADING.match(line):
            heading = found[1].strip()
    return files


def csv_of(table):
    """A table of formatted cells as CSV: plain numbers, one column for each part of a cell.

    ``0.734 ± 0.002`` becomes two columns, ``+0.002 (-0.005 to +0.009)`` three. A unit moves into
    the head if all cells of the column have the same. A missing value is an empty cell.
    """
    head, *rows = table
    columns = []
    for name, cells in zip(head, zip(*rows, strict=True), strict=True):
        columns += _split(name or "what", cells)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows(zip(*columns, strict=True))
    return out.getvalue()


def _split(name, cells):
    """The columns of one formatted column, each with its name first."""
    units = {tuple(_UNIT.findall(cell)) for cell in cells if cell not in ("", "-")}
    unit = ""
    if len(units) == 1 and len(units := set(units.pop())) == 1:
        unit = f" ({units.pop()})"
        cells = [_UNIT.sub("", cell) for cell in cells]
    shapes = (shape for shape in _SHAPES if any(map(shape[1].fullmatch, cells)))
    suffixes, pattern = next(shapes, (None, None))
    if pattern is None:
        return [[name + unit, *map(_plain, cells)]]
    parts = []
    for cell in cells:
        found = pattern.fullmatch(cell)
        parts.append(found.groups() if found else (cell, *[""] * (len(suffixes) - 1)))
    name = name.removesuffix("@1 / @3 / @10")
    heads = [name + suffix.replace(" @", "@") for suffix in suffixes]
    heads[0] += unit
    return [
        [head, *map(_plain, values)]
        for head, values in zip(heads, zip(*parts, strict=True), strict=True)
    ]


def _plain(cell):
    """A cell as a plain number if it is one, else as it is; nothing for a dash."""
    if cell in ("", "-"):
        return ""
    if re.fullmatch(_NUMBER, cell):
        return cell.replace(",", "").lstrip("+")
    return cell.replace("`", "")


def read_csv(file):
    """The rows of a CSV file in docs/results, each a dict of str; none without the file."""
    if not (RESULTS / file).exists():
        return []
    with open(RESULTS / file, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def machine():
    """The machine in a few words."""
    return f"{processor()}, {os.cpu_count()} processors; Python {platform.python_version()}"


def processor():
    """The name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text()
        return next(
            line.split(":")[1].strip() for line in text.splitlines() if "model name" in line
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def options_for(description, sets):
    """The options ``--data`` and ``--threads`` of a script that needs the logs of all ``sets``."""
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    missing = [name for name in sets if not (options.data / name / "pairs.tsv").exists()]
    if missing:
        sys.exit(f"{options.data / missing[0]} not found")
    return options
