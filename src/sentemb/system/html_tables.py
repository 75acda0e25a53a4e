"""Small HTML tables, with which objects draw themselves in a notebook."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any, TypeVar

ItemT = TypeVar("ItemT")

# A translucent blue and orange, legible on light and dark pages and to the colour-blind.
_SHADE = "rgba(0, 114, 178, {:.2f})"
FAILED = "rgba(213, 94, 0, 0.20)"
# Rows of a list, objects of a list, and rows that show what a data set looks like.
_LISTED = 100
_BELOW_EACH_OTHER = 20
_FIRST = 5
_CHARACTERS = 300


def html_table(
    rows: Sequence[Sequence[object]],
    heads: Sequence[object] = (),
    colours: Sequence[str | Sequence[str]] | None = None,
    texts: Collection[int] = (),
) -> str:
    """A table that scrolls if it is wider than the page; a row's first cell is its heading.

    rows : shown with `str`, floats with three digits, None as nothing; cut if long, and escaped
    heads : headings of the columns
    colours : the background of each row, or of every cell after its heading; "" for none
    texts : the columns that are flush left; notebooks put all others flush right
    """
    lines = ['<div style="overflow-x: auto"><table>']
    if heads:
        lines += ["<tr>", *(_cell("th", k, head, "", texts) for k, head in enumerate(heads))]
        lines.append("</tr>")
    for number, (first, *rest) in enumerate(rows):
        colour = "" if colours is None else colours[number]
        cells = [colour] * len(rest) if isinstance(colour, str) else colour
        lines += ["<tr>", _cell("th", 0, first, "", texts)]
        for k, (value, background) in enumerate(zip(rest, cells, strict=True), 1):
            lines.append(_cell("td", k, value, background, texts))
        lines.append("</tr>")
    return "".join([*lines, "</table></div>"])


def _cell(tag: str, column: int, value: object, background: str, texts: Collection[int]) -> str:
    styles = [f"background: {background}"] if background else []
    if column in texts:
        styles.append("text-align: left")
    style = f' style="{"; ".join(styles)}"' if styles else ""
    return f"<{tag}{style}>{escape(_shown(value))}</{tag}>"


def _shown(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}"
    text = f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    return text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…"


def facts_table(facts: Mapping[str, object]) -> str:
    """A table of names and values; None is left out."""
    return html_table([fact for fact in facts.items() if fact[1] is not None], texts=(0, 1))


def excerpt(
    rows: Iterable[Sequence[object]], total: int, heads: Sequence[object], texts: Collection[int]
) -> str:
    """The first of ``total`` rows, as `html_table` shows them, and how many more there are."""
    return _first(rows, total, _FIRST, heads, texts)


def _first(
    rows: Iterable[Sequence[object]],
    total: int,
    most: int,
    heads: Sequence[object],
    texts: Collection[int],
) -> str:
    table = html_table(list(islice(rows, most)), heads, texts=texts)
    return table + _rest(total - most)


def _rest(count: int) -> str:
    return f"<p>and {count:,} more</p>" if count > 0 else ""


def shade(share: float) -> str:
    """A background from clear (0) to blue (1)."""
    return _SHADE.format(0.8 * min(max(share, 0.0), 1.0))


class ShownRows(list[ItemT]):
    """A list that a notebook shows: named tuples and dicts as a table, others below each other.

    Parameters
    ----------
    items : iterable
        The elements of the list.
    caption : str
        A line above.
    reason : str, optional
        Why the list is empty.
    facets : mapping, optional
        The values of some columns, each with its count.
    did_you_mean : str, optional
        The query that may have been meant.
    nearest : iterable, optional
        Elements that are nearest to those of a list that is empty.

    Attributes
    ----------
    reason, did_you_mean : str or None
    facets : dict of str to dict
    nearest : list
    """

    def __init__(
        self,
        items: Iterable[ItemT] = (),
        caption: str = "",
        reason: str | None = None,
        facets: Mapping[str, Mapping[Any, int]] | None = None,
        did_you_mean: str | None = None,
        nearest: Iterable[ItemT] = (),
    ) -> None:
        super().__init__(items)
        self.nearest = list(nearest)
        self._caption, self.reason, self.did_you_mean = caption, reason, did_you_mean
        self.facets = {name: dict(of) for name, of in facets.items()} if facets else {}

    def _repr_html_(self) -> str:
        caption = f"<p><b>{escape(_shown(self._caption))}</b></p>" if self._caption else ""
        if self:
            return caption + self._table()
        nothing = "nothing found" if self.reason is None else f"no good match: {self.reason}"
        if not self.nearest:
            return f"{caption}<p>{escape(nothing)}</p>"
        return f"{caption}<p>{escape(nothing)}; nearest:</p>{ShownRows(self.nearest)._table()}"

    def _table(self) -> str:
        items: list[Any] = self[:_LISTED]
        if not isinstance(items[0], dict) and not hasattr(items[0], "_fields"):
            shown = "".join(item._repr_html_() for item in items[:_BELOW_EACH_OTHER])
            return shown + _rest(len(self) - _BELOW_EACH_OTHER)
        rows = [_by_column(item) for item in items]
        # A column without any value says nothing, and a list is for programs.
        columns = [
            name
            for name in rows[0]
            if any(row[name] is not None and row[name] is not False for row in rows)
            and not isinstance(rows[0][name], list)
        ]
        texts = [at for at, name in enumerate(columns) if isinstance(rows[0][name], str)]
        values = ([row[name] for name in columns] for row in rows)
        return _first(values, len(self), _LISTED, columns, texts)


def _by_column(item: Any) -> dict[str, Any]:
    """The values of a named tuple or a dict; a dict in it has a column for each of its keys.

    Of a dict in such a dict, the column has the first value.
    """
    cells: dict[str, Any] = {}
    for name, value in (item if isinstance(item, dict) else item._asdict()).items():
        cells |= value if isinstance(value, dict) else {name: value}
    return {
        name: next(iter(cell.values()), None) if isinstance(cell, dict) else cell
        for name, cell in cells.items()
    }
