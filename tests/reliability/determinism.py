"""What may change the result of a training and what must not, over many fresh processes.

Threads, Python's hash seed, the kernels of BLAS and the form of the click log must not change a bit
of any weight or vector, nor must the registers of the processor that the kernels are compiled for.
One that cannot multiply and add in one instruction rounds differently: it is compared with itself
only, and how far it is from the others is a note. Skip-gram is gensim's, whose bits depend on the
BLAS: they are compared for each of its kernels.

Run it with ``python -m reliability.determinism`` in the folder ``tests``.
"""

import hashlib
import itertools
import os
import tempfile
from dataclasses import replace
from pathlib import Path

import llvmlite.binding
import numpy as np
from helpers import made_up_judged_set, made_up_log, run_python
from lab.classifier.training import train_classifier

from reliability.count import Count
from sentemb import SIF, train
from sentemb.data.best_graded import read_clicks
from sentemb.data.click_log import read_click_log, write_click_log
from sentemb.data.judged_set import read_texts
from sentemb.data.labelled import ValuedTexts
from sentemb.data.splitting import split_file
from sentemb.models.towers.towers import Towers
from sentemb.models.vectors.skip_gram import train_word_vectors
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.search.index import Index
from sentemb.search.index_tuning import calibrate, tune

TESTS = Path(__file__).parents[1]
# Where other processes find the tests and the laboratory of the papers.
PLACES = os.pathsep.join(map(str, (TESTS, TESTS.parent / "benchmarks")))
SETTINGS = {"cells": 24, "epochs": 3, "batch_size": 64}
TRAININGS = {
    "adam": {"hard_negatives": 2},
    "nesterov": {"optimiser": "nesterov", "hard_negatives": 2},
    "hinge": {"objective": "hinge"},
}
# Every pair model once, with all that can differ: a teacher, dropout, tuned and fixed vectors.
PAIR_SETTINGS = {"mlp": 9, "epochs": 2, "batch_size": 90, "dropout": 0.3}
PAIR_TRAININGS = {
    "arc1": {"embedding": 6, "maps": (7, 5), "teacher": "bm25"},
    "arc2": {"embedding": 6, "maps": (7, 5), "optimiser": "sgd"},
    "arc2 printed": {"model": "arc2", "maps": (7, 5), "gate": "printed", "objective": "logistic"},
    "wordembed": {"embedding": 6, "mlp_layers": 2},
    "senmlp": {"embedding": 6},
    "senna": {"maps": (7,), "vectors": True, "train_vectors": True},
    "urae": {"cells": 6, "vectors": True, "epochs": 3},
    "deepmatch": {"nodes": 20, "word_features": 1},
}
CHILD = """
import sys
import numpy as np
from reliability.determinism import blas_product, trained
np.savez(sys.argv[1], blas=blas_product(), **trained(int(sys.argv[2])))
"""
SKIP_GRAM = "skip-gram vectors"
FILES = "bytes of"
# Kernels of OpenBLAS and what a processor must have to run them.
BLAS_NEEDS = {"Nehalem": "sse4.2", "Sandybridge": "avx", "Haswell": "avx2", "SkylakeX": "avx512vl"}
TARGETS = {
    "host": {},
    "x86-64-v3": {
        "NUMBA_CPU_NAME": "x86-64-v3",
        "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe",
    },
    "generic": {"NUMBA_CPU_NAME": "generic"},
}
UNFUSED = "generic"  # has no fused multiply-add


def matrix(
    threads=(1, 2, 7), hash_seeds=(0, 1), blas=None, targets=None, cells=None, every=1
) -> Count:
    """Train and encode once for every combination, each in a fresh process.

    Parameters
    ----------
    threads, hash_seeds : sequence of int
    blas : sequence of str, optional
        Values of ``OPENBLAS_CORETYPE``; by default all of `BLAS_NEEDS` that run here.
    targets : sequence of str, optional
        Of `TARGETS`; by default all that run here.
    cells : list of tuple, optional
        The combinations themselves: target, threads, hash seed, BLAS.
    every : int
        Only every so manyth combination.
    """
    count = Count("determinism: threads x hash seed x BLAS x processor target")
    has = llvmlite.binding.get_host_cpu_features()
    if blas is None:
        blas = [name for name, need in BLAS_NEEDS.items() if has.get(need)] or ["default"]
    if targets is None:
        targets = [name for name in TARGETS if name != "x86-64-v3" or has.get("avx2")]
    first, of_blas, products = {}, {}, set()
    with tempfile.TemporaryDirectory() as folder:
        for cell in (cells or list(itertools.product(targets, threads, hash_seeds, blas)))[::every]:
            target, n_threads, hash_seed, core = cell
            path = Path(folder) / "arrays.npz"
            environment = {"PYTHONHASHSEED": str(hash_seed), "OPENBLAS_CORETYPE": core}
            environment |= {"PYTHONPATH": PLACES} | TARGETS[target]
            ended = run_python(CHILD, path, n_threads, **environment)
            count.tried += 1
            place = f"{target}, {n_threads} threads, hash seed {hash_seed}, BLAS {core}"
            if ended.returncode:
                said = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
                count.failures.append(f"{place}: {said[-1]}")
                continue
            with np.load(path) as arrays:
                arrays = dict(arrays)
            products.add(digest(arrays.pop("blas")))
            skip_gram = {SKIP_GRAM: arrays.pop(SKIP_GRAM)}
            names = different(of_blas.setdefault(core, skip_gram), skip_gram)
            group = target if target == UNFUSED or not has.get("fma") else "fused"
            if names := names + different(first.setdefault(group, arrays), arrays):
                count.failures.append(f"{place}: other bits in {', '.join(names)}")
    count.notes.append(
        f"NumPy's own matrix product has {len(products)} results on {len(blas)} kernels of BLAS"
    )
    for group, arrays in first.items():
        if group == UNFUSED and "fused" in first:
            count.notes.append(f"{group}: {_distance(first['fused'], arrays)}")
    return count


def sources() -> Count:
    """Train on one click log in memory and read from files of every form."""
    count = Count("determinism: forms of the click log")
    for skipped in (False, True):
        log = made_up_log(300, skipped=skipped)
        settings = {"negatives": "log", "n_negatives": 2} if skipped else {"hard_negatives": 2}
        forms = [".jsonl", ".jsonl.gz"] if skipped else [".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz"]
        with tempfile.TemporaryDirectory() as folder:
            expected = _arrays(train(log, threads=1, **SETTINGS, **settings), log)
            for form in forms:
                path = Path(folder) / f"pairs{form}"
                write_click_log(log, path)
                arrays = _arrays(train(path, threads=2, **SETTINGS, **settings), log)
                count.tried += 1
                if names := different(expected, arrays):
                    count.failures.append(f"{form}: other bits in {', '.join(names)}")
    return count


def trained(threads):
    """All weights, vectors, scores and losses of some small trainings, by name."""
    log = made_up_log(300)
    dev = made_up_judged_set(log)
    arrays = {}
    for name, settings in TRAININGS.items():
        model = train(log, dev=dev, threads=threads, **SETTINGS, **settings)
        arrays |= {f"{name} {key}": array for key, array in _arrays(model, log).items()}
    return arrays | of_pair_models(threads) | of_vectors(threads) | of_a_shop(threads)


def of_a_shop(threads):
    """From a click log to a calibrated index: the bytes of all files, weights and what is found."""
    log = made_up_log(300)
    arrays = {}
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_click_log(log, folder / "log.tsv")
        split_file(folder / "log.tsv", folder / "split", 0.1, 0.1)
        for name, given, start in (
            ("file", folder / "log.tsv", None),
            ("memory", log, None),
            ("replayed", folder / "split/test.tsv", "memory"),
        ):
            more = {"start_from": folder / start, "replay": log} if start else SETTINGS
            model = train(
                given, dev="10%" if start is None else folder / "split/dev.tsv", model="bag",
                **more | {"epochs": 2}, threads=threads, output=folder / name,
                catalogue=read_texts(folder / "split/titles.tsv")[1],
            )  # fmt: skip
            arrays |= {f"{name} {key}": array for key, array in _arrays(model, log).items()}
        assert not different(
            {key[5:]: array for key, array in arrays.items() if key.startswith("file ")},
            {key[7:]: array for key, array in arrays.items() if key.startswith("memory ")},
        )
        ids, titles = read_texts(folder / "split/titles.tsv")
        held_out = read_clicks(folder / "split/dev.tsv")
        for dtype in ("float32", "float16", "int8"):
            fields = {"price": [len(title) / 4 for title in titles]}
            index = Index.build(model, titles, ids, fields, dtype=dtype, threads=threads)
            tune(index, held_out, read_click_log(folder / "split/pairs.tsv"))
            calibrate(index, log)
            index.save(folder / "index" / dtype)
            found = index.ranked(log.queries, 5)
            values = {"places": found.titles, "scores": found.scores, **found.values}
            arrays |= {f"{dtype} {key}": array for key, array in values.items()}
            near = index.ranked(log.queries, 5, cosine=True)
            arrays[f"{dtype} near"] = near.titles
        for path in sorted((folder / part for part in ("split", "index")), key=str):
            for file in sorted(path.rglob("*")):
                if file.is_file() and file.name != "history.jsonl":  # it has seconds
                    bits = np.frombuffer(hashlib.sha256(file.read_bytes()).digest(), np.uint8)
                    arrays[f"{FILES} {file.relative_to(folder)}"] = bits
    return arrays


def of_pair_models(threads):
    """The weights, scores and losses of `PAIR_TRAININGS`."""
    log = made_up_log(120)
    dev = made_up_judged_set(log)
    words = sorted({word for text in (*log.queries, *log.titles) for word in text.split()})
    numbers = np.random.default_rng(0).standard_normal((len(words), 6)).astype(np.float32)
    arrays = {}
    for name, settings in PAIR_TRAININGS.items():
        given = {"model": name, **PAIR_SETTINGS, **settings}
        if given.pop("vectors", False):
            given["vectors"] = WordVectors(words, numbers)
        model = train(log, dev=dev, threads=threads, **given)
        index = log.query_index, log.title_index
        arrays |= {f"{name} {key}": array for key, array in model.weights.items()}
        arrays[f"{name}: scores"] = model.score_pairs(log.queries, log.titles, *index)
        arrays[f"{name}: losses"] = np.array([line["loss"] for line in model.history])
    return arrays


def of_vectors(threads):
    """The same of word vectors trained on a log, of SIF, and of what starts from it."""
    log = made_up_log(300)
    trained = train_word_vectors(log, dim=16, epochs=1)
    # gensim multiplies with the BLAS; what follows begins with other numbers.
    numbers = np.random.default_rng(0).standard_normal(trained.vectors.shape).astype(np.float32)
    vectors = replace(trained, vectors=numbers)
    settings = {"sides": "each", "components": 3, "removal": "weighted", "centre": "probability"}
    sif = SIF(vectors, p="vectors", **settings).fit(log.queries, log.titles, threads)
    start = SIF(vectors, p="texts", weights="idf").fit(log.queries, log.titles, threads)
    model = train(log, model="dan", start_from=start, threads=threads, **SETTINGS)
    examples = ValuedTexts(["odd" if len(text) % 2 else "even" for text in log.titles], log.titles)
    arrays = {SKIP_GRAM: trained.vectors, "skip-gram counts": trained.counts}
    for name, one in {"sif": sif, "start from sif": model}.items():
        arrays |= {f"{name} {key}": array for key, array in _arrays(one, log).items()}
    for name, features in {
        "vectors": sif.encode_document,
        "a tower": Towers.of(start.encoder, start.vocabulary, {"query": start.weights["query"]}),
    }.items():
        classifier = train_classifier(
            examples, features=features, threads=threads, hidden=7, map_dim=0, epochs=2
        )
        losses = np.array([line["loss"] for line in classifier.history])
        arrays[f"classifier of {name}: losses"] = losses
        arrays[f"classifier of {name}: probabilities"] = classifier.probabilities(log.titles)
    return arrays


def _arrays(model, log):
    weights = {
        f"{side} {name}": array
        for side, arrays in model.weights.items()
        for name, array in arrays.items()
    }
    return weights | {
        "query vectors": model.encode_query(log.queries),
        "title vectors": model.encode_document(log.titles, normalize_embeddings=True),
        "scores": model.score_pairs(log.queries, log.titles, log.query_index, log.title_index),
        "losses": np.array([line["loss"] for line in model.history]),
    }


def blas_product():
    """A product that BLAS works out: it shows whether ``OPENBLAS_CORETYPE`` has any effect."""
    a = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    return a @ a


def different(expected, arrays):
    """The names under which two dicts of arrays do not have the same bits."""
    names = expected.keys() | arrays.keys()
    return sorted(
        name
        for name in names
        if name not in expected
        or name not in arrays
        or digest(expected[name]) != digest(arrays[name])
    )


def digest(array):
    """SHA-256 of an array's dtype, shape and bits."""
    header = f"{array.dtype.str} {array.shape} ".encode()
    return hashlib.sha256(header + np.ascontiguousarray(array).tobytes()).hexdigest()


def _distance(host, arrays):
    names = different(host, arrays)
    if not names:
        return "the same bits as the others"
    numbers = [name for name in names if not name.startswith(FILES)]
    largest = max(np.abs(host[name] - arrays[name]).max(initial=0) for name in numbers)
    return f"{len(names)} of {len(host)} arrays differ from the others', by at most {largest:.1e}"


if __name__ == "__main__":
    for count in (matrix(), sources()):
        print(f"{count.name}: {count.fine} of {count.tried} fine")
        print(*(f"  {line}" for line in [*count.failures, *count.notes]), sep="\n")
