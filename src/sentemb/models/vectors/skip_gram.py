"""Word vectors trained on a click log: skip-gram with negative samples, by gensim.

Mikolov et al., "Distributed representations of words and phrases and their compositionality",
NIPS 2013. Each pair of the log is one sentence: the words of the query, then those of the clicked
title, so that the words of a query and of its titles share windows. In each epoch a pair is read
round(1 + ln(clicks)) times, about its weight when models are trained.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.models.vectors.vector_limits import MAX_DIM
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.extras import package
from sentemb.system.hyperparameters import FEATURES, MODEL, MOST, OPTIMISER, RUN, Hyperparameter
from sentemb.text.words import plain_words

SETTINGS = {
    parameter.name: parameter
    for parameter in (
        Hyperparameter(
            name="dim",
            kind=int,
            default=100,
            help="Length of a vector.",
            group=MODEL,
            least=1,
            most=MAX_DIM,
        ),
        Hyperparameter(
            name="window",
            kind=int,
            default=10,
            help="A word predicts at most this many words on each side.",
            group=MODEL,
            least=1,
            most=MOST,
        ),
        Hyperparameter(
            name="min_count",
            kind=int,
            default=1,
            help="Leave out words that occur less often.",
            group=FEATURES,
            least=1,
            most=MOST,
        ),
        Hyperparameter(
            name="epochs",
            kind=int,
            default=15,
            help="Passes over the log.",
            group=OPTIMISER,
            least=1,
            most=MOST,
        ),
        Hyperparameter(
            name="seed", kind=int, default=0, help="Random seed.", group=RUN, least=0, most=MOST
        ),
    )
}


def train_word_vectors(
    log: ClickLog,
    *,
    dim: int = SETTINGS["dim"].default,
    window: int = SETTINGS["window"].default,
    min_count: int = SETTINGS["min_count"].default,
    epochs: int = SETTINGS["epochs"].default,
    seed: int = SETTINGS["seed"].default,
    on_epoch: Callable[[int, int], None] | None = None,
) -> WordVectors:
    """Train word vectors on a click log.

    Needs gensim: ``pip install 'sentemb[baselines]'``. Runs on one processor; the same seed and
    log give the same bits, as long as the BLAS library chooses the same kernels for the processor.

    Parameters
    ----------
    log : ClickLog
        Each pair is one sentence, query and title joined, lower-cased and without punctuation. A
        pair with c clicks is read round(1 + ln(c)) times per epoch.
    dim : int
        Length of a vector.
    window : int
        A word predicts at most this many words on each side.
    min_count : int
        Words that occur less often are left out.
    epochs : int
        Passes over the log.
    seed : int
        Random seed.
    on_epoch : callable, optional
        Called with the number of epochs that are done and with ``epochs``.

    Returns
    -------
    WordVectors
        The most frequent word first; float32 vectors, and the counts of one epoch.

    Raises
    ------
    SentembError
        Without gensim, for settings out of bounds, or if no word occurs ``min_count`` times.

    Notes
    -----
    Five negative samples per pair of words, sub-sampling of frequent words at 1e-3 and a learning
    rate that falls from 0.025 to 0.0001: the defaults of gensim.
    """
    given = {"dim": dim, "window": window, "min_count": min_count, "epochs": epochs, "seed": seed}
    settings = {name: SETTINGS[name].checked(value) for name, value in given.items()}
    word2vec = package("gensim.models.word2vec", "baselines")
    sentences = _Sentences(log)
    # One worker: several would update the same vectors in an order that changes from run to run.
    model = word2vec.Word2Vec(
        vector_size=settings["dim"],
        window=settings["window"],
        min_count=settings["min_count"],
        seed=settings["seed"],
        sg=1,
        workers=1,
        sorted_vocab=1,
    )
    model.build_vocab(sentences)
    words = list(model.wv.index_to_key)
    if not words:
        raise SentembError(
            "the log has no word of letters or digits that occurs min_count = "
            f"{settings['min_count']:,} times; lower it or give another log"
        )
    model.train(
        sentences,
        total_examples=model.corpus_count,
        epochs=settings["epochs"],
        callbacks=[_callback(on_epoch, settings["epochs"])],
    )
    return WordVectors(
        words,
        np.array(model.wv.vectors, np.float32),
        counts=np.array([model.wv.get_vecattr(word, "count") for word in words], np.int64),
        source="skip-gram on a click log: "
        + ", ".join(f"{name} {value}" for name, value in settings.items()),
    )


class _Sentences:
    """The sentences of a log, for several passes. Each distinct text is split only once."""

    def __init__(self, log: ClickLog) -> None:
        self._log = log
        self._queries = list(map(plain_words, log.queries))
        self._titles = list(map(plain_words, log.titles))

    def __iter__(self) -> Iterator[list[str]]:
        log = self._log
        for query, title, clicks in zip(
            log.query_index.tolist(), log.title_index.tolist(), log.clicks.tolist(), strict=True
        ):
            sentence = self._queries[query] + self._titles[title]
            for _ in range(round(1 + math.log(clicks))):
                yield sentence


def _callback(on_epoch: Callable[[int, int], None] | None, epochs: int) -> Any:
    """The callback of gensim after each epoch."""

    class Report(package("gensim.models.callbacks", "baselines").CallbackAny2Vec):  # type: ignore[misc]
        def __init__(self) -> None:
            self.done = 0

        def on_epoch_end(self, model: Any) -> None:
            self.done += 1
            if on_epoch is not None:
                on_epoch(self.done, epochs)

    return Report()
