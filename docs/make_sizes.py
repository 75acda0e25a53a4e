"""Count what a reader has to hold in the head: lines, functions, public names, options.

Writes the table in docs/design.md.
"""

import ast
import statistics
from pathlib import Path

import click
from make_cli import contexts
from make_python import PARTS

import sentemb
from sentemb.cli import main

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- sizes begin -->", "<!-- sizes end -->"
CODE = ("src/sentemb", "cli")
LONG = 50


def python_files(*folders):
    """All modules in some folders."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def lines(*folders):
    """Lines of Python in some folders."""
    return sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(*folders)
    )


def function_lengths():
    """Lines of each function of the code."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in python_files(*CODE))
    nodes = (node for tree in trees for node in ast.walk(tree))
    return [
        node.end_lineno - node.lineno + 1
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]


def options():
    """Options of each command by its name, as its `--help` shows them."""
    return {
        context.command_path.removeprefix("sentemb "): sum(
            isinstance(one, click.Option) for one in context.command.get_params(context)
        )
        for context in contexts(main, "sentemb", None)
        if not isinstance(context.command, click.Group)
    }


def table():
    """The sizes as a Markdown table."""
    lengths, of_commands = function_lengths(), options()
    longest = sorted(of_commands, key=of_commands.get, reverse=True)[:3]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = {
        "lines of `src/sentemb` and `cli`": f"{lines(*CODE):,}",
        "lines of `benchmarks`": f"{lines('benchmarks'):,}",
        "lines of `tests`": f"{lines('tests'):,}",
        "lines of README": f"{len(readme.splitlines()):,}",
        "names of `import sentemb`": f"{len(sentemb.__all__):,}",
        "public names, with those of modules": f"{sum(map(len, PARTS.values())):,}",
        "commands": f"{len(of_commands):,}",
        "options of all commands": f"{sum(of_commands.values()):,}",
        "options of " + ", ".join(f"`{name}`" for name in longest): ", ".join(
            str(of_commands[name]) for name in longest
        ),
        "median lines of a function": f"{statistics.median(lengths):g}",
        f"functions above {LONG} lines": f"{sum(n > LONG for n in lengths) / len(lengths):.1%}",
    }
    return "\n".join(["| size | |", "| --- | --: |", *(f"| {a} | {b} |" for a, b in rows.items())])


if __name__ == "__main__":
    page = ROOT / "docs" / "design.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
