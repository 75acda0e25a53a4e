"""Files that do not change: another folder gets them under a second name, without a copy."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from sentemb.system.files import status

_Facts = tuple[int, int, int, int]


@dataclass(frozen=True)
class KeptFiles:
    """Files of a folder as they were found; they are replaced later, but never written to."""

    folder: Path
    facts: Mapping[str, _Facts]

    @classmethod
    def of(cls, folder: Path, names: Iterable[str]) -> Self:
        """Those of ``names`` that are in ``folder`` now."""
        facts = {name: _facts(folder / name) for name in names}
        return cls(folder, {name: known for name, known in facts.items() if known is not None})

    def without(self, name: str) -> Self:
        """These without a file that is written again."""
        return replace(self, facts={n: facts for n, facts in self.facts.items() if n != name})

    def link(self, folder: Path) -> bool:
        """Give all files a second name in ``folder``.

        False, and no names, where a file has been replaced or removed since, or the system cannot.
        """
        made: list[Path] = []
        try:
            for name, facts in self.facts.items():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                os.link(self.folder / name, folder / name)
                made.append(folder / name)
                if _facts(made[-1]) != facts:
                    raise FileNotFoundError
        except OSError:
            for path in made:
                path.unlink()
            return False
        return True


def _facts(path: Path) -> _Facts | None:
    metadata = status(path)
    if metadata is None:
        return None
    return metadata.st_dev, metadata.st_ino, metadata.st_size, metadata.st_mtime_ns
