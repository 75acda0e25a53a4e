"""The distinct texts of a stream, in bounded memory."""

import contextlib
import heapq
import shutil
from collections.abc import Iterator
from pathlib import Path

# Texts in memory: with 100 characters each, about 35 MB.
_LIMIT = 200_000
_BUCKETS = 64


class DistinctTexts:
    """Collects texts and gives back each distinct one once, in order of first appearance.

    Up to a limit all texts are in memory. Beyond it they go to files in ``folder``, which is made
    here and removed by `close`: equal texts to the same one of 64, so that each file can be freed
    of repetitions on its own. Memory is then that of the limit, or a 64th of the distinct texts.
    """

    def __init__(self, folder: Path, limit: int = _LIMIT) -> None:
        self._folder, self._limit = folder, limit
        self._recent: dict[str, int] = {}  # text -> how many were added before it
        self._number = 0
        self._spilled = False

    def add(self, text: str) -> None:
        """Add a text without line ends."""
        if text not in self._recent:
            self._recent[text] = self._number
            self._number += 1
            if len(self._recent) >= self._limit:
                self._spill()

    def texts(self) -> Iterator[str]:
        """Every distinct text once, in order of first appearance."""
        if not self._spilled:
            yield from self._recent
            return
        self._spill()
        with contextlib.ExitStack() as stack:
            sorted_buckets = []
            for bucket in self._folder.glob("*[0-9]"):
                path = bucket.with_suffix(".distinct")
                self._write_distinct(bucket, path)
                file = stack.enter_context(open(path, encoding="utf-8", newline="\n"))
                sorted_buckets.append(map(_numbered, file))
            for _, text in heapq.merge(*sorted_buckets):
                yield text

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _spill(self) -> None:
        """Move the texts in memory to the files."""
        self._folder.mkdir(exist_ok=True)
        parts: dict[int, list[str]] = {}
        for text, number in self._recent.items():
            parts.setdefault(hash(text) % _BUCKETS, []).append(f"{number}\t{text}\n")
        for bucket, lines in parts.items():
            with open(self._folder / str(bucket), "a", encoding="utf-8", newline="\n") as file:
                file.writelines(lines)
        self._recent.clear()
        self._spilled = True

    def _write_distinct(self, bucket: Path, path: Path) -> None:
        """Copy the first line of each text of a bucket; the numbers ascend as before."""
        seen: set[str] = set()
        with (
            open(bucket, encoding="utf-8", newline="\n") as lines,
            open(path, "w", encoding="utf-8", newline="\n") as distinct,
        ):
            for line in lines:
                text = line.partition("\t")[2]
                if text not in seen:
                    seen.add(text)
                    distinct.write(line)


def _numbered(line: str) -> tuple[int, str]:
    number, _, text = line.rstrip("\n").partition("\t")
    return int(number), text
