"""Pairs of texts with a score of how similar they are, as in the STS tasks of SemEval."""

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentemb.data.labelled import read_valued, score_of
from sentemb.errors import SentembError
from sentemb.system.files import is_folder, names_in, path_of, place_name
from sentemb.system.html_tables import excerpt
from sentemb.system.paths import AnyPath

_ENDINGS = (".tsv.gz", ".tsv")


@dataclass(frozen=True, eq=False, repr=False)
class SimilaritySet:
    """Pairs of texts and how similar people found them.

    Attributes
    ----------
    name : str
        The path of the file without its ending. What precedes the last ``/`` is the folder; the
        sets of a folder are averaged.
    scores : (n,) float64
        Higher is more similar. They are not all equal.
    first, second : list of str
        The texts of each pair.

    Raises
    ------
    SentembError
        If the lengths differ, a score is not finite, or there are no two different scores.
    """

    name: str
    scores: NDArray[np.float64]
    first: list[str]
    second: list[str]

    def __post_init__(self) -> None:
        if not self.scores.shape == (len(self.first),) == (len(self.second),):
            raise SentembError(
                f"{self.scores.size:,} scores, {len(self.first):,} first and "
                f"{len(self.second):,} second texts; give one of each for every pair"
            )
        if not np.isfinite(self.scores).all():
            raise SentembError("a score is not finite; correct it")
        if len(set(self.scores.tolist())) < 2:
            raise SentembError(
                "all scores are equal, so a correlation is not defined; give pairs with different "
                "scores"
            )

    def __len__(self) -> int:
        return len(self.first)

    def __repr__(self) -> str:
        return f"SimilaritySet({self.name}, {len(self):,} pairs)"

    def _repr_html_(self) -> str:
        rows = zip(self.scores.tolist(), self.first, self.second, strict=True)
        return excerpt(rows, len(self), ["score", "first text", "second text"], texts=(1, 2))

    @property
    def folder(self) -> str:
        """The folder in the name; empty if there is none."""
        return self.name.rpartition("/")[0]

    def fingerprint(self) -> str:
        """The SHA-256 of all scores and texts, in hexadecimal."""
        digest = hashlib.sha256(self.scores.tobytes())
        for texts in (self.first, self.second):
            digest.update("\n".join([*texts, ""]).encode())
        return digest.hexdigest()


def read_similarity_set(path: AnyPath) -> SimilaritySet:
    """Read pairs of texts with a score of their similarity.

    Parameters
    ----------
    path : str or path-like
        A file of ``score<TAB>text<TAB>text`` lines in UTF-8; compressed if its name ends in
        ``.gz``; ``-`` is standard input.

    Returns
    -------
    SimilaritySet

    Raises
    ------
    SentembError
        With file, line and remedy: for a wrong number of columns, a score that is not a finite
        number, a text without words or with more than 10,000, a NUL character, invalid UTF-8; also
        for a file without lines, or whose scores are all equal.
    """
    read = read_valued(path, score_of, "score", n_texts=(2,))
    first, second = read.sides
    try:
        return SimilaritySet(_name_of(path), np.array(read.values, np.float64), first, second)
    except SentembError as error:
        raise SentembError(f"{place_name(path)}: {error}") from None


def find_similarity_sets(paths: Iterable[AnyPath]) -> tuple[list[SimilaritySet], list[str]]:
    """The sets of files and of whole folders, and messages on files that are not such sets.

    In folders all ``*.tsv`` and ``*.tsv.gz`` files are read, sub-folders included. A file that is
    reached twice is read once. The sets are in the order of the paths, within a folder by name; the
    messages are on files in folders. Raises `SentembError` if a file in ``paths`` is not a
    similarity set, or a folder holds none.
    """
    sets: list[SimilaritySet] = []
    skipped: list[str] = []
    seen: set[str] = set()

    def add(file: AnyPath) -> None:
        real = os.path.realpath(file)
        if real not in seen:
            sets.append(read_similarity_set(file))
            seen.add(real)

    for path in paths:
        folder = path_of(path)
        if str(path) == "-" or not is_folder(path):
            add(path)
            continue
        faults: list[str] = []
        files = _files_in(folder, set())
        for file in files:
            try:
                add(file)
            except SentembError as error:
                faults.append(str(error))
        if len(faults) == len(files):
            first = f"; the first of {len(files)}: {faults[0]}" if faults else ""
            raise SentembError(
                f"{path}: holds no *.tsv or *.tsv.gz file of score<TAB>text<TAB>text lines{first}"
            )
        skipped += (f"skipped {fault}" for fault in faults)
    return sets, skipped


def _files_in(folder: Path, above: set[str]) -> list[Path]:
    """The files in a folder and in the folders below it, by name; a circle of links ends."""
    real = os.path.realpath(folder)
    if real in above:
        return []
    files: list[Path] = []
    for name in names_in(folder):
        path = folder / name
        if is_folder(path):
            files += _files_in(path, above | {real})
        elif name.endswith(_ENDINGS):
            files.append(path)
    return files


def _name_of(path: AnyPath) -> str:
    name = path_of(path).as_posix()
    return next((name.removesuffix(end) for end in _ENDINGS if name.endswith(end)), name)
