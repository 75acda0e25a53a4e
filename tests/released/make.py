"""Write what a release must read for ever, with what it answers.

Models, an index and a prepared log; from 1.1 on an index of two segments, a shop and a record of
searches too.

python tests/released/make.py tests/released/1.1
"""

import json
import random
import sys
from pathlib import Path

from sentemb import Index, PreparedLog, load, load_ranker, train
from sentemb.cli import main
from sentemb.data.recorded_searches import read_searches
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.search import segment

PLACES = ["lisbon", "oslo", "turin", "ghent", "porto", "vienna", "bergen", "krakow"]
# What people search, and what the shop calls it.
WORDS = {
    "cheap hotel": "affordable lodging",
    "flights": "airfare",
    "rent a bike": "bicycle hire",
    "city map": "street plan",
    "train tickets": "rail passes",
}
PINNED = "somewhere to sleep"
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
    segment._FEW = 1  # so that a change of few titles is a segment
    pairs = clicks()
    titles = sorted({title for _, title in pairs})
    for name, part in (("log", pairs[30:]), ("dev", pairs[:30])):
        text = "".join(
            f"{query}\t{title}\t{1 + n % 12}\tP{titles.index(title)}\n"
            for n, (query, title) in enumerate(part)
        )
        (folder / f"{name}.tsv").write_text(text, "utf-8")
    rows = [f"P{n}\t{title}\t{n},50\t{['Elm', 'Fir'][n % 2]}" for n, title in enumerate(titles)]
    (folder / "titles.tsv").write_text("\n".join(["id\ttitle\tprice\tbrand", *rows, ""]), "utf-8")
    words = sorted({word for text in (*titles, *WORDS) for word in text.lower().split()})
    draw = random.Random(1)
    write_record(folder / "record.sqlite", titles)
    (folder / "gone.txt").write_text("P7\n", "utf-8")
    (folder / "new.tsv").write_text(
        "id\ttitle\tprice\tbrand\nN0\tHostel in Oslo\t9,50\tElm\n", "utf-8"
    )
    lines = (f"{word} {' '.join(f'{draw.gauss(0, 1):.3f}' for _ in range(6))}\n" for word in words)
    (folder / "vectors.txt").write_text("".join(lines), "utf-8")
    log, dev, catalogue = folder / "log.tsv", folder / "dev.tsv", folder / "titles.tsv"
    small = ("--epochs", 4, "--batch-size", 16)
    for command in (
        ("train", log, "--dev", dev, "--cells", 6, "--bag-dim", 6, *small, "-o", folder / "model"),
        ("train", log, "--model", "arc2", "--embedding", 4, "--maps", "4,4", "--mlp", 4,
         "--max-words", 8, *small, "-o", folder / "pairs"),
        ("sif", folder / "vectors.txt", "--components", 0, "-o", folder / "sif"),
        ("tune", folder / "model", dev, "--log", log, "--record", folder / "record.sqlite"),
        ("index", folder / "model", catalogue, "-o", folder / "index"),
        ("calibrate", folder / "index", dev),
        ("index", folder / "index", "--remove", folder / "gone.txt", "--add", folder / "new.tsv"),
        ("prepare", log, "-o", folder / "prepared"),
        ("start", catalogue, "-o", folder / "shop"),
        ("pin", folder / "shop", PINNED, "P3"),
    ):  # fmt: skip
        main([*map(str, command), "--quiet"], standalone_mode=False)
    (folder / "shop" / "page.html").unlink()  # which nothing reads


def write_record(path, titles):
    """Write a record of searches: three titles are shown, and the second is clicked at times."""
    record, draw = SearchRecord(path), random.Random(2)
    for n in range(60):
        numbers = draw.sample(range(len(titles)), 3)
        shown = [(f"P{number}", titles[number]) for number in numbers]
        searched = Searched(
            QUERIES[n % 3], shown, None, 1.0, 1, [3.0, 2.0, 1.0], ("model", "index")
        )
        (name,) = record.add_searches([searched])
        if n % 4 == 0:
            record.add_click(name, shown[1][0])
    record.close()


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
    return results_since_1_1(folder) | {
        "vectors": model.encode_query(QUERIES).tolist(),
        "scores": {
            name: [load(folder / name).score(query, TITLES).tolist() for query in QUERIES]
            for name in ("model", "pairs", "sif")
        },
        "ranker": load_ranker(folder / "model").rank(QUERIES[0], TITLES),
        "hits": [answer(hits) for ranking in found for hits in ranking],
        "loss of training": trained.history[0]["loss"],
    }  # fmt: skip


def results_since_1_1(folder):
    """What the folders and files that 1.0 did not write answer."""
    if not (folder / "shop").exists():
        return {}
    searches = read_searches([folder / "record.sqlite"])
    return {
        "weights": load_ranker(folder / "model").recipe.as_dict()["weights"],
        "shop": answer(Index.open(folder / "shop").search(PINNED, k=3, everything=True)),
        "searches": [
            [search.query, dict(search.positions), [*search.clicked]] for search in searches
        ],
    }


def answer(hits):
    """Hits as lists."""
    return [[hit.id, hit.title, hit.score, hit.confidence, dict(hit.fields)] for hit in hits]


if __name__ == "__main__":
    place = Path(sys.argv[1])
    write(place)
    (place / "expected.json").write_text(json.dumps(results(place), indent=1) + "\n", "utf-8")
    for beside in place.glob("record.sqlite-*"):  # SQLite recreates them
        beside.unlink()
