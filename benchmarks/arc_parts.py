"""What docs/arc.md measures by training: a function for each part, which fills its CSV file.

A row is one training. Rows that are there are not measured again. Figures are shares, not per cent.
"""

from collections import defaultdict
from itertools import product

import numpy as np
from arc_constructions import constructions
from arc_lab import (
    EPOCHS,
    MODELS,
    NEVER_TUNED,
    SEEDS,
    TOWER_TRAINING,
    TOWERS,
    TRAINING,
    WITHOUT_VECTORS,
    Rows,
    curve,
    n_parameters,
    read,
    shuffled,
)
from lab.sets.labelled_files import import_labelled

from sentemb.data.click_log import ClickLogBuilder
from sentemb.data.labelled_pairs import LabelledPairs, read_labelled_pairs
from sentemb.evaluation.binary import count_predictions, labelled_scores
from sentemb.evaluation.significance import compare_all, holm

# What the learning rate is chosen from, on dev, with a part of the pairs; plain gradient descent,
# with which the paper trains, is tried with fixed vectors too.
RATES = {"adam": (0.001, 0.002, 0.003, 0.005), "sgd": (0.01, 0.1, 0.3)}
SEARCH_PAIRS = 10000
DEFAULT_RATE = TRAINING["learning_rate"]
# Of P@1 on the 2,000 queries of dev.
STANDARD_ERROR = 0.011
SEARCHED = ("wordembed", "senna", "arc1", "arc2")
# Pairs of the learning curve; the whole log comes from Table 1.
SIZES = (2500, 5000, 10000, 20000)
CURVE_MODELS = ("arc2", "arc1", "wordembed")
# Most epochs on few pairs; early stopping ends a training before.
MOST_EPOCHS = 20
# With a relatedness of at least this, two sentences of SICK count as paraphrases.
PARAPHRASE = 4.0
# All other systems are compared with it.
REFERENCE = "arc2"
LABELLED_MODELS = ("wordembed", "senna", "senmlp", "arc1", "arc2")
LABELLED_TRAINING = {"epochs": 30, "patience": 6, "batch_size": 100, "decay": "linear"}
# The paper has dropout on small sets.
DROPOUTS = (0.0, 0.5)
# Where words come from: given vectors that are fixed as in the paper, or trained too; or features
# of the model's own.
FIXED, LEARNED, OWN = "fixed", "trained", "own"
SYSTEMS = {
    FIXED: [model for model in MODELS if model not in WITHOUT_VECTORS],
    LEARNED: [model for model in MODELS if model not in (*WITHOUT_VECTORS, *NEVER_TUNED)],
    OWN: [*TOWERS, *WITHOUT_VECTORS],
}
TUNED = {"train_vectors": True}
TRAINED = ("model", "seed", "parameters", "seconds", "kept", "loss", "dev")
RANKED = ("model", "vectors", "rate", *TRAINED[1:])
# What is compared with the rates' search, from as many pairs, seed 0: the models and what changes.
VARIANTS = {
    "dropout 0.3": (SEARCHED, {"dropout": 0.3}),
    "constant learning rate": (SEARCHED, {"decay": "none"}),
    "windows of 5 words": (("senna", "arc1", "arc2"), {"window": 5}),
    "three convolutions": (("arc1",), {"maps": (64, 64, 64)}),
}
# Triples of a mini-batch; the paper's are 100 to 200. The learning rates are in proportion to them.
# From fewer pairs than the search.
BATCHES, RATE_PER_TRIPLE, BATCH_PAIRS = (20, 100, 200), (0.0005, 0.0015), 5000


def _train(lab, key, pairs, dev, model, seed, **settings):
    chosen = (
        {**TOWERS[model], **TOWER_TRAINING}
        if model in TOWERS
        else {**TRAINING, **MODELS[model], **settings}
    )
    return lab.trained(f"{key}-{model}-{seed}", pairs, dev, model, seed, **chosen)


def _searched(lab, model):
    """The learning rate that the search gave."""
    path = lab.results / "rates.csv"
    return searched_rate(read(path) if path.exists() else (), model)


def _trained_cells(model, seed, scorer):
    figures, losses, kept, seconds = curve(scorer)
    return model, seed, n_parameters(scorer), f"{seconds:.0f}", kept, losses, figures


def completion(lab, path):
    """Table 1: sentence completion."""
    rows = Rows(path, (*RANKED, "test", "similar", "order"), 4)
    for (model, vectors, rate, seed), scorer in _ranking(lab, rows, "completion"):
        name = training_of("completion", vectors, rate)
        found = *_both_tests(lab, name, model, seed, scorer), word_order(lab, scorer)
        cells = _ranked_cells(model, vectors, rate, seed, scorer)
        rows.add(*cells, *(f"{x:.4f}" for x in found))


def response(lab, path):
    """Table 2: the answer to a turn."""
    rows = Rows(path, (*RANKED, "test"), 4)
    for (model, vectors, rate, seed), scorer in _ranking(lab, rows, "response"):
        name = training_of("response", vectors, rate)
        found = lab.hits(name, model, seed, "test", scorer).mean()
        rows.add(*_ranked_cells(model, vectors, rate, seed, scorer), f"{found:.4f}")


def _ranking(lab, rows, name):
    """Every training that a ranking task has no row of yet: (model, vectors, rate, seed) and model.

    A pair model is trained with the default learning rate and with that of the search.
    """
    log, dev = lab.log(name), lab.judged(name, "dev")
    for seed, (vectors, models) in product(lab.seeds, SYSTEMS.items()):
        for model in models:
            if not (lab.wants(model) and lab.wants_vectors(vectors)):
                continue
            tried = {"" if model in TOWERS else DEFAULT_RATE}
            if model in SEARCHED:
                tried.add(_searched(lab, model))
            for rate in sorted(tried):
                if not rows.has(model, vectors, rate, seed):
                    given = {"learning_rate": rate} | (TUNED if vectors == LEARNED else {})
                    folder = training_of(name, vectors, rate)
                    scorer = _train(lab, folder, log, dev, model, seed, **given)
                    yield (model, vectors, rate, seed), scorer


def training_of(name, vectors, rate):
    """What a training is called: its task, whether it trains given word vectors, and its rate."""
    kind = f"{name}-trained" if vectors == LEARNED else name
    return kind if rate in ("", str(DEFAULT_RATE), DEFAULT_RATE) else f"{kind}-{rate}"


def _ranked_cells(model, vectors, rate, seed, scorer):
    cells = _trained_cells(model, seed, scorer)
    return model, vectors, rate, *cells[1:]


def _both_tests(lab, name, model, seed, scorer):
    return [lab.hits(name, model, seed, part, scorer).mean() for part in ("test", "test_hard")]


def word_order(lab, scorer):
    """How often the right title scores more than the same words in another order."""
    judged = lab.judged("completion", "test")
    queries, titles = [], []
    for q, query in enumerate(judged.queries):
        span = slice(*judged.offsets[q : q + 2])
        right = judged.title_index[span][np.argmax(judged.grade[span])]
        queries.append(query)
        titles.append(judged.titles[right])
    return share_in_order(scorer, queries, titles)


def share_in_order(scorer, queries, titles):
    """The share of pairs that score more than with the title's words shuffled; ties count half.

    A difference that rounding makes is a tie.
    """
    rng = np.random.default_rng(0)
    both = [*titles, *(shuffled(title, rng) for title in titles)]
    every, n = np.arange(len(titles)), len(titles)
    scores = scorer.score_pairs(queries, both, np.tile(every, 2), np.arange(2 * n))
    gap = scores[:n] - scores[n:]
    gap[np.abs(gap) <= 1e-5 * np.abs(scores).max()] = 0
    return float(np.mean(0.5 + np.sign(gap) / 2))


def rates(lab, path):
    """The learning rate of each model on dev of completion, with fixed word vectors."""
    rows = Rows(path, ("optimiser", "rate", *TRAINED), 4)
    log, dev = part_of(lab.log("completion"), SEARCH_PAIRS), lab.judged("completion", "dev")
    for (optimiser, tried), model in product(RATES.items(), SEARCHED):
        for rate in tried:
            if rows.has(optimiser, rate, model, 0) or not lab.wants(model):
                continue
            given = {"optimiser": optimiser, "learning_rate": rate}
            scorer = _train(lab, f"rate-{optimiser}-{rate}", log, dev, model, 0, **given)
            rows.add(optimiser, rate, *_trained_cells(model, 0, scorer))


def searched_rate(lines, model):
    """The lowest rate of Adam whose dev figure is the best one or within its standard error.

    ``lines`` are those of rates.csv; without any it is the rate of `TRAINING`.
    """
    found = {
        float(line["rate"]): best_dev(line)
        for line in lines
        if (line["optimiser"], line["model"]) == ("adam", model)
    }
    enough = max(found.values(), default=0) - STANDARD_ERROR
    return min((rate for rate, figure in found.items() if figure >= enough), default=DEFAULT_RATE)


def reported(lines):
    """The lines of a ranking task with the learning rate that is best on dev for their model."""
    found = defaultdict(lambda: defaultdict(list))
    for line in lines:
        found[line["model"], line["vectors"]][line["rate"]].append(line)
    return [
        line
        for by_rate in found.values()
        for line in max(by_rate.values(), key=lambda some: np.mean([*map(best_dev, some)]))
    ]


def best_dev(line):
    """The best figure of a training on dev; 0 if it has none."""
    return max(map(float, line["dev"].split()), default=0.0)


def variants(lab, path):
    """What was tried on dev besides the learning rate, with fixed word vectors."""
    rows = Rows(path, ("variant", *TRAINED), 3)
    log, dev = part_of(lab.log("completion"), SEARCH_PAIRS), lab.judged("completion", "dev")
    for name, (models, changes) in VARIANTS.items():
        key = "variant-" + name.replace(" ", "-")
        for model in models:
            if not rows.has(name, model, 0) and lab.wants(model):
                given = {"learning_rate": _searched(lab, model)} | changes
                scorer = _train(lab, key, log, dev, model, 0, **given)
                rows.add(name, *_trained_cells(model, 0, scorer))


def batches(lab, path):
    """Plain descent with mini-batches of several sizes, with fixed word vectors."""
    rows = Rows(path, ("batch", "rate", *TRAINED), 4)
    log, dev = part_of(lab.log("completion"), BATCH_PAIRS), lab.judged("completion", "dev")
    for model, size, of_triple in product(("arc1", "arc2"), BATCHES, RATE_PER_TRIPLE):
        rate = round(size * of_triple, 4)
        if not rows.has(size, rate, model, 0) and lab.wants(model):
            given = {"batch_size": size, "optimiser": "sgd", "learning_rate": rate}
            scorer = _train(lab, f"batch-{size}-{rate}", log, dev, model, 0, **given)
            rows.add(size, rate, *_trained_cells(model, 0, scorer))


# -- labelled pairs -------------------------------------------------------------------------------


def labelled(lab, path):
    """Table 3: labelled pairs; SICK, and the paraphrase corpus if its folder is given."""
    sets = {"sick": lambda: sick(lab)}
    if lab.msrp is not None:
        sets["msrp"] = lambda: msrp(lab)
    fields = ("set", "vectors", "dropout", *TRAINED, "pairs", "accuracy", "low", "high", "f1")
    rows = Rows(path, fields, 5)
    for name, of_parts in sets.items():
        train, dev, test = of_parts()
        for label in (0, 1):
            if not rows.has(name, "", "", f"always {label}", ""):
                cells = name, "", "", f"always {label}", "", *[""] * (len(TRAINED) - 2)
                _add_labelled(rows, cells, np.full(len(test), 2 * label - 1), test)
        for seed, vectors, dropout, model in product(
            SEEDS, (FIXED, LEARNED), DROPOUTS, LABELLED_MODELS
        ):
            key = name, vectors, dropout, model, seed
            if rows.has(*key) or not (lab.wants(model) and lab.wants_vectors(vectors)):
                continue
            settings = MODELS[model] | LABELLED_TRAINING | {"dropout": dropout}
            settings |= TUNED if vectors == LEARNED else {}
            folder = f"{name}-{vectors}-{dropout}-{model}-{seed}"
            scorer = lab.trained(folder, train, dev, model, seed, **settings)
            cells = *key[:3], *_trained_cells(model, seed, scorer)
            _add_labelled(rows, cells, labelled_scores(scorer, test), test)


def _add_labelled(rows, cells, scores, test):
    counts = count_predictions(scores, test.labels, 0)
    found = counts.accuracy, *counts.accuracy_interval, counts.f1
    rows.add(*cells, len(test), *(f"{x:.4f}" for x in found))


def sick(lab):
    """Train, dev and test: SICK's relatedness as paraphrase or not."""
    found = []
    for part in ("train", "dev", "test"):
        out = lab.build / f"sick-{part}.tsv"
        out.parent.mkdir(parents=True, exist_ok=True)
        source = lab.data / "sts" / "sick" / f"{part}.tsv"
        import_labelled(source, out, positive_from=PARAPHRASE, words=True, force=True)
        found.append(read_labelled_pairs(out))
    return found


def msrp(lab):
    """Train, dev and test of the paraphrase corpus: dev is the last 500 pairs of its train file."""
    files = {part: lab.msrp / f"msr_paraphrase_{part}.txt" for part in ("train", "test")}
    read = {}
    for part, file in files.items():
        out = lab.build / f"msrp-{part}.tsv"
        out.parent.mkdir(parents=True, exist_ok=True)
        import_labelled(file, out, words=True, force=True)
        read[part] = read_labelled_pairs(out)
    train, split = read["train"], len(read["train"]) - 500
    parts = [
        LabelledPairs(train.labels[some], train.first[some], train.second[some], "msrp")
        for some in (slice(None, split), slice(split, None))
    ]
    return [*parts, read["test"]]


# -- more data, less data -------------------------------------------------------------------------


def part_of(log, n_pairs):
    """A click log of ``n_pairs`` pairs, drawn once: a smaller part is in every larger one."""
    order = np.random.default_rng(0).permutation(len(log.clicks))[:n_pairs]
    builder = ClickLogBuilder()
    for p in np.sort(order):
        builder.add(log.queries[log.query_index[p]], log.titles[log.title_index[p]])
    return builder.build()


def scaled_epochs(n_pairs, n_all):
    """More epochs for fewer pairs, at most `MOST_EPOCHS`."""
    return min(MOST_EPOCHS, round(TRAINING["epochs"] * (n_all / n_pairs) ** 0.5))


def learning(lab, path):
    """Completion from a part of the pairs, at the learning rate of the search."""
    rows = Rows(path, ("pairs", "rate", *TRAINED, "epochs", "test"), 4)
    log, dev = lab.log("completion"), lab.judged("completion", "dev")
    for size, model in product((*SIZES, len(log.clicks)), CURVE_MODELS):
        rate = _searched(lab, model)
        if rows.has(size, rate, model, 0) or not lab.wants(model):
            continue
        epochs = scaled_epochs(size, len(log.clicks))
        whole = size == len(log.clicks)
        key = training_of("completion" if whole else f"completion-{size}", FIXED, rate)
        given = {"learning_rate": rate, "epochs": epochs}
        some = log if whole else part_of(log, size)
        scorer = _train(lab, key, some, dev, model, 0, **given)
        test = lab.hits(key, model, 0, "test", scorer).mean()
        rows.add(size, rate, *_trained_cells(model, 0, scorer), epochs, f"{test:.4f}")


# -- word order -----------------------------------------------------------------------------------


def auxiliary(lab, path):
    """Completion with each title in a wrong word order as one more negative."""
    rows = Rows(path, (*TRAINED, "test", "similar", "order"), 2)
    dev = lab.judged("completion", "dev")
    extra = {"negatives": "log", "n_negatives": TRAINING["n_negatives"] + 1}
    extra["batch_size"] = TRAINING["batch_size"] // TRAINING["n_negatives"] * extra["n_negatives"]
    for model in ("arc1", "arc2"):
        if rows.has(model, 0) or not lab.wants(model):
            continue
        log = with_shuffled(lab.log("completion"))
        scorer = _train(lab, "auxiliary", log, dev, model, 0, **extra)
        found = _both_tests(lab, "completion-auxiliary", model, 0, scorer)
        order = word_order(lab, scorer)
        rows.add(*_trained_cells(model, 0, scorer), *(f"{x:.4f}" for x in (*found, order)))


def order_only(lab, path):
    """Completion with the title in a wrong word order as the only negative."""
    rows = Rows(path, (*TRAINED, "test", "order"), 2)
    log, dev = with_shuffled(lab.log("completion")), lab.judged("completion", "dev")
    # No early stopping: a model that learns word order alone may stay at chance for some epochs.
    given = {"negatives": "log", "n_negatives": 1, "patience": EPOCHS}
    for model, seed in product(("arc1", "arc2"), lab.seeds):
        if rows.has(model, seed) or not lab.wants(model):
            continue
        rate = _searched(lab, model)
        scorer = _train(lab, "order-only", log, dev, model, seed, learning_rate=rate, **given)
        test = lab.hits("completion-order-only", model, seed, "test", scorer).mean()
        order = word_order(lab, scorer)
        rows.add(*_trained_cells(model, seed, scorer), f"{test:.4f}", f"{order:.4f}")


def with_shuffled(log):
    """The log with each title in another word order as a title that was skipped."""
    rng = np.random.default_rng(1)
    builder = ClickLogBuilder()
    for p in range(len(log.clicks)):
        title = log.titles[log.title_index[p]]
        builder.add(log.queries[log.query_index[p]], title, skipped=[shuffled(title, rng)])
    return builder.build()


# -- differences ----------------------------------------------------------------------------------


def differences(lab, path):
    """Paired differences of P@1 from ARC-II, over the queries of a test set.

    A system's value of a query is the mean over its seeds. Models whose word vectors are fixed are
    compared with each other, and models that train theirs.
    """
    fields = ("set", "vectors", "part", "system", "reference", "difference", "low", "high", "p")
    path.unlink(missing_ok=True)
    rows = Rows(path, fields, 5)
    for name, parts in (("completion", ("test", "test_hard")), ("response", ("test",))):
        source = lab.results / f"{name}.csv"
        lines = reported(read(source)) if source.exists() else ()
        for vectors in (FIXED, LEARNED):
            for part in parts:
                found = _mean_hits(lab, name, lines, vectors, part)
                if REFERENCE not in found or len(found) < 2:
                    continue
                reference = found.pop(REFERENCE)
                tested = compare_all(list(found.values()), reference)
                corrected = holm([one.p for one in tested])
                for system, one, p in zip(found, tested, corrected, strict=True):
                    gap = (f"{x:.4f}" for x in (one.mean, one.low, one.high))
                    rows.add(name, vectors, part, system, REFERENCE, *gap, f"{p:.4f}")


def _mean_hits(lab, name, lines, vectors, part):
    """{system: (n_queries,) mean over the seeds of ``lines``}; with those of own features."""
    found = defaultdict(list)
    for line in lines:
        if line["vectors"] in (vectors, OWN):
            training = training_of(name, line["vectors"], line["rate"])
            hits = lab.hits(training, line["model"], line["seed"], part)
            if hits is not None:
                found[line["model"]].append(hits)
    return {model: np.mean(hits, axis=0) for model, hits in found.items()}


# The constructions look into a model of Table 1.
PARTS = {
    "rates": rates,
    "completion": completion,
    "constructions": constructions,
    "labelled": labelled,
    "auxiliary": auxiliary,
    "order_only": order_only,
    "learning": learning,
    "variants": variants,
    "batches": batches,
    "response": response,
    "differences": differences,
}
