"""Metrics over a whole catalogue against a naive twin and trec_eval; the command on clicks."""

import hashlib
import json
import math
from pathlib import Path

import ir_measures
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log

from sentemb import Index, SentembError, train
from sentemb.cli import main
from sentemb.data.click_log import ClickLog, ClickLogBuilder, write_click_log
from sentemb.data.held_out_clicks import read_held_out
from sentemb.data.judged_set import JudgedSet
from sentemb.evaluation import catalogue, held_out
from sentemb.evaluation.held_out import AllPairs, HeldOutClicks, checked_metrics, evaluate_clicks
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.nearest import TitleVectors
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

METRICS = tuple(f"{kind}@{k}" for kind in ("hit", "mrr", "recall", "ndcg") for k in (1, 2, 3, 7))


class Scores:
    """A retriever with given scores, (n_queries, n_titles); titles with -inf are not found."""

    def __init__(self, queries, scores):
        self.row_of = dict(zip(queries, scores, strict=True))
        self.asked = []

    def find(self, queries, k):
        self.asked.append(k)
        rows = np.array([self.row_of[query] for query in queries])
        assert 1 <= k <= rows.shape[1]
        places = np.argsort(-rows, axis=1, kind="stable")[:, :k]
        scores = np.take_along_axis(rows, places, axis=1)
        places[scores == -np.inf] = -1
        return places, scores


def twin(scores, titles, clicked, metric):
    """A metric of one query: sort every title, drop repetitions, count."""
    kind, k = metric.split("@")
    k = int(k)

    def tie(title):
        return hashlib.blake2b(title.encode(), digest_size=8).digest()

    found = [
        (score, title) for score, title in zip(scores, titles, strict=True) if score > -math.inf
    ]
    ranking = []
    for _, title in sorted(found, key=lambda pair: (-pair[0], tie(pair[1]))):
        if title not in ranking:
            ranking.append(title)
    ranks = [rank for rank, title in enumerate(ranking[:k], 1) if title in clicked]
    if kind == "hit":
        return float(bool(ranks))
    if kind == "mrr":
        return 1 / ranks[0] if ranks else 0.0
    if kind == "recall":
        return len(ranks) / len(clicked)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, min(k, len(clicked)) + 1))
    return sum(1 / math.log2(rank + 1) for rank in ranks) / best


def made_up_case(rng, n_values, repeated):
    """A catalogue with titles of equal text, clicks of which some are outside it, and scores."""
    n_titles = int(rng.integers(1, 30))
    n_texts = max(1, n_titles // 2) if repeated else n_titles
    titles = [f"title {number % n_texts}" for number in range(n_titles)]
    builder = ClickLogBuilder()
    for q in range(8):
        for number in rng.choice(n_texts + 3, min(int(rng.integers(1, 6)), n_texts + 3), False):
            builder.add(f"q{q}", f"title {number}" if number < n_texts else f"gone {number}")
    of_text = rng.integers(0, n_values, (8, n_texts)).astype(float)
    of_text[of_text == 0] = -math.inf
    return builder.build(), titles, of_text[:, np.arange(n_titles) % n_texts]


def clicked_of(log, query):
    number = log.queries.index(query)
    return {
        log.titles[t] for q, t in zip(log.query_index, log.title_index, strict=True) if q == number
    }


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("n_values", [1, 2, 4, 1000])
def test_against_the_twin(n_values, repeated, monkeypatch):
    rng = np.random.default_rng([n_values, repeated])
    monkeypatch.setattr(catalogue, "_FETCHED", 20)
    for number in range(10):
        clicks, titles, scores = made_up_case(rng, n_values, repeated)
        # With a rank below the catalogue's last, all titles are fetched.
        metrics = METRICS if number % 3 else (*METRICS, "ndcg@50")
        found = evaluate_clicks(Scores(clicks.queries, scores), clicks, titles, metrics)
        expected = [
            [twin(row, titles, clicked_of(clicks, query), metric) for metric in metrics]
            for query, row in zip(clicks.queries, scores, strict=True)
        ]
        np.testing.assert_allclose(found.values, expected, atol=1e-12)
        np.testing.assert_allclose(found.mean, np.mean(expected, axis=0))
        outside = {title for title in clicks.titles if title not in titles}
        assert (found.n_titles, found.n_outside) == (len({*titles}), len(outside))
        assert found.n_clicked == len(clicks.titles) and found.queries == clicks.queries


def test_against_trec_eval():
    rng = np.random.default_rng(0)
    titles = [f"t{number}" for number in range(40)]
    builder = ClickLogBuilder()
    for q in range(30):
        for number in rng.choice(40, int(rng.integers(1, 9)), False):
            builder.add(f"q{q}", f"t{number}")
    clicks = builder.build()
    scores = rng.permuted(np.tile(np.arange(40.0), (30, 1)), axis=1)
    qrels = {query: dict.fromkeys(clicked_of(clicks, query), 1) for query in clicks.queries}
    run = {
        q: dict(zip(titles, row, strict=True))
        for q, row in zip(clicks.queries, scores, strict=True)
    }
    theirs = {
        "hit": ir_measures.Success, "mrr": ir_measures.RR,
        "recall": ir_measures.R, "ndcg": ir_measures.nDCG,
    }  # fmt: skip
    for kind, measure in theirs.items():
        names = [f"{kind}@{k}" for k in (1, 3, 10)]
        found = evaluate_clicks(Scores(clicks.queries, scores), clicks, titles, names)
        for column, k in enumerate((1, 3, 10)):
            expected = {one.query_id: one.value for one in (measure @ k).iter_calc(qrels, run)}
            values = dict(zip(clicks.queries, found.values[:, column], strict=True))
            assert values == pytest.approx(expected)


def test_the_order_of_the_catalogue_flatters_nobody():
    builder = ClickLogBuilder()
    for number in range(300):
        builder.add(f"q{number}", f"clicked {number}")
    clicks = builder.build()
    others = [f"other {number}" for number in range(900)]
    constant = Scores(clicks.queries, np.zeros((300, 1200)))
    values = []
    for titles in ([*clicks.titles, *others], [*others, *clicks.titles]):
        values.append(evaluate_clicks(constant, clicks, titles, ["recall@120", "mrr@10"]).values)
    np.testing.assert_array_equal(*values)
    assert 0.05 < values[0][:, 0].mean() < 0.15
    # Few titles have the score of the last one: little more than the best is fetched.
    constant.asked.clear()
    constant.row_of = {query: np.arange(1200.0) for query in clicks.queries}
    evaluate_clicks(constant, clicks, titles, ["recall@120"])
    assert constant.asked == [121]
    # Nor is more where the catalogue has the order of ties, whatever is equal.
    constant = Scores(clicks.queries, np.zeros((300, 1200)))
    found = evaluate_clicks(constant, clicks, catalogue.in_tie_order(titles), ["recall@120"])
    assert constant.asked == [121]
    np.testing.assert_array_equal(found.values[:, 0], values[0][:, 0])


def test_a_title_outside_the_catalogue_counts_as_missed():
    builder = ClickLogBuilder()
    for title in ("here", "gone"):
        builder.add("q", title)
    found = evaluate_clicks(
        Scores(["q"], np.array([[1.0, 0.0]])), builder.build(), ["here ", "other"],
        ["recall@1", "ndcg@2", "hit@1"],
    )  # fmt: skip
    assert found.values[0].tolist() == [0.5, pytest.approx(1 / (1 + 1 / math.log2(3))), 1]
    assert (found.n_clicked, found.n_outside) == (2, 1)


def test_every_query_counts_once_and_clicks_are_binary():
    few, many = ClickLogBuilder(), ClickLogBuilder()
    for builder, clicks in ((few, 1), (many, 50)):
        builder.add("a", "x", clicks)
        builder.add("a", "y")
        builder.add("b", "z")
    scores = Scores(["a", "b"], np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]))
    values = [
        evaluate_clicks(scores, builder.build(), ["x", "y", "z"], METRICS).values
        for builder in (few, many)
    ]
    np.testing.assert_array_equal(*values)


def test_what_is_refused():
    for wrong in ("hit@1", [], ["hit"], ["hit@0"], ["map@3"], [3], ["mrr@1_0"], ["mrr@9999999999"]):
        with pytest.raises(SentembError, match=r"the metrics are .*; give hit@k, mrr@k"):
            checked_metrics(wrong)
    assert checked_metrics(["MRR@10", "hit@1", "mrr@10"]) == ("mrr@10", "hit@1")
    clicks = ClickLogBuilder()
    clicks.add("q", "t")
    with pytest.raises(SentembError, match="the catalogue is empty"):
        HeldOutClicks(clicks.build(), [])
    with pytest.raises(SentembError, match="a score is NaN"):
        evaluate_clicks(Scores(["q"], np.array([[math.nan, 1]])), clicks.build(), ["t", "u"])


# -- models ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log():
    return made_up_log()


@pytest.fixture(scope="module")
def model_dir(log, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "m"
    train(log, output=folder, cells=6, epochs=2, batch_size=16, threads=1, hard_negatives=0)
    return folder


def test_a_model_a_ranker_of_pairs_and_bm25(log, model_dir, monkeypatch):
    from sentemb import load

    monkeypatch.setattr(held_out, "_PAIRS", 3 * len(log.titles) + 1)
    model = load(model_dir)
    metrics = ("hit@1", "mrr@3", "recall@2")
    found = evaluate_clicks(TitleVectors(model, log.titles), log, log.titles, metrics)
    pairs = evaluate_clicks(AllPairs(model, log.titles), log, log.titles, metrics)
    np.testing.assert_allclose(found.values, pairs.values)
    expected = [
        twin(model.score(query, log.titles), log.titles, clicked_of(log, query), "mrr@3")
        for query in log.queries
    ]
    np.testing.assert_allclose(found.values[:, 1], expected)
    bm25 = evaluate_clicks(TitleWords(log.titles), log, log.titles, metrics)
    assert bm25.values.shape == found.values.shape


# -- what a path holds -----------------------------------------------------------------------------


def judged_folder(folder):
    folder.mkdir(parents=True)
    (folder / "queries.tsv").write_text("q1\ta\n")
    (folder / "docs.tsv").write_text("d1\tb\n")
    (folder / "qrels.txt").write_text("q1 0 d1 1\n")


def test_a_folder_is_judged_and_a_file_is_clicks(tmp_path):
    judged_folder(tmp_path / "data" / "dev")
    judged_folder(tmp_path / "data" / "test")
    (tmp_path / "split").mkdir()
    (tmp_path / "split" / "test.tsv").write_text("q\tt\n")
    assert isinstance(read_held_out(tmp_path / "data" / "dev"), JudgedSet)
    assert isinstance(read_held_out(tmp_path / "split" / "test.tsv"), ClickLog)
    for path, message in (
        ("data", r"data: is not a judged set; did you mean .*data/dev or .*data/test\?"),
        ("split", r"split: is not a judged set; did you mean .*split/test\.tsv\?"),
        ("data/dev/queries.tsv", r"one of the files of a judged set; did you mean .*data/dev\?"),
        (
            "nothing",
            "no such file or folder; a folder is a judged set",
        ),
    ):
        with pytest.raises(SentembError, match=message):
            read_held_out(tmp_path / path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(SentembError, match=r"queries\.tsv: no such file"):
        read_held_out(tmp_path / "empty")


# -- the command -----------------------------------------------------------------------------------


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["evaluate", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(log, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_click_log(log, "clicks.tsv")
    lines = [f"t{number}\t{title}\n" for number, title in enumerate([*log.titles, "one more"])]
    Path("catalogue.tsv").write_text("".join(lines))


def test_the_command_compares_systems(log, model_dir, files):
    catalogue = ["--catalogue", "catalogue.tsv", "--metrics", "hit@1,MRR@10"]
    others = ["--compare-with", "bm25", "--compare-with", "bm25-clicks", "--log", "clicks.tsv"]
    result = run(model_dir, "clicks.tsv", *catalogue, *others)
    lines = result.stdout.splitlines()
    n_titles = len(log.titles) + 1
    assert lines[0] == f"{len(log.queries)} queries against {n_titles} titles of catalogue.tsv"
    assert lines[2].split() == ["hit@1", "MRR@10"]
    assert [line.split()[0] for line in lines[3:6]] == [str(model_dir), "bm25", "bm25-clicks"]
    assert lines[7].split() == [str(model_dir), "minus", "bm25", "bm25-clicks"]
    assert [line.split()[0] for line in lines[8:10]] == ["hit@1", "MRR@10"]

    found = json.loads(
        run(model_dir, "clicks.tsv", *catalogue, *others, "--json", "--per-query").stdout
    )
    values = [one["systems"]["bm25"]["mrr@10"] for one in found["per_query"]]
    assert found["systems"]["bm25"]["mrr@10"] == pytest.approx(np.mean(values))
    assert [one["query"] for one in found["per_query"]] == log.queries
    mean = found["systems"][str(model_dir)]["hit@1"] - found["systems"]["bm25-clicks"]["hit@1"]
    difference = found["model_minus"]["bm25-clicks"]["hit@1"]
    assert difference["mean"] == pytest.approx(mean)
    assert difference["low"] <= mean <= difference["high"]
    # bm25-clicks has read the very clicks that it is measured on.
    assert found["systems"]["bm25-clicks"]["hit@1"] > found["systems"]["bm25"]["hit@1"]

    lines = run(model_dir, "clicks.tsv", *catalogue, "--per-query").stdout.splitlines()
    assert lines[5].endswith("  query") and lines[6].endswith(f"  {log.queries[0]}")
    assert len(lines) == 6 + len(log.queries)


def test_an_index_is_measured_with_its_own_titles(log, model, model_dir, files):
    titles = [*log.titles, "one more"]
    recipe = Recipe({"cosine": 1.0, "bm25": 0.5})
    index = Index.build(HybridRanker(model, recipe, ClickedQueries.of(log)), titles)
    index.save("index")
    Index.build(model, titles[1:]).save("other")
    metrics = ["--metrics", "hit@1,mrr@10", "--json"]
    found = json.loads(run("index", "clicks.tsv", "--compare-with", model_dir, *metrics).stdout)
    assert found["catalogue"] == "index" and found["titles"] == len(titles)
    expected = evaluate_clicks(index, log, titles, ["hit@1", "mrr@10"]).mean
    assert list(found["systems"]["index"].values()) == pytest.approx(expected)
    assert found["systems"]["index"] != found["systems"][str(model_dir)]
    same = run(model_dir, "clicks.tsv", "--catalogue", "catalogue.tsv", *metrics).stdout
    assert json.loads(same)["systems"][str(model_dir)] == found["systems"][str(model_dir)]
    refused = run("index", "clicks.tsv", "--catalogue", "catalogue.tsv", code=2)
    assert "titles of its own" in refused.stderr
    refused = run("index", "clicks.tsv", "--compare-with", "other", code=1)
    assert "an index of other titles" in refused.stderr


def test_notes_on_the_catalogue_and_few_queries(log, model_dir, files):
    result = run(model_dir, "clicks.tsv")
    assert "without --catalogue only the" in result.stderr and "higher than over" in result.stderr
    assert f"only {len(log.queries)} queries: figures and intervals are uncertain" in result.stderr
    assert all(name in result.stdout for name in ("hit@1", "MRR@10", "recall@100", "NDCG@10"))
    Path("titles.tsv").write_text(f"a\t{log.titles[0]}\nb\tother\n")
    result = run(model_dir, "clicks.tsv")
    assert "the catalogue is titles.tsv" in result.stderr
    n_clicked = len(set(log.title_index.tolist()))
    assert f"{n_clicked - 1} of {n_clicked} clicked titles are not in titles.tsv" in result.stderr


def test_options_that_do_not_go_together(model_dir, files):
    judged_folder(Path("judged"))
    Path("run.txt").write_text("q1 Q0 d1 1 1 t\n")
    for arguments, message in (
        ([model_dir, "clicks.tsv", "--gain", "linear"], "--gain does not go with held-out clicks"),
        (
            [model_dir, "judged", "--metrics", "hit@1"],
            "'hit@1' does not go with a judged set",
        ),
        ([model_dir, "clicks.tsv", "--labels", "--catalogue", "x"], "does not go with --labels"),
        ([model_dir, "clicks.tsv", "--compare-with", "bm25-clicks"], "needs --log"),
        ([model_dir, "clicks.tsv", "--labels", "--log", "x"], "--log does not go with --labels"),
    ):
        assert message in run(*arguments, code=2).stderr
    assert "a run needs a judged set" in run("run.txt", "clicks.tsv", code=1).stderr
    assert "1.0000" in run("run.txt", "judged").stdout


def test_queries_of_the_training_are_counted_in_any_spelling(model_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("log.tsv").write_text("Rome hotels\ta\ncafés in wien\tb\n")
    Path("clicks.tsv").write_text('"hotels" rome?\ta\t3\nCAFES: in Wien\tb\nparis\ta\t4\n')
    result = run(model_dir, "clicks.tsv", "--log", "log.tsv", "--json")
    said = "2 of 3 queries, with 50.0% of the clicks, are also in log.tsv, in this or another"
    assert said in result.stderr
    assert json.loads(result.stdout)["in_log"] == {"queries": 2, "share_of_clicks": 0.5}
    judged_folder(Path("judged"))
    queries = Path("judged/queries.tsv").read_text().splitlines()
    Path("log.tsv").write_text(f"{queries[0].split(chr(9))[1].upper()}!\ta\n")
    result = run(model_dir, "judged", "--log", "log.tsv", "--json")
    assert f"1 of {len(queries)} queries are also in log.tsv" in result.stderr
    assert json.loads(result.stdout)["in_log"] == {"queries": 1}
    assert "in_log" not in json.loads(run(model_dir, "judged", "--json").stdout)
