"""The splitting of texts that drops punctuation around words and composes accents."""

import json
import unicodedata

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log

from sentemb import SentembError, SentenceEncoder, train
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.text.words import BARE, SPLITTINGS, WHITE_SPACE, bare_words, split_words

TINY = {"epochs": 1, "batch_size": 16, "threads": 1, "hard_negatives": 0, "cells": 3}


@pytest.mark.parametrize(("text", "words"), [
    ('"cheap flights"', ["cheap", "flights"]),
    ("Shoes, (red); [new]: {x}!?", ["shoes", "red", "new", "x"]),
    ("“Büro” «été» ‚so‘ „da“ ¿qué? ¡ya! so…", ["büro", "été", "so", "da", "qué", "ya", "so"]),
    # What may belong to a word stays.
    ("C++ C# .NET --all -v @me $5 50% 15.6\" a.b, o'neil", [
        "c++", "c#", ".net", "--all", "-v", "@me", "$5", "50%", "15.6", "a.b", "o'neil"]),
    ("... ? \" x", ["...", "?", '"', "x"]),
    ("", []),
    ("cafe\u0301", ["caf\u00e9"]),
    ("\u212bngstro\u0308m", ["\u00e5ngstr\u00f6m"]),
    ("I\u0307stanbul", ["i\u0307stanbul"]),
])  # fmt: skip
def test_edges_are_stripped_and_accents_composed(text, words):
    assert bare_words(text) == words


def test_both_forms_of_a_text_have_the_same_words():
    texts = ["café crème", "Ǆ ﬁ Ａ", "İstanbul I\u0307", "한국어", "ệ̣ a\u0301\u0323"]
    for text in texts:
        for form in ("NFC", "NFD"):
            assert bare_words(unicodedata.normalize(form, text)) == bare_words(text)


def test_a_text_has_as_many_words_as_at_white_space():
    log = made_up_log()
    texts = [*log.queries, "? ( ) x", '"" a,']
    for text in texts:
        assert len(SPLITTINGS[BARE](text)) == len(split_words(text))


def quoted_log():
    builder = ClickLogBuilder()
    for query, title in [('"ab cd"', "ab, cd."), ("ab?", "(ab)"), ("cd", "ef: ab"), ("x", "cd")]:
        builder.add(query, title)
    return builder.build()


def test_a_model_reads_texts_as_it_was_trained_to(tmp_path):
    model = train(quoted_log(), **TINY, output=tmp_path / "m")
    assert model.vocabulary.splitting == BARE and model.vocabulary.words == ["ab", "cd"]
    assert not any(set(trigram) & set('"?,.():') for trigram in model.vocabulary.trigrams)
    loaded = SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)
    for one in (model, loaded):
        vectors = one.encode_query(["ab cd", '"ab" cd?', "AB, (cd)"])
        assert np.array_equal(vectors[0], vectors[1]) and np.array_equal(vectors[0], vectors[2])
    config = json.loads((tmp_path / "m/config.json").read_text())
    assert config["splitting"] == BARE and config["training"]["splitting"] is None


@pytest.mark.parametrize("how", [{"splitting": WHITE_SPACE}, {"preset": "paper", "cells": 3}])
def test_punctuation_stays_where_that_is_asked_for(how):
    model = train(quoted_log(), **{**TINY, **how})
    assert model.vocabulary.splitting == WHITE_SPACE
    assert any("?" in trigram for trigram in model.vocabulary.trigrams)


@pytest.mark.parametrize("model", ["arc2", "wordembed"])
def test_pair_models_read_words_without_punctuation(model):
    scorer = train(quoted_log(), model=model, epochs=1, threads=1)
    assert scorer.matcher.vocabulary.splitting == BARE
    assert scorer.score("ab cd", ["cd"]) == scorer.score('"ab" cd?', ["(cd)."])


def test_the_default_changes_nothing():
    models = [train(quoted_log(), **TINY, splitting=one) for one in (None, BARE)]
    for one in models:
        assert one.training["log"] == models[0].training["log"]
        assert np.array_equal(one.encode(["ab cd"]), models[0].encode(["ab cd"]))
    assert [one.training["splitting"] for one in models] == [None, BARE]


def test_a_model_that_continues_splits_as_before(tmp_path):
    write_click_log(quoted_log(), tmp_path / "log.tsv")
    train(quoted_log(), **TINY, output=tmp_path / "m")
    settings = {key: value for key, value in TINY.items() if key != "cells"}
    further = train(quoted_log(), **settings, start_from=tmp_path / "m")
    assert further.vocabulary.splitting == BARE
    same = train(quoted_log(), **settings, start_from=tmp_path / "m", splitting=BARE)
    assert np.array_equal(same.encode(["ab"]), further.encode(["ab"]))
    result = CliRunner().invoke(main, [
        "train", str(tmp_path / "log.tsv"), "--start-from", str(tmp_path / "m"),
        "--splitting", WHITE_SPACE, "-o", str(tmp_path / "n"),
    ])  # fmt: skip
    assert result.exit_code == 1
    assert "m has splitting bare, not white-space; leave splitting out" in result.stderr
    with pytest.raises(SentembError, match="splitting is 'letters'; give one of bare, white-space"):
        train(quoted_log(), **TINY, splitting="letters")
