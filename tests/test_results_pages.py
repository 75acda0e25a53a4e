"""The pages in docs/results and their CSV files belong together."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "docs" / "results"
PAGES = sorted(RESULTS.glob("*.md"))


@pytest.fixture(scope="module")
def pages():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        import pages

        yield pages
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_csv_files_hold_the_tables_of_the_page(path, pages):
    tables = pages.tables_of(path.stem, path.read_text(encoding="utf-8").splitlines()[1:])
    assert tables
    written = {file.name for file in RESULTS.glob(f"{path.stem}*.csv")}
    assert written == set(tables)
    for file, table in tables.items():
        assert (RESULTS / file).read_text(encoding="utf-8") == pages.csv_of(table), file


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


def test_two_tables_need_two_headings(pages):
    table = ["| a |", "| --- |", "| 1 |"]
    assert list(pages.tables_of("x", [*table, "", "## More (of it)", "", *table])) == [
        "x.csv",
        "x-more.csv",
    ]
    with pytest.raises(ValueError, match="two tables"):
        pages.tables_of("x", [*table, "", *table])


def test_a_page_is_written_with_its_csv(pages, tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    (tmp_path / "speed-old.csv").write_text("")
    lines = ["## Steps", "", "| a | b |", "| --- | --- |", "| x | 3 ms |"]
    pages.write_results("speed", "Speed", "benchmarks/speed.py", lines)
    assert {path.name for path in tmp_path.iterdir()} == {"speed.md", "speed-steps.csv"}
    assert (tmp_path / "speed-steps.csv").read_text() == "a,b (ms)\nx,3\n"
    assert (tmp_path / "speed.md").read_text().startswith("# Speed\n\nWritten by")
