"""The table: figures, differences from a reference, and which of them mean something."""

from dataclasses import asdict, dataclass

import numpy as np

from sentemb.comparison.runner import CUTOFFS
from sentemb.errors import SentembError
from sentemb.retrieval.significance import compare_paired, holm

ALPHA = 0.05
HEAD = (
    "model",
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
        Of one training.
    sentences_per_second : int or None
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

    def as_dict(self):
        return asdict(self)


def table_of(comparison, names, reference=None):
    """The `Line` of every row in ``names`` (list of str) that has results.

    ``reference`` is the row that the others are compared with, by NDCG@1 on the queries that have
    a relevant title.
    """
    names = [name for name in names if comparison.of(name)]
    if reference is not None and reference not in names:
        raise SentembError(
            f"the reference {reference} has no result; choose one of {', '.join(names) or 'none'}"
        )
    figures = {name: comparison.per_query(name)[:, 0] for name in names}
    compared = {}
    if reference is not None:
        judged = ~np.isnan(figures[reference])
        base = figures[reference][judged]
        compared = {
            name: compare_paired(figures[name][judged], base) for name in names if name != reference
        }
    p_values = dict(zip(compared, holm([difference.p for difference in compared.values()])))
    lines = []
    for name in names:
        results = comparison.of(name)
        measured = np.array([result["test"] for result in results])
        seconds = [result["seconds"] for result in results if result["seconds"] is not None]
        speeds = [result["sentences_per_second"] for result in results]
        against = compared.get(name)
        lines.append(
            Line(
                row=name,
                seeds=len(results),
                ndcg=measured.mean(axis=0).round(6).tolist(),
                spread=(measured.std(axis=0, ddof=1) if len(results) > 1 else 0 * measured[0])
                .round(6)
                .tolist(),
                difference=against and against.mean,
                low=against and against.low,
                high=against and against.high,
                p=None if against is None else float(p_values[name]),
                parameters=results[0]["parameters"],
                seconds=float(np.mean(seconds)) if seconds else None,
                sentences_per_second=None if None in speeds else round(np.mean(speeds)),
                settings=results[0]["settings"],
            )
        )
    return lines


def cells_of(lines, reference):
    """The table as rows of text, the head first."""
    rows = [list(HEAD)]
    for line in lines:
        marks = [f"{value:.3f}" for value in line.ndcg]
        if line.seeds > 1:
            marks[0] += f" ± {line.spread[0]:.3f}"
        difference, p = "-" if reference is None else "reference", "-"
        if line.p is not None:
            star = "*" if line.p < ALPHA else ""
            difference = f"{line.difference:+.3f}{star} ({line.low:+.3f} to {line.high:+.3f})"
            p = "< .001" if line.p < 0.001 else f"{line.p:.3f}".lstrip("0")
        rows.append(
            [
                line.row,
                *marks,
                difference,
                p,
                f"{line.parameters:,}" if line.parameters else "-",
                "-" if line.seconds is None else f"{line.seconds:.0f} s",
                "-" if line.sentences_per_second is None else f"{line.sentences_per_second:,}",
            ]
        )
    return rows


def legend(lines, reference, n_queries):
    """What the table's figures are, in words."""
    seeds = max((line.seeds for line in lines), default=1)
    text = f"NDCG with gain 2^grade - 1 over {n_queries:,} test queries"
    if seeds > 1:
        text += f"; mean of up to {seeds} seeds ± their standard deviation"
    if reference is not None:
        text += (
            f". Differences of NDCG@1 from {reference} with 95 % confidence intervals (paired "
            "bootstrap over queries); p of the paired randomisation test, corrected by Holm; "
            f"* where p < {ALPHA}"
        )
    return text + "."
