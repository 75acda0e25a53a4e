"""Files of titles and indexes in portions: the same as all at once, whatever the portions."""

import contextlib
import errno
import gzip
import re
import signal
import tempfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import run_forked
from hypothesis import given
from hypothesis import strategies as st
from reliability.samples import ALL_PARTS

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data import judged_set
from sentemb.data import text_array as texts
from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import read_texts
from sentemb.data.lines import content_lines
from sentemb.data.text_array import TextArray
from sentemb.kernels.text_table import fill_table
from sentemb.models import cluster_encoding as encoding
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.rows_of_texts import PackedTexts, TextRows
from sentemb.search import contents, scan
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.title_files import read_titles
from sentemb.system import files, growing
from sentemb.system.growing import Growing, scratch_folder
from sentemb.system.parallel import Workers

LINES = st.lists(
    st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\n\0"), max_size=6),
    max_size=40,
)


def made_up_titles(count, seed=0):
    """Titles of up to six of 25 words that the model knows a part of, some without any."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(f"bath{k}" for k in rng.integers(0, 25, rng.integers(0, 7))) for _ in range(count)
    ]


@pytest.fixture
def small_portions(monkeypatch):
    """Portions of a few texts and entries, and files for everything but a few bytes."""
    monkeypatch.setattr(texts, "_PORTION", 3)
    monkeypatch.setattr(contents, "_PORTION", 5)
    monkeypatch.setattr(files, "_BLOCK", 34)
    monkeypatch.setattr(growing, "_LIMIT", 20)


@given(LINES)
def test_texts_come_back_from_memory_and_from_a_file(lines):
    for scratch in (None, "/tmp"):
        found = TextArray.of(lines, scratch)
        assert list(found) == lines and found[1:4] == lines[1:4]
        kept = np.arange(len(lines)) % 3 != 1
        some = [line for line, own in zip(lines, kept, strict=True) if own]
        assert list(found.take(kept, scratch)) == some
        assert list(found.joined(TextArray.of(some), scratch)) == lines + some


def test_texts_in_files_have_the_bytes_of_those_in_memory(tmp_path, small_portions):
    lines = made_up_titles(50)
    one, other = TextArray.of(lines), TextArray.of(lines, tmp_path)
    assert isinstance(other.raw.base, np.memmap) and not isinstance(one.raw.base, np.memmap)
    assert (one.raw == other.raw).all() and (one.offsets == other.offsets).all()
    assert not list(tmp_path.iterdir()), "the files have no name"


@given(st.integers(1, 8), st.integers(-2, 2), st.lists(st.integers(0, 9), min_size=1, max_size=3))
def test_chosen_texts_are_right_or_refused_where_an_offset_is_damaged(number, by, rows):
    lines = [f"{k}{k}" for k in range(10)]
    texts = TextArray.of(lines)
    texts.offsets[number] += by
    found = right = [lines[row] for row in rows]
    with contextlib.suppress(SentembError):
        found = texts.chosen(np.array(rows))
    assert found == right


GOOD = [f"d{k}\ttitle {k}" for k in range(10)]


@pytest.mark.parametrize(
    "lines",
    [
        GOOD,
        [*GOOD, "d3\tagain"],
        [*GOOD, "d3\tagain", "d2\tagain", "d3\tagain"],
        [*GOOD, "d9\tagain", "no tab"],
        [*GOOD, "no tab", "d9\tagain"],
        [*GOOD, "two words\ttitle"],
        [*GOOD, "d10\t  "],
        ["id\ttitle", *GOOD],
        ["\ufeffd\u00e9\tt\u00eetre\twith tab\r", *GOOD],
        [*GOOD, "d10\ta\0b"],
    ],
)
@pytest.mark.usefixtures("small_portions")
def test_titles_are_read_as_by_read_texts_and_the_first_fault_is_reported(lines, tmp_path):
    for name, opener in (("t.tsv", open), ("t.tsv.gz", gzip.open)):
        path = tmp_path / name
        with opener(path, "wb") as file:
            file.write("\n".join([*lines, ""]).encode())
        assert outcome(read_titles, path, tmp_path) == outcome(read_texts, path)


_PIECES = st.sampled_from(
    [
        *' \t\n\r\0"\ufeff\u2028\x0c',
        "a",
        "id",
        "title",
        "price",
        "1.5",
        '""',
        "\t",
        "\n",
        "\r\n",
        "\n\n",
    ]
)


@given(
    st.sampled_from(["", "id\ttitle\n", "id\ttitle\tprice\n", "\ufeffid\ttitle\n"]),
    st.lists(st.tuples(st.text("ab", max_size=2), _PIECES, _PIECES), max_size=12),
    st.sampled_from([b"", b"\xff", b"c\tlast"]),
    st.integers(1, 30),
)
def test_portions_of_a_file_change_neither_its_titles_nor_its_first_fault(head, rows, end, block):
    body = "".join(f"{id}\t{one}{other}\n" for id, one, other in rows)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        path = Path(folder) / "t.tsv"
        path.write_bytes((head + body).encode() + end)
        line_by_line = outcome(read_one_by_one, path)
        assert outcome(read_texts, path) == line_by_line
        patched.setattr(files, "_BLOCK", block)
        assert outcome(read_texts, path) == line_by_line


def read_one_by_one(path):
    """Ids and texts of a file, each line looked at by itself."""
    found, n_fields = {}, 0
    for number, line in content_lines(path):
        columns = line.split("\t")
        if number == 1 and [name.strip().lower() for name in columns[:2]] == ["id", "title"]:
            n_fields = len(columns) - 2
        elif (fault := judged_set._fault(str(path), number, line, n_fields)) is not None:
            raise fault
        elif columns[0] in found:
            raise judged_set.repeated_id(path, columns[0], found[columns[0]][0], number)
        else:
            text = columns[1] if n_fields else line.partition("\t")[2]
            found[columns[0]] = number, text
    return list(found), [text for _, text in found.values()]


def outcome(read, *arguments):
    """Two lists, or what the error says."""
    try:
        return tuple(map(list, read(*arguments)[:2]))
    except SentembError as error:
        return str(error)


_TEXT = st.text(st.characters(exclude_characters="\n\0", codec="utf-8"), max_size=9)


@given(
    st.lists(st.one_of(st.sampled_from(["", "a", "ab", "b", "\u00e9", "e"]), _TEXT), max_size=40),
    st.lists(st.one_of(st.sampled_from(["", "a", "ba", "\u00e9", "a\n", "\ud800"]), _TEXT)),
    st.booleans(),
)
def test_rows_are_those_of_a_dict(texts, sought, are_lines):
    rows = TextRows(TextArray.of(texts) if are_lines else texts)
    expected = {text: row for row, text in enumerate(texts)}  # of equal texts the last
    for _ in range(2):  # a few are sought among all, and then in the table of all
        assert rows.of(sought).tolist() == [expected.get(text, -1) for text in sought]
    assert len(rows) == len(texts) and list(rows) == texts and "no text" not in rows
    first = {}
    repeated = ((first.setdefault(text, row), row) for row, text in enumerate(texts))
    assert rows.repeated == next((pair for pair in repeated if pair[0] < pair[1]), None)


def test_texts_that_share_a_slot_are_told_apart():
    """With a slot more than texts most slots are taken, so most texts are not in their own."""
    texts = [f"text {number}" for number in range(1023)]
    table = TextRows(texts)._table
    table = table._replace(slots=np.full(1024, -1, np.int32))
    assert fill_table(table.slots, table.seed, *table.packed) == (-1, -1)
    sought = PackedTexts.of([*texts, "text", "text 1023"])
    assert table.rows(sought).tolist() == [*range(1023), -1, -1]


def test_a_few_texts_are_sought_without_a_table_of_all():
    texts = [f"text {number % 90}" for number in range(100)]
    rows, sought = TextRows(TextArray.of(texts)), ["text 3", "none", "text 3", "text 95"]
    expected = [93, -1, 93, -1]
    assert rows.of(sought).tolist() == expected and "_table" not in rows.__dict__
    assert rows.of(sought).tolist() == expected and "_table" in rows.__dict__
    assert TextRows(texts).of([]).size == 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_an_index_made_in_files_has_the_bytes_of_one_in_memory(dtype, tmp_path, monkeypatch, model):
    titles = [f"{title} w{k % 9}" if k % 4 else "!" for k, title in enumerate(made_up_titles(60))]
    path = tmp_path / "titles.tsv"
    path.write_text("".join(f"d{k}\t{title}\n" for k, title in enumerate(titles)))
    ids = [f"d{k}" for k in range(60)]
    clicks = ClickedQueries.of(ClickLog.from_pairs(zip(titles[1:], titles[4:], strict=False)))
    ranker = HybridRanker(model, ALL_PARTS, clicks)
    plain = Index.build(ranker, titles[:40], ids[:40], dtype=dtype)
    plain.save(tmp_path / "new")
    plain.remove(ids[3:30:2])
    plain.add(titles[40:], ids[40:])
    plain.save(tmp_path / "changed")

    monkeypatch.setattr(growing, "_LIMIT", 50)
    monkeypatch.setattr(contents, "_PORTION", 7)
    own_ids, own_titles, _ = read_titles(path, tmp_path)
    some = [TextArray.of(list(one)[:40], tmp_path) for one in (own_titles, own_ids)]
    index = Index.build(ranker, *some, dtype=dtype, scratch=tmp_path)
    vectors = index.vectors.codes if dtype == "int8" else index.vectors
    assert isinstance(vectors.base.base, np.memmap) or isinstance(vectors.base, np.memmap)
    index.save(tmp_path / "new-in-files")
    opened = Index.open(tmp_path / "new-in-files", scratch=tmp_path)
    opened.remove(ids[3:30:2])
    rest = [TextArray.of(list(one)[40:], tmp_path) for one in (own_titles, own_ids)]
    opened.add(*rest)
    opened.save(tmp_path / "changed-in-files")
    for name in ("new", "changed"):
        one, other = tmp_path / name, tmp_path / f"{name}-in-files"
        files = sorted(file.relative_to(one) for file in one.rglob("*") if file.is_file())
        assert files == sorted(
            file.relative_to(other) for file in other.rglob("*") if file.is_file()
        )
        for file in files:
            assert (one / file).read_bytes() == (other / file).read_bytes(), file


def test_titles_that_are_texts_are_checked_too(model):
    ids, titles = TextArray.of(["a", "b", "a"]), TextArray.of(["x", "y", "z"])
    with pytest.raises(SentembError, match="titles 0 and 2 have the same id, a"):
        Index.build(model, titles, ids)
    with pytest.raises(SentembError, match="id 1 is 'b c'"):
        Index.build(model, titles, TextArray.of(["a", "b c", "d"]))
    with pytest.raises(SentembError, match="3 titles and 2 ids"):
        Index.build(model, titles, TextArray.of(["a", "b"]))


class FullDisk:
    """A temporary file on a disk that is full."""

    def write(self, raw):
        raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_is_an_error_that_names_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "_LIMIT", 10)
    monkeypatch.setattr(growing.tempfile, "TemporaryFile", lambda dir: FullDisk())
    numbers = Growing(tmp_path)
    numbers.append(b"12345")
    with pytest.raises(SentembError, match=f"{tmp_path}: cannot be written: No space left"):
        numbers.append(np.arange(5))
    path = tmp_path / "titles.tsv"
    path.write_text("".join(f"{line}\n" for line in GOOD))
    with pytest.raises(SentembError, match="No space left"):
        read_titles(path, tmp_path)
    assert sorted(tmp_path.iterdir()) == [path]


def test_numbers_that_are_appended_come_back_as_one_array(tmp_path, monkeypatch):
    monkeypatch.setattr(growing, "_LIMIT", 30)
    rows = np.arange(24, dtype=np.float32).reshape(8, 3)
    for folder in (None, tmp_path):
        numbers = Growing(folder)
        numbers.append(rows[:3])
        numbers.append(rows[::-1][:2])
        found = numbers.array(np.float32, 5, 3)
        np.testing.assert_array_equal(found, np.concatenate([rows[:3], rows[::-1][:2]]))
    assert Growing(tmp_path).array(np.int64, 0, 4).shape == (0, 4)


def test_large_arrays_are_on_the_disk_of_the_output(tmp_path):
    assert scratch_folder(tmp_path / "a" / "b") == tmp_path
    (tmp_path / "file").touch()
    assert scratch_folder(tmp_path / "file") == tmp_path
    assert scratch_folder("-") == scratch_folder("/dev/null") != tmp_path


def test_without_a_folder_that_can_be_written_arrays_stay_in_memory(monkeypatch):
    def nowhere():
        raise FileNotFoundError(errno.ENOENT, "No usable temporary directory found")

    monkeypatch.setattr(growing.tempfile, "gettempdir", nowhere)
    monkeypatch.setattr(growing, "_LIMIT", 0)
    assert scratch_folder("-") is None
    assert list(TextArray.of(GOOD, scratch_folder("-"))) == GOOD


class Numbers:
    """An embedder of texts that are numbers: each has itself and 1 as its vector."""

    def unit_vectors(self, titles, side):
        return np.array([[float(title), 1] for title in titles], np.float32)


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 99)), max_size=30),
    st.integers(0, 40),
    st.integers(1, 5),
)
def test_the_best_of_portions_are_the_best_of_all_and_ties_go_to_the_last_id(rows, k, portion):
    ids = [f"{tail}-{place}" for place, (_, tail) in enumerate(rows)]
    titles = [str(number) for number, _ in rows]
    queries = np.array([[1, 0], [-1, 1], [0, 0]], np.float32)
    done = []
    with pytest.MonkeyPatch.context() as patched, Workers(1) as workers:
        patched.setattr(scan, "_PORTION", portion)
        found = scan.best_titles(
            Numbers(), queries, ids, titles, k, workers, lambda *some: done.append(some)
        )
    for (a, b), own in zip(queries.tolist(), found, strict=True):
        every = [(a * float(titles[place]) + b, ids[place], place) for place in range(len(ids))]
        # A query with no known words finds nothing.
        assert own == (sorted(every, reverse=True)[:k] if a or b else [])
    assert done[-1:] == [(len(rows), len(rows))] * bool(rows)


def test_of_equal_scores_a_later_portion_may_have_the_last_id(monkeypatch):
    monkeypatch.setattr(scan, "_PORTION", 2)
    rng = np.random.default_rng(0)
    queries = np.array([[1, 0]], np.float32)
    for _ in range(300):
        n = int(rng.integers(5, 12))
        ids = [str(number) for number in rng.permutation(n)]
        titles = [str(number) for number in rng.integers(0, 2, n)]
        for k in (1, 2):
            with Workers(1) as workers:
                (found,) = scan.best_titles(Numbers(), queries, ids, titles, k, workers)
            every = [(float(titles[place]), ids[place], place) for place in range(n)]
            assert found == sorted(every, reverse=True)[:k]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_encode_writes_the_same_bytes_in_any_portions(model, model_dir, tmp_path, monkeypatch):
    lines = [f"{title} {k}" if k % 5 else " " for k, title in enumerate(made_up_titles(50))]
    (tmp_path / "lines.txt").write_text("\n".join([*lines, ""]))
    (tmp_path / "lines.tsv").write_text("".join(f"d{k}\tx{line}\n" for k, line in enumerate(lines)))
    np.save(tmp_path / "whole.npy", model.encode(lines))
    monkeypatch.setattr(files, "_BLOCK", 37)
    monkeypatch.setattr(encoding, "PORTION", 3)
    monkeypatch.setattr(growing, "_LIMIT", 10)
    result = CliRunner().invoke(
        main, ["encode", model_dir, str(tmp_path / "lines.txt"), "-o", str(tmp_path / "a.npy")]
    )
    assert result.exit_code == 0 and "10 of 50 texts" in result.stderr
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    lined = (tmp_path / "lines.txt").read_bytes()
    result = CliRunner().invoke(main, ["encode", model_dir, "-o", "-"], input=lined)
    assert result.stdout_bytes == (tmp_path / "whole.npy").read_bytes()
    arguments = ["encode", model_dir, "-", "--ids", "-o", str(tmp_path / "b.npy")]
    result = CliRunner().invoke(main, arguments, input=(tmp_path / "lines.tsv").read_bytes())
    assert result.exit_code == 0
    assert (tmp_path / "b.ids").read_text().split() == [f"d{k}" for k in range(50)]
    expected = model.encode([f"x{line}" for line in lines])
    np.testing.assert_array_equal(np.load(tmp_path / "b.npy"), expected)


@pytest.mark.parametrize("command", ["index", "encode"])
def test_what_is_there_stays_if_the_disk_is_full(command, model_dir, tmp_path, monkeypatch):
    titles, out = tmp_path / "titles.tsv", tmp_path / "out.npy"
    titles.write_text("".join(f"{line}\n" for line in GOOD))
    arguments = [command, model_dir, str(titles), "-o", str(out)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    before = sorted(file for file in tmp_path.rglob("*"))
    monkeypatch.setattr(growing, "_LIMIT", 50)
    monkeypatch.setattr(growing.tempfile, "TemporaryFile", lambda dir: FullDisk())
    result = CliRunner().invoke(main, [*arguments, "--force"])
    assert result.exit_code == 1
    assert f"{tmp_path}: cannot be written: No space left on device; nothing" in result.stderr
    assert sorted(file for file in tmp_path.rglob("*")) == before


# Runs a command whose first portion of titles kills it, with texts in files by then.
KILLED = """
import os, signal, sys
from sentemb.cli import main
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system import files, growing

def kill(*arguments, **keywords):
    os.kill(os.getpid(), signal.SIGKILL)

growing._LIMIT = 20
SentenceEncoder.encode = SentenceEncoder.unit_vectors = kill
main(sys.argv[1:])
"""


@pytest.mark.parametrize(
    ("command", "left"), [("index", r"nothing"), ("encode", r"\.sentemb-[0-9a-f]+\.tmp")]
)
def test_a_killed_run_leaves_what_was_there(command, left, model_dir, tmp_path):
    titles, out = tmp_path / "titles.tsv", tmp_path / "out.npy"
    titles.write_text("".join(f"{line}\n" for line in GOOD))
    arguments = [command, model_dir, str(titles), "-o", str(out)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    before = contents_of(tmp_path)
    arguments.append("--force")
    killed = run_forked(KILLED, *arguments)
    assert killed.returncode == -signal.SIGKILL
    after = contents_of(tmp_path)
    assert all(re.fullmatch(left, name) for name in after.keys() - before.keys())
    assert {name: after[name] for name in before} == before
    assert CliRunner().invoke(main, arguments).exit_code == 0
    assert contents_of(tmp_path) == before, "the next run removes what is left"


def contents_of(folder):
    """Every file in a folder, by its name there."""
    files = (file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


@pytest.mark.parametrize("dtype", ["float32", "int8"])
@pytest.mark.parametrize("portion", [1, 7, 8192])
def test_a_changed_index_has_its_vectors_on_the_disk(
    model, tmp_path, small_portions, monkeypatch, dtype, portion
):
    monkeypatch.setattr(growing, "_PORTION", portion)
    log = ClickLog.from_pairs([("bath1", "bath2 bath3"), ("bath4 bath5", "bath6")])
    ranker = HybridRanker(model, ALL_PARTS, ClickedQueries.of(log))
    titles, ids = made_up_titles(60), [f"t{k}" for k in range(60)]
    found = []
    for scratch in (None, tmp_path):
        index = Index.build(ranker, titles[:40], ids[:40], dtype=dtype, scratch=scratch)
        before = index.vectors
        changes = (index.remove, [ids[3:9]]), (index.add, [titles[40:], ids[40:]])
        for change, arguments in changes:
            change(*arguments)
            assert index.vectors is not before
            for part in ("cosine", "memory"):
                for name, array in index.snapshot.as_one.catalogue.parts[part].arrays().items():
                    if name in ("codes", "vectors", "scales"):
                        assert is_mapped(array) == (scratch is not None), (part, name)
        found.append((index.search(["bath1", "bath4 bath5", "bath7"], 60), index.ids[:]))
    assert found[0] == found[1] and len(found[0][1]) == 54
    assert not list(tmp_path.iterdir())


def is_mapped(array):
    """Whether an array is on the disk."""
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "base", None)
    return array is not None
