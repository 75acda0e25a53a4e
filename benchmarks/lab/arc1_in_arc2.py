"""ARC-I as a special case of ARC-II, section 3.3 of Hu et al. (NIPS 2014), by construction."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.matcher import Matcher


def arc2_from_arc1(matcher: Matcher, gate: str = "and") -> Matcher:
    """An ARC-II that gives every pair of texts with words the score of the ARC-I ``matcher``.

    The first half of the maps of each layer reads the query alone, along the rows of the planes;
    the other half reads the title along the columns. The MLP reads the query's maps in the first
    column and the title's in the first row. A text without words switches all cells of its pair
    off, so there the scores differ.

    Parameters
    ----------
    matcher : Matcher
        An ARC-I.
    gate : {"and", "printed"}
        The ARC-II's gate. With "printed", equation (3) to the letter, the scores differ as soon as
        a text has fewer words than layer 1 has windows.

    Returns
    -------
    Matcher
        With the same vocabulary and twice the maps. Its ``table`` is that of ``matcher``.

    Raises
    ------
    SentembError
        For another model.
    """
    arc1, given = matcher.model, matcher.parameters()
    if arc1.name != "arc1":
        raise SentembError(f"the model is {arc1.name}, not arc1")
    settings: dict[str, Any] = {
        key: value for key, value in arc1.settings().items() if key != "shared_towers"
    }
    maps = arc1.maps
    arc2 = make_pair_model("arc2", **settings | {"maps": [2 * n for n in maps], "gate": gate})
    weights = {
        name: np.zeros(shape, matcher.dtype)
        for name, shape in arc2.shapes(len(matcher.vocabulary)).items()
    }
    weights |= {name: matcher.weights[name].copy() for name in arc2.head.shapes() if name != "mlp1"}
    weights["table"] = matcher.weights["table"]

    def of(name: str, side: str) -> np.ndarray:
        return given[name if arc1.shared_towers else name + side]

    weights["windows_query"][:, : maps[0]] = of("W1", "x").T
    weights["windows_document"][:, maps[0] :] = of("W1", "y").T
    weights["windows_bias"][:] = np.concatenate([of("b1", "x"), of("b1", "y")])
    for layer, (before, after) in enumerate(itertools.pairwise(maps), 1):
        name, k = str(2 * layer + 1), arc1.window
        # The matrix of each offset in a window of k x k cells.
        W = weights[f"maps{name}"].reshape(k, k, 2 * before, 2 * after)
        W[:, 0, :before, :after] = of(f"W{name}", "x").T.reshape(k, before, after)
        W[0, :, before:, after:] = of(f"W{name}", "y").T.reshape(k, before, after)
        weights[f"maps_bias{name}"][:] = np.concatenate([of(f"b{name}", side) for side in "xy"])
    last = maps[-1]
    query, title = np.split(matcher.weights["mlp1"].reshape(-1, last, arc1.mlp), 2)
    first = weights["mlp1"].reshape(len(query), len(title), 2 * last, arc1.mlp)
    first[:, 0, :last], first[0, :, last:] = query, title
    return Matcher(arc2, matcher.vocabulary, weights)
