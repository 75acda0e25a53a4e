"""Words of a text and letter trigrams of a word."""


def split_words(text: str) -> list[str]:
    """The words of ``text``: lower-cased and split at white space; nothing else is removed.

    This is how the paper prepares its log (section VI-A): it keeps numbers and does not stem.
    """
    return text.lower().split()


def letter_trigrams(word: str) -> list[str]:
    """The letter trigrams of ``#word#``, in order, repeats included.

    ``good`` gives ``#go``, ``goo``, ``ood``, ``od#``; ``a`` gives ``#a#``.
    """
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]
