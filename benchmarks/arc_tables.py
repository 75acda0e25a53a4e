"""The tables of docs/arc.md, from the CSV files in docs/results/arc alone."""

from statistics import mean, stdev

from arc_claims import CLAIMS, NAMES, STATE_OF_THE_ART, chosen, printed
from arc_parts import CURVE_MODELS, FIXED, LEARNED, OWN, RATES, SEARCHED, best_dev, reported
from claims import COLUMNS, claim_rows, judged, rule_rows

KINDS = (FIXED, LEARNED)
_NEGATIVES = {"test": "random", "test_hard": "similar"}


def _p(share):
    """A share in per cent."""
    return f"{100 * float(share):.1f}"


def _signed(share):
    return f"{100 * share:+.1f}".replace("+-", "-")


def _spread(values):
    """Mean and, from two seeds on, standard deviation, in per cent."""
    shares = [100 * float(value) for value in values]
    return f"{mean(shares):.1f}" + (f" ± {stdev(shares):.1f}" if len(shares) > 1 else "")


# -- Tables 1 and 2 -------------------------------------------------------------------------------


def _ranked(tables, name, number, columns):
    """A row for each model, the best last."""
    paper = printed(number)
    heads = [f"{what}, vectors {vectors}" for vectors in KINDS for what in columns.values()]
    yield ["model", "rates", "seeds (fixed / trained)", *heads, f"Table {number} of the paper"]
    found = {}
    for line in reported(tables[name]):
        found.setdefault(line["model"], []).append(line)
    yield [NAMES["random"], "", "", *["20.0"] * len(heads), f"{paper['random', 'P@1']:.2f}"]
    for model, _ in paper:
        if model not in (*found, "random"):
            yield [NAMES[model], "", "", *["–"] * len(heads), f"{paper[model, 'P@1']:.2f}"]
    best = {model: max(float(line["test"]) for line in lines) for model, lines in found.items()}
    for model in sorted(found, key=best.__getitem__):
        cells, seeds, rates = [], [], []
        for vectors in KINDS:
            lines = [line for line in found[model] if line["vectors"] in (vectors, OWN)]
            seeds.append(str(len(lines)))
            rates += [line["rate"] for line in lines[:1] if line["rate"]]
            cells += [_spread([line[x] for line in lines]) if lines else "–" for x in columns]
        if found[model][0]["vectors"] == OWN:
            cells[: len(columns)], seeds = ["–"] * len(columns), seeds[1:]
        in_print = f"{paper[model, 'P@1']:.2f}" if (model, "P@1") in paper else "–"
        both = (" / ".join(dict.fromkeys(some)) for some in (rates, seeds))
        yield [NAMES[model], *both, *cells, in_print]


def _completion(tables):
    columns = {"test": "random negatives", "similar": "similar negatives"}
    return _ranked(tables, "completion", 1, columns)


def _response(tables):
    return _ranked(tables, "response", 2, {"test": "P@1"})


def _differences(name):
    """Rows of the paired comparisons of a task with ARC-II, what it is most ahead of first."""

    def rows(tables):
        yield ["word vectors", "negatives", "system", "points that ARC-II is ahead", "p"]
        for vectors in KINDS:
            for part, negatives in _NEGATIVES.items():
                lines = [
                    line
                    for line in tables["differences"]
                    if (line["set"], line["vectors"], line["part"]) == (name, vectors, part)
                ]
                for line in sorted(lines, key=lambda line: float(line["difference"])):
                    gap, low, high = (-float(line[x]) for x in ("difference", "high", "low"))
                    cell = f"{_signed(gap)} ({_signed(low)} to {_signed(high)})"
                    yield [vectors, negatives, NAMES[line["system"]], cell, line["p"]]

    return rows


def _progress(tables):
    """Dev after some epochs, one row per training."""
    heads = "dev after 2 epochs", "after 4", "best", "training loss then"
    yield ["model", "vectors", "rate", "seed", "epoch kept", *heads]
    shown = ("arc1", "arc2", "senna", "wordembed")
    lines = [line for line in tables["completion"] if line["model"] in shown]
    for line in sorted(lines, key=lambda x: (x["vectors"], x["model"], x["rate"], x["seed"])):
        dev = list(map(float, line["dev"].split()))
        loss = float(line["loss"].split()[int(line["kept"]) - 1])
        yield [
            NAMES[line["model"]], line["vectors"], line["rate"], line["seed"], line["kept"],
            *(_p(dev[epoch - 1]) if len(dev) >= epoch else "–" for epoch in (2, 4)),
            _p(max(dev)), f"{loss:.3f}",
        ]  # fmt: skip


# -- Table 3 --------------------------------------------------------------------------------------


def labelled(name):
    """A function of the tables that gives the rows of Table 3 for a set."""

    def rows(tables):
        paper = printed(3) | printed(STATE_OF_THE_ART)
        heads = "accuracy", "interval", "F1", "MSRP in the paper: accuracy", "F1"
        yield ["model", "vectors", "dropout", "seeds", *heads]
        for model in ("rus", "socher"):
            figures = f"{paper[model, 'accuracy']:.1f}", f"{paper[model, 'F1']:.2f}"
            yield [NAMES[model], *["–"] * 6, *figures]
        best = chosen([line for line in tables["labelled"] if line["set"] == name])
        order = {model: mean(float(x["accuracy"]) for x in lines) for model, lines in best.items()}
        for model in sorted(best, key=order.__getitem__):
            lines, first = best[model], best[model][0]
            yield [
                NAMES[model], first["vectors"], first["dropout"],
                str(len(lines)) if first["seed"] else "",
                _spread([line["accuracy"] for line in lines]),
                f"{_p(first['low'])} to {_p(first['high'])}",
                _spread([line["f1"] for line in lines]) if first["f1"] != "nan" else "–",
                *(
                    f"{paper[model, measure]:{form}}" if (model, measure) in paper else "–"
                    for measure, form in (("accuracy", ".1f"), ("F1", ".2f"))
                ),
            ]  # fmt: skip

    return rows


# -- the rest -------------------------------------------------------------------------------------


def _rates(tables):
    """Best dev P@1 by learning rate, a column for each model."""
    found = {
        (line["optimiser"], float(line["rate"]), line["model"]): best_dev(line)
        for line in tables["rates"]
    }
    yield ["optimiser", "rate", *(NAMES[model] for model in SEARCHED)]
    for optimiser, tried in RATES.items():
        for rate in tried:
            row = (found.get((optimiser, rate, model)) for model in SEARCHED)
            cells = [_p(figure) if figure is not None else "–" for figure in row]
            if set(cells) != {"–"}:
                yield [optimiser, str(rate), *cells]


def _variants(tables):
    """Best dev P@1 of each variant, a column for each model."""
    lines = tables["variants"]
    found = {(line["variant"], line["model"]): best_dev(line) for line in lines}
    yield ["variant", *(NAMES[model] for model in SEARCHED)]
    for variant in dict.fromkeys(line["variant"] for line in lines):
        row = (found.get((variant, model)) for model in SEARCHED)
        yield [variant, *(_p(figure) if figure is not None else "–" for figure in row)]


def _learning(tables):
    lines = tables["learning"]
    measured = {line["model"] for line in lines}
    models = [model for model in CURVE_MODELS if model in measured]
    tests = {(int(line["pairs"]), line["model"]): _p(line["test"]) for line in reversed(lines)}
    yield ["pairs", *(NAMES[model] for model in models)]
    for size in sorted({size for size, _ in tests}):
        yield [f"{size:,}", *(tests.get((size, model), "–") for model in models)]


# Section: the CSV files that it needs, its rows, and the columns that are flush left.
def activations(tables):
    """Best dev P@1 by activation and rate, and the epoch."""
    lines = {(line["activation"], line["rate"]): line for line in tables["activations"]}
    rates = dict.fromkeys(rate for _, rate in lines)
    yield ["activation", *(f"rate {rate}" for rate in rates)]
    for activation in dict.fromkeys(name for name, _ in lines):
        yield [activation, *(_best_epoch(lines[activation, rate]) for rate in rates)]


def _best_epoch(line):
    dev = [float(x) for x in line["dev"].split()]
    return f"{100 * max(dev):.1f} (epoch {1 + dev.index(max(dev))})"


def batches(tables):
    """Best dev P@1 by triples in a mini-batch and rate."""
    lines = {(line["batch"], line["rate"], line["model"]): line for line in tables["batches"]}
    models = dict.fromkeys(model for *_, model in lines)
    yield ["triples", "rate", *(NAMES[model] for model in models)]
    for batch, rate in dict.fromkeys((batch, rate) for batch, rate, _ in lines):
        yield [batch, rate, *(_best_epoch(lines[batch, rate, model]) for model in models)]


SECTIONS = {
    "completion": (("completion",), _completion, 1),
    "completion-differences": (("completion", "differences"), _differences("completion"), 3),
    "progress": (("completion",), _progress, 2),
    "response": (("response",), _response, 1),
    "response-differences": (("response", "differences"), _differences("response"), 3),
    "labelled": (("labelled",), labelled("sick"), 3),
    "rules": (("constructions",), lambda tables: rule_rows(judged(CLAIMS, tables), tables), 8),
    "activations": (("activations",), activations, 1),
    "batches": (("batches",), batches, 2),
    "claims": (("constructions",), lambda tables: claim_rows(judged(CLAIMS, tables)), len(COLUMNS)),
    "learning": (("learning",), _learning, 1),
    "rates": (("rates",), _rates, 1),
    "variants": (("variants",), _variants, 1),
}
