"""Claims of section 3.3 that are constructed, not trained, and what the printed gate changes."""

import numpy as np
from arc_lab import Rows
from lab.arc1_in_arc2 import arc2_from_arc1
from numpy.lib.stride_tricks import sliding_window_view

from sentemb import PairScorer
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.pairs.registry import AND, PRINTED
from sentemb.text.vocabulary import Vocabulary

GATES = (AND, PRINTED)
N_PAIRS, MAX_WORDS, WORDS = 200, 16, 60
# Scores of two networks that compute the same differ by rounding only.
_ROUNDING = 1e-9


def constructions(lab, path):
    """Rows of claim, gate, what and value."""
    rows = Rows(path, ("claim", "gate", "what", "value"), 3)
    for gate in GATES:
        gaps = contained(gate)
        found = {
            ("C5", "largest difference of scores"): f"{gaps.max():.1e}",
            ("C5", "share of pairs that differ"): f"{np.mean(gaps > _ROUNDING):.3f}",
            ("C6", "largest rank of a devoted map"): str(max(ranks(gate))),
            ("C7", "largest difference of pooled cells"): f"{pooling(gate):.1e}",
        }
        for (claim, what), value in found.items():
            if not rows.has(claim, gate, what):
                rows.add(claim, gate, what, value)
    if not rows.has("C3", "", "largest difference of scores"):
        rows.add("C3", "", "largest difference of scores", f"{senna_in_arc1().max():.1e}")
    if not rows.has("C31", "", "neighbouring rows"):
        for what, count in order_of_rows().items():
            rows.add("C31", "", what, str(count))
    _printed_gate(lab, rows)


def contained(gate):
    """|score of ARC-I - score of the ARC-II built from it| for random pairs, in float64."""
    return _gaps((6, 5), MAX_WORDS, lambda arc1: arc2_from_arc1(arc1, gate))


def senna_in_arc1():
    """|score of ARC-I - score of SENNA+MLP with its weights| for random pairs, in float64.

    With texts of at most 4 words there are two windows, so that a pool of two reads all of them.
    """

    def as_senna(arc1):
        senna = make_pair_model("senna", **arc1.model.settings())
        return Matcher(senna, arc1.vocabulary, arc1.weights)

    return _gaps((6,), 4, as_senna)


def _gaps(maps, longest, built_from):
    """|score of an ARC-I - score of what is built from it| for random pairs, in float64."""
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in range(WORDS)]
    model = make_pair_model("arc1", embedding=8, maps=maps, mlp=7, max_words=longest)
    # Biases too are random: those of a new model are 0, which hides what padding does.
    weights = {name: rng.normal(0, 0.5, shape) for name, shape in model.shapes(len(words)).items()}
    matcher = Matcher(model, Vocabulary([], words), weights)
    queries, titles = (
        [" ".join(rng.choice(words, n)) for n in rng.integers(1, longest + 1, N_PAIRS)]
        for _ in range(2)
    )
    every = np.arange(N_PAIRS)
    scores = []
    for network in (matcher, built_from(matcher)):
        scorer = PairScorer(network.model, network.vocabulary, network.weights, threads=1)
        scores.append(scorer.score_pairs(queries, titles, every, every))
    return np.abs(scores[0] - scores[1])


def devoted_plane(rng, n_query, n_title, gate, size=MAX_WORDS - 2):
    """Equation (3) for one map whose filter reads the query's windows alone: (size, size).

    Only windows that begin at a word have a value; what the filter would read in the others is
    zero, and the bias stays.
    """
    a = np.where(np.arange(size) < n_query, rng.normal(size=size), 0) + rng.normal()
    begins = np.arange(size) < n_query, np.arange(size) < n_title
    on = np.logical_and.outer(*begins) if gate == AND else np.logical_or.outer(*begins)
    return on * np.maximum(a, 0)[:, None]


def ranks(gate):
    """The rank of devoted maps of random pairs, some of them padded."""
    rng = np.random.default_rng(1)
    lengths = rng.integers(1, MAX_WORDS - 1, (N_PAIRS, 2))
    return [int(np.linalg.matrix_rank(devoted_plane(rng, *n, gate))) for n in lengths]


def pooling(gate):
    """How far 2 x 2 pooling of a devoted map is from pooling its windows, then repeating them.

    Cells whose column has no title are left out: ARC-I has none there.
    """
    rng = np.random.default_rng(2)
    worst = 0.0
    for n_query, n_title in rng.integers(1, MAX_WORDS - 1, (N_PAIRS, 2)):
        Z = devoted_plane(rng, n_query, n_title, gate)
        half = len(Z) // 2
        two = Z.reshape(half, 2, half, 2).max(axis=(1, 3))
        column = np.where(np.arange(len(Z)) < n_query, Z[:, 0], 0).reshape(half, 2).max(axis=1)
        columns = -(-n_title // 2)
        worst = max(worst, float(np.abs(two[:, :columns] - column[:, None]).max()))
    return worst


def order_of_rows(networks=10, changes=5):
    """How the words of the query that a row of cells reads lie to those of the next row.

    A row reads a word if one of its cells changes with it. Counted over the layers of random
    networks with two convolutions over planes, as long as a layer has two rows.
    """
    rng = np.random.default_rng(3)
    counts = dict.fromkeys(
        [
            "neighbouring rows",
            "neighbouring rows whose words begin or end earlier",
            "neighbouring rows whose words begin or end no earlier, and one of them later",
        ],
        0,
    )
    for _ in range(networks):
        weights = [rng.normal(size=(2, 3, 8)), *rng.normal(size=(2, 3, 3, 8, 8))]
        x, y = rng.normal(size=(2, MAX_WORDS))
        before = _layers(x, y, weights)
        reads = [np.zeros((len(plane), MAX_WORDS), bool) for plane in before]
        for word in range(MAX_WORDS):
            for _ in range(changes):
                other = x.copy()
                other[word] += rng.normal()
                for read, plane, changed in zip(
                    reads, before, _layers(other, y, weights), strict=True
                ):
                    read[:, word] |= (plane != changed).any(axis=(1, 2))
        for read in reads:
            ends = np.column_stack([read.argmax(axis=1), -read[:, ::-1].argmax(axis=1)])
            steps = np.diff(ends, axis=0)
            earlier, later = (steps < 0).any(axis=1), (steps > 0).any(axis=1)
            for what, found in zip(counts, (later | True, earlier, later & ~earlier), strict=True):
                counts[what] += int(found.sum())
    return counts


def _layers(x, y, weights):
    """The planes (rows, columns, maps) of ARC-II after each layer, for words of one number each."""
    first, *convolutions = weights
    u, v = (sliding_window_view(words, 3) @ own for words, own in zip((x, y), first, strict=True))
    planes = [np.maximum(0, u[:, None] + v)]
    for own in convolutions:
        planes.append(_pooled(planes[-1]))
        windows = sliding_window_view(planes[-1], (3, 3), axis=(0, 1))
        planes.append(np.maximum(0, np.einsum("ijfkl,klfg->ijg", windows, own)))
    return planes


def _pooled(plane):
    """The largest of 2 x 2 cells; the last row or column of an odd number is its own."""
    for axis in (0, 1):
        starts = np.arange(0, plane.shape[axis], 2)
        plane = np.maximum.reduceat(plane, starts, axis=axis)
    return plane


def _printed_gate(lab, rows):
    """What the printed gate does to the texts of completion, and to a model trained without it."""
    what = "P@1 of the trained ARC-II"
    folder = lab.build / "models" / "completion-arc2-0"
    if rows.has("C1", PRINTED, what) or not (folder / "config.json").exists():
        return
    trained = PairScorer.from_pretrained(folder, lab.threads)
    judged = lab.judged("completion", "test")
    queries = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
    settings = trained.model.settings()
    size = settings["max_words"] - settings["window"] + 1
    n_query, n_title = (
        np.minimum([len(text.split()) for text in texts], size)
        for texts in (judged.queries, judged.titles)
    )
    n_x, n_y = n_query[queries], n_title[judged.title_index]
    both = n_x * n_y
    either = size * size - (size - n_x) * (size - n_y)
    scores = {}
    for gate in GATES:
        model = make_pair_model("arc2", **settings | {"gate": gate})
        scorer = PairScorer(model, trained.vocabulary, trained.weights, threads=lab.threads)
        scores[gate] = scorer.score_pairs(
            judged.queries, judged.titles, queries, judged.title_index
        )
        p_at_1 = evaluate_model(scorer, judged, (1,)).mean[0]
        rows.add("C1", gate, what, f"{p_at_1:.4f}")
    differ = np.abs(scores[AND] - scores[PRINTED]) > 1e-4 * np.abs(scores[AND]).max()
    rows.add("C1", PRINTED, "share of its scores that differ", f"{differ.mean():.4f}")
    rows.add("C1", PRINTED, "share of its cells where a text has no word",
             f"{np.mean((either - both) / either):.4f}")  # fmt: skip
