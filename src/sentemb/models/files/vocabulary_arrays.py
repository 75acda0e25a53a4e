"""The arrays of a model file that hold a vocabulary: lists of words, and word vectors."""

from typing import Any

import numpy as np

from sentemb.models.files.tensor_files import TensorFile, damaged
from sentemb.models.files.text_files import lines_of, text_of
from sentemb.system.contracts import Arrays
from sentemb.text.word_features import WordFeatures

# The words that have a vector, and the numbers of their vectors.
WORD_FEATURES = _WORDS, _NUMBERS = "vector_words", "vector_numbers"


def stored_lines(file: TensorFile, name: str) -> list[str]:
    """The lines of a text that is stored as an array of bytes."""
    if file.dtype(name) != np.uint8:
        raise damaged(file.path, f"{name} is missing or not a text")
    return lines_of(file.path, file[name].tobytes())


def arrays_of(vectors: WordFeatures) -> Arrays:
    """Word vectors as arrays of bytes by name: tensor files have no type of 16 bits."""
    text = text_of(vectors.words).encode("utf-8")
    numbers = np.ascontiguousarray(vectors.vectors, "<f2")
    return {_WORDS: np.frombuffer(text, np.uint8), _NUMBERS: numbers.view(np.uint8)}


def stored_word_features(file: TensorFile, described: dict[str, Any]) -> WordFeatures:
    """The word vectors of a model whose configuration describes them as ``described``.

    Raises `Damaged` if they are missing, of another shape, or hold a word twice or a number that is
    not finite.
    """
    n_words, dim = described["words"], described["dim"]
    file.expect(_NUMBERS, (n_words, 2 * dim), np.uint8)
    words = stored_lines(file, _WORDS)
    if len(words) != n_words or len(set(words)) != n_words:
        raise damaged(file.path, f"{_WORDS} has not {n_words:,} different words")
    numbers = np.ascontiguousarray(file[_NUMBERS]).view("<f2").astype(np.float16, copy=False)
    if not np.isfinite(numbers).all():
        raise damaged(file.path, f"{_NUMBERS} has a value that is not a finite number")
    return WordFeatures(words, numbers)
