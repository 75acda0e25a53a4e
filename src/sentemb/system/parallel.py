"""A small pool of threads for kernels, with results that do not depend on their number.

Work is always cut into the same `CHUNKS` parts, whatever the number of threads; each part writes
to a place of its own, and what must be added up is added in the order of the parts. The threads
sleep between calls, so a busy neighbour on the machine costs its share and no more.
"""

import _thread
import contextlib
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

    Several threads may use one object; they take turns, run by run. After a fork the child starts
    threads of its own.

    Parameters
    ----------
    threads : int or None
        How many; None takes all processors that this process may use.
    """

    def __init__(self, threads: int | None = None):
        if threads is not None and (type(threads) is not int or not 1 <= threads <= 1024):
            raise SentembError(f"threads must be a whole number from 1 to 1024, not {threads!r}")
        self.threads = available_threads() if threads is None else threads
        self._meanwhile = []
        self._closed = False
        self._start_afresh()
        renew_after_fork(self)

    def _start_afresh(self):
        """Be as after `__init__`: no thread runs yet."""
        self._turn = threading.Lock()
        self._inboxes = None
        self._job = _Job([])

    renew = _start_afresh

    def run(self, tasks):
        """Call every ``(function, *arguments)`` of ``tasks`` once, on whatever thread is free.

        An exception, Ctrl-C included, is raised only when no thread works on a task any more, so
        that what the tasks write to may be used again. After a second Ctrl-C meanwhile the next run
        waits for them.
        """
        with self._turn:
            self._job.settle()  # in case an exception came while the last run was being settled
            tasks, self._meanwhile = self._meanwhile + tasks, []
            job = self._job = _Job(tasks)
            try:
                for inbox in self._helpers()[: len(tasks) - 1]:
                    inbox.put(job)
                job.take()
            finally:
                job.settle()
        for error in job.errors:
            if error is not None:
                raise error

    def _helpers(self):
        """The inboxes of the threads, which are started when they are first asked for."""
        if self._inboxes is None:
            self._inboxes = []
            # The threads do not know this object, so they end when it is no longer used.
            weakref.finalize(self, _end, self._inboxes)
            for _ in range(0 if self._closed else self.threads - 1):
                inbox = queue.SimpleQueue()
                try:
                    # Not `threading.Thread`, whose accounts a signal in its `start` confuses.
                    _thread.start_new_thread(_serve, (inbox,))
                except RuntimeError:  # the system has no more threads
                    break
                self._inboxes.append(inbox)
        return self._inboxes

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
        self._closed = True
        _end(self._inboxes or [])
        self._inboxes = None

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()


class _Job:
    """Tasks that several threads take one after the other.

    What an exception between any two steps of the interpreter (Ctrl-C, a time-out) can hit is
    `take`, on the thread that called `Workers.run`; it leaves no account unbalanced.
    """

    def __init__(self, tasks):
        self._tasks = tasks
        self._numbers = itertools.count()
        self._stopped = False
        # One entry for each helping thread that began, and that ended: its exception, or None.
        self._begun, self.errors = [], []
        self._ended = queue.SimpleQueue()

    def take(self):
        """Do tasks until none is left."""
        while not self._stopped and (number := next(self._numbers)) < len(self._tasks):
            function, *arguments = self._tasks[number]
            function(*arguments)

    def help(self):
        """`take` on a thread that nobody looks at."""
        self._begun.append(True)
        error = None
        try:
            self.take()
        except BaseException as caught:
            error = caught
        self.errors.append(error)
        self._ended.put(True)

    def settle(self):
        """Wait until no helping thread works on a task; none begins one from now on."""
        self._stopped = True
        while len(self.errors) < len(self._begun):
            self._ended.get()


def _serve(inbox):
    while (job := inbox.get()) is not None:
        job.help()
        job = None  # or its arrays would live until the next job


def _end(inboxes):
    for inbox in inboxes:
        inbox.put(None)


@contextlib.contextmanager
def signals_from_kernels():
    """Raise what a signal's handler raised within a kernel's call, not Numba's complaint about it.

    Of Ctrl-C at that moment Numba makes a SystemError "returned a result with an exception set".
    """
    try:
        yield
    except SystemError as error:
        first = error
        while isinstance(first, SystemError) and first.__cause__ is not None:
            first = first.__cause__
        raise first from None


# -- forks ------------------------------------------------------------------------------------

_RENEWED = weakref.WeakSet()


def renew_after_fork(thing):
    """Have ``thing.renew()`` called in every child of a fork, where its threads do not run.

    A lock that another thread held at the fork would never be released there.
    """
    _RENEWED.add(thing)


def _renew_all():
    for thing in list(_RENEWED):
        thing.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
