"""Exports that lack what a click log needs: named for what they are, with what to do."""

import re
from collections.abc import Sequence
from pathlib import Path

from sentemb.data.column_names import GRADE, ID, QUERY, SEARCH, TITLE, letters_of
from sentemb.data.spreadsheets import ids_alone
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
    if {"keys", "clicks"} <= set(names):
        return (
            "these are rows of the API of Search Console, with query and page in keys: use jq -c "
            "'.rows[] | {query: .keys[0], page: .keys[1], clicks}'"
        )
    if any(name.startswith("event_params") for name in names):
        return (
            "these are raw events of GA4, with their texts in lists of keys: select search_term, "
            "item_id and item_name of the clicks in BigQuery first, as columns"
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
            "no column looks like the product or page that was clicked, as in a report of searches "
            f"alone; there are {', '.join(names)[:60]}: name it with --title-column or "
            "--id-column, or export it too"
        )
    if has_product and not has_query and SEARCH.column(names):
        return (
            "these are clicks without the texts of their queries: join them with the searches by "
            f"{SEARCH.column(names)} first"
        )
    return ""


def graded_column(names: Sequence[str]) -> str | None:
    """A column of what judges said, which no click is."""
    return GRADE.column(names)
