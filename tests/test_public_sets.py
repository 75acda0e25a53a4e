"""Importers of published sets, on small made-up files in their formats."""

import csv
import gzip
import json
from itertools import pairwise
from unittest import mock

import pytest
from click.testing import CliRunner

from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.click_log import read_click_log
from sentemb.data.importers import wands
from sentemb.data.importers.beir import import_beir
from sentemb.data.importers.esci import import_esci
from sentemb.data.importers.msmarco import import_msmarco, import_orcas
from sentemb.data.importers.wands import import_wands
from sentemb.data.judged_set import read_judged_set, read_texts


def run(*arguments):
    """The counts that ``sentemb data`` prints."""
    done = CliRunner().invoke(main, ["data", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return dict(line.split("\t") for line in done.stdout.splitlines())


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


def write(path, lines, pack=False):
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(gzip.compress(text) if pack else text)


# -- MS MARCO and ORCAS -----------------------------------------------------------------------


@pytest.fixture
def marco(tmp_path):
    folder = tmp_path / "marco"
    documents = [
        ("D1", "http://a.example/", 'The "Blue" Sky', "Why the sky is blue. " * 50),
        ("D2", "http://b.example/", "Taps,  and more", "Body"),
        ("D3", "http://c.example/", "", "A page without a title"),
        ("D4", "http://d.example/", "Never needed", ""),
    ]
    write(folder / "msmarco-docs.tsv.gz", map("\t".join, documents), pack=True)
    write(folder / "msmarco-doctrain-queries.tsv", ["11\twhy blue", "12\tfix a tap", "13\tunused"])
    write(folder / "msmarco-doctrain-qrels.tsv", ["11 0 D1 1", "12 0 D2 1", "12 0 D3 1"])
    write(folder / "msmarco-docdev-queries.tsv", ["21\tblue sky"])
    write(folder / "msmarco-docdev-qrels.tsv", ["21 0 D1 1"])
    write(folder / "msmarco-test2019-queries.tsv", ["31\tsky tap", "32\tnot judged"])
    write(folder / "2019qrels-docs.txt", ["31 Q0 D1 3", "31 Q0 D2 0"])
    return folder


def test_msmarco(marco, tmp_path):
    out = tmp_path / "out"
    assert run("msmarco", marco, "-o", out) == {
        "titles": "2", "documents without title": "1", "pairs": "2",
        "dev queries": "1", "test2019 queries": "1",
    }  # fmt: skip
    assert pairs(out / "pairs.tsv") == [
        ("why blue", 'The "Blue" Sky'),
        ("fix a tap", "Taps, and more"),
    ]
    assert pairs(out / "dev.tsv") == [("blue sky", 'The "Blue" Sky')]
    assert grades(out / "test2019") == {"sky tap": {'The "Blue" Sky': 3, "Taps, and more": 0}}
    assert read_texts(out / "titles.tsv")[0] == ["D1", "D2"]
    assert "non-commercial research only" in (out / "README.md").read_text()
    with pytest.raises(SentembError, match="is not empty"):
        import_msmarco(marco, out)


def test_orcas(marco, tmp_path):
    log, out = tmp_path / "orcas.tsv", tmp_path / "out"
    rows = ['1\tblue "sky\tD1\thttp://a.example/', "1\tblue sky\tD3\tu", "2\ttap\tD2\tu"]
    write(log, rows)
    counts = run("orcas", log, marco / "msmarco-docs.tsv.gz", "-o", out)
    assert counts == {"clicks": "3", "pairs": "2", "titles": "2"}
    assert pairs(out / "pairs.tsv") == [
        ('blue "sky', 'The "Blue" Sky'),
        ("tap", "Taps, and more"),
    ]
    assert read_click_log(out / "pairs.tsv").queries == ['blue "sky', "tap"]
    write(log, ["1\tblue sky\tD1"])
    with pytest.raises(SentembError, match=r"orcas.tsv:1: no column 4; there are 3"):
        import_orcas(log, marco / "msmarco-docs.tsv.gz", tmp_path / "new")
    write(log, [*rows, "3\ttap\tD2"])
    with pytest.raises(SentembError, match=r"orcas.tsv:4: 3 columns, not 4"):
        import_orcas(log, marco / "msmarco-docs.tsv.gz", tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("msmarco-docs.tsv", ["D1\turl\ttitle"], r"docs.tsv:1: 3 columns, not document id, URL"),
        ("2019qrels-docs.txt", ["31 Q0 D1"], r"docs.txt:1: not query id, 0, title id, grade"),
        ("2020qrels-docs.txt", ["41 Q0 D1 1"], r"test2020-queries.tsv: no such file, packed or"),
    ],
)
def test_msmarco_names_what_is_wrong(marco, tmp_path, name, lines, message):
    write(marco / name, lines)
    with pytest.raises(SentembError, match=message):
        import_msmarco(marco, tmp_path / "out")
    with pytest.raises(SentembError, match="no such file"):
        import_msmarco(tmp_path, tmp_path / "out")


# -- ESCI -------------------------------------------------------------------------------------


ESCI_COLUMNS = (
    "example_id", "query", "query_id", "product_id", "product_locale", "esci_label",
    "small_version", "large_version", "split",
)  # fmt: skip


@pytest.fixture
def esci(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow.parquet import write_table

    folder = tmp_path / "esci"
    folder.mkdir()
    examples = [
        (number, f"query {query}", query, f"B{product}", "us", label, small, 1, split)
        for number, (query, product, label, small, split) in enumerate(
            [
                (1, 1, "E", 1, "train"), (1, 2, "S", 1, "train"), (1, 9, "E", 1, "train"),
                (2, 2, "E", 0, "train"), (2, 3, "I", 0, "train"),
                (3, 1, "C", 1, "train"), (3, 3, "E", 1, "train"),
                (4, 1, "E", 1, "test"), (4, 2, "C", 1, "test"), (4, 3, "I", 1, "test"),
            ]
        )
    ]  # fmt: skip
    examples.append((99, "otra", 5, "B1", "es", "E", 1, 1, "train"))
    products = [(f"B{k}", f'Product {k}, 15"', "long\ntext", "us") for k in (1, 2, 3)]
    products += [("B1", "Producto", "", "es"), ("B9", None, "", "us")]
    names = ("product_id", "product_title", "product_description", "product_locale")
    for name, rows, columns in (
        ("examples", examples, ESCI_COLUMNS),
        ("products", products, names),
    ):
        table = pyarrow.table(dict(zip(columns, zip(*rows, strict=True), strict=True)))
        write_table(table, folder / f"shopping_queries_dataset_{name}.parquet", row_group_size=3)
    return folder


def test_esci(esci, tmp_path):
    out = tmp_path / "out"
    counts = run("esci", esci, "-o", out, "--dev", "1")
    titles = {k: f'Product {k}, 15"' for k in (1, 2, 3)}
    judged = {
        "query 1": {titles[1]: 3, titles[2]: 2},
        "query 2": {titles[2]: 3, titles[3]: 0},
        "query 3": {titles[1]: 1, titles[3]: 3},
    }
    dev = grades(out / "dev")
    assert len(dev) == 1 and dev.items() <= judged.items()
    exact = [
        (query, title)
        for query, found in judged.items()
        for title, grade in found.items()
        if grade == 3 and query not in dev
    ]
    assert pairs(out / "pairs.tsv") == exact
    assert grades(out / "test") == {"query 4": {titles[1]: 3, titles[2]: 1, titles[3]: 0}}
    assert counts == {"pairs": "2", "dev queries": "1", "test queries": "1", "titles": "3"}
    assert import_esci(esci, tmp_path / "small", dev=1, small=True)["pairs"] == 1
    with pytest.raises(SentembError, match="3 dev queries of 3 training queries"):
        import_esci(esci, tmp_path / "new", dev=3)
    with pytest.raises(SentembError, match="there is no locale 'de'"):
        import_esci(esci, tmp_path / "new", locale="de")


# -- WANDS ------------------------------------------------------------------------------------


@pytest.fixture
def furniture(tmp_path):
    folder = tmp_path / "wands"
    folder.mkdir()

    def tabs(name, rows):
        with open(folder / name, "w", newline="") as file:
            csv.writer(file, delimiter="\t").writerows(rows)

    queries = [(place, f"query {place}", "") for place in range(6)]
    products = [(place, f'chair {place} 15"', 'a "text"\nof two lines') for place in range(3)]
    tabs("query.csv", [("query_id", "query", "query_class"), *queries])
    tabs("product.csv", [("product_id", "product_name", "product_description"), *products])
    labels = [
        (9 * q + p, q, p, label)
        for q in range(6)
        for p, label in enumerate(("Exact", "Partial", "Irrelevant"))
    ]
    tabs("label.csv", [("id", "query_id", "product_id", "label"), *labels])
    return folder


def test_wands(furniture, tmp_path):
    out = tmp_path / "out"
    counts = run("wands", furniture, "-o", out, "--dev", "2", "--test", "3", "--seed", "4")
    assert counts == {"pairs": "1", "dev queries": "2", "test queries": "3", "titles": "3"}
    titles = [f'chair {k} 15"' for k in range(3)]
    dev, test = grades(out / "dev"), grades(out / "test")
    expected = {titles[0]: 2, titles[1]: 1, titles[2]: 0}
    assert all(found == expected for found in (*dev.values(), *test.values()))
    ((query, title),) = pairs(out / "pairs.tsv")
    assert title == titles[0]
    assert sorted([query, *dev, *test]) == [f"query {k}" for k in range(6)]
    assert read_texts(out / "titles.tsv")[1] == titles
    with pytest.raises(SentembError, match="3 dev and 3 test queries of 6; choose fewer"):
        import_wands(furniture, tmp_path / "new", dev=3, test=3)
    # Its authors read it with pandas, which is not strict with quotes.
    with open(furniture / "product.csv", "a") as file:
        file.write('7\t"rustic" bench\tx\r\n')
    import_wands(furniture, tmp_path / "loose", dev=2, test=3)
    assert read_texts(tmp_path / "loose" / "titles.tsv")[1][-1] == "rustic bench"
    with (
        mock.patch.object(wands, "GRADES", {"Exact": 2}),
        pytest.raises(SentembError, match=r"label.csv:3: the label 'Partial' or the query '0'"),
    ):
        import_wands(furniture, tmp_path / "new", dev=2, test=3)


# -- BEIR -------------------------------------------------------------------------------------


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


def test_a_corpus_without_titles(corpus, tmp_path):
    documents = [{"_id": "d2", "text": "One two"}]
    write(corpus / "corpus.jsonl", map(json.dumps, documents))
    import_beir(corpus, tmp_path / "out")
    assert pairs(tmp_path / "out" / "pairs.tsv") == [("query 1", "One two")]
