"""The examples that Hypothesis draws: the same ones by default, others on demand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DRAWS = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_draw(number):
    with open("drawn.txt", "a") as file:
        print(number, file=file)
"""


@pytest.mark.parametrize("ci", ["", "true"])
@pytest.mark.parametrize("profile", ["repeatable", "random"])
def test_examples_are_repeated_unless_random_ones_are_asked_for(profile, ci, tmp_path):
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (tmp_path / "test_draws.py").write_text(DRAWS)
    asked = [] if profile == "repeatable" else [f"--hypothesis-profile={profile}"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_draws.py"]
    drawn = []
    for _ in range(2):
        subprocess.run(
            [*command, *asked],
            cwd=tmp_path,
            env={**os.environ, "CI": ci},
            check=True,
            capture_output=True,
        )
        drawn.append((tmp_path / "drawn.txt").read_text())
        (tmp_path / "drawn.txt").unlink()
    assert (drawn[0] == drawn[1]) == (profile == "repeatable")
