"""The sizes that docs/design.md lists can be counted, and stay within what the design allows."""

import importlib.util
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(scope="module")
def sizes():
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(DOCS))
        found = importlib.util.spec_from_file_location("make_sizes", DOCS / "make_sizes.py")
        module = importlib.util.module_from_spec(found)
        found.loader.exec_module(module)
        yield module
    for name in ("make_cli", "make_python"):
        sys.modules.pop(name, None)


def test_the_page_has_a_row_for_each_size(sizes, monkeypatch):
    # Its numbers are not compared.
    monkeypatch.setattr(sizes, "python_files", lambda *folders: [Path(sizes.__file__)])
    page = (DOCS / "design.md").read_text(encoding="utf-8")
    table = page.split(sizes.BEGIN)[1].split(sizes.END)[0]
    names = [row.split("|")[1].strip() for row in table.strip().splitlines()]
    assert names == [row.split("|")[1].strip() for row in sizes.table().splitlines()]


def test_functions_stay_short(sizes):
    lengths = sizes.function_lengths()
    assert sorted(lengths)[len(lengths) // 2] <= 8
    assert sum(length > sizes.LONG for length in lengths) / len(lengths) < 0.029


def test_no_two_classes_have_one_name(sizes):
    assert sizes.shared_class_names() == []
