"""How fast onnxruntime embeds texts with an exported model, next to the package itself.

Both compute on one thread. Contenders take turns in one process; ratios compare neighbouring turns.
Writes docs/results/exports.md.

    python benchmarks/onnx_speed.py [--quick] [--clock cpu]
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
from pages import machine, write_tables
from rounds import CLOCKS, note, take_turns
from synthetic import write_log

from sentemb import SentenceEncoder
from sentemb.bridges.export.onnx.tokeniser import Tokeniser
from sentemb.bridges.export.targets import export
from sentemb.data.click_log import read_click_log
from sentemb.models.towers import make_encoder
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.tables import markdown_table
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

MODELS = {
    "lstm, 96 cells": ("lstm", {}),
    "bilstm, 96 cells, forget gate": ("bilstm", {"forget_gate": True}),
    "clsm": ("clsm", {}),
    "dssm": ("dssm", {}),
    "bag": ("bag", {}),
}
BATCH = 256


def made_up_model(name, settings, titles):
    """An untrained model with the trigrams of ``titles``."""
    encoder = make_encoder(name, **settings)
    vocabulary = Vocabulary.collect(tokenize(titles))
    weights = encoder.initialise(len(vocabulary), np.random.default_rng(0))
    return SentenceEncoder(encoder, vocabulary, {"query": weights, "document": weights}, threads=1)


def measure(model, titles, folder, rounds, clock):
    """Seconds of the contenders for all titles, and for one after the other."""
    import onnxruntime

    export(model, folder, "onnx")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(folder / "model.onnx", options, ["CPUExecutionProvider"])
    tokeniser = Tokeniser(folder)
    parts = [titles[first : first + BATCH] for first in range(0, len(titles), BATCH)]
    batches = [tokeniser.batch(part) for part in parts]

    def package():
        # A new one each time: a model remembers the words that it has met.
        parts = model.encoder, model.vocabulary, model.weights
        return SentenceEncoder(*parts, threads=1).encode_document(titles)

    def onnx():
        return np.vstack([session.run(None, batch)[0] for batch in batches])

    difference = np.abs(unit_rows(package()) - onnx()).max()
    if difference > 1e-5:
        raise ValueError(f"the vectors differ by {difference:.1e}")
    some = titles[:500]
    contenders = {
        "package": package,
        "onnx": onnx,
        "tokeniser": lambda: [tokeniser.batch(part) for part in parts],
        "package, one": lambda: [model.encode_document(title) for title in some],
        "onnx, one": lambda: [session.run(None, tokeniser.batch([title])) for title in some],
    }
    return take_turns(contenders, rounds, clock), len(some)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few texts, results not written")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    n, rounds = (1000, 2) if options.quick else (10_000, 3)
    rows = [["", "package", "onnxruntime", "tokeniser", "package, one text", "ONNX, one text"]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_log(folder / "pairs.tsv", n, trigrams=20_000)
        titles = read_click_log(folder / "pairs.tsv").titles
        for label, (kind, settings) in MODELS.items():
            note(label)
            model = made_up_model(kind, settings, titles)
            result, alone = measure(model, titles, folder / kind, rounds, CLOCKS[options.clock])
            medians = {one: result.time(one).median for one in result.seconds}
            rows.append(
                [
                    label,
                    *(f"{medians[one]:.2f} s" for one in ("package", "onnx", "tokeniser")),
                    *(
                        f"{medians[f'{one}, one'] / alone * 1e3:.3f} ms"
                        for one in ("package", "onnx")
                    ),
                ]
            )
    tables = {"Embedding": markdown_table(rows)}
    write_tables("onnx-speed", tables, machine(), options.quick)


if __name__ == "__main__":
    main()
