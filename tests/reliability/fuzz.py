"""Every reader of files against damaged ones, thousands of cases in one process.

A case is a seed and a number: it chooses a file, damages it, and lets the reader of the Python face
read it. Either it is read, and a model then gives finite vectors; or a `SentembError` of one line
says why not. Some cases repair the checksums after the damage, as a hostile sender would.
"""

import copy
import dataclasses
import gc
import gzip
import hashlib
import importlib
import json
import math
import os
import resource
import shutil
import signal
import time
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from helpers import forked

from reliability import mutations
from reliability.count import Count
from reliability.model_format import (
    parts_of,
    parts_of_pair,
    read_checkpoint,
    rewrite_checkpoint,
    safetensors,
    write_parts,
)
from reliability.samples import (
    ENCODERS,
    PAIR_MODELS,
    TRAINING,
    make_model,
    make_scorer,
    train_pair_model,
    write_click_tables,
    write_indexes,
    write_pair_training,
    write_samples,
)
from reliability.sandbox import scratch

LONGEST_MESSAGE = 300
SECONDS = 2  # of processor time, for one case
STUCK = 30  # seconds in which a case must end, however busy the machine is
# What attacks files of a kind: its module and its class.
_KINDS = {
    "files": ("fuzz", "Attack"),
    "crafted": ("crafted", "Crafted"),
    "tables": ("tables", "Tables"),
    "released": ("released", "Released"),
}
# A worker that dies more often than this is given up.
_MOST_DEATHS = 20
MEMORY = 1 << 30
ESCAPES = Path(__file__).with_name("escapes")
TEXTS = ["hotels in rome", "xyzzy", "Oslo maps and more"]
# Trainings that were cut off.
_RESUMES = ("training", "pair-training")
INDEXES = ("index", "index8", "sums")
VECTOR_FILES = ("glove.txt", "glove.txt.gz", "word2vec.txt", "word2vec.bin")


class _TooLong(BaseException):
    pass


@dataclass(frozen=True)
class Reader:
    """How some files are read.

    Attributes
    ----------
    files : tuple of str
        Paths below the folder of samples.
    read : function of the path that was damaged and whether checksums were repaired
        Returns what is wrong with what was read, or None.
    folder : str or None
        What reading may change, and is put back.
    weight : int
        How often it is chosen.
    """

    files: tuple
    read: Callable
    folder: str | None = None
    weight: int = 10


def fuzz(n, seed=0, *, repaired=0, workers=None) -> Count:
    """``n`` mutations, ``repaired`` of them with right checksums again, from ``seed``."""
    failures, tally = attacked(n, seed, repaired=repaired, workers=workers)
    count = Count("damaged files", tried=n)
    for number, text in failures:
        kind = ", repaired" if is_repaired(number, n, repaired) else ""
        count.failures.append(f"seed {seed}, case {number}{kind}: {text}")
    count.notes.append(f"{repaired} of {n} with repaired checksums")
    count.notes += [f"{number} were {what}" for what, number in sorted(tally.items())]
    return count


def attacked(n, seed, *, repaired=0, workers=None, kind="files"):
    """``n`` cases of one of `_KINDS`, in processes of their own.

    Returns
    -------
    failures : list of (int, str)
        The number of a case and what was wrong.
    tally : Counter
        How cases ended. Of processes that died nobody knows.
    """
    workers = workers or min(4, len(os.sched_getaffinity(0)))
    home = scratch("sentemb-fuzz-")
    asked = {"n": n, "seed": seed, "repaired": repaired, "kind": kind, "lanes": workers}
    try:
        lanes = [_Worker(home / str(k), asked | {"lane": k}) for k in range(workers)]
        while sum(lane.tend() for lane in lanes) < len(lanes):
            time.sleep(0.05)
        failures = [failure for lane in lanes for failure in lane.failures()]
        tally = sum((lane.tally() for lane in lanes), Counter())
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return sorted(failures), tally


def replay(seed, number, *, repaired):
    """Run one case in this process and return what is wrong, or None."""
    home, here = scratch("sentemb-fuzz-"), Path.cwd()
    try:
        return Attack(home / "samples").case(seed, number, repaired)
    finally:
        os.chdir(here)
        shutil.rmtree(home)


def escapes(n=0, repaired=0) -> Count:
    """The files that once got through, each by the reader of the files it replaces.

    Then ``n`` mutations from seed 0, as for `fuzz`: the same process has made the samples.
    """
    home = scratch("sentemb-escapes-")
    asked = {"n": n, "seed": 0, "repaired": repaired, "lane": 0, "lanes": 1, "escapes": True}
    try:
        worker = _Worker(home / "0", asked)
        while not worker.tend():
            time.sleep(0.05)
        found = [json.loads(line) for line in (worker.home / "escapes").read_text().splitlines()]
        failures = worker.failures()
    finally:
        shutil.rmtree(home, ignore_errors=True)
    names = [name for name, _ in found]
    count = Count("past escapes", tried=len(list(ESCAPES.iterdir())) + n)
    count.failures = [f"{name}: {wrong}" for name, wrong in found if wrong]
    count.failures += [
        f"{escape.name}: not reached" for escape in ESCAPES.iterdir() if escape.name not in names
    ]
    count.failures += [f"seed 0, case {number}: {text}" for number, text in failures]
    return count


# -- workers ----------------------------------------------------------------------------------


class _Worker:
    """A process that goes through its share of the cases, begun again when it dies."""

    def __init__(self, home, request):
        self.home = home
        home.mkdir()
        self.request = request
        self.done = False
        self._deaths = 0
        self._start(request["lane"])

    def _start(self, first):
        (self.home / "at").write_text(str(first))
        self.process = _start(self.home, self.request | {"first": first})
        # The first case waits for all samples to be made.
        self._seen, self._since = first, time.monotonic() + 60

    def tend(self):
        """Look after the process; True once all cases are done."""
        if self.done:
            return True
        code = self.process.poll()
        at = int((self.home / "at").read_text() or self._seen)
        if at != self._seen:
            self._seen, self._since = at, time.monotonic()
        if code is None and time.monotonic() - self._since < STUCK:
            return False
        if code == 0:
            self.done = True
            return True
        if code is None:
            self.process.kill()
            self.process.wait()
        what = f"stuck for {STUCK} seconds" if code is None else f"the process died with {code}"
        with open(self.home / "failures", "a") as file:
            file.write(json.dumps([at, what]) + "\n")
        following = at + self.request["lanes"]
        self._deaths += 1
        if following >= self.request["n"] or self._deaths > _MOST_DEATHS:
            self.done = True
        else:
            self._start(following)
        return self.done

    def tally(self):
        path = self.home / "tally"
        return Counter(json.loads(path.read_text()) if path.exists() else {})

    def failures(self):
        path = self.home / "failures"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _start(home, request):
    """A process of its own that does `_work`."""
    code = "import json, sys; from reliability import fuzz; fuzz._work(json.loads(sys.argv[1]))"
    return forked(code, json.dumps(request), cwd=home, stdout=None, stderr=None)


def _work(request):
    """All past escapes if they are asked for, and all cases of one worker from ``first`` on."""
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[request.get("lane", 0) % len(processors)]})
    home = Path.cwd()
    module, name = _KINDS[request.get("kind", "files")]
    attack = getattr(importlib.import_module(f"reliability.{module}"), name)(home / "samples")
    if "escapes" in request:
        with open(home / "escapes", "w", buffering=1) as found:
            for escape in sorted(ESCAPES.iterdir()):
                found.write(json.dumps([escape.name, attack.escape(escape)]) + "\n")
    n, repaired = request["n"], request["repaired"]
    at = os.open(home / "at", os.O_WRONLY)
    with open(home / "failures", "a", buffering=1) as failures:
        for number in range(request["first"], n, request["lanes"]):
            os.pwrite(at, f"{number:<12}".encode(), 0)
            wrong = attack.case(request["seed"], number, is_repaired(number, n, repaired))
            if wrong:
                failures.write(json.dumps([number, wrong]) + "\n")
    (home / "tally").write_text(json.dumps(attack.tally))


def is_repaired(number, n, repaired):
    """Whether this case repairs checksums: ``repaired`` of ``n``, spread evenly."""
    return (number + 1) * repaired // n > number * repaired // n


# -- one case ---------------------------------------------------------------------------------


class Judge:
    """Uses files under limits of time and memory, and says what is wrong with how that ended."""

    seconds = SECONDS

    def __init__(self, home):
        for left in (home, home.parent / "pristine"):  # by a process that died
            shutil.rmtree(left, ignore_errors=True)
        home.mkdir()
        self.home = home
        # Messages name paths as they are given: short ones.
        os.chdir(home)

    def arm(self):
        """Count from now on, with the limits of `_judge`."""
        self.tally = Counter()
        warnings.showwarning = self._warned
        self._warnings = []
        signal.signal(signal.SIGPROF, _stop)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        self.limit = size + MEMORY
        gc.collect()

    def _judge(self, reader, name, repaired):
        from sentemb.errors import SentembError

        self._warnings.clear()
        warnings.simplefilter("always")
        resource.setrlimit(resource.RLIMIT_AS, (self.limit, resource.RLIM_INFINITY))
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        wrong = None
        try:
            wrong = reader.read(name, repaired)
            self.tally["read"] += 1
        except SentembError as error:
            wrong = wrong_with_message(str(error))
            self.tally["refused"] += 1
        except _TooLong:
            wrong = f"no end in {self.seconds} seconds"
        except BaseException as error:
            wrong = f"{type(error).__name__} {place_of(error)}: {ascii(error)[:120]}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
        return wrong or (self._warnings[0] if self._warnings else None)

    def _warned(self, message, category, *place):
        # The package's own, on texts without words, are a part of its face.
        if not issubclass(category, UserWarning):
            self._warnings.append(f"{category.__name__}: {message}")


class Attack(Judge):
    """True samples in a folder, and what damages and reads them."""

    def __init__(self, home):
        super().__init__(home)
        self._make_samples()
        self.readers = self._readers()
        self.pristine = {
            name: Path(name).read_bytes() for reader in self.readers for name in reader.files
        }
        small = [data for data in self.pristine.values() if len(data) < 200_000]
        self.others = [*small, bytes(range(256)), b"", b"\n", b"{}\n", gzip.compress(b"a\tb\n")]
        models = {name: make_model(name) for name in ENCODERS}
        self.parts = [parts_of(model) for model in models.values()]
        self.pair_parts = [parts_of_pair(make_scorer(name)) for name in PAIR_MODELS]
        shutil.copytree(".", "../pristine", symlinks=True)
        self.vectors, self.word_vectors, self.indexes = {}, {}, {}
        for name in ENCODERS:
            self.vectors[name] = _vectors(name)
        for name in PAIR_MODELS:
            self.vectors[name] = _vectors(name)
        self.trained = {}
        for folder in _RESUMES:
            self.trained[folder] = self._resume(folder)
            self._put_back(folder)
        self._check_itself()
        self.arm()

    def _check_itself(self):
        """What is not damaged must be read; what compiles does so now."""
        for reader in self.readers:
            for name in (reader.files[0], reader.files[-1]):
                wrong = reader.read(name, name == reader.files[0])
                assert wrong is None, wrong
            self._put_back(reader.folder)
        for parts in self.parts:
            write_parts(parts, "crafted")
            model = next(name for name in ENCODERS if _like(name, parts.config))
            assert np.array_equal(_vectors("crafted"), self.vectors[model])
        for parts in self.pair_parts:
            write_parts(parts, "crafted")
            assert np.array_equal(_vectors("crafted"), self.vectors[parts.config["model"]])
        for folder, trained in self.trained.items():
            newest = max(name for name in self.pristine if f"{folder}/checkpoints" in name)
            rewrite_checkpoint(newest, lambda arrays, progress: None)
            assert np.array_equal(self._resume(folder), trained)
            self._put_back(folder)

    def _make_samples(self):
        from sentemb.comparison.data_folder import read_data
        from sentemb.comparison.rows import rows_of

        write_samples(Path())
        write_pair_training("pair-training")
        self._data = read_data("data")
        self._rows = rows_of(["random", "unigram"])
        self._compare("compared")
        write_indexes(Path())
        write_click_tables(Path())

    def _readers(self):
        judged = tuple(f"judged/{name}" for name in ("queries.tsv", "docs.tsv", "qrels.txt"))
        return [
            *(Reader(_files(model), self._read_model, weight=6) for model in ENCODERS),
            *(Reader(_files(name), self._read_model, weight=3) for name in PAIR_MODELS),
            *(Reader(_files(name), self._read_training, name, weight=4) for name in _RESUMES),
            Reader(("labelled.tsv",), self._read_labelled, weight=10),
            Reader(("log.tsv", "log.tsv.gz"), self._read_log, weight=20),
            Reader(("log.jsonl", "log.jsonl.gz"), self._read_log, weight=20),
            Reader(judged, self._read_judged, weight=20),
            Reader(("run.txt",), self._read_run, weight=10),
            Reader(("queries.tsv",), self._read_texts, weight=10),
            Reader(("truth.jsonl",), self._read_truth, weight=10),
            Reader(("epochs.jsonl",), self._read_history, weight=10),
            Reader(_files("skip-thoughts"), self._read_skip_thought, weight=20),
            Reader(_files("onet"), self._read_onet, "imported", weight=8),
            Reader(_files("vectors") + _files("halves"), self._read_vectors, weight=20),
            Reader(VECTOR_FILES, self._read_vectors, weight=20),
            Reader(("counts.txt",), self._read_counts, weight=6),
            Reader(("sts/0.tsv",), self._read_sts, weight=6),
            Reader(_files("compared"), self._read_comparison, "compared", weight=10),
            *(Reader(_of_index(name), self._read_index, name, weight=15) for name in INDEXES),
            Reader(("clicks.parquet",), self._read_table, "imported.tsv", weight=10),
            Reader(("clicks.csv",), self._read_table, "imported.tsv", weight=10),
        ]

    # -- a case ---------------------------------------------------------------------------

    def case(self, seed, number, repaired):
        """Damage a file, read it, put it back; what is wrong, or None."""
        rng = mutations.generator(seed, number)
        if repaired:
            reader, name, what = self._damage_and_repair(rng)
        else:
            reader = rng.choices(self.readers, [reader.weight for reader in self.readers])[0]
            name = rng.choice(reader.files)
            data, what = self._damage(rng, name)
            Path(name).write_bytes(data)
        # A whole file of another model is that model.
        wrong = self._judge(reader, name, repaired or what == "another file")
        self._put_back(reader.folder)
        if Path(name).parts[0] != "crafted":
            Path(name).write_bytes(self.pristine[name])
        return f"{name}, {what}: {wrong}" if wrong else None

    def escape(self, folder):
        """Read the files of ``folder`` in the places of the samples; what is wrong, or None."""
        names = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()]
        top = Path(names[0]).parts[0]
        model = top in ENCODERS or top in PAIR_MODELS or top == "crafted"
        if model:
            shutil.rmtree("crafted", ignore_errors=True)
            shutil.copytree(folder / top, "crafted")
            reader, name = Reader((), self._read_model), "crafted/model.safetensors"
        else:
            name = names[0]
            reader = next(
                reader for reader in self.readers if name in reader.files or top == reader.folder
            )
            shutil.copytree(folder, ".", dirs_exist_ok=True)
        wrong = self._judge(reader, name, True)
        self._put_back(reader.folder)
        for name in names:
            if not model and Path("../pristine", name).exists():
                shutil.copy(Path("../pristine", name), name)
        return wrong

    def _put_back(self, folder):
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
            if Path("../pristine", folder).exists():
                shutil.copytree(Path("../pristine", folder), folder)

    def _damage(self, rng, name):
        data, kind = self.pristine[name], rng.random()
        if name.endswith(".gz") and kind < 0.5:
            unpacked, what = mutations.mutate_bytes(rng, gzip.decompress(data), self.others)
            return gzip.compress(unpacked, 1, mtime=0), f"packed: {what}"
        if name.endswith(".jsonl.gz") and kind < 0.8:
            unpacked, what = mutations.mutate_json_lines(rng, gzip.decompress(data))
            return gzip.compress(unpacked, 1, mtime=0), f"packed: {what}"
        if name.endswith(".jsonl") and data and kind < 0.5:
            return mutations.mutate_json_lines(rng, data)
        if name.endswith(".json") and kind < 0.5:
            value, what = mutations.mutate_json(rng, json.loads(data))
            return mutations.dump(value), what
        if name.endswith(".safetensors") and kind < 0.3:
            return mutations.mutate_safetensors(rng, data, self.others)
        if name.endswith(".npy") and kind < 0.6:
            return mutations.mutate_npy(rng, data)
        if name.endswith(".npz") and kind < 0.6:
            return mutations.mutate_npz(rng, data)
        return mutations.mutate_bytes(rng, data, self.others)

    def _damage_and_repair(self, rng):
        """Models mostly, now and then word vectors or a checkpoint."""
        kind = rng.random()
        if kind > 0.9:
            return self._damage_vectors(rng)
        if kind < 0.05:
            training = rng.choice(_RESUMES)
            reader = next(reader for reader in self.readers if reader.folder == training)
            names = [name for name in reader.files if "checkpoints" in name]
            arrays, progress = read_checkpoint(names[-1])
            if rng.random() < 0.6:
                progress, what = mutations.mutate_json(rng, progress)
            else:
                array = rng.choice(sorted(arrays))
                arrays[array], what = mutations.mutate_array(rng, arrays[array])
                what = f"{array} {what}"
            data = safetensors(arrays, mutations.dump(progress).decode())
            for name in names:
                Path(name).write_bytes(data)
            return reader, names[-1], what
        pair = rng.random() < 0.35
        parts = copy.deepcopy(rng.choice(self.pair_parts if pair else self.parts))
        what = mutations.mutate_parts(rng, parts, self.others)
        write_parts(parts, "crafted")
        return Reader((), self._read_model), "crafted/model.safetensors", what

    def _damage_vectors(self, rng):
        """A file of a folder of word vectors, whose description then has its new checksum."""
        reader = next(reader for reader in self.readers if reader.read == self._read_vectors)
        reader = dataclasses.replace(reader, folder="vectors")
        name = rng.choice([name for name in _files("vectors") if not name.endswith(".json")])
        data, what = self._damage(rng, name)
        Path(name).write_bytes(data)
        about = json.loads(Path("vectors/vectors.json").read_text())
        about["sha256"][Path(name).name] = hashlib.sha256(data).hexdigest()
        Path("vectors/vectors.json").write_text(json.dumps(about))
        return reader, name, what

    # -- readers --------------------------------------------------------------------------

    def _read_model(self, name, repaired):
        from sentemb import PairScorer, load
        from sentemb.analysis.pair_effects import match
        from sentemb.analysis.report.page_pairs import ShownPair
        from sentemb.analysis.report.report_page import collect, page

        folder, file = name.split("/")
        model = load(folder, threads=1)
        vectors = vectors_of(model)
        if not np.isfinite(vectors).all():
            return "vectors that are not finite"
        if not repaired and not np.array_equal(vectors, self.vectors[folder]):
            return "other vectors, without a word"
        if repaired or file == "history.jsonl":
            model.save_pretrained("saved", force=True)
            if isinstance(model, PairScorer):
                match(model, "hotels in rome", "Rome hotels")
            elif model.encoder.recurrent:
                page(collect(model, "name", [ShownPair("hotels in rome", "Rome hotels")], TEXTS))
        return None

    def _resume(self, folder):
        from sentemb import train

        if folder != "training":
            return vectors_of(train_pair_model(folder, resume=True, checkpoint_seconds=1e9))
        model = train(
            "log.tsv",
            dev="judged",
            output="training",
            resume=True,
            checkpoint_seconds=1e9,
            **TRAINING,
        )
        return vectors_of(model)

    def _read_training(self, name, repaired):
        folder = name.split("/")[0]
        vectors = self._resume(folder)
        if not np.isfinite(vectors).all():
            return "vectors that are not finite"
        if not repaired and not np.array_equal(vectors, self.trained[folder]):
            return "another model, without a word"
        return None

    def _read_log(self, name, repaired):
        from sentemb.data.click_log import read_click_log

        log = read_click_log(name, skip_bad_lines=os.stat(name).st_size % 2 == 0)
        if not (log.clicks > 0).all() or not log.queries:
            return "clicks that cannot be"
        return None

    def _read_labelled(self, name, repaired):
        from sentemb.data.labelled_pairs import read_labelled_pairs

        pairs = read_labelled_pairs(name)
        return None if set(pairs.labels) <= {0, 1} else "labels that cannot be"

    def _read_judged(self, name, repaired):
        from sentemb.data.judged_set import read_judged_set
        from sentemb.evaluation.metrics import ndcg
        from sentemb.evaluation.trec import read_run

        mean = ndcg(read_judged_set("judged"), read_run("run.txt"), (1, 3)).mean
        return None if np.isfinite(mean).all() else f"a mean of {mean}"

    _read_run = _read_judged

    def _read_texts(self, name, repaired):
        from sentemb.data.judged_set import read_texts

        read_texts(name)

    def _read_truth(self, name, repaired):
        from sentemb.data.simulation.truth import read_truth

        read_truth(name)

    def _read_history(self, name, repaired):
        from sentemb.analysis.histories import read_history

        history = read_history(name)
        numbers = [*history.losses, *(value for dev in history.dev for value in dev.values())]
        if not all(math.isfinite(float(number)) for number in [*history.epochs, *numbers]):
            return "numbers that are not finite"
        return None

    def _read_skip_thought(self, name, repaired):
        from sentemb.comparison.baselines.skip_thought import SkipThought

        ranker = SkipThought("skip-thoughts").fit(None, TEXTS)
        index = np.arange(len(TEXTS))
        scores = ranker.score_pairs(TEXTS, TEXTS[::-1], index, index)
        return None if np.isfinite(scores).all() else "scores that are not finite"

    def _read_vectors(self, name, repaired):
        from sentemb import SIF
        from sentemb.models.vectors.reading import read_word_vectors

        place = name.split("/")[0]
        found = read_word_vectors(place, verify=not repaired)
        known = found.words, np.asarray(found.vectors).tobytes()
        if "/" in name and not repaired and known != self.word_vectors.setdefault(place, known):
            return "other word vectors, without a word"
        found.lengths()
        if found.dim < 1000:
            model = SIF(found, components=0).fit(threads=1)
            if not np.isfinite(vectors_of(model)).all():
                return "vectors that are not finite"
        return None

    def _read_counts(self, name, repaired):
        from sentemb.models.vectors.counts import read_counts

        return None if sum(read_counts(name).values()) > 0 else "counts that cannot be"

    def _read_sts(self, name, repaired):
        from sentemb.data.similarity_set import read_similarity_set

        return None if np.isfinite(read_similarity_set(name).scores).all() else "odd scores"

    def _read_onet(self, name, repaired):
        from sentemb.data.importers.onet import import_onet

        import_onet("onet", "imported", dev=5, test=5, force=True)

    def _read_index(self, name, repaired):
        """Open, search and change it; `verify` refuses what opening lets through."""
        from sentemb.errors import SentembError
        from sentemb.search.index import Index

        folder = name.split("/")[0]
        index = Index.open(folder, 1)
        found = [index.search(TEXTS, 3), index.search(TEXTS, 3, only=["d1"])]
        if index.fields.types:
            found.append(index.search(TEXTS, 3, where="price < 1 or brand = 'Bolt'", sort="price"))
        numbers = [hit.score for hits in found for own in hits for hit in own]
        if not np.isfinite(numbers).all():
            return "scores that are not finite"
        known = self.indexes.setdefault(folder, found)
        if known != found:
            try:
                Index.verify(folder)
            except SentembError:
                pass
            else:
                return "other titles, without a word"
        index.add(["Oslo castles"], ["new"])
        index.remove(["new"])
        index.search(TEXTS, 3)
        index.save("saved-index", force=True)
        return None

    def _read_table(self, name, repaired):
        from sentemb.data.importers.click_table import Columns, import_clicks

        import_clicks([name], "imported.tsv", Columns(clicks="n"), force=True)
        Path("imported.tsv").unlink()

    def _read_comparison(self, name, repaired):
        from sentemb.comparison.table import cells_of, legend, table_of

        force = os.stat(name).st_size % 3 == 0
        comparison = self._compare("compared", force)
        lines = table_of(comparison, ["random", "unigram"], "random")
        cells_of(lines, "random")
        legend(lines, "random", comparison.n_queries)
        figures = [value for line in lines for value in (*line.ndcg, *line.spread)]
        return None if all(map(math.isfinite, figures)) else "figures that are not finite"

    def _compare(self, folder, force=False):
        from sentemb.comparison.runner import Comparison

        comparison = Comparison(
            self._data, folder, self._rows, seeds=1, force=force, note=lambda text: None
        )
        comparison.run()
        return comparison


def _like(name, config):
    """Whether ``config`` is that of the sample called ``name``."""
    kind = ENCODERS[name][0]
    return kind == config["model"] and config["shared_towers"] == (name == "shared")


def _of_index(folder):
    """The files of an index but those of its model, which are damaged elsewhere."""
    return tuple(name for name in _files(folder) if "/model/" not in name)


def _files(folder):
    return tuple(str(path) for path in sorted(Path(folder).rglob("*")) if path.is_file())


def wrong_with_message(message):
    """What is wrong with the message of an error, or None."""
    try:
        message.encode()
    except UnicodeEncodeError:
        return f"a message that cannot be printed: {ascii(message)[:100]}"
    if len(message) > LONGEST_MESSAGE:
        return f"a message of {len(message)} letters: {ascii(message)[:100]}"
    if any(unicodedata.category(letter) in ("Cc", "Zl", "Zp") for letter in message):
        return f"a message with control characters: {ascii(message)[:160]}"
    return None


def place_of(error):
    """The last place within the package, such as ``model_files.py: read_tensors``."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "/sentemb/" in frame.filename]
    frame = (own or frames)[-1]
    return f"in {Path(frame.filename).name}: {frame.name}"


def _stop(number, frame):
    raise _TooLong


def _vectors(folder):
    from sentemb import load

    return vectors_of(load(folder, threads=1))


def vectors_of(model):
    """All that a model says of some texts: vectors, or the scores of a pair model."""
    from sentemb import PairScorer

    if isinstance(model, PairScorer):
        index = np.indices((len(TEXTS), len(TEXTS))).reshape(2, -1)
        return model.score_pairs(TEXTS, TEXTS, *index)
    return np.concatenate([model.encode_query(TEXTS), model.encode_document(TEXTS)])
