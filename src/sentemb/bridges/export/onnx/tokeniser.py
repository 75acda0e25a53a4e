"""From texts to the inputs of query.onnx, document.onnx or model.onnx.

Needs NumPy for the arrays and nothing else.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sentemb.text.words import SPLITTINGS, letter_trigrams, without_edges


class Tokeniser:
    """Splits texts into words and looks up the features of each word.

    Parameters
    ----------
    folder : path
        Where vocabulary.txt is, and vectors.bin if the model has word vectors.
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
        self._places = {word: place for place, word in enumerate(features[self._first_number :])}
        self._vectors = np.zeros((0, 0), np.float32)
        if self._places:
            numbers = np.fromfile(Path(folder) / "vectors.bin", "<f4")
            self._vectors = numbers.reshape(len(self._places), -1)

    def features(self, word: str) -> dict[int, float]:
        """The features of a word that the model knows, and how often the word has each.

        The dimensions of word vectors are features too, with the numbers of the word's vector.
        """
        found: dict[int, float] = {}
        for trigram in letter_trigrams(word):
            if trigram in self._trigrams:
                row = self._trigrams[trigram]
                found[row] = found.get(row, 0) + 1
        if word in self._words:
            found[self._words[word]] = 1
        place = self._places.get(word, self._places.get(without_edges(word)))
        if place is not None:
            found |= dict(enumerate(self._vectors[place].tolist(), self._first_number))
        return dict(sorted(found.items()))

    def batch(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """The inputs for some texts by name."""
        places: dict[str, int] = {}
        words: list[int] = []
        text_offsets = [0]
        for text in texts:
            words += [places.setdefault(word, len(places)) for word in self.split(text)]
            text_offsets.append(len(words))
        features: list[int] = []
        counts: list[float] = []
        word_offsets = [0]
        for word in places:
            found = self.features(word)
            features += found.keys()
            counts += found.values()
            word_offsets.append(len(features))
        return {
            "features": np.array(features, np.int64),
            "counts": np.array(counts, np.float32),
            "word_offsets": np.array(word_offsets, np.int64),
            "words": np.array(words, np.int64),
            "text_offsets": np.array(text_offsets, np.int64),
        }
