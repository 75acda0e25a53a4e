"""Queries with typos, quotes, polite words or other accents: what systems lose on them.

Measures NDCG@1 of the default model, of BM25 with clicks and of their ranker on the dev and the
test sets as they are and with each query changed. Then trains with ``--splitting white-space``, and
with made-up typos in the queries, which ``sentemb train`` does not offer because of what is
measured here, and measures NDCG on dev. Writes docs/results/robustness.md. The measurements are
kept in build/robustness and the models of the first part in build/systems: a second run continues
where the first stopped.

    python benchmarks/robustness.py [--data ../shared/data] [--threads 1]
"""

import random
import unicodedata
from dataclasses import replace
from unittest import mock

import numpy as np
from pages import ROOT, machine, options_for, write_tables
from systems import BUILD, SYSTEMS, kept, ranker_of, systems_of, trained

import sentemb
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.system.tables import markdown_table
from sentemb.text.batch import TextBatch, Tokens, batch_of, tokenize
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.text_list import TextList
from sentemb.training.towers import two_tower_trainer

SETS = ("tldr", "occupations")
CUTOFFS = (1, 3, 10)
KEPT = ROOT / "build" / "robustness"
TYPOS = "typos"
QUICK = {"epochs": 6, "hard_negatives": 0}
VARIANTS = {
    "defaults": {},
    "`--splitting white-space`": {"splitting": "white-space"},
    "typos in 5 % of the words": {TYPOS: 0.05},
    "typos in 10 % of the words": {TYPOS: 0.1},
    "typos in 20 % of the words": {TYPOS: 0.2},
}
# Seeds of each variant; one for what is slow to train and settled by the other set.
SEEDS = {
    (name, label): 2 if name == "tldr" or label in ("defaults", "`--splitting white-space`") else 1
    for name in SETS
    for label in VARIANTS
}
# What is measured with the default epochs and hard negatives too, with one seed.
CHOSEN = ("defaults", "`--splitting white-space`")

# -- typos ---------------------------------------------------------------------------------------

# Shorter words, and words with digits or signs, are left as they are: a typo makes them others.
LEAST_LETTERS = 4
KINDS = ("insertion", "deletion", "substitution", "transposition")


def may_be_mistyped(word):
    """Whether ``word`` gets typos: it has at least `LEAST_LETTERS` letters and nothing else."""
    return len(word) >= LEAST_LETTERS and word.isalpha()


def mistyped(word, kind, place, letter):
    """``word`` with one typo: numbers from 0 to 1 choose one of `KINDS` and the place in it."""
    chosen = KINDS[int(kind * len(KINDS))]
    if chosen == "insertion":
        at = int(place * (len(word) + 1))
        return word[:at] + letter + word[at:]
    if chosen == "transposition":
        at = int(place * (len(word) - 1))
        return word[:at] + word[at + 1] + word[at] + word[at + 2 :]
    at = int(place * len(word))
    return word[:at] + (letter if chosen == "substitution" else "") + word[at + 1 :]


class MistypedCorpus(Corpus):
    """A corpus in which some words of the queries have a typo, other ones in every epoch.

    Hard negatives are looked up without typos.
    """

    probability = 0.0

    def __init__(self, log, settings, vocabulary=None, **options):
        super().__init__(log, settings, vocabulary, **options)
        self._queries = tokenize(log.queries, self.vocabulary.split)
        self._letters = "".join(filter(str.isalpha, self._queries.words))
        self._may_be = np.array(list(map(may_be_mistyped, self._queries.words)))
        self._of_epoch = None

    def order(self, seed, epoch):
        """As for every corpus; the training asks for it once before it plans an epoch."""
        rng = np.random.default_rng([seed, epoch, 0x7470])
        words = self._queries.word_index
        chosen = np.flatnonzero((rng.random(words.size) < self.probability) & self._may_be[words])
        kinds, places, letters = rng.random((3, chosen.size))
        typed = [
            mistyped(self._queries.words[word], kind, place, self._letters[int(letter)])
            for word, kind, place, letter in zip(
                words[chosen], kinds, places, letters * len(self._letters), strict=True
            )
        ]
        self._of_epoch = TextList(
            with_words(self._texts["query"].batch, chosen, typed, self.vocabulary)
        )
        return super().order(seed, epoch)

    def texts_of_both(self, queries, titles):
        return self._of_epoch.take(queries), self.texts("document", titles)


def with_words(whole, tokens, words, vocabulary):
    """``whole``, where each of some ``tokens`` is another word, one of ``words``."""
    word_index = whole.word_index.copy()
    word_index[tokens] = np.arange(whole.n_words, whole.n_words + len(words))
    each = np.arange(len(words) + 1)
    added = batch_of(Tokens(each[:-1].astype(np.int32), each, words), vocabulary)
    rows = np.union1d(whole.input_rows, added.input_rows)
    ids = [np.searchsorted(rows, one.input_rows)[one.feature_ids] for one in (whole, added)]
    return TextBatch(
        word_index,
        whole.offsets,
        np.concatenate(
            [whole.feature_offsets, whole.feature_offsets[-1] + added.feature_offsets[1:]]
        ),
        np.concatenate(ids).astype(np.int32),
        np.concatenate([whole.feature_values, added.feature_values]),
        rows.astype(np.int32),
    )


def trained_with_typos(pairs, probability, **settings):
    """A model, trained with typos or without."""
    if not probability:
        return sentemb.train(pairs, **settings)
    with (
        mock.patch.object(MistypedCorpus, "probability", probability),
        mock.patch.object(two_tower_trainer, "Corpus", MistypedCorpus),
    ):
        return sentemb.train(pairs, **settings)


# -- measuring -----------------------------------------------------------------------------------


def with_one_typo(query, number):
    """``query`` with a typo in one word that may have one; ``number`` decides which."""
    rng = random.Random(number)
    words = query.split()
    places = [place for place, word in enumerate(words) if may_be_mistyped(word)]
    if places:
        place = rng.choice(places)
        letter = rng.choice("abcdefghijklmnopqrstuvwxyz")
        words[place] = mistyped(words[place], rng.random(), rng.random(), letter)
    return " ".join(words)


CHANGES = {
    "clean": lambda query, number: query,
    "one typo": with_one_typo,
    "decomposed (NFD)": lambda query, number: unicodedata.normalize("NFD", query),
    "in quotes": lambda query, number: f'"{query}"',
    "with ?": lambda query, number: f"{query}?",
}

FRAMES = ("please find me {}", "how do i {}", "looking for {} thanks")


def without_accents(query):
    """``query`` without accents and other marks."""
    parts = unicodedata.normalize("NFD", query)
    return "".join(letter for letter in parts if not unicodedata.combining(letter))


# What the systems are measured on; the trainings were measured before there were the last ones.
ALL_CHANGES = {
    **CHANGES,
    **{
        frame.format("…"): lambda query, number, frame=frame: frame.format(query)
        for frame in FRAMES
    },
    "without accents": lambda query, number: without_accents(query),
    "in capitals": lambda query, number: query.upper(),
}
PARTS = ("dev", "test")


def measure_systems(name, data, threads, build=BUILD):
    """NDCG@1 of each system for each change of the queries of dev and test."""
    folder, pairs, dev = build / name / "seed-0", data / name / "pairs.tsv", data / name / "dev"
    trained(folder, pairs, dev, 0, threads)
    systems, found = systems_of(ranker_of(folder, pairs, dev, threads), pairs), {}
    for part in PARTS:
        judged = read_judged_set(data / name / part)
        for change, of in ALL_CHANGES.items():
            queries = [of(query, number) for number, query in enumerate(judged.queries)]
            changed = replace(judged, queries=queries)
            found.setdefault(part, {})[change] = {
                "changed": sum(map(str.__ne__, queries, judged.queries)),
                **{
                    system: float(evaluate_model(one, changed, (1,)).mean[0])
                    for system, one in systems.items()
                },
            }
    return found


def table_of_systems(found):
    """The rows of a table: NDCG@1 on dev and test, a change each."""
    yield ["query", *(f"{what}, {part}" for part in PARTS for what in ("changed", *SYSTEMS))]
    for change in ALL_CHANGES:
        cells = []
        for part in PARTS:
            here = found[part][change]
            cells.append(f"{here['changed']:,}")
            cells += [f"{here[system]:.3f}" for system in SYSTEMS]
        yield [change, *cells]


def measure(name, settings, seed, data, threads):
    """NDCG of one training for each change of the dev queries, and which queries it changed."""
    dev = read_judged_set(data / name / "dev")
    found = {}
    given = {} if "epochs" in settings else {"dev": dev}  # for the best epoch
    given |= {key: value for key, value in settings.items() if key != TYPOS}
    pairs = data / name / "pairs.tsv"
    probability = settings.get(TYPOS, 0)
    model = trained_with_typos(pairs, probability, seed=seed, threads=threads, **given)
    for change, of in CHANGES.items():
        queries = [of(query, number) for number, query in enumerate(dev.queries)]
        found[change] = {
            "ndcg": evaluate_model(model, replace(dev, queries=queries), CUTOFFS).mean.tolist(),
            "changed": sum(map(str.__ne__, queries, dev.queries)),
        }
    return found


def measured(name, settings, seed, data, threads):
    """`measure`, or what an earlier run of this script measured."""
    of = "-".join(f"{key}={value}" for key, value in settings.items())
    path = KEPT / f"{name}-{of}-{seed}.json"
    return kept(path, lambda: measure(name, settings, seed, data, threads))


def table(rows):
    """The lines of a table: set and settings -> the measurements of each seed."""
    changes = list(CHANGES)
    lines = [
        f"| set | training | seeds | {' | '.join(changes)} |",
        "| --- |" + " --- |" * (len(changes) + 2),
    ]
    for (name, label), runs in rows.items():
        cells = []
        for change in changes:
            mean = np.mean([run[change]["ndcg"] for run in runs], axis=0)
            cells.append(" / ".join(f"{value:.3f}" for value in mean))
        lines.append(f"| {name} | {label} | {len(runs)} | {' | '.join(cells)} |")
    return lines


def main():
    options = options_for(__doc__, SETS)
    systems = {
        name: kept(
            KEPT / f"systems-{name}.json",
            lambda name=name: measure_systems(name, options.data, options.threads),
        )
        for name in options.sets
    }
    rows = {name: table_of_systems(of_set) for name, of_set in systems.items()}
    tables = {name: markdown_table(of_set) for name, of_set in rows.items()}
    write_tables("robustness", tables, machine())
    quick = {
        (name, label): [
            measured(name, VARIANTS[label] | QUICK, seed, options.data, options.threads)
            for seed in range(seeds)
        ]
        for (name, label), seeds in SEEDS.items()
    }
    full = {
        (name, label): [measured(name, VARIANTS[label], 0, options.data, options.threads)]
        for name in SETS
        for label in CHOSEN
    }
    tables = {
        "Six epochs without hard negatives, seed 0": {key: runs[:1] for key, runs in quick.items()},
        "Mean over more seeds": {key: runs for key, runs in quick.items() if len(runs) > 1},
        "All defaults, seed 0": full,
    }
    write_tables("robustness", {heading: table(rows) for heading, rows in tables.items()})


if __name__ == "__main__":
    main()
