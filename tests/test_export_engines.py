"""Exports to Elasticsearch and OpenSearch, read by a strict reader of their formats."""

import gzip
import json
import re
import subprocess
from itertools import pairwise

import numpy as np
import pytest
from bulk_reader import StandIn, read_bulk, read_folder, strict_json
from helpers import made_up_model

from sentemb import Index, SentembError, SentenceEncoder, export
from sentemb.data.click_log import ClickLogBuilder

TITLES = [f"{colour} {thing}" for colour in ("red", "blue", "green") for thing in ("hat", "bag")]
# What breaks writers of JSON, of lines and of shell commands; the model knows none of "日本 9".
ODD = [
    'say "red" \\ hat',
    "red </script> hat",
    "red\u2028hat\u2029 bag\x85",
    "red\that\r bag \x01\x1f",
    "\U0001f600 red hat",
    "日本 9",
    "$(touch /tmp/never) `red` 'hat'",
]
IDS = ["p0", "p1", 'q"uote', "back\\slash", "a/b?c=d&e#f", "ü" * 256, "-1", "_x", "日本", "p9"]
IDS += ["p10", "p11", "p12"]
UNKNOWN = len(TITLES) + ODD.index("日本 9")
ENGINES = ["elasticsearch", "opensearch"]


def made_up_clicks():
    log = ClickLogBuilder()
    for title in (*TITLES, "red </script> hat"):
        log.add(f"buy {title}", title, 2)
        log.add('cheap "one"', title, 1)
    return log.build()


@pytest.fixture(scope="module")
def model():
    return made_up_model(("bag", {}), TITLES, cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def indexes(model):
    """An index without BM25, with BM25, and with BM25 over clicked queries."""
    plain = Index.build(model, TITLES + ODD, IDS)
    words = Index.build(model, TITLES + ODD, IDS, bm25=True, dtype="int8")
    words.set_bm25(1.5, 0.3, 0.25)
    clicked = Index.build(
        model, TITLES + ODD, IDS, bm25=True, log=made_up_clicks(), dtype="float16"
    )
    clicked.set_bm25(0.8, 0.9, 0.7)
    return {"plain": plain, "words": words, "clicked": clicked}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["plain", "words", "clicked"])
def test_a_strict_reader_finds_every_title(indexes, tmp_path, engine, kind):
    index = indexes[kind]
    made = export(index, tmp_path / "out", engine, log=made_up_clicks())
    assert sorted(["files.json", *(path.name for path in made.files)]) == sorted(
        path.name for path in (tmp_path / "out").iterdir()
    )
    assert all(path.parent == tmp_path / "out" for path in made.files)
    assert (made.titles, made.without_vector) == (13, 1)
    _, documents = read_folder(tmp_path / "out")
    assert list(documents) == IDS
    assert [source["title"] for source in documents.values()] == TITLES + ODD
    assert [id for id in documents if "vector" not in documents[id]] == [IDS[UNKNOWN]]
    exact = indexes["plain"].vectors
    for place, source in enumerate(documents.values()):
        if place != UNKNOWN:
            cosine = float(np.float64(exact[place]) @ source["vector"])
            assert cosine == pytest.approx(1, abs=2e-7 if kind == "plain" else 1e-3)
    clicked = {id: source["clicked_queries"] for id, source in documents.items() if len(source) > 2}
    if kind == "clicked":
        assert clicked["p0"] == ["buy red hat", 'cheap "one"'] and len(clicked) == 7
    else:
        assert not any("clicked_queries" in source for source in documents.values())


def test_the_mapping_has_bm25_of_the_index(indexes, tmp_path):
    export(indexes["clicked"], tmp_path / "clicked", "elasticsearch", log=made_up_clicks())
    export(indexes["words"], tmp_path / "words", "elasticsearch")
    mapping, _ = read_folder(tmp_path / "clicked")
    (similarity,) = mapping["settings"]["index"]["similarity"].values()
    assert similarity == {"type": "BM25", "k1": 0.8, "b": 0.9}
    fields = mapping["mappings"]["properties"]
    assert fields["title"]["copy_to"] == fields["clicked_queries"]["copy_to"] == "words"
    assert fields["vector"]["dims"] == 12
    fields = read_folder(tmp_path / "words")[0]["mappings"]["properties"]
    assert set(fields) == {"title", "vector"} and "copy_to" not in fields["title"]


@pytest.mark.parametrize("engine", ENGINES)
def test_weighed_clicks_are_a_field_of_their_own(model, tmp_path, engine):
    log = made_up_clicks()
    index = Index.build(model, TITLES + ODD, IDS, bm25=True, log=log)
    index.set_bm25(0.8, 0.9, 0.7, 0.25)
    index.set_weights(1.0, 0.4)
    made = export(index, tmp_path / "out", engine, log=log)
    assert "the memory of the log is left out" in made.notes[0]
    assert "a word of a clicked query counts 0.25 times" in made.notes[1] and len(made.notes) == 3
    bulk = gzip.decompress((tmp_path / "out" / "bulk-00001.ndjson.gz").read_bytes())
    sources = [json.loads(line) for line in bulk.splitlines()[1::2]]
    held = {query for source in sources for query in source.get("clicked_queries", ())}
    assert f"holds {len(held):,} clicked queries of the log as plain text" in made.notes[2]
    mapping, _ = read_folder(tmp_path / "out")
    fields = mapping["mappings"]["properties"]
    assert set(fields) == {"title", "clicked_queries", "vector"}
    assert not any("copy_to" in field for field in fields.values())
    request = request_of(tmp_path / "out", model)
    for text in ("red hat", "hat"):
        body = request(text)
        part = body["query"]
        if engine == "opensearch":
            part = part["bool"]["should"][1]
        match = part["multi_match"]
        (title, own), (clicked, other) = (field.split("^") for field in match["fields"])
        assert (title, clicked, match["query"]) == ("title", "clicked_queries", text)
        assert float(other) == pytest.approx(0.25 * float(own), rel=1e-4)
    text = " ".join((tmp_path / "out" / "README.md").read_text().split())
    assert "for a weight of the cosine of 1" in text
    index.set_bm25(0.8, 0.9, 0.7, 0.0)
    index.set_weights(1.0, 0.0)
    titles = export(index, tmp_path / "titles", engine, log=log)
    assert titles.notes == []
    assert set(read_folder(tmp_path / "titles")[0]["mappings"]["properties"]) == {"title", "vector"}


def test_stems_become_an_analyzer(model, tmp_path):
    pytest.importorskip("Stemmer")
    english = Index.build(model, TITLES, bm25=True, stem="english")
    assert export(english, tmp_path / "en", "opensearch").notes == []
    analysis = read_folder(tmp_path / "en")[0]["settings"]["index"]["analysis"]
    (stems,) = analysis["filter"].values()
    assert stems == {"type": "snowball", "language": "English"}
    tamil = Index.build(model, TITLES, bm25=True, stem="tamil")
    made = export(tamil, tmp_path / "ta", "elasticsearch")
    assert "no stemmer for tamil" in made.notes[0]
    assert "analysis" not in read_folder(tmp_path / "ta")[0]["settings"]["index"]


def request_of(folder, model):
    """The function of README.md that fills in the query."""
    (code,) = re.findall(r"^```python\n(.*?)^```", (folder / "README.md").read_text(), re.M | re.S)
    names = {}
    model.save_pretrained(folder.parent / "model", force=True)
    code = code.replace('"MODEL"', repr(str(folder.parent / "model")))
    code = code.replace('"query.json"', repr(str(folder / "query.json")))
    exec(compile(code, "README.md", "exec"), names)
    return names["request"]


def score_of(body, documents, lists):
    """What an engine computes for a request, with BM25 of ``lists`` over the documents."""
    scores = dict.fromkeys(documents, 0.0)
    knn = body.get("knn")
    match = body.get("query", {}).get("match")
    if "should" in body["query"].get("bool", {}):
        parts = body["query"]["bool"]["should"]
        knn = next((one["knn"]["vector"] for one in parts if "knn" in one), None)
        match = next((one["match"] for one in parts if "match" in one), None)
    if knn:
        vector = np.array(knn.get("query_vector") or knn["vector"])
        assert abs(vector @ vector - 1) < 1e-4 and knn["k"] >= len(documents)
        for id, source in documents.items():
            if "vector" in source:
                scores[id] += (1 + vector @ source["vector"]) / 2
    if match:
        ((_, own),) = match.items()
        _, words = lists.look_up([own["query"]])
        for place, score in zip(*lists.matches(words), strict=True):
            scores[list(documents)[place]] += own["boost"] * score
    return scores


@pytest.mark.filterwarnings("ignore:.*no word that the model knows")
@pytest.mark.parametrize("engine", ENGINES)
def test_the_request_scores_as_the_index_does(indexes, model, tmp_path, engine):
    index, log = indexes["clicked"], made_up_clicks()
    out = tmp_path / "out"
    export(index, out, engine, log=log)
    _, documents = read_folder(out)
    request = request_of(out, model)
    body = request("buy red hat")
    assert body["size"] == 10 and body["_source"] == ["title"]
    scores = score_of(body, documents, index.bm25.lists)
    _, best = index.bm25.lists.find(list(log.queries), 1)
    found = index.find_sums(["buy red hat"], len(index))
    for place, cosine, bm25 in zip(found.places[0], found.cosines[0], found.bm25[0], strict=True):
        if place < 0:
            continue  # the title without a vector
        expected = (1 + cosine + 0.7 * bm25 / np.median(best)) / 2
        assert scores[IDS[place]] == pytest.approx(expected, abs=1e-3)
    assert scores[IDS[UNKNOWN]] == 0 and found.bm25.max() > 0
    # A query that the model does not know is found by its words, and by nothing else.
    scores = score_of(request("日本"), documents, index.bm25.lists)
    assert [id for id, score in scores.items() if score] == [IDS[UNKNOWN]]
    assert "knn" not in json.dumps(request("日本"))


@pytest.mark.filterwarnings("ignore:.*no word that the model knows")
@pytest.mark.parametrize("engine", ENGINES)
def test_without_bm25_the_request_compares_vectors(indexes, model, tmp_path, engine):
    made = export(indexes["plain"], tmp_path / "out", engine)
    assert "has no BM25" in made.notes[0]
    request = request_of(tmp_path / "out", model)
    assert "match" not in json.dumps(request("red hat"))
    # Otherwise an engine would find all titles.
    assert "match_none" in json.dumps(request("日本"))


def test_a_note_says_that_clicks_are_missing(indexes, tmp_path):
    made = export(indexes["clicked"], tmp_path / "out", "elasticsearch")
    assert "give --log" in made.notes[0]
    zero = Index.build(indexes["plain"].model, TITLES, bm25=True)
    zero.set_bm25(0.9, 0.4, 0)
    (note,) = export(zero, tmp_path / "zero", "elasticsearch").notes
    assert "is 0, so query.json compares vectors only" in note
    assert "query" not in strict_json((tmp_path / "zero/query.json").read_text())


def test_parts_are_full_and_none_is_too_large(indexes, tmp_path):
    size = 700
    export(indexes["plain"], tmp_path / "out", "elasticsearch", part_bytes=size)
    mapping, documents = read_folder(tmp_path / "out", size)
    assert list(documents) == IDS
    parts = sorted((tmp_path / "out").glob("bulk-*"))
    raw = [gzip.decompress(path.read_bytes()) for path in parts]
    assert read_bulk(b"".join(raw), mapping) == documents
    for part, after in pairwise(raw):  # the first title of the next part did not fit
        assert len(part) + len(b"\n".join(after.split(b"\n", 2)[:2])) + 1 > size
    export(indexes["plain"], tmp_path / "out", "elasticsearch", force=True)
    assert len(list((tmp_path / "out").glob("bulk-*"))) == 1  # no part of the first export
    with pytest.raises(SentembError, match="more than part_bytes, 100"):
        export(indexes["plain"], tmp_path / "small", "elasticsearch", part_bytes=100)
    assert not (tmp_path / "small").exists()


@pytest.mark.parametrize(
    "name", ["Titles", "_x", "-x", "", "..", "a b", "a/b", "ü", "x" * 256, "x;rm", 3, "a\n"]
)
def test_names_that_an_engine_refuses(indexes, tmp_path, name):
    with pytest.raises(SentembError, match="small letters"):
        export(indexes["plain"], tmp_path / "out", "elasticsearch", name=name)
    assert not list(tmp_path.iterdir())


def test_what_an_engine_refuses_is_refused_before_anything_is_written(model, tmp_path):
    long = Index.build(model, ["red hat"], ["x" * 513])
    with pytest.raises(SentembError, match="has 513 bytes"):
        export(long, tmp_path / "out", "elasticsearch")
    with pytest.raises(SentembError, match="has no titles"):
        export(Index.build(model, []), tmp_path / "out", "opensearch")
    wide = made_up_model(("bag", {}), TITLES, cells=1000, dtype=np.float32)
    index = Index.build(SentenceEncoder.average([wide] * 5), TITLES)
    with pytest.raises(SentembError, match="up to 4,096 numbers, and these have 5,000"):
        export(index, tmp_path / "out", "elasticsearch")
    assert not list(tmp_path.iterdir())
    export(index, tmp_path / "out", "opensearch")
    read_folder(tmp_path / "out")


def test_the_script_sends_everything(indexes, tmp_path):
    out = tmp_path / "out put"  # a blank
    export(indexes["clicked"], out, "elasticsearch", name="shop", part_bytes=2000)
    with StandIn() as engine:

        def send():
            return subprocess.run(
                ["sh", out / "send.sh", "--user", "me:secret"],
                env={"PATH": "/usr/bin:/bin", "URL": engine.address},
                capture_output=True,
                text=True,
                check=False,
            )

        done = send()
        assert done.returncode == 0, done.stderr
        assert engine.documents["shop"] == read_folder(out, 2000)[1]
        assert engine.users == ["Basic bWU6c2VjcmV0"]
        again = send()  # the index is there
        assert again.returncode and "resource_already_exists" in again.stdout + again.stderr
        engine.mappings.clear()
        engine.refused["a/b?c=d&e#f"] = "a vector of another length"
        failed = send()
        assert failed.returncode == 1 and "a vector of another length" in failed.stderr
        assert "p12" not in engine.documents["shop"]  # it stops
    assert send().returncode  # nobody listens


def test_an_export_is_the_same_again(indexes, tmp_path):
    for name in ("a", "b"):
        export(indexes["words"], tmp_path / name, "elasticsearch")
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("to", ["elasticsearch", "parquet", "page"])
def test_a_full_disk_leaves_nothing(indexes, tmp_path, to):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))
    try:
        with pytest.raises(SentembError, match="cannot be written"):
            export(indexes["plain"], tmp_path / "out", to)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())
