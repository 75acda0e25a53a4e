"""Run files as TREC has them: ``query id, Q0, document id, rank, score, tag``.

A run is a dict of dicts, query id -> document id -> score.
"""

import math

from sentemb.bounds import brief, plain
from sentemb.data.lines import clean_lines, is_id, write_lines
from sentemb.errors import SentembError
from sentemb.system.files import place_name


def read_run(path):
    """Read a run.

    Parameters
    ----------
    path : str or path-like
        Lines of six columns separated by white space; the second, the rank and the tag are
        ignored, as trec_eval does. ``.gz`` is unpacked, ``-`` is standard input.

    Returns
    -------
    dict of str to dict of str to float
        Query id -> document id -> score, in the order of the file.

    Raises
    ------
    SentembError
        With place and remedy, for a line without six columns, a score that is not a number, a
        document given twice for a query, NUL characters, invalid UTF-8, an empty run.
    """
    name = place_name(path)
    run = {}
    for number, line in clean_lines(path):
        columns = line.split()
        if len(columns) != 6:
            raise SentembError(
                f"{name}:{number}: {len(columns)} columns, not six; "
                "write query id, Q0, document id, rank, score, tag"
            )
        query_id, _, doc_id, _, written, _ = columns
        score = _number(written)
        if math.isnan(score):
            raise SentembError(
                f"{name}:{number}: the score {brief(written)} is not a number; "
                "write query id, Q0, document id, rank, score, tag"
            )
        scores = run.setdefault(query_id, {})
        if doc_id in scores:
            raise SentembError(
                f"{name}:{number}: the document {plain(doc_id)} is given twice for the query "
                f"{plain(query_id)}; keep one of the lines"
            )
        scores[doc_id] = score
    if not run:
        raise SentembError(f"{name}: no ranked documents, the input is empty; give a run")
    return run


def write_run(run, path, tag="sentemb"):
    """Write a run, for each query by falling score, then falling document id, ranks from 1.

    Parameters
    ----------
    run : dict of str to dict of str to float
        Query id -> document id -> score. Scores are written with all their digits, so that
        `read_run` gives the same numbers and the same order.
    path : str or path-like
        Packed if the name ends in ``.gz``; ``-`` is standard output.
    tag : str
        The last column: a name of the run.

    Raises
    ------
    SentembError
        For a score that is NaN, an id or a tag that is empty or has white space; nothing is
        written.
    """
    for id in (tag, *run, *(doc_id for scores in run.values() for doc_id in scores)):
        if not is_id(id):
            raise SentembError(
                f"{brief(id)} cannot be used in a run; use ids and a tag without white space"
            )
    for query_id, scores in run.items():
        for doc_id, score in scores.items():
            if math.isnan(score):
                raise SentembError(
                    f"the score of {plain(doc_id)} for the query {plain(query_id)} is NaN; "
                    "a run needs a number for each document"
                )
    write_lines(path, _run_lines(run, tag))


def _number(text):
    """The number ``text`` stands for, or NaN."""
    try:
        # float() would take 1_000 as well.
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _run_lines(run, tag):
    for query_id, scores in run.items():
        ranking = sorted(((float(score), doc_id) for doc_id, score in scores.items()), reverse=True)
        for rank, (score, doc_id) in enumerate(ranking, 1):
            yield f"{query_id} Q0 {doc_id} {rank} {score!r} {tag}"
