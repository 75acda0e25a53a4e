"""Judged sets: queries, titles, and grades of how relevant a title is for a query."""

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.lines import content_lines, content_portions, is_id, write_lines
from sentemb.data.spreadsheets import is_header, is_quoted
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, plain
from sentemb.system.files import is_file, path_of, place_name
from sentemb.system.html_tables import excerpt, facts_table
from sentemb.system.paths import AnyPath

FILES = ("queries.tsv", "docs.tsv", "qrels.txt")
MAX_GRADE = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class JudgedSet:
    """Queries, titles and graded judgments.

    Attributes
    ----------
    query_ids, queries : list of str
        Ids without white space, and the text of each.
    title_ids, titles : list of str
        Ids without white space, and the text of each.
    offsets : ndarray, (n_queries + 1,) int64
        Query ``q`` has the judgments ``offsets[q]`` to ``offsets[q + 1]``.
    title_index : ndarray, (n_judgments,) int32
        The judged title of each judgment, in the order of the file.
    grade : ndarray, (n_judgments,) int32
        0 means not relevant; a higher grade is more relevant. Negative grades are kept; the
        metrics count them as not relevant, like trec_eval.
    """

    query_ids: list[str]
    queries: list[str]
    title_ids: list[str]
    titles: list[str]
    offsets: NDArray[np.int64]
    title_index: NDArray[np.int32]
    grade: NDArray[np.int32]

    def __repr__(self) -> str:
        return (
            f"JudgedSet({len(self.queries):,} queries, {len(self.titles):,} titles, "
            f"{len(self.grade):,} judgments)"
        )

    def _repr_html_(self) -> str:
        grades, counts = np.unique(self.grade, return_counts=True)
        facts = {
            "queries": len(self.queries),
            "titles": len(self.titles),
            "judgments": len(self.grade),
            **{f"grade {g}": n for g, n in zip(grades.tolist(), counts.tolist(), strict=True)},
        }
        query = np.searchsorted(self.offsets, np.arange(len(self.grade)), side="right") - 1
        judgments = zip(query, self.title_index, self.grade.tolist(), strict=True)
        rows = ((self.queries[q], self.titles[t], grade) for q, t, grade in judgments)
        heads = ["query", "title", "grade"]
        return facts_table(facts) + excerpt(rows, len(self.grade), heads, texts=(0, 1))

    def fingerprint(self) -> str:
        """The SHA-256 of everything in the set, in hexadecimal."""
        digest = hashlib.sha256()
        for texts in (self.query_ids, self.queries, self.title_ids, self.titles):
            digest.update("\n".join([*texts, ""]).encode())
        for array in (self.offsets, self.title_index, self.grade):
            digest.update(array.tobytes())
        return digest.hexdigest()


def read_judged_set(folder: AnyPath) -> JudgedSet:
    """Read a judged set from a folder.

    Parameters
    ----------
    folder : str or path-like
        Holds ``queries.tsv`` and ``docs.tsv`` with lines ``id<TAB>text``, where the text is
        everything after the first tab, and ``qrels.txt`` in the TREC format: ``query id, 0, title
        id, grade``, separated by white space; the second column is ignored and may be lacking, as
        in BEIR, and a first line may name the columns. All are UTF-8; a byte-order mark and blank
        lines at the end are dropped.

    Returns
    -------
    JudgedSet

    Raises
    ------
    SentembError
        With file, line and remedy, for a missing file, a line without tab, an id that is empty or
        has white space, an empty text, an id or a judgment given twice, an id in the judgments
        that is not in the lists, a judgment without four columns or with a grade that is not an
        integer (``1.0`` and ``1e0`` are), NUL characters, invalid UTF-8, no judgments at all.
    """
    path = path_of(folder)
    for name in FILES:
        if not is_file(path / name):
            raise SentembError(
                f"{path / name}: no such file; a judged set is a folder with {', '.join(FILES)}"
            )
    query_ids, queries = read_texts(path / "queries.tsv")
    title_ids, titles = read_texts(path / "docs.tsv")
    query, title, grade = _read_judgments(path / "qrels.txt", query_ids, title_ids)

    by_query = np.argsort(query, kind="stable")
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    np.cumsum(np.bincount(query, minlength=len(queries)), out=offsets[1:])
    return JudgedSet(
        query_ids, queries, title_ids, titles, offsets, title[by_query], grade[by_query]
    )


def write_judged_set(judged: JudgedSet, folder: AnyPath) -> None:
    """Write a `JudgedSet` so that `read_judged_set` gives it back.

    If a text or an id could not be read back, a `SentembError` is raised and nothing is written.
    """
    for ids, texts in ((judged.query_ids, judged.queries), (judged.title_ids, judged.titles)):
        for number, (id, text) in enumerate(zip(ids, texts, strict=True), 1):
            if not is_id(id):
                raise SentembError(
                    f"the id {brief(id)} cannot be written; use one without white space"
                )
            if not text.strip() or "\n" in text or "\0" in text or text.endswith("\r"):
                raise SentembError(
                    f"the text {brief(text)} of {plain(id)} cannot be written; give it at least "
                    "one word and no line ends or NUL characters"
                )
            if is_quoted([id, text], first=number == 1):
                raise SentembError(
                    f"the text {brief(text)} of {plain(id)} cannot be written: it would be read as "
                    "quoted CSV; drop the quotes"
                )
        if ids and is_header([ids[0], *texts[0].split("\t")]):
            raise SentembError(
                f"the text {brief(texts[0])} of {plain(ids[0])} cannot be written: as line 1 it "
                "would be read as a header; give it another id"
            )
    path = path_of(folder)
    write_lines(path / "queries.tsv", _text_lines(judged.query_ids, judged.queries))
    write_lines(path / "docs.tsv", _text_lines(judged.title_ids, judged.titles))
    write_lines(path / "qrels.txt", _judgment_lines(judged))


def _text_lines(ids: list[str], texts: list[str]) -> Iterator[str]:
    return (f"{id}\t{text}" for id, text in zip(ids, texts, strict=True))


def read_texts(path: AnyPath) -> tuple[list[str], list[str]]:
    """Ids and texts of a file of ``id<TAB>text`` lines: two lists of str.

    A `SentembError` is raised as by `product_portions`, and for an id that is repeated.
    """
    _, ids, texts, _ = read_products(path)
    return ids, texts


def read_products(path: AnyPath) -> tuple[list[str], list[str], list[str], list[str]]:
    """Names of fields, and as `read_texts` ids, texts, and fields, each with a tab before it."""
    columns: list[str] = []
    ids: list[str] = []
    texts: list[str] = []
    all_fields: list[str] = []
    line_of: dict[str, int] = {}
    for part in product_portions(path, columns.extend):
        for number, id in enumerate(part.ids, part.first):
            if line_of.setdefault(id, number) != number:
                raise repeated_id(path, id, line_of[id], number)
        ids += part.ids
        texts += part.texts
        tabbed = [[f"\t{field}" for field in column] for column in part.fields]
        all_fields += map("".join, zip(*tabbed, strict=True)) if tabbed else [""] * len(part.ids)
    return columns, ids, texts, all_fields


class ProductLines(NamedTuple):
    """Some lines of a file of titles.

    first : the number of the first line, counted from 1
    ids, texts : of each line
    fields : a column for each that the header names
    """

    first: int
    ids: Sequence[str]
    texts: Sequence[str]
    fields: Sequence[Sequence[str]]


def product_portions(
    path: AnyPath, on_columns: Callable[[list[str]], None] = lambda names: None
) -> Iterator[ProductLines]:
    """Yield the lines ``id<TAB>text`` of a file, some at a time. An id may be repeated.

    A first line ``id<TAB>title`` is a header. What it has after that names fields; each line then
    has as many, which may be empty. ``on_columns`` is called with the names of the fields, of which
    there may be none, if there is a header. For the first wrong line a `SentembError` is raised,
    once the lines before are yielded.
    """
    name, n_fields = place_name(path), 0
    for first, lines in content_portions(path):
        if first == 1 and (columns := _columns_of(lines[0])) is not None:
            n_fields = len(columns)
            on_columns(columns)
            first, lines = 2, lines[1:]
        fault, rows = None, _rows(lines, n_fields)
        if not _are_plain(rows, n_fields):
            for k, line in enumerate(lines):
                fault = _fault(name, first + k, line, n_fields)
                if fault is not None:
                    rows = rows[:k]
                    break
        if rows:
            ids, texts, *fields = zip(*rows, strict=True)
            yield ProductLines(first, ids, texts, fields)
        if fault is not None:
            raise fault


def _rows(lines: list[str], n_fields: int) -> list[list[str]]:
    """Split some lines into columns; without fields, a text may contain tabs."""
    most = -1 if n_fields else 1
    return [line.split("\t", most) for line in lines]


def _are_plain(rows: list[list[str]], n_fields: int) -> bool:
    """Whether no line can be wrong; faster than to look at each by itself."""
    if any(len(row) != 2 + n_fields for row in rows):
        return False
    ids, texts = [row[0] for row in rows], [row[1] for row in rows]
    joined = " ".join(ids)
    return not rows or (
        joined.split() == ids
        and "\ufeff" not in joined
        and all(map(str.strip, texts))
        and not any(is_quoted(row[:2], first=True) for row in rows if '"' in row[1])
        and not is_header("\t".join(rows[0]).split("\t"))
    )


def _fault(name: str, number: int, line: str, n_fields: int) -> SentembError | None:
    """The error for a line of the file ``name``; None if the line is right."""
    id, tab, text = line.partition("\t")
    fields: list[str] = []
    if n_fields:
        text, *fields = text.split("\t")
    if not tab:
        problem = "no tab; write id<TAB>text"
        if number == 1 and ("," in line or ";" in line):
            problem += "; of CSV, `sentemb import --catalogue` writes that (--write-catalogue)"
    elif number == 1 and is_header(line.split("\t")):
        problem = "looks like a header; drop the line, or give the text another id"
    elif len(fields) != n_fields:
        problem = f"{2 + len(fields)} columns, but line 1 names {2 + n_fields}; write as many"
    elif '"' in text and is_quoted([id, text], first=number == 1):
        problem = "quoted as CSV, and the quotes would be part of the text; write the text as it is"
    elif not is_id(id):
        problem = (
            f"the id {brief(id)} is empty or has white space; write id<TAB>text with an id of one "
            "word"
        )
    elif not text.strip():
        problem = f"the text of {plain(id)} is empty; write id<TAB>text"
    else:
        return None
    return SentembError(f"{name}:{number}: {problem}")


def _columns_of(line: str) -> list[str] | None:
    """The names of the fields if ``line`` is a header, as the first line of a file may be."""
    id, *rest = line.split("\t")
    names = [id.lower(), *map(str.strip, map(str.lower, rest[:1]))]
    return rest[1:] if names == ["id", "title"] else None


def grade_of(text: str) -> int | None:
    """The grade that ``text`` spells, "2", "2.0" or "2e0"; None if it is not an integer of 32 bits.

    Examples
    --------
    >>> grade_of("2"), grade_of("1.0"), grade_of("2e0"), grade_of("0.5"), grade_of("1_0")
    (2, 1, 2, None, None)
    """
    # The pattern keeps out underscores, NaN and other words.
    if not re.fullmatch(
        r"(?a)\s*[+-]?[0-9]{1,20}(?:\.[0-9]{0,20})?(?:[eE][+-]?[0-9]{1,2})?\s*", text
    ):
        return None
    grade = Decimal(text.strip())
    return int(grade) if abs(grade) <= MAX_GRADE and grade == int(grade) else None


def repeated_id(path: AnyPath, id: str, before: int, number: int) -> SentembError:
    """The error for a line with the id of an earlier line, ``before``."""
    return SentembError(
        f"{place_name(path)}:{number}: the id {plain(id)} is already in line {before}; "
        "give each text its own id"
    )


def _read_judgments(
    path: Path, query_ids: list[str], title_ids: list[str]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Query index, title index and grade of each judgment, in the order of the file."""
    query_of = {id: index for index, id in enumerate(query_ids)}
    title_of = {id: index for index, id in enumerate(title_ids)}
    line_of: dict[tuple[int, int], int] = {}
    grades, width = [], 0
    for number, line in content_lines(path):
        columns = line.split()
        width = width or (3 if len(columns) == 3 else 4)
        if len(columns) != width:
            raise SentembError(
                f"{path}:{number}: {len(columns)} columns, not {width}; "
                "write query id, 0, title id, grade"
            )
        query_id, title_id, grade = columns[0], *columns[-2:]
        if number == 1 and query_id not in query_of and not any(map(str.isdigit, grade)):
            continue  # names of columns
        if query_id not in query_of:
            raise SentembError(
                f"{path}:{number}: the query {plain(query_id)} is not in queries.tsv; "
                "add it there or drop the line"
            )
        if title_id not in title_of:
            raise SentembError(
                f"{path}:{number}: the title {plain(title_id)} is not in docs.tsv; "
                "add it there or drop the line"
            )
        value = grade_of(grade)
        if value is None:
            raise SentembError(
                f"{path}:{number}: the grade {brief(grade)} is not an integer of 32 bits; "
                "write 0 for not relevant, 1 or more for relevant"
            )
        pair = query_of[query_id], title_of[title_id]
        if pair in line_of:
            raise SentembError(
                f"{path}:{number}: {plain(title_id)} was already judged for {plain(query_id)} in "
                f"line {line_of[pair]}; keep one of the two"
            )
        line_of[pair] = number
        grades.append(value)
    if not grades:
        raise SentembError(f"{path}: no judgments; write query id, 0, title id, grade")
    pairs = np.array(list(line_of), dtype=np.int32)
    return pairs[:, 0], pairs[:, 1], np.array(grades, dtype=np.int32)


def _judgment_lines(judged: JudgedSet) -> Iterator[str]:
    titles, grades = judged.title_index.tolist(), judged.grade.tolist()
    spans = pairwise(judged.offsets.tolist())
    for query_id, (start, stop) in zip(judged.query_ids, spans, strict=True):
        for title, grade in zip(titles[start:stop], grades[start:stop], strict=True):
            yield f"{query_id} 0 {judged.title_ids[title]} {grade}"
