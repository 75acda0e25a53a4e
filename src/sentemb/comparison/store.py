"""The folder of a comparison: checked line by line when read; nothing outside it is touched.

docs/formats.md describes the files. A folder may come from an untrusted source, so nothing in it is
trusted: no path is built from unchecked names, and no link is followed.
"""

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Never, TypeAlias, TypeGuard

from sentemb.data.lines import is_id
from sentemb.errors import SentembError
from sentemb.search.ranking.recipe import PARTS
from sentemb.system.bounds import is_integer, is_number, plain
from sentemb.system.files import is_file, is_folder, path_of, reading, status, write_text
from sentemb.system.locks import is_temporary
from sentemb.system.paths import AnyPath

DESCRIPTION, RESULTS, RUNS, MODELS = "comparison.json", "results.jsonl", "runs", "models"
MAX_SEEDS = 100
# The part of a line that is of a whole ranker.
SUM = "sum"
# A line of results.jsonl, see `_FIELDS`.
Result: TypeAlias = dict[str, Any]
# Largest files, in bytes. A line of the results has about 600.
_MOST_DESCRIPTION, _MOST_RESULTS = 1 << 16, 1 << 26
# Longest name of a row, in bytes; the names of its files are longer.
_MOST_NAME = 150
_MOST_SETTINGS = 100
_SHA256 = re.compile(r"[0-9a-f]{64}")


class Store:
    """The results, run files and models in the folder of a comparison.

    ``rows`` are the names of the known rows; any other line must belong to a model.
    """

    def __init__(self, folder: AnyPath, rows: Iterable[str]) -> None:
        self.folder = path_of(folder)
        self._rows = frozenset(rows)

    # -- reading ----------------------------------------------------------------------------------

    def holds_comparison(self) -> bool:
        """Whether the folder holds a comparison; a `SentembError` if it holds anything else."""
        if status(self.folder) is None:
            return False
        if not is_folder(self.folder):
            raise self._not_a_comparison()
        try:
            names = os.listdir(self.folder)
        except OSError as error:
            raise _unreadable(self.folder, error) from error
        if DESCRIPTION in names:
            for kind in (RUNS, MODELS):
                self._check_inside(self.folder / kind)
            return True
        if all(map(is_temporary, names)):  # a killed process left them
            return False
        raise self._not_a_comparison()

    def _not_a_comparison(self) -> SentembError:
        return SentembError(f"{self.folder}: exists and holds no comparison; choose another place")

    def fingerprint(self) -> str:
        """The hash of the data that the results are on; raises `DamagedComparison` without one."""
        path = self.folder / DESCRIPTION
        try:
            described = _json(b"".join(_read(path, _MOST_DESCRIPTION)))
            if not isinstance(described, dict) or not _is_hash(described.get("data")):
                raise _Fault('it has no SHA-256 as "data"')
        except _Fault as fault:
            raise DamagedComparison(
                f"{path}: is damaged ({fault})", "measure everything again with --force"
            ) from fault
        fingerprint: str = described["data"]
        return fingerprint

    def results(self) -> "tuple[list[Result], list[DamagedComparison]]":
        """The good lines of the results, and what is wrong with the others.

        Both lists are empty if the file is missing.
        """
        path = self.folder / RESULTS
        lines: list[Result] = []
        faults: list[DamagedComparison] = []
        number_of: dict[tuple[str, int, str], int] = {}
        if status(path, follow=False) is None:
            return lines, faults
        try:
            raws = _read(path, _MOST_RESULTS)
        except _Fault as fault:
            return [], [DamagedComparison(f"{path}: {fault}")]
        for number, raw in enumerate(raws, 1):
            try:
                line = self._checked(_json(raw))
                key = key_of(line)
                if key in number_of:
                    raise _Fault(f"repeats line {number_of[key]}")
                number_of[key] = number
                lines.append(line)
            except _Fault as fault:
                faults.append(DamagedComparison(f"{path}:{number}: {fault}"))
        return lines, faults

    def _checked(self, line: Any) -> Result:
        """``line`` if it is one that a comparison writes; otherwise a `_Fault`."""
        if not isinstance(line, dict):
            raise _Fault("not a JSON object")
        for name, is_right in _FIELDS.items():
            if name not in line:
                raise _Fault(f'"{name}" is missing')
            if not is_right(line[name]):
                raise _Fault(f'"{name}" is not what a comparison writes')
        if len(line) > len(_FIELDS):
            extra = next(name for name in line if name not in _FIELDS)
            raise _Fault(f"{plain(extra)} is not a part of a result")
        if line["run"] is not None and line["test"] is None:
            raise _Fault('"test" is missing, but there is a "run"')
        if line["row"] not in self._rows and not _is_of_model(line["settings"]):
            raise _Fault(f"no row is named {plain(line['row'])}")
        return line

    def run_hash(self, line: Result) -> str | None:
        """The SHA-256 of a line's run file; None if the file does not exist."""
        path = self.run_path(line)
        if not is_file(path, follow=False):
            return None
        with reading(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    # -- writing ----------------------------------------------------------------------------------

    def describe(self, fingerprint: str) -> None:
        """Write the hash of the data that the results are on."""
        write_text(self.folder / DESCRIPTION, json.dumps({"data": fingerprint}) + "\n")

    def write_results(self, lines: Iterable[Result]) -> None:
        """Write all results."""
        write_text(self.folder / RESULTS, "".join(json.dumps(line) + "\n" for line in lines))

    def remove_files(self, lines: Iterable[Result], remaining: Iterable[Result]) -> None:
        """Remove run files and models of ``lines``, except those that belong to ``remaining``."""
        used = {self.run_path(line) for line in remaining}
        for line in lines:
            if self.run_path(line) not in used:
                self._remove(self.run_path(line))
                self._remove(self.model_path(line))

    def place_for(self, path: Path) -> Path:
        """``path``, to write a run file or model there; a link or pipe in its place is removed."""
        state = status(path, follow=False)
        if state is not None and not (stat.S_ISREG(state.st_mode) or stat.S_ISDIR(state.st_mode)):
            self._remove(path)
        return path

    def run_path(self, line: Result) -> Path:
        """The path of a line's run file."""
        return self._inside(RUNS, f"{line['row']}.seed{line['seed']}.run")

    def model_path(self, line: Result) -> Path:
        """The path of a line's model, if it is kept."""
        return self._inside(MODELS, f"{line['row']}.seed{line['seed']}")

    def _inside(self, kind: str, name: str) -> Path:
        path = self.folder / kind / name
        if path.parent != self.folder / kind:
            raise SentembError(f"{self.folder}: {plain(name)} is not a file name; rename the row")
        self._check_inside(path.parent)
        return path

    def _check_inside(self, path: Path) -> None:
        if os.path.islink(path):
            raise SentembError(f"{path}: is a link; put a folder there")

    def _remove(self, path: Path) -> None:
        try:
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            raise SentembError(
                f"{path}: cannot be removed: {error.strerror or error}; remove it yourself"
            ) from error


class DamagedComparison(SentembError):
    """A file or a line that a comparison would not write; --force throws it away.

    ``what`` names the place and the fault there, without the remedy.
    """

    def __init__(self, what: str, remedy: str = "throw it away with --force") -> None:
        super().__init__(f"{what}; {remedy}")
        self.what = what


class _Fault(Exception):
    """A fault of a file or line, without its location."""


def key_of(line: Result) -> tuple[str, int, str]:
    """The key of a result: row, seed and settings."""
    return line["row"], line["seed"], json.dumps(line["settings"], sort_keys=True)


def is_row_name(name: object) -> bool:
    """Whether ``name`` can name a row and its files."""
    return (
        isinstance(name, str)
        and name.isprintable()
        and "/" not in name
        and is_id("_".join(name.split()))  # the tag of its runs
        and len(name.encode()) <= _MOST_NAME
    )


def _unreadable(path: Path, error: OSError) -> SentembError:
    return SentembError(f"{path}: cannot be read: {error.strerror or error}")


def _read(path: Path, most: int) -> list[bytes]:
    """The lines of a file; a `_Fault` if it is longer than ``most`` bytes."""
    state = status(path, follow=False)
    if state is None or not stat.S_ISREG(state.st_mode):
        raise SentembError(f"{path}: is not a regular file; remove it")
    if state.st_size > most:
        raise _Fault(f"is larger than {most:,} bytes")
    with reading(path) as file:
        return file.read(most).splitlines()


def _json(raw: bytes) -> Any:
    """The value of a line of JSON; a `_Fault` if it is not JSON."""
    try:
        return json.loads(raw.decode("utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError as error:
        raise _Fault("not UTF-8") from error
    except RecursionError as error:
        raise _Fault("nested too deeply") from error
    except ValueError as error:
        raise _Fault("not JSON") from error


def _no_number(name: str) -> Never:
    raise ValueError(f"{name} is not JSON")


def _is_whole(most: int) -> Callable[[object], bool]:
    return lambda value: is_integer(value) and 0 <= value <= most


def _is_settings(value: object) -> bool:
    return (
        isinstance(value, dict)
        and len(value) <= _MOST_SETTINGS
        and all(len(key) <= _MOST_NAME and _is_setting(setting) for key, setting in value.items())
    )


def _is_of_model(settings: dict[str, Any]) -> bool:
    """Whether a line is of a model alone, or of its ranker or a part of that."""
    checks: dict[str, Callable[[Any], bool]] = {"sha256": _is_hash}
    if "ranker" in settings:
        checks |= {"ranker": _is_hash, "part": {SUM, *PARTS}.__contains__}
    return settings.keys() == checks.keys() and all(
        is_right(settings[name]) for name, is_right in checks.items()
    )


def _is_setting(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= 4096  # a setting may be a path
    return value is None or isinstance(value, bool) or _is_moderate(value)


def _is_moderate(value: object) -> TypeGuard[float]:
    return is_number(value) and abs(value) <= 1e18


def _is_figures(value: object) -> bool:
    return value is None or (
        isinstance(value, list)
        and len(value) == 3
        and all(is_number(figure) and 0 <= figure <= 1 for figure in value)
    )


def _is_hash(value: object) -> bool:
    return isinstance(value, str) and _SHA256.fullmatch(value) is not None


# The fields of a result, each with a check of its value.
_FIELDS: dict[str, Callable[[Any], bool]] = {
    "row": is_row_name,
    "seed": _is_whole(MAX_SEEDS - 1),
    "settings": _is_settings,
    "dev": _is_figures,
    "test": _is_figures,
    "run": lambda value: value is None or _is_hash(value),
    "parameters": _is_whole(10**18),
    "seconds": lambda value: value is None or (_is_moderate(value) and 0 <= value <= 1e9),
    "sentences_per_second": lambda value: value is None or _is_whole(10**12)(value),
}
