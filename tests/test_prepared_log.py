"""Prepared logs: equal to the log that was read, and the same model from both; damage and stops."""

import gzip
import io
import itertools
import json
import os
import random
import shutil
import signal
import sys
import time
from types import SimpleNamespace

import naive
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import failing_calls, forked, full_disk, made_up_judged_set, made_up_log, tree
from hypothesis import given, settings
from hypothesis import strategies as st

from sentemb import PreparedLog, SentembError, SentenceEncoder, prepare_log, split_log, train
from sentemb.cli import main
from sentemb.data import prepared_log
from sentemb.data.click_log import read_click_log, write_click_log
from sentemb.data.prepared_log import DESCRIPTION, FILES
from sentemb.kernels.numbering import fill_slots, number_keys
from sentemb.system.checked_files import described
from sentemb.text.batch import tokenize
from sentemb.text.words import SPLITTINGS
from sentemb.training.batches import key_numbers, preparing
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.key_numbers import KeyNumbers
from sentemb.training.batches.preparing import Preparing
from sentemb.training.stopping import Interrupted
from sentemb.training.towers.settings import Settings

TINY = {"cells": 6, "epochs": 4, "batch_size": 16}
ARRAYS = ("query_index", "title_index", "clicks", "skipped_offsets", "skipped_index")


def assert_same(prepared, log, splitting="bare-letters"):
    """All that a training takes of the two logs is equal."""
    assert list(prepared.queries) == log.queries and list(prepared.titles) == log.titles
    assert prepared.bad_lines == log.bad_lines and prepared.splitting == splitting
    own = [getattr(prepared, name) for name in ARRAYS]
    theirs = [getattr(log, name) for name in ARRAYS]
    own += prepared.titles_of_queries()
    theirs += log.titles_of_queries()
    for side, texts in (("query", log.queries), ("document", log.titles)):
        found = prepared.tokens(splitting)[side]
        expected = tokenize(texts, SPLITTINGS[splitting])
        assert list(found.words) == expected.words
        own += [found.word_index, found.offsets]
        theirs += [expected.word_index, expected.offsets]
    for left, right in zip(own, theirs, strict=True):
        assert left.dtype == right.dtype
        np.testing.assert_array_equal(left, right)


def written(folder, log=None, name="pairs.jsonl"):
    path = folder / name
    write_click_log(log or made_up_log(300, skipped=True), path)
    return path


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A log in a file, and the same log prepared."""
    home = tmp_path_factory.mktemp("prepared")
    path = written(home)
    prepare_log(path, home / "out")
    return SimpleNamespace(path=path, out=home / "out", log=read_click_log(path))


# -- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [1, 2])
def test_keys_are_numbered_as_by_the_naive_twin(width):
    rng = np.random.default_rng(width)
    wanted = rng.integers(40, size=(300, width)).astype(np.uint64)
    for seed in (0, 2**64 - 1):
        keys, slots = np.zeros((300, width), np.uint64), np.full(512, -1, np.int32)
        numbers, count = np.empty(300, np.int32), 0
        for part in (slice(0, 100), slice(100, 300)):
            found = numbers[part]
            count = number_keys(keys, count, slots, np.uint64(seed), wanted[part], found)
        expected, distinct = naive.number_keys(wanted)
        assert numbers.tolist() == expected and keys[:count].tolist() == distinct
        assert np.sort(slots)[512 - count :].tolist() == list(range(count))
        again = np.full(1024, -1, np.int32)
        fill_slots(keys, count, again, np.uint64(seed))
        assert number_keys(keys, count, again, np.uint64(seed), wanted, numbers) == count
        assert numbers.tolist() == expected


def test_a_table_of_numbers_grows(monkeypatch):
    monkeypatch.setattr(key_numbers, "_FIRST_SLOTS", 2)
    numbers = KeyNumbers("pairs")
    rng = np.random.default_rng(0)
    wanted = rng.integers(5000, size=(20_000, 1)).astype(np.uint64)
    found = [numbers.number(part) for part in np.array_split(wanted, 90)]
    expected, distinct = naive.number_keys(wanted)
    assert np.concatenate(found).tolist() == expected
    assert numbers.keys.tolist() == distinct and len(numbers) == len(distinct)


def test_there_may_be_too_many_keys():
    numbers = KeyNumbers("queries", most=3)
    numbers.number(np.arange(3, dtype=np.uint64)[:, None])
    with pytest.raises(SentembError, match="more than 3 distinct queries; split it"):
        numbers.number(np.arange(2, 5, dtype=np.uint64)[:, None])


# -- the same log ----------------------------------------------------------------------------------

TEXTS = st.text(st.sampled_from("ab Öß,\x0b\x85\r\u3000\ufeff"), min_size=0, max_size=4)
LINES = st.one_of(
    st.tuples(TEXTS, TEXTS, st.sampled_from(["", "\t1", "\t7", "\t0", "\tx"])).map(
        lambda parts: f"{parts[0]}\t{parts[1]}{parts[2]}"
    ),
    TEXTS,
)
JSON_LINES = st.one_of(
    st.fixed_dictionaries(
        {"query": TEXTS, "clicked": st.lists(TEXTS, max_size=3)},
        optional={"skipped": st.lists(TEXTS, max_size=4)},
    ).map(lambda record: json.dumps(record, ensure_ascii=False)),
    st.sampled_from(["{", "[]", '{"query": "a"}']),
)


def outcome(call):
    """What ``call`` returns, and the message of its error."""
    try:
        return call(), ""
    except SentembError as error:
        return None, str(error)


@pytest.mark.parametrize("lines", [LINES, JSON_LINES], ids=["tsv", "json"])
@pytest.mark.parametrize("block", [1, 3, 1 << 16])
def test_any_log_is_the_one_that_is_read(lines, block, tmp_path_factory, monkeypatch):
    monkeypatch.setattr(preparing, "_PAIRS", block)
    monkeypatch.setattr(preparing, "_TEXTS", block)
    home = tmp_path_factory.mktemp("any")
    path, out = home / "log", home / "out"

    @settings(max_examples=settings().max_examples // 2, deadline=None)
    @given(st.lists(lines, max_size=12), st.booleans(), st.sampled_from(list(SPLITTINGS)))
    def check(some, skip, splitting):
        path.write_bytes("\n".join(some).encode())
        options = {"skip_bad_lines": skip}
        expected, refused = outcome(lambda: read_click_log(path, **options))
        before = tree(out) if out.exists() else None
        found, also = outcome(
            lambda: prepare_log(path, out, force=True, splitting=splitting, **options)
        )
        assert also == refused
        if refused:
            assert before == (tree(out) if out.exists() else None)
            return
        assert_same(found, expected, splitting)
        assert sorted(os.listdir(out)) == sorted([DESCRIPTION, *FILES])

    check()


@pytest.mark.parametrize("block", [1, 1 << 16])
def test_a_title_that_is_skipped_later_comes_before_others(tmp_path, monkeypatch, block):
    monkeypatch.setattr(preparing, "_PAIRS", block)
    monkeypatch.setattr(preparing, "_TEXTS", 2)
    lines = [
        {"query": "a", "clicked": ["w x"]},
        {"query": "b", "clicked": ["y x"], "skipped": ["v", "w x"]},
        {"query": "a", "clicked": ["w x"], "skipped": ["z", "v", "z"]},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    expected = read_click_log(path)
    assert expected.titles == ["w x", "z", "v", "y x"]
    assert_same(prepare_log(path, tmp_path / "out"), expected)


def test_letters_end_a_block_too(tmp_path, monkeypatch):
    monkeypatch.setattr(preparing, "_LETTERS", 40)
    path = written(tmp_path)
    assert_same(prepare_log(path, tmp_path / "out"), read_click_log(path))


def test_clicks_that_add_up_to_too_many_are_the_fault_of_one_line(tmp_path):
    most = 10**12
    lines = [f"a\tx\t{most - 2}", "b\ty\t5", "a\tx\t2", "a\tx", "b\ty\t9", "c\tnew title"]
    path = tmp_path / "log.tsv"
    path.write_text("\n".join(lines))
    with pytest.raises(SentembError, match=r"log.tsv:4: the clicks of this pair") as error:
        prepare_log(path, tmp_path / "out")
    with pytest.raises(SentembError) as read:
        read_click_log(path)
    assert str(read.value) == str(error.value) and not (tmp_path / "out").exists()
    found = prepare_log(path, tmp_path / "out", skip_bad_lines=True)
    assert_same(found, read_click_log(path, skip_bad_lines=True))
    assert found.clicks.tolist() == [most, 14, 1]


@pytest.mark.parametrize("place", [1, 2])
def test_a_title_that_only_a_bad_line_has_is_left_out(tmp_path, place):
    """Its line is bad because of the sum of clicks, after the title has got a number."""
    full = {"query": "a", "clicked": ["x"], "clicks": [10**12]}
    lines = [full, {"query": "b", "clicked": ["y"]}]
    lines.insert(place, {**full, "skipped": ["bad"]})
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    expected = read_click_log(path, skip_bad_lines=True)
    assert expected.titles == ["x", "y"] and expected.bad_lines == 1
    assert_same(prepare_log(path, tmp_path / "out", skip_bad_lines=True), expected)


def test_compressed_logs_and_standard_input(tmp_path, monkeypatch, prepared):
    raw = prepared.path.read_bytes()
    packed = tmp_path / "log.jsonl.gz"
    packed.write_bytes(gzip.compress(raw))
    assert_same(prepare_log(packed, tmp_path / "packed"), prepared.log)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(raw)))
    found = prepare_log("-", tmp_path / "piped")
    assert_same(found, prepared.log)
    assert found.identity == PreparedLog.open(prepared.out).identity


# -- several files ---------------------------------------------------------------------------------


def parquet(path, rows, *columns):
    """Write rows as Parquet, in groups of three."""
    pyarrow = pytest.importorskip("pyarrow", reason="it is optional")
    from pyarrow.parquet import write_table

    table = pyarrow.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))
    write_table(table, path, row_group_size=3)


def rows_of(log):
    return [
        (log.queries[query], log.titles[title], int(clicks))
        for query, title, clicks in zip(log.query_index, log.title_index, log.clicks, strict=True)
    ]


def files_of(folder):
    return {name: (folder / name).read_bytes() for name in FILES}


def test_files_and_folders_are_one_log(tmp_path):
    rows = rows_of(made_up_log(40))
    (tmp_path / "one.tsv").write_text("".join(f"{q}\t{t}\t{c}\n" for q, t, c in rows))
    one = prepare_log(tmp_path / "one.tsv", tmp_path / "one")
    logs = tmp_path / "logs"
    logs.mkdir()
    (tmp_path / "z.tsv").write_text("".join(f"{q}\t{t}\t{c}\n" for q, t, c in rows[:10]))
    parquet(logs / "a.parquet", [(5, t, q, c) for q, t, c in rows[10:20]], "id", "title", "query",
            "clicks")  # fmt: skip
    lines = [json.dumps({"query": q, "clicked": [t], "clicks": [c]}) for q, t, c in rows[20:30]]
    (logs / "b.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    (logs / "c.tsv").write_text("\n".join(f"{q}\t{t}\t{c}" for q, t, c in rows[30:]))
    (logs / "d.tsv").write_text("")
    for other in ("notes.txt", "_SUCCESS", "_old.tsv", ".c.tsv", ".c.tsv.crc"):
        (logs / other).write_text("no log\n")
    several = prepare_log([tmp_path / "z.tsv", logs], tmp_path / "several")
    assert files_of(tmp_path / "several") == files_of(tmp_path / "one")
    assert several.identity == one.identity and several.lines == one.lines == 40
    assert several.sources == (5, "z.tsv", "d.tsv")
    done = run("prepare", tmp_path / "z.tsv", logs, "-o", tmp_path / "several", "--force")
    assert not done.exit_code and files_of(tmp_path / "several") == files_of(tmp_path / "one")


def test_the_description_does_not_grow_with_the_number_of_files(tmp_path):
    (tmp_path / "logs").mkdir()
    for number in range(300):
        (tmp_path / f"logs/{number:0200}.tsv").write_text(f"query\ttitle {number}\t1\n")
    prepare_log(tmp_path / "logs", tmp_path / "out")
    (tmp_path / "one").mkdir()
    shutil.copy(tmp_path / f"logs/{0:0200}.tsv", tmp_path / "one")
    (tmp_path / "one/other.tsv").write_text("another\ttitle\n")
    prepare_log(tmp_path / "one", tmp_path / "few")
    size, few = ((tmp_path / name / DESCRIPTION).stat().st_size for name in ("out", "few"))
    assert size < few + 1000


def test_parquet_is_a_log_wherever_a_log_is_read(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="it is optional")
    from pyarrow.parquet import write_table

    log = made_up_log(300)
    parquet(tmp_path / "log.parquet", rows_of(log), "query", "title", "clicks")
    write_click_log(log, tmp_path / "log.tsv")
    prepare_log(tmp_path / "log.parquet", tmp_path / "parquet")
    prepare_log(tmp_path / "log.tsv", tmp_path / "tsv")
    assert files_of(tmp_path / "parquet") == files_of(tmp_path / "tsv")
    assert_same(PreparedLog.open(tmp_path / "parquet"), read_click_log(tmp_path / "log.parquet"))
    weights = weights_of(tmp_path / "log.parquet", tmp_path / "a", epochs=1)
    assert weights == weights_of(tmp_path / "log.tsv", tmp_path / "b", epochs=1)
    table = pyarrow.table([["a"], ["b"], ["c"]], names=["query", "title", "query"])
    write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(SentembError, match=r"twice.parquet: two columns are named query; rename"):
        read_click_log(tmp_path / "twice.parquet")
    with pytest.raises(SentembError, match=r"x.parquet: a log is not written as Parquet; name"):
        write_click_log(log, tmp_path / "x.parquet")


@pytest.mark.parametrize(
    ("columns", "row", "message"),
    [
        (("query", "title"), (None, "x"), r"bad.parquet: row 5: the query is missing"),
        (("query", "title"), ("x", " "), r"bad.parquet: row 5: the title is empty"),
        (("query", "title", "clicks"), ("a", "b", 0), r"bad.parquet: row 5: the clicks are 0; giv"),
        (("query", "title", "clicks"), ("a", "b", None), r"row 5: the clicks are None"),
        (
            ("query", "title", "clicks"),
            ("a", "b", 2**63),
            r"row 5: the clicks are 92233720",
        ),
        (("query", "titel"), ("a", "b"), r"bad.parquet: has no column title; its columns are q"),
    ],
)
def test_a_bad_row_is_named_with_its_file(tmp_path, columns, row, message):
    (tmp_path / "good.tsv").write_text("g\th\n")
    rows = [("a", f"title {number}", 1)[: len(columns)] for number in range(4)]
    if row[-1] == 2**63:
        rows = [(*one[:2], 10**12) for one in rows]
    pyarrow = pytest.importorskip("pyarrow", reason="it is optional")
    from pyarrow.parquet import write_table

    types = {"clicks": pyarrow.uint64()}
    arrays = [
        pyarrow.array(values, types.get(name))
        for name, values in zip(columns, zip(*rows, row, strict=True), strict=True)
    ]
    write_table(pyarrow.table(arrays, list(columns)), tmp_path / "bad.parquet")
    both = [tmp_path / "good.tsv", tmp_path / "bad.parquet"]
    with pytest.raises(SentembError, match=message):
        prepare_log(both, tmp_path / "out")
    if "titel" not in columns:
        found = prepare_log(both, tmp_path / "out", skip_bad_lines=True)
        assert (found.lines, found.bad_lines, len(found.clicks)) == (6, 1, 5)


def test_what_is_no_parquet_or_no_folder_of_logs_is_refused(tmp_path, prepared, monkeypatch):
    (tmp_path / "log.parquet").write_text("PAR1")
    with pytest.raises(SentembError, match=r"log.parquet: not a whole Parquet file"):
        prepare_log(tmp_path / "log.parquet", tmp_path / "out")
    with pytest.raises(SentembError, match=r"none.parquet: cannot be read"):
        prepare_log(tmp_path / "none.parquet", tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(SentembError, match=r"pip install 'sentemb\[parquet\]'"):
            prepare_log(tmp_path / "log.parquet", tmp_path / "out")
    (tmp_path / "set").mkdir()
    with pytest.raises(SentembError, match=r"set: has no logs; let their names end in .tsv, "):
        prepare_log([prepared.path, tmp_path / "set"], tmp_path / "out")
    (tmp_path / "logs").mkdir()
    for name in ("pairs.tsv", "pairs-2.tsv"):  # a name like any other
        (tmp_path / "logs" / name).write_text(f"a\t{name}\n")
    logs = prepare_log(tmp_path / "logs", tmp_path / "of logs")
    assert set(logs.titles) == {"pairs.tsv", "pairs-2.tsv"}
    # Of a data set only one file is the log: dev.tsv must not be trained on.
    for name in ("pairs.tsv", "dev.tsv"):
        (tmp_path / "set" / name).write_text("a\tb\n")
    with pytest.raises(SentembError, match=r"set: is a folder; did you mean .*set/pairs.tsv\?"):
        prepare_log(tmp_path / "set", tmp_path / "out")
    with pytest.raises(SentembError, match="there is no log to prepare"):
        prepare_log([], tmp_path / "out")
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(SentembError, match="2 files: no pairs, the input is empty"):
        prepare_log([tmp_path / "empty.tsv"] * 2, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_progress_and_notes(tmp_path, monkeypatch):
    monkeypatch.setattr(preparing, "_LINES", 50)
    monkeypatch.setattr(preparing, "_TEXTS", 100)
    path = tmp_path / "log.tsv"
    write_click_log(made_up_log(300), path)
    path.write_text(f"{path.read_text()}bad\n")
    told, notes = [], []
    more = {"skip_bad_lines": True, "on_progress": told.append, "on_note": notes.append}
    prepare_log(path, tmp_path / "out", **more)
    assert notes == ["skipped 1 bad line of the log"]
    reading = [one for one in told if one.unit == "lines"]
    assert [one.done for one in reading] == list(range(50, 301, 50))
    assert reading[0].share == pytest.approx(1 / 6, abs=0.03)
    splitting = [one for one in told if one.unit == "texts"]
    assert [one.share for one in splitting] == sorted(one.share for one in splitting)
    assert splitting[-1].share == 1


# -- the same model --------------------------------------------------------------------------------

VARIANTS = {
    "lstm": {},
    "shared": {"shared_towers": True},
    "bag": {"model": "bag", "cells": None},
    "shared bag": {"model": "bag", "cells": None, "shared_towers": True},
    "titles of the corpus": {"negatives": "corpus"},
    "skipped titles": {"negatives": "log", "n_negatives": 2},
    "hard negatives alone": {"hard_negatives": 2, "group_size": 1},
    "trigrams": {"word_features": 0},
}


def weights_of(source, output, **given):
    chosen = {name: value for name, value in {**TINY, **given}.items() if value is not None}
    train(source, output=output, **chosen)
    return (output / "model.safetensors").read_bytes()


@pytest.mark.parametrize("name", VARIANTS)
def test_a_model_has_the_same_bits_from_memory_and_from_disk(prepared, tmp_path, name):
    own = {**VARIANTS[name], "epochs": 3}
    in_memory = weights_of(prepared.path, tmp_path / "memory", threads=1, **own)
    assert weights_of(prepared.out, tmp_path / "two threads", threads=2, **own) == in_memory
    if name == "lstm":
        opened = PreparedLog.open(prepared.out)
        assert weights_of(opened, tmp_path / "opened", threads=1, **own) == in_memory


def test_other_splittings(tmp_path, prepared):
    path = tmp_path / "log.tsv"
    path.write_text('Flat, shoes\t"Shoes", flat!\nred hat\tA hat (red)\n' * 3)
    prepare_log(path, tmp_path / "out", splitting="white-space")
    own = {"splitting": "white-space", "threads": 1, "word_features": 1}
    mapped = weights_of(tmp_path / "out", tmp_path / "a", **own)
    assert mapped == weights_of(path, tmp_path / "b", **own)
    with pytest.raises(SentembError, match="prepare the log again with --splitting bare-letters"):
        train(tmp_path / "out", **TINY, splitting="bare-letters")
    # Without a wish it is split as it was, also by an earlier version.
    assert train(tmp_path / "out", **TINY).vocabulary.splitting == "white-space"
    with pytest.raises(SentembError, match="splitting must be one of"):
        prepare_log(path, tmp_path / "new", splitting="none")


def test_dev_sets_and_models_to_start_from(prepared, tmp_path):
    judged, held_out = made_up_judged_set(prepared.log), made_up_log(40, seed=3)
    for dev in (judged, held_out):
        own = {"dev": dev, "threads": 1}
        both = [
            weights_of(source, tmp_path / f"{type(dev).__name__}{number}", **own)
            for number, source in enumerate((prepared.path, prepared.out))
        ]
        assert both[0] == both[1]
    continued = {"start_from": tmp_path / "ClickLog0", "threads": 1, "cells": None, "epochs": 1}
    in_memory = weights_of(prepared.path, tmp_path / "c", **continued)
    assert weights_of(prepared.out, tmp_path / "d", **continued) == in_memory
    several = {"seeds": 2, "threads": 1, "epochs": 1}
    in_memory = weights_of(prepared.path, tmp_path / "e", **several)
    assert weights_of(prepared.out, tmp_path / "f", **several) == in_memory


@pytest.mark.parametrize("first", ["path", "out"])
def test_a_training_resumes_from_the_other_source(prepared, tmp_path, first):
    whole = weights_of(prepared.path, tmp_path / "whole", threads=1)
    output, seen = tmp_path / "m", []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 40:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(getattr(prepared, first), output=output, threads=1, **TINY, on_progress=stop)
    other = prepared.out if first == "path" else prepared.path
    assert weights_of(other, output, threads=1, resume=True) == whole


TRAIN_IN_A_CHILD = """
import sys
import sentemb
sentemb.train(sys.argv[1], output=sys.argv[2], cells=6, epochs=4, batch_size=16, threads=1,
              checkpoint_seconds=0, resume=True)
"""


def test_a_killed_training_goes_on(prepared, tmp_path):
    whole = weights_of(prepared.path, tmp_path / "whole", threads=1)
    output = tmp_path / "m"
    run = forked(TRAIN_IN_A_CHILD, prepared.out, output)
    known = set()
    while run.poll() is None and len(known) < 12:
        known |= {path.name for path in output.glob("checkpoints/*")}
        time.sleep(0.001)
    run.kill()
    run.communicate()
    assert run.returncode == -signal.SIGKILL, "the kill is to fall into the training"
    assert weights_of(prepared.out, output, threads=1, resume=True) == whole


def test_the_fingerprint_is_that_of_the_log_in_memory(prepared):
    for own in ({}, {"shared_towers": True}, {"word_features": 0}):
        corpora = [
            Corpus(log, Settings(**own)) for log in (prepared.log, PreparedLog.open(prepared.out))
        ]
        assert corpora[0].fingerprint() == corpora[1].fingerprint()
        np.testing.assert_array_equal(corpora[0].sorted_titles, corpora[1].sorted_titles)


def test_words_are_limited_as_from_memory(prepared, tmp_path):
    own = {"threads": 1, "word_features": 1, "max_word_features": 7}
    in_memory = weights_of(prepared.path, tmp_path / "a", **own)
    assert weights_of(prepared.out, tmp_path / "b", **own) == in_memory
    model = SentenceEncoder.from_pretrained(tmp_path / "a")
    every = Corpus(prepared.log, Settings(word_features=1)).vocabulary.words
    assert model.vocabulary.words == every[:7] and len(every) > 7
    assert model.training["max_word_features"] == 7
    with pytest.raises(SentembError, match="but word_features is 0; leave one of them out"):
        train(prepared.path, **TINY, word_features=0, max_word_features=7)
    with pytest.raises(SentembError, match="max_word_features = 7, not 8; resume with the same"):
        weights_of(prepared.out, tmp_path / "a", resume=True, **{**own, "max_word_features": 8})
    weights_of(prepared.out, tmp_path / "bag", model="bag", cells=None, epochs=1)
    with pytest.raises(SentembError, match="max_word_features does not apply: the features are"):
        train(prepared.path, start_from=tmp_path / "bag", model="lstm", max_word_features=2)


# -- where only a log will do ----------------------------------------------------------------------


def test_what_needs_a_log_says_so(prepared, tmp_path):
    out, opened = prepared.out, PreparedLog.open(prepared.out)
    for source in (out, opened):
        with pytest.raises(SentembError, match=r"share of a prepared log; run `sentemb split"):
            train(source, dev="5%", **TINY)
        with pytest.raises(SentembError, match="join both logs and prepare them"):
            train(source, replay=prepared.path, **TINY)
        with pytest.raises(SentembError, match="give the log that it was made"):
            train(source, model="arc1", output=tmp_path / "m")
    named = "is a folder of `sentemb prepare`, which only the training of two towers reads"
    for call in (
        lambda: read_click_log(out),
        lambda: train(prepared.path, replay=out, **TINY),
        lambda: split_log(out),
        lambda: prepare_log(out, tmp_path / "new"),
    ):
        with pytest.raises(SentembError, match=named):
            call()


def test_a_prepared_log_is_no_dev_set(prepared, tmp_path):
    with pytest.raises(SentembError, match="not a judged set; give held-out clicks as a file"):
        train(prepared.path, dev=prepared.out, **TINY)


# -- what may be there already ---------------------------------------------------------------------


def test_the_current_folder_is_filled_and_never_replaced(prepared, tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.chdir(out)
    assert len(prepare_log(prepared.path, ".").clicks) == len(prepared.log.clicks)
    before = tree(out)
    assert set(os.listdir()) == {DESCRIPTION, *FILES}
    with pytest.raises(SentembError, match=r"\.: has the current folder, .* with the name out"):
        prepare_log(prepared.path, ".", force=True)
    assert tree(out) == before


def test_a_mount_point_is_filled_and_never_replaced(prepared, tmp_path, monkeypatch):
    out = tmp_path / "out"
    out.mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: str(path) == str(out))
    place = out.stat().st_ino
    prepare_log(prepared.path, out)
    assert out.stat().st_ino == place  # renaming it would fail after all the work
    before = tree(tmp_path)
    with pytest.raises(SentembError, match=r"is a mount point, .* name a folder in it"):
        prepare_log(prepared.path, out, force=True)
    assert tree(tmp_path) == before


def test_other_places_that_cannot_hold_a_prepared_log(prepared, tmp_path, monkeypatch):
    out = tmp_path / "out"
    prepare_log(prepared.path, out)
    (out / DESCRIPTION).unlink()
    with pytest.raises(
        SentembError, match=r"has files of a prepared log, but no prepared\.json; n"
    ):
        prepare_log(prepared.path, out, force=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SentembError, match="standard output cannot hold this output"):
        prepare_log(prepared.path, "-")


def test_only_a_prepared_log_is_replaced_and_only_when_asked(prepared, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    prepare_log(prepared.path, out)
    before = tree(out)
    with pytest.raises(SentembError, match="prepared log already; name another folder or use --f"):
        prepare_log(prepared.path, out)
    short = written(tmp_path, made_up_log(20))
    assert len(prepare_log(short, out, force=True).clicks) == 20
    prepare_log(prepared.path, out, force=True)
    assert tree(out) == before
    (out / "mine.txt").write_text("mine")
    with pytest.raises(SentembError, match=r"has other files .* mine.txt; name another folder"):
        prepare_log(short, out, force=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "pairs.tsv").write_text("a\tb\n")
    for force in (False, True):
        with pytest.raises(SentembError, match=r"such as pairs.tsv"):
            prepare_log(short, other, force=force)
        with pytest.raises(SentembError, match="is a file; name a folder"):
            prepare_log(short, prepared.path, force=force)
    with pytest.raises(SentembError, match="the name of the output folder is empty"):
        prepare_log(short, "")
    assert (out / "mine.txt").read_text() == "mine" and len(tree(other)) == 1


@pytest.mark.parametrize("state", ["new", "old"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stop"]
)
def test_whatever_call_fails_all_or_nothing_is_there(tmp_path, state, error, monkeypatch):
    path = written(tmp_path, made_up_log(20, skipped=True))
    old = tmp_path / "old"
    prepare_log(written(tmp_path, made_up_log(30, seed=1), "old.tsv"), old)
    prepare_log(path, tmp_path / "whole" / "out")
    new, failed = tree(tmp_path / "whole"), 0
    for count in itertools.count(1, 2):
        home = tmp_path / "home"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        if state == "old":
            shutil.copytree(old, home / "out")
        before = tree(home)
        with monkeypatch.context() as patch:
            calls = failing_calls(patch, ("replace", "rename", "mkdir", "open"), count, error)
            try:
                prepare_log(path, home / "out", force=True)
            except (SentembError, KeyboardInterrupt):
                failed += 1
                assert tree(home) in (before, new)
        if len(calls) < count:
            break
    assert failed >= 3 and len(PreparedLog.open(home / "out").clicks) == 20


@pytest.mark.parametrize("limit", [200, 2_000, 9_000])
def test_a_full_disk_is_one_clear_line_and_the_old_log_stays(prepared, tmp_path, limit):
    for name, make in (("new", None), ("old", prepared.out)):
        out = tmp_path / name
        if make is not None:
            shutil.copytree(make, out)
        before = tree(out) if make is not None else None
        with full_disk(limit), pytest.raises(SentembError) as raised:
            prepare_log(prepared.path, out, force=True)
        said = str(raised.value)
        assert "\n" not in said and "cannot be written" in said and str(out) in said
        assert ".sentemb" not in said and "File too large" in said
        assert before == (tree(out) if out.exists() else None)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".sentemb")]


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [DESCRIPTION, *FILES])
def test_damage_of_any_file_is_noticed(prepared, tmp_path, name):
    other = tmp_path / "other"
    prepare_log(written(tmp_path, made_up_log(250, seed=5, skipped=True)), other)
    whole = (prepared.out / name).read_bytes()
    rng = random.Random(name)
    place = rng.randrange(len(whole))
    if name == DESCRIPTION:
        place = whole.index(b"sha256") + rng.randrange(60)
    flipped = bytearray(whole)
    flipped[place] ^= 1 << rng.randrange(8)
    damages = {
        "missing": None,
        "empty": b"",
        "shorter": whole[:-1],
        "longer": whole + b"\n\n",
        "flipped": bytes(flipped),
        "of another log": (other / name).read_bytes(),
    }
    for what, content in damages.items():
        out = tmp_path / what
        shutil.copytree(prepared.out, out)
        if content is None:
            (out / name).unlink()
        else:
            (out / name).write_bytes(content)
        if content == whole or (name == DESCRIPTION and what in ("shorter", "longer")):
            PreparedLog.open(out)  # a description may have any white space
            continue
        with pytest.raises(SentembError, match=r"damaged|is missing|holds no prepared log") as e:
            PreparedLog.open(out)
        assert str(out) in str(e.value) and "prepare" in str(e.value)
        if name != DESCRIPTION:
            with pytest.raises(SentembError, match="prepared log is damaged"):
                train(out, **TINY)


def rewritten(out, change):
    """Change the description, and its checksum with it."""
    told = json.loads((out / DESCRIPTION).read_text())
    change(told)
    told["sha256"] = prepared_log._checksum_of(told)
    (out / DESCRIPTION).write_text(json.dumps(told))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda told: told.update(format=2),
            "format 2, and this version of sentemb reads format 1",
        ),
        (lambda told: told.update(format="1"), "has format '1'"),
        (lambda told: told["sources"].update(n_files="2"), '"sources" is missing or wrong'),
        (lambda told: told.update(pairs=-1), '"pairs" is missing or wrong'),
        (lambda told: told.update(pairs=2), "query-index.npy|clicks.npy"),
        (lambda told: told.update(queries=3), "queries"),
        (lambda told: told.update(splitting="letters"), '"splitting"'),
        (lambda told: told.pop("tokens"), '"tokens"'),
        (lambda told: told["files"].pop("clicks.npy"), '"files"'),
        (lambda told: told["files"].update({"../x": told["files"]["clicks.npy"]}), '"files"'),
    ],
)
def test_a_description_of_something_else_is_refused(prepared, tmp_path, change, message):
    shutil.copytree(prepared.out, tmp_path / "out")
    rewritten(tmp_path / "out", change)
    with pytest.raises(SentembError, match=message):
        PreparedLog.open(tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("query-index.npy", 3, 10**6),
        ("title-index.npy", 3, -1),
        ("clicked-titles.npy", -1, 10**6),
        ("skipped-index.npy", 0, 10**6),
        ("clicks.npy", 2, 0),
        ("skipped-offsets.npy", 5, 10**6),
        ("clicked-offsets.npy", 0, 1),
        ("queries-tokens.npy", 0, 10**6),
        ("titles-token-offsets.npy", -1, 10**6),
        ("titles-offsets.npy", 4, 1),
    ],
)
def test_numbers_that_no_kernel_may_see_are_refused(prepared, tmp_path, name, place, value):
    """A folder from elsewhere, whose checksums fit."""
    out = tmp_path / "out"
    shutil.copytree(prepared.out, out)
    array = np.load(out / name)
    array[place] = value
    np.save(out / name, array)
    rewritten(out, lambda told: told["files"].update({name: described(out / name)}))
    with pytest.raises(SentembError, match=f"{name}: the prepared log is damaged"):
        PreparedLog.open(out)


def test_a_folder_without_a_prepared_log(tmp_path):
    with pytest.raises(SentembError, match=r"holds no prepared log: prepared.json is missing"):
        PreparedLog.open(tmp_path)


# -- the command -----------------------------------------------------------------------------------


def run(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_the_commands(prepared, tmp_path):
    out, model = tmp_path / "out", tmp_path / "model"
    done = run("prepare", prepared.path, "-o", out)
    assert not done.exit_code, done.output
    assert f"{out}: 300 pairs, 234 queries, 532 titles" in done.output
    assert tree(out) == tree(prepared.out)
    shape = ("--cells", 4, "--epochs", 1, "--batch-size", 32, "--threads", 1)
    dev = written(tmp_path, made_up_log(30, seed=4), "dev.tsv")
    done = run("train", out, "-o", model, "--dev", dev, *shape)
    assert not done.exit_code, done.output
    assert "no ranker: fitting one keeps the texts of the log in memory" in done.output
    assert not (model / "ranker").exists()
    again = run("prepare", prepared.path, "-o", out)
    assert again.exit_code == 1 and "use --force" in again.output
    assert not run("prepare", prepared.path, "-o", out, "--force").exit_code


def test_progress_is_shown_with_the_time_that_is_left(monkeypatch):
    from sentemb.cli import prepare

    now, told = iter([0.0, 90.0, 95.0, 95.0]), []
    monkeypatch.setattr(prepare.time, "monotonic", lambda: next(now))
    shown = prepare._Shown(SimpleNamespace(is_due=True, draw=told.append))
    for one in (
        Preparing("reading the log", 0, "lines", 0.0),
        Preparing("reading the log", 4096, "lines", None),
        Preparing("reading the log", 8192, "lines", 0.5),
        Preparing("splitting into words", 300, "texts", 1.0),
    ):
        shown.show(one)
    assert told == [
        "reading the log: 0 lines",
        "reading the log: 4,096 lines",
        "reading the log: 8,192 lines, 50%, 1 min 30 s left",
        "splitting into words: 300 texts, 100%, 0 s left",
    ]
