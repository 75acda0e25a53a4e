"""From texts to the inputs of query.onnx, document.onnx or model.onnx.

Needs NumPy for the arrays and nothing else.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sentemb.text.words import SPLITTINGS, letter_trigrams, without_edges


class Tokeniser:
    """Splits texts into words and looks up the features of each word.

    ``folder`` has vocabulary.txt, and vectors.bin if the model has word vectors.
    """

    def __init__(self, folder: str | Path) -> None:
        text = (Path(folder) / "vocabulary.txt").read_bytes().decode("utf-8")
        first, *features = text.split("\n")[:-1]
        splitting, *sizes = first.split(" ")
        self.split = SPLITTINGS[splitting]
        # Of trigrams, words, and the words that have a vector.
        n_trigrams = int(sizes[0])
        n_words = int(sizes[1]) if sizes[1:] else len(features) - n_trigrams
        self._first_number = n_trigrams + n_words
        trigrams, words = features[:n_trigrams], features[n_trigrams : self._first_number]
        self._trigrams = {trigram: row for row, trigram in enumerate(trigrams)}
        self._words = {word: row for row, word in enumerate(words, n_trigrams)}
        self._vector_rows = {word: row for row, word in enumerate(features[self._first_number :])}
        self._vectors = np.zeros((0, 0), np.float32)
        if self._vector_rows:
            numbers = np.fromfile(Path(folder) / "vectors.bin", "<f4")
            self._vectors = numbers.reshape(len(self._vector_rows), -1)

    def features(self, word: str) -> dict[int, float]:
        """The features of a word that the model knows, and how often the word has each.

        The dimensions of word vectors are features too, with the numbers of the word's vector.
        """
        counts: dict[int, float] = {}
        for trigram in letter_trigrams(word):
            if trigram in self._trigrams:
                row = self._trigrams[trigram]
                counts[row] = counts.get(row, 0) + 1
        if word in self._words:
            counts[self._words[word]] = 1
        vector_row = self._vector_rows.get(word, self._vector_rows.get(without_edges(word)))
        if vector_row is not None:
            counts |= dict(enumerate(self._vectors[vector_row].tolist(), self._first_number))
        return dict(sorted(counts.items()))

    def batch(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The inputs for some texts by name."""
        numbers: dict[str, int] = {}
        words: list[int] = []
        text_offsets = [0]
        for text in texts:
            words += [numbers.setdefault(word, len(numbers)) for word in self.split(text)]
            text_offsets.append(len(words))
        features: list[int] = []
        counts: list[float] = []
        word_offsets = [0]
        for word in numbers:
            word_features = self.features(word)
            features += word_features.keys()
            counts += word_features.values()
            word_offsets.append(len(features))
        return {
            "features": np.array(features, np.int64),
            "counts": np.array(counts, np.float32),
            "word_offsets": np.array(word_offsets, np.int64),
            "words": np.array(words, np.int64),
            "text_offsets": np.array(text_offsets, np.int64),
        }
