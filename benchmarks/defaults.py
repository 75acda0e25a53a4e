"""What the defaults of ``sentemb train`` gain and cost: variants on three sets, three seeds each.

Each training is a process of its own, one thread, and its figures are kept in a folder, so that a
stopped run can continue. ``--source`` is the checkout whose package is measured: the variant
``before`` needs one from before mini-batches of neighbours. Writes docs/results/defaults.md from
all figures in the folder.

    python benchmarks/defaults.py [--variants after,...] [--sets tldr,...] [--seeds 0,1,2]
        [--source CHECKOUT] [--folder defaults]
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from pages import DATA, ROOT, SETS, machine, write_tables

from sentemb.system.tables import markdown_table

# Name -> settings. "before" is the version before mini-batches of neighbours (`--source`).
VARIANTS = {"before": {}, "after": {}, "mixed": {"group_size": 1}}
PARTS = ("dev", "test")
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")

# Runs in a process of its own, with the package of some checkout. Besides NDCG of the judged
# titles it computes MRR@10 over all titles of the log and the judged set: judged titles are partly
# those that BM25 ranks high.
_TRAINING = """
import json, sys, time, warnings
import numpy as np
import sentemb
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.evaluate import evaluate_model

folder, seed, settings = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
warnings.simplefilter("ignore")
began = time.process_time()
model = sentemb.train(
    folder + "/pairs.tsv", dev=folder + "/dev", seed=seed, threads=1, **settings
)
seconds = time.process_time() - began
titles = read_click_log(folder + "/pairs.tsv").titles

def unit(rows):
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)

def mrr(judged):
    everything = list(dict.fromkeys([*titles, *judged.titles]))
    places = {title: place for place, title in enumerate(everything)}
    of_judged = np.array([places[title] for title in judged.titles])
    Q, D = unit(model.encode_query(judged.queries)), unit(model.encode_document(everything))
    found = []
    for q, query in enumerate(Q):
        first, end = judged.offsets[q : q + 2]
        right = of_judged[judged.title_index[first:end][judged.grade[first:end] > 0]]
        if right.size:
            scores = D @ query
            rank = 1 + np.count_nonzero(scores > scores[right].max())
            found.append(1 / rank if rank <= 10 else 0.0)
    return float(np.mean(found))

figures = {"seconds": seconds, "epochs": len(model.history), "training": model.training}
for part in ("dev", "test"):
    judged = read_judged_set(folder + "/" + part)
    figures[part] = [*map(float, evaluate_model(model, judged, (1, 3, 10)).mean), mrr(judged)]
print(json.dumps(figures))
"""


def measure(data, seed, settings, source):
    """The figures of one training."""
    environment = os.environ | dict.fromkeys(_THREADS, "1") | {"PYTHONPATH": str(source / "src")}
    command = [sys.executable, "-c", _TRAINING, data, seed, json.dumps(settings)]
    done = subprocess.run(
        [*map(str, command)], check=True, stdout=subprocess.PIPE, text=True, env=environment
    )
    return json.loads(done.stdout)


def figures_in(folder):
    """{variant: {set: {seed: figures}}} of all trainings that are in the folder."""
    found = {}
    for variant in VARIANTS:
        for name in SETS:
            for path in sorted(folder.glob(f"{variant}-{name}-*.json")):
                seed = int(path.stem.rsplit("-", 1)[1])
                runs = found.setdefault(variant, {}).setdefault(name, {})
                runs[seed] = json.loads(path.read_text(encoding="utf-8"))
    return found


def tables_of(found):
    """The tables of the page, by heading."""
    tables = {}
    for part in PARTS:
        head = ["variant", "set", "seeds", "NDCG@1", "NDCG@3", "NDCG@10", "MRR@10, all titles"]
        rows = [[*head, "CPU"]]
        for variant, sets in found.items():
            means = []
            for name, runs in sets.items():
                values = np.array([run[part] for run in runs.values()])
                seconds = [run["seconds"] for run in runs.values() if run["seconds"]]
                means.append([*values.mean(axis=0), np.mean(seconds)])
                rows.append(cells(variant, name, str(len(runs)), means[-1]))
            rows.append(cells(variant, "mean of the sets", "", np.mean(means, axis=0)))
        tables[f"Figures on {part}"] = markdown_table(rows, left=2)
    rows = [["set", "seed", *found]]
    for name in SETS:
        for seed in sorted({seed for sets in found.values() for seed in sets.get(name, {})}):
            runs = [sets.get(name, {}).get(seed) for sets in found.values()]
            rows.append([name, str(seed), *(f"{run['dev'][0]:.4f}" if run else "" for run in runs)])
    return tables | {"Each training": markdown_table(rows)}


def cells(variant, name, seeds, values):
    """A row of a table."""
    *figures, seconds = values
    return [variant, name, seeds, *(f"{value:.4f}" for value in figures), f"{seconds:.0f} s"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "defaults")
    parser.add_argument("--source", type=Path, default=ROOT, help="checkout that is measured")
    parser.add_argument("--variants", default="after", help="none to write the page only")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", default="0,1,2")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for variant in [name for name in options.variants.split(",") if name != "none"]:
        for seed in map(int, options.seeds.split(",")):
            for name in options.sets.split(","):
                path = options.folder / f"{variant}-{name}-{seed}.json"
                if not path.exists():
                    data = (options.data / name).resolve()
                    run = measure(data, seed, VARIANTS[variant], options.source.resolve())
                    path.write_text(json.dumps(run, indent=1) + "\n", encoding="utf-8")
                    print(path.stem, run["dev"], f"{run['seconds']:.0f} s", flush=True)
    found = figures_in(options.folder)
    if found:
        write_tables("defaults", tables_of(found), machine())


if __name__ == "__main__":
    main()
