"""Claims of a paper, each at its place in it, with a verdict that follows from measured numbers."""

import csv
import inspect
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sentemb.system.tables import markdown_table

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
UNTESTED, NOTHING = "not measured here", "claims nothing"
VERDICTS = (HOLDS, IN_PART, FAILS, UNTESTED, NOTHING)
NONE_PRINTED = "none printed"
# What each free choice of a rule is multiplied by, to see whether the verdict depends on it.
FACTORS = (0.5, 0.75, 1, 1.5, 2)


@dataclass(frozen=True)
class Claim:
    """One claim, figure, table or setting of a paper.

    Attributes
    ----------
    key : str
        How the page calls it; may be a link.
    text : str
        What the paper says there, in our words.
    needs : tuple of str
        The tables that it is judged by.
    judge : callable
        From the tables to the verdict and the numbers; None if a row is missing.
    place : str
        Section, table or figure of the paper.
    printed : str
        The paper's own numbers, or `NONE_PRINTED`.
    command : str
        What measures it.
    rule : callable, optional
        The function whose docstring says when the claim holds, and whose keyword-only parameters
        are our free choices; by default ``judge``.
    sweep : callable, optional
        From the tables to the `swept` verdicts; by default they are judged again.
    """

    key: str
    text: str
    needs: tuple
    judge: Callable
    place: str = ""
    printed: str = NONE_PRINTED
    command: str = ""
    rule: Callable | None = None
    sweep: Callable | None = None

    def swept(self, tables):
        """{free choice: (its value, the verdict at each of `FACTORS`)}; empty without choices."""
        if self.sweep is not None:
            return self.sweep(tables)
        if not all(tables.get(name) for name in self.needs) or self.judge(tables) is None:
            return {}
        return swept(lambda **choices: self.judge(tables, **choices)[0], choices_of(self.judge))


def not_measured(reason):
    """A judge of what is not measured here."""
    return lambda _tables: (UNTESTED, reason)


def claims_nothing(reason):
    """A judge of what cannot be right or wrong."""
    return lambda _tables: (NOTHING, reason)


def choices_of(function):
    """{name: value} of the free choices in a rule: its keyword-only parameters."""
    parameters = inspect.signature(function).parameters.values()
    return {
        parameter.name: parameter.default
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY
    }


def swept(verdict_of, choices):
    """{choice: (its value, the verdict at each of `FACTORS`)}, one choice changed at a time."""
    return {
        name: (value, [verdict_of(**{name: value * factor}) for factor in FACTORS])
        for name, value in choices.items()
    }


def rule_of(claim):
    """When a claim holds, in one line, from the docstring of its rule; empty without one."""
    function = claim.rule or claim.judge
    while isinstance(function, partial):
        function = function.func
    text = " ".join((inspect.getdoc(function) or "").split())
    return re.sub(r"^[A-Z]\d+: ", "", text)


def judged(claims, tables):
    """(claim, verdict, why) of every claim; one without its tables is not measured."""
    verdicts = []
    for claim in claims:
        there = all(tables.get(name) for name in claim.needs)
        judgement = claim.judge(tables) if there else None
        verdicts.append((claim, *(judgement or (UNTESTED, f"By `{claim.command}`."))))
    return verdicts


def tables_in(folder):
    """{name: lines} of every CSV file in a folder, each line a dict of str."""
    tables = {}
    for path in sorted(folder.glob("*.csv")):
        with open(path, encoding="utf-8", newline="") as lines:
            tables[path.stem] = list(csv.DictReader(lines))
    return tables


def filled(sections, tables):
    """{section of a page: lines of Markdown}; one whose CSV is missing is left out.

    Parameters
    ----------
    sections : dict
        Section -> the names of the tables that it needs, a function from the tables to its rows,
        and the number of columns that are flush left.
    tables : dict
        From `tables_in`.
    """
    return {
        name: list(markdown_table(rows(tables), left))
        for name, (needs, rows, left) in sections.items()
        if all(tables.get(table) for table in needs)
    }


# The columns of `claim_rows`, all of them flush left.
COLUMNS = ("claim", "place", "what the paper says", "printed", "measured", "command", "verdict")


def claim_rows(verdicts):
    """Rows of a table of verdicts, from `judged`; the first one counts them."""
    yield list(COLUMNS)
    counts = Counter(verdict for _, verdict, _ in verdicts)
    counted = ", ".join(f"{name} {counts[name]}" for name in VERDICTS if counts[name])
    yield [f"all {len(verdicts)}", *[""] * (len(COLUMNS) - 2), counted]
    for claim, verdict, why in verdicts:
        command = f"`{claim.command}`" if claim.command else ""
        yield [
            claim.key, claim.place, claim.text, claim.printed, why, command, f"**{verdict}**",
        ]  # fmt: skip


def rule_rows(verdicts, tables):
    """Rows of a table of rules and of what follows from our free choices, from `judged`."""
    yield ["claim", "rule", "our choice", *(f"× {factor:g}" for factor in FACTORS)]
    for claim, verdict, _ in verdicts:
        if verdict in (UNTESTED, NOTHING):
            continue
        first = [claim.key, rule_of(claim)]
        for name, (value, found) in claim.swept(tables).items() or [("", ("", []))]:
            choice = f"{name.replace('_', ' ')} = {value:g}" if name else "none"
            shown = [one if one == verdict else f"**{one}**" for one in found]
            yield [*first, choice, *(shown or [""] * len(FACTORS))]
            first = ["", ""]
