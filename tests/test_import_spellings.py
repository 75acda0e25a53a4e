"""A table in any of its spellings gives the same log; what an import drops, it says."""

import csv
import io
import json
import shlex

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

from sentemb import ClickLog, SentembError
from sentemb.bridges.refresh.shop_tables import guess_tables
from sentemb.cli import main
from sentemb.data.column_names import CLICKS, ID, QUERY, ROLES, TITLE
from sentemb.data.importers.click_counts import ClickCells
from sentemb.data.importers.click_rows import Columns
from sentemb.data.importers.click_table import import_clicks
from sentemb.data.importers.columns import Reading
from sentemb.data.importers.damaged_ids import DamagedIds
from sentemb.data.importers.guessing import guess_columns

WORDS = ("lamp", "süßer Käse", 'plate, 15"', "l'été", "北京 酒店", "a;b", "x | y", "50% off")
NULLS = (
    "NULL", r"\N", "nan", "N/A", "(not set)", "None", "null", "-", "", "<NA>", "[]", "{}", "n.a.",
    "(other)", "(other search terms)", "#N/A", "#NV", "#WERT!", "#¿NOMBRE?", "-----", "…", "*",
    "''", "(vacío)", "\u200b", "\ufeff", "(data not available)", "(nicht festgelegt)", "[no query]",
)  # fmt: skip
TOTALS = (
    "", "Total", "Grand total", "Totals:", "Summe", "Gesamtergebnis", "Total général", "Suma",
    "Totale complessivo", "Eindtotaal", "Total geral", "Razem", "Итого", "合計", "总计", "합계",
)  # fmt: skip
PREAMBLES = (
    "",
    "# ---\n# Site search\n# Property: Example, Inc.; all\n#\n",
    'Search terms report\n"January 1, 2026 - January 31, 2026"\n\n',
    "\n\n",
)
SEPARATORS = ("", ",", ".", " ", "\u00a0", "\u202f", "\u2009", "'", "\u2019")


def spelt(name, style):
    """A name of a column, as somebody may write it."""
    words = name.replace("_", " ")
    return (name, words.title(), words.upper(), words.title().replace(" ", ""), f" {words} ")[style]


def counted(number, separator, decimals):
    """A number with separators of thousands, and with zeros after the sign of decimals."""
    text = f"{number:,}".replace(",", separator)
    return text + ("," if separator == "." else ".") + "0" * decimals if decimals else text


@st.composite
def tables(draw):
    """Rows of query, title and clicks, and a file that holds them, with the name of its column."""
    text = st.sampled_from(WORDS)
    rows = draw(st.lists(st.tuples(text, text, st.integers(1, 3_000_000)), min_size=1, max_size=8))
    rows.append(("lamp", "Lamp", draw(st.integers(1, 999))))  # the column says what its signs are
    separator, decimals = draw(st.sampled_from(SEPARATORS)), draw(st.sampled_from([0, 0, 2]))
    cells = [(q, t, counted(n, separator, decimals)) for q, t, n in rows]
    for _ in range(draw(st.integers(0, 3))):
        where, null = draw(st.integers(0, 2)), draw(st.sampled_from(NULLS))
        row = ["other query", "Other title", "7"]
        row[where] = null
        if where < 2 or null:  # a row without a text is one of totals if it has no other either
            cells.insert(draw(st.integers(0, len(cells))), tuple(row))
    if draw(st.booleans()):
        whole = counted(9_999_999, separator, decimals)
        word = draw(st.sampled_from(TOTALS))
        total = (word, draw(st.sampled_from(["", word])), whole)
        cells.insert(draw(st.sampled_from([0, len(cells)])), total)
    names = [
        spelt(draw(st.sampled_from(kinds)), draw(st.integers(0, 4)))
        for kinds in (
            ("query", "search_term", "search_query", "suchbegriff", "keyword", "Запрос", "검색어"),
            (
                "title",
                "product_name",
                "item_name",
                "name",
                "clicked_product",
                "Title (en)",
                "商品名",
            ),
            ("clicks", "num_clicks", "number_of_clicks", "event_count", "klicks", "Clicks (30d)"),
        )
    ]
    return rows, [names, *cells], draw(st.permutations(range(3)))


@settings(deadline=None, max_examples=60)
@given(
    table=tables(),
    preamble=st.sampled_from(PREAMBLES),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"]),
    blank=st.sampled_from(["", "header", "rows", "both"]),
    after=st.sampled_from(["", "(9 rows)\n", "\n9 rows affected.\n"]),
)
def test_delimited_text_in_any_spelling_gives_the_same_log(
    tmp_path_factory, table, preamble, delimiter, quoting, end, encoding, blank, after
):
    rows, cells, order = table
    text = io.StringIO(newline="")
    text.write(preamble.replace("\n", end))
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=end)
    for number, row in enumerate(cells):
        ends = blank == "both" or blank == ("rows" if number else "header")
        writer.writerow([*(row[k] for k in order), *([""] if ends else [])])
    text.write(after.replace("\n", end))
    path = tmp_path_factory.mktemp("csv") / "c.csv"
    path.write_bytes(text.getvalue().encode(encoding))
    check(path, rows, cells[0][2])


@settings(deadline=None, max_examples=40)
@given(
    table=tables(),
    form=st.sampled_from(["lines", "list", "pretty", "clicked", "commas"]),
    holes=st.booleans(),
    nested=st.booleans(),
)
def test_json_in_any_spelling_gives_the_same_log(tmp_path_factory, table, form, holes, nested):
    rows, (names, *cells), order = table
    records = [{names[k].strip(): row[k] for k in order} for row in cells]
    if holes:  # the first lacks what others have
        records.insert(0, {names[0].strip(): "other query"})
    if form == "clicked":  # several titles of a search in one row, with a count for each
        records = [
            {**record, names[1].strip(): [row[1]], names[2].strip(): [row[2]]}
            for record, row in zip(records, [("", "", "")] * holes + cells, strict=True)
        ]
    if nested:
        records = [{"of": {"it": record} if record else None} for record in [{}, *records]]
        names = [f"of.it.{name.strip()}" for name in names]
    path = tmp_path_factory.mktemp("json") / "c.json"
    end = ",\n" if form == "commas" else "\n"
    lines = "".join(f"{json.dumps(record)}{end}" for record in records)
    whole = json.dumps(records, indent=1 if form == "pretty" else None)
    path.write_text(whole if form in ("list", "pretty") else lines)
    check(path, rows, names[2])


def check(path, rows, column):
    """The log of the file has the rows; no click is lost but those without a text."""
    out = path.with_name("log.tsv")
    done = import_clicks([path], out, Columns(clicks=column.strip()), force=True)
    expected = [f"{q}\t{t}\t{n}" if n > 1 else f"{q}\t{t}" for q, t, n in rows]
    assert out.read_text("utf-8").splitlines() == expected, done
    assert done.clicks_kept == sum(n for *_, n in rows)
    assert done.clicks == done.clicks_kept + done.lost.total()
    assert set(done.lost) <= {"without a query", "without a title"}


# -- what is lost -----------------------------------------------------------------------------


def run(*arguments):
    done = CliRunner().invoke(main, ["import", *map(str, arguments)])
    return done.exit_code, done.stdout + done.stderr


@pytest.mark.parametrize(("n_bad", "stops"), [(1, False), (2, True)])
def test_an_import_that_would_drop_too_much_stops(tmp_path, n_bad, stops):
    path, out = tmp_path / "c.csv", tmp_path / "log.tsv"
    good = "".join(f"query {k},Title {k},2\n" for k in range(20))
    path.write_text("query,title,n\n" + good + "a,b,many\n" * n_bad)
    options = ("-o", out, "--clicks-column", "n", "--skip-bad-lines")
    code, said = run(path, *options)
    assert code == stops and out.exists() != stops
    if stops:
        assert "2 of 22 rows would be dropped, more than 5%: 2 bad (the first: " in said
        assert "--max-lost 1" in said and said.count("\n") == 1
    code, said = run(path, *options, "--force", "--max-lost", "1")
    assert code == 0
    assert f"clicks: 40 read, 40 kept; bad rows, whose clicks are not known: {n_bad}\n" in said


def test_few_rows_with_many_clicks_are_too_much(tmp_path):
    path, products, out = tmp_path / "c.csv", tmp_path / "p.csv", tmp_path / "log.tsv"
    path.write_text("query,id,n\n" + "a,1,1\n" * 40 + 'b,9,"1,000"\n')
    products.write_text("id,title\n1,One\n")
    options = ("-o", out, "--id-column", "id", "--catalogue", products, "--clicks-column", "n")
    code, said = run(path, *options)
    assert code == 1 and not out.exists()
    assert "1 of 41 rows and 1,000 of 1,040 clicks would be dropped" in said
    assert "with an id that has no title (the first: '9')" in said
    code, said = run(path, *options, "--max-lost", "1")
    assert "clicks: 1,040 read, 40 kept; lost: 1,000 with an id that has no title\n" in said
    assert run(path, *options, "--max-lost", "2")[0] == 1


@pytest.mark.parametrize(("cell", "stops"), [("", True), (" ", True), ("NULL", False)])
@pytest.mark.parametrize("place", [0, 1])
def test_many_rows_with_an_empty_query_or_title_are_too_much(tmp_path, cell, stops, place):
    path, out = tmp_path / "c.csv", tmp_path / "log.tsv"
    row = ["lamp", "Lamp", "2"]
    row[place] = cell
    path.write_text("query,title,n\n" + "tv,TV,5\n" * 50 + (",".join(row) + "\n") * 21)
    code, said = run(path, "-o", out, "--clicks-column", "n")
    assert code == stops and out.exists() != stops
    if stops:
        assert "21 of 71 rows and 42 of 292 clicks would be dropped" in said
        assert ": 21 with an empty query, title or id; correct them, or" in said
    code, said = run(path, "-o", out, "--clicks-column", "n", "--max-lost", 1, "--force")
    assert code == 0 and "clicks: 292 read, 250 kept; lost: 42 without a " in said


def test_events_that_are_no_clicks_are_none(tmp_path):
    events = [
        "click",
        "view",
        "Product Clicked",
        "add_to_cart",
        "item_click",
        "select_item",
        "search",
    ]
    rows = "".join(f"{event},q{k},T{k}\n" for k, event in enumerate(events))
    (tmp_path / "c.csv").write_text("event_name,query,title\n" + rows)
    _, said = run(tmp_path / "c.csv", "-o", tmp_path / "l.tsv")
    assert "for the clicks in event_name give --clicks-column event_name" in said
    _, said = run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "event_name")
    assert said.startswith("q0\tT0\nq2\tT2\nq4\tT4\nq5\tT5\n") and "3 without clicks" in said


def test_numbers_count_where_the_kind_of_event_is_a_click(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text(
        "event_name,search_term,item_name,event_count\nselect_item,tv,TV,3\n"
        "view_item,tv,TV,90\nselect_item,tv,Lamp,0\nadd_to_cart,tv,TV,4\n"
    )
    _, said = run(path, "-o", tmp_path / "l.tsv")
    options = ["--clicks-column", "event_count", "--clicks-column", "event_name"]
    assert f"for the clicks in event_count, event_name give {' '.join(options)}\n" in said
    code, said = run(path, "-o", "-", *options)
    assert code == 0 and said.startswith("tv\tTV\t3\n") and "3 without clicks" in said
    guess = guess_tables(path, None, Reading(), Columns())
    assert guess.clicks.counts == ["event_count", "event_name"]
    assert "clicks = event_count, event = event_name" in guess.guesses[0]
    given = guess_tables(path, None, Reading(), Columns(clicks="event_count"))
    assert given.clicks.counts == ["event_count"]


@pytest.mark.parametrize(
    ("address", "query"),
    [
        ("https://shop.example/search?page=2&q=red+shoes#top", "red shoes"),
        ("/s?k=caf%C3%A9%20cr%C3%A8me&ref=x", "café crème"),
        ("http://x.example/?s=tv&utm_term=lamp", "tv"),
        ("/search?q=&search=lamp", "lamp"),
        ("/search?page=2", "/search?page=2"),
        ("https://shop.example/p/1", "https://shop.example/p/1"),
        ("what is this?q=1", "what is this?q=1"),
        ("and/or?q=1", "and/or?q=1"),
    ],
)
def test_an_address_of_results_is_what_was_searched(tmp_path, address, query):
    (tmp_path / "c.csv").write_text(f"page,title\n{address},TV\n")
    code, said = run(tmp_path / "c.csv", "-o", "-", "--query-column", "page", "--title-column", 2)
    assert code == 0 and said.startswith(f"{query}\tTV\n")


def test_an_address_of_results_without_words_is_no_query(tmp_path):
    (tmp_path / "c.csv").write_text("query,title\n/search?q=,TV\n/search?page=2&q=+,TV\ntv,TV\n")
    code, said = run(tmp_path / "c.csv", "-o", "-")
    assert code == 0 and said.startswith("tv\tTV\n") and "2 without a query" in said


def test_what_was_shown_alone_says_no_clicks(tmp_path):
    products, path = tmp_path / "p.csv", tmp_path / "c.csv"
    products.write_text("sku,name\n" + "".join(f"A{k},T{k}\n" for k in range(9)))
    rows = "".join(f"q{k},A{k % 9}|A{(k + 1) % 9}|A{(k + 2) % 9},7\n" for k in range(90))
    path.write_text("query,results,user\n" + rows)
    with pytest.raises(SentembError, match="results is named for what was shown, clicked or not"):
        guess_tables(path, products, Reading(), Columns())
    given = guess_tables(path, products, Reading(), Columns(id="results", catalogue_id="sku"))
    assert given.clicks.ids == ["results"]


@pytest.mark.parametrize("shown", ["shown_ids", "results", "sku"])
def test_what_was_clicked_is_read_and_not_what_was_shown(tmp_path, shown):
    """An empty cell is a search without a click. It is not counted as lost."""
    products, path, out = tmp_path / "p.csv", tmp_path / "c.csv", tmp_path / "l.tsv"
    products.write_text("sku,name\n" + "".join(f"A{k},T{k}\n" for k in range(9)))
    rows = [f"q{k},A{k % 9}|A{(k + 1) % 9},{f'A{k % 9}' if k % 3 else ''}" for k in range(90)]
    path.write_text(f"query,{shown},clicked_ids\n" + "\n".join(rows) + "\n")
    if shown != "sku":  # the same name in both tables says more
        guess = guess_tables(path, products, Reading(), Columns())
        assert guess.clicks.ids == ["clicked_ids"] and guess.clicks.catalogue_ids == ["sku"]
    code, said = run(path, "-o", out, "--catalogue", products, "--id-column", "clicked_ids",
                     "--catalogue-id-column", "sku")  # fmt: skip
    assert code == 0 and "60 lines written" in said and "left out: 30 without clicks" in said
    assert "clicks: 60 read, 60 kept" in said


def test_counted_clicks_on_an_empty_cell_are_lost(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("query,clicked_title,n\ntv,TV,5\nlamp,,3\nlamp,,0\n")
    _, said = run(path, "-o", "-", "--clicks-column", "n", "--max-lost", 1)
    assert "clicks: 8 read, 5 kept; lost: 3 without a title" in said and "1 without clicks" in said


def test_ids_of_a_catalogue_are_found_by_their_usual_names(tmp_path):
    products, path = tmp_path / "p.csv", tmp_path / "c.csv"
    products.write_text("artikelnummer,name\nA1,TV\nA2,Lamp\n")
    path.write_text("query,sku\ntv,A1\nlamp,A2\n")
    code, said = run(path, "-o", "-", "--catalogue", products)
    assert code == 0 and said.startswith("tv\tTV\t1\tA1\nlamp\tLamp\t1\tA2\n")


def test_clicks_of_rare_pairs_are_counted(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("query,title,n\na,A,5\nb,B,1\nb,C,2\n")
    code, said = run(path, "-o", tmp_path / "l.tsv", "--clicks-column", "n", "--min-clicks", 3)
    assert code == 0
    assert said.endswith("clicks: 8 read, 5 kept; lost: 3 pairs with too few clicks\n")


def test_an_empty_count_is_no_click_and_its_title_stays_skipped(tmp_path):
    path, out = tmp_path / "c.csv", tmp_path / "log.jsonl"
    path.write_text("search,query,title,n\n1,tv,A,\n1,tv,B,3\n1,tv,C,NULL\n")
    columns = Columns(clicks="n", search="search")
    import_clicks([path], out, columns)
    record = {"query": "tv", "clicked": ["B"], "clicks": [3], "skipped": ["A", "C"]}
    assert json.loads(out.read_text()) == record


@pytest.mark.parametrize("name", [name for name in CLICKS.names if name != "clicked"])
def test_a_column_of_counts_is_not_passed_over(tmp_path, name):
    (tmp_path / "c.csv").write_text(f"query,title,{name.upper()}\ntv,TV,7\n")
    code, said = run(tmp_path / "c.csv", "-o", "-")
    assert code == 0 and f"give --clicks-column {shlex.quote(name.upper())}" in said


def test_a_column_of_numbers_by_any_name_is_not_passed_over(tmp_path):
    rows = "".join(f"q{k},T{k},{k},{20260100 + k},{k}.5,{k},1,x\n" for k in range(1, 9))
    header = "query,title,Besuche,stamp,revenue,position,shop,note\n"
    (tmp_path / "c.csv").write_text(header + rows)
    _, said = run(tmp_path / "c.csv", "-o", tmp_path / "l.tsv")
    note = "if Besuche has the number of clicks, give --clicks-column Besuche\n"
    assert f"note: each row was counted as one click; {note}" in said
    assert "note" not in run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "Besuche")[1][99:]


@pytest.mark.parametrize(
    "name", ["Klicks gesamt", "click-throughs", "Кол-во кликов", "Clics totales", "Total events"]
)
def test_large_numbers_named_for_clicks_are_not_passed_over(tmp_path, name):
    (tmp_path / "c.csv").write_text(f"query,title,{name}\ntv,TV,700\nlamp,Lamp,50\n")
    _, said = run(tmp_path / "c.csv", "-o", "-")
    assert "each row was counted as one click; " in said and shlex.quote(name) in said
    with pytest.warns(UserWarning, match=f"for the column {name} give clicks='{name}'"):
        ClickLog.from_frame({"query": ["tv"], "title": ["TV"], name: [700.0]})


def test_a_row_that_says_total_where_the_clicks_are_is_one_of_totals(tmp_path):
    (tmp_path / "c.csv").write_text("query,title,n\n,,Totals\n,,9\ntv,TV,9\n")
    code, said = run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "n")
    assert code == 0 and said.startswith("tv\tTV\t9\n") and "2 of totals" in said


def test_what_the_console_of_a_database_prints_is_a_table(tmp_path):
    psql = " query | title | n\n-------+-------+---\n tv | TV | 3\n a     | A     | 2\n(2 rows)\n"
    rule = "+---+---+---+\n"
    mysql = f"{rule}| query | title | n |\n{rule}| tv | TV | 3 |\n| a | A | 2 |\n{rule}"
    markdown = "| query | title | n |\n| :--- | :--: | ---: |\n| tv | TV | 3 |\n| a | A | 2 |\n"
    for text in (psql, mysql, markdown):
        (tmp_path / "c.txt").write_text(text)
        code, said = run(tmp_path / "c.txt", "-o", "-", "--clicks-column", "n")
        assert code == 0 and said.startswith("tv\tTV\t3\na\tA\t2\n"), said


def test_joined_files_have_one_table(tmp_path):
    (tmp_path / "c.csv").write_text("query,title,n\ntv,TV,3\nquery,title,n\na,A,2\nquery,x,1\n")
    code, said = run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "n")
    assert code == 0 and said.startswith("tv\tTV\t3\na\tA\t2\nquery\tx\n") and "3 rows" in said


def test_a_row_that_is_short_or_long_is_bad(tmp_path):
    for row in ("tv,TV", "tv,TV,3,x"):
        (tmp_path / "c.csv").write_text(f"query,title,n\n{row}\n")
        code, said = run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "n")
        assert code == 1 and "c.csv:2: " in said


def test_a_name_with_blanks_is_quoted_for_a_shell(tmp_path):
    (tmp_path / "c.csv").write_text("query,title,Event count\ntv,TV,7\n")
    _, said = run(tmp_path / "c.csv", "-o", tmp_path / "l.tsv")
    option = shlex.split(said.partition("give ")[2].splitlines()[0])
    assert run(tmp_path / "c.csv", "-o", "-", *option)[1].startswith("tv\tTV\t7\n")


def test_nothing_behind_a_list_of_json_is_lost(tmp_path):
    row = '{{"query": "{0}", "title": "{0}"}}'.format
    rows = f"[{row('a')}]\n[{row('b')}, {row('c')}]\n"
    (tmp_path / "c.json").write_text(rows)
    assert run(tmp_path / "c.json", "-o", "-")[1].startswith("a\ta\nb\tb\nc\tc\n")
    (tmp_path / "c.json").write_text(rows + row("d"))
    code, said = run(tmp_path / "c.json", "-o", "-")
    assert code == 1 and "c.json:2: something follows the list of objects" in said


def test_names_of_another_encoding_are_named(tmp_path):
    (tmp_path / "c.csv").write_bytes("Запрос;Название\nлампа;Лампа\n".encode("cp1251"))
    code, said = run(tmp_path / "c.csv", "-o", "-")
    assert code == 1 and "columns are in another encoding; name it, such as --encoding" in said
    code, said = run(tmp_path / "c.csv", "-o", "-", "--encoding", "cp1251")
    assert code == 0 and said.startswith("лампа\tЛампа\n")


def test_a_second_table_in_a_file_is_left_out_and_named(tmp_path):
    (tmp_path / "c.csv").write_text("# one\nquery,title\ntv,TV\n,\n\n# two\nDate,Users\n0,3\n1,4\n")
    code, said = run(tmp_path / "c.csv", "-o", "-")
    assert code == 0 and "c.csv:6: other comments begin; what follows was left out" in said
    assert "1 row, 1 line written\n" in said
    (tmp_path / "c.csv").write_text("query,title\n#1 lamp,Lamp\n#,TV\n")
    assert run(tmp_path / "c.csv", "-o", "-")[1].startswith("#1 lamp\tLamp\n#\tTV\n")


# -- columns ----------------------------------------------------------------------------------


def test_every_name_has_one_surest_meaning():
    texts = {role.what: set(role.names) for role in (QUERY, TITLE, ID)}
    names = [name for role in ROLES for name in role.names]
    assert all(name.isalnum() and name == name.casefold() for name in names)
    assert not texts["query"] & texts["title"] and not texts["query"] & texts["id"]
    assert not texts["title"] & texts["id"]


@pytest.mark.parametrize("option", ["gtin=GTIN, UPC or EAN", "GTIN, UPC or EAN", "Name 2,GTIN"])
def test_a_column_may_have_commas_in_its_name(tmp_path, option):
    (tmp_path / "c.csv").write_text("query,id\nlamp,1\n")
    (tmp_path / "p.csv").write_text('ID,Name,Name 2,GTIN,"GTIN, UPC or EAN"\n1,Lamp,L,5,7\n')
    code, _ = run(
        tmp_path / "c.csv", "-o", tmp_path / "l.tsv", "--id-column", "id", "--catalogue",
        tmp_path / "p.csv", "--title-column", "Name", "--fields", option, "--write-catalogue",
        tmp_path / "t.tsv",
    )  # fmt: skip
    written = "L\t5" if option == "Name 2,GTIN" else "7"
    assert code == 0 and (tmp_path / "t.tsv").read_text().splitlines()[1] == f"1\tLamp\t{written}"


def test_an_id_of_two_columns(tmp_path):
    (tmp_path / "c.csv").write_text("query,id,locale\nlamp,1,de\nmug,1,us\nx,,us\ny,1,fr\n")
    (tmp_path / "p.csv").write_text("id,title,locale\n1,Lampe,de\n1,Lamp,us\n")
    ids = {"id": ["id", "locale"], "catalogue_id": ["id", "locale"]}
    out, titles = tmp_path / "l.tsv", tmp_path / "t.tsv"
    given = {"catalogue": tmp_path / "p.csv", "write_catalogue": titles, "max_lost": 1}
    done = import_clicks([tmp_path / "c.csv"], out, Columns(**ids), **given)
    assert out.read_text() == "lamp\tLampe\t1\t1_de\nmug\tLamp\t1\t1_us\n"
    assert titles.read_text() == "id\ttitle\n1_de\tLampe\n1_us\tLamp\n"
    assert done.left_out == {"without an id": 1, "with an id that has no title": 1}
    (tmp_path / "p.csv").write_text("id,title,locale\n1 a,Lampe,de\n1,Lamp,a de\n")
    with pytest.raises(SentembError, match="would both be '1_a_de'; rename one of them"):
        import_clicks([tmp_path / "c.csv"], out, Columns(**ids), force=True, **given)


# -- lists ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    ['["x1","x2"]', "['x1', 'x2']", "['x1' 'x2']", "[x1, x2]", "[x1 x2]", "x1|x2", "x1, x2",
     "x1;x2", "x1 x2", "{x1,x2}", '{"x1",x2}', "(x1, x2)"],
)  # fmt: skip
def test_several_ids_in_a_cell_are_several_clicks(tmp_path, cell):
    with open(tmp_path / "c.csv", "w") as file:
        csv.writer(file).writerows([("query", "ids", "n"), ("a", cell, 5), ("b", "{x1}", 1)])
    (tmp_path / "p.csv").write_text("id,title\nx1,One\nx2,Two\n")
    columns = Columns(id="ids", catalogue_id="id", clicks="n")
    done = import_clicks(
        [tmp_path / "c.csv"], tmp_path / "l.tsv", columns, catalogue=tmp_path / "p.csv"
    )
    assert (tmp_path / "l.tsv").read_text() == "a\tOne\t5\tx1\na\tTwo\t5\tx2\nb\tOne\t1\tx1\n"
    assert any(note.startswith("rows that name several titles: 1; ") for note in done.notes)


def test_ids_in_lines_of_a_cell_and_in_lists_of_lists_are_several(tmp_path):
    (tmp_path / "p.csv").write_text("id,title\nx1,One\nx2,Two\n")
    (tmp_path / "c.csv").write_text('query,ids\na,"x1\nx2"\nb,"[[""x1""],[""x2""]]"\n')
    (tmp_path / "c.jsonl").write_text('{"query": "a", "ids": [["x1"], [], ["x2"]]}\n')
    for name, wanted in (("c.csv", "a1 a2 b1 b2"), ("c.jsonl", "a1 a2")):
        columns = Columns(id="ids", catalogue_id="id")
        out, catalogue = tmp_path / "l.tsv", tmp_path / "p.csv"
        import_clicks([tmp_path / name], out, columns, catalogue=catalogue, force=True)
        rows = [line.split("\t") for line in out.read_text().splitlines()]
        assert " ".join(f"{query}{id[1]}" for query, *_, id in rows) == wanted


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_the_products_of_a_catalogue_may_be_in_lists(tmp_path, form):
    """The variants of a product are a list of objects, and engines give all texts in lists."""
    rows = [
        {"title": ["Lamp"], "of": [{"sku": "A", "size": "S"}, {"sku": "B", "size": "M"}],
         "tags": [["home", "light"]]},
        {"title": ["Mug", "Cup"], "of": [{"sku": "C", "size": None}], "tags": []},
    ]  # fmt: skip
    path = tmp_path / f"p.{form}"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        arrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    (tmp_path / "c.csv").write_text("query,sku\nlamp,B\n")
    columns = Columns(
        id="sku", catalogue_id="of.sku", title="title", keep={"size": "of.size", "tags": "tags"}
    )
    given = {"catalogue": path, "write_catalogue": tmp_path / "t.tsv"}
    import_clicks([tmp_path / "c.csv"], tmp_path / "l.tsv", columns, **given)
    assert (tmp_path / "t.tsv").read_text().splitlines()[1:] == [
        "A\tLamp\tS\thome, light", "B\tLamp\tM\thome, light", "C\tMug\t\t"
    ]  # fmt: skip
    assert (tmp_path / "l.tsv").read_text() == "lamp\tLamp\t1\tB\n"
    guess = guess_tables(tmp_path / "c.csv", path, Reading(), Columns())
    assert guess.products.ids == ("of.sku",) and guess.products.title == "title"


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_fields_of_the_objects_in_a_list_are_lists(tmp_path, form):
    shown = [{"sku": "A1", "n": 3, "of": {"x": 1}}, {"sku": "A2", "n": 0, "of": {"x": 2}}]
    rows = [{"query": "tv", "shown": shown}, {"query": "lamp", "shown": shown[1:]}]
    path, products = tmp_path / f"c.{form}", tmp_path / "p.csv"
    if form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        arrow = pytest.importorskip("pyarrow", reason="needs the extra `parquet`")
        parquet = pytest.importorskip("pyarrow.parquet")
        parquet.write_table(arrow.Table.from_pylist(rows), path)
    products.write_text("sku,name\nA1,TV\nA2,Lamp\n")
    guess = guess_columns(path)
    assert set(guess.names) == {"query", "shown.sku", "shown.n", "shown.of.x"}
    columns = Columns(id="shown.sku", catalogue_id="sku", clicks="shown.n")
    done = import_clicks([path], tmp_path / "l.tsv", columns, catalogue=products)
    assert (tmp_path / "l.tsv").read_text() == "tv\tTV\t3\tA1\n"
    assert done.clicks == done.clicks_kept == 3
    columns = Columns(id="shown.sku", catalogue_id="sku", clicks="shown.of.x")
    import_clicks([path], tmp_path / "l2.tsv", columns, catalogue=products)
    assert (
        tmp_path / "l2.tsv"
    ).read_text() == "tv\tTV\t1\tA1\ntv\tLamp\t2\tA2\nlamp\tLamp\t2\tA2\n"


def test_a_title_with_brackets_or_bars_is_one_title(tmp_path):
    titles = ["[New] Lamp [red]", "Lamp | Acme", "[sale]", "A, B", "{a}"]
    with open(tmp_path / "c.csv", "w") as file:
        csv.writer(file).writerows([("query", "title"), *(("q", title) for title in titles)])
    import_clicks([tmp_path / "c.csv"], tmp_path / "l.tsv", Columns())
    assert [line[2:] for line in (tmp_path / "l.tsv").read_text().splitlines()] == titles


# -- variants ---------------------------------------------------------------------------------


VARIANTS = "Parent,Name,SKU,Vendor\np1,Lamp,A,Acme\np1,,B,\np1,,C,Bolt\np2,Mug,D,Acme\n"


def titles_of(tmp_path, products, *more):
    (tmp_path / "c.csv").write_text("query,sku\nlamp,A\n")
    (tmp_path / "p.csv").write_text(products)
    out = tmp_path / "t.tsv"
    code, said = run(
        tmp_path / "c.csv", "-o", tmp_path / "l.tsv", "--force", "--id-column", "sku",
        "--catalogue", tmp_path / "p.csv", "--write-catalogue", out, *more,
    )  # fmt: skip
    assert code == 0, said
    return out.read_text().splitlines(), said


def test_variants_have_the_title_and_the_fields_of_their_product(tmp_path):
    titles, said = titles_of(tmp_path, VARIANTS, "--fields", "Vendor")
    assert titles[1:] == ["A\tLamp\tAcme", "D\tMug\tAcme", "B\tLamp\tAcme", "C\tLamp\tBolt"]
    assert "rows without a title that are variants, and have that of their product above: 2" in said


def test_variants_have_the_title_of_a_product_without_an_id(tmp_path):
    products = "Parent,Name,SKU\np1,Lamp,\np1,,A\np1,,B\np2,Mug,\np2,,C\n"
    titles, _ = titles_of(tmp_path, products)
    assert titles[1:] == ["A\tLamp", "B\tLamp", "C\tMug"]


def test_rows_of_one_product_with_other_fields_are_counted(tmp_path):
    products = "SKU,Name,Size\nA,Lamp,S\nA,Lamp,M\nA,Lamp,S\nB,Mug,\n"
    titles, said = titles_of(tmp_path, products, "--fields", "Size")
    assert titles[1:] == ["A\tLamp\tS", "B\tMug\t"]
    assert "rows with an id that already has other fields were left out: 1" in said


@pytest.mark.parametrize(
    "products",
    [
        "Name,SKU\nLamp,A\n,B\n",  # nothing tells products apart
        "Name,SKU,Vendor\nLamp,A,Acme\n,B,Acme\nMug,C,Bolt\n",  # a brand is no product
        "Name,SKU,group\nLamp,A,x\n,B,x\nMug,C,x\n",  # two titles in a group
        "Name,SKU,group\nLamp,A,x\nMug,C,y\n,B,x\n",  # not below its product
        "Name,SKU,group\nLamp,A,x\n,B,y\n",
        "Name,SKU,group\nLamp,A,\n,B,\n",
    ],
)
def test_a_product_without_a_title_does_not_get_that_of_another(tmp_path, products):
    titles, said = titles_of(tmp_path, products)
    assert "B" not in [line.partition("\t")[0] for line in titles]
    assert "rows without a title were left out: 1" in said


# -- clicks and ids ---------------------------------------------------------------------------


@settings(deadline=None, max_examples=60)
@given(
    numbers=st.lists(st.integers(0, 10**9), min_size=1, max_size=6),
    separator=st.sampled_from(SEPARATORS),
    decimals=st.sampled_from([0, 1, 2]),
    seed=st.randoms(use_true_random=False),
)
def test_a_column_decides_what_its_signs_are(numbers, separator, decimals, seed):
    numbers = [*numbers, 7]  # at least one that is clear
    seed.shuffle(numbers)
    cells = [counted(number, separator, decimals) for number in numbers]
    counts = ClickCells()
    counts.look_at(cells)
    assert [counts.read(cell) for cell in cells] == numbers
    assert counts.guessed is None


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["1.000", "97"], [1000, 97]),
        (["1.000", "1234"], [1, 1234]),
        (["1.000", "3.0"], [1, 3]),
        (["1.000", "2,0"], [1000, 2]),
        (["1.234", "97"], [1234, 97]),
        (["12,34,567"], [1234567]),
        (["1.234", "0.5"], [None, None]),
        (["Ja", "nein", "OUI", "x", "✓", "Falsch", "No"], [1, 0, 1, 1, 1, 0, 0]),
        (["1,000,0", "1.2.3", "-5", "1e3", "12 clicks", "٣"], [None] * 6),
    ],
)
def test_clicks_by_their_column(cells, numbers):
    counts = ClickCells()
    counts.look_at(cells)
    found = []
    for cell in cells:
        try:
            found.append(counts.read(cell))
        except SentembError:
            found.append(None)
    assert found == numbers


@pytest.mark.parametrize("before", ["", "97 in an earlier row"])
def test_a_stream_is_looked_at_before_its_clicks_are_read(tmp_path, before):
    rows = ["a,A,1.000", "b,B,2.000", "c,C,97"]
    text = "query,title,n\n" + "\n".join(rows[::-1] if before else rows) + "\n"
    done = CliRunner().invoke(
        main, ["import", "-", "-o", str(tmp_path / "l.tsv"), "--clicks-column", "n"], input=text
    )
    assert done.exit_code == 0
    assert "clicks: 3,097 read, 3,097 kept\n" in done.stdout + done.stderr


@settings(deadline=None, max_examples=60)
@given(
    ids=st.sets(st.text("0123", min_size=1, max_size=4), min_size=1, max_size=8),
    asked=st.text("0123", min_size=1, max_size=4),
)
def test_an_id_is_repaired_only_by_adding_zeros(ids, asked):
    repaired = DamagedIds(ids - {asked}).repair(asked)
    same = {id for id in ids - {asked} if id.lstrip("0") == asked.lstrip("0")}
    if repaired:
        assert same == {repaired} and len(repaired) > len(asked)
        assert not asked.startswith("0") or asked == "0"
    elif len(asked.lstrip("0")) == len(asked):
        assert len(same) != 1


@pytest.mark.parametrize("id", ["7,0", "7.0", "7E+00"])
def test_an_id_that_two_products_fit_is_none(id):
    ids = DamagedIds(["7", "007", "8"])
    assert ids.repair(id) == "" and ids.ambiguous == 1


def test_an_id_in_a_formula_is_the_id(tmp_path):
    (tmp_path / "c.csv").write_text('query,id\na,="007"\nb,"=""008"""\n')
    (tmp_path / "p.csv").write_text('id,title\n="007",Seven\n008,Eight\n')
    out = tmp_path / "l.tsv"
    run(tmp_path / "c.csv", "-o", out, "--id-column", "id", "--catalogue", tmp_path / "p.csv")
    assert out.read_text() == "a\tSeven\t1\t007\nb\tEight\t1\t008\n"


def test_a_table_of_formulas_is_the_table(tmp_path):
    """Some programs write every cell so that a spreadsheet changes none."""
    (tmp_path / "c.csv").write_text(
        '="query",="title",="n"\n="red lamp",="Lamp ""Rex""","=""1,200"""\n="",="Mug",="3"\n'
    )
    guess = guess_columns(tmp_path / "c.csv")
    assert guess.roles == {"query": "query", "title": "title", "clicks": "n"}
    code, said = run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "n")
    assert code == 0 and said.startswith('red lamp\tLamp "Rex"\t1200\n'), said
    assert "1 without a query" in said


def test_an_id_with_zeros_is_not_that_of_another_product(tmp_path):
    (tmp_path / "c.csv").write_text("query,id\na,007\nb,8\n" + "c,9\n" * 40)
    (tmp_path / "p.csv").write_text("id,title\n7,Seven\n8,Eight\n9,Nine\n")
    out = tmp_path / "l.tsv"
    code, said = run(tmp_path / "c.csv", "-o", out, "--id-column", "id", "--catalogue",
                     tmp_path / "p.csv")  # fmt: skip
    assert code == 0 and "Seven" not in out.read_text()
    assert "the id 007 has zeros that the catalogue lacks" in said


def test_an_import_that_stops_says_that_the_catalogue_lost_its_zeros(tmp_path):
    (tmp_path / "p.csv").write_text("id,title\n7,Seven\n8,Eight\n")
    for rows in ("a,007\nb,008\n", "a,007\nb,8\n"):
        (tmp_path / "c.csv").write_text("query,id\n" + rows)
        code, said = run(tmp_path / "c.csv", "-o", "-", "--catalogue", tmp_path / "p.csv")
        assert code == 1 and "'007'; the id 007 has zeros that the catalogue lacks" in said


def test_a_sign_between_columns_that_is_not_known_is_asked_for(tmp_path):
    (tmp_path / "c.csv").write_text("query^title\ntv^TV\n")
    code, said = run(tmp_path / "c.csv", "-o", "-")
    assert code == 1 and "if a sign separates columns there, give it with --delimiter; name" in said
    assert run(tmp_path / "c.csv", "-o", "-", "--delimiter", "^")[1].startswith("tv\tTV\n")


# -- what other programs write --------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '"query,title,n"\n"lamp,Red Lamp,1200"\n"mug,""Mug, 15"""""",3"\n',  # Excel
        'query,title,n\nlamp,Red Lamp,1200\n"mug,""Mug, 15"""""",3";;\n',
        '"query"|"title"|"n"\n"lamp"|"Red Lamp"|"1200"\n"mug"|"Mug, 15\\""|"3"\n',  # Spark
        "'query','title','n'\n'lamp','Red Lamp',1200\n'mug','Mug, 15\"',3\n",  # SQLite
        '"query"\t"title"\t"n"\n"1"\t"lamp"\t"Red Lamp"\t1200\n"2"\t"mug"\t"Mug, 15\\""\t3\n',  # R
    ],
)  # fmt: skip
def test_a_table_that_another_program_has_quoted(tmp_path, text):
    (tmp_path / "c.txt").write_text(text)
    code, said = run(tmp_path / "c.txt", "-o", "-", "--clicks-column", "n")
    assert code == 0 and said.startswith('lamp\tRed Lamp\t1200\nmug\tMug, 15"\t3\n'), said


def test_a_backslash_at_the_end_of_a_text_is_not_for_its_quote(tmp_path):
    (tmp_path / "c.csv").write_text(
        'query,title\n"a",C:\\\n"b","C:\\","c"\n"d","C:\\"\n"e","x\\""y"\n'
    )
    code, said = run(tmp_path / "c.csv", "-o", "-", "--skip-bad-lines", "--max-lost", 1)
    assert code == 0 and said.startswith('a\tC:\\\nd\tC:\\\ne\tx\\"y\n') and "1 bad" in said


def test_rows_after_a_bad_one_are_read_where_rows_have_numbers(tmp_path):
    rows = '"1","a","A"\n"2","b","B"\n"3","c","C"x\n"4","d","D"\n'
    (tmp_path / "c.csv").write_text('"query","title"\n' + rows)
    _, said = run(tmp_path / "c.csv", "-o", "-", "--skip-bad-lines", "--max-lost", 1)
    assert said.startswith("a\tA\nb\tB\nd\tD\n") and "left out: 1 bad" in said
    (tmp_path / "c.csv").write_text("query,title\n1,Lamp,\n2,Mug,\n")
    assert run(tmp_path / "c.csv", "-o", "-")[1].startswith("1\tLamp\n2\tMug\n")


def test_a_query_that_was_cut_from_an_address_is_decoded(tmp_path):
    queries = {"caf%C3%A9+cup": "café cup", "red+lamp": "red+lamp", "50% off": "50% off",
               "100%": "100%", "5%ff": "5%ff", "a%20b": "a b"}  # fmt: skip
    (tmp_path / "c.csv").write_text("query,title\n" + "".join(f"{q},T\n" for q in queries))
    _, said = run(tmp_path / "c.csv", "-o", "-")
    assert said.startswith("".join(f"{q}\tT\n" for q in queries.values()))


def test_names_of_groups_of_columns_are_not_those_of_columns(tmp_path):
    (tmp_path / "c.csv").write_text(
        "Search,,Product,,Metrics,\nterm,locale,id,name,clicks,ctr\nlamp,de,L,Red Lamp,2,0.1\n"
    )
    code, said = run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "clicks")
    assert code == 0 and said.startswith("lamp\tRed Lamp\t2\n")
    assert "the header is in line 2; before it: 'Search,,Product,,Metrics,'" in said


def test_a_row_of_usual_names_is_not_the_header(tmp_path):
    (tmp_path / "c.csv").write_text(
        "app,kind,action,label,thing\nshop,search,click,lamp,item\nshop,search,view,lamp,item\n"
    )
    with pytest.raises(SentembError, match=r"no column looks like the query.*app, kind, action"):
        guess_tables(tmp_path / "c.csv", None, Reading(), Columns())
    code, said = run(tmp_path / "c.csv", "-o", "-")
    assert code == 1 and "among app, kind, action, label, thing" in said


def test_a_column_of_numbers_is_not_the_query(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("Searches,Term,Item Name,Clicks\n9000,lamp,Red Lamp,12\n90,mug,Blue Mug,3\n")
    code, said = run(path, "-o", "-", "--clicks-column", "Clicks")
    assert code == 0 and said.startswith("lamp\tRed Lamp\t12\nmug\tBlue Mug\t3\n")


def test_ids_in_lists_belong_to_the_titles_next_to_them(tmp_path):
    rows = [
        {"query": "a", "items": [{"id": "L", "name": "Lamp"}, {"id": "M", "name": "Mug"}]},
        {"query": "b", "items": [{"id": "M", "name": "Mug"}]},
        {"query": "c", "items": [{"id": "NULL", "name": "Vase"}]},
        {"query": "d", "items": {"id": ["N", "O"], "name": "Table"}},
    ]
    (tmp_path / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, said = run(
        tmp_path / "c.jsonl", "-o", "-", "--query-column", "query", "--title-column", "items.name",
        "--id-column", "items.id", "--write-catalogue", tmp_path / "t.tsv",
    )  # fmt: skip
    log = "a\tLamp\t1\tL\na\tMug\t1\tM\nb\tMug\t1\tM\nc\tVase\nd\tTable\n"
    assert code == 0 and said.startswith(log)
    assert (tmp_path / "t.tsv").read_text() == "id\ttitle\nL\tLamp\nM\tMug\n"
    assert "rows with a title and without an id of its own: 2; they add no title" in said


EVENTS = (
    ("product_click", 1), ("product_hover", 0), ("Search Result Clicked", 1), ("productClick", 1),
    ("click_search_result", 1), ("search_click", 0), ("Product Added", 0),
)  # fmt: skip


@pytest.mark.parametrize("is_stream", [True, False])
def test_other_kinds_of_events_are_no_clicks_and_are_named(tmp_path, is_stream):
    rows = [f"{event},q{k},T{k}\n" for k, (event, _) in enumerate(EVENTS)][::-1]
    text = "kind,query,title\n" + "".join(rows)
    (tmp_path / "c.csv").write_text(text)
    file = "-" if is_stream else str(tmp_path / "c.csv")
    arguments = ["import", file, "-o", "-", "--clicks-column", "kind"]
    done = CliRunner().invoke(main, arguments, input=text)
    clicks = [f"q{k}\tT{k}" for k, (_, is_click) in enumerate(EVENTS) if is_click]
    assert done.stdout.splitlines() == clicks[::-1]
    assert "kinds of events that were read as no clicks: product added; if one" in done.stderr


def test_a_text_among_flags_is_no_kind_of_event(tmp_path):
    (tmp_path / "c.csv").write_text("query,title,n\na,A,yes\nb,B,perhaps\n")
    code, said = run(tmp_path / "c.csv", "-o", "-", "--clicks-column", "n")
    assert code == 1 and "the clicks 'perhaps' are not an integer" in said


def test_a_column_of_events_is_found_by_its_cells(tmp_path):
    path = tmp_path / "c.csv"
    rows = "product_click,lamp,Lamp\nproduct_hover,lamp,Mug\nload,mug,Mug\n" * 3
    path.write_text("action_name,query,title\n" + rows)
    assert guess_tables(path, None, Reading(), Columns()).clicks.counts == ["action_name"]
    _, said = run(path, "-o", "-")
    assert "for the clicks in action_name give --clicks-column action_name\n" in said
    path.write_text("action_name,query,title\n" + "".join(f"click {k},q,Lamp\n" for k in range(9)))
    assert not guess_tables(path, None, Reading(), Columns()).clicks.counts


def test_clicks_in_several_columns_are_not_lost_without_a_word(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("query,title,clicks_2026_01,clicks_2026_02\na,A,5,6\nb,B,3,0\n")
    guess = guess_tables(path, None, Reading(), Columns())
    assert guess.guesses[0].endswith("clicks_2026_01; not added to the clicks: clicks_2026_02")
    path.write_text("query,title,2026-01-01,2026-01-02\na,A,5,6\nb,B,3,0\n")
    _, said = run(path, "-o", "-")
    assert "if 2026-01-01 or 2026-01-02 has the number of clicks" in said
    assert "if each has a part of them, write a row for each\n" in said


def test_the_margins_of_pivots_and_the_end_of_a_dump_are_no_pairs(tmp_path):
    rows = "lamp\tRed Lamp\t2\nlamp\t(all)\t2\nall\tall in one\t5\nAll\tAll\t9\n\\.\n"
    (tmp_path / "c.tsv").write_text("query\ttitle\tn\n" + rows)
    code, said = run(tmp_path / "c.tsv", "-o", "-", "--clicks-column", "n")
    assert code == 0 and said.startswith("lamp\tRed Lamp\t2\nall\tall in one\t5\n")
    assert "2 of totals" in said and "lost: 2 without a title" in said
