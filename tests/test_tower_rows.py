"""A tower trains the rows of the features that its texts have, and the model has all rows."""

import numpy as np
import pytest
from helpers import made_up_log

from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.tower_rows import TowerRows
from sentemb.training.towers.two_towers import TwoTowers
from sentemb.training.trainer import train

TINY = {"cells": 4, "epochs": 2, "batch_size": 8, "hard_negatives": 0}


def log_of_two_languages():
    """Queries and titles that have few trigrams in common."""
    builder = ClickLogBuilder()
    for query, title in [
        ("aab aac", "xyx abcd"), ("aac", "xyz"), ("aad abcd", "yyz xyx"), ("both", "zyx"),
    ]:  # fmt: skip
        builder.add(query, title)
    return builder.build()


def test_a_text_has_places_among_the_rows_of_its_tower():
    corpus = Corpus(log_of_two_languages(), Settings(cells=2))
    for side, n_texts in (("query", corpus.n_queries), ("document", corpus.n_titles)):
        rows = TowerRows(corpus.seen(side), len(corpus.vocabulary))
        assert rows.seen.size < rows.n_features
        batch = corpus.texts(side, np.arange(n_texts, dtype=np.int32)[::-2])
        own = rows.texts(batch)
        assert np.array_equal(rows.seen[own.input_rows], batch.input_rows)
        assert own.word_index is batch.word_index and np.all(np.diff(own.input_rows) > 0)


def test_a_table_is_taken_apart_and_put_together():
    table = np.arange(12.0, dtype=np.float32).reshape(6, 2)
    rows = TowerRows(np.array([1, 2, 5], np.int32), 6)
    empty = rows.whole(np.ones((3, 2), np.float32))
    assert empty.tolist() == [[0, 0], [1, 1], [1, 1], [0, 0], [0, 0], [1, 1]]
    own = rows.take(table)
    assert own.tolist() == [[2, 3], [4, 5], [10, 11]]
    assert rows.whole(-own).tolist() == [[0, 1], [-2, -3], [-4, -5], [6, 7], [8, 9], [-10, -11]]
    every = TowerRows(np.arange(6, dtype=np.int32), 6)
    assert every.take(table) is table and not np.shares_memory(every.whole(table), table)


@pytest.mark.parametrize("optimiser", ["adam", "nesterov"])
def test_a_tower_holds_the_rows_that_it_meets_and_no_others(optimiser):
    settings = Settings(cells=4, optimiser=optimiser, hard_negatives=0)
    corpus = Corpus(log_of_two_languages(), settings)
    towers = TwoTowers.of(corpus, settings, updates=4)
    for name, array in towers.state().items():
        side, *_, kind = name.split(".")
        if kind in ("table", "synced", "lead"):
            assert len(array) == corpus.seen(side).size < len(corpus.vocabulary), name
    for side, weights in towers.weights().items():
        assert len(weights["table"]) == len(corpus.vocabulary)
        met = np.flatnonzero(np.any(weights["table"] != 0, axis=1))
        assert np.array_equal(met, corpus.seen(side))


@pytest.mark.parametrize("shared_towers", [False, True])
@pytest.mark.parametrize("optimiser", ["adam", "nesterov"])
def test_rows_that_a_log_does_not_meet_stay_those_of_the_start(optimiser, shared_towers):
    given = {**TINY, "optimiser": optimiser, "shared_towers": shared_towers}
    first = train(made_up_log(), **given)
    again = train(log_of_two_languages(), start_from=first, **given)
    corpus = Corpus(log_of_two_languages(), Settings.of(**given), first.vocabulary, grow=True)
    kept = again.vocabulary.rows_of(first.vocabulary)
    for side in ("query", "document"):
        old, new = first.weights[side]["table"], again.weights[side]["table"][kept]
        met = np.isin(kept, corpus.seen(side))
        assert met.any() and np.array_equal(new[~met], old[~met])
        assert np.any(old[~met] != 0), "or nothing could be lost"


def test_embeddings_are_those_of_the_whole_model():
    settings = Settings(cells=4, hard_negatives=0)
    log = log_of_two_languages()
    first = train(made_up_log(), **TINY)
    for start in (None, Start.of(first)):
        known = None if start is None else first.vocabulary
        corpus = Corpus(log, settings, known, grow=start is not None)
        towers = TwoTowers.of(corpus, settings, updates=4, start=start)
        model = SentenceEncoder(towers.encoder, corpus.vocabulary, towers.weights(), threads=1)
        for side, texts, encode in (
            ("query", log.queries, model.encode_query),
            ("document", log.titles, model.encode_document),
        ):
            with Workers(1) as workers:
                (batch,) = corpus.portions(side)
                found = towers.embed(side, batch, workers)
            np.testing.assert_allclose(found, encode(texts), atol=1e-6)
