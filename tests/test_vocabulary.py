"""Trigrams and words that a model knows, and what batches make of them."""

from collections import Counter
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentemb import SentenceEncoder, train
from sentemb.data.click_log import ClickLogBuilder
from sentemb.text import vocabulary as vocabulary_module
from sentemb.text.batch import _distinct, batch_of, tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import letter_trigrams

WORDS = st.text(st.sampled_from("abé#ж"), min_size=1, max_size=6)
TEXTS = st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=8)


def features_by_hand(vocabulary, word):
    """Trigrams counted one by one, and the word, as ids."""
    found = Counter(
        vocabulary.trigrams.index(t) for t in letter_trigrams(word) if t in vocabulary.trigrams
    )
    if word in vocabulary.words:
        found[len(vocabulary.trigrams) + vocabulary.words.index(word)] += 1
    return dict(sorted(found.items()))


@given(TEXTS, TEXTS, st.integers(0, 3))
def test_batches_hold_the_features_of_every_word(known, texts, word_features):
    vocabulary = Vocabulary.collect(tokenize(known), word_features=word_features)
    counts = Counter(word for text in known for word in text.split())
    expected = {w for w, n in counts.items() if n >= word_features} if word_features else set()
    assert set(vocabulary.words) == expected
    assert len(vocabulary) == len(set(vocabulary.trigrams)) + len(expected)
    tokens = tokenize(texts)
    batch = vocabulary.batch(texts)
    assert np.all(np.diff(batch.input_rows) > 0)
    for place, word in enumerate(tokens.words):
        span = slice(*batch.feature_offsets[place : place + 2])
        rows = batch.input_rows[batch.feature_ids[span]].tolist()
        found = dict(zip(rows, batch.feature_values[span].tolist(), strict=True))
        assert found == vocabulary.features(word) == features_by_hand(vocabulary, word)
        assert rows == sorted(rows)


@given(TEXTS, TEXTS, st.integers(0, 4), st.integers(0, 3))
def test_portions_and_limits_change_nothing_but_the_number_of_words(known, others, uses, most):
    tokens = [tokenize(known), tokenize(others)]
    whole = Vocabulary.collect(*tokens, word_features=uses)
    counts = Counter(word for text in [*known, *others] for word in text.split())
    frequent = sorted((-n, w) for w, n in counts.items() if uses and n >= uses)
    assert whole.words == [word for _, word in frequent]
    words = [*tokens[0].words, *tokens[1].words, "ééé"]
    with mock.patch.object(vocabulary_module, "_PORTION", 2):
        found = Vocabulary.collect(*tokens, word_features=uses)
        assert (found.trigrams, found.words) == (whole.trigrams, whole.words)
        limited = Vocabulary.collect(*tokens, word_features=uses, max_word_features=most)
        portioned = whole.features_of_all(words)
        batch = batch_of(tokens[0], whole)
    assert limited.words == whole.words[:most] and limited.trigrams == whole.trigrams
    for mine, other in zip(portioned, whole.features_of_all(words), strict=True):
        assert mine.dtype == other.dtype and mine.tolist() == other.tolist()
    for name, other in vars(batch_of(tokens[0], whole)).items():
        assert getattr(batch, name).tolist() == other.tolist()


@given(st.lists(st.integers(0, 9), max_size=30))
def test_features_are_renumbered_the_same_by_sorting_and_by_a_table(numbers):
    ids = np.array(numbers, np.int32)
    sorted_ones, table = _distinct(ids, 1000), _distinct(ids, 10)
    for mine, other in zip(sorted_ones, table, strict=True):
        assert mine.dtype == other.dtype == np.int32 and mine.tolist() == other.tolist()
    assert sorted_ones[0][sorted_ones[1]].tolist() == numbers


def test_frequent_words_come_first_and_ties_by_alphabet():
    vocabulary = Vocabulary.collect(tokenize(["b d c", "c b", "a c"]), word_features=2)
    assert vocabulary.words == ["c", "b"]
    assert vocabulary.trigrams == ["#c#", "#b#", "#a#", "#d#"]
    assert str(vocabulary) == "4 letter trigrams and 2 words"


def a_log():
    builder = ClickLogBuilder()
    for query, title in [("ab cd", "cd ef"), ("ab", "ef gh"), ("gh ab", "ab ab cd"), ("cd", "gh")]:
        builder.add(query, title, clicks=1)
    return builder.build()


def test_words_are_saved(tmp_path):
    settings = {"cells": 3, "epochs": 1, "batch_size": 2}
    model = train(a_log(), output=tmp_path / "m", word_features=3, **settings)
    assert model.vocabulary.words == ["ab", "cd", "gh"]
    read = SentenceEncoder.from_pretrained(tmp_path / "m")
    assert read.vocabulary.words == model.vocabulary.words
    assert np.array_equal(read.encode_query(["ab gh x"]), model.encode_query(["ab gh x"]))


def test_a_word_feature_changes_what_its_word_means(tmp_path):
    plain, with_words = (
        train(a_log(), word_features=least, cells=3, epochs=3, batch_size=2) for least in (0, 1)
    )
    assert plain.vocabulary.words == [] and len(with_words.vocabulary.words) == 4
    row = len(with_words.vocabulary.trigrams) + with_words.vocabulary.words.index("ab")
    before = with_words.encode_query(["ab", "gh"])
    with_words.parameters()["query"]["W1"][:, row] += 1
    after = with_words.encode_query(["ab", "gh"])
    assert np.any(before[0] != after[0]) and np.array_equal(before[1], after[1])


@pytest.mark.filterwarnings("ignore:1 of 1 texts have no words")
def test_pairs_are_scored_as_one_by_one():
    model = train(a_log(), cells=3, epochs=1, batch_size=2)
    queries, docs = ["ab cd", "", "gh"], ["cd ef", "ab ab", "  "]
    q, d = np.array([0, 2, 1, 0, 2]), np.array([1, 1, 0, 2, 0])
    scores = model.score_pairs(queries, docs, q, d)
    assert scores.dtype == np.float64 and scores[2] == scores[3] == 0
    for score, query, doc in zip(scores, q, d, strict=True):
        assert score == pytest.approx(model.score(queries[query], docs[doc]), abs=1e-6)
