"""docs/sif.md as text, from the tables in docs/results/sif alone."""

import csv
import textwrap
from collections import Counter
from pathlib import Path

from pages import read_csv
from sif_claims import judged, main_vectors, parts_of, supervised_means, widest_vectors
from sif_lab import OTHERS, YEARS, group_means
from sif_printed import MEAN, SYSTEMS, mean_over, printed, tasks_of, wrong_means

from sentemb.tables import markdown_table

REFERENCE = Path(__file__).with_name("sif_reference.csv")
# An independent computation is reproduced if no mean is further away than this.
TOLERANCE = 0.2
_PAPER_GROUPS = (*YEARS[:4], "sick test")
_COMMANDS = """\
sentemb vectors convert glove.6B.100d.txt vectors     # or any file of word vectors
sentemb sif vectors titles.txt -o model               # your titles, one per line
sentemb score model "cheap flights" "Low-cost air travel" "Cheap shoes\""""
_PYTHON = """\
from sentemb import SIF

model = SIF("vectors").fit(queries, titles)           # lists of str
model.score("cheap flights", ["Low-cost air travel", "Cheap shoes"])"""


def page_of(tables):
    """The page; a section whose tables are missing is left out."""
    sections = [_head(tables), _claims(tables)]
    sections += [
        section(tables) for needs, section in SECTIONS if all(name in tables for name in needs)
    ]
    return "\n\n".join([*sections, _code()]) + "\n"


def _fill(text):
    """A paragraph in lines of at most 108 letters."""
    return textwrap.fill(" ".join(text.split()), 108, break_on_hyphens=False)


def _table(rows, left=1):
    return "\n".join(markdown_table(rows, left))


def _tenth(value):
    return f"{value:.1f}"


def _label(group):
    """A year or set as the page names it."""
    if group in YEARS:
        return f"STS'{group[2:]}"
    return {"sick test": "SICK", "stsb dev": "STS-B dev", "stsb test": "STS-B test"}[group]


def _head(tables):
    return "\n\n".join([
        "# SIF: sentence vectors from word vectors",
        _fill("""SIF (Arora, Liang and Ma, *A simple but tough-to-beat baseline for sentence
            embeddings*, ICLR 2017) makes sentence vectors from word vectors without training. A
            sentence is the average of its words' vectors, where a word w has the weight a / (a +
            p(w)) and p(w) is how frequent it is (the paper calls the weights W). Then the first
            singular vector u of all sentences, which they have in common, is removed from each (R).
            Algorithm 1 of the paper does both (WR)."""),
        f"```sh\n{_COMMANDS}\n```",
        f"```python\n{_PYTHON}\n```",
        _fill("""With a fixed u a sentence vector is a sum over words of weight(w) · (I − u uᵀ) ·
            v(w), divided by a number that the cosine does not see. So a SIF model is a linear `bag`
            whose table holds these rows. It is saved, loaded, evaluated and compared like a trained
            model."""),
        _fill(f"""`make sif` (`benchmarks/sif.py`) measures what follows and writes this page; the
            numbers are in [results/sif/](results/sif) as CSV. {_origin(tables)} The paper uses
            GloVe 840B with 300 dimensions. Unless a table says otherwise, words are lower-cased
            runs of letters and digits, a = 1e-3, p(w) is from word counts of Wikipedia, and each
            set loses the first singular vector of its own sentences, as in the paper. Numbers are
            Pearson's r × 100."""),
    ])  # fmt: skip


def _is_glove(tables):
    return main_vectors(tables) == "100d"


def _origin(tables):
    """Which word vectors these are."""
    if not _is_glove(tables):
        return f"The word vectors are {main_vectors(tables)}."
    return (
        "The word vectors are those of GloVe 6B (PDDL 1.0) from two public packages: 50d has all "
        '400,000 words, 100d lacks digits and some words such as "a" and "i", 150d is both side by '
        "side."
    )


# -- claims ---------------------------------------------------------------------------------------


def _claims(tables):
    rows = [["", "claim of the paper", "verdict", "measured"]]
    rows += [
        [claim.key, claim.text, f"**{verdict}**", why] for claim, verdict, why in judged(tables)
    ]
    return "\n\n".join([
        "## What the paper claims",
        _fill("""The verdicts follow from the numbers by the rules in `benchmarks/sif_claims.py`.
            They are about these word vectors and these data."""),
        _table(rows, left=4),
    ])  # fmt: skip


# -- Tables 1, 5, 6 -------------------------------------------------------------------------------


def _similarity(tables):
    vectors = list(dict.fromkeys(line["vectors"] for line in tables["similarity"]))
    shown = [name for name in vectors if name != "150d"]
    ours = {(name, row): parts_of(tables, name, row) for name in shown for row in SYSTEMS}
    numbers = printed(5, 6)
    parts = list(next(iter(ours.values())))
    rows = [["", *SYSTEMS]]
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
            printed. Means are over the parts that are here, for the paper too; its parts
            {_listed(list(map(_part, left_out)))} are not: their licences do not allow it. STS-B
            here lacks its pairs from MSRpar and MSRvid. tf-idf is equation 7, with sentences of
            STS'12 to '15 and SICK as documents. A dash: not in the paper."""),
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


def _listed(names):
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _printed_means(tables):
    numbers = printed(5, 6)
    wrong = wrong_means(numbers)
    rows = [["mean", "system", "printed", "mean of the printed rows"]]
    rows += [[_label(year), system, _tenth(told), _tenth(own)] for year, system, told, own in wrong]
    checked = len(YEARS[:4]) * len({system for _, system in numbers})
    system_means = _means_without(numbers, tables)
    return "\n\n".join([
        "### The paper's means",
        _fill(f"""Of {checked} printed means of years, {len(wrong)} do not follow from the rows
            above them, by more than rounding explains:"""),
        _table(rows, left=2),
        _fill("The paper's own means over the parts that are here, for every system that it has:"),
        system_means,
    ])  # fmt: skip


def _means_without(numbers, tables):
    parts = set(parts_of(tables, main_vectors(tables), "avg"))
    systems = dict.fromkeys(system for _, system in numbers)
    rows = [["", *map(_label, YEARS[:4])]]
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
    rows, differences = [["", *map(_label, groups)]], []
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
        _fill(f"""In brackets: the difference to a separate NumPy program that computed the same
            rows from the same vectors before this package could (100d,
            [numbers](../benchmarks/sif_reference.csv)). {verdict} are within {TOLERANCE} points.
            STS'12 and STS-B are not compared: that program had all of their parts."""),
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
        _fill("""The cosines of a SIF model, which are those of a `bag` in float32, next to
            Algorithm 1 written down in NumPy, sentence by sentence in float64 with the SVD of
            `numpy.linalg`:"""),
        _table(rows),
    ])  # fmt: skip
    return own if reference is None else f"{reference[1]}\n\n{own}"


# -- variants -------------------------------------------------------------------------------------


def _means_table(lines, keys):
    """Rows of tables with means by year: the cells of ``keys``, then one for each group."""
    groups = [name for name in lines[0] if name in YEARS or name in OTHERS]
    rows = [[*("" for _ in keys), *map(_label, groups)]]
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
        _fill(f"""Means with {main_vectors(tables)}. *Per side* removes one component from the first
            sentences and another from the second, as the authors' code does:
            {_gap(years, "WR, per side", "WR")} points on the mean of the five years. tf-idf with
            the removal is {_gap(years, "tf-idf + R", "WR")} points from WR. Subtracting the mean of
            all word vectors, as the exact derivation asks for, changes W by
            {_gap(years, "W, centred by the vocabulary", "W")}; subtracting the mean weighted by p
            changes it by {_gap(years, "W, centred by p", "W")}; R changes it by
            {_gap(years, "WR", "W")}. A model that is used on new texts has a component that does
            not come from these texts. That costs {_cost(years, fixed[0])} points if it is from
            STS-B train, some of whose sentences are in the files of STS'13 to '16, and
            {_cost(years, fixed[1])} if it is from the vocabulary. The best row on the five years is
            *{best}*."""),
        _means_table(tables["variants"], ["row"]),
    ])  # fmt: skip


def _gap(years, row, other):
    return f"{years[row] - years[other]:+.1f}"


def _cost(years, row):
    return f"{years['WR'] - years[row]:.1f}"


def _splitting(tables):
    lines = {(line["split"], line["row"]): line for line in tables["splitting"]}
    gaps = {
        row: _mean_of_years(lines["words", row]) - _mean_of_years(lines["white space", row])
        for row in ("avg", "tf-idf", "W", "R", "WR")
    }
    sick = (float(lines[split, "WR"]["sick test"]) for split in ("words", "white space"))
    sick = next(sick) - next(sick)
    return "\n\n".join([
        "## Splitting texts into words",
        _fill(f"""How texts are split matters more than most settings of SIF. Split at white space,
            "shoes," is a word without a vector; the mean of the five years falls by
            {_listed([f'{gap:.1f} ({row})' for row, gap in gaps.items()])} points. The authors'
            sentences were split by a tool that makes punctuation marks words of their own, which
            this package does not do. On SICK, whose sentences have hardly any punctuation, WR falls
            by {sick:.1f}."""),
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
        _fill(f"""The dotted lines are the plain average. From a = 1e-3 to 1, where all weights are
            nearly alike, the mean of the five years falls by {falls['W']:.1f} points for W and by
            {falls['WR']:.1f} for WR: once the component is removed, the weights matter less. All
            rows with {main_vectors(tables)}; avg and R have no weights:"""),
        _means_table(lines, ["row", "a"]),
    ])  # fmt: skip


def _sources(tables):
    lines = tables["sources"]
    names = {
        "enwiki": "Wikipedia", "rank": "Zipf's law by rank", "sts": "the sentences measured here",
        "sst2": "film reviews (SST)", "occupations": "occupations, log",
        "msdocs_index": "msdocs_index, log",
    }  # fmt: skip
    shown = [
        line | {"source": names[line["source"]], "words": _thousands(line["words"])}
        for line in lines
    ]
    wr = {line["source"]: _mean_of_years(line) for line in lines if line["row"] == "WR"}
    ordered = sorted(wr, key=wr.get)
    return "\n\n".join([
        "## Figure 2b: where p(w) is from",
        "![Pearson's r by the source of p(w)](figures/sif-p.png)",
        _fill(f"""Mean of WR over the five years: {wr[ordered[-1]]:.1f} with p from
            {names[ordered[-1]]}, {wr['enwiki']:.1f} from Wikipedia, {wr['rank']:.1f} by Zipf's law
            from the rank of the word in the vector file, which needs no counts and is the default,
            {wr[ordered[0]]:.1f} from {names[ordered[0]]}. A word without a count has the
            probability of its rank."""),
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
            The share says how much of the squared lengths of all sentences lies along u."""),
        _table(rows, left=3),
    ])  # fmt: skip


# -- ranking --------------------------------------------------------------------------------------


def _ranking(tables):
    lines = tables["ranking"]
    sets = list(dict.fromkeys(line["set"] for line in lines))
    found = {(line["set"], line["row"]): line for line in lines}
    rows = [["", *sets]]
    rows += [
        [row, *(_ndcg(found[name, row]) for name in sets)]
        for row in dict.fromkeys(line["row"] for line in lines)
    ]
    trained = {name: _trained(name) for name in sets}
    rows.append(["LSTM trained on the log (`lstm-96-hard`)", *(
        _ndcg(trained[name]) if trained[name] else "–" for name in sets
    )])  # fmt: skip
    hybrids = [f"{name} {found[name, 'bm25-stem + λ cos']['settings']}" for name in sets]
    return "\n\n".join([
        "## Ranking without a click",
        "![Test NDCG@1 by set and ranker](figures/sif-ranking.png)",
        _fill(f"""Test NDCG@1 / @3 / @10 with {widest_vectors(tables)}; no row but the last has
            learned from clicks. Components and idf come from the texts of the log, or, for
            dbpedia_entity_v2, which has none, from the texts to be ranked. In the row with λ, λ
            times a cosine is added to the score of BM25; which cosine and λ were chosen on dev
            ({'; '.join(hybrids)})."""),
        _table(rows),
        _ranking_verdict(found, sets),
    ])  # fmt: skip


def _ndcg(line):
    return " / ".join(line[f"NDCG@{k}"] for k in (1, 3, 10))


def _trained(name):
    path = f"table4-{name}.csv"
    return next((line for line in read_csv(path) if line["row"] == "lstm-96-hard"), None)


def _ranking_verdict(found, sets):
    def ahead(row, other):
        return [name for name in sets if float(found[name, row]["NDCG@1"])
                > float(found[name, other]["NDCG@1"])]  # fmt: skip

    def said(names):
        return f"on {_listed(names)}" if names else "on none of the sets"

    both = "bm25-stem + λ cos"
    return _fill(f"""By NDCG@1, WR is ahead of the plain average {said(ahead("WR", "avg"))}, of
            tf-idf {said(ahead("WR", "tf-idf"))}, and of BM25 {said(ahead("WR", "bm25-stem"))}. BM25
            with the cosine is ahead of BM25 alone {said(ahead(both, "bm25-stem"))}.""")


def _own_vectors(tables):
    lines = tables["own-vectors"]
    sets = list(dict.fromkeys(line["set"] for line in lines))
    found = {(line["set"], line["row"]): line for line in lines}
    rows = [["", *sets]]
    rows += [
        [row, *(_ndcg(found[name, row]) for name in sets)]
        for row in dict.fromkeys(line["row"] for line in lines)
    ]
    return "\n\n".join([
        "### Word vectors of one's own log",
        _fill("""`sentemb vectors train` makes word vectors from a log: a query and its clicked
            title are one sentence. So these rows learn from clicks. Test NDCG@1 / @3 / @10:"""),
        _table(rows),
    ])  # fmt: skip


# -- supervised -----------------------------------------------------------------------------------


def _supervised(tables):
    found = supervised_means(tables)
    counts = Counter((line["task"], line["system"], line["order"]) for line in tables["supervised"])
    vectors = sorted({line["vectors"] for line in tables["supervised"]})
    tasks = [task for task in ("similarity", "entailment", "sentiment") if (
        task, "SIF", "original") in found]  # fmt: skip
    two, three = printed(2), printed(3)
    rows2 = [["", "SIF", "paper"]]
    rows2 += [[t, _tenth(found[t, "SIF", "original"]), f"{two[t, 'Ours']:g}"] for t in tasks]
    rows3 = [["", "RNN", "paper", "LSTM", "paper"]]
    for task in tasks:
        row = [task]
        for ours, theirs in (("rnn", "RNN"), ("lstm", "LSTM(o.g.)")):
            both = [found.get((task, ours, order)) for order in ("original", "shuffled")]
            row.append(" / ".join("–" if x is None else _tenth(x) for x in both))
            row.append(f"{three[task, theirs]:g} / {three[task, f'{theirs} shuffled']:g}")
        rows3.append(row)
    most, least = max(counts.values()), min(counts.values())
    seeds = f"{most} seeds" if most == least else f"{least} to {most} seeds"
    return "\n\n".join([
        "## Tables 2 and 3: features for classifiers, and word order",
        _fill(f"""`benchmarks/sif_supervised.py` trains the classifier of the paper's appendix on
            fixed SIF vectors (Table 2), and together with an RNN or an LSTM on the texts as they
            are and with the words of each text shuffled (Table 3; original / shuffled). Similarity
            is Pearson's r × 100 on SICK, the others are accuracies in percent on SICK and SST. Word
            vectors: {_listed(vectors)}; means over {seeds}. The paper's word vectors have 300
            dimensions."""),
        "### Table 2",
        _table(rows2),
        "### Table 3",
        _table(rows3),
    ])  # fmt: skip


def _pairs(tables):
    lines = tables["pairs"]
    names = list(lines[0])[list(lines[0]).index("stsb dev") + 1 :]
    numbers = printed(5, 6)
    of_paper = [name for name in names if (name, "PP") in numbers]
    settings = ("trained on", "learning rate", "epochs")
    rows = [["", "mean", "dev, sentences", "dev, and log", "parts of the paper", "the paper there"]]
    rows[0] += settings
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
    detail = [["", *(line["row"] for line in lines)]]
    detail += [[_part(name), *(_tenth(float(line[name])) for line in lines)] for name in names]
    counts = {line["trained on"]: int(line["pairs"]) for line in lines if line["pairs"]}
    listed = _listed([f"{name} ({count:,} pairs)" for name, count in counts.items()])
    return "\n\n".join([
        "## The trained rows of Table 5",
        _fill(f"""The paper's rows PP to LSTM(o.g.) are trained on 3 million phrase pairs of PPDB
            from PSL vectors. Neither is here, so these numbers cannot be compared with the paper's.
            These rows are trained on the pairs of STS-B train and SICK train that people scored 4
            or higher (*sentences*), or on these and the log of tldr (*sentences and log*), with the
            hinge loss, from the vectors {main_vectors(tables)}. All rows are tuned over the same
            grid of pairs, learning rate and epochs on STS-B dev; what was chosen: {listed}. Columns
            *dev* are the best r on STS-B dev; a training that overflows is left out. STS-B is drawn
            from the files of STS'12 to '16, so only parts with hardly a pair in STS-B train or dev
            are measured. SICK test shares sentences, not pairs, with SICK train. The mean is over
            the {len(names)} parts below; {len(of_paper)} of them are in the paper too."""),
        _table(rows),
        "### Every part",
        _table(detail),
    ])  # fmt: skip


# -- theory ---------------------------------------------------------------------------------------


def _as_rows(lines):
    """A table as it was before its CSV: a value and its standard deviation in one cell."""
    names = [name for name in lines[0] if not name.endswith(" sd")]
    rows = [["" if name == "what" else name for name in names]]
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
        _fill("""Sub-sampling in word2vec keeps an occurrence of a word with the probability in the
            second column, as the paper has it; the last column is the rule of the published
            program."""),
        _table(_as_rows(tables["theory-word2vec-weights"])),
    ])  # fmt: skip


def _theory(tables):
    texts = {
        "theory-simulated": ("Averages and the likeliest c in made-up worlds", """Sentences are
            drawn from the paper's model (2), and c is found that maximises the exact likelihood,
            with Z(c), over the sphere. Columns W to *centred plain* are mean cosines of an average
            with that c; *true c* is the cosine of the maximum with the c that the sentence was
            drawn from; *gain* is the share of the likelihood that the average, scaled to length 1,
            keeps. Mean ± standard deviation over seeds."""),
        "theory-maximum": ("The same on GloVe", """The exact maximum over all c of length ‖c‖ for
            sentences of STS-B dev."""),
        "theory-partition-function": ("The partition function of GloVe", """Z/V is Z(c) divided by
            the number of words, cv its standard deviation divided by its mean; *least* and
            *greatest* are relative to the mean. *Centred* subtracts the mean of all vectors."""),
        "theory-with-c0": ("Sentences with a common c0", """Correlation of estimated with true
            cosines of pairs of sentences, and how well u finds c0. Mean ± standard deviation over
            seeds."""),
    }  # fmt: skip
    parts = [
        "## The theory, measured",
        _fill("""`benchmarks/sif_theory.py` measures the steps of the derivation on made-up worlds
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
        _table(_as_rows(tables["theory-misprints"]), left=4),
        "## Loose steps",
        _table(_as_rows(tables["theory-loose-steps"]), left=4),
    ])  # fmt: skip


# -- the authors' code ----------------------------------------------------------------------------


def _code():
    rows = [
        ["", "the paper", "the authors' code (PrincetonML/SIF)"],
        ["u", "one for a set of sentences", "one for each side of the pairs"],
        ["singular vector", "the first, not centred", "the same, by a randomised method"],
        ["word without a vector", "not said", "the last vector of the file"],
        ["word without a count", "not said", "weight 1; punctuation and digits have no count"],
        ["plain average", "weights 1", "weights 1 / (1 + p)"],
        ["idf", "log((1 + N) / (1 + N_w))", "log2((2 + N) / (1 + n_w)), n_w occurrences"],
        ["p(w) of Table 1", "commoncrawl", "Wikipedia by default"],
        ["supervised average", "divided by the number of words", "by the sum of the weights"],
        ["a of the supervised tasks", "not said", "1e-2 for SICK, 1e-3 for SST"],
        ["the demo", "", "cannot run: two values are returned where three are unpacked"],
    ]  # fmt: skip
    return "\n\n".join([
        "## What the authors' code does and the paper does not say",
        _table(rows, left=3),
    ])  # fmt: skip


SECTIONS = (
    (("similarity",), _similarity),
    (("similarity",), _printed_means),
    (("similarity", "model"), _check),
    (("variants", "similarity"), _variants),
    (("splitting",), _splitting),
    (("sweep", "similarity"), _sweep),
    (("sources",), _sources),
    (("component", "similarity"), _component),
    (("ranking", "similarity"), _ranking),
    (("own-vectors",), _own_vectors),
    (("supervised",), _supervised),
    (("pairs", "similarity"), _pairs),
    (("theory-word2vec-weights",), _weights),
    (("theory-simulated",), _theory),
    (("theory-misprints", "theory-loose-steps"), _errors),
)
