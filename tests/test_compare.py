"""`sentemb compare`: what is run, kept, taken up again, refused and printed."""

import gzip
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_pair_model

from sentemb import SentembError, SentenceEncoder, load, train
from sentemb.cli import COMMANDS, main
from sentemb.comparison import runner, store
from sentemb.comparison.baselines import BASELINES
from sentemb.comparison.baselines.baseline import Baseline
from sentemb.comparison.data_folder import read_data
from sentemb.comparison.rows import (
    ROWS,
    EncoderRow,
    ModelRow,
    PairRow,
    Row,
    rows_of,
)
from sentemb.comparison.runner import Comparison
from sentemb.comparison.table import table_of
from sentemb.data.judged_set import read_judged_set
from sentemb.data.simulation.simulator import simulate
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.metrics import ndcg
from sentemb.evaluation.significance import compare_all
from sentemb.evaluation.trec import read_run
from sentemb.models.parameters import trained_parameters
from sentemb.training.stopping import Interrupted

TINY = {"model": "bag", "cells": 4, "epochs": 1, "batch_size": 64}


class Length(Baseline):
    """Counts letters: long titles first, or short ones. Remembers how often it was fitted."""

    name = "length"
    grid = ({"sign": 1}, {"sign": -1})
    fits = 0
    n_parameters = 2

    def __init__(self, sign=1):
        self.sign = sign

    def fit(self, log, titles=(), seed=0):
        Length.fits += 1
        return self

    def score_pairs(self, queries, titles, query_index, title_index):
        return np.array([self.sign * len(titles[d]) for d in title_index], np.float64)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    path = tmp_path_factory.mktemp("simulated") / "log"
    simulate(path, pairs=400, dev_queries=40, test_queries=60)
    return path


@pytest.fixture
def data(simulated, tmp_path):
    """A copy of the simulated log that a test may change."""
    return shutil.copytree(simulated, tmp_path / "data")


@pytest.fixture(autouse=True)
def rows(monkeypatch):
    """Rows and a baseline of the tests only."""
    monkeypatch.setitem(BASELINES, "length", (__name__, "Length"))
    grid = ({"learning_rate": 0.001}, {"learning_rate": 0.01})
    for row in (Row("length", {"name": "length"}), EncoderRow("quick", TINY, grid=grid)):
        monkeypatch.setitem(ROWS, row.name, row)
    Length.fits = 0


def compare(*arguments, code=0):
    result = CliRunner().invoke(main, ["compare", *map(str, arguments), "--threads", "1"])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments):
    """The one line that stderr says, exit code 1."""
    result = compare(*arguments, code=1)
    assert result.stdout == "" and result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ")


def results(out):
    return [json.loads(line) for line in (out / store.RESULTS).read_text().splitlines()]


def comparison(data, out, names, **options):
    rows = [row if isinstance(row, Row) else ROWS[row] for row in names]
    return Comparison(read_data(data), out, rows, **{"note": lambda text: None, **options})


def test_help_begins_with_the_line_of_the_overview():
    assert f"\n  {COMMANDS['compare']}\n" in compare("-h").output


# -- rows ------------------------------------------------------------------------------------------


def test_the_rows_of_the_paper_are_there_and_their_settings_can_be_made(data):
    paper = [
        "random unigram bm25 bm25-stem plsa doc2vec skip-thought bag dssm clsm-1 clsm-3 clsm-5",
        "rnn-288 lstm-32 lstm-64 lstm-96 lstm-96-n2 lstm-96-n4 lstm-96-n6 lstm-96-n8 bilstm-96",
    ]
    assert set(" ".join(paper).split()) <= set(ROWS)
    for row in ROWS.values():
        if row.name != "skip-thought" and row.kind != "vectors":  # need files that are not here
            points = row.points()
            assert points and all(json.loads(json.dumps(point)) == point for point in points)
    assert ROWS["lstm-96"].points()[0]["n_negatives"] == "all"
    listed = compare(data, "--models", "list").stdout
    assert [line.split()[0] for line in listed.splitlines()[1:]] == list(ROWS)


def test_parameters_are_those_that_training_can_move(data):
    log = read_data(data).log
    for shared in (False, True):
        settings = {**TINY, "word_features": 0, "shared_towers": shared}
        model = train(log, threads=1, **settings)
        known = {trigram: row for row, trigram in enumerate(model.vocabulary.trigrams)}

        def met(texts, known=known):
            words = {word for text in texts for word in f"{text}".lower().split()}
            grams = {f"#{word}#"[k : k + 3] for word in words for k in range(len(word))}
            return len(grams & set(known))

        counts = (
            [met([*log.queries, *log.titles])] if shared else map(met, (log.queries, log.titles))
        )
        dense = {
            id(side): sum(array.size for name, array in side.items() if name != "table")
            for side in model.weights.values()
        }
        width = model.weights["query"]["table"].shape[1]
        assert trained_parameters(model) == width * sum(counts) + sum(dense.values())


# -- runs ------------------------------------------------------------------------------------------


def test_a_row_is_chosen_on_dev_and_measured_on_test(data, tmp_path):
    out = tmp_path / "out"
    found = comparison(data, out, ["length", "quick"], seeds=2, keep_models=True)
    found.run()
    # Against the definitions, by hand.
    test, dev = read_judged_set(data / "test"), read_judged_set(data / "dev")
    by_sign = {sign: evaluate_model(Length(sign), dev).mean[0] for sign in (1, -1)}
    (line,) = found.of("length")
    assert line["settings"] == {"name": "length", "sign": max(by_sign, key=by_sign.get)}
    expected = evaluate_model(Length(line["settings"]["sign"]), test).mean
    assert line["test"] == pytest.approx(expected, abs=1e-6)
    assert line["parameters"] == 2 and line["sentences_per_second"] is None

    lines = found.of("quick")
    assert [line["seed"] for line in lines] == [0, 1]
    tried = [line for line in results(out) if line["row"] == "quick" and line["seed"] == 0]
    assert len(tried) == 2
    best = max(tried, key=lambda line: line["dev"][0])
    for line in lines:
        assert line["settings"] == best["settings"] and line["sentences_per_second"] > 0
        settings = {**TINY, "learning_rate": line["settings"]["learning_rate"]}
        model = train(data / "pairs.tsv", dev=dev, seed=line["seed"], threads=1, **settings)
        assert line["dev"] == pytest.approx(evaluate_model(model, dev).mean, abs=1e-6)
        run = read_run(out / "runs" / f"quick.seed{line['seed']}.run")
        assert ndcg(test, run).mean == pytest.approx(line["test"], abs=1e-6)
        kept = SentenceEncoder.from_pretrained(out / "models" / f"quick.seed{line['seed']}")
        assert np.array_equal(kept.encode_query(test.queries), model.encode_query(test.queries))
    # Only what dev prefers so far meets the test set.
    worse = [line for line in tried if line["dev"][0] < best["dev"][0]]
    assert all(line["test"] is None for line in worse if tried.index(line) > tried.index(best))

    spread = compare_all([found.per_query("quick")[:, 0]], found.per_query("length")[:, 0])
    (table,) = [
        line for line in table_of(found, ["length", "quick"], "length") if line.row == "quick"
    ]
    assert (table.difference, table.low, table.high, table.p) == pytest.approx(
        (spread[0].mean, spread[0].low, spread[0].high, spread[0].p)
    )
    assert table.ndcg == pytest.approx(np.mean([line["test"] for line in lines], 0), abs=1e-6)
    assert table.spread == pytest.approx(
        np.std([line["test"] for line in lines], 0, ddof=1), abs=1e-6
    )


def test_rows_of_pair_models_must_be_named():
    assert not any(isinstance(row, PairRow) for row in rows_of())
    assert [row.name for row in rows_of(["arc2", "bm25"])] == ["bm25", "arc2"]


def test_holm_is_over_all_rows_of_the_table(data, tmp_path):
    found = comparison(data, tmp_path / "out", ["random", "unigram", "length"], seeds=1)
    found.run()
    lines = {line.row: line for line in table_of(found, list(ROWS), "random")}
    base = found.per_query("random")[:, 0]
    plain = {
        name: compare_all([found.per_query(name)[:, 0]], base)[0].p
        for name in ("unigram", "length")
    }
    small, large = sorted(plain, key=plain.get)
    assert lines[small].p == pytest.approx(min(1, 2 * plain[small]))
    assert lines[large].p == pytest.approx(max(lines[small].p, plain[large]))
    assert lines["random"].p is None


def test_nothing_is_measured_twice(data, tmp_path):
    out = tmp_path / "out"
    first = compare(data, "-o", out, "--models", "length,random", "--seeds", 1)
    assert Length.fits == 2
    kept = results(out)
    again = compare(data, "-o", out, "--models", "length,random", "--seeds", 1)
    assert (again.stdout, again.stderr, Length.fits) == (first.stdout, "", 2)
    # More seeds: only those are run. Fewer: the others are left out of the table.
    compare(data, "-o", out, "--models", "random", "--seeds", 3)
    assert results(out)[: len(kept)] == kept and len(results(out)) == len(kept) + 2
    assert len(comparison(data, out, ["random"], seeds=2).of("random")) == 2


@pytest.mark.parametrize("damage", ["missing", "cut", "other"])
def test_a_run_file_that_does_not_fit_is_measured_anew(data, tmp_path, damage):
    out = tmp_path / "out"
    compare(data, "-o", out, "--models", "length")
    path = out / "runs" / "length.seed0.run"
    before = path.read_bytes()
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes(before[: len(before) // 2] if damage == "cut" else b"q Q0 d 1 1 t\n")
    compare(data, "-o", out, "--models", "length")
    assert path.read_bytes() == before and Length.fits == 3


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Interrupted])
def test_a_stop_loses_only_the_run_under_way(data, tmp_path, monkeypatch, stop):
    out, whole = tmp_path / "out", tmp_path / "whole"
    names = ("--models", "random,quick", "--seeds", 2)
    plain, calls = EncoderRow.fit, []

    def fit(self, settings, *rest):
        calls.append(settings)
        if len(calls) == 3:
            raise stop("stopped")
        return plain(self, settings, *rest)

    monkeypatch.setattr(EncoderRow, "fit", fit)
    result = compare(data, "-o", out, *names, code=130)
    assert result.stdout == "" and "the same command continues" in result.stderr
    assert [line["row"] for line in results(out)] == ["random", "random", "quick", "quick"]
    compare(data, "-o", out, *names)
    assert len(calls) == 4
    compare(data, "-o", whole, *names)
    figures = [
        [(line["row"], line["seed"], line["dev"], line["test"]) for line in results(folder)]
        for folder in (out, whole)
    ]
    assert figures[0] == figures[1]


def test_the_budget_ends_it_between_runs(data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    result = compare(data, "-o", out, "--models", "length,random", "--budget", 0)
    assert "missing: length: 2 runs missing: the time is up; repeat the command" in result.stdout
    assert "missing: random: 3 runs missing" in result.stdout and results(out) == []
    clock = iter(range(1000))
    monkeypatch.setattr(runner.time, "monotonic", lambda: next(clock))
    found = comparison(data, out, ["length", "random"])
    found.run(seconds=4)
    assert len(results(out)) == 1 and found.of("length") == []  # its grid is not tried to the end
    monkeypatch.undo()


def test_a_row_that_fails_leaves_the_others(data, tmp_path, monkeypatch):
    def fit(self, log, titles=(), seed=0):
        raise SentembError("the package x is not installed; pip install 'sentemb[baselines]'")

    monkeypatch.setattr(Length, "fit", fit)
    monkeypatch.setitem(BASELINES, "length", (__name__, "Length"))
    result = compare(data, "-o", tmp_path / "out", "--models", "length,random,skip-thought")
    assert "missing: length: the package x is not installed; pip install" in result.stdout
    assert "missing: skip-thought: " in result.stdout and "weights not here" in result.stdout
    assert "\nrandom " in result.stdout


# -- models that are there -------------------------------------------------------------------------


def test_models_are_rows_and_need_no_log(data, tmp_path, model_dir, model):
    (data / "pairs.tsv").unlink()
    shutil.rmtree(data / "dev")
    result = compare(
        data, "-o", tmp_path / "out", "--models", "quick,length", "--compare-with", model_dir
    )
    assert "no pairs.tsv; only rows without training can run" in result.stderr
    assert "missing: quick: there is no pairs.tsv to learn from" in result.stdout
    test = read_judged_set(data / "test")
    lines = {line["row"]: line for line in results(tmp_path / "out")}
    assert lines["tiny"]["test"] == pytest.approx(evaluate_model(model, test).mean, abs=1e-6)
    assert lines["tiny"]["dev"] is None and lines["tiny"]["seconds"] is None
    assert lines["length"]["settings"]["sign"] == 1  # the default: there is nothing to choose by


def test_pair_models_are_rows_trained_or_given(data, tmp_path, monkeypatch):
    settings = {"model": "wordembed", "embedding": 3, "mlp": 3, "epochs": 1, "teacher": "bm25"}
    monkeypatch.setitem(ROWS, "pair", PairRow("pair", settings))
    out, given = tmp_path / "out", tmp_path / "given"
    scorer = made_up_pair_model(read_data(data).titles)
    scorer.save_pretrained(given)
    arguments = ("--models", "pair", "--compare-with", given, "--seeds", 2, "--keep-models")
    compare(data, "-o", out, *arguments)
    trained = [line for line in results(out) if line["row"] == "pair"]
    rates = [line["settings"]["learning_rate"] for line in trained]
    assert len(trained) == 3 and set(rates) == {0.001, 0.003}
    assert {line["settings"]["teacher"] for line in trained} == {"bm25"}
    assert {line["sentences_per_second"] for line in trained} == {None}
    kept = load(out / "models" / "pair.seed1")
    settings = {key: value for key, value in trained[-1]["settings"].items() if value is not None}
    again = train(data / "pairs.tsv", dev=data / "dev", seed=1, threads=1, **settings)
    test = read_judged_set(data / "test")
    for model in (kept, again):
        figures = evaluate_model(model, test).mean
        np.testing.assert_allclose(figures, trained[-1]["test"], atol=1e-6)
    known = np.count_nonzero(kept.weights["table"].any(axis=1))
    dense = sum(array.size for name, array in kept.weights.items() if name != "table")
    assert trained[-1]["parameters"] == 3 * known + dense
    (line,) = [line for line in results(out) if line["row"] == "given"]
    np.testing.assert_allclose(line["test"], evaluate_model(scorer, test).mean, atol=1e-6)


def test_another_model_of_the_same_name_is_not_taken_for_it(data, tmp_path, model_dir, make_model):
    out, path = tmp_path / "out", tmp_path / "mine"
    shutil.copytree(model_dir, path)
    compare(data, "-o", out, "--models", "random", "--seeds", 1, "--compare-with", path)
    shutil.rmtree(path)
    make_model(cells=4).save_pretrained(path)
    again = (data, "-o", out, "--models", "random", "--seeds", 1, "--compare-with", path)
    assert "mine was measured with other settings (sha256 = " in refused(*again)
    compare(*again, "--force")
    assert [line["row"] for line in results(out)] == ["random", "mine"]
    other = tmp_path / "other" / "random"
    shutil.copytree(path, other)
    assert "two rows are called random" in refused(*again, "--compare-with", other)


# -- refusals --------------------------------------------------------------------------------------


def test_wrong_input(data, tmp_path, model_dir):
    out = ("-o", tmp_path / "out")
    assert "no such folder" in refused(tmp_path / "nowhere", *out)
    known = refused(data, *out, "--models", "lstm-96,lstm97")
    assert known.startswith("there is no row 'lstm97'; choose from random, unigram, bm25")
    away = refused(data, *out, "--models", "random,length", "--reference", "lstm-96")
    assert away == "the reference lstm-96 is not among the rows; choose from random, length\n"
    assert "there is no model here" in refused(data, *out, "--compare-with", data)
    compare(data, code=2)
    alone = compare(data, *out, "--models", "random", "--cosine", code=2)
    assert "--cosine needs --compare-with" in alone.stderr
    compare(data, *out, "--json", "--markdown", code=2)
    compare(data, *out, "--seeds", 0, code=2)
    full = tmp_path / "full"
    full.mkdir()
    (full / "mine").touch()
    assert "holds no comparison" in refused(data, "-o", full, "--force")
    assert "holds no comparison" in refused(data, "-o", full / "mine")
    assert not (tmp_path / "out").exists()
    shutil.rmtree(data / "dev")
    assert "dev: is missing" in refused(data, *out)
    shutil.rmtree(data / "test")
    assert "test: is missing" in refused(data, *out)
    (data / "test.tsv").write_text("query\tTitle\n")
    assert "test.tsv are for `sentemb evaluate MODEL test.tsv --comp" in refused(data, *out)


def test_other_data_are_refused(data, tmp_path):
    out = tmp_path / "out"
    names = ("--models", "random,length", "--seeds", 1)
    compare(data, "-o", out, *names)
    log = data / "pairs.tsv"
    (data / "pairs.tsv.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    compare(data, "-o", out, *names)
    assert Length.fits == 2  # packed, but the same
    qrels = data / "test" / "qrels.txt"
    qrels.write_text("\n".join(qrels.read_text().splitlines()[:-1]) + "\n")
    assert "holds a comparison on other data" in refused(data, "-o", out, *names)
    compare(data, "-o", out, "--models", "random", "--seeds", 1, "--force")
    assert [line["row"] for line in results(out)] == ["random"]
    assert [path.name for path in (out / "runs").iterdir()] == ["random.seed0.run"]


def test_other_settings_are_refused(data, tmp_path, monkeypatch):
    out = tmp_path / "out"
    names = ("--models", "random,quick", "--seeds", 1)
    compare(data, "-o", out, *names)
    changed = EncoderRow("quick", {**TINY, "epochs": 2}, grid=({"learning_rate": 0.01},))
    monkeypatch.setitem(ROWS, "quick", changed)
    assert "quick was measured with other settings (epochs = 1, now 2)" in refused(
        data, "-o", out, *names
    )
    kept = results(out)[0]
    compare(data, "-o", out, *names, "--force")
    assert results(out)[0] == kept and results(out)[1]["settings"]["epochs"] == 2
    (out / store.RESULTS).write_text("{")
    assert "results.jsonl:1: not JSON" in refused(data, "-o", out, *names)
    compare(data, "-o", out, *names, "--force")


# -- what is printed -------------------------------------------------------------------------------


def test_the_table(data, tmp_path):
    out = ("-o", tmp_path / "out", "--models", "random,unigram,length", "--seeds", 2)
    result = compare(data, *out, "--reference", "unigram")
    head, *body = result.stdout.split("\n\n")[0].splitlines()
    assert head.split()[:4] == ["row", "NDCG@1", "NDCG@3", "NDCG@10"]
    assert [line.split()[0] for line in body] == ["random", "unigram", "length"]
    assert result.stdout.isascii() and "reference" in body[1]
    assert body[0].count("+-") == 3 and "+-" not in body[1]
    assert " to " in body[0] and "corrected by Holm" in result.stdout
    first, *_ = result.stderr.splitlines()
    assert first == "random, seed 0: 10 left"
    assert "unigram, seed 0, mu 3.0: " in result.stderr


def test_json_and_markdown_say_the_same(data, tmp_path):
    out = ("-o", tmp_path / "out", "--models", "random,unigram,skip-thought", "--seeds", 2)
    found = json.loads(compare(data, *out, "--reference", "unigram", "--json").stdout)
    assert found["reference"] == "unigram" and list(found["missing"]) == ["skip-thought"]
    assert found["queries"] == len(read_judged_set(data / "test").queries)
    chance, unigram = found["rows"]
    assert (chance["row"], chance["seeds"], unigram["seeds"]) == ("random", 2, 1)
    assert unigram["p"] is unigram["difference"] is None
    assert chance["low"] <= chance["difference"] <= chance["high"] and 0 < chance["p"] <= 1
    assert chance["difference"] == pytest.approx(chance["ndcg"][0] - unigram["ndcg"][0], abs=1e-5)
    page = compare(data, *out, "--reference", "unigram", "--markdown").stdout
    head, rule, *body = page.split("\n\n")[0].splitlines()
    assert {line.count("|") for line in (head, rule, *body)} == {10}
    for line, row in zip(body, found["rows"], strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        assert cells[0] == row["row"] and cells[1].startswith(f"{row['ndcg'][0]:.3f}")
    assert "±" in body[0] and "- skip-thought: " in page


def test_without_a_reference_there_are_no_differences(data, tmp_path):
    out = ("-o", tmp_path / "out", "--models", "random,quick", "--seeds", 1)
    assert "Holm" not in compare(data, *out).stdout
    # A reference that is not measured yet hides nothing.
    late = compare(data, *out[:-2], "--reference", "quick", "--budget", 0, "--seeds", 1, "--json")
    assert len(json.loads(late.stdout)["rows"]) == 2
    fresh = ("-o", tmp_path / "fresh", "--models", "random,quick", "--seeds", 1)
    (tmp_path / "fresh").mkdir()
    compare(data, "-o", tmp_path / "fresh", "--models", "random", "--seeds", 1)
    page = compare(data, *fresh, "--reference", "quick", "--budget", 0).stdout
    assert "\nrandom " in page and "missing: quick: 2 runs missing" in page and "Holm" not in page


def test_a_model_row_is_named_as_its_folder(model_dir, monkeypatch):
    monkeypatch.chdir(model_dir)
    assert ModelRow.of(".").name == "tiny"
