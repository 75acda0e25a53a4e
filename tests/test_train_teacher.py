"""``train --teacher`` for two towers: they learn the cosines of an embedding, asked once."""

import os
import signal
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import WordSums, made_up_log
from tiny_transformer import write_onnx

import sentemb
from sentemb import ClickLog, SentembError, train
from sentemb.cli import main
from sentemb.data.click_log import write_click_log
from sentemb.models.vectors import teaching
from sentemb.retrieval.similarity import unit_rows
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import mini_batch
from sentemb.training.batches.teacher_vectors import TeacherVectors
from sentemb.training.stopping import Interrupted
from sentemb.training.towers import log_vectors
from sentemb.training.towers.settings import Settings

LOG = made_up_log()
TINY = {"model": "bag", "cells": 6, "batch_size": 16, "threads": 1}


class Counting(WordSums):
    """It counts the texts that it reads, and stops the process after some."""

    def __init__(self, seed=0, dim=10, most=np.inf):
        super().__init__(dim, seed)
        self.read, self.most = 0, most

    def encode_query(self, texts):
        return self._counted(texts, super().encode_query)

    def encode_document(self, texts):
        return self._counted(texts, super().encode_document)

    def _counted(self, texts, encode):
        self.read += len(texts)
        if self.read > self.most:
            raise KeyboardInterrupt
        return encode(texts)


class Other(Counting):
    """The same embedding on another machine: its last bits differ, more with each text."""

    def _counted(self, texts, encode):
        vectors = np.array(super()._counted(texts, encode))
        return vectors * (1 + 1e-6 * np.random.default_rng().standard_normal(vectors.shape))


def weights(model):
    return [array for arrays in model.weights.values() for array in arrays.values()]


def same(one, other):
    return all(map(np.array_equal, weights(one), weights(other)))


def stop_after(n_batches):
    """An ``on_progress`` that sends SIGINT."""
    left = [n_batches]

    def stop(progress):
        left[0] -= 1
        if not left[0]:
            os.kill(os.getpid(), signal.SIGINT)

    return stop


# -- the targets --------------------------------------------------------------------------------


def test_targets_of_a_mini_batch():
    rng = np.random.default_rng(0)
    embedded = TeacherVectors(
        unit_rows(rng.standard_normal((len(LOG.queries), 4))),
        unit_rows(rng.standard_normal((len(LOG.titles), 4))),
        0.7,
    )
    embedded.queries[LOG.query_index[5]] = 0  # it has nothing to say of this query
    corpus = Corpus(LOG, Settings())
    corpus.teacher = embedded
    pairs = np.arange(3, 15)
    targets = mini_batch(corpus, pairs, Settings(hard_negatives=0), 0, 0).candidates.targets
    titles = list(dict.fromkeys(sorted(LOG.title_index[pairs].tolist())))
    assert targets.titles.shape == (4, len(titles)) and targets.titles.flags.c_contiguous
    cosines = targets.queries @ targets.titles
    for row, pair in enumerate(pairs):
        expected = embedded.titles[titles] @ embedded.queries[LOG.query_index[pair]]
        assert sorted(cosines[row]) == pytest.approx(sorted(expected), abs=1e-12)
    silent = LOG.query_index[pairs] == LOG.query_index[5]
    assert np.array_equal(targets.shares, np.where(silent, 0, 0.7))


def test_a_part_of_a_log_has_the_vectors_of_its_texts():
    rng = np.random.default_rng(1)
    corpus = Corpus(LOG, Settings())
    corpus.teacher = TeacherVectors(
        rng.standard_normal((len(LOG.queries), 3)), rng.standard_normal((len(LOG.titles), 3)), 1.0
    )
    chosen = np.arange(0, len(LOG.queries), 3, dtype=np.int32)
    part = corpus.part(chosen)
    assert np.array_equal(part.teacher.queries, corpus.teacher.queries[chosen])
    of_part = np.unique(LOG.title_index[np.isin(LOG.query_index, chosen)])
    assert np.array_equal(part.teacher.titles, corpus.teacher.titles[of_part])


@pytest.mark.usefixtures("two_steps")
@pytest.mark.parametrize("share", [0.3, 1.0])
def test_gradients_against_differences(share):
    sizes = {"entries": 8, "n_texts": 0}
    report = sentemb.gradcheck("lstm", teacher_share=share, lengths=(1, 2, 4), **sizes)
    assert report.passed and report.settings["teacher_share"] == share
    assert sentemb.gradcheck("bag", shared_towers=True, teacher_share=share, **sizes).passed
    with pytest.raises(SentembError, match="teacher_share is for the objective softmax"):
        sentemb.gradcheck("bag", objective="hinge", teacher_share=share)
    with pytest.raises(SentembError, match="arc1 has no teacher_share"):
        sentemb.gradcheck("arc1", teacher_share=share)


# -- the training -------------------------------------------------------------------------------


def test_the_towers_learn_what_the_clicks_do_not_say():
    """Two queries with one title each, and one title more that only the embedding knows."""

    class Knowing:
        def encode_query(self, texts):
            return [[1, 0] if "red" in text else [0, 1] for text in texts]

        encode_document = encode_query

    log = ClickLog.from_pairs(
        [("red hat", "red caps"), ("blue hat", "blue caps"), ("green tea", "red shoes")]
    )
    options = {**TINY, "epochs": 60, "learning_rate": 0.02, "hard_negatives": 0}
    taught = train(log, teacher=Knowing(), **options)
    alone = train(log, **options)
    assert taught.score("red hat", "red shoes") > alone.score("red hat", "red shoes") + 0.3
    assert taught.score("red hat", "red shoes") > taught.score("red hat", "blue caps")


@pytest.mark.parametrize("settings", [{}, {"parts": 2, "meetings": 2, "batch_size": 8}])
def test_threads_change_no_bit_and_the_model_needs_no_embedding(settings, tmp_path):
    options = {**TINY, "epochs": 4, "hard_negatives": 2, "model": "lstm", "cells": 3, **settings}
    teacher = Counting()
    model = train(LOG, teacher=teacher, output=tmp_path / "m", **options)
    assert teacher.read == len(LOG.queries) + len(LOG.titles) + 1  # and a probe
    assert same(model, train(LOG, teacher=WordSums(), **{**options, "threads": 3}))
    assert not same(model, train(LOG, **options))
    read = sentemb.load(tmp_path / "m")
    assert same(read, model) and read.training["teacher_share"] == 0.8
    record = read.training["teacher"]
    assert record["name"] == "" and record["dim"] == 10 and len(record["sha256"]) == 64
    assert not (tmp_path / "m" / "checkpoints").exists()


def test_a_share_of_its_own_and_a_model_to_start_from():
    options = {**TINY, "epochs": 1, "hard_negatives": 0}
    first = train(LOG, **options)
    half = train(LOG, teacher=WordSums(), teacher_share=0.5, start_from=first, **options)
    assert half.training["teacher_share"] == 0.5
    assert not same(half, train(LOG, teacher=WordSums(), start_from=first, **options))


def test_several_seeds_ask_once(tmp_path):
    teacher, options = Counting(), {**TINY, "epochs": 2}
    average = train(LOG, teacher=teacher, seeds=2, output=tmp_path / "m", **options)
    assert teacher.read == len(LOG.queries) + len(LOG.titles) + 1
    each = [train(LOG, teacher=WordSums(), seed=seed, **options) for seed in (0, 1)]
    assert same(average, sentemb.SentenceEncoder.average(each))


def test_a_model_of_ours_teaches(tmp_path):
    options = {**TINY, "epochs": 2}
    train(LOG, output=tmp_path / "teacher", **options)
    teacher = sentemb.load(tmp_path / "teacher")
    model = train(LOG, teacher=tmp_path / "teacher", **options)
    assert same(model, train(LOG, teacher=teacher, **options))
    assert model.training["teacher"]["name"] == "teacher" and teacher.dim == 6
    with pytest.raises(SentembError, match="learns from the model there and would replace it"):
        train(LOG, teacher=tmp_path / "teacher", output=tmp_path / "teacher", force=True, **options)
    pair = {"epochs": 1, "threads": 1, "max_words": 4, "embedding": 4}
    train(LOG, model="wordembed", output=tmp_path / "pair", **pair)
    with pytest.raises(SentembError, match="a pair model has no vectors; give a two-tower model"):
        train(LOG, teacher=tmp_path / "pair", **options)


# -- stopped and resumed ------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [{}, {"seeds": 2}])
def test_a_training_that_was_stopped_reads_the_vectors_again(tmp_path, settings):
    options = {**TINY, "epochs": 3, **settings}
    teacher, again = Other(), Other()
    with pytest.raises(Interrupted):
        stop = stop_after(5)
        train(LOG, teacher=teacher, output=tmp_path / "m", on_progress=stop, **options)
    kept = {path: path.read_bytes() for path in (tmp_path / "m" / "checkpoints").glob("vectors-*")}
    assert len(kept) == 2
    model = train(LOG, teacher=again, output=tmp_path / "m", resume=True, **options)
    assert again.read == 1 and not (tmp_path / "m" / "checkpoints").exists()
    # The same vectors from the beginning, without a stop.
    (tmp_path / "n" / "checkpoints").mkdir(parents=True)
    for path, contents in kept.items():
        (tmp_path / "n" / "checkpoints" / path.name).write_bytes(contents)
    whole = train(LOG, teacher=Other(), output=tmp_path / "n", resume=True, **options)
    assert same(model, whole) and model.training["teacher"] == whole.training["teacher"]


def test_encoding_that_was_stopped_continues(tmp_path, monkeypatch):
    monkeypatch.setattr(log_vectors, "_PORTION", 8)
    monkeypatch.setattr(log_vectors, "_TOGETHER", 4)
    n_texts, options = len(LOG.queries) + len(LOG.titles), {**TINY, "epochs": 1}
    with pytest.raises(KeyboardInterrupt):
        train(LOG, teacher=Counting(most=31), output=tmp_path / "m", **options)
    folder, again, notes = tmp_path / "m" / "checkpoints", Counting(), []
    assert len(list(folder.iterdir())) == 3
    damaged = folder / "vectors-query-000001.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-4])
    options |= {"teacher": again, "output": tmp_path / "m", "on_note": notes.append}
    model = train(LOG, resume=True, **options)
    assert again.read == 1 + n_texts - 16
    assert f"{damaged} is damaged and computed again" in "\n".join(notes)
    assert same(model, train(LOG, teacher=WordSums(), **TINY, epochs=1))
    # Without --resume all of it is done again.
    with pytest.raises(KeyboardInterrupt):
        train(LOG, teacher=Counting(most=31), output=tmp_path / "n", **TINY, epochs=1)
    fresh = Counting()
    train(LOG, **{**options, "teacher": fresh, "output": tmp_path / "n"})
    assert fresh.read == 1 + n_texts


def test_a_finished_training_is_finished_and_leaves_nothing(tmp_path):
    options = {**TINY, "epochs": 1, "output": tmp_path / "m"}
    train(LOG, teacher=WordSums(), **options)
    before, notes = sorted(tmp_path.rglob("*")), []
    train(LOG, teacher=WordSums(), resume=True, on_note=notes.append, **options)
    assert notes[-1] == f"the training of {tmp_path / 'm'} is already finished"
    for other in ({}, {"teacher": WordSums(seed=1)}):
        with pytest.raises(SentembError, match=r"another teacher \(--teacher\), or without"):
            train(LOG, resume=True, **other, **options)
    assert sorted(tmp_path.rglob("*")) == before


def test_resuming_with_another_embedding_is_refused(tmp_path):
    options = {**TINY, "epochs": 3}

    def stopped(output, **more):
        with pytest.raises(Interrupted):
            train(LOG, output=output, on_progress=stop_after(2), **options, **more)

    stopped(tmp_path / "m", teacher=WordSums())
    stopped(tmp_path / "n")
    for output, given, message in (
        ("m", {"teacher": WordSums(seed=1)}, "has vectors of another teacher or log"),
        ("m", {"teacher": WordSums(dim=4)}, "has vectors of another teacher or log"),
        ("m", {}, "was trained with another teacher"),
        ("m", {"teacher": WordSums(), "teacher_share": 0.5}, "with teacher_share = 0.8"),
        ("n", {"teacher": WordSums()}, "was trained without a teacher"),
    ):
        with pytest.raises(SentembError, match=message):
            train(LOG, output=tmp_path / output, resume=True, **given, **options)
    with pytest.raises(SentembError, match="another teacher or log"):
        other = made_up_log(seed=1)
        train(other, output=tmp_path / "m", resume=True, teacher=WordSums(), **options)
    train(LOG, output=tmp_path / "m", resume=True, teacher=WordSums(), **options)
    train(LOG, output=tmp_path / "n", force=True, teacher=WordSums(), **options)


# -- what is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (lambda texts: np.full((len(texts), 3), np.nan), "a finite vector for each text"),
        (lambda texts: np.ones(len(texts)), "a finite vector for each text"),
        (lambda texts: [[1.0] * (1 + n % 2) for n in range(len(texts))], "a finite vector for"),
        (lambda texts: np.ones((len(texts), 4)), "vectors of 10 and of 4 numbers, which have no"),
    ],
)
def test_wrong_vectors_of_titles(vectors, message):
    teacher = WordSums()
    teacher.encode_document = vectors
    with pytest.raises(SentembError, match=message):
        train(LOG, teacher=teacher, **TINY)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"teacher_share": 0.5}, "teacher_share is that of a teacher; give teacher too"),
        ({"teacher": WordSums(), "objective": "hinge"}, "they need the objective softmax"),
        ({"teacher": WordSums(), "n_negatives": 3}, "negatives batch and n_negatives all"),
        ({"teacher": WordSums(), "preset": "paper"}, "negatives batch and n_negatives all"),
        ({"teacher": WordSums(), "teacher_share": 0}, "teacher_share is 0; give a number"),
        ({"teacher": WordSums(), "model": "arc1"}, "teacher must be bm25, a model folder or"),
        ({"teacher": "bm25"}, "bm25 has no vectors that two towers could learn; give an"),
        ({"teacher": np.ones(3)}, "is not an embedding; give a name"),
        ({"teacher": 3}, "3 is not an embedding; give a name, or an object with encode_query"),
        ({"teacher": "/none/there"}, "/none/there: not found; check the path"),
    ],
)
def test_what_does_not_go_together(settings, message):
    with pytest.raises(SentembError, match=message):
        train(LOG, **{**({} if {"preset", "model"} & settings.keys() else TINY), **settings})


# -- the command --------------------------------------------------------------------------------


def test_the_command_learns_from_a_file(tmp_path):
    pytest.importorskip("onnxruntime")
    write_click_log(LOG, tmp_path / "pairs.tsv")
    path = write_onnx(tmp_path / "tiny", [*LOG.queries, *LOG.titles])
    arguments = ["train", tmp_path / "pairs.tsv", "--model", "bag", "--epochs", 2]
    arguments += ["--teacher", path, "--teacher-share", 0.6, "-o", tmp_path / "m"]
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    record = sentemb.load(tmp_path / "m").training
    assert record["teacher"]["name"] == "model.onnx" and record["teacher_share"] == 0.6
    (path.parent.parent / "tokenizer.json").unlink()
    result = CliRunner().invoke(main, [*map(str, arguments), "--force"])
    assert result.exit_code == 1 and "tokenizer.json is missing next to it" in result.output


# -- word vectors -------------------------------------------------------------------------------


def test_word_vectors_are_the_components_of_each_word_alone():
    log = ClickLog.from_pairs([("red hat", "Red caps"), ("blue hat", "blue caps!")])
    more = ["tea", "RED", "green", "green"]
    teacher, steps = Counting(dim=4), []
    vectors = sentemb.teach_word_vectors(
        teacher, log, words=more, dim=2, on_progress=lambda *step: steps.append(step)
    )
    words = ["blue", "caps", "hat", "red", "tea", "green"]
    assert vectors.words == words and teacher.read == 6 and steps == [(6, 6)]
    alone = unit_rows(np.array(teacher.encode_document(words)))
    centred = alone - alone.mean(axis=0)
    expected = centred @ np.linalg.svd(centred)[2][:2].T
    signs = np.sign((expected * vectors.vectors).sum(axis=0))
    np.testing.assert_allclose(vectors.vectors, expected * signs, atol=1e-6)
    assert sentemb.teach_word_vectors(Counting(dim=4), log, words=more).dim == 4
    # The first four words without their mean.
    assert sentemb.teach_word_vectors(Counting(dim=4), log).dim == 3
    with pytest.raises(SentembError, match=r"4 words span fewer than 4 directions; .* smaller dim"):
        sentemb.teach_word_vectors(Counting(dim=4), log, dim=4)

    class Constant:
        def encode_query(self, texts):
            return np.ones((len(texts), 3))

        encode_document = encode_query

    with pytest.raises(SentembError, match="span fewer than 1 directions"):
        sentemb.teach_word_vectors(Constant(), log)


def test_no_more_words_than_a_model_keeps(monkeypatch):
    log = ClickLog.from_pairs([("a b c", "d e"), ("f", "g")])
    few = replace(teaching.VECTOR_WORDS, default=9)
    monkeypatch.setattr(teaching, "VECTOR_WORDS", few)
    made = sentemb.teach_word_vectors(WordSums(), log, words=["x", "a", "y", "z"], dim=2)
    assert made.words == ["a", "b", "c", "d", "e", "f", "g", "x", "y"]
    monkeypatch.setattr(teaching, "VECTOR_WORDS", replace(few, default=3))
    assert len(sentemb.teach_word_vectors(WordSums(), log, words=["x"], dim=2)) == 7


def test_the_command_writes_word_vectors_that_a_training_takes(tmp_path):
    pytest.importorskip("onnxruntime")
    write_click_log(LOG, tmp_path / "pairs.tsv")
    (tmp_path / "words.txt").write_text("zebra 12\n\nyak\t7\n")
    path = write_onnx(tmp_path / "tiny", [*LOG.queries, *LOG.titles, "zebra yak"])
    out = tmp_path / "vectors"
    arguments = ["vectors", "teach", path, tmp_path / "pairs.tsv", "-o", out, "--dim", 5]
    arguments = list(map(str, [*arguments, "--words", tmp_path / "words.txt"]))
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0 and "5 dimensions" in result.output, result.output
    assert sentemb.read_word_vectors(out).words[-2:] == ["zebra", "yak"]
    assert train(LOG, vectors=out, vector_dim=5, **TINY, epochs=1).vocabulary.vectors.dim == 5
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1 and "--force" in result.output
