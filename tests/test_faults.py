"""Terms left out on purpose: which blocks of the gradient check fail, and which do not."""

from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import LSTM_SETTINGS, made_up_model

import sentemb
from sentemb import SentembError
from sentemb.cli import main
from sentemb.gradients.check_options import FAULTS
from sentemb.gradients.faults import BrokenEncoder, broken_gradient
from sentemb.gradients.pair_problem import PairProblem
from sentemb.system.parallel import Workers
from sentemb.training.objectives.objective import Objective

pytestmark = pytest.mark.usefixtures("two_steps")

SMALL = {"cells": 3, "entries": 2, "n_negatives": 1}
FORGET = {"forget_gate": True}
FULL = {"forget_gate": True, "peepholes": "full"}
DIAGONAL = {"forget_gate": True, "peepholes": "diagonal"}
QUERIES, TITLES = ["ab abc cd ab", "dd a"], ["cab dd", "abc ab dda"]
NEGATIVES = [["a b c"], ["dd", "cd abc"]]


def blocks(*names):
    return set(" ".join(names).split())


def problem_of(variant, workers):
    texts = [*QUERIES, *TITLES, *(title for some in NEGATIVES for title in some)]
    return PairProblem(
        made_up_model(variant, texts).towers, QUERIES, TITLES, NEGATIVES, Objective(), workers
    )


@pytest.mark.parametrize(
    "variant",
    [
        *(("lstm", settings) for settings in LSTM_SETTINGS),
        ("bilstm", FULL),
        ("lstm", {"output_gate": False, **FULL}),
        ("lstm", {"bag_dim": 3}),
        ("bilstm", {"bag_dim": 3, **DIAGONAL}),
    ],
    ids=str,
)
def test_nothing_struck_out_is_the_exact_gradient(variant):
    with Workers(1) as workers:
        problem = problem_of(variant, workers)
        exact = problem.gradient()
        whole = BrokenEncoder(problem.towers.encoder, None)
        problem.towers = replace(problem.towers, encoder=whole)
        plain = problem.gradient()
    for side in exact:
        assert exact[side].keys() == plain[side].keys()
        for name, block in exact[side].items():
            np.testing.assert_allclose(
                plain[side][name], block, rtol=0, atol=1e-12 * abs(block).max()
            )


@pytest.mark.parametrize(
    ("fault", "words", "settings", "expected"),
    [
        # One word: nothing comes from a later word, and y(0) = c(0) = 0.
        ("cell-path", 1, FULL, blocks()),
        ("other-gates", 1, FULL, blocks()),
        ("b_g", 1, {}, blocks("W3 b3 W4 b4")),
        ("b_g", 1, FORGET, blocks("W2 b2 W3 b3 W4 b4")),
        ("peepholes", 1, FULL, blocks("W3 b3 W4 b4")),
        ("peepholes", 1, DIAGONAL, blocks("W3 b3 W4 b4")),
        # Two words: e(1) and eps(1) come from the second word.
        ("cell-path", 2, {}, blocks("W3 b3 W4 b4")),
        ("cell-path", 2, FULL, blocks("W3 b3 W4 b4")),
        ("other-gates", 2, {}, blocks("W1 b1 W3 b3 W4 b4")),
        ("other-gates", 2, FULL, blocks("W1 b1 Wp1 W3 b3 W4 b4")),
        ("b_g", 2, {}, blocks("W1 b1 W3 b3 Wrec3 W4 b4 Wrec4")),
        (
            "peepholes",
            2,
            FULL,
            blocks("W1 b1 Wp1 W2 b2 Wrec2 Wp2 W3 b3 Wrec3 Wp3 W4 b4 Wrec4"),
        ),
    ],
)
def test_the_blocks_that_the_term_reaches_fail_and_no_others(fault, words, settings, expected):
    lengths = (words,) * 3
    report = sentemb.gradcheck("lstm", **SMALL, **settings, lengths=lengths, fault=fault)
    assert set(report.failed) == {
        f"{side}.{name}" for side in ("query", "document") for name in expected
    }
    assert report.passed == (not expected) and report.fault == fault
    assert all(block.passed == (block.block not in report.failed) for block in report.blocks)


@pytest.mark.parametrize(
    ("model", "fault"), [*(("lstm", fault) for fault in FAULTS), ("bilstm", "cell-path")]
)
def test_in_long_texts_every_block_of_the_cells_fails_but_not_the_bag(model, fault):
    report = sentemb.gradcheck(model, **SMALL, **FULL, bag_dim=2, lengths=(3, 5), fault=fault)
    passing = {block.block for block in report.blocks if block.passed}
    assert passing == {"query.Wbag", "document.Wbag"}
    assert report.directional > report.tolerance and report.repeatable


def test_the_whole_check_passes_after_a_fault():
    """The fault leaves nothing behind in the model."""
    with Workers(1) as workers:
        problem = problem_of(("lstm", {}), workers)
        towers, exact = problem.towers, problem.gradient()
        broken = broken_gradient(problem, "b_g")
        again = problem.gradient()
    assert problem.towers is towers
    assert not np.allclose(broken["query"]["W3"], exact["query"]["W3"])
    assert np.array_equal(again["query"]["W3"], exact["query"]["W3"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"fault": "b_f"}, "cell-path, other-gates, b_g, peepholes"),
        ({"fault": "b_g", "model": "rnn"}, "rnn has no such term; use lstm or bilstm"),
        ({"fault": "cell-path", "model": "dssm"}, "dssm has no such term"),
        ({"fault": "peepholes"}, "no peepholes to leave out; choose diagonal or full"),
        ({"fault": "b_g", "form": "trace"}, "leave out the form trace"),
    ],
)
def test_faults_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(SentembError, match=message):
        sentemb.gradcheck(**arguments)


def test_the_command_offers_every_fault():
    result = run("--help")
    assert f"[{'|'.join(FAULTS)}]" in "".join(result.stdout.split())


def run(*arguments):
    return CliRunner().invoke(main, ["gradcheck", "--cells", "3", *arguments])


def test_the_command_names_the_fault_and_the_blocks_that_fail():
    result = run("--lengths", "2", "--break", "cell-path")
    assert result.exit_code == 1
    line = next(line for line in result.stdout.splitlines() if line.startswith("left out"))
    assert "cell-path" in line and FAULTS["cell-path"] in line
    failing = "query.W3, query.b3, query.W4, query.b4, document.W3, document.b3"
    assert failing in result.stdout and "FAIL (tolerance" in result.stdout


def test_the_command_says_when_no_block_uses_the_term():
    result = run("--lengths", "1", "--break", "other-gates")
    assert result.exit_code == 0
    assert "no block fails: texts of one word do not use this term" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--break", "b_f"], 2, "'b_f' is not one of"),
        (["--model", "rnn", "--break", "b_g"], 1, "rnn has no such term"),
        (["--model", "all", "--break", "b_g"], 1, "name one model"),
    ],
)
def test_the_command_refuses(arguments, code, message):
    result = run(*arguments)
    assert result.exit_code == code and message in result.output.replace("\n", " ")
