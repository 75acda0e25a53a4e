"""The splitting of texts that drops punctuation around words and composes accents."""

import json
import re
import unicodedata

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_log

from sentemb import SentembError, SentenceEncoder, train
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.retrieval.bm25 import TitleWords
from sentemb.text.words import (
    BARE,
    JOINER,
    LETTERED,
    SPLITTINGS,
    UNSPACED,
    WHITE_SPACE,
    bare_words,
    lettered_words,
    query_key,
    searched_pairs,
    searched_words,
    split_words,
    text_of_words,
)

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
    # One letter, however it is written; i with and without a dot.
    ("I\u0307stanbul IĞDIR ığdır", ["istanbul", "iğdir", "iğdir"]),
    ("ＵＳＢ２ ﬁx ㎏ m² ｶﾞﾗｽ", ["usb2", "fix", "kg", "m2", "ガラ", "ラス"]),
    ("1½ Foo™ Bar® so\u00adft Levi´s ¨x", ["1½", "foo", "bar", "soft", "levi´s", "¨x"]),
    # Punctuation of all scripts.
    ("،مرحبا؟ «x»— ‹y› नमस्ते। 5٪", ["مرحبا", "x", "y", "नमस्ते", "5٪"]),
    # Neighbouring letters, where no blank is written; a sign on a letter belongs to it.
    ("東京都 の IP地址的", ["東京", "京都", "の", "ip", "地址", "址的"]),
    ("コーヒー豆、USB（白）「C++」", ["コー", "ーヒ", "ヒー", "ー豆", "usb", "白", "c++"]),
    ("น้ำใจ", ["น้ํา", "าใ", "ใจ"]),
    ("ខ្មែរ\u200bភាសា", ["ខ្មែរ", "ភាសា"]),
    ("ພາສາ", ["ພາ", "າສ", "ສາ"]),
    ("가나 다라", ["가나", "다라"]),
    # Words remain, whatever is dropped.
    ("「」？ …", ["「」？", "…"]),
    ("\u00ad", ["\u00ad"]),
])  # fmt: skip
def test_edges_are_stripped_and_accents_composed(text, words):
    assert bare_words(text) == words


def test_both_forms_of_a_text_have_the_same_words():
    texts = ["café crème", "Ǆ ﬁ Ａ", "İstanbul I\u0307", "한국어", "ệ̣ a\u0301\u0323"]
    for text in texts:
        for form in ("NFC", "NFD"):
            assert bare_words(unicodedata.normalize(form, text)) == bare_words(text)


LETTERS = [
    *"aA1.,\"' ΣéIİı\u0307日本語東京のカー゛、。「」（）？ｶﾞＡﬁ½²™®´가नि,ก้ำัេខម\u17d2ສາ",
    "\u00ad", "\u200b", "\u3099", "\u2003", "\U00020001", JOINER,
]  # fmt: skip


UNSPACED_LETTERS = re.compile(f"[{UNSPACED}]")


def made_up(rng, n):
    return ["".join(rng.choice(LETTERS, rng.integers(1, 9))) for _ in range(n)]


def test_texts_that_a_model_or_bm25_reads_as_one_are_split_as_one():
    """Held-out queries are not in the training in another spelling."""
    rng, keys = np.random.default_rng(3), {}
    texts = [*made_up(rng, 5_000), "日本語", "日本 本語", "Foo™", "foo", "ıi", "II"]
    for split in (bare_words, searched_pairs, lettered_words, searched_words):
        # A letter beside pairs says where a run ends, which a set of words does not keep.
        kept = (
            tuple
            if split in (lettered_words, searched_words)
            else lambda words: (*sorted({*words}),)
        )
        for text in texts:
            words = split(text)
            if query_key(text) != text:
                seen = keys.setdefault((split, kept(words)), query_key(text))
                assert seen == query_key(text), (text, words)
    assert len(keys) < 4 * len(texts) - 500


@pytest.mark.parametrize("split", [bare_words, lettered_words])
def test_words_of_words_are_these_words(split):
    """Effects of words are measured on texts that are put together from words."""
    text_of = text_of_words if split is lettered_words else " ".join
    for text in made_up(np.random.default_rng(4), 5_000):
        words = split(text)
        assert bool(words) == bool(text.split()) and not any(
            word.split() != [word] for word in words
        )
        assert split(text_of(words)) == words
        for left_out in range(len(words)):
            rest = [*words[:left_out], *words[left_out + 1 :]]
            assert split(text_of(rest)) == rest


def in_pairs(words):
    """What `bare_words` makes of a text, from what `lettered_words` does: without single letters.

    The words of a run are a letter, a pair, a letter, a pair and so on.
    """
    pairs, k = [], 0
    while k < len(words):
        run = k
        while k + 2 < len(words) and words[k + 1] == words[k] + words[k + 2]:
            pairs.append(words[k + 1])
            k += 2
        pairs += words[k : k + 1] if run == k else []
        k += 1
    return pairs


@pytest.mark.parametrize(("lettered", "paired"), [
    (lettered_words, bare_words), (searched_words, searched_pairs),
])  # fmt: skip
def test_letters_stand_beside_the_pairs_and_change_nothing_else(lettered, paired):
    for text in made_up(np.random.default_rng(5), 8_000):
        if JOINER not in text:
            assert in_pairs(lettered(text)) == paired(text), text
        if not UNSPACED_LETTERS.search(unicodedata.normalize("NFKC", text)):
            assert lettered(text) == paired(text), text


@pytest.mark.parametrize(("text", "words"), [
    ("毒キノコ", ["毒", "毒キ", "キ", "キノ", "ノ", "ノコ", "コ"]),
    ("地址 的、IP地", ["地", "地址", "址", "的", "ip", "地"]),
    ("น้ำใจ", ["น้ํ", "น้ํา", "า", "าใ", "ใ", "ใจ", "จ"]),
    ("ខ្មែរ", ["ខ្មែ", "ខ្មែរ", "រ"]),
    (f"東{JOINER}京 東{JOINER}京都 (東{JOINER}京) a{JOINER}b", [
        "東京", "東", "東京", "京", "京都", "都", "東", "東京", "京", "ab"]),
])  # fmt: skip
def test_a_letter_of_a_longer_word_is_a_word_too(text, words):
    assert lettered_words(text) == words


def test_bm25_reads_ascii_as_before_and_other_texts_as_the_model():
    assert searched_words("Cheap-flights: a_b C++") == ["cheap", "flights", "a_b", "c"]
    text = "東京都、IĞDIR ｶﾞﾗｽ ที่ नमस्ते e\u0301 日"
    assert searched_pairs(text) == [
        "東京", "京都", "iğdir", "ガラ", "ラス", "ที่", "नमस्ते", "é", "日",
    ]  # fmt: skip
    assert searched_words(text) == [
        "東", "東京", "京", "京都", "都", "iğdir", "ガ", "ガラ", "ラ", "ラス", "ス",
        "ที่", "नमस्ते", "é", "日",
    ]  # fmt: skip
    titles, _ = TitleWords(["東京都庁", "大阪", "京都の寺町"]).find(["京都"], 3)
    assert titles.tolist() == [[0, 2, -1]]
    titles, _ = TitleWords(["毒キノコ", "キノコ", "消毒"]).find(["毒"], 3)
    assert titles.tolist() == [[2, 0, -1]]


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
    assert model.vocabulary.splitting == LETTERED and model.vocabulary.words == ["ab", "cd"]
    assert not any(set(trigram) & set('"?,.():') for trigram in model.vocabulary.trigrams)
    loaded = SentenceEncoder.from_pretrained(tmp_path / "m", threads=1)
    for one in (model, loaded):
        vectors = one.encode_query(["ab cd", '"ab" cd?', "AB, (cd)"])
        assert np.array_equal(vectors[0], vectors[1]) and np.array_equal(vectors[0], vectors[2])
    config = json.loads((tmp_path / "m/config.json").read_text())
    assert config["splitting"] == LETTERED and config["training"]["splitting"] is None


@pytest.mark.parametrize("how", [{"splitting": WHITE_SPACE}, {"preset": "paper", "cells": 3}])
def test_punctuation_stays_where_that_is_asked_for(how):
    model = train(quoted_log(), **{**TINY, **how})
    assert model.vocabulary.splitting == WHITE_SPACE
    assert any("?" in trigram for trigram in model.vocabulary.trigrams)


@pytest.mark.parametrize("model", ["arc2", "wordembed"])
def test_pair_models_read_words_without_punctuation(model):
    scorer = train(quoted_log(), model=model, epochs=1, threads=1)
    assert scorer.matcher.vocabulary.splitting == LETTERED
    assert scorer.score("ab cd", ["cd"]) == scorer.score('"ab" cd?', ["(cd)."])


def test_the_default_changes_nothing():
    models = [train(quoted_log(), **TINY, splitting=one) for one in (None, LETTERED)]
    for one in models:
        assert one.training["log"] == models[0].training["log"]
        assert np.array_equal(one.encode(["ab cd"]), models[0].encode(["ab cd"]))
    assert [one.training["splitting"] for one in models] == [None, LETTERED]


def test_a_model_that_continues_splits_as_before(tmp_path):
    write_click_log(quoted_log(), tmp_path / "log.tsv")
    train(quoted_log(), **TINY, splitting=BARE, output=tmp_path / "m")
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
    with pytest.raises(
        SentembError, match="splitting is 'letters'; give one of bare-letters, bare, white-space"
    ):
        train(quoted_log(), **TINY, splitting="letters")
