"""BM25 next to the model: all titles ranked by either, by their sum, and by their ranks.

For each log, with the default model and the titles of the judged test set as the catalogue; the
titles with the best grade of a query count as its clicks:

- the model alone; BM25 over the titles, over titles and the queries clicked on them, with and
  without stems;
- the sum of cosine and weighted BM25, as `sentemb tune` chooses weight, k1 and b on dev;
- reciprocal rank fusion of the same two rankings;
- the confidence of the first title, fitted on dev: logistic function and isotonic regression; and
  whether BM25 is better for the queries whose confidence is low.

Test figures come with paired bootstrap intervals of the difference to the model alone. Writes
docs/results/hybrid.md with its CSV. Models and finished logs stay in build/hybrid: a run that was
stopped continues there; remove the folder to begin from nothing.

    python benchmarks/hybrid.py [--data ../shared/data] [--sets tldr] [--threads 1]
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from pages import DATA, ROOT, write_results
from sklearn.isotonic import IsotonicRegression

from sentemb import SentenceEncoder, train
from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.search.confidence import Confidence
from sentemb.search.index import Index
from sentemb.search.lexical import WEIGHT, Lexical
from sentemb.search.tuning import METRICS, first_titles, tune
from sentemb.tables import markdown_table

SETS = ("tldr", "occupations", "msdocs_index")
PARTS = ("dev", "test")
BUILD = ROOT / "build" / "hybrid"
# Reciprocal rank fusion: its constant, the titles taken from each ranking, weights of the model.
CONSTANT, WINDOW, SHARES = 60, 100, (1, 3)
# Held-out queries that a confidence is fitted to, besides all of dev, and how often.
FEW, DRAWS = 200, 20
THRESHOLDS = (0.1, 0.2, 0.3, 0.4)
# What BM25 reads: whether it knows the clicks, and the language of the stems.
VARIANTS = {
    "BM25, titles": (False, "english"),
    "BM25, titles and clicks": (True, "english"),
    "BM25, titles and clicks, no stems": (True, None),
}
MAIN = "BM25, titles and clicks"
# Those that are also tried with the default weight and with fusion of ranks.
FUSED = ("BM25, titles", MAIN)

INTRODUCTION = [
    "All titles of a judged test set are ranked for each of its queries; the titles with the best "
    "grade count as clicked. BM25 with clicks reads each title together with the queries that were "
    "clicked on it in the training log. Weight, k1 and b are chosen on dev by MRR@10, as "
    "`sentemb tune` does; the last columns are differences to the model alone with 95 % intervals "
    "of the paired bootstrap over the queries.",
    "",
    f"Reciprocal rank fusion adds 1 / ({CONSTANT} + rank) over the {WINDOW} best titles of the "
    "model and of BM25; at 3:1 the model counts three times.",
    "",
    "The confidence of the first title is fitted on dev, to all queries or to "
    f"{FEW} of them (mean of {DRAWS} draws), and measured on test by the Brier score. Below: the "
    "queries of test whose confidence is lower than a threshold, and hit@1 of the index and of "
    "BM25 alone for them.",
    "",
]


class Fused:
    """Reciprocal rank fusion of two retrievers."""

    def __init__(self, first, second, share):
        self._parts = ((first, share), (second, 1))

    def find(self, queries, k):
        lists = [(share, part.find(queries, WINDOW)[0]) for part, share in self._parts]
        places, scores = np.full((len(queries), k), -1), np.full((len(queries), k), -np.inf)
        for q in range(len(queries)):
            total = {}
            for share, found in lists:
                for rank, place in enumerate(found[q].tolist(), 1):
                    if place >= 0:
                        total[place] = total.get(place, 0) + share / (CONSTANT + rank)
            best = sorted(total, key=lambda place: (-total[place], place))[:k]
            places[q, : len(best)] = best
            scores[q, : len(best)] = [total[place] for place in best]
        return places, scores


class Measured:
    """The systems on one log.

    Parameters
    ----------
    data : path
    name : str
        Which log.
    threads : int
    """

    def __init__(self, data, name, threads):
        self._log = read_click_log(data / name / "pairs.tsv")
        model = trained(data, name, threads)
        self.index, self.clicks = {}, {}
        for part in PARTS:
            judged = read_judged_set(data / name / part)
            self.clicks[part] = best_graded(judged)
            self.index[part] = Index.build(model, judged.titles, threads=threads)
        self._test = HeldOutClicks(self.clicks["test"], self.index["test"].titles, METRICS)
        self.alone = self._test.evaluate(self.index["test"])
        self.chosen = {}

    def systems(self):
        """Label, settings, and the evaluation of each system on test."""
        index = self.index["test"]
        yield "model", "-", self.alone
        for label, (has_clicks, stem) in VARIANTS.items():
            for part in PARTS:
                titles = self.index[part].titles
                log = self._log if has_clicks else None
                self._set_bm25(part, Lexical.build(titles, log, stem))
            found = tune(self.index["dev"], self.clicks["dev"])
            self.chosen[label] = found
            index.set_bm25(found.k1, found.b, found.weight, found.click_weight)
            lists = index.bm25.lists
            parameters = f"k1 {found.k1:g}, b {found.b:g}"
            yield label, parameters, self._test.evaluate(lists)
            yield f"model + {label}", f"weight {found.weight:g}", self._test.evaluate(index)
            if label not in FUSED:
                continue
            index.set_bm25(found.k1, found.b, WEIGHT, found.click_weight)
            yield (
                f"model + {label}, default weight",
                f"weight {WEIGHT:g}",
                self._test.evaluate(index),
            )
            index.set_bm25(found.k1, found.b, 0, found.click_weight)
            for share in SHARES:
                ranked = self._test.evaluate(Fused(index, lists, share))
                yield f"rank fusion {share}:1, {label}", "-", ranked

    def _set_bm25(self, part, bm25):
        before = self.index[part].snapshot
        self.index[part].adopt(before.changed(bm25=bm25), before)

    def use(self, weight):
        """Both indexes with BM25 with clicks, its chosen k1 and b, and a weight."""
        has_clicks, stem = VARIANTS[MAIN]
        found = self.chosen[MAIN]
        for part in PARTS:
            index = self.index[part]
            log = self._log if has_clicks else None
            self._set_bm25(part, Lexical.build(index.titles, log, stem))
            index.set_bm25(found.k1, found.b, weight, found.click_weight)

    def briers(self):
        """Rows of Brier scores: queries for the fit, logistic, isotonic, constant."""
        scores, is_right = first_titles(self.index["dev"], self.clicks["dev"])
        test, outcome = first_titles(self.index["test"], self.clicks["test"])
        rng = np.random.default_rng(0)
        for size, draws in ((FEW, DRAWS), (len(scores), 1)):
            found = []
            for _ in range(draws):
                some = rng.permutation(len(scores))[:size]
                isotonic = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1)
                isotonic.fit(scores[some], is_right[some])
                fits = (
                    Confidence.fit(scores[some], is_right[some])(test),
                    isotonic.predict(test),
                    np.full(len(test), is_right[some].mean()),
                )
                found.append([np.mean((fit - outcome) ** 2) for fit in fits])
            yield [f"{size:,}", *(f"{value:.4f}" for value in np.mean(found, axis=0))]

    def unsure(self):
        """Rows of thresholds: queries below, hit@1 of the index and of BM25 alone, of dev and test.

        The confidence is fitted on dev.
        """
        sure = Confidence.fit(*first_titles(self.index["dev"], self.clicks["dev"]))
        below = {}
        for part in PARTS:
            index, clicks = self.index[part], self.clicks[part]
            held_out = HeldOutClicks(clicks, index.titles, ["hit@1"])
            values = [held_out.evaluate(one).values[:, 0] for one in (index, index.bm25.lists)]
            confidence = sure(index.find(clicks.queries, 1)[1][:, 0])
            below[part] = [
                (some.sum(), *(np.mean(one[some]) if some.any() else np.nan for one in values))
                for some in (confidence < threshold for threshold in THRESHOLDS)
            ]
        for place, threshold in enumerate(THRESHOLDS):
            row = [f"{threshold}"]
            for part in PARTS:
                count, own, lexical = below[part][place]
                row += [f"{count:,}", f"{own:.3f}", f"{lexical:.3f}"] if count else ["0", "-", "-"]
            yield row


def trained(data, name, threads):
    """The default model of a log, from the build folder or trained."""
    folder = BUILD / name / "model"
    if not (folder / "config.json").exists():
        train(data / name / "pairs.tsv", output=folder, resume=True, threads=threads)
    return SentenceEncoder.from_pretrained(folder, threads)


def interval(difference):
    """The mean of a paired difference and its 95 % interval, formatted."""
    return f"{difference.mean:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"


def section(name, measured):
    """The lines of the page for one log."""
    found = list(measured.systems())
    base = measured.alone.values
    rows = [["system", "chosen on dev", "hit@1", "MRR@10", "recall@10",
             "hit@1 minus model", "MRR@10 minus model"]]  # fmt: skip
    for label, settings, one in found:
        figures = [f"{value:.3f}" for value in one.mean]
        if one is measured.alone:
            differences = ["-", "-"]
        else:
            differences = [
                interval(compare_all([one.values[:, column]], base[:, column])[0])
                for column in (0, 1)
            ]
        rows.append([label, settings, *figures, *differences])
    lines = [
        f"## {name}",
        "",
        f"{len(base):,} test queries, {measured.alone.n_titles:,} titles.",
        "",
        *markdown_table(rows, left=2),
        "",
    ]
    dev = measured.chosen[MAIN]
    lines += [
        f"### {name}, weights on dev",
        "",
        f"Model + {MAIN}, k1 {dev.k1:g}, b {dev.b:g}.",
        "",
        *markdown_table(
            [["weight", *(name.replace("mrr", "MRR") for name in dev.metrics)],
             *([f"{one:g}", *(f"{mean:.3f}" for mean in means)]
               for one, means in zip(dev.weights, dev.means, strict=True))]
        ),
        "",
    ]  # fmt: skip
    for value in dict.fromkeys([0.0, dev.weight]):
        measured.use(value)
        lines += [
            f"### {name}, confidence, weight {value:g}",
            "",
            *markdown_table(
                [["dev queries", "logistic", "isotonic", "constant"], *measured.briers()]
            ),
            "",
            f"### {name}, low confidence, weight {value:g}",
            "",
            *markdown_table(
                [["confidence below", "dev queries", "dev hit@1, index", "dev hit@1, BM25",
                  "test queries", "test hit@1, index", "test hit@1, BM25"],
                 *measured.unsure()]
            ),
            "",
        ]  # fmt: skip
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    present = [name for name in options.sets if (options.data / name / "pairs.tsv").exists()]
    if not present:
        sys.exit(f"{options.data} has none of {', '.join(options.sets)}")
    lines = list(INTRODUCTION)
    for name in present:
        done = BUILD / name / "section.md"
        if not done.exists():
            made = section(name, Measured(options.data, name, options.threads))
            done.write_text("\n".join(made), encoding="utf-8")
        lines += done.read_text(encoding="utf-8").split("\n")
    write_results("hybrid", "BM25 next to the model", "benchmarks/hybrid.py", lines)


if __name__ == "__main__":
    main()
