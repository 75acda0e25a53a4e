"""List the test files in tests/README.md: what each tests, and its seconds if they are measured.

    python -m pytest -q -n 2 --junitxml build/tests.xml
    python docs/make_tests.py build/tests.xml

Without a file the seconds on the page stay.
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

TESTS = Path(__file__).parents[1] / "tests"
PAGE = TESTS / "README.md"
BEGIN, END = "<!-- files begin -->", "<!-- files end -->"


def subject(path: Path) -> str:
    """The first line of a file's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    return docstring.splitlines()[0].rstrip(".").replace("|", r"\|")


def measured(junit: Path) -> dict[str, str]:
    """Seconds by test file, fixtures included, from a report of pytest."""
    seconds: Counter[str] = Counter()
    for case in ElementTree.parse(junit).iter("testcase"):
        seconds[case.get("classname", "").split(".")[1]] += float(case.get("time", "0"))
    return {name: f"{of_file:.1f}" for name, of_file in seconds.items()}


def listed(page: str) -> dict[str, str]:
    """Seconds by test file, from the page."""
    return dict(re.findall(r"^\| `(test_\w+)\.py` \|.*\| ([\d.]*) \|$", page, re.MULTILINE))


def table(seconds: dict[str, str]) -> str:
    """A row for each test file."""
    rows = (
        f"| `{path.name}` | {subject(path)} | {seconds.get(path.stem, '')} |"
        for path in sorted(TESTS.glob("test_*.py"))
    )
    return "\n".join(["| file | what it tests | seconds |", "| --- | --- | --: |", *rows])


def written(page: str, junit: Path | None = None) -> str:
    """Return the page with a new table."""
    before, rest = page.split(BEGIN)
    seconds = measured(junit) if junit else listed(page)
    return f"{before}{BEGIN}\n\n{table(seconds)}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    junit = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), junit), encoding="utf-8")
