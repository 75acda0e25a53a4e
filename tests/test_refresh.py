"""`sentemb refresh` and `pin`: a shop's month, kept pins, comparisons, kills."""

import csv
import json
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from reliability.filesystem import in_a_child
from tiny_transformer import write_onnx

from sentemb import Index, SentembError
from sentemb.analysis.explanation import explain
from sentemb.bridges.refresh import refreshing
from sentemb.bridges.refresh.comparing import FEWEST, ClicksCompared, compare
from sentemb.bridges.refresh.pins import pin
from sentemb.bridges.refresh.refreshing import Refreshed, refresh
from sentemb.cli import main
from sentemb.data.click_log import ClickLog
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.retrieval.clicked_queries import PIN, ClickedQueries
from sentemb.search.index_files import read_description
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.shop_folder import Shop

COLOURS = ["red", "blue", "green", "black", "white", "brown", "grey", "pink", "orange", "yellow"]
THINGS = ["lamp", "chair", "table", "sofa", "desk", "shelf", "rug", "mirror", "clock", "vase"]
THINGS += ["bowl", "cup"]
PRODUCTS = [(f"P{k}", f"{COLOURS[k % 10]} {THINGS[k % 12]} {k}") for k in range(60)]
SEARCHES = 1400


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


def write_products(path, products):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("sku", "name", "price"), *((*p, 5) for p in products)])


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A shop that `start` has made; it is copied, and not changed."""
    folder = tmp_path_factory.mktemp("shop")
    write_products(folder / "products.csv", PRODUCTS)
    with (folder / "clicks.csv").open("w", newline="") as file:
        rows = [(f"{title.rsplit(' ', 1)[0]} buy {k % 3}", id, 1 + k % 4)
                for k, (id, title) in enumerate(PRODUCTS)]  # fmt: skip
        csv.writer(file).writerows([("query", "sku", "clicks"), *rows])
    run("start", folder / "clicks.csv", folder / "products.csv", "-o", folder / "shop")
    return folder


@pytest.fixture
def shop(made, tmp_path):
    return shutil.copytree(made / "shop", tmp_path / "shop")


def record_month(shop, path, count=SEARCHES, seed=0, first_shown=None):
    """Searches answered by the index of a shop, each with a click on a title with its words."""
    rng, index = random.Random(seed), Index.open(shop / "index")
    record = SearchRecord(path)
    queries = [f"{rng.choice(COLOURS)} {rng.choice(THINGS)}" for _ in range(count)]
    found = index.search(queries, 10, everything=True)
    names = record.add_searches(
        Searched(query, [(hit.id, hit.title) for hit in hits], None, 1.0)
        for query, hits in zip(queries, found, strict=True)
    )
    for query, name, hits in zip(queries, names, found, strict=True):
        right = [hit.id for hit in hits if hit.title.rsplit(" ", 1)[0] == query]
        for id in right[:1]:
            record.add_click(name, id)
    record.close()


def identity(shop, name="index"):
    return read_description(shop / name).identity


def test_start_writes_down_how_the_products_are_read(made):
    table = Shop.open(made / "shop").products
    assert (table.ids, table.title, table.fields) == (("sku",), "name", {"price": "price"})


def test_a_month(shop, made, tmp_path):
    before, record = identity(shop), tmp_path / "searches.sqlite"
    record_month(shop, record)
    today = [("P0", "red lantern 0"), *PRODUCTS[2:], ("new", "velvet cushion")]
    write_products(tmp_path / "today.csv", today)
    done = refresh(shop, [record, record], tmp_path / "today.csv")
    assert (done.searches, done.added, done.changed, done.removed) == (SEARCHES, 1, 1, 1)
    assert identity(shop, "index-before") == before and not (shop / "refreshing").exists()
    index = Index.open(shop / "index")
    assert dict(zip(index.ids, index.titles, strict=True)) == dict(today)
    assert index.fields.types == {"price": "INTEGER"}
    assert index.search("velvet cushion", 1)[0].id == "new"
    # The renamed product has the clicks of its old name; those of the one that is gone are gone.
    (hit,) = index.search("red lamp buy 0", 1)
    assert hit.id == "P0" and done.gone >= 2
    # All searches but those that were judged are learned from, and all clicks are served.
    assert done.compared is not None and FEWEST <= done.compared.searches <= SEARCHES / 3
    assert (Shop.open(shop).trained == {}) != done.has_new_model
    # The same record again brings nothing.
    again = refresh(shop, [record])
    assert (again.searches, again.clicks, again.added, again.lost) == (0, 0, 0, [])
    assert (again.queries, again.pairs, again.gone) == (done.queries, done.pairs, done.gone)
    # An index that is the same takes no place, so the one before is still there.
    assert identity(shop, "index-before") == before


def test_a_catalogue_that_lacks_most_products_is_refused(shop, tmp_path):
    before = identity(shop)
    write_products(tmp_path / "part.csv", PRODUCTS[:29])
    with pytest.raises(SentembError, match=r"part.csv: lacks 31 of the 60 products .* as P29;"):
        refresh(shop, catalogue=tmp_path / "part.csv")
    assert identity(shop) == before
    write_products(tmp_path / "part.csv", PRODUCTS[:30])
    assert refresh(shop, catalogue=tmp_path / "part.csv").removed == 30


def test_a_new_model_is_searched_if_it_is_not_behind(shop, tmp_path, monkeypatch):
    record_month(shop, tmp_path / "r.sqlite")
    index = Index.open(shop / "index")
    fields = {"price": [5] * len(index), "brand": ["Acme"] * len(index)}
    ranker = index.ranker.weighted({**index.recipe.weights, "embedding": 1.0})
    ranker.embedding = Embedding.of(write_onnx(tmp_path / "small", index.titles))
    searched = Index.build(ranker, index.titles, index.ids, fields, search_fields={"brand": 0.5})
    searched.save(shop / "index", force=True)
    results = {}
    for after in (0.4, 0.6):
        copy = shutil.copytree(shop, tmp_path / f"shop {after}")
        verdict = ClicksCompared(500, 400, 100, 0.5, after, 0.01)
        monkeypatch.setattr(refreshing, "compare", lambda *_, verdict=verdict: verdict)
        results[after] = refresh(copy, [tmp_path / "r.sqlite"]), Shop.open(copy), copy
    behind, ahead = results[0.4], results[0.6]
    assert not behind[0].has_new_model and "is behind" in behind[0].why
    assert behind[1].trained == {} and behind[1].refreshed > 0
    model = read_description(shop / "index").model_sha256
    assert read_description(behind[2] / "index").model_sha256 == model
    assert ahead[0].has_new_model
    trained = read_description(ahead[2] / "index").model_sha256
    assert trained != model and ahead[1].trained == {trained: ahead[1].refreshed}
    assert Index.open(ahead[2] / "index").search_fields == {"brand": 0.5}
    for _, _, copy in (behind, ahead):
        found = Index.open(copy / "index").ranker.embedding
        assert found.name == str(tmp_path / "small/onnx/model.onnx")
    # Both serve every click, those of the searches that were judged too.
    clicks = [Index.open(copy / "index").ranker.clicks for *_, copy in (behind, ahead)]
    assert clicks[0].clicks.sum() == clicks[1].clicks.sum() > 60


def test_a_dry_run_changes_nothing_and_its_work_is_used(shop, tmp_path, monkeypatch):
    record_month(shop, tmp_path / "r.sqlite")
    before, page = identity(shop), (shop / "page.html").read_bytes()
    dry = refresh(shop, [tmp_path / "r.sqlite"], dry_run=True)
    assert dry.is_dry and identity(shop) == before
    assert (shop / "page.html").read_bytes() == page and not (shop / "index-before").exists()
    monkeypatch.setattr(refreshing, "train", None)
    planned = identity(shop / "refreshing")
    done = refresh(shop, [tmp_path / "r.sqlite"])
    assert done == Refreshed.of_dict({**dry.as_dict(), "is_dry": False})
    assert identity(shop) == planned and identity(shop, "index-before") == before


def test_few_searches_bring_titles_and_clicks_alone(shop, tmp_path):
    record_month(shop, shop / "searches.sqlite", 50)
    model = read_description(shop / "index").model_sha256
    (tmp_path / "t.tsv").write_text("id\ttitle\n" + "".join(f"{i}\t{t}\n" for i, t in PRODUCTS[1:]))
    done = json.loads(
        run("refresh", shop, "--catalogue", tmp_path / "t.tsv", "--json").split("\n}")[0] + "}"
    )
    assert done["compared"] is None and f"fewer than {FEWEST}" in done["why"]
    assert (done["searches"], done["removed"]) == (50, 1) and len(done["lost"]) <= 10
    assert read_description(shop / "index").model_sha256 == model


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-shop"], "no-such-shop: was not made by `sentemb start`"),
        (["shop", "--record", "products.csv"], "products.csv: not a record of searches"),
        (["shop", "--record", "none.sqlite"], "none.sqlite"),
        (["shop", "--catalogue", "clicks.csv"], "no column 'name'"),
        (["shop", "--catalogue", "none.csv"], "none.csv"),
        (["shop", "--catalogue", "-"], "standard input: is not a regular file, and is read twice"),
    ],
)
def test_what_cannot_be_read_changes_nothing(shop, made, tmp_path, monkeypatch, arguments, message):
    for name in ("products.csv", "clicks.csv"):
        shutil.copy(made / name, tmp_path)
    monkeypatch.chdir(tmp_path)
    before = identity(shop)
    assert message in run("refresh", *arguments, code=1)
    assert identity(shop) == before


# -- kills ---------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


def test_a_refresh_that_is_killed_while_it_clears_up_stands_in_nobodys_way(
    made, tmp_path, monkeypatch
):
    """A file system may list the descriptions before what they describe."""
    shop, today = shutil.copytree(made / "shop", tmp_path / "shop"), tmp_path / "today.csv"
    write_products(today, [*PRODUCTS[1:], ("new", "velvet cushion")])

    work, whole = shop / "refreshing", shutil.rmtree

    def remove(path, ignore_errors=False):
        if Path(path) not in (work, work / "index"):
            return whole(path, ignore_errors)
        for description in Path(path).rglob("*.json"):
            if description.name != "inputs.json":
                description.unlink()
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr("sentemb.bridges.refresh.refreshing.shutil.rmtree", remove)
        with pytest.raises(Killed):
            refresh(shop, [], today)
    assert (work / "index").exists()
    refresh(shop, [], today)
    Index.verify(shop / "index")
    assert not work.exists()


@pytest.mark.parametrize("trains", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_refresh_that_is_killed_leaves_the_old_shop_or_the_new_one(made, tmp_path, trains):
    """After each kill the next refresh finishes, and the result is that of one in one piece."""
    record, today = tmp_path / "r.sqlite", tmp_path / "today.csv"
    record_month(made / "shop", record, SEARCHES if trains else 40)
    write_products(today, [*PRODUCTS[1:], ("new", "velvet cushion")])
    whole = shutil.copytree(made / "shop", tmp_path / "whole")
    calls, _ = in_a_child(lambda: refresh(whole, [record], today))
    new, old = identity(whole), identity(made / "shop")
    rng = random.Random(calls)
    for k in range(30 if trains else 3):
        copy = shutil.copytree(made / "shop", tmp_path / f"copy {k}")
        # The last third is where the index is put in its place.
        at = rng.randrange(rng.choice([0, 2 * calls // 3]), calls)
        assert in_a_child(lambda: refresh(copy, [record], today), at) == (None, None)  # noqa: B023
        assert identity(copy) in (old, new)
        Index.verify(copy / "index")
        refresh(copy, [record], today)
        Index.verify(copy / "index-before")
        assert identity(copy) == new and not (copy / "refreshing").exists()


def test_two_refreshes_of_a_shop_take_turns(shop):
    from sentemb.system.locks import locked

    (shop / "refreshing").mkdir()
    with locked(shop / "refreshing"), pytest.raises(SentembError, match="another process"):
        refresh(shop)


# -- comparing -----------------------------------------------------------------------------------


class Firsts:
    """An index that finds one title for each query."""

    def __init__(self, first_of):
        self.ids = ["a", "b", "c"]
        self.first_of = first_of

    def ranked(self, queries, k):
        found = [
            [self.ids.index(self.first_of[q])] if q in self.first_of else [-1] for q in queries
        ]

        class Found:
            titles = np.array(found)

        return Found


def test_clicks_on_lower_places_count_for_the_users_who_do_not_look_there():
    searches = [
        RecordedSearch("q", {"a": 1, "b": 2}, frozenset("a")),
        RecordedSearch("q", {"a": 1, "b": 2}, frozenset("b")),
        RecordedSearch("q", {"a": 1, "c": 2}, frozenset("c")),  # b was not shown
        RecordedSearch("same", {"c": 1}, frozenset()),
        RecordedSearch("nothing", {"a": 1}, frozenset()),
    ]
    done = compare(Firsts({"q": "a", "same": "c"}), Firsts({"q": "b", "same": "c"}), searches)
    assert (done.searches, done.compared, done.differing) == (5, 3, 2)
    assert (done.before, done.after) == (1 / 3, pytest.approx(2**0.7 / 3))
    differences = np.array([-1, 2**0.7, 0])
    assert done.error == pytest.approx(differences.std() / 3**0.5)
    assert not done.is_new_taken  # three are too few
    assert ClicksCompared(500, FEWEST, 9, 0.5, 0.41, 0.1).is_new_taken
    assert not ClicksCompared(500, FEWEST, 9, 0.5, 0.39, 0.1).is_new_taken
    nothing = compare(Firsts({}), Firsts({}), searches)
    assert nothing.compared == 0 and "none of 5 searches" in str(nothing)


# -- pins ----------------------------------------------------------------------------------------


def test_a_pin_is_first_at_once_explained_and_kept(shop, tmp_path):
    refresh(shop)
    query = "red lamp buy 0"
    before = Index.open(shop / "index").search(query, 60, everything=True)
    last = before[-1].id
    assert f"pinned to {query}, now at place 1" in run("pin", shop, query, last)
    for spelling in (query, "RED lamp, buy 0"):
        assert Index.open(shop / "index").search(spelling, 1)[0].id == last
    text = str(explain(Index.open(shop / "index"), query, last))
    assert "pinned to this query, and 0 clicks for this query" in text
    assert "pinned" in run("explain", shop, query)
    refresh(shop)
    assert Index.open(shop / "index").search(query, 1)[0].id == last
    done = pin(shop, "Red Lamp buy 0!", before[-2].id)
    assert (done.position, done.replaced) == (1, [last])
    assert f"removed the pin of {before[-2].id} from" in run("pin", shop, query, "--remove")
    after = Index.open(shop / "index").search(query, 60, everything=True)
    assert [(hit.id, hit.score) for hit in after] == [(hit.id, hit.score) for hit in before]
    assert (shop / "pins.tsv").read_text() == ""


def test_what_cannot_be_pinned(shop):
    before = identity(shop)
    for arguments, code, message in (
        (("red lamp", "P999"), 1, "the id P999 is not in the index"),
        (("red lamp", "--remove"), 1, "nothing is pinned to 'red lamp'"),
        ((" ", "P1"), 1, "the query is empty"),
        (("red lamp",), 2, "give either ID or --remove"),
        (("red lamp", "P1", "--remove"), 2, "give either ID or --remove"),
    ):
        assert message in run("pin", shop, *arguments, code=code)
    assert identity(shop) == before
    assert "was not made by `sentemb start`" in run("pin", shop / "index", "a", "P1", code=1)


def test_a_pin_made_while_a_refresh_is_under_way_is_kept(shop):
    refresh(shop, dry_run=True)
    query, last = "red lamp buy 0", "P59"
    pin(shop, query, last)
    refresh(shop)
    assert Index.open(shop / "index").search(query, 1)[0].id == last


@given(
    st.lists(st.tuples(*[st.sampled_from("abc")] * 2, st.integers(1, 3)), min_size=1, max_size=9),
    st.tuples(*[st.sampled_from("abcd")] * 2, st.sampled_from([1, 2, PIN])),
)
def test_clicks_are_added_and_taken_away(pairs, more):
    """As if the log had had the line, and as if it never had."""

    def entries(clicks):
        products = np.repeat(np.arange(len(clicks.keys)), np.diff(clicks.offsets))
        return sorted(
            (clicks.queries[q], clicks.keys[p], int(n))
            for q, p, n in zip(clicks.clicked, products, clicks.clicks, strict=True)
        )

    query, title, count = more
    before = ClickedQueries.of(ClickLog.from_pairs(pairs))
    after = before.with_clicks(query, title, title, count)
    expected = ClickedQueries.of(ClickLog.from_pairs([*pairs, more]))
    assert entries(after) == entries(expected)
    assert after.of_titles([title])[1].size == expected.of_titles([title])[1].size
    assert entries(after.with_clicks(query, title, title, -count)) == entries(before)


# -- month 1 -------------------------------------------------------------------------------------


def test_a_shop_without_clicks_begins_with_words_and_letters(made, tmp_path):
    shop = tmp_path / "shop"
    said = run("start", made / "products.csv", "-o", shop)
    assert "from 1,000 recorded searches on it trains a model" in said
    assert {path.name for path in shop.iterdir()} == {
        "index",
        "page.html",
        "shop.json",
        "titles.tsv",
    }
    index = Index.open(shop / "index")
    assert index.search("blue chairs 1", 1)[0].id == "P1"  # no title has this word
    assert index.search("gren tabel", 1)[0].title.startswith("green table")
    assert index.fields.types == {"price": "INTEGER"}
    record_month(shop, shop / "searches.sqlite", 40)
    few = refresh(shop)
    assert few.searches == 40 and "fewer than 50 teach nothing" in few.why and few.pairs > 0
    record_month(shop, shop / "searches.sqlite", SEARCHES, seed=1)
    many = refresh(shop)
    assert many.compared is not None and many.queries > few.queries
    assert pin(shop, "anything else", "P7").position == 1


def test_a_shop_of_a_file_of_titles_is_searched_by_its_folder(tmp_path):
    shop = tmp_path / "shop"
    (tmp_path / "t.tsv").write_text("id\ttitle\tprice\nP1\tgreen table\t5\nP2\tred chair\t7\n")
    run("start", tmp_path / "t.tsv", "-o", shop)
    assert (shop / "titles.tsv").read_text() == (tmp_path / "t.tsv").read_text()
    assert [hit.id for hit in Index(shop).search("red chair", 1)] == ["P2"]


def test_a_shop_is_an_index_for_diff_and_export(shop, tmp_path):
    (tmp_path / "q.tsv").write_text("q1\tred lamp\n")
    said = run("diff", shop, shop / "index", "--queries", tmp_path / "q.tsv")
    assert "queries 1   same top title 100%" in said
    run("export", shop, "-o", tmp_path / "page.html", "--to", "page")
    assert (tmp_path / "page.html").stat().st_size > 10_000


@pytest.mark.parametrize("form", ["parquet", "utf-16", "cp1252", "json", "rough"])
def test_a_shop_is_refreshed_with_any_table_that_it_can_begin_with(tmp_path, form):
    """Also one that looks like a file of titles and has rows that such a file must not have."""
    path, options = tmp_path / f"products.{form}", []
    names = ["id", "title", "Größe"]
    rows = [[id, title, str(5 + k)] for k, (id, title) in enumerate(PRODUCTS)]
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
        records = [dict(zip(names, row, strict=True)) for row in rows]
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(records), path)
    elif form == "json":
        path.write_text(json.dumps([dict(zip(names, row, strict=True)) for row in rows], indent=1))
    else:
        if form == "rough":
            rows += [["P1", "another title", "6"], ["none", "", "7"]]
        sign, encoding = (";", "cp1252") if form == "cp1252" else ("\t", "utf-8")
        options = ["--encoding", encoding]
        encoding = "utf-16" if form == "utf-16" else encoding
        path.write_text("".join(f"{sign.join(row)}\n" for row in [names, *rows]), encoding)
    shop = tmp_path / "shop"
    run("start", path, "-o", shop, *options)
    said = run("refresh", shop, "--catalogue", path)
    assert "titles: 0 added, 0 changed, 0 removed" in said
    assert ("left out: 1" in said) == (form == "rough")
    index = Index.open(shop / "index")
    assert len(index) == len(PRODUCTS) and index.fields.types == {"Größe": "INTEGER"}


def test_a_table_of_clicks_without_its_products_is_not_one_of_products(made, tmp_path):
    (tmp_path / "t.csv").write_text("sku,price\nP1,5\n")
    said = run("start", tmp_path / "t.csv", "-o", tmp_path / "s", code=1)
    assert "no column looks like the query" in said
    said = run("start", made / "products.csv", "-o", tmp_path / "s", "--query-column", "x", code=1)
    assert "no column 'x'" in said and not (tmp_path / "s").exists()
