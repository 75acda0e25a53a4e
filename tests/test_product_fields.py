"""Fields of products: their types, conditions, order, facets, and files that cannot be trusted."""

import gc
import json
import os
import sqlite3
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import joined_fields
from hypothesis import given, settings
from hypothesis import strategies as st

from sentemb import Index, SentembError
from sentemb.bridges.server.answers import Answers
from sentemb.bridges.server.app import create_app, replace_index
from sentemb.cli import main
from sentemb.search.field_columns import FieldColumn, fields_of
from sentemb.search.filters import sort_order
from sentemb.search.index_files import PRODUCTS
from sentemb.search.product_fields import ProductFields
from sentemb.search.ranking.parts import Asked
from sentemb.search.title_files import read_titles

FIELDS = {
    "price": [12.5, 80.0, None, 3.0],
    "stock": [3, 0, 7, 1],
    "brand": ["Acme", "Bolt", "Acme", None],
}
TITLES = ["fix hotels shanghai", "hotels shanghai with tub", "resorts shanghai", "hotels"]
IDS = ["a", "b", "c", "d"]


@pytest.fixture
def fields():
    return ProductFields.given(FIELDS, 4)


@pytest.fixture
def index(model):
    return Index.build(model, TITLES, IDS, FIELDS)


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["1", "", " 20 ", "-3"], "INTEGER", [1, None, 20, -3]),
        (["1", "2.50", "1e-3"], "REAL", [1.0, 2.5, 0.001]),
        (["1", "12,50", "1,299"], "REAL", [1.0, 12.5, 1.299]),
        (["1,299", "2,500"], "TEXT", ["1,299", "2,500"]),
        (["1.299", "2,500"], "TEXT", ["1.299", "2,500"]),
        (["1,299", "1234"], "REAL", [1.299, 1234.0]),
        (["1.299", "1234"], "REAL", [1.299, 1234.0]),
        (["1.299", "2,500", "1234"], "TEXT", ["1.299", "2,500", "1234"]),
        (["1.299", "12.299,50"], "REAL", [1299.0, 12299.5]),
        (["1.299.000", "5"], "INTEGER", [1299000, 5]),
        (["1 299,50", "12\u00a0299", "1\u202f000"], "REAL", [1299.5, 12299.0, 1000.0]),
        (["1'299.50", "3"], "REAL", [1299.5, 3.0]),
        (["1 2345"], "TEXT", ["1 2345"]),
        (["0,299"], "REAL", [0.299]),
        (["12,50", "1.299,00", "-12.345.678,9"], "REAL", [12.5, 1299.0, -12345678.9]),
        (["12.50", "1,299.00"], "REAL", [12.5, 1299.0]),
        (["12.50", "1.299,00"], "TEXT", ["12.50", "1.299,00"]),
        (["007", "8"], "TEXT", ["007", "8"]),
        (["12,50", "1.299"], "REAL", [12.5, 1299.0]),
        (["fix", "5"], "TEXT", ["fix", "5"]),
        (["", ""], "TEXT", [None, None]),
        (["9" * 19], "REAL", [1e19]),
        (["1e999"], "REAL", [None]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*is text and not a number")
def test_the_type_of_a_column_is_that_of_all_its_fields(texts, kind, values):
    column = FieldColumn("x")
    for text in texts:
        column.append([text])
    stored = fields_of([column], len(texts))
    assert stored.types == {"x": kind}
    assert [value for (value,) in stored.rows()] == values


@pytest.mark.parametrize(
    ("texts", "named"),
    [
        (["12.50", "3", "7 EUR"], r"'7 EUR'; 1 of 3 fields are not"),
        (["12.50", "3", "1.299,00", "2"], r"'1\.299,00'; write numbers without"),
        (["12.50", "007", "7 EUR", "1"], r"'007'; 1 of 4 fields are not"),
        (["5", "1,2995,00"], r"'1,2995,00'; write numbers without"),
        (["899", "1,299", "2,499"], r"'1,299'; write numbers without"),
    ],
)
def test_a_column_of_numbers_that_is_text_is_warned_of(texts, named):
    column = FieldColumn("price")
    column.append(texts)
    with pytest.warns(UserWarning, match=f"price is text .* {named}"):
        fields_of([column], len(texts))


@pytest.mark.filterwarnings("error")
@settings(deadline=None, max_examples=30)
@given(
    cents=st.lists(st.integers(-(10**9), 10**9), min_size=1, max_size=8),
    decimal=st.sampled_from(".,"),
    separator=st.sampled_from(["", " ", "\u00a0", "\u202f", "'", "mark"]),
    portions=st.integers(1, 3),
)
def test_a_column_in_any_notation_has_the_same_numbers(cents, decimal, separator, portions):
    separator = {"mark": "." if decimal == "," else ","}.get(separator, separator)
    signs = str.maketrans({".": decimal, ",": separator})
    column = FieldColumn("price")
    texts = [f"{cent / 100:,.2f}".translate(signs) for cent in cents]
    for first in range(portions):
        column.append(texts[first::portions])
    stored = fields_of([column], len(texts))
    ordered = [cent / 100 for first in range(portions) for cent in cents[first::portions]]
    assert stored.types == {"price": "REAL"}
    assert [value for (value,) in stored.rows()] == ordered


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        ("stock > 0 and price < 50", [0, 3]),
        ("price is null", [2]),
        ("brand = 'Acme'", [0, 2]),
        ("BRAND = 'acme' COLLATE nocase", [0, 2]),
        ("lower(brand) in ('bolt', 'it''s')", [1]),
        ("not (stock between 1 and 5)", [1, 2]),
        ('"price" * 2 >= 25', [0, 1]),
        ("brand like 'a%' or stock=0", [0, 1, 2]),
        ("coalesce(price, 0) = 0", [2]),
        ("5 - - 1 = 6", [0, 1, 2, 3]),
        ("length(brand) = 4 and 2 < stock", [0, 2]),
        ("stock = 1 or brand = 'Bolt'", [1, 3]),
        ("stock > '1' and brand > 'A'", [0, 2]),
    ],
)
def test_a_condition_finds_the_rows_that_meet_it(fields, condition, rows):
    assert np.flatnonzero(fields.mask(condition)).tolist() == rows
    assert fields.mask(condition) is fields.mask(condition)


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("pricee < 5", "no column pricee; did you mean price"),
        ("colour = 'fix'", "there are price, stock, brand"),
        ("title like 'a%'", "title is not a field; there are price, stock, brand"),
        ("id in (1, 2)", "--only limits a search to some ids"),
        ('"stocks" > 0', "did you mean stock"),
        ("stock > 0; drop table products", "cannot be read from"),
        ("stock > 0 -- and", "the condition is wrong"),
        ("stock in (select 1)", "no column select"),
        ("stock > 0 union select 1", "the condition is wrong from 'union select 1' on"),
        ("load_extension('x')", "no function load_extension"),
        ("randomblob(1000000000) is null", "no function randomblob"),
        ("group_concat(brand) = ''", "no function group_concat"),
        ("stock || 'x' = ''", "cannot be read from"),
        ("stock >", "the condition is wrong"),
        ("stock = $x", "cannot be read from"),
        ("rowid = 1", "no column rowid"),
        ("sqlite_schema.sql = ''", "cannot be read from"),
        ("brand = 'open", "cannot be read from"),
        ("brand glob '" + "*a" * 60 + "'", "the condition is wrong"),
        ("price = 1\0", "cannot be read from"),
        ("brand = '\ud800'", "cannot be read from"),
        (" ", "is empty"),
        ("brand > 10", "brand is text and cannot be compared with the number 10; make the"),
        ("10 <= Brand", "compared with the number 10"),
        ("brand > -10", "compared with the number -10"),
        ("brand in (1, 2)", "compared with the number 1"),
        ("brand not between 1 and 2", "compared with the number 1"),
        ("coalesce(brand, 0) > 1", "compared with the number 0"),
        ("stock > 1 and brand * 2 > stock", "brand is text, but a number is needed"),
        ("price > brand", "compared with the number price"),
        ("1" * 1001, "1,001 characters"),
    ],
)
def test_a_wrong_condition_is_refused(fields, condition, message):
    with pytest.raises(SentembError, match=message):
        fields.mask(condition)


def test_the_database_itself_refuses_what_the_check_of_tokens_would_let_through(fields):
    for statement in (
        "SELECT (SELECT 1)",
        "SELECT sql FROM sqlite_schema",
        "SELECT load_extension('x')",
        "DELETE FROM products",
        "ATTACH 'x' AS y",
        "PRAGMA query_only=OFF",
        "SELECT random() FROM products",
    ):
        with pytest.raises(SentembError):
            fields._read(statement)


def test_order_and_facets(fields):
    rows = [3, 1, 2, 0]
    assert [rows[k] for k in fields.ordered("price", rows)] == [3, 0, 1, 2]
    assert [rows[k] for k in fields.ordered("-price", rows)] == [1, 0, 3, 2]
    assert [rows[k] for k in fields.ordered("Brand desc", rows)] == [1, 2, 0, 3]
    assert fields.facet("brand", rows) == {"Acme": 2, "Bolt": 1}
    assert sort_order("price asc", ["price"]) == ("price", False)
    with pytest.raises(SentembError, match="did you mean price"):
        fields.ordered("pric", rows)


def test_take_and_join_keep_every_field_and_equal_rows_have_equal_bytes(fields):
    taken = fields.take(np.array([2, 0]))
    assert list(taken.rows()) == [(None, 7, "Acme"), (12.5, 3, "Acme")]
    more = ProductFields.given({"Stock": [1.5], "Brand": [7], "size": [5]}, 1)
    joined = joined_fields(taken, more, "e")
    assert joined.types == {"price": "REAL", "stock": "REAL", "brand": "TEXT", "size": "INTEGER"}
    assert list(joined.rows())[2] == (None, 1.5, "7", 5)
    assert fields.take(np.arange(4)).image.tobytes() == fields.image.tobytes()


@pytest.mark.parametrize(
    "given",
    [
        {"price": [1.0]},
        {"price": [float("nan")] * 4},
        {"price": [b"x"] * 4},
        {"price": [2**64] * 4},
        {"id": [1] * 4},
        {'a"b': [1] * 4},
        {"a": [1] * 4, "A": [1] * 4},
        {"brand": ["\ud800"] * 4},
    ],
)
def test_fields_that_cannot_be_stored_are_refused(given):
    with pytest.raises(SentembError):
        ProductFields.given(given, 4)


def test_search_ranks_the_titles_that_meet_a_condition_as_if_there_were_no_others(index, model):
    queries = ["hotels shanghai", "shanghai", "tub"]
    alone = Index.build(model, [TITLES[0], TITLES[3]], ["a", "d"])
    filtered = index.search(queries, where="stock > 0 and price < 50", everything=True)
    expected = alone.search(queries, everything=True)
    for hit in (hit for hits in filtered for hit in hits):
        assert hit.pop("fields")
    assert filtered == expected
    filtered = index.search(queries, where="stock > 0 and price < 50", everything=True)
    assert {hit.id: hit.fields["price"] for hit in filtered[0]} == {"a": 12.5, "d": 3.0}
    assert index.search("hotels", where="stock > 100") == []


def test_search_sorts_matches_and_counts_facets(index):
    hits = index.search("shanghai", sort="price", facets=["brand"], everything=True)
    prices = [hit.fields["price"] for hit in hits]
    there = [price for price in prices if price is not None]
    assert there == sorted(there)
    scores = [hit.score for hit in hits]
    assert len(scores) > 1
    assert min(scores) >= max(scores) / 2
    brands = [hit.fields["brand"] for hit in hits]
    assert hits.facets == {
        "brand": {brand: brands.count(brand) for brand in ("Acme", "Bolt") if brand in brands}
    }
    assert len(index.search("shanghai", 1, sort="-price", facets=["brand"], everything=True)) == 1


def test_an_exact_id_comes_first_and_similar_leaves_the_title_out(index):
    assert next(hit.id for hit in index.search("c", everything=True)) == "c"
    assert next(hit.id for hit in index.search(" c ")) == "c"
    assert all(hit.id != "c" for hit in index.search("c", where="brand = 'Bolt'"))
    similar = [hit.id for hit in index.similar("a")]
    assert similar == [hit.id for hit in index.search(TITLES[0], everything=True) if hit.id != "a"]
    with pytest.raises(SentembError, match="not in the index"):
        index.similar("z")


def test_an_id_is_found_in_capitals_and_in_small_letters(model, tmp_path):
    index = Index.build(model, TITLES, ["P-1", "p-2", "P-3", "p-3"])
    for typed, id in (("p-1", "P-1"), (" P-2", "p-2"), ("p-3", "p-3"), ("P-3", "P-3")):
        assert index.search(typed)[0].id == id
    index.save(tmp_path / "i")
    assert "knows nothing of" not in run("search", tmp_path / "i", "p-1").output
    assert "knows nothing of" in run("search", tmp_path / "i", "p-4").output
    assert Answers(index).search(["p-1"], 1)[0]["unknown"] == []


def test_a_condition_that_no_product_meets_is_named(index):
    for hits in (
        index.search("hotels", where="stock > 100"),
        index.similar("a", where="stock > 100"),
    ):
        assert (list(hits), hits.reason) == ([], "no product meets the condition")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"where": 5}, "where is 5; give a text"),
        ({"where": ["stock > 0"]}, "where is \\['stock > 0'\\]; give a text"),
        ({"sort": 5}, "sort is 5; give a text"),
        ({"facets": 5}, "facets: give a list of texts, not int"),
        ({"facets": "brand"}, "facets: give a list of texts, not str"),
        ({"facets": [5]}, "facets: text 0, counted from 0, is int"),
        ({"facets": None}, "facets: give a list of texts"),
    ],
)
def test_arguments_of_another_type_are_refused(index, given, said):
    for search in (index.search, index.similar):
        with pytest.raises(SentembError, match=said):
            search("a", **given)


def test_a_run_has_no_other_order_than_that_of_the_scores(index, tmp_path):
    index.save(tmp_path / "i")
    done = run("search", tmp_path / "i", "a", "--trec", "--sort", "price")
    assert "leave --sort out" in done.output and done.exit_code == 2


def test_changes_of_an_index_keep_fields_with_their_titles(index, tmp_path):
    index.save(tmp_path / "i")
    index = Index.open(tmp_path / "i")
    index.remove(["b"])
    assert list(index.fields.rows()) == [(12.5, 3, "Acme"), (None, 7, "Acme"), (3.0, 1, None)]
    index.add(["and shanghai"], ["e"], fields={"stock": [9]})
    assert list(index.fields.rows())[-1] == (None, 9, None)
    counts = index.sync(
        ["resorts shanghai", "new hotels", "fix hotels shanghai"],
        ["c", "d", "a"],
        fields={"price": [1.0, 2.0, 12.5], "stock": [7, 1, 3], "brand": ["Acme", "Bolt", "Acme"]},
    )
    assert counts == (0, 2, 1)
    assert list(zip(index.ids, index.fields.rows(), strict=True)) == [
        ("a", (12.5, 3, "Acme")),
        ("c", (1.0, 7, "Acme")),
        ("d", (2.0, 1, "Bolt")),
    ]
    again = {"price": [12.5, 1.5, 2.0], "stock": [3, 7, 1], "brand": ["Acme", "Acme", "Bolt"]}
    assert index.sync(list(index.titles), list(index.ids), fields=again) == (0, 1, 0)
    assert index.search("shanghai", where="price = 1.5", everything=True)[0].id == "c"
    index.save(tmp_path / "i", force=True)
    assert list(Index.open(tmp_path / "i").fields.rows())[1] == (1.5, 7, "Acme")


def test_a_column_without_values_takes_the_type_of_the_other_side(index):
    column = FieldColumn("price")
    column.append([""])
    index.add(["and shanghai"], ["e"], fields=fields_of([column], 1))
    assert index.fields.types == {"price": "REAL", "stock": "INTEGER", "brand": "TEXT"}
    assert index.search("d", where="price < 5")[0].id == "d"
    nothing = [None] * 5
    fields = {"price": nothing, "brand": nothing, "stock": [1, 2, 3, 4, 5]}
    index.sync(list(index.titles), list(index.ids), fields=fields)
    assert index.fields.types == {"price": "REAL", "brand": "TEXT", "stock": "INTEGER"}
    assert not index.fields.mask("price < 5 and brand < 5").any()
    index.add(["and hotels"], ["f"], fields={"brand": [7]})
    assert index.fields.types["brand"] == "INTEGER"


@pytest.mark.parametrize("value", ["abc", "call us", "1,299", "007"])
def test_a_text_in_a_column_of_numbers_is_refused(index, value):
    before = index.fields
    said = f"price of f is '{value}', but price is a number in the index"
    for change in (index.add, index.sync):
        with pytest.raises(SentembError, match=said):
            change(["x", "y"], ["e", "f"], fields={"Price": [5, value]})
    assert index.fields is before
    assert len(index) == 4


@pytest.mark.parametrize(
    ("price", "said"),
    [("", ""), ("1.299,00", ""), ("12", ""), ("call us", "'call us'"), ("1,299", "'1,299'")],
)
def test_a_file_that_is_added_keeps_a_column_of_numbers(index, tmp_path, price, said):
    index.save(tmp_path / "i")
    file = tmp_path / "e.tsv"
    file.write_text(f"id\ttitle\tprice\tstock\tbrand\nE1\tnew hotels\t{price}\t4\tAlder\n")
    for option in ("--add", "--sync"):
        done = run("index", tmp_path / "i", option, file, "-o", tmp_path / option)
        assert (f"price of E1 is {said}, but price is a number" in done.output) == bool(said)
        assert bool(done.exit_code) == bool(said) != (tmp_path / option).exists()
        if not said:
            types = Index.open(tmp_path / option).fields.types
            assert types["price"] in ("REAL", "INTEGER")


@pytest.mark.filterwarnings("error")
def test_a_file_that_is_added_keeps_a_column_of_texts_as_written(model, tmp_path):
    Index.build(model, TITLES, IDS, {"Size": ["S", "38", None, "M"]}).save(tmp_path / "i")
    file = tmp_path / "e.tsv"
    file.write_text("id\ttitle\tsize\twidth\nE1\tnew hotels\t38\t1\nE2\thotels\t12.50\t2\n")
    done = run("index", tmp_path / "i", "--add", file)
    assert not done.exit_code, done.output
    fields = Index.open(tmp_path / "i").fields
    assert fields.types == {"Size": "TEXT", "width": "INTEGER"}
    assert list(fields.rows())[-2:] == [("38", 1), ("12.50", 2)]
    assert fields.mask("size = '38'").tolist() == [False, True, False, False, True, False]


def test_an_open_index_reads_its_own_fields_after_the_folder_was_replaced(index, tmp_path):
    index.save(tmp_path / "i")
    old = Index.open(tmp_path / "i")
    changed = Index.open(tmp_path / "i")
    changed.remove(["a"])
    changed.save(tmp_path / "i", force=True)
    assert [hit.fields["stock"] for hit in old.search("a")][:1] == [3]
    assert old.fields.mask("stock = 3").tolist() == [True, False, False, False]


@pytest.mark.parametrize("in_memory", [False, True])
def test_fields_are_read_in_threads_and_after_a_fork(index, tmp_path, in_memory):
    index.save(tmp_path / "i")
    opened = Index.open(tmp_path / "i", in_memory=in_memory)
    (segment,) = opened.snapshot.segments
    assert opened.fields.mask("stock > 0").sum() == 3
    assert segment.fields._reader() is segment.fields._reader()
    sums = []
    threads = [
        threading.Thread(target=lambda k=k: sums.append(opened.fields.mask(f"stock > {k}").sum()))
        for k in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sums, reverse=True) == [3, 2, 2, 1, 1, 1, 1, 0]
    child = os.fork()
    if not child:
        os._exit(int(opened.fields.mask("price > 4").sum()))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no list of open files")
def test_connections_are_closed_with_the_fields_that_had_them(index, tmp_path):
    index.save(tmp_path / "i")
    opened = Index.open(tmp_path / "i")
    app = create_app(opened)
    began, go = threading.Barrier(5), threading.Event()

    def ask():
        address = "/search?q=hotels&all=true&where=stock+%3E+0&sort=price"
        assert app.test_client().get(address).status_code == 200
        began.wait()
        go.wait()

    def n_open():
        links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
        files = [os.readlink(link) for link in links if link.exists()]
        return sum(file == str(tmp_path / "i" / PRODUCTS) for file in files), len(files)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    began.wait()
    gc.disable()  # nothing may wait for it
    try:
        before = n_open()
        del opened
        replace_index(app, Index.open(tmp_path / "i"))
        after = n_open()
    finally:
        gc.enable()
        go.set()
    for thread in threads:
        thread.join()
    # The one that is left is the mapped file of the new index, which has no more open than before.
    assert (before[0], after[0]) == (5, 1)
    assert after[1] == before[1] - 4


def test_queries_do_not_keep_the_index_that_they_were_asked():
    asked = Asked(["hotels"], lambda texts: np.zeros((len(texts), 2)), None)
    kept = weakref.ref(asked)
    gc.disable()
    try:
        del asked
        assert kept() is None
    finally:
        gc.enable()


def replaced(folder, image):
    """Put another database into an index, with a description that fits."""
    from sentemb.system.checked_files import checksum, sample

    (folder / PRODUCTS).write_bytes(image)
    description = json.loads((folder / "index.json").read_text())
    listed = {**checksum(folder / PRODUCTS), "sample": sample(folder / PRODUCTS)}
    description["files"][PRODUCTS] = listed
    (folder / "index.json").write_text(json.dumps(description))


@pytest.mark.parametrize(
    "statements",
    [
        ["CREATE TABLE others (x)"],
        ["CREATE VIEW v AS SELECT 1"],
        ["CREATE TRIGGER t AFTER INSERT ON products BEGIN SELECT 1; END"],
        ["CREATE INDEX i ON products (lower(brand))"],
        ["DELETE FROM products WHERE rowid = 4"],
        ["INSERT INTO products (stock) VALUES (1)"],
        ["ALTER TABLE products ADD COLUMN x DEFAULT (load_extension('x'))"],
        ["DROP TABLE products", "CREATE VIEW products AS SELECT 1 AS price"],
    ],
)
def test_a_crafted_database_is_refused(index, tmp_path, statements):
    index.save(tmp_path / "i")
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.deserialize((tmp_path / "i" / PRODUCTS).read_bytes())
    try:
        for statement in statements:
            base.execute(statement)
    except sqlite3.OperationalError:
        pytest.skip("this SQLite does not make such a table")
    replaced(tmp_path / "i", base.serialize())
    with pytest.raises(SentembError, match="fields of the products are damaged"):
        Index.open(tmp_path / "i")


@pytest.mark.parametrize("image", [b"", b"x" * 4096, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_not_a_database_is_refused(index, tmp_path, image):
    index.save(tmp_path / "i")
    replaced(tmp_path / "i", image)
    for in_memory in (False, True):
        with pytest.raises(SentembError, match="damaged"):
            Index.open(tmp_path / "i", in_memory=in_memory)


def test_a_text_that_is_no_text_is_damage_and_no_wrong_condition():
    fields = ProductFields.given({"brand": ["Elm", "Fir"]}, 2)
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.deserialize(fields.image.tobytes())
    base.execute("UPDATE products SET brand = CAST(x'ff41' AS TEXT) WHERE rowid = 1")
    damaged = ProductFields(fields.types, 2, np.frombuffer(base.serialize(), np.uint8))
    damaged.check()
    for read in (
        lambda: damaged.values([0]),
        lambda: damaged.facet("brand", [0]),
        lambda: damaged.ordered("brand", [0, 1]),
        lambda: list(damaged.rows()),
        lambda: damaged.take(np.array([0])),
    ):
        with pytest.raises(SentembError, match="fields of the products are damaged: Could not"):
            read()
    assert damaged.mask("brand = 'Fir'").tolist() == [False, True]


def test_values_of_equal_counts_have_one_order(model):
    values = ["elm", "Elm", "\U0001f33f", "\ufb01r", "7", "10", "Ash", "ash"]
    ids, titles = [f"t{k}" for k in range(8)], ["hotels shanghai"] * 8
    one = Index.build(model, titles, ids, {"tree": values})
    back = Index.build(model, titles, ids, {"tree": values[::-1]})
    found = [
        list(index.search("hotels", facets=["tree"], everything=True).facets["tree"])
        for index in (one, back)
    ]
    assert found == [sorted(values)] * 2


@pytest.mark.parametrize("white", ["\ufeff", "\x1c", "\x1f", "\x85", "\u3000", "\u2028 "])
def test_white_space_around_an_id_is_passed_over(index, white):
    assert index.search(f"{white}c{white}")[0].id == "c"


def test_values_that_json_cannot_hold_are_shown_as_missing(index, tmp_path):
    index.save(tmp_path / "i")
    base = sqlite3.connect(":memory:", isolation_level=None)
    base.deserialize((tmp_path / "i" / PRODUCTS).read_bytes())
    base.execute("UPDATE products SET price = 9e999, brand = x'ff' WHERE rowid = 1")
    replaced(tmp_path / "i", base.serialize())
    opened = Index.open(tmp_path / "i")
    assert opened.fields.values([0]) == [{"price": None, "stock": 3, "brand": None}]
    assert opened.fields.facet("brand", [0, 1]) == {"Bolt": 1}


def test_a_file_of_titles_has_fields_below_a_line_of_names(tmp_path):
    path = tmp_path / "titles.tsv"
    path.write_text("id\ttitle\tprice\tbrand\na\thotels shanghai\t12,50\tAcme\nb\tshanghai\t\t\n")
    ids, titles, fields = read_titles(path)
    assert (list(ids), list(titles)) == (["a", "b"], ["hotels shanghai", "shanghai"])
    assert fields.types == {"price": "REAL", "brand": "TEXT"}
    assert list(fields.rows()) == [(12.5, "Acme"), (None, None)]
    path.write_text("id\ttitle\tprice\na\thotels shanghai\t1\t2\n")
    with pytest.raises(SentembError, match="2: 4 columns, but line 1 names 3"):
        read_titles(path)
    path.write_text("id\ttitle\tscore\na\thotels shanghai\t1\n")
    with pytest.raises(SentembError, match="cannot be named score"):
        read_titles(path)
    path.write_text("id\ttitle\tprice\na\tx\t1\na\ty\t2\n")
    with pytest.raises(SentembError, match="3: the id a is already in line 2"):
        read_titles(path)


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_from_an_export_of_a_shop_to_a_filtered_search(model_dir, tmp_path):
    (tmp_path / "clicks.csv").write_text("query,sku\nshanghai,1\nhotels,2\n")
    (tmp_path / "products.csv").write_text(
        "sku,name,price,Brand,pic\n"
        '1,hotels shanghai,"12,50",Acme,https://x.example/1.png\n'
        '2,hotels,"80,00",Bolt,\n'
        '3,resorts shanghai,"9,90",Acme,\n'
    )
    done = run(
        *("import", tmp_path / "clicks.csv", "-o", tmp_path / "pairs.tsv", "--id-column", "sku"),
        *("--catalogue", tmp_path / "products.csv", "--title-column", "name"),
        *("--write-catalogue", tmp_path / "t.tsv", "--fields", "price,brand=Brand,image=pic"),
    )
    assert not done.exit_code, done.output
    assert (tmp_path / "t.tsv").read_text().splitlines()[:2] == [
        "id\ttitle\tprice\tbrand\timage",
        "1\thotels shanghai\t12,50\tAcme\thttps://x.example/1.png",
    ]
    done = run("index", model_dir, tmp_path / "t.tsv", "-o", tmp_path / "index")
    assert "fields: price (real), brand (text), image (text)" in done.output

    def searched(*arguments):
        done = run("search", tmp_path / "index", *arguments, "-o", tmp_path / "out", "--force")
        assert not done.exit_code, done.output
        return (tmp_path / "out").read_text()

    text = searched(
        *("hotels shanghai", "--where", "price < 50", "--all", "--sort", "-price"),
        *("--facets", "brand"),
    )
    assert "hotels shanghai  price 12.5  brand Acme\n" in text
    assert "brand: Acme (" in text
    assert "Bolt" not in text
    both = json.loads(searched("shanghai", "--json", "--all", "--facets", "brand, price"))
    assert list(both["facets"]) == ["brand", "price"]
    line = json.loads(searched("shanghai", "--json", "--all", "--facets", "brand"))
    assert {hit["fields"]["price"] for hit in line["titles"]} <= {12.5, 80.0, 9.9}
    assert sum(line["facets"]["brand"].values()) <= 3
    assert "1" not in [hit["id"] for hit in json.loads(searched("--like", "1", "--json"))["titles"]]
    for wrong, message in (
        (["x", "--where", "prise < 5"], "did you mean price"),
        (["x", "--sort", "size"], "there are price, brand, image"),
        (["--like", "9"], "the id 9 is not in the index"),
        (["--like", "1", "--min-score", "2"], "does not go with --like"),
        (["x", "--like", "1"], "x is not an index; give no QUERY with"),
        (["x", "--facets", "brand", "--tsv"], "--tsv has no place for facets; leave --facets"),
        (["x", "--facets", "brand", "--trec"], "--trec has no place for facets"),
    ):
        done = run("search", tmp_path / "index", *wrong)
        assert done.exit_code
        assert message in done.output, done.output
    done = run("import", tmp_path / "clicks.csv", "-o", tmp_path / "p", "--fields", "price")
    assert "give both" in done.output
    (tmp_path / "plain.tsv").write_text("1\thotels shanghai\n")
    done = run("index", tmp_path / "index", "--sync", tmp_path / "plain.tsv")
    assert "has no fields" in done.output
    done = run("search", tmp_path / "index", "hotels", "--where", "price < 5")
    assert "the index has titles only" in done.output
