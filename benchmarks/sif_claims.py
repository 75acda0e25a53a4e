"""The claims of Arora, Liang and Ma (ICLR 2017), each with a verdict that follows from the CSV.

A claim's function takes the tables of docs/results/sif (lists of dicts by name) and returns the
verdict and the numbers that it follows from. A claim is judged once its tables are there.
"""

from claims import FAILS, HOLDS, IN_PART, UNTESTED, Claim
from sif_lab import YEARS, group_means
from sif_printed import MEAN, gains, printed

# The groups that the paper has too.
PAPER_GROUPS = ("2012", "2013", "2014", "2015", "sick test")
# The words that the paper finds nearest to the removed component of SICK.
SYNTAX = frozenset(["just", "when", "even", "one", "up", "little", "way", "there", "while", "but"])


def parts_of(tables, vectors, row):
    """{part: r} of a row of the similarity tables."""
    return {
        line["part"]: float(line["r"])
        for line in tables["similarity"]
        if (line["vectors"], line["row"]) == (vectors, row)
    }


def main_vectors(tables):
    """The vectors that variants are measured with: those of 100 dimensions, or the only ones."""
    names = list(dict.fromkeys(line["vectors"] for line in tables["similarity"]))
    return "100d" if "100d" in names else names[0]


def _groups(tables, row):
    means = group_means(parts_of(tables, main_vectors(tables), row))
    return {group: means[group] for group in PAPER_GROUPS}


def relative_gain(tables):
    """C1: 10 % to 30 % over the plain average."""
    plain, found = _groups(tables, "avg"), _groups(tables, "WR")
    percents = [100 * (found[group] / plain[group] - 1) for group in PAPER_GROUPS]
    inside = sum(10 <= percent <= 30 for percent in percents)
    verdict = HOLDS if inside == len(percents) else IN_PART if min(percents) > 0 else FAILS
    listed = ", ".join(
        f"{percent:.0f} % ({_name(group)})"
        for group, percent in zip(PAPER_GROUPS, percents, strict=True)
    )
    return (
        verdict,
        f"WR gains {listed}; {inside} of the {len(percents)} gains are between 10 % and 30 %.",
    )


def gains_by_part(tables):
    """C2: W alone about 5 points, R alone 10, both 13."""
    vectors = main_vectors(tables)
    plain = parts_of(tables, vectors, "avg")
    told = {"W": 5, "R": 10, "WR": 13}
    ours, theirs = {}, {}
    for row in told:
        found = parts_of(tables, vectors, row)
        of_paper = [part for part in found if part.split()[0] != "2016" and part[:4] != "stsb"]
        ours[row] = sum(found[part] - plain[part] for part in of_paper) / len(of_paper)
        some = gains(printed(5, 6), f"GloVe+{row}", "avg-GloVe")
        theirs[row] = sum(some.values()) / len(some)
    near = sum(abs(ours[row] - told[row]) <= 2.5 for row in told)
    verdict = HOLDS if near == 3 else IN_PART if ours["W"] < ours["R"] < ours["WR"] else FAILS
    return verdict, (
        f"Mean gain over {len(of_paper)} parts: "
        + ", ".join(f"{row} {gain:+.1f}" for row, gain in ours.items())
        + ". The paper's own rows give "
        + ", ".join(f"{row} {gain:+.1f}" for row, gain in theirs.items())
        + "."
    )


def better_than_tfidf(tables):
    """C3: WR beats tf-idf."""
    vectors = main_vectors(tables)
    tfidf, wr = (parts_of(tables, vectors, row) for row in ("tf-idf", "WR"))
    ahead = sum(wr[part] > tfidf[part] for part in wr)
    groups = group_means(tfidf), group_means(wr)
    groups_ahead = sum(groups[1][group] > groups[0][group] for group in groups[0])
    w = parts_of(tables, vectors, "W")
    w_behind = sum(w[part] < tfidf[part] for part in w)
    verdict = HOLDS if groups_ahead == len(groups[0]) else IN_PART if ahead > len(wr) / 2 else FAILS
    return verdict, (
        f"WR is ahead on {ahead} of {len(wr)} parts and on {groups_ahead} of {len(groups[0])} "
        f"means. Weights alone (W) are behind tf-idf on {w_behind} of {len(w)} parts. In the "
        f"paper's own table {_printed_behind()}."
    )


def _printed_behind():
    """Where the paper's GloVe+WR is behind its tf-idf."""
    numbers = printed(5)
    behind = [
        f"{year} ({numbers[f'{year} {MEAN}', 'tfidf-GloVe']} against "
        f"{numbers[f'{year} {MEAN}', 'GloVe+WR']})"
        for year in YEARS[:4]
        if numbers[f"{year} {MEAN}", "tfidf-GloVe"] > numbers[f"{year} {MEAN}", "GloVe+WR"]
    ]
    return f"tf-idf is ahead on STS {', '.join(behind)}" if behind else "it is ahead on every year"


def best_a(tables):
    """C4: the best a is between 1e-4 and 1e-3, and much of the range does as well."""
    found = {}
    for line in tables["sweep"]:
        if line["row"] == "WR":
            years = [float(line[year]) for year in YEARS]
            found.setdefault(line["vectors"], {})[line["a"]] = sum(years) / len(years)
    best = {name: max(some, key=some.get) for name, some in found.items()}
    inside = sum(1e-4 <= float(a) <= 1e-3 for a in best.values())
    wide = {
        name: [a for a, r in some.items() if r > max(some.values()) - 1]
        for name, some in found.items()
    }
    verdict = HOLDS if inside == len(best) else IN_PART if inside else FAILS
    listed = "; ".join(
        f"{name}: best at {best[name]}, within one point of it from {wide[name][0]} to "
        f"{wide[name][-1]}"
        for name in best
    )
    return verdict, f"Mean of WR over the five years. {listed}."


def source_of_p(tables):
    """C5: it does not matter where p(w) is from."""
    spread = {}
    for row in ("W", "WR"):
        lines = [line for line in tables["sources"] if line["row"] == row]
        for group in ("2012", "2013"):
            values = [float(line[group]) for line in lines]
            spread[row, group] = max(values) - min(values)
    verdict = (
        HOLDS if max(spread.values()) <= 1 else IN_PART if spread["WR", "2012"] <= 1 else FAILS
    )
    count = len({line["source"] for line in tables["sources"]})
    listed = ", ".join(f"{row} {gap:.1f} ('{year[2:]})" for (row, year), gap in spread.items())
    return verdict, (
        f"Best minus worst of {count} sources, in points: {listed}. Two of the sources are click "
        "logs of a single field; the paper's corpora are general text."
    )


def syntax(tables):
    """C6: the component is syntax."""
    found = {line["sentences"]: line["nearest words"].split() for line in tables["component"]}
    words = found["sick test"]
    same = [word for word in words if word in SYNTAX]
    verdict = HOLDS if len(same) > 5 else IN_PART if len(same) > 2 else FAILS
    return verdict, (
        f"Words nearest to the component of SICK: {', '.join(words)}. {len(same)} of these "
        f"{len(words)} are among the {len(SYNTAX)} that the paper lists."
    )


def constant_partition(tables):
    """C7: Z_c is nearly the same for all directions c."""
    lines = {line["c"]: line for line in tables["theory-partition-function"]}
    random, averages = (
        next(line for name, line in lines.items() if name.startswith(start))
        for start in ("200 random c, ‖c‖ = 1", "averages of SIF")
    )
    variation = float(random["cv of Z"])
    ratio = float(averages["Z/V"]) / float(random["Z/V"])
    near = variation <= 0.1
    verdict = HOLDS if near and abs(ratio - 1) <= 0.1 else IN_PART if near else FAILS
    return verdict, (
        f"Over random c of length 1 the standard deviation of Z is {variation:.3f} of its mean. At "
        f"SIF averages of sentences, scaled to length 1, Z is {ratio:.2f} times its mean over "
        "random c."
    )


def likeliest_is_weighted(tables):
    """C8: the likeliest c of a sentence is nearly the weighted average."""
    simulated = tables["theory-simulated"]
    real = tables["theory-maximum"]
    W = [float(line["W"]) for line in simulated]
    W_real = [float(line["W"]) for line in real]
    centred = [float(line["centred W"]) for line in real]
    verdict = HOLDS if min(W + W_real) >= 0.95 else IN_PART if max(W) >= 0.95 else FAILS
    return verdict, (
        f"Cosine of the weighted average with the exact maximum: {min(W):.2f} to {max(W):.2f} on "
        f"simulated data, {_span(real, 'W')} on GloVe (plain average {_span(real, 'plain')}). With "
        f"centred word vectors, as the exact gradient requires, {min(centred):.2f} to "
        f"{max(centred):.2f} on GloVe."
    )


def _span(lines, column):
    values = [float(line[column]) for line in lines]
    return f"{min(values):.2f} to {max(values):.2f}"


def like_subsampling(tables):
    """C9: the weights are nearly those of word2vec's sub-sampling, with a = 1e-4."""
    lines = tables["theory-word2vec-weights"]
    sampled, sif = list(lines[0])[1:3]
    gaps = {line["p(w)"]: abs(float(line[sampled]) - float(line[sif])) for line in lines}
    worst = max(gaps, key=gaps.get)
    verdict = HOLDS if gaps[worst] <= 0.1 else IN_PART if gaps[worst] <= 0.25 else FAILS
    return verdict, f"Largest difference over the p of Figure 1: {gaps[worst]:.3f}, at p = {worst}."


def supervised_means(tables):
    """{(task, system, order): mean of the test results over seeds}."""
    found = {}
    for line in tables["supervised"]:
        key = line["task"], line["system"], line["order"]
        found.setdefault(key, []).append(float(line["test"]))
    return {key: sum(values) / len(values) for key, values in found.items()}


def as_features(tables):
    """C10: as features best or equal on SICK, not on SST."""
    found = supervised_means(tables)
    trained = ("rnn", "lstm")
    lead = {
        task: found[task, "SIF", "original"]
        - max(found[task, name, "original"] for name in trained)
        for task in ("similarity", "entailment", "sentiment")
    }
    right = [lead["similarity"] > -0.5, lead["entailment"] > -0.5, lead["sentiment"] < 0]
    verdict = HOLDS if all(right) else IN_PART if any(right) else FAILS
    return verdict, (
        "SIF minus the better of RNN and LSTM: "
        + ", ".join(f"{gap:+.1f} ({task})" for task, gap in lead.items())
        + "."
    )


def word_order(tables):
    """C11: RNN and LSTM lose when words are shuffled."""
    found = supervised_means(tables)
    losses = {
        (name.upper(), task): found[task, name, "original"] - found[task, name, "shuffled"]
        for task in ("similarity", "entailment", "sentiment")
        for name in ("rnn", "lstm")
    }
    worse = sum(loss > 0 for loss in losses.values())
    verdict = HOLDS if worse == len(losses) else IN_PART if worse else FAILS
    listed = ", ".join(f"{name} {task} {loss:.1f}" for (name, task), loss in losses.items())
    return verdict, f"Points lost by shuffling: {listed}."


def better_than_trained(tables):
    """C13: WR beats the trained RNN and LSTM."""
    means = {line["row"]: float(line["mean of the parts"]) for line in tables["pairs"]}
    trained = ("RNN", "LSTM(no)", "LSTM(o.g.)")
    behind = sum(means["WR"] > means[name] for name in trained)
    verdict = HOLDS if behind == len(trained) else IN_PART if behind else FAILS
    listed = ", ".join(f"{name} {means[name]:.1f}" for name in trained)
    return verdict, (
        f"Mean over the parts: GloVe+WR {means['WR']:.1f}, {listed}, trained from the same vectors "
        "on other pairs than the paper's."
    )


def few_labels(tables):
    """C12: features beat a classifier of n-grams where labels are few."""
    return UNTESTED, "The IMDB reviews are not available here."


def _name(group):
    return f"STS'{group[2:]}" if group in YEARS else "SICK"


CLAIMS = [
    Claim("C1", "Weights and removal improve the plain average by 10 % to 30 %.",
          ("similarity",), relative_gain),
    Claim("C2", "With GloVe, W alone gains about 5 points, R alone 10, both 13.",
          ("similarity",), gains_by_part),
    Claim("C3", "WR is better than tf-idf.", ("similarity",), better_than_tfidf),
    Claim("C4", "The best a is from 1e-4 to 1e-3, and a wide range is nearly as good.",
          ("sweep",), best_a),
    Claim("C5", "It does not matter which corpus p(w) comes from.", ("sources",), source_of_p),
    Claim("C6", "The removed component is syntax.", ("component",), syntax),
    Claim("C7", "Z_c is nearly constant over directions c.",
          ("theory-partition-function",), constant_partition),
    Claim("C8", "The likeliest c of a sentence is nearly the weighted average of its words.",
          ("theory-simulated", "theory-maximum"), likeliest_is_weighted),
    Claim("C9", "word2vec's sub-sampling gives nearly the weights of SIF with a = 1e-4.",
          ("theory-word2vec-weights",), like_subsampling),
    Claim("C10", "As features, the vectors are best or equal on SICK, and not on SST.",
          ("supervised",), as_features),
    Claim("C11", "RNN and LSTM need word order.", ("supervised",), word_order),
    Claim("C12", "With few labels SIF features beat NB-SVM.", (), few_labels),
    Claim("C13", "WR is better than the trained RNN and LSTM.", ("pairs",), better_than_trained),
]  # fmt: skip


def judged(tables):
    """(claim, verdict, why) of every claim whose tables are there."""
    return [
        (claim, *claim.judge(tables))
        for claim in CLAIMS
        if all(name in tables for name in claim.needs)
    ]
