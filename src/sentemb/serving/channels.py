"""Waitress with a bounded queue, deadlines for slow clients, and errors as JSON.

Importing this module imports waitress; `sentemb.serving.runner` does so when a server starts.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser, ParsingError
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask, ThreadedTaskDispatcher
from waitress.utilities import Error

from sentemb.serving.limits import Limits

# Connections that are accepted at a time.
_ACCEPTED = 64
# A client that is refused while it still sends is listened to for this long, or it would see a
# broken connection instead of the answer.
_LINGERING_SECONDS = 2.0
_DISCARDED_BYTES = 1 << 16
_HEADERS = (
    ("Content-Type", "application/json"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"),
    ("X-Content-Type-Options", "nosniff"),
)
_REMEDIES = {
    413: "the body is too large; send fewer texts at a time",
    431: "the headers are too large; send fewer or shorter ones",
    500: "the server failed; its standard error says why",
}


class Busy(Error):  # type: ignore[misc]
    """Refuses a request because too many are waiting."""

    code = 503
    reason = "Service Unavailable"


class _JsonErrorTask(ErrorTask):  # type: ignore[misc]
    """An error of waitress in the form of those of the application."""

    def execute(self) -> None:
        error = self.request.error
        self.status = f"{error.code} {error.reason}"
        said = " ".join(str(error.body).split())
        message = _REMEDIES.get(error.code, f"{said or error.reason}; correct the request")
        if isinstance(error, Busy):
            message = said
            self.response_headers.append(("Retry-After", "1"))
        body = json.dumps({"error": message}).encode("ascii")
        self.response_headers += _HEADERS
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Parser(HTTPRequestParser):  # type: ignore[misc]
    """Reads a request, and refuses what different programs read differently."""

    def parse_header(self, header_plus: bytes) -> None:
        """Read the first line and the headers; see `HTTPRequestParser`."""
        try:
            super().parse_header(header_plus)
        except ValueError:  # thousands of digits, or half of a bracket
            raise ParsingError("Content-Length or the address is invalid") from None
        # A proxy that believes the other one sees a second request in what is left.
        has_length = "CONTENT_LENGTH" in self.headers
        if (self.chunked and has_length) or "TRANSFER_ENCODING" in self.headers:
            raise ParsingError("Content-Length and Transfer-Encoding are both given")
        if not self.path.startswith("/"):
            raise ParsingError("the address has no path; begin it with /")


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection whose client has a limited time to send, and to read."""

    error_task_class = _JsonErrorTask
    parser_class = _Parser

    def __init__(self, server: Any, *arguments: Any, **settings: Any) -> None:
        self._limits: Limits = server.limits
        self._quiet_since = time.monotonic()
        # Since when a request is being received, one waits, or an answer is being sent.
        self._receives_since: float | None = None
        self._waits_since = 0.0
        self._sends_since: float | None = None
        self._lingers_until: float | None = None
        super().__init__(server, *arguments, **settings)

    # -- receiving ----------------------------------------------------------------------------

    def received(self, data: bytes) -> bool:
        """Take what the client has sent; see `HTTPChannel`."""
        before = self.request
        taken: bool = super().received(data)
        if self.request is None:
            self._receives_since = None
        elif self.request is not before or self._receives_since is None:
            self._receives_since = time.monotonic()
        return taken

    def send_continue(self) -> None:
        """Ask for the body, unless the headers are reason enough to refuse the request."""
        if self.request.error is None:
            super().send_continue()

    def handle_read(self) -> None:
        """Read what has arrived; a channel that lingers discards it."""
        if self._lingers_until is None:
            super().handle_read()
            return
        try:
            self.recv(_DISCARDED_BYTES)  # closes the channel at the end of the stream
        except OSError:
            self._close()

    def readable(self) -> bool:
        """Whether to wait for data."""
        return self._lingers_until is not None or bool(super().readable())

    def writable(self) -> bool:
        """Whether there is something to send."""
        return self._lingers_until is None and bool(super().writable())

    # -- computing ----------------------------------------------------------------------------

    def queued(self) -> None:
        """Note that a request begins to wait."""
        self._waits_since = time.monotonic()

    def service(self) -> None:
        """Answer one request, or refuse it if it has waited too long."""
        request = self.requests[0]
        if request.error is None and self._waited() > self._limits.seconds:
            request.error = Busy(f"the request waited {self._waited():.0f} s; try again later")
        super().service()
        self._quiet_since = time.monotonic()

    def _waited(self) -> float:
        return time.monotonic() - self._waits_since

    # -- closing ------------------------------------------------------------------------------

    def handle_close(self) -> None:
        """Close the connection; after a refusal only once the client has stopped sending."""
        is_refusal = self.close_when_flushed or self.will_close
        if self._lingers_until is None and is_refusal and self.connected:
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:
                self._close()
            else:
                self._lingers_until = time.monotonic() + _LINGERING_SECONDS
            return
        self._close()

    def _close(self) -> None:
        super().handle_close()

    def close_if_due(self, ends: bool) -> None:
        """Close the connection of a client that is too slow, or that has nothing to say.

        Parameters
        ----------
        ends : bool
            Whether the server ends: then every connection without a request is closed.
        """
        now, limits = time.monotonic(), self._limits
        if self._lingers_until is not None:
            if now > self._lingers_until:
                self._close()
            return
        if not self.total_outbufs_len:
            self._sends_since = None
        elif self._sends_since is None:
            self._sends_since = now
        since = (self._sends_since, self._receives_since)
        is_slow = any(one is not None and one < now - limits.sending_seconds for one in since)
        is_idle = not self.is_busy() and (ends or self._quiet_since < now - limits.idle_seconds)
        if is_slow or is_idle:
            self._close()

    def is_busy(self) -> bool:
        """Whether a request is received, waits or is answered."""
        return bool(self.requests or self.total_outbufs_len or self._receives_since is not None)


class Dispatcher(ThreadedTaskDispatcher):  # type: ignore[misc]
    """Threads that answer requests from a queue of limited length.

    Parameters
    ----------
    threads : int
    limits : Limits
    """

    def __init__(self, threads: int, limits: Limits) -> None:
        super().__init__()
        self._most = limits.queue
        self.set_thread_count(threads)
        # Refusals take no time and must not wait behind what is refused because of its length.
        self._refusals = ThreadedTaskDispatcher()
        self._refusals.set_thread_count(1)

    def add_task(self, task: Channel) -> None:
        """Have a channel's first request answered, or refused if the queue is full."""
        task.queued()
        with self.lock:
            idle = len(self.threads) - self.active_count
            is_full = len(self.queue) >= self._most + idle
        if is_full and task.requests[0].error is None:
            task.requests[0].error = Busy(
                f"{self._most:,} requests are waiting already; try again later"
            )
        if task.requests[0].error is not None:
            self._refusals.add_task(task)
        else:
            super().add_task(task)

    def shutdown(self, cancel_pending: bool = True, timeout: float = 5) -> bool:
        """End the threads."""
        self._refusals.shutdown(cancel_pending, timeout)
        return bool(super().shutdown(cancel_pending, timeout))


class Listener(TcpWSGIServer):  # type: ignore[misc]
    """The socket that accepts connections."""

    channel_class = Channel

    def __init__(self, limits: Limits, *arguments: Any, **settings: Any) -> None:
        self.limits = limits
        super().__init__(*arguments, **settings)

    def handle_accept(self) -> None:
        """Accept the connections that wait, as far as there is room."""
        for _ in range(_ACCEPTED):
            before = len(self._map)
            if before < self.adj.connection_limit:
                super().handle_accept()
            if len(self._map) == before:
                break

    def maintenance(self, now: float) -> None:
        """Nothing: `close_slow` does it, between two rounds of the loop."""

    def close_slow(self, ends: bool = False) -> None:
        """Close the connections of slow and idle clients."""
        for channel in list(self.active_channels.values()):
            channel.close_if_due(ends)

    def is_busy(self) -> bool:
        """Whether a client waits for an answer."""
        return any(channel.is_busy() for channel in self.active_channels.values())

    def stop_listening(self) -> None:
        """Accept no further connections."""
        wasyncore.dispatcher.close(self)

    def one_round(self, seconds: float) -> None:
        """Serve the sockets that are ready, after at most ``seconds``."""
        wasyncore.loop(seconds, self.adj.asyncore_use_poll, self._map, count=1)

    def end(self) -> None:
        """Close everything."""
        wasyncore.close_all(self._map, ignore_all=True)
