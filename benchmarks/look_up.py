"""How long a look-up of hard negatives takes, and what it finds, from 10,000 to 300,000 titles.

Queries and titles are random unit vectors of 96 numbers around random centres, as many of each. The
titles that a look-up by clusters finds are compared with the exact ones for a sample of the
queries. The last tables do the same for look-ups among some of the titles, drawn as those of a log
with too many are. Exact look-ups are timed up to 30,000 titles; beyond that their time is
extrapolated, in proportion to queries times titles, and marked. One thread, CPU time. Writes
docs/results/scale.md.

    python benchmarks/look_up.py [--most 1000000]
"""

import argparse
import time

import numpy as np
from pages import machine, write_tables

from sentemb.retrieval.clusters import n_clusters
from sentemb.system.parallel import Workers
from sentemb.system.tables import markdown_table
from sentemb.training.negative_options import HARD_AMONG
from sentemb.training.negatives import hard_negatives
from sentemb.training.negatives.title_clusters import TitleClusters

SIZES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
MOST = 300_000
DIM = 96
# Titles around one centre, and centres around one of theirs; how far they scatter.
_NEAR, _FAR = 50, 40
_SCATTER = {"narrow": 0.7, "wide": 1.5}
_EXACT_UP_TO = 30_000
_SAMPLE = 1_000
# Titles that are drawn, of the most that there are.
_DRAWN = (30_000, 100_000)
_PORTION = 100_000


def unit_vectors(count, centres, scatter, rng):
    """Rows around ``centres``, (count, DIM) float32."""
    rows = np.empty((count, DIM), np.float32)
    for first in range(0, count, _PORTION):
        some = rows[first : first + _PORTION]
        rng.standard_normal(out=some, dtype=np.float32)
        some *= scatter
        some += centres[rng.integers(len(centres), size=len(some))]
        some /= np.linalg.norm(some, axis=1, keepdims=True)
    return rows


def made_up(count, scatter):
    """Queries, titles, and one clicked title per query."""
    rng = np.random.default_rng(count)
    far = rng.standard_normal((max(2, count // (_NEAR * _FAR)), DIM), dtype=np.float32)
    near = rng.standard_normal((max(2, count // _NEAR), DIM), dtype=np.float32)
    near += far[rng.integers(len(far), size=len(near))]
    Uq, Ud = (unit_vectors(count, near, scatter, rng) for _ in range(2))
    return Uq, Ud, (np.arange(count + 1), rng.integers(count, size=count).astype(np.int32))


def seconds_of(texts, exact_up_to):
    """The lists of a look-up and the CPU seconds that it took."""
    kept = hard_negatives.EXACT_UP_TO
    hard_negatives.EXACT_UP_TO = exact_up_to
    try:
        with Workers(1) as workers:
            began = time.process_time()
            lists = hard_negatives.nearest_titles(*texts, workers, lambda: False)
            return lists, time.process_time() - began
    finally:
        hard_negatives.EXACT_UP_TO = kept


def found_of(texts, lists):
    """The share of the exact lists that was found, and the mean cosines: found, exact."""
    Uq, Ud, (_, clicked) = texts
    drawn = np.random.default_rng(0).permutation(len(Uq))[:_SAMPLE]
    S = Uq[drawn] @ Ud.T
    S[np.arange(drawn.size), clicked[drawn]] = -np.inf
    exact = np.argpartition(-S, HARD_AMONG, axis=1)[:, :HARD_AMONG]
    own = lists[drawn]
    shares = [np.isin(*pair).mean() for pair in zip(exact, own, strict=True)]
    of_lists, of_exact = (np.take_along_axis(S, places, axis=1) for places in (own, exact))
    return np.mean(shares), of_lists[own >= 0].mean(), of_exact.mean()


def row(count, scatter, per_product):
    """A line of the table, and the seconds of an exact look-up per query and title."""
    texts = made_up(count, scatter)
    few = texts[0][:2_000], texts[1][:2_000], (np.arange(2_001), np.arange(2_000, dtype=np.int32))
    for exact_up_to in (0, len(few[0]) ** 2):
        seconds_of(few, exact_up_to)  # compiles
    lists, by_clusters = seconds_of(texts, 0)
    mark = " (extrapolated)"
    if count <= _EXACT_UP_TO:
        per_product, mark = seconds_of(texts, count**2)[1] / count**2, ""
    share, of_lists, of_exact = found_of(texts, lists)
    exact = per_product * count**2
    print(count, f"{by_clusters:.2f} s, exact {exact:.1f} s{mark}, recall {share:.3f}", flush=True)
    cells = [
        f"{count:,}",
        f"{n_clusters(count):,}",
        f"{by_clusters:.2f} s",
        f"{exact:.1f} s{mark}" if mark else f"{exact:.2f} s",
        f"{share:.3f}",
        f"{of_lists:.3f}",
        f"{of_exact:.3f}",
    ]
    return cells, per_product


def row_of_drawn(texts, n_drawn):
    """A line of a table on a look-up among some of the titles."""
    Uq, Ud, clicked = texts
    kept = hard_negatives.SAMPLED_FROM
    hard_negatives.SAMPLED_FROM = n_drawn
    numbers = hard_negatives.drawn_titles(len(Ud), seed=0, epoch=2)
    hard_negatives.SAMPLED_FROM = kept
    with Workers(1) as workers:
        began = time.process_time()
        clusters = TitleClusters.of(Ud[numbers], workers)
        titles = hard_negatives.SomeTitles(numbers, clusters)

        def fill(lists, first, end):
            of_queries = hard_negatives.part(clicked, first, end)
            titles.highest(lists, Uq[first:end], *of_queries, workers)

        lists = hard_negatives.lists_of_all(len(Uq), fill, lambda: False, _PORTION)
        seconds = time.process_time() - began
    share, of_lists, of_exact = found_of(texts, lists)
    print(n_drawn, f"of {len(Ud)}: {seconds:.2f} s, recall {share:.3f}", flush=True)
    return [
        f"{n_drawn:,} of {len(Ud):,}",
        f"{len(clusters.centres):,}",
        f"{seconds:.2f} s",
        f"{share:.3f}",
        f"{of_lists:.3f}",
        f"{of_exact:.3f}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--most", type=int, default=MOST, help="titles, at most")
    options = parser.parse_args()
    tables = {}
    for name, scatter in _SCATTER.items():
        head = ["titles", "clusters", "by clusters", "exact", "found", "mean cosine"]
        rows, per_product = [[*head, "mean cosine, exact"]], 0.0
        for count in SIZES:
            if count <= options.most:
                cells, per_product = row(count, scatter, per_product)
                rows.append(cells)
        tables[f"Vectors in {name} clusters"] = markdown_table(rows)
    for name, scatter in _SCATTER.items():
        head = ["titles", "clusters", "by clusters", "found", "mean cosine"]
        texts = made_up(options.most, scatter)
        rows = [[*head, "mean cosine, exact"]]
        rows += [row_of_drawn(texts, n_drawn) for n_drawn in _DRAWN if n_drawn < options.most]
        tables[f"Some of the titles, in {name} clusters"] = markdown_table(rows)
    write_tables("look-up", tables, machine())


if __name__ == "__main__":
    main()
