"""The commands index and search, and rank with an index: what they print, write and refuse."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log, made_up_model, made_up_pair_model, tree

from sentemb import Index
from sentemb.cli import main
from sentemb.data.click_log import write_click_log
from sentemb.system.exchange import exchange

TITLES = [f"{colour} {thing}" for colour in ("red", "blue", "green") for thing in ("hat", "bag")]
LINES = "".join(f"p{place}\t{title}\n" for place, title in enumerate(TITLES))


def run(*arguments, code=0, stdin=None):
    """Standard output and standard error of a command."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a model, a pair model, titles and an index."""
    place = tmp_path_factory.mktemp("shop")
    bag = made_up_model(("bag", {}), TITLES, cells=12, dtype=np.float32)
    bag.save_pretrained(place / "model")
    made_up_pair_model(TITLES).save_pretrained(place / "pairs")
    (place / "titles.tsv").write_text(LINES)
    run("index", place / "model", place / "titles.tsv", "-o", place / "index")
    return place


@pytest.fixture
def index(place, tmp_path):
    run("index", place / "model", place / "titles.tsv", "-o", tmp_path / "index")
    return tmp_path / "index"


def test_a_search_lists_rank_score_id_and_title(place):
    out, err = run("search", place / "index", "red hat", "-k", 2)
    hits = Index.open(place / "index").search("red hat", 2)
    expected = [f"{k:5}  {hit.score:6.3f}  {hit.id}  {hit.title}" for k, hit in enumerate(hits, 1)]
    assert out.splitlines() == expected and err == ""


def test_an_index_takes_over_the_ranker_of_its_model(place, tmp_path):
    from sentemb.data.click_log import ClickLog
    from sentemb.loading import load
    from sentemb.ranking.ranker import HybridRanker
    from sentemb.ranking.recipe import Recipe

    load(place / "model").save_pretrained(tmp_path / "model")
    clicks = ClickLog.from_pairs([("hat", "red hat"), ("red bat", "red hat"), ("bags", "blue bag")])
    recipe = Recipe(1.0, 0.3, 0.7, click_weight=0.5)
    ranker = HybridRanker(load(tmp_path / "model"), recipe, clicks, TITLES)
    ranker.save(tmp_path / "model")
    arguments = (tmp_path / "model", place / "titles.tsv", "-o")
    _, err = run("index", *arguments, tmp_path / "index")
    assert f"ranker: {recipe}" in err
    held = "index: holds 3 clicked queries of the log as plain text; without --log"
    assert err.count(held) == err.count("plain text") == 1
    (tmp_path / "more.tsv").write_text("p9\tred coat\n")
    _, err = run("index", tmp_path / "index", "--add", tmp_path / "more.tsv")
    assert err.count(held) == 1
    _, err = run("index", tmp_path / "index", "--remove", tmp_path / "more.tsv")
    assert err.count(held) == 1
    index = Index.open(tmp_path / "index")
    assert index.recipe == recipe
    (found,) = (
        json.loads(line)
        for line in run("search", tmp_path / "index", "red bat", "--json")[0].splitlines()
    )
    assert found["titles"][0]["title"] == "red hat"
    assert found["titles"][0]["memory"] == pytest.approx(1, abs=1e-6)
    own = ranker.rank("red bat", TITLES)
    np.testing.assert_allclose(
        [hit["score"] for hit in found["titles"]], [score for _, score in own], atol=1e-5
    )
    for option, parts in (("--no-ranker", ("cosine",)), ("--bm25", ("cosine", "bm25"))):
        _, err = run("index", *arguments, tmp_path / option, option)
        assert "ranker: cosine" not in err and "plain text" not in err
        assert Index.open(tmp_path / option).recipe.parts == parts
    assert tree(tmp_path / "--no-ranker") == tree(place / "index")
    for wrong, message in (
        (
            (tmp_path / "index", "--remove", place / "titles.tsv", "--no-ranker"),
            "is for a new index",
        ),
        ((*arguments, tmp_path / "x", "--log", place / "titles.tsv"), "--log needs --bm25"),
    ):
        assert message in run("index", *wrong, code=2)[1]


def test_many_queries_in_every_form(place, tmp_path):
    queries = tmp_path / "queries.tsv"
    queries.write_text("q1\tred hat\nq2\tblue bag\n")
    arguments = ("search", place / "index", "--queries", queries, "-k", 3)
    listed, _ = run(*arguments)
    assert [line for line in listed.splitlines() if line[:1].isalpha()] == ["red hat", "blue bag"]
    found = [json.loads(line) for line in run(*arguments, "--json")[0].splitlines()]
    hits = Index.open(place / "index").search(["red hat", "blue bag"], 3)
    assert [one["id"] for one in found] == ["q1", "q2"]
    assert [[hit["id"] for hit in one["titles"]] for one in found] == [
        [hit.id for hit in own] for own in hits
    ]
    tsv = run(*arguments, "--tsv")[0].splitlines()
    assert tsv[0].startswith("query_id\trank\tid\ttitle\tscore") and len(tsv) == 7
    trec = run(*arguments, "--trec")[0].splitlines()
    assert [line.split()[0] for line in trec] == ["q1"] * 3 + ["q2"] * 3
    piped = run("search", place / "index", "--queries", "-", "-k", 3, stdin=queries.read_text())
    assert piped[0] == listed


def test_only_some_ids_and_scores(place, tmp_path):
    only = tmp_path / "only.txt"
    only.write_text("p3\np0\textra\n\nunknown\n")
    out, err = run("search", place / "index", "red hat", "--only", only)
    assert {line.split()[2] for line in out.splitlines()} == {"p0", "p3"}
    assert "has 1 ids that are not in the index" in err
    out, _ = run("search", place / "index", "red hat", "--min-score", 2)
    assert out.strip() == "nothing found"


def test_a_query_of_unknown_words_is_noted(place):
    _, err = run("search", place / "index", "q7x9")
    assert "knows nothing of 'q7x9'" in err


def test_titles_are_added_and_removed_in_place(index, tmp_path):
    (tmp_path / "new.tsv").write_text("p9\tred red hat\np1\tgreen shoe\n")
    (tmp_path / "gone.txt").write_text("p1\n")
    _, err = run("index", index, "--add", tmp_path / "new.tsv", "--remove", tmp_path / "gone.txt")
    assert f"{index}: 7 titles; float32" in err
    changed = Index.open(index)
    assert list(changed.ids) == ["p0", "p2", "p3", "p4", "p5", "p9", "p1"]
    assert changed.titles[6] == "green shoe"
    before = tree(index)
    _, err = run("index", index, "--add", tmp_path / "new.tsv", code=1)
    assert "the id p9 is in the index already" in err and tree(index) == before
    run("index", index, "--remove", tmp_path / "gone.txt", "-o", tmp_path / "smaller")
    assert len(Index.open(tmp_path / "smaller")) == 6 and tree(index) == before


def test_bm25_is_part_of_the_score(place, tmp_path):
    write_click_log(made_up_log(), tmp_path / "log.tsv")
    run(
        "index", place / "model", place / "titles.tsv", "-o", tmp_path / "both", "--bm25",
        "--log", tmp_path / "log.tsv",
    )  # fmt: skip
    both = json.loads(run("search", tmp_path / "both", "red hat", "--json", "-k", 1)[0])
    alone = json.loads(run("search", tmp_path / "both", "red hat", "--json", "--bm25-weight", 0)[0])
    assert both["titles"][0]["bm25"] > 0 and alone["titles"][0]["bm25"] is None
    plain, _ = run("search", tmp_path / "both", "red hat", "--tsv", "--bm25-weight", 0, "-k", 1)
    assert plain.splitlines()[1].endswith("\t\t")  # without BM25 and a confidence
    # `rank` is about the model.
    ranked = [
        run("rank", place / "model", "--query", "red hat", where)[0]
        for where in (place / "titles.tsv", tmp_path / "both")
    ]
    assert ranked[0] == ranked[1]


def test_rank_takes_an_index_of_the_same_model(place, tmp_path):
    titles, index = place / "titles.tsv", place / "index"
    for query in (["--query", "red hat"], ["--query", "a blue bag", "-k", "0"]):
        theirs, _ = run("rank", place / "model", *query, titles)
        ours, _ = run("rank", place / "model", *query, index)
        assert [line.split()[2] for line in ours.splitlines()] == [
            line.split()[2] for line in theirs.splitlines()
        ]
    other = made_up_model(("bag", {}), TITLES, cells=12, dtype=np.float32, seed=1)
    other.save_pretrained(tmp_path / "other")
    _, err = run("rank", tmp_path / "other", "--query", "red hat", index, code=1)
    assert "was made with another model than" in err and len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["index", "model"], "give MODEL TITLES -o INDEX"),
        (["index", "model", "titles.tsv"], "name the folder of the index"),
        (["index", "model", "titles.tsv", "-o", "index"], "is not empty"),
        (["index", "model", "titles.tsv", "-o", "model", "--force"], "is read by the command"),
        (["index", "pairs", "titles.tsv", "-o", "new"], "scores pairs and has no vector"),
        (["index", "nothing", "titles.tsv", "-o", "new"], "there is no model here"),
        (["index", "model", "nothing", "-o", "new"], "cannot be read"),
        (["index", "model", "titles.tsv", "-o", "new", "--stem", "english"], "--stem needs --bm25"),
        (["index", "index", "titles.tsv", "-o", "new"], "is an index; give a model"),
        (["index", "index"], "say what to change"),
        (["index", "index", "titles.tsv", "--add", "titles.tsv"], "to change an index"),
        (["index", "index", "--add", "titles.tsv", "--dtype", "int8"], "--dtype is for a new"),
        (["index", "index", "--add", "titles.tsv"], "the id p0 is in the index already"),
        (["index", "index", "--add", "-", "--remove", "-"], "only one of the files"),
        (["index", "model", "--add", "titles.tsv"], "there is no index here"),
        (["search", "model", "hat"], "there is no index here"),
        (["search", "index"], "give INDEX QUERY"),
        (["search", "index", "hat", "--queries", "titles.tsv"], "give INDEX QUERY"),
        (["search", "index", "hat", "--json", "--tsv"], "not both"),
        (["search", "index", "--queries", "-", "--only", "-"], "only one of the files"),
        (["search", "index", "hat", "--only", "nothing"], "cannot be read"),
        (["search", "index", "hat", "-k", "0"], "0 is not in the range"),
        (["search", "index", "hat", "--bm25-weight", "0.1"], "the index has no BM25"),
        (["search", "index", "hat", "--min-confidence", "0.1"], "not calibrated"),
    ],
)
def test_wrong_input_is_one_clear_line(place, monkeypatch, arguments, message):
    monkeypatch.chdir(place)
    before = tree(place)
    result = CliRunner().invoke(main, arguments, input="")
    assert isinstance(result.exception, SystemExit) and result.exit_code in (1, 2)
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ") and message in last, last
    assert result.stdout == "" and tree(place) == before


# -- a killed writer -------------------------------------------------------------------------------

SLOW_SAVE = """
import sys, time
from sentemb import Index
from sentemb.system import whole_folder
index = Index.open(sys.argv[1])
index.add(["new hat"], ["new"])
when = sys.argv[2]
swap = whole_folder._swap
def slow(*names):
    if when == "before":
        print("now", flush=True)
        time.sleep(60)
    swap(*names)
    print("now", flush=True)
    time.sleep(60)
whole_folder._swap = slow
index.save(sys.argv[1], force=True)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged on Linux only")
@pytest.mark.parametrize(("when", "expected"), [("before", 6), ("after", 7)])
def test_a_killed_writer_leaves_the_old_or_the_new_index(index, when, expected):
    writer = subprocess.Popen(
        [sys.executable, "-c", SLOW_SAVE, index, when], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout.readline() == "now\n"
    writer.send_signal(signal.SIGKILL)
    writer.wait()
    Index.verify(index)
    assert len(Index.open(index)) == expected
    Index.open(index).save(index, force=True)
    assert os.listdir(index.parent) == ["index"]  # nothing of the killed writer is left


def test_without_an_exchange_the_index_is_replaced_too(index, monkeypatch):
    changed = Index.open(index)
    changed.remove(["p0"])
    monkeypatch.setattr("sentemb.system.whole_folder.exchange", lambda *names: False)
    changed.save(index, force=True)
    assert len(Index.open(index)) == 5
    (index.parent / "a").write_text("one")
    (index.parent / "b").write_text("two")
    assert not exchange(index.parent / "a", index.parent / "missing")
