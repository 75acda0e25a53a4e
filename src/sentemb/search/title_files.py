"""Files of titles and of other texts, read into `TextArray`, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from sentemb.data.judged_set import ProductLines, product_portions, repeated_id
from sentemb.data.lines import clean_portions
from sentemb.data.text_array import TextArray, TextsBuilder
from sentemb.errors import SentembError
from sentemb.retrieval.rows_of_texts import TextRows
from sentemb.search.field_columns import FieldColumn, fields_of
from sentemb.search.product_fields import ProductFields, check_columns
from sentemb.system.paths import AnyPath


class FileTitles(NamedTuple):
    """Titles of a file, with their ids and fields."""

    ids: TextArray
    titles: TextArray
    fields: ProductFields


def read_titles(
    path: AnyPath,
    scratch: AnyPath | None = None,
    on_progress: Callable[[int], None] | None = None,
    text_columns: Collection[str] = (),
) -> FileTitles:
    """Ids, titles and fields of a file, as `sentemb.data.judged_set.product_portions` reads them.

    The file is read once, so it may be standard input, and what happens to it later changes
    nothing. Memory is 12 bytes a line, and the text itself if ``scratch`` is not given. Fields are
    in memory. A field that cannot be a number makes its column text; a warning says so if most
    fields of the column are numbers.

    Parameters
    ----------
    path : path
        Lines ``id<TAB>title``, perhaps below a line with these names; fields are named there too.
    scratch : path, optional
        A folder on the disk that the text is kept on; see `sentemb.system.growing.Growing`.
    on_progress : function, optional
        Called with the number of lines that were read.
    text_columns : set of str, optional
        The fields, in small letters, that are texts even if they look like numbers; for a file that
        is added to an index, its `ProductFields.text_columns`.

    Raises
    ------
    SentembError
        As `sentemb.data.judged_set.read_texts`, and if the disk is full.
    """
    id_builder, title_builder = TextsBuilder(scratch), TextsBuilder(scratch)
    columns: list[FieldColumn] = []
    first_line = 1

    def on_columns(names: list[str]) -> None:
        nonlocal first_line
        first_line = 2
        check_columns(names)
        columns.extend(FieldColumn(name, name.lower() in text_columns) for name in names)

    faults: list[SentembError] = []
    for lines in _until_fault(path, on_columns, faults):
        id_builder.append(lines.ids)
        title_builder.append(lines.texts)
        for column, texts in zip(columns, lines.fields, strict=True):
            column.append(texts)
        if on_progress is not None:
            on_progress(lines.first - first_line + len(lines.ids))
    ids = id_builder.texts()
    repeated = TextRows(ids).repeated
    if repeated is not None:
        before, row = repeated
        raise repeated_id(path, ids[row], before + first_line, row + first_line)
    if faults:  # a repeated id is in an earlier line
        raise faults[0]
    return FileTitles(ids, title_builder.texts(), fields_of(columns, len(ids)))


def read_lines(
    path: AnyPath,
    scratch: AnyPath | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> TextArray:
    """The lines of a text file, as `sentemb.data.lines.clean_portions` reads it, in less memory.

    The parameters are those of `read_titles`.
    """
    texts = TextsBuilder(scratch)
    for first, lines in clean_portions(path):
        texts.append(lines)
        if on_progress is not None:
            on_progress(first - 1 + len(lines))
    return texts.texts()


def _until_fault(
    path: AnyPath, on_columns: Callable[[list[str]], None], faults: list[SentembError]
) -> Iterator[ProductLines]:
    """The lines up to the first that is wrong; its error is appended to ``faults``."""
    try:
        yield from product_portions(path, on_columns)
    except SentembError as error:
        faults.append(error)
