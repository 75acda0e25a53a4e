"""Titles together with the queries that they were clicked for."""

from collections.abc import Sequence

from sentemb.data.click_log import ClickLog

# BM25 by the names that `sentemb.evaluate` has for it: whether it has stems, and the queries that
# were clicked on a title.
LEXICAL = {
    "bm25": (False, False),
    "bm25-stem": (True, False),
    "bm25-clicks": (False, True),
    "bm25-stem-clicks": (True, True),
}
LETTERS = "letters-clicks"  # see `sentemb.comparison.baselines.letters`
# What needs no model.
BASELINES = (*LEXICAL, LETTERS)


def with_clicked_queries(titles: Sequence[str], log: ClickLog) -> list[str]:
    """Each title, followed by the queries that it was clicked for.

    BM25 over these texts ("bm25-clicks") learns from the clicks: a title then holds the words that
    users look for it with.

    Parameters
    ----------
    titles : sequence of str
        A catalogue. Titles with the same text, white space around it aside, get the same queries.
    log : ClickLog
        The clicks. A query that was clicked several times counts once. Titles of the log that are
        not in the catalogue are ignored.

    Returns
    -------
    list of str
        As long as ``titles``.

    Examples
    --------
    >>> from sentemb.data.click_log import ClickLogBuilder
    >>> builder = ClickLogBuilder()
    >>> builder.add("fix tap", "Repair a Faucet")
    >>> builder.add("drip", "Repair a Faucet")
    >>> with_clicked_queries(["Repair a Faucet", "Paint a Wall"], builder.build())
    ['Repair a Faucet fix tap drip', 'Paint a Wall']
    """
    queries_of = clicked_queries(log)
    return [" ".join([title, *queries_of.get(title.strip(), ())]) for title in titles]


def clicked_queries(log: ClickLog) -> dict[str, list[str]]:
    """Each title of ``log`` with the queries that it was clicked for."""
    queries_of: dict[str, list[str]] = {}
    for q, t in zip(log.query_index.tolist(), log.title_index.tolist(), strict=True):
        queries_of.setdefault(log.titles[t], []).append(log.queries[q])
    return queries_of
