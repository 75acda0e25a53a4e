"""Word vectors: every format read back, every fault named, folders written whole, nearest words."""

import gzip
import hashlib
import inspect
import itertools
import json
import os
import pickle
import shutil
import signal
import struct
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import failing_calls, run_python, tree
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.vectors import word_vectors
from sentemb.models.vectors.counts import counts_of, read_counts
from sentemb.models.vectors.formats import text, word2vec_binary
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.skip_gram import train_word_vectors
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.writing import write_word_vectors

WORDS = ["the", "of", ". . .", "1984", "naïve", "new york"]
SHORT = ["the", "of", "1984", "naïve"]
VECTORS = np.random.default_rng(1).standard_normal((6, 3)).astype(np.float32)


# -- formats as others write them ------------------------------------------------------------------


def glove(words, vectors):
    rows = zip(words, vectors, strict=True)
    return b"".join(f"{word} {' '.join(map(repr, row.tolist()))}\n".encode() for word, row in rows)


def headed(words, vectors):
    return f"{len(words)} {vectors.shape[1]}\n".encode() + glove(words, vectors)


def original(words, vectors):
    """As word2vec.c writes text: a blank after the last number."""
    return headed(words, vectors).replace(b"\n", b" \n").replace(b" \n", b"\n", 1)


def binary(words, vectors, end=b""):
    rows = zip(words, vectors.astype("<f4"), strict=True)
    body = (word.encode() + b" " + row.tobytes() + end for word, row in rows)
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(body)


def original_binary(words, vectors):
    return binary(words, vectors, b"\n")


FORMATS = [
    ("v.txt", glove),
    ("v.txt", headed),
    ("v.vec", original),
    ("v.bin", binary),
    ("v.bin", original_binary),
]
# All formats are unpacked by the same code, so two of them are packed here.
FILES = [*FORMATS, ("v.txt.gz", headed), ("v.bin.gz", original_binary)]


def write(path, raw):
    path.write_bytes(gzip.compress(raw, mtime=0) if path.name.endswith(".gz") else raw)
    return path


def same(found, words, vectors, counts=None):
    assert found.words == list(words)
    assert np.array_equal(found.vectors, vectors)
    assert (found.counts is None) == (counts is None)
    assert counts is None or np.array_equal(found.counts, counts)


@st.composite
def tables(draw, is_text, least_dim):
    """Distinct words that the format can hold, and finite float32 vectors."""
    letter = st.characters(exclude_categories=["Cs"], exclude_characters="\n\0")
    word = st.text(letter | st.sampled_from("ab1.\t "), min_size=1, max_size=6)
    words = draw(st.lists(word, min_size=1, max_size=8, unique=True))
    if is_text:
        words = [one for one in words if one.encode().strip() == one.encode()]
        words = [one for one in words if not ends_in_a_number(one.encode())]
        assume(words and not words[0].startswith("\ufeff"))
    else:
        words = [one for one in words if " " not in one]
    assume(words)
    dim = draw(st.integers(least_dim, 4))
    number = st.floats(-(2.0**39), 2.0**39, width=32)
    rows = st.lists(number, min_size=dim, max_size=dim)
    vectors = draw(st.lists(rows, min_size=len(words), max_size=len(words)))
    return words, np.array(vectors, np.float32)


def ends_in_a_number(word):
    try:
        float(word.split()[-1])
    except ValueError:
        return False
    return len(word.split()) > 1


@pytest.mark.parametrize(("name", "form"), FILES)
@given(data=st.data())
@settings(max_examples=15)
def test_formats_are_read_back(tmp_path_factory, name, form, data):
    words, vectors = data.draw(tables(".bin" not in name, 2 if form is glove else 1))
    path = write(tmp_path_factory.getbasetemp() / name, form(words, vectors))
    notes = []
    same(read_word_vectors(path, note=notes.append), words, vectors)
    assert notes == []


@given(tables(is_text=False, least_dim=1), st.booleans(), st.sampled_from(["float32", "float16"]))
@settings(max_examples=25)
def test_a_folder_is_read_back(tmp_path_factory, table, counted, dtype):
    words, vectors = table
    if dtype == "float16":
        vectors = np.clip(vectors, -60_000, 60_000).astype(np.float16)
    counts = np.arange(len(words)) * 2**40 if counted else None
    path = tmp_path_factory.getbasetemp() / "folder"
    given_vectors = WordVectors(words, vectors, counts, source="a\n“b”", licence="c")
    write_word_vectors(given_vectors, path, force=path.exists(), dtype=dtype)
    found = read_word_vectors(path, verify=True)
    same(found, words, vectors, counts)
    assert isinstance(found.vectors, np.memmap) and found.vectors.dtype == dtype
    assert (found.name, found.source, found.licence) == ("folder", "a\n“b”", "c")
    assert len(found.sha256) == 64


def test_equal_vectors_have_equal_folders_and_others_have_other_hashes(tmp_path):
    for name, dtype in (("a", "float32"), ("b", "float32"), ("c", "float16")):
        write_word_vectors(WordVectors(WORDS, VECTORS), tmp_path / name, dtype=dtype)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    hashes = [read_word_vectors(tmp_path / name).sha256 for name in "abc"]
    assert hashes[0] == hashes[1] != hashes[2]


@pytest.mark.parametrize(("name", "form"), [*FORMATS, ("folder", None)])
def test_limit_and_words(tmp_path, name, form, monkeypatch):
    monkeypatch.setattr(text, "_ROWS", 2)  # more than one block
    monkeypatch.setattr(word2vec_binary, "_PIECE", 16)
    words = [word.replace(" ", "_") for word in WORDS]
    path = tmp_path / name
    if form is None:
        counted = WordVectors(words, VECTORS, np.arange(6))
        write_word_vectors(counted, path)
    else:
        write(path, form(words, VECTORS))
    same(read_word_vectors(path), words, VECTORS, None if form else np.arange(6))
    same(read_word_vectors(path, limit=9), words, VECTORS, None if form else np.arange(6))
    same(read_word_vectors(path, limit=2), words[:2], VECTORS[:2], None if form else [0, 1])
    wanted = ["1984", "nothing", "the", "naïve"]
    kept = [0, 3, 4]
    same(
        read_word_vectors(path, words=wanted),
        [words[k] for k in kept],
        VECTORS[kept],
        None if form else kept,
    )
    same(
        read_word_vectors(path, words=iter(wanted), limit=4),
        [words[0], words[3]],
        VECTORS[[0, 3]],
        None if form else [0, 3],
    )
    for unknown in (["nothing"], ["naïve"]):
        with pytest.raises(SentembError, match="none of the words has a vector"):
            read_word_vectors(path, words=unknown, limit=3)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"limit": 0}, "limit is 0"),
        ({"limit": True}, "limit is True"),
        ({"limit": 1.5}, "limit is 1.5"),
        ({"words": "the"}, "give a list of texts"),
        ({"words": [1]}, "text 0, counted from 0, is int, not str"),
        ({"words": []}, "words is empty"),
        ({"path": None}, "a path is None"),
        ({"path": "a\0b"}, "NUL"),
        ({"path": "missing"}, "missing: cannot be read"),
    ],
)
def test_wrong_arguments(tmp_path, arguments, says):
    path = write(tmp_path / "v.txt", glove(WORDS, VECTORS))
    with pytest.raises(SentembError, match=says):
        read_word_vectors(**{"path": path, **arguments})


def test_the_first_of_duplicate_words_wins(tmp_path):
    words = ["a", "b", "a", "c", "a"]
    for name, form in FORMATS:
        notes = []
        path = write(tmp_path / name, form(words, VECTORS[:5]))
        same(read_word_vectors(path, note=notes.append), ["a", "b", "c"], VECTORS[[0, 1, 3]])
        assert notes == [f"{path}: 2 duplicate words; the first vector of each is kept"]
        same(read_word_vectors(path, limit=3), ["a", "b", "c"], VECTORS[[0, 1, 3]])


def test_a_text_without_its_last_line_end_is_noted(tmp_path):
    path = write(tmp_path / "v.txt", b"a 1 2\nb 3 4")
    notes = []
    same(read_word_vectors(path, note=notes.append), ["a", "b"], [[1, 2], [3, 4]])
    assert notes == [f"{path}:2: the last line has no line end; is the file whole?"]
    read_word_vectors(path, limit=1, note=pytest.fail)


def test_words_with_line_ends_are_left_out_of_a_binary(tmp_path):
    path = write(tmp_path / "v.bin", binary(["a", "b\nc", "d"], VECTORS[:3]))
    notes = []
    same(read_word_vectors(path, note=notes.append), ["a", "d"], VECTORS[[0, 2]])
    assert notes == [f"1 word is left out; the first: {path}: byte 18: a word has a line end"]


# What an unusable word is, its bytes, and the formats that can have it: a blank ends a binary word.
UNUSABLE = [
    ("cut inside a letter", "“".encode()[:2], {"text", "binary"}),
    ("another encoding", b"caf\xe9", {"text", "binary"}),
    ("empty", b"", {"text", "binary"}),
    ("a blank", b" ", {"text"}),
    ("two blanks", b"  ", {"text"}),
]


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize(
    ("name", "form", "word"),
    [
        pytest.param(name, form, word, id=f"{name}-{what}")
        for name, form in FORMATS
        for what, word, kinds in UNUSABLE
        if ("binary" if ".bin" in name else "text") in kinds
    ],
)
def test_an_unusable_word_is_left_out_with_a_count(tmp_path, name, form, word, at):
    """The whole file was refused for one word that no text can have."""
    raw = form(SHORT, VECTORS[:4]).replace(SHORT[at].encode() + b" ", word + b" ", 1)
    notes = []
    found = read_word_vectors(write(tmp_path / name, raw), note=notes.append)
    left = [k for k in range(4) if k != at]
    same(found, [SHORT[k] for k in left], VECTORS[left])
    assert len(notes) == 1 and notes[0].startswith(f"1 word is left out; the first: {tmp_path}")


def test_many_unusable_words_are_a_damaged_file(tmp_path):
    rows = [f"caf\xe9{number} 1 2\n".encode("latin-1") for number in range(30)]
    path = write(tmp_path / "v.txt", b"".join([b"the 1 2\n", *rows]))
    with pytest.raises(SentembError, match=r":2:4: a word is not valid UTF-8, as 30 of 31 words;"):
        read_word_vectors(path)
    usable = [f"word{number} 1 2\n".encode() for number in range(570)]
    found = read_word_vectors(write(path, b"".join([*usable, *rows])))
    assert len(found) == 570


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("form", [glove, headed, original, binary, original_binary])
@pytest.mark.parametrize("name", ["v.bin", "v.txt", "v.vec", "v", "v.txt.gz", "v.bin.gz", "v.zip"])
def test_the_contents_tell_the_format_not_the_name(tmp_path, name, form, packed):
    raw = form(SHORT, VECTORS[:4])
    path = tmp_path / name
    path.write_bytes(gzip.compress(raw) if packed else raw)
    notes = []
    same(read_word_vectors(path, note=notes.append), SHORT, VECTORS[:4])
    assert notes == []


@pytest.mark.parametrize("form", [headed, binary])
def test_vectors_come_from_a_pipe_in_any_format(tmp_path, form):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    words = [f"{word}{k}" for k in range(10_000) for word in ("a", "b")]
    vectors = np.repeat(VECTORS[:1], len(words), axis=0)
    packed = gzip.compress(form(words, vectors), 1)
    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(path.write_bytes, packed)
        same(read_word_vectors(path), words, vectors)
        written.result()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("start", "says"),
    [
        (struct.pack("<ii", 793_712_314, 12), "a fastText model, not .*; give the .vec file"),
        (b"PK\x03\x04", "a zip archive, not .*; unpack it"),
        (b"BZh91AY&SY", "compressed with bzip2"),
        (b"\xfd7zXZ\0", "compressed with xz"),
        (pickle.dumps({}), "a pickle, such as a model of gensim"),
        (b"\x89HDF\r\n", "HDF5"),
        (b"\x93NUMPY\1\0", "an array of NumPy"),
        (b"SQLite format 3\0", "an SQLite database"),
    ],
)
def test_another_format_is_named_whatever_it_is_called(tmp_path, start, says, packed):
    raw = start + bytes(range(256)) * 20
    for name in ("v.bin", "v.vec", "v.gz"):
        (tmp_path / name).write_bytes(gzip.compress(raw) if packed else raw)
        with pytest.raises(SentembError, match=f"{name}: is {says}"):
            read_word_vectors(tmp_path / name)


@pytest.mark.parametrize(
    ("raw", "words", "vectors"),
    [
        (b"1984 1 2\nthe 3 4\n", ["1984", "the"], [[1, 2], [3, 4]]),  # a number is the first word
        (b"5 1 2\n3 3 4\n", ["5", "3"], [[1, 2], [3, 4]]),
        (b". . . 1 2\nthe 3 4\n", [". . .", "the"], [[1, 2], [3, 4]]),
        (b"2 1\n5 1\n7 2\n", ["5", "7"], [[1], [2]]),  # one dimension, below a header
        (b"1 2\n7 3 4\n", ["7"], [[3, 4]]),
        (b"nan 1 2\ninf 3 4\n", ["nan", "inf"], [[1, 2], [3, 4]]),
        (b"1_0 1 2\na_b 3 4\n", ["1_0", "a_b"], [[1, 2], [3, 4]]),
        (b"\xef\xbb\xbfthe 1 2\r\nof\t3\t4\r\n", ["the", "of"], [[1, 2], [3, 4]]),
        (b"\xef\xbb\xbf1 2\nthe 1 2\n", ["the"], [[1, 2]]),
        ("\xa0 1 2\n\u2028 3 4\n".encode(), ["\xa0", "\u2028"], [[1, 2], [3, 4]]),
        (b"a +1e0 -2.5E-1\n", ["a"], [[1, -0.25]]),
    ],
)
def test_text_that_is_easily_misread(tmp_path, raw, words, vectors):
    same(read_word_vectors(write(tmp_path / "v.txt", raw)), words, vectors)


ROW = struct.pack("<2f", 1, 2)
FAULTS = [
    ("v.txt", b"", ": no vectors, the file is empty; give GloVe text"),
    ("v.txt", b"\n", ":1: not a row of a word and its numbers; give GloVe"),
    ("v.txt", b'{"a": 1}\n', ":1: not a row of a word"),
    ("v.txt", b"It was a dark night\n", ":1: not a row of a word"),
    ("v.txt", "the 1 2\n".encode("utf-16"), ": is UTF-16, not text"),
    ("v.txt", b"the 50\nof 40\n", ":1: one number after the word, as in a file of counts"),
    ("v.txt", b"3 2\nthe 1 2\nof 3 4\n", ":1: the header says 3 words, but the file has 2; get"),
    ("v.txt", b"1 2\nthe 1 2\nof 3 4\n", ":3: the header says 1 words, but here is one more"),
    ("v.txt", b"2 3\nthe 1 2\nof 3 4\n", ":2: 2 numbers in the row, but the header says 3"),
    ("v.txt", b"2 1\nthe 1 2\nof 3 4\n", ":2: 2 numbers in the row, but the header says 1"),
    ("v.txt", b"0 2\n", ":1: no vectors: the header says 0 words"),
    ("v.txt", b"2 2\n", ":1: the header says 2 words, but the file has 0"),
    ("v.txt", b"2 0\nthe\n", ":1: the header says 0 dimensions; give vectors of 1 to 10,000"),
    ("v.txt", b"2 10001\nthe\n", ":1: the header says 10,001 dimensions"),
    ("v.txt", b"9999999999999999999 2\nthe 1 2\n", ":1: one number after the word"),
    ("v.txt", b"the" + b" 1" * 10_001 + b"\n", ":1: 10,001 numbers after the word; give at most"),
    ("v.txt.gz", None, ": not a whole gzip file"),
    ("v.bin", b"", ": no vectors, the file is empty"),
    ("v.bin", b"x" * 5000, ":1: not a row of a word and its numbers"),
    ("v.bin", b"0 2\n", ":1: no vectors: the header says 0 words"),
    ("v.bin", b"1 2\na " + ROW[:-1], ": byte 13: the file ends in word 1 of 1; get the whole"),
    ("v.bin", b"2 2\na " + ROW + b"b", ": byte 15: the file ends in word 2 of 2"),
    ("v.bin", b"2 2\na " + ROW, ": byte 14: the file ends in word 2 of 2"),
    ("v.bin", b"1 2\na " + ROW + b"b", ": byte 14: more bytes follow the 1 words of the header"),
    ("v.bin", b"1 1\na " + ROW, ": byte 10: more bytes follow"),
    ("v.bin", b"2 2\na " + ROW + b"\nb " + ROW, ": byte 25: no line feed after the vector"),
    ("v.bin", b"1 2\n" + b"a" * 70_000, ": byte 4: a word of more than 65,536 bytes"),
]


@pytest.mark.parametrize(("name", "raw", "says"), FAULTS, ids=[says for _, _, says in FAULTS])
def test_faults_are_named_with_their_place(tmp_path, name, raw, says):
    path = tmp_path / name
    if raw is None:
        path.write_bytes(gzip.compress(glove(WORDS, VECTORS))[:-9])
    else:
        write(path, raw)
    with pytest.raises(SentembError, match=f"^{path}{says}") as caught:
        read_word_vectors(path)
    assert len(str(caught.value)) <= 300


UNUSABLE = [
    ("v.txt", b"an 1\n", ":2: 1 number in the row, but line 1 has 2"),
    ("v.txt", b"an 1 2 3\n", ":2: 3 numbers in the row, but line 1 has 2"),
    ("v.txt", b"1 2\n", ":2: 1 number in the row"),
    ("v.txt", b"an 1 b\n", ":2: 'b' is not a number; a row is a word and 2 numbers"),
    ("v.txt", b"an 1_0 2\n", ":2: '1_0' is not a number"),
    ("v.txt", b"of 0x1 2\n", ":2: '0x1' is not a number"),
    ("v.txt", "an ٣ 2\n".encode(), ":2: '٣' is not a number"),
    ("v.txt", b"an nan 2\n", ":2: a number is NaN, infinite or above 1e+12"),
    ("v.txt", b"an 1 -inf\n", ":2: a number is NaN"),
    ("v.txt", b"an 1 1e400\n", ":2: a number is NaN"),
    ("v.txt", b"an 1 -2e12\n", ":2: a number is NaN"),
    ("v.txt", b"a\0n 1 2\n", ":2: a NUL character"),
    ("v.bin", b"an " + struct.pack("<2f", 1, np.nan), ": byte 16: a number is NaN"),
]


@pytest.mark.parametrize(("name", "row", "says"), UNUSABLE, ids=[says for *_, says in UNUSABLE])
def test_a_row_that_is_unusable_is_left_out_with_a_count(tmp_path, name, row, says):
    if name == "v.txt":
        raw = b"the 1 2\n" + row + b"\nof 3 4\n"  # blank lines are no rows
    else:
        raw = b"3 2\nthe " + ROW + row + b"of " + struct.pack("<2f", 3, 4)
    notes = []
    read = read_word_vectors(write(tmp_path / name, raw), note=notes.append)
    same(read, ["the", "of"], [[1, 2], [3, 4]])
    assert notes[0].startswith(f"1 word is left out; the first: {tmp_path / name}{says}")
    with pytest.raises(SentembError, match="as 2 of 3 words; save the file as UTF-8, or get the"):
        read_word_vectors(write(tmp_path / "many.txt", b"a 1 2\nb 1\nc nan 2\n"))


# -- mutated files ---------------------------------------------------------------------------------


@st.composite
def mutations(draw):
    """A function that changes some bytes: replaced, removed, inserted or cut."""
    kind = draw(st.sampled_from(["replace", "remove", "insert", "cut"]))
    at = draw(st.floats(0, 1, exclude_max=True))
    new = draw(st.binary(min_size=1, max_size=4) | st.sampled_from([b" ", b"\n", b"0", b"9", b"e"]))

    def mutated(raw):
        place = int(at * len(raw))
        if kind == "cut":
            return raw[:place]
        kept = place + (0 if kind == "insert" else len(new))
        return raw[:place] + (b"" if kind == "remove" else new) + raw[kept:]

    return mutated


def read_or_fault(path, **settings):
    """The vectors, or the error; no other exception is expected."""
    try:
        return read_word_vectors(path, **settings)
    except SentembError as error:
        return error


@pytest.mark.parametrize(("name", "form"), FILES)
@given(mutate=mutations())
@settings(max_examples=35)
def test_mutated_files_give_vectors_or_an_error(tmp_path_factory, name, form, mutate):
    words = ["the", "of", "1984", "naïve", "new-york", "x"]
    path = write(tmp_path_factory.getbasetemp() / f"mutated-{name}", form(words, VECTORS))
    path.write_bytes(mutate(path.read_bytes()))
    found = read_or_fault(path)
    if isinstance(found, SentembError):
        assert str(found).startswith(str(path))
        return
    assert found.vectors.shape == (len(found.words), found.dim) and len(found)
    assert np.isfinite(found.vectors).all() and len(set(found.words)) == len(found)
    if name.endswith(".gz"):  # which has a checksum
        same(found, words, VECTORS)


# NumPy reads a header by Python's parser, which may warn of what it reads.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
@pytest.mark.filterwarnings("ignore:Reading")
@pytest.mark.parametrize("name", ["words.txt", "vectors.npy", "counts.txt", "vectors.json"])
@given(mutate=mutations())
@settings(max_examples=35)
def test_mutated_folders_give_the_same_vectors_or_an_error(tmp_path_factory, name, mutate):
    path = tmp_path_factory.getbasetemp() / "mutated"
    if not path.exists():
        write_word_vectors(WordVectors(WORDS, VECTORS, np.arange(6)), path)
    whole = (path / name).read_bytes()
    (path / name).write_bytes(mutate(whole))
    try:
        for verify in (True, False):
            found = read_or_fault(path, verify=verify)
            if isinstance(found, SentembError):
                assert str(found).startswith(str(path))
            elif name == "vectors.npy" and not verify:  # opened without reading the vectors
                assert found.words == WORDS and found.vectors.shape == VECTORS.shape
            else:
                same(found, WORDS, VECTORS, np.arange(6))
    finally:
        (path / name).write_bytes(whole)


# -- folders that are damaged ----------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    write_word_vectors(WordVectors(WORDS, VECTORS, np.arange(6)), tmp_path / "ours")
    return tmp_path / "ours"


def describe(folder, **changes):
    """Change what the description says; None removes an entry."""
    path = folder / "vectors.json"
    found = json.loads(path.read_text("utf-8")) | changes
    path.write_text(json.dumps({key: value for key, value in found.items() if value is not None}))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": 2}, "has format 2, and this version of sentemb reads format 1"),
        ({"format": "1"}, "has format '1', and this version"),
        ({"format": None}, "has no format number"),
        ({"words": 5}, r"words\.txt: .* one line for each of 5 words"),
        ({"words": True}, '"words" is missing or wrong'),
        ({"dim": 2}, r"vectors\.npy: .* shape is not that of vectors\.json"),
        ({"dim": 10**6}, '"dim" is missing or wrong'),
        ({"dtype": "float16"}, "its numbers are not float16"),
        ({"dtype": "object"}, '"dtype" is missing or wrong'),
        ({"dtype": []}, '"dtype" is missing or wrong'),
        ({"sha256": {"words.txt": "0" * 64}}, '"sha256" is missing or wrong'),
        ({"sha256": None}, '"sha256" is missing or wrong'),
        ({"source": 5}, '"source" is missing or wrong'),
        ({"licence": None}, '"licence" is missing or wrong'),
    ],
    ids=str,
)
def test_descriptions_that_are_wrong(folder, changes, says):
    describe(folder, **changes)
    with pytest.raises(SentembError, match=says):
        read_word_vectors(folder)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b"\xff", b"[" * 100_000, b" " * 70_000])
def test_descriptions_that_are_none(folder, raw):
    (folder / "vectors.json").write_bytes(raw)
    with pytest.raises(SentembError, match=r"vectors\.json: the word vectors are damaged"):
        read_word_vectors(folder)


@pytest.mark.parametrize("name", ["words.txt", "vectors.npy", "counts.txt", "vectors.json"])
def test_files_that_are_missing_or_no_files(folder, name):
    (folder / name).unlink()
    says = "not a folder of word vectors" if name == "vectors.json" else "it is missing"
    with pytest.raises(SentembError, match=says):
        read_word_vectors(folder)
    os.mkfifo(folder / name)
    with pytest.raises(SentembError, match="it is not a regular file"):
        read_word_vectors(folder, verify=True)


def refresh(folder, name):
    """Make the checksum of a file right."""
    sums = json.loads((folder / "vectors.json").read_text("utf-8"))["sha256"]
    sums[name] = hashlib.sha256((folder / name).read_bytes()).hexdigest()
    describe(folder, sha256=sums)


@pytest.mark.parametrize(
    ("name", "raw", "says"),
    [
        ("words.txt", b"a\nb\nc\nd\ne\na\n", "a word occurs twice"),
        ("words.txt", b"a\nb\nc\nd\ne\nf", "one line for each of 6 words"),
        ("words.txt", b"a\nb\nc\nd\ne\n\xff\n", "not valid UTF-8"),
        ("counts.txt", b"1\n2\n3\n4\n5\nsix\n", "a line is not an integer"),
        ("counts.txt", b"1\n2\n3\n4\n5\n-6\n", "negative or above 63 bits"),
        ("counts.txt", b"1\n2\n3\n4\n5\n" + b"9" * 30 + b"\n", "negative or above 63 bits"),
    ],
)
def test_texts_that_a_checksum_does_not_catch(folder, name, raw, says):
    (folder / name).write_bytes(raw)
    with pytest.raises(SentembError, match="do not match their checksum"):
        read_word_vectors(folder)
    refresh(folder, name)
    with pytest.raises(SentembError, match=says):
        read_word_vectors(folder)


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (np.asfortranarray(VECTORS), "order of Fortran"),
        (VECTORS.astype(">f4"), "not float32"),
        (VECTORS.astype(np.float64), "not float32"),
        (VECTORS.astype(np.int32), "not floating-point"),
        (VECTORS.T.copy(), "its shape"),
        (VECTORS.ravel(), "its shape"),
        (np.array([[None]]), "unpickling"),
    ],
)
def test_arrays_that_are_others(folder, array, says):
    np.save(folder / "vectors.npy", array)
    with pytest.raises(SentembError, match=says):
        read_word_vectors(folder)


def test_vectors_are_checked_when_they_are_used(folder):
    raw = bytearray((folder / "vectors.npy").read_bytes())
    raw[-4:] = np.float32(np.nan).tobytes()
    (folder / "vectors.npy").write_bytes(raw)
    found = read_word_vectors(folder)  # nothing is read yet
    same(read_word_vectors(folder, words=["the", "of"]), WORDS[:2], VECTORS[:2], [0, 1])
    says = "ours: the vector of 'new york' has a number that is NaN"
    for use in (
        lambda: found.take([5]),
        lambda: found.nearest("the"),
        found.lengths,
        lambda: read_word_vectors(folder, words=["new york"]),
        lambda: write_word_vectors(found, folder.parent / "new"),
    ):
        with pytest.raises(SentembError, match=says):
            use()
    assert not (folder.parent / "new").exists()
    with pytest.raises(SentembError, match=r"vectors\.npy: .* checksum"):
        read_word_vectors(folder, verify=True)


def test_opening_a_folder_takes_no_more_memory_than_its_files(folder):
    read_word_vectors(folder)
    tracemalloc.start()
    try:
        read_word_vectors(folder)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10_000_000


def test_a_count_file_that_is_not_described_is_not_read(folder):
    write_word_vectors(WordVectors(WORDS, VECTORS), folder, force=True)
    (folder / "counts.txt").write_text("rubbish")
    assert read_word_vectors(folder).counts is None


# -- writing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vectors", "settings", "says"),
    [
        (WordVectors(["a\nb"], VECTORS[:1]), {}, r"'a\\nb' has a line end"),
        (WordVectors(["a", "a"], VECTORS[:2]), {}, "'a' occurs twice"),
        (WordVectors(["\ud800"], VECTORS[:1]), {}, "not valid UTF-8"),
        (WordVectors(["a"], VECTORS[:1], source="\ud800"), {}, "not valid UTF-8"),
        (WordVectors([], VECTORS[:0]), {}, "at least one word"),
        (WordVectors(["a"], np.zeros((1, 0))), {}, "dimensions"),
        (WordVectors(["a"], np.array([[np.inf]])), {}, "the vector of 'a' has a number"),
        (WordVectors(["a", "b"], np.array([[1.0], [7e4]])), {"dtype": "float16"}, "'b' .* 65,504"),
        (WordVectors(["a"], VECTORS[:1], np.array([-1])), {}, "counts are not one integer"),
        (WordVectors(["a"], VECTORS[:1], np.array([0.5])), {}, "counts are not one integer"),
        (WordVectors(["a"], VECTORS[:1], np.array([1, 2])), {}, "counts are not one integer"),
        (WordVectors(["a"], VECTORS[:1]), {"dtype": "float64"}, "give float32 or float16"),
    ],
)
def test_vectors_that_cannot_be_written(tmp_path, vectors, settings, says):
    with pytest.raises(SentembError, match=says):
        write_word_vectors(vectors, tmp_path / "new" / "out", **settings)
    assert tree(tmp_path) == {}


@pytest.mark.parametrize("state", ["new", "old"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "stop"]
)
def test_an_interrupted_write_leaves_all_or_nothing(tmp_path, state, error, monkeypatch):
    old, new = (WordVectors(WORDS, VECTORS + shift, np.arange(6)) for shift in (0, 1))
    write_word_vectors(new, tmp_path / "whole")
    whole = tree(tmp_path / "whole")
    top = tmp_path / "top"
    for count in itertools.count(1):
        shutil.rmtree(top, ignore_errors=True)
        top.mkdir()
        if state == "old":
            write_word_vectors(old, top / "out")
        before = tree(top)
        with monkeypatch.context() as patch:
            calls = failing_calls(patch, ("replace", "rename", "mkdir", "open"), count, error)
            raised = None
            try:
                write_word_vectors(new, top / "out", force=True)
            except (SentembError, KeyboardInterrupt) as caught:
                raised = caught
        after = tree(top / "out") if (top / "out").exists() else {}
        if raised is None:  # what could not be removed is removed by the next writer
            after = {name: raw for name, raw in after.items() if ".tmp" not in name}
        assert tree(top) == before or after == whole, (count, calls[-1])
        if len(calls) < count:
            assert raised is None and after == whole
            break
    assert count > 8


def killed_at(count, write):
    """Run ``write`` in a child that is killed at its ``count``-th os.replace; whether it was."""
    child = os.fork()
    if not child:
        calls, replace = itertools.count(1), os.replace

        def dying(*paths):
            if next(calls) == count:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(*paths)

        os.replace = dying
        try:
            write()
        finally:
            os._exit(0)
    return os.waitpid(child, 0)[1] == signal.SIGKILL


def test_a_killed_write_mixes_no_vectors_with_the_description_of_others(tmp_path):
    out = tmp_path / "out"
    old = WordVectors(WORDS, VECTORS, np.arange(6))
    new = WordVectors(WORDS, -VECTORS, np.arange(6), source="another")
    opened = 0
    for count in itertools.count(1):
        write_word_vectors(old, out, force=True)
        if not killed_at(count, lambda: write_word_vectors(new, out, force=True)):
            break
        try:
            found = read_word_vectors(out)
        except SentembError:
            continue
        opened += 1
        same(found, WORDS, {"": VECTORS, "another": -VECTORS}[found.source], np.arange(6))
    assert count > 8 and opened
    same(read_word_vectors(out, verify=True), WORDS, -VECTORS, np.arange(6))


@pytest.mark.parametrize("name", ["mine.txt", "model.safetensors", "words.txt"])
def test_a_folder_with_other_files_is_kept_also_by_force(tmp_path, name):
    (tmp_path / name).write_text("mine")
    for force in (False, True):
        with pytest.raises(SentembError, match=r"not empty|holds other files"):
            write_word_vectors(WordVectors(WORDS, VECTORS), tmp_path, force=force)
    assert tree(tmp_path) == {name: b"mine"}


def test_a_folder_is_replaced_by_what_is_read_from_it(folder):
    write_word_vectors(read_word_vectors(folder), folder, force=True, dtype="float16")
    found = read_word_vectors(folder, verify=True)
    same(found, WORDS, VECTORS.astype(np.float16), np.arange(6))


# -- nearest words ---------------------------------------------------------------------------------


def naive_nearest(words, vectors, target, k, own=-1):
    """Cosines one by one, sorted."""
    found = []
    for row, vector in enumerate(vectors.astype(float)):
        norm = np.linalg.norm(vector) * np.linalg.norm(target)
        if row != own:
            found.append((-(vector @ target / norm if norm else 0.0), row))
    return [(words[row], -cosine) for cosine, row in sorted(found)[:k]]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("k", [1, 3, 40, 1000])
def test_nearest_words_are_those_of_the_naive_twin(dtype, k, monkeypatch):
    monkeypatch.setattr(word_vectors, "_BLOCK_NUMBERS", 40)  # many passes
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((50, 7)).astype(dtype)
    vectors[[4, 9]] = 0
    words = [f"w{row}" for row in range(50)]
    known = WordVectors(words, vectors)
    for target, own in ((vectors[3].astype(float), 3), (rng.standard_normal(7), -1)):
        found = known.nearest("w3" if own == 3 else target, k)
        expected = naive_nearest(words, vectors, target, k, own)
        assert [word for word, _ in found] == [word for word, _ in expected]
        np.testing.assert_allclose([c for _, c in found], [c for _, c in expected], atol=1e-12)
        assert len(found) == min(k, 50 - (own == 3))
    np.testing.assert_allclose(known.lengths(), np.linalg.norm(vectors.astype(float), axis=1))


def test_equal_cosines_are_in_the_order_of_the_words():
    known = WordVectors(list("abcdef"), np.array([[1, 0], [0, 1], [2, 0], [1, 0], [0, 0], [4, 0]]))
    assert known.nearest("d", 4) == [("a", 1.0), ("c", 1.0), ("f", 1.0), ("b", 0.0)]
    assert known.nearest([0, -1], 6)[-1] == ("b", -1.0)


@pytest.mark.parametrize(
    ("vectors", "says"),
    [
        ([[1.0], [2.0]], "the vectors are list"),
        (np.array([[1j], [2]]), "the vectors are complex128"),
        (np.array([["1"], ["2"]]), "the vectors are <U1"),
        (np.ones((3, 1)), r"2 words with an array of shape \(3, 1\)"),
    ],
)
def test_arrays_that_are_no_vectors(vectors, says):
    with pytest.raises(SentembError, match=says):
        WordVectors(["a", "b"], vectors)


def test_a_word_with_two_vectors_is_refused():
    known = WordVectors(["b", "a", "a"], np.eye(3))
    with pytest.raises(SentembError, match="'a' occurs twice"):
        known.nearest("b")


@pytest.mark.parametrize(
    ("target", "k", "says"),
    [
        ("nothing", 1, "'nothing' has no vector in v; give another"),
        ("The", 1, "'The' has no vector in v; try 'the'"),
        ("zero", 1, "the vector of 'zero' is zero"),
        ([0, 0], 1, "the vector is zero"),
        ([1, 2, 3], 1, r"shape \(3,\); give 2 finite"),
        ([1, np.nan], 1, "give 2 finite"),
        ([1, 10**400], 1, "give a word or a vector"),
        (["a", "b"], 1, "give a word or a vector"),
        (None, 1, r"give 2 finite|give a word"),
        ("the", 0, "k is 0"),
        ("the", 1.5, "k is 1.5"),
    ],
    ids=str,
)
def test_nearest_words_of_wrong_input(target, k, says):
    known = WordVectors(["the", "zero"], np.array([[1.0, 2], [0, 0]]), name="v")
    with pytest.raises(SentembError, match=says):
        known.nearest(target, k)


# -- counts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["counts.txt", "counts.txt.gz"])
def test_counts_are_read_and_duplicates_added_up(tmp_path, name):
    raw = "\ufeffthe 7\nnew york\t5\r\nthe 2\n\xa0 1\n12 3\nzero 0\n".encode()
    counts = read_counts(write(tmp_path / name, raw))
    assert counts == {"the": 9, "new york": 5, "\xa0": 1, "12": 3, "zero": 0}
    assert counts_of(["12", "x", "the"], counts, name).tolist() == [3, 0, 9]
    with pytest.raises(SentembError, match=f"{name}: none of the words has a count"):
        counts_of(["x", "zero"], counts, name)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", ": no counts above 0"),
        (b"a 0\n", ": no counts above 0"),
        (b"a 1\nb\n", ":2: not a word and its count"),
        (b"a 1\n\nb 1\n", ":2: not a word and its count"),
        (b"a 1\nb five\n", ":2: the count 'five' is not an integer"),
        (b"a 1.5\n", ":1: the count '1.5'"),
        (b"a -1\n", ":1: the count '-1'"),
        (b"a 1_0\n", ":1: the count '1_0'"),
        ("a ٣\n".encode(), ":1: the count '٣'"),
        (b"a 9223372036854775807\na 1\n", ":2: the count '1' .* add up to more than"),
        (b"a " + b"9" * 5000 + b"\n", ":1: the count '999"),
        (b"a 1\nb\xff 1\n", ":2:2: not valid UTF-8"),
        (b"a\0 1\n", ":1:2: a NUL character"),
    ],
)
def test_counts_that_are_wrong(tmp_path, raw, says):
    path = write(tmp_path / "counts.txt", raw)
    with pytest.raises(SentembError, match=f"^{path}{says}"):
        read_counts(path)


# -- training --------------------------------------------------------------------------------------


def made_up_clicks():
    builder = ClickLogBuilder()
    for k in range(60):
        kind, other = ("Tea", "Coffee")[k % 2], f"n{k}"
        builder.add(f"{kind} cup {other}", f"{kind}-pot: {kind} leaves", clicks=1 + k // 2)
    return builder.build()


def digest_of(found):
    return hashlib.sha256(repr(found.words).encode() + found.vectors.tobytes()).hexdigest()


# Not an import of this file, which would load much that is not needed.
TRAINED = f"""
import hashlib
from sentemb.data.click_log import ClickLogBuilder
from sentemb.models.vectors.skip_gram import train_word_vectors
{inspect.getsource(made_up_clicks)}
{inspect.getsource(digest_of)}
print(digest_of(train_word_vectors(made_up_clicks(), dim=8, epochs=3, seed=5)))
"""


def test_trained_vectors_are_the_same_in_every_process():
    found = train_word_vectors(made_up_clicks(), dim=8, epochs=3, seed=5)
    there = run_python(TRAINED, check=True, PYTHONHASHSEED="1").stdout
    assert there.split() == [digest_of(found)]


def test_training_counts_clicks_and_reports_epochs():
    builder = ClickLogBuilder()
    builder.add("Fix a TAP!", "tap repair", clicks=1)
    builder.add("fix bath", "?!", clicks=8)  # round(1 + ln 8) = 3 times
    log = builder.build()
    epochs = []
    found = train_word_vectors(
        log, dim=4, window=2, epochs=2, on_epoch=lambda *numbers: epochs.append(numbers)
    )
    counts = dict(zip(found.words, found.counts.tolist(), strict=True))
    assert counts == {"fix": 4, "bath": 3, "tap": 2, "a": 1, "repair": 1}
    assert found.words[:3] == ["fix", "bath", "tap"]
    assert found.vectors.shape == (5, 4) and found.vectors.dtype == np.float32
    assert epochs == [(1, 2), (2, 2)]
    assert "dim 4, window 2, min_count 1, epochs 2, seed 0" in found.source
    kept = train_word_vectors(log, dim=4, epochs=1, min_count=3)
    assert kept.words == ["fix", "bath"]
    again = train_word_vectors(log, dim=4, window=2, epochs=2, seed=1)
    assert not np.array_equal(again.vectors, found.vectors)


def test_words_of_the_same_pairs_become_alike():
    found = train_word_vectors(made_up_clicks(), dim=10, epochs=40)
    cosine = dict(found.nearest("tea", len(found)))
    assert cosine["pot"] > 0 and cosine["leaves"] > 0
    tea, coffee = (found.vectors[found.row_of_word[word]] for word in ("tea", "coffee"))
    own = [f"n{k}" for k in range(20, 60, 2)]
    others = [f"n{k}" for k in range(21, 60, 2)]
    means = [found.vectors[found.rows(words)].mean(0) for words in (own, others)]
    side = tea - coffee
    assert means[0] @ side > means[1] @ side


def test_no_word_is_frequent_enough():
    said = "no word of letters or digits that occurs min_count = 1,000,000"
    with pytest.raises(SentembError, match=said):
        train_word_vectors(made_up_clicks(), min_count=10**6)


# -- the commands ----------------------------------------------------------------------------------


def run(*arguments):
    """Exit code, standard output and standard error of ``sentemb vectors``."""
    result = CliRunner().invoke(main, ["vectors", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.stdout, result.stderr


def test_convert_and_show(tmp_path):
    path = write(tmp_path / "v.txt", glove([*WORDS, "the"], np.vstack([VECTORS, VECTORS[:1]])))
    counts = write(tmp_path / "counts.txt", b"the 5\nnew york 3\n")
    out = tmp_path / "out"
    options = ["--counts", counts, "--source", "here", "--licence", "PDDL", "--words", 6]
    code, said, notes = run("convert", path, "-o", out, *options)
    assert code == 0
    assert said.splitlines() == [
        f"{out}: 6 words, 3 dimensions, float32",
        f"next: sentemb sif {out} titles.txt -o model",
    ]
    assert notes == f"note: {counts}: 2 of 6 words have a count\n"
    found = read_word_vectors(out)
    same(found, WORDS, VECTORS, [5, 0, 0, 0, 0, 3])
    assert (found.source, found.licence) == ("here", "PDDL")

    half = tmp_path / "half"  # source, licence and counts are kept
    assert run("convert", out, "-o", half, "--dtype", "float16")[0] == 0
    again = read_word_vectors(half)
    same(again, WORDS, VECTORS.astype(np.float16), [5, 0, 0, 0, 0, 3])
    assert (again.source, again.licence) == ("here", "PDDL")

    code, said, _ = run("show", out)
    lines = dict(line.split("\t") for line in said.splitlines())
    assert code == 0 and lines["words"] == "6" and lines["dimensions"] == "3"
    assert lines["first words"] == " ".join(WORDS) and lines["counted words"] == "2"
    facts = json.loads(run("show", out, "--json")[1])
    norms = np.linalg.norm(VECTORS, axis=1)
    assert facts["mean_length"] == pytest.approx(norms.mean()) and facts["sha256"] == found.sha256
    assert facts["shortest_vector"] == pytest.approx(norms.min())
    assert facts["longest_vector"] == pytest.approx(norms.max())

    code, said, _ = run("show", out, "new york", "the", "-k", 2)
    near = {word: found.nearest(word, 2) for word in ("new york", "the")}
    rows = [(word, other, f"{c:.4f}") for word in near for other, c in near[word]]
    assert code == 0 and [tuple(line.split("\t")) for line in said.splitlines()] == rows
    shown = json.loads(run("show", out, "the", "--json", "-k", 2)[1])
    assert shown == {"the": [list(pair) for pair in near["the"]]}


def test_train_writes_a_folder(tmp_path):
    log, out = tmp_path / "log.tsv", tmp_path / "out"
    log.write_text("bad\n" + "".join(f"find w{k % 5}\tthe w{k % 3} page\n" for k in range(30)))
    assert run("train", log, "-o", out)[0] == 1 and not out.exists()
    options = ["-o", out, "--dim", 5, "--epochs", 2, "--min-count", 2, "--skip-bad-lines"]
    code, said, notes = run("train", log, *options)
    assert code == 0
    assert said.splitlines() == [
        f"{out}: 8 words, 5 dimensions, float32",
        f"next: sentemb sif {out} --log {log} -o model",
    ]
    assert f"note: {log}: skipped 1 bad line" in notes and "epoch 2/2" in notes
    found = read_word_vectors(out, verify=True)
    # 15 pairs, each with two clicks: round(1 + ln 2) = 2.
    assert found.counts[found.row_of_word["find"]] == 30
    code, said, notes = run("train", log, *options)
    assert code == 1 and "is not empty" in notes


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "missing", "-o", "out"],
        ["convert", "model", "-o", "out"],
        ["convert", ".", "-o", "out"],
        ["convert", "/dev/null", "-o", "out"],
        ["convert", "/dev/zero", "-o", "out"],
        ["convert", "log.tsv", "-o", "out"],
        ["convert", "v.txt", "-o", ""],
        ["convert", "v.txt", "-o", "log.tsv"],
        ["convert", "v.txt", "-o", "model", "--force"],
        ["convert", "v.txt", "-o", "out", "--counts", "log.tsv"],
        ["convert", "v.txt", "-o", "out", "--counts", "."],
        ["convert", "v.txt", "-o", "out", "--dtype", "float64"],
        ["convert", "v.txt", "-o", "out", "--words", "0"],
        ["show", "missing"],
        ["show", "model"],
        ["show", "v.txt", "nothing"],
        ["show", "v.txt", "a", "-k", "0"],
        ["train", "empty.tsv", "-o", "out"],
        ["train", "signs.tsv", "-o", "out"],
        ["train", "log.tsv", "-o", "model", "--force"],
        ["train", "log.tsv", "-o", "out", "--dim", "0"],
        ["train", "missing", "-o", "out"],
        ["train", "model", "-o", "out"],
        ["train", "log.tsv"],
    ],
    ids=" ".join,
)
def test_commands_with_wrong_input(tmp_path, model, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    model.save_pretrained("model")
    write(tmp_path / "v.txt", b"a 1 2\nb 3 4\n")
    (tmp_path / "log.tsv").write_text("a query\ta title\n")
    (tmp_path / "empty.tsv").write_text("")
    (tmp_path / "signs.tsv").write_text("!\t?\n")
    before = tree(tmp_path)
    code, said, notes = run(*arguments)
    assert code in (1, 2) and said == ""
    assert notes.splitlines()[-1].startswith("Error: ") and len(notes.splitlines()[-1]) < 310
    assert tree(tmp_path) == before


def test_without_gensim_the_command_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models.word2vec", None)
    (tmp_path / "log.tsv").write_text("a query\ta title\n")
    code, _, notes = run("train", tmp_path / "log.tsv", "-o", tmp_path / "out")
    assert code == 1 and "pip install 'sentemb[baselines]'" in notes


# -- size ------------------------------------------------------------------------------------------

_CONVERTED = """
import resource, sys
from sentemb.cli import main
main.main(["vectors", "convert", *sys.argv[1:]], standalone_mode=False)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
def test_a_large_text_is_converted_within_a_gigabyte(tmp_path):
    path, out = tmp_path / "v.txt", tmp_path / "out"
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        for first in range(0, 400_000, 10_000):
            rows = rng.standard_normal((10_000, 50)).astype(np.float16).astype(np.float32)
            file.write(glove([f"word{first + k}" for k in range(10_000)], rows))
    said = run_python(_CONVERTED, path, out, check=True).stdout.splitlines()
    assert said[0] == f"{out}: 400,000 words, 50 dimensions, float32"
    assert int(said[1]) * 1024 < 1e9
    found = read_word_vectors(out, verify=True)
    assert np.array_equal(found.vectors[-10_000:], rows) and found.words[-1] == "word399999"
