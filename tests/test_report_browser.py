"""The page of `sentemb report` in a real browser: no errors, keys, dark mode, a phone's width."""

import contextlib
import re

import numpy as np
import pytest
from browsers import chromium, needs_chromium, visited
from helpers import made_up_pair_model
from matplotlib.image import imread

from sentemb import ClickLog
from sentemb.analysis.report.difference_page import difference_page
from sentemb.analysis.report.page_pairs import ShownPair
from sentemb.analysis.report.report_page import collect, page, triage_report
from sentemb.analysis.triage import triage
from sentemb.comparison.difference import difference

pytestmark = needs_chromium

NASTY = "</script><img src=x onerror=alert(1)> cheap hotels"
LONG = "internationalisation" * 4
PAIRS = [
    ShownPair("hotels in shanghai", "Shanghai hotels and resorts", 3, 1, 12),
    ShownPair("hotels", " ".join(f"word{k}" for k in range(30))),
    ShownPair("فنادق في شنغهاي", "上海 酒店 🏨 预订"),
    ShownPair(LONG, NASTY),
    ShownPair("bath tub"),
]
QUERIES = [pair.query for pair in PAIRS]
CLICKS = [
    ("hotels in shanghai", "shanghai hotels and resorts"),
    ("bath", NASTY),
    ("bath tub", "bath tub repair"),
    ("how to fix a bath tub that is not white", "fix a bath tub"),
    ("上海", "上海 酒店 🏨 预订", 2),
    (NASTY, LONG),
    ("notebook", "a notebook for universities"),
]
WIDE = {"width": 1000, "height": 800}
PHONE = {"width": 375, "height": 900}


@pytest.fixture(scope="module")
def tab():
    """One tab for all tests: another takes a third of a second of the processor."""
    with chromium() as browser:
        yield browser.new_page()


@contextlib.contextmanager
def opened(tab, address, viewport=WIDE, color_scheme="light"):
    """`visited` in a window of this size and with these colours."""
    tab.set_viewport_size(viewport)
    tab.emulate_media(media="screen", color_scheme=color_scheme)
    tab.goto("about:blank")  # from an address that differs behind the # only, nothing is loaded
    with visited(tab, address) as page:
        yield page


@pytest.fixture(scope="module")
def report(make_model, tmp_path_factory):
    """A function that writes the page of a model and returns its address."""
    folder = tmp_path_factory.mktemp("pages")

    def write(name="lstm", **settings):
        path = folder / f"{name}{''.join(settings)}.html"
        if not path.exists():
            path.write_text(
                page(collect(trained(make_model, name, settings), "tiny", PAIRS, QUERIES))
            )
        return path.as_uri()

    return write


@pytest.fixture(scope="module")
def ranked(make_model, tmp_path_factory):
    """The address of the page of a triage, and the triage."""
    model = trained(make_model, "lstm", {})
    log = ClickLog.from_pairs(CLICKS)
    found = triage(model, log, worst=5, top=3, log=log)
    path = tmp_path_factory.mktemp("ranked") / "page.html"
    path.write_text(page(triage_report(model, NASTY, found)))
    return path.as_uri(), found


def trained(make_model, name, settings):
    model = make_model(name, **settings)
    model.history = [
        {"epoch": 1, "loss": 4},
        {"epoch": 2, "loss": 2, "dev": {"ndcg@1": 0.5}},
        {"epoch": 3, "loss": 3, "dev": {"ndcg@1": 0.75, "ndcg@10": 0.8}},
    ]
    model.training = {"hard_negatives": 3}
    return model


def picture(shown, folder):
    """The whole page as (height, width, 3) from 0 to 1."""
    shown.screenshot(path=folder / "shown.png", full_page=True)
    return imread(folder / "shown.png")[..., :3]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("rnn", {}, marks=pytest.mark.slow),
        ("lstm", {"forget_gate": True}),
        ("bilstm", {}),
    ],
)
def test_opens_without_a_word_on_the_console(tab, report, name, settings):
    with opened(tab, report(name, **settings)) as shown:
        assert shown.locator("[role=option]").count() == len(PAIRS) + (
            16 if name == "bilstm" else 8
        )
        assert shown.locator("#pair-list").inner_text().count("onerror=alert(1)>") == 1
        assert shown.locator("img").count() == 0
        assert shown.locator("#triage").is_hidden() and shown.locator("#filters").is_hidden()


def test_a_console_that_complains_is_noticed(tab, tmp_path):
    (tmp_path / "broken.html").write_text("<!doctype html><script>nonsense()</script>")
    with pytest.raises(AssertionError), opened(tab, (tmp_path / "broken.html").as_uri()):
        pass


def test_the_page_of_a_pair_model(tab, tmp_path):
    scorer = made_up_pair_model(QUERIES, name="arc2", maps=(4, 3), max_words=9)
    scorer.history = [{"epoch": 1, "loss": 0.5, "dev": {"accuracy": 0.75}}]
    pairs = [pair for pair in PAIRS if pair.title]
    path = tmp_path / "pair.html"
    path.write_text(page(collect(scorer, "tiny", pairs, [])))
    with opened(tab, f"{path.as_uri()}#pair=2") as shown:
        assert shown.locator("[role=option]").count() == len(pairs)
        assert "Accuracy on the dev set" in shown.locator("#curves").inner_text()
        cut = "The last 21 words of the title are not read."
        assert cut in shown.locator("#words-note").text_content()
        cells = shown.locator("table.windows td[title^='hotels × ']")
        assert cells.count() == 7, "windows of 9 words"
        assert shown.locator("#cells").is_hidden()


def test_a_model_without_gates(tab, make_model, tmp_path):
    model = make_model("bag")
    path = tmp_path / "bag.html"
    path.write_text(page(collect(model, "bag", PAIRS, [])))
    with opened(tab, path.as_uri()) as shown:
        assert shown.locator("#effects tbody").count() == 2
        for hidden in ("#words-box", "#heat-box", "#no-gates", "#cells", "#windows-box"):
            assert shown.locator(hidden).is_hidden()


def test_every_pair_opens_by_its_address(tab, report):
    with opened(tab, "about:blank") as shown:
        for number, pair in enumerate(PAIRS, 1):
            shown.goto("about:blank")
            shown.goto(f"{report()}#pair={number}&cell=3&gate=all&order=share")
            assert pair.query in shown.locator("#pair-heading").inner_text()
            assert shown.locator("#cell-heading").inner_text() == "Cell 3"
            assert shown.locator("[role=application]").count() == 4


def test_an_address_without_sense_opens_the_first(tab, report, ranked):
    with opened(tab, "about:blank") as shown:
        for place in ("#pair=99&cell=-1&gate=x&query=0", "#pair=&cell=1e999", "#cells", "#%"):
            for address in (report(), ranked[0]):
                shown.goto("about:blank")
                shown.goto(address + place)
                chosen = shown.locator("#pair-list [aria-selected=true]")
                assert chosen.get_attribute("id") == "pair-list-0"


def test_keys_move_through_pairs_cells_and_maps(tab, report):
    with opened(tab, f"{report()}#cell=0") as shown:

        def place():
            return shown.evaluate("location.hash")

        def heading():
            return shown.locator("#cell-heading").inner_text()

        pairs, cells = shown.locator("#pair-list"), shown.locator("#cell-list")
        pairs.press("ArrowDown")
        assert place().startswith("#pair=2&")
        pairs.press("End")
        last = place()
        assert last.startswith(f"#pair={len(PAIRS)}&")
        pairs.press("ArrowDown")
        assert place() == last
        pairs.press("Home")
        cells.press("Home")
        cells.press("ArrowRight")
        assert heading() == "Cell 1"
        cells.press("ArrowLeft")
        cells.press("ArrowLeft")
        assert heading() == "Cell 0"
        shown.locator("[role=application]").press("End")
        shown.locator("[role=application]").press("ArrowUp")
        # From the query's last word, in the last cell, one word up.
        readout = shown.locator("#readout")
        assert readout.inner_text().startswith("Cell 7 after “in” (query): output y ")
        shown.locator("[role=application]").press("PageUp")
        assert heading() == "Cell 0"
        shown.locator("input[value=c]").click()
        assert shown.locator("figure.heat").last.locator("b").inner_text() == "Cell state c"
        assert "cell state c" in readout.inner_text()


def test_all_that_is_operated_can_be_reached_by_tab_and_has_a_name(tab, report, ranked):
    script = """
        () => [...document.querySelectorAll(
          'a[href], input, select, button, summary, [role="listbox"], [role="application"]')]
        .filter((element) => element.tabIndex < 0 || !(
          element.innerText?.trim() || element.getAttribute("aria-label") ||
          element.getAttribute("aria-labelledby") || element.labels?.[0]?.innerText ||
          element.closest("[hidden]")
        )).map((element) => element.outerHTML)
    """
    for address in (report(), ranked[0]):
        with opened(tab, address) as shown:
            assert shown.evaluate(script) == []


def test_a_click_on_a_map_chooses_cell_and_word(tab, report):
    with opened(tab, report()) as shown:
        box = shown.locator("[role=application]").bounding_box()
        at = {"x": box["width"] * 5.5 / 8, "y": 10}
        shown.locator("[role=application]").click(position=at)
        assert shown.locator("#readout").inner_text().startswith("Cell 5 after “hotels” (query)")


def test_nothing_is_wider_than_the_window(tab, report, ranked):
    for address in (f"{report(cells=300)}#gate=all", ranked[0]):
        with opened(tab, address) as shown:
            for width in (320, 375, 800, 1280):
                shown.set_viewport_size({"width": width, "height": 800})
                widths = shown.evaluate(
                    """() => {
                      for (const box of document.querySelectorAll("details")) box.open = true;
                      return [...document.getElementById("pair-list").children].map((option) => {
                        option.click();
                        return document.documentElement.scrollWidth;
                      });
                    }"""
                )
                assert set(widths) == {width}


def test_a_phone_breaks_no_usual_word(tab, ranked):
    with opened(tab, f"{ranked[0]}#query=1", viewport=PHONE) as shown:
        broken = shown.evaluate(
            """() => [...document.getElementById("pair-list").children].flatMap((option) => {
              option.click();
              document.getElementById("words-box").open = true;
              return [...document.querySelectorAll("#pair tbody bdi, #cell tbody bdi")].filter(
                (word) => !/\\s/.test(word.textContent) && word.textContent.length <= 16 &&
                  word.getClientRects().length > 1).map((word) => word.textContent);
            })"""
        )
        assert broken == []
        assert "notebook" in shown.locator("body").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_dark_and_light_follow_the_system(tab, report, ranked, scheme, tmp_path):
    for address in (report(), ranked[0]):
        with opened(tab, address, PHONE, scheme) as shown:
            seen = picture(shown, tmp_path)
        assert seen[5, 5].min() > 0.9 if scheme == "light" else seen[5, 5].max() < 0.2
        different = np.abs(seen - seen[5, 5]).max(axis=2) > 0.1
        assert different.mean() > 0.03
        assert different.any(axis=1).mean() > 0.3


class TestTriage:
    def test_a_query_whose_best_title_is_further_down(self, tab, ranked):
        address, triaged = ranked
        query = triaged.worst[1]
        with opened(tab, f"{address}#query=2") as shown:
            assert shown.locator("h1").inner_text() == NASTY
            assert shown.locator("img").count() == 0
            heading = shown.locator("#pair-heading .text").inner_text()
            assert heading == triaged.queries[query.number]
            rows = shown.locator("#ranking tbody tr:not(.gap)")
            titles = [title.title for title in (*query.titles, query.best)]
            assert rows.locator("th").all_inner_texts() == titles
            best = shown.locator("#ranking tr.best")
            assert best.locator(".mark").inner_text() == "clicked"
            assert best.locator("td").first.inner_text() == str(query.best.rank)
            assert shown.locator("#effects thead th").all_inner_texts() == [
                "Word",
                "First title",
                f"Best title, rank {query.best.rank}",
            ]
            figures = shown.locator("#figures").inner_text()
            assert f"{triaged.mean:.3f}" in figures and "7 titles" in figures
            assert "1 click for 1 query" in shown.locator("#evidence").inner_text()

    def test_a_query_with_no_known_words(self, tab, ranked):
        address, triaged = ranked
        number, query = next((n, q) for n, q in enumerate(triaged.worst) if not q.titles)
        with opened(tab, f"{address}#query={number + 1}") as shown:
            heading = shown.locator("#pair-heading .text").inner_text()
            assert heading == triaged.queries[query.number]
            option = shown.locator("#pair-list [role=option]").nth(number).inner_text().split("\n")
            assert option == [triaged.queries[query.number], "not found", "nothing found"]
            rows = shown.locator("#ranking tbody tr:not(.gap)")
            assert rows.locator("th").all_inner_texts() == [query.best.title]
            assert rows.locator("td").first.inner_text() == "not found"
            assert "best title: not found" in shown.locator("#pair-facts").inner_text()
            heads = shown.locator("#effects thead th").all_inner_texts()
            assert heads == ["Word", "Best title, not found"]
            assert shown.locator("#title-choice input").count() == 1

    def test_filters_slices_and_orders(self, tab, ranked):
        address, found = ranked
        with opened(tab, address) as shown:

            def left():
                options = shown.locator("#pair-list [role=option]:visible > :first-child")
                return options.all_inner_texts()

            everything = [found.queries[q] for q in found.order]
            assert left() == everything
            shown.locator("#filter").fill("FIX A")
            first = [title.title if title else "" for title in found.first]
            matching = [
                found.queries[q]
                for q in found.order
                if "fix a" in f"{found.queries[q]} {first[q]} {found.best[q].title}"
            ]
            assert left() == matching and 0 < len(matching) < len(everything)
            count = shown.locator("#matching").inner_text()
            assert count == f"{len(matching)} of {len(everything)} queries"
            shown.locator("#filter").fill("")
            shown.get_by_label("unknown words").check()
            unknown = [found.queries[q] for q in found.order if found.n_unknown[q]]
            assert left() == unknown and 0 < len(unknown) < len(everything)
            shown.get_by_label("unknown words").uncheck()
            shown.get_by_label("long").check()
            assert left() == ["how to fix a bath tub that is not white"]
            shown.get_by_label("long").uncheck()
            lengths = found.slices["Words in the query"]
            part = next(part for part in lengths if part.label == "1")
            button = shown.locator("#slices table").first.get_by_role(
                "button", name="1", exact=True
            )
            button.click()
            assert sorted(left()) == sorted(found.queries[q] for q in part.queries)
            assert button.get_attribute("aria-pressed") == "true"
            button.click()
            assert left() == everything
            shown.locator("#sort").select_option(label="shortest query")
            assert [len(query.split()) for query in left()] == sorted(
                len(query.split()) for query in everything
            )
            # Keys follow what is seen, in its order.
            shown.locator("#filter").fill("bath")
            seen = left()
            shown.locator("#pair-list").press("Home")
            assert shown.locator("#pair-heading .text").inner_text() == seen[0]
            shown.locator("#pair-list").press("ArrowDown")
            assert shown.locator("#pair-heading .text").inner_text() == seen[1]

    def test_the_right_and_the_wrong_title_from_inside(self, tab, ranked):
        with opened(tab, f"{ranked[0]}#query=2") as shown:
            assert shown.locator("#title-choice input").count() == 2
            first = shown.locator("#words tbody").last.text_content()
            shown.get_by_label("best title").last.check()
            assert re.search(r"query=2&pair=3&", shown.evaluate("location.hash"))
            assert shown.locator("#words tbody").last.text_content() != first
            # The gates of the query are stored once, with the first title.
            assert shown.locator("[role=application]").is_visible()
            shown.locator("#words-summary").click()
            note = shown.locator("#words-note").inner_text()
            assert "Read the table above" in note and "saturated gate" in note

    def test_a_query_that_is_not_among_the_worst(self, tab, ranked):
        address, found = ranked
        with opened(tab, f"{address}#query=6") as shown:
            text = shown.locator("#pair-heading .text").inner_text()
            assert text == found.queries[found.order[5]]
            assert "Only the worst queries" in shown.locator("#ranking-note").inner_text()
            assert shown.locator("#inside").is_hidden()

    def test_new_hard_negatives_are_marked(self, tab, ranked):
        with opened(tab, ranked[0]) as shown:
            loss = shown.locator("#curves figure").first
            assert loss.locator("circle").count() == 3
            assert loss.locator("circle:not(.hollow)").count() == 1
            assert "new hard negatives" in loss.inner_text()

    def test_it_is_printed_without_lists_and_filters(self, tab, ranked):
        with opened(tab, ranked[0]) as shown:
            shown.emulate_media(media="print")
            assert shown.locator("#filters").is_hidden()
            assert shown.locator("#ranking").is_visible()


class Fixed:
    """A retriever that finds the titles in an order of its own."""

    def __init__(self, order):
        self.order = np.array(order)

    def find(self, queries, k):
        places = np.tile(self.order[:k], (len(queries), 1))
        return places, np.full(places.shape, 0.5)


def test_the_page_of_diff(tab, tmp_path):
    titles = [NASTY, LONG, *QUERIES[:3]]
    clicks = ClickLog.from_pairs([(QUERIES[2], NASTY)])
    found = difference(Fixed([0, 1, 2]), Fixed([4, 3, 0]), QUERIES, titles, clicks, 3)
    path = tmp_path / "diff.html"
    path.write_text(difference_page(found, ("old", NASTY), 5))
    with opened(tab, path.as_uri(), PHONE, "dark") as shown:
        assert shown.locator("section").count() == 5
        assert "onerror=alert(1)>" in shown.locator("body").inner_text()
        assert shown.locator("img").count() == 0
        assert shown.evaluate("document.documentElement.scrollWidth") == 375
        dark = picture(shown, tmp_path)
    assert dark[5, 5].max() < 0.2
    assert (np.abs(dark - dark[5, 5]).max(axis=2) > 0.1).mean() > 0.02
