"""The HTML page of a `RankingDifference`: its figures, and queries side by side."""

from collections.abc import Iterator, Sequence
from html import escape

from sentemb.analysis.report.sheet import style
from sentemb.comparison.difference import NAMES, RankingDifference
from sentemb.system.html_pages import Page, filled, resource
from sentemb.version import __version__

_HERE = "sentemb.analysis.report"
# Clicked titles above the rankings of a query.
_TITLES_CLICKED = 3
_OVERLAP_FIRST = "First the queries whose rankings have the least in common."
_CLICKED_FIRST = (
    "First the queries for which the ranks of the clicked title differ most, then those whose "
    "rankings have the least in common."
)
_CELLS = "Below a title is its score, and its rank in the other ranking if it is there too."


def difference_page(difference: RankingDifference, names: Sequence[str], limit: int) -> Page:
    """A page without script that loads nothing; texts cannot become markup.

    ``names`` are those of A and B, and ``limit`` is the largest number of queries to show.
    """
    shown = difference.order[:limit].tolist()
    letters = [f"{letter} is {escape(name)}" for letter, name in zip(NAMES, names, strict=True)]
    values = {
        "title": escape(f"{names[0]} and {names[1]}"),
        "style": style() + resource(_HERE, "diff.css"),
        "lead": ", ".join(letters),
        "figures": "".join(_figures(difference)),
        "heading": f"The {len(shown):,} queries that differ most",
        "note": f"{_OVERLAP_FIRST if difference.by_clicks is None else _CLICKED_FIRST} {_CELLS}",
        "queries": "\n".join(_query(difference, query) for query in shown),
        "made": f"Made by sentemb {escape(__version__)}.",
    }
    return filled(resource(_HERE, "diff.html"), values)


def _figures(difference: RankingDifference) -> Iterator[str]:
    rows = [
        ("Queries", f"{len(difference.queries):,}"),
        ("Titles", f"{len(difference.titles):,}"),
        ("Same top title", f"{difference.overlap.same_first:.1%}"),
        (f"Overlap of the first {difference.k}", f"{difference.overlap.shared:.1%}"),
    ]
    clicks = difference.by_clicks
    if clicks is not None:
        a, b, equal = clicks.better
        change = clicks.difference
        rows += [
            ("Queries with clicks", f"{clicks.n_queries:,}"),
            (f"MRR@{difference.k}", f"A {clicks.mrr[0]:.3f}, B {clicks.mrr[1]:.3f}"),
            (
                "B − A, 95 % interval",
                f"{change.mean:+.3f}, {change.low:+.3f} to {change.high:+.3f}",
            ),
            ("Clicked title higher", f"A {a:.1%}, B {b:.1%}, equal {equal:.1%}"),
        ]
    for name, value in rows:
        yield f"<tr><th scope=row>{name}</th><td>{value}</td></tr>"


def _query(difference: RankingDifference, query: int) -> str:
    """One query: its clicked titles, and both rankings side by side."""
    clicked = difference.clicked(query)
    parts = [f'<section class="diff"><h3 dir="auto">{escape(difference.queries[query])}</h3>']
    if clicked:
        shown = clicked[:_TITLES_CLICKED]
        titles = "; ".join(f"<bdi>{escape(difference.titles[number])}</bdi>" for number in shown)
        if len(clicked) > len(shown):
            titles += f" and {len(clicked) - len(shown):,} more"
        ranks = f"Rank A {difference.rank(0, query)}, B {difference.rank(1, query)}"
        parts.append(
            f'<p class="facts">Clicked: {titles}. <strong class="ranks">{ranks}</strong></p>'
        )
    parts.append(
        '<table><colgroup><col class="rank"><col><col></colgroup><thead><tr><th></th>'
        "<th scope=col>A</th><th scope=col>B</th></tr></thead><tbody>"
    )
    rows, scores = difference.title_index[:, query].tolist(), difference.scores[:, query].tolist()
    for rank, pair in enumerate(zip(*rows, strict=True), 1):
        cells = (
            _cell(difference, number, scores[side][rank - 1], rows[1 - side], 1 - side, clicked)
            for side, number in enumerate(pair)
        )
        parts.append(f"<tr><th scope=row>{rank}</th>{''.join(cells)}</tr>")
    return "".join([*parts, "</tbody></table></section>"])


def _cell(
    difference: RankingDifference,
    number: int,
    score: float,
    opposite: list[int],
    opposite_side: int,
    clicked: list[int],
) -> str:
    """A title with its score, its rank in the other ranking, and whether it was clicked."""
    if number < 0:
        return "<td></td>"
    remarks = [f"{score:.3f}"]
    if number in opposite:
        remarks.append(f"{NAMES[opposite_side]}: {opposite.index(number) + 1}")
    if number in clicked:
        remarks.append("clicked")
    kind = ' class="clicked"' if number in clicked else ""
    title = escape(difference.titles[number])
    return f'<td{kind}><bdi>{title}</bdi><span class="other">{" · ".join(remarks)}</span></td>'
