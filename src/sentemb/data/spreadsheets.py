"""Traces of tables in files of tab-separated texts: a line of column names, quotes of CSV.

Without this check the header would be read as a pair, and the quotes as letters of the texts.
"""

from collections.abc import Sequence

from sentemb.data.column_names import is_usual, letters_of

REMEDY = "use `sentemb import`"


def is_header(fields: Sequence[str]) -> bool:
    """Whether ``fields``, two at least, are all different names that tables give to columns.

    Examples
    --------
    >>> is_header(["Query", "Clicked title"]), is_header(["query", "title", "1"])
    (True, False)
    """
    names = [letters_of(field) for field in fields]
    return len(names) > 1 and len(set(names)) == len(names) and all(map(is_usual, fields))


def is_quoted(fields: Sequence[str], first: bool = False) -> bool:
    """Whether a program that writes CSV put quotes around some of ``fields``.

    One field is proof if it has a doubled quote inside. Two fields in quotes are proof only in the
    ``first`` line: such a program quotes every line, and people put quotes around a phrase too.

    Examples
    --------
    >>> is_quoted(["laptop", '"Acme 15.6"" Laptop"']), is_quoted(['"heroes"', '"Heroes"'])
    (True, False)
    """
    quoted = [field for field in fields if _has_csv_quotes(field)]
    return (first and len(quoted) > 1) or any('""' in field[1:-1] for field in quoted)


def _has_csv_quotes(field: str) -> bool:
    """Whether ``field`` is in quotes, and every quote inside is doubled."""
    inside = field[1:-1].replace('""', "")
    return len(field) > 1 and field[0] == field[-1] == '"' and '"' not in inside
