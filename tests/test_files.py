"""The file layer: places of every kind, permissions, locks, and systems that lack some of it."""

import errno
import os
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
from helpers import made_up_log, made_up_model

from sentemb import SentembError, SentenceEncoder, train
from sentemb.data.lines import write_lines
from sentemb.system import locks
from sentemb.system.files import MAX_LINE_BYTES, numbered_lines, replacing, write_text
from sentemb.system.kept_files import KeptFiles
from sentemb.system.locks import (
    is_temporary,
    locked,
    remove_abandoned,
    temporary_file,
    temporary_folder,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="devices and owners need root")


def mode_of(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def names(folder):
    return sorted(os.listdir(folder))


# -- what a file is replaced by --------------------------------------------------------------------


@needs_root
def test_a_device_stays_a_device(tmp_path):
    os.mknod(tmp_path / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    write_text(tmp_path / "null", "gone")
    assert stat.S_ISCHR(os.stat(tmp_path / "null").st_mode)
    assert names(tmp_path) == ["null"]


def test_a_pipe_stays_a_pipe_and_gets_the_text(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    found = []
    reader = threading.Thread(target=lambda: found.append((tmp_path / "pipe").read_text()))
    reader.start()
    write_lines(tmp_path / "pipe", ["a", "b"])
    reader.join(timeout=10)
    assert found == ["a\nb\n"]
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
def test_a_pipe_by_its_number_gets_the_text():
    """What /dev/stdout and a shell's >(command) are: links that lead to no path."""
    reader, writer = os.pipe()
    write_text(f"/proc/self/fd/{writer}", "text")
    os.close(writer)
    with open(reader, "rb") as file:
        assert file.read() == b"text"


@pytest.mark.parametrize("exists", [False, True])
def test_a_link_stays_a_link(tmp_path, exists):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "file"
    if exists:
        target.write_text("old")
    (tmp_path / "link").symlink_to("folder/file")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and target.read_text() == "new"
    assert names(tmp_path) == ["folder", "link"] and names(tmp_path / "folder") == ["file"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o755])
def test_permissions_stay(tmp_path, mode):
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(mode)
    write_text(tmp_path / "file", "new")
    assert mode_of(tmp_path / "file") == mode


@needs_root
def test_the_owner_stays(tmp_path):
    (tmp_path / "file").write_text("old")
    os.chown(tmp_path / "file", 1234, 4321)
    write_text(tmp_path / "file", "new")
    found = os.stat(tmp_path / "file")
    assert (found.st_uid, found.st_gid) == (1234, 4321)


@pytest.mark.parametrize("number", [errno.EPERM, errno.EINVAL, errno.ENOSYS])
def test_an_owner_that_cannot_be_kept_is_no_obstacle(tmp_path, monkeypatch, number):
    """Network folders, and containers that do not know the owner."""

    def refuse(*arguments):
        raise OSError(number, os.strerror(number))

    write_text(tmp_path / "file", "old")
    monkeypatch.setattr(os, "chown", refuse)
    write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"


def test_new_files_follow_the_umask_which_is_never_changed(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "umask", None)
            write_text(tmp_path / "file", "new")
        assert mode_of(tmp_path / "file") == 0o640
    finally:
        os.umask(before)


def test_a_private_file_is_private_while_it_is_written(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "file").chmod(0o600)
    with replacing(tmp_path / "file") as temporary:
        assert mode_of(temporary) == 0o600
        temporary.write_text("new")


@pytest.mark.parametrize("name", ["", "folder", "folder/", "file/x", "a\0b", "x" * 300, "loop"])
def test_places_that_cannot_be_written(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("here")
    (tmp_path / "loop").symlink_to("loop")
    before = names(tmp_path)
    with pytest.raises(SentembError) as caught:
        write_text(name, "new")
    assert "\n" not in str(caught.value) and len(str(caught.value)) <= 300
    assert names(tmp_path) == before


def test_folders_that_were_made_for_a_file_go_when_it_cannot_be_written(tmp_path):
    with (
        pytest.raises(SentembError, match="No space"),
        replacing(tmp_path / "a" / "b" / "file") as temporary,
    ):
        assert temporary.parent == tmp_path / "a" / "b"
        raise OSError(errno.ENOSPC, "No space left on device")
    assert names(tmp_path) == []
    write_text(tmp_path / "a" / "b" / "file", "new")
    assert (tmp_path / "a" / "b" / "file").read_text() == "new"


def test_a_line_without_end_is_not_taken_into_memory(tmp_path):
    code = (
        "import sys\nfrom sentemb.system.files import numbered_lines\n"
        "try:\n    list(numbered_lines('-'))\nexcept ValueError as error:\n    print(error)"
    )
    with open("/dev/zero", "rb") as zeros:
        run = subprocess.run(
            [sys.executable, "-c", code], stdin=zeros, capture_output=True, timeout=60
        )
    assert b"standard input:1: longer than" in run.stdout
    (tmp_path / "long").write_bytes(b"a" * MAX_LINE_BYTES + b"\nb\n")
    with pytest.raises(SentembError, match="long:1"):
        list(numbered_lines(tmp_path / "long"))
    (tmp_path / "long").write_bytes(b"a" * (MAX_LINE_BYTES - 1) + b"\nb")
    assert [len(text) for _, text in numbered_lines(tmp_path / "long")] == [MAX_LINE_BYTES - 1, 1]


# -- locks and what killed processes leave ---------------------------------------------------------


def test_what_a_killed_writer_left_goes_and_what_is_being_written_stays(tmp_path):
    (tmp_path / ".sentemb-0123456789abcdef.tmp").write_text("left")
    (tmp_path / ".sentemb-fedcba9876543210.tmp").mkdir()
    (tmp_path / ".sentemb-fedcba9876543210.tmp" / "file").write_text("left")
    (tmp_path / ".sentemb-mine.tmp").write_text("another program's")
    with temporary_file(tmp_path) as file, temporary_folder(tmp_path) as folder:
        assert is_temporary(file.name) and is_temporary(folder.name)
        remove_abandoned(tmp_path)
        assert names(tmp_path) == sorted([".sentemb-mine.tmp", file.name, folder.name])
        write_text(tmp_path / "other", "new")  # which removes what is abandoned as well
        assert file.exists() and folder.exists()
    assert names(tmp_path) == [".sentemb-mine.tmp", "other"]


def test_a_link_under_the_name_of_a_temporary_file_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("kept")
    (tmp_path / ".sentemb-0123456789abcdef.tmp").symlink_to("mine")
    remove_abandoned(tmp_path)
    assert (tmp_path / "mine").read_text() == "kept"


def test_a_temporary_folder_that_is_swept_while_it_is_made_is_made_again(tmp_path, monkeypatch):
    mkdir, made = os.mkdir, []

    def mkdir_and_lose_the_first(path, *rest):
        mkdir(path, *rest)
        made.append(path)
        if len(made) == 1:
            remove_abandoned(tmp_path)

    monkeypatch.setattr(os, "mkdir", mkdir_and_lose_the_first)
    with temporary_folder(tmp_path) as folder:
        assert folder.is_dir()
    assert len(made) == 2 and names(tmp_path) == []


def test_writers_of_one_file_at_once(tmp_path):
    """One of them is the last; nobody fails, nothing is mixed, nothing is left."""
    failed = []

    def write(number):
        try:
            for _ in range(30):
                write_lines(tmp_path / "file", [str(number)] * 1000)
        except SentembError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(set((tmp_path / "file").read_text().split())) == 1
    assert names(tmp_path) == ["file"]


def test_a_folder_has_one_writer_also_in_one_process(tmp_path):
    with locked(tmp_path):
        with pytest.raises(SentembError, match="another process"), locked(tmp_path):
            pass
        pid = os.fork()
        if pid == 0:  # a child that lives on does not keep the lock
            os.read(os.open(os.devnull, os.O_RDONLY), 1)
            os._exit(0)
    with locked(tmp_path):
        os.waitpid(pid, 0)
    assert names(tmp_path) == []


def test_a_reader_beside_a_saver_never_fails(tmp_path):
    texts = ["abcd ab abc", "ab", "dcba abcd"]
    models = [
        made_up_model(("lstm", {}), texts, cells=4, dtype=np.float32, seed=seed) for seed in (0, 1)
    ]
    expected = [model.encode("abcd ab").tobytes() for model in models]
    models[0].save_pretrained(tmp_path / "m")
    loads, saving = [], threading.Event()

    def read():
        while not saving.is_set():
            read_model = SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)
            loads.append(read_model.encode("abcd ab").tobytes())

    failures = []
    threads = [threading.Thread(target=_noting(read, failures)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(15):
        models[number % 2].save_pretrained(tmp_path / "m", force=True)
    saving.set()
    for thread in threads:
        thread.join()
    assert not failures
    assert len(loads) > 5 and set(loads) <= set(expected)


def _noting(function, failures):
    def run():
        try:
            function()
        except Exception as error:
            failures.append(error)

    return run


# -- systems that lack something -------------------------------------------------------------------


def refuse_locks(monkeypatch, number):
    def flock(handle, operation):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(locks.fcntl, "flock", flock)


def flush_files_only(monkeypatch):
    """As on network folders: a folder cannot be flushed."""
    fsync = os.fsync

    def flush(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", flush)


def be_windows(monkeypatch):
    """No locks, no folders as handles, no flush of what is not open for writing, no renaming of
    open files, no owners."""
    import fcntl

    monkeypatch.setattr(locks, "fcntl", None)
    real_open, real_fsync, real_replace = os.open, os.fsync, os.replace

    def open_(path, flags, *rest, **more):
        if os.path.isdir(path):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return real_open(path, flags, *rest, **more)

    def fsync(handle):
        if fcntl.fcntl(handle, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real_fsync(handle)

    def replace(old, new):
        inode = os.stat(old).st_ino
        for handle in os.listdir("/proc/self/fd"):
            try:
                if os.fstat(int(handle)).st_ino == inode:
                    raise PermissionError(errno.EACCES, "it is open")
            except OSError as error:
                if error.errno == errno.EACCES:
                    raise
        real_replace(old, new)

    monkeypatch.setattr(os, "open", open_)
    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", replace)
    monkeypatch.delattr(os, "chown")
    monkeypatch.delattr(os, "fork", raising=False)


SYSTEMS = {
    "a network folder without locks": lambda patch: refuse_locks(patch, errno.ENOLCK),
    "a network folder that locks no folders": lambda patch: refuse_locks(patch, errno.EBADF),
    "a network folder that flushes no folders": flush_files_only,
    "Windows": be_windows,
}


@pytest.mark.parametrize("system", SYSTEMS)
def test_everything_is_written_and_replaced(tmp_path, system, monkeypatch):
    settings = {"cells": 4, "epochs": 2, "batch_size": 16, "threads": 1, "checkpoint_seconds": 0}
    expected = train(made_up_log(), **settings).weights["query"]["table"].tobytes()
    SYSTEMS[system](monkeypatch)
    write_text(tmp_path / "file", "old")
    write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"
    for _ in range(2):
        model = train(made_up_log(), output=tmp_path / "m", force=True, **settings)
        assert model.weights["query"]["table"].tobytes() == expected
    model.save_pretrained(tmp_path / "m", force=True)
    read = SentenceEncoder.from_pretrained(tmp_path / "m")
    assert read.weights["query"]["table"].tobytes() == expected
    assert not [name for name in [*names(tmp_path), *names(tmp_path / "m")] if is_temporary(name)]


def test_a_disk_that_fails_to_flush_is_an_error(tmp_path, monkeypatch):
    def fsync(handle):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    write_text(tmp_path / "file", "old")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(SentembError, match="Input/output error"):
        write_text(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "old"


def test_files_that_are_kept_are_the_same_or_none(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for name in ("a", "deep/b"):
        write_text(old / name, name)
    kept = KeptFiles.of(old, ["a", "deep/b", "missing"])
    assert kept.link(new) and sorted(kept.facts) == ["a", "deep/b"]
    assert (new / "deep/b").read_text() == "deep/b" and (new / "a").samefile(old / "a")
    write_text(old / "deep/b", "other")
    assert not kept.link(tmp_path / "later") and not names(tmp_path / "later/deep")
    (old / "a").unlink()
    assert not kept.link(tmp_path / "later") and names(tmp_path / "later") == ["deep"]
