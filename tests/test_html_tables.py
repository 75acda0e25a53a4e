"""How models, traces and reports draw themselves in a notebook."""

from xml.etree import ElementTree

import numpy as np
import pytest
from helpers import made_up_model

import sentemb
from sentemb.models.sentence_encoder import GateTrace
from sentemb.system.html_tables import FAILED, html_table, shade

TEXTS = ["ab abc", "cd"]


def cells(page):
    """The text of every cell of the only table, row by row."""
    (table,) = ElementTree.fromstring(f"<div>{page}</div>").iter("table")
    return [["".join(cell.itertext()) for cell in row] for row in table]


def styles(page):
    return [cell.get("style") for cell in ElementTree.fromstring(page).iter("td")]


def test_a_table_escapes_its_cells_and_colours_them():
    page = html_table([("a<b", 1, 2), ("c", "&", 4)], ["", "<1>", "2"], [FAILED, ["", shade(0.5)]])
    assert cells(page) == [["", "<1>", "2"], ["a<b", "1", "2"], ["c", "&", "4"]]
    failed, half = f"background: {FAILED}", "background: rgba(0, 114, 178, 0.40)"
    assert styles(page) == [failed, failed, None, half]
    assert cells(html_table([("a", 1)])) == [["a", "1"]]


@pytest.mark.parametrize(
    ("share", "opacity"), [(-1, "0.00"), (0, "0.00"), (1, "0.80"), (7, "0.80")]
)
def test_shades_stay_within_their_range(share, opacity):
    assert shade(share) == f"rgba(0, 114, 178, {opacity})"


def test_a_trace_shows_the_means_of_its_gates():
    trace = GateTrace(
        words=["a", "<b>"],
        y=np.array([[3.0, 4.0], [0.0, 1.0]]),
        c=np.zeros((2, 2)),
        i=np.array([[0.25, 0.75], [1.0, 1.0]]),
        o=np.array([[0.0, 0.5], [0.5, 0.5]]),
        y_g=np.zeros((2, 2)),
    )
    page = trace._repr_html_()
    assert cells(page) == [
        ["", "a", "<b>"],
        ["input gate, mean", "0.50", "1.00"],
        ["output gate, mean", "0.25", "0.50"],
        ["length of the output", "5.00", "1.00"],
    ]
    shares = [0.5, 1.0, 0.25, 0.5, 1.0, 0.2]
    assert styles(page) == [f"background: {shade(share)}" for share in shares]


@pytest.mark.parametrize(
    ("variant", "rows"),
    [
        (("rnn", {}), 2),
        (("lstm", {}), 4),
        (("bilstm", {"forget_gate": True}), 5),
    ],
    ids=str,
)
def test_every_trace_draws_itself(variant, rows):
    page = made_up_model(variant, TEXTS).trace(TEXTS[0])._repr_html_()
    assert len(cells(page)) == rows and cells(page)[0] == ["", "ab", "abc"]
    assert len(set(map(len, cells(page)))) == 1


@pytest.mark.parametrize("shared", [False, True])
def test_a_model_shows_its_sizes(shared):
    model = made_up_model(("lstm", {}), TEXTS, cells=2, shared=shared, history=[{"epoch": 1}])
    shown = dict(cells(model._repr_html_()))
    features = len(model.vocabulary)
    # Three gates with an input matrix, a recurrent matrix and a bias each.
    size = 3 * (2 * features + 2 * 2 + 2) * (1 if shared else 2)
    assert shown["model"] == "lstm" and shown["length of an embedding"] == "2"
    assert shown["features"] == str(features) and shown["weights"] == f"{size:,} in float64"
    assert shown["towers"] == ("shared" if shared else "separate")
    assert "cells 2" in shown["settings"] and shown["epochs of training"] == "1"
    assert "epochs of training" not in dict(cells(made_up_model(("bag", {}), TEXTS)._repr_html_()))


@pytest.mark.usefixtures("two_steps")
def test_a_report_of_the_gradient_check_shows_every_block():
    small = {"cells": 3, "entries": 4, "n_negatives": 2, "lengths": (2,)}
    report = sentemb.gradcheck("lstm", **small, fault="cell-path")
    page = report._repr_html_()
    heads, *rows = cells(page)
    assert heads[0] == "block" and len(rows) == len(report.blocks)
    for row, block in zip(rows, report.blocks, strict=True):
        assert row[0] == block.block and row[-1] == ("pass" if block.passed else "FAIL")
    assert page.count(FAILED) == (len(heads) - 1) * len(report.failed)
    assert "cell-path" in page and report.legend in page and "FAIL (tolerance" in page
    assert repr(report) == "GradientReport(lstm, form scan, 18 blocks, failed in 8)"
    assert "gates:" not in sentemb.gradcheck("rnn", **small, n_texts=0)._repr_html_()
