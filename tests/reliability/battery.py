"""The command line under bad input, bad places, bad streams and signals, case by case.

Each case runs the function that the installed command calls, in a forked child of a process that
has imported everything, so that a case takes milliseconds; a sample runs as processes of their own.
What must hold of every case: its exit code; a message of one line with place and remedy; no
traceback; nothing changed on disk but what the case names.
"""

import contextlib
import dataclasses
import fcntl
import gc
import inspect
import io
import json
import os
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
import traceback
import unicodedata
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

from reliability.count import Count
from reliability.sandbox import NOBODY, Sandbox, changes, scratch

LONGEST_MESSAGE = 300
SECONDS = 60
MEMORY = 2 << 30
BROKEN = ("Traceback", "Aborted!", "Exception ignored", "Fatal Python error")


@dataclasses.dataclass(frozen=True)
class Case:
    """One call of the command and what must come of it.

    Attributes
    ----------
    name : str
        Begins with its area and a colon.
    argv : tuple of str or bytes
    code : int or tuple of int
        The exit codes that are right; a negative one is a death by that signal.
    says : tuple of str
        What the last line of stderr must hold, in any case of letters.
    stdin : bytes or {"closed", "endless"}
    stdout, stderr : {"file", "closed", "full", "broken", "terminal"}
    setup : function of the path of the sandbox
    makes : tuple of str
        Patterns of paths below the sandbox's outer folder that may come or change.
    check : function of an `Outcome` that returns what is wrong or None
    user : bool
        Run as an ordinary user who owns the sandbox.
    environment : dict
    feeds, drains : dict, tuple
        FIFOs to write to (name to bytes) and to read from while the command runs.
    stop : (signal, fraction) or None
        The signal comes after this fraction of all calls of functions that the command makes; None
        is once it waits.
    start_up : str or None
        In a process of its own, SIGINT comes when this module is imported.
    own_process : bool
    seconds : int
        In which it must end, however busy the machine is.
    """

    name: str
    argv: tuple
    code: int | tuple = 1
    says: tuple = ()
    stdin: bytes | str = b""
    stdout: str = "file"
    stderr: str = "file"
    setup: Callable | None = None
    makes: tuple = ()
    check: Callable | None = None
    user: bool = False
    environment: dict = dataclasses.field(default_factory=dict)
    feeds: dict = dataclasses.field(default_factory=dict)
    drains: tuple = ()
    stop: tuple | None = None
    start_up: str | None = None
    own_process: bool = False
    seconds: int = SECONDS

    @property
    def area(self):
        return self.name.partition(":")[0]

    @property
    def codes(self):
        return self.code if isinstance(self.code, tuple) else (self.code,)


@dataclasses.dataclass
class Outcome:
    """What came of a case: the exit code (None after a hang), the streams, the sandbox.

    ``drained`` is what came out of FIFOs, ``calls`` the number of calls that were counted,
    ``terminal`` what was written on a terminal.
    """

    code: int | None
    stdout: bytes
    stderr: str
    box: Path
    drained: dict
    calls: int
    terminal: str = ""


def battery(areas=None, every=1, lanes=None) -> Count:
    """Run the table, or some ``areas`` of it, or ``every`` so many cases of each area."""
    lanes = lanes or min(4, len(os.sched_getaffinity(0)))
    request = {"areas": areas, "every": every, "lanes": lanes}
    home = scratch("sentemb-battery-")
    try:
        running = []
        for lane in range(lanes):
            own = home / f"lane{lane}"
            own.mkdir()
            command = [sys.executable, "-m", __name__, json.dumps(request | {"lane": lane})]
            environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
            running.append(subprocess.Popen(command, cwd=own, env=environment))
        codes = [process.wait() for process in running]
        if any(codes):
            raise RuntimeError(f"a lane of the battery ended with {codes}")
        found = [
            json.loads(line)
            for lane in range(lanes)
            for line in (home / f"lane{lane}" / "results").read_text().splitlines()
        ]
    finally:
        shutil.rmtree(home, ignore_errors=True)
    count = Count("command line")
    for result in sorted(found, key=lambda result: result["number"]):
        if result["wrong"] is None:
            count.notes.append(f"{result['name']}: not tried: {result['why']}")
            continue
        count.tried += 1
        if result["wrong"]:
            count.failures.append(f"{result['name']}: {'; '.join(result['wrong'])}")
    return count


# -- a lane: one warmed process that forks ----------------------------------------------------


def _lane(request):
    from reliability.battery_cases import cases, prepare, warm_up

    # On one processor no threads are started, so that forks are whole copies.
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[request["lane"] % len(processors)]})
    home = Path.cwd()
    template = home / "template"
    template.mkdir()
    prepare(template)
    sandbox = Sandbox(template, home)
    main = _entry_point()
    os.chdir(sandbox.box)
    with _quiet():
        warm_up(main)
    os.chdir(home)
    assert threading.active_count() == 1
    sandbox = Sandbox(template, home)
    gc.collect()
    gc.freeze()
    lane = Lane(sandbox, main, home)
    with open(home / "results", "w") as results:
        for number, case in enumerate(chosen(cases(), request["areas"], request["every"])):
            if number % request["lanes"] != request["lane"]:
                continue
            why = _cannot(case)
            wrong = None if why else lane.judge(case)
            result = {"number": number, "name": case.name, "wrong": wrong, "why": why}
            results.write(json.dumps(result) + "\n")


def chosen(table, areas, every):
    """The cases of some areas, every so manyth of each; of pair models fewer, which take longer."""
    seen = {}
    for case in table:
        place = seen[case.area] = seen.get(case.area, -1) + 1
        step = every if every == 1 or not case.area.startswith("pairs") else 6 * every
        if (areas is None or case.area in areas) and place % step == 0:
            yield case


def _cannot(case):
    needs_root = case.user or case.area == "devices"
    return "needs root" if needs_root and os.getuid() != 0 else None


def _entry_point():
    (point,) = entry_points(group="console_scripts", name="sentemb")
    return point.load()


@contextlib.contextmanager
def _quiet():
    """Standard streams to nowhere."""
    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    with open(os.devnull, "r+b") as nowhere:
        for number in (0, 1, 2):
            os.dup2(nowhere.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


class Lane:
    """Runs cases one after the other."""

    def __init__(self, sandbox, main, home):
        self.sandbox, self.main, self.home = sandbox, main, home
        self._calls = {}

    def judge(self, case):
        """What is wrong with a case: a list of str."""
        case = self._with_call_number(case)
        before = self.sandbox.ready(case.setup, case.user)
        outcome = self._run(case)
        after = self.sandbox.after()
        wrong = wrong_with(case, outcome)
        allowed = tuple(f"box/{pattern}" for pattern in case.makes)
        return wrong + changes(before, after, allowed)[:4]

    def _with_call_number(self, case):
        """``stop`` with a number of calls instead of a fraction."""
        if case.stop is None or case.stop[1] is None:
            return case
        number, fraction = case.stop
        if case.argv not in self._calls:
            self.sandbox.ready(case.setup, case.user)
            self._calls[case.argv] = self._run(dataclasses.replace(case, stop=(0, 0))).calls
            self.sandbox.after()
        return dataclasses.replace(case, stop=(number, 1 + int(fraction * self._calls[case.argv])))

    def _run(self, case):
        names = {key: self.home / key for key in ("in", "out", "err", "calls")}
        for path in names.values():
            path.write_bytes(b"")
        names["in"].write_bytes(case.stdin if isinstance(case.stdin, bytes) else b"")
        helpers = self._helpers(case)
        terminal = _terminal() if case.stderr == "terminal" else None
        child = os.fork()
        if child == 0:
            try:
                self._child(case, names, terminal)
            finally:
                os._exit(99)
        if case.stop is not None and case.stop[1] is None:
            _once_it_waits(child)
            os.kill(child, case.stop[0])
        code = _wait(child, case.seconds)
        drained = {}
        for name, process in helpers.items():
            try:
                drained[name] = process.communicate(timeout=0.5)[0]
            except subprocess.TimeoutExpired:
                process.kill()
                drained[name] = process.communicate()[0]
        return Outcome(
            code,
            names["out"].read_bytes(),
            names["err"].read_bytes().decode("utf-8", "backslashreplace"),
            self.sandbox.box,
            drained,
            int(names["calls"].read_bytes() or 0),
            _shown(terminal) if terminal else "",
        )

    def _helpers(self, case):
        """Processes at the other ends of FIFOs."""
        helpers = {}
        for name in case.drains:
            path = os.path.join(self.sandbox.box, name)
            helpers[name] = subprocess.Popen(["cat", path], stdout=subprocess.PIPE)
        for name, contents in case.feeds.items():
            (self.home / "fed").write_bytes(contents)
            helpers[name] = subprocess.Popen(
                ["sh", "-c", 'cat "$0" > "$1"', self.home / "fed", self.sandbox.box / name],
                stderr=subprocess.DEVNULL,
            )
        return helpers

    def _child(self, case, names, terminal):
        os.chdir(self.sandbox.box)
        # All are opened before any is closed, or one would get the number of another.
        calls = _high(os.open(names["calls"], os.O_WRONLY))
        opened = [
            _high(os.dup(terminal[1]))
            if wanted == "terminal"
            else _open_stream(number, wanted, path)
            for number, wanted, path in (
                (0, case.stdin, names["in"]),
                (1, case.stdout, names["out"]),
                (2, case.stderr, names["err"]),
            )
        ]
        for number, handle in enumerate(opened):
            if handle is None:
                os.close(number)
            else:
                os.dup2(handle, number)
                os.close(handle)
        if case.user:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        os.umask(0o022)
        box = str(self.sandbox.box)
        environment = {"HOME": f"{box}/home", "TMPDIR": f"{box}/tmp", "COLUMNS": "80"}
        argv = [os.fsdecode(argument) for argument in case.argv]
        if case.own_process or case.start_up:
            _become(argv, environment | case.environment, case.start_up, box)
        os.environ.update(environment | case.environment)
        tempfile.tempdir = None
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        sys.argv = ["sentemb", *argv]
        _open_streams()
        stop = case.stop if case.stop is not None and case.stop[1] is not None else None
        _call(self.main, stop, calls)


def _open_stream(number, wanted, path):
    """The file that is to be standard stream ``number``; None for a closed one."""
    if wanted == "closed":
        return None
    if wanted in ("endless", "broken"):
        read, write = os.pipe()
        if wanted == "broken":
            os.close(read)
            return _high(write)
        _high(write)  # stays open, so that no end comes
        return _high(read)
    if wanted == "full":
        return _high(os.open("/dev/full", os.O_WRONLY))
    return _high(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND))


def _high(handle):
    """The same file under a number that is out of the way."""
    moved = fcntl.fcntl(handle, fcntl.F_DUPFD, 100)
    os.close(handle)
    return moved


def _open_streams():
    """`sys.stdin` and its sisters as an interpreter that starts finds them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            stream = None
        else:
            raw = io.FileIO(number, "rb" if number == 0 else "wb", closefd=False)
            buffer = io.BufferedReader(raw) if number == 0 else io.BufferedWriter(raw)
            errors = "backslashreplace" if number == 2 else "strict"
            stream = io.TextIOWrapper(buffer, "utf-8", errors, line_buffering=number == 2)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _become(argv, environment, start_up, box):
    """Replace this process by one that runs the installed command."""
    script = Path(sys.executable).parent / "sentemb"
    command = [sys.executable, str(script), *argv]
    if start_up:
        interrupted = (
            "import os, runpy, signal, sys\n"
            f"def hook(event, arguments):\n"
            f"    if event == 'import' and arguments[0] == {start_up!r}:\n"
            f"        os.kill(os.getpid(), signal.SIGINT)\n"
            "sys.addaudithook(hook)\n"
            f"sys.argv = {['sentemb', *argv]!r}\n"
            f"runpy.run_path({str(script)!r}, run_name='__main__')\n"
        )
        command = [sys.executable, "-c", interrupted]
    # Kernels that are compiled already are not what is asked about.
    caches = {"NUMBA_CACHE_DIR": os.environ.get("NUMBA_CACHE_DIR", "")}
    caches["XDG_CACHE_HOME"] = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    kept = {key: value for key, value in (os.environ | caches).items() if value}
    kept = {key: value for key, value in kept.items() if not key.startswith("PYTHON")}
    os.execve(command[0], command, kept | environment)


def _call(main, stop, calls):
    """Call the command as its script does, end as an interpreter ends."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if stop is not None:
        number, at = stop
        done = 0

        def hook(frame, event, argument):
            nonlocal done
            if event == "call":
                done += 1
                # What is raised while Python closes a generator that nobody needs is dropped.
                if at and done >= at and not frame.f_code.co_flags & inspect.CO_GENERATOR:
                    sys.setprofile(None)
                    os.kill(os.getpid(), number)

        sys.setprofile(hook)
    code = 0
    try:
        sys.exit(main())
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        code = 130 if isinstance(error, KeyboardInterrupt) else 1
        with contextlib.suppress(Exception):
            traceback.print_exc()
    sys.setprofile(None)
    if stop is not None:
        os.write(calls, str(done).encode())
    if code is not None and not isinstance(code, int):
        with contextlib.suppress(Exception):
            print(code, file=sys.stderr)
        code = 1
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except Exception as error:
            with contextlib.suppress(Exception):
                print(f"Exception ignored in: {stream.name}\n{error!r}", file=sys.stderr)
            code = 120
    os._exit((code or 0) & 255)


def _once_it_waits(child):
    """Until the child sleeps, as it does when it reads from an empty pipe."""
    asleep, end = 0, time.monotonic() + 5
    while asleep < 5 and time.monotonic() < end:
        time.sleep(0.01)
        state = Path(f"/proc/{child}/stat").read_text().rpartition(") ")[2][0]
        asleep = asleep + 1 if state in "SZ" else 0


def _terminal():
    """Both ends of a terminal of 30 columns."""
    ends = os.openpty()
    fcntl.ioctl(ends[0], termios.TIOCSWINSZ, struct.pack("HHHH", 24, 30, 0, 0))
    return ends


def _shown(terminal):
    """All that was written on a terminal, which is closed."""
    shown = b""
    os.close(terminal[1])
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(terminal[0], 65536):
            shown += piece
    os.close(terminal[0])
    return shown.decode("utf-8", "backslashreplace")


def _wait(child, seconds):
    """The exit code, negative for a signal; None after a hang."""
    handle = os.pidfd_open(child)
    ready, _, _ = select.select([handle], [], [], seconds)
    os.close(handle)
    if not ready:
        os.kill(child, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return status if ready else None


def wrong_with(case, outcome):
    """Everything that must not be: a list of str."""
    wrong = []
    lines = outcome.stderr.splitlines()
    last = lines[-1] if lines else ""
    if outcome.code is None:
        wrong.append(f"hangs: no end in {case.seconds} seconds")
    elif outcome.code not in case.codes:
        wrong.append(f"exit code {outcome.code}, not {' or '.join(map(str, case.codes))}")
    for sign in BROKEN:
        if sign in outcome.stderr:
            wrong.append(f"{sign} on stderr: {last[:120]!r}")
            break
    if any(unicodedata.category(letter) == "Cc" for letter in outcome.stderr.replace("\n", "")):
        wrong.append("control characters on stderr")
    if case.stderr == "file" and not wrong:
        wrong += _wrong_with_message(case, outcome, lines, last)
    if case.check is not None and not wrong:
        said = case.check(outcome)
        if said:
            wrong.append(said)
    return wrong


def _wrong_with_message(case, outcome, lines, last):
    wrong = []
    errors = sum(line.startswith("Error: ") for line in lines)
    if outcome.code == 1 and not (case.stdout == "broken" or case.area == "gradients"):
        if errors != 1 or not last.startswith("Error: "):
            wrong.append(f"stderr does not end with one line Error: …, but {last[:80]!r}")
        elif len(last) > LONGEST_MESSAGE + len("Error: "):
            wrong.append(f"a message of {len(last)} letters: {last[:60]!r}")
    whole_help = any(line.startswith("  -h, --help") for line in lines)
    said_as_click = lines and lines[0].startswith("Usage: ") and last.startswith("Error: ")
    if outcome.code == 2 and not (said_as_click or whole_help):
        wrong.append(f"wrong usage is not said as click says it: {last[:80]!r}")
    if outcome.code in (1, 2):
        absent = [part for part in case.says if part.lower() not in last.lower()]
        wrong += [f"{part!r} is not in {last[:160]!r}" for part in absent]
    if outcome.code == 0 and errors:
        wrong.append(f"exit code 0 with {last[:80]!r}")
    return wrong


if __name__ == "__main__":
    # As the module that the cases import, not as a second copy of it.
    from reliability import battery as itself

    itself._lane(json.loads(sys.argv[1]))
