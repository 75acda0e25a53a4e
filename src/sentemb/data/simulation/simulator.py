"""A simulated search engine's click log, with judged sets and the truth about every text.

`simulate` writes a folder:

``pairs.tsv``
    The training log: query, clicked title, clicks; one line per distinct pair.
``log.jsonl``
    The same log with what was shown and never clicked: ``{"query", "clicked", "skipped"}``.
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
"""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random
from typing import Any

from sentemb.data.lines import write_lines
from sentemb.data.simulation.search_world import Need, Text, World
from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_SEED, share, whole
from sentemb.system.files import path_of, write_text
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed
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


@dataclass(frozen=True, slots=True)
class Simulation:
    """Counts and shares of a log that `simulate` wrote.

    ``shares`` are measured on the distinct queries of the log: ``order``, ``misspelt``,
    ``navigational``, ``transactional``.
    """

    out: Path
    pairs: int
    clicks: int
    queries: int
    titles: int
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

    queries: list[Text]
    candidates: list[list[tuple[int, int]]]
    titles: list[int]


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
        Shares of the distinct queries; the rest are plain informational queries.
    misspelt_share : float
        Share of the distinct queries of every sort.
    seed : int
        Not negative. The same settings and seed give the same bytes.
    force : bool
        Overwrite files of an earlier simulation in ``out``. Either all files are written or, after
        an error or Ctrl-C, none.
    progress : callable, optional
        Called from time to time with the number of pairs so far.

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
        engine.search_until(pairs, progress)
        # Judged last, so that Bad titles with words of the query come from all published titles.
        for judged in (dev, test):
            engine.judge(judged)

        summary = _summarise(folder, engine, dev, test)
        _write_log(new, engine)
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
        # Query text -> title index -> clicks, zero for a title that was shown and not clicked.
        self.log: dict[str, dict[int, int]] = {}
        self.pairs = 0
        self._held_out: set[tuple[str, ...]] = set()
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
        queries: list[Text] = []
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

    def search_until(self, pairs: int, progress: Callable[[int], object] | None) -> None:
        """Let people search until the log has ``pairs`` distinct (query, clicked title) pairs.

        A sort is drawn for every *new* query. Draws that repeat an old query are people who search
        for it again: popular queries get more clicks, and the shares hold among the distinct
        queries.
        """
        while self.pairs < pairs:
            sort, misspelt = self.draw_sort()
            for _ in range(MAX_DRAWS):
                query = self.world.draw_query(sort, misspelt)
                if query is None or _bag(query) in self._held_out:
                    continue
                new = query.text not in self.log
                self._search(query, pairs)
                if new or self.pairs == pairs:
                    break
            else:
                raise _used_up(sort, f"{self.pairs} pairs")
            if progress and len(self.log) % REPORT_EVERY == 0:
                progress(self.pairs)

    def _search(self, query: Text, pairs: int) -> None:
        """One result page and its clicks, until the log is full."""
        results = self._results.get(query.need)
        if results is None:
            results = self._results[query.need] = self.world.candidates(
                query, exact=self.random.randint(2, 3), near=2, fair=3, lexical=1, strange=2
            )
        random = self.random
        noise = RANKING_NOISE
        ranking = sorted(
            [(-(level + random.gauss(0.0, noise)), title, level) for title, level in results]
        )
        clicks = self.log.setdefault(query.text, {})
        for (_, title, level), examined in zip(ranking, EXAMINED, strict=False):
            count = clicks.setdefault(title, 0)
            if random.random() < examined * CLICKED[level]:
                clicks[title] = count + 1
                if count == 0:
                    self.pairs += 1
                    if self.pairs == pairs:
                        return


def _bag(query: Text) -> tuple[str, ...]:
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
            if count
        ),
    )
    write_lines(
        out / "log.jsonl",
        (
            _json(
                {
                    "query": query,
                    "clicked": [titles[title].text for title in clicks if clicks[title]],
                    "skipped": [titles[title].text for title in clicks if not clicks[title]],
                }
            )
            for query, clicks in _clicked(engine)
        ),
    )


def _clicked(engine: _Engine) -> list[tuple[str, dict[int, int]]]:
    """The queries of the log that got a click, with the clicks of their titles."""
    return [(query, clicks) for query, clicks in engine.log.items() if any(clicks.values())]


def _write_judged(folder: Path, name: str, judged: _Judged, titles: list[Text]) -> None:
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
    logged = _clicked(engine)
    queries = [query for judged in judged_sets for query in judged.queries]
    queries += [world.queries[text] for text, _ in logged]
    used = {title for _, clicks in logged for title in clicks}
    used.update(title for judged in judged_sets for title in judged.titles)
    lines = [(query, "query") for query in queries]
    lines += [(world.titles[title], "title") for title in sorted(used)]
    write_lines(out / "truth.jsonl", (_json(_truth(world, *line)) for line in lines))


def _truth(world: World, text: Text, side: str) -> dict[str, Any]:
    family = world.family(text.need)
    return {
        "text": text.text,
        "side": side,
        "topic": family.topic,
        "keywords": list(text.keywords),
        "kind": family.kind,
        "order": family.order,
        "misspelt": text.misspelt,
    }


def _summarise(out: Path, engine: _Engine, dev: _Judged, test: _Judged) -> Simulation:
    world = engine.world
    logged = _clicked(engine)
    sorts: Counter[str] = Counter()
    for text, _ in logged:
        query = world.queries[text]
        family = world.family(query.need)
        sorts["order"] += family.order
        sorts["misspelt"] += query.misspelt
        sorts[family.kind] += 1
    candidates = [len(graded) for judged in (dev, test) for graded in judged.candidates]
    return Simulation(
        out=out,
        pairs=engine.pairs,
        clicks=sum(sum(clicks.values()) for _, clicks in logged),
        queries=len(logged),
        titles=len({title for _, clicks in logged for title in clicks}),
        dev_queries=len(dev.queries),
        dev_titles=len(dev.titles),
        test_queries=len(test.queries),
        test_titles=len(test.titles),
        candidates_per_query=sum(candidates) / len(candidates),
        shares={
            name: sorts[name] / len(logged)
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

The rest are plain informational queries. Misspelt ones are of every sort.

## Files

- `pairs.tsv`: the training log, `query<TAB>clicked title<TAB>clicks`; {pairs} pairs of {queries}
  queries, {clicks} clicks. Titles high on the page are looked at more, and some clicks are noise.
- `log.jsonl`: the same log with the titles that were shown and not clicked,
  `{{"query", "clicked", "skipped"}}`.
- `dev/`, `test/`: judged sets of {dev_queries} and {test_queries} queries, on average
  {candidates_per_query:.1f} titles each. `queries.tsv` (id, text), `docs.tsv` (id, title),
  `qrels.txt` (TREC: query id, 0, title id, grade). None of their queries is in the log or in the
  other set, in any word order. Some of their titles are in the log, as they would be on the web.
- `truth.jsonl`: for every text above its side (query or title), topic, keywords (the words that
  carry its meaning, as spelt in it), kind (informational, navigational, transactional),
  whether its meaning hangs on word order, and whether it is misspelt.

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
