"""Traces of tables in files of tab-separated texts: a line of column names, ids, quotes of CSV.

Without this check the header would be read as a pair, and ids and quotes as texts.
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


def ids_alone(names: Sequence[str]) -> str:
    """The kind of a table of ids without texts whose first line is this, and the remedy.

    Empty for any other line.
    """
    words = names[0].split() if len(names) == 1 else list(names)
    if {"queryid", "corpusid"} <= set(map(letters_of, words)):
        return "these are judgments in the format of BEIR: use `sentemb data beir FOLDER`"
    if len(words) == 4 and words[1] in ("0", "Q0") and words[3].lstrip("-").isdigit():
        what = "judgments of TREC"
    elif len(words) == 6 and words[1] == "Q0":
        return "this looks like a run of TREC: `sentemb evaluate RUN JUDGED` reads it"
    elif len(words) > 2 and all(map(str.isdigit, words)):
        what = "judgments, a run or triples of MS MARCO"
    elif len(words) == len(names) == 2 and words[0].isdigit() and not words[1].isdigit():
        return (
            "the first line is an id and a text, as in MS MARCO, and no names of columns: write a "
            "line of names above it, such as id<TAB>title"
        )
    else:
        return ""
    return (
        f"these look like {what}, ids without texts: put queries, documents and judgments in the "
        "format of BEIR and use `sentemb data beir FOLDER`"
    )


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
