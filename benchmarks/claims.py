"""Claims of a paper, each with a verdict that follows from CSV files."""

import csv
from collections.abc import Callable
from dataclasses import dataclass

from sentemb.system.tables import markdown_table

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
UNTESTED = "not measured here"


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    key, text : str
    needs : tuple of str
        The tables that it is judged by.
    judge : callable
        From the tables to the verdict and the numbers; None if a row is missing.
    """

    key: str
    text: str
    needs: tuple
    judge: Callable


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


def claim_rows(judged):
    """Rows of a table of claims with their verdicts."""
    yield ["claim", "what the paper says", "verdict", "measured"]
    for claim, verdict, why in judged:
        yield [claim.key, claim.text, f"**{verdict}**", why]
