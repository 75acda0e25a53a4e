"""Numbers of things, to read."""


def amount(count: int, what: str) -> str:
    """``count`` with the noun ``what``, in the plural unless there is one.

    Examples
    --------
    >>> amount(1, "title"), amount(2000, "clicked query")
    ('1 title', '2,000 clicked queries')
    """
    if count == 1:
        return f"1 {what}"
    stem, ending = (what[:-1], "ies") if what.endswith("ry") else (what, "s")
    return f"{count:,} {stem}{'es' if what.endswith('ch') else ending}"
