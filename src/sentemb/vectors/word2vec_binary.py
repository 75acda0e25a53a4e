"""word2vec's binary format: a header line, then a word, a blank and float32 numbers for each word.

The original program writes a line feed after each vector, others do not. What follows the first
vector decides, and all others must be followed by the same.
"""

from collections.abc import Callable, Collection
from io import BufferedIOBase

import numpy as np

from sentemb.errors import SentembError
from sentemb.system.files import place_name, reading
from sentemb.system.paths import AnyPath
from sentemb.vectors.collector import Collector
from sentemb.vectors.header import checked_header, header_of
from sentemb.vectors.word_vectors import WordVectors

_AGAIN = "get the whole file again"
_MOST_HEADER_BYTES = 100
_MOST_WORD_BYTES = 65_536
# Bytes that are read at a time, and about the bytes of vectors that are kept at a time.
_PIECE = 1 << 20
# Numbers written as text consist of these.
_TEXT_OF_NUMBERS = b"0123456789+-.eE \t\r\n"


def read_binary(
    path: AnyPath,
    limit: int | None,
    words: Collection[str] | None,
    note: Callable[[str], None],
) -> WordVectors:
    """Read word2vec binary; see `sentemb.vectors.reading.read_word_vectors`."""
    name = place_name(path)
    collector = Collector(name, limit, words)
    with reading(path) as file:
        _Rows(_Bytes(file), name, collector).read(note)
    return collector.collected(note)


class _Bytes:
    """The bytes of a file in order, however long the pieces are that it gives."""

    def __init__(self, file: BufferedIOBase) -> None:
        self._file = file
        self._piece = b""
        self._at = 0
        self._before = 0

    @property
    def place(self) -> int:
        """How many bytes were taken."""
        return self._before + self._at

    def peek(self, count: int) -> bytes:
        """The next ``count`` bytes, fewer at the end of the file."""
        while len(self._piece) - self._at < count:
            more = self._file.read(max(_PIECE, count))
            if not more:
                break
            self._before += self._at
            self._piece, self._at = self._piece[self._at :] + more, 0
        return self._piece[self._at : self._at + count]

    def take(self, count: int) -> bytes:
        """`peek`, and go to what follows."""
        taken = self.peek(count)
        self._at += len(taken)
        return taken

    def take_until(self, end: bytes, most: int) -> bytes | None:
        """The bytes before the byte ``end``, which is taken too; None if it is not near."""
        found = self._piece.find(end, self._at)  # in the piece at hand almost always
        if found < 0:
            found = self.peek(most + 1).find(end)
            found = found if found < 0 else found + self._at
        if not 0 <= found - self._at <= most:
            return None
        taken = self._piece[self._at : found]
        self._at = found + 1
        return taken


class _Rows:
    """Reads the words and vectors of one file."""

    def __init__(self, source: _Bytes, name: str, collector: Collector) -> None:
        self._source = source
        self._name = name
        self._collector = collector

    def read(self, note: Callable[[str], None]) -> None:
        """Read everything, or up to the limit."""
        source, collector = self._source, self._collector
        count, dim = self._header()
        words: list[str] = []
        places: list[int] = []
        vectors = bytearray()
        n_unstorable = 0
        line_end = b""

        def flush() -> None:
            rows = np.frombuffer(vectors, "<f4").reshape(-1, dim)
            collector.add(words, rows, lambda k: f"{self._name}: byte {places[k]:,}")

        for row in range(count):
            place = source.place
            word = self._word(row, count)
            vector = source.take(4 * dim)
            if len(vector) < 4 * dim:
                raise self._cut(row, count)
            if row == 0:
                if not vector.strip(_TEXT_OF_NUMBERS):
                    raise SentembError(
                        f"{self._name}: is text, not word2vec binary; give it a name without .bin"
                    )
                line_end = b"\n" if source.peek(1) == b"\n" else b""
            if line_end and source.take(1) != line_end:
                raise self._damaged(source.place, "no line feed after the vector")
            if "\n" in word:
                n_unstorable += 1
            elif collector.wants(word):
                words.append(word)
                places.append(place)
                vectors += vector
                if len(vectors) >= _PIECE:
                    flush()
                    words, places, vectors = [], [], bytearray()
            if collector.is_full:
                break
        else:
            if source.peek(1):
                raise self._damaged(
                    source.place, f"more bytes follow the {count:,} words of the header"
                )
        flush()
        if n_unstorable:
            note(f"{self._name}: {n_unstorable:,} words with a line end were left out")

    def _header(self) -> tuple[int, int]:
        first = self._source.take_until(b"\n", _MOST_HEADER_BYTES)
        header = None if first is None else header_of(first)
        if header is not None:
            return checked_header(header, self._name)
        if not self._source.peek(1) and not self._source.place:
            raise SentembError(f"{self._name}: no vectors, the file is empty; {_AGAIN}")
        raise SentembError(
            f'{self._name}: not word2vec binary: it does not begin with a line "words dimensions"; '
            "give a text file a name without .bin"
        )

    def _word(self, row: int, count: int) -> str:
        place = self._source.place
        raw = self._source.take_until(b" ", _MOST_WORD_BYTES)
        if raw is None:
            if len(self._source.peek(_MOST_WORD_BYTES)) < _MOST_WORD_BYTES:
                raise self._cut(row, count)
            raise self._damaged(place, f"a word of more than {_MOST_WORD_BYTES:,} bytes")
        if not raw:
            raise self._damaged(place, "an empty word")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise self._damaged(place + error.start, "a word is not valid UTF-8") from None

    def _cut(self, row: int, count: int) -> SentembError:
        end = self._source.place + len(self._source.peek(_MOST_WORD_BYTES))
        return SentembError(
            f"{self._name}: byte {end:,}: the file ends in word {row + 1:,} of {count:,}; {_AGAIN}"
        )

    def _damaged(self, place: int, why: str) -> SentembError:
        return SentembError(
            f"{self._name}: byte {place:,}: {why}; the header is wrong or the file damaged: "
            f"{_AGAIN}"
        )
