"""Write what a release must read for ever: models, an index and a prepared log, with their scores.

python tests/released/make.py tests/released/1.0
"""

import json
import random
import sys
from pathlib import Path

from sentemb import Index, PreparedLog, load, load_ranker, train
from sentemb.cli import main

PLACES = ["lisbon", "oslo", "turin", "ghent", "porto", "vienna", "bergen", "krakow"]
# What people search, and what the shop calls it.
WORDS = {
    "cheap hotel": "affordable lodging",
    "flights": "airfare",
    "rent a bike": "bicycle hire",
    "city map": "street plan",
    "train tickets": "rail passes",
}
QUERIES = ["cheap hotel in oslo", "rent a bike", "bergen street plan"]
TITLES = ["Affordable lodging in Oslo", "Bicycle hire in Ghent"]


def clicks():
    """Pairs of a query and its clicked title, in an order of their own."""
    pairs = [
        (query.format(searched=searched, place=place), f"{name.capitalize()} in {place.title()}")
        for searched, name in WORDS.items()
        for place in PLACES
        for query in ("{searched} in {place}", "{place} {searched}", "best {searched} {place}")
    ]
    random.Random(0).shuffle(pairs)
    # Every sixth click is a mistake, so that confidence has something to learn.
    return [(query, pairs[n - 6 * (n % 6 == 0)][1]) for n, (query, _) in enumerate(pairs)]


def write(folder):
    """Make the folders of a release below ``folder``, which is new, by the commands of a user."""
    folder.mkdir(parents=True)
    pairs = clicks()
    for name, part in (("log", pairs[30:]), ("dev", pairs[:30])):
        text = "".join(f"{query}\t{title}\n" for query, title in part)
        (folder / f"{name}.tsv").write_text(text, "utf-8")
    titles = sorted({title for _, title in pairs})
    rows = [f"P{n}\t{title}\t{n},50\t{['Elm', 'Fir'][n % 2]}" for n, title in enumerate(titles)]
    (folder / "titles.tsv").write_text("\n".join(["id\ttitle\tprice\tbrand", *rows, ""]), "utf-8")
    words = sorted({word for text in (*titles, *WORDS) for word in text.lower().split()})
    draw = random.Random(1)
    lines = (f"{word} {' '.join(f'{draw.gauss(0, 1):.3f}' for _ in range(6))}\n" for word in words)
    (folder / "vectors.txt").write_text("".join(lines), "utf-8")
    log, dev, catalogue = folder / "log.tsv", folder / "dev.tsv", folder / "titles.tsv"
    small = ("--epochs", 4, "--batch-size", 16)
    for command in (
        ("train", log, "--dev", dev, "--cells", 6, *small, "-o", folder / "model"),
        ("train", log, "--model", "arc2", "--embedding", 4, "--maps", "4,4", "--mlp", 4,
         "--max-words", 8, *small, "-o", folder / "pairs"),
        ("sif", folder / "vectors.txt", "--components", 0, "-o", folder / "sif"),
        ("index", folder / "model", catalogue, "-o", folder / "index"),
        ("calibrate", folder / "index", dev),
        ("prepare", log, "-o", folder / "prepared"),
    ):  # fmt: skip
        main([*map(str, command), "--quiet"], standalone_mode=False)


def results(folder):
    """Vectors, scores and rankings of what `write` wrote, and a loss of training on its log."""
    model, index = load(folder / "model"), Index.open(folder / "index")
    # The defaults of 1.0, whatever those of a later version are.
    towers = {"cells": 3, "shared_towers": False, "bag_dim": 0}
    log = PreparedLog.open(folder / "prepared")
    trained = train(log, epochs=1, batch_size=16, **towers)
    found = (
        index.search(QUERIES, k=3, everything=True),
        index.search(QUERIES, k=3, everything=True, where="price < 20", sort="price"),
    )
    return {
        "vectors": model.encode_query(QUERIES).tolist(),
        "scores": {
            name: [load(folder / name).score(query, TITLES).tolist() for query in QUERIES]
            for name in ("model", "pairs", "sif")
        },
        "ranker": load_ranker(folder / "model").rank(QUERIES[0], TITLES),
        "hits": [
            [[hit.id, hit.title, hit.score, hit.confidence, dict(hit.fields)] for hit in hits]
            for ranking in found for hits in ranking
        ],
        "loss of training": trained.history[0]["loss"],
    }  # fmt: skip


if __name__ == "__main__":
    place = Path(sys.argv[1])
    write(place)
    (place / "expected.json").write_text(json.dumps(results(place), indent=1) + "\n", "utf-8")
