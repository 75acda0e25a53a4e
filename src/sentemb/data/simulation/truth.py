"""The truth about simulated texts: ``truth.jsonl``, as docs/formats.md describes it."""

import json
from dataclasses import dataclass

from sentemb.bounds import brief
from sentemb.data.lines import clean_lines
from sentemb.errors import SentembError
from sentemb.system.files import place_name
from sentemb.text.words import split_words

SIDES = ("query", "title")
_EXAMPLE = '{"text": "…", "side": "query", "topic": "…", "keywords": ["…"]}'


@dataclass(frozen=True, slots=True)
class Truth:
    """What a text is about.

    Attributes
    ----------
    topic : str
    keywords : frozenset of str
        The words that carry the meaning, as `split_words` gives them.
    """

    topic: str
    keywords: frozenset

    def marks(self, words):
        """For each of ``words`` (list of str) whether it is a keyword."""
        return [word in self.keywords for word in words]


def read_truth(path):
    """Read what the simulator knows about its texts.

    Parameters
    ----------
    path : str or path-like
        JSON lines with ``text``, ``side`` ("query" or "title"), ``topic`` and ``keywords``, other
        keys ignored; packed if the name ends in ``.gz``, ``-`` for standard input.

    Returns
    -------
    dict of dict of Truth
        ``truth["query"][text]`` and ``truth["title"][text]``.

    Raises
    ------
    SentembError
        With file, line and remedy, for JSON that does not parse, a key that is missing or of
        another type, another side, a keyword that is no word of the text, a text given twice on
        its side, NUL characters, invalid UTF-8, no line at all.
    """
    name = place_name(path)
    truth = {side: {} for side in SIDES}
    line_of = {}
    for number, line in clean_lines(path):
        place = f"{name}:{number}"
        text, side, found = _parse(line, place)
        if (side, text) in line_of:
            raise SentembError(
                f"{place}: the {side} stands in line {line_of[side, text]} already; keep one"
            )
        line_of[side, text] = number
        truth[side][text] = found
    if not line_of:
        raise SentembError(f"{name}: the input is empty; write lines {_EXAMPLE}")
    return truth


def _parse(line, place):
    """(text, side, `Truth`) of one line; ``place`` begins the messages."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise SentembError(
            f"{place}:{error.pos + 1}: not JSON ({error.msg}); write lines {_EXAMPLE}"
        ) from None
    except (ValueError, RecursionError):
        # Numbers of thousands of digits, or thousands of brackets.
        raise SentembError(f"{place}: not JSON that can be read; write lines {_EXAMPLE}") from None
    if not isinstance(record, dict):
        raise SentembError(f"{place}: no JSON object; write lines {_EXAMPLE}")
    for key in ("text", "side", "topic"):
        if not isinstance(record.get(key), str) or not record[key].strip():
            raise SentembError(f'{place}: no "{key}" that is a text; write lines {_EXAMPLE}')
    if record["side"] not in SIDES:
        raise SentembError(
            f'{place}: the side is {brief(record["side"])}; write "query" or "title"'
        )
    keywords = record.get("keywords")
    if not isinstance(keywords, list) or not all(isinstance(word, str) for word in keywords):
        raise SentembError(f'{place}: "keywords" is no list of words; write lines {_EXAMPLE}')
    keywords = [word.lower() for word in keywords]
    words = split_words(record["text"])
    for word in keywords:
        if word not in words:
            raise SentembError(
                f"{place}: the keyword {brief(word)} is not a word of the text; "
                "write it as it is there"
            )
    return record["text"], record["side"], Truth(record["topic"], frozenset(keywords))
