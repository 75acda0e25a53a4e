"""Judged sets: queries, titles, and how relevant which title is for which query."""

import hashlib
import re
from dataclasses import dataclass

import numpy as np

from sentemb.bounds import brief, plain
from sentemb.data.lines import clean_lines, is_id, write_lines
from sentemb.errors import SentembError
from sentemb.system.files import is_file, path_of, place_name

FILES = ("queries.tsv", "docs.tsv", "qrels.txt")
_MAX_GRADE = 2**31 - 1


@dataclass(frozen=True, eq=False)
class JudgedSet:
    """Queries, titles and graded judgments.

    Attributes
    ----------
    query_ids, queries : list of str
        Ids without white space, and the texts they stand for.
    doc_ids, docs : list of str
        Ids without white space, and the titles they stand for.
    offsets : ndarray, (n_queries + 1,) int64
        Query ``q`` has the judgments ``offsets[q]`` to ``offsets[q + 1]``.
    doc_index : ndarray, (n_judgments,) int32
        The judged title, in the order of the file.
    grade : ndarray, (n_judgments,) int32
        The higher the more relevant, 0 = not relevant. Negative grades are kept as they are; like
        trec_eval, the metrics count them as not relevant.
    """

    query_ids: list[str]
    queries: list[str]
    doc_ids: list[str]
    docs: list[str]
    offsets: np.ndarray
    doc_index: np.ndarray
    grade: np.ndarray

    def fingerprint(self) -> str:
        """A hash of everything in the set."""
        digest = hashlib.sha256()
        for texts in (self.query_ids, self.queries, self.doc_ids, self.docs):
            digest.update("\n".join([*texts, ""]).encode())
        for array in (self.offsets, self.doc_index, self.grade):
            digest.update(array.tobytes())
        return digest.hexdigest()


def read_judged_set(folder):
    """Read a judged set from a folder.

    Parameters
    ----------
    folder : str or path-like
        Has ``queries.tsv`` and ``docs.tsv``, lines ``id<TAB>text``, the text being all after the
        first tab, and ``qrels.txt`` as in TREC: ``query id, 0, document id, grade``, separated by
        white space, the second column ignored. UTF-8, a byte-order mark is dropped.

    Returns
    -------
    JudgedSet

    Raises
    ------
    SentembError
        With file, line and remedy, for a missing file, a line without tab, an id that is empty or
        has white space, an empty text, an id or a judgment given twice, an id in the judgments
        that is in none of the lists, a line of the judgments without four columns or with a
        grade that is not a whole number, NUL characters, invalid UTF-8, no judgments at all.
    """
    folder = path_of(folder)
    for name in FILES:
        if not is_file(folder / name):
            raise SentembError(
                f"{folder / name}: no such file; a judged set is a folder with {', '.join(FILES)}"
            )
    query_ids, queries = read_texts(folder / "queries.tsv")
    doc_ids, docs = read_texts(folder / "docs.tsv")
    query, doc, grade = _read_judgments(folder / "qrels.txt", query_ids, doc_ids)

    by_query = np.argsort(query, kind="stable")
    offsets = np.zeros(len(queries) + 1, dtype=np.int64)
    np.cumsum(np.bincount(query, minlength=len(queries)), out=offsets[1:])
    return JudgedSet(query_ids, queries, doc_ids, docs, offsets, doc[by_query], grade[by_query])


def write_judged_set(judged, folder):
    """Write a `JudgedSet` so that `read_judged_set` gives it back.

    A text or an id that could not be read back raises a `SentembError`, and nothing is written.
    """
    for ids, texts in ((judged.query_ids, judged.queries), (judged.doc_ids, judged.docs)):
        for id, text in zip(ids, texts, strict=True):
            if not is_id(id):
                raise SentembError(
                    f"the id {brief(id)} cannot be written; use one without white space"
                )
            if not text.strip() or "\n" in text or "\0" in text or text.endswith("\r"):
                raise SentembError(
                    f"the text {brief(text)} of {plain(id)} cannot be written; give it at least "
                    "one word and no line ends or NUL characters"
                )
    folder = path_of(folder)
    write_lines(folder / "queries.tsv", map("\t".join, zip(judged.query_ids, judged.queries)))
    write_lines(folder / "docs.tsv", map("\t".join, zip(judged.doc_ids, judged.docs)))
    write_lines(folder / "qrels.txt", _judgment_lines(judged))


def read_texts(path):
    """Ids and texts of a file of ``id<TAB>text`` lines: two lists of str.

    A line without tab, an id that is empty, has white space or stands there already, an empty text
    or bytes that are not UTF-8 raise a `SentembError` with the line.
    """
    ids, texts, line_of = [], [], {}
    name = place_name(path)
    for number, line in clean_lines(path):
        id, tab, text = line.partition("\t")
        if not tab:
            raise SentembError(f"{name}:{number}: no tab; write id<TAB>text")
        if not is_id(id):
            raise SentembError(
                f"{name}:{number}: the id {brief(id)} is empty or has white space; "
                "write id<TAB>text with an id of one word"
            )
        if not text.strip():
            raise SentembError(
                f"{name}:{number}: the text of {plain(id)} is empty; write id<TAB>text"
            )
        if id in line_of:
            raise SentembError(
                f"{name}:{number}: the id {plain(id)} stands in line {line_of[id]} already; "
                "give each text its own id"
            )
        line_of[id] = number
        ids.append(id)
        texts.append(text)
    return ids, texts


def _read_judgments(path, query_ids, doc_ids):
    query_of = {id: index for index, id in enumerate(query_ids)}
    doc_of = {id: index for index, id in enumerate(doc_ids)}
    line_of = {}
    grades = []
    for number, line in clean_lines(path):
        columns = line.split()
        if len(columns) != 4:
            raise SentembError(
                f"{path}:{number}: {len(columns)} columns, not four; "
                "write query id, 0, document id, grade"
            )
        query_id, _, doc_id, grade = columns
        if query_id not in query_of:
            raise SentembError(
                f"{path}:{number}: the query {plain(query_id)} is not in queries.tsv; "
                "add it there or drop the line"
            )
        if doc_id not in doc_of:
            raise SentembError(
                f"{path}:{number}: the document {plain(doc_id)} is not in docs.tsv; "
                "add it there or drop the line"
            )
        # The pattern keeps int() from taking underscores and from refusing very long numbers.
        if not re.fullmatch(r"[+-]?[0-9]{1,10}", grade) or abs(int(grade)) > _MAX_GRADE:
            raise SentembError(
                f"{path}:{number}: the grade {brief(grade)} is not an integer of 32 bits; "
                "write 0 for not relevant, 1 and more for relevant"
            )
        pair = query_of[query_id], doc_of[doc_id]
        if pair in line_of:
            raise SentembError(
                f"{path}:{number}: {plain(doc_id)} is judged for {plain(query_id)} in line "
                f"{line_of[pair]} already; keep one of the two"
            )
        line_of[pair] = number
        grades.append(int(grade))
    if not grades:
        raise SentembError(f"{path}: no judgments; write query id, 0, document id, grade")
    pairs = np.array(list(line_of), dtype=np.int32)
    return pairs[:, 0], pairs[:, 1], np.array(grades, dtype=np.int32)


def _judgment_lines(judged):
    docs, grades = judged.doc_index.tolist(), judged.grade.tolist()
    offsets = judged.offsets.tolist()
    for query_id, start, stop in zip(judged.query_ids, offsets, offsets[1:]):
        for doc, grade in zip(docs[start:stop], grades[start:stop]):
            yield f"{query_id} 0 {judged.doc_ids[doc]} {grade}"
