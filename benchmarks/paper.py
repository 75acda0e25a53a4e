"""The paper on one page: measure every figure, table and appendix, and fill docs/paper.md.

    PYTHONHASHSEED=0 python benchmarks/paper.py [--threads 1] [--again PART ...] [--text-only]

Each part's numbers are kept in docs/results/paper/ as JSON, and a part whose numbers are there is
not measured again; models are kept in build/paper/. `make paper` removes both first. The hash seed
matters to Doc2Vec alone: gensim starts its inference from the hash of a text.
"""

import argparse
import csv
import json
import re
import sys
from dataclasses import replace

from claims import COLUMNS, choices_of, claim_rows, judged, rule_rows, swept
from pages import ROOT, fill
from paper_claims import EXAMPLES, PARTS, SEEDS, claims
from paper_figures import FIGURES, draw
from paper_models import WORK, Laboratory
from paper_open import open_questions
from paper_parts import RESULTS

from sentemb.system.tables import markdown_table

PAGE = ROOT / "docs" / "paper.md"


def results_of(part: str, lab: Laboratory | None, again: bool) -> dict:
    """The numbers of a part: read if they are there, else measured and written."""
    path = RESULTS / f"{part}.json"
    if again or not path.exists():
        print(part, file=sys.stderr)
        RESULTS.mkdir(parents=True, exist_ok=True)
        measure = PARTS[part]
        found = measure(lab)
        found["sweep"] = swept(
            lambda **choices: measure(lab, **choices)["verdict"], choices_of(measure)
        )
        if part in EXAMPLES:
            found["seeds"] = [measure(lab.by_seed(seed))["verdict"] for seed in SEEDS]
        if part in FIGURES:
            draw(part, lab)
        if "csv" in found:
            with open(path.with_suffix(".csv"), "w", encoding="utf-8", newline="") as file:
                csv.writer(file, lineterminator="\n").writerows(found.pop("csv"))
        path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return json.loads(path.read_text(encoding="utf-8"))


def filled(results: dict[str, dict]) -> dict[str, list[str]]:
    """{section of docs/paper.md: lines} from the numbers of all parts."""
    rows = claims()
    anchors = set(re.findall(r"^## (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    linked = [
        replace(claim, key=f"[{claim.key}](#{anchor_of(claim.key)})")
        if claim.key in anchors
        else claim
        for claim in rows
    ]
    of_linked = judged(linked, results)
    sections = {
        "verdicts": list(markdown_table(claim_rows(of_linked), len(COLUMNS))),
        "rules": list(markdown_table(rule_rows(of_linked, results), left=8)),
        "open": list(markdown_table(open_questions(), left=3)),
    }
    for claim, verdict, why in judged(rows, results):
        for part in claim.needs:
            table = results[part]
            if "head" in table:
                lines = markdown_table([table["head"], *table["rows"]], left=len(table["head"]))
                sections[part] = [*lines, "", f"**Verdict: {verdict}.** {why}"]
    return sections


def anchor_of(heading: str) -> str:
    """The fragment by which Markdown links to a heading."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


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
