"""Small HTML tables of numbers at words, for notebooks."""

import html
from collections.abc import Mapping, Sequence

import numpy as np

# Orange for positive values and blue for negative ones, as in the figures.
_POSITIVE, _NEGATIVE = "224,138,30", "63,127,191"
_MOST_OPAQUE = 0.8


def shaded_table(title: str, words: Sequence[str], rows: Mapping[str, np.ndarray]) -> str:
    """A table with one column per word; the darker a cell, the larger its value in its row.

    Parameters
    ----------
    title : str
        The first cell of the head.
    words : list of str
        Length T.
    rows : dict of (T,) float
        Label to values. A NaN is shown as "-".
    """
    lines = [_row("th", [title, *words])]
    for label, values in rows.items():
        known = values[~np.isnan(values)]
        largest = float(np.abs(known).max()) if known.size else 0.0
        cells = [f"<th>{html.escape(label)}</th>"]
        for value in values.tolist():
            if value != value:
                cells.append("<td>-</td>")
                continue
            colour = _POSITIVE if value > 0 else _NEGATIVE
            opacity = _MOST_OPAQUE * abs(value) / largest if largest else 0.0
            cells.append(
                f'<td style="background:rgba({colour},{opacity:.2f})">{_number(value)}</td>'
            )
        lines.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def plain_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    return f"<table>{_row('th', head)}{''.join(_row('td', row) for row in rows)}</table>"


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _number(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
