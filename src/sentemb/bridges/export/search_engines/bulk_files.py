"""Files for the bulk API of Elasticsearch and OpenSearch, in parts that a server accepts.

A server refuses a request of more than ``http.max_content_length``, 100 MB by default. It unpacks a
compressed request and keeps all of it in memory, so the size that counts here is that of the
unpacked lines.
"""

from __future__ import annotations

import gzip
from pathlib import Path
from types import TracebackType

from sentemb.errors import SentembError

# More saves little: the digits of vectors do not compress well.
_LEVEL = 3


class BulkFiles:
    """Writes ``bulk-00001.ndjson.gz``, ``bulk-00002.ndjson.gz``, ... into a folder.

    A part has at most ``part_bytes`` before compression; ``names`` are the files so far.
    """

    def __init__(self, folder: Path, part_bytes: int) -> None:
        self.names: list[str] = []
        self._folder, self._part_bytes = folder, part_bytes
        self._file: gzip.GzipFile | None = None
        self._size = 0

    def __enter__(self) -> BulkFiles:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            try:
                file.close()
            finally:
                self._raw.close()

    def add(self, lines: bytes) -> None:
        """Append the lines of one title, an action and its source, to one of the parts."""
        if len(lines) > self._part_bytes:
            raise SentembError(
                f"a title takes {len(lines):,} bytes, more than part_bytes, {self._part_bytes:,}; "
                "give more, or shorten the title"
            )
        if self._file is None or self._size + len(lines) > self._part_bytes:
            self._file = self._next_part()
        self._file.write(lines)
        self._size += len(lines)

    def _next_part(self) -> gzip.GzipFile:
        self._close()
        self.names.append(f"bulk-{len(self.names) + 1:05}.ndjson.gz")
        self._size = 0
        self._raw = (self._folder / self.names[-1]).open("wb")
        # Without a time stamp equal contents give equal files.
        return gzip.GzipFile("", "wb", _LEVEL, self._raw, mtime=0)
