"""The notebooks are whole and small; a test of CI runs them and compares what they print."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from helpers import assert_same_output

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_there_and_small(path):
    assert path.stat().st_size < 600_000
    cells = json.loads(path.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    assert sum(bool(cell["outputs"]) for cell in code) >= len(code) / 2


def sources(path, kind):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == kind)


def texts_of(cells):
    """What each code cell prints and returns, as text."""
    return [
        "".join("".join(output.get("text", output.get("data", {}).get("text/plain", "")))
                for output in cell["outputs"])
        for cell in cells if cell["cell_type"] == "code"
    ]  # fmt: skip


def printed(path):
    """What the cells of a notebook print and return, one text."""
    return "\n".join(texts_of(json.loads(path.read_text("utf-8"))["cells"]))


# Notebook 2 draws the paper's figures, each of which has a module of its own.
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_a_warning_or_names_a_machine(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        for output in cell.get("outputs", []):
            assert output.get("name") != "stderr", output["text"]
            assert "site-packages" not in json.dumps(output)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_reader_needs_no_inner_module(path):
    assert not re.findall(r"^(?:from|import) sentemb\..*", sources(path, "code"), re.M)


@pytest.mark.parametrize("path", [NOTEBOOKS[0], *NOTEBOOKS[2:]], ids=lambda path: path.stem)
def test_the_prose_is_plain_english(path):
    foreign = r"\b(beside|anew|stands?|goes on|takes? for|so many|(?<!there )is no|mended)\b"
    assert not re.findall(foreign, sources(path, "markdown"))


def test_notebook_3_compares_its_gradient_with_the_package_block_by_block():
    shown = printed(NOTEBOOKS[2])
    for side in ("query", "document"):
        for gate in (1, 3, 4):
            for name in ("W", "Wrec", "b"):
                block = rf"{side}\.{name}{gate}\s+"
                assert float(re.search(rf"^{block}(\S+)$", shown, re.M)[1]) < 1e-12
                # One term is left out further below, and every block is named again.
                assert re.search(rf"^{block}\S+\s+(WRONG|right)$", shown, re.M)
    assert "WRONG" in shown


def test_notebook_3_shows_which_blocks_each_fault_breaks():
    shown = printed(NOTEBOOKS[2])
    assert re.search(r"^1 word\(s\), without cell-path +nothing fails$", shown, re.M)
    assert re.search(r"^2 word\(s\), without cell-path +W3 b3 W4 b4$", shown, re.M)
    assert re.search(r"^1 word\(s\), without b_g +W3 b3 W4 b4 W2 b2$", shown, re.M)


def test_notebook_3_shows_that_the_error_fades_in_the_rnn_and_not_in_the_lstm():
    left = dict(re.findall(r"^(rnn|lstm) +20 words back, (\S+) of", printed(NOTEBOOKS[2]), re.M))
    assert float(left["rnn"]) < 1e-3 < 1e-2 < float(left["lstm"])


def test_notebook_4_checks_its_gradient_and_finds_the_averages_near_the_maximum():
    shown = printed(NOTEBOOKS[3])
    errors = re.findall(r"(with|without) +the slope of log Z: error (\S+)$", shown, re.M)
    assert [kept for kept, _ in errors] == ["with", "without"] * 2
    for kept, error in errors:
        assert float(error) < 1e-9 if kept == "with" else float(error) > 0.01
    assert float(re.search(r"difference from the package (\S+)", shown)[1]) < 1e-13
    near = dict(re.findall(r"^(plain|weighted) +cosine with the maximum (0.\d+),", shown, re.M))
    assert float(near["plain"]) < 0.95 < 0.98 < float(near["weighted"])


def test_notebook_5_shows_the_identity_the_gates_and_what_word_order_is_worth():
    shown = printed(NOTEBOOKS[4])
    assert float(re.search(r"^largest difference (\S+)$", shown, re.M)[1]) < 1e-14
    ranks = dict(re.findall(r"^rank of a devoted map with gate (\w+): (\d)$", shown, re.M))
    assert ranks == {"and": "1", "printed": "2"}
    gaps = dict(re.findall(r"^gate (\w+) +largest difference (\S+),", shown, re.M))
    assert float(gaps["and"]) < 1e-12 < 0.1 < float(gaps["printed"])
    right = dict(re.findall(r"^(\w+) +loss \S+, right order in (\S+)% of pairs$", shown, re.M))
    assert right["wordembed"] == "50.0" and float(right["arc2"]) > 95


@pytest.mark.ci
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_prints_what_it_shows(path):
    pytest.importorskip("nbclient", reason="needs the extra `notebooks`")
    spec = importlib.util.spec_from_file_location("run", FOLDER / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shown = json.loads(path.read_text("utf-8"))["cells"]
    for before, after in zip(texts_of(shown), texts_of(module.executed(path).cells), strict=True):
        assert_same_output(before, after)


def test_there_are_five():
    assert len(NOTEBOOKS) == 5
