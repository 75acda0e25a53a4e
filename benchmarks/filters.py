"""What filters, facets and fields cost in an index of a million products.

Titles are mixed from those of a simulated log; price, stock, brand and link are drawn at random.
The index ranks by the cosine alone, so a search is as short as it can be and a filter weighs most.
Searches with and without a filter take turns. Writes docs/results/search-speed.md.

    python benchmarks/filters.py [--quick]
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from pages import machine, write_tables
from rounds import note
from synthetic import mixed_titles

from sentemb import Index, train
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.data.simulation.simulator import simulate
from sentemb.search.product_fields import ProductFields
from sentemb.system.tables import markdown_table

CONDITIONS = ["stock > 0 and price < 50", "brand = 'brand 7'", "price < 190"]
CANDIDATES = 1000


def fields_of(n):
    """Columns of n products."""
    rng = np.random.default_rng(0)
    return {
        "price": (rng.random(n) * 200).round(2).tolist(),
        "stock": rng.integers(0, 20, n).tolist(),
        "brand": [f"brand {number}" for number in rng.integers(0, 300, n).tolist()],
        "link": [f"https://shop.example/p/{number}" for number in range(n)],
    }


def seconds(call):
    """CPU seconds of one call."""
    begin = time.process_time()
    call()
    return time.process_time() - begin


def milliseconds(samples):
    return f"{statistics.median(samples) * 1000:.1f} ms"


def table(rows):
    """A Markdown table of dicts with the same keys."""
    return markdown_table([list(rows[0]), *(list(row.values()) for row in rows)])


def filter_table(index, queries):
    """For each condition: a search without it, repeated with it, and the first time; recall."""
    rows = []
    for condition in CONDITIONS:
        share = index.fields.mask(condition).mean()
        index.search(queries[0], where=condition)  # compiles what a mask needs
        plain, repeated, new, found = [], [], [], []
        for number, query in enumerate(queries):
            plain.append(seconds(lambda: index.search(query)))  # noqa: B023
            repeated.append(seconds(lambda: index.search(query, where=condition)))  # noqa: B023
            # Another text is another condition.
            fresh = f"{condition} and {number} = {number}"
            new.append(seconds(lambda: index.search(query, where=fresh)))  # noqa: B023
            best = [
                {hit.id for hit in index.search(query, where=condition, exact=exact)}
                for exact in (False, True)
            ]
            found.append(len(best[0] & best[1]) / max(1, len(best[1])))
        ratios = [after / before for before, after in zip(plain, repeated, strict=True)]
        added = [after - before for before, after in zip(plain, new, strict=True)]
        rows.append(
            {
                "condition": f"`{condition}`",
                "products": f"{100 * share:.0f} %",
                "without": milliseconds(plain),
                "repeated": milliseconds(repeated),
                "ratio": f"{statistics.median(ratios):.2f}",
                "new": milliseconds(new),
                "more than without": milliseconds(added),
                "recall@10": f"{statistics.mean(found):.3f}",
            }
        )
    return rows


def field_table(index, folder, turns):
    """Facets of the best candidates, fields of ten hits, and what it takes to store all fields."""
    n = len(index)
    rng = np.random.default_rng(1)
    draws = [rng.choice(n, CANDIDATES, replace=False).tolist() for _ in range(turns)]
    facets = [seconds(lambda: index.fields.facet("brand", rows)) for rows in draws]  # noqa: B023
    values = [seconds(lambda: index.fields.values(rows[:10])) for rows in draws]  # noqa: B023
    columns = fields_of(n)
    begin = time.process_time()
    ProductFields.given(columns, n)
    stored = time.process_time() - begin
    size = (folder / "index" / "products.sqlite").stat().st_size / 1e6
    return [
        {"what": f"facet of {CANDIDATES:,} candidates", "cost": milliseconds(facets)},
        {"what": "all fields of ten hits", "cost": f"{statistics.median(values) * 1000:.2f} ms"},
        {"what": f"storing {n:,} products", "cost": f"{stored:.1f} CPU s"},
        {"what": "size of the fields", "cost": f"{size:.0f} MB"},
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    quick = parser.parse_args().quick
    n, turns = (20_000, 5) if quick else (1_000_000, 31)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        note("a simulated log, a model and an index")
        simulate(folder / "log", pairs=2000 if quick else 20_000)
        log = read_click_log(folder / "log" / "pairs.tsv")
        model = train(log, cells=96, epochs=2, hard_negatives=0, threads=1)
        titles = mixed_titles(log.titles, n)
        Index.build(model, titles, fields=fields_of(n)).save(folder / "index")
        index = Index.open(folder / "index", threads=1)
        queries = read_judged_set(folder / "log" / "test").queries[:turns]
        note("searches")
        tables = {
            "Filters": table(filter_table(index, queries)),
            "Fields": table(field_table(index, folder, turns)),
        }
    write_tables("filters", tables, machine(), quick)


if __name__ == "__main__":
    main()
