"""The tables of docs/sif.md, from the CSV files in docs/results/sif alone."""

import csv
from pathlib import Path

from claims import COLUMNS, claim_rows, judged, rule_rows
from pages import read_csv
from sif_claims import CLAIMS, main_vectors, parts_of, supervised_means
from sif_lab import OTHERS, SOURCE_NAMES, YEARS, group_means
from sif_printed import SYSTEMS, mean_over, printed, tasks_of, wrong_means
from sif_supervised import chosen_a

REFERENCE = Path(__file__).with_name("sif_reference.csv")
_GROUPS = {"sick test": "SICK", "stsb dev": "STS-B dev", "stsb test": "STS-B test"}
_SETS = {"sick": "SICK", "stsb": "STS-B", "twitter": "Twitter'15"}
_COLUMNS = {"split": "splitting", "source": "p(w) from", "words": "words in the corpus"}


# -- cells ----------------------------------------------------------------------------------------


def _as_printed(value):
    """A number of the paper, which prints one digit behind the point, or two."""
    return f"{value:.1f}" if round(value, 1) == value else f"{value:.2f}"


def _tenth(value):
    return f"{float(value):.1f}"


def _label(group):
    """A year or set as the page names it."""
    return f"STS'{group[2:]}" if group in YEARS else _GROUPS[group]


def _part(part):
    year, name = part.split()
    return f"{_label(year) if year in YEARS else _SETS[year]} {name}"


def _ndcg(line):
    return " / ".join(line[f"NDCG@{k}"] for k in (1, 3, 10)) if line else "–"


def _as_rows(lines):
    """A table as it was before its CSV: a value and its standard deviation in one cell."""
    names = [name for name in lines[0] if not name.endswith(" sd")]
    rows = [["number" if name == "what" else name for name in names]]
    rows += [
        [
            f"{line[name]} ± {line[f'{name} sd']}" if f"{name} sd" in line else line[name] or "–"
            for name in names
        ]
        for line in lines
    ]
    return rows


def _means(lines, keys):
    """Rows of means by year: the cells of ``keys``, then one for each group."""
    groups = [name for name in lines[0] if name in YEARS or name in OTHERS]
    yield [*(_COLUMNS.get(key, key) for key in keys), *map(_label, groups)]
    for line in lines:
        yield [*(line[key] for key in keys), *(_tenth(line[name]) for name in groups)]


# -- ranking --------------------------------------------------------------------------------------


def _ranked(lines):
    """{(set, row): line}, the names of the sets and those of the rows."""
    found = {(line["set"], line["row"]): line for line in lines}
    sets, rows = (list(dict.fromkeys(names)) for names in zip(*found, strict=True))
    return found, sets, rows


def _trained(name):
    """The row of the LSTM of `sentemb train` on a log."""
    lines = read_csv(f"ranking-{name}-judged-titles.csv")
    return next((line for line in lines if line["system"] == "model"), None)


def _summary(tables):
    found, sets, _ = _ranked(tables["ranking"])
    logged, _, _ = _ranked(tables["own-vectors"])
    lines = {
        "BM25": [found[name, "bm25-stem"] for name in sets],
        "SIF of general word vectors": [found[name, "WR"] for name in sets],
        "BM25 plus SIF": [found[name, "bm25-stem + λ cos"] for name in sets],
        "SIF of word vectors trained on the log": [logged.get((name, "WR")) for name in sets],
        "LSTM trained on the log": [_trained(name) for name in sets],
    }
    yield ["test NDCG@1", *sets]
    for row, of_sets in lines.items():
        yield [row, *(line["NDCG@1"] if line else "–" for line in of_sets)]


def _ranking(tables):
    yield from _figures(tables["ranking"])
    _, sets, _ = _ranked(tables["ranking"])
    yield ["LSTM trained on the log (defaults)", *(_ndcg(_trained(name)) for name in sets)]


def _figures(lines):
    found, sets, rows = _ranked(lines)
    yield ["row", *sets]
    for row in rows:
        yield [row, *(_ndcg(found[name, row]) for name in sets)]


def _chosen(lines):
    """The settings chosen on dev."""
    found, sets, rows = _ranked(lines)
    yield ["row", *sets]
    for row in rows:
        if found[sets[0], row]["settings"]:
            yield [row, *(found[name, row]["settings"] for name in sets)]


# -- similarity -----------------------------------------------------------------------------------


def _similarity(tables):
    vectors = dict.fromkeys(line["vectors"] for line in tables["similarity"])
    shown = [name for name in vectors if name != "150d"]
    ours = {(name, row): parts_of(tables, name, row) for name in shown for row in SYSTEMS}
    numbers = printed(5, 6)
    groups = {}
    for part in next(iter(ours.values())):
        group = part.split()[0] if part.split()[0] in YEARS else part
        groups.setdefault(group, []).append(part)

    def cells(members):
        for row, system in SYSTEMS.items():
            values = [
                _tenth(sum(ours[name, row][part] for part in members) / len(members))
                for name in shown
            ]
            known = all((part, system) in numbers for part in members)
            values.append(_tenth(mean_over(numbers, members, system)) if known else "–")
            yield " / ".join(values)

    yield ["part", *SYSTEMS]
    for group, members in groups.items():
        for part in members:
            yield [_part(part), *cells([part])]
        if len(members) > 1:
            name = f"{_label(group)}, mean of {len(members)}"
            yield [f"**{cell}**" for cell in (name, *cells(members))]


def _wrong_means(_tables):
    yield ["year", "system", "printed mean", "mean of the printed rows"]
    for year, system, in_print, recomputed in wrong_means(printed(5, 6)):
        yield [_label(year), system, _tenth(in_print), _tenth(recomputed)]


def _printed_means(tables):
    numbers = printed(5, 6)
    parts = parts_of(tables, main_vectors(tables), "avg")
    yield ["system", *map(_label, YEARS[:4])]
    for system in dict.fromkeys(system for _, system in numbers):
        by_year = ([task for task in tasks_of(numbers, year) if task in parts]
                   for year in YEARS[:4])  # fmt: skip
        yield [system, *(_tenth(mean_over(numbers, tasks, system)) for tasks in by_year)]


def _reference(tables):
    """Our means, and in brackets their differences from those of a separate program."""
    with open(REFERENCE, encoding="utf-8", newline="") as lines:
        reference = list(csv.DictReader(lines))
    groups = [name for name in reference[0] if name != "row"]
    yield ["row", *map(_label, groups)]
    for line in reference:
        means = group_means(parts_of(tables, "100d", line["row"]))
        yield [line["row"], *(
            f"{means[group]:.1f} ({round(means[group], 1) - float(line[group]):+.1f})"
            for group in groups
        )]  # fmt: skip


def _model(tables):
    yield ["set", "pairs", "largest difference of a score"]
    for name, *cells in (line.values() for line in tables["model"]):
        yield [_part(name), *cells]


def _sweep(tables):
    lines = (line for line in tables["sweep"] if line["vectors"] == main_vectors(tables))
    return _means([line | {"a": line["a"] or "–"} for line in lines], ["row", "a"])


def _sources(tables):
    lines = [
        line | {"source": SOURCE_NAMES[line["source"]],
                "words": f"{int(line['words']):,}" if line["words"] else "–"}
        for line in tables["sources"]
    ]  # fmt: skip
    return _means(lines, ["source", "words", "row"])


def _component(tables):
    yield ["sentences", "share of the squared lengths", "nearest words"]
    for line in tables["component"]:
        yield [_part(line["sentences"]), line["share"], line["nearest words"]]


# -- supervised -----------------------------------------------------------------------------------


def _tasks(means):
    return [task for task in ("similarity", "entailment", "sentiment")
            if (task, "SIF", "original") in means]  # fmt: skip


def _features(tables):
    means, paper = supervised_means(tables), printed(2)
    systems = list(dict.fromkeys(system for _, system in paper if system != "Ours"))
    yield ["task", "a", "SIF", "SIF, paper", *(f"{name}, paper" for name in systems)]
    for task in _tasks(means):
        a = chosen_a(tables["supervised"], task)
        row = [task, a, _tenth(means[task, "SIF", "original"]), _as_printed(paper[task, "Ours"])]
        yield row + [
            _as_printed(paper[task, name]) if (task, name) in paper else "–" for name in systems
        ]


def _tried_a(tables):
    """Dev of seed 0 by a."""
    lines = [line for line in tables["supervised"]
             if (line["system"], line["seed"]) == ("SIF", "0")]  # fmt: skip
    tried = sorted({line["a"] for line in lines}, key=float)
    yield ["task", *(f"a = {a}" for a in tried)]
    for task in dict.fromkeys(line["task"] for line in lines):
        by_a = {line["a"]: line["dev"] for line in lines if line["task"] == task}
        yield [task, *(by_a.get(a, "–") for a in tried)]


def _word_order(tables):
    means, paper = supervised_means(tables), printed(3)
    yield ["task", "RNN", "RNN, paper", "LSTM(o.g.)", "LSTM(o.g.), paper", "LSTM(no), paper"]
    for task in _tasks(means):
        row = [task]
        for ours, theirs in (("rnn", "RNN"), ("lstm", "LSTM(o.g.)"), (None, "LSTM(no)")):
            if ours:
                both = [means.get((task, ours, order)) for order in ("original", "shuffled")]
                row.append(" / ".join("–" if mean is None else _tenth(mean) for mean in both))
            in_print = [paper[task, theirs], paper[task, f"{theirs} shuffled"]]
            row.append(" / ".join(map(_as_printed, in_print)))
        yield row


def _measured_parts(lines):
    names = list(lines[0])
    return names[names.index("stsb dev") + 1 :]


def _pairs(tables):
    lines, numbers = tables["pairs"], printed(5, 6)
    of_paper = [name for name in _measured_parts(lines) if (name, "PP") in numbers]
    settings = ("trained on", "learning rate", "epochs")
    yield ["row", "mean", "dev: sentences", "dev: sentences and log",
           f"mean of the paper's {len(of_paper)}", "paper, same parts", *settings]  # fmt: skip
    for line in lines:
        system = SYSTEMS.get(line["row"], line["row"]).replace("(o.g.)", "(og)")
        yield [
            line["row"],
            _tenth(line["mean of the parts"]),
            _tenth(line["dev, sentences"] or line["stsb dev"]),
            _tenth(line["dev, sentences and log"]) if line["pairs"] else "–",
            _tenth(sum(float(line[name]) for name in of_paper) / len(of_paper)),
            _tenth(mean_over(numbers, of_paper, system)),
            *(line[name] or "–" for name in settings),
        ]


def _pairs_by_part(tables):
    lines = tables["pairs"]
    yield ["part", *(line["row"] for line in lines)]
    for name in _measured_parts(lines):
        yield [_part(name), *(_tenth(line[name]) for line in lines)]


def _theory(name, left=1):
    return (name,), lambda tables: _as_rows(tables[name]), left


# Section: the CSV files that it needs, its rows, and the columns that are flush left.
SECTIONS = {
    "summary": (("ranking", "own-vectors"), _summary, 1),
    "ranking": (("ranking",), _ranking, 1),
    "ranking-settings": (("ranking",), lambda tables: _chosen(tables["ranking"]), 9),
    "own-vectors": (("own-vectors",), lambda tables: _figures(tables["own-vectors"]), 1),
    "own-vectors-settings": (("own-vectors",), lambda tables: _chosen(tables["own-vectors"]), 9),
    "claims": ((), lambda tables: claim_rows(judged(CLAIMS, tables)), len(COLUMNS)),
    "rules": ((), lambda tables: rule_rows(judged(CLAIMS, tables), tables), 8),
    "similarity": (("similarity",), _similarity, 1),
    "wrong-means": ((), _wrong_means, 2),
    "printed-means": (("similarity",), _printed_means, 1),
    "reference": (("similarity",), _reference, 1),
    "model": (("model",), _model, 1),
    "variants": (("variants",), lambda tables: _means(tables["variants"], ["row"]), 1),
    "splitting": (
        ("splitting",),
        lambda tables: _means(tables["splitting"], ["split", "row"]),
        2,
    ),
    "sweep": (("sweep", "similarity"), _sweep, 2),
    "sources": (("sources",), _sources, 3),
    "component": (("component",), _component, 3),
    "features": (("supervised",), _features, 1),
    "tried-a": (("supervised",), _tried_a, 1),
    "word-order": (("supervised",), _word_order, 1),
    "pairs": (("pairs",), _pairs, 1),
    "pairs-by-part": (("pairs",), _pairs_by_part, 1),
    "word2vec-weights": _theory("theory-word2vec-weights"),
    "simulated": _theory("theory-simulated"),
    "maximum": _theory("theory-maximum"),
    "partition-function": _theory("theory-partition-function"),
    "with-c0": _theory("theory-with-c0"),
    "misprints": _theory("theory-misprints", 4),
    "loose-steps": _theory("theory-loose-steps", 4),
}
