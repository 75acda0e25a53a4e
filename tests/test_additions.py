"""What joins the click log of a training: pairs of an older log, and titles without clicks."""

import re

import numpy as np
import pytest
from helpers import made_up_log

from sentemb import SentembError, train
from sentemb.cli.train import _log_and_share
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.system.parallel import Workers
from sentemb.training.additions import Additions
from sentemb.training.corpus import Corpus
from sentemb.training.hard_negatives import look_up
from sentemb.training.mini_batches import draw_candidates
from sentemb.training.settings import Settings
from sentemb.training.two_towers import TwoTowers

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


def added(log=NEW, replay=None, catalogue=None, seed=0):
    additions = Additions.of(replay, catalogue)
    return additions.with_catalogue(additions.with_replay(log, seed, False, print))


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


def test_titles_of_a_catalogue_become_titles_without_clicks(tmp_path):
    (tmp_path / "titles.tsv").write_text("1\tw\n2\tx\n3\tv\n4\tw\n")
    for catalogue in (tmp_path / "titles.tsv", ["w", "x", " v\n", "w"]):
        log = added(catalogue=catalogue)
        assert log.titles == ["x", "y", "w", "v"]
        assert clicks_of(log) == clicks_of(NEW)
    both = added(replay=OLD, catalogue=["w", "z"])
    assert both.titles == ["x", "y", "z", "w"]


def test_titles_without_clicks_are_negatives_and_give_features():
    log = added(made_up_log(), catalogue=["zqx zqx", "zqx"])
    settings = Settings(negatives="corpus", n_negatives=20, word_features=3)
    corpus = Corpus(log, settings)
    assert "zqx" in corpus.vocabulary.words and "#zq" in corpus.vocabulary.trigrams
    pairs = np.arange(corpus.n_pairs)
    _, drawn = draw_candidates(corpus, pairs, corpus.title_index, settings, 0, 0)
    assert {corpus.n_titles - 1, corpus.n_titles - 2} <= set(drawn.tolist())
    model = train(made_up_log(), **TINY, catalogue=["zqx zqx", "zqx"])
    assert "zqx" in model.vocabulary.words


def test_hard_negatives_are_looked_up_among_titles_without_clicks():
    log = made_up_log()
    settings = {"model": "bag", "cells": 4}
    # To a bag, a text twice is the same as once.
    near = [f"{title} {title}" for title in log.titles]
    corpus = Corpus(added(log, catalogue=near), Settings(**settings))
    towers = TwoTowers(corpus, Settings(**settings), updates=1)
    with Workers(1) as workers:
        lists = look_up(corpus, towers, workers, lambda: False)
    assert (lists >= len(log.titles)).any(axis=1).all()
    assert lists.max() < corpus.n_titles


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
    other = train(log, **settings, catalogue=["zqx"])
    assert other.training["dev"] != model.training["dev"]


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
    with pytest.raises(SentembError, match="replay and catalogue are for click logs"):
        train(pairs, model="arc1", replay=OLD)


def test_a_pair_model_takes_both():
    model = train(
        made_up_log(), model="wordembed", epochs=1, threads=1, replay=(OLD, 0.5), catalogue=["zqx"]
    )
    assert model.training["pairs"] == made_up_log().clicks.size + 2


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
    assert _log_and_share(value) == wanted
