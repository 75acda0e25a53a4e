"""The pages in docs/results and their CSV files belong together."""

import re
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = [*sorted(RESULTS.glob("*.md")), RESULTS.parent / "reliability.md"]


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import pages

        yield pages
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def tables_of(path, pages):
    """{name: cells} of the tables of a page that scripts fill, but for the records at its end."""
    return {
        name: pages.cells_of(lines)
        for name, lines in pages.sections_of(path).items()
        if pages.is_table(lines) and name != "record"
    }


def test_every_csv_file_is_a_table_of_a_page(pages):
    names = [name for path in PAGES for name in tables_of(path, pages)]
    assert len(names) == len(set(names))
    assert {file.stem for file in RESULTS.glob("*.csv")} - {"evidence"} == set(names)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_csv_files_hold_the_tables_of_the_page(path, pages):
    tables = tables_of(path, pages)
    assert tables
    for name, table in tables.items():
        assert (RESULTS / f"{name}.csv").read_text(encoding="utf-8") == pages.csv_of(table), name
    text = path.read_text(encoding="utf-8")
    assert text.count("\n| ---") == len(tables) + 1, "a table without markers"
    named = re.findall(r"[`(]([\w*-]+)\.csv[`)]", text)
    assert all(any(fnmatch(name, pattern) for pattern in named) for name in tables)


@pytest.mark.parametrize(
    ("head", "cells", "lines"),
    [
        ("a", ["1,234", "-", "x `y`"], ["a", "1234", '""', "x y"]),
        ("@1", ["0.734 ± 0.002", "0.5"], ["@1,@1 sd", "0.734,0.002", "0.5,"]),
        ("time", ["41 s", "-", "0 s"], ["time (s)", "41", '""', "0"]),
        ("time", ["2.2 s", "3.0 ms"], ["time", "2.2 s", "3.0 ms"]),
        ("gain", ["1.7 × (1.3–1.9)"], ["gain,gain low,gain high", "1.7,1.3,1.9"]),
        ("d", ["+0.1* (-0.2 to +0.3)", "reference"],
         ["d,d low,d high", "0.1,-0.2,0.3", "reference,,"]),
        ("dev NDCG@1 / @3 / @10", ["0.1 / 0.2 / 0.3"],
         ["dev NDCG@1,dev NDCG@3,dev NDCG@10", "0.1,0.2,0.3"]),
        ("t", ["194.5 ms, 6.9 × (6.5–7.1)"],
         ["t (ms),t ratio,t low,t high", "194.5,6.9,6.5,7.1"]),
    ],
)  # fmt: skip
def test_formatted_cells_become_plain_numbers(head, cells, lines, pages):
    assert pages.csv_of([[head], *([cell] for cell in cells)]).splitlines() == lines


PAGE = """# Speed

<!-- speed-machine:begin -->

Machine: old.

<!-- speed-machine:end -->

## Steps

Text.

<!-- speed-steps:begin -->

| old |

<!-- speed-steps:end -->
"""


def test_a_page_keeps_its_text_and_gets_its_tables(pages, tmp_path, monkeypatch):
    results = tmp_path / "results"
    results.mkdir()
    monkeypatch.setattr(pages, "DOCS", tmp_path)
    monkeypatch.setattr(pages, "RESULTS", results)
    page = results / "speed.md"
    page.write_text(PAGE)
    table = ["| a | b |", "| --- | --- |", "| x | 3 ms |"]
    pages.write_tables("speed", {"Steps": table, "More: `it`": ["- an item"]}, "new")
    assert {path.name for path in results.iterdir()} == {"speed.md", "speed-steps.csv"}
    assert (results / "speed-steps.csv").read_text() == "a,b (ms)\nx,3\n"
    text = page.read_text()
    assert "<!-- speed-machine:begin -->\n\nMachine: new.\n\n<!-- speed-machine:end -->" in text
    assert "## Steps\n\nText.\n\n<!-- speed-steps" in text
    assert text.endswith(
        "<!-- speed-steps:end -->\n\n## More: `it`\n\n<!-- speed-more:begin -->\n\n"
        "- an item\n\n<!-- speed-more:end -->\n"
    )
    pages.write_tables("speed", {"Steps": table})
    assert page.read_text() == text
    page.write_text(text.replace("speed-steps:end", "x"))
    with pytest.raises(ValueError, match="speed-steps:begin"):
        pages.fill(page, {"speed-steps": []})
