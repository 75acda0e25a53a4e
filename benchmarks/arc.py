"""The pair models' paper on one page: measure its tables and claims, and fill docs/arc.md.

    python benchmarks/arc.py [PART ...] [--seeds 0 1 2] [--models NAME ...] [--msrp FOLDER]

Each part's numbers are kept as CSV in docs/results/arc; models and checkpoints are kept in
build/arc. A row that is there is not measured again, and a training that was stopped continues.
To measure a part again, remove its file and the models; `make arc` begins by removing all of them.
``--text-only`` measures nothing and draws the charts and fills the page's tables from the CSV.
"""

import argparse
import sys
import time
from pathlib import Path

import arc_charts
from arc_activation import activations
from arc_lab import SEEDS, Laboratory
from arc_parts import PARTS as TRAININGS
from arc_parts import SYSTEMS
from arc_tables import SECTIONS, labelled
from claims import filled, tables_in
from pages import DATA, DOCS, ROOT, fill

from sentemb.errors import SentembError
from sentemb.system.parallel import available_threads
from sentemb.system.tables import markdown_table
from sentemb.training.stopping import Interrupted

PARTS = TRAININGS | {"activations": activations}


def main():
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"Among {', '.join(PARTS)}.")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--msrp", type=Path, help="Folder with the paraphrase corpus's files.")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS[:1])
    parser.add_argument("--models", nargs="+", default=(), help="Only these rows.")
    parser.add_argument("--vectors", nargs="+", default=(), choices=tuple(SYSTEMS),
                        help="Only rows of Tables 1 and 2 with these word vectors.")  # fmt: skip
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--text-only", action="store_true", help="Measure nothing.")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    folder = DOCS / "results" / "arc"
    if not options.text_only:
        lab = Laboratory(
            options.data, ROOT / "build" / "arc", folder, options.threads, tuple(options.seeds),
            tuple(options.models), tuple(options.vectors), options.msrp,
        )  # fmt: skip
        for name in options.parts or PARTS:
            began = time.monotonic()
            try:
                PARTS[name](lab, folder / f"{name}.csv")
            except Interrupted as stopped:
                sys.exit(str(stopped))
            except (OSError, SentembError) as error:
                print(f"{name} is left out: {error}", file=sys.stderr)
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    tables = tables_in(folder)
    arc_charts.write(tables, DOCS / "figures")
    fill(DOCS / "arc.md", filled(SECTIONS, tables))
    if any(line["set"] == "msrp" for line in tables["labelled"]):
        print("\n".join(markdown_table(labelled("msrp")(tables), 3)))


if __name__ == "__main__":
    main()
