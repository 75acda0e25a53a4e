"""A click log as a folder of arrays that training maps into memory instead of reading a log."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import PREPARED, counts_of, html_of
from sentemb.data.text_array import TextArray, mapped_texts
from sentemb.errors import SentembError
from sentemb.system.bounds import is_integer
from sentemb.system.checked_files import CheckedFiles, are_listed, described
from sentemb.system.descriptions import read_description
from sentemb.system.files import is_file, is_folder, names_in, path_of, status, write_text
from sentemb.system.locks import is_temporary
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_exchangeable
from sentemb.text.batch import Tokens
from sentemb.text.words import SPLITTINGS
from sentemb.version import __version__

DESCRIPTION, FORMAT = PREPARED, 1
QUERIES, TITLES = "queries", "titles"
QUERY_INDEX, TITLE_INDEX, CLICKS = "query-index.npy", "title-index.npy", "clicks.npy"
SKIPPED_OFFSETS, SKIPPED_INDEX = "skipped-offsets.npy", "skipped-index.npy"
CLICKED_OFFSETS, CLICKED_TITLES = "clicked-offsets.npy", "clicked-titles.npy"
_OF_PAIRS = (
    QUERY_INDEX,
    TITLE_INDEX,
    CLICKS,
    SKIPPED_OFFSETS,
    SKIPPED_INDEX,
    CLICKED_OFFSETS,
    CLICKED_TITLES,
)
_MOST = 2**31 - 1
# Numbers of an array that are checked at a time.
_PORTION = 1 << 20


@dataclass(frozen=True)
class SideFiles:
    """The names of the files of one side.

    texts, text_offsets : the distinct texts, and where each begins
    words, word_offsets : their distinct words, and where each begins
    tokens, token_offsets : the word of every token, and where the tokens of each text begin
    """

    texts: str
    text_offsets: str
    words: str
    word_offsets: str
    tokens: str
    token_offsets: str

    @classmethod
    def of(cls, side: str) -> SideFiles:
        """Those of `QUERIES` or `TITLES`."""
        return cls(
            f"{side}.txt",
            f"{side}-offsets.npy",
            f"{side}-words.txt",
            f"{side}-words-offsets.npy",
            f"{side}-tokens.npy",
            f"{side}-token-offsets.npy",
        )

    def names(self) -> list[str]:
        """All of them."""
        return list(vars(self).values())


FILES = (*_OF_PAIRS, *SideFiles.of(QUERIES).names(), *SideFiles.of(TITLES).names())


class Sources(NamedTuple):
    """The files that a prepared log was made from; there may be more than a description can hold.

    ``first`` and ``last`` are names without folders.
    """

    n_files: int
    first: str
    last: str


@dataclass(frozen=True, eq=False, repr=False)
class PreparedLog:
    """A click log whose texts and arrays are mapped from a folder of ``sentemb prepare``.

    The attributes are those of a `ClickLog`; ``queries`` and ``titles`` are decoded when they are
    asked for.

    Attributes
    ----------
    folder : Path
        Where it is.
    queries, titles : sequence of str
    query_index, title_index : (n_pairs,) int32
    clicks : (n_pairs,) int64
    skipped_offsets, skipped_index : (n_pairs + 1,) int64, (n,) int32
    lines, bad_lines : int
        Lines of the log, and how many of them were left out.
    sources : Sources
        The files that it was made from.
    splitting : str
        How its texts are split into words, see `sentemb.text.words.SPLITTINGS`.
    identity : str
        A hash of all files but the description: equal for equal logs.
    """

    folder: Path
    queries: TextArray
    titles: TextArray
    query_index: NDArray[np.int32]
    title_index: NDArray[np.int32]
    clicks: NDArray[np.int64]
    skipped_offsets: NDArray[np.int64]
    skipped_index: NDArray[np.int32]
    lines: int
    bad_lines: int
    sources: Sources
    splitting: str
    identity: str
    _clicked: tuple[NDArray[np.int64], NDArray[np.int32]]
    _tokens: Mapping[str, Tokens]

    def __repr__(self) -> str:
        return counts_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    @classmethod
    def open(cls, folder: AnyPath) -> PreparedLog:
        """Map the files of a folder.

        The size of every file, a sample of its bytes and the range of its numbers are checked;
        `verify` reads everything.

        Raises
        ------
        SentembError
            If it is not a prepared log, or a file is missing or is not the one that was written.
        """
        path = path_of(folder)
        description = _description(path)
        files = CheckedFiles(path, description["files"], DESCRIPTION, damaged)
        files.check_samples()
        n_pairs, n_skipped = description["pairs"], description["skipped"]
        n_queries, n_titles = description["queries"], description["titles"]

        def array(name: str, dtype: str, size: int) -> np.ndarray:
            return files.array(name, dtype, (size,))

        def index(name: str, size: int, limit: int) -> np.ndarray:
            values = array(name, "<i4", size)
            if not _is_below(values, limit):
                raise damaged(path / name, "it has a number that is too high or below 0")
            return values

        def offsets(name: str, size: int, end: int) -> np.ndarray:
            values = array(name, "<i8", size + 1)
            if values[0] or values[-1] != end or not _is_rising(values):
                raise damaged(path / name, "its numbers are not offsets")
            return values

        def texts(name: str, offsets_name: str, count: int) -> TextArray:
            return mapped_texts(files, name, offsets_name, count)

        def tokens(side: SideFiles, count: int) -> Tokens:
            n_tokens, n_words = description["tokens"][side.tokens], description["words"][side.words]
            return Tokens(
                word_index=index(side.tokens, n_tokens, n_words),
                offsets=offsets(side.token_offsets, count, n_tokens),
                words=texts(side.words, side.word_offsets, n_words),
            )

        query_side, title_side = SideFiles.of(QUERIES), SideFiles.of(TITLES)
        clicks = array(CLICKS, "<i8", n_pairs)
        if not _is_positive(clicks):
            raise damaged(path / CLICKS, "a pair has no clicks")
        return cls(
            folder=path,
            queries=texts(query_side.texts, query_side.text_offsets, n_queries),
            titles=texts(title_side.texts, title_side.text_offsets, n_titles),
            query_index=index(QUERY_INDEX, n_pairs, n_queries),
            title_index=index(TITLE_INDEX, n_pairs, n_titles),
            clicks=clicks,
            skipped_offsets=offsets(SKIPPED_OFFSETS, n_pairs, n_skipped),
            skipped_index=index(SKIPPED_INDEX, n_skipped, n_titles),
            lines=description["lines"],
            bad_lines=description["bad_lines"],
            sources=Sources(**description["sources"]),
            splitting=description["splitting"],
            identity=_checksum_of(description["files"]),
            _clicked=(
                offsets(CLICKED_OFFSETS, n_queries, n_pairs),
                index(CLICKED_TITLES, n_pairs, n_titles),
            ),
            _tokens={
                "query": tokens(query_side, n_queries),
                "document": tokens(title_side, n_titles),
            },
        )

    def verify(self) -> None:
        """Read every file; a `SentembError` unless each has its checksum."""
        listed = _description(self.folder)["files"]
        CheckedFiles(self.folder, listed, DESCRIPTION, damaged).verify()

    def titles_of_queries(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """See `ClickLog.titles_of_queries`."""
        return self._clicked

    def tokens(self, splitting: str) -> Mapping[str, Tokens]:
        """The words of all texts by side, "query" and "document".

        Raises
        ------
        SentembError
            If the texts are to be split in another way than they were.
        """
        if splitting != self.splitting:
            raise SentembError(
                f"{self.folder}: its texts are split by {self.splitting} and the model reads "
                f"{splitting}; prepare the log again with --splitting {splitting}"
            )
        return self._tokens


def is_prepared(folder: AnyPath) -> bool:
    """Whether ``folder`` has the description of a prepared log."""
    return is_folder(folder) and is_file(path_of(folder) / DESCRIPTION)


def check_replaceable(folder: AnyPath, force: bool) -> None:
    """Refuse what a prepared log must not replace: anything but an empty folder or, with ``force``,
    a prepared log.
    """
    if not str(folder):
        raise SentembError("the name of the output folder is empty; give one")
    if status(folder) is None:
        return
    if not is_folder(folder):
        raise SentembError(f"{folder}: is a file; name a folder to write to")
    names = {name for name in names_in(folder) if not is_temporary(name)}
    if not names:
        return
    foreign = sorted(names - {DESCRIPTION, *FILES})
    if foreign or DESCRIPTION not in names:
        why = (
            f"has other files than those of a prepared log, such as {foreign[0]}"
            if foreign
            else f"has files of a prepared log, but no {DESCRIPTION}"
        )
        raise SentembError(f"{folder}: {why}; name another folder")
    _description(path_of(folder))
    if not force:
        raise SentembError(
            f"{folder}: has a prepared log already; name another folder or use --force"
        )
    check_exchangeable(folder)


def write_description(
    folder: Path, log: Mapping[str, Any], sizes: Mapping[str, Mapping[str, int]]
) -> None:
    """Write ``prepared.json`` for the files in ``folder``, which has all `FILES`.

    ``log`` has the numbers of ``pairs``, ``queries``, ``titles``, ``skipped`` titles, ``lines`` and
    ``bad_lines``, the ``splitting``, and the `Sources`. ``sizes`` has ``tokens`` and ``words``: how
    many there are, by the names of their files.
    """
    description: dict[str, Any] = {"format": FORMAT, "version": __version__, **log, **sizes}
    description["files"] = {name: described(folder / name) for name in FILES}
    description["sha256"] = _checksum_of(description)
    write_text(folder / DESCRIPTION, json.dumps(description, indent=1) + "\n")


def _checksum_of(description: Mapping[str, Any]) -> str:
    """The SHA-256 of a description, but for its checksum itself."""
    covered = {name: value for name, value in description.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(covered, sort_keys=True).encode()).hexdigest()


def _description(folder: Path) -> dict[str, Any]:
    path = folder / DESCRIPTION
    if status(path) is None:
        raise SentembError(
            f"{folder}: holds no prepared log: {DESCRIPTION} is missing; make one with "
            "`sentemb prepare LOG -o OUT`"
        )
    description = read_description(path, FORMAT, damaged)
    wrong = next((name for name in _IS_RIGHT if not _IS_RIGHT[name](description.get(name))), None)
    if wrong is not None:
        raise damaged(path, f'"{wrong}" is missing or wrong')
    if description.get("sha256") != _checksum_of(description):
        raise damaged(path, "its contents do not match their checksum")
    return description


def _is_count(value: Any) -> bool:
    return is_integer(value) and 0 <= value <= _MOST


def _are_counts(names: tuple[str, str], most: int) -> Any:
    return lambda value: (
        isinstance(value, dict)
        and value.keys() == set(names)
        and all(is_integer(count) and 0 <= count <= most for count in value.values())
    )


_SIDES = SideFiles.of(QUERIES), SideFiles.of(TITLES)
_IS_RIGHT: dict[str, Any] = {
    "pairs": _is_count,
    "queries": _is_count,
    "titles": _is_count,
    "skipped": lambda value: is_integer(value) and value >= 0,
    "lines": lambda value: is_integer(value) and value >= 0,
    "bad_lines": lambda value: is_integer(value) and value >= 0,
    "sources": lambda value: (
        isinstance(value, dict)
        and {name: type(fact) for name, fact in value.items()}
        == {"n_files": int, "first": str, "last": str}
    ),
    "splitting": lambda value: isinstance(value, str) and value in SPLITTINGS,
    "tokens": _are_counts((_SIDES[0].tokens, _SIDES[1].tokens), 2**63 - 1),
    "words": _are_counts((_SIDES[0].words, _SIDES[1].words), _MOST),
    "files": lambda value: are_listed(value) and value.keys() == set(FILES),
}


def _portions(array: np.ndarray) -> Iterator[np.ndarray]:
    """Parts that overlap in one number."""
    for first in range(0, array.size, _PORTION):
        yield array[first : first + _PORTION + 1]


def _is_below(array: np.ndarray, limit: int) -> bool:
    return all(part.min() >= 0 and part.max() < limit for part in _portions(array))


def _is_positive(array: np.ndarray) -> bool:
    return all(part.min() > 0 for part in _portions(array))


def _is_rising(array: np.ndarray) -> bool:
    return all(bool((part[1:] >= part[:-1]).all()) for part in _portions(array))


def damaged(path: object, why: str) -> SentembError:
    """The error for a file of a prepared log that cannot be used."""
    return SentembError(
        f"{path}: the prepared log is damaged: {why}; restore it from a copy or make it again with "
        "`sentemb prepare`"
    )
