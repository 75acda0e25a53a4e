"""README.md does what it says: its Python runs, its commands parse, its table is current."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from sentemb.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """A folder in which `make demo` has made ``demo``."""
    folder = tmp_path_factory.mktemp("readme")
    start = ["start", "--example", "-o", f"{folder}/demo", "--quiet"]
    assert not CliRunner().invoke(main, start).exit_code
    return folder


def test_consoles_show_what_the_commands_print(demo):
    shown = README.splitlines()
    printed = _module("docs/make_readme.py").filled(README, demo).splitlines()
    assert len(shown) == len(printed)
    for line, result in zip(shown, printed, strict=True):
        assert _number.sub("", line) == _number.sub("", result)
        # The last digits may differ on another processor.
        numbers, results = map(_number.findall, (line, result))
        assert [float(x) for x in numbers] == pytest.approx([float(x) for x in results], 3e-3, 3e-3)


_number = re.compile(r"(?<![\w.])[+-]?\d*\.\d+(?![\w.])")


def test_python_runs(demo, monkeypatch):
    monkeypatch.chdir(demo)
    names = {}
    blocks = _blocks("python")
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["vectors"].shape == (2, 96) and names["vectors"].dtype == "float32"
    assert names["model"].similarity(names["vectors"], names["vectors"]).shape == (2, 2)
    assert names["model"].trace("hotels in shanghai").i.shape == (3, 96)


def _commands():
    lines = "".join(_blocks("sh") + _blocks("console")).splitlines()
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        while "sentemb" in words:
            words = words[words.index("sentemb") + 1 :]
            end = words.index("|") if "|" in words else len(words)
            yield words[:end]


@pytest.mark.parametrize("words", list(_commands()), ids=" ".join)
def test_command_parses(words):
    name, *arguments = words
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
