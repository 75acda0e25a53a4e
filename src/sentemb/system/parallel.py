"""A small pool of threads for kernels; results do not depend on the number of threads.

The work alone decides into how many parts it is cut, never the number of threads; each part writes
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
from itertools import pairwise
from operator import is_
from typing import Any, Protocol, TypeAlias

from sentemb.system.bounds import MAX_THREADS, whole

# The most parts of one piece of work: with fewer, sixteen threads would wait for the longest.
PARTS = 32
# What a part costs at least, in numbers read or written: some 40 microseconds. For less work no
# thread is woken.
PAYS = 2**18
# Products of a matrix product that cost as much as one number.
PRODUCTS = 16
# Parts whose sums are added up: more than some pay if each costs many times the count of its sums.
_ADDED_ANYWAY, _TIMES_SUMS = 8, 32

# A function and its arguments.
Task: TypeAlias = tuple[Any, ...]


class Piece(tuple[Any, ...]):
    """A task on the items from its last but one argument to its last, each by itself.

    The call for two adjoining pieces does the same as their two calls.
    """


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


def spans(
    size: int,
    cost: float = PAYS,
    sums: int = 0,
    cut: Callable[[int], list[int]] | None = None,
) -> list[tuple[int, int, int]]:
    """Cut ``range(size)`` into parts: (part, first, end) of each.

    An item costs as much as ``cost`` numbers. ``sums`` are the numbers that each part adds up and
    that are then added up over all parts; zero where a part just writes its own rows. For items of
    unequal costs, whose mean is ``cost``, ``cut`` makes of the number of parts their edges, from 0
    to ``size``.
    """
    parts = _worth(size, size * cost, sums)
    edges = cut(parts) if cut else [size * part // parts for part in range(parts + 1)]
    filled = [(first, end) for first, end in pairwise(edges) if first < end]
    return [(part, *span) for part, span in enumerate(filled)]


def _worth(size: int, cost: float, sums: int) -> int:
    """Into how many parts it pays to cut ``size`` items."""
    most = PARTS
    if sums:
        most = min(PARTS, max(_ADDED_ANYWAY, int(cost / (_TIMES_SUMS * sums))))
    return max(1, min(most, size, int(cost / PAYS)))


def spread(size: int, function: Callable[..., object], *arguments: Any, cost: float) -> list[Task]:
    """Tasks that call ``function(*arguments, first, end)`` for parts of ``range(size)``.

    An item costs ``cost``, see `spans`, and does not depend on the others.
    """
    return pieces(spans(size, cost), function, *arguments)


def pieces(
    parts: list[tuple[int, int, int]], function: Callable[..., object], *arguments: Any
) -> list[Task]:
    """As `spread`, for ``parts`` of unequal items."""
    # Of much work each part is long enough, and between two of them Ctrl-C is heard.
    kind = Piece if len(parts) < PARTS else tuple
    return [kind((function, *arguments, first, end)) for _, first, end in parts]


def _joined(tasks: list[Task]) -> list[Task]:
    """The tasks with adjoining pieces as one: for one thread every call is a loss."""
    joined: list[Task] = []
    for task in tasks:
        last = joined[-1] if joined else ()
        adjoin = type(task) is type(last) is Piece and task[-2] == last[-1]
        if adjoin and len(task) == len(last) and all(map(is_, task[:-2], last[:-2])):
            joined[-1] = Piece((*last[:-1], task[-1]))
        else:
            joined.append(task)
    return joined


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
        self._closed = False
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Return to the state after `__init__`: no thread runs yet."""
        self._turn = threading.Lock()
        self._inboxes: list[_Inbox] | None = None
        self._job = _Job([])
        self._aside: list[_Job] = []

    def run(self, tasks: list[Task]) -> None:
        """Call every ``(function, *arguments)`` of ``tasks`` once, on any free thread.

        An exception, Ctrl-C included, is raised only after every thread has finished its task, so
        that the arrays that tasks write to may be reused. After a second Ctrl-C in the meantime,
        the next run waits for them.
        """
        with self._turn:
            self._job.settle()  # in case an exception interrupted the end of the last run
            if self.threads == 1 or len(tasks) < 2:
                one_after_the_other(*_joined(tasks))
                return
            job = self._job = _Job(tasks)
            try:
                for inbox in self._helpers()[: len(tasks) - 1]:
                    inbox.put(job)
                job.take()
            finally:
                job.settle()
        job.raise_error()

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
        """Call ``function(*arguments)`` during the next runs, on a thread that is not the caller's.

        This is for work that cannot be divided. `catch_up` waits for it, and does it if there is
        no such thread.
        """
        with self._turn:
            job = _Job([(function, *arguments)])
            self._aside.append(job)
            for inbox in self._helpers()[-1:]:
                inbox.put(job)

    def catch_up(self) -> None:
        """Wait until all that `meanwhile` has begun is done; raise its exception."""
        with self._turn:
            while self._aside:
                job = self._aside[0]
                try:
                    job.take()  # if no thread has come to it
                finally:
                    job.settle()
                del self._aside[0]
                job.raise_error()

    def over(self, size: int, function: Callable[..., object], *arguments: Any) -> None:
        """Call ``function(*arguments, first, end)`` for parts of ``range(size)``.

        Every item is to cost enough for a part of its own; otherwise use `spread`.
        """
        self.run(spread(size, function, *arguments, cost=PAYS))

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
        self._tasks = []  # what they work on may hold these threads: a cycle, which would live on

    def raise_error(self) -> None:
        """Raise the first exception of a helping thread, once all have ended."""
        for error in self.errors:
            if error is not None:
                raise error


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
