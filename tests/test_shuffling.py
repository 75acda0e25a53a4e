"""The order of an epoch, window by window."""

import os
import signal

import naive
import numpy as np
import pytest
from helpers import made_up_log
from test_neighbours_order import hard_titles_of

from sentemb import prepare_log, train
from sentemb.data.click_log import write_click_log
from sentemb.training.batches import shuffling
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.neighbour_batches import Order
from sentemb.training.batches.shuffling import Shuffle
from sentemb.training.stopping import Interrupted
from sentemb.training.towers.settings import Settings


@pytest.fixture
def short_windows(monkeypatch):
    """Logs of more than 50 pairs are shuffled in windows of 5 blocks of 7 pairs."""
    for name, value in (("AT_ONCE", 50), ("BLOCK", 7), ("WINDOW", 5)):
        monkeypatch.setattr(shuffling, name, value)


def windows_of(shuffle):
    return [shuffle.window(number).tolist() for number in range(shuffle.starts.size - 1)]


def test_a_log_of_millions_of_pairs_is_shuffled_at_once():
    shuffle = Shuffle(1000, 3, 4)
    assert shuffle.starts.tolist() == [0, 1000] and shuffling.AT_ONCE == 2**22
    assert windows_of(shuffle) == [np.random.default_rng([3, 4]).permutation(1000).tolist()]


@pytest.mark.parametrize("n_pairs", [51, 55, 70, 98, 105, 175, 176, 200])
def test_windows_are_those_of_the_naive_twin(n_pairs, short_windows):
    shuffle = Shuffle(n_pairs, 1, 2)
    windows = windows_of(shuffle)
    assert windows == naive.shuffled_windows(n_pairs, 1, 2, block=7, window=5)
    assert shuffle.starts.tolist() == np.cumsum([0, *map(len, windows)]).tolist()
    assert sorted(pair for window in windows for pair in window) == list(range(n_pairs))
    assert windows == windows_of(Shuffle(n_pairs, 1, 2))
    for other in ((2, 2), (1, 3)):
        assert windows_of(Shuffle(n_pairs, *other)) != windows


@pytest.mark.parametrize("neighbours", [False, True])
def test_parts_of_any_size_give_the_same_order(neighbours, short_windows):
    corpus = Corpus(made_up_log(200), Settings())
    lists = hard_titles_of(corpus)

    def order():
        if neighbours:
            return Order.of_neighbours(corpus, lists, 8, 0, 2)
        return Order.mixed(corpus, 0, 2)

    n = corpus.n_pairs
    whole = order().part(0, n)
    assert sorted(whole.pairs.tolist()) == list(range(n))
    for size in (1, 6, 35, 64, 150):
        parts = order()
        found = [parts.part(first, min(first + size, n)) for first in range(0, n, size)]
        for k, array in enumerate(whole):
            assert np.concatenate([part[k] for part in found]).tolist() == array.tolist()
    later = order().part(100, 130)  # as after --resume
    assert later.pairs.tolist() == whole.pairs[100:130].tolist()
    assert later.leads.tolist() == whole.leads[100:130].tolist()


def test_groups_are_within_a_window(short_windows):
    corpus = Corpus(made_up_log(200), Settings())
    lists = hard_titles_of(corpus)
    order = Order.of_neighbours(corpus, lists, 8, 0, 2)
    shuffle = corpus.order(0, 2)
    groups = 0
    for number, pairs in enumerate(windows_of(shuffle)):
        found = order.part(*shuffle.starts[number : number + 2].tolist())
        assert found.leads[0] and sorted(found.pairs.tolist()) == sorted(pairs)
        for group in np.split(found.pairs, np.flatnonzero(found.leads)[1:]):
            groups += len(group) > 1
            leader = corpus.query_index[group[0]]
            assert set(corpus.title_index[group[1:]]) <= set(lists[leader].tolist())
    assert groups > 10


def test_a_title_that_no_pair_of_the_window_has_changes_nothing():
    """With all pairs in one window the groups are those of the whole log, as they always were."""
    corpus = Corpus(made_up_log(100, skipped=True), Settings())
    lists = hard_titles_of(corpus)
    found = Order.of_neighbours(corpus, lists, 8, 5, 2).part(0, corpus.n_pairs)
    key = [5, 2, 0x6E656172]
    pairs = np.random.default_rng([5, 2]).permutation(corpus.n_pairs)
    drawn = np.random.SeedSequence(key).generate_state(1, np.uint64)[0]
    groups = naive.group_pairs(pairs, corpus.query_index, corpus.title_index, lists, 8, int(drawn))
    places = np.random.default_rng(key).permutation(len(groups))
    expected = [pair for k in np.argsort(places) for pair in groups[k]]
    assert found.pairs.tolist() == expected
    assert np.count_nonzero(found.leads) == len(groups)


def test_a_training_in_windows_has_the_same_bits_from_memory_and_disk(tmp_path, short_windows):
    path = tmp_path / "log.tsv"
    write_click_log(made_up_log(200), path)
    prepare_log(path, tmp_path / "out")
    chosen = {"cells": 6, "epochs": 4, "batch_size": 16, "threads": 1, "hard_negatives": 2}

    def weights(source, name, **more):
        train(source, output=tmp_path / name, **{**chosen, **more})
        return (tmp_path / name / "model.safetensors").read_bytes()

    whole = weights(path, "memory")
    assert weights(tmp_path / "out", "disk", threads=2) == whole
    for batches in (5, 20, 33):
        seen = []

        def stop(progress, seen=seen, batches=batches):
            seen.append(progress)
            if len(seen) == batches:
                os.kill(os.getpid(), signal.SIGINT)

        with pytest.raises(Interrupted):
            weights(path, f"stopped{batches}", on_progress=stop)
        assert weights(tmp_path / "out", f"stopped{batches}", resume=True) == whole
