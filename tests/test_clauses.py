"""Completion sets from plain text: which sentences are used, and what is judged."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import tree
from lab.sets import clauses
from lab.sets.clauses import import_clauses, sentences

from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.click_log import read_click_log
from sentemb.data.importers.plain_words import words_of
from sentemb.data.judged_set import read_judged_set

SHARED = Path(__file__).parents[2] / "shared" / "data"

WORDS = [f"{a}{b}{c}" for a in "bdfgkl" for b in "aeiou" for c in ("n", "rt", "ll", "st")]
NO_PAIRS = ["He came.", "It rained; the road was long.", "Why, then, did Mr. Brown go?"]


def made_up_clauses(rng, count, least=8, most=28):
    """Different clauses; the two of a sentence share a topic word that no other pair has."""
    found = []
    for number in range(count):
        topic = f"topic{number}"
        found.append(
            tuple(
                " ".join([topic, side, *rng.choice(WORDS, rng.integers(least, most - 1) - 1)])
                for side in ("first", "second")
            )
        )
    return found


def prose(pairs, rng):
    """The pairs as sentences in paragraphs of lines, between sentences that must not be used."""
    paragraphs = []
    for first in range(0, len(pairs), 5):
        words = []
        for one, other in pairs[first : first + 5]:
            words += f"{one.capitalize()}, {other}{rng.choice(list('.!?…'))}".split(" ")
            words += rng.choice(NO_PAIRS).split(" ")
        ends = rng.random(len(words)) < 0.1
        lines = "".join(f"{w}{chr(10) if e else ' '}" for w, e in zip(words, ends, strict=True))
        paragraphs.append(lines.strip())
    return "\n\n".join(paragraphs) + "\n"


@pytest.fixture(scope="module")
def made_up(tmp_path_factory):
    """A text and the pairs of clauses in it."""
    rng = np.random.default_rng(0)
    pairs = made_up_clauses(rng, 80)
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text(prose(pairs, rng), encoding="utf-8")
    return path, pairs


def parts(folder):
    """The pairs of every part: those to train on, and the right ones of the judged sets."""
    log = read_click_log(folder / "pairs.tsv")
    pairs = zip(log.query_index, log.title_index, strict=True)
    found = {"": [(log.queries[q], log.titles[t]) for q, t in pairs]}
    for part in sorted(path.name for path in folder.iterdir() if path.is_dir()):
        judged = read_judged_set(folder / part)
        right = judged.title_index[judged.grade == 1]
        found[part] = [
            (query, judged.titles[t]) for query, t in zip(judged.queries, right, strict=True)
        ]
    return found


def all_pairs(found):
    return [pair for some in found.values() for pair in some]


# -- words and sentences ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He went. She stayed! Why? Well… Yes", ["He went", "She stayed", "Why", "Well", "Yes"]),
        ("“No!” he said. “Go.” She went.", ["“No!” he said", "“Go", "She went."]),
        ("Mr. J. R. Hill saw Mrs. Dale. Off", ["Mr. J. R. Hill saw Mrs. Dale", "Off"]),
        ("А. С. Пушкин. Он. и т. д.", ["А. С. Пушкин", "Он. и т. д."]),
        ("THEY DON’T. Not I. So", ["THEY DON’T", "Not I", "So"]),
        ("In the U.S. Army. etc. and 3.5 so", ["In the U.S. Army. etc. and 3.5 so"]),
        ("One... Two?! (Three.) Four", ["One", "Two", "(Three", "Four"]),
        (
            "A line\nthat goes on\n\nAn end\n \nAnother\n",
            ["A line that goes on", "An end", "Another"],
        ),
        ("  \n\n... \n", ["..."]),
        ("", []),
    ],
)
def test_where_sentences_end(text, expected, tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode())
    assert list(sentences(path)) == expected
    monkeypatch.setattr(clauses, "_PORTION", 1)
    assert list(sentences(path)) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("A b, c d", ("a b", "c d")),
        ("“I don’t,” said _he_ again", ("i don't", "said he again")),
        ("For 1,000 men,then 3.5 more", ("for 1,000 men", "then 3.5 more")),
        ("In 1848, 300 ships", ("in 1848", "300 ships")),
        ("Well-known Été, ÇA VA", ("well known été", "ça va")),
        ("a b c d, e f", None),
        ("a, b c", None),
        ("a b, c d, e f", None),
        ("a b c d", None),
        ("a b, c d; e", None),
        ("a b, c: d", None),
        ("a b, c—d", None),
        ("a b, c -- d", None),
        ("a b, (c d)", None),
        ("a b, c - d", None),
        (", a b", None),
    ],
)
def test_which_sentences_are_used(sentence, expected):
    assert clauses._clauses(sentence, 2, 3) == expected


def test_a_text_without_sentence_ends_takes_little_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(clauses, "_PORTION", 100)
    monkeypatch.setattr(clauses, "_LONGEST", 300)
    path = tmp_path / "a.txt"
    path.write_text("one two,\n" * 5000 + "end. A b c, d e f.")
    found = list(sentences(path))
    assert max(map(len, found)) <= 301 + 110 and found[-1] == "A b c, d e f."
    assert clauses._clauses("a b, c d " + "x" * 300, 2, 5) is None


def test_words():
    assert words_of("'Tis o'clock’s 1,5 a.b") == ["tis", "o'clock's", "1,5", "a", "b"]


# -- the folder ---------------------------------------------------------------------------------


def test_every_pair_of_the_text_is_in_one_part(made_up, tmp_path):
    path, pairs = made_up
    counts = import_clauses([path], tmp_path / "out", dev=10, test=20)
    found = parts(tmp_path / "out")
    assert {part: len(some) for part, some in found.items()} == {"": 50, "dev": 10, "test": 20}
    assert sorted(all_pairs(found)) == sorted(pairs)
    assert counts["pairs"] == 50 and counts["sentences"] == 2 * len(pairs)
    # The order of the text does not show in that of the parts.
    assert found[""] != [pair for pair in pairs if pair in set(found[""])]


def test_neither_ids_nor_order_say_which_title_is_right(made_up, tmp_path):
    import_clauses([made_up[0]], tmp_path / "out", dev=20, test=40)
    for part in ("dev", "test"):
        judged = read_judged_set(tmp_path / "out" / part)
        n = len(judged.queries)
        assert judged.query_ids[:2] == ["q0", "q1"] and judged.title_ids[:1] == ["d00000"]
        grades = judged.grade.reshape(n, 5)
        titles = judged.title_index.reshape(n, 5)
        assert (grades.sum(axis=1) == 1).all() and (np.diff(titles, axis=1) > 0).all()
        places = np.bincount(grades.argmax(axis=1), minlength=5)
        assert (places > 0).all()
        right = titles[grades == 1]
        assert sorted(right) == list(range(n))
        assert np.mean(right == np.arange(n)) < 0.3
        assert sorted(set(titles.ravel().tolist())) == list(range(n))


def test_the_same_texts_and_seed_give_the_same_files(made_up, tmp_path):
    path, _ = made_up
    packed = tmp_path / "book.txt.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for name, text, seed in (("a", path, 1), ("b", packed, 1), ("c", path, 2)):
        import_clauses([text], tmp_path / name, dev=10, test=10, seed=seed)
    assert tree(tmp_path / "a") == tree(tmp_path / "b") != tree(tmp_path / "c")


def test_a_clause_is_never_in_two_parts(made_up, tmp_path):
    """Texts given twice, and sentences that share one clause with another, in other letters."""
    path, pairs = made_up
    again = tmp_path / "again.txt"
    new, same = " ".join(["new"] * 9), " ".join(["same"] * 8)
    repeated = [
        (pairs[0][1], pairs[1][0].upper()),
        (pairs[2][0], new),
        (new, pairs[3][1]),
        (same, same),
    ]
    again.write_text("".join(f"{a.capitalize()}, {b}. " for a, b in repeated))
    import_clauses([path, again, path], tmp_path / "out", dev=10, test=10)
    assert sorted(all_pairs(parts(tmp_path / "out"))) == sorted(pairs)


class _Vectors:
    """An embedder whose vectors depend on the last word alone, which is one of few."""

    def __init__(self, texts):
        self.texts = texts
        self.dim = 8

    def encode_document(self, texts):
        angle = np.array([0.4 * WORDS.index(text.split()[-1]) for text in texts])
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def test_similar_negatives_are_the_most_similar_below_the_limit(made_up, tmp_path):
    fitted = []

    def similar(texts):
        fitted.append(_Vectors(texts))
        return fitted[0]

    out = tmp_path / "out"
    import_clauses([made_up[0]], out, dev=10, test=30, similar=similar)
    found = parts(out)
    assert len(fitted) == 1
    assert sorted(fitted[0].texts) == sorted(clause for pair in made_up[1] for clause in pair)
    assert found["dev"] == found["dev_hard"] and found["test"] == found["test_hard"]
    for part in ("dev_hard", "test_hard"):
        judged = read_judged_set(out / part)
        n = len(judged.queries)
        vectors = _Vectors([]).encode_document(judged.titles).astype(float)
        for grades, titles in zip(
            judged.grade.reshape(n, 5), judged.title_index.reshape(n, 5), strict=True
        ):
            right = titles[grades == 1][0]
            # Far fewer than 2,000 titles: all others were looked at.
            below = [
                vectors[right] @ vectors[t]
                for t in range(n)
                if t != right and vectors[right] @ vectors[t] < 0.8
            ]
            chosen = sorted(vectors[right] @ vectors[t] for t in titles if t != right)
            np.testing.assert_allclose(chosen, sorted(below)[-4:], atol=1e-6)


def test_too_few_below_the_limit_are_filled_with_the_least_similar():
    angle = np.array([0, 0.1, 0.2, 0.3, 0.4, 2.0])
    vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    chosen = clauses._similar_negatives(vectors, np.random.default_rng(0))
    assert chosen[0].tolist() == [5, 4, 3, 2]
    # A clause without known words is as similar to all others.
    clauses._similar_negatives(np.zeros((6, 3)), np.random.default_rng(0))


def test_others_are_all_but_one():
    rng = np.random.default_rng(0)
    drawn = np.stack([clauses._numbers_except(3, 6, 4, rng) for _ in range(300)])
    assert set(drawn.ravel().tolist()) == {0, 1, 2, 4, 5}
    assert all(len(set(row)) == 4 for row in drawn.tolist())


# -- bad input and the command ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "settings", "message"),
    [
        (
            "At b. Cd e.\n",
            {},
            r"a\.txt: 0 of 2 sentences have one comma and two clauses of 8 to 28",
        ),
        ("", {}, r"a\.txt: 0 of 0 sentences"),
        (None, {"dev": 40, "test": 40}, r"80 of [\d,]+ sentences .* 40 dev and 40 test .*: give"),
        (b"abc\n\xff", {}, r"a\.txt:2:1: not valid UTF-8"),
        (b"a\0b", {}, r"a\.txt:1:2: a NUL character"),
        (None, {"dev": 4}, "dev is 4; give an integer from 5"),
        (None, {"test": 2.5}, r"test is 2\.5; give"),
        (None, {"least": 0}, "least is 0; give an integer from 1"),
        (None, {"least": 29}, "most is 28; give an integer from 29"),
        (None, {"seed": -1}, "seed is -1"),
    ],
)
def test_bad_input_writes_nothing(content, settings, message, made_up, tmp_path):
    path = tmp_path / "a.txt"
    content = made_up[0].read_bytes() if content is None else content
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SentembError, match=message):
        import_clauses([path], tmp_path / "new" / "out", **{"dev": 5, "test": 5, **settings})
    assert not (tmp_path / "new").exists()


@pytest.mark.usefixtures("laboratory")
def test_command(made_up, tmp_path):
    path, _ = made_up
    vectors = tmp_path / "vectors.txt"
    rng = np.random.default_rng(3)
    vectors.write_text(
        "".join(f"{word} {' '.join(map(str, rng.standard_normal(4).round(3)))}\n" for word in WORDS)
    )
    out = tmp_path / "out"
    arguments = ["data", "clauses", str(path), "-o", str(out), "--dev", "10", "--test", "20"]
    similar = ["--hard", "--vectors", str(vectors)]
    result = CliRunner().invoke(main, [*arguments, *similar])
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1:] == ["pairs: 50", "dev queries: 10", "test queries: 20"]
    assert set(parts(out)) == {"", "dev", "dev_hard", "test", "test_hard"}
    assert "50 training pairs" in (out / "README.md").read_text()

    again = CliRunner().invoke(main, arguments)
    assert again.exit_code == 1 and "is not empty; name another folder" in again.stderr
    for options, message in (
        (["--hard"], "--hard needs word vectors; name some with --vectors"),
        (["--vectors", str(vectors)], "--vectors needs --hard"),
    ):
        wrong = CliRunner().invoke(main, [*arguments, *options])
        assert wrong.exit_code == 2 and message in wrong.stderr
    unknown = tmp_path / "unknown.txt"
    unknown.write_text("zzz 1 2\n")
    result = CliRunner().invoke(
        main, [*arguments[:-4], "--force", "--dev", "5", "--test", "5", *similar[:2], str(unknown)]
    )
    assert result.exit_code == 1
    assert re.search(r"unknown.txt: none of the words has a vector", result.stderr)


@pytest.mark.slow
@pytest.mark.skipif(
    not (SHARED / "completion").is_dir(), reason="there is no ../shared/data/completion"
)
def test_real_clauses_come_back(tmp_path):
    lines = (SHARED / "completion" / "pairs.tsv").read_text("utf-8").splitlines()
    pairs = [tuple(line.split("\t")) for line in lines]
    path = tmp_path / "book.txt"
    path.write_text(prose(pairs, np.random.default_rng(0)), encoding="utf-8")
    import_clauses([path], tmp_path / "out")
    assert sorted(all_pairs(parts(tmp_path / "out"))) == sorted(pairs)
