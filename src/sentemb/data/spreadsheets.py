"""Traces of tables in files of tab-separated texts: a line of column names, quotes of CSV.

Without this check the header would be read as a pair, and the quotes as letters of the texts.
"""

from collections.abc import Sequence

REMEDY = "use `sentemb import`"

_QUERY = """
    anfrage keyword keywords phrase q queries query query_string query_text querytext search
    search_keyword search_phrase search_query search_string search_term search_terms search_text
    searchquery searchterm suchanfrage suchbegriff term terms user_query
"""
_TITLE = """
    clicked clicked_document clicked_item clicked_product clicked_result clicked_title clicked_url
    description doc doc_title doctitle document document_title item item_name item_title link name
    page page_title product product_name product_title result result_title target text title titel
    title_clicked titles url
"""
_NUMBER = """
    click click_count clickcount clicks count counts date day frequency freq grade impressions
    klicks label n n_clicks num_clicks number number_of_clicks position rank relevance score session
    session_id shown skipped sum time timestamp total user user_id views weight
"""
_ID = """
    article_id asin doc_id docid document_id id item_id itemid key page_id pid product_id productid
    qid query_id queryid sku title_id url_id
"""
_NAMES = frozenset(f"{_QUERY} {_TITLE} {_NUMBER} {_ID}".split())


def is_header(fields: Sequence[str]) -> bool:
    """Whether ``fields``, two at least, are all different names that tables give to columns.

    Examples
    --------
    >>> is_header(["Query", "Clicked title"]), is_header(["query", "title", "1"])
    (True, False)
    """
    names = [
        field.strip().strip('"').lower().replace(" ", "_").replace("-", "_") for field in fields
    ]
    return len(names) > 1 and len(set(names)) == len(names) and _NAMES.issuperset(names)


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
