"""Our side of the speed benchmark: the package as `sentemb.train` uses it, step by step."""

import json
import time
from collections import defaultdict
from pathlib import Path
from unittest.mock import patch

import numpy as np
from synthetic import mixed_titles

from sentemb.data.click_log import read_click_log
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers, one_after_the_other
from sentemb.training.batches.corpus import Corpus
from sentemb.training.objectives.candidates import BatchCandidates
from sentemb.training.optimisers import renormalisation
from sentemb.training.optimisers.row_tasks import spread_rows
from sentemb.training.towers.settings import ADAM, HARD_FROM_EPOCH, Settings
from sentemb.training.towers.two_tower_task import TwoTowerTask


def settings_of(case):
    """The `Settings` of a case: those of its preset, and what the case sets.

    The momentum is constant, as in `torch.optim.SGD`, and so is the learning rate.
    """
    is_adam = Settings.of(case["preset"], **case["settings"]).optimiser == ADAM
    constant = {"decay": "none"} if is_adam else {"decay": "none", "momentum": 0.9}
    return Settings.of(case["preset"], **constant | case["settings"])


class ClockedWorkers(Workers):
    """One thread that adds up the processor time spent in every kernel."""

    def __init__(self):
        super().__init__(1)
        self.seconds = defaultdict(float)

    def run(self, tasks):
        for function, *arguments in tasks:
            if function is one_after_the_other:
                self.run(arguments)
                continue
            began = time.process_time()
            function(*arguments)
            self.seconds[function.__name__] += time.process_time() - began


class Ours:
    """See `contenders.Server` for what a contender can do."""

    def __init__(self, folder, threads, workers=None):
        self.folder = Path(folder)
        self.case = json.loads((self.folder / "case.json").read_text())
        self.settings = settings_of(self.case)
        self.log = read_click_log(self.case["log"])
        self.corpus = Corpus(self.log, self.settings)
        self.workers = workers or Workers(threads)
        self.task = TwoTowerTask(self.corpus, self.settings, self.workers, lambda message: None)
        # Every step is one of the same epoch: the first in which hard negatives are in use.
        self.epoch = HARD_FROM_EPOCH - 1 if self.settings.hard_negatives else 0
        self.task.before_epoch(self.epoch, lambda: False)
        self.steps = self.corpus.n_pairs // self.settings.batch_size  # whole mini-batches
        self.number = 0
        self.planned = [self.plan(0)]
        self.model = None

    def plan(self, step):
        """Collation, the drawing of negatives and the layouts: part of every timed step."""
        return self.task.plan(self.epoch, step % self.steps)

    def train_step(self):
        # As the training loop does: the next mini-batch is planned while this one is trained on.
        planned = self.planned.pop()
        self.workers.meanwhile(lambda: self.planned.append(self.plan(self.number + 1)))
        loss = self.task.update(planned, self.number)
        self.workers.catch_up()
        self.number += 1
        return loss

    def encode(self, texts):
        if self.model is None:
            self.model = SentenceEncoder.of(self.task.model(), self.workers.threads)
        return self.model.encode_document(texts)

    def score(self, query, title):
        return self.model.score(query, title)

    def texts_of_log(self):
        """The distinct queries and titles of the log."""
        return self.log.queries, self.log.titles

    # -- only on our side ---------------------------------------------------------------------

    def sizes(self):
        return {"features": len(self.corpus.vocabulary), "pairs": self.corpus.n_pairs}

    def many_titles(self, count):
        """Seconds of encoding ``count`` titles of words met before, and the memory they take."""
        titles = mixed_titles(self.log.titles, count)
        self.encode(self.log.titles)
        before = _memory("VmRSS")
        _forget_peak()
        began = time.perf_counter()
        self.encode(titles)
        return {"wall": time.perf_counter() - began, "megabytes": _memory("VmHWM") - before}

    def profile(self, steps):
        """Processor seconds per step by kernel, plus planning and the remainder."""
        workers = ClockedWorkers()
        other = Ours(self.folder, 1, workers)
        other.task.update(other.planned.pop(), 0)
        workers.seconds.clear()
        planning = total = 0.0
        for step in range(1, steps + 1):
            began = time.process_time()
            planned = other.plan(step)
            planning += time.process_time() - began
            other.task.update(planned, step)
            total += time.process_time() - began
        seconds = dict(workers.seconds) | {"planning": planning}
        seconds["everything else"] = total - sum(seconds.values())
        return {name: value / steps for name, value in seconds.items()}

    def counts(self, steps, folder=None):
        """Mean sizes of the mini-batches: see `floor.needs_of`.

        The rows that each of them touches go into ``rows.npz`` in ``folder``, and the rows of a
        mini-batch that its lists name into ``lists.npz``.
        """
        totals, rows, lists = defaultdict(float), {}, {}
        for step in range(steps + 1):
            batch, layouts = self.plan(step)
            for side, part in (("query", batch.queries), ("document", batch.titles)):
                offsets, holders, _ = layouts[side].words_of_features
                rows[f"{side}.{step}"] = part.input_rows
                lists[f"features.{side}.{step}"] = part.feature_ids
                lists[f"words.{side}.{step}"] = holders
                if not step:
                    continue  # only for what rested before the first step that counts
                totals["texts"] += part.n_texts
                totals["tokens"] += part.word_index.size
                totals["words"] += part.n_words
                totals["rows"] += part.input_rows.size
                totals["entries"] += holders.size
                held = np.diff(offsets)
                totals["shared"] += held[held > 1].sum()
                last = rows[f"{side}.{step - 1}"]
                totals["rested"] += np.setdiff1d(part.input_rows, last).size
        encoder = self.task.towers.encoder
        shape = {"cells": encoder.cells, "gates": len(encoder.gates), "width": encoder.width}
        if folder is not None:
            height = len(self.corpus.vocabulary)
            np.savez(Path(folder) / "rows.npz", shape=[height, encoder.width], **rows)
            height = 1 + max(some.max() for some in lists.values())
            np.savez(Path(folder) / "lists.npz", shape=[height, encoder.width], **lists)
        return {name: value / steps for name, value in totals.items()} | shape

    def exact_norms(self, steps):
        """The share of updates in the next steps that need the exact norm of their gradient."""
        with patch.object(renormalisation, "spread_rows", wraps=spread_rows) as exact:
            for _ in range(steps):
                self.train_step()
        return exact.call_count / (steps * len(self.task.towers.sides))

    def prepare(self, folder):
        """Write what the other contenders start from: weights, texts as numbers, mini-batches."""
        folder = Path(folder)
        (folder / "vocabulary.txt").write_text(
            "".join(f"{trigram}\n" for trigram in self.corpus.vocabulary.trigrams), "utf-8"
        )
        arrays = {}
        for side, weights in self.task.towers.weights().items():
            arrays |= {f"{side}.{name}": array for name, array in weights.items()}
        for side, count in (("query", self.corpus.n_queries), ("document", self.corpus.n_titles)):
            batch = self.corpus.texts(side, np.arange(count, dtype=np.int32))
            arrays |= {f"{side}.{name}": array for name, array in vars(batch).items()}
            # Numbered within the batch; the others want rows of the table.
            arrays[f"{side}.feature_ids"] = batch.input_rows[batch.feature_ids]
        arrays |= self._mini_batches()
        np.savez(folder / "start.npz", **arrays)
        return self.sizes()

    def _mini_batches(self):
        """Every mini-batch as numbers of texts, and places among them: see `torch_models.Batch`."""
        arrays = {}
        for step in range(self.steps):
            batch, queries, titles = self._numbered(step)
            of = batch.candidates
            parts = {"queries": queries, "titles": titles, "weights": batch.weights}
            parts["query_of_pair"] = of.queries
            if isinstance(of, BatchCandidates):
                pairs = np.repeat(np.arange(of.queries.size), np.diff(of.offsets))
                parts |= {"clicked": of.clicked, "excluded": np.stack([pairs, of.excluded])}
            else:
                parts["candidates"] = of.titles.reshape(of.queries.size, -1)
            arrays |= {f"batch.{step}.{name}": array for name, array in parts.items()}
        return arrays

    def _numbered(self, step):
        """The mini-batch of a step, and which queries and titles of the log it holds."""
        taken, plain = [], self.corpus.texts_of_both

        def texts_of_both(queries, titles):
            taken.append((queries, titles))
            return plain(queries, titles)

        self.corpus.texts_of_both = texts_of_both
        try:
            batch, _ = self.plan(step)
        finally:
            del self.corpus.texts_of_both
        return batch, *taken[0]


def first_texts(model):
    """Seconds until a saved model has encoded its first texts, and its first text alone."""
    texts = [f"some words of text {number}" for number in range(300)]
    began, cpu_began = time.perf_counter(), time.process_time()
    encoder = SentenceEncoder(model, threads=1)
    encoder.encode_query(texts)
    encoder.encode_document(texts[0])
    return {"wall": time.perf_counter() - began, "cpu": time.process_time() - cpu_began}


def _memory(field):
    """A line of /proc/self/status in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1e3


def _forget_peak():
    """Let VmHWM start again from what is in memory now."""
    Path("/proc/self/clear_refs").write_text("5")
