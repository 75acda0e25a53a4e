"""Writers killed and failing at calls of the file system: a sample of the long check."""

import pytest
from reliability import overlays, writers
from reliability.count import held
from reliability.filesystem import Faults, in_a_child

from sentemb.system.files import write_text


@pytest.fixture
def every_other_writer(monkeypatch, request):
    """The writers at even or odd places; the checks `all-kills` and `all-errors` take all."""
    monkeypatch.setattr(writers, "WRITERS", writers.WRITERS[request.param :: 2])


@pytest.mark.parametrize("every_other_writer", [0], indirect=True)
def test_some_kills(every_other_writer):
    held(writers.killed(every=113))


@pytest.mark.parametrize("every_other_writer", [0], indirect=True)
def test_some_kills_at_random_moments(every_other_writer):
    held(writers.killed_sometime(len(writers.WRITERS) // 4))


@pytest.mark.parametrize("every_other_writer", [1], indirect=True)
def test_some_errors(every_other_writer):
    held(writers.failing(every=113))


def test_some_outputs_over_inputs():
    held(overlays.laid_over(every=53))


def test_the_harness_counts_and_kills(tmp_path):
    write_text(tmp_path / "file", "old")
    with Faults() as faults:
        write_text(tmp_path / "file", "new")
    assert {"open", "flock", "fsync", "replace"} <= set(faults.names)
    calls, _ = in_a_child(lambda: write_text(tmp_path / "file", "new"))
    assert calls == len(faults.names)
    at = faults.names.index("replace")
    assert in_a_child(lambda: write_text(tmp_path / "file", "newer"), at) == (None, None)
    assert (tmp_path / "file").read_text() == "new"
    assert len(list(tmp_path.iterdir())) == 2  # the killed one left its temporary file
    write_text(tmp_path / "file", "newest")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
