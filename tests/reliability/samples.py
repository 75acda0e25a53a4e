"""Small but true files of every kind that sentemb reads."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import helpers
import numpy as np

from sentemb.search.ranking.recipe import Recipe

ENCODERS = {
    "lstm": ("lstm", {"forget_gate": True, "peepholes": "diagonal"}),
    "bilstm": ("bilstm", {"bag_dim": 2}),
    "rnn": ("rnn", {}),
    "bag": ("bag", {}),
    "dssm": ("dssm", {"hidden": 3}),
    "clsm": ("clsm", {"hidden": 3, "window": 3}),
    "shared": ("lstm", {}),
}
# Pair models, as small as their layers let them be.
PAIR_MODELS = {
    "arc1": {"embedding": 4, "maps": (3, 2)},
    "arc2": {"embedding": 4, "maps": (3, 2)},
    "wordembed": {"embedding": 4},
    "senmlp": {"embedding": 4},
    "senna": {"embedding": 4, "maps": (3,)},
    "urae": {"embedding": 4, "cells": 4},
    "deepmatch": {"nodes": 10},
}
TRAINING = {"cells": 3, "epochs": 2, "batch_size": 4, "n_negatives": 1, "threads": 1}
PAIR_TRAINING = {
    "mlp": 3,
    "epochs": 2,
    "batch_size": 8,
    "n_negatives": 2,
    "dropout": 0.5,
    "threads": 1,
}
ALL_PARTS = Recipe(
    {"cosine": 0.5, "memory": 2.0, "bm25": 0.7, "clicked_bm25": -0.3, "unclicked": 0.4}
    | {"clicks": 0.9, "name": 1.7, "examined": 0.5},
    1.2,
    0.6,
)
PLACES = ("paris", "rome", "oslo", "lima", "cairo", "delhi")
THINGS = ("hotels", "maps", "trains", "museums")
DIM = 4  # of word vectors
HISTORY = [
    {
        "epoch": epoch,
        "step": 3 * epoch,
        "loss": 2.0 / epoch,
        "dev": {"ndcg@1": 0.5 + 0.1 * epoch, "ndcg@3": 0.7, "ndcg@10": 0.8},
        "pairs_per_second": 1000.0,
        "seconds": 0.5 * epoch,
    }
    for epoch in (1, 2, 3)
]


def pairs():
    """Some queries and the titles clicked for them."""
    return [
        (f"{thing} in {place}", f"{place.title()} {thing} and more")
        for place in PLACES
        for thing in THINGS
    ]


def write_samples(folder):
    """One of everything into ``folder``, which must exist."""
    folder = Path(folder)
    write_texts(folder)
    for name in ENCODERS:
        make_model(name).save_pretrained(folder / name)
    for name in PAIR_MODELS:
        make_scorer(name).save_pretrained(folder / name)
    write_training(folder / "training")


def write_texts(folder):
    """All but models and trainings."""
    some = pairs()
    tsv = "".join(f"{query}\t{title}\t{k % 3 + 1}\n" for k, (query, title) in enumerate(some))
    lines = "".join(
        json.dumps({"query": query, "clicked": [title], "clicks": [2], "skipped": [some[k - 1][1]]})
        + "\n"
        for k, (query, title) in enumerate(some)
    )
    (folder / "log.tsv").write_text(tsv)
    (folder / "log.jsonl").write_text(lines)
    (folder / "log.tsv.gz").write_bytes(gzip.compress(tsv.encode(), mtime=0))
    (folder / "log.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    (folder / "texts.txt").write_text("".join(f"{query}\n" for query, _ in some[:6]))
    write_judged_set(folder / "judged", some[:6])
    for name in ("queries.tsv", "docs.tsv"):
        (folder / name).write_bytes((folder / "judged" / name).read_bytes())
    (folder / "run.txt").write_text(
        "".join(f"q{q} Q0 d{d} {d + 1} {1 / (d + 1)} run\n" for q in range(6) for d in range(6))
    )
    (folder / "truth.jsonl").write_text(
        "".join(
            json.dumps(
                {"text": text, "side": side, "topic": "travel", "keywords": [text.split()[0]]}
            ).lower()
            + "\n"
            for pair in some[:6]
            for side, text in zip(("query", "title"), map(str.lower, pair), strict=True)
        )
    )
    (folder / "epochs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in HISTORY))
    data = folder / "data"
    data.mkdir()
    (data / "pairs.tsv").write_text(tsv)
    write_judged_set(data / "dev", some[:6])
    write_judged_set(data / "test", some[6:12])
    write_labelled(folder, some)
    write_onet(folder / "onet")
    write_skip_thought(folder / "skip-thoughts")
    write_word_vectors(folder)


def write_judged_set(folder, some):
    """Each query with its own title, grade 2, and the next one's, grade 0."""
    folder.mkdir()
    (folder / "queries.tsv").write_text("".join(f"q{k}\t{q}\n" for k, (q, _) in enumerate(some)))
    (folder / "docs.tsv").write_text("".join(f"d{k}\t{t}\n" for k, (_, t) in enumerate(some)))
    (folder / "qrels.txt").write_text(
        "".join(f"q{k} 0 d{k} 2\nq{k} 0 d{(k + 1) % len(some)} 0\n" for k in range(len(some)))
    )


def write_labelled(folder, some):
    """Labelled and scored pairs, and prose to make completion sets of."""
    right = [(1, query, title) for query, title in some]
    wrong = [(0, query, some[k - 1][1]) for k, (query, _) in enumerate(some)]
    lines = [f"{label}\t{query}\t{title}\n" for label, query, title in (*right, *wrong)]
    (folder / "labelled.tsv").write_text("".join(lines))
    (folder / "scored.tsv").write_text(
        "".join(f"{k % 5}.5{line[1:]}" for k, line in enumerate(lines))
    )
    (folder / "prose.txt").write_text(
        "".join(
            f"The old {thing} of {place} that we saw on our way, "
            f"had no {thing} like those that {place} has today.\n"
            for place in PLACES
            for thing in THINGS
        )
    )


def write_onet(folder):
    """A release of the O*NET database with 30 occupations."""
    titles, alternates, reported, related = [], [], [], []
    for number in range(30):
        code, trade = f"{11 + number}-1011.00", f"{'BCDFG'[number % 5]}on{'klmnpr'[number // 5]}ing"
        titles.append(f"{code}\t{trade} Workers\tThey do {trade}.")
        alternates.append(f"{code}\t{trade} Operator\tn/a\t08")
        alternates.append(f"{code}\tOperators, {trade}\t{trade[:4]}OP\t08")
        reported.append(f"{code}\tMaster of {trade}\tY")
        related.append(f"{code}\t{11 + (number + 1) % 30}-1011.00\tPrimary-Short\t1")
    helpers.write_onet(folder, titles, alternates, reported, related)


def write_skip_thought(folder):
    """Files of Skip-Thought with vectors of three numbers and two cells."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    words = ["UNK", *THINGS, *PLACES, "in", "and", "more"]
    (folder / "dictionary.txt").write_text("".join(f"{word}\n" for word in words))

    def gated(prefix):
        shapes = {"W": (3, 4), "U": (2, 4), "b": (4,), "Wx": (3, 2), "Ux": (2, 2), "bx": (2,)}
        return {prefix + n: rng.normal(size=s).astype(np.float32) for n, s in shapes.items()}

    for table in ("utable.npy", "btable.npy"):
        np.save(folder / table, rng.normal(size=(len(words), 3)).astype(np.float32))
    np.savez(folder / "uni_skip.npz", **gated("encoder_"))
    np.savez(folder / "bi_skip.npz", **gated("encoder_"), **gated("encoder_r_"))


def write_indexes(folder):
    """A model with a ranker, and indexes over ``docs.tsv``: plain, int8, and one with all parts."""
    from sentemb.data.click_log import read_click_log
    from sentemb.data.judged_set import read_texts
    from sentemb.retrieval.clicked_queries import ClickedQueries
    from sentemb.search.confidence import Confidence
    from sentemb.search.index import Index
    from sentemb.search.ranking.ranker import HybridRanker

    ids, titles = read_texts(folder / "docs.tsv")
    bag = make_model("bag")
    # The last title has no clicks and no word that the model knows.
    contents = [*titles, "..."], [*ids, "none"]
    Index.build(bag, *contents, threads=1).save(folder / "index")
    Index.build(bag, *contents, dtype="int8", threads=1).save(folder / "index8")
    ranker = HybridRanker(bag, ALL_PARTS, ClickedQueries.of(read_click_log(folder / "log.tsv")))
    bag.save_pretrained(folder / "ranked")
    ranker.save(folder / "ranked")
    n = len(ids) + 1
    fields = {
        "price": [k / 4 for k in range(n)],
        "brand": [["Acme", "Bolt"][k % 2] for k in range(n)],
    }
    sums = Index.build(ranker, *contents, fields, dtype="float16", threads=1)
    sums.confidence = Confidence(-1.0, 2.0, 30, 0.2, 0.25)
    sums.save(folder / "sums")


def write_click_tables(folder):
    """Clicks as CSV and as Parquet."""
    import pyarrow
    from pyarrow.parquet import write_table

    some = pairs()
    columns = {
        "query": [query for query, _ in some],
        "title": [f"{title}, new" for _, title in some],
        "n": [place % 3 for place in range(len(some))],
    }
    write_table(pyarrow.table(columns), folder / "clicks.parquet", row_group_size=10)
    rows = [("query", "title", "n"), *zip(*columns.values(), strict=True)]
    (folder / "clicks.csv").write_text("".join(f'{q},"{t}",{n}\n' for q, t, n in rows))


def write_beir(folder):
    """A few rows in the format of BEIR."""
    some = pairs()[:6]

    def lines(name, rows):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))

    (folder / "beir/qrels").mkdir(parents=True)
    for name, rows in (
        ("corpus", [{"_id": f"d{k}", "title": t, "text": "x"} for k, (_, t) in enumerate(some)]),
        ("queries", [{"_id": f"q{k}", "text": q} for k, (q, _) in enumerate(some)]),
    ):
        (folder / f"beir/{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for part, places in (("train", (0, 1)), ("dev", (2, 3)), ("test", (4, 5))):
        lines(f"beir/qrels/{part}.tsv", [("query-id", "corpus-id", "score"),
                                         *((f"q{k}", f"d{k}", 1) for k in places)])  # fmt: skip


def write_word_vectors(folder):
    """Word vectors in every format, their counts, pairs with scores, and averages as a model."""
    from sentemb import SIF
    from sentemb.models.vectors.reading import read_word_vectors
    from sentemb.models.vectors.writing import write_word_vectors

    words = ["in", "and", "more", *THINGS, *PLACES]
    numbers = np.random.default_rng(0).normal(size=(len(words), DIM)).astype("<f4")
    rows = list(zip(words, numbers, strict=True))
    text = "".join(f"{word} {' '.join(map(str, row))}\n" for word, row in rows)
    header = f"{len(words)} {DIM}\n"
    (folder / "glove.txt").write_text(text)
    (folder / "glove.txt.gz").write_bytes(gzip.compress(text.encode(), mtime=0))
    (folder / "word2vec.txt").write_text(header + text)
    (folder / "word2vec.bin").write_bytes(
        header.encode()
        + b"".join(f"{word} ".encode() + row.tobytes() + b"\n" for word, row in rows)
    )
    (folder / "counts.txt").write_text(
        "".join(f"{word} {99 - k}\n" for k, word in enumerate(words))
    )
    counts = 99 - np.arange(len(words))
    vectors = replace(read_word_vectors(folder / "glove.txt"), counts=counts, source="made up")
    write_word_vectors(vectors, folder / "vectors")
    write_word_vectors(vectors, folder / "halves", dtype="float16")
    sts = folder / "sts"
    sts.mkdir()
    some = pairs()
    for part in (0, 1):
        lines = (
            f"{k % 5}\t{q}\t{t}\n" for k, (q, t) in enumerate(some[12 * part : 12 * part + 12])
        )
        (sts / f"{part}.tsv").write_text("".join(lines))
    SIF(folder / "vectors", components=0).fit().save_pretrained(folder / "weighted")


def make_model(name):
    """An untrained `SentenceEncoder`, one of `ENCODERS`, that knows the words of `pairs`."""
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.models.towers import make_encoder
    from sentemb.text.batch import tokenize
    from sentemb.text.vocabulary import Vocabulary
    from sentemb.training.towers.settings import Settings

    kind, settings = ENCODERS[name]
    encoder = make_encoder(kind, cells=4, **settings)
    tokens = tokenize(text for pair in pairs() for text in pair)
    vocabulary = Vocabulary.collect(tokens, word_features=12)
    rng = np.random.default_rng(0)
    query = encoder.initialise(len(vocabulary), rng)
    document = query if name == "shared" else encoder.initialise(len(vocabulary), rng)
    training = {**Settings.of(model=kind, cells=4, **settings).as_dict(), "pairs": 24, "log": "0"}
    weights = {"query": query, "document": document}
    return SentenceEncoder(encoder, vocabulary, weights, training, HISTORY, threads=1)


def make_scorer(name):
    """An untrained `PairScorer`, one of `PAIR_MODELS`, that knows the words of `pairs`."""
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.models.pairs import make_pair_model
    from sentemb.text.batch import tokenize
    from sentemb.text.vocabulary import Vocabulary
    from sentemb.training.pairs.pair_settings import PairSettings

    settings = {**PAIR_MODELS[name], "mlp": 3, "max_words": 9}
    model = make_pair_model(name, **settings)
    tokens = tokenize(text for pair in pairs() for text in pair)
    vocabulary = Vocabulary.collect(tokens, word_features=1)
    if model.reads_whole_words:
        vocabulary = Vocabulary([], vocabulary.words)
    weights = model.initialise(len(vocabulary), np.random.default_rng(0))
    chosen = PairSettings.of(model=name, objective="logistic", **settings)
    training = {**chosen.as_dict(), "pairs": 24, "log": "0"}
    return PairScorer(model, vocabulary, weights, training, HISTORY, threads=1)


class _Stopped(Exception):
    pass


def write_training(folder, at_update=8):
    """A training on ``log.tsv`` beside ``folder`` that was cut off, its checkpoints in place."""
    from sentemb import train

    def stop(progress):
        if (progress.epoch - 1) * progress.steps + progress.step == at_update:
            raise _Stopped

    beside = folder.parent
    try:
        train(
            beside / "log.tsv",
            dev=beside / "judged",
            output=folder,
            checkpoint_seconds=0,
            on_progress=stop,
            **TRAINING,
        )
    except _Stopped:
        return
    raise AssertionError("the training ended before it was cut off")


def write_pair_training(folder, at_update=8):
    """As `write_training`, of a pair model."""

    def stop(progress):
        if (progress.epoch - 1) * progress.steps + progress.step == at_update:
            raise _Stopped

    try:
        train_pair_model(folder, checkpoint_seconds=0, on_progress=stop)
    except _Stopped:
        return
    raise AssertionError("the training ended before it was cut off")


def train_pair_model(folder, **more):
    """The training of `write_pair_training` into ``folder``, with files beside it."""
    from sentemb import train

    beside = Path(folder).parent
    return train(
        beside / "log.tsv",
        dev=beside / "judged",
        output=folder,
        model="arc2",
        teacher="bm25",
        **PAIR_MODELS["arc2"],
        **PAIR_TRAINING,
        **more,
    )
