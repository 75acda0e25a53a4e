"""Catalogues of other formats: which title an id has; written as ``id<TAB>title``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from sentemb.data.click_log import MAX_TEXT_WORDS
from sentemb.data.column_names import Meaning
from sentemb.data.importers.clean_texts import has_entity, imported_id, imported_text
from sentemb.data.importers.columns import Wanted
from sentemb.data.importers.damaged_ids import is_rounded
from sentemb.data.importers.lists import as_one_text, listed_in
from sentemb.data.importers.missing import is_missing, missing_cells
from sentemb.data.importers.table_rows import Rows
from sentemb.data.importers.variants import inherited
from sentemb.errors import SentembError
from sentemb.system.bounds import brief

# Between the parts of an id of several columns: white space, which becomes _.
_BETWEEN = "\x1f"


def joined_id(parts: Sequence[str]) -> str:
    """An id of one or several columns, as a cell; empty if one of them is missing."""
    if len(parts) == 1:
        return parts[0]
    bare = [part.strip() for part in parts]
    return "" if any(not part or is_missing(part) for part in bare) else _BETWEEN.join(bare)


@dataclass
class CatalogueTitles:
    """The titles of a catalogue, all in memory.

    titles : id -> title, in the order of the file. Runs of white space in an id are ``_``.
    fields : id -> the columns that are kept, if there are any
    rows : rows that were read, bad ones not
    without_title, without_id, repeated, varied : rows that were left out: without a title, without
        an id, with an id that already has another title, or the same with other fields
    first_without_title : number of the first row without a title, 0 if there is none
    variants : rows without a title that have that of their product
    missing : cells that mark a missing value, such as NULL
    too_long : fields that were left empty because no text may be so long
    escaped : titles that had entities of HTML
    rounded : ids that a spreadsheet has rounded
    """

    titles: dict[str, str] = field(default_factory=dict)
    fields: dict[str, list[str]] = field(default_factory=dict)
    rows: int = 0
    without_title: int = 0
    without_id: int = 0
    repeated: int = 0
    varied: int = 0
    first_without_title: int = 0
    variants: int = 0
    missing: int = 0
    too_long: int = 0
    escaped: int = 0
    rounded: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, rows: Rows, n_ids: int = 1) -> "CatalogueTitles":
        """The catalogue in ``rows`` of an id, a title and fields. The first title of an id counts.

        A list of ids, such as those of variants, is a product for each, with its own values of the
        columns that are in the same objects. Of a list of titles the first counts.

        The id has ``n_ids`` columns. A row without a title that is a variant of the product above
        has its title, and its fields where it has none of its own; see
        `sentemb.data.importers.variants`. Two ids that are equal only because white space became
        ``_`` are a bad row.
        """
        catalogue = cls()
        names: list[str] = []
        rows = rows.noting(names.extend)
        untitled: dict[str, int] = {}  # id -> number of its first row
        written: dict[str, str] = {}  # ids with white space, as the file has them
        of_id: Sequence[int] = ()
        for number, row in rows:
            of_id = of_id or _of_the_same_object(rows.columns, names)
            catalogue.rows += 1
            try:
                for cells in _products_in(row, n_ids, of_id):
                    catalogue._add(number, cells, n_ids, rows.how.encoding, written, untitled)
            except SentembError as error:
                rows.bad(rows.where(number), error)
        catalogue._inherit(rows, n_ids, names, untitled)
        if not catalogue.titles:
            bad = f"; the first bad row: {rows.bad.first}" if rows.bad.first else ""
            raise SentembError(
                f"{rows.where(1)}: the catalogue has no row with an id and a title{bad}; give "
                "other columns"
            )
        return catalogue

    def _add(
        self,
        number: int,
        cells: Sequence[str],
        n_ids: int,
        encoding: str,
        written: dict[str, str],
        untitled: dict[str, int],
    ) -> None:
        """Add a row, or count why it is left out; a `SentembError` without a place if it is bad."""
        titles = self.titles
        raw_id, raw_title = joined_id(cells[:n_ids]), cells[n_ids]
        id = imported_id(raw_id, encoding)
        title = imported_text(self._there(raw_title), "title", encoding)
        fields = [self._field(raw, encoding) for raw in cells[n_ids + 1 :]]
        raw_id = raw_id.strip()
        if is_rounded(raw_id):
            self.rounded.append(raw_id)
        self.escaped += "&" in raw_title and has_entity(raw_title)
        if not id or (is_missing(id) and not title):
            self.without_id += 1
        elif id in titles and written.get(id, id) != raw_id:
            reason = f"the ids {brief(raw_id)} and {brief(written.get(id, id))} would both be"
            raise SentembError(f"{reason} {brief(id)}; rename one of them")
        elif not title:
            untitled.setdefault(id, number)
        else:
            if id != raw_id:
                written[id] = raw_id
            is_new = id not in titles
            if fields and is_new:
                self.fields[id] = fields
            has_other_title = titles.setdefault(id, title) != title
            self.repeated += has_other_title
            self.varied += not (is_new or has_other_title) and self.fields.get(id, []) != fields

    def _inherit(
        self, rows: Rows, n_ids: int, names: Sequence[str], untitled: dict[str, int]
    ) -> None:
        """Give variants the title of their product, and count what is left without one."""
        for id in self.titles.keys() & untitled.keys():  # further rows of a product
            del untitled[id]
        if untitled:
            for cells, above in inherited(rows, n_ids, names):
                id = imported_id(joined_id(cells[:n_ids]), rows.how.encoding)
                if untitled.pop(id, 0):
                    pairs = zip(cells, above, strict=True)
                    row = [a if not b.strip() or is_missing(b) else b for b, a in pairs]
                    self._add(0, row, n_ids, rows.how.encoding, {}, {})
                    self.variants += 1
        self.without_title = len(untitled)
        self.first_without_title = min(untitled.values(), default=0)

    def notes(self, name: str, n_bad: int) -> Iterator[str]:
        """Notes for a user on the catalogue in the file ``name``, which has ``n_bad`` bad rows."""
        repeated = "with an id that already has another title"
        for count, what in (
            (n_bad, "that are bad"),
            (self.without_title, "without a title"),
            (self.without_id, "without an id"),
            (self.repeated, repeated),
            (self.varied, "with an id that already has other fields"),
        ):
            if count:
                hint = "; if the locale belongs to the id, give --id-column twice"
                advice = hint if what == repeated else ""
                yield f"{name}: rows {what} were left out: {count:,}{advice}"
        if self.variants:
            yield (
                f"{name}: rows without a title that are variants, and have that of their product "
                f"above: {self.variants:,}"
            )
        if self.missing:
            yield f"{name}: {missing_cells(self.missing)}"
        if self.too_long:
            yield (
                f"{name}: fields of more than {MAX_TEXT_WORDS:,} words were left empty: "
                f"{self.too_long:,}"
            )
        if self.without_title:
            yield f"the first product without a title: {name}:{self.first_without_title}"
        if self.rounded:
            yield (
                f"{name}: {len(self.rounded):,} rows have an id that a spreadsheet rounded, such "
                f"as {brief(self.rounded[0])}; export the column as text"
            )

    def _there(self, cell: str) -> str:
        """Return a cell, or count it and return an empty one if it marks a missing value."""
        if is_missing(cell):
            self.missing += 1
            return ""
        return cell

    def _field(self, raw: str, encoding: str) -> str:
        text = as_one_text(self._there(raw))
        if len(text) > 2 * MAX_TEXT_WORDS and len(text.split()) > MAX_TEXT_WORDS:
            self.too_long += 1
            return ""
        return imported_text(text, "field", encoding)


def _of_the_same_object(columns: Sequence[Wanted], names: Sequence[str]) -> list[int]:
    """The numbers of the columns that are in one object with the id, which is the first column."""
    inner = [column.column(names) if isinstance(column, Meaning) else column for column in columns]
    objects = [(name or "").rpartition(".")[0] for name in inner]
    return [k for k, of in enumerate(objects) if k == 0 or (of and of == objects[0])]


def _products_in(cells: Sequence[str], n_ids: int, of_id: Sequence[int]) -> Iterator[Sequence[str]]:
    """The products of a row: one, or one for each id of a list, with its columns ``of_id``."""
    if not (cells[0][:1] == "[" or cells[n_ids][:1] == "["):
        yield cells
        return
    title = next(filter(None, listed_in(cells[n_ids]) or ()), cells[n_ids])
    values = {k: listed_in(cells[k]) or [cells[k]] for k in of_id}
    for number in range(len(values[0])):
        product = [*cells]
        product[n_ids] = title
        for k in of_id:
            if len(values[k]) == len(values[0]):
                product[k] = values[k][number]
        yield product


def catalogue_lines(
    titles: Iterable[tuple[str, str]],
    names: Sequence[str] = (),
    fields: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[str]:
    """Lines ``id<TAB>title`` and fields, below a line of names that `import --catalogue` reads."""
    yield "\t".join(["id", "title", *names])
    for id, title in titles:
        yield "\t".join([id, title, *fields.get(id, ())])
