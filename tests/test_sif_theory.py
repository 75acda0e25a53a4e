"""The benchmark of SIF's theory: what it says of the paper's numbers, and its CSV files."""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "results" / "sif"


@pytest.fixture(scope="module")
def scripts():
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        yield {name: importlib.import_module(f"sif_{name}") for name in ("theory", "misprints")}
    finally:
        sys.path.remove(str(ROOT / "benchmarks"))


def rows_of(name):
    with open(FOLDER / f"theory-{name}.csv", encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def test_subsampling_next_to_sif(scripts):
    theory = scripts["theory"]
    difference = np.abs(theory.subsampling(theory.P) - theory._sif(theory.P))
    assert difference.max() == pytest.approx(0.219, abs=5e-4)
    a, distance = theory.nearest_a()
    assert a == pytest.approx(6.8e-5, rel=0.01) and distance == pytest.approx(0.129, abs=5e-4)
    assert theory.subsampling_code(np.array([1e-4, 1e-3, 1.0])) == pytest.approx(
        [1.0, 1.0, (np.sqrt(1e3) + 1) / 1e3]
    )


def test_the_simulated_tables_are_those_of_the_code(scripts):
    """One seed lies within four standard deviations of the mean over ten."""
    theory = scripts["theory"]
    for row in rows_of("simulated")[:2]:
        found = theory.simulated_row(theory.SIMULATED[row["word vectors"]], seeds=(11,))
        for name, (value,) in found.items():
            margin = 4 * float(row[f"{name} sd"]) + 0.01
            assert value == pytest.approx(float(row[name]), abs=margin), (row, name)


def test_every_misprint_and_loose_step_is_there():
    assert [row["what"] for row in rows_of("misprints")] == [f"M{k}" for k in range(1, 10)]
    assert [row["what"] for row in rows_of("loose-steps")] == [f"L{k}" for k in range(1, 8)]
    assert all(row["measured effect"] for row in (*rows_of("misprints"), *rows_of("loose-steps")))


@pytest.mark.slow
def test_the_misprints_are_measured_as_written(scripts):
    for name, make in (("misprints", "misprints"), ("loose-steps", "loose_steps")):
        rows = getattr(scripts["misprints"], make)()[1:]
        for written, (number, *_, effect) in zip(rows_of(name), rows, strict=True):
            if number != "M5":  # needs the counts of Wikipedia
                assert written["measured effect"] == effect
