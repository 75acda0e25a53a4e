"""The charts and small tables of docs/benchmarks.md and README.md, from the CSV in docs/results.

Measures nothing: run it after the scripts that write docs/results.

    python benchmarks/charts.py
"""

from pages import DOCS, README, fill, read_csv

from sentemb.analysis.figures.palette import BLUE, GREEN, ORANGE, PINK, model_colours
from sentemb.system.tables import markdown_table

PAGE, FIGURES = DOCS / "benchmarks.md", DOCS / "figures"
SETS = {
    "occupations": "occupations",
    "tldr": "tldr",
    "msdocs_index": "msdocs_index",
    "simulated": "simulated log",
}
REAL = list(SETS)[:3]
GREY = "#777777"
COLOURS = dict(zip(SETS, (BLUE, ORANGE, GREEN, PINK), strict=True))
MARKERS = dict(zip(SETS, "osD^", strict=True))
DPI = 120
# Rows of Table IV by kind of model; a kind has the colour of its best known model.
FAMILIES = {
    "order-free": (ORANGE, "s", ("bag", "dssm", "bag-hard", "dssm-hard")),
    "convolution": (PINK, "^", ("clsm-1", "clsm-3", "clsm-5")),
    "recurrent": (BLUE, "o", ("rnn-288", "lstm-32", "lstm-64", "lstm-96", "lstm-96-hard",
                              "lstm-96-bag", "bilstm-96", "bilstm-192", "bilstm-large")),
    "paper's settings": (GREY, "D", ("lstm-96-paper",)),
}  # fmt: skip
TRAINED_ON_PARTS = {"bag": "s", "dssm": "^", "lstm-96": "o"}
# Systems of embedding-*.csv that the chart of query costs names, by colour and marker: label, and
# where it goes.
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
        "transformer": ("transformer as published", (0, -11)),
        "ranker, --embedding": ("ranker + transformer", (0, -11)),
    },
}
# Rows of rivals-all-titles.csv: the system here that costs as much at each query, and the label.
FINE_TUNED = {
    "minilm-tuned": ("transformer", "transformer, fine-tuned"),
    "defaults + minilm-tuned": ("ranker, --embedding", "ranker + fine-tuned"),
}
# Rows that the cost chart names: label, and where it goes in points from the row's own point.
NAMED = {
    "bag": ("bag", (0, 11)),
    "lstm-96-hard": ("default", (-4, 11)),
    "bilstm-large": ("large", (0, -11)),
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
    names = ("lstm-96-n2", "lstm-96-n4", "lstm-96-n6", "lstm-96-n8", "lstm-96", "lstm-96-hard")
    labels = ("2", "4", "6", "8", "all others\nin the batch", "all others\n+ 3 hard")
    figure, axis = pyplot.subplots(figsize=(6.5, 4), layout="constrained")
    for name, label in SETS.items():
        lines = table4(name)
        axis.errorbar(
            range(len(names)),
            [ndcg(lines[row]) for row in names],
            yerr=[float(lines[row]["NDCG@1 sd"]) for row in names],
            color=COLOURS[name],
            marker=MARKERS[name],
            capsize=3,
            label=label,
        )
    axis.set_xticks(range(len(names)), labels)
    axis.set_xlabel("negatives per query")
    axis.set_ylabel("test NDCG@1, LSTM with 96 cells")
    figure.legend(frameon=False, ncols=4, loc="outside upper center")
    return figure


def draw_word_order(pyplot):
    """NDCG@1 on queries whose meaning depends on word order, and on the others."""
    shown = ("bm25-stem", "bag-hard", "dssm-hard", "clsm-5", "rnn-288", "lstm-32", "lstm-96",
             "lstm-96-hard", "bilstm-192", "bilstm-large")  # fmt: skip
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


def draw_log_size(pyplot):
    """NDCG@1 by the number of training pairs, and the LSTM's lead over order-free models."""
    colours = model_colours(list(TRAINED_ON_PARTS))
    figure, axes = pyplot.subplots(2, 3, figsize=(8, 5), layout="constrained", sharey="row")
    for (above, below), name in zip(axes.T, REAL, strict=True):
        some = read_csv(f"table4-{name}-size-of-the-log.csv")
        lead = next(key for key in some[0] if key.endswith("order-free one"))
        pairs = [int(line["pairs"]) for line in some]
        for (row, marker), colour in zip(TRAINED_ON_PARTS.items(), colours, strict=True):
            values = [float(line[row]) for line in some]
            above.plot(pairs, values, color=colour, marker=marker, markersize=5, label=row)
        middle, low, high = (
            [float(line[f"{lead}{part}"]) for line in some] for part in ("", " low", " high")
        )
        reach = [
            [m - x for m, x in zip(middle, low, strict=True)],
            [x - m for m, x in zip(middle, high, strict=True)],
        ]
        below.axhline(0, color="black", linewidth=0.8)
        below.errorbar(pairs, middle, yerr=reach, color=BLUE, marker="o", capsize=3)
        for axis in (above, below):
            axis.set_xscale("log", base=2)
            axis.set_xticks(pairs, [f"{count / 1000:.0f}k" for count in pairs])
            axis.minorticks_off()
        above.set_title(name, fontsize=10)
        below.set_xlabel("training pairs")
    axes[0, 0].set_ylabel("test NDCG@1")
    axes[1, 0].set_ylabel("lstm-96 minus the better\norder-free model")
    axes[0, 0].legend(frameon=False)
    return figure


def draw_cost(pyplot):
    """NDCG@1 against seconds of training."""
    figure, axes = pyplot.subplots(1, 3, figsize=(10, 4), layout="constrained")
    for axis, name in zip(axes, REAL, strict=True):
        lines = table4(name)
        for family, (colour, marker, rows) in FAMILIES.items():
            points = [(float(lines[row]["training (s)"]), ndcg(lines[row])) for row in rows]
            axis.scatter(*zip(*points, strict=True), color=colour, marker=marker, label=family)
            for row, point in zip(rows, points, strict=True):
                if row in NAMED:
                    label, offset = NAMED[row]
                    axis.annotate(label, point, offset, textcoords="offset points", fontsize=9,
                                  ha="center", va="center")  # fmt: skip
        axis.set_xscale("log")
        seconds = (5, 10, 20, 50, 100, 200, 500)
        axis.set_xticks(seconds, [f"{some}" for some in seconds])
        axis.minorticks_off()
        axis.margins(x=0.15, y=0.1)
        axis.set_title(name, fontsize=10)
        axis.set_xlabel("training, seconds on one thread")
    axes[0].set_ylabel("test NDCG@1")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=4, loc="outside upper center")
    return figure


def draw_query_cost(pyplot):
    """hit@1 over all titles against the processor time of a query."""
    tuned = by_row("rivals-all-titles.csv", "set", "rival")
    of_sets = {name: by_row(f"embedding-{name}.csv", "system") for name in REAL}
    measured = {name: lines for name, lines in of_sets.items() if lines}
    size = {"figsize": (1.5 + 4.5 * len(measured), 4.4), "squeeze": False}
    figure, (axes,) = pyplot.subplots(1, len(measured), layout="constrained", **size)
    for axis, (name, lines) in zip(axes, measured.items(), strict=True):

        def draw(system, line, label, offset, axis=axis, lines=lines, **look):
            point = float(lines[system,]["CPU ms per query"]), float(line["hit@1"])
            axis.scatter(*point, **look)
            axis.annotate(label, point, offset, textcoords="offset points", fontsize=8,
                          ha="center", va="center")  # fmt: skip

        for (colour, marker), named in QUERY_COSTS.items():
            for system, (label, offset) in named.items():
                draw(system, lines[system,], label, offset, color=colour, marker=marker)
        for rival, (system, label) in FINE_TUNED.items():
            look = {"facecolors": "none", "edgecolors": PINK, "marker": "D"}
            draw(system, tuned[name, rival], label, (0, 10), **look)
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
    "log-size": draw_log_size,
    "cost": draw_cost,
    "query-cost": draw_query_cost,
    "growth": draw_growth,
}


# -- small tables ---------------------------------------------------------------------------------

OVER_ALL_TITLES = ("hit@1", "MRR@10", "recall@10")


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


def ranking_table():
    """NDCG@1 / @3 / @10 on the real sets: rivals by words, a transformer, ours."""
    found = {name: table4(name) for name in REAL}
    ours, rivals = "ranking-{}-judged-titles.csv", "rivals.csv"
    sources = {
        "BM25, titles": {name: found[name]["bm25-stem"] for name in REAL},
        "BM25, titles and clicked queries": rivals_of(rivals, "bm25-clicks"),
        "all-MiniLM-L6-v2, as published": rivals_of(rivals, "minilm"),
        "all-MiniLM-L6-v2, fine-tuned on the log": rivals_of(rivals, "minilm-tuned"),
        "the same + BM25 with clicked queries": rivals_of(rivals, "minilm-tuned + bm25-clicks"),
        "sentemb, order-free (`bag-hard`)": {name: found[name]["bag-hard"] for name in REAL},
        "sentemb, default LSTM alone": lines_of(ours, "defaults", "model"),
        "sentemb, `--preset large` alone": {name: found[name]["bilstm-large"] for name in REAL},
        "**sentemb, defaults: LSTM and ranker**": lines_of(ours, "defaults", "ranker"),
        "sentemb, `--seeds 2`, ranker": lines_of(ours, "defaults, two seeds", "ranker"),
        "sentemb, `--seeds 2 --vectors`, ranker": lines_of(ours, "--vectors, two seeds", "ranker"),
        "sentemb, `--preset large --vectors`, ranker": lines_of(
            ours, "--preset large --vectors", "ranker"
        ),
    }
    return table_of(sources, [f"NDCG@{k}" for k in (1, 3, 10)])


def all_titles_table():
    """hit@1 / MRR@10 / recall@10 over all titles of the judged test sets."""
    ours, rivals = "ranking-{}-all-titles.csv", "rivals-all-titles.csv"
    sources = {
        "BM25, titles": rivals_of(rivals, "bm25"),
        "BM25, titles and clicked queries": rivals_of(rivals, "bm25-clicks"),
        "all-MiniLM-L6-v2, fine-tuned on the log": rivals_of(rivals, "minilm-tuned"),
        "the same + BM25 with clicked queries": rivals_of(rivals, "minilm-tuned + bm25-clicks"),
        "sentemb, default LSTM alone": lines_of(ours, "defaults", "model"),
        "**sentemb, defaults: LSTM and ranker**": lines_of(ours, "defaults", "ranker"),
        "sentemb, `--seeds 2`, ranker": lines_of(ours, "defaults, two seeds", "ranker"),
        "sentemb, `--seeds 2 --vectors`, ranker": lines_of(ours, "--vectors, two seeds", "ranker"),
        "sentemb, `--preset large --vectors`, ranker": lines_of(
            ours, "--preset large --vectors", "ranker"
        ),
    }
    return table_of(sources, OVER_ALL_TITLES)


def short_table():
    """Three rows of `all_titles_table`: BM25 with clicks, the strongest rival, and ours."""
    ours, rivals = "ranking-{}-all-titles.csv", "rivals-all-titles.csv"
    sources = {
        "BM25 with clicks": rivals_of(rivals, "bm25-clicks"),
        "all-MiniLM-L6-v2, fine-tuned, + BM25 with clicks": rivals_of(
            rivals, "minilm-tuned + bm25-clicks"
        ),
        "**sentemb**": lines_of(ours, "defaults", "ranker"),
    }
    return table_of(sources, OVER_ALL_TITLES)


def kinds_table():
    """hit@1 by kind of query, of clicks drawn like traffic: one figure for each log."""
    rankings = {
        "BM25, titles": "bm25",
        "BM25 with clicks": "bm25-clicks",
        "the most clicked title of the query": "clicks of this query alone",
        "**sentemb**": "sentemb",
    }
    tables = [read_csv(f"traffic-kinds-of-query-{name}.csv") for name in REAL]
    kinds = [column for column in tables[0][0] if column != "ranking"]
    rows = [["", *kinds]]
    for label, ranking in rankings.items():
        lines = [next(line for line in table if line["ranking"] == ranking) for table in tables]
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
