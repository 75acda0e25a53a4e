"""How well a trained model ranks: defaults and presets on real data, one command each.

Runs ``sentemb train`` and ``sentemb evaluate`` as a user would, once for every data set, settings
and seed, and writes docs/results/presets.md. Settings were chosen on dev; this script only
measures test.

    python benchmarks/quality.py [--data ../shared/data] [--seeds 1]
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pages import SETS, machine, options_for, write_tables

from sentemb.system.tables import markdown_table

SETTINGS = {
    "defaults": [],
    "`--preset large`": ["--preset", "large"],
    "`--preset paper`": ["--preset", "paper"],
}


def sentemb(*arguments):
    """Run a command; return its standard output, the seconds it took and its peak memory in MB."""
    began = time.monotonic()
    command = [sys.executable, "-m", "sentemb", *map(str, arguments)]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        if status != 0:
            sys.exit(f"{' '.join(command)} failed")
        out.seek(0)
        return out.read(), time.monotonic() - began, usage.ru_maxrss / 1e3


def measure(data, name, options, seed):
    """One training and its figures, as a dict."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        _, seconds, memory = sentemb(
            "train", data / name / "pairs.tsv", "--dev", data / name / "dev", "-o", model,
            "--seed", seed, *options,
        )  # fmt: skip
        report, _, _ = sentemb("evaluate", model, data / name / "test", "--json")
        history = [json.loads(line) for line in (model / "history.jsonl").read_text().splitlines()]
        config = json.loads((model / "config.json").read_text())
    best = max(history, key=lambda line: line["dev"]["ndcg@1"])
    test = json.loads(report)
    return {
        "test": [test[f"ndcg@{k}"] for k in (1, 3, 10)],
        "dev": [best["dev"][f"ndcg@{k}"] for k in (1, 3, 10)],
        "seconds": seconds,
        "memory": memory,
        "epoch": best["epoch"],
        "training": config["training"],
        "trigrams": config["trigrams"],
    }


def table(results):
    """The rows of the table."""
    of_ndcg = "NDCG@1 / @3 / @10"
    yield ["set", "pairs", "trigrams", "settings", f"dev {of_ndcg}", f"test {of_ndcg}",
           "time", "memory"]  # fmt: skip
    for (name, label), runs in results.items():
        dev, test = (
            " / ".join(f"{value:.3f}" for value in np.mean([run[part] for run in runs], axis=0))
            for part in ("dev", "test")
        )
        seconds = np.mean([run["seconds"] for run in runs])
        memory = max(run["memory"] for run in runs)
        sizes = runs[0]["training"]["pairs"], runs[0]["trigrams"]
        yield [name, *(f"{size:,}" for size in sizes), label, dev, test, f"{seconds:.0f} s",
               f"{memory:.0f} MB"]  # fmt: skip


def main():
    options = options_for(__doc__, SETS, seeds={"type": int, "default": 1})
    results = {}
    for name in options.sets:
        for label, extra in SETTINGS.items():
            results[name, label] = [
                measure(options.data, name, extra, seed) for seed in range(options.seeds)
            ]
    write_tables("presets", {"": markdown_table(table(results), left=8)}, machine())


if __name__ == "__main__":
    main()
