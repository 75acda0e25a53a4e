"""What the commands compare, simulate, data onet, gradcheck and evaluate say to wrong input."""

import inspect
import json
import os
import re
import shutil

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import failing_calls, run_forked, tree

import sentemb.comparison.data_folder
import sentemb.gradients.two_towers
from sentemb import SentembError
from sentemb.cli import main
from sentemb.data.importers.onet import import_onet
from sentemb.data.judged_set import read_judged_set
from sentemb.data.simulation import simulator
from sentemb.data.simulation.simulator import simulate
from sentemb.evaluation.metrics import ndcg
from sentemb.evaluation.significance import compare_all
from sentemb.evaluation.trec import read_run

HUGE = "1" + "0" * 400
NUMBERS = ("nan", "inf", "-inf", "-1", "1e400", HUGE, "0x10", "", "one", "1_0", "９")
SMALL = {"pairs": 60, "dev_queries": 4, "test_queries": 5}


def run(*arguments):
    """Exit code, the last line of stderr and the standard output of a command."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    # click turns wrong usage and a `SentembError` into an exit; anything else is a traceback.
    assert result.exception is None or isinstance(result.exception, SystemExit), (
        arguments,
        result.exception,
    )
    return result.exit_code, (result.stderr.splitlines() or [""])[-1], result.stdout


def refused(*arguments, longest=300):
    """The line that a command says, exit code 1 or 2."""
    code, line, out = run(*arguments)
    assert code in (1, 2) and line.startswith("Error: ") and out == "", (arguments, code, line, out)
    assert len(line) <= longest and line.isprintable(), line
    return line


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    path = tmp_path_factory.mktemp("simulated") / "log"
    simulate(path, **SMALL)
    return path


@pytest.fixture
def judged(simulated, tmp_path):
    return shutil.copytree(simulated / "test", tmp_path / "judged")


@pytest.fixture
def run_file(judged, tmp_path):
    path = tmp_path / "a.run"
    lines = (judged / "qrels.txt").read_text().splitlines()
    rows = (line.split() for line in lines)
    path.write_text("".join(f"{q} Q0 {d} 1 {grade} tag\n" for q, _, d, grade in rows))
    return path


# -- numbers on the command line -------------------------------------------------------------------


@pytest.mark.parametrize("value", NUMBERS)
@pytest.mark.parametrize(
    "option",
    [
        "--pairs",
        "--dev-queries",
        "--test-queries",
        "--order-share",
        "--misspelt-share",
        "--navigational-share",
        "--transactional-share",
        "--seed",
    ],
)
def test_numbers_of_simulate(tmp_path, option, value, monkeypatch):
    # Whatever passes the checks begins to work.
    monkeypatch.setattr(simulator, "_Engine", _begin)
    out = tmp_path / "out"
    code, line, _ = run("simulate", "-o", out, f"{option}={value}")
    assert code in (1, 2) and line.startswith("Error: "), (code, line)
    began = {"1_0", "９"} | ({HUGE} if option == "--seed" else set())
    assert ("begun" in line) <= (value in began), line
    assert len(line) <= 1000 and not out.exists()


def _begin(settings):
    raise SentembError("begun")


@pytest.mark.parametrize("value", NUMBERS)
def test_lengths_of_gradcheck(value, monkeypatch):
    monkeypatch.setattr(sentemb.gradients.two_towers, "_made_up_problem", _begin_check)
    assert ("begun" in refused("gradcheck", f"--lengths={value}")) == (value in {"1_0", "９"})


def _begin_check(*arguments):
    raise SentembError("begun")


@pytest.mark.parametrize("value", [*NUMBERS, "0", "0.0", "1.5", "-0.5", "99999999", "5e-324"])
@pytest.mark.parametrize("option", ["--dev", "--test", "--seed"])
def test_numbers_of_data_onet(tmp_path, release, option, value):
    out = tmp_path / "out"
    code, line, _ = run(
        "data", "onet", release, "-o", out, "--dev=5", "--test=5", f"{option}={value}"
    )
    good = {"--seed": {"1_0", "９", "0", "99999999"}}.get(option, {"1_0", "９", "5e-324"})
    if value in good:
        assert code == 0, line
    else:
        assert code in (1, 2) and line.startswith("Error: ") and len(line) < 1000, line
        assert not out.exists()


@pytest.mark.parametrize("value", [*NUMBERS, "0", "1,,3", "1;3", "3,0", "1,-3", HUGE + "0" * 5000])
def test_cutoffs_of_evaluate(judged, run_file, value):
    code, line, _ = run("evaluate", run_file, judged, f"--metrics=ndcg@{value}")
    if value not in {"1_0", "９"}:
        assert code in (1, 2) and line.startswith("Error: ") and len(line) < 600, line


@pytest.fixture
def release(tmp_path):
    """The files of an O*NET release, small."""
    path = tmp_path / "release"
    path.mkdir()
    names = ["Cook", "Painter", "Nurse", "Baker", "Driver", "Farmer"]
    jobs = [(f"1{k}-0000.00", name) for k, name in enumerate(names)]
    tables = {
        "Occupation Data.txt": [("O*NET-SOC Code", "Title"), *jobs],
        "Related Occupations.txt": [
            ("O*NET-SOC Code", "Related O*NET-SOC Code", "Relatedness Tier"),
            (jobs[0][0], jobs[3][0], "Primary-Short"),
        ],
        "Alternate Titles.txt": [
            ("O*NET-SOC Code", "Alternate Title", "Short Title"),
            *((code, f"{word} {name}", "n/a") for code, name in jobs for word in "ABCDEFG"),
        ],
        "Sample of Reported Titles.txt": [
            ("O*NET-SOC Code", "Reported Job Title"),
            *((code, f"Chief {name}") for code, name in jobs),
        ],
    }
    for name, rows in tables.items():
        (path / name).write_text("".join("\t".join(row) + "\n" for row in rows))
    return path


# -- sizes that would never end --------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"pairs": 10**15},
        {"pairs": 10**7 + 1},
        {"dev_queries": 10**9},
        {"test_queries": 10**9},
    ],
    ids=str,
)
def test_simulations_that_would_never_end(tmp_path, settings, monkeypatch):
    monkeypatch.setattr(simulator, "_Engine", _begin)
    with pytest.raises(SentembError, match=f"^{next(iter(settings))} is .*; give an integer from"):
        simulate(tmp_path / "out", **settings)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "settings",
    [
        {"n_negatives": 10**9},
        {"entries": 10**9},
        {"lengths": (1,) * 1000},
        {"lengths": (200,) * 50, "n_negatives": 100, "cells": 1000},
        {"lengths": (200,) * 50, "n_negatives": 100, "model": "bag", "cells": 1000},
        {"lengths": (200,) * 50, "n_negatives": 100, "model": "dssm", "cells": 1, "hidden": 1000},
        {"lengths": (200,) * 50, "n_negatives": 100, "cells": 1, "bag_dim": 1000},
    ],
    ids=str,
)
def test_checks_that_would_never_end(settings, monkeypatch):
    monkeypatch.setattr(sentemb.gradients.two_towers, "_made_up_problem", _begin_check)
    with pytest.raises(SentembError, match=r"give |lower one of them"):
        sentemb.gradcheck(**settings)


def test_the_largest_check_of_the_documentation_is_allowed(monkeypatch):
    monkeypatch.setattr(sentemb.gradients.two_towers, "_made_up_problem", _begin_check)
    for settings in ({"cells": 1000}, {"cells": 288, "lengths": (200,) * 5}, {"entries": 10**6}):
        with pytest.raises(SentembError, match="begun"):
            sentemb.gradcheck(**settings)


# -- types of the Python face ----------------------------------------------------------------------

WRONG = [None, "3", "x", [], {}, 1.5, True, float("nan"), float("inf"), -1, 10**400, object(), 1j]
SETTINGS_OF_GRADCHECK = [
    name
    for name, parameter in inspect.signature(sentemb.gradcheck).parameters.items()
    if parameter.kind is not inspect.Parameter.VAR_KEYWORD
]
# What is right of them, for each setting of gradcheck.
RIGHT = {"shared_towers": [True], "fault": [None], "objective": [None]}


@pytest.mark.parametrize("name", SETTINGS_OF_GRADCHECK)
def test_types_of_gradcheck(name, monkeypatch):
    monkeypatch.setattr(sentemb.gradients.two_towers, "_made_up_problem", _begin_check)
    right = RIGHT.get(name, [])
    for value in WRONG:
        with pytest.raises(SentembError) as caught:
            sentemb.gradcheck(**{name: value})
        began = str(caught.value) == "begun"
        assert began == any(value is one for one in right), (value, caught.value)
        assert len(str(caught.value)) <= 300


@pytest.mark.parametrize(
    "name",
    [
        "pairs",
        "dev_queries",
        "test_queries",
        "order_share",
        "misspelt_share",
        "navigational_share",
        "transactional_share",
        "seed",
    ],
)
def test_types_of_simulate(tmp_path, name):
    for value in WRONG:
        with pytest.raises(SentembError, match=name):
            simulate(tmp_path / "out", **{name: value})
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["dev", "test", "seed"])
def test_types_of_import_onet(release, tmp_path, name):
    for value in WRONG:
        with pytest.raises(SentembError):
            import_onet(release, tmp_path / "out", **{"dev": 5, "test": 5, name: value})
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("value", [None, 5, b"\xff", [], "a\0b"], ids=repr)
def test_paths_that_are_none(simulated, release, tmp_path, value):
    for call in (
        lambda: simulate(value, **SMALL),
        lambda: import_onet(value, tmp_path / "out"),
        lambda: import_onet(release, value, dev=5, test=5),
        lambda: read_judged_set(value),
        lambda: sentemb.comparison.data_folder.read_data(value),
    ):
        with pytest.raises(SentembError):
            call()


@pytest.mark.parametrize("cutoffs", [None, 5, "10", [], [1.5], ["1"], [None], [True], [0], [[1]]])
def test_types_of_cutoffs(judged, run_file, cutoffs):
    with pytest.raises(SentembError, match="cut-offs"):
        ndcg(read_judged_set(judged), read_run(run_file), cutoffs)


@pytest.mark.parametrize(
    "arguments",
    [
        {"systems": None},
        {"systems": [["a", "b"]]},
        {"systems": [[1.0, None]]},
        {"reference": None},
        {"reference": ["a", "b"]},
        {"samples": 0},
        {"samples": -5},
        {"samples": "many"},
        {"samples": 10**12},
        {"seed": -1},
        {"seed": "x"},
        {"reference": [1.0, float("inf")]},
    ],
    ids=str,
)
def test_types_of_the_paired_test(arguments):
    given = {"systems": [[1.0, 2.0]], "reference": [1.0, 1.0]} | arguments
    with pytest.raises(SentembError):
        compare_all(**given)


# -- evaluate --------------------------------------------------------------------------------------

LONG = "x" * 60_000
QRELS = {
    "empty": b"",
    "not UTF-8": b"\xff 0 d1 1\n",
    "UTF-16": "test1 0 d1 1\n".encode("utf-16"),
    "three columns": b"test1 0 d1\n",
    "no query": b"nobody 0 d1 1\n",
    "a long query": LONG.encode() + b" 0 d1 1\n",
    "an escape": b"\x1b[31mq 0 d1 1\n",
    "no document": b"test1 0 nothing 1\n",
    "a long document": b"test1 0 " + LONG.encode() + b" 1\n",
    "grade a word": b"test1 0 d1 good\n",
    "grade NaN": b"test1 0 d1 nan\n",
    "grade of 400 digits": b"test1 0 d1 " + HUGE.encode() + b"\n",
    "grade 1e400": b"test1 0 d1 1e400\n",
    "twice": b"test1 0 d1 1\ntest1 0 d1 2\n",
    "none relevant": b"test1 0 d1 0\n",
    "a great grade": b"test1 0 d1 2000000000\n",
}
TEXTS = {
    "empty": b"",
    "not UTF-8": b"q1\t\xff\n",
    "no tab": b"q1 text\n",
    "a long line without tab": LONG.encode(),
    "no id": b"\ttext\n",
    "an id with spaces": b"a b\ttext\n",
    "a long id with spaces": b"a b" + LONG.encode() + b"\ttext\n",
    "no text": b"q1\t\n",
    "a long id without text": LONG.encode() + b"\t\n",
    "twice": b"q1\ta\nq1\tb\n",
    "a long id twice": 2 * (LONG.encode() + b"\ttext\n"),
    "an escape twice": 2 * b"\x1b[2Jq\ttext\n",
    "NUL": b"q1\ta\0b\n",
}
RUNS = {
    "empty": b"",
    "not UTF-8": b"\xff Q0 d1 1 1 t\n",
    "five columns": b"test1 Q0 d1 1 1\n",
    "score a word": b"test1 Q0 d1 1 good t\n",
    "score NaN": b"test1 Q0 d1 1 nan t\n",
    "a long score": b"test1 Q0 d1 1 " + LONG.encode() + b" t\n",
    "an escape as score": b"test1 Q0 d1 1 \x1b[31m t\n",
    "twice": 2 * b"test1 Q0 d1 1 1 t\n",
    "long ids twice": 2 * f"{LONG} Q0 {LONG} 1 1 t\n".encode(),
    "escapes twice": 2 * b"\x1b[31mq Q0 \x1b[31md 1 1 t\n",
    "packed, but not": None,
}


@pytest.mark.parametrize("damage", QRELS)
def test_judgments_that_are_wrong(judged, run_file, damage):
    (judged / "qrels.txt").write_bytes(QRELS[damage])
    line = refused("evaluate", run_file, judged)
    assert "qrels.txt" in line or "judged set" in line or "grade" in line


@pytest.mark.parametrize("name", ["queries.tsv", "docs.tsv"])
@pytest.mark.parametrize("damage", TEXTS)
def test_texts_that_are_wrong(judged, run_file, name, damage):
    (judged / name).write_bytes(TEXTS[damage])
    refused("evaluate", run_file, judged)


@pytest.mark.parametrize("damage", RUNS)
def test_runs_that_are_wrong(judged, run_file, damage):
    if RUNS[damage] is None:
        run_file = run_file.rename(run_file.with_suffix(".gz"))
    else:
        run_file.write_bytes(RUNS[damage])
    assert run_file.name in refused("evaluate", run_file, judged)


def test_places_that_are_wrong(judged, run_file, tmp_path):
    for arguments in (
        (tmp_path / "nothing", judged),
        (run_file, tmp_path / "nothing"),
        (run_file, run_file),
        (tmp_path, judged),
        (run_file, tmp_path),
        (run_file / "x", judged),
        (run_file, judged / "qrels.txt"),
        ("", judged),
        (run_file, ""),
    ):
        refused("evaluate", *arguments)
    long = tmp_path / ("x" * 300)
    assert "File name too long" in refused("evaluate", long, judged, longest=600)
    assert "File name too long" in refused("evaluate", run_file, long, longest=600)


def test_ids_are_printed_without_control_characters(judged, run_file, tmp_path):
    for path in (judged / "queries.tsv", judged / "qrels.txt", run_file):
        path.write_bytes(path.read_bytes().replace(b"test1", b"\x1b[31mt1"))
    code, _, out = run("evaluate", run_file, judged, "--per-query")
    assert code == 0 and "\x1b" not in out and "[31mt1" in out


# -- places that cannot be read or written ---------------------------------------------------------


ONE_BY_ONE = """
import sys
from sentemb.cli import main
given, arguments, codes = sys.argv[1:], [], ""
for part in given:
    if part != "end":
        arguments.append(part)
        continue
    try:
        main(arguments)
    except SystemExit as end:
        codes += str(end.code)
    arguments = []
print(codes, file=sys.stderr)
"""


def test_names_that_are_not_utf8(tmp_path, simulated):
    """The shell hands over any bytes; what is printed of them is not a traceback."""
    name = tmp_path.joinpath(os.fsdecode(b"caf\xe9"))
    commands = [
        ["simulate", "-o", name / "sim", "--pairs=60", "--dev-queries=4", "--test-queries=5"],
        ["compare", simulated, "-o", name / "out", "--models", "random"],
        ["evaluate", name / "x.run", simulated / "test"],
    ]
    # One process for all, and their arguments end with "end": to start each takes a second.
    given = [part for arguments in commands for part in (*map(str, arguments), "end")]
    done = run_forked(ONE_BY_ONE, *given)
    assert "Traceback" not in done.stderr, done.stderr
    assert re.fullmatch("[01]{3}", done.stderr.split()[-1]), done.stderr


@pytest.mark.parametrize("command", ["simulate", "onet"])
@pytest.mark.parametrize("force", [(), ("--force",)], ids=["", "force"])
def test_outputs_that_cannot_be(tmp_path, release, command, force):
    file = tmp_path / "file"
    file.write_text("kept")
    given = _making(command, release)
    assert "is a file" in refused(*given(file), *force)
    refused(*given(file / "below"), *force)
    assert "File name too long" in refused(*given(tmp_path / ("x" * 300)), *force, longest=600)
    assert file.read_text() == "kept"
    full = tmp_path / "full"
    (full / "pairs.tsv").mkdir(parents=True)
    refused(*given(full), *force)
    assert sorted(path.name for path in full.rglob("*")) == ["pairs.tsv"]


def _making(command, release):
    """A function of an output that gives the arguments of a command."""
    sizes = ("--pairs=60", "--dev-queries=4", "--test-queries=5")
    if command == "simulate":
        return lambda out: ("simulate", "-o", out, *sizes)
    return lambda out: ("data", "onet", release, "-o", out, "--dev=5", "--test=5")


@pytest.mark.parametrize("command", ["simulate", "onet"])
@pytest.mark.parametrize("place", ["new", "full"])
@pytest.mark.parametrize("count", [1, 4, 12])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path, release, command, place, count, monkeypatch
):
    """test_whole_folder.py lets each call fail; here is that the commands write by it."""
    top = tmp_path / "top"
    out = top / "deep" / "out"
    if place == "full":
        out.mkdir(parents=True)
        (out / "pairs.tsv").write_text("old")
    top.mkdir(exist_ok=True)
    before = tree(top)
    for error, codes in (
        (OSError(28, "No space left on device"), {1}),
        (KeyboardInterrupt(), {1, 130}),  # click's or the program's own
    ):
        with monkeypatch.context() as patch:
            calls = failing_calls(patch, ["fsync"], count, error)
            given = [*map(str, _making(command, release)(out)), "--force"]
            result = CliRunner().invoke(main, given)
        assert len(calls) >= count and result.exit_code in codes
        assert tree(top) == before
        if isinstance(error, OSError):
            (line,) = result.stderr.splitlines()
            assert "No space left" in line and str(out) in line and ".tmp" not in line


def test_what_may_not_be_looked_at_is_named(judged, run_file, release, simulated, monkeypatch):
    """As for an ordinary user who may not search a folder; root may."""

    def guarded(whole, hidden):
        def function(path, *rest, **more):
            if str(path).startswith(str(hidden)):
                raise PermissionError(13, "Permission denied", str(path))
            return whole(path, *rest, **more)

        return function

    for hidden, *arguments in (
        (judged, "evaluate", run_file, judged),
        (judged / "docs.tsv", "evaluate", run_file, judged),
        (run_file, "evaluate", run_file, judged),
        (release, "data", "onet", release, "-o", judged.parent / "out"),
        (
            release / "Read Me.txt",
            "data",
            "onet",
            release,
            "-o",
            judged.parent / "o",
            "--dev=5",
            "--test=5",
        ),
        (
            judged.parent / "p",
            "data",
            "onet",
            release,
            "-o",
            judged.parent / "p",
            "--dev=5",
            "--test=5",
        ),
        (judged.parent / "p", "simulate", "-o", judged.parent / "p"),
        (judged, "compare", judged, "-o", judged.parent / "out"),
    ):
        with monkeypatch.context() as patch:
            for name in ("stat", "lstat", "listdir", "scandir"):
                patch.setattr(os, name, guarded(getattr(os, name), hidden))
            result = CliRunner().invoke(main, [*map(str, arguments)])
        assert result.exit_code == 1, (arguments, result.exception)
        assert result.stderr.startswith(f"Error: {hidden}"), result.stderr
        assert "Permission denied" in result.stderr and result.stderr.count("\n") == 1


# -- compare ---------------------------------------------------------------------------------------


def test_other_wrong_input_of_compare(simulated, tmp_path, model_dir):
    out = tmp_path / "out"
    (tmp_path / "file").write_text("x")
    for arguments in (
        (simulated, "-o", out, "--models", ""),
        (simulated, "-o", out, "--models", ","),
        (simulated, "-o", out, "--models", "random,"),
        (simulated, "-o", out, "--models", LONG),
        (simulated, "-o", out, "--models", "\x1b[31m"),
        (simulated, "-o", out, "--models", "list,random"),
        (simulated, "-o", out, "--reference", LONG),
        (simulated, "-o", out, "--reference", "\x1b[31m"),
        (simulated, "-o", out, "--models", "random", "--reference", ""),
        (simulated, "-o", out, "--compare-with", tmp_path / "nothing"),
        (simulated, "-o", out, "--compare-with", tmp_path / "file"),
        (simulated, "-o", out, "--compare-with", ""),
        (simulated, "-o", out, "--compare-with", "/"),
        (simulated, "-o", out, "--models", "random", "--compare-with", model_dir)
        + ("--compare-with", model_dir),
        (simulated / "pairs.tsv", "-o", out),
        (tmp_path / "nothing", "-o", out),
        ("", "-o", out),
        (simulated, "-o", tmp_path / "file", "--models", "random"),
        (simulated, "-o", tmp_path / "file" / "below", "--models", "random"),
        (simulated, "-o", simulated, "--models", "random"),
        (simulated, "-o", tmp_path, "--models", "random", "--force"),
        (simulated,),
        (simulated, "-o", out, "--json", "--markdown"),
    ):
        refused("compare", *arguments)
        assert not out.exists(), arguments


def test_wrong_data_of_compare(simulated, tmp_path):
    out = tmp_path / "out"
    data = tmp_path / "data"
    for name, contents in (
        ("pairs.tsv", b""),
        ("pairs.tsv", b"\xff\n"),
        ("pairs.tsv", b"no tab\n"),
        ("pairs.tsv", LONG.encode()),
        ("pairs.tsv", f"{LONG}\ttitle\t{LONG}\n".encode()),
        ("pairs.tsv", b"q\tt\t" + HUGE.encode() + b"\n"),
        ("pairs.tsv", b"q\tt\t\x1b[31m\n"),
        ("dev/qrels.txt", b""),
        ("test/qrels.txt", b"x\n"),
        ("test/docs.tsv", b"x\n"),
        ("test/queries.tsv", b"\xff\xfe"),
    ):
        shutil.rmtree(data, ignore_errors=True)
        shutil.copytree(simulated, data)
        (data / name).write_bytes(contents)
        assert name in refused("compare", data, "-o", out, "--models", "random")
        assert not out.exists()


def test_the_code_of_gradcheck_is_that_of_a_failure():
    code, _, out = run("gradcheck", "--cells=2", "--lengths=1,2", "--form=printed", "--json")
    assert code == 1
    (report,) = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert not report["passed"] and np.isfinite(report["directional"])
