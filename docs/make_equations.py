"""Which functions implement which equation of the papers, read from their docstrings.

Writes the table in docs/gradients.md, or prints the places of one equation:

    python docs/make_equations.py
    python docs/make_equations.py 44
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sentemb"
PAGE = ROOT / "docs" / "gradients.md"
BEGIN, END = "<!-- equations:begin -->\n\n", "\n\n<!-- equations:end -->"
# Where a number in parentheses is an equation of a paper.
PAPERS = {
    "Palangi et al.": (
        "kernels/cosine_softmax.py",
        "kernels/lstm.py",
        "kernels/nesterov.py",
        "kernels/recurrent.py",
        "kernels/rnn.py",
        "kernels/traces.py",
        "training/objectives/softmax.py",
        "training/optimisers/nesterov.py",
    ),
    "Arora, Liang and Ma": ("models/vectors/word_weights.py",),
    "Hu et al.": (
        "kernels/convolution2d.py",
        "kernels/pair_cells.py",
        "models/pairs/convolved.py",
    ),
}
# A number after a letter is a step, as in c(1); one after a circumflex is a layer.
_NUMBER = re.compile(r"(?<![\w^`])\((\d{1,3})\)(?:(?:-| to )\((\d{1,3})\))?")


class Place(NamedTuple):
    """A function, class or module whose docstring names an equation."""

    name: str
    file: str
    line: int


def places() -> dict[tuple[str, int], list[Place]]:
    """{(paper, equation): its places}, papers in the order of `PAPERS`, equations by number."""
    found: dict[tuple[str, int], list[Place]] = defaultdict(list)
    for paper, files in PAPERS.items():
        for file in files:
            for number, place in _of_file(file):
                if place not in found[paper, number]:
                    found[paper, number].append(place)
    order = list(PAPERS)
    return {
        key: _functions_if_any(found[key])
        for key in sorted(found, key=lambda key: (order.index(key[0]), key[1]))
    }


def _of_file(file: str) -> Iterator[tuple[int, Place]]:
    tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        module = file.removesuffix(".py").replace("/", ".")
        name = module if isinstance(node, ast.Module) else f"{module}.{node.name}"
        place = Place(name, file, getattr(node, "lineno", 1))
        for first, last in _NUMBER.findall(ast.get_docstring(node) or ""):
            for number in range(int(first), int(last or first) + 1):
                yield number, place


def _functions_if_any(some: list[Place]) -> list[Place]:
    """The functions and classes; the modules where there are none."""
    return [place for place in some if place.line > 1] or some


def table() -> str:
    """The table, equations with the same functions in one row."""
    rows: dict[tuple[str, str], list[int]] = defaultdict(list)
    for (paper, number), some in places().items():
        rows[paper, ", ".join(f"`{place.name}`" for place in some)].append(number)
    lines = ["| paper | equations | named by |", "| --- | --- | --- |"]
    for (paper, names), numbers in rows.items():
        listed = ", ".join(f"({number})" for number in numbers)
        lines.append(f"| {paper} | {listed} | {names} |")
    return "\n".join(lines)


def main() -> None:
    """See the module."""
    if len(sys.argv) > 1:
        asked = sys.argv[1].strip("()")
        found = {key: some for key, some in places().items() if str(key[1]) == asked}
        if not found:
            sys.exit(f"no docstring names the equation {asked}; docs/gradients.md has all statuses")
        for (paper, _), some in found.items():
            for place in some:
                print(f"src/sentemb/{place.file}:{place.line}  {place.name}  ({paper})")
        return
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN.rstrip("\n"))
    _, after = rest.split(END.lstrip("\n"))
    PAGE.write_text(f"{before}{BEGIN}{table()}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
