"""Prepared logs and pair models whose checksums are right and whose contents are not.

Whoever makes such a folder on purpose gets past every checksum. A case opens one and uses it to the
end: it trains on the log, or scores with the model and trains it further. Either a `SentembError`
of one line says why not, or all results are finite.
"""

import copy
import json
import shutil
from hashlib import sha256
from pathlib import Path

import numpy as np

from reliability import mutations
from reliability.count import Count
from reliability.fuzz import TEXTS, Judge, Reader, attacked, vectors_of
from reliability.model_format import parts_of_pair, write_parts
from reliability.samples import PAIR_MODELS, PAIR_TRAINING, make_scorer, pairs
from sentemb.system.checked_files import described

# Settings that read a log in different ways.
TRAININGS = {
    "lstm": {"model": "lstm", "cells": 3, "n_negatives": 2},
    "skipped": {"model": "bag", "cells": 3, "n_negatives": 2, "negatives": "log"},
    "dssm": {"model": "dssm", "hidden": 3, "cells": 3, "word_features": 1},
    "hard": {"model": "bag", "cells": 3, "hard_negatives": 2, "epochs": 3},
    "hinge": {"model": "bag", "cells": 3, "objective": "hinge"},
}
_EXTREMES = (-(2**63), -(2**31), -1, 0, 1, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
_ODD_TEXTS = (
    b"", b"\n", b" ", b"\xff", b"a\rb", b"\x00", "\u2028".encode(), b"w" * 5000, b"w " * 20_000,
)  # fmt: skip


def crafted(n, seed=0, workers=None) -> Count:
    """``n`` crafted folders from ``seed``, each used to the end."""
    failures, tally = attacked(n, seed, kind="crafted", workers=workers)
    count = Count("crafted folders", tried=n)
    count.failures = [f"seed {seed}, case {number}: {text}" for number, text in failures]
    count.notes = [f"{number} were {what}" for what, number in sorted(tally.items())]
    return count


class Crafted(Judge):
    """True samples in memory, and what changes, writes and uses them."""

    seconds = 10  # a training takes longer than reading a file

    def __init__(self, home):
        super().__init__(home)
        lines = [{"query": query, "clicked": [title], "skipped": [pairs()[k - 1][1]]}
                 for k, (query, title) in enumerate(pairs())]  # fmt: skip
        Path("log.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        from sentemb import prepare_log

        prepare_log("log.jsonl", "prepared")
        self.log = {
            path.name: np.load(path) if path.suffix == ".npy" else path.read_bytes()
            for path in Path("prepared").iterdir()
        }
        self.told = json.loads(self.log.pop("prepared.json"))
        self.models = [parts_of_pair(make_scorer(name)) for name in PAIR_MODELS]
        # What is not changed must be used; what compiles does so now.
        for name in TRAININGS:
            self._write_log(self.log, self.told)
            wrong = self._use_log(name, True)
            assert wrong is None, wrong
        for parts in self.models:
            write_parts(parts, "crafted")
            wrong = self._use_model("crafted", True)
            assert wrong is None, wrong
        self.arm()

    def case(self, seed, number, repaired):
        """Craft a folder and use it; what is wrong, or None."""
        rng = mutations.generator(seed, number)
        if rng.random() < 0.6:
            name = rng.choice(sorted(TRAININGS))
            what = "; ".join(self._craft_log(rng))
            wrong = self._judge(Reader((), self._use_log), name, True)
        else:
            parts = copy.deepcopy(rng.choice(self.models))
            name = parts.config["model"]
            what = _craft_model(rng, parts)
            write_parts(parts, "crafted")
            wrong = self._judge(Reader((), self._use_model), name, True)
        return f"{name}, {what}: {wrong}" if wrong else None

    # -- prepared logs --------------------------------------------------------------------

    def _craft_log(self, rng):
        files, told = copy.deepcopy(self.log), copy.deepcopy(self.told)
        said, changed = [], set()
        for _ in range(rng.choice((1, 1, 2, 3))):
            kind = rng.random()
            if kind < 0.15 and not said:  # of whole arrays
                said.append(_shorten(rng, files, told))
            elif kind < 0.3:
                key = rng.choice(sorted(told.keys() - {"files", "sha256"}))
                told[key], what = mutations.mutate_json(rng, told[key])
                said.append(f"{key}: {what}")
            else:
                name = rng.choice(sorted(files.keys() - changed))
                changed.add(name)
                if isinstance(files[name], bytes):
                    files[name], what = _odd_text(rng, files, name)
                else:
                    files[name], what = _odd_numbers(rng, files[name])
                said.append(f"{name} {what}")
        self._write_log(files, told)
        return said

    def _write_log(self, files, told):
        """Write a prepared log, every checksum right."""
        shutil.rmtree("crafted-log", ignore_errors=True)
        place = Path("crafted-log")
        place.mkdir()
        listed = {}
        for name, contents in files.items():
            if isinstance(contents, bytes):
                (place / name).write_bytes(contents)
            else:
                np.save(place / name, contents)
            listed[name] = described(place / name)
        own = {**told, "files": {name: listed[name] for name in told["files"]}}
        own.pop("sha256")
        text = mutations.dump(own)
        try:
            plain = json.dumps(json.loads(text), sort_keys=True)
        except (ValueError, RecursionError):
            plain = ""  # nobody can read it
        digest = sha256(plain.encode()).hexdigest()
        (place / "prepared.json").write_bytes(text[:-1] + f', "sha256": "{digest}"}}'.encode())

    def _use_log(self, name, repaired):
        from sentemb import PreparedLog, train

        log = PreparedLog.open("crafted-log")
        given = {"epochs": 1, "batch_size": 4, "threads": 1, **TRAININGS[name]}
        model = train(log, splitting=log.splitting if log.splitting == "bare" else None, **given)
        if not np.isfinite([line["loss"] for line in model.history]).all():
            return "a loss that is not finite"
        return None if np.isfinite(vectors_of(model)).all() else "vectors that are not finite"

    # -- pair models ----------------------------------------------------------------------

    def _use_model(self, name, repaired):
        from sentemb import load, train
        from sentemb.analysis.pair_effects import match

        model = load("crafted", threads=1)
        if not np.isfinite(vectors_of(model)).all():
            return "scores that are not finite"
        match(model, *TEXTS[:2])
        # The scores of urae are trained from the third epoch on.
        more = {"epochs": 3} if model.model.name == "urae" else {}
        given = {**PAIR_TRAINING, **more, "mlp": model.model.settings()["mlp"]}
        trained = train(pairs(), start_from="crafted", **given)
        if not np.isfinite([line["loss"] for line in trained.history]).all():
            return "a loss that is not finite"
        return None if np.isfinite(vectors_of(trained)).all() else "scores that are not finite"


def _odd_numbers(rng, array):
    """Other numbers: in range and in another order, at the ends of the range, or beyond it."""
    changed = array.copy()
    kind = rng.randrange(8)
    if not array.size:
        return np.zeros(1, array.dtype), "of one number"
    if kind == 0:
        return np.sort(changed)[::-1].copy(), "turned"
    if kind == 1:
        np.random.default_rng(rng.randrange(2**32)).shuffle(changed)
        return changed, "shuffled"
    if kind == 2:
        changed[...] = changed[rng.randrange(array.size)]
        return changed, "all equal"
    if kind == 3:
        return _retyped(rng, array)
    value = rng.choice(_EXTREMES)
    limits = np.iinfo(array.dtype)
    value = min(max(value, limits.min), limits.max)
    if kind == 4:
        changed[...] = value
        return changed, f"all {value}"
    at = rng.randrange(array.size)
    changed[at] = value if kind < 7 else changed[at - 1]
    return changed, f"{changed[at]} at {at}"


def _retyped(rng, array):
    """The same numbers of another type or shape."""
    dtype = rng.choice(("f4", "f8", "i4", "i8", "u1", ">i8"))
    shape = rng.choice(((-1,), (1, -1), (-1, 1)))
    return array.astype(dtype).reshape(shape), f"of type {dtype}, shape {shape}"


def _odd_text(rng, files, name):
    """Lines of texts or words with another one in place of one, the offsets to match or not."""
    lines = files[name].split(b"\n")[:-1]
    if not lines:
        return b"a\n", "of one line"
    at = rng.randrange(len(lines))
    lines[at] = rng.choice((*_ODD_TEXTS, lines[0], lines[at][:1], lines[at][::-1]))
    what = f"line {at} became {lines[at][:12]!r}"
    if rng.random() < 0.8:
        offsets = name.replace(".txt", "-offsets.npy")
        files[offsets] = np.cumsum([0, *(len(line) + 1 for line in lines)]).astype(np.int64)
    return b"".join(line + b"\n" for line in lines), what


def _shorten(rng, files, told):
    """Fewer pairs, none, or twice as many; all sizes match."""
    n = told["pairs"]
    n_new = rng.choice((0, 1, n - 1, 2 * n))
    took = np.arange(n_new) % n
    for name in ("query-index.npy", "title-index.npy", "clicks.npy", "clicked-titles.npy"):
        files[name] = files[name][took % len(files[name])] if len(files[name]) else files[name]
    told["pairs"] = n_new
    offsets = files["skipped-offsets.npy"]
    lengths = np.diff(offsets)[took % max(1, len(offsets) - 1)]
    ends = np.minimum(np.cumsum([0, *lengths]), offsets[-1])
    if n_new:
        ends[-1] = offsets[-1]
    else:
        files["skipped-index.npy"] = files["skipped-index.npy"][:0]
        told["skipped"] = 0
    files["skipped-offsets.npy"] = ends.astype(np.int64)
    clicked = np.minimum(files["clicked-offsets.npy"], n_new)
    clicked[-1] = n_new
    files["clicked-offsets.npy"] = clicked
    return f"{n_new} pairs"


def _craft_model(rng, parts):
    """Change a pair model: as the fuzzer does, or weights of any size that is let through."""
    if rng.random() < 0.5:
        return mutations.mutate_parts(rng, parts, [b"", b"\n", bytes(range(256))])
    said = []
    for name in rng.sample(sorted(parts.tensors), rng.randrange(1, len(parts.tensors) + 1)):
        size = 10.0 ** rng.choice((-45, -30, 3, 6, 9, 12))
        sign = np.where(np.arange(parts.tensors[name].size) % rng.choice((1, 2, 3)), -1, 1)
        changed = (size * sign).reshape(parts.tensors[name].shape)
        parts.tensors[name] = changed.astype(parts.tensors[name].dtype)
        said.append(f"{name} of size {size:g}")
    return ", ".join(said)
