"""Shares of the score of a pair: of its words, and for ARC-II of pairs of windows.

Gradient times input, the first-order effect of fading an input out. In a network of ReLU and
maximum layers the shares of all values of one layer, together with those of the biases of the
layers above, add up to the score exactly (Euler's theorem: the score is linear in them as long as
no decision changes).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.analysis.labels import TEXT_NAMES
from sentemb.errors import SentembError
from sentemb.kernels.convolution2d import Planes
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.pairs.arc2 import ARC2, block_argmax
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.pair_model import PairModel, Pairs, Scoring, Texts
from sentemb.models.pairs.planes import convolved, pooled
from sentemb.models.pairs.registry import AND
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch


@dataclass(frozen=True, eq=False)
class WordShares:
    """The shares of a score that the words of one text add.

    words : the words that the model reads, at most its ``max_words``
    shares : (T,) float, gradient times input: dL/dx . x, where x is the word's vector and L the
        score
    n_cut : how many further words the text has
    """

    text: str
    words: list[str]
    shares: np.ndarray
    n_cut: int


@dataclass(frozen=True, eq=False)
class PooledPlane:
    """A pooled layer of ARC-II on one pair.

    layer : 2, 4, ... as the paper counts
    stride : a cell is that many windows further on than the one before it
    values : (rows, columns) float, the mean over all maps; a row per cell along the query, a column
        per cell along the title
    """

    layer: int
    stride: int
    values: np.ndarray


@dataclass(frozen=True, eq=False)
class Cells:
    """The planes of ARC-II on one pair.

    window : words of a window
    shares : (rows, columns) float, the part of the score that flows through each cell of layer 1,
        which reads window i of the query and window j of the title; summed over all maps. With the
        printed gate a last row and a last column hold the cells whose window begins after the text,
        if there are any.
    n_windows : windows of the query and of the title that begin at a word
    biases : the shares of the biases above layer 1
    """

    window: int
    shares: np.ndarray
    n_windows: tuple[int, int]
    biases: dict[str, float]
    pooled: list[PooledPlane]


@dataclass(frozen=True, eq=False)
class Match:
    """The score of a query and a title, split into shares.

    model : the name of the pair model
    texts : by ``"query"`` and ``"title"``
    biases : the share of every array of biases: dL/db . b
    cells : for ARC-II
    """

    model: str
    score: float
    texts: dict[str, WordShares]
    biases: dict[str, float]
    cells: Cells | None

    @property
    def rest(self) -> float:
        """The score minus all shares: 0, up to rounding, in a network of ReLU and maximum layers.

        Not 0 for urae, which has tanh layers, and deepmatch, where each word's share of a product
        of both texts is the whole product.
        """
        words = sum(float(text.shares.sum()) for text in self.texts.values())
        return self.score - words - sum(self.biases.values())

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        texts = {
            name: {
                "text": text.text,
                "words": [
                    {"word": word, "share": share}
                    for word, share in zip(text.words, text.shares.tolist(), strict=True)
                ],
                "words_cut": text.n_cut,
            }
            for name, text in self.texts.items()
        }
        record = {"model": self.model, "score": self.score, **texts}
        record |= {"biases": self.biases, "rest": self.rest}
        if self.cells is not None:
            record["cells"] = {
                "window": self.cells.window,
                "shares": self.cells.shares.tolist(),
                "windows": dict(zip(TEXT_NAMES.values(), self.cells.n_windows, strict=True)),
                "biases": self.cells.biases,
            }
            record["pooled"] = [
                {"layer": plane.layer, "stride": plane.stride, "mean": plane.values.tolist()}
                for plane in self.cells.pooled
            ]
        return record


def match(scorer: PairScorer, query: str, title: str) -> Match:
    """Split the score of a query and a title into shares of words and windows.

    ``scorer`` is any pair model. Raises `SentembError` for a text without words, or numbers that
    are not finite.
    """
    model, weights = scorer.model, scorer.weights
    given = dict(zip(TEXT_NAMES.values(), (query, title), strict=True))
    words = {name: scorer.vocabulary.split(text) for name, text in given.items()}
    if not all(words.values()):
        raise SentembError("a text without words has no shares; give one with words")
    batch = scorer.vocabulary.batch([query, title])
    unit_error = np.ones(1, scorer.dtype)
    with Workers(1) as workers:
        P = model.project(weights, batch, workers)
        run = Pass(weights, P, Workspace())
        done = workers.together(_score_tasks(model, run, batch))[0]
        score = float(done.scores[0])
        if not np.isfinite(score):
            raise SentembError("the score is not finite; train the model again")
        gradient, errors = workers.together(model.backward_tasks(run, done, unit_error))[0]
        biases = {
            name: float(np.vdot(weights[name], gradient[name]))
            for name in weights
            if "bias" in name and name in gradient
        }
        texts = {}
        for side, reading in zip(SIDES, (done.queries, done.titles), strict=True):
            index, name = reading.texts.word_index, TEXT_NAMES[side]
            texts[name] = _word_shares(given[name], words[name], P[index], errors[side])
        cells = None
        if isinstance(model, ARC2):
            of_cells = model.cell_error_tasks(run, done, unit_error)
            cells = _cells(model, weights, done, workers.together(of_cells)[0], biases)
    return Match(str(model.name), score, texts, biases, cells)


def _word_shares(text: str, words: list[str], P: np.ndarray, errors: np.ndarray) -> WordShares:
    """The shares of the words that were read: the rows of ``P``, (k, n), times their errors."""
    shares = np.einsum("tj,tj->t", P, errors).astype(np.float64)
    return WordShares(text, words[: len(P)], shares, len(words) - len(P))


def _score_tasks(model: PairModel, given: Pass, batch: TextBatch) -> Job[Scoring]:
    """The score of the first text of ``batch`` with the second, as a job."""
    readings = []
    for k, side in enumerate(SIDES):
        tokens = batch.word_index[batch.offsets[k] : batch.offsets[k + 1]]
        texts = Texts(tokens, np.array([0, tokens.size])).cut(model.max_words)
        readings.append((yield from model.read_tasks(given, side, texts)))
    queries, titles = readings
    pair = np.zeros(1, np.int32)
    return (yield from model.score_tasks(given, Pairs(queries, titles, pair, pair)))


def _cells(
    model: ARC2, weights: Arrays, done: Scoring, D: np.ndarray, biases: dict[str, float]
) -> Cells:
    """The planes of the pair in ``done``; ``D`` (n_cells, maps) has the errors of layer 2."""
    first = Planes(done.arrays["shapes"], done.arrays["cells"])
    on = int(done.queries.arrays["windows"][0]), int(done.titles.arrays["windows"][0])
    size = model.sizes[0][0]
    z1, at_i, at_j = _first_layers(model, weights, done, first)
    # Windows after the text share one row, or column: the last.
    extent = [n + (model.gate != AND and n < size) for n in on]
    shares = np.zeros(extent)
    np.add.at(
        shares,
        (np.minimum(at_i, extent[0] - 1), np.minimum(at_j, extent[1] - 1)),
        np.where(z1 > 0, z1 * D, 0),
    )
    above = {name: share for name, share in biases.items() if name != "windows_bias"}
    planes, before, (rows, columns) = [], first, on
    for number, (windows, cells) in enumerate(model.sizes, 1):
        maps = np.maximum(z1, 0)
        if number > 1:
            before = pooled(convolved(before, windows))
            maps = done.arrays[f"M{2 * number - 1}"]
        plane = np.zeros((cells, cells))
        for position, values in zip(_positions(before), maps, strict=True):
            plane[position] = values.mean()
        rows, columns = (-(-min(n, windows) // 2) for n in (rows, columns))
        planes.append(PooledPlane(2 * number, 2**number, plane[:rows, :columns]))
    return Cells(model.window, shares, on, above, planes)


def _positions(planes: Planes) -> Iterator[tuple[int, int]]:
    """Row and column of every cell of the only plane, in their order."""
    upper, width, rows, rest = planes.shapes[0].tolist()
    for p in range(rows):
        for q in range(width if p < upper else rest):
            yield p, q


def _first_layers(
    model: ARC2, weights: Arrays, done: Scoring, first: Planes
) -> tuple[np.ndarray, NDArray[np.integer], NDArray[np.integer]]:
    """The greatest W z + b of each cell of layer 2, before the ReLU, and the windows it is from.

    Returns values, i and j, (n_cells, maps) each: window i of the query and j of the title, the
    first of equals.
    """
    queries, titles = done.queries.arrays, done.titles.arrays
    U, V, bias = queries["units"], titles["units"], weights["windows_bias"]
    p, q = np.array(list(_positions(first))).T
    if model.gate == AND:
        at_i, at_j = (2 * p[:, None] + queries["later"][p], 2 * q[:, None] + titles["later"][q])
        return U[p] + V[q] + bias, at_i, at_j
    size = model.sizes[0][0]
    greatest = block_argmax(done.queries, 0, done.titles, 0, size)
    greatest = greatest[p * -(-size // 2) + q]
    at_i, at_j = 2 * p[:, None] + greatest // 2, 2 * q[:, None] + greatest % 2
    # A window after the text adds nothing.
    U, V = (np.vstack([X, np.zeros((size - len(X), X.shape[1]), X.dtype)]) for X in (U, V))
    return np.take_along_axis(U, at_i, 0) + np.take_along_axis(V, at_j, 0) + bias, at_i, at_j
