"""Train and measure every row, keeping each result, so that a stopped comparison goes on."""

import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sentemb.baselines import make_baseline
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.errors import SentembError
from sentemb.files import reading, write_text
from sentemb.retrieval.evaluation import judged_run
from sentemb.retrieval.metrics import ndcg
from sentemb.retrieval.trec import read_run, write_run
from sentemb.training.trainer import Interrupted, train

CUTOFFS = (1, 3, 10)
DESCRIPTION, RESULTS, RUNS = "comparison.json", "results.jsonl", "runs"
# Titles that are encoded for the speed of an encoder.
_TIMED_TITLES = 4096


@dataclass(frozen=True)
class Data:
    """The log, dev set and test set of a folder; the log may be missing.

    Attributes
    ----------
    log : ClickLog or None
    dev, test : JudgedSet or None, JudgedSet
    fingerprint : str
        A hash of all files.
    """

    log: object
    dev: object
    test: object
    fingerprint: str


def read_data(folder):
    """The `Data` of ``folder``: ``pairs.tsv`` or ``pairs.tsv.gz``, ``dev/``, ``test/``."""
    folder = Path(folder)
    if not folder.is_dir():
        raise SentembError(f"{folder}: is no folder; give one with pairs.tsv, dev/ and test/")
    if not (folder / "test").is_dir():
        raise SentembError(f"{folder / 'test'}: is missing; put a judged set there")
    names = [name for name in ("pairs.tsv", "pairs.tsv.gz") if (folder / name).exists()]
    log = read_click_log(folder / names[0]) if names else None
    dev = read_judged_set(folder / "dev") if (folder / "dev").is_dir() else None
    if log is not None and dev is None:
        raise SentembError(
            f"{folder / 'dev'}: is missing; settings are chosen on a judged set there"
        )
    digest = hashlib.sha256()
    for path in sorted([folder / name for name in names] + list(folder.glob("*/*"))):
        if path.parent.name in (folder.name, "dev", "test") and path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode())
            with reading(path) as file:
                digest.update(file.read())
    return Data(log, dev, read_judged_set(folder / "test"), digest.hexdigest())


class Comparison:
    """Results on one set of data, in one folder.

    Parameters
    ----------
    data : Data
    folder : path
        Where results are kept and taken up again.
    seeds : int
        For rows whose result depends on one.
    threads : int or None
    force : bool
        Throw away what is in the folder if it belongs to other data.
    note : function of a str
        Told what happens.

    Attributes
    ----------
    results : dict
        (row, "test" or "dev", seed, settings as JSON) -> dict, as in ``results.jsonl``.
    reasons : dict
        Row -> why it could not run.
    """

    def __init__(self, data, folder, seeds=3, threads=None, force=False, note=print):
        self.data, self.folder = data, Path(folder)
        self.seeds, self.threads, self.note = seeds, threads, note
        self.results, self.reasons = {}, {}
        self._take_up(force)

    def _take_up(self, force):
        path = self.folder / DESCRIPTION
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8")).get("data")
            if known == self.data.fingerprint:
                for line in _lines(self.folder / RESULTS):
                    self.results[_key(line)] = line
                return
            if not force:
                raise SentembError(
                    f"{self.folder}: holds a comparison on other data; choose another folder, or "
                    "throw it away with --force"
                )
        elif self.folder.exists() and any(self.folder.iterdir()) and not force:
            raise SentembError(
                f"{self.folder}: is not empty and no comparison; choose another place"
            )
        write_text(self.folder / RESULTS, "")
        write_text(path, json.dumps({"data": self.data.fingerprint}) + "\n")

    # -- running ------------------------------------------------------------------------------

    def run(self, rows, models=(), seconds=None):
        """Measure what is not measured yet.

        Parameters
        ----------
        rows : list of Row
        models : list of path
            Model directories, each a row of its own, measured as they are.
        seconds : float, optional
            No run is begun later than this.
        """
        began = time.monotonic()
        for number, row in enumerate(rows, 1):
            if seconds is not None and time.monotonic() - began > seconds:
                self.reasons[row.name] = "the time was used up; run again to go on"
                continue
            self.note(f"{row.name} ({number} of {len(rows)})")
            try:
                self._run_row(row)
            except Interrupted:
                raise
            except SentembError as error:
                self.reasons[row.name] = str(error)
                self.note(f"  left out: {error}")
        for path in models:
            self._run_model(Path(path))

    def _run_row(self, row):
        if row.needs_log and self.data.log is None:
            raise SentembError("there is no pairs.tsv to learn from")
        if row.kind == "baseline":
            first = make_baseline(**row.settings)
            grid, seeds = first.grid, self.seeds if first.is_random else 1
        else:
            grid, seeds = row.grid, self.seeds
        chosen = self._choose(row, grid)
        for seed in range(seeds):
            self._measure(row, chosen, seed)

    def _choose(self, row, grid):
        """The settings of the grid that are best on dev with seed 0."""
        if self.data.dev is None or len(grid) == 1:
            return {**row.settings, **grid[0]}
        tried = [self._measure(row, {**row.settings, **point}, 0, "dev") for point in grid]
        best = max(tried, key=lambda result: result["dev"][0])
        return best["settings"]

    def _measure(self, row, settings, seed, stage="test"):
        """A result, from the folder or made now."""
        wanted = {"row": row.name, "stage": stage, "seed": seed, "settings": settings}
        if (done := self.results.get(_key(wanted))) is not None:
            return done
        # One training gives both figures; those of test are looked at only once it is chosen.
        other = self.results.get(_key({**wanted, "stage": "dev"}))
        run = self._run_path(row.name, seed, settings)
        if stage == "test" and other is not None and run.exists():
            return self._keep({**other, "stage": "test", "test": self._figures(run)})
        began = time.monotonic()
        ranker, parameters = self._fitted(row, settings, seed)
        taken = time.monotonic() - began
        dev = None
        if self.data.dev is not None:
            dev = self._ndcg(self.data.dev, judged_run(ranker, self.data.dev))
        write_run(judged_run(ranker, self.data.test), run, tag=row.name)
        result = {
            **wanted,
            "stage": "dev",
            "dev": dev,
            "parameters": parameters,
            "seconds": round(taken, 2),
            "sentences_per_second": self._speed(ranker) if row.kind == "encoder" else None,
        }
        if dev is not None:
            figures = ", ".join(f"{value:.3f}" for value in dev)
            self.note(f"  seed {seed}, {_brief(settings)}: dev {figures}, {taken:.0f} s")
        self._keep(result)
        return result if stage == "dev" else self._measure(row, settings, seed)

    def _fitted(self, row, settings, seed):
        """A trained or fitted ranker, and the numbers that were fitted."""
        if row.kind == "baseline":
            docs = (
                self.data.test.docs
                if self.data.dev is None
                else [*self.data.dev.docs, *self.data.test.docs]
            )
            ranker = make_baseline(**settings).fit(self.data.log, docs, seed)
            return ranker, ranker.n_parameters
        model = train(self.data.log, dev=self.data.dev, seed=seed, threads=self.threads, **settings)
        return model, trained_parameters(model)

    def _run_model(self, path):
        from sentemb.sentence_encoder import SentenceEncoder

        name = path.resolve().name
        run = self._run_path(name, 0, {})
        if not run.exists():
            model = SentenceEncoder.from_pretrained(path, self.threads)
            write_run(judged_run(model, self.data.test), run, tag="model")
            self._keep(
                {
                    "row": name,
                    "stage": "test",
                    "seed": 0,
                    "settings": {},
                    "dev": None,
                    "test": self._figures(run),
                    "parameters": trained_parameters(model),
                    "seconds": None,
                    "sentences_per_second": self._speed(model),
                }
            )

    def _speed(self, model):
        """Titles encoded in a second, words met before."""
        titles = (list(self.data.test.docs) * _TIMED_TITLES)[:_TIMED_TITLES]
        model.encode_document(titles)
        began = time.monotonic()
        model.encode_document(titles)
        return round(len(titles) / (time.monotonic() - began))

    # -- results ------------------------------------------------------------------------------

    @property
    def n_queries(self):
        """Test queries that have a relevant title."""
        return ndcg(self.data.test, {}, CUTOFFS).n_evaluated

    def per_query(self, row):
        """NDCG of every test query, mean over seeds: (n_queries, 3), NaN without relevant title."""
        runs = [self._run_path(row, line["seed"], line["settings"]) for line in self.of(row)]
        return np.mean(
            [ndcg(self.data.test, read_run(run), CUTOFFS).values for run in runs], axis=0
        )

    def of(self, row):
        """The test results of a row, by seed."""
        lines = [
            line for line in self.results.values() if line["row"] == row and line["stage"] == "test"
        ]
        return sorted(lines, key=lambda line: line["seed"])

    def _keep(self, result):
        self.results[_key(result)] = result
        lines = (json.dumps(line) for line in self.results.values())
        write_text(self.folder / RESULTS, "".join(f"{line}\n" for line in lines))
        return result

    def _figures(self, run):
        return self._ndcg(self.data.test, read_run(run))

    def _ndcg(self, judged, run):
        return [round(float(value), 6) for value in ndcg(judged, run, CUTOFFS).mean]

    def _run_path(self, row, seed, settings):
        point = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:8]
        return self.folder / RUNS / f"{row}.{point}.seed{seed}.run"


def trained_parameters(model):
    """Numbers that training can move: rows of features that a tower met, and all dense arrays."""
    total = 0
    for weights in {id(side): side for side in model.weights.values()}.values():
        for name, array in weights.items():
            met = np.count_nonzero(array.any(axis=1)) * array.shape[1] if name == "table" else 0
            total += int(met) if name == "table" else array.size
    return total


def _key(line):
    return line["row"], line["stage"], line["seed"], json.dumps(line["settings"], sort_keys=True)


def _brief(settings):
    shown = {key: value for key, value in settings.items() if key != "name"}
    return ", ".join(f"{key} {value}" for key, value in shown.items()) or "defaults"


def _lines(path):
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, ValueError) as error:
        raise SentembError(
            f"{path}: cannot be read ({error}); throw it away with --force"
        ) from error
