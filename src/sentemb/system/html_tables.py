"""Small HTML tables, with which objects draw themselves in a notebook."""

from collections.abc import Sequence
from html import escape

# A translucent blue and orange, legible on light and dark pages and to the colour-blind.
_SHADE = "rgba(0, 114, 178, {:.2f})"
FAILED = "rgba(213, 94, 0, 0.20)"


def html_table(
    rows: Sequence[Sequence[object]],
    heads: Sequence[object] = (),
    colours: Sequence[str | Sequence[str]] | None = None,
) -> str:
    """A table; the first cell of each row is its heading.

    Parameters
    ----------
    rows : sequence of sequence
        Shown with `str`, escaped.
    heads : sequence
        Headings of the columns.
    colours : sequence of str or of sequence of str, optional
        The background of each row, or of every cell after its heading; "" for none.
    """
    lines = ["<table>"]
    if heads:
        lines += ["<tr>", *(f"<th>{escape(str(head))}</th>" for head in heads), "</tr>"]
    for number, (first, *rest) in enumerate(rows):
        colour = "" if colours is None else colours[number]
        cells = [colour] * len(rest) if isinstance(colour, str) else colour
        lines.append(f"<tr><th>{escape(str(first))}</th>")
        for value, background in zip(rest, cells, strict=True):
            style = f' style="background: {background}"' if background else ""
            lines.append(f"<td{style}>{escape(str(value))}</td>")
        lines.append("</tr>")
    return "".join([*lines, "</table>"])


def shade(share: float) -> str:
    """A background from clear (0) to blue (1)."""
    return _SHADE.format(0.8 * min(max(share, 0.0), 1.0))
