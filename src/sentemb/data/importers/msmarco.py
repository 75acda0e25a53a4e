"""MS MARCO document ranking, and ORCAS: clicks on the same documents.

Bajaj et al., "MS MARCO: A human generated machine reading comprehension dataset" (2016); Craswell
et al., "ORCAS: 18 million clicked query-document pairs for analyzing search" (CIKM 2020).
The documents are a file of 22 GB, of which only the titles of needed ids are kept.
"""

from collections.abc import Collection, Iterator
from pathlib import Path

from sentemb.data.importers.clean_texts import imported_text
from sentemb.data.importers.published import (
    Judgments,
    found_file,
    read_qrels,
    table,
    texts_by_id,
    write_counted,
    write_part,
    write_readme,
    write_titles,
)
from sentemb.errors import SentembError, naming
from sentemb.system.files import path_of, place_name, raw_lines
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

WHERE = "https://microsoft.github.io/msmarco/Datasets"
WHERE_ORCAS = "https://microsoft.github.io/msmarco/ORCAS"
DOCUMENTS = "msmarco-docs.tsv"
# Part -> queries and judgments, as they are published.
PARTS = {
    "train": ("msmarco-doctrain-queries.tsv", "msmarco-doctrain-qrels.tsv"),
    "dev": ("msmarco-docdev-queries.tsv", "msmarco-docdev-qrels.tsv"),
    "test2019": ("msmarco-test2019-queries.tsv", "2019qrels-docs.txt"),
    "test2020": ("msmarco-test2020-queries.tsv", "2020qrels-docs.txt"),
}
_COLUMNS = 4
_LICENCE = (
    "The publisher offers MS MARCO and ORCAS for non-commercial research only, without a\n"
    "warranty and without rights in the documents."
)


def import_msmarco(source: AnyPath, out: AnyPath, *, force: bool = False) -> dict[str, int]:
    """Turn MS MARCO document ranking into a click log, dev queries and judged test sets.

    Writes ``pairs.tsv`` from the training queries, if they are there, one click for each relevant
    document; ``dev.tsv``, held-out clicks; the judged sets ``test2019/`` and ``test2020/`` of the
    TREC Deep Learning tracks; ``titles.tsv`` with the titles of all these documents; and a
    ``README.md``.

    Parameters
    ----------
    source : str or path-like
        Folder with ``msmarco-docs.tsv`` and for each part the file of its queries and of its
        judgments (`PARTS`), all packed or not. Parts that are not there are left out.
    out : str or path-like
        Folder to write to.
    force : bool
        Write into a folder that has files already. Either all files are written or none.

    Returns
    -------
    dict of str to int
        Counts: ``titles``, ``pairs``, and the queries of the other parts.

    Raises
    ------
    SentembError
        For a file that is missing or has other columns; an output folder that is not empty.
    """
    folder, place = path_of(source), path_of(out)
    check_free(place, force)
    documents = found_file(folder, DOCUMENTS, WHERE)
    parts = _parts(folder)
    needed = {id for judgments in parts.values() for id in judgments.title_ids}
    titles = dict(document_titles(documents or folder, needed))
    counts = {"titles": len(titles), "documents_without_title": len(needed) - len(titles)}
    with filling_listed(place) as new:
        for name, judgments in parts.items():
            if name == "train":
                counts["pairs"] = write_counted(new / "pairs.tsv", judgments.clicks(titles))
            else:
                counts |= write_part(new, name, judgments, titles)
        write_titles(new, titles)
        write_readme(
            new,
            "MS MARCO documents: a question -> the title of a relevant document",
            f"Made by `sentemb data msmarco` from {WHERE}",
            counts,
            "dev.tsv has one relevant document for most queries and no others: rank all of "
            "titles.tsv.\nThe grades of test2019/ and test2020/ are 3 perfectly relevant, 2 highly "
            "relevant,\n1 relevant, 0 irrelevant.",
            _LICENCE,
        )
    return counts


def import_orcas(
    source: AnyPath, documents: AnyPath, out: AnyPath, *, force: bool = False
) -> dict[str, int]:
    """Turn ORCAS into a click log: queries of a search engine and titles of clicked documents.

    Writes ``pairs.tsv``, ``titles.tsv`` and a ``README.md``. Clicks on documents without a title
    are left out. `sentemb split` makes dev and test sets.

    Parameters
    ----------
    source : str or path-like
        The file ``orcas.tsv`` with the columns query id, query, document id and URL; packed if its
        name ends in ``.gz``. It is read twice.
    documents : str or path-like
        The file ``msmarco-docs.tsv`` with the columns document id, URL, title and body.
    out : str or path-like
        Folder to write to.
    force : bool
        Write into a folder that has files already. Either all files are written or none.

    Returns
    -------
    dict of str to int
        Counts: ``clicks`` in the source, ``pairs`` written, ``titles``.

    Raises
    ------
    SentembError
        For a file that is missing or has other columns; an output folder that is not empty.
    """
    log, place = path_of(source), path_of(out)
    check_free(place, force)
    if "-" in (str(source), str(documents)):
        raise SentembError("standard input cannot be read twice; give a file")
    needed = {id for _, (id, _) in table(log, "34")}
    titles = dict(document_titles(documents, needed))
    counts = {"clicks": 0, "pairs": 0, "titles": len(titles)}

    def lines() -> Iterator[str]:
        rows = table(log, "23")
        for number, (raw_query, id) in rows:
            counts["clicks"] += 1
            if id in titles:
                with naming(rows.place(number)):
                    query = imported_text(raw_query, "query")
                if query:
                    yield f"{query}\t{titles[id]}"

    with filling_listed(place) as new:
        counts["pairs"] = write_counted(new / "pairs.tsv", lines())
        write_titles(new, titles)
        write_readme(
            new,
            "ORCAS: a query -> the title of a clicked document",
            f"Made by `sentemb data orcas` from {WHERE_ORCAS}",
            counts,
            "Each line of pairs.tsv is a query and a document that was clicked for it; the source "
            "has no counts.",
            _LICENCE,
        )
    return counts


def document_titles(path: AnyPath, needed: Collection[str]) -> Iterator[tuple[str, str]]:
    """Id and title of the documents in msmarco-docs.tsv that are needed and have a title."""
    wanted = {id.encode() for id in needed}
    name = place_name(path)
    for number, raw in raw_lines(path):
        # The body is most of the line: it is neither decoded nor looked through for words.
        fields = raw.split(b"\t", _COLUMNS - 1)
        if len(fields) != _COLUMNS:
            raise SentembError(
                f"{name}:{number}: {len(fields)} columns, not document id, URL, title and body; "
                f"get the file again from {WHERE}"
            )
        if fields[0] in wanted:
            with naming(f"{name}:{number}"):
                title = imported_text(fields[2].decode("utf-8", "surrogateescape"), "title")
                if title:
                    yield fields[0].decode(), title


def _parts(folder: Path) -> dict[str, Judgments]:
    """The judgments of the parts that are in the folder."""
    parts = {}
    for name, (queries, qrels) in PARTS.items():
        judged = found_file(folder, qrels)
        if judged is None:
            continue
        judgments = parts[name] = read_qrels(judged)
        texts = table(found_file(folder, queries, WHERE) or folder, "12")
        judgments.queries.update(texts_by_id(texts, "query", judgments.grades))
    if not parts:
        raise SentembError(
            f"{folder}: no judgments, such as {PARTS['dev'][1]}; get them from {WHERE}"
        )
    return parts
