"""docs/sif.md as text, from the tables in docs/results/sif alone."""

import csv
import re
import textwrap
from collections import Counter
from pathlib import Path

from pages import read_csv
from sif_claims import judged, main_vectors, parts_of, supervised_means, widest_vectors
from sif_lab import CHOICES_OF_A, OTHERS, SOURCE_NAMES, YEARS, group_means
from sif_printed import MEAN, SYSTEMS, mean_over, printed, tasks_of, wrong_means

from sentemb.system.tables import markdown_table

REFERENCE = Path(__file__).with_name("sif_reference.csv")
# An independent computation is reproduced if no mean is further away than this.
TOLERANCE = 0.2
_PAPER_GROUPS = (*YEARS[:4], "sick test")
# A difference with a smaller p-value is one.
_LEVEL = 0.05
_COMMANDS = """\
sentemb vectors convert glove.6B.100d.txt -o vectors     # or any file of word vectors
sentemb sif vectors titles.txt -o model               # your titles, one per line
sentemb score model "cheap flights" "Low-cost air travel" "Cheap shoes\""""
_PYTHON = """\
from sentemb import SIF

model = SIF("vectors").fit(queries, titles)           # lists of str
model.score("cheap flights", ["Low-cost air travel", "Cheap shoes"])"""


def page_of(tables):
    """The page; a section whose tables are missing is left out."""
    sections = [
        section(tables) for needs, section in SECTIONS if all(name in tables for name in needs)
    ]
    return "\n\n".join([_head(), _summary(tables), _contents(sections), *sections]) + "\n"


def _contents(sections):
    """Links to the sections; GitHub makes the anchors."""
    headings = re.findall(r"^## (.+)$", "\n".join(sections), re.M)
    anchors = [re.sub(r"[^\w-]", "", one.lower().replace(" ", "-")) for one in headings]
    links = (f"- [{one}](#{anchor})" for one, anchor in zip(headings, anchors, strict=True))
    return "\n".join(["## Contents", "", *links])


def _fill(text):
    """A paragraph in lines of at most 108 letters."""
    return textwrap.fill(" ".join(text.split()), 108, break_on_hyphens=False)


def _table(rows, left=1):
    return "\n".join(markdown_table(rows, left))


def _as_printed(value):
    """A number of the paper, which prints one digit behind the point, or two."""
    return f"{value:.1f}" if round(value, 1) == value else f"{value:.2f}"


def _tenth(value):
    return f"{value:.1f}"


def _label(group):
    """A year or set as the page names it."""
    if group in YEARS:
        return f"STS'{group[2:]}"
    return {"sick test": "SICK", "stsb dev": "STS-B dev", "stsb test": "STS-B test"}[group]


def _head():
    return "\n\n".join([
        "# SIF: sentence vectors from word vectors",
        _fill("""SIF (Arora, Liang and Ma, *A simple but tough-to-beat baseline for sentence
            embeddings*, ICLR 2017) makes sentence vectors from word vectors without training. A
            sentence vector is the average of its words' vectors, each weighted by a / (a + p(w)),
            where p(w) is the probability of the word w (W). Then the first singular vector u of all
            sentence vectors, their common component, is removed from each (R). Algorithm 1 of the
            paper does both (WR)."""),
        f"```sh\n{_COMMANDS}\n```",
        f"```python\n{_PYTHON}\n```",
    ])  # fmt: skip


def _summary(tables):
    """When to use SIF, what it reaches, and what to do next."""
    parts = [part(tables) for needs, part in (
        (("ranking", "own-vectors"), _summary_of_ranking),
        (("variants", "splitting", "ranking"), _summary_of_similarity),
    ) if all(name in tables for name in needs)]  # fmt: skip
    return "\n\n".join(["## In short", *parts])


def _point(text):
    return textwrap.fill(" ".join(text.split()), 108, initial_indent="- ", subsequent_indent="  ",
                         break_on_hyphens=False)  # fmt: skip


def _summary_of_ranking(tables):
    found, sets = _ranked(tables["ranking"])
    own, with_log = _ranked(tables["own-vectors"])
    trained = {name: _trained(name) for name in sets}
    both = "bm25-stem + λ cos"
    general = {name: found[name, "WR"] for name in sets}
    logged = {name: own[name, "WR"] for name in with_log}
    lstm = {name: line for name, line in trained.items() if line}
    shown = {
        "BM25": {name: found[name, "bm25-stem"] for name in sets},
        "SIF of general word vectors": general,
        "BM25 plus SIF": {name: found[name, both] for name in sets},
        "SIF of word vectors trained on the log": logged,
        "LSTM trained on the log": lstm,
    }
    rows = [["test NDCG@1", *sets]]
    rows += [
        [row, *(lines[name]["NDCG@1"] if name in lines else "–" for name in sets)]
        for row, lines in shown.items()
    ]
    return "\n\n".join([
        _point(f"""**Before the first click, add SIF to BM25** (`sentemb sif`). Tested per query,
            the sum (λ chosen on dev) is
            {_compared(found, sets, both, "bm25-stem", "BM25 alone")}. SIF alone is
            {_compared(found, sets, "WR", "bm25-stem", "BM25")}.""")
        + "\n"
        + _point(f"""**Once there is a log, train.** Word vectors trained on the log (`sentemb
            vectors train`) change the NDCG@1 of SIF by {_changes(general, logged)}. A model trained
            on the clicks (`sentemb train`) changes it by another {_changes(logged, lstm)}."""),
        _table(rows),
    ])  # fmt: skip


def _changes(before, after):
    """The span of the differences of NDCG@1 over the sets that both have."""
    changes = sorted(
        float(after[name]["NDCG@1"]) - float(before[name]["NDCG@1"])
        for name in before.keys() & after.keys()
    )
    return f"{changes[0]:+.3f} to {changes[-1]:+.3f}"


def _summary_of_similarity(tables):
    years = {line["row"]: _mean_of_years(line) for line in tables["variants"]}
    gaps, _ = _lost_at_white_space(tables)
    found, sets = _ranked(tables["ranking"])
    chosen = sorted({found[name, "WR"]["settings"].removeprefix("a ") for name in sets})
    return "\n".join([
        _point(f"""**To compare sentences, use SIF, not the plain average.** Over STS'12 to '16 the
            mean of Pearson's r × 100 is {years["avg"]:.1f} for the plain average,
            {years["tf-idf"]:.1f} for tf-idf and {years["WR"]:.1f} for SIF. Word counts are not
            needed: with p(w) from the rank of a word among the vectors it is
            {years["WR, p by rank"]:.1f}."""),
        _point(f"""**Drop punctuation, and choose a on dev.** This package drops punctuation;
            splitting at white space alone costs SIF {gaps["WR"]:.1f} points. The default is a =
            0.001; for ranking, dev chose {_listed(chosen, " or")}."""),
    ])  # fmt: skip


# -- how it is measured ---------------------------------------------------------------------------


def _method(tables):
    return "\n\n".join([
        "## How it is measured",
        _fill(f"""`make sif` (`benchmarks/sif.py`) measures what follows and writes this page; the
            numbers are in [results/sif/](results/sif) as CSV. {_origin(tables)} The paper uses
            GloVe 840B with 300 dimensions. Unless a table says otherwise, words are lower-cased
            runs of letters and digits, a = 1e-3, p(w) is from word counts of Wikipedia, and the
            first singular vector of each set's own sentences is removed, as in the paper.
            Similarity results are Pearson's r × 100, ranking results NDCG."""),
        _fill("""The rows: *avg* is the plain average, *tf-idf* the average weighted by idf, *W* the
            average with the weights of SIF, *R* the plain average with the component removed, and
            *WR* is SIF. *Per side* removes one component from the first sentences (or queries) and
            another from the second (or titles)."""),
        _fill("""Once u is fixed, a sentence vector is the sum of weight(w) · (I − u uᵀ) · v(w) over
            its words, divided by their number, which does not change the cosine. So a SIF model is
            a linear `bag` whose table has one such product per word. It is saved, loaded, evaluated
            and compared like a trained model."""),
    ])  # fmt: skip


def _is_glove(tables):
    return main_vectors(tables) == "100d"


def _origin(tables):
    """Which word vectors these are."""
    if not _is_glove(tables):
        return f"The word vectors are {main_vectors(tables)}."
    return (
        "The word vectors are GloVe 6B (PDDL 1.0), taken from two public packages. 50d has all "
        '400,000 words; 100d lacks digits and some words such as "a" and "i"; 150d is the '
        "concatenation of both."
    )


# -- claims ---------------------------------------------------------------------------------------


def _claims(tables):
    rows = [["claim", "what the paper says", "verdict", "measured"]]
    rows += [
        [claim.key, claim.text, f"**{verdict}**", why] for claim, verdict, why in judged(tables)
    ]
    return "\n\n".join([
        "## What the paper claims",
        _fill("""The verdicts follow from the numbers by the rules in `benchmarks/sif_claims.py`.
            They hold for these word vectors and these data sets. C1 to C13 are this page's own
            numbers."""),
        _table(rows, left=4),
    ])  # fmt: skip


# -- Tables 1, 5, 6 -------------------------------------------------------------------------------


def _similarity(tables):
    vectors = list(dict.fromkeys(line["vectors"] for line in tables["similarity"]))
    shown = [name for name in vectors if name != "150d"]
    ours = {(name, row): parts_of(tables, name, row) for name in shown for row in SYSTEMS}
    numbers = printed(5, 6)
    parts = list(next(iter(ours.values())))
    rows = [["part", *SYSTEMS]]
    groups = {}
    for part in parts:
        group = part.split()[0] if part.split()[0] in YEARS else part
        groups.setdefault(group, []).append(part)
    for group, members in groups.items():
        rows += [
            _similarity_row(_part(part), part, [part], ours, numbers, shown) for part in members
        ]
        if len(members) > 1:
            name = f"**{_label(group)}, mean of {len(members)}**"
            rows.append(_similarity_row(name, group, members, ours, numbers, shown))
    left_out = [
        task
        for task in dict.fromkeys(task for task, _ in numbers)
        if not task.endswith(MEAN) and task not in parts
    ]
    return "\n\n".join([
        "## Tables 1, 5 and 6: similarity of sentences",
        _fill(f"""Each cell: {', '.join(shown)}, and the paper's number for GloVe 840B 300d as
            printed. Means, the paper's too, are over the parts measured here.
            {_listed(list(map(_part, left_out)))} are left out because their licences do not permit
            it. STS-B is used without its pairs from MSRpar and MSRvid, for the same reason. tf-idf
            uses equation 7; its documents are the sentences of STS'12 to '15 and SICK. A dash means
            that the paper has no number."""),
        _table(rows),
    ])  # fmt: skip


def _similarity_row(name, key, members, ours, numbers, shown):
    cells = []
    for row, system in SYSTEMS.items():
        values = [
            _tenth(sum(ours[vectors, row][part] for part in members) / len(members))
            for vectors in shown
        ]
        known = all((part, system) in numbers for part in members)
        values.append(_tenth(mean_over(numbers, members, system)) if known else "–")
        cells.append(" / ".join(values))
    bold = key in YEARS
    return [name, *(f"**{cell}**" if bold else cell for cell in cells)]


def _part(part):
    year, name = part.split()
    if year in YEARS:
        return f"{_label(year)} {name}"
    return {"sick": "SICK", "stsb": "STS-B", "twitter": "Twitter'15"}[year] + f" {name}"


def _listed(names, word=" and"):
    return f"{', '.join(names[:-1])}{word} {names[-1]}" if len(names) > 1 else "".join(names)


def _printed_means(tables):
    numbers = printed(5, 6)
    wrong = wrong_means(numbers)
    rows = [["year", "system", "printed mean", "mean of the printed rows"]]
    rows += [[_label(year), system, _tenth(told), _tenth(own)] for year, system, told, own in wrong]
    checked = len(YEARS[:4]) * len({system for _, system in numbers})
    system_means = _means_without(numbers, tables)
    return "\n\n".join([
        "### The paper's means",
        _fill(f"""The paper prints {checked} yearly means. {_number(len(wrong))} differ from the
            mean of their rows by more than rounding:"""),
        _table(rows, left=2),
        _fill("""The paper's numbers for all its systems, averaged over the parts measured
            here:"""),
        system_means,
    ])  # fmt: skip


def _number(count):
    """A count at the beginning of a sentence."""
    return {1: "One", 2: "Two", 3: "Three"}.get(count, str(count))


def _means_without(numbers, tables):
    parts = set(parts_of(tables, main_vectors(tables), "avg"))
    systems = dict.fromkeys(system for _, system in numbers)
    rows = [["system", *map(_label, YEARS[:4])]]
    for system in systems:
        cells = []
        for year in YEARS[:4]:
            members = [task for task in tasks_of(numbers, year) if task in parts]
            cells.append(_tenth(mean_over(numbers, members, system)))
        rows.append([system, *cells])
    return _table(rows)


# -- an independent computation -------------------------------------------------------------------


def _reference(tables):
    if not _is_glove(tables):
        return None
    with open(REFERENCE, encoding="utf-8", newline="") as lines:
        reference = list(csv.DictReader(lines))
    groups = [name for name in reference[0] if name != "row"]
    rows, differences = [["row", *map(_label, groups)]], []
    for line in reference:
        means = group_means(parts_of(tables, "100d", line["row"]))
        cells = []
        for group in groups:
            difference = round(means[group], 1) - float(line[group])
            differences.append(abs(difference))
            cells.append(f"{means[group]:.1f} ({difference:+.1f})")
        rows.append([line["row"], *cells])
    worst = max(differences)
    verdict = "All" if worst <= TOLERANCE + 1e-9 else (
        f"{sum(d <= TOLERANCE + 1e-9 for d in differences)} of {len(differences)}")  # fmt: skip
    return worst, "\n\n".join([
        "### The same numbers computed twice",
        _fill(f"""In brackets: the difference from a separate NumPy program that computed the same
            rows from the same vectors (100d, [numbers](../benchmarks/sif_reference.csv)). {verdict}
            are within {TOLERANCE} points. STS'12 and STS-B are not compared, because that program
            measured all of their parts."""),
        _table(rows),
    ])  # fmt: skip


def _check(tables):
    rows = [["set", "pairs", "largest difference of a score"]]
    rows += [list(line.values()) for line in tables["model"]]
    for row in rows[1:]:
        row[0] = _part(row[0])
    reference = _reference(tables)
    own = "\n\n".join([
        "### SIF as a linear bag",
        _fill("""The scores of a SIF model, a `bag` in float32, against Algorithm 1 in plain NumPy:
            float64, one sentence at a time, with the SVD of `numpy.linalg`."""),
        _table(rows),
    ])  # fmt: skip
    return own if reference is None else f"{reference[1]}\n\n{own}"


# -- variants -------------------------------------------------------------------------------------


_COLUMNS = {"split": "splitting", "source": "p(w) from", "words": "words in the corpus"}


def _means_table(lines, keys):
    """Rows of tables with means by year: the cells of ``keys``, then one for each group."""
    groups = [name for name in lines[0] if name in YEARS or name in OTHERS]
    rows = [[*(_COLUMNS.get(key, key) for key in keys), *map(_label, groups)]]
    rows += [
        [*(line[key] for key in keys), *(_tenth(float(line[name])) for name in groups)]
        for line in lines
    ]
    return _table(rows, left=len(keys))


def _mean_of_years(line):
    return sum(float(line[year]) for year in YEARS) / len(YEARS)


def _variants(tables):
    lines = {line["row"]: line for line in tables["variants"]}
    years = {row: _mean_of_years(line) for row, line in lines.items()}
    fixed = ("WR, component of STS-B train", "WR, component of the vocabulary")
    best = max(years, key=years.get)
    return "\n\n".join([
        "## Variants",
        _fill(f"""Means with {main_vectors(tables)}. All differences are on the mean of the five
            years, in points. *Per side*, as in the authors' code: {_gap(years, "WR, per side",
            "WR")} from WR. tf-idf with removal: {_gap(years, "tf-idf + R", "WR")} from WR.
            Subtracting the mean of all word vectors, which the exact derivation requires, changes W
            by {_gap(years, "W, centred by the vocabulary", "W")}, and subtracting the mean weighted
            by p by {_gap(years, "W, centred by p", "W")}. Removing the component changes W by
            {_gap(years, "WR", "W")}."""),
        _fill(f"""A model used on new texts must take its component from other texts. Taken from
            STS-B train it costs {_cost(years, fixed[0])} points (some of its sentences also occur
            in STS'13 to '16); taken from the vocabulary, {_cost(years, fixed[1])}. The best row on
            the five years is *{best}*; the number of components was not chosen on dev data."""),
        _fill("""*tf-idf of the code* uses the idf formula of the authors' program. *uSIF*
            (Ethayarajh, 2018) computes a from p(w) and removes five components, each in part.
            *p by rank* takes p(w) from Zipf's law; *unknown p* is the probability of a word without
            a count."""),
        _means_table(tables["variants"], ["row"]),
    ])  # fmt: skip


def _gap(years, row, other):
    return f"{years[row] - years[other]:+.1f}"


def _cost(years, row):
    return f"{years['WR'] - years[row]:.1f}"


def _lost_at_white_space(tables):
    """{row: points lost on the five years}, and the points that WR loses on SICK."""
    lines = {(line["split"], line["row"]): line for line in tables["splitting"]}
    gaps = {
        row: _mean_of_years(lines["words", row]) - _mean_of_years(lines["white space", row])
        for row in ("avg", "tf-idf", "W", "R", "WR")
    }
    sick = [float(lines[split, "WR"]["sick test"]) for split in ("words", "white space")]
    return gaps, sick[0] - sick[1]


def _splitting(tables):
    gaps, sick = _lost_at_white_space(tables)
    return "\n\n".join([
        "## Splitting texts into words",
        _fill(f"""How texts are split matters more than most settings of SIF. Split at white space,
            "shoes," keeps its comma and has no vector. The mean of the five years then falls by
            {_listed([f'{gap:.1f} ({row})' for row, gap in gaps.items()])} points. The authors'
            tokeniser makes each punctuation mark a word; this package drops punctuation. On SICK,
            which has hardly any punctuation, WR falls by only {sick:.1f}."""),
        _means_table(tables["splitting"], ["split", "row"]),
    ])  # fmt: skip


# -- Figure 2 and the component -------------------------------------------------------------------


def _sweep(tables):
    lines = [line for line in tables["sweep"] if line["vectors"] == main_vectors(tables)]
    years = {(line["row"], line["a"]): _mean_of_years(line) for line in lines}
    falls = {row: years[row, "0.001"] - years[row, "1"] for row in ("W", "WR")}
    return "\n\n".join([
        "## Figure 2a: the choice of a",
        "![Pearson's r by a, for three sets of word vectors](figures/sif-a.png)",
        _fill(f"""The dotted lines are the plain average. At a = 1 all weights are nearly equal.
            From a = 1e-3 to a = 1 the mean of the five years falls by {falls['W']:.1f} points for W
            and by {falls['WR']:.1f} for WR: once the component is removed, the weights matter less.
            The rows avg and R do not depend on a. All rows use {main_vectors(tables)}."""),
        _means_table([line | {"a": line["a"] or "–"} for line in lines], ["row", "a"]),
    ])  # fmt: skip


def _sources(tables):
    lines = tables["sources"]
    shown = [
        line | {"source": SOURCE_NAMES[line["source"]], "words": _thousands(line["words"])}
        for line in lines
    ]
    wr = {line["source"]: _mean_of_years(line) for line in lines if line["row"] == "WR"}
    ordered = sorted(wr, key=wr.get)
    return "\n\n".join([
        "## Figure 2b: the source of p(w)",
        "![Pearson's r by the source of p(w)](figures/sif-p.png)",
        _fill(f"""Mean of WR over the five years: {wr[ordered[-1]]:.1f} with p from
            {SOURCE_NAMES[ordered[-1]]} (the best source), {wr['enwiki']:.1f} from Wikipedia,
            {wr['rank']:.1f} from Zipf's law and the word's rank in the vector file, which needs no
            counts and is the default, and {wr[ordered[0]]:.1f} from
            {SOURCE_NAMES[ordered[0]]} (the worst). A word without a count gets the probability of
            its rank."""),
        _means_table(shown, ["source", "words", "row"]),
    ])  # fmt: skip


def _thousands(text):
    return f"{int(text):,}" if text else "–"


def _component(tables):
    rows = [["sentences", "share of the squared lengths", "nearest words"]]
    rows += [
        [_part(line["sentences"]), line["share"], line["nearest words"]]
        for line in tables["component"]
    ]
    return "\n\n".join([
        "## What the removed component is",
        _fill(f"""The words whose vectors have the largest cosine with u ({main_vectors(tables)}).
            The share is the part of the sum of squared sentence-vector lengths that lies along
            u."""),
        _table(rows, left=3),
    ])  # fmt: skip


# -- ranking --------------------------------------------------------------------------------------


def _ranked(lines):
    """{(set, row): line}, and the names of the sets."""
    return {(line["set"], line["row"]): line for line in lines}, list(
        dict.fromkeys(line["set"] for line in lines)
    )


def _ranking(tables):
    lines = tables["ranking"]
    found, sets = _ranked(lines)
    rows = [["row", *sets]]
    rows += [
        [row, *(_ndcg(found[name, row]) for name in sets)]
        for row in dict.fromkeys(line["row"] for line in lines)
    ]
    trained = {name: _trained(name) for name in sets}
    rows.append(["LSTM trained on the log (`lstm-96-hard`)", *(
        _ndcg(trained[name]) if trained[name] else "–" for name in sets
    )])  # fmt: skip
    chosen = [
        [row, *(found[name, row]["settings"] for name in sets)]
        for row in dict.fromkeys(line["row"] for line in lines)
        if found[sets[0], row]["settings"]
    ]
    return "\n\n".join([
        "## Ranking without clicks",
        "![Test NDCG@1 by set and ranker](figures/sif-ranking.png)",
        _fill(f"""Test NDCG@1 / @3 / @10 with {widest_vectors(tables)}; only the last row has
            learned from clicks. Components and idf come from the texts of the log;
            dbpedia_entity_v2 has no log, so they come from the texts being ranked. `bm25-stem` is
            BM25 with Porter stems. The row with λ adds λ times a cosine to the BM25 score."""),
        _table(rows),
        _ranking_verdict(found, sets),
        _fill("""These settings were chosen on dev by NDCG@1: a among 1e-2, 1e-3, 1e-4 and 1e-5, the
            parameters of BM25 and, for the sum, λ and the cosine to add."""),
        _table([["row", *sets], *chosen], left=1 + len(sets)),
    ])  # fmt: skip


def _ndcg(line):
    return " / ".join(line[f"NDCG@{k}"] for k in (1, 3, 10))


def _trained(name):
    path = f"table4-{name}.csv"
    return next((line for line in read_csv(path) if line["row"] == "lstm-96-hard"), None)


def _ranking_verdict(found, sets):
    return _fill(f"""NDCG@1 is tested per query with the paired randomisation test, corrected by
        Holm over the rows of a set (5 % level). WR is
        {_compared(found, sets, "WR", "avg", "the plain average")}. It is
        {_compared(found, sets, "WR", "tf-idf", "tf-idf")}. It is
        {_compared(found, sets, "WR", "bm25-stem", "BM25")}. BM25 with the cosine is
        {_compared(found, sets, "bm25-stem + λ cos", "bm25-stem", "BM25 alone")}.""")


def _compared(found, sets, row, reference, name):
    """On which sets a row is ahead, behind, or neither by the test."""
    kinds = {f"ahead of {name}": [], f"behind {name}": [], f"not separated from {name}": []}
    ahead, behind, neither = kinds.values()
    for one in sets:
        gap = float(found[one, row]["NDCG@1"]) - float(found[one, reference]["NDCG@1"])
        p = float(found[one, row][f"p against {reference}"])
        (neither if p >= _LEVEL else ahead if gap > 0 else behind).append(one)
    said = [
        f"{kind} on {_listed(names) if len(names) < len(sets) else f'all {len(sets)} sets'}"
        for kind, names in kinds.items()
        if names
    ]
    return _listed([said[0], *(one.replace(f" {name}", " it") for one in said[1:])], ", and")


def _at_the_edge(found):
    """A sentence about the choices of a that may be too large, or nothing."""
    edge = f"a {min(CHOICES_OF_A):g}"
    names = dict.fromkeys(name for (name, _), line in found.items() if edge in line["settings"])
    if not names:
        return ""
    return (
        f"On {_listed(list(names))} the smallest a was chosen at least once, so a still smaller "
        "one may be better."
    )


def _own_vectors(tables):
    found, sets = _ranked(tables["own-vectors"])
    names = dict.fromkeys(line["row"] for line in tables["own-vectors"])
    rows = [["row", *sets], *([row, *(_ndcg(found[name, row]) for name in sets)] for row in names)]
    chosen = [
        [row, *(found[name, row]["settings"] for name in sets)]
        for row in names
        if found[sets[0], row]["settings"]
    ]
    return "\n\n".join([
        "### Word vectors trained on the log",
        _fill("""`sentemb vectors train` trains word vectors on the log, each query and its clicked
            title joined into one sentence. These rows therefore do learn from clicks. Test NDCG@1 /
            @3 / @10:"""),
        _table(rows),
        _fill(f"""Both a (1e-2 to 1e-5) and the source of p(w) were chosen on dev by NDCG@1.
            *texts* are the word counts of the log, *rank* is Zipf's law. {_at_the_edge(found)}"""),
        _table([["row", *sets], *chosen], left=1 + len(sets)),
    ])  # fmt: skip


# -- supervised -----------------------------------------------------------------------------------


def _supervised(tables):
    found = supervised_means(tables)
    counts = Counter((line["task"], line["system"], line["order"]) for line in tables["supervised"])
    vectors = sorted({line["vectors"] for line in tables["supervised"]})
    tasks = [task for task in ("similarity", "entailment", "sentiment") if (
        task, "SIF", "original") in found]  # fmt: skip
    two, three = printed(2), printed(3)
    rows2 = [["task", "SIF", "paper"]]
    rows2 += [[t, _tenth(found[t, "SIF", "original"]), _as_printed(two[t, "Ours"])] for t in tasks]
    rows3 = [["task", "RNN", "RNN, paper", "LSTM", "LSTM, paper"]]
    for task in tasks:
        row = [task]
        for ours, theirs in (("rnn", "RNN"), ("lstm", "LSTM(o.g.)")):
            both = [found.get((task, ours, order)) for order in ("original", "shuffled")]
            row.append(" / ".join("–" if x is None else _tenth(x) for x in both))
            theirs = [three[task, theirs], three[task, f"{theirs} shuffled"]]
            row.append(" / ".join(map(_as_printed, theirs)))
        rows3.append(row)
    most, least = max(counts.values()), min(counts.values())
    seeds = f"{most} seeds" if most == least else f"{least} to {most} seeds"
    return "\n\n".join([
        "## Tables 2 and 3: features for classifiers, and word order",
        _fill(f"""`benchmarks/sif_supervised.py` trains the classifier of the paper's appendix: on
            fixed SIF vectors (Table 2), and jointly with an RNN or an LSTM (Table 3). Similarity is
            Pearson's r × 100 on SICK; entailment (SICK) and sentiment (SST) are accuracies in
            percent. Word vectors: {_listed(vectors)}; means over {seeds}. The paper's word vectors
            have 300 dimensions."""),
        "### Table 2",
        "SIF vectors as fixed features:",
        _table(rows2),
        "### Table 3",
        "Texts as they are / with the words of each text shuffled:",
        _table(rows3),
    ])  # fmt: skip


def _pairs(tables):
    lines = tables["pairs"]
    names = list(lines[0])[list(lines[0]).index("stsb dev") + 1 :]
    numbers = printed(5, 6)
    of_paper = [name for name in names if (name, "PP") in numbers]
    settings = ("trained on", "learning rate", "epochs")
    rows = [["row", "mean", "dev: sentences", "dev: sentences and log",
             f"mean of the paper's {len(of_paper)}", "paper, same parts", *settings]]  # fmt: skip
    for line in lines:
        system = SYSTEMS.get(line["row"], line["row"]).replace("(o.g.)", "(og)")
        rows.append([
            line["row"],
            _tenth(float(line["mean of the parts"])),
            _tenth(float(line["dev, sentences"] or line["stsb dev"])),
            _tenth(float(line["dev, sentences and log"])) if line["pairs"] else "–",
            _tenth(sum(float(line[name]) for name in of_paper) / len(of_paper)),
            _tenth(mean_over(numbers, of_paper, system)),
            *(line[name] or "–" for name in settings),
        ])  # fmt: skip
    detail = [["part", *(line["row"] for line in lines)]]
    detail += [[_part(name), *(_tenth(float(line[name])) for line in lines)] for name in names]
    counts = {line["trained on"]: int(line["pairs"]) for line in lines if line["pairs"]}
    listed = _listed([f"{name} ({count:,} pairs)" for name, count in counts.items()])
    return "\n\n".join([
        "## The trained rows of Table 5",
        _fill(f"""The paper trains its rows PP to LSTM(o.g.) on 3 million phrase pairs of PPDB,
            starting from PSL vectors. Neither is available here, so these numbers cannot be
            compared with the paper's. Here the rows start from the vectors {main_vectors(tables)}
            and are trained with the hinge loss: on the pairs of STS-B train and SICK train that
            people scored 4 or higher (*sentences*), or on these and the log of tldr (*sentences and
            log*).
            All are tuned over the same grid of pairs, learning rate and epochs on STS-B dev. The
            pairs that were chosen: {listed}."""),
        _fill(f"""STS-B is drawn from the files of STS'12 to '16, so only parts with hardly a pair
            in STS-B train or dev are measured. SICK test shares sentences, not pairs, with SICK
            train. *mean* is over the {len(names)} parts of the second table; the paper has
            {len(of_paper)} of them. The columns *dev* have the best r on STS-B dev with each kind
            of pairs, and in the first of them that of the rows without training. A training that
            overflows is left out."""),
        _table(rows),
        "### Every part",
        "The same rows on each part:",
        _table(detail),
    ])  # fmt: skip


# -- theory ---------------------------------------------------------------------------------------


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


def _weights(tables):
    return "\n\n".join([
        "## Figure 1: the weights of SIF and of word2vec",
        "![Weight against probability](figures/sif-weights.png)",
        _fill("""The second column is the probability with which word2vec's sub-sampling keeps an
            occurrence of a word, by the formula in the paper. The last column is the rule in the
            published word2vec.c."""),
        _table(_as_rows(tables["theory-word2vec-weights"])),
    ])  # fmt: skip


def _theory(tables):
    texts = {
        "theory-simulated": ("Averages and the likeliest c on simulated data", """Sentences are
            drawn from the paper's model (2); the c that maximises their exact likelihood, Z(c)
            included, is then found on the unit sphere. V words in d dimensions (1,000 in 20 unless
            a row says otherwise) have the lengths that the first column gives. *Z/V* is the mean of
            Z(c) over random c, divided by V, and *cv of Z* its standard deviation divided by its
            mean. Columns W to *centred plain* are mean cosines of an average with that c; *centred*
            subtracts the mean of all word vectors; *true c* is the cosine of the maximum with the c
            that the sentence was drawn from; *gain* is the share of the log-likelihood gained from
            c = 0 to that maximum which the average, scaled to length 1, already gains. Mean ±
            standard deviation over seeds."""),
        "theory-maximum": ("The same on GloVe", """The exact maximum over all c of length ‖c‖ for
            sentences of STS-B dev. Columns as above; the last one is the share of sentences for
            which all starting points reach the same maximum."""),
        "theory-partition-function": ("The partition function of GloVe", """Z/V is Z(c) divided by
            the number of words, cv its standard deviation divided by its mean; *least* and
            *greatest* are relative to the mean. *Centred* subtracts the mean of all vectors. c0 is
            the common component of the SIF vectors of 400 sentences of STS-B dev, with length 1 and
            either sign."""),
        "theory-with-c0": ("Sentences with a common c0", """Here the simulated sentences have a
            common component c0 of weight β (0.5, or 0 in the first row). The columns avg to *W,
            true c0 removed* are correlations between estimated and true cosines of sentence pairs;
            the next two are the cosine of u with c0. Mean ± standard deviation over seeds."""),
    }  # fmt: skip
    parts = [
        "## The theory, measured",
        _fill("""`benchmarks/sif_theory.py` measures the steps of the derivation on simulated data
            and on GloVe 6B 100d. `sentemb gradcheck --model sif-likelihood` checks the exact
            gradient of the likelihood, with and without ∇log Z, against finite differences."""),
    ]
    for name, (title, text) in texts.items():
        if name in tables:
            parts += [f"### {title}", _fill(text), _table(_as_rows(tables[name]))]
    return "\n\n".join(parts)


def _errors(tables):
    return "\n\n".join([
        "## Misprints",
        "Errors of print in the paper, with what is right and the effect that was measured.",
        _table(_as_rows(tables["theory-misprints"]), left=4),
        "## Loose steps",
        "Steps of the derivation that do not follow as written.",
        _table(_as_rows(tables["theory-loose-steps"]), left=4),
    ])  # fmt: skip


# -- the authors' code ----------------------------------------------------------------------------


def _code(_tables):
    rows = [
        ["part", "the paper", "the authors' code (PrincetonML/SIF)"],
        ["u", "one for a set of sentences", "one for each side of the pairs"],
        ["singular vector", "the first, not centred", "the same, by a randomised method"],
        ["word without a vector", "not said", "the last vector of the file"],
        ["word without a count", "not said", "weight 1; punctuation and digits have no count"],
        ["plain average", "weights 1", "weights 1 / (1 + p)"],
        ["idf", "log((1 + N) / (1 + N_w))", "log2((2 + N) / (1 + n_w)), n_w occurrences"],
        ["p(w) of Table 1", "commoncrawl", "Wikipedia by default"],
        ["supervised average", "divided by the number of words", "by the sum of the weights"],
        ["a of the supervised tasks", "not said", "1e-2 for SICK, 1e-3 for SST"],
        ["the demo", "–", "fails: it unpacks three values from `sentences2idx`, which returns two"],
    ]  # fmt: skip
    return "\n\n".join([
        "## What the authors' code does and the paper does not say",
        "Where the published program differs from the paper or settles what the paper leaves open.",
        _table(rows, left=3),
    ])  # fmt: skip


SECTIONS = (
    (("similarity",), _method),
    (("ranking", "similarity"), _ranking),
    (("own-vectors",), _own_vectors),
    ((), _claims),
    (("similarity",), _similarity),
    (("similarity",), _printed_means),
    (("similarity", "model"), _check),
    (("variants", "similarity"), _variants),
    (("splitting",), _splitting),
    (("sweep", "similarity"), _sweep),
    (("sources",), _sources),
    (("component", "similarity"), _component),
    (("supervised",), _supervised),
    (("pairs", "similarity"), _pairs),
    (("theory-word2vec-weights",), _weights),
    (("theory-simulated",), _theory),
    (("theory-misprints", "theory-loose-steps"), _errors),
    ((), _code),
)
