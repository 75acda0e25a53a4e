"""Clicks that are more than chance, by how often titles were looked at."""

from dataclasses import replace

import numpy as np
from helpers import made_up_model

from sentemb import fit_ranker
from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import Examinations, Shown
from sentemb.data.search_record import Searched, SearchRecord
from sentemb.retrieval.believed_clicks import BelievedClicks
from sentemb.retrieval.clicked_queries import ClickedQueries

# Query, title, clicks, and how often it was looked at in the first place.
SEEN = [
    ("red hat", "Red Hat", 30, 50),
    ("red hat", "Hat Box", 2, 40),  # a click in twenty
    ("Hat?", "Hat Box", 9, 20),
    ("hat", "Red Hat", 1, 1),
    ("tea", "Tea Pot", 1, 0),  # the record does not say
    ("tea", "Hat Box", 1, 30),
]
IDS = {"Red Hat": "a", "Hat Box": "b", "Tea Pot": "c"}


def believed_of(rows, names=None):
    """What rows say; ``names`` are newer titles of products."""
    log = ClickLog.from_pairs((q, (names or {}).get(t, t), n) for q, t, n, _ in rows)
    looked = Examinations.of(Shown(q, IDS[t], t, 1, n) for q, t, _, n in rows if n)
    clicks = replace(ClickedQueries.of(log), examinations=looked)
    if names:
        clicks = clicks.with_ids([names.get(t, t) for t in IDS], list(IDS.values()))
    return BelievedClicks.of(clicks), log


def pairs_of(log):
    pairs = zip(log.query_index, log.title_index, log.clicks.tolist(), strict=True)
    return [(log.queries[q], log.titles[t], n) for q, t, n in pairs]


def test_a_title_that_is_looked_at_and_rarely_clicked_was_clicked_by_chance():
    believed, log = believed_of(SEEN)
    assert pairs_of(believed.part(log)) == [
        ("red hat", "Red Hat", 30),
        ("Hat?", "Hat Box", 9),
        ("hat", "Red Hat", 1),
        ("tea", "Tea Pot", 1),
    ]
    # A third of what a click typically has: (c + 0.3) / (n + 1), the mean over clicks.
    known = [(n, (n + 0.3) / (looks + 1)) for _, _, n, looks in SEEN if looks]
    assert believed.least == sum(n * rate for n, rate in known) / sum(n for n, _ in known) / 3
    # Of a part of the clicks all of them say what it is worth, in any spelling.
    single = ClickLog.from_pairs([("RED hat", "Red Hat"), ("red hat", "Hat Box")])
    assert pairs_of(believed.part(single)) == [("RED hat", "Red Hat", 1)]
    assert pairs_of(believed.part(log, at_least=2)) == [
        ("red hat", "Red Hat", 30),
        ("Hat?", "Hat Box", 9),
        ("tea", "Tea Pot", 1),
    ]


def test_products_that_were_renamed_are_known_by_their_ids():
    names = {"Hat Box": "A Box for Hats"}
    believed, log = believed_of(SEEN, names)
    expected, _ = believed_of(SEEN)
    assert believed.least == expected.least
    assert len(believed.part(log).clicks) == 4


def test_of_titles_without_clicks_nothing_is_known():
    """However often another such title was looked at."""
    looked = Examinations.of(Shown("tea", id, title, 1, 30) for title, id in IDS.items())
    log = ClickLog.from_pairs([("tea", "Red Hat", 20)])
    believed = BelievedClicks.of(replace(ClickedQueries.of(log), examinations=looked))
    later = ClickLog.from_pairs([("tea", "Red Hat", 1), ("tea", "Green Tea", 1)])
    assert pairs_of(believed.part(later)) == pairs_of(later)


def test_without_a_record_every_click_counts():
    believed, log = believed_of([(*row[:3], 0) for row in SEEN])
    assert believed.part(log) is log is believed.judging(log)


def test_single_clicks_judge_only_where_few_others_do():
    for n, judging in ((49, 60), (50, 50)):
        rows = [(f"query {k}", "Red Hat", 2 if k < n else 1, 1) for k in range(60)]
        believed, log = believed_of(rows)
        assert len(believed.judging(log).queries) == judging


def test_a_ranker_is_fitted_to_clicks_that_are_more_than_chance(tmp_path):
    titles = [f"{a} {b}" for a in ("red", "blue", "green", "grey") for b in ("hat", "tea", "pot")]
    catalogue = {f"p{k}": title for k, title in enumerate(titles)}
    model = made_up_model(("bag", {}), titles, cells=6, dtype=np.float32)
    log = ClickLog.from_pairs([(title, title, 3) for title in titles])
    good = [(f"{title} {k}", title, 2) for title in titles for k in range(5)]
    stray = [(f"{k} {title}", titles[0], 1) for k, title in enumerate(titles)]
    record = SearchRecord(tmp_path / "r.sqlite")
    shown = [Searched(query, [("p0", titles[0])], None, 1.0) for query, _, _ in stray * 20]
    record.add_searches(shown)
    record.close()
    dev = ClickLog.from_pairs([*good, *stray])
    for records, queries in (([], 72), ([tmp_path / "r.sqlite"], 60)):
        given = {"catalogue": catalogue, "record": records, "threads": 1}
        assert fit_ranker(model, log, dev, **given).dev["queries"] == queries
