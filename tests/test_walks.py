"""ARCHITECTURE.md names files that exist, and its walks enter those that it names."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def walks():
    found = importlib.util.spec_from_file_location("make_walks", ROOT / "docs" / "make_walks.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def named(title):
    """The files that a walk names, in the steps of an update or a search."""
    text = PAGE.split(f"## {title}")[1].split("## ")[0].split("Entered by each")[0]
    return set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))


def test_every_file_that_is_named_exists():
    files = re.findall(r"`((?:[\w.]+/)+(?:\w+\.\w+)?|\w+_claims\.py)`", PAGE)
    assert len(files) > 50
    places = (ROOT / "src" / "sentemb", ROOT, ROOT / "benchmarks")
    assert [name for name in files if not any((at / name).exists() for at in places)] == []


def test_an_update_enters_the_files_of_its_steps(walks):
    # Reading the log and starting the training come before the first update.
    earlier = ("cli/", "data/", "text/", "training/families", "training/trainer")
    earlier += ("training/batches/corpus", "training/loop", "kernels/")
    steps = {f for f in named("A click, from file to weight") if not f.startswith(earlier)}
    assert len(steps) >= 9 and steps <= set(walks.update().files())


def test_a_search_enters_the_files_of_its_steps(walks):
    rare = ("cli/", "kernels/")
    steps = {f for f in named("A query, from text to ranked titles") if not f.startswith(rare)}
    trace = walks.search()
    assert len(steps) >= 9 and steps <= set(trace.files())
    assert trace.calls <= 202 and trace.deepest <= 14
