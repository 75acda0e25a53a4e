"""When a capital sigma is final, as this Python's Unicode has it, for tokenisers elsewhere.

A capital sigma becomes a final one if the nearest character before it that is not ignored is cased,
and the nearest one after it is not. Which characters are cased or ignored differs between versions
of Unicode. Python does not tell, but its lower cases do.
"""

import sys
import unicodedata
from functools import cache

SIGMA, _FINAL = "Σ", "ς"


def assigned() -> list[str]:
    """All characters that this Python knows, without surrogates and those of private use."""
    every = map(chr, range(sys.maxunicode + 1))
    return [
        character
        for character in every
        if unicodedata.category(character) not in ("Cn", "Cs", "Co")
    ]


@cache
def cased_and_ignored() -> tuple[list[str], list[str]]:
    """The characters that are cased, and those that are ignored, in the order of code points."""
    characters = assigned()
    cased = [character for character in characters if _is_final("", character)]
    # Behind a letter a sigma is final after a cased and after an ignored character.
    after_letter = [character for character in characters if _is_final("a", character)]
    known = set(cased)
    return cased, [character for character in after_letter if character not in known]


def _is_final(before: str, character: str) -> bool:
    """Whether a capital sigma after both is a final one."""
    return f"{before}{character}{SIGMA}".lower()[-1] == _FINAL
