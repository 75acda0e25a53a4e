"""A small pool of threads for kernels, with results that do not depend on their number.

Work is always cut into the same `CHUNKS` parts, whatever the number of threads; each part writes
to a place of its own, and what must be added up is added in the order of the parts. The threads
sleep between calls, so a busy neighbour on the machine costs its share and no more.
"""

import itertools
import os
import queue
import threading
import weakref

from sentemb.errors import SentembError

CHUNKS = 8


def available_threads():
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spans(size):
    """Cut ``range(size)`` into `CHUNKS` parts: (chunk, first, end) of all that are not empty."""
    edges = [size * chunk // CHUNKS for chunk in range(CHUNKS + 1)]
    return [(c, edges[c], edges[c + 1]) for c in range(CHUNKS) if edges[c] < edges[c + 1]]


def spread(size, function, *arguments):
    """Tasks that call ``function(*arguments, first, end)`` for parts of ``range(size)``."""
    return [(function, *arguments, first, end) for _, first, end in spans(size)]


def one_after_the_other(*tasks):
    """A task made of some that the same thread is to do, in this order."""
    for function, *arguments in tasks:
        function(*arguments)


class Workers:
    """Threads that run kernels side by side.

    Parameters
    ----------
    threads : int or None
        How many; None takes all processors that this process may use.
    """

    def __init__(self, threads=None):
        self.threads = available_threads() if threads is None else threads
        if not 1 <= self.threads <= 1024:
            raise SentembError(f"threads must be between 1 and 1024, not {threads}")
        self._meanwhile = []
        self._done = queue.SimpleQueue()
        self._inboxes = [queue.SimpleQueue() for _ in range(self.threads - 1)]
        for inbox in self._inboxes:
            threading.Thread(target=_serve, args=(inbox, self._done), daemon=True).start()
        # The threads know nothing of this object, so they end when it is no longer used.
        self._end = weakref.finalize(self, _end, self._inboxes)

    def run(self, tasks):
        """Call every ``(function, *arguments)`` of ``tasks`` once, on whatever thread is free."""
        tasks, self._meanwhile = self._meanwhile + tasks, []
        helpers = self._inboxes[: len(tasks) - 1]
        if not helpers:
            for function, *arguments in tasks:
                function(*arguments)
            return
        job = (tasks, itertools.count())
        for inbox in helpers:
            inbox.put(job)
        error = _work(*job)
        for _ in helpers:
            error = self._done.get() or error
        if error is not None:
            raise error

    def meanwhile(self, function, *arguments):
        """Call ``function(*arguments)`` beside the tasks of the next `run`.

        For work that is one piece and that something after that run needs.
        """
        self._meanwhile.append((function, *arguments))

    def over(self, size, function, *arguments):
        """Call ``function(*arguments, first, end)`` for parts of ``range(size)``."""
        self.run(spread(size, function, *arguments))

    def together(self, *jobs):
        """Do some jobs side by side, phase by phase.

        Parameters
        ----------
        jobs : generators
            Each yields the tasks of a phase and goes on when they are done. The phases of all jobs
            run together, so that threads wait for each other less often.

        Returns
        -------
        list
            What each job returns.
        """
        results = [None] * len(jobs)
        left = dict(enumerate(jobs))
        while left:
            tasks = []
            for number, job in list(left.items()):
                try:
                    tasks += next(job)
                except StopIteration as end:
                    results[number] = end.value
                    del left[number]
            self.run(tasks)
        return results

    def close(self):
        """End the threads; later work runs on the calling thread alone."""
        self._end()
        self._inboxes = []

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


def _serve(inbox, done):
    while (job := inbox.get()) is not None:
        error = _work(*job)
        job = None  # or its arrays would live until the next job
        done.put(error)


def _end(inboxes):
    for inbox in inboxes:
        inbox.put(None)


def _work(tasks, counter):
    """Take tasks until none is left; return the first exception, if any."""
    try:
        while (number := next(counter)) < len(tasks):
            function, *arguments = tasks[number]
            function(*arguments)
    except BaseException as error:
        return error
    return None
