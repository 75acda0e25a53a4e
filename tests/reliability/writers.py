"""Everything that writes, killed or failing at each call of the file system.

Afterwards the old or the new result can be read, the same job done again gives the same bits, and
no temporary file is left.
"""

import contextlib
import errno
import functools
import random
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from helpers import made_up_judged_set, made_up_log, made_up_model

from reliability.count import Count
from reliability.filesystem import ERRORS, Faults, failure, in_a_child, in_a_child_for
from reliability.samples import ALL_PARTS
from sentemb import SIF, SentembError, SentenceEncoder, load, prepare_log, train
from sentemb.bridges.export.targets import export
from sentemb.comparison.data_folder import Data
from sentemb.comparison.rows import rows_of
from sentemb.comparison.runner import Comparison
from sentemb.data.click_log import ClickLog, write_click_log
from sentemb.data.importers.click_table import Columns, import_clicks
from sentemb.data.importers.columns import Reading
from sentemb.data.lines import write_lines
from sentemb.data.splitting import split_file
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.skip_gram import train_word_vectors
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.writing import write_word_vectors
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.index import Index
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.system.locks import temporary_folder
from sentemb.training.checkpoints import has_checkpoints

TEXTS = ["abcd ab abc", "ab", "dcba abcd"]
WORDS = ["rome", "oslo", "hotels"]
# A click log in a file.
_LOG_FILE = Path(__file__).with_name("clicks.tsv")
_MOST_SECONDS = 60.0
TINY = {"cells": 4, "epochs": 3, "batch_size": 32, "threads": 1, "checkpoint_seconds": 0}


@dataclass(frozen=True)
class Writer:
    """A job that writes into a folder.

    Attributes
    ----------
    name : str
    prepare : function of a Path
        Makes what is there before.
    job : function of (Path, again)
        ``again`` is true when the job is done once more after a fault.
    read : function of a Path
        What is there, as something that can be compared; None for nothing. It raises where there
        is something that is neither old nor new.
    whole_folder : bool
        Whether files are moved in one by one, so that a kill may leave a folder that is refused.
    """

    name: str
    prepare: Callable[[Path], None]
    job: Callable[[Path, bool], None]
    read: Callable[[Path], object]
    whole_folder: bool = False


def _model(seed):
    model = made_up_model(("lstm", {}), TEXTS, cells=3, dtype=np.float32, seed=seed)
    model.training, model.history = {"pairs": seed}, [{"epoch": 1, "loss": 0.5, "dev": None}]
    return model


def _save(seed, force):
    return lambda folder, again: _model(seed).save_pretrained(folder / "m", force=force or again)


def _read_model(folder):
    if not (folder / "m" / "model.safetensors").exists():
        return None
    model = load(folder / "m", threads=1)
    weights = model.weights["query"] if isinstance(model, SentenceEncoder) else model.weights
    bits = b"".join(array.tobytes() for array in weights.values())
    losses = [line["loss"] for line in model.history]
    return bits, model.training.get("finished"), model.training["pairs"], losses


LOG = made_up_log(60)
DEV = made_up_judged_set(LOG)
SETTINGS = {**TINY, "hard_negatives": 2}
PAIR_SETTINGS = {
    **{"model": "arc2", "embedding": 4, "maps": (3, 2), "mlp": 3, "teacher": "bm25"},
    **{"epochs": 2, "batch_size": 80, "threads": 1, "checkpoint_seconds": 0, "dropout": 0.2},
}  # fmt: skip


def _train(settings=SETTINGS, force=False):
    def job(folder, again):
        # Before its first checkpoint a training has nothing to resume.
        resume = again and has_checkpoints(folder / "m")
        mode = {"resume": True} if resume else {"force": force or again}
        train(LOG, dev=DEV, output=folder / "m", **settings, **mode)

    return job


def _write_file(folder, again):
    write_lines(folder / "m", ["new", "lines"])


def _read_file(folder):
    path = folder / "m"
    return path.read_text() if path.exists() else None


def _compare(folder, again):
    data = Data(log=LOG, dev=DEV, test=DEV, fingerprint="0" * 64)
    rows = [row for row in rows_of() if row.name in ("random", "unigram")]
    Comparison(data, folder / "m", rows, seeds=2, note=lambda text: None).run()


def _read_comparison(folder):
    """The runs, once the comparison is whole: before it has no result to be read."""
    runs = folder / "m" / "runs"
    if not runs.exists():
        return None
    found = {path.name: path.read_bytes() for path in sorted(runs.glob("*.run"))}
    return found if len(found) == 3 else None


def _vectors(seed):
    numbers = np.random.default_rng(seed).standard_normal((len(WORDS), 3)).astype(np.float32)
    return WordVectors(WORDS, numbers, counts=np.arange(seed, seed + len(WORDS)))


def _write_vectors(seed, force):
    def job(folder, again):
        write_word_vectors(_vectors(seed), folder / "m", force=force or again)

    return job


def _train_vectors(folder, again):
    vectors = train_word_vectors(LOG, dim=3, epochs=1)
    write_word_vectors(vectors, folder / "m", force=again)


def _read_vectors(folder):
    """The words and the vectors; None for a folder that is refused because files are missing."""
    try:
        found = read_word_vectors(folder / "m", verify=True)
    except SentembError as error:
        if "missing" in str(error) or "No such file" in str(error):
            return None
        raise
    return found.words, found.vectors.tobytes(), found.counts.tobytes()


def _sif(folder, again):
    model = SIF(_vectors(1), components=0).fit(threads=1)
    model.save_pretrained(folder / "m", force=True)


def _read_sif(folder):
    if not (folder / "m" / "model.safetensors").exists():
        return None
    return SentenceEncoder.from_pretrained(folder / "m", threads=1).encode_query(WORDS).tobytes()


def _index(letters, **settings):
    """An index of some titles, whose texts tell which it is."""
    titles = [f"{letters} {text}" for text in TEXTS]
    clicks = ClickedQueries.of(ClickLog.from_pairs(zip(TEXTS, titles, strict=True)))
    ranker = HybridRanker(_model(0), ALL_PARTS, clicks, threads=1)
    return Index.build(ranker, titles, threads=1, **settings)


def _save_index(letters, force):
    return lambda folder, again: _index(letters).save(folder / "m", force=force or again)


def _change_index(folder, again):
    index = Index.open(folder / "m", 1)
    if "new" not in index.ids:
        index.add(["abc"], ["new"])
        index.remove(["0"])
    # Even if all is done: the next writer removes what a killed one left.
    index.save(folder / "m", force=True)


def _read_index(folder):
    if not (folder / "m").exists():
        return None
    Index.verify(folder / "m")
    index = Index.open(folder / "m", 1)
    return [*index.ids], [*index.titles], index.search(TEXTS, 9)


def _split(folder, again):
    split_file(_LOG_FILE, folder / "m", 0.2, 0.2, force=again)


def _prepare(name, force):
    def job(folder, again):
        log = _LOG_FILE
        if name == "short":
            log = folder / "short.tsv"
            write_click_log(made_up_log(20), log)
        prepare_log(log, folder / "m", force=force or again)

    return job


def _old_prepared(folder):
    _prepare("short", False)(folder, False)


def _import(folder, again):
    columns = Columns(query="1", title="2")
    how = Reading(header=False)
    import_clicks([_LOG_FILE], folder / "m", columns, min_clicks=1, how=how, force=True)


def _export(letters, to, force=False):
    def job(folder, again):
        index = Index.build(_model(0), [f"{letters} {text}" for text in TEXTS], threads=1)
        export(index, folder / "m", to, force=force or again)

    return job


def _read_folder(folder):
    found = [path for path in (folder / "m").rglob("*") if path.is_file()]
    return {path.name: path.read_bytes() for path in found} or None


def _nothing(folder):
    pass


def _old_model(folder):
    _model(0).save_pretrained(folder / "m")


def _old_index(folder):
    _index("ab").save(folder / "m")


def _old_export(to):
    return lambda folder: _export("ab", to)(folder, False)


def _old_vectors(folder):
    write_word_vectors(_vectors(0), folder / "m")


def _old_file(folder):
    write_lines(folder / "m", ["old"])


WRITERS = (
    Writer("save_pretrained, new", _nothing, _save(1, False), _read_model),
    Writer("save_pretrained, force", _old_model, _save(1, True), _read_model),
    Writer("write a file, new", _nothing, _write_file, _read_file),
    Writer("write a file again", _old_file, _write_file, _read_file),
    Writer("train", _nothing, _train(), _read_model),
    Writer("train, force", _old_model, _train(force=True), _read_model),
    Writer("train a pair model", _nothing, _train(PAIR_SETTINGS), _read_model),
    Writer("compare", _nothing, _compare, _read_comparison),
    Writer("vectors convert", _nothing, _write_vectors(1, False), _read_vectors, whole_folder=True),
    Writer(
        "vectors convert, force",
        _old_vectors,
        _write_vectors(1, True),
        _read_vectors,
        whole_folder=True,
    ),
    Writer("vectors train", _nothing, _train_vectors, _read_vectors, whole_folder=True),
    Writer("sif, force", _old_model, _sif, _read_sif),
    Writer("index, new", _nothing, _save_index("ab", False), _read_index),
    Writer("index, force", _old_index, _save_index("dc", True), _read_index),
    Writer("index, changed", _old_index, _change_index, _read_index),
    Writer("split", _nothing, _split, _read_folder, whole_folder=True),
    Writer("prepare, new", _nothing, _prepare("log", False), _read_folder),
    Writer("prepare, force", _old_prepared, _prepare("log", True), _read_folder),
    Writer("import", _old_file, _import, _read_file),
    Writer("export to a file, force", _old_export("page"), _export("dc", "page", True), _read_file),
    Writer(
        "export to a folder, force",
        _old_export("elasticsearch"),
        _export("dc", "elasticsearch", True),
        _read_folder,
    ),
    Writer("export in parts, new", _nothing, _export("dc", "elasticsearch"), _read_folder),
    Writer(
        "export a model, force",
        _old_model,
        _export("dc", "sentence-transformers", True),
        _read_model,
    ),
)


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="sentemb-writers-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@functools.cache
def _expected(writer):
    """How many calls the job makes, and what is there after it."""
    for _ in ("to compile the kernels", "to count"):
        with _folder() as folder:
            writer.prepare(folder)
            with Faults() as faults:
                writer.job(folder, False)
            found = len(faults.names), writer.read(folder)
    return found


def _wrong(writer, folder, old, new):
    """What does not hold after a fault; the job is done again on the way."""
    try:
        found = writer.read(folder)
        # A training also writes its best model so far.
        if found not in (None, old, new) and not (writer.name.startswith("train") and not found[1]):
            return "what is there is neither old nor new"
        if found is None and old is not None and not writer.whole_folder:
            return "the old result is gone"
        writer.job(folder, True)
        if writer.read(folder) != new:
            return "the same job again gives another result"
    except SentembError as error:
        return f"cannot go on: {error}"
    if writer.whole_folder:
        # One that was new was filled next to its place: the next new one there tidies up.
        with temporary_folder(folder):
            pass
    left = [str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix == ".tmp"]
    left += [str(path.relative_to(folder)) for path in folder.rglob("checkpoints")]
    return f"left behind: {left}" if left else None


def killed(every: int = 1) -> Count:
    """Kill each `Writer` at every call of the file system, or at ``every`` so manyth."""
    count = Count("killed at a call of the file system")
    for writer in WRITERS:
        calls, new = _expected(writer)
        for at in range(0, calls, every):
            with _folder() as folder:
                writer.prepare(folder)
                old = writer.read(folder)
                done, _ = in_a_child(lambda: writer.job(folder, False), at)  # noqa: B023
                assert done is None
                _enter(count, f"{writer.name}, call {at}", _wrong(writer, folder, old, new))
        count.notes.append(f"{writer.name}: {calls} calls")
    return count


def killed_sometime(n: int, seed: int = 0) -> Count:
    """Kill the writers in turn, ``n`` times in all, each at a random moment of its job.

    The moments are those of a clock: also within a library, and between calls of the file system.
    """
    count = Count("killed at a random moment")
    rng = random.Random(seed)
    facts = {}
    ended = 0
    for number in range(n):
        writer = WRITERS[number % len(WRITERS)]
        if writer not in facts:
            facts[writer] = _seconds(writer), _expected(writer)[1]
        seconds, new = facts[writer]
        at = rng.uniform(0, seconds)
        with _folder() as folder:
            writer.prepare(folder)
            old = writer.read(folder)
            ended += not in_a_child_for(lambda: writer.job(folder, False), at)  # noqa: B023
            _enter(count, f"{writer.name}, after {at:.4f} s", _wrong(writer, folder, old, new))
    count.notes.append(f"{ended} had ended before")
    return count


def _seconds(writer):
    """How long a job takes in a child, once its kernels are compiled."""
    for _ in range(2):
        with _folder() as folder:
            writer.prepare(folder)
            began = time.monotonic()
            in_a_child_for(lambda: writer.job(folder, False), _MOST_SECONDS)
            seconds = time.monotonic() - began
    return seconds


def failing(every: int = 1) -> Count:
    """Let every call of the file system fail with each of `ERRORS`.

    With ``every`` above 1 only every so manyth call fails, with one of the errors in turn.
    """
    count = Count("an error at a call of the file system")
    for writer in WRITERS:
        calls, new = _expected(writer)
        for number, at in enumerate(range(0, calls, every)):
            for error in ERRORS if every == 1 else [ERRORS[number % len(ERRORS)]]:
                with _folder() as folder, warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    writer.prepare(folder)
                    old = writer.read(folder)
                    name = f"{writer.name}, call {at}, {errno.errorcode[error]}"
                    _enter(count, name, _after_failure(writer, folder, at, error, old, new))
        count.notes.append(f"{writer.name}: {calls} calls")
    return count


def _after_failure(writer, folder, at, error, old, new):
    with Faults(at, failure(error)) as faults:
        try:
            writer.job(folder, False)
        except SentembError as said:
            if "\n" in str(said) or len(str(said)) > 300:
                return f"not one short line: {said}"
        except Exception as escaped:
            return f"{faults.names[at]}: {type(escaped).__name__}: {escaped}"
    left = [path.name for path in folder.rglob("*") if path.suffix == ".tmp"]
    # What cannot be removed now is removed by the next writer.
    if left and faults.names[at] not in ("unlink", "open", "rmdir"):
        return f"left behind: {left}"
    return _wrong(writer, folder, old, new)


def _enter(count, name, wrong):
    count.tried += 1
    if wrong:
        count.failures.append(f"{name}: {wrong}")
