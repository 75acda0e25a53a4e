"""Words of a text, the key of equal queries, and letter trigrams of a word."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import TypeAlias

# What makes words of a text, or of a part of it.
_Read: TypeAlias = Callable[[str], list[str]]


def _marks_and_punctuation() -> tuple[str, str]:
    """Marks on letters, and the punctuation that no word begins or ends with, up to U+30FF.

    What `_composed` leaves is below that, apart from scripts that are hardly written.
    """
    letters = [chr(code) for code in range(0xA1, 0x3100)]
    categories = [unicodedata.category(letter)[0] for letter in letters]
    marks, punctuation = (
        "".join(c for c, of in zip(letters, categories, strict=True) if of == category)
        for category in "MP"
    )
    return marks, "".join(c for c in punctuation if c not in "\u066a\u0609\u060a\u2030\u2031")


# Letters of the scripts without blanks between words: Chinese, Japanese, Thai, Lao and Khmer. All
# are in Unicode 13, so that every Python finds the same words.
UNSPACED = (
    "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9ffc\ufa0e\ufa0f\ufa11\ufa13\ufa14\ufa1f\ufa21\ufa23\ufa24"
    "\ufa27-\ufa29\U00020000-\U0002a6dd\U0002a700-\U0002b734\U0002b740-\U0002b81d"
    "\U0002b820-\U0002cea1\U0002ceb0-\U0002ebe0\U00030000-\U0003134a"
    "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46"
    "\u0e81\u0e82\u0e84\u0e86-\u0e8a\u0e8c-\u0ea3\u0ea5\u0ea7-\u0eb0\u0eb2\u0eb3\u0ebd\u0ec0-\u0ec4"
    "\u0ec6\u0edc-\u0edf\u1780-\u17b3\u17d7\u17dc"
)
# In these scripts words end at such signs too.
SEPARATORS = (
    "\u3001-\u3003\u3008-\u3011\u3014-\u301f\u30fb\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
)
_MARKS, _PUNCTUATION = _marks_and_punctuation()
# What `bare_words` drops before and after a word.
BEFORE = "\"'`([{<\u00b4" + _PUNCTUATION
AFTER = "\"'`)]}>.,:;!?\u00b4" + _PUNCTUATION
# Signs that NFKC would take for letters, digits, blanks or commas.
_UNCHANGED = f"{SEPARATORS}\u00b4\u00a8\u00bc-\u00be\u2150-\u215e\u2026"
_CHANGED_RUN = re.compile(f"[^{_UNCHANGED}]+")
# Invisible signs, among them those that choose a shape of a letter, and signs of trade marks.
SILENT = (
    "\u00ae\u00a9\u2120\u2122\u00ad\u200c-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069"
    "\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef"
)
_SILENT = re.compile(f"[{SILENT}]")
# Between two letters that stand alone, it says that they are one word: see `text_of_words`.
JOINER = "\u2060"
# What a tokeniser elsewhere needs, as ranges of regular expressions.
SIGNS = {
    "unspaced": UNSPACED,
    "separators": SEPARATORS,
    "unchanged": _UNCHANGED,
    "silent": SILENT,
    "marks": _MARKS,
    "before": BEFORE,
    "after": AFTER,
}
# A letter with the marks on it and, in Khmer, with the letters below it.
_WHOLE_LETTER = re.compile(f"[{UNSPACED}](?:\u17d2[{UNSPACED}]|[{_MARKS}])*")
_JOINED = re.compile(f"(?<!\\S)({_WHOLE_LETTER.pattern}){JOINER}({_WHOLE_LETTER.pattern})(?!\\S)")
_BEGINS_UNSPACED = re.compile(f"[{UNSPACED}]")
_APART = re.compile(f"[{UNSPACED}{SEPARATORS}]")
_PAIRED = f"[{UNSPACED}][{UNSPACED}{_MARKS}]*"
_PART = re.compile(f"{_PAIRED}|[^{UNSPACED}{SEPARATORS}]+")
_SEARCHED = re.compile(f"{_PAIRED}|(?:[^\\W{UNSPACED}]|[{_MARKS}])+")
_RUN = re.compile(r"\w+")
_BETWEEN_RUNS = re.compile(r"[^\x00-\x7f\w\s]+")
_BETWEEN_SEARCHED = re.compile(f"[^\\x00-\\x7f\\w\\s{UNSPACED}{_MARKS}]+")
_RUN_OF_UNSPACED = re.compile(_PAIRED)
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
    """The words of ``text`` as a search reads them: without the punctuation around them.

    Lower-cased and split at white space like those of `split_words`. Brackets and quotes are
    dropped from both ends of a word, and commas, full stops and the like from its end. Signs that
    may belong to a word stay, as in "c++", ".net", "--all" and "50%", and so does a word that has
    nothing else.

    Full-width letters, ligatures and composed or separate accents are one letter (Unicode's form
    NFKC), and so are i, I and the Turkish dotless i and dotted I. Chinese, Japanese, Thai, Lao
    and Khmer put no blanks between words: every two neighbouring letters are a word.

    Examples
    --------
    >>> bare_words("'Cheap' flights: ROME (in 2026)?")
    ['cheap', 'flights', 'rome', 'in', '2026']
    >>> bare_words("ＵＳＢ充電器、白")
    ['usb', '充電', '電器', '白']
    """
    return _bare(text, _pairs)


def lettered_words(text: str) -> list[str]:
    """The words of ``text`` as `bare_words`, with the single letters next to every pair of them.

    A word of one Chinese letter then meets the longer words that it is in.

    Examples
    --------
    >>> lettered_words("ＵＳＢ充電器、白")
    ['usb', '充', '充電', '電', '電器', '器', '白']
    """
    if JOINER in text:
        return _each_joined(text, _bare)
    return _bare(text, _letters_and_pairs)


def without_edges(word: str) -> str:
    """``word`` without quotes, brackets, commas and the like around it, unless it is all such."""
    return word.lstrip(BEFORE).rstrip(AFTER) or word


def searched_words(text: str) -> list[str]:
    """The words of ``text`` as BM25 reads them: `plain_words` of what `lettered_words` makes of it.

    Marks belong to the word that they are in.

    Examples
    --------
    >>> searched_words("Cheap-flights: ROME 東京都")
    ['cheap', 'flights', 'rome', '東', '東京', '京', '京都', '都']
    """
    if JOINER in text:
        return _each_joined(text, _searched)
    return _searched(text, _letters_and_pairs)


def searched_pairs(text: str) -> list[str]:
    """The words of ``text`` as the BM25 of version 1.0 reads them: without the single letters.

    Examples
    --------
    >>> searched_pairs("Cheap-flights: ROME 東京都")
    ['cheap', 'flights', 'rome', '東京', '京都']
    """
    return _searched(text, _pairs)


def text_of_words(words: Iterable[str]) -> str:
    """The text of which `lettered_words` and `searched_words` make these words of theirs.

    Two letters that are one word have the invisible `JOINER` between them, so that they are not
    read as single letters too.
    """
    return " ".join(_joined(word) for word in words)


def _joined(word: str) -> str:
    letters = _WHOLE_LETTER.findall(word)
    return JOINER.join(letters) if len(letters) == 2 and "".join(letters) == word else word


def _each_joined(text: str, read: Callable[[str, _Read], list[str]]) -> list[str]:
    """The words that ``read`` makes of ``text``; those that `text_of_words` joined stay whole."""
    first, *rest = _JOINED.split(text)
    words = read(first, _letters_and_pairs)
    for a, b, text_behind in zip(*[iter(rest)] * 3, strict=True):
        words += [a + b, *read(text_behind, _letters_and_pairs)]
    return words


def _bare(text: str, cut: _Read) -> list[str]:
    """The bare words, where ``cut`` makes words of a run of `UNSPACED` letters."""
    if text.isascii():
        words = text.lower().split()
        if "".join(words).isalnum():
            return words
        return [word if word.isalnum() else without_edges(word) for word in words]
    composed = _composed(text).lower()
    if _APART.search(composed):
        return [part for word in composed.split() for part in _parts(word, cut)]
    words = [word if word.isalnum() else without_edges(word) for word in composed.split()]
    return words or text.split()


def _searched(text: str, cut: _Read) -> list[str]:
    """The words of BM25, where ``cut`` makes words of a run of `UNSPACED` letters."""
    if text.isascii():
        return _RUN.findall(text.lower())
    runs = _SEARCHED.findall(_composed(text).lower())
    return [word for run in runs for word in cut(run)]


def _composed(text: str) -> str:
    """``text`` with the same letters in whatever way Unicode writes them, and no invisible signs.

    That is its form NFKC, apart from signs that would become other words, such as fractions.
    """
    # A blank without width separates words in Khmer and Thai.
    text = _SILENT.sub("", text.replace("\u200b", " "))
    if not unicodedata.is_normalized("NFKC", text):
        text = _CHANGED_RUN.sub(
            lambda run: unicodedata.normalize("NFKC", run[0]), unicodedata.normalize("NFC", text)
        )
    return text.replace("\u0130", "i").replace("\u0131", "i")


def _parts(word: str, cut: _Read) -> list[str]:
    """The bare words of a run without white space."""
    parts = []
    for part in _PART.findall(word):
        if _BEGINS_UNSPACED.match(part):
            parts += cut(part)
        elif bare := part.lstrip(BEFORE).rstrip(AFTER):
            parts.append(bare)
    return parts or [word]


def _pairs(run: str) -> list[str]:
    """Every two neighbouring letters, with their marks, of a run of `UNSPACED` ones.

    A single letter, and a run of other letters, is a word.
    """
    if not _BEGINS_UNSPACED.match(run):
        return [run]
    letters = _WHOLE_LETTER.findall(run)
    return [a + b for a, b in pairwise(letters)] or letters


def _letters_and_pairs(run: str) -> list[str]:
    """As `_pairs`, with every letter before the pair that it begins."""
    if not _BEGINS_UNSPACED.match(run):
        return [run]
    letters = _WHOLE_LETTER.findall(run)
    return [word for a, b in pairwise(letters) for word in (a, a + b)] + letters[-1:]


def folded_words(text: str) -> list[str]:
    """The words of ``text`` without case, accents and other marks: runs of letters and digits.

    Nor do the compatibility forms of Unicode (full-width letters, ligatures) count.

    Examples
    --------
    >>> folded_words('"Cafés" in ROME?')
    ['cafes', 'in', 'rome']
    """
    if text.isascii():
        return _LETTERS_AND_DIGITS.findall(text.lower())
    runs = _SEARCHED.findall(_without_marks(text).replace("_", " "))
    return [word for run in runs for word in _pairs(run)]


def exact_key(text: str) -> str:
    """A key that the spellings of one query share: its `bare_words` in order, without accents.

    Case, accents and the punctuation around words do not count. The order of words does, and so do
    signs that belong to a word, as in "c++".

    Examples
    --------
    >>> exact_key('"Cafés" in  ROME?')
    'cafes in rome'
    >>> exact_key("C++") == exact_key("c")
    False
    """
    return " ".join(_bare(text if text.isascii() else _without_marks(text), _pairs))


def _without_marks(text: str) -> str:
    """``text`` in small letters without accents, other marks and invisible signs."""
    letters = unicodedata.normalize("NFKD", _composed(text))
    # Upper case first: dotless i and final sigma are other letters in lower case only.
    letters = unicodedata.normalize("NFKD", letters.upper().casefold())
    return "".join(c for c in letters if unicodedata.category(c) not in _UNREAD)


def query_key(text: str) -> str:
    """A key that all spellings of a query share: its distinct `folded_words`, sorted.

    The order of words and their repetitions do not count. A text without letters and digits is its
    own key.

    Models tell fewer queries apart than their texts do, each in its own way: none reads case, some
    drop punctuation, a bag of words has no order. So this is coarser than what any of them reads.

    Examples
    --------
    >>> query_key('"Cafés" in ROME?') == query_key("rome: in cafes")
    True
    >>> query_key("c'est ça")
    'c ca est'
    """
    return " ".join(sorted(set(folded_words(text)))) or text


# How a model may split texts into words: the name in model files, and the function.
WHITE_SPACE = "white-space"
PLAIN = "words"
BARE = "bare"
LETTERED = "bare-letters"
SPLITTINGS: Mapping[str, Callable[[str], list[str]]] = {
    WHITE_SPACE: split_words,
    PLAIN: plain_words,
    BARE: bare_words,
    LETTERED: lettered_words,
}
# That of a new model.
NEW = LETTERED


def _plain_lines(lines: str) -> str:
    return _BETWEEN_RUNS.sub(" ", lines.lower())


def _searched_lines(lines: str) -> str:
    if JOINER in lines:
        return "\n".join(" ".join(searched_words(line)) for line in lines.split("\n"))
    return _spaced_lines(lines, _letters_and_pairs)


def _searched_lines_in_pairs(lines: str) -> str:
    return _spaced_lines(lines, _pairs)


def _spaced_lines(lines: str, cut: _Read) -> str:
    composed = _composed(lines).lower()
    if _BEGINS_UNSPACED.search(composed):
        composed = _RUN_OF_UNSPACED.sub(lambda run: f" {' '.join(cut(run[0]))} ", composed)
    return _BETWEEN_SEARCHED.sub(" ", composed)


# For splittings, what makes of texts with a line feed behind each the same lines with the words of
# each and white space between them. That takes less time than one text after the other.
SPACED_LINES: Mapping[Callable[[str], list[str]], Callable[[str], str]] = {
    plain_words: _plain_lines,
    searched_words: _searched_lines,
    searched_pairs: _searched_lines_in_pairs,
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
