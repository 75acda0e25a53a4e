"""`sentemb start`: guessed columns, the commands that it runs, the example."""

import pytest
from click.testing import CliRunner

from sentemb import Index, SentembError
from sentemb.cli import main
from sentemb.data.importers.guessing import guess_columns
from sentemb.data.simulation import example_shop


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
    guess = guess_columns(tmp_path / "table")
    assert (guess.roles, guess.fields) == (roles, fields)
    assert all(f"{role} = {name}" in str(guess) for role, name in {**roles, **fields}.items())


def test_a_column_that_is_missing_is_named(tmp_path):
    (tmp_path / "clicks.csv").write_text("suche,artikel\nlampe,7\n")
    with pytest.raises(SentembError, match="no column looks like the query; there are suche"):
        guess_columns(tmp_path / "clicks.csv").need("query")
    assert "looks like the query" in start(tmp_path / "clicks.csv", "-o", tmp_path / "s", code=1)
    assert "give either" in start("-o", tmp_path / "s", code=2)
    assert not (tmp_path / "s").exists()
    assert "no-such" in start(tmp_path / "no-such.csv", "-o", tmp_path / "t", code=1)


def test_the_example_becomes_an_index_and_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(example_shop, "_PAIRS", 900)
    shop = tmp_path / "shop"
    said = start("--example", "-o", shop)
    commands = [line.split()[2] for line in said.splitlines() if line.startswith("$ sentemb ")]
    assert commands == ["import", "split", "train", "evaluate", "index", "calibrate", "export"]
    assert "query = search_term, id = sku, clicks = clicks" in said
    assert f"open {shop / 'page.html'} in a browser" in said
    assert "\\n" not in said
    index = Index.open(shop / "index")
    clicked, *_ = (shop / "log/test.tsv").read_text().splitlines()
    assert index.search(clicked.split("\t")[0], everything=True, where="price > 0")
    assert "is not empty" in start("--example", "-o", shop, code=1)


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
