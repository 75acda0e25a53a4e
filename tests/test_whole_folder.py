"""Folders that are written as a whole: an error or a stop at every call leaves what was there."""

import errno
import itertools
import os
import shutil

import pytest
from helpers import failing_calls, tree

from sentemb import SentembError
from sentemb.system import whole_folder
from sentemb.system.files import write_text
from sentemb.system.whole_folder import check_free, filling, replacing_folder

NAMES = ("a.txt", "dev/c.txt", "dev/d.txt")
CALLS = ("replace", "rename", "mkdir", "fsync", "open", "rmdir")


def fill(out):
    with filling(out, NAMES) as place:
        for name in NAMES:
            write_text(place / name, "new")


def prepare(top, state):
    """The folder to write to: not there, empty, or with files of its own and to be replaced."""
    shutil.rmtree(top, ignore_errors=True)
    top.mkdir()
    out = top / "deep" / "out"
    if state != "new":
        out.mkdir(parents=True)
    if state == "full":
        (out / "dev").mkdir()
        for name in ("a.txt", "mine.txt", "dev/c.txt"):
            (out / name).write_text("old")
    return out


@pytest.mark.parametrize("state", ["new", "empty", "full"])
def test_all_files_take_their_places(tmp_path, state):
    out = prepare(tmp_path / "top", state)
    kept = {"mine.txt": b"old"} if state == "full" else {}
    fill(out)
    assert tree(out) == {"dev": None, **dict.fromkeys(NAMES, b"new"), **kept}
    assert oct(out.stat().st_mode) == oct(tmp_path.joinpath("top").stat().st_mode)


@pytest.mark.parametrize("state", ["new", "empty", "full"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stop"]
)
def test_whatever_call_fails_all_or_nothing_is_written(tmp_path, state, error, monkeypatch):
    top = tmp_path / "top"
    failed = 0
    for count in itertools.count(1):
        out = prepare(top, state)
        before = tree(top)
        with monkeypatch.context() as patch:
            calls = failing_calls(patch, CALLS, count, error)
            try:
                fill(out)
                raised = None
            except (SentembError, KeyboardInterrupt) as found:
                raised = found
        if len(calls) < count:
            break
        # Some errors mean nothing: that a folder cannot be made which is there.
        failed += raised is not None
        if raised is None or tree(top) != before:
            # Ctrl-C may come when all is in place.
            assert not isinstance(raised, SentembError), (count, calls[count - 1])
            assert [(out / name).read_text() for name in NAMES] == ["new"] * 3
            assert raised is None or not list(top.rglob("*.tmp")), (count, calls[count - 1])
        if isinstance(raised, SentembError):
            message = str(raised)
            assert message.startswith(str(tmp_path)) and ".tmp" not in message
            assert "No space left" in message
    assert failed > 10


def test_a_stop_while_files_are_made(tmp_path):
    out = prepare(tmp_path / "top", "full")
    before = tree(tmp_path)
    with pytest.raises(KeyboardInterrupt), filling(out) as place:
        write_text(place / "a.txt", "new")
        raise KeyboardInterrupt
    assert tree(tmp_path) == before


def test_folders_and_links_in_the_way(tmp_path):
    out = prepare(tmp_path / "top", "full")
    (out / "dev/d.txt").mkdir()
    before = tree(tmp_path)
    with pytest.raises(SentembError, match=r"d\.txt: is a folder; name another place"):
        fill(out)
    assert tree(tmp_path) == before
    (out / "dev/d.txt").rmdir()
    victim = tmp_path / "victim.txt"
    victim.write_text("kept")
    os.symlink(victim, out / "dev/d.txt")
    fill(out)
    assert victim.read_text() == "kept" and not (out / "dev/d.txt").is_symlink()


def test_a_folder_in_use_is_refused(tmp_path):
    out = prepare(tmp_path / "top", "full")
    check_free(tmp_path / "nothing", force=False)
    check_free(out, force=True)
    with pytest.raises(SentembError, match="is not empty; name another folder or use --force"):
        check_free(out, force=False)
    with pytest.raises(SentembError, match="is a file; name a folder"):
        check_free(out / "mine.txt", force=True)


def replace(out):
    with replacing_folder(out, NAMES) as place:
        for name in NAMES:
            (place / name).parent.mkdir(exist_ok=True)
            write_text(place / name, "new")


@pytest.mark.parametrize("can_link", [True, False])
def test_a_replaced_folder_keeps_what_is_not_listed(tmp_path, monkeypatch, can_link):
    if not can_link:
        monkeypatch.setattr(os, "link", fails_with(OSError(errno.EPERM, "not permitted")))
    out = prepare(tmp_path / "top", "full")
    (out / "dev/deep/empty").mkdir(parents=True)
    os.symlink("nowhere", out / "dev/link")
    replace(out)
    assert tree(out) == {
        "dev": None,
        "dev/deep": None,
        "dev/deep/empty": None,
        "dev/link": None,
        "mine.txt": b"old",
        **dict.fromkeys(NAMES, b"new"),
    }


@pytest.mark.parametrize("state", ["new", "empty", "full"])
@pytest.mark.parametrize("write", [fill, replace])
def test_each_file_and_folder_is_flushed_once_before_it_has_its_name(
    tmp_path, state, write, monkeypatch
):
    """Files inside are not replaced one by one; `os.fsync` knows a file by its number."""
    out = prepare(tmp_path / "top", state)
    flushed, whole = [], []
    real_fsync, real_swap = os.fsync, whole_folder.exchange

    def fsync(handle):
        flushed.append(os.fstat(handle).st_ino)
        real_fsync(handle)

    def flushed_before(function):
        def call(*names):
            whole.append(set(flushed))
            return function(*names)

        return call

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(whole_folder, "exchange", flushed_before(real_swap))
    monkeypatch.setattr(os, "rename", flushed_before(os.rename))
    monkeypatch.setattr(os, "replace", flushed_before(os.replace))
    write(out)
    numbers = [(out / name).stat().st_ino for name in NAMES]
    assert [flushed.count(number) for number in numbers] == [1] * len(NAMES)
    assert all(set(numbers) <= before for before in whole)
    assert flushed.count((out / "dev").stat().st_ino) <= 2


def test_a_second_name_of_an_old_file_is_not_written_through(tmp_path):
    out = prepare(tmp_path / "top", "full")
    kept = tmp_path / "kept.txt"
    os.link(out / "a.txt", kept)
    with replacing_folder(out, NAMES) as place:
        os.link(out / "a.txt", place / "a.txt")
        write_text(place / "a.txt", "new")
    assert kept.read_text() == "old" and (out / "a.txt").read_text() == "new"


def fails_with(error):
    def fail(*arguments, **settings):
        raise error

    return fail


@pytest.mark.parametrize("write", [filling, replacing_folder])
def test_a_name_that_is_not_listed_is_refused(tmp_path, write):
    out = prepare(tmp_path / "top", "full")
    before = tree(tmp_path)
    with (
        pytest.raises(SentembError, match=r"mine\.txt: would be replaced, and was not written"),
        write(out, NAMES) as place,
    ):
        write_text(place / "mine.txt", "new")
    assert tree(tmp_path) == before


def test_whatever_call_fails_what_is_not_listed_stays(tmp_path, monkeypatch):
    for count in itertools.count(1):
        out = prepare(tmp_path / "top", "full")
        before = tree(out)
        after = before | dict.fromkeys(NAMES, b"new")
        with monkeypatch.context() as patch:
            error = OSError(errno.ENOSPC, "No space left on device")
            calls = failing_calls(patch, (*CALLS, "link"), count, error)
            try:
                replace(out)
            except SentembError:
                assert tree(out) in (before, after)
        if len(calls) < count:
            break
        assert (out / "mine.txt").read_text() == "old"
    assert count > 10
