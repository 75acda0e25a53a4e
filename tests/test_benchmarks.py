"""The parts of the benchmarks that reach into the package still find what they measure."""

import json
import subprocess
from pathlib import Path

import pytest
from helpers import forked, run_forked, run_python

FOLDER = Path(__file__).parents[1] / "benchmarks"

# Runs the code of each line it reads; answers with what was printed and the traceback, if any.
_RUNNER = """
import contextlib, io, json, sys, traceback
sys.path[:0] = sys.argv[1:]
for line in sys.stdin:
    code, sys.argv = json.loads(line)
    printed, failed = io.StringIO(), ""
    with contextlib.redirect_stdout(printed):
        try:
            exec(code, {"__name__": "__main__"})
        except BaseException:
            failed = traceback.format_exc()
    print(json.dumps([printed.getvalue(), failed]), flush=True)
"""


@pytest.fixture(scope="module")
def run():
    """A function that runs code in a process of its own and returns what it prints.

    Names such as `pages` and `floor` stay out of other tests. It is one process for the whole file,
    a fork: importing Numba, SciPy and PyTorch takes longer than what the tests do with them.
    """
    places = FOLDER, Path(__file__).parent
    with forked(_RUNNER, *places, stdin=subprocess.PIPE, stderr=None) as process:

        def run(code, *arguments):
            print(json.dumps([code, ["-c", *map(str, arguments)]]), file=process.stdin, flush=True)
            printed, failed = json.loads(process.stdout.readline())
            assert not failed, failed
            return printed

        yield run
        process.stdin.close()


_WHOLE_JOB = """
import json, sys
from synthetic import write_log
from whole_job import measure_reading, measure_whole_job

write_log(sys.argv[1], 200, trigrams=500)
seconds = measure_whole_job(sys.argv[1], 1, 1)
print(json.dumps([sorted(seconds), measure_reading(sys.argv[1])["lines"]]))
"""

_SIDE = """
import json, sys
from pathlib import Path
from floor import measure_lists, needs_of
from synthetic import write_log
from our_side import Ours

folder = Path(sys.argv[1])
write_log(folder / "log.tsv", 600, trigrams=500)
(folder / "case.json").write_text(
    json.dumps({
        "log": str(folder / "log.tsv"),
        "preset": "paper",
        "settings": {"cells": 4, "batch_size": 64},
    })
)
ours = Ours(folder, 1)
losses = [ours.train_step() for _ in range(3)]
assert all(0 < loss < 10 for loss in losses)
queries, titles = ours.texts_of_log()
assert ours.encode(titles[:3]).shape == (3, 4)
assert abs(ours.score(queries[0], titles[0])) <= 1
assert ours.prepare(folder)["pairs"] == 600
counts = ours.counts(2, folder)
exact, bound = (needs_of(counts | {"exact": share})["gathered"] for share in (1, 0))
# Every list of a trigram that several words have is read once more, in float32.
assert round(exact - bound) == round(4 * counts["shared"] * counts["width"]) > 0
assert min(needs_of(counts | {"exact": ours.exact_norms(1)}).values()) > 0
assert measure_lists(folder) > 0
print(sorted(ours.profile(1)))
"""


def test_a_whole_training_is_measured_by_part(run, tmp_path):
    printed = run(_WHOLE_JOB, tmp_path / "log.tsv")
    for part in ("reading", "vocabulary", "planning", "training", "saving", "whole"):
        assert f'"{part}"' in printed
    assert printed.rstrip().endswith("200]")


def test_our_side_of_the_speed_benchmark_runs(run, tmp_path):
    printed = run(_SIDE, tmp_path)
    assert "everything else" in printed and "lstm_backward" in printed


_RACE = """
import importlib.util, json, sys
from pathlib import Path
from synthetic import write_log
from contenders import contender_class
from rounds import Bench

folder = Path(sys.argv[1])
write_log(folder / "log.tsv", 600, trigrams=500)
bench = Bench(folder, 1, 1, "cpu", compared=6)
kinds = ["ours", "dense", "fused", "best", "lstm", "sparse_adam", "best_adam", "jax"]
for optimiser, forget_gate in (("nesterov", False), ("nesterov", True), ("adam", False)):
    settings = {"cells": 4, "batch_size": 64, "optimiser": optimiser, "forget_gate": forget_gate}
    case = bench.case(folder / "log.tsv", **settings)
    racers = {}
    for kind in kinds:
        of_adam = kind.endswith("adam")
        if kind == "jax" and importlib.util.find_spec("jax") is None:
            continue
        if kind != "ours" and of_adam != (optimiser == "adam"):
            continue
        racers[kind] = contender_class(kind)(case, 1)
        if kind == "ours":
            racers[kind].prepare(case)
    losses = {kind: [racer.train_step() for _ in range(6)] for kind, racer in racers.items()}
    assert len(losses) > 2 and losses["ours"][-1] != losses["ours"][0]
    for kind, values in losses.items():
        apart = max(abs(a - b) for a, b in zip(values, losses["ours"], strict=True))
        assert apart < 1e-4, (kind, optimiser, apart)
print("done")
"""


@pytest.mark.ci
def test_losses_of_all_contenders_agree(tmp_path):
    """In a fresh process: a fork has not the threads that PyTorch may have begun."""
    pytest.importorskip("torch")
    done = run_python(_RACE, tmp_path, PYTHONPATH=str(FOLDER))
    assert done.stdout.endswith("done\n"), done.stderr


_RECORD = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import pages, speed_record

folder = Path(sys.argv[2])
pages.RESULTS, pages.page_of = folder, lambda name: folder / "speed.md"
markers = "<!-- speed-record:begin -->\\n\\n-\\n\\n<!-- speed-record:end -->"
text = ["# Speed", "Machine: y.", "## Record", markers, "z"]
(folder / "speed.md").write_text("\\n\\n".join(text))
keys = {"commit": "abc", "date": "2026-01-01", "processor": "P"}
row = keys | dict.fromkeys(speed_record.FIGURES, "2.00")
speed_record.add(row | {"uniform, best": ""})
speed_record.add(row | {"compile training (s)": "3.00"})  # in place of the first
speed_record.add(row | {"commit": "def"})
before, after = pages.read_csv(speed_record.FILE)
assert before["compile training (s)"] == "3.00" and after["commit"] == "def"
page = (folder / "speed.md").read_text()
assert page.count("## Record") == 1 and "Machine: y." in page and page.endswith("z")
assert "\\n".join(speed_record.record_table([before, after])) in page
found = speed_record.changes(after | {"encode 1": "1.50"}, before)
assert [line.split()[-1] for line in found if "%" not in line.split()[-1]] == ["worse", "better"]

speed_record.ROOT = folder
subprocess.run(["git", "init", "-q", folder], check=True)
speed_record.committed()
"""


def test_the_record_of_speed_has_a_row_for_every_commit_and_only_for_commits(tmp_path):
    done = run_forked(_RECORD, FOLDER, tmp_path)
    assert done.returncode == 1
    assert "commit these first" in done.stderr and "speed.md" in done.stderr


# Logs and judged sets in the layout of the shared ones, in which some titles are never clicked.
_SYSTEMS = """
import json, sys
from functools import partial
from pathlib import Path
from helpers import made_up_judged_set, made_up_log
from sentemb.data.click_log import write_click_log
from sentemb.data.judged_set import write_judged_set
import held_out, learning_curve, robustness, slices, systems

data, build = Path(sys.argv[1]) / "data", Path(sys.argv[1]) / "build"
log = made_up_log(120)
(data / "tldr").mkdir(parents=True)
write_click_log(log, data / "tldr" / "pairs.tsv")
for part, seed in (("dev", 1), ("test", 2)):
    write_judged_set(made_up_judged_set(made_up_log(60, seed)), data / "tldr" / part)
systems.train = partial(systems.train, epochs=1, cells=4)
"""

_CURVE = f"""{_SYSTEMS}
found = {{n: learning_curve.measure(data, "tldr", n, 1, build, build) for n in (4, 1)}}
assert found[4]["queries"] == round(len(log.queries) / 4) and found[1]["pairs"] == 120
assert set(found[1]["systems"]) == set(systems.SYSTEMS)
tables = learning_curve.tables_of({{"tldr": found}})
lines = [line for table in tables.values() for line in table]
assert sum(line.startswith("| 1/4 | ") for line in lines) == 2
whole = systems.trained(build / "tldr" / "seed-0", None, None)  # not trained again
assert whole.training["pairs"] == 120
print("done")
"""

_RANKING = f"""{_SYSTEMS}
import ranking
from sentemb import ClickLog

(data / "other").mkdir()
for part in ("dev", "test"):  # new queries for titles of the log
    clicked = zip(log.query_index.tolist(), log.title_index.tolist(), strict=True)
    asked = ClickLog.from_pairs(
        (f"{{log.queries[q]}} {{part}} {{n}}", log.titles[t]) for n, (q, t) in enumerate(clicked)
    )
    write_judged_set(made_up_judged_set(asked), data / "tldr" / part)
write_judged_set(made_up_judged_set(made_up_log(60, 3)), data / "other" / "test")
ranking.SETTINGS = {{"defaults": ("", {{}}, (0, 1), ((0, 1),))}}
found = ranking.measure(data, "tldr", "defaults", 1, build)
assert set(found["one"][0]) == {{*ranking.OF_WORDS, *ranking.OF_MODEL}}
trials = {{
    trial: ranking.run_trial(data, "tldr", trial, 1, build, ("tldr", "other"))
    for trial in ranking.TRIALS
}}
n_queries = len(found["one"][0]["ranker"]["hit@1"])
assert 0 < sum(trials["new-titles"]["is_new"]) < n_queries
assert list(trials["stray-clicks"]) == ["0", "0.04", "0.1"]
assert [n for n, *_ in trials["floor"].values()] == [24, 200, 12]
tables = ranking.tables_of({{"tldr": {{"defaults": found}}}}, {{"tldr": trials}})
assert len(tables) == 8
lines = [line for table in tables.values() for line in table]
assert sum(line.startswith("| without clicks |") for line in lines) == 4
assert any("rank fusion | 0." in line or "rank fusion | 1." in line for line in lines)
print("done")
"""

_SLICES = f"""{_SYSTEMS}
found = slices.measure(data, "tldr", 1, build)
every = sum(found["slices"]["all"])
of_words = ("one word", "two words", "three or four words", "five or more words")
assert sum(sum(found["slices"][label]) for label in of_words) == every > 5
assert set(found["figures"]) == {{*systems.SYSTEMS, slices.TWO}}
for same, shared in found["churn"].values():
    assert 0 <= same <= 1 and 0 <= shared <= 1
near = slices.nearest_in_log(["red cars", "blue sky", "x"], ["the red car", "blue sky"])
assert near.tolist() == [2 / 3, 1, 0]
assert any("| model |" in line for line in slices.tables_of({{"tldr": found}})["Churn"])
typed = robustness.measure_systems("tldr", data, 1, build)
for part in typed.values():
    assert part["clean"]["changed"] == 0
    assert part["in capitals"]["changed"] == part["with ?"]["changed"] > 0
    assert part["in capitals"]["model"] == part["clean"]["model"]
clean, mistyped, again = (
    robustness.trained_with_typos(log, share, epochs=1, cells=4).encode_query(log.queries)
    for share in (0, 0.5, 0.5)
)
assert (mistyped != clean).any() and (mistyped == again).all()
held_out.BUILD, held_out.SHARE = build / "held-out", 0.2
for by in held_out.WAYS:
    lines = held_out.section(data, "tldr", by)
    assert sum(line.startswith("| ranker") for line in lines) == 2, lines
print("done")
"""


def test_a_learning_curve_of_two_shares(run, tmp_path):
    assert run(_CURVE, tmp_path).endswith("done\n")


def test_the_ranker_and_its_trials(run, tmp_path):
    assert run(_RANKING, tmp_path).endswith("done\n")


@pytest.mark.slow
def test_slices_churn_robustness_and_held_out_clicks_of_rankers(run, tmp_path):
    assert run(_SLICES, tmp_path).endswith("done\n")


_WORD_MATCH = """
import sys
from helpers import made_up_log
import index_speed

log = made_up_log(120)
(table,) = index_speed.word_match(log.titles, [*log.queries, "nothing-like-it"]).values()
assert sum("ms" in line for line in table) == 3, table
print("done")
"""


@pytest.mark.slow
def test_bm25s_finds_the_same_scores(run):
    for package in ("bm25s", "faiss"):
        pytest.importorskip(package)
    assert run(_WORD_MATCH).endswith("done\n")


_TABLES = """
import sys
from pathlib import Path
import import_speed

folder = Path(sys.argv[1])
head = "time,query,sku,title,clicks"
(folder / "clicks.csv").write_text(f'{head}\\r\\n1,tv,p1,"A, TV",2\\r\\n2,bed,p2,Bed,1\\r\\n')
jobs = import_speed.jobs(folder, True)
assert min(import_speed.run(*jobs[import_speed.ARROW_READS])) > 0
for name in (import_speed.OTHER, import_speed.ARROW):
    import_speed.run(*jobs[name])
    text = (folder / "pairs.tsv").read_text().replace('"', "")  # pyarrow quotes all texts
    assert text == "tv\\tA, TV\\t2\\nbed\\tBed\\t1\\n", (name, text)
    (folder / "pairs.tsv").unlink()
print("done")
"""


def test_pandas_and_pyarrow_write_the_same_columns(run, tmp_path):
    for package in ("pandas", "pyarrow"):
        pytest.importorskip(package)
    assert run(_TABLES, tmp_path).endswith("done\n")


# The package that is a contender, and the benchmarks that import it.
CONTENDERS = {
    "torch": ("torch_models", "pair_speed", "transformer", "embedding", "traffic_transformer"),
    "faiss": ("index_speed",),
    "jax": ("jax_models",),
    "tantivy": ("large_index",),
}


@pytest.mark.parametrize("contender", [None, *CONTENDERS])
def test_all_benchmarks_import(run, contender):
    if contender:
        pytest.importorskip(contender)
    needing = {name: package for package, names in CONTENDERS.items() for name in names}
    names = [path.stem for path in sorted(FOLDER.glob("*.py"))]
    some = [name for name in names if needing.get(name) == contender]
    code = f"""
import importlib, traceback
failed = []
for name in {some}:
    try:
        importlib.import_module(name)
    except Exception:
        failed.append(name)
        traceback.print_exc()
assert not failed, failed
"""
    run(code)


def test_a_task_goes_to_the_first_thread_that_is_free(run):
    code = """
from speed_cores import Phase, span
beside = [Phase(1, [4], aside=True), Phase(1, [1, 1, 1, 1])]
for phases in ([Phase(0, [3, 1, 1, 2])], beside):
    print([span(phases, threads) for threads in (1, 2, 9)])
"""
    # With two threads: 3, and 1 + 1 + 2; then 4 tasks from 2 to 6 on the thread that is left.
    assert run(code).split("\n")[:2] == ["[7.0, 4.0, 3.0]", "[10.0, 6.0, 5.0]"]
