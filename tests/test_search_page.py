"""The search page in a real browser, with an engine whose answers are fixed."""

import re
from itertools import pairwise

import pytest
from browsers import chromium, needs_chromium, opened

from sentemb.bridges.page.search_page import search_page
from sentemb.system.html_pages import resource

pytestmark = needs_chromium

MARKUP = "</script><img src=x onerror=alert(1)> & <b>hotels</b> in Paris"
ARABIC = "فنادق رخيصة في باريس"
LONG = "Pneumono" * 30
ENGINE = """
const TITLES = [["t1", MARKUP], ["t2", ARABIC], ["t3", LONG], ["t4", "Paris on a budget"]];
const explained = (text) => ({
  text,
  words: text.split(" ").map((word, k) => ({ word, effect: (k % 2 ? -0.1 : 0.3) / (k + 1) })),
  unknown: text.split(" ").filter((word) => word.startsWith("q")),
});
const rows = (text, shift) => text.split(" ").map((_, t) =>
  Array.from({ length: 7 }, (_, k) => 0.5 + 0.4 * Math.sin(shift + t + k)));
const read = (text) => ({ words: text.split(" "), gates: Object.fromEntries(
  ["input", "output", "cell", "y"].map((name, k) => [name, rows(text, k)])) });
const titleOf = (id) => TITLES.find(([own]) => own === id)[1];
const partsOf = (j) => {
  const values = [0.9 - 0.1 * j, 0.8, Math.max(0, 12 - 6 * j), Math.max(0, 5 - 5 * j)];
  const parts = Object.fromEntries(engine.facts.parts.map(({ part, weight }, k) => [
    part, { value: values[k], added: weight * values[k] }]));
  return [parts, Object.values(parts).reduce((sum, { added }) => sum + added, 0)];
};
globalThis.asked = [];
globalThis.engine = {
  facts: { name: "Hotels <i>&amp;</i>", titles: 12345, model: "lstm", parts: [
    { part: "cosine", name: "cosine", weight: 1 }, { part: "memory", name: "memory", weight: 0.5 },
    { part: "bm25", name: "BM25", weight: 0.02 },
    { part: "clicked_bm25", name: "BM25 of clicked queries", weight: -0.02 },
    ], fields: {}, facets: [], calibrated: true, evidence: true, gates: true },
  async search(query, k) {
    asked.push(`${query} ${k}`);
    if (query.startsWith("slow")) await new Promise((done) => setTimeout(done, 300));
    if (query.startsWith("fail")) throw new Error("the server is busy; try again");
    const unknown = query.match(/\\bq\\w+/g) || [];
    if (query.startsWith("none")) return { query, unknown, hits: [] };
    const hits = TITLES.map(([id, title], j) => {
      const [parts, score] = partsOf(j);
      return { id, title, marks: j ? [] : [[0, 1]], parts, score, confidence: j ? null : 0.731 };
    });
    hits[3].title = query;
    return { query, unknown, hits };
  },
  async explain(query, id) {
    if (query.startsWith("broken")) throw new Error("a text without words");
    const clicked = [{ title: MARKUP, clicks: 12 }, { title: "Rooms", clicks: 1 }];
    const [parts, score] = partsOf(TITLES.findIndex(([own]) => own === id));
    const more = { memory: { nearest: { text: MARKUP, value: 0.8, is_clicked: id === "t1" } },
      bm25: { words: { cheap: 8, hotels: 4 } } };
    const shares = engine.facts.parts.map(({ part, weight }) => (
      { part, weight, ...parts[part], ...more[part] }));
    return { score: 0.9, ranker: { score, parts: shares },
      query: { ...explained(query), never_in_log: ["quux"] },
      title: explained(titleOf(id)), nearest_queries: [{ query: MARKUP, score: 0.98, clicked }] };
  },
  async gates(query, id) {
    return { query: read(query), title: read(titleOf(id)) };
  },
};
"""


def javascript(text):
    return '"' + text.replace("<", "\\u003c") + '"'


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    texts = {"MARKUP": MARKUP, "ARABIC": ARABIC, "LONG": LONG}
    names = "".join(f"const {name} = {javascript(text)};\n" for name, text in texts.items())
    path = tmp_path_factory.mktemp("page") / "page.html"
    path.write_text(search_page("Hotels", f"(() => {{{names}{ENGINE}}})();"), "utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def tab(browser, address):
    """One tab for all tests: another takes half a second."""
    with opened(browser, address) as page:
        yield page


@pytest.fixture
def page(tab, address):
    """The page, newly opened in a wide window with light colours."""
    tab.set_viewport_size({"width": 1280, "height": 800})
    tab.emulate_media(color_scheme="light")
    tab.goto("about:blank")
    tab.goto(address)
    tab.locator("#query:focus").wait_for()  # or letters could be lost
    return tab


def search(page, query):
    page.fill("#query", query)
    page.locator(".title").get_by_text(query, exact=True).wait_for()


def explain(page, number=0):
    page.locator(".hit").nth(number).click()
    page.locator(f"#panel-{number} .effects").first.wait_for()


def show_gates(page):
    page.get_by_text("Show the gates").click()
    page.locator(".maps canvas").first.wait_for()


def focused(page):
    return page.evaluate("document.activeElement.id")


def test_results_come_as_one_types(page):
    page.keyboard.type("cheap hotels")
    page.locator(".title", has_text="cheap hotels").wait_for()
    assert page.locator(".hit").count() == 4
    # A result is what a shop shows; what adds up to its score is behind "why?".
    texts = page.locator(".result").all_inner_texts()
    assert texts[3].split() == ["cheap", "hotels", "why?"]
    assert not any(number in " ".join(texts) for number in ("1.440", "0.73", "cosine"))
    status = page.locator("#status").inner_text()
    assert re.fullmatch(r"4 of 12,345 titles · (under 1|\d+) ms", status)
    # Typing quickly asks once, not for every letter.
    assert page.evaluate("asked.length") < 12
    assert page.evaluate("asked.at(-1)") == "cheap hotels 10"


def test_texts_with_markup_stay_texts(page):
    search(page, "<b>q</b>")
    assert page.locator("h1").inner_text() == "Hotels <i>&amp;</i>"
    explain(page)
    show_gates(page)
    assert page.locator(".title").first.inner_text() == MARKUP
    assert page.locator("main img, main b, main i").count() == 0
    assert page.locator("td bdi", has_text=MARKUP).count() == 3


def test_an_older_answer_never_replaces_a_newer_one(page):
    page.fill("#query", "slow one")
    page.keyboard.press("Enter")
    page.fill("#query", "quick")
    page.keyboard.press("Enter")
    page.locator(".title", has_text="quick").wait_for()
    page.wait_for_timeout(400)
    assert page.locator(".title").nth(3).inner_text() == "quick"


def test_all_can_be_done_with_keys(page):
    search(page, "cheap hotels")
    assert focused(page) == "query"
    page.keyboard.press("ArrowDown")
    assert focused(page) == "hit-0"
    for key, place in (("ArrowDown", 1), ("End", 3), ("ArrowDown", 3), ("ArrowUp", 2)):
        page.keyboard.press(key)
        assert focused(page) == f"hit-{place}"
    page.keyboard.press("Enter")
    hit = page.locator("#hit-2")
    page.locator("#panel-2 .effects").first.wait_for()
    assert hit.get_attribute("aria-expanded") == "true"
    assert page.locator("#panel-2").get_attribute("aria-labelledby") == "title-2"
    page.keyboard.press("Escape")
    assert hit.get_attribute("aria-expanded") == "false"
    assert page.locator(".panel:visible").count() == 0
    assert focused(page) == "hit-2"
    page.keyboard.press("Escape")
    assert focused(page) == "query"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "query"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("/")
    assert focused(page) == "query"
    assert page.input_value("#query") == "cheap hotels"
    # A slash in the box is a letter.
    page.keyboard.press("End")
    page.keyboard.type(" 50/50")
    assert page.input_value("#query") == "cheap hotels 50/50"


def test_an_explanation_names_effects_and_unknown_words(page):
    search(page, "cheap qua hotels")
    assert page.locator("#remark").inner_text() == "The model does not know qua."
    page.locator(".hit").first.click()
    panel = page.locator("#panel-0")
    panel.locator(".effects").first.wait_for()
    words = panel.locator(".effects").first.locator("li")
    assert [text.split() for text in words.all_inner_texts()] == [
        ["cheap", "+0.300"],
        ["qua", "−0.050"],
        ["hotels", "+0.100"],
    ]
    colours = words.evaluate_all("all => all.map(one => getComputedStyle(one).backgroundColor)")
    assert [colour.startswith("rgba(0, 114, 178") for colour in colours] == [True, False, True]
    text = panel.inner_text()
    assert "Score 1.440: the sum of what its parts add." in text
    rows = panel.locator(".shares tbody tr").all_inner_texts()
    assert [row.split("\t") for row in rows] == [
        ["cosine", "+0.900", "1 × 0.900", ""],
        ["memory", "+0.400", "0.5 × 0.800", f"clicked for {MARKUP}"],
        ["BM25", "+0.240", "0.02 × 12.000", "cheap +0.160, hotels +0.080"],
        ["BM25 of clicked queries", "−0.100", "−0.02 × 5.000", ""],
    ]
    assert "the score minus the score without the word" in text
    assert "For 73 % of the queries with such a score" in text
    assert "The model knows nothing of qua." in text
    assert "In no query of the log: quux." in text
    assert "Rooms" in text
    assert "× 12" in text
    # One explanation at a time.
    page.locator(".hit").nth(1).click()
    page.locator("#panel-1 .effects").first.wait_for()
    assert "the title itself" in page.locator("#panel-1 .shares").inner_text()
    assert page.locator(".panel:visible").count() == 1


def test_gates_are_drawn_on_demand(page):
    search(page, "cheap hotels")
    page.locator(".hit").first.click()
    assert page.locator("canvas").count() == 0
    show_gates(page)
    heads = page.locator(".gates").first.locator("thead th").all_inner_texts()
    assert heads == ["Query", "input", "output", "cell", "y"]
    mean = page.locator(".gates").first.locator("tbody td").first.inner_text()
    assert mean == page.evaluate(
        """async () => {
          const [row] = (await engine.gates("cheap hotels", "t1")).query.gates.input;
          return (row.reduce((a, b) => a + b) / row.length).toFixed(2);
        }"""
    )
    pixels = "canvas => [...canvas.getContext('2d').getImageData(3, 3, 1, 1).data]"
    canvas = page.locator(".maps canvas").first
    before = canvas.evaluate(pixels)
    page.locator(".maps select").select_option("y")
    assert canvas.evaluate(pixels) != before
    page.get_by_text("Hide the gates").click()
    assert page.locator("canvas:visible").count() == 0


def test_the_address_leads_back(page, address):
    page.goto("about:blank")
    page.goto(f"{address}#q=cheap+hotels&k=20&open=t2")
    page.locator("#panel-1 .effects").first.wait_for()
    assert page.input_value("#query") == "cheap hotels"
    assert page.evaluate("asked") == ["cheap hotels 20"]
    assert page.locator("#count").input_value() == "20"
    assert page.url.endswith("#q=cheap+hotels&k=20&open=t2")
    search(page, "budget")
    assert page.title() == "budget – Hotels <i>&amp;</i>"
    assert page.url.endswith("#q=budget&k=20")
    page.select_option("#count", "50")
    assert page.url.endswith("#q=budget&k=50")
    page.go_back()
    page.locator("#panel-1 .effects").first.wait_for()
    assert page.input_value("#query") == "cheap hotels"
    assert page.title() == "cheap hotels – Hotels <i>&amp;</i>"
    page.go_forward()
    page.locator(".title", has_text="budget").first.wait_for()
    assert page.locator("#count").input_value() == "50"
    explain(page, 1)
    assert page.url.endswith("#q=budget&k=50&open=t2")
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: url.endswith("#q=budget&k=50"))


def test_what_cannot_be_found_is_said(page):
    page.keyboard.type("none at all")
    page.locator("#status", has_text="Nothing found.").wait_for()
    assert not page.locator("#remark").is_visible()
    page.fill("#query", "qua (qux)")
    page.locator("#remark", has_text="none of the words of this query").wait_for()
    page.fill("#query", "   ")
    page.locator("#status", has_text="Type to search").wait_for()
    assert page.locator(".hit").count() == 0
    page.fill("#query", "fail")
    page.get_by_text("The search failed: the server is busy; try again").wait_for()
    assert page.locator(".hit").count() == 0
    page.locator("#again").click()
    page.wait_for_timeout(50)
    assert page.evaluate("asked.filter(one => one === 'fail 10').length") == 2
    page.fill("#query", "broken")
    page.locator(".hit").first.click()
    page.get_by_text("This cannot be explained: a text without words").wait_for()
    assert not page.locator("#problem").is_visible()


@pytest.mark.parametrize("width", [1280, 375])
def test_nothing_is_wider_than_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 800})
    search(page, "cheap hotels")
    explain(page, 2)
    show_gates(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    directions = page.locator(".title").evaluate_all(
        "all => all.map(one => getComputedStyle(one).direction)"
    )
    assert directions[:2] == ["ltr", "rtl"]


def luminance(colour):
    channels = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_in_both_colour_schemes(page, scheme):
    page.emulate_media(color_scheme=scheme)
    search(page, "cheap qua")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(ground) > 0.5) == (scheme == "light")
    explain(page)
    show_gates(page)
    # Colours of every element with a text of its own, and of what is painted under it.
    painted = page.evaluate("""() => {
      const pairs = [];
      for (const one of document.querySelectorAll("body *")) {
        const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
        if (!own || !one.checkVisibility() || one.closest("canvas, script")) continue;
        const under = [];
        const style = getComputedStyle;
        for (let up = one; up; up = up.parentElement) under.push(style(up).backgroundColor);
        pairs.push([one.textContent, style(one).color, under]);
      }
      return pairs;
    }""")
    assert len(painted) > 60
    for text, colour, under in painted:
        brighter, darker = sorted((luminance(colour), luminance(blended(under))))[::-1]
        assert (brighter + 0.05) / (darker + 0.05) >= 4.5, (text, colour, under)


def blended(layers):
    """The colour of translucent layers, the topmost first."""
    red = green = blue = 255.0
    for layer in reversed(layers):
        r, g, b, *alpha = map(float, re.findall(r"[\d.]+", layer))
        share = alpha[0] if alpha else 1.0
        red, green, blue = (
            share * new + (1 - share) * old for new, old in ((r, red), (g, green), (b, blue))
        )
    return f"rgb({round(red)}, {round(green)}, {round(blue)})"


def test_nothing_is_sent_or_loaded(page, address):
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    page.reload()
    search(page, "cheap hotels")
    explain(page)
    assert requests == [address]
    assert page.evaluate("performance.getEntriesByType('resource').length") == 0


def test_the_policy_refuses_what_a_script_might_try(browser, address):
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    refused = page.evaluate("""async () => {
      const script = document.createElement("script");
      script.textContent = "globalThis.ran = true";
      document.body.append(script);
      const failed = await fetch("https://example.org/").then(() => false, () => true);
      return [failed, globalThis.ran === undefined];
    }""")
    assert refused == [True, True]
    context.close()


def test_headings_labels_and_live_regions(page):
    search(page, "cheap hotels")
    explain(page)
    levels = page.locator("h1, h2, h3").evaluate_all("all => all.map(one => +one.tagName[1])")
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.get_by_role("combobox", name="Search the titles").count() == 1
    assert page.get_by_role("combobox", name="Results").count() == 1
    assert page.get_by_role("list", name="Results").get_by_role("button").count() == 5
    assert page.locator("#status").get_attribute("role") == "status"
    ids = page.locator("[id]").evaluate_all("all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    names = "aria-controls", "aria-labelledby", "aria-describedby"
    for name in names:
        for element in page.locator(f"[{name}]").all():
            assert element.get_attribute(name) in ids


def test_a_server_may_be_asked_and_nobody_else():
    alone, served = (search_page("x", "engine", connects=connects) for connects in (False, True))
    assert "connect-src 'none'" in alone
    assert "connect-src 'self'" in served
    assert "<title>&lt;b&gt;</title>" in search_page("<b>", "engine")


def test_numbers_have_a_minus_sign_and_a_rounded_zero_has_none(browser):
    functions = resource("sentemb.system", "elements.js")
    asked = "[fixed(-0.0001, 3), fixed(-1.5, 1), signed(0.0001), signed(0.25), signed(-2, 0)]"
    with opened(browser, "about:blank") as tab:
        found = tab.evaluate(f"() => {{ {functions} return {asked}; }}")
    assert found == ["0.000", "−1.5", "0.000", "+0.250", "−2"]
