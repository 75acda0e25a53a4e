"""Topics: what cells extract and collect, the truth about queries, the figure, the command."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from test_keywords import TEXTS, stub

from sentemb import SentembError
from sentemb.analysis.figures.topic_figure import topics_figure
from sentemb.analysis.topics import (
    CollectedWord,
    QueryCells,
    cells_by_topics,
    collect_words,
    query_cells,
)
from sentemb.cli import main
from sentemb.data.simulation.truth import Truth, read_truth

QUERIES = "q1\thotels in shanghai\nq2\tfix a bath tub\nq3\thotels\n"
TRUTH = [
    {"text": "hotels in shanghai", "side": "query", "topic": "travel", "keywords": ["hotels"]},
    {"text": "fix a bath tub", "side": "query", "topic": "home", "keywords": ["bath", "tub"]},
    {"text": "hotels", "side": "query", "topic": "travel", "keywords": ["hotels"]},
    {"text": "Shanghai Hotels", "side": "title", "topic": "travel", "keywords": ["Hotels"]},
]


def run(*arguments, input=None, code=0):
    result = CliRunner().invoke(main, ["topics", *map(str, arguments)], input=input)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("queries.tsv").write_text(QUERIES)
    write_truth(TRUTH)
    return tmp_path


def write_truth(records):
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    Path("truth.jsonl").write_text("\n".join(lines) + "\n")


class TestCells:
    def test_the_five_most_active_cells_and_their_words(self):
        # Cell 5 moves most but ends at 0; the others end at 1 to 5, cell 0 below 0.
        outputs = np.zeros((3, 6))
        outputs[2] = [-5, 4, 3, 2, 1, 0]
        outputs[1] = [0, 4, 0, 1, 1, 9]
        found = query_cells(stub(outputs), "", threshold=0.5)
        assert found.extracted == {0: [2], 1: [1], 2: [2], 3: [1, 2], 4: [1]}
        assert list(found.extracted) == [0, 1, 2, 3, 4]

    def test_cells_of_the_second_direction_are_numbered_on(self):
        # Both read a 1 at the end of the text, which is the start for the second one.
        found = query_cells(stub([[0, 1], [1, 1]], 2), "", threshold=0.5)
        assert found.extracted == {0: [1], 1: []}

    @pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
    def test_any_text(self, model, text):
        found = query_cells(model, text)
        assert len(found.extracted) == 5
        assert all(0 < place < len(found.words) for p in found.extracted.values() for place in p)

    def test_collected_words_are_ranked_by_times_and_share(self):
        queries = [
            QueryCells(["a", "b"], {0: [1], 1: [1]}),
            QueryCells(["c", "b", "b"], {0: [1, 2]}),
            QueryCells(["a", "c"], {0: [1], 2: []}),
        ]
        assert collect_words(queries) == {
            0: [CollectedWord("b", 2, 2 / 3), CollectedWord("c", 1, 1.0)],
            1: [CollectedWord("b", 1, 1 / 3)],
        }

    def test_counts_of_cells_and_topics(self):
        queries = [QueryCells([], {0: [1, 2], 3: [1]}), QueryCells([], {0: [1]})]
        names, counts = cells_by_topics(queries, ["y", "x"], 4)
        assert names == ["x", "y"]
        np.testing.assert_array_equal(counts, [[1, 2], [0, 0], [0, 0], [0, 1]])


class TestTruth:
    def test_reads_sides_and_keywords(self, files):
        truth = read_truth("truth.jsonl")
        assert truth["title"] == {"Shanghai Hotels": Truth("travel", frozenset(["hotels"]))}
        fix = truth["query"]["fix a bath tub"]
        assert fix.marks(["fix", "a", "bath", "tub"]) == [False, False, True, True]

    @pytest.mark.parametrize(
        ("record", "message"),
        [
            ("{", ":2:2: not JSON"),
            ("[1]", ":2: not a JSON object"),
            ("[" * 100_000, ":2: not JSON"),
            ({**TRUTH[1], "text": 3}, ':2: "text" is not a text'),
            ({**TRUTH[1], "topic": " "}, ':2: "topic" is not a text'),
            ({**TRUTH[1], "side": "left"}, ":2: the side is 'left'"),
            ({**TRUTH[1], "keywords": "bath"}, ':2: "keywords" is not a list'),
            ({**TRUTH[1], "keywords": ["sink"]}, ":2: the keyword 'sink' is not a word"),
            (TRUTH[0], ":2: the query is already in line 1"),
        ],
    )
    def test_mistakes(self, files, record, message):
        write_truth([TRUTH[0], record])
        with pytest.raises(SentembError) as caught:
            read_truth("truth.jsonl")
        assert str(caught.value).startswith(f"truth.jsonl{message}")

    def test_empty(self, files):
        Path("truth.jsonl").write_text("")
        with pytest.raises(SentembError, match="the input is empty"):
            read_truth("truth.jsonl")


class TestFigure:
    def test_shares_with_topics_by_words_and_cells_by_topic(self):
        # Cell 1 has too few words; topic b has more words than a.
        counts = np.array([[4, 0], [0, 1], [1, 3], [0, 6]])
        figure = topics_figure(["a", "b"], counts)
        ax = figure.axes[0]
        assert [label.get_text() for label in ax.get_xticklabels()] == ["b", "a"]
        assert [label.get_text() for label in ax.get_yticklabels()] == ["3", "2", "0"]
        np.testing.assert_allclose(ax.images[0].get_array(), [[1, 0], [0.75, 0.25], [0, 1]])

    def test_too_few_words(self):
        with pytest.raises(SentembError, match="give more queries"):
            topics_figure(["a", "b"], np.array([[1, 0]]))


class TestCommand:
    def test_overview(self, model, model_dir, files):
        head, *lines = run(model_dir, "queries.tsv").stdout.splitlines()
        assert head.split() == ["cell", "words", "word", "(times,", "share)"]
        expected = collect_words(query_cells(model, line.split("\t")[1]) for line in _lines())
        assert [int(line.split()[0]) for line in lines] == list(expected)
        for line, words in zip(lines, expected.values(), strict=True):
            assert f"{words[0].word} ({words[0].times}, {words[0].share:.2f})" in line

    def test_one_cell(self, model, model_dir, files):
        cell, words = next(
            iter(collect_words(query_cells(model, q.split("\t")[1]) for q in _lines()).items())
        )
        title, _, *lines = run(model_dir, "queries.tsv", "--cell", cell).stdout.splitlines()
        assert title == f"cell {cell}: {len(words)} words"
        assert [line.split()[0] for line in lines] == [found.word for found in words]

    def test_every_query(self, model_dir, files):
        result = run(model_dir, "queries.tsv", "--per-query")
        blocks = result.stdout.split("\n\n")
        assert [block.split("\n")[0].split()[0] for block in blocks[:3]] == ["q1", "q2", "q3"]
        assert all(len(block.split("\n")) == 6 for block in blocks[:3])
        # A query of one word gives nothing to compare.
        assert all(line.endswith(" -") for line in blocks[2].split("\n")[1:])
        assert "no word is extracted from 1 of 3 queries" in result.stderr

    def test_json(self, model, model_dir, files):
        report = json.loads(run(model_dir, "queries.tsv", "--per-query", "--json").stdout)
        found = query_cells(model, "hotels in shanghai")
        (first, *_) = report["queries"]
        assert {cell["cell"]: cell["words"] for cell in first["cells"]} == {
            cell: [found.words[place] for place in places]
            for cell, places in found.extracted.items()
        }
        assert {"cell", "words"} == set(report["cells"][0])

    def test_truth_names_topics_and_a_heat_map_is_drawn(self, model_dir, files):
        result = run(model_dir, "-", "--truth", "truth.jsonl", "-o", "map.png", input=QUERIES)
        assert result.stdout.splitlines()[0].split()[:3] == ["cell", "words", "topic"]
        assert all(line.split()[2] in ("travel", "home") for line in result.stdout.splitlines()[1:])
        assert Path("map.png").read_bytes().startswith(b"\x89PNG")
        assert "map.png: " in result.stderr

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (["queries.tsv", "--cell", "8"], "has no cell 8; give one from 0 to 7"),
            (["queries.tsv", "--min-change", "99"], "lower --min-change"),
            (["queries.tsv", "--truth", "short.jsonl"], "knows nothing of the query q2"),
            (["queries.tsv", "--truth", "truth.jsonl", "-o", "m.bmp"], "use .png"),
            (["texts"], "texts:1: no tab"),
            (["none.tsv"], "cannot be read"),
        ],
    )
    def test_mistakes(self, model_dir, files, arguments, message):
        Path("texts").write_text("hotels\n")
        Path("short.jsonl").write_text(json.dumps(TRUTH[0]) + "\n")
        result = run(model_dir, *arguments, code=1)
        assert result.stdout == ""
        assert result.stderr.startswith("Error: ")
        assert message in result.stderr
        assert result.stderr.count("\n") == 1

    def test_a_heat_map_needs_topics(self, model_dir, files):
        assert "--truth" in run(model_dir, "queries.tsv", "-o", "m.png", code=2).stderr


def _lines():
    return QUERIES.splitlines()
