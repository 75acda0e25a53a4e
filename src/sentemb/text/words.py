"""Words of a text and letter trigrams of a word."""


def split_words(text: str) -> list[str]:
    """The words of ``text``: lower-cased and split at white space; nothing else is removed.

    This is how the paper prepares its log (section VI-A): it keeps numbers and does not stem.

    Examples
    --------
    >>> split_words("Cheap flights: ROME 2026")
    ['cheap', 'flights:', 'rome', '2026']
    """
    return text.lower().split()


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
