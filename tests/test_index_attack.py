"""Damaged and contested indexes: no crash, no answer from two indexes, no lost change."""

import os
import struct

import numpy as np
import pytest
from click.testing import CliRunner
from reliability.samples import write_indexes, write_texts

from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.importers.click_table import Columns, import_clicks
from sentemb.data.splitting import split_file
from sentemb.search.graph import Graph
from sentemb.search.graph_file import fault_in_graph
from sentemb.search.index import Index

QUERY = "hotels in rome"
N, DIM, CONNECTIVITY = 200, 3, 16
# Of the file of `graph_bytes`: vectors, header, sizes, levels, nodes.
HEADER = 8 + N * DIM * 2
SIZES = HEADER + 64
LEVELS = SIZES + 40
NODES = LEVELS + 2 * N


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    pytest.importorskip("usearch")
    folder = tmp_path_factory.mktemp("samples")
    write_texts(folder)
    write_indexes(folder)
    return folder


@pytest.fixture(scope="module")
def graph_bytes(tmp_path_factory):
    pytest.importorskip("usearch")
    vectors = np.random.default_rng(0).standard_normal((N, DIM)).astype(np.float32)
    path = tmp_path_factory.mktemp("graph") / "graph.usearch"
    Graph.build(vectors).write(path)
    return path.read_bytes()


def put(data, at, value, kind="<I"):
    """``data`` with a number in another place."""
    changed = bytearray(data)
    struct.pack_into(kind, changed, at, value)
    return bytes(changed)


@pytest.mark.parametrize(
    ("at", "value", "kind", "found"),
    [
        (0, N + 1, "<I", "other vectors"),
        (4, DIM, "<I", "other vectors"),
        (HEADER, 0, "<B", "not a graph that sentemb wrote"),
        (HEADER + 7, 3, "<H", "not a graph that sentemb wrote"),
        (HEADER + 14, 11, "<B", "not a graph that sentemb wrote"),
        (HEADER + 25, 7, "<Q", "other titles"),
        (SIZES, N - 1, "<Q", "other titles"),
        (SIZES + 8, 8, "<Q", "number of neighbours"),
        (SIZES + 16, 64, "<Q", "number of neighbours"),
        (SIZES + 24, 2**40, "<Q", "levels are out of range"),
        (SIZES + 32, N, "<Q", "levels are out of range"),
        (LEVELS, -1, "<h", "levels are out of range"),
        (LEVELS, 30_000, "<h", "levels are out of range"),
        (NODES, 5, "<Q", "keys are not the places"),
        (NODES + 8, 7, "<h", "nodes are on other levels"),
        (NODES + 10, 33, "<I", "does not exist"),
        (NODES + 14, N, "<I", "does not exist"),
        (NODES + 14, 2**32 - 1, "<I", "does not exist"),
    ],
)
def test_no_number_of_a_graph_leads_out_of_it(graph_bytes, at, value, kind, found):
    raw = np.frombuffer(graph_bytes, np.uint8)
    assert fault_in_graph(raw, N, DIM, CONNECTIVITY) is None
    changed = np.frombuffer(put(graph_bytes, at, value, kind), np.uint8)
    assert found in fault_in_graph(changed, N, DIM, CONNECTIVITY)
    with pytest.raises(SentembError, match=r"a place: the index is damaged.*--approximate"):
        Graph.open(changed, "a place", N, DIM)


@pytest.mark.parametrize("size", [0, 7, HEADER, NODES - 1, -1])
def test_a_graph_of_another_length_is_refused(graph_bytes, size):
    for data in (graph_bytes[:size], graph_bytes + b"\0"):
        assert fault_in_graph(np.frombuffer(data, np.uint8), N, DIM, CONNECTIVITY)


def test_a_neighbour_is_on_the_level_of_its_list(graph_bytes):
    """usearch would read its list of that level from behind its last one."""
    levels = np.frombuffer(graph_bytes[LEVELS:NODES], "<i2")
    high, low = int(np.argmax(levels >= 1)), int(np.argmin(levels))
    at = NODES + int((10 + 4 * 33 + 4 * 17 * levels[:high].astype(int)).sum()) + 10 + 4 * 33
    changed = put(put(graph_bytes, at, 1), at + 4, low)
    found = fault_in_graph(np.frombuffer(changed, np.uint8), N, DIM, CONNECTIVITY)
    assert "is not on its level" in found


def test_a_graph_that_cannot_be_written_is_one_error(graph_bytes, tmp_path):
    vectors = np.random.default_rng(0).standard_normal((N, DIM)).astype(np.float32)
    with pytest.raises(SentembError, match="cannot be written"):
        Graph.build(vectors).write(tmp_path / "nowhere" / "graph.usearch")


def test_an_open_index_keeps_its_own_graph(samples, tmp_path):
    """A graph is opened when it is first used; then another index may be in the folder."""
    Index.open(samples / "graph", 1).save(tmp_path / "index")
    index = Index.open(tmp_path / "index", 1)
    expected = Index.open(samples / "graph", 1).search(QUERY)
    other = Index.build(index.model, ["maps of Oslo"] * 9, threads=1)
    other.build_graph()
    other.save(tmp_path / "index", force=True)
    assert index.search(QUERY) == expected
    index.save(tmp_path / "copy")
    assert Index.open(tmp_path / "copy", 1).search(QUERY) == expected


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


def test_an_index_that_is_replaced_while_it_is_opened_is_opened_again(
    samples, tmp_path, monkeypatch
):
    """Files of two indexes of the same size would fit together."""
    from sentemb.search import index as module

    Index.open(samples / "index", 1).save(tmp_path / "index")
    other = Index.open(samples / "index", 1)
    other.remove(["d0"])
    other.add(["Rome hotels and mores"], ["d9"])
    real, calls = module.open_contents, []

    def replaced(path, description):
        found = real(path, description)
        if not calls:
            other.save(path, force=True)
        calls.append(path)
        return found

    monkeypatch.setattr(module, "open_contents", replaced)
    assert "d9" in Index.open(tmp_path / "index", 1).ids
    assert len(calls) == 2


def test_a_calibrated_index_without_titles_finds_nothing(samples):
    index = Index.open(samples / "sums", 1)
    index.remove([*index.ids])
    assert index.confidence is not None
    assert index.search(QUERY) == []


@pytest.mark.parametrize(
    ("folder", "name", "damage", "message"),
    [
        ("sums", "bm25/bm25.json", "fifo", "bm25.json: .*not a regular file"),
        ("sums", "calibration.json", "fifo", "calibration.json: .*not a regular file"),
        ("index", "index.json", (b'"graph"', b'"grape"'), 'index.json: .*"graph" is missing'),
        ("sums", "bm25/bm25.json", (b'"stem"', b'"step"'), "bm25.json: .*stem is"),
        ("sums", "bm25/list_counts.npy", (b"\1\0\0\0", b"\xff\xff\xff\xff"), "list_counts.npy: "),
        ("sums", "bm25/list_weights.npy", -1e30, "list_weights.npy: "),
        ("sums", "bm25/list_weights.npy", 1e30, "list_weights.npy: "),
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
    with pytest.raises(SentembError, match=message):
        Index.open(tmp_path / "index", 1)


def test_a_vector_that_is_not_of_unit_length_is_refused(samples, tmp_path):
    Index.open(samples / "index", 1).save(tmp_path / "index")
    path = tmp_path / "index" / "vectors.npy"
    data = path.read_bytes()
    path.write_bytes(data[:128] + np.full((len(data) - 128) // 4, 9, "<f4").tobytes())
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
