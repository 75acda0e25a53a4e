"""Training: same bits for threads, stops and kills; mistakes and full disks; settings."""

import gc
import json
import math
import os
import shutil
import signal
import time
import weakref
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import (
    full_disk,
    made_up_judged_set,
    made_up_log,
    run_forked,
    write_any_tensors,
)

from sentemb import SentembError, SentenceEncoder, loss_and_gradient, train
from sentemb.data.click_log import ClickLogBuilder, read_click_log, write_click_log
from sentemb.data.judged_set import write_judged_set
from sentemb.data.splitting import hold_out_clicks, split_log
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import evaluate_clicks
from sentemb.models.files.history import best_epoch
from sentemb.models.files.model_files import load_model
from sentemb.models.files.tensor_files import open_tensors
from sentemb.retrieval.nearest import TitleVectors
from sentemb.system.parallel import Workers
from sentemb.training import dev as dev_set
from sentemb.training import loop, run
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import mini_batch
from sentemb.training.checkpoints import take_up_checkpoint
from sentemb.training.dev import MOST_TYPED
from sentemb.training.negatives import hard_negatives
from sentemb.training.optimisers.adam import Adam
from sentemb.training.optimisers.nesterov import Nesterov
from sentemb.training.stopping import Interrupted
from sentemb.training.towers.settings import HARD_AMONG, HARD_NEGATIVES, PRESETS, Settings
from sentemb.training.towers.two_towers import TwoTowers

TINY = {"cells": 6, "epochs": 3, "batch_size": 16, "threads": 1}
# Not what a small log has by default.
SEPARATE = {"shared_towers": False, "bag_dim": 0}
MOMENTUM = {"cells": 6, "epochs": 3, "batch_size": 16, "optimiser": "nesterov"}


def weights_file(folder):
    return (folder / "model.safetensors").read_bytes()


def whole_run(folder, log=None, **settings):
    """The weights of a training that nothing interrupts."""
    train(log or made_up_log(), output=folder, **{**TINY, **settings})
    return weights_file(folder)


def stop_after(n_batches):
    """An ``on_progress`` that sends Ctrl-C after some mini-batches."""
    seen = []

    def on_progress(progress):
        seen.append(progress)
        if len(seen) == n_batches:
            os.kill(os.getpid(), signal.SIGINT)

    return on_progress


# -- what training does ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": "rnn", "n_negatives": 3},
        {"model": "bilstm", "shared_towers": True},
        {"forget_gate": True, "peepholes": "full", "negatives": "corpus", "truncate": 2},
        {"forget_gate": True, "peepholes": "diagonal", "n_negatives": 2, "shared_towers": True},
        {"bag_dim": 4, "hard_negatives": 2},
        {"hard_negatives": 1, "shared_towers": True},
    ],
    ids=str,
)
def test_threads_change_no_bit_and_training_learns(tmp_path, settings):
    bits = [whole_run(tmp_path / str(k), threads=k, **settings) for k in (1, 3)]
    assert bits[0] == bits[1]
    model = SentenceEncoder.from_pretrained(tmp_path / "1", threads=1)
    losses = [line["loss"] for line in model.history]
    assert len(losses) == TINY["epochs"] and losses[-1] < losses[0]
    assert not (tmp_path / "1" / "checkpoints").exists()


def test_the_file_of_the_weights_has_the_same_bytes_every_time(tmp_path):
    model = train(made_up_log(), **TINY)
    for k in range(20):
        model.save_pretrained(tmp_path / str(k))
    files = {(tmp_path / str(k) / "model.safetensors").read_bytes() for k in range(20)}
    assert len(files) == 1


@pytest.mark.parametrize("shared_towers", [False, True])
def test_an_update_is_a_step_along_the_checked_gradient(shared_towers):
    pairs = [
        ("ab cd", "cd ef gh"),
        ("ef", "ab ab"),
        ("gh ab", "ef"),
        ("cd cd", "gh"),
        ("b", "fg h"),
    ]
    builder = ClickLogBuilder()
    for query, title in pairs:
        builder.add(query, title)
    log, rate = builder.build(), 0.5
    settings = Settings(
        cells=4, shared_towers=shared_towers, optimiser="nesterov",
        learning_rate=rate, max_norm=1e9, epochs=1, batch_size=len(pairs), hard_negatives=0,
    )  # fmt: skip
    towers = TwoTowers.of(Corpus(log, settings), settings, updates=1)
    weights = copy_of(towers.weights())
    weights.setdefault("document", weights["query"])
    before = SentenceEncoder(settings.encoder(), Corpus(log, settings).vocabulary, weights)
    queries, titles = zip(*pairs, strict=True)
    others = [[other for other in titles if other != title] for title in titles]
    _, gradient = loss_and_gradient(before, queries, titles, others, gamma=settings.gamma)
    after = train(log, threads=1, **settings.as_dict()).parameters()
    for side, blocks in before.parameters().items():
        for name, block in blocks.items():
            step = -rate / len(pairs) * gradient[side][name]
            np.testing.assert_allclose(
                after[side][name] - block, step, atol=1e-4 * abs(step).max(), err_msg=name
            )


@pytest.mark.parametrize("decay", ["linear", "none"])
@pytest.mark.parametrize("kind", [Adam, Nesterov])
def test_the_rate_falls_from_the_whole_to_its_last_part(kind, decay, monkeypatch):
    rates = {}

    def step_tasks(tower, point, gradient, lists, update, rate):
        rates[update] = rate
        return steps(tower, point, gradient, lists, update, rate)

    steps = kind.step_tasks
    monkeypatch.setattr(kind, "step_tasks", step_tasks)
    settings = {"optimiser": kind.__name__.lower(), "hard_negatives": 0, "learning_rate": 0.03}
    train(made_up_log(), **TINY, **settings, shared_towers=True, decay=decay)
    updates, falls = len(rates), decay == "linear"
    expected = {k: 0.03 * (1 - k / updates if falls else 1) for k in range(updates)}
    assert updates > 10 and rates == pytest.approx(expected, rel=1e-12)


def test_the_seed_decides():
    log = made_up_log()
    first, again, other = (
        train(log, **TINY, seed=seed).encode_query(["abcd ab"]) for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_negatives_from_the_log_are_those_that_were_skipped():
    log = made_up_log(skipped=True)
    settings = Settings(negatives="log", n_negatives=1, cells=2)
    corpus = Corpus(log, settings)
    pairs = np.flatnonzero(np.diff(log.skipped_offsets) > 0)[:10]
    batch = mini_batch(corpus, pairs, settings, epoch=0, step=0).candidates
    assert np.all(np.diff(batch.offsets) == 2)


def test_a_model_needs_skipped_titles_for_negatives_from_the_log(tmp_path):
    train(made_up_log(skipped=True), **TINY, negatives="log", n_negatives=2)
    with pytest.raises(SentembError, match="skipped"):
        train(made_up_log(), **TINY, negatives="log")
    path = tmp_path / "pairs.jsonl"
    write_click_log(made_up_log(skipped=True), path)
    train(path, **TINY, negatives="log")


@pytest.mark.parametrize("shared_towers", [False, True])
def test_hard_negatives_are_what_the_model_itself_ranks_highest(shared_towers):
    log = made_up_log(n_pairs=200)
    settings = Settings(cells=4, hard_negatives=2, shared_towers=shared_towers)
    corpus = Corpus(log, settings)
    towers = TwoTowers.of(corpus, settings, updates=10)
    weights = towers.weights()
    weights.setdefault("document", weights["query"])
    model = SentenceEncoder(towers.encoder, corpus.vocabulary, weights, threads=2)
    D = model.encode_document(log.titles, normalize_embeddings=True)
    cosines = model.encode_query(log.queries, normalize_embeddings=True) @ D.T
    cosines[log.query_index, log.title_index] = -np.inf
    best = np.argsort(-cosines, axis=1)[:, :HARD_AMONG]
    assert len(log.titles) > HARD_AMONG + 10, "or there is nothing to choose"
    with Workers(2) as workers:
        found = hard_negatives.look_up(corpus, towers, workers, lambda: False)
        np.testing.assert_allclose(
            np.sort(np.take_along_axis(cosines, found, axis=1)),
            np.sort(np.take_along_axis(cosines, best, axis=1)),
            atol=1e-6,
        )
        # Each pair's query lends two of its list to the mini-batch, others every time.
        pairs = np.arange(8)
        found[log.query_index[0], 1:] = -1
        clicked = set(log.title_index[pairs].tolist())
        lists = {int(t) for t in found[log.query_index[pairs]].ravel() if t >= 0}
        met = set()
        for step in range(100):
            texts = mini_batch(
                corpus, pairs, settings, epoch=2, step=step, hard_titles=found
            ).titles
            Y = towers.embed("document", texts, workers)
            if shared_towers:
                Y = Y[np.unique(log.query_index[pairs]).size :]
            titles = set(np.argmax(Y @ D.T, axis=1).tolist())
            assert clicked <= titles and len(titles) <= 3 * pairs.size
            met |= titles
    assert met == clicked | lists


def test_hard_negatives_are_the_same_in_small_portions(monkeypatch):
    log = made_up_log(n_pairs=100)
    settings = Settings(cells=4)
    corpus = Corpus(log, settings)
    towers = TwoTowers.of(corpus, settings, updates=10)
    found = []
    with Workers(1) as workers:
        for portion in (10_000, 7, 1):
            monkeypatch.setattr(hard_negatives, "_PORTION", portion)
            found.append(hard_negatives.look_up(corpus, towers, workers, lambda: False))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_in_a_large_log_hard_negatives_are_those_of_the_nearest_clusters(monkeypatch):
    rng = np.random.default_rng(0)
    of_group = rng.normal(size=(20, 16))

    def unit(n):
        rows = of_group[np.arange(n) % 20] + 0.3 * rng.normal(size=(n, 16))
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    Uq, Ud = unit(150), unit(900)
    clicked = np.arange(151), np.argmax(Uq @ Ud.T, axis=1).astype(np.int32)
    found = []
    assert "clusters" not in hard_negatives.described(150, 900)
    for most, portion, threads in ((0, 131_072, 1), (0, 7, 2), (150 * 900, 7, 1)):
        monkeypatch.setattr(hard_negatives, "EXACT_UP_TO", most)
        monkeypatch.setattr(hard_negatives, "_PORTION_OF_CLUSTERS", portion)
        with Workers(threads) as workers:
            lists = hard_negatives.nearest_titles(Uq, Ud, clicked, workers, lambda: False)
        found.append(lists)
    assert np.array_equal(found[0], found[1]), "portions or threads matter"
    monkeypatch.setattr(hard_negatives, "EXACT_UP_TO", 0)
    assert "8 nearest of 30 clusters" in hard_negatives.described(150, 900)
    for own, lists, exact in zip(clicked[1], found[0], found[2], strict=True):
        assert own not in lists and np.unique(lists).size == lists.size == HARD_AMONG
        assert np.isin(lists, exact).mean() > 0.6
    shared = [np.isin(*pair).mean() for pair in zip(found[0], found[2], strict=True)]
    assert np.mean(shared) > 0.95
    with Workers(1) as workers:
        stopped = hard_negatives.nearest_titles(Uq, Ud, clicked, workers, lambda: True)
    assert np.all(stopped == -1)


def test_a_mini_batch_does_not_depend_on_those_before():
    builder = ClickLogBuilder()
    for query, title in [("q", "one"), ("q", "two"), ("r", "two"), ("s", "three")]:
        builder.add(query, title)
    log, settings = builder.build(), Settings()
    corpus = Corpus(log, settings)
    # The title "two" is clicked for "q" as well, but is not in the second mini-batch.
    for pairs, left_out in (([0, 2], [1]), ([0, 3], []), ([0, 2], [1])):
        batch = mini_batch(corpus, np.array(pairs), settings, epoch=0, step=0)
        assert batch.candidates.excluded.tolist() == left_out


def test_hard_negatives_join_a_mini_batch_but_places_without_a_title_do_not():
    log, settings = made_up_log(), Settings(hard_negatives=2)
    corpus = Corpus(log, settings)
    for title, joined in ((0, 1), (1, 1), (-1, 0)):
        pairs = np.flatnonzero(log.title_index != title)[-1:]
        hard = np.full((len(log.queries), HARD_AMONG), title, np.int32)
        batch = mini_batch(corpus, pairs, settings, epoch=2, step=0, hard_titles=hard)
        assert batch.titles.n_texts == 1 + joined


def test_the_preset_of_the_paper():
    assert PRESETS["paper"]["n_negatives"] == 4
    model = train(made_up_log(), preset="paper", **{**TINY, "epochs": 2})
    used = model.training
    assert (used["model"], used["forget_gate"], used["peepholes"]) == ("lstm", False, "none")
    assert (used["n_negatives"], used["epochs"]) == (4, 2)
    with pytest.raises(SentembError, match="preset"):
        train(made_up_log(), preset="article")


def test_hard_negatives_are_the_default_where_they_can_be():
    assert Settings().hard_negatives == HARD_NEGATIVES > 0
    assert Settings(n_negatives=4).hard_negatives == 0
    assert Settings(negatives="corpus").hard_negatives == 0
    assert Settings(epochs=2).hard_negatives == 0
    assert Settings(epochs=3).hard_negatives == HARD_NEGATIVES
    assert Settings.of("paper").hard_negatives == 0
    assert Settings.of("large").hard_negatives == HARD_NEGATIVES


def test_the_large_preset_learns(tmp_path):
    large = PRESETS["large"]
    model = train(made_up_log(), preset="large", threads=2, batch_size=16)
    used = model.training
    assert {key: used[key] for key in large} == large
    assert model.encode_query(["abcd"]).shape == (1, 2 * large["cells"] + large["bag_dim"])
    losses = [line["loss"] for line in model.history]
    assert losses[-1] < 0.5 * losses[0]


def test_the_best_epoch_is_kept_and_patience_ends_training(tmp_path):
    log = made_up_log(seed=1)
    dev = made_up_judged_set(log)
    settings = {**TINY, "epochs": 60, "learning_rate": 1.0, "patience": 2, "hard_negatives": 0}
    model = train(log, dev=dev, output=tmp_path / "m", **settings, **SEPARATE)
    figures = [line["dev"]["ndcg@1"] for line in model.history]
    best = int(np.argmax(figures))
    assert figures[-1] < figures[best], "or the last epoch would do as well"
    assert len(figures) == best + 1 + 2 < 60, "two epochs without a better figure end it"
    assert evaluate_model(model, dev, (1, 3, 10)).mean[0] == pytest.approx(figures[best], abs=1e-6)
    read = SentenceEncoder.from_pretrained(tmp_path / "m")
    assert np.array_equal(read.encode_query(["abcd"]), model.encode_query(["abcd"]))


def test_of_equal_best_epochs_the_earlier_is_kept(monkeypatch):
    measured = measure_as(monkeypatch, [0.25, 0.5, 0.5, 0.25, 0.5])
    log = made_up_log()
    model = train(log, dev=made_up_judged_set(log), **{**TINY, "epochs": 9, "patience": 3})
    assert len(measured) == 2 + 3, "an equal figure does not reset the patience"
    assert_same_weights(model.weights, measured[1])


@pytest.mark.parametrize("with_dev", [True, False])
def test_resting_rows_are_brought_up_to_date_before_dev_and_at_the_end(with_dev, monkeypatch):
    """Against the same updates with a flush after each epoch."""
    log, settings = made_up_log(), Settings(**MOMENTUM, hard_negatives=0)
    corpus = Corpus(log, settings)
    steps = corpus.n_batches(settings.batch_size)
    towers = TwoTowers.of(corpus, settings, settings.epochs * steps)
    expected = []
    with Workers(1) as workers:
        for epoch in range(settings.epochs):
            order = corpus.order(settings.seed, epoch).window(0)
            for step in range(steps):
                pairs = order[step * settings.batch_size :][: settings.batch_size]
                batch = mini_batch(corpus, pairs, settings, epoch, step)
                towers.update(batch, towers.lay_out(batch), epoch * steps + step, workers)
            behind = copy_of(towers.weights())
            towers.flush((epoch + 1) * steps, workers)
            expected.append(copy_of(towers.weights()))
            for side, arrays in behind.items():
                assert np.any(arrays["table"] != expected[-1][side]["table"]), "nothing rested"

    measured = measure_as(monkeypatch, [0.1, 0.2, 0.3])  # the last epoch is the best
    dev = made_up_judged_set(log) if with_dev else None
    model = train(log, dev=dev, threads=1, hard_negatives=0, **MOMENTUM, **SEPARATE)
    assert len(measured) == (settings.epochs if with_dev else 0)
    for found, wanted in zip(
        [*measured, model.weights], [*expected[: len(measured)], expected[-1]], strict=True
    ):
        assert_same_weights(found, wanted)


def measure_as(monkeypatch, figures):
    """Let the dev figures be these; the list gets the weights of each model that is measured."""
    measured = []

    def measure(self, model):
        measured.append(copy_of(model.weights))
        return dict.fromkeys(["ndcg@1", "ndcg@3", "ndcg@10"], figures[len(measured) - 1])

    monkeypatch.setattr(dev_set.JudgedDev, "measure", measure)
    return measured


def copy_of(weights):
    """A copy of the stacked weights of both towers."""
    return {
        side: {name: array.copy() for name, array in arrays.items()}
        for side, arrays in weights.items()
    }


def assert_same_weights(found, wanted):
    assert found.keys() == wanted.keys()
    for side, arrays in wanted.items():
        for name, array in arrays.items():
            assert np.array_equal(found[side][name], array), (side, name)


def test_progress_counts_every_mini_batch_and_epoch():
    seen = []
    train(made_up_log(), **TINY, on_progress=seen.append)
    steps = math.ceil(made_up_log().query_index.size / TINY["batch_size"])
    assert len(seen) == TINY["epochs"] * (steps + 1)
    assert (seen[-1].epoch, seen[-1].step) == (TINY["epochs"], steps)
    assert all(at.loss > 0 and at.pairs_per_second > 0 for at in seen)


def test_history_has_the_mean_loss_of_the_mini_batches_after_a_stop_too(tmp_path):
    last = {}

    def keep_loss(progress):
        last[progress.epoch] = progress.loss

    train(made_up_log(), output=tmp_path / "whole", **TINY, on_progress=keep_loss)
    whole = load_model(tmp_path / "whole").history
    assert [line["loss"] for line in whole] == [round(loss, 6) for loss in last.values()]
    interrupt(tmp_path / "m")  # in the second epoch
    resumed = train(made_up_log(), output=tmp_path / "m", **TINY, resume=True).history
    assert [line["loss"] for line in resumed] == [line["loss"] for line in whole]


def test_a_title_of_thousands_of_words_trains():
    rng = np.random.default_rng(0)
    builder = ClickLogBuilder()
    builder.add("long title", " ".join(rng.choice(["ab", "cd", "ef"], 9_999)))
    builder.add("short title", "ab cd")
    model = train(builder.build(), **{**TINY, "epochs": 2})
    assert all(np.isfinite(line["loss"]) for line in model.history)
    assert np.isfinite(model.parameters()["document"]["Wrec3"]).all()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs Linux's list of threads")
def test_training_leaves_no_threads_behind():
    log = made_up_log()

    def running():
        return len(os.listdir("/proc/self/task"))

    before = running()
    model = train(log, dev=made_up_judged_set(log), **{**TINY, "threads": 3, "epochs": 5})
    model.encode("ab")
    del model
    for _ in range(100):
        if running() <= before:
            return
        time.sleep(0.02)
    pytest.fail(f"{running() - before} threads are left")


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"negatives": "corpus", "n_negatives": "all"}, "n_negatives"),
        ({"hard_negatives": 3, "n_negatives": 4}, "hard negatives"),
        ({"hard_negatives": 3, "epochs": 2}, "epoch 3"),
        ({"model": "rnn", "peepholes": "full"}, "rnn"),
        ({"colour": "red"}, "colour"),
        ({"checkpoint_seconds": float("nan")}, "checkpoint_seconds"),
        ({"threads": 0}, "threads"),
        ({"resume": True}, "resume"),
    ],
    ids=str,
)
def test_bad_settings_are_refused_in_one_line(settings, word):
    with pytest.raises(SentembError, match=word) as caught:
        train(made_up_log(), **{**TINY, **settings})
    assert "\n" not in str(caught.value)


def test_a_log_without_any_negative_is_refused():
    builder = ClickLogBuilder()
    for query in ("one", "two", "three"):
        builder.add(query, "the same title")
    with pytest.raises(SentembError, match="no negatives"):
        train(builder.build(), **TINY)


def test_a_query_without_negatives_is_welcome_among_others():
    builder = ClickLogBuilder()
    for query, title in [("all", "ab"), ("all", "cd"), ("some", "ab")]:
        builder.add(query, title)
    model = train(builder.build(), **TINY)
    assert np.isfinite(model.encode_query("all")).all()


def test_a_learning_rate_far_too_high_keeps_the_model_that_was_there(tmp_path):
    before = whole_run(tmp_path / "m")
    with pytest.raises(SentembError, match="learning rate") as caught:
        train(made_up_log(), output=tmp_path / "m", force=True, **TINY, learning_rate=1e9)
    assert "epoch 1, step" in str(caught.value)
    assert weights_file(tmp_path / "m") == before
    SentenceEncoder.from_pretrained(tmp_path / "m")
    with pytest.raises(SentembError, match="learning rate"):
        train(made_up_log(), output=tmp_path / "new", **TINY, learning_rate=1e9)
    with pytest.raises(SentembError, match="no model"):
        SentenceEncoder.from_pretrained(tmp_path / "new")


def test_a_training_that_runs_away_later_keeps_its_best_model(tmp_path):
    log = made_up_log()
    shared = {"dev": made_up_judged_set(log), "output": tmp_path / "m", **TINY, "epochs": 40}
    shared |= SEPARATE
    # The momentum of 0.999 carries the weights beyond all measure after some epochs.
    with pytest.raises(SentembError, match="learning rate") as caught:
        train(
            log, **shared, learning_rate=30.0, momentum=0.999, max_norm=50.0, optimiser="nesterov"
        )
    assert str(tmp_path / "m") in str(caught.value)
    kept = SentenceEncoder.from_pretrained(tmp_path / "m")
    assert np.isfinite(kept.encode_query(["abcd"])).all()
    best = max(line["dev"]["ndcg@1"] for line in kept.history)
    assert evaluate_model(kept, shared["dev"]).mean[0] == pytest.approx(best, abs=1e-6)


def test_an_existing_model_is_replaced_only_with_force(tmp_path):
    before = whole_run(tmp_path / "m")
    for attempt in ({}, {"resume": True, "force": True}):
        with pytest.raises(SentembError):
            train(made_up_log(), output=tmp_path / "m", **TINY, seed=1, **attempt)
        assert weights_file(tmp_path / "m") == before
    train(made_up_log(), output=tmp_path / "m", **TINY, seed=1, force=True)
    assert weights_file(tmp_path / "m") != before
    (tmp_path / "file").write_text("")
    with pytest.raises(SentembError, match="file"):
        train(made_up_log(), output=tmp_path / "file", **TINY)


# -- stopping and going on -------------------------------------------------------------------------


def test_resuming_after_ctrl_c_gives_the_same_bits(tmp_path):
    log = made_up_log(seed=3)
    shared = {**TINY, "dev": made_up_judged_set(log), "n_negatives": 3, "epochs": 8}
    shared["learning_rate"] = 1.0
    expected = whole_run(tmp_path / "whole", log, **shared)
    figures = [line["dev"]["ndcg@1"] for line in load_model(tmp_path / "whole").history]
    # So that the last stop falls behind the best epoch, whose weights must come back too.
    assert np.argmax(figures) < 4
    before = signal.getsignal(signal.SIGINT)
    for n_batches in (1, 5, 9, 27):
        output, notes = tmp_path / f"{n_batches}", []
        with pytest.raises(Interrupted, match="--resume"):
            train(log, output=output, **shared, on_progress=stop_after(n_batches))
        assert signal.getsignal(signal.SIGINT) is before
        train(log, output=output, **shared, resume=True, on_note=notes.append)
        assert weights_file(output) == expected
        assert any("continuing at epoch" in note for note in notes)
        assert sorted(p.name for p in output.iterdir()) == sorted(
            p.name for p in (tmp_path / "whole").iterdir()
        )


def test_a_training_with_momentum_goes_on_to_the_same_bits(tmp_path):
    """A checkpoint falls between flushes, so it must keep how far each row has been followed."""
    expected = whole_run(tmp_path / "whole", **MOMENTUM)
    for n_batches in (1, 6, 9):
        output = tmp_path / f"{n_batches}"
        with pytest.raises(Interrupted):
            whole_run(output, on_progress=stop_after(n_batches), **MOMENTUM)
        assert whole_run(output, resume=True, **MOMENTUM) == expected


def test_hard_negatives_come_back_when_a_training_goes_on(tmp_path):
    log = made_up_log(n_pairs=80)  # 5 mini-batches an epoch: looked up before numbers 11 and 26
    settings = {**TINY, "hard_negatives": 2, "epochs": 6}
    expected = whole_run(tmp_path / "whole", log, **settings)
    assert expected != whole_run(tmp_path / "without", log, **{**settings, "hard_negatives": 0})
    for n_batches in (10, 12, 17, 28):
        output = tmp_path / f"{n_batches}"
        with pytest.raises(Interrupted):
            train(log, output=output, **settings, on_progress=stop_after(n_batches))
        train(log, output=output, **settings, resume=True)
        assert weights_file(output) == expected


def test_ctrl_c_while_hard_negatives_are_looked_up_loses_nothing(tmp_path):
    settings = {**TINY, "hard_negatives": 2, "epochs": 6}
    expected = whole_run(tmp_path / "whole", **settings)
    notes = []

    def stop(note):
        notes.append(note)
        if "epoch 6: looking up" in note:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="epoch 6, step 0"):
        train(made_up_log(), output=tmp_path / "m", **settings, on_note=stop)
    assert [note for note in notes if "looking up" in note] == [
        f"epoch {k}: looking up hard negatives" for k in (3, 6)
    ]
    train(made_up_log(), output=tmp_path / "m", **settings, resume=True)
    assert weights_file(tmp_path / "m") == expected


def test_resuming_a_finished_training_returns_it_and_one_not_begun_begins(tmp_path):
    notes = []
    train(made_up_log(), output=tmp_path / "m", **TINY, resume=True, on_note=notes.append)
    assert any("starting from the beginning" in note for note in notes)
    before = weights_file(tmp_path / "m")
    model = train(made_up_log(), output=tmp_path / "m", **TINY, resume=True, on_note=notes.append)
    assert any("finished" in note for note in notes)
    assert weights_file(tmp_path / "m") == before
    assert isinstance(model, SentenceEncoder)
    with pytest.raises(SentembError, match="seed"):
        train(made_up_log(), output=tmp_path / "m", **TINY, resume=True, seed=5)


# One process loads everything and forks those that are killed.
KILLED_TRAININGS = """
import os, random, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from helpers import made_up_judged_set, made_up_log
from sentemb.training.trainer import train
log, settings = made_up_log(), {"cells": 6, "epochs": 30, "batch_size": 16, "threads": 1}
dev, output = made_up_judged_set(log), Path(sys.argv[2])
train(log, dev=dev, **{**settings, "epochs": 3})  # loads the kernels
moments = random.Random(0)
for _ in range(3):
    begun, begins = os.pipe()
    child = os.fork()
    if not child:
        train(log, dev=dev, output=output, resume=True, checkpoint_seconds=0, **settings,
              on_progress=lambda at: os.write(begins, b"."))
        os._exit(1)
    os.close(begins)
    assert os.read(begun, 1), "the training failed"
    time.sleep(moments.uniform(0.005, 0.12))
    os.kill(child, 9)
    assert os.waitpid(child, 0)[1] == 9, "the kills are to fall into the training"
    os.close(begun)
    names = [path.name for path in (output / "checkpoints").glob("step-*.safetensors")]
    print(max(names, default=""), flush=True)
"""


def test_resuming_after_kills_at_random_moments_gives_the_same_bits(tmp_path):
    log, output = made_up_log(), tmp_path / "m"
    dev = made_up_judged_set(log)
    expected = whole_run(tmp_path / "whole", log, epochs=30, dev=dev)
    done = run_forked(KILLED_TRAININGS, Path(__file__).parent, output)
    assert not done.returncode, done.stderr
    updates = done.stdout.split("\n")[:-1]
    assert len(updates) == 3 and updates == sorted(updates)
    assert updates[-1] > "step-000000001", "the kills are to fall into the training"
    assert not (output / "history.jsonl").exists() or (output / "checkpoints").is_dir()
    assert whole_run(output, log, epochs=30, dev=dev, resume=True) == expected


def interrupt(output, log=None, n_batches=6, **settings):
    """A training that writes a checkpoint after every mini-batch, stopped on its way."""
    with pytest.raises(Interrupted):
        train(
            log or made_up_log(),
            output=output,
            checkpoint_seconds=0,
            on_progress=stop_after(n_batches),
            **{**TINY, **settings},
        )
    return sorted((output / "checkpoints").iterdir())


def test_a_damaged_checkpoint_is_passed_over(tmp_path):
    expected = whole_run(tmp_path / "whole")
    data = None
    for damage in ("cut", "flipped", "empty", "foreign"):
        output = tmp_path / damage
        _, newest = interrupt(output)
        data = bytearray(newest.read_bytes())
        if damage == "flipped":
            data[-len(data) // 3] ^= 4
        wrong = {"cut": data[: len(data) // 2], "empty": b"", "foreign": b"\x89PNG" * 400}
        newest.write_bytes(wrong.get(damage, data))
        notes = []
        train(made_up_log(), output=output, **TINY, resume=True, on_note=notes.append)
        assert any(newest.name in note and "passed over" in note for note in notes)
        assert weights_file(output) == expected
    output = tmp_path / "both"
    for path in interrupt(output):
        path.write_bytes(data[:100])
    train(made_up_log(), output=output, **TINY, resume=True)
    assert weights_file(output) == expected


def numbers_of(data):
    """What the header of a checkpoint says, or its bytes if they are not JSON."""
    header = data[data.index(b"{") : data.index(b"}}") + 2]
    try:
        metadata = json.loads(header)["__metadata__"]
        return {name: json.loads(text) for name, text in metadata.items()}
    except (ValueError, KeyError):
        return header


def test_no_flipped_bit_of_a_checkpoint_is_taken_for_good(tmp_path):
    _, newest = interrupt(tmp_path / "m")
    data = newest.read_bytes()
    for place in range(data.index(b"{"), data.index(b"}}"), 17):
        flipped = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        if numbers_of(flipped) == numbers_of(data):
            continue  # the last of 17 digits, which does not change the number
        newest.write_bytes(flipped)
        notes, steps = [], []

        def take_up(file, steps=steps):
            file.check()
            steps.append(file.metadata["step"])

        assert take_up_checkpoint(tmp_path / "m", take_up, notes.append)
        assert any(newest.name in note for note in notes), data[place - 20 : place + 20]
        assert steps == [4]  # the older one, at the end of the first epoch


def test_other_settings_and_another_log_are_refused_on_resume(tmp_path):
    interrupt(tmp_path / "m")
    for settings in ({"seed": 1}, {"cells": 7}, {"n_negatives": 2}, {"epochs": 9}):
        with pytest.raises(SentembError, match=next(iter(settings))):
            train(made_up_log(), output=tmp_path / "m", resume=True, **{**TINY, **settings})
    for log in (made_up_log(61), made_up_log(seed=1)):
        with pytest.raises(SentembError, match="another click log"):
            train(log, output=tmp_path / "m", resume=True, **TINY)
    train(made_up_log(), output=tmp_path / "m", resume=True, **{**TINY, "threads": 2})
    assert weights_file(tmp_path / "m") == whole_run(tmp_path / "whole")


LOGS_THAT_DIFFER_IN_ONE_PLACE = {
    "where texts end": ([("ab cd", "ef"), ("gh", "ij")], [("ab", "ef"), ("cd gh", "ij")]),
    "how often a trigram occurs": (
        [("aaaaa", "ef"), ("gh", "ij")],
        [("aaaaaa", "ef"), ("gh", "ij")],
    ),
    "a click": ([("ab", "ef", 1), ("gh", "ij")], [("ab", "ef", 2), ("gh", "ij")]),
    "a letter": ([("ab", "ef"), ("gh", "ij")], [("ab", "ef"), ("gh", "ik")]),
    "which pair a skipped title belongs to": (
        [("ab", "ef", 1, ["kl"]), ("gh", "ij")],
        [("ab", "ef"), ("gh", "ij", 1, ["kl"])],
    ),
}


@pytest.mark.parametrize("place", LOGS_THAT_DIFFER_IN_ONE_PLACE)
def test_logs_that_differ_have_different_fingerprints(place):
    prints = set()
    for pairs in LOGS_THAT_DIFFER_IN_ONE_PLACE[place]:
        builder = ClickLogBuilder()
        for pair in pairs:
            builder.add(*pair)
        prints.add(Corpus(builder.build(), Settings()).fingerprint())
    assert len(prints) == 2


def dev_log():
    """A click log large enough to hold out a part of its queries."""
    return made_up_log(n_pairs=120)


SHARE = {**TINY, "epochs": 4, "dev": "20%"}


def test_a_share_of_the_queries_is_held_out_and_recorded(tmp_path):
    log, notes = dev_log(), []
    model = train(log, output=tmp_path / "m", on_note=notes.append, **SHARE)
    whole, held_out, _ = split_log(log, dev=0.2, test=0)
    kept, single = hold_out_clicks(whole, 0.2, 0, MOST_TYPED)
    assert kept.clicks.sum() + single.clicks.sum() == whole.clicks.sum() and single.clicks.size
    assert notes[0] == (
        f"{len(held_out.queries)} of {len(log.queries)} queries are held out for dev, with "
        f"{held_out.query_index.size} pairs, and {single.clicks.sum()} single clicks of others; "
        f"{kept.query_index.size} pairs are left to train on"
    )
    assert model.training["dev_split"] == {"share": 0.2, "seed": 0}
    assert model.training["pairs"] == kept.query_index.size
    assert load_model(tmp_path / "m").training == model.training
    assert [*model.history[0]["dev"]] == ["mrr@10", "hit@1", "recall@10"]

    # The same as training on one part with the other as a log, or as a file, of held-out clicks.
    write_click_log(held_out, tmp_path / "dev.tsv")
    for dev in (held_out, tmp_path / "dev.tsv"):
        other = train(kept, catalogue=whole.titles, **{**SHARE, "dev": dev})
        assert_same_weights(other.weights, model.weights)
        assert [line["dev"] for line in other.history] == [line["dev"] for line in model.history]
        assert "dev_split" not in other.training

    # All titles are ranked, and the epoch with the best MRR@10 is kept.
    titles = [*dict.fromkeys([*kept.titles, *held_out.titles])]
    found = evaluate_clicks(TitleVectors(model, titles), held_out, titles, ["mrr@10"])
    assert found.mean[0] == pytest.approx(best_epoch(model.history)["dev"]["mrr@10"], abs=1e-6)
    assert best_epoch(model.history)["dev"]["mrr@10"] == max(
        line["dev"]["mrr@10"] for line in model.history
    )


def test_another_seed_holds_out_the_same_queries():
    logs = [train(dev_log(), **SHARE, seed=seed).training["log"] for seed in (0, 1)]
    assert logs[0] == logs[1]


def test_a_share_with_threads_stops_and_patience(tmp_path):
    log, settings = dev_log(), {**SHARE, "patience": 3}
    expected = whole_run(tmp_path / "whole", log, **settings)
    assert whole_run(tmp_path / "threads", log, **settings | {"threads": 3}) == expected
    with pytest.raises(Interrupted):
        train(log, output=tmp_path / "m", **settings, on_progress=stop_after(20))
    with pytest.raises(SentembError, match="another click log"):
        train(log, output=tmp_path / "m", **settings | {"dev": 0.4}, resume=True)
    train(log, output=tmp_path / "m", **settings, resume=True)
    assert weights_file(tmp_path / "m") == expected


def test_dev_queries_that_are_in_the_log_are_noted():
    log, notes = dev_log(), []
    train(log, **{**SHARE, "dev": log, "epochs": 1}, on_note=notes.append)
    assert any(f"{len(log.queries)} of the {len(log.queries)} dev queries" in one for one in notes)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"patience": 2}, "there is no dev set; give one, for example 5%"),
        ({"dev": "5%", "model": "arc1"}, "a pair model would have to score every title"),
        ({"dev": 0}, "dev is a share of 0"),
        ({"dev": 2}, "dev is 2; give a share"),
        ({"dev": 1e-9}, "no line is on the dev side"),
        ({"dev": [3]}, "dev must be a path, a share such as 5%"),
        ({"dev": "nowhere"}, "nowhere: no such file or folder"),
    ],
)
def test_dev_sets_that_cannot_be(settings, message):
    with pytest.raises(SentembError, match=message):
        train(made_up_log(), **{"epochs": 3, "threads": 1, **settings})


def test_another_dev_set_is_refused_on_resume(tmp_path):
    log = made_up_log()
    dev = made_up_judged_set(log)
    other = replace(dev, grade=1 - dev.grade)
    with pytest.raises(Interrupted):
        train(log, dev=dev, output=tmp_path / "m", **TINY, on_progress=stop_after(6))
    for wrong in (other, None):
        with pytest.raises(SentembError, match="another dev set"):
            train(log, dev=wrong, output=tmp_path / "m", **TINY, resume=True)
    train(log, dev=dev, output=tmp_path / "m", **TINY, resume=True)
    for wrong in (other, None):  # and when it is finished
        with pytest.raises(SentembError, match="another dev set"):
            train(log, dev=wrong, output=tmp_path / "m", **TINY, resume=True)


def test_a_dev_set_that_cannot_be_measured_is_refused_before_training(tmp_path):
    log = made_up_log()
    dev = made_up_judged_set(log)
    steps = []
    for grade in (0 * dev.grade, 2000 * dev.grade):
        with pytest.raises(SentembError, match="the dev set"):
            train(
                log,
                dev=replace(dev, grade=grade),
                output=tmp_path / "m",
                **TINY,
                on_progress=steps.append,
            )
    assert not steps and not (tmp_path / "m").exists()
    write_judged_set(replace(dev, grade=0 * dev.grade), tmp_path / "no relevant title")
    with pytest.raises(SentembError, match="no relevant title: "):
        train(log, dev=tmp_path / "no relevant title", **TINY)


def test_one_training_at_a_time_writes_into_a_folder(tmp_path):
    expected = whole_run(tmp_path / "whole")
    refused = []

    def start_another(progress):
        if progress.step == 2:
            for attempt in ({"force": True}, {"resume": True}):
                with pytest.raises(SentembError, match="another process"):
                    train(made_up_log(), output=tmp_path / "m", **{**TINY, "seed": 1}, **attempt)
                refused.append(attempt)

    model = train(made_up_log(), output=tmp_path / "m", **TINY, on_progress=start_another)
    assert refused and weights_file(tmp_path / "m") == expected
    model.save_pretrained(tmp_path / "m", force=True)  # the lock is free again


def test_a_model_that_another_training_made_just_now_is_not_replaced(tmp_path, monkeypatch):
    """The other training ended while this one was reading its log."""
    output, read = tmp_path / "m", run.read_click_log

    def read_slowly(path, **settings):
        monkeypatch.setattr(run, "read_click_log", read)
        train(made_up_log(), output=output, **TINY)
        return made_up_log()

    monkeypatch.setattr(run, "read_click_log", read_slowly)
    with pytest.raises(SentembError, match="a model is there already"):
        train(tmp_path / "log", output=output, **{**TINY, "seed": 5})
    assert weights_file(output) == whole_run(tmp_path / "whole")


def test_the_model_of_another_dev_set_is_not_the_result(tmp_path):
    """A finished model is being replaced by a training that differs in the dev set only."""
    log = made_up_log()
    whole_run(tmp_path / "m", log)
    dev = made_up_judged_set(log)
    with pytest.raises(Interrupted):
        train(log, dev=dev, output=tmp_path / "m", force=True, on_progress=stop_after(2), **TINY)
    model = train(log, dev=dev, output=tmp_path / "m", resume=True, **TINY)
    assert all(line["dev"] for line in model.history)


def test_a_training_that_was_stopped_is_not_thrown_away(tmp_path):
    interrupt(tmp_path / "m")
    with pytest.raises(SentembError, match="--resume"):
        train(made_up_log(), output=tmp_path / "m", **TINY)
    train(made_up_log(), output=tmp_path / "m", **TINY, resume=True)
    assert weights_file(tmp_path / "m") == whole_run(tmp_path / "whole")


def test_a_kill_while_the_checkpoints_are_removed_loses_nothing(tmp_path, monkeypatch):
    notes = []

    monkeypatch.setattr(loop, "remove_checkpoints", lambda output: None)
    train(made_up_log(), output=tmp_path / "m", **{**TINY, "checkpoint_seconds": 0})
    monkeypatch.undo()
    before = weights_file(tmp_path / "m")
    folder = tmp_path / "m" / "checkpoints"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert len(files) == 3, "two checkpoints and the hard negatives of both"
    for left in ([], *([name] for name in files), list(files)):
        folder.mkdir(exist_ok=True)
        for name in left:
            (folder / name).write_bytes(files[name])
        model = train(
            made_up_log(), output=tmp_path / "m", **TINY, resume=True, on_note=notes.append
        )
        assert notes and all("already finished" in note for note in notes)
        assert weights_file(tmp_path / "m") == before and len(model.history) == TINY["epochs"]
        assert not folder.exists()


def rewrite_checkpoint(path, change):
    """Let ``change(metadata, arrays)`` alter a checkpoint, and repair its checksum.

    All arrays are then in one file.
    """
    with open_tensors(path) as file:
        arrays, metadata = {name: file[name] for name in file}, file.metadata
    for name, file_name in metadata.pop("lasting", {}).items():
        with open_tensors(path.parent / file_name) as file:
            arrays[name] = file[name]
    change(metadata, arrays)
    write_any_tensors(path, arrays, metadata)


def set_in(name, place, value):
    def change(metadata, arrays):
        arrays[name].ravel()[place] = value

    return change


WRONG_CHECKPOINTS = {
    "no identity": lambda metadata, arrays: metadata.pop("identity"),
    "settings": lambda metadata, arrays: metadata["identity"].update(settings=[]),
    "epoch": lambda metadata, arrays: metadata.update(epoch="1"),
    "late epoch": lambda metadata, arrays: metadata.update(epoch=10**6),
    "step": lambda metadata, arrays: metadata.update(step=-1),
    "late step": lambda metadata, arrays: metadata.update(step=10**6),
    "loss": lambda metadata, arrays: metadata.update(loss_sum=float("nan")),
    "seconds": lambda metadata, arrays: metadata.update(seconds=None),
    "history": lambda metadata, arrays: metadata.update(history=[{}]),
    "too short a history": lambda metadata, arrays: metadata["history"].pop(),
    "an epoch twice": lambda metadata, arrays: metadata["history"][1].update(epoch=1),
    "nan": set_in("query.weights.table", 3, np.nan),
    "huge": set_in("query.weights.table", 3, 1e30),
    "a negative square": set_in("query.second_moment.recurrent", 3, -1),
    "shape": lambda metadata, arrays: arrays.update({"query.weights.table": np.zeros(3)}),
    "a missing array": lambda metadata, arrays: arrays.pop("query.weights.bias"),
    "no hard titles": lambda metadata, arrays: arrays.pop("hard_titles"),
    "a title too far": set_in("hard_titles", 5, 10**6),
    "a title before the first": set_in("hard_titles", 5, -2),
}


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """A training that was stopped in its last epoch, and the weights of a whole one."""
    home = tmp_path_factory.mktemp("stopped")
    interrupt(home / "m", n_batches=11, hard_negatives=2)
    return home / "m", whole_run(home / "whole", hard_negatives=2)


@pytest.mark.parametrize("wrong", WRONG_CHECKPOINTS)
def test_a_wrong_checkpoint_with_a_right_checksum_is_passed_over(tmp_path, stopped, wrong):
    output = shutil.copytree(stopped[0], tmp_path / "m")
    newest = max((output / "checkpoints").iterdir())
    rewrite_checkpoint(newest, WRONG_CHECKPOINTS[wrong])
    notes, settings = [], {**TINY, "hard_negatives": 2, "resume": True}
    train(made_up_log(), output=output, **settings, on_note=notes.append)
    assert any(newest.name in note and "passed over" in note for note in notes)
    assert weights_file(output) == stopped[1]


def test_a_nesterov_checkpoint_of_another_time_is_passed_over(tmp_path):
    settings = {"optimiser": "nesterov", "learning_rate": 0.1}
    expected = whole_run(tmp_path / "whole", **settings)
    for value in (-1, 10**6):
        output, notes = tmp_path / f"{value}", []
        newest = interrupt(output, **settings)[-1]
        rewrite_checkpoint(newest, set_in("query.synced.table", 2, value))
        found = whole_run(output, **settings, resume=True, on_note=notes.append)
        assert any(newest.name in note and "passed over" in note for note in notes)
        assert found == expected


@pytest.mark.parametrize("name", ["README.md", "words.txt", "history.jsonl"])
@pytest.mark.parametrize("force", [False, True])
def test_a_folder_with_other_files_is_left_alone(tmp_path, name, force):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / name).write_text("mine")
    with pytest.raises(SentembError, match="not a sentemb model"):
        train(made_up_log(), output=tmp_path / "home", **TINY, force=force)
    assert [path.read_text() for path in (tmp_path / "home").iterdir()] == ["mine"]


def test_the_log_is_not_kept_in_memory_while_training(tmp_path, monkeypatch):
    write_click_log(made_up_log(), tmp_path / "pairs.tsv")
    kept = []

    def read(*arguments, **settings):
        log = read_click_log(*arguments, **settings)
        kept.append(weakref.ref(log))
        return log

    def look(progress):
        if progress.epoch_ended:
            if kept[0]() is not None:
                gc.collect()
            kept.append(kept[0]())

    monkeypatch.setattr(run, "read_click_log", read)
    gc.freeze()  # the collector need not look through what other tests have loaded
    try:
        train(tmp_path / "pairs.tsv", **TINY, on_progress=look)
    finally:
        gc.unfreeze()
    assert len(kept) > 1 and kept[1:] == [None] * len(kept[1:])


def test_a_signal_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        model = train(made_up_log(), **TINY, on_progress=stop_after(2))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(model.history) == TINY["epochs"]


# -- a full disk -----------------------------------------------------------------------------------


def train_on_a_full_disk(output):
    """What the error says."""
    train(made_up_log(), **{**TINY, "cells": 40, "epochs": 1})  # no kernel is to be saved later
    notes = []
    settings = {**TINY, "cells": 40, "hard_negatives": 0, "force": True, "checkpoint_seconds": 0}
    with full_disk(6000), pytest.raises(SentembError) as raised:
        train(made_up_log(), output=output, on_note=notes.append, **settings)
    assert notes and all("no checkpoint" in note for note in notes), notes
    return str(raised.value)


def test_a_full_disk_is_one_clear_line_and_the_same_training_can_go_on(tmp_path):
    output = tmp_path / "m"
    said = train_on_a_full_disk(output)
    assert "\n" not in said and "model.safetensors" in said and "--resume" in said
    assert not list(output.rglob("*.tmp")) and not list(output.rglob(".*tmp"))
    train(made_up_log(), output=output, resume=True, **{**TINY, "cells": 40, "hard_negatives": 0})
    SentenceEncoder.from_pretrained(output)


def test_a_full_disk_leaves_the_old_model_whole(tmp_path):
    output = tmp_path / "m"
    before = whole_run(output)
    train_on_a_full_disk(output)
    SentenceEncoder.from_pretrained(output)
    assert weights_file(output) == before


def test_a_kernel_cache_that_became_unreadable_is_no_obstacle(monkeypatch):
    """A server reads its models as root and then gives up its rights."""

    class Closed(type(Path())):
        def glob(self, pattern):
            raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(run, "CACHE_FOLDER", Closed("cache"))
    notes = []
    train(made_up_log(), **TINY, on_note=notes.append)
    assert any("compiling" in note for note in notes)
