"""Words of a text, the key of equal queries, and letter trigrams of a word."""

import re
import unicodedata
from collections.abc import Callable, Mapping

# What `bare_words` drops before and after a word.
BEFORE = "\"'`([{<\u00ab\u2039\u201c\u201e\u2018\u201a\u00bf\u00a1"
AFTER = "\"'`)]}>\u00bb\u203a\u201d\u201c\u2019\u2018.,;:!?\u2026"
_RUN = re.compile(r"\w+")
_LETTERS_AND_DIGITS = re.compile(r"[^\W_]+")
# Categories of Unicode: marks on letters, and invisible signs such as soft hyphens.
_UNREAD = frozenset({"Mn", "Mc", "Me", "Cf"})


def split_words(text: str) -> list[str]:
    """The words of ``text``: lower-cased and split at white space; nothing else is removed.

    This is how the paper prepares its log (section V): it keeps numbers and does not stem.

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


def bare_words(text: str) -> list[str]:
    """The words of ``text`` in Unicode's form C, without the punctuation around them.

    Lower-cased and split at white space like those of `split_words`. Brackets and quotes are
    dropped from both ends of a word, and commas, full stops and the like from its end. Signs that
    may belong to a word stay, as in "c++", ".net", "--all" and "50%", and so does a word that has
    nothing else.

    Examples
    --------
    >>> bare_words("'Cheap' flights: ROME (in 2026)?")
    ['cheap', 'flights', 'rome', 'in', '2026']
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    words = text.lower().split()
    return [word if word.isalnum() else without_edges(word) for word in words]


def without_edges(word: str) -> str:
    """``word`` without quotes, brackets, commas and the like around it, unless it is all such."""
    return word.lstrip(BEFORE).rstrip(AFTER) or word


def query_key(text: str) -> str:
    """A key that all spellings of a query share: its distinct words, sorted.

    A word is a run of letters and digits. Case, accents and other marks, the compatibility forms of
    Unicode (full-width letters, ligatures), punctuation, the order of words and their repetitions
    do not count. A text without letters and digits is its own key.

    Models tell fewer queries apart than their texts do, each in its own way: none reads case, some
    drop punctuation, a bag of words has no order. So this is coarser than what any of them reads.

    Examples
    --------
    >>> query_key('"Cafés" in ROME?') == query_key("rome: in cafes")
    True
    >>> query_key("c'est ça")
    'c ca est'
    """
    folded = text.lower()
    if not text.isascii():
        letters = unicodedata.normalize("NFKD", text)
        # Upper case first: dotless i and final sigma are other letters in lower case only.
        letters = unicodedata.normalize("NFKD", letters.upper().casefold())
        folded = "".join(c for c in letters if unicodedata.category(c) not in _UNREAD)
    return " ".join(sorted(set(_LETTERS_AND_DIGITS.findall(folded)))) or text


# How a model may split texts into words: the name in model files, and the function.
WHITE_SPACE = "white-space"
PLAIN = "words"
BARE = "bare"
SPLITTINGS: Mapping[str, Callable[[str], list[str]]] = {
    WHITE_SPACE: split_words,
    PLAIN: plain_words,
    BARE: bare_words,
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
