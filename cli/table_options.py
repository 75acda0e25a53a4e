"""The options that say what the columns of a shop's tables hold; those of `import` and `start`."""

from collections.abc import Callable
from typing import Any

import click

from sentemb.cli.options import option

_BY_NAME = "[default: the column that is usually named so]"


def table_options(
    *, in_catalogue: str, guesses: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add the options to a command; ``in_catalogue`` is their group for those of the products.

    A command that ``guesses`` has other defaults.
    """
    clicks = _BY_NAME if guesses else "[default: each row is one click]"
    id = "[default: the column that both tables share]" if guesses else _BY_NAME
    catalogue_id = "as for the clicks" if guesses else "as in FILE"
    fields = " [default: all others]" if guesses else ""
    added = (
        option("--query-column", metavar="COLUMN", help=f"The query. {_BY_NAME}"),
        option(
            "--title-column",
            metavar="COLUMN",
            help=f"The clicked title; with a catalogue a column of that. {_BY_NAME}",
        ),
        option(
            "--clicks-column",
            metavar="COLUMN",
            multiple=True,
            help="Number of clicks, or a flag such as true; give it twice for a number and the "
            f"kind of event that it counts. {clicks}",
        ),
        option(
            "--max-lost",
            metavar="SHARE",
            type=float,
            default=0.05,
            show_default=True,
            help="Stop if more of the rows or clicks would be dropped: bad, or with an id that has "
            "no title.",
        ),
        option(
            "--id-column",
            metavar="COLUMN",
            multiple=True,
            group=in_catalogue,
            help="Id of the product in the clicks; give it twice for an id of two columns, such as "
            f"id and locale. {id}",
        ),
        option(
            "--catalogue-id-column",
            metavar="COLUMN",
            multiple=True,
            group=in_catalogue,
            help=f"Id of the product in the catalogue. [default: {catalogue_id}]",
        ),
        option(
            "--fields",
            metavar="COLUMNS",
            multiple=True,
            group=in_catalogue,
            help="Columns of the catalogue that stay with the products, with commas between them: "
            f"price,stock,image=picture_url names the column picture_url image.{fields}",
        ),
        option(
            "--encoding",
            default="utf-8",
            show_default=True,
            group="Reading",
            help="Encoding of text; UTF-16 is recognised.",
        ),
        option("--delimiter", metavar="CHARACTER", group="Reading", help="Between columns of CSV."),
    )

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for add in reversed(added):
            function = add(function)
        return function

    return decorate


def delimiter_of(text: str | None) -> str | None:
    r"""The delimiter, which a shell passes as ``\t`` or tab more easily than as a tab."""
    return "\t" if text in ("\\t", "tab") else text


def fields_kept(fields: tuple[str, ...], catalogue: str | None, encoding: str) -> dict[str, str]:
    """The fields that are kept; a catalogue in a file says which commas belong to a name."""
    from sentemb.data.importers.columns import Reading
    from sentemb.data.importers.guessing import names_of
    from sentemb.system.files import is_file

    has_names = any("," in text for text in fields) and catalogue not in (None, "-")
    names = []
    if has_names and catalogue is not None and is_file(catalogue):
        names = names_of(catalogue, Reading(encoding=encoding))
    return field_columns(fields, names)


def field_columns(texts: tuple[str, ...], names: list[str]) -> dict[str, str]:
    """Names and columns of each ``name,name=column``.

    Commas in a column that is one of ``names`` do not separate.
    """
    from sentemb.data.importers.columns import same_names

    columns: dict[str, str] = {}
    for text in texts:
        parts = text.split(",")
        while parts:
            for end in range(len(parts), 0, -1):
                name, mark, column = ",".join(parts[:end]).strip().partition("=")
                column = column.strip() if mark else name
                if end == 1 or (not (mark and "," in name) and same_names(column, names)):
                    break
            column = column or name.strip()
            # A field cannot have commas in its name.
            name = " ".join(name.replace(",", " ").split())
            if name in columns:
                raise click.UsageError("--fields has a name twice; give each once")
            columns[name] = column
            parts = parts[end:]
    return columns
