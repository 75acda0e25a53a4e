"""How the command ends: exit codes, signals, standard streams that are closed or full.

0: done. 1: an error, one line on standard error. 2: wrong usage. 130: Ctrl-C. 143: terminated.
"""

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable

import click

from sentemb.errors import SentembError
from sentemb.files import reason_of
from sentemb.parallel import signals_from_kernels

INTERRUPTED, TERMINATED = 130, 143


def note(message: str = "", nl: bool = True) -> None:
    """Print ``message`` on standard error; if nobody can read it there, the work goes on."""
    with contextlib.suppress(OSError):
        click.echo(message, err=True, nl=nl)


def exit_code_of(run: Callable[[], object]) -> int:
    """Call ``run``, say in one line what goes wrong, and return the exit code."""
    _occupy_standard_streams()
    try:
        with _termination(), signals_from_kernels():
            code = run() or 0
            code = code if isinstance(code, int) else 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except click.Abort as abort:
        interrupted = isinstance(abort.__cause__, KeyboardInterrupt)
        code = INTERRUPTED if interrupted else _failed("the input ended too early")
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        code = error.exit_code
    except BrokenPipeError:  # the reader of our output has enough
        _discard(sys.stdout)
        code = 1
    except SentembError as error:
        code = _failed(str(error))
    except MemoryError:
        code = _failed("not enough memory; give less data or a smaller model")
    except OSError as error:
        code = _failed(f"{error.filename or 'standard output'}: {reason_of(error)}")
    lost = _flushed(sys.stdout, "standard output")
    _flushed(sys.stderr)
    return code or lost


def _failed(message):
    note(f"Error: {SentembError(message)}")
    return 1


def _flushed(stream, name=None):
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


def _discard(stream):
    """Lead what ``stream`` still holds to nowhere, or Python would try once more at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _occupy_standard_streams():
    """Open /dev/null for what was closed at the start.

    Otherwise the next file that is opened would get the number of standard output or error, and
    messages would be written into it.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


@contextlib.contextmanager
def _termination():
    """Let a termination signal end the program as an exception does: with all cleaning up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number, frame):
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
