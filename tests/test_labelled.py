"""Labelled and scored texts: what is read, what is refused and where."""

import gzip

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sentemb import SentembError
from sentemb.data.labelled import ValuedTexts, read_labelled, read_valued, score_of


def written(folder, content):
    path = folder / "set.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_labels_of_texts_and_of_pairs(tmp_path):
    one = read_labelled(written(tmp_path, "\ufeff1\tA good film .\r\n0\t dull \n"))
    assert (one.values, one.texts, one.second_texts) == (
        ["1", "0"],
        ["A good film .", "dull"],
        None,
    )
    assert one.sides == (one.texts,) and len(one) == 2 and repr(one) == "ValuedTexts(2 texts)"
    two = read_labelled(written(tmp_path, "NEUTRAL\ta b\tc\n not so \td\te f\n"))
    assert two.values == ["NEUTRAL", "not so"]
    assert two.sides == (["a b", "d"], ["c", "e f"])
    assert repr(two) == "ValuedTexts(2 pairs of texts)"


def test_scores_and_compressed_files(tmp_path):
    path = tmp_path / "set.tsv.gz"
    path.write_bytes(gzip.compress(b"3.6\ta\tb\n-1e0\tc\td\n"))
    assert read_valued(path, score_of, "score", (2,)).values == [3.6, -1.0]


BAD = {
    "one column": ("1\ta\nb\n", ":2: 1 column; write label<TAB>text as in line 1"),
    "a blank line": ("1\ta\n\n2\tb\n", ":2: 1 column"),
    "too many": ("1\ta\tb\tc\n", ":1: 4 columns; write label<TAB>text or label<TAB>text<TAB>text"),
    "first pairs, then texts": ("1\ta\tb\n0\tc\n", ":2: 2 columns; .* as in line 1"),
    "no label": ("1\ta\n \tb\n", ":2: the label is empty; write"),
    "no text": ("1\ta\n0\t \n", ":2: the text is empty"),
    "NUL": ("1\ta\n0\tb\0\n", ":2:4: a NUL character; save"),
    "not UTF-8": (b"1\ta\n0\t\xff\n", ":2:3: not valid UTF-8; save"),
    "a very long text": ("1\t" + "w " * 10_001, ":1: the text has 10001 words"),
    "nothing": ("", ": the input is empty; give label<TAB>text or label<TAB>text<TAB>text lines"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_lines_are_refused_with_their_place(content, message, tmp_path):
    with pytest.raises(SentembError, match=f"^{tmp_path}/set.tsv{message}"):
        read_labelled(written(tmp_path, content))


@pytest.mark.parametrize("field", ["", "x", "nan", "inf", "1_0", "٣", "1,5", "9" * 400])
def test_what_is_not_a_score(field, tmp_path):
    with pytest.raises(SentembError, match=r"set\.tsv:1: the score .* is not a number; correct"):
        read_valued(written(tmp_path, f"{field}\ta\tb\n"), score_of, "score", (2,))


def test_only_the_allowed_number_of_texts(tmp_path):
    with pytest.raises(SentembError, match=":1: 2 columns; write score<TAB>text<TAB>text, no"):
        read_valued(written(tmp_path, "1\ta\n"), score_of, "score", (2,))


texts = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\n\r\t\ufeff"))
texts = texts.map(str.strip).filter(bool)


@settings(max_examples=40)
@given(st.lists(st.tuples(texts, texts, texts), min_size=1), st.booleans())
def test_what_is_written_is_read(tmp_path_factory, lines, pairs):
    lines = [line[: 3 if pairs else 2] for line in lines]
    path = written(tmp_path_factory.mktemp("set"), "".join("\t".join(x) + "\n" for x in lines))
    found = read_labelled(path)
    assert list(zip(found.values, *found.sides, strict=True)) == lines


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_number_is_a_score(number):
    assert score_of(repr(number)) == number


@pytest.mark.parametrize(
    "parts", [([], []), (["1"], ["a", "b"]), (["1"], ["a"], []), (["1"], ["a"], ["b", "c"])]
)
def test_lists_of_different_lengths(parts):
    with pytest.raises(SentembError, match="give the same number of each, at least one"):
        ValuedTexts(*parts)


def test_the_fingerprint_sees_everything():
    sets = [
        ValuedTexts(["1"], ["a"]), ValuedTexts(["2"], ["a"]), ValuedTexts([1.0], ["a"]),
        ValuedTexts(["1"], ["b"]), ValuedTexts(["1"], ["a"], ["b"]),
        ValuedTexts(["1"] * 2, ["a"] * 2),
    ]  # fmt: skip
    assert len({some.fingerprint() for some in sets}) == len(sets)
    assert sets[0].fingerprint() == ValuedTexts(["1"], ["a"]).fingerprint()


@pytest.mark.parametrize("values", [["a", 1.0], [1.0, "a"], [1.0, float("nan")], [float("inf"), 1]])
def test_values_are_all_labels_or_all_finite_numbers(values):
    with pytest.raises(SentembError, match=r"labels .* only, or finite numbers only"):
        ValuedTexts(values, ["w1", "w2"])
