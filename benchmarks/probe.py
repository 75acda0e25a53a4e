"""Hashes of what the code computes: by which a change that changes no figure is told from others.

Draws a log, trains every kind of model on it for an epoch, fits a ranker, ranks, measures, reads
gates and topics, makes word and sentence vectors, and hashes every number. Two versions of the code
that print the same on one processor give the same figures; evidence.py runs this program on both.
What is not in here it cannot notice, and times are not.

    python benchmarks/probe.py       one line a family, a minute
"""

import hashlib
import tempfile
from pathlib import Path

import numpy as np
from loop import LEARNING, Shop, SimulatedWorld, Words

from sentemb import (
    SIF,
    Index,
    evaluate,
    fit_ranker,
    gradient_flow,
    load,
    read_click_log,
    read_gates,
    read_judged_set,
    simulate,
    topics,
    train,
    train_word_vectors,
)
from sentemb.comparison.data_folder import read_data
from sentemb.comparison.rows import rows_of
from sentemb.comparison.runner import Comparison
from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.data.simulation.example_shop import example_click_rates
from sentemb.data.splitting import split_log
from sentemb.evaluation.binary import labelled_scores

PAIRS = 12_000
A_PAIR = "cheap hotels in shanghai", "Shanghai Hotels - Affordable Lodging"
EPOCH = {"epochs": 1, "threads": 2}
PAPER = {"preset": "paper", **EPOCH}
MODELS = {
    "defaults": {**EPOCH, "epochs": 3},
    "large": {"preset": "large", **EPOCH},
    "paper": PAPER,
    "paper, rnn": {"model": "rnn", **PAPER},
    "paper, dssm": {"model": "dssm", **PAPER},
    "hard negatives": {"hard_negatives": 2, "shared_towers": False, **EPOCH, "epochs": 4},
    "with a bag": {"shared_towers": True, "bag_dim": 96, **EPOCH},
    "bag": {"model": "bag", **EPOCH},
    "dssm": {"model": "dssm", **EPOCH},
    "clsm": {"model": "clsm", **EPOCH},
    "dan": {"model": "dan", "layers": 2, **EPOCH},
    "rnn": {"model": "rnn", **EPOCH},
    "arc1": {"model": "arc1", **EPOCH},
    "arc2": {"model": "arc2", "maps": (24, 16), **EPOCH},
    "wordembed": {"model": "wordembed", **EPOCH},
}
# As docs/arc.md trains the models that match two texts: on given word vectors, fixed or trained.
PAIR = {"decay": "linear", "n_negatives": 5, "batch_size": 200, **EPOCH}
FIXED, TUNED = PAIR, {**PAIR, "train_vectors": True}
PAIR_MODELS = {
    "wordembed": {**TUNED, "optimiser": "sgd", "learning_rate": 0.1},
    "senmlp": {**TUNED, "dropout": 0.3},
    "senna": {**FIXED, "maps": (30,), "window": 5},
    "urae": {**FIXED, "epochs": 3},
    "arc1": {**TUNED, "maps": (24, 24, 24), "dropout": 0.3},
    "arc2": {**TUNED, "maps": (16, 16, 16)},
    "deepmatch": PAIR,
}
ON_LABELS = {"model": "arc2", "maps": (16, 16), "dropout": 0.5, **EPOCH, "epochs": 2}
BASELINES = "random,unigram,bm25,bm25-stem,plsa"


def hashed(*found):
    """A hash of arrays to the last bit, and of anything else as it is printed."""
    digest = hashlib.sha256()
    for one in found:
        exact = one.tobytes() if isinstance(one, np.ndarray) and one.dtype != object else None
        digest.update(exact or repr(one).encode())
    return digest.hexdigest()[:16]


def files_of(folder, pattern="*"):
    """The bytes of the files of a folder, by name."""
    return [(path.name, path.read_bytes()) for path in sorted(folder.rglob(pattern))]


def numbers_of(path):
    """The name of a file of tensors, and its bytes behind the header, which has the version."""
    with path.open("rb") as file:
        file.seek(int.from_bytes(file.read(8), "little"), 1)
        return path.name, file.read()


def probed(folder):
    """Yield (family, hash)."""
    simulate(folder / "log", pairs=PAIRS, dev_queries=300, test_queries=300, seed=5)
    yield "simulate", hashed(*files_of(folder / "log", "*.tsv"))
    log = read_click_log(folder / "log" / "pairs.tsv")
    small = split_log(log, 0.75, 0.05, seed=1)[0]
    for name, settings in MODELS.items():
        rest = log if name in ("defaults", "large") else small
        train(rest, output=folder / name, seed=3, **settings)
        yield name, hashed(*map(numbers_of, sorted((folder / name).rglob("*.safetensors"))))
    model = load(folder / "defaults", threads=2)
    yield from ranked(model, log, read_judged_set(folder / "log" / "dev"))
    judged = read_judged_set(folder / "log" / "test")
    yield "encode", hashed(model.encode_query(judged.queries), model.encode_document(judged.titles))
    yield "evaluate", hashed(evaluate(model, judged).values)
    reading = read_gates(model, *A_PAIR)
    yield "gates", hashed(*vars(reading.texts[0]).values())
    yield "topics", hashed(topics(model, judged.queries[:100]))
    yield "gradient flow", hashed(gradient_flow(model, *A_PAIR))
    vectors = train_word_vectors(small, dim=24, epochs=1)
    yield "word vectors", hashed(vectors.vectors)
    sif = SIF(vectors).fit(judged.queries, judged.titles)
    yield "sif", hashed(sif.encode_query(judged.queries), sif.encode_document(judged.titles))
    yield from matched(small, judged, vectors)
    comparison = Comparison(
        read_data(folder / "log"), folder / "rows", rows_of(BASELINES.split(",")), seeds=1,
        note=lambda text: None,
    )  # fmt: skip
    comparison.run()
    yield "baselines", hashed(*[comparison.per_query(name) for name in BASELINES.split(",")])
    yield "example", hashed(*vars(example_click_rates(3)).values())
    shop = Shop(SimulatedWorld(seed=1, searches=1500), LEARNING, 0.7, seed=1, threads=2)
    first = Words(shop.world.catalogue(1))
    yield "a shop", hashed(shop.serve(first, 1), shop.serve(shop.learned(1, first), 2))


def matched(log, judged, vectors):
    """Models that match two texts, on given word vectors and on labelled pairs."""
    titles = [log.titles[t] for t in log.title_index]
    right = [log.queries[q] for q in log.query_index], titles
    order = np.random.default_rng(0).permutation(len(titles))
    labelled = LabelledPairs(
        np.repeat(np.int8([1, 0]), len(titles)), right[0] * 2, titles + [titles[k] for k in order]
    )
    every = np.arange(len(titles))
    for name, settings in PAIR_MODELS.items():
        given = {} if name == "deepmatch" else {"vectors": vectors}
        scorer = train(log, dev=judged, seed=3, model=name, **given, **settings)
        scores = scorer.score_pairs(*right, every, every)
        yield (
            f"{name}, matched",
            hashed(scores, evaluate(scorer, judged).values, scorer.history[-1]["loss"]),
        )
    scorer = train(labelled, dev=labelled, seed=3, vectors=vectors, **ON_LABELS)
    yield "labelled", hashed(labelled_scores(scorer, labelled))


def ranked(model, log, dev):
    """A ranker, its figures by kind of query, and rankings of an index and of a shortlist."""
    ranker = fit_ranker(model, log, dev, threads=2, on_note=lambda text: None)
    yield "ranker", hashed(ranker.recipe)
    queries = [*dev.queries[:200], *log.queries[:200]]
    index = Index.build(ranker, log.titles, threads=2)
    found = index.ranked(queries, 20)
    yield "scores", hashed(found.titles, found.scores)
    yield "floor", hashed(index.are_below_floor(queries, found))
    few = split_log(log, 0.05, 0.05, seed=2)[1]
    yield "kinds", hashed(evaluate(ranker, few, titles=log.titles).values)


def main():
    with tempfile.TemporaryDirectory() as folder:
        for family, digest in probed(Path(folder)):
            print(f"{family},{digest}", flush=True)


if __name__ == "__main__":
    main()
