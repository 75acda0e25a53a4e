"""Trace one training update and one search: which files of the package they enter.

Writes the table in ARCHITECTURE.md. tests/test_walks.py compares the walks that are told there.
"""

import sys
import threading
from collections import Counter
from pathlib import Path

from sentemb import Index, train
from sentemb.data.click_log import ClickLog
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.floor import FEATURES, Floor, Letters
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "sentemb"
BEGIN, END = "<!-- walks begin -->", "<!-- walks end -->"
PAIRS = [(f"{a} {b} hotel", f"Hotel {b.title()} {a}") for a in "abcdefgh" for b in ("rome", "oslo")]


class Trace:
    """Counts the functions of the package that are entered, by file."""

    def __init__(self):
        self.functions = set()
        self.calls = self.deepest = self._depth = 0

    def _enter(self, frame, event, argument):
        code = frame.f_code
        path = Path(code.co_filename)
        if event not in ("call", "return") or not path.is_relative_to(PACKAGE):
            return
        self._depth += 1 if event == "call" else -1
        self.deepest = max(self.deepest, self._depth)
        self.calls += event == "call"
        if not code.co_name.startswith("<"):
            self.functions.add((path.relative_to(PACKAGE).as_posix(), code.co_qualname))

    def __enter__(self):
        threading.setprofile(self._enter)
        sys.setprofile(self._enter)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)

    def files(self):
        """Number of functions by file."""
        return Counter(file for file, _ in self.functions)


def update():
    """The trace of one update: plan a mini-batch, and train on it."""
    from sentemb.training.towers import two_tower_task

    trace, whole = Trace(), two_tower_task.TwoTowerTask.update
    plan = two_tower_task.TwoTowerTask.plan
    train(ClickLog.from_pairs(PAIRS), epochs=1, cells=4, batch_size=8, threads=1)  # compiles

    def traced(function):
        def call(self, *arguments):
            with trace:
                return function(self, *arguments)

        return call

    two_tower_task.TwoTowerTask.update = traced(whole)
    two_tower_task.TwoTowerTask.plan = traced(plan)
    try:
        train(ClickLog.from_pairs(PAIRS), epochs=1, cells=4, batch_size=8, threads=1)
    finally:
        two_tower_task.TwoTowerTask.update = whole
        two_tower_task.TwoTowerTask.plan = plan
    return trace


def search():
    """The trace of `Index.search` with all parts of the ranking."""
    log = ClickLog.from_pairs(PAIRS)
    model = train(log, epochs=1, cells=4, batch_size=8, threads=1)
    of_words = {"bm25": 0.5, "clicked_bm25": 0.5}
    recipe = Recipe({"cosine": 1.0, "memory": 2.0, **of_words, "clicks": 1.0, "name": 1.0})
    floor = Floor((0.0,) * (len(FEATURES) + 1), 0.0, Letters({}))  # it refuses nothing
    ranker = HybridRanker(model, recipe, ClickedQueries.of(log), floor=floor)
    index = Index.build(ranker, [title for _, title in PAIRS])
    index.search("hotel rome", 3)  # compiles
    with Trace() as trace:
        index.search("hotel oslo", 3)
    return trace


def table():
    """What both traces enter, as a Markdown table."""
    rows = ["| walk | files | functions | rooms | calls | deepest |", "| --- |" + " --: |" * 5]
    for name, trace in (("one training update", update()), ("one search", search())):
        files = trace.files()
        counts = [len(files), sum(files.values()), len({file.partition("/")[0] for file in files})]
        counts += [trace.calls, trace.deepest]
        rows.append(f"| {name} | {' | '.join(map(str, counts))} |")
    return "\n".join(rows)


if __name__ == "__main__":
    page = ROOT / "ARCHITECTURE.md"
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
