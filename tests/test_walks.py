"""The walks that docs/design.md tells enter the files that it names."""

import importlib.util
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def walks():
    found = importlib.util.spec_from_file_location("make_walks", DOCS / "make_walks.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def named(title):
    """The files that a walk names, in the steps of an update or a search."""
    text = (DOCS / "design.md").read_text(encoding="utf-8").split(f"### {title}")[1]
    text = text.split("### ")[0].split("Entered by each")[0]
    return set(re.findall(r"`((?:\w+/)+\w+\.py)`", text))


def test_every_file_that_is_named_exists():
    files = named("A click, from file to weight") | named("A query, from text to ranked titles")
    root = DOCS.parent
    assert len(files) > 20
    for file in files:
        assert (root / "src" / "sentemb" / file).exists() or (root / file).exists(), file


def test_an_update_enters_the_files_of_its_steps(walks):
    # Reading the log and starting the training come before the first update.
    earlier = ("cli/", "data/", "text/", "training/families", "training/trainer")
    earlier += ("training/batches/corpus", "training/loop", "kernels/")
    steps = {f for f in named("A click, from file to weight") if not f.startswith(earlier)}
    assert len(steps) >= 9 and steps <= set(walks.update())


def test_a_search_enters_the_files_of_its_steps(walks):
    rare = ("cli/", "kernels/")
    steps = {f for f in named("A query, from text to ranked titles") if not f.startswith(rare)}
    assert len(steps) >= 9 and steps <= set(walks.search())
