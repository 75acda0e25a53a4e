"""Words of running text, without punctuation."""

import re

# Runs of letters and digits. An apostrophe between letters and a point or comma between digits are
# part of a word: "don't", "10,000", "3.5".
_WORD = re.compile(r"[^\W_]+(?:(?:'|(?<=\d)[.,](?=\d))[^\W_]+)*")


def words_of(text: str) -> list[str]:
    """The lower-cased words of ``text`` without punctuation.

    Examples
    --------
    >>> words_of("“Don’t,” she said—for _3.5_ or 10,000 well-known reasons.")
    ["don't", 'she', 'said', 'for', '3.5', 'or', '10,000', 'well', 'known', 'reasons']
    """
    return _WORD.findall(text.lower().replace("’", "'"))
