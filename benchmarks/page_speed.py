"""How large an exported search page is, how fast it answers, and how near it is to the package.

A model is trained with the defaults on a real log, split as in `held_out`; a training that is in
``build/held-out`` is not repeated. Titles are those of the log, and beyond these, mixtures of two.
Writes docs/results/exports.md, and the table of docs/howto/search-page.md.

    python benchmarks/page_speed.py [--data DIR] [--threads N]
"""

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from held_out import parts_of, trained
from pages import DOCS, fill, machine, options_for, write_tables
from playwright.sync_api import sync_playwright
from rounds import note
from synthetic import mixed_titles

from sentemb import Index, fit_ranker
from sentemb.bridges.export.targets import export
from sentemb.bridges.page.stem_forms import forms_of_stems
from sentemb.retrieval.similarity import unit_rows
from sentemb.retrieval.words_and_stems import Stems
from sentemb.system.tables import markdown_table
from sentemb.text.words import plain_words

HOWTO = DOCS / "howto" / "search-page.md"
LOGS = ("tldr",)
SIZES = (1_000, 10_000, 50_000)
EXACT = 5_000  # titles for the comparison with the package
K = 10
QUERIES = 200
# Notes for how long the page does not react while it starts.
WATCH = """
globalThis.longest = 0;
new PerformanceObserver((list) => {
  for (const task of list.getEntries()) longest = Math.max(longest, task.duration);
}).observe({ type: "longtask", buffered: true });
"""
ROUNDS = 2
ASK = """async ([queries, k, rounds]) => {
  const { towers, vocabulary } = await engine.ready;
  const [answers, times] = [[], []];
  for (const query of queries) {
    const found = await engine.search(query, k);
    answers.push(found.hits.map((hit) => [hit.id, hit.parts.cosine.value]));
    let least = Infinity;
    for (let round = 0; round < rounds; round++) {
      const start = performance.now();
      await engine.search(query, k);
      least = Math.min(least, performance.now() - start);
    }
    times.push(least);
  }
  const vectors = queries.map((query) => [...towers.query.embed(vocabulary.split(query))]);
  return { answers, times, vectors };
}"""


def asked(browser, path, queries):
    """What a page answers, and how long the start and each query took.

    Other programs make things slower and never faster, so the least of some rounds counts.
    """
    starts, blocks = [], []
    for _ in range(ROUNDS):
        context = browser.new_context()
        page = context.new_page()
        page.add_init_script(WATCH)
        page.goto(path.as_uri())
        starts.append(
            page.evaluate("async () => { await engine.ready; return performance.now(); }")
        )
        blocks.append(page.evaluate("longest"))
        if len(starts) == ROUNDS:
            found = page.evaluate(ASK, [queries, K, ROUNDS])
        context.close()
    return found | {"start": min(starts), "longest": min(blocks)}


def index_of(parts, ranker, n):
    titles = parts.titles[:n]
    titles = titles + mixed_titles(parts.titles, n - len(titles))
    return Index.build(ranker, titles)


def sizes(browser, folder, parts, ranker, queries):
    """A row for each number of titles."""
    rows = [["titles", "MB", "start", "longest block", "query, median", "query, 95 of 100"]]
    for n in SIZES:
        note(f"{n:,} titles")
        path = folder / f"{n}.html"
        export(index_of(parts, ranker, n), path, "page", force=True)
        found = asked(browser, path, queries)
        times = np.array(found["times"])
        rows.append(
            [
                f"{n:,}",
                f"{path.stat().st_size / 1e6:.1f}",
                f"{found['start'] / 1e3:.2f} s",
                f"{found['longest']:.0f} ms",
                f"{np.median(times):.1f} ms",
                f"{np.percentile(times, 95):.1f} ms",
            ]
        )
    return rows


def agreement(browser, folder, parts, ranker, queries):
    """A row for each dtype: vectors, cosines and rankings against the package."""
    index = index_of(parts, ranker, EXACT)
    units = unit_rows(ranker.model.encode_query(queries)).astype(np.float64)
    hits = index.search(queries, K)
    head = [
        "",
        "MB",
        "1 − cosine, mean",
        "… largest",
        f"recall@{K}",
        "same first",
        "cosine, largest",
    ]
    rows = [head]
    for dtype in ("int8", "float32"):
        path = folder / f"{dtype}.html"
        export(index, path, "page", force=True, dtype=dtype, min_queries=1)
        found = asked(browser, path, queries)
        away = 1 - np.sum(np.array(found["vectors"]) * units, axis=1)
        away = away[units.any(axis=1)]
        shared, first, cosines = [], [], []
        for own, theirs in zip(found["answers"], hits, strict=True):
            by_id = {hit.id: hit.parts["cosine"]["value"] for hit in theirs}
            if not own and not theirs:  # nothing is above the floor
                continue
            shared.append(len({id for id, _ in own} & by_id.keys()) / max(len(own), len(by_id)))
            first.append(bool(own and theirs) and own[0][0] == theirs[0].id)
            cosines += [abs(cosine - by_id[id]) for id, cosine in own if id in by_id]
        rows.append(
            [
                dtype,
                f"{path.stat().st_size / 1e6:.1f}",
                f"{away.mean():.1e}",
                f"{away.max():.1e}",
                f"{np.mean(shared):.4f}",
                f"{np.mean(first):.1%}".replace("%", " %"),
                f"{np.max(cosines):.1e}",
            ]
        )
    return rows


def stems(parts, model):
    """How many words of new queries have a stem of a title, and are not in the page."""
    stem = Stems("english")
    titles = parts.titles
    indexed = sorted({one for title in titles for one in stem(title)})
    seen = {word for title in titles for word in plain_words(title)}
    seen.update(word for text in model.vocabulary.words for word in plain_words(text))
    forms = forms_of_stems(stem.of_words, indexed, seen)
    there = set(indexed)
    words = [word for query in parts.test.queries for word in plain_words(query)]
    matching = [word for word in words if stem(word)[0] in there]
    missed = sum(word not in forms for word in matching)
    return [f"{len(indexed):,}", f"{len(forms):,}", f"{len(matching):,}", f"{missed:,}"]


def main():
    options = options_for(__doc__, LOGS)
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("no chromium or google-chrome on the PATH")
    tables = {}
    stem_rows = [["log", "stems", "words in the page", "words of queries", "not in the page"]]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as name:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for log in options.sets:
            parts = parts_of(options.data, log, "query")
            model = trained(parts, 0)
            ranker = fit_ranker(model, parts.train, parts.dev)
            queries = list(parts.test.queries[:QUERIES])
            rows = sizes(browser, Path(name), parts, ranker, queries)
            table = list(markdown_table(rows))
            tables[f"Sizes and times, {log}"] = table
            fill(HOWTO, {"sizes": table})
            rows = agreement(browser, Path(name), parts, ranker, queries)
            tables[f"Against the package, {log}"] = markdown_table(rows)
            stem_rows.append([log, *stems(parts, model)])
        browser.close()
    write_tables("page-speed", tables | {"Stems": markdown_table(stem_rows)}, machine())


if __name__ == "__main__":
    main()
