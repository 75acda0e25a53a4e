"""Count what a reader has to hold in the head: lines, functions, public names, options.

Writes the table in docs/design.md.
"""

import ast
import statistics
import tokenize
from collections import Counter
from functools import cache
from pathlib import Path

import click
from make_cli import contexts
from make_python import PARTS

import sentemb
from sentemb.cli import main

ROOT = Path(__file__).parents[1]
BEGIN, END = "<!-- sizes begin -->", "<!-- sizes end -->"
CODE = ("src/sentemb", "cli")
LONG, MOST_ARGUMENTS = 50, 8
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(*folders):
    """All modules in some folders."""
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


def lines(*folders):
    """Lines of Python in some folders."""
    return sum(
        len(path.read_text(encoding="utf-8").splitlines()) for path in python_files(*folders)
    )


def code_lines(path):
    """Lines of a module without comments, docstrings and blank lines."""
    not_code = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    not_code |= {tokenize.ENCODING, tokenize.ENDMARKER}
    with path.open("rb") as file:
        tokens = [token for token in tokenize.tokenize(file.readline) if token.type not in not_code]
    found = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTIONS) and ast.get_docstring(node):
            found -= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    return len(found)


@cache
def tree(path):
    """The syntax tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def nodes(*kinds):
    """All parts of the code of some kinds of syntax."""
    trees = map(tree, python_files(*CODE))
    return [node for found in trees for node in ast.walk(found) if isinstance(node, kinds)]


def function_lengths():
    """Lines of each function of the code."""
    return [node.end_lineno - node.lineno + 1 for node in nodes(FUNCTIONS)]


def long_signatures():
    """The number of functions with more than eight arguments, kernels aside."""
    kernels = ROOT / "src" / "sentemb" / "kernels"
    return sum(
        len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) > MOST_ARGUMENTS
        for path in python_files(*CODE)
        if not path.is_relative_to(kernels)
        for node in ast.walk(tree(path))
        if isinstance(node, FUNCTIONS)
    )


def shared_class_names():
    """Names that more than one class of the modules has."""
    bodies = (tree(path).body for path in python_files(*CODE))
    names = [node.name for body in bodies for node in body if isinstance(node, ast.ClassDef)]
    return sorted(name for name, count in Counter(names).items() if count > 1)


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
        "code lines of `src/sentemb` and `cli`": f"{sum(map(code_lines, python_files(*CODE))):,}",
        "all lines of them": f"{lines(*CODE):,}",
        "files": f"{len(python_files(*CODE)):,}",
        "classes": f"{len(nodes(ast.ClassDef)):,}",
        "functions of more than eight arguments, kernels aside": f"{long_signatures():,}",
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
