"""Fields of products in the server, on its page and on the page without a server."""

import itertools
import json
import time
from urllib.parse import quote

import numpy as np
import pytest
from browsers import NODE, NodePage, chromium, needs_chromium, opened
from helpers import made_up_model
from test_serve_network import running

from sentemb import Index
from sentemb.analysis.insights import insights
from sentemb.bridges.export.targets import export
from sentemb.bridges.server.answers import Answers
from sentemb.bridges.server.app import _ANSWERS, create_app, replace_index
from sentemb.data.search_record import SearchRecord, record_rows
from sentemb.errors import SentembError
from sentemb.search.searcher import NO_MORE

TITLES = [f"{colour} lamp {k}" for k in range(6) for colour in ("red", "blue", "green")]
MARKUP = "<img src=x onerror=alert(1)> & 'Co'"
FIELDS = {
    "price": [None, *(float(k) / 2 for k in range(17))],
    "brand": ["Acme", "Bolt", MARKUP] * 6,
    "link": ["https://shop.example/1", "javascript:alert(1)", None] * 6,
    "sold": [True, False, None] * 6,
    "image": ["http://127.0.0.1:9/1.png", "data:image/png;base64,AA", "file:///x.png"] * 6,
}
pytestmark = pytest.mark.filterwarnings("ignore::sentemb.models.face.TextWarning")


@pytest.fixture(scope="module")
def index():
    model = made_up_model(("bag", {}), TITLES, dtype=np.float32)
    return Index.build(model, TITLES, [f"t{k}" for k in range(18)], FIELDS)


@pytest.fixture(scope="module")
def client(index):
    return create_app(index, name="lamps").test_client()


def asked(client, status=200, **query):
    answer = client.get("/search", query_string=query)
    assert answer.status_code == status, answer.text
    return json.loads(answer.text)


def test_the_server_filters_sorts_and_counts(client, index):
    given = {"where": "price > 1 and brand = 'Acme'", "sort": "-price"}
    answer = asked(client, q="red lamp", k=5, facets="brand", all="true", **given)
    hits = index.search("red lamp", 5, facets=["brand"], everything=True, **given)
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in hits]
    assert [hit["fields"] for hit in answer["hits"]] == [hit.fields for hit in hits]
    assert answer["facets"] == hits.facets
    body = {"queries": ["red lamp"], "k": 5, "facets": "brand", "all": True, **given}
    posted = client.post("/search", json=body).get_json()
    assert posted["results"][0]["hits"] == answer["hits"]
    assert asked(client, q="t3", all="true")["hits"][0]["id"] == "t3"
    similar = asked(client, like="t3", k=4)
    assert [hit["id"] for hit in similar["hits"]] == [hit.id for hit in index.similar("t3", 4)]


@pytest.mark.parametrize("how", [{}, {"sort": "-price"}, {"where": "price > 2"}])
def test_a_page_of_titles_is_a_slice_of_all(client, index, how):
    for query in ("red lamp", "t7", "nothing known"):
        every = index.search(query, 18, everything=True, **how)
        for offset, k in ((0, 4), (4, 4), (3, 20), (17, 1), (18, 2), (500, 3)):
            hits = index.search(query, k, offset=offset, everything=True, **how)
            assert hits == every[offset : offset + k], (query, offset, k)
            assert (hits.reason == NO_MORE) == (bool(every) and not hits)
            answer = asked(client, q=query, k=k, offset=offset, all="true", **how)
            assert answer["hits"] == json.loads(json.dumps(hits))
            body = {"queries": [query], "k": k, "offset": offset, "all": True, **how}
            assert client.post("/search", json=body).get_json()["results"] == [answer]
    every = index.similar("t3", 18, **how)
    assert index.similar("t3", 3, offset=2, **how) == every[2:5]
    assert asked(client, like="t3", k=3, offset=2, **how)["hits"] == json.loads(
        json.dumps(every[2:5])
    )
    with pytest.raises(SentembError, match="offset is -1; give an integer from 0"):
        index.search("lamp", offset=-1)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"where": "prise > 1"}, "did you mean price"),
        ({"where": "price >"}, "the condition is wrong"),
        ({"where": "1; drop table products"}, "cannot be read"),
        ({"where": "x" * 2001}, "2,001 characters"),
        ({"sort": "size"}, "there are price"),
        ({"facets": "brand,size"}, "there are price"),
        ({"facets": ""}, "there are price"),
    ],
)
def test_the_server_refuses_a_wrong_condition(client, given, message):
    assert message in asked(client, 400, q="lamp", **given)["error"]


def test_an_index_that_is_replaced_meanwhile_is_not_asked(index):
    """A request looks for the index once: the second look would find another."""

    class Replaced(dict):
        def __getitem__(self, key):
            found = super().__getitem__(key)
            if key == _ANSWERS:
                self[key] = other
            return found

    app = create_app(index)
    other = Answers(Index.build(index.model, TITLES))  # without fields
    client = app.test_client()
    body = {"queries": ["lamp"], "where": "price > 1"}
    for ask in (
        lambda: client.get("/search", query_string={"q": "lamp", "where": "price > 1"}),
        lambda: client.get("/search", query_string={"like": "t3", "sort": "price"}),
        lambda: client.post("/search", json=body),
    ):
        replace_index(app, index)
        app.extensions = Replaced(app.extensions)
        assert ask().status_code == 200


def test_similar_to_an_unknown_id_is_not_found(client):
    assert "not in the index" in asked(client, 404, like="nothing")["error"]


@pytest.mark.parametrize("other", [{"q": "lamp"}, {"all": "true"}, {"all": "false"}])
def test_similar_titles_have_no_query_and_no_floor(client, other):
    said = f"{next(iter(other))} does not go with like"
    assert said in asked(client, 400, like="t3", **other)["error"]


def test_facts_name_fields_and_facets(client):
    facts = client.get("/health").get_json()
    types = {"price": "REAL", "brand": "TEXT", "link": "TEXT", "sold": "BOOLEAN", "image": "TEXT"}
    assert facts["fields"] == types
    assert facts["facets"] == ["brand", "sold"]
    assert "img-src data: https: http:;" in client.get("/").text


@pytest.fixture(scope="module")
def page(index, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "lamps.html"
    export(index, path, "page", dtype="float32")
    with chromium() as browser, opened(browser, "about:blank") as tab:
        tab.route("http://127.0.0.1:9/*", lambda route: route.fulfill(body=""))
        tab.goto(path.as_uri())
        yield tab


@needs_chromium
@pytest.mark.parametrize(
    ("filters", "sort", "where"),
    [
        ({}, "", None),
        ({}, "price", None),
        ({}, "-price", None),
        ({"brand": MARKUP}, "", "brand like '<img%'"),
        ({"brand": "Acme"}, "-price", "brand = 'Acme'"),
        ({"brand": "Nobody"}, "", "brand = 'Nobody'"),
        ({"sold": "true"}, "", "sold"),
        ({"sold": "false", "brand": "Bolt"}, "-price", "sold = false and brand = 'Bolt'"),
        ({">=price": "3", "<=price": "20.5"}, "", "price >= 3 and price <= 20.5"),
        ({"<=price": "1e1", "brand": "Acme"}, "price", "price <= 10 and brand = 'Acme'"),
    ],
)
def test_the_page_without_a_server_finds_what_the_index_finds(page, index, filters, sort, where):
    texts = ("red lamp", "blue", "t7", "T7", "\ufefft7\x1c")
    for query, offset in itertools.product(texts, (0, 3)):
        answer = page.evaluate(
            "([query, how]) => engine.search(query, 8, null, how)",
            [query, {"filters": filters, "sort": sort, "offset": offset}],
        )
        hits = index.search(
            query,
            8,
            offset=offset,
            where=where,
            sort=sort or None,
            facets=["brand", "sold"],
            everything=True,
        )
        assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in hits]
        assert [hit["fields"] for hit in answer["hits"]] == [hit.fields for hit in hits]
        assert [hit["by_id"] for hit in answer["hits"]] == [hit.by_id for hit in hits]
        facets = {name: dict(counts) for name, counts in answer["facets"].items()}
        assert facets == json.loads(json.dumps(hits.facets))
        assert hits.reason in (answer.get("no_match"), NO_MORE)
        assert not (query == "T7" and answer["unknown"])


@pytest.mark.skipif(NODE is None, reason="no node runs the engine of a page")
def test_the_engine_of_the_page_has_the_order_and_the_ids_of_the_index(index, tmp_path):
    values = ["elm", "Elm", "\U0001f33f", "\ufb01r", "7", "10", "Ash", "ash", None] * 2
    trees = Index.build(index.model, TITLES, list(index.ids), {"tree": values, "sold": [True] * 18})
    export(trees, tmp_path / "trees.html", "page", dtype="float32")
    engine = NodePage(tmp_path / "trees.html")
    how = '{ filters: { sold: "true" } }'
    ask = f"async (query) => JSON.stringify(await engine.search(query, 18, null, {how}))"
    for query in ("lamp", "\ufeffT7\x1c", "\x85t7\u3000"):
        answer = json.loads(engine.evaluate(ask, query))
        hits = trees.search(query, 18, where="sold", facets=["tree", "sold"])
        assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in hits]
        facets = {name: list(map(tuple, counts)) for name, counts in answer["facets"].items()}
        expected = json.loads(json.dumps(hits.facets))
        assert facets == {name: list(counts.items()) for name, counts in expected.items()}


@needs_chromium
def test_the_page_of_a_server_finds_what_the_index_finds(page, index):
    where = "price >= 3 and price <= 20.5 and brand like '<img%' and sold is null"
    filters = {">=price": "3", "<=price": "20.5", "brand": MARKUP}
    app = create_app(index, name="lamps")
    how = {"filters": filters, "sort": ""}
    with running(app) as port, opened(page.context.browser, f"http://127.0.0.1:{port}/") as tab:
        answer = tab.evaluate("(how) => engine.search('red lamp', 8, null, how)", how)
    hits = index.search("red lamp", 8, where=where, facets=["brand"])
    assert [hit["id"] for hit in answer["hits"]] == [hit.id for hit in hits]
    assert hits and dict(answer["facets"]["brand"]) == hits.facets["brand"]


def until(page, condition):
    """Wait for a condition; the page's policy forbids the function of Playwright."""
    when(lambda: page.evaluate(condition))


def when(is_true):
    end = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


@needs_chromium
def test_a_reader_filters_and_sorts_and_nothing_but_web_addresses_is_followed(page, index):
    svg = "<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'/>"
    pictures = itertools.chain([svg, "no picture"], itertools.repeat(svg))
    page.route(
        "http://127.0.0.1:9/*",
        lambda route: route.fulfill(content_type="image/svg+xml", body=next(pictures)),
    )
    page.fill("#query", "red lamp")
    page.locator(".hit").first.wait_for()
    brand, _, order = page.locator("#filters select").all()
    assert brand.locator("option").count() == 4
    brand.select_option(MARKUP)
    until(page, "[...document.querySelectorAll('.fields')].every(e => /onerror/.test(e.innerText))")
    order.select_option("-price")
    hits = index.search("red lamp", where="brand like '<%'", sort="-price", everything=True)
    until(page, f"document.querySelector('.title').innerText === '{hits[0].title}'")
    assert quote(MARKUP[:4]) in page.url
    assert not page.locator(".result img, .result a").count()
    brand.select_option("")
    until(page, "document.querySelectorAll('.result a, .result img').length > 1")
    sources = page.locator(".result img").evaluate_all("all => all.map((one) => one.src)")
    links = page.locator("a.title").evaluate_all("all => all.map((one) => one.href)")
    assert set(sources) == {"http://127.0.0.1:9/1.png"}
    assert set(links) == {"https://shop.example/1"}
    page.reload()
    page.locator(".hit").first.wait_for()
    until(page, "!document.querySelectorAll('.result img').length")  # rather than a broken one
    assert page.locator("#filters select").last.input_value() == "-price"
    lowest, highest = page.locator("#filters input").all()
    assert lowest.get_attribute("aria-label") == "price, lowest"
    lowest.fill("4")
    highest.fill("12.5")
    highest.press("Tab")
    within = index.search(
        "red lamp", where="price >= 4 and price <= 12.5", sort="-price", everything=True
    )
    shown = "[...document.querySelectorAll('.title')].map(e => e.innerText).join('|')"
    until(page, f"{shown} === '{'|'.join(hit.title for hit in within)}'")
    page.reload()
    page.locator(".hit").first.wait_for()
    assert page.locator("#filters input").last.input_value() == "12.5"
    page.goto(page.url.replace("12.5", "1%20or%201"))  # an address is not to be trusted
    page.reload()
    page.locator(".hit").first.wait_for()
    assert page.locator("#filters input").last.input_value() == ""


SIZES = ["10"] * 12 + ["7"] * 4 + ["large", "2"]


@needs_chromium
def test_a_reader_turns_pages(page, index):
    address = page.url.partition("#")[0]
    page.goto("about:blank")
    page.goto(address)
    titles = page.locator(".title")
    page.fill("#query", "lamp")
    page.get_by_role("button", name="Next page").click()
    until(page, "() => document.querySelector('#status').textContent.startsWith('11 to 18')")
    hits = index.search("lamp", 18)
    assert titles.all_inner_texts() == [hit.title for hit in hits[10:]]
    assert page.url.endswith("#q=lamp&from=11")
    assert page.locator("#later").is_disabled()
    page.get_by_role("button", name="Previous page").click()
    until(page, "() => document.querySelector('#status').textContent.startsWith('10 of')")
    assert titles.all_inner_texts() == [hit.title for hit in hits[:10]]
    page.go_back()
    until(page, "() => document.querySelector('#status').textContent.startsWith('11 to 18')")
    page.fill("#query", "t7")  # another query begins at its first result
    until(page, "() => document.querySelector('.title').textContent === 'blue lamp 2'")
    assert "found by its id" in page.locator(".result").first.inner_text()
    assert page.url.endswith("#q=t7")


@needs_chromium
def test_values_that_are_integers_are_in_the_order_of_their_counts(index, page, tmp_path):
    sized = Index.build(index.model, ["lamp"] * 18, fields={"size": SIZES})
    counts = sized.search("lamp", 18, facets=["size"]).facets["size"]
    assert list(counts) == ["10", "7", "2", "large"]
    export(sized, tmp_path / "sizes.html", "page", dtype="float32")
    with running(create_app(sized)) as port:
        for address in ((tmp_path / "sizes.html").as_uri(), f"http://127.0.0.1:{port}/"):
            with opened(page.context.browser, address) as tab:
                tab.fill("#query", "lamp")
                until(tab, "document.querySelectorAll('#filters option').length > 4")
                options = tab.locator("#filters option").all_inner_texts()
            assert options[:3] == ["all", "10 (12)", "7 (4)"]
            assert options[3:5] == ["2 (1)", "large (1)"]


def is_to_be_recorded(url):
    return "/search?" in url and "draft" not in url


@needs_chromium
def test_a_link_that_is_followed_is_a_click_and_a_search_is_recorded_again(index, page, tmp_path):
    record = SearchRecord(tmp_path / "searches.sqlite")
    served = running(create_app(index, record=record))
    with served as port, page.context.browser.new_context() as context:
        context.route("https://shop.example/*", lambda route: route.fulfill(body="product"))
        tab = context.new_page()
        tab.goto(f"http://127.0.0.1:{port}/")
        tab.route(is_to_be_recorded, lambda route: route.fulfill(status=503, body="{}"))
        tab.fill("#query", "red lamp")
        links = tab.locator("a.title")
        links.first.wait_for()
        with tab.expect_response(lambda answer: is_to_be_recorded(answer.url)):
            tab.press("#query", "Enter")
        tab.unroute(is_to_be_recorded)
        tab.wait_for_timeout(200)  # until the page knows
        links.first.click(button="right")
        assert insights(record.path).searches == 0
        for count, button in enumerate(("left", "middle"), 1):
            links.nth(count).click(button=button)
            when(lambda count=count: len(list(record_rows(record.path, False))) == count)
    hits = index.search("red lamp", everything=True)
    titles = [hit.title for hit in hits if (hit.fields["link"] or "").startswith("https:")]
    assert [row[1] for row in record_rows(record.path, False)] == titles[1:3]
    assert insights(record.path).searches == 1
