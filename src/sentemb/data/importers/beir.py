"""Sets in the format of BEIR: a corpus, queries, and judgments for parts of the queries.

Thakur et al., "BEIR: A heterogeneous benchmark for zero-shot evaluation of information retrieval
models" (2021), https://github.com/beir-cellar/beir.
"""

from collections.abc import Iterator
from pathlib import Path

from sentemb.data.importers.clean_texts import imported_id, imported_text
from sentemb.data.importers.columns import Reading
from sentemb.data.importers.published import (
    Judgments,
    found_file,
    table,
    texts_by_id,
    write_counted,
    write_part,
    write_readme,
)
from sentemb.data.lines import write_lines
from sentemb.errors import SentembError, naming
from sentemb.system.bounds import brief, whole
from sentemb.system.files import path_of
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

WHERE = "https://github.com/beir-cellar/beir"
_JSON = Reading("jsonl")
_QRELS = Reading("tsv", quotes=False)
_PARTS = ("train", "dev", "test")


def import_beir(
    source: AnyPath, out: AnyPath, *, words: int = 64, force: bool = False
) -> dict[str, int]:
    """Turn a folder in the format of BEIR into a click log, dev and test queries.

    Writes ``pairs.tsv`` from ``qrels/train.tsv`` and the parts ``dev`` and ``test``, as far as the
    set has them; ``titles.tsv``, the whole corpus; and a ``README.md``. A part whose judgments
    differ within a query is a judged set, the folder ``dev/`` or ``test/``. A part that only names
    right documents is held-out clicks, the file ``dev.tsv`` or ``test.tsv``.

    Parameters
    ----------
    source : str or path-like
        Folder with ``corpus.jsonl`` and ``queries.jsonl``, packed or not, and
        ``qrels/train.tsv``, ``dev.tsv`` and ``test.tsv``, at least one of them.
    out : str or path-like
        Folder to write to.
    words : int
        A document without a title has this many words of its text instead.
    force : bool
        Write into a folder that has files already. Either all files are written or none.

    Returns
    -------
    dict of str to int
        Counts: ``titles``, ``pairs``, ``dev_queries``, ``test_queries``.

    Raises
    ------
    SentembError
        For a file or key that is missing, a score that is not an integer, an output folder that is
        not empty.
    """
    folder, place = path_of(source), path_of(out)
    whole("words", words, 1, 10_000)
    check_free(place, force)
    corpus = found_file(folder, "corpus.jsonl", WHERE) or folder
    queries = found_file(folder, "queries.jsonl", WHERE) or folder
    parts = {}
    for name in _PARTS:
        path = found_file(folder / "qrels", f"{name}.tsv")
        if path is not None:
            parts[name] = _judgments(path)
    if not parts:
        raise SentembError(f"{folder / 'qrels'}: has none of {', '.join(_PARTS)}.tsv")
    ids = {id for part in parts.values() for id in part.grades}
    texts = dict(texts_by_id(table(queries, ("_id", "text"), _JSON), "query", ids))
    needed = {id for part in parts.values() for id in part.title_ids}
    titles: dict[str, str] = {}
    counts = {"titles": 0}

    def all_titles() -> Iterator[str]:
        for id, title in _titles(corpus, words):
            counts["titles"] += 1
            if id in needed:
                titles[id] = title
            yield f"{id}\t{title}"

    with filling_listed(place) as new:
        write_lines(new / "titles.tsv", all_titles())
        for name, part in parts.items():
            part.queries = texts
            if name == "train":
                counts["pairs"] = write_counted(new / "pairs.tsv", part.clicks(titles))
            else:
                counts |= write_part(new, name, part, titles)
        write_readme(
            new,
            f"{folder.name}: a query -> a document",
            f"Made by `sentemb data beir` from a set in the format of {WHERE}",
            counts,
            f"A document is its title or, without one, the first {words} words of its text.",
            "Each set of BEIR has a licence of its own; see where it was published.",
        )
    return counts


def _judgments(path: Path) -> Judgments:
    judgments = Judgments()
    rows = table(path, ("query-id", "corpus-id", "score"), _QRELS)
    for number, (query, document, score) in rows:
        try:
            grade = int(score)
        except ValueError:
            raise SentembError(
                f"{rows.place(number)}: the score {brief(score)} is not an integer; correct it"
            ) from None
        judgments.add(imported_id(query), imported_id(document), grade)
    return judgments


def _titles(corpus: Path, words: int) -> Iterator[tuple[str, str]]:
    """Id and title of the documents that have any text."""
    columns = ("_id", "title", "text")
    rows = table(corpus, columns, _JSON, optional=("title",))
    for number, (raw_id, title, text) in rows:
        with naming(rows.place(number)):
            id = imported_id(raw_id)
            shown = imported_text(title, "title")
            shown = shown or imported_text(" ".join(text.split(None, words)[:words]), "text")
        if id and shown:
            yield id, shown
