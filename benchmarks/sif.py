"""The SIF paper on one page: measure its tables and figures, and fill docs/sif.md.

    python benchmarks/sif.py [PART ...] [--vectors PATH] [--data ../shared/data] [--threads 2]

Each part's numbers are kept as CSV in docs/results/sif. Without the name of a part, all parts
whose file is not there are measured, so a run that was stopped continues. ``--text-only`` measures
nothing: charts are drawn and the tables of the page filled from the CSV.
The vectors are those of GloVe that benchmarks/glove.py fetches into build/glove. With other
``--vectors`` all files go to build/sif, and the tables to build/sif/sif.md. A part whose data or
packages are missing is left out with a message.
"""

import argparse
import csv
import sys
import time
from pathlib import Path

import sif_charts
from claims import filled, tables_in
from pages import DATA, DOCS, ROOT, fill
from sif_lab import Laboratory
from sif_pairs import pairs
from sif_parts import PARTS as QUICK
from sif_tables import SECTIONS

from sentemb.errors import SentembError
from sentemb.system.parallel import available_threads

GLOVE = ROOT / "build" / "glove"
DIMS = ("50d", "100d", "150d")
PARTS = QUICK | {"pairs": pairs}


def vectors_at(path):
    """{name: path} of one file or folder of word vectors, or by default of GloVe's three."""
    if path is not None:
        return {path.name.split(".")[0]: path}
    missing = [dims for dims in DIMS if not (GLOVE / dims).is_dir()]
    if missing:
        sys.exit(f"{GLOVE / missing[0]} is missing; run: python benchmarks/glove.py {GLOVE}")
    return {dims: GLOVE / dims for dims in DIMS}


def measure(lab, folder, names):
    """Measure these parts, or all that have no file yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names or [one for one in PARTS if not (folder / f"{one}.csv").exists()]:
        part, path = PARTS[name], folder / f"{name}.csv"
        began = time.monotonic()
        try:
            rows = part(lab)
        except (OSError, SentembError) as error:
            print(f"{name} is left out: {error}", file=sys.stderr)
            continue
        with open(path, "w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)


def main():
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"Among {', '.join(PARTS)}.")
    parser.add_argument("--vectors", type=Path, help="Word vectors instead of GloVe's.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--text-only", action="store_true", help="Measure nothing.")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    out = DOCS if options.vectors is None else ROOT / "build" / "sif"
    folder = out / "results" / "sif"
    if not options.text_only:
        scratch = ROOT / "build" / "sif" / "scratch"
        lab = Laboratory(options.data, vectors_at(options.vectors), options.threads, scratch)
        measure(lab, folder, options.parts)
    tables = tables_in(folder)
    sif_charts.write(tables, out / "figures")
    sections = filled(SECTIONS, tables)
    if options.vectors is None:
        fill(DOCS / "sif.md", sections)
    else:
        text = "\n\n".join("\n".join([f"## {name}", "", *rows]) for name, rows in sections.items())
        (out / "sif.md").write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
