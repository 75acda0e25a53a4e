"""Damaged and contested indexes: no crash, no answer from two indexes, no lost change."""

import os

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import list_again
from reliability.samples import write_indexes, write_texts

from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.importers.click_table import Columns, import_clicks
from sentemb.data.splitting import split_file
from sentemb.search.index import Index
from sentemb.system import checked_files

QUERY = "hotels in rome"


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder = tmp_path_factory.mktemp("samples")
    write_texts(folder)
    write_indexes(folder)
    return folder


def test_the_change_of_another_process_is_not_undone(samples, tmp_path):
    Index.open(samples / "sums", 1).save(tmp_path / "index")
    mine, theirs = (Index.open(tmp_path / "index", 1) for _ in range(2))
    theirs.add(["Oslo castles"], ["x"])
    theirs.save(tmp_path / "index", force=True)
    theirs.add(["Rome castles"], ["y"])
    theirs.save(tmp_path / "index", force=True)
    mine.add(["Lima castles"], ["z"])
    with pytest.raises(SentembError, match="has changed since it was opened; open it again"):
        mine.save(tmp_path / "index", force=True)
    assert [*Index.open(tmp_path / "index", 1).ids][-2:] == ["x", "y"]
    mine.save(tmp_path / "other")


def test_saving_elsewhere_changes_nothing_for_the_folder_that_was_opened(samples, tmp_path):
    Index.open(samples / "sums", 1).save(tmp_path / "index")
    mine = Index.open(tmp_path / "index", 1)
    mine.add(["Oslo castles"], ["x"])
    mine.save(tmp_path / "copy")
    mine.save(tmp_path / "index", force=True)
    mine.add(["Rome castles"], ["y"])
    mine.save(tmp_path / "copy", force=True)
    # Another process writes what this index has written elsewhere.
    Index.open(tmp_path / "copy", 1).save(tmp_path / "index", force=True)
    with pytest.raises(SentembError, match="has changed since it was opened"):
        mine.save(tmp_path / "index", force=True)


def test_verify_finds_damage_between_the_samples(samples, tmp_path, monkeypatch):
    model = Index.open(samples / "index", 1).model
    monkeypatch.setattr(checked_files, "_SAMPLE", 4)
    monkeypatch.setattr(checked_files, "_SAMPLES", 2)
    index = Index.build(model, ["Oslo castles", "Rome hotels"])
    index.save(tmp_path / "index")
    Index.verify(tmp_path / "index")
    titles = tmp_path / "index" / "titles.txt"
    titles.write_bytes(titles.read_bytes().replace(b"castles", b"cattles"))
    assert Index.open(tmp_path / "index").titles[0] == "Oslo cattles"
    with pytest.raises(SentembError, match=r"titles.txt: .* do not match their checksum"):
        Index.verify(tmp_path / "index")


def test_an_index_that_is_replaced_while_it_is_opened_is_opened_again(
    samples, tmp_path, monkeypatch
):
    """Files of two indexes of the same size would fit together."""
    from sentemb.search import index as module

    Index.open(samples / "index", 1).save(tmp_path / "index")
    other = Index.open(samples / "index", 1)
    other.remove(["d0"])
    other.add(["Rome hotels and mores"], ["d9"])
    real, calls = module.open_snapshot, []

    def replaced(path, *arguments):
        found = real(path, *arguments)
        if not calls:
            other.save(path, force=True)
        calls.append(path)
        return found

    monkeypatch.setattr(module, "open_snapshot", replaced)
    assert "d9" in Index.open(tmp_path / "index", 1).ids
    assert len(calls) == 2


def test_an_index_that_goes_and_comes_back_while_it_is_opened_is_not_mixed(
    samples, tmp_path, monkeypatch
):
    """The description is the same before and after, and the files between are of another."""
    from sentemb.search import index as module

    index = Index.open(samples / "sums", 1)
    index.save(tmp_path / "index")
    other = Index.build(index.ranker, [f"other {t}" for t in index.titles], index.ids)
    real, calls = module.check_files, []

    def replaced(path, description):
        if not calls:
            other.save(path, force=True)
        if len(calls) < 2:
            calls.append(path)
            try:
                real(path, description)
            finally:
                index.save(path, force=True)
        else:
            real(path, description)

    monkeypatch.setattr(module, "check_files", replaced)
    assert Index.open(tmp_path / "index", 1).search(QUERY) == index.search(QUERY)


@pytest.mark.parametrize("folder", ["index", "index8", "sums"])
def test_a_file_of_another_index_is_refused(samples, tmp_path, folder):
    """Of the same size, with the same model, and with other titles."""
    index = Index.open(samples / folder, 1)
    index.save(tmp_path / "index")
    titles = [title[::-1] for title in index.titles]
    other = Index.build(index.ranker, titles, [*index.ids][::-1], dtype=index.dtype)
    other.save(tmp_path / "other")
    names = [
        str(path.relative_to(tmp_path / "other"))
        for path in sorted((tmp_path / "other").rglob("*"))
        if path.is_file() and "model" not in path.parts
    ]
    swapped = 0
    for name in names:
        whole, foreign = ((tmp_path / one / name).read_bytes() for one in ("index", "other"))
        (tmp_path / "index" / name).write_bytes(foreign)
        if whole != foreign:
            swapped += 1
            with pytest.raises(SentembError, match=r"the index is damaged: it.* lists"):
                Index.open(tmp_path / "index", 1)
        (tmp_path / "index" / name).write_bytes(whole)
    assert swapped >= 4
    Index.open(tmp_path / "index", 1)
    for path in sorted((tmp_path / "other").rglob("*")):
        if path.is_file():
            (tmp_path / "index" / path.relative_to(tmp_path / "other")).write_bytes(
                path.read_bytes()
            )
    assert [*Index.open(tmp_path / "index", 1).titles] == titles


def test_a_calibrated_index_without_titles_finds_nothing(samples):
    index = Index.open(samples / "sums", 1)
    index.remove([*index.ids])
    assert index.confidence is not None
    assert index.search(QUERY) == []


@pytest.mark.parametrize(
    ("folder", "name", "damage", "message"),
    [
        ("sums", "bm25/words.npy", "fifo", "words.npy: .*not a regular file"),
        ("index", "index.json", (b'"parts"', b'"pants"'), 'index.json: .*"parts" is missing'),
        ("sums", "bm25/words.npy", (b"hotels", b"hot\nls"), "offsets.npy: .*does not fit"),
        ("sums", "bm25/words.npy", (b"hotels", b"hot\xffls"), "words.npy: .*not UTF-8"),
        ("sums", "bm25/titles.npy", (b"\1\0\0\0", b"\xff\xff\xff\xff"), "titles.npy: "),
        ("sums", "bm25/weights.npy", float("inf"), "weights.npy: .*a weight is not finite"),
        ("index", "title-offsets.npy", (b"\0" * 8, b"\1" + b"\0" * 7), "title-offsets.npy: "),
    ],
)  # fmt: skip
def test_damage_is_named(samples, tmp_path, folder, name, damage, message):
    Index.open(samples / folder, 1).save(tmp_path / "index")
    path = tmp_path / "index" / name
    data = path.read_bytes()
    path.unlink()
    if damage == "fifo":
        os.mkfifo(path)
    elif isinstance(damage, float):
        path.write_bytes(data[:-4] + np.float32(damage).tobytes())
    else:
        head = data.index(b"\n") if name.endswith(".npy") else 0
        path.write_bytes(data[:head] + data[head:].replace(*damage, 1))
    if damage != "fifo" and name != "index.json":
        list_again(tmp_path / "index")
    with pytest.raises(SentembError, match=message):
        Index.open(tmp_path / "index", 1)


def test_a_vector_that_is_not_of_unit_length_is_refused(samples, tmp_path):
    Index.open(samples / "index", 1).save(tmp_path / "index")
    path = tmp_path / "index" / "cosine/vectors.npy"
    data = path.read_bytes()
    path.write_bytes(data[:128] + np.full((len(data) - 128) // 4, 9, "<f4").tobytes())
    list_again(tmp_path / "index")
    with pytest.raises(SentembError, match=r"vectors.npy: .* not of unit length"):
        Index.open(tmp_path / "index", 1).search("hotels maps in rome and more", 7)


def test_nothing_that_is_read_is_replaced(tmp_path):
    table = tmp_path / "clicks.csv"
    table.write_text("query,title\na,b\n")
    os.link(table, tmp_path / "link.csv")
    for out, catalogue in (("clicks.csv", None), ("link.csv", None), ("new.tsv", "link.csv")):
        written = None if catalogue is None else tmp_path / catalogue
        with pytest.raises(SentembError, match="is read by the command; name another place"):
            import_clicks([table], tmp_path / out, Columns(), write_catalogue=written, force=True)
    assert table.read_text() == "query,title\na,b\n"


def test_a_folder_needs_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.tsv").write_text("mine\tmine\n")
    (tmp_path / "log.tsv").write_text("".join(f"q{k}\tt\n" for k in range(50)))
    with pytest.raises(SentembError, match="name of the output folder is empty"):
        split_file("log.tsv", "", "20%", "20%")
    assert (tmp_path / "dev.tsv").read_text() == "mine\tmine\n"


def test_an_empty_log_or_catalogue_is_said(samples, tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(SentembError, match="empty: is empty; write lines id<TAB>title"):
        split_file(samples / "log.tsv", tmp_path / "new", catalogue=tmp_path / "empty")
    ended = CliRunner().invoke(main, ["evaluate", "m", str(samples / "log.tsv"), "--log", ""])
    assert ended.exit_code == 1
    assert "'': cannot be read" in ended.output
