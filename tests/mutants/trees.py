"""Faults made from the syntax tree of a module: `modules.toml` says of which, and with what tests.

A fault changes one comparison, condition, number, sum or statement of one function. Of all that are
possible a few are drawn, so that the list does not change when a line of the code does.
"""

import ast
import copy
import hashlib
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from mutants import ROOT

COMPARISONS = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SUMS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult}
# A number is shown with one of these around it.
NAMING = (
    ast.BinOp,
    ast.Call,
    ast.Compare,
    ast.List,
    ast.Subscript,
    ast.Tuple,
    ast.Return,
    ast.Assign,
)
# Nobody needs a test of these.
SKIPPED = (ast.Raise, ast.Assert, ast.JoinedStr, ast.arguments)


@dataclass(frozen=True)
class TreeFault:
    """One change of a piece of the code that begins and ends at known places.

    Attributes
    ----------
    file, function : str
        The file relative to the root of the project, and the name of the function.
    begin, end : int
        The piece, in bytes.
    old, new : str
        The piece, and what replaces it.
    tests : tuple of str
        Arguments of pytest, each for a run of its own.
    equivalent : str
        Why no test can notice it; empty for all that must be noticed.
    """

    file: str
    function: str
    begin: int
    end: int
    old: str
    new: str
    tests: tuple[str, ...] = ()
    equivalent: str = ""

    def __str__(self) -> str:
        old = " ".join(self.old.split())
        return f"{self.file.removeprefix('src/sentemb/')}: {self.function}: {old} -> {self.new}"

    def applied_to(self, source: str) -> str:
        """``source`` with the fault in it."""
        text = source.encode()
        return (text[: self.begin] + self.new.encode() + text[self.end :]).decode()


def read_tree_faults(seed: str = "0") -> list[TreeFault]:
    """The faults that are drawn with ``seed``, module by module.

    Raises
    ------
    ValueError
        If a fault that is listed as equivalent is no longer possible.
    """
    path = Path(__file__).with_name("modules.toml")
    table = tomllib.loads(path.read_text("utf-8"))
    reasons = table["equivalent"]
    chosen, names = [], set()
    for file, tests in table["modules"].items():
        file = f"src/sentemb/{file}"
        possible = faults_of(file, (ROOT / file).read_text("utf-8"))
        names |= {str(fault) for fault in possible}
        drawn = sorted(
            possible, key=lambda fault: hashlib.sha256(f"{seed} {fault}".encode()).digest()
        )
        chosen += [
            TreeFault(
                **vars(fault) | {"tests": tuple(tests), "equivalent": reasons.get(str(fault), "")}
            )
            for fault in drawn[: table["faults"]]
        ]
    if missing := reasons.keys() - names:
        raise ValueError(f"{path.name} lists as equivalent what is not possible: {missing}")
    return chosen


@cache
def faults_of(file: str, source: str) -> tuple[TreeFault, ...]:
    """All faults that are possible in the functions of a module; names are different."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    faults: dict[str, TreeFault] = {}
    for function, node in _functions(ast.parse(source)):
        for piece, new in _changes(node):
            begin = lines[piece.lineno - 1] + piece.col_offset
            end = lines[piece.end_lineno - 1] + piece.end_col_offset
            old = source.encode()[begin:end].decode()
            fault = TreeFault(file, function, begin, end, old, new)
            faults.setdefault(str(fault), fault)
    return tuple(faults.values())


def _functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.AST]]:
    """Every function of a module or a class, with its name."""
    for node in getattr(tree, "body", ()):
        if isinstance(node, ast.FunctionDef):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node, f"{prefix}{node.name}.")


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Pieces of a function, and what may replace each."""
    for name, value in ast.iter_fields(node):
        if name in ("decorator_list", "returns", "annotation"):
            continue
        for at, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(child, ast.AST) or isinstance(child, SKIPPED):
                continue
            if isinstance(node, NAMING) and _is_integer(child):
                # With what is around it: a number alone would not say which one it is.
                yield node, _with_one_more(node, name, at)
            yield from _changed(child)
            yield from _changes(child)


def _is_integer(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _with_one_more(node: ast.AST, name: str, at: int | None) -> str:
    """``node`` with 1 more than the number in one of its fields."""
    changed = copy.deepcopy(node)
    value = getattr(changed, name)
    number = value if at is None else value[at]
    number.value += 1
    return _written(changed)


def _changed(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """A node itself, and what may replace it."""
    changed = copy.copy(node)  # of which a field is replaced: what it holds is shared
    match node:
        case ast.Compare(ops=[operator]):
            changed.ops = [COMPARISONS[type(operator)]()]
        case ast.BoolOp(op=operator):
            changed.op = ast.Or() if isinstance(operator, ast.And) else ast.And()
        case ast.UnaryOp(op=ast.Not()):
            changed = changed.operand
        case ast.BinOp(op=operator) if type(operator) in SUMS:
            changed.op = SUMS[type(operator)]()
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue() | ast.Break():
            changed = ast.Pass()
        case _:
            return
    yield node, _written(changed)


def _written(node: ast.AST) -> str:
    """The code of a node; of an expression in brackets, so that it fits anywhere."""
    if isinstance(node, ast.Tuple) and any(isinstance(one, ast.Slice) for one in node.elts):
        return ", ".join(map(ast.unparse, node.elts))  # parentheses cannot hold a slice
    return ast.unparse(node) if isinstance(node, ast.stmt) else f"({ast.unparse(node)})"
