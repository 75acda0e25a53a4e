"""The folder of a comparison: prepared, damaged, stopped, full; and one row that fails."""

import copy
import json
import os
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import failing_calls, tree

from sentemb import SentembError, SentenceEncoder
from sentemb.cli import main
from sentemb.comparison import runner, store
from sentemb.comparison.baselines import BASELINES
from sentemb.comparison.baselines.baseline import Baseline
from sentemb.comparison.data_folder import read_data
from sentemb.comparison.rows import ROWS, EncoderRow, ModelRow, Row, rows_of
from sentemb.comparison.runner import Comparison
from sentemb.data.click_log import ClickLog
from sentemb.data.simulation.simulator import simulate
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

TINY = {"model": "bag", "cells": 4, "epochs": 1, "batch_size": 64}


class Length(Baseline):
    """Long titles first. Raises ``fault``, if there is one, when it is fitted."""

    name = "length"
    fault = None

    def fit(self, log, titles=(), seed=0):
        if Length.fault is not None:
            raise Length.fault
        return self

    def score_pairs(self, queries, titles, query_index, title_index):
        return np.array([len(titles[d]) for d in title_index], np.float64)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("simulated") / "log"
    simulate(path, pairs=60, dev_queries=5, test_queries=8)
    return path


@pytest.fixture(scope="module", autouse=True)
def rows():
    """Rows and a baseline of these tests only."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(BASELINES, "length", (__name__, "Length"))
        for row in (Row("length", {"name": "length"}), EncoderRow("quick", TINY, grid=({},))):
            patch.setitem(ROWS, row.name, row)
        yield


@pytest.fixture
def fault():
    """A function that lets the row ``length`` fail."""
    yield lambda error: setattr(Length, "fault", error)
    Length.fault = None


@pytest.fixture(scope="module")
def measured(data, rows, tmp_path_factory):
    """A comparison of random and length that is done."""
    out = tmp_path_factory.mktemp("measured") / "out"
    Comparison(read_data(data), out, rows_of(["random", "length"]), seeds=1, note=_silent).run()
    return out


@pytest.fixture
def out(measured, tmp_path):
    """A copy of it that a test may damage."""
    return shutil.copytree(measured, tmp_path / "out")


def _silent(text):
    pass


def compare(*arguments, code=0):
    result = CliRunner().invoke(main, ["compare", *map(str, arguments), "--threads", "1"])
    assert result.exit_code == code, (result.output, result.exception)
    return result


def again(data, out, *more, code=0):
    return compare(data, "-o", out, "--models", "random,length", "--seeds", 1, *more, code=code)


def refused(*arguments):
    """The one line that stderr says, exit code 1."""
    result = again(*arguments, code=1)
    assert result.stdout == "" and result.stderr.count("\n") == 1
    assert len(result.stderr) <= 300 + max(map(len, map(str, arguments)))
    return result.stderr.removeprefix("Error: ")


def lines_of(out):
    return [json.loads(line) for line in (out / store.RESULTS).read_text().splitlines()]


def write_lines(out, lines):
    (out / store.RESULTS).write_text("".join(json.dumps(line) + "\n" for line in lines))


# -- nothing outside the folder is touched ---------------------------------------------------------


@pytest.fixture
def victim(tmp_path):
    """A folder next to the comparison that must stay."""
    path = tmp_path / "victim"
    path.mkdir()
    (path / "kept.txt").write_text("kept")
    (tmp_path / "victim.run").write_text("kept")
    return path


@pytest.mark.parametrize(
    "change",
    [
        {"seed": "0/../../../victim"},
        {"row": "../../victim"},
        {"row": "/tmp/victim"},
        {"row": "x/../../../victim"},
        {"row": ".."},
        {"row": "random\0"},
        {"seed": -1},
        {"seed": True},
        {"seed": 10**300},
    ],
    ids=str,
)
def test_a_prepared_line_deletes_nothing_outside(data, out, victim, tmp_path, change):
    before = tree(victim), (tmp_path / "victim.run").read_text()
    # A setting of its own makes it a line that --force throws away.
    settings = {"name": "random", "other": 1}
    first, second = lines_of(out)
    write_lines(out, [first, second, {**first, "settings": settings, **change}])
    assert "results.jsonl:3: " in refused(data, out)
    again(data, out, "--force")
    assert (tree(victim), (tmp_path / "victim.run").read_text()) == before
    assert lines_of(out) == [first, second]


@pytest.mark.parametrize("kind", ["runs", "models"])
def test_a_link_out_of_the_folder_is_not_followed(data, out, victim, kind):
    for name in ("random.seed0.run", "random.seed0"):
        (victim / name).mkdir() if kind == "models" else (victim / name).write_text("kept")
    before = tree(victim)
    shutil.rmtree(out / kind, ignore_errors=True)
    (out / kind).symlink_to(victim)
    first, second = lines_of(out)
    write_lines(out, [{**first, "settings": {"name": "random", "other": 1}}, second])
    assert f"{kind}: " in refused(data, out, "--force")
    assert tree(victim) == before


@pytest.mark.parametrize("name", [store.RESULTS, store.DESCRIPTION])
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_files_that_are_links_or_pipes_are_refused(data, out, victim, name, force):
    (out / name).unlink()
    (out / name).symlink_to(victim / "kept.txt")
    assert f"{name}: is not a regular file" in refused(data, out, *force)
    (out / name).unlink()
    os.mkfifo(out / name)
    assert f"{name}: is not a regular file" in refused(data, out, *force)
    assert (victim / "kept.txt").read_text() == "kept"


def test_run_files_and_models_that_are_links_are_replaced(data, tmp_path, victim):
    out = tmp_path / "fresh"
    quick = ("-o", out, "--models", "quick", "--seeds", 1, "--keep-models")
    compare(data, *quick)
    before = tree(victim)
    run, model = out / "runs" / "quick.seed0.run", out / "models" / "quick.seed0"
    whole = run.read_bytes()
    run.unlink()
    run.symlink_to(victim / "kept.txt")
    shutil.rmtree(model)
    model.symlink_to(victim)
    compare(data, *quick)
    assert tree(victim) == before
    assert not run.is_symlink() and run.read_bytes() == whole and not model.is_symlink()
    run.unlink()
    os.mkfifo(run)
    compare(data, *quick)
    assert run.read_bytes() == whole


# -- damaged files ---------------------------------------------------------------------------------

DAMAGED_LINES = {
    "not UTF-8": b"\xff\xfe{}",
    "not JSON": b"seed 0",
    "blank": b"",
    "NUL": b"\0\0\0\0",
    "truncated": None,
    "too deep": b"[" * 100_000,
    "4,301 digits": b'{"seed": ' + b"9" * 4301 + b"}",
    "a list": b"[1, 2]",
    "null": b"null",
    "empty": b"{}",
}
DAMAGED_VALUES = [
    {"row": None},
    {"row": 5},
    {"row": "lstm-97"},
    {"row": "x" * 10_000},
    {"seed": "0"},
    {"seed": 0.0},
    {"seed": 100},
    {"seed": 10**400},
    {"settings": None},
    {"settings": []},
    {"settings": {"name": ["random"]}},
    {"settings": {"name": "x" * 10_000}},
    {"settings": {"mu": float("nan")}},
    {"settings": {str(k): k for k in range(1000)}},
    {"dev": None, "test": 1},
    {"dev": [1, 2]},
    {"dev": [0.5, 0.5, "0.5"]},
    {"dev": [0.5, 0.5, float("nan")]},
    {"dev": [0.5, 0.5, float("inf")]},
    {"dev": [0.5, 0.5, 1.5]},
    {"dev": [0.5, 0.5, 10**400]},
    {"test": None},
    {"test": {}},
    {"run": 5},
    {"run": "short"},
    {"parameters": None},
    {"parameters": -1},
    {"parameters": 10**400},
    {"parameters": 1.5},
    {"seconds": "1"},
    {"seconds": -1},
    {"seconds": float("inf")},
    {"seconds": 1e300},
    {"sentences_per_second": True},
    {"sentences_per_second": float("nan")},
    {"sentences_per_second": 10**400},
    {"more": 1},
]


def mends_with_force(data, out, kept):
    """--force drops what is damaged, says so, and keeps or measures again the rest."""
    said = again(data, out, "--force").stderr
    assert "dropped" in said
    assert [line["row"] for line in lines_of(out)[: len(kept)]] == [line["row"] for line in kept]
    assert {line["row"] for line in lines_of(out)} == {"random", "length"}
    assert "NDCG@1" in again(data, out).stdout


@pytest.mark.parametrize("damage", DAMAGED_LINES)
def test_a_damaged_line_is_named(data, out, damage):
    path = out / store.RESULTS
    whole = path.read_bytes().splitlines(keepends=True)
    second = whole[1][: len(whole[1]) // 2] if damage == "truncated" else DAMAGED_LINES[damage]
    path.write_bytes(whole[0] + second + b"\n" * (damage != "truncated"))
    before = tree(out)
    message = refused(data, out)
    assert message.startswith(f"{path}:2: ") and "--force" in message
    assert tree(out) == before
    mends_with_force(data, out, [json.loads(whole[0])])


@pytest.mark.parametrize("change", DAMAGED_VALUES, ids=lambda change: str(change)[:40])
def test_a_damaged_value_is_named(data, out, change):
    first, second = lines_of(out)
    write_lines(out, [first, {**second, **change}])
    message = refused(data, out)
    assert message.startswith(f"{out / store.RESULTS}:2: ") and "--force" in message
    assert next(iter(change)) in message or "row" in change or "test" in message
    mends_with_force(data, out, [first])


@pytest.mark.parametrize("key", ["row", "seed", "settings", "dev", "test", "run", "parameters"])
def test_a_missing_key_is_named(data, out, key):
    first, second = lines_of(out)
    write_lines(out, [first, {name: value for name, value in second.items() if name != key}])
    message = refused(data, out)
    assert message.startswith(f"{out / store.RESULTS}:2: ") and f'"{key}"' in message
    mends_with_force(data, out, [first])


def test_a_line_given_twice_is_named(data, out):
    first, second = lines_of(out)
    write_lines(out, [first, second, {**first, "parameters": 7}])
    assert f"{store.RESULTS}:3: repeats line 1" in refused(data, out)
    mends_with_force(data, out, [first, second])


def test_lines_of_models_that_are_not_asked_for_are_kept(data, out, model_dir):
    again(data, out, "--compare-with", model_dir)
    lines = lines_of(out)
    assert [line["row"] for line in lines] == ["random", "length", "tiny"]
    again(data, out, "--force")
    assert lines_of(out) == lines


def test_lines_of_a_ranker_that_is_not_asked_for_are_kept(data, out, model_dir, tmp_path):
    model = shutil.copytree(model_dir, tmp_path / "ranked")
    log = ClickLog.from_pairs([("red bat", "red bat"), ("sea", "sea fish")])
    recipe = Recipe({"cosine": 1.0, "memory": 1.0, "bm25": 0.5})
    clicks = ClickedQueries.of(log)
    HybridRanker(SentenceEncoder.from_pretrained(model), recipe, clicks, threads=1).save(model)
    again(data, out, "--compare-with", model)
    lines = lines_of(out)
    names = ["ranked", "ranked-cosine", "ranked-memory", "ranked-bm25"]
    assert [line["row"] for line in lines] == ["random", "length", *names]
    again(data, out, "--force")
    assert lines_of(out) == lines
    lines[2]["settings"]["part"] = "other"
    write_lines(out, lines)
    assert ":3: no row is named ranked" in refused(data, out)


DAMAGED_DESCRIPTIONS = [
    b"",
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b"[]",
    b"null",
    b"5",
    b"{}",
    b'{"data": 5}',
    b'{"data": "short"}',
    b'{"data": NaN}',
    b'{"data": null}',
    b'{"data": ' + b"9" * 5000 + b"}",
    b" " * 2**20,
]


@pytest.mark.parametrize("contents", DAMAGED_DESCRIPTIONS, ids=lambda contents: str(contents[:12]))
def test_a_damaged_description_is_named(data, out, contents):
    path = out / store.DESCRIPTION
    path.write_bytes(contents)
    before = tree(out)
    message = refused(data, out)
    assert message.startswith(f"{path}: ") and "--force" in message
    assert tree(out) == before
    again(data, out, "--force")
    assert "NDCG@1" in again(data, out).stdout


def test_results_larger_than_any_are_refused(data, out):
    with open(out / store.RESULTS, "r+b") as file:
        file.truncate(2**40)  # a hole; the disk has room for it
    assert "is larger than" in refused(data, out)
    again(data, out, "--force")


def test_a_folder_without_results_begins_again(data, out):
    (out / store.RESULTS).unlink()
    again(data, out)
    assert {line["row"] for line in lines_of(out)} == {"random", "length"}


def test_a_missing_run_file_is_made_again(data, out):
    whole = tree(out)
    for path in (out / "runs").iterdir():
        path.unlink()
    again(data, out)
    assert {name: c for name, c in tree(out).items() if name.startswith("runs")} == {
        name: c for name, c in whole.items() if name.startswith("runs")
    }


# -- a row that fails ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (SentembError("no such package"), "no such package"),
        (MemoryError(), "out of memory"),
        (OSError(5, "Input/output error"), "OSError: [Errno 5] Input/output error"),
        (ValueError("two\nlines"), "ValueError: two lines"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError("long " * 1000), "RuntimeError: long long"),
        (ZeroDivisionError(), "ZeroDivisionError"),
        (ImportError("half installed"), "ImportError: half installed"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_row_that_fails_is_listed_and_the_others_go_on(data, tmp_path, fault, error, reason):
    fault(error)
    given = (data, "-o", tmp_path / "out", "--models", "random,length", "--seeds", 1, "--json")
    result = compare(*given)
    found = json.loads(result.stdout)
    assert [row["row"] for row in found["rows"]] == ["random"]
    assert list(found["missing"]) == ["length"] and found["missing"]["length"].startswith(reason)
    assert "\n" not in found["missing"]["length"] and len(found["missing"]["length"]) <= 300
    fault(None)
    assert len(json.loads(compare(*given).stdout)["rows"]) == 2


def test_scores_that_are_not_numbers_fail_their_row_only(data, tmp_path, monkeypatch):
    (copied := shutil.copytree(data, tmp_path / "data") / "pairs.tsv").unlink()
    shutil.rmtree(copied.parent / "dev")
    monkeypatch.setattr(Length, "score_pairs", lambda self, q, d, qi, di: np.full(len(di), np.nan))
    out = tmp_path / "out"
    result = compare(copied.parent, "-o", out, "--models", "length,random", "--json")
    found = json.loads(result.stdout)
    assert "NaN" in found["missing"]["length"] and found["rows"]


def test_the_code_is_1_if_every_row_fails(data, tmp_path, fault):
    fault(MemoryError())
    result = compare(data, "-o", tmp_path / "out", "--models", "length", code=1)
    assert "missing: length: out of memory" in result.stdout
    assert result.stderr.splitlines()[-1].startswith("Error: no row could be measured")
    # Running out of time is not a failure.
    compare(data, "-o", tmp_path / "other", "--models", "random", "--budget", 0)


# -- stops and full disks --------------------------------------------------------------------------


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_whatever_write_fails_the_same_command_goes_on(data, tmp_path, monkeypatch, error):
    given = ("--models", "random,length", "--seeds", 1)
    whole = tmp_path / "whole"
    with monkeypatch.context() as patch:
        calls = failing_calls(patch, ["replace"], 0, None)
        compare(data, "-o", whole, *given)
    assert len(calls) == 6
    for k in range(1, len(calls) + 1):
        out = tmp_path / f"out{k}"
        with monkeypatch.context() as patch:
            failing_calls(patch, ["replace"], k, error)
            arguments = ["compare", data, "-o", out, *given]
            result = CliRunner().invoke(main, [*map(str, arguments)])
        if isinstance(error, OSError):
            assert result.exit_code == 1 and "No space left" in result.stderr.splitlines()[-1]
        else:
            assert result.exit_code in (1, 130)  # click turns it into 1 outside of the runs
        compare(data, "-o", out, *given)
        assert tree(out).keys() == tree(whole).keys()
        assert {line["row"] for line in lines_of(out)} == {"random", "length"}


def test_force_that_fails_leaves_what_was_there(data, out, tmp_path, monkeypatch):
    """On other data: either the old comparison still stands, or the new one can begin."""
    other = shutil.copytree(data, tmp_path / "data")
    qrels = other / "test" / "qrels.txt"
    qrels.write_text("\n".join(qrels.read_text().splitlines()[:-1]) + "\n")
    before = tree(out)
    with monkeypatch.context() as patch:
        failing_calls(patch, ["replace"], 1, OSError(28, "No space left on device"))
        assert "No space left" in refused(other, out, "--force")
    assert tree(out) == before
    again(other, out, "--force")


def _opened(data, out, rows, **settings):
    return Comparison(read_data(data), out, rows_of(rows), seeds=1, note=_silent, **settings)


def test_what_another_process_measured_meanwhile_is_kept(data, tmp_path):
    first = _opened(data, tmp_path / "out", ["random"])
    second = _opened(data, tmp_path / "out", ["length"])
    first.run()
    second.run()
    assert {line["row"] for line in lines_of(tmp_path / "out")} == {"random", "length"}


def test_a_folder_that_now_is_of_other_data_is_refused(data, tmp_path):
    other = shutil.copytree(data, tmp_path / "other")
    (other / "test" / "docs.tsv").open("a").write("more\tmore words\n")
    first = _opened(data, tmp_path / "out", ["random"])
    _opened(other, tmp_path / "out", ["random"], force=True)
    with pytest.raises(SentembError, match="on other data"):
        first.run()
    assert lines_of(tmp_path / "out") == []


def test_two_new_comparisons_at_once(data, tmp_path, monkeypatch):
    """The other process begins, and measures, between the first look and the lock."""
    make_folder = runner.make_folder

    def lose_the_race(folder):
        monkeypatch.setattr(runner, "make_folder", make_folder)
        _opened(data, folder, ["random"]).run()
        return make_folder(folder)

    monkeypatch.setattr(runner, "make_folder", lose_the_race)
    _opened(data, tmp_path / "out", ["length"])
    assert [line["row"] for line in lines_of(tmp_path / "out")] == ["random"]


def test_what_a_kill_leaves_in_a_new_folder_is_no_other_thing(data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    (out / ".sentemb-0123456789abcdef.tmp").write_text("{")
    again(data, out)


@pytest.mark.parametrize("place", ["out", "data", "results.jsonl", "comparison.json", "runs"])
def test_what_may_not_be_looked_at_is_named(data, out, monkeypatch, place):
    """As for an ordinary user who may not search a folder; root may."""
    hidden = {"out": str(out), "data": str(data)}.get(place, str(out / place))

    def guarded(whole):
        def function(path, *rest, **more):
            if str(path).startswith(hidden):
                raise PermissionError(13, "Permission denied", str(path))
            return whole(path, *rest, **more)

        return function

    with monkeypatch.context() as patch:
        for name in ("stat", "lstat", "listdir"):
            patch.setattr(os, name, guarded(getattr(os, name)))
        message = refused(data, out)
    assert message == f"{message.split(':')[0]}: cannot be read: Permission denied\n"
    assert message.startswith(hidden)


def test_a_name_that_is_too_long_is_named(data, tmp_path):
    assert "File name too long" in refused(data, tmp_path / ("x" * 300))
    assert "File name too long" in refused(tmp_path / ("x" * 300), tmp_path / "out")


# -- from Python -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"seeds": 0},
        {"seeds": 10**9},
        {"seeds": "3"},
        {"seeds": None},
        {"folder": None},
        {"folder": "a\0b"},
        {"rows": ["random"]},
        {"rows": None},
        {"data": "folder"},
    ],
    ids=str,
)
def test_wrong_arguments(data, tmp_path, settings):
    given = {"data": read_data(data), "folder": tmp_path / "out", "rows": rows_of(["random"])}
    with pytest.raises(SentembError):
        Comparison(**{**given, "note": _silent, **settings})
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("seconds", [float("nan"), -1, "60"])
def test_wrong_seconds(data, tmp_path, seconds):
    found = Comparison(read_data(data), tmp_path / "out", rows_of(["random"]), note=_silent)
    with pytest.raises(SentembError, match=r"seconds is .*; give a number of at least 0"):
        found.run(seconds=seconds)


@pytest.mark.parametrize("name", ["x" * 240, "  ", "a\ufeffb", os.fsdecode(b"caf\xe9")])
def test_a_model_folder_whose_name_cannot_be_a_row(model_dir, tmp_path, name):
    path = tmp_path / name
    shutil.copytree(model_dir, path)
    with pytest.raises(SentembError, match="cannot name a row; rename the folder"):
        ModelRow.of(path)


@pytest.mark.parametrize("names", [None, ["random"]])
def test_rows_of_leaves_the_rows_alone(names):
    before = copy.copy(ROWS)
    rows_of(names)
    assert before == ROWS


@pytest.mark.parametrize("names", [5, [5], [None], "random"])
def test_rows_of_what_is_not_a_list_of_names(names):
    with pytest.raises(SentembError):
        rows_of(names)
