"""Click logs from memory: pairs, tables, and what is wrong in them."""

import math

import numpy as np
import pytest

import sentemb
from sentemb import ClickLog, SentembError
from sentemb.training.run import read_log

PAIRS = [("tap", "Fix a Tap"), ("tap", "Fix a Tap", 2), ("rome", "Rome", np.int64(3))]


class Column:
    """A column as Polars has it: it becomes a list by `to_list` only."""

    def __init__(self, values):
        self._values = values

    def to_list(self):
        return self._values


class Frame:
    """A table with the members that pandas and Polars share."""

    def __init__(self, **columns):
        self._columns = columns

    @property
    def columns(self):
        return list(self._columns)

    def __getitem__(self, name):
        return Column(self._columns[name])

    def __iter__(self):  # tables of pandas iterate over the names
        return iter(self._columns)


class NAType:
    """Like NA of pandas, which has no truth value."""

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")

    def __eq__(self, other):
        return self

    def __repr__(self):
        return "<NA>"


def as_dict(log):
    return {
        (log.queries[q], log.titles[t]): int(n)
        for q, t, n in zip(log.query_index, log.title_index, log.clicks, strict=True)
    }


def test_pairs_are_summed():
    expected = {("tap", "Fix a Tap"): 3, ("rome", "Rome"): 3}
    assert as_dict(ClickLog.from_pairs(PAIRS)) == expected
    assert as_dict(ClickLog.from_pairs(iter(PAIRS))) == expected


def test_a_table_of_any_kind_is_a_log():
    texts = {"query": ["tap", "rome"], "title": ["Fix a Tap", "Rome"]}
    once = {("tap", "Fix a Tap"): 1, ("rome", "Rome"): 1}
    for frame in (Frame(**texts), texts):
        assert as_dict(ClickLog.from_frame(frame)) == once
    # Counts are floats where pandas once had a missing value.
    counted = Frame(q=texts["query"], name=texts["title"], n=[2.0, np.int64(1)])
    log = ClickLog.from_frame(counted, query="q", title="name", clicks="n")
    assert as_dict(log) == {("tap", "Fix a Tap"): 2, ("rome", "Rome"): 1}


def test_columns_are_found_by_their_usual_names():
    frame = {"Search Term": ["tap", "rome"], "itemName": ["Fix a Tap", "Rome"], "n_clicks": [2, 0]}
    with pytest.warns(UserWarning, match="each row is one click; for the column n_clicks give cl"):
        log = ClickLog.from_frame(frame)
    assert as_dict(log) == {("tap", "Fix a Tap"): 1, ("rome", "Rome"): 1}
    log = ClickLog.from_frame(frame, query="search_term", clicks="nclicks")
    assert as_dict(log) == {("tap", "Fix a Tap"): 2}
    assert as_dict(read_log(frame, False, "corpus", print)) == {("tap", "Fix a Tap"): 2}


def test_flags_are_clicks():
    frame = {"query": ["a", "b"], "title": ["A", "B"], "clicked": [True, False]}
    log = ClickLog.from_frame(frame, clicks="clicked")
    assert log.queries == ["a"] and log.clicks.tolist() == [1]


@pytest.mark.parametrize("nothing", [None, math.nan, NAType(), 0, 0.0])
def test_a_row_whose_clicks_are_missing_is_no_click(nothing):
    frame = Frame(query=["tap", "rome"], title=["Fix a Tap", "Rome"], n=[nothing, 3])
    assert as_dict(ClickLog.from_frame(frame, clicks="n")) == {("rome", "Rome"): 3}


def test_a_table_of_pyarrow_is_a_log():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"query": ["tap"], "title": ["Fix a Tap"], "clicks": [4]})
    assert as_dict(ClickLog.from_frame(table, clicks="clicks")) == {("tap", "Fix a Tap"): 4}


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([], "the log has no pairs"),
        (["tap"], r"pair 0: 'tap' is not a pair; give \(query, title\)"),
        ([("tap", "T"), ("a", "b", 1, 2)], "pair 1: .* is not a pair"),
        ([("tap", "T"), ("tap", None)], r"pair 1: the title is missing \(None\)"),
        ([("tap", math.nan)], r"pair 0: the title is missing \(nan\); .*dropna"),
        ([(NAType(), "T")], "pair 0: the query is missing"),
        ([(7, "T")], "pair 0: the query is 7, not a str"),
        ([("tap", " ")], "pair 0: the title is empty"),
        ([("tap", "T", 0)], "pair 0: the clicks are 0"),
        ([("tap", "T", True)], "pair 0: the clicks are True"),
        ([("tap", "T", 1.5)], "pair 0: the clicks are 1.5"),
        ([("tap", "T", 2**63)], "pair 0: the clicks are 9223372036854775808"),
    ],
)
def test_a_bad_pair_is_named(pairs, message):
    with pytest.raises(SentembError, match=message):
        ClickLog.from_pairs(pairs)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (Frame(query=["a"], other=["b"]), "no column 'title'; its columns are query, other"),
        (Frame(query=["a", math.nan], title=["b", "c"]), r"row 1: the query is missing \(nan\)"),
        (Frame(query=["a"], title=["b", "c"]), "different lengths"),
        (Frame(query=[], title=[]), "the log has no rows"),
        ([("a", "b")], "a table with named columns is needed, not list"),
    ],
)
def test_a_bad_table_is_named(frame, message):
    with pytest.raises(SentembError, match=message):
        ClickLog.from_frame(frame)


def test_training_reads_tables_and_pairs():
    notes = []
    frame = Frame(query=["tap"], title=["Fix a Tap"], clicks=[5])
    assert as_dict(read_log(frame, False, "corpus", notes.append)) == {("tap", "Fix a Tap"): 5}
    assert len(read_log(PAIRS, False, "corpus", notes.append).clicks) == 2
    with pytest.raises(SentembError, match=r"a table with the columns query and title, or a list"):
        read_log(7, False, "corpus", notes.append)
    with pytest.raises(SentembError, match="no column 'title'"):
        sentemb.train(Frame(query=["a"], other=["b"]))
    with pytest.raises(SentembError, match="pair 0: 'q' is not a pair"):
        sentemb.train(["q", "t"])


def test_a_list_of_pairs_trains_the_model_of_its_file(tmp_path):
    pairs = [(f"word{k % 7} tap", f"Title {k % 5} of word{k}") for k in range(12)]
    (tmp_path / "log.tsv").write_text("".join(f"{q}\t{t}\n" for q, t in pairs))
    settings = {"cells": 3, "epochs": 1, "batch_size": 4, "hard_negatives": 0, "threads": 1}
    models = [sentemb.train(log, **settings) for log in (pairs, tmp_path / "log.tsv")]
    first, second = (model.encode(["word1 tap"]) for model in models)
    np.testing.assert_array_equal(first, second)
