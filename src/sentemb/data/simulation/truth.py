"""The truth about simulated texts: ``truth.jsonl``, described in docs/formats.md."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sentemb.data.lines import clean_lines
from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath
from sentemb.text.words import split_words

# Values of the key "side".
_TEXTS = ("query", "title")
_EXAMPLE = '{"text": "…", "side": "query", "topic": "…", "keywords": ["…"]}'


@dataclass(frozen=True, slots=True)
class Truth:
    """Topic and keywords of a text.

    Keywords are the words that carry the meaning, as `split_words` gives them.
    """

    topic: str
    keywords: frozenset[str]

    def marks(self, words: Iterable[str]) -> list[bool]:
        """For each of ``words``, whether it is a keyword."""
        return [word in self.keywords for word in words]


def read_truth(path: AnyPath) -> dict[str, dict[str, Truth]]:
    """Read the simulator's knowledge of its texts.

    The file has JSON lines with ``text``, ``side`` ("query" or "title"), ``topic`` and
    ``keywords``; other keys are ignored. It is compressed if the name ends in ``.gz``, ``-`` for
    standard input. Returns ``truth["query"][text]`` and ``truth["title"][text]``. Raises
    `SentembError`, with file, line and remedy, for JSON that does not parse, a key that is missing
    or has another type, another side, a keyword that is not a word of the text, a text given twice
    for a side, NUL characters, invalid UTF-8, an empty file.
    """
    name = place_name(path)
    truth: dict[str, dict[str, Truth]] = {side: {} for side in _TEXTS}
    line_of: dict[tuple[str, str], int] = {}
    for number, line in clean_lines(path):
        where = f"{name}:{number}"
        text, side, truth_of_text = _parse(line, where)
        if (side, text) in line_of:
            raise SentembError(
                f"{where}: the {side} is already in line {line_of[side, text]}; keep one"
            )
        line_of[side, text] = number
        truth[side][text] = truth_of_text
    if not line_of:
        raise SentembError(f"{name}: the input is empty; write lines {_EXAMPLE}")
    return truth


def _parse(line: str, where: str) -> tuple[str, str, Truth]:
    """(text, side, `Truth`) of one line; ``where`` begins the messages."""
    record = _json_value(line, where)
    if not isinstance(record, dict):
        raise SentembError(f"{where}: not a JSON object; write lines {_EXAMPLE}")
    for key in ("text", "side", "topic"):
        if not isinstance(record.get(key), str) or not record[key].strip():
            raise SentembError(f'{where}: "{key}" is not a text; write lines {_EXAMPLE}')
    if record["side"] not in _TEXTS:
        raise SentembError(
            f'{where}: the side is {brief(record["side"])}; write "query" or "title"'
        )
    keywords = record.get("keywords")
    if not isinstance(keywords, list) or not all(isinstance(word, str) for word in keywords):
        raise SentembError(f'{where}: "keywords" is not a list of words; write lines {_EXAMPLE}')
    keywords = [word.lower() for word in keywords]
    words = split_words(record["text"])
    for word in keywords:
        if word not in words:
            raise SentembError(
                f"{where}: the keyword {brief(word)} is not a word of the text; "
                "write it as the text has it"
            )
    return record["text"], record["side"], Truth(record["topic"], frozenset(keywords))


def _json_value(line: str, where: str) -> Any:
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise SentembError(
            f"{where}:{error.pos + 1}: not JSON ({error.msg}); write lines {_EXAMPLE}"
        ) from None
    except (ValueError, RecursionError):
        # Numbers of thousands of digits, or thousands of brackets.
        raise SentembError(f"{where}: not JSON that can be read; write lines {_EXAMPLE}") from None
