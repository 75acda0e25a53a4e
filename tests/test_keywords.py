"""Keywords: hand-made outputs, an independent count, and the command."""

import json
import unicodedata
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

from sentemb import SentembError, SentenceEncoder
from sentemb.analysis.gates import most_active
from sentemb.analysis.keywords import NOT_COMPARED, extract_keywords, step_changes
from sentemb.cli import main
from sentemb.models.sentence_encoder import GateTrace
from sentemb.text.vocabulary import Vocabulary

WORDS_10 = "how to fix bath tub that wont turn off today"
TEXTS = {
    "1": "hotels",
    "2": "hotels in",
    "3": "hotels in shanghai",
    "10": WORDS_10,
    "30": " ".join([WORDS_10] * 3),
    "unknown": "hotels qqq zzz shanghai",
    "Cyrillic": "Гостиницы в Шанхае hotels",
    "Chinese": "上海 的 hotels",
    "emoji": "hotels 😀 👩‍👧 shanghai",
    "twice": "hotels hotels hotels",
}


def stub(outputs, directions=1):
    """A model whose outputs y are ``outputs`` (T, dim), whatever it reads."""
    outputs = np.array(outputs, float)
    words = [f"w{t}" for t in range(len(outputs))]
    return SimpleNamespace(
        trace=lambda text, side: GateTrace(words, outputs),
        encoder=SimpleNamespace(directions=directions),
    )


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["keywords", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result


def columns(line):
    """How wide a terminal shows ``line``."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in line)


class TestByHand:
    # Changes: 1 0 | 0 .1 | 1 .2, mean 2.3 / 6 = 0.383.
    ONE_WAY = ((1, 0), (1, 0.1), (0, 0.3))

    def test_one_way(self):
        found = extract_keywords(stub(self.ONE_WAY), "")
        np.testing.assert_allclose(found.thresholds, [2.3 / 6])
        np.testing.assert_array_equal(found.counts, [[NOT_COMPARED, 0, 1]])
        assert found.cells == 2
        assert found.verdicts == [None, False, True]

    def test_two_ways_ask_each_direction_where_it_can_tell(self):
        # Right to left it reads 0, .5, 1: changes 0, .5, .5 with the mean 1/3.
        both = [[y, back] for (y, _), back in zip(self.ONE_WAY, (1, 0.5, 0), strict=True)]
        steps = step_changes(stub(both, 2), "")
        np.testing.assert_allclose(steps.changes[:, :, 0], [[1, 0, 1], [0.5, 0.5, 0]])
        np.testing.assert_array_equal(steps.final, [[0], [1]])
        np.testing.assert_array_equal(steps.compared, [[0, 1, 1], [1, 1, 0]])
        found = extract_keywords(stub(both, 2), "")
        np.testing.assert_allclose(found.thresholds, [2 / 3, 1 / 3])
        np.testing.assert_array_equal(found.counts, [[NOT_COMPARED, 0, 1], [1, 1, NOT_COMPARED]])
        # Left to right against the second word, alone for the third; right to left for the first.
        assert found.verdicts == [True, False, True]

    def test_a_notebook_shows_counts_and_verdicts(self):
        shown = extract_keywords(stub(self.ONE_WAY), "")._repr_html_()
        assert "<th>left to right</th>" in shown and "<th>right to left</th>" not in shown
        assert "<tr><th>w0</th><td>-</td><td>-</td></tr>" in shown
        assert "<tr><th>w1</th><td>0</td><td></td></tr>" in shown
        assert "<tr><th>w2</th><td>1</td><td>yes</td></tr>" in shown

    def test_only_the_ten_most_active_cells_count_and_more_than_four_make_a_keyword(self):
        final = np.array([*range(20, 10, -1), 1, 1, 1, 1], float)
        for active, keyword in ((4, False), (5, True)):
            first = final.copy()
            first[:active] -= 9  # move at the second word
            first[10:] -= 9  # move as well, but are not active
            found = extract_keywords(stub([first, final]), "", threshold=8)
            assert found.cells == 10
            assert found.counts[0, 1] == active
            assert found.verdicts == [None, keyword]

    def test_a_change_must_exceed_the_threshold(self):
        assert extract_keywords(stub([[0], [1]]), "", threshold=1).counts[0, 1] == 0
        assert extract_keywords(stub([[0], [1]]), "", threshold=0.99).counts[0, 1] == 1

    def test_most_active_is_by_size_not_sign(self):
        assert most_active(np.array([0.5, -2, 1, 1]), 3).tolist() == [1, 2, 3]

    @pytest.mark.parametrize("threshold", [-1, float("nan")])
    def test_thresholds_that_are_none(self, threshold):
        with pytest.raises(SentembError, match="give 0 or more"):
            extract_keywords(stub([[0]]), "", threshold=threshold)


@pytest.mark.parametrize("name", ["lstm", "rnn", "bilstm", "irnn"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_counts_as_a_plain_loop_has_them(make_model, name, text):
    model = make_model(name, cells=12)
    found = extract_keywords(model, text)
    outputs = model.trace(text).y
    for direction in range(model.encoder.directions):
        y = outputs[:, 12 * direction : 12 * (direction + 1)][:: -1 if direction else 1]
        counts = found.counts[direction][:: -1 if direction else 1]
        moves = [abs(y[t] - (y[t - 1] if t else 0)) for t in range(len(y))]
        assert found.thresholds[direction] == pytest.approx(np.mean(moves))
        active = sorted(range(12), key=lambda j: -abs(y[-1][j]))[:10]
        assert counts[0] == NOT_COMPARED
        for t in range(1, len(y)):
            assert counts[t] == sum(moves[t][j] > found.thresholds[direction] for j in active)


def test_a_text_without_words(model):
    with pytest.raises(SentembError, match="without words"):
        extract_keywords(model, " ")


class TestCommand:
    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_a_line_for_every_word(self, model_dir, text):
        title, head, *lines, last = run(model_dir, text).stdout.split("\n")[:-1]
        assert title == text.replace("\u200d", "")  # no characters that do not show
        assert head.split() == ["left", "to", "right", "keyword"]
        assert len(lines) == len(text.split())
        assert last == ""
        assert lines[0].split()[1:] == ["-", "-"]

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_json_is_what_python_gives(self, model, model_dir, text):
        report = json.loads(run(model_dir, text, "--json").stdout)
        found = extract_keywords(model, text)
        (of_model,) = report["texts"][0]["models"]
        words = of_model["words"]
        assert [word["word"] for word in words] == found.words
        assert [word["keyword"] for word in words] == found.verdicts
        assert [word["left_to_right"] for word in words] == [None, *found.counts[0, 1:].tolist()]
        assert of_model["threshold"] == {"left_to_right": found.thresholds[0]}

    def test_wide_letters_keep_columns(self, model_dir):
        _, head, *lines = run(model_dir, "上海 hotels 的", "--min-change", "0").stdout.splitlines()
        ends = {columns(line[: line.rindex("8") + 1]) for line in lines[1:3]}
        assert ends == {head.index("right") + len("right")}

    def test_two_models_side_by_side(self, make_model, model_dir, tmp_path):
        make_model("bilstm").save_pretrained(tmp_path / "bidirectional")
        names, head, *lines = run(
            model_dir, "hotels in shanghai", "--compare-with", tmp_path / "bidirectional"
        ).stdout.splitlines()[1:]
        assert names.split() == ["tiny", "bidirectional"]
        assert " ".join(head.split()) == "left to right keyword left to right right to left keyword"
        assert lines[0].split()[:4] == ["hotels", "-", "-", "-"]

    def test_models_that_split_a_text_into_other_words(self, model, model_dir, tmp_path):
        known = model.vocabulary
        vocabulary = Vocabulary(known.trigrams, known.words, "bare")
        SentenceEncoder(model.encoder, vocabulary, model.weights).save_pretrained(tmp_path / "bare")
        arguments = model_dir, "hotels in", "東京都 hub", "--compare-with", tmp_path / "bare"
        for options in ((), ("--markdown",)):
            refused = run(*arguments, *options, code=1)
            assert "the models split the text into other words" in refused.stderr
            assert refused.stdout == ""
        of_models = json.loads(run(*arguments, "--json").stdout)["texts"][1]["models"]
        assert [len(of_model["words"]) for of_model in of_models] == [2, 3]

    def test_markdown(self, model_dir, tmp_path):
        printed = run(model_dir, "hotels a|b *c*", "--markdown", "--min-change", "0").stdout
        assert printed.splitlines() == [
            r"hotels a\|b \*c\*",
            "",
            "| word | left to right | keyword |",
            "| --- | --: | --: |",
            "| hotels | - | - |",
            r"| a\|b | **8** | yes |",
            r"| \*c\* | **8** | yes |",
            "",
        ]

    def test_unknown_words_are_named(self, model_dir):
        result = run(model_dir, "hotels qqq 上海")
        assert "knows nothing of 'qqq', '上海'" in result.stderr
        assert run(model_dir, "hotels").stderr == ""

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [([""], "without words"), (["hotels", "--min-change", "-1"], "give 0 or more")],
    )
    def test_mistakes(self, model_dir, arguments, message):
        result = run(model_dir, *arguments, code=1)
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1

    def test_wrong_usage(self, model_dir):
        assert "not both" in run(model_dir, "a", "--json", "--markdown", code=2).stderr

    def test_no_model(self, tmp_path):
        assert str(Path(tmp_path)) in run(tmp_path, "hotels", code=1).stderr
