"""`sentemb import`: tables of any format become a click log."""

import csv
import datetime
import decimal
import gzip
import html
import io
import itertools
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from helpers import run_python
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.click_log import read_click_log
from sentemb.data.importers.click_rows import Columns
from sentemb.data.importers.click_table import import_clicks
from sentemb.data.importers.columns import Reading
from sentemb.data.importers.damaged_ids import DamagedIds
from sentemb.data.importers.losses import BAD
from sentemb.data.importers.missing import is_missing
from sentemb.data.judged_set import read_texts

PLAIN = Columns()
INCHES = 'Acme 15.6" Laptop'


def write_csv(path, rows, encoding="utf-8", **dialect):
    with open(path, "w", encoding=encoding, newline="") as file:
        csv.writer(file, **dialect).writerows(rows)
    return path


def run(tmp_path, *arguments, stdin=None):
    """Run ``sentemb import`` and return its exit code, stdout and stderr."""
    done = CliRunner().invoke(main, ["import", *map(str, arguments)], input=stdin)
    return done.exit_code, done.stdout, done.stderr


def imported(tmp_path, *files, columns=PLAIN, **given):
    out = tmp_path / given.pop("name", "log.tsv")
    done = import_clicks(files, out, columns, force=True, **given)
    return out.read_text(encoding="utf-8"), done


# -- what is written comes back ---------------------------------------------------------------


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\ufeff"), max_size=12)


@settings(deadline=None, max_examples=40)
@given(
    rows=st.lists(st.tuples(TEXT, TEXT, st.integers(0, 3)), min_size=1, max_size=6),
    delimiter=st.sampled_from(",;\t|"),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_what_the_csv_module_writes_comes_back(tmp_path_factory, rows, delimiter, quoting, end):
    # In TSV a text with a tab and a line end is taken for one whose quotes do not match.
    assume(delimiter != "\t" or not any("\t" in t and "\n" in t for row in rows for t in row[:2]))
    # The csv module itself writes a carriage return without quotes, and cannot read that.
    assume(quoting != csv.QUOTE_MINIMAL or not any("\r" in t for row in rows for t in row[:2]))
    folder = tmp_path_factory.mktemp("csv")
    head = ("query", "title", "n")
    dialect = {"delimiter": delimiter, "quoting": quoting, "lineterminator": end}
    path = write_csv(folder / "c.csv", [head, *rows], **dialect)
    clean = [(" ".join(q.split()), " ".join(t.split()), n) for q, t, n in rows]
    # Texts may be words of our own modules, such as those for a missing cell.
    kept = [row for row in clean if all(row) and not any(map(is_missing, row[:2]))]
    columns = Columns(clicks="n")
    if not kept:
        with pytest.raises(SentembError, match="nothing to write"):
            import_clicks([path], folder / "log.tsv", columns)
        assert not (folder / "log.tsv").exists()
        return
    done = import_clicks([path], folder / "log.tsv", columns)
    written = (folder / "log.tsv").read_bytes().decode().split("\n")[:-1]
    assert written == [f"{q}\t{t}" if n == 1 else f"{q}\t{t}\t{n}" for q, t, n in kept]
    assert (done.rows, done.lines) == (len(rows), len(kept))
    assert sum(done.left_out.values()) == len(rows) - len(kept)
    log = read_click_log(folder / "log.tsv")
    assert int(log.clicks.sum()) == sum(n for *_, n in kept)


@pytest.mark.parametrize("name", ["c.csv", "c.tsv", "c.jsonl", "c.csv.gz", "c.parquet", "c"])
def test_every_format_gives_the_same_log(tmp_path, name):
    rows = [("tv", INCHES, 2), ("tv", "Acme TV, black", 1), ("sofa", 'The "Bed"', 4)]
    path = tmp_path / name
    if name == "c.parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow.parquet import write_table

        columns = [pyarrow.array(column) for column in zip(*rows, strict=True)]
        write_table(pyarrow.table(columns, ["query", "title", "n"]), path, row_group_size=2)
    elif name == "c.jsonl":
        lines = [json.dumps({"query": q, "title": t, "n": n}) for q, t, n in rows]
        path.write_text("\n".join(lines))
    else:
        text = io.StringIO(newline="")
        delimiter = "\t" if name == "c.tsv" else ","
        csv.writer(text, delimiter=delimiter).writerows([("query", "title", "n"), *rows])
        data = text.getvalue().encode("utf-8-sig")
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    text, done = imported(tmp_path, path, columns=Columns(clicks="n"))
    assert text == f'tv\t{INCHES}\t2\ntv\tAcme TV, black\nsofa\tThe "Bed"\t4\n'
    assert done.rows == 3


def test_standard_input_and_output(tmp_path):
    code, out, err = run(tmp_path, "-", "-o", "-", stdin="query,title\ntv,TV\n,x\n")
    assert (code, out) == (0, "tv\tTV\n")
    assert err == (
        "standard input: 2 rows, 1 line written; left out: 1 without a query\n"
        "clicks: 2 read, 1 kept; lost: 1 without a query\n"
    )
    lines = '{"q": {"text": "tv"}, "title": "TV"}\n\n{"q": {}, "title": "TV"}\n'
    code, out, err = run(tmp_path, "-", "-o", "-", "--query-column", "q.text", stdin=lines)
    assert (code, out) == (0, "tv\tTV\n") and "1 without a query" in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes on this system")
def test_a_named_pipe_is_read_once_and_whole(tmp_path):
    pipe, log = tmp_path / "clicks.csv", tmp_path / "log.tsv"
    os.mkfifo(pipe)
    rows = [f"query {row},title {row}\n" for row in range(20_000)]
    text = "query,title\n" + "".join(rows) + "bad\n"
    threading.Thread(target=pipe.write_text, args=(text,), daemon=True).start()
    command = [sys.executable, "-m", "sentemb", "import", pipe, "-o", log, "--skip-bad-lines"]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    assert log.read_text() == "".join(rows).replace(",", "\t")


def test_no_row_asks_whether_its_file_is_a_record(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("sentemb.data.importers.table_rows.is_record", asked.append)
    path = write_csv(tmp_path / "c.csv", [("query", "title"), ("tv", "TV"), *[("a",)] * 99])
    imported(tmp_path, path, skip_bad_lines=True, max_lost=1)
    path = write_csv(tmp_path / "shown.csv", SHOWN)
    imported(tmp_path, path, columns=Columns(clicks="clicked", search="search"))
    assert set(asked) == {tmp_path / "c.csv", tmp_path / "shown.csv"} and len(asked) < 9


def test_an_excerpt_of_several_files_in_other_encodings(tmp_path):
    head = [("Suche", "Artikel")]
    one = write_csv(tmp_path / "a.csv", [*head, ("Käse", 'Käsebrett 12"')], "cp1252", delimiter=";")
    two = write_csv(tmp_path / "b.csv", [*head[0:1], ("süß", "Honig")], "cp1252", delimiter=",")
    arguments = [one, two, "-o", "-", "--query-column", "Suche", "--title-column", "Artikel"]
    code, out, _ = run(tmp_path, *arguments, "--encoding", "cp1252", "--lower")
    assert (code, out) == (0, 'käse\tKäsebrett 12"\nsüß\tHonig\n')
    code, _, err = run(tmp_path, *arguments)
    assert code == 1
    assert "a.csv:2: the query is not valid utf-8; name the encoding, such as --encoding" in err
    code, out, err = run(tmp_path, *arguments, "--encoding", "nonsense")
    assert code == 1 and "there is no encoding 'nonsense'" in err
    wide = tmp_path / "w.csv"
    wide.write_text("query,title\ntv,TV\n", encoding="utf-16")
    assert run(tmp_path, wide, "-o", "-")[1] == "tv\tTV\n"
    assert run(tmp_path, wide, "-o", "-", "--encoding", "utf-16")[1] == "tv\tTV\n"
    lines = tmp_path / "w.jsonl"
    lines.write_text('{"query": "tv", "title": "TV"}\n{"query": "Ċ"}\n', encoding="utf-16")
    assert run(tmp_path, lines, "-o", "-", "--encoding", "utf-16")[1] == "tv\tTV\n"
    assert run(tmp_path, lines, "-o", "-")[1] == "tv\tTV\n"
    lines.write_bytes(gzip.compress(b'{"query": "tv", "title": "TV"}'))
    assert (
        "is compressed; unpack it, or let the name of a gzip file end in .gz"
        in run(tmp_path, lines, "-o", "-")[2]
    )


# -- columns and headers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "columns", "header", "expected"),
    [
        ("tv,TV\n", ("1", "2"), None, "tv\tTV\n"),
        ("Search Term,Product_Title\ntv,TV\n", ("1", "2"), None, "tv\tTV\n"),
        ("x,y\ntv,TV\n", ("1", "2"), None, "x\ty\ntv\tTV\n"),
        ("x,y\ntv,TV\n", ("1", "2"), True, "tv\tTV\n"),
        ("x,y\ntv,TV\n", ("x", "2"), None, "tv\tTV\n"),
        ("query,title\ntv,TV\n", ("1", "2"), False, "query\ttitle\t1\ntv\tTV\n"),
        ('"a;b";c;d\n1;TV;tv\n', ("d", "c"), None, "tv\tTV\n"),
        ("2,1\nTV,tv\n", ("1", "2"), None, "tv\tTV\n"),  # a name comes before a number
        (" query , title \ntv,TV\n", ("query", "title"), None, "tv\tTV\n"),
    ],
)
def test_columns_by_name_or_number(tmp_path, text, columns, header, expected):
    path = tmp_path / "c.csv"
    path.write_text(text)
    assert imported(tmp_path, path, columns=Columns(*columns), how=Reading(header=header))[0] == (
        expected
    )


@pytest.mark.parametrize("delimiter", [";", ",", "\t"])
def test_the_first_line_of_excel_names_the_delimiter(tmp_path, delimiter):
    path = tmp_path / "c.csv"
    rows = ["query;title;note", "tv;TV;x,y,z", "a;b"]
    text = "\r\n".join(row.replace(";", delimiter) for row in rows)
    path.write_text(f"sep={delimiter}\r\n" + text.replace("x,y,z", '"x,y,z"'), newline="")
    text, done = imported(tmp_path, path, skip_bad_lines=True, max_lost=1)
    assert text == "tv\tTV\n" and "c.csv:4: 2 columns, not 3" in done.notes[0]
    _, done = imported(tmp_path, path, columns=Columns("1", "2"), skip_bad_lines=True,
                       max_lost=1, how=Reading(header=False))  # fmt: skip
    assert (done.rows, done.lines) == (3, 2)


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (
            "a,b\ntv,TV\n",
            [],
            "c.csv:1: no column looks like the query among a, b; name it with --query-column, or",
        ),
        ("query,title\n", ["--title-column", "3"], "c.csv:1: no column 3; there are 2"),
        ("query,title,title\n", [], "c.csv:1: 2 columns are named 'title'; give a number"),
        ("query,title\n", ["--no-header"], "'query' is a name, and there is no header"),
        ("", [], "c.csv: the input is empty"),
        ("query,title\n", [], "c.csv: nothing to write: no rows"),
        ("query,title\ntv,TV,x\n", [], "c.csv:2: 3 columns, not 2 as in the first row"),
        ('query,title\n"a\nb",c\ntv,"x"y\n', [], "c.csv:4: the quotes do not match"),
        ('query,title\ntv,"TV\ntv,TV\n', [], "c.csv:2: a double quote opens a text that does"),
        (
            "query,title,n\ntv,TV,many\n",
            ["--clicks-column", "n"],
            "c.csv:2: the clicks 'many' are not",
        ),
        ("query,title,n\ntv,TV,-1\n", ["--clicks-column", "n"], "c.csv:2: the clicks '-1' are not"),
        ("query,title\ntv,T\0V\n", [], "c.csv:2: the title has a NUL character"),
        ("query,title\ntv," + "a " * 10_001 + "\n", [], "c.csv:2: the title has 10001 words"),
        ("query,title\n,TV\n", [], "nothing to write: 1 without a query; check the columns"),
        ("query,title\ntv,TV\n", ["--delimiter", ";;"], "the delimiter is ';;'; give one"),
        (
            '[{"query": "tv"}]',
            ["--format", "jsonl"],
            "c.csv:1: not JSON (not an object); write one",
        ),
        ("PAR1\n", [], "is Parquet; give --format parquet"),
        ("query,title\ntv,TV\n", ["--id-column", "title"], "--id-column needs --catalogue"),
        (
            "query,title\ntv,TV\n",
            ["--search-column", "query"],
            "--search-column needs --clicks-column",
        ),
        (
            "query,title\ntv,TV\n",
            ["--position-column", "query"],
            "--position-column needs --search-column",
        ),
        (
            "query,title\ntv,TV\n",
            ["-o", "x", "--write-catalogue", "x"],
            "x: is named for two outputs",
        ),
        ("query,title\ntv,TV\n", ["--min-clicks", "0"], "min_clicks is 0; give an integer"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, arguments, message):
    path = tmp_path / "c.csv"
    path.write_text(text)
    code, out, err = run(tmp_path, path, "-o", tmp_path / "log.tsv", *arguments)
    assert code == 1 and out == "" and message in err
    assert err.count("\n") == 1
    assert {path.name for path in tmp_path.iterdir()} == {"c.csv"}


def test_bad_rows_can_be_counted(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text(
        'query,title\ntv,TV\na,b,c\ntv,"x"y\nok,fine\nbad,\udcff\n', "utf-8", "surrogateescape"
    )
    go_on = ("--skip-bad-lines", "--max-lost", 1)
    code, out, err = run(tmp_path, path, "-o", tmp_path / "log.tsv", *go_on)
    assert code == 0
    assert out.endswith(
        "c.csv: 5 rows, 2 lines written; left out: 3 bad\n"
        "clicks: 2 read, 2 kept; bad rows, whose clicks are not known: 3\n"
    )
    assert "the first bad row: " in err and "c.csv:3: 3 columns" in err
    lines = tmp_path / "c.jsonl"
    lines.write_text(
        '{"query": "a", "title": "b"}\n[1]\n{"query": ["x", "y"], "title": "b"}\nnonsense\n'
    )
    text, done = imported(tmp_path, lines, skip_bad_lines=True, max_lost=1)
    assert text == "a\tb\n" and done.left_out == {"bad": 3}
    with pytest.raises(SentembError, match=r"c.jsonl:2: not JSON \(not an object\)"):
        imported(tmp_path, lines)
    lines.write_text('{"query": "a", "name": "b"}\n')
    with pytest.raises(SentembError, match="no line has 'title'; the first lines have query, name"):
        imported(tmp_path, lines, columns=Columns(title="title"))


def test_quotes_that_are_letters(tmp_path):
    """A log without quoting: a title that begins with a quote must not swallow other rows."""
    path = tmp_path / "c.tsv"
    path.write_text('query\ttitle\n"tv\tTV\n15"\tTV 15"\nsofa"\tSofa\n')
    with pytest.raises(SentembError, match=r"c.tsv:2: a quoted text with tabs ends in line \d"):
        imported(tmp_path, path)
    text, _ = imported(tmp_path, path, how=Reading(quotes=False))
    assert text == '"tv\tTV\n15"\tTV 15"\nsofa"\tSofa\n'


def test_the_first_pair_is_read_back(tmp_path):
    """As line 1 it could look like a header, or like quoted CSV."""
    path = write_csv(tmp_path / "c.csv", [("query", "title"), ("search", "page"), ("tv", "TV")])
    text, _ = imported(tmp_path, path)
    assert text == "search\tpage\t1\ntv\tTV\n"
    assert read_click_log(tmp_path / "log.tsv").queries == ["search", "tv"]
    path = write_csv(tmp_path / "c.csv", [("query", "title"), ('"a b"', '"A B"')])
    with pytest.raises(SentembError, match=r"read as quoted CSV; .* let the name end in \.jsonl"):
        imported(tmp_path, path)
    imported(tmp_path, path, name="log.jsonl")
    assert read_click_log(tmp_path / "log.jsonl").titles == ['"A B"']


def test_a_column_of_clicks_is_not_overlooked(tmp_path):
    path = write_csv(tmp_path / "c.csv", [("query", "title", "Clicks"), ("tv", "TV", 7)])
    assert (
        "each row was counted as one click; for the clicks in Clicks give --clicks-column Clicks"
        in (run(tmp_path, path, "-o", "-")[2])
    )
    assert "note" not in run(tmp_path, path, "-o", "-", "--clicks-column", "Clicks")[2]


def test_counts_and_flags(tmp_path):
    cells = ["1", "3.0", " 2 ", "true", "NO", "false", "0", "0.0"]
    path = write_csv(tmp_path / "c.csv", [("query", "title", "n"), *(("q", c, c) for c in cells)])
    text, done = imported(tmp_path, path, columns=Columns(clicks="n"))
    assert text == "q\t1\nq\t3.0\t3\nq\t2\t2\nq\ttrue\n"
    assert done.left_out == {"without clicks": 4}


@pytest.mark.parametrize(
    ("cell", "clicks"), [("1,000", "1,000"), ("2.000", "2"), (" 999.000", "999")]
)
def test_clicks_that_may_be_thousands_are_read_the_ordinary_way(tmp_path, cell, clicks):
    path = write_csv(tmp_path / "c.csv", [("query", "title", "n"), ("tv", "TV", cell)])
    _, done = imported(tmp_path, path, columns=Columns(clicks="n"))
    assert done.clicks == int(clicks.replace(",", ""))
    assert done.notes == [
        f"clicks such as {cell.strip()} were read as {clicks}; nothing in the column says what the "
        "sign is, so check that"
    ]
    cells = ["3.0", "3,0", "3.00", "3,0000", "1234.000", "0.000"]
    write_csv(path, [("query", "title", "n"), *((cell, "TV", cell) for cell in cells)])
    text, done = imported(tmp_path, path, columns=Columns(clicks="n"))
    assert [line.split("\t")[2] for line in text.splitlines()] == ["3"] * 4 + ["1234"]
    assert done.left_out == {"without clicks": 1}


def test_positions_that_may_be_thousands_are_bad(tmp_path):
    head = ("search", "query", "title", "n", "place")
    columns = Columns(search="search", clicks="n", position="place")
    rows = [("1", "tv", "TV", "1", "2.0"), ("1", "tv", "Radio", "0", "1,000")]
    path = write_csv(tmp_path / "c.csv", [head, *rows])
    with pytest.raises(SentembError, match=r"c\.csv:3: the position '1,000' may be .* thousand"):
        imported(tmp_path, path, columns=columns)


@pytest.mark.parametrize("option", ["-o", "--write-catalogue"])
@pytest.mark.parametrize("name", ["new.parquet", "new.PQ"])
def test_no_text_gets_a_name_of_parquet(tmp_path, option, name):
    """A reader of the file would take it for what its name says."""
    path = write_csv(tmp_path / "c.csv", [("query", "title"), ("tv", "TV")])
    outputs = {"-o": tmp_path / "log.tsv", "--write-catalogue": tmp_path / "titles.tsv"}
    outputs[option] = tmp_path / name
    code, _, err = run(tmp_path, path, *itertools.chain(*outputs.items()))
    assert code == 1 and f"{name}: is not written as Parquet; let its name end in .tsv" in err
    assert [one.name for one in tmp_path.iterdir()] == ["c.csv"]


def test_an_output_that_exists_needs_force(tmp_path):
    path = write_csv(tmp_path / "c.csv", [("query", "title"), ("tv", "TV")])
    (tmp_path / "log.tsv").write_text("mine\n")
    code, _, err = run(tmp_path, path, "-o", tmp_path / "log.tsv")
    assert code == 1 and "log.tsv: exists; name another file or use --force" in err
    assert run(tmp_path, path, "-o", tmp_path / "log.tsv", "--force")[0] == 0
    text, _ = imported(tmp_path, path, name="log.jsonl")
    assert json.loads(text) == {"query": "tv", "clicked": ["TV"]}
    assert read_click_log(tmp_path / "log.jsonl").titles == ["TV"]


# -- minimum of clicks ------------------------------------------------------------------------


@settings(deadline=None, max_examples=25)
@given(
    pairs=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xy"), st.integers(1, 4))),
    least=st.integers(2, 6),
    held=st.integers(1, 5),
)
def test_pairs_are_summed_in_a_file(tmp_path_factory, pairs, least, held):
    from unittest import mock

    from sentemb.data.importers import pair_sums

    sums = {}
    for query, title, clicks in pairs:
        sums[query, title] = sums.get((query, title), 0) + clicks
    kept = [(*pair, clicks) for pair, clicks in sums.items() if clicks >= least]
    with mock.patch.object(pair_sums, "_HELD", held), pair_sums.PairSums() as found:
        for pair in pairs:
            found.add(*pair)
        assert list(found.pairs(least)) == kept
        assert len(found) == len(sums)


def test_rare_pairs_are_left_out(tmp_path):
    rows = [("query", "title"), ("tv", "TV"), ("sofa", "Sofa"), ("tv", "TV")]
    paths = [write_csv(tmp_path / name, rows) for name in ("a.csv", "b.csv")]
    text, done = imported(tmp_path, *paths, min_clicks=3)
    assert text == "tv\tTV\t4\n" and done.left_out == {"pairs with too few clicks": 1}
    huge = write_csv(tmp_path / "h.csv", [("q", "t", "n"), *[("tv", "TV", 6 * 10**11)] * 2])
    with pytest.raises(SentembError, match="add up to more than"):
        imported(tmp_path, huge, columns=Columns("q", "t", clicks="n"), min_clicks=2)


# -- joins ------------------------------------------------------------------------------------


PRODUCTS = [("sku", "name"), ("1", 'TV, 15"'), ("2", "Sofa"), ("3", ""), ("2", "Couch"), ("", "x")]


def test_titles_are_joined_by_id(tmp_path):
    catalogue = write_csv(tmp_path / "p.csv", PRODUCTS)
    clicks = [
        ("query", "sku"),
        ("tv", "1"),
        ("sofa", " 2 "),
        ("bed", "3"),
        ("mug", "77"),
        ("a", ""),
    ]
    path = write_csv(tmp_path / "c.csv", clicks)
    out, titles = tmp_path / "log.tsv", tmp_path / "titles.tsv"
    code, said, notes = run(
        tmp_path, path, "-o", out, "--id-column", "sku", "--catalogue", catalogue,
        "--title-column", "name", "--write-catalogue", titles, "--max-lost", 0.5,
    )  # fmt: skip
    assert code == 0 and out.read_text() == 'tv\tTV, 15"\t1\t1\nsofa\tSofa\t1\t2\n'
    assert said.endswith(
        "c.csv: 5 rows, 2 lines written, 2 titles in the catalogue; "
        "left out: 2 with an id that has no title, 1 without an id\n"
        "clicks: 5 read, 2 kept; lost: 2 with an id that has no title, 1 without an id\n"
    )
    for note in (
        "rows without a title were left out: 1\n",
        "rows without an id were left out: 1\n",
        "rows with an id that already has another title were left out: 1; if the locale belongs",
        "the first id without a title: '3'\n",
    ):
        assert note in notes
    assert read_texts(titles) == (["1", "2"], ['TV, 15"', "Sofa"])
    # The file that was written is itself a catalogue.
    columns = Columns(id="sku", catalogue_id="1", title="2")
    text, _ = imported(tmp_path, path, columns=columns, catalogue=titles, max_lost=1, name="again")
    assert text == out.read_text()


def test_a_join_of_other_formats(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    # pandas writes integers as floats where some are missing.
    table = pyarrow.table({"q": ["tv", "sofa", None], "product": [{"id": 1.0}, {"id": 2.0}, None]})
    write_table(table, tmp_path / "c.parquet")
    (tmp_path / "p.jsonl").write_text('{"id": 1, "t": "TV"}\n{"id": 2, "t": "Sofa"}\n')
    columns = Columns("q", "t", id="product.id", catalogue_id="id")
    text, done = imported(
        tmp_path, tmp_path / "c.parquet", columns=columns, catalogue=tmp_path / "p.jsonl"
    )
    assert text == "tv\tTV\t1\t1\nsofa\tSofa\t1\t2\n" and done.left_out == {"without a query": 1}
    with pytest.raises(SentembError, match=r"c.parquet:1: no column 'x' among q, product.id; name"):
        imported(tmp_path, tmp_path / "c.parquet", columns=Columns("x", "q"))
    (tmp_path / "d.parquet").write_bytes(b"PAR1 and then nothing")
    with pytest.raises(SentembError, match=r"d.parquet: not a whole Parquet file"):
        imported(tmp_path, tmp_path / "d.parquet")


def test_numbers_and_dates_of_parquet_become_texts(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    moment = datetime.datetime(2026, 3, 1, 9, 30)
    table = {
        "q": [moment.date(), None],
        "t": [moment, moment],
        "n": [decimal.Decimal("5.000"), decimal.Decimal("2.000")],
        "id": [decimal.Decimal("0.0000001"), decimal.Decimal("12.5")],
    }
    write_table(pyarrow.table(table), tmp_path / "c.parquet")
    titles = tmp_path / "t.tsv"
    text, done = imported(
        tmp_path,
        tmp_path / "c.parquet",
        columns=Columns("q", "t", id="id", clicks="n"),
        write_catalogue=titles,
    )
    assert text == "2026-03-01\t2026-03-01T09:30:00\t5\t0.0000001\n"
    assert titles.read_text() == "id\ttitle\n0.0000001\t2026-03-01T09:30:00\n"
    assert done.left_out == {"without a query": 1}


def test_white_space_in_ids(tmp_path):
    rows = [("id", "title"), ("a  1", "One"), ("b", "Two")]
    catalogue = write_csv(tmp_path / "p.csv", rows)
    path = write_csv(tmp_path / "c.csv", [("query", "id"), ("one", "a  1"), ("two", "b")])
    given = {"columns": Columns(id="id"), "catalogue": catalogue}
    text, _ = imported(tmp_path, path, **given, write_catalogue=tmp_path / "t.tsv")
    assert text == "one\tOne\t1\ta_1\ntwo\tTwo\t1\tb\n"
    assert read_texts(tmp_path / "t.tsv")[0] == ["a_1", "b"]
    write_csv(catalogue, [*rows, ("a_1", "Three")])
    with pytest.raises(
        SentembError, match=r"p.csv:4: the ids 'a_1' and 'a  1' would both be 'a_1'"
    ):
        imported(tmp_path, path, **given)


def test_the_catalogue_of_a_log(tmp_path):
    rows = [("query", "title", "id"), ("tv", "TV", "7"), ("telly", "TV new", "7"), ("x", "Y", "8")]
    path = write_csv(tmp_path / "c.csv", rows)
    titles = tmp_path / "t.tsv"
    imported(tmp_path, path, columns=Columns(id="id"), write_catalogue=titles)
    assert read_texts(titles) == (["7", "8"], ["TV new", "Y"])
    imported(tmp_path, path, write_catalogue=titles)
    assert read_texts(titles) == (["t1", "t2", "t3"], ["TV", "TV new", "Y"])
    # Both files or none.
    titles.unlink()
    write_csv(path, [*rows, ("a", "b", "c", "d")])
    with pytest.raises(SentembError, match="4 columns"):
        imported(tmp_path, path, write_catalogue=titles)
    assert not titles.exists()


@pytest.mark.parametrize("id", ["id", None])
def test_the_catalogue_of_a_log_has_the_titles_that_are_written(tmp_path, id):
    head = ("query", "title", "clicks", "id")
    rows = [("tv", "TV", 2, "1"), ("", "A", 1, "2"), ("bed", "B", 0, "3"), ("tv", "C", 1, "4")]
    path, titles = write_csv(tmp_path / "c.csv", [head, *rows]), tmp_path / "t.tsv"
    columns = Columns(id=id, clicks="clicks")
    imported(tmp_path, path, columns=columns, write_catalogue=titles)
    assert read_texts(titles)[1] == ["TV", "C"]
    imported(tmp_path, path, columns=columns, write_catalogue=titles, min_clicks=2)
    assert read_texts(titles)[1] == (["TV", "C"] if id else ["TV"])
    searches = write_csv(tmp_path / "s.csv", SHOWN)
    columns = Columns(id=id and "title", clicks="clicked", search="search", position="position")
    imported(tmp_path, searches, columns=columns, write_catalogue=titles, name="log.jsonl")
    assert read_texts(titles)[1] == ["A", "B", "C", "F", "G"]


# -- shown results ----------------------------------------------------------------------------


SHOWN = [
    ("search", "query", "title", "position", "clicked"),
    ("s1", "tv", "A", 1, "false"),
    ("s1", "tv", "B", 3, "true"),
    ("s1", "tv", "C", 2, "false"),
    ("s1", "tv", "D", 4, "false"),
    ("s1", "tv", "A", 5, "false"),
    ("s2", "sofa", "E", 1, "false"),
    ("s2", "bed", "F", 1, "2"),
    ("s2", "bed", "G", 2, "true"),
]


def test_shown_results_give_skipped_titles(tmp_path):
    path = write_csv(tmp_path / "c.csv", SHOWN)
    columns = Columns(clicks="clicked", search="search")
    text, done = imported(tmp_path, path, columns=columns, name="log.jsonl")
    first = {"query": "tv", "clicked": ["B"]}
    second = {"query": "bed", "clicked": ["F", "G"], "clicks": [2, 1]}
    records = [json.loads(line) for line in text.splitlines()]
    assert records == [first | {"skipped": ["A", "C", "D"]}, second]
    assert done.left_out == {"searches without a click": 1} and done.lines == 2
    columns = Columns(clicks="clicked", search="search", position="position")
    text, _ = imported(tmp_path, path, columns=columns, name="log.jsonl")
    assert json.loads(text.splitlines()[0]) == first | {"skipped": ["A", "C"]}
    log = read_click_log(tmp_path / "log.jsonl")
    assert [log.titles[place] for place in log.skipped_index] == ["A", "C"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([*SHOWN, SHOWN[1]], r"c.csv:10: the search 's1' appears again after others; sort"),
        ([*SHOWN, ("s3", "a", "b", "top", "1")], "c.csv:10: the position 'top' is not a number"),
    ],
)
def test_bad_searches_are_named(tmp_path, rows, message):
    path = write_csv(tmp_path / "c.csv", rows)
    columns = Columns(clicks="clicked", search="search", position="position")
    with pytest.raises(SentembError, match=message):
        imported(tmp_path, path, columns=columns)


def test_a_search_of_endless_rows_is_refused(tmp_path):
    rows = [("query", "title", "s", "n"), *[("tv", "TV", "1", "0")] * 10_001]
    path = write_csv(tmp_path / "c.csv", rows)
    with pytest.raises(SentembError, match=r"c.csv:2: the search '1' has more than 10,000 rows"):
        imported(tmp_path, path, columns=Columns(clicks="n", search="s"))


# -- the page ---------------------------------------------------------------------------------


def test_the_page_names_options_that_exist():
    page = (Path(__file__).parents[1] / "docs" / "importing.md").read_text(encoding="utf-8")
    context = click.Context(main)
    # The page names the command that writes recorded searches.
    commands = [main.get_command(context, name) for name in ("import", "serve")]
    sets = main.get_command(context, "data").commands
    options = {
        name
        for command in (*commands, *sets.values())
        for parameter in command.params
        for name in (*parameter.opts, *parameter.secondary_opts)
    }
    assert set(re.findall(r"--[a-z][a-z-]+", page)) <= options
    named = re.findall(r"`sentemb data ([a-z]+)`", page)
    assert {"onet", "beir"} <= set(named) <= set(sets)


def test_the_page_s_command_for_orcas_reads_its_columns(tmp_path, monkeypatch):
    page = (Path(__file__).parents[1] / "docs" / "importing.md").read_text(encoding="utf-8")
    command = re.search(r"sentemb (import orcas.*\n.*)\n", page)[1].replace("\\\n", "")
    monkeypatch.chdir(tmp_path)
    with gzip.open("orcas.tsv.gz", "wt") as file:
        file.write('1\tblue "sky\tD1\thttp://a\n2\ttap\tD2\thttp://b\n')
    Path("documents.tsv").write_text("D1\tThe Blue Sky\nD2\tTaps\nD3\t\n")
    done = CliRunner().invoke(main, shlex.split(command))
    assert done.exit_code == 0, done.output
    assert Path("pairs.tsv").read_text() == 'blue "sky\tThe Blue Sky\t1\tD1\ntap\tTaps\t1\tD2\n'
    assert Path("titles.tsv").read_text() == "id\ttitle\nD1\tThe Blue Sky\nD2\tTaps\n"


# -- memory -----------------------------------------------------------------------------------


_PEAK = """
import sys
from sentemb.data.importers.click_table import Columns, import_clicks

columns = Columns(clicks="clicks")
import_clicks([sys.argv[1]], "/dev/null", columns, min_clicks=int(sys.argv[2]), force=True)
with open("/proc/self/status") as file:
    print(next(line for line in file if line.startswith("VmHWM")).split()[1])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
@pytest.mark.parametrize(("least", "growth"), [(1, 2_000), (2, 60_000)])
def test_memory_does_not_grow_with_the_file(tmp_path, least, growth):
    """Distinct pairs, 300,000 and 1,200,000; for sums the bound is the cache of the database."""
    peaks = []
    for n_rows in (300_000, 1_200_000):
        path = tmp_path / f"{n_rows}.csv"
        with open(path, "w") as file:
            file.write("query,title,clicks\n")
            file.writelines(f"query {row},The title of product {row},2\n" for row in range(n_rows))
        peaks.append(int(run_python(_PEAK, path, least, check=True).stdout))
    assert peaks[1] - peaks[0] < growth, peaks


# -- a messy shop ----------------------------------------------------------------------------------


_ONE_TEXT = """
import sys
import pyarrow
from pyarrow.parquet import write_table
from sentemb import SentembError
from sentemb.data.importers.click_table import Columns, import_clicks

text = pyarrow.array(["w " * (1 << 19)])
query = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * 16_384, pyarrow.int32()), text)
write_table(pyarrow.table({"query": query, "title": ["t"] * 16_384}), "one.parquet")
try:
    import_clicks(["one.parquet"], "log.tsv", Columns())
except SentembError as error:
    print(error)
print(pyarrow.default_memory_pool().max_memory() >> 20)
"""


def test_parquet_with_one_long_text_for_all_rows_does_not_fill_the_memory(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    error, megabytes = run_python(_ONE_TEXT, check=True).stdout.splitlines()
    assert "one.parquet: row 1: the query has 524288 words" in error
    assert int(megabytes) < 300


def rounded(number):
    """A number as a spreadsheet shows it in a narrow column, such as 1,29E+05."""
    return f"{number:.2e}".replace(".", ",").upper()


def messy_shop(folder, names):
    """Clicks and a catalogue with what spreadsheets and web shops do to texts and ids."""
    ids = [f"{7 * number:05d}" for number in range(1, len(names) + 1)]
    rows = [f'{id};"{html.escape(name)}"' for id, name in zip(ids, names, strict=True)]
    (folder / "products.csv").write_text("\ufeffSKU;Name\n" + "\n".join([*rows, "99999;"]) + "\n")
    clicks = []
    for number, (id, name) in enumerate(zip(ids, names, strict=True)):
        damaged = [id, id.lstrip("0"), f"{id.lstrip('0')},0", rounded(int(id))][number % 4]
        clicks.append(f'"{html.escape(html.escape(name.lower()))}";{damaged};2,0')
    (folder / "clicks.csv").write_text("Query;SKU;Clicks\n" + "\n".join(clicks) + "\n")
    return ids


def import_shop(folder, *more):
    return CliRunner().invoke(main, [
        "import", str(folder / "clicks.csv"), "-o", str(folder / "log.tsv"), "--id-column", "sku",
        "--clicks-column", "clicks", "--catalogue", str(folder / "products.csv"),
        "--title-column", "name", "--max-lost", "1", *more,
    ])  # fmt: skip


def test_a_messy_shop_is_repaired_where_that_is_certain(tmp_path):
    names = [f'Saw "{number}" & blade' for number in range(1, 13)]
    ids = messy_shop(tmp_path, names)
    with (tmp_path / "clicks.csv").open("a") as file:
        file.write("saw;1,00E+09;1\nsaw;4711;1\n")
    result = import_shop(tmp_path)
    assert result.exit_code == 0
    lines = (tmp_path / "log.tsv").read_text().splitlines()
    pairs = zip(names, ids, strict=True)
    assert lines == [f"{name.lower()}\t{name}\t2\t{id}" for name, id in pairs]
    assert "9 rows were repaired (14 for 00014); export the column as text" in result.output
    assert "24 rows had entities of HTML" in result.output
    assert (
        "the first product without a title: " in result.output
        and "products.csv:14" in result.output
    )
    assert "left out: 2 with an id that has no title" in result.output


def test_an_id_that_several_products_fit_is_not_repaired(tmp_path):
    messy_shop(tmp_path, [f"saw {number}" for number in range(40_001)])
    (tmp_path / "clicks.csv").write_text("query,sku,clicks\na,7,1\nb,1.29E+05,1\nc,1.299E+05,1\n")
    result = import_shop(tmp_path)
    assert (tmp_path / "log.tsv").read_text() == "a\tsaw 0\t1\t00007\n"
    assert "1 rows were repaired, 2 could be several products (7 for 00007)" in result.output
    (tmp_path / "products.csv").write_text("sku,name\n1.29E+05,a\n1.29E+05,b\n7,c\n")
    assert "products.csv: 2 rows have an id that a spreadsheet rounded" in import_shop(
        tmp_path, "--force"
    ).output.replace("\n", " ")


@pytest.mark.parametrize(("number", "shown"), [
    (128_500, "1,29E+05"), (999_999, "1,00E+06"), (5, "5,00E+00"), (1234, "1.2E+3"), (7, "7E+00"),
])  # fmt: skip
def test_rounded_ids_are_found(number, shown):
    assert DamagedIds([f"{number:07d}", "77000000"]).repair(shown) == f"{number:07d}"


@pytest.mark.parametrize("id", ["1E", "E+05", "1,2,3", "", "0", "9" * 5000, "1E+999", "abc", "٣"])
def test_other_ids_are_not(id):
    assert DamagedIds(["00012", "9" * 5000, "x"]).repair(id) == ""


def test_an_id_that_may_be_thousands_is_not_repaired():
    ids = DamagedIds(["1", "1000", "0012", "1234"])
    repaired = [ids.repair(id) for id in ("1.000", "12,000", "1,00", "12.0", "1234.000")]
    assert repaired == ["", "", "1", "0012", "1234"]


@pytest.mark.slow
def test_a_messy_shop_of_real_names(tmp_path):
    path = Path(__file__).parents[2] / "shared/data/onet_27_0_text/Tools Used.txt"
    if not path.exists():
        pytest.skip(f"needs {path}")
    rows = path.read_text("utf-8").splitlines()[1:]
    names = list(dict.fromkeys(row.split("\t")[1] for row in rows))[:9000]
    messy_shop(tmp_path, names)
    assert import_shop(tmp_path).exit_code == 0
    pairs = [line.split("\t") for line in (tmp_path / "log.tsv").read_text("utf-8").splitlines()]
    assert len(pairs) > 0.75 * len(names)
    assert all(query == title.lower() for query, title, _ in pairs)


@pytest.mark.parametrize(("header", "column", "message"), [
    ("QUERY,Title", "query", None),
    ("Qeury,Title", "query", "did you mean Qeury? Name one of these"),
    ("query,Query,QUERY,title", "QuerY", "3 columns are named"),
    ("x,title", "query", "among x, title; name one of these"),
])  # fmt: skip
def test_columns_are_found_without_case(tmp_path, header, column, message):
    (tmp_path / "log.csv").write_text(f"{header}\n" + ",".join("abcd"[: header.count(",") + 1]))
    result = CliRunner().invoke(main, [
        "import", str(tmp_path / "log.csv"), "-o", str(tmp_path / "out.tsv"),
        "--query-column", column,
    ])  # fmt: skip
    assert (result.exit_code == 0) == (message is None) and (message or "") in result.output
    record = dict.fromkeys(header.split(","), "a")
    (tmp_path / "log.jsonl").write_text(json.dumps(record) + "\n")
    arguments = ["import", str(tmp_path / "log.jsonl"), "-o", "-", "--query-column", column]
    assert (CliRunner().invoke(main, arguments).exit_code == 0) == (message is None)


def test_entities_are_not_cut_at_a_semicolon(tmp_path):
    table = tmp_path / "c.csv"
    table.write_text(
        "query;title;clicks\n"
        "drill;Drill &quot;Max&quot; 5&#39;;3\n"
        "a;b;c;d\n"
        "Tom &amp; Jerry;AT&T;2\n"
        "saw;R&D;Saw;1\n"
    )
    columns = Columns("query", "title", clicks="clicks")
    text, done = imported(tmp_path, table, columns=columns, skip_bad_lines=True, max_lost=1)
    assert text.splitlines() == ['drill\tDrill "Max" 5\'\t3', "Tom & Jerry\tAT&T\t2"]
    assert done.left_out[BAD] == 2 and done.rows == 4


def test_a_table_that_is_given_twice_counts_no_clicks_twice(tmp_path, monkeypatch):
    path, link = tmp_path / "c.csv", tmp_path / "link.csv"
    path.write_text("query,title,id\ntv,TV,1\n")
    link.symlink_to(path)
    for files in ([path, path], [path, link]):
        with pytest.raises(SentembError, match=r"c.csv: is given twice|link.csv: is given twice"):
            import_clicks(files, tmp_path / "log.tsv", Columns())
    for files, catalogue in ((["-", "-"], None), (["-"], "-")):
        with pytest.raises(SentembError, match="standard input: is given twice; give it once"):
            import_clicks(files, tmp_path / "log.tsv", Columns(), catalogue=catalogue)
    import_clicks([path], tmp_path / "log.tsv", Columns(), catalogue=path)
    assert (tmp_path / "log.tsv").read_text() == "tv\tTV\t1\t1\n"
