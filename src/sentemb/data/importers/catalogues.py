"""Catalogues of other formats: which title an id has; written as ``id<TAB>title``."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from sentemb.data.importers.clean_texts import has_entity, imported_id, imported_text
from sentemb.data.importers.damaged_ids import is_rounded
from sentemb.data.importers.table_rows import Rows
from sentemb.errors import SentembError
from sentemb.system.bounds import brief


@dataclass
class Catalogue:
    """The titles of a catalogue, all in memory.

    titles : id -> title, in the order of the file. Runs of white space in an id are ``_``.
    fields : id -> the columns that are kept, if there are any
    without_title, without_id, repeated : rows that were left out: without a title, without an id,
        with an id that already has another title
    first_without_title : number of the first row without a title, 0 if there is none
    escaped : titles that had entities of HTML
    rounded : ids that a spreadsheet has rounded
    """

    titles: dict[str, str] = field(default_factory=dict)
    fields: dict[str, list[str]] = field(default_factory=dict)
    without_title: int = 0
    without_id: int = 0
    repeated: int = 0
    first_without_title: int = 0
    escaped: int = 0
    rounded: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, rows: Rows) -> "Catalogue":
        """The catalogue in ``rows`` of an id, a title and fields. The first title of an id counts.

        Two ids that are equal only because white space became ``_`` are a bad row.
        """
        catalogue = cls()
        titles = catalogue.titles
        written: dict[str, str] = {}  # ids with white space, as the file has them
        for number, (raw_id, raw_title, *raw_fields) in rows:
            try:
                id = imported_id(raw_id, rows.how.encoding)
                title = imported_text(raw_title, "title", rows.how.encoding)
                fields = [imported_text(raw, "field", rows.how.encoding) for raw in raw_fields]
            except SentembError as error:
                rows.bad(rows.where(number), error)
                continue
            raw_id = raw_id.strip()
            if is_rounded(raw_id):
                catalogue.rounded.append(raw_id)
            catalogue.escaped += "&" in raw_title and has_entity(raw_title)
            if not id:
                catalogue.without_id += 1
            elif id in titles and written.get(id, id) != raw_id:
                earlier = brief(written.get(id, id))
                reason = f"the ids {brief(raw_id)} and {earlier} would both be {brief(id)}"
                rows.bad(rows.where(number), f"{reason}; rename one of them")
            elif not title:
                catalogue.without_title += 1
                catalogue.first_without_title = catalogue.first_without_title or number
            else:
                if id != raw_id:
                    written[id] = raw_id
                if fields and id not in titles:
                    catalogue.fields[id] = fields
                catalogue.repeated += titles.setdefault(id, title) != title
        if not titles:
            raise SentembError(
                f"{rows.where(1)}: the catalogue has no row with an id and a title; give other "
                "columns"
            )
        return catalogue


def catalogue_lines(
    titles: Iterable[tuple[str, str]],
    names: Sequence[str] = (),
    fields: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Iterator[str]:
    """Lines ``id<TAB>title``; with ``names`` of fields below a line of names, and with fields."""
    if names:
        yield "\t".join(["id", "title", *names])
    for id, title in titles:
        yield "\t".join([id, title, *fields.get(id, ())])
