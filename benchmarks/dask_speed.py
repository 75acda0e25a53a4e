"""Training steps, encoding and look-ups on local workers of Dask, against threads of one process.

The contenders alternate in one run; times are medians of wall-clock time, because the work is
divided among processes. The log is `msdocs_index`. Writes docs/results/dask.md.

    python benchmarks/dask_speed.py [--quick]
"""

import argparse
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from pages import DATA, machine, write_results

from sentemb.data.click_log import read_click_log
from sentemb.models.cluster_encoding import encoded, portions_of
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.cluster import opened
from sentemb.system.parallel import Workers
from sentemb.system.tables import markdown_table
from sentemb.training.batches.corpus import Corpus
from sentemb.training.negatives import hard_negatives
from sentemb.training.recurrences import divided_words
from sentemb.training.settings import Settings
from sentemb.training.two_tower_task import TwoTowerTask

SIZES = (512, 2048, 8192)
# Name, threads of this process, workers.
CONTENDERS = (("1 thread", 1, 0), ("2 threads", 2, 0), ("1 worker", 1, 1), ("2 workers", 1, 2))
ESTIMATED_WORKERS = (2, 4, 8)
GIGABITS = (1, 10)
DIM = 96


class TimedScans:
    """The recurrences of an encoder in this process, and the seconds that they take."""

    def __init__(self, encoder):
        self._encoder = encoder
        self.seconds = 0.0

    def forward_scans(self, *arguments):
        states, tasks = self._encoder.forward_scans(*arguments)
        return states, [(self._run, task) for task in tasks]

    def backward_scans(self, *arguments):
        scanned, tasks = self._encoder.backward_scans(*arguments)
        return scanned, [(self._run, task) for task in tasks]

    def _run(self, task):
        began = time.perf_counter()
        task[0](*task[1:])
        self.seconds += time.perf_counter() - began


def medians(contenders, rounds):
    """Median seconds of each function by its name; they alternate, and the first round is extra."""
    seconds = {name: [] for name in contenders}
    for _ in range(rounds + 1):
        for name, function in contenders.items():
            began = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - began)
    return {name: float(np.median(some[1:])) for name, some in seconds.items()}


class Step:
    """Updates of one contender, one after the other; what is planned before is not timed."""

    def __init__(self, corpus, settings, threads, cluster):
        self.workers = Workers(threads)
        self.task = TwoTowerTask(corpus, settings, self.workers, print, cluster=cluster)
        self.batches = [self.task.plan(0, step) for step in range(min(3, self.task.steps))]
        self.done = 0

    @property
    def scans(self):
        return self.task.towers.passes.scans

    def __call__(self):
        self.task.update(self.batches[self.done % len(self.batches)], self.done)
        self.done += 1


def steps(log, clusters, rounds):
    """The table of times, and for each size the milliseconds and megabytes of an estimate."""
    rows = [["pairs", *(name for name, *_ in CONTENDERS), "sent MB", "received MB", "by words MB"]]
    parts = []
    for size in SIZES:
        settings = Settings(batch_size=size, hard_negatives=0)
        corpus = Corpus(log, settings)
        contenders = {
            name: Step(corpus, settings, threads, clusters.get(count))
            for name, threads, count in CONTENDERS
        }
        times = medians(contenders, rounds)
        remote = contenders["2 workers"]
        sent, received = (x / remote.done / 1e6 for x in (remote.scans.sent, remote.scans.received))
        timed = Step(corpus, settings, 1, None)
        timed.task.towers.passes.scans = TimedScans(timed.task.towers.encoder)
        timed()
        timed.scans.seconds = 0.0
        whole = medians({"timed": timed}, rounds)["timed"]
        recurrent = timed.scans.seconds / (timed.done - 1)
        by_words = np.mean([words_megabytes(batch, received) for batch in remote.batches])
        cells = [f"{1e3 * seconds:,.0f} ms" for seconds in times.values()]
        rows.append([f"{size:,}", *cells, f"{sent:.1f}", f"{received:.1f}", f"{by_words:.1f}"])
        parts.append((size, whole - recurrent, recurrent, sent + received))
        print(rows[-1], flush=True)
    return rows, parts


def words_megabytes(batch, received):
    """What two workers would send back with sums by words in place of the errors of all tokens."""
    megabytes = received
    for layout in batch[1].values():
        width = 4 * 3 * DIM / 1e6  # three gates in float32
        megabytes += (divided_words(layout.packing, 2) - layout.packing.n_rows) * width
    return megabytes


def limits(parts):
    """Amdahl's law for the measured parts, and the estimated steps of clusters."""
    estimated = [f"{p} workers, {g} Gb/s" for g in GIGABITS for p in ESTIMATED_WORKERS]
    rows = [["pairs", "driver", "recurrences", "most that workers can gain", *estimated]]
    for size, serial, recurrent, megabytes in parts:
        gain = (serial + recurrent) / serial
        guesses = [
            f"{1e3 * (serial + recurrent / p) + 8 * megabytes / g:,.0f} ms"
            for g in GIGABITS
            for p in ESTIMATED_WORKERS
        ]
        cells = [f"{1e3 * serial:,.0f} ms", f"{1e3 * recurrent:,.0f} ms", f"{gain:.1f}"]
        rows.append([f"{size:,}", *cells, *guesses])
    return rows


def titles_of(log, count):
    """Titles of random words of the titles of a log."""
    rng = np.random.default_rng(0)
    words = np.array(sorted({word for title in log.titles for word in title.split()}))
    lengths = rng.integers(2, 9, size=count)
    drawn = iter(words[rng.integers(len(words), size=lengths.sum())].tolist())
    return [" ".join(next(drawn) for _ in range(length)) for length in lengths]


def encoding(log, clusters, count, rounds):
    """Seconds of each contender for ``count`` titles."""
    settings = Settings(batch_size=512, hard_negatives=0)
    with Workers(1) as workers:
        saved = TwoTowerTask(Corpus(log, settings), settings, workers, print).model()
    titles = titles_of(log, count)
    contenders = {}
    for name, threads, workers in CONTENDERS:
        model, cluster = SentenceEncoder.of(saved, threads), clusters.get(workers)

        def encode(model=model, cluster=cluster):
            for _ in encoded(model, portions_of(titles), "document", cluster=cluster):
                pass

        contenders[name] = encode
    return medians(contenders, rounds)


def look_up(clusters, size, rounds):
    """Seconds of each contender for a look-up of as many queries as titles."""
    rng = np.random.default_rng(0)
    U = rng.standard_normal((2, size, DIM), dtype=np.float32)
    U /= np.linalg.norm(U, axis=2, keepdims=True)
    clicked = np.arange(size + 1), rng.integers(size, size=size).astype(np.int32)
    contenders = {}
    for name, threads, workers in CONTENDERS:

        def find(threads=threads, count=workers):
            with Workers(threads) as own:
                hard_negatives.nearest_titles(*U, clicked, own, lambda: False, clusters.get(count))

        contenders[name] = find
    return medians(contenders, rounds)


def row(what, times):
    cells = [f"{seconds:.2f} s" for seconds in times.values()]
    print(what, cells, flush=True)
    return [what, *cells]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less work, in three minutes")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    file = options.data / "msdocs_index" / "pairs.tsv"
    if not file.exists():
        sys.exit(f"{file} not found")
    rounds = 3 if options.quick else 9
    n_titles = 200_000 if options.quick else 1_000_000
    exact, clustered = (5_000, 20_000) if options.quick else (7_000, 300_000)
    log = read_click_log(file)
    with ExitStack() as stack:
        clusters = {count: stack.enter_context(opened(f"local:{count}")) for count in (1, 2)}
        times, parts = steps(log, clusters, rounds)
        head = ["", *(name for name, *_ in CONTENDERS)]
        bulk = [
            head,
            row(f"encoding {n_titles:,} titles", encoding(log, clusters, n_titles, rounds)),
            row(f"look-up, {exact:,} × {exact:,}", look_up(clusters, exact, rounds)),
            row(
                f"look-up by clusters, {clustered:,} × {clustered:,}",
                look_up(clusters, clustered, rounds),
            ),
        ]
    write_results(
        "dask", "Workers of Dask", "benchmarks/dask_speed.py", page(times, parts, bulk, rounds)
    )


def _milliseconds(cell):
    return float(cell.removesuffix(" ms").replace(",", ""))


def page(times, parts, bulk, rounds):
    """The lines of the page."""
    (_, serial, recurrent, megabytes) = parts[-1]
    slower, threads = ([_milliseconds(one[k]) for one in times[1:]] for k in (4, 2))
    ratios = [a / b for a, b in zip(slower, threads, strict=True)]
    gain = (serial + recurrent) / serial
    seconds = [[float(cell.removesuffix(" s")) for cell in one[1:]] for one in bulk[1:]]
    against = [f"{one[3] / one[1]:.1f}" for one in seconds]
    return [
        f"Machine: {machine()}. Log: msdocs_index. Medians of {rounds} alternating rounds, "
        "wall-clock time; other work on the machine adds to it, and with 3 rounds (`--quick`) the "
        "times are rough. The driver of the workers has one "
        "thread, and each worker is a process of one thread on the same machine. Every contender "
        "computes the same bits.",
        "",
        "## A training step",
        "",
        *markdown_table(times),
        "",
        "Sent and received are the arrays of one step with two workers. Workers send back the "
        "errors of all tokens, because a sum over tokens has the bits of one process only in the "
        "order of one process. `by words` is what they would send with one sum for each word.",
        "",
        f"Two local workers take {min(ratios):.1f} to {max(ratios):.1f} times as long as two "
        "threads: on one machine use threads.",
        "",
        "## Where it stops scaling",
        "",
        *markdown_table(limits(parts)),
        "",
        "The driver's part of a step (gathering rows, loss, Adam) and the recurrences were "
        "measured on one thread; their sum over the driver's part is the limit of Amdahl's law for "
        "any number of workers. The columns after it are estimates: driver + recurrences / workers "
        "+ bytes / bandwidth of the driver's network, without latency. "
        f"With {parts[-1][0]:,} pairs at most {gain:.1f} times "
        f"the speed of one thread is possible, and {8 * megabytes / 10:.0f} ms of every step are "
        "sending at 10 Gb/s.",
        "",
        "## Encoding and looking up",
        "",
        *markdown_table(bulk),
        "",
        f"Two workers take {', '.join(against)} times as long as two threads. The times contain "
        "sending the model or the titles to the workers once. Portions need no exchange between "
        "workers, so workers on other machines add their speed until reading, sending and writing "
        "by the driver take as long as the workers do.",
    ]


if __name__ == "__main__":
    main()
