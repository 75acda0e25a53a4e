"""Cases to measure, and contenders that take turns at them."""

import json
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from contenders import Contender
from pages import DATA
from synthetic import write_log, write_realistic_log

from sentemb.system.tables import markdown_table

# Losses of two contenders may differ by this much in any of the first steps.
TOLERANCE = 1e-4
# A contender that also moves the rows that a mini-batch does not touch agrees for fewer steps.
AGREEING = {"dense_adam": 2}
CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


def real_log(name="occupations"):
    """The path of one of the shared click logs, None where it is absent."""
    path = DATA / name / "pairs.tsv"
    return path if path.exists() else None


class DisagreementError(Exception):
    """Two contenders do not compute the same thing, so their times mean nothing."""


@dataclass(frozen=True)
class Spread:
    """Median, least and greatest of the rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values):
        return cls(float(np.median(values)), float(np.min(values)), float(np.max(values)))


class Result:
    """Seconds of every contender, round by round.

    Parameters
    ----------
    seconds : dict of list of float
        Per contender, in the same order of rounds.
    """

    def __init__(self, seconds):
        self.seconds = seconds

    def time(self, name):
        return Spread.of(self.seconds[name])

    def ratio(self, name, base="ours"):
        """How many times longer than ``base``, round by round."""
        return Spread.of(np.array(self.seconds[name]) / np.array(self.seconds[base]))


class Bench:
    """Where logs and cases are kept, and how much is measured.

    Parameters
    ----------
    folder : path
    rounds, steps : int
        Turns of every contender, and training steps per turn.
    clock : {"wall", "cpu"}
        Processor time is for one-thread figures on a machine that others use.
    compared : int
        First steps, whose losses must agree; they also warm up.
    """

    def __init__(self, folder, rounds, steps, clock, compared):
        self.folder = Path(folder)
        self.rounds, self.steps, self.clock, self.compared = rounds, steps, clock, compared

    def shorter(self):
        """The same with fewer turns and steps, for rows that matter less."""
        rounds, steps = min(5, self.rounds), min(3, self.steps)
        return Bench(self.folder, rounds, steps, self.clock, min(6, self.compared))

    def uniform(self, pairs, **shape):
        """The path of a uniform synthetic log, written once."""
        parts = [f"{key}={value}" for key, value in shape.items()]
        path = self.folder / ("-".join([f"uniform={pairs}", *parts]) + ".tsv")
        if not path.exists():
            write_log(path, pairs, **shape)
        return path

    def realistic(self, pairs):
        """The path of a realistic synthetic log, written once."""
        path = self.folder / f"realistic={pairs}.tsv"
        if not path.exists():
            write_realistic_log(path, pairs)
        return path

    def case(self, log, preset="paper", **settings):
        """A folder that describes one training; ``preset`` None means the defaults."""
        from our_side import settings_of

        folder = Path(tempfile.mkdtemp(prefix="case-", dir=self.folder))
        case = {"log": str(log), "preset": preset, "settings": settings}
        chosen = settings_of(case)
        case |= {name: getattr(chosen, name) for name in ("gamma", "max_norm")}
        case["rate"] = chosen.learning_rate
        (folder / "case.json").write_text(json.dumps(case))
        return folder

    def train(self, case, kinds, threads=(1,)):
        """Race at training steps: (`Result`, what `Ours.prepare` says, the running contenders).

        A contender's name is its kind, with two threads ``kind/2``.
        """
        with ExitStack() as stack:
            racers = {}
            prepared = None
            for kind in kinds:
                for count in threads:
                    name = kind if count == 1 else f"{kind}/{count}"
                    racer = racers[name] = stack.enter_context(Contender(kind))
                    racer.ask("load", case=str(case), threads=count)
                    if prepared is None:  # ours comes first
                        prepared = racer.ask("prepare", folder=str(case))
            self.compare(racers)
            result = Result(self.take_turns(racers, "train", steps=self.steps))
        (case / "start.npz").unlink()  # hundreds of megabytes
        return result, prepared

    def compare(self, racers):
        """The first steps of all: losses must agree."""
        losses = {
            name: np.array(racer.ask("train", steps=self.compared)["losses"])
            for name, racer in racers.items()
        }
        base = losses["ours"]
        for name, values in losses.items():
            some = slice(AGREEING.get(name.split("/")[0]))
            if not np.abs(values - base)[some].max() <= TOLERANCE:
                raise DisagreementError(f"losses of {name}: {values}, ours: {base}")

    def take_turns(self, racers, job, **details):
        """Seconds of every racer, round by round: the median of what a turn measures."""
        seconds = {name: [] for name in racers}
        for _ in range(self.rounds):
            for name, racer in racers.items():
                answer = racer.ask(job, **details)
                seconds[name].append(float(np.median(answer[self.clock])))
        return seconds


def take_turns(contenders, rounds, clock):
    """Seconds of every contender, round by round, after one turn each to warm up."""
    seconds = {name: [] for name in contenders}
    for count in range(rounds + 1):
        for name, function in contenders.items():
            began = clock()
            function()
            if count:
                seconds[name].append(clock() - began)
    return Result(seconds)


def ratio_table(result, count, base):
    """Lines of a table of contenders, each with its texts per second and its ratio to ``base``."""
    return _table_of(result, base, "texts/s", lambda seconds: f"{count / seconds:,.0f}", ".3f")


def query_table(result, count, base):
    """Lines of a table of contenders, each with its time per query and its ratio to ``base``."""
    return _table_of(
        result, base, "ms per query", lambda seconds: f"{1e3 * seconds / count:.2f}", ".4f"
    )


def _table_of(result, base, head, cell_of, form):
    rows = [["", "seconds", head, f"ratio to {base}"]]
    for name in result.seconds:
        median, ratio = result.time(name).median, result.ratio(name, base)
        rows.append([
            name, f"{median:{form}}", cell_of(median),
            f"{ratio.median:.2f} × ({ratio.least:.2f}–{ratio.most:.2f})",
        ])  # fmt: skip
    return markdown_table(rows)


def note(message):
    """Say on standard error what is being measured."""
    print(message, file=sys.stderr, flush=True)
