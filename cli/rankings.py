"""How rankings are printed: as a TREC run, a table, tab-separated values or JSON."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from sentemb.cli.options import option
from sentemb.system.paths import AnyPath

# A title has at least as many columns, however narrow the terminal.
_LEAST_COLUMNS = 20
_HELP = {
    "table": "Print a table with the texts instead of a TREC run.",
    "trec": "Print a TREC run.",
    "tsv": "Print lines of query id, rank, title id, title and score below a line of names.",
    "json": "Print one JSON object per query, each on its own line, with the texts.",
}


class Ranking(NamedTuple):
    """The ranked titles of one query.

    id, query : the id of the query, and its text
    hits : best first, each with ``id``, ``title``, ``score`` and whatever else there is to print;
        all have the same keys
    reason : the reason for an empty result, or None
    facets : for some fields how many matches have each value
    did_you_mean : the query that may have been meant, or None
    nearest : the titles that are nearest to a query without a good match
    """

    id: str
    query: str
    hits: Sequence[Mapping[str, Any]]
    reason: str | None = None
    facets: Mapping[str, Mapping[Any, int]] = {}
    did_you_mean: str | None = None
    nearest: Sequence[Mapping[str, Any]] = ()


def form_options(*forms: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Options such as ``--tsv``, given as ``as_tsv``; `form_of` makes one value of them."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for form in reversed(forms):
            help = _HELP[form]
            function = option(f"--{form}", f"as_{form}", is_flag=True, help=help)(function)
        return function

    return decorate


def form_of(**given: bool) -> str | None:
    """The form that was asked for; None if none was."""
    forms = [form for form, on in given.items() if on]
    if len(forms) > 1:
        raise click.UsageError(f"give --{forms[0]} or --{forms[1]}, not both")
    return forms[0] if forms else None


def write_rankings(output: AnyPath, form: str, rankings: Iterable[Ranking], first: int = 1) -> None:
    """Write ``rankings`` to a file, or to standard output if it is ``-``.

    ``form`` is "trec", "table", "tsv" or "json". The rankings are read once, one by one. Ranks that
    a TSV file has are counted from ``first``.
    """
    from sentemb.data.lines import write_lines
    from sentemb.evaluation.trec import write_run
    from sentemb.system.terminal import columns_of

    if form == "trec":
        write_run(
            {ranking.id: {hit["id"]: hit["score"] for hit in ranking.hits} for ranking in rankings},
            output,
        )
    elif form == "table":
        write_lines(output, _table(rankings, columns_of(output)))
    else:
        lines = _tsv(rankings, first) if form == "tsv" else _json(rankings)
        write_lines(output, lines)


def line_of(
    left: str,
    title: str,
    right: str,
    columns: int | None,
    marks: Sequence[Sequence[int]] = (),
) -> str:
    """A line to read, in which the title is cut to what the ``columns`` of a terminal leave it.

    There ``marks``, the begin and the end of places in the title, are bold.
    """
    from sentemb.system.tables import cut, visible
    from sentemb.system.terminal import BOLD, PLAIN

    shown = visible(title)
    if columns is not None:
        is_whole = shown == title
        shown = cut(shown, max(_LEAST_COLUMNS, columns - len(left) - len(right)))
        n_shown = len(shown) - (is_whole and shown != title)  # without the dots
        for begin, end in reversed(marks if is_whole else ()):
            end = min(end, n_shown)
            if begin < end:
                shown = f"{shown[:begin]}{BOLD}{shown[begin:end]}{PLAIN}{shown[end:]}"
    return f"{left}{shown}{right}"


def _table(rankings: Iterable[Ranking], columns: int | None) -> Iterator[str]:
    """Lines to read: a query, below it rank, score and title."""
    from sentemb.system.tables import visible

    for ranking in rankings:
        yield visible(ranking.query)
        for rank, hit in enumerate(ranking.hits, 1):
            yield line_of(f"{rank:5}  {hit['score']:9.6f}  ", hit["title"], "", columns)
        yield ""


def _tsv(rankings: Iterable[Ranking], first: int) -> Iterator[str]:
    """A line of names, then one line per hit, whose rank is counted from ``first``."""
    named = False
    for ranking in rankings:
        for rank, hit in enumerate(ranking.hits, first):
            columns = _by_column({"query_id": ranking.id, "rank": rank, **hit})
            if not named:
                yield "\t".join(columns)
                named = True
            yield "\t".join(map(_cell, columns.values()))
    if not named:
        yield "\t".join(["query_id", "rank", "id", "title", "score"])


def _by_column(hit: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a hit; the value of each part of its score, and each field, is one.

    A field with the name of another column has ``field.`` before its own.
    """
    columns: dict[str, Any] = {}
    for name, value in hit.items():
        if name in ("by_id", "marks"):
            continue
        for column, cell in (value if isinstance(value, dict) else {name: value}).items():
            cell = cell["value"] if isinstance(cell, dict) else cell
            while column in columns:
                column = f"field.{column}"
            columns[column] = cell
    return columns


def _cell(value: Any) -> str:
    """``value`` without tabs and line ends, which would begin another cell; None is empty."""
    from sentemb.system.tables import value_text, visible

    return visible(value_text(value).replace("\t", " "))


def _json(rankings: Iterable[Ranking]) -> Iterator[str]:
    for ranking in rankings:
        line: dict[str, Any] = {"id": ranking.id, "query": ranking.query}
        line["titles"] = list(ranking.hits)
        if ranking.reason is not None:
            line["no_match"] = ranking.reason
        if ranking.nearest:
            line["nearest"] = list(ranking.nearest)
        if ranking.did_you_mean is not None:
            line["did_you_mean"] = ranking.did_you_mean
        if ranking.facets:
            line["facets"] = ranking.facets
        yield json.dumps(line)
