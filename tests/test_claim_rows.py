"""Every row of the three pages of claims has place, text, printed number, rule and command."""

import re

import pytest
from arc_claims import CLAIMS as ARC
from claims import (
    FACTORS,
    HOLDS,
    NONE_PRINTED,
    NOTHING,
    UNTESTED,
    VERDICTS,
    Claim,
    choices_of,
    judged,
    rule_of,
    rule_rows,
    tables_in,
)
from pages import RESULTS
from paper import results_of
from paper_claims import PARTS, claims
from sif_claims import CLAIMS as SIF

PAGES = {
    "paper": (claims(), {part: results_of(part, lab=None, again=False) for part in PARTS}),
    "sif": (list(SIF), tables_in(RESULTS / "sif")),
    "arc": (list(ARC), tables_in(RESULTS / "arc")),
}
ROWS = [
    pytest.param(claim, verdict, why, tables, id=f"{page} {claim.key}")
    for page, (rows, tables) in PAGES.items()
    for claim, verdict, why in judged(rows, tables)
]


@pytest.mark.parametrize(("claim", "verdict", "why", "tables"), ROWS)
def test_a_row_is_complete(claim, verdict, why, tables):
    assert claim.place and claim.text and why and verdict in VERDICTS
    assert claim.printed == NONE_PRINTED or re.search(r"\d|curve|picture|nearest", claim.printed)
    # In our words: nothing between quotation marks.
    assert not re.search(r"[\"“”]", claim.text)
    if verdict in (UNTESTED, NOTHING):
        return
    assert claim.command
    assert rule_of(claim).startswith("It holds ") and "``" not in claim.text


@pytest.mark.parametrize(("claim", "verdict", "why", "tables"), ROWS)
def test_every_free_choice_is_swept(claim, verdict, why, tables):
    if verdict in (UNTESTED, NOTHING):
        return
    choices = choices_of(claim.rule or claim.judge)
    swept = claim.swept(tables)
    assert {name: value for name, (value, _) in swept.items()} == choices
    for name, (_, found) in swept.items():
        assert name in rule_of(claim).replace("``", ""), "the rule does not name the choice"
        assert len(found) == len(FACTORS) and found[FACTORS.index(1)] == verdict


def test_a_rule_is_the_docstring_and_its_choices_are_changed_one_at_a_time():
    def judge(tables, *, least=2.0, most=8.0):
        """C1: It holds between
        ``least`` and ``most``.
        """
        return HOLDS if least <= tables["x"] <= most else VERDICTS[2], "why"

    claim = Claim("C1", "text", ("x",), judge, "place")
    assert rule_of(claim) == "It holds between ``least`` and ``most``."
    assert claim.swept({}) == {}
    tables = {"x": 3.0}
    fails = VERDICTS[2]
    assert claim.swept(tables) == {
        "least": (2.0, [HOLDS, HOLDS, HOLDS, HOLDS, fails]),
        "most": (8.0, [HOLDS] * 5),
    }
    rows = list(rule_rows(judged([claim], tables), tables))
    assert rows[1][2:] == ["least = 2", HOLDS, HOLDS, HOLDS, HOLDS, f"**{fails}**"]
    assert rows[2][:3] == ["", "", "most = 8"]
