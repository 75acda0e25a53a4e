"""Look-ups of hard negatives in bounded memory: queries in portions, titles in samples."""

import errno
import os

import naive
import numpy as np
import pytest
from helpers import made_up_log

from sentemb import prepare_log
from sentemb.data.click_log import write_click_log
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system import growing
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.negative_options import HARD_AMONG
from sentemb.training.negatives import hard_negatives, title_clusters
from sentemb.training.stopping import Interrupted
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.two_towers import TwoTowers
from sentemb.training.trainer import train

N_DRAWN = 50


@pytest.fixture
def few_titles(monkeypatch):
    monkeypatch.setattr(hard_negatives, "SAMPLED_FROM", N_DRAWN)


def towers_of(log, **given):
    settings = Settings(cells=4, hard_negatives=2, **given)
    corpus = Corpus(log, settings)
    return corpus, TwoTowers.of(corpus, settings, updates=10)


def looked_up(corpus, towers, threads=1, stopped=lambda: False, **given):
    with Workers(threads) as workers:
        return hard_negatives.look_up(corpus, towers, workers, stopped, **given)


def test_titles_are_drawn_by_seed_and_epoch(few_titles):
    assert np.array_equal(hard_negatives.drawn_titles(50, 0, 2), np.arange(50))
    first, again, later, other = (
        hard_negatives.drawn_titles(3_000, seed, epoch).tolist()
        for seed, epoch in ((0, 2), (0, 2), (0, 5), (1, 2))
    )
    assert first == again == sorted(set(first)) and len(first) == N_DRAWN
    assert first != later and first != other
    # All titles have a chance.
    drawn = np.concatenate([hard_negatives.drawn_titles(60, 0, epoch) for epoch in range(40)])
    assert np.unique(drawn).size == 60


@pytest.mark.parametrize("shared_towers", [False, True])
@pytest.mark.parametrize("clusters", [False, True])
def test_of_many_titles_a_sample_is_looked_up(clusters, shared_towers, few_titles, monkeypatch):
    log = made_up_log(n_pairs=200)
    corpus, towers = towers_of(log, shared_towers=shared_towers)
    assert corpus.n_titles > 2 * N_DRAWN
    if clusters:
        monkeypatch.setattr(hard_negatives, "EXACT_UP_TO", 0)
        # So that every cluster is near, and the lists are the exact ones.
        monkeypatch.setattr(title_clusters, "PROBED", N_DRAWN)
    model = SentenceEncoder(
        towers.encoder,
        corpus.vocabulary,
        {"document": towers.weights()["query"], **towers.weights()},
        threads=1,
    )
    Uq = model.encode_query(log.queries, normalize_embeddings=True)
    Ud = model.encode_document(log.titles, normalize_embeddings=True)
    clicked = [set() for _ in log.queries]
    for query, title in zip(log.query_index.tolist(), log.title_index.tolist(), strict=True):
        clicked[query].add(title)
    of_epochs = []
    for epoch in (2, 5):
        drawn = hard_negatives.drawn_titles(corpus.n_titles, 7, epoch)
        found = looked_up(corpus, towers, seed=7, epoch=epoch)
        others = set(range(corpus.n_titles)) - set(drawn.tolist())
        expected = naive.highest_titles(Uq, Ud, [own | others for own in clicked], HARD_AMONG)
        for own, wanted, cosines in zip(found, expected, Uq @ Ud.T, strict=True):
            assert np.count_nonzero(own >= 0) == len(wanted)
            own = own[own >= 0]
            assert np.isin(own, drawn).all() and np.unique(own).size == own.size
            np.testing.assert_allclose(np.sort(cosines[own]), np.sort(cosines[wanted]), atol=1e-6)
        of_epochs.append(found)
        for threads, portion in ((2, 8_192), (1, 7), (1, 1)):
            monkeypatch.setattr(hard_negatives, "_PORTION", portion)
            monkeypatch.setattr(hard_negatives, "_PORTION_OF_CLUSTERS", portion)
            again = looked_up(corpus, towers, threads, seed=7, epoch=epoch)
            assert np.array_equal(found, again)
    assert not np.array_equal(*of_epochs)


def test_texts_are_embedded_in_portions_to_the_same_bits(monkeypatch):
    corpus, towers = towers_of(made_up_log(n_pairs=100))
    found = []
    for texts in (10_000, 16, 1):
        monkeypatch.setattr(hard_negatives, "_TEXTS", texts)
        found.append(looked_up(corpus, towers))
    assert np.array_equal(found[0], found[1]) and np.array_equal(found[0], found[2])


def test_the_note_says_how_many_titles_are_drawn(monkeypatch):
    said = hard_negatives.described
    assert said(8_500_000, 8_012_345) == (
        "looking up hard negatives among 1,000,000 of 8,012,345 titles, in the 8 nearest of 1,000 "
        "clusters"
    )
    assert said(8_500_000, 999_000) == (
        "looking up hard negatives in the 8 nearest of 999 clusters of titles"
    )
    assert said(30, 8_012_345) == "looking up hard negatives among 1,000,000 of 8,012,345 titles"
    assert said(30, 40) == "looking up hard negatives"


@pytest.mark.parametrize("portions", range(6))
def test_a_look_up_ends_when_it_is_asked_to(portions, monkeypatch):
    corpus, towers = towers_of(made_up_log(n_pairs=100))
    monkeypatch.setattr(hard_negatives, "_TEXTS", 16)
    monkeypatch.setattr(hard_negatives, "_PORTION", 16)
    asked, embedded = [], []
    embed = towers.embed
    monkeypatch.setattr(towers, "embed", lambda *one: embedded.append(one) or embed(*one))

    def stopped():
        asked.append(True)
        return len(asked) > portions

    found = looked_up(corpus, towers, stopped=stopped)
    assert found.shape == (corpus.n_queries, HARD_AMONG) and found[-1].max() == -1
    assert len(embedded) <= portions


def test_how_far_a_look_up_is(monkeypatch):
    corpus, towers = towers_of(made_up_log(n_pairs=100))
    monkeypatch.setattr(hard_negatives, "_PORTION", 16)
    reached = []
    looked_up(corpus, towers, reached=reached.append)
    n = corpus.n_queries
    assert reached == [*range(16, n, 16), n]


def test_a_training_with_drawn_titles_resumes_to_the_same_bits(few_titles, tmp_path):
    """Looked up before mini-batches 10 and 25, of 5 an epoch."""
    log = made_up_log(n_pairs=80)
    settings = {
        "cells": 6, "epochs": 7, "batch_size": 16, "hard_negatives": 2, "learning_rate": 0.05,
        "seed": 3, "checkpoint_seconds": 0,
    }  # fmt: skip
    notes = []
    whole = train(log, threads=1, on_note=notes.append, **settings)
    assert sum(f"among {N_DRAWN} of" in note for note in notes) == 2
    for stop_at in (10, 13, 23, 27):
        seen, output = [], tmp_path / f"{stop_at}"

        def stop(progress, seen=seen, stop_at=stop_at):
            seen.append(progress.epoch_ended)
            if seen.count(False) == stop_at:
                raise KeyboardInterrupt

        with pytest.raises((KeyboardInterrupt, Interrupted)):
            train(log, output=output, threads=1, on_progress=stop, **settings)
        resumed = train(log, output=output, threads=2, resume=True, **settings)
        for side, weights in whole.weights.items():
            for name, array in weights.items():
                assert np.array_equal(resumed.weights[side][name], array), (stop_at, side, name)


@pytest.mark.parametrize("clusters", [False, True])
def test_a_prepared_log_has_the_same_hard_negatives(clusters, few_titles, tmp_path, monkeypatch):
    """Its clicks are mapped from files that cannot be written to."""
    if clusters:
        monkeypatch.setattr(hard_negatives, "EXACT_UP_TO", 0)
    log = made_up_log(n_pairs=80)
    write_click_log(log, tmp_path / "log.tsv")
    prepared = prepare_log(tmp_path / "log.tsv", tmp_path / "prepared")
    settings = {"cells": 6, "epochs": 4, "batch_size": 16, "hard_negatives": 2, "threads": 1}
    expected = train(tmp_path / "log.tsv", **settings).weights
    for side, weights in train(prepared, **settings).weights.items():
        for name, array in weights.items():
            assert np.array_equal(array, expected[side][name]), (side, name)


def test_large_lists_are_in_a_file_without_a_name(tmp_path, monkeypatch):
    def fill(lists, first, end):
        lists[:, 0] = np.arange(first, end)

    found = {}
    for limit in (10, 1 << 24):
        monkeypatch.setattr(growing, "_LIMIT", limit)
        found[limit] = hard_negatives.lists_of_all(40, fill, lambda: False, 7, tmp_path)
    in_file, in_memory = found.values()
    assert isinstance(in_file.base, np.memmap) and in_memory.base is None
    assert not list(tmp_path.iterdir()) and in_file.flags.writeable
    np.testing.assert_array_equal(in_file, in_memory)


def test_lists_are_in_memory_where_the_disk_is_full(tmp_path, monkeypatch):
    def full(file, first, size):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(growing, "_LIMIT", 10)
    monkeypatch.setattr(os, "posix_fallocate", full)
    lists = hard_negatives.lists_of_all(40, lambda *portion: None, lambda: False, 7, tmp_path)
    assert lists.base is None and (lists == -1).all() and lists.shape[0] == 40
