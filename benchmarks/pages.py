"""Where data come from and results go: pages with CSV in docs/results; the machine's name."""

import argparse
import csv
import io
import os
import platform
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
DATA = ROOT.parent / "shared" / "data"
SETS = ("occupations", "tldr", "msdocs_index")
DOCS, README = ROOT / "docs", ROOT / "README.md"
RESULTS = DOCS / "results"
DEVELOPER = DOCS / "developer.md"

# What is measured, and in which page: the file says what its keys mean.
MEASURED = tomllib.loads(Path(__file__).with_name("evidence.toml").read_text("utf-8"))["measured"]

_SECTION = re.compile(r"<!-- (\S+):begin -->\n\n(.*?)\n\n<!-- \1:end -->", re.S)
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


def page_of(name):
    """The page that a measurement writes."""
    return DOCS / MEASURED[name].get("page", f"results/{name}.md")


def fill(page, sections):
    """Replace the text between the markers of some sections of a Markdown file.

    Parameters
    ----------
    page : Path
        The file.
    sections : dict of str to list of str
        Lines of Markdown by name. The markers are ``<!-- name:begin -->`` and
        ``<!-- name:end -->``.

    Raises
    ------
    ValueError
        A section has no markers in the page, or more than one pair.
    """
    text = page.read_text(encoding="utf-8")
    for name, lines in sections.items():
        begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"{page} needs {begin} and {end} once each")
        before, rest = text.split(begin)
        body = "\n".join(lines)
        text = f"{before}{begin}\n\n{body}\n\n{end}{rest.split(end)[1]}"
    page.write_text(text, encoding="utf-8")


def sections_of(page):
    """{name: lines} of the marked sections of a Markdown file."""
    text = page.read_text(encoding="utf-8")
    return {name: body.split("\n") for name, body in _SECTION.findall(text)}


def write_tables(name, tables, machine=None, quick=False):
    """Fill the tables of a measurement in its page, and write each as CSV.

    Parameters
    ----------
    name : str
        Its name in evidence.toml, which says in which page the text around the tables is.
    tables : dict of str to iterable of str
        Lines of a Markdown table, or of a list, by heading. Section and CSV file have the name of
        the page and the heading up to a colon, a bracket or code. One that the page does not have
        yet is put at its end.
    machine : str, optional
        Written into the section ``NAME-machine`` of the page.
    quick : bool
        Print the tables and write nothing.
    """
    if quick:
        print_tables(tables)
        return
    page = page_of(name)
    known = sections_of(page)
    sections = {file_of(name, heading): list(lines) for heading, lines in tables.items()}
    with page.open("a", encoding="utf-8") as file:
        for heading, section in zip(tables, sections, strict=True):
            if section not in known:
                markers = f"<!-- {section}:begin -->\n\n\n\n<!-- {section}:end -->"
                file.write(f"\n## {heading}\n\n{markers}\n")
    named = {f"{name}-machine": [f"Machine: {machine}."]} if machine else {}
    fill(page, sections | named)
    for section, lines in sections.items():
        if is_table(lines):
            text = csv_of(cells_of(lines))
            (RESULTS / f"{section}.csv").write_text(text, encoding="utf-8")


def print_tables(tables):
    """Print what `write_tables` would write."""
    for heading, lines in tables.items():
        print("\n".join([f"## {heading}", "", *lines, ""]))


def file_of(name, heading):
    """The name of the CSV file of the table under a heading."""
    heading = re.split("[:(`]", heading)[0]
    return re.sub(r"\W+", "-", f"{name} {heading}".lower()).strip("-")


def is_table(lines):
    """Whether lines of Markdown are a table."""
    return bool(lines) and all(line.startswith("|") for line in lines)


def cells_of(lines):
    """The rows of a Markdown table, each a list of cells, without the line below its head."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [rows[0], *rows[2:]]


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


def machine(*packages):
    """The machine in a few words, with the versions of some packages."""
    versions = "".join(f", {name} {version(name)}" for name in packages)
    python = platform.python_version()
    return f"{processor()}, {os.cpu_count()} processors; Python {python}{versions}"


def processor():
    """The name of the processor, with family and model: several have one name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        facts = {key.strip(): value.strip() for key, _, value in (x.partition(":") for x in lines)}
        return f"{facts['model name']} (family {facts['cpu family']}, model {facts['model']})"
    except (OSError, KeyError):
        return platform.processor() or platform.machine()


def options_for(description, sets, **more):
    """The options ``--data``, ``--sets`` and ``--threads`` of a script.

    Parameters
    ----------
    description : str
        Its first line is shown.
    sets : sequence of str
        Names of logs; by default those that are there. The program ends if none is.
    **more : dict
        Further options, each with the arguments of `argparse`.
    """
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", choices=sets, default=sets)
    parser.add_argument("--threads", type=int, default=1)
    for name, settings in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **settings)
    options = parser.parse_args()
    present = [name for name in options.sets if (options.data / name / "pairs.tsv").exists()]
    if not present:
        sys.exit(f"{options.data} has none of {', '.join(options.sets)}")
    options.sets = present
    return options
