"""What more processors would gain, from the times of all tasks of a step: a section of `speed.py`.

The tasks of a step run on one thread, each with its processor time. A list schedule then gives
each task to the first of n threads that is free. What runs between the tasks counts as it is. The
schedule leaves out what real threads also share: caches, memory and the interpreter.
"""

import heapq
import time

import numpy as np
from rounds import note
from speed_training import REAL, logs_of

from sentemb.system.parallel import Workers
from sentemb.system.tables import markdown_table

THREADS = (2, 4, 8, 16)
PRESETS = {"the defaults": None, "`--preset large`": "large"}


class LoggedWorkers(Workers):
    """One thread that keeps the seconds of every task, phase by phase, and of what lies between."""

    def __init__(self):
        super().__init__(1)
        self.start()

    def start(self):
        """Forget what was logged."""
        self.phases, self.serial, self._ended = [], 0.0, time.thread_time()

    def run(self, tasks):
        """As `Workers.run`."""
        tasks, self._meanwhile = self._meanwhile + tasks, []
        clocks = [time.thread_time()]
        self.serial += clocks[0] - self._ended
        for function, *arguments in tasks:
            function(*arguments)
            clocks.append(time.thread_time())
        self.phases.append(np.diff(clocks).tolist())
        self._ended = clocks[-1]

    def gains(self):
        """[seconds of one thread, those between the tasks, the gain of each of `THREADS`]."""
        serial = self.serial + time.thread_time() - self._ended
        whole = serial + sum(map(sum, self.phases))
        return [whole, serial, *(whole / (serial + self._spans(n)) for n in THREADS)]

    def _spans(self, threads):
        return sum(span(tasks, threads) for tasks in self.phases)


def span(tasks, threads):
    """Seconds until the last task ends, if the next one goes to the first thread that is free."""
    free = [0.0] * threads
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def simulate(case, steps):
    """Medians over some steps of what `LoggedWorkers.gains` returns."""
    from our_side import Ours

    workers, found = LoggedWorkers(), []
    ours = Ours(case, 1, workers)
    for number in range(steps + 3):
        workers.start()
        ours.train_step()
        if number >= 3:
            found.append(workers.gains())
    return np.median(found, axis=0).tolist()


def cores_section(bench, quick, targets):
    """Training steps on more processors than there may be, by a list schedule."""
    log = logs_of(bench, quick)[REAL]
    if log is None:
        return {}
    rows = [[REAL, "one thread", "between tasks", *(f"{n} threads" for n in THREADS)]]
    for name, preset in PRESETS.items():
        note(f"simulated processors: {name}")
        whole, serial, *of = simulate(bench.case(log, preset=preset), 5 if quick else 20)
        times = (f"{1e3 * seconds:.1f} ms" for seconds in (whole, serial))
        rows.append([name, *times, *(f"{gain:.1f} ×" for gain in of)])
    return {"Simulated processors": markdown_table(rows, left=1)}
