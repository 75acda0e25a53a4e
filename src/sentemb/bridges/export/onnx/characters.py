"""Python's properties of characters, as a text file for tokenisers in other languages.

Lower case, white space and the letters of a word differ between languages and between versions of
Unicode. The file has them as this Python has them, so that a tokeniser in another language finds
the same words.
"""

import re
import sys
from collections.abc import Iterable
from functools import cache

from sentemb.bridges.export.final_sigma import assigned, cased_and_ignored
from sentemb.text.words import SIGNS

# The only character whose lower case is more than one character: a capital I with a dot above.
_DOTTED_I = "\u0130"


@cache
def character_table() -> str:
    """The file ``characters.txt``: a line for each property, with ranges of code points in hex.

    ==================  ====================================================================
    line                holds
    ==================  ====================================================================
    ``space``           what separates words
    ``word``            what a word consists of, if texts are split into runs of letters
    ``before, after``   what is dropped from the beginning and the end of a word (``bare``)
    ``unspaced``        letters of scripts without blanks between words
    ``marks``           signs on letters
    ``separators``      what ends a word like white space in these scripts
    ``unchanged``       what NFKC is not applied to
    ``silent``          what is removed
    ``cased, ignored``  what decides the lower case of a capital sigma: it is final after a
                        cased character and not before one, ignored ones left out
    ``lower``           ``41-5a>61``: code points and the first of their lower cases
    ==================  ====================================================================
    """
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    cased, ignored = cased_and_ignored()
    lines = {
        "space": _ranges(character for character in every if character.isspace()),
        "word": _ranges(
            character for character in every if character.isalnum() or character == "_"
        ),
        **{name: _ranges(_listed(signs)) for name, signs in SIGNS.items()},
        "cased": _ranges(cased),
        "ignored": _ranges(ignored),
        "lower": _lower_cases(assigned()),
    }
    return "".join(f"{name} {' '.join(entries)}\n" for name, entries in lines.items())


def _listed(signs: str) -> list[str]:
    """The characters in some ranges of a regular expression, rising."""
    ranges = re.findall("(.)(?:-(.))?", signs, re.DOTALL)
    codes = {code for a, b in ranges for code in range(ord(a), ord(b or a) + 1)}
    return list(map(chr, sorted(codes)))


def _ranges(characters: Iterable[str]) -> list[str]:
    """Rising characters as ranges of code points."""
    ranges: list[list[int]] = []
    for code in map(ord, characters):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return [f"{first:x}-{last:x}" for first, last in ranges]


def _lower_cases(characters: list[str]) -> list[str]:
    """The characters that have another lower case, as ranges with the first lower case."""
    ranges: list[list[int]] = []
    for character in characters:
        lower = character.lower()
        if lower == character or character == _DOTTED_I:
            continue
        code, target = ord(character), ord(lower)
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] + code - ranges[-1][0] == target:
            ranges[-1][1] = code
        else:
            ranges.append([code, code, target])
    return [f"{first:x}-{last:x}>{target:x}" for first, last, target in ranges]
