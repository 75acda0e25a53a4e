"""What a whole training spends its time on, and how fast a log is read."""

import tempfile
import time
from collections import defaultdict
from functools import wraps
from pathlib import Path

from sentemb.data.click_log import read_click_log
from sentemb.training import loop, run, trainer
from sentemb.training.batches.corpus import Corpus
from sentemb.training.towers.two_tower_task import TwoTowerTask
from sentemb.training.towers.two_towers import TwoTowers


def measure_reading(log):
    """{"wall": seconds, "lines": n} of reading a log once."""
    with open(log, "rb") as file:
        lines = sum(1 for _ in file)
    began = time.perf_counter()
    read_click_log(log)
    return {"wall": time.perf_counter() - began, "lines": lines}


def measure_whole_job(log, epochs, threads, preset="paper", dev=None):
    """Seconds of `sentemb.train` by part, from the file to the saved model; ``whole`` is all.

    Parts may overlap: mini-batches are planned while the one before is trained on. Without a preset
    the settings are the defaults.
    """
    seconds = defaultdict(float)

    def timed(name, function):
        @wraps(function)
        def wrapper(*arguments, **options):
            began = time.perf_counter()
            try:
                return function(*arguments, **options)
            finally:
                seconds[name] += time.perf_counter() - began

        return wrapper

    places = [
        (run, "read_click_log", "reading"),
        (Corpus, "__init__", "vocabulary"),
        (TwoTowers, "__init__", "initial weights"),
        (TwoTowerTask, "plan", "planning"),
        (TwoTowerTask, "before_epoch", "looking up hard negatives"),
        (TwoTowerTask, "update", "training"),
        (TwoTowerTask, "measure", "measuring on dev"),
        (loop, "write_model", "saving"),
        (loop, "write_checkpoint", "checkpoints"),
    ]
    plain = [getattr(owner, attribute) for owner, attribute, _ in places]
    try:
        for (owner, attribute, name), function in zip(places, plain, strict=True):
            setattr(owner, attribute, timed(name, function))
        with tempfile.TemporaryDirectory() as folder:
            began = time.perf_counter()
            given = {} if epochs is None else {"epochs": epochs}
            trainer.train(
                log, output=Path(folder) / "model", preset=preset, dev=dev, threads=threads, **given
            )
            seconds["whole"] = time.perf_counter() - began
    finally:
        for (owner, attribute, _), function in zip(places, plain, strict=True):
            setattr(owner, attribute, function)
    return dict(seconds)
