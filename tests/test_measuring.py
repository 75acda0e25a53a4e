"""`sentemb.evaluate` and `sentemb.diff`: one function each for whatever ranks."""

import json
from shutil import copytree

import numpy as np
import pytest
from helpers import made_up_model, made_up_pair_model

import sentemb
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import AllPairs, evaluate_clicks
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index import Index
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE, Recipe

TITLES = ["red hat", "blue hat", "red bag", "green shoe"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measuring")
    model = made_up_model(("bag", {}), TITLES, cells=6, dtype=np.float32, seed=0)
    model.save_pretrained(folder / "model")
    Index.build(model, TITLES).save(folder / "index")
    builder = ClickLogBuilder()
    for query, title in (("red", TITLES[0]), ("bag", TITLES[2]), ("shoe", TITLES[3])):
        builder.add(query, title)
    write_click_log(builder.build(), folder / "clicks.tsv")
    (folder / "judged").mkdir()
    (folder / "judged/queries.tsv").write_text("q1\tred hat\nq2\tshoe\n")
    lines = (f"d{k}\t{title}\n" for k, title in enumerate(TITLES))
    (folder / "judged/docs.tsv").write_text("".join(lines))
    (folder / "judged/qrels.txt").write_text("q1 0 d0 3\nq1 0 d1 1\nq2 0 d3 2\nq2 0 d2 0\n")
    return folder


def test_a_judged_set_is_measured_whatever_ranks(place):
    model = sentemb.load(place / "model")
    judged = read_judged_set(place / "judged")
    expected = evaluate_model(model, judged).mean
    for ranker in (model, place / "model", place / "index", Index.open(place / "index")):
        found = sentemb.evaluate(ranker, place / "judged")
        assert found.cutoffs == (1, 3, 10)
        np.testing.assert_array_equal(found.mean, expected)
    two = sentemb.evaluate(model, judged, metrics=["ndcg@2"], gain="linear")
    np.testing.assert_array_equal(two.mean, evaluate_model(model, judged, [2], "linear").mean)
    with pytest.raises(sentemb.SentembError, match="'mrr@3' does not go with a judged set"):
        sentemb.evaluate(model, judged, metrics=["mrr@3"])


def test_held_out_clicks_are_measured_over_a_catalogue(place):
    model, clicks = sentemb.load(place / "model"), sentemb.read_click_log(place / "clicks.tsv")
    over = HybridRanker(model, MODEL_ALONE).over(TITLES)
    expected = evaluate_clicks(over, clicks, TITLES).mean
    for ranker, titles in ((model, TITLES), (place / "model", TITLES), (place / "index", None)):
        found = sentemb.evaluate(ranker, place / "clicks.tsv", titles)
        assert found.n_titles == 4
        np.testing.assert_allclose(found.mean, expected)
    with pytest.warns(UserWarning, match="only the 3 of the clicks are ranked"):
        assert sentemb.evaluate(model, clicks).n_titles == 3
    pairs = made_up_pair_model(TITLES)
    of_pairs = sentemb.evaluate(pairs, clicks, TITLES, ["hit@1"]).mean
    np.testing.assert_array_equal(
        of_pairs, evaluate_clicks(AllPairs(pairs, TITLES), clicks, TITLES, ["hit@1"]).mean
    )
    with pytest.raises(sentemb.SentembError, match="titles of its own"):
        sentemb.evaluate(place / "index", clicks, TITLES)


def by_command(capsys, *arguments):
    assert main(["evaluate", *map(str, arguments), "--json"], standalone_mode=False) in (0, None)
    return json.loads(capsys.readouterr().out)


def test_python_and_the_command_measure_the_same(place, tmp_path, capsys):
    """The catalogue next to the clicks, products renamed since the log, parts alone and rivals."""
    model, clicks = sentemb.load(place / "model"), sentemb.read_click_log(place / "clicks.tsv")
    ids = ["p1", "p2", "p3", "p4"]
    recipe = Recipe({"cosine": 0.01, "memory": 1.0})
    of_log = ClickedQueries.of(clicks).with_ids(TITLES, ids)
    copytree(place / "model", tmp_path / "model")
    HybridRanker(model, recipe, of_log).save(tmp_path / "model")
    renamed = dict(zip(ids, ["scarlet cap", "navy cap", "scarlet sack", "lime boot"], strict=True))
    (tmp_path / "titles.tsv").write_text("".join(f"{id}\t{t}\n" for id, t in renamed.items()))
    lines = [f"red\t{renamed['p1']}\n", f"bag\t{renamed['p3']}\n", f"shoe\t{renamed['p4']}\n"]
    (tmp_path / "test.tsv").write_text("".join(lines))

    model_path, test = tmp_path / "model", tmp_path / "test.tsv"
    found = by_command(capsys, model_path, test, "--compare-with", "bm25")
    here = sentemb.evaluate(model_path, test, parts=True, compare_with=["bm25"])
    assert here.catalogue == found["catalogue"] == str(tmp_path / "titles.tsv")
    assert (
        dict(zip(here.metrics, here.mean.tolist(), strict=True))
        == found["systems"][str(model_path)]
    )
    assert here.mean[0] == 1.0
    assert ["bm25" in here.rivals, "cosine alone" in here.rivals] == [True, True]
    for name, other in here.rivals.items():
        assert list(found["systems"][name].values()) == other.mean.tolist()
        minus = [difference["mean"] for difference in found["model_minus"][name].values()]
        assert minus == [difference.mean for difference in here.differences[name]]
    for titles in (renamed, tmp_path / "titles.tsv"):
        assert sentemb.evaluate(model_path, test, titles).mean[0] == 1.0
    opened = sentemb.load_ranker(model_path)
    assert sentemb.evaluate(opened, test).mean.tolist() == here.mean.tolist()
    cosine = sentemb.evaluate(opened, test, cosine=True).mean
    np.testing.assert_array_equal(cosine, here.rivals["cosine alone"].mean)


def test_a_run_is_measured_as_by_the_command(place, tmp_path, capsys):
    run = tmp_path / "a.run"
    run.write_text("q1 Q0 d1 1 2.5 t\nq1 Q0 d0 2 1.5 t\nq2 Q0 d3 1 1 t\n")
    found = by_command(capsys, run, place / "judged")
    here = sentemb.evaluate(run, place / "judged")
    assert here.mean.tolist() == [found[f"ndcg@{k}"] for k in here.cutoffs]


def test_progress_counts_the_queries_of_each_ranker(place):
    said = []
    sentemb.evaluate(
        place / "model",
        place / "clicks.tsv",
        TITLES,
        compare_with={"words": "bm25"},
        on_progress=lambda *progress: said.append(progress),
    )
    assert said == [("", 3, 3), ("words", 3, 3)]


def test_rivals_in_a_list_are_names_or_paths(place):
    model, clicks = sentemb.load(place / "model"), place / "clicks.tsv"
    with pytest.raises(sentemb.SentembError, match="give rankers as a dict"):
        sentemb.evaluate(model, clicks, TITLES, compare_with=[model])
    with pytest.raises(sentemb.SentembError, match="bm25-clicks learns from clicks; give the log"):
        sentemb.evaluate(model, clicks, TITLES, compare_with=["bm25-clicks"])


def test_two_rankings_are_compared_whatever_ranks(place):
    second = made_up_model(("bag", {}), TITLES, cells=6, dtype=np.float32, seed=1)
    clicks = sentemb.read_click_log(place / "clicks.tsv")
    by_models = sentemb.diff(place / "model", second, titles=TITLES, clicks=clicks)
    by_indexes = sentemb.diff(place / "index", Index.build(second, TITLES), clicks=clicks)
    assert by_models.summary() == by_indexes.summary()
    few = sentemb.diff(place / "model", second, ["red"], TITLES, k=2)
    assert len(few.queries) == 1 and few.by_clicks is None


@pytest.mark.parametrize(
    ("first", "second", "more", "message"),
    [
        ("model", "index", {"titles": TITLES}, "two models or two indexes"),
        ("model", "model", {}, "models have no titles"),
        ("index", "index", {"titles": TITLES}, "titles of their own"),
        ("model", "model", {"titles": TITLES, "queries": None}, "give queries, clicks or both"),
    ],
)
def test_what_cannot_be_compared(place, first, second, more, message):
    given = {"queries": ["red"], **more}
    with pytest.raises(sentemb.SentembError, match=message):
        sentemb.diff(place / first, place / second, **given)
    with pytest.raises(sentemb.SentembError, match="a pair model ranks no catalogue"):
        sentemb.diff(place / "model", made_up_pair_model(TITLES), ["red"], TITLES)
