"""The backward recursion of the RNN and the LSTM for one text, in plain NumPy.

These are the equations of docs/gradients.md, sections 3 and 4, with the errors of every step kept.
Training uses the kernels; this slow second copy shows how far an error travels (`flow`) and what
happens when one term is left out (`faults`).
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.rnn import IRNN
from sentemb.system.contracts import Arrays

Array = NDArray[np.float64]


class Matrices(NamedTuple):
    """The matrices of one reading direction that the recursion needs, (n, n) float64 each.

    recurrent : Wrec of each gate; the RNN's only matrix has the key ``""``
    peepholes : Wp_1, Wp_2 and Wp_3 by ``"1"``, ``"2"``, ``"3"``; empty without peepholes
    linear : whether an RNN has the identity as activation
    """

    recurrent: dict[str, Array]
    peepholes: dict[str, Array]
    linear: bool


class Errors(NamedTuple):
    """Derivatives of the loss at every step of one text, (T, n) float64 each.

    e : with respect to y(t), through everything that follows
    eps : with respect to c(t); None for the RNN
    delta : with respect to the pre-activation of each gate
    """

    e: Array
    eps: Array | None
    delta: dict[str, Array]


def matrices(encoder: RecurrentEncoder, weights: Arrays, direction: int) -> Matrices:
    """The matrices of one direction, as the paper writes them."""
    blocks = encoder.blocks({name: np.asarray(a, np.float64) for name, a in weights.items()})
    prefix = ("forward.", "backward.")[direction] if encoder.directions == 2 else ""
    peepholes = {k: blocks[f"{prefix}Wp{k}"] for k in "123" if f"{prefix}Wp{k}" in blocks}
    return Matrices(
        {gate: blocks[f"{prefix}Wrec{gate}"] for gate in encoder.gates},
        {k: np.diag(given) if given.ndim == 1 else given for k, given in peepholes.items()},
        isinstance(encoder, IRNN),
    )


def errors(weights: Matrices, values: dict[str, np.ndarray], v: np.ndarray) -> Errors:
    """Every error of one text, from the last word back to the first.

    ``values`` (T, n) float are from `gate_values` of the encoder, in reading order; ``v`` (n,)
    float is the derivative of the loss with respect to y at the last word.
    """
    if "c" in values:
        return lstm_errors(weights, values, v)
    return _rnn_errors(weights, values, v)


def _rnn_errors(weights: Matrices, values: dict[str, np.ndarray], v: np.ndarray) -> Errors:
    y = np.asarray(values["y"], np.float64)
    e, delta = np.zeros_like(y), np.zeros_like(y)
    arriving = np.asarray(v, np.float64)
    for t in range(len(y) - 1, -1, -1):
        e[t] = arriving
        delta[t] = e[t] if weights.linear else (1 - y[t] ** 2) * e[t]
        arriving = weights.recurrent[""].T @ delta[t]
    return Errors(e, None, {"": delta})


def lstm_errors(
    weights: Matrices,
    values: dict[str, np.ndarray],
    v: np.ndarray,
    without: Collection[str] = (),
    senders: Collection[str] | None = None,
) -> Errors:
    """Section 4 of docs/gradients.md, by default in full; see `errors`.

    ``without`` are terms to leave out: "cell-path" for f(t+1) eps(t+1), "b_g" for the factor b_g(t)
    in delta_g(t), "peepholes" for all paths through the peepholes. ``senders`` are the gates whose
    Wrec sends an error to y(t-1); all of them by default.
    """
    values = {name: np.asarray(array, np.float64) for name, array in values.items()}
    c, h = values["c"], np.tanh(values["c"])
    o, f = (values.get(gate, np.ones_like(c)) for gate in "of")
    factors = gate_factors(values)
    Wp = {} if "peepholes" in without else weights.peepholes
    e, eps = np.zeros_like(c), np.zeros_like(c)
    delta = {gate: np.zeros_like(c) for gate in weights.recurrent}
    arriving, from_later = np.asarray(v, np.float64), np.zeros_like(c[0])
    for t in range(len(c) - 1, -1, -1):
        e[t] = arriving
        if "1" in delta:
            delta["1"][t] = h[t] * o[t] * (1 - o[t]) * e[t]
        eps[t] = o[t] * (1 - h[t] ** 2) * e[t] + from_later
        if "1" in Wp:
            eps[t] += Wp["1"].T @ delta["1"][t]
        for gate, factor in factors.items():
            delta[gate][t] = eps[t] if "b_g" in without else factor[t] * eps[t]
        from_later = np.zeros_like(c[0]) if "cell-path" in without else f[t] * eps[t]
        for gate in ("2", "3"):
            if gate in Wp:
                from_later = from_later + Wp[gate].T @ delta[gate][t]
        sending = weights.recurrent if senders is None else senders
        arriving = sum((weights.recurrent[g].T @ delta[g][t] for g in sending), np.zeros_like(c[0]))
    return Errors(e, eps, delta)


def gate_factors(values: dict[str, np.ndarray]) -> dict[str, Array]:
    """b_g(t), the derivative of c(t) by the pre-activation of gates 2 (if any), 3 and 4: (T, n)."""
    i, y_g = values["i"], values["y_g"]
    factors = {"3": y_g * i * (1 - i), "4": i * (1 - y_g**2)}
    if "f" in values:
        f = values["f"]
        factors["2"] = delayed(values["c"]) * f * (1 - f)
    return factors


def delayed(rows: np.ndarray) -> np.ndarray:
    """Every row moved one step later, zeros first: y(t) -> y(t-1)."""
    return np.vstack([np.zeros_like(rows[:1]), rows[:-1]])
