"""Run files in the TREC format: ``query id, Q0, title id, rank, score, tag``.

A run is a dict of dicts: query id -> title id -> score. What TREC calls a document is a title.
"""

import math
from collections.abc import Iterator

from sentemb.data.lines import content_lines, is_id, write_lines
from sentemb.errors import SentembError
from sentemb.evaluation.metrics import Run
from sentemb.system.bounds import brief, plain
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath


def read_run(path: AnyPath) -> dict[str, dict[str, float]]:
    """Read a run: query id -> title id -> score, in the order of the file.

    Lines have six columns separated by white space; the second column, the rank and the tag are
    ignored, as in trec_eval. A ``.gz`` file is unpacked, ``-`` is standard input. Raises
    `SentembError` with place and remedy, for a line without six columns, a score that is not a
    number, a title given twice for a query, NUL characters, invalid UTF-8, an empty run.
    """
    name = place_name(path)
    run: dict[str, dict[str, float]] = {}
    for number, line in content_lines(path):
        columns = line.split()
        if len(columns) != 6:
            raise SentembError(
                f"{name}:{number}: {len(columns)} columns, not six; "
                "write query id, Q0, title id, rank, score, tag"
            )
        query_id, _, title_id, _, written, _ = columns
        score = _number(written)
        if math.isnan(score):
            raise SentembError(
                f"{name}:{number}: the score {brief(written)} is not a number; "
                "write query id, Q0, title id, rank, score, tag"
            )
        scores = run.setdefault(query_id, {})
        if title_id in scores:
            raise SentembError(
                f"{name}:{number}: the title {plain(title_id)} is given twice for the query "
                f"{plain(query_id)}; keep one of the lines"
            )
        scores[title_id] = score
    if not run:
        raise SentembError(f"{name}: no ranked titles, the input is empty; give a run")
    return run


def write_run(run: Run, path: AnyPath, tag: str = "sentemb") -> None:
    """Write a run, sorted for each query by descending score, then title id; ranks start at 1.

    Scores are written with all their digits, so that `read_run` gives the same numbers and the same
    order. The file is compressed if the name ends in ``.gz``; ``-`` is standard output. ``tag`` is
    the last column: the name of the run. Raises `SentembError` for a score that is NaN, an id or a
    tag that is empty or has white space; nothing is written.
    """
    for id in (tag, *run, *(title_id for scores in run.values() for title_id in scores)):
        if not is_id(id):
            raise SentembError(
                f"{brief(id)} cannot be used in a run; use ids and a tag without white space"
            )
    for query_id, scores in run.items():
        for title_id, score in scores.items():
            if math.isnan(score):
                raise SentembError(
                    f"the score of {plain(title_id)} for the query {plain(query_id)} is NaN; "
                    "a run needs a number for each title"
                )
    write_lines(path, _run_lines(run, tag))


def _number(text: str) -> float:
    """The number that ``text`` spells, or NaN."""
    try:
        # float() would also accept 1_000.
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _run_lines(run: Run, tag: str) -> Iterator[str]:
    for query_id, scores in run.items():
        ranking = sorted(((float(score), id) for id, score in scores.items()), reverse=True)
        for rank, (score, title_id) in enumerate(ranking, 1):
            yield f"{query_id} Q0 {title_id} {rank} {score!r} {tag}"
