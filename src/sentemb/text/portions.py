"""Texts in portions, so that reading them needs little memory."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

_Texts = TypeVar("_Texts", list[str], Sequence[str])


def portions(texts: _Texts, most_texts: int, most_characters: int) -> Iterator[_Texts]:
    """Cut ``texts`` into portions of limited size.

    most_texts, most_characters : limits of a portion; a longer text makes up a portion alone
    """
    first = 0
    while first < len(texts):
        portion = texts[first : first + most_texts]
        while len(portion) > 1 and sum(map(len, portion)) > most_characters:
            portion = portion[: len(portion) // 2]
        yield portion
        first += len(portion)
