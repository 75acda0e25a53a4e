"""Segments of an index: what a change writes, what is left of removed titles, and how they join."""

import json
import os
import shutil

import numpy as np
import pytest
from helpers import fields_of_index, made_up_model
from hypothesis import given
from hypothesis import strategies as st

from sentemb import Index, SentembError
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search import segment
from sentemb.search.left import Left
from sentemb.search.product_fields import ProductFields
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

WORDS = ["red", "green", "blue", "small", "large", "cotton", "hat", "bag", "coat", "shoe"]
N = 40
TITLES = [f"{WORDS[k % 10]} {WORDS[(3 * k + k // 10) % 10]}" for k in range(N)]
IDS = [f"p{k}" for k in range(N)]
FIELDS = {"price": [float(k) for k in range(N)], "brand": ["Acme"] * (N - 1) + ["Bolt"]}
RECIPE = Recipe(
    {"cosine": 1.0, "memory": 0.5, "bm25": 0.5, "clicked_bm25": -0.2, "unclicked": 0.1}
    | {"clicks": 0.4, "name": 0.3},
    1.2,
    0.6,
)
CLICKS = ClickLog.from_pairs(
    [(f"{title} gown", title) for title in TITLES[:20]] + [("Red", TITLES[0]), ("red", "new cap")]
)


@pytest.fixture(scope="module")
def ranker():
    model = made_up_model(("bag", {}), TITLES, cells=6, dtype=np.float32)
    return HybridRanker(model, RECIPE, ClickedQueries.of(CLICKS), threads=1)


@pytest.fixture(autouse=True)
def many_segments(monkeypatch):
    """Segments of few titles are not joined at once."""
    monkeypatch.setattr(segment, "_FEW", 0)


@pytest.fixture
def folder(ranker, tmp_path):
    Index.build(ranker, TITLES, IDS, FIELDS, threads=1).save(tmp_path / "index")
    return tmp_path / "index"


def numbers(folder):
    """The number that the disk has for each file."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_ino
        for path in folder.rglob("*")
        if path.is_file()
    }


def changed(folder, change):
    """The files of an index that a change writes, and the index."""
    before, index = numbers(folder), Index.open(folder, 1)
    change(index)
    index.save(folder, force=True)
    Index.verify(folder)
    after = numbers(folder)
    written = {name for name, number in after.items() if before.get(name) != number}
    return written, Index.open(folder, 1)


# -- rows and numbers -------------------------------------------------------------------------


@given(st.lists(st.booleans(), max_size=30))
def test_rows_that_are_left_are_numbered(is_left):
    removed = np.array([row for row, stays in enumerate(is_left) if not stays], np.int64)
    left, rows = Left(len(is_left), removed), np.flatnonzero(is_left)
    assert len(left) == len(rows) and left.is_left.tolist() == is_left
    assert left.numbers(rows).tolist() == list(range(len(rows)))
    assert left.rows(np.arange(len(rows))).tolist() == rows.tolist()
    mask = np.arange(len(rows)) % 2 == 0
    of_rows = left.mask(mask)
    assert np.flatnonzero(of_rows).tolist() == rows[mask].tolist()
    assert left.mask(None) is None if not removed.size else left.mask(None).tolist() == is_left
    again = left.without(rows[:1])
    assert len(again) == max(0, len(left) - 1) and (np.diff(again.removed) > 0).all()


# -- what is written --------------------------------------------------------------------------


def test_titles_that_are_removed_leave_all_other_files_alone(folder):
    written, index = changed(folder, lambda index: index.remove(["p3", "p5"]))
    assert written == {"index.json", "removed.npy"}
    assert [*index.ids] == [id for id in IDS if id not in ("p3", "p5")]
    assert "p3" not in index and index.fields.values([3]) == [{"price": 4.0, "brand": "Acme"}]
    written, index = changed(folder, lambda index: index.add(["red bag"], ["p3"]))
    assert {name.partition("/")[0] for name in written} == {"index.json", "removed.npy", "segments"}
    assert index["p3"]["title"] == "red bag" and len(index) == N - 1
    assert index.search("p3", 1)[0].id == "p3"


def test_a_search_reads_the_fields_of_each_segment_at_most_once(folder, monkeypatch):
    read, values = [], ProductFields.values
    monkeypatch.setattr(
        ProductFields, "values", lambda self, rows: (read.append(rows), values(self, rows))[1]
    )
    index = Index.open(folder)
    assert len(index.search(TITLES[0], 3)) == 3 and len(read) == 1
    index.add(["red bag"], ["new"], fields={"price": [0.5], "brand": ["Acme"]})
    for query in (TITLES[0], "red bag"):
        del read[:]
        assert len(index.search(query, 3)) == sum(map(len, read)) == 3 and all(read)


def test_fields_that_change_are_written_alone(folder):
    prices = [1.0, *FIELDS["price"][1:]]
    wanted = {"price": prices, "brand": FIELDS["brand"]}
    written, index = changed(folder, lambda index: index.sync(TITLES, IDS, fields=wanted))
    assert written == {"index.json", "products.sqlite"}
    assert index["p0"]["fields"]["price"] == 1.0
    # A column of another type, and one that is new, are written for all titles.
    more = {"price": ["cheap"], "size": [5]}
    with pytest.raises(SentembError, match="price is a number in the index"):
        index.add(["red bag"], ["new"], fields=more)
    more["price"] = [None]
    written, index = changed(folder, lambda index: index.add(["red bag"], ["new"], fields=more))
    assert "products.sqlite" in written and "ids.txt" not in written
    assert index["p0"]["fields"] == {"price": 1.0, "brand": "Acme", "size": None}
    assert index["new"]["fields"] == {"price": None, "brand": None, "size": 5}


def test_nothing_is_written_elsewhere_by_name_alone(folder, tmp_path):
    """Two folders of a user share no file."""
    index = Index.open(folder, 1)
    index.remove(["p3"])
    index.save(tmp_path / "copy")
    assert not {*numbers(folder).values()} & {*numbers(tmp_path / "copy").values()}


def test_a_file_that_was_replaced_since_is_not_taken_for_the_one_that_was_read(folder):
    index = Index.open(folder, 1)
    shutil.copy(folder / "titles.txt", folder / "new")
    os.replace(folder / "new", folder / "titles.txt")
    before = numbers(folder)
    index.remove(["p3"])
    index.save(folder, force=True)
    after = numbers(folder)
    assert before["titles.txt"] != after["titles.txt"] and before["ids.txt"] != after["ids.txt"]
    assert before["model/model.safetensors"] == after["model/model.safetensors"]
    assert len(Index.open(folder, 1)) == N - 1


# -- what is left of removed titles -----------------------------------------------------------


def test_words_of_removed_titles_are_unknown(folder, ranker):
    index = Index.open(folder, 1)
    index.add(["velvet"], ["v"])
    assert index.search("velvet hat").did_you_mean is None
    index.remove(["v"])
    anew = Index.build(ranker, TITLES, IDS, threads=1)
    for query in ("velvet hat", "velvet"):
        found, expected = index.search(query), anew.search(query)
        assert (found.reason, found.did_you_mean) == (expected.reason, expected.did_you_mean)


def test_a_segment_without_clicks_knows_the_queries_of_the_log(folder, ranker):
    """The clicks of two spellings of a query count for both, whatever titles a segment has."""
    titles, ids = [*TITLES, "new cap", "red shoe"], [*IDS, "n1", "n2"]
    index = Index.open(folder, 1)
    index.add(titles[N:], ids[N:], fields={"price": [1.0, 2.0], "brand": ["a", "b"]})
    assert len(index.snapshot.segments) == 2
    anew = Index.build(index.ranker, titles, ids, threads=1)
    for query in ("red", "RED", "red blue gown", "shoe"):
        found = [(hit.id, hit.score, hit.parts) for hit in index.search(query, 50)]
        assert found == [(hit.id, hit.score, hit.parts) for hit in anew.search(query, 50)]


def test_columns_have_the_values_of_titles_that_are_left():
    fields = ProductFields.given(
        {"brand": ["a", "b", "http://x", None], "size": [None] * 3 + [1]}, 4
    )
    whole = fields_of_index(fields)
    assert whole.facets == [] and whole.empty == set() and whole.text_columns == {"brand"}
    left = Left(4, np.array([2, 3]))
    assert fields.few_values("brand", 2, left) == {"a", "b"}
    assert fields.few_values("brand", 1, left) is None
    assert not fields.has_value("size", left) and fields.has_value("brand", left)
    assert list(fields.rows(left)) == [("a", None), ("b", None)]


# -- segments that are joined -----------------------------------------------------------------


def test_small_segments_are_joined(folder, ranker):
    index = Index.open(folder, 1)
    sizes = []
    for k in range(8):
        fields = {"price": [0.5], "brand": ["Acme"]}
        index.add([f"red bag {k}"], [f"n{k}"], fields=fields)
        sizes.append([len(each) for each in index.snapshot.segments])
    # A tenth of a segment behind it is too much.
    assert sizes == [[40, 1], [40, 2], [40, 3], [40, 4], [45], [45, 1], [45, 2], [45, 3]]
    index.remove(IDS[:4])
    assert [each.left.removed.size for each in index.snapshot.segments] == [4, 0]
    index.remove(IDS[4:5])
    assert [each.left.count for each in index.snapshot.segments] == [40, 3]
    index.remove([f"n{k}" for k in (5, 6, 7)])
    assert len(index.snapshot.segments) == 1
    index.remove([*index.ids])
    index.add(["red bag"], ["n1"])
    assert index.search("red bag")[0].id == "n1" and len(index) == 1


# -- damage -----------------------------------------------------------------------------------


@pytest.fixture
def damaged(folder):
    """A folder with two segments and removed titles, whose description a test changes."""
    index = Index.open(folder, 1)
    index.remove(["p3", "p5"])
    index.add(["red bag"], ["new"])
    index.save(folder, force=True)
    return folder


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("removed", 41),
        ("removed", -1),
        ("removed", 1),
        ("removed", 0),
        ("segments", {}),
        ("segments", [5]),
        ("segments", []),
        ("segments", [{"titles": 1}]),
    ],
)
def test_a_wrong_description_of_segments_is_refused(damaged, name, value):
    path = damaged / "index.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), name: value}))
    with pytest.raises(SentembError, match="the index is damaged"):
        Index.open(damaged, 1)


@pytest.mark.parametrize("rows", [[3, 3], [5, 3], [3, 40], [-1, 3]])
def test_removed_titles_that_do_not_rise_or_exist_are_refused(damaged, rows, monkeypatch):
    monkeypatch.setattr("sentemb.search.index.check_files", lambda *_: None)
    np.save(damaged / "removed.npy", np.array(rows))
    with pytest.raises(SentembError, match=r"removed\.npy: the index is damaged"):
        Index.open(damaged, 1)
