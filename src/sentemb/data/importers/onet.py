"""The O*NET database as a click log: what people call a job -> the official occupation title.

O*NET, of the U.S. Department of Labor, lists for each occupation the titles that people use for it.
Those stand for queries, the official titles for clicked titles. The judgments come from the
classification and not from raters: a title is right if the query is filed under it, and near if
O*NET names it as a related occupation.
"""

import math
import random
import re
from collections import Counter, defaultdict

import numpy as np

from sentemb.bounds import MAX_SEED, brief, is_number, whole
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.data.judged_set import JudgedSet, write_judged_set
from sentemb.data.lines import clean_lines, is_id
from sentemb.errors import SentembError
from sentemb.system.files import is_file, path_of, write_text
from sentemb.system.whole_folder import check_free, filling

WHERE = "https://www.onetcenter.org/database.html"

FILED, CLOSELY_RELATED, RELATED = 3, 2, 1
_CLOSE_TIER = "Primary-Short"

# Names that are filed under more occupations ("Supervisor") say too little to be judged.
_MOST_FILED = 5
# What is judged for a query: all titles it is filed under, up to so many of each kind (closely
# related, related, similar in words), and random ones up to the total.
_OF_EACH_KIND = 4
_CANDIDATES = 24

# More than any release has names.
_MOST_QUERIES = 10**9

_IRREGULAR = {
    "men": "man",
    "people": "person",
    "children": "child",
    "feet": "foot",
    "teeth": "tooth",
}


def import_onet(source, out, *, dev=1500, test=3000, seed=0, force=False):
    """Turn the text files of the O*NET database into a click log with judged dev and test sets.

    Writes ``pairs.tsv``, ``dev/``, ``test/`` and a ``README.md`` with source, licence and settings.
    Names that differ in word order or number only go into the same part, so no dev or test query
    is in the training log in another guise.

    Parameters
    ----------
    source : str or path-like
        Folder of the tab-separated text files of an O*NET release, unpacked and unchanged.
    out : str or path-like
        Folder to write to.
    dev, test : int or float
        How many queries to judge; below 1, which share of all distinct names.
    seed : int
        Of the split and of the random candidates. The same files and settings give the same output.
    force : bool
        Write into a folder that has files already. All files are written, or, after an error or
        Ctrl-C, none.

    Returns
    -------
    dict of str to int
        Counts of what was written: ``pairs``, ``training_queries``, ``titles``, ``dev_queries``,
        ``test_queries``.

    Raises
    ------
    SentembError
        For a file, column or value that is missing, sizes that leave nothing to train on, an output
        folder that is not empty.
    """
    source, out = path_of(source), path_of(out)
    whole("seed", seed, 0, MAX_SEED)
    check_free(out, force)
    titles = _official_titles(source)
    grades_beside = _related_occupations(source, titles)
    groups = _names_by_key(source, titles)

    judgeable = [key for key, group in groups.items() if len(_filed(group)) <= _MOST_FILED]
    n_dev = _size(dev, "dev", len(groups))
    n_test = _size(test, "test", len(groups))
    if n_dev + n_test > len(judgeable) or n_dev + n_test >= len(groups):
        raise SentembError(
            f"{n_dev} dev and {n_test} test queries are too many: {source} has {len(groups)} "
            f"distinct names, {len(judgeable)} of them fit to be judged; choose smaller sizes"
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
    choose = _CandidateChooser(titles, grades_beside, chance)
    judged = {part: _judged(part, keys, groups, titles, choose) for part, keys in parts.items()}
    counts = {
        "pairs": len(log.clicks),
        "training_queries": len(log.queries),
        "titles": len(titles),
        "dev_queries": n_dev,
        "test_queries": n_test,
    }
    readme = _readme(_release(source), counts, seed)
    with filling(out) as place:
        write_click_log(log, place / "pairs.tsv")
        for part, one in judged.items():
            write_judged_set(one, place / part)
        write_text(place / "README.md", readme)
    return counts


def name_key(name):
    """The set of stems of ``name``: equal for names that differ in word order or number only.

    The stem drops endings so freely that any regular plural meets its singular ("nurses" and
    "nurse" give "nur"). That now and then two different words meet as well does no harm: their
    names just go into the same part.
    """
    words = re.findall(r"[^\W_]+", re.sub(r"['’]s\b", "", name.casefold()))
    return frozenset(map(_stem, words)) or frozenset([name.casefold()])


def _stem(word):
    for plural, singular in _IRREGULAR.items():
        if word.endswith(plural):
            word = word.removesuffix(plural) + singular
    # Two letters stay, or most abbreviations would be the same.
    stem = word[:2] + word[2:].rstrip("seiy")
    return stem.removesuffix("v") + "f" if stem.endswith("v") else stem


def _rows(source, name, *columns):
    """Yield the place (``path:line``) and the cells of ``columns`` for each row of a table."""
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
    places = [header.index(column) for column in columns]
    for number, line in lines:
        cells = line.split("\t")
        if len(cells) != len(header):
            raise SentembError(
                f"{path}:{number}: {len(cells)} columns, not {len(header)} as in the header; "
                f"get the file again from {WHERE}"
            )
        yield f"{path}:{number}", *(cells[place].strip() for place in places)


def _official_titles(source):
    """Occupation code -> official title."""
    titles = {}
    for place, code, title in _rows(source, "Occupation Data.txt", "O*NET-SOC Code", "Title"):
        if not is_id(code) or not title:
            raise SentembError(f"{place}: no code or no title; get the file again from {WHERE}")
        titles[code] = title
    return titles


def _related_occupations(source, titles):
    """Occupation code -> related occupation code -> grade."""
    name = "Related Occupations.txt"
    columns = ("O*NET-SOC Code", "Related O*NET-SOC Code", "Relatedness Tier")
    related = defaultdict(dict)
    for place, code, other, tier in _rows(source, name, *columns):
        _check_known(code, titles, place)
        _check_known(other, titles, place)
        related[code][other] = CLOSELY_RELATED if tier == _CLOSE_TIER else RELATED
    return related


def _names_by_key(source, titles):
    """Key of a name -> its spellings -> the codes they are filed under (a dict without values).

    All in the order of the files, so that the output does not depend on hashes.
    """
    groups = defaultdict(lambda: defaultdict(dict))
    for name, *columns in (
        ("Alternate Titles.txt", "Alternate Title", "Short Title"),
        ("Sample of Reported Titles.txt", "Reported Job Title"),
    ):
        for place, code, *spellings in _rows(source, name, "O*NET-SOC Code", *columns):
            _check_known(code, titles, place)
            for spelling in spellings:
                if spelling not in ("", "n/a"):
                    groups[name_key(spelling)][spelling][code] = None
    return groups


def _check_known(code, titles, place):
    if code not in titles:
        raise SentembError(
            f"{place}: the occupation {brief(code)} is not in 'Occupation Data.txt'; take all "
            f"files from one release of {WHERE}"
        )


def _filed(group):
    """The codes that any spelling of a name is filed under, in order."""
    return list(dict.fromkeys(code for codes in group.values() for code in codes))


def _size(wanted, part, n_names):
    if is_number(wanted) and 0 < wanted < 1:
        return max(1, round(wanted * n_names))
    if is_number(wanted) and 1 <= wanted <= _MOST_QUERIES and wanted == int(wanted):
        return int(wanted)
    raise SentembError(
        f"the size of {part} is {brief(wanted)}; give an integer number of queries or a share "
        "below 1"
    )


class _CandidateChooser:
    """Chooses which titles are judged for a query.

    Parameters
    ----------
    titles : dict
        Code -> official title.
    grades_beside : dict of dicts
        Code -> related code -> grade.
    chance : random.Random
    """

    def __init__(self, titles, grades_beside, chance):
        self._codes = list(titles)
        self._grades_beside = grades_beside
        self._chance = chance
        self._with_stem = defaultdict(list)
        for code, title in titles.items():
            for stem in sorted(name_key(title)):
                self._with_stem[stem].append(code)

    def __call__(self, key, filed):
        """Code -> grade of the candidates for a name with this key, filed under these codes."""
        grades = {}
        for code in filed:
            for other, grade in self._grades_beside[code].items():
                grades[other] = max(grade, grades.get(other, 0))
        grades |= dict.fromkeys(filed, FILED)

        chosen = list(filed)
        for wanted in (CLOSELY_RELATED, RELATED):
            kind = [code for code, grade in grades.items() if grade == wanted]
            chosen += self._chance.sample(kind, min(_OF_EACH_KIND, len(kind)))
        # Not related, but a ranker that goes by words alone may think so.
        similar = [code for code in self._by_common_words(key) if code not in grades]
        chosen += similar[:_OF_EACH_KIND]
        rest = [code for code in self._codes if code not in grades and code not in set(chosen)]
        n_random = max(0, _CANDIDATES - len(chosen))
        chosen += self._chance.sample(rest, min(n_random, len(rest)))
        return {code: grades.get(code, 0) for code in sorted(chosen)}

    def _by_common_words(self, key):
        """Codes whose titles share stems with the key, the most and rarest first."""
        weights = Counter()
        for stem in sorted(key):
            codes = self._with_stem.get(stem, ())
            for code in codes:
                weights[code] += math.log(len(self._codes) / len(codes))
        return sorted(weights, key=lambda code: (-weights[code], code))


def _judged(part, keys, groups, titles, choose):
    """The `JudgedSet` with one query, the first spelling, for each key."""
    doc_of = {code: index for index, code in enumerate(titles)}
    queries, lengths, doc_index, grades = [], [], [], []
    for key in keys:
        group = groups[key]
        queries.append(next(iter(group)))
        judgments = choose(key, _filed(group))
        lengths.append(len(judgments))
        doc_index.extend(doc_of[code] for code in judgments)
        grades.extend(judgments.values())
    return JudgedSet(
        query_ids=[f"{part}{number}" for number in range(1, len(keys) + 1)],
        queries=queries,
        doc_ids=list(titles),
        docs=list(titles.values()),
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        doc_index=np.array(doc_index, dtype=np.int32),
        grade=np.array(grades, dtype=np.int32),
    )


def _release(source):
    """What the release calls itself in the first line of its "Read Me.txt", if it is there."""
    path = source / "Read Me.txt"
    first = next(clean_lines(path), (1, ""))[1].strip() if is_file(path) else ""
    return first if first.startswith("O*NET") else "O*NET Database"


def _readme(release, counts, seed):
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
