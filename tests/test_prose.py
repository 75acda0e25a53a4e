"""Plain English: turns of phrase that must not come back.

Checks what a person reads: README, CHANGELOG, docs, markdown cells of the notebooks, and the
docstrings, comments and strings of the package, the commands and the benchmarks; and how the
package and the commands name variables and modules.

    python tests/test_prose.py [PREFIX]      prints every hit, with a count for each folder
"""

import ast
import functools
import io
import json
import re
import sys
import tokenize
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXTS = ("CHANGELOG.md", "CONTRIBUTING.md", "Makefile", "README.md", "notebooks/README.md")
_UNITS = (
    "batch|call|cell|column|epoch|line|method|mini-batch|minute|pair|query|row|second|sentence|step"
    "|text|title|tower|turn|value|word"
)
_COUNTED = (
    "calls?|columns?|entry|entries|jobs?|lines?|loss|ms|ns|numbers|pairs?|rows?|seconds|sentences?"
    "|steps?|texts|titles|tokens?|values|words?"
)
# After these the article begins a relative clause: "rows a mini-batch does not touch".
_VERBS = "can|does|has|holds|is|may|met|reads|touches|uses"
# What to look for, and what to write instead.
PATTERNS = {
    "is no X": (
        r"(?<!there )\b(?:is|are|was|were) no "
        r"(?!longer|more than|fewer than|less than|worse|better)[a-z]",
        "is not a X",
    ),
    "beside": (r"\bbeside\b", "next to, in addition to, with"),
    "anew": (r"\banew\b", "again"),
    "go on": (r"\b(?:go|goes|going|went) on\b", "continue"),
    "stand": (r"\bst(?:and|ands|anding|ood)\b(?!-| out| alone)", "is, are, appears, means"),
    "take for": (r"\b(?:take|takes|taken|took)(?: \w+)? for (?:a |an |the |right|\w+ lines)",
                 "mistakes for, counts as, wrongly ranks"),
    "so many": (r"\bso (?:many|often|few)\b(?![^.:;]{0,70}\bthat\b)", "this many, that often"),
    "a line an epoch": (rf"\b(?:{_COUNTED}) an? (?:{_UNITS})\b(?! (?:{_VERBS})\b)", "per"),
    "two-way": (r"\btwo-way\b", "bidirectional"),
    "mend": (r"\bmend(?:s|ed|ing)?\b", "fix, correct"),
    "whoever": (r"\bwhoever\b", "name the person or the thing"),
    "verb last": (
        r"\b(?:are|is|counted|does|do|means) says? |\bin brackets the\b",
        "subject first",
    ),
    "American": (
        r"optimiz|(?<!\.)normaliz(?!e_embeddings)|initializ|regulariz|randomiz|recogniz|summariz|behavior"
        r"|\bneighbor|\bunlabeled|\blabeled",
        "British spelling",
    ),
}  # fmt: skip
# Names that say nothing of the value, with or without an underscore.
EMPTY_NAMES = {
    "found", "kept", "more", "one", "other", "others", "own", "place", "places", "said", "some",
    "sure", "told", "wanted",
}  # fmt: skip
# Modules of one file name, by their rooms: each name has one subject.
SHARED_NAMES = {
    # The kernels of a module have its name.
    "adam": "kernels training",
    "bm25": "comparison kernels retrieval",
    "classifier": "kernels training training",
    "hard_negatives": "kernels training",
    "hinge": "kernels training",
    "inference": "kernels models",
    "lstm": "kernels models",
    "memory": "kernels retrieval",
    "nesterov": "kernels training",
    "packing": "kernels models",
    "plsa": "comparison kernels",
    "recurrent": "kernels models",
    "rnn": "kernels models",
    "scan": "kernels search",
    "shortlist": "kernels search",
    "sif": "cli kernels models",
    "traces": "gradients kernels",
    # A command has the name of the module that does its work.
    "evaluate": "cli evaluation",
    "gradcheck": "cli gradients",
    "held_out": "cli evaluation",
    "index": "cli search",
    "insights": "analysis cli",
    "keywords": "analysis cli",
    "ranker": "cli search",
    "start": "cli training",
    "sts": "cli evaluation",
    "synonyms": "analysis cli",
    "topics": "analysis cli",
    # A baseline has the name of what it ranks by.
    "clicked_queries": "comparison retrieval",
    # The protocols of each room.
    "contracts": "models system training",
    # The rankings that commands print and those on a page.
    "rankings": "analysis cli",
    # The models of each family.
    "registry": "models models",
    # The same other package, to export to and to run in.
    "sentence_transformers": "bridges bridges",
    # What is trained, and its gradient check.
    "two_towers": "gradients training",
    # Two subjects, to be told apart.
    "checks": "gradients text",
    "folder": "models models",
    "weights": "models search",
    "words": "kernels text",
}
_PATTERNS = {name: re.compile(pattern, re.I) for name, (pattern, _) in PATTERNS.items()}
# "Of the softmax." as a whole description: at the start of a docstring or help, or as the first
# line below an entry of a docstring.
_GENITIVE = re.compile(r"Of [a-z][^,]*$")  # "Of the three words, two are ..." is a sentence
# A description below an entry of a docstring.
_WHAT_IN_ENTRY = re.compile(r"^(?P<indent> *)\S.*\n(?P=indent) +(?P<what>What .*)", re.M)
_CODE = re.compile(r"``.+?``|`[^`\n]*`|\]\([^)]*\)", re.S)


def hits_in(text, number=1):
    """(line, pattern, excerpt) for every pattern in a piece of prose that starts at a line."""
    # Line ends stay, so that numbers do; all else of code becomes one sign.
    plain = _CODE.sub(lambda code: "\n" * code[0].count("\n") + "§", text)
    joined = re.sub(r"\s", " ", plain)
    for name, pattern in _PATTERNS.items():
        for found in pattern.finditer(joined):
            line = number + plain.count("\n", 0, found.start())
            yield line, name, joined[max(0, found.start() - 25) : found.end() + 25].strip()


def _genitives(text, number):
    lines = text.splitlines()
    for k, line in enumerate(lines):
        above = lines[k - 1] if k else ""
        first = k == 0 or re.search(r" : ", above) or re.fullmatch(r"\s*[\w, ]+", above)
        deeper = len(line) - len(line.lstrip()) > len(above) - len(above.lstrip())
        if _GENITIVE.match(line.strip()) and first and (k == 0 or deeper):
            yield number + k, "headless genitive", line.strip()[:60]


def _pieces(path):
    """(text, line) of all prose of a file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        for k, cell in enumerate(json.loads(text)["cells"]):
            if cell["cell_type"] == "markdown":
                yield "".join(cell["source"]), k
    elif path.suffix == ".py":
        comments = []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                number, comment = token.start[0], token.string.lstrip("#: ")
                if comments and comments[-1][1] + comments[-1][0].count("\n") + 1 == number:
                    comments[-1] = (f"{comments[-1][0]}\n{comment}", comments[-1][1])
                else:
                    comments.append((comment, number))
        yield from comments
        yield from _parsed(text)[0]
    else:
        yield text, 1


def hits(path):
    """Every hit in a file, as lines of ``file:line: pattern: excerpt``."""
    name = path.relative_to(ROOT).as_posix()
    found = set()
    for text, number in _pieces(path):
        found.update(hits_in(text, number))
        if path.suffix == ".py":
            found.update(_genitives(text, number))
    return [f"{name}:{line}: {what}: {excerpt}" for line, what, excerpt in sorted(found)]


def files():
    """Everything that a person reads."""
    yield from (ROOT / name for name in TEXTS)
    for folder, pattern in (
        ("docs", "*.md"),
        ("docs", "*.py"),
        ("notebooks", "*.ipynb"),
        ("src", "*.py"),
        ("cli", "*.py"),
        ("benchmarks", "*.py"),
    ):
        yield from sorted((ROOT / folder).rglob(pattern))


def _rooms():
    """{room: files}: a folder of the package or one of the top level."""
    rooms = {}
    for path in files():
        parts = path.relative_to(ROOT).parts
        room = "/".join(parts[:3] if parts[0] == "src" and len(parts) > 3 else parts[:1])
        rooms.setdefault(room, []).append(path)
    return rooms


ROOMS = _rooms()


@pytest.mark.parametrize("room", ROOMS)
def test_plain_english(room):
    found = [hit for path in ROOMS[room] for hit in hits(path)]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize("room", ROOMS)
def test_no_merge_is_half_done(room):
    """The changelog once had the marks of two conflicts of git."""
    marks = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
    assert not [path for path in ROOMS[room] if marks.search(path.read_text("utf-8"))]


@functools.cache
def _parsed(code):
    """Strings, empty names and docstrings of Python: parsed once for all tests."""
    nodes = [*ast.walk(ast.parse(code))]
    texts = [
        (node.value, node.lineno)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return texts, [*_empty_names(nodes)], [*_whats(nodes)]


def empty_names(code):
    """(line, name) of every function, class, parameter, variable or attribute in `EMPTY_NAMES`."""
    return _parsed(code)[1]


def whats(code):
    """Docstrings, and descriptions in them, that begin with "What" instead of their object."""
    return _parsed(code)[2]


def _empty_names(nodes):
    for node in nodes:
        match node:
            case (
                ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
                | ast.arg(arg=name)
                | ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
            ) if name.strip("_") in EMPTY_NAMES:
                yield node.lineno, name


def _whats(nodes):
    for node in nodes:
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef):
            docstring = ast.get_docstring(node) or ""
            if docstring.startswith("What"):
                yield docstring
            yield from (entry["what"] for entry in _WHAT_IN_ENTRY.finditer(docstring))


MODULES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in files()
    if path.relative_to(ROOT).parts[0] in ("src", "cli")
}


def test_names_say_what_they_hold():
    found = [f"{file}:{line}: {n}" for file in MODULES for line, n in empty_names(MODULES[file])]
    assert not found, "\n" + "\n".join(found)


def test_docstrings_begin_with_their_object():
    found = [f"{file}: {text}" for file in MODULES for text in whats(MODULES[file])]
    assert not found, "\n" + "\n".join(found)


def test_modules_of_one_name_have_one_subject():
    rooms = {}
    for file in map(Path, MODULES):
        room = "cli" if file.parts[0] == "cli" else file.parts[2]
        rooms.setdefault(file.stem, []).append(room)
    shared = {name: " ".join(sorted(of)) for name, of in rooms.items() if len(of) > 1}
    shared.pop("__init__")
    assert {n: r for n, r in shared.items() if SHARED_NAMES.get(n) != r} == {}


def test_empty_names_and_whats_are_found():
    code = '''"""What it does."""
class Shop:
    """A shop.

    What it sells is food.

    name : str
        What it is called.
    """
    def some(self, own, *, placed=1):
        self.more, (_kept, ones) = [other for other in own], (1, 2)
'''
    assert sorted(name for _, name in empty_names(code)) == [
        "_kept",
        "more",
        "other",
        "own",
        "some",
    ]
    assert list(whats(code)) == ["What it does.", "What it is called."]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("if it is no model", "is no X"),
        ("a bag beside the cells", "beside"),
        ("Run them anew", "anew"),
        ("the training goes on", "go on"),
        ("all its words stand in a title", "stand"),
        ("titles that the model itself takes for right", "take for"),
        ("stop after so many epochs", "so many"),
        ("history: a line an epoch", "a line an epoch"),
        ("sentences a call", "a line an epoch"),
        ("of a two-way\nmodel", "two-way"),
        ("what is counted says the page", "verb last"),
        ("the optimizer's behaviour", "American"),
    ],
)
def test_a_pattern_is_found(text, name):
    assert [found for _, found, _ in hits_in(text)] == [name]


@pytest.mark.parametrize(
    "text",
    [
        "there is no log",
        "the file is no longer read",
        "a stand-alone page",
        "so many rows that they do not fit",
        "`beside` is code",
        "normalize_embeddings=True",
        "one line per epoch",
        "rows a mini-batch does not touch",
    ],
)
def test_plain_sentences_pass(text):
    assert not list(hits_in(text))


def test_a_genitive_without_a_head_is_found():
    assert list(_genitives("Of the softmax.", 1))
    assert list(_genitives("gamma : float\n    Of the softmax.", 1))
    assert not list(_genitives("The scale\n    of the softmax.", 1))
    assert not list(_genitives("Of the three words, two are keywords.", 1))


if __name__ == "__main__":
    prefix = sys.argv[1] if len(sys.argv) > 1 else ""
    count = Counter()
    for path in files():
        if path.relative_to(ROOT).as_posix().startswith(prefix):
            for hit in hits(path):
                print(hit)
                count["/".join(hit.split(":")[0].split("/")[:3])] += 1
    print(*sorted(count.items()), sep="\n")
