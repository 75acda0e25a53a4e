"""Our side of the speed benchmark: the package as `sentemb.train` uses it, step by step."""

import json
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from sentemb.data.click_log import read_click_log
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers, one_after_the_other
from sentemb.text.batch import batch_of, tokenize
from sentemb.training.corpus import Corpus
from sentemb.training.mini_batches import draw_candidates, mini_batch
from sentemb.training.settings import Settings
from sentemb.training.two_towers import TwoTowers

# A phase of constant momentum, long enough for any run: torch.optim.SGD has nothing else.
UPDATES = 1_000_000


def settings_of(case):
    """The `Settings` of a case: the paper's, except the momentum and what the case sets."""
    chosen = {"momentum": 0.9, "edge_momentum": 0.9} | case["settings"]
    return Settings.of("paper", **chosen)


class ClockedWorkers(Workers):
    """One thread that adds up the time spent in every kernel."""

    def __init__(self):
        super().__init__(1)
        self.seconds = defaultdict(float)

    def run(self, tasks):
        for function, *arguments in tasks:
            if function is one_after_the_other:
                self.run(arguments)
                continue
            began = time.perf_counter()
            function(*arguments)
            self.seconds[function.__name__] += time.perf_counter() - began


class Ours:
    """See `contenders.serve` for what a contender can do."""

    def __init__(self, folder, threads):
        self.case = json.loads((Path(folder) / "case.json").read_text())
        self.settings = settings_of(self.case)
        self.log = read_click_log(self.case["log"])
        self.corpus = Corpus(self.log, self.settings)
        self.towers = TwoTowers(self.corpus, self.settings, UPDATES)
        self.workers = Workers(threads)
        self.order = self.corpus.order(self.settings.seed, 0)
        self.steps = self.corpus.n_pairs // self.settings.batch_size
        self.number = 0
        self.planned = [self.mini_batch(0)]
        self.model = None

    def mini_batch(self, step):
        """Collation, the drawing of negatives and the layouts: part of every timed step."""
        step %= self.steps
        size = self.settings.batch_size
        pairs = self.order[step * size : (step + 1) * size]
        batch = mini_batch(self.corpus, pairs, self.settings, 0, step)
        return batch, self.towers.lay_out(batch)

    def train_step(self):
        # As the training loop does: the next mini-batch is planned while this one is trained on.
        batch, layouts = self.planned.pop()
        self.workers.meanwhile(lambda: self.planned.append(self.mini_batch(self.number + 1)))
        loss = self.towers.update(batch, layouts, self.number, self.workers)
        self.number += 1
        return loss

    def encode(self, texts):
        if self.model is None:
            self.model = SentenceEncoder(
                self.towers.encoder,
                self.corpus.vocabulary,
                self.towers.weights(),
                threads=self.workers.threads,
            )
        return self.model.encode_document(texts)

    def titles(self):
        return self.log.titles

    # -- only on our side ---------------------------------------------------------------------

    def profile(self, steps):
        """Seconds per step by kernel, plus collation and the remainder."""
        self.train_step()
        single, self.workers = self.workers, ClockedWorkers()
        collation = total = 0.0
        for _ in range(steps):
            began = time.perf_counter()
            batch, layouts = self.mini_batch(self.number)
            collation += time.perf_counter() - began
            self.towers.update(batch, layouts, self.number, self.workers)
            total += time.perf_counter() - began
            self.number += 1
        seconds, self.workers = dict(self.workers.seconds), single
        seconds["mini_batch"] = collation
        seconds["everything else"] = total - sum(seconds.values())
        return {name: value / steps for name, value in seconds.items()}

    def counts(self, steps):
        """Mean sizes of the mini-batches: see `floor.operations_and_bytes`."""
        totals = defaultdict(float)
        for step in range(steps):
            batch, _ = self.mini_batch(step)
            for part in (batch.queries, batch.titles):
                totals["texts"] += part.n_texts
                totals["tokens"] += part.word_index.size
                totals["words"] += part.n_words
                totals["entries"] += part.feature_ids.size
                totals["rows"] += part.input_rows.size
        encoder = self.towers.encoder
        shape = {"cells": encoder.cells, "gates": len(encoder.gates), "width": encoder.width}
        return {name: value / steps for name, value in totals.items()} | shape

    def prepare(self, folder):
        """Write what the other contenders start from: weights, texts as numbers, mini-batches."""
        folder = Path(folder)
        (folder / "vocabulary.txt").write_text(
            "".join(f"{trigram}\n" for trigram in self.corpus.vocabulary.trigrams), "utf-8"
        )
        arrays = {}
        for side, weights in self.towers.weights().items():
            arrays |= {f"{side}.{name}": array for name, array in weights.items()}
        for side, texts in (("query", self.log.queries), ("document", self.log.titles)):
            batch = batch_of(tokenize(texts), self.corpus.vocabulary)
            arrays |= {f"{side}.{name}": array for name, array in vars(batch).items()}
            # Numbered within the batch; the others want rows of the table.
            arrays[f"{side}.feature_ids"] = batch.input_rows[batch.feature_ids]
        arrays |= self._plan()
        np.savez(folder / "start.npz", **arrays)
        return {"trigrams": len(self.corpus.vocabulary), "pairs": self.corpus.n_pairs}

    def _plan(self):
        """Every mini-batch's texts: queries, titles to encode, each pair's candidates among them.

        With negatives from the batch the clicked titles are all that is encoded; with negatives
        from the corpus the five titles of every pair.
        """
        size, settings = self.settings.batch_size, self.settings
        queries, titles, candidates = [], [], []
        for step in range(self.steps):
            pairs = self.order[step * size : (step + 1) * size]
            clicked = self.corpus.title_index[pairs]
            # The same draw that `mini_batch` makes for this step.
            _, drawn = draw_candidates(self.corpus, pairs, clicked, settings, 0, step)
            drawn = drawn.reshape(size, settings.n_negatives + 1)
            queries.append(self.corpus.query_index[pairs])
            if settings.negatives == "batch":
                place = {title: k for k, title in enumerate(clicked.tolist())}
                titles.append(clicked)
                candidates.append([[place[title] for title in row] for row in drawn.tolist()])
            else:
                titles.append(drawn.ravel())
                candidates.append(np.arange(drawn.size).reshape(drawn.shape))
        plan = {"queries": queries, "titles": titles, "candidates": candidates}
        return {f"plan.{name}": np.array(value, np.int64) for name, value in plan.items()}
