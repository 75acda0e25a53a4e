"""The nearest words of a word: cosines of the embeddings of single words."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.nearest import nearest
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.bounds import brief, whole
from sentemb.system.html_tables import ShownRows

_MOST = 10_000
# What texts put around words; "c++" and "#1" keep their signs.
_PUNCTUATION = ".,;:!?()[]{}<>\"'“”‘’„«»"


class Neighbour(NamedTuple):
    """A word and its cosine with the word that was looked up."""

    word: str
    score: float


def neighbours(
    model: SentenceEncoder,
    words: Sequence[str],
    among: Iterable[str],
    k: int = 10,
    side: str = "query",
) -> list[list[Neighbour]]:
    """The nearest words of each word, nearest first.

    A word that the model never met has an embedding too, if a letter trigram of it is known.

    Parameters
    ----------
    model : SentenceEncoder
        A model with two towers.
    words : sequence of str
        The words to look up.
    among : iterable of str
        The words that may be found; those without a known feature never are.
    k : int
        Neighbours per word. The word itself is not one of them.
    side : {"query", "document"}
        Which tower reads all words.

    Returns
    -------
    list of list of (word, score)
        One list of named tuples per word, empty for a word of which the model knows no feature: it
        is read as zero.

    Raises
    ------
    SentembError
        If one of ``words`` is not a single word, or no word may be found.
    """
    whole("k", k, 1, _MOST)
    read = [_single(model, word) for word in words]
    known = known_words(model, among)
    if not known:
        raise SentembError("none of the words that may be found has a known letter trigram or word")
    looked_up = known_words(model, read)
    vectors = vectors_of(model, known, side)
    # One more, in case the word itself is found.
    indices, scores = nearest(vectors_of(model, looked_up, side), vectors, k + 1)
    neighbours_of: dict[str, list[Neighbour]] = {}
    for word, row, of_row in zip(looked_up, indices.tolist(), scores.tolist(), strict=True):
        near = (Neighbour(known[p], score) for p, score in zip(row, of_row, strict=True))
        neighbours_of[word] = [neighbour for neighbour in near if neighbour.word != word][:k]
    return ShownRows(ShownRows(neighbours_of.get(word, []), caption=word) for word in read)


def vectors_of(model: SentenceEncoder, words: Sequence[str], side: str) -> np.ndarray:
    """Unit vectors of texts of one word each, by the tower of a side."""
    return unit_rows(model.encode([model.vocabulary.text_of([word]) for word in words], side=side))


def known_words(model: SentenceEncoder, words: Iterable[str]) -> list[str]:
    """The distinct ``words`` of which the model knows a feature, in their order."""
    return [word for word in dict.fromkeys(words) if model.vocabulary.features(word)]


def frequent_words(
    texts: Iterable[str], split: Callable[[str], list[str]], min_uses: int
) -> list[str]:
    """The words that occur at least that often, in alphabetical order, without punctuation.

    Signs of punctuation around a word are dropped. A word has at least two characters, one of them
    a letter. ``texts`` are for example the distinct queries or titles of a log; ``split`` gives the
    words of a text, such as `Vocabulary.split` of a model.
    """
    uses = Counter(word.strip(_PUNCTUATION) for text in texts for word in split(text))
    return sorted(word for word, count in uses.items() if count >= min_uses and _is_word(word))


def _is_word(text: str) -> bool:
    return len(text) > 1 and any(map(str.isalpha, text))


def _single(model: SentenceEncoder, word: str) -> str:
    read = model.vocabulary.split(model.vocabulary.text_of([word]))
    if len(read) != 1:
        raise SentembError(f"{brief(word)} has {len(read)} words; give one word")
    return read[0]
