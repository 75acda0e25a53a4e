"""The commands index and search: what they print, write and refuse."""

import json
import multiprocessing
import os
import shutil
import signal
import sys
import time

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_pair_model, tree

from sentemb import Index, SentembError, evaluate, load
from sentemb.cli import main
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.opening import load_ranker
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MEANINGS, Recipe
from sentemb.search.searcher import NOTHING_KNOWN
from sentemb.system import whole_folder
from sentemb.system.exchange import exchange

TITLES = [f"{colour} {thing}" for colour in ("red", "blue", "green") for thing in ("hat", "bag")]
LINES = "".join(f"p{place}\t{title}\n" for place, title in enumerate(TITLES))
CLICKS = [("hat", "red hat"), ("red bat", "red hat"), ("bags", "blue bag")]
RECIPE = Recipe({"cosine": 1.0, "memory": 0.7, "bm25": 0.3})


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


@pytest.fixture(scope="module")
def hybrid(place):
    """The same model with a ranker."""
    load(place / "model").save_pretrained(place / "hybrid")
    clicks = ClickedQueries.of(ClickLog.from_pairs(CLICKS))
    HybridRanker(load(place / "hybrid"), RECIPE, clicks).save(place / "hybrid")
    return place / "hybrid"


@pytest.fixture
def index(place, tmp_path):
    run("index", place / "model", place / "titles.tsv", "-o", tmp_path / "index")
    return tmp_path / "index"


def test_a_search_lists_rank_score_id_and_title(place):
    out, err = run("search", place / "index", "red hat", "-k", 2)
    hits = Index.open(place / "index").search("red hat", 2)
    expected = [f"{k:5}  {hit.score:6.3f}  {hit.id}  {hit.title}" for k, hit in enumerate(hits, 1)]
    assert out.splitlines() == expected and err == ""


@pytest.mark.parametrize(("model", "most"), [("model", 25), ("hybrid", 40)])
def test_each_file_and_folder_is_flushed_once(place, hybrid, model, most, tmp_path, monkeypatch):
    flushed, fsync = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: (flushed.append(handle), fsync(handle)))
    run("index", place / model, place / "titles.tsv", "-o", tmp_path / "index")
    paths = list((tmp_path / "index").rglob("*"))
    # Each below the index, the index itself, and the folder that has its name.
    assert len(flushed) == len(paths) + 2 <= most

    before = {path.stat().st_ino for path in paths if path.is_file()}
    (tmp_path / "gone.txt").write_text("p1\n")
    del flushed[:]
    run("index", tmp_path / "index", "--remove", tmp_path / "gone.txt")
    paths = [path for path in (tmp_path / "index").rglob("*") if path.stat().st_ino not in before]
    assert len(flushed) == len(paths) + 2


def test_an_offset_shows_what_follows(place):
    lines = run("search", place / "index", "red hat", "-k", 3)[0].splitlines()
    arguments = ("search", place / "index", "red hat", "-k", 2, "--offset", 1)
    assert run(*arguments)[0].splitlines() == lines[1:]
    assert [line.split("\t")[1] for line in run(*arguments, "--tsv")[0].splitlines()] == [
        "rank",
        "2",
        "3",
    ]
    assert run(*arguments[:-1], 900)[0] == "       all titles were shown before\n"


def test_an_index_takes_over_the_ranker_of_its_model(place, hybrid, tmp_path):
    arguments = (hybrid, place / "titles.tsv", "-o")
    _, err = run("index", *arguments, tmp_path / "index")
    assert all(MEANINGS[part] in err for part in RECIPE.parts)
    held = "index: holds 3 clicked queries of the log as plain text; train --no-ranker"
    assert err.count(held) == err.count("plain text") == 1
    (tmp_path / "more.tsv").write_text("p9\tred coat\n")
    for change in ("--add", "--remove"):
        _, err = run("index", tmp_path / "index", change, tmp_path / "more.tsv")
        assert err.count(held) == 1
    assert Index.open(tmp_path / "index").recipe == RECIPE
    (found,) = map(
        json.loads, run("search", tmp_path / "index", "red bat", "--json")[0].split("\n")[:-1]
    )
    assert found["titles"][0]["title"] == "red hat"
    assert found["titles"][0]["parts"]["memory"]["value"] == pytest.approx(1, abs=0.01)
    assert list(found["titles"][0]["parts"]) == ["cosine", "memory", "bm25"]
    ranked = load_ranker(hybrid).rank("red bat", TITLES)
    assert [(TITLES[k], score) for k, score in ranked] == [
        (hit["title"], pytest.approx(hit["score"], abs=1e-6)) for hit in found["titles"]
    ]


def test_an_index_of_the_cosine_holds_no_clicks(place, hybrid, tmp_path):
    _, err = run("index", hybrid, place / "titles.tsv", "-o", tmp_path / "index", "--cosine")
    assert MEANINGS["cosine"] in err and MEANINGS["bm25"] not in err and "plain text" not in err
    assert tree(tmp_path / "index") == tree(place / "index")


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


def test_a_field_with_the_name_of_a_column_is_a_column_of_its_own(hybrid, tmp_path):
    names = ["memory", "rank", "field.memory", "brand"]
    fields = "\t".join(["16 GB", "first", "x", "Acme"])
    lines = [f"{line}\t{fields}" for line in LINES.splitlines()]
    (tmp_path / "titles.tsv").write_text("\n".join(["\t".join(["id", "title", *names]), *lines]))
    run("index", hybrid, tmp_path / "titles.tsv", "-o", tmp_path / "index")
    arguments = "search", tmp_path / "index", "red hat", "-k", 1
    line, cells = (text.split("\t") for text in run(*arguments, "--tsv")[0].splitlines())
    (hit,) = json.loads(run(*arguments, "--json")[0])["titles"]
    shown = dict(zip(line, cells, strict=True))
    assert (shown["rank"], shown["memory"]) == ("1", str(hit["parts"]["memory"]["value"]))
    of_fields = {name: shown[name] for name in line[-4:]}
    assert of_fields == {
        "field.memory": "16 GB", "field.rank": "first", "field.field.memory": "x", "brand": "Acme"
    }  # fmt: skip


def test_an_index_in_place_of_a_model(place, hybrid, tmp_path):
    judged = tmp_path / "judged"
    judged.mkdir()
    (judged / "queries.tsv").write_text("q1\thats\n")
    (judged / "docs.tsv").write_text(LINES)
    (judged / "qrels.txt").write_text("q1 0 p0 2\nq1 0 p1 0\nq1 0 p2 1\n")
    run("index", hybrid, place / "titles.tsv", "-o", tmp_path / "index")
    for options in ((), ("--cosine",)):
        of_model, of_index = (
            run("evaluate", folder, judged, *options)[0] for folder in (hybrid, tmp_path / "index")
        )
        assert of_index == of_model
    found = json.loads(run("evaluate", tmp_path / "index", judged, "--json")[0])
    assert found["ndcg@3"] == evaluate(tmp_path / "index", judged).mean[1]
    _, err = run("score", place / "index", "red hat", "hat", code=1)
    remedy = f"give {place / 'index' / 'model'}, or use `sentemb search` or `sentemb explain`"
    assert err == f"Error: {place / 'index'}: is an index; {remedy}\n"


def test_a_model_in_the_folder_and_an_id_that_is_gone_are_named(place, tmp_path):
    (tmp_path / "shop").mkdir()
    shutil.copytree(place / "model", tmp_path / "shop/model")
    _, err = run("score", tmp_path / "shop", "red hat", "hat", code=1)
    assert f"(model.safetensors is missing); did you mean {tmp_path / 'shop/model'}?\n" in err
    note = "{} is not an id of the index, so it was read as a title"
    for title, is_said in (("gone", True), ("p1", False), ("a red hat", False)):
        assert (
            note.format(title) in run("explain", place / "index", "red hat", title)[1]
        ) == is_said


def test_only_some_ids_and_scores(place, tmp_path):
    only = tmp_path / "only.txt"
    only.write_text("p3\np0\textra\n\nunknown\n")
    out, err = run("search", place / "index", "red hat", "--only", only)
    assert {line.split()[2] for line in out.splitlines()} == {"p0", "p3"}
    assert "has 1 id not in the index, ignored" in err
    out, _ = run("search", place / "index", "red hat", "--min-score", 2)
    assert out == "       no good match: every score is below 2\n"
    only.write_text("unknown\n")
    out, _ = run("search", place / "index", "red hat", "--only", only)
    assert out == "       no good match: no titles to choose from\n"


def test_a_query_of_unknown_words_finds_nothing_and_says_why(place):
    out, err = run("search", place / "index", "q7x9")
    assert "knows nothing of 'q7x9'" in err
    assert out == f"       no good match: {NOTHING_KNOWN}\n"
    found = json.loads(run("search", place / "index", "q7x9", "--json")[0])
    assert found == {"id": "query", "query": "q7x9", "titles": [], "no_match": NOTHING_KNOWN}


def test_titles_are_added_and_removed_in_place(index, tmp_path):
    (tmp_path / "new.tsv").write_text("p9\tred red hat\np1\tgreen shoe\n")
    (tmp_path / "gone.txt").write_text("p1\n")
    out, _ = run("index", index, "--add", tmp_path / "new.tsv", "--remove", tmp_path / "gone.txt")
    assert f"{index}: 7 titles; float32" in out
    changed = Index.open(index)
    assert list(changed.ids) == ["p0", "p2", "p3", "p4", "p5", "p9", "p1"]
    assert changed.titles[6] == "green shoe"
    before = tree(index)
    _, err = run("index", index, "--add", tmp_path / "new.tsv", code=1)
    assert "the id p9 is in the index already" in err and tree(index) == before
    (tmp_path / "gone.txt").write_text("gone\np1\nnever\np1\n")
    _, err = run("index", index, "--remove", tmp_path / "gone.txt", "-o", tmp_path / "smaller")
    assert (
        f"{tmp_path / 'gone.txt'} has 2 ids not in the index, passed over; the first: 'gone'" in err
    )
    assert "1 title removed" in err
    assert len(Index.open(tmp_path / "smaller")) == 6 and tree(index) == before


def test_a_table_of_csv_is_told_where_to_go(index, tmp_path):
    (tmp_path / "products.csv").write_text("sku,name\np9,red hat\n")
    _, err = run("index", index, "--sync", tmp_path / "products.csv", code=1)
    assert "products.csv:1: no tab; write id<TAB>text; of CSV, `sentemb import --catalogue`" in err


def test_a_renamed_title_keeps_its_clicks(place, hybrid, tmp_path):
    index = tmp_path / "index"
    run("index", hybrid, place / "titles.tsv", "-o", index)
    before = Index.open(index).search("red bat", 1)[0]
    lines = [line for line in LINES.splitlines() if not line.startswith("p5")]
    lines[0] = "p0\tcrimson cap"
    (tmp_path / "now.tsv").write_text("\n".join([*lines, "p6\tred coat"]) + "\n")
    _, err = run("index", index, "--sync", tmp_path / "now.tsv")
    assert "1 title added, 1 changed, 1 removed" in err
    after = next(hit for hit in Index.open(index).search("red bat") if hit.id == "p0")
    assert (after.title, before.id) == ("crimson cap", "p0")
    memory = [hit.parts["memory"]["value"] for hit in (after, before)]
    assert memory[0] == pytest.approx(memory[1], abs=1e-6)
    assert sorted(Index.open(index).ids) == ["p0", "p1", "p2", "p3", "p4", "p6"]
    # Nothing differs any more.
    as_it_is = tree(index)
    _, err = run("index", index, "--sync", tmp_path / "now.tsv")
    assert "0 titles added, 0 changed, 0 removed" in err and tree(index) == as_it_is


def test_a_renamed_title_keeps_its_clicks_when_the_index_is_tuned(place, index, tmp_path):
    """Tuning gives an index clicks that know their titles by text."""
    log = ClickLog.from_pairs(CLICKS)
    opened = Index.open(index)
    opened.adopt(opened.ranked_by(HybridRanker(opened.model, RECIPE, ClickedQueries.of(log))),
                 opened.snapshot)  # fmt: skip
    opened.sync(["crimson cap", *TITLES[1:]], [f"p{k}" for k in range(6)])
    (memory,) = (share for share in opened.explain("red bat", ["p0"])[0] if share.nearest)
    assert memory.nearest.is_clicked and memory.nearest.text == "red bat"


def test_sync_changes_all_titles_in_one_step(index, tmp_path, monkeypatch):
    opened = Index.open(index)
    wanted = ["new coat", *TITLES[2:]], ["n", *(f"p{k}" for k in range(2, 6))]
    seen = []
    embed = type(opened.model).unit_vectors

    def search_meanwhile(model, texts, side):
        if list(texts) == ["new coat"]:
            seen.append([hit.id for hit in opened.search("red hat", 9)])
        return embed(model, texts, side)

    monkeypatch.setattr(type(opened.model), "unit_vectors", search_meanwhile)
    before = opened.snapshot
    assert opened.sync(*wanted) == (1, 0, 2)
    assert opened.snapshot is not before
    for ids in seen:
        assert sorted(ids) == [f"p{k}" for k in range(6)]
    refused = opened.snapshot
    with pytest.raises(SentembError, match="the same id"):
        opened.sync(["a", "b"], ["x", "x"])
    assert opened.snapshot is refused


def test_bm25_and_memory_are_part_of_the_score(place, hybrid, tmp_path):
    index = tmp_path / "index"
    run("index", hybrid, place / "titles.tsv", "-o", index)
    both = json.loads(run("search", index, "red hat", "--json", "-k", 1)[0])
    alone = json.loads(run("search", index, "red hat", "--json", "--cosine")[0])
    assert both["titles"][0]["parts"]["bm25"]["value"] > 0
    assert list(alone["titles"][0]["parts"]) == ["cosine"]
    assert alone == json.loads(run("search", place / "index", "red hat", "--json")[0])
    heads, first, *_ = (
        line.split("\t") for line in run("search", index, "red hat", "--tsv")[0].split("\n")
    )
    assert heads[5:] == ["cosine", "memory", "bm25", "confidence"]
    assert [float(cell) for cell in first[5:8]] == [
        part["value"] for part in both["titles"][0]["parts"].values()
    ]


def test_rank_refuses_an_index(place):
    _, err = run("rank", place / "model", "--query", "red hat", place / "index", code=1)
    assert "index: is an index; `sentemb search` ranks its titles" in err


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
        (["index", "index", "titles.tsv", "-o", "new"], "is an index; give a model"),
        (["index", "index"], "say what to change"),
        (["index", "index", "titles.tsv", "--add", "titles.tsv"], "to change an index"),
        (["index", "index", "--add", "titles.tsv", "--dtype", "int8"], "--dtype is for a new"),
        (["index", "index", "--add", "titles.tsv"], "the id p0 is in the index already"),
        (["index", "index", "--add", "-", "--remove", "-"], "only one of the files"),
        (["index", "model", "--add", "titles.tsv"], "there is no index here"),
        (["search", "model", "hat"], "there is no index here"),
        (["search", "index"], "give INDEX QUERY"),
        (
            ["search", "index", "hat", "--queries", "titles.tsv"],
            "hat is not an index; give no",
        ),
        (["search", "index", "--queries", "titles.tsv", "--like", "p1"], "not both"),
        (["search", "index", "red", "hat"], "red is not an index; put a query of several words in"),
        (["search", "index", "index", "hat"], "index: is named twice; name each"),
        (["search", "index", "hat", "--json", "--tsv"], "not both"),
        (["search", "index", "--queries", "-", "--only", "-"], "only one of the files"),
        (["search", "index", "hat", "--only", "nothing"], "cannot be read"),
        (["index", "index", "--sync", "titles.tsv", "--add", "titles.tsv"], "leave --add and"),
        (["index", "index", "--sync", "titles.tsv", "--cosine"], "--cosine is for a new"),
        (["index", "index", "--sync", "nothing"], "cannot be read"),
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


def save_slowly(path, when, ready):
    """Add a title and save; say so and wait before or after the folders are exchanged."""
    swap = whole_folder._swap

    def slow(*names):
        if when == "after":
            swap(*names)
        ready.send(None)
        time.sleep(60)

    whole_folder._swap = slow
    index = Index.open(path)
    index.add(["new hat"], ["new"])
    index.save(path, force=True)


@pytest.mark.skipif(sys.platform != "linux", reason="folders are exchanged on Linux only")
@pytest.mark.parametrize(("when", "expected"), [("before", 6), ("after", 7)])
def test_a_killed_writer_leaves_the_old_or_the_new_index(index, when, expected):
    fork = multiprocessing.get_context("fork")
    told, ready = fork.Pipe(duplex=False)
    writer = fork.Process(target=save_slowly, args=(index, when, ready), daemon=True)
    writer.start()
    assert told.poll(60)
    writer.kill()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL
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
