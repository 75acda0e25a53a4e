"""Words of a text and letter trigrams of a word."""

import re
from collections.abc import Callable, Mapping

_RUN = re.compile(r"\w+")


def split_words(text: str) -> list[str]:
    """The words of ``text``: lower-cased and split at white space; nothing else is removed.

    This is how the paper prepares its log (section VI-A): it keeps numbers and does not stem.

    Examples
    --------
    >>> split_words("Cheap flights: ROME 2026")
    ['cheap', 'flights:', 'rome', '2026']
    """
    return text.lower().split()


def plain_words(text: str) -> list[str]:
    """The words of ``text`` without punctuation: lower-cased runs of letters, digits and ``_``.

    For models whose features are whole words: letter trigrams make "shoes:" nearly identical to
    "shoes", but a list of words has only one of them.

    Examples
    --------
    >>> plain_words("Cheap flights: ROME 2026")
    ['cheap', 'flights', 'rome', '2026']
    """
    return _RUN.findall(text.lower())


# How a model may split texts into words: the name in model files, and the function.
WHITE_SPACE = "white-space"
PLAIN = "words"
SPLITTINGS: Mapping[str, Callable[[str], list[str]]] = {
    WHITE_SPACE: split_words,
    PLAIN: plain_words,
}


def letter_trigrams(word: str) -> list[str]:
    """The letter trigrams of ``#word#``, in order, repeats included.

    Examples
    --------
    >>> letter_trigrams("good")
    ['#go', 'goo', 'ood', 'od#']
    >>> letter_trigrams("a")
    ['#a#']
    """
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]
