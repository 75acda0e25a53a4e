"""The tables that a shop begins with: which column holds what, by their names and their cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sentemb.data.column_names import QUERY, says_shown
from sentemb.data.importers.click_rows import Columns
from sentemb.data.importers.columns import Reading
from sentemb.data.importers.guessing import Guess, guess_columns, shared_id
from sentemb.errors import SentembError
from sentemb.search.shop_folder import ProductsTable
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath


@dataclass(frozen=True)
class ShopTables:
    """How the tables of a shop are read.

    clicks : the columns of the clicks, with those of the products; None for a shop without clicks
    products : how the table of the products is read, if there is one
    guesses : lines that say for what each column is taken
    """

    clicks: Columns | None
    products: ProductsTable | None
    guesses: Sequence[str]


def guess_tables(
    clicks: AnyPath, products: AnyPath | None, how: Reading, given: Columns
) -> ShopTables:
    """Guess the columns of two tables, or of one that has clicks and titles, or products alone.

    ``given`` has the columns that are known; without fields to keep, all others are kept. Raises
    `SentembError` if a table cannot be read, or a column is not found.
    """
    if products is not None:
        return _two_tables(clicks, products, how, given)
    ids = given.ids or given.catalogue_ids
    if given.query is None and "query" not in guess_columns(clicks, how).roles:
        known = _known(title=given.title, id=next(iter(ids), None))
        guess = guess_columns(clicks, how, known, of_products=True)
        if {"id", "title"} <= guess.roles.keys():
            ids = ids or [guess.roles["id"]]
            guess = guess.with_id(ids)
            table = _products_table(guess, ids, given.keep, how)
            return ShopTables(None, table, [str(guess)])
    known = _known(query=given.query, title=given.title, clicks=next(iter(given.counts), None))
    log = guess_columns(clicks, how, known | _known(id=next(iter(ids), None)))
    log.need("query")  # named before a title that is missing
    ids = ids or [log.roles[role] for role in ("id",) if role in log.roles]
    columns = _columns(log, given, title=log.need("title"), id=ids or None)
    return ShopTables(columns, None, _lines(log))


def _two_tables(clicks: AnyPath, products: AnyPath, how: Reading, given: Columns) -> ShopTables:
    ids, catalogue_ids = given.ids, given.catalogue_ids
    known = _known(
        query=given.query, clicks=next(iter(given.counts), None), id=next(iter(ids), None)
    )
    log = guess_columns(clicks, how, known)
    known = _known(title=given.title, id=next(iter(catalogue_ids), None))
    catalogue = guess_columns(products, how, known, of_products=True)
    if "query" not in log.roles and (query := QUERY.column(catalogue.names)):
        raise SentembError(
            f"{place_name(products)}: has the queries ({query}), and {place_name(clicks)} has "
            "none; give the clicks first and then the products"
        )
    if not ids:
        shared = shared_id(log, catalogue, products, how)
        ids, catalogue_ids = list(shared.clicks), list(shared.products)
    log = log.with_id(ids).with_only_text("query", ids)
    catalogue = catalogue.with_id(catalogue_ids).with_only_text("title", catalogue_ids)
    table = _products_table(catalogue, catalogue_ids, given.keep, how)
    columns = _columns(
        log, given, title=table.title, id=ids, catalogue_id=catalogue_ids, keep=table.fields
    )
    return ShopTables(columns, table, [*_lines(log), str(catalogue)])


def _known(**columns: str | None) -> dict[str, str]:
    return {role: column for role, column in columns.items() if column is not None}


def _lines(log: Guess) -> list[str]:
    graded = f"{log.name}: {log.graded} has judgments; leave out the rows without a match first"
    return [str(log), *([graded] if log.graded is not None else [])]


def _columns(log: Guess, given: Columns, **meant: object) -> Columns:
    guessed = [log.roles[role] for role in ("clicks", "event") if role in log.roles]
    clicks = given.counts or guessed or None
    shown = [log.roles[role] for role in ("id", "title") if says_shown(log.roles.get(role, ""))]
    if shown and not clicks and not (given.ids or given.title):
        raise SentembError(
            f"{log.name}: {shown[0]} is named for what was shown, clicked or not; name the column "
            "of what was clicked with --id-column, or that of the clicks with --clicks-column"
        )
    return replace(given, query=log.need("query"), clicks=clicks, **meant)  # type: ignore[arg-type]


def _products_table(
    guess: Guess, ids: Sequence[str], keep: Mapping[str, str], how: Reading
) -> ProductsTable:
    fields = dict(keep or guess.fields)
    return ProductsTable(tuple(ids), guess.need("title"), fields, how.encoding)
