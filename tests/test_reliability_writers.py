"""Writers killed and failing at calls of the file system: a sample of the long check."""

from reliability import overlays, writers
from reliability.count import held
from reliability.filesystem import Faults, in_a_child

from sentemb.system.files import write_text


def test_some_kills():
    held(writers.killed(every=113))


def test_some_errors():
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
