"""What the gate of ARC-II's first layer changes: "and" against equation (3) to the letter.

Writes the table of docs/gradients.md, section 15, from fixed seeds; some seconds:

    python benchmarks/gates.py
"""

import argparse
import itertools

import numpy as np
from arc_constructions import MAX_WORDS as C5_LONGEST
from arc_constructions import contained
from lab.arc1_in_arc2 import arc2_from_arc1
from pages import ROOT, fill

from sentemb.gradients.pair_models import PairPasses
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.matcher import Matcher
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary

DOCUMENT = ROOT / "docs" / "gradients.md"
GATES = "and", "printed"
SEEDS = range(5)
MAX_WORDS, LONGER, WINDOW, TEXTS = 16, 24, 3, 20
# No layer of the shorter planes has fewer windows than such a text can begin.
LONGEST = 10
SHAPE = {"embedding": 8, "mlp": 16, "window": WINDOW, "max_words": MAX_WORDS}
# Scores nearer than this are the same up to rounding.
SAME = 1e-10


def made_up(seed, name, **settings):
    """A pair model with He's weights and biases from N(0, 0.3²), and texts of 1 to 10 words."""
    rng = np.random.default_rng(seed)
    words = ["".join(rng.choice(list("abcdef"), rng.integers(2, 7))) for _ in range(60)]
    texts = [
        [" ".join(rng.choice(words, rng.integers(1, LONGEST + 1))) for _ in range(TEXTS)]
        for _ in range(2)
    ]
    vocabulary = Vocabulary.collect(tokenize(words))
    model = make_pair_model(name, **SHAPE | settings)
    weights = model.initialise(len(vocabulary), rng, np.float64)
    for array in weights.values():
        if array.ndim == 1:
            array[...] = 0.3 * rng.standard_normal(array.shape)
    weights["output"][:] = rng.standard_normal(SHAPE["mlp"]) / 4
    return Matcher(model, vocabulary, weights), texts


def scores(matcher, texts, workers):
    index = (one.ravel() for one in np.indices((TEXTS, TEXTS)))
    return PairPasses(matcher, *texts, *index, workers).forward().scores


def longer(matcher):
    """The same ARC-II with a larger ``max_words``: zero weights where it has more cells."""
    settings = matcher.model.settings() | {"max_words": LONGER}
    model = make_pair_model("arc2", **settings)
    weights = dict(matcher.weights)
    small, large = (one.sizes[-1][1] for one in (matcher.model, model))
    maps = model.maps[-1]
    mlp = np.zeros((large, large, maps, model.mlp))
    mlp[:small, :small] = weights["mlp1"].reshape(small, small, maps, -1)
    weights["mlp1"] = mlp.reshape(-1, model.mlp)
    return Matcher(model, matcher.vocabulary, weights)


def first_plane(rng, gate):
    """u, v and the cells of layer 1 that are on, for texts of random lengths."""
    size = MAX_WORDS - WINDOW + 1
    u, v = np.zeros((2, size, 8))
    lengths = rng.integers(1, LONGEST + 1, 2)
    for side, n in zip((u, v), lengths, strict=True):
        side[:n] = rng.standard_normal((n, 8))
    in_x, in_y = (np.arange(size) < n for n in lengths)
    on = in_x[:, None] & in_y if gate == "and" else in_x[:, None] | in_y
    return u, v, on


def apart(gate):
    """Blocks of 2 x 2 cells, over all maps, where the maximum is not the sum of both maxima."""
    rng, differ, total = np.random.default_rng(0), 0, 0
    for _ in range(50):
        u, v, on = first_plane(rng, gate)
        cells = np.where(on[:, :, None], u[:, None] + v, -np.inf)
        for i, j in itertools.product(range(0, len(u), 2), repeat=2):
            block = np.s_[i : i + 2, j : j + 2]
            if on[block].any():
                rows, columns = on[block].any(axis=1), on[block].any(axis=0)
                one = u[i : i + 2][rows].max(axis=0) + v[j : j + 2][columns].max(axis=0)
                differ += int((np.abs(cells[block].max((0, 1)) - one) > SAME).sum())
                total += one.size
    return f"{differ:,} of {total:,}"


def ranks(gate):
    """The highest rank of the planes of maps that read the query alone."""
    rng, most = np.random.default_rng(0), 0
    for _ in range(50):
        u, v, on = first_plane(rng, gate)
        plane = np.where(on[:, :, None], np.maximum(0, u[:, None] + 0 * v + 0.3), 0)
        most = max(most, *np.linalg.matrix_rank(plane.transpose(2, 0, 1)).tolist())
    return str(most)


def table():
    rows = {}
    with Workers(1) as workers:
        for gate in GATES:
            from_arc1, from_length = [], []
            for seed in SEEDS:
                arc1, texts = made_up(seed, "arc1", maps=(6, 6))
                apart_from = np.abs(
                    scores(arc2_from_arc1(arc1, gate), texts, workers)
                    - (given := scores(arc1, texts, workers))
                )
                from_arc1.append(apart_from.max() / given.std())
                arc2, texts = made_up(seed, "arc2", maps=(6, 6), gate=gate)
                short, long = (scores(one, texts, workers) for one in (arc2, longer(arc2)))
                from_length.append(np.abs(long - short).max() / short.std())
            rows[gate] = [
                f"{100 * np.mean(contained(gate) > SAME):.1f} %",
                _size(max(from_arc1)),
                _size(max(from_length)),
                ranks(gate),
                apart(gate),
            ]
    names = [
        "pairs that an ARC-I and its ARC-II score differently (as C5 of [arc.md](arc.md))",
        "largest difference of both, in standard deviations of the scores",
        f"largest change of a score with `--max-words` {LONGER} for {MAX_WORDS}, likewise",
        "highest rank of a map of layer 1 that reads one text",
        "cells of layer 2 where the identity fails",
    ]
    lines = [f"| | {' | '.join(f'`--gate {gate}`' for gate in GATES)} |", "| --- | --- | --- |"]
    lines += [
        f"| {name} | {' | '.join(rows[gate][k] for gate in GATES)} |"
        for k, name in enumerate(names)
    ]
    head = (
        f"Settings: texts of 1 to {LONGEST} words, {TEXTS} × {TEXTS} pairs for each of "
        f"{len(SEEDS)} seeds, two convolutions with window {WINDOW} and 6 maps, He's weights, "
        "biases from N(0, 0.3²), float64. The first row: the model and the 200 pairs of C5, texts "
        f"of 1 to {C5_LONGEST} words. The last two rows: 50 pairs of random windows in 8 maps."
    )
    return "\n".join([head, "", *lines])


def _size(number):
    return "0 (rounding)" if number < SAME else f"{number:.2f}"


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    text = table()
    print(text)
    fill(DOCUMENT, {"gates": [text]})
