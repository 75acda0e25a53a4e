"""The charts and small tables of docs/benchmarks.md and README.md, from the CSV in docs/results.

Measures nothing: run it after the scripts that write docs/results.

    python benchmarks/charts.py
"""

from pages import DOCS, README, fill, read_csv

from sentemb.analysis.figures.palette import BLUE, GREEN, ORANGE, PINK
from sentemb.system.tables import markdown_table

PAGE, FIGURES = DOCS / "benchmarks.md", DOCS / "figures"
REAL = ("occupations", SMALLEST := "tldr", "msdocs_index")
GREY = "#777777"
DPI = 120
TUNED = "all-MiniLM-L6-v2, fine-tuned"
# Rows of Table IV by kind of model; a kind has the colour of its best known model.
FAMILIES = {
    "order-free": (ORANGE, "s", ("bag", "dssm", "bag-hard", "dssm-hard")),
    "convolution": (PINK, "^", ("clsm-1", "clsm-3")),
    "recurrent": (BLUE, "o", ("rnn-288", "lstm-32", "lstm-64", "lstm-96", "lstm-96-hard",
                              "lstm-96-bag", "bilstm-96")),
    "paper's settings": (GREY, "D", ("lstm-96-paper",)),
}  # fmt: skip
# Systems of embedding-NAME-fine-tuned.csv that the chart of query costs names, by colour and
# marker: label, and where it goes.
QUERY_COSTS = {
    (ORANGE, "s"): {
        "bm25, titles": ("BM25, titles", (0, 10)),
        "letters-clicks": ("letters with clicks", (0, -11)),
        "bm25-clicks": ("BM25 with clicks", (0, 10)),
    },
    (GREEN, "^"): {
        "model": ("LSTM", (0, -11)),
        "model, --teacher --vectors": ("LSTM, taught", (40, 1)),
    },
    (BLUE, "o"): {
        "ranker": ("ranker", (0, -11)),
        "ranker, --teacher --vectors": ("ranker, taught", (0, 10)),
    },
    (PINK, "D"): {
        "transformer": ("transformer", (0, -11)),
        "ranker, --embedding": ("ranker + transformer", (0, 10)),
    },
}
# The same of embedding-NAME.csv: the transformer as published.
PUBLISHED = {
    "transformer": ("as published", (0, -11)),
    "ranker, --embedding": ("", (0, 0)),
}
# Rows that the cost chart names: label, and where it goes in points from the row's own point.
NAMED = {
    "bag": ("bag", (0, 11)),
    "lstm-96-hard": ("default", (-4, 11)),
    "lstm-96-paper": ("paper", (0, 11)),
}


def table4(name):
    """{row: {column: text}} of one set in Table IV."""
    return {line["row"]: line for line in read_csv(f"table4-{name}.csv")}


def ndcg(line, k=1):
    return float(line[f"NDCG@{k}"])


# -- charts ---------------------------------------------------------------------------------------


def draw_negatives(pyplot):
    """NDCG@1 of one LSTM by its negatives."""
    names = ("lstm-96-n2", "lstm-96-n4", "lstm-96", "lstm-96-hard")
    labels = ("2", "4", "all others\nin the batch", "all others\n+ 3 hard")
    figure, axis = pyplot.subplots(figsize=(5.5, 4), layout="constrained")
    lines = table4(SMALLEST)
    axis.errorbar(
        range(len(names)),
        [ndcg(lines[row]) for row in names],
        yerr=[float(lines[row]["NDCG@1 sd"]) for row in names],
        color=BLUE, marker="o", capsize=3,
    )  # fmt: skip
    axis.set_xticks(range(len(names)), labels)
    axis.set_xlabel("negatives per query")
    axis.set_ylabel(f"test NDCG@1 on {SMALLEST}, LSTM with 96 cells")
    return figure


def draw_word_order(pyplot):
    """NDCG@1 on queries whose meaning depends on word order, and on the others."""
    shown = ("bm25-stem", "bag-hard", "dssm-hard", "clsm-5", "rnn-288", "lstm-32", "lstm-96",
             "lstm-96-hard", "bilstm-96")  # fmt: skip
    lines = {line["model"]: line for line in read_csv("table4-simulated-word-order.csv")}
    _, in_order, others = next(iter(lines.values()))
    figure, axis = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
    places = range(len(shown))[::-1]
    for column, colour, shift, label in (
        (others, GREY, 0.2, "all other queries"),
        (in_order, BLUE, -0.2, in_order),
    ):
        values = [float(lines[name][column]) for name in shown]
        bars = axis.barh(
            [p + shift for p in places], values, 0.38, color=colour, label=label
        )  # fmt: skip
        axis.bar_label(bars, [f"{value:.2f}" for value in values], padding=3, fontsize=8)
    axis.set_yticks(places, shown)
    axis.set_xlim(0, 1.1)
    axis.set_xlabel("test NDCG@1, simulated log")
    figure.legend(frameon=False, ncols=2, loc="outside upper center")
    return figure


def draw_cost(pyplot):
    """NDCG@1 against seconds of training."""
    figure, axis = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
    lines = table4(SMALLEST)
    for family, (colour, marker, rows) in FAMILIES.items():
        points = [(float(lines[row]["training (s)"]), ndcg(lines[row])) for row in rows]
        axis.scatter(*zip(*points, strict=True), color=colour, marker=marker, label=family)
        for row, point in zip(rows, points, strict=True):
            if row in NAMED:
                label, offset = NAMED[row]
                axis.annotate(label, point, offset, textcoords="offset points", fontsize=9,
                              ha="center", va="center")  # fmt: skip
    axis.set_xscale("log")
    seconds = (5, 10, 20, 50, 100)
    axis.set_xticks(seconds, [f"{some}" for some in seconds])
    axis.minorticks_off()
    axis.margins(x=0.15, y=0.1)
    axis.set_xlabel(f"training on {SMALLEST}, seconds on one thread")
    axis.set_ylabel("test NDCG@1")
    figure.legend(frameon=False, ncols=4, loc="outside upper center")
    return figure


def draw_query_cost(pyplot):
    """hit@1 over all titles against the processor time of a query."""
    tables = {name: by_row(f"embedding-{name}-fine-tuned.csv", "system") for name in REAL}
    tables = {name: lines for name, lines in tables.items() if lines}
    size = {"figsize": (1.5 + 4.5 * len(tables), 4.4), "squeeze": False}
    figure, (axes,) = pyplot.subplots(1, len(tables), layout="constrained", **size)
    for axis, (name, lines) in zip(axes, tables.items(), strict=True):

        def draw(line, label, offset, axis=axis, **look):
            point = float(line["CPU ms per query"]), float(line["hit@1"])
            axis.scatter(*point, **look)
            axis.annotate(label, point, offset, textcoords="offset points", fontsize=8,
                          ha="center", va="center")  # fmt: skip

        for (colour, marker), named in QUERY_COSTS.items():
            for system, (label, offset) in named.items():
                draw(lines[system,], label, offset, color=colour, marker=marker)
        published = by_row(f"embedding-{name}.csv", "system")
        for system, (label, offset) in PUBLISHED.items() if published else ():
            look = {"facecolors": "none", "edgecolors": PINK, "marker": "D"}
            draw(published[system,], label, offset, **look)
        axis.set_xscale("log")
        axis.xaxis.set_major_formatter("{x:g}")
        axis.margins(x=0.25, y=0.1)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("processor time of a query, ms on one thread")
    axes[0].set_ylabel("test hit@1, all titles")
    return figure


def draw_growth(pyplot):
    """Time by pairs, cells, trigrams and words per text."""
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = pyplot.subplots(2, 2, figsize=(8, 6), layout="constrained")
    whole = [
        (line["pairs"], {"sentemb": line["sentemb (s)"]})
        for line in read_csv("speed-growth-with-the-log.csv")
    ]
    panels = {"pairs": whole}
    for line in read_csv("speed-growth-with-the-model-and-the-texts.csv"):
        values = {key.removesuffix(" (ms)"): value for key, value in line.items() if "(ms)" in key}
        panels.setdefault(line["varied"], []).append((line["value"], values))
    looks = {"sentemb": (BLUE, "o"), "PyTorch, usual": (ORANGE, "s"), "PyTorch, best": (GREEN, "D")}
    for axis, (name, points) in zip(axes.flat, panels.items(), strict=True):
        places = [int(x) for x, _ in points]
        for label in points[0][1]:
            colour, marker = looks[label]
            values = [float(times[label]) for _, times in points]
            axis.plot(places, values, color=colour, marker=marker, markersize=4, label=label)
        axis.set_xscale("log")
        axis.set_yscale("log")
        labels = [f"{x / 1000:.0f}k" if x >= 1000 else f"{x}" for x in places]
        if name == "cells":  # 192 and 288 would overlap
            labels[places.index(288)] = ""
        axis.set_xticks(places, labels)
        axis.yaxis.set_major_locator(
            LogLocator(subs=(1, 2, 3, 5) if name == "pairs" else (1, 2, 5))
        )
        axis.yaxis.set_major_formatter("{x:g}")
        for one in (axis.xaxis, axis.yaxis):
            one.set_minor_formatter(NullFormatter())
        axis.set_xlabel(name)
        axis.set_ylabel("one epoch, s" if name == "pairs" else "training step, ms")
    axes[0, 1].legend(frameon=False, fontsize=9)
    return figure


CHARTS = {
    "negatives": draw_negatives,
    "word-order": draw_word_order,
    "cost": draw_cost,
    "query-cost": draw_query_cost,
    "growth": draw_growth,
}


# -- small tables ---------------------------------------------------------------------------------

OVER_ALL_TITLES = ("hit@1", "MRR@10", "recall@10")
JUDGED = ("NDCG@1", "NDCG@3", "NDCG@10")


def by_row(file, *keys):
    """The lines of a CSV file by their cells in some columns."""
    return {tuple(line[key] for key in keys): line for line in read_csv(file)}


def table_of(sources, figures):
    """Rows of some figures on the real sets: label -> set -> line of a CSV file.

    A set whose line is missing has a dash; a row without any line is left out.
    """
    rows = [["", *REAL]]
    for label, lines in sources.items():
        if not any(lines.values()):
            continue
        cells = [
            "-" if line is None else " / ".join(f"{float(line[one]):.3f}" for one in figures)
            for line in (lines.get(name) for name in REAL)
        ]
        rows.append([label, *cells])
    return markdown_table(rows)


def lines_of(file, *row, keys=("training", "system")):
    """Set -> one row of the CSV files of all sets, where there is one."""
    return {name: by_row(file.format(name), *keys).get(row) for name in REAL}


def rivals_of(file, rival):
    """Set -> the line of a rival."""
    found = by_row(file, "set", "rival")
    return {name: found.get((name, rival)) for name in REAL}


def ranking_table(file="ranking-{}-judged-titles.csv", of_rivals="rivals.csv", figures=JUDGED):
    """Figures among the judged titles of the real sets: rivals by words, a transformer, ours."""
    sources = {
        "BM25, titles": rivals_of(of_rivals, "bm25"),
        "BM25, titles and clicked queries": rivals_of(of_rivals, "bm25-clicks"),
        "all-MiniLM-L6-v2, as published": rivals_of(of_rivals, "minilm"),
        f"{TUNED} on the log": rivals_of(of_rivals, "minilm-tuned"),
        "the same + BM25 with clicked queries": rivals_of(of_rivals, "minilm-tuned + bm25-clicks"),
        "sentemb, default LSTM alone": lines_of(file, "defaults", "model"),
        "**sentemb, defaults: LSTM and ranker**": lines_of(file, "defaults", "ranker"),
        "sentemb, `--seeds 2`, ranker": lines_of(file, "defaults, two seeds", "ranker"),
    }
    return table_of(sources, figures)


def all_titles_table():
    """The same over all titles of the judged test sets."""
    return ranking_table("ranking-{}-all-titles.csv", "rivals-all-titles.csv", OVER_ALL_TITLES)


def short_table():
    """BM25 with clicks, the strongest rival alone and with them, ours, and ours with the rival."""
    ours, rivals = "ranking-{}-all-titles.csv", "rivals-all-titles.csv"

    def with_it(system):
        return lines_of("embedding-{}-fine-tuned.csv", system, keys=("system",))

    sources = {
        "BM25 with clicks": rivals_of(rivals, "bm25-clicks"),
        TUNED: with_it("transformer"),
        f"{TUNED}, + BM25 with clicks": rivals_of(rivals, "minilm-tuned + bm25-clicks"),
        "the same with all parts of our ranker": rivals_of(rivals, "minilm-tuned with our parts"),
        "**sentemb**": lines_of(ours, "defaults", "ranker"),
        "sentemb, taught by it": with_it("ranker, --teacher --vectors"),
        "sentemb with it as a part": with_it("ranker, --embedding"),
    }
    return table_of(sources, OVER_ALL_TITLES)


def kinds_table():
    """hit@1 by kind of query, of clicks drawn like traffic: one figure for each log."""
    rankings = {
        "BM25, titles": "bm25",
        "BM25 with clicks": "bm25-clicks",
        "the most clicked title of the query": "clicks of this query alone",
        f"{TUNED}, + BM25 with clicks": f"{TUNED}, + BM25 with clicks",
        "the same, after the most clicked title": f"{TUNED}, + BM25, after clicks of the query",
        "**sentemb**": "sentemb",
    }
    tables = [read_csv(f"traffic-kinds-of-query-{name}.csv") for name in REAL]
    tables[REAL.index("tldr")] += read_csv("traffic-transformer-the-strongest-rival-tldr.csv")
    kinds = [column for column in tables[0][0] if column != "ranking"]
    rows = [["", *kinds]]
    for label, ranking in rankings.items():
        lines = [
            next((line for line in table if line["ranking"] == ranking), dict.fromkeys(kinds, "-"))
            for table in tables
        ]
        cells = [[line[kind].split(" / ")[0] for line in lines] for kind in kinds]
        rows.append([label, *(" / ".join(figures) for figures in cells)])
    return markdown_table(rows)


def catalogue_table(way="queries-held-out"):
    """hit@1 / MRR@10 / recall@10 over whole catalogues, for held-out clicks."""
    systems = {
        "BM25 with stems, titles": "bm25-stem",
        "BM25, titles and clicked queries": "bm25-clicks",
        "BM25 with stems, titles and clicked queries": "bm25-stem-clicks",
        "sentemb, default LSTM alone": "defaults",
        "**sentemb, defaults: LSTM and ranker**": "ranker",
    }
    file = f"held-out-{{}}-{way}.csv"
    sources = {label: lines_of(file, one, keys=("system",)) for label, one in systems.items()}
    return table_of(sources, OVER_ALL_TITLES)


def index_table():
    """An index of a million titles, and the import of a million rows."""
    commands = {line["command"]: line for line in read_csv("index-speed-commands.csv")}
    one = {line["what"]: line for line in read_csv("index-speed-one-query-one-thread.csv")}
    many = {
        line["what"]: line for line in read_csv("index-speed-64-queries-at-once-one-thread.csv")
    }
    all_at_once = {
        line["what"]: line for line in read_csv("index-speed-1-000-queries-at-once-2-threads.csv")
    }
    recall = {line["what"]: line for line in read_csv("index-speed-recall.csv")}
    imported = read_csv("import-speed-import-and-split.csv")[0]
    rows = [["", "measured", "target"]]

    def add(label, value, target):
        rows.append([label, value, target])

    def command(name):
        line = commands[name]
        return f"{line['seconds (s)']} s, {line['peak memory (MB)']} MB"

    add("`sentemb index`", command("sentemb index, 1,000,000 titles"), "120 s, 1,000 MB")
    add("`sentemb search`, start to answer", command("sentemb search, float32"), "1.5 s")
    add("one query, float32", f"{one['sentemb']['ms per query']} ms", "60 ms")
    ratio = float(one["sentemb"]["ms per query"]) / float(many["sentemb"]["ms per query"])
    add(
        "64 queries at once, per query",
        f"{many['sentemb']['ms per query']} ms: {ratio:.1f} × the throughput of one by one",
        "6 ms, 10 ×",
    )
    add(
        "one query, int8",
        f"{one['sentemb, int8']['ratio to sentemb']} × as long as float32, "
        f"recall@10 {recall['sentemb, int8']['recall@10']}",
        "0.5 ×, 0.97",
    )
    add(
        "1,000 queries at once, two threads",
        f"{all_at_once['sentemb']['ratio to product alone']} × as long as NumPy's matrix product",
        "1.5 ×",
    )
    add("import of CSV", f"{int(imported['rows/s']):,} rows/s", "150,000 rows/s")
    return markdown_table(rows, left=3)


def speed_table():
    """One training step and encoding, compared with PyTorch."""
    step = read_csv("speed-training-step-one-thread.csv")[0]
    encoding = {
        line["sentences per call"]: line for line in read_csv("speed-encoding-one-thread.csv")
    }
    rows = [["", "sentemb", "PyTorch, usual", "PyTorch, best"]]
    rows.append([
        "training step, 512 pairs",
        f"{step['sentemb (ms)']} ms",
        f"{step['PyTorch, usual ratio']} × as long",
        f"{step['PyTorch, best ratio']} × as long",
    ])  # fmt: skip
    for count, label in (("1", "encoding one sentence"), ("4096", "encoding 4,096 sentences")):
        line = encoding[count]
        rows.append([
            label,
            f"{line['sentemb (ms)']} ms",
            f"{line['PyTorch, usual']} × as long",
            f"{line['PyTorch, best']} × as long",
        ])  # fmt: skip
    return markdown_table(rows)


def main():
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                        "grid.alpha": 0.25, "axes.axisbelow": True}  # fmt: skip
    FIGURES.mkdir(exist_ok=True)
    for name, draw in CHARTS.items():
        figure = draw(pyplot)
        figure.savefig(FIGURES / f"{name}.png", dpi=DPI, metadata={"Software": None})
        pyplot.close(figure)
    fill(README, {"short": short_table(), "kinds": kinds_table()})
    tables = {
        "ranking": ranking_table(),
        "all_titles": all_titles_table(),
        "catalogue": catalogue_table(),
        "speed": speed_table(),
        "index": index_table(),
    }
    fill(PAGE, tables)


if __name__ == "__main__":
    main()
