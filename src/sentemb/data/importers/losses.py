"""Rows and clicks that an import reads, keeps and leaves out, and how many are too many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from sentemb.errors import SentembError
from sentemb.system.html_tables import facts_table

# Why a row is left out.
NO_QUERY, NO_TITLE, NO_ID = "without a query", "without a title", "without an id"
UNKNOWN_ID, NO_CLICKS, BAD = "with an id that has no title", "without clicks", "bad"
FEW_CLICKS, ONLY_SHOWN = "pairs with too few clicks", "searches without a click"
TOTALS = "of totals"
# A row that says itself that it has no query or title names no pair, and few clicks are asked for.
_DROPPED = (BAD, UNKNOWN_ID)
# Up to this number, rows with an empty query or title do not stop an import.
_FEW_BLANK = 20


@dataclass
class Imported:
    """Counts of the rows that an import has read and of the lines that it has written.

    rows : rows that were read, bad ones included, headers not
    lines : lines written to the log
    left_out : rows that were left out, by reason. With ``min_clicks`` also the pairs with fewer
        clicks; with a search column also the searches without a click.
    catalogue : titles in the catalogue, if there is one
    notes : messages for the user
    clicks : clicks in the rows that could be read
    blank, blank_clicks : rows and clicks without a query, title or id, whose cell is empty and does
        not say so, as NULL does
    lost : clicks of what was left out, by reason
    """

    rows: int = 0
    lines: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    catalogue: int | None = None
    notes: list[str] = field(default_factory=list)
    clicks: int = 0
    blank: int = 0
    blank_clicks: int = 0
    lost: Counter[str] = field(default_factory=Counter)

    @property
    def clicks_kept(self) -> int:
        """The clicks that are in the log."""
        return self.clicks - self.lost.total()

    def lose(self, reason: str, clicks: int) -> None:
        """Count a row that is left out, with its clicks."""
        self.left_out[reason] += 1
        if clicks:
            self.lost[reason] += clicks

    def of_clicks(self) -> str:
        """The clicks that were read, kept and lost, on one line."""
        lost = ", ".join(f"{count:,} {reason}" for reason, count in self.lost.most_common())
        parts = [f"clicks: {self.clicks:,} read, {self.clicks_kept:,} kept"]
        if lost:
            parts.append(f"lost: {lost}")
        if self.left_out[BAD]:
            parts.append(f"bad rows, whose clicks are not known: {self.left_out[BAD]:,}")
        return "; ".join(parts)

    def _repr_html_(self) -> str:
        left_out = {f"left out: {reason}": count for reason, count in self.left_out.items()}
        counts = {"rows read": self.rows, "lines written": self.lines}
        clicks = {"clicks read": self.clicks, "clicks kept": self.clicks_kept}
        notes = {f"note {number}": note for number, note in enumerate(self.notes, 1)}
        return facts_table(
            {**counts, **clicks, "titles in the catalogue": self.catalogue, **left_out, **notes}
        )


def check_losses(name: str, done: Imported, most: float, examples: Mapping[str, str]) -> None:
    """Refuse to drop more than a share ``most`` of the rows or of the clicks of a file.

    ``examples`` has the first row of a reason. Rows of totals and rows without clicks have nothing
    to drop. Raises `SentembError`.
    """
    rows = done.rows - done.left_out[TOTALS] - done.left_out[NO_CLICKS]
    has_blank = done.blank > _FEW_BLANK
    dropped = sum(done.left_out[reason] for reason in _DROPPED) + has_blank * done.blank
    clicks = sum(done.lost[reason] for reason in _DROPPED) + has_blank * done.blank_clicks
    if dropped <= most * rows and clicks <= most * done.clicks:
        return
    with_clicks = f" and {clicks:,} of {done.clicks:,} clicks" if clicks else ""
    reasons = [
        f"{done.left_out[reason]:,} {reason} (the first: {examples[reason]})"
        for reason in _DROPPED
        if done.left_out[reason]
    ]
    reasons += [f"{done.blank:,} with an empty query, title or id"] * has_blank
    raise SentembError(
        f"{name}: {dropped:,} of {rows:,} rows{with_clicks} would be dropped, more than {most:.0%}"
        f": {', '.join(reasons)}; correct them, or leave them out with --max-lost 1"
    )
