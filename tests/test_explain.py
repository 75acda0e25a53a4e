"""One entry of the gradient check, step by step."""

import json
import re

import pytest
from click.testing import CliRunner

import sentemb
from sentemb import SentembError
from sentemb.cli import main
from sentemb.gradients import differences
from sentemb.gradients.differences import STEPS
from sentemb.gradients.entry_trace import explain_gradient
from sentemb.models.towers.registry import ENCODERS

SMALL = {"cells": 3, "lengths": (1, 2, 4), "n_negatives": 2}


def test_it_shows_what_gradcheck_took():
    report = sentemb.gradcheck(**SMALL, entries=4, n_texts=0)
    for block in report.blocks:
        index = ",".join(map(str, block.index))
        found = explain_gradient(f"{block.block}[{index}]", **SMALL)
        assert found.entry == f"{block.block}[{index}]" and found.passed
        assert (found.analytic, found.numeric) == (block.analytic, block.numeric)
        assert [step.step for step in found.steps] == list(STEPS)
        (taken,) = (step for step in found.steps if step.taken)
        assert taken.fourth == found.numeric and taken.fourth_error == found.relative
        assert f"{taken.step:g} was taken" in found.reason
        assert taken.change == min(step.change for step in found.steps[1:])
        assert found.steps[0].change is None


def test_the_orders_of_both_formulas_show():
    """From step to step the errors fall with h² and h⁴ until rounding takes over."""
    coarse, fine = explain_gradient("document.b4[0]", **SMALL).steps[:2]
    ratio = coarse.step / fine.step
    for before, after, order in (
        (coarse.second_error, fine.second_error, 2),
        (coarse.fourth_error, fine.fourth_error, 4),
    ):
        assert before / after == pytest.approx(ratio**order, rel=0.2)


def test_the_differences_of_a_known_function():
    class Cubic:
        x = 0.0

        def loss(self):
            return 3 * self.x + 5 * self.x**3

        def branches(self):
            return b"kink" if self.x > 0.015 else b""

    problem = Cubic()
    found = differences.differences(problem, lambda offset: setattr(problem, "x", offset))
    # The point 2h lies beyond the kink at the coarsest step, h does not.
    assert found.second == pytest.approx([3 + 5 * h**2 for h in STEPS])
    assert found.fourth[1:] == pytest.approx([3.0] * 4) and found.fourth[0] != found.fourth[0]
    assert found.taken in (2, 3, 4) and found.slope == pytest.approx(3.0)


def test_a_fault_and_a_form_are_explained_too():
    exact = explain_gradient("query.b3[0]", **SMALL)
    broken = explain_gradient("query.b3[0]", **SMALL, fault="b_g")
    assert broken.numeric == exact.numeric and not broken.passed and broken.fault == "b_g"
    printed = explain_gradient("query.b3[0]", **SMALL, form="printed")
    assert printed.numeric == exact.numeric and printed.analytic != exact.analytic


def test_a_kink_is_said(monkeypatch):
    # Steps so large that max pooling picks another word.
    monkeypatch.setattr(differences, "STEPS", (300.0, 200.0, 100.0, 50.0, 30.0))
    found = explain_gradient("query.Wc2[0,0]", "clsm", **SMALL)
    assert found.numeric is found.relative is None
    assert "kink" in found.reason and all(step.fourth is None for step in found.steps)


@pytest.mark.parametrize(
    ("entry", "settings", "message"),
    [
        ("query.Wrec2[0,0]", {}, r"no block 'query.Wrec2'. Blocks of query, document: W1, .* b4$"),
        ("query.Wrec3[0,3]", {}, r"shape 3x3, so it has no entry \[0,3\]"),
        ("query.Wrec3[0]", {}, "shape 3x3"),
        ("query.b1[0,0]", {}, "shape 3, "),
        ("query.Wrec3", {}, "does not name an entry such as query.W1"),
        ("query.Wrec3[-1,0]", {}, "does not name an entry"),
        ("query.Wrec3[0,0]", {"shared_towers": True}, r"Blocks of shared: W1,"),
        (3, {}, "does not name an entry"),
        (f"query.b1[{'9' * 5000}]", {}, "does not name an entry"),
        ("query.Wrec3[0,0]", {"tolerance": 0}, "tolerance"),
        ("query.Wrec3[0,0]", {"cells": 0}, "cells"),
    ],
)
def test_what_cannot_be_explained_is_refused(entry, settings, message):
    with pytest.raises(SentembError, match=message):
        explain_gradient(entry, **{**SMALL, **settings})


@pytest.mark.parametrize("model", ENCODERS)
def test_a_refusal_lists_all_blocks(model):
    own = {"forget_gate": True, "peepholes": "full", "bag_dim": 2}
    settings = {key: value for key, value in own.items() if key in ENCODERS[model].names}
    report = sentemb.gradcheck(model, **SMALL, entries=1, n_texts=0, **settings)
    blocks = [block.block for block in report.blocks]
    with pytest.raises(SentembError) as refusal:
        explain_gradient("a block with a very, very long name", model, **SMALL, **settings)
    listed = {
        f"{place}.{name}"
        for group in str(refusal.value).split(". Blocks of ")[1].split("; of ")
        for place in group.split(": ")[0].split(", ")
        for name in group.split(": ")[1].split(", ")
    }
    assert listed == set(blocks)


def test_shared_towers_have_one_side():
    assert (
        explain_gradient("shared.Wrec3[1, 2]", **SMALL, shared_towers=True).entry
        == "shared.Wrec3[1,2]"
    )


# -- the command -----------------------------------------------------------------------------------


def run(*arguments):
    quick = ["gradcheck", "--cells", "3", "--lengths", "1,2,4"]
    return CliRunner().invoke(main, [*quick, *arguments])


def test_the_command_prints_an_aligned_table():
    result = run("--explain", "query.Wrec3[1,2]")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    (head,) = (k for k, line in enumerate(lines) if line.split()[:1] == ["step"])
    table = lines[head : head + 1 + len(STEPS)]
    assert len({len(line) for line in table}) == 1
    assert sum(line.endswith("taken") for line in table) == 2  # the heading and one step
    assert re.search(r"^PASS: relative error .* tolerance 1e-06", result.stdout, re.M)
    assert run("--explain", "query.W3[0,0]", "--break", "b_g").exit_code == 1


def test_the_command_prints_json():
    found = json.loads(run("--explain", "query.Wrec3[1,2]", "--json").stdout)
    assert found == json.loads(
        json.dumps(explain_gradient("query.Wrec3[1,2]", **SMALL | {"n_negatives": 3}).as_dict())
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--explain", "query.Wrec9[0,0]"], "there is no block"),
        (["--explain", "query.W[0,0]", "--model", "all"], "name one model"),
    ],
)
def test_the_command_refuses(arguments, message):
    result = run(*arguments)
    assert result.exit_code == 1 and message in result.output.replace("\n", " ")
