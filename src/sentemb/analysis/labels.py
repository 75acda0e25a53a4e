"""Labels of texts, words and models where they are shown, and how long a text may be."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.paths import AnyPath

# A figure and a page have room for this many words of a text.
MAX_WORDS = 200
# What the text of each side is called.
TEXT_NAMES = {"query": "query", "document": "title"}


def short_names(paths: Iterable[AnyPath]) -> list[str]:
    """The last part of each path, or as many last parts as it takes to tell the paths apart."""
    parts = [Path(os.path.realpath(path)).parts for path in paths]
    for count in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-count:]) for part in parts]
        if len(set(names)) == len(names):
            return names
    return ["/".join(part[-1:]) for part in parts]


def fitting(text: str, longest: int) -> str:
    """``text`` without control characters, cut to ``longest`` characters."""
    text = "".join(letter for letter in text if letter.isprintable())
    return text if len(text) <= longest else text[: longest - 1] + "…"


def same_words(of_models: Iterable[Sequence[str]]) -> Sequence[str]:
    """The words of a text that several models read; a `SentembError` where they differ."""
    first, *following = of_models
    if any(words != first for words in following):
        raise SentembError(
            "the models split the text into other words; compare models of one --splitting"
        )
    return first
