"""The JSON API: the answers of the index, what is refused, rates, hosts and origins."""

import gc
import json
import math
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_model, made_up_pair_model, made_up_texts

from sentemb import Index, SentembError
from sentemb.analysis.explanation import Explainer, explain
from sentemb.bridges.server import request_limits
from sentemb.bridges.server.answers import Answers
from sentemb.bridges.server.app import create_app, replace_index
from sentemb.bridges.server.hosts import checked_hosts, checked_origins, host_name, is_loopback
from sentemb.bridges.server.request_limits import Limits, Rates
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.data.search_record import SearchRecord, record_rows
from sentemb.models.files.model_files import fingerprint
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import PARTS, Recipe

MARKUP = '<script>alert(1)</script> & "hotels"'
TITLES = [
    *made_up_texts(np.random.default_rng(1), [3] * 40),
    MARKUP,
    "上海 酒店 🏨",
    "w " * 300,
    "-",
]
QUERIES = [
    *made_up_texts(np.random.default_rng(2), [1, 2, 3, 4] * 10),
    "上海",
    "nothing known 9",
    " ",
]
# The server's own command ignores these warnings; its answers name unknown words.
pytestmark = pytest.mark.filterwarnings("ignore::sentemb.models.face.TextWarning")
# Every part, with weights of either sign.
WEIGHTS = {"cosine": 2.0, "memory": 0.6, "bm25": 0.3, "clicked_bm25": -0.1, "unclicked": 0.05}
WEIGHTS |= {"clicks": 0.2, "name": 0.1}
EVERY = ["/", "/search?q=a", "/explain?q=a&id=t0", "/gates?q=a&id=t0", "/health"]


@pytest.fixture(scope="module")
def log():
    builder = ClickLogBuilder()
    for place, query in enumerate(QUERIES[:30]):
        builder.add(query, TITLES[place % 7], place + 1)
    return builder.build()


@pytest.fixture(scope="module")
def index(log):
    model = made_up_model(("lstm", {"forget_gate": True}), TITLES[:41] + QUERIES[:40],
                          dtype=np.float32)  # fmt: skip
    recipe = Recipe(WEIGHTS, k1=1.2, b=0.75)
    ranker = HybridRanker(model, recipe, ClickedQueries.of(log))
    made = Index.build(ranker, TITLES, [f"t{k}" for k in range(len(TITLES))])
    typed = Confidence(-1.0, 2.0, 50, 0.1, 0.2)
    made.confidence = Confidence(-3.0, 5.0, 100, 0.1, 0.2, typed)
    return made


@pytest.fixture(scope="module")
def client(index, log):
    return create_app(index, log, name="hotels").test_client()


def asked(client, path, status=200, **query):
    """The JSON that a GET is answered with."""
    found = client.get(path, query_string=query)
    assert found.status_code == status, found.text
    assert found.content_type == "application/json"
    return json.loads(found.text)


def posted(client, path, body, status=200, **headers):
    """The JSON that a POST is answered with; ``body`` is sent as JSON unless it is bytes."""
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    headers = {"Content-Type": "application/json", **headers}
    found = client.post(path, data=sent, headers=headers)
    assert found.status_code == status, found.text
    assert found.content_type == "application/json"
    return json.loads(found.text)


def refusal(found):
    """The message of a refusal, which is one line with a remedy and nothing else."""
    assert set(found) == {"error"} and "\n" not in found["error"]
    assert ";" in found["error"] or "wait" in found["error"]
    return found["error"]


# -- answers -----------------------------------------------------------------------------------


def expected(index, query, cosine=False, **how):
    found = index.search(query, cosine=cosine, **how)
    for hit in found:
        for part, of_part in hit.parts.items():
            assert of_part["added"] == of_part["value"] * (1 if cosine else WEIGHTS[part])
    features = index.model.vocabulary.features
    unknown = [word for word in dict.fromkeys(query.split()) if not features(word)]
    answer = {"query": query, "unknown": unknown, "hits": found}
    return answer if found.reason is None else {**answer, "no_match": found.reason}


def test_a_search_has_the_bits_of_the_index(client, index):
    for query in QUERIES:
        assert asked(client, "/search", q=query, k=7) == expected(index, query, k=7)
    first = asked(client, "/search", q=TITLES[5])["hits"]
    assert len(first) == 10 and 0 < first[0]["confidence"] < 1 and first[1]["confidence"] is None
    assert list(first[0]["parts"]) == list(WEIGHTS) and first[0]["parts"]["bm25"]["value"] > 0
    for hit in first:
        added = [part["added"] for part in hit["parts"].values()]
        assert hit["score"] == pytest.approx(sum(added), abs=1e-12)


def test_the_model_alone_can_be_asked(client, index):
    for query in QUERIES[:9]:
        own = expected(index, query, cosine=True, k=5)
        assert asked(client, "/search", q=query, k=5, cosine="true") == own
        assert asked(client, "/search", q=query, cosine="false") == expected(index, query)
        body = {"queries": [query], "k": 5, "cosine": True}
        assert posted(client, "/search", body) == {"results": [own]}
        for hit in own["hits"]:
            assert list(hit["parts"]) == ["cosine"] and hit["confidence"] is None
    found = asked(client, "/explain", q=QUERIES[3], id="t4", cosine="true")["ranker"]
    assert [part["part"] for part in found["parts"]] == ["cosine"]
    (hit,) = [hit for hit in index.search(QUERIES[3], 99, cosine=True) if hit.id == "t4"]
    assert found["score"] == hit.score


def test_a_batch_has_the_bits_of_single_queries(client, index):
    some = [*QUERIES, *QUERIES]
    found = posted(client, "/search", {"queries": some, "k": 5})
    assert found == {"results": [expected(index, query, k=5) for query in some]}
    narrow = {
        "queries": QUERIES[:3],
        "k": 9,
        "min_score": 0.2,
        "only": ["t3", "t1", "t8", "x", "y"],
    }
    found = posted(client, "/search", narrow)
    how = {"k": 9, "min_score": 0.2, "only": ["t3", "t1", "t8"]}
    assert found["unknown_ids"] == 2
    assert found["results"] == [expected(index, query, **how) for query in QUERIES[:3]]
    assert posted(client, "/search", {"queries": ["a"], "only": []})["results"][0]["hits"] == []
    nothing = {"queries": ["a"], "only": None, "min_score": None}
    assert posted(client, "/search", nothing) == {"results": [expected(index, "a")]}


def test_a_batch_in_portions_is_the_same(client, index, monkeypatch):
    body = {"queries": QUERIES}
    whole = posted(client, "/search", body)
    monkeypatch.setattr("sentemb.bridges.server.answers._PAIRS", 5 * len(index))
    assert posted(client, "/search", body) == whole


def test_concurrent_requests_have_the_answers_of_single_ones(index, log):
    app = create_app(index, log)

    def all_of(query):
        client = app.test_client()
        words = query.split()
        return [
            asked(client, "/search", q=query),
            posted(client, "/search", {"queries": [query, *words], "k": 3}),
            asked(client, "/explain", q=query, id="t2"),
            asked(client, "/gates", q=query, id="t2"),
            posted(client, "/encode", {"texts": [query, *words]}),
        ]

    one_by_one = list(map(all_of, QUERIES[:10]))
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(all_of, QUERIES[:10])) == one_by_one


def test_explain_is_that_of_the_analysis_and_of_the_index(client, index, log):
    for query, place in (("a", 0), (QUERIES[3], 40), ("上海 " + QUERIES[1], 41)):
        found = asked(client, "/explain", q=query, id=f"t{place}")
        ranker = found.pop("ranker")
        id = f"t{place}"
        told = Explainer(index.ranker, log).explain(query, TITLES[place], id=id).as_dict()
        assert ranker["parts"] == json.loads(json.dumps(told.pop("parts")))
        assert found == json.loads(json.dumps(told))
        assert found["score"] == pytest.approx(ranker["score"], abs=1e-12)
        assert len(found["nearest_queries"]) == 5
        (shares,) = index.explain(query, [f"t{place}"])
        assert ranker["parts"] == json.loads(json.dumps([share.as_dict() for share in shares]))
        hits = index.search(query, len(index))
        (score,) = [hit.score for hit in hits if hit.id == f"t{place}"]
        assert ranker["score"] == pytest.approx(score, abs=1e-12)
        alone = asked(client, "/explain", q=query, id=id, cosine="true")
        del alone["ranker"]
        told = explain(index.model, query, TITLES[place], log).as_dict()
        del told["parts"]
        assert alone == json.loads(json.dumps(told))
    without = create_app(index).test_client()
    found = asked(without, "/explain", q="a", id="t0")
    assert set(found) == {"score", "query", "title", "ranker"}
    assert asked(without, "/health")["evidence"] is False


def test_explain_is_what_the_command_prints(client, index, log, tmp_path):
    index.save(tmp_path / "index")
    write_click_log(log, tmp_path / "pairs.tsv")
    served = asked(client, "/explain", q=QUERIES[3], id=index.search(QUERIES[3], 1)[0].id)
    files = [str(tmp_path / "index"), QUERIES[3], "--log", str(tmp_path / "pairs.tsv")]
    done = CliRunner().invoke(main, ["explain", *files, "--json"])
    printed = json.loads(done.stdout)
    assert served.pop("ranker")["parts"] == printed.pop("parts")
    assert served == printed


def test_an_explanation_names_the_nearest_clicked_query_and_the_words(client, index, log):
    query, title = log.queries[0], log.titles[log.title_index[0]]
    id = index.ids[list(index.titles).index(title)]
    parts = asked(client, "/explain", q=query, id=id)["ranker"]["parts"]
    of = {part["part"]: part for part in parts}
    assert list(of) == list(WEIGHTS) and [part["weight"] for part in parts] == [*WEIGHTS.values()]
    share = log.clicks[0] / log.clicks[log.query_index == 0].sum()
    assert of["memory"]["nearest"]["text"] == query and of["memory"]["nearest"]["is_clicked"]
    assert of["memory"]["value"] == pytest.approx(share**0.5, abs=0.02)
    assert of["clicks"]["clicks"] == log.clicks[0]
    assert of["clicks"]["value"] == pytest.approx(np.log1p(log.clicks[0] / 2))
    # BM25 of clicked queries counts against titles, but not against one that was clicked.
    assert of["clicked_bm25"]["value"] == 0 and "words" not in of["clicked_bm25"]
    longer = asked(client, "/explain", q=f"{query} zzz", id=id)["ranker"]["parts"]
    of |= {part["part"]: part for part in longer if part["part"] == "clicked_bm25"}
    for name in ("bm25", "clicked_bm25"):
        words = of[name]["words"]
        assert set(words) <= set(query.split()) and words
        assert sum(words.values()) == pytest.approx(of[name]["value"], abs=1e-6)
    unclicked = asked(client, "/explain", q=query, id="t20")["ranker"]["parts"]
    (memory,) = [part for part in unclicked if part["part"] == "memory"]
    assert not memory["nearest"]["is_clicked"] and memory["nearest"]["text"] == TITLES[20]


def test_gates_are_those_of_the_traces(client, index):
    found = asked(client, "/gates", q=QUERIES[3], id="t41")
    for name, text, side in (("query", QUERIES[3], "query"), ("title", TITLES[41], "document")):
        trace = index.model.trace(text, side)
        shown = found[name]
        assert shown["words"] == trace.words
        own = {"input": trace.i, "forget": trace.f, "output": trace.o}
        own |= {"candidate": trace.y_g, "cell": trace.c, "y": trace.y}
        assert set(shown["gates"]) == set(own)
        for gate, values in own.items():
            assert np.abs(np.array(shown["gates"][gate]) - values).max() <= 0.0005 + 1e-9
            assert values.shape == np.array(shown["gates"][gate]).shape


@pytest.mark.parametrize("variant", ["bag", "rnn"])
def test_other_models(variant):
    model = made_up_model((variant, {}), TITLES, dtype=np.float32)
    client = create_app(Index.build(model, TITLES)).test_client()
    health = asked(client, "/health")
    assert health["calibrated"] is False
    assert health["parts"] == [{"part": "cosine", "name": "cosine", "weight": 1.0}]
    (hit,) = asked(client, "/search", q=TITLES[2], k=1)["hits"]
    assert hit["parts"] == {"cosine": {"value": hit["score"], "added": hit["score"]}}
    assert hit["confidence"] is None
    gates = asked(client, "/gates", q="a", id="0")
    if variant == "bag":
        assert gates is None and health["gates"] is False
    else:
        assert set(gates["query"]["gates"]) == {"y"} and health["gates"] is True


def test_encode_is_that_of_the_model(client, index):
    found = posted(client, "/encode", {"texts": QUERIES})
    assert found["side"] == "query" and found["dim"] == index.model.dim
    assert np.array_equal(np.float32(found["vectors"]), index.model.encode(QUERIES))
    body = {"texts": TITLES[:5], "side": "document", "normalize_embeddings": True}
    vectors = np.array(posted(client, "/encode", body)["vectors"])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1)
    cosines = vectors @ np.array(index.vectors[:5]).T
    assert np.allclose(np.diag(cosines), 1)


def test_health(client, index):
    found = asked(client, "/health")
    assert found["status"] == "ok" and found["titles"] == len(TITLES) and found["name"] == "hotels"
    assert found["model_sha256"] == fingerprint(index.model.saved())
    assert found["dim"] == index.model.dim
    assert found["uptime_seconds"] >= 0
    assert [found[name] for name in ("calibrated", "evidence", "gates")] == [True] * 3
    assert found["parts"] == [
        {"part": part, "name": PARTS[part], "weight": weight} for part, weight in WEIGHTS.items()
    ]


def test_another_index_takes_over(index, log):
    app = create_app(index, log, name="hotels")
    other = Index.build(index.model, ["only one"], ["new"])
    replace_index(app, other)
    found = asked(app.test_client(), "/health")
    assert (found["titles"], found["evidence"], found["name"]) == (1, False, "hotels")
    assert asked(app.test_client(), "/explain", 404, q="a", id="t0")


def test_an_index_that_was_replaced_is_freed_at_once(index, log, tmp_path):
    index.save(tmp_path / "index")
    gc.freeze()  # the collector need not look through what other tests have loaded
    served = Index.open(tmp_path / "index")
    app = create_app(served, log)
    asked(app.test_client(), "/search", q="hotel")
    asked(app.test_client(), "/explain", q=QUERIES[0], id="t0")
    freed = [weakref.ref(thing) for thing in (served, served.ranker, served.ranker.clicks)]
    gc.collect()
    gc.disable()  # a cycle would keep the mapped files open until the collector looks
    try:
        replace_index(app, index)
        del served
        assert [ref() for ref in freed] == [None] * 3
    finally:
        gc.unfreeze()
        gc.enable()


def test_the_page_has_its_facts_and_no_markup_of_others(index):
    page = create_app(index, name="</script><b>").test_client().get("/")
    assert page.status_code == 200 and page.content_type == "text/html; charset=utf-8"
    assert "<b>" not in page.text and page.text.count("</script>") == 3
    (facts,) = [part for part in page.text.split("<script") if 'id="facts"' in part]
    text = facts.split(">", 1)[1].split("<")[0]
    assert json.loads(text)["name"] == "</script><b>"
    assert page.headers["Content-Security-Policy"] == "frame-ancestors 'none'"


def test_a_folder_whose_name_is_not_utf_8_is_served(index):
    client = create_app(index, name="caf\udce9").test_client()
    assert "caf\ufffd" in client.get("/").text
    assert client.get("/health").json["name"] == "caf\ufffd"


def test_markup_stays_text(client):
    found = client.get("/search", query_string={"q": MARKUP, "k": 100})
    assert found.content_type == "application/json"
    assert MARKUP in [hit["title"] for hit in json.loads(found.text)["hits"]]
    nasty = {"/search": "q", "/explain": "id"}
    for path, name in nasty.items():
        found = client.get(path, query_string={name: MARKUP, "z<b>": "1"})
        assert found.content_type == "application/json" and found.status_code == 400


def test_every_answer_has_the_headers(client):
    for path in (*EVERY, "/search", "/nowhere"):
        headers = client.get(path).headers
        assert len(headers) == len(set(headers.keys()))
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY" and headers["Cache-Control"] == "no-store"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert path == "/" or "default-src 'none'" in headers["Content-Security-Policy"]
        assert "Access-Control-Allow-Origin" not in headers and "Set-Cookie" not in headers


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "status", "message"),
    [
        ("/search?k=3", 400, "q is missing"),
        ("/search?q=a&q=b", 400, "'q' is given twice"),
        ("/search?q=a&limit=3", 400, "unknown parameter 'limit'; write k; there is q, k"),
        ("/search?q=a&filter=b", 400, "unknown parameter 'filter'; write where; there is q"),
        ("/search?query=a", 400, "unknown parameter 'query'; write q; there is q"),
        ("/health?x=1", 400, "unknown parameter 'x'; there is none"),
        ("/?x=1", 400, "unknown parameter"),
        ("/search?q=a&k=0", 400, "give an integer from 1 to 1,000"),
        ("/search?q=a&k=1001", 400, "give an integer from 1 to 1,000"),
        ("/search?q=a&offset=-1", 400, "give an integer from 0 to 10,000"),
        ("/search?q=a&offset=10001", 400, "give an integer from 0 to 10,000"),
        ("/search?q=a&skip=3", 400, "unknown parameter 'skip'; write offset"),
        ("/search?q=a&k=-1", 400, "give an integer"),
        ("/search?q=a&k=1.0", 400, "give an integer"),
        ("/search?q=a&k=", 400, "give an integer"),
        ("/search?q=a&cosine=1", 400, "cosine is '1'; give true or false"),
        ("/explain?q=a&id=t0&cosine=", 400, "cosine is ''; give true or false"),
        ("/gates?q=a&id=t0&cosine=true", 400, "unknown parameter 'cosine'; there is q, id"),
        ("/search?q=a&k=1_0", 400, "give an integer"),
        ("/search?q=a&k=%D9%A3", 400, "give an integer"),
        (f"/search?q=a&k={'9' * 5000}", 400, "give an integer"),
        (f"/search?q={'a' * 2001}", 400, "q has 2,001 characters; give a text of at most 2,000"),
        ("/search?q=%ff", 400, "not valid UTF-8"),
        ("/search?q=%ED%A0%80", 400, "not valid UTF-8"),
        ("/search?q", 400, "cannot be read"),
        ("/search?" + "&".join(f"a{n}=1" for n in range(1000)), 400, "cannot be read"),
        ("/explain?q=a", 400, "id is missing"),
        ("/explain?q=a&id=nowhere", 404, "the id nowhere is not in the index"),
        ("/gates?q=a&id=%0A%1b[2J", 404, "is not in the index"),
        ("/explain?q=+&id=t0", 400, "the query has 0 words"),
        ("/explain?q=a&id=t42", 400, "the title has 300 words; only texts of 1 to 200"),
        ("/gates?q=" + "a+" * 201 + "&id=t0", 400, "the query has 201 words"),
        ("/nowhere", 404, "nothing at this address"),
        ("/search/", 404, "nothing at this address"),
        ("/static/engine.js", 404, "nothing at this address"),
        ("/engine.js", 404, "nothing at this address"),
        ("/../../../../etc/passwd", 404, "nothing at this address"),
        ("/..%2f..%2f..%2fetc/passwd", 404, "nothing at this address"),
        ("/%2e%2e/%2e%2e/etc/passwd%00", 404, "nothing at this address"),
        ("/encode", 405, "does not take the method GET; use OPTIONS, POST"),
    ],
)  # fmt: skip
def test_a_wrong_address_is_refused(client, address, status, message):
    found = client.get(address)
    assert found.status_code == status and found.content_type == "application/json"
    assert message in refusal(json.loads(found.text))


TOO_DEEP = b'{"queries": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"{'queries': []}", "not JSON"),
        (b'{"queries": ["a"],}', "not JSON"),
        (b"[]", "the body is a list; send a JSON object"),
        (b"null", "the body is null"),
        (b"3", "the body is a number"),
        (b"\xff\xfe", "not valid UTF-8"),
        ('{"queries": ["a"]}'.encode("utf-16"), "not valid UTF-8"),
        (TOO_DEEP, "nested too deeply"),
        (b'{"queries": ["a"], "k": ' + b"9" * 5000 + b"}", "thousands of digits"),
        (b'{"queries": ["a"], "min_score": NaN}', "NaN is not JSON"),
        (b'{"queries": ["a"], "min_score": -Infinity}', "-Infinity is not JSON"),
        (b'{"queries": ["a"], "min_score": 1e999}', "min_score is inf; give a finite number"),
        (b'{"queries": ["a"], "min_score": "1"}', "min_score is '1'"),
        (b'{"queries": ["a"], "min_score": true}', "min_score is True"),
        (b'{"queries": ["a"], "queries": ["b"]}', "'queries' is given twice"),
        (b'{"queries": ["a"], "x": {"y": 1, "y": 2}}', "'y' is given twice"),
        ({}, "queries is missing"),
        ({"queries": "a"}, "queries is a text; give a list of texts"),
        ({"queries": {"a": 1}}, "queries is an object"),
        ({"queries": []}, "queries has 0 texts; give 1 to 100"),
        ({"queries": ["a"] * 101}, "queries has 101 texts; give 1 to 100"),
        ({"queries": ["a", None]}, "queries[1] is null; give a text"),
        ({"queries": ["a", 3]}, "queries[1] is a number"),
        ({"queries": ["a" * 2001]}, "queries[0] has 2,001 characters"),
        (b'{"queries": ["\\ud800"]}', "queries[0] has half of a surrogate pair"),
        ({"queries": ["a"], "top_k": 3}, "unknown field 'top_k'; write k; there is queries, k"),
        ({"queries": ["a"], "k": 0}, "k is 0; give an integer from 1 to 1,000"),
        ({"queries": ["a"], "k": 10**30}, "k is 1000000"),
        ({"queries": ["a"], "k": 1.5}, "k is 1.5"),
        ({"queries": ["a"], "k": True}, "k is True"),
        ({"queries": ["a"], "k": None}, "k is None"),
        ({"queries": ["a"], "cosine": 1}, "cosine is a number; give true or false"),
        ({"queries": ["a"], "only": "t1"}, "only is a text; give a list of ids"),
        ({"queries": ["a"], "only": ["t1", 2]}, "only[1] is a number; give an id"),
    ],
)
def test_a_wrong_body_is_refused(client, body, message):
    assert message in refusal(posted(client, "/search", body, 400))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"texts": ["a"], "side": "title"}, "side is 'title'; give query or document"),
        ({"texts": ["a"], "side": ["query"]}, "side is ['query']"),
        ({"texts": ["a"], "normalize_embeddings": 1}, "is a number; give true or false"),
        ({"queries": ["a"]}, "unknown field 'queries'; there is texts, side"),
        ({"texts": ["a"] * 101}, "texts has 101 texts"),
    ],
)
def test_what_cannot_be_encoded_is_refused(client, body, message):
    assert message in refusal(posted(client, "/encode", body, 400))


@pytest.mark.parametrize(
    "headers",
    [
        {"Content-Type": "text/plain"},
        {"Content-Type": "application/x-www-form-urlencoded"},
        {"Content-Type": "multipart/form-data; boundary=x"},
        {"Content-Type": "application/json; charset=latin-1"},
        {"Content-Type": ""},
        {"Content-Encoding": "gzip"},
    ],
)
def test_only_json_is_taken(client, headers):
    found = posted(client, "/search", {"queries": ["a"]}, 415, **headers)
    assert "Content-Type: application/json" in refusal(found)
    assert posted(client, "/search", {"queries": ["a"]},
                  **{"Content-Type": "application/json; charset=UTF-8"})  # fmt: skip


def test_a_large_body_is_refused(client):
    found = posted(client, "/search", b" " * ((1 << 20) + 1), 413)
    assert "more than 1,048,576 bytes" in refusal(found)
    client.post("/search", data=b"{}" + b" " * ((1 << 20) - 2))


@pytest.mark.parametrize("method", ["put", "delete", "patch", "trace"])
def test_other_methods_are_refused(client, method):
    for path in ("/search", "/explain", "/encode", "/health", "/"):
        found = getattr(client, method)(path)
        assert found.status_code == 405 and "OPTIONS" in found.headers["Allow"]
        assert method.upper() in refusal(json.loads(found.text))


def test_a_fault_of_ours_says_nothing_of_itself(index, monkeypatch, caplog):
    monkeypatch.setattr(Index, "search", lambda *a, **b: 1 / 0)
    client = create_app(index).test_client()
    found = asked(client, "/search", 500, q="a secret query")
    assert refusal(found) == "the server failed; its standard error says why"
    assert "ZeroDivisionError" in caplog.text and "secret" not in caplog.text


def test_queries_of_random_bytes_never_fail(client):
    rng = np.random.default_rng(0)
    for _ in range(100):
        raw = bytes(rng.integers(0, 256, rng.integers(0, 40)).astype(np.uint8))
        address = "/search?q=" + "".join(f"%{byte:02x}" for byte in raw)
        assert client.get(address).status_code in (200, 400)
        assert client.post("/search", data=raw, content_type="application/json").status_code == 400


# -- limits ------------------------------------------------------------------------------------


def test_limits_can_be_set(index):
    limits = Limits(texts=2, characters=5, k=3, words=2, body=100)
    client = create_app(index, limits=limits).test_client()
    assert "1 to 3" in refusal(asked(client, "/search", 400, q="a", k=4))
    assert "at most 5" in refusal(asked(client, "/search", 400, q="abcdef"))
    assert "1 to 2 in" in refusal(posted(client, "/encode", {"texts": ["a"] * 3}, 400))
    assert "1 to 2 words" in refusal(asked(client, "/explain", 400, q="a b c", id="t0"))
    assert posted(client, "/search", b" " * 101, 413)


@pytest.mark.parametrize(
    "wrong",
    [{"texts": 0}, {"k": True}, {"seconds": 0}, {"seconds": math.nan}, {"rate": -1}, {"k": 2.5}]
)  # fmt: skip
def test_wrong_limits(wrong):
    with pytest.raises(SentembError, match=next(iter(wrong))):
        Limits(**wrong)


def test_a_request_that_takes_too_long_is_given_up(index, monkeypatch):
    client = create_app(index, limits=Limits(seconds=1e-6)).test_client()
    found = client.post("/search", json={"queries": QUERIES})
    assert found.status_code == 503 and found.headers["Retry-After"] == "1"
    assert "send fewer queries" in refusal(found.get_json())
    monkeypatch.setattr("sentemb.bridges.server.answers._PAIRS", 1)
    looks = iter([False, False, True])
    gone = {"waitress.client_disconnected": lambda: next(looks)}
    client = create_app(index).test_client()
    found = client.post("/search", json={"queries": QUERIES[:9]}, environ_overrides=gone)
    assert found.status_code == 503 and list(looks) == []


def test_an_address_that_asks_too_much_has_to_wait(index, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(request_limits.time, "monotonic", lambda: now[0])
    client = create_app(index, limits=Limits(rate=2.0)).test_client()
    # A full bucket has 20 texts, and the last request may take more than is left.
    assert posted(client, "/search", {"queries": ["a"] * 19})
    assert posted(client, "/encode", {"texts": ["a"] * 11})
    found = client.get("/search?q=a")
    assert found.status_code == 429 and found.headers["Retry-After"] == "6"
    assert "more than 2 texts per second; wait 6 s" in refusal(found.get_json())
    assert client.get("/explain?q=a&id=t0").status_code == 429
    assert client.get("/health").status_code == client.get("/").status_code == 200
    other = {"REMOTE_ADDR": "10.0.0.9"}
    assert client.get("/search?q=a", environ_overrides=other).status_code == 200
    now[0] += 5.5
    assert client.get("/search?q=a").status_code == 200
    assert client.get("/search?q=").status_code == 429
    assert client.get("/search").status_code == 400  # what is malformed is not charged


def test_rates_are_per_customer_and_their_memory_is_bounded(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(request_limits.time, "monotonic", lambda: now[0])
    rates = Rates(0.5)
    assert rates.wait("2001:db8::1", 100) == 0 and rates.wait("2001:db8::ffff", 1) > 0
    assert rates.wait("2001:db8:0:1::1", 1) == 0
    assert rates.wait("1.2.3.4", 100) == 0 and rates.wait("::ffff:1.2.3.4", 1) > 0
    assert rates.wait("fe80::1%eth0", 100) == 0 and rates.wait("unix", 1) == 0
    wait = rates.wait("1.2.3.4", 1)
    now[0] += wait
    assert rates.wait("1.2.3.4", 1) == 0
    for number in range(11_000):
        rates.wait(f"10.0.{number // 256}.{number % 256}", 1)
    assert len(rates._left) == 10_000
    assert rates.wait("1.2.3.4", 1) == 0  # forgotten


def test_rates_hold_between_threads():
    rates = Rates(1e-6)
    rates.wait("a", 0)
    start, passed = threading.Barrier(8), []

    def ask():
        start.wait()
        passed.extend(rates.wait("a", 1) == 0 for _ in range(50))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(passed) == 1


# -- hosts and origins -------------------------------------------------------------------------


def test_only_allowed_hosts_are_answered(index):
    client = create_app(index, allowed_hosts=["LOCALHOST", "127.0.0.1", "[::1]", "a.example."])
    client = client.test_client()
    for host in ("localhost", "LocalHost:8000", "127.0.0.1:80", "[::1]:8000", "a.example:443"):
        assert client.get("/health", headers={"Host": host}).status_code == 200, host
    wrong = ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "localhost:x",
             "127.0.0.1:8000, evil.example", "evil@localhost", "localhost:99999", "[::1",
             "2130706433"]  # fmt: skip
    for host in wrong:
        for path in EVERY:
            found = client.get(path, headers={"Host": host}, environ_overrides={"HTTP_HOST": host})
            assert found.status_code == 403, host
            assert "--allow-host NAME" in refusal(found.get_json())
    anyone = create_app(index).test_client()
    assert anyone.get("/health", headers={"Host": "evil.example"}).status_code == 200


def test_a_page_of_another_site_may_call_only_if_it_is_allowed(index):
    shop = "https://shop.example.org"
    closed = create_app(index).test_client()
    opened = create_app(index, allowed_origins=[shop]).test_client()
    allow = "Access-Control-Allow-Origin"
    strangers = ["https://evil.example", "null", shop + ".evil.example", shop + ":8443", "*",
                 "http://shop.example.org", shop + "/", "HTTPS://shop.example.org"]  # fmt: skip
    for method in ("get", "options"):
        call = partial(getattr(opened, method), "/search?q=a")
        assert call(headers={"Origin": shop}).headers[allow] == shop
        for origin in strangers:
            headers = call(headers={"Origin": origin}).headers
            assert allow not in headers and headers["Vary"] == "Origin"
            assert "Access-Control-Allow-Methods" not in headers
        assert allow not in getattr(closed, method)("/search", headers={"Origin": shop}).headers
    asked_first = opened.options("/search", headers={"Origin": shop})
    assert asked_first.status_code == 204
    assert asked_first.headers["Access-Control-Allow-Methods"] == "GET, POST"
    assert asked_first.headers["Access-Control-Allow-Headers"] == "Content-Type"
    assert asked_first.headers["Allow"] == "GET, HEAD, OPTIONS, POST"
    assert "Access-Control-Allow-Credentials" not in asked_first.headers
    assert opened.get("/nowhere", headers={"Origin": shop}).headers[allow] == shop


@pytest.mark.parametrize(
    "origin",
    ["*", "null", "", "shop.example.org", "https://shop.example.org/", "ftp://a.b", "https://a b",
     "https://u@a.example", "https://a.example?x", "https://*.example", "https://a.example:443",
     "http://a.example:80", "https://a.example:0", "https://a.example:99999"],
)  # fmt: skip
def test_what_is_not_an_origin_is_refused(origin):
    with pytest.raises(SentembError, match="is not an origin; give scheme, host"):
        checked_origins([origin])


def test_names_of_hosts():
    assert checked_origins(["HTTP://Localhost:3000", "https://[::1]:8443"]) == {
        "http://localhost:3000", "https://[::1]:8443"}  # fmt: skip
    assert checked_hosts(["[::1]", "0:0:0:0:0:0:0:1", "A.Example."]) == {"::1", "a.example"}
    for wrong in ("a.example:80", "http://a", "", "*", "a/b"):
        with pytest.raises(SentembError, match="is not the name of a host"):
            checked_hosts([wrong])
    assert host_name("[::1]:80") == "::1" and host_name("::1") is None
    hosts = ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LOCALHOST"]
    assert all(map(is_loopback, hosts))
    assert not any(map(is_loopback, ["0.0.0.0", "::", "10.0.0.1", "a.example", ""]))


def test_an_index_of_no_titles_is_served(index):
    empty = Index.build(index.model, ["a"], ["x"])
    empty.remove(["x"])
    (found,) = Answers(empty).search(["a"], 3)
    assert found == {"query": "a", "unknown": [], "hits": [], "no_match": empty.search("a").reason}


def test_a_query_below_the_floor_has_a_reason_and_the_nearest_titles(
    client, index, monkeypatch, tmp_path
):
    below = np.ones(1, bool)
    monkeypatch.setattr(HybridRanker, "is_below_floor", lambda *arguments: below)
    words = [set(title.split()) for title in TITLES]
    query = next(q for q in QUERIES[30:40] if not any(set(q.split()) <= each for each in words))
    found = asked(client, "/search", q=query)
    assert found["hits"] == [] and found["no_match"] == index.search(query).reason
    everything = index.search(query, everything=True)
    assert [hit["id"] for hit in found["nearest"]] == [hit.id for hit in everything]
    assert found["nearest"] == index.search(query).nearest
    assert "nearest" not in asked(client, "/search", q=QUERIES[3])
    # They are shown, so the record has them, and a click on one.
    with closing(SearchRecord(tmp_path / "searches.sqlite")) as record:
        recorded = create_app(index, record=record).test_client()
        name = asked(recorded, "/search", q=query)["search"]
        assert record.add_click(name, everything[1].id)
    (clicked,) = record_rows(record.path, all_shown=False)
    assert clicked[:3] == (query, everything[1].title, everything[1].id) and clicked[5] == 2
    # A query that the log has clicks for is answered whatever the floor says.
    assert asked(client, "/search", q=QUERIES[3])["hits"]
    for answer in (
        asked(client, "/search", q=query, all="true"),
        posted(client, "/search", {"queries": [query], "all": True})["results"][0],
    ):
        ids = [hit.id for hit in index.search(query, everything=True)]
        assert [hit["id"] for hit in answer["hits"]] == ids and "no_match" not in answer


def test_a_pair_model_cannot_be_served(tmp_path):
    with pytest.raises(SentembError):
        Index.build(made_up_pair_model(["a b"]), ["a"])
