"""docs/paper.md is what its kept numbers say, complete, and its commands are ones that exist."""

import re
import shlex
from functools import partial

import numpy as np
import paper_models
import pytest
from claims import (
    FAILS,
    HOLDS,
    IN_PART,
    NONE_PRINTED,
    UNTESTED,
    VERDICTS,
    Claim,
    claim_rows,
    judged,
)
from pages import sections_of
from paper import PAGE, anchor_of, filled, results_of
from paper_claims import PARTS, claims
from paper_figures import FIGURES, PICTURES
from paper_models import Laboratory, reverse
from paper_parts import BATH_TITLE, RESULTS, TITLE, _judged_counts, _judged_keywords
from paper_printed import COUNTS, NDCG, scales_of
from paper_training import BOUND, FACTOR, _searched

from sentemb import train
from sentemb.analysis.histories import read_history
from sentemb.analysis.keywords import NOT_COMPARED, Keywords
from sentemb.cli import main
from sentemb.training.stopping import Interrupted

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
        "why": "LSTM and RNN at function words: *do* 1 and 1, *you* 1 and 4, *a* 0 and 3, *and* 2 "
        "and 2, *what* 3 and 5; mean 1.4 and 3.0.",
    }


@pytest.mark.parametrize(
    ("lstm", "rnn", "verdict"),
    [([0, 1, 7], [0, 2, 0], HOLDS), ([1, 1, 0], [0, 2, 9], IN_PART), ([1, 1, 0], [0, 1, 9], FAILS)],
)
def test_the_rule_of_neurons_at_unimportant_words(lstm, rnn, verdict):
    assert _judged_counts(["a", "in", "hotels"], [lstm, rnn])["verdict"] == verdict


@pytest.mark.parametrize("part", ["table-05", "table-06", "table-07", "table-08"])
def test_verdicts_on_counts_follow_from_the_stored_counts(results, part):
    _, *words = results[part]["head"]
    ours, by_sign, printed = (
        _judged_counts(words, [[NOT_COMPARED if cell == "-" else int(cell) for cell in row[1:]]
                               for row in results[part]["rows"][begin : begin + 2]])
        for begin in (0, 2, 4)
    )  # fmt: skip
    assert results[part]["verdict"] == ours["verdict"]
    assert results[part]["why"].startswith(ours["why"])
    assert results[part]["why"].endswith(f"sign: {by_sign['verdict']}.")
    assert results[part]["printed"] == f"{printed['verdict']}: {printed['why']}"


def test_the_bound_of_the_loss_begins_where_it_is_1():
    assert np.logaddexp(0, -BOUND) == pytest.approx(1) and pytest.approx(-0.541, abs=1e-3) == BOUND


@pytest.mark.parametrize("best", [-2, 0, 3])
def test_a_step_size_is_searched_until_the_best_is_between_two_others(best):
    asked = []

    class Lab:
        def costs(self, model, rate, epochs, momentum):
            power = round(np.log(rate / 2) / np.log(FACTOR))
            asked.append(power)
            return [9.0, abs(power - best)]

    rate, costs = _searched(Lab(), "lstm-32", 0.0, 2.0)
    assert rate == pytest.approx(2 * FACTOR**best) and costs == [9.0, 0]
    assert {best - 1, best, best + 1} <= set(asked) and len(asked) == len(set(asked))


def test_printed_scales_are_told_by_their_ends():
    assert scales_of("figure-05") == "−0.6 to 0.4"
    assert scales_of("figure-06") == "query 0.02 to 0.08; title 0.05 to 0.1"


def test_texts_are_reversed_word_by_word():
    assert reverse(["hotels in  shanghai", "tub"]) == ["shanghai in hotels", "tub"]


def test_a_stopped_training_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(paper_models, "PAIRS", 100)
    few = partial(paper_models.simulate, dev_queries=20, test_queries=20)
    monkeypatch.setattr(paper_models, "simulate", few)
    monkeypatch.setitem(paper_models.SETTINGS, "lstm-3", {"cells": 3, "epochs": 4})

    def stopped(*args, **settings):
        def stop(progress):
            if progress.epoch == 3:
                raise KeyboardInterrupt

        return train(*args, checkpoint_seconds=0, on_progress=stop, **settings)

    whole = Laboratory(tmp_path / "whole", 1)._trained("lstm-3", 0.02, 0)
    lab = Laboratory(tmp_path / "stopped", 1)
    with monkeypatch.context() as patched, pytest.raises((KeyboardInterrupt, Interrupted)):
        patched.setattr(paper_models, "train", stopped)
        lab._trained("lstm-3", 0.02, 0)
    again = lab._trained("lstm-3", 0.02, 0)
    file = "model.safetensors"
    assert (again / file).read_bytes() == (whole / file).read_bytes()
    assert read_history(again).losses == read_history(whole).losses


def test_links_lead_to_files_and_headings():
    text = PAGE.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        assert (PAGE.parent / target).exists(), target
    headings = {anchor_of(line[3:]) for line in text.splitlines() if line.startswith("## ")}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) == headings - {
        "how-it-is-measured",
        "misprints-outside-equations",
        "what-the-paper-leaves-open",
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
    assert {path.stem for path in PICTURES.iterdir()} == set(FIGURES)
    assert len(NDCG) == 17
