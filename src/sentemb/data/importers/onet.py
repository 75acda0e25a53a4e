"""The O*NET database as a click log: what people call a job -> the official occupation title.

O*NET, published by the U.S. Department of Labor, lists for each occupation the titles that people
use for it. These serve as queries and the official titles as clicked titles. The judgments come
from the classification, not from raters: a title is right if the query is filed under it, and close
if O*NET names it as a related occupation.
"""

import math
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np

from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.data.judged_set import JudgedSet, write_judged_set
from sentemb.data.lines import clean_lines, is_id
from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_SEED, brief, is_number, whole
from sentemb.system.files import is_file, path_of, write_text
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

WHERE = "https://www.onetcenter.org/database.html"

FILED, CLOSELY_RELATED, RELATED = 3, 2, 1
_CLOSE_TIER = "Primary-Short"

# The set of stems of a name, see `name_key`.
_Key: TypeAlias = frozenset[str]
# Spelling -> the codes it is filed under, in order (a dict without values).
_Group: TypeAlias = dict[str, dict[str, None]]
# Code -> related code -> grade.
_Related: TypeAlias = Mapping[str, Mapping[str, int]]

# A name that is filed under more occupations ("Supervisor") is too vague to be judged.
_MOST_FILED = 5
# Judged for a query: all titles it is filed under, up to this many of each kind (closely related,
# related, similar in words), and random ones up to the total.
_OF_EACH_KIND = 4
_CANDIDATES = 24

# More names than any release has.
_MOST_QUERIES = 10**9

_IRREGULAR = {
    "men": "man",
    "people": "person",
    "children": "child",
    "feet": "foot",
    "teeth": "tooth",
}


def import_onet(
    source: AnyPath,
    out: AnyPath,
    *,
    dev: float = 1500,
    test: float = 3000,
    seed: int = 0,
    force: bool = False,
) -> dict[str, int]:
    """Turn the text files of the O*NET database into a click log with judged dev and test sets.

    Writes ``pairs.tsv``, ``dev/``, ``test/`` and a ``README.md`` with source, licence and settings.
    Names that differ only in word order or number go into the same part, so no variant of a dev or
    test query is in the training log.

    ``source`` is the folder of the tab-separated text files of an O*NET release, unpacked and
    unchanged. ``dev`` and ``test`` are the numbers of queries to judge, or, below 1, their share of
    all distinct names. The seed decides the split and the random candidates: the same files and
    settings give the same output. ``force`` writes into a folder that has files already. Either all
    files are written or, after an error or Ctrl-C, none.

    Returns the counts ``pairs``, ``training_queries``, ``titles``, ``dev_queries`` and
    ``test_queries``. Raises `SentembError` for a file, column or value that is missing, sizes that
    leave nothing to train on, an output folder that is not empty.
    """
    files, folder = path_of(source), path_of(out)
    whole("seed", seed, 0, MAX_SEED)
    check_free(folder, force)
    titles = _official_titles(files)
    related = _related_occupations(files, titles)
    groups = _names_by_key(files, titles)

    judgeable = [key for key, group in groups.items() if len(_filed(group)) <= _MOST_FILED]
    n_dev = _size(dev, "dev", len(groups))
    n_test = _size(test, "test", len(groups))
    if n_dev + n_test > len(judgeable) or n_dev + n_test >= len(groups):
        raise SentembError(
            f"{n_dev} dev and {n_test} test queries are too many: {files} has {len(groups)} "
            f"distinct names, of which {len(judgeable)} can be judged; choose smaller sizes"
        )
    chance = random.Random(seed)
    chance.shuffle(judgeable)
    parts = {"dev": judgeable[:n_dev], "test": judgeable[n_dev : n_dev + n_test]}
    held_out = {key for keys in parts.values() for key in keys}

    builder = ClickLogBuilder()
    for key, group in groups.items():
        if key not in held_out:
            for name, codes in group.items():
                for code in codes:
                    builder.add(name, titles[code])
    log = builder.build()
    choose = _CandidateChooser(titles, related, chance)
    judged = {part: _judged(part, keys, groups, titles, choose) for part, keys in parts.items()}
    counts = {
        "pairs": len(log.clicks),
        "training_queries": len(log.queries),
        "titles": len(titles),
        "dev_queries": n_dev,
        "test_queries": n_test,
    }
    readme = _readme(_release(files), counts, seed)
    with filling_listed(folder) as new:
        write_click_log(log, new / "pairs.tsv")
        for part, judged_set in judged.items():
            write_judged_set(judged_set, new / part)
        write_text(new / "README.md", readme)
    return counts


def name_key(name: str) -> frozenset[str]:
    """The set of stems of ``name``: equal for names that differ only in word order or number.

    The stem drops endings so freely that a regular plural and its singular have the same stem
    ("nurses" and "nurse" give "nur"). Two different words sometimes share a stem too; this does no
    harm, as their names just go into the same part.
    """
    words = re.findall(r"[^\W_]+", re.sub(r"['’]s\b", "", name.casefold()))
    return frozenset(map(_stem, words)) or frozenset([name.casefold()])


def _stem(word: str) -> str:
    for plural, singular in _IRREGULAR.items():
        if word.endswith(plural):
            word = word.removesuffix(plural) + singular
    # Keep two letters, or most abbreviations would have the same stem.
    stem = word[:2] + word[2:].rstrip("seiy")
    return stem.removesuffix("v") + "f" if stem.endswith("v") else stem


def _rows(source: Path, name: str, *columns: str) -> Iterator[tuple[str, ...]]:
    """Yield the location (``path:line``) and the cells of ``columns`` for each row of a table."""
    path = source / name
    if not is_file(path):
        raise SentembError(
            f"{path}: no such file; give the unpacked folder of text files of the O*NET database "
            f"from {WHERE}"
        )
    lines = clean_lines(path)
    header = next(lines, (1, ""))[1].split("\t")
    for column in columns:
        if column not in header:
            raise SentembError(
                f"{path}:1: no column {column!r}; give the unchanged text files of the O*NET "
                f"database from {WHERE}"
            )
    indices = [header.index(column) for column in columns]
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise SentembError(
                f"{path}:{number}: {len(cells)} columns, not {len(header)} as in the header; "
                f"get the file again from {WHERE}"
            )
        yield f"{path}:{number}", *(cells[index].strip() for index in indices)


def _official_titles(source: Path) -> dict[str, str]:
    """Occupation code -> official title."""
    titles = {}
    for where, code, title in _rows(source, "Occupation Data.txt", "O*NET-SOC Code", "Title"):
        if not is_id(code) or not title:
            raise SentembError(
                f"{where}: the code or the title is missing; get the file again from {WHERE}"
            )
        titles[code] = title
    return titles


def _related_occupations(source: Path, titles: Iterable[str]) -> _Related:
    """Occupation code -> related occupation code -> grade."""
    name = "Related Occupations.txt"
    columns = ("O*NET-SOC Code", "Related O*NET-SOC Code", "Relatedness Tier")
    related: dict[str, dict[str, int]] = defaultdict(dict)
    for where, code, related_code, tier in _rows(source, name, *columns):
        _check_known(code, titles, where)
        _check_known(related_code, titles, where)
        related[code][related_code] = CLOSELY_RELATED if tier == _CLOSE_TIER else RELATED
    return related


def _names_by_key(source: Path, titles: Iterable[str]) -> dict[_Key, _Group]:
    """Key of a name -> its spellings -> the codes they are filed under.

    Everything is in the order of the files, so that the output does not depend on hashes.
    """
    groups: dict[_Key, _Group] = defaultdict(lambda: defaultdict(dict))
    for name, *columns in (
        ("Alternate Titles.txt", "Alternate Title", "Short Title"),
        ("Sample of Reported Titles.txt", "Reported Job Title"),
    ):
        for where, code, *spellings in _rows(source, name, "O*NET-SOC Code", *columns):
            _check_known(code, titles, where)
            for spelling in spellings:
                if spelling not in ("", "n/a"):
                    groups[name_key(spelling)][spelling][code] = None
    return groups


def _check_known(code: str, titles: Iterable[str], where: str) -> None:
    if code not in titles:
        raise SentembError(
            f"{where}: the occupation {brief(code)} is not in 'Occupation Data.txt'; take all "
            f"files from one release of {WHERE}"
        )


def _filed(group: _Group) -> list[str]:
    """The codes that any spelling of a name is filed under, in order."""
    return list(dict.fromkeys(code for codes in group.values() for code in codes))


def _size(size: float, part: str, n_names: int) -> int:
    if is_number(size) and 0 < size < 1:
        return max(1, round(size * n_names))
    if is_number(size) and 1 <= size <= _MOST_QUERIES and size == int(size):
        return int(size)
    raise SentembError(
        f"the size of {part} is {brief(size)}; give an integer number of queries or a share below 1"
    )


class _CandidateChooser:
    """Chooses which titles are judged for a query.

    titles : code -> official title
    related : code -> related code -> grade
    chance : draws the candidates
    """

    def __init__(self, titles: dict[str, str], related: _Related, chance: random.Random) -> None:
        self._codes = list(titles)
        self._related = related
        self._chance = chance
        self._with_stem: dict[str, list[str]] = defaultdict(list)
        for code, title in titles.items():
            for stem in sorted(name_key(title)):
                self._with_stem[stem].append(code)

    def __call__(self, key: _Key, filed: list[str]) -> dict[str, int]:
        """Code -> grade of the candidates for a name with this key, filed under these codes."""
        grades: dict[str, int] = {}
        for code in filed:
            for related_code, grade in self._related[code].items():
                grades[related_code] = max(grade, grades.get(related_code, 0))
        grades |= dict.fromkeys(filed, FILED)

        chosen = list(filed)
        for level in (CLOSELY_RELATED, RELATED):
            kind = [code for code, grade in grades.items() if grade == level]
            chosen += self._chance.sample(kind, min(_OF_EACH_KIND, len(kind)))
        # Not related, but a ranker that only matches words may take them for related.
        similar = [code for code in self._by_common_words(key) if code not in grades]
        chosen += similar[:_OF_EACH_KIND]
        rest = [code for code in self._codes if code not in grades and code not in set(chosen)]
        n_random = max(0, _CANDIDATES - len(chosen))
        chosen += self._chance.sample(rest, min(n_random, len(rest)))
        return {code: grades.get(code, 0) for code in sorted(chosen)}

    def _by_common_words(self, key: _Key) -> list[str]:
        """Codes whose titles share stems with the key; many and rare stems come first."""
        weights: dict[str, float] = defaultdict(float)
        for stem in sorted(key):
            codes = self._with_stem.get(stem, ())
            for code in codes:
                weights[code] += math.log(len(self._codes) / len(codes))
        return sorted(weights, key=lambda code: (-weights[code], code))


def _judged(
    part: str,
    keys: list[_Key],
    groups: dict[_Key, _Group],
    titles: dict[str, str],
    choose: _CandidateChooser,
) -> JudgedSet:
    """The `JudgedSet` with one query, the first spelling, for each key."""
    title_of = {code: index for index, code in enumerate(titles)}
    queries: list[str] = []
    lengths: list[int] = []
    title_index: list[int] = []
    grades: list[int] = []
    for key in keys:
        group = groups[key]
        queries.append(next(iter(group)))
        judgments = choose(key, _filed(group))
        lengths.append(len(judgments))
        title_index.extend(title_of[code] for code in judgments)
        grades.extend(judgments.values())
    return JudgedSet(
        query_ids=[f"{part}{number}" for number in range(1, len(keys) + 1)],
        queries=queries,
        title_ids=list(titles),
        titles=list(titles.values()),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        title_index=np.array(title_index, dtype=np.int32),
        grade=np.array(grades, dtype=np.int32),
    )


def _release(source: Path) -> str:
    """The name of the release in the first line of its "Read Me.txt", if that file exists."""
    path = source / "Read Me.txt"
    first = next(clean_lines(path), (1, ""))[1].strip() if is_file(path) else ""
    return first if first.startswith("O*NET") else "O*NET Database"


def _readme(release: str, counts: dict[str, int], seed: int) -> str:
    return f"""\
# Occupations: what people call a job -> the official title

Made by `sentemb data onet` from the {release}, {WHERE}

- `pairs.tsv`: {counts["pairs"]} training pairs, alternate or reported title <tab> official title
- `dev/`: {counts["dev_queries"]} judged queries
- `test/`: {counts["test_queries"]} judged queries
- seed: {seed}

Names that differ in word order or number only are in the same part.

For a query about {_CANDIDATES} of the {counts["titles"]} official titles in `docs.tsv` are judged:
all it is filed under, up to {_OF_EACH_KIND} closely related, up to {_OF_EACH_KIND} related,
up to {_OF_EACH_KIND} that only share words, and random ones.
Grades are from the classification, not from raters:

- {FILED}: the query is filed under this title
- {CLOSELY_RELATED}: a related occupation of the tier {_CLOSE_TIER}
- {RELATED}: a related occupation of another tier
- 0: none of these

## Licence

This data set includes information from the {release} by the U.S. Department of
Labor, Employment and Training Administration (USDOL/ETA), used under the CC BY 4.0 license,
https://creativecommons.org/licenses/by/4.0/. O*NET® is a trademark of USDOL/ETA. The information
was selected and rearranged; USDOL/ETA has not approved, endorsed, or tested these modifications.
"""
