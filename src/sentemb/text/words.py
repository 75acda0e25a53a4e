"""Words of a text and letter trigrams of a word."""


def split_words(text):
    """The words of ``text``: lower-cased, split at white space, nothing else removed.

    As the paper prepares its log (its section VI-A): numbers are kept, nothing is stemmed.
    """
    return text.lower().split()


def letter_trigrams(word):
    """The letter trigrams of ``#word#``, in order, repeats included.

    ``good`` gives ``#go``, ``goo``, ``ood``, ``od#``; ``a`` gives ``#a#``.
    """
    marked = f"#{word}#"
    return [marked[i : i + 3] for i in range(len(marked) - 2)]
