"""The tables of docs/arc.md, from the CSV files in docs/results/arc alone."""

from statistics import mean, stdev

from arc_claims import CLAIMS, NAMES, STATE_OF_THE_ART, chosen, printed
from arc_parts import FIXED, LEARNED, OWN
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
    yield ["model", *heads, f"Table {number} of the paper"]
    found = {}
    for line in tables[name]:
        found.setdefault(line["model"], []).append(line)
    yield [NAMES["random"], *["20.0"] * len(heads), f"{paper['random', 'P@1']:.2f}"]
    for model, _ in paper:
        if model not in (*found, "random"):
            yield [NAMES[model], *["–"] * len(heads), f"{paper[model, 'P@1']:.2f}"]
    best = {model: max(float(line["test"]) for line in lines) for model, lines in found.items()}
    for model in sorted(found, key=best.__getitem__):
        cells = []
        for vectors in KINDS:
            lines = [line for line in found[model] if line["vectors"] in (vectors, OWN)]
            cells += [_spread([line[x] for line in lines]) if lines else "–" for x in columns]
        if found[model][0]["vectors"] == OWN:
            cells[: len(columns)] = ["–"] * len(columns)
        in_print = f"{paper[model, 'P@1']:.2f}" if (model, "P@1") in paper else "–"
        yield [NAMES[model], *cells, in_print]


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


# -- Table 3 --------------------------------------------------------------------------------------


def labelled(name):
    """A function of the tables that gives the rows of Table 3 for a set."""

    def rows(tables):
        paper = printed(3) | printed(STATE_OF_THE_ART)
        heads = "accuracy", "interval", "F1", "MSRP in the paper: accuracy", "F1"
        yield ["model", "dropout", *heads]
        for model in ("rus", "socher"):
            figures = f"{paper[model, 'accuracy']:.1f}", f"{paper[model, 'F1']:.2f}"
            yield [NAMES[model], *["–"] * 4, *figures]
        best = chosen([line for line in tables["labelled"] if line["set"] == name])
        order = {model: mean(float(x["accuracy"]) for x in lines) for model, lines in best.items()}
        for model in sorted(best, key=order.__getitem__):
            lines, first = best[model], best[model][0]
            yield [
                NAMES[model], first["dropout"],
                _spread([line["accuracy"] for line in lines]),
                f"{_p(first['low'])} to {_p(first['high'])}",
                _spread([line["f1"] for line in lines]) if first["f1"] != "nan" else "–",
                *(
                    f"{paper[model, measure]:{form}}" if (model, measure) in paper else "–"
                    for measure, form in (("accuracy", ".1f"), ("F1", ".2f"))
                ),
            ]  # fmt: skip

    return rows


# Section: the CSV files that it needs, its rows, and the columns that are flush left.
SECTIONS = {
    "completion": (("completion",), _completion, 1),
    "completion-differences": (("completion", "differences"), _differences("completion"), 3),
    "response": (("response",), _response, 1),
    "response-differences": (("response", "differences"), _differences("response"), 3),
    "labelled": (("labelled",), labelled("sick"), 1),
    "rules": (("constructions",), lambda tables: rule_rows(judged(CLAIMS, tables), tables), 8),
    "claims": (("constructions",), lambda tables: claim_rows(judged(CLAIMS, tables)), len(COLUMNS)),
}
