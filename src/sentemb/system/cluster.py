"""A cluster of Dask: opened, checked, and given tasks.

A task is a function of this package with its arguments. Dask may compute it again, on another
worker, so it changes nothing that it is given and keeps nothing that a later task relies on.
The scheduler keeps the arguments of every task that is not finished: a worker that is lost costs
its tasks and nothing else.
"""

from __future__ import annotations

import asyncio
import bisect
import concurrent.futures
import contextlib
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_THREADS, brief
from sentemb.system.extras import package
from sentemb.system.parallel import available_threads

if TYPE_CHECKING:
    from distributed import Client, Future

# What users may give: "local", "local:2", the address of a scheduler, or a client.
Dask: TypeAlias = "str | Client"

EXTRA = "dask"
LOCAL = "local"
FORMS = "local, local:2 for two workers, or the address of a scheduler such as tcp://host:8786"
_PROTOCOLS = "tcp", "tls"
# Seconds: to reach a scheduler, to wait for its first worker, to wait for another one when all are
# lost, and between two looks at whether there are any.
_TO_CONNECT, _TO_BEGIN, _WITHOUT_WORKERS, _BETWEEN_LOOKS = 5.0, 10.0, 30.0, 2.0
# Seconds after which a task that was under way when a worker was lost is begun again.
_AFTER_LOSS = 30.0
# How often a task is begun again. Then it may be the task that ends the workers.
_MOST_BEGINS = 5
# Tasks of each worker that `Cluster.in_order` has under way: one to compute, one to send.
_AHEAD = 2
# Dask advises against large arguments. Here they are meant: a task can be computed again only from
# its arguments.
_CONFIGURATION = {"distributed.admin.large-graph-warning-threshold": "1 TB"}


@dataclass(eq=False)
class Task:
    """A function with its arguments, and where Dask has it.

    Attributes
    ----------
    function : function
        It can be imported by the workers.
    arguments : tuple
        What can be pickled; in place of other tasks the function gets what they return.
    future : Future
    begun : float
        When it was submitted, by the monotonic clock.
    times_again : int
        How often `Cluster.results` has begun it again.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    future: Future[Any]
    begun: float = field(default_factory=time.monotonic)
    times_again: int = 0


class Cluster:
    """The workers that a scheduler has at the time; `opened` makes one.

    Parameters
    ----------
    client : distributed.Client
    name : str
        What messages call it.
    """

    threads = 1

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name
        self._seen: set[str] = set()
        self._checked: set[str] = set()  # workers whose versions are those of this process
        self._losses: list[float] = []  # when workers were found to be lost

    def workers(self) -> list[str]:
        """The addresses of all workers, each once for every thread that it computes with."""
        with self._naming_errors():
            threads: dict[str, int] = self._client.nthreads()  # type: ignore[no-untyped-call]
            _check_versions(self._client, sorted(threads.keys() - self._checked))
        self._checked |= threads.keys()
        if not self._seen <= threads.keys():
            self._losses.append(time.monotonic())
        self._seen = set(threads)
        return [address for address in sorted(threads) for _ in range(threads[address])]

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Task:
        """Have ``function(*arguments)`` computed; `Task` describes the parameters."""
        return Task(function, arguments, self._future(function, arguments))

    def _future(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> Future[Any]:
        futures = [
            argument.future if isinstance(argument, Task) else argument for argument in arguments
        ]
        with self._naming_errors():
            return self._client.submit(function, *futures, pure=False)

    def _begin_again(self, task: Task) -> None:
        """Submit a task, and those before it, as if they were new."""
        for argument in task.arguments:
            if isinstance(argument, Task):
                self._begin_again(argument)
        task.begun = time.monotonic()
        task.future = self._future(task.function, task.arguments)

    def results(self, tasks: list[Task]) -> list[Any]:
        """The results of some tasks, once all of them are finished.

        Raises
        ------
        SentembError
            As a task raised it; if the scheduler is lost, if all workers are and no other has come
            for half a minute, or if one worker after the other ends during the same task.
        """
        workers_seen = time.monotonic()
        with self._naming_errors():
            gathering = self._gathering(tasks)
            while not concurrent.futures.wait([gathering], _BETWEEN_LOOKS).done:
                if self.workers():
                    workers_seen = time.monotonic()
                elif time.monotonic() - workers_seen > _WITHOUT_WORKERS:
                    raise SentembError(
                        f"all workers of {self.name} are lost, and no other came for "
                        f"{_WITHOUT_WORKERS:.0f} seconds; start some and try again"
                    )
                forgotten = [task for task in tasks if self._may_be_forgotten(task)]
                for task in forgotten:
                    task.times_again += 1
                    if task.times_again > _MOST_BEGINS:
                        raise self._workers_end()
                    self._begin_again(task)
                if forgotten:
                    gathering = self._gathering(tasks)
            return gathering.result()

    def _gathering(self, tasks: list[Task]) -> concurrent.futures.Future[list[Any]]:
        """A future of the results.

        It is never cancelled: gatherings of other threads may wait for the same transfer.
        """
        futures = [task.future for task in tasks]
        gathered: Any = self._client.gather(futures, asynchronous=True)  # type: ignore[no-untyped-call]
        # A result may be lost on its way here, so even the transfer is not waited for without end.
        loop: Any = self._client.loop
        return asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop)

    def _may_be_forgotten(self, task: Task) -> bool:
        """Whether a task is unfinished, and a lost worker may be the reason.

        Dask computes again what a lost worker had. But if the worker is lost while a task that
        needs its result is being given to it, Dask may wait for ever.
        """
        # The first loss counts: workers that are lost one after the other do not put it off.
        after = bisect.bisect_right(self._losses, task.begun)
        is_late = any(lost < time.monotonic() - _AFTER_LOSS for lost in self._losses[after:][:1])
        return is_late and not task.future.done()  # type: ignore[no-untyped-call]

    def keep(self, value: Any) -> Task:
        """``value`` as an argument of many tasks: it is sent to each worker once."""
        return self.submit(_same, value)

    def in_order(
        self, function: Callable[..., Any], portions: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield ``function(*portion)`` for each of ``portions``, in their order.

        Few portions are under way at a time, so the memory does not grow with their number.

        Raises
        ------
        SentembError
            As `results`.
        """
        left = iter(portions)
        pending: deque[Task] = deque()
        try:
            while True:
                most = _AHEAD * max(1, len(self.workers()))
                while len(pending) < most and (portion := next(left, None)) is not None:
                    pending.append(self.submit(function, *portion))
                if not pending:
                    return
                yield from self.results([pending.popleft()])
        finally:
            for task in pending:
                task.future.release()  # type: ignore[no-untyped-call]

    @contextlib.contextmanager
    def _naming_errors(self) -> Iterator[None]:
        """Raise a `SentembError` for the errors of Dask when it cannot continue."""
        from distributed.client import ClosedClientError
        from distributed.scheduler import KilledWorker

        try:
            yield
        except (CancelledError, ClosedClientError, OSError) as error:
            raise SentembError(
                f"the scheduler of {self.name} is lost; start it and try again"
            ) from error
        except KilledWorker as error:
            raise self._workers_end() from error

    def _workers_end(self) -> SentembError:
        return SentembError(
            f"several workers of {self.name} ended during the same task; see whether they have "
            "enough memory"
        )


class Executor(Protocol):
    """Where functions are called: a `Cluster`, or a `Process`."""

    @property
    def threads(self) -> int:
        """Threads that a function may use."""
        ...

    def keep(self, value: Any) -> Any:
        """``value`` as an argument of many calls."""
        ...

    def in_order(
        self, function: Callable[..., Any], portions: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield ``function(*portion)`` for each of ``portions``, in their order."""
        ...


@dataclass(frozen=True)
class Process:
    """This process as an `Executor`: one call after the other.

    Attributes
    ----------
    threads : int
    """

    threads: int

    def keep(self, value: Any) -> Any:
        """``value`` itself."""
        return value

    def in_order(
        self, function: Callable[..., Any], portions: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield ``function(*portion)`` for each of ``portions``, in their order."""
        return itertools.starmap(function, portions)


@contextlib.contextmanager
def opened(dask: Dask) -> Iterator[Cluster]:
    """A cluster for the time of a block: one of `FORMS`, or a client, which stays open.

    Raises
    ------
    SentembError
        For anything else, without the package, if the scheduler cannot be reached or has no
        workers, or if a worker has other versions than this process.
    """
    distributed = package("distributed", EXTRA, "dask")
    configuration = package("dask", EXTRA, "dask").config
    with contextlib.ExitStack() as stack:
        stack.enter_context(configuration.set(_CONFIGURATION))
        if isinstance(dask, distributed.Client):
            if dask.asynchronous:
                raise SentembError("dask is an asynchronous client; give a synchronous one")
            client, name = dask, "the cluster"
        elif isinstance(dask, str):
            stack.enter_context(_quiet())
            name = dask
            where = stack.enter_context(_local(dask)) if _is_local(dask) else _address(dask)
            client = stack.enter_context(_connected(where, name))
        else:
            raise SentembError(f"dask is {brief(dask)}; give {FORMS}, or a client of Dask")
        cluster = Cluster(client, name)
        _await_workers(cluster)
        yield cluster


def opened_if(dask: Dask | None) -> contextlib.AbstractContextManager[Cluster | None]:
    """As `opened`; no cluster without ``dask``."""
    return contextlib.nullcontext() if dask is None else opened(dask)


def _is_local(dask: str) -> bool:
    return dask.partition(":")[0] == LOCAL


def _address(dask: str) -> str:
    kind, _, address = dask.partition("://")
    host, _, port = address.rpartition(":")
    if not (kind in _PROTOCOLS and host and port.isdecimal()):
        raise SentembError(f"dask is {brief(dask)}; give {FORMS}")
    return dask


@contextlib.contextmanager
def _local(dask: str) -> Iterator[Any]:
    """Processes of one thread each on this machine, ended with the block."""
    _, colon, number = dask.partition(":")
    count = available_threads()
    if colon:
        if not (number.isdecimal() and 1 <= int(number) <= MAX_THREADS):
            raise SentembError(
                f"dask is {brief(dask)}; give local:N, where N is from 1 to {MAX_THREADS}"
            )
        count = int(number)
    try:
        cluster = package("distributed", EXTRA).LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",  # any free port, instead of one that may be taken
            memory_limit=0,
            silence_logs=logging.CRITICAL,
            preload=["sentemb.system.uninterrupted"],
        )
    except (OSError, RuntimeError) as error:
        raise SentembError(
            f"{dask}: the workers cannot be started: {error.__cause__ or error}; ask for fewer, or "
            "leave dask out"
        ) from error
    with cluster:
        yield cluster


def _greet(address: str) -> None:
    """Raise an error unless a scheduler answers at ``address``.

    `distributed.Client` would wait for ever for a server that takes the connection and says
    nothing.
    """
    distributed = package("distributed", EXTRA)
    arguments = distributed.Security().get_connection_args("client")

    async def identity() -> Any:
        async with distributed.rpc(address, connection_args=arguments) as server:
            return await server.identity()

    async def within_time() -> Any:
        return await asyncio.wait_for(identity(), _TO_CONNECT)

    with ThreadPoolExecutor(1) as executor:  # a notebook has a loop in this thread
        if executor.submit(asyncio.run, within_time()).result().get("type") != "Scheduler":
            raise OSError("not a scheduler")


@contextlib.contextmanager
def _connected(where: Any, name: str) -> Iterator[Client]:
    distributed = package("distributed", EXTRA)
    if name.startswith("tls:"):
        arguments = distributed.Security().get_connection_args("client")
        if arguments.get("ssl_context") is None:
            raise SentembError(
                f"{name}: this process has no certificates for it; name them under "
                "distributed.comm.tls in the configuration of Dask"
            )
    try:
        if isinstance(where, str):
            _greet(where)
        client = distributed.Client(where, timeout=_TO_CONNECT, set_as_default=False)
    # Another server may answer, and what reads its answer may raise anything.
    except Exception as error:
        raise SentembError(
            f"{name}: no scheduler of Dask answers there; start one with `dask scheduler`, or give "
            "--dask local"
        ) from error
    with client:
        yield client


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Suppress the messages of Dask: errors that matter are raised."""
    # Dask gives some of its loggers a level of their own.
    names = [name for name in logging.root.manager.loggerDict if name.startswith("distributed.")]
    loggers = [logging.getLogger(name) for name in ("distributed", *names)]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)


def _await_workers(cluster: Cluster) -> None:
    latest = time.monotonic() + _TO_BEGIN
    while not cluster.workers():
        if time.monotonic() > latest:
            raise SentembError(
                f"{cluster.name}: the scheduler has no workers; start some with "
                "`dask worker ADDRESS --nthreads 1`"
            )
        time.sleep(0.1)


def _check_versions(client: Client, workers: list[str]) -> None:
    """Raise a `SentembError` unless some workers have the versions of this process."""
    if not workers:
        return
    versions = _versions()
    expected, of_workers = versions(), client.run(versions, workers=workers, on_error="return")
    for address, theirs in sorted(of_workers.items()):
        if isinstance(theirs, OSError | KeyError):  # it is lost already
            continue
        if isinstance(theirs, Exception):
            raise SentembError(
                f"worker {address} cannot say its versions: {theirs}; install the same Python and "
                "sentemb on every worker"
            ) from theirs
        for name, version in expected.items():
            if theirs.get(name) != version:
                raise SentembError(
                    f"worker {address} has {name} {theirs.get(name, 'none')}, this process "
                    f"{version}; results are the same only with the same versions on every worker"
                )


def _versions() -> Callable[[], dict[str, str]]:
    """A function that says the versions of the process that calls it."""

    # Inside a function, so that Dask sends it whole: a worker may have no sentemb at all.
    def versions() -> dict[str, str]:
        import importlib.util

        installed = {}
        for name in ("sentemb", "numpy", "numba"):
            installed[name] = "none"
            if importlib.util.find_spec(name) is not None:
                installed[name] = str(importlib.import_module(name).__version__)
        if installed["sentemb"] != "none":
            try:
                lanes = importlib.import_module("sentemb.kernels.matmul").VECTOR_BYTES
                installed["vector registers of bytes"] = str(lanes)
            except (ImportError, AttributeError):  # another version
                pass
        return installed

    return versions


def _same(value: Any) -> Any:
    return value
