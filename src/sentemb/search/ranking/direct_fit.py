"""The weights of the parts that look a query up as it is written.

They are added to a sum that is finished. Names, and the clicks of a log without counts, outweigh
the sum: a pair that is a judgement is right whatever the model says, and no held-out query can say
by how much. Where single clicks were held out, those tell the weight of clicks. Where a record says
how often titles were looked at, clicks count by these.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.search.ranking.base_fit import CANDIDATES
from sentemb.search.ranking.direct_parts import KAPPA
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import (
    CLICKS,
    DIRECT,
    EXAMINED,
    MAX_WEIGHT,
    NAME,
    UNCLICKED,
    Recipe,
)
from sentemb.search.ranking.weights import Candidates, fit_weights, losses_of

# With fewer queries than this the weight of clicks is not fitted.
FEW_TYPED = 50
_BOTH = np.ones(2, np.bool_)
# Weights that are tried are larger by this factor, one after the other.
_STEP = 1.25
# Whatever the fit says, ten clicks on the fifth title bring it to the front for this share of the
# queries for which it then has twice the clicks of any other title: what people click again and
# again they must see.
_CLICKS, _PLACE, _SHARE = 10, 5, 0.9
# Some weight is left, so that more clicks never lower a title.
_LEAST = 0.01
# The weight of clicks over examinations, chosen in years of benchmarks/loop.py.
OF_EXAMINATIONS = 8.0
# What the first click adds to the value of its part.
_FIRST_CLICK = float(np.log1p(1 / KAPPA))


def outweighing(recipe: Recipe, spread: Mapping[str, float]) -> Recipe:
    """The recipe with direct parts that outweigh any difference between its other parts.

    ``spread`` is by part the largest difference between the scores of two titles.
    """
    most = sum(abs(recipe.weight(part)) * spread.get(part, 1.0) for part in recipe.parts)
    direct = {CLICKS: most / _FIRST_CLICK, NAME: most}
    return recipe.weighted({**recipe.weights, **_rounded(direct)})


def fitted_to_clicks(ranker: HybridRanker, typed: ClickLog) -> Recipe:
    """The recipe of ``ranker`` with the weight of clicks that ranks held-out clicks best.

    ``typed`` are single clicks that were held out, of queries that the ranker has clicks for; its
    titles are those of the ranker.
    """
    recipe, titles = ranker.recipe, ranker.titles
    number_of = {title.strip(): number for number, title in enumerate(titles)}
    numbers = np.array([number_of.get(title.strip(), -1) for title in typed.titles], np.int64)
    is_there = numbers[typed.title_index] >= 0
    right = typed.query_index[is_there].astype(np.int64), numbers[typed.title_index[is_there]]
    # Names add to clicked titles alone where a query has clicks.
    sum_of = {part: recipe.weight(part) for part in recipe.parts if part not in DIRECT}
    rankers = ranker.weighted(sum_of), ranker.alone(CLICKS)
    best = [_pairs(each.find(typed.queries, CANDIDATES)[0]) for each in rankers]
    counts = typed.clicks[is_there].astype(np.float64)
    candidates = Candidates.of(right, counts, best, len(titles))
    if candidates is None:
        return recipe
    pairs = candidates.query_index, candidates.title_index
    scores, values = ranker.parts_of_pairs(typed.queries, titles, *pairs)
    clicks = values[CLICKS]
    rest = scores - recipe.weight(CLICKS) * clicks
    most = recipe.weight(CLICKS)
    weight = max(largest_as_good(rest, clicks, candidates, most), min(_LEAST, most))
    while weight < most and _share_brought(rest, clicks, candidates, weight) < _SHARE:
        weight = min(weight * _STEP, most)
    return recipe.weighted({**recipe.weights, **_rounded({CLICKS: _at_least(recipe, weight)})})


def with_examinations(recipe: Recipe) -> Recipe:
    """The recipe with the weight of clicks over examinations.

    The weight is not fitted: held-out clicks favour what was shown high, as the clicks do that are
    there. The sum is fitted as the logarithm of a probability, and so is this.
    """
    weight = _at_least(recipe, OF_EXAMINATIONS)
    direct = _rounded({CLICKS: weight, EXAMINED: weight})
    return recipe.weighted({**recipe.weights, **direct})


def _at_least(recipe: Recipe, weight: float) -> float:
    # The first click of a title takes the constant of titles without clicks from it.
    return max(weight, max(recipe.weight(UNCLICKED), 0) / _FIRST_CLICK, _LEAST)


def largest_as_good(
    rest: NDArray[np.float64], clicks: NDArray[np.float64], candidates: Candidates, most: float
) -> float:
    """The largest weight of clicks, up to ``most``, that ranks as well as the best one.

    As well is within a standard error of the loss. Clicks of the very query are better evidence the
    more there are, and the queries with most clicks are few among those that are held out.
    """
    # The sum was fitted to other queries, so its scale is free, and only the ratio counts.
    features = np.stack([rest, clicks], axis=1)
    fit = fit_weights(features, candidates, None, not_negative=_BOTH)
    scale, of_clicks = map(float, fit.weights)
    if not scale:
        return most
    if not of_clicks:
        return 0.0
    least = losses_of(features @ fit.weights, candidates)
    weight = min(of_clicks / scale, most)
    while weight < most:
        tried = min(weight * _STEP, most)
        total = (rest + tried * clicks)[:, None]
        losses = losses_of(total @ fit_weights(total, candidates).weights, candidates)
        behind = losses - least
        if behind.mean() > behind.std() / np.sqrt(behind.size):
            break
        weight = tried
    return weight


def _share_brought(
    rest: NDArray[np.float64], clicks: NDArray[np.float64], candidates: Candidates, weight: float
) -> float:
    """The share of queries for which `_CLICKS` clicks bring the title at `_PLACE` to the front.

    Only of those for which no other title has more than half as many clicks then.
    """
    total = rest + weight * clicks
    first = np.flatnonzero(np.diff(candidates.query_index, prepend=-1))
    is_long = np.diff(np.append(first, total.size)) >= _PLACE
    order = np.lexsort((-total, candidates.query_index))
    best, chosen = order[first[is_long]], order[first[is_long] + _PLACE - 1]
    then = np.logaddexp(clicks[chosen], np.log(_CLICKS / KAPPA))
    has_most = then >= np.maximum.reduceat(clicks, first)[is_long] + np.log(2)
    is_first = rest[chosen] + weight * then > total[best]
    return float(is_first[has_most].mean()) if has_most.any() else 1.0


def _pairs(titles: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The titles that were found for each query, (n_queries, k), as pairs."""
    query_index, column = np.nonzero(titles >= 0)
    return query_index, titles[query_index, column]


def _rounded(weights: Mapping[str, float]) -> dict[str, float]:
    # Three digits: what is shown is what is stored.
    return {part: min(float(f"{weight:.3g}"), MAX_WEIGHT) for part, weight in weights.items()}
