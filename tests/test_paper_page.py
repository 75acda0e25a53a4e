"""docs/paper.md is what its kept numbers say, complete, and its commands are ones that exist."""

import re
import shlex

import numpy as np
import pytest
from claims import NONE_PRINTED, UNTESTED, VERDICTS, Claim, claim_rows, judged
from pages import sections_of
from paper import PAGE, anchor_of, filled, results_of
from paper_claims import PARTS, claims
from paper_models import reverse
from paper_parts import BATH_TITLE, PICTURES, RESULTS, TITLE, _judged_counts, _judged_keywords
from paper_printed import COUNTS, NDCG

from sentemb.analysis.keywords import Keywords
from sentemb.cli import main

ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X"]


@pytest.fixture(scope="module")
def results():
    return {part: results_of(part, lab=None, again=False) for part in PARTS}


def test_the_page_is_current(results):
    shown = sections_of(PAGE)
    del shown["record"]  # of evidence.py
    assert shown == filled(results), "run: python benchmarks/paper.py --text-only"


def test_every_figure_table_and_appendix_has_a_row():
    keys = [claim.key for claim in claims()]
    assert len(set(keys)) == len(keys)
    for number in range(4, 13):
        assert f"Figure {number}" in keys
    assert {f"Table {number}" for number in ROMAN} | {"Appendix C", "Appendix F"} <= set(keys)
    assert {part for claim in claims() for part in claim.needs} == set(PARTS)


def test_every_row_has_place_printed_number_command_and_verdict(results):
    for claim, verdict, why in judged(claims(), results):
        assert claim.place and claim.text and claim.printed and why and verdict in VERDICTS
        assert claim.command or not claim.needs


def test_the_table_of_verdicts_counts_them():
    given = [Claim(key, "", (), None) for key in "ab"]
    found = [(given[0], VERDICTS[0], "why"), (given[1], VERDICTS[2], "why")]
    _, counted, *rows = claim_rows(found)
    assert counted[0] == "all 2" and counted[-1] == f"{VERDICTS[0]} 1, {VERDICTS[2]} 1"
    assert [row[3] for row in rows] == [NONE_PRINTED] * 2
    assert judged([Claim("c", "", ("absent",), None)], {})[0][1] == UNTESTED


def test_figures_have_small_pictures(results):
    for part, found in results.items():
        assert {len(row) for row in found.get("rows", [])} <= {len(found.get("head", []))}
        if part.startswith("figure"):
            assert 0 < (PICTURES / f"{part}.png").stat().st_size < 100_000


def test_the_rule_of_keywords_on_the_papers_own_counts():
    words = TITLE.split()
    found = Keywords(words, np.array(COUNTS["table-02"]), 10, np.zeros(2))
    assert _judged_keywords(found)["why"].startswith("Keywords are discount: 1 of 7")
    words = BATH_TITLE.split()
    assert _judged_counts(words, COUNTS["table-08"]) == {
        "verdict": VERDICTS[0],
        "why": "Mean count of content words minus that of function words: LSTM +6.167, RNN +1.333.",
    }
    assert _judged_counts(["a", "hotels"], [[0, 7], [0, 7]])["verdict"] == VERDICTS[2]


def test_texts_are_reversed_word_by_word():
    assert reverse(["hotels in  shanghai", "tub"]) == ["shanghai in hotels", "tub"]


def test_links_lead_to_files_and_headings():
    text = PAGE.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (PAGE.parent / target).exists(), target
    headings = {anchor_of(line[3:]) for line in text.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) == headings - {
        "how-it-is-measured",
        "when-and-where-it-was-measured",
    }


def commands():
    """Every ``sentemb`` command on the page."""
    blocks = re.findall(r"```\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines()]
    lines += [claim.command for claim in claims()]
    return sorted({line for line in lines if line[:7] == "sentemb"})


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
    assert len(NDCG) == 17
