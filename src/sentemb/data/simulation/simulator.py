"""A simulated search engine's click log, with judged sets and the truth about every text.

`simulate` writes a folder:

``pairs.tsv``
    The training log: query, clicked title, clicks; one line per distinct pair.
``log.jsonl``
    The same log with what was shown and never clicked: ``{"query", "clicked", "clicks",
    "skipped"}``.
``titles.tsv``
    The catalogue: id and title. Some titles were added after the log, and have no clicks.
``rates.jsonl``
    The true click rates (`sentemb.data.simulation.click_rates`), from which an independent second
    month can be drawn.
``dev/``, ``test/``
    Judged sets: ``queries.tsv``, ``docs.tsv`` and ``qrels.txt`` (0 Bad, 1 Fair, 2 Good,
    3 Excellent). Grades state the true relation of query and title, not clicks. No query of
    either set is in the log or in the other set, in any word order.
``truth.jsonl``
    One line for every distinct text of the files above: ``{"text", "side", "topic", "keywords",
    "kind", "order", "misspelt"}``. ``keywords`` are the words (as spelt in the text, split at
    white space) that carry its meaning: the thing, the place, the action, but not function words
    and filler. ``kind`` and ``order`` describe the need that the text expresses; for a title, the
    need that its page answers. Only queries can be ``misspelt``.
``README.md``
    The contents of each file, the settings and the measured shares.

The requested shares are shares of the distinct queries. Word-order queries ("flights from paris to
london") are informational queries whose judged candidates include, for each Excellent title, its
twin with the two ends swapped, graded Fair: a model without word order gives both the same score.

The clicks are like traffic. How often a query is asked follows Zipf's law. Every click is an
independent draw of a query and a title, so the counts of a query are spread as independent clicks
are. Some clicks are stray, some queries are names: one or two words that one title has.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from sentemb.data.lines import write_lines
from sentemb.data.simulation.click_rates import RATES, ClickRates, write_click_rates
from sentemb.data.simulation.search_world import EXCELLENT, Need, World, WorldText
from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_SEED, share, whole
from sentemb.system.files import path_of, write_text
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed
from sentemb.text.words import folded_words
from sentemb.version import __version__

# Above these limits a simulation takes hours and more memory than most machines have.
MAX_PAIRS = 10_000_000
MAX_QUERIES = 100_000
SHOWN = 10
# The probability that a title at a position is looked at, and the probability, by grade, that a
# title that is looked at is clicked. Bad titles get clicks too, as in every log.
EXAMINED = tuple((position + 1) ** -0.6 for position in range(SHOWN))
CLICKED = (0.015, 0.05, 0.25, 0.65)
# The engine ranks by the grade plus Gaussian noise with this standard deviation.
RANKING_NOISE = 1.0
# A sort of query counts as exhausted after this many consecutive draws without a new one.
MAX_DRAWS = 3_000
REPORT_EVERY = 1_000
# A query asked at rank r has a share in proportion to 1 / (r + FLAT_RANKS) of the clicks.
FLAT_RANKS = 10
# People have more queries than a log has pairs, as each month brings some that are new.
QUERIES_PER_PAIR = 0.9
# How often a query is another wording of a need that an earlier query expressed.
REWORDED_SHARE = 0.8
NAME_SHARE = 0.05
# Clicks on any title whatever the query. A quarter as many clicks are on Bad titles of the page.
STRAY_SHARE = 0.03
# Of all titles, those that were added after the log.
ADDED_SHARE = 0.05


@dataclass(frozen=True, slots=True)
class Simulation:
    """Counts and shares of a log that `simulate` wrote.

    ``queries`` and ``titles`` are those of the log; ``catalogue`` counts the lines of
    ``titles.tsv``, of which ``added`` came after the log. ``shares`` are measured on the distinct
    queries of the log that are not names: ``order``, ``misspelt``, ``navigational``,
    ``transactional``.
    """

    out: Path
    pairs: int
    clicks: int
    queries: int
    titles: int
    catalogue: int
    added: int
    dev_queries: int
    dev_titles: int
    test_queries: int
    test_titles: int
    candidates_per_query: float
    shares: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Judged:
    """A judged set in the making.

    ``candidates`` holds for each query its list of (title index, grade); ``titles`` holds the
    indices of all candidates in the order of ``docs.tsv``.
    """

    queries: list[WorldText]
    candidates: list[list[tuple[int, int]]]
    titles: list[int]


@dataclass(frozen=True, slots=True)
class _Page:
    """A query and what is shown for it: (title index, grade), from the first place down."""

    query: WorldText
    results: list[tuple[int, int]]


def simulate(
    out: AnyPath,
    *,
    pairs: int = 100_000,
    dev_queries: int = 1_000,
    test_queries: int = 2_000,
    order_share: float = 0.15,
    misspelt_share: float = 0.20,
    navigational_share: float = 0.20,
    transactional_share: float = 0.10,
    seed: int = 0,
    force: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Simulation:
    """Write a simulated click log with judged sets to the folder ``out``.

    Parameters
    ----------
    out : path
        Created if it does not exist; must be empty unless ``force``.
    pairs : int
        Distinct (query, clicked title) pairs of the training log, at most 10 million.
    dev_queries, test_queries : int
        Distinct queries of the judged sets, about 15 titles each; at most 100,000.
    order_share, navigational_share, transactional_share : float
        Shares of the distinct queries that are not names; the rest are plain informational queries.
    misspelt_share : float
        Share of them of every sort.
    seed : int
        Not negative. The same settings and seed give the same bytes.
    force : bool
        Overwrite files of an earlier simulation in ``out``. Either all files are written or, after
        an error or Ctrl-C, none.
    progress : callable, optional
        Called from time to time with the number of pairs that are as good as done.

    Returns
    -------
    Simulation

    Raises
    ------
    SentembError
        For settings that cannot be met and for a folder that cannot be written.
    """
    settings = {
        "pairs": pairs,
        "dev_queries": dev_queries,
        "test_queries": test_queries,
        "order_share": order_share,
        "misspelt_share": misspelt_share,
        "navigational_share": navigational_share,
        "transactional_share": transactional_share,
        "seed": seed,
    }
    _check(settings)
    folder = path_of(out)
    check_free(folder, force)
    with filling_listed(folder) as new:
        engine = _Engine(settings)
        dev, test = engine.draw_judged(dev_queries), engine.draw_judged(test_queries)
        engine.open(pairs, progress)
        engine.search_until(pairs)
        # Judged last, so that Bad titles with words of the query come from all published titles.
        for judged in (dev, test):
            engine.judge(judged)

        summary = _summarise(folder, engine, dev, test)
        _write_log(new, engine)
        _write_catalogue(new / "titles.tsv", engine)
        write_click_rates(new / RATES, engine.rates)
        for name, judged in (("dev", dev), ("test", test)):
            _write_judged(new / name, name, judged, engine.world.titles)
        _write_truth(new, engine, (dev, test))
        write_text(new / "README.md", _readme(settings, summary))
    return summary


def _check(settings: dict[str, Any]) -> None:
    """Refuse settings that make no sense and name the option."""
    whole("pairs", settings["pairs"], 1, MAX_PAIRS)
    for name in ("dev_queries", "test_queries"):
        whole(name, settings[name], 1, MAX_QUERIES)
    for name in ("order_share", "misspelt_share", "navigational_share", "transactional_share"):
        share(name, settings[name])
    total = sum(
        settings[name] for name in ("order_share", "navigational_share", "transactional_share")
    )
    if total > 1 + 1e-9:
        raise SentembError(
            "order_share, navigational_share and transactional_share add up to "
            f"{total:g}; lower them to 1 or less together"
        )
    whole("seed", settings["seed"], 0, MAX_SEED)


# ------------------------------------------------------------------------------------- the engine


class _Engine:
    """Searchers with the requested shares, a noisy ranker and its log."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.random = Random(settings["seed"])
        self.world = World(self.random)
        # Query text -> title index -> clicks.
        self.log: dict[str, dict[int, int]] = {}
        self._held_out: set[tuple[str, ...]] = set()
        self._asked: set[str] = set()
        self._needs: dict[str, list[Need]] = {}
        self._results: dict[Need, list[tuple[int, int]]] = {}

    def draw_sort(self) -> tuple[str, bool]:
        """The sort of the next new query, and whether it is misspelt."""
        left = self.random.random()
        sort = "informational"
        for name in ("order", "navigational", "transactional"):
            share = self.settings[f"{name}_share"]
            if left < share:
                sort = name
                break
            left -= share
        return sort, self.random.random() < self.settings["misspelt_share"]

    def draw_judged(self, count: int) -> _Judged:
        """A judged set of ``count`` queries that are new in any word order."""
        queries: list[WorldText] = []
        for _ in range(count):
            sort, misspelt = self.draw_sort()
            for _ in range(MAX_DRAWS):
                query = self.world.draw_query(sort, misspelt)
                # A query that no page answers cannot be judged.
                if (
                    query is not None
                    and _bag(query) not in self._held_out
                    and self.world.titles_of(query.need, 1)
                ):
                    self._held_out.add(_bag(query))
                    queries.append(query)
                    break
            else:
                raise _used_up(sort, f"{len(self._held_out)} judged queries")
        return _Judged(queries, [], [])

    def judge(self, judged: _Judged) -> None:
        """Choose about 15 candidates for each query of a judged set."""
        for query in judged.queries:
            fair = self.random.randint(4, 5)
            graded = self.world.candidates(
                query, exact=3, near=3, fair=fair, lexical=3, strange=self.random.randint(1, 3)
            )
            judged.candidates.append(graded)
        judged.titles.extend(sorted({title for graded in judged.candidates for title, _ in graded}))
        # Better titles are published first. After shuffling, neither the order of the file nor that
        # of the ids, which breaks ties in many evaluations, reveals the grades.
        self.random.shuffle(judged.titles)

    def open(self, pairs: int, progress: Callable[[int], object] | None) -> None:
        """Collect the queries that people have, their pages, and titles that nobody searches.

        A sort is drawn for every *new* query, so that the shares hold among the distinct queries.
        The first are asked most.
        """
        n_queries = math.ceil(QUERIES_PER_PAIR * pairs)
        pages = [
            self._page_of(self._draw_new()) for _ in self._reported(n_queries, pairs, progress)
        ]
        shown = list(dict.fromkeys(title for page in pages for title, _ in page.results))
        self.added = self._add_titles(len(shown))
        self.catalogue = [*shown, *self.added]
        # Neither the order of the catalogue nor the ids say what is clicked or added.
        self.random.shuffle(self.catalogue)
        for name in self._names(shown, round(NAME_SHARE * n_queries)):
            pages.insert(self.random.randint(0, len(pages)), name)
        self.pages = {page.query.text: page for page in pages}
        self.shown = list(dict.fromkeys(title for page in pages for title, _ in page.results))
        self.rates = _rates(pages, self.shown, self.world.titles)

    def _reported(
        self, n_queries: int, pairs: int, progress: Callable[[int], object] | None
    ) -> Iterator[int]:
        for number in range(n_queries):
            if progress and number and number % REPORT_EVERY == 0:
                progress(pairs * number // n_queries)
            yield number

    def _draw_new(self) -> WorldText:
        """A query that is new and that no judged set has in any word order."""
        sort, misspelt = self.draw_sort()
        needs = self._needs.setdefault(sort, [])
        for _ in range(MAX_DRAWS):
            again = needs and self.random.random() < REWORDED_SHARE
            need = self.random.choice(needs) if again else None
            query = self.world.draw_query(sort, misspelt, need)
            if (
                query is not None
                and query.text not in self._asked
                and _bag(query) not in self._held_out
                and self.world.titles_of(query.need, 1)
            ):
                self._asked.add(query.text)
                needs.append(query.need)
                return query
        raise _used_up(sort, f"{len(self._asked)} queries")

    def _page_of(self, query: WorldText) -> _Page:
        """The page that the engine shows for a query: titles by their grade plus noise."""
        results = self._results.get(query.need)
        if results is None:
            results = self._results[query.need] = self.world.candidates(
                query,
                exact=self.random.randint(2, 3),
                near=1,
                fair=4,
                lexical=1,
                strange=2,
                publish_fair=False,
            )
        ranking = sorted(
            (-(level + self.random.gauss(0.0, RANKING_NOISE)), title, level)
            for title, level in results
        )
        return _Page(query, [(title, level) for _, title, level in ranking[:SHOWN]])

    def _add_titles(self, n_shown: int) -> list[int]:
        """Publish titles that no page shows, for needs as people have them."""
        count = round(n_shown * ADDED_SHARE / (1 - ADDED_SHARE))
        added: list[int] = []
        while len(added) < count:
            before = len(self.world.titles)
            sort, _ = self.draw_sort()
            for _ in range(MAX_DRAWS):
                need = self.world.draw_need(sort)
                self.world.titles_of(need, 1)
                if len(self.world.titles) > before:
                    break
            else:
                raise _used_up(sort, f"{before} titles")
            added.extend(range(before, len(self.world.titles)))
        return added[:count]

    def _names(self, shown: Sequence[int], count: int) -> list[_Page]:
        """Up to ``count`` queries of a word or two that one title of the catalogue has."""
        titles_with: dict[str, set[int]] = {}
        for title in self.catalogue:
            for word in folded_words(self.world.titles[title].text):
                titles_with.setdefault(word, set()).add(title)
        names: list[_Page] = []
        for title in self.random.sample(shown, len(shown)):
            if len(names) == count:
                break
            words = _name(self.world.titles[title].intended, titles_with, self.random)
            query = self.world.name_query(words, self.world.titles[title]) if words else None
            if query is not None and _bag(query) not in self._held_out:
                names.append(_Page(query, [(title, EXCELLENT)]))
        return names

    def search_until(self, pairs: int) -> None:
        """Draw clicks until the log has ``pairs`` distinct (query, clicked title) pairs."""
        generator = np.random.default_rng(self.settings["seed"])
        clicks = np.empty((0, 2), np.int64)
        first = np.empty(0, np.int64)
        while len(first) < pairs:
            clicks = np.concatenate([clicks, self.rates.draw(2 * pairs, generator)])
            _, first = np.unique(clicks @ (len(self.rates.titles), 1), return_index=True)
        first.sort()
        for query, title in clicks[: first[pairs - 1] + 1].tolist():
            of_query = self.log.setdefault(self.rates.queries[query], {})
            number = self.shown[title]
            of_query[number] = of_query.get(number, 0) + 1

    def skipped(self, query: str) -> list[int]:
        """The titles that were shown for a query of the log and never clicked."""
        return [title for title, _ in self.pages[query].results if title not in self.log[query]]


def _name(
    words: Sequence[str], titles_with: dict[str, set[int]], random: Random
) -> tuple[str, ...] | None:
    """A word, or two neighbours, of ``words`` that only one title has, if there are some."""
    singles = [(word,) for word in words]
    candidates = [*singles, *pairwise(words)]
    random.shuffle(candidates)
    for name in candidates:
        if (
            len(set(name)) == len(name)
            and all(word in titles_with for word in name)
            and len(set.intersection(*(titles_with[word] for word in name))) == 1
        ):
            return name
    return None


def _rates(pages: Sequence[_Page], shown: Sequence[int], titles: Sequence[WorldText]) -> ClickRates:
    """The true rates of the clicks: a title is clicked if it is looked at and seems right."""
    shares = 1 / (np.arange(1, len(pages) + 1) + FLAT_RANKS)
    row_of = {number: row for row, number in enumerate(shown)}
    rates = []
    for page in pages:
        levels = [level for _, level in page.results]
        appeal = np.array(
            [seen * CLICKED[level] for seen, level in zip(EXAMINED, levels, strict=False)]
        )
        rates.append((1 - STRAY_SHARE) * appeal / appeal.sum())
    return ClickRates(
        queries=[page.query.text for page in pages],
        titles=[titles[number].text for number in shown],
        shares=shares / shares.sum(),
        offsets=np.cumsum([0, *(len(page.results) for page in pages)]),
        title_index=np.array([row_of[title] for page in pages for title, _ in page.results]),
        grades=np.array([level for page in pages for _, level in page.results]),
        rates=np.concatenate(rates),
    )


def _bag(query: WorldText) -> tuple[str, ...]:
    """The words of a query in any order."""
    return tuple(sorted(query.text.lower().split()))


def _used_up(sort: str, reached: str) -> SentembError:
    return SentembError(
        f"the lexicon has no more {sort} queries after {reached}; "
        f"ask for fewer or lower the share of {sort} queries"
    )


# -------------------------------------------------------------------------------------- the files


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _write_log(out: Path, engine: _Engine) -> None:
    titles = engine.world.titles
    write_lines(
        out / "pairs.tsv",
        (
            f"{query}\t{titles[title].text}\t{count}"
            for query, clicks in engine.log.items()
            for title, count in clicks.items()
        ),
    )
    write_lines(
        out / "log.jsonl",
        (
            _json(
                {
                    "query": query,
                    "clicked": [titles[title].text for title in clicks],
                    "clicks": list(clicks.values()),
                    "skipped": [titles[title].text for title in engine.skipped(query)],
                }
            )
            for query, clicks in engine.log.items()
        ),
    )


def _write_catalogue(path: Path, engine: _Engine) -> None:
    titles = engine.world.titles
    write_lines(
        path,
        (f"t{number}\t{titles[title].text}" for number, title in enumerate(engine.catalogue, 1)),
    )


def _write_judged(folder: Path, name: str, judged: _Judged, titles: list[WorldText]) -> None:
    numbers = {title: number for number, title in enumerate(judged.titles, 1)}
    queries = [(f"{name}{number}", query) for number, query in enumerate(judged.queries, 1)]
    write_lines(folder / "queries.tsv", (f"{key}\t{query.text}" for key, query in queries))
    write_lines(
        folder / "docs.tsv",
        (f"d{number}\t{titles[title].text}" for title, number in numbers.items()),
    )
    write_lines(
        folder / "qrels.txt",
        (
            f"{key} 0 d{number} {level}"
            for (key, _), candidates in zip(queries, judged.candidates, strict=True)
            for number, level in sorted((numbers[title], level) for title, level in candidates)
        ),
    )


def _write_truth(out: Path, engine: _Engine, judged_sets: tuple[_Judged, ...]) -> None:
    world = engine.world
    queries = [query for judged in judged_sets for query in judged.queries]
    queries += [page.query for page in engine.pages.values()]
    used = {*engine.catalogue, *(title for judged in judged_sets for title in judged.titles)}
    lines = [(query, "query") for query in queries]
    lines += [(world.titles[title], "title") for title in sorted(used)]
    write_lines(out / "truth.jsonl", (_json(_truth(world, *line)) for line in lines))


def _truth(world: World, text: WorldText, side: str) -> dict[str, Any]:
    family = world.family(text.need)
    return {
        "text": text.text,
        "side": side,
        "topic": family.topic,
        "keywords": list(text.keywords),
        "kind": family.kind,
        "order": family.order,
        "misspelt": text.misspelt,
        "name": side == "query" and text.name,
    }


def _summarise(out: Path, engine: _Engine, dev: _Judged, test: _Judged) -> Simulation:
    world = engine.world
    sorts: Counter[str] = Counter()
    asked = [query for query in map(world.queries.__getitem__, engine.log) if not query.name]
    for query in asked:
        family = world.family(query.need)
        sorts["order"] += family.order
        sorts["misspelt"] += query.misspelt
        sorts[family.kind] += 1
    candidates = [len(graded) for judged in (dev, test) for graded in judged.candidates]
    return Simulation(
        out=out,
        pairs=sum(map(len, engine.log.values())),
        clicks=sum(sum(clicks.values()) for clicks in engine.log.values()),
        queries=len(engine.log),
        titles=len({title for clicks in engine.log.values() for title in clicks}),
        catalogue=len(engine.catalogue),
        added=len(engine.added),
        dev_queries=len(dev.queries),
        dev_titles=len(dev.titles),
        test_queries=len(test.queries),
        test_titles=len(test.titles),
        candidates_per_query=sum(candidates) / len(candidates),
        shares={
            name: sorts[name] / max(len(asked), 1)
            for name in ("order", "misspelt", "navigational", "transactional")
        },
    )


def _readme(settings: dict[str, Any], summary: Simulation) -> str:
    counts = asdict(summary)
    table = "\n".join(f"| {name} | {value} |" for name, value in settings.items())
    shares = "\n".join(
        f"| {name} | {settings[f'{name}_share']:.3f} | {share:.3f} |"
        for name, share in summary.shares.items()
    )
    return README.format(table=table, share_table=shares, version=__version__, **counts)


README = """\
# A simulated click log

Written by `sentemb simulate` {version}; nothing in it comes from real people. The same version,
settings and seed give the same bytes.

| Setting | Value |
|---|---|
{table}

| Share of the distinct queries | asked | in the log |
|---|---|---|
{share_table}

The rest are plain informational queries. Misspelt ones are of every sort. Names, words of one
title, are not counted.

## Files

- `pairs.tsv`: the training log, `query<TAB>clicked title<TAB>clicks`; {pairs} pairs of {queries}
  queries, {clicks} clicks. Titles high on the page are looked at more, and some clicks are noise.
  The queries follow Zipf's law, and each click is an independent draw.
- `log.jsonl`: the same log with the titles that were shown and not clicked,
  `{{"query", "clicked", "clicks", "skipped"}}`.
- `titles.tsv`: the catalogue, `id<TAB>title`; {catalogue} titles, of which {titles} have clicks and
  {added} were added after the log.
- `rates.jsonl`: the true click rates, `{{"query", "share", "titles", "grades", "rates"}}` for every
  query that people have, also those that got no click. A click is on the query with probability
  `share`, and then on each of `titles` with its rate; the rest are stray clicks on any title.
- `dev/`, `test/`: judged sets of {dev_queries} and {test_queries} queries, on average
  {candidates_per_query:.1f} titles each. `queries.tsv` (id, text), `docs.tsv` (id, title),
  `qrels.txt` (TREC: query id, 0, title id, grade). None of their queries is in the log or in the
  other set, in any word order. Some of their titles are in the log, as they would be on the web.
- `truth.jsonl`: for every text above its side (query or title), topic, keywords (the words that
  carry its meaning, as spelt in it), kind (informational, navigational, transactional),
  whether its meaning hangs on word order, whether it is misspelt, and whether it is a name: a word
  or two that one title of the catalogue has.

## Grades

| Grade | | The title is about |
|---|---|---|
| 3 | Excellent | the same need: same concept, same entity (in the same order), same detail |
| 2 | Good | the same concept and entity; a detail is missing, added or another one |
| 1 | Fair | the same topic, but another concept or entity, or the reversed order |
| 0 | Bad | another topic, often with a word of the query in it |

For word-order queries ("flights from paris to london"), each Excellent title comes with its twin
with the two ends swapped, graded Fair: both have the same words, so only a model that reads their
order can tell them apart.
"""
