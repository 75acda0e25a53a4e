"""Which clicks say that a title is right: those that are more than chance.

People click a title that is not what they look for, now and then. In a log alone such a click looks
like any other, and more than half of the distinct pairs of a log may be of this kind. Where a
record says how often titles were looked at, most of them can be told: the title was looked at often
and clicked rarely. They are still served, where clicks count by how often a title was looked at,
but nothing is learned from them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.text.words import exact_key

# A title is clicked by chance if its clicks per look are less than one third of what is typical.
_OF_TYPICAL = 3
# Clicks and looks that every title has to begin with.
_CLICKS, _LOOKS = 0.3, 1.0
# With fewer queries left, single clicks judge a ranking too.
_FEWEST_JUDGING = 50
# A query by its `exact_key`, and the number of a product.
_Pair: TypeAlias = tuple[str, int]


@dataclass(frozen=True, eq=False)
class BelievedClicks:
    """The clicks on products for queries, and how often these were looked at.

    clicks : the log, with its examinations
    counts, looks : of each pair that was looked at
    least : the clicks per look from which on a title is not clicked by chance
    """

    clicks: ClickedQueries
    counts: Counter[_Pair]
    looks: dict[_Pair, float]
    least: float

    @classmethod
    def of(cls, clicks: ClickedQueries) -> Self:
        """Count the clicks and the looks of a log with examinations."""
        looked, looks = clicks.examinations, defaultdict[_Pair, float](float)
        counts = Counter[_Pair]()
        if not looked.times.size:
            return cls(clicks, counts, looks, 0.0)
        numbers = [clicks.product(*each) for each in zip(looked.ids, looked.titles, strict=True)]
        pairs = looked.query_index.tolist(), looked.product_index.tolist(), looked.times.tolist()
        for q, p, times in zip(*pairs, strict=True):
            if numbers[p] >= 0:
                looks[looked.queries[q], numbers[p]] += times
        keys = list(map(exact_key, clicks.queries))
        products = np.repeat(np.arange(len(clicks.keys)), np.diff(clicks.offsets)).tolist()
        for p, q, n in zip(products, clicks.clicked.tolist(), clicks.clicks.tolist(), strict=True):
            if (keys[q], p) in looks:
                counts[keys[q], p] += n
        rates = [_rate(n, looks[pair]) for pair, n in counts.items()]
        typical = float(np.average(rates, weights=list(counts.values()))) if rates else 0.0
        return cls(clicks, counts, looks, typical / _OF_TYPICAL)

    def part(self, log: ClickLog, at_least: int = 1) -> ClickLog:
        """The clicks of ``log``, a part of these, that are more than chance, if there are some.

        A pair that was looked at needs ``at_least`` this number of clicks.
        """
        if not self.looks:
            return log
        keys = list(map(exact_key, log.queries))
        numbers = [self.clicks.product("", title) for title in log.titles]
        pairs = log.query_index.tolist(), log.title_index.tolist(), log.clicks.tolist()
        is_believed = np.zeros(log.clicks.size, np.bool_)
        for k, (q, t, n) in enumerate(zip(*pairs, strict=True)):
            pair = keys[q], numbers[t]
            count = max(self.counts[pair], n)
            is_believed[k] = pair not in self.looks or (
                count >= at_least and _rate(count, self.looks[pair]) >= self.least
            )
        keeps_some = is_believed.any() and not is_believed.all()
        return log.of_pairs(is_believed) if keeps_some else log

    def judging(self, log: ClickLog) -> ClickLog:
        """Those that a ranking can be judged by; a single click on a title is hardly one."""
        for at_least in (2, 1):
            believed = self.part(log, at_least)
            if len(believed.queries) >= _FEWEST_JUDGING:
                return believed
        return log


def _rate(clicks: int, looks: float) -> float:
    return (clicks + _CLICKS) / (looks + _LOOKS)
