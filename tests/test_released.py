"""What a release wrote is read by every later version, with the same results."""

import importlib.util
import json
from pathlib import Path

import pytest
from helpers import assert_same_output

RELEASED = Path(__file__).with_name("released")
RELEASES = sorted(path.parent for path in RELEASED.glob("*/expected.json"))


def test_there_is_a_release_and_it_is_small():
    assert RELEASES
    for folder in RELEASES:
        assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) < 300_000


@pytest.mark.parametrize("folder", RELEASES, ids=lambda folder: folder.name)
def test_what_a_release_wrote_gives_the_same_results(folder):
    spec = importlib.util.spec_from_file_location("make", RELEASED / "make.py")
    make = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make)
    expected = (folder / "expected.json").read_text("utf-8")
    assert_same_output(expected, json.dumps(make.results(folder), indent=1), tolerance=1e-4)
