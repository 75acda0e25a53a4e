"""The claims of Arora, Liang and Ma (ICLR 2017), each with a verdict that follows from the CSV.

A claim's function takes the tables of docs/results/sif (lists of dicts by name) and returns the
verdict and the numbers that it follows from. A claim is judged once its tables are there. The rule
of a verdict is the docstring of its function, and our free choices are its keyword-only parameters;
the paper's own numbers are those of ``sif_printed.csv``.
"""

from claims import FAILS, HOLDS, IN_PART, Claim, choices_of, not_measured
from sif_lab import EVERY_WORD, LOGS, YEARS, group_means
from sif_printed import MEAN, gains, printed, printed_gains
from sif_supervised import REMOVED, TASKS, chosen_a

# The groups that the paper has too.
PAPER_GROUPS = ("2012", "2013", "2014", "2015", "sick test")
# The words that the paper finds nearest to the removed component of SICK.
SYNTAX = ("just", "when", "even", "one", "up", "little", "way", "there", "while", "but")


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
    """C1: It holds if WR gains 10 % to 30 % on the plain average of every set.

    In part if it gains on every set.
    """
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


def gains_by_part(tables, *, apart=2.5):
    """C2: It holds if the mean gains of W, R and WR are at most ``apart`` points from 5, 10 and 13.

    In part if W gains less than R, and R less than both. In points: the paper says per cent, but of
    its own rows only the points come near.
    """
    vectors = main_vectors(tables)
    plain = parts_of(tables, vectors, "avg")
    stated = {"W": 5, "R": 10, "WR": 13}
    of_paper = [part for part in plain if part.split()[0] != "2016" and part[:4] != "stsb"]
    base = sum(plain[part] for part in of_paper) / len(of_paper)
    ours = {}
    for row in stated:
        found = parts_of(tables, vectors, row)
        ours[row] = sum(found[part] for part in of_paper) / len(of_paper) - base
    near = sum(abs(ours[row] - stated[row]) <= apart for row in stated)
    verdict = HOLDS if near == 3 else IN_PART if ours["W"] < ours["R"] < ours["WR"] else FAILS
    return verdict, (
        f"Mean gain over {len(of_paper)} parts: "
        + ", ".join(
            f"{row} {gain:+.1f} points ({100 * gain / base:.0f} %)" for row, gain in ours.items()
        )
        + ". Judged in points, in which the paper's rows come nearer to its statement than in per "
        "cent."
    )


def _stated_and_rows(vectors, stated):
    """The paper's statement on the parts of the method, and what its own rows give."""
    numbers = printed(5, 6)
    plain = sum(numbers[task, f"avg-{vectors}"] for task in _tasks(numbers, f"avg-{vectors}"))
    found = []
    for row in ("W", "R", "WR"):
        by_task = gains(numbers, f"{vectors}+{row}", f"avg-{vectors}")
        mean = sum(by_task.values()) / len(by_task)
        found.append(f"{row} {mean:+.1f} points ({100 * sum(by_task.values()) / plain:.0f} %)")
    return f"{stated}; its {len(by_task)} rows give {', '.join(found)}"


def _tasks(numbers, system):
    return [task for task, name in numbers if name == system and not task.endswith(MEAN)]


def _printed_worse():
    """The parts on which the paper's GloVe+WR is behind its plain average."""
    by_task = gains(printed(5), "GloVe+WR", "avg-GloVe")
    worse = [f"{_part_name(task)} {gain:+.1f}" for task, gain in by_task.items() if gain < 0]
    return f"{len(worse)} of {len(by_task)} parts: {', '.join(worse)}"


def _part_name(task):
    year, _, name = task.partition(" ")
    return f"STS'{year[2:]} {name}" if year in YEARS else task


def better_than_tfidf(tables):
    """C3: It holds if on every mean tf-idf is ahead of the plain average, and WR of tf-idf.

    In part if WR is ahead of tf-idf on more than half of the parts. A mean is that of a year or a
    set.
    """
    vectors = main_vectors(tables)
    plain, tfidf, wr, w = (parts_of(tables, vectors, row) for row in ("avg", "tf-idf", "WR", "W"))
    verdict, why = _with_tfidf(
        (plain, tfidf, wr), tuple(group_means(some) for some in (plain, tfidf, wr))
    )
    w_behind = sum(w[part] < tfidf[part] for part in w)
    return verdict, (f"{why} Weights alone (W) are behind tf-idf on {w_behind} of {len(w)} parts.")


def _with_tfidf(parts, means):
    """C3 on {part: r} and {mean: r} of the plain average, tf-idf and WR."""
    plain, tfidf, wr = means
    gained = sum(tfidf[name] > plain[name] for name in tfidf)
    ahead = sum(wr[name] > tfidf[name] for name in tfidf)
    by_part = sum(parts[2][part] > parts[1][part] for part in parts[1])
    behind = sum(parts[2][part] < parts[1][part] for part in parts[1])
    every = gained == ahead == len(tfidf)
    return HOLDS if every else IN_PART if 2 * by_part > len(parts[1]) else FAILS, (
        f"tf-idf is ahead of the plain average on {gained} of {len(tfidf)} means; WR is ahead of "
        f"tf-idf on {ahead} of them and on {by_part} of {len(parts[1])} parts, and behind on "
        f"{behind}."
    )


def _printed_with_tfidf():
    """C3 on the paper's own rows."""
    numbers = printed(5)
    systems = "avg-GloVe", "tfidf-GloVe", "GloVe+WR"
    tasks = _tasks(numbers, systems[0])
    sets = [f"{year} {MEAN}" for year in YEARS[:4]] + [
        t for t in tasks if t.split()[0] not in YEARS
    ]
    parts, means = (
        tuple({name: numbers[name, system] for name in names} for system in systems)
        for names in (tasks, sets)
    )
    return "{}: {}".format(*_with_tfidf(parts, means))


def seldom_worse(tables, *, share=0.1):
    """C16: It holds if WR is behind the plain average on at most a ``share`` of the parts.

    In part if on at most three. MSRpar, which the paper names, is not among them.
    """
    vectors = main_vectors(tables)
    plain, found = (parts_of(tables, vectors, row) for row in ("avg", "WR"))
    worse = [part for part in plain if found[part] < plain[part]]
    verdict = HOLDS if len(worse) <= share * len(plain) else IN_PART if len(worse) <= 3 else FAILS
    named = f" ({', '.join(worse)})" if worse else ""
    return verdict, (
        f"WR is behind the plain average on {len(worse)} of {len(plain)} parts{named}. The part "
        "that the paper names, MSRpar, is not among them: its licence does not permit it."
    )


def any_vectors(tables):
    """C17: It holds if WR is ahead of the plain average on the mean of every year, by all vectors.

    In part if by some of them.
    """
    gained = {}
    lines = tables["similarity"] + tables["skip-gram"]
    for vectors in dict.fromkeys(line["vectors"] for line in lines):
        both = {"similarity": [line for line in lines if line["vectors"] == vectors]}
        plain, found = (group_means(parts_of(both, vectors, row)) for row in ("avg", "WR"))
        gained[vectors] = [found[year] - plain[year] for year in YEARS if year in plain]
    good = [min(values) > 0 for values in gained.values()]
    verdict = HOLDS if all(good) else IN_PART if any(good) else FAILS
    listed = ", ".join(f"{name} {min(v):+.1f} to {max(v):+.1f}" for name, v in gained.items())
    return verdict, (
        f"Gains of WR on the means of the years, by word vectors: {listed}. The first three are "
        "GloVe; the skip-gram vectors have 50 dimensions and are made from novels, conversations "
        "and click logs."
    )


def best_a(tables):
    """C4: It holds if by all vectors the best a is from 1e-4 to 1e-3 and most a gain.

    They gain if they are ahead of the plain average; in part if the best a of some vectors is in
    that range. Judged on STS'12, of which Figure 2a is the mean.
    """
    found, plain = {}, {}
    for line in tables["sweep"]:
        if line["row"] == "WR":
            found.setdefault(line["vectors"], {})[line["a"]] = float(line["2012"])
        elif line["row"] == "avg":
            plain[line["vectors"]] = float(line["2012"])
    best = {name: max(some, key=some.get) for name, some in found.items()}
    inside = sum(1e-4 <= float(a) <= 1e-3 for a in best.values())
    wide = {
        name: [a for a, r in some.items() if r > max(some.values()) - 1]
        for name, some in found.items()
    }
    ahead = {name: sum(r > plain[name] for r in some.values()) for name, some in found.items()}
    broad = all(2 * ahead[name] > len(found[name]) for name in found)
    verdict = HOLDS if inside == len(best) and broad else IN_PART if inside else FAILS
    listed = "; ".join(
        f"{name}: ahead of the plain average at {ahead[name]} of {len(found[name])} a, best at "
        f"{best[name]}, within one point of it from {wide[name][0]} to {wide[name][-1]}"
        for name in best
    )
    return verdict, f"WR on STS'12, as in the figure, without MSRpar and MSRvid. {listed}."


def source_of_p(tables, *, points=1.0):
    """C5: It holds if WR on STS'12 (Figure 2b) differs by at most some ``points`` over all sources.

    In part if over general texts, as the paper's four corpora are, without click logs.
    """
    sources = {line["source"] for line in tables["sources"]}

    def spread(row, year, kept=sources):
        values = [
            float(line[year])
            for line in tables["sources"]
            if line["row"] == row and line["source"] in kept
        ]
        return max(values) - min(values)

    general = sources - set(LOGS)
    every, without_logs = (spread("WR", "2012", kept) for kept in (sources, general))
    others = ", ".join(
        f"{row} {spread(row, year):.1f} ('{year[2:]})"
        for row, year in (("W", "2012"), ("W", "2013"), ("WR", "2013"))
    )
    return HOLDS if every <= points else IN_PART if without_logs <= points else FAILS, (
        f"Best minus worst of {len(sources)} sources, in points: WR on STS'12, as in the figure, "
        f"{every:.1f}, and {without_logs:.1f} without the click logs of a single field; not in "
        f"the figure: {others}."
    )


def syntax(tables, *, share=0.5):
    """C6: It holds if more than a ``share`` of the words nearest to the component of SICK agree.

    A word agrees if it is among those that the paper lists; in part if more than half of that share
    do.
    """
    found = {line["sentences"]: line["nearest words"].split() for line in tables["component"]}
    words = found["sick test"]
    same = [word for word in words if word in SYNTAX]
    verdict = _above(len(same) / len(words), share)
    return verdict, (
        f"Words nearest to the component of SICK: {', '.join(words)}. {len(same)} of these "
        f"{len(words)} are among the {len(SYNTAX)} that the paper lists."
    )


def constant_partition(tables, *, nearly=0.1):
    """C7: It holds if Z varies by at most ``nearly`` of its mean over random c and at averages.

    The variation over random c of length 1 is the standard deviation; at SIF averages it is that of
    the mean. In part if the first is so.
    """
    lines = {line["c"]: line for line in tables["theory-partition-function"]}
    random, averages = (
        next(line for name, line in lines.items() if name.startswith(start))
        for start in ("200 random c, ‖c‖ = 1", "averages of SIF")
    )
    variation = float(random["cv of Z"])
    ratio = float(averages["Z/V"]) / float(random["Z/V"])
    near = variation <= nearly
    verdict = HOLDS if near and abs(ratio - 1) <= nearly else IN_PART if near else FAILS
    return verdict, (
        f"Over random c of length 1 the standard deviation of Z is {variation:.3f} of its mean. At "
        f"SIF averages of sentences, scaled to length 1, Z is {ratio:.2f} times its mean over "
        "random c."
    )


def likeliest_is_weighted(tables, *, apart=0.05):
    """C8: It holds if every cosine of the weighted average with the exact maximum is near 1.

    Near is at most ``apart`` below 1; in part if one on simulated data is.
    """
    simulated = tables["theory-simulated"]
    real = tables["theory-maximum"]
    W = [float(line["W"]) for line in simulated]
    W_real = [float(line["W"]) for line in real]
    centred = [float(line["centred W"]) for line in real]
    verdict = HOLDS if min(W + W_real) >= 1 - apart else IN_PART if max(W) >= 1 - apart else FAILS
    return verdict, (
        f"Cosine of the weighted average with the exact maximum: {min(W):.2f} to {max(W):.2f} on "
        f"simulated data, {_span(real, 'W')} on GloVe (plain average {_span(real, 'plain')}). With "
        f"centred word vectors, as the exact gradient requires, {min(centred):.2f} to "
        f"{max(centred):.2f} on GloVe."
    )


def _span(lines, column):
    values = [float(line[column]) for line in lines]
    return f"{min(values):.2f} to {max(values):.2f}"


def like_subsampling(tables, *, apart=0.1):
    """C9: It holds if both weights differ by at most ``apart`` at every p of Figure 1.

    In part if by at most two and a half times as much.
    """
    lines = tables["theory-word2vec-weights"]
    sampled, sif = list(lines[0])[1:3]
    gaps = {line["p(w)"]: abs(float(line[sampled]) - float(line[sif])) for line in lines}
    worst = max(gaps, key=gaps.get)
    verdict = HOLDS if gaps[worst] <= apart else IN_PART if gaps[worst] <= 2.5 * apart else FAILS
    return verdict, f"Largest difference over the p of Figure 1: {gaps[worst]:.3f}, at p = {worst}."


def supervised_means(tables):
    """{(task, system, order): mean of the test results over seeds}, SIF with the a of its task."""
    found = {}
    for line in tables["supervised"]:
        if line["a"] and line["a"] != chosen_a(tables["supervised"], line["task"]):
            continue
        key = line["task"], line["system"], line["order"]
        found.setdefault(key, []).append(float(line["test"]))
    return {key: sum(values) / len(values) for key, values in found.items()}


def as_features(tables, *, equal=0.5):
    """C10: It holds in part if SIF is at least equal to RNN and LSTM on a task of SICK, or behind.

    ``equal`` is the largest number of points behind the better of both; behind is meant on SST. It
    cannot hold: DAN, LSTM(no) and skip-thought, the nearest rivals, are not measured.
    """
    found = supervised_means(tables)
    trained = ("rnn", "lstm")
    lead = {
        task: found[task, "SIF", "original"]
        - max(found[task, name, "original"] for name in trained)
        for task in ("similarity", "entailment", "sentiment")
    }
    right = [lead["similarity"] > -equal, lead["entailment"] > -equal, lead["sentiment"] < 0]
    verdict = IN_PART if any(right) else FAILS
    return verdict, (
        "SIF minus the better of RNN and LSTM(o.g.): "
        + ", ".join(f"{gap:+.1f} ({task})" for task, gap in lead.items())
        + ". DAN, LSTM(no) and skip-thought, the nearest rivals in the paper, are not measured as "
        "features."
    )


def smaller_lead(tables):
    """C18: It holds if on all tasks SIF leads the better of RNN and LSTM by less than by cosine.

    In part if on some.
    """
    found = supervised_means(tables)
    means = {line["row"]: float(line["mean of the parts"]) for line in tables["pairs"]}
    unsupervised = means["WR"] - max(means["RNN"], means["LSTM(o.g.)"])
    lead = [
        found[task, "SIF", "original"] - max(found[task, "rnn", "original"],
                                             found[task, "lstm", "original"])
        for task in ("similarity", "entailment", "sentiment")
    ]  # fmt: skip
    below = sum(value < unsupervised for value in lead)
    verdict = HOLDS if below == len(lead) else IN_PART if below else FAILS
    return verdict, (
        f"Lead over the better of RNN and LSTM(o.g.): {unsupervised:+.1f} by cosine (C13), "
        f"{', '.join(f'{value:+.1f}' for value in lead)} as features."
    )


def removal_absorbed(tables, *, points=1.0):
    """C20: It holds if removal changes the mean test result of every task by less than ``points``.

    In part if of one.
    """
    found = supervised_means(tables)
    gaps = {
        task: found[task, REMOVED, "original"] - found[task, "SIF", "original"]
        for task in TASKS
        if (task, REMOVED, "original") in found
    }
    if gaps.keys() != TASKS.keys():
        return None
    near = sum(abs(gap) < points for gap in gaps.values())
    verdict = HOLDS if near == len(gaps) else IN_PART if near else FAILS
    listed = ", ".join(f"{task} {gap:+.1f}" for task, gap in gaps.items())
    return verdict, f"Points that removal changes, 3 seeds: {listed}."


def word_order(tables, *, points=1.0):
    """C11: It holds if RNN and LSTM lose at least some ``points`` on every task when shuffled.

    In part if one does on one task. The smallest loss in the paper's table, of LSTM(o.g.) on
    entailment, is 1.0.
    """
    found = supervised_means(tables)
    losses = {
        (name.upper(), task): found[task, name, "original"] - found[task, name, "shuffled"]
        for task in ("similarity", "entailment", "sentiment")
        for name in ("rnn", "lstm")
    }
    worse = sum(loss >= points for loss in losses.values())
    verdict = HOLDS if worse == len(losses) else IN_PART if worse else FAILS
    listed = ", ".join(f"{name} {task} {loss:.1f}" for (name, task), loss in losses.items())
    return verdict, f"Points lost by shuffling: {listed}."


def better_than_trained(tables, *, behind=1.0):
    """C13: It holds if WR is ahead of RNN and both LSTMs, and at most ``behind`` points behind DAN.

    On the mean over the parts; in part if one of the four is so.
    """
    means = {line["row"]: float(line["mean of the parts"]) for line in tables["pairs"]}
    trained = ("RNN", "LSTM(no)", "LSTM(o.g.)")
    right = [*(means["WR"] > means[name] for name in trained), means["WR"] >= means["DAN"] - behind]
    verdict = HOLDS if all(right) else IN_PART if any(right) else FAILS
    listed = ", ".join(f"{name} {means[name]:.1f}" for name in (*trained, "DAN"))
    return verdict, (
        f"Mean over the parts: GloVe+WR {means['WR']:.1f}, {listed}, trained from the same vectors "
        "on other pairs than the paper's."
    )


def large_margins(tables, *, points=3.0):
    """C21: It holds if on every mean WR is ahead of plain average and tf-idf by some ``points``.

    In part if on more than half of these leads. Skip-thought, the third of the paper's baselines,
    is not measured.
    """
    vectors = main_vectors(tables)
    found = group_means(parts_of(tables, vectors, "WR"))
    leads = {
        row: [
            found[group] - mean
            for group, mean in group_means(parts_of(tables, vectors, row)).items()
        ]
        for row in ("avg", "tf-idf")
    }
    verdict = _by_margin([lead for some in leads.values() for lead in some], points)
    listed = ", ".join(f"{row} {min(some):+.1f} to {max(some):+.1f}" for row, some in leads.items())
    return verdict, f"Leads of WR on the means, in points: {listed}."


def _by_margin(leads, points):
    far = sum(lead >= points for lead in leads)
    return HOLDS if far == len(leads) else IN_PART if 2 * far > len(leads) else FAILS


def _printed_margins():
    """C21 on the paper's own rows."""
    numbers = printed(5)
    sets = [f"{year} {MEAN}" for year in YEARS[:4]] + ["sick test", "twitter test"]
    leads = {
        name: [numbers[task, "GloVe+WR"] - numbers[task, system] for task in sets]
        for name, system in (("ST", "ST"), ("avg", "avg-GloVe"), ("tf-idf", "tfidf-GloVe"))
    }
    listed = ", ".join(
        f"{name} {min(some):+.1f} to {max(some):+.1f}" for name, some in leads.items()
    )
    points = choices_of(large_margins)["points"]
    verdict = _by_margin([lead for some in leads.values() for lead in some], points)
    return f"{verdict}: leads over {listed}"


def negation(tables, *, share=0.5):
    """C22: It holds if *not* has less than a ``share`` of the mean weight of the reviews' words.

    At the a that dev chose for sentiment; in part if at the smallest a that the paper tries.
    """
    lines = {(line["a"], line["word"]): float(line["weight"]) for line in tables["negation"]}
    of_all = {a: weight for (a, word), weight in lines.items() if word == EVERY_WORD}
    chosen = chosen_a(tables["supervised"], "sentiment")
    low = {a: lines[a, "not"] < share * mean for a, mean in of_all.items()}
    smallest = min(of_all, key=float)
    verdict = HOLDS if low[chosen] else IN_PART if low[smallest] else FAILS
    listed = "; ".join(
        f"{a}: {lines[a, 'not']:.2f} of {mean:.2f}"
        for a, mean in sorted(of_all.items(), key=lambda x: -float(x[0]))
    )
    return verdict, (
        f"Weight of *not*, and mean weight of the words of the reviews, by a: {listed}. Dev chose "
        f"{chosen}. That antonyms have similar vectors, the other reason that the paper gives, is "
        "not measured."
    )


def _above(number, bound):
    """`HOLDS` above a bound, `IN_PART` above half of it."""
    return HOLDS if number > bound else IN_PART if number > bound / 2 else FAILS


def _supervised_rows():
    """On the paper's own rows: where PSL+WR is ahead of the average and of what is trained."""
    numbers = printed(5)
    sets = [f"{year} {MEAN}" for year in YEARS[:4]] + ["sick test", "twitter test"]
    trained = ("avg-PSL", "PP", "PP-proj", "DAN", "RNN", "iRNN", "LSTM(no)", "LSTM(og)")
    ahead = {
        name: sum(numbers[task, "PSL+WR"] > numbers[task, name] for task in sets)
        for name in trained
        if (sets[0], name) in numbers
    }
    right = [count == len(sets) for count in ahead.values()]
    verdict = HOLDS if all(right) else IN_PART if any(right) else FAILS
    listed = ", ".join(f"{name} {count}" for name, count in ahead.items())
    return f"{verdict}: of {len(sets)} sets PSL+WR is ahead of {listed}"


def _name(group):
    return f"STS'{group[2:]}" if group in YEARS else "SICK"


def _printed_rows(table, *systems):
    """Numbers of some systems as printed, by task: ``STS'12 52.5, 58.7; ...``."""
    numbers = printed(table)
    tasks = (
        [*(f"{year} {MEAN}" for year in YEARS[:4]), "sick test", "twitter test"]
        if table == 5
        else ["similarity", "entailment", "sentiment"]
    )
    return "; ".join(
        f"{_task_name(task)} "
        + ", ".join(f"{numbers[task, name]:g}" for name in systems if (task, name) in numbers)
        for task in tasks
    )


def _task_name(task):
    return (
        f"STS'{task[2:4]}"
        if task.endswith(MEAN)
        else {"sick test": "SICK", "twitter test": "Twitter"}.get(task, task)
    )


SIMILARITY = "python benchmarks/sif.py similarity"
SUPERVISED = "python benchmarks/sif_supervised.py build/glove/150d"
THEORY = "python benchmarks/sif_theory.py build/glove/100d"
PAIRS = "python benchmarks/sif.py pairs"
_NO_PSL = (
    "The PSL vectors (PARAGRAM-SL999, of Wieting et al.) are not available here; their authors "
    "publish them at https://www.cs.cmu.edu/~jwieting/."
)

CLAIMS = [
    Claim("C1", "Weights and removal improve the plain average of GloVe by 10 % to 30 %.",
          ("similarity",), relative_gain, "abstract; 4.1, Table 1",
          f"10 % to 30 %; its rows give {printed_gains()}", SIMILARITY),
    Claim("C2", "With GloVe, weights alone improve the plain average by about 5 %, removal alone "
          "by 10 %, both by 13 %.", ("similarity",), gains_by_part, "4.1; A.1, Table 6",
          _stated_and_rows("GloVe", "5, 10, 13 %"), SIMILARITY),
    Claim("C3", "tf-idf improves the plain average too, but less than SIF does.",
          ("similarity",), better_than_tfidf, "4.1, Table 1",
          _printed_with_tfidf() + " tf-idf, GloVe+WR: "
          + _printed_rows(5, "tfidf-GloVe", "GloVe+WR"), SIMILARITY),
    Claim("C4", "The best a is from 1e-4 to 1e-3, and a wide range of a improves on the plain "
          "average.", ("sweep",), best_a, "4.1.1, Figure 2a", "1e-4 to 1e-3",
          "python benchmarks/sif.py sweep"),
    Claim("C5", "It hardly matters which corpus p(w) comes from: the results of four corpora are "
          "almost the same.", ("sources",), source_of_p, "4.1.1, Figure 2b",
          command="python benchmarks/sif.py sources"),
    Claim("C6", "The removed component is roughly syntax or common words.", ("component",), syntax,
          "4.1", f"nearest words, SICK: {', '.join(SYNTAX)}", "python benchmarks/sif.py component"),
    Claim("C7", "Z_c is nearly the same for all directions c (an assumption).",
          ("theory-partition-function",), constant_partition, "3", command=THEORY),
    Claim("C8", "The likeliest c of a sentence is nearly the weighted average of its words.",
          ("theory-simulated", "theory-maximum"), likeliest_is_weighted, "3, equation (3)",
          command=THEORY),
    Claim("C9", "The weights of word2vec's sub-sampling are close to those of SIF with a = 1e-4.",
          ("theory-word2vec-weights",), like_subsampling, "3.1, Figure 1",
          "two curves, no numbers", THEORY),
    Claim("C10", "As fixed features, the vectors are best on two of three tasks (SICK) and not "
          "better than RNN and LSTM on the third (SST).", ("supervised",), as_features,
          "4.2, Table 2", "SIF, DAN, skip-thought, LSTM(no), LSTM(o.g.), RNN: "
          + _printed_rows(2, "Ours", "DAN", "skip-thought", "LSTM(no)", "LSTM(o.g.)", "RNN")
          + " (no skip-thought for the last two)", SUPERVISED),
    Claim("C11", "Word order plays some role: RNN and LSTM lose noticeably when words are "
          "shuffled.", ("supervised",), word_order, "4.3, Table 3",
          "lost by RNN, LSTM(no), LSTM(o.g.): similarity 18.6, 8.2, 4.0; entailment 14.7, 5.0, "
          "1.0; sentiment 2.3, 3.7, 5.1", SUPERVISED),
    Claim("C12", "On IMDB SIF features are behind NB-SVM with all labels and ahead with 200.", (),
          not_measured("The IMDB reviews are not available here; they are published at "
                       "https://ai.stanford.edu/~amaas/data/sentiment/."), "A.3, Table 8",
          "NB-SVM, SIF: 50k .91, .85; 1k .84, .82; 200 .73, .77"),
    Claim("C13", "GloVe+WR is better than the trained RNN and LSTM and comparable to DAN.",
          ("pairs",), better_than_trained, "4.1, Table 1",
          "GloVe+WR, RNN, LSTM(no), LSTM(o.g.), DAN: "
          + _printed_rows(5, "GloVe+WR", "RNN", "LSTM(no)", "LSTM(og)", "DAN"), PAIRS),
    Claim("C14", "With PSL vectors, weights alone improve the plain average by 10 %, removal alone "
          "by 10 %, both by 13 %.", (), not_measured(_NO_PSL), "A.1, Table 6",
          _stated_and_rows("PSL", "10, 10, 13 %")),
    Claim("C15", "PSL+WR is best on four of six tasks, comparable to the best on the other two, "
          "and best on 12 of 22 parts.", (), not_measured(_NO_PSL), "4.1, Table 1; A.1, Table 5",
          "PSL+WR, PP-proj: " + _printed_rows(5, "PSL+WR", "PP-proj")),
    Claim("C16", "Only on rare parts is SIF worse than the plain average.", ("similarity",),
          seldom_worse, "A.1, Table 5", _printed_worse(), SIMILARITY),
    Claim("C17", "The method works with word vectors of different kinds.",
          ("similarity", "skip-gram"), any_vectors, "4.1; 4.1.1, Figure 2a",
          "curves of three kinds, no numbers", f"{SIMILARITY} skip-gram"),
    Claim("C18", "As features the vectors have a smaller lead than on similarity.",
          ("supervised", "pairs"), smaller_lead, "4.2", command=SUPERVISED),
    Claim("C19", "On SNLI a network on SIF vectors is slightly better than the sum of words, the "
          "RNN and the LSTM.", (), not_measured("SNLI's 570,000 pairs are not available "
                                           "here; they are published at https://nlp.stanford.edu/projects/snli/."),
          "A.3, Table 7",
          "test: SIF 78.2, sum 75.3, RNN 72.2, LSTM 77.6; train: 83.9, 79.3, 73.1, 84.8"),
    Claim("C20", "For the supervised tasks the component need not be removed: the classifier's "
          "projection can absorb the removal.", ("supervised",), removal_absorbed, "A.2",
          command=SUPERVISED),
    Claim("C21", "GloVe+WR is ahead of the unsupervised baselines by large margins.",
          ("similarity",), large_margins, "4.1; 5", _printed_margins(), SIMILARITY),
    Claim("C22", "A guess why sentiment fails: words such as *not*, which may matter there, get "
          "much less weight.", ("negation", "supervised"), negation, "4.2",
          command="python benchmarks/sif.py negation"),
    Claim("C23", "Over all tasks PSL+WR is ahead of the average of the same vectors and of all "
          "supervised models that start from them.", (), not_measured(_NO_PSL), "4.1",
          _supervised_rows()),
]  # fmt: skip
