"""What goes to a terminal: control characters of others are escaped there, and only there."""

import os
import pty
import subprocess
import sys

import pytest

from sentemb.system.terminal import escaped

TITLE = "r\u00e9d\x1b]0;owned\x07 \x9b31mtea\x7f\r\u3042"


def on_terminal(*command):
    """What a command prints on a terminal."""
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE, timeout=120)
        assert done.returncode == 0, done.stderr
        return os.read(ours, 1 << 16).decode().replace("\r\n", "\n")
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.fixture
def rank(model_dir, tmp_path):
    (tmp_path / "queries.tsv").write_text("q\x1b[1m\thotels\n")
    (tmp_path / "docs.tsv").write_text("d\x1b[31m1\thotels in shanghai\nd2\tshanghai hotels\n")
    files = [str(tmp_path / name) for name in ("queries.tsv", "docs.tsv")]
    return [sys.executable, "-m", "sentemb", "rank", model_dir, *files]


def test_ids_of_a_run_do_not_reach_the_terminal_raw(rank):
    printed = on_terminal(*rank)
    assert "q\\x1b[1m Q0 d" in printed and "d\\x1b[31m1" in printed
    assert not [c for c in printed if c < " " and c not in "\t\n"]
    piped = subprocess.run(rank, capture_output=True, check=True).stdout.decode()
    assert "q\x1b[1m Q0 d" in piped and "d\x1b[31m1" in piped
    assert printed == escaped(piped)


def test_letters_in_pieces_and_bytes_that_are_no_text(tmp_path):
    code = """
from sentemb.system.files import writing
with writing("-") as file:
    for byte in "\u3042\u00e9\x9b".encode() + bytes([255, 27]):
        file.write(bytes([byte]))
"""
    assert on_terminal(sys.executable, "-c", code) == "\u3042\u00e9\\x9b\\xff\\x1b"


def test_only_control_characters_are_escaped():
    assert escaped(TITLE) == "r\u00e9d\\x1b]0;owned\\x07 \\x9b31mtea\\x7f\\x0d\u3042"
    kept = "a\tb\nc\u00a0\u200d\U0001f600\u202e"
    assert escaped(kept) == kept
