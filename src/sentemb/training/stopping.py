"""Why a training stops early: Ctrl-C or SIGTERM after the current mini-batch, or divergence."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from sentemb.errors import SentembError


class Interrupted(SentembError):
    """Training was stopped by a signal. The message says how to continue it.

    Attributes
    ----------
    signal : int
        SIGINT (Ctrl-C) or SIGTERM.
    """

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.signal = int(number)


class Diverged(SentembError):
    """The loss is not a number, or the weights have become huge."""


class StopRequest:
    """Whether a signal has asked the training to stop; ``signal`` is the last such signal."""

    def __init__(self) -> None:
        self.signal: int = signal.SIGINT
        self._event = threading.Event()

    def set(self, number: int) -> None:
        """Ask to stop because of signal ``number``."""
        self.signal = number
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()


@contextlib.contextmanager
def stop_signals() -> Iterator[StopRequest]:
    """Turn Ctrl-C and SIGTERM into a `StopRequest` within this block.

    A second Ctrl-C acts at once. A signal that is ignored stays ignored (a shell lets background
    jobs ignore Ctrl-C). Outside the main thread Python cannot handle signals, so this does nothing.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        if signal.SIGINT in before:
            signal.signal(signal.SIGINT, before[signal.SIGINT])
        request.set(number)

    before = {
        number: signal.signal(number, ask_to_stop)
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
