"""A cluster of Dask: opened, checked, and given tasks.

A task is a function of this package with its arguments. Dask may compute it again, on another
worker, so it changes nothing that it is given and keeps nothing that a later task relies on.
The scheduler keeps the arguments of every task whose result is needed: a worker that is lost costs
its tasks, which Dask computes again, and nothing else. Data that are scattered would be lost with
their worker, and a dict would be taken apart; so `Cluster.keep` sends a value as the argument of a
task.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import itertools
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_THREADS, brief
from sentemb.system.extras import package
from sentemb.system.main_guard import lost_script, unguarded_call
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
# Tasks of each worker that `Cluster.in_order` has under way: one to compute, one to send.
_AHEAD = 2
# Dask advises against large arguments. Here they are meant: a task can be computed again only from
# its arguments.
_CONFIGURATION = {"distributed.admin.large-graph-warning-threshold": "1 TB"}


class Cluster:
    """The workers that a scheduler has at the time, as an `Executor`; `opened` makes one.

    Messages call the cluster ``name``.
    """

    threads = 1  # a worker has a process for each

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self.name = name
        self._checked: set[str] = set()  # workers whose versions are those of this process

    def workers(self) -> list[str]:
        """The addresses of all workers, each once for every thread that it computes with."""
        with self._naming_errors():
            threads: dict[str, int] = self._client.nthreads()  # type: ignore[no-untyped-call]
            _check_versions(self._client, sorted(threads.keys() - self._checked))
        self._checked |= threads.keys()
        return [address for address in sorted(threads) for _ in range(threads[address])]

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Have ``function(*arguments)`` computed.

        The workers can import the function. The arguments can be pickled; in place of other futures
        the function gets their results.
        """
        with self._naming_errors():
            return self._client.submit(function, *arguments, pure=False)

    def result(self, future: Future[Any]) -> Any:
        """The result of a task, once it is finished.

        Raises `SentembError` as the task raised it; if the scheduler is lost, if all workers are
        and no other has come for half a minute, or if one worker after the other ends during the
        task.
        """
        workers_seen = time.monotonic()
        with self._naming_errors():
            # Gathered once: a transfer that is begun again at every look might never end.
            gathered: Any = self._client.gather(future, asynchronous=True)  # type: ignore[no-untyped-call]
            loop: Any = self._client.loop
            gathering = asyncio.run_coroutine_threadsafe(gathered, loop.asyncio_loop)
            while not concurrent.futures.wait([gathering], _BETWEEN_LOOKS).done:
                if self.workers():
                    workers_seen = time.monotonic()
                elif time.monotonic() - workers_seen > _WITHOUT_WORKERS:
                    raise SentembError(
                        f"all workers of {self.name} are lost, and no other came for "
                        f"{_WITHOUT_WORKERS:.0f} seconds; start some and try again"
                    )
            return gathering.result()

    def keep(self, value: Any) -> Future[Any]:
        """``value`` as an argument of many tasks: it is sent to each worker once."""
        return self.submit(_same, value)

    def in_order(
        self, function: Callable[..., Any], portions: Iterable[tuple[Any, ...]]
    ) -> Iterator[Any]:
        """Yield ``function(*portion)`` for each of ``portions``, in their order.

        Few portions are under way at a time, so the memory does not grow with their number. Raises
        `SentembError` as `result`.
        """
        left = iter(portions)
        pending: deque[Future[Any]] = deque()
        try:
            while True:
                most = _AHEAD * max(1, len(self.workers()))
                while len(pending) < most and (portion := next(left, None)) is not None:
                    pending.append(self.submit(function, *portion))
                if not pending:
                    return
                yield self.result(pending.popleft())
        finally:
            for future in pending:
                future.release()  # type: ignore[no-untyped-call]

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
            raise SentembError(
                f"several workers of {self.name} ended during the same task; see whether they have "
                "enough memory"
            ) from error


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
    """This process as an `Executor`: one call after the other."""

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

    Raises `SentembError` for anything else, without the package, if the scheduler cannot be reached
    or has no workers, or if a worker has other versions than this process.
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
        try:
            client.wait_for_workers(1, timeout=_TO_BEGIN)
        except TimeoutError as error:
            raise SentembError(
                f"{name}: the scheduler has no workers; start some with "
                "`dask worker ADDRESS --nthreads 1`"
            ) from error
        cluster = Cluster(client, name)
        cluster.workers()  # checks their versions
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
        if (script := lost_script()) is not None:
            raise SentembError(
                f"{dask} starts processes that run {script} again, and there is no such file; save "
                "the program in one"
            ) from error
        if (call := unguarded_call()) is not None:
            raise SentembError(
                f"{call}: {dask} starts processes that run this file again; put the call below "
                '`if __name__ == "__main__":`'
            ) from error
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
