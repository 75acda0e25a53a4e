"""The table: figures, differences from a reference, and which of them mean something."""

from dataclasses import dataclass

import numpy as np

from sentemb.comparison.runner import CUTOFFS
from sentemb.evaluation.significance import compare_all, holm

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

    Attributes
    ----------
    row : str
    seeds : int
    ndcg, spread : list of float
        At each cut-off the mean over seeds, and the standard deviation over them (0 for one).
    difference, low, high : float or None
        Of NDCG@1 from the reference with its 95 % confidence interval; None for the reference.
    p : float or None
        Of the paired randomisation test, corrected by Holm over all lines.
    parameters : int
    seconds : float or None
        Of one training, mean over seeds; None for a model that was there.
    sentences_per_second : int or None
        Titles encoded; None for a baseline.
    settings : dict
        That were chosen on dev.
    """

    row: str
    seeds: int
    ndcg: list
    spread: list
    difference: float | None
    low: float | None
    high: float | None
    p: float | None
    parameters: int
    seconds: float | None
    sentences_per_second: int | None
    settings: dict


def table_of(comparison, names, reference=None):
    """The `Line` of every row in ``names`` (list of str) that has results.

    ``reference`` is the row that the others are compared with, by NDCG@1 on the queries that have
    a relevant title. Without it, or as long as it has no result, there are no differences.
    """
    names = [name for name in names if comparison.of(name)]
    compared = _compared(comparison, names, reference) if reference in names else {}
    return [_line(name, comparison.of(name), *compared.get(name, (None, None))) for name in names]


def _compared(comparison, names, reference):
    """Each other row's `Difference` from the reference and its corrected p."""
    base = comparison.per_query(reference)[:, 0]
    judged = ~np.isnan(base)
    others = [name for name in names if name != reference]
    figures = [comparison.per_query(name)[judged, 0] for name in others]
    differences = compare_all(figures, base[judged])
    p_values = holm([difference.p for difference in differences])
    return dict(zip(others, zip(differences, map(float, p_values))))


def _line(name, results, difference, p):
    measured = np.array([result["test"] for result in results])
    spread = measured.std(axis=0, ddof=1) if len(results) > 1 else np.zeros(len(CUTOFFS))
    speed = _mean(result["sentences_per_second"] for result in results)
    return Line(
        row=name,
        seeds=len(results),
        ndcg=measured.mean(axis=0).round(6).tolist(),
        spread=spread.round(6).tolist(),
        difference=difference and difference.mean,
        low=difference and difference.low,
        high=difference and difference.high,
        p=p,
        parameters=results[0]["parameters"],
        seconds=_mean(result["seconds"] for result in results),
        sentences_per_second=None if speed is None else round(speed),
        settings=results[0]["settings"],
    )


def _mean(values):
    """Of those that are not None; None if there are none."""
    values = [value for value in values if value is not None]
    return float(np.mean(values)) if values else None


def cells_of(lines, reference, plus_minus="+-"):
    """The table as rows of text, the head first; ``plus_minus`` stands before the spread."""
    return [list(HEAD), *(_cells(line, reference, plus_minus) for line in lines)]


def _cells(line, reference, plus_minus):
    figures = [f"{value:.3f}" for value in line.ndcg]
    if line.seeds > 1:
        figures = [f"{a} {plus_minus} {b:.3f}" for a, b in zip(figures, line.spread)]
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


def legend(lines, reference, n_queries, plus_minus="+-"):
    """What the table's figures are: sentences, as list of str."""
    said = [f"NDCG on test, gain 2^grade - 1, mean over {n_queries:,} queries."]
    if any(line.seeds > 1 for line in lines):
        counts = sorted({line.seeds for line in lines if line.seeds > 1})
        seeds = " or ".join(map(str, counts))
        said.append(f"{plus_minus}: standard deviation over {seeds} seeds.")
    if any(line.p is not None for line in lines):
        said += [
            f"Difference of NDCG@1 from {reference}, seeds averaged for each query, with its 95 % "
            "interval (paired bootstrap over queries).",
            f"p: paired randomisation test over queries, corrected by Holm; * p < {ALPHA}.",
        ]
    return said
