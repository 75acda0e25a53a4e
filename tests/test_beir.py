"""The importer of sets in the format of BEIR, on a small made-up set."""

import gzip
import json
from itertools import pairwise

import pytest
from click.testing import CliRunner

from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.importers.beir import import_beir
from sentemb.data.judged_set import read_judged_set, read_texts


def run(*arguments):
    """The counts that ``sentemb data`` prints."""
    done = CliRunner().invoke(main, ["data", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return dict(line.split(": ") for line in done.stdout.splitlines())


def grades(folder):
    """Query -> title -> grade of a judged set."""
    judged = read_judged_set(folder)
    return {
        query: {
            judged.titles[title]: int(grade)
            for title, grade in zip(
                judged.title_index[low:high], judged.grade[low:high], strict=True
            )
        }
        for query, (low, high) in zip(judged.queries, pairwise(judged.offsets), strict=True)
    }


def pairs(path):
    return [tuple(line.split("\t")) for line in path.read_text().splitlines()]


def write(path, lines):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "facts"
    documents = [
        {"_id": "d 1", "title": "Sky", "text": "x", "metadata": {}},
        {"_id": "d2", "title": "", "text": "One two\nthree four"},
        {"_id": "d3", "title": "Other", "text": ""},
        {"_id": "d4", "title": "", "text": " "},
    ]
    write(folder / "corpus.jsonl", map(json.dumps, documents))
    queries = [{"_id": f"q{k}", "text": f"query {k}"} for k in range(4)]
    write(folder / "queries.jsonl", map(json.dumps, queries))
    head = "query-id\tcorpus-id\tscore"
    write(folder / "qrels" / "train.tsv", [head, "q0\td 1\t1", "q0\td3\t0", "q1\td2\t2"])
    write(folder / "qrels" / "dev.tsv", [head, "q2\td 1\t1", "q2\tmissing\t1"])
    write(folder / "qrels" / "test.tsv", [head, "q3\td 1\t2", "q3\td2\t0"])
    return folder


def test_beir(corpus, tmp_path):
    out = tmp_path / "out"
    counts = run("beir", corpus, "-o", out, "--title-words", "3")
    assert counts == {"titles": "3", "pairs": "2", "dev queries": "1", "test queries": "1"}
    assert read_texts(out / "titles.tsv") == (
        ["d_1", "d2", "d3"],
        ["Sky", "One two three", "Other"],
    )
    assert pairs(out / "pairs.tsv") == [("query 0", "Sky"), ("query 1", "One two three")]
    assert pairs(out / "dev.tsv") == [("query 2", "Sky")]
    assert grades(out / "test") == {"query 3": {"Sky": 2, "One two three": 0}}
    write(corpus / "qrels" / "dev.tsv", ["query-id\tcorpus-id\tscore", "q2\td 1\tgood"])
    with pytest.raises(SentembError, match=r"dev.tsv:2: the score 'good' is not an integer"):
        import_beir(corpus, tmp_path / "new")
    for path in (corpus / "qrels").iterdir():
        path.unlink()
    with pytest.raises(SentembError, match=r"qrels: has none of train, dev, test.tsv"):
        import_beir(corpus, tmp_path / "new")


def test_packed_files_and_a_missing_one(corpus, tmp_path):
    packed = gzip.compress((corpus / "corpus.jsonl").read_bytes())
    (corpus / "corpus.jsonl.gz").write_bytes(packed)
    (corpus / "corpus.jsonl").unlink()
    assert import_beir(corpus, tmp_path / "out")["titles"] == 3
    (corpus / "queries.jsonl").unlink()
    with pytest.raises(SentembError, match=r"queries.jsonl: no such file, packed or not"):
        import_beir(corpus, tmp_path / "new")
    with pytest.raises(SentembError, match="is not empty"):
        import_beir(corpus, tmp_path / "out")


def test_a_corpus_without_titles(corpus, tmp_path):
    documents = [{"_id": "d2", "text": "One two"}]
    write(corpus / "corpus.jsonl", map(json.dumps, documents))
    import_beir(corpus, tmp_path / "out")
    assert pairs(tmp_path / "out" / "pairs.tsv") == [("query 1", "One two")]


def test_each_query_is_graded_or_not(corpus, tmp_path):
    """One query with different grades says nothing about the others."""
    head = "query-id\tcorpus-id\tscore"
    lines = ["q3\td 1\t2.0", "q3\td2\t1.0", "q1\td 1\t1.0", "q1\td3\t1", "q2\td3\t0", "q9\td3\t1"]
    write(corpus / "qrels" / "test.tsv", [head, *lines, ""])
    counts = import_beir(corpus, tmp_path / "out")
    assert counts["test_queries"] == 2 and counts["test_queries_left_out"] == 2
    assert counts["test_queries_judged"] == counts["test_queries_with_right_titles_only"] == 1
    assert grades(tmp_path / "out" / "test") == {"query 3": {"Sky": 2, "One two three four": 1}}
    assert pairs(tmp_path / "out" / "test.tsv") == [("query 1", "Sky"), ("query 1", "Other")]


@pytest.mark.parametrize("names", [True, False])
@pytest.mark.parametrize("mark", [" ", ","])
def test_judgments_may_have_blanks_or_commas_between_columns(corpus, tmp_path, mark, names):
    """As judgments of TREC have, and what a spreadsheet writes."""
    lines = ["query-id corpus-id score"] * names + ["q3 d2 2", "q3 d3 0", "q2 d2 1"]
    write(corpus / "qrels" / "test.tsv", [line.replace(" ", mark) for line in lines])
    import_beir(corpus, tmp_path / "new")
    assert grades(tmp_path / "new" / "test") == {"query 3": {"One two three four": 2, "Other": 0}}
    assert pairs(tmp_path / "new" / "test.tsv") == [("query 2", "One two three four")]


@pytest.mark.parametrize("columns", ["{}\t{}\t{}", "{}\t0\t{}\t{}.0", "{}\tQ0\t{}\t{}e0"])
def test_judgments_without_a_line_of_names_are_read(corpus, tmp_path, columns):
    lines = [columns.format("q3", "d 1", 2), columns.format("q3", "d2", 0), " "]
    write(corpus / "qrels" / "test.tsv", lines)
    import_beir(corpus, tmp_path / "new")
    assert grades(tmp_path / "new" / "test") == {"query 3": {"Sky": 2, "One two three four": 0}}


@pytest.mark.parametrize(
    "score", ["3000000000", "-3000000000", "1_0", "9" * 5000, "1.5", "1e999", ""]
)
def test_a_score_that_no_grade_can_have_is_named(corpus, tmp_path, score):
    head = "query-id\tcorpus-id\tscore"
    write(corpus / "qrels" / "test.tsv", [head, "q3\td 1\t0", f"q3\td2\t{score}"])
    with pytest.raises(
        SentembError, match=r"test.tsv:3: the score .* is not an integer up to 2,147"
    ):
        import_beir(corpus, tmp_path / "new")
    write(corpus / "qrels" / "test.tsv", [head, "q3\td 1\t0", f"q3\td2\t{2**31 - 1}"])
    import_beir(corpus, tmp_path / "new")
    assert grades(tmp_path / "new" / "test") == {
        "query 3": {"Sky": 0, "One two three four": 2**31 - 1}
    }


@pytest.mark.parametrize("id", ["d 1", "d_1", " d\t1 "])
def test_a_repeated_document_is_named(corpus, tmp_path, id):
    with open(corpus / "corpus.jsonl", "a") as file:
        file.write(json.dumps({"_id": id, "text": "again"}) + "\n")
    with pytest.raises(SentembError, match=r"corpus.jsonl:5: the id 'd_1' is that of an ear"):
        import_beir(corpus, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_query_without_a_relevant_title_is_not_counted(corpus, tmp_path):
    head = "query-id\tcorpus-id\tscore"
    write(corpus / "qrels" / "test.tsv", [head, "q3\td 1\t1", "q2\td 1\t0"])
    assert import_beir(corpus, tmp_path / "out")["test_queries"] == 1
    assert pairs(tmp_path / "out" / "test.tsv") == [("query 3", "Sky")]
    write(corpus / "qrels" / "test.tsv", [head, "q3\tmissing\t1", "q3\td 1\t0"])
    assert import_beir(corpus, tmp_path / "none")["test_queries"] == 0
    assert not list((tmp_path / "none").glob("test*"))
    for low, high in ((0, 0), (-1, 0)):
        write(corpus / "qrels" / "test.tsv", [head, f"q3\td 1\t{high}", f"q2\td 1\t{low}"])
        with pytest.raises(SentembError, match=r"test.tsv: has no score above 0; correct or rem"):
            import_beir(corpus, tmp_path / "new")


def test_the_folder_at_hand_has_a_name(corpus, tmp_path, monkeypatch):
    monkeypatch.chdir(corpus)
    import_beir(".", tmp_path / "out")
    assert (tmp_path / "out" / "README.md").read_text().startswith("# facts: ")
