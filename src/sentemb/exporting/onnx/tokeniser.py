"""From texts to the inputs of query.onnx, document.onnx or model.onnx.

Needs NumPy for the arrays and nothing else. Tokeniser.java does the same.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sentemb.text.words import SPLITTINGS, letter_trigrams


class Tokeniser:
    """Splits texts into words and looks up the features of each word.

    Parameters
    ----------
    folder : path
        Where vocabulary.txt is.
    """

    def __init__(self, folder: str | Path) -> None:
        text = (Path(folder) / "vocabulary.txt").read_bytes().decode("utf-8")
        first, *features = text.split("\n")[:-1]
        splitting, n_trigrams = first.split(" ")
        self.split = SPLITTINGS[splitting]
        trigrams, words = features[: int(n_trigrams)], features[int(n_trigrams) :]
        self._trigrams = {trigram: row for row, trigram in enumerate(trigrams)}
        self._words = {word: row for row, word in enumerate(words, len(trigrams))}

    def features(self, word: str) -> dict[int, int]:
        """The features of a word that the model knows, and how often the word has each."""
        found: dict[int, int] = {}
        for trigram in letter_trigrams(word):
            if trigram in self._trigrams:
                row = self._trigrams[trigram]
                found[row] = found.get(row, 0) + 1
        if word in self._words:
            found[self._words[word]] = 1
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
        counts: list[int] = []
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
