"""Runs the application on the network until it is told to stop."""

from __future__ import annotations

import contextlib
import logging
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from sentemb.bounds import whole
from sentemb.errors import SentembError
from sentemb.serving.limits import Limits
from sentemb.system.extras import package
from sentemb.system.files import reason_of

if TYPE_CHECKING:
    from flask import Flask

# Requests that are answered at a time. The kernels of each use all processors, so more would only
# take memory; the second reads and writes JSON meanwhile.
_AT_ONCE = 4
_BACKLOG = 2048
# A query of 2,000 characters takes up to 24,000 bytes in an address.
_HEADER_BYTES = 32_768
# Seconds between two looks at slow clients.
_ROUND = 0.5
# Files that the process needs apart from connections.
_FILES = 64


class Server:
    """A server that listens from the moment it is made, and answers while it runs.

    It needs the package waitress (the extra ``serve``).

    Parameters
    ----------
    app : flask.Flask
        What `sentemb.serving.app.create_app` returned, with the same limits.
    host : str
        A name or an address of this machine; ``0.0.0.0`` and ``::`` are all its addresses.
    port : int
        0 for any that is free.
    limits : Limits, optional

    Attributes
    ----------
    address : str
        Where this machine reaches it, such as ``http://127.0.0.1:8000``.
    port : int

    Raises
    ------
    SentembError
        If waitress is not installed, or the address cannot be used.
    """

    def __init__(
        self, app: Flask, host: str = "127.0.0.1", port: int = 8000, limits: Limits | None = None
    ) -> None:
        adjustments = package("waitress.adjustments", "serve", "the server").Adjustments
        from sentemb.serving.channels import Dispatcher, Listener

        self._limits = limits or Limits()
        bound = _listening(host, whole("port", port, 0, 65535))
        self.port: int = bound.getsockname()[1]
        self.address = _address(bound)
        # A full queue is answered, and a connection that has to wait is served later.
        logging.getLogger("waitress").setLevel(logging.ERROR)
        settings = adjustments(
            sockets=[bound],
            threads=_AT_ONCE,
            backlog=_BACKLOG,
            connection_limit=_connections(self._limits.connections),
            max_request_header_size=_HEADER_BYTES,
            max_request_body_size=self._limits.body + 1,
            # Nothing is written to a disk.
            inbuf_overflow=self._limits.body + 1,
            outbuf_overflow=sys.maxsize,
            channel_request_lookahead=1,  # notices clients that have left
            log_socket_errors=False,
            asyncore_use_poll=hasattr(select, "poll"),
            ident="",
        )
        self._dispatcher = Dispatcher(_AT_ONCE, self._limits)
        self._listener = Listener(
            self._limits,
            app,
            {},
            True,
            bound,
            dispatcher=self._dispatcher,
            adj=settings,
            sockinfo=(bound.family, bound.type, bound.proto, bound.getsockname()),
            bind_socket=False,
        )
        self._stops = self._hurries = False

    def run(self, on_hangup: Callable[[], None] | None = None) -> None:
        """Answer until `stop` is called or a signal ends the process.

        On Ctrl-C and SIGTERM the requests that have begun are answered, at most for the seconds of
        `Limits`; then the signal takes its usual course. After a second one nothing is waited for.

        Parameters
        ----------
        on_hangup : function, optional
            Called on SIGHUP, in a thread of its own; never twice at a time.
        """
        with self._signals(on_hangup) as received:
            try:
                while not self._stops:
                    self._listener.one_round(_ROUND)
                    self._listener.close_slow()
                self._drain()
            finally:
                self._dispatcher.shutdown(timeout=0 if self._hurries else self._limits.seconds)
                self._listener.end()
        if received:
            signal.raise_signal(received[0])

    def stop(self) -> None:
        """Let `run` return once the requests that have begun are answered; from any thread."""
        self._stops = True
        with contextlib.suppress(OSError):  # it has ended already
            self._listener.pull_trigger()

    def _drain(self) -> None:
        """Answer the requests that have begun."""
        for _ in range(2):  # accept the connections that wait, and read what they have sent
            self._listener.one_round(0)
        self._listener.stop_listening()
        end = time.monotonic() + self._limits.seconds
        self._listener.close_slow(ends=True)
        while self._listener.is_busy() and time.monotonic() < end and not self._hurries:
            self._listener.one_round(_ROUND / 10)
            self._listener.close_slow(ends=True)

    @contextlib.contextmanager
    def _signals(self, on_hangup: Callable[[], None] | None) -> Iterator[list[int]]:
        """Signals that stop the server instead of the process; yields those that have come."""
        received: list[int] = []
        if threading.current_thread() is not threading.main_thread():
            yield received
            return

        def end(number: int, frame: Any) -> None:
            self._hurries = bool(received)
            received.append(number)
            self.stop()

        turn, waits = threading.Lock(), threading.Lock()

        def deal_with_hangup() -> None:
            assert on_hangup is not None
            with turn:
                waits.release()  # a signal from here on needs another call
                on_hangup()

        def hang_up(number: int, frame: Any) -> None:
            if waits.acquire(blocking=False):
                threading.Thread(target=deal_with_hangup, daemon=True).start()

        handlers: dict[int, Any] = {signal.SIGINT: end, signal.SIGTERM: end}
        if on_hangup is not None and hasattr(signal, "SIGHUP"):
            handlers[signal.SIGHUP] = hang_up
        before = {}
        for number, handler in handlers.items():
            if signal.getsignal(number) is not signal.SIG_IGN:  # as for a background job of nohup
                before[number] = signal.signal(number, handler)
        try:
            yield received
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that is bound to an address of this machine."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        raise SentembError(
            f"the host {host!r} is not known; give an address of this machine, such as 127.0.0.1"
        ) from None
    # A name such as localhost may have both kinds of addresses; more clients try the older one.
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
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


def _connections(wanted: int) -> int:
    """How many connections may be open: no more than the process may have files."""
    try:
        import resource
    except ImportError:  # Windows
        return wanted
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if files == resource.RLIM_INFINITY else max(1, min(wanted, files - _FILES))
