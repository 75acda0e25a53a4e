"""Sets in the format of BEIR: a corpus, queries, and judgments for parts of the queries.

The queries whose titles have different grades become a judged set, in which titles are ranked
against each other. Those that only have right titles become a file of held-out clicks, which are
ranked against the whole catalogue: with nothing but right titles, every ranking is perfect.

Thakur et al., "BEIR: A heterogeneous benchmark for zero-shot evaluation of information retrieval
models" (2021), https://github.com/beir-cellar/beir.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sentemb.data.importers.clean_texts import imported_id, imported_text
from sentemb.data.importers.columns import BadRows, Reading
from sentemb.data.importers.table_rows import Rows
from sentemb.data.judged_set import MAX_GRADE, JudgedSet, grade_of, write_judged_set
from sentemb.data.lines import write_lines
from sentemb.errors import SentembError, naming
from sentemb.system.bounds import brief, whole
from sentemb.system.files import is_file, path_of, reading, write_text
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

WHERE = "https://github.com/beir-cellar/beir"
_JSON = Reading("jsonl")
_QRELS = Reading("csv", quotes=False)
_PARTS = ("train", "dev", "test")


def import_beir(
    source: AnyPath, out: AnyPath, *, words: int = 64, force: bool = False
) -> dict[str, int]:
    """Turn a folder in the format of BEIR into a click log, dev and test queries.

    Writes ``pairs.tsv`` from ``qrels/train.tsv`` and the parts ``dev`` and ``test``, as far as the
    set has them; ``titles.tsv``, the whole corpus; and a ``README.md``. The queries of a part whose
    documents have different scores are a judged set, the folder ``dev/`` or ``test/``. Those that
    have right documents only are held-out clicks, the file ``dev.tsv`` or ``test.tsv``.

    ``source`` is a folder with ``corpus.jsonl`` and ``queries.jsonl``, packed or not, and at least
    one of ``qrels/train.tsv``, ``dev.tsv`` and ``test.tsv``. A document without a title has
    ``words`` words of its text instead. ``force`` writes into a folder that has files already.
    Either all files are written or none.

    Returns the counts ``titles``, ``pairs``, ``dev_queries`` and ``test_queries``; for a part that
    has both kinds of queries also those of each, and if any, the queries that are left out: without
    a text, or without a right document that the corpus has. Raises
    `SentembError` for a file or key that is missing, a score that is not an integer, a part without
    scores above 0, two documents with one id, an output folder that is not empty.
    """
    folder, target = path_of(source), path_of(out)
    whole("words", words, 1, 10_000)
    check_free(target, force)
    corpus, queries = (_file(folder, name) for name in ("corpus.jsonl", "queries.jsonl"))
    parts = {
        name: _judgments(path)
        for name in _PARTS
        if (path := _packed_or_not(folder / "qrels", f"{name}.tsv")) is not None
    }
    if not parts:
        raise SentembError(f"{folder / 'qrels'}: has none of {', '.join(_PARTS)}.tsv")
    ids = {id for part in parts.values() for id in part.grades}
    texts = dict(_queries(queries, ids))
    needed = {id for part in parts.values() for id in part.title_ids}
    titles: dict[str, str] = {}
    counts = {"titles": 0}

    def all_titles() -> Iterator[str]:
        for id, title in _titles(corpus, words):
            counts["titles"] += 1
            if id in needed:
                titles[id] = title
            yield f"{id}\t{title}"

    with filling_listed(target) as new:
        write_lines(new / "titles.tsv", all_titles())
        for name, part in parts.items():
            part.queries = texts
            if name == "train":
                counts["pairs"] = _write_counted(
                    new / "pairs.tsv", clicks_of(part.known(titles), titles)
                )
            else:
                counts |= _write_part(new, name, part, titles)
        write_text(new / "README.md", _readme(folder.resolve().name, words, counts))
    return counts


class Query(NamedTuple):
    """A query with the grades of its titles, by their ids; one grade at least is above 0."""

    id: str
    text: str
    grades: dict[str, int]

    @property
    def is_graded(self) -> bool:
        """Whether the grades tell one ranking of the titles from another."""
        return len(set(self.grades.values())) > 1


class Judgments:
    """Grades of titles for queries, by their ids.

    queries : query id -> text
    grades : query id -> title id -> grade; of several grades the highest
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

    def known(self, titles: Mapping[str, str]) -> Iterator[Query]:
        """The queries that have a text and a right title with a text."""
        for id, grades in self.grades.items():
            known_grades = {title: grade for title, grade in grades.items() if title in titles}
            if self.queries.get(id) and max(known_grades.values(), default=0) > 0:
                yield Query(id, self.queries[id], known_grades)


def clicks_of(queries: Iterable[Query], titles: Mapping[str, str]) -> Iterator[str]:
    """Lines of a click log: each title with a grade above 0 is one click."""
    for query in queries:
        for id, grade in query.grades.items():
            if grade > 0:
                yield f"{query.text}\t{titles[id]}"


def judged_set_of(queries: Sequence[Query], titles: Mapping[str, str]) -> JudgedSet:
    """The judged set of some queries."""
    ids = dict.fromkeys(title for query in queries for title in query.grades)
    index_of = {id: index for index, id in enumerate(ids)}
    lengths = [len(query.grades) for query in queries]
    return JudgedSet(
        query_ids=[query.id for query in queries],
        queries=[query.text for query in queries],
        title_ids=list(ids),
        titles=[titles[id] for id in ids],
        offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        title_index=np.array([index_of[id] for q in queries for id in q.grades], dtype=np.int32),
        grade=np.array([grade for q in queries for grade in q.grades.values()], dtype=np.int32),
    )


def _queries(path: Path, needed: Collection[str]) -> Iterator[tuple[str, str]]:
    """Id and text of the needed queries that have a text."""
    rows = _table(path, ("_id", "text"), _JSON)
    for number, (raw_id, raw_text) in rows:
        with naming(rows.where(number)):
            id = imported_id(raw_id)
            if id and id in needed and (text := imported_text(raw_text, "query")):
                yield id, text


def _judgments(path: Path) -> Judgments:
    judgments = Judgments()
    rows = _table(path, *_judged_columns(path))
    for number, (query, document, score) in rows:
        grade = grade_of(score)
        if grade is None:
            raise SentembError(
                f"{rows.where(number)}: the score {brief(score)} is not an integer up to "
                f"{MAX_GRADE:,}; correct it"
            )
        judgments.add(imported_id(query), imported_id(document), grade)
    if not any(grade > 0 for grades in judgments.grades.values() for grade in grades.values()):
        raise SentembError(f"{path}: has no score above 0; correct or remove it")
    return judgments


def _judged_columns(path: Path) -> tuple[tuple[str, ...], Reading]:
    """The columns of query, document and score, and how they are read.

    Between them are tabs, or commas or blanks where the first line has no tab. Without a line of
    names the columns are those of BEIR, or of TREC, which has one more.
    """
    with reading(path) as file:
        first = file.readline().decode("utf-8-sig", "replace").strip()
    how = replace(_QRELS, delimiter=next((mark for mark in "\t, " if mark in first), "\t"))
    names = first.split(how.delimiter)
    if len(names) in (3, 4) and grade_of(names[-1]) is not None:
        return ("1", str(len(names) - 1), str(len(names))), replace(how, header=False)
    return ("query-id", "corpus-id", "score"), how


def _titles(corpus: Path, words: int) -> Iterator[tuple[str, str]]:
    """Id and title of the documents that have any text."""
    rows = _table(corpus, ("_id", "title", "text"), _JSON, optional=("title",))
    seen: set[str] = set()
    for number, (raw_id, title, text) in rows:
        with naming(rows.where(number)):
            id = imported_id(raw_id)
            shown = imported_text(title, "title")
            shown = shown or imported_text(" ".join(text.split(None, words)[:words]), "text")
        if id in seen:
            raise SentembError(
                f"{rows.where(number)}: the id {brief(id)} is that of an earlier document (white "
                "space in ids becomes _); rename or remove one"
            )
        if id and shown:
            seen.add(id)
            yield id, shown


def _file(folder: Path, name: str) -> Path:
    path = _packed_or_not(folder, name)
    if path is None:
        raise SentembError(f"{folder / name}: no such file, packed or not; get it from {WHERE}")
    return path


def _packed_or_not(folder: Path, name: str) -> Path | None:
    return next(filter(is_file, (folder / name, folder / f"{name}.gz")), None)


def _table(
    path: Path, columns: tuple[str, ...], how: Reading, optional: tuple[str, ...] = ()
) -> Rows:
    """The rows of a file, in which a bad row is an error."""
    return Rows(path, columns, how, BadRows(skip=False), optional=optional)


def _write_part(
    folder: Path, name: str, judgments: Judgments, titles: Mapping[str, str]
) -> dict[str, int]:
    """Write the graded queries as a judged set ``name/``, the others as clicks ``name.tsv``.

    Returns the numbers of queries; see `import_beir`.
    """
    known = list(judgments.known(titles))
    graded = [query for query in known if query.is_graded]
    right_only = [query for query in known if not query.is_graded]
    counts = {f"{name}_queries": len(known)}
    if graded:
        write_judged_set(judged_set_of(graded, titles), folder / name)
    if right_only:
        write_lines(folder / f"{name}.tsv", clicks_of(right_only, titles))
    if graded and right_only:
        counts[f"{name}_queries_judged"] = len(graded)
        counts[f"{name}_queries_with_right_titles_only"] = len(right_only)
    n_left_out = len(judgments.grades) - len(known)
    return counts | ({f"{name}_queries_left_out": n_left_out} if n_left_out else {})


def _write_counted(path: Path, lines: Iterable[str]) -> int:
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


def _readme(name: str, words: int, counts: Mapping[str, int]) -> str:
    listed = "\n".join(f"- {what.replace('_', ' ')}: {count}" for what, count in counts.items())
    return (
        f"# {name}: a query -> a document\n\n"
        f"Made by `sentemb data beir` from a set in the format of {WHERE}\n\n"
        f"{listed}\n\n"
        "`titles.tsv` is the whole corpus, `pairs.tsv` the log of `qrels/train.tsv`. Of dev and "
        "test, the queries whose documents have different scores are judged sets, the folders "
        "`dev` and `test`; those that have right documents only are held-out clicks, `dev.tsv` and "
        "`test.tsv`. Queries without a text, or without a right document in the corpus, are left "
        "out.\n\n"
        f"A document is its title or, without one, the first {words} words of its text.\n\n"
        "## Licence\n\n"
        "Each set of BEIR has a licence of its own; see where it was published.\n"
    )
