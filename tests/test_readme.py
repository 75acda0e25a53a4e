"""README.md and docs/ do what they say: consoles, Python and commands run, tables are current."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from helpers import assert_same_output

from sentemb.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/**/*.md"))]
}

EXTENDING = "docs/extending.md"


def _blocks(page, *languages):
    blocks = re.findall(r"^```(\S*)\n(.*?)^```", PAGES[page], re.M | re.S)
    return [text for language, text in blocks if language in languages]


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder in which `make demo` has made ``demo``."""
    folder = tmp_path_factory.mktemp("readme")
    start = ["start", "--example", "-o", f"{folder}/demo", "--quiet"]
    assert not CliRunner().invoke(main, start).exit_code
    return folder


@pytest.mark.ci
@pytest.mark.parametrize("page", [page for page in PAGES if "```console" in PAGES[page]])
def test_consoles_show_what_the_commands_print(demo, page):
    assert_same_output(PAGES[page], _module("docs/make_readme.py").filled(PAGES[page], demo))


def test_output_is_shown_in_consoles_alone():
    for page in PAGES:
        assert not re.findall(r"^\$ .*", "".join(_blocks(page, "", "sh")), re.M), page


@pytest.mark.ci
def test_python_runs(demo, monkeypatch):
    monkeypatch.chdir(demo)
    names = {}
    blocks = _blocks("README.md", "python")
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["vectors"].shape == (2, 192) and names["vectors"].dtype == "float32"
    assert names["model"].similarity(names["vectors"], names["vectors"]).shape == (2, 2)
    assert names["model"].trace("hotels in shanghai").i.shape == (3, 96)


def _commands(page):
    """The words of every command ``sentemb ...`` in the blocks of a page."""
    text = "".join(_blocks(page, "", "sh", "console"))
    for line in text.replace("\\\n", " ").splitlines():
        for part in re.findall(r"(?:^(?:\$ )?|[|;&] )sentemb (.*?)(?= [|;&]|$)", line):
            yield shlex.split(part, comments=True)


# docs/extending.md adds the models of its commands, and has a test of its own.
@pytest.mark.parametrize("page", sorted({p for p in PAGES if any(_commands(p))} - {EXTENDING}))
def test_commands_parse(page):
    for name, *arguments in _commands(page):
        context = click.Context(main, **main.context_settings)
        main.get_command(context, name).make_context(name, arguments, context)


def _module(path):
    """A script of the repository, as a module."""
    script = ROOT / path
    sys.path.insert(0, str(script.parent))
    try:
        spec = importlib.util.spec_from_file_location(script.stem, script)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(script.parent))


@pytest.mark.parametrize(
    ("page", "section"),
    [
        ("README.md", "short"),
        ("README.md", "kinds"),
        ("docs/benchmarks.md", "ranking"),
        ("docs/benchmarks.md", "catalogue"),
        ("docs/benchmarks.md", "all_titles"),
        ("docs/benchmarks.md", "speed"),
        ("docs/benchmarks.md", "index"),
    ],
)
def test_small_tables_are_those_of_the_csv(page, section):
    text = (ROOT / page).read_text(encoding="utf-8")
    written = text.split(f"<!-- {section}:begin -->")[1].split(f"<!-- {section}:end -->")[0]
    made = getattr(_module("benchmarks/charts.py"), f"{section}_table")()
    assert written.strip() == "\n".join(made), "out of date; run `make charts`"


def _linked():
    folders = (ROOT / "docs").rglob("*.md"), (ROOT / "notebooks").glob("*.md")
    for path in (*ROOT.glob("*.md"), *(path for folder in folders for path in sorted(folder))):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", path.read_text(encoding="utf-8"), flags=re.S)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                yield path.relative_to(ROOT).as_posix(), target


def test_links_lead_to_files():
    lost = [
        (page, target)
        for page, target in _linked()
        if not (ROOT / page).parent.joinpath(target).exists()
    ]
    assert not lost
