"""What importers of published sets share: judgments, titles of the ids that are needed, parts.

A part with grades that differ within a query becomes a judged set, in which titles are ranked
against each other. A part that only names right titles becomes a file of held-out clicks, which
are ranked against the whole catalogue: with nothing but right titles, every ranking is perfect.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from sentemb.data.importers.clean_texts import imported_id, imported_text
from sentemb.data.importers.columns import BadRows, Reading
from sentemb.data.importers.table_rows import Rows
from sentemb.data.judged_set import JudgedSet, write_judged_set
from sentemb.data.lines import clean_lines, write_lines
from sentemb.errors import SentembError, naming
from sentemb.system.files import is_file, write_text

# Tab-separated files without header, in which quotes are ordinary characters.
PLAIN_TSV = Reading("tsv", header=False, quotes=False)


class Judgments:
    """Grades of titles for queries, by their ids.

    Attributes
    ----------
    queries : dict of str to str
        Query id -> text.
    grades : dict of str to dict of str to int
        Query id -> title id -> grade; of several grades the highest.
    """

    def __init__(self) -> None:
        self.queries: dict[str, str] = {}
        self.grades: dict[str, dict[str, int]] = {}

    def add(self, query_id: str, title_id: str, grade: int) -> None:
        """Add one judgment; the query's text may come later."""
        grades = self.grades.setdefault(query_id, {})
        grades[title_id] = max(grade, grades.get(title_id, grade))

    @property
    def title_ids(self) -> set[str]:
        """The ids of all judged titles."""
        return {id for grades in self.grades.values() for id in grades}

    @property
    def is_graded(self) -> bool:
        """Whether some query has titles of different grades."""
        return any(len(set(grades.values())) > 1 for grades in self.grades.values())

    def known(self, titles: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, int]]]:
        """Id, text and grades of the queries that have a text and a title with a text."""
        for id, grades in self.grades.items():
            found = {title: grade for title, grade in grades.items() if title in titles}
            if found and self.queries.get(id):
                yield id, self.queries[id], found

    def clicks(self, titles: Mapping[str, str], least: int = 1) -> Iterator[str]:
        """Lines of a click log: each title with at least this grade is one click."""
        for _, query, grades in self.known(titles):
            for id, grade in grades.items():
                if grade >= least:
                    yield f"{query}\t{titles[id]}"

    def judged(self, titles: Mapping[str, str]) -> JudgedSet:
        """The judged set of the queries and titles that have a text."""
        entries = list(self.known(titles))
        ids = dict.fromkeys(title for *_, grades in entries for title in grades)
        place_of = {id: place for place, id in enumerate(ids)}
        lengths = [len(grades) for *_, grades in entries]
        return JudgedSet(
            query_ids=[id for id, *_ in entries],
            queries=[query for _, query, _ in entries],
            title_ids=list(ids),
            titles=[titles[id] for id in ids],
            offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
            title_index=np.array([place_of[i] for *_, g in entries for i in g], dtype=np.int32),
            grade=np.array([n for *_, grades in entries for n in grades.values()], dtype=np.int32),
        )


def write_part(
    folder: Path, name: str, judgments: Judgments, titles: Mapping[str, str]
) -> dict[str, int]:
    """Write a judged set ``name/`` if there are grades, else held-out clicks ``name.tsv``.

    Returns
    -------
    dict of str to int
        The number of queries, named after the part. Nothing is written if there are none.
    """
    n_queries = sum(1 for _ in judgments.known(titles))
    if n_queries and judgments.is_graded:
        write_judged_set(judgments.judged(titles), folder / name)
    elif n_queries:
        write_lines(folder / f"{name}.tsv", judgments.clicks(titles))
    return {f"{name}_queries": n_queries}


def write_titles(folder: Path, titles: Mapping[str, str]) -> None:
    """Write the catalogue titles.tsv."""
    write_lines(folder / "titles.tsv", (f"{id}\t{title}" for id, title in titles.items()))


def write_counted(path: Path, lines: Iterable[str]) -> int:
    """Write lines, of which there must be one; returns their number."""
    count = 0

    def counted() -> Iterator[str]:
        nonlocal count
        for line in lines:
            count += 1
            yield line
        if not count:
            raise SentembError(f"{path.name}: no pairs are left to train on; check the source")

    write_lines(path, counted())
    return count


def write_readme(
    folder: Path, title: str, made: str, counts: Mapping[str, int], about: str, licence: str
) -> None:
    """Write README.md: what was made from what, how many of each, and the licence."""
    listed = "\n".join(f"- {name.replace('_', ' ')}: {count}" for name, count in counts.items())
    write_text(
        folder / "README.md",
        f"# {title}\n\n{made}\n\n{listed}\n\n{about}\n\n## Licence\n\n{licence}\n",
    )


def found_file(folder: Path, name: str, where: str = "") -> Path | None:
    """A file of a folder, or its packed form; without it None or, with ``where``, an error."""
    for path in (folder / name, folder / f"{name}.gz"):
        if is_file(path):
            return path
    if where:
        raise SentembError(f"{folder / name}: no such file, packed or not; get it from {where}")
    return None


def table(path: Path, columns: Collection[str], how: Reading = PLAIN_TSV, **more: object) -> Rows:
    """The rows of a published file, in which a bad row is an error."""
    return Rows(path, tuple(columns), how, BadRows(skip=False), **more)  # type: ignore[arg-type]


def texts_by_id(
    rows: Rows, what: str, needed: Collection[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Id and text of each row; only those that are needed, and none without an id or a text."""
    for number, (raw_id, raw_text) in rows:
        with naming(rows.place(number)):
            id = imported_id(raw_id)
            if id and (needed is None or id in needed):
                text = imported_text(raw_text, what)
                if text:
                    yield id, text


def read_qrels(path: Path) -> Judgments:
    """Judgments in the TREC format: query id, ignored, title id, grade, by white space."""
    judgments = Judgments()
    for number, line in clean_lines(path):
        fields = line.split()
        if not fields:
            continue
        try:
            query, _, title, grade = fields
            judgments.add(query, title, int(grade))
        except ValueError:
            raise SentembError(
                f"{path}:{number}: not query id, 0, title id, grade; get the file again"
            ) from None
    return judgments
