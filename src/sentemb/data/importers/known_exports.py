"""Exports that lack what a click log needs: named for what they are, with what to do."""

import re
from collections.abc import Sequence
from pathlib import Path

from sentemb.data.column_names import GRADE, ID, QUERY, SEARCH, TITLE, letters_of
from sentemb.errors import SentembError
from sentemb.system.files import is_file, is_folder
from sentemb.system.paths import AnyPath

# The titles of Brand Analytics, now and in older reports.
_SIDE_BY_SIDE = re.compile(r"topclickedproducts?[0-9]producttitle|[0-9]producttitle")


def check_folder(path: AnyPath) -> None:
    """Refuse a folder; a `SentembError` says what it may be."""
    if str(path) == "-" or not is_folder(path):
        return
    folder = Path(path)
    if any(is_file(folder / name) for name in ("corpus.jsonl", "corpus.jsonl.gz")):
        raise SentembError(
            f"{path}: is a set in the format of BEIR; use `sentemb data beir {path} -o FOLDER`"
        )
    raise SentembError(f"{path}: is a folder; give a table")


def what_is_lacking(names: Sequence[str]) -> str:
    """The kind of a table with these columns, and the remedy; empty if nothing is known of it."""
    if ids := ids_alone(names):
        return ids
    if len(names) > 1 and {"_id", "text"} <= set(names) <= {"_id", "title", "text", "metadata"}:
        return "these are texts in the format of BEIR: use `sentemb data beir FOLDER`"
    if len(names) == 4 and names[0].isdigit() and names[3].startswith(("http://", "https://")):
        return (
            "these look like clicks of ORCAS, without a header: use `sentemb import --no-header "
            "--query-column 2 --title-column 4`"
        )
    products = [name for name in names if _SIDE_BY_SIDE.fullmatch(letters_of(name))]
    if products:
        return (
            "Brand Analytics has the clicked products of a search term side by side: import each "
            f"by its own columns, such as --title-column '{products[0]}'"
        )
    has_query, has_product = QUERY.column(names), TITLE.column(names) or ID.column(names)
    if has_query and not has_product:
        return (
            "this is a report of searches alone, which does not say what was clicked: export the "
            "searches together with the clicked product or page"
        )
    if has_product and not has_query and SEARCH.column(names):
        return (
            "these are clicks without the texts of their queries: join them with the searches by "
            f"{SEARCH.column(names)} first"
        )
    return ""


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


def graded_column(names: Sequence[str]) -> str | None:
    """A column of what judges said, which no click is."""
    return GRADE.column(names)
