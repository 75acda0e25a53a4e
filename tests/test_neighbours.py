"""Neighbours and synonyms: against loops over all words, and a parser of Solr's format."""

import json

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_pair_model, made_up_words

from sentemb import SentembError
from sentemb.analysis.nearest_words import Neighbour, frequent_words, known_words, neighbours
from sentemb.analysis.synonyms import Synonyms, solr_lines, spelling, synonyms
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import split_words

WORDS = made_up_words(np.random.default_rng(0), 40)
KNOWN = sorted(set(WORDS))


@pytest.fixture(scope="module")
def model():
    return made_up_model(("lstm", {}), WORDS, dtype=np.float32)


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("neighbours")
    model.save_pretrained(path / "model")
    builder = ClickLogBuilder()
    for k, word in enumerate(KNOWN):
        builder.add(f"{word}, {KNOWN[k - 1]}", f"({KNOWN[-k - 1]} {word}) {k}")
    write_click_log(builder.build(), path / "pairs.tsv")
    (path / "words.txt").write_text("\n".join([*KNOWN, "上海", ""]))
    return path


def run(*arguments, code=0):
    result = CliRunner().invoke(main, [str(one) for one in arguments])
    assert result.exit_code == code, result.output
    return result


def refused(*arguments):
    """The one line that stderr says, exit code 1."""
    result = run(*arguments, code=1)
    assert result.stdout == "" and result.stderr.count("\n") == 1
    return result.stderr


def naive_neighbours(model, word, among, k, side):
    vector = model.encode(word, side=side)
    scored = [
        (other, float(model.similarity(vector, model.encode(other, side=side))[0, 0]))
        for other in dict.fromkeys(among)
        if other != word
    ]
    return sorted(scored, key=lambda one: -one[1])[:k]


@pytest.mark.parametrize("side", ["query", "document"])
@pytest.mark.parametrize("k", [1, 4, 500])
def test_neighbours_are_the_words_with_the_highest_cosines(model, side, k):
    looked_up = [KNOWN[3], "abcabc"]  # a word to choose from, and one that was never met
    assert looked_up[1] not in KNOWN
    found = neighbours(model, looked_up, [*KNOWN, *KNOWN], k, side)
    for word, near in zip(looked_up, found, strict=True):
        expected = naive_neighbours(model, word, KNOWN, k, side)
        assert [one.word for one in near] == [name for name, _ in expected]
        assert [one.score for one in near] == pytest.approx(
            [score for _, score in expected], abs=1e-6
        )


def test_words_without_a_known_feature_find_nothing_and_are_never_found(model):
    among = [*KNOWN[:5], "上海", "東京"]
    (unknown, known) = neighbours(model, ["大阪", KNOWN[0]], among, 10)
    assert unknown == []
    assert {one.word for one in known} == set(KNOWN[1:5])
    assert known_words(model, ["上海", KNOWN[1], KNOWN[0], KNOWN[1]]) == [KNOWN[1], KNOWN[0]]


def test_a_word_is_read_as_the_model_reads_it(model):
    assert neighbours(model, [KNOWN[2].upper()], KNOWN) == neighbours(model, [KNOWN[2]], KNOWN)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"words": ["a b"]}, "'a b' has 2 words; give one word"),
        ({"words": [" "]}, "' ' has 0 words"),
        ({"among": ["上海"]}, "none of the words"),
        ({"among": []}, "none of the words"),
        ({"k": 0}, "k is 0"),
        ({"side": "title"}, "side must be query or document"),
    ],
)
def test_wrong_arguments_of_neighbours(model, arguments, message):
    with pytest.raises(SentembError, match=message):
        neighbours(model, **{"words": ["ab"], "among": KNOWN, **arguments})


def test_frequent_words_have_no_punctuation_and_a_letter():
    texts = ["(Cook, c++ 12", "cook: x c++ 12", "«cook» c++ 12 x", "once x"]
    assert frequent_words(texts, split_words, 3) == ["c++", "cook"]
    assert frequent_words(texts, split_words, 1) == ["c++", "cook", "once"]
    assert frequent_words(texts, split_words, 4) == []


# -- synonyms --------------------------------------------------------------------------------------


def naive_synonyms(model, queries, titles, k, least, most_alike):
    for word in sorted(set(queries)):
        near = sorted(
            (
                (model.score(word, other), other)
                for other in set(titles)
                if model.score(word, other) >= least and spelling(word, other) <= most_alike
            ),
            reverse=True,
        )
        if near:
            yield word, [other for _, other in near[:k]]


@pytest.mark.parametrize(("k", "least", "most_alike"), [(2, 0.2, 0.3), (20, -1, 1), (1, 0, 0)])
def test_synonyms_are_near_and_spelled_differently(model, k, least, most_alike):
    queries, titles = KNOWN[:20][::-1], KNOWN[12:]
    found = synonyms(model, queries, titles, k, least, most_alike)
    assert [(one.word, [near.word for near in one.near]) for one in found] == list(
        naive_synonyms(model, queries, titles, k, least, most_alike)
    )
    for one in found:
        for near in one.near:
            assert near.score == pytest.approx(model.score(one.word, near.word), abs=1e-6)


def test_the_order_of_the_words_given_does_not_matter(model):
    assert synonyms(model, KNOWN, KNOWN, 3, 0) == synonyms(model, KNOWN[::-1], KNOWN[::-1], 3, 0)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("ab", "ab", 1), ("ab", "cd", 0), ("cook", "cooks", 6 / 9), ("aaaa", "aaa", 1)],
)
def test_spelling_is_dice_of_distinct_trigrams(a, b, expected):
    # cook: #co coo ook ok#; cooks: #co coo ook oks ks#; aaaa: #aa aaa aa#, like aaa.
    assert spelling(a, b) == spelling(b, a) == pytest.approx(expected)


def parsed(line):
    """A line of a file of synonyms as Lucene's SolrSynonymParser documents it: inputs, outputs."""
    if not line.strip() or line.startswith("#"):
        return None
    sides, words, word, at = [], [], "", 0
    while at < len(line):
        if line.startswith("=>", at):
            words.append(word)
            sides.append([one.strip() for one in words])
            words, word, at = [], "", at + 2
        elif line[at] == ",":
            words.append(word)
            word, at = "", at + 1
        elif line[at] == "\\":
            word, at = word + line[at + 1], at + 2
        else:
            word, at = word + line[at], at + 1
    return *sides, [one.strip() for one in [*words, word]]


NASTY = ["a,b", "#1", "x=>y", "back\\slash", "a=>b,#\\", "plain", "=", "c#"]


@pytest.mark.parametrize("word", NASTY)
def test_every_word_is_read_back_from_a_line(word):
    found = Synonyms(word, [Neighbour(other, 0.5) for other in NASTY])
    (line,) = solr_lines([found])
    assert parsed(line) == ([word], [word, *NASTY])


def test_plain_words_are_written_as_they_are():
    found = [Synonyms("cook", [Neighbour("chef", 0.75), Neighbour("grill", 0.6)])]
    assert list(solr_lines(found)) == ["cook => cook, chef, grill"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"query_words": []}, "no words to choose from"),
        ({"title_words": ["上海"]}, "no words to choose from"),
        ({"k": 21}, "k is 21"),
        ({"min_score": 1.5}, "min_score is 1.5"),
        ({"max_spelling": -0.1}, "max_spelling is -0.1"),
    ],
)
def test_wrong_arguments_of_synonyms(model, arguments, message):
    with pytest.raises(SentembError, match=message):
        synonyms(model, **{"query_words": KNOWN, "title_words": KNOWN, **arguments})


# -- the commands ----------------------------------------------------------------------------------


def test_the_command_neighbours(model, folder):
    place = folder / "model"
    words = ["--among", folder / "words.txt"]
    result = run("neighbours", place, KNOWN[3], "大阪", *words, "-k", 2)
    (near, _) = neighbours(model, [KNOWN[3], "大阪"], KNOWN, 2)
    lines = [KNOWN[3], *(f"{one.score:9.3f}  {one.word}" for one in near), "", "大阪", ""]
    assert result.stdout.splitlines() == lines
    assert "knows nothing of '大阪'" in result.stderr
    printed = json.loads(run("neighbours", place, KNOWN[3], *words, "-k", 2, "--json").stdout)
    assert printed == {
        "side": "query",
        "words": [{"word": KNOWN[3], "neighbours": [one._asdict() for one in near]}],
    }


@pytest.mark.parametrize("side", ["query", "document"])
def test_neighbours_among_the_words_of_a_side_of_the_log(folder, side):
    log = folder / "pairs.tsv"
    arguments = ["neighbours", folder / "model", "ab", "--log", log, "--side", side, "--json"]
    column = 0 if side == "query" else 1
    texts = [line.split("\t")[column] for line in log.read_text().splitlines()]
    words = [word.strip(",()") for text in texts for word in text.split()]
    frequent = {word for word in words if words.count(word) >= 2 and len(word) > 1}
    found = json.loads(run(*arguments, "--min-uses", 2, "-k", 100).stdout)["words"][0]
    assert {one["word"] for one in found["neighbours"]} == frequent - {"ab"}


def test_the_words_with_a_feature_of_their_own_are_the_default(model, tmp_path):
    assert "no word has a feature of its own; give --among or --log" in refused(
        "neighbours", save(model, tmp_path / "none"), "ab"
    )
    vocabulary = Vocabulary(model.vocabulary.trigrams, ["(abc", "abc", "12", "cab"])
    rows = len(vocabulary)
    other = made_up_model(("bag", {}), WORDS)
    weights = {
        side: {"table": np.random.default_rng(k).standard_normal((rows, 5))}
        for k, side in enumerate(("query", "document"))
    }
    own = type(other)(other.encoder, vocabulary, weights, threads=1)
    place = save(own, tmp_path / "own")
    found = json.loads(run("neighbours", place, "ab", "--json").stdout)["words"][0]
    assert {one["word"] for one in found["neighbours"]} == {"abc", "cab"}
    assert run("synonyms", place, "--min-score", -1).stderr.endswith(
        "of 2 words have synonyms among 2; --min-score sets how many\n"
    )


def save(model, path):
    model.save_pretrained(path)
    return path


def test_the_command_synonyms(model, folder, tmp_path):
    out = tmp_path / "synonyms.txt"
    options = ["--log", folder / "pairs.tsv", "--min-uses", 1, "--min-score", 0, "-k", 2]
    result = run("synonyms", folder / "model", "-o", out, *options)
    words = [word for word in KNOWN if len(word) > 1]
    expected = synonyms(model, words, words, 2, 0)
    assert out.read_text().splitlines() == list(solr_lines(expected))
    assert result.stderr == ""
    count = f"{len(expected)} of {len(words)} words have synonyms among {len(words)}"
    assert count in result.stdout
    streamed = run("synonyms", folder / "model", *options)
    assert streamed.stdout == out.read_text() and count in streamed.stderr
    summary = run("synonyms", folder / "model", "-o", out, "--force", "--json", *options).stdout
    numbers = {"synonyms": len(expected), "words": len(words), "title_words": len(words)}
    assert json.loads(summary) == {"output": str(out), **numbers}


def test_wrong_usage_of_the_commands(folder, tmp_path):
    place, log, words = folder / "model", folder / "pairs.tsv", folder / "words.txt"
    both = run("neighbours", place, "ab", "--log", log, "--among", words, code=2)
    assert "give --among or --log, not both" in both.stderr
    for name in (["neighbours", place, "ab"], ["synonyms", place]):
        assert "--min-uses needs --log" in run(*name, "--min-uses", 2, code=2).stderr
        missing = refused(*name, "--log", tmp_path / "none.tsv")
        assert "none.tsv" in missing
        many = refused(*name, "--log", log, "--min-uses", 1000)
        assert "--min-uses" in many or "fewer uses" in many
    assert "give one word" in refused("neighbours", place, "ab cd", "--among", words)
    (tmp_path / "other.txt").write_text("上海\n")
    foreign = refused("neighbours", place, "ab", "--among", tmp_path / "other.txt")
    assert "other.txt: the model knows none of the words" in foreign
    made_up_pair_model(["a b"]).save_pretrained(tmp_path / "pair")
    for name in (["neighbours", tmp_path / "pair", "ab"], ["synonyms", tmp_path / "pair"]):
        assert "pair" in refused(*name)
