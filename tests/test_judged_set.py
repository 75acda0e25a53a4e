"""Judged sets: what is read, what is refused and where, and that written sets come back."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentemb import SentembError
from sentemb.data.judged_set import (
    JudgedSet,
    grade_of,
    read_judged_set,
    read_texts,
    write_judged_set,
)
from sentemb.search import title_files

GOOD = {
    "queries.tsv": b"q1\tone query\nq2\tanother\n",
    "docs.tsv": b"d1\tA title\nd2\tA  title, with\ttabs \nd3\tA title\n",
    "qrels.txt": b"q2 0 d3 2\nq1 0 d2 0\nq2\t0\td1\t-1\n",
}


def write_files(folder, **contents):
    for name, content in (GOOD | contents).items():
        (folder / name).write_bytes(content)


def test_read(tmp_path):
    write_files(tmp_path)
    judged = read_judged_set(tmp_path)
    assert (judged.query_ids, judged.queries) == (["q1", "q2"], ["one query", "another"])
    assert judged.title_ids == ["d1", "d2", "d3"]
    assert judged.titles == ["A title", "A  title, with\ttabs ", "A title"]
    assert judged.offsets.tolist() == [0, 1, 3]
    assert judged.title_index.tolist() == [1, 2, 0]
    assert judged.grade.tolist() == [0, 2, -1]
    assert judged.offsets.dtype == np.int64
    assert judged.title_index.dtype == judged.grade.dtype == np.int32


def test_windows_line_ends_and_byte_order_marks(tmp_path):
    contents = {
        name: b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n") for name, content in GOOD.items()
    }
    write_files(tmp_path, **contents)
    judged = read_judged_set(tmp_path)
    assert judged.query_ids == ["q1", "q2"]
    assert judged.titles == ["A title", "A  title, with\ttabs ", "A title"]


def test_grades_reach_to_32_bits(tmp_path):
    write_files(tmp_path, **{"qrels.txt": b"q1 0 d1 2147483647\nq1 0 d2 -2147483647\n"})
    assert read_judged_set(tmp_path).grade.tolist() == [2**31 - 1, 1 - 2**31]


@given(grade=st.integers(1 - 2**31, 2**31 - 1), zeros=st.integers(0, 9))
def test_a_grade_may_have_a_point_and_zeros(grade, zeros):
    for text in (str(grade), f"{grade}.{'0' * zeros}", f" {grade:+}.{'0' * zeros} "):
        assert grade_of(text) == grade
    assert grade_of(f"{grade}.{'0' * zeros}1") is None
    assert grade_of(f"{grade}e0") == grade_of(f"{grade}0e-1") == grade


@pytest.mark.parametrize("columns", ["{0} 0 {1} {2}", "{0}\tQ0\t{1}\t{2}.0", "{0}\t{1}\t{2}e0"])
@pytest.mark.parametrize("names", ["", "query-id corpus-id score", "topic doc rel"])
@pytest.mark.parametrize("end", ["", "\n\r\n"])
def test_judgments_of_trec_ms_marco_and_beir_are_read(tmp_path, columns, names, end):
    lines = [columns.format("q1", "d1", 2), columns.format("q1", "d2", 0)]
    if names:
        query, *others = names.split()
        lines.insert(0, "\t".join([query, *["turn"] * (len(lines[0].split()) - 3), *others]))
    write_files(tmp_path, **{"qrels.txt": ("\n".join(lines) + end).encode()})
    assert read_judged_set(tmp_path).grade.tolist() == [2, 0]


@given(ends=st.lists(st.sampled_from(["\n", "\r\n", " \n", "\t\n"]), max_size=4))
def test_blank_lines_at_the_end_are_dropped(ends):
    with TemporaryDirectory() as folder:
        more = "".join(ends).encode()
        write_files(Path(folder), **{name: content + more for name, content in GOOD.items()})
        assert read_judged_set(folder).grade.tolist() == [0, 2, -1]


def test_only_a_file_may_begin_with_a_byte_order_mark(tmp_path):
    write_files(tmp_path, **{"docs.tsv": "\ufeffd1\ta\n\ufeffd2\tb\n".encode()})
    with pytest.raises(SentembError, match=r"docs\.tsv:2: the id"):
        read_judged_set(tmp_path)


@given(
    header=st.sampled_from(["id\ttitle", "ID\tTitle", "\ufeffid\ttitle\r"]),
    titles=st.lists(st.sampled_from(["Blue Lamp", "id", "title", "a\tb"]), min_size=1, max_size=4),
)
def test_a_header_of_titles_is_no_title(header, titles):
    lines = "".join(f"p{k}\t{title}\n" for k, title in enumerate(titles))
    with TemporaryDirectory() as folder:
        named, bare = Path(folder) / "named.tsv", Path(folder) / "bare.tsv"
        named.write_bytes(f"{header}\n{lines}".encode())
        bare.write_bytes(lines.encode())
        assert read_texts(named) == read_texts(bare)
        read = [list(map(list, title_files.read_titles(path)[:2])) for path in (named, bare)]
        assert read[0] == read[1] == list(read_texts(bare))
        named.write_bytes(f"{header}\n{lines}p0\tagain\n".encode())
        for reader in (read_texts, title_files.read_titles):
            with pytest.raises(SentembError, match=rf":{2 + len(titles)}: .* in line 2"):
                reader(named)


BAD = {
    "no tab": ("docs.tsv", b"d1\ta\nd2 b\n", ":2: no tab"),
    "blank line": ("queries.tsv", b"q1\ta\n\nq2\tb\n", ":2: no tab"),
    "empty id": ("docs.tsv", b"\ta\n", ":1: the id '' is empty"),
    "white space in id": ("docs.tsv", b"d 1\ta\n", ":1: the id 'd 1' is empty or has white space"),
    "empty text": ("queries.tsv", b"q1\ta\nq2\t \n", ":2: the text of q2 is empty"),
    "duplicate id": ("docs.tsv", b"d1\ta\nd2\tb\nd1\tc\n", ":3: the id d1 is already in line 1"),
    "not UTF-8": ("docs.tsv", b"d1\t\xff\n", ":1:4: not valid UTF-8"),
    "header": ("queries.tsv", b"id\tQuery\nq1\ta\n", ":1: looks like a header; drop the line"),
    "header of a table": ("docs.tsv", b"sku\ttitle\tposition\n", ":1: looks like a header"),
    "CSV": ("docs.tsv", b'd1\ta\nd2\t"Acme 15.6"" Laptop"\n', ":2: quoted as CSV"),
    "NUL": ("queries.tsv", b"q1\ta\0\n", ":1:5: a NUL"),
    "three columns": ("qrels.txt", b"q1 0 d1 1\nq1 d2 1\n", ":2: 3 columns"),
    "five columns": ("qrels.txt", b"q1 0 d1 1 x\n", ":1: 5 columns"),
    "word for a grade": ("qrels.txt", b"q1 0 d1 good\n", ":1: the grade 'good'"),
    "half a grade": ("qrels.txt", b"q1 0 d1 1.5\n", ":1: the grade '1.5'"),
    "grade with underscore": ("qrels.txt", b"q1 0 d1 1_0\n", ":1: the grade '1_0'"),
    "grade too high": ("qrels.txt", b"q1 0 d1 2147483648\n", ":1: the grade"),
    "unknown query": ("qrels.txt", b"q1 0 d1 1\nq9 0 d1 1\n", ":2: the query q9 is not in"),
    "unknown title": ("qrels.txt", b"q1 0 d9 1\n", ":1: the title d9 is not in"),
    "judged twice": (
        "qrels.txt",
        b"q1 0 d1 1\nq2 0 d1 1\nq1 0 d1 1\n",
        ":3: d1 was already judged for q1",
    ),
    "no judgments": ("qrels.txt", b"", ": no judgments"),
}


@pytest.mark.parametrize(("name", "content", "message"), BAD.values(), ids=BAD)
def test_bad_files(tmp_path, name, content, message):
    write_files(tmp_path, **{name: content})
    with pytest.raises(SentembError) as caught:
        read_judged_set(tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / name}{message}")
    assert "; " in str(caught.value)


@pytest.mark.parametrize("name", GOOD)
def test_missing_file(tmp_path, name):
    write_files(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(SentembError, match=f"{name}: no such file; a judged set is a folder"):
        read_judged_set(tmp_path)


@pytest.mark.parametrize(
    ("id", "text"),
    [("d 1", "a"), ("", "a"), ("d1", " "), ("d1", "a\nb"), ("id", "title"), ("d1", '"15"" tv"')],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, id, text):
    none = np.zeros(0, dtype=np.int32)
    judged = JudgedSet([], [], [id], [text], np.zeros(1, dtype=np.int64), none, none)
    with pytest.raises(SentembError, match="cannot be written"):
        write_judged_set(judged, tmp_path / "set")
    assert not (tmp_path / "set").exists()


ids = st.text(min_size=1, max_size=4).filter(
    lambda text: text.split() == [text] and not set(text) & set("\ufeff\0")
)
texts = st.text(max_size=6).filter(
    lambda text: text.strip() and not set(text) & set("\n\0") and not text.endswith(("\r", '"'))
)
texts_by_id = st.dictionaries(ids, texts, min_size=1, max_size=5)
grades = st.integers(-(2**31) + 1, 2**31 - 1)


@st.composite
def judged_sets(draw):
    queries, docs = draw(texts_by_id), draw(texts_by_id)
    judgment = st.tuples(st.integers(0, len(queries) - 1), st.integers(0, len(docs) - 1))
    pairs = sorted(draw(st.lists(judgment, min_size=1, unique=True)), key=lambda pair: pair[0])
    query, doc = np.array(pairs, dtype=np.int32).T
    offsets = np.searchsorted(query, np.arange(len(queries) + 1))
    grade = draw(st.lists(grades, min_size=len(pairs), max_size=len(pairs)))
    return JudgedSet(
        list(queries),
        list(queries.values()),
        list(docs),
        list(docs.values()),
        offsets,
        doc,
        np.array(grade, dtype=np.int32),
    )


@given(judged=judged_sets())
def test_round_trip(tmp_path_factory, judged):
    folder = tmp_path_factory.getbasetemp() / "judged"
    write_judged_set(judged, folder)
    again = read_judged_set(folder)
    for name in ("query_ids", "queries", "title_ids", "titles"):
        assert getattr(again, name) == getattr(judged, name)
    for name in ("offsets", "title_index", "grade"):
        np.testing.assert_array_equal(getattr(again, name), getattr(judged, name))
