"""Click logs: what is read, what is refused and where, and that written logs come back."""

import bz2
import gzip
import io
import json
import lzma
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentemb import SentembError
from sentemb.data.click_log import (
    MAX_CLICKS,
    MAX_TEXT_WORDS,
    ClickLogBuilder,
    read_click_log,
    write_click_log,
)
from sentemb.models.files import tensor_files


def log_of(tmp_path, content, name="log.tsv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_click_log(path, **options)


def pairs(log):
    return [
        (log.queries[query], log.titles[title], clicks)
        for query, title, clicks in zip(
            log.query_index, log.title_index, log.clicks.tolist(), strict=True
        )
    ]


def skipped(log):
    return [
        [log.titles[index] for index in log.skipped_index[start:stop]]
        for start, stop in pairwise(log.skipped_offsets)
    ]


def assert_equal(one, other):
    assert (one.queries, one.titles, one.bad_lines) == (other.queries, other.titles, 0)
    for name in ("query_index", "title_index", "clicks", "skipped_offsets", "skipped_index"):
        left, right = getattr(one, name), getattr(other, name)
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("lines", ["a b\tc\n", '{"query": "a b", "clicked": ["c"]}\n'])
def test_blank_lines_at_the_end_are_dropped(tmp_path, lines):
    path = tmp_path / "log.tsv"
    path.write_text(f"{lines}\n \r\n\n")
    assert read_click_log(path).titles == ["c"]


def test_pairs_are_distinct_in_order_and_clicks_add_up(tmp_path):
    log = log_of(tmp_path, "b\tx\na\ty\t5\nb\tx\t2\nb\ty\n")
    assert pairs(log) == [("b", "x", 3), ("a", "y", 5), ("b", "y", 1)]
    assert (log.queries, log.titles) == (["b", "a"], ["x", "y"])
    assert log.query_index.dtype == log.title_index.dtype == log.skipped_index.dtype == np.int32
    assert log.clicks.dtype == log.skipped_offsets.dtype == np.int64
    assert log.skipped_offsets.tolist() == [0, 0, 0, 0]
    assert log.skipped_index.size == 0


@pytest.mark.parametrize(
    "content",
    [
        "a b\tx\na b\tx\n",
        "a b\tx\na b\tx",
        "a b\tx\r\na b\tx\r\n",
        "\ufeffa b\tx\na b\tx\n",
        " a b \t x\na b\tx \n",
        "a b\tx\t2\n",
        "a b\tx\t 2\r\n",
        "a b\tx\t002\n",
        "a b\tx\n\ufeffa b\tx\n",
    ],
)
def test_spellings_of_the_same_log(tmp_path, content):
    assert pairs(log_of(tmp_path, content)) == [("a b", "x", 2)]


def test_lines_end_at_newlines_only(tmp_path):
    separators = "a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g\rh"
    log = log_of(tmp_path, f"{separators}\t{separators}!\n")
    assert pairs(log) == [(separators, f"{separators}!", 1)]


def test_gzip_and_standard_input(tmp_path, monkeypatch):
    assert pairs(log_of(tmp_path, gzip.compress(b"a\tx\n"), "log.tsv.gz")) == [("a", "x", 1)]
    for content in (b"a\tx\n", b'\xef\xbb\xbf  {"query": "a", "clicked": ["x"]}\n'):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert pairs(read_click_log("-")) == [("a", "x", 1)]
        # Reading leaves standard input open.
        assert not sys.stdin.buffer.closed


@pytest.mark.parametrize("name", ["log.jsonl", "log.tsv", "log"])
def test_json_lines(tmp_path, name):
    records = [
        {"query": "a", "clicked": ["x", "y"], "skipped": ["z", "w", "z"], "session": 7},
        {"query": "b", "clicked": ["z"], "clicks": [4]},
        {"query": "a", "clicked": ["x", "x"], "skipped": ["v", "w", "y"]},
        {"query": "a", "clicked": ["w"]},
    ]
    log = log_of(tmp_path, "".join(json.dumps(record) + "\n" for record in records), name)
    assert pairs(log) == [("a", "x", 3), ("a", "y", 1), ("b", "z", 4), ("a", "w", 1)]
    # Each list once and merged; y and w are clicked for the query a elsewhere.
    assert skipped(log) == [["z", "v"], ["z"], [], []]
    assert log.titles == ["x", "z", "v", "y", "w"]


def test_tabs_and_line_ends_inside_json_texts_become_spaces(tmp_path):
    log = log_of(tmp_path, json.dumps({"query": "a\tb", "clicked": ["x\ny"]}), "log.jsonl")
    assert pairs(log) == [("a b", "x y", 1)]


def test_a_tsv_query_may_start_with_a_brace(tmp_path):
    assert pairs(log_of(tmp_path, '{"a"}\tx\n')) == [('{"a"}', "x", 1)]


BAD_TSV = {
    "no tab": (b"just words", ":3", "no tab"),
    "CSV": (b"hotels,Grand Hotel", ":3", "no tab; write query<TAB>clicked title; for CSV use `sen"),
    "an inch mark in CSV": (b'laptop\t"Acme 15.6"" Laptop"', ":3", "quoted as CSV, and the quotes"),
    "a quoted count": (b'"laptop"\t"Acme Laptop"\t"3"', ":3", "click count"),
    "blank": (b"", ":3", "no tab"),
    "five columns": (b"q\tt\t1\t2\t3", ":3", "5 columns"),
    "an id of two words": (b"q\tt\t1\ta b", ":3", "4 columns"),
    "an id and no count": (b"q\tt\t\tid", ":3", "click count"),
    "no query": (b"\tt", ":3", "query is empty"),
    "blank query": (b" \xc2\xa0 \tt", ":3", "query is empty"),
    "no title": (b"q\t", ":3", "title is empty"),
    "blank title": (b"q\t \t3", ":3", "title is empty"),
    "not UTF-8": (b"q\tab\xff", ":3:5", "not valid UTF-8"),
    "surrogate": (b"q\t\xed\xa0\x80", ":3:3", "not valid UTF-8"),
    "NUL": (b"q\0\tt", ":3:2", "NUL"),
    "no clicks": (b"q\tt\t", ":3", "click count"),
    "zero clicks": (b"q\tt\t0", ":3", "click count"),
    "negative clicks": (b"q\tt\t-1", ":3", "click count"),
    "signed clicks": (b"q\tt\t+1", ":3", "click count"),
    "half a click": (b"q\tt\t1.5", ":3", "click count"),
    "word for clicks": (b"q\tt\tmany", ":3", "click count"),
    "underscore": (b"q\tt\t1_0", ":3", "click count"),
    "other digits": ("q\tt\t٣".encode(), ":3", "click count"),
    "too many clicks": (b"q\tt\t9223372036854775808", ":3", "click count"),
    "endless clicks": (b"q\tt\t" + b"9" * 5000, ":3", "click count"),
    "clicks add up": (b"good\ttitle\t1000000000000", ":3", "add up"),
    "long text": (b"q\t" + b"w " * (MAX_TEXT_WORDS + 1), ":3", "10001 words"),
}


@pytest.mark.parametrize(("line", "place", "message"), BAD_TSV.values(), ids=BAD_TSV)
def test_bad_tsv_lines(tmp_path, line, place, message):
    content = b"good\ttitle\nother\ttitle\n" + line + b"\nlast\ttitle\n"
    with pytest.raises(SentembError) as caught:
        log_of(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path / 'log.tsv'}{place}: ")
    assert message in str(caught.value)
    assert "; " in str(caught.value)
    assert "\n" not in str(caught.value)

    log = log_of(tmp_path, content, skip_bad_lines=True)
    assert log.bad_lines == 1
    # Nothing of the bad line is left behind.
    assert (log.queries, log.titles) == (["good", "other", "last"], ["title"])


BAD_JSON = {
    "not JSON": ('{"query": "q", "clicked": ["t"}', ":2:31", "not JSON"),
    "cut off": ('{"query": "q",', ":2:15", "not JSON"),
    "blank": ("", ":2:1", "not JSON"),
    "deep": ("[" * 200_000, ":2", "not JSON"),
    "endless number": ("9" * 5000, ":2", "not JSON"),
    "a list": ('["q", "t"]', ":2", '"query"'),
    "no query": ('{"clicked": ["t"]}', ":2", '"query"'),
    "query a number": ('{"query": 3, "clicked": ["t"]}', ":2", '"query"'),
    "empty query": ('{"query": " ", "clicked": ["t"]}', ":2", "query is empty"),
    "none clicked": ('{"query": "q", "clicked": []}', ":2", '"clicked"'),
    "clicked missing": ('{"query": "q", "skipped": ["t"]}', ":2", '"clicked"'),
    "clicked a text": ('{"query": "q", "clicked": "t"}', ":2", '"clicked"'),
    "clicked a number": ('{"query": "q", "clicked": ["t", 1]}', ":2", '"clicked"'),
    "empty title": ('{"query": "q", "clicked": ["t", ""]}', ":2", "title is empty"),
    "skipped a text": ('{"query": "q", "clicked": ["t"], "skipped": "u"}', ":2", '"skipped"'),
    "skipped null": ('{"query": "q", "clicked": ["t"], "skipped": null}', ":2", '"skipped"'),
    "skipped empty": ('{"query": "q", "clicked": ["t"], "skipped": ["u", ""]}', ":2", "is empty"),
    "too few clicks": ('{"query": "q", "clicked": ["t", "u"], "clicks": [1]}', ":2", '"clicks"'),
    "clicks a truth": ('{"query": "q", "clicked": ["t"], "clicks": [true]}', ":2", '"clicks"'),
    "no clicks": ('{"query": "q", "clicked": ["t"], "clicks": [0]}', ":2", '"clicks"'),
    "NUL": ('{"query": "q\\u0000", "clicked": ["t"]}', ":2", "NUL"),
    "lone surrogate": ('{"query": "q", "clicked": ["\\ud800"]}', ":2", "not valid UTF-8"),
    "not UTF-8": (b'{"query": "q\xff", "clicked": ["t"]}', ":2:13", "not valid UTF-8"),
}


@pytest.mark.parametrize(("line", "place", "message"), BAD_JSON.values(), ids=BAD_JSON)
def test_bad_json_lines(tmp_path, line, place, message):
    good = b'{"query": "good", "clicked": ["title"], "skipped": ["worse"]}\n'
    content = good + (line if isinstance(line, bytes) else line.encode()) + b"\n" + good
    with pytest.raises(SentembError) as caught:
        log_of(tmp_path, content)
    assert str(caught.value).startswith(f"{tmp_path / 'log.tsv'}{place}: ")
    assert message in str(caught.value)
    assert "; " in str(caught.value)

    log = log_of(tmp_path, content, skip_bad_lines=True)
    assert log.bad_lines == 1
    assert (log.queries, log.titles) == (["good"], ["title", "worse"])


HEADERS = [
    "query\ttitle",
    "Query\tClicked Title\tClicks",
    '"search_term"\t"product_name"',
    "query_id\tquery\tproduct-id\ttitle\tposition",
    "\ufeffq\tclicked\tcount\r",
]


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_is_not_a_pair(tmp_path, header):
    content = f"{header}\ngood\ttitle\n"
    with pytest.raises(
        SentembError, match=r"log\.tsv:1: looks like a header; drop .*`sentemb import`"
    ):
        log_of(tmp_path, content)
    log = log_of(tmp_path, content, skip_bad_lines=True)
    assert (log.queries, log.titles, log.bad_lines) == (["good"], ["title"], 1)


def test_a_header_in_other_words_is_guessed_from_its_count(tmp_path):
    with pytest.raises(SentembError, match=r":1: .*'choix' is not a number; if .* is a header"):
        log_of(tmp_path, "vœu\tobjet\tchoix\ngood\ttitle\t2\n")


def test_quotes_around_all_fields_show_in_the_first_line(tmp_path):
    for first in ('"laptop"\t"Acme Laptop"', '"laptop"\t"Acme Laptop"\t3'):
        with pytest.raises(SentembError, match=r":1: quoted as CSV, and .* use `sentemb import`"):
            log_of(tmp_path, f"{first}\nother\ttitle\n")


def test_what_only_looks_like_a_table_is_read(tmp_path):
    for first in ("query\ttitle\t1", "query\tA title", "title\ttitle", "PAR16 lamp\tPAR16 LED"):
        log = log_of(tmp_path, f'{first}\nquery\ttitle\n"a phrase"\t"A title"\nb\t"The ""end\n')
        assert [log.queries[0], log.titles[0]] == first.split("\t")[:2]
        assert '"a phrase"' in log.queries and '"The ""end' in log.titles
    # A first pair that looks like a header is written so that it is read as a pair.
    builder = ClickLogBuilder()
    builder.add("query", "title")
    write_click_log(builder.build(), tmp_path / "own.tsv")
    assert read_click_log(tmp_path / "own.tsv").queries == ["query"]
    for clicks in (0, -3, 10**12 + 1, 2**63, 1.5):
        with pytest.raises(SentembError, match=r"the clicks are .*; give an integer from 1"):
            builder.add("new", "new", clicks)
    assert len(builder) == 1 and builder.build().queries == ["query"]
    builder.add('"a"', '"b"')
    write_click_log(builder.build(), tmp_path / "own.tsv")
    assert read_click_log(tmp_path / "own.tsv").titles == ["title", '"b"']
    builder.add("a", '"b"" c"')
    first = ClickLogBuilder()
    first.add('"a"', '"b"')
    for unwritable in (builder, first):
        with pytest.raises(SentembError, match=r"would be read as quoted CSV; .* end in \.jsonl"):
            write_click_log(unwritable.build(), tmp_path / "own.tsv")
        write_click_log(unwritable.build(), tmp_path / "own.jsonl")
        assert_equal(read_click_log(tmp_path / "own.jsonl"), unwritable.build())


OTHER_FORMATS = {
    "a Parquet file, not text; convert it with `sentemb import`": b"PAR1\x15\x04\x15\x10\n",
    "compressed with gzip, not text; let its name end in .gz": gzip.compress(b"q\tt\n"),
    "UTF-16, not text; save it as UTF-8": "q\tt\n".encode("utf-16"),
    "a zip archive or an Excel file, not text": b"PK\x03\x04\x14\0\n",
    "compressed with zstd, not text": b"\x28\xb5\x2f\xfd\x04\n",
    "compressed with bzip2, not text; unpack it": bz2.compress(b"q\tt\n"),
    "compressed with xz, not text; unpack it": lzma.compress(b"q\tt\n"),
    "an old Excel workbook, not text; save it as text": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\n",
    "an SQLite database, such as a record of searches, not text": b"SQLite format 3\0\x10\n",
}


@pytest.mark.parametrize("message", OTHER_FORMATS)
def test_other_formats_are_recognised(tmp_path, message, monkeypatch):
    for skip in (False, True):
        with pytest.raises(SentembError) as caught:
            log_of(tmp_path, OTHER_FORMATS[message], skip_bad_lines=skip)
        assert f"{tmp_path / 'log.tsv'}: is {message}" in str(caught.value)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(OTHER_FORMATS[message])))
    with pytest.raises(SentembError, match=r"^standard input: is .*; (?!let its name)"):
        read_click_log("-")


def test_standard_input_is_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"no tab here\n")))
    with pytest.raises(SentembError, match=r"^standard input:1: no tab"):
        read_click_log("-")


def test_nothing_to_read(tmp_path):
    with pytest.raises(SentembError, match="no pairs"):
        log_of(tmp_path, "")
    with pytest.raises(SentembError, match=r"all 2 lines are bad; the first: .*:1: no tab"):
        log_of(tmp_path, "a\nb\n", skip_bad_lines=True)
    with pytest.raises(SentembError, match="cannot be read"):
        read_click_log(tmp_path / "missing.tsv")


def test_many_titles_are_told_apart(tmp_path):
    builder, n_titles = ClickLogBuilder(), 2**16 + 10
    for number in range(n_titles):
        builder.add("a", str(number))
    builder.add("b", "0")
    log = builder.build()
    assert log.query_index.size == n_titles + 1 and log.query_index[-1] == 1


def test_a_text_of_the_greatest_length_is_good(tmp_path):
    log = log_of(tmp_path, "q\t" + "word " * MAX_TEXT_WORDS)
    assert len(log.titles[0].split()) == MAX_TEXT_WORDS


def test_what_could_not_be_read_back_is_not_written(tmp_path):
    builder = ClickLogBuilder()
    builder.add("a", "x")
    log = builder.build()
    log.titles[0] = "x\ty"
    with pytest.raises(SentembError, match="cannot be written"):
        write_click_log(log, tmp_path / "log.tsv")
    assert list(tmp_path.iterdir()) == []


def test_equal_logs_give_equal_packed_files_at_any_time(tmp_path, monkeypatch):
    log = log_of(tmp_path, "a\tx\n")
    write_click_log(log, tmp_path / "one.tsv.gz")
    monkeypatch.setattr(gzip.time, "time", lambda: 2e9)
    write_click_log(log, tmp_path / "two.tsv.gz")
    assert (tmp_path / "one.tsv.gz").read_bytes() == (tmp_path / "two.tsv.gz").read_bytes()


def test_what_can_be_read_can_be_stored_in_a_ranker():
    assert MAX_CLICKS <= tensor_files._LARGEST


texts = st.text(max_size=6).filter(lambda text: text.replace("\ufeff", "").strip("\0").strip())
texts = texts.map(lambda text: text.replace("\0", "0")).filter(lambda text: '"' not in text)
clicks = st.integers(1, 2**30)
few_texts = st.sampled_from(["a", "b", "c d", "{", "é\u2028", '"']) | texts


@given(
    entries=st.lists(
        st.tuples(few_texts, few_texts, clicks, st.lists(few_texts, max_size=3)), min_size=1
    ),
    name=st.sampled_from(["log.tsv", "log.tsv.gz", "log.jsonl", "log.jsonl.gz"]),
    with_skipped=st.booleans(),
)
def test_round_trip(tmp_path_factory, entries, name, with_skipped):
    builder = ClickLogBuilder()
    for query, title, n_clicks, beside in entries:
        builder.add(query, title, n_clicks, beside if with_skipped else ())
    log = builder.build()
    path = tmp_path_factory.getbasetemp() / name
    write_click_log(log, path)
    assert_equal(read_click_log(path), log)


IDS = {
    "TREC": "1185869 0 0 1\n1185868 0 16 1\n",
    "MS MARCO": "1185869\t0\t7067032\t1\n1185868\t0\t16\t1\n",
    "MS MARCO, a run": "188714\t1000052\t1\n188715\t1000084\t2\n",
    "BEIR": "query-id\tcorpus-id\tscore\nq1\td1\t1\n",
    "a run of TREC": "q1 Q0 d1 1 14.2 run\n",
}


@pytest.mark.parametrize("name", IDS)
def test_ids_without_texts_are_no_log(tmp_path, name):
    (tmp_path / "log.tsv").write_text(IDS[name])
    with pytest.raises(
        SentembError, match=r"judgments .*data beir FOLDER|a run of TREC: .*evaluate"
    ):
        read_click_log(tmp_path / "log.tsv")


def test_a_log_may_have_numbers(tmp_path):
    (tmp_path / "log.tsv").write_text("1984\t1984\t5\n2001\t2001: A Space Odyssey\n")
    assert read_click_log(tmp_path / "log.tsv").queries == ["1984", "2001"]
