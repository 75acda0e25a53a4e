"""Train and measure every row, keeping each result, so that a stopped comparison goes on.

For each row every point of its grid is fitted with seed 0; the point best on dev, by NDCG@1, is
then fitted with the other seeds. Test is only measured, and only on what dev prefers so far.
"""

import time
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np

from sentemb.bounds import brief, is_number, plain, whole
from sentemb.comparison.data import Data
from sentemb.comparison.rows import ROWS, Row, apart
from sentemb.comparison.store import MAX_SEEDS, Damaged, Store, key_of
from sentemb.errors import SentembError
from sentemb.evaluation.evaluate import judged_run
from sentemb.evaluation.metrics import ndcg
from sentemb.evaluation.trec import read_run, write_run
from sentemb.system.files import make_folder
from sentemb.system.locks import locked
from sentemb.training.trainer import Interrupted

CUTOFFS = (1, 3, 10)
# Titles that are encoded for the speed of an encoder.
_TIMED_TITLES = 4096
_MAX_THREADS = 1024
# Letters of the reason why a row is missing.
_REASON = 280


@dataclass(frozen=True)
class _Plan:
    """A row that can run: its points, the settings to choose from, and how many seeds it takes."""

    row: object
    points: list
    n_seeds: int


class Comparison:
    """Results of some rows on one set of data, in one folder.

    Parameters
    ----------
    data : Data
    folder : path
        Where results are kept and taken up again; docs/formats.md describes it.
    rows : list of Row
    seeds : int
        1 to 100, for rows whose result depends on one.
    threads : int or None
        By default all processors; no figure depends on it.
    keep_models : bool
        Whether trained models are kept too.
    force : bool
        Throw away what belongs to other data, was made with other settings or is damaged.
    note : function of a str
        Told what happens.

    Attributes
    ----------
    reasons : dict of str to str
        Name of a row -> why it, or a part of it, is missing.
    failed : list of str
        Those of them that cannot be measured, and do not only wait for more time.

    Raises
    ------
    SentembError
        If an argument is not what it must be, two rows share a name, or the folder holds something
        else, results on other data or with other settings, or lines that no comparison wrote.
    """

    def __init__(
        self,
        data,
        folder,
        rows,
        *,
        seeds=3,
        threads=None,
        keep_models=False,
        force=False,
        note=print,
    ):
        if not isinstance(data, Data):
            raise SentembError(f"data is {brief(data)}; give what read_data returns")
        if not (isinstance(rows, list) and all(isinstance(row, Row) for row in rows)):
            raise SentembError(f"rows is {brief(rows)}; give what rows_of returns")
        whole("seeds", seeds, 1, MAX_SEEDS)
        if threads is not None:
            whole("threads", threads, 1, _MAX_THREADS)
        self.data = data
        self.threads, self.keep_models, self.note = threads, keep_models, note
        self.reasons, self.failed = {}, []
        self._store = Store(folder, {*ROWS, *(row.name for row in rows)})
        self._plans = self._planned(rows, seeds)
        self._lines = {}  # `key_of` a line of results.jsonl -> the line
        self._store.holds_comparison()  # or nothing is made or locked
        with locked(make_folder(self._store.folder)):
            self._take_up(force)

    def _planned(self, rows, seeds):
        plans = {}
        for row in rows:
            if row.name in plans or row.name in self.reasons:
                raise SentembError(f"two rows are called {row.name}; rename the model's folder")
            try:
                if row.needs_log and self.data.log is None:
                    raise SentembError("there is no pairs.tsv to learn from")
                # Without dev there is nothing to choose by: the defaults.
                points = row.points() if self.data.dev is not None else row.points()[:1]
                plans[row.name] = _Plan(row, points, seeds if row.is_random else 1)
            except Exception as error:
                self._leave_out(row.name, _reason(error))
        return plans

    def _leave_out(self, name, reason):
        self.reasons[name] = reason
        self.failed.append(name)

    # -- what is there already ----------------------------------------------------------------

    def _take_up(self, force):
        store, mine = self._store, self.data.fingerprint
        if not store.holds_comparison():
            store.describe(mine)
            store.write_results([])
            return
        is_mine = self._is_on_my_data(force)
        lines, faults = store.results()
        if faults and not force:
            raise faults[0]
        self._lines = {key_of(line): line for line in lines}
        other = self._of_other_settings(force) if is_mine else list(self._lines)
        dropped = [self._lines.pop(key) for key in other]
        if faults:
            lost = f"{len(faults)} damaged line{'s' if len(faults) > 1 else ''}"
            self.note(f"dropped {lost}; the first: {faults[0].what}")
        # Before the description and before any file goes: a stop in between leaves a comparison
        # whose results are right.
        if dropped or faults:
            self._write_lines()
        if not is_mine:
            store.describe(mine)
        store.remove_files(dropped, self._lines.values())
        for line in self._lines.values():
            # Of several points only the best has a run file; others, and a file that was damaged
            # or written just before a stop, do not fit.
            if line["row"] in self._plans and line["run"] is not None:
                line["run"] = line["run"] if line["run"] == store.run_hash(line) else None

    def _is_on_my_data(self, force):
        try:
            is_mine = self._store.fingerprint() == self.data.fingerprint
        except Damaged as error:
            if not force:
                raise
            self.note(f"dropped all results: {error.what}")
            return False
        if not is_mine and not force:
            raise SentembError(
                f"{self._store.folder}: holds a comparison on other data; choose another folder, "
                "or throw it away with --force"
            )
        return is_mine

    def _of_other_settings(self, force):
        """Keys of the lines of my rows that were measured with settings no longer tried."""
        other = [
            key
            for key, line in self._lines.items()
            if (plan := self._plans.get(line["row"])) and line["settings"] not in plan.points
        ]
        if other and not force:
            line = self._lines[other[0]]
            change = _change(line["settings"], self._plans[line["row"]].points[0])
            raise SentembError(
                f"{self._store.folder}: {line['row']} was measured with other settings ({change}); "
                "choose another folder, or measure it again with --force"
            )
        return other

    # -- running ------------------------------------------------------------------------------

    def run(self, seconds=None):
        """Measure what is not measured yet; begin nothing once ``seconds`` are used up."""
        if seconds is not None and not (is_number(seconds) and seconds >= 0):
            raise SentembError(f"seconds must be a number of at least 0, not {brief(seconds)}")
        with locked(self._store.folder):
            self._take_up(force=False)  # another process may have been here
            self._run(seconds)

    def _run(self, seconds):
        began = time.monotonic()
        for name, plan in self._plans.items():
            while missing := self._missing(plan):
                if seconds is not None and time.monotonic() - began >= seconds:
                    many = f"{len(missing)} run{'s' if len(missing) > 1 else ''} missing"
                    self.reasons[name] = f"{many}: the time is used up; the same command goes on"
                    break
                try:
                    self._measure(plan, *missing[0])
                except _Failed as failed:
                    self._leave_out(name, str(failed))
                    self.note(f"  left out: {failed}")
                    break

    def _missing(self, plan):
        """(settings, seed) of the runs to come; settings that are not chosen yet are None."""
        name = plan.row.name
        untried = [(point, 0) for point in plan.points if _key(name, 0, point) not in self._lines]
        if untried:
            return untried + [(None, seed) for seed in range(1, plan.n_seeds)]
        chosen = self._chosen(plan)
        lines = ((seed, self._lines.get(_key(name, seed, chosen))) for seed in range(plan.n_seeds))
        return [(chosen, seed) for seed, line in lines if line is None or line["run"] is None]

    def _chosen(self, plan, *new):
        """Of the points tried so far the settings best on dev, the first of equals.

        ``new`` are lines that are not among the results yet.
        """
        keys = [_key(plan.row.name, 0, point) for point in plan.points]
        lines = self._lines | {key_of(line): line for line in new}
        tried = [line for key, line in lines.items() if key in keys]
        return max(tried, key=lambda line: line["dev"][0] if line["dev"] else 0)["settings"]

    def _measure(self, plan, settings, seed):
        row = plan.row
        own = apart(settings, plan.points)
        self.note(f"{row.name}, seed {seed}{own and f', {own}'}: {self._left()}")
        try:
            line, run, ranker = self._fitted(plan, settings, seed)
        except Interrupted:
            raise
        except Exception as error:
            raise _Failed(_reason(error)) from error
        if run is not None:
            path = self._store.place_for(self._store.run_path(line))
            write_run(run, path, tag="_".join(row.name.split()))
            line["run"] = self._store.run_hash(line)
            if self.keep_models and row.kind == "encoder":
                place = self._store.place_for(self._store.model_path(line))
                ranker.save_pretrained(place, force=True)
        self._lines[_key(row.name, seed, settings)] = line
        self._write_lines()
        if line["dev"] is not None:
            took = "" if line["seconds"] is None else f", {line['seconds']:.0f} s"
            self.note(f"  NDCG@1 on dev {line['dev'][0]:.3f}{took}")

    def _fitted(self, plan, settings, seed):
        """A row's line, its run on test (None if another point is better on dev), its ranker."""
        row = plan.row
        began = time.monotonic()
        ranker, parameters = row.fit(settings, self.data, seed, self.threads)
        seconds = None if row.kind == "model" else round(time.monotonic() - began, 2)
        line = {
            "row": row.name,
            "seed": seed,
            "settings": settings,
            "dev": None,
            "test": None,
            "run": None,
            "parameters": parameters,
            "seconds": seconds,
            "sentences_per_second": None if row.kind == "baseline" else self._speed(ranker),
        }
        if self.data.dev is not None:
            line["dev"] = _figures(self.data.dev, judged_run(ranker, self.data.dev))
        run = None
        if seed > 0 or self._chosen(plan, line) == settings:
            run = judged_run(ranker, self.data.test)
            line["test"] = _figures(self.data.test, run)
        return line, run, ranker

    def _speed(self, model):
        """Titles encoded in a second, their words known from before."""
        titles = list(islice(cycle(self.data.test.docs), _TIMED_TITLES))
        model.encode_document(titles)
        began = time.monotonic()
        model.encode_document(titles)
        return round(len(titles) / (time.monotonic() - began))

    def _left(self):
        """How many runs are to come, the one that begins among them, and how long they may take."""
        missing = {
            name: len(self._missing(plan))
            for name, plan in self._plans.items()
            if name not in self.reasons
        }
        text = f"{sum(missing.values())} left"
        seconds = 0
        for name, count in missing.items():
            times = self._times(name) or self._times(*self._alike(name))
            if count and not times:
                return text
            seconds += count * np.mean(times or 0)
        minutes = round(seconds / 60)
        return f"{text}, about {minutes} min" if minutes else f"{text}, under a minute"

    def _times(self, *names):
        return [line["seconds"] or 0 for line in self._lines.values() if line["row"] in names]

    def _alike(self, name):
        kind = self._plans[name].row.kind
        return [other for other, plan in self._plans.items() if plan.row.kind == kind]

    # -- results ------------------------------------------------------------------------------

    @property
    def n_queries(self):
        """Test queries that have a relevant title."""
        return ndcg(self.data.test, {}, CUTOFFS).n_evaluated

    def of(self, name):
        """The results of a row with the settings that were chosen, by seed: a list of dicts.

        Empty as long as its grid is not tried to the end.
        """
        plan = self._plans.get(name)
        if plan is None or any(_key(name, 0, point) not in self._lines for point in plan.points):
            return []
        chosen = self._chosen(plan)
        lines = (self._lines.get(_key(name, seed, chosen)) for seed in range(plan.n_seeds))
        return [line for line in lines if line is not None and line["run"] is not None]

    def per_query(self, name):
        """NDCG of every test query from the run files, mean over the row's seeds.

        Returns
        -------
        (n_queries, 3) float64
            NaN for queries without a relevant title.
        """
        return np.mean([ndcg(self.data.test, run, CUTOFFS).values for run in self.runs(name)], 0)

    def runs(self, name):
        """The row's run files as `read_run` gives them, one for each seed."""
        return [read_run(self._store.run_path(line)) for line in self.of(name)]

    def _write_lines(self):
        self._store.write_results(self._lines.values())


class _Failed(SentembError):
    """A row could not be fitted; the others go on."""


def _figures(judged, run):
    return [round(float(value), 6) for value in ndcg(judged, run, CUTOFFS).mean]


def _key(name, seed, settings):
    return key_of({"row": name, "seed": seed, "settings": settings})


def _reason(error):
    """Why a row failed, on one line."""
    if isinstance(error, MemoryError):
        return "out of memory"
    text = str(error)
    if not isinstance(error, SentembError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = " ".join(text.split())
    return text if len(text) <= _REASON else f"{text[:_REASON]}..."


def _change(known, mine):
    """The first setting that differs, in words."""
    for key in {**mine, **known}:
        if known.get(key) != mine.get(key):
            return f"{plain(key)} = {_shown(known.get(key))}, now {_shown(mine.get(key))}"
    return "a point that is no longer tried"


def _shown(value):
    return plain(value) if isinstance(value, str) else brief(value)
