"""Exports to Elasticsearch and OpenSearch, read by a strict reader of their formats."""

import gzip
import json
import re
import runpy
import subprocess
import sys
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from bulk_reader import StandIn, matched, parts_of_search, read_bulk, read_folder
from helpers import full_disk, made_up_model

from sentemb import Index, SentembError, SentenceEncoder, export
from sentemb.bridges.export import titles
from sentemb.bridges.export.search_engines import elasticsearch
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.bm25 import TitleWords, count_words
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.words_and_stems import tokens_of, words_of
from sentemb.search.ranking.part import Fields
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

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
CLICKED = [*TITLES, "red </script> hat"]
ENGINES = ["elasticsearch", "opensearch"]


def made_up_log():
    """Every query has one title, so that its share is 1."""
    return ClickLog.from_pairs(
        (f"{word} {title}", title) for title in CLICKED for word in ("buy", "cheap")
    )


def made_up_index(model, weights, log=None, dtype="float32", **parameters):
    """An index with this recipe; statistics of BM25 are those of its titles."""
    recipe = Recipe(weights, **parameters)
    clicks = ClickedQueries.nothing() if log is None else ClickedQueries.of(log)
    words, titles = words_of(recipe.stem), TITLES + ODD
    queries = tokens_of(clicks.queries, words)
    counted = count_words(titles, clicks.of_titles(titles), queries, words)
    ranker = HybridRanker(model, recipe, clicks, Fields.of(counted))
    return Index.build(ranker, TITLES + ODD, IDS, dtype=dtype)


@pytest.fixture(scope="module")
def model():
    return made_up_model(("bag", {}), TITLES, cells=12, dtype=np.float32)


@pytest.fixture(scope="module")
def indexes(model):
    """Indexes that rank by the model, by words of titles, and by all parts but the memory."""
    weights = {"cosine": 2.0, "bm25": 0.7, "clicked_bm25": -0.3, "unclicked": 0.4}
    return {
        "plain": Index.build(model, TITLES + ODD, IDS),
        "words": made_up_index(model, {"cosine": 1.0, "bm25": 0.25}, k1=1.5, b=0.3, dtype="int8"),
        "clicked": made_up_index(model, weights, made_up_log(), "float16", k1=0.8, b=0.9),
        "typed": made_up_index(
            model, {"cosine": 2.0, "bm25": 0.7, "clicks": 0.9}, made_up_log(), k1=0.8, b=0.9
        ),
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["plain", "words", "clicked"])
def test_a_strict_reader_finds_every_title(indexes, tmp_path, engine, kind):
    index = indexes[kind]
    made = export(index, tmp_path / "out", engine)
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
        assert clicked["p0"] == ["buy red hat", "cheap red hat"] and len(clicked) == 7
    else:
        assert not any("clicked_queries" in source for source in documents.values())


def test_the_mapping_has_bm25_of_the_index(indexes, tmp_path):
    export(indexes["clicked"], tmp_path / "clicked", "elasticsearch")
    export(indexes["words"], tmp_path / "words", "elasticsearch")
    mapping, _ = read_folder(tmp_path / "clicked")
    (similarity,) = mapping["settings"]["index"]["similarity"].values()
    assert similarity == {"type": "BM25", "k1": 0.8, "b": 0.9}
    fields = mapping["mappings"]["properties"]
    assert fields["title"]["copy_to"] == fields["clicked_queries"]["copy_to"] == "words"
    assert fields["vector"]["dims"] == 12
    fields = read_folder(tmp_path / "words")[0]["mappings"]["properties"]
    assert set(fields) == {"title", "vector"} and "copy_to" not in fields["title"]


FIELDS = {
    "price": [35.87, None, *[12.5] * 11],
    "stock": [0, 7, None, *[2**60] * 10],
    "brand.name": ["Åkes", 'say "hi"', "x" * 40_000, *[None] * 10],
    "colour": [None] * 13,
}


@pytest.mark.parametrize("engine", ENGINES)
def test_fields_of_products_can_be_asked_for(model, tmp_path, engine):
    index = Index.build(model, TITLES + ODD, IDS, fields=FIELDS)
    made = export(index, tmp_path / "out", engine)
    mapping, documents = read_folder(tmp_path / "out")
    kinds = mapping["mappings"]["properties"]["fields"]["properties"]
    assert {name: kind["type"] for name, kind in kinds.items()} == {
        "price": "double", "stock": "long", "brand.name": "keyword", "colour": "keyword"
    }  # fmt: skip
    for place, source in enumerate(documents.values()):
        given = {name: values[place] for name, values in FIELDS.items()}
        expected = {name: value for name, value in given.items() if value is not None}
        assert source["fields"] == expected
    assert "`fields.price`, `fields.stock`" in (tmp_path / "out" / "README.md").read_text()
    request = request_of(tmp_path / "out", model)
    assert request("red hat")["_source"] == ["title", "fields"]
    # Whatever finds titles, the condition is met before the nearest are counted.
    condition = {"range": {"fields.price": {"lt": 50}}}
    weights = {"cosine": 1.0, "bm25": 0.25}
    export(made_up_index(model, weights), tmp_path / "words", engine)
    for folder, has_words in (("out", False), ("words", True)):
        request = request_of(tmp_path / folder, model)
        body = request("red hat", condition)
        vector, words, _ = parts_of_search(body, read_folder(tmp_path / folder)[0])
        assert vector is not None and bool(words) == has_words
        parts = json.dumps(body).count(json.dumps(condition))
        assert parts == (1 if engine == "elasticsearch" and not has_words else 2)
        assert parts_of_search(request("red hat"), mapping)[0].tolist() == vector.tolist()
    assert made.titles == 13
    # A name is a value or a path, not both.
    for names, refused in ((["a..b"], "a..b"), (["a.b", "a"], "a.b"), (["a.b", "a.b.c"], "a.b.c")):
        bad = Index.build(model, TITLES, fields=dict.fromkeys(names, [1] * 6))
        with pytest.raises(SentembError, match=re.escape(f"field is named {refused}, and")):
            export(bad, tmp_path / "bad", engine)
    good = Index.build(model, TITLES, fields=dict.fromkeys(["a.b", "a.c", "ab"], [1] * 6))
    export(good, tmp_path / "good", engine)


def test_the_request_is_a_program(indexes, model, tmp_path):
    export(indexes["words"], tmp_path / "out", "elasticsearch")
    model.save_pretrained(tmp_path / "model")
    program = [sys.executable, tmp_path / "out" / "request.py", tmp_path / "model", "red hat"]
    done = subprocess.run([*program, '{"match_all": {}}'], capture_output=True, check=True)
    expected = request_of(tmp_path / "out", model)("red hat", {"match_all": {}})
    assert json.loads(done.stdout) == expected
    done = subprocess.run(program[:3], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.startswith("Fill in query.json: python request.py")


def test_stems_become_an_analyzer(model, tmp_path):
    pytest.importorskip("Stemmer")
    weights = {"cosine": 1.0, "bm25": 1.0}
    english = made_up_index(model, weights, stem="english")
    assert len(export(english, tmp_path / "en", "opensearch").notes) == 1
    analysis = read_folder(tmp_path / "en")[0]["settings"]["index"]["analysis"]
    (stems,) = analysis["filter"].values()
    assert stems == {"type": "snowball", "language": "English"}
    tamil = made_up_index(model, weights, stem="tamil")
    assert "no stemmer for tamil" in export(tamil, tmp_path / "ta", "elasticsearch").notes[1]
    assert "analysis" not in read_folder(tmp_path / "ta")[0]["settings"]["index"]


def request_of(folder, model):
    """The function of request.py with this model."""
    return partial(runpy.run_path(folder / "request.py")["request"], model)


def texts_of(field, source):
    """What a field of a document holds, with what is copied to it."""
    clicked = source.get("clicked_queries", [])
    own = {"title": [source["title"]], "clicked_queries": clicked}
    return " ".join(own.get(field, [source["title"], *clicked]))


def logarithms(name, documents):
    """What ``rank_feature`` with ``log`` scores."""
    counts = {id: source.get("clicks", {}).get(name, 0.0) for id, source in documents.items()}
    return {id: float(np.log(1 + count)) for id, count in counts.items()}


def engine_scores(body, mapping, documents):
    """What an engine computes for a request: the titles that it finds, by id."""
    (similarity,) = mapping["settings"]["index"].get("similarity", {"": {"k1": 1, "b": 0}}).values()

    def bm25(field, text):
        texts = [texts_of(field, source) for source in documents.values()]
        by_words = TitleWords(texts, similarity["k1"], similarity["b"])
        every = np.arange(len(texts))
        return dict(zip(documents, by_words.score_pairs([text], 0 * every, every), strict=True))

    vector, words, again = parts_of_search(body, mapping)
    scores = {}
    if vector is not None:
        for id, source in documents.items():
            if "vector" in source:
                scores[id] = (1 + vector @ source["vector"]) / 2
    for field, text, factor in words:
        found = bm25(field, text) if field != "clicks" else logarithms(text, documents)
        for id, score in found.items():
            if score:
                scores[id] = scores.get(id, 0) + factor * score
    for clause, factor, window in again:
        assert window >= len(documents)
        if "constant_score" in clause:
            missing = clause["constant_score"]["filter"]["bool"]["must_not"]["exists"]["field"]
            gains = {id: missing not in source for id, source in documents.items()}
        else:
            field, text, boost = matched(clause, mapping["mappings"]["properties"])
            assert boost == 1
            gains = bm25(field, text)
        scores = {id: score + factor * gains[id] for id, score in scores.items()}
    return scores


@pytest.mark.filterwarnings("ignore:.*no word that the model knows")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["words", "clicked", "typed"])
def test_the_request_scores_as_the_index_does(indexes, model, tmp_path, engine, kind):
    """All but a factor and a constant: twice the weight of the cosine, and 1/2."""
    index, out = indexes[kind], tmp_path / "out"
    export(index, out, engine)
    mapping, documents = read_folder(out)
    request = request_of(out, model)
    for text in ("Buy réd hat?", "bag", 'say "QUERY TEXT" QUERY NAME hat', "cheap </script>"):
        body = request(text)
        assert body["size"] == 10 and body["_source"] == ["title"]
        scores = engine_scores(body, mapping, documents)
        hits = index.search(text, len(index))
        constant = 0.5 if "knn" in json.dumps(body) else 0  # the model knows a word of the query
        for hit in hits:
            expected = hit.score / index.recipe.weight("cosine") / 2
            expected += constant * ("vector" in documents[hit.id])
            assert scores[hit.id] == pytest.approx(expected, abs=1e-3)
        assert {hit.id for hit in hits} == set(scores)
        assert len(hits) >= (12 if constant else 1)
    # A query that the model does not know is found by its words, and by nothing else.
    assert list(engine_scores(request("日本"), mapping, documents)) == [IDS[UNKNOWN]]
    assert "knn" not in json.dumps(request("日本"))
    assert not engine_scores(request("東京"), mapping, documents)


@pytest.mark.filterwarnings("ignore:.*no word that the model knows")
@pytest.mark.parametrize("engine", ENGINES)
def test_without_words_the_request_compares_vectors(indexes, model, tmp_path, engine):
    made = export(indexes["plain"], tmp_path / "out", engine)
    assert "query.json ranks by (1 + cosine) / 2; the index by cosine" in made.notes[0]
    assert "vectors alone find titles" in made.notes[1] and len(made.notes) == 2
    request = request_of(tmp_path / "out", model)
    assert "match" not in json.dumps(request("red hat"))
    # Otherwise an engine would find all titles.
    assert "match_none" in json.dumps(request("日本"))


@pytest.mark.parametrize("engine", ENGINES)
def test_what_an_engine_cannot_do_is_said(model, tmp_path, engine):
    weights = {"cosine": 1.5, "memory": 0.5, "bm25": 0.4, "clicked_bm25": -0.2, "unclicked": -1}
    index = made_up_index(model, weights, made_up_log())
    made = export(index, tmp_path / "out", engine)
    mapping, documents = read_folder(tmp_path / "out")
    _, ((field, _, factor),), again = parts_of_search(
        request_of(tmp_path / "out", model)("red hat"), mapping
    )
    # The memory's weight goes to the cosine: all is divided by twice 1.5 + 0.5.
    assert (field, factor) == ("words", 0.1)
    assert [weight for _, weight, _ in again] == [-0.05, -0.25]
    said = "0.1 · BM25 of words - 0.05 · BM25 of clicked_queries - 0.25 without clicked queries"
    assert f"ranks by (1 + cosine) / 2 + {said}; the index by {index.recipe}" in made.notes[0]
    assert "the memory of the log is left out, and its weight, 0.5," in made.notes[1]
    assert "counts once in BM25" in made.notes[2] and "first 1,000 titles" in made.notes[3]
    held = {query for own in documents.values() for query in own.get("clicked_queries", ())}
    assert f"holds {len(held)} clicked queries of the log as plain text" in made.notes[4]
    readme = " ".join((tmp_path / "out" / "README.md").read_text().split())
    assert all(note in readme for note in (said, *made.notes[1:4]))


@pytest.mark.parametrize("engine", ENGINES)
def test_spellings_of_a_query_share_their_clicks(model, tmp_path, engine):
    log = ClickLog.from_pairs([("Red hat", TITLES[0], 2), ("réd hat?", TITLES[0], 1)])
    weights = {"cosine": 1.0, "clicked_bm25": -0.2, "clicks": 0.9, "name": 5.0}
    made = export(made_up_index(model, weights, log), tmp_path / "out", engine)
    _, documents = read_folder(tmp_path / "out")
    assert list(documents["p0"]["clicks"].values()) == pytest.approx([3 / 2])
    assert [id for id, source in documents.items() if "clicks" in source] == ["p0"]
    told = " ".join(made.notes)
    assert "+ 0.45 · ln(1 + clicks of this query / 2)" in told and "names are left out" in told
    assert "counts against titles that were clicked for the very query" in told
    assert "`clicks` holds" in " ".join((tmp_path / "out" / "README.md").read_text().split())
    options = {"clicked_queries": "no", "force": True}
    made = export(made_up_index(model, weights, log), tmp_path / "out", engine, **options)
    assert "clicks" not in json.dumps(read_folder(tmp_path / "out"))
    assert "so are BM25 of clicked queries, clicks of this query" in made.notes[1]


def test_clicked_queries_are_left_out_if_told_so(model, tmp_path):
    log = ClickLog.from_pairs([(f"secret {title}", title) for title in TITLES])
    weights = {"cosine": 2.0, "bm25": 0.7, "clicked_bm25": -0.3, "unclicked": 0.4}
    index = made_up_index(model, weights, log)
    made = export(index, tmp_path / "out", "elasticsearch", clicked_queries="no")
    assert made.notes[1:] == [
        "clicked queries are left out, and so are BM25, BM25 of clicked queries, no clicks",
        "vectors alone find titles",
    ]
    mapping, documents = read_folder(tmp_path / "out")
    assert set(mapping["mappings"]["properties"]) == {"title", "vector"}
    for path in (tmp_path / "out").iterdir():
        raw = path.read_bytes()
        assert b"secret" not in (gzip.decompress(raw) if path.suffix == ".gz" else raw)
    body = json.loads((tmp_path / "out" / "query.json").read_text())
    assert set(body) == {"size", "_source", "knn"}
    # Without a cosine, words are all there is.
    index = made_up_index(model, {"bm25": 2.0}, log)
    made = export(index, tmp_path / "words", "elasticsearch", clicked_queries="no")
    assert made.notes[1:] == [
        "clicked queries are left out, and BM25 reads titles alone",
        "words alone find titles",
    ]
    body = json.loads((tmp_path / "words" / "query.json").read_text())
    (clause,) = body["query"]["bool"]["should"]
    assert clause["match"]["title"]["boost"] == 2 and "knn" not in body
    # Clicked queries that no part reads are never written.
    memory = made_up_index(model, {"cosine": 1.0, "memory": 1.0}, log)
    assert len(export(memory, tmp_path / "memory", "elasticsearch").notes) == 3
    documents = read_folder(tmp_path / "memory")[1].values()
    assert not any("clicked_queries" in source for source in documents)


def test_titles_of_all_portions_have_their_clicked_queries(indexes, tmp_path, monkeypatch):
    export(indexes["clicked"], tmp_path / "whole", "elasticsearch")
    monkeypatch.setattr(elasticsearch, "portions", partial(titles.portions, size=4))
    export(indexes["clicked"], tmp_path / "parts", "elasticsearch")
    assert read_folder(tmp_path / "whole") == read_folder(tmp_path / "parts")


@pytest.mark.filterwarnings("ignore:.*no word that the model knows")
@pytest.mark.parametrize("engine", ENGINES)
def test_words_alone_rank_without_vectors(model, tmp_path, engine):
    log = made_up_log()
    index = made_up_index(model, {"cosine": -0.1, "bm25": 2.0, "clicked_bm25": 1.0}, log)
    made = export(index, tmp_path / "out", engine)
    assert any("words alone find titles" in note for note in made.notes)
    mapping, _ = read_folder(tmp_path / "out")
    request = request_of(tmp_path / "out", model)
    vector, words, again = parts_of_search(request("red hat"), mapping)
    assert vector is None and not again
    assert words == [("words", "red hat", 2), ("clicked_queries", "red hat", 1)]
    assert parts_of_search(request("日本"), mapping)[1][0][:2] == ("words", "日本")
    # Where nothing has a positive weight, the vectors still find titles.
    export(made_up_index(model, {"clicked_bm25": -1.0}, log), tmp_path / "minus", engine)
    body = request_of(tmp_path / "minus", model)("red hat")
    vector, words, again = parts_of_search(body, read_folder(tmp_path / "minus")[0])
    assert vector is not None and not words and again[0][1] == -0.5


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
    with full_disk(300), pytest.raises(SentembError, match="cannot be written"):
        export(indexes["plain"], tmp_path / "out", to)
    assert not list(tmp_path.iterdir())
