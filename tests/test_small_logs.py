"""Defaults that depend on the size of the log."""

import json
import os

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log

from sentemb import SentembError, SentenceEncoder, prepare_log, train
from sentemb.cli import main
from sentemb.data.click_log import write_click_log
from sentemb.training.towers import settings as settings_module
from sentemb.training.towers.settings import Settings

LOG = made_up_log()
PAIRS = len(LOG.clicks)
TINY = {"cells": 3, "epochs": 1, "batch_size": 16, "hard_negatives": 0, "threads": 1}
SMALL = {"shared_towers": True, "bag_dim": 96}
LARGE = {"shared_towers": False, "bag_dim": 0}


def shape_of(model):
    shape = {"shared_towers": model.shared_towers, "bag_dim": model.encoder.bag_dim}
    recorded = {name: model.training[name] for name in shape}
    assert recorded == shape
    return shape


@pytest.fixture
def limit(monkeypatch):
    """A function that sets the number of pairs from which on a log is not small."""
    return lambda n_pairs: monkeypatch.setattr(settings_module, "SMALL_LOG", n_pairs)


def test_a_small_log_has_shared_towers_and_a_bag(limit):
    assert shape_of(train(LOG, **TINY)) == SMALL
    for n_pairs, expected in ((PAIRS + 1, SMALL), (PAIRS, LARGE)):
        limit(n_pairs)
        assert shape_of(train(LOG, **TINY)) == expected


def test_a_default_is_the_setting_of_that_name():
    """The bits are those of the explicit settings, whatever the size says."""
    found, expected = train(LOG, **TINY), train(LOG, **TINY, **SMALL)
    assert np.array_equal(found.encode(["ab cd"]), expected.encode(["ab cd"]))
    assert found.training == expected.training


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"shared_towers": False}, {"shared_towers": False, "bag_dim": 96}),
        ({"bag_dim": 0}, {"shared_towers": True, "bag_dim": 0}),
        ({"bag_dim": 5, "shared_towers": False}, {"shared_towers": False, "bag_dim": 5}),
        ({"model": "rnn"}, LARGE),
        ({"preset": "paper"}, LARGE),
        ({"preset": "paper", "shared_towers": True}, {**LARGE, "shared_towers": True}),
        ({"preset": "large", "bag_dim": 4}, {**LARGE, "bag_dim": 4}),
        ({"model": "lstm", "splitting": "white-space"}, SMALL),
    ],
)
def test_settings_presets_and_other_models_win(given, expected):
    assert shape_of(train(LOG, **{**TINY, **given})) == expected


def test_a_model_to_start_from_decides(tmp_path):
    train(LOG, **TINY, **LARGE, output=tmp_path / "separate")
    settings = {name: value for name, value in TINY.items() if name != "cells"}
    assert shape_of(train(LOG, **settings, start_from=tmp_path / "separate")) == LARGE
    train(LOG, **TINY, output=tmp_path / "shared")
    assert shape_of(train(LOG, **settings, start_from=tmp_path / "shared")) == SMALL
    bag = train(LOG, **{**TINY, "model": "bag", "word_features": 1})
    assert shape_of(train(LOG, **TINY, model="lstm", start_from=bag)) == LARGE


def test_the_pairs_that_are_trained_on_count(limit):
    held_out = train(LOG, **TINY, dev="20%").training["pairs"]
    assert held_out < PAIRS
    limit(held_out)
    assert shape_of(train(LOG, **TINY, dev="20%")) == LARGE
    limit(PAIRS)
    assert shape_of(train(LOG, **TINY, dev="20%")) == SMALL
    assert shape_of(train(LOG, **TINY, replay=made_up_log(seed=4))) == LARGE


def test_prepared_logs_parts_and_seeds_agree(tmp_path, limit):
    write_click_log(LOG, tmp_path / "log.tsv")
    prepare_log(tmp_path / "log.tsv", tmp_path / "prepared")
    for n_pairs, expected in ((PAIRS + 1, SMALL), (PAIRS, LARGE)):
        limit(n_pairs)
        for more in ({}, {"parts": 2, "meetings": 1}):
            models = [train(source, **TINY, **more) for source in (LOG, tmp_path / "prepared")]
            assert [shape_of(model) for model in models] == 2 * [expected]
            assert np.array_equal(*(model.encode(["ab cd"]) for model in models))
        average = train(LOG, **TINY, seeds=2, output=tmp_path / f"average{n_pairs}")
        assert {name: average.training[name] for name in expected} == expected


def test_a_training_is_resumed_with_the_same_defaults(tmp_path, limit):
    whole = train(LOG, **{**TINY, "epochs": 3}, output=tmp_path / "whole")
    updates = []

    def stop(progress):
        updates.append(progress)
        if len(updates) == 12:
            os.kill(os.getpid(), 15)

    with pytest.raises(BaseException, match="resume"):
        train(LOG, **{**TINY, "epochs": 3}, output=tmp_path / "m", on_progress=stop)
    resumed = train(LOG, **{**TINY, "epochs": 3}, output=tmp_path / "m", resume=True)
    assert shape_of(resumed) == SMALL
    assert np.array_equal(resumed.encode(["ab cd"]), whole.encode(["ab cd"]))
    limit(1)
    with pytest.raises(SentembError, match=r"was trained with .* = .*; resume with the same"):
        train(LOG, **{**TINY, "epochs": 3}, output=tmp_path / "m", resume=True)


def run(*arguments):
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_commands_show_and_take_them(tmp_path):
    write_click_log(LOG, tmp_path / "log.tsv")
    tiny = ("--cells", 3, "--epochs", 1, "--hard-negatives", 0)
    run("train", tmp_path / "log.tsv", *tiny, "-o", tmp_path / "m")
    assert "bag dim 96" in run("info", tmp_path / "m")
    assert "shared towers yes" in run("info", tmp_path / "m")
    given = ("--separate-towers", "--bag-dim", 0)
    run("train", tmp_path / "log.tsv", *tiny, *given, "-o", tmp_path / "n")
    assert "shared towers no" in run("info", tmp_path / "n")
    assert json.loads(run("info", tmp_path / "n", "--json"))["settings"]["shared_towers"] is False
    assert not SentenceEncoder.from_pretrained(tmp_path / "n").shared_towers
    shown = run("train", "--show-config")
    text = "True for lstm and fewer than 15,000 pairs, otherwise False"
    assert f"# shared_towers: {text}\n" in shown and "# bag_dim: 96 for lstm" in shown
    assert f"[default: {text}]" in " ".join(run("train", "--help").split())
    assert "bag_dim = 0\n" in run("train", "--preset", "paper", "--show-config")
    assert "shared_towers = false\n" in run("train", "--model", "rnn", "--show-config")
    assert Settings().shared_towers is False and Settings().bag_dim == 0
