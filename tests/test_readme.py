"""README.md does what it says: its Python runs, its commands parse, its table is current."""

import importlib.util
import re
import shlex
import sys
from pathlib import Path

import click
import pytest

from sentemb.cli import main
from sentemb.data.simulation.simulator import simulate

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.M | re.S)


def test_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    simulate("log", pairs=300, dev_queries=20, test_queries=20)
    names = {}
    blocks = _blocks("python")
    assert blocks
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert names["queries"].shape == (1, 96) and names["queries"].dtype == "float32"
    assert names["model"].similarity(names["queries"], names["queries"]).shape == (1, 1)
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


def _charts():
    folder = str(ROOT / "benchmarks")
    sys.path.insert(0, folder)
    try:
        spec = importlib.util.spec_from_file_location("charts", f"{folder}/charts.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(folder)


@pytest.mark.parametrize(
    ("page", "section"),
    [
        ("README.md", "ranking"),
        ("README.md", "catalogue"),
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
    charts = _charts()
    made = getattr(charts, f"{section}_table")()
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
