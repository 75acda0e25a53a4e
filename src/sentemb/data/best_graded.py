"""The best titles of a judged set as clicks."""

import numpy as np

from sentemb.data.click_log import ClickLog, ClickLogBuilder
from sentemb.data.held_out_clicks import read_held_out
from sentemb.data.judged_set import JudgedSet
from sentemb.errors import SentembError
from sentemb.system.paths import AnyPath


def best_graded(judged: JudgedSet) -> ClickLog:
    """A click on each title that has the highest grade of its query.

    Where a whole catalogue is ranked, a judged set then serves as held-out clicks: most titles of
    the catalogue have no grade. Queries whose grades are all 0 are left out; a `SentembError` if no
    grade is above 0.
    """
    builder = ClickLogBuilder()
    for q, query in enumerate(judged.queries):
        span = slice(*judged.offsets[q : q + 2])
        grades, titles = judged.grade[span], judged.title_index[span]
        for title in titles[(grades > 0) & (grades == np.max(grades, initial=1))].tolist():
            builder.add(query, judged.titles[title])
    clicks = builder.build()
    if not clicks.queries:
        raise SentembError("the judged set has no grade above 0; give another")
    return clicks


def read_clicks(path: AnyPath) -> ClickLog:
    """Held-out clicks: those in a file, or the best titles of the judged set in a folder."""
    held_out = read_held_out(path)
    return best_graded(held_out) if isinstance(held_out, JudgedSet) else held_out
