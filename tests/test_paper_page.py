"""docs/paper.md is what its kept numbers say, complete, and its commands are ones that exist."""

import re
import shlex

import pytest
from pages import sections_of
from paper import PAGE, PARTS, filled, results_of
from paper_parts import FAILS, HOLDS, IN_PART, PICTURES, RESULTS

from sentemb.cli import main

ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"]


def test_the_page_is_current():
    results = {part: results_of(part, lab=None, again=False) for part in PARTS}
    assert sections_of(PAGE) == filled(results), "run: python benchmarks/paper.py --text-only"


def test_every_figure_table_and_appendix_has_a_heading():
    text = PAGE.read_text(encoding="utf-8")
    names = re.findall(r"^## ([^:]+):", text, re.MULTILINE)
    figures = [f"Figure {number}" for number in range(4, 14)]
    assert names == [
        *figures,
        *(f"Table {number}" for number in ROMAN),
        "Appendix C",
        "Appendix F",
    ]


def test_every_measured_part_has_a_verdict_and_figures_have_small_pictures():
    for part in PARTS:
        found = results_of(part, lab=None, again=False)
        assert found["verdict"] in (HOLDS, IN_PART, FAILS)
        assert {len(row) for row in found["rows"]} == {len(found["head"])}
        if part.startswith("figure"):
            assert 0 < (PICTURES / f"{part}.png").stat().st_size < 100_000


def test_links_lead_somewhere():
    text = PAGE.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        assert (PAGE.parent / target).exists(), target
    anchors = {
        re.sub(r"[^\w -]", "", line[3:].lower()).replace(" ", "-")
        for line in text.splitlines()
        if line.startswith("## ")
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) == anchors


def commands():
    """Every ``sentemb`` command on the page."""
    blocks = re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return sorted(
        {line for block in blocks for line in block.splitlines() if line[:7] == "sentemb"}
    )


@pytest.mark.parametrize("line", commands())
def test_commands_are_understood(line):
    name, *arguments = shlex.split(line)[1:]
    # As `main` would: a plain Context would leave its help option in the command.
    with main.make_context("sentemb", [name, *arguments]) as context:
        command = main.get_command(context, name)
        assert command.make_context(name, arguments, parent=context)


def test_nothing_is_left_over():
    assert {path.stem for path in RESULTS.iterdir()} == set(PARTS)
    figures = {part for part in PARTS if part.startswith("figure")}
    assert {path.stem for path in PICTURES.iterdir()} == figures
