"""Recorded searches and clicks: nothing lost, nothing twice, insights, import."""

import contextlib
import http.client
import json
import multiprocessing
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import Request, urlopen

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_texts, run_python
from hypothesis import given, settings
from hypothesis import strategies as st

from sentemb import Index, SentembError
from sentemb.analysis.insights import insights
from sentemb.bridges.server.app import create_app
from sentemb.cli import main
from sentemb.data.click_log import read_click_log
from sentemb.data.importers.click_table import Columns, import_clicks
from sentemb.data.importers.guessing import guess_columns
from sentemb.data.record_file import (
    _APPLICATION,
    _FIRST_TABLES,
    RecordFile,
    changing_record,
    is_record,
)
from sentemb.data.record_merge import merge_records
from sentemb.data.search_record import (
    COMMON,
    Searched,
    SearchRecord,
    record_rows,
)
from sentemb.search.searcher import BELOW_FLOOR, NO_PRODUCT, NO_TITLES, NOTHING_KNOWN

DOCS = Path(__file__).parents[1] / "docs"
TITLES = made_up_texts(np.random.default_rng(1), [3] * 50)


def searched(query, ids="abc", no_match=None, milliseconds=2.0):
    return Searched(query, [(id, f"title {id}") for id in ids], no_match, milliseconds)


def rows(path, all_shown=True):
    return [row[:4] + row[5:6] for row in record_rows(path, all_shown)]


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.stdout + result.stderr


@pytest.fixture
def path(tmp_path):
    return tmp_path / "searches.sqlite"


def test_searches_and_clicks_are_read_as_they_were_made(path):
    record = SearchRecord(path)
    first, second = record.add_searches([searched(" two \t words\0"), searched("other", "ca")])
    assert record.add_click(first, "b") and record.add_click(second, "c")
    assert record.add_click(first, "b")  # the second click on a title changes nothing
    assert not record.add_click(first, "z") and not record.add_click("no such search", "b")
    expected = [
        ("two words", "title a", "a", 0, 1),
        ("two words", "title b", "b", 1, 2),
        ("two words", "title c", "c", 0, 3),
        ("other", "title c", "c", 1, 1),
        ("other", "title a", "a", 0, 2),
    ]
    assert rows(path) == expected  # while it is open
    assert rows(path, all_shown=False) == [row for row in expected if row[3]]
    record.close()
    assert SearchRecord(path).add_click(second, "a")  # a record is continued
    assert rows(path)[4][3] == 1
    assert path.stat().st_mode & 0o077 == 0


def made_by_version_1(path):
    """A record with one search, as sentemb 1.0 wrote it."""
    with contextlib.closing(sqlite3.connect(path)) as base:
        for statement in _FIRST_TABLES:
            base.execute(statement)
        base.execute(f"PRAGMA application_id={_APPLICATION}")
        base.execute("PRAGMA user_version=1")
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("INSERT INTO searches VALUES (1, 'first', 1.5, 'old', NULL, 2.0)")
        base.execute("INSERT INTO titles VALUES (1, 'a', 'title a')")
        base.execute("INSERT INTO shown VALUES (1, 1, 1, 3.5)")
        base.commit()


def test_records_of_version_1_are_read_and_continued(path):
    made_by_version_1(path)
    assert rows(path) == [("old", "title a", "a", 1, 1)]
    assert insights(path).clicked == 1
    record = SearchRecord(path)
    by = ("model", "")
    record.add_searches(
        [searched("new", "a"), Searched("x", [("a", "title a")], None, 1.0, 1, [2.5], by)]
    )
    record.add_searches([Searched("y", [("a", "title a")], None, 1.0, 1, [0.5], by)])
    record.close()
    assert [row[0] for row in rows(path)] == ["old", "new", "x", "y"]
    with contextlib.closing(sqlite3.connect(path)) as base:
        assert base.execute("SELECT score FROM shown").fetchall() == [
            (None,),
            (None,),
            (2.5,),
            (0.5,),
        ]
        assert base.execute("SELECT answered_by FROM searches").fetchall() == [
            (None,),
            (None,),
            (1,),
            (1,),
        ]
        assert base.execute("SELECT * FROM indexes").fetchall() == [(1, *by)]


def test_titles_that_change_keep_the_text_that_was_shown(path):
    record = SearchRecord(path)
    for title in ("old", "new"):
        (name,) = record.add_searches([Searched("q", [("a", title)], None, 1.0)])
        record.add_click(name, "a")
    assert [row[1] for row in rows(path)] == ["old", "new"]


def test_a_search_that_cannot_be_written_leaves_nothing(path):
    record = SearchRecord(path)
    with pytest.raises(SentembError, match=r"searches\.sqlite: is damaged"):
        record.add_searches([searched("a"), Searched("b", [], None, None)])
    record.add_searches([searched("c")])
    assert {row[0] for row in rows(path)} == {"c"}
    record.close()
    path.unlink()
    path.mkdir()
    with pytest.raises(SentembError, match="Is a directory"):
        SearchRecord(path)


def test_only_records_are_continued_or_read(path):
    path.write_bytes(b"query\ttitle\n")
    before = path.read_bytes()
    for use in (SearchRecord, insights, lambda path: list(record_rows(path, True))):
        with pytest.raises(SentembError, match="not a record of searches"):
            use(path)
    path.unlink()
    sqlite3.connect(path).execute("CREATE TABLE t (a)").connection.close()
    with pytest.raises(SentembError, match="is a folder; give the record in it"):
        insights(path.parent)
    with pytest.raises(SentembError, match="not a record"):
        SearchRecord(path)
    assert not is_record(path) and before
    path.unlink()
    with pytest.raises(SentembError, match="no such file"):
        insights(path)


@pytest.mark.parametrize("version", [-1, 0, 3])
def test_a_record_of_another_version_is_named_and_left_as_it_is(path, tmp_path, version):
    record = SearchRecord(path)
    (name,) = record.add_searches([searched("a")])
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version={version}")
    own = tmp_path / "own.sqlite"
    SearchRecord(own).close()
    uses = [
        lambda: record.add_searches([searched("b")]),  # it was changed while it was open
        lambda: record.add_click(name, "a"),
        lambda: SearchRecord(path),
        lambda: insights(path),
        lambda: import_clicks([own, path], tmp_path / "log.tsv", Columns()),
    ]
    for use in uses:
        with pytest.raises(SentembError, match=rf"\.sqlite: a record of version {version},"):
            use()
    record.close()
    with contextlib.closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version=2")
    assert [row[0] for row in rows(path)] == ["a"] * 3
    assert not (tmp_path / "log.tsv").exists()


_READ = """
import os, sys
from sentemb.data.search_record import record_rows

if not os.getuid():  # permissions do not bind root
    os.setuid(65534)
print(len(list(record_rows(sys.argv[1], all_shown=True))))
"""


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="no such permissions on this system")
def test_a_record_in_a_folder_that_cannot_be_written_is_read():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "searches.sqlite")
        record = SearchRecord(path)
        record.add_searches([searched("desk")])
        changes = Path(f"{path}-wal").read_bytes()
        record.close()
        path.chmod(0o644)
        os.chmod(folder, 0o555)
        assert run_python(_READ, path, check=True).stdout == "3\n"
        os.chmod(folder, 0o755)
        Path(f"{path}-wal").write_bytes(changes)  # what they say would be lost
        os.chmod(folder, 0o555)
        assert "searches.sqlite: cannot be used: " in run_python(_READ, path).stderr
        os.chmod(folder, 0o755)


@pytest.mark.parametrize("at", [90, 4096, 9000, 20000])
def test_damage_is_an_error_of_the_file(path, at):
    record = SearchRecord(path)
    record.add_searches([searched(f"query {k}", "abcdefgh") for k in range(200)])
    record.close()
    whole = bytearray(path.read_bytes())
    whole[at : at + 3000] = b"\xff" * 3000
    path.write_bytes(whole)
    messages = []
    for use in (insights, lambda path: list(record_rows(path, True))):
        try:
            use(path)
        except SentembError as error:
            messages.append(str(error))
    assert all(message.startswith(f"{path}: ") for message in messages)
    assert len(messages) == 2 or at > 4096  # further on SQLite need not notice


def test_rare_queries_have_no_text_in_an_anonymous_record(path):
    record = SearchRecord(path, anonymous=True)
    for _ in range(COMMON + 1):
        record.add_searches([searched("common"), searched("Common")])
    (name,) = record.add_searches([searched("name of a person")])
    assert record.add_click(name, "a")
    record.close()
    assert b"person" not in path.read_bytes()
    result = insights(path)
    assert result.searches == 2 * COMMON + 3
    assert result.without_text == COMMON  # the first COMMON - 1, and the name
    (common,) = result.popular
    assert (common.query, common.searches) == ("common", COMMON + 3)
    # A query that the record has is common after a restart, too.
    SearchRecord(path, anonymous=True).add_searches([searched("common")])
    assert insights(path).popular[0].searches == COMMON + 4


def test_a_query_that_is_clicked_like_others_loses_less_than_one_that_never_is(path):
    """However often it is searched: not every search for a right title ends with a click."""
    record = SearchRecord(path)
    names = record.add_searches([searched("oak desk")] * 100 + [searched("lamp")] * 20)
    for name in names[:70]:
        record.add_click(name, "a")
    lost = [(query.query, query.lost) for query in insights(path).lost]
    assert lost == [("lamp", 20), ("oak desk", 30)]


def test_insights_count_what_happened(path):
    record = SearchRecord(path)
    names = record.add_searches([searched("Oak desk", milliseconds=9.0)] * 2)
    names += record.add_searches([searched("oak desk"), searched("lamp")])
    for reason in (NOTHING_KNOWN, NO_TITLES, NO_PRODUCT):
        record.add_searches([searched("lamp", "", reason)])
    record.add_searches([searched("chair"), searched("qqq", "", BELOW_FLOOR)])
    record.add_searches([searched("rug", "", "every score is below 0.5")])
    record.add_click(names[0], "b")
    record.add_click(names[0], "c")
    record.add_click(names[2], "a")
    result = insights(path)
    assert (result.searches, result.queries, result.without_text) == (10, 5, 0)
    assert result.clicked == pytest.approx(2 / 10)
    assert result.reciprocal_rank == pytest.approx((1 / 2 + 1) / 10)
    assert [(q.query, q.searches, q.clicked) for q in result.popular][:2] == [
        ("lamp", 4, 0),
        ("oak desk", 3, 2),
    ]
    assert [(q.query, q.nothing_found, q.below_floor) for q in result.nothing_found] == [
        ("lamp", 3, 0)
    ]
    assert [(q.query, q.nothing_found) for q in result.below_floor] == [("qqq", 0), ("rug", 0)]
    # Searches that found nothing are lost too, and a click does not hide the others.
    lost = [(q.query, q.lost, q.shown_first) for q in result.lost]
    assert lost[0] == ("lamp", 4, "title a") and sum(n for _, n, _ in lost) == 8
    assert ("oak desk", 1, "title a") in lost and ("qqq", 1, None) in lost
    assert "without a click" in run("insights", path) and "nothing" in run("insights", path)
    assert result.slow[0].query == "oak desk"
    assert result.slow[0].milliseconds == pytest.approx(20 / 3)
    assert result.milliseconds == {"p50": 2.0, "p95": 9.0, "p99": 9.0}
    assert "oak desk" in run("insights", path) and "2 with" not in run("insights", path)
    assert json.loads(run("insights", path, "--json", "-k", 1))["popular"][0]["searches"] == 4
    assert len(insights(path, 1).popular) == 1


def test_insights_leave_earlier_searches_out(path, monkeypatch):
    record = SearchRecord(path)
    days = [datetime(2026, 10, 31, 23, 59, tzinfo=UTC), datetime(2026, 11, 1, tzinfo=UTC)]
    for day, query in zip(days, ("desk", "lamp"), strict=True):
        monkeypatch.setattr(time, "time", day.timestamp)
        record.add_searches([searched(query)])
    assert [q.query for q in insights(path, since=days[1]).popular] == ["lamp"]
    assert insights(path, since=days[0]).searches == insights(path).searches == 2
    told = json.loads(run("insights", path, "--since", "2026-11-01", "--json"))
    assert told["searches"] == 1 and told["first"].startswith("2026-11-01")
    assert run("insights", path, "--since", "2027-01-01") == "no searches yet\n"


def test_an_empty_record_has_no_searches_yet(path):
    SearchRecord(path).close()
    assert run("insights", path) == "no searches yet\n"


@pytest.mark.parametrize("more", [{}, {"clicks": "clicks", "search": "search"}])
def test_a_record_without_clicks_says_so(path, tmp_path, more):
    SearchRecord(path).add_searches([searched("desk")])
    with pytest.raises(SentembError, match="nobody has clicked a result yet"):
        import_clicks([path], tmp_path / "new.tsv", Columns(**more))


def test_a_record_is_imported_as_a_click_log(path, tmp_path):
    record = SearchRecord(path)
    for query, clicked in (("desk", "b"), ("desk", "b"), ("lamp", "ac"), ("chair", "")):
        (name,) = record.add_searches([searched(query)])
        for id in clicked:
            record.add_click(name, id)
    log = tmp_path / "new.tsv"
    done = import_clicks([path], log, Columns())
    assert (done.rows, done.lines, done.notes) == (4, 4, [])
    assert sum(read_click_log(log).clicks) == 4
    columns = Columns(clicks="clicks", search="search", position="position")
    done = import_clicks([path], tmp_path / "log.jsonl", columns)
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line.get("skipped") for line in records] == [["title a"], ["title a"], ["title b"]]
    catalogue = tmp_path / "titles.tsv"
    run("import", path, "-o", tmp_path / "l.tsv", "--id-column", "id", "--write-catalogue",
        catalogue)  # fmt: skip
    names, *lines = catalogue.read_text().splitlines()
    assert (names, sorted(lines)) == ("id\ttitle", [f"{id}\ttitle {id}" for id in "abc"])
    catalogue.write_text("id\ttitle\na\ttitle a\nb\tnew name of b\nc\ttitle c\n")
    for file in ("serve.md", "howto/fresh.md"):
        (line,) = re.findall(r"^sentemb (import .*)", (DOCS / file).read_text("utf-8"), re.M)
        names = {"searches.sqlite": path, "titles.tsv": catalogue, "new-clicks.tsv": log}
        run(*(names.get(word, word) for word in line.split()), "--force")
        assert "desk\tnew name of b\t1\tb\n" in log.read_text()
    assert "no column" in run(
        "import", path, "-o", tmp_path / "x", "--title-column", "name", code=1
    )


def test_searches_before_a_time_are_left_out(path, tmp_path):
    record = SearchRecord(path)
    for query in ("old", "new"):
        record.add_click(record.add_searches([searched(query)])[0], "a")
    record.close()
    with contextlib.closing(sqlite3.connect(path)) as base:
        base.execute("UPDATE searches SET time = 1e9 WHERE query = 'old'")
        base.commit()
    log = tmp_path / "log.tsv"
    run("import", path, "-o", log, "--since", "2026-01-01")
    assert log.read_text() == "new\ttitle a\n"
    message = run("import", log, path, "-o", tmp_path / "x", "--since", "2026-01-01", code=1)
    assert "log.tsv: is not a record" in message and not (tmp_path / "x").exists()


def test_a_search_in_several_records_is_counted_once(path, tmp_path):
    record = SearchRecord(path)
    first, second = record.add_searches([searched("desk"), searched("lamp")])
    record.add_click(first, "b")
    record.close()
    copy, log = tmp_path / "copy.sqlite", tmp_path / "log.tsv"
    copy.write_bytes(path.read_bytes())
    record = SearchRecord(path)
    record.add_click(second, "c")  # after the copy
    record.add_click(record.add_searches([searched("desk")])[0], "b")
    record.close()
    shown = Columns(clicks="clicks", search="search", position="position")
    for files in ([path], [path, path], [copy, path], [path, copy, path]):
        import_clicks(files, log, Columns(), force=True)
        assert log.read_text() == "desk\ttitle b\nlamp\ttitle c\ndesk\ttitle b\n"
        import_clicks(files, tmp_path / "log.jsonl", shown, force=True)
        assert len((tmp_path / "log.jsonl").read_text().splitlines()) == 3


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["", "a", "b"])), max_size=8),
        max_size=4,
    )
)
def test_merged_records_have_each_search_and_click_once(copies):
    """Records with some of six searches, each with some of their clicks."""
    expected = {(number, click) for copy in copies for number, click in copy}
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{k}.sqlite" for k in range(len(copies))]
        for k, (path, copy) in enumerate(zip(paths, copies, strict=True)):
            if k % 2:
                SearchRecord(path).close()
            else:
                made_by_version_1(path)
                with contextlib.closing(sqlite3.connect(path)) as base:
                    for table in ("searches", "shown", "titles"):
                        base.execute(f"DELETE FROM {table}")
                    base.commit()
            with changing_record(path) as base:
                base.executemany(
                    "INSERT OR IGNORE INTO titles (id, title) VALUES (?, ?)",
                    [(id, f"title {id}") for id in "ab"],
                )
                for number, click in copy:
                    base.execute(
                        "INSERT OR IGNORE INTO searches (search, time, query, milliseconds) "
                        "VALUES (?, 1.0, ?, 1.0)",
                        (f"s{number}", f"query {number}"),
                    )
                    for position, id in enumerate("ab", 1):
                        base.execute(
                            "INSERT INTO shown (search, position, title, clicked) SELECT "
                            "searches.number, ?, titles.number, ? FROM searches, titles "
                            "WHERE search = ? AND id = ? ON CONFLICT DO UPDATE SET "
                            "clicked = coalesce(clicked, excluded.clicked)",
                            (position, 2.0 if id == click else None, f"s{number}", id),
                        )
        merged = Path(folder) / "merged.sqlite"
        counts = merge_records(paths, merged)
        assert counts == (
            len({number for number, _ in expected}),
            len([click for _, click in expected if click]),
        )
        assert merge_records(paths, merged) == (0, 0)
        assert {(row[0], row[2]) for row in record_rows(merged, False)} == {
            (f"query {number}", click) for number, click in expected if click
        }


def test_start_knows_the_columns_of_a_record(path, tmp_path):
    record = SearchRecord(path)
    record.add_click(record.add_searches([searched("desk")])[0], "b")
    guess = guess_columns(path)
    roles = {role: role for role in ("query", "id", "title", "clicks")}
    assert (guess.roles, guess.fields) == (roles, {})
    options = [word for role in roles for word in (f"--{role}-column", guess.need(role))]
    run("import", path, "-o", tmp_path / "log.tsv", *options,
        "--write-catalogue", tmp_path / "titles.tsv")  # fmt: skip
    assert (tmp_path / "log.tsv").read_text() == "desk\ttitle b\t1\tb\n"
    assert (tmp_path / "titles.tsv").read_text() == "id\ttitle\nb\ttitle b\n"


# -- the server --------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def index():
    model = made_up_model(("bag", {}), TITLES, dtype=np.float32)
    return Index.build(model, TITLES, [f"t{k}" for k in range(len(TITLES))])


def test_the_server_records_what_it_answers(index, path):
    client = create_app(index, record=SearchRecord(path)).test_client()
    answer = client.get("/search", query_string={"q": TITLES[3], "k": 3}).json
    client.get("/search", query_string={"q": TITLES[3][:4], "draft": "true"})
    many = client.post("/search", json={"queries": TITLES[:2], "k": 2}).json["results"]
    for result in (answer, many[1]):
        sent = {"search": result["search"], "id": result["hits"][1]["id"]}
        assert client.post("/click", json=sent).json == sent
    assert rows(path, all_shown=False) == [
        (result["query"], result["hits"][1]["title"], result["hits"][1]["id"], 1, 2)
        for result in (answer, many[1])
    ]
    assert insights(path).searches == 3
    for sent, status in (
        ({"search": answer["search"], "id": "t99"}, 404),
        ({"search": "x", "id": "t1"}, 404),
        ({"search": answer["search"]}, 400),
        ({"search": 1, "id": "t1"}, 400),
    ):
        refused = client.post("/click", json=sent)
        assert refused.status_code == status and refused.json["error"]
    assert '"records":true' in client.get("/").text.replace(" ", "")


@pytest.mark.parametrize(
    ("headers", "is_recorded"),
    [
        ({}, True),
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, False),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "https://shop.example"}, True),
        ({"Origin": "https://shop.example"}, True),
    ],
)
def test_the_pages_of_other_sites_fill_no_record(index, path, headers, is_recorded):
    app = create_app(index, record=SearchRecord(path), allowed_origins=["https://shop.example"])
    answer = app.test_client().get("/search", query_string={"q": TITLES[3]}, headers=headers)
    assert answer.status_code == 200
    assert ("search" in answer.json) == is_recorded == bool(insights(path).searches)


@pytest.mark.filterwarnings("ignore::sentemb.models.face.TextWarning")
def test_what_the_server_does_not_find_is_nothing_found(index, path):
    client = create_app(index, record=SearchRecord(path)).test_client()
    assert not client.get("/search", query_string={"q": "上海"}).json["hits"]
    (query,) = insights(path).nothing_found
    assert (query.query, query.nothing_found, insights(path).below_floor) == ("上海", 1, [])


def test_a_server_without_a_record_keeps_nothing(index):
    client = create_app(index).test_client()
    answer = client.get("/search", query_string={"q": TITLES[3]}).json
    assert "search" not in answer
    refused = client.post("/click", json={"search": "x", "id": "t1"})
    assert refused.status_code == 404 and "--record" in refused.json["error"]


def test_a_search_is_answered_where_it_cannot_be_recorded(index, path, capsys):
    record = SearchRecord(path)
    client = create_app(index, record=record).test_client()
    name = client.get("/search", query_string={"q": TITLES[3]}).json["search"]
    record.close()
    path.unlink()
    path.mkdir()
    answer = client.get("/search", query_string={"q": TITLES[3]})
    assert answer.status_code == 200 and "search" not in answer.json
    assert client.post("/click", json={"search": name, "id": "t1"}).status_code == 503
    assert capsys.readouterr().err.count("not recorded: ") == 2


def test_the_rare_query_asked_longest_ago_is_forgotten(path, monkeypatch):
    monkeypatch.setattr("sentemb.data.search_record._COUNTED", 2)
    record = SearchRecord(path, anonymous=True)
    for query in ["a"] * (COMMON - 1) + ["b", "c", "a"]:
        record.add_searches([searched(query)])
    assert not list(record_rows(path, all_shown=True))
    record.add_searches([searched("a")] * (COMMON - 1))
    assert {row[0] for row in record_rows(path, all_shown=True)} == {"a"}


def test_a_record_that_somebody_made_runs_no_functions(path):
    record = SearchRecord(path)
    assert record._opened().connection.execute("PRAGMA trusted_schema").fetchone() == (0,)
    for top_k in (0, 2**31):
        with pytest.raises(SentembError, match="top_k"):
            insights(path, top_k)


def test_a_wrong_call_leaves_no_record(index, path, tmp_path):
    index.save(tmp_path / "index")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for folder, *wrong in (
            ("nothing",),
            ("index", "--rate", "nan"),
            ("index", "--allow-origin", "*"),
            ("index", "--allow-host", "a:80"),
            ("index", "--port", taken.getsockname()[1]),
        ):
            run("serve", tmp_path / folder, "--record", path, *wrong, code=1)
            assert not path.exists(), wrong


def test_anonymous_needs_a_record(tmp_path):
    assert "--record" in run("serve", tmp_path, "--anonymous", code=2)


def serve(output, index, record):
    """Serve until the process ends; the address goes to ``output``."""
    with open(output, "w", encoding="utf-8") as file, contextlib.redirect_stdout(file):
        main(["serve", str(index), "--port", "0", "--record", str(record)])


class Shop:
    """`sentemb serve --record` in a process of its own; a forked one, which starts at once."""

    def __init__(self, index, record):
        reader, writer = os.pipe()
        fork = multiprocessing.get_context("fork")
        self.process = fork.Process(target=serve, args=(writer, index, record), daemon=True)
        self.process.start()
        os.close(writer)
        with open(reader, encoding="utf-8") as output:
            self.address = output.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.join()

    def ask(self, path, body):
        data = json.dumps(body).encode()
        request = Request(f"{self.address}/{path}", data, {"Content-Type": "application/json"})
        with urlopen(request, timeout=20) as answer:
            return json.load(answer)


def visit(shop, queries, searches, clicks):
    """Search and click until the server is gone; keep what was answered."""
    try:
        for query in queries:
            body = {"queries": [query], "k": 3, "all": True}
            (answer,) = shop.ask("search", body)["results"]
            searches.append((answer["search"], query))
            click = {"search": answer["search"], "id": answer["hits"][0]["id"]}
            for _ in range(2):  # as a browser does that sends a request again
                if shop.ask("click", click) and click not in clicks:
                    clicks.append(click)
    except (OSError, http.client.HTTPException):
        pass


def kill_amid(folder, record, seconds):
    """The searches and clicks that a server answered before it was killed."""
    searches, clicks = [], []
    with Shop(folder, record) as shop:
        visitors = [
            threading.Thread(target=visit, args=(shop, TITLES * 40, searches, clicks))
            for _ in range(3)
        ]
        for visitor in visitors:
            visitor.start()
        while len(searches) < 20 and any(visitor.is_alive() for visitor in visitors):
            time.sleep(0.01)  # the first answers take a moment
        time.sleep(seconds)
        os.kill(shop.process.pid, signal.SIGKILL)
        for visitor in visitors:
            visitor.join()
    return searches, clicks


def recorded(record):
    """Names of the searches, and the clicks, of a record."""
    every = list(record_rows(record, all_shown=True))
    clicks = [{"search": row[4], "id": row[2]} for row in every if row[3]]
    return {(row[4], row[0]) for row in every}, clicks


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_a_killed_server_loses_nothing_that_it_answered(index, path, tmp_path):
    index.save(tmp_path / "index")
    searches, clicks = [], []
    for seconds in (0.05, 0.2):
        more_searches, more_clicks = kill_amid(tmp_path / "index", path, seconds)
        searches += more_searches
        clicks += more_clicks
    stored_searches, stored_clicks = recorded(path)
    assert set(searches) <= stored_searches
    assert len(clicks) > 10 and all(click in stored_clicks for click in clicks)
    assert len(stored_clicks) == len({tuple(click.values()) for click in stored_clicks})
    # Six visitors can each have a request under way.
    assert len(stored_searches) <= len(searches) + 6


@pytest.mark.slow
def test_round_the_loop_twice(tmp_path):
    """Serve, record, import, train further on what was clicked, index, and again."""
    log, titles = tmp_path / "log.tsv", tmp_path / "titles.tsv"
    log.write_text("".join(f"{title.split()[0]}\t{title}\n" for title in TITLES))
    titles.write_text("".join(f"t{k}\t{title}\n" for k, title in enumerate(TITLES)))
    model = tmp_path / "model0"
    run("train", log, "-o", model, "--epochs", 1, "--model", "bag", "--quiet")
    replayed = log
    for turn in (1, 2):
        index, record = tmp_path / f"index{turn}", tmp_path / f"searches{turn}.sqlite"
        run("index", model, titles, "-o", index, "--quiet")
        searches, clicks = [], []
        for seconds in (0.0, 0.3):
            for answers, new in zip(
                (searches, clicks), kill_amid(index, record, seconds), strict=True
            ):
                answers += new
        assert all(click in recorded(record)[1] for click in clicks)
        new_log = tmp_path / f"new{turn}.tsv"
        run("import", record, "-o", new_log)
        assert sum(read_click_log(new_log).clicks) == len(recorded(record)[1])
        new_model = tmp_path / f"model{turn}"
        run("train", new_log, "--start-from", model, "--replay", f"{replayed}:0.5",
            "-o", new_model, "--epochs", 1, "--quiet")  # fmt: skip
        model, replayed = new_model, new_log
    assert Path(model, "config.json").exists() or list(Path(model).iterdir())


# -- files that people touch -------------------------------------------------------------------


def named(*paths):
    """The names of the searches in some records together."""
    return [row[4] for path in paths for row in record_rows(path, all_shown=True) if row[5] == 1]


def moved(path):
    os.rename(path, f"{path}.1")
    return f"{path}.1"


def moved_with_all_beside(path):
    folder = path.parent / "old"
    folder.mkdir()
    for end in ("", "-wal", "-shm"):
        os.rename(f"{path}{end}", folder / f"{path.name}{end}")
    return folder / path.name


def moved_and_made_empty(path):
    found = moved(path)
    path.touch()
    return found


def folder_replaced(path):
    os.rename(path.parent, f"{path.parent}.old")
    path.parent.mkdir()
    return Path(f"{path.parent}.old", path.name)


def changes_deleted(path):
    os.unlink(f"{path}-wal")
    return None


def readers_deleted(path):
    os.unlink(f"{path}-shm")
    return None


TOUCHED = [
    moved, moved_with_all_beside, moved_and_made_empty, folder_replaced, changes_deleted,
    readers_deleted,
]  # fmt: skip


@pytest.fixture
def logs(tmp_path):
    (tmp_path / "logs").mkdir()
    return tmp_path / "logs" / "searches.sqlite"


@pytest.mark.parametrize("touch", TOUCHED)
@pytest.mark.parametrize("again", [False, True])
def test_nothing_is_lost_when_the_files_are_moved(logs, capsys, touch, again):
    record = SearchRecord(logs)
    before = record.add_searches([searched(f"before {k}") for k in range(50)])
    assert record.add_click(before[3], "b")
    left = touch(logs)
    after = []
    if again:
        after = record.add_searches([searched("after")])
        after += record.add_searches([searched("then")])
        assert record.add_click(after[0], "c")
        # In the file that was moved away, or in the same.
        assert record.add_click(before[7], "a")
        assert capsys.readouterr().err.count("opened again") == 1
        assert sorted(named(*([left] if left else []), logs)) == sorted(before + after)
    record.close()
    files = [path for path in (left, logs) if path is not None and is_record(path)]
    assert sorted(named(*files)) == sorted(before + after)
    clicks = sum(len(list(record_rows(path, all_shown=False))) for path in files)
    assert clicks == (3 if again else 1)
    if again:
        assert SearchRecord(logs).add_click(after[1], "a")


@pytest.mark.parametrize("ends", [("",), ("", "-wal", "-shm"), ("-wal", "")])
def test_what_follows_a_deletion_is_recorded_anew(logs, ends):
    record = SearchRecord(logs)
    record.add_searches([searched("before")])
    for end in ends:
        os.unlink(f"{logs}{end}")
    (name,) = record.add_searches([searched("after")])
    assert record.add_click(name, "a")
    record.close()
    assert os.listdir(logs.parent) == [logs.name]
    assert {row[0] for row in rows(logs)} == {"after"}


def test_a_file_that_is_deleted_during_a_change_is_written_again(logs, monkeypatch):
    record = SearchRecord(logs)
    change, deleted = RecordFile.change, []

    def deleted_at_last(self, make):
        result = change(self, make)
        if not deleted:
            deleted.append(os.unlink(logs))
        return result

    monkeypatch.setattr(RecordFile, "change", deleted_at_last)
    (name,) = record.add_searches([searched("desk")])
    assert named(logs) == [name]


def test_a_file_that_is_emptied_is_a_new_record(logs):
    record = SearchRecord(logs)
    record.add_searches([searched("before")])
    os.truncate(logs, 0)  # as logrotate does with copytruncate
    (name,) = record.add_searches([searched("after")])
    assert named(logs) == [name]
    record.close()
    assert named(logs) == [name]


def test_a_place_that_is_gone_or_taken_is_said_until_it_is_back(logs):
    record = SearchRecord(logs)
    before = record.add_searches([searched("before")])
    os.rename(logs.parent, f"{logs.parent}.old")
    for _ in range(2):
        with pytest.raises(SentembError, match="No such file"):
            record.add_searches([searched("lost")])
    logs.parent.mkdir()
    logs.write_text("query\ttitle\n")
    with pytest.raises(SentembError, match="not a record"):
        record.add_searches([searched("lost")])
    logs.unlink()
    after = record.add_searches([searched("after")])
    assert named(Path(f"{logs.parent}.old", logs.name), logs) == before + after


def test_changes_that_a_killed_server_left_are_put_aside(logs, capsys):
    record = SearchRecord(logs)
    names = record.add_searches([searched("before")])
    left = {end: Path(f"{logs}{end}").read_bytes() for end in ("", "-wal")}
    record.close()
    logs.unlink()
    Path(f"{logs}-wal").write_bytes(left["-wal"])  # the record itself was moved
    new = SearchRecord(logs).add_searches([searched("after")])
    assert named(logs) == new
    said = capsys.readouterr().err
    (aside,) = logs.parent.glob("*.*.*-wal")
    assert aside.name in said and "moved away" in said
    found = logs.parent / "found.sqlite"
    found.write_bytes(left[""])
    aside.rename(f"{found}-wal")
    assert named(found) == names


def test_two_servers_on_a_record_that_is_moved_lose_nothing(logs):
    servers = [SearchRecord(logs), SearchRecord(logs)]
    names, left = [], [logs]
    for turn in range(8):
        for server in servers[:: 1 if turn % 2 else -1]:
            names += server.add_searches([searched(f"turn {turn}")])
        left.append(Path(f"{logs}.{turn}"))
        os.rename(logs, left[-1])
        names += servers[turn % 3 == 0].add_searches([searched("alone")])
    for server in servers:
        server.close()
    assert sorted(named(*left)) == sorted(names)


@pytest.mark.slow
def test_nothing_is_lost_while_visitors_search_and_the_files_are_moved(index, logs, tmp_path):
    index.save(tmp_path / "index")
    searches, clicks, files = [], [], []
    with Shop(tmp_path / "index", logs) as shop:
        visitors = [
            threading.Thread(target=visit, args=(shop, TITLES * 10, searches, clicks))
            for _ in range(3)
        ]
        for visitor in visitors:
            visitor.start()
        for turn in range(12):
            time.sleep(0.3)
            files.append(logs.parent / f"{turn}.sqlite")
            with contextlib.suppress(FileNotFoundError):
                os.rename(logs, files[-1])
        for visitor in visitors:
            visitor.join()
        os.kill(shop.process.pid, signal.SIGTERM)
        shop.process.join(20)
    files = [path for path in (*files, logs) if path.exists()]
    assert len(files) > 5
    stored = [recorded(path) for path in files]
    assert set(searches) <= set.union(*(names for names, _ in stored))
    every = [click for _, found in stored for click in found]
    assert all(click in every for click in clicks)


# -- records of others -------------------------------------------------------------------------


def crafted(path, *statements):
    SearchRecord(path).add_searches([searched("desk"), searched("lamp", "", NOTHING_KNOWN)])
    base = sqlite3.connect(path, isolation_level=None)
    for statement in ("PRAGMA writable_schema=ON", "PRAGMA ignore_check_constraints=ON"):
        base.execute(statement)
    for statement in statements:
        base.execute(statement)
    base.close()


SCHEMAS = [
    ["DROP TABLE shown", "CREATE VIEW shown AS SELECT 1 AS search, 1 AS position, 1 AS title, "
     "1 AS clicked"],
    ["DROP TABLE shown", "CREATE VIEW shown AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT "
     "x + 1 FROM n) SELECT x AS search, 1 AS position, 1 AS title, 1 AS clicked FROM n"],
    ["CREATE TABLE more (x)"],
    ["CREATE TRIGGER t AFTER INSERT ON searches BEGIN DELETE FROM titles; END"],
    ["DROP INDEX searches_of_query"],
    ["DROP TABLE titles"],
    ["ALTER TABLE titles ADD COLUMN x"],
    ["ALTER TABLE searches RENAME COLUMN no_match TO matched"],
]  # fmt: skip


@pytest.mark.parametrize("statements", SCHEMAS)
def test_a_record_with_other_tables_is_refused(path, statements):
    crafted(path, *statements)
    for use in (SearchRecord, insights, lambda path: list(record_rows(path, True))):
        with pytest.raises(SentembError, match="not a record of searches"):
            use(path)


VALUES = [
    "UPDATE searches SET time = 'now'", "UPDATE searches SET time = x'ff'",
    "UPDATE searches SET time = 1e300", "UPDATE searches SET time = -1e300",
    "UPDATE searches SET time = 9e999", "UPDATE searches SET query = x'ff00'",
    "UPDATE searches SET query = 5e9, no_match = x'00'", "UPDATE searches SET milliseconds = 'x'",
    "UPDATE searches SET milliseconds = -1", "UPDATE searches SET milliseconds = 9e999",
    "UPDATE searches SET search = x'01' WHERE number = 1",
    "UPDATE shown SET position = 'first' WHERE position = 1",
    "UPDATE shown SET position = -9223372036854775807 WHERE position = 1",
    "UPDATE shown SET clicked = 'yes'", "UPDATE shown SET title = 'a' WHERE position = 1",
    "UPDATE titles SET title = x'ff'", "UPDATE titles SET id = x'ff' WHERE number = 1",
]  # fmt: skip


@pytest.mark.parametrize("statement", VALUES)
def test_a_record_with_other_values_is_damaged(path, statement):
    crafted(path, statement)
    for use in (insights, lambda path: list(record_rows(path, True))):
        with pytest.raises(SentembError, match="is damaged: a value in its table"):
            use(path)


def test_a_text_that_is_not_unicode_is_damage(path):
    for column in ("query", "search"):
        crafted(path, f"UPDATE searches SET {column} = CAST(x'ff41' AS TEXT) WHERE number = 1")
        with pytest.raises(SentembError, match="is damaged: Could not decode"):
            list(record_rows(path, all_shown=True))
        path.unlink()


def test_a_record_without_end_is_not_read_for_ever(path, monkeypatch):
    record = SearchRecord(path)
    for k in range(30):
        record.add_searches([searched(f"query {k} {j}", "abcdefgh") for j in range(20)])
    record.close()
    monkeypatch.setattr("sentemb.data.record_file._STEPS", 1000)
    monkeypatch.setattr("sentemb.data.record_file._STEPS_PER_BYTE", 0)
    for use in (insights, lambda path: list(record_rows(path, True))):
        with pytest.raises(SentembError, match="is damaged: reading it does not end"):
            use(path)


SLOW_READING = """
import sqlite3
import sentemb.data.record_file as file
import sentemb.cli as cli

def connected(*arguments, connect=sqlite3.connect, **more):
    print("now", flush=True)
    return connect(*arguments, **more)

sqlite3.connect = connected
file._STEPS = 1 << 60
file._VALUES = {"searches": "(WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
                            "SELECT count(*) FROM n)"}
cli.main()
"""


@pytest.mark.parametrize(
    ("command", "number"), [("insights", signal.SIGINT), ("import", signal.SIGTERM)]
)
def test_a_signal_ends_what_reads_a_record(path, tmp_path, command, number):
    crafted(path)
    more = ["-o", tmp_path / "log.tsv"] if command == "import" else []
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_READING, command, path, *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "now\n"
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert time.monotonic() - began < 2
    assert (process.returncode, said.strip()) == (128 + number, "")
