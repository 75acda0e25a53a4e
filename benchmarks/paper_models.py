"""The simulated click log and the models that docs/paper.md looks into, trained once and kept."""

import sys
import time
from pathlib import Path

from pages import ROOT

from sentemb import SentenceEncoder, train
from sentemb.data.simulation.simulator import simulate

WORK = ROOT / "build" / "paper"
PAIRS = 40_000
# The paper's settings. With its learning rate for the LSTM the RNN hardly learns.
MODELS = {
    "lstm": {"model": "lstm"},
    "rnn": {"model": "rnn", "learning_rate": 0.02},
    "bilstm": {"model": "bilstm"},
}
NAMES = {"lstm": "LSTM", "rnn": "RNN", "bilstm": "BiLSTM"}


def simulated_log(work: Path) -> Path:
    """The folder of the simulated log; made if it is not there."""
    folder = work / "log"
    if not (folder / "truth.jsonl").exists():
        simulate(folder, pairs=PAIRS, seed=0, force=True)
    return folder


def trained_models(work: Path, threads: int) -> dict[str, SentenceEncoder]:
    """The three models by name; those that an earlier run finished are loaded."""
    log = simulated_log(work)
    models = {}
    for name, settings in MODELS.items():
        folder = work / name
        if not (folder / "config.json").exists():
            began = time.monotonic()
            train(
                log / "pairs.tsv",
                dev=log / "dev",
                output=folder,
                seed=0,
                threads=threads,
                preset="paper",
                **settings,
            )
            print(f"{name}: {time.monotonic() - began:.0f} s", file=sys.stderr)
        models[name] = SentenceEncoder.from_pretrained(folder, threads=threads)
    return models


if __name__ == "__main__":
    trained_models(WORK, 1)
