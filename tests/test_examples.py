"""The examples that Hypothesis draws: the same ones by default, others on demand."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

DRAWS = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_draw(number):
    with open("drawn.txt", "a") as file:
        print(number, file=file)
"""


# Twice in one process, which is quicker than two.
TWICE = """
import sys, pytest
from pathlib import Path

for name in ("first", "second"):
    assert not pytest.main(["-q", "-p", "no:cacheprovider", "test_draws.py", *sys.argv[1:]])
    Path("drawn.txt").rename(name)
"""


# Where CI is set, Hypothesis repeats examples by itself unless a profile says otherwise.
@pytest.mark.parametrize(
    ("profile", "in_ci"),
    [("repeatable", ["", "true"]), ("random", ["true"])],
    ids=["repeatable", "random"],
)
def test_examples_are_repeated_unless_random_ones_are_asked_for(profile, in_ci, tmp_path):
    (tmp_path / "conftest.py").write_text((Path(__file__).parent / "conftest.py").read_text())
    (tmp_path / "test_draws.py").write_text(DRAWS)
    asked = [] if profile == "repeatable" else [f"--hypothesis-profile={profile}"]
    drawn = []
    for ci in in_ci:
        subprocess.run(
            # Other plugins take seconds to import.
            [sys.executable, "-c", TWICE, "-p", "_hypothesis_pytestplugin", *asked],
            cwd=tmp_path,
            env={**os.environ, "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            check=True,
            capture_output=True,
        )
        drawn += [(tmp_path / name).read_text() for name in ("first", "second")]
    assert all((one == other) == (profile == "repeatable") for one, other in combinations(drawn, 2))
