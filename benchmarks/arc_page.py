"""docs/arc.md as text, from the tables in docs/results/arc alone."""

import csv
import re
import textwrap
from pathlib import Path
from statistics import mean, stdev

from arc_claims import NAMES, judged, means
from arc_lab import MODELS, TRAINING
from arc_parts import (
    FIXED,
    LABELLED_TRAINING,
    LEARNED,
    OWN,
    PARAPHRASE,
    REFERENCE,
    SIZES,
)

from sentemb.system.tables import markdown_table

PRINTED = Path(__file__).with_name("arc_printed.csv")
KINDS = (FIXED, LEARNED)
# A difference with a smaller p-value, after Holm's correction, is one.
_LEVEL = 0.05
# The bars that were set for dev P@1 after an epoch, and for test at the end.
BARS = {("arc1", 2): 0.40, ("arc1", 4): 0.45, ("arc2", 2): 0.41, ("arc2", 4): 0.47}
_COMMANDS = """\
sentemb train pairs.tsv --dev dev --model arc2 --vectors vectors.txt.gz -o model
sentemb score model "cheap flights" "Low-cost air travel" "Cheap shoes"
sentemb evaluate model test"""
_PYTHON = """\
import sentemb

model = sentemb.train("pairs.tsv", model="arc2", dev="dev", vectors="vectors.txt.gz")
model.score("cheap flights", ["Low-cost air travel", "Cheap shoes"])"""


def page_of(tables):
    """The page; a section whose tables are missing is left out."""
    sections = [
        section(tables) for needs, section in SECTIONS if all(tables.get(name) for name in needs)
    ]
    return "\n\n".join([_head(), _summary(tables), _contents(sections), *sections]) + "\n"


def printed(table):
    """{(system, measure): number of the paper} of one of its tables."""
    with open(PRINTED, encoding="utf-8", newline="") as lines:
        return {
            (line["system"], line["measure"]): float(line["value"])
            for line in csv.DictReader(lines)
            if int(line["table"]) == table
        }


def _contents(sections):
    """Links to the sections; GitHub makes the anchors."""
    headings = re.findall(r"^## (.+)$", "\n".join(sections), re.M)
    anchors = [re.sub(r"[^\w-]", "", one.lower().replace(" ", "-")) for one in headings]
    links = (f"- [{one}](#{anchor})" for one, anchor in zip(headings, anchors, strict=True))
    return "\n".join(["## Contents", "", *links])


def _fill(text):
    """A paragraph in lines of at most 108 letters."""
    return textwrap.fill(" ".join(text.split()), 108, break_on_hyphens=False)


def _point(text):
    return textwrap.fill(" ".join(text.split()), 108, initial_indent="- ", subsequent_indent="  ",
                         break_on_hyphens=False)  # fmt: skip


def _table(rows, left=1):
    return "\n".join(markdown_table(rows, left))


def _listed(names, word=" and"):
    return f"{', '.join(names[:-1])}{word} {names[-1]}" if len(names) > 1 else "".join(names)


def _head():
    return "\n\n".join([
        "# Pair models: ARC-I and ARC-II",
        _fill("""A pair model reads a query and a title together and answers with a score. ARC-I and
            ARC-II are from Hu, Lu, Li and Chen, *Convolutional neural network architectures for
            matching natural language sentences* (NIPS 2014). ARC-I makes a vector of each text by
            convolution and pooling; an MLP reads both vectors. ARC-II begins with a plane of cells,
            one for each window of the query and each window of the title, so that the texts meet
            before either is summed up. The package also has the paper's competitors: WordEmbed,
            SENNA+MLP, SenMLP, DeepMatch and uRAE+MLP."""),
        f"```sh\n{_COMMANDS}\n```",
        f"```python\n{_PYTHON}\n```",
    ])  # fmt: skip


# -- in short -------------------------------------------------------------------------------------


def _summary(tables):
    """Which model to use, the strongest first."""
    parts = ["## In short"]
    for name, title in (("completion", "sentence completion"), ("response", "responses")):
        if tables.get(name):
            parts.append(_ranking_point(tables, name, title))
    if tables.get("labelled"):
        parts.append(_labelled_point(tables))
    ranked = """**To rank thousands of titles, use two towers** (`sentemb train`): they compute each
        text once, and a pair model computes each pair. A pair model is for a few titles per query:
        labelled pairs, or the best titles of another ranker (`sentemb rank --candidates`)."""
    parts.append(_point(ranked))
    return parts[0] + "\n\n" + "\n".join(parts[1:])


def _ranking_point(tables, name, title):
    found = _ordered(tables[name], "test")
    (best, share), *rest = found.items()
    listed = _listed([f"{label} {_p(own)}" for label, own in rest])
    text = f"**On {title} the best is {best}**: P@1 {_p(share)} of 100, chance 20. Then: {listed}."
    if "similar" in tables[name][0]:
        similar = [f"{label} {_p(own)}" for label, own in _ordered(tables[name], "similar").items()]
        text += f" With similar negatives the first three are {_listed(similar[:3])}."
    return _point(text)


def _ordered(lines, column):
    """{model and its word vectors: mean over seeds}, best first."""
    found = {}
    for line in lines:
        own = line["vectors"] == OWN
        label = NAMES[line["model"]] + ("" if own else f" ({line['vectors']} vectors)")
        found.setdefault(label, []).append(float(line[column]))
    shares = {label: mean(values) for label, values in found.items()}
    return {label: shares[label] for label in sorted(shares, key=lambda one: -shares[one])}


def _labelled_point(tables):
    lines = [line for line in tables["labelled"] if line["set"] == "sick"]
    found = {
        model: mean(float(line["accuracy"]) for line in own) for model, own in chosen(lines).items()
    }
    order = sorted(found, key=lambda model: -found[model])
    listed = [f"{NAMES[model]} {_p(found[model])}" for model in order]
    return _point(f"""**On labelled pairs** (SICK), accuracy in per cent: {_listed(listed)}.""")


def _p(share, digits=1):
    """A share in per cent."""
    return f"{100 * float(share):.{digits}f}"


def _spread(values):
    """Mean and, from two seeds on, standard deviation, in per cent."""
    shares = [100 * float(value) for value in values]
    return f"{mean(shares):.1f}" + (f" ± {stdev(shares):.1f}" if len(shares) > 1 else "")


# -- how it is measured ---------------------------------------------------------------------------


def _method(tables):
    sizes = "; ".join(
        f"{NAMES[model]} {', '.join(map(str, own['maps']))}"
        for model, own in MODELS.items()
        if "maps" in own
    )
    own = TRAINING
    return "\n\n".join([
        "## How it is measured",
        _fill("""`make arc` (`benchmarks/arc.py`) measures what follows and writes this page; the
            numbers are in [results/arc/](results/arc) as CSV. It trains for many hours, one
            training after another. A training that was stopped continues, and a finished one is not
            repeated. Rows with fewer than three seeds, and parts that this page does not have yet,
            are those that it trains next."""),
        _fill(f"""All pair models but DeepMatch read word vectors of 50 numbers, made from these
            texts and others; DeepMatch reads topics of the training pairs. *Vectors fixed* is as in
            the paper. *Vectors trained*
            starts from the same vectors and trains them too, which the paper says can improve all
            models further. There is no dropout. Windows have 3 words, the MLP one hidden layer of
            200 units (DeepMatch two), the feature maps are {sizes}. The loss is the hinge of the
            paper with margin 1 and {own['n_negatives']} random negatives per pair, the optimiser
            Adam with a learning rate of {own['learning_rate']} that falls linearly to zero over
            {own['epochs']} epochs, and the mini-batch {own['batch_size']} triples. The epoch with
            the best dev P@1 is kept; training stops after {own['patience']} epochs without a better
            one. These settings are the same for all pair models and were chosen on dev."""),
        _fill("""The paper trains on 3 million triples (Table 1) and 45 million (Table 2) with 200
            to 500 maps. Here there are 41,942 and 30,344 pairs, and smaller models. Its numbers
            show an order of systems, not a target: its texts, its negatives and its word vectors
            are different ones."""),
        _fill("""The two towers (`sentemb train`, models `lstm` and `bag`) learn from the same pairs
            with their own features, letter trigrams and frequent words, and without hard
            negatives."""),
    ])  # fmt: skip


# -- Tables 1 and 2 -------------------------------------------------------------------------------


def _ranked(tables, name, number, heading, text, columns):
    """The section of a ranking task."""
    told = printed(number)
    heads = [f"{what}, vectors {vectors}" for vectors in KINDS for what in columns.values()]
    rows = [["model", "seeds (fixed / trained)", *heads, f"Table {number} of the paper"]]
    rows.append([NAMES["random"], "", *["20.0"] * len(heads), f"{told['random', 'P@1']:.2f}"])
    found = {}
    for line in tables[name]:
        found.setdefault(line["model"], []).append(line)
    best = {model: max(float(line["test"]) for line in own) for model, own in found.items()}
    for model in sorted(found, key=best.__getitem__):
        cells, seeds = [], []
        for vectors in KINDS:
            own = [line for line in found[model] if line["vectors"] in (vectors, OWN)]
            seeds.append(str(len(own)))
            cells += [_spread([line[column] for line in own]) if own else "–" for column in columns]
        if found[model][0]["vectors"] == OWN:
            cells[: len(columns)], seeds = ["–"] * len(columns), seeds[1:]
        paper = f"{told[model, 'P@1']:.2f}" if (model, "P@1") in told else "–"
        rows.append([NAMES[model], " / ".join(dict.fromkeys(seeds)), *cells, paper])
    return [f"## {heading}", _fill(text), _table(rows), *_differences(tables, name)]


def _differences(tables, name):
    """What the paired comparisons with ARC-II say."""
    said = []
    for vectors in KINDS:
        for part, what in (("test", "random negatives"), ("test_hard", "similar negatives")):
            lines = [
                line
                for line in tables.get("differences", ())
                if (line["set"], line["vectors"], line["part"]) == (name, vectors, part)
            ]
            if lines:
                said.append(_compared(lines, f"Word vectors {vectors}, {what}"))
    if not said:
        return []
    return [
        _fill(f"""The list says what {NAMES[REFERENCE]} is ahead of and behind, with the points of
            P@1 that it is ahead and their 95 % interval over the test queries, which leaves out the
            spread over seeds. The two towers and DeepMatch, which read no word vectors, are in both
            comparisons. The test is the paired randomisation test, corrected by Holm
            ({100 * _LEVEL:.0f} % level)."""),
        "\n".join(said),
    ]  # fmt: skip


def _compared(lines, what):
    ahead, behind, level = [], [], []
    for line in sorted(lines, key=lambda one: float(one["difference"])):
        gap, low, high = (-float(line[name]) for name in ("difference", "high", "low"))
        cell = f"{NAMES[line['system']]} {_signed(gap)} ({_signed(low)} to {_signed(high)})"
        group = level if float(line["p"]) >= _LEVEL else ahead if gap > 0 else behind
        group.append(cell)
    groups = (("ahead of", ahead), ("behind", behind), ("not separated from", level))
    found = "; ".join(f"{text} {_listed(group)}" for text, group in groups if group)
    return _point(f"{what}: {found}.")


def _signed(share):
    return f"{100 * share:+.1f}".replace("+-", "-")


def _completion(tables):
    columns = {"test": "random negatives", "similar": "similar negatives"}
    text = """P@1 in per cent, mean and standard deviation over seeds. A query is the first clause
        of a sentence, its titles are the right second clause and 4 others: random ones, or the 4
        most similar of 2,000 random clauses below a cosine of 0.8. All models are trained with
        random negatives; the paper trains and tests with similar ones and says that ARC-II reaches
        "74+" with random ones. 4,000 test queries."""
    section = _ranked(tables, "completion", 1, "Table 1: sentence completion", text, columns)
    section.append("![Dev P@1 after each epoch](figures/arc-epochs.png)")
    return "\n\n".join([*section, _acceptance(tables)])


def _acceptance(tables):
    """Dev after some epochs, one row per training, and what was asked for."""
    heads = "dev after 2 epochs", "after 4", "best", "training loss then"
    rows = [["model", "vectors", "seed", "epoch kept", *heads]]
    missed = []
    shown = ("arc1", "arc2", "senna", "wordembed")
    lines = [line for line in tables["completion"] if line["model"] in shown]
    for line in sorted(lines, key=lambda one: (one["vectors"], one["model"], one["seed"])):
        dev = list(map(float, line["dev"].split()))
        cells = []
        for epoch in (2, 4):
            bar = BARS.get((line["model"], epoch))
            cells.append(_p(dev[epoch - 1]) if len(dev) >= epoch else "–")
            if bar and line["vectors"] == FIXED and len(dev) >= epoch and dev[epoch - 1] < bar:
                missed.append(f"{NAMES[line['model']]} seed {line['seed']}, epoch {epoch}")
        names = NAMES[line["model"]], line["vectors"], line["seed"], line["kept"]
        loss = line["loss"].split()[int(line["kept"]) - 1]
        rows.append([*names, *cells, _p(max(dev)), f"{float(loss):.3f}"])
    bars = "; ".join(
        f"{NAMES[model]} after {epoch} epochs at least {_p(bar, 0)}"
        for (model, epoch), bar in BARS.items()
    )
    verdict = f"Missed: {_listed(missed)}." if missed else "All trainings pass."
    said = [f"Bars with fixed vectors: {bars}. {verdict}"]
    for vectors in KINDS:
        found = means([one for one in lines if one["vectors"] == vectors], "test")
        if "arc2" not in found:
            continue
        ahead, behind = [], []
        for model in ("arc1", "wordembed"):
            if model in found:
                (ahead if found["arc2"] > found[model] else behind).append(NAMES[model])
        text = f"With {vectors} vectors ARC-II reaches {_p(found['arc2'])} on test"
        text += f", ahead of {_listed(ahead)}" if ahead else ""
        text += f", behind {_listed(behind)}" if behind else ""
        said.append(f"{text}; the bar is 55, ahead of both.")
        said.append(_why(lines, vectors))
    return "\n\n".join(["### Progress on dev", _table(rows, left=3), _fill(" ".join(said))])


def _why(lines, vectors):
    """Training loss and dev of ARC-II and of the systems that are ahead of it."""
    found = {}
    for line in lines:
        if (line["vectors"], line["seed"]) == (vectors, "0"):
            place = int(line["kept"]) - 1
            found[line["model"]] = [float(line[x].split()[place]) for x in ("loss", "dev")]
    if "arc2" not in found:
        return ""
    loss, dev = found.pop("arc2")
    ahead = {model: own for model, own in found.items() if own[1] > dev}
    looser = [model for model, own in ahead.items() if own[0] > loss]
    closer = [model for model in ahead if model not in looser]
    said = [f"Its training loss is {loss:.3f} with a dev P@1 of {_p(dev)}."]
    for models, text in (
        (looser, "fits the training pairs less closely and is better on dev"),
        (closer, "fits the training pairs more closely and is better on dev"),
    ):
        said += [
            f"{NAMES[model]} {text} ({ahead[model][0]:.3f} and {_p(ahead[model][1])})."
            for model in models
        ]
    return " ".join(said)


def _response(tables):
    text = """P@1 in per cent. A query is a turn of a conversation, its titles are the next turn and
        4 random ones; 5,000 test queries. The paper uses posts of Weibo."""
    section = _ranked(tables, "response", 2, "Table 2: responses", text, {"test": "P@1"})
    return "\n\n".join(section)


# -- Table 3 --------------------------------------------------------------------------------------

_SETS = {"sick": "SICK", "msrp": "the paraphrase corpus (MSRP)"}


def chosen(lines):
    """{model: its rows with the vectors and the dropout that are best on dev}."""
    found, best = {}, {}
    for line in lines:
        settings = line["vectors"], line["dropout"]
        found.setdefault(line["model"], {}).setdefault(settings, []).append(line)
    for model, own in found.items():
        best[model] = max(own.values(), key=lambda some: mean(map(_best_dev, some)))
    return best


def _best_dev(line):
    return max(map(float, line["dev"].split()), default=0.0)


def _labelled(tables):
    told = printed(3)
    sections = [
        "## Table 3: labelled pairs",
        _fill(f"""The loss is the logistic loss of the score, so a score above 0 means label 1. The
            best of at most {LABELLED_TRAINING["epochs"]} epochs on dev counts. Dropout (0 or 0.5)
            and whether the word vectors are trained are chosen on dev for each model. In SICK a
            pair with a relatedness of at least {PARAPHRASE:g} of 5 has label 1. The paper measures
            MSRP, whose licence does not allow it to be included; `make arc MSRP=folder` measures it
            from its published files, with the last 500 training pairs as dev. The interval is
            Wilson's (95 %), of the first seed."""),
    ]  # fmt: skip
    for name in dict.fromkeys(line["set"] for line in tables["labelled"]):
        lines = [line for line in tables["labelled"] if line["set"] == name]
        heads = "accuracy", "interval", "F1", "MSRP in the paper: accuracy", "F1"
        rows = [["model", "vectors", "dropout", "seeds", *heads]]
        best = chosen(lines)
        order = {model: mean(float(x["accuracy"]) for x in own) for model, own in best.items()}
        for model in sorted(best, key=order.__getitem__):
            own = best[model]
            first = own[0]
            cells = first["vectors"], first["dropout"], str(len(own)) if first["seed"] else ""
            measured = [
                _spread([line["accuracy"] for line in own]),
                f"{_p(first['low'])} to {_p(first['high'])}",
                _spread([line["f1"] for line in own]) if first["f1"] != "nan" else "–",
            ]
            paper = [
                f"{told[model, measure]:{form}}" if (model, measure) in told else "–"
                for measure, form in (("accuracy", ".1f"), ("F1", ".2f"))
            ]
            rows.append([NAMES[model], *cells, *measured, *paper])
        n_pairs = int(lines[0]["pairs"])
        sections += [f"On {_SETS[name]}, {n_pairs:,} test pairs:", _table(rows, left=3)]
    return "\n\n".join(sections)


# -- claims ---------------------------------------------------------------------------------------


def _claims(tables):
    rows = [["claim", "what the paper says", "verdict", "measured"]]
    rows += [
        [claim.key, claim.text, f"**{verdict}**", why] for claim, verdict, why in judged(tables)
    ]
    return "\n\n".join([
        "## What the paper claims",
        _fill("""The verdicts follow from the numbers by the rules in `benchmarks/arc_claims.py`;
            they hold for these data sets and sizes. The numbers of the claims are this page's
            own."""),
        _table(rows, left=4),
    ])  # fmt: skip


# -- the rest -------------------------------------------------------------------------------------


def _variants(tables):
    lines = tables["variants"]
    models = dict.fromkeys(line["model"] for line in lines)
    rows = [["variant", *(NAMES[model] for model in models)]]
    for variant in dict.fromkeys(line["variant"] for line in lines):
        cells = []
        for model in models:
            own = [x for x in lines if (x["variant"], x["model"]) == (variant, model)]
            best = max((max(map(float, x["dev"].split())) for x in own), default=None)
            cells.append("–" if best is None else _p(best))
        rows.append([variant, *cells])
    return "\n\n".join([
        "## What was tried on dev",
        _fill("""Best dev P@1 in per cent on completion, seed 0. The standard error of 2,000 queries
            is 1.1 points. A dash means that it was not trained."""),
        _table(rows),
    ])  # fmt: skip


def _learning(tables):
    lines = tables["learning"]
    models = dict.fromkeys(line["model"] for line in lines)
    rows = [["pairs", *(NAMES[model] for model in models)]]
    for size in sorted({int(line["pairs"]) for line in lines}):
        cells = []
        for model in models:
            own = [x for x in lines if (int(x["pairs"]), x["model"]) == (size, model)]
            cells.append(_p(own[0]["test"]) if own else "–")
        rows.append([f"{size:,}", *cells])
    return "\n\n".join([
        "## More data",
        _fill(f"""Test P@1 in per cent on completion with random negatives, seed 0, by the number of
            training pairs; with fewer pairs there are more epochs, at most 20. The smallest part
            has {SIZES[0]:,} pairs."""),
        _table(rows),
        "![Test P@1 by training pairs](figures/arc-pairs.png)",
    ])  # fmt: skip


_MISPRINTS = (
    ("equation (1), matrix form",
     "W has the row vectors w of all maps next to each other, one long row",
     "stacked: one row per map"),
    ("equation (5)", "W^(3,f) in the formula of one map", "a row w^(3,f)"),
    ("equation (6)", "all maps W^(l) with the bias of one", "b^(l)"),
    ("section 3.3", "w^(2,f) of the second convolution", "layer 2 is pooling: w^(3,f)"),
    ("section 3.3", "n windows on both sides", "each text has its own number"),
    ("Table 2", "54,31", "54.31"),
    ("section 5.1", "a SIM variant of SENNA", "not reported anywhere"),
)  # fmt: skip
_CHOICES = (
    ("When is a cell of layer 1 on?",
     "Equation (3) to the letter: if either window has a word (`gate` printed). Default: if both "
     "begin at a word (and). Only then padding leaves nothing and ARC-II contains ARC-I."),
    ("Does the gate look at values or at places?",
     "At places. A word without a vector is a word; values could be zero by chance."),
    ("Which windows are there?", "L − 2 of 3 words. In a text of n words min(n, L − 2) are on."),
    ("Pooling an odd number of cells", "The last cell is its own maximum."),
    ("Are the two sides of ARC-I tied?", "No; `shared_towers` ties them."),
    ("Two layers for the MLP", "One hidden layer and the linear output; `mlp_layers`."),
    ("Loss for labelled pairs", "Logistic; the paper does not say."),
    ("Initial weights", "He's, biases 0. Smaller ones hardly train."),
    ("Early stopping in Table 3", "On a dev set; the paper reads as if it were on test."),
    ("uRAE and DeepMatch", "A chain instead of a parse tree, and PLSA instead of LDA; see the "
     "docstrings of `sentemb.models.pairs.urae` and `sentemb.models.pairs.deepmatch`."),
)  # fmt: skip


def _misprints(_):
    return "\n\n".join([
        "## Misprints",
        _table([["place", "as printed", "as computed here"], *map(list, _MISPRINTS)], left=3),
        "## What the paper leaves open",
        _table([["question", "choice"], *map(list, _CHOICES)], left=2),
    ])  # fmt: skip


_IDENTITY = """ReLU rises, and with the gate `and` the cells of a block that are on are all pairs of
its windows that begin at a word. So over these

    max relu(u_i + v_j + b) = relu(max u_i + max v_j + b),

where u_i and v_j are the parts of layer 1 that belong to window i of the query and window j of the
title. Layers 1 and 2 of ARC-II are therefore computed per text; the plane of layer 1 is never
made. The first layers of a title are computed once for all queries it is ranked for."""


def _identity(_):
    return "\n\n".join(["## Why layer 1 costs little",
                        *(part if part.startswith("    ") else _fill(part)
                          for part in _IDENTITY.split("\n\n"))])  # fmt: skip


SECTIONS = (
    (("completion",), _method),
    (("completion",), _completion),
    (("response",), _response),
    (("labelled",), _labelled),
    (("constructions",), _claims),
    (("learning",), _learning),
    (("variants",), _variants),
    ((), _identity),
    ((), _misprints),
)
