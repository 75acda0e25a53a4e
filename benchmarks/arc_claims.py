"""The claims of Hu, Lu, Li and Chen (NIPS 2014), each with a verdict that follows from the CSV.

A claim's function takes the tables of docs/results/arc (lists of dicts by name) and returns the
verdict and the numbers that it follows from. A claim is judged once its rows are there. The rule of
a verdict is the docstring of its function, and our free choices are its keyword-only parameters.
"""

import csv
from itertools import combinations
from pathlib import Path
from statistics import mean

from arc_lab import MODELS, TOWERS
from arc_parts import (
    BATCH_PAIRS,
    BATCHES,
    DEFAULT_RATE,
    FIXED,
    LEARNED,
    OWN,
    REFERENCE,
    best_dev,
    reported,
    searched_rate,
)
from claims import FAILS, HOLDS, IN_PART, NOTHING, UNTESTED, Claim, not_measured

PRINTED = Path(__file__).with_name("arc_printed.csv")

NAMES = {
    "bag": "two-tower bag",
    "lstm": "two-tower LSTM",
    "random": "random guess",
    "deepmatch": "DeepMatch",
    "wordembed": "WordEmbed",
    "senmlp": "SenMLP",
    "senna": "SENNA+MLP",
    "urae": "uRAE+MLP",
    "arc1": "ARC-I",
    "arc2": "ARC-II",
    "always 0": "always 0",
    "always 1": "always 1",
    "rus": "Rus et al. (2008)",
    "socher": "Socher et al. (2011), section 5.4",
}
# Two equal networks differ by rounding only.
_ROUNDING = 1e-9
# A gain or a loss in P@1 below it is not one: about the standard error of 4,000 queries.
POINT = 0.01
# A coin, and one title of five drawn at random; and three standard errors of 4,000 queries, by
# which a share is above them.
_COIN, _CHANCE = 0.5, 0.2
_ABOVE_COIN, _ABOVE_CHANCE = 0.024, 0.019
# Figures within this of each other are close.
_CLOSE = 2 * POINT
# The section whose text has the state of the art on paraphrases.
STATE_OF_THE_ART = "5.4"
_NO_MSRP = (
    UNTESTED,
    "The Microsoft Research Paraphrase Corpus is not here, because its licence does not allow it "
    "to be included; it is published at "
    "https://www.microsoft.com/en-us/download/details.aspx?id=52398. The command measures it.",
)
# The paper's figure with random negatives (footnote 5).
_RANDOM_NEGATIVES = 0.74


def printed(place):
    """{(system, measure): number of the paper} of one of its tables, or of a section's text."""
    with open(PRINTED, encoding="utf-8", newline="") as lines:
        return {
            (line["system"], line["measure"]): float(line["value"])
            for line in csv.DictReader(lines)
            if line["place"] == str(place)
        }


def means(lines, column):
    """{model: mean of a column over its seeds}."""
    models = dict.fromkeys(line["model"] for line in lines)
    return {
        model: mean(float(line[column]) for line in lines if line["model"] == model)
        for model in models
    }


def as_printed(lines):
    """The rows of the paper's systems with fixed vectors, at the rates that are best on dev."""
    return [
        line
        for line in reported(lines)
        if line["model"] not in TOWERS and line["vectors"] in (FIXED, OWN)
    ]


def _verdict(facts):
    """`HOLDS` if all facts are true, `IN_PART` if some are."""
    return HOLDS if all(facts) else IN_PART if any(facts) else FAILS


def of_claim(tables, claim):
    """{(gate, what): value as written} of a construction."""
    return {
        (line["gate"], line["what"]): line["value"]
        for line in tables["constructions"]
        if line["claim"] == claim
    }


def _percent(share, digits=1):
    return f"{100 * float(share):.{digits}f} %"


def padding(tables):
    """C1: It holds if the scores of a network that pads do not change with either gate.

    In part if they do not change with the gate `and`.
    """
    own, inside = of_claim(tables, "C1"), of_claim(tables, "C5")
    differ = {
        gate: float(inside[gate, "share of pairs that differ"]) for gate in ("and", "printed")
    }
    verdict = FAILS if differ["and"] else IN_PART if differ["printed"] else HOLDS
    why = (
        "True if a cell of layer 1 is on only where both windows begin at a word (gate `and`, the "
        f"default). With equation (3) to the letter (`printed`), {_percent(differ['printed'])} of "
        "random pairs have another score than the ARC-I that the network was built from."
    )
    if own:
        why += (
            " On completion "
            f"{_percent(own['printed', 'share of its cells where a text has no word'])} of the "
            "cells that are on then lie where one text has no word, and an ARC-II trained with "
            f"`and` falls from P@1 {float(own['and', 'P@1 of the trained ARC-II']):.3f} to "
            f"{float(own['printed', 'P@1 of the trained ARC-II']):.3f} if it is switched."
        )
    why += " More in section 15 of [gradients.md](gradients.md)."
    return verdict, why


def contains(tables):
    """C5: It holds if a constructed ARC-II has the scores of its ARC-I with both gates.

    In part if with one.
    """
    found = of_claim(tables, "C5")
    gaps = {gate: found[gate, "largest difference of scores"] for gate in ("and", "printed")}
    same = {gate: float(gap) < _ROUNDING for gate, gap in gaps.items()}
    verdict = HOLDS if all(same.values()) else IN_PART if any(same.values()) else FAILS
    return verdict, (
        "Constructed: an ARC-II with the weights of an ARC-I gives random pairs the same scores "
        f"to {gaps['and']} with the gate `and`; with `printed` they differ by up to "
        f"{gaps['printed']}."
    )


def rank_one(tables):
    """C6: It holds if devoted maps have rank one with both gates; in part if with one."""
    found = of_claim(tables, "C6")
    ranks = {gate: int(found[gate, "largest rank of a devoted map"]) for gate in ("and", "printed")}
    one = [rank == 1 for rank in ranks.values()]
    return HOLDS if all(one) else IN_PART if any(one) else FAILS, (
        f"The largest rank over random pairs is {ranks['and']} with the gate `and` and "
        f"{ranks['printed']} with `printed`."
    )


def pooling(tables):
    """C7: It holds if 2D pooling of a devoted map is 1D pooling with both gates.

    In part if with one.
    """
    found = of_claim(tables, "C7")
    gaps = {gate: found[gate, "largest difference of pooled cells"] for gate in ("and", "printed")}
    same = [float(gap) < _ROUNDING for gap in gaps.values()]
    return HOLDS if all(same) else IN_PART if any(same) else FAILS, (
        f"Cells over words of the title differ by at most {gaps['and']} with `and` and "
        f"{gaps['printed']} with `printed`."
    )


def order_kept(tables, *, above_chance=_ABOVE_CHANCE):
    """C4: It holds if ARC-II so trained is more than ``above_chance`` above 20 %, and ARC-I is not.

    In part if both are.
    """
    found = means(tables["order_only"], "test")
    if not {"arc1", "arc2"} <= found.keys():
        return None
    order = means(tables["order_only"], "order")
    finds = {model: found[model] > _CHANCE + above_chance for model in found}
    verdict = FAILS if not finds["arc2"] else IN_PART if finds["arc1"] else HOLDS
    listed = " and ".join(f"{NAMES[model]} {_percent(found[model])}" for model in ("arc2", "arc1"))
    return verdict, (
        f"P@1 among random negatives, trained with no other negative than the title's own words in "
        f"a wrong order: {listed}; chance is 20 %. The right order scores more than the wrong one "
        f"in {_percent(order['arc2'])} and {_percent(order['arc1'])} of cases."
    )


def order_unasked(tables, *, from_60=0.03):
    """C8: It holds if ARC-I and ARC-II prefer the right order in about 60 % of cases.

    About is at most ``from_60`` away; in part if both are above a coin by three standard errors.
    Each model has the rate that is best on dev.
    """
    lines = as_printed(tables["completion"])
    found = means(lines, "order")
    if not {"arc1", "arc2"} <= found.keys():
        return None
    shares = [found[model] for model in ("arc1", "arc2")]
    every = means([x for x in tables["completion"] if x["vectors"] != LEARNED], "order")
    named = [f"{NAMES[m]} {_percent(every[m])}" for m in ("senna", "lstm") if m in every]
    others = f" For comparison: {', '.join(named)}." if named else ""
    listed = ", ".join(
        f"{NAMES[m]} {_percent(found[m])} ({_trainings(lines, m)})" for m in ("arc2", "arc1")
    )
    about_60 = all(abs(share - 0.6) <= from_60 for share in shares)
    verdict = HOLDS if about_60 else IN_PART if min(shares) > _COIN + _ABOVE_COIN else FAILS
    return verdict, (f"{listed} on completion; 50 % is a coin.{others}")


def _trainings(lines, model):
    """The rate and the seeds of a model's lines: ``rate 0.003, seeds 0, 1, 2``."""
    own = [line for line in lines if line["model"] == model]
    return f"rate {own[0]['rate']}, {_seeds(line['seed'] for line in own)}"


def _seeds(seeds):
    listed = sorted(seeds)
    return f"seed{'s' * (len(listed) > 1)} {', '.join(listed)}"


def auxiliary(tables, *, gain=POINT):
    """C9: It holds if neither ARC-I nor ARC-II gains more than ``gain`` in P@1 by the word order.

    In part if one does not.
    """
    own = means(tables["auxiliary"], "test")
    same = [
        line
        for line in tables["completion"]
        if (line["vectors"], line["rate"], line["seed"]) == (FIXED, str(DEFAULT_RATE), "0")
    ]
    base = means(same, "test")
    both = [model for model in ("arc1", "arc2") if model in own and model in base]
    if len(both) < 2:
        return None
    gains = {model: own[model] - base[model] for model in both}
    helped = [more > gain for more in gains.values()]
    verdict = FAILS if all(helped) else IN_PART if any(helped) else HOLDS
    listed = ", ".join(f"{NAMES[model]} {100 * more:+.1f} points" for model, more in gains.items())
    return verdict, (
        f"Change of P@1 on completion, random negatives, rate {DEFAULT_RATE}, seed 0: {listed}."
    )


def _order_of_table(number, column, name):
    """A function of the tables: whether the systems of a printed table keep their order."""

    def judge(tables):
        """It holds if every pair of systems is in the printed order; in part if most pairs are."""
        paper = {model: value for (model, measure), value in printed(number).items()
                 if measure in ("P@1", "accuracy")}  # fmt: skip
        if name == "labelled":
            lines = [line for some in chosen(tables[name]).values() for line in some]
            found = means(lines, column)
        else:
            found = means(as_printed(tables[name]), column)
        systems = [model for model in found if model in paper and model in _TRAINED_SYSTEMS]
        pairs = [pair for pair in combinations(systems, 2) if paper[pair[0]] != paper[pair[1]]]
        if REFERENCE not in systems:
            return None
        same = [(paper[a] > paper[b]) == (found[a] > found[b]) for a, b in pairs]
        verdict = HOLDS if all(same) else IN_PART if 2 * sum(same) > len(same) else FAILS
        ranked = sorted(systems, key=found.__getitem__, reverse=True)
        listed = " > ".join(f"{NAMES[model]} {100 * found[model]:.1f}" for model in ranked)
        return verdict, f"{sum(same)} of {len(same)} pairs of systems are as printed: {listed}."

    return judge


_TRAINED_SYSTEMS = ("deepmatch", "wordembed", "senmlp", "senna", "urae", "arc1", "arc2")
CONVOLUTIONAL, BAGS = ("arc2", "arc1", "senna"), ("wordembed", "deepmatch")
TASKS = ("completion", "response")


def arc2_is_ahead(tables, *, p=0.05):
    """C10: It holds if ARC-II is ahead of all others on both tasks with many pairs, at such a p.

    In part if on one of the two.
    """
    ahead, listed = [], []
    for name in TASKS:
        lines = [
            line
            for line in tables["differences"]
            if (line["set"], line["vectors"], line["part"]) == (name, FIXED, "test")
            and line["system"] not in TOWERS
        ]
        won = [x for x in lines if float(x["difference"]) < 0 and float(x["p"]) < p]
        lost = [x for x in lines if float(x["difference"]) > 0 and float(x["p"]) < p]
        ahead.append(bool(lines) and len(won) == len(lines))
        behind = ", ".join(NAMES[x["system"]] for x in lost) or "none"
        listed.append(f"on {name} ahead of {len(won)} of {len(lines)}, behind {behind}")
    return _verdict(ahead), f"At p < {p}, with fixed vectors: {'; '.join(listed)}."


def smaller_lead(tables):
    """C15: It holds if ARC-II is ahead of ARC-I, and on completion less than on responses.

    In part if it is only less.
    """
    leads = []
    for name in TASKS:
        found = means(as_printed(tables[name]), "test")
        if not {"arc1", "arc2"} <= found.keys():
            return None
        leads.append(found["arc2"] - found["arc1"])
    completion, response = leads
    verdict = HOLDS if 0 < completion < response else IN_PART if completion < response else FAILS
    return verdict, (
        f"ARC-II minus ARC-I in points of P@1: completion {100 * completion:+.1f}, responses "
        f"{100 * response:+.1f}."
    )


def convolution_against_bags(tables):
    """C16: It holds if every convolutional model is ahead of every bag of words on both tasks.

    In part if one is on one task.
    """
    facts, listed = [], []
    for name in TASKS:
        found = means(as_printed(tables[name]), "test")
        for model in CONVOLUTIONAL:
            for bag in BAGS:
                if {model, bag} <= found.keys():
                    facts.append(found[model] > found[bag])
                    listed.append((name, model, bag))
    if not facts:
        return None
    lost = [f"{NAMES[m]} behind {NAMES[b]} ({n})"
            for fact, (n, m, b) in zip(facts, listed, strict=True) if not fact]  # fmt: skip
    return _verdict(facts), (
        f"Ahead in {sum(facts)} of {len(facts)} comparisons"
        + (f"; {', '.join(lost)}." if lost else ".")
    )


def trained_vectors(tables, *, gain=POINT):
    """C17: It holds if every model gains more than ``gain`` in P@1 by training its word vectors.

    In part if one does. On the seeds that were trained both ways.
    """
    fixed, learned = (
        {(line["model"], line["seed"]): float(line["test"])
         for line in reported(tables["completion"]) if line["vectors"] == kind}
        for kind in (FIXED, LEARNED)
    )  # fmt: skip
    gains = {}
    for model, seed in sorted(fixed.keys() & learned.keys()):
        gains.setdefault(model, {})[seed] = learned[model, seed] - fixed[model, seed]
    if not gains:
        return None
    listed = ", ".join(
        f"{NAMES[model]} {100 * mean(of_seed.values()):+.1f} ({_seeds(of_seed)})"
        for model, of_seed in gains.items()
    )
    verdict = _verdict([mean(of_seed.values()) > gain for of_seed in gains.values()])
    return verdict, f"Change of P@1 on completion in points: {listed}."


def random_negatives(tables):
    """C18: It holds if ARC-II reaches 74 % with random negatives."""
    found = means(as_printed(tables["completion"]), "test")
    if REFERENCE not in found:
        return None
    learned = means([x for x in reported(tables["completion"]) if x["vectors"] == LEARNED], "test")
    trained = f", {_percent(learned[REFERENCE])} with trained ones" if REFERENCE in learned else ""
    return HOLDS if found[REFERENCE] >= _RANDOM_NEGATIVES else FAILS, (
        f"{_percent(found[REFERENCE])} with fixed word vectors{trained}, from about a "
        "fourteenth of the paper's pairs (section 5.2)."
    )


def urae_is_last(tables):
    """C19: It holds if uRAE+MLP is last with random and with similar negatives.

    In part if with one kind.
    """
    lines = as_printed(tables["completion"])
    found = {column: means(lines, column) for column in ("test", "similar")}
    if "urae" not in found["test"]:
        return None
    last = {column: min(some, key=some.get) for column, some in found.items()}
    return _verdict([model == "urae" for model in last.values()]), (
        f"uRAE+MLP {_percent(found['test']['urae'])} with random negatives and "
        f"{_percent(found['similar']['urae'])} with similar ones; last are "
        f"{NAMES[last['test']]} and {NAMES[last['similar']]}."
    )


def of_variant(tables, variant):
    """{model: (best dev P@1 at the rate of the search, with a variant)}."""
    base = {
        line["model"]: best_dev(line)
        for line in tables["rates"]
        if line["optimiser"] == "adam"
        and float(line["rate"]) == searched_rate(tables["rates"], line["model"])
    }
    return {
        line["model"]: (base[line["model"]], best_dev(line))
        for line in tables["variants"]
        if line["variant"] == variant and line["model"] in base
    }


def _variant_helps(variant, sign):
    """A function of the tables: whether a variant is better (+1) or worse (-1) on dev."""

    def judge(tables, *, change=POINT):
        """It holds if dev P@1 changes as the paper says by more than ``change`` in all models.

        In part if in some.
        """
        found = of_variant(tables, variant)
        gains = {model: after - before for model, (before, after) in found.items()}
        if not gains:
            return None
        listed = ", ".join(f"{NAMES[model]} {100 * gain:+.1f}" for model, gain in gains.items())
        return _verdict([sign * gain > change for gain in gains.values()]), (
            f"Change of dev P@1 in points with {variant}, from 10,000 pairs: {listed}."
        )

    return judge


def contains_senna(tables):
    """C3: It holds if an ARC-I whose pool reads all windows has the scores of SENNA+MLP."""
    gap = of_claim(tables, "C3").get(("", "largest difference of scores"))
    if gap is None:
        return None
    return HOLDS if float(gap) < _ROUNDING else FAILS, (
        "Constructed: on random texts of at most 4 words, whose two windows one pool reads, ARC-I "
        f"and SENNA+MLP with the same weights differ by at most {gap}."
    )


def best_of_2008(tables, *, close=_CLOSE):
    """C20: It holds if ARC-I and ARC-II are less than ``close`` below the best of 2008.

    In accuracy and in F1; in part if in one of these four.
    """
    lines = _of_paraphrases(tables)
    if not lines:
        return _NO_MSRP
    target = {name: printed(3)["rus", name] / 100 for name in ("accuracy", "F1")}
    near, listed = [], []
    for name, goal in target.items():
        found = means(lines, name.lower())
        near += [found[model] > goal - close for model in ("arc1", "arc2")]
        listed.append(f"{name} ARC-I {_percent(found['arc1'])}, ARC-II {_percent(found['arc2'])}")
    return _verdict(near), f"On that corpus: {'; '.join(listed)}."


def behind_the_best(tables):
    """C27: It holds if the 95 % intervals of ARC-I and ARC-II are below the state of the art.

    In part if one is.
    """
    lines = _of_paraphrases(tables)
    if not lines:
        return _NO_MSRP
    best = printed(STATE_OF_THE_ART)["socher", "accuracy"] / 100
    high = {model: max(float(line["high"]) for line in lines if line["model"] == model)
            for model in ("arc1", "arc2")}  # fmt: skip
    listed = ", ".join(f"{NAMES[model]} {_percent(share)}" for model, share in high.items())
    return _verdict([share < best for share in high.values()]), (
        f"Upper ends of the 95 % intervals of accuracy on that corpus: {listed}."
    )


def _of_paraphrases(tables):
    """The chosen rows of ARC-I and ARC-II on the paper's corpus; none without both."""
    best = chosen([line for line in tables["labelled"] if line["set"] == "msrp"])
    both = [best.get(model, []) for model in ("arc1", "arc2")]
    return [line for some in both for line in some] if all(both) else []


def plain_descent(tables, *, behind=POINT):
    """C21: It holds if plain descent is at most ``behind`` behind Adam for ARC-I and ARC-II on dev.

    Each at its best rate; in part if for one.
    """
    best = {}
    for line in tables["rates"]:
        key = line["model"], line["optimiser"]
        best[key] = max(best.get(key, (0, "")), (best_dev(line), line["rate"]))
    both = [m for m in ("arc1", "arc2") if {(m, "adam"), (m, "sgd")} <= best.keys()]
    if not both:
        return None
    listed = "; ".join(
        f"{NAMES[m]} {_percent(best[m, 'sgd'][0])} (rate {best[m, 'sgd'][1]}) against "
        f"{_percent(best[m, 'adam'][0])} with Adam ({best[m, 'adam'][1]})"
        for m in both
    )
    good = [best[m, "sgd"][0] > best[m, "adam"][0] - behind for m in both]
    return _verdict(good), f"Dev P@1 from 10,000 pairs: {listed}."


def more_data(tables):
    """C11: It holds if ARC-II gains on WordEmbed from the fewest to the most pairs, and passes it.

    In part if it only gains.
    """
    lines = tables["learning"]
    sizes = sorted({int(line["pairs"]) for line in lines})
    gaps = {}
    for size in sizes:
        found = means([line for line in lines if int(line["pairs"]) == size], "test")
        if {"arc2", "wordembed"} <= found.keys():
            gaps[size] = found["arc2"] - found["wordembed"]
    if len(gaps) < 2:
        return None
    first, *_, last = gaps.values()
    verdict = FAILS if last <= first else HOLDS if last > 0 else IN_PART
    listed = ", ".join(f"{100 * gap:+.1f} from {size:,}" for size, gap in gaps.items())
    return verdict, f"ARC-II minus WordEmbed in points of P@1, by pairs of training: {listed}."


def simple_baseline(tables):
    """C12: It holds if WordEmbed is ahead of more than half of the other pair models.

    In part if of one.
    """
    found = means(as_printed(tables["completion"]), "test")
    others = [m for m in ("deepmatch", "senmlp", "urae", "senna", "arc1", "arc2") if m in found]
    if "wordembed" not in found or len(others) < 2:
        return None
    behind = [model for model in others if found[model] < found["wordembed"]]
    verdict = HOLDS if len(behind) > len(others) / 2 else IN_PART if behind else FAILS
    listed = ", ".join(NAMES[model] for model in behind) or "none"
    return verdict, (
        f"On completion WordEmbed reaches {100 * found['wordembed']:.1f} and is ahead of "
        f"{len(behind)} of {len(others)} other pair models ({listed})."
    )


def small_sets(tables, *, gain=POINT):
    """C14: It holds if dropout gains, and the best epoch is ahead of the last, by over ``gain``.

    In accuracy on SICK, of ARC-I and ARC-II each, with fixed vectors, seeds averaged; in part if
    one of these four is so.
    """
    lines = {}
    for line in tables["labelled"]:
        if (line["set"], line["vectors"]) == ("sick", FIXED):
            lines.setdefault((line["model"], float(line["dropout"])), []).append(line)
    models = [m for m in ("arc2", "arc1") if {(m, 0.0), (m, 0.5)} <= lines.keys()]
    if not models:
        return None
    gains, lost = {}, {}
    for model in models:
        without, dropped = lines[model, 0.0], lines[model, 0.5]
        gains[model] = means(dropped, "accuracy")[model] - means(without, "accuracy")[model]
        curves = [list(map(float, line["dev"].split())) for line in without]
        lost[model] = mean(max(dev) - dev[-1] for dev in curves)
    good = [x > gain for x in (*gains.values(), *lost.values())]
    verdict = HOLDS if all(good) else IN_PART if any(good) else FAILS
    dropout, early = (
        ", ".join(f"{NAMES[m]} {100 * x:+.1f}" for m, x in some.items()) for some in (gains, lost)
    )
    return verdict, (
        f"On SICK ({_seeds(line['seed'] for line in without)}) dropout 0.5 changes the test "
        f"accuracy in points: {dropout}. Without dropout the best epoch is ahead of the last one "
        f"on dev by: {early}."
    )


def chosen(lines):
    """{model: its rows of labelled.csv with the vectors and the dropout that are best on dev}."""
    found = {}
    for line in lines:
        settings = line["vectors"], line["dropout"]
        found.setdefault(line["model"], {}).setdefault(settings, []).append(line)
    return {
        model: max(of_model.values(), key=lambda rows: mean(map(best_dev, rows)))
        for model, of_model in found.items()
    }


def easier_responses(tables):
    """C29: It holds if every system has a higher P@1 on responses than on completion.

    On completion with similar negatives, as in the paper; in part if more than half have.
    """
    completion, response = tables["completion"], means(as_printed(tables["response"]), "test")
    easier = {}
    for column in ("similar", "test"):
        found = means(as_printed(completion), column)
        both = [model for model in response if model in found]
        easier[column] = sum(response[model] > found[model] for model in both)
    if not both:
        return None
    higher = easier["similar"]
    verdict = HOLDS if higher == len(both) else IN_PART if 2 * higher > len(both) else FAILS
    return verdict, (
        f"{higher} of {len(both)} systems have more on responses than on completion with similar "
        f"negatives, {easier['test']} more than with random ones, which responses have."
    )


def unlike_deepmatch(tables):
    """C30: It holds if WordEmbed is ahead of DeepMatch on both tasks; in part if on one."""
    found = {name: means(as_printed(tables[name]), "test") for name in TASKS}
    if not all({"wordembed", "deepmatch"} <= some.keys() for some in found.values()):
        return None
    leads = {name: some["wordembed"] - some["deepmatch"] for name, some in found.items()}
    listed = ", ".join(f"{name} {100 * lead:+.1f}" for name, lead in leads.items())
    return _verdict([lead > 0 for lead in leads.values()]), (
        f"WordEmbed minus DeepMatch in points of P@1: {listed}."
    )


def order_preserved(tables):
    """C31: It holds if the words that a cell reads begin and end later in every later row.

    In all layers, found by changing one word at a time; in part if they never begin or end earlier.
    """
    found = of_claim(tables, "C31")
    earlier, later = (
        int(found.get(("", f"neighbouring rows whose words begin or end {what}"), -1))
        for what in ("earlier", "no earlier, and one of them later")
    )
    rows = int(found.get(("", "neighbouring rows"), -1))
    if rows < 0:
        return None
    verdict = HOLDS if later == rows else FAILS if earlier else IN_PART
    return verdict, (
        f"Of {rows} neighbouring rows of cells, in all layers of random networks, {later} read "
        f"words of which the first or the last is later and none earlier, and {earlier} an earlier "
        "one. "
        "The proof is [below](#order-is-kept)."
    )


def large_margins(tables, *, points=0.02):
    """C32: It holds if ARC-II is ahead of each other system by ``points`` of P@1 on both tasks.

    On completion ARC-I is left out, as in the paper; in part if it is so of more than half.
    """
    facts, least = [], {}
    for name, column in zip(TASKS, ("similar", "test"), strict=True):
        found = means(as_printed(tables[name]), column)
        if REFERENCE not in found:
            return None
        leads = {
            model: found[REFERENCE] - share
            for model, share in found.items()
            if model != REFERENCE and (name, model) != ("completion", "arc1")
        }
        facts += [lead >= points for lead in leads.values()]
        nearest = min(leads, key=leads.get)
        least[name] = f"{NAMES[nearest]} {100 * leads[nearest]:+.1f}"
    verdict = HOLDS if all(facts) else IN_PART if 2 * sum(facts) > len(facts) else FAILS
    listed = ", ".join(f"{name} {lead}" for name, lead in least.items())
    return verdict, f"Smallest leads of ARC-II in points of P@1: {listed}."


def batches(tables, *, gain=POINT):
    """C25: It holds if ARC-I and ARC-II gain more than ``gain`` by 100 or 200 in place of 20.

    In best dev P@1, at the better of both sizes and, for each size, the better of two rates; in
    part if one does.
    """
    best = {}
    for line in tables.get("batches", ()):
        key = line["model"], int(line["batch"])
        best[key] = max(best.get(key, 0), best_dev(line))
    both = [m for m in ("arc1", "arc2") if {(m, size) for size in BATCHES} <= best.keys()]
    if not both:
        return None
    gains = [max(best[m, size] for size in BATCHES[1:]) - best[m, BATCHES[0]] for m in both]
    listed = "; ".join(
        f"{NAMES[m]} {', '.join(f'{_percent(best[m, size])} with {size}' for size in BATCHES)}"
        for m in both
    )
    return _verdict([more > gain for more in gains]), (
        f"Best dev P@1 from {BATCH_PAIRS:,} pairs, plain descent, by triples in a batch: {listed}."
    )


def relu(tables, *, point=POINT):
    """C24: It holds if ReLU's best dev P@1 is at most a ``point`` below that of sigmoid and tanh.

    And if it passes their best after no more epochs than they took, each at its best rate; in part
    if one of these four is so.
    """
    best = {}
    for line in tables.get("activations", ()):
        found = best_dev(line), [float(x) for x in line["dev"].split()], line["rate"]
        best[line["activation"]] = max(best.get(line["activation"], (0, [], "")), found)
    if "relu" not in best or len(best) < 2:
        return None
    own, curve, rate = best.pop("relu")
    facts, listed = [], []
    for name, (top, dev, other_rate) in best.items():
        epoch = 1 + dev.index(top)
        sooner = next((k for k, x in enumerate(curve, 1) if x >= top), None)
        facts += [own >= top - point, sooner is not None and sooner <= epoch]
        reached = f"reaches after {sooner}" if sooner else "does not reach"
        listed.append(
            f"{name} {_percent(top)} after {epoch} epochs (rate {other_rate}), which ReLU {reached}"
        )
    return _verdict(facts), (
        f"A small ARC-I in PyTorch, dev P@1 from 10,000 pairs: ReLU {_percent(own)} (rate {rate}); "
        f"{'; '.join(listed)}."
    )


_SETTINGS = (
    "Skip-gram vectors of 50 dimensions and as many layers; maps: "
    + "; ".join(f"{NAMES[m]} {', '.join(map(str, MODELS[m]['maps']))}" for m in ("arc1", "arc2"))
    + ". Other numbers of maps were not tried."
)


def _claim(key, place, text, needs, judge, printed=None, options=""):
    """A claim whose tables are parts of `make arc`."""
    command = f"python benchmarks/arc.py {' '.join(needs)}{options}" if needs else ""
    given = {} if printed is None else {"printed": printed}
    return Claim(key, text, needs, judge, place=place, command=command, **given)


CLAIMS = (
    _claim("T1", "table 1, section 5.2", "Completion: order of seven systems; ARC-II first, ahead "
           "of ARC-I", ("completion",), _order_of_table(1, "similar", "completion"),
           "25.76 to 49.62"),
    _claim("T2", "table 2, section 5.3", "Responses: order of six systems; ARC-II first, ARC-I and "
           "SENNA+MLP next", ("response",), _order_of_table(2, "test", "response"),
           "49.85 to 61.95"),
    _claim("T3", "table 3, section 5.4", "Paraphrases: order of five systems; ARC-II first (here "
           "on SICK)", ("labelled",), _order_of_table(3, "accuracy", "labelled"), "68.4 to 69.9"),
    _claim("E1–E8", "equations (1)–(6), pooling in section 2, loss in section 4",
           "Definitions of the networks and of the hinge", (),
           lambda _tables: (NOTHING, "Computed; [misprints](#misprints) are listed.")),
    _claim("F1–F6", "figures 1–6", "Drawings of the networks and of their pooling", (),
           lambda _tables: (NOTHING, "What they illustrate is in C1 and C5 to C7.")),
    _claim("C1", "section 2, length variability", "The gate, with pooling and an activation that "
           "is not negative, keeps artefacts of padding away in all layers", ("constructions",),
           padding),
    _claim("C3", "section 2.1", "With two layers and an unlimited pool the sentence model is that "
           "of SENNA", ("constructions",), contains_senna),
    _claim("C4", "section 3.3", "Trained on triples whose negative is the second text with its "
           "words shuffled, ARC-II finds second texts among usual negatives somewhat; ARC-I does "
           "not", ("order_only",), order_kept),
    _claim("C5", "section 3.3", "ARC-I is a special case of ARC-II", ("constructions",), contains),
    _claim("C6", "section 3.3", "A map devoted to one text has rank one", ("constructions",),
           rank_one),
    _claim("C7", "section 3.3", "2D pooling of a devoted map reduces to 1D pooling",
           ("constructions",), pooling),
    _claim("C8", "section 5.5", "Random negatives alone teach ARC-I and ARC-II some of the right "
           "word order", ("completion",), order_unasked, "about 60 %"),
    _claim("C9", "section 5.5", "Word order as an additional task does not help matching",
           ("auxiliary", "completion"), auxiliary),
    _claim("C10", "section 5.5", "With many pairs (tables 1 and 2) ARC-II is significantly ahead "
           "of the others", ("completion", "response", "differences"), arc2_is_ahead,
           "ahead of the next by 2.11 and 2.77"),
    _claim("C11", "section 5.4", "The models generally need 100,000 instances or more to work "
           "well", ("learning",), more_data, "100,000"),
    _claim("C12", "section 5.5", "The sum of word vectors does reasonably well on all tasks "
           "(here on completion)",
           ("completion",), simple_baseline, "37.63, 54.31, 68.7"),
    _claim("C14", "section 4", "Below 10,000 instances early stopping has to be combined with "
           "dropout", ("labelled",), small_sets),
    _claim("C15", "section 5.5", "ARC-II is less ahead of ARC-I on completion than on responses",
           ("completion", "response"), smaller_lead, "2.11, 2.77"),
    _claim("C16", "section 5.5", "Convolutional models are ahead of those that read bags of words",
           ("completion", "response"), convolution_against_bags,
           "41.56 or more against 37.63; 56.48 or more against 54.31"),
    _claim("C17", "section 4", "Training the word vectors too improves all models further",
           ("completion",), trained_vectors),
    _claim("C18", "footnote 5", "ARC-II with random negatives on completion", ("completion",),
           random_negatives, "74+ %"),
    _claim("C19", "section 5.2", "uRAE+MLP comes last on completion", ("completion",),
           urae_is_last, "25.76"),
    _claim("C20", "section 5.4", "On paraphrases accuracy and F1 of the models come close to the "
           "best system of 2008", ("labelled",), best_of_2008,
           "accuracy 69.6 and 69.9 against 70.6; F1 80.27 and 80.91 against 80.50",
           " --msrp FOLDER"),
    _claim("C21", "section 4", "Trained by plain stochastic gradient descent", ("rates",),
           plain_descent),
    _claim("C22", "footnote 2", "Windows wider than 3 words help further", ("rates", "variants"),
           _variant_helps("windows of 5 words", 1)),
    _claim("C23", "section 4", "ARC-I does better with two convolutions than with three, and more "
           "hidden nodes (only the layers are tried)", ("rates", "variants"),
           _variant_helps("three convolutions", -1)),
    _claim("C24", "section 4", "ReLU does as well as sigmoid-like functions or better, and "
           "converges faster", ("activations",), relu),
    _claim("C25", "section 4", "Mini-batches of 100 to 200 do better, and are shared by cores",
           ("batches",), batches, "100 to 200"),
    _claim("C26", "section 4", "With over 500,000 instances early stopping alone is enough", (),
           not_measured("The sets here have fewer pairs; the paper's are at "
                            "http://www.noahlab.com.hk/technology/Learning2Match.html by footnote "
                            "4.")),
    _claim("C27", "section 5.4", "On paraphrases the models are significantly below the state of "
           "the art", ("labelled",), behind_the_best,
           "accuracy 69.6 and 69.9 against 76.8; F1 80.27 and 80.91 against 83.6",
           " --msrp FOLDER"),
    _claim("C29", "section 5.3", "Responses are slightly easier than completion, with more "
           "training pairs and random negatives only", ("completion", "response"), easier_responses,
           "each of six systems has 12 to 17 points more"),
    _claim("C30", "section 5.5", "The sum of word vectors does reasonably well, unlike DeepMatch, "
           "another bag of words", ("completion", "response"), unlike_deepmatch,
           "37.63 against 32.50; 54.31 against 49.85"),
    _claim("C31", "section 3.3, figure 5", "Convolution and pooling of ARC-II keep the order of "
           "the words: a cell knows of earlier words than the next one", ("constructions",),
           order_preserved),
    _claim("C32", "sections 5.2, 5.3", "ARC-II is ahead of the other models by large margins "
           "(ARC-I too on completion)", ("completion", "response"), large_margins,
           "8.06 and 2.77 to the next"),
    _claim("C28", "section 4", "Settings: word vectors of Word2Vec; feature maps, tried for each "
           "task; layers of convolution, pooling and MLP", (),
           lambda _tables: (NOTHING, _SETTINGS),
           "50 dimensions; mostly 200 to 500 maps; ARC-II 3 + 3 + 2 layers, ARC-I 2 + 2 + 2"),
)  # fmt: skip
