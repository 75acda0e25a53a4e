"""Indexes that are mutated, mixed, interrupted and made again in other processes."""

import copy
import hashlib
import itertools
import json
import linecache
import math
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from helpers import made_up_log, made_up_model, run_python

from reliability.count import Count
from reliability.samples import ALL_PARTS
from sentemb.bridges.export.targets import export
from sentemb.data.click_log import ClickLog
from sentemb.data.splitting import split_log
from sentemb.errors import SentembError
from sentemb.models.loading import load
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index import Index
from sentemb.search.index_tuning import calibrate, tune
from sentemb.search.ranking.opening import load_ranker
from sentemb.search.ranking.ranker import HybridRanker

WORDS = ["red", "green", "blue", "small", "large", "cotton", "hat", "bag", "coat", "shoe"]
QUERIES = ["red hat", "large cotton coat", "blue", "hat shoe", "nowhere", ""]
TESTS = Path(__file__).parents[1]
# In the place of every value of a description.
VALUES = (
    None, True, False, 0, 1, -1, 2, 3, 2**31 - 1, 2**31, 2**63, -(2**63), 10**40, 0.5, -0.5, 1e300,
    math.nan, math.inf, -math.inf, "", "x", "0", "float16", "int8", "../ids.txt", "a" * 64, [], [1],
    [[]], ["int8", 0], ["float32", 40, 6], {}, {"vectors": ["float32", 40, 6]}, {"cosine": 1},
    {"bytes": 1, "sha256": "0" * 64},
)  # fmt: skip
# Other finite values of these are another confidence, and right.
CONFIDENCE = ("intercept", "slope", "brier", "base_brier", "n_queries", "confidence")


def _titles(seed, n=40):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(1, 4))) for _ in range(n)]


def log_of(titles):
    """Clicks on most titles, on some of them for several queries."""
    return ClickLog.from_pairs(
        [(f"{WORDS[k % 10]} {WORDS[(3 * k + k // 10) % 10]}", titles[k % 37]) for k in range(70)]
    )


def later_of(titles):
    """Held-out clicks: of queries of the log, some on other titles, and of queries that it lacks.

    Of these the long ones are answered rightly, and their titles score high.
    """
    log, n = log_of(titles), len(titles)
    typed = [(log.queries[q], titles[q]) for q in range(min(n, len(log.queries)))]
    long = [(f"{titles[k]} x9", titles[k]) for k in range(0, n, 2)]
    return ClickLog.from_pairs(
        [*typed, *long, *((f"{WORDS[k % 9]} x{k}", titles[k]) for k in range(1, n, 2))]
    )


def made_index(seed=0, **settings):
    """An index with all parts; of another seed it has the same model, ids and number of titles."""
    titles = _titles(seed)
    model = made_up_model(("bag", {}), _titles(0), cells=6, dtype=np.float32)
    ranker = HybridRanker(model, ALL_PARTS, ClickedQueries.of(log_of(titles)), threads=1)
    made = Index.build(ranker, titles, [f"p{k}" for k in range(40)], threads=1, **settings)
    calibrate(made, later_of(titles))
    return made


def answers(index):
    """What an index finds and how it explains it."""
    return index.search(QUERIES, 60), index.explain("red hat", index.ids[:5])


# -- mutations -------------------------------------------------------------------------------------


def leaves(value, path=()):
    """The places of all values in a description."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for name, own in inner:
        yield (*path, name)
        if isinstance(own, dict | list):
            yield from leaves(own, (*path, name))


def with_value(told, path, value):
    """A description with another value in one place; no value at all for ``...``."""
    changed = copy.deepcopy(told)
    inside = changed
    for name in path[:-1]:
        inside = inside[name]
    if value is ...:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value
    return changed


def fault_of_mutation(folder, told, path, value, expected):
    """What is wrong with an index whose description has another value in one place, or None."""
    (folder / "index.json").write_text(json.dumps(with_value(told, path, value)))
    try:
        found = answers(Index.open(folder, 1))
    except SentembError as error:
        return "several lines" if "\n" in str(error) else None
    except Exception as error:
        return repr(error)
    finally:
        (folder / "index.json").write_text(json.dumps(told))
    if path[-1] not in CONFIDENCE and found != expected:
        return "other answers"
    scores = [hit.score for hits in found[0] for hit in hits]
    return None if np.isfinite(scores).all() else "scores that are not finite"


def mutated() -> Count:
    """Every value of ``index.json``, replaced by each of `VALUES`."""
    count = Count("descriptions")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "index"
        made_index().save(folder)
        expected = answers(Index.open(folder, 1))
        told = json.loads((folder / "index.json").read_bytes())
        for path, value in itertools.product(leaves(told), (..., *VALUES)):
            count.tried += 1
            fault = fault_of_mutation(folder, told, path, value, expected)
            if fault is not None:
                count.failures.append(f"{path} {value!r}: {fault}")
    return count


# -- mixtures --------------------------------------------------------------------------------------


def _files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


def swapped() -> Count:
    """Each file, and each pair of files, of an index or a model in the place of another's."""
    count = Count("swaps")
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        for dtype in ("float32", "int8"):
            for seed in (0, 1):
                made_index(seed, dtype=dtype).save(home / f"{dtype}{seed}")
            _swap(count, home / f"{dtype}0", home / f"{dtype}1", _of_index, home / "mixed")
        for seed in (0, 1):
            model = made_up_model(("bag", {}), _titles(0), cells=6, dtype=np.float32, seed=seed)
            model.save_pretrained(home / f"model{seed}")
            clicks = ClickedQueries.of(log_of(_titles(seed)))
            HybridRanker(model, ALL_PARTS, clicks).save(home / f"model{seed}")
        _swap(count, home / "model0", home / "model1", _of_model, home / "mixed")
        _swap(count, home / "model0", home / "model1", _of_ranker, home / "mixed")
    return count


def _swap(count, first, second, answers, mixed):
    whole = [answers(first), answers(second)]
    names = [name for name in _files(first) if name in _files(second)]
    refused = 0
    for some in [*((name,) for name in names), *itertools.combinations(names, 2)]:
        shutil.rmtree(mixed, ignore_errors=True)
        shutil.copytree(first, mixed)
        for name in some:
            shutil.copyfile(second / name, mixed / name)
        count.tried += 1
        try:
            found = answers(mixed)
        except SentembError:
            refused += 1
        except Exception as error:
            count.failures.append(f"{first.name} {some}: {error!r}")
        else:
            if found not in whole:
                count.failures.append(f"{first.name} {some}: a mixture answers")
    count.notes.append(f"{first.name}: {refused} are refused, the others answer as one of the two")


def _of_index(folder):
    return answers(Index.open(folder, 1))


def _of_model(folder):
    return load(folder, 1).encode_query(WORDS).tolist()


def _of_ranker(folder):
    return load_ranker(folder, threads=1).rank(QUERIES[:4])


# -- interrupts ------------------------------------------------------------------------------------


class _Stopped(BaseException):
    """As Ctrl-C: no handler of Exception sees it."""


def _traced(change, stop_at):
    """Call ``change()``, stopped at a line event in the package; the number of events."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if "/sentemb/" not in frame.f_code.co_filename:
            return None
        # No signal comes between the end of a body of `with` and its exit, where a trace does.
        line = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
        if event == "line" and not line.lstrip().startswith(("with ", ")")):
            seen += 1
            if seen == stop_at:
                raise _Stopped
        return trace

    sys.settrace(trace)
    try:
        change()
    except _Stopped:
        pass
    finally:
        sys.settrace(None)
    return seen


def interrupted() -> Count:
    """An exception at every line of add, remove, sync and adopt, and at many of save."""
    count = Count("interrupts")
    index = made_index()
    old = answers(index)
    other = index.ranker.alone("memory")
    changes = {
        "add": lambda one: one.add(["red cap", "hat hat"], ["n1", "n2"]),
        "remove": lambda one: one.remove(["p8", "p17"]),
        "sync": lambda one: one.sync(["red cap", *one.titles[3:9]], ["n1", *one.ids[3:9]]),
        "adopt": lambda one: one.adopt(one.ranked_by(other), one.snapshot),
    }
    for name, change in changes.items():
        changed = copy.copy(index)
        change(changed)
        possible = old, answers(changed)
        for number in range(1, _traced(partial(change, copy.copy(index)), 0) + 1):
            own = copy.copy(index)
            _traced(partial(change, own), number)
            count.tried += 1
            if answers(own) not in possible or len(own.ids) != len(own.titles):
                count.failures.append(f"{name} at event {number}: neither old nor new")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "index"
        index.save(folder)

        def prepared():
            shutil.rmtree(folder)
            index.save(folder)
            own = Index.open(folder, 1)
            own.remove(["p1", "p7"])
            return own

        # Each waits for the disk, so of the lines before the exchange some are taken.
        n = _traced(partial(prepared().save, folder, force=True), 0)
        for number in [*range(1, n - 60, 29), *range(n - 60, n + 1)]:
            own = prepared()
            _traced(partial(own.save, folder, force=True), number)
            count.tried += 1
            try:
                sizes = [len(Index.open(folder, 1))]
                own.save(folder, force=True)
                sizes.append(len(Index.open(folder, 1)))
            except SentembError as error:
                count.failures.append(f"save at event {number}: {error}")
            else:
                if sizes[0] not in (38, 40) or sizes[1] != 38:
                    count.failures.append(f"save at event {number}: {sizes} titles")
    return count


# -- the same bytes --------------------------------------------------------------------------------

CHILD = """
import sys
from reliability.indexes import written
written(sys.argv[1], int(sys.argv[2]))
"""


def written(folder, threads):
    """Write an index that is tuned and calibrated, and exports, into a folder."""
    place, log = Path(folder), made_up_log(200)
    model = made_up_model(("lstm", {}), [*log.queries, *log.titles], cells=8, dtype=np.float32)
    for dtype in ("float32", "int8"):
        train, dev, _ = split_log(log, dev=0.3, test=0)
        index = Index.build(model, log.titles, dtype=dtype, threads=threads)
        tune(index, dev, train)
        calibrate(index, dev)
        index.add(["a new title", "another"], ["x", "y"])
        index.remove(["0", "3"])
        index.save(place / dtype)
        export(index, place / f"{dtype}.html", "page")
        export(index, place / f"{dtype}-elastic", "elasticsearch")
    export(model, place / "onnx", "onnx")


def same_bytes() -> Count:
    """Tuned indexes and exports of processes with other hash seeds and numbers of threads."""
    count = Count("bytes")
    with tempfile.TemporaryDirectory() as place:
        found = []
        for seed, threads in ((0, 1), (1, 3), (77, 2)):
            folder = Path(place) / str(seed)
            folder.mkdir()
            run_python(
                CHILD, folder, threads, check=True, PYTHONHASHSEED=str(seed), PYTHONPATH=str(TESTS)
            )
            found.append(
                {
                    name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
                    for name in _files(folder)
                }
            )
        for name in sorted({*found[0], *found[1], *found[2]}):
            count.tried += 1
            if len({one.get(name) for one in found}) > 1:
                count.failures.append(name)
    return count


if __name__ == "__main__":
    for check in (mutated, swapped, interrupted, same_bytes):
        one = check()
        print(f"{one.name}: {one.fine} of {one.tried} fine")
        print(*(f"  {line}" for line in [*one.failures[:40], *one.notes]), sep="\n", flush=True)
