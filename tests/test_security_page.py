"""docs/security.md says what the program does, and what is installed is what is audited."""

import ast
import configparser
import functools
import importlib
import importlib.util
import json
import os
import pickle
import re
import sys
from pathlib import Path

import pytest
from helpers import run_forked
from packaging.requirements import Requirement
from reliability.faces import in_a_fork

from sentemb import SentenceEncoder, train
from sentemb.data.click_log import ClickLogBuilder

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
# A row of a table that ends with the name of a constant.
_LIMIT = re.compile(r"\| [^|]+ \| ([\d,]+)(?: [a-z]+)? \| `([\w.]+)` \|")
LIMITS = [match.groups() for match in map(_LIMIT.fullmatch, PAGE.splitlines()) if match]

QUERIES = ["hotels in shanghai", "fix a bath tub", "cheap flights", "tax forms"]
TITLES = ["shanghai hotels", "bath tub repair", "low cost flights", "forms for taxes"]
RARE = "zorkwix"


# -- limits -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "name"), LIMITS, ids=[name for _, name in LIMITS])
def test_a_limit_is_that_of_the_code(number, name):
    assert int(number.replace(",", "")) == _constant(name)


def _constant(name):
    """What ``module.CONSTANT`` or ``module.Class.attribute`` of the package is."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        try:
            module = importlib.import_module(".".join(["sentemb", *parts[:count]]))
        except ModuleNotFoundError:
            continue
        return functools.reduce(getattr, parts[count:], module)
    raise AssertionError(f"{name} is not in the package")


def test_every_number_on_the_page_is_checked():
    """Outside the tables of limits there are only names with digits, and modes in backquotes."""
    rest = "\n".join(line for line in PAGE.splitlines() if not _LIMIT.fullmatch(line))
    rest = re.sub(r"`[^`\n]*`|SHA-256|UTF-8|BM25|Python 3\.11", "", rest)
    assert len(LIMITS) > 20
    assert re.findall(r"[\w,.]*\d[\w,.]*", rest) == []


# -- nothing is executed, nothing goes out ----------------------------------------------------


_EXECUTING = {"code", "ctypes", "dill", "joblib", "marshal", "multiprocessing", "pickle", "runpy"}
_NETWORK = {"asyncio", "ftplib", "http", "requests", "smtplib", "socket", "ssl", "urllib", "xmlrpc"}
_MODULES = _EXECUTING | _NETWORK | {"shelve", "socketserver", "subprocess", "webbrowser"}
_CALLS = {"__import__", "compile", "eval", "exec"}
_OF_OS = re.compile(r"system|popen|exec.+|spawn.+|posix_spawn.*|startfile")


def _found(tree):
    """The modules and calls in a syntax tree that execute something or use a network."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from {alias.name.split(".")[0] for alias in node.names} & _MODULES
        elif isinstance(node, ast.ImportFrom):
            yield from {node.module.split(".")[0]} & _MODULES
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield from {node.func.id} & _CALLS
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id == "os" and _OF_OS.fullmatch(node.attr):
                yield f"os.{node.attr}"
        elif isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield from () if ast.unparse(node.value) == "False" else ("allow_pickle",)


def test_only_the_kernel_cache_unpickles_and_nothing_else_executes():
    found = {}
    for folder in ("src", "cli"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if names := set(_found(ast.parse(path.read_text(encoding="utf-8")))):
                found[path.relative_to(ROOT).as_posix()] = names
    # renameat2 of the system's own library, with two names.
    assert found.pop("src/sentemb/system/exchange.py") == {"ctypes"}
    # prctl of the system's own library: a process that compiles kernels ends with its parent.
    assert found.pop("src/sentemb/kernels/compiling/ahead.py") == {"ctypes"}
    # The server listens, and reads addresses; nothing else of the package touches a socket.
    assert found.pop("src/sentemb/bridges/server/server.py") == {"socket"}
    assert found.pop("src/sentemb/bridges/server/asked.py") == {"urllib"}
    # Reads addresses in tables, and asks none of them.
    assert found.pop("src/sentemb/data/importers/clean_texts.py") == {"urllib"}
    # Asks an address whether it is a scheduler, with a limit of time.
    assert found.pop("src/sentemb/system/cluster.py") == {"asyncio"}
    assert found == {"src/sentemb/kernels/compiling/cache.py": {"pickle"}}


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import urllib.request", "urllib"),
        ("from subprocess import run", "subprocess"),
        ("eval('1')", "eval"),
        ("os.system('ls')", "os.system"),
        ("os.execv('ls', [])", "os.execv"),
        ("np.load(path, allow_pickle=True)", "allow_pickle"),
        ("np.load(path, allow_pickle=wanted)", "allow_pickle"),
        ("np.load(path, allow_pickle=False); re.compile('a'); os.replace(a, b)", None),
    ],
)
def test_the_search_finds_what_executes(code, name):
    assert list(_found(ast.parse(code))) == ([name] if name else [])


# Audit hooks see every use of a socket, also by a library and from C.
_OFFLINE = """
import json, socket, sys

seen = []

def hook(event, arguments):
    if event.startswith("socket."):
        seen.append(event)
        raise PermissionError(event)

sys.addaudithook(hook)
from sentemb.cli import main

for command in json.loads(sys.argv[1]):
    main.main(command, standalone_mode=False)
during = list(seen)
try:
    socket.socket()
except PermissionError:
    pass
print(json.dumps([during, seen]))
"""


def test_no_command_opens_a_socket(tmp_path):
    log, judged, model = tmp_path / "log.tsv", tmp_path / "judged", tmp_path / "model"
    log.write_text("".join(map("{}\t{}\n".format, QUERIES, TITLES)))
    judged.mkdir()
    (judged / "queries.tsv").write_text("q0\tcheap flights\n")
    (judged / "docs.tsv").write_text("d0\tlow cost flights\nd1\tbath tub repair\n")
    (judged / "qrels.txt").write_text("q0 0 d0 1\nq0 0 d1 0\n")
    vectors, ranking, page = (tmp_path / name for name in ("v.npy", "run.txt", "report.html"))
    commands = [
        ["train", log, "--dev", judged, "-o", model, "--cells", 4, "--epochs", 1],
        ["encode", model, log, "-o", vectors],
        ["rank", model, judged / "queries.tsv", judged / "docs.tsv", "-o", ranking],
        ["evaluate", model, judged],
        ["report", model, judged, "-o", page],
    ]
    done = run_forked(_OFFLINE, json.dumps([list(map(str, one)) for one in commands]))
    assert done.returncode == 0, done.stderr
    assert all(path.is_file() for path in (vectors, ranking, page))
    during, in_all = json.loads(done.stdout.splitlines()[-1])
    assert during == []
    assert in_all == ["socket.__new__"]  # the hook does see one


_EXECUTES = ("compile", "ctypes.", "exec", "import", "marshal.", "os.exec", "os.spawn",
             "os.system", "pickle.", "socket.", "subprocess.")  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_loading_a_model_executes_nothing(model_dir):
    def seen():
        events = []
        sys.addaudithook(lambda event, _: event.startswith(_EXECUTES) and events.append(event))
        SentenceEncoder.from_pretrained(model_dir)
        during = list(events)
        pickle.loads(pickle.dumps(print))
        return during, list(events)

    SentenceEncoder.from_pretrained(model_dir)  # its modules are imported now
    # In a process of its own: a hook stays.
    assert in_a_fork(seen) == ([], ["pickle.find_class"])


# -- what a model tells -----------------------------------------------------------------------


def _log():
    builder = ClickLogBuilder()
    for query, title in zip(QUERIES, TITLES, strict=True):
        builder.add(query, f"{title} guide")
    builder.add(f"call {RARE}", "telephone guide", clicks=7654321)
    return builder.build()


def _trained(path, **settings):
    train(_log(), output=path, epochs=1, cells=4, hard_negatives=0, threads=1, **settings)
    return b"".join(file.read_bytes() for file in path.rglob("*") if file.is_file())


def test_a_rare_word_stays_out_and_its_trigrams_do_not(tmp_path):
    contents = _trained(tmp_path / "model")
    assert b"guide" in contents  # often enough
    assert RARE.encode() not in contents
    assert b"#zo\n" in contents and b"kwi\n" in contents


def test_without_word_features_no_word_is_stored(tmp_path):
    contents = _trained(tmp_path / "model", word_features=0)
    assert b"guide" not in contents
    assert (tmp_path / "model" / "words.txt").read_text() == ""


def test_texts_and_clicks_are_not_stored(tmp_path):
    contents = _trained(tmp_path / "model", word_features=1)
    assert RARE.encode() in contents
    assert b"bath tub" not in contents and b"7654321" not in contents


def test_the_query_tower_shows_what_only_titles_have(tmp_path):
    _trained(tmp_path / "model", shared_towers=False)
    model = SentenceEncoder.from_pretrained(tmp_path / "model")
    row = model.vocabulary.trigrams.index("eph")  # of telephone, in a title
    assert not model.weights["query"]["table"][row].any()
    assert model.weights["document"]["table"][row].all()


def test_a_history_has_neither_dates_nor_places(tmp_path):
    _trained(tmp_path / "model")
    (line,) = map(json.loads, (tmp_path / "model" / "history.jsonl").read_text().splitlines())
    assert line.keys() == {"epoch", "step", "loss", "dev", "pairs_per_second", "seconds"}


@pytest.mark.skipif(os.name != "posix", reason="has no umask")
def test_a_umask_keeps_a_model_private(model, tmp_path):
    before = os.umask(0o077)
    try:
        model.save_pretrained(tmp_path / "model")
    finally:
        os.umask(before)
    assert {path.stat().st_mode & 0o077 for path in tmp_path.rglob("*")} == {0}


# -- constraints and audit --------------------------------------------------------------------


def _audit():
    spec = importlib.util.spec_from_file_location("audit", ROOT / ".ci" / "audit.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _pins():
    audit = _audit()
    return audit.pins(audit.CONSTRAINTS.read_text(encoding="utf-8"))


def _key(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_constraints_meet_every_requirement():
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    lists = [config["options"]["install_requires"], *config["options.extras_require"].values()]
    versions = {_key(name): version for name, version in _pins().items()}
    for requirement in map(Requirement, filter(None, "\n".join(lists).split("\n"))):
        assert versions[_key(requirement.name)] in requirement.specifier, requirement
    assert all(re.fullmatch(r"\d+(\.\w+)+", version) for version in versions.values())


def test_components_are_the_constraints():
    pins = _pins()
    listed = _audit().components(pins)["components"]
    assert {one["name"]: one["version"] for one in listed} == pins
    assert {"pkg:pypi/numpy@" + pins["numpy"], "pkg:pypi/smart-open@" + pins["smart_open"]} <= {
        one["purl"] for one in listed
    }


def _package(**more):
    return {"name": "some", "version": "1.0", **more}


@pytest.mark.parametrize(
    ("packages", "code", "says"),
    [
        ([_package(vulns=[])], 0, "1 packages audited, 0 vulnerable"),
        ([_package(vulns=[{"id": "X-1", "fix_versions": ["1.1"]}])], 1, "X-1, fixed in 1.1"),
        ([_package(vulns=[{"id": "X-1", "fix_versions": []}])], 1, "fixed in no version yet"),
        ([_package(vulns=[]), _package(skip_reason="not found")], 0, "not audited: some"),
        ([_package(skip_reason="not found")], 0, "NOT AUDITED"),
    ],
)
def test_a_vulnerability_fails_and_silence_is_not_taken_for_safety(packages, code, says):
    found, lines = _audit().verdict({"dependencies": packages})
    assert found == code
    assert says in "\n".join(lines)
