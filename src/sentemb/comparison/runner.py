"""Train and measure every row, keeping each result, so that a stopped comparison goes on.

For each row every point of its grid is fitted with seed 0; the point best on dev, by NDCG@1, is
then fitted with the other seeds. Test is only measured, and only on what dev prefers so far.
"""

import hashlib
import json
import shutil
import time
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

import numpy as np

from sentemb.comparison.rows import apart
from sentemb.errors import SentembError
from sentemb.files import reading, write_text
from sentemb.retrieval.evaluation import judged_run
from sentemb.retrieval.metrics import ndcg
from sentemb.retrieval.trec import read_run, write_run
from sentemb.training.trainer import Interrupted

CUTOFFS = (1, 3, 10)
DESCRIPTION, RESULTS, RUNS, MODELS = "comparison.json", "results.jsonl", "runs", "models"
# Titles that are encoded for the speed of an encoder.
_TIMED_TITLES = 4096


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
        For rows whose result depends on one.
    threads : int or None
        By default all processors; no figure depends on it.
    keep_models : bool
        Whether trained models are kept too.
    force : bool
        Throw away what belongs to other data or was made with other settings.
    note : function of a str
        Told what happens.

    Attributes
    ----------
    reasons : dict of str to str
        Name of a row -> why it, or a part of it, is missing.

    Raises
    ------
    SentembError
        If two rows share a name, or the folder holds something else, results on other data or with
        other settings.
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
        self.data, self.folder = data, Path(folder)
        self.threads, self.keep_models, self.note = threads, keep_models, note
        self.reasons = {}
        self._plans = self._planned(rows, seeds)
        self._lines = {}  # (row, seed, settings as JSON) -> line of results.jsonl
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
            except SentembError as error:
                self.reasons[row.name] = str(error)
        return plans

    # -- what is there already ----------------------------------------------------------------

    def _take_up(self, force):
        path = self.folder / DESCRIPTION
        if not path.exists():
            if self.folder.exists() and (not self.folder.is_dir() or any(self.folder.iterdir())):
                raise SentembError(
                    f"{self.folder}: is there and holds no comparison; choose another place"
                )
            self._describe(path)
            return
        for line in _read_lines(self.folder / RESULTS, force):
            self._lines[_key(line["row"], line["seed"], line["settings"])] = line
        if _read_lines(path, force) != [{"data": self.data.fingerprint}]:
            if not force:
                raise SentembError(
                    f"{self.folder}: holds a comparison on other data; choose another folder, or "
                    "throw it away with --force"
                )
            self._forget(list(self._lines))
            self._describe(path)
        for plan in self._plans.values():
            self._take_up_row(plan, force)

    def _describe(self, path):
        write_text(self.folder / RESULTS, "")
        write_text(path, json.dumps({"data": self.data.fingerprint}) + "\n")

    def _take_up_row(self, plan, force):
        name = plan.row.name
        known = {key: line for key, line in self._lines.items() if line["row"] == name}
        other = [key for key, line in known.items() if line["settings"] not in plan.points]
        if other and not force:
            raise SentembError(
                f"{self.folder}: {name} was measured with other settings "
                f"({_change(known[other[0]]['settings'], plan.points[0])}); choose another folder, "
                "or measure it anew with --force"
            )
        self._forget(other)
        for line in known.values():
            # Of several points only the best has a run file; others, and a file that was damaged
            # or written just before a stop, do not fit.
            if line["run"] is not None and line["run"] != _hash(self._run_path(line)):
                line["run"] = None

    def _forget(self, keys):
        if not keys:
            return
        for key in keys:
            line = self._lines.pop(key)
            self._run_path(line).unlink(missing_ok=True)
            shutil.rmtree(self._model_path(line), ignore_errors=True)
        self._write_lines()

    # -- running ------------------------------------------------------------------------------

    def run(self, seconds=None):
        """Measure what is not measured yet; begin nothing once ``seconds`` are used up."""
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
                    self.reasons[name] = str(failed)
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

    def _chosen(self, plan):
        """Of the points tried so far the settings best on dev, the first of equals."""
        keys = [_key(plan.row.name, 0, point) for point in plan.points]
        tried = [line for key, line in self._lines.items() if key in keys]
        return max(tried, key=lambda line: line["dev"][0] if line["dev"] else 0)["settings"]

    def _measure(self, plan, settings, seed):
        row = plan.row
        own = apart(settings, plan.points)
        self.note(f"{row.name}, seed {seed}{own and f', {own}'}: {self._left()}")
        try:
            began = time.monotonic()
            ranker, parameters = row.fit(settings, self.data, seed, self.threads)
            seconds = None if row.kind == "model" else round(time.monotonic() - began, 2)
            dev = None
            if self.data.dev is not None:
                dev = _figures(self.data.dev, judged_run(ranker, self.data.dev))
            line = {
                "row": row.name,
                "seed": seed,
                "settings": settings,
                "dev": dev,
                "test": None,
                "run": None,
                "parameters": parameters,
                "seconds": seconds,
                "sentences_per_second": None if row.kind == "baseline" else self._speed(ranker),
            }
            self._lines[_key(row.name, seed, settings)] = line
            is_best = seed > 0 or self._chosen(plan) == settings
            run = judged_run(ranker, self.data.test) if is_best else None
        except Interrupted:
            raise
        except SentembError as error:
            raise _Failed(str(error)) from error
        if is_best:
            path = self._run_path(line)
            write_run(run, path, tag="_".join(row.name.split()))
            line |= {"test": _figures(self.data.test, read_run(path)), "run": _hash(path)}
            if self.keep_models and row.kind == "encoder":
                ranker.save_pretrained(self._model_path(line), force=True)
        self._write_lines()
        if dev is not None:
            took = "" if seconds is None else f", {seconds:.0f} s"
            self.note(f"  NDCG@1 on dev {dev[0]:.3f}{took}")

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
        return [read_run(self._run_path(line)) for line in self.of(name)]

    def _write_lines(self):
        lines = (json.dumps(line) + "\n" for line in self._lines.values())
        write_text(self.folder / RESULTS, "".join(lines))

    def _run_path(self, line):
        return self.folder / RUNS / f"{line['row']}.seed{line['seed']}.run"

    def _model_path(self, line):
        return self.folder / MODELS / f"{line['row']}.seed{line['seed']}"


class _Failed(SentembError):
    """A row could not be fitted; the others go on."""


def _figures(judged, run):
    return [round(float(value), 6) for value in ndcg(judged, run, CUTOFFS).mean]


def _key(name, seed, settings):
    return name, seed, json.dumps(settings, sort_keys=True)


def _change(known, mine):
    """The first setting that differs, in words."""
    for key in {**mine, **known}:
        if known.get(key) != mine.get(key):
            return f"{key} = {known.get(key)}, now {mine.get(key)}"
    return "a point that is no longer tried"


def _hash(path):
    if not path.exists():
        return None
    with reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_lines(path, force):
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        if force:
            return []
        raise SentembError(
            f"{path}: is damaged ({error}); measure all anew with --force"
        ) from error
