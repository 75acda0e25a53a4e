"""A prepared log at a glance: its lines, its pairs, the files that it was made from."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from sentemb.data.prepared_log import DESCRIPTION, PreparedLog
from sentemb.system.files import size_and_time
from sentemb.system.paths import AnyPath
from sentemb.system.tables import aligned


@dataclass(frozen=True)
class PreparedOverview:
    """Facts about a prepared log, from `prepared_overview`.

    Attributes
    ----------
    folder : str
        Its name.
    kind : str
        "prepared log".
    written : str
        When the folder was written, in the time zone of this machine.
    lines, bad_lines : int
        Lines of the log, and how many of them were left out.
    sources : dict
        ``n_files`` that it was made from, and the names of the ``first`` and the ``last``.
    pairs, queries, titles : int
        Distinct ones.
    splitting : str
        How texts are split into words.
    fingerprint : str
        Equal for equal logs.
    disk_bytes : int
        Size of the files.
    next : str
        The command that is useful next.
    """

    folder: str
    kind: str
    written: str
    lines: int
    bad_lines: int
    sources: dict[str, Any]
    pairs: int
    queries: int
    titles: int
    splitting: str
    fingerprint: str
    disk_bytes: int
    next: str

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return asdict(self)

    def __str__(self) -> str:
        facts = aligned([[name, text] for name, text in self._facts()], left=2)
        head = f"{self.folder}: {self.kind}, written {self.written}"
        return "\n".join([head, "", *facts, "", f"next: {self.next}"])

    def _facts(self) -> Iterator[tuple[str, str]]:
        n_files, first, last = self.sources.values()
        yield "made from", first if n_files == 1 else f"{n_files:,} files, {first} to {last}"
        bad = f", {self.bad_lines:,} of them bad and left out" if self.bad_lines else ""
        yield "lines", f"{self.lines:,}{bad}"
        for name in ("pairs", "queries", "titles"):
            yield name, f"{getattr(self, name):,}"
        yield "splitting", self.splitting
        yield "size", f"{self.disk_bytes / 1e6:,.1f} MB on disk"
        yield "fingerprint", self.fingerprint


def prepared_overview(folder: AnyPath, verify: bool) -> PreparedOverview:
    """Say what the prepared log in a folder is; with ``verify`` all of it is read and checked."""
    log = PreparedLog.open(folder)
    if verify:
        log.verify()
    disk_bytes, written = size_and_time(log.folder, DESCRIPTION)
    return PreparedOverview(
        folder=str(folder),
        kind="prepared log",
        written=written,
        lines=log.lines,
        bad_lines=log.bad_lines,
        sources=log.sources._asdict(),
        pairs=len(log.clicks),
        queries=len(log.queries),
        titles=len(log.titles),
        splitting=log.splitting,
        fingerprint=log.identity,
        disk_bytes=disk_bytes,
        next=shlex.join(["sentemb", "train", str(folder), "-o", "MODEL"]),
    )
