"""What a training reads in addition to its log: pairs of an older log, and a catalogue."""

import re

import numpy as np
import pytest
from helpers import made_up_judged_set, made_up_log

from sentemb import SentembError, train
from sentemb.cli.ranker import log_and_share
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.training.batches.additions import Additions

TINY = {"epochs": 1, "batch_size": 16, "threads": 1, "hard_negatives": 0, "cells": 2}


def log_of(*pairs):
    builder = ClickLogBuilder()
    for query, title, clicks, *skipped in pairs:
        builder.add(query, title, clicks, skipped)
    return builder.build()


def clicks_of(log):
    """The clicks of each pair and its skipped titles."""
    found = {}
    for pair, (query, title) in enumerate(zip(log.query_index, log.title_index, strict=True)):
        span = slice(*log.skipped_offsets[[pair, pair + 1]])
        skipped = {log.titles[title] for title in log.skipped_index[span]}
        found[log.queries[query], log.titles[title]] = int(log.clicks[pair]), skipped
    return found


NEW = log_of(("a", "x", 2, "y"), ("b", "y", 1))
OLD = log_of(("a", "x", 5, "z"), ("c", "z", 1), ("b", "x", 3))


def added(log=NEW, replay=None, seed=0):
    return Additions.of(replay, None).with_replay(log, seed, False, print)


def test_all_pairs_of_the_older_log_join_and_clicks_of_the_same_pair_are_summed():
    assert clicks_of(added(replay=OLD)) == {
        ("a", "x"): (7, {"y", "z"}), ("b", "y"): (1, set()), ("c", "z"): (1, set()),
        ("b", "x"): (3, set()),
    }  # fmt: skip
    assert clicks_of(added(replay=[("c", "z"), ("c", "z")]))["c", "z"] == (2, set())
    # The new log comes first.
    assert added(replay=OLD).queries == ["a", "b", "c"]


@pytest.mark.parametrize("share", [0.01, 0.3, 0.5, 1])
def test_a_share_is_drawn_by_the_seed(share):
    old = made_up_log()
    n = old.clicks.size
    wanted = max(1, round(share * n))
    log = log_of(("zz", "zy", 1))
    drawn = [clicks_of(added(log, (old, share), seed=seed)) for seed in (0, 0, 1)]
    assert len(drawn[0]) == 1 + wanted
    assert drawn[0] == drawn[1] and (drawn[0] != drawn[2] or share == 1)
    everything = clicks_of(old)
    assert all(everything[pair] == one for pair, one in drawn[0].items() if pair != ("zz", "zy"))


def test_queries_are_held_out_of_replayed_pairs_and_the_catalogue_is_ranked():
    log, old, notes = made_up_log(), made_up_log(seed=1), []
    settings = {**TINY, "dev": "20%", "replay": old, "on_note": notes.append}
    model = train(log, **settings)
    queries = len({*log.queries, *old.queries})
    held_out, pairs = re.match(
        rf"(\d+) of {queries} queries are held out for dev, with (\d+) pairs", notes[0]
    ).groups()
    assert int(held_out) > len(log.queries) / 5
    assert model.training["pairs"] == added(log, old).clicks.size - int(pairs)
    # A title that every query finds first: a title of the log in other letters.
    copies = [title.upper() for title in log.titles]
    other = train(log, **settings, catalogue=copies)
    assert other.training["log"] == model.training["log"]
    mrr = [one.history[0]["dev"]["mrr@10"] for one in (model, other)]
    assert mrr[1] < mrr[0]


@pytest.mark.parametrize("share", [0, 1.1, -1, float("nan"), "half", True])
def test_a_wrong_share_is_refused(share):
    with pytest.raises(SentembError, match="the share of the log to replay is"):
        train(NEW, **TINY, replay=(OLD, share))


@pytest.mark.parametrize(("given", "message"), [
    ({"catalogue": ["a", " "]}, "title 2 of the catalogue is empty"),
    ({"catalogue": "nowhere.tsv"}, "nowhere.tsv: cannot be read: No such file"),
    ({"catalogue": "a title"}, "a title: cannot be read: No such file"),
    ({"catalogue": 3}, "give a list of texts, not int"),
    ({"replay": "nowhere.tsv"}, "nowhere.tsv: cannot be read: No such file"),
    ({"replay": 3}, "replay must be a path, a ClickLog, .* not int"),
    ({"replay": (OLD, 0.5, 1)}, "replay has 3 parts; give a log, or"),
])  # fmt: skip
def test_additions_that_cannot_be_read_are_refused(given, message):
    with pytest.raises(SentembError, match=message):
        train(NEW, **TINY, **given)


def test_labelled_pairs_have_no_additions():
    pairs = LabelledPairs(np.array([1, 0]), ["a", "b"], ["c", "d"])
    with pytest.raises(SentembError, match="replay is for click logs"):
        train(pairs, model="arc1", replay=OLD)


def test_a_pair_model_replays_and_ranks_no_catalogue():
    model = train(made_up_log(), model="wordembed", epochs=1, threads=1, replay=(OLD, 0.5))
    assert model.training["pairs"] == made_up_log().clicks.size + 2
    with pytest.raises(SentembError, match="catalogue is not for pair models"):
        train(made_up_log(), model="wordembed", catalogue=["a"])


def test_a_catalogue_needs_held_out_clicks():
    for dev in (None, made_up_judged_set(made_up_log())):
        with pytest.raises(SentembError, match="the catalogue is ranked for held-out clicks; give"):
            train(NEW, **TINY, catalogue=["a"], dev=dev)


def test_an_older_log_is_part_of_what_is_resumed(tmp_path):
    write_click_log(OLD, tmp_path / "old.tsv")
    train(NEW, **TINY, replay=(tmp_path / "old.tsv", 0.5), output=tmp_path / "m")
    train(NEW, **TINY, replay=(OLD, 0.5), output=tmp_path / "m", resume=True)
    with pytest.raises(SentembError, match="was trained on another click log"):
        train(NEW, **TINY, replay=OLD, output=tmp_path / "m", resume=True)


@pytest.mark.parametrize(("value", "wanted"), [
    ("old.tsv", ("old.tsv", 1.0)),
    ("old.tsv:0.5", ("old.tsv", 0.5)),
    ("C:\\logs\\old.tsv", ("C:\\logs\\old.tsv", 1.0)),
    ("C:\\logs\\old.tsv:.25", ("C:\\logs\\old.tsv", 0.25)),
    ("a:b.tsv", ("a:b.tsv", 1.0)),
])  # fmt: skip
def test_the_option_is_split_at_the_last_colon_before_a_number(value, wanted):
    assert log_and_share(value) == wanted
