"""Headless Chromium for tests: pages are opened, typed into and looked at as a user would.

What the engine of a page computes can be asked of Node as well.
"""

import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium or google-chrome on the PATH to open the page with"
)
NODE = shutil.which("node")
needs_engine = pytest.mark.skipif(
    CHROMIUM is None and NODE is None, reason="neither chromium nor node runs the engine of a page"
)
# Chromium's own services would ask for hosts that are not there.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def chromium():
    """A browser of Playwright; closed at the end."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextlib.contextmanager
def opened(browser, address, **settings):
    """A page in a fresh profile; at the end its console must be silent and no script have failed.

    ``settings`` are those of ``new_context`` of Playwright: ``viewport``, ``color_scheme``, ...
    """
    context = browser.new_context(**settings)
    try:
        with visited(context.new_page(), address) as page:
            yield page
    finally:
        context.close()


@contextlib.contextmanager
def visited(tab, address):
    """A page in a tab; at the end its console must be silent and no script have failed."""
    said = []
    heard = {
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
    }
    for event, listener in heard.items():
        tab.on(event, listener)
    try:
        tab.goto(address)
        yield tab
        assert not said
    finally:
        for event, listener in heard.items():
            tab.remove_listener(event, listener)


# All that an engine needs of a browser: the texts of the elements that hold its data.
_STANDING_IN = """
globalThis.document = {
  getElementById: (id) => ({ textContent: DATA[id], remove() { delete DATA[id]; } }),
};
"""


class NodePage:
    """The engine of a page in Node, with `evaluate` of a page of Playwright.

    Parameters
    ----------
    path : Path
        The page.
    """

    def __init__(self, path: Path) -> None:
        page = path.read_text("utf-8")
        data = dict(re.findall(r'<script type="text/plain" id="(\w+)">([^<]*)</script>', page))
        engine = re.search(r"<script>(\(\(\) => \{.*?)</script>", page, re.DOTALL)[1]
        self._script = f"const DATA = {json.dumps(data)};\n{_STANDING_IN}{engine}"

    def evaluate(self, function: str, argument: str) -> str:
        """What an asynchronous function of one text returns, a text too."""
        call = f"({function})({json.dumps(argument)}).then((told) => process.stdout.write(told));"
        done = subprocess.run(
            [NODE, "-"], input=f"{self._script}{call}", capture_output=True, text=True, check=False
        )
        assert done.returncode == 0 and not done.stderr, done.stderr[-2000:]
        return done.stdout
