"""The page of `sentemb report` in a real browser: no errors, keys, dark mode, a phone's width."""

import html
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from helpers import made_up_pair_model
from matplotlib.image import imread

from sentemb.analysis.report.page import collect, page
from sentemb.analysis.report.pairs import Pair
from sentemb.comparison.difference import difference
from sentemb.comparison.difference_page import difference_page
from sentemb.data.click_log import ClickLogBuilder

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium or google-chrome on the PATH to open the page with"
)

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
    "--v=0",
]
# For scripts that tests add to the page.
HELP = """
    const answer = (value) => parent.postMessage(value, "*");
    const press = (element, key) => element.dispatchEvent(
      new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
"""
DARK = "--blink-settings=preferredColorScheme=0"
NASTY = "</script><img src=x onerror=alert(1)> cheap hotels"
PAIRS = [
    Pair("hotels in shanghai", "Shanghai hotels and resorts", 3, 1, 12),
    Pair("hotels", " ".join(f"word{k}" for k in range(30))),
    Pair("فنادق في شنغهاي", "上海 酒店 🏨 预订"),
    Pair("internationalisation" * 4, NASTY),
    Pair("bath tub"),
]
QUERIES = [pair.query for pair in PAIRS]


class Browser:
    """Opens pages of one folder, each time with a fresh profile."""

    def __init__(self, folder):
        self.folder = folder

    def run(self, path, *flags, place=""):
        """What Chromium printed, after a check that the page's console is silent."""
        profile = self.folder / f"profile{len(list(self.folder.glob('profile*')))}"
        result = subprocess.run(
            [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags, f"{path.as_uri()}{place}"],
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert result.returncode == 0, result.stderr
        said = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
        assert not said
        return result.stdout

    def elements(self, path, place=""):
        """The page's HTML after its script has run, without script and style sheet."""
        dom = self.run(path, "--dump-dom", place=place)
        return re.sub(r"<(script|style)\b.*?</\1>", "", dom, flags=re.DOTALL)

    def screenshot(self, path, name, width, height, *flags, place=""):
        """The picture as (height, width, 3) from 0 to 1."""
        target = self.folder / f"{name}.png"
        flags = [f"--screenshot={target}", f"--window-size={width},{height}", *flags]
        self.run(path, *flags, place=place)
        return imread(target)[..., :3]

    def answers(self, path, script, *, width=1000, place=""):
        """What ``script``, added to a page without its policy, hands to ``answer(value)``.

        The page is in a frame, which may be as narrow as a phone; a window may not.
        """
        text = path.read_text()
        open_page = re.sub(r"<meta http-equiv[^>]*>", "", text)
        assert open_page != text
        inner, outer = self.folder / "inner.html", self.folder / "outer.html"
        inner.write_text(open_page.replace("</body>", f"<script>{HELP}{script}</script></body>"))
        outer.write_text(
            "<!doctype html><pre></pre><script>addEventListener('message', (event) => {"
            "document.querySelector('pre').textContent = JSON.stringify(event.data); });</script>"
            f'<iframe src="{inner.name}{html.escape(place)}" width="{width}" height="800"></iframe>'
        )
        dom = self.run(outer, "--dump-dom", "--virtual-time-budget=2000")
        return json.loads(html.unescape(re.search(r"<pre>(.*?)</pre>", dom, re.DOTALL)[1]))


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    return Browser(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def report(make_model, browser):
    """A function that writes the page of a model and returns its path."""

    def write(name="lstm", pairs=PAIRS, **settings):
        model = make_model(name, **settings)
        model.history = [
            {"epoch": 1, "loss": 4},
            {"epoch": 2, "loss": 2, "dev": {"ndcg@1": 0.5}},
            {"epoch": 3, "loss": 1, "dev": {"ndcg@1": 0.75, "ndcg@10": 0.8}},
        ]
        path = browser.folder / f"{name}{len(pairs)}{settings.get('cells', '')}.html"
        path.write_text(page(collect(model, "tiny", pairs, QUERIES)))
        return path

    return write


@pytest.mark.parametrize(
    ("name", "settings"),
    [("rnn", {}), ("lstm", {"forget_gate": True}), ("bilstm", {}), ("lstm", {"cells": 300})],
    ids=["rnn", "lstm", "bilstm", "300 cells"],
)
def test_opens_without_a_word_on_the_console(browser, report, name, settings):
    dom = browser.elements(report(name, **settings))
    dim = settings.get("cells", 8) * (2 if name == "bilstm" else 1)
    assert dom.count('role="option"') == len(PAIRS) + dim
    assert "onerror=alert(1)&gt;" in dom
    assert "<img" not in dom


def test_the_page_of_a_pair_model(browser):
    scorer = made_up_pair_model(QUERIES, name="arc2", maps=(4, 3), max_words=9)
    scorer.history = [{"epoch": 1, "loss": 0.5, "dev": {"accuracy": 0.75}}]
    pairs = [pair for pair in PAIRS if pair.title]
    path = browser.folder / "pair.html"
    path.write_text(page(collect(scorer, "tiny", pairs, [])))
    dom = browser.elements(path, place="#pair=2")
    assert dom.count('role="option"') == len(pairs)
    assert "Accuracy on the dev set" in dom
    assert "The last 21 words of the title are not read." in dom
    cells = re.search(r'<table class="windows">.*?</table>', dom, re.DOTALL)[0]
    assert cells.count('<td title="hotels × ') == 7, "windows of 9 words"
    assert re.search(r'<section id="cells" class="towers"[^>]* hidden', dom)


def test_a_console_that_complains_is_noticed(browser):
    path = browser.folder / "broken.html"
    path.write_text("<!doctype html><script>nonsense()</script>")
    with pytest.raises(AssertionError, match="CONSOLE"):
        browser.elements(path)


@pytest.mark.parametrize("number", range(1, len(PAIRS) + 1))
def test_every_pair_opens_by_its_address(browser, report, number):
    dom = browser.elements(report(), place=f"#pair={number}&cell=3&gate=all&order=share")
    heading = re.search(r'<h3 id="pair-heading">(.*?)</h3>', dom, re.DOTALL)[1]
    shown = re.sub(r"<[^>]*>", "", heading)
    assert PAIRS[number - 1].query in shown
    assert re.search(r'<h3 id="cell-heading">Cell 3</h3>', dom)
    assert dom.count('role="application"') == 4


@pytest.mark.parametrize("place", ["#pair=99&cell=-1&gate=x", "#pair=&cell=1e999", "#cells", "#%"])
def test_an_address_without_sense_opens_the_first_pair(browser, report, place):
    script = "answer(document.querySelector('#pair-list [aria-selected=true]').id)"
    assert browser.answers(report(), script, place=place) == "pair-list-0"


def test_keys_move_through_pairs_cells_and_maps(browser, report):
    script = """
        const list = document.getElementById("pair-list");
        const cells = document.getElementById("cell-list");
        const heading = (id) => document.getElementById(id).innerText;
        const said = {};
        press(list, "ArrowDown");
        said.second = location.hash;
        press(list, "End");
        said.last = location.hash;
        press(list, "ArrowDown");
        said.beyond = location.hash;
        press(list, "Home");
        press(cells, "Home");
        press(cells, "ArrowRight");
        said.cell = heading("cell-heading");
        press(cells, "ArrowLeft");
        press(cells, "ArrowLeft");
        said.before = heading("cell-heading");
        const map = () => document.querySelector('[role="application"]');
        press(map(), "End");
        press(map(), "ArrowUp");
        said.map = document.getElementById("readout").innerText;
        press(map(), "PageUp");
        said.paged = heading("cell-heading");
        document.querySelector('input[value="c"]').click();
        said.gate = document.querySelector("figure.heat:last-of-type b").innerText;
        said.readout = document.getElementById("readout").innerText;
        answer(said);
    """
    said = browser.answers(report(), script, place="#cell=0")
    assert said["second"].startswith("#pair=2&")
    assert said["last"].startswith(f"#pair={len(PAIRS)}&")
    assert said["beyond"] == said["last"]
    assert said["cell"] == "Cell 1"
    assert said["before"] == "Cell 0"
    # From the query's last word, in the last cell, one word up.
    assert said["map"].startswith("Cell 7 after “in” (query): output y ")
    assert said["paged"] == "Cell 0"
    assert said["gate"] == "Cell state c"
    assert "cell state c" in said["readout"]


def test_all_that_is_operated_can_be_reached_by_tab_and_has_a_name(browser, report):
    script = """
        const operated = document.querySelectorAll(
          'a[href], input, summary, [role="listbox"], [role="application"]');
        answer([...operated].filter((element) => element.tabIndex < 0 || !(
          element.innerText?.trim() || element.getAttribute("aria-label") ||
          element.getAttribute("aria-labelledby") || element.labels?.[0]?.innerText
        )).map((element) => element.outerHTML));
    """
    assert browser.answers(report(), script) == []


def test_a_click_on_a_map_chooses_cell_and_word(browser, report):
    script = """
        const map = document.querySelector('[role="application"]');
        const box = map.getBoundingClientRect();
        map.dispatchEvent(new MouseEvent("click", {
          clientX: box.left + box.width * 5.5 / 8, clientY: box.top + 10, bubbles: true}));
        answer(document.getElementById("readout").innerText);
    """
    assert browser.answers(report(), script).startswith("Cell 5 after “hotels” (query)")


@pytest.mark.parametrize("width", [320, 390, 800, 1280])
def test_nothing_is_wider_than_the_window(browser, report, width):
    script = """
        const list = document.getElementById("pair-list");
        for (const box of document.querySelectorAll("details")) box.open = true;
        press(list, "Home");
        answer([...list.children].map(() => {
          const widths = [innerWidth, document.documentElement.scrollWidth];
          press(list, "ArrowDown");
          return widths;
        }));
    """
    measured = browser.answers(report(cells=300), script, width=width, place="#gate=all")
    assert measured == [[width, width]] * len(PAIRS)


def test_dark_and_light_follow_the_system(browser, report):
    light = browser.screenshot(report(), "light", 1280, 2400)
    dark = browser.screenshot(report(), "dark", 1280, 2400, DARK)
    assert light[5, 5].min() > 0.9
    assert dark[5, 5].max() < 0.2
    # Both have drawn something on their grounds, the maps included.
    for picture in (light, dark):
        different = np.abs(picture - picture[5, 5]).max(axis=2) > 0.1
        assert different.mean() > 0.03


def test_a_phone_shows_one_column(browser, report):
    picture = browser.screenshot(report(), "phone", 390, 4000)
    assert picture.shape == (4000, 390, 3)
    assert (np.abs(picture - picture[5, 5]).max(axis=2) > 0.1).any(axis=1).mean() > 0.3


class Fixed:
    """A retriever that finds the titles in an order of its own."""

    def __init__(self, order):
        self.order = np.array(order)

    def find(self, queries, k):
        places = np.tile(self.order[:k], (len(queries), 1))
        return places, np.full(places.shape, 0.5)


def test_the_page_of_diff(browser):
    titles = [NASTY, "internationalisation" * 4, *QUERIES[:3]]
    builder = ClickLogBuilder()
    builder.add(QUERIES[2], NASTY)
    found = difference(
        Fixed([0, 1, 2]), Fixed([4, 3, 0]), QUERIES, titles, builder.build(), 3
    )  # fmt: skip
    path = browser.folder / "diff.html"
    path.write_text(difference_page(found, ("old", NASTY), 5))
    dom = browser.elements(path)
    assert dom.count("<section") == 5
    assert "onerror=alert(1)&gt;" in dom and "<img" not in dom
    script = "answer([innerWidth, document.documentElement.scrollWidth])"
    assert browser.answers(path, script, width=375) == [375, 375]
    dark = browser.screenshot(path, "diff", 800, 1200, DARK)
    assert dark[5, 5].max() < 0.2
    assert (np.abs(dark - dark[5, 5]).max(axis=2) > 0.1).mean() > 0.02
