"""`sentemb start`: guessed columns, the commands that it runs, the example."""

import csv
import math
import os
import random
import re
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import sentemb
from sentemb import Columns, Index, SentembError, load_ranker
from sentemb.cli import main
from sentemb.cli.start import _first_query
from sentemb.data.click_log import read_click_log
from sentemb.data.importers.columns import Reading
from sentemb.data.importers.guessing import guess_columns, shared_id
from sentemb.data.judged_set import read_texts
from sentemb.data.simulation import example_shop
from sentemb.system.locks import locked
from sentemb.system.parallel import available_threads

COLOURS = ("red", "blue", "green", "black", "white", "brown", "grey", "pink", "orange", "yellow")


def start(*arguments, code=0):
    done = CliRunner().invoke(main, ["start", *map(str, arguments)])
    assert done.exit_code == code, done.output + done.stderr
    return done.output


@pytest.mark.parametrize(
    ("text", "roles", "fields"),
    [
        ("query\ttitle\n", {"query": "query", "title": "title"}, {}),
        (
            "Search Term;SKU;n_clicks\n",
            {"query": "Search Term", "id": "SKU", "clicks": "n_clicks"},
            {},
        ),
        (
            "Product-ID,Product Name,Image URL,In stock,Unit_Price\n",
            {"id": "Product-ID", "title": "Product Name"},
            {"price": "Unit_Price", "stock": "In stock", "image": "Image URL"},
        ),
        ('{"q": "a", "product_name": "b"}\n', {"query": "q", "title": "product_name"}, {}),
    ],
)
def test_columns_are_guessed_from_their_names(tmp_path, text, roles, fields):
    (tmp_path / "table").write_text(text + ("a\tb\n" if "\t" in text else ""))
    of_products = bool(fields)
    guess = guess_columns(tmp_path / "table", of_products=of_products)
    assert (guess.roles, guess.fields) == (roles, fields)
    assert all(f"{role} = {name}" in str(guess) for role, name in {**roles, **fields}.items())


def test_threads_limit_the_commands_that_start_runs(tmp_path, monkeypatch):
    threads = []
    monkeypatch.setattr(
        "sentemb.data.simulation.example_shop.write_example_shop",
        lambda folder: threads.append(available_threads()) or ["no.csv", "no.csv"],
    )
    start("--example", "-o", tmp_path / "shop", "--threads", 3, code=1)
    assert threads == [3]


@pytest.mark.parametrize("step", ["train", "fit"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_start_that_is_stopped_leaves_nothing_and_can_begin_again(
    tmp_path, monkeypatch, step, number
):
    """It has no --resume, so no command of it may ask for that."""
    monkeypatch.setattr(example_shop, "_PAIRS", 700)
    tables = example_shop.write_example_shop(tmp_path)
    name = "sentemb.cli.train._show" if step == "train" else "sentemb.cli.ranker.fitted"
    monkeypatch.setattr(name, lambda *_: os.kill(os.getpid(), number))
    shop = tmp_path / "new/shop"
    done = CliRunner().invoke(main, ["start", *map(str, tables), "-o", str(shop)])
    assert done.exit_code == 128 + number
    assert not shop.parent.exists() and "--resume" not in done.output + done.stderr


def test_two_starts_of_one_shop_take_turns(tmp_path):
    (tmp_path / "p.csv").write_text("sku,name\n1,red lamp\n")
    shop = tmp_path / "shop"
    shop.mkdir()
    with locked(shop):
        said = start(tmp_path / "p.csv", "-o", shop, code=1)
        assert "shop: another process is writing there; wait for it" in said
        with pytest.raises(SentembError, match="another process is writing there"):
            sentemb.start(tmp_path / "p.csv", output=shop)
    assert list(shop.iterdir()) == []
    start(tmp_path / "p.csv", "-o", shop)


def test_a_column_that_is_missing_is_named(tmp_path):
    (tmp_path / "clicks.csv").write_text("alpha,beta\nlampe,7\n")
    with pytest.raises(SentembError, match="no column looks like the query; there are alpha"):
        guess_columns(tmp_path / "clicks.csv").need("query")
    assert "looks like the query" in start(tmp_path / "clicks.csv", "-o", tmp_path / "s", code=1)
    assert "give either" in start("-o", tmp_path / "s", code=2)
    assert not (tmp_path / "s").exists()
    assert "no-such" in start(tmp_path / "no-such.csv", "-o", tmp_path / "t", code=1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_tables_are_regular_files(tmp_path):
    clicks = tmp_path / "clicks.csv"
    clicks.write_text("query,id\n")
    os.mkfifo(tmp_path / "pipe")
    for tables in (["-"], [tmp_path / "pipe"], [clicks, "-"]):
        said = start(*tables, "-o", tmp_path / "s", code=1)
        assert "is not a regular file, and is read twice; save the table as one" in said
    assert not (tmp_path / "s").exists()


def test_the_example_becomes_an_index_and_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(example_shop, "_PAIRS", 500)
    shop = tmp_path / "shop"
    said = start("--example", "-o", shop)
    commands = [line.split()[2] for line in said.splitlines() if line.startswith("$ sentemb ")]
    assert commands == ["import", "split", "train", "evaluate", "index", "calibrate", "export"]
    assert "query = search_term, id = sku, clicks = clicks" in said
    assert f"open {shop / 'page.html'} in a browser" in said
    assert "<title>shop</title>" in (shop / "page.html").read_text("utf-8")
    assert "\\n" not in said
    index = Index.open(shop / "index")
    clicked, *_ = (shop / "log/test.tsv").read_text().splitlines()
    clicks = [int(line.rsplit(",", 1)[1]) for line in (shop / "clicks.csv").open().readlines()[1:]]
    assert 0.03 < np.mean(np.array(clicks) >= 5) < 0.3  # queries to suggest
    # What was held out is served too, once it has been measured.
    served, log = index.ranker.clicks, read_click_log(shop / "pairs.tsv")
    assert sorted(served.queries) == sorted(log.queries)
    assert served.clicks.sum() == log.clicks.sum()
    assert index.search(clicked.split("\t")[0], everything=True, where="price > 0")
    assert "is not empty" in start("--example", "-o", shop, code=1)


THINGS = ("hat", "bag", "shoe", "coat", "belt", "scarf", "lamp", "chair", "table", "mug")


def write_shop(folder, n_queries=100):
    """Clicks and products without a usual name, which share one column."""
    names = [f"{colour} {thing}" for colour in COLOURS for thing in THINGS][:n_queries]
    clicks = [f"{name},A-{k},note {k % 3},2\n" for k, name in enumerate(names)]
    (folder / "clicks.csv").write_text("words,ref,remark,n\n" + "".join(clicks))
    products = [
        f"x{k},A-{k},{name.title()},{k}.50,{k % 2 == 0},00{k},{THINGS[k % 10]}\n"
        for k, name in enumerate(names)
    ]
    head = "code,ref,heading,cost,is new,gtin,section\n"
    (folder / "products.csv").write_text(head + "".join(products))
    return folder / "clicks.csv", folder / "products.csv"


NAMED = ("--query-column", "words", "--title-column", "heading", "--clicks-column", "n")


@pytest.mark.slow
def test_columns_can_be_named_and_every_field_is_kept(tmp_path):
    tables, shop = write_shop(tmp_path), tmp_path / "shop"
    said = start(*tables, "-o", shop, *NAMED, "--search-fields", "Section:2")
    assert f"{tables[0]}: query = words, id = ref, clicks = n" in said
    assert Index.open(shop).search_fields == {"section": 2.0}
    types = Index.open(shop / "index").fields.types
    assert types == {
        "cost": "REAL", "code": "TEXT", "is new": "BOOLEAN", "gtin": "TEXT", "section": "TEXT"
    } | ({"price": "REAL"} if "price" in types else {})  # fmt: skip
    assert "next: " not in said
    (query,) = re.findall(rf"sentemb search {shop} '?([^'\n]+)", said)
    for arguments in (["search", shop, query], ["info", shop], ["explain", shop, query]):
        done = CliRunner().invoke(main, [*map(str, arguments)])
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("kind", ["files", "tables"])
def test_the_function_makes_what_the_command_makes(tmp_path, kind):
    clicks, products = write_shop(tmp_path)
    start(clicks, products, "-o", tmp_path / "command", *NAMED, "--threads", 1)
    columns = Columns(query="words", title="heading", clicks="n")
    tables = [clicks, products]
    if kind == "tables":
        pandas = pytest.importorskip("pandas")
        tables = [pandas.read_csv(table, dtype=str) for table in tables]
    steps = []
    index = sentemb.start(
        *tables, tmp_path / "function", columns=columns, threads=1, on_step=steps.append
    )
    made = [tmp_path / name for name in ("command", "function")]
    for name in ("pairs.tsv", "titles.tsv", "log/dev.tsv", "shop.json"):
        assert (made[0] / name).read_bytes() == (made[1] / name).read_bytes(), name
    assert {path.name for path in made[0].iterdir()} == {path.name for path in made[1].iterdir()}
    other = Index.open(made[0] / "index")
    queries = read_click_log(made[0] / "pairs.tsv").queries[:20]
    assert index.search(queries) == other.search(queries)
    assert steps[0] == "importing the clicks" and steps[-1] == "writing the page"


def test_the_function_names_what_is_wrong_and_leaves_nothing(tmp_path):
    _, products = write_shop(tmp_path)
    shop = tmp_path / "shop"
    with pytest.raises(SentembError, match="name the folder to make, as in output='shop'"):
        sentemb.start(products)
    with pytest.raises(SentembError, match="has 2 queries with clicks, too few to learn from"):
        sentemb.start({"query": ["a", "b"], "title": ["A", "B"]}, output=shop)
    with pytest.raises(SentembError, match="search_fields: there is no column colour"):
        sentemb.start(
            products, output=shop, columns=Columns(title="heading"), search_fields={"colour": 1}
        )
    assert not shop.exists()
    index = sentemb.start(
        {"sku": ["1", "2"], "name": ["red lamp", "blue mug"], "tags": [["x", "y"], []]}, output=shop
    )
    assert index.search("lamp")[0].id == "1" and index["1"]["fields"] == {"tags": "x, y"}
    with pytest.raises(SentembError, match="is not empty"):
        sentemb.start(products, output=shop)


def test_a_searched_field_that_is_missing_is_named_before_training(tmp_path):
    tables, shop = write_shop(tmp_path), tmp_path / "shop"
    said = start(*tables, "-o", shop, *NAMED, "--search-fields", "sections", code=1)
    assert "search_fields: there is no column sections; did you mean section?" in said
    assert "$ sentemb" not in said and not shop.exists()


def test_columns_are_guessed_by_their_cells(tmp_path):
    clicks, products = write_shop(tmp_path)
    log = guess_columns(clicks, given={"query": "words", "clicks": "n"})
    catalogue = guess_columns(products, given={"title": "heading"}, of_products=True)
    shared = shared_id(log, catalogue, products, Reading())
    assert (shared.clicks, shared.products) == (("ref",), ("ref",))
    # Another name, zeros that a spreadsheet has dropped, and a column of small numbers.
    clicks.write_text("q,number,position\n" + "".join(f"a {k},{k},{k % 5}\n" for k in range(50)))
    rows = "".join(f"{k:05},Product {k},{k % 7}\n" for k in range(60))
    products.write_text(f"article,name,stock\n{rows}")
    log, catalogue = guess_columns(clicks), guess_columns(products, of_products=True)
    shared = shared_id(log, catalogue, products, Reading())
    assert (shared.clicks, shared.products) == (("number",), ("article",))


def test_the_only_texts_that_are_left_are_query_and_title(tmp_path, monkeypatch):
    clicks, products = tmp_path / "tags.csv", tmp_path / "packages.csv"
    clicks.write_text("tag,package\n" + "".join(f"use::{k},pkg{k}\n" for k in range(60)))
    rows = "".join(f"pkg{k},Tool number {k},admin,https://x.example/{k}\n" for k in range(70))
    products.write_text("package,short words,section,home\n" + rows)
    seen = []
    monkeypatch.setattr(
        "sentemb.cli.start._make", lambda clicks, folder, columns, *rest: seen.append(columns)
    )
    said = start(clicks, products, "-o", tmp_path / "shop")
    assert f"{clicks}: query = tag, id = package" in said
    assert f"{products}: id = package, title = short words, section = section, home = home" in said
    (columns,) = seen
    assert columns[columns.index("--fields") + 1] == "section,home"
    clicks.write_text(
        "words,other words,package\n" + "".join(f"{k}a,{k}b,pkg{k}\n" for k in range(9))
    )
    said = start(clicks, products, "-o", tmp_path / "shop", "--force", code=1)
    assert "no column looks like the query; there are words, other words, package" in said
    clicks.write_text("query,thing\n" + "".join(f"{k}a,{k}b\n" for k in range(9)))
    said = start(clicks, products, "-o", tmp_path / "shop", "--force", code=1)
    assert f"{clicks}: no column has ids of {products}; name both columns with --id-column" in said


def table_of(header, row):
    return "".join(f"{line}\n" for line in [header, *map(row, range(1, 60))])


@pytest.mark.parametrize(
    ("clicks", "products", "named"),
    [
        (table_of("q 0,p1", "q {0},p{0}".format), None, "clicks: the first line has a product"),
        (None, table_of("p1,Lamp 0", "p{0},Lamp {0}".format), "products: the first line has a pr"),
        (
            table_of("sku,name,price", "p{0},Lamp {0},{0}.50".format),
            table_of("query,sku", "q {0},p{0}".format),
            "products: has the queries (query), and clicks has none; give the clicks first",
        ),
        ('[["query", "sku"], ["a", "p1"]]', None, "clicks:1: not an object of JSON"),
        ('{"query": "a", "sku": "p1"}{"query": "b", "sku": "p2"}', None, "clicks:1: not JSON"),
        (None, b"sku,name\np1,K\xe4se\np2,\xfc\n", "is not valid utf-8; name the encoding"),
    ],
)
def test_tables_that_are_no_tables_are_named(tmp_path, monkeypatch, clicks, products, named):
    monkeypatch.chdir(tmp_path)
    for name, text, usual in (
        ("clicks", clicks, table_of("query,sku", "q {0},p{0}".format)),
        ("products", products, table_of("sku,name", "p{0},Lamp {0}".format)),
    ):
        text = usual if text is None else text
        Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    said = start("clicks", "products", "-o", "shop", code=1)
    assert named in said and not Path("shop").exists()


def test_columns_of_one_name_are_not_dropped_without_a_word(tmp_path):
    (tmp_path / "p.csv").write_text("sku,name,price,price,size\n" + "1,Lamp,2,3,S\n" * 9)
    guess = guess_columns(tmp_path / "p.csv", of_products=True)
    assert guess.fields == {"size": "size"}
    assert str(guess).endswith("; left out, since several are named so: price")


@pytest.mark.parametrize(("ours", "theirs"), [("lang", "language"), ("market", "Store view")])
def test_columns_of_languages_belong_to_the_id(tmp_path, ours, theirs):
    clicks, products = tmp_path / "c.csv", tmp_path / "p.csv"
    clicks.write_text(table_of(f"query,product,{ours}", lambda k: f"q{k},{k % 9},d{k % 2}"))
    rows = [f"{k},T{k}{lang},{lang}\n" for k in range(9) for lang in ("d0", "d1")]
    products.write_text(f"id,title,{theirs}\n" + "".join(rows))
    log, catalogue = guess_columns(clicks), guess_columns(products, of_products=True)
    shared = shared_id(log, catalogue, products, Reading())
    assert (shared.clicks, shared.products) == (("product", ours), ("id", theirs))


def test_too_few_queries_are_named_and_nothing_is_left(tmp_path):
    tables, shop = write_shop(tmp_path, n_queries=7), tmp_path / "shop"
    said = start(*tables, "-o", shop, *NAMED, code=1)
    assert "clicks.csv: has 7 queries with clicks, too few to learn from and to hold some" in said
    assert "give at least 50" in said and not shop.exists()
    shop.mkdir()
    (shop / "mine.txt").write_text("mine")
    start(*tables, "-o", shop, *NAMED, "--force", code=1)
    assert [path.name for path in shop.iterdir()] == ["mine.txt"]


def test_start_stops_where_clicks_would_be_lost(tmp_path):
    clicks, products = write_shop(tmp_path)
    with open(clicks, "a") as file:
        file.writelines(f"lost {k},gone-{k},,9\n" for k in range(40))
    said = start(clicks, products, "-o", tmp_path / "shop", *NAMED, code=1)
    assert "40 of 140 rows and 360 of 560 clicks would be dropped, more than 5%" in said
    assert not (tmp_path / "shop").exists()


def test_a_log_that_is_too_small_to_calibrate_becomes_a_page(tmp_path):
    queries = [f"{colour} {thing}" for colour in COLOURS for thing in THINGS]
    titles = [f"{query} for men" for query in queries]
    rows = [f"{query},{title}\n" for query, title in zip(queries, titles, strict=True)]
    (tmp_path / "clicks.csv").write_text("query,title\n" + "".join(rows))
    said = start(tmp_path / "clicks.csv", "-o", tmp_path / "shop")
    assert "is not calibrated: a title was found for" in said
    assert (tmp_path / "shop/page.html").exists() and "sentemb search" in said


def test_the_suggested_query_has_most_clicks_of_those_with_known_words(tmp_path):
    learned, held_out = tmp_path / "pairs.tsv", tmp_path / "test.tsv"
    learned.write_text("red shoes\tred shoes\t9\nblue hat\thats\n")
    held_out.write_text("red hat\ta\t2\nblue shoes\ta\t2\nblue shoes\tb\ngreen hat\tb\t8\n")
    assert _first_query(learned, held_out) == "blue shoes"
    held_out.write_text("green hat\ta\t2\ngreen tie\tb\t3\n")
    assert _first_query(learned, held_out) == "green tie"


def test_the_example_replaces_no_table_of_a_shop(tmp_path, monkeypatch):
    monkeypatch.setattr(example_shop, "_PAIRS", 40)
    example_shop.write_example_shop(tmp_path)
    (tmp_path / "clicks.csv").unlink()
    (tmp_path / "products.csv").write_text("sku,name\n1,mine\n")
    assert "products.csv: is not of the example" in start(
        "--example", "-o", tmp_path, "--force", code=1
    )
    assert [path.name for path in tmp_path.iterdir()] == ["products.csv"]
    (tmp_path / "products.csv").unlink()
    clicks, _ = example_shop.write_example_shop(tmp_path)
    assert example_shop.write_example_shop(tmp_path)[0] == clicks


@pytest.mark.slow
def test_a_log_with_titles_needs_no_table_of_products(tmp_path, monkeypatch):
    monkeypatch.setattr(example_shop, "_PAIRS", 700)
    clicks, products = example_shop.write_example_shop(tmp_path)
    rows = [line.split(",", 2) for line in products.read_text().splitlines()[1:]]
    title_of = {id: title for id, title, *_ in rows}
    lines = [line.rsplit(",", 2) for line in clicks.read_text().splitlines()[1:]]
    table = tmp_path / "searches.tsv"
    table.write_text(
        "keywords\titem name\n"
        + "".join(f"{query}\t{title_of[id]}\n" for query, id, _ in lines if '"' not in query)
    )
    said = start(table, "-o", tmp_path / "shop")
    assert "query = keywords, title = item name" in said
    assert Index.open(tmp_path / "shop/index").search("hotel", everything=True)


SHARED = Path(__file__).parents[2] / "shared/data/onet_27_0_text/Tools Used.txt"


def write_messy_shop(folder, n_clicks):
    """Write clicks.csv and products.csv of tools, with the faults that tables of shops have."""
    rng = random.Random(0)
    with open(SHARED, encoding="utf-8") as file:
        tools = list(csv.DictReader(file, delimiter="\t"))
    titles = {tool["Commodity Code"]: tool["Commodity Title"] for tool in tools}
    with open(folder / "products.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(["Product-ID", "Product Name", "Unit_Price", "In stock"])
        for i, (id, title) in enumerate(titles.items()):
            name = "" if i % 200 == 7 else f"Large &quot;{title}&quot;" if i % 50 == 3 else title
            price = f"{rng.uniform(1, 500):.2f}".replace(".", ",")
            table.writerow([id, name, price, rng.randrange(20)])
    forms = (str.lower, str.upper, '"{}"'.format, "{}?".format, "  {}".format)
    with open(folder / "clicks.csv", "w", newline="", encoding="utf-8") as file:
        table = csv.writer(file, delimiter=";")
        table.writerow(["Search Term", "SKU", "n_clicks"])
        for tool in rng.choices(tools, k=n_clicks):
            query = rng.choice(forms)(tool["Example"])
            table.writerow([query, tool["Commodity Code"], rng.randrange(1, 6)])


@pytest.mark.slow
@pytest.mark.skipif(not SHARED.is_file(), reason=f"there is no {SHARED}")
def test_every_figure_of_a_messy_shop_is_right(tmp_path):
    """What `start` prints, counted and ranked again from the files that it leaves."""
    write_messy_shop(tmp_path, 20_000)
    shop = tmp_path / "shop"
    tables = [str(tmp_path / "clicks.csv"), str(tmp_path / "products.csv")]
    command = [sys.executable, "-m", "sentemb", "start", *tables, "-o", str(shop)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    rows = {side: read_rows(shop / f"log/{side}.tsv") for side in ("pairs", "dev", "test")}
    clicks = {side: sum(int((*row, 1)[2]) for row in rows[side]) for side in rows}
    assert f"{clicks['pairs']:,} clicks to train" in printed
    assert f"{clicks['dev']:,} dev" in printed and f"{clicks['test']:,} test" in printed
    # Single clicks are held out as well as queries, so test has queries of both kinds.
    spelt = {side: {plain(query) for query, *_ in rows[side]} for side in rows}
    learned = spelt["test"] & spelt["pairs"]
    assert learned and spelt["test"] - learned

    clicked = defaultdict(set)
    for query, title, *_ in rows["test"]:
        clicked[query].add(title)
    # That of the shop serves the clicks of test too.
    ids, names = read_texts(shop / "log/titles.tsv")
    index = Index.build(load_ranker(shop / "model"), names, ids)
    ranks = []
    for query, titles in clicked.items():
        hits = index.search(query, k=10, everything=True)
        right = (rank for rank, hit in enumerate(hits, 1) if hit.title in titles)
        ranks.append(next(right, math.inf))
    lines = printed.splitlines()
    header = next(i for i, line in enumerate(lines) if line.split()[:2] == ["hit@1", "MRR@10"])
    hit, mrr = map(float, lines[header + 1].split()[-5:-3])
    assert hit == pytest.approx(np.mean([rank == 1 for rank in ranks]), abs=0.002)
    assert mrr == pytest.approx(np.mean([1 / rank for rank in ranks]), abs=0.002)
    assert not any("&quot;" in title for titles in clicked.values() for title in titles)


def read_rows(path):
    return [line.split("\t") for line in path.read_text("utf-8").splitlines()]


def plain(query):
    """Words and digits of a query in lower case: what no model can tell apart is equal."""
    return " ".join(re.findall(r"\w+", query.casefold()))
