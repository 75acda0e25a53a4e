"""Texts as users give them, checked."""

from collections.abc import Iterable

from sentemb.errors import SentembError


def as_texts(texts: Iterable[str]) -> list[str]:
    """``texts`` as a list of str; one str, bytes or a table is an error."""
    try:
        if isinstance(texts, str | bytes | dict) or getattr(texts, "ndim", 1) != 1:
            raise TypeError
        checked = list(texts)
    except TypeError:
        raise SentembError(f"give a list of texts, not {type(texts).__name__}") from None
    if not set(map(type, checked)) <= {str}:
        checked = [as_text(text) for text in checked]
    return checked


def as_text(text: str) -> str:
    """``text`` if it is a str."""
    if not isinstance(text, str):
        raise SentembError(f"a text must be str, not {type(text).__name__}")
    return text
