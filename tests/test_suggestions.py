"""Frequent queries of the log: suggestions while somebody types, and did-you-mean."""

import json
import sys

import numpy as np
import pytest
from browsers import chromium, needs_chromium, opened
from helpers import made_up_model
from hypothesis import given
from hypothesis import strategies as st
from test_export_page import contents_of
from test_serve_network import running

from sentemb import Index
from sentemb.bridges.export.targets import export
from sentemb.bridges.server.app import create_app
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder
from sentemb.errors import SentembError
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.edits import distance
from sentemb.search.frequent_queries import FrequentQueries, folded
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

TITLES = ["Crème brûlée dish", "Cream jug", "Credit card case", "Cheap desk lamp", "上海 酒店"]
CLICKS = {
    "crème dish": 9,
    "Cream jug": 10,
    "CREAM  jug!": 6,
    "credit card": 5,
    "cred 4711": 4,
    "cheap lamp": 20,
    "上海酒店": 8,
    "<b>lamp": 6,
}
pytestmark = pytest.mark.filterwarnings("ignore::sentemb.models.face.TextWarning")


@pytest.fixture(scope="module")
def index():
    builder = ClickLogBuilder()
    for query, clicks in CLICKS.items():
        words = folded(query).split()
        title = next((t for t in TITLES if words[0] in folded(t)), TITLES[3])
        builder.add(query, title, clicks)
    model = made_up_model(("bag", {}), [*TITLES, *CLICKS], dtype=np.float32)
    recipe = Recipe({"cosine": 1.0, "memory": 0.5, "bm25": 0.3})
    ranker = HybridRanker(model, recipe, ClickedQueries.of(builder.build()))
    return Index.build(ranker, TITLES, [f"t{k}" for k in range(len(TITLES))])


def test_a_search_by_the_cosine_needs_no_stemmer(index, monkeypatch):
    pytest.importorskip("Stemmer")
    recipe = Recipe({"cosine": 1.0, "bm25": 1.0}, stem="english")
    ranker = HybridRanker(index.model, recipe, ClickedQueries.of(ClickLogBuilder().build()))
    stemmed = Index.build(ranker, TITLES)
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    words_of.cache_clear()
    (hit,) = stemmed.search("cheap lamps", 1, cosine=True)
    assert hit.title == index.search("cheap lamps", 1, cosine=True)[0].title
    with pytest.raises(SentembError, match="Stemmer is not installed"):
        stemmed.search("cheap lamps")


@given(st.text("abc", max_size=7), st.text("abc", max_size=7))
def test_the_distance_is_that_of_a_recursion(a, b):
    def slow(i, j):
        if not i or not j:
            return i + j
        costs = [
            slow(i - 1, j - 1) + (a[i - 1] != b[j - 1]),
            slow(i - 1, j) + 1,
            slow(i, j - 1) + 1,
        ]
        if i > 1 and j > 1 and a[i - 2 : i] == b[j - 2 : j][::-1]:
            costs.append(slow(i - 2, j - 2) + 1)
        return min(costs)

    a, b = a[:5], b[:5]
    assert distance(a, b) == slow(len(a), len(b))


@given(
    st.lists(st.text("abc e\u0301\U0010ffff", max_size=5), max_size=150),
    st.text("abc ", max_size=3),
)
def test_queries_that_begin_with_a_text_are_the_most_frequent_first(queries, text):
    frequent, begun = FrequentQueries(queries), folded(text)
    of_all = [
        query
        for key, query in frequent.by_key.items()
        if begun and key.startswith(begun) and key != begun
    ]
    assert list(frequent.beginning_with(text)) == of_all


@given(st.lists(st.text("abcdé ", max_size=9), max_size=8), st.text("abcdé ", max_size=9))
def test_the_nearest_queries_are_those_of_the_distance(queries, text):
    frequent = FrequentQueries(queries)
    key = folded(text)
    most = (len(key) >= 3) + (len(key) >= 6)
    near = [(distance(key, other), query) for other, query in frequent.by_key.items()]
    near = sorted((d for d in near if 0 < d[0] <= most), key=lambda one: one[0])
    assert frequent.near(text) == [query for _, query in near]


@pytest.mark.parametrize(
    ("begun", "suggested"),
    [
        ("cre", ["Cream jug", "crème dish", "credit card"]),
        ("CRÈME", ["crème dish"]),
        ("che ", ["cheap lamp"]),
        ("cheap lamp", []),
        ("上海", ["上海酒店"]),
        ("", []),
        ("!", []),
        ("zz", []),
    ],
)
def test_frequent_queries_complete_a_text(index, begun, suggested):
    assert sorted(index.suggest(begun)) == sorted(suggested)
    counts = [CLICKS[query] for query in index.suggest(begun)]
    assert counts == sorted(counts, reverse=True)
    assert index.suggest(begun, 1) == index.suggest(begun)[:1]


def test_suggestions_have_the_spelling_of_most_clicks():
    titles = ["Beauty Stylists, Seoul", "Sofa Repair", "Coach Tours", "Kaffee-Bar"]
    clicked = {
        **{f"beauty salon {number}": (0, 1) for number in range(10)},
        **{f"coach trip {number}": (2, 1) for number in range(20)},
        "beauty stylists": (0, 90),
        "cheap beuty stylists seoul": (0, 9),
        "Cheap Beuty  Seoul": (0, 5),
        "coach tours": (2, 200),
        "couch repair": (1, 8),  # a word of its own: no clicked title has "coach"
        "coach tour": (2, 30),  # another form
        "beauty 38mm": (0, 7),
        "café bar": (3, 6),
    }
    builder = ClickLogBuilder()
    for query, (title, clicks) in clicked.items():
        builder.add(query, titles[title], clicks)
    frequent = FrequentQueries.of(ClickedQueries.of(builder.build()))
    assert list(frequent.by_key.values()) == [
        "coach tours",
        "beauty stylists",
        "coach tour",
        "cheap beauty stylists seoul",
        "couch repair",
        "beauty 38mm",
        "café bar",
        "Cheap beauty Seoul",
    ]
    assert next(frequent.beginning_with("che")) == "cheap beauty stylists seoul"


def test_what_finds_nothing_is_not_suggested(index):
    index = Index.build(index.ranker, ["Bath tub"], ["t9"])
    assert not index.suggest("上") and not index.frequent_queries(1)
    assert index.model_alone().suggest("cre") == []


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ("chaep lamp", "cheap lamp"),
        ("creem jug", "Cream jug"),
        ("cheap lamp", None),
        ("cheap", None),
        ("t3", None),
        ("qqqqqqqq", None),
    ],
)
def test_an_unknown_word_may_mean_a_frequent_query(index, query, meant):
    assert index.search(query).did_you_mean == meant
    assert index.search([query])[0].did_you_mean == meant
    assert index.search(query, cosine=True).did_you_mean is None


def test_commands_and_the_server_say_what_may_have_been_meant(index, tmp_path, capfd):
    index.save(tmp_path / "index")
    main(["search", str(tmp_path / "index"), "chaep lamp"], standalone_mode=False)
    assert "did you mean cheap lamp?" in capfd.readouterr().out
    main(["search", str(tmp_path / "index"), "chaep lamp", "--json"], standalone_mode=False)
    assert json.loads(capfd.readouterr().out)["did_you_mean"] == "cheap lamp"
    client = create_app(index).test_client()
    assert client.get("/search?q=chaep+lamp").get_json()["did_you_mean"] == "cheap lamp"
    assert "did_you_mean" not in client.get("/search?q=cheap+lamp").get_json()
    answer = client.get("/suggest?q=che").get_json()
    assert answer == {"query": "che", "suggestions": ["cheap lamp"]}
    assert client.get("/suggest").status_code == client.get("/suggest?q=a&k=2").status_code == 400


def test_the_page_has_only_queries_that_were_clicked_often(index, tmp_path):
    path = tmp_path / "page.html"
    notes = export(index, path, "page", min_queries=6).notes
    assert b"cheap lamp" in contents_of(path)[1]
    assert not any(text in contents_of(path)[1] for text in (b"credit card\n", b"4711"))
    assert "at least 6 clicks" in notes[-1]
    export(index, path, "page", min_queries=1, force=True)
    assert b"cred 4711" in contents_of(path)[1]


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module", params=["server", "page"])
def page(request, index, browser, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "page.html"
    if request.param == "page":
        export(index, path, "page", min_queries=1)
        with opened(browser, path.as_uri()) as tab:
            yield tab
    else:
        with (
            running(create_app(index)) as port,
            opened(browser, f"http://127.0.0.1:{port}/") as tab,
        ):
            yield tab


def listed(page, *queries):
    """Wait until these are suggested."""
    page.locator("#suggestions li").nth(len(queries) - 1).wait_for()
    assert page.locator("#suggestions li").all_inner_texts() == list(queries)


@needs_chromium
def test_suggestions_are_chosen_with_keys_and_the_pointer(page):
    box = page.locator("#query")
    box.fill("CRÉ")  # at once: each letter that is typed closes the list of those before
    page.locator("#suggestions li").first.wait_for()
    assert page.locator("#suggestions li").all_inner_texts()[:2] == ["Cream jug", "crème dish"]
    assert box.get_attribute("aria-expanded") == "true"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert box.get_attribute("aria-activedescendant") == "suggestion-1"
    assert page.locator("#suggestion-1").get_attribute("aria-selected") == "true"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert box.get_attribute("aria-activedescendant") is None
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert box.input_value() == "Cream jug" and page.locator("#suggestions").is_hidden()
    page.locator(".title", has_text="Cream jug").wait_for()
    box.fill("<b")
    listed(page, "<b>lamp")
    page.keyboard.press("Escape")
    assert page.locator("#suggestions").is_hidden() and box.input_value() == "<b"
    box.fill("cheap")
    listed(page, "cheap lamp")
    page.locator("#suggestions li").click()
    assert box.input_value() == "cheap lamp"
    box.fill("cheap")
    listed(page, "cheap lamp")
    page.locator("h1").click()
    assert page.locator("#suggestions").is_hidden()


@needs_chromium
def test_a_reader_takes_what_may_have_been_meant(page):
    page.fill("#query", "chaep lamp")
    page.get_by_role("button", name="cheap lamp", exact=True).click()
    page.locator(".title", has_text="Cheap desk lamp").wait_for()
    assert page.locator("#query").input_value() == "cheap lamp"
    assert page.locator("#remark").is_hidden()


@needs_chromium
def test_both_pages_suggest_and_mean_the_same(page, index):
    texts = ["cre", "CRÈ", "上海", "chaep lamp", "creem jgu", "cred471", "ﬁne lamp", "上海酒", "ς"]
    found = page.evaluate(
        """async (texts) => {
          const how = { filters: {}, sort: "" };
          return Promise.all(texts.map(async (text) => {
            const { did_you_mean } = await engine.search(text, 3, undefined, how);
            return [await engine.suggest(text), did_you_mean ?? null];
          }));
        }""",
        texts,
    )
    few = {query for query, clicks in CLICKS.items() if clicks < 5}
    for text, (suggested, meant) in zip(texts, found, strict=True):
        assert [query for query in suggested if query not in few] == index.suggest(text)
        assert meant == index.search(text).did_you_mean or meant in few
