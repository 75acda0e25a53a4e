"""The examples in the docstrings give what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCES).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCES.rglob("*.py"))
    if ">>> " in path.read_text(encoding="utf-8")
]


def test_there_are_examples():
    assert len(MODULES) >= 3


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_a_module(name):
    found = doctest.testmod(importlib.import_module(name))
    assert found.attempted and not found.failed
