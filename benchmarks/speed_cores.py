"""What more processors would gain, from the times of all tasks of a step: a section of `speed.py`.

The tasks of a piece of work run on one thread, each with its processor time. A list schedule then
gives each task to the first of n threads that is free. What runs between the tasks counts as it is.
The schedule leaves out what real threads also share: caches, memory and the interpreter. So the
gain of two threads is measured as well.
"""

import heapq
import os
import time
from typing import NamedTuple

import numpy as np
from our_side import Ours
from rounds import note
from speed_training import REAL, logs_of
from synthetic import mixed_titles

from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers
from sentemb.system.tables import markdown_table
from sentemb.training.negatives import hard_negatives

THREADS = (2, 4, 8, 16)


class LoggedWorkers(Workers):
    """One thread that keeps the seconds of every task, phase by phase, and of what lies between."""

    def __init__(self):
        super().__init__(1)
        self.start()

    def start(self):
        """Forget what was logged."""
        self.phases, self._ended = [], time.thread_time()

    def run(self, tasks):
        """As `Workers.run`."""
        clocks = [time.thread_time()]
        between = clocks[0] - self._ended
        for function, *arguments in tasks:
            function(*arguments)
            clocks.append(time.thread_time())
        self.phases.append(Phase(between, np.diff(clocks).tolist()))
        self._ended = clocks[-1]

    def meanwhile(self, function, *arguments):
        """As `Workers.meanwhile`, at once."""
        self.run([(function, *arguments)])
        self.phases[-1] = self.phases[-1]._replace(aside=True)

    def catch_up(self):
        """Nothing is left to do."""
        self.run([])

    def spans(self):
        """[seconds between the tasks, the least seconds that each of `THREADS` would need]."""
        self.run([])
        serial = sum(phase.between for phase in self.phases)
        return [serial, *(span(self.phases, threads) for threads in THREADS)]


class Phase(NamedTuple):
    """Seconds before some tasks, and of each of them; ``aside`` if the next phases do not wait."""

    between: float
    tasks: list
    aside: bool = False


def span(phases, threads):
    """Seconds until all is done, if the next task goes to the first thread that is free."""
    now, free = 0.0, [0.0] * threads
    for phase in phases:
        now += phase.between
        free = sorted(max(now, at) for at in free)
        if phase.aside and threads > 1:  # any thread but the caller's, which is free now
            free[1] += sum(phase.tasks)
            continue
        ends = [heapq.heapreplace(free, free[0] + seconds) + seconds for seconds in phase.tasks]
        now = max([now, *ends])
    return max([now, *free])


def simulate(work_of, turns, warm=2):
    """Medians: seconds on one thread, those between tasks, and the gain of each of `THREADS`.

    ``work_of`` makes, of some workers, a function that does a piece of work with them. It is called
    in turns with one thread and with `LoggedWorkers`, ``warm`` times before it counts.
    """
    logged = LoggedWorkers()
    alone, in_tasks = work_of(Workers(1)), work_of(logged)
    found = []
    for turn in range(warm + turns):
        began = time.thread_time()
        alone()
        whole = time.thread_time() - began
        logged.start()
        in_tasks()
        if turn >= warm:
            found.append([whole, *logged.spans()])
    whole, serial, *least = np.median(found, axis=0).tolist()
    return [whole, serial, *(whole / seconds for seconds in least)]


def measure(work_of, turns, warm=2):
    """The gain of two real threads: median of the ratios of neighbouring turns."""
    works = work_of(Workers(1)), work_of(Workers(2))
    found = []
    for turn in range(warm + turns):
        clocks = [time.perf_counter()]
        for work in works:
            work()
            clocks.append(time.perf_counter())
        if turn >= warm:
            found.append(np.divide(*np.diff(clocks)))
    return float(np.median(found))


def training(case):
    """A training step, for `simulate`."""

    def of(workers):
        return Ours(case, 1, workers).train_step

    return of


def encoding(case):
    """16,384 titles of words that the model has met, for `simulate`."""

    def of(workers):
        ours = Ours(case, 1)
        model = SentenceEncoder.of(ours.task.model(), 1)
        model._workers = workers
        titles = mixed_titles(ours.log.titles, 16_384)
        return lambda: model.encode_document(titles)

    return of


def look_up(case):
    """The hard negatives of all queries, for `simulate`."""

    def of(workers):
        task = Ours(case, 1).task
        return lambda: hard_negatives.look_up(task.corpus, task.towers, workers, lambda: False)

    return of


def cores_section(bench, quick, targets):
    """Work on more processors than there may be, by a list schedule."""
    log = logs_of(bench, quick)[REAL]
    if log is None:
        return {}
    turns = 3 if quick else 20
    large, usual = (bench.case(log, preset=preset) for preset in ("large", None))
    # The bound of a gradient's length is not enough in the first steps.
    works = {
        "training step, the defaults": (training(usual), turns, 3 * turns),
        "training step, `--preset large`": (training(large), turns // 2, turns),
        "encoding 16,384 titles": (encoding(usual), turns, 2),
        "looking up hard negatives": (look_up(usual), 3, 1),
    }
    heads = "one thread", "between tasks", *(f"{n} threads" for n in THREADS), "2, measured"
    rows = [[REAL, *heads]]
    for name, work in works.items():
        note(f"simulated processors: {name}")
        whole, serial, *gains = simulate(*work)
        times = (f"{1e3 * seconds:.1f} ms" for seconds in (whole, serial))
        measured = f"{measure(*work):.1f} ×" if (os.cpu_count() or 1) > 1 else "-"
        rows.append([name, *times, *(f"{gain:.1f} ×" for gain in gains), measured])
    return {"Simulated processors": markdown_table(rows, left=1)}
