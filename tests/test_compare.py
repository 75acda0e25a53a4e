"""``sentemb compare``: rows, choice on dev, results that are taken up again, tables."""

import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_judged_set, made_up_log

from sentemb import SentembError, train
from sentemb.cli import main
from sentemb.comparison import rows as all_rows
from sentemb.comparison.rows import ROWS, Row, rows_of
from sentemb.comparison.runner import Comparison, read_data
from sentemb.comparison.table import table_of
from sentemb.data.judged_set import write_judged_set
from sentemb.retrieval.trec import read_run

QUICK = {"cells": 4, "epochs": 1, "batch_size": 20}


@pytest.fixture(autouse=True)
def quick_row(monkeypatch):
    """A row that trains in no time, beside the real ones."""
    grid = ({"learning_rate": 0.001}, {"learning_rate": 0.01})
    row = Row("lstm-96", "encoder", QUICK, grid)
    monkeypatch.setattr(all_rows, "ROWS", {**ROWS, row.name: row})


@pytest.fixture
def folder(tmp_path):
    """A small log with judged sets."""
    log = made_up_log(120)
    pairs = zip(log.query_index, log.title_index)
    lines = [f"{log.queries[q]}\t{log.titles[d]}\n" for q, d in pairs]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pairs.tsv").write_text("".join(lines), "utf-8")
    for name in ("dev", "test"):
        write_judged_set(made_up_judged_set(log), tmp_path / "data" / name)
    return tmp_path / "data"


def compare(*arguments):
    return CliRunner().invoke(main, ["compare", *map(str, arguments)])


def quick(folder, *more):
    return compare(folder, "-o", folder.parent / "out", "--models", "random,unigram,lstm-96", *more)


def test_the_table_and_the_folder(folder):
    result = quick(folder, "--seeds", 2)
    assert result.exit_code == 0, result.output
    table = result.stdout.split("\n\n")[0].splitlines()
    assert [line.split()[0] for line in table] == ["model", "random", "unigram", "lstm-96"]
    assert table[0].split()[1:4] == ["NDCG@1", "NDCG@3", "NDCG@10"]
    assert "reference" in table[3] and "±" in table[3] and "±" not in table[2]
    assert "mean of up to 2 seeds" in result.stdout
    out = folder.parent / "out"
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    # Two points of the grid on dev with seed 0, the better one on test with both.
    mine = [line for line in results if line["row"] == "lstm-96"]
    tried = {
        line["settings"]["learning_rate"]: line["dev"][0] for line in mine if line["seed"] == 0
    }
    measured = [line for line in mine if line["stage"] == "test"]
    assert len(tried) == 2 and len(measured) == 2
    best = max(tried, key=tried.get)
    assert {line["settings"]["learning_rate"] for line in measured} == {best}
    assert all("test" not in line for line in mine if line["stage"] == "dev")
    run = read_run(next((out / "runs").glob("unigram*.run")))
    assert len(run) > 10


def test_a_second_time_nothing_is_done_again(folder, monkeypatch):
    first = quick(folder, "--seeds", 1, "--json")
    monkeypatch.setattr("sentemb.comparison.runner.train", None)
    again = quick(folder, "--seeds", 1, "--json")
    assert json.loads(first.stdout) == json.loads(again.stdout)
    more = quick(folder, "--seeds", 2)  # needs a training
    assert more.exit_code != 0


def test_json_and_markdown(folder):
    made = json.loads(quick(folder, "--seeds", 1, "--json").stdout)
    assert made["reference"] == "lstm-96" and made["left_out"] == {}
    rows = {row["row"]: row for row in made["rows"]}
    assert rows["lstm-96"]["difference"] is None and rows["lstm-96"]["parameters"] > 100
    assert rows["random"]["low"] <= rows["random"]["difference"] <= rows["random"]["high"]
    assert 0 < rows["random"]["p"] <= 1
    markdown = quick(folder, "--seeds", 1, "--markdown").stdout.splitlines()
    assert markdown[1].startswith("| --- | --: |") and len(markdown[:5]) == 5
    assert quick(folder, "--json", "--markdown").exit_code == 2


def test_the_figures_are_those_of_the_runs(folder):
    data = read_data(folder)
    comparison = Comparison(data, folder.parent / "out", seeds=3, note=lambda text: None)
    comparison.run(rows_of(["random", "unigram"]))
    random, unigram = table_of(comparison, ["random", "unigram"], "unigram")
    seeds = [line["test"] for line in comparison.of("random")]
    np.testing.assert_allclose(random.ndcg, np.mean(seeds, axis=0), atol=1e-6)
    np.testing.assert_allclose(
        np.nanmean(comparison.per_query("random"), axis=0), random.ndcg, atol=1e-5
    )
    assert random.seeds == 3 and unigram.seeds == 1
    assert random.difference == pytest.approx(random.ndcg[0] - unigram.ndcg[0], abs=1e-5)


def test_other_data_is_refused_and_replaced_with_force(folder):
    assert quick(folder, "--seeds", 1).exit_code == 0
    with open(folder / "pairs.tsv", "a", encoding="utf-8") as file:
        file.write("another\tpair\n")
    refused = quick(folder, "--seeds", 1)
    assert refused.exit_code == 1 and "other data" in refused.stderr and "--force" in refused.stderr
    assert quick(folder, "--seeds", 1, "--force").exit_code == 0


def test_the_budget_begins_nothing_late_and_says_what_is_missing(folder):
    result = quick(folder, "--budget", 0)
    assert result.exit_code == 0
    assert "left out: lstm-96: the time was used up" in result.stdout


def test_a_model_of_ones_own_and_a_folder_without_log(folder):
    model = folder.parent / "mine"
    train(folder / "pairs.tsv", output=model, **QUICK)
    (folder / "pairs.tsv").unlink()
    result = quick(folder, "--with-model", model, "--reference", "mine", "--json")
    made = json.loads(result.stdout)
    assert [row["row"] for row in made["rows"]] == ["random", "unigram", "mine"]
    assert "no pairs.tsv" in made["left_out"]["lstm-96"]


def test_what_is_missing_is_left_out_with_the_reason(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "bm25s", None)
    result = compare(folder, "-o", folder.parent / "out", "--models", "bm25,skip-thought,unigram")
    assert result.exit_code == 0
    assert "left out: bm25: the package bm25s is not installed" in result.stdout
    assert "left out: skip-thought" in result.stdout and "weights not here" in result.stdout


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--models", "lstm-97"], "there is no row 'lstm-97'; choose from random, unigram"),
        (["--models", "unigram", "--reference", "bm25"], "is not among the rows"),
        (["--with-model", "nowhere"], "no model is here"),
    ],
)
def test_wrong_input(folder, arguments, message):
    result = compare(folder, "-o", folder.parent / "out", *arguments)
    if "--with-model" in arguments:
        result = compare(folder, "-o", folder.parent / "out2", "--models", "unigram", *arguments)
    assert result.exit_code == 1 and message in result.stderr
    assert len(result.stderr.strip().splitlines()[-1]) < 500


def test_folders_that_are_no_data(folder):
    nowhere = compare(folder / "nowhere", "-o", folder.parent / "out")
    assert nowhere.exit_code == 1 and "is no folder" in nowhere.stderr
    for name in ("dev", "test"):
        (folder / name).rename(folder / "away")
        result = compare(folder, "-o", folder.parent / "out")
        assert result.exit_code == 1 and f"{name}: is missing" in result.stderr
        (folder / "away").rename(folder / name)
    with pytest.raises(SentembError, match="no comparison"):
        Comparison(read_data(folder), folder)


def test_the_list_of_rows():
    result = CliRunner().invoke(main, ["compare", "--list"])
    assert result.exit_code == 0
    assert {line.split()[0] for line in result.stdout.splitlines()} == {"row", *ROWS}


def test_ctrl_c_loses_only_the_running_one(folder):
    out = folder.parent / "out"
    command = [sys.executable, "-m", "sentemb.cli", "compare", str(folder), "-o", str(out)]
    process = subprocess.Popen(
        [*command, "--models", "unigram,rnn-288,lstm-96"], stderr=subprocess.PIPE, text=True
    )
    for line in process.stderr:
        if line.startswith("rnn-288"):
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    kept = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    assert {line["row"] for line in kept} >= {"unigram"}
