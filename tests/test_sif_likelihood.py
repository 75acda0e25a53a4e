"""Equation (2) of the SIF paper: the likelihood, its gradient, and the check of both."""

import json
from pathlib import Path

import lab
import numpy as np
import pytest
from helpers import run_python
from lab.likelihood.likelihood import Likelihood, Partition, Sentences
from naive import sif_likelihood

import sentemb
from sentemb import SentembError
from sentemb.gradients import checks
from sentemb.gradients.checks import CHECKS, CheckEntry, register_check
from sentemb.gradients.entry_trace import explain_gradient
from sentemb.models.towers.registry import CELLS

pytestmark = pytest.mark.usefixtures("laboratory")


def made_up(seed=0, n_words=40, dim=5, scale=1.0):
    rng = np.random.default_rng(seed)
    vectors = scale * (rng.standard_normal((n_words, dim)) + rng.standard_normal(dim))
    p = 1 / np.arange(2.0, n_words + 2)
    return rng, vectors, p / p.sum()


@pytest.mark.parametrize("alpha", [0.0, 0.01, 0.3, 0.99])
def test_value_and_gradient_equal_the_naive_ones(alpha):
    rng, vectors, p = made_up()
    sentences = [[3], [0, 0, 7], [39, 1, 2, 3, 4]]
    C = rng.standard_normal((3, 5))
    likelihood = Likelihood(vectors, p, alpha)
    values, gradient = likelihood.values_and_gradient(C, Sentences.of(sentences))
    _, dropped = likelihood.values_and_gradient(C, Sentences.of(sentences), partition_slope=False)
    for r, words in enumerate(sentences):
        value, exact, without = sif_likelihood(C[r], words, vectors, p, alpha)
        assert values[r] == pytest.approx(value, rel=1e-13)
        assert gradient[r] == pytest.approx(exact, rel=1e-11, abs=1e-13)
        assert dropped[r] == pytest.approx(without, rel=1e-11, abs=1e-13)


def test_words_of_a_distribution():
    rng, vectors, p = made_up()
    c = rng.standard_normal((1, 5))
    likelihood = Likelihood(vectors, p, 0.2)
    logs = [likelihood.values(c, Sentences.of([[w]]))[0] for w in range(40)]
    assert np.exp(logs).sum() == pytest.approx(1, abs=1e-12)


def test_huge_products_neither_overflow_nor_lose_the_words_of_frequency():
    _, vectors, p = made_up(scale=1000.0)
    C = vectors[:1].copy()
    likelihood = Likelihood(vectors, p, 0.2)
    values, gradient = likelihood.values_and_gradient(C, Sentences.of([[0, 5, 9]]))
    assert np.isfinite(values).all() and np.isfinite(gradient).all()
    assert values[0] >= np.log(0.2 * p[[0, 5, 9]]).sum()


@pytest.mark.parametrize("alpha", [0.01, 0.3, 0.9])
def test_the_gradient_at_0_is_that_of_centred_vectors(alpha):
    _, vectors, p = made_up(n_words=300, dim=10)
    sentences = Sentences.of([[3], [0, 0, 7, 299], list(range(12))])
    likelihood = Likelihood(vectors, p, alpha)
    assert likelihood.a == (1 - alpha) / (alpha * 300)
    C = np.zeros((3, 10))
    exact, closed = (
        likelihood.values_and_gradient(C, sentences)[1],
        likelihood.gradient_at_zero(sentences),
    )
    assert np.abs(exact - closed).max() < 1e-14 * np.abs(closed).max()
    without = likelihood.values_and_gradient(C, sentences, partition_slope=False)[1]
    assert np.abs(without - closed).max() > 0.1


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ((np.ones((3, 2)), np.ones(2) / 2, 0.1), "one probability"),
        ((np.ones((2, 2)), np.ones(2) / 2, 1.0), "alpha"),
        ((np.ones((2, 2)), np.ones(2), 0.1), "sum to 1"),
        ((np.ones((2, 2)), np.array([-1.0, 2.0]), 0.1), "at least 0"),
    ],
)
def test_what_is_no_model_is_refused(arguments, word):
    with pytest.raises(SentembError, match=word):
        Likelihood(*arguments)


def test_an_empty_sentence_is_refused():
    for sentences in ([], [[1], []]):
        with pytest.raises(SentembError, match="without words"):
            Sentences.of(sentences)


# -- the check -------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"alpha": 0.01}, {"lengths": (1,)}])
def test_the_exact_gradient_passes_and_the_printed_one_does_not(settings):
    report = sentemb.gradcheck("sif-likelihood", **settings)
    assert report.passed and report.repeatable and report.directional < 1e-8
    assert not report.batch  # sentences are independent of each other
    point, origin = report.blocks
    assert (point.block, origin.block) == ("point.c", "origin.c")
    assert max(point.relative, origin.relative) < 1e-8
    assert point.form_difference is None and origin.form_difference < 1e-14
    printed = sentemb.gradcheck("sif-likelihood", **settings, form="printed")
    assert printed.failed == ["point.c", "origin.c"]
    for block in printed.blocks:
        assert "grad log Z" in block.equations and block.cosine < 0.99


def test_with_a_constant_partition_function_the_printed_gradient_is_right(monkeypatch):
    def constant(self, C):
        return Partition(np.full(len(C), np.log(300.0)), np.zeros(C.shape))

    monkeypatch.setattr(Likelihood, "partition", constant)
    assert sentemb.gradcheck("sif-likelihood", form="printed").passed


def test_a_wrong_gradient_is_found(monkeypatch):
    whole = Likelihood.values_and_gradient

    def spoilt(self, C, sentences, partition_slope=True):
        values, gradient = whole(self, C, sentences, partition_slope)
        return values, gradient * (1 + 1e-5)

    monkeypatch.setattr(Likelihood, "values_and_gradient", spoilt)
    assert sentemb.gradcheck("sif-likelihood").failed == ["point.c", "origin.c"]


def test_one_entry_is_explained():
    (_, origin) = sentemb.gradcheck("sif-likelihood").blocks
    found = explain_gradient(f"origin.c[{origin.index[0]},{origin.index[1]}]", "sif-likelihood")
    assert found.passed and found.numeric == origin.numeric
    with pytest.raises(SentembError, match="Blocks of point, origin: c"):
        explain_gradient("query.c[0,0]", "sif-likelihood")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"form": "trace"}, "no form trace; choose scan or printed"),
        ({"n_negatives": 2}, "no n_negatives, only alpha, lengths, seed; leave n_negatives out"),
        ({"shared_towers": True}, "no shared_towers"),
        ({"cells": 3}, "no cells"),
        ({"other": 3}, "no other"),
        ({"alpha": 0}, "alpha is 0; give a number above 0 and below 1"),
        ({"fault": "b_g"}, "no terms to leave out"),
    ],
)
def test_settings_that_do_not_apply_are_refused(settings, message):
    with pytest.raises(SentembError, match=message):
        sentemb.gradcheck("sif-likelihood", **settings)


def test_an_unknown_name_lists_models_and_checks():
    with pytest.raises(SentembError, match=r"lstm, .* clsm, .*sif-likelihood"):
        sentemb.gradcheck("gru")
    with pytest.raises(SentembError, match="the model lstm has no alpha"):
        sentemb.gradcheck("lstm", alpha=0.2)


def test_a_check_can_be_registered_with_settings_of_encoders(monkeypatch):
    monkeypatch.setattr(checks, "CHECKS", dict(CHECKS))
    entry = CheckEntry("twice", "lab.likelihood.check:SIFLikelihood", (), (CELLS,))
    register_check(entry)
    assert entry.names == ("cells", "seed") and "twice" in checks.CHECKS
    for name in ("twice", "lstm"):
        with pytest.raises(SentembError, match=f"there is a check {name} already"):
            register_check(CheckEntry(name, "a:b"))


# A process of its own, whose command has the choices that it is imported with.
RUN = """
import json, sys
from click.testing import CliRunner
from lab import checks, commands
from sentemb.cli import main

checks.register()
commands.register()
for arguments in json.loads(sys.argv[1]):
    done = CliRunner().invoke(main, ["gradcheck", "--model", "sif-likelihood", *arguments])
    print(json.dumps([done.exit_code, done.stdout, done.stderr]))
"""


def test_the_command_prints_both_gradients():
    runs = [
        ("--lengths", "2,3"), ("--form", "printed"), ("--json",), ("--explain", "origin.c[0,1]"),
        ("--cells", "3"), ("--break", "b_g"), ("--form", "trace"),
    ]  # fmt: skip
    folder = Path(lab.__file__).parents[1]
    lines = run_python(RUN, json.dumps(runs), PYTHONPATH=str(folder), check=True).stdout
    scan, printed, as_json, explained, *refused = map(json.loads, lines.splitlines())
    assert scan[0] == 0 and "sif-likelihood, form scan: alpha 0.3" in scan[1]
    assert printed[0] == 1 and "at fault in point.c, origin.c:" in printed[1]
    (report,) = json.loads(as_json[1])
    assert report["passed"] and report["settings"]["alpha"] == 0.3
    assert explained[0] == 0 and "PASS: relative error" in explained[1]
    assert len(refused) == 3
    for code, _, said in refused:
        assert code == 1 and "Error: sif-likelihood has no" in said
