"""A second process that compiles kernels on the first start: it may fail, and leaves nothing."""

import contextlib
import time

import pytest
from click.testing import CliRunner
from helpers import made_up_log, run_forked

from sentemb import Index
from sentemb.cli import main
from sentemb.data.click_log import ClickLog
from sentemb.kernels.compiling import ahead
from sentemb.models.towers.registry import ENCODERS
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import EMBEDDING, PARTS, Recipe
from sentemb.training.negative_options import HARD_FROM_EPOCH
from sentemb.training.towers.rehearsal import CLICKS, JUDGED, rehearse
from sentemb.training.towers.settings import Settings

# `begin` forks a process that works; `sum_rows` prints hits and misses of the cache.
BEGIN = """
import _thread, os, sys, time
import numpy as np
count, of_the_parent = _thread._count, _thread._count()
_thread._count = lambda: count() - of_the_parent
from sentemb.kernels.compiling import ahead
from sentemb.kernels.input_layer import sum_rows
from sentemb.kernels.compiling.jit import kernel
from sentemb.system.parallel import limited_threads

def use_sum_rows(dtype=np.float32):
    sum_rows(np.zeros(2, dtype), np.ones((3, 2), dtype), 0, 3)

@kernel
def double(number):
    return 2 * number

def begin(dtype=np.float32):
    double(dtype(1))

def found():
    return sum(sum_rows.stats.cache_hits.values()), sum(sum_rows.stats.cache_misses.values())

def processes_are_gone():
    try:
        os.waitpid(-1, 0)
    except ChildProcessError:
        return True
"""

linux = pytest.mark.skipif("sys.platform != 'linux'", reason="forks on Linux alone")


def use(code, cache, *arguments):
    done = run_forked(BEGIN + code, *arguments, cache=cache)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@linux
def test_a_kernel_that_the_other_process_compiles_is_waited_for(tmp_path):
    code = """
with limited_threads(2), ahead.compiling_ahead(use_sum_rows):
    begin()
    while b"+sum_rows" not in ahead._ahead._names[:]:
        time.sleep(.01)
    use_sum_rows()
print(*found(), processes_are_gone())
"""
    assert use(code, tmp_path) == "1 0 True\n"


@linux
def test_the_other_process_may_fail_or_hang(tmp_path):
    code = """
for dtype, work in zip((np.float32, np.float64, np.int32, np.int64), sys.argv[1:], strict=True):
    with limited_threads(2), ahead.compiling_ahead(lambda: exec(work)):
        begin(dtype)  # another dtype needs another kernel
        child = ahead._ahead._child
        use_sum_rows(dtype)
    print(child > 0, *found(), processes_are_gone())
"""
    works = [
        "raise SystemExit('anything')",
        "os.kill(os.getpid(), 9)",
        "print('a line'); print('a line', file=sys.stderr); os.write(2, b'a line')",
        "time.sleep(1000)",
    ]
    expected = [f"True 0 {compiled} True" for compiled in (1, 2, 3, 4)]
    assert use(code, tmp_path, *works).splitlines() == expected


@linux
def test_a_process_that_ends_while_it_compiles_is_not_waited_for(tmp_path):
    code = """
def work():
    sum_rows._compiler.compile = lambda *arguments: os._exit(1)
    use_sum_rows()

with limited_threads(2), ahead.compiling_ahead(work):
    begin()
    while b"+sum_rows" not in ahead._ahead._names[:]:
        time.sleep(.01)
    use_sum_rows()
print(*found(), processes_are_gone())
"""
    assert use(code, tmp_path) == "0 1 True\n"


@linux
def test_the_other_process_ends_with_one_that_is_killed(tmp_path):
    """It shares the locks on files, and would keep the next training away."""
    import fcntl

    code = """
import fcntl
file = open(sys.argv[1], "w")
fcntl.flock(file, fcntl.LOCK_EX)
with limited_threads(2), ahead.compiling_ahead(lambda: time.sleep(1000)):
    begin()
    time.sleep(.1)
    os.kill(os.getpid(), 9)
"""
    done = run_forked(BEGIN + code, tmp_path / "lock", cache=tmp_path)
    assert done.returncode == -9
    with open(tmp_path / "lock") as file:
        for _ in range(600):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(0.1)
    raise AssertionError("the lock is still held")


@linux
def test_no_process_with_a_warm_cache_or_where_a_fork_is_a_risk(tmp_path):
    cold = """
import threading
os.fork, linux = None, sys.platform
with limited_threads(1), ahead.compiling_ahead(begin, print):
    begin()
sys.platform = "darwin"
with limited_threads(2), ahead.compiling_ahead(begin, print):
    begin(np.float64)
sys.platform = linux
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
with limited_threads(2), ahead.compiling_ahead(begin, print):
    begin(np.int32)
"""
    assert use(cold, tmp_path) == 3 * f"{ahead.NOTE}\n"
    warm = """
os.fork = None
with limited_threads(2), ahead.compiling_ahead(use_sum_rows, print):
    begin()
"""
    assert use(warm, tmp_path) == ""


@linux
def test_meanwhile_the_first_process_compiles_what_it_needs_later(tmp_path):
    code = """
def meanwhile():
    print(os.getpid() == parent)
    use_sum_rows()

parent = os.getpid()
with limited_threads(2), ahead.compiling_ahead(lambda: time.sleep(1000), None, meanwhile):
    begin()
print(*found())
"""
    assert use(code, tmp_path) == "True\n0 1\n"
    assert use(code, tmp_path) == "0 0\n"  # no kernel is missing


def test_a_process_cannot_be_forked(tmp_path):
    code = """
def fork():
    raise BlockingIOError

os.fork = fork
with limited_threads(2), ahead.compiling_ahead(begin):
    begin()
"""
    use(code, tmp_path)


# -- the work ---------------------------------------------------------------------------------


@pytest.fixture
def worked(monkeypatch):
    """The work is done by this process, so that its errors are seen; what has been done."""
    done = []

    @contextlib.contextmanager
    def at_once(work, note=None, meanwhile=None):
        work()
        if meanwhile is not None:
            meanwhile()
        done.append(True)
        yield

    monkeypatch.setattr(ahead, "compiling_ahead", at_once)
    return done


@pytest.fixture
def pairs(tmp_path):
    log, pairs = made_up_log(), tmp_path / "log.tsv"
    clicked = zip(log.query_index, log.title_index, strict=True)
    pairs.write_text("".join(f"{log.queries[q]}\t{log.titles[t]}\n" for q, t in clicked))
    return pairs


@pytest.mark.parametrize(
    ("name", "dev"), [*((name, JUDGED) for name in ENCODERS), ("lstm", CLICKS), ("lstm", None)]
)
def test_a_rehearsal_of_each_model(name, dev):
    assert rehearse(Settings.of(None, model=name), dev).encoder.name == name


def test_the_defaults_rehearse_the_kernels_of_their_dev_set_and_ranker(tmp_path, pairs, worked):
    of_run = ["--epochs", "1", "-o", f"{tmp_path}/model", "--force"]
    for options in (["--dev", "20%"], [], ["--no-ranker", "--dev", "20%"]):
        result = CliRunner().invoke(main, ["train", str(pairs), *options, *of_run])
        assert result.exit_code == 0, result.output
    assert len(worked) == 3


# Runs a command; prints the kernels that it compiles, or loads from the cache, besides those of the
# other process and those that this one compiles meanwhile.
NOT_REHEARSED = """
import contextlib, sys
from numba.core.dispatcher import Dispatcher
from sentemb.cli import main
from sentemb.kernels.compiling import ahead

def loaded():
    return {
        (name, str(signature))
        for module in list(sys.modules) if module.startswith("sentemb.kernels")
        for name, kernel in vars(sys.modules[module]).items() if isinstance(kernel, Dispatcher)
        and not kernel.targetoptions.get("no_cpython_wrapper")
        for signature in kernel.overloads
    }

@contextlib.contextmanager
def at_once(work, note=None, meanwhile=list):
    work()
    meanwhile()
    before.update(loaded())
    yield

before = set()
ahead.compiling_ahead = at_once
main(sys.argv[1:], standalone_mode=False)
print(*sorted({name for name, _ in loaded() - before}))
"""
# Of its forward and backward passes and of its mini-batches.
OF_THE_FIRST_PROCESS = {
    *("renumber", "titles_to_leave_out", "invert_lists", "invert_weighted_lists", "pack_blocks"),
    *("lstm_forward", "dense_softmax", "normalise_rows", "normalise_rows_backward"),
    *("add_matmul_rows", "add_matmul_columns", "add_rows", "lstm_backward"),
    *("set_recurrent_gradient", "gather_rows", "sum_rows", "sum_words"),
    *("add_parts", "copy_last_rows"),
}


def not_rehearsed(*arguments):
    done = run_forked(NOT_REHEARSED, *arguments, cache="")
    return set(done.stdout.splitlines()[-1].split())


def test_a_training_needs_few_kernels_that_its_rehearsal_does_not(tmp_path, pairs):
    epochs = HARD_FROM_EPOCH + 1  # the last one has hard negatives
    run = [pairs, "--dev", "20%", "--epochs", epochs, "-o", tmp_path / "model"]
    assert not_rehearsed("train", *run) <= OF_THE_FIRST_PROCESS


def test_a_search_needs_the_kernels_that_read_words_besides(tmp_path, model):
    clicks = ClickLog.from_pairs([("hotels", "hotels in shanghai")])
    weights = {part: 1.0 for part in PARTS if part != EMBEDDING}
    ranker = HybridRanker(model, Recipe(weights), ClickedQueries.of(clicks))
    Index.build(ranker, ["hotels in shanghai", "bath tub"]).save(tmp_path / "index")
    of_words = {"find_words", "add_words", "sum_features"}
    assert not_rehearsed("search", tmp_path / "index", "hotels") <= of_words


def test_search_score_and_encode_embed_a_word(tmp_path, model_dir, worked):
    titles, index = tmp_path / "titles.tsv", tmp_path / "index"
    titles.write_text("d1\thotels in shanghai\nd2\tbath tub repair\n")
    for command in (
        ["score", model_dir, "hotels", "shanghai hotels"],
        ["index", model_dir, titles, "-o", index],
        ["search", index, "hotels"],
        ["search", index, "hotels", "--cosine"],
        ["encode", model_dir, titles, "-o", tmp_path / "titles.npy"],
    ):
        result = CliRunner().invoke(main, list(map(str, command)))
        assert result.exit_code == 0, result.output
    assert len(worked) == 4
