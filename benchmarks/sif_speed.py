"""How fast SIF is: from tokens to vectors, the fit, strings to vectors, reading word vectors.

Contenders take turns in one process on one thread; ratios compare neighbouring turns. Texts and
vectors are made up in the sizes of a real log and of GloVe. Writes docs/results/speed.md.

    python benchmarks/sif_speed.py [--quick]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from pages import machine, write_tables
from rounds import CLOCKS, note, ratio_table, take_turns
from scipy.sparse import csr_matrix
from synthetic import lexicon

from sentemb import SIF
from sentemb.models.vectors.averages import averages, moments, only_known
from sentemb.models.vectors.components import common_components
from sentemb.models.vectors.probabilities import zipf
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.word_weights import sif_weights
from sentemb.system.parallel import Workers
from sentemb.system.tables import markdown_table
from sentemb.text.batch import tokenize
from sentemb.text.words import plain_words

DIM = 100
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"), "1")


def made_up_vectors(n_words):
    """Words in order of their frequency, as GloVe has them, and random vectors."""
    rng = np.random.default_rng(0)
    words = lexicon(200_000, rng)
    words += [f"{word}_{k}" for k in range(n_words // len(words)) for word in words]
    vectors = rng.standard_normal((n_words, DIM), np.float32)
    return WordVectors(words[:n_words], vectors, name="made-up")


def made_up_texts(n_texts, words):
    """Texts of 1 + Poisson(2.5) words by Zipf's law, so 3.5 on average, as queries and titles."""
    rng = np.random.default_rng(1)
    cumulative = np.cumsum(1 / np.arange(3, len(words) + 3))
    lengths = 1 + rng.poisson(2.5, n_texts)
    places = np.searchsorted(cumulative, rng.random(lengths.sum()) * cumulative[-1])
    tokens = iter([words[place] for place in np.minimum(places, len(words) - 1)])
    return [" ".join(next(tokens) for _ in range(length)) for length in lengths]


def numpy_loop(table, tokens):
    X = np.zeros((tokens.offsets.size - 1, DIM), np.float32)
    for text, (low, high) in enumerate(zip(tokens.offsets, tokens.offsets[1:], strict=False)):
        if high > low:
            X[text] = table[tokens.word_index[low:high]].mean(axis=0)
    return X


def scipy_averages(table, tokens):
    """The usual short program: a sparse matrix of counts times the vectors."""
    lengths = np.diff(tokens.offsets)
    shares = np.repeat(1 / np.maximum(lengths, 1), lengths).astype(np.float32)
    shape = (lengths.size, len(table))
    return csr_matrix((shares, tokens.word_index, tokens.offsets), shape) @ table


def scipy_component(table, tokens):
    X = scipy_averages(table, tokens)
    return np.linalg.eigh(X.T @ X)[1][:, -1]


# A program of its own, which ends by printing the most memory that it had, in kB. (ru_maxrss would
# be at least that of the process that started it.)
PROGRAM = """
import sys, time
try:
    {body}
finally:
    with open("/proc/self/status") as file:
        print(next(line for line in file if line.startswith("VmHWM")).split()[1], file=sys.stderr)
"""
COMMAND = "from sentemb.cli import main; sys.argv[0] = 'sentemb'; main()"
OPENING = (
    "from sentemb.models.vectors.reading import read_word_vectors; began = time.perf_counter(); "
    "read_word_vectors(sys.argv[1]); print(time.perf_counter() - began)"
)


def in_process(body, *arguments):
    """Seconds, peak memory in MB and output of a Python program of its own."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body=body), *map(str, arguments)],
        capture_output=True,
        text=True,
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr)
    return seconds, int(done.stderr.split()[-1]) / 1024, done.stdout


def commands(quick, n_words):
    """A table of commands on files: conversion, start-up, the whole `sentemb sif`."""
    rows = [["command", "seconds", "peak memory"]]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        vectors = made_up_vectors(n_words)
        text, halves = folder / "glove.txt", vectors.vectors[:, : DIM // 2]
        with open(text, "w", encoding="utf-8") as file:
            for word, row in zip(vectors.words, halves.tolist(), strict=True):
                file.write(f"{word} {' '.join(f'{value:.5g}' for value in row)}\n")
        texts = made_up_texts(20_000 if quick else 230_000, vectors.words[:100_000])
        (folder / "titles.txt").write_text("".join(f"{line}\n" for line in texts))
        size = f"{n_words:,} × {DIM // 2}"
        jobs = {
            f"`sentemb vectors convert`, {size} text": (
                "vectors",
                "convert",
                text,
                "-o",
                folder / "vectors",
            ),
            f"`sentemb vectors show`, {size}": ("vectors", "show", folder / "vectors"),
            f"`sentemb sif`, {len(texts):,} texts": (
                "sif",
                folder / "vectors",
                folder / "titles.txt",
                "-o",
                folder / "model",
            ),
        }
        for what, arguments in jobs.items():
            note(what)
            seconds, peak, _ = in_process(COMMAND, *arguments)
            rows.append([what, f"{seconds:.1f} s", f"{peak:,.0f} MB"])
        _, peak, opened = in_process(OPENING, folder / "vectors")
        rows.append([f"opening the folder, {size}", f"{float(opened):.1f} s", f"{peak:,.0f} MB"])
        assert len(read_word_vectors(folder / "vectors")) == n_words
    return markdown_table(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    quick = parser.parse_args().quick
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        # NumPy reads it once, when it is imported.
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | ONE_THREAD)
    n_words, n_texts, rounds = (20_000, 5_000, 2) if quick else (400_000, 230_000, 5)
    vectors = made_up_vectors(n_words)
    texts = made_up_texts(n_texts, vectors.words[:100_000])
    tokens = tokenize(texts, plain_words)
    rows = vectors.rows(tokens.words)
    tokens, rows = only_known(tokens, rows >= 0), rows[rows >= 0]
    weights = sif_weights(zipf(n_words), 1e-3)[rows, None]
    table = (vectors.vectors[rows] * weights).astype(np.float32)
    with Workers(1) as workers:
        assert np.allclose(
            averages(table, tokens, workers), scipy_averages(table, tokens), atol=1e-5
        )
        assert np.allclose(averages(table, tokens, workers), numpy_loop(table, tokens), atol=1e-5)
        note("averages")
        averaged = take_turns(
            {
                "sentemb": lambda: averages(table, tokens, workers),
                "SciPy, sparse product": lambda: scipy_averages(table, tokens),
            },
            rounds,
            CLOCKS["wall"],
        )
        note("component")
        fitted = take_turns(
            {
                "sentemb, one pass": lambda: common_components(moments(table, tokens, workers), 1),
                "SciPy and LAPACK": lambda: scipy_component(table, tokens),
            },
            rounds,
            CLOCKS["wall"],
        )
    note("whole")
    model, kept = SIF(vectors).fit(titles=texts, threads=1), SIF(vectors, keep="texts")
    whole = take_turns(
        {
            "`SIF.fit`": lambda: SIF(vectors).fit(titles=texts, threads=1),
            '`SIF.fit`, `keep="texts"`': lambda: kept.fit(titles=texts, threads=1),
            "`encode` of the model": lambda: model.encode(texts),
            "splitting alone": lambda: tokenize(texts, plain_words),
        },
        max(rounds // 2, 1),
        CLOCKS["wall"],
    )
    tables = {
        "From tokens to vectors": ratio_table(averaged, n_texts, "sentemb"),
        "The common component": ratio_table(fitted, n_texts, "sentemb, one pass"),
        "From strings": ratio_table(whole, n_texts, "splitting alone"),
        "Commands": commands(quick, n_words),
    }
    write_tables("sif-speed", tables, machine(), quick)


if __name__ == "__main__":
    main()
