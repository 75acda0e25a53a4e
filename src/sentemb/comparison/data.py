"""What a comparison is made on: a click log, a dev set and a test set in one folder."""

import hashlib
from dataclasses import dataclass

from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import FILES, JudgedSet, read_judged_set
from sentemb.errors import SentembError
from sentemb.system.files import is_folder, path_of, reading, status

LOGS = ("pairs.tsv", "pairs.tsv.gz")


@dataclass(frozen=True, eq=False)
class Data:
    """The log, dev set and test set of a folder.

    Attributes
    ----------
    log : ClickLog or None
    dev : JudgedSet or None
        None only where there is no log.
    test : JudgedSet
    fingerprint : str
        A hash of the files' contents.
    """

    log: ClickLog | None
    dev: JudgedSet | None
    test: JudgedSet
    fingerprint: str

    @property
    def titles(self):
        """All titles that will be ranked, list of str."""
        return [*(self.dev.docs if self.dev else ()), *self.test.docs]


def read_data(folder):
    """The `Data` of ``folder``: ``pairs.tsv`` or ``pairs.tsv.gz``, ``dev/``, ``test/``.

    Raises
    ------
    SentembError
        If there is no such folder, no ``test/``, or a log without ``dev/``; and as
        `read_click_log` and `read_judged_set` do.
    """
    folder = path_of(folder)
    if not is_folder(folder):
        raise SentembError(f"{folder}: no such folder; give one with pairs.tsv, dev/ and test/")
    if not is_folder(folder / "test"):
        raise SentembError(f"{folder / 'test'}: is missing; put a judged set there")
    path = next((folder / name for name in LOGS if status(folder / name)), None)
    has_dev = is_folder(folder / "dev")
    if path is not None and not has_dev:
        raise SentembError(
            f"{folder / 'dev'}: is missing; put a judged set there, settings are chosen on it"
        )
    return Data(
        log=read_click_log(path) if path else None,
        dev=read_judged_set(folder / "dev") if has_dev else None,
        test=read_judged_set(folder / "test"),
        fingerprint=_fingerprint(folder, path, has_dev),
    )


def _fingerprint(folder, log, has_dev):
    digest = hashlib.sha256()
    sets = ("dev", "test") if has_dev else ("test",)
    paths = [folder / name / file for name in sets for file in FILES]
    for path in [log, *paths] if log else paths:
        with reading(path) as file:
            # Unpacked: packing a log does not make it another.
            digest.update(hashlib.file_digest(file, "sha256").digest())
    digest.update(repr((bool(log), sets)).encode())
    return digest.hexdigest()
