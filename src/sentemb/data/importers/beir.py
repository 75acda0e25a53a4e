"""Sets in the format of BEIR: a corpus, queries, and judgments for parts of the queries.

A part with grades that differ within a query becomes a judged set, in which titles are ranked
against each other. A part that only names right titles becomes a file of held-out clicks, which
are ranked against the whole catalogue: with nothing but right titles, every ranking is perfect.

Thakur et al., "BEIR: A heterogeneous benchmark for zero-shot evaluation of information retrieval
models" (2021), https://github.com/beir-cellar/beir.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from sentemb.data.importers.clean_texts import imported_id, imported_text
from sentemb.data.importers.columns import BadRows, Reading
from sentemb.data.importers.table_rows import Rows
from sentemb.data.judged_set import JudgedSet, write_judged_set
from sentemb.data.lines import write_lines
from sentemb.errors import SentembError, naming
from sentemb.system.bounds import brief, whole
from sentemb.system.files import is_file, path_of, write_text
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

WHERE = "https://github.com/beir-cellar/beir"
_JSON = Reading("jsonl")
_QRELS = Reading("tsv", quotes=False)
_PARTS = ("train", "dev", "test")
_MAX_SCORE = 2**31 - 1


def import_beir(
    source: AnyPath, out: AnyPath, *, words: int = 64, force: bool = False
) -> dict[str, int]:
    """Turn a folder in the format of BEIR into a click log, dev and test queries.

    Writes ``pairs.tsv`` from ``qrels/train.tsv`` and the parts ``dev`` and ``test``, as far as the
    set has them; ``titles.tsv``, the whole corpus; and a ``README.md``. A part whose judgments
    differ within a query is a judged set, the folder ``dev/`` or ``test/``. A part that only names
    right documents is held-out clicks, the file ``dev.tsv`` or ``test.tsv``.

    ``source`` is a folder with ``corpus.jsonl`` and ``queries.jsonl``, packed or not, and at least
    one of ``qrels/train.tsv``, ``dev.tsv`` and ``test.tsv``. A document without a title has
    ``words`` words of its text instead. ``force`` writes into a folder that has files already.
    Either all files are written or none.

    Returns the counts ``titles``, ``pairs``, ``dev_queries`` and ``test_queries``. Raises
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
                counts["pairs"] = _write_counted(new / "pairs.tsv", part.clicks(titles))
            else:
                counts |= _write_part(new, name, part, titles)
        write_text(new / "README.md", _readme(folder.resolve().name, words, counts))
    return counts


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

    @property
    def is_graded(self) -> bool:
        """Whether some query has titles of different grades."""
        return any(len(set(grades.values())) > 1 for grades in self.grades.values())

    def known(self, titles: Mapping[str, str]) -> Iterator[tuple[str, str, dict[str, int]]]:
        """Id, text and grades of the queries that have a text and a title with a text."""
        for id, grades in self.grades.items():
            known_grades = {title: grade for title, grade in grades.items() if title in titles}
            if known_grades and self.queries.get(id):
                yield id, self.queries[id], known_grades

    def clicks(self, titles: Mapping[str, str]) -> Iterator[str]:
        """Lines of a click log: each title with a grade above 0 is one click."""
        for _, query, grades in self.known(titles):
            for id, grade in grades.items():
                if grade > 0:
                    yield f"{query}\t{titles[id]}"

    def judged(self, titles: Mapping[str, str]) -> JudgedSet:
        """The judged set of the queries and titles that have a text."""
        entries = list(self.known(titles))
        ids = dict.fromkeys(title for *_, grades in entries for title in grades)
        index_of = {id: index for index, id in enumerate(ids)}
        lengths = [len(grades) for *_, grades in entries]
        return JudgedSet(
            query_ids=[id for id, *_ in entries],
            queries=[query for _, query, _ in entries],
            title_ids=list(ids),
            titles=[titles[id] for id in ids],
            offsets=np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
            title_index=np.array([index_of[i] for *_, g in entries for i in g], dtype=np.int32),
            grade=np.array([n for *_, grades in entries for n in grades.values()], dtype=np.int32),
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
    rows = _table(path, ("query-id", "corpus-id", "score"), _QRELS)
    for number, (query, document, score) in rows:
        # int() alone would also accept underscores and digits of other scripts.
        if not re.fullmatch(r"\s*[+-]?[0-9]{1,10}\s*", score) or abs(int(score)) > _MAX_SCORE:
            raise SentembError(
                f"{rows.where(number)}: the score {brief(score)} is not an integer up to "
                f"{_MAX_SCORE:,}; correct it"
            )
        judgments.add(imported_id(query), imported_id(document), int(score))
    if not any(grade > 0 for grades in judgments.grades.values() for grade in grades.values()):
        raise SentembError(f"{path}: has no score above 0; correct or remove it")
    return judgments


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
    """Write a judged set ``name/`` if there are grades, else held-out clicks ``name.tsv``.

    Returns the number of queries that are written, named after the part. Nothing is written if the
    corpus has no relevant title.
    """
    n_queries = sum(max(grades.values()) > 0 for *_, grades in judgments.known(titles))
    if n_queries and judgments.is_graded:
        judged = judgments.judged(titles)
        n_queries = len(judged.queries)
        write_judged_set(judged, folder / name)
    elif n_queries:
        write_lines(folder / f"{name}.tsv", judgments.clicks(titles))
    return {f"{name}_queries": n_queries}


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
        f"A document is its title or, without one, the first {words} words of its text.\n\n"
        "## Licence\n\n"
        "Each set of BEIR has a licence of its own; see where it was published.\n"
    )
