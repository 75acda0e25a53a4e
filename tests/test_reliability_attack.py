"""The program under attack: damaged files, and the command line in every bad place."""

import warnings

import numpy as np
import pytest
from reliability import fuzz
from reliability.battery import Case, Outcome, battery, wrong_with
from reliability.count import held
from reliability.crafted import crafted
from reliability.released import released
from reliability.samples import PAIR_TRAINING, make_scorer, pairs
from reliability.sandbox import changes, snapshot
from reliability.tables import tables

from sentemb import SentembError, train

# One process each: to begin one takes longer than the few cases, and other tests run meanwhile.


def test_past_escapes_and_some_mutations():
    held(fuzz.escapes(150, repaired=30))


def test_some_crafted_folders():
    held(crafted(15, seed=0, workers=1))


def test_some_damaged_files_of_released_versions():
    held(released(30, seed=0, workers=1))


def test_some_crafted_tables():
    pytest.importorskip("pyarrow")
    held(tables(30, seed=0, workers=1))


@pytest.mark.parametrize("name", ["arc2", "urae"])
def test_a_training_from_huge_weights_diverges_without_warnings_of_numpy(name, tmp_path):
    scorer = make_scorer(name)
    for block in scorer.matcher.parameters().values():
        odd = np.arange(block.size).reshape(block.shape) % 2
        block[...] = 1e12 if name == "urae" else np.where(odd, 1e9, -1e9)
    scorer.save_pretrained(tmp_path / "m")
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(SentembError, match=r"the loss is not a number|have become huge"):
            train(pairs(), start_from=tmp_path / "m", **{**PAIR_TRAINING, "epochs": 3})


@pytest.mark.ci
def test_a_sample_of_the_battery():
    held(battery(every=240, lanes=1))


@pytest.mark.slow
def test_many_mutations():
    held(fuzz.fuzz(100_000, seed=1, repaired=20_000))


@pytest.mark.slow
def test_the_whole_battery():
    count = battery()
    assert count.tried >= 450
    held(count)


@pytest.mark.parametrize(
    ("case", "code", "stderr", "found"),
    [
        ({}, 1, "Error: x: is missing; give it\n", None),
        ({}, 1, "warning: a text is empty\nError: x: is missing; give it\n", None),
        ({}, 0, "", "exit code 0, not 1"),
        ({}, None, "", "hangs"),
        ({}, -11, "", "exit code -11"),
        ({}, 1, "Traceback (most recent call last):\nError: x\n", "Traceback"),
        ({}, 1, "Aborted!\n", "Aborted!"),
        ({}, 1, "Error: x\nError: y\n", "one line"),
        ({}, 1, "Error: x\nand more\n", "one line"),
        ({}, 1, "Error: a \x1b[31mred x\n", "control characters"),
        ({}, 1, f"Error: {'x' * 301}\n", "letters"),
        ({"says": ("y",)}, 1, "Error: x: is missing; give it\n", "'y' is not in"),
        ({"code": 2}, 2, "Usage: sentemb\n\nError: No such option\n", None),
        ({"code": 2}, 2, "No such option\n", "wrong usage"),
        ({"code": (0, 1)}, 0, "Error: x\n", "exit code 0 with"),
        ({"check": lambda outcome: "it is wrong"}, 1, "Error: x\n", "it is wrong"),
    ],
)
def test_the_battery_sees_what_is_wrong(case, code, stderr, found):
    case = Case("test: a case", ("score",), **case)
    wrong = wrong_with(case, Outcome(code, b"", stderr, None, {}, 0))
    assert (found is None and not wrong) or found in "; ".join(wrong)


def test_a_snapshot_sees_every_change(tmp_path):
    """The harness itself: whatever changes in a folder is said."""
    (tmp_path / "file").write_text("a")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("file")
    before = snapshot(tmp_path)
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").unlink()
    (tmp_path / "link").write_text("a")
    (tmp_path / "folder").rmdir()
    (tmp_path / "new").touch()
    (tmp_path / ".new.tmp").touch()
    found = changes(before, snapshot(tmp_path), allowed=["new", ".new.tmp"])
    assert found == [".new.tmp is new", "file changed", "folder is gone", "link changed"]


@pytest.mark.parametrize(
    "message", ["two\nlines", "a bell \x07", "long" * 99, "lone \ud800", "a separator \u2028"]
)
def test_a_bad_message_is_found(message):
    assert fuzz.wrong_with_message("a place: something is wrong; do that") is None
    assert fuzz.wrong_with_message(message)
