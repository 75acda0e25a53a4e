"""How far an error travels: the derivative of a score with respect to the state after each word."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.gradients.recursion import Array, errors, matrices
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.towers import SIDES
from sentemb.system.html_tables import ShownRows, html_table, shade
from sentemb.system.parallel import Workers
from sentemb.text.arguments import as_text


@dataclass(frozen=True, eq=False)
class ErrorFlow:
    """The error on its way back through one text, in one reading direction.

    Attributes
    ----------
    side : {"query", "document"}
    direction : {"forward", "backward"}
        ``backward`` is the right-to-left half of a bidirectional model.
    words : list of str
        In the order in which this direction reads them, length T.
    output : (T,) float64
        |e(t)|, the norm of the derivative of the score with respect to y(t), through every later
        word.
    cell : (T,) float64 or None
        The same for the cell state c(t); None for the RNN.
    """

    side: str
    direction: str
    words: list[str]
    output: Array
    cell: Array | None

    @property
    def words_back(self) -> NDArray[np.int64]:
        """Distance of each word from the last, in words: T - 1, ..., 1, 0."""
        return np.arange(len(self.words))[::-1]

    @property
    def remaining(self) -> Array:
        """|e(t)| divided by its value at the last word, (T,)."""
        return self.output / self.output[-1] if self.output[-1] else np.zeros_like(self.output)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, Array]] = [("output |e|", self.output)]
        if self.cell is not None:
            rows.append(("cell state", self.cell))
        rows.append(("share of |e| that remains", self.remaining))
        return html_table(
            [(name, *(f"{value:.1e}" for value in values.tolist())) for name, values in rows],
            [f"{self.side}, {self.direction}", *self.words],
            [*[""] * (len(rows) - 1), [shade(share) for share in self.remaining.tolist()]],
        )


def gradient_flow(model: SentenceEncoder, query: str, title: str) -> list[ErrorFlow]:
    """How strongly the score of a pair depends on the state after each word.

    The score is the cosine of equation (3), whose derivative with respect to the two
    embeddings is (15). The loss multiplies it by a number that is the same for every word, so the
    fraction that remains k words back is the same for both.

    Parameters
    ----------
    model : SentenceEncoder
        With recurrent towers.
    query, title : str
        Texts with at least one word each.

    Returns
    -------
    list of ErrorFlow
        The query first, then the title; two for each text if the model is bidirectional.

    Raises
    ------
    SentembError
        If the encoder is not recurrent or a text has no words.
    """
    towers = model.towers
    encoder = towers.encoder
    if not isinstance(encoder, RecurrentEncoder):
        raise SentembError(
            f"model {encoder.name} does not read word by word, so no error travels through it; "
            "use an lstm, bilstm, rnn or irnn"
        )
    texts = dict(zip(SIDES, (as_text(query), as_text(title)), strict=True))
    split = towers.vocabulary.split
    if not all(map(split, texts.values())):
        raise SentembError("a text without words has no gradient; give one with words")
    with Workers(1) as workers:
        done = {
            side: encoder.forward(towers.weights[side], towers.vocabulary.batch([text]), workers)
            for side, text in texts.items()
        }
    by_embedding = _start_vectors(*(done[side].embeddings[0].astype(np.float64) for side in SIDES))
    starts = [
        encoder.by_length(v[None], done[side].batch.offsets)[0]
        for side, v in zip(SIDES, by_embedding, strict=True)
    ]
    flows: ShownRows[ErrorFlow] = ShownRows()
    for (side, text), v in zip(texts.items(), starts, strict=True):
        for direction, state in enumerate(done[side].states):
            rows = done[side].packing.rows_of_tokens(direction)
            words = split(text)
            if direction == 1:
                rows, words = rows[::-1], words[::-1]
            signals = errors(
                matrices(encoder, towers.weights[side], direction),
                encoder.gate_values(state, rows),
                v[direction * encoder.cells :][: encoder.cells],
            )
            flows.append(
                ErrorFlow(
                    side=side,
                    direction=("forward", "backward")[direction],
                    words=words,
                    output=np.linalg.norm(signals.e, axis=1),
                    cell=None if signals.eps is None else np.linalg.norm(signals.eps, axis=1),
                )
            )
    return flows


def _start_vectors(query: Array, title: Array) -> tuple[Array, Array]:
    """The cosine's derivatives with respect to both embeddings, equation (15)."""
    lengths = np.linalg.norm(query), np.linalg.norm(title)
    if not all(lengths):
        return np.zeros_like(query), np.zeros_like(title)
    u, w = query / lengths[0], title / lengths[1]
    return (w - (u @ w) * u) / lengths[0], (u - (u @ w) * w) / lengths[1]
