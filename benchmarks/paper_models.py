"""The simulated click log and the models that docs/paper.md looks into, trained once and kept."""

import sys
import time
from functools import cached_property
from pathlib import Path

from pages import ROOT

from sentemb import SentenceEncoder, train
from sentemb.analysis.histories import History, read_history
from sentemb.comparison.baselines.doc2vec import Doc2Vec
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import JudgedSet, read_judged_set
from sentemb.data.simulation.simulator import simulate
from sentemb.data.simulation.truth import Truth, read_truth

WORK = ROOT / "build" / "paper"
PAIRS = 40_000
# The paper's settings. With the learning rate of the LSTM the RNN hardly learns.
SETTINGS = {
    "lstm": {"model": "lstm"},
    "rnn": {"model": "rnn", "learning_rate": 0.02},
    "bilstm": {"model": "bilstm"},
}


class Laboratory:
    """The log, its truth and the models; each is made when it is first needed and kept in a folder.

    Parameters
    ----------
    work : Path
        The folder; what an earlier run finished is read from it.
    threads : int
        Threads of a training. They do not change its result.
    """

    def __init__(self, work: Path, threads: int):
        self._work, self._threads = work, threads
        self._models: dict[str, SentenceEncoder] = {}

    @cached_property
    def folder(self) -> Path:
        """The folder of the simulated log."""
        folder = self._work / "log"
        if not (folder / "truth.jsonl").exists():
            simulate(folder, pairs=PAIRS, seed=0, force=True)
        return folder

    def model(self, name: str) -> SentenceEncoder:
        """One of `SETTINGS`, trained or loaded."""
        if name not in self._models:
            folder = self._work / name
            if not (folder / "model.safetensors").exists():
                began = time.monotonic()
                train(
                    self.folder / "pairs.tsv",
                    dev=self.folder / "dev",
                    output=folder,
                    seed=0,
                    threads=self._threads,
                    preset="paper",
                    **SETTINGS[name],
                )
                print(f"{name}: trained in {time.monotonic() - began:.0f} s", file=sys.stderr)
            self._models[name] = SentenceEncoder.from_pretrained(folder, threads=self._threads)
        return self._models[name]

    def history(self, name: str) -> History:
        """The epochs of the training of ``name``."""
        self.model(name)
        return read_history(self._work / name)

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
        """Doc2Vec trained on the texts of the log."""
        return Doc2Vec().fit(self.log)
