"""The simulated click log and the models that docs/paper.md looks into, trained once and kept."""

import sys
import time
from dataclasses import replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pages import ROOT

from sentemb import SentenceEncoder, train
from sentemb.analysis.histories import History, read_history
from sentemb.comparison.baselines.doc2vec import Doc2Vec
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import JudgedSet, read_judged_set
from sentemb.data.simulation.simulator import simulate
from sentemb.data.simulation.truth import Truth, read_truth
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import Towers
from sentemb.training.checkpoints import has_checkpoints

WORK = ROOT / "build" / "paper"
PAIRS = 40_000
# What differs from the preset `paper`. A name without its last part is the family that shares one
# step size, as the paper has a fixed one for each of its models.
SETTINGS: dict[str, dict[str, Any]] = {
    "dssm": {"model": "dssm"},
    **{f"clsm-{window}": {"model": "clsm", "window": window} for window in (1, 3, 5)},
    **{f"rnn-{cells}": {"model": "rnn", "cells": cells} for cells in (32, 288)},
    **{f"lstm-{cells}": {"cells": cells} for cells in (32, 64, 96)},
    **{f"lstm-96-n{n}": {"n_negatives": n} for n in (2, 6, 8)},
    "lstm-96-forget": {"forget_gate": True},
    "lstm-96-peepholes": {"peepholes": "full"},
    "lstm-96-both": {"forget_gate": True, "peepholes": "full"},
    "bilstm-96": {"model": "bilstm"},
}
# The model of each family by which its step size is chosen on dev, and the steps.
FAMILIES = {"dssm": "dssm", "clsm": "clsm-3", "rnn": "rnn-288", "lstm": "lstm-96"}
RATES = (0.02, 0.06, 0.2)
BACKWARDS = "-backwards"


class Laboratory:
    """The log, its truth and the models; each is made when it is first needed and kept in a folder.

    Parameters
    ----------
    work : Path
        The folder; what an earlier run finished is read from it.
    threads : int
        Threads of a training. They do not change its result.
    seed : int
        That of the models; the log and the step sizes are those of seed 0.
    """

    def __init__(self, work: Path, threads: int, seed: int = 0):
        self._work, self._threads, self._seed = work, threads, seed
        self.model = cache(self._model)
        self.by_seed = cache(self._by_seed)

    def _by_seed(self, seed: int) -> "Laboratory":
        """The same laboratory with models of another seed."""
        return Laboratory(self._work, self._threads, seed)

    @cached_property
    def folder(self) -> Path:
        """The folder of the simulated log."""
        folder = self._work / "log"
        if not (folder / "truth.jsonl").exists():
            simulate(folder, pairs=PAIRS, seed=0, force=True)
        return folder

    def _model(self, name: str) -> SentenceEncoder:
        """One of `SETTINGS`, trained or loaded.

        With `BACKWARDS` after the name its texts are read from right to left.
        """
        folder = self._trained(name, self.rate(name), self._seed)
        return SentenceEncoder.from_pretrained(folder, threads=self._threads)

    def rate(self, name: str) -> float:
        """The step size of the family of ``name``: the best on dev by NDCG@1 with seed 0."""
        judge = FAMILIES[name.removeprefix("bi").split("-")[0]]
        figures = {rate: self._best(self._trained(judge, rate, 0)) for rate in RATES}
        return max(figures, key=lambda rate: figures[rate])

    @staticmethod
    def _best(folder: Path) -> float:
        return max(figures["ndcg@1"] for figures in read_history(folder).dev)

    def _trained(self, name: str, rate: float, seed: int) -> Path:
        folder = self._work / f"{name}-{rate}-{seed}"
        if not (folder / "model.safetensors").exists() or has_checkpoints(folder):
            began = time.monotonic()
            log, dev = self.log, read_judged_set(self.folder / "dev")
            if name.endswith(BACKWARDS):
                log = replace(log, queries=reverse(log.queries), titles=reverse(log.titles))
                dev = replace(dev, queries=reverse(dev.queries), titles=reverse(dev.titles))
            train(
                log,
                dev=dev,
                output=folder,
                resume=True,
                seed=seed,
                threads=self._threads,
                preset="paper",
                learning_rate=rate,
                **SETTINGS[name.removesuffix(BACKWARDS)],
            )
            seconds = time.monotonic() - began
            print(
                f"{folder.name}: {self._best(folder):.3f} on dev, {seconds:.0f} s", file=sys.stderr
            )
        return folder

    def costs(
        self, name: str, rate: float, epochs: int, kept: bool = True, **settings: Any
    ) -> list[float]:
        """The mean cost of each epoch of a training without a dev set.

        It is read if it is there, and ``kept`` for the next time.
        """
        told = "-".join(f"{value:g}" for value in (rate, epochs, *settings.values()))
        folder = self._work / "costs" / f"{name}-{told}"
        if not (folder / "model.safetensors").exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            trained = train(
                self.log,
                output=folder if kept else None,
                threads=self._threads,
                preset="paper",
                learning_rate=rate,
                epochs=epochs,
                **SETTINGS[name],
                **settings,
            )
            return [line["loss"] for line in trained.history]
        return read_history(folder).losses

    def joined(self, name: str) -> SentenceEncoder:
        """A BiLSTM of two LSTMs trained apart, one of which reads from right to left."""
        ahead, back = self.model(name).towers, self.model(name + BACKWARDS).towers
        row_of = {trigram: row for row, trigram in enumerate(back.vocabulary.trigrams)}
        rows = [row_of[trigram] for trigram in ahead.vocabulary.trigrams]
        weights = {
            side: {
                "table": np.hstack([first["table"], second["table"][rows]]),
                "bias": np.concatenate([first["bias"], second["bias"]]),
                "recurrent": np.concatenate([first["recurrent"], second["recurrent"]]),
            }
            for side, first in ahead.weights.items()
            for second in [back.weights[side]]
        }
        encoder = make_encoder("bilstm", cells=ahead.encoder.cells)
        return SentenceEncoder.of(SavedModel(Towers(encoder, ahead.vocabulary, weights)))

    def history(self, name: str) -> History:
        """The epochs of the training of ``name``."""
        return read_history(self._trained(name, self.rate(name), 0))

    @cached_property
    def log(self) -> ClickLog:
        """The training log."""
        return read_click_log(self.folder / "pairs.tsv")

    @cached_property
    def test(self) -> JudgedSet:
        """The judged test set."""
        return read_judged_set(self.folder / "test")

    @cached_property
    def truth(self) -> dict[str, dict[str, Truth]]:
        """Topic and keywords of every text."""
        return read_truth(self.folder / "truth.jsonl")

    @cached_property
    def doc2vec(self) -> Doc2Vec:
        """Doc2Vec trained on the texts of the log, with the settings of the paper's result."""
        return Doc2Vec().fit(self.log)


def reverse(texts: list[str]) -> list[str]:
    """The texts with their words in the opposite order."""
    return [" ".join(text.split()[::-1]) for text in texts]
