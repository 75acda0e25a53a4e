"""Headless Chromium for tests: pages are opened, typed into and looked at as a user would."""

import contextlib
import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium or google-chrome on the PATH to open the page with"
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
    page = context.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    try:
        page.goto(address)
        yield page
        assert not said
    finally:
        context.close()
