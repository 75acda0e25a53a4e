"""The products that a shop sells now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentemb.data.importers.catalogues import CatalogueTitles, catalogue_lines
from sentemb.data.importers.columns import BadRows, Reading
from sentemb.data.importers.guessing import check_readable_twice
from sentemb.data.importers.table_rows import Rows
from sentemb.data.lines import clean_lines, write_lines
from sentemb.errors import SentembError
from sentemb.search.shop_folder import Shop
from sentemb.search.title_files import FileTitles, read_titles
from sentemb.system.files import place_name, reading
from sentemb.system.paths import AnyPath

_LONGEST_START = 1 << 16


def read_products(
    shop: Shop, catalogue: AnyPath, titles: Path, note: Callable[[str], None]
) -> FileTitles:
    """The products of a file of titles, or of a table like the one the shop was made from.

    A table that looks like a file of titles and is none is read as a table.
    The products are written to ``titles``, as `sentemb import` writes them. ``note`` is called with
    what is left out. Raises `SentembError` if the file cannot be read so.
    """
    check_readable_twice(catalogue)
    table = shop.products
    if _has_titles(catalogue):
        try:
            given = read_titles(catalogue)
        except SentembError:
            if table is None or (table.ids, table.title) != (("id",), "title"):
                raise
        else:
            write_lines(titles, (line for _, line in clean_lines(catalogue)))
            return given
    if table is None:
        raise SentembError(
            f"{place_name(catalogue)}: has no first line id<TAB>title, and the shop was made "
            "without a table of products, so its columns are not known; write such a line"
        )
    bad = BadRows(skip=True)
    columns = (*table.ids, table.title, *table.fields.values())
    rows = Rows(catalogue, columns, Reading(encoding=table.encoding), bad, on_note=note)
    read = CatalogueTitles.read(rows, len(table.ids))
    for remark in read.notes(place_name(catalogue), bad.count):
        note(remark)
    write_lines(titles, catalogue_lines(read.titles.items(), list(table.fields), read.fields))
    return read_titles(titles)


def _has_titles(catalogue: AnyPath) -> bool:
    """Whether a file begins with a line id<TAB>title; it may be of any format and encoding."""
    with reading(catalogue) as file:
        first = file.readline(_LONGEST_START).decode("utf-8-sig", "replace")
    return first.rstrip().lower().split("\t")[:2] == ["id", "title"]
