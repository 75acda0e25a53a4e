"""Mini-batches of neighbours: pairs whose titles are hard negatives of each other's queries."""

import naive
import numpy as np
import pytest
from helpers import made_up_log

from sentemb.errors import SentembError
from sentemb.kernels.neighbour_groups import group_pairs
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import mini_batch
from sentemb.training.batches.neighbour_batches import Order
from sentemb.training.towers.settings import (
    CONTINUED,
    NEIGHBOURS,
    OF_NEIGHBOURS,
    OPTIMISERS,
    PRESETS,
    Settings,
)
from sentemb.training.towers.two_tower_task import TwoTowerTask


def grouped_by_the_kernel(order, queries, titles, n_titles, hard_titles, size, key):
    pairs, groups = np.empty_like(order), np.empty_like(order)
    count = group_pairs(
        pairs, groups, order, queries, titles, n_titles, hard_titles, size, np.uint64(key)
    )
    assert np.array_equal(np.unique(groups), np.arange(count))
    return [pairs[groups == number].tolist() for number in range(count)]


@pytest.mark.parametrize("size", [1, 4, 30])
def test_groups_are_those_of_the_naive_twin(size):
    rng = np.random.default_rng(size)
    n_pairs, n_queries, n_titles = 200, 60, 40
    queries = rng.integers(n_queries, size=n_pairs).astype(np.int32)
    titles = rng.integers(n_titles, size=n_pairs).astype(np.int32)
    hard_titles = rng.integers(n_titles, size=(n_queries, 9)).astype(np.int32)
    hard_titles[::3, 4:] = -1
    hard_titles[1] = -1
    order = rng.permutation(n_pairs)
    found = grouped_by_the_kernel(order, queries, titles, n_titles, hard_titles, size, 2**64 - 5)
    assert found == naive.group_pairs(order, queries, titles, hard_titles, size, 2**64 - 5)
    assert sorted(pair for group in found for pair in group) == list(range(n_pairs))
    assert max(map(len, found)) == min(size, 9)
    for leader, *others in found:
        assert set(titles[others]) <= set(hard_titles[queries[leader]].tolist())
        assert np.unique(titles[[leader, *others]]).size == 1 + len(others)
        assert leader == min([leader, *others], key=order.tolist().index)


def hard_titles_of(corpus):
    """Ten titles for every query, and twenty empty places."""
    rng = np.random.default_rng(0)
    lists = np.full((corpus.n_queries, 30), -1, np.int32)
    for query in range(corpus.n_queries):
        own = corpus.query_titles[corpus.query_offsets[query] : corpus.query_offsets[query + 1]]
        others = np.setdiff1d(np.arange(corpus.n_titles), own)
        lists[query, :10] = rng.choice(others, 10, replace=False)
    return lists


def test_an_epoch_of_neighbours_keeps_groups_together_and_has_every_pair_once():
    corpus = Corpus(made_up_log(200), Settings())
    lists = hard_titles_of(corpus)
    orders = [
        Order.of_neighbours(corpus, lists, size, seed, epoch).part(0, corpus.n_pairs)
        for size, seed, epoch in ((8, 0, 2), (8, 0, 2), (8, 0, 3), (8, 1, 2), (1, 0, 2))
    ]
    for order in orders:
        assert sorted(order.pairs.tolist()) == list(range(corpus.n_pairs)) and order.leads[0]
    for mine, other in zip(orders[0], orders[1], strict=True):
        assert np.array_equal(mine, other)
    for order in orders[2:]:
        assert not np.array_equal(order.pairs, orders[0].pairs)
    assert orders[4].leads.all() and Order.mixed(corpus, 0, 2).part(0, 9).leads.all()
    starts = np.flatnonzero(orders[0].leads)
    assert starts.size < 100, "or there are hardly any groups"
    for group in np.split(orders[0].pairs, starts[1:]):
        leader = corpus.query_index[group[0]]
        assert set(corpus.title_index[group[1:]]) <= set(lists[leader].tolist())


def test_only_the_first_pair_of_a_group_draws_hard_negatives():
    settings = Settings(hard_negatives=2)
    corpus = Corpus(made_up_log(200), settings)
    lists = hard_titles_of(corpus)
    order = Order.of_neighbours(corpus, lists, 8, 0, 2).part(16, 48)
    arguments = corpus, order.pairs, settings, 2, 1, lists
    plain, of_leads, of_all = (
        mini_batch(*arguments[:5], *others).titles.n_texts
        for others in ((), (lists, order.leads), (lists,))
    )
    assert plain < of_leads <= plain + 2 * np.count_nonzero(order.leads)
    assert of_leads < of_all == mini_batch(*arguments, np.ones(32, bool)).titles.n_texts


def test_mini_batches_are_of_neighbours_from_the_first_look_up_on():
    settings = Settings(cells=4, batch_size=32, epochs=4)
    corpus = Corpus(made_up_log(200), settings)
    with Workers(1) as workers:
        task = TwoTowerTask(corpus, settings, workers, lambda note: None)

        def pairs_of(epoch):
            task.before_epoch(epoch, lambda: False)
            found = [task.plan(epoch, step)[0].weights.size for step in range(task.steps)]
            assert sum(found) == corpus.n_pairs
            return task.epochs.order(epoch, task.hard_titles).part(0, corpus.n_pairs)

        mixed = Order.mixed(corpus, settings.seed, 1).part(0, corpus.n_pairs)
        assert np.array_equal(pairs_of(1).pairs, mixed.pairs)
        third = pairs_of(2)
        order = Order.of_neighbours(corpus, task.hard_titles, NEIGHBOURS, settings.seed, 2)
        expected = order.part(0, corpus.n_pairs)
        assert np.array_equal(third.pairs, expected.pairs) and not third.leads.all()
        # Another task that continues in the middle of the epoch has the same order.
        other = TwoTowerTask(corpus, settings, workers, lambda note: None)
        other.plan(2, 0)
        other.restore(task.state() | task.lasting())
        assert np.array_equal(
            other.epochs.order(2, other.hard_titles).part(0, corpus.n_pairs).pairs, third.pairs
        )


def test_neighbours_are_the_default_with_hard_negatives_adam_and_softmax():
    usual = Settings()
    assert usual.group_size == NEIGHBOURS > 1
    assert {name: getattr(usual, name) for name in OF_NEIGHBOURS} == OF_NEIGHBOURS
    for given in (
        {"group_size": 1},
        {"hard_negatives": 0},
        {"epochs": 2},
        {"n_negatives": 4},
        {"optimiser": "nesterov"},
        {"objective": "hinge"},
    ):
        settings = Settings(**given)
        assert settings.group_size == 1
        for name in OF_NEIGHBOURS.keys() - given.keys():
            assert getattr(settings, name) == OPTIMISERS[settings.optimiser][name]
    assert Settings.of("paper").group_size == 1
    assert Settings.of("large").group_size == PRESETS["large"]["group_size"]
    assert Settings(**CONTINUED).group_size == 1
    slow = Settings(optimiser="nesterov", group_size=4, hard_negatives=1)
    assert slow.learning_rate == OPTIMISERS["nesterov"]["learning_rate"]
    with pytest.raises(SentembError, match="groups are made of hard negatives"):
        Settings(hard_negatives=0, group_size=8)
