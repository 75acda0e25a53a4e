"""Titles by key, the hashes that are keys, and the texts that are hashed."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from sentemb.retrieval.postings import Postings, is_in
from sentemb.text.hashes import hash_of, hashes_of
from sentemb.text.words import exact_key

N = 6
KEYS = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
PAIRS = st.lists(st.tuples(KEYS, st.integers(0, N - 1)), max_size=30)
KNOWN = st.none() | st.lists(KEYS, max_size=5)


def numbers(values):
    return np.array(values, np.int64)


def collected(pairs, n_titles=N, known=None):
    keys, titles = (numbers([pair[side] for pair in pairs]) for side in (0, 1))
    if known is None:
        return Postings.of(keys, titles, n_titles)
    every, number = np.unique([*numbers(known), *keys], return_inverse=True)
    return Postings.of_numbers(every.astype(np.int64), number[len(known) :], titles, n_titles)


def by_key(pairs, known=None):
    """Postings as a dict of sets."""
    titles = {key: set() for key in known or ()}
    for key, title in pairs:
        titles.setdefault(key, set()).add(title)
    return titles


def as_dict(postings):
    """The same of `Postings`; every list ascends."""
    assert (postings.keys[1:] > postings.keys[:-1]).all()
    assert len(postings.offsets) == len(postings.keys) + 1
    lists = [postings.titles[postings.entries(k)].tolist() for k in range(len(postings.keys))]
    assert all(titles == sorted(set(titles)) for titles in lists)
    assert sum(map(len, lists)) == postings.titles.size
    return dict(zip(postings.keys.tolist(), map(set, lists), strict=True))


@given(PAIRS, KNOWN)
def test_pairs_are_collected(pairs, known):
    postings, entry = collected(pairs, known=known)
    assert as_dict(postings) == by_key(pairs, known) and postings.n_titles == N
    found = {
        (int(postings.keys[np.searchsorted(postings.offsets, e, "right") - 1]), title)
        for e, title in enumerate(postings.titles.tolist())
    }
    assert found == set(pairs)
    assert [postings.titles[e] for e in entry.tolist()] == [title for _, title in pairs]


@given(st.lists(KEYS, max_size=5))
def test_a_catalogue_of_one_title_or_of_none(keys):
    postings, entry = collected([(key, 0) for key in keys], n_titles=1)
    assert as_dict(postings) == {key: {0} for key in keys} and postings.n_titles == 1
    assert entry.tolist() == [sorted(set(keys)).index(key) for key in keys]
    assert as_dict(collected([], n_titles=0, known=keys)[0]) == {key: set() for key in keys}


@given(PAIRS, st.lists(KEYS, max_size=4))
@example([(1, 0), (1, 2), (2, 2), (2, 3)], [1, 2])
def test_keys_are_looked_up(pairs, asked):
    postings, _ = collected(pairs)
    expected = by_key(pairs)
    found = postings.numbers(numbers(asked)).tolist()
    for key, number in zip(asked, found, strict=True):
        assert (number >= 0) == (key in expected)
        assert set(postings.titles[postings.entries(number)].tolist()) == expected.get(key, set())
    of_each = [expected.get(key, set()) for key in asked]
    of_all = sorted(set.intersection(*of_each)) if asked else []
    assert postings.holding_all(numbers(asked)).tolist() == of_all


@given(PAIRS, st.lists(st.booleans(), min_size=N, max_size=N))
def test_titles_are_removed(pairs, kept):
    postings, _ = collected(pairs)
    left, stays = postings.without(np.array(kept))
    number = np.cumsum(kept) - 1
    # A key without titles is still there: the log has clicks for it.
    assert as_dict(left) == {
        key: {int(number[t]) for t in titles if kept[t]} for key, titles in by_key(pairs).items()
    }
    assert left.n_titles == sum(kept)
    assert stays.tolist() == [kept[t] for t in postings.titles.tolist()]


@given(PAIRS, PAIRS, st.lists(KEYS, max_size=3))
def test_titles_are_added_behind(pairs, more, known):
    first, second = collected(pairs, known=known)[0], collected(more)[0]
    both, order = first.joined(second)
    shifted = [(key, title + N) for key, title in more]
    assert as_dict(both) == by_key([*pairs, *shifted], known) and both.n_titles == 2 * N
    before = np.concatenate([first.titles, second.titles + N])
    assert before[order].tolist() == both.titles.tolist()


@given(st.lists(st.integers(0, 9), unique=True), st.lists(st.integers(0, 9), unique=True))
def test_which_numbers_are_among_others(few, many):
    found = is_in(numbers(sorted(few)), numbers(sorted(many)))
    assert found.tolist() == [value in many for value in sorted(few)]


# -- hashes ----------------------------------------------------------------------------------------


def fnv1a(text):
    """FNV-1a by its definition."""
    number = 14695981039346656037
    for byte in text.encode("utf-8", "surrogatepass"):
        number = (number ^ byte) * 1099511628211 % 2**64
    return number - 2**64 if number >= 2**63 else number


def test_published_hashes():
    """Of the test vectors of the authors."""
    known = {"": 0xCBF29CE484222325, "a": 0xAF63DC4C8601EC8C, "foobar": 0x85944171F73967E8}
    for text, number in known.items():
        assert hash_of(text) % 2**64 == number


@given(st.lists(st.text(st.characters(), max_size=12), max_size=8), st.integers(0, 60))
@example(["", "é", "\ud800", "上海"], 60)
def test_few_and_many_texts_have_the_hashes_of_the_definition(texts, more):
    texts = [*texts, *(f"text {k}" for k in range(more))]
    assert [hash_of(text) for text in texts] == list(map(fnv1a, texts))
    found = hashes_of(texts)
    assert found.dtype == np.int64 and found.tolist() == list(map(fnv1a, texts))


# -- keys of queries -------------------------------------------------------------------------------


def test_spellings_of_one_query_have_one_key():
    assert exact_key('  "Cafés"  in ROME? ') == exact_key("cafes in rome") == "cafes in rome"
    assert len({exact_key(text) for text in ("c", "c++", "c#", "rome in", "in rome")}) == 5
    assert exact_key("Straße") == exact_key("STRASSE") and exact_key("ﬁx") == exact_key("fix")
    assert exact_key("?!") == "?!" and exact_key(" ") == ""


@given(st.text(max_size=12))
def test_a_key_is_its_own_key(text):
    key = exact_key(text)
    assert exact_key(key) == key == exact_key(f" {text}\t")
