"""Word vectors as text: GloVe, and word2vec with its header line.

Each row is a word and its numbers, separated by blanks. A word may contain blanks itself, so a row
is read from its end. The first line tells the formats apart: two integers are the header of
word2vec. (A GloVe row with one number could look the same, so GloVe text needs two or more
dimensions.)
"""

from array import array
from collections.abc import Callable, Collection
from io import BufferedIOBase
from itertools import chain

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.vectors.formats.collector import Collector
from sentemb.models.vectors.formats.header import Header, checked_header, header_of
from sentemb.models.vectors.formats.number_fields import ends_in_numbers, is_number, numbers_at_end
from sentemb.models.vectors.vector_limits import MAX_DIM
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.bounds import brief
from sentemb.system.files import numbered, portions_in

_FORMATS = (
    "give GloVe text (lines of a word and its numbers), word2vec text (the same after a "
    'first line "words dimensions"), or word2vec binary'
)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# Rows that are checked and kept at a time.
_ROWS = 4096


def read_text(
    file: BufferedIOBase,
    name: str,
    limit: int | None,
    words: Collection[str] | None,
    note: Callable[[str], None],
) -> WordVectors:
    """Read GloVe text or word2vec text; see `sentemb.models.vectors.reading.read_word_vectors`."""
    lines = numbered(portions_in(file, name))
    number, raw = next(lines, (1, b""))
    raw = raw.removeprefix(_BYTE_ORDER_MARK)
    if not raw:
        raise SentembError(f"{name}: no vectors, the file is empty; {_FORMATS}")
    header = header_of(raw)
    if header is None:
        dim = _dim_of(raw, name)
        lines = chain([(number, raw)], lines)
    else:
        dim = checked_header(header, name).dim
    reader = _TextRows(name, header, dim, Collector(name, limit, words))
    for number, raw in lines:
        reader.read(number, raw)
        if reader.is_full:
            break
    else:
        reader.check_end(number, raw, note)
    return reader.collected(note)


class _TextRows:
    """Reads the rows of the file ``name``, of ``dim`` numbers each, into ``collector``.

    ``header`` is what the first line says, None if it is a row.
    """

    def __init__(self, name: str, header: Header | None, dim: int, collector: Collector) -> None:
        self._name = name
        self._header = header
        self._dim = dim
        self._collector = collector
        self._count = 0
        self._words: list[str] = []
        self._lines: list[int] = []
        self._numbers = array("d")

    @property
    def is_full(self) -> bool:
        """Whether the limit is reached."""
        return self._collector.is_full

    def read(self, line: int, raw: bytes) -> None:
        """Read one row; ``line`` is its number in the file."""
        if not raw.strip():
            return
        self._count += 1
        if self._header is not None and self._count > self._header.n_words:
            raise SentembError(
                f"{self._name}:{line}: the header says {self._header.n_words:,} words, but here is "
                "one more; correct the header in line 1"
            )
        fields = raw.rsplit(None, self._dim)
        word = self._word(line, raw, fields)
        if word is None or not self._collector.wants(word):
            return
        try:
            if b"_" in raw and b"_" in b"".join(fields[1:]):  # Python reads 1_0 as 10
                raise ValueError
            self._numbers.extend(map(float, fields[1:]))
        except ValueError:
            del self._numbers[self._dim * len(self._words) :]
            self._collector.pass_over(f"{self._name}:{line}", self._fault(raw), word)
            return
        self._words.append(word)
        self._lines.append(line)
        if len(self._words) == _ROWS:
            self._flush()

    def _word(self, line: int, raw: bytes, fields: list[bytes]) -> str | None:
        """The word of a row; None if there is none that a text can have, or no row."""
        why = ""
        if _is_blank(raw) and len(fields) == self._dim and all(map(is_number, fields)):
            why = "a word is empty"
        elif len(fields) <= self._dim or b"\0" in raw or _has_one_more(fields[0]):
            why = self._fault(raw)
        try:
            word = fields[0].decode("utf-8")
        except UnicodeDecodeError as error:
            line_and_column = f"{line}:{error.start + 1}"
            self._collector.pass_over(
                f"{self._name}:{line_and_column}", why or "a word is not valid UTF-8"
            )
            return None
        if why:
            self._collector.pass_over(f"{self._name}:{line}", why)
        return None if why else word

    def check_end(self, line: int, raw: bytes, note: Callable[[str], None]) -> None:
        """Check the end of the file, whose last line is ``raw``."""
        if self._header is not None and self._count < self._header.n_words:
            raise SentembError(
                f"{self._name}:1: the header says {self._header.n_words:,} words, but the file has "
                f"{self._count:,}; get the whole file again or correct the header"
            )
        if not raw.endswith(b"\n"):
            note(f"{self._name}:{line}: the last line has no line end; is the file whole?")

    def collected(self, note: Callable[[str], None]) -> WordVectors:
        """The words and vectors that were kept."""
        self._flush()
        return self._collector.collected(note)

    def _flush(self) -> None:
        rows = np.frombuffer(self._numbers, np.float64).reshape(-1, self._dim)
        lines = self._lines
        self._collector.add(self._words, rows, lambda k: f"{self._name}:{lines[k]}")
        self._words, self._lines, self._numbers = [], [], array("d")

    def _fault(self, raw: bytes) -> str:
        """The fault of a row that cannot be read."""
        if b"\0" in raw:
            return "a NUL character"
        fields = raw.split()
        last = fields[-self._dim :]
        if len(fields) > self._dim and not all(map(is_number, last)):
            wrong = next(field for field in last if not is_number(field))
            return (
                f"{brief(wrong.decode('utf-8', 'replace'))} is not a number; a row is a word and "
                f"{_numbers(self._dim)}"
            )
        expected = "line 1 has" if self._header is None else "the header says"
        return f"{_numbers(numbers_at_end(fields))} in the row, but {expected} {self._dim}"


def _dim_of(raw: bytes, name: str) -> int:
    """The numbers in the first row of a file without a header."""
    fields = raw.split()
    is_blank = _is_blank(raw) and ends_in_numbers(fields, len(fields))
    count = len(fields) if is_blank else numbers_at_end(fields)
    if b"\0" in raw or count == 0:
        raise SentembError(f"{name}:1: not a row of a word and its numbers; {_FORMATS}")
    if count == 1:
        raise SentembError(
            f"{name}:1: one number after the word, as in a file of counts; {_FORMATS}; vectors of "
            'one dimension need the line "words 1" above them'
        )
    if count > MAX_DIM:
        raise SentembError(f"{name}:1: {count:,} numbers after the word; give at most {MAX_DIM:,}")
    return count


def _is_blank(raw: bytes) -> bool:
    """Whether a row begins with white space, as it does if its word is blank or empty."""
    return raw[:1].isspace()


def _has_one_more(word: bytes) -> bool:
    """Whether a word with blanks ends in a number: then the row has one too many."""
    parts = word.split()
    return len(parts) > 1 and is_number(parts[-1])


def _numbers(count: int) -> str:
    return f"{count} number{'s' * (count != 1)}"
