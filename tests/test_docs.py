"""The documents say what the program does."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from sentemb.cli import COMMANDS, main

DOCS = Path(__file__).parents[1] / "docs"


def _maker(name):
    """``docs/make_NAME.py`` as a module."""
    spec = importlib.util.spec_from_file_location(f"make_{name}", DOCS / f"make_{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cli", "python"])
def test_reference_is_current(name):
    written = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    assert written == _maker(name).reference(), f"docs/{name}.md is out of date; run `make docs`"


def test_the_list_of_tests_is_current():
    page = (DOCS.parent / "tests" / "README.md").read_text(encoding="utf-8")
    assert page == _maker("tests").written(page), "run `python docs/make_tests.py`"


def test_links_inside_the_python_reference_lead_somewhere():
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    headings, anchors = re.findall(r"^#+ (.+)$", text, re.M), []
    for heading in headings:
        anchor = re.sub(r"[^\w-]", "", heading.lower().replace(" ", "-"))
        count = sum(re.fullmatch(rf"{anchor}(-\d+)?", one) is not None for one in anchors)
        anchors.append(f"{anchor}-{count}" if count else anchor)
    links = re.findall(r"\]\(#([^)]+)\)", text)
    assert links and set(links) <= set(anchors)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_overview_says_what_the_command_says(name):
    command = main.get_command(click.Context(main), name)
    assert command.help.split("\n")[0].strip() == COMMANDS[name]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name):
    command = main.get_command(click.Context(main), name)
    children = command.commands.values() if isinstance(command, click.Group) else [command]
    for child in children:
        for parameter in child.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{name} {parameter.opts[0]} has no help"


@pytest.mark.slow
def test_site_has_no_broken_link():
    pytest.importorskip("sphinx", reason="the extra docs is not installed")
    pytest.importorskip("latex2mathml", reason="the extra docs is not installed")
    done = subprocess.run([sys.executable, DOCS / "make_site.py"], capture_output=True, text=True)
    assert not done.returncode, done.stderr
    page = (DOCS.parent / "build/site/docs/gradients.html").read_text("utf-8")
    assert page.count("<math") > 200 and not re.search(r'<script[^>]*src="https?:', page)
