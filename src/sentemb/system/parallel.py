"""A small pool of threads for kernels; results do not depend on the number of threads.

Work is always cut into the same `CHUNKS` parts, whatever the number of threads; each part writes
to its own memory, and sums are taken in the order of the parts. The threads sleep between calls,
so another busy process on the machine costs its share of the processors and no more.
"""

import _thread
import contextlib
import itertools
import os
import queue
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Any, Protocol, TypeAlias

from sentemb.system.bounds import MAX_THREADS, whole

CHUNKS = 8

# A function and its arguments.
Task: TypeAlias = tuple[Any, ...]


_limit: int | None = None


@contextlib.contextmanager
def limited_threads(threads: int) -> Iterator[None]:
    """In the body, `available_threads` is ``threads``, not the number of processors."""
    global _limit
    before, _limit = _limit, threads
    try:
        yield
    finally:
        _limit = before


def available_threads() -> int:
    """The number of threads to use by default: that of the processors that this process may use."""
    if _limit is not None:
        return _limit
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def spans(size: int) -> list[tuple[int, int, int]]:
    """Cut ``range(size)`` into `CHUNKS` parts: (chunk, first, end) of each non-empty part."""
    edges = [size * chunk // CHUNKS for chunk in range(CHUNKS + 1)]
    return [(c, edges[c], edges[c + 1]) for c in range(CHUNKS) if edges[c] < edges[c + 1]]


def spread(size: int, function: Callable[..., object], *arguments: Any) -> list[Task]:
    """Tasks that call ``function(*arguments, first, end)`` for parts of ``range(size)``."""
    return [(function, *arguments, first, end) for _, first, end in spans(size)]


def one_after_the_other(*tasks: Task) -> None:
    """Do several tasks in this order: one task for one thread."""
    for task in tasks:
        task[0](*task[1:])


class _Alone:
    """Does all work on the calling thread, for work that costs less than to wake another."""

    def over(self, size: int, function: Callable[..., object], *arguments: Any) -> None:
        """Call ``function(*arguments, first, end)`` for all of ``range(size)``."""
        function(*arguments, 0, size)


ALONE = _Alone()


class Workers:
    """Threads that run kernels in parallel.

    Several threads may use one object; they take turns, run by run. After a fork the child starts
    its own threads. There are 1 to 1024 threads; None uses all processors available to this
    process.
    """

    def __init__(self, threads: int | None = None) -> None:
        if threads is None:
            self.threads = available_threads()
        else:
            self.threads = whole("threads", threads, 1, MAX_THREADS)
        self._meanwhile: list[Task] = []
        self._closed = False
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Return to the state after `__init__`: no thread runs yet."""
        self._turn = threading.Lock()
        self._inboxes: list[_Inbox] | None = None
        self._job = _Job([])

    def run(self, tasks: list[Task]) -> None:
        """Call every ``(function, *arguments)`` of ``tasks`` once, on any free thread.

        An exception, Ctrl-C included, is raised only after every thread has finished its task, so
        that the arrays that tasks write to may be reused. After a second Ctrl-C in the meantime,
        the next run waits for them.
        """
        with self._turn:
            self._job.settle()  # in case an exception interrupted the end of the last run
            tasks, self._meanwhile = self._meanwhile + tasks, []
            if self.threads == 1 or len(tasks) < 2:
                one_after_the_other(*tasks)
                return
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

    def _helpers(self) -> "list[_Inbox]":
        """The inboxes of the threads, which are started on first use."""
        if self._inboxes is None:
            self._inboxes = []
            # The threads hold no reference to this object, so they end when it is no longer used.
            weakref.finalize(self, _end, self._inboxes)
            for _ in range(0 if self._closed else self.threads - 1):
                inbox: _Inbox = queue.SimpleQueue()
                try:
                    # A signal during `threading.Thread.start` would leave its records inconsistent.
                    _thread.start_new_thread(_serve, (inbox,))
                except RuntimeError:  # the system has no more threads
                    break
                self._inboxes.append(inbox)
        return self._inboxes

    def meanwhile(self, function: Callable[..., object], *arguments: Any) -> None:
        """Call ``function(*arguments)`` together with the tasks of the next `run`.

        This is for work that cannot be divided and whose result is needed after that run.
        """
        self._meanwhile.append((function, *arguments))

    def over(self, size: int, function: Callable[..., object], *arguments: Any) -> None:
        """Call ``function(*arguments, first, end)`` for parts of ``range(size)``."""
        self.run(spread(size, function, *arguments))

    def together(self, *jobs: Generator[Sequence[Task], None, Any]) -> list[Any]:
        """Do several jobs in parallel, phase by phase, and return the result of each.

        A job yields the tasks of a phase and continues when they are done. The phases of all jobs
        run together, so that threads wait for each other less often.
        """
        results = [None] * len(jobs)
        left = dict(enumerate(jobs))
        while left:
            tasks: list[Task] = []
            for number, job in list(left.items()):
                try:
                    tasks += next(job)
                except StopIteration as end:
                    results[number] = end.value
                    del left[number]
            if tasks:
                self.run(tasks)
        return results

    def close(self) -> None:
        """End the threads; later work runs on the calling thread alone."""
        self._closed = True
        _end(self._inboxes or [])
        self._inboxes = None

    def __enter__(self) -> "Workers":
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class _Job:
    """Tasks that several threads take one after the other.

    An exception between any two steps of the interpreter (Ctrl-C, a time-out) can only interrupt
    `take` on the thread that called `Workers.run`, where it leaves all counts consistent.
    """

    def __init__(self, tasks: list[Task]) -> None:
        self._tasks = tasks
        self._numbers = itertools.count()
        self._stopped = False
        # One entry for each helping thread that began, and for each that ended: its exception or
        # None.
        self._begun: list[bool] = []
        self.errors: list[BaseException | None] = []
        self._ended: queue.SimpleQueue[bool] = queue.SimpleQueue()

    def take(self) -> None:
        """Do tasks until none is left."""
        while not self._stopped and (number := next(self._numbers)) < len(self._tasks):
            function, *arguments = self._tasks[number]
            function(*arguments)

    def help(self) -> None:
        """`take` on a helping thread; its exception is kept."""
        self._begun.append(True)
        error: BaseException | None = None
        try:
            self.take()
        except BaseException as caught:
            error = caught
        self.errors.append(error)
        self._ended.put(True)

    def settle(self) -> None:
        """Wait until no helping thread works on a task; from now on none starts one."""
        self._stopped = True
        while len(self.errors) < len(self._begun):
            self._ended.get()


_Inbox: TypeAlias = "queue.SimpleQueue[_Job | None]"


def _serve(inbox: _Inbox) -> None:
    while (job := inbox.get()) is not None:
        job.help()
        del job  # or its arrays would live until the next job


def _end(inboxes: list[_Inbox]) -> None:
    for inbox in inboxes:
        inbox.put(None)


class _SignalsFromKernels:
    """See `signals_from_kernels`; a class, as a generator takes longer than a short text."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SystemError):
            first: BaseException = error
            while isinstance(first, SystemError) and first.__cause__ is not None:
                first = first.__cause__
            raise first from None


_SIGNALS_FROM_KERNELS = _SignalsFromKernels()


def signals_from_kernels() -> _SignalsFromKernels:
    """Raise the error of a signal handler in a kernel call instead of Numba's `SystemError`.

    Numba turns Ctrl-C at that moment into a SystemError "returned a result with an exception set".
    """
    return _SIGNALS_FROM_KERNELS


# -- forks ------------------------------------------------------------------------------------


class Renewable(Protocol):
    """An object that holds threads or locks."""

    def renew(self) -> None:
        """Make it usable in a forked child."""
        ...


_RENEWED: "weakref.WeakSet[Renewable]" = weakref.WeakSet()


def renew_after_fork(thing: Renewable) -> None:
    """Have ``thing.renew()`` called in every forked child, where its threads do not run.

    A lock that another thread held at the fork would never be released there.
    """
    _RENEWED.add(thing)


class Turn:
    """A lock that is free in a forked child, also if another thread held it."""

    def __init__(self) -> None:
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """See `Renewable`."""
        self.lock = threading.RLock()


def _renew_all() -> None:
    for thing in list(_RENEWED):
        thing.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
