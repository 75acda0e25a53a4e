"""Synonyms for a search engine: words of titles that are near to a word of queries.

The format of the file is Solr's, which Elasticsearch and OpenSearch read too.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sentemb.analysis.nearest_words import Neighbour, known_words, vectors_of
from sentemb.errors import SentembError
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.nearest import nearest
from sentemb.system.bounds import number, share, whole
from sentemb.system.html_tables import ShownRows
from sentemb.text.words import letter_trigrams

_MOST = 20
# Nearest titles' words that are looked at for each word: most are spelled alike.
_LOOKED_AT = 50
# Signs with a meaning in a file of synonyms.
_SIGNS = re.compile(r"([\\,#=>])")


@dataclass(frozen=True)
class Synonyms:
    """A word of queries and the words of titles that are near to it.

    Attributes
    ----------
    word : str
    near : list of (word, score)
        Named tuples, nearest first.
    """

    word: str
    near: list[Neighbour]

    def _repr_html_(self) -> str:
        return ShownRows(self.near, caption=self.word)._repr_html_()


def synonyms(
    model: SentenceEncoder,
    query_words: Iterable[str],
    title_words: Iterable[str],
    k: int = 3,
    min_score: float = 0.6,
    max_spelling: float = 0.3,
) -> list[Synonyms]:
    """Words of titles that are near to a word of queries and spelled differently.

    The score is the cosine of the query tower's embedding of the one word and the document tower's
    embedding of the other: what brings a query of the first to a title of the second. Words that
    are spelled alike are left out. Some are inflections, which a stemmer joins ("cook", "cooks").
    Others are near only because they have letter trigrams in common ("folder", "older").

    Parameters
    ----------
    model : SentenceEncoder
        A model with two towers.
    query_words, title_words : iterable of str
        As in `sentemb.analysis.nearest_words.frequent_words`. Those without a known feature are
        left out.
    k : int
        The largest number of words of titles for one word of queries.
    min_score : float
        The smallest score, from -1 to 1.
    max_spelling : float
        The largest similarity of two spellings, from 0 to 1: see `spelling`.

    Returns
    -------
    list of Synonyms
        In alphabetical order of the words of queries, without those that have none.

    Raises
    ------
    SentembError
        If the model knows none of the words of a side.
    """
    whole("k", k, 1, _MOST)
    number("min_score", min_score, -1, 1)
    share("max_spelling", max_spelling)
    words, candidates = (sorted(known_words(model, given)) for given in (query_words, title_words))
    if not words or not candidates:
        raise SentembError(
            "no words to choose from: the model knows none of those of one side; give a log with "
            "more text, or fewer uses of a word"
        )
    vectors = vectors_of(model, words, "query")
    indices, scores = nearest(vectors, vectors_of(model, candidates, "document"), _LOOKED_AT)
    collected: ShownRows[Synonyms] = ShownRows()
    for word, row, of_row in zip(words, indices.tolist(), scores.tolist(), strict=True):
        near = [
            Neighbour(candidates[index], score)
            for index, score in zip(row, of_row, strict=True)
            if score >= min_score and spelling(word, candidates[index]) <= max_spelling
        ]
        if near:
            collected.append(Synonyms(word, near[:k]))
    return collected


def spelling(a: str, b: str) -> float:
    """How alike two words are spelled: Dice's coefficient of their distinct letter trigrams.

    Examples
    --------
    >>> spelling("folder", "older")
    0.7272727272727273
    >>> spelling("lawyer", "attorney")
    0.0
    """
    first, second = set(letter_trigrams(a)), set(letter_trigrams(b))
    return 2 * len(first & second) / (len(first) + len(second))


def solr_lines(entries: Iterable[Synonyms]) -> Iterator[str]:
    """The lines of a file of synonyms: ``cook => cook, chef``.

    An explicit mapping replaces the word, so the word itself is repeated on the right. Commas,
    ``=``, ``>``, ``#`` and backslashes in words are escaped by a backslash.
    """
    for entry in entries:
        right = [entry.word, *(near.word for near in entry.near)]
        yield f"{_escaped(entry.word)} => {', '.join(map(_escaped, right))}"


def _escaped(word: str) -> str:
    return _SIGNS.sub(r"\\\1", word)
