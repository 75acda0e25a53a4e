"""Write docs/python.md from the docstrings. tests/test_docs.py fails when it is out of date."""

import ast
import dataclasses
import importlib
import inspect
import re
import textwrap
from pathlib import Path

import sentemb

HEAD = """# The Python reference

Made by `make docs` from the docstrings. `import sentemb` gives all names but the last four. Shapes
are in parentheses: `(k, dim)` is an array of k rows. Mistakes in arguments and files raise
[`SentembError`](#sentemberror), whose message is one line with the place and a remedy.
In signatures, `AnyPath` is a str or a path object, and `Arrays` a dict of NumPy arrays by name.

```python
from sentemb import SentenceEncoder, train
```
"""
# The names of the package by its own sections, then those that need an extra.
PARTS = {
    **{part: [f"sentemb:{name}" for name in names] for part, names in sentemb._SECTIONS.items()},
    "The error": ["sentemb:SentembError"],
    "The server": [
        "sentemb.bridges.server.app:create_app",
        "sentemb.bridges.server.server:Server",
    ],
    "In scikit-learn": [
        "sentemb.bridges.scikit_learn:SentenceVectorizer",
        "sentemb.bridges.scikit_learn:SIFVectorizer",
    ],
}
_WIDTH = 88
_UNDERLINE = re.compile(r"-{3,}\s*")
# Sections whose entries are "name : type" with an indented description.
_ENTRIES = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "Other Parameters")


def reference():
    """The whole page."""
    found = {part: [_load(place) for place in places] for part, places in PARTS.items()}
    known = _anchors(found)
    lines = [HEAD]
    for part, things in found.items():
        names = (f"[`{thing.__name__}`](#{known[thing.__name__]})" for thing in things)
        lines.append(f"- {part}: {', '.join(names)}")
    for part, things in found.items():
        lines += ["", f"## {part}"]
        for thing in things:
            lines += ["", *_entry(thing, known)]
    return "\n".join(lines) + "\n"


def _anchors(found):
    """The anchor that GitHub gives to the heading of each name, class members included."""
    anchors, counts = {}, {}
    for things in found.values():
        for thing in things:
            members = [name for name, _ in _members(thing)] if inspect.isclass(thing) else []
            for name in (thing.__name__, *(f"{thing.__name__}.{member}" for member in members)):
                plain = re.sub(r"[^\w-]", "", name.lower())
                count = counts[plain] = counts.get(plain, -1) + 1
                anchors[name] = f"{plain}-{count}" if count else plain
    return anchors


def _load(place):
    module, name = place.split(":")
    return getattr(importlib.import_module(module), name)


def _entry(thing, known):
    """Heading, signature, docstring, and the public methods of a class."""
    yield f"### {thing.__name__}"
    yield ""
    if inspect.isclass(thing):
        yield from _import_line(thing)
        # What has named fields lists them as its attributes.
        if not dataclasses.is_dataclass(thing) and not issubclass(thing, Exception | tuple | dict):
            yield from _signature(thing.__name__, thing)
        own = {name: known[f"{thing.__name__}.{name}"] for name, _ in _members(thing)}
        known = {**known, **own}
        yield from _documented(thing, known)
        for name, member in _members(thing):
            yield from ("", f"#### {thing.__name__}.{name}", "")
            yield from _member(thing, name, member, known)
    else:
        yield from _import_line(thing)
        yield from _signature(thing.__name__, thing)
        yield from _documented(thing, known)


def _import_line(thing):
    home = "sentemb" if thing.__name__ in sentemb.__all__ else thing.__module__
    return [f"`from {home} import {thing.__name__}`", ""]


def _members(cls):
    """Public methods and properties that the package defines, in the order of the source."""
    seen = {}
    for owner in cls.__mro__:
        if owner.__module__.startswith("sentemb"):
            for name, member in vars(owner).items():
                if not name.startswith("_") and name not in seen and _is_documented(member):
                    seen[name] = member
    return seen.items()


def _is_documented(member):
    if isinstance(member, classmethod | staticmethod):
        member = member.__func__
    return isinstance(member, property) or inspect.isfunction(member)


def _member(cls, name, member, known):
    if isinstance(member, property):
        yield from ("*property*", "")
        yield from _documented(member.fget, known)
        return
    yield from _signature(name, getattr(cls, name))
    yield from _documented(getattr(cls, name), known)


def _signature(name, function):
    """A code block with the call as the source declares it, one argument per line if it is long."""
    if inspect.isclass(function):
        function = function.__init__
    if function is object.__init__:
        return ["```python", f"{name}()", "```", ""]
    source = textwrap.dedent(inspect.getsource(inspect.unwrap(function)))
    definition = ast.parse(source).body[0]
    said = list(_arguments(definition.args, inspect.unwrap(function).__globals__))
    if said and said[0] in ("self", "cls"):
        said = said[1:]
    returns = definition.returns
    # A class's own name is a string within it.
    answer = ast.unparse(returns).strip("'") if returns else "None"
    shown = "" if answer == "None" else f" -> {answer}"
    call = f"{name}({', '.join(said)}){shown}"
    if len(call) > _WIDTH:
        call = f"{name}(\n" + "".join(f"    {one},\n" for one in said) + f"){shown}"
    return ["```python", call, "```", ""]


def _arguments(arguments, names):
    """Every argument with its type and default; ``names`` are the globals of its module."""
    plain = [*arguments.posonlyargs, *arguments.args]
    missing = [None] * (len(plain) - len(arguments.defaults))
    for argument, default in zip(plain, [*missing, *arguments.defaults], strict=True):
        yield _argument(argument, default, names)
        if argument in arguments.posonlyargs[-1:]:
            yield "/"
    if arguments.vararg:
        yield f"*{ast.unparse(arguments.vararg)}"
    elif arguments.kwonlyargs:
        yield "*"
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield _argument(argument, default, names)
    if arguments.kwarg:
        yield f"**{ast.unparse(arguments.kwarg)}"


def _argument(argument, default, names):
    text = ast.unparse(argument)
    if default is None:
        return text
    said = ast.unparse(default)
    if isinstance(default, ast.Name | ast.Attribute):  # a reader wants the value of a constant
        said = repr(eval(said, names))
    return f"{text}{' = ' if argument.annotation else '='}{said}"


def _documented(thing, known):
    """The docstring in Markdown."""
    text = inspect.getdoc(thing)
    if text is None:
        return
    lines = text.splitlines()
    section, block = None, []
    for k, line in enumerate([*lines, "", ""]):
        nxt = lines[k + 1] if k + 1 < len(lines) else ""
        if (
            line
            and not line.startswith(" ")
            and _UNDERLINE.fullmatch(nxt)
            and nxt.strip("- ") == ""
        ):
            yield from _section(section, block, known)
            section, block = line.strip(), []
        elif not (_UNDERLINE.fullmatch(line) and not block):
            block.append(line)
    yield from _section(section, block, known)


def _section(name, lines, known):
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    if not lines:
        return
    if name is None:
        yield from _prose(lines, known)
        return
    yield from ("", f"**{name}**", "")
    if name in _ENTRIES:
        yield from _entries(lines, known, named=name in ("Parameters", "Attributes"))
    else:
        yield from _prose(lines, known)


def _entries(lines, known, named):
    """``name : type`` with an indented description as list items; ``named`` without a type too."""
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        end = "  " if following.startswith(" ") else ""  # a line break before the description
        if line.startswith(" "):
            yield f"  {_inline(line.strip(), known)}"
        elif line.strip():
            names, colon, kind = line.partition(" : ")
            if colon or named:
                said = ", ".join(f"`{one.strip()}`" for one in names.split(","))
                yield f"- {said}{' : ' if colon else ''}{_type(kind, known)}{end}"
            else:
                yield f"- {_type(line, known)}{end}"


def _type(text, known):
    """A type with links to the classes that the page has."""
    if "`" not in text:
        text = re.sub(
            r"\b[A-Z]\w+\b", lambda name: f"`{name[0]}`" if name[0] in known else name[0], text
        )
    return _inline(text, known)


def _prose(lines, known):
    """Paragraphs; examples and indented lines become code."""
    code = False
    for line in lines:
        if code and not line.strip():
            yield "```"
            code = False
        elif not code and line.startswith((">>>", "    ")):
            yield "```pycon" if line.startswith(">>>") else "```"
            code = True
        yield line.removeprefix("    ") if code else _inline(line.replace("::", ":"), known)
    if code:
        yield "```"


def _inline(text, known):
    """Roles of the docstrings in Markdown: ``code``, and `name` as a link where the page has it."""
    parts = re.split(r"(``.+?``|`[^`]+`)", text)
    for k, part in enumerate(parts):
        if part.startswith("``"):
            parts[k] = f"`{part[2:-2]}`"
        elif part.startswith("`"):
            name = part[1:-1].removeprefix("~").removeprefix("sentemb.")
            parts[k] = f"[`{name}`](#{known[name]})" if name in known else f"`{name}`"
        else:
            # Signs that Markdown would read as its own; options by their names in Python.
            part = re.sub(r"([*<])", r"\\\1", part)
            parts[k] = re.sub(
                r"--([a-z][a-z-]+)", lambda name: f"`{name[1].replace('-', '_')}`", part
            )
    return "".join(parts)


if __name__ == "__main__":
    Path(__file__).with_name("python.md").write_text(reference(), encoding="utf-8")
