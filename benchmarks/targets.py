"""Figures of the speed pages in words, and the targets that were set for them."""


def milliseconds(seconds):
    return f"{seconds * 1e3:.1f} ms"


def times(spread):
    """A ratio with its spread."""
    return f"{spread.median:.1f} × ({spread.least:.1f}–{spread.most:.1f})"


class Targets:
    """Targets with what was measured, as rows of a table."""

    def __init__(self):
        self.rows = [["what", "target", "measured", ""]]

    def at_least(self, what, target, value, unit="×"):
        self._add(what, f"at least {target:,} {unit}", value, unit, value >= target)

    def at_most(self, what, target, value, unit="×"):
        self._add(what, f"at most {target:,} {unit}", value, unit, value <= target)

    def not_measured(self, what, target, unit="×"):
        self.rows.append([what, f"{target} {unit}", "-", "not measured"])

    def _add(self, what, target, value, unit, met):
        measured = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        self.rows.append([what, target, f"{measured} {unit}", "met" if met else "missed"])
