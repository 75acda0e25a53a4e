"""How the command ends: exit codes, signals, standard streams that are closed or full.

0: done. 1: an error, one line on standard error. 2: wrong usage. 130: Ctrl-C. 143: terminated.
"""

import contextlib
import errno
import io
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TextIO

import click

from sentemb.errors import SentembError, printable
from sentemb.system.files import reason_of
from sentemb.system.parallel import signals_from_kernels
from sentemb.system.terminal import is_silenced, note

INTERRUPTED, TERMINATED = 130, 143


# In `click.Context.meta`: whether the summary of a command that writes files is printed as JSON.
AS_JSON = f"{__name__}.as_json"


def say(message: str) -> None:
    """Print a message about what was done on standard output, unless ``--quiet`` or ``--json``."""
    if not is_silenced() and not _is_json():
        click.echo(printable(message))


_shows_hints = True


@contextlib.contextmanager
def without_hints() -> Iterator[None]:
    """Do not say what is useful next in the body, where another command does it."""
    global _shows_hints
    before, _shows_hints = _shows_hints, False
    try:
        yield
    finally:
        _shows_hints = before


def hints(*lines: str) -> tuple[str, ...]:
    """Lines that say what is useful next; none in `without_hints`."""
    return lines if _shows_hints else ()


def summarise(output: str, facts: Mapping[str, Any], *lines: str) -> None:
    """Print what a command wrote.

    With ``--json`` this is the name of the output with ``facts``, as JSON. Otherwise it is
    ``lines``: on standard error if the output is ``-``, and on standard output if not, unless there
    is ``--quiet``.
    """
    if _is_json():
        click.echo(json.dumps({"output": output, **facts}, indent=1))
        return
    for line in lines:
        (note if output == "-" else say)(line)


def _is_json() -> bool:
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(AS_JSON))


def exit_code_of(run: Callable[[], object]) -> int:
    """Call ``run``, report an error in one line, and return the exit code."""
    _occupy_standard_streams()
    if isinstance(sys.stdout, io.TextIOWrapper):  # a title may have letters that its encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")
    closed = _Closed() if sys.stdout is None else None
    if closed is not None:
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(closed))
    try:
        code = _outcome(run)
    except KeyboardInterrupt:  # while an error was printed
        code = INTERRUPTED
    lost = _flushed(sys.stdout, None if code else "standard output")
    _flushed(sys.stderr)
    if closed is not None:
        closed.dropped = True
        sys.stdout = None
    return code or lost


def _outcome(run: Callable[[], object]) -> int:
    """The exit code of ``run``, whatever ends it."""
    received: list[int] = []
    report, show_warning = sys.unraisablehook, warnings.showwarning

    def note_warning(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, UserWarning):
            note(f"warning: {message}")
        else:
            show_warning(message, category, filename, lineno, file, line)

    def report_unless_ended(problem: Any) -> None:
        # A signal leaves objects of libraries half built: their `__del__` fails.
        if not received:
            report(problem)

    sys.unraisablehook, warnings.showwarning = report_unless_ended, note_warning
    try:
        return _ended(run, received)
    except Exception:
        # A signal that comes inside a library may end it with another exception than ours.
        if not received:
            raise
        return 128 + received[0]
    finally:
        sys.unraisablehook, warnings.showwarning = report, show_warning


def _ended(run: Callable[[], object], received: list[int]) -> int:
    """The exit code of ``run``; signals are put into ``received``."""
    try:
        with _termination(received), signals_from_kernels():
            _check_threads()
            ended = run() or 0
            return ended if isinstance(ended, int) else 0
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        return _code_of(received)
    except click.Abort as abort:
        interrupted = isinstance(abort.__cause__, KeyboardInterrupt)
        return _code_of(received) if interrupted else _failed("the input ended too early")
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return error.exit_code
    except BrokenPipeError:  # the reader of our output has enough
        _discard(sys.stdout)
        return 1
    except SentembError as error:
        return _failed(str(error))
    except MemoryError:
        return _failed("not enough memory; give less data or a smaller model")
    except OSError as error:
        return _failed(f"{error.filename or 'standard output'}: {reason_of(error)}")


def _check_threads() -> None:
    """Refuse a number of threads below 1, with which Numba cannot be imported."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "").strip()
    if re.fullmatch(r"0+|-[0-9]+", threads):
        raise SentembError(f"NUMBA_NUM_THREADS is {threads}; give at least 1, or unset it")


def _code_of(received: list[int]) -> int:
    """The exit code after a `KeyboardInterrupt`, which any signal inside SQLite becomes."""
    return 128 + received[-1] if received else INTERRUPTED


class _Closed(io.RawIOBase):
    """Standard output that was closed at the start: printing to it is an error.

    Once it is ``dropped`` it discards what its buffer still holds: Python 3.13 and later print a
    traceback if the last write of a stream fails.
    """

    dropped = False

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        if self.dropped:
            return len(data)
        raise OSError(errno.EBADF, "it is closed")


def _failed(message: str) -> int:
    note(f"Error: {SentembError(message)}")
    return 1


def _flushed(stream: Any, name: str | None = None) -> int:
    """Write out what ``stream`` holds; the exit code if that fails, said if it has a name."""
    try:
        if stream is not None:
            stream.flush()
    except BrokenPipeError:
        _discard(stream)
        return 1
    except OSError as error:
        _discard(stream)
        return _failed(f"{name}: cannot be written: {reason_of(error)}") if name else 1
    return 0


def _discard(stream: Any) -> None:
    """Discard what ``stream`` still holds, or Python would try to write it again when it exits."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _occupy_standard_streams() -> None:
    """Open /dev/null for what was closed at the start.

    Otherwise the next file that is opened would get the number of standard output or error, and
    messages would be written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


# What LLVM calls while it loads a kernel, and what the garbage collector calls. Python drops an
# exception that is raised in there, and prints a traceback.
_CALLBACKS = ("_raw_object_cache_notify", "_raw_object_cache_getbuffer", "__del__")
_SECONDS_UNTIL_AGAIN = 0.02


@contextlib.contextmanager
def _termination(received: list[int]) -> Iterator[None]:
    """Let signals end the program like an exception, with all its clean-up.

    The number of each signal is appended to ``received``. A signal that comes in a callback is sent
    once more, a moment later, unless the program has ended by then.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    timers: list[threading.Timer] = []

    def end(number: int, frame: Any) -> None:
        if _is_in_callback(frame):
            timers.append(threading.Timer(_SECONDS_UNTIL_AGAIN, os.kill, (os.getpid(), number)))
            timers[-1].daemon = True
            timers[-1].start()
            return
        received.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(TERMINATED)

    before = {}
    if signal.getsignal(signal.SIGTERM) not in (signal.SIG_IGN, None):
        before[signal.SIGTERM] = signal.signal(signal.SIGTERM, end)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        before[signal.SIGINT] = signal.signal(signal.SIGINT, end)
    try:
        yield
    finally:
        for timer in timers:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_in_callback(frame: Any) -> bool:
    """Whether a frame or one of its callers is one of `_CALLBACKS`."""
    while frame is not None:
        if frame.f_code.co_name in _CALLBACKS:
            return True
        frame = frame.f_back
    return False
