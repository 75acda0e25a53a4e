"""The data of a comparison: a click log, a dev set and a test set in one folder."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import FILES, JudgedSet, read_judged_set
from sentemb.errors import SentembError
from sentemb.system.files import is_file, is_folder, path_of, reading, status
from sentemb.system.paths import AnyPath

LOGS = ("pairs.tsv", "pairs.tsv.gz")


@dataclass(frozen=True, eq=False)
class Data:
    """The log, dev set and test set of a folder.

    log : the clicks that the rankers learn from
    dev : the set on which settings are chosen; None without a log
    test : the set that the results are measured on
    fingerprint : the SHA-256 of the files' contents
    """

    log: ClickLog | None
    dev: JudgedSet | None
    test: JudgedSet
    fingerprint: str

    @property
    def titles(self) -> list[str]:
        """All titles that will be ranked."""
        return [*(self.dev.titles if self.dev else ()), *self.test.titles]

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """The queries and titles of the log; without one those of the judged sets, unlabelled."""
        if self.log is not None:
            return self.log.queries, self.log.titles
        return self._queries, self.titles

    @property
    def judged_texts(self) -> list[str]:
        """The queries and titles of the judged sets."""
        return [*self._queries, *self.titles]

    @property
    def _queries(self) -> list[str]:
        return [*(self.dev.queries if self.dev else ()), *self.test.queries]


def read_data(folder: AnyPath) -> Data:
    """The `Data` of ``folder``: ``pairs.tsv`` or ``pairs.tsv.gz``, ``dev/``, ``test/``.

    Raises `SentembError` if there is no such folder, no ``test/``, or a log without ``dev/``; also
    the errors of `read_click_log` and `read_judged_set`.
    """
    root = path_of(folder)
    if not is_folder(root):
        raise SentembError(f"{root}: no such folder; give one with pairs.tsv, dev/ and test/")
    if not is_folder(root / "test"):
        split = "; the clicks of test.tsv are for `sentemb evaluate MODEL test.tsv --compare-with`"
        raise SentembError(
            f"{root / 'test'}: is missing; put a judged set there"
            f"{split if is_file(root / 'test.tsv') else ''}"
        )
    path = next((root / name for name in LOGS if status(root / name)), None)
    has_dev = is_folder(root / "dev")
    if path is not None and not has_dev:
        raise SentembError(
            f"{root / 'dev'}: is missing; put a judged set there, settings are chosen on it"
        )
    return Data(
        log=read_click_log(path) if path else None,
        dev=read_judged_set(root / "dev") if has_dev else None,
        test=read_judged_set(root / "test"),
        fingerprint=_fingerprint(root, path, has_dev),
    )


def _fingerprint(folder: Path, log: Path | None, has_dev: bool) -> str:
    digest = hashlib.sha256()
    sets = ("dev", "test") if has_dev else ("test",)
    paths = [folder / name / file for name in sets for file in FILES]
    for path in [log, *paths] if log else paths:
        with reading(path) as file:
            # The unpacked contents: compressing a log does not change it.
            digest.update(hashlib.file_digest(file, "sha256").digest())
    digest.update(repr((bool(log), sets)).encode())
    return digest.hexdigest()
