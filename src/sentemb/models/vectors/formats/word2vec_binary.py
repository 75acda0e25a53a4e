"""word2vec's binary format: a header line, then a word, a blank and float32 numbers for each word.

The original program writes a line feed after each vector, others do not. What follows the first
vector decides, and all others must be followed by the same.
"""

from collections.abc import Callable, Collection
from io import BufferedIOBase

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.vectors.formats.collector import Collector
from sentemb.models.vectors.formats.header import Header, checked_header, header_of
from sentemb.models.vectors.word_vectors import WordVectors

_AGAIN = "get the whole file again"
_MOST_HEADER_BYTES = 100
_MOST_WORD_BYTES = 65_536
# Bytes that are read at a time, and about the bytes of vectors that are kept at a time.
_PIECE = 1 << 20


def read_binary(
    file: BufferedIOBase,
    name: str,
    limit: int | None,
    words: Collection[str] | None,
    note: Callable[[str], None],
) -> WordVectors:
    """Read word2vec binary; see `sentemb.models.vectors.reading.read_word_vectors`."""
    collector = Collector(name, limit, words)
    _BinaryRows(_Bytes(file), name, collector).read()
    return collector.collected(note)


class _Bytes:
    """The bytes of a file in order, however long the pieces are that it gives."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._piece = b""
        self._at = 0
        self._before = 0

    @property
    def position(self) -> int:
        """Number of bytes taken."""
        return self._before + self._at

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end of the file."""
        while len(self._piece) - self._at < count:
            piece = self._file.read(max(_PIECE, count))
            if not piece:
                break
            self._before += self._at
            self._piece, self._at = self._piece[self._at :] + piece, 0
        return self._piece[self._at : self._at + count]

    def take(self, count: int) -> bytes:
        """`peek`, and move behind these bytes."""
        taken = self.peek(count)
        self._at += len(taken)
        return taken

    def take_until(self, end: bytes, most: int) -> bytes | None:
        """The bytes before the byte ``end``, which is taken too; None if it is not near."""
        position = self._piece.find(end, self._at)  # in the piece at hand almost always
        if position < 0:
            position = self.peek(most + 1).find(end)
            position = position if position < 0 else position + self._at
        if not 0 <= position - self._at <= most:
            return None
        taken = self._piece[self._at : position]
        self._at = position + 1
        return taken


class _BinaryRows:
    """Reads the words and vectors of one file."""

    def __init__(self, source: _Bytes, name: str, collector: Collector) -> None:
        self._source = source
        self._name = name
        self._collector = collector
        self._line_end: bytes | None = None
        self._start_block()

    def read(self) -> None:
        count, dim = self._header()
        for row in range(count):
            self._read_row(row, count, dim)
            if len(self._vectors) >= _PIECE:
                self._flush(dim)
            if self._collector.is_full:
                break
        else:
            if self._source.peek(1):
                raise self._damaged(
                    self._source.position, f"more bytes follow the {count:,} words of the header"
                )
        self._flush(dim)

    def _start_block(self) -> None:
        self._words: list[str] = []
        self._starts: list[int] = []
        self._vectors = bytearray()

    def _flush(self, dim: int) -> None:
        starts = self._starts
        rows = np.frombuffer(self._vectors, "<f4").reshape(-1, dim)
        self._collector.add(self._words, rows, lambda k: f"{self._name}: byte {starts[k]:,}")
        self._start_block()

    def _read_row(self, row: int, count: int, dim: int) -> None:
        source = self._source
        start = source.position
        word = self._word(row, count)
        vector = source.take(4 * dim)
        if len(vector) < 4 * dim:
            raise self._cut(row, count)
        if self._line_end is None:
            self._line_end = b"\n" if source.peek(1) == b"\n" else b""
        if self._line_end and source.take(1) != self._line_end:
            raise self._damaged(source.position, "no line feed after the vector")
        if word is not None and self._collector.wants(word):
            self._words.append(word)
            self._starts.append(start)
            self._vectors += vector

    def _header(self) -> Header:
        first = self._source.take_until(b"\n", _MOST_HEADER_BYTES)
        header = None if first is None else header_of(first)
        if header is not None:
            return checked_header(header, self._name)
        raise SentembError(
            f'{self._name}: not word2vec binary: it does not begin with a line "words dimensions"; '
            f"{_AGAIN}"
        )

    def _word(self, row: int, count: int) -> str | None:
        """The next word; None for one that no text can have."""
        start = self._source.position
        raw = self._source.take_until(b" ", _MOST_WORD_BYTES)
        if raw is None:
            if len(self._source.peek(_MOST_WORD_BYTES)) < _MOST_WORD_BYTES:
                raise self._cut(row, count)
            raise self._damaged(start, f"a word of more than {_MOST_WORD_BYTES:,} bytes")
        try:
            word = raw.decode("utf-8")
        except UnicodeDecodeError:
            self._collector.pass_over(self._location(start), "a word is not valid UTF-8")
            return None
        if word and "\n" not in word:
            return word
        why = "a word has a line end" if word else "a word is empty"
        self._collector.pass_over(self._location(start), why)
        return None

    def _location(self, position: int) -> str:
        return f"{self._name}: byte {position:,}"

    def _cut(self, row: int, count: int) -> SentembError:
        end = self._source.position + len(self._source.peek(_MOST_WORD_BYTES))
        return SentembError(
            f"{self._name}: byte {end:,}: the file ends in word {row + 1:,} of {count:,}; {_AGAIN}"
        )

    def _damaged(self, position: int, why: str) -> SentembError:
        return SentembError(
            f"{self._name}: byte {position:,}: {why}; the header is wrong or the file damaged: "
            f"{_AGAIN}"
        )
