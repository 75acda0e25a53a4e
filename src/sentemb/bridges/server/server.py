"""Runs the application on waitress until it is told to stop."""

from __future__ import annotations

import contextlib
import logging
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from sentemb.bridges.server.request_limits import ARRIVED, Limits
from sentemb.errors import SentembError
from sentemb.system.bounds import whole
from sentemb.system.extras import package
from sentemb.system.files import reason_of
from sentemb.system.paths import AnyPath

if TYPE_CHECKING:
    from flask import Flask

_BACKLOG = 2048
# A query of 2,000 characters takes up to 24,000 bytes in an address.
_HEADER_BYTES = 32_768
# Seconds for requests that are being computed when the server ends.
_SECONDS_TO_END = 1.0
# Between two looks at whether a file was replaced.
_SECONDS_BETWEEN_LOOKS = 1.0
# Seconds between two looks at silent connections.
_CLEANUP = 5
# Files that the process needs apart from connections, and connections that a server is useless
# without.
_FILES, _LEAST = 64, 8
# Waitress counts its own socket and its pipe as connections.
_SOCKETS = 2


class Server:
    """A server that listens from the moment it is made, and answers while it runs.

    It is waitress with the limits below, and needs that package (the extra ``serve``). Slow clients
    and crowds of connections are the business of a proxy in front of it; see docs/serve.md.

    Parameters
    ----------
    app : flask.Flask
        The result of `sentemb.bridges.server.app.create_app`.
    host : str
        A name or an address of this machine; ``0.0.0.0`` and ``::`` are all its addresses.
    port : int
        0 for any that is free.
    threads : int
        Requests that are answered at a time. The kernels of each use all processors, so more
        only take memory; the second reads and writes JSON meanwhile.
    connection_limit : int
        Open connections; more wait until one is closed. At most 64 fewer than the files that
        the process may have open.
    channel_timeout : int
        Seconds after which a connection on which nothing is sent is closed.
    max_request_body_size : int
        Bytes of a request's body.

    Attributes
    ----------
    address : str
        Where this machine reaches it, such as ``http://127.0.0.1:8000``.
    port : int

    Raises
    ------
    SentembError
        If waitress is not installed, the address cannot be used, a number is out of range, or the
        process may not have enough open files.
    """

    def __init__(
        self,
        app: Flask,
        host: str = "127.0.0.1",
        port: int = 8000,
        *,
        threads: int = 4,
        connection_limit: int = 500,
        channel_timeout: int = 60,
        max_request_body_size: int = Limits.body,
    ) -> None:
        waitress = package("waitress", "serve", "the server")
        body = whole("max_request_body_size", max_request_body_size, 1, 2**31 - 2)
        connections = _connections(whole("connection_limit", connection_limit, 1, 2**20))
        bound = _listening(host, whole("port", port, 0, 65535))
        self.port: int = bound.getsockname()[1]
        self.address = _address(bound)
        logger = logging.getLogger("waitress")
        logger.setLevel(logging.ERROR)  # a connection that has to wait is served later
        logger.addFilter(_in_one_line)
        self._server = waitress.create_server(
            app,
            sockets=[bound],
            threads=whole("threads", threads, 1, 1024),
            backlog=_BACKLOG,
            connection_limit=connections + _SOCKETS,
            channel_timeout=whole("channel_timeout", channel_timeout, 1, 86_400),
            cleanup_interval=min(_CLEANUP, channel_timeout),
            max_request_header_size=_HEADER_BYTES,
            max_request_body_size=body + 1,  # of waitress the first size that is too large
            # Nothing is written to a disk.
            inbuf_overflow=body + 1,
            outbuf_overflow=sys.maxsize,
            channel_request_lookahead=1,  # notices clients that have left
            log_socket_errors=False,
            asyncore_use_poll=hasattr(select, "poll"),
            ident="",
        )
        self._server.channel_class = _noting_arrivals(self._server.channel_class)
        dispatcher = self._server.task_dispatcher
        dispatcher.shutdown = partial(dispatcher.shutdown, timeout=_SECONDS_TO_END)

    def run(self, on_hangup: Callable[[], None] | None = None) -> None:
        """Answer until `stop` is called or a signal ends the process.

        On Ctrl-C and SIGTERM the requests that are being computed are answered, for at most
        one second; then the signal takes its usual course. After a second one nothing is waited
        for.

        Parameters
        ----------
        on_hangup : function, optional
            Called on SIGHUP, in a thread of its own; never twice at a time.
        """
        with _signals(on_hangup) as received:
            try:
                self._server.run()
            except KeyboardInterrupt:  # a second signal
                pass
            finally:
                self._server.asyncore.close_all(self._server._map, ignore_all=True)
        if received:
            signal.raise_signal(received[0])

    def stop(self) -> None:
        """Let `run` return once the requests that are being computed are answered.

        From any thread.
        """
        with contextlib.suppress(OSError):  # it has ended already
            self._server.trigger.pull_trigger(self._end)

    def _end(self) -> None:
        """Let the loop of waitress end, in its own thread."""
        self._server.task_dispatcher.shutdown()
        self._server.asyncore.close_all(self._server._map, ignore_all=True)


def _noting_arrivals(channel: Any) -> Any:
    """The class of connections of waitress, whose requests know when their first byte came."""

    class Parser(channel.parser_class):  # type: ignore[misc]
        def __init__(self, adjustments: Any) -> None:
            super().__init__(adjustments)
            self.arrived = time.monotonic()

    class TimedTask(channel.task_class):  # type: ignore[misc]
        def get_environment(self) -> Any:
            return {**super().get_environment(), ARRIVED: self.request.arrived}

    class Channel(channel):  # type: ignore[misc]
        parser_class, task_class = Parser, TimedTask

        def writable(self) -> bool:
            # While a thread sends its answer, the loop can send nothing. If it asked again and
            # again, the thread would wait for its turn. The thread wakes the loop in the end.
            if self.requests and self.total_outbufs_len <= self.adj.outbuf_high_watermark:
                if not self.outbuf_lock.acquire(False):
                    return False
                self.outbuf_lock.release()
            return bool(super().writable())

    return Channel


@contextlib.contextmanager
def _signals(on_hangup: Callable[[], None] | None) -> Iterator[list[int]]:
    """Signals that stop the server instead of the process; yields those that have come."""
    received: list[int] = []

    def end(number: int, frame: Any) -> None:
        received.append(number)
        raise KeyboardInterrupt  # ends the loop of waitress

    with (
        contextlib.nullcontext() if on_hangup is None else hangups(on_hangup),
        _handled({signal.SIGINT: end, signal.SIGTERM: end}),
    ):
        yield received


@contextlib.contextmanager
def hangups(on_hangup: Callable[[], None]) -> Iterator[None]:
    """Call a function on SIGHUP, in a thread of its own; never twice at a time."""
    turn, waits = threading.Lock(), threading.Lock()

    def deal_with_hangup() -> None:
        with turn:
            waits.release()  # a signal from here on needs another call
            on_hangup()

    def hang_up(number: int, frame: Any) -> None:
        if waits.acquire(blocking=False):
            threading.Thread(target=deal_with_hangup, daemon=True).start()

    with _handled({signal.SIGHUP: hang_up} if hasattr(signal, "SIGHUP") else {}):
        yield


@contextlib.contextmanager
def watching(path: AnyPath, on_change: Callable[[], None]) -> Iterator[None]:
    """Call a function when another file has taken the place of one, in a thread of its own."""
    ended = threading.Event()

    def watch() -> None:
        there = _identity(path)
        while not ended.wait(_SECONDS_BETWEEN_LOOKS):
            before, there = there, _identity(path) or there
            if there != before:
                on_change()

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _identity(path: AnyPath) -> tuple[int, ...] | None:
    """Return a key of the file in a place that the next one does not share; without one, None."""
    try:
        metadata = os.stat(path)
    except OSError:
        return None
    return metadata.st_dev, metadata.st_ino, metadata.st_mtime_ns, metadata.st_size


@contextlib.contextmanager
def _handled(handlers: dict[int, Any]) -> Iterator[None]:
    """Handle signals meanwhile; only the main thread can."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number, handler in handlers.items():
            if signal.getsignal(number) is not signal.SIG_IGN:  # as for a background job of nohup
                before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _in_one_line(record: logging.LogRecord) -> bool:
    """Shorten the traceback of an error inside waitress, which any client can cause, to a line."""
    if record.exc_info:
        error = record.exc_info[1]
        message = f"{record.getMessage()}: {type(error).__name__}: {error}"
        record.msg = str(SentembError(message))  # escapes what the client has sent
        record.args, record.exc_info = (), None
    return True


def _listening(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address of this machine."""
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise SentembError(
            f"the host {host!r} is not known; give an address of this machine, such as 127.0.0.1"
        ) from None
    # A name such as localhost may have both kinds of addresses; more clients try the older one.
    family, kind, protocol, _, address = min(
        addresses, key=lambda entry: entry[0] != socket.AF_INET
    )
    bound = socket.socket(family, kind, protocol)
    try:
        if sys.platform == "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
        else:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(_BACKLOG)  # tells now if another server has the port
    except OSError as error:
        bound.close()
        raise SentembError(
            f"cannot listen on port {port} of {host}: {reason_of(error)}; give another --port, or "
            "--port 0 for any that is free"
        ) from None
    return bound


def _address(bound: socket.socket) -> str:
    """Where this machine reaches what ``bound`` listens on."""
    host, port, *_ = bound.getsockname()
    if ":" in host:
        host = "[::1]" if host == "::" else f"[{host}]"
    return f"http://{'127.0.0.1' if host == '0.0.0.0' else host}:{port}"


def _connections(requested: int) -> int:
    """How many connections may be open: no more than the process may have files."""
    try:
        import resource
    except ImportError:  # Windows
        return requested
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return requested
    if files < _FILES + _LEAST:
        raise SentembError(
            f"this process may have only {files} open files, and the server needs at least "
            f"{_FILES + _LEAST}; raise the limit with ulimit -n"
        )
    return min(requested, files - _FILES)
