"""Words found in a buffer by a kernel: those of `str.split`, looked up in a table of words."""

import itertools
import sys

import naive
import numba
import numpy as np
import pytest
from helpers import VARIANTS, made_up_model
from hypothesis import given
from hypothesis import strategies as st

from sentemb.kernels import tokens
from sentemb.models.words import word_memory
from sentemb.models.words.word_memory import WordMemory
from sentemb.retrieval import tokenizing as many
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.word_bytes import edges_of, word_bytes, words_of
from sentemb.text.words import SPLITTINGS, searched_words, split_words

# None is in a higher plane.
SPACES = [chr(code) for code in range(1 << 16) if chr(code).isspace()]
# Letters whose lower case depends on their neighbours, or is longer, or takes more bytes; marks
# that are ignored there; what does not pair up; what ends strings elsewhere.
ODD = [
    *"aA1.ΣσςİıẞßǄȺΐ日本の、カーกั้\u0301\u00ad\u2019\u1680\u180e\u200b\ufeff\0\x1b\x7f",
    "\ud800",
    "\udfff",
    "😀",
    "𐐀",
]


# Edges of words, and signs that stay.
PUNCTUATION = "\"'`([{<)]}>.,:;!?\u00b4\u201c\u00bb+-#_"
UNSET = -(10**9)


class Table:
    """A table of words, with the words that were put into it."""

    def __init__(self, seed=5, slots=4, longest=100, split=split_words):
        self.edges = edges_of(split)
        self.parts = np.zeros((slots, 4), np.int64), np.empty(0, np.uint8)
        self.seed, self.longest, self.used, self.n_words = seed, longest, 0, 0

    @property
    def words(self):
        return words_of(self.parts[1][: self.used])

    def add(self, text):
        """The words by token, those in ``others`` included."""
        _, found, n_new, _ = self.find(text, text.count(b"\n"))
        sizes = self.n_words + n_new, self.used + len(text)
        self.parts = tokens.with_room(*self.parts, *sizes)
        index, others = np.full(len(text) // 2, UNSET, np.int32), np.empty(len(text), np.uint8)
        offsets, added = np.empty_like(found), (self.used, self.n_words, self.seed, self.longest)
        self.used, self.n_words, n, n_tokens = tokens.add_words(
            text, self.edges, *self.parts, *added, others, 0, index, offsets
        )
        assert np.array_equal(offsets, found) and n_tokens == offsets[-1]
        assert (index[n_tokens:] == UNSET).all()
        assert self.n_words == len(self.words) and 2 * self.n_words <= len(self.parts[0])
        others = words_of(others[:n])
        # Not found in the table: -1 - j.
        return [self.words[i] if i >= 0 else others[-1 - i] for i in index[:n_tokens]], others

    def find(self, text, n_texts, known=()):
        is_known = np.array([word in known for word in self.words], np.bool_)
        index = np.full(len(text) // 2, UNSET, np.int32)
        offsets = np.empty(n_texts + 1, np.int64)
        n, *counts = tokens.find_words(
            text, self.edges, *self.parts, self.seed, is_known, index, offsets
        )
        assert (index[n:] == UNSET).all()
        return [index[:n].tolist(), offsets, *counts]


def random_texts(rng, count):
    """Texts of letters from all planes, with all white space and all that is odd."""
    planes = rng.integers(0, sys.maxunicode + 1, 40)
    letters = [*ODD, *ODD, *SPACES, *"\n\n  ", *PUNCTUATION, *map(chr, planes)]
    ascii_letters = [*"aB7   \n\t\x1c", *PUNCTUATION]
    return [
        "".join(rng.choice(np.array(of, object), rng.integers(0, 30)))
        for of in itertools.islice(itertools.cycle([letters, ascii_letters]), count)
    ]


def test_every_character_separates_words_or_does_not_as_in_split():
    every = "x".join(map(chr, range(sys.maxunicode + 1)))
    text = word_bytes([every])
    assert Table(longest=0).add(text)[0] == split_words(every)
    assert len(split_words(every)) == len(SPACES) + 1
    for space in SPACES:
        assert Table().add(word_bytes([f"{space}a{space}{space}b", space]))[0] == ["a", "b"]


@pytest.mark.parametrize("splitting", SPLITTINGS)
def test_random_texts_have_the_words_of_the_splitting(splitting):
    rng, split = np.random.default_rng(len(splitting)), SPLITTINGS[splitting]
    table = Table(split=split)
    for _ in range(40):
        texts = random_texts(rng, 12)
        text = word_bytes(texts, split)
        assert text.count(b"\n") == len(texts)
        expected = [word for one in texts for word in split(one)]
        known = set(expected[::3])
        before = {word: row for row, word in enumerate(table.words)}
        for rows in (before, None):
            rows = rows or {word: row for row, word in enumerate(table.words)}
            ours, theirs = (
                table.find(text, 12, known),
                naive.find_words(texts, split, rows, known & {*rows}),
            )
            assert all(np.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
            found, others = table.add(text)
            assert found == expected and not others
    assert len(set(table.words)) == len(table.words) > 200
    assert word_bytes([], split) == b""


def test_a_joined_text_is_lower_cased_like_each_text():
    """A final sigma depends on the letters around it, over characters that are ignored."""
    texts = ["ΑΣ", "Σ", "'Σ", "ΑΣ\u00ad", "\u0301Σ", "Α", "\u00adΣΑ", "İΣ", "Σ\n", "\nΑΣ\nΣ", ".Σ."]
    for first in texts:
        for second in texts:
            lines = word_bytes([first, second]).decode().split("\n")
            assert [line.split() for line in lines[:2]] == [split_words(first), split_words(second)]


def test_long_words_are_left_out_by_their_letters_and_not_by_their_bytes():
    table = Table(longest=10)
    words = ["日" * 10, "日" * 11, "a" * 11, "b" * 10, "a" * 11]
    found, others = table.add(word_bytes([" ".join(words)]))
    assert found == words and others == ["日" * 11, "a" * 11, "a" * 11]
    assert table.words == ["日" * 10, "b" * 10]


end_and_hash = numba.njit(lambda text, start, seed: tokens._end_and_hash(text, start, seed))


def hash_of(word, seed):
    text = word_bytes([word])
    end, hashed = end_and_hash(text, 0, seed)
    assert end == len(text) - 1
    return hashed


def colliding_words(seed, bits, count):
    """Words whose hashes have the same last ``bits``."""
    numbers = np.arange(10**6)
    letters = [
        (numbers // 10**place % 10 + ord("0")).astype(np.uint64) for place in range(5, -1, -1)
    ]
    hashed = np.full(numbers.size, seed, np.uint64)
    for letter in letters:
        hashed = (hashed ^ letter) * tokens._FACTOR
    hashed = (hashed ^ hashed >> tokens._HALF) * tokens._MIX
    hashed ^= hashed >> tokens._HALF
    assert hash_of("000345", seed) == hashed[345].astype(np.int64)
    (chosen,) = np.nonzero(hashed & np.uint64((1 << bits) - 1) == np.uint64(3))
    return [f"{number:06}" for number in chosen[:count]]


def test_words_whose_slots_are_taken_are_found_or_left_out():
    words = colliding_words(9, 9, 150)
    table = Table(seed=9, slots=512)
    for _ in range(2):  # what was left out is left out again
        found, others = table.add(word_bytes([" ".join(words)]))
        assert found == words and others == words[tokens._TRIES :]
        index, _, n_new, _ = table.find(word_bytes([" ".join(words)]), 1)
        assert index == [*range(tokens._TRIES), *[-1] * (150 - tokens._TRIES)]
        assert n_new == 150 - tokens._TRIES
    # They part when the table grows, and none changes its row.
    more = [f"m{k}" for k in range(400)]
    table.add(word_bytes([" ".join(more)]))
    assert len(table.parts[0]) == 2048
    index, *_ = table.find(word_bytes([" ".join([*words[: tokens._TRIES], *more])]), 1)
    assert index[: tokens._TRIES] == [*range(tokens._TRIES)]
    rows = {word: row for row, word in enumerate(table.words)}
    assert index[tokens._TRIES :] == [rows.get(word, -1) for word in more] and len(rows) > 500


def test_an_equal_hash_is_not_enough():
    table = Table(slots=8)
    table.add(word_bytes(["ab"]))
    entries, letters = table.parts
    (old,) = np.flatnonzero(entries[:, 3])
    for other, same in (("ac", False), ("abc", False), ("ab", True)):
        moved = np.zeros_like(entries)
        hashed = hash_of(other, table.seed)
        moved[hashed % 8] = hashed, *entries[old, 1:]
        table.parts = moved, letters
        index, *_ = table.find(word_bytes([other]), 1)
        assert index == [0 if same else -1]


def test_hashes_depend_on_the_seed():
    assert len({hash_of("word", seed) for seed in range(50)}) == 50
    model = made_up_model(VARIANTS[1], ["ab cd"])
    memories = [WordMemory(model.encoder, model.vocabulary, model.weights["query"]) for _ in "ab"]
    assert memories[0]._seed != memories[1]._seed


@pytest.mark.filterwarnings("ignore:.* no word that the model knows")
@pytest.mark.parametrize("splitting", SPLITTINGS)
def test_a_memory_finds_the_words_of_many_texts(splitting, monkeypatch):
    """In portions, on several threads, with words that find no slot, and long ones."""
    monkeypatch.setattr(word_memory, "_TEXTS", 16)
    monkeypatch.setattr(word_memory.os, "urandom", bytes)
    rng = np.random.default_rng(3)
    model = made_up_model(VARIANTS[1], ["abcd ΣΣ w12 123456 890123 日日", "a1.ς"], dtype=np.float32)
    vocabulary = model.vocabulary
    vocabulary.splitting, vocabulary.split = splitting, SPLITTINGS[splitting]
    weights = model.weights["query"]
    memory = WordMemory(model.encoder, vocabulary, weights)
    bad = colliding_words(0, 12, 150)
    with Workers(3) as workers:
        for turn in range(6):
            texts = [*random_texts(rng, 60), " ".join(bad), "x" * 101, "", f"{'é' * 101} w12"]
            found = memory.look_up(texts, workers if turn % 2 else None)
            batch = vocabulary.batch(texts)
            P = model.encoder.project(weights, batch, workers)
            assert np.array_equal(found.P[found.word_index], P[batch.word_index])
            assert np.array_equal(found.offsets, batch.offsets)
            known = np.diff(batch.feature_offsets) > 0
            own = [known[batch.word_index[a:b]].sum() for a, b in itertools.pairwise(batch.offsets)]
            assert found.n_known.tolist() == own
            assert memory.look_up(["w12"]).n_known is None
    assert len(memory.look_up([]).word_index) == 0


# ASCII with all that may end a word, and letters whose treatment needs Python.
ASCII_TEXTS = st.text(st.characters(max_codepoint=127), max_size=12)
OTHER_TEXTS = st.text(st.sampled_from([*ODD, *SPACES, *"aB_9.-'"]) | st.characters(), max_size=12)


def assert_same_tokens(found, expected):
    assert list(found.words) == expected.words
    for name in ("word_index", "offsets"):
        ours, theirs = getattr(found, name), getattr(expected, name)
        assert ours.dtype == theirs.dtype and np.array_equal(ours, theirs)


@pytest.mark.parametrize("split", [*SPLITTINGS.values(), searched_words, str.split])
@given(texts=st.lists(ASCII_TEXTS | OTHER_TEXTS, max_size=8))
def test_many_texts_have_the_tokens_of_each_text(split, texts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many, "_FEW", 0)
        patch.setattr(many, "_TEXTS", 3)
        patch.setattr(many, "_CHARACTERS", 9)
        assert_same_tokens(many.tokenize_all(texts, split), tokenize(texts, split))


def test_many_long_texts_take_little_memory(monkeypatch):
    slots, with_room = [], many.with_room

    def recorded(*arguments):
        entries, letters = with_room(*arguments)
        slots.append(len(entries))
        return entries, letters

    monkeypatch.setattr(many, "with_room", recorded)
    texts = ["a b " * 2000] * 200 + ["c"] * 4000
    assert_same_tokens(many.tokenize_all(texts, split_words), tokenize(texts, split_words))
    assert max(slots) < 2**20  # 2**21 with room for all words of 1,024 such texts


def test_many_texts_with_words_that_find_no_slot(monkeypatch):
    monkeypatch.setattr(many, "_FEW", 0)
    monkeypatch.setattr(many.os, "urandom", bytes)
    texts = [" ".join(colliding_words(0, 12, 150)), "w1 w2 w1"]
    assert_same_tokens(many.tokenize_all(texts, searched_words), tokenize(texts, searched_words))
