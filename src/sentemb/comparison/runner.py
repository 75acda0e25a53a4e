"""Train and measure every row; each result is kept, so a stopped comparison can be continued.

For each row, every point of its grid is fitted with seed 0; the point with the best NDCG@1 on dev
is then fitted with the other seeds. Nothing is chosen on test, and only the point that is best on
dev so far is measured on it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.data_folder import Data
from sentemb.comparison.row import Point, Row, apart
from sentemb.comparison.rows import ROWS, EncoderRow
from sentemb.comparison.store import MAX_SEEDS, DamagedComparison, Result, Store, key_of
from sentemb.data.judged_set import JudgedSet
from sentemb.errors import SentembError
from sentemb.evaluation.evaluate import judged_run
from sentemb.evaluation.metrics import Run, ndcg
from sentemb.evaluation.trec import read_run, write_run
from sentemb.models.contracts import Embedder, Ranker
from sentemb.models.face import Face
from sentemb.system.bounds import brief, number, plain, whole
from sentemb.system.files import make_folder
from sentemb.system.locks import locked
from sentemb.system.paths import AnyPath
from sentemb.training.stopping import Interrupted

CUTOFFS = (1, 3, 10)
# Titles that are encoded to measure the speed of an encoder.
_TIMED_TITLES = 4096
# Longest reason why a row is missing, in characters.
_REASON = 280

# What identifies a result, see `key_of`.
_Key: TypeAlias = tuple[str, int, str]


@dataclass(frozen=True)
class _Plan:
    """A row that can run: the settings to choose from and the number of seeds."""

    row: Row
    points: list[Point]
    n_seeds: int


class Comparison:
    """Results of some rows on one set of data, in one folder.

    folder : where results are kept and found again; docs/formats.md describes it
    seeds : number of seeds, 1 to 100, for rows whose result depends on the seed
    keep_models : whether trained models are kept too
    force : throw away results that belong to other data, were made with other settings or are
        damaged
    note : receives messages about the progress
    reasons : name of a row -> why it, or a part of it, is missing
    failed : rows in ``reasons`` that cannot be measured, not even with more time

    Raises `SentembError` if an argument is invalid, two rows share a name, or the folder holds
    something else, results on other data or with other settings, or damaged lines.
    """

    def __init__(
        self,
        data: Data,
        folder: AnyPath,
        rows: list[Row],
        *,
        seeds: int = 3,
        keep_models: bool = False,
        force: bool = False,
        note: Callable[[str], object] = print,
    ) -> None:
        if not isinstance(data, Data):
            raise SentembError(f"data is {brief(data)}; give what read_data returns")
        if not (isinstance(rows, list) and all(isinstance(row, Row) for row in rows)):
            raise SentembError(f"rows is {brief(rows)}; give what rows_of returns")
        whole("seeds", seeds, 1, MAX_SEEDS)
        self.data = data
        self.keep_models, self.note = keep_models, note
        self.reasons: dict[str, str] = {}
        self.failed: list[str] = []
        self._store = Store(folder, {*ROWS, *(row.name for row in rows)})
        self._plans = self._planned(rows, seeds)
        self._lines: dict[_Key, Result] = {}
        self._store.holds_comparison()  # raises before anything is created or locked
        with locked(make_folder(self._store.folder)):
            self._take_up(force)

    def _planned(self, rows: list[Row], seeds: int) -> dict[str, _Plan]:
        plans: dict[str, _Plan] = {}
        for row in rows:
            if row.name in plans or row.name in self.reasons:
                raise SentembError(f"two rows are called {row.name}; rename the model's folder")
            try:
                if row.needs_log and self.data.log is None:
                    raise SentembError("there is no pairs.tsv to learn from")
                # Without dev nothing can be chosen, so the defaults are taken.
                points = row.points() if self.data.dev is not None else row.points()[:1]
                plans[row.name] = _Plan(row, points, seeds if row.is_random else 1)
            except Exception as error:
                self._leave_out(row.name, _reason(error))
        return plans

    def _leave_out(self, name: str, reason: str) -> None:
        self.reasons[name] = reason
        self.failed.append(name)

    # -- earlier results ----------------------------------------------------------------------

    def _take_up(self, force: bool) -> None:
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
        outdated = self._of_other_settings(force) if is_mine else list(self._lines)
        dropped = [self._lines.pop(key) for key in outdated]
        if faults:
            lost = f"{len(faults)} damaged line{'s' if len(faults) > 1 else ''}"
            self.note(f"dropped {lost}; the first: {faults[0].what}")
        # Written before the description and before any file is removed: a stop in between leaves a
        # comparison whose results are right.
        if dropped or faults:
            self._write_lines()
        if not is_mine:
            store.describe(mine)
        store.remove_files(dropped, self._lines.values())
        for line in self._lines.values():
            # Only the best of several points has a run file. The file does not match the hash of
            # the others, nor does one that was damaged or written just before a stop.
            if line["row"] in self._plans and line["run"] is not None:
                line["run"] = line["run"] if line["run"] == store.run_hash(line) else None

    def _is_on_my_data(self, force: bool) -> bool:
        try:
            is_mine = self._store.fingerprint() == self.data.fingerprint
        except DamagedComparison as error:
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

    def _of_other_settings(self, force: bool) -> list[_Key]:
        """Keys of the lines of these rows that were measured with settings no longer tried."""
        outdated = [
            key
            for key, line in self._lines.items()
            if (plan := self._plans.get(line["row"])) and line["settings"] not in plan.points
        ]
        if outdated and not force:
            line = self._lines[outdated[0]]
            change = _change(line["settings"], self._plans[line["row"]].points[0])
            raise SentembError(
                f"{self._store.folder}: {line['row']} was measured with other settings ({change}); "
                "choose another folder, or measure it again with --force"
            )
        return outdated

    # -- running ------------------------------------------------------------------------------

    def run(self, seconds: float | None = None) -> None:
        """Measure what is missing; start no new run after ``seconds``."""
        if seconds is not None:
            number("seconds", seconds, 0)
        with locked(self._store.folder):
            self._take_up(force=False)  # another process may have written results
            self._run(seconds)

    def _run(self, seconds: float | None) -> None:
        began = time.monotonic()
        for name, plan in self._plans.items():
            while missing := self._missing(plan):
                if seconds is not None and time.monotonic() - began >= seconds:
                    many = f"{len(missing)} run{'s' if len(missing) > 1 else ''} missing"
                    self.reasons[name] = f"{many}: the time is up; repeat the command to continue"
                    break
                try:
                    self._measure(plan, *missing[0])
                except _Failed as failed:
                    self._leave_out(name, str(failed))
                    self.note(f"  left out: {failed}")
                    break

    def _missing(self, plan: _Plan) -> list[tuple[Point, int]]:
        """(settings, seed) of the missing runs; settings that are not chosen yet are empty."""
        name = plan.row.name
        untried = [(point, 0) for point in plan.points if _key(name, 0, point) not in self._lines]
        if untried:
            return untried + [({}, seed) for seed in range(1, plan.n_seeds)]
        chosen = self._chosen(plan)
        lines = ((seed, self._lines.get(_key(name, seed, chosen))) for seed in range(plan.n_seeds))
        return [(chosen, seed) for seed, line in lines if line is None or line["run"] is None]

    def _chosen(self, plan: _Plan, *new: Result) -> Point:
        """The settings that are best on dev among the points tried so far, the first of equals.

        ``new`` are lines that are not among the results yet.
        """
        keys = [_key(plan.row.name, 0, point) for point in plan.points]
        lines = self._lines | {key_of(line): line for line in new}
        tried = [line for key, line in lines.items() if key in keys]
        best = max(tried, key=lambda line: line["dev"][0] if line["dev"] else 0)
        chosen: Point = best["settings"]
        return chosen

    def _measure(self, plan: _Plan, settings: Point, seed: int) -> None:
        row = plan.row
        differing = apart(settings, plan.points)
        self.note(f"{row.name}, seed {seed}{differing and f', {differing}'}: {self._left()}")
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
            keeps = self.keep_models and isinstance(row, EncoderRow)
            if keeps and isinstance(ranker, Face):
                folder = self._store.place_for(self._store.model_path(line))
                ranker.save_pretrained(folder, force=True)
        self._lines[_key(row.name, seed, settings)] = line
        self._write_lines()
        if line["dev"] is not None:
            took = "" if line["seconds"] is None else f", {line['seconds']:.0f} s"
            self.note(f"  NDCG@1 on dev {line['dev'][0]:.3f}{took}")

    def _fitted(self, plan: _Plan, settings: Point, seed: int) -> tuple[Result, Run | None, Ranker]:
        """A row's line, its run on test (None if another point is better on dev), its ranker."""
        row = plan.row
        began = time.monotonic()
        ranker, parameters = row.fit(settings, self.data, seed)
        seconds = None if row.kind == "model" else round(time.monotonic() - began, 2)
        line: Result = {
            "row": row.name,
            "seed": seed,
            "settings": settings,
            "dev": None,
            "test": None,
            "run": None,
            "parameters": parameters,
            "seconds": seconds,
            "sentences_per_second": self._speed(ranker) if isinstance(ranker, Embedder) else None,
        }
        if self.data.dev is not None:
            line["dev"] = _figures(self.data.dev, judged_run(ranker, self.data.dev))
        run: Run | None = None
        if seed > 0 or self._chosen(plan, line) == settings:
            run = judged_run(ranker, self.data.test)
            line["test"] = _figures(self.data.test, run)
        return line, run, ranker

    def _speed(self, model: Embedder) -> int:
        """Titles encoded per second when their words are already known."""
        titles = list(islice(cycle(self.data.test.titles), _TIMED_TITLES))
        model.encode_document(titles)
        began = time.monotonic()
        model.encode_document(titles)
        return round(len(titles) / (time.monotonic() - began))

    def _left(self) -> str:
        """The number of runs left, including the one that starts, and how long they may take."""
        missing = {
            name: len(self._missing(plan))
            for name, plan in self._plans.items()
            if name not in self.reasons
        }
        text = f"{sum(missing.values())} left"
        seconds = 0.0
        for name, count in missing.items():
            times = self._times(name) or self._times(*self._alike(name))
            if count and not times:
                return text
            seconds += count * float(np.mean(times or 0))
        minutes = round(seconds / 60)
        return f"{text}, about {minutes} min" if minutes else f"{text}, under a minute"

    def _times(self, *names: str) -> list[float]:
        return [line["seconds"] or 0 for line in self._lines.values() if line["row"] in names]

    def _alike(self, name: str) -> list[str]:
        kind = self._plans[name].row.kind
        return [row_name for row_name, plan in self._plans.items() if plan.row.kind == kind]

    # -- results ------------------------------------------------------------------------------

    @property
    def n_queries(self) -> int:
        """Number of test queries that have a relevant title."""
        return ndcg(self.data.test, {}, CUTOFFS).n_evaluated

    def of(self, name: str) -> list[Result]:
        """The results of a row with the chosen settings, one for each seed.

        Empty while some settings of its grid are not measured yet.
        """
        plan = self._plans.get(name)
        if plan is None or any(_key(name, 0, point) not in self._lines for point in plan.points):
            return []
        chosen = self._chosen(plan)
        lines = (self._lines.get(_key(name, seed, chosen)) for seed in range(plan.n_seeds))
        return [line for line in lines if line is not None and line["run"] is not None]

    def per_query(self, name: str) -> NDArray[np.float64]:
        """NDCG of every test query from the run files, as the mean over the row's seeds.

        (n_queries, 3) float64, NaN for queries without a relevant title.
        """
        values = [ndcg(self.data.test, run, CUTOFFS).values for run in self.runs(name)]
        mean: NDArray[np.float64] = np.mean(values, axis=0)
        return mean

    def runs(self, name: str) -> list[dict[str, dict[str, float]]]:
        """The runs of a row, one for each seed."""
        return [read_run(self._store.run_path(line)) for line in self.of(name)]

    def _write_lines(self) -> None:
        self._store.write_results(self._lines.values())


class _Failed(SentembError):
    """A row could not be fitted; the other rows continue."""


def _figures(judged: JudgedSet, run: Run) -> list[float]:
    return [round(float(value), 6) for value in ndcg(judged, run, CUTOFFS).mean]


def _key(name: str, seed: int, settings: Point) -> _Key:
    return key_of({"row": name, "seed": seed, "settings": settings})


def _reason(error: Exception) -> str:
    """Why a row failed, on one line."""
    if isinstance(error, MemoryError):
        return "out of memory"
    text = str(error)
    if not isinstance(error, SentembError):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    text = " ".join(text.split())
    return text if len(text) <= _REASON else f"{text[:_REASON]}..."


def _change(known: Point, mine: Point) -> str:
    """The first setting that differs, in words."""
    for key in {**mine, **known}:
        if known.get(key) != mine.get(key):
            return f"{plain(key)} = {_shown(known.get(key))}, now {_shown(mine.get(key))}"
    return "a point that is no longer tried"


def _shown(value: object) -> str:
    return plain(value) if isinstance(value, str) else brief(value)
