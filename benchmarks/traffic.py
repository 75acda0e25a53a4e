"""Every kind of query: typed often, seldom or never, names, titles added later, random letters.

Draws clicks on the pairs of a shared data set as a search has them: queries by Zipf's law, the
titles of a query by shares of its own, and 4 % stray clicks. A second month of independent clicks,
without stray ones, is the test. One title in fifty is added later: the log and the training know
nothing of it. For the example shop the months are drawn from its true click rates. Trains with
``--dev 5%`` and measures as `sentemb.evaluate` does, next to the parts, plain counts, and word
match. Writes docs/results/traffic.md. Models and measurements are kept in build/traffic: a second
run continues where the first stopped.

    python benchmarks/traffic.py [--data ../shared/data] [--threads 1] [--seeds 2] [--sets tldr]
"""

import json
from collections import Counter

import numpy as np
from pages import ROOT, machine, options_for, write_tables

import sentemb
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.simulation.example_shop import example_click_rates
from sentemb.search.ranking.floor_fit import random_letters
from sentemb.text.words import folded_words

KEPT = ROOT / "build" / "traffic"
EXAMPLE = "example"
# The clicks of the first month; the second has a fourth of them.
CLICKS = {"tldr": 60_000, "occupations": 120_000, "msdocs_index": 120_000, EXAMPLE: 30_000}
SETS = [name for name in CLICKS if name != EXAMPLE]
EXPONENT, STRAY, LATER = 0.9, 0.04, 0.02
MOST_ADDED = 200
OURS = "sentemb"


def months(name, data, seed):
    """Two months of clicks, and the titles that are there from the first and from the second."""
    rng = np.random.default_rng([seed, 7])
    if name == EXAMPLE:
        rates = example_click_rates(seed)
        first, second = (
            rates.month(CLICKS[name], 2 * seed),
            rates.month(CLICKS[name] // 4, 2 * seed + 1),
        )
        titles = sorted({*first.titles, *second.titles})
        return first, second, titles, []
    log = read_click_log(data / name / "pairs.tsv")
    offsets, clicked = log.titles_of_queries()
    queries = rng.permutation(len(log.queries))
    weights = 1 / np.arange(1, queries.size + 1) ** EXPONENT
    shares = {q: rng.dirichlet([0.5] * (offsets[q + 1] - offsets[q])) for q in queries.tolist()}
    added = set(rng.choice(len(log.titles), int(LATER * len(log.titles)), replace=False).tolist())

    def month(n_clicks, stray):
        counts = Counter()
        drawn = rng.multinomial(n_clicks, weights / weights.sum())
        for q, n in zip(queries.tolist(), drawn.tolist(), strict=True):
            of_titles = rng.multinomial(n, shares[q])
            for t, count in zip(clicked[offsets[q] : offsets[q + 1]], of_titles, strict=True):
                counts[q, int(t)] += int(count)
            for t in rng.integers(len(log.titles), size=rng.binomial(n, stray)):
                counts[q, int(t)] += 1
        return ClickLog.from_pairs(
            (log.queries[q], log.titles[t], n)
            for (q, t), n in counts.items()
            if n and t not in added
        )

    titles = [title for t, title in enumerate(log.titles) if t not in added]
    later = [log.titles[t] for t in sorted(added)][:MOST_ADDED]
    return month(CLICKS[name], STRAY), month(CLICKS[name] // 4, 0), titles, later


def measured(name, data, seed, threads):
    """The figures of one log, made now or by an earlier run of this script."""
    folder = KEPT / f"{name}-{seed}"
    path = folder / "measured.json"
    if path.exists():
        return json.loads(path.read_text())
    first, second, titles, later = months(name, data, seed)
    given = {"catalogue": titles, "seed": seed, "threads": threads}
    model = sentemb.train(
        first, dev=0.05, output=folder / "model", resume=(folder / "model").exists(), **given
    )
    ranker = sentemb.fit_ranker(model, first, 0.05, **given)
    rivals = ("bm25", "bm25-clicks")
    found = sentemb.evaluate(ranker, second, titles, log=first, parts=True, compare_with=rivals)
    index = sentemb.Index.build(ranker, [*titles, *later], threads=threads)
    hits = index.search([" ".join(folded_words(title)) for title in later], 1)
    letters = index.search(random_letters(1, 300), 1)
    refused = index.search([q for q in second.queries if q not in set(first.queries)][:1000], 1)
    is_first = [bool(some) and some[0].title == t for some, t in zip(hits, later, strict=True)]
    figures = {
        "recipe": ranker.recipe.as_dict(),
        "kinds": [kind.as_dict(OURS) for kind in found.kinds],
        "written": None if found.written is None else found.written.as_dict(),
        "added": float(np.mean(is_first)) if later else None,
        "letters": float(np.mean([not some for some in letters])) if ranker.floor else None,
        "refused": float(np.mean([not some for some in refused])) if refused else None,
    }
    path.write_text(json.dumps(figures, indent=1))
    print(name, seed, ranker.recipe, flush=True)
    return figures


def of_kinds(seeds):
    """Hit@1 and MRR@10 by kind of query, the mean of the seeds."""
    kinds = [kind["name"] for kind in seeds[0]["kinds"]]
    counts = [
        f"{np.mean([one['kinds'][number]['n_queries'] for one in seeds]):,.0f}"
        for number in range(len(kinds))
    ]
    lines = [
        f"| ranking | {' | '.join(kinds)} |",
        "| --- |" + " --: |" * len(kinds),
        f"| queries of the second month | {' | '.join(counts)} |",
    ]
    names = dict.fromkeys(name for one in seeds for name in one["kinds"][0]["figures"])
    for name in sorted(names, key=OURS.__ne__):
        cells = []
        for number in range(len(kinds)):
            of_seeds = [one["kinds"][number]["figures"] for one in seeds]
            if all(name in figures for figures in of_seeds):
                of_name = [figures[name] for figures in of_seeds]
                hit, mrr = (np.mean([each[key] for each in of_name]) for key in ("hit", "mrr"))
                cells.append(f"{hit:.3f} / {mrr:.3f}")
            else:  # a part that has no weight with one of the seeds
                cells.append("-")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def of_written(found):
    """Names, titles added later, and what is refused, by log."""
    lines = [
        "| log | word of one title first | two words first | name finds nothing "
        "| added title first | random letters refused | never typed refused |",
        "| --- | --: | --: | --: | --: | --: | --: |",
    ]

    def shown(values):
        known = [value for value in values if value is not None]
        return f"{np.mean(known):.3f}" if known else "-"

    for name, seeds in found.items():
        written = [one["written"] for one in seeds if one["written"]]
        cells = [
            *(shown([each["first"][length] for each in written]) for length in range(2)),
            shown([each["nothing"] for each in written]),
            *(shown([one[key] for one in seeds]) for key in ("added", "letters", "refused")),
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def main():
    options = options_for(__doc__, SETS, seeds={"type": int, "default": 2})
    found = {
        name: [measured(name, options.data, seed, options.threads) for seed in range(options.seeds)]
        for name in (*options.sets, EXAMPLE)
    }
    tables = {f"Kinds of query, {name}": of_kinds(seeds) for name, seeds in found.items()}
    write_tables("traffic", tables | {"Names, letters, new titles": of_written(found)}, machine())


if __name__ == "__main__":
    main()
