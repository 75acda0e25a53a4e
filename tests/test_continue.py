"""Trainings that continue from a model with new clicks: features appended, what has changed."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_judged_set, made_up_log

from sentemb import SentembError, SentenceEncoder, train
from sentemb.cli import main
from sentemb.data.click_log import ClickLog, ClickLogBuilder, write_click_log
from sentemb.models.towers import make_encoder
from sentemb.models.towers.registry import ENCODERS
from sentemb.models.towers.towers import Towers
from sentemb.retrieval.nearest import TitleVectors
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import letter_trigrams
from sentemb.training.batches.additions import Additions
from sentemb.training.batches.corpus import Corpus
from sentemb.training.dev import JudgedDev
from sentemb.training.stopping import Interrupted
from sentemb.training.towers.before_and_after import FirstTitles
from sentemb.training.towers.settings import CONTINUED, Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.two_towers import TwoTowers

OLD = made_up_log()
TINY = {"epochs": 1, "batch_size": 16, "threads": 1, "hard_negatives": 0}
# zq, zqx and zy hold no trigram of OLD; "zqx" is used three times.
NEW_PAIRS = [("zqx ab", "abc zqx"), ("abc", "zqx d"), ("zy dab", "bad"), ("cab", "dab cd")]


def new_log():
    builder = ClickLogBuilder()
    for query, title in NEW_PAIRS:
        builder.add(query, title)
    return builder.build()


def small(model, shared, word_features=2, seed=0):
    """A model with random weights and the features of OLD."""
    own = {"cells": 4} | ({"hidden": 5} if "hidden" in ENCODERS.entry(model).names else {})
    encoder = make_encoder(model, **own)
    known = Corpus(OLD, Settings(word_features=word_features)).vocabulary
    rng = np.random.default_rng(seed)
    sides = ("query",) if shared else ("query", "document")
    weights = {side: encoder.initialise(len(known), rng) for side in sides}
    towers = Towers.of(encoder, known, weights)
    return SentenceEncoder(encoder, known, towers.weights, threads=1)


def before_the_first_update(start_from, log, **given):
    start = Start.of(start_from)
    settings = Settings.of(**start.settings(None, given))
    corpus = Corpus(log, settings, start.towers.vocabulary, grow=start.grows(settings.model))
    return corpus, TwoTowers.of(corpus, settings, updates=1, start=start)


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("model", ["lstm", "bilstm", "rnn", "irnn", "bag", "dssm", "clsm", "dan"])
def test_features_keep_their_rows_to_the_bit_and_new_ones_start_at_zero(model, shared):
    old = small(model, shared)
    corpus, towers = before_the_first_update(old, new_log(), word_features=3)
    known, grown = old.vocabulary, corpus.vocabulary
    assert grown.trigrams[: len(known.trigrams)] == known.trigrams
    assert grown.words[: len(known.words)] == known.words and known.words
    assert grown.words[len(known.words) :] == ["zqx"]
    words = {word for pair in NEW_PAIRS for text in pair for word in text.split()}
    found = {trigram for word in words for trigram in letter_trigrams(word)}
    added = grown.trigrams[len(known.trigrams) :]
    assert set(added) == found - set(known.trigrams) >= {"#zq", "zqx", "qx#", "#zy", "zy#"}
    assert towers.sides == tuple(old.towers.each)
    for side, weights in towers.weights().items():
        before = old.weights[side]
        for name in weights.keys() - {"table"}:
            assert np.array_equal(weights[name], before[name])
        for names, own in ((known.trigrams, "_trigram_ids"), (known.words, "_word_ids")):
            for name in names:
                row = weights["table"][getattr(grown, own)[name]]
                assert np.array_equal(row, before["table"][getattr(known, own)[name]])
        new = np.setdiff1d(np.arange(len(grown)), grown.rows_of(known))
        assert new.size == len(added) + 1 and not weights["table"][new].any()
    texts = [*OLD.queries, "zqx ab", "abc"]
    now = SentenceEncoder(
        old.encoder, grown, Towers.of(old.encoder, grown, towers.weights()).weights, threads=1
    )
    np.testing.assert_array_equal(now.encode_query(texts), old.encode_query(texts))


def test_a_log_without_new_features_leaves_the_vocabulary():
    old = small("rnn", shared=False)
    corpus, towers = before_the_first_update(old, OLD, word_features=2)
    assert corpus.vocabulary.trigrams == old.vocabulary.trigrams
    assert corpus.vocabulary.words == old.vocabulary.words
    assert np.array_equal(towers.weights()["query"]["table"], old.weights["query"]["table"])


@pytest.mark.parametrize(("words", "given", "added"), [
    (2, {}, ["zqx"]),
    (0, {}, []),
    (0, {"word_features": 3}, ["zqx"]),
    (2, {"word_features": 0}, []),
])  # fmt: skip
def test_word_features_says_from_how_many_uses_a_new_word_is_one(words, given, added):
    old = small("rnn", shared=False, word_features=words)
    corpus, _ = before_the_first_update(old, new_log(), **given)
    assert corpus.vocabulary.words == [*old.vocabulary.words, *added]


def test_the_splitting_of_the_model_is_kept():
    old = small("rnn", shared=False)
    known = Vocabulary(old.vocabulary.trigrams, old.vocabulary.words, "words")
    plain = SentenceEncoder(old.encoder, known, old.weights, threads=1)
    builder = ClickLogBuilder()
    builder.add("abc (zqx)", "zqx!")
    builder.add("zqx", "bad")
    corpus, _ = before_the_first_update(plain, builder.build())
    assert corpus.vocabulary.splitting == "words"
    assert corpus.vocabulary.words[-1] == "zqx" and "qx)" not in corpus.vocabulary.trigrams


def test_trained_rows_of_new_features_move_and_those_of_absent_features_stay():
    old = small("rnn", shared=False)
    model = train(new_log(), **TINY, start_from=old)
    known, grown = old.vocabulary, model.vocabulary
    rows, absent = grown.rows_of(known), np.ones(len(known), bool)
    corpus, _ = before_the_first_update(old, new_log())
    absent[np.isin(rows, corpus.seen("query"))] = False
    trained, before = model.weights["query"]["table"], old.weights["query"]["table"]
    assert absent.any() and np.array_equal(trained[rows[absent]], before[absent])
    assert trained[grown._word_ids["zqx"]].any()
    assert (trained[rows[~absent]] != before[~absent]).any(axis=1).all()


def test_continuing_has_defaults_of_its_own():
    old = small("rnn", shared=False)
    settings = Settings.of(**Start.of(old).settings(None, {}))
    assert {name: getattr(settings, name) for name in CONTINUED} == CONTINUED
    given = {"epochs": 5, "learning_rate": 0.5}
    settings = Settings.of(**Start.of(old).settings(None, given))
    assert (settings.epochs, settings.learning_rate) == (5, 0.5)
    settings = Settings.of(**Start.of(old).settings(None, {"optimiser": "nesterov"}))
    assert (settings.epochs, settings.learning_rate) == (30, 0.1)
    other = Start.of(small("bag", shared=False))
    settings = Settings.of(**other.settings(None, {"model": "rnn"}))
    assert (settings.epochs, settings.word_features) == (Settings().epochs, 0)


def test_a_bag_with_trigrams_starts_another_encoder_as_before():
    bag = small("bag", shared=False)
    corpus, _ = before_the_first_update(bag, new_log(), model="rnn")
    assert len(corpus.vocabulary) == len(bag.vocabulary)
    with pytest.raises(SentembError, match="word_features does not apply"):
        train(new_log(), **TINY, start_from=bag, model="rnn", word_features=2)


def test_a_log_in_another_language_is_refused():
    builder = ClickLogBuilder()
    builder.add("жук", "дом")
    builder.add("лес", "кот")
    with pytest.raises(SentembError, match="no letter trigram of the log is in the vocabulary of"):
        train(builder.build(), **TINY, start_from=small("rnn", shared=False))


def test_a_stopped_training_resumes_to_the_same_bits(tmp_path):
    first = train(OLD, **TINY, cells=3, output=tmp_path / "first")
    settings = {**TINY, "epochs": 2, "batch_size": 2, "start_from": tmp_path / "first"}
    whole = train(new_log(), **settings, output=tmp_path / "whole")

    def stop(progress):
        if progress.epoch == 2:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(new_log(), output=tmp_path / "m", checkpoint_seconds=0, on_progress=stop, **settings)
    resumed = train(new_log(), output=tmp_path / "m", resume=True, **{**settings, "threads": 2})
    assert resumed.vocabulary.words == whole.vocabulary.words
    for side, weights in whole.towers.each.items():
        for name, array in weights.items():
            assert np.array_equal(array, resumed.towers.each[side][name])
    again = SentenceEncoder.from_pretrained(tmp_path / "whole", threads=1)
    assert np.array_equal(again.encode(["zqx ab"]), whole.encode(["zqx ab"]))
    assert len(whole.vocabulary) > len(first.vocabulary)


# -- what has changed ----------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("of_dev", [False, True])
def test_first_titles_are_those_of_a_search_through_all_titles(shared, of_dev):
    model = small("rnn", shared)
    queries = ["abc", "cab d", "dd"] if of_dev else None
    with Workers(1) as workers:
        corpus = Corpus(OLD, Settings(shared_towers=shared), model.vocabulary)
        firsts = FirstTitles(corpus, queries, 0, workers)
        found = firsts.of(model.towers)
    texts = queries or OLD.queries
    wanted, _ = TitleVectors(model, OLD.titles).find(texts, 10)
    assert sorted(map(tuple, found)) == sorted(map(tuple, wanted))


def test_dev_figures_and_first_titles_before_and_after_are_noted(tmp_path):
    old = train(OLD, **TINY, cells=3)
    dev = made_up_judged_set(OLD)
    notes = []
    settings = {**TINY, "epochs": 2, "start_from": old}
    model = train(new_log(), **settings, dev=dev, on_note=notes.append)
    before, after = re.fullmatch(
        r"dev before: ndcg@1 ([\d.]+), .*; after: ndcg@1 ([\d.]+), .*", notes[-2]
    ).groups()
    of = JudgedDev(dev).measure
    assert float(before) == pytest.approx(of(old)["ndcg@1"], abs=6e-4)
    assert float(after) == pytest.approx(of(model)["ndcg@1"], abs=6e-4)
    same, count, shared = re.fullmatch(
        r"the first title stayed the same for ([\d.]+)% of ([\d,]+) dev queries; of the first 4, "
        r"([\d.]+)% stayed",
        notes[-1],
    ).groups()
    titles = new_log().titles
    firsts = [TitleVectors(one, titles).find(dev.queries, 10)[0] for one in (old, model)]
    assert int(count) == len(dev.queries)
    assert float(same) == pytest.approx(100 * np.mean(firsts[0][:, 0] == firsts[1][:, 0]), abs=0.06)
    assert float(shared) == 100  # there are fewer than ten titles
    notes.clear()
    train(new_log(), **settings, on_note=notes.append)
    assert "of 4 queries of the log" in notes[-1] and not any("dev" in note for note in notes)


def test_replay_knows_renamed_products_by_their_ids(tmp_path):
    old, titles = tmp_path / "old.tsv", {"p1": "New name", "p2": "Kept"}
    old.write_text("tap\tOld name\t2\tp1\nhose\tKept\t1\tp2\nlamp\tGone\t1\tp3\nx\tKept\n")
    log = ClickLog.from_pairs([("tap", "New name")])
    both = Additions.of(old, titles).with_replay(log, 0, False, print)
    assert both.titles == ["New name", "Kept", "Gone"] and both.clicks.tolist() == [3, 1, 1, 1]
    assert Additions.of(old, None).with_replay(log, 0, False, print).titles[1] == "Old name"


def test_the_command_says_what_has_changed(tmp_path):
    train(OLD, **TINY, cells=3, output=tmp_path / "old")
    write_click_log(new_log(), tmp_path / "new.tsv")
    write_click_log(OLD, tmp_path / "old.tsv")
    arguments = [
        "train", tmp_path / "new.tsv", "--start-from", tmp_path / "old", "-o", tmp_path / "m",
        "--epochs", 1, "--replay", f"{tmp_path / 'old.tsv'}:0.5",
    ]  # fmt: skip
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == 0, result.output
    assert "words of the log are new and are added to the vocabulary of old" in result.stderr
    assert "the first title stayed the same for" in result.stderr
    record = json.loads((tmp_path / "m/config.json").read_text())["training"]
    assert record["start_from"]["name"] == "old"
    assert record["pairs"] == len(NEW_PAIRS) + round(OLD.clicks.size / 2)
