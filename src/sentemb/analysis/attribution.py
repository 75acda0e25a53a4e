"""The effect of each word on the score of a query and a title.

There are two answers: how the cosine changes when the word is left out, and gradient times input,
the first-order effect of fading the word out. Section V of Palangi et al. (arXiv 1502.06922) judges
the importance of words from the gates alone; this module asks the score itself, through the
encoder's own backward pass.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.contracts import Ranker
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.encoder import ForwardPass
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.towers import SIDES
from sentemb.system.html_tables import html_table, shade
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary


@dataclass(frozen=True, eq=False)
class WordEffects:
    """The effect of each of the T words of one text on the score.

    Notebooks show it as a table.

    Attributes
    ----------
    words : list of str
    left_out : (T,) float
        The score minus the score of the text without this word; an empty text scores 0.
    gradient : (T,) float
        d score / d s at s = 1, where s scales l(t), the word's feature counts: the derivative with
        respect to W_g l(t), times W_g l(t), summed over the gates g and the cells (and over
        Wbag l(t) if the encoder has a bag).
    """

    words: list[str]
    left_out: np.ndarray
    gradient: np.ndarray

    def _repr_html_(self) -> str:
        rows = {"left out": self.left_out, "gradient × input": self.gradient}
        return html_table(
            [(name, *(f"{x:+.3f}" for x in row)) for name, row in rows.items()],
            ["effect on the score", *self.words],
            [[shade(x) for x in row / (np.abs(row).max() or 1.0)] for row in rows.values()],
        )


def word_effects(model: SentenceEncoder, query: str, title: str) -> dict[str, WordEffects]:
    """The effect of every word of a query and a title on their cosine.

    Parameters
    ----------
    model : SentenceEncoder
        A recurrent model.
    query, title : str
        Texts with at least one word each.

    Returns
    -------
    dict of WordEffects
        ``"query"`` and ``"document"``.

    Raises
    ------
    SentembError
        For a text without words.
    """
    split = model.vocabulary.split
    words = {side: split(text) for side, text in zip(SIDES, (query, title), strict=True)}
    if not all(words.values()):
        raise SentembError("a text without words has no effects; give one with words")
    with Workers(1) as workers:
        done = {
            side: _forward(model, side, _with_each_left_out(words[side], model.vocabulary), workers)
            for side in SIDES
        }
        effects = {}
        for side, opposite in (SIDES, SIDES[::-1]):
            y = done[opposite].embeddings[0]
            scores, gradient = _cosines(done[side].embeddings, y)
            by_input = _gradient_times_input(model, side, done[side], gradient, workers)
            effects[side] = WordEffects(words[side], scores[0] - scores[1:], by_input)
    return effects


def left_out_effects(
    ranker: Ranker, query: Sequence[str], title: Sequence[str], vocabulary: Vocabulary
) -> tuple[float, np.ndarray, np.ndarray]:
    """The score of a pair, and how it changes when a word is left out, for any ranker.

    It scores the texts that the words make, as ``vocabulary`` puts them together. The effects,
    (Tq,) for the words of the query and (Td,) for those of the title, are the score minus the score
    without the word.
    """
    queries, titles = (_with_each_left_out(words, vocabulary) for words in (query, title))
    query_index = np.concatenate([np.arange(len(queries)), np.zeros(len(title), np.int64)])
    title_index = np.concatenate([np.zeros(len(queries), np.int64), np.arange(1, len(titles))])
    scores = ranker.score_pairs(queries, titles, query_index, title_index)
    effects = scores[0] - scores[1:]
    return float(scores[0]), effects[: len(query)], effects[len(query) :]


def _with_each_left_out(words: Sequence[str], vocabulary: Vocabulary) -> list[str]:
    """The whole text, then the T texts with one word left out."""
    rests = ([*words[:t], *words[t + 1 :]] for t in range(len(words)))
    return [vocabulary.text_of(words_left) for words_left in (words, *rests)]


def _forward(model: SentenceEncoder, side: str, texts: list[str], workers: Workers) -> ForwardPass:
    return model.encoder.forward(model.weights[side], model.vocabulary.batch(texts), workers)


def _cosines(Y: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cosines of every row of Y with y, and the gradient of the first one with respect to Y.

    ``Y`` (k, dim) float are embeddings; row 0 is that of the whole text. ``y`` (dim,) is the
    embedding of the other text. The cosines (k,) are 0 where a vector is zero. The gradient (k,
    dim) is (u_y - cos u) / |Y_0| in the first row, where u are unit vectors; 0 in all others.
    """
    norms = np.linalg.norm(Y, axis=1)
    norm = np.linalg.norm(y)
    units = np.divide(Y, norms[:, None], out=np.zeros_like(Y), where=norms[:, None] != 0)
    unit = y / norm if norm else y
    cosines = units @ unit
    gradient = np.zeros_like(Y)
    if norms[0]:
        gradient[0] = (unit - cosines[0] * units[0]) / norms[0]
    return cosines, gradient


def _gradient_times_input(
    model: SentenceEncoder, side: str, done: ForwardPass, V: np.ndarray, workers: Workers
) -> np.ndarray:
    """The derivative of the score with respect to a scale on each word of the first text: (T,).

    The model is recurrent; its tower ``side`` read the texts. ``done`` is from `_forward`; ``V``
    (n_texts, dim) float is the derivative of the score with respect to the embeddings.
    """
    encoder = cast(RecurrentEncoder, model.encoder)
    weights, batch = model.weights[side], done.batch
    projected = encoder.project(weights, batch, workers)
    projected -= encoder.word_bias(weights, projected.dtype)
    tokens = slice(batch.offsets[0], batch.offsets[1])
    inputs = projected[batch.word_index[tokens]]
    effects = inputs[:, encoder.bag_column :] @ V[0, encoder.n_outputs :]
    for direction, D in enumerate(encoder.input_errors(weights, done, V, workers)):
        rows = done.packing.rows_of_tokens(direction)[tokens]
        column = direction * encoder.gate_width
        part = inputs[:, column : column + encoder.gate_width]
        effects += np.einsum("tj,tj->t", D[rows], part)
    return effects
