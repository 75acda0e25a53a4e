"""Choose what a ranker adds up: the parameters of BM25, then the weights of the parts.

BM25 alone is measured for plain words and for stems, with k1, b and the weight of clicks improved
one after the other, in two rounds. Then every pair of weights is tried for BM25 and for the memory.
A sum is chosen only if neither its NDCG@1 nor its MRR@10 is below that of the best part on dev.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.ranking.parts import TitleParts
from sentemb.ranking.recipe import BM25, COSINE, MEMORY, Recipe
from sentemb.ranking.targets import Figures, Target

BM25_WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)
MEMORY_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
# The parameters of BM25 that are tried, in this order.
GRID: dict[str, tuple[float, ...]] = {
    "k1": (0.3, 0.6, 0.9, 1.2, 1.8),
    "b": (0.0, 0.2, 0.4, 0.6, 0.75, 0.9),
    "click_weight": (0.0, 0.1, 0.25, 0.5, 0.75, 1.0),
}
# The figures in which a ranker may not be below one of its parts.
DECISIVE = ("ndcg@1", "mrr@10")
_ROUNDS = 2
# Differences of means that are rounding errors.
_EQUAL = 1e-9


class Tuned(NamedTuple):
    """The best recipe and the figures of its parts.

    Attributes
    ----------
    recipe : Recipe
    figures : dict of str to dict of str to float
        By part, each alone, and ``"sum"`` for the recipe.
    """

    recipe: Recipe
    figures: dict[str, Figures]


def tune_bm25(
    target: Target,
    lists_of: Callable[[Recipe], InvertedIndex],
    stems: Sequence[str | None],
    has_clicks: bool,
    on_point: Callable[[], None],
) -> tuple[Recipe, InvertedIndex]:
    """The best parameters of BM25 alone, and its lists.

    Parameters
    ----------
    target : Target
        What is measured.
    lists_of : function of a Recipe
        Makes the lists of BM25; called once for each of ``stems``.
    stems : sequence of str or None
        Languages of stemmers, or None for plain words. Of equal figures the first is chosen.
    has_clicks : bool
        Whether there are clicks; otherwise titles alone are read.
    on_point : function
        Called after every point.
    """
    best: tuple[Figures, Recipe, InvertedIndex] | None = None
    for stem in stems:
        start = Recipe(stem=stem, click_weight=float(has_clicks))
        lists = lists_of(start)
        words = target.words(lists)
        seen = {start: target.of_lists(_with(lists, start), words)}
        chosen = start
        for _, (name, values) in product(range(_ROUNDS), GRID.items()):
            if name == "click_weight" and not has_clicks:
                continue
            for value in values:
                changed: dict[str, Any] = {name: value}
                point = replace(chosen, **changed)
                if point not in seen:
                    seen[point] = target.of_lists(_with(lists, point), words)
                if is_better(seen[point], seen[chosen]):
                    chosen = point
                on_point()
        if best is None or is_better(seen[chosen], best[0]):
            best = seen[chosen], chosen, lists
    assert best is not None  # there is at least one stemmer or None
    return best[1], _with(best[2], best[1])


def _with(lists: InvertedIndex, recipe: Recipe) -> InvertedIndex:
    click_weight = recipe.click_weight if lists.has_clicks else None
    return lists.with_parameters(recipe.k1, recipe.b, click_weight)


def tune_weights(target: Target, parts: TitleParts, lexical: Recipe, names: Sequence[str]) -> Tuned:
    """The best weights of the parts.

    Parameters
    ----------
    target : Target
        What is measured.
    parts : TitleParts
        Over the titles of ``target``.
    lexical : Recipe
        The parameters of BM25.
    names : sequence of str
        The parts that may have a weight.
    """
    figures = target.prepare(parts, names)
    best = max(names, key=lambda name: merit(figures[name]))
    floors = {
        figure: max(figures[name][figure] for name in names)
        for figure in DECISIVE
        if figure in figures[best]
    }
    alone = lexical.alone(best), figures[best]
    chosen, of_chosen = alone
    for point in sums_of(lexical, names):
        found = target.of_sum(point)
        if is_above(found, floors) and is_better(found, of_chosen):
            chosen, of_chosen = point, found
    # Candidates may lack a title that ranks high in the sum alone; the result may not.
    of_chosen = target.exactly(chosen)
    if not is_above(of_chosen, floors):
        chosen, of_chosen = alone
    return Tuned(chosen, {"sum": of_chosen, **figures})


def sums_of(lexical: Recipe, names: Sequence[str]) -> list[Recipe]:
    """The weights to try, small ones first: of equal figures the first is chosen."""
    of_bm25 = BM25_WEIGHTS if BM25 in names else (0.0,)
    of_memory = MEMORY_WEIGHTS if MEMORY in names else (0.0,)
    with_cosine = sorted(product(of_bm25, of_memory), key=sum)
    points = [lexical.weighted(1.0, *weights) for weights in with_cosine]
    points += [lexical.alone(name) for name in names if name != COSINE]
    if BM25 in names:
        points += [lexical.weighted(0.0, 1.0, weight) for weight in of_memory if weight]
    return points


def is_above(figures: Figures, floors: Figures) -> bool:
    """Whether no figure is below its floor, by more than a rounding error."""
    return all(figures[name] >= floor - _EQUAL for name, floor in floors.items())


def merit(figures: Figures) -> float:
    """What points are chosen by: MRR@10; on judged sets the mean of it and NDCG@1 and @3.

    NDCG@1 depends on one title per query. With @3 too, half of a dev set chooses weights that are
    better on the other half, in NDCG@1 too. MRR@10 over all titles has the same share as the two.
    """
    if "ndcg@1" not in figures:
        return figures["mrr@10"]
    return (figures["ndcg@1"] + figures["ndcg@3"]) / 4 + figures["mrr@10"] / 2


def is_better(one: Figures, other: Figures) -> bool:
    """Whether the merit of figures is higher, by more than a rounding error."""
    return merit(one) > merit(other) + _EQUAL


def n_points(n_stems: int) -> int:
    """How often `tune_bm25` calls ``on_point``, if there are clicks."""
    return n_stems * _ROUNDS * sum(map(len, GRID.values()))
