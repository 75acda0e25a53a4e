"""Marked words: what BM25 and names find in a title, at the right places."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sentemb.cli.rankings import line_of
from sentemb.retrieval.marked_words import MarkedWords
from sentemb.retrieval.words_and_stems import words_of
from sentemb.system.terminal import BOLD, PLAIN, EscapedOutput
from sentemb.text.words import folded_words, searched_words


def marked(query, title, stem=None, letters=True):
    places = MarkedWords(query, words_of(stem, letters)).of(title)
    return [title[begin:end] for begin, end in places]


@pytest.mark.parametrize(
    ("query", "title", "right"),
    [
        ("red hat", "Red hats, a RED hat (red)", ["Red", "RED", "hat", "red"]),
        ("cafe", "Café Müller: cafe\u0301", ["Café", "cafe\u0301"]),
        ("café", "Cafe", ["Cafe"]),
        ("STRASSE", "Lange Straße 5", ["Straße"]),
        ("usb", "ＵＳＢ充電器、白", ["ＵＳＢ"]),
        ("東京", "東京都 北京", ["東京", "京"]),
        ("白", "ＵＳＢ充電器、白", ["白"]),
        ("สวย", "เสื้อสวย", ["สวย"]),
        ("c++", "C++ and C", ["C", "C"]),
        ("acme", "Acme® tools", ["Acme®"]),
        ("ΟΔΟΣ", "οδος Οδός", ["οδος", "Οδός"]),
        ("zzz", "Red hat", []),
        ("", "Red hat", []),
        ("red", "", []),
    ],
)
def test_words_of_the_query_are_marked(query, title, right):
    assert marked(query, title) == right


def test_stems_are_marked():
    pytest.importorskip("Stemmer")
    assert marked("running shoe", "Shoes for a run", "english") == ["Shoes", "run"]


def test_letters_count_where_bm25_counts_them():
    assert marked("東京", "東京都 北京", letters=False) == ["東京"]


TEXTS = st.text(st.sampled_from("ab Éé\u0301ß_-,.®\u200b京都東がﾊﾞﾞกำ½ıİΣς🙂"), max_size=12)


@given(TEXTS, TEXTS, st.booleans())
def test_nothing_is_marked_without_a_common_word(query, title, letters):
    words = words_of(None, letters)
    places = MarkedWords(query, words).of(title)
    ends = [0, *(end for place in places for end in place)]
    assert ends == sorted(ends) and ends[-1] <= len(title)
    for begin, end in places:
        assert begin < end
    has_common = not set(searched_words(query)).isdisjoint(searched_words(title))
    has_folded = not set(folded_words(query)).isdisjoint(folded_words(title))
    assert has_common or has_folded or not places


@given(TEXTS)
def test_a_title_as_its_own_query_is_marked_wherever_it_has_words(title):
    text = "".join(title[begin:end] for begin, end in MarkedWords(title, searched_words).of(title))
    assert bool(text) == bool(searched_words(title))


def test_a_terminal_shows_marked_words_bold():
    shown = io.BytesIO()
    EscapedOutput(shown).write(f"{BOLD}a{PLAIN}\x1b[1m".encode())
    assert shown.getvalue() == b"\x1b[1ma\x1b[0m\\x1b[1m"
    line = line_of("1  ", "Red hat for hens", "", 25, [[4, 7], [12, 16]])
    assert line == f"1  Red {BOLD}hat{PLAIN} for {BOLD}hens{PLAIN}"
    assert line_of("1  ", "Red hat", "", None, [[4, 7]]) == "1  Red hat"
    cut = line_of("1  ", "A title of many words, cut", "", 0, [[2, 7], [23, 26]])
    assert cut == f"1  A {BOLD}title{PLAIN} of many wor…"
