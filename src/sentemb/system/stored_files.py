"""Files that a folder holds already, linked into the folder that takes its place."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sentemb.system.files import is_file, make_folder, status
from sentemb.system.locks import UNSUPPORTED


@dataclass(frozen=True)
class StoredFiles:
    """Files as they were when they were read.

    folder : holds them
    listed : what a description says of each, by its name
    states : the file itself, so that one that was replaced since is not taken for it
    """

    folder: Path
    listed: Mapping[str, Any]
    states: Mapping[str, os.stat_result] = field(repr=False)

    @classmethod
    def of(cls, folder: Path, listed: Mapping[str, Any]) -> StoredFiles:
        """Those of the files ``listed`` that are in a folder now."""
        states = {name: status(folder / name) for name in listed}
        there = {name: at for name, at in states.items() if at is not None}
        return cls(folder, {name: listed[name] for name in there}, there)

    def without(self, names: Collection[str]) -> StoredFiles:
        """These without some files, which are written again."""
        return replace(self, states={n: at for n, at in self.states.items() if n not in names})

    def link(self, name: str, target: Path) -> bool:
        """Give a file a second name, if it is there and no other has taken its place."""
        state, path = self.states.get(name), self.folder / name
        now = None if state is None or not is_file(path) else status(path)
        if state is None or now is None or _facts(now) != _facts(state):
            return False
        make_folder(target.parent)
        try:
            os.link(path, target)
        except OSError as error:  # a system without hard links
            if error.errno not in UNSUPPORTED:
                raise
            return False
        return True


def _facts(state: os.stat_result) -> tuple[int, ...]:
    return state.st_dev, state.st_ino, state.st_size, state.st_mtime_ns
