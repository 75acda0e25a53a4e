"""WANDS, the Wayfair Annotation Dataset: queries and products of furniture, judged by raters.

Chen et al., "WANDS: Dataset for product search relevance assessment" (ECIR 2022),
https://github.com/wayfair/WANDS.
"""

import random

from sentemb.data.importers.clean_texts import imported_id
from sentemb.data.importers.columns import Reading
from sentemb.data.importers.published import (
    Judgments,
    found_file,
    table,
    texts_by_id,
    write_counted,
    write_part,
    write_readme,
    write_titles,
)
from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_SEED, brief, whole
from sentemb.system.files import path_of
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed

WHERE = "https://github.com/wayfair/WANDS"
GRADES = {"Exact": 2, "Partial": 1, "Irrelevant": 0}
# Named .csv, and separated by tabs. Its authors read it with pandas, which is not strict.
_TABS = Reading("csv", delimiter="\t", strict=False)


def import_wands(
    source: AnyPath,
    out: AnyPath,
    *,
    dev: int = 80,
    test: int = 160,
    seed: int = 0,
    force: bool = False,
) -> dict[str, int]:
    """Turn WANDS into judged dev and test sets, and pairs of the other queries.

    Writes ``dev/`` and ``test/``, with grades 2 exact, 1 partial, 0 irrelevant; ``pairs.tsv``, the
    exact products of the remaining queries, of which there are too few to learn much from;
    ``titles.tsv``, the names of all products; and a ``README.md``.

    Parameters
    ----------
    source : str or path-like
        Folder with ``product.csv``, ``query.csv`` and ``label.csv``.
    out : str or path-like
        Folder to write to.
    dev, test : int
        Number of queries of each; at least one query must remain.
    seed : int
        Seed of the split.
    force : bool
        Write into a folder that has files already. Either all files are written or none.

    Returns
    -------
    dict of str to int
        Counts: ``pairs``, ``dev_queries``, ``test_queries``, ``titles``.

    Raises
    ------
    SentembError
        For a file, column or label that is missing or unknown, too many queries, an output folder
        that is not empty.
    """
    folder, place = path_of(source), path_of(out)
    whole("dev", dev, 1, 10**6)
    whole("test", test, 1, 10**6)
    whole("seed", seed, 0, MAX_SEED)
    check_free(place, force)
    paths = [
        found_file(folder, name, WHERE) or folder
        for name in ("product.csv", "query.csv", "label.csv")
    ]
    titles = dict(texts_by_id(table(paths[0], ("product_id", "product_name"), _TABS), "name"))
    queries = dict(texts_by_id(table(paths[1], ("query_id", "query"), _TABS), "query"))
    if dev + test >= len(queries):
        raise SentembError(
            f"{paths[1]}: {dev} dev and {test} test queries of {len(queries)}; choose fewer"
        )
    order = list(queries)
    random.Random(seed).shuffle(order)
    parts = {name: Judgments() for name in ("dev", "test", "train")}
    part_of = {
        id: parts["dev" if place < dev else "test" if place < dev + test else "train"]
        for place, id in enumerate(order)
    }
    for part in parts.values():
        part.queries = queries
    rows = table(paths[2], ("query_id", "product_id", "label"), _TABS)
    for number, (query_id, product_id, label) in rows:
        query = imported_id(query_id)
        if label not in GRADES or query not in part_of:
            raise SentembError(
                f"{rows.place(number)}: the label {brief(label)} or the query {brief(query)} is "
                f"unknown; get the file again from {WHERE}"
            )
        part_of[query].add(query, imported_id(product_id), GRADES[label])

    counts = {}
    with filling_listed(place) as new:
        exact = parts["train"].clicks(titles, least=GRADES["Exact"])
        counts["pairs"] = write_counted(new / "pairs.tsv", exact)
        counts |= write_part(new, "dev", parts["dev"], titles)
        counts |= write_part(new, "test", parts["test"], titles)
        write_titles(new, titles)
        counts["titles"] = len(titles)
        write_readme(
            new,
            "WANDS: a query for furniture -> a product",
            f"Made by `sentemb data wands` from {WHERE}, seed {seed}",
            counts,
            "Grades are from raters: 2 exact, 1 partial, 0 irrelevant.\n"
            "pairs.tsv has the exact products of the queries that are not judged.",
            "MIT License, by Wayfair. Texts were selected and rearranged.",
        )
    return counts
