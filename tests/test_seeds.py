"""``train`` with several seeds: the average of its members' bits, whatever stops it."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import full_disk, made_up_judged_set, made_up_log, tree

from sentemb import SentembError, SentenceEncoder, train
from sentemb.cli import main
from sentemb.data.click_log import write_click_log
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.models.files.model_files import load_model, write_model
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.hyperparameters import MOST
from sentemb.training.checkpoints import member_folder
from sentemb.training.progress import Progress
from sentemb.training.stopping import Interrupted
from sentemb.training.towers import seeds

LOG = made_up_log()
DEV = made_up_judged_set(LOG)
TINY = {"cells": 3, "epochs": 2, "batch_size": 16, "threads": 1, "dev": DEV}
UPDATES = 2 * 4  # of a member


def model_file(folder):
    return (folder / "model.safetensors").read_bytes()


def assert_same_weights(one, other):
    assert list(one.vocabulary.trigrams) == list(other.vocabulary.trigrams)
    for side, arrays in one.weights.items():
        for name, array in arrays.items():
            assert np.array_equal(array, other.weights[side][name]), (side, name)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a training of two seeds that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole") / "m"
    train(LOG, output=folder, **TINY, seeds=2)
    return folder


def test_it_is_the_average_of_one_training_for_each_seed(tmp_path):
    settings = {**TINY, "dev": "20%", "seed": 4}
    members = [train(LOG, **{**settings, "seed": seed}) for seed in (4, 5, 6)]
    model = train(LOG, output=tmp_path / "m", **settings, seeds=3)
    assert_same_weights(model, SentenceEncoder.average(members))
    assert_same_weights(SentenceEncoder.from_pretrained(tmp_path / "m"), model)
    assert not (tmp_path / "m" / "checkpoints").exists()
    assert len({one.training["dev"] for one in (*members, model)}) == 1, "other held-out queries"
    assert_same_weights(train(LOG, **settings, seeds=3), model)


def test_dev_is_measured_for_each_seed_and_for_the_average():
    model, reports = train(LOG, **TINY, seeds=2), []
    record = model.training
    assert record["seeds"] == [0, 1] and record["finished"] and not model.history
    for k in range(2):
        own = train(LOG, **TINY, seed=k, on_progress=reports.append)
        best = max(own.history, key=lambda line: line["dev"]["ndcg@1"])
        assert record["kept_epochs"][k] == best["epoch"]
        assert {name: figures[k] for name, figures in record["dev_of_seeds"].items()} == best["dev"]
    expected = evaluate_model(model, DEV).mean
    assert list(record["dev_of_average"].values()) == pytest.approx(expected, abs=1e-6)
    assert "dev_of_average" not in train(LOG, **{**TINY, "dev": None}, seeds=2).training


def test_progress_and_notes_name_the_seed():
    reports, notes = [], []
    settings = {**TINY, "epochs": 3, "dev": None}
    train(LOG, **settings, seeds=2, on_progress=reports.append, on_note=notes.append)
    assert [one.seed for one in reports if one.epoch_ended] == [0] * 3 + [1] * 3
    assert reports[-1].seconds_left == 0
    assert [note for note in notes if "looking up" in note] == [
        f"seed {seed}: epoch 3: looking up hard negatives" for seed in (0, 1)
    ]
    train(LOG, **settings, on_progress=reports.append)
    assert reports[-1].seed is None


def test_the_time_left_is_that_of_all_members():
    reports = []
    report = seeds._for_all(reports.append, seed=3, n_later=2)
    for left, in_all in ((10.0, 20.0), (6.0, 24.0), (0.0, 24.0)):
        report(Progress(1, 2, 3, 4, 1.0, 1.0, seconds_left=left, seconds_in_all=in_all))
    assert [one.seconds_left for one in reports] == [10 + 2 * 20, 6 + 2 * 24, 2 * 24]
    assert {one.seed for one in reports} == {3}


# -- stopping and resuming -------------------------------------------------------------------------


@pytest.mark.parametrize("n_batches", [1, UPDATES + 1, UPDATES + 3, 2 * UPDATES])
def test_ctrl_c_and_resume_give_the_same_bits(tmp_path, whole, n_batches):
    seen = []

    def stop(progress):
        seen.append(progress)
        if sum(not one.epoch_ended for one in seen) == n_batches and not progress.epoch_ended:
            os.kill(os.getpid(), signal.SIGINT)

    stopped_in = (n_batches - 1) // UPDATES
    with pytest.raises(Interrupted, match=f"^seed {stopped_in}: stopped .* --resume"):
        train(LOG, output=tmp_path / "m", **TINY, seeds=2, on_progress=stop)
    with pytest.raises(SentembError, match="a training that was stopped is there; use --resume"):
        train(LOG, output=tmp_path / "m", **TINY, seeds=2)
    seen.clear()
    train(LOG, output=tmp_path / "m", **TINY, seeds=2, resume=True, on_progress=seen.append)
    assert {one.seed for one in seen} == set(range(stopped_in, 2)), "a member is trained again"
    assert model_file(tmp_path / "m") == model_file(whole)
    assert tree(tmp_path / "m").keys() == tree(whole).keys()


class Killed(BaseException):
    """In place of a kill: nothing catches it."""


@pytest.mark.parametrize("of", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_a_kill_before_any_change_of_the_disk_loses_nothing(tmp_path, whole, monkeypatch, of):
    count = []

    def patch(kill_at):
        count.clear()

        def watched(change):
            def call(*arguments, **keywords):
                count.append(change)
                if len(count) == kill_at:
                    raise Killed
                return change(*arguments, **keywords)

            return call

        monkeypatch.setattr(os, "replace", watched(os.replace))
        for name in ("unlink", "rmdir"):
            monkeypatch.setattr(Path, name, watched(getattr(Path, name)))

    settings = {**TINY, "seeds": 2, "resume": True}
    patch(0)
    train(LOG, output=tmp_path / "counted", **settings)
    monkeypatch.undo()
    n_changes = len(count)
    assert n_changes > 10
    for kill_at in range(n_changes, 0, -of):
        output = tmp_path / str(kill_at)
        patch(kill_at)
        with pytest.raises(Killed):
            train(LOG, output=output, **settings)
        monkeypatch.undo()
        train(LOG, output=output, **settings)
        assert model_file(output) == model_file(whole), kill_at
        assert not (output / "checkpoints").exists(), kill_at


TRAINING = """
import sys
sys.path.insert(0, sys.argv[1])
from helpers import made_up_judged_set, made_up_log
from sentemb.training.trainer import train
log = made_up_log()
train(log, dev=made_up_judged_set(log), output=sys.argv[2], resume=True, cells=3, epochs=30,
      batch_size=16, threads=1, checkpoint_seconds=0, seeds=3,
      on_progress=lambda at: print(at.seed, flush=True))
"""


@pytest.mark.slow
def test_kills_at_random_moments(tmp_path):
    settings = {**TINY, "epochs": 30, "seeds": 3}
    train(LOG, output=tmp_path / "whole", **settings)
    moments, command = random.Random(0), [sys.executable, "-c", TRAINING, Path(__file__).parent]
    seen = set()
    for _ in range(8):
        with subprocess.Popen([*command, tmp_path / "m"], stdout=subprocess.PIPE) as run:
            # Each report follows a mini-batch; 450 are to come, some of them again after a kill.
            for _ in range(moments.randrange(5, 100)):
                reported = run.stdout.readline()
            time.sleep(moments.uniform(0, 0.01))
            run.kill()
        seen.add(reported)
    assert {b"0\n", b"1\n"} <= seen, "the kills are to fall into several members"
    train(LOG, output=tmp_path / "m", **settings, resume=True)
    assert model_file(tmp_path / "m") == model_file(tmp_path / "whole")


def test_a_disk_that_is_full_at_the_end_keeps_the_members(tmp_path, monkeypatch):
    settings = {**TINY, "cells": 20, "dev": None, "seeds": 2}
    output = tmp_path / "m"

    def write(saved, output):
        with full_disk(6000):
            write_model(saved, output)

    monkeypatch.setattr(seeds, "write_model", write)
    with pytest.raises(SentembError, match=r"m/model\.safetensors: cannot be written.*--resume"):
        train(LOG, output=output, **settings)
    monkeypatch.undo()
    assert not list(output.rglob(".*tmp"))
    reports = []
    train(LOG, output=output, resume=True, **settings, on_progress=reports.append)
    assert not reports
    train(LOG, output=tmp_path / "whole", **settings)
    assert model_file(output) == model_file(tmp_path / "whole")


def test_a_disk_without_room_for_all_is_refused_at_the_beginning(tmp_path, monkeypatch):
    size = train(LOG, **TINY).towers.nbytes
    free = SimpleNamespace(free=3 * size)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: free)
    with pytest.raises(SentembError, match="MB are free there"):
        train(LOG, output=tmp_path / "m", **TINY, seeds=2)
    assert not (tmp_path / "m").exists()
    free.free = 4 * size
    train(LOG, output=tmp_path / "m", **TINY, seeds=2)


# -- what is refused -------------------------------------------------------------------------------


def stopped(output, n_batches, **settings):
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == n_batches:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted):
        train(LOG, output=output, **TINY, **settings, on_progress=stop)


def test_another_number_of_seeds_does_not_resume(tmp_path, whole):
    stopped(tmp_path / "two", 12, seeds=2)
    before = tree(tmp_path / "two")
    for others in ({}, {"seeds": 2, "seed": 1}, {"seeds": 2, "seed": 4}):
        with pytest.raises(SentembError, match=r"was stopped there.*--force"):
            train(LOG, output=tmp_path / "two", **TINY, **others, resume=True)
        assert tree(tmp_path / "two") == before
    stopped(tmp_path / "one", 5)
    before = tree(tmp_path / "one")
    with pytest.raises(SentembError, match="a training of one seed only was stopped there"):
        train(LOG, output=tmp_path / "one", **TINY, seeds=2, resume=True)
    assert tree(tmp_path / "one") == before
    for number in (1, 3):
        with pytest.raises(SentembError, match=f"trained with seeds = 2, not {number}"):
            train(LOG, output=whole, **TINY, seeds=number, resume=True)
    one = tmp_path / "finished"
    train(LOG, output=one, **TINY)
    with pytest.raises(SentembError, match="trained with seeds = 1, not 2"):
        train(LOG, output=one, **TINY, seeds=2, resume=True)


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1), (2, 2)])
def test_force_begins_again(tmp_path, whole, before, after):
    stopped(tmp_path / "m", 12 if before == 2 else 5, seeds=before, seed=7)
    train(LOG, output=tmp_path / "m", **TINY, seeds=after, force=True)
    assert not (tmp_path / "m" / "checkpoints").exists()
    if after == 2:
        assert model_file(tmp_path / "m") == model_file(whole)


def test_a_finished_training_is_returned_and_not_replaced(tmp_path, whole):
    notes, reports, before = [], [], tree(whole)
    model = train(
        LOG, output=whole, **TINY, seeds=2, resume=True,
        on_note=notes.append, on_progress=reports.append,
    )  # fmt: skip
    assert notes == [f"the training of {whole} is already finished"] and not reports
    assert model.training["seeds"] == [0, 1]
    with pytest.raises(SentembError, match="a model is there already"):
        train(LOG, output=whole, **TINY, seeds=2)
    assert tree(whole) == before


def test_files_of_the_user_stay(tmp_path):
    stopped(tmp_path / "m", 12, seeds=2)
    own = member_folder(tmp_path / "m", 0) / "notes.txt"
    own.write_text("mine")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "model.safetensors").write_text("mine too")
    (tmp_path / "m" / "checkpoints" / "seed-5").symlink_to(elsewhere)
    train(LOG, output=tmp_path / "m", **TINY, seeds=2, resume=True)
    assert own.read_text() == "mine"
    assert (elsewhere / "model.safetensors").read_text() == "mine too"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"seeds": 0}, "seeds is 0; give an integer from 1 to 8"),
        ({"seeds": 9}, "seeds is 9"),
        ({"seeds": 1.5}, "seeds is 1.5"),
        ({"seeds": 2, "model": "arc1"}, "seeds is not for pair models"),
        ({"seeds": 2, "seed": MOST}, "seed is 2147483648; give"),
    ],
)
def test_what_is_refused(settings, message):
    reports = []
    with pytest.raises(SentembError, match=message):
        train(LOG, **{**TINY, "dev": None}, **settings, on_progress=reports.append)
    assert not reports


def test_one_training_at_a_time_writes_into_the_folder(tmp_path):
    def intrude(progress):
        with pytest.raises(SentembError, match="another process is writing there"):
            train(LOG, output=tmp_path / "m", **TINY, resume=True)

    train(LOG, output=tmp_path / "m", **{**TINY, "epochs": 1}, seeds=2, on_progress=intrude)


def test_a_training_that_diverges_names_its_seed(tmp_path):
    with pytest.raises(SentembError, match=r"^seed 0: .*lower the learning rate"):
        train(LOG, output=tmp_path / "m", **TINY, learning_rate=1e20, seeds=2)


# -- continuing from a model, and the command ------------------------------------------------------


def test_every_member_starts_from_the_same_model(tmp_path):
    train(LOG, output=tmp_path / "old", **TINY)
    new, notes = made_up_log(seed=5), []
    settings = {**TINY, "start_from": tmp_path / "old"}
    members = [train(new, **settings, seed=seed) for seed in (0, 1)]
    model = train(new, **settings, seeds=2, on_note=notes.append)
    assert_same_weights(model, SentenceEncoder.average(members))
    before, after = (
        float(text.split("ndcg@1 ")[1].split(",")[0]) for text in notes[-2].split("; after: ")
    )
    old = SentenceEncoder.from_pretrained(tmp_path / "old")
    assert before == pytest.approx(evaluate_model(old, DEV).mean[0], abs=6e-4)
    assert after == pytest.approx(evaluate_model(model, DEV).mean[0], abs=6e-4)
    assert "the first title stayed the same" in notes[-1]


def test_word_vectors_are_features_of_every_member(tmp_path):
    rng = np.random.default_rng(0)
    words = sorted({word for text in LOG.queries + LOG.titles for word in text.split()})
    vectors = WordVectors(words, rng.standard_normal((len(words), 5)).astype(np.float32))
    settings = {"vectors": vectors, "vector_dim": 3}
    stopped(tmp_path / "m", 12, seeds=2, **settings)
    model = train(LOG, output=tmp_path / "m", **TINY, seeds=2, resume=True, **settings)
    members = [train(LOG, **TINY, seed=seed, **settings) for seed in (0, 1)]
    assert_same_weights(model, SentenceEncoder.average(members))
    read = SentenceEncoder.from_pretrained(tmp_path / "m")
    assert np.array_equal(read.encode_query(words), model.encode_query(words))


def test_the_command(tmp_path):
    write_click_log(LOG, tmp_path / "pairs.tsv")
    arguments = [
        "train", tmp_path / "pairs.tsv", "-o", tmp_path / "m", "--epochs", 1, "--cells", 3,
        "--seeds", 2, "--dev", "20%", "--preset", "large", "--bag-dim", 2, "--threads", 1,
    ]  # fmt: skip
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    assert "seed 1, epoch 1/1, loss" in result.stderr
    lines = result.stdout.splitlines()
    assert "average of 2 models (bilstm), 16 dimensions" in lines[0]
    record = load_model(tmp_path / "m").training
    figures = [*record["dev_of_seeds"]["mrr@10"], record["dev_of_average"]["mrr@10"]]
    for line, name, figure in zip(
        lines[1:], ("seed 0", "seed 1", "average"), figures, strict=False
    ):
        assert line.startswith(f"{name}: ") and f"mrr@10 {figure:.3f}" in line
