"""Run files: what is read, what is refused and where, and that written runs come back."""

import io
import math
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentemb import SentembError
from sentemb.evaluation.trec import read_run, write_run


def test_read(tmp_path):
    path = tmp_path / "run.txt"
    path.write_bytes(b"\xef\xbb\xbfq1 Q0 d1 7 0.5 tag\r\nq2\tQ0\td1 1 -1e3 tag\nq1 Q0 d2 1 3 tag\n")
    assert read_run(path) == {"q1": {"d1": 0.5, "d2": 3.0}, "q2": {"d1": -1000.0}}


def test_standard_input_and_output(tmp_path, monkeypatch, capfdbinary):
    write_run({"q": {"d": 0.25}}, "-")
    assert capfdbinary.readouterr().out == b"q Q0 d 1 0.25 sentemb\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"q Q0 d 1 0.25 sentemb\n")))
    assert read_run("-") == {"q": {"d": 0.25}}


def test_write_sorts_by_score_then_document_id_both_falling(tmp_path):
    path = tmp_path / "run.txt"
    third = 1 / 3
    write_run({"q2": {"a": 1, "c": third, "b": 1}, "q1": {"a": 0.0}}, path, tag="mine")
    assert path.read_text().splitlines() == [
        "q2 Q0 b 1 1.0 mine",
        "q2 Q0 a 2 1.0 mine",
        "q2 Q0 c 3 0.3333333333333333 mine",
        "q1 Q0 a 1 0.0 mine",
    ]


def test_blank_lines_at_the_end_of_a_run_are_dropped(tmp_path):
    path = tmp_path / "run.txt"
    path.write_text("q Q0 d 1 0.5 t\n\n \n")
    assert read_run(path) == {"q": {"d": 0.5}}


BAD = {
    "five columns": ("q Q0 d 1 0.5\n", ":1: 5 columns"),
    "seven columns": ("q Q0 d 1 0.5 my tag\n", ":1: 7 columns"),
    "blank": ("q Q0 d 1 0.5 t\n\nq Q0 e 2 0.4 t\n", ":2: 0 columns"),
    "no number": ("q Q0 d 1 high t\n", ":1: the score 'high' is not a number"),
    "underscore": ("q Q0 d 1 1_0 t\n", ":1: the score '1_0' is not a number"),
    "NaN": ("q Q0 d 1 nan t\n", ":1: the score 'nan' is not a number"),
    "twice": ("q Q0 d 1 2 t\nr Q0 d 1 2 t\nq Q0 d 2 1 t\n", ":3: the title d is given twice"),
    "NUL": ("q Q0 d\0 1 2 t\n", ":1:7: a NUL"),
    "empty": ("", ": no ranked titles"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_runs(tmp_path, content, message):
    path = tmp_path / "run.txt"
    path.write_text(content)
    with pytest.raises(SentembError) as caught:
        read_run(path)
    assert str(caught.value).startswith(f"{path}{message}")
    assert "; " in str(caught.value)


@pytest.mark.parametrize(
    ("run", "tag"),
    [
        ({"q": {"d": math.nan}}, "tag"),
        ({"q 1": {"d": 1.0}}, "tag"),
        ({"q": {"": 1.0}}, "tag"),
        ({"q": {"d": 1.0}}, "my tag"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(tmp_path, run, tag):
    with pytest.raises(SentembError):
        write_run(run, tmp_path / "run.txt", tag)
    assert list(tmp_path.iterdir()) == []


ids = st.text(min_size=1, max_size=4).filter(
    lambda text: text.split() == [text] and not set(text) & set("\ufeff\0")
)
scores = st.floats(allow_nan=False) | st.floats(allow_nan=False, width=32)


@given(
    run=st.dictionaries(ids, st.dictionaries(ids, scores, min_size=1, max_size=6), min_size=1),
    name=st.sampled_from(["run.txt", "run.txt.gz"]),
)
def test_round_trip(tmp_path_factory, run, name):
    path = tmp_path_factory.getbasetemp() / name
    write_run(run, path)
    again = read_run(path)
    assert again == run
    assert list(again) == list(run)
    for query_id, ranking in again.items():
        by_rule = sorted(ranking, key=lambda id: (run[query_id][id], id), reverse=True)
        assert list(ranking) == by_rule
