"""The public face: exceptions at every step, forks, threads, savers and readers, a long soak."""

import copy
import gc
import linecache
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from helpers import made_up_log, made_up_model, made_up_texts

import sentemb
from reliability.count import Count
from sentemb import PairScorer, SentembError, SentenceEncoder
from sentemb.models.pairs import make_pair_model
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

PACKAGE = str(Path(sentemb.__file__).parent)


def texts_of(seed, count=300, n_words=400):
    rng = np.random.default_rng(seed)
    return made_up_texts(rng, rng.integers(1, 12, count), n_words)


TEXTS = texts_of(0)


def model_of(threads=2, **settings):
    model = made_up_model(("lstm", settings), TEXTS, cells=8, dtype=np.float32)
    return SentenceEncoder(model.encoder, model.vocabulary, model.weights, threads=threads)


def scorer_of(threads=2):
    """A pair model that knows the words of `TEXTS`."""
    model = make_pair_model("arc2", embedding=6, maps=(5, 4), mlp=7, max_words=9)
    vocabulary = Vocabulary.collect(tokenize(TEXTS), word_features=2)
    weights = model.initialise(len(vocabulary), np.random.default_rng(0))
    return PairScorer(model, vocabulary, weights, threads=threads)


def answers(model):
    """What every public method that computes says, in a form that can be compared."""
    queries, titles = TEXTS[:7], TEXTS[7:30]
    if isinstance(model, PairScorer):
        pairs = np.indices((7, 23)).reshape(2, -1)
        return {
            "score_pairs": model.score_pairs(queries, titles, *pairs).tobytes(),
            "score": model.score(queries[0], titles).tobytes(),
            "rank": repr(model.rank(queries[1], titles, top_k=5)),
            "parameters": model.parameters()["W1x"].tobytes(),
            "astype": model.astype("float64").score(queries[0], titles).tobytes(),
        }
    trace = model.trace(TEXTS[3])
    pairs = np.arange(7), np.arange(7) + 2
    Q, D = model.encode_query(queries), model.encode_document(titles)
    return {
        "encode": model.encode(TEXTS[:100]).tobytes(),
        "encode_query": Q.tobytes(),
        "encode_document": D.tobytes(),
        "similarity": model.similarity(Q, D).tobytes(),
        "similarity_pairwise": model.similarity_pairwise(Q, D[:7]).tobytes(),
        "score": model.score(queries[0], titles).tobytes(),
        "score_pairs": model.score_pairs(queries, titles, *pairs).tobytes(),
        "rank": repr(model.rank(queries[1], titles, top_k=5)),
        "trace": trace.y.tobytes() + trace.i.tobytes(),
        "parameters": model.parameters()["query"]["Wrec1"].tobytes(),
        "astype": model.astype("float64").encode_query(queries).tobytes(),
    }


# -- exceptions ------------------------------------------------------------------------------------


class Stop(BaseException):
    """Stands for Ctrl-C."""


STEPS = {
    "a line": (sys.settrace, "line", Stop),
    "a call": (sys.setprofile, "c_call", MemoryError),
}


def _score(scorer, texts):
    """The scores of each text with the next one."""
    first = np.arange(len(texts))
    return scorer.score_pairs(texts, texts, first, np.roll(first, 1))


# What is asked of which model.
ASKED = {"encode": (model_of, SentenceEncoder.encode), "score_pairs": (scorer_of, _score)}


def exceptions(every: int = 1, first: int = 150, asked: tuple = tuple(ASKED)) -> Count:
    """Raise at every line and at every call of C code (every allocation) of some of `ASKED`.

    Afterwards the model's answers are those of a fresh one. The first ``first`` steps are taken one
    by one, later ones ``every`` so manyth: they are loops over texts and words.
    """
    count = Count("an exception at a step of encode or score_pairs")
    texts = [*TEXTS[:40], "a" * 150]
    for name in asked:
        make, ask = ASKED[name]
        expected = ask(make(1), texts)
        for step, (install, event, exception) in STEPS.items():
            # Projecting words, embedding remembered ones, and both after a first call.
            for before in ([], texts, texts[:20]):
                at, stopped = 0, True
                while stopped:
                    model = make(1)
                    ask(model, before)
                    stopped = _stopped(lambda: ask(model, texts), install, event, exception, at)  # noqa: B023
                    count.tried += 1
                    if not np.array_equal(ask(model, texts), expected):
                        count.failures.append(f"{name}: {exception.__name__} at {step} {at}")
                    at += 1 if at < first else every
                count.notes.append(f"{name}: {step}, {len(before)} texts before: {at} steps")
    return count


def _stopped(function, install, event, exception, at):
    """Call ``function``; whether it was ended by ``exception`` at event number ``at``."""
    seen, entered = 0, set()

    def watch(frame, what, argument):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        # A lock is released without any allocation.
        releases = what == "c_call" and argument.__name__ in ("__exit__", "release")
        if what == event and not releases and not _cannot_raise(frame, entered):
            seen += 1
            if seen > at:
                raise exception
        return watch

    install(watch)
    try:
        function()
    except exception:
        return True
    finally:
        install(None)
    return False


def _cannot_raise(frame, entered):
    """Whether the line is a ``try:``, or a ``with`` again, which is about to leave its body.

    Python does not look for signals there: neither line calls anything before what it protects is
    protected. A trace function can raise there all the same, and the ``with`` is not left then.
    """
    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    if line == "try:":
        return True
    if not line.startswith("with "):
        return False
    place = id(frame), frame.f_lineno
    again = place in entered
    entered.add(place)
    return again


# -- forks, processes, threads ---------------------------------------------------------------------


def in_a_fork(function, seconds=30):
    """What ``function()`` returns in a forked child; a `RuntimeError` if it dies or hangs."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(seconds)
            os.close(reader)
            with open(writer, "wb") as file:
                pickle.dump(function(), file)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as file:
        said = file.read()
    os.waitpid(child, 0)
    if not said:
        raise RuntimeError("the child died or hung")
    return pickle.loads(said)


def processes_and_threads(rounds: int = 5) -> Count:
    """Compare all answers, bit by bit, of threads, forks, spawned and pickled models."""
    count = Count("threads and processes")
    for make in (model_of, scorer_of):
        _one_of_many(count, make(2), rounds)
    return count


def _one_of_many(count, model, rounds):
    expected = answers(model)

    def enter(what, found):
        count.tried += 1
        if found != expected:
            count.failures.append(f"{what}: other answers")

    with ThreadPoolExecutor(8) as threads:
        for found in threads.map(lambda _: answers(model), range(8 * rounds)):
            enter("one of eight threads", found)
    stop = threading.Event()

    def keep_busy():
        while not stop.is_set():
            answers(model)

    busy = [threading.Thread(target=keep_busy) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(rounds):
            try:
                enter("a fork beside busy threads", in_a_fork(lambda: answers(model)))
            except RuntimeError as error:
                count.tried += 1
                count.failures.append(f"a fork beside busy threads: {error}")
    finally:
        stop.set()
        for thread in busy:
            thread.join()
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            for found in pool.map_async(answers, [model] * rounds).get(timeout=120):
                enter(f"a process by {method}", found)
    for what, copied in {
        "a pickled copy": pickle.loads(pickle.dumps(model)),
        "a deep copy": copy.deepcopy(model),
    }.items():
        enter(what, answers(copied))


TRAINING = """
import sys
sys.path.insert(0, sys.argv[1])
from helpers import made_up_log
import sentemb
try:
    sentemb.train(made_up_log(), output=sys.argv[2], cells=6, epochs=40, batch_size=16, threads=1,
                  seed=int(sys.argv[3]), force=True)
    print("trained")
except sentemb.SentembError as error:
    print(error)
"""


def one_writer(rounds: int = 5) -> Count:
    """Two trainings at once into one folder, and readers beside a saver."""
    count = Count("one writer, many readers")
    helpers = Path(__file__).parents[1]
    with tempfile.TemporaryDirectory(prefix="sentemb-faces-") as home:
        for number in range(rounds):
            folder = Path(home, f"m{number}")
            command = [sys.executable, "-c", TRAINING, helpers, folder]
            running = [
                subprocess.Popen([*command, seed], stdout=subprocess.PIPE, text=True)
                for seed in ("0", "1")
            ]
            said = sorted(process.communicate(timeout=120)[0].strip() for process in running)
            count.tried += 1
            # Both may train, one after the other.
            if not (said[-1] == "trained" and (said[0] == "trained" or "another pro" in said[0])):
                count.failures.append(f"two trainings: {said}")
            SentenceEncoder.from_pretrained(folder, threads=1)
        _readers(count, Path(home, "saved"), rounds)
    return count


def _readers(count, folder, rounds):
    models = [
        made_up_model(("lstm", {}), TEXTS, cells=4, dtype=np.float32, seed=seed) for seed in (0, 1)
    ]
    expected = {model.encode(TEXTS[0]).tobytes() for model in models}
    models[0].save_pretrained(folder)
    saved = threading.Event()

    def read():
        while not saved.is_set():
            count.tried += 1
            try:
                found = SentenceEncoder.from_pretrained(folder, threads=1).encode(TEXTS[0])
                if found.tobytes() not in expected:
                    count.failures.append("a reader beside a saver: neither the old nor the new")
            except SentembError as error:
                count.failures.append(f"a reader beside a saver: {error}")

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(5 * rounds):
        models[number % 2].save_pretrained(folder, force=True)
    saved.set()
    reader.join()


# -- a soak ----------------------------------------------------------------------------------------

CEILING = 600 << 20
# What a long-running process may take more at its end than once it is warm.
MOST_MORE_MEGABYTES = 20


def soak(n: int, seed: int = 0) -> Count:
    """Encode ``n`` random texts of all Unicode, alone and together, with words of a megabyte.

    The same bits alone, in a batch and from a fresh encoder, all finite, and at most `CEILING`
    bytes of memory more than at the start.
    """
    count = Count("random Unicode texts encoded")
    rng = np.random.default_rng(seed)
    model = model_of(2)
    model.encode(TEXTS)
    before = _peak()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some texts have no words
        while count.tried < n:
            texts = [_random_text(rng) for _ in range(min(1000, n - count.tried))]
            if rng.random() < 0.05:
                texts[0] = "".join(map(chr, rng.integers(0x61, 0x7B, 1 << 20)))
            together = model.encode(texts)
            alone = np.stack([model.encode(text) for text in texts])
            wrong = ~np.isfinite(together).all(axis=1) | (together != alone).any(axis=1)
            if rng.random() < 0.05:
                wrong |= (model_of(1).encode(texts) != together).any(axis=1)
            count.tried += len(texts)
            count.failures += [f"{texts[k][:80]!r}" for k in np.flatnonzero(wrong)]
    more = _peak() - before
    count.notes.append(
        f"{more / 2**20:.0f} MB more memory than at the start, at most {CEILING >> 20} allowed"
    )
    if more > CEILING:
        count.failures.append(count.notes[-1])
    return count


def trained_soak(rounds: int) -> Count:
    """Train, save, open, index, search and predict in one process, again and again.

    The same bits each time; and after a first fifth neither memory nor open files grow.
    """
    count = Count("rounds of training and prediction in one process", tried=rounds)
    log, expected = made_up_log(), {}
    sizes = []
    with tempfile.TemporaryDirectory(prefix="sentemb-soak-") as place:
        for number in range(rounds):
            name, settings = _SOAKED[number % len(_SOAKED)]
            found = _trained(log, Path(place, "m"), {"model": name, **settings})
            if expected.setdefault(name, found) != found:
                count.failures.append(f"round {number}, {name}: other bits than before")
            gc.collect()
            sizes.append(size_of(os.getpid()))
    warm = max(len(_SOAKED), rounds // 5)
    first, last = sizes[warm - 1], sizes[-1]
    count.notes.append(
        f"after {warm:,} and {rounds:,} rounds: {first[0]:.1f} and {last[0]:.1f} MB, "
        f"{first[1]} and {last[1]} open files"
    )
    if last[0] - first[0] > MOST_MORE_MEGABYTES or last[1] > first[1]:
        count.failures.append(count.notes[-1])
    return count


_SOAKED = (
    ("lstm", {"cells": 6, "hard_negatives": 2}),
    ("bag", {"cells": 6}),
    ("dssm", {"cells": 6, "hidden": 4}),
    ("arc2", {"embedding": 4, "maps": (3, 2), "mlp": 4}),
)


def _trained(log, folder, settings):
    """A training, and all that its model says once it was saved and opened again."""
    given = {"epochs": 3, "batch_size": 16, "threads": 2, **settings}
    sentemb.train(log, output=folder, force=True, **given)
    model = sentemb.load(folder, threads=2)
    queries, titles = log.queries[:20], log.titles[:20]
    if isinstance(model, PairScorer):
        return [model.score(query, titles).tobytes() for query in queries]
    index = sentemb.Index.build(model, titles, threads=2)
    index.save(folder / "index", force=True)
    hits = sentemb.Index.open(folder / "index", 2).search(queries)
    return model.encode_query(queries).tobytes(), repr(hits)


def size_of(process: int) -> tuple[float, int]:
    """Resident megabytes and open files of a process."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024, len(os.listdir(f"/proc/{process}/fd"))


def _random_text(rng):
    """Up to 30 characters, mostly of one block of Unicode, cut into words."""
    first = int(rng.choice([0x20, 0x61, 0xC0, 0x370, 0x4E00, 0xAC00, 0x1F300, 0x10000, 0x300]))
    points = first + rng.integers(0, rng.choice([26, 500, 20_000]), rng.integers(0, 30))
    points[rng.random(points.size) < 0.2] = 0x20
    points[(points >= 0xD800) & (points < 0xE000)] = 0x61
    return "".join(map(chr, points))


def _peak():
    """The most memory this process had so far, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
