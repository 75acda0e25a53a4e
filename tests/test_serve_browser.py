"""The search page of a running server in Chromium: typing, keys, errors, a phone, dark mode."""

import contextlib
import re
import time
from functools import partial

import numpy as np
import pytest
from browsers import chromium, needs_chromium, opened
from helpers import made_up_model, made_up_texts
from test_serve_network import running

from sentemb import Index
from sentemb.analysis.insights import insights
from sentemb.bridges.server.app import create_app
from sentemb.data.click_log import ClickLogBuilder
from sentemb.data.search_record import SearchRecord, record_rows
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.confidence import Confidence
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

pytestmark = [needs_chromium, pytest.mark.filterwarnings("ignore::sentemb.models.face.TextWarning")]
NASTY = "<img src=x onerror=\"document.title='broken'\"> & <b>bold</b>"
TITLES = [
    *made_up_texts(np.random.default_rng(1), [4] * 60),
    NASTY,
    "فنادق في شنغهاي",
    "上海 酒店 🏨",
]
QUERY = " ".join(TITLES[7].split()[:2])


@pytest.fixture(scope="module")
def log():
    builder = ClickLogBuilder()
    for place in range(40):
        builder.add(" ".join(TITLES[place].split()[1:]), TITLES[place], place + 1)
    builder.add(NASTY, NASTY)
    return builder.build()


@pytest.fixture(scope="module")
def index(log):
    model = made_up_model(("lstm", {}), TITLES[:61], dtype=np.float32)
    recipe = Recipe({"cosine": 1.0, "memory": 0.5, "bm25": 0.3, "clicked_bm25": -0.1})
    ranker = HybridRanker(model, recipe, ClickedQueries.of(log))
    made = Index.build(ranker, TITLES, [f"t{k}" for k in range(len(TITLES))])
    made.confidence = Confidence(-3.0, 5.0, 100, 0.1, 0.2)
    return made


@pytest.fixture(scope="module")
def app(index, log):
    return create_app(index, log, name=f"shop {NASTY}")


@pytest.fixture(scope="module")
def address(app):
    with running(app) as port:
        yield f"http://127.0.0.1:{port}/"


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@contextlib.contextmanager
def opened_with_errors(browser, address):
    """As `opened`, for pages that are to report failed requests."""
    context = browser.new_context()
    try:
        page = context.new_page()
        thrown = []
        page.on("pageerror", lambda error: thrown.append(str(error)))
        page.goto(address)
        watch(page)
        yield page
        assert not thrown
    finally:
        context.close()


def titles_of(page):
    return [one.text_content() for one in page.locator(".title").all()]


def watch(page):
    """Let the page note to which query it has shown an answer, for `wait_for`."""
    page.evaluate("""() => {
      const search = engine.search;
      engine.search = async (query, ...others) => {
        const found = await search(query, ...others);
        setTimeout(() => { globalThis.answered = query; });  // after the page has shown it
        return found;
      };
    }""")


def wait_for(page, query):
    """Wait until the page shows what the server has answered to ``query``."""
    wait(lambda: page.evaluate("() => globalThis.answered") == query)


def wide(page):
    """Pixels by which the page is wider than the window."""
    return page.evaluate(
        "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )


def test_typing_explaining_and_gates(browser, address, index):
    with opened(browser, address) as page:
        watch(page)
        assert "63 titles" in page.text_content("#about")
        page.locator("#query").press_sequentially(QUERY)
        wait_for(page, QUERY)
        hits = index.search(QUERY, 10)
        assert titles_of(page) == [hit.title for hit in hits]
        # Arrows and Enter explain, Escape goes back.
        page.keyboard.press("ArrowDown")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_selector("#panel-1 table.log")
        panel = page.text_content("#panel-1")
        assert all(word in panel for word in hits[1].title.split()) and "BM25" in panel
        assert f"Score {hits[1].score:.3f}:" in panel
        assert page.locator("#panel-1 table.log tbody tr").count() == 5
        page.get_by_role("button", name="Show the gates").press("Enter")
        page.wait_for_selector("#gates canvas")
        page.keyboard.press("Escape")
        page.wait_for_selector("#panel-1", state="hidden")


@pytest.mark.slow
def test_markup_stays_text(browser, address):
    with opened(browser, address) as page:
        watch(page)
        page.select_option("#count", "100")
        page.fill("#query", NASTY)
        wait_for(page, NASTY)
        place = titles_of(page).index(NASTY)
        page.locator(".hit").nth(place).click()
        page.wait_for_selector(f"#panel-{place} table.log")
        assert NASTY in page.text_content(f"#panel-{place} table.log")
        assert page.locator("main img, main b").count() == 0
        assert page.text_content("#name") == f"shop {NASTY}" and "broken" not in page.title()[:6]


def problem_of(page, part):
    """Wait until the page tells of a problem that ``part`` is in the description of."""
    page.locator("#problem").filter(has_text=part).wait_for()


@pytest.mark.slow
def test_a_server_that_refuses_or_is_gone_is_named(browser, app):
    with running(app) as port, opened_with_errors(browser, f"http://127.0.0.1:{port}/") as page:
        page.evaluate("document.getElementById('query').removeAttribute('maxlength')")
        page.fill("#query", "a" * 2001)
        problem_of(page, "failed: q has 2,001 characters; give a text of at most 2,000")
        page.fill("#query", QUERY)
        wait_for(page, QUERY)
        assert page.locator("#problem").is_hidden()
        page.route("**/search?*", lambda route: route.abort())  # as if it had ended
        page.fill("#query", "another")
        problem_of(page, "failed: the server cannot be reached; is it running?")
        page.unroute("**/search?*")
        page.get_by_role("button", name="Try again").click()
        wait_for(page, "another")


@pytest.mark.slow
def test_a_server_that_ends_while_the_page_is_open(browser, app):
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(running(app))
        with opened_with_errors(browser, f"http://127.0.0.1:{port}/") as page:
            page.fill("#query", QUERY)
            wait_for(page, QUERY)
            stack.close()
            page.locator(".hit").first.click()
            page.wait_for_selector("#panel-0 .problem")
            told = "This cannot be explained: the server cannot be reached; is it running?"
            assert page.text_content("#panel-0 .problem") == told
            page.fill("#query", "another")
            problem_of(page, "the server cannot be reached")
            with running(app, port=port):
                page.get_by_role("button", name="Try again").click()
                wait_for(page, "another")


@pytest.mark.slow
def test_a_slow_server(browser, address, index, monkeypatch):
    search = Index.search

    def slow(self, texts, *arguments, **more):
        if texts[0] != QUERY:
            time.sleep(0.8)
        return search(self, texts, *arguments, **more)

    monkeypatch.setattr(Index, "search", slow)
    with opened(browser, address) as page:
        watch(page)
        page.fill("#query", "slow")
        page.wait_for_selector("#results.old", state="attached")
        page.fill("#query", QUERY)  # the answer to the first query comes later, and is dropped
        wait_for(page, QUERY)
        time.sleep(1.2)
        assert titles_of(page) == [hit.title for hit in search(index, QUERY, 10)]


def fulfil(answer, route):
    route.fulfill(**answer)


@pytest.mark.slow
def test_strange_answers_and_none(browser, address):
    with opened_with_errors(browser, address) as page:
        for query, answer, told in (
            ("a", {"status": 502, "body": "<h1>Bad</h1>"}, "the server answered with status 502"),
            ("b", {"status": 503, "body": "null"}, "the server answered with status 503"),
            ("c", {"status": 200, "body": "{}x"}, "the server answered with status 200"),
            ("d", {"status": 503, "body": '{"error": "try <b>later</b>"}'}, "try <b>later</b>"),
        ):
            page.route("**/search?*", partial(fulfil, answer))
            page.fill("#query", query)
            problem_of(page, told)
            page.unroute("**/search?*")
        page.clock.install()
        page.route("**/search?*", lambda route: None)  # never answered
        page.fill("#query", "e")
        page.clock.run_for(1000)
        assert page.locator("#problem").is_hidden()
        page.clock.run_for(30_000)
        problem_of(page, "the server has not answered for 30 seconds")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_it_fits_every_window(browser, address, width, scheme, tmp_path):
    shape = {"viewport": {"width": width, "height": 800}, "color_scheme": scheme}
    with opened(browser, address, **shape) as page:
        watch(page)
        for query in (QUERY, NASTY, "فنادق"):
            page.fill("#query", query)
            wait_for(page, query)
            page.locator(".hit").first.click()
            page.wait_for_selector("#panel-0 .effects")
            page.get_by_role("button", name="Show the gates").click()
            page.wait_for_selector("#gates canvas")
            assert wide(page) <= 0, query
        page.fill("#query", "supercalifragilistic" * 8)  # nothing is found
        wait_for(page, "supercalifragilistic" * 8)
        assert page.locator(".hit").count() == 0 and wide(page) <= 0
        ground = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        light = sum(map(int, re.findall(r"\d+", ground)[:3])) > 3 * 128
        assert light == (scheme == "light")


def test_settled_searches_and_opened_results_are_recorded(browser, index, tmp_path):
    record = SearchRecord(tmp_path / "searches.sqlite")
    served = running(create_app(index, record=record))
    with served as port, opened(browser, f"http://127.0.0.1:{port}/") as page:
        page.locator("#query").type(QUERY, delay=100)  # slower than a search begins
        page.wait_for_selector(".hit")
        assert insights(record.path).searches == 0
        page.keyboard.press("Enter")
        wait(lambda: insights(record.path).searches == 1)
        for _ in range(3):  # open, close, open
            page.locator(".hit").nth(1).click()
        wait(lambda: insights(record.path).clicked == 1)
        second = page.locator(".title").nth(1).inner_text()
        page.locator("#query").fill("")
        page.locator("#query").type(TITLES[9], delay=1)
        page.locator(".title").first.get_by_text(TITLES[9], exact=True).wait_for()
        page.locator(".title").first.click()  # sooner than the search is settled
        wait(lambda: insights(record.path).searches == 2)
        wait(lambda: insights(record.path).clicked == 1)
    clicks = [row[:2] for row in record_rows(record.path, all_shown=False)]
    assert clicks == [(QUERY, second), (TITLES[9], TITLES[9])]


def wait(is_true, seconds=20):
    end = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)
