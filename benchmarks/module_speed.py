"""What sentence-transformers adds to the time of embedding texts with one of our models.

Contenders take turns in one process, with one thread. The figures are processor time. The model is
not trained, which does not change its speed. Writes docs/results/exports.md.

    python benchmarks/module_speed.py [--quick]
"""

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
from pages import machine, write_tables
from rounds import CLOCKS, take_turns

from sentemb import SentenceEncoder
from sentemb.data.click_log import read_click_log
from sentemb.data.simulation.simulator import simulate
from sentemb.models.towers import make_encoder
from sentemb.system.tables import markdown_table
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

TEXTS = 10_000
ROUNDS = 15


def model_and_titles(folder, pairs):
    """A model with the default shape, and distinct titles of a simulated log."""
    simulate(folder / "log", pairs=pairs, dev_queries=2, test_queries=2)
    log = read_click_log(folder / "log/pairs.tsv")
    vocabulary = Vocabulary.collect(tokenize([*log.queries, *log.titles]))
    encoder, random = make_encoder("lstm", cells=96), np.random.default_rng(0)
    weights = {side: encoder.initialise(len(vocabulary), random) for side in ("query", "document")}
    return SentenceEncoder(encoder, vocabulary, weights, threads=1), log.titles


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few texts; print, write nothing")
    quick = parser.parse_args().quick
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch
    from sentence_transformers import SentenceTransformer

    torch.set_num_threads(1)
    count, rounds = (500, 3) if quick else (TEXTS, ROUNDS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, titles = model_and_titles(folder, 2 * count)
        model.save_pretrained(folder / "model")
        module = SentenceTransformer(
            str(folder / "model"),
            trust_remote_code=True,
            device="cpu",
            model_kwargs={"threads": 1},
        )
    titles = (titles * (count // len(titles) + 1))[:count]
    contenders = {
        "`SentenceEncoder`": lambda: model.encode_document(titles),
        "`SentenceTransformer`": lambda: module.encode_document(titles),
        "… `batch_size=2048`": lambda: module.encode_document(titles, batch_size=2048),
    }
    vectors = [encode() for encode in contenders.values()]
    if not all(np.array_equal(some, vectors[0]) for some in vectors):
        raise SystemExit("the vectors differ, so the times mean nothing")
    result = take_turns(contenders, rounds, CLOCKS["cpu"])
    rows = [["", "ms", "texts/s"]]
    for name in contenders:
        median = result.time(name).median
        rows.append([name, f"{1e3 * median:.0f}", f"{count / median:,.0f}"])
    tables = {"Ten thousand titles": markdown_table(rows)}
    write_tables("module-speed", tables, machine(), quick)


if __name__ == "__main__":
    main()
