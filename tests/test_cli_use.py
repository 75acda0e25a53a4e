"""The commands that use a model: encode, score, rank, evaluate, plot-gates."""

import ctypes
import gzip
import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import click
import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_pair_model, run_python

from sentemb.cli import COMMANDS, main, program
from sentemb.cli.program import exit_code_of
from sentemb.evaluation.trec import read_run

QUERIES = "q1\thotels in shanghai\nq2\tfix a bath tub\n"
TITLES = "d1\tshanghai hotels\nd3\tbath tub repair\nd2\tbath tub repair\nd4\tresorts\n"
QRELS = "q1 0 d1 3\nq1 0 d2 0\nq2 0 d2 2\nq2 0 d4 1\n"


def run(*arguments, input=None, code=0):
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=input)
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, input=None):
    """The one line that stderr says, exit code 1."""
    result = run(*arguments, input=input, code=1)
    assert result.stdout == ""
    assert result.stderr.startswith("Error: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.removeprefix("Error: ")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The working folder of a test, with queries, titles and a judged set."""
    monkeypatch.chdir(tmp_path)
    Path("judged").mkdir()
    for folder in (Path(), Path("judged")):
        (folder / "queries.tsv").write_text(QUERIES)
        (folder / "docs.tsv").write_text(TITLES)
    Path("judged/qrels.txt").write_text(QRELS)
    return tmp_path


@pytest.mark.parametrize("name", ["encode", "score", "rank", "evaluate", "plot-gates"])
def test_help_begins_with_the_line_of_the_overview(name):
    assert f"\n  {COMMANDS[name]}\n" in run(name, "-h").output


@pytest.mark.parametrize(
    ("words", "nearest"),
    [
        (["trian"], " Did you mean train?"),
        (["plot"], " Did you mean plot-gates or plot-match or plot-loss?"),
        (["data", "onett"], " Did you mean onet?"),
        (["vectors", "shwo"], " Did you mean show?"),
        (["find"], " Did you mean search?"),
        (["help"], " Did you mean --help?"),
        (["qqqq"], ""),
    ],
)
def test_an_unknown_command_is_answered_with_the_nearest(words, nearest):
    said = run(*words, code=2).stderr
    assert said.splitlines()[-1] == f"Error: No such command {words[-1]!r}.{nearest}"


def test_words_that_are_suggestions_for_others_are_not_commands():
    assert not set(main.meant) & set(COMMANDS)
    assert {name for name in main.meant.values() if not name.startswith("-")} <= set(COMMANDS)


def test_python_runs_the_package_as_the_command():
    arguments = [sys.executable, "-m", "sentemb", "--version"]
    said = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout
    assert said == run("--version").stdout.replace("main,", "sentemb,")


class TestEncode:
    def test_lines_to_vectors(self, model, model_dir, files):
        lines = ["hotels in shanghai", "", "bath\ttub"]
        Path("texts").write_text("\n".join(lines))
        result = run("encode", model_dir, "texts", "-o", "out.npy", "--side", "document")
        vectors = np.load("out.npy")
        assert vectors.dtype == np.float32
        with pytest.warns(UserWarning, match="1 of 3 texts have no words"):
            np.testing.assert_array_equal(vectors, model.encode_document(lines))
        assert not vectors[1].any()
        assert result.stderr == "warning: 1 of 3 texts have no words; their vectors are zero\n"
        assert result.stdout.startswith("3 texts, 8 dimensions, ")

    def test_portions_are_one_array_with_one_warning(self, model, model_dir, files, monkeypatch):
        from sentemb.models import cluster_encoding as encoding

        monkeypatch.setattr(encoding, "PORTION", 2)
        lines = ["", "bath", "12", "bath tub", " ", "13 14", "hotels"]
        Path("texts").write_text("\n".join(lines))
        result = run("encode", model_dir, "texts", "-o", "out.npy", "--normalise")
        with pytest.warns(UserWarning, match="no word"):
            expected = model.encode(lines, normalize_embeddings=True)
        np.testing.assert_array_equal(np.load("out.npy"), expected)
        assert result.stderr.splitlines() == [
            "warning: 2 of 7 texts have no words; their vectors are zero",
            "warning: 2 of 7 texts have no word that the model knows; their vectors say nothing "
            "about them",
        ]

    def test_ids_are_written_next_to_the_vectors(self, model, model_dir, files):
        result = run("encode", model_dir, "docs.tsv", "--ids", "-o", "out.npy")
        titles = dict(line.split("\t") for line in TITLES.splitlines())
        assert Path("out.ids").read_text().splitlines() == list(titles)
        np.testing.assert_array_equal(np.load("out.npy"), model.encode(list(titles.values())))
        assert result.stdout.startswith("4 texts")
        # Without the option the ids would be words: the command says so.
        noted = run("encode", model_dir, "docs.tsv", "-o", "all.npy").stderr.splitlines()
        assert noted[0] == "note: line 1 has a tab; if the lines are id<TAB>text, use --ids"
        assert not Path("all.ids").exists()
        assert "id<TAB>text" in refused("encode", model_dir, "-", "--ids", "-o", "o.npy", input="a")
        assert "a second file" in run("encode", model_dir, "--ids", "-o", "-", code=2).stderr
        Path("no.ids").mkdir()
        assert "no.ids: cannot be written" in refused(
            "encode", model_dir, "docs.tsv", "--ids", "-o", "no.npy"
        )
        assert not Path("no.npy").exists()

    def test_standard_input_to_standard_output(self, model, model_dir):
        result = run("encode", model_dir, "-o", "-", "--normalise", input="bath tub\n")
        vectors = np.load(io.BytesIO(result.stdout_bytes))
        expected = model.encode_query(["bath tub"], normalize_embeddings=True)
        np.testing.assert_array_equal(vectors, expected)

    def test_gz(self, model_dir, files):
        Path("texts.gz").write_bytes(gzip.compress(b"a\nb\n"))
        run("encode", model_dir, "texts.gz", "-o", "out.npy")
        assert np.load("out.npy").shape == (2, 8)

    def test_mistakes(self, model_dir, files):
        Path("empty").touch()
        Path("latin").write_bytes(b"bath\nt\xfcr\n")
        Path("file").write_text("a\n")
        out = ("-o", "out.npy")
        assert "there is no model here" in refused("encode", "judged", "file", *out)
        assert "there is no model here" in refused("encode", "file", "file", *out)
        assert refused("encode", model_dir, "nowhere", *out).startswith("nowhere: cannot be read")
        assert refused("encode", model_dir, "empty", *out).startswith("empty: the input is empty")
        assert refused("encode", model_dir, "latin", *out).startswith("latin:2:2: not valid UTF-8")
        assert not Path("out.npy").exists()
        assert "empty/out.npy: cannot be written" in refused(
            "encode", model_dir, "file", "-o", "empty/out.npy"
        )
        for name in ("v.txt", "v", "judged"):
            assert refused("encode", model_dir, "file", "-o", name) == (
                f"{name}: the embeddings are an array in NumPy's format; let the name end in .npy\n"
            )
        run("encode", model_dir, "file", code=2)


class TestScore:
    def test_lines(self, model, model_dir):
        titles = ["shanghai hotels", "bath tub"]
        result = run("score", model_dir, "hotels", *titles)
        scores = model.score("hotels", titles)
        assert result.stdout == "".join(
            f"{s:.6f}\t{t}\n" for s, t in zip(scores, titles, strict=True)
        )

    def test_json(self, model, model_dir):
        found = json.loads(run("score", model_dir, "hotels", "bath", "--json").stdout)
        score = pytest.approx(model.score("hotels", "bath"))
        assert found == {"query": "hotels", "titles": [{"title": "bath", "score": score}]}

    def test_without_words(self, model_dir):
        result = run("score", model_dir, " ", "bath tub")
        assert (result.stdout, result.stderr) == ("0.000000\tbath tub\n", "")

    def test_mistakes(self, model_dir, files):
        assert "there is no model here" in refused("score", "nowhere", "a", "b")
        run("score", model_dir, "a", code=2)
        assert "not valid UTF-8" in run("score", model_dir, "\udcff", "b", code=2).stderr


class TestRank:
    def test_run_has_the_scores_and_the_order_of_trec(self, model, model_dir, files):
        run("rank", model_dir, "queries.tsv", "docs.tsv", "-o", "run.txt", "--top-k", 0)
        ranked = read_run("run.txt")
        for query_id, query in (line.split("\t") for line in QUERIES.splitlines()):
            for title_id, title in (line.split("\t") for line in TITLES.splitlines()):
                score = pytest.approx(model.score(query, title), abs=1e-6)
                assert ranked[query_id][title_id] == score
            pairs = [(score, title_id) for title_id, score in ranked[query_id].items()]
            assert pairs == sorted(pairs, reverse=True)

    def test_one_query_to_standard_output(self, model, model_dir, files):
        result = run("rank", model_dir, "--query", "bath", "-", "--top-k", 2, input=TITLES)
        first, second = (line.split() for line in result.stdout.splitlines())
        assert first[:2] == second[:2] == ["query", "Q0"]
        assert (first[3], second[3]) == ("1", "2")

    def test_table(self, model_dir, files):
        table = ("rank", model_dir, "queries.tsv", "docs.tsv", "--table", "--top-k", 1)
        lines = run(*table).stdout.splitlines()
        assert [lines[0], lines[3]] == ["hotels in shanghai", "fix a bath tub"]
        rank, score, *title = lines[1].split()
        assert rank == "1"
        assert -1 <= float(score) <= 1
        assert " ".join(title) in TITLES

    def test_json_and_tsv_have_the_titles(self, model, model_dir, files):
        Path("tab.tsv").write_text("d1\tshanghai\thotels\nd2\tbath tub\n")
        rank = ("rank", model_dir, "queries.tsv", "tab.tsv")
        trec = [line.split() for line in run(*rank).stdout.splitlines()]
        found = [json.loads(line) for line in run(*rank, "--json").stdout.splitlines()]
        title_of = {"d1": "shanghai\thotels", "d2": "bath tub"}
        assert [(one["id"], one["query"]) for one in found] == [
            tuple(line.split("\t")) for line in QUERIES.splitlines()
        ]
        hits = [(one["id"], hit) for one in found for hit in one["titles"]]
        assert [(query_id, hit["id"], repr(hit["score"])) for query_id, hit in hits] == [
            (line[0], line[2], line[4]) for line in trec
        ]
        assert all(hit["title"] == title_of[hit["id"]] for _, hit in hits)
        names, *rows = (line.split("\t") for line in run(*rank, "--tsv").stdout.splitlines())
        assert names == ["query_id", "rank", "id", "title", "score"]
        assert [[row[0], row[2], row[1], row[4]] for row in rows] == [
            [line[0], *line[2:5]] for line in trec
        ]
        assert {row[2]: row[3] for row in rows} == {"d1": "shanghai hotels", "d2": "bath tub"}
        assert "not both" in run(*rank, "--json", "--tsv", code=2).stderr

    def test_unknown_words_of_queries_are_named(self, model_dir, files):
        Path("q.tsv").write_text("q1\tbath 12\nq2\t12 13\n")
        noted = "note: the model knows nothing of '12', '13'; these words are read as zero\n"
        rank = ("rank", model_dir, "q.tsv", "docs.tsv")
        assert noted in run(*rank).stderr
        assert noted in run("score", model_dir, "bath 12", "bath 13").stderr
        assert run("score", model_dir, "bath", "tub").stderr == ""
        many = " ".join(str(number) for number in range(10, 20))
        stderr = run("score", model_dir, many, "bath").stderr
        assert "'17' and 2 more words; these words are read as zero" in stderr
        made_up_pair_model([QUERIES, TITLES]).save_pretrained("pairs")
        assert noted in run("rank", "pairs", "q.tsv", "docs.tsv").stderr

    def test_candidates(self, model, model_dir, files):
        Path("found.run").write_text(
            "q1 Q0 d1 1 3 x\nq1 Q0 d3 2 2 x\nq1 Q0 d2 3 2 x\nq1 Q0 d9 4 9 x\nq7 Q0 d1 1 1 x\n"
        )
        rank = ("rank", model_dir, "queries.tsv", "docs.tsv", "--candidates")
        result = run(*rank, "found.run", "--depth", 2)
        assert result.stderr == (
            "found.run has 1 queries that are not in QUERIES: they are ignored\n"
            "found.run has 1 titles that are not in TITLES: they are ignored\n"
            "1 query without candidates left out\n"
        )
        Path("again.run").write_text(result.stdout)
        titles = {"d1": "shanghai hotels", "d3": "bath tub repair"}
        scores = {id: model.score("hotels in shanghai", text) for id, text in titles.items()}
        ranked = read_run("again.run")
        assert ranked == {"q1": pytest.approx(scores, abs=1e-6)}
        best = max(scores, key=scores.get)
        from_input = Path("found.run").read_text()
        one = run(*rank, "-", "--depth", 2, "-k", 1, input=from_input).stdout
        assert one.split()[:4] == ["q1", "Q0", best, "1"]
        table = run(*rank, "found.run", "--table").stdout.splitlines()
        assert table[0] == "hotels in shanghai" and "bath tub repair" in " ".join(table)
        assert "fix a bath tub" not in table
        alone = ("rank", model_dir, "--query", "hotels", "docs.tsv", "--candidates")
        assert "none of the queries of the run has a text" in refused(*alone, "found.run")
        assert "is empty; give a run" in refused(*rank, "-", input="")
        run(*rank[:-1], "--depth", 5, code=2)
        run("rank", model_dir, "-", "docs.tsv", "--candidates", "-", code=2)
        run(*rank, "found.run", "--depth", 0, code=2)

    def test_own_candidates_keep_their_order(self, model_dir, files):
        rank = ("rank", model_dir, "queries.tsv", "docs.tsv", "-k", 3)
        Path("own.run").write_text(run(*rank).stdout)
        again = run(*rank, "--candidates", "own.run").stdout
        columns = [[line.split()[:4] for line in text.splitlines()] for text in
                   (Path("own.run").read_text(), again)]  # fmt: skip
        assert columns[0] == columns[1]

    def test_a_pair_model_scores_all_pairs_and_says_how_long(self, monkeypatch, files):
        from sentemb.cli import rank

        scorer = made_up_pair_model([QUERIES, TITLES])
        scorer.save_pretrained("pairs")
        command = ("rank", "pairs", "queries.tsv", "docs.tsv")
        monkeypatch.setattr(rank, "_SECONDS_BEFORE_NOTE", 0)
        result = run(*command)
        assert result.stderr == ""
        Path("all.run").write_text(result.stdout)
        for query_id, query in (line.split("\t") for line in QUERIES.splitlines()):
            titles = dict(line.split("\t") for line in TITLES.splitlines())
            scores = scorer.score(query, list(titles.values())).tolist()
            ranked = sorted(zip(scores, titles, strict=True), reverse=True)
            found = read_run("all.run")[query_id]
            assert list(found.items()) == [(id, score) for score, id in ranked]
        run(*command, "--candidates", "all.run", "-o", "again.run")
        assert Path("again.run").read_text() == result.stdout
        monkeypatch.setattr(rank, "_MANY_PAIRS", 7)
        notes = run(*command).stderr
        assert notes == (
            "8 pairs to score, about 0 s left; --candidates scores only the titles of a run\n"
        )

    def test_mistakes(self, model_dir, files):
        Path("empty").touch()
        Path("no tab").write_text("q1\ta\nq2 b\n")
        Path("latin").write_bytes(b"q1\tb\xe4h\n")
        rank = ("rank", model_dir)
        assert "there is no model here" in refused("rank", "judged", "queries.tsv", "docs.tsv")
        assert refused(*rank, "nowhere", "docs.tsv").startswith("nowhere: cannot be read")
        assert refused(*rank, "empty", "docs.tsv").startswith("empty: the input is empty")
        assert "the input is empty" in refused(*rank, "queries.tsv", "-", input="")
        assert refused(*rank, "no tab", "docs.tsv").startswith("no tab:2: no tab")
        assert refused(*rank, "queries.tsv", "latin").startswith("latin:1:5: not valid UTF-8")
        unwritable = refused(*rank, "queries.tsv", "docs.tsv", "-o", "empty/run.txt")
        assert unwritable.startswith("empty/run.txt: cannot be written")
        run(*rank, "docs.tsv", code=2)
        run(*rank, "queries.tsv", "docs.tsv", "--query", "a", code=2)
        run(*rank, "-", "-", code=2)


class TestEvaluate:
    def test_model(self, model_dir, files):
        found = json.loads(run("evaluate", model_dir, "judged", "--json", "--per-query").stdout)
        assert list(found["per_query"]) == ["q1", "q2"]
        for name in ("ndcg@1", "ndcg@3", "ndcg@10"):
            values = [values[name] for values in found["per_query"].values()]
            assert found[name] == pytest.approx(np.mean(values))
            assert 0 <= found[name] <= 1

    def test_run(self, files):
        qrels = Path("judged/qrels.txt")
        qrels.write_text(QRELS + "q3 0 d1 0\n")
        Path("judged/queries.tsv").write_text(QUERIES + "q3\tnothing\n")
        Path("run.txt").write_text("q1 Q0 d1 1 0.5 t\nq1 Q0 d2 2 0.5 t\nq9 Q0 d1 1 1 t\n")
        result = run(
            "evaluate",
            "run.txt",
            "judged",
            "--gain",
            "linear",
            "--metrics",
            "ndcg@1,ndcg@2",
            "--per-query",
        )
        assert result.stdout.splitlines() == [
            "       NDCG@1   NDCG@2",
            "q1     0.0000   0.6309",  # d2 comes first: equal scores, higher id
            "q2     0.0000   0.0000",
            "q3          -        -",
            "mean   0.0000   0.3155",
            "",
            "gain       linear, grade; discount log2(rank + 1)",
            "ties       score descending, then title id descending, as trec_eval",
            "unjudged   titles count as grade 0 and keep their rank",
            "evaluated  2 queries, which the mean is over",
            "left out   1 query without a relevant title",
            "missing    1 evaluated query not in the run, counted as 0",
            "unknown    1 query of the run without judgments, ignored",
        ]
        found = json.loads(run("evaluate", "run.txt", "judged", "--json", "--per-query").stdout)
        assert found["per_query"]["q3"] == {"ndcg@1": None, "ndcg@3": None, "ndcg@10": None}
        counts = {"evaluated": 2, "without_relevant": 1, "missing": 1, "unknown": 1, "one_grade": 0}
        assert found["queries"] == counts
        qrels.write_text("q1 0 d1 1.0\nq1 0 d2 0.0\nq2 0 d1 1\n\n")
        said = run("evaluate", "run.txt", "judged").stdout
        assert "one grade  1 of them have titles of one grade only: every order" in said

    def test_own_ranking_from_standard_input(self, model_dir, files):
        ranking = run("rank", model_dir, "queries.tsv", "docs.tsv").stdout
        found = run("evaluate", "-", "judged", input=ranking).stdout
        assert "missing    0 evaluated" in found

    def test_mistakes(self, model_dir, files):
        assert refused("evaluate", "nowhere", "judged").startswith("nowhere: no such model or run")
        assert "there is no model here" in refused("evaluate", "judged", "judged")
        assert refused("evaluate", "queries.tsv", "judged").startswith("queries.tsv:1: 4 columns")
        assert "no such file or folder" in refused("evaluate", model_dir, "nowhere")
        assert "cut-offs" in refused("evaluate", model_dir, "judged", "--metrics", "ndcg@0")
        run("evaluate", model_dir, "judged", "--metrics", "mrr@10", code=2)
        of_run = run("evaluate", "queries.tsv", "judged", "--cosine", code=2)
        assert "--cosine does not go with a run" in of_run.stderr
        Path("judged/qrels.txt").write_text("q1 0 d1 good\n")
        assert "qrels.txt:1: the grade 'good'" in refused("evaluate", model_dir, "judged")
        Path("judged/qrels.txt").write_text("q1 0 d1 0\nq1 0 d2 -1\n")
        assert "relevant" in refused("evaluate", model_dir, "judged")


class TestPlotGates:
    def test_figure(self, model_dir, files):
        result = run("plot-gates", model_dir, "bath tub", "--title", "bath tub repair")
        assert result.stdout == "gates.png: i, o, c, y of 8 cells\n"
        assert Path("gates.png").read_bytes().startswith(b"\x89PNG")

    def test_mistakes(self, model_dir, files):
        plot = ("plot-gates", model_dir, "bath tub", "-o")
        assert "use .png, .svg or .pdf" in refused(*plot, "gates.jpg")
        assert "cannot be written" in refused(*plot, "queries.tsv/gates.png")
        assert "without words" in refused("plot-gates", model_dir, " ")
        assert "there is no model here" in refused("plot-gates", "judged", "bath")


class _Deleted:
    def __init__(self, number):
        self.number = number

    def __del__(self):
        signal.raise_signal(self.number)


def _loaded(number):
    def _raw_object_cache_notify():
        signal.raise_signal(number)

    ctypes.CFUNCTYPE(None)(_raw_object_cache_notify)()


@pytest.mark.parametrize("call", [_Deleted, _loaded])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_in_a_callback_is_not_lost(call, number, code, monkeypatch):
    """Python prints and drops what is raised in there."""
    dropped = []
    monkeypatch.setattr(sys, "unraisablehook", dropped.append)
    before = signal.getsignal(number)

    def run():
        call(number)
        time.sleep(5)

    assert exit_code_of(run) == code
    assert not dropped
    assert signal.getsignal(number) is before


def test_letters_that_standard_output_lacks_are_escaped(tmp_path):
    (tmp_path / "店.csv").write_text("query,title\nlamp,灯\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "sentemb", "import", "店.csv", "-o", "log.tsv"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONIOENCODING": "cp1252"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("\\u5e97.csv: 1 row, 1 line written\n")


def test_a_signal_that_ends_a_library_in_another_way_is_no_crash():
    def run():
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            raise AttributeError("an object that was never finished") from None

    assert exit_code_of(run) == 130
    with pytest.raises(AttributeError):
        exit_code_of(lambda: None.missing)


@pytest.mark.parametrize("is_ended", [True, False])
def test_what_a_signal_left_half_built_is_silent(is_ended, monkeypatch):
    class HalfBuilt:
        def __del__(self):
            raise AttributeError("_as_parameter_")

    def run():
        half_built = HalfBuilt()
        if is_ended:
            signal.raise_signal(signal.SIGTERM)
        del half_built

    problems = []
    monkeypatch.setattr(sys, "unraisablehook", problems.append)
    assert program.exit_code_of(run) == (143 if is_ended else 0)
    assert len(problems) == (0 if is_ended else 1)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_shut_down_is_silent(number):
    code = f"""
import atexit, os
from sentemb.cli import main
atexit.register(os.kill, os.getpid(), {int(number)})
main(["--version"])
"""
    done = run_python(code)
    assert (done.returncode, done.stderr) == (0, "")


def test_ctrl_c_while_an_error_is_printed(monkeypatch):
    def interrupted(error):
        raise KeyboardInterrupt

    monkeypatch.setattr(click.UsageError, "show", interrupted)

    def run():
        raise click.UsageError("no such option")

    assert exit_code_of(run) == 130
