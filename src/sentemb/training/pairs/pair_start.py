"""Where the words of a pair model come from: word vectors, two towers, or another pair model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.files.model_files import load_model
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.pairs.pair_model import PairModel
from sentemb.models.pairs.registry import PAIR_MODELS
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.towers import SIDES, Towers
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.contracts import Arrays
from sentemb.system.paths import AnyPath
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import NEW, PLAIN, SPLITTINGS

# Frequent words that are measured.
_WORDS = 1_000


@dataclass(frozen=True, eq=False)
class PairStart:
    """The vocabulary and weights that a training of a pair model starts from.

    name : for messages and the record
    table : (n_features, dim) float, the vectors of the features of the vocabulary
    weights : all weights, if they come from a pair model
    settings : settings that follow from it
    """

    name: str
    vocabulary: Vocabulary
    table: np.ndarray
    weights: Arrays | None
    settings: dict[str, Any]

    def record(self) -> dict[str, str]:
        """How the trained model records it: its name, and a hash of vocabulary and weights."""
        digest = hashlib.sha256(self.vocabulary.splitting.encode())
        for features in (self.vocabulary.trigrams, self.vocabulary.words):
            digest.update("\n".join([*features, ""]).encode())
        if self.vocabulary.vectors is not None:
            digest.update(self.vocabulary.vectors.fingerprint().encode())
        for name, array in sorted((self.weights or {"table": self.table}).items()):
            digest.update(f"{name} {array.dtype} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return {"name": self.name, "sha256": digest.hexdigest()}

    def first_weights(self, model: PairModel, rng: np.random.Generator) -> Arrays:
        """The weights that ``model`` starts with, for the caller to change.

        Vectors are scaled by one number, so that words are as long as those of the model's own
        features would be: the frequent words of the vocabulary, or, without these, its trigrams.
        """
        if self.weights is not None:
            return {name: array.astype(np.float32) for name, array in self.weights.items()}
        weights = model.initialise(0, rng)
        table = np.array(self.table, np.float32)
        target = model.word_spread if self.vocabulary.words else model.table_spread()
        table *= np.float32(target / self._spread(table))
        return {**weights, "table": table}

    def _spread(self, table: np.ndarray) -> float:
        """The root mean square of the numbers of frequent words, or else of trigrams."""
        vectors = table
        if self.vocabulary.trigrams and self.vocabulary.words:
            # A word is the sum of its rows, several times as long as one of them.
            word_index, ids = self.vocabulary.occurrences(self.vocabulary.words[:_WORDS])
            order = np.argsort(word_index, kind="stable")
            firsts = np.searchsorted(word_index[order], np.unique(word_index))
            vectors = np.add.reduceat(table[ids[order]], firsts)
            if self.vocabulary.vectors is not None:
                known, numbers = self.vocabulary.vectors.of(self.vocabulary.words[:_WORDS])
                vectors[known] += numbers @ table[-self.vocabulary.vectors.dim :]
        used = vectors[np.any(vectors != 0, axis=1)]
        return float(np.sqrt(np.mean(np.square(used, dtype=np.float64)))) if used.size else 1.0


def start_of(model: AnyPath | SentenceEncoder | PairScorer, given: dict[str, Any]) -> PairStart:
    """The start from a model; ``given`` are settings of the training.

    Two towers give their words' vectors: those that their encoder adds up, averages or hands on
    (`Encoder.word_vector_columns`), or all input weights. Separate towers give each word both
    vectors, one after the other. A pair model gives all its weights. Raises `SentembError` for
    another model, for one that cannot be read, or for one that contradicts the settings.
    """
    name = ""
    if isinstance(model, str | os.PathLike):
        name = Path(model).resolve().name
        source: Towers | Matcher = load_model(model).model
    elif isinstance(model, SentenceEncoder):
        source = model.towers
    elif isinstance(model, PairScorer):
        source = model.matcher
    else:
        raise SentembError(
            "start_from must be a model folder, a SentenceEncoder or a PairScorer, not "
            f"{type(model).__name__}"
        )
    if isinstance(source, Towers):
        columns = source.encoder.word_vector_columns()
        if columns.stop == columns.start:
            columns = slice(None)
        sides = SIDES[:1] if source.shared else SIDES
        table = np.hstack([source.weights[side]["table"][:, columns] for side in sides])
        return PairStart(name, source.vocabulary, table, None, {"embedding": table.shape[1]})
    parameters = {
        parameter.name: getattr(source.model, parameter.name)
        for parameter in PAIR_MODELS.entry(source.model.name).parameters
    }
    settings = {"model": source.model.name, **parameters}
    for key, value in settings.items():
        requested = given.get(key)
        if requested is not None and requested != value:
            raise SentembError(
                f"{name or 'the model in start_from'} has {key} {value}, not {requested}; leave "
                f"{key} out or start from another model"
            )
    return PairStart(name, source.vocabulary, source.weights["table"], source.weights, settings)


def start_of_vectors(
    vectors: AnyPath | WordVectors, texts: Iterable[str], note: Callable[[str], None]
) -> PairStart:
    """The start from word vectors, see `read_word_vectors`.

    The ``texts`` of the training decide how texts are split into words: at white space, without
    punctuation around words, or into runs of letters, digits and ``_``, whichever leaves fewer
    words without a vector. Raises `SentembError` if the vectors cannot be read, or no word of the
    texts has one.
    """
    if not isinstance(vectors, WordVectors):
        vectors = read_word_vectors(vectors, note=note)
    vectors = vectors.with_small_letters()
    known = vectors.row_of_word
    missing: dict[str, tuple[float, int]] = {}
    texts = list(texts)
    for splitting in (NEW, PLAIN):
        words = [word for text in texts for word in SPLITTINGS[splitting](text)]
        without = sum(word not in known for word in words)
        missing[splitting] = without / max(1, len(words)), len(words)
    splitting = min(missing, key=lambda name: missing[name][0])
    share, n_words = missing[splitting]
    if n_words == 0 or share == 1:
        raise SentembError(
            f"{vectors.name}: no word of the texts has a vector; give vectors of the same language"
        )
    note(f"{share:.1%} of the words have no vector and are read as zeros")
    if share > 0.5:
        note(
            "more than half of the words have no vector; leave the word vectors out to train "
            "letter trigrams"
        )
    vocabulary = Vocabulary([], vectors.words, splitting)
    return PairStart(vectors.name, vocabulary, vectors.vectors, None, {"embedding": vectors.dim})
