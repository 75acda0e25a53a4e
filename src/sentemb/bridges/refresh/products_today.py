"""The products that a shop sells now."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentemb.data.importers.catalogues import CatalogueTitles, catalogue_lines
from sentemb.data.importers.columns import BadRows, Reading
from sentemb.data.importers.table_rows import Rows
from sentemb.data.lines import clean_lines, write_lines
from sentemb.errors import SentembError
from sentemb.search.shop_folder import Shop
from sentemb.search.title_files import FileTitles, read_titles
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath


def read_products(
    shop: Shop, catalogue: AnyPath, titles: Path, note: Callable[[str], None]
) -> FileTitles:
    """The products of a file of titles, or of a table like the one the shop was made from.

    The products are written to ``titles``, as `sentemb import` writes them. ``note`` is called with
    what is left out. Raises `SentembError` if the file cannot be read so.
    """
    first = next((line for _, line in clean_lines(catalogue)), "")
    if first.lower().split("\t")[:2] == ["id", "title"]:
        given = read_titles(catalogue)
        write_lines(titles, (line for _, line in clean_lines(catalogue)))
        return given
    table = shop.products
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
