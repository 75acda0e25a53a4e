"""The true click rates of a simulated log, from which further months can be drawn: ``rates.jsonl``.

Every click is an independent draw: of a query by its share of the clicks, then of a title by its
rate for that query. The rates of a query add up to less than 1; the rest are stray clicks, on any
of the titles alike.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog, ClickLogBuilder
from sentemb.data.lines import clean_lines, write_lines
from sentemb.errors import SentembError
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath

RATES = "rates.jsonl"


@dataclass(frozen=True, eq=False)
class ClickRates:
    """Which titles are clicked for which queries, and how often in the long run.

    queries : the queries that people have, of which a log has those that got a click
    titles : all titles that they can click
    shares : (n_queries,) float64, the probability that a click is one for the query; they add up
        to 1
    offsets : (n_queries + 1,), query q has ``title_index[offsets[q]:offsets[q + 1]]``
    title_index, grades, rates : (n_shown,), the titles that are shown for the queries, their true
        grades (0 Bad to 3 Excellent), and the probability that a click for the query is on them
    """

    queries: list[str]
    titles: list[str]
    shares: NDArray[np.float64]
    offsets: NDArray[np.int64]
    title_index: NDArray[np.int64]
    grades: NDArray[np.int64]
    rates: NDArray[np.float64]

    def draw(self, clicks: int, seed: int | np.random.Generator) -> NDArray[np.int64]:
        """Query and title of each of ``clicks`` independent clicks, (clicks, 2)."""
        generator = np.random.default_rng(seed)
        query = generator.choice(len(self.queries), clicks, p=self.shares)
        # What is beyond the rates of the query is a stray click.
        cumulative = np.cumsum(self.rates)
        before = np.concatenate(([0.0], cumulative))[self.offsets]
        within = before[query] + generator.random(clicks)
        shown = np.searchsorted(cumulative, within, "right")
        title = generator.integers(len(self.titles), size=clicks)
        is_on_page = within < before[query + 1]
        title[is_on_page] = self.title_index[shown[is_on_page]]
        return np.stack([query, title], axis=1)

    def month(self, clicks: int, seed: int) -> ClickLog:
        """The log of ``clicks`` independent clicks; the same seed gives the same log.

        ``simulate`` draws its log with its own seed; another one gives a month that is independent
        of it.
        """
        builder = ClickLogBuilder()
        for query, title in self.draw(clicks, seed).tolist():
            builder.add(self.queries[query], self.titles[title])
        return builder.build()


def write_click_rates(path: AnyPath, rates: ClickRates) -> None:
    """Write a line of JSON for each query, as docs/formats.md describes them."""
    write_lines(path, _lines(rates))


def _lines(rates: ClickRates) -> Iterator[str]:
    spans = zip(rates.offsets.tolist(), rates.offsets[1:].tolist(), strict=False)
    for query, share, (start, stop) in zip(
        rates.queries, rates.shares.tolist(), spans, strict=True
    ):
        record = {
            "query": query,
            "share": share,
            "titles": [rates.titles[title] for title in rates.title_index[start:stop].tolist()],
            "grades": rates.grades[start:stop].tolist(),
            "rates": rates.rates[start:stop].tolist(),
        }
        yield json.dumps(record, ensure_ascii=False)


def read_click_rates(path: AnyPath) -> ClickRates:
    """Read ``rates.jsonl`` of a simulated log.

    Raises `SentembError`, with file, line and remedy, if it is not one.
    """
    number_of: dict[str, int] = {}
    queries, shares, sizes = [], [], [0]
    title_index: list[int] = []
    grades: list[int] = []
    rates: list[float] = []
    for number, line in clean_lines(path):
        try:
            record = json.loads(line)
            shown = list(zip(record["titles"], record["grades"], record["rates"], strict=True))
            queries.append(str(record["query"]))
            shares.append(float(record["share"]))
            for title, grade, rate in shown:
                title_index.append(number_of.setdefault(str(title), len(number_of)))
                grades.append(int(grade))
                rates.append(float(rate))
        except (ValueError, KeyError, TypeError, RecursionError):
            raise SentembError(
                f"{place_name(path)}:{number}: has no click rates; name a {RATES} that `sentemb "
                "simulate` wrote"
            ) from None
        sizes.append(len(shown))
    if not queries:
        raise SentembError(f"{place_name(path)}: is empty; name a {RATES} of `sentemb simulate`")
    return ClickRates(
        queries,
        list(number_of),
        np.array(shares),
        np.cumsum(sizes, dtype=np.int64),
        np.array(title_index, np.int64),
        np.array(grades, np.int64),
        np.array(rates),
    )
