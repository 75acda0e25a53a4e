"""Guesses which column of a shop's table holds what, from names of columns and from their cells."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from sentemb.data.column_names import (
    CLICKS,
    EVENT,
    FIELDS,
    ID,
    LOCALE,
    OTHER,
    QUERY,
    ROLES,
    TITLE,
    Meaning,
    is_usual,
    letters_of,
    says_clicked,
    says_shown,
)
from sentemb.data.importers.click_counts import ClickCells, tells_clicks
from sentemb.data.importers.columns import BadRows, Reading, Wanted, check_names, index_of, listed
from sentemb.data.importers.known_exports import check_folder, graded_column, what_is_lacking
from sentemb.data.importers.lists import listed_in, parts_of
from sentemb.data.importers.missing import is_missing
from sentemb.data.importers.table_rows import Rows
from sentemb.data.record_file import is_record
from sentemb.data.search_record import COLUMNS
from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.files import is_file, place_name, status
from sentemb.system.paths import AnyPath

# Rows that are looked at.
_LOOKED_AT = 2_000
# Of the cells of a column of clicks, this share must be numbers: totals and bad rows may not.
_COUNTED = 0.9
# In a column of texts such as titles, this share of the cells differs.
_DIFFERENT = 0.5
_MOST_NAME = 64
# Numbers of clicks have some of this size.
_SMALL = 10
_RESERVED = ("id", "title", "score", "confidence", "rowid")
# Of the ids in the clicks, this share must be in the products; and a product has few rows.
_FOUND, _MOST_ROWS = 0.5, 4
# Rows of one cell that are looked at: beyond _MOST_ROWS their number does not matter.
_KEPT_ROWS = 50
_ROLES = {"query": QUERY, "id": ID, "title": TITLE, "clicks": CLICKS, "event": EVENT}


@dataclass(frozen=True)
class Guess:
    """The columns of a table.

    name : the file in messages
    names : all columns
    roles : of ``query``, ``id``, ``title``, ``clicks`` and ``event`` those that are there, each
        with its column
    fields : fields of products, each with its column; those that are usually named so come first
    cells : the first cells of each column that can be read
    """

    name: str
    names: list[str]
    roles: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    cells: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def need(self, role: str) -> str:
        """The column of a role; a `SentembError` if there is none."""
        if role in self.roles:
            return self.roles[role]
        check_names(self.names, self.name)
        if advice := what_is_lacking(self.names):
            raise SentembError(f"{self.name}: {advice}")
        remedy = f"name it with --{role}-column"
        if len(self.names) == 1:
            remedy = "if a sign separates columns there, give it with --delimiter"
        elif not any(map(is_usual, self.names)):
            remedy += "; if these are not names, `sentemb import` takes numbers and --no-header"
        raise SentembError(
            f"{self.name}: no column looks like the {role}; there are {listed(self.names)}: "
            f"{remedy}"
        )

    def with_id(self, columns: Sequence[str]) -> Guess:
        """The same with these columns as the id."""
        rest = {name: column for name, column in self.fields.items() if column not in columns}
        freed = self.roles.get("id")
        if freed is not None and freed not in columns and self.fields:
            rest[_free_name(freed, rest)] = freed
        return replace(self, roles=_ordered({**self.roles, "id": " + ".join(columns)}), fields=rest)

    def with_only_text(self, role: str, used: Sequence[str]) -> Guess:
        """The same with the only column of texts that is left, if no column has the role.

        Columns that are ``used`` are not left, nor are addresses, and columns with few different
        texts, such as a category. With several columns nothing changes.
        """
        taken = {*used, *self.roles.values()}
        left = [
            name
            for name, cells in self.cells.items()
            if name not in taken
            and not any(meaning.has(name) for meaning in (*FIELDS, OTHER))
            and any(cells)
            and _fits(role, cells)
            and _differ(cells)
        ]
        if role in self.roles or len(left) != 1:
            return self
        fields = {name: column for name, column in self.fields.items() if column != left[0]}
        return replace(self, roles=_ordered({**self.roles, role: left[0]}), fields=fields)

    @property
    def graded(self) -> str | None:
        """A column of judgments, which are not clicks."""
        return graded_column(self.names)

    def __str__(self) -> str:
        columns = {**self.roles, **self.fields}
        line = f"{self.name}: " + ", ".join(f"{role} = {name}" for role, name in columns.items())
        twice = [name for name in dict.fromkeys(self.names) if self.names.count(name) > 1 and name]
        if twice:
            line += f"; left out, since several are named so: {listed(twice)}"
        if left := self._more_clicks():
            line += f"; not added to the clicks: {listed(left)}"
        return line

    def _more_clicks(self) -> list[str]:
        """Further columns that are named for clicks and have numbers of them."""
        if "clicks" not in self.roles:
            return []
        rest = [name for name in CLICKS.columns(self.names) if name not in self.roles.values()]
        return [name for name in rest if _fits("clicks", self.cells.get(name, ()))]


def guess_columns(
    path: AnyPath,
    how: Reading | None = None,
    given: Mapping[str, str] | None = None,
    *,
    of_products: bool = False,
) -> Guess:
    """Guess the columns of a table of clicks from its header and its first rows.

    The file is CSV or other delimited text with a header, JSON, Parquet or a record of searches.
    ``given`` has the columns of roles that are known. A table ``of_products`` has an id, a title
    and fields. Raises `SentembError` if it cannot be read or is not a regular file.
    """
    how = how or Reading()
    names = names_of(path, how)
    cells = _first_cells(path, names, how)
    known = given or {}
    roles = {role: names[index_of(known[role], names, place_name(path))] for role in known}
    asked = ("id", "title") if of_products else tuple(_ROLES)
    for role in asked:
        if role not in roles:
            rest = [name for name in names if name not in roles.values()]
            is_event = role == "event"
            fitting = _event(rest, cells) if is_event else _fitting(_ROLES[role], rest, cells)
            if fitting is not None:
                roles[role] = fitting
    roles = _ordered(roles)
    fields = _fields(names, roles, cells) if of_products else {}
    return Guess(place_name(path), names, roles, fields, cells)


def fitting_columns(meanings: Sequence[Meaning], path: AnyPath, how: Reading) -> dict[Wanted, str]:
    """The columns with these meanings where several have usual names: their cells decide.

    Nothing is said of a stream, which is read once, nor of a table that cannot be read.
    """
    if how.header is False or str(path) == "-" or not is_file(path):
        return {}
    try:
        names = names_of(path, how)
        several = [meaning for meaning in meanings if len(meaning.columns(names)) > 1]
        cells = _first_cells(path, names, how) if several else {}
    except SentembError:  # said when the table is read
        return {}
    by_cells = {meaning: _fitting(meaning, names, cells) for meaning in several}
    return {meaning: name for meaning, name in by_cells.items() if name is not None}


def _fitting(
    meaning: Meaning, names: Sequence[str], cells: Mapping[str, Sequence[str]]
) -> str | None:
    """The surest of ``names`` whose cells can have a meaning."""
    columns = meaning.columns(names)
    return next((name for name in columns if _fits(meaning.what, cells.get(name, ()))), None)


def names_of(path: AnyPath, how: Reading) -> list[str]:
    """The columns of a table in a file, which has a header.

    Raises `SentembError` as `guess_columns`.
    """
    check_readable_twice(path)
    if is_record(path):
        return list(COLUMNS)
    names: list[str] = []
    reading = Reading(how.format, how.delimiter, how.encoding, True, how.quotes)
    bad = BadRows(skip=True)
    rows = Rows(path, ("1", "1"), reading, bad, names.extend, is_head=_is_head)
    for _ in islice(rows, 1):
        pass
    if not names and bad.first is not None:
        raise bad.first
    return names


def check_readable_twice(path: AnyPath) -> None:
    """Refuse a folder, standard input and a pipe: the table in them could not be read twice."""
    check_folder(path)
    if str(path) == "-" or (status(path) is not None and not is_file(path)):
        raise SentembError(
            f"{place_name(path)}: is not a regular file, and is read twice; save the table as one"
        )


def _is_head(cells: list[str]) -> bool:
    """Whether two of the cells are usual names of columns."""
    known = [cell for cell in cells if any(m.has(cell) for m in (*ROLES, *FIELDS))]
    return len({letters_of(cell) for cell in known}) > 1


def _first_cells(path: AnyPath, names: Sequence[str], how: Reading) -> dict[str, list[str]]:
    """The first cells of all columns that hold texts and numbers."""
    columns = [name for name in dict.fromkeys(names) if names.count(name) == 1]
    cells: dict[str, list[str]] = {name: [] for name in columns}
    unreadable: set[str] = set()
    if len(columns) < 2:
        return cells
    bad = BadRows(skip=True)
    rows = Rows(path, columns, how, bad, optional=columns, on_unusable=unreadable.add)
    for _, row in islice(rows, _LOOKED_AT):
        for name, cell in zip(columns, row, strict=True):
            cells[name].append(cell)
    if bad.first is not None and not any(cells.values()):
        raise bad.first
    return {name: column for name, column in cells.items() if name not in unreadable}


def columns_of_clicks(
    path: AnyPath, how: Reading, names: Sequence[str], used: Collection[str]
) -> tuple[list[str], list[str]]:
    """The columns of clicks and of kinds of events, and those that may be numbers of clicks.

    They are among ``names`` and not ``used``. Those that may be have integers, some of them small
    unless the name has to do with clicks, and their names mean nothing else.
    """
    rest = [name for name in names if name and name not in used]
    cells = _first_cells(path, names, how) if rest else {}
    named = [CLICKS.column(rest), _event(rest, cells)]
    may_be = [name for name in _unnamed(rest) if _may_be_counts(name, cells.get(name, ()))]
    return [name for name in named if name is not None], may_be


def _unnamed(names: Sequence[str]) -> list[str]:
    """Those of ``names`` that mean nothing."""
    known = (*ROLES, OTHER, *FIELDS)
    return [name for name in names if not any(meaning.has(name) for meaning in known)]


def _event(names: Sequence[str], cells: Mapping[str, Sequence[str]]) -> str | None:
    """The column that says what kind of event a row is: by its name, or by its cells alone."""
    named = _fitting(EVENT, names, cells)
    by_cells = (name for name in _unnamed(names) if tells_clicks(cells.get(name, ())))
    return next(by_cells, None) if named is None else named


def _may_be_counts(name: str, cells: Sequence[str]) -> bool:
    if not _fits("clicks", cells):
        return False
    counts = ClickCells()
    counts.look_at(cells)
    numbers = {number for cell in cells for number in _counts_in(cell, counts) or ()}
    if len(numbers) < 2 or max(numbers) < 2:
        return False
    return min(numbers) <= _SMALL or says_clicked(name)


def _fits(role: str, cells: Sequence[str]) -> bool:
    """Whether the cells of a column can have a role; without any, any can."""
    filled = [cell for cell in cells if cell.strip() and not is_missing(cell)]
    if not filled:
        return not cells
    counts = ClickCells()
    counts.look_at(filled)
    counts.are_events &= role == "event"
    n_counts = sum(_counts_in(cell, counts) is not None for cell in filled)
    if role in ("clicks", "event"):
        has_numbers = role == "event" and any(map(str.isdigit, filled))
        return n_counts > _COUNTED * len(filled) and not has_numbers
    return role == "id" or n_counts < len(filled)


def _differ(cells: Sequence[str]) -> bool:
    """Whether most texts of a column differ, and are not addresses."""
    filled = [cell for cell in cells if cell.strip()]
    n_addresses = sum("://" in cell for cell in filled)
    return len(set(filled)) > _DIFFERENT * len(filled) and 2 * n_addresses < len(filled)


def _ordered(roles: Mapping[str, str]) -> dict[str, str]:
    return {role: roles[role] for role in _ROLES if role in roles}


def _counts_in(cell: str, counts: ClickCells) -> list[int] | None:
    """The numbers of clicks in a cell, which may be a list; None if it has something else."""
    values = listed_in(cell)
    try:
        return [counts.read(value) for value in ([cell] if values is None else values)]
    except SentembError:
        return None


def _fields(
    names: Sequence[str], roles: Mapping[str, str], cells: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Every column without a role, by the name that it gets."""
    rest = [
        name
        for name in names
        if name in cells and name not in (roles.get("id"), roles.get("title"))
    ]
    fields: dict[str, str] = {}
    for meaning in FIELDS:
        column = next(
            (name for name in meaning.columns(rest) if any(cells[name]) or not cells[name]), None
        )
        if column is not None and column not in fields.values():
            fields[meaning.what] = column
    for name in rest:
        if name not in fields.values():
            fields[_free_name(name, fields)] = name
    return fields


def _free_name(name: str, taken: Mapping[str, str]) -> str:
    """A name that a field can have, and that no other has."""
    plain = "".join(
        " " if letter in '",=' or not letter.isprintable() else letter for letter in name
    )
    plain = " ".join(plain.split())[: _MOST_NAME - 3] or "field"
    used = {*_RESERVED, *(name.lower() for name in taken)}
    numbered = (plain if k == 1 else f"{plain} {k}" for k in range(1, len(used) + 2))
    return next(name for name in numbered if name.lower() not in used)


# -- two tables ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SharedId:
    """The columns by which two tables name the same products.

    clicks, products : the columns of the id, of one or two columns
    """

    clicks: tuple[str, ...]
    products: tuple[str, ...]


def shared_id(clicks: Guess, products: Guess, path: AnyPath, how: Reading) -> SharedId:
    """The columns that both tables share as the id of a product.

    It is the one whose cells in the clicks are found among the products, which have few rows each;
    columns that are not named for what was shown come first, then those with the same name, then
    those with usual names. Where one id has rows with several titles, a second column of both, such
    as the locale, belongs to it. ``path`` is that of the products. Raises `SentembError` if there
    is none.
    """
    asked = {
        name: _values(cells)
        for name, cells in clicks.cells.items()
        if name not in (clicks.roles.get(role) for role in ("query", "clicks", "event"))
    }
    asked = {name: values for name, values in asked.items() if values}
    matches = _matches(asked, products, path, how)

    def rank(pair: tuple[str, str]) -> tuple[bool, bool, bool, bool, float]:
        ours, theirs = pair
        is_title = theirs == products.roles.get("title")
        same = letters_of(ours) == letters_of(theirs)
        usual = ID.has(ours) and ID.has(theirs)
        return not is_title, not says_shown(ours), same, usual, matches[pair].share

    fitting = [pair for pair, match in matches.items() if match.is_id]
    if not fitting:
        if "id" not in clicks.roles or "id" not in products.roles:
            raise SentembError(
                f"{clicks.name}: no column has ids of {products.name}; name both columns with "
                "--id-column and --catalogue-id-column"
            )
        return SharedId((clicks.roles["id"],), (products.roles["id"],))
    best = max(fitting, key=rank)
    is_product = matches[best].is_product, _plain(best[1]) in asked[best[0]]
    for guess, name, is_id in zip((clicks, products), best, is_product, strict=True):
        if is_id:
            raise SentembError(
                f"{guess.name}: the first line has a product ({brief(name)}) and no names of "
                "columns; add a line of names"
            )
    second = matches[best].second
    if second is None:
        return SharedId(best[:1], best[1:])
    return SharedId((best[0], second[0]), (best[1], second[1]))


@dataclass
class _ColumnMatch:
    """How a column of clicks is found in one of products.

    n_asked : distinct cells that are looked for
    rows : the rows of each cell that was found: those of other shared columns, and titles
    shared : the other columns that both tables share, each with the cells in the clicks
    is_product : whether the name of the column in the clicks was found, too
    """

    n_asked: int
    shared: Sequence[tuple[str, str]]
    rows: dict[str, list[tuple[tuple[str, ...], str]]] = field(default_factory=dict)
    is_product: bool = False

    @property
    def share(self) -> float:
        return len(self.rows) / self.n_asked

    @property
    def is_id(self) -> bool:
        n_rows = sum(map(len, self.rows.values()))
        return self.share >= _FOUND and n_rows <= _MOST_ROWS * len(self.rows)

    @property
    def second(self) -> tuple[str, str] | None:
        """The column that tells the rows of an id apart, if they have several titles."""
        several = [rows for rows in self.rows.values() if len({title for _, title in rows}) > 1]
        for k, pair in enumerate(self.shared):
            if several and all(
                len({cells[k] for cells, _ in rows}) == len(rows) for rows in several
            ):
                return pair
        return None


def _matches(
    asked: Mapping[str, frozenset[str]], products: Guess, path: AnyPath, how: Reading
) -> dict[tuple[str, str], _ColumnMatch]:
    """How each column of clicks is found in each column of products."""
    columns = list(products.cells)
    title = products.roles.get("title")
    pairs = {}
    for ours, values in asked.items():
        for theirs in columns:
            shared = [
                (name, same)
                for name in asked
                for same in columns
                if _may_be_one(name, same) and name != ours and same not in (theirs, title)
            ]
            pairs[ours, theirs] = _ColumnMatch(len(values), shared)
    number = {name: k for k, name in enumerate(columns)}
    asking: dict[str, list[str]] = {}
    for ours, values in asked.items():
        for value in values:
            asking.setdefault(value, []).append(ours)
    named = {_plain(ours): ours for ours in asked}
    rows = Rows(
        path, columns, how, BadRows(skip=True), optional=columns, on_unusable=lambda _: None
    )
    for _, cells in rows:
        shown = "" if title is None else cells[number[title]].strip()
        is_titled = title is None or bool(shown and not is_missing(shown))
        texts = [
            (theirs, _plain(value))
            for theirs, cell in zip(columns, cells, strict=True)
            for value in (listed_in(cell) if cell[:1] == "[" else None) or [cell]
        ]
        for theirs, value in texts:
            if value in named:
                pairs[named[value], theirs].is_product = True
            for ours in asking.get(value, ()):
                match = pairs[ours, theirs]
                known = match.rows.setdefault(value, [])
                if not known or (is_titled and len(known) < _KEPT_ROWS):
                    known.append((tuple(cells[number[same]] for _, same in match.shared), shown))
    return pairs


def _may_be_one(ours: str, theirs: str) -> bool:
    """Whether columns of two tables may hold the same, by their names."""
    return letters_of(ours) == letters_of(theirs) or (LOCALE.has(ours) and LOCALE.has(theirs))


def _values(cells: Sequence[str]) -> frozenset[str]:
    """The distinct ids in cells; those of a list one by one."""
    values = {value for cell in cells for value in _ids_in(cell)}
    return frozenset(value for value in map(_plain, values) if value and not is_missing(value))


def _ids_in(cell: str) -> Iterator[str]:
    values = listed_in(cell)
    if values is not None:
        yield from values
    elif "|" in cell:
        yield from parts_of(cell)[0]
    else:
        yield cell


def _plain(cell: str) -> str:
    """An id without the first zeros and the decimals that a spreadsheet drops and adds."""
    bare = cell.strip()
    whole, mark, decimals = bare.partition("." if "." in bare else ",")
    if mark and whole.isdigit() and not decimals.strip("0") and len(decimals) < 3:
        bare = whole
    return bare.lstrip("0") or bare if bare.isdigit() else bare
