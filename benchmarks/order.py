"""Where word order helps: Table IV by length and words of the query.

Splits the test queries of a set by length, by the words they share with a relevant title, and by
whether all their words occur in the log. For table4.py.
"""

import numpy as np
from compared import ORDER_FREE, REFERENCE
from systems import with_interval

from sentemb.evaluation.significance import compare_all
from sentemb.system.tables import markdown_table
from sentemb.text.words import split_words

RIVALS = ORDER_FREE[:2]
SHOWN = ("bm25-stem", *RIVALS, REFERENCE)
DIFFERENCE = f"{REFERENCE} minus the better order-free one"
LENGTHS = {
    "1 word": (1, 1),
    "2 words": (2, 2),
    "3 words": (3, 3),
    "4 to 5 words": (4, 5),
    "6 to 8 words": (6, 8),
    "9 words or more": (9, np.inf),
}
LEAST = 50  # queries per line


def groups(data):
    """Groups of test queries: {name: (n_queries,) bool}."""
    test = data.test
    words = [split_words(query) for query in test.queries]
    n_words = np.array([len(some) for some in words])
    known = {word for query in data.log.queries for word in split_words(query)}
    met = np.array([known.issuperset(some) for some in words])
    shared = np.array([_shared(test, q, set(some)) for q, some in enumerate(words)])
    return {
        **{name: (n_words >= low) & (n_words <= high) for name, (low, high) in LENGTHS.items()},
        "no word in a relevant title": shared == 0,
        "some words in a relevant title": (shared > 0) & (shared < 1),
        "all words in a relevant title": shared == 1,
        "all words in queries of the log": met,
        "some word not in them": ~met,
    }


def _shared(test, q, words):
    """Share of the words of query ``q`` that one of its best titles has."""
    judged = slice(*test.offsets[q : q + 2])
    grade = test.grade[judged]
    right = test.title_index[judged][grade == grade.max()]
    return max(len(words & set(split_words(test.titles[d]))) / len(words) for d in right)


def figures(comparison, names):
    """NDCG@1 of every test query that has a relevant title by some rows, and which have."""
    found = {name: comparison.per_query(name)[:, 0] for name in names}
    judged = ~np.isnan(found[REFERENCE])
    return {name: values[judged] for name, values in found.items()}, judged


def cells(found, some=slice(None)):
    """The means over ``some`` of the queries, and the reference minus the better rival."""
    theirs = max((found[name][some] for name in RIVALS), key=np.mean)
    gap = compare_all([found[REFERENCE][some]], theirs)[0]
    means = (values[some].mean() for values in found.values())
    return [*(f"{m:.3f}" for m in means), with_interval(gap)]


def cut_table(comparison):
    """Lines of a table of all groups of test queries that are large enough."""
    found, judged = figures(comparison, SHOWN)
    rows = [["test queries", "number", *SHOWN, DIFFERENCE]]
    rows.append(["all", f"{judged.sum():,}", *cells(found)])
    for name, group in groups(comparison.data).items():
        some = group[judged]
        if some.sum() >= LEAST:
            rows.append([name, f"{some.sum():,}", *cells(found, some)])
    return markdown_table(rows)
