"""What goes to a terminal: control characters of others are escaped there, and only there."""

import contextlib
import os
import pty
import re
import subprocess
import sys
import time

import pytest
from click.testing import CliRunner

from sentemb.cli import common, main
from sentemb.system import terminal
from sentemb.system.tables import cut
from sentemb.system.terminal import escaped, note, working

TITLE = "r\u00e9d\x1b]0;owned\x07 \x9b31mtea\x7f\r\u3042"


def on_terminal(arguments):
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    try:
        with open(theirs, "w", encoding="utf-8") as screen, contextlib.redirect_stdout(screen):
            main.main(arguments, standalone_mode=False)
            screen.flush()
            return os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)


def piped_from(arguments):
    """The output of a command that does not write to a terminal."""
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    return done.stdout_bytes.decode()


@pytest.fixture
def rank(model_dir, tmp_path):
    (tmp_path / "queries.tsv").write_text("q\x1b[1m\thotels\n")
    (tmp_path / "docs.tsv").write_text("d\x1b[31m1\thotels in shanghai\nd2\tshanghai hotels\n")
    files = [str(tmp_path / name) for name in ("queries.tsv", "docs.tsv")]
    return ["rank", model_dir, *files]


def test_ids_of_a_run_do_not_reach_the_terminal_raw(rank):
    printed = on_terminal(rank)
    assert "q\\x1b[1m Q0 d" in printed and "d\\x1b[31m1" in printed
    assert not [c for c in printed if c < " " and c not in "\t\n"]
    piped = piped_from(rank)
    assert "q\x1b[1m Q0 d" in piped and "d\x1b[31m1" in piped
    assert printed == escaped(piped)


def test_long_titles_are_cut_on_a_terminal_and_only_there(model_dir, tmp_path, monkeypatch):
    title = "hotels in shanghai " * 9
    (tmp_path / "t.tsv").write_text(f"id\ttitle\tprice\nd1\t{title}\t12\nd2\thotels\t5\n")
    rank = ["rank", model_dir, "--query", "hotels", str(tmp_path / "t.tsv"), "--table"]
    index = str(tmp_path / "index")
    piped_from(["index", model_dir, str(tmp_path / "t.tsv"), "-o", index])
    search = ["search", index, "hotels", "--all"]
    monkeypatch.setenv("COLUMNS", "60")
    for printing in (rank, search):
        printed = re.sub("\x1b[^m]*m", "", on_terminal(printing))  # without the marks of words
        (line,) = [line for line in printed.split("\n") if "…" in line]
        assert len(line) == 60 and "hotels in shanghai" in line
        piped = piped_from(printing)
        assert title.strip() in piped and "…" not in piped
    assert line.endswith("…  price 12")
    assert "\x1b[1mhotels\x1b[0m in shanghai" in on_terminal(search)
    assert (cut("\u3042" * 5, 10), cut("\u3042" * 5, 9)) == ("\u3042" * 5, "\u3042" * 4 + "…")


def test_letters_in_pieces_and_bytes_that_are_no_text(tmp_path):
    """In a process whose standard output is a terminal from its start."""
    code = """
from sentemb.system.files import writing
with writing("-") as file:
    for byte in "\u3042\u00e9\x9b".encode() + bytes([255, 27]):
        file.write(bytes([byte]))
"""
    ours, theirs = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", code], stdout=theirs, timeout=120, check=True)
        assert os.read(ours, 1 << 16).decode() == "\u3042\u00e9\\x9b\\xff\\x1b"
    finally:
        os.close(ours)
        os.close(theirs)


def test_only_control_characters_are_escaped():
    assert escaped(TITLE) == "r\u00e9d\\x1b]0;owned\\x07 \\x9b31mtea\\x7f\\x0d\u3042"
    kept = "a\tb\nc\u00a0\u200d\U0001f600\u202e"
    assert escaped(kept) == kept


@pytest.fixture
def drawn(monkeypatch):
    """What is drawn on standard error, a terminal on which a tenth of a second is long."""
    texts = []
    monkeypatch.setattr(terminal, "is_terminal", lambda: True)
    monkeypatch.setattr(terminal, "_SECONDS_BEFORE", 0.1)
    monkeypatch.setattr(terminal, "draw", texts.append)
    return texts


def wait_for(condition):
    until = time.monotonic() + 30
    while not condition() and time.monotonic() < until:
        time.sleep(0.01)
    assert condition()


def test_a_long_body_shows_its_time_and_removes_it(drawn):
    with working("ranking"):
        wait_for(lambda: drawn)
        note("a message")
    assert drawn[0] == "\r\x1b[Kranking: 0 s"
    assert drawn[1:3] == ["\r\x1b[K", "a message\n"]
    with pytest.raises(KeyError), working("ranking"):
        drawn.clear()
        wait_for(lambda: drawn)
        raise KeyError
    assert drawn[-1] == "\r\x1b[K"


def test_a_short_body_or_one_that_prints_on_the_terminal_shows_nothing(drawn, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    with working("searching", prints=True):
        time.sleep(0.3)
    with working("ranking"):
        pass
    monkeypatch.setattr(terminal, "is_terminal", lambda: False)
    with working("ranking"):
        time.sleep(0.3)
    assert drawn == []


@pytest.mark.parametrize(
    "command", ["import_", "split", "evaluate", "calibrate", "search", "report", "diff", "explain"]
)
def test_commands_that_may_take_long_show_their_time(command):
    import importlib

    module = importlib.import_module(f"sentemb.cli.{command}")
    assert module.working is working


def test_the_time_of_a_second_piece_of_work_begins_with_it(monkeypatch):
    lines, clock = [], iter([0, 10, 100, 102])

    class Line:
        is_due = True
        draw = staticmethod(lines.append)

    monkeypatch.setattr(common, "ProgressLine", Line)
    monkeypatch.setattr(common.time, "monotonic", lambda: next(clock))
    line = common.TimeLeft("titles")
    line.show(5, 10)
    monkeypatch.setattr(common, "duration", lambda seconds: f"{seconds:g} s")
    line.show(1, 4)
    assert lines[1] == "1 of 4 titles, 6 s left"
