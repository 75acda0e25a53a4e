"""The table: NDCG, differences from a reference, and which of them are significant."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sentemb.comparison.row import Point
from sentemb.comparison.runner import CUTOFFS, Comparison
from sentemb.comparison.store import Result
from sentemb.evaluation.significance import Difference, compare_all, holm

ALPHA = 0.05
HEAD = (
    "row",
    *(f"NDCG@{k}" for k in CUTOFFS),
    "difference @1",
    "p",
    "parameters",
    "training",
    "sentences/s",
)


@dataclass(frozen=True)
class Line:
    """One line of the table.

    seeds : number of seeds
    ndcg, spread : for each cut-off, the mean and the standard deviation over seeds (0 for one seed)
    difference, low, high : difference of NDCG@1 from the reference and its 95 % confidence
        interval; None for the reference
    p : p-value of the paired randomisation test, corrected by Holm over all lines
    parameters : number of trainable parameters
    seconds : duration of one training, mean over seeds; None for an existing model
    sentences_per_second : titles encoded per second; None for a baseline
    settings : the settings chosen on dev
    """

    row: str
    seeds: int
    ndcg: list[float]
    spread: list[float]
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    parameters: int
    seconds: float | None
    sentences_per_second: int | None
    settings: Point


def table_of(
    comparison: Comparison, names: Iterable[str], reference: str | None = None
) -> list[Line]:
    """The `Line` of every row in ``names`` that has results.

    ``reference`` is the row that the others are compared with, by NDCG@1 on the queries that have
    a relevant title. Without it, or while it has no result, there are no differences.
    """
    measured = [name for name in names if comparison.of(name)]
    compared = {}
    if reference in measured:
        compared = _compared(comparison, measured, reference)
    return [
        _line(name, comparison.of(name), *compared.get(name, (None, None))) for name in measured
    ]


def _compared(
    comparison: Comparison, names: list[str], reference: str
) -> dict[str, tuple[Difference, float]]:
    """For each other row, its `Difference` from the reference and its corrected p."""
    base = comparison.per_query(reference)[:, 0]
    judged = ~np.isnan(base)
    rest = [name for name in names if name != reference]
    figures = [comparison.per_query(name)[judged, 0] for name in rest]
    differences = compare_all(figures, base[judged])
    p_values = holm([difference.p for difference in differences])
    outcomes = zip(differences, p_values.tolist(), strict=True)
    return dict(zip(rest, outcomes, strict=True))


def _line(name: str, results: list[Result], difference: Difference | None, p: float | None) -> Line:
    measured = np.array([result["test"] for result in results])
    spread = measured.std(axis=0, ddof=1) if len(results) > 1 else np.zeros(len(CUTOFFS))
    speed = _mean(result["sentences_per_second"] for result in results)
    return Line(
        row=name,
        seeds=len(results),
        ndcg=measured.mean(axis=0).round(6).tolist(),
        spread=spread.round(6).tolist(),
        difference=None if difference is None else difference.mean,
        low=None if difference is None else difference.low,
        high=None if difference is None else difference.high,
        p=p,
        parameters=results[0]["parameters"],
        seconds=_mean(result["seconds"] for result in results),
        sentences_per_second=None if speed is None else round(speed),
        settings=results[0]["settings"],
    )


def _mean(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None; None if all are."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None


def cells_of(
    lines: Iterable[Line], reference: str | None, plus_minus: str = "+-"
) -> list[list[str]]:
    """The table as rows of text, the header first; ``plus_minus`` precedes the spread."""
    return [list(HEAD), *(_cells(line, reference, plus_minus) for line in lines)]


def _cells(line: Line, reference: str | None, plus_minus: str) -> list[str]:
    figures = [f"{value:.3f}" for value in line.ndcg]
    if line.seeds > 1:
        figures = [
            f"{mean} {plus_minus} {spread:.3f}"
            for mean, spread in zip(figures, line.spread, strict=True)
        ]
    difference, p = "reference" if line.row == reference else "-", "-"
    if line.p is not None:
        star = "*" if line.p < ALPHA else ""
        difference = f"{line.difference:+.3f}{star} ({line.low:+.3f} to {line.high:+.3f})"
        p = "< 0.001" if line.p < 0.001 else f"{line.p:.3f}"
    return [
        line.row,
        *figures,
        difference,
        p,
        f"{line.parameters:,}" if line.parameters else "-",
        "-" if line.seconds is None else f"{line.seconds:.0f} s",
        "-" if line.sentences_per_second is None else f"{line.sentences_per_second:,}",
    ]


def legend(
    lines: Sequence[Line], reference: str | None, n_queries: int, plus_minus: str = "+-"
) -> list[str]:
    """Sentences that explain the columns of the table."""
    sentences = [f"NDCG on test, gain 2^grade - 1, mean over {n_queries:,} queries."]
    if any(line.seeds > 1 for line in lines):
        counts = sorted({line.seeds for line in lines if line.seeds > 1})
        seeds = " or ".join(map(str, counts))
        sentences.append(f"{plus_minus}: standard deviation over {seeds} seeds.")
    if any(line.p is not None for line in lines):
        sentences += [
            f"Difference of NDCG@1 from {reference}, seeds averaged for each query, with its 95 % "
            "interval (paired bootstrap over queries).",
            f"p: paired randomisation test over queries, corrected by Holm; * p < {ALPHA}.",
        ]
    return sentences
