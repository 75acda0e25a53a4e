"""Rows of word vectors in `sentemb compare`."""

import gzip
import json
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

from sentemb import SIF
from sentemb.cli import main
from sentemb.comparison.baselines import make_baseline
from sentemb.comparison.data_folder import read_data
from sentemb.comparison.rows import ROWS, rows_of
from sentemb.comparison.runner import Comparison
from sentemb.comparison.vector_rows import VECTOR_ROWS, WordSource, with_vectors
from sentemb.data.simulation.simulator import simulate
from sentemb.errors import SentembError
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.text.batch import tokenize
from sentemb.text.words import plain_words

DIM = 6
NAMES = [row.name for row in VECTOR_ROWS]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    path = tmp_path_factory.mktemp("simulated") / "log"
    simulate(path, pairs=300, dev_queries=30, test_queries=40)
    return path


@pytest.fixture(scope="module")
def vectors(simulated):
    """A vector for most words of the data, those of one word in three left out."""
    data = read_data(simulated)
    texts = [*data.log.queries, *data.log.titles, *data.titles]
    words = [word for k, word in enumerate(tokenize(texts, plain_words).words) if k % 3 != 1]
    words[5:5] = ["nowhere", "unseen", "thesetexts"]
    table = np.random.default_rng(0).standard_normal((len(words), DIM)).astype(np.float32) + 0.5
    return WordVectors(words, table, name="made-up.txt")


@pytest.fixture(scope="module")
def vector_file(vectors, tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "made-up.txt"
    rows = zip(vectors.words, vectors.vectors.tolist(), strict=True)
    path.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows))
    return path


@pytest.fixture
def zero_shot(simulated, tmp_path):
    """The judged sets without the log."""
    for name in ("dev", "test"):
        shutil.copytree(simulated / name, tmp_path / "data" / name)
    return tmp_path / "data"


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["compare", *map(str, arguments), "--threads", "1"])
    assert result.exit_code == code, result.output
    return result


def sif_of(vectors, data, point, **more):
    """A SIF model by hand, with the settings of a point."""
    names = ("weights", "a", "components", "removal", "sides")
    return SIF(vectors, **{name: point[name] for name in names}, **more).fit(*data.texts)


def test_each_row_is_sif_with_its_settings(simulated, vectors):
    data = read_data(simulated)
    expected = {
        "average": ("none", 0, "full", "one"),
        "average-tfidf": ("idf", 0, "full", "one"),
        "sif-w": ("sif", 0, "full", "one"),
        "sif-r": ("none", 1, "full", "one"),
        "sif": ("sif", 1, "full", "one"),
        "sif-each": ("sif", 1, "full", "each"),
        "sif-components": ("sif", 3, "full", "one"),
        "usif": ("usif", 5, "weighted", "one"),
        "bm25+sif": ("sif", 1, "full", "each"),
    }
    assert list(expected) == NAMES
    source = WordSource.of(vectors)
    judged = data.test
    queries = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
    pairs = judged.queries, judged.titles, queries, judged.title_index
    for row in with_vectors(rows_of(NAMES), source):
        points = row.points()
        first = points[0]
        own = tuple(first[name] for name in ("weights", "components", "removal", "sides"))
        assert own == expected[row.name] and first["a"] == 1e-3 and not row.is_random
        assert json.loads(json.dumps(points)) == points
        assert {point["vectors_sha256"] for point in points} == {source.identity["vectors_sha256"]}
        ranker, n_parameters = row.fit(points[-1], data, 0)
        scores = sif_of(vectors, data, points[-1]).score_pairs(*pairs)
        if row.name == "bm25+sif":
            bm25 = make_baseline("bm25", stem=True).score_pairs(*pairs)
            scores = bm25 + points[-1]["cosine_weight"] * scores
            assert points[-1]["cosine_weight"] == 20
        assert np.array_equal(ranker.score_pairs(*pairs), scores)
        sides = 2 if points[-1]["sides"] == "each" else 1
        assert n_parameters == points[-1]["components"] * DIM * sides
    grids = {row.name: row.points() for row in with_vectors(VECTOR_ROWS, source)}
    assert [len(grids[name]) for name in NAMES] == [1, 1, 3, 1, 3, 3, 9, 1, 12]
    assert {(point["components"], point["a"]) for point in grids["sif-components"]} == {
        (k, a) for k in (2, 3, 5) for a in (1e-2, 1e-3, 1e-4)
    }


def test_without_vectors_the_rows_are_missing_and_say_why(simulated, tmp_path):
    result = run(simulated, "-o", tmp_path / "out", "--models", "bm25,sif,bm25+sif")
    for name in ("sif", "bm25+sif"):
        assert f"missing: {name}: no word vectors; give some with --vectors" in result.stdout
    listed = run(simulated, "--models", "list").stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == list(ROWS)
    assert sum("no word vectors" in line for line in listed) == len(NAMES)
    alone = run(simulated, "-o", tmp_path / "none", "--models", "sif", code=1)
    assert "no row could be measured; sif failed" in alone.stderr


def test_zero_shot_components_come_from_the_judged_texts(zero_shot, vectors, vector_file, tmp_path):
    models = "sif-w,sif,sif-each"
    arguments = (zero_shot, "-o", tmp_path / "out", "--models", models, "--vectors", vector_file)
    said = json.loads(run(*arguments, "--json").stdout)
    data = read_data(zero_shot)
    assert data.texts == (data.dev.queries + data.test.queries, data.dev.titles + data.test.titles)
    for line in said["rows"]:
        model = sif_of(vectors, data, line["settings"])
        assert line["ndcg"] == pytest.approx(evaluate_model(model, data.test).mean, abs=1e-6)
        best = max(
            evaluate_model(sif_of(vectors, data, {**line["settings"], "a": a}), data.dev).mean[0]
            for a in (1e-4, 1e-3, 1e-2)
        )
        assert evaluate_model(model, data.dev).mean[0] == pytest.approx(best, abs=1e-6)
    listed = run(zero_shot, "--models", "list", "--vectors", vector_file).stdout
    assert "a 0.001; a 0.0001; a 0.01" in listed and "no word vectors" not in listed
    # Without dev the defaults are taken.
    shutil.rmtree(zero_shot / "dev")
    arguments = (zero_shot, "-o", tmp_path / "one", "--models", "sif", "--vectors", vector_file)
    (line,) = json.loads(run(*arguments, "--json").stdout)["rows"]
    assert line["settings"]["a"] == 1e-3
    data = read_data(zero_shot)
    assert data.texts == (data.test.queries, data.test.titles)


def test_other_vectors_or_counts_are_other_settings(simulated, vectors, vector_file, tmp_path):
    counts = tmp_path / "counts.txt"
    counts.write_text("".join(f"{word} {k + 1}\n" for k, word in enumerate(vectors.words)))
    arguments = (simulated, "-o", tmp_path / "out", "--models", "sif-w", "--vectors")
    run(*arguments, vector_file, "--p", counts)
    results = (tmp_path / "out" / "results.jsonl").read_bytes()
    # The same vectors and counts, packed and in another order.
    packed = tmp_path / "made-up.txt.gz"
    packed.write_bytes(gzip.compress(vector_file.read_bytes()))
    again = run(*arguments, vector_file, "--p", counts)
    assert again.stderr == "" and (tmp_path / "out" / "results.jsonl").read_bytes() == results
    other = tmp_path / "made-up.txt"
    lines = vector_file.read_text().splitlines()
    other.write_text("\n".join([lines[0].rsplit(" ", 1)[0] + " 0.125", *lines[1:]]) + "\n")
    for changed, key in (
        ((other, "--p", counts), "vectors_sha256"),
        ((packed, "--p", counts), "vectors = made-up.txt, now made-up.txt.gz"),
        ((vector_file,), "p = counts.txt, now rank"),
    ):
        refused = run(*arguments, *changed, code=1)
        assert "sif-w was measured with other settings" in refused.stderr
        assert key in refused.stderr and refused.stderr.count("\n") == 1
    counts.write_text(counts.read_text().replace(" 1\n", " 77\n", 1))
    refused = run(*arguments, vector_file, "--p", counts, code=1)
    assert "p_sha256" in refused.stderr
    run(*arguments, vector_file, "--force")
    assert (tmp_path / "out" / "results.jsonl").read_bytes() != results


def test_the_identity_is_that_of_words_and_numbers(vectors):
    def sha256(words, table, **more):
        return WordSource.of(WordVectors(words, table, **more)).identity["vectors_sha256"]

    words, table = vectors.words, vectors.vectors
    swapped = [words[1], words[0], *words[2:]]
    found = [
        sha256(words, table),
        sha256(swapped, table),
        sha256(words, table.astype(np.float64)),
        sha256(words, -table),
        sha256(words[:-1], table[:-1]),
    ]
    assert len(set(found)) == len(found)
    assert sha256(words, np.asfortranarray(table)) == found[0]
    assert sha256(words, table, sha256="known") == "known"


def test_rows_that_vectors_are_too_short_for_are_left_out(simulated, vectors, tmp_path):
    short = WordVectors(vectors.words, vectors.vectors[:, :5], name="short")
    rows = with_vectors(rows_of(["sif", "usif"]), WordSource.of(short))
    comparison = Comparison(read_data(simulated), tmp_path / "out", rows, note=lambda text: None)
    comparison.run()
    assert comparison.failed == ["usif"] and "give fewer than 5" in comparison.reasons["usif"]
    assert len(comparison.of("sif")) == 1


def test_wrong_vectors(simulated, vector_file, tmp_path):
    arguments = (simulated, "-o", tmp_path / "out", "--models", "sif")
    assert "--p needs --vectors" in run(*arguments, "--p", "rank", code=2).stderr
    empty = tmp_path / "empty.txt"
    empty.write_text("")
    for given, message in (
        ((tmp_path / "none.txt",), "No such file"),
        ((empty,), "empty.txt"),
        ((tmp_path,), str(tmp_path)),
        ((vector_file, "--p", "vectors"), "no counts are stored with the vectors"),
        ((vector_file, "--p", tmp_path / "none.txt"), "No such file"),
        ((vector_file, "--p", empty), "empty.txt"),
        ((vector_file, "--p", ""), "'': cannot be read"),
    ):
        refused = run(*arguments, "--vectors", *given, code=1)
        assert message in refused.stderr and refused.stderr.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_hybrid_rows_need_the_package_of_bm25(simulated, vectors, monkeypatch):
    def missing(name, **settings):
        raise SentembError("the package bm25s is not installed")

    monkeypatch.setattr("sentemb.comparison.vector_rows.make_baseline", missing)
    (row,) = with_vectors(rows_of(["bm25+sif"]), WordSource.of(vectors))
    with pytest.raises(SentembError, match="bm25s"):
        row.points()
