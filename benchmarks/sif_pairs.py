"""The trained rows of the SIF paper's Table 5: PP, PP-proj, DAN, RNN, iRNN and two LSTMs.

The paper trains them on 3 million phrase pairs of PPDB, which are not here. Here they are trained
on pairs of STS-B train and SICK train that people scored 4 or higher, or on these and the log of
tldr; with the hinge loss, from the same word vectors, by one trainer. Every row is tuned over the
same grid by Pearson's r on STS-B dev. STS-B is drawn from the files of STS'12 to '16, so only parts
that share hardly a pair with STS-B train and dev are measured.
"""

import itertools
import sys

import numpy as np
from sif_lab import ROWS, Similarity, read_pairs, sentences_of

from sentemb.data.click_log import read_click_log
from sentemb.errors import SentembError
from sentemb.evaluation.correlation import pearson
from sentemb.models.vectors.sif import SIF
from sentemb.text.words import plain_words
from sentemb.training.trainer import train

# The rows of the paper, as settings of the trainer.
CELLS = 100
TRAINED = {
    "PP": {"model": "bag"},
    "PP-proj": {"model": "dan", "activation": "linear"},
    "DAN": {"model": "dan"},
    "RNN": {"model": "rnn"},
    "iRNN": {"model": "irnn"},
    "LSTM(no)": {"model": "lstm", "forget_gate": True, "output_gate": False},
    "LSTM(o.g.)": {"model": "lstm", "forget_gate": True},
}
SENTENCES, WITH_LOG = "sentences", "sentences and log"
RATES = (0.002, 0.01)
# With ten times as many pairs, an epoch has ten times as many steps.
EPOCHS = {SENTENCES: (10, 40), WITH_LOG: (1, 4)}
COMMON = {"objective": "hinge", "hard_negatives": 0, "shared_towers": True, "batch_size": 100}
LEAST_SCORE = 4
# A part with more than this share of pairs in STS-B train or dev is left out.
MOST_SHARED = 0.01
DEV = "stsb dev"


def key_of(first, second):
    """A pair without order, case and punctuation."""
    return frozenset((" ".join(plain_words(first)), " ".join(plain_words(second))))


def unseen_parts(parts, seen):
    """The names of the parts of which hardly a pair is among the ``seen``."""
    return [
        part.name
        for part in parts
        if np.mean([key_of(*pair) in seen for pair in zip(part.first, part.second, strict=True)])
        <= MOST_SHARED
    ]


def sentence_pairs(lab, measured):
    """(first, second) of STS-B and SICK train that are alike and not among the measured pairs."""
    excluded = {
        key_of(*pair) for part in measured for pair in zip(part.first, part.second, strict=True)
    }
    found = []
    for place in ("stsb", "sick"):
        some = read_pairs(lab.data / "sts" / place / "train.tsv", place)
        found += [
            (first, second)
            for gold, first, second in zip(some.scores, some.first, some.second, strict=True)
            if gold >= LEAST_SCORE and key_of(first, second) not in excluded
        ]
    return found


def clicked_pairs(lab):
    """(query, clicked title) of the log of tldr."""
    log = read_click_log(lab.data / "tldr" / "pairs.tsv")
    clicks = zip(log.query_index.tolist(), log.title_index.tolist(), strict=True)
    return [(log.queries[query], log.titles[title]) for query, title in clicks]


def measured_by(model, parts):
    """{name: Pearson's r x 100} of a model's cosines."""
    found = {}
    for part in parts:
        each = np.arange(len(part))
        scores = model.score_pairs(part.first, part.second, each, each)
        found[part.name] = 100 * pearson(scores, part.scores)
    return found


def pairs(lab):
    """The rows of a CSV: one for each system, with dev, the settings and every measured part."""
    dev = next(part for part in lab.pairs if part.name == DEV)
    stsb = lab.stsb_train
    seen = {
        key_of(*pair) for part in (stsb, dev) for pair in zip(part.first, part.second, strict=True)
    }
    names = unseen_parts(lab.pairs, seen)
    parts = [part for part in lab.pairs if part.name in names]
    sentences = sentence_pairs(lab, [*parts, dev])
    sources = {SENTENCES: sentences, WITH_LOG: sentences + clicked_pairs(lab)}
    logs = {name: as_log(some, lab.scratch / "pairs.tsv") for name, some in sources.items()}
    texts = [text for part in (*parts, dev) for text in sentences_of(part)]
    start = SIF(lab.vectors(lab.main), weights="none", components=0, keep="texts").fit(
        [*texts, *(text for pair in sources[WITH_LOG] for text in pair)]
    )
    head = [
        "row",
        "trained on",
        "pairs",
        "learning rate",
        "epochs",
        *(f"dev, {s}" for s in sources),
    ]
    rows = [[*head, "mean of the parts", DEV, *names]]

    def add(row, found, settings=()):
        settings = settings or [""] * (len(head) - 1)
        values = [found[name] for name in names]
        cells = (np.mean(values), found[DEV], *values)
        rows.append([row, *settings, *(f"{value:.2f}" for value in cells)])
        print(*rows[-1][: len(head) + 1], flush=True)

    for row, setting in ROWS.items():
        add(row, Similarity(lab, lab.main).measured(setting))
    for row, settings in TRAINED.items():
        given = COMMON | sizes(settings, start.dim) | settings
        tried = []
        for source, rate in itertools.product(sources, RATES):
            for epochs in EPOCHS[source]:
                how = source, len(sources[source]), f"{rate:g}", epochs
                try:
                    model = train(
                        logs[source], start_from=start, learning_rate=rate, epochs=epochs, **given
                    )
                    tried.append((measured_by(model, [*parts, dev]), how))
                except SentembError as error:  # a recurrence without a bound may overflow
                    print(f"{row}, {how}: {error}", file=sys.stderr)
        found, how = max(tried, key=lambda one: one[0][DEV])
        by_source = (max(one[DEV] for one, (name, *_) in tried if name == s) for s in sources)
        add(row, found, (*how, *(f"{value:.2f}" for value in by_source)))
    return rows


def sizes(settings, dim):
    """The lengths of a row's vectors: those of the words, and of the embedding."""
    if settings["model"] == "bag":
        return {}
    return {"cells": CELLS} | ({"hidden": dim} if settings["model"] == "dan" else {})


def as_log(pairs, path):
    """Pairs as a click log."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{first}\t{second}\n" for first, second in pairs), encoding="utf-8")
    return read_click_log(path)
