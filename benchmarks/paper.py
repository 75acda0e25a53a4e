"""The paper on one page: measure every figure, table and appendix, and fill docs/paper.md.

    PYTHONHASHSEED=0 python benchmarks/paper.py [--threads 1] [--again PART ...] [--text-only]

Each part's numbers are kept in docs/results/paper/ as JSON, and a part whose numbers are there is
not measured again; models are kept in build/paper/. From nothing it takes about ten minutes. The
hash seed matters to Doc2Vec alone: gensim starts its inference from the hash of a text.
"""

import argparse
import json
import re
import sys

import paper_parts as parts
from pages import ROOT, fill
from paper_models import WORK, Laboratory
from paper_parts import RESULTS

from sentemb.system.tables import markdown_table

PAGE = ROOT / "docs" / "paper.md"
# Part: a function from a `Laboratory` to a dict that JSON can hold. The part names its files and
# its section in the page.
PARTS = {
    "figure-04": parts.figure_4,
    "figure-05": parts.figure_5,
    "figure-06": parts.figure_6,
    "figure-07": parts.figure_7,
    "figure-08": parts.figure_8,
    "figure-09": parts.figure_9,
    "figure-10": parts.figure_10,
    "figure-11": parts.figure_11,
    "figure-12": parts.figure_12,
    "table-01": parts.table_1,
    "table-02": parts.table_2,
    "table-03": parts.table_3,
    "table-04": parts.table_4,
    "table-05": parts.table_5,
    "table-06": parts.table_6,
    "table-07": parts.table_7,
    "table-08": parts.table_8,
    "table-09": parts.table_9,
    "table-10": parts.table_10,
    "appendix-c": parts.appendix_c,
    "appendix-f": parts.appendix_f,
}


def results_of(part: str, lab: Laboratory | None, again: bool) -> dict:
    """The numbers of a part: read if they are there, else measured and written."""
    path = RESULTS / f"{part}.json"
    if again or not path.exists():
        print(part, file=sys.stderr)
        RESULTS.mkdir(parents=True, exist_ok=True)
        found = PARTS[part](lab)
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def filled(results: dict[str, dict]) -> dict[str, list[str]]:
    """{section of docs/paper.md: lines} from the numbers of all parts."""
    sections = {
        part: [
            *markdown_table([found["head"], *found["rows"]], left=len(found["head"])),
            "",
            f"**Verdict: {found['verdict']}.** {found['why']}",
        ]
        for part, found in results.items()
    }
    return sections | {"verdicts": list(markdown_table(_verdicts(results), left=2))}


def _verdicts(results: dict[str, dict]) -> list[list[str]]:
    """A row for each heading of the page, with the verdict on the part below it."""
    rows = [["part of the paper", "verdict"]]
    for chapter in PAGE.read_text(encoding="utf-8").split("\n## ")[1:]:
        title = chapter.split("\n")[0]
        anchor = re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")
        part = re.search(r"<!-- (\S+):begin -->", chapter)
        verdict = results[part[1]]["verdict"] if part else "nothing to measure"
        rows.append([f"[{title}](#{anchor})", verdict])
    return rows


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--again", nargs="*", default=[], metavar="PART", help="Measure these parts again, or all."
    )
    parser.add_argument("--text-only", action="store_true", help="Measure nothing.")
    options = parser.parse_args()
    unknown = set(options.again) - {"all", *PARTS}
    if unknown:
        parser.error(f"unknown part: {', '.join(sorted(unknown))}")
    lab = Laboratory(WORK, options.threads)
    results = {}
    for part in PARTS:
        path = RESULTS / f"{part}.json"
        if options.text_only and not path.exists():
            parser.error(f"{path} is missing; run without --text-only")
        again = not options.text_only and bool({"all", part} & set(options.again))
        results[part] = results_of(part, lab, again)
    fill(PAGE, filled(results))


if __name__ == "__main__":
    main()
