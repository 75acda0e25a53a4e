"""The gradient with one term left out, to watch the check fail.

Each fault drops one term of the LSTM's backward recursion (docs/gradients.md, section 4) in a
NumPy copy of it; the kernels that train are not touched.
"""

from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np

from sentemb.errors import SentembError
from sentemb.gradients.check_options import FAULTS
from sentemb.gradients.pair_problem import PairProblem
from sentemb.gradients.recursion import delayed, lstm_errors, matrices
from sentemb.models.towers.encoder import Encoder
from sentemb.models.towers.lstm import LSTM
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch


def check_fault(fault: str, encoder: Encoder, form: str = "scan") -> None:
    """Raise a `SentembError` unless the encoder has the term that ``fault`` leaves out.

    Only the form ``scan`` can be broken.
    """
    if form != "scan":
        raise SentembError(f"only the form scan can be broken; leave out the form {form}")
    if fault not in tuple(FAULTS):
        raise SentembError(f"the fault must be one of {', '.join(FAULTS)}, not {fault!r}")
    if not isinstance(encoder, LSTM):
        raise SentembError(
            f"the fault {fault} leaves out a term of the LSTM, and the model {encoder.name} has "
            "no such term; use lstm or bilstm"
        )
    if fault == "peepholes" and encoder.peepholes == "none":
        raise SentembError(
            "this model has no peepholes to leave out; choose diagonal or full peepholes"
        )


def broken_gradient(problem: PairProblem, fault: str) -> dict[str, Arrays]:
    """``problem.gradient()`` with the term of ``fault``, a key of `FAULTS`, left out.

    The result is by side and the paper's name of the block. Raises `SentembError` if the fault is
    unknown or the problem's encoder lacks the term.
    """
    towers = problem.towers
    check_fault(fault, towers.encoder)
    broken = cast(Encoder, BrokenEncoder(cast(LSTM, towers.encoder), fault))
    problem.towers = replace(towers, encoder=broken)
    try:
        return problem.gradient()
    finally:
        problem.towers = towers


class BrokenEncoder:
    """An LSTM or BiLSTM with a fault in its backward pass; everything else is delegated.

    ``fault`` is a key of `FAULTS`; None computes the exact gradient.
    """

    def __init__(self, encoder: LSTM, fault: str | None) -> None:
        self._encoder = encoder
        self._without = () if fault is None else (fault,)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._encoder, name)

    def backward(
        self, weights: Arrays, done: Any, V: np.ndarray, workers: Workers, **options: Any
    ) -> Arrays:
        """As `Encoder.backward`, text by text."""
        encoder, batch = self._encoder, done.batch
        gradient = {name: np.zeros_like(a) for name, a in weights.items() if name != "table"}
        gradient["table"] = np.zeros((batch.input_rows.size, encoder.width), V.dtype)
        blocks = encoder.blocks(gradient)  # views of the stacked arrays
        for direction, state in enumerate(done.states):
            prefix = ("forward.", "backward.")[direction] if encoder.directions == 2 else ""
            of_direction = matrices(encoder, weights, direction)
            rows_of_tokens = done.packing.rows_of_tokens(direction)
            for text in range(batch.n_texts):
                tokens = np.arange(batch.offsets[text], batch.offsets[text + 1])
                tokens = tokens[::-1] if direction == 1 else tokens
                values = encoder.gate_values(state, rows_of_tokens[tokens])
                counts = _counts(batch, batch.word_index[tokens])
                v = V[text, direction * encoder.cells :][: encoder.cells]
                for gate in encoder.gates:
                    senders = (gate,) if "other-gates" in self._without else None
                    delta = lstm_errors(of_direction, values, v, self._without, senders).delta[gate]
                    blocks[f"{prefix}W{gate}"] += delta.T @ counts
                    blocks[f"{prefix}Wrec{gate}"] += delta.T @ delayed(values["y"])
                    blocks[f"{prefix}b{gate}"] += delta.sum(axis=0)
                    if f"{prefix}Wp{gate}" in blocks:
                        cell = values["c"] if gate == "1" else delayed(values["c"])
                        block = blocks[f"{prefix}Wp{gate}"]
                        whole = delta.T @ cell
                        block += np.diagonal(whole) if block.ndim == 1 else whole
        if "Wbag" in blocks:
            for text, (start, end) in enumerate(pairwise(batch.offsets)):
                counts = _counts(batch, batch.word_index[start:end])
                blocks["Wbag"] += np.outer(V[text, encoder.n_outputs :], counts.sum(axis=0))
        return gradient


def _counts(batch: TextBatch, words: np.ndarray) -> np.ndarray:
    """l(t) of the given words over the batch's features, (T, n_rows) float64."""
    counts = np.zeros((len(words), batch.input_rows.size))
    for t, word in enumerate(words):
        span = slice(batch.feature_offsets[word], batch.feature_offsets[word + 1])
        counts[t, batch.feature_ids[span]] = batch.feature_values[span]
    return counts
